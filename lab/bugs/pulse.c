/* A pulse made of a set and a reset: a queued waiter wakes up, checks, and finds the event reset. */
#include <interlock/lab.h>

static uint32_t signaled, generation, waiters;

static void wait_by_looking(void)
{
    __atomic_fetch_add(&waiters, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&signaled, __ATOMIC_ACQUIRE) == 0)
        LabWaitOnWord(&signaled, 0);
    __atomic_fetch_sub(&waiters, 1, __ATOMIC_SEQ_CST);
}

static void pulse_by_reset(void)
{
    while (__atomic_load_n(&waiters, __ATOMIC_SEQ_CST) == 0)
        ;
    __atomic_store_n(&signaled, 1, __ATOMIC_RELEASE);
    LabWakeWord(&signaled, 1);
    __atomic_store_n(&signaled, 0, __ATOMIC_RELEASE);
}
LAB_SCENARIO(pulse_misses_waiter, .Threads = {wait_by_looking, pulse_by_reset}, .Expect = "deadlock");

/* A waiter waits until the generation differs from the one when it queued. */
static void wait_by_generation(void)
{
    uint32_t queued = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    __atomic_fetch_add(&waiters, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == queued)
        LabWaitOnWord(&generation, queued);
}

static void pulse_by_generation(void)
{
    while (__atomic_load_n(&waiters, __ATOMIC_SEQ_CST) == 0)
        ;
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
    LabWakeWord(&generation, 1);
}
LAB_SCENARIO(pulse_correct, .Threads = {wait_by_generation, pulse_by_generation});
