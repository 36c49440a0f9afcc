/* Waits for shared objects through the wait engine: proxies, alone and beside local objects; what ends such a wait. */
#include "proxies.h"

static void make_event(proxy *p, BOOLEAN automatic, LONG state)
{
    make_proxy(p, automatic ? WoSynchronizationEvent : WoNotificationEvent,
               automatic ? EventSynchronizationObject : EventNotificationObject, state, 0);
}

static void drop(proxy *p)
{
    PWO_OBJECT object = WopRecord(view, p->outside.Index, WoObjectRecord);
    assert_int_equal(object->WaitersWord, 0);
    assert_int_equal(object->Word & WO_W, 0);
    WoDereferenceObject(view, p->outside.Index);
}

static void start_waiter(waiter *w, wait_call call)
{
    start_waiters(w, 1);
    w->call = call;
    tell(&w->actor, perform_wait, w);
}

/* Also ends the thread. */
static NTSTATUS finish_waiter(waiter *w)
{
    NTSTATUS status = end_wait(w);
    end_waiters(w, 1);
    return status;
}

static void operations(void **state)
{
    (void)state;
    proxy e, s, m;
    LONG previous;
    make_event(&e, TRUE, 0);
    assert_int_equal(KeReadStateEvent(&e.event), 0);
    assert_false(poll_object(&e));
    assert_int_equal(KeSetEvent(&e.event, 0, FALSE), 0);
    assert_int_equal(KeSetEvent(&e.event, 0, FALSE), 1);
    assert_int_equal(KeReadStateEvent(&e.event), 1);
    assert_int_equal(KeResetEvent(&e.event), 1);
    assert_int_equal(KePulseEvent(&e.event, 0, FALSE), 0);
    assert_int_equal(KeSetEvent(&e.event, 0, FALSE), 0);
    assert_int_equal(wait_for_object(&e, NULL), STATUS_WAIT_0);
    assert_int_equal(wait_for_object(&e, &(LARGE_INTEGER){.QuadPart = -MILLISECOND}), STATUS_TIMEOUT);
    make_proxy(&s, WoSemaphore, SemaphoreObject, 1, 3);
    assert_int_equal(KeReleaseSemaphore(&s.semaphore, 0, 2, FALSE), 1);
    assert_int_equal(KiReleaseSemaphore(&s.semaphore, 0, 1, FALSE, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    for (int i = 0; i < 3; i++)
        assert_true(poll_object(&s));
    assert_false(poll_object(&s));
    assert_int_equal(KeReadStateSemaphore(&s.semaphore), 0);
    make_proxy(&m, WoMutant, MutantObject, 1, 0);
    assert_int_equal(KiReleaseMutant(&m.mutant, 0, FALSE, FALSE, &previous), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_WAIT_0);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_WAIT_0);
    assert_int_equal(KeReadStateMutant(&m.mutant), -1);
    assert_int_equal(KeReleaseMutant(&m.mutant, 0, FALSE, FALSE), -1);
    assert_int_equal(KeReleaseMutant(&m.mutant, 0, FALSE, FALSE), 0);
    assert_int_equal(KeReadStateMutant(&m.mutant), 1);
    drop(&e);
    drop(&s);
    drop(&m);
}

static void timers(void **state)
{
    (void)state;
    proxy t, e;
    PVOID both[2] = {&t, &e};
    make_proxy(&t, WoSynchronizationTimer, TimerSynchronizationObject, 0, 0);
    make_event(&e, FALSE, 0);
    assert_false(KeSetTimer(&t.timer, relative(2 * MILLISECOND), NULL));
    assert_true(KeSetTimer(&t.timer, relative(5 * MILLISECOND), NULL));
    assert_int_equal(wait_for_object(&t, NULL), STATUS_WAIT_0);
    KeSetTimerEx(&t.timer, relative(MILLISECOND), 1, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(KeWaitForMultipleObjects(2, both, WaitAny, Executive, KernelMode, FALSE, NULL, NULL), 0);
    assert_true(KeCancelTimer(&t.timer));
    poll_object(&t);
    KeSetTimer(&t.timer, absolute(3 * MILLISECOND), NULL);
    assert_int_equal(wait_for_object(&t, &(LARGE_INTEGER){.QuadPart = -20 * SECOND}), STATUS_WAIT_0);
    assert_false(KeCancelTimer(&t.timer));
    drop(&t);
    drop(&e);
}

/* A thread that waits for both kinds of object is woken by either. */
static void any_of_both_kinds(void **state)
{
    (void)state;
    proxy e;
    KEVENT local;
    waiter w;
    make_event(&e, TRUE, 0);
    KeInitializeEvent(&local, SynchronizationEvent, FALSE);
    for (int round = 0; round < 50; round++) {
        for (int outside_first = 0; outside_first < 2; outside_first++) {
            start_waiter(&w, (wait_call){.count = 2, .object = {outside_first ? (PVOID)&e : &local,
                                                                outside_first ? (PVOID)&local : &e}});
            if (round % 2)
                await(is_committed(w.actor.thread));
            KeSetEvent(outside_first ? &e.event : &local, 0, FALSE);
            assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);
            start_waiter(&w, (wait_call){.count = 2, .object = {outside_first ? (PVOID)&e : &local,
                                                                outside_first ? (PVOID)&local : &e}});
            if (round % 2)
                await(is_committed(w.actor.thread));
            KeSetEvent(outside_first ? &local : &e.event, 0, FALSE);
            assert_int_equal(finish_waiter(&w), STATUS_WAIT_1);
            assert_false(poll_object(&e));
            assert_false(poll_object(&local));
        }
    }
    drop(&e);
}

static void all_outside(void **state)
{
    (void)state;
    proxy a, b;
    waiter w;
    make_event(&a, TRUE, 1);
    make_proxy(&b, WoSemaphore, SemaphoreObject, 0, 9);
    start_waiter(&w, (wait_call){.count = 2, .object = {&a, &b}, .all = TRUE});
    await(is_committed(w.actor.thread));
    assert_int_equal(KeReadStateEvent(&a.event), 1);
    assert_int_equal(KeReleaseSemaphore(&b.semaphore, 0, 2, FALSE), 0);
    assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(&a.event), 0);
    assert_int_equal(KeReadStateSemaphore(&b.semaphore), 1);
    PVOID twice[2] = {&b, &b};
    assert_int_equal(KeWaitForMultipleObjects(2, twice, WaitAll, Executive, KernelMode, FALSE, NULL, NULL),
                     STATUS_INVALID_PARAMETER_MIX);
    drop(&a);
    drop(&b);
}

static void all_of_both_kinds(void **state)
{
    (void)state;
    proxy a;
    KSEMAPHORE local;
    waiter w;
    make_event(&a, TRUE, 0);
    for (int round = 0; round < 40; round++) {
        KeInitializeSemaphore(&local, 0, 9);
        start_waiter(&w, (wait_call){.count = 2, .object = {&a, &local}, .all = TRUE});
        await(is_committed(w.actor.thread));
        if (round % 2) {
            KeSetEvent(&a.event, 0, FALSE);
            if (round % 4 == 1)
                await(is_committed(w.actor.thread));
            assert_int_equal(KeReadStateEvent(&a.event), 1);
            KeReleaseSemaphore(&local, 0, 2, FALSE);
        } else {
            KeReleaseSemaphore(&local, 0, 2, FALSE);
            if (round % 4 == 2)
                await(is_committed(w.actor.thread));
            assert_int_equal(KeReadStateSemaphore(&local), 2);
            KeSetEvent(&a.event, 0, FALSE);
        }
        assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);
        assert_int_equal(KeReadStateEvent(&a.event), 0);
        assert_int_equal(KeReadStateSemaphore(&local), 1);
    }
    start_waiter(&w, (wait_call){.count = 2, .object = {&a, &local}, .all = TRUE, .timeout = &(LARGE_INTEGER){.QuadPart = -MILLISECOND}});
    assert_int_equal(finish_waiter(&w), STATUS_TIMEOUT);
    drop(&a);
}

/* Many objects, shared and local. Shared objects beyond those that the world links for one wait are polled. */
#define MANY 100

typedef struct many_call {
    actor actor;
    PVOID object[2 * MANY];
    ULONG count;
    WAIT_TYPE type;
    KWAIT_BLOCK blocks[KE_MANY_WAIT_BLOCKS(2 * MANY)];
    PLARGE_INTEGER timeout;
    NTSTATUS status;
    ULONG index;
} many_call;

static void perform_many(void *argument)
{
    many_call *call = argument;
    call->index = 4711;
    call->status = KeWaitForManyObjects(call->count, call->object, call->type, Executive, KernelMode, FALSE,
                                        call->timeout, call->blocks, &call->index);
}

static void begin_many(many_call *call, WAIT_TYPE type)
{
    call->type = type;
    tell(&call->actor, perform_many, call);
    await(is_committed(call->actor.thread));
}

static void many_of_both_kinds(void **state)
{
    static proxy shared[MANY];
    static KEVENT local[MANY];
    static many_call call;
    (void)state;
    for (ULONG i = 0; i < MANY; i++) {
        make_event(&shared[i], TRUE, 0);
        KeInitializeEvent(&local[i], SynchronizationEvent, FALSE);
    }
    start_actor(&call.actor);
    /* 50 shared objects: all are linked, in any position. 100: the last ones are polled. */
    for (ULONG outside = 50; outside <= MANY; outside += 50) {
        call.count = outside + MANY;
        for (ULONG i = 0; i < outside; i++)
            call.object[2 * i] = &shared[i];
        for (ULONG i = 0, at = 1; i < MANY; i++) {
            call.object[at] = &local[i];
            at += at < 2 * outside - 1 ? 2 : 1;
        }
        for (ULONG i = 0; i < call.count; i += 13) {
            begin_many(&call, WaitAny);
            KeSetEvent(call.object[i], 0, FALSE);
            await(is_idle(&call.actor));
            assert_int_equal(call.status, STATUS_WAIT_0);
            assert_int_equal(call.index, i);
            assert_false(poll_object(call.object[i]));
        }
    }
    call.timeout = &(LARGE_INTEGER){.QuadPart = -5 * MILLISECOND};
    run_on(&call.actor, perform_many, &call);
    assert_int_equal(call.status, STATUS_TIMEOUT);
    assert_int_equal(call.index, 0);
    call.timeout = NULL;

    /* All of 50 shared and 100 local ones; the last is of either kind. */
    call.count = 50 + MANY;
    for (ULONG i = 0; i < call.count; i++)
        call.object[i] = i < 50 ? (PVOID)&shared[i] : &local[i - 50];
    for (ULONG last = 0; last < call.count; last += 149) {
        begin_many(&call, WaitAll);
        for (ULONG i = 0; i < call.count; i++)
            if (i != last)
                KeSetEvent(call.object[i], 0, FALSE);
        assert_int_equal(KeReadStateEvent(call.object[75]), 1);
        KeSetEvent(call.object[last], 0, FALSE);
        await(is_idle(&call.actor));
        assert_int_equal(call.status, STATUS_WAIT_0);
        for (ULONG i = 0; i < call.count; i++)
            assert_int_equal(KeReadStateEvent(call.object[i]), 0);
    }
    for (ULONG i = 0; i < MANY; i++)
        call.object[i] = &shared[i];
    call.count = MANY;
    run_on(&call.actor, perform_many, &call);
    assert_int_equal(call.status, STATUS_NOT_SUPPORTED);
    end_actor(&call.actor);
    for (ULONG i = 0; i < MANY; i++)
        drop(&shared[i]);
}

/* A shared mutant whose owner has ended, and one that the thread acquires. */
static void many_mutants(void **state)
{
    static many_call call, owner;
    proxy m;
    KEVENT local[MANY];
    (void)state;
    make_proxy(&m, WoMutant, MutantObject, 1, 0);
    for (ULONG i = 0; i < MANY; i++) {
        KeInitializeEvent(&local[i], SynchronizationEvent, FALSE);
        call.object[i] = &local[i];
    }
    call.object[90] = &m;
    call.count = MANY;
    start_actor(&call.actor);
    start_actor(&owner.actor);
    owner.object[0] = &m;
    owner.count = 1;
    owner.type = WaitAny;
    run_on(&owner.actor, perform_many, &owner);
    assert_int_equal(owner.status, STATUS_WAIT_0);
    begin_many(&call, WaitAny);
    end_actor(&owner.actor);
    await(is_idle(&call.actor));
    assert_int_equal(call.status, STATUS_ABANDONED_WAIT_0);
    assert_int_equal(call.index, 90);
    end_actor(&call.actor);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_ABANDONED);
    assert_int_equal(KeReleaseMutant(&m.mutant, 0, FALSE, FALSE), 0);
    drop(&m);
}

/* What ends a wait besides its objects. */
static int apcs;

static void count_apc(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *one, PVOID *two)
{
    (void)apc, (void)normal, (void)context, (void)one, (void)two;
    __atomic_add_fetch(&apcs, 1, __ATOMIC_RELAXED);
}

static void interruptions(void **state)
{
    (void)state;
    proxy e;
    waiter w;
    KAPC apc;
    make_event(&e, TRUE, 0);
    start_waiter(&w, (wait_call){.count = 1, .object = {&e}, .alertable = TRUE});
    await(is_committed(w.actor.thread));
    KeAlertThread(w.actor.thread, KernelMode);
    assert_int_equal(finish_waiter(&w), STATUS_ALERTED);
    assert_int_equal(KeSetEvent(&e.event, 0, FALSE), 0);
    assert_true(poll_object(&e));

    start_waiter(&w, (wait_call){.count = 1, .object = {&e}});
    await(is_committed(w.actor.thread));
    KeInitializeApc(&apc, w.actor.thread, OriginalApcEnvironment, count_apc, NULL, NULL, KernelMode, NULL);
    assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
    await(__atomic_load_n(&apcs, __ATOMIC_RELAXED) == 1);
    KeSetEvent(&e.event, 0, FALSE);
    assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);

    start_waiter(&w, (wait_call){.count = 1, .object = {&e}});
    await(is_committed(w.actor.thread));
    assert_int_equal(KeSuspendThread(w.actor.thread), 0);
    await(is_committed(w.actor.thread) && w.actor.thread->WaitReason == Suspended);
    KeSetEvent(&e.event, 0, FALSE);
    assert_int_equal(KeReadStateEvent(&e.event), 1);
    assert_int_equal(KeResumeThread(w.actor.thread), 1);
    assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);
    drop(&e);
}

static void own_and_end(void *argument)
{
    check(wait_for_object(argument, NULL) == STATUS_WAIT_0);
}

static void a_thread_that_ends_abandons(void **state)
{
    (void)state;
    proxy m;
    actor a;
    make_proxy(&m, WoMutant, MutantObject, 1, 0);
    start_actor(&a);
    run_on(&a, own_and_end, &m);
    assert_int_equal(KeReadStateMutant(&m.mutant), 0);
    end_actor(&a);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_ABANDONED_WAIT_0);
    KeReleaseMutant(&m.mutant, 0, FALSE, FALSE);
    drop(&m);
}

static void signal_and_wait(void **state)
{
    (void)state;
    proxy e, answer;
    waiter w;
    make_event(&e, TRUE, 0);
    make_event(&answer, TRUE, 1);
    start_waiter(&w, (wait_call){.count = 1, .object = {&e}});
    await(is_committed(w.actor.thread));
    KeSetEvent(&e.event, 0, TRUE);
    assert_int_equal(wait_for_object(&answer, NULL), STATUS_WAIT_0);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(finish_waiter(&w), STATUS_WAIT_0);
    drop(&e);
    drop(&answer);
}

static void notifications(void **state)
{
    (void)state;
    proxy e, t;
    KQUEUE queue;
    KOBJECT_NOTIFICATION n;
    make_event(&e, TRUE, 0);
    make_proxy(&t, WoNotificationTimer, TimerNotificationObject, 0, 0);
    KeInitializeQueue(&queue, 0);
    assert_int_equal(KeRegisterObjectNotification(&e, &queue, &n), STATUS_PENDING);
    KeSetEvent(&e.event, 0, FALSE);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &n.QueueListEntry);
    assert_int_equal(KeReadStateEvent(&e.event), 0);
    KeSetEvent(&e.event, 0, FALSE);
    assert_int_equal(KeRegisterObjectNotification(&e, &queue, &n), STATUS_SUCCESS);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &n.QueueListEntry);
    assert_int_equal(KeRegisterObjectNotification(&e, &queue, &n), STATUS_PENDING);
    assert_int_equal(KeCancelObjectNotification(&n, TRUE), NotificationCancelled);
    for (int round = 0; round < 200; round++) { /* a cancel that races a signal */
        assert_int_equal(KeRegisterObjectNotification(&e, &queue, &n), STATUS_PENDING);
        KeSetEvent(&e.event, 0, FALSE);
        KNOTIFICATION_CANCEL_RESULT result = KeCancelObjectNotification(&n, TRUE);
        assert_int_equal(result, NotificationRemovedFromQueue);
    }
    assert_int_equal(KeRegisterObjectNotification(&t, &queue, &n), STATUS_PENDING);
    KeSetTimer(&t.timer, relative(2 * MILLISECOND), NULL);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &n.QueueListEntry);
    KeRundownQueue(&queue);
    drop(&e);
    drop(&t);
}

static void move(PDISPATCHER_HEADER header, WO_TYPE type, KI_OUTSIDE *outside)
{
    WO_NEW new = {.Type = type};
    outside->View = view;
    assert_int_equal(WoCreateObject(view, &new, &outside->Index), STATUS_SUCCESS);
    assert_int_equal(KiMoveOutside(header, outside), STATUS_SUCCESS);
}

static void moving(void **state)
{
    (void)state;
    proxy e, s, m, t;
    waiter w[3];
    KQUEUE queue;
    KOBJECT_NOTIFICATION n;
    KeInitializeEvent(&e.event, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&s.semaphore, 2, 5);
    KeInitializeMutant(&m.mutant, FALSE);
    KeInitializeTimerEx(&t.timer, NotificationTimer);
    KeInitializeQueue(&queue, 0);
    start_waiter(&w[0], (wait_call){.count = 1, .object = {&e}});
    await(is_committed(w[0].actor.thread));
    start_waiter(&w[1], (wait_call){.count = 2, .object = {&e, &s}, .all = TRUE});
    await(is_committed(w[1].actor.thread));
    assert_int_equal(wait_for_object(&m, NULL), STATUS_WAIT_0);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_WAIT_0);
    KeSetTimer(&t.timer, relative(5 * MILLISECOND), NULL);
    start_waiter(&w[2], (wait_call){.count = 1, .object = {&t}});
    move(&e.event.Header, WoSynchronizationEvent, &e.outside);
    move(&m.mutant.Header, WoMutant, &m.outside);
    move(&t.timer.Header, WoNotificationTimer, &t.outside);
    assert_int_equal(KeRegisterObjectNotification(&s, &queue, &n), STATUS_SUCCESS);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &n.QueueListEntry);
    move(&s.semaphore.Header, WoSemaphore, &s.outside);
    assert_int_equal(KeReadStateSemaphore(&s.semaphore), 1);
    assert_int_equal(KeReadStateMutant(&m.mutant), -1);
    assert_int_equal(KeReleaseMutant(&m.mutant, 0, FALSE, FALSE), -1);
    assert_int_equal(KeReleaseMutant(&m.mutant, 0, FALSE, FALSE), 0);
    KeSetEvent(&e.event, 0, FALSE);
    KeSetEvent(&e.event, 0, FALSE);
    while (!is_idle(&w[0].actor) || !is_idle(&w[1].actor)) {
        if (KeReadStateEvent(&e.event) == 0)
            KeSetEvent(&e.event, 0, FALSE);
        pause_briefly();
    }
    assert_int_equal(finish_waiter(&w[0]), STATUS_WAIT_0);
    assert_int_equal(finish_waiter(&w[1]), STATUS_WAIT_0);
    assert_int_equal(finish_waiter(&w[2]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateSemaphore(&s.semaphore), 0);
    LONG previous;
    assert_int_equal(KiReleaseSemaphore(&s.semaphore, 0, 6, FALSE, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    KeRundownQueue(&queue);
    drop(&e);
    drop(&s);
    drop(&m);
    drop(&t);
}

/* Two processes answer each other. */
static proxy ping, pong;

enum { ANSWERS = 2000 };

static void answer(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < ANSWERS; i++) {
        check(wait_for_object(&ping, NULL) == STATUS_WAIT_0);
        KeSetEvent(&pong.event, 0, FALSE);
    }
}

static void two_processes(void **state)
{
    (void)state;
    make_event(&ping, TRUE, 0);
    make_event(&pong, TRUE, 0);
    pid_t child = fork_process(answer, NULL);
    for (unsigned i = 0; i < ANSWERS; i++) {
        KeSetEvent(&ping.event, 0, FALSE);
        assert_int_equal(wait_for_object(&pong, NULL), STATUS_WAIT_0);
    }
    assert_int_equal(await_process(child), 0);
    drop(&ping);
    drop(&pong);
}

/* Each wait for a key is paired with one release of it, in another process. */
enum { MEETINGS = 500 };

static void release_keys(void *keyed)
{
    for (int i = 0; i < MEETINGS; i++)
        check(KiMeetOutside(keyed, 16, TRUE, FALSE, NULL) == STATUS_SUCCESS);
}

static void keyed_events(void **state)
{
    (void)state;
    WO_NEW new = {.Type = WoKeyedEvent};
    KI_OUTSIDE keyed = {.View = view};
    assert_int_equal(WoCreateObject(view, &new, &keyed.Index), STATUS_SUCCESS);
    assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KiMeetOutside(&keyed, 16, TRUE, FALSE, &(LARGE_INTEGER){.QuadPart = -MILLISECOND}), STATUS_TIMEOUT);
    pid_t child = fork_process(release_keys, &keyed);
    for (int i = 0; i < MEETINGS; i++)
        assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(await_process(child), 0);
    assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NO_TIME), STATUS_TIMEOUT);
    WoDereferenceObject(view, keyed.Index);
}

/* A process that is killed while it owns and waits. */
static steps owned;

static void own_for_ever(void *mutant)
{
    check(wait_for_object(mutant, NULL) == STATUS_WAIT_0);
    step(&owned);
    pause();
}

static void a_killed_owner_abandons(void **state)
{
    (void)state;
    proxy m;
    owned = make_steps();
    make_proxy(&m, WoMutant, MutantObject, 1, 0);
    pid_t child = fork_process(own_for_ever, &m);
    await_step(&owned);
    assert_int_equal(KeReadStateMutant(&m.mutant), 0);
    waiter w;
    start_waiter(&w, (wait_call){.count = 1, .object = {&m}});
    await(is_committed(w.actor.thread));
    kill_process(child);
    assert_int_equal(finish_waiter(&w), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(wait_for_object(&m, NULL), STATUS_ABANDONED_WAIT_0); /* the waiter's thread has ended */
    assert_int_equal(wait_for_object(&m, NO_TIME), STATUS_WAIT_0);
    KeReleaseMutant(&m.mutant, 0, FALSE, FALSE);
    KeReleaseMutant(&m.mutant, 0, FALSE, FALSE);
    close_steps(&owned);
    drop(&m);
}

static int set_up(void **state)
{
    make_directory(state);
    view = attach();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(operations),
        WATCHED(timers),
        WATCHED(any_of_both_kinds),
        WATCHED(all_outside),
        WATCHED(all_of_both_kinds),
        WATCHED(many_of_both_kinds),
        WATCHED(many_mutants),
        WATCHED(interruptions),
        WATCHED(a_thread_that_ends_abandons),
        WATCHED(signal_and_wait),
        WATCHED(notifications),
        WATCHED(moving),
        WATCHED(two_processes),
        WATCHED(keyed_events),
        WATCHED(a_killed_owner_abandons),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
