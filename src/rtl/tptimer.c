/* tptimer.c: timers. Each is a synchronization timer of the kernel with a source; one that is periodic is armed anew
   when its packet has been taken out, so expirations that nobody had a thread for count once. */
#include "tpp.h"

#include "../nt/ntp.h"

static PTP_TIMER TppTimerOf(PTPP_OBJECT Object)
{
    return CONTAINING_RECORD(Object, TP_TIMER, Object);
}

static VOID TppExecuteTimer(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Result);
    ((PTP_TIMER_CALLBACK)Object->Callback)(Instance, Object->Context, TppTimerOf(Object));
}

static VOID TppArmIfPeriodic(PTP_TIMER Timer)
{
    if (Timer->Period != 0) {
        TppArm(&Timer->Source, &Timer->Timer);
    }
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

static PVOID TppCollectTimer(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    PTP_TIMER Timer = TppTimerOf(Object);
    if (Disarm) {
        TppStopTimer(Timer);
    } else if (TppHasFired(&Timer->Source)) {
        TppDisarm(&Timer->Source);
        TppAddPending(Object);
        TppArmIfPeriodic(Timer);
    }
    return NULL;
}

static ULONG TppTimerArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    UNREFERENCED_PARAMETER(Source);
    UNREFERENCED_PARAMETER(Dereference);
    TppArmIfPeriodic(TppTimerOf(Object));
    return STATUS_WAIT_0;
}

static VOID TppRepairTimer(PTPP_OBJECT Object)
{
    TppRepairSource(&TppTimerOf(Object)->Source);
}

static const TPP_TYPE TppTimerType = {
    .Size = sizeof(TP_TIMER),
    .UsesClock = TRUE,
    .Execute = TppExecuteTimer,
    .Collect = TppCollectTimer,
    .Arrive = TppTimerArrived,
    .Repair = TppRepairTimer,
};

static NTSTATUS TppAllocateTimer(PTP_TIMER *TimerReturn, PTP_TIMER_CALLBACK Callback, PVOID Context,
                                 PTP_CALLBACK_ENVIRON Environ)
{
    PVOID Object;
    NTSTATUS Status = TppAllocate(&TppTimerType, (PVOID)Callback, Context, Environ, &Object);
    if (NT_SUCCESS(Status)) {
        PTP_TIMER Timer = Object;
        TppInitializeSource(&Timer->Source, &Timer->Object);
        KeInitializeTimerEx(&Timer->Timer, SynchronizationTimer);
        *TimerReturn = Timer;
        TppIntroduce(&Timer->Object, Environ);
    }
    return Status;
}

NTSTATUS TpAllocTimer(PTP_TIMER *TimerReturn, PTP_TIMER_CALLBACK Callback, PVOID Context,
                      PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return NTP_SERVICE(TppAllocateTimer(TimerReturn, Callback, Context, CallbackEnviron));
}

LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength)
{
    TPP_DISARMED Disarmed = TppWasNotArmed;
    TppReadyPool(Timer->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    if (!TppIsClosed(&Timer->Object)) {
        Disarmed = TppStopTimer(Timer);
        Timer->WasSet = DueTime != NULL;
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

/* With the object's lock. */
static BOOLEAN TppIsTimerSet(PTP_TIMER Timer)
{
    return Timer->Source.Armed && (Timer->Period != 0 || !TppHasFired(&Timer->Source));
}

LOGICAL TpIsTimerSet(PTP_TIMER Timer)
{
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    BOOLEAN Set = TppIsTimerSet(Timer);
    KiExitLocked(&Timer->Object.Lock, Thread);
    return Set;
}

BOOLEAN TppHasTimerEnded(PTP_TIMER Timer)
{
    PKTHREAD Thread = KiEnterLocked(&Timer->Object.Lock);
    BOOLEAN Ended = Timer->WasSet && !TppIsTimerSet(Timer);
    KiExitLocked(&Timer->Object.Lock, Thread);
    return Ended;
}

VOID TpWaitForTimer(PTP_TIMER Timer, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Timer->Object, CancelPendingCallbacks != FALSE);
}

VOID TpReleaseTimer(PTP_TIMER Timer)
{
    TppClose(&Timer->Object);
}
