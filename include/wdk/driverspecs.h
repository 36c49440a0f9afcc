#ifndef INTERLOCK_WDK_DRIVERSPECS_H
#define INTERLOCK_WDK_DRIVERSPECS_H

#include <interlock/win32/sal1.h>

#endif
