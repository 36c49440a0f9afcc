#ifndef INTERLOCK_WDK_DRIVERSPECS_H
#define INTERLOCK_WDK_DRIVERSPECS_H

#include <interlock/driverspecs.h>

#endif
