/*
 * irp.c: request packets: building and freeing them, sending them down a stack of drivers, completing and cancelling them.
 *
 *     IRP | location 1 | location 2 | ... | location StackCount |
 *           the lowest driver's              the highest driver's
 *
 * 1. CurrentLocation counts down as the packet goes down: StackCount + 1 is the sender that created it, which has no
 *    location. CurrentStackLocation is the address that belongs to it.
 * 2. A packet that was built for a thread belongs to the I/O manager, which frees it. All others belong to their creator.
 */
#include "iop.h"

#include "../ke/irql.h"

VOID IopStop(ULONG Kind, PVOID Routine, PIRP Irp, PDEVICE_OBJECT Device)
{
    KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, Kind, (ULONG_PTR)Routine, (ULONG_PTR)Irp, (ULONG_PTR)Device);
}

static DECLSPEC_NORETURN VOID IopStopAtFree(ULONG Kind, PIRP Irp)
{
    KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, Kind, (ULONG_PTR)Irp, 0, 0);
}

VOID IoInitializeIrp(PIRP Irp, USHORT PacketSize, CCHAR StackSize)
{
    static volatile USHORT Serial;
    memset(Irp, 0, PacketSize);
    Irp->Type = IO_TYPE_IRP;
    Irp->Size = PacketSize;
    Irp->StackCount = (CHAR)StackSize;
    Irp->CurrentLocation = (CHAR)(StackSize + 1);
    /* relaxed: distinguishes packets, orders nothing */
    Irp->AllocationProcessorNumber = __atomic_add_fetch(&Serial, 1, __ATOMIC_RELAXED);
    InitializeListHead(&Irp->ThreadListEntry);
    Irp->Tail.Overlay.CurrentStackLocation = (PIO_STACK_LOCATION)(Irp + 1) + StackSize;
}

PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota)
{
    UNREFERENCED_PARAMETER(ChargeQuota);
    if (StackSize < 0 || StackSize > IOP_MOST_LOCATIONS) {
        return NULL;
    }
    USHORT Size = IoSizeOfIrp((UCHAR)StackSize);
    PIRP Irp = ExAllocatePool2(POOL_FLAG_NON_PAGED, Size, IOP_IRP_TAG);
    if (Irp != NULL) {
        IoInitializeIrp(Irp, Size, StackSize);
        Irp->AllocationFlags = IRP_ALLOCATED_FIXED_SIZE;
    }
    return Irp;
}

PIRP IoAllocateIrpEx(PDEVICE_OBJECT DeviceObject, CCHAR StackSize, BOOLEAN ChargeQuota)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    return IoAllocateIrp(StackSize, ChargeQuota);
}

VOID IoReuseIrp(PIRP Irp, NTSTATUS Iostatus)
{
    UCHAR AllocationFlags = Irp->AllocationFlags;
    if (IopIsWithDriver(Irp)) {
        IopStop(IOP_FREED_IN_USE, (PVOID)IoReuseIrp, Irp, NULL);
    }
    IoInitializeIrp(Irp, Irp->Size, (CCHAR)Irp->StackCount);
    Irp->AllocationFlags = AllocationFlags;
    Irp->IoStatus.Status = Iostatus;
}

VOID IoFreeIrp(PIRP Irp)
{
    if (Irp->Type != IO_TYPE_IRP) {
        IopStopAtFree(IOP_FREED_NO_IRP, Irp);
    }
    if (!IsListEmpty(&Irp->ThreadListEntry)) {
        IopStopAtFree(IOP_FREED_THREAD_IRP, Irp);
    }
    if (IopIsWithDriver(Irp)) {
        IopStop(IOP_FREED_IN_USE, (PVOID)IoFreeIrp, Irp, NULL);
    }
    Irp->Type = 0;
    if (Irp->AllocationFlags & IRP_ALLOCATED_FIXED_SIZE) {
        ExFreePoolWithTag(Irp, IOP_IRP_TAG);
    }
}

/* Building. */

VOID IopFreeBuffers(PIRP Irp)
{
    PMDL Next;
    for (PMDL Mdl = Irp->MdlAddress; Mdl != NULL; Mdl = Next) {
        Next = Mdl->Next;
        if ((Mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_PARTIAL)) == MDL_PAGES_LOCKED) {
            MmUnlockPages(Mdl);
        }
        IoFreeMdl(Mdl);
    }
    Irp->MdlAddress = NULL;
    if (Irp->Flags & IRP_DEALLOCATE_BUFFER) {
        ExFreePoolWithTag(Irp->AssociatedIrp.SystemBuffer, IOP_BUFFER_TAG);
        Irp->Flags &= ~(ULONG)IRP_DEALLOCATE_BUFFER;
    }
}

VOID IopCopyToRequester(PIRP Irp)
{
    static const ULONG Buffered = IRP_BUFFERED_IO | IRP_INPUT_OPERATION;
    if ((Irp->Flags & Buffered) == Buffered && !NT_ERROR(Irp->IoStatus.Status) && Irp->IoStatus.Information != 0) {
        memcpy(Irp->UserBuffer, Irp->AssociatedIrp.SystemBuffer, Irp->IoStatus.Information);
    }
}

VOID IopDiscardIrp(PIRP Irp)
{
    IopFreeBuffers(Irp);
    IoFreeIrp(Irp);
}

/* A system buffer with the first Length bytes of Data; Size is not less. */
static BOOLEAN IopAllocateSystemBuffer(PIRP Irp, PVOID Data, ULONG Length, ULONG Size)
{
    PVOID Buffer = ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_UNINITIALIZED, Size, IOP_BUFFER_TAG);
    if (Buffer == NULL) {
        return FALSE;
    }
    if (Length != 0) {
        memcpy(Buffer, Data, Length);
    }
    Irp->AssociatedIrp.SystemBuffer = Buffer;
    Irp->Flags |= IRP_BUFFERED_IO | IRP_DEALLOCATE_BUFFER;
    return TRUE;
}

static BOOLEAN IopDescribeBuffer(PIRP Irp, PVOID Buffer, ULONG Length, LOCK_OPERATION Operation)
{
    PMDL Mdl = IoAllocateMdl(Buffer, Length, FALSE, FALSE, Irp);
    if (Mdl == NULL) {
        return FALSE;
    }
    MmProbeAndLockPages(Mdl, KernelMode, Operation);
    return TRUE;
}

static BOOLEAN IopSetTransferBuffer(PIRP Irp, PDEVICE_OBJECT Device, PVOID Buffer, ULONG Length, BOOLEAN Read)
{
    Irp->UserBuffer = Buffer;
    if (Length == 0) {
        return TRUE;
    }
    if (Device->Flags & DO_BUFFERED_IO) {
        Irp->Flags |= Read ? IRP_INPUT_OPERATION : 0;
        return IopAllocateSystemBuffer(Irp, Buffer, Read ? 0 : Length, Length);
    }
    return !(Device->Flags & DO_DIRECT_IO) ||
           IopDescribeBuffer(Irp, Buffer, Length, Read ? IoWriteAccess : IoReadAccess);
}

PIRP IopBuildTransfer(ULONG MajorFunction, PDEVICE_OBJECT Device, PVOID Buffer, ULONG Length, PLARGE_INTEGER Offset)
{
    PIRP Irp = IoAllocateIrp(Device->StackSize, FALSE);
    if (Irp == NULL) {
        return NULL;
    }
    PIO_STACK_LOCATION Next = IoGetNextIrpStackLocation(Irp);
    Next->MajorFunction = (UCHAR)MajorFunction;
    Irp->Tail.Overlay.Thread = PsGetCurrentThread();
    if (MajorFunction == IRP_MJ_READ || MajorFunction == IRP_MJ_WRITE) {
        BOOLEAN Read = MajorFunction == IRP_MJ_READ;
        Irp->Flags |= Read ? IRP_READ_OPERATION : IRP_WRITE_OPERATION;
        Next->Parameters.Read.Length = Length; /* those of a write are the same */
        Next->Parameters.Read.ByteOffset.QuadPart = Offset != NULL ? Offset->QuadPart : 0;
        if (!IopSetTransferBuffer(Irp, Device, Buffer, Length, Read)) {
            IopDiscardIrp(Irp);
            return NULL;
        }
    }
    return Irp;
}

static BOOLEAN IopSetControlBuffers(PIRP Irp, ULONG Method, PVOID Input, ULONG InputLength, PVOID Output,
                                    ULONG OutputLength)
{
    ULONG Buffered = Method == METHOD_BUFFERED && OutputLength > InputLength ? OutputLength : InputLength;
    if (Method == METHOD_NEITHER) {
        Irp->UserBuffer = Output;
        IoGetNextIrpStackLocation(Irp)->Parameters.DeviceIoControl.Type3InputBuffer = Input;
        return TRUE;
    }
    if (Buffered != 0 && !IopAllocateSystemBuffer(Irp, Input, InputLength, Buffered)) {
        return FALSE;
    }
    if (Method == METHOD_BUFFERED) {
        Irp->UserBuffer = Output;
        Irp->Flags |= OutputLength != 0 ? IRP_INPUT_OPERATION : 0;
        return TRUE;
    }
    return OutputLength == 0 || IopDescribeBuffer(Irp, Output, OutputLength,
                                                  Method == METHOD_IN_DIRECT ? IoReadAccess : IoWriteAccess);
}

PIRP IopBuildControl(ULONG Code, PDEVICE_OBJECT Device, PVOID Input, ULONG InputLength, PVOID Output,
                     ULONG OutputLength, BOOLEAN Internal)
{
    PIRP Irp = IoAllocateIrp(Device->StackSize, FALSE);
    if (Irp == NULL) {
        return NULL;
    }
    PIO_STACK_LOCATION Next = IoGetNextIrpStackLocation(Irp);
    Next->MajorFunction = Internal ? IRP_MJ_INTERNAL_DEVICE_CONTROL : IRP_MJ_DEVICE_CONTROL;
    Next->Parameters.DeviceIoControl.OutputBufferLength = OutputLength;
    Next->Parameters.DeviceIoControl.InputBufferLength = InputLength;
    Next->Parameters.DeviceIoControl.IoControlCode = Code;
    Irp->Tail.Overlay.Thread = PsGetCurrentThread();
    if (!IopSetControlBuffers(Irp, METHOD_FROM_CTL_CODE(Code), Input, InputLength, Output, OutputLength)) {
        IopDiscardIrp(Irp);
        return NULL;
    }
    return Irp;
}

/* Requirement 2: for the calling thread. Irp may be NULL. */
static PIRP IopForThread(PIRP Irp, PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock)
{
    if (Irp != NULL) {
        Irp->UserEvent = Event;
        Irp->UserIosb = IoStatusBlock;
        Irp->Flags |= IRP_SYNCHRONOUS_API;
        IopQueueToThread(Irp);
    }
    return Irp;
}

PIRP IoBuildSynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer, ULONG Length,
                                  PLARGE_INTEGER StartingOffset, PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock)
{
    return IopForThread(IopBuildTransfer(MajorFunction, DeviceObject, Buffer, Length, StartingOffset), Event,
                        IoStatusBlock);
}

PIRP IoBuildAsynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer, ULONG Length,
                                   PLARGE_INTEGER StartingOffset, PIO_STATUS_BLOCK IoStatusBlock)
{
    PIRP Irp = IopBuildTransfer(MajorFunction, DeviceObject, Buffer, Length, StartingOffset);
    if (Irp != NULL) {
        Irp->UserIosb = IoStatusBlock;
    }
    return Irp;
}

PIRP IoBuildDeviceIoControlRequest(ULONG IoControlCode, PDEVICE_OBJECT DeviceObject, PVOID InputBuffer,
                                   ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength,
                                   BOOLEAN InternalDeviceIoControl, PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock)
{
    return IopForThread(IopBuildControl(IoControlCode, DeviceObject, InputBuffer, InputBufferLength, OutputBuffer,
                                        OutputBufferLength, InternalDeviceIoControl),
                        Event, IoStatusBlock);
}

PIRP IoMakeAssociatedIrp(PIRP Irp, CCHAR StackSize)
{
    PIRP Associated = IoAllocateIrp(StackSize, FALSE);
    if (Associated != NULL) {
        Associated->Flags |= IRP_ASSOCIATED_IRP;
        Associated->Tail.Overlay.Thread = Irp->Tail.Overlay.Thread;
        Associated->AssociatedIrp.MasterIrp = Irp;
    }
    return Associated;
}

BOOLEAN IoIsOperationSynchronous(PIRP Irp)
{
    PFILE_OBJECT File = Irp->Tail.Overlay.OriginalFileObject;
    return (Irp->Flags & (IRP_SYNCHRONOUS_API | IRP_SYNCHRONOUS_PAGING_IO | IRP_PAGING_IO)) == IRP_SYNCHRONOUS_API ||
           (File != NULL && (File->Flags & FO_SYNCHRONOUS_IO));
}

PIRP IoGetTopLevelIrp(VOID)
{
    return PsGetCurrentThread()->TopLevelIrp;
}

VOID IoSetTopLevelIrp(PIRP Irp)
{
    PsGetCurrentThread()->TopLevelIrp = Irp;
}

PEPROCESS IoGetRequestorProcess(PIRP Irp)
{
    PETHREAD Thread = Irp->Tail.Overlay.Thread;
    return Thread != NULL ? (PEPROCESS)Thread->Tcb.Process : NULL;
}

/*
 * Sending requests down and completing them upwards.
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

/* All locations are completed. */
static VOID IopFinish(PIRP Irp, CCHAR PriorityBoost)
{
    PETHREAD Thread = Irp->Tail.Overlay.Thread;
    if (Irp->Flags & IRP_ASSOCIATED_IRP) {
        PIRP Master = Irp->AssociatedIrp.MasterIrp;
        Irp->AssociatedIrp.MasterIrp = NULL;
        IopFreeBuffers(Irp);
        IoFreeIrp(Irp);
        /* acq_rel: the last one completes the master, and sees the stores of the others */
        if (__atomic_sub_fetch(&Master->AssociatedIrp.IrpCount, 1, __ATOMIC_ACQ_REL) == 0) {
            IofCompleteRequest(Master, PriorityBoost);
        }
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
 * Cancels the requests of a thread that ends. The thread itself waits until they are delivered. A terminated thread no
 * longer runs, so the reaper calls the drivers' cancel routines: its completed requests stay in its queue of APCs,
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

/*
 * Cancelling a request, and cancel-safe queues.
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

VOID IoAcquireCancelSpinLock(PKIRQL Irql)
{
    *Irql = KeAcquireQueuedSpinLock(LockQueueIoCancelLock);
}

VOID IoReleaseCancelSpinLock(KIRQL Irql)
{
    KeReleaseQueuedSpinLock(LockQueueIoCancelLock, Irql);
}

VOID IopCallCancelRoutine(PDRIVER_CANCEL Routine, PDEVICE_OBJECT Device, PIRP Irp, KIRQL Irql,
                          const KI_CALLBACK *Callback)
{
    PKTHREAD Thread = KiCurrentThread();
    Irp->CancelIrql = Irql;
    Routine(Device, Irp);
    /* On the processor of a thread at DISPATCH_LEVEL; below that no thread can hold it. */
    BOOLEAN HoldsLock = Thread->Irql >= DISPATCH_LEVEL &&
                        ((ULONG_PTR)Thread->Prcb->LockQueue[LockQueueIoCancelLock].Lock & LOCK_QUEUE_OWNER) != 0;
    if (Thread->Irql != Irql || HoldsLock) { /* the levels as documented, the routine, the device */
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)Thread->Irql << 16 | (ULONG_PTR)Irql << 8, (ULONG_PTR)Routine,
                     (ULONG_PTR)Device, 0);
    }
    KiEndCallback(Thread, Callback, KiCallbackCancel, (PVOID)Routine);
}

BOOLEAN IoCancelIrp(PIRP Irp)
{
    KI_CALLBACK Callback;
    KIRQL Irql;
    KiBeginCallback(KiCurrentThread(), &Callback);
    IoAcquireCancelSpinLock(&Irql);
    /* requirement 2: this store and the exchange pair with the exchange of IoSetCancelRoutine and the load after it */
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
