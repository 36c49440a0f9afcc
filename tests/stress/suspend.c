/*
 * Suspension against signals. The victim consumes signals in various kinds of waits and is suspended and resumed
 * continuously. While it is suspended its count does not change, no signal is lost, and at the end it has consumed them
 * all.
 */
#include "stress.h"

#include <limits.h>

typedef void victim_step(void);

static void step_running(void);
static void step_single(void);
static void step_any(void);
static void step_all(void);
static void step_timed_all(void);
static void step_delay(void);

static const struct row {
    const char *name;
    victim_step *step;
    int signals;              /* the step ends by a signal rather than by itself */
    int lightweight;          /* a suspension may convert the wait */
    unsigned long rounds;
} rows[] = {
    {"running", step_running, 0, 0, 4000},
    {"wait for one", step_single, 1, 0, 8000},
    {"wait for any", step_any, 1, 0, 8000},
    {"wait for all", step_all, 1, 1, 10000},
    {"wait for all with a deadline", step_timed_all, 1, 1, 10000},
    {"delay", step_delay, 0, 1, 10000},
};

static struct {
    const struct row *row;
    KEVENT event[2];
    unsigned long rounds;
    PKTHREAD victim;
    int stop;
    unsigned long last_step;
    lone_counter steps;
    unsigned long signals;
    unsigned long light;
    unsigned long heavy;
} race;

static void step_running(void)
{
    spin_for(20);
}

static void step_single(void)
{
    require(wait_for(&race.event[0]) == STATUS_SUCCESS);
}

static void step_any(void)
{
    void *objects[] = {&race.event[1], &race.event[0]};

    require(KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_1);
}

static void step_all(void)
{
    void *objects[] = {&race.event[1], &race.event[0]};

    require(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, UserMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
}

static void step_timed_all(void)
{
    void *objects[] = {&race.event[0], &race.event[1]};
    NTSTATUS status;

    do {
        LARGE_INTEGER timeout = in_microseconds(30);

        status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &timeout, NULL);
        require(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    } while (status == STATUS_TIMEOUT);
}

static void step_delay(void)
{
    LARGE_INTEGER interval = in_microseconds(10);

    require(KeDelayExecutionThread(KernelMode, FALSE, &interval) == STATUS_SUCCESS);
}

static void victim(void)
{
    want_exact_timeouts();
    store(&race.victim, KeGetCurrentThread());
    while (race.steps.value < load(&race.last_step)) {
        race.row->step();
        add(&race.steps.value, 1);
    }
}

/* A WaitAll needs both events and gets them one after the other. */
static void send_one_signal(void)
{
    int both = race.row->step == step_all || race.row->step == step_timed_all;

    race.signals++;
    require(KeSetEvent(&race.event[0], EVENT_INCREMENT, FALSE) == 0);
    if (both)
        require(KeSetEvent(&race.event[1], EVENT_INCREMENT, FALSE) == 0);
    await(load(&race.steps.value) == race.signals);
}

static void send_signals(void)
{
    if (!race.row->signals) {
        await(load(&race.stop));
        store(&race.last_step, 0);
        return;
    }
    while (!load(&race.stop))
        send_one_signal();
    store(&race.last_step, race.signals + 1);
    send_one_signal();
}

static int is_stopped(PKTHREAD thread, unsigned long *light)
{
    if (is_in_wait(thread, WaitSuspended)) {
        *light = 1;
        return 1;
    }
    *light = 0;
    return is_in_wait(thread, WaitCommitted) && load(&thread->WaitReason) == Suspended;
}

static void check_that_it_stands_still(test_random *random)
{
    unsigned long light;
    unsigned long before;

    await(is_stopped(race.victim, &light));
    before = load(&race.steps.value);
    spin_for(random_below(random, 100));
    if (random_below(random, 16) == 0)
        sched_yield();
    require(load(&race.steps.value) == before);
    require(!light || race.row->lightweight);
    add(light ? &race.light : &race.heavy, 1);
}

/* Deferred signals are delivered before the next suspension. */
static void await_step(void)
{
    unsigned long before = load(&race.steps.value);

    await(load(&race.steps.value) != before);
}

static void suspend_and_resume(void)
{
    test_random random;

    random_seed(&random, 5);
    await(load(&race.victim) != NULL);
    for (unsigned long round = 0; round < race.rounds; round++) {
        int twice = random_below(&random, 4) == 0;

        require(KeSuspendThread(race.victim) == 0);
        if (twice)
            require(KeSuspendThread(race.victim) == 1);
        if (random_below(&random, 2) == 0)
            check_that_it_stands_still(&random);
        if (twice)
            require(KeResumeThread(race.victim) == 2);
        require(KeResumeThread(race.victim) == 1);
        if (random_below(&random, 2) == 0)
            await_step();
        else
            spin_for(random_below(&random, 100));
    }
    store(&race.stop, 1);
}

static void race_thread(void *argument, unsigned index)
{
    static void (*const parts[])(void) = {victim, send_signals, suspend_and_resume};

    (void)argument;
    parts[index]();
}

static void suspended_threads_stand_still(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        memset(&race, 0, sizeof(race));
        race.row = &rows[i];
        race.rounds = test_rounds(race.row->rounds);
        race.last_step = ULONG_MAX;
        KeInitializeEvent(&race.event[0], SynchronizationEvent, FALSE);
        KeInitializeEvent(&race.event[1], SynchronizationEvent, FALSE);
        run_threads(3, HANG_SECONDS, race_thread, NULL);
        if (race.row->signals)
            assert_int_equal(race.steps.value, race.signals);
        assert_int_equal(KeReadStateEvent(&race.event[0]) + KeReadStateEvent(&race.event[1]), 0);
        assert_true(race.rounds < 1000 || race.heavy + race.light > 0);
    }
}

/* A suspended delay has no deadline. If it is resumed between looking for one and going to sleep, it must find the
   deadline again. */
static struct {
    PKTHREAD thread;
    int entered;
    int leave;
    BOOLEAN (*wait)(volatile ULONG *, ULONG, const HAL_DEADLINE *);
} moment;

static BOOLEAN wait_in_the_moment(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    if (HalCurrentThread == load(&moment.thread) && deadline->Clock == HalNoDeadline && !load(&moment.entered)) {
        store(&moment.entered, 1);
        await(load(&moment.leave));
    }
    return moment.wait(address, expected, deadline);
}

static void moment_thread(void *argument, unsigned index)
{
    LARGE_INTEGER interval = in_microseconds(20000);

    (void)argument;
    (void)index;
    store(&moment.thread, KeGetCurrentThread());
    do {
        require(KeDelayExecutionThread(KernelMode, FALSE, &interval) == STATUS_SUCCESS);
    } while (!load(&moment.leave));
}

/* A delay that ends before it can be suspended is followed by the next. */
static void suspend_a_delay(void)
{
    await(load(&moment.thread) != NULL);
    for (;;) {
        await(is_in_wait(moment.thread, WaitCommitted));
        assert_int_equal(KeSuspendThread(moment.thread), 0);
        if (is_in_wait(moment.thread, WaitSuspended))
            return;
        assert_int_equal(KeResumeThread(moment.thread), 1);
    }
}

static void resumed_before_it_sleeps(void **state)
{
    test_threads *threads = start_threads(1, moment_thread, NULL);

    (void)state;
    suspend_a_delay();
    await(load(&moment.entered));
    assert_int_equal(KeResumeThread(moment.thread), 1);
    store(&moment.leave, 1);
    join_threads(threads, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_before_it_sleeps),
        cmocka_unit_test(suspended_threads_stand_still),
    };

    moment.wait = HalDispatch.Wait;
    HalDispatch.Wait = wait_in_the_moment;
    return cmocka_run_group_tests_name("stress/suspend", tests, NULL, NULL);
}
