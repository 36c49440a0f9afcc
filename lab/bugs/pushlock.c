/*
 * A small pushlock, with two bugs that real ones have had. The word: bit 0 locked, bit 1 has waiters, above that the
 * share count, for which there is room only without waiters.
 */
#include <interlock/lab.h>

#define LOCKED  1u
#define WAITING 2u
#define SHARE   4u

static uint32_t lock;
static uint32_t readers_inside;

static int replace(uint32_t old, uint32_t new)
{
    return __atomic_compare_exchange_n(&lock, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint32_t look(void)
{
    return __atomic_load_n(&lock, __ATOMIC_RELAXED);
}

static void wait_for_change(uint32_t old)
{
    if ((old & WAITING) || replace(old, old | WAITING))
        LabWaitOnWord(&lock, old | WAITING);
}

static void acquire_exclusive(void)
{
    for (;;) {
        uint32_t old = look();
        if (!(old & LOCKED)) {
            if (replace(old, old | LOCKED))
                return;
        } else {
            wait_for_change(old);
        }
    }
}

/* The waiters have been woken, and the word still says that there are waiters: a wake is in progress. */
static void release_exclusive_keeping_waiting(void)
{
    uint32_t old = __atomic_fetch_and(&lock, ~LOCKED, __ATOMIC_RELEASE);
    if (old & WAITING)
        LabWakeWord(&lock, 100);
}

static void release_exclusive(void)
{
    uint32_t old = __atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE);
    if (old & WAITING)
        LabWakeWord(&lock, 100);
}

/* Steals the lock during a wake: there is no room for the share count, so it holds the lock alone. */
static void acquire_shared(void)
{
    for (;;) {
        uint32_t old = look();
        if (!(old & LOCKED)) {
            if (replace(old, old & WAITING ? old | LOCKED : LOCKED | SHARE))
                return;
        } else if (!(old & WAITING) && old >= SHARE) {
            if (replace(old, old + SHARE))
                return;
        } else {
            wait_for_change(old);
        }
    }
}

/* Readers that need each other. */
static void meet(void)
{
    acquire_shared();
    __atomic_fetch_add(&readers_inside, 1, __ATOMIC_RELAXED);
    LabWakeWord(&readers_inside, 2);
    for (uint32_t inside = 0; (inside = __atomic_load_n(&readers_inside, __ATOMIC_RELAXED)) != 2;)
        LabWaitOnWord(&readers_inside, inside);
}

static void held(void)
{
    acquire_exclusive();
}

static void release_held_keeping_waiting(void)
{
    release_exclusive_keeping_waiting();
}
LAB_SCENARIO(pushlock_shared_steals, .Setup = held, .Threads = {release_held_keeping_waiting, meet, meet},
             .Expect = "deadlock");

static void release_held(void)
{
    release_exclusive();
}
LAB_SCENARIO(pushlock_shared_correct, .Setup = held, .Threads = {release_held, meet, meet});

/* A release that never reloads the value it compares with. */
static void hold_shared_twice(void)
{
    lock = LOCKED | 2 * SHARE;
}

static void release_shared_without_reload(void)
{
    uint32_t old = look();
    for (;;) {
        uint32_t expected = old;
        uint32_t new = old - SHARE < SHARE ? 0 : old - SHARE;
        if (__atomic_compare_exchange_n(&lock, &expected, new, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
}
LAB_SCENARIO(pushlock_release_without_reload, .Setup = hold_shared_twice,
             .Threads = {release_shared_without_reload, release_shared_without_reload}, .Expect = "livelock");

static void release_shared(void)
{
    uint32_t old = look();
    while (!__atomic_compare_exchange_n(&lock, &old, old - SHARE < SHARE ? 0 : old - SHARE, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

static void is_free(void)
{
    LabAssert(lock == 0);
}
LAB_SCENARIO(pushlock_release_correct, .Setup = hold_shared_twice, .Threads = {release_shared, release_shared},
             .Finish = is_free);
