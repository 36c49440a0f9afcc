/* apcwait.c: APCs that arrive while their thread waits. */
#include "apctest.h"

/* In a wait: it is interrupted, the APC runs, the wait continues. */

static void use_every_wait_block(test_apc *a)
{
    KEVENT events[3];
    LARGE_INTEGER time = relative(1);
    (void)a;
    for (ULONG i = 0; i < 3; i += 1) {
        KeInitializeEvent(&events[i], SynchronizationEvent, i == 2);
    }
    wait_call any = {.count = 3, .object = {&events[0], &events[1], &events[2]}};
    wait_call all = {.count = 3, .object = {&events[0], &events[1], &events[2]}, .all = TRUE, .timeout = &time};
    check(perform(&any) == STATUS_WAIT_2);
    check(perform(&all) == STATUS_TIMEOUT);
    check(KeDelayExecutionThread(KernelMode, FALSE, &time) == STATUS_SUCCESS);
    any.timeout = &time;
    check(perform(&any) == STATUS_TIMEOUT);
}

static void test_in_waits(void **state)
{
    static const apc_kind apc_kinds[] = {SPECIAL, NORMAL};
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG n = 0; n < ARRAYSIZE(apc_kinds) * 5 * 2; n += 1) {
        KEVENT events[5];
        LARGE_INTEGER long_time = relative(600 * SECOND);
        apc_kind which = apc_kinds[n % ARRAYSIZE(apc_kinds)];
        ULONG form = n / ARRAYSIZE(apc_kinds) % 5;
        BOOLEAN waits = n / ARRAYSIZE(apc_kinds) / 5 != 0;
        test_apc a;
        for (ULONG i = 0; i < 5; i += 1) {
            KeInitializeEvent(&events[i], SynchronizationEvent, FALSE);
        }
        const wait_call calls[] = {
            {.count = 1, .object = {&events[0]}},
            {.count = 3, .object = {&events[1], &events[2], &events[0]}, .mode = UserMode},
            {.count = 5, .object = {&events[1], &events[2], &events[3], &events[4], &events[0]}, .timeout = &long_time},
            {.count = 3, .object = {&events[0], &events[1], &events[2]}, .all = TRUE},
            {.count = 0, .timeout = &long_time, .alertable = TRUE},
        };
        print_message("# %s, form %u%s\n", which == SPECIAL ? "special" : "normal", form, waits ? ", APC waits" : "");
        clear_journal();
        w.call = calls[form];
        begin_wait(&w);
        make_apc(&a, w.actor.thread, which, 'a');
        a.during = waits && which == NORMAL ? use_every_wait_block : NULL;
        assert_true(insert(&a));
        await(notes() == (which == SPECIAL ? 1 : 2));
        await(still_waits(&w));
        assert_ptr_equal(a.ran_on, w.actor.thread);
        if (form == 3) {
            KeSetEvent(&events[1], 0, FALSE);
            KeSetEvent(&events[2], 0, FALSE);
            assert_true(still_waits(&w));
        }
        if (form == 4) {
            KeAlertThread(w.actor.thread, KernelMode);
        } else {
            KeSetEvent(&events[0], 0, FALSE);
        }
        assert_int_equal(end_wait(&w), form == 4   ? STATUS_ALERTED
                                       : form == 3 ? STATUS_WAIT_0
                                                   : STATUS_WAIT_0 + (NTSTATUS)calls[form].count - 1);
        for (ULONG i = 0; i < 5; i += 1) {
            assert_int_equal(KeReadStateEvent(&events[i]), 0);
            assert_true(has_no_waiters(&events[i]));
        }
    }
    end_waiters(&w, 1);
}

/* The deadline stays where it was, however often the wait starts over. */
static void test_same_deadline(void **state)
{
    waiter w;
    KEVENT event;
    LARGE_INTEGER time = relative(40 * MILLISECOND);
    (void)state;
    clear_journal();
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &time};
    begin_wait(&w);
    HAL_DEADLINE deadline = w.actor.thread->WaitDeadline;
    for (ULONG i = 0; i < 10 && !is_idle(&w.actor); i += 1) {
        test_apc a;
        ULONG before = notes();
        queue_apc(&a, w.actor.thread, SPECIAL, 'a');
        await(notes() > before || is_idle(&w.actor));
        await(still_waits(&w) || is_idle(&w.actor));
        if (notes() == before) {
            KeRemoveQueueApc(&a.apc);
        }
        assert_int_equal(w.actor.thread->WaitDeadline.Time, deadline.Time);
    }
    assert_int_equal(end_wait(&w), STATUS_TIMEOUT);
    assert_true(HalDispatch.QueryInterruptTime() >= deadline.Time);
    end_waiters(&w, 1);
}

/* The interrupted thread is off the list, misses a pulse, and returns at the tail. */

static sem_t apc_entered, apc_may_go;

static void pause_in_apc(test_apc *a)
{
    (void)a;
    sem_post(&apc_entered);
    while (sem_wait(&apc_may_go) != 0) {
    }
}

static void test_pulse_is_missed_and_place_is_lost(void **state)
{
    waiter w[2];
    KEVENT event;
    test_apc a;
    (void)state;
    clear_journal();
    sem_init(&apc_entered, 0, 0);
    sem_init(&apc_may_go, 0, 0);
    start_waiters(w, 2);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    begin_wait_for(&w[0], &event);
    begin_wait_for(&w[1], &event);
    make_apc(&a, w[0].actor.thread, SPECIAL, 'a');
    a.during = pause_in_apc;
    assert_true(insert(&a));
    while (sem_wait(&apc_entered) != 0) {
    }
    assert_ptr_equal(event.Header.WaitListHead.Flink, &w[1].actor.thread->WaitBlock[0].WaitListEntry);
    assert_ptr_equal(event.Header.WaitListHead.Blink, &w[1].actor.thread->WaitBlock[0].WaitListEntry);
    KePulseEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w[1]), STATUS_SUCCESS);
    begin_wait_for(&w[1], &event);
    sem_post(&apc_may_go);
    await(still_waits(&w[0]));
    assert_ptr_equal(event.Header.WaitListHead.Flink, &w[1].actor.thread->WaitBlock[0].WaitListEntry);
    assert_ptr_equal(event.Header.WaitListHead.Blink, &w[0].actor.thread->WaitBlock[0].WaitListEntry);
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w[1]), STATUS_SUCCESS);
    assert_true(still_waits(&w[0]));
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w[0]), STATUS_SUCCESS);
    end_waiters(w, 2);
}

/* What becomes signaled while the APC runs is found when the wait starts over, as if it had just been issued. */

static void acquire_mutant(void *mutant)
{
    check(wait_for(mutant, NULL) == STATUS_SUCCESS);
}

static void release_mutant(void *mutant)
{
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
}

static void test_signaled_during_the_apc(void **state)
{
    waiter w;
    (void)state;
    sem_init(&apc_entered, 0, 0);
    sem_init(&apc_may_go, 0, 0);
    start_waiters(&w, 1);
    for (ULONG n = 0; n < 3 * 2; n += 1) {
        ULONG what = n % 3; /* the event, the mutant released, the mutant abandoned */
        BOOLEAN all = n / 3 != 0;
        NTSTATUS index = all ? 0 : what == 0 ? 1 : 2;
        actor owner = {0};
        KEVENT never, event;
        KMUTANT mutant;
        test_apc a;
        clear_journal();
        start_actor(&owner);
        KeInitializeEvent(&never, NotificationEvent, FALSE);
        KeInitializeEvent(&event, SynchronizationEvent, all && what != 0);
        KeInitializeMutant(&mutant, FALSE);
        if (!all || what != 0) {
            run_on(&owner, acquire_mutant, &mutant);
        }
        w.call = all ? (wait_call){.count = 2, .object = {&event, &mutant}, .all = TRUE}
                     : (wait_call){.count = 3, .object = {&never, &event, &mutant}};
        begin_wait(&w);
        make_apc(&a, w.actor.thread, SPECIAL, 'a');
        a.during = pause_in_apc;
        assert_true(insert(&a));
        while (sem_wait(&apc_entered) != 0) {
        }
        if (what == 0) {
            KeSetEvent(&event, 0, FALSE);
        } else if (what == 1) {
            run_on(&owner, release_mutant, &mutant);
        } else {
            end_actor(&owner);
        }
        sem_post(&apc_may_go);
        assert_int_equal(end_wait(&w), (what == 2 ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0) + index);
        assert_int_equal(KeReadStateEvent(&event), 0);
        assert_true(has_no_waiters(&event));
        assert_true(has_no_waiters(&mutant));
        if (all || what != 0) {
            assert_ptr_equal(mutant.OwnerThread, w.actor.thread);
            assert_int_equal(KeReadStateMutant(&mutant), 0);
            run_on(&w.actor, release_mutant, &mutant);
            assert_int_equal(KeReadStateMutant(&mutant), 1);
        }
        if (what != 2) {
            end_actor(&owner);
        }
    }
    end_waiters(&w, 1);
}

/* A wait that was issued with APCs disabled is not interrupted. */

typedef struct guarded_wait {
    waiter waiter;
    const struct barrier *barrier;
} guarded_wait;

static void wait_behind_barrier(void *argument)
{
    guarded_wait *g = argument;
    g->barrier->enter();
    g->waiter.status = perform(&g->waiter.call);
    note('-');
    g->barrier->leave();
}

static void test_waits_behind_barriers(void **state)
{
    guarded_wait g;
    KEVENT event;
    (void)state;
    start_waiters(&g.waiter, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(barriers); i += 1) {
        test_apc special, normal;
        if (barriers[i].enter == raise_to_dispatch_level) {
            continue;
        }
        print_message("# %s\n", barriers[i].name);
        clear_journal();
        g.barrier = &barriers[i];
        g.waiter.call = (wait_call){.count = 1, .object = {&event}};
        tell(&g.waiter.actor, wait_behind_barrier, &g);
        await(still_waits(&g.waiter));
        queue_apc(&normal, g.waiter.actor.thread, NORMAL, 'n');
        assert_true(still_waits(&g.waiter));
        queue_apc(&special, g.waiter.actor.thread, SPECIAL, 's');
        if (!barriers[i].holds_special) {
            await(notes() == 1);
        }
        await(still_waits(&g.waiter));
        KeSetEvent(&event, 0, FALSE);
        await(is_idle(&g.waiter.actor));
        assert_int_equal(g.waiter.status, STATUS_SUCCESS);
        assert_string_equal(journal, barriers[i].holds_special ? "-snN" : "s-nN");
    }
    end_waiters(&g.waiter, 1);
}

/* The same when they were queued before the wait: an APC that may not run does not affect the wait. */

typedef struct stale_wait {
    waiter waiter;
    test_apc normal;
} stale_wait;

static void wait_with_stale_bits(void *argument)
{
    stale_wait *s = argument;
    KeEnterCriticalRegion();
    make_apc(&s->normal, KeGetCurrentThread(), NORMAL, 'n');
    check(insert(&s->normal));
    /* The state left by an inserter whose special APC ran before it set the bit. */
    __atomic_fetch_or(&KeGetCurrentThread()->WaitRegister, KI_WAIT_APC | KI_WAIT_SPECIAL_APC, __ATOMIC_RELAXED);
    s->waiter.status = perform(&s->waiter.call);
    note('-');
    KeLeaveCriticalRegion();
}

static void test_stale_bits_do_not_keep_a_wait_off(void **state)
{
    stale_wait s;
    KEVENT event;
    (void)state;
    clear_journal();
    start_waiters(&s.waiter, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    s.waiter.call = (wait_call){.count = 1, .object = {&event}};
    tell(&s.waiter.actor, wait_with_stale_bits, &s);
    await(still_waits(&s.waiter));
    KeSetEvent(&event, 0, FALSE);
    await(is_idle(&s.waiter.actor));
    assert_int_equal(s.waiter.status, STATUS_SUCCESS);
    assert_string_equal(journal, "-nN");
    end_waiters(&s.waiter, 1);
}

/* User APCs run in alertable user-mode waits only, all of them, and the object stays as it was. */
static void test_user_apcs(void **state)
{
    (void)state;
    for (ULONG n = 0; n < 2 * 2 * 4; n += 1) {
        BOOLEAN alertable = n % 2 != 0;
        KPROCESSOR_MODE mode = n / 2 % 2 ? UserMode : KernelMode;
        ULONG form = n / 4;
        BOOLEAN runs = alertable && mode == UserMode;
        KEVENT events[2];
        test_apc a[3];
        wait_call call = {.count = form == 0 ? 1 : 2, .object = {&events[0], &events[1]}, .all = form == 2};
        clear_journal();
        KeInitializeEvent(&events[0], SynchronizationEvent, TRUE);
        KeInitializeEvent(&events[1], SynchronizationEvent, TRUE);
        call.mode = mode;
        call.alertable = alertable;
        call.timeout = form == 3 ? NO_TIME : NULL;
        for (ULONG i = 0; i < 3; i += 1) {
            queue_apc(&a[i], KeGetCurrentThread(), USER, (char)('a' + i));
        }
        assert_int_equal(perform(&call), runs ? STATUS_USER_APC : STATUS_SUCCESS);
        assert_int_equal(KeReadStateEvent(&events[0]), runs);
        assert_string_equal(journal, runs ? "aAbBcC" : "");
        for (ULONG i = 0; i < 3; i += 1) {
            assert_int_equal(KeRemoveQueueApc(&a[i].apc), !runs);
        }
    }
}

static void test_user_apc_ends_a_committed_wait(void **state)
{
    waiter w;
    KEVENT event;
    test_apc a[2];
    (void)state;
    clear_journal();
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    w.call = (wait_call){.count = 1, .object = {&event}, .mode = UserMode, .alertable = TRUE};
    begin_wait(&w);
    make_apc(&a[0], w.actor.thread, USER, 'a');
    assert_true(KeInsertQueueApc(&a[0].apc, (PVOID)1, (PVOID)2, 3));
    assert_false(still_waits(&w));
    assert_int_equal(end_wait(&w), STATUS_USER_APC);
    assert_string_equal(journal, "aA");
    assert_int_equal(a[0].normal_irql, PASSIVE_LEVEL);
    assert_true(has_no_waiters(&event));

    /* Not so in a wait of kernel mode; the APC then runs in the next wait that allows it. */
    w.call.mode = KernelMode;
    begin_wait(&w);
    queue_apc(&a[1], w.actor.thread, USER, 'b');
    assert_true(still_waits(&w));
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    assert_string_equal(journal, "aA");
    w.call.mode = UserMode;
    run_on(&w.actor, perform_wait, &w);
    assert_int_equal(w.status, STATUS_USER_APC);
    assert_string_equal(journal, "aAbB");
    end_waiters(&w, 1);
}

/* The wait that an APC ends gets the increment that the APC was queued with. */
static void test_increment(void **state)
{
    static const struct {
        apc_kind kind;
        KPRIORITY increment;
        LONG expected;
    } cases[] = {{SPECIAL, 0, 8}, {SPECIAL, 3, 11}, {NORMAL, 0, 8}, {NORMAL, 5, 13}, {USER, 0, 8}, {USER, 20, 15}};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        waiter w;
        KEVENT event;
        test_apc a;
        clear_journal();
        start_waiters(&w, 1);
        KeInitializeEvent(&event, NotificationEvent, FALSE);
        w.call = (wait_call){.count = 1, .object = {&event}, .mode = UserMode, .alertable = TRUE};
        begin_wait(&w);
        make_apc(&a, w.actor.thread, cases[i].kind, 'a');
        assert_true(KeInsertQueueApc(&a.apc, NULL, NULL, cases[i].increment));
        LONG priority = priority_of(w.actor.thread);
        await(notes() >= 1);
        KeSetEvent(&event, 0, FALSE);
        end_wait(&w);
        end_waiters(&w, 1);
        print_message("# kind %u, increment %d\n", cases[i].kind, cases[i].increment);
        assert_int_equal(priority, cases[i].expected);
    }
}

/* Queueing against signaling, with real threads: every APC runs once, every signal ends one wait. */

static void count_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)argument1;
    (void)argument2;
    __atomic_add_fetch((volatile ULONG *)*context, 1, __ATOMIC_RELAXED);
}

static void ignore_call(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void test_apcs_against_signals(void **state)
{
    ULONG rounds = (ULONG)test_rounds(500);
    volatile ULONG calls = 0;
    ULONG queued = 0;
    waiter w;
    KEVENT event;
    KAPC apc;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeApc(&apc, w.actor.thread, OriginalApcEnvironment, count_apc, NULL, ignore_call, KernelMode,
                    (PVOID)(ULONG_PTR)&calls);
    for (ULONG i = 0; i < rounds; i += 1) {
        w.call = (wait_call){.count = 1, .object = {&event}};
        tell(&w.actor, perform_wait, &w);
        if (i % 2) {
            await(still_waits(&w));
        }
        queued += KeInsertQueueApc(&apc, NULL, NULL, 0);
        KeSetEvent(&event, 0, FALSE);
        assert_int_equal(end_wait(&w), STATUS_SUCCESS);
        assert_int_equal(KeReadStateEvent(&event), 0);
    }
    w.call = (wait_call){.count = 0, .timeout = NO_TIME};
    run_on(&w.actor, perform_wait, &w);
    end_waiters(&w, 1);
    assert_int_equal(calls, queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_in_waits),
        WATCHED(test_same_deadline),
        WATCHED(test_pulse_is_missed_and_place_is_lost),
        WATCHED(test_signaled_during_the_apc),
        WATCHED(test_waits_behind_barriers),
        WATCHED(test_stale_bits_do_not_keep_a_wait_off),
        WATCHED(test_user_apcs),
        WATCHED(test_user_apc_ends_a_committed_wait),
        WATCHED(test_increment),
        WATCHED(test_apcs_against_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
