/*
 * tpwait.c: sources, which turn the signal of a kernel object into a callback: waits, timers, and I/O objects.
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

#include "../io/watch.h"

static VOID TppArm(PTPP_SOURCE Source, PVOID KernelObject)
{
    PTPP_OBJECT Object = Source->Object;
    Source->Armed = TRUE;
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    KeRegisterObjectNotification(KernelObject, &Object->Pool->Queue, &Source->Notification);
}

static TPP_DISARMED TppDisarm(PTPP_SOURCE Source)
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
    /* This is not the last hold: the caller has its own. */
    __atomic_fetch_sub(&Source->Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    return Result == NotificationCancelled ? TppWasWaiting : TppHadFired;
}

static BOOLEAN TppHasFired(PTPP_SOURCE Source)
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
            TppAddPending(Object, FALSE);
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
static VOID TppRepairSource(PTPP_SOURCE Source)
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
        TppAddPending(&Wait->Object, FALSE);
    } else if (Timeout == TppHadFired) {
        Wait->Object.PendingTimeouts += 1;
        TppAddPending(&Wait->Object, FALSE);
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

LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = Reserved == NULL ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    LOGICAL Cancelled = FALSE;
    PVOID Target = NULL;
    KiEnterService(Thread);
    if (NT_SUCCESS(Status) && Handle != NULL) {
        Status = ObReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, UserMode, &Target, NULL);
    }
    BOOLEAN IsMutex = Target != NULL && TppIsMutex(Target);
    if (IsMutex) {
        ObDereferenceObject(Target);
        Status = STATUS_THREADPOOL_HANDLE_EXCEPTION;
    } else if (NT_SUCCESS(Status)) {
        Cancelled = TppSetWaitTarget(Wait, Target, Timeout);
    }
    KiExitService(Thread);
    if (!NT_SUCCESS(Status)) {
        /* The documentation has a parameter for a mutex. */
        RtlRaiseException(&(EXCEPTION_RECORD){
            .ExceptionCode = Status,
            .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
            .NumberParameters = IsMutex,
            .ExceptionInformation = {IsMutex ? (ULONG_PTR)STATUS_INVALID_PARAMETER_3 : 0},
        });
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

/*
 * Timers. Each is a timer of the kernel that adds a pending callback whenever it expires: each elapsed
 * period of a timer begins a callback, whether or not the previous ones have ended.
 */

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
    PTP_POOL Pool = Object->Pool;
    UNREFERENCED_PARAMETER(SystemTime);
    if (TppIsPoolReady(Pool)) {
        TppAddPending(Object, FALSE);
        return;
    }
    /* The lock excludes TppAdoptPool: it would find a task that is linked but not queued yet, and queue it a second time. */
    KiAcquireLock(&Pool->Lock);
    /* relaxed: advisory only; a callback that ends at this moment is one of those that count as one */
    if (TppIsPoolReady(Pool) || TppIsIdle(__atomic_load_n(&Object->State, __ATOMIC_RELAXED))) {
        TppAddPending(Object, TRUE);
    }
    KiReleaseLock(&Pool->Lock);
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

/*
 * I/O objects. They bind to descriptor objects (interlock/io.h): each operation that is started has one
 * callback, when the descriptor is ready.
 *
 * A descriptor stays ready until it is read or written. So the operations of an object are served one at a time: the
 * source is armed for the next when the callback of the previous one has returned. Busy, under the object's lock: the
 * source is armed, or a callback is pending or running that arms it when it returns.
 *
 * A bound callback (BindIoCompletionCallback) is an internal object. Its operations follow one another until the last
 * handle of the descriptor object is closed, or the descriptor is lost.
 */

/* Adds operations; Ended: the callback of the one being served has ended. Then serves the next, if there is one. */
static VOID TppServeNextIo(PTP_IO Io, ULONG Operations, BOOLEAN Ended)
{
    PVOID WaitObject = ObpWaitObject(Io->Target);
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    Io->Started += Operations;
    Io->Busy = Io->Busy && !Ended;
    if (Io->Started != 0 && !Io->Busy && !TppIsClosed(&Io->Object)) {
        Io->Busy = TRUE;
        TppArm(&Io->Source, WaitObject);
    }
    KiExitLocked(&Io->Object.Lock, Thread);
}

static VOID TppExecuteIo(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_IO Io = CONTAINING_RECORD(Object, TP_IO, Object);
    IO_STATUS_BLOCK IoStatusBlock = {.Status = STATUS_SUCCESS};
    UNREFERENCED_PARAMETER(Result);
    ((PTP_IO_CALLBACK)Object->Callback)(Instance, Object->Context, NULL, &IoStatusBlock, Io);
}

static VOID TppIoExecuted(PTPP_OBJECT Object)
{
    PTP_IO Io = CONTAINING_RECORD(Object, TP_IO, Object);
    TppServeNextIo(Io, Io->Bound && !IopIsDescriptorLost(Io->Target), TRUE);
}

static PVOID TppCollectIo(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    PTP_IO Io = CONTAINING_RECORD(Object, TP_IO, Object);
    TPP_DISARMED Disarmed = Disarm || TppHasFired(&Io->Source) ? TppDisarm(&Io->Source) : TppWasNotArmed;
    if (Disarmed == TppHadFired) {
        Io->Started -= 1;
        TppAddPending(Object, FALSE);
    } else if (Disarmed == TppWasWaiting) {
        Io->Busy = FALSE;
    }
    return NULL;
}

static ULONG TppIoArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    UNREFERENCED_PARAMETER(Source);
    UNREFERENCED_PARAMETER(Dereference);
    CONTAINING_RECORD(Object, TP_IO, Object)->Started -= 1;
    return STATUS_WAIT_0;
}

static VOID TppRepairIo(PTPP_OBJECT Object)
{
    TppRepairSource(&CONTAINING_RECORD(Object, TP_IO, Object)->Source);
}

static VOID TppDestroyIo(PVOID Target)
{
    ObDereferenceObject(Target);
}

static const TPP_TYPE TppIoType = {
    .Size = sizeof(TP_IO),
    .Executed = TppIoExecuted,
    .Collect = TppCollectIo,
    .Arrive = TppIoArrived,
    .Repair = TppRepairIo,
};

NTSTATUS TppAllocateIo(PTP_IO *IoReturn, HANDLE File, TPP_EXECUTE *Execute, PVOID Callback, PVOID Context,
                       PTP_CALLBACK_ENVIRON Environ)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Target = NULL;
    PVOID Object;
    KiEnterService(Thread);
    NTSTATUS Status = ObReferenceObjectByHandle(File, SYNCHRONIZE, &IopDescriptorType, UserMode, &Target, NULL);
    if (NT_SUCCESS(Status)) {
        Status = TppAllocate(&TppIoType, Execute, Callback, Context, Environ, &Object);
        if (!NT_SUCCESS(Status)) {
            ObDereferenceObject(Target);
        }
    }
    if (NT_SUCCESS(Status)) {
        PTP_IO Io = Object;
        TppInitializeSource(&Io->Source, &Io->Object);
        Io->Target = Target;
        Io->Object.Destroy = TppDestroyIo;
        Io->Object.DestroyContext = Target;
        *IoReturn = Io;
        TppIntroduce(&Io->Object, Environ);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS TpAllocIoCompletion(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                             PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return TppAllocateIo(IoReturn, File, TppExecuteIo, (PVOID)Callback, Context, CallbackEnviron);
}

static VOID TppUnbindIo(PVOID Binding)
{
    TppClose(&((PTP_IO)Binding)->Object, TppProgram);
}

NTSTATUS TppBindIo(HANDLE File, TPP_EXECUTE *Execute, PVOID Callback)
{
    PKTHREAD Thread = KiCurrentThread();
    PTP_IO Io;
    KiEnterService(Thread);
    NTSTATUS Status = TppAllocateIo(&Io, File, Execute, Callback, NULL, NULL);
    if (NT_SUCCESS(Status)) {
        TppTryHold(&Io->Object); /* cannot fail: the object is open. Once bound, it may be closed */
        Io->Bound = TRUE;
        Status = IopBindDescriptor(Io->Target, Io, TppUnbindIo);
        if (NT_SUCCESS(Status)) {
            TpStartAsyncIoOperation(Io);
        } else {
            TpReleaseIoCompletion(Io);
        }
        TppDropHold(&Io->Object);
    }
    KiExitService(Thread);
    return Status;
}

VOID TpStartAsyncIoOperation(PTP_IO Io)
{
    TppReadyPool(Io->Object.Pool);
    TppServeNextIo(Io, 1, FALSE);
}

/* The operation that was announced has failed and will have no callback. */
VOID TpCancelAsyncIoOperation(PTP_IO Io)
{
    TppEnterPool(Io->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    if (Io->Started != 0) {
        Io->Started -= 1;
        if (Io->Started == 0 && TppDisarm(&Io->Source) != TppWasNotArmed) {
            Io->Busy = FALSE;
        }
    }
    KiExitLocked(&Io->Object.Lock, Thread);
}

VOID TpWaitForIoCompletion(PTP_IO Io, LOGICAL CancelPendingCallbacks)
{
    TppWaitForCallbacks(&Io->Object, CancelPendingCallbacks != FALSE);
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    /* The callback that would have armed the source for the next operation may have been cancelled. */
    BOOLEAN Ended = !Io->Source.Armed && TppIsIdle(__atomic_load_n(&Io->Object.State, __ATOMIC_RELAXED));
    Io->Busy = Io->Busy && !Ended;
    KiExitLocked(&Io->Object.Lock, Thread);
    TppServeNextIo(Io, 0, FALSE);
}

VOID TpReleaseIoCompletion(PTP_IO Io)
{
    TppClose(&Io->Object, TppProgram);
}
