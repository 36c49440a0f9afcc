#ifndef INTERLOCK_WDK_NTSTATUS_H
#define INTERLOCK_WDK_NTSTATUS_H

#include <interlock/ntstatus.h>

#endif
