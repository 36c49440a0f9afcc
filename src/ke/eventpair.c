/* eventpair.c: KEVENT_PAIR. Two synchronization events; one side sets its own and waits for the other in one step. */
#include "wait.h"

VOID KeInitializeEventPair(PKEVENT_PAIR EventPair)
{
    EventPair->Type = EventPairObject;
    EventPair->Size = sizeof(KEVENT_PAIR);
    KeInitializeEvent(&EventPair->EventLow, SynchronizationEvent, FALSE);
    KeInitializeEvent(&EventPair->EventHigh, SynchronizationEvent, FALSE);
}

LONG KeSetHighEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait)
{
    return KeSetEvent(&EventPair->EventHigh, Increment, Wait);
}

LONG KeSetLowEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait)
{
    return KeSetEvent(&EventPair->EventLow, Increment, Wait);
}

NTSTATUS KeWaitForHighEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                PLARGE_INTEGER Timeout)
{
    return KeWaitForSingleObject(&EventPair->EventHigh, Executive, WaitMode, Alertable, Timeout);
}

NTSTATUS KeWaitForLowEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout)
{
    return KeWaitForSingleObject(&EventPair->EventLow, Executive, WaitMode, Alertable, Timeout);
}

static NTSTATUS KiSetServerWaitClientEvent(PRKEVENT ServerEvent, PRKEVENT ClientEvent, KPROCESSOR_MODE WaitMode)
{
    KeSetEvent(ServerEvent, EVENT_INCREMENT, TRUE);
    return KeWaitForSingleObject(ClientEvent, Executive, WaitMode, FALSE, NULL);
}

NTSTATUS KeSetHighWaitLowThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode)
{
    return KiSetServerWaitClientEvent(&EventPair->EventHigh, &EventPair->EventLow, WaitMode);
}

NTSTATUS KeSetLowWaitHighThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode)
{
    return KiSetServerWaitClientEvent(&EventPair->EventLow, &EventPair->EventHigh, WaitMode);
}
