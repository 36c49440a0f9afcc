/*
 * irp.c: request packets: allocating, building and freeing them.
 *
 *     IRP | location 1 | location 2 | ... | location StackCount |
 *           the lowest driver's              the highest driver's
 *
 * 1. CurrentLocation counts down as the packet goes down: StackCount + 1 is the sender that created it, which has no
 *    location. CurrentStackLocation is the address that belongs to it.
 * 2. A packet that was built for a thread belongs to the I/O manager, which frees it. All others belong to their creator.
 */
#include "iop.h"

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
