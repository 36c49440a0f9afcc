/*
 * test.c: lets a test play the I/O manager (interlock/io.h).
 *
 * A request owns its packet. Its completion routine copies what was read, records the status, sets Done and returns
 * STATUS_MORE_PROCESSING_REQUIRED; IoTestFinish frees the packet. So any thread may cancel the request until it is
 * finished (irp.c, requirement 4 of cancelling).
 */
#include <interlock/io.h>

#include "iop.h"

#include "../ob/obp.h"

#define IOP_LONGEST_DRIVER_NAME 64

typedef struct _IO_TEST_REQUEST {
    PIRP Irp;
    PFILE_OBJECT File;
    KEVENT Done;
    BOOLEAN Pended;
} IO_TEST_REQUEST;

/* Drivers. */

static BOOLEAN IopMakePath(PCSTR Folder, PCSTR Name, PUNICODE_STRING Path)
{
    SIZE_T Folders = strlen(Folder);
    SIZE_T Length = Folders + strlen(Name);
    if (Length * sizeof(WCHAR) > Path->MaximumLength) {
        return FALSE;
    }
    for (SIZE_T Index = 0; Index < Length; Index++) {
        Path->Buffer[Index] = (WCHAR)(UCHAR)(Index < Folders ? Folder[Index] : Name[Index - Folders]);
    }
    Path->Length = (USHORT)(Length * sizeof(WCHAR));
    return TRUE;
}

static VOID IopDropDriver(PDRIVER_OBJECT Driver)
{
    ObMakeTemporaryObject(Driver);
    ObDereferenceObject(Driver);
}

/* The driver goes, and its code with it. */
static VOID IopStopAtDeviceLeft(PDRIVER_OBJECT Driver, PVOID Routine)
{
    if (Driver->DeviceObject != NULL) {
        KeBugCheckEx(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS, (ULONG_PTR)Driver->DeviceObject, 0, 0,
                     (ULONG_PTR)Routine);
    }
}

NTSTATUS IoTestLoadDriver(PDRIVER_INITIALIZE DriverEntry, PCSTR Name, PDRIVER_OBJECT *DriverObject)
{
    WCHAR NameBuffer[IOP_LONGEST_DRIVER_NAME];
    WCHAR PathBuffer[2 * IOP_LONGEST_DRIVER_NAME];
    UNICODE_STRING DriverName = {0, sizeof(NameBuffer), NameBuffer};
    UNICODE_STRING RegistryPath = {0, sizeof(PathBuffer), PathBuffer};
    PKTHREAD Thread = KiCurrentThread();
    PDRIVER_OBJECT Driver;
    KI_CALLBACK Callback;
    *DriverObject = NULL;
    if (!IopMakePath("\\Driver\\", Name, &DriverName) ||
        !IopMakePath("\\Registry\\Machine\\System\\CurrentControlSet\\Services\\", Name, &RegistryPath)) {
        return STATUS_NAME_TOO_LONG;
    }
    NTSTATUS Status = IopCreateDriver(&DriverName, DriverEntry, &Driver);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KiBeginCallback(Thread, &Callback);
    Status = DriverEntry(Driver, &RegistryPath);
    KiEndCallback(Thread, &Callback, KiCallbackDriver, (PVOID)DriverEntry);
    if (!NT_SUCCESS(Status)) {
        IopStopAtDeviceLeft(Driver, (PVOID)DriverEntry);
        IopDropDriver(Driver);
        return Status;
    }
    KIRQL OldIrql = IopLockDatabase();
    for (PDEVICE_OBJECT Device = Driver->DeviceObject; Device != NULL; Device = Device->NextDevice) {
        Device->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    }
    IopUnlockDatabase(OldIrql);
    *DriverObject = Driver;
    return Status;
}

static BOOLEAN IopHasBusyDevice(PDRIVER_OBJECT Driver)
{
    BOOLEAN Busy = FALSE;
    KIRQL OldIrql = IopLockDatabase();
    for (PDEVICE_OBJECT Device = Driver->DeviceObject; Device != NULL; Device = Device->NextDevice) {
        Busy |= Device->ReferenceCount != 0 || Device->AttachedDevice != NULL;
    }
    IopUnlockDatabase(OldIrql);
    return Busy;
}

NTSTATUS IoTestUnloadDriver(PDRIVER_OBJECT DriverObject)
{
    PDRIVER_UNLOAD Unload = DriverObject->DriverUnload;
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Callback;
    if (Unload == NULL) {
        return STATUS_INVALID_DEVICE_REQUEST;
    }
    if (IopHasBusyDevice(DriverObject)) {
        return STATUS_DEVICE_BUSY;
    }
    KiBeginCallback(Thread, &Callback);
    Unload(DriverObject);
    KiEndCallback(Thread, &Callback, KiCallbackDriver, (PVOID)Unload);
    IopStopAtDeviceLeft(DriverObject, (PVOID)Unload);
    IopDropDriver(DriverObject);
    return STATUS_SUCCESS;
}

/* Requests. */

static NTSTATUS IopTestDone(PDEVICE_OBJECT Device, PIRP Irp, PVOID Context)
{
    PIO_TEST_REQUEST Request = Context;
    UNREFERENCED_PARAMETER(Device);
    IopCopyToRequester(Irp);
    KeSetEvent(&Request->Done, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static VOID IopSendRequest(PIO_TEST_REQUEST Request, PFILE_OBJECT File, PDEVICE_OBJECT Device, PIRP Irp)
{
    Request->Irp = Irp;
    Request->File = File;
    KeInitializeEvent(&Request->Done, NotificationEvent, FALSE);
    ObReferenceObject(File);
    Irp->RequestorMode = UserMode;
    Irp->Tail.Overlay.OriginalFileObject = File;
    IoGetNextIrpStackLocation(Irp)->FileObject = File;
    IoSetCompletionRoutine(Irp, IopTestDone, Request, TRUE, TRUE, TRUE);
    Request->Pended = IofCallDriver(Device, Irp) == STATUS_PENDING;
}

/* Takes over the packet, which may be NULL. */
static PIO_TEST_REQUEST IopSendTest(PFILE_OBJECT File, PDEVICE_OBJECT Device, PIRP Irp)
{
    PIO_TEST_REQUEST Request =
        Irp != NULL ? ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Request), IOP_IRP_TAG) : NULL;
    if (Request == NULL) {
        if (Irp != NULL) {
            IopDiscardIrp(Irp);
        }
        return NULL;
    }
    IopSendRequest(Request, File, Device, Irp);
    return Request;
}

static PIO_TEST_REQUEST IopSendTransfer(PFILE_OBJECT File, UCHAR MajorFunction, PVOID Buffer, ULONG Length,
                                        LONGLONG Offset)
{
    PDEVICE_OBJECT Device = IoGetRelatedDeviceObject(File);
    LARGE_INTEGER ByteOffset = {.QuadPart = Offset};
    return IopSendTest(File, Device, IopBuildTransfer(MajorFunction, Device, Buffer, Length, &ByteOffset));
}

PIO_TEST_REQUEST IoTestRead(PFILE_OBJECT FileObject, PVOID Buffer, ULONG Length, LONGLONG Offset)
{
    return IopSendTransfer(FileObject, IRP_MJ_READ, Buffer, Length, Offset);
}

PIO_TEST_REQUEST IoTestWrite(PFILE_OBJECT FileObject, PVOID Buffer, ULONG Length, LONGLONG Offset)
{
    return IopSendTransfer(FileObject, IRP_MJ_WRITE, Buffer, Length, Offset);
}

PIO_TEST_REQUEST IoTestSend(PFILE_OBJECT FileObject, UCHAR MajorFunction)
{
    return IopSendTransfer(FileObject, MajorFunction, NULL, 0, 0);
}

PIO_TEST_REQUEST IoTestControl(PFILE_OBJECT FileObject, ULONG IoControlCode, PVOID Input, ULONG InputLength,
                               PVOID Output, ULONG OutputLength)
{
    PDEVICE_OBJECT Device = IoGetRelatedDeviceObject(FileObject);
    return IopSendTest(FileObject, Device,
                       IopBuildControl(IoControlCode, Device, Input, InputLength, Output, OutputLength, FALSE));
}

BOOLEAN IoTestCancel(PIO_TEST_REQUEST Request)
{
    return IoCancelIrp(Request->Irp);
}

BOOLEAN IoTestIsDone(PIO_TEST_REQUEST Request)
{
    return KeReadStateEvent(&Request->Done) != 0;
}

BOOLEAN IoTestWasPended(PIO_TEST_REQUEST Request)
{
    return Request->Pended;
}

PIRP IoTestIrp(PIO_TEST_REQUEST Request)
{
    return Request->Irp;
}

NTSTATUS IoTestWait(PIO_TEST_REQUEST Request, PLARGE_INTEGER Timeout)
{
    return KeWaitForSingleObject(&Request->Done, Executive, KernelMode, FALSE, Timeout);
}

static IO_STATUS_BLOCK IopFinishRequest(PIO_TEST_REQUEST Request)
{
    IoTestWait(Request, NULL);
    IO_STATUS_BLOCK Result = Request->Irp->IoStatus;
    IopFreeBuffers(Request->Irp);
    IoFreeIrp(Request->Irp);
    ObDereferenceObject(Request->File);
    return Result;
}

NTSTATUS IoTestFinish(PIO_TEST_REQUEST Request, PIO_STATUS_BLOCK IoStatusBlock)
{
    IO_STATUS_BLOCK Result = IopFinishRequest(Request);
    ExFreePoolWithTag(Request, IOP_IRP_TAG);
    if (IoStatusBlock != NULL) {
        *IoStatusBlock = Result;
    }
    return Result.Status;
}

/* Files. */

static VOID IopDeleteFile(PVOID Object)
{
    PFILE_OBJECT File = Object;
    IopOpenDevice(File->DeviceObject, -1);
    ObDereferenceObject(File->DeviceObject);
}

OBJECT_TYPE IopFileType = {
    .Name = "File",
    .ValidAccessMask = STANDARD_RIGHTS_ALL | SYNCHRONIZE | 0x1ff,
    .WaitOffset = FIELD_OFFSET(FILE_OBJECT, Event),
    .DeleteProcedure = IopDeleteFile,
};
OBP_REGISTER_TYPE(IopFileType);

static NTSTATUS IopInitializeFile(PVOID Object, PVOID Context)
{
    PFILE_OBJECT File = Object;
    File->Type = IO_TYPE_FILE;
    File->Size = sizeof(FILE_OBJECT);
    File->DeviceObject = Context;
    KeInitializeEvent(&File->Lock, SynchronizationEvent, FALSE);
    KeInitializeEvent(&File->Event, NotificationEvent, FALSE);
    InitializeListHead(&File->IrpList);
    return STATUS_SUCCESS;
}

/* Counts the open if the device may be opened. */
static NTSTATUS IopClaimDevice(PDEVICE_OBJECT Device)
{
    NTSTATUS Status = STATUS_SUCCESS;
    KIRQL OldIrql = IopLockDatabase();
    if (IopDeviceOf(Device)->DeletePending) {
        Status = STATUS_NO_SUCH_DEVICE;
    } else if ((Device->Flags & DO_EXCLUSIVE) && Device->ReferenceCount != 0) {
        Status = STATUS_ACCESS_DENIED;
    } else {
        Device->ReferenceCount += 1;
    }
    IopUnlockDatabase(OldIrql);
    return Status;
}

/* Sends a request without parameters and waits for it, without memory: closing cannot fail. */
static VOID IopSendAtClose(PFILE_OBJECT File, UCHAR MajorFunction)
{
    UCHAR Memory[IoSizeOfIrp(IOP_MOST_LOCATIONS)] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
    PDEVICE_OBJECT Device = IoGetRelatedDeviceObject(File);
    PIRP Irp = (PIRP)Memory;
    IO_TEST_REQUEST Request = {.Irp = Irp};
    IoInitializeIrp(Irp, IoSizeOfIrp((UCHAR)Device->StackSize), Device->StackSize);
    Irp->Tail.Overlay.Thread = PsGetCurrentThread();
    IoGetNextIrpStackLocation(Irp)->MajorFunction = MajorFunction;
    IopSendRequest(&Request, File, Device, Irp);
    IopFinishRequest(&Request);
}

NTSTATUS IoTestOpen(PDEVICE_OBJECT DeviceObject, PFILE_OBJECT *FileObject)
{
    OBP_BLUEPRINT Blueprint = {&IopFileType, sizeof(FILE_OBJECT), IopInitializeFile, DeviceObject};
    PVOID Object;
    *FileObject = NULL;
    NTSTATUS Status = IopClaimDevice(DeviceObject);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpBuildObject(&Blueprint, &Object);
    if (!NT_SUCCESS(Status)) {
        IopOpenDevice(DeviceObject, -1);
        return Status;
    }
    ObReferenceObject(DeviceObject);
    PFILE_OBJECT File = Object;
    PIO_TEST_REQUEST Request = IoTestSend(File, IRP_MJ_CREATE);
    Status = Request != NULL ? IoTestFinish(Request, NULL) : STATUS_INSUFFICIENT_RESOURCES;
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(File);
        return Status;
    }
    File->Flags |= FO_HANDLE_CREATED | FO_FILE_OPEN;
    *FileObject = File;
    return Status;
}

NTSTATUS IoTestOpenByName(PUNICODE_STRING Name, PFILE_OBJECT *FileObject)
{
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Handle;
    PVOID Device;
    *FileObject = NULL;
    InitializeObjectAttributes(&Attributes, Name, OBJ_CASE_INSENSITIVE, NULL, NULL);
    NTSTATUS Status = ObpOpenHandleAs(KernelMode, &IopDeviceType, &Attributes, 0, &Handle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(Handle, 0, &IopDeviceType, KernelMode, &Device, NULL);
    ObCloseHandle(Handle, KernelMode);
    if (NT_SUCCESS(Status)) {
        Status = IoTestOpen(Device, FileObject);
        ObDereferenceObject(Device);
    }
    return Status;
}

VOID IoTestClose(PFILE_OBJECT FileObject)
{
    IopSendAtClose(FileObject, IRP_MJ_CLEANUP);
    FileObject->Flags |= FO_CLEANUP_COMPLETE;
    IopSendAtClose(FileObject, IRP_MJ_CLOSE);
    ObDereferenceObject(FileObject);
}
