/*
 * A set against the deadline of a wait. Every set that finds the synchronization event unsignaled is one signal; each
 * signal is consumed by exactly one successful wait, or remains at the end.
 */
#include "stress.h"

#define STORM_WAITERS 4
#define STORM_SETTERS 2

static struct {
    KEVENT event;
    unsigned long rounds;
    unsigned long signals;
    unsigned long successes;
    unsigned long timeouts;
    unsigned long waiters_left;
    lone_counter round;
    lone_counter seen;
    ULONGLONG deadline;
} race;

static ULONGLONG now(void)
{
    ULONG64 counter;

    return KeQueryInterruptTimePrecise(&counter);
}

static void start_race(unsigned long rounds)
{
    memset(&race, 0, sizeof(race));
    KeInitializeEvent(&race.event, SynchronizationEvent, FALSE);
    race.rounds = test_rounds(rounds);
}

static void check_conservation(void)
{
    assert_int_equal(race.signals, race.successes + (unsigned long)KeReadStateEvent(&race.event));
    assert_true(race.successes + race.timeouts >= race.rounds);
    assert_true(IsListEmpty(&race.event.Header.WaitListHead));
}

static NTSTATUS timed_wait(LONGLONG microseconds, int absolute)
{
    LARGE_INTEGER timeout = in_microseconds(microseconds);

    if (absolute) {
        KeQuerySystemTimePrecise(&timeout);
        timeout.QuadPart += 10 * microseconds;
    }
    return KeWaitForSingleObject(&race.event, Executive, KernelMode, FALSE, &timeout);
}

static void count_wait(NTSTATUS status)
{
    require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    add(status == STATUS_SUCCESS ? &race.successes : &race.timeouts, 1);
}

/* The setter of round n aims at the deadline of wait n. */
static void aim(unsigned long rounds)
{
    test_random random;

    random_seed(&random, 7);
    for (unsigned long round = 1; round <= rounds; round++) {
        ULONGLONG shot;

        await(load(&race.round.value) == round);
        shot = load(&race.deadline) + random_below(&random, 160) - 100;
        while (now() < shot)
            YieldProcessor();
        add(&race.signals, signal_once(&race.event));
        store(&race.seen.value, round);
    }
}

static void be_aimed_at(unsigned long rounds)
{
    test_random random;

    random_seed(&random, 11);
    want_exact_timeouts();
    for (unsigned long round = 1; round <= rounds; round++) {
        LONGLONG microseconds = 8 + random_below(&random, 8);

        store(&race.deadline, now() + 10 * (ULONGLONG)microseconds);
        store(&race.round.value, round);
        count_wait(timed_wait(microseconds, random_below(&random, 4) == 0));
        await(load(&race.seen.value) == round);
    }
}

static void duel_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0)
        be_aimed_at(race.rounds);
    else
        aim(race.rounds);
}

static void set_near_the_deadline(void **state)
{
    (void)state;
    start_race(30000);
    run_threads(2, HANG_SECONDS, duel_thread, NULL);
    check_conservation();
    assert_true(race.rounds < 1000 || (race.successes > 0 && race.timeouts > 0));
}

static void storm_thread(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    if (index < STORM_SETTERS) {
        while (load(&race.waiters_left) != 0) {
            add(&race.signals, signal_once(&race.event));
            spin_for(random_below(&random, 200));
        }
        return;
    }
    for (unsigned long round = 0; round < race.rounds / STORM_WAITERS + 1; round++)
        count_wait(timed_wait(1 + random_below(&random, 6), random_below(&random, 8) == 0));
    add(&race.waiters_left, -1UL);
}

static void many_setters_and_waiters(void **state)
{
    (void)state;
    start_race(300000);
    race.waiters_left = STORM_WAITERS;
    run_threads(STORM_SETTERS + STORM_WAITERS, HANG_SECONDS, storm_thread, NULL);
    check_conservation();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_near_the_deadline),
        cmocka_unit_test(many_setters_and_waiters),
    };

    return cmocka_run_group_tests_name("stress/settimeout", tests, NULL, NULL);
}
