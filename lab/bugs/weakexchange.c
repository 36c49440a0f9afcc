/* A weak compare-exchange may fail even if it finds the expected value: on machines with load-linked and
 * store-conditional. */
#include <interlock/lab.h>

static uint32_t lock, taken;

/* "It failed, so another thread has it": none has. */
static void take_by_one_try(void)
{
    uint32_t expected = 0;

    if (__atomic_compare_exchange_n(&lock, &expected, 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    else
        LabAssert(expected != 0);
}

static void take_until_known(void)
{
    uint32_t expected;

    do {
        expected = 0;
        if (__atomic_compare_exchange_n(&lock, &expected, 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (expected == 0);
}

static void take_strongly(void)
{
    uint32_t expected = 0;

    if (__atomic_compare_exchange_n(&lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    else
        LabAssert(expected != 0);
}

static void one_has_it(void)
{
    LabAssert(taken == 1 && lock == 1);
}

#ifndef __clang__ /* which does not distinguish a weak one from a strong one here */
LAB_SCENARIO(weak_exchange_once, .Threads = {take_by_one_try, take_by_one_try}, .WeakFailures = 1,
             .Expect = "assertion");
#endif
LAB_SCENARIO(weak_exchange_again, .Threads = {take_until_known, take_until_known}, .Finish = one_has_it,
             .WeakFailures = 2);
LAB_SCENARIO(weak_exchange_strong, .Threads = {take_strongly, take_strongly}, .Finish = one_has_it, .WeakFailures = 2);
