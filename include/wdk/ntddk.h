#ifndef INTERLOCK_WDK_NTDDK_H
#define INTERLOCK_WDK_NTDDK_H

#define _NTDDK_

#include <wdm.h>

#endif
