#ifndef INTERLOCK_WDK_KERNELSPECS_H
#define INTERLOCK_WDK_KERNELSPECS_H

#include <interlock/annotations.h>
#include <interlock/win32/sal1.h>

#endif
