/*
 * Holders and waiters of rundown protections, plain and cache-aware, whose memory is freed as soon as the last wait
 * returns, or the first: later accesses hit the poison or a sanitizer.
 */
#include "stress.h"

#include <interlock/ex.h>

#define POISON 0xdd
#define ALIVE 0x600d
#define DEAD 0xdead

typedef struct object {
    PEX_RUNDOWN_REF plain;
    PEX_RUNDOWN_REF_CACHE_AWARE aware;  /* or this */
    PEX_RUNDOWN_REF first;              /* slot */
    unsigned char *memory;              /* of the protection */
    size_t size;
    unsigned state;
    unsigned let_in;                    /* waiters that may come */
    unsigned returned;
} object;

typedef struct race {
    unsigned holders;
    unsigned waiters;
    BOOLEAN aware;
    BOOLEAN first_frees;     /* not the last one */
    unsigned long rounds;
    object *current;
    object *previous;        /* a poisoned protection, checked when all have left; or NULL */
    unsigned arrived;        /* threads that have reached the barrier of the round */
    unsigned long round;     /* completed barriers */
} race;

static BOOLEAN acquire(object *o, ULONG count)
{
    return o->aware != NULL ? ExAcquireRundownProtectionCacheAwareEx(o->aware, count)
           : count == 1     ? ExAcquireRundownProtection(o->plain)
                            : ExAcquireRundownProtectionEx(o->plain, count);
}

static void release(object *o, ULONG count)
{
    if (o->aware != NULL)
        ExReleaseRundownProtectionCacheAwareEx(o->aware, count);
    else if (count == 1)
        ExReleaseRundownProtection(o->plain);
    else
        ExReleaseRundownProtectionEx(o->plain, count);
}

static void run_down(object *o)
{
    if (o->aware != NULL)
        ExWaitForRundownProtectionReleaseCacheAware(o->aware);
    else
        ExWaitForRundownProtectionRelease(o->plain);
}

static object *create(const race *r)
{
    object *o = calloc(1, sizeof(*o));

    require(o != NULL);
    o->size = r->aware ? ExSizeOfRundownProtectionCacheAware() : sizeof(*o->plain);
    require((o->memory = calloc(1, o->size)) != NULL);
    if (r->aware) {
        o->aware = (PVOID)o->memory;
        ExInitializeRundownProtectionCacheAware(o->aware, o->size);
        o->first = *(PEX_RUNDOWN_REF *)(PVOID)o->memory;
    } else {
        o->first = o->plain = (PVOID)o->memory;
    }
    o->state = ALIVE;
    return o;
}

static void poison(object *o)
{
    require(load(&o->state) == ALIVE);
    store(&o->state, DEAD);
    memset(o->memory, POISON, o->size);
}

static void destroy(object *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->size; i += 1)
        require(o->memory[i] == POISON);
    free(o->memory);
    free(o);
}

/* No thread holds the object of a round before it begins, so no thread has a pointer to a freed one. */
static void meet_all(race *r)
{
    unsigned long round = load(&r->round);

    if (add(&r->arrived, 1) == r->holders + r->waiters) {
        if (r->current == NULL) {
            destroy(r->previous);
            r->previous = r->current = create(r);
        } else {
            r->current = NULL;
        }
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

/* Once a waiter is in, only waiters change the word: holders decrement the count in its block. */
static BOOLEAN has_new_waiter(object *o, ULONG_PTR before)
{
    ULONG_PTR word = load(&o->first->Count);

    return word != before && (word & EX_RUNDOWN_ACTIVE) != 0;
}

static void let_waiters_in(object *o, unsigned waiters)
{
    for (unsigned i = 1; i <= waiters; i += 1) {
        ULONG_PTR before = load(&o->first->Count);

        store(&o->let_in, i);
        await(has_new_waiter(o, before));
    }
}

/* A holder takes its first reference before the wait can begin, so the object is there when it looks. */
static void hold(race *r, unsigned index, test_random *random)
{
    object *o;

    meet_all(r);
    o = r->current;
    require(acquire(o, 1));
    meet_all(r);
    require(load(&o->state) == ALIVE);
    if (r->first_frees && index == 0)
        let_waiters_in(o, r->waiters);
    else
        spin_for(random_below(random, 200));
    if (index % 2)
        use(o, random);
    release(o, 1);
}

/* Where the first waiter to return frees the protection, all must be in before the last holder leaves. */
static void wait_and_free(race *r, unsigned index, test_random *random)
{
    object *o;

    meet_all(r);
    o = r->current;
    meet_all(r);
    if (r->first_frees)
        await(load(&o->let_in) > index);
    else
        spin_for(random_below(random, 400));
    run_down(o);
    if (!r->first_frees)
        require(!acquire(o, 1));
    if (add(&o->returned, 1) != (r->first_frees ? 1 : r->waiters))
        return;
    poison(o);
    if (!r->first_frees) {
        r->previous = NULL;
        destroy(o);
    }
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
            wait_and_free(r, index - r->holders, &random);
    }
}

static const struct {
    unsigned holders;
    unsigned waiters;
    unsigned long rounds;
} crews[] = {{1, 1, 1000}, {3, 1, 500}, {2, 2, 500}, {12, 4, 50}, {63, 1, 10}};

static void run_crews(BOOLEAN aware, BOOLEAN first_frees)
{
    for (unsigned i = 0; i < ARRAYSIZE(crews); i += 1) {
        race r = {.holders = crews[i].holders, .waiters = crews[i].waiters, .aware = aware, .first_frees = first_frees};

        r.rounds = test_rounds(crews[i].rounds);
        run_threads(r.holders + r.waiters, HANG_SECONDS, run, &r);
        destroy(r.previous);
    }
}

static void test_plain(void **state)
{
    (void)state;
    run_crews(FALSE, FALSE);
}

static void test_plain_first_frees(void **state)
{
    (void)state;
    run_crews(FALSE, TRUE);
}

static void test_cache_aware(void **state)
{
    (void)state;
    run_crews(TRUE, FALSE);
}

static void test_cache_aware_first_frees(void **state)
{
    (void)state;
    run_crews(TRUE, TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_plain_first_frees),
        cmocka_unit_test(test_cache_aware),
        cmocka_unit_test(test_cache_aware_first_frees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
