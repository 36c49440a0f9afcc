#ifndef INTERLOCK_WDK_NTDDK_H
#define INTERLOCK_WDK_NTDDK_H

#include <wdm.h>

#endif
