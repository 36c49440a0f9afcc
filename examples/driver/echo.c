/*
 * echo.c: a driver in the style of the WDK's samples, unchanged: reads wait until data is written.
 *
 * Reads are in a cancel-safe queue. A write stores its data and requests the DPC, which hands it to the waiting reads. Closing
 * a file cancels its reads. The remove lock counts reads in the queue and writes in progress, and the driver unloads when there are none.
 */
#include <ntddk.h>

#define ECHO_TAG 'ohcE'
#define ECHO_BYTES 256

typedef struct _DEVICE_EXTENSION {
    IO_REMOVE_LOCK RemoveLock;
    IO_CSQ CancelSafeQueue;
    LIST_ENTRY PendingReads;
    KSPIN_LOCK QueueLock;
    KSPIN_LOCK DataLock;
    ULONG Length;
    UCHAR Data[ECHO_BYTES];
} DEVICE_EXTENSION, *PDEVICE_EXTENSION;

DRIVER_INITIALIZE DriverEntry;
DRIVER_UNLOAD EchoUnload;
DRIVER_DISPATCH EchoCreateClose;
DRIVER_DISPATCH EchoCleanup;
DRIVER_DISPATCH EchoRead;
DRIVER_DISPATCH EchoWrite;
IO_DPC_ROUTINE EchoDpc;
IO_CSQ_INSERT_IRP EchoInsertIrp;
IO_CSQ_REMOVE_IRP EchoRemoveIrp;
IO_CSQ_PEEK_NEXT_IRP EchoPeekNextIrp;
IO_CSQ_ACQUIRE_LOCK EchoAcquireLock;
IO_CSQ_RELEASE_LOCK EchoReleaseLock;
IO_CSQ_COMPLETE_CANCELED_IRP EchoCompleteCanceledIrp;

static NTSTATUS EchoComplete(PIRP Irp, NTSTATUS Status, ULONG_PTR Information)
{
    Irp->IoStatus.Status = Status;
    Irp->IoStatus.Information = Information;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return Status;
}

/* The queue. */

static PDEVICE_EXTENSION EchoExtension(PIO_CSQ Csq)
{
    return CONTAINING_RECORD(Csq, DEVICE_EXTENSION, CancelSafeQueue);
}

VOID EchoInsertIrp(PIO_CSQ Csq, PIRP Irp)
{
    InsertTailList(&EchoExtension(Csq)->PendingReads, &Irp->Tail.Overlay.ListEntry);
}

VOID EchoRemoveIrp(PIO_CSQ Csq, PIRP Irp)
{
    UNREFERENCED_PARAMETER(Csq);
    RemoveEntryList(&Irp->Tail.Overlay.ListEntry);
}

/* The next read, of the file in PeekContext if there is one. */
PIRP EchoPeekNextIrp(PIO_CSQ Csq, PIRP Irp, PVOID PeekContext)
{
    PLIST_ENTRY Head = &EchoExtension(Csq)->PendingReads;
    PLIST_ENTRY Entry = Irp == NULL ? Head->Flink : Irp->Tail.Overlay.ListEntry.Flink;
    for (; Entry != Head; Entry = Entry->Flink) {
        PIRP Next = CONTAINING_RECORD(Entry, IRP, Tail.Overlay.ListEntry);
        if (PeekContext == NULL || IoGetCurrentIrpStackLocation(Next)->FileObject == (PFILE_OBJECT)PeekContext) {
            return Next;
        }
    }
    return NULL;
}

VOID EchoAcquireLock(PIO_CSQ Csq, PKIRQL Irql)
{
    KeAcquireSpinLock(&EchoExtension(Csq)->QueueLock, Irql);
}

VOID EchoReleaseLock(PIO_CSQ Csq, KIRQL Irql)
{
    KeReleaseSpinLock(&EchoExtension(Csq)->QueueLock, Irql);
}

VOID EchoCompleteCanceledIrp(PIO_CSQ Csq, PIRP Irp)
{
    PDEVICE_EXTENSION Extension = EchoExtension(Csq);
    EchoComplete(Irp, STATUS_CANCELLED, 0);
    IoReleaseRemoveLock(&Extension->RemoveLock, Irp);
}

/* Dispatch routines. */

NTSTATUS EchoCreateClose(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    return EchoComplete(Irp, STATUS_SUCCESS, 0);
}

NTSTATUS EchoCleanup(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PDEVICE_EXTENSION Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    PFILE_OBJECT File = IoGetCurrentIrpStackLocation(Irp)->FileObject;
    PIRP Pending;
    while ((Pending = IoCsqRemoveNextIrp(&Extension->CancelSafeQueue, File)) != NULL) {
        EchoCompleteCanceledIrp(&Extension->CancelSafeQueue, Pending);
    }
    return EchoComplete(Irp, STATUS_SUCCESS, 0);
}

NTSTATUS EchoRead(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PDEVICE_EXTENSION Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    NTSTATUS Status = IoAcquireRemoveLock(&Extension->RemoveLock, Irp);
    if (!NT_SUCCESS(Status)) {
        return EchoComplete(Irp, Status, 0);
    }
    IoCsqInsertIrp(&Extension->CancelSafeQueue, Irp, NULL); /* marks it pending */
    IoRequestDpc(DeviceObject, NULL, NULL);
    return STATUS_PENDING;
}

NTSTATUS EchoWrite(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PDEVICE_EXTENSION Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    ULONG Length = IoGetCurrentIrpStackLocation(Irp)->Parameters.Write.Length;
    NTSTATUS Status = IoAcquireRemoveLock(&Extension->RemoveLock, Irp);
    KIRQL OldIrql;
    if (!NT_SUCCESS(Status)) {
        return EchoComplete(Irp, Status, 0);
    }
    KeAcquireSpinLock(&Extension->DataLock, &OldIrql);
    if (Length > ECHO_BYTES - Extension->Length) {
        Status = STATUS_DEVICE_BUSY;
        Length = 0;
    } else {
        RtlCopyMemory(Extension->Data + Extension->Length, Irp->AssociatedIrp.SystemBuffer, Length);
        Extension->Length += Length;
    }
    KeReleaseSpinLock(&Extension->DataLock, OldIrql);
    IoRequestDpc(DeviceObject, NULL, NULL);
    EchoComplete(Irp, Status, Length);
    IoReleaseRemoveLock(&Extension->RemoveLock, Irp);
    return Status;
}

/* The next read gets what is there. NULL: there is no data, or no read. */
static PIRP EchoServe(PDEVICE_EXTENSION Extension)
{
    PIRP Irp = NULL;
    KeAcquireSpinLockAtDpcLevel(&Extension->DataLock);
    if (Extension->Length != 0) {
        Irp = IoCsqRemoveNextIrp(&Extension->CancelSafeQueue, NULL);
    }
    if (Irp != NULL) {
        ULONG Length = IoGetCurrentIrpStackLocation(Irp)->Parameters.Read.Length;
        ULONG Taken = Length < Extension->Length ? Length : Extension->Length;
        RtlCopyMemory(Irp->AssociatedIrp.SystemBuffer, Extension->Data, Taken);
        RtlMoveMemory(Extension->Data, Extension->Data + Taken, Extension->Length - Taken);
        Extension->Length -= Taken;
        Irp->IoStatus.Information = Taken;
    }
    KeReleaseSpinLockFromDpcLevel(&Extension->DataLock);
    return Irp;
}

VOID EchoDpc(PKDPC Dpc, PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    PDEVICE_EXTENSION Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Context);
    while ((Irp = EchoServe(Extension)) != NULL) {
        EchoComplete(Irp, STATUS_SUCCESS, Irp->IoStatus.Information);
        IoReleaseRemoveLock(&Extension->RemoveLock, Irp);
    }
}

/* Loading and unloading. */

VOID EchoUnload(PDRIVER_OBJECT DriverObject)
{
    PDEVICE_OBJECT DeviceObject = DriverObject->DeviceObject;
    PDEVICE_EXTENSION Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    UNICODE_STRING LinkName = RTL_CONSTANT_STRING(u"\\DosDevices\\Echo");
    IoDeleteSymbolicLink(&LinkName);
    if (NT_SUCCESS(IoAcquireRemoveLock(&Extension->RemoveLock, DriverObject))) {
        IoReleaseRemoveLockAndWait(&Extension->RemoveLock, DriverObject);
    }
    KeFlushQueuedDpcs();
    IoDeleteDevice(DeviceObject);
}

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    UNICODE_STRING DeviceName = RTL_CONSTANT_STRING(u"\\Device\\Echo");
    UNICODE_STRING LinkName = RTL_CONSTANT_STRING(u"\\DosDevices\\Echo");
    PDEVICE_OBJECT DeviceObject;
    PDEVICE_EXTENSION Extension;
    NTSTATUS Status;
    UNREFERENCED_PARAMETER(RegistryPath);
    Status = IoCreateDevice(DriverObject, sizeof(DEVICE_EXTENSION), &DeviceName, FILE_DEVICE_UNKNOWN,
                            FILE_DEVICE_SECURE_OPEN, FALSE, &DeviceObject);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = IoCreateSymbolicLink(&LinkName, &DeviceName);
    if (!NT_SUCCESS(Status)) {
        IoDeleteDevice(DeviceObject);
        return Status;
    }
    Extension = (PDEVICE_EXTENSION)DeviceObject->DeviceExtension;
    IoInitializeRemoveLock(&Extension->RemoveLock, ECHO_TAG, 0, 0);
    InitializeListHead(&Extension->PendingReads);
    KeInitializeSpinLock(&Extension->QueueLock);
    KeInitializeSpinLock(&Extension->DataLock);
    IoCsqInitialize(&Extension->CancelSafeQueue, EchoInsertIrp, EchoRemoveIrp, EchoPeekNextIrp, EchoAcquireLock,
                    EchoReleaseLock, EchoCompleteCanceledIrp);
    IoInitializeDpcRequest(DeviceObject, EchoDpc);
    DriverObject->DriverUnload = EchoUnload;
    DriverObject->MajorFunction[IRP_MJ_CREATE] = EchoCreateClose;
    DriverObject->MajorFunction[IRP_MJ_CLOSE] = EchoCreateClose;
    DriverObject->MajorFunction[IRP_MJ_CLEANUP] = EchoCleanup;
    DriverObject->MajorFunction[IRP_MJ_READ] = EchoRead;
    DriverObject->MajorFunction[IRP_MJ_WRITE] = EchoWrite;
    DeviceObject->Flags |= DO_BUFFERED_IO;
    return STATUS_SUCCESS;
}
