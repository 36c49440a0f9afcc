/* What routines must not leave behind, by kind of routine. */
#define DBG 1

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>

#include "support.h"
#include "withsetting.h"

#define RETURNED_WITH_LOCK 0x494C0003

static KSPIN_LOCK spin;
static FAST_MUTEX mutex;
static RTL_CRITICAL_SECTION section;
static KEVENT done;

typedef enum left { NOTHING, LOCK, REGION, GUARDED_REGION, LEVEL } left;

static void leave(left what)
{
    KIRQL irql;
    switch (what) {
    case LOCK:
        if (KeGetCurrentIrql() >= DISPATCH_LEVEL)
            KeAcquireSpinLockAtDpcLevel(&spin);
        else
            RtlEnterCriticalSection(&section);
        break;
    case REGION:
        KeEnterCriticalRegion();
        break;
    case GUARDED_REGION:
        KeEnterGuardedRegion();
        break;
    case LEVEL:
        KeRaiseIrql(KeGetCurrentIrql() + 1, &irql);
        break;
    default:
        break;
    }
}

static void wait_until_done(void)
{
    KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
}

static VOID dpc_routine(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    leave(*(left *)context);
    KeSetEvent(&done, 0, FALSE);
}

static void run_dpc(void *what)
{
    KDPC dpc;
    KIRQL irql;
    KeInitializeDpc(&dpc, dpc_routine, what);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeLowerIrql(irql); /* it runs here */
    wait_until_done();
}

static BOOLEAN serve(PKINTERRUPT interrupt, PVOID context)
{
    (void)interrupt;
    leave(*(left *)context);
    return TRUE;
}

static void run_service(void *what)
{
    PKINTERRUPT interrupt;
    if (!NT_SUCCESS(IoConnectInterrupt(&interrupt, serve, what, NULL, 5, 5, 5, Latched, FALSE, 1, FALSE)))
        fail_msg("no interrupt");
    KeFireInterrupt(interrupt, 0);
    IoDisconnectInterrupt(interrupt);
}

static VOID kernel_routine(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)normal;
    (void)context;
    (void)argument2;
    if (*argument1 != NULL)
        leave(**(left **)argument1);
}

static VOID normal_routine(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    leave(*(left *)context);
}

static void run_apc(PVOID what, BOOLEAN special)
{
    KAPC apc;
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, kernel_routine, NULL,
                    special ? NULL : normal_routine, KernelMode, special ? NULL : what);
    KeInsertQueueApc(&apc, special ? what : NULL, NULL, 0);
}

static void run_special_apc(void *what)
{
    run_apc(what, TRUE);
}

static void run_normal_apc(void *what)
{
    run_apc(what, FALSE);
}

static VOID work_routine(PVOID context)
{
    leave(*(left *)context);
    KeSetEvent(&done, 0, FALSE);
}

static void run_item(void *what)
{
    WORK_QUEUE_ITEM item;
    ExInitializeWorkItem(&item, work_routine, what);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    wait_until_done();
}

static VOID NTAPI pool_routine(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    leave(*(left *)context);
    KeSetEvent(&done, 0, FALSE);
}

static void run_pool(void *what)
{
    TpSimpleTryPost(pool_routine, what, NULL);
    wait_until_done();
}

/* The routines of a driver. */

static left entry_leaves, dispatch_leaves, completion_leaves, cancel_leaves, start_leaves, unload_leaves;
static PDEVICE_OBJECT device;

static NTSTATUS complete(PIRP irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static VOID cancel_read(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoReleaseCancelSpinLock(irp->CancelIrql);
    complete(irp, STATUS_CANCELLED);
    leave(cancel_leaves);
}

static VOID start_write(PDEVICE_OBJECT target, PIRP irp)
{
    IoStartNextPacket(target, FALSE);
    complete(irp, STATUS_SUCCESS);
    leave(start_leaves);
}

static NTSTATUS dispatch(PDEVICE_OBJECT target, PIRP irp)
{
    switch (IoGetCurrentIrpStackLocation(irp)->MajorFunction) {
    case IRP_MJ_READ:
        IoMarkIrpPending(irp);
        IoSetCancelRoutine(irp, cancel_read);
        return STATUS_PENDING;
    case IRP_MJ_WRITE:
        IoMarkIrpPending(irp);
        IoStartPacket(target, irp, NULL, NULL);
        return STATUS_PENDING;
    default:
        complete(irp, STATUS_SUCCESS);
        leave(dispatch_leaves);
        return STATUS_SUCCESS;
    }
}

static VOID unload(PDRIVER_OBJECT driver)
{
    IoDeleteDevice(driver->DeviceObject);
    leave(unload_leaves);
}

static NTSTATUS entry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    NTSTATUS status = IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
    (void)path;
    driver->DriverUnload = unload;
    driver->DriverStartIo = start_write;
    for (int i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        driver->MajorFunction[i] = dispatch;
    leave(entry_leaves);
    return status;
}

static NTSTATUS completion(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    (void)target;
    (void)irp;
    (void)context;
    leave(completion_leaves);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

/* Every routine of a driver once; *who leaves what. */
static void run_driver(left *who, left what)
{
    PDRIVER_OBJECT driver;
    PFILE_OBJECT file;
    *who = what;
    IoTestLoadDriver(entry, "Left", &driver);
    IoTestOpen(device, &file);
    IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), NULL);
    IoTestFinish(IoTestWrite(file, NULL, 0, 0), NULL);
    PIO_TEST_REQUEST read = IoTestRead(file, NULL, 0, 0);
    IoTestCancel(read);
    IoTestFinish(read, NULL);
    PIRP irp = IoAllocateIrp(device->StackSize, FALSE);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_FLUSH_BUFFERS;
    IoSetCompletionRoutine(irp, completion, NULL, TRUE, TRUE, TRUE);
    IoCallDriver(device, irp);
    IoFreeIrp(irp);
    IoTestClose(file);
    IoTestUnloadDriver(driver);
}

#define RUN_DRIVER(who)                                                                                                \
    static void run_##who(void *what)                                                                                  \
    {                                                                                                                  \
        run_driver(&who##_leaves, *(left *)what);                                                                      \
    }
RUN_DRIVER(entry)
RUN_DRIVER(dispatch)
RUN_DRIVER(completion)
RUN_DRIVER(cancel)
RUN_DRIVER(start)
RUN_DRIVER(unload)

static VOID notified(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    leave(*(left *)context);
}

static void run_notification(void *what)
{
    PCALLBACK_OBJECT callback;
    if (!NT_SUCCESS(ExCreateCallback(&callback, NULL, TRUE, TRUE)))
        fail_msg("no callback object");
    PVOID registration = ExRegisterCallback(callback, notified, what);
    ExNotifyCallback(callback, NULL, NULL);
    ExUnregisterCallback(registration);
    ObDereferenceObject(callback);
}

static VOID NTAPI leaves_later(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)context;
    RtlEnterCriticalSection(&section);
    TpCallbackLeaveCriticalSectionOnCompletion(instance, &section);
    KeSetEvent(&done, 0, FALSE);
}

typedef struct row {
    void (*run)(void *what);
    left what;
    ULONG code;
    uint64_t kind;
} row;

#define VIOLATION DRIVER_VERIFIER_DETECTED_VIOLATION

static const row rows[] = {
    {run_dpc, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_dpc, REGION, TIMER_OR_DPC_INVALID, 4},
    {run_service, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_service, LEVEL, VIOLATION, 0x111},
    {run_special_apc, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_special_apc, LEVEL, IRQL_UNEXPECTED_VALUE, 2 << 16 | 1 << 8},
    {run_normal_apc, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_normal_apc, LEVEL, IRQL_UNEXPECTED_VALUE, 1 << 16 | 2},
    {run_item, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_pool, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_entry, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_entry, REGION, VIOLATION, 0xC5},
    {run_entry, LEVEL, IRQL_UNEXPECTED_VALUE, 1 << 16},
    {run_dispatch, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_dispatch, GUARDED_REGION, VIOLATION, 0xC5},
    {run_dispatch, LEVEL, DRIVER_VERIFIER_IOMANAGER_VIOLATION, 0x05},
    {run_completion, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_completion, REGION, VIOLATION, 0xC5},
    {run_completion, LEVEL, VIOLATION, 0xFA},
    {run_cancel, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_cancel, REGION, VIOLATION, 0xC5},
    {run_cancel, LEVEL, IRQL_UNEXPECTED_VALUE, 1 << 16},
    {run_start, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_start, REGION, VIOLATION, 0xC5},
    {run_start, LEVEL, IRQL_UNEXPECTED_VALUE, 3 << 16 | 2 << 8},
    {run_unload, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_unload, REGION, VIOLATION, 0xC5},
    {run_notification, LOCK, VIOLATION, RETURNED_WITH_LOCK},
    {run_notification, REGION, VIOLATION, 0xC5},
    {run_notification, LEVEL, IRQL_UNEXPECTED_VALUE, 1 << 16},
};

/* The first parameter is the routine. */
static const row by_routine[] = {
    {run_dpc, LEVEL, IRQL_NOT_LESS_OR_EQUAL, 0},     {run_special_apc, REGION, APC_INDEX_MISMATCH, 0},
    {run_normal_apc, REGION, APC_INDEX_MISMATCH, 0}, {run_item, REGION, APC_INDEX_MISMATCH, 0},
    {run_item, GUARDED_REGION, APC_INDEX_MISMATCH, 0}, {run_item, LEVEL, WORKER_THREAD_RETURNED_AT_BAD_IRQL, 0},
    {run_pool, REGION, APC_INDEX_MISMATCH, 0},       {run_pool, LEVEL, WORKER_THREAD_RETURNED_AT_BAD_IRQL, 0},
};

static int initialize(void **state)
{
    (void)state;
    KeInitializeSpinLock(&spin);
    ExInitializeFastMutex(&mutex);
    RtlInitializeCriticalSection(&section);
    KeInitializeEvent(&done, SynchronizationEvent, FALSE);
    return 0;
}

static void run_row(void *argument)
{
    const row *r = argument;
    left what = r->what;
    r->run(&what);
    for (;;) /* the routine returns after its signal */
        wait_until_done();
}

static void test_left_behind(void **state)
{
    (void)state;
    for (unsigned index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
        expect_violation(rows[index].code, rows[index].kind, run_row, (void *)&rows[index]);
    for (unsigned index = 0; index < sizeof(by_routine) / sizeof(by_routine[0]); index++)
        expect_bugcheck(by_routine[index].code, run_row, (void *)&by_routine[index]);
}

/* A routine that leaves nothing behind runs normally, also on a thread that holds something. */
static void test_nothing_left(void **state)
{
    static void (*const runs[])(void *) = {run_dpc,  run_service, run_special_apc, run_normal_apc, run_item,
                                           run_pool, run_entry,   run_notification};
    left nothing = NOTHING;
    (void)state;
    for (unsigned index = 0; index < sizeof(runs) / sizeof(runs[0]); index++) {
        RtlEnterCriticalSection(&section);
        runs[index](&nothing);
        RtlLeaveCriticalSection(&section);
    }
    TpSimpleTryPost(leaves_later, NULL, NULL);
    wait_until_done();
    RtlEnterCriticalSection(&section);
    RtlLeaveCriticalSection(&section);
    assert_int_equal(KdCheckReleased(), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_left, initialize),
        cmocka_unit_test_setup(test_left_behind, initialize),
    };
    default_setting("INTERLOCK_VERIFIER", "1");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
