/*
 * complete.c: sends requests down and completes them upwards.
 *
 * Down: IofCallDriver gives the next stack location to a driver and calls its dispatch routine. Up: IofCompleteRequest
 * leaves the location, calls the completion routine in it, which belongs to the driver above, and so on to the top.
 *
 *     creator          driver A          driver B
 *        |--IoCallDriver->|                 |
 *        |                |--IoCallDriver-->|
 *        |                |                 | IoCompleteRequest: B's location is done
 *        |                |<- A's routine --|   STATUS_MORE_PROCESSING_REQUIRED: the packet is A's again
 *        |<-- delivery ---|                 | otherwise A's location is done, too
 *
 * 1. A location is completed once. What its driver must return is recorded in the IOP_CALL of its dispatch routine if
 *    that still runs on this thread; otherwise the driver has returned, or will return, while another thread completes,
 *    and the location must be marked pending. So neither side reads a packet that the other one may have freed.
 * 2. PendingReturned is the mark of the location below. It is propagated upwards: by the I/O manager if there is no
 *    completion routine to call, by that routine otherwise.
 * 3. A request of a thread is delivered on that thread, by a special kernel APC: only there may its buffers, status block and
 *    event be touched, since a caller's frame on its stack may have them. It is on the thread's IrpList until then, with a
 *    reference on the thread. So at APC_LEVEL the thread may use each packet of its list: none of them is freed meanwhile.
 * 4. A request that fails before it was pended is not delivered: no status, no event. Its sender got the status from IoCallDriver.
 * 5. The thread has ended: nothing is delivered, the packet is freed.
 */
#include "iop.h"

#define IOP_EXIT_PATIENCE 300 /* seconds that a thread's end waits for its cancelled requests */
#define IOP_COMPLETION_IRQL 0xfa

/* Calls. */

/* The one place that calls a driver's dispatch routine. */
static NTSTATUS IopDispatch(PKTHREAD Thread, PDRIVER_DISPATCH Routine, PDEVICE_OBJECT Device, PIRP Irp)
{
    KIRQL Irql = KeGetCurrentIrql();
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    NTSTATUS Status = Routine(Device, Irp);
    if (KeGetCurrentIrql() != Irql) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_DISPATCH_CHANGED_IRQL, (ULONG_PTR)Device, Irql,
                     KeGetCurrentIrql());
    }
    KiEndCallback(Thread, &Callback, KiCallbackDispatch, (PVOID)Routine);
    return Status;
}

static VOID IopCheckReturn(const IOP_CALL *Call, NTSTATUS Status, PDRIVER_DISPATCH Routine, PDEVICE_OBJECT Device)
{
    ULONG Kind = 0;
    if (Call->Completed && Call->Marked != (Status == STATUS_PENDING)) {
        Kind = Call->Marked ? IOP_MARKED_NOT_RETURNED : IOP_NOT_MARKED;
    } else if (!Call->Completed && Status != STATUS_PENDING) {
        Kind = IOP_FORGOTTEN;
    } else if (Call->Completed && Status != STATUS_PENDING && Status != Call->Status) {
        Kind = IOP_STATUS_DIFFERS;
    }
    if (Kind != 0) {
        IopStop(Kind, (PVOID)Routine, Call->Irp, Device);
    }
}

static VOID IopCheckCall(PDEVICE_OBJECT Device, PIRP Irp)
{
    if (Irp == NULL || Irp->Type != IO_TYPE_IRP) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_SENT_NO_IRP, (ULONG_PTR)Irp, 0, 0);
    }
    if (Device == NULL || Device->Type != IO_TYPE_DEVICE) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_SENT_TO_NO_DEVICE, (ULONG_PTR)Device, 0, 0);
    }
    if (KeGetCurrentIrql() > DISPATCH_LEVEL) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_SENT_ABOVE_DISPATCH, KeGetCurrentIrql(), 0, 0);
    }
    /* relaxed: the sender owns the packet; one that another thread sets now is a bug as well */
    PDRIVER_CANCEL CancelRoutine = __atomic_load_n(&Irp->CancelRoutine, __ATOMIC_RELAXED);
    if (CancelRoutine != NULL) {
        IopStop(IOP_SENT_CANCELABLE, (PVOID)CancelRoutine, Irp, Device);
    }
    if (Irp->CurrentLocation <= 1) {
        KeBugCheckEx(NO_MORE_IRP_STACK_LOCATIONS, (ULONG_PTR)Irp, 0, 0, 0);
    }
    if (IoGetNextIrpStackLocation(Irp)->MajorFunction > IRP_MJ_MAXIMUM_FUNCTION) {
        KeBugCheckEx(INCONSISTENT_IRP, (ULONG_PTR)Irp, 0, 0, 0);
    }
}

NTSTATUS IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PKTHREAD Thread = KiCurrentThread();
    IopCheckCall(DeviceObject, Irp);
    if (Irp->Reserved == 0) {
        Irp->Reserved = (UCHAR)Irp->CurrentLocation;
    }
    IoSetNextIrpStackLocation(Irp);
    PIO_STACK_LOCATION Location = IoGetCurrentIrpStackLocation(Irp);
    Location->DeviceObject = DeviceObject;
    IOP_CALL Call = {
        .Irp = Irp, .Serial = Irp->AllocationProcessorNumber, .Location = Irp->CurrentLocation};
    PDRIVER_DISPATCH Routine = DeviceObject->DriverObject->MajorFunction[Location->MajorFunction];
    KiEnterCallFrame(Thread, &Call.Frame, __builtin_frame_address(0));
    NTSTATUS Status = IopDispatch(Thread, Routine, DeviceObject, Irp);
    KiLeaveCallFrame(Thread, &Call.Frame);
    IopCheckReturn(&Call, Status, Routine, DeviceObject);
    return Status;
}

static NTSTATUS IopSignalForwarded(PDEVICE_OBJECT Device, PIRP Irp, PVOID Context)
{
    UNREFERENCED_PARAMETER(Device);
    if (Irp->PendingReturned) {
        KeSetEvent(Context, IO_NO_INCREMENT, FALSE);
    }
    return STATUS_MORE_PROCESSING_REQUIRED;
}

BOOLEAN IoForwardIrpSynchronously(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    KEVENT Event;
    if (Irp->CurrentLocation <= 1) {
        return FALSE;
    }
    KeInitializeEvent(&Event, SynchronizationEvent, FALSE);
    IoCopyCurrentIrpStackLocationToNext(Irp);
    IoSetCompletionRoutine(Irp, IopSignalForwarded, &Event, TRUE, TRUE, TRUE);
    if (IofCallDriver(DeviceObject, Irp) == STATUS_PENDING) {
        KeWaitForSingleObject(&Event, Executive, KernelMode, FALSE, NULL);
    }
    return TRUE;
}

/* A completion routine whose device must stay. */
typedef struct _IOP_HELD_COMPLETION {
    PDEVICE_OBJECT Device;
    PIO_COMPLETION_ROUTINE Routine;
    PVOID Context;
    UCHAR Control;
} IOP_HELD_COMPLETION, *PIOP_HELD_COMPLETION;

static BOOLEAN IopIsInvoked(PIRP Irp, UCHAR Control)
{
    /* relaxed: a request that is cancelled this late may count as either */
    return (Control & (NT_SUCCESS(Irp->IoStatus.Status) ? SL_INVOKE_ON_SUCCESS : SL_INVOKE_ON_ERROR)) ||
           ((Control & SL_INVOKE_ON_CANCEL) && __atomic_load_n(&Irp->Cancel, __ATOMIC_RELAXED));
}

static NTSTATUS IopCompleteHeld(PDEVICE_OBJECT Device, PIRP Irp, PVOID Context)
{
    IOP_HELD_COMPLETION Held = *(PIOP_HELD_COMPLETION)Context;
    NTSTATUS Status = STATUS_SUCCESS;
    ExFreePoolWithTag(Context, IOP_IRP_TAG);
    if (IopIsInvoked(Irp, Held.Control)) {
        Status = Held.Routine(Device, Irp, Held.Context);
    } else if (Irp->PendingReturned && Irp->CurrentLocation <= Irp->StackCount) {
        IoMarkIrpPending(Irp);
    }
    ObDereferenceObject(Held.Device);
    return Status;
}

NTSTATUS IoSetCompletionRoutineEx(PDEVICE_OBJECT DeviceObject, PIRP Irp, PIO_COMPLETION_ROUTINE CompletionRoutine,
                                  PVOID Context, BOOLEAN InvokeOnSuccess, BOOLEAN InvokeOnError,
                                  BOOLEAN InvokeOnCancel)
{
    PIOP_HELD_COMPLETION Held = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Held), IOP_IRP_TAG);
    if (Held == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    IoSetCompletionRoutine(Irp, IopCompleteHeld, Held, InvokeOnSuccess, InvokeOnError, InvokeOnCancel);
    *Held = (IOP_HELD_COMPLETION){DeviceObject, CompletionRoutine, Context, IoGetNextIrpStackLocation(Irp)->Control};
    IoGetNextIrpStackLocation(Irp)->Control |= SL_INVOKE_ON_SUCCESS | SL_INVOKE_ON_ERROR | SL_INVOKE_ON_CANCEL;
    ObReferenceObject(DeviceObject);
    return STATUS_SUCCESS;
}

/* Delivery. */

VOID IopQueueToThread(PIRP Irp)
{
    PETHREAD Thread = Irp->Tail.Overlay.Thread;
    ObReferenceObject(Thread);
    PKTHREAD Current = KiEnterLocked(&Thread->IrpListLock);
    if (Thread->IrpList.Flink == NULL) {
        InitializeListHead(&Thread->IrpList);
    }
    InsertTailList(&Thread->IrpList, &Irp->ThreadListEntry);
    KiExitLocked(&Thread->IrpListLock, Current);
}

/* Frees the packet and what it held. */
static VOID IopEndRequest(PIRP Irp, PETHREAD Thread)
{
    IopFreeBuffers(Irp);
    if (!IsListEmpty(&Irp->ThreadListEntry)) {
        PKTHREAD Current = KiEnterLocked(&Thread->IrpListLock);
        RemoveEntryList(&Irp->ThreadListEntry);
        KiExitLocked(&Thread->IrpListLock, Current);
        InitializeListHead(&Irp->ThreadListEntry);
        ObDereferenceObject(Thread);
    }
    IoFreeIrp(Irp);
}

static VOID IopFreeUserApc(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext, PVOID *SystemArgument1,
                           PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    ExFreePoolWithTag(Apc, IOP_IRP_TAG);
}

static VOID IopRundownUserApc(PKAPC Apc)
{
    ExFreePoolWithTag(Apc, IOP_IRP_TAG);
}

/* If memory is exhausted, the routine is not called; the event and the status block still report the result. */
static VOID IopQueueUserApc(PIRP Irp, PETHREAD Thread)
{
    PIO_APC_ROUTINE Routine = Irp->Overlay.AsynchronousParameters.UserApcRoutine;
    PKAPC Apc = Routine != NULL ? ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(KAPC), IOP_IRP_TAG) : NULL;
    if (Apc != NULL) {
        KeInitializeApc(Apc, &Thread->Tcb, CurrentApcEnvironment, IopFreeUserApc, IopRundownUserApc,
                        (PKNORMAL_ROUTINE)(PVOID)Routine, Irp->RequestorMode,
                        Irp->Overlay.AsynchronousParameters.UserApcContext);
        if (!KeInsertQueueApc(Apc, Irp->UserIosb, NULL, IO_NO_INCREMENT)) {
            ExFreePoolWithTag(Apc, IOP_IRP_TAG);
        }
    }
}

/* Requirements 3 and 4, on the thread, at APC_LEVEL. */
static VOID IopDeliver(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext, PVOID *SystemArgument1,
                       PVOID *SystemArgument2)
{
    PIRP Irp = CONTAINING_RECORD(Apc, IRP, Tail.Apc);
    PETHREAD Thread = PsGetCurrentThread();
    PKEVENT Event = Irp->UserEvent;
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    IopCopyToRequester(Irp);
    if (!NT_ERROR(Irp->IoStatus.Status) || Irp->PendingReturned) {
        if (Irp->UserIosb != NULL) {
            *Irp->UserIosb = Irp->IoStatus;
        }
        IopQueueUserApc(Irp, Thread);
    } else {
        Event = NULL;
    }
    IopEndRequest(Irp, Thread);
    if (Event != NULL) {
        KeSetEvent(Event, IO_NO_INCREMENT, FALSE);
    }
}

/* Requirement 5. */
static VOID IopAbandon(PKAPC Apc)
{
    PIRP Irp = CONTAINING_RECORD(Apc, IRP, Tail.Apc);
    IopEndRequest(Irp, (PETHREAD)Apc->Thread);
}

static VOID IopCompleteAssociated(PIRP Irp, CCHAR PriorityBoost)
{
    PIRP Master = Irp->AssociatedIrp.MasterIrp;
    Irp->AssociatedIrp.MasterIrp = NULL;
    IopFreeBuffers(Irp);
    IoFreeIrp(Irp);
    /* acq_rel: the last one completes the master after what the others did */
    if (__atomic_sub_fetch(&Master->AssociatedIrp.IrpCount, 1, __ATOMIC_ACQ_REL) == 0) {
        IofCompleteRequest(Master, PriorityBoost);
    }
}

/* All locations are completed. */
static VOID IopFinish(PIRP Irp, CCHAR PriorityBoost)
{
    PETHREAD Thread = Irp->Tail.Overlay.Thread;
    if (Irp->Flags & IRP_ASSOCIATED_IRP) {
        IopCompleteAssociated(Irp, PriorityBoost);
        return;
    }
    if (IsListEmpty(&Irp->ThreadListEntry)) {
        KeBugCheckEx(INCONSISTENT_IRP, (ULONG_PTR)Irp, 0, 0, 0);
    }
    KeInitializeApc(&Irp->Tail.Apc, &Thread->Tcb, CurrentApcEnvironment, IopDeliver, IopAbandon, NULL, KernelMode,
                    NULL);
    if (!KeInsertQueueApc(&Irp->Tail.Apc, NULL, NULL, PriorityBoost)) {
        IopAbandon(&Irp->Tail.Apc);
    }
}

/* Completing. */

static VOID IopCheckCompletion(PIRP Irp)
{
    /* The second: its creator has it again, and may complete it only if the I/O manager delivers it. */
    if (Irp->Type != IO_TYPE_IRP || Irp->CurrentLocation > Irp->StackCount + 1 ||
        (Irp->Reserved != 0 && !IopIsWithDriver(Irp) && IsListEmpty(&Irp->ThreadListEntry))) {
        KeBugCheckEx(MULTIPLE_IRP_COMPLETE_REQUESTS, (ULONG_PTR)Irp, 0, 0, 0);
    }
    if (KeGetCurrentIrql() > DISPATCH_LEVEL) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_COMPLETED_ABOVE_DISPATCH, KeGetCurrentIrql(),
                     (ULONG_PTR)Irp, 0);
    }
    if (Irp->IoStatus.Status == STATUS_PENDING || Irp->IoStatus.Status == (NTSTATUS)-1) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_COMPLETED_PENDING, (ULONG)Irp->IoStatus.Status,
                     (ULONG_PTR)Irp, 0);
    }
    /* relaxed: the completer owns the packet, so no other thread may set it now */
    PDRIVER_CANCEL CancelRoutine = __atomic_load_n(&Irp->CancelRoutine, __ATOMIC_RELAXED);
    if (CancelRoutine != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_COMPLETED_CANCELABLE, (ULONG_PTR)CancelRoutine,
                     (ULONG_PTR)Irp, 0);
    }
}

/* Requirement 1. Device: of the driver that completes the location. */
static VOID IopNoteCompleted(PKTHREAD Thread, PIRP Irp, BOOLEAN Marked, PDEVICE_OBJECT Device)
{
    BOOLEAN InProgress = FALSE;
    PVOID Place = __builtin_frame_address(0);
    for (PKI_CALL_FRAME Frame = KiLiveCallFrame(Thread->CallFrames, Place); Frame != NULL;
         Frame = KiLiveCallFrame(Frame->Outer, Place)) {
        PIOP_CALL Call = CONTAINING_RECORD(Frame, IOP_CALL, Frame);
        if (Call->Irp == Irp && Call->Serial == Irp->AllocationProcessorNumber &&
            Call->Location == Irp->CurrentLocation && !Call->Completed) {
            Call->Completed = TRUE;
            Call->Marked = Marked;
            Call->Status = Irp->IoStatus.Status;
            InProgress = TRUE;
        }
    }
    if (!InProgress && !Marked && Device != NULL) {
        IopStop(IOP_NOT_MARKED, NULL, Irp, Device);
    }
}

/* FALSE: the driver above has the packet again, or has freed it. */
static BOOLEAN IopInvoke(PIO_COMPLETION_ROUTINE Routine, PIRP Irp, PVOID Context)
{
    PDEVICE_OBJECT Device =
        Irp->CurrentLocation <= Irp->StackCount ? IoGetCurrentIrpStackLocation(Irp)->DeviceObject : NULL;
    BOOLEAN PendingReturned = Irp->PendingReturned;
    PKTHREAD Thread = KiCurrentThread();
    KIRQL Irql = KeGetCurrentIrql();
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    NTSTATUS Status = Routine(Device, Irp, Context);
    if (KeGetCurrentIrql() != Irql) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, IOP_COMPLETION_IRQL, (ULONG_PTR)Routine, Irql,
                     KeGetCurrentIrql());
    }
    KiEndCallback(Thread, &Callback, KiCallbackCompletion, (PVOID)Routine);
    if (Status == STATUS_MORE_PROCESSING_REQUIRED) {
        return FALSE;
    }
    if (PendingReturned && Irp->CurrentLocation <= Irp->StackCount &&
        !(IoGetCurrentIrpStackLocation(Irp)->Control & SL_PENDING_RETURNED)) {
        IopStop(IOP_PENDING_NOT_PROPAGATED, (PVOID)Routine, Irp, Device);
    }
    return TRUE;
}

/* Leaves the current location. FALSE: as in IopInvoke. */
static BOOLEAN IopCompleteLocation(PKTHREAD Thread, PIRP Irp)
{
    PIO_STACK_LOCATION Location = IoGetCurrentIrpStackLocation(Irp);
    IO_STACK_LOCATION Done = *Location;
    BOOLEAN Marked = (Done.Control & SL_PENDING_RETURNED) != 0;
    IopNoteCompleted(Thread, Irp, Marked, Done.DeviceObject);
    memset(Location, 0, sizeof(*Location));
    Irp->PendingReturned = Marked;
    IoSkipCurrentIrpStackLocation(Irp);
    if (Done.CompletionRoutine != NULL && IopIsInvoked(Irp, Done.Control)) {
        return IopInvoke(Done.CompletionRoutine, Irp, Done.Context);
    }
    if (Marked && Irp->CurrentLocation <= Irp->StackCount) {
        IoMarkIrpPending(Irp);
    }
    return TRUE;
}

VOID IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost)
{
    PKTHREAD Thread = KiCurrentThread();
    IopCheckCompletion(Irp);
    while (Irp->CurrentLocation <= Irp->StackCount) {
        if (!IopCompleteLocation(Thread, Irp)) {
            return;
        }
    }
    IoSkipCurrentIrpStackLocation(Irp); /* a second completion finds it beyond the stack */
    IopFinish(Irp, PriorityBoost);
}

/* The end of a thread. */

static VOID IopCancelList(PETHREAD Thread)
{
    for (PLIST_ENTRY Entry = Thread->IrpList.Flink; Entry != &Thread->IrpList; Entry = Entry->Flink) {
        IoCancelIrp(CONTAINING_RECORD(Entry, IRP, ThreadListEntry));
    }
}

static BOOLEAN IopHasRequests(PETHREAD Thread)
{
    return Thread->IrpList.Flink != NULL && !IsListEmpty(&Thread->IrpList);
}

/*
 * Cancels the requests of a thread that ends. The thread itself waits until they are delivered. One that was terminated
 * runs no more, so the reaper calls the drivers' cancel routines: its completed requests stay in its queue of APCs,
 * which is run down next, and later ones find the queue closed. Meanwhile nothing leaves the list (requirement 3).
 */
static VOID IopCancelThreadIo(PETHREAD Thread, BOOLEAN WasTerminated)
{
    LARGE_INTEGER Moment = {.QuadPart = -100000};
    if (!IopHasRequests(Thread)) {
        return;
    }
    if (WasTerminated) {
        IopCancelList(Thread);
        return;
    }
    KIRQL OldIrql;
    KeRaiseIrql(APC_LEVEL, &OldIrql);
    IopCancelList(Thread);
    KeLowerIrql(OldIrql);
    for (ULONG Round = 0; IopHasRequests(Thread) && Round < IOP_EXIT_PATIENCE * 100; Round += 1) {
        KeDelayExecutionThread(KernelMode, FALSE, &Moment);
    }
}

static VOID IopInitializeRequests(VOID)
{
    PspRegisterThreadExit(IopCancelThreadIo);
}
KI_INITIALIZER(KiInitializeServices, IopInitializeRequests);
