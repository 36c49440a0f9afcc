/*
 * Steps of the clock while waits and timers are pending. The two clocks of the library run by offsets that the test
 * changes: the system's is set forward and back, the interrupt time leaps as if the machine had slept. Absolute
 * times follow the system clock and nothing else, relative ones follow the interrupt time and nothing else. Everything
 * is hours away and every step is a day, so the time that the test takes makes no difference.
 */
#include "objecttest.h"

#include <pthread.h>
#include <unistd.h>

#include <interlock/ex.h>
#include <interlock/rtl.h>

#include "ke/timer.h"
#include "ke/wait.h"
#include "rtl/tpp.h"

#define HOUR (10000000LL * 3600)
#define DAY (24 * HOUR)
#define LOOK 10000 /* how often a sleeper checks the clocks: 1 ms */

static HAL_DISPATCH host;
static volatile LONGLONG system_offset, interrupt_offset;
static volatile ULONG looks;

static ULONGLONG offset_of(volatile LONGLONG *offset)
{
    return (ULONGLONG)__atomic_load_n(offset, __ATOMIC_ACQUIRE);
}

static ULONGLONG query_system(VOID)
{
    return host.QuerySystemTime() + offset_of(&system_offset);
}

static ULONGLONG query_interrupt(VOID)
{
    return host.QueryInterruptTime() + offset_of(&interrupt_offset);
}

static ULONGLONG query_tick(VOID)
{
    return host.QueryTickTime() + offset_of(&interrupt_offset);
}

static BOOLEAN has_come(const HAL_DEADLINE *deadline)
{
    return (deadline->Clock == HalSystemTime ? query_system() : query_interrupt()) >= deadline->Time;
}

/* The host's wait follows its clocks; so does this one, by polling. */
static BOOLEAN wait_by_looks(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    if (deadline->Clock == HalNoDeadline)
        return host.Wait(address, expected, deadline);
    for (;;) {
        HAL_DEADLINE look = {HalInterruptTime, host.QueryInterruptTime() + LOOK};
        BOOLEAN come = has_come(deadline);

        if (come || host.Wait(address, expected, &look))
            return !come;
        __atomic_fetch_add(&looks, 1, __ATOMIC_RELEASE);
    }
}

/* The host tells the clock thread of a step of the system clock, and wakes it at its own deadline. */
static void step(volatile LONGLONG *clock, LONGLONG by)
{
    __atomic_fetch_add(clock, by, __ATOMIC_ACQ_REL);
    KiWakeClock();
}

static void let_sleepers_look(void)
{
    ULONG before = __atomic_load_n(&looks, __ATOMIC_ACQUIRE);

    while (__atomic_load_n(&looks, __ATOMIC_ACQUIRE) - before < 4)
        usleep(500);
}

/* The ways to wait. Each ends by its timeout. */

static NTSTATUS wait_single(PLARGE_INTEGER timeout)
{
    KEVENT event;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    return KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, timeout);
}

static NTSTATUS wait_multiple(WAIT_TYPE type, PLARGE_INTEGER timeout)
{
    KEVENT events[2];
    PVOID objects[] = {&events[0], &events[1]};

    KeInitializeEvent(&events[0], NotificationEvent, FALSE);
    KeInitializeEvent(&events[1], SynchronizationEvent, FALSE);
    return KeWaitForMultipleObjects(2, objects, type, Executive, UserMode, TRUE, timeout, NULL);
}

static NTSTATUS wait_any(PLARGE_INTEGER timeout)
{
    return wait_multiple(WaitAny, timeout);
}

static NTSTATUS wait_all(PLARGE_INTEGER timeout)
{
    return wait_multiple(WaitAll, timeout);
}

static NTSTATUS wait_by_handle(PLARGE_INTEGER timeout)
{
    HANDLE event;
    NTSTATUS status;

    NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    status = NtWaitForSingleObject(event, FALSE, timeout);
    NtClose(event);
    return status;
}

static NTSTATUS wait_for_handles(PLARGE_INTEGER timeout)
{
    HANDLE events[2];
    NTSTATUS status;

    NtCreateEvent(&events[0], EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    NtCreateEvent(&events[1], EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    status = NtWaitForMultipleObjects(2, events, WaitAny, TRUE, timeout);
    NtClose(events[0]);
    NtClose(events[1]);
    return status;
}

static NTSTATUS delay(PLARGE_INTEGER timeout)
{
    return KeDelayExecutionThread(UserMode, FALSE, timeout) == STATUS_SUCCESS ? STATUS_TIMEOUT : STATUS_UNSUCCESSFUL;
}

static NTSTATUS delay_service(PLARGE_INTEGER timeout)
{
    return NtDelayExecution(FALSE, timeout) == STATUS_SUCCESS ? STATUS_TIMEOUT : STATUS_UNSUCCESSFUL;
}

static NTSTATUS wait_queue(PLARGE_INTEGER timeout)
{
    KQUEUE queue;
    NTSTATUS status;

    KeInitializeQueue(&queue, 0);
    status = (NTSTATUS)(LONG_PTR)KeRemoveQueue(&queue, UserMode, timeout);
    KeRundownQueue(&queue); /* the thread leaves it */
    return status;
}

static NTSTATUS wait_port(PLARGE_INTEGER timeout)
{
    IO_STATUS_BLOCK block;
    PVOID key, context;
    NTSTATUS status;
    HANDLE port;

    NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    status = NtRemoveIoCompletion(port, &key, &context, &block, timeout);
    NtClose(port);
    return status;
}

static NTSTATUS wait_keyed(PLARGE_INTEGER timeout)
{
    static ULONG64 key;
    NTSTATUS status;
    HANDLE keyed;

    NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0);
    status = NtWaitForKeyedEvent(keyed, &key, FALSE, timeout);
    NtClose(keyed);
    return status;
}

static NTSTATUS wait_address(PLARGE_INTEGER timeout)
{
    volatile LONG64 word = 0;
    LONG64 same = 0;

    return RtlWaitOnAddress(&word, &same, sizeof(same), timeout);
}

static NTSTATUS wait_variable(PLARGE_INTEGER timeout)
{
    RTL_CONDITION_VARIABLE variable = RTL_CONDITION_VARIABLE_INIT;
    RTL_SRWLOCK lock = RTL_SRWLOCK_INIT;
    NTSTATUS status;

    RtlAcquireSRWLockExclusive(&lock);
    status = RtlSleepConditionVariableSRW(&variable, &lock, timeout, 0);
    RtlReleaseSRWLockExclusive(&lock);
    return status;
}

static NTSTATUS wait_alert(PLARGE_INTEGER timeout)
{
    return NtWaitForAlertByThreadId(NULL, timeout);
}

/* Timers: the wait has no timeout of its own. */

static NTSTATUS wait_kernel_timer(PLARGE_INTEGER due)
{
    KTIMER timer;

    KeInitializeTimer(&timer);
    KeSetTimer(&timer, *due, NULL);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
    return STATUS_TIMEOUT;
}

static NTSTATUS wait_executive_timer(PLARGE_INTEGER due)
{
    PEX_TIMER timer = ExAllocateTimer(NULL, NULL, 0);

    ExSetTimer(timer, due->QuadPart, 0, NULL);
    KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, NULL);
    ExDeleteTimer(timer, TRUE, TRUE, NULL);
    return STATUS_TIMEOUT;
}

static NTSTATUS wait_handle_timer(PLARGE_INTEGER due)
{
    HANDLE timer;

    NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, SynchronizationTimer);
    NtSetTimer(timer, due, NULL, NULL, FALSE, 0, NULL);
    NtWaitForSingleObject(timer, FALSE, NULL);
    NtClose(timer);
    return STATUS_TIMEOUT;
}

static VOID set_event(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)timer;
    KeSetEvent(context, 0, FALSE);
}

static VOID set_event_of_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)wait;
    (void)result;
    KeSetEvent(context, 0, FALSE);
}

static NTSTATUS wait_pool_timer(PLARGE_INTEGER due)
{
    PTP_TIMER timer;
    KEVENT event;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    TpAllocTimer(&timer, set_event, &event, NULL);
    TpSetTimer(timer, due, 0, 0);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    TpWaitForTimer(timer, TRUE);
    TpReleaseTimer(timer);
    return STATUS_TIMEOUT;
}

static NTSTATUS wait_pool_wait(PLARGE_INTEGER timeout)
{
    HANDLE never;
    KEVENT event;
    PTP_WAIT wait;

    NtCreateEvent(&never, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    TpAllocWait(&wait, set_event_of_wait, &event, NULL);
    TpSetWait(wait, never, timeout);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    TpWaitForWait(wait, TRUE);
    TpReleaseWait(wait);
    NtClose(never);
    return STATUS_TIMEOUT;
}

static const struct way {
    const char *name;
    NTSTATUS (*wait)(PLARGE_INTEGER timeout);
    BOOLEAN is_timer; /* the thread itself sleeps without a deadline */
} ways[] = {
    {"an object", wait_single, FALSE},
    {"any of two", wait_any, FALSE},
    {"all of two", wait_all, FALSE},
    {"a handle", wait_by_handle, FALSE},
    {"handles", wait_for_handles, FALSE},
    {"a delay", delay, FALSE},
    {"a delay by the service", delay_service, FALSE},
    {"a queue", wait_queue, FALSE},
    {"a completion port", wait_port, FALSE},
    {"a keyed event", wait_keyed, FALSE},
    {"an address", wait_address, FALSE},
    {"a condition variable", wait_variable, FALSE},
    {"an alert by id", wait_alert, FALSE},
    {"a timer of the kernel", wait_kernel_timer, TRUE},
    {"a timer of the executive", wait_executive_timer, TRUE},
    {"a timer by handle", wait_handle_timer, TRUE},
    {"a timer of a pool", wait_pool_timer, TRUE},
    {"a wait of a pool", wait_pool_wait, TRUE},
};

struct sleeper {
    const struct way *way;
    LARGE_INTEGER timeout;
    NTSTATUS status;
    PKTHREAD volatile thread;
    volatile ULONG done;
};

static void run_sleeper(void *argument, unsigned index)
{
    struct sleeper *sleeper = argument;
    LARGE_INTEGER timeout = sleeper->timeout;

    (void)index;
    __atomic_store_n(&sleeper->thread, KiCurrentThread(), __ATOMIC_RELEASE);
    sleeper->status = sleeper->way->wait(&timeout);
    __atomic_store_n(&sleeper->done, 1, __ATOMIC_RELEASE);
}

static test_threads *start_sleeper(struct sleeper *sleeper, const struct way *way, LONGLONG timeout)
{
    test_threads *threads;
    PKTHREAD thread;

    *sleeper = (struct sleeper){.way = way, .timeout = {.QuadPart = timeout}};
    threads = start_threads(1, run_sleeper, sleeper);
    while ((thread = __atomic_load_n(&sleeper->thread, __ATOMIC_ACQUIRE)) == NULL ||
           __atomic_load_n(&thread->State, __ATOMIC_RELAXED) != Waiting)
        usleep(100);
    return threads;
}

/* The thread and the clock have checked since the last step, and found nothing to do. */
static void expect_asleep(struct sleeper *sleeper)
{
    if (sleeper->way->is_timer) {
        while (!all_others_sleep())
            usleep(500);
    } else {
        let_sleepers_look();
    }
    assert_int_equal(__atomic_load_n(&sleeper->done, __ATOMIC_ACQUIRE), 0);
}

static void expect_timeout(struct sleeper *sleeper, test_threads *threads)
{
    join_threads(threads, 60);
    assert_int_equal(sleeper->status, STATUS_TIMEOUT);
}

static void for_each_way(void (*check)(const struct way *way))
{
    for (ULONG i = 0; i < ARRAYSIZE(ways); i++) {
        print_message("# %s\n", ways[i].name);
        check(&ways[i]);
    }
}

static void absolute_follows_steps(const struct way *way)
{
    struct sleeper sleeper;
    test_threads *threads = start_sleeper(&sleeper, way, (LONGLONG)query_system() + HOUR);

    expect_asleep(&sleeper);
    step(&interrupt_offset, DAY);
    expect_asleep(&sleeper);
    step(&system_offset, -DAY);
    expect_asleep(&sleeper);
    step(&system_offset, DAY);
    expect_asleep(&sleeper);
    step(&system_offset, DAY);
    expect_timeout(&sleeper, threads);
    /* A time that has passed is in the future again when the clock has been set back. */
    step(&system_offset, -2 * DAY);
    threads = start_sleeper(&sleeper, way, (LONGLONG)query_system() + DAY);
    expect_asleep(&sleeper);
    step(&system_offset, 2 * DAY);
    expect_timeout(&sleeper, threads);
}

static void relative_does_not(const struct way *way)
{
    struct sleeper sleeper;
    test_threads *threads = start_sleeper(&sleeper, way, -HOUR);

    expect_asleep(&sleeper);
    step(&system_offset, DAY);
    expect_asleep(&sleeper);
    step(&system_offset, -2 * DAY);
    expect_asleep(&sleeper);
    step(&system_offset, DAY);
    step(&interrupt_offset, HOUR / 2);
    expect_asleep(&sleeper);
    step(&interrupt_offset, HOUR);
    expect_timeout(&sleeper, threads);
}

static void absolute_times_follow_steps(void **state)
{
    (void)state;
    for_each_way(absolute_follows_steps);
}

static void relative_times_do_not(void **state)
{
    (void)state;
    for_each_way(relative_does_not);
}

/* Many at once: one step makes all of them due, and those behind it stay. */
static void a_step_past_many(void **state)
{
    enum { COUNT = 500 };
    static KTIMER timers[COUNT];
    LONGLONG now = (LONGLONG)query_system();

    (void)state;
    for (ULONG i = 0; i < COUNT; i++) {
        KeInitializeTimer(&timers[i]);
        KeSetTimer(&timers[i], (LARGE_INTEGER){.QuadPart = now + HOUR + i * HOUR / 10}, NULL);
    }
    step(&system_offset, DAY);
    KeWaitForSingleObject(&timers[0], Executive, KernelMode, FALSE, NULL);
    for (ULONG i = 0; i < COUNT; i++) {
        if (i < 230) /* an hour, and the tenths of 23 more */
            KeWaitForSingleObject(&timers[i], Executive, KernelMode, FALSE, NULL);
        else
            assert_int_equal(KeCancelTimer(&timers[i]), i > 230 || !KeReadStateTimer(&timers[i]));
    }
}

static ULONG count_expirations(PKTIMER timer, ULONG at_most)
{
    LARGE_INTEGER a_while = {.QuadPart = 0};
    ULONG count = 0;

    while (count < at_most && KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, &a_while) == STATUS_SUCCESS)
        count++;
    return count;
}

/* The first time is absolute, all others are a period later: a step back does not stop them, one forward makes no
   burst. */
static void periods_after_an_absolute_time(void **state)
{
    KTIMER timer;

    (void)state;
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeSetTimerEx(&timer, (LARGE_INTEGER){.QuadPart = (LONGLONG)query_system() + HOUR}, 2 * 3600 * 1000, NULL);
    step(&system_offset, 30 * HOUR);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(count_expirations(&timer, 2), 0);
    step(&system_offset, -30 * HOUR);
    step(&system_offset, 90 * HOUR);
    step(&system_offset, -90 * HOUR);
    while (!all_others_sleep())
        usleep(500);
    assert_int_equal(count_expirations(&timer, 2), 0);
    /* 29 hours late, and every 2 from its due time on: the next one is in an hour. */
    step(&interrupt_offset, 3 * HOUR / 2);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
    step(&interrupt_offset, 50 * HOUR);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(count_expirations(&timer, 2), 0);
    assert_true(KeCancelTimer(&timer));
}

static volatile ULONG calls;

static VOID count_call(PVOID context, BOOLEAN fired)
{
    (void)context;
    (void)fired;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELEASE);
}

static void await_calls(ULONG count)
{
    while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) != count)
        usleep(500);
    while (!all_others_sleep())
        usleep(500);
    assert_int_equal(__atomic_load_n(&calls, __ATOMIC_ACQUIRE), count);
}

/* Timers of a queue and timeouts of registered waits are relative. */
static void the_older_interface(void **state)
{
    HANDLE queue, timer, wait, never;

    (void)state;
    calls = 0;
    NtCreateEvent(&never, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    assert_int_equal(RtlCreateTimerQueue(&queue), STATUS_SUCCESS);
    assert_int_equal(RtlCreateTimer(queue, &timer, count_call, NULL, 3600 * 1000, 3600 * 1000, 0), STATUS_SUCCESS);
    assert_int_equal(RtlRegisterWait(&wait, never, count_call, NULL, 3600 * 1000, WT_EXECUTEONLYONCE), STATUS_SUCCESS);
    step(&system_offset, DAY);
    step(&system_offset, -2 * DAY);
    await_calls(0);
    step(&interrupt_offset, 3 * HOUR / 2);
    await_calls(2);
    step(&system_offset, DAY);
    await_calls(2);
    step(&interrupt_offset, DAY); /* what was missed is one call */
    await_calls(3);
    assert_int_equal(RtlDeregisterWaitEx(wait, (HANDLE)(LONG_PTR)-1), STATUS_SUCCESS);
    assert_int_equal(RtlDeleteTimerQueueEx(queue, (HANDLE)(LONG_PTR)-1), STATUS_SUCCESS);
    NtClose(never);
}

/* A suspended wait has no deadline; what has passed meanwhile, by a step too, counts when it is resumed. */
static void a_step_while_suspended(void **state)
{
    struct sleeper sleeper;
    test_threads *threads;

    (void)state;
    for (ULONG i = 0; i < 3; i++) { /* a delay is converted, the others start over */
        const struct way *way = i == 0 ? &ways[5] : &ways[i];

        threads = start_sleeper(&sleeper, way, (LONGLONG)query_system() + HOUR);
        KeSuspendThread(sleeper.thread);
        step(&system_offset, DAY);
        while (!all_others_sleep())
            usleep(500);
        assert_int_equal(__atomic_load_n(&sleeper.done, __ATOMIC_ACQUIRE), 0);
        KeResumeThread(sleeper.thread);
        expect_timeout(&sleeper, threads);

        threads = start_sleeper(&sleeper, way, (LONGLONG)query_system() + HOUR);
        KeSuspendThread(sleeper.thread);
        step(&system_offset, DAY);
        step(&system_offset, -DAY);
        KeResumeThread(sleeper.thread);
        expect_asleep(&sleeper);
        step(&system_offset, DAY);
        expect_timeout(&sleeper, threads);
    }
}

static int watch(void **state)
{
    (void)state;
    host = HalDispatch;
    HalDispatch.QuerySystemTime = query_system;
    HalDispatch.QueryInterruptTime = query_interrupt;
    HalDispatch.QueryTickTime = query_tick;
    HalDispatch.Wait = wait_by_looks;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absolute_times_follow_steps),
        cmocka_unit_test(relative_times_do_not),
        cmocka_unit_test(a_step_past_many),
        cmocka_unit_test(periods_after_an_absolute_time),
        cmocka_unit_test(the_older_interface),
        cmocka_unit_test(a_step_while_suspended),
    };

    return cmocka_run_group_tests(tests, watch, NULL);
}
