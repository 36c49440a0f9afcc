#ifndef INTERLOCK_WDK_BUGCODES_H
#define INTERLOCK_WDK_BUGCODES_H

#include <interlock/bugcodes.h>

#endif
