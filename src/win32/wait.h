/*
 * wait.h: how long a Win32 function waits. Win32 knows nothing of alerts, so an alertable wait that one has ended starts
 * over, with what is left of its time.
 */
#ifndef INTERLOCK_WIN32_WAIT_PRIVATE_H
#define INTERLOCK_WIN32_WAIT_PRIVATE_H

#include "base.h"

typedef struct _BASE_WAIT_TIME {
    LARGE_INTEGER Interval;
    PLARGE_INTEGER Timeout;          /* what the Nt service is given */
    ULONGLONG End;                   /* in interrupt time, if the wait may start over and not poll */
    BOOLEAN Alertable;
} BASE_WAIT_TIME, *PBASE_WAIT_TIME;

VOID BaseBeginWait(PBASE_WAIT_TIME Time, ULONG Milliseconds, BOOL Alertable);
BOOLEAN BaseWaitAgain(PBASE_WAIT_TIME Time, NTSTATUS Status); /* FALSE: Status is how the wait has ended */

#endif
