/*
 * Shared must stay shared. The owner of a reader/writer lock releases it while a reader waits. Another reader arrives:
 * if it gets the lock, it keeps it until the first reader is also inside. That is valid: readers do not exclude
 * readers.
 *
 *     interlock lab examples/tour/srw.c
 *
 * tries this under every schedule: with a small lock that has a bug which Windows once shipped, and with the library's
 * SRW lock.
 */
#include <interlock/lab.h>
#include <windows.h>

#define LOCKED  1u
#define WAITING 2u
#define READER  4u /* added for each reader, if no thread waits */

static uint32_t word;
static volatile uint32_t inside;

static int change(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint32_t look(void)
{
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

/* The bug: the lock is free, and a woken waiter is in transit, for which WAITING is still set. A reader that arrives at
   this moment takes the lock but is not counted as a reader: no other reader can join it. */
static int try_acquire_shared(void)
{
    uint32_t now = look();

    if (!(now & LOCKED))
        return change(now, now & WAITING ? now | LOCKED : LOCKED + READER);
    return now >= READER && change(now, now + READER);
}

static void acquire_shared(void)
{
    while (!try_acquire_shared()) {
        uint32_t now = look();

        if ((now & LOCKED) && now < READER && ((now & WAITING) || change(now, now | WAITING)))
            LabWaitOnWord(&word, now | WAITING);
    }
}

static void release_exclusive(void)
{
    if (__atomic_fetch_and(&word, ~LOCKED, __ATOMIC_RELEASE) & WAITING)
        LabWakeWord(&word, 1);
}

static void enter(void)
{
    __atomic_store_n(&inside, 1, __ATOMIC_RELAXED);
    LabWakeWord(&inside, 1);
}

static void await_reader(void)
{
    while (!__atomic_load_n(&inside, __ATOMIC_RELAXED))
        LabWaitOnWord(&inside, 0);
}

static void broken_hold(void)
{
    word = LOCKED;
}

static void broken_reader(void)
{
    acquire_shared();
    enter();
}

static void broken_passer_by(void)
{
    if (try_acquire_shared())
        await_reader();
}

LAB_SCENARIO(broken, .Setup = broken_hold, .Threads = {release_exclusive, broken_reader, broken_passer_by});

static SRWLOCK lock = SRWLOCK_INIT;

static void hold(void)
{
    AcquireSRWLockExclusive(&lock);
}

static void owner(void)
{
    ReleaseSRWLockExclusive(&lock);
}

static void reader(void)
{
    AcquireSRWLockShared(&lock);
    enter();
    ReleaseSRWLockShared(&lock);
}

static void passer_by(void)
{
    if (TryAcquireSRWLockShared(&lock)) {
        await_reader();
        ReleaseSRWLockShared(&lock);
    }
}

LAB_SCENARIO(srw, .Setup = hold, .Threads = {owner, reader, passer_by});
