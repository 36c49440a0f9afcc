/*
 * device.c: drivers, devices and their stacks; StartIo, the DPC of a device and its timer; work items and interrupts.
 *
 *     file object --> device A             AttachedDevice goes up, AttachedTo down; a request enters at the top, and each driver
 *                       ^  | AttachedDevice      sends it to the device that it is attached to.
 *           AttachedTo  |  v
 *                     device B
 *
 * 1. A device references its driver. A driver's list and the stacks hold no references; they change under the database lock.
 * 2. ReferenceCount is the number of file objects that have the device open. IoDeleteDevice removes the name and, when
 *    that number is 0 and no device is attached above, removes the device from its driver's list and drops its first
 *    reference. A device that is still referenced otherwise, by a work item for example, keeps its extension until then.
 */
#include <interlock/ex.h>

#include "iop.h"

#include "../hal/hal.h"
#include "../ke/irql.h"
#include "../ob/obp.h"

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

/* Called for the first driver, or the first device with a name. */
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

/* With the database lock held. TRUE: the device is marked for deletion and no longer used: the caller drops its first
   reference. */
static BOOLEAN IopTakeDeleted(PDEVICE_OBJECT Device)
{
    if (!IopDeviceOf(Device)->DeletePending || Device->ReferenceCount != 0 || Device->AttachedDevice != NULL) {
        return FALSE;
    }
    PDEVICE_OBJECT *Link = &Device->DriverObject->DeviceObject;
    while (*Link != NULL && *Link != Device) {
        Link = &(*Link)->NextDevice;
    }
    if (*Link != NULL) {
        *Link = Device->NextDevice;
    }
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

/*
 * One request at a time: StartIo, the DPC of a device and its timer.
 *
 * 1. The device's queue is busy from the moment a packet is started until IoStartNextPacket finds none (ke/interrupt.c).
 * 2. A packet with a cancel routine gets it, its place in the queue and CurrentIrp in one step, under the cancel spinlock. So a
 *    cancel routine that compares its packet with CurrentIrp knows whether to remove it from the queue.
 * 3. Deferred: StartIo is not entered again before it has returned. StartIoCount counts the calls to make; the thread that raises
 *    it from 0 makes them all. There are never more than two: the packet in StartIo, and the next one.
 */

#define IOP_SECOND 10000000LL
#define IOP_PERIOD 1000 /* ms */

static VOID IopStartNext(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key, BOOLEAN Again);

static VOID IopRunStartIo(PDEVICE_OBJECT Device, PIRP Irp)
{
    PDRIVER_STARTIO StartIo = Device->DriverObject->DriverStartIo;
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    StartIo(Device, Irp);
    KiEndCallback(Thread, &Callback, KiCallbackStartIo, (PVOID)StartIo);
}

/* Again: called from the loop below, through IopStartNext. */
static VOID IopCallStartIo(PDEVICE_OBJECT Device, PIRP Irp, BOOLEAN Again)
{
    PIOP_DEVICE Extension = IopDeviceOf(Device);
    if (!Extension->DeferredStartIo || Again) {
        IopRunStartIo(Device, Irp);
        return;
    }
    /* acquire: the request to start the next one, by a thread that has found the count above 0 */
    __atomic_add_fetch(&Extension->StartIoCount, 1, __ATOMIC_ACQ_REL);
    IopRunStartIo(Device, Irp);
    while (__atomic_sub_fetch(&Extension->StartIoCount, 1, __ATOMIC_ACQ_REL) != 0) {
        IopStartNext(Device, Extension->Cancelable, Extension->ByKey ? &Extension->StartIoKey : NULL, TRUE);
    }
}

/* With the cancel spinlock held if Cancelable, which it releases. */
static VOID IopStartCurrent(PDEVICE_OBJECT Device, PIRP Irp, BOOLEAN Cancelable, KIRQL Irql, BOOLEAN Again)
{
    Device->CurrentIrp = Irp;
    if (Cancelable) {
        if (IopDeviceOf(Device)->NonCancelableStartIo) {
            IoSetCancelRoutine(Irp, NULL);
        }
        IoReleaseCancelSpinLock(Irql);
    }
    IopCallStartIo(Device, Irp, Again);
}

static VOID IopStartPacket(PDEVICE_OBJECT Device, PIRP Irp, PULONG Key, PDRIVER_CANCEL CancelFunction)
{
    PKDEVICE_QUEUE_ENTRY Entry = &Irp->Tail.Overlay.DeviceQueueEntry;
    KIRQL Irql = DISPATCH_LEVEL;
    KI_CALLBACK Callback;
    KiBeginCallback(KiCurrentThread(), &Callback);
    if (CancelFunction != NULL) {
        IoAcquireCancelSpinLock(&Irql);
        IoSetCancelRoutine(Irp, CancelFunction);
    }
    if (!(Key != NULL ? KeInsertByKeyDeviceQueue(&Device->DeviceQueue, Entry, *Key)
                      : KeInsertDeviceQueue(&Device->DeviceQueue, Entry))) {
        IopStartCurrent(Device, Irp, CancelFunction != NULL, Irql, FALSE);
        return;
    }
    if (CancelFunction == NULL) {
        return;
    }
    /* seq_cst: irp.c, requirement 2 of cancelling. The lock excludes a cancelling thread, so the routine is still set. */
    if (__atomic_load_n(&Irp->Cancel, __ATOMIC_SEQ_CST)) {
        IoSetCancelRoutine(Irp, NULL);
        IopCallCancelRoutine(CancelFunction, Device, Irp, Irql, &Callback);
    } else {
        IoReleaseCancelSpinLock(Irql);
    }
}

VOID IoStartPacket(PDEVICE_OBJECT DeviceObject, PIRP Irp, PULONG Key, PDRIVER_CANCEL CancelFunction)
{
    KIRQL OldIrql;
    KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
    IopStartPacket(DeviceObject, Irp, Key, CancelFunction);
    KeLowerIrql(OldIrql);
}

static VOID IopStartNext(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key, BOOLEAN Again)
{
    KIRQL Irql = DISPATCH_LEVEL;
    if (Cancelable) {
        IoAcquireCancelSpinLock(&Irql);
    }
    Device->CurrentIrp = NULL;
    PKDEVICE_QUEUE_ENTRY Entry = Key != NULL ? KeRemoveByKeyDeviceQueue(&Device->DeviceQueue, *Key)
                                             : KeRemoveDeviceQueue(&Device->DeviceQueue);
    if (Entry != NULL) {
        IopStartCurrent(Device, CONTAINING_RECORD(Entry, IRP, Tail.Overlay.DeviceQueueEntry), Cancelable, Irql, Again);
    } else if (Cancelable) {
        IoReleaseCancelSpinLock(Irql);
    }
}

/* TRUE: the thread in StartIo does it. */
static BOOLEAN IopDeferStart(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key)
{
    PIOP_DEVICE Extension = IopDeviceOf(Device);
    LONG Calls = __atomic_load_n(&Extension->StartIoCount, __ATOMIC_RELAXED);
    if (!Extension->DeferredStartIo || Calls == 0) {
        return FALSE;
    }
    Extension->Cancelable = Cancelable;
    Extension->ByKey = Key != NULL;
    Extension->StartIoKey = Key != NULL ? *Key : 0;
    /* release: pairs with the acquire in IopCallStartIo */
    while (Calls != 0 && !__atomic_compare_exchange_n(&Extension->StartIoCount, &Calls, Calls + 1, FALSE,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return Calls != 0;
}

static VOID IopStartNextPacket(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key)
{
    KIRQL OldIrql;
    if (IopDeferStart(Device, Cancelable, Key)) {
        return;
    }
    KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
    IopStartNext(Device, Cancelable, Key, FALSE);
    KeLowerIrql(OldIrql);
}

VOID IoStartNextPacket(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable)
{
    IopStartNextPacket(DeviceObject, Cancelable, NULL);
}

VOID IoStartNextPacketByKey(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable, ULONG Key)
{
    IopStartNextPacket(DeviceObject, Cancelable, &Key);
}

VOID IoSetStartIoAttributes(PDEVICE_OBJECT DeviceObject, BOOLEAN DeferredStartIo, BOOLEAN NonCancelable)
{
    PIOP_DEVICE Extension = IopDeviceOf(DeviceObject);
    Extension->DeferredStartIo = DeferredStartIo != FALSE;
    Extension->NonCancelableStartIo = NonCancelable != FALSE;
}

/* The timer. */

typedef struct _IO_TIMER {
    CSHORT Type;
    PDEVICE_OBJECT Device;
    PIO_TIMER_ROUTINE Routine;
    PVOID Context;
    KTIMER Timer;
    KDPC Dpc;
} IO_TIMER;

static VOID IopRunTimer(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    PIO_TIMER Timer = Context;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Argument1);
    UNREFERENCED_PARAMETER(Argument2);
    Timer->Routine(Timer->Device, Timer->Context);
}

NTSTATUS IoInitializeTimer(PDEVICE_OBJECT DeviceObject, PIO_TIMER_ROUTINE TimerRoutine, PVOID Context)
{
    if (DeviceObject->Timer != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_TIMER_TWICE, (ULONG_PTR)DeviceObject, 0, 0);
    }
    PIO_TIMER Timer = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Timer), IOP_IRP_TAG);
    if (Timer == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *Timer = (IO_TIMER){.Type = IO_TYPE_TIMER, .Device = DeviceObject, .Routine = TimerRoutine, .Context = Context};
    KeInitializeTimer(&Timer->Timer);
    KeInitializeDpc(&Timer->Dpc, IopRunTimer, Timer);
    DeviceObject->Timer = Timer;
    return STATUS_SUCCESS;
}

VOID IoStartTimer(PDEVICE_OBJECT DeviceObject)
{
    KeSetTimerEx(&DeviceObject->Timer->Timer, (LARGE_INTEGER){.QuadPart = -IOP_SECOND}, IOP_PERIOD,
                 &DeviceObject->Timer->Dpc);
}

VOID IoStopTimer(PDEVICE_OBJECT DeviceObject)
{
    KeCancelTimer(&DeviceObject->Timer->Timer);
    KeRemoveQueueDpc(&DeviceObject->Timer->Dpc);
}

VOID IopFreeTimer(PDEVICE_OBJECT Device)
{
    if (Device->Timer != NULL) {
        IoStopTimer(Device);
        ExFreePoolWithTag(Device->Timer, IOP_IRP_TAG);
        Device->Timer = NULL;
    }
}

/*
 * Work items.
 *
 * 1. A work item's routine runs once for each time the item is queued, with the object, the context and, in the second
 *    form, the item itself.
 * 2. The item is not touched after its routine has been called: the routine may free it or queue it again.
 * 3. Freeing a queued item is a bugcheck.
 * 4. From the queueing until the routine has returned, the item holds a reference on its device or driver: the driver's code and
 *    the device's extension stay as long as the routine runs.
 */

#define IOP_WORKITEM_TAG 0x74496f49u /* "IoIt" */
#define IOP_QUEUED_ITEM_FREED 0      /* first parameter of WORKER_INVALID */

typedef struct _IO_WORKITEM {
    WORK_QUEUE_ITEM WorkItem;
    PIO_WORKITEM_ROUTINE Routine;
    PIO_WORKITEM_ROUTINE_EX RoutineEx;
    PVOID IoObject;
    PVOID Context;
    BOOLEAN Referenced;              /* the object, while the item is queued and runs */
} IO_WORKITEM;

/* One of IoCreateDevice or a driver's; not what a test passes in its place. */
static BOOLEAN IopIsIoObject(PVOID IoObject)
{
    PDEVICE_OBJECT Device = IoObject;
    if (Device == NULL || Device->Type != IO_TYPE_DEVICE) {
        PDRIVER_OBJECT Driver = IoObject;
        return Driver != NULL && Driver->Type == IO_TYPE_DRIVER && Driver->DriverExtension != NULL &&
               Driver->DriverExtension->DriverObject == Driver;
    }
    return Device->DeviceObjectExtension != NULL && Device->DeviceObjectExtension->DeviceObject == Device;
}

static VOID IopRunWorkItem(PVOID Parameter)
{
    PIO_WORKITEM Item = Parameter;
    PVOID IoObject = Item->IoObject;
    BOOLEAN Referenced = Item->Referenced;
    if (Item->RoutineEx != NULL) {
        Item->RoutineEx(IoObject, Item->Context, Item);
    } else {
        Item->Routine(IoObject, Item->Context);
    }
    if (Referenced) {
        ObDereferenceObject(IoObject);
    }
}

ULONG IoSizeofWorkItem(VOID)
{
    return sizeof(IO_WORKITEM);
}

VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem)
{
    *IoWorkItem = (IO_WORKITEM){.IoObject = IoObject};
    ExInitializeWorkItem(&IoWorkItem->WorkItem, IopRunWorkItem, IoWorkItem);
}

VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem)
{
    if (IoWorkItem->WorkItem.List.Flink != NULL) {
        KeBugCheckEx(WORKER_INVALID, IOP_QUEUED_ITEM_FREED, (ULONG_PTR)IoWorkItem, (ULONG_PTR)IoWorkItem,
                     sizeof(IO_WORKITEM));
    }
}

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject)
{
    PIO_WORKITEM Item = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(IO_WORKITEM), IOP_WORKITEM_TAG);
    if (Item != NULL) {
        IoInitializeWorkItem(DeviceObject, Item);
    }
    return Item;
}

VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem)
{
    IoUninitializeWorkItem(IoWorkItem);
    ExFreePoolWithTag(IoWorkItem, IOP_WORKITEM_TAG);
}

static VOID IopQueueWorkItem(PIO_WORKITEM Item, PIO_WORKITEM_ROUTINE Routine, PIO_WORKITEM_ROUTINE_EX RoutineEx,
                             WORK_QUEUE_TYPE QueueType, PVOID Context)
{
    if (Item->WorkItem.List.Flink == NULL) {
        Item->Routine = Routine;
        Item->RoutineEx = RoutineEx;
        Item->Context = Context;
        Item->Referenced = IopIsIoObject(Item->IoObject);
        if (Item->Referenced) {
            ObReferenceObject(Item->IoObject);
        }
    }
    ExQueueWorkItem(&Item->WorkItem, QueueType);
}

VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine, WORK_QUEUE_TYPE QueueType,
                     PVOID Context)
{
    IopQueueWorkItem(IoWorkItem, WorkerRoutine, NULL, QueueType, Context);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine, WORK_QUEUE_TYPE QueueType,
                       PVOID Context)
{
    IopQueueWorkItem(IoWorkItem, NULL, WorkerRoutine, QueueType, Context);
}

/* Interrupts. */

/* Interprocessor interrupts are above every device. */
static BOOLEAN IopIsDeviceLevel(KIRQL Irql)
{
    return Irql > DISPATCH_LEVEL && Irql < IPI_LEVEL;
}

static VOID IopCheckPassiveLevel(ULONG_PTR Routine)
{
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, PASSIVE_LEVEL, KeGetCurrentIrql(), 0, Routine);
    }
}

NTSTATUS IoConnectInterrupt(PKINTERRUPT *Interrupt, PKSERVICE_ROUTINE ServiceRoutine, PVOID ServiceContext,
                            PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql, KIRQL SynchronizeIrql,
                            KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector, KAFFINITY ProcessorEnableMask,
                            BOOLEAN FloatingSave)
{
    KINTERRUPT Template = {
        .Type = InterruptObject,
        .Irql = Irql,
        .SynchronizeIrql = SynchronizeIrql,
        .ShareVector = ShareVector != FALSE,
        .Mode = InterruptMode,
        .Vector = Vector,
        .ServiceRoutine = ServiceRoutine,
        .ServiceContext = ServiceContext,
        .ActualLock = SpinLock,
        .ProcessorEnableMask = ProcessorEnableMask & KeQueryActiveProcessors(),
    };
    UNREFERENCED_PARAMETER(FloatingSave);
    IopCheckPassiveLevel((ULONG_PTR)IoConnectInterrupt);
    *Interrupt = NULL;
    if (ServiceRoutine == NULL || Vector >= KI_MAXIMUM_VECTOR || !IopIsDeviceLevel(Irql) ||
        !IopIsDeviceLevel(SynchronizeIrql) || SynchronizeIrql < Irql || Template.ProcessorEnableMask == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PKINTERRUPT Connected = HalAllocate(sizeof(*Connected), KI_CACHE_LINE);
    if (Connected == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *Connected = Template;
    if (SpinLock == NULL) {
        Connected->ActualLock = &Connected->SpinLock;
    }
    NTSTATUS Status = KiConnectInterrupt(Connected);
    if (!NT_SUCCESS(Status)) {
        HalFree(Connected);
        return Status;
    }
    *Interrupt = Connected;
    return Status;
}

VOID IoDisconnectInterrupt(PKINTERRUPT Interrupt)
{
    IopCheckPassiveLevel((ULONG_PTR)IoDisconnectInterrupt);
    KiDisconnectInterrupt(Interrupt);
    HalFree(Interrupt);
}

/* The stack. */

VOID IoGetStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit)
{
    HalQueryStackLimits(LowLimit, HighLimit);
}
