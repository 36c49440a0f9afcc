/*
 * tptimer.c: timers. Each is a timer of the kernel that adds a pending callback whenever it expires: each elapsed
 * period of a timer begins a callback, whether or not the previous ones have ended.
 */
#include "tpp.h"

static VOID TppExecuteTimer(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_TIMER Timer = CONTAINING_RECORD(Object, TP_TIMER, Object);
    UNREFERENCED_PARAMETER(Result);
    ((PTP_TIMER_CALLBACK)Object->Callback)(Instance, Object->Context, Timer);
}

/* With the kernel timer locked, so not after KeCancelTimer. A forked child that does not use the pool has no thread for
   the callbacks: they count as one there. */
static VOID TppTimerExpired(PKI_TIMER_CALL Call, ULARGE_INTEGER SystemTime)
{
    PTPP_OBJECT Object = &CONTAINING_RECORD(Call, TP_TIMER, Call)->Object;
    UNREFERENCED_PARAMETER(SystemTime);
    /* relaxed: advisory only; a callback that ends at this moment is one of those that count as one */
    if (TppIsPoolReady(Object->Pool) || TppIsIdle(__atomic_load_n(&Object->State, __ATOMIC_RELAXED))) {
        TppAddPending(Object);
    }
}

static PVOID TppCollectTimer(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    if (Disarm) {
        KeCancelTimer(&CONTAINING_RECORD(Object, TP_TIMER, Object)->Timer);
    }
    return NULL;
}

static const TPP_TYPE TppTimerType = {
    .Size = sizeof(TP_TIMER),
    .UsesClock = TRUE,
    .Collect = TppCollectTimer,
};

NTSTATUS TpAllocTimer(PTP_TIMER *TimerReturn, PTP_TIMER_CALLBACK Callback, PVOID Context,
                      PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    KiEnterService(Thread);
    NTSTATUS Status = TppAllocate(&TppTimerType, TppExecuteTimer, (PVOID)Callback, Context, CallbackEnviron, &Object);
    if (NT_SUCCESS(Status)) {
        PTP_TIMER Timer = Object;
        KeInitializeTimerEx(&Timer->Timer, SynchronizationTimer);
        Timer->Call.Routine = TppTimerExpired;
        *TimerReturn = Timer;
        TppIntroduce(&Timer->Object, CallbackEnviron);
    }
    KiExitService(Thread);
    return Status;
}

LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength)
{
    BOOLEAN Cancelled = FALSE;
    TppReadyPool(Timer->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    if (!TppIsClosed(&Timer->Object)) {
        Cancelled = KeCancelTimer(&Timer->Timer);
        Timer->IsSet = DueTime != NULL;
        Timer->Period = Period;
        if (DueTime != NULL) {
            KI_TIMER_SETTING Setting = {
                .DueTime = DueTime->QuadPart,
                .Period = Period,
                .Type = KiEncodeTolerance((ULONG64)WindowLength * 10000),
                .Call = &Timer->Call,
            };
            KiSetTimer(&Timer->Timer, &Setting);
        }
    }
    KiExitLocked(&Timer->Object.Lock, Thread);
    return Cancelled;
}

VOID TpSetTimer(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength)
{
    TpSetTimerEx(Timer, DueTime, Period, WindowLength);
}

/* A timer that has expired is still set: only a call without a due time changes that. */
LOGICAL TpIsTimerSet(PTP_TIMER Timer)
{
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    BOOLEAN IsSet = Timer->IsSet;
    KiExitLocked(&Timer->Object.Lock, Thread);
    return IsSet;
}

BOOLEAN TppHasTimerEnded(PTP_TIMER Timer)
{
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    BOOLEAN Ended = Timer->IsSet && Timer->Period == 0 && KeReadStateTimer(&Timer->Timer);
    KiExitLocked(&Timer->Object.Lock, Thread);
    return Ended;
}

VOID TpWaitForTimer(PTP_TIMER Timer, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Timer->Object, CancelPendingCallbacks != FALSE);
}

VOID TpReleaseTimer(PTP_TIMER Timer)
{
    TppClose(&Timer->Object, TppProgram);
}
