#include "waittest.h"

#include <interlock/ps.h>

#define QUANTUM (2 * KI_TICK)

static ULONGLONG fake_time = 1000 * QUANTUM;

static ULONGLONG query_fake_time(VOID)
{
    return fake_time;
}

static PKTHREAD create_thread(void)
{
    PKTHREAD thread = KiAllocateThread();

    assert_non_null(thread);
    return thread;
}

static void base_priorities(void **state)
{
    static const struct {
        LONG increment, base, returned_next;
    } rows[] = {
        {0, 8, 0},   {1, 9, 1},     {2, 10, 2},   {-1, 7, -1},   {-2, 6, -2},  {7, 15, 7},    {8, 15, 7},
        {15, 15, 7}, {16, 15, 16},  {17, 15, 16}, {-7, 1, -7},   {-8, 1, -7},  {-15, 1, -7},  {-16, 1, -16},
        {100, 15, 16}, {-100, 1, -16}, {0, 8, 0},
    };
    PKTHREAD thread = create_thread();
    LONG expected = 0;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        assert_int_equal(KeSetBasePriorityThread(thread, rows[i].increment), expected);
        assert_int_equal(thread->BasePriority, rows[i].base);
        assert_int_equal(KeQueryPriorityThread(thread), rows[i].base);
        assert_int_equal(thread->Saturation, rows[i].increment >= 16 || rows[i].increment <= -16);
        expected = rows[i].returned_next;
    }
    KiDropThread(thread);
}

static void set_priorities(void **state)
{
    static const struct {
        KPRIORITY given, set;
    } rows[] = {{8, 8}, {1, 1}, {15, 15}, {16, 16}, {31, 31}, {12, 12}, {0, 1}, {-5, 1}, {32, 31}, {1000, 31}};
    PKTHREAD thread = create_thread();
    KPRIORITY expected = 8;

    (void)state;
    KiVerifierEnabled = FALSE;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        assert_int_equal(KeSetPriorityThread(thread, rows[i].given), expected);
        assert_int_equal(KeQueryPriorityThread(thread), rows[i].set);
        assert_int_equal(thread->BasePriority, 8);
        expected = rows[i].set;
    }
    fake_time += 100 * QUANTUM;
    assert_int_equal(KeQueryPriorityThread(thread), 31);
    KiDropThread(thread);
}

static void set_impossible_priority(void *priority)
{
    KiVerifierEnabled = TRUE;
    KeSetPriorityThread(KeGetCurrentThread(), (KPRIORITY)(LONG_PTR)priority);
}

static void verifier_refuses_only_impossible_priorities(void **state)
{
    (void)state;
    expect_bugcheck(DRIVER_VERIFIER_DETECTED_VIOLATION, set_impossible_priority, (void *)0);
    expect_bugcheck(DRIVER_VERIFIER_DETECTED_VIOLATION, set_impossible_priority, (void *)32);
    for (KPRIORITY priority = LOW_PRIORITY + 1; priority <= HIGH_PRIORITY; priority += HIGH_PRIORITY - 1 - LOW_PRIORITY) {
        PKTHREAD thread = create_thread();

        KiVerifierEnabled = TRUE;
        KeSetPriorityThread(thread, priority);
        KiVerifierEnabled = FALSE;
        assert_int_equal(KeQueryPriorityThread(thread), priority);
        KiDropThread(thread);
    }
}

static void boosts(void **state)
{
    static const struct {
        KPRIORITY set; /* 0: the base */
        LONG base_increment;
        KPRIORITY increment;
        BOOLEAN disabled;
        KPRIORITY expected;
    } rows[] = {
        {0, 0, 0, FALSE, 8},    {0, 0, 1, FALSE, 9},    {0, 0, 2, FALSE, 10},   {0, 0, 7, FALSE, 15},
        {0, 0, 8, FALSE, 15},   {0, 0, 100, FALSE, 15}, {0, 0, 1, TRUE, 8},     {0, 7, 1, FALSE, 15},
        {0, -7, 1, FALSE, 2},   {16, 0, 6, FALSE, 16},  {31, 0, 1, FALSE, 31},  {12, 0, 2, FALSE, 12},
        {12, 0, 6, FALSE, 14},  {1, 0, 1, FALSE, 9},    {0, 0, -3, FALSE, 8},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        PKTHREAD thread = create_thread();

        KeSetBasePriorityThread(thread, rows[i].base_increment);
        if (rows[i].set != 0)
            KeSetPriorityThread(thread, rows[i].set);
        assert_false(KeSetDisableBoostThread(thread, rows[i].disabled));
        KiBoostThread(thread, rows[i].increment);
        assert_int_equal(KeQueryPriorityThread(thread), rows[i].expected);
        assert_int_equal(KeSetDisableBoostThread(thread, FALSE), rows[i].disabled);
        KiDropThread(thread);
    }
}

static void boosts_decay_by_a_level_for_each_quantum(void **state)
{
    static const struct {
        ULONGLONG later;
        KPRIORITY boost, expected;
    } rows[] = {
        {0, 6, 14},           {QUANTUM - 1, 0, 14}, {1, 0, 13},         {QUANTUM, 0, 12},
        {QUANTUM / 2, 3, 12}, {QUANTUM / 2, 0, 11}, {3 * QUANTUM, 0, 8}, {5 * QUANTUM, 0, 8},
        {0, 2, 10},           {0, 1, 10},           {QUANTUM, 2, 10},   {QUANTUM, 0, 9},
        {1000 * QUANTUM, 0, 8}, {0, 100, 15},       {6 * QUANTUM, 0, 9}, {QUANTUM, 0, 8},
    };
    PKTHREAD thread = create_thread();

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        fake_time += rows[i].later;
        KiBoostThread(thread, rows[i].boost);
        assert_int_equal(KeQueryPriorityThread(thread), rows[i].expected);
        assert_int_equal(thread->PriorityDecrement != 0, rows[i].expected > 8);
    }
    KiBoostThread(thread, 4);
    assert_int_equal(thread->PriorityDecrement, 4);
    assert_int_equal(KeSetBasePriorityThread(thread, 2), 0);
    assert_int_equal(KeQueryPriorityThread(thread), 10);
    fake_time += 10 * QUANTUM;
    assert_int_equal(KeQueryPriorityThread(thread), 10);
    KiDropThread(thread);
}

struct waiting {
    KEVENT event;
    KEVENT ready;
    PKTHREAD thread;
    KPRIORITY after;
    ULONG bits_after;
};

static void wait_for_event(void *argument, unsigned index)
{
    struct waiting *waiting = argument;

    (void)index;
    waiting->thread = KeGetCurrentThread();
    KeSetEvent(&waiting->ready, 0, FALSE);
    KeWaitForSingleObject(&waiting->event, Executive, KernelMode, FALSE, NULL);
    waiting->after = KeQueryPriorityThread(waiting->thread);
    waiting->bits_after = waiting->thread->WaitRegister & (KI_WAIT_PRIORITY | KI_WAIT_AFFINITY);
    KeSetPriorityThread(waiting->thread, 8);
}

static BOOLEAN is_waiting(PKTHREAD thread)
{
    ULONG wait = __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);

    return (wait & KI_WAIT_ACTIVE) && (wait & KI_WAIT_STATE_MASK) == WaitCommitted;
}

static void a_waiting_thread_hears_of_the_change(void **state)
{
    struct waiting waiting;
    test_threads *threads;

    (void)state;
    KeInitializeEvent(&waiting.event, SynchronizationEvent, FALSE);
    KeInitializeEvent(&waiting.ready, SynchronizationEvent, FALSE);
    threads = start_threads(1, wait_for_event, &waiting);
    KeWaitForSingleObject(&waiting.ready, Executive, KernelMode, FALSE, NULL);
    while (!is_waiting(waiting.thread))
        HalDispatch.Yield();
    assert_int_equal(waiting.thread->WaitRegister & KI_WAIT_PRIORITY, 0);
    assert_int_equal(KeSetPriorityThread(waiting.thread, 10), 8);
    assert_int_equal(waiting.thread->WaitRegister & KI_WAIT_PRIORITY, KI_WAIT_PRIORITY);
    GROUP_AFFINITY affinity, before;
    KiQueryUserAffinityThread(waiting.thread, &affinity);
    assert_int_equal(waiting.thread->WaitRegister & KI_WAIT_AFFINITY, 0);
    assert_true(KiSetUserAffinityThread(waiting.thread, &affinity, &before));
    assert_int_equal(waiting.thread->WaitRegister & KI_WAIT_AFFINITY, KI_WAIT_AFFINITY);
    KeSetEvent(&waiting.event, EVENT_INCREMENT, FALSE);
    join_threads(threads, 20);
    assert_int_equal(waiting.after, 10);
    assert_int_equal(waiting.bits_after, 0);
}

static void a_signal_boosts_the_waiter(void **state)
{
    struct waiting waiting;
    test_threads *threads;

    (void)state;
    KeInitializeEvent(&waiting.event, SynchronizationEvent, FALSE);
    KeInitializeEvent(&waiting.ready, SynchronizationEvent, FALSE);
    threads = start_threads(1, wait_for_event, &waiting);
    KeWaitForSingleObject(&waiting.ready, Executive, KernelMode, FALSE, NULL);
    while (!is_waiting(waiting.thread))
        HalDispatch.Yield();
    KeSetEvent(&waiting.event, 3, FALSE);
    join_threads(threads, 20);
    assert_int_equal(waiting.after, 11);
}

/* The boost of a wakeup, queried some quanta later, and after another wakeup with another increment. */
static void wakeups_boost_as_of_their_time(void **state)
{
    static const struct {
        KPRIORITY increments[2];
        ULONG quanta[2];
        KPRIORITY expected;
    } rows[] = {
        {{3, 0}, {0, 0}, 11}, {{3, 0}, {1, 0}, 10}, {{3, 0}, {0, 2}, 9},  {{3, 0}, {4, 0}, 8},   {{6, 1}, {0, 0}, 14},
        {{6, 1}, {3, 0}, 11}, {{6, 1}, {5, 0}, 9},  {{6, 1}, {9, 0}, 9},  {{1, 6}, {0, 0}, 14},  {{1, 6}, {3, 2}, 12},
        {{2, 2}, {1, 0}, 10}, {{2, 2}, {1, 1}, 9},  {{20, 0}, {0, 0}, 15}, {{1000, 0}, {1, 0}, 14}, {{0, 0}, {0, 0}, 8},
    };
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        KeSetPriorityThread(w.actor.thread, 8);
        for (size_t k = 0; k < 2; k++) {
            begin_wait_for(&w, &event);
            KeSetEvent(&event, rows[i].increments[k], FALSE);
            assert_int_equal(end_wait(&w), STATUS_WAIT_0);
            fake_time += rows[i].quanta[k] * QUANTUM;
        }
        print_message("# row %zu\n", i);
        assert_int_equal(KeQueryPriorityThread(w.actor.thread), rows[i].expected);
    }
    /* What was set, or forbidden, after the wakeup. */
    begin_wait_for(&w, &event);
    KeSetEvent(&event, 3, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(KeSetPriorityThread(w.actor.thread, 9), 11);
    assert_int_equal(KeQueryPriorityThread(w.actor.thread), 9);
    begin_wait_for(&w, &event);
    KeSetEvent(&event, 3, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    KeSetDisableBoostThread(w.actor.thread, TRUE);
    assert_int_equal(KeQueryPriorityThread(w.actor.thread), 11);
    begin_wait_for(&w, &event);
    KeSetEvent(&event, 6, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(KeQueryPriorityThread(w.actor.thread), 11);
    end_waiters(&w, 1);
}

/* AutoBoost of mutants. The owner, when a waiter has a higher priority; and the next owner. */

static void acquire_mutant(void *mutant)
{
    check(wait_for(mutant, NULL) == STATUS_SUCCESS);
}

static void release_mutant(void *mutant)
{
    KeReleaseMutant(mutant, MUTANT_INCREMENT, FALSE, FALSE);
}

static void an_owner_runs_at_the_priority_of_its_waiter(void **state)
{
    static const struct {
        KPRIORITY owner, waiter;
        BOOLEAN disabled;
        KPRIORITY expected;
    } rows[] = {
        {8, 8, FALSE, 8},   {8, 7, FALSE, 8},   {8, 9, FALSE, 9},    {8, 15, FALSE, 15}, {8, 16, FALSE, 15},
        {8, 31, FALSE, 15}, {8, 12, TRUE, 8},   {16, 20, FALSE, 16}, {12, 14, FALSE, 14}, {3, 8, FALSE, 8},
    };
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        for (ULONG kind = 0; kind < 3; kind++) {
            actor owner = {0};
            waiter w;
            KMUTANT mutant;
            KEVENT event;
            const wait_call calls[] = {
                {.count = 1, .object = {&mutant}},
                {.count = 2, .object = {&event, &mutant}},
                {.count = 2, .object = {&event, &mutant}, .all = TRUE},
            };
            start_actor(&owner);
            start_waiters(&w, 1);
            KeInitializeMutant(&mutant, FALSE);
            KeInitializeEvent(&event, NotificationEvent, FALSE);
            run_on(&owner, acquire_mutant, &mutant);
            KeSetPriorityThread(owner.thread, rows[i].owner);
            KeSetDisableBoostThread(owner.thread, rows[i].disabled);
            KeSetPriorityThread(w.actor.thread, rows[i].waiter);
            assert_false(poll_object(&mutant));
            assert_int_equal(priority_of(owner.thread), rows[i].owner);
            w.call = calls[kind];
            begin_wait(&w);
            assert_int_equal(KeQueryPriorityThread(owner.thread), rows[i].expected);
            if (kind == 2) {
                KeSetEvent(&event, 0, FALSE);
            }
            run_on(&owner, release_mutant, &mutant);
            assert_int_equal(end_wait(&w), kind == 1 ? STATUS_WAIT_1 : STATUS_WAIT_0);
            run_on(&w.actor, release_mutant, &mutant);
            if (rows[i].expected != rows[i].owner) {
                fake_time += 20 * QUANTUM;
                assert_int_equal(KeQueryPriorityThread(owner.thread), 8);
            }
            end_actor(&owner);
            end_waiters(&w, 1);
        }
    }
}

/* Two waiters with the owner's priority, and behind them a higher one: each owner runs at that priority until the last
   one has the mutant. */
static void the_next_owner_inherits_the_boost(void **state)
{
    actor owner = {0};
    waiter w[3];
    KMUTANT mutant;
    (void)state;
    start_actor(&owner);
    start_waiters(w, 3);
    KeInitializeMutant(&mutant, FALSE);
    run_on(&owner, acquire_mutant, &mutant);
    KeSetPriorityThread(w[2].actor.thread, 12);
    begin_wait_for(&w[0], &mutant);
    begin_wait_for(&w[1], &mutant);
    assert_int_equal(priority_of(owner.thread), 8);
    begin_wait_for(&w[2], &mutant);
    assert_int_equal(priority_of(owner.thread), 12);
    run_on(&owner, release_mutant, &mutant);
    for (ULONG i = 0; i < 3; i++) {
        assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
        assert_int_equal(priority_of(w[i].actor.thread), 12);
        run_on(&w[i].actor, release_mutant, &mutant);
    }
    /* A boost that has decayed is not passed on. */
    run_on(&owner, acquire_mutant, &mutant);
    begin_wait_for(&w[0], &mutant);
    fake_time += 20 * QUANTUM;
    run_on(&owner, release_mutant, &mutant);
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_int_equal(KeQueryPriorityThread(w[0].actor.thread), 8 + MUTANT_INCREMENT);
    run_on(&w[0].actor, release_mutant, &mutant);
    end_actor(&owner);
    end_waiters(w, 3);
}

static int replace_clock(void **state)
{
    (void)state;
    HalDispatch.QueryInterruptTime = query_fake_time;
    HalDispatch.QueryTickTime = query_fake_time;
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_priorities),
        cmocka_unit_test(set_priorities),
        cmocka_unit_test(verifier_refuses_only_impossible_priorities),
        cmocka_unit_test(boosts),
        cmocka_unit_test(boosts_decay_by_a_level_for_each_quantum),
        cmocka_unit_test(a_waiting_thread_hears_of_the_change),
        cmocka_unit_test(a_signal_boosts_the_waiter),
        cmocka_unit_test(wakeups_boost_as_of_their_time),
        cmocka_unit_test(an_owner_runs_at_the_priority_of_its_waiter),
        cmocka_unit_test(the_next_owner_inherits_the_boost),
    };

    return cmocka_run_group_tests_name("ke/priority", tests, replace_clock, NULL);
}
