/* Timers of the thread pool. */
#include "tptest.h"

#define TIMERS 1000

typedef struct clock_watch {
    volatile ULONG runs;
    HANDLE ran;
} clock_watch;

static void tick(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    clock_watch *w = context;
    check(instance != NULL && timer != NULL);
    add_one(&w->runs);
    set_event(w->ran);
}

static PTP_TIMER make_timer(clock_watch *w, PTP_CALLBACK_ENVIRON environment)
{
    w->runs = 0;
    w->ran = make_event(SynchronizationEvent);
    PTP_TIMER timer = CreateThreadpoolTimer(tick, w, environment);
    check(timer != NULL);
    return timer;
}

static void close_timer(PTP_TIMER timer, clock_watch *w)
{
    SetThreadpoolTimer(timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    CloseThreadpoolTimer(timer);
    NtClose(w->ran);
}

static PFILETIME file_time(LARGE_INTEGER time, PFILETIME result)
{
    result->dwLowDateTime = time.LowPart;
    result->dwHighDateTime = (DWORD)time.HighPart;
    return result;
}

static void test_one_shot(void **state)
{
    clock_watch w;
    FILETIME due;
    PTP_TIMER timer = make_timer(&w, NULL);
    (void)state;
    assert_false(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, in_milliseconds(1, &due), 0, 0);
    wait_event(w.ran);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    assert_int_equal(w.runs, 1);
    assert_true(IsThreadpoolTimerSet(timer)); /* until it is set without a due time */
    SetThreadpoolTimer(timer, in_milliseconds(1, &due), 0, 10);
    wait_event(w.ran);
    assert_int_equal(count_of(&w.runs), 2);
    assert_true(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, NULL, 0, 0);
    assert_false(IsThreadpoolTimerSet(timer));
    close_timer(timer, &w);
}

static void test_due_times(void **state)
{
    const LARGE_INTEGER times[] = {{.QuadPart = 0}, absolute(-SECOND), absolute(MILLISECOND), relative(MILLISECOND)};
    clock_watch w;
    FILETIME due;
    PTP_TIMER timer = make_timer(&w, NULL);
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(times); i += 1) {
        SetThreadpoolTimer(timer, file_time(times[i], &due), 0, 0);
        wait_event(w.ran);
        WaitForThreadpoolTimerCallbacks(timer, FALSE);
        assert_int_equal(w.runs, i + 1);
    }
    close_timer(timer, &w);
}

static void test_period(void **state)
{
    clock_watch w;
    FILETIME due;
    PTP_TIMER timer = make_timer(&w, NULL);
    (void)state;
    SetThreadpoolTimer(timer, in_milliseconds(0, &due), 1, 0);
    await(count_of(&w.runs) >= 5);
    assert_true(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    assert_false(IsThreadpoolTimerSet(timer));
    ULONG runs = count_of(&w.runs);
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -20 * MILLISECOND});
    assert_int_equal(count_of(&w.runs), runs);
    close_timer(timer, &w);
}

static ULONG pending_of(PTP_TIMER timer)
{
    return (ULONG)(__atomic_load_n(&timer->Object.State, __ATOMIC_SEQ_CST) & TPP_PENDING_MASK);
}

/* Each period has a callback, even if no thread is free. */
static void test_periods_without_thread(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    clock_watch w;
    FILETIME due;
    gate g;
    PTP_TIMER timer = make_timer(&w, &environment);
    (void)state;
    gate_block(&g, &environment);
    SetThreadpoolTimer(timer, in_milliseconds(0, &due), 1, 0);
    await(pending_of(timer) >= 5);
    assert_true(SetThreadpoolTimerEx(timer, NULL, 0, 0));
    ULONG pending = pending_of(timer);
    assert_int_equal(count_of(&w.runs), 0);
    set_event(g.opened);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    assert_int_equal(w.runs, pending);
    close_timer(timer, &w);
    CloseThreadpool(pool);
    gate_close(&g);
}

static void test_set_again(void **state)
{
    clock_watch w;
    FILETIME due;
    PTP_TIMER timer = make_timer(&w, NULL);
    (void)state;
    assert_false(SetThreadpoolTimerEx(timer, in_milliseconds(3600000, &due), 0, 0));
    assert_true(IsThreadpoolTimerSet(timer));
    assert_true(SetThreadpoolTimerEx(timer, in_milliseconds(3600000, &due), 0, 0));
    assert_true(SetThreadpoolTimerEx(timer, NULL, 0, 0));
    assert_false(IsThreadpoolTimerSet(timer));
    assert_false(SetThreadpoolTimerEx(timer, NULL, 0, 0));
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    assert_int_equal(w.runs, 0);
    assert_true(!SetThreadpoolTimerEx(timer, in_milliseconds(1, &due), 0, 0));
    wait_event(w.ran);
    assert_false(SetThreadpoolTimerEx(timer, NULL, 0, 0));
    close_timer(timer, &w);
}

static void expire(PTP_TIMER timer)
{
    FILETIME due;
    SetThreadpoolTimer(timer, in_milliseconds(0, &due), 0, 0);
    await(has_expired(timer));
    assert_true(IsThreadpoolTimerSet(timer));
}

/* An expiration that finds no thread is a queued callback: it stays one when the timer is set again, and a wait waits
   for it or cancels it. */
static void test_queued_expirations(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    clock_watch w;
    gate g;
    PTP_TIMER timer = make_timer(&w, &environment);
    (void)state;
    gate_block(&g, &environment);
    expire(timer);
    assert_false(SetThreadpoolTimerEx(timer, NULL, 0, 0));
    expire(timer);
    expire(timer);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    expire(timer);
    expire(timer);
    set_event(g.opened);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    assert_int_equal(w.runs, 2);
    close_timer(timer, &w);
    CloseThreadpool(pool);
    gate_close(&g);
}

/* Closing does not cancel queued callbacks. */
static void test_close_with_queued(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    clock_watch w;
    gate g;
    PTP_TIMER timer = make_timer(&w, &environment);
    (void)state;
    gate_block(&g, &environment);
    expire(timer);
    CloseThreadpoolTimer(timer);
    CloseThreadpool(pool);
    set_event(g.opened);
    wait_event(w.ran);
    assert_int_equal(w.runs, 1);
    NtClose(w.ran);
    gate_close(&g);
}

static void test_close_while_set(void **state)
{
    clock_watch w;
    FILETIME due;
    PTP_TIMER timer = make_timer(&w, NULL);
    (void)state;
    SetThreadpoolTimer(timer, in_milliseconds(3600000, &due), 1000, 0);
    CloseThreadpoolTimer(timer);
    NtClose(w.ran);
}

static void set_and_close(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    clock_watch *w = context;
    FILETIME due;
    (void)instance;
    if (add_one(&w->runs) < 3) {
        SetThreadpoolTimer(timer, in_milliseconds(1, &due), 0, 0);
        return;
    }
    CloseThreadpoolTimer(timer);
    SetThreadpoolTimer(timer, in_milliseconds(0, &due), 0, 0);
    set_event(w->ran);
}

static void test_inside_callback(void **state)
{
    clock_watch w = {.runs = 0, .ran = make_event(SynchronizationEvent)};
    FILETIME due;
    PTP_TIMER timer = CreateThreadpoolTimer(set_and_close, &w, NULL);
    (void)state;
    SetThreadpoolTimer(timer, in_milliseconds(1, &due), 0, 0);
    wait_event(w.ran);
    assert_int_equal(count_of(&w.runs), 3);
    NtClose(w.ran);
}

static void count_tick(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)timer;
    add_one(context);
}

static void test_many(void **state)
{
    static PTP_TIMER timers[TIMERS];
    static volatile ULONG runs[TIMERS];
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(500, &environment);
    FILETIME due;
    (void)state;
    for (ULONG i = 0; i < TIMERS; i += 1) {
        timers[i] = CreateThreadpoolTimer(count_tick, (PVOID)&runs[i], &environment);
        assert_non_null(timers[i]);
        SetThreadpoolTimer(timers[i], in_milliseconds(1 + i % 50, &due), 0, 0);
    }
    for (ULONG i = 0; i < TIMERS; i += 1) {
        await(count_of(&runs[i]) == 1);
    }
    assert_in_range(TppQueryThreads(pool), 1, KeNumberProcessors + 4);
    for (ULONG i = 0; i < TIMERS; i += 1) {
        WaitForThreadpoolTimerCallbacks(timers[i], FALSE);
        CloseThreadpoolTimer(timers[i]);
        assert_int_equal(runs[i], 1);
    }
    CloseThreadpool(pool);
}

static void test_low_priority(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    clock_watch w;
    gate first;
    gate second;
    (void)state;
    gate_block(&first, &environment);
    SetThreadpoolCallbackPriority(&environment, TP_CALLBACK_PRIORITY_LOW);
    PTP_TIMER timer = make_timer(&w, &environment);
    expire(timer);
    SetThreadpoolCallbackPriority(&environment, TP_CALLBACK_PRIORITY_NORMAL);
    gate_start(&second, &environment);
    set_event(first.opened);
    wait_event(second.entered);
    assert_int_equal(count_of(&w.runs), 0);
    set_event(second.opened);
    wait_event(w.ran);
    close_timer(timer, &w);
    CloseThreadpool(pool);
    gate_close(&first);
    gate_close(&second);
}

/* A timer that was set before a fork expires in the child too, once the pool is used there. */
static BOOLEAN use_timers(void *argument)
{
    PTP_TIMER *timers = argument;
    FILETIME due;
    clock_watch *w = timers[0]->Object.Context;
    SetThreadpoolTimer(timers[0], in_milliseconds(1, &due), 0, 0);
    await(count_of(&w->runs) == 1);
    w = timers[1]->Object.Context;
    await(count_of(&w->runs) >= 3);
    SetThreadpoolTimer(timers[1], NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timers[1], TRUE);
    CloseThreadpoolTimer(timers[0]);
    CloseThreadpoolTimer(timers[1]);
    return TRUE;
}

static void test_fork(void **state)
{
    clock_watch idle;
    clock_watch periodic;
    FILETIME due;
    PTP_TIMER timers[] = {make_timer(&idle, NULL), make_timer(&periodic, NULL)};
    (void)state;
    SetThreadpoolTimer(timers[1], in_milliseconds(5, &due), 5, 0);
    assert_int_equal(in_child(use_timers, timers), 0);
    close_timer(timers[0], &idle);
    close_timer(timers[1], &periodic);
}

static void test_parameters(void **state)
{
    (void)state;
    SetLastError(0);
    assert_null(CreateThreadpoolTimer(NULL, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_one_shot),
        WATCHED(test_due_times),
        WATCHED(test_period),
        WATCHED(test_periods_without_thread),
        WATCHED(test_set_again),
        WATCHED(test_queued_expirations),
        WATCHED(test_close_with_queued),
        WATCHED(test_close_while_set),
        WATCHED(test_inside_callback),
        WATCHED(test_many),
        WATCHED(test_low_priority),
        WATCHED(test_fork),
        WATCHED(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
