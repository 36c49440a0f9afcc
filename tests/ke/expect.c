/* Tests that expect a bugcheck: what is caught, and that the state is restored afterwards. */
#include "machine.h"

#include <interlock/ex.h>
#include <interlock/exception.h>
#include <interlock/verifier.h>

#include <pthread.h>
#include <signal.h>

static KEVENT event;
static KMUTEX mutex, second;
static ERESOURCE resource;
static FAST_MUTEX fast;
static int dpcs_run;

static void wait_at_dispatch_level(void *context)
{
    KIRQL old;

    (void)context;
    KeEnterCriticalRegion();
    KeEnterGuardedRegion();
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
}

static void at_high_level(void *context)
{
    KIRQL old;

    (void)context;
    KeRaiseIrql(HIGH_LEVEL, &old);
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 1, 2, 3, 4);
}

static void release_what_is_not_owned(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExReleaseResourceLite(&resource);
}

static void with_mutexes(void *context)
{
    KMUTEX own;

    (void)context;
    KeInitializeMutex(&own, 0);
    KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&own, Executive, KernelMode, FALSE, NULL);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void raise_in_try(void *context)
{
    (void)context;
    __try {
        __try {
            KeBugCheck(MANUALLY_INITIATED_CRASH);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            abort();
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        abort();
    }
}

static void raise_uncaught(void *context)
{
    (void)context;
    ExRaiseStatus(STATUS_ACCESS_VIOLATION);
}

static void waits(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc, (void)context, (void)argument1, (void)argument2;
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
}

static void counts(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc, (void)context, (void)argument1, (void)argument2;
    dpcs_run++;
}

static KDPC waiting_dpc, counting_dpc;

static void dpc_that_waits(void *context)
{
    KIRQL old;

    (void)context;
    KeInitializeDpc(&waiting_dpc, waits, NULL);
    KeInitializeDpc(&counting_dpc, counts, NULL);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeSetTargetProcessorDpc(&waiting_dpc, (CCHAR)KeGetCurrentProcessorNumber());
    KeSetTargetProcessorDpc(&counting_dpc, (CCHAR)KeGetCurrentProcessorNumber());
    KeInsertQueueDpc(&waiting_dpc, NULL, NULL);
    KeInsertQueueDpc(&counting_dpc, NULL, NULL);
    KeLowerIrql(old);
}

static void with_affinity(void *context)
{
    (void)context;
    KeSetSystemAffinityThread(1);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void set_without_waiting(void *context)
{
    (void)context;
    KeSetEvent(&event, IO_NO_INCREMENT, TRUE); /* the wait has to follow */
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void leave_region(void *context)
{
    (void)context;
    KeLeaveCriticalRegion();
}

static const struct {
    void (*routine)(void *context);
    ULONG code, mutexes;
} cases[] = {
    {wait_at_dispatch_level, IRQL_NOT_LESS_OR_EQUAL, 0},
    {at_high_level, MANUALLY_INITIATED_CRASH, 0},
    {release_what_is_not_owned, RESOURCE_NOT_OWNED, 0},
    {with_mutexes, MANUALLY_INITIATED_CRASH, 2},
    {raise_in_try, MANUALLY_INITIATED_CRASH, 0},
    {raise_uncaught, KMODE_EXCEPTION_NOT_HANDLED, 0},
    {dpc_that_waits, ATTEMPTED_SWITCH_FROM_DPC, 0},
    {with_affinity, MANUALLY_INITIATED_CRASH, 0},
    {set_without_waiting, MANUALLY_INITIATED_CRASH, 0},
    {leave_region, APC_INDEX_MISMATCH, 0},
};

static void take_mutexes(void *argument, unsigned index)
{
    (void)argument, (void)index;
    assert_int_equal(KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, &(LARGE_INTEGER){.QuadPart = 0}),
                     STATUS_SUCCESS);
    KeReleaseMutex(&mutex, FALSE);
}

static void everything_is_as_before(void)
{
    PKTHREAD thread = KeGetCurrentThread();
    KIRQL old;

    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_false(KeAreAllApcsDisabled());
    assert_false(KeAreApcsDisabled());
    assert_int_equal(KeReadStateMutex(&mutex), 1);
    assert_null(thread->ExceptionList);
    assert_null(thread->ExpectedBugCheck);
    assert_int_equal(thread->DpcDepth, 0);
    assert_int_equal(thread->ServiceDepth, 0);
    assert_false(thread->WaitNext);
    assert_false(thread->SystemAffinityActive);
    assert_true(IsListEmpty(&thread->MutantListHead));
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        assert_ptr_not_equal(KiOwnerThread(KiReadOwner(KiProcessorBlock[number])), thread);
    /* and it works */
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_false(thread->Prcb->DpcRoutineActive);
    KeLowerIrql(old);
    KeEnterCriticalRegion();
    assert_true(ExAcquireResourceExclusiveLite(&resource, FALSE));
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
    KeClearEvent(&event);
}

static void in_process_again_and_again(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    for (unsigned round = 0; round < 20; round++)
        for (size_t i = 0; i < ARRAYSIZE(cases); i++) {
            assert_int_equal(VfExpectBugCheck(cases[i].routine, NULL, round % 2 ? &stop : NULL), cases[i].code);
            everything_is_as_before();
            if (round % 2) {
                assert_int_equal(stop.Outcome, VfStopped);
                assert_int_equal(stop.Code, cases[i].code);
                assert_int_equal(stop.MutexesReleased, cases[i].mutexes);
                assert_non_null(strstr(stop.Report, "*** STOP: 0x"));
            }
        }
    run_threads(1, 60, take_mutexes, NULL); /* they are free for others */
    assert_int_equal(dpcs_run, 20);         /* the DPC behind the one that failed */
}

static void in_a_child(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(cases); i++) {
        assert_int_equal(VfExpectBugCheckInChild(cases[i].routine, NULL, &stop), cases[i].code);
        assert_int_equal(stop.Outcome, VfStopped);
        assert_non_null(strstr(stop.Report, "*** STOP: 0x"));
        everything_is_as_before();
    }
}

static void the_parameters(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    for (int child = 0; child < 2; child++) {
        (child ? VfExpectBugCheckInChild : VfExpectBugCheck)(at_high_level, NULL, &stop);
        for (ULONG i = 0; i < 4; i++)
            assert_int_equal(stop.Parameter[i], i + 1);
    }
}

static void nothing_happens(void *context)
{
    *(int *)context += 1;
}

static void without_a_bugcheck(void **state)
{
    VF_BUGCHECK stop;
    int calls = 0;

    (void)state;
    assert_int_equal(VfExpectBugCheck(nothing_happens, &calls, &stop), 0);
    assert_int_equal(stop.Outcome, VfReturned);
    assert_int_equal(stop.Report[0], '\0');
    assert_int_equal(calls, 1);
    assert_int_equal(VfExpectBugCheckInChild(nothing_happens, &calls, &stop), 0);
    assert_int_equal(stop.Outcome, VfReturned);
    assert_int_equal(calls, 1); /* the child has its own */
    everything_is_as_before();
}

static int leave_by(int how)
{
    VF_BUGCHECK stop;

    VF_EXPECT_BUGCHECK(&stop) {
        if (how == 0)
            return 0;
        if (how == 1)
            break;
        KeBugCheckEx(MANUALLY_INITIATED_CRASH, (ULONG_PTR)how, 0, 0, 0);
    }
    return (int)stop.Parameter[0] + 100;
}

static void as_a_statement(void **state)
{
    (void)state;
    assert_int_equal(leave_by(0), 0);
    everything_is_as_before();
    assert_int_equal(leave_by(1), 100);
    everything_is_as_before();
    assert_int_equal(leave_by(7), 107);
    everything_is_as_before();
}

static void expect_inside(void *context)
{
    (void)context;
    assert_int_equal(VfExpectBugCheck(wait_at_dispatch_level, NULL, NULL), IRQL_NOT_LESS_OR_EQUAL);
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 9, 0, 0, 0);
}

static void one_in_another(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    assert_int_equal(VfExpectBugCheck(expect_inside, NULL, &stop), MANUALLY_INITIATED_CRASH);
    assert_int_equal(stop.Parameter[0], 9);
    everything_is_as_before();
}

/* The state that the test itself is in stays. */
static void inside_a_region_with_a_mutex(void **state)
{
    (void)state;
    KeEnterCriticalRegion();
    KeWaitForSingleObject(&second, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(VfExpectBugCheck(with_mutexes, NULL, NULL), MANUALLY_INITIATED_CRASH);
    assert_int_equal(VfExpectBugCheck(wait_at_dispatch_level, NULL, NULL), IRQL_NOT_LESS_OR_EQUAL);
    assert_true(KeAreApcsDisabled());
    assert_int_equal(KeReadStateMutex(&second), 0);
    assert_int_equal(KeReadStateMutex(&mutex), 1);
    KeReleaseMutex(&second, FALSE);
    KeLeaveCriticalRegion();
    everything_is_as_before();
}

static void at_apc_level(void **state)
{
    KIRQL old;

    (void)state;
    KeRaiseIrql(APC_LEVEL, &old);
    assert_int_equal(VfExpectBugCheck(wait_at_dispatch_level, NULL, NULL), IRQL_NOT_LESS_OR_EQUAL);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    KeLowerIrql(old);
    everything_is_as_before();
}

/* What only works in a child. */

static void *fails(void *unused)
{
    (void)unused;
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 77, 0, 0, 0);
}

static void on_another_thread(void *context)
{
    pthread_t thread;

    (void)context;
    pthread_create(&thread, NULL, fails, NULL);
    pthread_join(thread, NULL);
}

static void with_a_lock_of_the_kernel(void *context)
{
    (void)context;
    KiEnterDispatcher(KiCurrentThread());
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void expect_on_another_thread(void *context)
{
    VfExpectBugCheck(on_another_thread, context, NULL);
}

static void expect_with_a_lock(void *context)
{
    VfExpectBugCheck(with_a_lock_of_the_kernel, context, NULL);
}

static void expect_at_dispatch_level(void *context)
{
    KIRQL old;

    KeRaiseIrql(DISPATCH_LEVEL, &old);
    VfExpectBugCheck(wait_at_dispatch_level, context, NULL);
}

static void what_is_not_caught(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    assert_int_equal(VfExpectBugCheckInChild(on_another_thread, NULL, &stop), MANUALLY_INITIATED_CRASH);
    assert_int_equal(stop.Parameter[0], 77);
    assert_int_equal(VfExpectBugCheckInChild(with_a_lock_of_the_kernel, NULL, &stop), MANUALLY_INITIATED_CRASH);
    /* in process they end the process */
    expect_bugcheck(MANUALLY_INITIATED_CRASH, expect_on_another_thread, NULL);
    expect_bugcheck(MANUALLY_INITIATED_CRASH, expect_with_a_lock, NULL);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, expect_at_dispatch_level, NULL);
}

static void dies(void *context)
{
    (void)context;
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}

static void exits(void *context)
{
    (void)context;
    _exit(3);
}

static void a_child_that_ends_otherwise(void **state)
{
    VF_BUGCHECK stop;

    (void)state;
    assert_int_equal(VfExpectBugCheckInChild(dies, NULL, &stop), 0);
    assert_int_equal(stop.Outcome, VfDied);
    assert_int_equal(stop.Code, SIGTERM);
    assert_int_equal(VfExpectBugCheckInChild(exits, NULL, &stop), 0);
    assert_int_equal(stop.Outcome, VfDied);
    assert_int_equal(stop.Code, 256 + 3);
}

/* An APC that the routine disabled is finally delivered. */
static int apcs_run;

static void count_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc, (void)routine, (void)context, (void)argument1, (void)argument2;
    apcs_run++;
}

static void queue_apc(void *context)
{
    static KAPC apc;

    (void)context;
    KeEnterGuardedRegion();
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, count_apc, NULL, NULL, KernelMode, NULL);
    KeInsertQueueApc(&apc, NULL, NULL, 0);
    require(apcs_run == 0);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void apcs_are_delivered(void **state)
{
    (void)state;
    assert_int_equal(VfExpectBugCheck(queue_apc, NULL, NULL), MANUALLY_INITIATED_CRASH);
    assert_int_equal(apcs_run, 1);
    everything_is_as_before();
}

static void with_a_queued_lock(void *context)
{
    static KSPIN_LOCK lock;
    KLOCK_QUEUE_HANDLE handle;

    (void)context;
    KeInitializeSpinLock(&lock);
    KeAcquireInStackQueuedSpinLock(&lock, &handle);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

/* It stays held, and the verifier counts it. Its notes are as before. */
static void a_held_lock_is_counted(void **state)
{
    BOOLEAN was = VfIsVerifierEnabled();
    VF_BUGCHECK stop;

    (void)state;
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_SUCCESS);
    assert_int_equal(VfExpectBugCheck(with_a_queued_lock, NULL, &stop), MANUALLY_INITIATED_CRASH);
    assert_int_equal(stop.LocksHeld, 1);
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        assert_int_equal(KiProcessorBlock[number]->HeldLocks, 0);
    if (!was)
        VfEnableVerifier(FALSE);
    everything_is_as_before();
}

static void acquire_twice(void *context)
{
    (void)context;
    ExAcquireFastMutex(&fast);
    ExAcquireFastMutex(&fast);
}

static void with_the_verifier(void **state)
{
    BOOLEAN was = VfIsVerifierEnabled();

    (void)state;
    ExInitializeFastMutex(&fast);
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_SUCCESS);
    assert_true(VfIsVerifierEnabled());
    assert_int_not_equal(VfExpectBugCheckInChild(acquire_twice, NULL, NULL), 0);
    in_process_again_and_again(state);
    if (!was) {
        assert_int_equal(VfEnableVerifier(FALSE), STATUS_SUCCESS);
        assert_false(VfIsVerifierEnabled());
    } else {
        assert_true(VfEnableVerifier(FALSE) == STATUS_NOT_SUPPORTED || VfEnableVerifier(TRUE) == STATUS_SUCCESS);
    }
}

/* Locks that were acquired before it was on are not reported, and later violations are still found. */

static KSPIN_LOCK old_lock, old_queued;
static volatile int holding, enabled;

static void hold_across_the_switch(void *argument, unsigned index)
{
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old;

    (void)argument, (void)index;
    KeAcquireSpinLock(&old_lock, &old);
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&old_queued, &handle);
    __atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&enabled, __ATOMIC_ACQUIRE))
        sched_yield();
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
    KeReleaseSpinLock(&old_lock, old);
}

static void release_a_free_lock(void *context)
{
    (void)context;
    KfRaiseIrql(DISPATCH_LEVEL);
    KeReleaseSpinLockFromDpcLevel(&old_lock);
}

static void locks_from_before(void **state)
{
    test_threads *holder;

    (void)state;
    holding = enabled = 0;
    holder = start_threads(1, hold_across_the_switch, NULL);
    while (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE))
        sched_yield();
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_SUCCESS);
    __atomic_store_n(&enabled, 1, __ATOMIC_RELEASE);
    join_threads(holder, 60);
    assert_int_equal(VfExpectBugCheck(release_a_free_lock, NULL, NULL), SPIN_LOCK_NOT_OWNED);
    assert_int_equal(VfEnableVerifier(FALSE), STATUS_SUCCESS);
    everything_is_as_before();
}

static void not_at_raised_levels(void **state)
{
    KIRQL old;

    (void)state;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(VfEnableVerifier(TRUE), STATUS_INVALID_DEVICE_STATE);
    KeLowerIrql(old);
}

static int set_up(void **state)
{
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeMutex(&mutex, 0);
    KeInitializeMutex(&second, 0);
    dpcs_run = 0;
    return 0;
}

static int set_up_group(void **state)
{
    (void)state;
    return ExInitializeResourceLite(&resource) == STATUS_SUCCESS ? 0 : 1;
}

static int tear_down_group(void **state)
{
    (void)state;
    return ExDeleteResourceLite(&resource) == STATUS_SUCCESS ? 0 : 1;
}

#define WITH_SET_UP(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    struct CMUnitTest tests[] = {
        WITH_SET_UP(in_process_again_and_again), WITH_SET_UP(in_a_child), WITH_SET_UP(the_parameters),
        WITH_SET_UP(without_a_bugcheck), WITH_SET_UP(as_a_statement), WITH_SET_UP(one_in_another),
        WITH_SET_UP(inside_a_region_with_a_mutex), WITH_SET_UP(at_apc_level), WITH_SET_UP(what_is_not_caught),
        WITH_SET_UP(a_child_that_ends_otherwise), WITH_SET_UP(apcs_are_delivered), WITH_SET_UP(a_held_lock_is_counted),
        WITH_SET_UP(with_the_verifier), WITH_SET_UP(locks_from_before),
        WITH_SET_UP(not_at_raised_levels),
    };
    if (VfIsVerifierEnabled() || KeNumberProcessors == 1)
        remove_case(tests, locks_from_before);
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
