/*
 * Holders and waiters of rundown protections, plain and cache-aware, whose memory goes as soon as the wait returns: who
 * touches it later is caught by the poison, and under a sanitizer at once.
 */
#include "stress.h"

#include <interlock/ex.h>

#define TAG 0x6e755274u
#define ALIVE 0x600d
#define DEAD 0xdead

typedef struct object {
    EX_RUNDOWN_REF plain;
    PEX_RUNDOWN_REF_CACHE_AWARE aware;
    unsigned state;
    unsigned waiters_left;   /* the last of them to return frees the object */
} object;

typedef struct race {
    unsigned holders;
    unsigned waiters;
    BOOLEAN aware;
    unsigned long rounds;
    object *current;
    unsigned arrived;        /* threads that have come to the barrier of the round */
    unsigned long round;     /* completed barriers */
} race;

static BOOLEAN acquire(object *o, ULONG count)
{
    return o->aware != NULL ? ExAcquireRundownProtectionCacheAwareEx(o->aware, count)
           : count == 1     ? ExAcquireRundownProtection(&o->plain)
                            : ExAcquireRundownProtectionEx(&o->plain, count);
}

static void release(object *o, ULONG count)
{
    if (o->aware != NULL)
        ExReleaseRundownProtectionCacheAwareEx(o->aware, count);
    else if (count == 1)
        ExReleaseRundownProtection(&o->plain);
    else
        ExReleaseRundownProtectionEx(&o->plain, count);
}

static void run_down(object *o)
{
    if (o->aware != NULL)
        ExWaitForRundownProtectionReleaseCacheAware(o->aware);
    else
        ExWaitForRundownProtectionRelease(&o->plain);
}

static object *create(const race *r)
{
    object *o = calloc(1, sizeof(*o));

    require(o != NULL);
    if (r->aware)
        require((o->aware = ExAllocateCacheAwareRundownProtection(NonPagedPool, TAG)) != NULL);
    o->state = ALIVE;
    o->waiters_left = r->waiters;
    return o;
}

static void destroy(object *o)
{
    require(load(&o->state) == ALIVE);
    store(&o->state, DEAD);
    if (o->aware != NULL)
        ExFreeCacheAwareRundownProtection(o->aware);
    memset(&o->plain, 0xdd, sizeof(o->plain));
    free(o);
}

/* Nobody holds the object of a round before it begins, so nobody has a pointer to one that is gone. */
static void meet_all(race *r)
{
    unsigned long round = load(&r->round);

    if (add(&r->arrived, 1) == r->holders + r->waiters) {
        r->current = r->current == NULL ? create(r) : NULL;
        store(&r->arrived, 0);
        store(&r->round, round + 1);
    } else {
        await(load(&r->round) != round);
    }
}

static void use(object *o, test_random *random)
{
    ULONG count = 1 + random_below(random, 3);

    while (acquire(o, count)) {
        require(load(&o->state) == ALIVE);
        spin_for(random_below(random, 20));
        while (count > 1 && random_below(random, 2)) {
            release(o, 1);
            count -= 1;
        }
        release(o, count);
        count = 1 + random_below(random, 3);
        if (random_below(random, 4) == 0)
            sched_yield();
    }
}

/* A holder's first reference is taken before the wait can begin, so the object is there when it looks. */
static void hold(race *r, unsigned index, test_random *random)
{
    object *o;

    meet_all(r);
    o = r->current;
    require(acquire(o, 1));
    meet_all(r);
    require(load(&o->state) == ALIVE);
    spin_for(random_below(random, 200));
    if (index % 2)
        use(o, random);
    release(o, 1);
}

static void wait_and_free(race *r, test_random *random)
{
    object *o;

    meet_all(r);
    o = r->current;
    meet_all(r);
    spin_for(random_below(random, 400));
    run_down(o);
    require(!acquire(o, 1));
    if (add(&o->waiters_left, -1) == 0)
        destroy(o);
}

static void run(void *argument, unsigned index)
{
    race *r = argument;
    test_random random;

    random_seed(&random, index);
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        if (index < r->holders)
            hold(r, index, &random);
        else
            wait_and_free(r, &random);
    }
}

static const struct {
    unsigned holders;
    unsigned waiters;
    unsigned long rounds;
} crews[] = {{1, 1, 1000}, {3, 1, 500}, {2, 2, 500}, {12, 4, 50}, {63, 1, 10}};

static void run_crews(BOOLEAN aware)
{
    for (unsigned i = 0; i < ARRAYSIZE(crews); i += 1) {
        race r = {.holders = crews[i].holders, .waiters = crews[i].waiters, .aware = aware};

        r.rounds = test_rounds(crews[i].rounds);
        run_threads(r.holders + r.waiters, HANG_SECONDS, run, &r);
    }
}

static void test_plain(void **state)
{
    (void)state;
    run_crews(FALSE);
}

static void test_cache_aware(void **state)
{
    (void)state;
    run_crews(TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_cache_aware)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
