/*
 * cancel.c: cancelling a request, and cancel-safe queues.
 *
 * Ownership of a packet. Two threads may want to end a packet that a driver keeps: the one that has the result, and the
 * one that cancels. The word CancelRoutine decides between them:
 *
 *                       IoSetCancelRoutine(Irp, Routine)
 *     NULL: the driver  ------------------------------->  Routine: no owner yet
 *     owns the packet   <-------------------------------     |
 *                       IoSetCancelRoutine(Irp, NULL)        | IoCancelIrp exchanges it for NULL
 *                       returns Routine                      v
 *                                                         NULL: the cancel routine owns the packet
 *
 * 1. Every change is an exchange, and the thread that removes Routine from the word owns the packet and completes it. A
 *    driver that gets NULL for a routine that it has set must leave the packet to that routine, and not access it once
 *    the routine can complete it: that is, once the locks are released under which the packet was found.
 * 2. IoCancelIrp sets Cancel before it exchanges the word, and a driver that sets a routine checks Cancel afterwards.
 *    So one of the two notices: either the exchange finds the routine, or the driver finds Cancel and removes its
 *    routine again, unless the exchange was faster. Both the store and the load are ordered with the exchanges on the
 *    word: sequentially consistent. A driver that does not check strands a request that was cancelled before.
 * 3. The cancel routine is called with the cancel spinlock held, which it releases at Irp->CancelIrql. From then on
 *    only rule 1 protects the packet. The lock exists so that a driver that uses StartIo can read the device's
 *    CurrentIrp and its queue in one step.
 * 4. IoCancelIrp does not own the packet. Its caller knows that the packet is not freed meanwhile: it is on the list of the
 *    caller's thread at APC_LEVEL, or the caller's completion routine keeps it.
 *
 * A cancel-safe queue is requirement 1 and 2 under the driver's own lock. The packet is in the queue while the word has
 * IopCsqCancel, and when that was exchanged until the routine has the lock. DriverContext[3] is the queue or the context.
 */
#include "iop.h"

#include "../ke/prcb.h"

VOID IoAcquireCancelSpinLock(PKIRQL Irql)
{
    *Irql = KeAcquireQueuedSpinLock(LockQueueIoCancelLock);
}

VOID IoReleaseCancelSpinLock(KIRQL Irql)
{
    KeReleaseQueuedSpinLock(LockQueueIoCancelLock, Irql);
}

/* On the processor of a thread at DISPATCH_LEVEL; below that no thread can hold it. */
static BOOLEAN IopHoldsCancelLock(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    return Thread->Irql >= DISPATCH_LEVEL &&
           ((ULONG_PTR)Thread->Prcb->LockQueue[LockQueueIoCancelLock].Lock & LOCK_QUEUE_OWNER) != 0;
}

/* IRQL_UNEXPECTED_VALUE: the levels as documented, the routine, the device. */
static VOID IopCheckCancelReturn(PDRIVER_CANCEL Routine, PDEVICE_OBJECT Device, KIRQL Irql)
{
    if (KeGetCurrentIrql() != Irql || IopHoldsCancelLock()) {
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)KeGetCurrentIrql() << 16 | (ULONG_PTR)Irql << 8,
                     (ULONG_PTR)Routine, (ULONG_PTR)Device, 0);
    }
}

VOID IopCallCancelRoutine(PDRIVER_CANCEL Routine, PDEVICE_OBJECT Device, PIRP Irp, KIRQL Irql,
                          const KI_CALLBACK *Callback)
{
    Irp->CancelIrql = Irql;
    Routine(Device, Irp);
    IopCheckCancelReturn(Routine, Device, Irql);
    KiEndCallback(KiCurrentThread(), Callback, KiCallbackCancel, (PVOID)Routine);
}

BOOLEAN IoCancelIrp(PIRP Irp)
{
    KI_CALLBACK Callback;
    KIRQL Irql;
    KiBeginCallback(KiCurrentThread(), &Callback);
    IoAcquireCancelSpinLock(&Irql);
    /* requirement 2: this store and the exchange pair with the exchange of IoSetCancelRoutine and the load behind it */
    __atomic_store_n(&Irp->Cancel, TRUE, __ATOMIC_SEQ_CST);
    PDRIVER_CANCEL Routine = __atomic_exchange_n(&Irp->CancelRoutine, NULL, __ATOMIC_SEQ_CST);
    if (Routine == NULL) {
        IoReleaseCancelSpinLock(Irql);
        return FALSE;
    }
    if (Irp->CurrentLocation > Irp->StackCount) {
        KeBugCheckEx(CANCEL_STATE_IN_COMPLETED_IRP, (ULONG_PTR)Irp, (ULONG_PTR)Routine, 0, 0);
    }
    IopCallCancelRoutine(Routine, IoGetCurrentIrpStackLocation(Irp)->DeviceObject, Irp, Irql, &Callback);
    return TRUE;
}

/* Cancel-safe queues. */

#define IOP_CSQ_SLOT 3

static NTSTATUS IopInitializeCsq(PIO_CSQ Csq, ULONG Type, PIO_CSQ_REMOVE_IRP Remove, PIO_CSQ_PEEK_NEXT_IRP Peek,
                                 PIO_CSQ_ACQUIRE_LOCK Acquire, PIO_CSQ_RELEASE_LOCK Release,
                                 PIO_CSQ_COMPLETE_CANCELED_IRP Complete)
{
    *Csq = (IO_CSQ){.Type = Type,
                    .CsqRemoveIrp = Remove,
                    .CsqPeekNextIrp = Peek,
                    .CsqAcquireLock = Acquire,
                    .CsqReleaseLock = Release,
                    .CsqCompleteCanceledIrp = Complete};
    return STATUS_SUCCESS;
}

NTSTATUS IoCsqInitialize(PIO_CSQ Csq, PIO_CSQ_INSERT_IRP CsqInsertIrp, PIO_CSQ_REMOVE_IRP CsqRemoveIrp,
                         PIO_CSQ_PEEK_NEXT_IRP CsqPeekNextIrp, PIO_CSQ_ACQUIRE_LOCK CsqAcquireLock,
                         PIO_CSQ_RELEASE_LOCK CsqReleaseLock, PIO_CSQ_COMPLETE_CANCELED_IRP CsqCompleteCanceledIrp)
{
    NTSTATUS Status = IopInitializeCsq(Csq, IO_TYPE_CSQ, CsqRemoveIrp, CsqPeekNextIrp, CsqAcquireLock, CsqReleaseLock,
                                       CsqCompleteCanceledIrp);
    Csq->CsqInsertIrp = CsqInsertIrp;
    return Status;
}

NTSTATUS IoCsqInitializeEx(PIO_CSQ Csq, PIO_CSQ_INSERT_IRP_EX CsqInsertIrp, PIO_CSQ_REMOVE_IRP CsqRemoveIrp,
                           PIO_CSQ_PEEK_NEXT_IRP CsqPeekNextIrp, PIO_CSQ_ACQUIRE_LOCK CsqAcquireLock,
                           PIO_CSQ_RELEASE_LOCK CsqReleaseLock, PIO_CSQ_COMPLETE_CANCELED_IRP CsqCompleteCanceledIrp)
{
    NTSTATUS Status = IopInitializeCsq(Csq, IO_TYPE_CSQ_EX, CsqRemoveIrp, CsqPeekNextIrp, CsqAcquireLock,
                                       CsqReleaseLock, CsqCompleteCanceledIrp);
    Csq->CsqInsertIrp = (PIO_CSQ_INSERT_IRP)(PVOID)CsqInsertIrp;
    return Status;
}

/* With the queue's lock held: the packet leaves the queue. */
static VOID IopLeaveCsq(PIO_CSQ Csq, PIRP Irp)
{
    PIO_CSQ_IRP_CONTEXT Context = Irp->Tail.Overlay.DriverContext[IOP_CSQ_SLOT];
    Csq->CsqRemoveIrp(Csq, Irp);
    if (Context->Type == IO_TYPE_CSQ_IRP_CONTEXT) {
        Context->Irp = NULL;
    }
    Irp->Tail.Overlay.DriverContext[IOP_CSQ_SLOT] = NULL;
}

static VOID IopCsqCancel(PDEVICE_OBJECT Device, PIRP Irp)
{
    PVOID Slot = Irp->Tail.Overlay.DriverContext[IOP_CSQ_SLOT];
    PIO_CSQ_IRP_CONTEXT Context = Slot;
    PIO_CSQ Csq = Context->Type == IO_TYPE_CSQ_IRP_CONTEXT ? Context->Csq : Slot;
    KIRQL Irql;
    UNREFERENCED_PARAMETER(Device);
    IoReleaseCancelSpinLock(Irp->CancelIrql);
    Csq->CsqAcquireLock(Csq, &Irql);
    IopLeaveCsq(Csq, Irp);
    Csq->CsqReleaseLock(Csq, Irql);
    Csq->CsqCompleteCanceledIrp(Csq, Irp);
}

static NTSTATUS IopInsertIntoCsq(PIO_CSQ Csq, PIRP Irp, PVOID InsertContext)
{
    if (Csq->Type == IO_TYPE_CSQ_EX) {
        return ((PIO_CSQ_INSERT_IRP_EX)(PVOID)Csq->CsqInsertIrp)(Csq, Irp, InsertContext);
    }
    Csq->CsqInsertIrp(Csq, Irp);
    return STATUS_SUCCESS;
}

NTSTATUS IoCsqInsertIrpEx(PIO_CSQ Csq, PIRP Irp, PIO_CSQ_IRP_CONTEXT Context, PVOID InsertContext)
{
    BOOLEAN Cancelled = FALSE;
    KIRQL Irql;
    if (Context != NULL) {
        *Context = (IO_CSQ_IRP_CONTEXT){IO_TYPE_CSQ_IRP_CONTEXT, Irp, Csq};
    }
    Irp->Tail.Overlay.DriverContext[IOP_CSQ_SLOT] = Context != NULL ? (PVOID)Context : Csq;
    Csq->CsqAcquireLock(Csq, &Irql);
    NTSTATUS Status = IopInsertIntoCsq(Csq, Irp, InsertContext);
    if (NT_SUCCESS(Status)) {
        IoMarkIrpPending(Irp);
        IoSetCancelRoutine(Irp, IopCsqCancel);
        /* seq_cst, requirement 2: pairs with the store in IoCancelIrp */
        Cancelled = __atomic_load_n(&Irp->Cancel, __ATOMIC_SEQ_CST) && IoSetCancelRoutine(Irp, NULL) != NULL;
        if (Cancelled) {
            IopLeaveCsq(Csq, Irp);
        }
    } else if (Context != NULL) {
        Context->Irp = NULL;
    }
    Csq->CsqReleaseLock(Csq, Irql);
    if (Cancelled) {
        Csq->CsqCompleteCanceledIrp(Csq, Irp);
    }
    return Status;
}

VOID IoCsqInsertIrp(PIO_CSQ Csq, PIRP Irp, PIO_CSQ_IRP_CONTEXT Context)
{
    IoCsqInsertIrpEx(Csq, Irp, Context, NULL);
}

PIRP IoCsqRemoveIrp(PIO_CSQ Csq, PIO_CSQ_IRP_CONTEXT Context)
{
    KIRQL Irql;
    Csq->CsqAcquireLock(Csq, &Irql);
    PIRP Irp = Context->Irp;
    if (Irp != NULL && IoSetCancelRoutine(Irp, NULL) == NULL) {
        Irp = NULL; /* requirement 1: it is being cancelled */
    }
    if (Irp != NULL) {
        IopLeaveCsq(Csq, Irp);
    }
    Csq->CsqReleaseLock(Csq, Irql);
    return Irp;
}

PIRP IoCsqRemoveNextIrp(PIO_CSQ Csq, PVOID PeekContext)
{
    KIRQL Irql;
    Csq->CsqAcquireLock(Csq, &Irql);
    PIRP Irp = Csq->CsqPeekNextIrp(Csq, NULL, PeekContext);
    while (Irp != NULL && IoSetCancelRoutine(Irp, NULL) == NULL) {
        Irp = Csq->CsqPeekNextIrp(Csq, Irp, PeekContext); /* requirement 1 */
    }
    if (Irp != NULL) {
        IopLeaveCsq(Csq, Irp);
    }
    Csq->CsqReleaseLock(Csq, Irql);
    return Irp;
}
