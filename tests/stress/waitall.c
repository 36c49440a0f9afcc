/*
 * WaitAll: all of its objects or none, atomically. For each object the signals equal those taken plus those that
 * remain, so a wait that took one object without the other would show.
 */
#include "stress.h"

enum { A, B, C, OBJECTS };

#define MAXIMUM_TAKERS 6

/* One taker: its objects in the order that it passes, and how it waits. */
typedef struct taker {
    unsigned count;
    unsigned object[OBJECTS];
    enum { BLOCKING, TIMED, POLLING } how;
} taker;

typedef struct row {
    const char *name;
    int semaphores;                /* bit n: object n is a semaphore, not a synchronization event */
    unsigned takers;
    taker taker[MAXIMUM_TAKERS];
    unsigned long rounds;
} row;

static const row rows[] = {
    {"two in opposite order", 0, 2, {{2, {A, B}, BLOCKING}, {2, {B, A}, BLOCKING}}, 150000},
    {"four in opposite order",
     0,
     4,
     {{2, {A, B}, BLOCKING}, {2, {B, A}, BLOCKING}, {2, {A, B}, TIMED}, {2, {B, A}, POLLING}},
     100000},
    {"overlapping pairs",
     0,
     3,
     {{2, {A, B}, BLOCKING}, {2, {B, C}, BLOCKING}, {2, {C, A}, BLOCKING}},
     100000},
    {"overlapping pairs with semaphores, a triple and single waiters",
     1 << B,
     6,
     {{2, {B, A}, BLOCKING},
      {2, {B, C}, TIMED},
      {2, {A, C}, BLOCKING},
      {3, {C, A, B}, BLOCKING},
      {1, {A}, BLOCKING},
      {1, {B}, TIMED}},
     100000},
};

static struct {
    const row *row;
    union {
        DISPATCHER_HEADER header;
        KEVENT event;
        KSEMAPHORE semaphore;
    } object[OBJECTS];
    unsigned long rounds;
    unsigned long made[OBJECTS];
    unsigned long taken[OBJECTS];
    unsigned long successes;
    unsigned long takers_left;
} race;

static int is_semaphore(unsigned index)
{
    return race.row->semaphores >> index & 1;
}

static LONG state_of(unsigned index)
{
    return is_semaphore(index) ? KeReadStateSemaphore(&race.object[index].semaphore)
                               : KeReadStateEvent(&race.object[index].event);
}

static void make(unsigned index)
{
    if (!is_semaphore(index)) {
        add(&race.made[index], signal_once(&race.object[index].event));
    } else if (state_of(index) < 4) {
        KeReleaseSemaphore(&race.object[index].semaphore, SEMAPHORE_INCREMENT, 2, FALSE);
        add(&race.made[index], 2);
    }
}

static NTSTATUS wait_as(const taker *self, test_random *random)
{
    void *objects[OBJECTS];
    LARGE_INTEGER timeout = in_microseconds(self->how == TIMED ? random_below(random, 30) : 0);

    for (unsigned i = 0; i < self->count; i++)
        objects[i] = &race.object[self->object[i]];
    return KeWaitForMultipleObjects(self->count, objects, WaitAll, Executive, KernelMode, FALSE,
                                    self->how == BLOCKING ? NULL : &timeout, NULL);
}

static void take(const taker *self, unsigned index)
{
    test_random random;

    random_seed(&random, index);
    want_exact_timeouts();
    while (load(&race.successes) < race.rounds) {
        NTSTATUS status = wait_as(self, &random);

        if (status == STATUS_TIMEOUT) {
            require(self->how != BLOCKING);
            continue;
        }
        require(status == STATUS_WAIT_0);
        for (unsigned i = 0; i < self->count; i++)
            add(&race.taken[self->object[i]], 1);
        add(&race.successes, 1);
    }
    add(&race.takers_left, -1UL);
}

static void race_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index < OBJECTS) {
        test_random random;

        random_seed(&random, index);
        while (load(&race.takers_left) != 0) {
            make(index);
            make(random_below(&random, OBJECTS));
            spin_for(random_below(&random, 30));
        }
    } else {
        take(&race.row->taker[index - OBJECTS], index);
    }
}

static void all_or_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        memset(&race, 0, sizeof(race));
        race.row = &rows[i];
        race.rounds = test_rounds(race.row->rounds);
        race.takers_left = race.row->takers;
        for (unsigned index = 0; index < OBJECTS; index++) {
            if (is_semaphore(index))
                KeInitializeSemaphore(&race.object[index].semaphore, 0, MAXLONG);
            else
                KeInitializeEvent(&race.object[index].event, SynchronizationEvent, FALSE);
        }
        run_threads(OBJECTS + race.row->takers, HANG_SECONDS, race_thread, NULL);
        for (unsigned index = 0; index < OBJECTS; index++) {
            if (race.made[index] != race.taken[index] + (unsigned long)state_of(index))
                fail_msg("%s: object %u: made %lu, taken %lu, left %d", race.row->name, index, race.made[index],
                         race.taken[index], (int)state_of(index));
            assert_true(IsListEmpty(&race.object[index].header.WaitListHead));
        }
    }
}

/* A notification event that every waiter needs is the gate. While it is closed no object may be taken even if the rest
   of each wait is signaled: an object that is seen signaled stays so. */
#define GATE_TAKERS 3

static struct {
    KEVENT gate;
    KEVENT event[2];
    int stop;
    unsigned long left;
    unsigned long taken[2];
} gated;

static void gate_taker(void *argument, unsigned index)
{
    void *objects[GATE_TAKERS][3] = {
        {&gated.event[0], &gated.gate},
        {&gated.gate, &gated.event[1]},
        {&gated.event[1], &gated.gate, &gated.event[0]},
    };
    ULONG count = index == 2 ? 3 : 2;

    (void)argument;
    while (!load(&gated.stop)) {
        require(KeWaitForMultipleObjects(count, objects[index], WaitAll, Executive, KernelMode, FALSE, NULL, NULL) ==
                STATUS_WAIT_0);
        add(&gated.taken[0], index != 1);
        add(&gated.taken[1], index != 0);
    }
    add(&gated.left, -1UL);
}

static void closed_gate_stops_everybody(void **state)
{
    unsigned long rounds = test_rounds(100000);
    unsigned long made[2] = {0, 0};
    test_threads *threads;
    test_random random;

    (void)state;
    memset(&gated, 0, sizeof(gated));
    gated.left = GATE_TAKERS;
    random_seed(&random, 3);
    KeInitializeEvent(&gated.gate, NotificationEvent, FALSE);
    KeInitializeEvent(&gated.event[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&gated.event[1], SynchronizationEvent, FALSE);
    threads = start_threads(GATE_TAKERS, gate_taker, NULL);
    for (unsigned long round = 0; round < rounds; round++) {
        made[0] += signal_once(&gated.event[0]);
        made[1] += signal_once(&gated.event[1]);
        spin_for(random_below(&random, 10));
        require(KeReadStateEvent(&gated.event[0]) == 1 && KeReadStateEvent(&gated.event[1]) == 1);
        require(KeSetEvent(&gated.gate, EVENT_INCREMENT, FALSE) == 0);
        spin_for(random_below(&random, 200));
        require(KeResetEvent(&gated.gate) == 1);
    }
    store(&gated.stop, 1);
    KeSetEvent(&gated.gate, EVENT_INCREMENT, FALSE);
    while (load(&gated.left) != 0) {
        made[0] += signal_once(&gated.event[0]);
        made[1] += signal_once(&gated.event[1]);
        sched_yield();
    }
    join_threads(threads, HANG_SECONDS);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(made[i], gated.taken[i] + (unsigned long)KeReadStateEvent(&gated.event[i]));
}

/* Mutants in a WaitAll: neighbours share a fork, none eats with less than two, none deadlocks. */
#define PHILOSOPHERS 4

static struct {
    KMUTANT fork[PHILOSOPHERS];
    unsigned long holders[PHILOSOPHERS];
    unsigned long meals;
} table;

static void philosopher(void *argument, unsigned seat)
{
    unsigned left = seat;
    unsigned right = (seat + 1) % PHILOSOPHERS;
    void *forks[] = {&table.fork[left], &table.fork[right]};

    for (unsigned long meal = 0; meal < *(unsigned long *)argument; meal++) {
        require(KeWaitForMultipleObjects(2, forks, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
        require(add(&table.holders[left], 1) == 1);
        require(add(&table.holders[right], 1) == 1);
        spin_for(5);
        add(&table.holders[left], -1UL);
        add(&table.holders[right], -1UL);
        require(KeReleaseMutant(forks[meal % 2], MUTANT_INCREMENT, FALSE, FALSE) == 0);
        require(KeReleaseMutant(forks[(meal + 1) % 2], MUTANT_INCREMENT, FALSE, FALSE) == 0);
        add(&table.meals, 1);
    }
}

static void philosophers_eat(void **state)
{
    unsigned long meals = test_rounds(50000);

    (void)state;
    memset(&table, 0, sizeof(table));
    for (unsigned i = 0; i < PHILOSOPHERS; i++)
        KeInitializeMutant(&table.fork[i], FALSE);
    run_threads(PHILOSOPHERS, HANG_SECONDS, philosopher, &meals);
    assert_int_equal(table.meals, PHILOSOPHERS * meals);
    for (unsigned i = 0; i < PHILOSOPHERS; i++)
        assert_int_equal(KeReadStateMutant(&table.fork[i]), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_or_nothing),
        cmocka_unit_test(closed_gate_stops_everybody),
        cmocka_unit_test(philosophers_eat),
    };

    return cmocka_run_group_tests_name("stress/waitall", tests, NULL, NULL);
}
