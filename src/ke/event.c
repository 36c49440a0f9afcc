/*
 * event.c: KEVENT and similar objects: KGATE, a synchronization event whose locking form boosts the thread that it
 * releases, and KEVENT_PAIR, two synchronization events: each side sets one and waits for the other.
 *
 * An event without waiters is set, reset, pulsed and consumed by one compare-exchange.
 */
#include "wait.h"

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    UCHAR Kind = Type == NotificationEvent ? EventNotificationObject : EventSynchronizationObject;
    KiInitializeHeader(&Event->Header, Kind, sizeof(KEVENT), State);
}

static DECLSPEC_NOINLINE LONG KiSetWaitNextAndReturn(LONG Previous)
{
    KiSetWaitNext(KiCurrentThread());
    return Previous;
}

static DECLSPEC_NOINLINE LONG KiSetEventSlow(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Pulse, BOOLEAN Wait)
{
    LONG State = 1;
    KI_SIGNAL Signal = {.Update = KiUpdateState, .Context = &State, .Increment = Increment, .Pulse = Pulse};
    LONG Previous;
    if (KiIsOutside(&Event->Header)) {
        return KiChangeOutsideEvent(&Event->Header, Pulse ? KiOutsidePulse : KiOutsideSet, Wait);
    }
    KiSignalInline(&Event->Header, &Signal, &Previous);
    return Wait ? KiSetWaitNextAndReturn(Previous) : Previous;
}

/* State: of the event afterwards. */
FORCEINLINE LONG KiSetEvent(PRKEVENT Event, LONG State, KPRIORITY Increment, BOOLEAN Wait)
{
    ULONG64 Word = KiReadHeader(&Event->Header);
    do {
        if (Word & (KI_LOCKED | KI_WAITERS)) {
            return KiSetEventSlow(Event, Increment, State == 0, Wait);
        }
    } while (!KiCompareExchangeHeader(&Event->Header, &Word, KiWithState(Word, State)));
    return __builtin_expect(Wait, FALSE) ? KiSetWaitNextAndReturn(KI_STATE(Word)) : KI_STATE(Word);
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    return KiSetEvent(Event, 1, Increment, Wait);
}

LONG KePulseEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    return KiSetEvent(Event, 0, Increment, Wait);
}

VOID KeSetEventBoostPriority(PRKEVENT Event, PKTHREAD *Thread)
{
    LONG State = 1;
    KI_SIGNAL Signal = {.Update = KiUpdateState,
                        .Context = &State,
                        .Increment = EVENT_INCREMENT,
                        .BoostFloor = (SCHAR)KeQueryPriorityThread(KiCurrentThread()),
                        .Released = Thread};
    LONG Previous;
    if (Thread != NULL) {
        *Thread = NULL;
    }
    if (KiIsOutside(&Event->Header)) {
        KiChangeOutsideEvent(&Event->Header, KiOutsideSet, FALSE);
        return;
    }
    KiSignal(&Event->Header, &Signal, &Previous);
}

LONG KeResetEvent(PRKEVENT Event)
{
    ULONG64 Word = KiReadHeader(&Event->Header);
    while ((Word & KI_LOCKED) || !KiCompareExchangeHeader(&Event->Header, &Word, KiWithState(Word, 0))) {
        if (KiIsOutside(&Event->Header)) {
            return KiChangeOutsideEvent(&Event->Header, KiOutsideReset, FALSE);
        }
        Word = KiReadSettledHeader(&Event->Header);
    }
    return KI_STATE(Word);
}

VOID KeClearEvent(PRKEVENT Event)
{
    KeResetEvent(Event);
}

LONG KeReadStateEvent(PRKEVENT Event)
{
    return KI_STATE(KiReadSettledHeader(&Event->Header));
}

/* Gates. Signalling, byte 1 of the header, says that the last signal of the gate was a boosting one. */

#define KI_SIGNALLING ((ULONG64)1 << 8)

VOID KeInitializeGate(PKGATE Gate)
{
    KiInitializeHeader(&Gate->Header, GateObject, sizeof(KGATE), 0);
    Gate->Header.Signalling = FALSE;
}

static BOOLEAN KiUpdateGate(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    *Word = (KiWithState(*Word, 1) & ~KI_SIGNALLING) | (*(BOOLEAN *)Context ? KI_SIGNALLING : 0);
    return TRUE;
}

static VOID KiSignalGate(PKGATE Gate, KPRIORITY Increment, SCHAR BoostFloor)
{
    BOOLEAN Boost = BoostFloor != 0;
    KI_SIGNAL Signal = {.Update = KiUpdateGate, .Context = &Boost, .Increment = Increment, .BoostFloor = BoostFloor};
    LONG Previous;
    KiSignal(&Gate->Header, &Signal, &Previous);
}

VOID KeSignalGate(PKGATE Gate)
{
    KiSignalGate(Gate, IO_NO_INCREMENT, 0);
}

VOID KeSignalGateBoostPriority(PKGATE Gate)
{
    KiSignalGate(Gate, EVENT_INCREMENT, (SCHAR)KeQueryPriorityThread(KiCurrentThread()));
}

NTSTATUS KeWaitForGate(PKGATE Gate, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode)
{
    return KeWaitForSingleObject(Gate, WaitReason, WaitMode, FALSE, NULL);
}

/* Event pairs. */

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

NTSTATUS KeSetHighWaitLowThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode)
{
    KeSetEvent(&EventPair->EventHigh, EVENT_INCREMENT, TRUE);
    return KeWaitForSingleObject(&EventPair->EventLow, Executive, WaitMode, FALSE, NULL);
}

NTSTATUS KeSetLowWaitHighThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode)
{
    KeSetEvent(&EventPair->EventLow, EVENT_INCREMENT, TRUE);
    return KeWaitForSingleObject(&EventPair->EventHigh, Executive, WaitMode, FALSE, NULL);
}
