#include "haltest.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static volatile ULONG wake;

/* Sleeps as the clock thread does, until deadline by the given clock has passed or the word has changed. */
static void sleep_until(ULONGLONG interrupt_time, ULONGLONG system_time)
{
    ULONG expected = __atomic_load_n(&wake, __ATOMIC_ACQUIRE);

    while (__atomic_load_n(&wake, __ATOMIC_ACQUIRE) == expected &&
           (interrupt_time == 0 || HalDispatch.QueryInterruptTime() < interrupt_time) &&
           (system_time == 0 || HalDispatch.QuerySystemTime() < system_time))
        HalClockWait(&wake, expected, interrupt_time, system_time);
}

static void a_changed_word_ends_the_sleep(void **state)
{
    static const ULONGLONG times[][2] = {{0, 0}, {MAXULONGLONG, 0}, {0, MAXULONGLONG}, {MAXULONGLONG, MAXULONGLONG}};
    size_t i;

    (void)state;
    watchdog_start(20);
    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        HalClockWait(&wake, wake + 1, times[i][0], times[i][1]);
    watchdog_stop();
}

static void the_earlier_time_ends_the_sleep(void **state)
{
    static const struct {
        ULONGLONG interrupt_interval, system_interval; /* 0: none */
    } cases[] = {
        {20 * MILLISECOND, 0},
        {0, 20 * MILLISECOND},
        {20 * MILLISECOND, 1000 * SECOND},
        {1000 * SECOND, 20 * MILLISECOND},
        {20 * MILLISECOND, 20 * MILLISECOND},
        {1, 0},
        {0, 1},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ULONGLONG start = HalDispatch.QueryInterruptTime();
        ULONGLONG interrupt_interval = cases[i].interrupt_interval, system_interval = cases[i].system_interval;

        watchdog_start(20);
        sleep_until(interrupt_interval != 0 ? start + interrupt_interval : 0,
                    system_interval != 0 ? system_time_after(system_interval) : 0);
        watchdog_stop();
        assert_true(HalDispatch.QueryInterruptTime() - start < 20 * test_slowdown() * SECOND);
    }
}

static void a_time_that_has_passed_ends_the_sleep(void **state)
{
    static const ULONGLONG system_times[] = {1, 116444736000000000ULL - 1, 116444736000000000ULL,
                                             116444736000000000ULL + 1};
    size_t i;

    (void)state;
    watchdog_start(20);
    HalClockWait(&wake, wake, 1, 0);
    HalClockWait(&wake, wake, 1, MAXULONGLONG);
    for (i = 0; i < sizeof(system_times) / sizeof(system_times[0]); i++) {
        HalClockWait(&wake, wake, 0, system_times[i]);
        HalClockWait(&wake, wake, MAXULONGLONG, system_times[i]);
    }
    watchdog_stop();
}

/* One side sleeps until the other has woken it, round after round. */
struct relay {
    ULONGLONG interrupt_time, system_time;
    unsigned long rounds;
    volatile ULONG reached;
};

static void wake_and_sleep(void *argument, unsigned index)
{
    static const HAL_DEADLINE none = {HalNoDeadline, 0};
    struct relay *relay = argument;
    unsigned long round;
    ULONG first = __atomic_load_n(&relay->reached, __ATOMIC_RELAXED);

    for (round = 0; round < relay->rounds; round++) {
        ULONG number = first + (ULONG)round;

        if (index == 0) {
            while (__atomic_load_n(&wake, __ATOMIC_ACQUIRE) == number)
                HalClockWait(&wake, number, relay->interrupt_time, relay->system_time);
            __atomic_store_n(&relay->reached, number + 1, __ATOMIC_RELEASE);
            HalDispatch.Wake(&relay->reached, 1);
        } else {
            __atomic_store_n(&wake, number + 1, __ATOMIC_RELEASE);
            HalClockWake(&wake);
            while (__atomic_load_n(&relay->reached, __ATOMIC_ACQUIRE) == number)
                HalDispatch.Wait(&relay->reached, number, &none);
        }
    }
}

static void no_wake_is_lost(void **state)
{
    static const ULONGLONG times[][2] = {{0, 0}, {MAXULONGLONG, 0}, {0, MAXULONGLONG}, {MAXULONGLONG, MAXULONGLONG}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct relay relay = {.interrupt_time = times[i][0], .system_time = times[i][1], .rounds = test_rounds(3000)};

        wake = 0;
        run_threads(2, 60, wake_and_sleep, &relay);
        assert_int_equal(relay.reached, relay.rounds);
    }
}

static void wakes_without_a_sleeper_are_harmless(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 10; i++)
        HalClockWake(&wake);
    watchdog_start(20);
    sleep_until(interrupt_time_after(MILLISECOND), 0);
    sleep_until(0, system_time_after(MILLISECOND));
    watchdog_stop();
}

static void everything_works(void *argument)
{
    void **state = argument;

    a_changed_word_ends_the_sleep(state);
    the_earlier_time_ends_the_sleep(state);
    a_time_that_has_passed_ends_the_sleep(state);
    no_wake_is_lost(state);
    wakes_without_a_sleeper_are_harmless(state);
}

static unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* With both deadlines, the most demanding case. */
static void sleep_by_both_clocks(void)
{
    watchdog_start(20);
    sleep_until(interrupt_time_after(1000 * SECOND), system_time_after(MILLISECOND));
    watchdog_stop();
}

/* A program may close any descriptor that it finds: there is none to lose. */
static void the_sleep_has_no_descriptors(void **state)
{
    unsigned count = count_descriptors();

    (void)state;
    sleep_by_both_clocks();
    assert_int_equal(count_descriptors(), count);
}

static void use_clock_in_child(void *argument)
{
    (void)argument;
    sleep_by_both_clocks();
    everything_works(NULL);
}

static void a_forked_child_sleeps_by_itself(void **state)
{
    (void)state;
    sleep_by_both_clocks();
    run_in_child(use_clock_in_child, NULL);
    everything_works(NULL);
}

static void run_without_descriptors(void *argument)
{
    const struct rlimit few = {3, 3};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(open("/dev/null", O_RDONLY), -1);
    everything_works(argument);
}

static void sleeps_work_without_descriptors(void **state)
{
    (void)state;
    run_in_child(run_without_descriptors, NULL);
}

static void *end_at_once(void *argument)
{
    return argument;
}

/* In a process that may have no more threads the sleep polls the system clock. */
static void run_without_threads(void *argument)
{
    const struct rlimit none = {0, 0};
    pthread_t thread;

    assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        return;
    if (pthread_create(&thread, NULL, end_at_once, NULL) == 0) {
        pthread_join(thread, NULL);
        return; /* a user exempt from the limits */
    }
    (void)argument;
    sleep_until(interrupt_time_after(1000 * SECOND), system_time_after(MILLISECOND));
    sleep_until(interrupt_time_after(MILLISECOND), system_time_after(1000 * SECOND));
}

static void sleeps_work_without_a_second_thread(void **state)
{
    (void)state;
    run_in_child(run_without_threads, NULL);
}

struct stepped {
    ULONGLONG until;
    volatile ULONG over;
};

static void sleep_while_the_clock_is_set(void *argument, unsigned index)
{
    struct stepped *stepped = argument;

    if (index == 0) {
        sleep_until(interrupt_time_after(1000 * SECOND), stepped->until);
        set_flag(&stepped->over);
        return;
    }
    while (__atomic_load_n(&stepped->over, __ATOMIC_ACQUIRE) == 0) {
        struct timespec now;

        sleep_milliseconds(10);
        clock_gettime(CLOCK_REALTIME, &now);
        assert_int_equal(clock_settime(CLOCK_REALTIME, &now), 0);
    }
}

/* It sets the clock of the machine, though only to what it shows, so it runs only on request, by
   INTERLOCK_TEST_CLOCK_STEP. */
static void a_sleep_outlives_steps_of_the_clock(void **state)
{
    struct stepped stepped = {.until = system_time_after(SECOND)};

    (void)state;
    run_threads(2, 20, sleep_while_the_clock_is_set, &stepped);
    assert_true(HalDispatch.QuerySystemTime() >= stepped.until);
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_word_ends_the_sleep),
        cmocka_unit_test(the_earlier_time_ends_the_sleep),
        cmocka_unit_test(a_time_that_has_passed_ends_the_sleep),
        cmocka_unit_test(no_wake_is_lost),
        cmocka_unit_test(wakes_without_a_sleeper_are_harmless),
        cmocka_unit_test(the_sleep_has_no_descriptors),
        cmocka_unit_test(a_forked_child_sleeps_by_itself),
        cmocka_unit_test(sleeps_work_without_descriptors),
        cmocka_unit_test(sleeps_work_without_a_second_thread),
    };
    const struct CMUnitTest tests_on_request[] = {
        cmocka_unit_test(a_sleep_outlives_steps_of_the_clock),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    if (getenv("INTERLOCK_TEST_CLOCK_STEP") != NULL)
        return cmocka_run_group_tests(tests_on_request, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
