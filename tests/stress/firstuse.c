/*
 * First use by many threads at once: locks in zeroed memory, sections that one of them initializes, threads that are
 * new to the library.
 */
#include "stress.h"

#include <interlock/ex.h>
#include <interlock/rtl.h>

#define THREADS 64

struct item {
    SLIST_ENTRY entry DECLSPEC_ALIGN(16);
    unsigned owner;
};

/* All zero at first. */
struct world {
    SLIST_HEADER list;
    RTL_SRWLOCK lock;
    RTL_CONDITION_VARIABLE changed;
    RTL_RUN_ONCE once;
    RTL_CRITICAL_SECTION section; /* initialized by the first thread */
    RTL_BARRIER barrier;
    unsigned initialized;
    unsigned under_lock;   /* plain memory, protected by the lock */
    unsigned in_section;   /* likewise, by the section */
    unsigned told;
    struct item items[THREADS];
};

static ULONG initialize(PRTL_RUN_ONCE once, PVOID parameter, PVOID *context)
{
    struct world *world = parameter;

    (void)once;
    world->initialized += 1;
    *context = world;
    return NT_SUCCESS(RtlInitializeCriticalSection(&world->section)) &&
           NT_SUCCESS(RtlInitBarrier(&world->barrier, THREADS, MAXULONG));
}

static void enter_section(struct world *world)
{
    PVOID context;

    require(RtlRunOnceExecuteOnce(&world->once, initialize, world, &context) == STATUS_SUCCESS);
    require(context == world);
    require(RtlEnterCriticalSection(&world->section) == STATUS_SUCCESS);
    world->in_section += 1;
    require(RtlLeaveCriticalSection(&world->section) == STATUS_SUCCESS);
}

/* Each thread waits until all have arrived. */
static void gather(struct world *world)
{
    RtlAcquireSRWLockExclusive(&world->lock);
    world->under_lock += 1;
    if (world->under_lock == THREADS)
        RtlWakeAllConditionVariable(&world->changed);
    while (world->under_lock != THREADS)
        RtlSleepConditionVariableSRW(&world->changed, &world->lock, NULL, 0);
    RtlReleaseSRWLockExclusive(&world->lock);
}

static void push(struct world *world, unsigned index)
{
    world->items[index].owner = index;
    InterlockedPushEntrySList(&world->list, &world->items[index].entry);
}

/* The order differs from thread to thread. */
static void use_everything(void *argument, unsigned index)
{
    struct world *world = argument;

    if (index % 2 == 0)
        push(world, index);
    if (index % 3 == 0)
        gather(world);
    enter_section(world);
    if (index % 3 != 0)
        gather(world);
    if (index % 2 != 0)
        push(world, index);
    if (RtlBarrier(&world->barrier, 0))
        add(&world->told, 1);
}

static void everything_at_once(void **state)
{
    unsigned long rounds = test_rounds(20);

    (void)state;
    for (unsigned long i = 0; i < rounds; i++) {
        struct world world;

        memset(&world, 0, sizeof(world));
        run_threads(THREADS, HANG_SECONDS, use_everything, &world);
        assert_int_equal(world.initialized, 1);
        assert_int_equal(world.in_section, THREADS);
        assert_int_equal(world.under_lock, THREADS);
        assert_int_equal(world.told, 1);
        assert_int_equal(QueryDepthSList(&world.list), THREADS);
        assert_int_equal(world.section.LockCount, -1);
        assert_null(world.lock.Ptr);
        RtlDeleteCriticalSection(&world.section);
    }
}

/* The very first call of each thread is the contended one. */

struct gate {
    RTL_CRITICAL_SECTION section;
    unsigned long passed;
};

static void pass(void *argument, unsigned index)
{
    struct gate *gate = argument;

    (void)index;
    require(RtlEnterCriticalSection(&gate->section) == STATUS_SUCCESS);
    gate->passed += 1;
    require(RtlIsCriticalSectionLockedByThread(&gate->section));
    require(RtlLeaveCriticalSection(&gate->section) == STATUS_SUCCESS);
}

static void first_call_contends(void **state)
{
    unsigned long rounds = test_rounds(20);
    struct gate gate = {.passed = 0};

    (void)state;
    RtlInitializeCriticalSection(&gate.section);
    for (unsigned long i = 0; i < rounds; i++) {
        test_threads *threads;

        RtlEnterCriticalSection(&gate.section);
        threads = start_threads(THREADS, pass, &gate);
        sched_yield();
        RtlLeaveCriticalSection(&gate.section);
        join_threads(threads, HANG_SECONDS);
    }
    assert_int_equal(gate.passed, rounds * THREADS);
    assert_int_equal(gate.section.LockCount, -1);
    RtlDeleteCriticalSection(&gate.section);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(first_call_contends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
