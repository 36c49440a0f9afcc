/* Fast mutexes and guarded mutexes with many threads: exclusion, no lost wake, memory freed at once. */
#include "freedbylast.h"

#include <interlock/ex.h>

#define MUTEXES 2

static const unsigned thread_counts[] = {2, 4, 16, 64};

typedef struct guarded {
    FAST_MUTEX mutex;
    unsigned long count; /* not atomic: the mutex protects them */
    unsigned long twin;
} guarded;

static struct {
    guarded guarded[MUTEXES];
    unsigned long rounds;
    unsigned long entries;
} scene;

static void use(guarded *g, test_random *random)
{
    require(__atomic_load_n(&g->mutex.Count, __ATOMIC_RELAXED) <= 0);
    require(__atomic_load_n(&g->mutex.Owner, __ATOMIC_RELAXED) == KeGetCurrentThread());
    require(g->count == g->twin);
    g->count++;
    if (random_below(random, 200) == 0)
        sched_yield();
    else
        spin_for(random_below(random, 8));
    g->twin++;
}

static unsigned long enter(guarded *g, test_random *random)
{
    KIRQL old;

    switch (random_below(random, 6)) {
    case 0:
        if (!ExTryToAcquireFastMutex(&g->mutex)) {
            require(KeGetCurrentIrql() == PASSIVE_LEVEL);
            return 0;
        }
        use(g, random);
        ExReleaseFastMutex(&g->mutex);
        break;
    case 1:
        KeAcquireGuardedMutex(&g->mutex);
        require(KeGetCurrentIrql() == APC_LEVEL);
        use(g, random);
        KeReleaseGuardedMutex(&g->mutex);
        break;
    case 2:
        KeRaiseIrql(APC_LEVEL, &old);
        ExAcquireFastMutexUnsafe(&g->mutex);
        use(g, random);
        ExReleaseFastMutexUnsafe(&g->mutex);
        KeLowerIrql(old);
        break;
    case 3:
        KeEnterGuardedRegion();
        KeAcquireGuardedMutexUnsafe(&g->mutex);
        use(g, random);
        KeReleaseGuardedMutexUnsafe(&g->mutex);
        KeLeaveGuardedRegion();
        break;
    default:
        ExAcquireFastMutex(&g->mutex);
        require(KeGetCurrentIrql() == APC_LEVEL);
        use(g, random);
        ExReleaseFastMutex(&g->mutex);
    }
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
    return 1;
}

static void contend(void *argument, unsigned index)
{
    test_random random;
    unsigned long entries = 0;

    (void)argument;
    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < scene.rounds; round++)
        entries += enter(&scene.guarded[random_below(&random, MUTEXES)], &random);
    add(&scene.entries, entries);
}

static void exclusion(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++) {
        unsigned long entries = 0;

        memset(&scene, 0, sizeof(scene));
        for (unsigned k = 0; k < MUTEXES; k++)
            ExInitializeFastMutex(&scene.guarded[k].mutex);
        scene.rounds = test_rounds(600000) / thread_counts[i] + 1;
        run_threads(thread_counts[i], HANG_SECONDS, contend, NULL);
        for (unsigned k = 0; k < MUTEXES; k++) {
            guarded *g = &scene.guarded[k];

            assert_int_equal(g->mutex.Count, 1);
            assert_int_equal(g->mutex.Waking, 0);
            assert_null(g->mutex.Owner);
            assert_int_equal(poll_for(&g->mutex.Event), STATUS_TIMEOUT);
            assert_int_equal(g->count, g->twin);
            entries += g->count;
        }
        assert_int_equal(entries, scene.entries);
    }
}

/* The last thread to leave frees the mutex that the others have just left. */

typedef struct shared {
    FAST_MUTEX mutex;
    unsigned users;
} shared;

static void make_mutex(void *object, unsigned users)
{
    shared *s = object;

    ExInitializeFastMutex(&s->mutex);
    s->users = users;
}

static int is_last(void *object, unsigned index, test_random *random)
{
    shared *s = object;
    int last;

    (void)index;
    spin_for(random_below(random, 20));
    ExAcquireFastMutex(&s->mutex);
    last = --s->users == 0;
    ExReleaseFastMutex(&s->mutex);
    return last;
}

static void leave_as_it_is(void *object)
{
    (void)object;
}

static void freed_by_the_last(void **state)
{
    static const object_kind kind = {sizeof(shared), make_mutex, is_last, leave_as_it_is};

    (void)state;
    free_by_the_last(&kind, 2, test_rounds(20000));
    free_by_the_last(&kind, 4, test_rounds(20000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exclusion),
        cmocka_unit_test(freed_by_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
