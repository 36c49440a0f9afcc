/*
 * Violations that a test expects in its own process: the next request, cancellation and device find everything as it was. Also
 * dispatch routines that are left by a raised status or by the longjmp of a test framework.
 */
#include "iotest.h"

#include <interlock/verifier.h>

#include <pthread.h>
#include <setjmp.h>

static PIRP irp;

static NTSTATUS keep_packet(PDEVICE_OBJECT target, PIRP done, PVOID context)
{
    (void)target;
    (void)done;
    (void)context;
    return STATUS_MORE_PROCESSING_REQUIRED;
}

/* A packet of the test's own, which it frees whatever has become of it. */
static void prepare_packet(void)
{
    static UCHAR memory[IoSizeOfIrp(2)] DECLSPEC_ALIGN(16);
    irp = (PIRP)memory;
    IoInitializeIrp(irp, sizeof(memory), 2);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_FLUSH_BUFFERS;
    IoSetCompletionRoutine(irp, keep_packet, NULL, TRUE, TRUE, TRUE);
}

static NTSTATUS succeed(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    return complete(request, STATUS_SUCCESS, 0);
}

static NTSTATUS forget(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    (void)request;
    return STATUS_SUCCESS;
}

static NTSTATUS stop_inside(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    (void)request;
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 1, 2, 3, 4);
}

static NTSTATUS complete_cancelable(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    IoSetCancelRoutine(request, (PDRIVER_CANCEL)(VOID (*)(VOID))forget);
    return complete(request, STATUS_SUCCESS, 0);
}

static NTSTATUS return_with_cancel_lock(PDEVICE_OBJECT target, PIRP request)
{
    KIRQL old;
    (void)target;
    complete(request, STATUS_SUCCESS, 0);
    IoAcquireCancelSpinLock(&old);
    return STATUS_SUCCESS;
}

static VOID keep_cancel_lock(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    (void)request;
}

static NTSTATUS pend_cancelable(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    IoMarkIrpPending(request);
    IoSetCancelRoutine(request, keep_cancel_lock);
    return STATUS_PENDING;
}

static void send_packet(void *routine)
{
    on_request = *(PDRIVER_DISPATCH *)routine;
    prepare_packet();
    IoCallDriver(device, irp);
}

static void cancel_packet(void *routine)
{
    send_packet(routine);
    IoCancelIrp(irp);
}

static void detach_nothing(void *routine)
{
    (void)routine;
    IoDetachDevice(device);
}

static PDEVICE_OBJECT attached;

static void delete_attached(void *routine)
{
    (void)routine;
    IoDeleteDevice(attached);
}

static void remove_from_idle_queue(void *routine)
{
    (void)routine;
    KeRemoveDeviceQueue(&device->DeviceQueue);
}

static void release_unheld(void *routine)
{
    IO_REMOVE_LOCK lock;
    (void)routine;
    IoInitializeRemoveLock(&lock, 0, 0, 0);
    IoReleaseRemoveLock(&lock, &lock);
}

static VOID cancel_properly(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    IoReleaseCancelSpinLock(request->CancelIrql);
    complete(request, STATUS_CANCELLED, 0);
}

static NTSTATUS pend_properly(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    IoMarkIrpPending(request);
    IoSetCancelRoutine(request, cancel_properly);
    return STATUS_PENDING;
}

static void everything_works(void)
{
    PIO_TEST_REQUEST request;
    PDEVICE_OBJECT created;
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_false(KeAreApcsDisabled());
    on_request = succeed;
    assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL), STATUS_SUCCESS);
    on_request = pend_properly;
    request = IoTestSend(file, IRP_MJ_FLUSH_BUFFERS);
    assert_true(IoTestCancel(request));
    assert_int_equal(IoTestFinish(request, NULL), STATUS_CANCELLED);
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &created), STATUS_SUCCESS);
    IoDeleteDevice(created);
}

static void *on_another_thread(void *argument)
{
    everything_works();
    return argument;
}

static const struct row {
    void (*run)(void *routine);
    PDRIVER_DISPATCH routine;
    ULONG code;
    ULONG_PTR kind; /* 0: any */
} rows[] = {
    {send_packet, forget, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x226},
    {send_packet, stop_inside, MANUALLY_INITIATED_CRASH, 1},
    {send_packet, complete_cancelable, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x07},
    {send_packet, return_with_cancel_lock, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x05},
    {cancel_packet, pend_cancelable, IRQL_UNEXPECTED_VALUE, 0},
    {detach_nothing, NULL, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x202},
    {delete_attached, NULL, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x201},
    {remove_from_idle_queue, NULL, DEVICE_QUEUE_NOT_BUSY, 0},
    {release_unheld, NULL, DRIVER_VERIFIER_DETECTED_VIOLATION, 0xd5},
};

static void test_in_process(void **state)
{
    VF_BUGCHECK stop;
    PDEVICE_OBJECT upper;
    pthread_t thread;
    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned index = 0; index < ARRAYSIZE(rows); index++) {
            PDRIVER_DISPATCH routine = rows[index].routine;
            assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &upper), STATUS_SUCCESS);
            if (rows[index].run == delete_attached) {
                attached = upper;
                assert_ptr_equal(IoAttachDeviceToDeviceStack(upper, device), device);
            }
            assert_int_equal(VfExpectBugCheck(rows[index].run, &routine, &stop), rows[index].code);
            if (rows[index].kind != 0)
                assert_int_equal(stop.Parameter[0], rows[index].kind);
            assert_int_equal(stop.LocksHeld, 0);
            if (rows[index].run == delete_attached)
                IoDetachDevice(device);
            IoDeleteDevice(upper);
            everything_works();
        }
    }
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, NULL), 0);
    pthread_join(thread, NULL);
}

/* A dispatch routine that expects the bugcheck of a request below, and completes its own request afterwards. */
static NTSTATUS expect_below(PDEVICE_OBJECT target, PIRP request)
{
    PDRIVER_DISPATCH wrong = stop_inside;
    (void)target;
    assert_int_equal(VfExpectBugCheck(send_packet, &wrong, NULL), MANUALLY_INITIATED_CRASH);
    return complete(request, STATUS_SUCCESS, 0);
}

static void test_inside_a_dispatch_routine(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        on_request = expect_below;
        assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL), STATUS_SUCCESS);
    }
    everything_works();
}

/* A raised status leaves dispatch routines, too. */
static NTSTATUS raise_status(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    (void)request;
    ExRaiseStatus(STATUS_ACCESS_VIOLATION);
}

static void send_and_catch(void)
{
    PDRIVER_DISPATCH raises = raise_status;
    volatile NTSTATUS caught = STATUS_SUCCESS;
    __try {
        send_packet(&raises);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        caught = GetExceptionCode();
    }
    assert_int_equal(caught, STATUS_ACCESS_VIOLATION);
}

static NTSTATUS catch_below(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    send_and_catch();
    return complete(request, STATUS_SUCCESS, 0);
}

static void test_raised_status(void **state)
{
    (void)state;
    send_and_catch();
    everything_works();
    on_request = catch_below;
    assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL), STATUS_SUCCESS);
    everything_works();
}

/* A failed assertion inside a dispatch routine: the next tests do not suffer, however deep their stack is. */
static jmp_buf runner;

static NTSTATUS fail_inside(PDEVICE_OBJECT target, PIRP request)
{
    (void)target;
    (void)request;
    longjmp(runner, 1);
}

static __attribute__((noinline)) void overwrite_stack(unsigned char byte)
{
    volatile unsigned char below[8192];
    for (unsigned index = 0; index < sizeof(below); index++)
        below[index] = byte;
}

static __attribute__((noinline)) void works_deeper(unsigned depth)
{
    volatile unsigned char frame[512];
    frame[0] = (unsigned char)depth;
    if (depth != 0)
        works_deeper(depth - 1);
    else
        everything_works();
    (void)frame[0];
}

static void test_left_by_longjmp(void **state)
{
    PDRIVER_DISPATCH fails = fail_inside;
    (void)state;
    for (volatile unsigned depth = 0; depth < 16; depth++) {
        if (setjmp(runner) == 0)
            send_packet(&fails);
        if (depth % 2)
            overwrite_stack((unsigned char)(depth * 17));
        works_deeper(depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_in_process),
        WATCHED(test_inside_a_dispatch_routine),
        WATCHED(test_raised_status),
        WATCHED(test_left_by_longjmp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
