/*++

Module Name:

    toaster.c

Abstract:

    A function driver: reads wait in a cancel-safe queue, writes go through StartIo one at a time, a timer stands for
the device, its DPC completes both. A control is answered by a work item. A remove lock counts the requests.

Environment:

    Kernel mode

--*/

#include <ntddk.h>
#include <initguid.h>
#include "toaster.h"

#ifdef ALLOC_PRAGMA
#pragma alloc_text(INIT, DriverEntry)
#pragma alloc_text(PAGE, ToasterUnload)
#pragma alloc_text(PAGE, ToasterCreateClose)
#endif

DEFINE_GUID(GUID_TOASTER, 0x781ef630, 0x72b2, 0x11d2, 0xb8, 0x52, 0x00, 0xc0, 0x4f, 0xad, 0x51, 0x71);

NTSTATUS DriverEntry(_In_ PDRIVER_OBJECT DriverObject, _In_ PUNICODE_STRING RegistryPath)
{
    NTSTATUS status;
    PDEVICE_OBJECT dev;
    PFDO_DATA fdo;
    UNICODE_STRING name, link;
    UNREFERENCED_PARAMETER(RegistryPath);
    KdPrintEx((DPFLTR_IHVDRIVER_ID, DPFLTR_INFO_LEVEL, "Toaster: %wZ\n", RegistryPath));
    RtlInitUnicodeString(&name, L"\\Device\\Toaster");
    RtlInitUnicodeString(&link, L"\\DosDevices\\Toaster");
    status = IoCreateDevice(DriverObject, sizeof(FDO_DATA), &name, FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN, FALSE,
                            &dev);
    if (!NT_SUCCESS(status))
        return status;
    fdo = (PFDO_DATA)dev->DeviceExtension;
    IoInitializeRemoveLock(&fdo->RemoveLock, TOASTER_POOL_TAG, 1, 5);
    InitializeListHead(&fdo->ReadQueue);
    KeInitializeSpinLock(&fdo->QueueLock);
    status = IoCsqInitialize(&fdo->Csq, ToasterInsertIrp, ToasterRemoveIrp, ToasterPeekNextIrp, ToasterAcquireLock,
                             ToasterReleaseLock, ToasterCompleteCanceledIrp);
    if (!NT_SUCCESS(status)) {
        IoDeleteDevice(dev);
        return status;
    }
    status = IoCreateSymbolicLink(&link, &name);
    if (!NT_SUCCESS(status)) {
        IoDeleteDevice(dev);
        return status;
    }
    fdo->WorkItem = IoAllocateWorkItem(dev);
    if (fdo->WorkItem == NULL) {
        IoDeleteSymbolicLink(&link);
        IoDeleteDevice(dev);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    KeInitializeTimer(&fdo->Timer);
    KeInitializeDpc(&fdo->TimerDpc, ToasterTimerDpc, dev);
    IoInitializeDpcRequest(dev, ToasterDpcForIsr);
    dev->Flags |= DO_BUFFERED_IO;
    DriverObject->DriverUnload = ToasterUnload;
    DriverObject->DriverStartIo = ToasterStartIo;
    DriverObject->MajorFunction[IRP_MJ_CREATE] = DriverObject->MajorFunction[IRP_MJ_CLOSE] = ToasterCreateClose;
    DriverObject->MajorFunction[IRP_MJ_CLEANUP] = ToasterCleanup;
    DriverObject->MajorFunction[IRP_MJ_READ] = ToasterRead;
    DriverObject->MajorFunction[IRP_MJ_WRITE] = ToasterWrite;
    DriverObject->MajorFunction[IRP_MJ_DEVICE_CONTROL] = ToasterControl;
    DriverObject->MajorFunction[IRP_MJ_PNP] = ToasterPnp;
    DriverObject->MajorFunction[IRP_MJ_POWER] = ToasterPower;
    dev->Flags &= ~DO_DEVICE_INITIALIZING;
    return STATUS_SUCCESS;
}

VOID ToasterUnload(_In_ PDRIVER_OBJECT DriverObject)
{
    PDEVICE_OBJECT dev = DriverObject->DeviceObject;
    UNICODE_STRING link;
    PFDO_DATA fdo;
    PAGED_CODE();
    if (dev == NULL)
        return;
    fdo = (PFDO_DATA)dev->DeviceExtension;
    KeCancelTimer(&fdo->Timer);
    KeFlushQueuedDpcs();
    IoFreeWorkItem(fdo->WorkItem);
    RtlInitUnicodeString(&link, L"\\DosDevices\\Toaster");
    IoDeleteSymbolicLink(&link);
    IoDeleteDevice(dev);
}

static NTSTATUS Complete(PIRP Irp, NTSTATUS Status, ULONG_PTR Info)
{
    Irp->IoStatus.Status = Status;
    Irp->IoStatus.Information = Info;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return Status;
}

NTSTATUS ToasterCreateClose(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    NTSTATUS status;
    PAGED_CODE();
    status = IoAcquireRemoveLock(&fdo->RemoveLock, Irp);
    if (!NT_SUCCESS(status))
        return Complete(Irp, status, 0);
    status = Complete(Irp, STATUS_SUCCESS, 0);
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
    return status;
}

NTSTATUS ToasterCleanup(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    PIRP pending;
    while ((pending = IoCsqRemoveNextIrp(&fdo->Csq, IoGetCurrentIrpStackLocation(Irp)->FileObject)) != NULL) {
        Complete(pending, STATUS_CANCELLED, 0);
        IoReleaseRemoveLock(&fdo->RemoveLock, pending);
    }
    return Complete(Irp, STATUS_SUCCESS, 0);
}

VOID ToasterInsertIrp(PIO_CSQ Csq, PIRP Irp)
{
    PFDO_DATA fdo = CONTAINING_RECORD(Csq, FDO_DATA, Csq);
    InsertTailList(&fdo->ReadQueue, &Irp->Tail.Overlay.ListEntry);
}

VOID ToasterRemoveIrp(PIO_CSQ Csq, PIRP Irp)
{
    UNREFERENCED_PARAMETER(Csq);
    RemoveEntryList(&Irp->Tail.Overlay.ListEntry);
}

PIRP ToasterPeekNextIrp(PIO_CSQ Csq, PIRP Irp, PVOID PeekContext)
{
    PFDO_DATA fdo = CONTAINING_RECORD(Csq, FDO_DATA, Csq);
    PLIST_ENTRY head = &fdo->ReadQueue, next = Irp == NULL ? head->Flink : Irp->Tail.Overlay.ListEntry.Flink;
    for (; next != head; next = next->Flink) {
        PIRP candidate = CONTAINING_RECORD(next, IRP, Tail.Overlay.ListEntry);
        if (PeekContext == NULL || IoGetCurrentIrpStackLocation(candidate)->FileObject == (PFILE_OBJECT)PeekContext)
            return candidate;
    }
    return NULL;
}

_IRQL_raises_(DISPATCH_LEVEL) _Acquires_lock_(CONTAINING_RECORD(Csq, FDO_DATA, Csq)->QueueLock) VOID
    ToasterAcquireLock(PIO_CSQ Csq, _Out_ _At_(*Irql, _IRQL_saves_) PKIRQL Irql)
{
    PFDO_DATA fdo = CONTAINING_RECORD(Csq, FDO_DATA, Csq);
    KeAcquireSpinLock(&fdo->QueueLock, Irql);
}

_IRQL_requires_(DISPATCH_LEVEL) _Releases_lock_(CONTAINING_RECORD(Csq, FDO_DATA, Csq)->QueueLock) VOID
    ToasterReleaseLock(PIO_CSQ Csq, _IRQL_restores_ KIRQL Irql)
{
    PFDO_DATA fdo = CONTAINING_RECORD(Csq, FDO_DATA, Csq);
    KeReleaseSpinLock(&fdo->QueueLock, Irql);
}

VOID ToasterCompleteCanceledIrp(PIO_CSQ Csq, PIRP Irp)
{
    PFDO_DATA fdo = CONTAINING_RECORD(Csq, FDO_DATA, Csq);
    Complete(Irp, STATUS_CANCELLED, 0);
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
}

NTSTATUS ToasterRead(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    NTSTATUS status = IoAcquireRemoveLock(&fdo->RemoveLock, Irp);
    if (!NT_SUCCESS(status))
        return Complete(Irp, status, 0);
    IoCsqInsertIrp(&fdo->Csq, Irp, NULL);
    return STATUS_PENDING;
}

static VOID ToasterCancelWrite(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    if (Irp == DeviceObject->CurrentIrp) {
        IoReleaseCancelSpinLock(Irp->CancelIrql);
        IoStartNextPacket(DeviceObject, TRUE);
    } else {
        KeRemoveEntryDeviceQueue(&DeviceObject->DeviceQueue, &Irp->Tail.Overlay.DeviceQueueEntry);
        IoReleaseCancelSpinLock(Irp->CancelIrql);
    }
    Complete(Irp, STATUS_CANCELLED, 0);
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
}

NTSTATUS ToasterWrite(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    NTSTATUS status = IoAcquireRemoveLock(&fdo->RemoveLock, Irp);
    if (!NT_SUCCESS(status))
        return Complete(Irp, status, 0);
    IoMarkIrpPending(Irp);
    IoStartPacket(DeviceObject, Irp, NULL, ToasterCancelWrite);
    return STATUS_PENDING;
}

VOID ToasterStartIo(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    KIRQL irql;
    LARGE_INTEGER due;
    BOOLEAN cancelled;
    IoAcquireCancelSpinLock(&irql);
    if (Irp != DeviceObject->CurrentIrp || IoSetCancelRoutine(Irp, NULL) == NULL) {
        IoReleaseCancelSpinLock(irql); /* ToasterCancelWrite has it */
        return;
    }
    cancelled = Irp->Cancel;
    IoReleaseCancelSpinLock(irql);
    if (cancelled) { /* before it had a cancel routine */
        IoStartNextPacket(DeviceObject, TRUE);
        Complete(Irp, STATUS_CANCELLED, 0);
        IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
        return;
    }
    due.QuadPart = -10 * 1000; /* 1 ms: the device works */
    KeSetTimer(&fdo->Timer, due, &fdo->TimerDpc);
}

VOID ToasterTimerDpc(PKDPC Dpc, PVOID Context, PVOID A, PVOID B)
{
    PDEVICE_OBJECT dev = (PDEVICE_OBJECT)Context;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(A);
    UNREFERENCED_PARAMETER(B);
    IoRequestDpc(dev, dev->CurrentIrp, NULL);
}

VOID ToasterDpcForIsr(PKDPC Dpc, PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    ULONG length;
    PIRP read;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Context);
    if (Irp == NULL)
        return;
    length = IoGetCurrentIrpStackLocation(Irp)->Parameters.Write.Length;
    read = IoCsqRemoveNextIrp(&fdo->Csq, NULL);
    if (read != NULL) {
        ULONG room = IoGetCurrentIrpStackLocation(read)->Parameters.Read.Length;
        ULONG n = room < length ? room : length;
        RtlCopyMemory(read->AssociatedIrp.SystemBuffer, Irp->AssociatedIrp.SystemBuffer, n);
        Complete(read, STATUS_SUCCESS, n);
        IoReleaseRemoveLock(&fdo->RemoveLock, read);
    }
    InterlockedIncrement(&fdo->Writes);
    IoStartNextPacket(DeviceObject, TRUE);
    Complete(Irp, STATUS_SUCCESS, length);
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
}

static VOID ToasterWork(PDEVICE_OBJECT DeviceObject, PVOID Context)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    PIRP Irp = (PIRP)Context;
    PAGED_CODE();
    *(PULONG)Irp->AssociatedIrp.SystemBuffer = (ULONG)fdo->Writes;
    Complete(Irp, STATUS_SUCCESS, sizeof(ULONG));
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
}

NTSTATUS ToasterControl(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(Irp);
    NTSTATUS status = IoAcquireRemoveLock(&fdo->RemoveLock, Irp);
    if (!NT_SUCCESS(status))
        return Complete(Irp, status, 0);
    switch (stack->Parameters.DeviceIoControl.IoControlCode) {
    case IOCTL_TOASTER_COUNT:
        if (stack->Parameters.DeviceIoControl.OutputBufferLength < sizeof(ULONG)) {
            status = Complete(Irp, STATUS_BUFFER_TOO_SMALL, 0);
            break;
        }
        IoMarkIrpPending(Irp);
        IoQueueWorkItem(fdo->WorkItem, ToasterWork, DelayedWorkQueue, Irp);
        return STATUS_PENDING;
    default:
        status = Complete(Irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    }
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
    return status;
}

NTSTATUS ToasterPnp(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PFDO_DATA fdo = (PFDO_DATA)DeviceObject->DeviceExtension;
    NTSTATUS status = IoAcquireRemoveLock(&fdo->RemoveLock, Irp);
    if (!NT_SUCCESS(status))
        return Complete(Irp, status, 0);
    switch (IoGetCurrentIrpStackLocation(Irp)->MinorFunction) {
    case IRP_MN_START_DEVICE:
    case IRP_MN_QUERY_REMOVE_DEVICE:
    case IRP_MN_SURPRISE_REMOVAL:
        status = Complete(Irp, STATUS_SUCCESS, 0);
        break;
    case IRP_MN_REMOVE_DEVICE:
        IoReleaseRemoveLockAndWait(&fdo->RemoveLock, Irp);
        fdo->Removed = TRUE;
        return Complete(Irp, STATUS_SUCCESS, 0);
    default:
        status = Complete(Irp, Irp->IoStatus.Status, 0);
        break;
    }
    IoReleaseRemoveLock(&fdo->RemoveLock, Irp);
    return status;
}

NTSTATUS ToasterPower(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    PoStartNextPowerIrp(Irp);
    return Complete(Irp, Irp->IoStatus.Status, 0);
}
