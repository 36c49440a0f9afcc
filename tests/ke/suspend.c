/* Suspension: of a running thread by an interrupt, of a waiting one by an APC or by converting its wait. */
#include "waittest.h"

#include <poll.h>
#include <unistd.h>

/* Wraps the host's Wait, to stop a thread that is about to sleep. */
static BOOLEAN (*host_wait)(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline);
static volatile ULONG *volatile held_word;
static sem_t about_to_sleep, may_sleep;

static BOOLEAN hooked_wait(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    if (deadline->Clock == HalNoDeadline && address == __atomic_load_n(&held_word, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&held_word, NULL, __ATOMIC_RELEASE);
        sem_post(&about_to_sleep);
        while (sem_wait(&may_sleep) != 0) {
        }
    }
    return host_wait(address, expected, deadline);
}

static BOOLEAN is_suspended_by_apc(PKTHREAD thread)
{
    return is_committed(thread) && thread->WaitReason == Suspended;
}

static void sleep_a_little(void)
{
    static const struct timespec time = {.tv_nsec = 2000000};
    nanosleep(&time, NULL);
}

/* A thread that runs, without calling anything. */
typedef struct runner {
    actor actor;
    volatile ULONG64 counter;
    volatile ULONG stop;
    void (*enter)(void);
    void (*leave)(void);
} runner;

static ULONG64 count_of(runner *r)
{
    return __atomic_load_n(&r->counter, __ATOMIC_RELAXED);
}

static void run_in_circles(void *argument)
{
    runner *r = argument;
    if (r->enter != NULL) {
        r->enter();
    }
    while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
        __atomic_add_fetch(&r->counter, 1, __ATOMIC_RELAXED);
    }
    if (r->leave != NULL) {
        r->leave();
    }
}

static void start_runner(runner *r, void (*enter)(void), void (*leave)(void))
{
    memset(r, 0, sizeof(*r));
    r->enter = enter;
    r->leave = leave;
    start_actor(&r->actor);
    tell(&r->actor, run_in_circles, r);
    await(count_of(r) != 0);
}

static void await_progress(runner *r)
{
    ULONG64 before = count_of(r);
    await(count_of(r) > before + 1000);
}

static void check_standstill(runner *r)
{
    ULONG64 before = count_of(r);
    sleep_a_little();
    assert_int_equal(count_of(r), before);
}

static void end_runner(runner *r)
{
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
    end_actor(&r->actor);
}

static void test_running_thread(void **state)
{
    runner r;
    (void)state;
    start_runner(&r, NULL, NULL);
    for (ULONG i = 0; i < 10; i += 1) {
        assert_int_equal(KeSuspendThread(r.actor.thread), 0);
        await(is_suspended_by_apc(r.actor.thread));
        if (i < 2) {
            check_standstill(&r);
        }
        assert_int_equal(KeResumeThread(r.actor.thread), 1);
        await_progress(&r);
    }
    end_runner(&r);
}

/* Resumed before it has stopped, the thread does not stop; suspended again, it does. */
static void test_suspend_and_resume_in_quick_succession(void **state)
{
    ULONG rounds = (ULONG)test_rounds(300);
    runner r;
    (void)state;
    start_runner(&r, NULL, NULL);
    for (ULONG i = 0; i < rounds; i += 1) {
        assert_int_equal(KeSuspendThread(r.actor.thread), 0);
        assert_int_equal(KeResumeThread(r.actor.thread), 1);
    }
    await_progress(&r);
    assert_int_equal(KeSuspendThread(r.actor.thread), 0);
    await(is_suspended_by_apc(r.actor.thread));
    check_standstill(&r);
    assert_int_equal(KeResumeThread(r.actor.thread), 1);
    await_progress(&r);
    end_runner(&r);
}

/* Blocked in the host, outside the library. */

typedef struct reader {
    actor actor;
    int pipe[2];
    volatile ULONG started;
    char byte;
    ssize_t got;
} reader;

static void read_byte(void *argument)
{
    reader *r = argument;
    __atomic_store_n(&r->started, 1, __ATOMIC_RELEASE);
#ifdef THREAD_SANITIZER
    /* It defers signals while a thread is in read, but not while it is in poll. */
    struct pollfd readable = {.fd = r->pipe[0], .events = POLLIN};
    while (poll(&readable, 1, -1) != 1) {
    }
#endif
    r->got = read(r->pipe[0], &r->byte, 1);
}

static void test_thread_blocked_in_the_host(void **state)
{
    reader r;
    (void)state;
    memset(&r, 0, sizeof(r));
    assert_int_equal(pipe(r.pipe), 0);
    start_actor(&r.actor);
    tell(&r.actor, read_byte, &r);
    await(__atomic_load_n(&r.started, __ATOMIC_ACQUIRE) && sleeps_in_the_host(r.actor.thread->ThreadId));
    assert_int_equal(KeSuspendThread(r.actor.thread), 0);
    await(is_suspended_by_apc(r.actor.thread));
    assert_int_equal(write(r.pipe[1], "x", 1), 1);
    sleep_a_little();
    assert_false(is_idle(&r.actor));
    assert_int_equal(KeResumeThread(r.actor.thread), 1);
    await(is_idle(&r.actor));
    assert_int_equal(r.got, 1);
    assert_int_equal(r.byte, 'x');
    end_actor(&r.actor);
    close(r.pipe[0]);
    close(r.pipe[1]);
}

/* What disables normal kernel APCs delays a suspension. */

static void raise_to_apc_level(void)
{
    KfRaiseIrql(APC_LEVEL);
}

static void raise_to_dispatch_level(void)
{
    KfRaiseIrql(DISPATCH_LEVEL);
}

static void lower_to_passive_level(void)
{
    KfLowerIrql(PASSIVE_LEVEL);
}

static void test_held_back(void **state)
{
    static const struct {
        const char *name;
        void (*enter)(void);
        void (*leave)(void);
    } barriers[] = {
        {"critical region", KeEnterCriticalRegion, KeLeaveCriticalRegion},
        {"guarded region", KeEnterGuardedRegion, KeLeaveGuardedRegion},
        {"APC_LEVEL", raise_to_apc_level, lower_to_passive_level},
        {"DISPATCH_LEVEL", raise_to_dispatch_level, lower_to_passive_level},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(barriers); i += 1) {
        runner r;
        print_message("# %s\n", barriers[i].name);
        start_runner(&r, barriers[i].enter, barriers[i].leave);
        assert_int_equal(KeSuspendThread(r.actor.thread), 0);
        await_progress(&r);
        __atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
        await(is_suspended_by_apc(r.actor.thread));
        assert_false(is_idle(&r.actor));
        assert_int_equal(KeResumeThread(r.actor.thread), 1);
        await(is_idle(&r.actor));
        end_runner(&r);
    }
}

/* Counts. */

static void test_nested(void **state)
{
    runner r;
    (void)state;
    start_runner(&r, NULL, NULL);
    assert_int_equal(KeResumeThread(r.actor.thread), 0);
    for (ULONG i = 0; i < 5; i += 1) {
        assert_int_equal(KeSuspendThread(r.actor.thread), i);
    }
    await(is_suspended_by_apc(r.actor.thread));
    for (ULONG i = 5; i > 1; i -= 1) {
        assert_int_equal(KeResumeThread(r.actor.thread), i);
        assert_true(is_suspended_by_apc(r.actor.thread));
    }
    check_standstill(&r);
    assert_int_equal(KeResumeThread(r.actor.thread), 1);
    await_progress(&r);
    assert_int_equal(KeResumeThread(r.actor.thread), 0);
    end_runner(&r);
}

static void suspend(void *thread)
{
    KeSuspendThread(thread);
}

static void test_limit(void **state)
{
    runner r;
    (void)state;
    start_runner(&r, NULL, NULL);
    for (ULONG i = 0; i < MAXIMUM_SUSPEND_COUNT; i += 1) {
        assert_int_equal(KeSuspendThread(r.actor.thread), i);
    }
    assert_int_equal(raised_by(suspend, r.actor.thread), STATUS_SUSPEND_COUNT_EXCEEDED);
    assert_int_equal(raised_by(suspend, r.actor.thread), STATUS_SUSPEND_COUNT_EXCEEDED);
    for (ULONG i = MAXIMUM_SUSPEND_COUNT; i > 0; i -= 1) {
        assert_int_equal(KeResumeThread(r.actor.thread), i);
    }
    await_progress(&r);
    end_runner(&r);
}

static void suspend_self(void *argument)
{
    *(PULONG)argument = KeSuspendThread(KeGetCurrentThread());
}

static void test_self(void **state)
{
    actor a = {0};
    ULONG previous = 77;
    (void)state;
    start_actor(&a);
    tell(&a, suspend_self, &previous);
    await(is_suspended_by_apc(a.thread));
    assert_false(is_idle(&a));
    assert_int_equal(KeSuspendThread(a.thread), 1);
    assert_int_equal(KeResumeThread(a.thread), 2);
    assert_int_equal(KeResumeThread(a.thread), 1);
    await(is_idle(&a));
    assert_int_equal(previous, 0);
    end_actor(&a);
}

/* A wait for any: the APC interrupts it, and afterwards it starts over. */
static void test_wait_for_any(void **state)
{
    waiter w;
    KEVENT pair[2];
    (void)state;
    start_waiters(&w, 1);
    for (ULONG count = 1; count <= 2; count += 1) {
        for (ULONG signaled = 0; signaled < 2; signaled += 1) {
            KeInitializeEvent(&pair[0], SynchronizationEvent, FALSE);
            KeInitializeEvent(&pair[1], SynchronizationEvent, FALSE);
            w.call = (wait_call){.count = count, .object = {&pair[0], &pair[1]}, .mode = UserMode};
            begin_wait(&w);
            assert_int_equal(KeSuspendThread(w.actor.thread), 0);
            await(is_suspended_by_apc(w.actor.thread));
            assert_true(has_no_waiters(&pair[0]));
            if (signaled) {
                KeSetEvent(&pair[count - 1], 0, FALSE);
                assert_true(is_suspended_by_apc(w.actor.thread));
                assert_int_equal(KeReadStateEvent(&pair[count - 1]), 1);
                assert_int_equal(KeResumeThread(w.actor.thread), 1);
            } else {
                assert_int_equal(KeResumeThread(w.actor.thread), 1);
                await(is_committed(w.actor.thread) && !has_no_waiters(&pair[0]));
                KeSetEvent(&pair[count - 1], 0, FALSE);
            }
            assert_int_equal(end_wait(&w), STATUS_WAIT_0 + (NTSTATUS)count - 1);
            assert_int_equal(KeReadStateEvent(&pair[count - 1]), 0);
        }
    }
    end_waiters(&w, 1);
}

/* A timeout that expires meanwhile ends the wait when it is resumed. */
static void test_timeout_of_a_wait_for_any(void **state)
{
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    for (LONGLONG interval = 20 * MILLISECOND;; interval *= 2) {
        LARGE_INTEGER time = relative(interval);
        w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &time};
        tell(&w.actor, perform_wait, &w);
        await(is_committed(w.actor.thread) || is_idle(&w.actor));
        HAL_DEADLINE deadline = w.actor.thread->WaitDeadline;
        KeSuspendThread(w.actor.thread);
        await(is_suspended_by_apc(w.actor.thread) || is_idle(&w.actor));
        BOOLEAN in_time = HalDispatch.QueryInterruptTime() < deadline.Time && !is_idle(&w.actor);
        if (in_time) {
            await(HalDispatch.QueryInterruptTime() > deadline.Time + MILLISECOND);
            assert_true(is_suspended_by_apc(w.actor.thread));
        }
        KeResumeThread(w.actor.thread);
        assert_int_equal(end_wait(&w), STATUS_TIMEOUT);
        if (in_time) {
            break;
        }
    }
    end_waiters(&w, 1);
}

/* Lightweight suspend: the wait is converted. */

static ULONG kept_flags(PKTHREAD thread)
{
    return thread->WaitRegister & (KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER);
}

static void check_converted(waiter *w)
{
    PKTHREAD thread = w->actor.thread;
    ULONG expected = 0;
    if (w->call.mode == UserMode) {
        expected |= KI_WAIT_SUSPENDED_USER_MODE;
    }
    if (w->call.timeout != NULL) {
        expected |= KI_WAIT_SUSPENDED_TIMER;
    }
    assert_int_equal(wait_state(thread), WaitSuspended);
    assert_int_equal(thread->State, Waiting);
    assert_int_equal(kept_flags(thread), expected);
    assert_int_equal(thread->WaitBlockCount, w->call.count);
    for (ULONG i = 0; i < w->call.count; i += 1) {
        assert_int_equal(thread->WaitBlockList[i].BlockState, WaitBlockSuspended);
        assert_true(has_no_waiters(w->call.object[i]));
    }
}

static void check_committed_again(waiter *w)
{
    PKTHREAD thread = w->actor.thread;
    assert_int_equal(wait_state(thread), WaitCommitted);
    assert_int_equal(kept_flags(thread), 0);
    for (ULONG i = 0; i < w->call.count; i += 1) {
        assert_int_equal(thread->WaitBlockList[i].BlockState, WaitBlockActive);
        assert_false(has_no_waiters(w->call.object[i]));
    }
}

static KEVENT events[5];

static wait_call all_events(ULONG count, EVENT_TYPE type)
{
    wait_call call = {.count = count, .all = TRUE};
    for (ULONG i = 0; i < count; i += 1) {
        KeInitializeEvent(&events[i], type, FALSE);
        call.object[i] = &events[i];
    }
    return call;
}

static int use_lightweight(void **state)
{
    KiDisableLightWeightSuspend = 0;
    return start_watch(state);
}

#define LIGHTWEIGHT(test) cmocka_unit_test_setup_teardown(test, use_lightweight, stop_watch)

static void test_wait_for_all_is_converted(void **state)
{
    LARGE_INTEGER long_time = relative(600 * SECOND);
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG n = 0; n < 4 * 2 * 2; n += 1) {
        ULONG count = 1 + n % 4;
        w.call = all_events(count, SynchronizationEvent);
        w.call.mode = n / 4 % 2 ? UserMode : KernelMode;
        w.call.timeout = n / 8 ? &long_time : NULL;
        begin_wait(&w);
        assert_int_equal(KeSuspendThread(w.actor.thread), 0);
        check_converted(&w);
        assert_int_equal(KeSuspendThread(w.actor.thread), 1);
        check_converted(&w);
        /* Signals do not reach it, */
        for (ULONG i = 0; i + 1 < count; i += 1) {
            KeSetEvent(&events[i], 0, FALSE);
            assert_int_equal(KeReadStateEvent(&events[i]), 1);
        }
        assert_int_equal(KeResumeThread(w.actor.thread), 2);
        check_converted(&w);
        assert_int_equal(KeResumeThread(w.actor.thread), 1);
        check_committed_again(&w);
        /* again while it waits as before, */
        assert_int_equal(KeSuspendThread(w.actor.thread), 0);
        KeSetEvent(&events[count - 1], 0, FALSE);
        check_converted(&w);
        /* and when it is resumed it finds all of them. */
        assert_int_equal(KeResumeThread(w.actor.thread), 1);
        assert_false(still_waits(&w));
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        for (ULONG i = 0; i < count; i += 1) {
            assert_int_equal(KeReadStateEvent(&events[i]), 0);
            assert_true(has_no_waiters(&events[i]));
        }
    }
    end_waiters(&w, 1);
}

/* More objects than a thread has blocks of its own. */
static void test_wait_for_all_with_blocks_of_the_caller(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    w.call = all_events(5, NotificationEvent);
    begin_wait(&w);
    KeSuspendThread(w.actor.thread);
    check_converted(&w);
    KeResumeThread(w.actor.thread);
    check_committed_again(&w);
    for (ULONG i = 0; i < 5; i += 1) {
        assert_true(still_waits(&w));
        KeSetEvent(&events[i], 0, FALSE);
    }
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    end_waiters(&w, 1);
}

/* What is signaled meanwhile may be taken by others. */
static void test_others_may_take_the_objects(void **state)
{
    waiter w[2];
    (void)state;
    start_waiters(w, 2);
    w[0].call = all_events(2, SynchronizationEvent);
    begin_wait(&w[0]);
    begin_wait_for(&w[1], &events[0]);
    KeSuspendThread(w[0].actor.thread);
    KeSetEvent(&events[1], 0, FALSE);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w[1]), STATUS_SUCCESS);
    assert_int_equal(wait_state(w[0].actor.thread), WaitSuspended);
    KeResumeThread(w[0].actor.thread);
    check_committed_again(&w[0]);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    end_waiters(w, 2);
}

/* A mutant among the objects becomes the thread's own when the resume satisfies the wait. */

static void release_mutant(void *mutant)
{
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
}

static void test_mutant_on_resume(void **state)
{
    waiter w;
    KMUTANT mutant;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeMutant(&mutant, TRUE);
    w.call = all_events(1, SynchronizationEvent);
    w.call.object[w.call.count++] = &mutant;
    begin_wait(&w);
    KeSuspendThread(w.actor.thread);
    KeReleaseMutant(&mutant, 0, FALSE, FALSE);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(KeReadStateMutant(&mutant), 1);
    KeResumeThread(w.actor.thread);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(KeReadStateMutant(&mutant), 0);
    assert_ptr_equal(mutant.OwnerThread, w.actor.thread);
    run_on(&w.actor, release_mutant, &mutant);
    assert_int_equal(KeReadStateMutant(&mutant), 1);
    end_waiters(&w, 1);
}

static void test_delay_is_converted(void **state)
{
    LARGE_INTEGER long_time = relative(600 * SECOND);
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    w.call = (wait_call){.count = 0, .timeout = &long_time, .alertable = TRUE, .mode = UserMode};
    begin_wait(&w);
    ULONGLONG deadline = w.actor.thread->WaitDeadline.Time;
    KeSuspendThread(w.actor.thread);
    check_converted(&w);
    KeResumeThread(w.actor.thread);
    check_committed_again(&w);
    assert_int_equal(w.actor.thread->WaitDeadline.Time, deadline);
    KeAlertThread(w.actor.thread, UserMode);
    assert_int_equal(end_wait(&w), STATUS_ALERTED);
    end_waiters(&w, 1);
}

/* Alerts and APCs wait until the thread is resumed. */

static volatile ULONG apc_calls;

static void count_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
    __atomic_add_fetch(&apc_calls, 1, __ATOMIC_RELEASE);
}

static ULONG calls(void)
{
    return __atomic_load_n(&apc_calls, __ATOMIC_ACQUIRE);
}

static void test_interruptions_wait_for_the_resume(void **state)
{
    waiter w;
    KAPC apc;
    (void)state;
    apc_calls = 0;
    start_waiters(&w, 1);
    w.call = all_events(2, NotificationEvent);
    w.call.alertable = TRUE;
    begin_wait(&w);
    KeSuspendThread(w.actor.thread);
    KeInitializeApc(&apc, w.actor.thread, OriginalApcEnvironment, count_apc, NULL, NULL, KernelMode, NULL);
    assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
    check_converted(&w);
    assert_int_equal(calls(), 0);
    KeResumeThread(w.actor.thread);
    await(calls() == 1);
    await(still_waits(&w));

    KeSuspendThread(w.actor.thread);
    KeAlertThread(w.actor.thread, KernelMode);
    check_converted(&w);
    KeResumeThread(w.actor.thread);
    assert_int_equal(end_wait(&w), STATUS_ALERTED);
    assert_true(has_no_waiters(&events[0]));
    assert_true(has_no_waiters(&events[1]));
    end_waiters(&w, 1);
}

/* The deadline stays; while the thread is suspended it does not count, and one that has passed counts on resume. */
static void run_deadline(waiter *w, const wait_call *call, NTSTATUS expected, BOOLEAN resume_late)
{
    for (LONGLONG interval = 20 * MILLISECOND;; interval *= 2) {
        LARGE_INTEGER time = relative(interval);
        w->call = *call;
        w->call.timeout = &time;
        tell(&w->actor, perform_wait, w);
        await(is_committed(w->actor.thread) || is_idle(&w->actor));
        ULONGLONG deadline = w->actor.thread->WaitDeadline.Time;
        KeSuspendThread(w->actor.thread);
        BOOLEAN in_time = wait_state(w->actor.thread) == WaitSuspended;
        if (in_time && resume_late) {
            await(HalDispatch.QueryInterruptTime() > deadline + MILLISECOND);
            assert_int_equal(wait_state(w->actor.thread), WaitSuspended);
        }
        KeResumeThread(w->actor.thread);
        assert_int_equal(end_wait(w), expected);
        assert_true(HalDispatch.QueryInterruptTime() >= deadline);
        if (in_time) {
            return;
        }
    }
}

static void test_deadlines(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    wait_call all = all_events(2, SynchronizationEvent);
    wait_call delay = {.count = 0};
    for (ULONG late = 0; late < 2; late += 1) {
        run_deadline(&w, &all, STATUS_TIMEOUT, (BOOLEAN)late);
        run_deadline(&w, &delay, STATUS_SUCCESS, (BOOLEAN)late);
    }
    end_waiters(&w, 1);
}

/*
 * The thread reads its register while it is suspended, finds that it has no deadline, and has not yet gone to sleep
 * when the resume is complete: it must not sleep through the deadline that counts again.
 */
static void test_resume_meets_a_thread_about_to_sleep(void **state)
{
    LARGE_INTEGER time = relative(50 * MILLISECOND);
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    w.call = (wait_call){.count = 0, .timeout = &time};
    begin_wait(&w);
    __atomic_store_n(&held_word, &w.actor.thread->WakeWord, __ATOMIC_RELEASE);
    KeSuspendThread(w.actor.thread);
    if (wait_state(w.actor.thread) == WaitSuspended) {
        HalDispatch.Wake(&w.actor.thread->WakeWord, 1);
        while (sem_wait(&about_to_sleep) != 0) {
        }
    }
    KeResumeThread(w.actor.thread);
    sem_post(&may_sleep);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    held_word = NULL;
    end_waiters(&w, 1);
}

/* If the conversion is not allowed, the APC suspends. */

static void wait_in_critical_region(void *argument)
{
    KeEnterCriticalRegion();
    perform_wait(argument);
    KeLeaveCriticalRegion();
}

static void wait_at_apc_level(void *argument)
{
    KfRaiseIrql(APC_LEVEL);
    perform_wait(argument);
    KfLowerIrql(PASSIVE_LEVEL);
}

static void test_not_converted_where_apcs_are_held_back(void **state)
{
    void (*const ways[])(void *) = {wait_in_critical_region, wait_at_apc_level};
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG i = 0; i < ARRAYSIZE(ways); i += 1) {
        w.call = all_events(2, SynchronizationEvent);
        tell(&w.actor, ways[i], &w);
        await(still_waits(&w));
        KeSuspendThread(w.actor.thread);
        check_committed_again(&w);
        KeSetEvent(&events[0], 0, FALSE);
        KeSetEvent(&events[1], 0, FALSE);
        /* The wait is satisfied, and the thread is suspended when it leaves the region that delayed it. */
        await(is_suspended_by_apc(w.actor.thread));
        assert_int_equal(w.status, STATUS_WAIT_0);
        KeResumeThread(w.actor.thread);
        await(is_idle(&w.actor));
    }
    end_waiters(&w, 1);
}

static void test_disabled(void **state)
{
    LARGE_INTEGER long_time = relative(600 * SECOND);
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    KiDisableLightWeightSuspend = 1;
    w.call = all_events(2, SynchronizationEvent);
    w.call.timeout = &long_time;
    begin_wait(&w);
    KeSuspendThread(w.actor.thread);
    await(is_suspended_by_apc(w.actor.thread));
    KeSetEvent(&events[0], 0, FALSE);
    KeSetEvent(&events[1], 0, FALSE);
    assert_true(is_suspended_by_apc(w.actor.thread));
    KeResumeThread(w.actor.thread);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);

    w.call = (wait_call){.count = 0, .timeout = &long_time, .alertable = TRUE};
    begin_wait(&w);
    KeSuspendThread(w.actor.thread);
    await(is_suspended_by_apc(w.actor.thread));
    KeResumeThread(w.actor.thread);
    await(is_committed(w.actor.thread) && w.actor.thread->WaitReason == DelayExecution);
    KeAlertThread(w.actor.thread, KernelMode);
    assert_int_equal(end_wait(&w), STATUS_ALERTED);
    KiDisableLightWeightSuspend = 0;
    end_waiters(&w, 1);
}

/* The interrupt that suspends a running thread delivers no other APCs: they wait for a safe place. */

static void test_other_apcs_stay_queued(void **state)
{
    runner r;
    KAPC apc;
    (void)state;
    apc_calls = 0;
    start_runner(&r, NULL, NULL);
    KeInitializeApc(&apc, r.actor.thread, OriginalApcEnvironment, count_apc, NULL, NULL, KernelMode, NULL);
    assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
    KeSuspendThread(r.actor.thread);
    await(is_suspended_by_apc(r.actor.thread));
    KeResumeThread(r.actor.thread);
    await_progress(&r);
    assert_int_equal(calls(), 0);
    end_runner(&r);
    assert_int_equal(calls(), 1);
}

/* Suspensions against signals, with real threads: no signal is lost, none counts twice. */
static void test_suspend_against_signal(void **state)
{
    ULONG rounds = (ULONG)test_rounds(400);
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG i = 0; i < rounds; i += 1) {
        w.call = all_events(2, SynchronizationEvent);
        w.call.all = i % 2 != 0;
        tell(&w.actor, perform_wait, &w);
        if (i % 4 < 2) {
            await(still_waits(&w));
        }
        KeSetEvent(&events[0], 0, FALSE);
        KeSuspendThread(w.actor.thread);
        if (w.call.all) {
            KeSetEvent(&events[1], 0, FALSE);
        }
        KeResumeThread(w.actor.thread);
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        assert_int_equal(KeReadStateEvent(&events[0]), 0);
        assert_int_equal(KeReadStateEvent(&events[1]), 0);
        assert_true(has_no_waiters(&events[0]));
        assert_true(has_no_waiters(&events[1]));
    }
    end_waiters(&w, 1);
}

static void test_setting(void **state)
{
    const char *setting = getenv("INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND");
    (void)state;
    assert_int_equal(KiDisableLightWeightSuspend, setting != NULL && strcmp(setting, "1") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_setting),
        WATCHED(test_running_thread),
        WATCHED(test_suspend_and_resume_in_quick_succession),
        WATCHED(test_thread_blocked_in_the_host),
        WATCHED(test_held_back),
        WATCHED(test_nested),
        WATCHED(test_limit),
        WATCHED(test_self),
        WATCHED(test_wait_for_any),
        WATCHED(test_timeout_of_a_wait_for_any),
        WATCHED(test_suspend_against_signal),
        WATCHED(test_other_apcs_stay_queued),
        LIGHTWEIGHT(test_wait_for_all_is_converted),
        LIGHTWEIGHT(test_wait_for_all_with_blocks_of_the_caller),
        LIGHTWEIGHT(test_others_may_take_the_objects),
        LIGHTWEIGHT(test_mutant_on_resume),
        LIGHTWEIGHT(test_delay_is_converted),
        LIGHTWEIGHT(test_interruptions_wait_for_the_resume),
        LIGHTWEIGHT(test_deadlines),
        LIGHTWEIGHT(test_resume_meets_a_thread_about_to_sleep),
        LIGHTWEIGHT(test_not_converted_where_apcs_are_held_back),
        LIGHTWEIGHT(test_disabled),
        LIGHTWEIGHT(test_suspend_against_signal),
    };
    sem_init(&about_to_sleep, 0, 0);
    sem_init(&may_sleep, 0, 0);
    host_wait = HalDispatch.Wait;
    HalDispatch.Wait = hooked_wait;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
