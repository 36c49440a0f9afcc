/*
 * tpio.c: I/O objects. What can be bound to one is a descriptor object (interlock/descriptor.h): starting an operation
 * asks to be told, once, when the descriptor is ready.
 *
 * A descriptor stays ready until somebody reads or writes. So the operations of an object are served one after the
 * other: the source is armed for the next when the callback of the one before has returned. Busy, under the object's
 * lock: the source is armed, or a callback is pending or runs that will look at Started when it returns.
 */
#include "tpp.h"

#include "../io/watch.h"
#include "../nt/ntp.h"
#include "../nt/ntp.h"

static PTP_IO TppIoOf(PTPP_OBJECT Object)
{
    return CONTAINING_RECORD(Object, TP_IO, Object);
}

/* Serves the next operation, if there is one and none is being served. */
static VOID TppStartNextIo(PTP_IO Io)
{
    PVOID WaitObject = ObpWaitObject(Io->Target);
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    if (Io->Started != 0 && !Io->Busy && !TppIsClosed(&Io->Object)) {
        Io->Busy = TRUE;
        TppArm(&Io->Source, WaitObject);
    }
    KiExitLocked(&Io->Object.Lock, Thread);
}

static VOID TppClearBusy(PTP_IO Io)
{
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    Io->Busy = FALSE;
    KiExitLocked(&Io->Object.Lock, Thread);
}

static VOID TppExecuteIo(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_IO Io = TppIoOf(Object);
    IO_STATUS_BLOCK IoStatusBlock = {.Status = STATUS_SUCCESS};
    UNREFERENCED_PARAMETER(Result);
    ((PTP_IO_CALLBACK)Object->Callback)(Instance, Object->Context, NULL, &IoStatusBlock, Io);
}

static VOID TppIoExecuted(PTPP_OBJECT Object)
{
    TppClearBusy(TppIoOf(Object));
    TppStartNextIo(TppIoOf(Object));
}

/* With the object's lock. */
static VOID TppStopIo(PTP_IO Io)
{
    TPP_DISARMED Disarmed = TppDisarm(&Io->Source);
    if (Disarmed == TppHadFired) {
        Io->Started -= 1;
        TppAddPending(&Io->Object);
    } else if (Disarmed == TppWasWaiting) {
        Io->Busy = FALSE;
    }
}

static PVOID TppCollectIo(PTPP_OBJECT Object, BOOLEAN Disarm)
{
    PTP_IO Io = TppIoOf(Object);
    if (Disarm || TppHasFired(&Io->Source)) {
        TppStopIo(Io);
    }
    return NULL;
}

static ULONG TppIoArrived(PTPP_OBJECT Object, PTPP_SOURCE Source, PVOID *Dereference)
{
    UNREFERENCED_PARAMETER(Source);
    UNREFERENCED_PARAMETER(Dereference);
    TppIoOf(Object)->Started -= 1;
    return STATUS_WAIT_0;
}

static VOID TppRepairIo(PTPP_OBJECT Object)
{
    TppRepairSource(&TppIoOf(Object)->Source);
}

static VOID TppDestroyIo(PVOID Target)
{
    ObDereferenceObject(Target);
}

static const TPP_TYPE TppIoType = {
    .Size = sizeof(TP_IO),
    .Execute = TppExecuteIo,
    .Executed = TppIoExecuted,
    .Collect = TppCollectIo,
    .Arrive = TppIoArrived,
    .Repair = TppRepairIo,
};

static NTSTATUS TppAllocateIo(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    PVOID Target;
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(File, SYNCHRONIZE, &IopDescriptorType, UserMode, &Target, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = TppAllocate(&TppIoType, (PVOID)Callback, Context, CallbackEnviron, &Object);
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Target);
        return Status;
    }
    PTP_IO Io = Object;
    TppInitializeSource(&Io->Source, &Io->Object);
    Io->Target = Target;
    Io->Object.Destroy = TppDestroyIo;
    Io->Object.DestroyContext = Target;
    *IoReturn = Io;
    TppIntroduce(&Io->Object, CallbackEnviron);
    return Status;
}

NTSTATUS TpAllocIoCompletion(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                             PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    return NTP_SERVICE(TppAllocateIo(IoReturn, File, Callback, Context, CallbackEnviron));
}

VOID TpStartAsyncIoOperation(PTP_IO Io)
{
    TppReadyPool(Io->Object.Pool);
    PKTHREAD Thread = KiEnterLocked(&Io->Object.Lock);
    Io->Started += 1;
    KiExitLocked(&Io->Object.Lock, Thread);
    TppStartNextIo(Io);
}

/* The operation that was announced has failed, there will be nothing to tell about it. */
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
    /* The callback that would have gone on with the next operation may have been cancelled. */
    if (!Io->Source.Armed && TppIsIdle(__atomic_load_n(&Io->Object.State, __ATOMIC_RELAXED))) {
        Io->Busy = FALSE;
    }
    KiExitLocked(&Io->Object.Lock, Thread);
    TppStartNextIo(Io);
}

VOID TpReleaseIoCompletion(PTP_IO Io)
{
    TppClose(&Io->Object);
}
