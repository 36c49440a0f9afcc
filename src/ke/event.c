/* event.c: KEVENT. An event that nobody waits on is set, reset, pulsed and consumed by one compare-exchange. */
#include "signalobject.h"

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    UCHAR Kind = Type == NotificationEvent ? EventNotificationObject : EventSynchronizationObject;
    KiInitializeHeader(&Event->Header, Kind, sizeof(KEVENT), State);
}

static BOOLEAN KiUpdateSetEvent(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    UNREFERENCED_PARAMETER(Context);
    *Word = KiWithState(*Word, 1);
    return TRUE;
}

/* TRUE: nobody waits, and the state was changed at one stroke. */
FORCEINLINE BOOLEAN KiTryChangeState(PRKEVENT Event, LONG State, PLONG Previous)
{
    ULONG64 Word = KiReadHeader(&Event->Header);
    while (!(Word & (KI_LOCKED | KI_WAITERS))) {
        if (KiCompareExchangeHeader(&Event->Header, &Word, KiWithState(Word, State))) {
            *Previous = KI_STATE(Word);
            return TRUE;
        }
    }
    return FALSE;
}

static DECLSPEC_NOINLINE LONG KiSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Pulse, BOOLEAN Wait)
{
    KI_SIGNAL Signal = {.Update = KiUpdateSetEvent, .Increment = Increment, .Pulse = Pulse};
    LONG Previous;
    KiSignalInline(&Event->Header, &Signal, &Previous);
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
}

FORCEINLINE LONG KiChangeState(PRKEVENT Event, LONG State, KPRIORITY Increment, BOOLEAN Wait)
{
    LONG Previous;
    if (!KiTryChangeState(Event, State, &Previous)) {
        return KiSetEvent(Event, Increment, State == 0, Wait);
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    return KiChangeState(Event, 1, Increment, Wait);
}

LONG KePulseEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    return KiChangeState(Event, 0, Increment, Wait);
}

VOID KeSetEventBoostPriority(PRKEVENT Event, PKTHREAD *Thread)
{
    KI_SIGNAL Signal = {.Update = KiUpdateSetEvent,
                        .Increment = EVENT_INCREMENT,
                        .BoostFloor = (SCHAR)KeQueryPriorityThread(KiCurrentThread()),
                        .Released = Thread};
    LONG Previous;
    if (Thread != NULL) {
        *Thread = NULL;
    }
    KiSignal(&Event->Header, &Signal, &Previous);
}

LONG KeResetEvent(PRKEVENT Event)
{
    ULONG64 Word = KiReadHeader(&Event->Header);
    while ((Word & KI_LOCKED) || !KiCompareExchangeHeader(&Event->Header, &Word, KiWithState(Word, 0))) {
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
