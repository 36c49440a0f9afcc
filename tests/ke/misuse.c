/* Each documented misuse ends in its bugcheck or raises its status. */
#include "waittest.h"

static KEVENT event;
static KSEMAPHORE semaphore;
static KMUTANT mutant;
static KQUEUE queue;

static void initialize_objects(void)
{
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeSemaphore(&semaphore, 1, 1);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeQueue(&queue, 1);
}

/* Waits that cannot be issued at DISPATCH_LEVEL. */

static void wait_without_timeout(void)
{
    wait_for(&event, NULL);
}

static void wait_with_timeout(void)
{
    LARGE_INTEGER time = relative(1);
    wait_for(&event, &time);
}

static void wait_until_a_past_time(void)
{
    LARGE_INTEGER time = {.QuadPart = 1};
    wait_for(&event, &time);
}

static void wait_for_a_signaled_object(void)
{
    wait_for(&semaphore, NULL);
}

static void wait_for_any(void)
{
    perform(&(wait_call){.count = 2, .object = {&event, &semaphore}});
}

static void wait_for_all(void)
{
    perform(&(wait_call){.count = 2, .object = {&event, &semaphore}, .all = TRUE});
}

static void acquire_mutant(void)
{
    wait_for(&mutant, NULL);
}

static void delay(void)
{
    LARGE_INTEGER time = relative(1);
    KeDelayExecutionThread(KernelMode, FALSE, &time);
}

static void remove_entry(void)
{
    KeRemoveQueue(&queue, KernelMode, NULL);
}

static void wait_for_gate(void)
{
    KGATE gate;
    KeInitializeGate(&gate);
    KeWaitForGate(&gate, Executive, KernelMode);
}

typedef void wait_function(void);
static wait_function *const waits[] = {
    wait_without_timeout, wait_with_timeout, wait_until_a_past_time, wait_for_a_signaled_object, wait_for_any,
    wait_for_all,         acquire_mutant,    delay,                  remove_entry,               wait_for_gate,
};

static void wait_at_dispatch_level(void *wait)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    (*(wait_function **)wait)();
}

static void wait_holding_a_spin_lock(void *wait)
{
    KSPIN_LOCK lock;
    KIRQL irql;
    KeInitializeSpinLock(&lock);
    KeAcquireSpinLock(&lock, &irql);
    (*(wait_function **)wait)();
}

static void test_wait_at_dispatch_level(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(waits); i += 1) {
        wait_function *wait = waits[i];
        initialize_objects();
        expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, wait_at_dispatch_level, &wait);
    }
    wait_function *wait = waits[0];
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, wait_holding_a_spin_lock, &wait);
}

static void call_wait(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    (*(wait_function **)context)();
}

static void wait_in_dpc(void *wait)
{
    KDPC dpc;
    KeInitializeDpc(&dpc, call_wait, wait);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeFlushQueuedDpcs();
}

static void test_wait_in_a_dpc(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(waits); i += 1) {
        wait_function *wait = waits[i];
        initialize_objects();
        expect_bugcheck(ATTEMPTED_SWITCH_FROM_DPC, wait_in_dpc, &wait);
    }
}

/* Polling is allowed: a timeout of 0, at any level, in a DPC too. */

static volatile NTSTATUS poll_statuses[3];

static void poll_objects(void)
{
    poll_statuses[0] = wait_for(&event, NO_TIME);
    poll_statuses[1] = wait_for(&semaphore, NO_TIME);
    poll_statuses[2] = perform(&(wait_call){.count = 2, .object = {&event, &semaphore}, .timeout = NO_TIME});
}

static void test_poll_at_dispatch_level(void **state)
{
    wait_function *poll = poll_objects;
    KIRQL irql;
    (void)state;
    for (ULONG in_dpc = 0; in_dpc < 2; in_dpc += 1) {
        initialize_objects();
        if (in_dpc) {
            wait_in_dpc(&poll);
        } else {
            KeRaiseIrql(DISPATCH_LEVEL, &irql);
            poll_objects();
            KeLowerIrql(irql);
        }
        assert_int_equal(poll_statuses[0], STATUS_TIMEOUT);
        assert_int_equal(poll_statuses[1], STATUS_SUCCESS);
        assert_int_equal(poll_statuses[2], STATUS_TIMEOUT);
    }
}

static void test_wait_at_apc_level(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    KIRQL irql;
    (void)state;
    initialize_objects();
    KeRaiseIrql(APC_LEVEL, &irql);
    NTSTATUS status = wait_for(&event, &time);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    KeLowerIrql(irql);
    assert_int_equal(status, STATUS_TIMEOUT);
}

/* Signaling is allowed up to DISPATCH_LEVEL, with threads to release. */
static void test_signal_at_dispatch_level(void **state)
{
    waiter w;
    KIRQL irql;
    (void)state;
    initialize_objects();
    start_waiters(&w, 1);
    begin_wait_for(&w, &event);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    LONG previous = KeSetEvent(&event, 0, FALSE);
    KeLowerIrql(irql);
    assert_int_equal(previous, 0);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    end_waiters(&w, 1);
}

/* Regions. */

static void leave_critical_region(void *unused)
{
    (void)unused;
    KeLeaveCriticalRegion();
}

static void leave_guarded_region(void *unused)
{
    (void)unused;
    KeLeaveGuardedRegion();
}

static void leave_the_wrong_region(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    KeLeaveGuardedRegion();
}

static void leave_twice(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    KeLeaveCriticalRegion();
}

static void test_regions(void **state)
{
    void (*const misuses[])(void *) = {leave_critical_region, leave_guarded_region, leave_the_wrong_region,
                                       leave_twice};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(misuses); i += 1) {
        expect_bugcheck(APC_INDEX_MISMATCH, misuses[i], NULL);
    }
}

/* Raised statuses: caught they are statuses, uncaught they are a bugcheck. */

static void release_foreign_mutant(void *unused)
{
    (void)unused;
    KeReleaseMutant(&mutant, 0, FALSE, FALSE);
}

static void release_foreign_mutex(void *unused)
{
    (void)unused;
    KeReleaseMutex(&mutant, FALSE);
}

static void acquire_too_often(void *unused)
{
    (void)unused;
    wait_for(&mutant, NULL);
    mutant.Header.SignalState = (LONG)0x80000000;
    wait_for(&mutant, NULL);
}

static void release_too_much(void *unused)
{
    (void)unused;
    KeReleaseSemaphore(&semaphore, 0, 1, FALSE);
}

static void suspend_too_often(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    for (ULONG i = 0; i <= MAXIMUM_SUSPEND_COUNT; i += 1) {
        KeSuspendThread(KeGetCurrentThread());
    }
}

static const struct {
    const char *name;
    void (*function)(void *unused);
    NTSTATUS status;
} raising[] = {
    {"mutant", release_foreign_mutant, STATUS_MUTANT_NOT_OWNED},
    {"mutex", release_foreign_mutex, STATUS_MUTANT_NOT_OWNED},
    {"mutant limit", acquire_too_often, STATUS_MUTANT_LIMIT_EXCEEDED},
    {"semaphore limit", release_too_much, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
    {"suspend limit", suspend_too_often, STATUS_SUSPEND_COUNT_EXCEEDED},
};

static void test_raised_statuses(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(raising); i += 1) {
        print_message("# %s\n", raising[i].name);
        initialize_objects();
        expect_bugcheck(KMODE_EXCEPTION_NOT_HANDLED, raising[i].function, NULL);
        assert_int_equal(raised_by(raising[i].function, NULL), raising[i].status);
        assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
        if (raising[i].function == acquire_too_often) {
            mutant.Header.SignalState = 0;
            KeReleaseMutant(&mutant, 0, FALSE, FALSE);
        }
        if (raising[i].function == suspend_too_often) {
            while (KeResumeThread(KeGetCurrentThread()) > 1) {
            }
            KeLeaveCriticalRegion();
        }
    }
}

static void test_wait_type(void **state)
{
    PVOID objects[] = {&semaphore};
    (void)state;
    initialize_objects();
    NTSTATUS status =
        KeWaitForMultipleObjects(1, objects, WaitNotification, Executive, KernelMode, FALSE, NO_TIME, NULL);
    assert_int_equal(status, STATUS_INVALID_PARAMETER_3);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_wait_at_dispatch_level),   WATCHED(test_wait_in_a_dpc), WATCHED(test_poll_at_dispatch_level),
        WATCHED(test_wait_at_apc_level),        WATCHED(test_signal_at_dispatch_level), WATCHED(test_regions),
        WATCHED(test_raised_statuses),          WATCHED(test_wait_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
