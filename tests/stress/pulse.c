/*
 * Pulses. A pulse releases exactly the threads that are queued at that moment, one for a synchronization event, and no
 * thread ever sees the event signaled.
 */
#include "stress.h"

#define WAITERS 4

static const struct row {
    EVENT_TYPE type;
    unsigned released;
} rows[] = {
    {NotificationEvent, WAITERS},
    {SynchronizationEvent, 1},
};

static struct {
    KEVENT event;
    PKTHREAD thread[WAITERS];
    lone_counter began[WAITERS];
    lone_counter ended[WAITERS];
    unsigned long ended_before[WAITERS];
    unsigned long rounds;
    int stop;
    lone_counter pulses_begun;
    lone_counter pulses_done;
    unsigned long releases;
    unsigned long left;
} race;

static void start_race(EVENT_TYPE type, unsigned long rounds)
{
    memset(&race, 0, sizeof(race));
    KeInitializeEvent(&race.event, type, FALSE);
    race.rounds = test_rounds(rounds);
    race.left = WAITERS;
}

static void waiter(void *argument, unsigned index)
{
    (void)argument;
    store(&race.thread[index], KeGetCurrentThread());
    while (!load(&race.stop)) {
        add(&race.began[index].value, 1);
        require(wait_for(&race.event) == STATUS_SUCCESS);
        add(&race.ended[index].value, 1);
    }
    add(&race.left, -1UL);
}

static int is_queued(unsigned index)
{
    unsigned long ended = load(&race.ended[index].value);

    return load(&race.began[index].value) == ended + 1 && is_in_wait(race.thread[index], WaitCommitted) &&
           load(&race.ended[index].value) == ended;
}

/* A released thread may be in its next wait already; it is known by the wait that it has ended. */
static unsigned count_off_the_list(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < WAITERS; i++) {
        int waits = (register_of(race.thread[i]) & KI_WAIT_ACTIVE) != 0;

        count += !waits || load(&race.ended[i].value) != race.ended_before[i];
    }
    return count;
}

static unsigned long total_ended(void)
{
    unsigned long total = 0;

    for (unsigned i = 0; i < WAITERS; i++)
        total += load(&race.ended[i].value);
    return total;
}

/* Every waiter is queued at the pulse: which are released is known exactly when the call returns. */
static void pulse_queued_waiters(const struct row *row)
{
    test_threads *threads;
    unsigned long total = 0;

    start_race(row->type, 40000);
    threads = start_threads(WAITERS, waiter, NULL);
    for (unsigned i = 0; i < WAITERS; i++)
        await(load(&race.thread[i]) != NULL);
    for (unsigned long round = 0; round < race.rounds; round++) {
        for (unsigned i = 0; i < WAITERS; i++)
            await(is_queued(i));
        for (unsigned i = 0; i < WAITERS; i++)
            race.ended_before[i] = load(&race.ended[i].value);
        if (round + 1 == race.rounds)
            store(&race.stop, 1);
        require(KePulseEvent(&race.event, EVENT_INCREMENT, FALSE) == 0);
        require(KeReadStateEvent(&race.event) == 0);
        require(count_off_the_list() == row->released);
        total += row->released;
        await(total_ended() >= total);
        require(total_ended() == total);
    }
    while (load(&race.left) != 0)
        KeSetEvent(&race.event, EVENT_INCREMENT, FALSE);
    join_threads(threads, HANG_SECONDS);
}

static void pulse_releases_exactly_the_queued(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        pulse_queued_waiters(&rows[i]);
}

/* Waiters arrive at any time. No release without a pulse that overlaps the wait, never two for one synchronization
   event.
 */
static void random_waiter(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    while (!load(&race.stop)) {
        unsigned long done = load(&race.pulses_done.value);
        LARGE_INTEGER timeout = in_microseconds(5 + random_below(&random, 50));
        NTSTATUS status = KeWaitForSingleObject(&race.event, Executive, KernelMode, FALSE,
                                                random_below(&random, 4) == 0 ? &timeout : NULL);

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        if (status == STATUS_SUCCESS) {
            require(load(&race.pulses_begun.value) > done);
            add(&race.releases, 1);
        }
    }
    add(&race.left, -1UL);
}

static void pulse_once(void)
{
    add(&race.pulses_begun.value, 1);
    require(KePulseEvent(&race.event, EVENT_INCREMENT, FALSE) == 0);
    require(KeReadStateEvent(&race.event) == 0);
    add(&race.pulses_done.value, 1);
}

static void pulses_at_any_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        test_threads *threads;
        test_random random;

        start_race(rows[i].type, 200000);
        random_seed(&random, i);
        threads = start_threads(WAITERS, random_waiter, NULL);
        for (unsigned long round = 0; round < race.rounds; round++) {
            pulse_once();
            spin_for(random_below(&random, 40));
        }
        store(&race.stop, 1);
        while (load(&race.left) != 0)
            pulse_once();
        join_threads(threads, HANG_SECONDS);
        assert_true(race.releases <= rows[i].released * race.pulses_done.value);
        assert_true(IsListEmpty(&race.event.Header.WaitListHead));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pulse_releases_exactly_the_queued),
        cmocka_unit_test(pulses_at_any_time),
    };

    return cmocka_run_group_tests_name("stress/pulse", tests, NULL, NULL);
}
