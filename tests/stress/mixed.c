/*
 * Everything at once, by threads that start and exit: waits of every kind on a few shared objects, while other threads
 * suspend, alert and interrupt the waiters. Whatever can be counted is conserved.
 */
#include "stress.h"

#include <pthread.h>

#define WORKERS 5
#define STEPS_OF_A_LIFE 64
#define APCS 32

enum { EVENT_0, EVENT_1, SEMAPHORE, MUTANT_0, MUTANT_1, PULSED, TIMER, OBJECTS };

static struct {
    KEVENT event[2];
    KSEMAPHORE semaphore;
    KMUTANT mutant[2];
    KEVENT pulsed;
    KTIMER timer;
    unsigned long rounds;
    unsigned long steps;
    unsigned long made[OBJECTS];
    unsigned long taken[OBJECTS];
    unsigned long owners[2];
    unsigned long abandonments;
    unsigned long abandoned_waits;
    unsigned long lives_left;
    unsigned long apcs_queued;
    unsigned long apcs_ran;
    KAPC apc[APCS];
    int apc_in_use[APCS];
    pthread_mutex_t living;   /* while it is held the threads of victim[] do not exit */
    PKTHREAD victim[WORKERS];
} race;

static void *object_at(unsigned index)
{
    void *const objects[OBJECTS] = {
        [EVENT_0] = &race.event[0],   [EVENT_1] = &race.event[1],   [SEMAPHORE] = &race.semaphore,
        [MUTANT_0] = &race.mutant[0], [MUTANT_1] = &race.mutant[1], [PULSED] = &race.pulsed,
        [TIMER] = &race.timer,
    };

    return objects[index];
}

static int is_mutant(unsigned index)
{
    return index == MUTANT_0 || index == MUTANT_1;
}

static void make_signal(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 30));
    unsigned index = random_below(random, OBJECTS);

    switch (index) {
    case EVENT_0:
    case EVENT_1:
        if (random_below(random, 8) == 0)
            add(&race.taken[index], (unsigned long)KeResetEvent(&race.event[index - EVENT_0]));
        else
            add(&race.made[index], signal_once(&race.event[index - EVENT_0]));
        break;
    case SEMAPHORE:
        add(&race.made[SEMAPHORE], 2);
        KeReleaseSemaphore(&race.semaphore, SEMAPHORE_INCREMENT, 2, FALSE);
        break;
    case TIMER:
        KeSetTimer(&race.timer, due, NULL);
        break;
    default:
        KePulseEvent(&race.pulsed, EVENT_INCREMENT, FALSE);
        break;
    }
}

static void take(unsigned index, int *keep)
{
    if (!is_mutant(index)) {
        add(&race.taken[index], 1);
        return;
    }
    require(add(&race.owners[index - MUTANT_0], 1) == 1);
    if (*keep) { /* at most one, and its owner exits at once: no thread waits as an owner */
        *keep = 0;
        add(&race.abandonments, 1);
        add(&race.owners[index - MUTANT_0], -1UL);
        return;
    }
    add(&race.owners[index - MUTANT_0], -1UL);
    KeReleaseMutant(object_at(index), MUTANT_INCREMENT, FALSE, FALSE);
}

typedef struct wait_plan {
    ULONG count;
    unsigned index[OBJECTS];
    void *object[OBJECTS];
    WAIT_TYPE type;
    KPROCESSOR_MODE mode;
    BOOLEAN alertable;
    LARGE_INTEGER timeout;
} wait_plan;

static void plan_wait(wait_plan *plan, test_random *random)
{
    unsigned first = random_below(random, OBJECTS);

    plan->count = 1 + random_below(random, 3);
    for (unsigned i = 0; i < plan->count; i++) {
        plan->index[i] = (first + i * 2) % OBJECTS;
        plan->object[i] = object_at(plan->index[i]);
    }
    plan->type = random_below(random, 2) ? WaitAny : WaitAll;
    plan->mode = random_below(random, 2) ? UserMode : KernelMode;
    plan->alertable = random_below(random, 2) != 0;
    plan->timeout = in_microseconds(random_below(random, 100));
}

static NTSTATUS carry_out(wait_plan *plan, test_random *random)
{
    KWAIT_BLOCK blocks[OBJECTS];

    if (plan->count == 1 && random_below(random, 2))
        return KeWaitForSingleObject(plan->object[0], Executive, plan->mode, plan->alertable, &plan->timeout);
    return KeWaitForMultipleObjects(plan->count, plan->object, plan->type, Executive, plan->mode, plan->alertable,
                                    &plan->timeout, random_below(random, 2) ? blocks : NULL);
}

/* Returns whether a mutant was kept. */
static int account(const wait_plan *plan, NTSTATUS status, int may_keep)
{
    int keep = may_keep;

    if (status == STATUS_TIMEOUT)
        return 0;
    if (status == STATUS_ALERTED) {
        require(plan->alertable);
        return 0;
    }
    if (status >= STATUS_ABANDONED_WAIT_0) {
        add(&race.abandoned_waits, 1);
        status -= STATUS_ABANDONED_WAIT_0;
    }
    require(status >= STATUS_WAIT_0 && status < (NTSTATUS)plan->count);
    if (plan->count > 1 && plan->type == WaitAll) {
        require(status == STATUS_WAIT_0);
        for (unsigned i = 0; i < plan->count; i++)
            take(plan->index[i], &keep);
    } else {
        take(plan->index[status], &keep);
    }
    return may_keep && !keep;
}

static void *live(void *argument)
{
    unsigned index = (unsigned)(uintptr_t)argument;
    test_random random;

    random_seed(&random, add(&race.steps, 0) * WORKERS + index);
    want_exact_timeouts();
    pthread_mutex_lock(&race.living);
    race.victim[index] = KeGetCurrentThread();
    pthread_mutex_unlock(&race.living);
    for (unsigned step = 0; step < STEPS_OF_A_LIFE; step++) {
        wait_plan plan;

        make_signal(&random);
        plan_wait(&plan, &random);
        if (account(&plan, carry_out(&plan, &random), step > STEPS_OF_A_LIFE / 2))
            break;
        add(&race.steps, 1);
    }
    pthread_mutex_lock(&race.living);
    race.victim[index] = NULL;
    pthread_mutex_unlock(&race.living);
    return NULL;
}

static void generations(void *argument, unsigned index)
{
    (void)argument;
    while (load(&race.steps) < race.rounds) {
        pthread_t thread;

        require(pthread_create(&thread, NULL, live, (void *)(uintptr_t)index) == 0);
        require(pthread_join(thread, NULL) == 0);
    }
    add(&race.lives_left, -1UL);
}

static void apc_ran(struct _KAPC *apc)
{
    add(&race.apcs_ran, 1);
    store(&race.apc_in_use[apc - race.apc], 0);
}

static void apc_routine(struct _KAPC *apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)normal;
    (void)context;
    (void)argument1;
    (void)argument2;
    apc_ran(apc);
}

static void queue_apc(PKTHREAD thread, unsigned slot)
{
    if (load(&race.apc_in_use[slot]))
        return;
    store(&race.apc_in_use[slot], 1);
    KeInitializeApc(&race.apc[slot], thread, OriginalApcEnvironment, apc_routine, apc_ran, NULL, KernelMode, NULL);
    require(KeInsertQueueApc(&race.apc[slot], NULL, NULL, 0));
    add(&race.apcs_queued, 1);
}

static void disturb(PKTHREAD thread, test_random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        require(KeSuspendThread(thread) == 0);
        spin_for(random_below(random, 100));
        require(KeResumeThread(thread) == 1);
        break;
    case 1:
        KeAlertThread(thread, random_below(random, 2) ? UserMode : KernelMode);
        break;
    default:
        queue_apc(thread, random_below(random, APCS));
        break;
    }
}

static void disturber(void)
{
    test_random random;

    random_seed(&random, 99);
    while (load(&race.lives_left) != 0) {
        PKTHREAD thread;

        pthread_mutex_lock(&race.living);
        thread = race.victim[random_below(&random, WORKERS)];
        if (thread != NULL)
            disturb(thread, &random);
        pthread_mutex_unlock(&race.living);
        sched_yield();
    }
}

static void race_thread(void *argument, unsigned index)
{
    if (index < WORKERS)
        generations(argument, index);
    else
        disturber();
}

static void check_mutants(void)
{
    for (unsigned i = MUTANT_0; i <= MUTANT_1; i++) {
        NTSTATUS status = poll_for(object_at(i));

        assert_true(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
        race.abandoned_waits += status == STATUS_ABANDONED;
        KeReleaseMutant(object_at(i), MUTANT_INCREMENT, FALSE, FALSE);
    }
}

static void everything_at_once(void **state)
{
    (void)state;
    race.rounds = test_rounds(300000);
    race.lives_left = WORKERS;
    pthread_mutex_init(&race.living, NULL);
    for (unsigned i = 0; i < 2; i++) {
        KeInitializeEvent(&race.event[i], SynchronizationEvent, FALSE);
        KeInitializeMutant(&race.mutant[i], FALSE);
    }
    KeInitializeSemaphore(&race.semaphore, 0, MAXLONG);
    KeInitializeEvent(&race.pulsed, NotificationEvent, FALSE);
    KeInitializeTimerEx(&race.timer, SynchronizationTimer);
    run_threads(WORKERS + 1, HANG_SECONDS, race_thread, NULL);
    check_mutants();
    KeCancelTimer(&race.timer);
    for (unsigned i = EVENT_0; i <= EVENT_1; i++)
        assert_int_equal(race.made[i], race.taken[i] + (unsigned long)KeReadStateEvent(&race.event[i]));
    assert_int_equal(race.made[SEMAPHORE],
                     race.taken[SEMAPHORE] + (unsigned long)KeReadStateSemaphore(&race.semaphore));
    assert_int_equal(race.apcs_ran, race.apcs_queued);
    assert_int_equal(race.abandoned_waits, race.abandonments);
    assert_int_equal(KeReadStateEvent(&race.pulsed), 0);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_true(IsListEmpty(&((PDISPATCHER_HEADER)object_at(i))->WaitListHead));
    pthread_mutex_destroy(&race.living);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
    };

    return cmocka_run_group_tests_name("stress/mixed", tests, NULL, NULL);
}
