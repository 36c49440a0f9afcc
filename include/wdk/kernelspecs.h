#ifndef INTERLOCK_WDK_KERNELSPECS_H
#define INTERLOCK_WDK_KERNELSPECS_H

#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>

#endif
