/*
 * Threads wait and release at a few keys with timeouts that race the pairing. Each pairing succeeds on both sides, so
 * at the end both sides of a key have the same number of successes.
 */
#include "stress.h"

#include "ex/exp.h"

#define KEYS 3
#define MAXIMUM_THREADS 64

typedef struct tally {
    unsigned long successes[2][KEYS];
} __attribute__((aligned(64))) tally;

typedef struct race {
    unsigned threads;
    unsigned long rounds;
    EX_KEYED_EVENT event;
    tally tallies[MAXIMUM_THREADS];
} race;

static PVOID key_of(race *r, unsigned number)
{
    return (UCHAR *)r + 2 * number;
}

static NTSTATUS meet(race *r, int side, unsigned key, LONGLONG microseconds)
{
    LARGE_INTEGER timeout = microseconds != 0 ? in_microseconds(microseconds) : no_time();

    return (side ? ExpReleaseKeyedEvent : ExpWaitForKeyedEvent)(&r->event, key_of(r, key), KernelMode, FALSE,
                                                                 &timeout);
}

static void run(void *argument, unsigned index)
{
    race *r = argument;
    tally *mine = &r->tallies[index];
    test_random random;

    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        int side = (int)random_below(&random, 2);
        unsigned key = random_below(&random, KEYS);
        NTSTATUS status = meet(r, side, key, random_below(&random, 60));

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        mine->successes[side][key] += status == STATUS_SUCCESS;
    }
}

static unsigned long sum(race *r, int side, unsigned key)
{
    unsigned long total = 0;

    for (unsigned i = 0; i < r->threads; i += 1)
        total += r->tallies[i].successes[side][key];
    return total;
}

static void test_timeouts_against_pairings(void **state)
{
    static const unsigned threads[] = {2, 4, 16, 64};

    (void)state;
    for (unsigned i = 0; i < ARRAYSIZE(threads); i += 1) {
        race *r = aligned_alloc(64, sizeof(*r));

        require(r != NULL);
        memset(r, 0, sizeof(*r));
        r->threads = threads[i];
        r->rounds = test_rounds(20000 / threads[i]);
        ExpInitializeKeyedEvent(&r->event);
        run_threads(r->threads, HANG_SECONDS, run, r);
        for (unsigned key = 0; key < KEYS; key += 1) {
            assert_int_equal(sum(r, 0, key), sum(r, 1, key));
            /* and no thread was left behind */
            assert_int_equal(meet(r, 0, key, 0), STATUS_TIMEOUT);
            assert_int_equal(meet(r, 1, key, 0), STATUS_TIMEOUT);
        }
        free(r);
    }
}

/* A lock that is one word and uses its address as the key. No thread may be lost. */
typedef struct lock_race {
    volatile LONG contenders; /* the owner and the waiters */
    unsigned long rounds;
    unsigned long guarded;
} lock_race;

static void run_lock(void *argument, unsigned index)
{
    lock_race *r = argument;

    (void)index;
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        if (add(&r->contenders, 1) != 1)
            require(ExpWaitForKeyedEvent(NULL, r, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
        r->guarded += 1;
        if (add(&r->contenders, -1) != 0)
            require(ExpReleaseKeyedEvent(NULL, r, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    }
}

static void test_lock_of_one_word(void **state)
{
    lock_race r = {.rounds = test_rounds(3000)};

    (void)state;
    run_threads(4, HANG_SECONDS, run_lock, &r);
    assert_int_equal(r.guarded, 4 * r.rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_timeouts_against_pairings),
                                       cmocka_unit_test(test_lock_of_one_word)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
