/* event.c: KEVENT. An event that nobody waits on is set, reset, pulsed and consumed by one compare-exchange. */
#include "wait.h"

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

static LONG KiSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Pulse)
{
    KI_SIGNAL Signal = {.Update = KiUpdateSetEvent, .Increment = Increment, .Pulse = Pulse};
    LONG Previous;
    KiSignal(&Event->Header, &Signal, &Previous);
    return Previous;
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    LONG Previous;
    if (!KiTryChangeState(Event, 1, &Previous)) {
        Previous = KiSetEvent(Event, Increment, FALSE);
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
}

LONG KePulseEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    LONG Previous;
    if (!KiTryChangeState(Event, 0, &Previous)) {
        Previous = KiSetEvent(Event, Increment, TRUE);
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
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
