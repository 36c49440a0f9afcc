/* tptimer.c: timers. Each is a synchronization timer of the kernel with a source. A periodic one is armed again when
   its packet is served, so expirations that found no thread count as one. */
#include "tpp.h"

static VOID TppExecuteTimer(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_TIMER Timer = CONTAINING_RECORD(Object, TP_TIMER, Object);
    UNREFERENCED_PARAMETER(Result);
    ((PTP_TIMER_CALLBACK)Object->Callback)(Instance, Object->Context, Timer);
}

/* With the object's lock. */
static TPP_DISARMED TppStopTimer(PTP_TIMER Timer)
{
    KeCancelTimer(&Timer->Timer);
    TPP_DISARMED Disarmed = TppDisarm(&Timer->Source);
    if (Disarmed == TppHadFired) {
        TppAddPending(&Timer->Object);
    }
    return Disarmed;
}

static ULONG TppTimerArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    PTP_TIMER Timer = CONTAINING_RECORD(Object, TP_TIMER, Object);
    UNREFERENCED_PARAMETER(Dereference);
    if (Timer->Period != 0) {
        TppArm(Source, &Timer->Timer);
    }
    return STATUS_WAIT_0;
}

static PVOID TppCollectTimer(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    PTP_TIMER Timer = CONTAINING_RECORD(Object, TP_TIMER, Object);
    if (Disarm) {
        TppStopTimer(Timer);
    } else if (TppHasFired(&Timer->Source)) {
        TppDisarm(&Timer->Source);
        TppAddPending(Object);
        TppTimerArrived(Object, &Timer->Source, NULL);
    }
    return NULL;
}

static VOID TppRepairTimer(PTPP_OBJECT Object)
{
    TppRepairSource(&CONTAINING_RECORD(Object, TP_TIMER, Object)->Source);
}

static const TPP_TYPE TppTimerType = {
    .Size = sizeof(TP_TIMER),
    .UsesClock = TRUE,
    .Collect = TppCollectTimer,
    .Arrive = TppTimerArrived,
    .Repair = TppRepairTimer,
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
        TppInitializeSource(&Timer->Source, &Timer->Object);
        KeInitializeTimerEx(&Timer->Timer, SynchronizationTimer);
        *TimerReturn = Timer;
        TppIntroduce(&Timer->Object, CallbackEnviron);
    }
    KiExitService(Thread);
    return Status;
}

LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength)
{
    TPP_DISARMED Disarmed = TppWasNotArmed;
    TppReadyPool(Timer->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    if (!TppIsClosed(&Timer->Object)) {
        Disarmed = TppStopTimer(Timer);
        Timer->IsSet = DueTime != NULL;
        if (DueTime != NULL) {
            Timer->Period = Period;
            KeSetCoalescableTimer(&Timer->Timer, *DueTime, Period, WindowLength, NULL);
            TppArm(&Timer->Source, &Timer->Timer);
        }
    }
    KiExitLocked(&Timer->Object.Lock, Thread);
    return Disarmed == TppWasWaiting;
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
    BOOLEAN Expires = Timer->Source.Armed && (Timer->Period != 0 || !TppHasFired(&Timer->Source));
    BOOLEAN Ended = Timer->IsSet && !Expires;
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
