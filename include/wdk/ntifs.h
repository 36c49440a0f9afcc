#ifndef INTERLOCK_WDK_NTIFS_H
#define INTERLOCK_WDK_NTIFS_H

#include <wdm.h>

#endif
