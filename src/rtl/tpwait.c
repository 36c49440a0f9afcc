/*
 * tpwait.c: waits. Two sources, the object and the timeout; the first whose packet is taken out ends the wait, and
 * disarms the other. If the timeout comes first but the object has been consumed by then, the wait has succeeded: a
 * signal is never lost.
 */
#include "tpp.h"

#include "../nt/ntp.h"
#include "../nt/ntp.h"

static PTP_WAIT TppWaitOf(PTPP_OBJECT Object)
{
    return CONTAINING_RECORD(Object, TP_WAIT, Object);
}

static VOID TppExecuteWait(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    ((PTP_WAIT_CALLBACK)Object->Callback)(Instance, Object->Context, TppWaitOf(Object), Result);
}

/* With the object's lock, as all that follows. Returns what is no longer waited for. */
static PVOID TppReleaseTarget(PTP_WAIT Wait)
{
    PVOID Target = Wait->Target;
    Wait->Target = NULL;
    return Target;
}

static TPP_DISARMED TppStopWait(PTP_WAIT Wait)
{
    KeCancelTimer(&Wait->Timer);
    TPP_DISARMED Signal = TppDisarm(&Wait->Signal);
    TPP_DISARMED Timeout = TppDisarm(&Wait->Timeout);
    if (Signal == TppHadFired) {
        TppAddPending(&Wait->Object);
    } else if (Timeout == TppHadFired) {
        Wait->Object.PendingTimeouts += 1;
        TppAddPending(&Wait->Object);
        return TppHadFired;
    }
    return Signal;
}

static PVOID TppCollectWait(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    PTP_WAIT Wait = TppWaitOf(Object);
    if (!Disarm && !TppHasFired(&Wait->Signal) && !TppHasFired(&Wait->Timeout)) {
        return NULL;
    }
    TppStopWait(Wait);
    return TppReleaseTarget(Wait);
}

static ULONG TppWaitArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    PTP_WAIT Wait = TppWaitOf(Object);
    BOOLEAN TimedOut = Source == &Wait->Timeout;
    if (TimedOut) {
        TimedOut = TppDisarm(&Wait->Signal) != TppHadFired;
    } else {
        KeCancelTimer(&Wait->Timer);
        TppDisarm(&Wait->Timeout);
    }
    *Dereference = TppReleaseTarget(Wait);
    return TimedOut ? STATUS_TIMEOUT : STATUS_WAIT_0;
}

static VOID TppRepairWait(PTPP_OBJECT Object)
{
    PTP_WAIT Wait = TppWaitOf(Object);
    TppRepairSource(&Wait->Signal);
    TppRepairSource(&Wait->Timeout);
}

static const TPP_TYPE TppWaitType = {
    .Size = sizeof(TP_WAIT),
    .UsesClock = TRUE,
    .Execute = TppExecuteWait,
    .Collect = TppCollectWait,
    .Arrive = TppWaitArrived,
    .Repair = TppRepairWait,
};

static NTSTATUS TppAllocateWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                                PTP_CALLBACK_ENVIRON Environ)
{
    PVOID Object;
    NTSTATUS Status = TppAllocate(&TppWaitType, (PVOID)Callback, Context, Environ, &Object);
    if (NT_SUCCESS(Status)) {
        PTP_WAIT Wait = Object;
        TppInitializeSource(&Wait->Signal, &Wait->Object);
        TppInitializeSource(&Wait->Timeout, &Wait->Object);
        KeInitializeTimerEx(&Wait->Timer, SynchronizationTimer);
        *WaitReturn = Wait;
        TppIntroduce(&Wait->Object, Environ);
    }
    return Status;
}

NTSTATUS TpAllocWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return NTP_SERVICE(TppAllocateWait(WaitReturn, Callback, Context, CallbackEnviron));
}

NTSTATUS TppReferenceTarget(HANDLE Handle, PVOID *Target)
{
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, UserMode, Target, NULL);
    if (NT_SUCCESS(Status) && KI_TYPE(KiReadHeader(ObpDispatcherObject(*Target))) == MutantObject) {
        ObDereferenceObject(*Target);
        Status = STATUS_THREADPOOL_HANDLE_EXCEPTION;
    }
    return Status;
}

/* The object first: if it is signaled now, a timeout of zero comes too late. */
static VOID TppStartWait(PTP_WAIT Wait, PVOID WaitObject, PLARGE_INTEGER Timeout)
{
    TppArm(&Wait->Signal, WaitObject);
    if (Timeout != NULL) {
        KeSetTimer(&Wait->Timer, *Timeout, NULL);
        TppArm(&Wait->Timeout, &Wait->Timer);
    }
}

BOOLEAN TppSetWaitTarget(PTP_WAIT Wait, PVOID Target, PLARGE_INTEGER Timeout)
{
    TPP_DISARMED Disarmed = TppWasNotArmed;
    PVOID Dereference = Target;
    PVOID WaitObject = Target != NULL ? ObpWaitObject(Target) : NULL;
    TppReadyPool(Wait->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Wait->Object.Lock);
    if (!TppIsClosed(&Wait->Object)) {
        Disarmed = TppStopWait(Wait);
        Dereference = TppReleaseTarget(Wait);
        if (Target != NULL) {
            Wait->Target = Target;
            TppStartWait(Wait, WaitObject, Timeout);
        }
    }
    KiExitLocked(&Wait->Object.Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    return Disarmed == TppWasWaiting;
}

static NTSTATUS TppSetWait(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, LOGICAL *Cancelled)
{
    PVOID Target = NULL;
    NTSTATUS Status = Handle != NULL ? TppReferenceTarget(Handle, &Target) : STATUS_SUCCESS;
    if (NT_SUCCESS(Status)) {
        *Cancelled = TppSetWaitTarget(Wait, Target, Timeout);
    }
    return Status;
}

LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved)
{
    LOGICAL Cancelled = FALSE;
    NTSTATUS Status =
        Reserved == NULL ? NTP_SERVICE(TppSetWait(Wait, Handle, Timeout, &Cancelled)) : STATUS_INVALID_PARAMETER;
    if (!NT_SUCCESS(Status)) {
        RtlRaiseStatus(Status);
    }
    return Cancelled;
}

VOID TpSetWait(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout)
{
    TpSetWaitEx(Wait, Handle, Timeout, NULL);
}

VOID TpWaitForWait(PTP_WAIT Wait, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Wait->Object, CancelPendingCallbacks != FALSE);
}

VOID TpReleaseWait(PTP_WAIT Wait)
{
    TppClose(&Wait->Object);
}
