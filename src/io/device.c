/*
 * device.c: drivers, devices and their stacks.
 *
 *     file object --> device A             AttachedDevice goes up, AttachedTo down; a request enters at the top, and each driver
 *                       ^  | AttachedDevice      sends it to the device that it is attached to.
 *           AttachedTo  |  v
 *                     device B
 *
 * 1. A device references its driver. A driver's list and the stacks hold no references; they change under the database lock.
 * 2. ReferenceCount is the number of file objects that have the device open. IoDeleteDevice removes the name and, when
 *    that number is 0 and no device is attached above, removes the device from its driver's list and drops its first
 *    reference. A device that is still
 *    referenced otherwise, by a work item for example, keeps its extension until then.
 */
#include "iop.h"

#include "../ob/namespace.h"

typedef struct _IOP_CLIENT {
    struct _IOP_CLIENT *Next;
    PVOID Id;
    UCHAR Memory[] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
} IOP_CLIENT, *PIOP_CLIENT;

typedef struct _IOP_DRIVER {
    DRIVER_OBJECT Object;
    DRIVER_EXTENSION Extension;
    PIOP_CLIENT Clients;             /* under the database lock */
} IOP_DRIVER, *PIOP_DRIVER;

/* Names. */

/* Created when the first driver or device with a name is. */
static NTSTATUS IopMakeDirectories(VOID)
{
    static UNICODE_STRING Paths[] = {RTL_CONSTANT_STRING(u"\\Device"), RTL_CONSTANT_STRING(u"\\Driver"),
                                     RTL_CONSTANT_STRING(u"\\??"), RTL_CONSTANT_STRING(u"\\DosDevices")};
    static volatile BOOLEAN Made;
    NTSTATUS Status = STATUS_SUCCESS;
    /* relaxed: the names themselves are published by the object manager */
    if (__atomic_load_n(&Made, __ATOMIC_RELAXED)) {
        return STATUS_SUCCESS;
    }
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Paths) && NT_SUCCESS(Status); Index++) {
        UNICODE_STRING Target = RTL_CONSTANT_STRING(u"\\??");
        OBP_BLUEPRINT Directory = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, NULL};
        OBP_BLUEPRINT Link = {&ObpSymbolicLinkType, ObpSymbolicLinkSize(&Target), ObpInitializeSymbolicLink, &Target};
        BOOLEAN Last = Index == RTL_NUMBER_OF(Paths) - 1;
        OBJECT_ATTRIBUTES Attributes;
        HANDLE Handle;
        InitializeObjectAttributes(&Attributes, &Paths[Index], OBJ_PERMANENT | OBJ_OPENIF, NULL, NULL);
        Status = ObpCreateHandleAs(KernelMode, Last ? &Link : &Directory, &Attributes, 0, &Handle);
        if (NT_SUCCESS(Status)) {
            ObCloseHandle(Handle, KernelMode);
        }
    }
    if (NT_SUCCESS(Status)) {
        __atomic_store_n(&Made, TRUE, __ATOMIC_RELAXED);
    }
    return Status;
}

/* With one reference of the caller's, and permanent if it has a name. */
static NTSTATUS IopCreateObject(const OBP_BLUEPRINT *Blueprint, PCUNICODE_STRING Name, PVOID *Object)
{
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Handle;
    if (Name == NULL || Name->Length == 0) {
        return ObpBuildObject(Blueprint, Object);
    }
    NTSTATUS Status = IopMakeDirectories();
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    InitializeObjectAttributes(&Attributes, (PUNICODE_STRING)Name, OBJ_PERMANENT | OBJ_CASE_INSENSITIVE, NULL, NULL);
    Status = ObpCreateHandleAs(KernelMode, Blueprint, &Attributes, 0, &Handle);
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(Handle, 0, Blueprint->Type, KernelMode, Object, NULL);
        ObCloseHandle(Handle, KernelMode);
    }
    return Status;
}

NTSTATUS IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName, PUNICODE_STRING DeviceName)
{
    OBP_BLUEPRINT Link = {&ObpSymbolicLinkType, ObpSymbolicLinkSize(DeviceName), ObpInitializeSymbolicLink, DeviceName};
    PVOID Object;
    NTSTATUS Status = IopCreateObject(&Link, SymbolicLinkName, &Object);
    if (NT_SUCCESS(Status)) {
        ObDereferenceObject(Object);
    }
    return Status;
}

NTSTATUS IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName)
{
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Handle;
    PVOID Object;
    InitializeObjectAttributes(&Attributes, SymbolicLinkName, OBJ_CASE_INSENSITIVE, NULL, NULL);
    NTSTATUS Status = ObpOpenHandleAs(KernelMode, &ObpSymbolicLinkType, &Attributes, 0, &Handle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(Handle, 0, &ObpSymbolicLinkType, KernelMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        ObMakeTemporaryObject(Object);
        ObDereferenceObject(Object);
    }
    ObCloseHandle(Handle, KernelMode);
    return Status;
}

/* Drivers. */

static NTSTATUS IopInvalidDeviceRequest(PDEVICE_OBJECT Device, PIRP Irp)
{
    UNREFERENCED_PARAMETER(Device);
    Irp->IoStatus.Status = STATUS_INVALID_DEVICE_REQUEST;
    IofCompleteRequest(Irp, IO_NO_INCREMENT);
    return STATUS_INVALID_DEVICE_REQUEST;
}

static VOID IopDeleteDriver(PVOID Object)
{
    PIOP_DRIVER Driver = Object;
    PIOP_CLIENT Next;
    for (PIOP_CLIENT Client = Driver->Clients; Client != NULL; Client = Next) {
        Next = Client->Next;
        HalFree(Client);
    }
    HalFree(Driver->Object.DriverName.Buffer);
}

OBJECT_TYPE IopDriverType = {
    .Name = "Driver",
    .ValidAccessMask = STANDARD_RIGHTS_ALL,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .DeleteProcedure = IopDeleteDriver,
};
OBP_REGISTER_TYPE(IopDriverType);

static NTSTATUS IopInitializeDriver(PVOID Object, PVOID Context)
{
    PIOP_DRIVER Driver = Object;
    PCUNICODE_STRING Name = Context;
    Driver->Object.Type = IO_TYPE_DRIVER;
    Driver->Object.Size = sizeof(DRIVER_OBJECT);
    Driver->Object.DriverExtension = &Driver->Extension;
    Driver->Extension.DriverObject = &Driver->Object;
    for (ULONG Index = 0; Index <= IRP_MJ_MAXIMUM_FUNCTION; Index++) {
        Driver->Object.MajorFunction[Index] = IopInvalidDeviceRequest;
    }
    Driver->Object.DriverName.Buffer = HalAllocate(Name->Length + sizeof(WCHAR), sizeof(WCHAR));
    if (Driver->Object.DriverName.Buffer == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    memcpy(Driver->Object.DriverName.Buffer, Name->Buffer, Name->Length);
    Driver->Object.DriverName.Length = Name->Length;
    Driver->Object.DriverName.MaximumLength = (USHORT)(Name->Length + sizeof(WCHAR));
    return STATUS_SUCCESS;
}

NTSTATUS IopCreateDriver(PCUNICODE_STRING Name, PDRIVER_INITIALIZE DriverEntry, PDRIVER_OBJECT *DriverObject)
{
    OBP_BLUEPRINT Blueprint = {&IopDriverType, sizeof(IOP_DRIVER), IopInitializeDriver, (PVOID)Name};
    PVOID Object;
    NTSTATUS Status = IopCreateObject(&Blueprint, Name, &Object);
    if (NT_SUCCESS(Status)) {
        *DriverObject = Object;
        (*DriverObject)->DriverInit = DriverEntry;
    }
    return Status;
}

static PIOP_CLIENT IopFindClient(PIOP_DRIVER Driver, PVOID Id)
{
    PIOP_CLIENT Client = Driver->Clients;
    while (Client != NULL && Client->Id != Id) {
        Client = Client->Next;
    }
    return Client;
}

NTSTATUS IoAllocateDriverObjectExtension(PDRIVER_OBJECT DriverObject, PVOID ClientIdentificationAddress,
                                         ULONG DriverObjectExtensionSize, PVOID *DriverObjectExtension)
{
    PIOP_DRIVER Driver = CONTAINING_RECORD(DriverObject, IOP_DRIVER, Object);
    PIOP_CLIENT Client = HalAllocate(sizeof(*Client) + DriverObjectExtensionSize, MEMORY_ALLOCATION_ALIGNMENT);
    *DriverObjectExtension = NULL;
    if (Client == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Client->Id = ClientIdentificationAddress;
    KIRQL OldIrql = IopLockDatabase();
    BOOLEAN Taken = IopFindClient(Driver, ClientIdentificationAddress) != NULL;
    if (!Taken) {
        Client->Next = Driver->Clients;
        Driver->Clients = Client;
        *DriverObjectExtension = Client->Memory;
    }
    IopUnlockDatabase(OldIrql);
    if (Taken) {
        HalFree(Client);
        return STATUS_OBJECT_NAME_COLLISION;
    }
    return STATUS_SUCCESS;
}

PVOID IoGetDriverObjectExtension(PDRIVER_OBJECT DriverObject, PVOID ClientIdentificationAddress)
{
    KIRQL OldIrql = IopLockDatabase();
    PIOP_CLIENT Client =
        IopFindClient(CONTAINING_RECORD(DriverObject, IOP_DRIVER, Object), ClientIdentificationAddress);
    IopUnlockDatabase(OldIrql);
    return Client != NULL ? Client->Memory : NULL;
}

/* Devices. */

static VOID IopDeleteDeviceObject(PVOID Object)
{
    PDEVICE_OBJECT Device = Object;
    IopFreeTimer(Device);
    ObDereferenceObject(Device->DriverObject);
}

OBJECT_TYPE IopDeviceType = {
    .Name = "Device",
    .ValidAccessMask = STANDARD_RIGHTS_ALL | SYNCHRONIZE,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .DeleteProcedure = IopDeleteDeviceObject,
};
OBP_REGISTER_TYPE(IopDeviceType);

typedef struct _IOP_DEVICE_SETTING {
    PDRIVER_OBJECT Driver;
    ULONG ExtensionSize;             /* rounded up */
    ULONG Flags;
    DEVICE_TYPE DeviceType;
    ULONG Characteristics;
} IOP_DEVICE_SETTING;

static NTSTATUS IopInitializeDevice(PVOID Object, PVOID Context)
{
    const IOP_DEVICE_SETTING *Setting = Context;
    PDEVICE_OBJECT Device = Object;
    PIOP_DEVICE Extension = (PIOP_DEVICE)(PVOID)((PUCHAR)(Device + 1) + Setting->ExtensionSize);
    Device->Type = IO_TYPE_DEVICE;
    Device->Size = (USHORT)(sizeof(DEVICE_OBJECT) + Setting->ExtensionSize);
    Device->DriverObject = Setting->Driver;
    Device->Flags = Setting->Flags;
    Device->DeviceType = Setting->DeviceType;
    Device->Characteristics = Setting->Characteristics;
    Device->DeviceExtension = Setting->ExtensionSize != 0 ? Device + 1 : NULL;
    Device->StackSize = 1;
    Device->DeviceObjectExtension = &Extension->Public;
    Extension->Public = (DEVOBJ_EXTENSION){IO_TYPE_DEVICE_OBJECT_EXTENSION, 0, Device};
    KeInitializeDeviceQueue(&Device->DeviceQueue);
    KeInitializeEvent(&Device->DeviceLock, SynchronizationEvent, TRUE);
    ObReferenceObject(Setting->Driver);
    return STATUS_SUCCESS;
}

NTSTATUS IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize, PUNICODE_STRING DeviceName,
                        DEVICE_TYPE DeviceType, ULONG DeviceCharacteristics, BOOLEAN Exclusive,
                        PDEVICE_OBJECT *DeviceObject)
{
    BOOLEAN Named = DeviceName != NULL && DeviceName->Length != 0;
    IOP_DEVICE_SETTING Setting = {
        .Driver = DriverObject,
        .ExtensionSize = (ULONG)ALIGN_UP_BY(DeviceExtensionSize, MEMORY_ALLOCATION_ALIGNMENT),
        .Flags = DO_DEVICE_INITIALIZING | (Exclusive ? DO_EXCLUSIVE : 0) | (Named ? DO_DEVICE_HAS_NAME : 0),
        .DeviceType = DeviceType,
        .Characteristics = DeviceCharacteristics,
    };
    OBP_BLUEPRINT Blueprint = {&IopDeviceType, sizeof(DEVICE_OBJECT) + Setting.ExtensionSize + sizeof(IOP_DEVICE),
                               IopInitializeDevice, &Setting};
    PVOID Object;
    *DeviceObject = NULL;
    NTSTATUS Status = IopCreateObject(&Blueprint, DeviceName, &Object);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PDEVICE_OBJECT Device = Object;
    KIRQL OldIrql = IopLockDatabase();
    Device->NextDevice = DriverObject->DeviceObject;
    DriverObject->DeviceObject = Device;
    IopUnlockDatabase(OldIrql);
    *DeviceObject = Device;
    return STATUS_SUCCESS;
}

/* With the database lock held. */
static VOID IopUnlinkDevice(PDEVICE_OBJECT Device)
{
    PDEVICE_OBJECT *Link = &Device->DriverObject->DeviceObject;
    while (*Link != NULL && *Link != Device) {
        Link = &(*Link)->NextDevice;
    }
    if (*Link != NULL) {
        *Link = Device->NextDevice;
    }
}

/* With the database lock held. TRUE: nothing keeps a device that is to go, and the caller drops its first reference. */
static BOOLEAN IopTakeDeleted(PDEVICE_OBJECT Device)
{
    if (!IopDeviceOf(Device)->DeletePending || Device->ReferenceCount != 0 || Device->AttachedDevice != NULL) {
        return FALSE;
    }
    IopUnlinkDevice(Device);
    return TRUE;
}

VOID IoDeleteDevice(PDEVICE_OBJECT DeviceObject)
{
    PIOP_DEVICE Extension = IopDeviceOf(DeviceObject);
    KIRQL OldIrql = IopLockDatabase();
    if (Extension->DeletePending || Extension->AttachedTo != NULL) {
        ULONG Kind = Extension->DeletePending ? IOP_DELETED_TWICE : IOP_DELETED_IN_STACK;
        IopUnlockDatabase(OldIrql);
        IopStop(Kind, (PVOID)IoDeleteDevice, NULL, DeviceObject);
    }
    Extension->DeletePending = TRUE;
    BOOLEAN Gone = IopTakeDeleted(DeviceObject);
    IopUnlockDatabase(OldIrql);
    ObMakeTemporaryObject(DeviceObject);
    if (Gone) {
        ObDereferenceObject(DeviceObject);
    }
}

VOID IopOpenDevice(PDEVICE_OBJECT Device, LONG Change)
{
    KIRQL OldIrql = IopLockDatabase();
    Device->ReferenceCount += Change;
    BOOLEAN Gone = IopTakeDeleted(Device);
    IopUnlockDatabase(OldIrql);
    if (Gone) {
        ObDereferenceObject(Device);
    }
}

/* Stacks. */

/* With the database lock held. */
static PDEVICE_OBJECT IopTopOf(PDEVICE_OBJECT Device)
{
    while (Device->AttachedDevice != NULL) {
        Device = Device->AttachedDevice;
    }
    return Device;
}

NTSTATUS IoAttachDeviceToDeviceStackSafe(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice,
                                         PDEVICE_OBJECT *AttachedToDeviceObject)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Top = IopTopOf(TargetDevice);
    NTSTATUS Status = STATUS_NO_SUCH_DEVICE;
    if (!IopDeviceOf(Top)->DeletePending && Top->StackSize < IOP_MOST_LOCATIONS) {
        IopDeviceOf(SourceDevice)->AttachedTo = Top;
        SourceDevice->StackSize = (CCHAR)(Top->StackSize + 1);
        SourceDevice->AlignmentRequirement = Top->AlignmentRequirement;
        SourceDevice->SectorSize = Top->SectorSize;
        *AttachedToDeviceObject = Top;
        Top->AttachedDevice = SourceDevice;
        Status = STATUS_SUCCESS;
    }
    IopUnlockDatabase(OldIrql);
    return Status;
}

PDEVICE_OBJECT IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice)
{
    PDEVICE_OBJECT Below = NULL;
    IoAttachDeviceToDeviceStackSafe(SourceDevice, TargetDevice, &Below);
    return Below;
}

VOID IoDetachDevice(PDEVICE_OBJECT TargetDevice)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Attached = TargetDevice->AttachedDevice;
    if (Attached == NULL) {
        IopUnlockDatabase(OldIrql);
        IopStop(IOP_DETACHED_TWICE, (PVOID)IoDetachDevice, NULL, TargetDevice);
    }
    IopDeviceOf(Attached)->AttachedTo = NULL;
    TargetDevice->AttachedDevice = NULL;
    BOOLEAN Gone = IopTakeDeleted(TargetDevice);
    IopUnlockDatabase(OldIrql);
    if (Gone) {
        ObDereferenceObject(TargetDevice);
    }
}

PDEVICE_OBJECT IoGetAttachedDevice(PDEVICE_OBJECT DeviceObject)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Top = IopTopOf(DeviceObject);
    IopUnlockDatabase(OldIrql);
    return Top;
}

PDEVICE_OBJECT IoGetAttachedDeviceReference(PDEVICE_OBJECT DeviceObject)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Top = IopTopOf(DeviceObject);
    ObReferenceObject(Top);
    IopUnlockDatabase(OldIrql);
    return Top;
}

PDEVICE_OBJECT IoGetLowerDeviceObject(PDEVICE_OBJECT DeviceObject)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Below = IopDeviceOf(DeviceObject)->AttachedTo;
    if (Below != NULL) {
        ObReferenceObject(Below);
    }
    IopUnlockDatabase(OldIrql);
    return Below;
}

PDEVICE_OBJECT IoGetDeviceAttachmentBaseRef(PDEVICE_OBJECT DeviceObject)
{
    KIRQL OldIrql = IopLockDatabase();
    PDEVICE_OBJECT Base = DeviceObject;
    while (IopDeviceOf(Base)->AttachedTo != NULL) {
        Base = IopDeviceOf(Base)->AttachedTo;
    }
    ObReferenceObject(Base);
    IopUnlockDatabase(OldIrql);
    return Base;
}

PDEVICE_OBJECT IoGetRelatedDeviceObject(PFILE_OBJECT FileObject)
{
    return IoGetAttachedDevice(FileObject->DeviceObject);
}
