#ifndef INTERLOCK_WDK_NTIFS_H
#define INTERLOCK_WDK_NTIFS_H

#define _NTIFS_
#include <ntddk.h>

#endif
