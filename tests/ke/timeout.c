/* Timeouts: one deadline per wait, never early, whatever wakes the thread in between. */
#include "waittest.h"

typedef struct deadline_case {
    const char *name;
    LONGLONG interval;
    BOOLEAN is_absolute;
} deadline_case;

static const deadline_case cases[] = {
    {"the shortest relative one", 1, FALSE},
    {"a tenth of a millisecond", MILLISECOND / 10, FALSE},
    {"a millisecond", MILLISECOND, FALSE},
    {"20 milliseconds", 20 * MILLISECOND, FALSE},
    {"an instant, absolute", 1, TRUE},
    {"a millisecond, absolute", MILLISECOND, TRUE},
    {"20 milliseconds, absolute", 20 * MILLISECOND, TRUE},
    {"a second ago", -SECOND, TRUE},
};

static LARGE_INTEGER time_of(const deadline_case *c)
{
    return c->is_absolute ? absolute(c->interval) : relative(c->interval);
}

static BOOLEAN has_passed(const deadline_case *c, ULONGLONG started, LARGE_INTEGER time)
{
    return c->is_absolute ? HalDispatch.QuerySystemTime() >= (ULONGLONG)time.QuadPart
                          : HalDispatch.QueryInterruptTime() >= started + (ULONGLONG)c->interval;
}

/* Every form of wait, every form of timeout: the status, not before its time, and the blocks off the objects. */
static void test_never_early(void **state)
{
    KEVENT events[5];
    (void)state;
    for (ULONG i = 0; i < 5; i += 1) {
        KeInitializeEvent(&events[i], SynchronizationEvent, FALSE);
    }
    KeSetEvent(&events[4], 0, FALSE);
    wait_call calls[] = {
        {.count = 1, .object = {&events[0]}},
        {.count = 3, .object = {&events[0], &events[1], &events[2]}},
        {.count = 4, .object = {&events[0], &events[1], &events[2], &events[3]}, .mode = UserMode, .alertable = TRUE},
        {.count = 2, .object = {&events[4], &events[0]}, .all = TRUE},
        {.count = 0},
    };
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        for (ULONG k = 0; k < ARRAYSIZE(calls); k += 1) {
            ULONGLONG started = HalDispatch.QueryInterruptTime();
            LARGE_INTEGER time = time_of(&cases[i]);
            calls[k].timeout = &time;
            NTSTATUS status = perform(&calls[k]);
            print_message("# %s, wait %u\n", cases[i].name, k);
            assert_true(has_passed(&cases[i], started, time));
            assert_int_equal(status, calls[k].count == 0 ? STATUS_SUCCESS : STATUS_TIMEOUT);
            for (ULONG e = 0; e < 5; e += 1) {
                assert_true(has_no_waiters(&events[e]));
                assert_int_equal(KeReadStateEvent(&events[e]), e == 4);
            }
        }
    }
}

/* The caller's timeout is read only. */
static void test_timeout_is_not_written(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    wait_for(&event, &time);
    assert_int_equal(time.QuadPart, -MILLISECOND);
}

/* A timeout of 0 polls, at DISPATCH_LEVEL too. */
static void test_zero(void **state)
{
    static const KIRQL levels[] = {PASSIVE_LEVEL, APC_LEVEL, DISPATCH_LEVEL};
    KEVENT set, unset;
    (void)state;
    KeInitializeEvent(&set, NotificationEvent, TRUE);
    KeInitializeEvent(&unset, NotificationEvent, FALSE);
    const struct {
        wait_call call;
        NTSTATUS status;
    } waits[] = {
        {{.count = 1, .object = {&set}}, STATUS_WAIT_0},
        {{.count = 1, .object = {&unset}}, STATUS_TIMEOUT},
        {{.count = 1, .object = {&unset}, .alertable = TRUE, .mode = UserMode}, STATUS_TIMEOUT},
        {{.count = 2, .object = {&unset, &set}}, STATUS_WAIT_1},
        {{.count = 2, .object = {&unset, &set}, .alertable = TRUE}, STATUS_WAIT_1},
        {{.count = 2, .object = {&unset, &set}, .all = TRUE}, STATUS_TIMEOUT},
        {{.count = 1, .object = {&set}, .all = TRUE}, STATUS_WAIT_0},
    };
    for (ULONG l = 0; l < ARRAYSIZE(levels); l += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(waits); i += 1) {
            wait_call call = waits[i].call;
            KIRQL irql;
            call.timeout = NO_TIME;
            KeRaiseIrql(levels[l], &irql);
            NTSTATUS status = perform(&call);
            assert_int_equal(KeGetCurrentIrql(), levels[l]);
            KeLowerIrql(irql);
            assert_int_equal(status, waits[i].status);
            assert_true(has_no_waiters(&unset));
        }
    }
}

/* Times that no clock reaches: the wait behaves as one without a timeout. */
static void test_very_long(void **state)
{
    static const LONGLONG times[] = {-MAXLONGLONG - 1, -MAXLONGLONG, -MAXLONGLONG / 2, MAXLONGLONG, MAXLONGLONG / 2,
                                     -365 * 24 * 3600 * SECOND};
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(times); i += 1) {
        LARGE_INTEGER time = {.QuadPart = times[i]};
        w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &time};
        begin_wait(&w);
        HalDispatch.Wake(&w.actor.thread->WakeWord, 1);
        assert_true(still_waits(&w));
        KeSetEvent(&event, 0, FALSE);
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        w.call = (wait_call){.count = 0, .timeout = &time, .alertable = TRUE};
        begin_wait(&w);
        KeAlertThread(w.actor.thread, KernelMode);
        assert_int_equal(end_wait(&w), STATUS_ALERTED);
    }
    end_waiters(&w, 1);
}

/* Spurious wakeups: the wait neither ends nor gets longer. */
static void test_stray_wakes(void **state)
{
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG is_absolute = 0; is_absolute < 2; is_absolute += 1) {
        ULONGLONG started = HalDispatch.QueryInterruptTime();
        LARGE_INTEGER time = is_absolute ? absolute(30 * MILLISECOND) : relative(30 * MILLISECOND);
        ULONG wakes = 0;
        w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &time};
        tell(&w.actor, perform_wait, &w);
        while (!is_idle(&w.actor)) {
            HalDispatch.Wake(&w.actor.thread->WakeWord, 1);
            wakes += 1;
        }
        ULONGLONG ended = HalDispatch.QueryInterruptTime();
        assert_int_equal(w.status, STATUS_TIMEOUT);
        assert_true(ended >= started + 29 * MILLISECOND);
        assert_true(wakes > 10);
    }
    w.call = (wait_call){.count = 1, .object = {&event}};
    begin_wait(&w);
    for (ULONG i = 0; i < 1000; i += 1) {
        HalDispatch.Wake(&w.actor.thread->WakeWord, 1);
        assert_true(still_waits(&w));
    }
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    end_waiters(&w, 1);
}

/*
 * A host whose Wait repeatedly returns early: the deadline that it is given is the same every time.
 */
static BOOLEAN (*host_wait)(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline);
static volatile ULONG *volatile watched_word;
static ULONG waits_seen;
static HAL_DEADLINE first_deadline;
static BOOLEAN deadline_changed;

static BOOLEAN restless_wait(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    if (address != __atomic_load_n(&watched_word, __ATOMIC_RELAXED)) {
        return host_wait(address, expected, deadline);
    }
    waits_seen += 1;
    if (waits_seen == 1) {
        first_deadline = *deadline;
    } else if (deadline->Clock != first_deadline.Clock || deadline->Time != first_deadline.Time) {
        deadline_changed = TRUE;
    }
    return waits_seen < 100; /* FALSE: the deadline has passed */
}

static void test_one_deadline(void **state)
{
    LARGE_INTEGER time = relative(600 * SECOND);
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    __atomic_store_n(&watched_word, &KeGetCurrentThread()->WakeWord, __ATOMIC_RELAXED);
    ULONGLONG before = HalDispatch.QueryInterruptTime();
    NTSTATUS status = wait_for(&event, &time);
    __atomic_store_n(&watched_word, NULL, __ATOMIC_RELAXED);
    assert_int_equal(status, STATUS_TIMEOUT);
    assert_int_equal(waits_seen, 100);
    assert_false(deadline_changed);
    assert_int_equal(first_deadline.Clock, HalInterruptTime);
    assert_true(first_deadline.Time >= before + 600 * SECOND);
    assert_true(first_deadline.Time < before + 610 * SECOND);
}

/* A signal that races with a timeout has one winner: the object is consumed exactly if the wait was satisfied. */
static void test_signal_against_timeout(void **state)
{
    ULONG rounds = (ULONG)test_rounds(300);
    ULONG satisfied = 0;
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < rounds; i += 1) {
        LARGE_INTEGER time = relative(200 + i % 50 * 20);
        w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &time};
        tell(&w.actor, perform_wait, &w);
        KeStallExecutionProcessor(i % 40);
        KeSetEvent(&event, 0, FALSE);
        NTSTATUS status = end_wait(&w);
        assert_true(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        assert_int_equal(KeReadStateEvent(&event), status == STATUS_TIMEOUT);
        satisfied += status == STATUS_SUCCESS;
        KeResetEvent(&event);
    }
    print_message("# satisfied %u times of %u\n", satisfied, rounds);
    end_waiters(&w, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_never_early), WATCHED(test_timeout_is_not_written), WATCHED(test_zero),
        WATCHED(test_very_long),   WATCHED(test_stray_wakes),            WATCHED(test_one_deadline),
        WATCHED(test_signal_against_timeout),
    };
    host_wait = HalDispatch.Wait;
    HalDispatch.Wait = restless_wait;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
