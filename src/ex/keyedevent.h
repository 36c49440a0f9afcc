/*
 * keyedevent.h: keyed events. Their doors for programs are the system services; the theory is in keyedevent.c.
 */
#ifndef INTERLOCK_KEYEDEVENT_H
#define INTERLOCK_KEYEDEVENT_H

#include "exp.h"

/* What there is to wait on is in the waiter hash. To a wait for the object itself it is always signaled. */
typedef struct _EX_KEYED_EVENT {
    KEVENT Signaled;
} EX_KEYED_EVENT, *PEX_KEYED_EVENT;

/* The one that stands in where a program names none. */
extern EX_KEYED_EVENT ExpCritSecOutOfMemoryEvent;

VOID ExpInitializeKeyedEvent(PEX_KEYED_EVENT KeyedEvent);

/* STATUS_INVALID_PARAMETER_1 for an odd key. NULL for KeyedEvent is ExpCritSecOutOfMemoryEvent. After STATUS_USER_APC the
   caller runs KiDeliverUserApcs, when it has given back what it holds. */
NTSTATUS ExpWaitForKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout);
NTSTATUS ExpReleaseKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout);

#endif
