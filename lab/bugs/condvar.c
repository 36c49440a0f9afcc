/*
 * A condition variable with two groups of waiters, reduced from the design in which glibc had bug 25847. G1 gets the
 * signals; new waiters join G2. When all of G1 is signaled, G2 replaces it and the slot of the old G1 is cleared for
 * new waiters, even if a waiter of the old group has not consumed its signal yet. That signal is lost.
 */
#include <interlock/lab.h>

static uint32_t mutex;
static uint32_t group;      /* number of G1; new waiters belong to the next one; a group's slot is its low bit */
static uint32_t signals[2]; /* signals not consumed yet, and */
static uint32_t size[2];    /* waiters that have not been signaled */
static uint32_t pending[2]; /* waiters that have been signaled and have not consumed it */
static uint32_t queued;

static void lock(void)
{
    while (__atomic_exchange_n(&mutex, 1, __ATOMIC_ACQUIRE) != 0)
        ;
}

static void unlock(void)
{
    __atomic_store_n(&mutex, 0, __ATOMIC_RELEASE);
}

static void take_signal(uint32_t slot)
{
    for (;;) {
        uint32_t there = __atomic_load_n(&signals[slot], __ATOMIC_ACQUIRE);
        if (there == 0)
            LabWaitOnWord(&signals[slot], 0);
        else if (__atomic_compare_exchange_n(&signals[slot], &there, there - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
}

static void waiter(void)
{
    lock();
    uint32_t slot = (group + 1) & 1;
    size[slot] += 1;
    unlock();
    __atomic_fetch_add(&queued, 1, __ATOMIC_RELEASE);
    take_signal(slot);
    __atomic_fetch_sub(&pending[slot], 1, __ATOMIC_RELEASE);
}

static void give_signal(uint32_t slot)
{
    size[slot] -= 1;
    __atomic_fetch_add(&pending[slot], 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&signals[slot], 1, __ATOMIC_RELEASE);
    LabWakeWord(&signals[slot], 1);
}

static void signal_one(int waits_for_old_group)
{
    lock();
    if (size[group & 1] == 0) {
        uint32_t old = group & 1;
        while (waits_for_old_group && __atomic_load_n(&pending[old], __ATOMIC_ACQUIRE) != 0)
            ;
        __atomic_store_n(&signals[old], 0, __ATOMIC_RELEASE);
        group += 1;
    }
    give_signal(group & 1);
    unlock();
}

/* Every signal is sent while a waiter without one is queued. */
static void signal_each(int waits_for_old_group)
{
    for (uint32_t i = 0; i < 2; i++) {
        while (__atomic_load_n(&queued, __ATOMIC_ACQUIRE) <= i)
            ;
        signal_one(waits_for_old_group);
    }
}

static void hasty_signaler(void)
{
    signal_each(0);
}

static void patient_signaler(void)
{
    signal_each(1);
}

LAB_SCENARIO(condvar_group_switch, .Threads = {waiter, waiter, hasty_signaler}, .Expect = "deadlock");
LAB_SCENARIO(condvar_correct, .Threads = {waiter, waiter, patient_signaler});
