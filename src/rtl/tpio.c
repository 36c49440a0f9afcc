/*
 * tpio.c: I/O objects. They bind to descriptor objects (interlock/io.h): each operation that is started has one
 * callback, when the descriptor is ready.
 *
 * A descriptor stays ready until it is read or written. So the operations of an object are served one at a time: the
 * source is armed for the next when the callback of the previous one has returned. Busy, under the object's lock: the
 * source is armed, or a callback is pending or running that arms it when it returns.
 *
 * A bound callback (BindIoCompletionCallback) is an internal object. Its operations follow one another until the last
 * handle of the descriptor object is closed, or the descriptor is lost.
 */
#include "tpp.h"

#include "../io/watch.h"

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
        TppAddPending(Object);
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
