/* SRW locks, used by many threads in every way at once, while unsolicited alerts arrive. */
#include "stress.h"

#include "../support/sanitizers.h"

#include "ex/pushlock.h"

#include <interlock/rtl.h>

#define LOCKED EX_PUSH_LOCK_LOCK
#define WAITING EX_PUSH_LOCK_WAITING
#define WAKING EX_PUSH_LOCK_WAKING
#define MULTIPLE EX_PUSH_LOCK_MULTIPLE_SHARED

#define MOST_THREADS 16

static struct {
    UCHAR memory[128] __attribute__((aligned(64)));
    PRTL_SRWLOCK lock;
    unsigned threads;
    unsigned long rounds;
    BOOLEAN over;
    PKTHREAD users[MOST_THREADS];
    long owners;
    long sharers;
    ULONG64 first;
    ULONG64 second;
} scene;

static void linger(test_random *random)
{
    if (random_below(random, 100) == 0)
        sched_yield();
    else
        spin_for(random_below(random, 20));
}

static void be_owner(test_random *random)
{
    require(add(&scene.owners, 1) == 1);
    require(load(&scene.sharers) == 0);
    scene.first += 1;
    linger(random);
    scene.second += 1;
    require(load(&scene.sharers) == 0);
    require(add(&scene.owners, -1) == 0);
}

static void be_sharer(test_random *random)
{
    add(&scene.sharers, 1);
    require(load(&scene.owners) == 0);
    require(scene.first == scene.second);
    linger(random);
    require(load(&scene.owners) == 0);
    add(&scene.sharers, -1);
}

static void own(test_random *random)
{
    RtlAcquireSRWLockExclusive(scene.lock);
    be_owner(random);
    if (random_below(random, 4) == 0) {
        RtlConvertSRWLockExclusiveToShared(scene.lock);
        be_sharer(random);
        RtlReleaseSRWLockShared(scene.lock);
    } else {
        RtlReleaseSRWLockExclusive(scene.lock);
    }
}

static void share(test_random *random)
{
    RtlAcquireSRWLockShared(scene.lock);
    be_sharer(random);
    if (random_below(random, 4) == 0 && RtlConvertSRWLockSharedToExclusive(scene.lock)) {
        be_owner(random);
        RtlReleaseSRWLockExclusive(scene.lock);
    } else {
        RtlReleaseSRWLockShared(scene.lock);
    }
}

static void try_both(test_random *random)
{
    if (RtlTryAcquireSRWLockExclusive(scene.lock)) {
        be_owner(random);
        RtlReleaseSRWLockExclusive(scene.lock);
    }
    if (RtlTryAcquireSRWLockShared(scene.lock)) {
        be_sharer(random);
        RtlReleaseSRWLockShared(scene.lock);
    }
}

static void use(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    store(&scene.users[index], KeGetCurrentThread());
    for (unsigned long round = 0; round < scene.rounds; round++) {
        unsigned choice = random_below(&random, 8);

        if (choice < 2)
            own(&random);
        else if (choice < 7)
            share(&random);
        else
            try_both(&random);
    }
}

/* The invariants of src/ex/pushlock.c, checked while the lock is contended. */
static void check_word(ULONG_PTR word)
{
    require(!(word & WAKING) || (word & WAITING));
    require(!(word & MULTIPLE) || (word & (LOCKED | WAITING)) == (LOCKED | WAITING));
    require((word & (LOCKED | WAITING)) != WAITING || (word & WAKING));
    require((word & (LOCKED | WAITING)) || word == 0);
}

/* A lock that crosses a cache line is changed atomically, but not read so. */
static BOOLEAN can_be_read(void)
{
    return (ULONG_PTR)scene.lock / 64 == ((ULONG_PTR)scene.lock + 7) / 64;
}

static void pester(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 99);
    while (!load(&scene.over)) {
        PKTHREAD thread = load(&scene.users[random_below(&random, scene.threads)]);

        if (thread != NULL)
            KeAlertThreadById(thread);
        if (can_be_read())
            check_word(load((volatile ULONG_PTR *)scene.lock));
        sched_yield();
    }
}

static void run_at(SIZE_T offset, unsigned threads)
{
    memset(&scene, 0, sizeof(scene));
    scene.lock = (PRTL_SRWLOCK)(PVOID)(scene.memory + offset);
    scene.threads = threads;
    scene.rounds = test_rounds(120000 / threads);
    test_threads *pest = start_threads(1, pester, NULL);
    test_threads *users = start_threads(threads, use, NULL);
    join_threads(users, HANG_SECONDS);
    store(&scene.over, TRUE);
    join_threads(pest, HANG_SECONDS);
    for (unsigned i = 0; i < sizeof(scene.memory); i++)
        assert_int_equal(scene.memory[i], 0);
    assert_int_equal(scene.first, scene.second);
    assert_int_equal(scene.owners, 0);
    assert_int_equal(scene.sharers, 0);
}

static void aligned_locks_hold(void **state)
{
    (void)state;
    run_at(0, 2);
    run_at(0, 4);
    run_at(0, 16);
}

#ifdef MISALIGNED_ATOMICS
static void misaligned_locks_hold(void **state)
{
    (void)state;
    run_at(1, 4);
    run_at(60, 4);
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_locks_hold),
#ifdef MISALIGNED_ATOMICS
        cmocka_unit_test(misaligned_locks_hold),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
