/* Each rule of src/io, broken on purpose: the bugcheck of Windows, and its kind. */
#include "iotest.h"

static PIRP kept;
static KDPC later;

static VOID never_cancelled(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoReleaseCancelSpinLock(irp->CancelIrql);
}

static PIRP own_irp(UCHAR major)
{
    PIRP irp = IoAllocateIrp(device->StackSize, FALSE);
    IoGetNextIrpStackLocation(irp)->MajorFunction = major;
    return irp;
}

/* Bugs of a dispatch routine. */

static NTSTATUS complete_twice(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    complete(irp, STATUS_SUCCESS, 0);
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS complete_pending(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    return complete(irp, STATUS_PENDING, 0);
}

static NTSTATUS leave_cancel_routine(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoSetCancelRoutine(irp, never_cancelled);
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS pend_unmarked(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    complete(irp, STATUS_SUCCESS, 0);
    return STATUS_PENDING;
}

static VOID complete_in_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)second;
    complete(first, STATUS_SUCCESS, 0);
}

static NTSTATUS pend_unmarked_for_another(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    kept = irp;
    return STATUS_PENDING;
}

static NTSTATUS mark_and_return(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS forget(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    (void)irp;
    return STATUS_SUCCESS;
}

static NTSTATUS return_another_status(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    complete(irp, STATUS_UNSUCCESSFUL, 0);
    return STATUS_SUCCESS;
}

static NTSTATUS return_raised(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL old;
    (void)target;
    complete(irp, STATUS_SUCCESS, 0);
    KeRaiseIrql(APC_LEVEL, &old);
    return STATUS_SUCCESS;
}

static NTSTATUS keep_cancel_lock(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL old;
    (void)target;
    complete(irp, STATUS_SUCCESS, 0);
    IoAcquireCancelSpinLock(&old);
    return STATUS_SUCCESS;
}

static NTSTATUS complete_at_high_level(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL old;
    (void)target;
    KeRaiseIrql(HIGH_LEVEL, &old);
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS free_while_in_use(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoFreeIrp(irp);
    return STATUS_PENDING;
}

static void send(void *dispatch_routine)
{
    on_request = *(PDRIVER_DISPATCH *)dispatch_routine;
    IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL);
}

static void test_dispatch(void **state)
{
    static const struct row {
        PDRIVER_DISPATCH routine;
        ULONG code;
        ULONG kind;
    } rows[] = {
        {complete_pending, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x06},
        {leave_cancel_routine, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x07},
        {pend_unmarked, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x23d},
        {mark_and_return, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x23e},
        {forget, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x226},
        {return_another_status, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x224},
        {return_raised, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x05},
        {keep_cancel_lock, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x05},
        {complete_at_high_level, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x0e},
        {free_while_in_use, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x20b},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAYSIZE(rows); i++) {
        PDRIVER_DISPATCH routine = rows[i].routine;
        expect_violation(rows[i].code, rows[i].kind, send, &routine);
    }
}

/* The second completion finds the packet beyond its stack. */
static NTSTATUS keep_it(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    (void)target;
    (void)irp;
    (void)context;
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static void complete_own_twice(void *argument)
{
    IO_STATUS_BLOCK result;
    (void)argument;
    on_request = complete_twice;
    PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, NULL, &result);
    KIRQL old;
    KeRaiseIrql(APC_LEVEL, &old); /* it stays until it is delivered */
    IoCallDriver(device, irp);
}

static void test_completed_twice(void **state)
{
    (void)state;
    expect_bugcheck(MULTIPLE_IRP_COMPLETE_REQUESTS, complete_own_twice, NULL);
}

/* Another thread completes a packet that was not marked. */
static void complete_kept_in_dpc(void *argument)
{
    (void)argument;
    on_request = pend_unmarked_for_another;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_FLUSH_BUFFERS);
    KeInitializeDpc(&later, complete_in_dpc, NULL);
    KeInsertQueueDpc(&later, kept, NULL);
    IoTestFinish(request, NULL);
}

static NTSTATUS do_not_mark(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    (void)target;
    (void)context;
    assert_true(irp->PendingReturned);
    return STATUS_SUCCESS;
}

static PDEVICE_OBJECT filter;

static NTSTATUS filter_does_not_mark(PDEVICE_OBJECT target, PIRP irp)
{
    if (target == filter) {
        IoCopyCurrentIrpStackLocationToNext(irp);
        IoSetCompletionRoutine(irp, do_not_mark, NULL, TRUE, TRUE, TRUE);
        return IoCallDriver(device, irp);
    }
    IoMarkIrpPending(irp);
    complete(irp, STATUS_SUCCESS, 0);
    return STATUS_PENDING;
}

static void send_through_filter(void *argument)
{
    (void)argument;
    on_request = filter_does_not_mark;
    IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &filter);
    IoAttachDeviceToDeviceStack(filter, device);
    IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL);
}

static NTSTATUS raise_in_routine(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    KIRQL old;
    (void)target;
    (void)irp;
    (void)context;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static NTSTATUS succeed(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    return complete(irp, STATUS_SUCCESS, 0);
}

static void raise_in_completion(void *argument)
{
    PIRP irp = own_irp(IRP_MJ_FLUSH_BUFFERS);
    (void)argument;
    on_request = succeed;
    IoSetCompletionRoutine(irp, raise_in_routine, NULL, TRUE, TRUE, TRUE);
    IoCallDriver(device, irp);
}

static void not_taken_back(void *argument)
{
    (void)argument;
    on_request = succeed;
    IoCallDriver(device, own_irp(IRP_MJ_FLUSH_BUFFERS));
}

static void test_completion(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x23d, complete_kept_in_dpc, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x228, send_through_filter, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xfa, raise_in_completion, NULL);
    expect_bugcheck(INCONSISTENT_IRP, not_taken_back, NULL);
}

/* Sending. */

static void send_no_irp(void *argument)
{
    (void)argument;
    IRP irp = {.Type = 0};
    IoCallDriver(device, &irp);
}

static void send_to_nothing(void *argument)
{
    DEVICE_OBJECT none = {.Type = 0};
    (void)argument;
    IoCallDriver(&none, own_irp(IRP_MJ_FLUSH_BUFFERS));
}

static void send_at_high_level(void *argument)
{
    KIRQL old;
    PIRP irp = own_irp(IRP_MJ_FLUSH_BUFFERS);
    (void)argument;
    KeRaiseIrql(HIGH_LEVEL, &old);
    IoCallDriver(device, irp);
}

static void send_cancelable(void *argument)
{
    PIRP irp = own_irp(IRP_MJ_FLUSH_BUFFERS);
    (void)argument;
    IoSetCancelRoutine(irp, never_cancelled);
    IoCallDriver(device, irp);
}

static NTSTATUS send_on(PDEVICE_OBJECT target, PIRP irp)
{
    return IoCallDriver(target, irp);
}

static void run_out_of_locations(void *argument)
{
    PIRP irp = own_irp(IRP_MJ_FLUSH_BUFFERS);
    (void)argument;
    on_request = send_on;
    IoCallDriver(device, irp);
}

static void send_no_function(void *argument)
{
    (void)argument;
    IoCallDriver(device, own_irp(IRP_MJ_MAXIMUM_FUNCTION + 1));
}

static void test_sending(void **state)
{
    (void)state;
    expect_bugcheck(INCONSISTENT_IRP, send_no_function, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x03, send_no_irp, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x04, send_to_nothing, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x10, send_at_high_level, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x203, send_cancelable, NULL);
    expect_bugcheck(NO_MORE_IRP_STACK_LOCATIONS, run_out_of_locations, NULL);
}

/* Cancelling. */

static VOID keep_the_lock(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    (void)irp;
}

static VOID release_at_wrong_level(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    (void)irp;
    IoReleaseCancelSpinLock(APC_LEVEL);
}

static PDRIVER_CANCEL wrong_cancel;

static NTSTATUS keep_cancelable(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    IoSetCancelRoutine(irp, wrong_cancel);
    return STATUS_PENDING;
}

static void cancel_wrongly(void *argument)
{
    wrong_cancel = *(PDRIVER_CANCEL *)argument;
    on_request = keep_cancelable;
    IoTestCancel(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS));
}

static void cancel_wrongly_at_dispatch_level(void *argument)
{
    KIRQL old;
    wrong_cancel = *(PDRIVER_CANCEL *)argument;
    on_request = keep_cancelable;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_FLUSH_BUFFERS);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    IoTestCancel(request);
}

static void cancel_completed(void *argument)
{
    PIRP irp = own_irp(IRP_MJ_FLUSH_BUFFERS);
    (void)argument;
    on_request = succeed;
    IoSetCompletionRoutine(irp, keep_it, NULL, TRUE, TRUE, TRUE);
    IoCallDriver(device, irp);
    IoSetCancelRoutine(irp, never_cancelled); /* by a driver that no longer has it */
    IoCancelIrp(irp);
}

static void test_cancelling(void **state)
{
    PDRIVER_CANCEL keeps = keep_the_lock, wrong_level = release_at_wrong_level;
    (void)state;
    expect_bugcheck(IRQL_UNEXPECTED_VALUE, cancel_wrongly, &keeps);
    expect_bugcheck(IRQL_UNEXPECTED_VALUE, cancel_wrongly, &wrong_level);
    expect_bugcheck(IRQL_UNEXPECTED_VALUE, cancel_wrongly_at_dispatch_level, &keeps);
    expect_bugcheck(CANCEL_STATE_IN_COMPLETED_IRP, cancel_completed, NULL);
}

/* Packets, devices, timers, MDLs. */

static void free_no_irp(void *argument)
{
    IRP irp = {.Type = 0};
    (void)argument;
    IoFreeIrp(&irp);
}

static void free_twice(void *argument)
{
    union {
        IRP irp;
        UCHAR memory[sizeof(IRP) + sizeof(IO_STACK_LOCATION)];
    } place;
    (void)argument;
    IoInitializeIrp(&place.irp, IoSizeOfIrp(1), 1);
    IoFreeIrp(&place.irp);
    IoFreeIrp(&place.irp);
}

static void free_thread_irp(void *argument)
{
    (void)argument;
    IoFreeIrp(IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, NULL, NULL));
}

static void delete_attached(void *argument)
{
    (void)argument;
    IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &filter);
    IoAttachDeviceToDeviceStack(filter, device);
    IoDeleteDevice(filter);
}

static void delete_twice(void *argument)
{
    (void)argument;
    IoDeleteDevice(device); /* it is open, so it stays */
    IoDeleteDevice(device);
}

static void detach_nothing(void *argument)
{
    (void)argument;
    IoDetachDevice(device);
}

static VOID no_tick(PDEVICE_OBJECT target, PVOID context)
{
    (void)target;
    (void)context;
}

static void initialize_timer_twice(void *argument)
{
    (void)argument;
    IoInitializeTimer(device, no_tick, NULL);
    IoInitializeTimer(device, no_tick, NULL);
}

static VOID unload_nothing(PDRIVER_OBJECT self)
{
    (void)self;
}

static void leave_device_behind(void *argument)
{
    (void)argument;
    driver->DriverUnload = unload_nothing;
    IoTestClose(file);
    IoTestUnloadDriver(driver);
}

static void test_objects(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x01, free_no_irp, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x01, free_twice, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x02, free_thread_irp, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x201, delete_attached, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x240, delete_twice, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x202, detach_nothing, NULL);
    expect_violation(DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x0a, initialize_timer_twice, NULL);
    expect_bugcheck(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS, leave_device_behind, NULL);
}

static UCHAR buffer[64];

static PMDL some_mdl(void)
{
    return IoAllocateMdl(buffer, sizeof(buffer), FALSE, FALSE, NULL);
}

static void lock_twice(void *argument)
{
    PMDL mdl = some_mdl();
    (void)argument;
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
}

static void map_twice(void *argument)
{
    PMDL mdl = some_mdl();
    (void)argument;
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    MmMapLockedPages(mdl, KernelMode);
    MmMapLockedPages(mdl, KernelMode);
}

static void map_unlocked(void *argument)
{
    (void)argument;
    MmMapLockedPages(some_mdl(), KernelMode);
}

static void unlock_partial(void *argument)
{
    PMDL mdl = some_mdl(), part = some_mdl();
    (void)argument;
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    IoBuildPartialMdl(mdl, part, buffer, 0);
    MmUnlockPages(part);
}

static void unlock_unlocked(void *argument)
{
    (void)argument;
    MmUnlockPages(some_mdl());
}

static void free_mapped(void *argument)
{
    PMDL mdl = some_mdl();
    (void)argument;
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    MmMapLockedPages(mdl, KernelMode);
    IoFreeMdl(mdl);
}

static void free_locked(void *argument)
{
    PMDL mdl = some_mdl();
    (void)argument;
    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    IoFreeMdl(mdl);
}

static void part_outside(void *argument)
{
    PMDL mdl = some_mdl(), part = some_mdl();
    (void)argument;
    IoBuildPartialMdl(mdl, part, buffer + 1, sizeof(buffer));
}

static void test_mdls(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xb0, lock_twice, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xb2, map_twice, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xb3, map_unlocked, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xb4, unlock_partial, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xb8, free_mapped, NULL);
    expect_violation(PFN_LIST_CORRUPT, 0x07, unlock_unlocked, NULL);
    expect_bugcheck(PROCESS_HAS_LOCKED_PAGES, free_locked, NULL);
    expect_bugcheck(TARGET_MDL_TOO_SMALL, part_outside, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_dispatch), WATCHED(test_completed_twice), WATCHED(test_completion), WATCHED(test_sending),
        WATCHED(test_cancelling), WATCHED(test_objects), WATCHED(test_mdls),
    };
    return cmocka_run_group_tests_name("io/violations", tests, NULL, NULL);
}
