/* Waits for shared objects through the wait engine: proxies, alone and beside local objects; what ends such a wait. */
#include "processes.h"

#define wait_for wait_for_object
#include "../ke/waittest.h"

static PWO_VIEW view;

typedef struct proxy {
    union {
        KEVENT event;
        KSEMAPHORE semaphore;
        KMUTANT mutant;
        KTIMER timer;
    };
    KI_OUTSIDE outside;
} proxy;

static void make_proxy(proxy *p, WO_TYPE type, UCHAR kernel_type, LONG state, LONG limit)
{
    WO_NEW new = {.Type = type, .State = state, .Limit = limit};
    memset(p, 0, sizeof(*p));
    p->outside.View = view;
    assert_int_equal(WoCreateObject(view, &new, &p->outside.Index), STATUS_SUCCESS);
    KiMakeOutside(&p->event.Header, kernel_type, &p->outside);
}

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

/* The thread ends, too. */
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
    for (int round = 0; round < 200; round++) { /* a cancel that meets a signal */
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

static void answer(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        check(wait_for_object(&ping, NULL) == STATUS_WAIT_0);
        KeSetEvent(&pong.event, 0, FALSE);
    }
}

static void two_processes(void **state)
{
    (void)state;
    enum { ROUNDS = 2000 };
    make_event(&ping, TRUE, 0);
    make_event(&pong, TRUE, 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(60 * test_slowdown());
        answer(ROUNDS);
        _exit(0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        KeSetEvent(&ping.event, 0, FALSE);
        assert_int_equal(wait_for_object(&pong, NULL), STATUS_WAIT_0);
    }
    assert_int_equal(await_process(child), 0);
    drop(&ping);
    drop(&pong);
}

/* Each wait for a key is paired with one release of it, in another process. */
static void keyed_events(void **state)
{
    (void)state;
    enum { ROUNDS = 500 };
    WO_NEW new = {.Type = WoKeyedEvent};
    KI_OUTSIDE keyed = {.View = view};
    assert_int_equal(WoCreateObject(view, &new, &keyed.Index), STATUS_SUCCESS);
    assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KiMeetOutside(&keyed, 16, TRUE, FALSE, &(LARGE_INTEGER){.QuadPart = -MILLISECOND}), STATUS_TIMEOUT);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60 * test_slowdown());
        for (int i = 0; i < ROUNDS; i++)
            check(KiMeetOutside(&keyed, 16, TRUE, FALSE, NULL) == STATUS_SUCCESS);
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(await_process(child), 0);
    assert_int_equal(KiMeetOutside(&keyed, 16, FALSE, FALSE, NO_TIME), STATUS_TIMEOUT);
    WoDereferenceObject(view, keyed.Index);
}

/* A process that is killed while it owns and waits. */
static void a_killed_owner_abandons(void **state)
{
    (void)state;
    proxy m;
    steps s = make_steps();
    make_proxy(&m, WoMutant, MutantObject, 1, 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        check(wait_for_object(&m, NULL) == STATUS_WAIT_0);
        step(&s);
        pause();
    }
    await_step(&s);
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
    close_steps(&s);
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
