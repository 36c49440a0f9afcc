/* Many timers, and timers that are set, cancelled and freed while they expire. */
#include "ex/exp.h"
#include "ke/irql.h"
#include "ke/timer.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define MILLISECOND 10000LL
#define SECOND (1000 * MILLISECOND)
#define PATIENCE 120

static LARGE_INTEGER relative(LONGLONG units)
{
    LARGE_INTEGER time = {.QuadPart = -units};
    return time;
}

static void add_one(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    __atomic_fetch_add((volatile ULONG *)context, 1, __ATOMIC_RELAXED);
}

/* A hundred thousand: a third cancelled at random, a third of the rest with a DPC; every other one expires once. */
typedef struct one {
    KTIMER timer;
    KDPC dpc;
    volatile ULONG expired;
    BOOLEAN cancelled;
    BOOLEAN has_dpc;
} one;

static void test_hundred_thousand(void **state)
{
    (void)state;
    ULONG count = (ULONG)test_rounds(100000);
    one *all = calloc(count, sizeof(*all));
    test_random random;
    assert_non_null(all);
    random_seed(&random, 7);
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < count; i += 1) {
        all[i].has_dpc = random_below(&random, 3) == 0;
        KeInitializeDpc(&all[i].dpc, add_one, (PVOID)&all[i].expired);
        KeInitializeTimerEx(&all[i].timer, random_below(&random, 2) ? NotificationTimer : SynchronizationTimer);
        KeSetTimer(&all[i].timer, relative(1 + random_below(&random, SECOND)), all[i].has_dpc ? &all[i].dpc : NULL);
        ULONG victim = random_below(&random, i + 1);
        if (random_below(&random, 3) == 0 && KeCancelTimer(&all[victim].timer)) {
            all[victim].cancelled = TRUE;
        }
    }
    for (ULONG i = 0; i < count; i += 1) {
        if (!all[i].cancelled) {
            assert_int_equal(KeWaitForSingleObject(&all[i].timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
        }
    }
    KeFlushQueuedDpcs();
    for (ULONG i = 0; i < count; i += 1) {
        assert_int_equal(all[i].expired, all[i].has_dpc && !all[i].cancelled);
        assert_false(KeCancelTimer(&all[i].timer));
        assert_int_equal(all[i].timer.Header.Expired, !all[i].cancelled);
    }
    watchdog_stop();
    free(all);
}

/* The memory is poisoned and freed the moment KeCancelTimer returns. */
static void cancel_against_expiry(void *argument, unsigned index)
{
    ULONG rounds = *(ULONG *)argument;
    test_random random;
    random_seed(&random, index + 1);
    for (ULONG round = 0; round < rounds; round += 1) {
        KTIMER *timer = malloc(sizeof(*timer));
        KeInitializeTimerEx(timer, index % 2 ? NotificationTimer : SynchronizationTimer);
        KeSetTimerEx(timer, relative(1 + random_below(&random, 1000)), (LONG)random_below(&random, 2), NULL);
        if (random_below(&random, 4) != 0) {
            KeStallExecutionProcessor(random_below(&random, 60));
        }
        KeCancelTimer(timer);
        memset(timer, 0xdd, sizeof(*timer));
        free(timer);
    }
}

static void test_cancel_against_expiry(void **state)
{
    (void)state;
    ULONG rounds = (ULONG)test_rounds(60000);
    run_threads(4, PATIENCE, cancel_against_expiry, &rounds);
}

/* One thread waits, the others set and cancel the timer: only an expiration releases the waiter. */
typedef struct contest {
    KTIMER timer;
    KDPC dpc;
    volatile ULONG dpcs;
    ULONG rounds;
    volatile ULONG stop;
} contest;

static void set_again(void *argument, unsigned index)
{
    contest *c = argument;
    test_random random;
    random_seed(&random, index + 100);
    for (ULONG round = 0; round < c->rounds; round += 1) {
        LARGE_INTEGER due = relative(1 + random_below(&random, 2000));
        switch (random_below(&random, 5)) {
        case 0:
            KeCancelTimer(&c->timer);
            break;
        case 1:
            due.QuadPart = 0;
            KeSetTimer(&c->timer, due, &c->dpc);
            break;
        case 2:
            KeSetTimerEx(&c->timer, due, 1, &c->dpc);
            break;
        case 3:
            KeSetCoalescableTimer(&c->timer, due, 0, 1, NULL);
            break;
        default:
            KeSetTimer(&c->timer, due, NULL);
            KeStallExecutionProcessor(random_below(&random, 50));
        }
    }
    __atomic_fetch_add(&c->stop, 1, __ATOMIC_RELEASE);
}

static void contend(void *argument, unsigned index)
{
    contest *c = argument;
    LARGE_INTEGER timeout = relative(MILLISECOND);
    if (index != 0) {
        set_again(c, index);
        return;
    }
    while (__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE) < 3) {
        NTSTATUS status = KeWaitForSingleObject(&c->timer, Executive, KernelMode, FALSE, &timeout);
        assert_true(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    }
}

static void test_set_again_against_expiry(void **state)
{
    (void)state;
    for (ULONG type = NotificationTimer; type <= SynchronizationTimer; type += 1) {
        contest c = {.rounds = (ULONG)test_rounds(50000)};
        KeInitializeTimerEx(&c.timer, (TIMER_TYPE)type);
        KeInitializeDpc(&c.dpc, add_one, (PVOID)&c.dpcs);
        run_threads(4, PATIENCE, contend, &c);
        KeCancelTimer(&c.timer);
        KeFlushQueuedDpcs();
    }
}

/* Timer and DPC are freed as soon as the timer is cancelled and the DPCs are flushed. */
static void flush_and_free(void *argument, unsigned index)
{
    ULONG rounds = *(ULONG *)argument;
    test_random random;
    random_seed(&random, index + 9);
    for (ULONG round = 0; round < rounds; round += 1) {
        one *o = calloc(1, sizeof(*o));
        KeInitializeTimer(&o->timer);
        KeInitializeDpc(&o->dpc, add_one, (PVOID)&o->expired);
        KeSetTimer(&o->timer, relative(1 + random_below(&random, 500)), &o->dpc);
        KeStallExecutionProcessor(random_below(&random, 100));
        BOOLEAN cancelled = KeCancelTimer(&o->timer);
        KeFlushQueuedDpcs();
        assert_int_equal(o->expired, !cancelled);
        memset(o, 0xdd, sizeof(*o));
        free(o);
    }
}

static void test_flush_and_free(void **state)
{
    (void)state;
    ULONG rounds = (ULONG)test_rounds(10000);
    run_threads(3, PATIENCE, flush_and_free, &rounds);
}

/* Two timers in the WaitAlls of two threads, in opposite order, while both expire periodically. */
static void wait_for_both(void *argument, unsigned index)
{
    KTIMER *timers = argument;
    PVOID objects[] = {&timers[index % 2], &timers[1 - index % 2]};
    ULONG rounds = (ULONG)test_rounds(300);
    for (ULONG round = 0; round < rounds; round += 1) {
        assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL),
                         STATUS_SUCCESS);
    }
}

static void test_wait_all(void **state)
{
    (void)state;
    KTIMER timers[2];
    for (ULONG i = 0; i < 2; i += 1) {
        KeInitializeTimerEx(&timers[i], SynchronizationTimer);
        KeSetTimerEx(&timers[i], relative(MILLISECOND + i), 1, NULL);
    }
    run_threads(2, PATIENCE, wait_for_both, timers);
    assert_true(KeCancelTimer(&timers[0]));
    assert_true(KeCancelTimer(&timers[1]));
}

/* Executive timers: set, cancelled and deleted in every way while they call back. */
typedef struct owned {
    volatile ULONG callbacks;
    volatile ULONG deletions;
} owned;

static void called_back(PEX_TIMER timer, PVOID context)
{
    (void)timer;
    __atomic_fetch_add(&((owned *)context)->callbacks, 1, __ATOMIC_RELAXED);
}

static void was_deleted(PVOID context)
{
    __atomic_fetch_add(&((owned *)context)->deletions, 1, __ATOMIC_RELEASE);
}

static void delete_against_callback(void *argument, unsigned index)
{
    ULONG rounds = *(ULONG *)argument;
    test_random random;
    random_seed(&random, index + 55);
    for (ULONG round = 0; round < rounds; round += 1) {
        owned o = {.callbacks = 0};
        EXT_DELETE_PARAMETERS parameters;
        BOOLEAN wait = random_below(&random, 2) != 0;
        BOOLEAN cancel = wait || random_below(&random, 2) != 0;
        ExInitializeDeleteTimerParameters(&parameters);
        parameters.DeleteCallback = was_deleted;
        parameters.DeleteContext = &o;
        PEX_TIMER timer = ExAllocateTimer(called_back, &o, EX_TIMER_HIGH_RESOLUTION);
        ExSetTimer(timer, -(LONGLONG)(1 + random_below(&random, 800)), random_below(&random, 2) * 300, NULL);
        KeStallExecutionProcessor(random_below(&random, 150));
        if (random_below(&random, 3) == 0) {
            ExSetTimer(timer, -(LONGLONG)(1 + random_below(&random, 500)), 0, NULL);
        }
        ExDeleteTimer(timer, cancel, wait, &parameters);
        if (wait) {
            assert_int_equal(__atomic_load_n(&o.deletions, __ATOMIC_ACQUIRE), 1);
        }
        while (__atomic_load_n(&o.deletions, __ATOMIC_ACQUIRE) == 0) {
            HalDispatch.Yield();
        }
    }
}

static void test_delete_against_callback(void **state)
{
    (void)state;
    ULONG rounds = (ULONG)test_rounds(10000);
    run_threads(3, PATIENCE, delete_against_callback, &rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hundred_thousand),       cmocka_unit_test(test_cancel_against_expiry),
        cmocka_unit_test(test_set_again_against_expiry), cmocka_unit_test(test_flush_and_free),
        cmocka_unit_test(test_wait_all),               cmocka_unit_test(test_delete_against_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
