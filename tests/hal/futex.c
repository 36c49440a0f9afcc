#include "haltest.h"

#include <stdint.h>

#define SYSTEM_TIME_OF_1970 116444736000000000ULL

static void clocks_count_in_100_ns(void **state)
{
    ULONGLONG interrupt_time = HalDispatch.QueryInterruptTime();
    ULONGLONG counter = HalQueryPerformanceCounter();
    time_t before = time(NULL);
    time_t seconds = (time_t)((HalDispatch.QuerySystemTime() - SYSTEM_TIME_OF_1970) / SECOND);
    struct timespec host;

    (void)state;
    assert_in_range(seconds, before - 1, before + 60);
    assert_true(counter >= interrupt_time);
    assert_true(HalDispatch.QueryInterruptTime() >= counter);
    clock_gettime(CLOCK_MONOTONIC, &host);
    assert_in_range(host.tv_sec - (time_t)(interrupt_time / SECOND), 0, 60);
}

/* How late a tick itself may be depends on the host. */
static void the_last_tick_was_not_long_ago(void **state)
{
    ULONGLONG last = 0;

    (void)state;
    assert_in_range(HalTickLength, 1, SECOND / 10 + 1);
    for (ULONG round = 0; round < 10000; round++) {
        ULONGLONG tick = HalDispatch.QueryTickTime();

        assert_true(tick >= last);
        assert_true(tick <= HalDispatch.QueryInterruptTime());
        last = tick;
    }
    assert_true(HalDispatch.QueryInterruptTime() - HalDispatch.QueryTickTime() < 20 * SECOND);
}

static void a_changed_word_is_not_waited_on(void **state)
{
    static const HAL_DEADLINE deadlines[] = {
        {HalNoDeadline, 0},
        {HalInterruptTime, MAXULONGLONG},
        {HalSystemTime, MAXULONGLONG},
    };
    volatile ULONG word = 1;
    size_t i;

    (void)state;
    watchdog_start(20);
    for (i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++)
        assert_true(HalDispatch.Wait(&word, 0, &deadlines[i]));
    watchdog_stop();
}

static void a_deadline_that_has_passed_ends_the_wait(void **state)
{
    const HAL_DEADLINE deadlines[] = {
        {HalInterruptTime, 0},
        {HalInterruptTime, 1},
        {HalInterruptTime, HalDispatch.QueryInterruptTime()},
        {HalSystemTime, 0},
        {HalSystemTime, 1},
        {HalSystemTime, SYSTEM_TIME_OF_1970 - 1},
        {HalSystemTime, SYSTEM_TIME_OF_1970},
        {HalSystemTime, SYSTEM_TIME_OF_1970 + 1},
        {HalSystemTime, HalDispatch.QuerySystemTime() - SECOND},
    };
    volatile ULONG word = 0;
    size_t i;

    (void)state;
    watchdog_start(20);
    for (i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++)
        assert_false(HalDispatch.Wait(&word, 0, &deadlines[i]));
    watchdog_stop();
}

static void no_wait_ends_early(void **state)
{
    static const HAL_CLOCK clocks[] = {HalInterruptTime, HalSystemTime};
    volatile ULONG word = 0;
    test_random random;
    unsigned i;

    (void)state;
    random_seed(&random, 1);
    watchdog_start(60);
    for (i = 0; i < 1000; i++) {
        HAL_CLOCK clock = clocks[i % 2];
        ULONGLONG interval = random_below(&random, 2000);
        HAL_DEADLINE deadline = {
            clock, clock == HalInterruptTime ? interrupt_time_after(interval) : system_time_after(interval)};

        while (HalDispatch.Wait(&word, 0, &deadline))
            continue;
        assert_true((clock == HalInterruptTime ? HalDispatch.QueryInterruptTime() : HalDispatch.QuerySystemTime()) >=
                    deadline.Time);
    }
    watchdog_stop();
}

struct far_wait {
    HAL_DEADLINE deadline;
    volatile ULONG started;
    volatile ULONG word;
    volatile ULONG failures;
};

static void wait_for_far_deadline(void *argument, unsigned index)
{
    struct far_wait *wait = argument;

    if (index != 0) {
        wait_until_set(&wait->started);
        sleep_milliseconds(2);
        set_flag(&wait->word);
        HalDispatch.Wake(&wait->word, 1);
        return;
    }
    set_flag(&wait->started);
    while (__atomic_load_n(&wait->word, __ATOMIC_ACQUIRE) == 0) {
        if (!HalDispatch.Wait(&wait->word, 0, &wait->deadline))
            __atomic_fetch_add(&wait->failures, 1, __ATOMIC_RELAXED);
    }
}

static void a_far_deadline_never_comes(void **state)
{
    static const HAL_DEADLINE deadlines[] = {
        {HalNoDeadline, 0},
        {HalNoDeadline, 1},
        {HalInterruptTime, MAXULONGLONG},
        {HalInterruptTime, INT64_MAX},
        {HalInterruptTime, INT64_MAX / 100 - 1},
        {HalInterruptTime, INT64_MAX / 100 + SECOND},
        {HalSystemTime, MAXULONGLONG},
        {HalSystemTime, INT64_MAX},
        {HalSystemTime, SYSTEM_TIME_OF_1970 + INT64_MAX / 100 - 1},
        {HalSystemTime, SYSTEM_TIME_OF_1970 + INT64_MAX / 100 + SECOND},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++) {
        struct far_wait wait = {.deadline = deadlines[i]};

        run_threads(2, 20, wait_for_far_deadline, &wait);
        assert_int_equal(wait.failures, 0);
    }
}

struct handover {
    volatile ULONG turn;
    ULONG sum; /* plain: the waits and wakes are its only protection */
    unsigned long rounds;
};

static void take_turns(void *argument, unsigned index)
{
    static const HAL_DEADLINE none = {HalNoDeadline, 0};
    struct handover *handover = argument;
    unsigned long round;
    ULONG turn;

    for (round = 0; round < handover->rounds; round++) {
        while ((turn = __atomic_load_n(&handover->turn, __ATOMIC_ACQUIRE)) != index)
            HalDispatch.Wait(&handover->turn, turn, &none);
        handover->sum++;
        __atomic_store_n(&handover->turn, !index, __ATOMIC_RELEASE);
        HalDispatch.Wake(&handover->turn, 1);
    }
}

static void a_wake_is_never_lost(void **state)
{
    struct handover handover = {.rounds = test_rounds(10000)};

    (void)state;
    run_threads(2, 60, take_turns, &handover);
    assert_int_equal(handover.sum, 2 * handover.rounds);
}

#define WAITERS 4

struct crowd {
    volatile ULONG word;
    volatile ULONG waiting;
    volatile ULONG woken;
};

static void wait_in_crowd(void *argument, unsigned index)
{
    HAL_DEADLINE deadline = {HalNoDeadline, 0};
    struct crowd *crowd = argument;

    if (index == WAITERS) {
        while (__atomic_load_n(&crowd->waiting, __ATOMIC_ACQUIRE) != WAITERS)
            sleep_milliseconds(1);
        sleep_milliseconds(2);
        set_flag(&crowd->word);
        HalDispatch.Wake(&crowd->word, MAXULONG);
        return;
    }
    __atomic_fetch_add(&crowd->waiting, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&crowd->word, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Wait(&crowd->word, 0, &deadline);
    __atomic_fetch_add(&crowd->woken, 1, __ATOMIC_RELAXED);
}

static void the_largest_count_wakes_all(void **state)
{
    struct crowd crowd = {0};

    (void)state;
    run_threads(WAITERS + 1, 20, wait_in_crowd, &crowd);
    assert_int_equal(crowd.woken, WAITERS);
}

static void a_wake_without_waiters_does_nothing(void **state)
{
    volatile ULONG word = 0;
    HAL_DEADLINE deadline = {HalInterruptTime, 1};

    (void)state;
    HalDispatch.Wake(&word, 1);
    assert_false(HalDispatch.Wait(&word, 0, &deadline));
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_count_in_100_ns),
        cmocka_unit_test(the_last_tick_was_not_long_ago),
        cmocka_unit_test(a_changed_word_is_not_waited_on),
        cmocka_unit_test(a_deadline_that_has_passed_ends_the_wait),
        cmocka_unit_test(no_wait_ends_early),
        cmocka_unit_test(a_far_deadline_never_comes),
        cmocka_unit_test(a_wake_is_never_lost),
        cmocka_unit_test(the_largest_count_wakes_all),
        cmocka_unit_test(a_wake_without_waiters_does_nothing),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
