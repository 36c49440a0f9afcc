/*
 * tpwait.c: sources, which turn the signal of a kernel object into a callback, and waits.
 *
 * An armed source has one packet: linked to its kernel object, or in the queue, or removed by a worker that is about to
 * take the object's lock. Disarming withdraws a linked or queued packet. A removed one becomes stale, which its worker
 * detects under the lock; with several such workers any of them may drop the stale one. A packet has one hold, its
 * right to touch the object.
 *
 * A wait has two sources, the object and the timeout. The first whose packet is served ends the wait and disarms the
 * other. If the timeout is served first but the object was consumed by then, the wait has succeeded: no signal is lost.
 */
#include "tpp.h"

VOID TppArm(PTPP_SOURCE Source, PVOID KernelObject)
{
    PTPP_OBJECT Object = Source->Object;
    Source->Armed = TRUE;
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    KeRegisterObjectNotification(KernelObject, &Object->Pool->Queue, &Source->Notification);
}

TPP_DISARMED TppDisarm(PTPP_SOURCE Source)
{
    if (!Source->Armed) {
        return TppWasNotArmed;
    }
    Source->Armed = FALSE;
    KNOTIFICATION_CANCEL_RESULT Result = KeCancelObjectNotification(&Source->Notification, TRUE);
    if (Result == NotificationSignaled) {
        Source->Stale += 1;
        return TppHadFired;
    }
    /* Not the last hold: the caller has its own. */
    __atomic_fetch_sub(&Source->Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    return Result == NotificationCancelled ? TppWasWaiting : TppHadFired;
}

BOOLEAN TppHasFired(PTPP_SOURCE Source)
{
    /* relaxed: advisory only; a caller that acts on it disarms, which decides */
    return Source->Armed &&
           __atomic_load_n(&Source->Notification.WaitBlock.BlockState, __ATOMIC_RELAXED) != WaitBlockActive;
}

BOOLEAN TppArrive(PTPP_SOURCE Source, PULONG Result)
{
    PTPP_OBJECT Object = Source->Object;
    PVOID Dereference = NULL;
    BOOLEAN Begun = FALSE;
    PKTHREAD Thread = KiEnterLocked(&Object->Lock);
    if (Source->Stale != 0) {
        Source->Stale -= 1;
    } else {
        Source->Armed = FALSE;
        *Result = Object->Type->Arrive(Object, Source, &Dereference);
        Begun = Object->Priority != TP_CALLBACK_PRIORITY_LOW || !TppHasBacklog(Object->Pool);
        if (Begun) {
            __atomic_fetch_add(&Object->State, TPP_RUNNING_ONE, __ATOMIC_ACQ_REL);
        } else {
            Object->PendingTimeouts += *Result == STATUS_TIMEOUT;
            TppAddPending(Object);
        }
    }
    KiExitLocked(&Object->Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    TppDropHold(Object); /* the packet's */
    return Begun;
}

/* In a forked child: stale packets are lost with their threads, and one that counts is queued again. */
VOID TppRepairSource(PTPP_SOURCE Source)
{
    Source->Stale = 0;
    if (Source->Armed) {
        __atomic_fetch_add(&Source->Object->State, TPP_HOLD_ONE, __ATOMIC_RELAXED); /* relaxed: see TppRepairObject */
    }
    if (TppHasFired(Source) && Source->Notification.QueueListEntry.Flink == NULL) {
        KeInsertQueue(&Source->Object->Pool->Queue, &Source->Notification.QueueListEntry);
    }
}

/* Waits. */

static VOID TppExecuteWait(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_WAIT Wait = CONTAINING_RECORD(Object, TP_WAIT, Object);
    ((PTP_WAIT_CALLBACK)Object->Callback)(Instance, Object->Context, Wait, Result);
}

/* With the object's lock, as the next. Signal first: an object that is already signaled beats a timeout of zero. */
static VOID TppStartWait(PTP_WAIT Wait, PLARGE_INTEGER Timeout)
{
    TppArm(&Wait->Signal, Wait->WaitObject);
    if (Timeout != NULL) {
        KeSetTimer(&Wait->Timer, *Timeout, NULL);
        TppArm(&Wait->Timeout, &Wait->Timer);
    }
}

/* Target: receives the object to dereference, or NULL. */
static TPP_DISARMED TppStopWait(PTP_WAIT Wait, PVOID *Target)
{
    KeCancelTimer(&Wait->Timer);
    TPP_DISARMED Signal = TppDisarm(&Wait->Signal);
    TPP_DISARMED Timeout = TppDisarm(&Wait->Timeout);
    *Target = Wait->Target;
    Wait->Target = NULL;
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
    PTP_WAIT Wait = CONTAINING_RECORD(Object, TP_WAIT, Object);
    PVOID Target = NULL;
    if (Disarm || TppHasFired(&Wait->Signal) || TppHasFired(&Wait->Timeout)) {
        TppStopWait(Wait, &Target);
    }
    return Target;
}

static ULONG TppWaitArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    PTP_WAIT Wait = CONTAINING_RECORD(Object, TP_WAIT, Object);
    ULONG Result = STATUS_WAIT_0;
    if (Source == &Wait->Signal) {
        KeCancelTimer(&Wait->Timer);
        TppDisarm(&Wait->Timeout);
    } else if (TppDisarm(&Wait->Signal) != TppHadFired) {
        Result = STATUS_TIMEOUT;
    }
    if (Wait->Repeats) {
        TppStartWait(Wait, Wait->TimesOut ? &Wait->Interval : NULL);
    } else {
        *Dereference = Wait->Target;
        Wait->Target = NULL;
    }
    return Result;
}

static VOID TppRepairWait(PTPP_OBJECT Object)
{
    PTP_WAIT Wait = CONTAINING_RECORD(Object, TP_WAIT, Object);
    TppRepairSource(&Wait->Signal);
    TppRepairSource(&Wait->Timeout);
}

static const TPP_TYPE TppWaitType = {
    .Size = sizeof(TP_WAIT),
    .UsesClock = TRUE,
    .Collect = TppCollectWait,
    .Arrive = TppWaitArrived,
    .Repair = TppRepairWait,
};

NTSTATUS TpAllocWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                     PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    KiEnterService(Thread);
    NTSTATUS Status = TppAllocate(&TppWaitType, TppExecuteWait, (PVOID)Callback, Context, CallbackEnviron, &Object);
    if (NT_SUCCESS(Status)) {
        PTP_WAIT Wait = Object;
        TppInitializeSource(&Wait->Signal, &Wait->Object);
        TppInitializeSource(&Wait->Timeout, &Wait->Object);
        KeInitializeTimerEx(&Wait->Timer, SynchronizationTimer);
        *WaitReturn = Wait;
        TppIntroduce(&Wait->Object, CallbackEnviron);
    }
    KiExitService(Thread);
    return Status;
}

BOOLEAN TppIsMutex(PVOID Target)
{
    return KI_TYPE(KiReadHeader(ObpDispatcherObject(Target))) == MutantObject;
}

static NTSTATUS TppReferenceTarget(HANDLE Handle, PVOID *Target)
{
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, UserMode, Target, NULL);
    if (NT_SUCCESS(Status) && TppIsMutex(*Target)) {
        ObDereferenceObject(*Target);
        Status = STATUS_THREADPOOL_HANDLE_EXCEPTION;
    }
    return Status;
}

BOOLEAN TppSetWaitTarget(PTP_WAIT Wait, PVOID Target, PLARGE_INTEGER Timeout)
{
    TPP_DISARMED Disarmed = TppWasNotArmed;
    PVOID Dereference = Target;
    PVOID WaitObject = Target != NULL ? ObpWaitObject(Target) : NULL; /* may call the host: not with the lock */
    TppReadyPool(Wait->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Wait->Object.Lock);
    if (!TppIsClosed(&Wait->Object)) {
        Disarmed = TppStopWait(Wait, &Dereference);
        Wait->Target = Target;
        Wait->WaitObject = WaitObject;
        if (Target != NULL) {
            TppStartWait(Wait, Timeout);
        }
    }
    KiExitLocked(&Wait->Object.Lock, Thread);
    if (Dereference != NULL) {
        ObDereferenceObject(Dereference);
    }
    return Disarmed == TppWasWaiting;
}

/* The documentation has a parameter for a mutex. */
static VOID TppRaiseHandleStatus(NTSTATUS Status)
{
    BOOLEAN IsMutex = Status == STATUS_THREADPOOL_HANDLE_EXCEPTION;
    EXCEPTION_RECORD Record = {
        .ExceptionCode = Status,
        .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
        .NumberParameters = IsMutex,
        .ExceptionInformation = {IsMutex ? (ULONG_PTR)STATUS_INVALID_PARAMETER_3 : 0},
    };
    RtlRaiseException(&Record);
}

LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = Reserved == NULL ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    LOGICAL Cancelled = FALSE;
    PVOID Target = NULL;
    KiEnterService(Thread);
    if (NT_SUCCESS(Status) && Handle != NULL) {
        Status = TppReferenceTarget(Handle, &Target);
    }
    if (NT_SUCCESS(Status)) {
        Cancelled = TppSetWaitTarget(Wait, Target, Timeout);
    }
    KiExitService(Thread);
    if (!NT_SUCCESS(Status)) {
        TppRaiseHandleStatus(Status);
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
    TppClose(&Wait->Object, TppProgram);
}
