/* Drivers and devices: loading, names, stacks, references, extensions, timers and work items. */
#include "iotest.h"

#include <interlock/verifier.h>

static UNICODE_STRING device_name = RTL_CONSTANT_STRING(u"\\Device\\Named");
static UNICODE_STRING link_name = RTL_CONSTANT_STRING(u"\\DosDevices\\NamedLink");
static UNICODE_STRING event_name = RTL_CONSTANT_STRING(u"\\KernelObjects\\IoTestEvent");

static NTSTATUS succeed(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    return complete(irp, STATUS_SUCCESS, 0);
}

/* Loading. */

static NTSTATUS failing_entry(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    static const WCHAR end[] = u"\\Services\\Failing";
    assert_true(path->Length > sizeof(end));
    assert_memory_equal((PUCHAR)path->Buffer + path->Length - (sizeof(end) - 2), end, sizeof(end) - 2);
    assert_int_equal(self->DriverName.Length, (sizeof(u"\\Driver\\Failing") - 2));
    assert_int_equal(self->Type, IO_TYPE_DRIVER);
    return STATUS_NO_SUCH_DEVICE;
}

static NTSTATUS plain_entry(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    PDEVICE_OBJECT created;
    (void)path;
    assert_int_equal(IoCreateDevice(self, 0, NULL, FILE_DEVICE_UNKNOWN, 0, TRUE, &created), STATUS_SUCCESS);
    assert_null(created->DeviceExtension);
    assert_true(created->Flags & DO_DEVICE_INITIALIZING);
    return STATUS_SUCCESS;
}

static void test_load(void **state)
{
    PDRIVER_OBJECT other, same;
    PFILE_OBJECT opened;
    (void)state;
    assert_int_equal(IoTestLoadDriver(failing_entry, "Failing", &other), STATUS_NO_SUCH_DEVICE);
    assert_null(other);
    assert_int_equal(IoTestLoadDriver(failing_entry, "Failing", &other), STATUS_NO_SUCH_DEVICE); /* the name is free again */
    assert_int_equal(IoTestLoadDriver(plain_entry, "Plain", &other), STATUS_SUCCESS);
    assert_int_equal(IoTestLoadDriver(plain_entry, "Plain", &same), STATUS_OBJECT_NAME_COLLISION);
    assert_false(other->DeviceObject->Flags & DO_DEVICE_INITIALIZING);
    assert_true(other->DeviceObject->Flags & DO_EXCLUSIVE);
    /* a driver without dispatch routines */
    assert_int_equal(IoTestOpen(other->DeviceObject, &opened), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(IoTestUnloadDriver(other), STATUS_INVALID_DEVICE_REQUEST);
    other->DriverUnload = driver_unload;
    assert_int_equal(IoTestUnloadDriver(other), STATUS_SUCCESS);
}

static void test_busy_driver_stays(void **state)
{
    (void)state;
    assert_int_equal(IoTestUnloadDriver(driver), STATUS_DEVICE_BUSY);
}

static void test_open_and_close(void **state)
{
    LONG before = creates, cleaned = cleanups, closed = closes;
    PFILE_OBJECT second;
    (void)state;
    assert_int_equal(device->ReferenceCount, 1);
    assert_int_equal(IoTestOpen(device, &second), STATUS_SUCCESS);
    assert_int_equal(creates, before + 1);
    assert_int_equal(device->ReferenceCount, 2);
    assert_ptr_equal(second->DeviceObject, device);
    assert_ptr_equal(IoGetRelatedDeviceObject(second), device);
    IoTestClose(second);
    assert_int_equal(cleanups, cleaned + 1);
    assert_int_equal(closes, closed + 1);
    assert_int_equal(device->ReferenceCount, 1);
}

/* Devices. */

static void test_create(void **state)
{
    PDEVICE_OBJECT created;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 100, NULL, FILE_DEVICE_DISK, FILE_DEVICE_SECURE_OPEN, FALSE, &created),
                     STATUS_SUCCESS);
    assert_int_equal(created->Type, IO_TYPE_DEVICE);
    assert_int_equal(created->DeviceType, FILE_DEVICE_DISK);
    assert_int_equal(created->Characteristics, FILE_DEVICE_SECURE_OPEN);
    assert_int_equal(created->StackSize, 1);
    assert_ptr_equal(created->DriverObject, driver);
    assert_ptr_equal(driver->DeviceObject, created);
    assert_ptr_equal(created->NextDevice, device);
    assert_int_equal((ULONG_PTR)created->DeviceExtension % MEMORY_ALLOCATION_ALIGNMENT, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(((PUCHAR)created->DeviceExtension)[i], 0);
    IoDeleteDevice(created);
    assert_ptr_equal(driver->DeviceObject, device);
}

static void test_names(void **state)
{
    PDEVICE_OBJECT created, again;
    PFILE_OBJECT opened, second;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 0, &device_name, FILE_DEVICE_UNKNOWN, 0, TRUE, &created), STATUS_SUCCESS);
    assert_true(created->Flags & DO_DEVICE_HAS_NAME);
    assert_int_equal(IoCreateDevice(driver, 0, &device_name, FILE_DEVICE_UNKNOWN, 0, FALSE, &again),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_null(again);
    assert_int_equal(IoCreateSymbolicLink(&link_name, &device_name), STATUS_SUCCESS);
    assert_int_equal(IoCreateSymbolicLink(&link_name, &device_name), STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(IoTestOpenByName(&link_name, &opened), STATUS_SUCCESS);
    assert_ptr_equal(opened->DeviceObject, created);
    assert_int_equal(IoTestOpen(created, &second), STATUS_ACCESS_DENIED); /* exclusive */
    assert_int_equal(IoTestOpenByName(&device_name, &second), STATUS_ACCESS_DENIED);
    assert_null(second);
    IoTestClose(opened);
    assert_int_equal(IoDeleteSymbolicLink(&link_name), STATUS_SUCCESS);
    assert_int_equal(IoDeleteSymbolicLink(&link_name), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(IoTestOpenByName(&link_name, &opened), STATUS_OBJECT_NAME_NOT_FOUND);
}

/* A device that is deleted while it is open is freed with the last file object. */
static void test_delete_open(void **state)
{
    PDEVICE_OBJECT created;
    PFILE_OBJECT opened, late;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 0, &device_name, FILE_DEVICE_UNKNOWN, 0, FALSE, &created), STATUS_SUCCESS);
    assert_int_equal(IoTestOpen(created, &opened), STATUS_SUCCESS);
    IoDeleteDevice(created);
    assert_ptr_equal(driver->DeviceObject, created);
    assert_int_equal(IoTestOpen(created, &late), STATUS_NO_SUCH_DEVICE);
    assert_int_equal(IoTestOpenByName(&device_name, &late), STATUS_OBJECT_NAME_NOT_FOUND);
    IoTestClose(opened);
    assert_ptr_equal(driver->DeviceObject, device);
}

static void test_stacks(void **state)
{
    PDEVICE_OBJECT middle, top, below = NULL;
    (void)state;
    device->AlignmentRequirement = FILE_LONG_ALIGNMENT;
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &middle), STATUS_SUCCESS);
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &top), STATUS_SUCCESS);
    assert_ptr_equal(IoAttachDeviceToDeviceStack(middle, device), device);
    assert_int_equal(middle->StackSize, 2);
    assert_int_equal(middle->AlignmentRequirement, FILE_LONG_ALIGNMENT);
    assert_int_equal(IoAttachDeviceToDeviceStackSafe(top, device, &below), STATUS_SUCCESS); /* on top, not on the target */
    assert_ptr_equal(below, middle);
    assert_int_equal(top->StackSize, 3);
    assert_ptr_equal(IoGetAttachedDevice(device), top);
    assert_ptr_equal(IoGetAttachedDeviceReference(device), top);
    ObDereferenceObject(top);
    assert_ptr_equal(IoGetLowerDeviceObject(top), middle);
    ObDereferenceObject(middle);
    assert_null(IoGetLowerDeviceObject(device));
    assert_ptr_equal(IoGetDeviceAttachmentBaseRef(top), device);
    ObDereferenceObject(device);
    assert_ptr_equal(IoGetRelatedDeviceObject(file), top);
    IoDetachDevice(middle);
    assert_ptr_equal(IoGetAttachedDevice(device), middle);
    IoDetachDevice(device);
    IoDeleteDevice(top);
    IoDeleteDevice(middle);
}

/* A device that is deleted with another one above goes when that is detached. */
static void test_delete_under_another(void **state)
{
    PDEVICE_OBJECT upper, lower;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &upper), STATUS_SUCCESS);
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &lower), STATUS_SUCCESS);
    assert_ptr_equal(IoAttachDeviceToDeviceStack(upper, lower), lower);
    IoDeleteDevice(lower);
    assert_ptr_equal(driver->DeviceObject, lower);
    assert_ptr_equal(IoGetLowerDeviceObject(upper), lower);
    ObDereferenceObject(lower);
    IoDetachDevice(lower);
    assert_ptr_equal(driver->DeviceObject, upper);
    IoDeleteDevice(upper);
}

static NTSTATUS fails_with_device(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    PDEVICE_OBJECT created;
    (void)path;
    IoCreateDevice(self, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &created);
    return STATUS_INSUFFICIENT_RESOURCES;
}

static void load_failing(void *argument)
{
    PDRIVER_OBJECT failed;
    (void)argument;
    IoTestLoadDriver(fails_with_device, "Failing", &failed);
}

/* A driver stays while another one is attached to its device, and must not leave a device behind when it fails to load. */
static void test_drivers_that_stay(void **state)
{
    PDEVICE_OBJECT upper;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &upper), STATUS_SUCCESS);
    IoTestClose(file);
    assert_ptr_equal(IoAttachDeviceToDeviceStack(upper, device), device);
    assert_int_equal(IoTestUnloadDriver(driver), STATUS_DEVICE_BUSY);
    IoDetachDevice(device);
    IoDeleteDevice(upper);
    assert_int_equal(IoTestOpen(device, &file), STATUS_SUCCESS);
    expect_bugcheck(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS, load_failing, NULL);
}

/* A file is closed even if memory is exhausted. */
static void test_close_without_memory(void **state)
{
    PFILE_OBJECT opened;
    LONG before = cleanups;
    (void)state;
    assert_int_equal(IoTestOpen(device, &opened), STATUS_SUCCESS);
    assert_true(VfBeginFaults());
    assert_true(VfNextFault());
    IoTestClose(opened);
    assert_false(VfNextFault()); /* nothing was allocated */
    VfEndFaults();
    assert_int_equal(cleanups, before + 1);
}

static void test_attach_to_deleted(void **state)
{
    PDEVICE_OBJECT upper, lower;
    PFILE_OBJECT opened;
    (void)state;
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &upper), STATUS_SUCCESS);
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &lower), STATUS_SUCCESS);
    assert_int_equal(IoTestOpen(lower, &opened), STATUS_SUCCESS);
    IoDeleteDevice(lower);
    assert_null(IoAttachDeviceToDeviceStack(upper, lower));
    IoTestClose(opened);
    IoDeleteDevice(upper);
}

static void test_driver_extension(void **state)
{
    static int id, other;
    PVOID memory, again;
    (void)state;
    assert_null(IoGetDriverObjectExtension(driver, &id));
    assert_int_equal(IoAllocateDriverObjectExtension(driver, &id, 40, &memory), STATUS_SUCCESS);
    assert_int_equal(IoAllocateDriverObjectExtension(driver, &id, 40, &again), STATUS_OBJECT_NAME_COLLISION);
    assert_null(again);
    assert_int_equal(IoAllocateDriverObjectExtension(driver, &other, 40, &again), STATUS_SUCCESS);
    assert_ptr_equal(IoGetDriverObjectExtension(driver, &id), memory);
    assert_ptr_equal(IoGetDriverObjectExtension(driver, &other), again);
}

/* The item's reference keeps the device. */
static KEVENT may_run, has_run;
static ULONG seen_type;

static VOID late_work(PDEVICE_OBJECT target, PVOID context)
{
    KeWaitForSingleObject(&may_run, Executive, KernelMode, FALSE, NULL);
    seen_type = *(PULONG)target->DeviceExtension;
    IoFreeWorkItem(context);
    KeSetEvent(&has_run, IO_NO_INCREMENT, FALSE);
}

static void test_work_item_keeps_device(void **state)
{
    PDEVICE_OBJECT created;
    PIO_WORKITEM item;
    (void)state;
    KeInitializeEvent(&may_run, NotificationEvent, FALSE);
    KeInitializeEvent(&has_run, NotificationEvent, FALSE);
    assert_int_equal(IoCreateDevice(driver, 16, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &created), STATUS_SUCCESS);
    *(PULONG)created->DeviceExtension = 0x1234;
    item = IoAllocateWorkItem(created);
    IoQueueWorkItem(item, late_work, DelayedWorkQueue, item);
    IoDeleteDevice(created);
    KeSetEvent(&may_run, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&has_run, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(seen_type, 0x1234);
}

static KEVENT ticked;

static VOID tick(PDEVICE_OBJECT target, PVOID context)
{
    assert_ptr_equal(target, device);
    assert_ptr_equal(context, &ticked);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeSetEvent(&ticked, IO_NO_INCREMENT, FALSE);
}

static void test_timer(void **state)
{
    (void)state;
    KeInitializeEvent(&ticked, SynchronizationEvent, FALSE);
    assert_int_equal(IoInitializeTimer(device, tick, &ticked), STATUS_SUCCESS);
    IoStartTimer(device);
    KeWaitForSingleObject(&ticked, Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&ticked, Executive, KernelMode, FALSE, NULL); /* again */
    IoStopTimer(device);
    KeFlushQueuedDpcs();
}

static KEVENT dpc_ran;

static VOID device_dpc(PKDPC dpc, PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    assert_ptr_equal(dpc, &device->Dpc);
    assert_ptr_equal(target, device);
    assert_ptr_equal(irp, (PIRP)0x1000);
    KeSetEvent(context, IO_NO_INCREMENT, FALSE);
}

static void test_dpc_request(void **state)
{
    (void)state;
    KeInitializeEvent(&dpc_ran, NotificationEvent, FALSE);
    IoInitializeDpcRequest(device, device_dpc);
    IoRequestDpc(device, (PIRP)0x1000, &dpc_ran);
    KeWaitForSingleObject(&dpc_ran, Executive, KernelMode, FALSE, NULL);
}

static void test_events(void **state)
{
    HANDLE first, second;
    PKEVENT event = IoCreateNotificationEvent(&event_name, &first);
    PKEVENT same = IoCreateNotificationEvent(&event_name, &second);
    (void)state;
    assert_non_null(event);
    assert_ptr_equal(event, same);
    assert_int_equal(KeReadStateEvent(event), 1);
    assert_int_equal(event->Header.Type & KOBJECT_TYPE_MASK, EventNotificationObject);
    ZwClose(first);
    ZwClose(second);
    event = IoCreateSynchronizationEvent(&event_name, &first);
    assert_non_null(event);
    assert_int_equal(event->Header.Type & KOBJECT_TYPE_MASK, EventSynchronizationObject);
    ZwClose(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_load),          WATCHED(test_busy_driver_stays), WATCHED(test_open_and_close),
        WATCHED(test_create),        WATCHED(test_names),             WATCHED(test_delete_open),
        WATCHED(test_stacks),        WATCHED(test_attach_to_deleted), WATCHED(test_driver_extension),
        WATCHED(test_work_item_keeps_device), WATCHED(test_timer),    WATCHED(test_dpc_request),
        WATCHED(test_events),        WATCHED(test_delete_under_another), WATCHED(test_drivers_that_stay),
        WATCHED(test_close_without_memory),
    };
    on_request = succeed;
    return cmocka_run_group_tests_name("io/device", tests, NULL, NULL);
}
