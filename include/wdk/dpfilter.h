#ifndef INTERLOCK_WDK_DPFILTER_H
#define INTERLOCK_WDK_DPFILTER_H

#include <interlock/dbg.h>

#endif
