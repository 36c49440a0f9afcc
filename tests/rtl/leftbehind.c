/* What routines must not leave behind, by kind of routine. */
#define DBG 1

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>
#include <interlock/threadpool.h>

#include "support.h"

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
    static void (*const runs[])(void *) = {run_dpc, run_service, run_special_apc, run_normal_apc, run_item, run_pool};
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
