#include "haltest.h"

#include "sandbox.h"

#include <pthread.h>

static volatile ULONG flags[2];
static volatile ULONG seen[2];
static volatile ULONG turn[2]; /* rounds begun, rounds ended */

static void *store_and_look(void *argument)
{
    unsigned long rounds = *(unsigned long *)argument;

    for (ULONG round = 1; round <= rounds; round++) {
        while (__atomic_load_n(&turn[0], __ATOMIC_ACQUIRE) < round)
            HalPause();
        /* relaxed, with only a compiler barrier between the two: the other side has the barrier */
        __atomic_store_n(&flags[0], 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        seen[0] = __atomic_load_n(&flags[1], __ATOMIC_RELAXED);
        __atomic_store_n(&turn[1], round, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Of two threads that each store and then load, at least one sees the other. */
static void barriers_order(unsigned long rounds)
{
    pthread_t thread;

    turn[0] = turn[1] = 0;
    assert_int_equal(pthread_create(&thread, NULL, store_and_look, &rounds), 0);
    for (ULONG round = 1; round <= rounds; round++) {
        __atomic_store_n(&flags[0], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&flags[1], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn[0], round, __ATOMIC_RELEASE);
        __atomic_store_n(&flags[1], 1, __ATOMIC_RELAXED);
        assert_true(HalBarrierAllThreads());
        seen[1] = __atomic_load_n(&flags[0], __ATOMIC_RELAXED);
        while (__atomic_load_n(&turn[1], __ATOMIC_ACQUIRE) < round)
            sched_yield();
        assert_true(seen[0] || seen[1]);
    }
    pthread_join(thread, NULL);
}

static void a_barrier_orders_stores_and_looks(void **state)
{
    (void)state;
    if (!HalBarrierAllThreads())
        skip();
    barriers_order(test_rounds(2000));
}

static void use_barriers(void *argument)
{
    (void)argument;
    barriers_order(20);
}

static void a_forked_child_has_barriers(void **state)
{
    (void)state;
    if (!HalBarrierAllThreads())
        skip();
    run_in_child(use_barriers, NULL);
}

/* What was offered at the start still works, but slower. */
static void use_barriers_in_sandbox(void *argument)
{
    if (refuse_call(SYS_membarrier, *(unsigned *)argument))
        barriers_order(20);
}

static void a_sandbox_refuses_barriers(void **state)
{
    unsigned errors[] = {EPERM, ENOSYS};

    (void)state;
    if (!HalBarrierAllThreads())
        skip();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        run_in_child(use_barriers_in_sandbox, &errors[i]);
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_barrier_orders_stores_and_looks),
        cmocka_unit_test(a_forked_child_has_barriers),
        cmocka_unit_test(a_sandbox_refuses_barriers),
    };

    HalInitialize(&callbacks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
