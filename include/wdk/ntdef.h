#ifndef INTERLOCK_WDK_NTDEF_H
#define INTERLOCK_WDK_NTDEF_H

#include <interlock/ntdef.h>

#endif
