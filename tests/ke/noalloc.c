/* Waiting and signaling never allocate: everything works while the heap refuses. */
#include "kinds.h"

#include "../support/heap.h"

static void empty_heap(void *unused)
{
    (void)unused;
    allocations_left = 0;
}

static void fill_heap(void *unused)
{
    (void)unused;
    allocations_left = -1;
}

static void *volatile sink;

/* The trap works. */
static void test_self(void **state)
{
    ULONG before = allocations_refused;
    (void)state;
    allocations_left = 0;
    sink = malloc(100);
    allocations_left = -1;
    assert_int_equal(allocations_refused, before + 1);
    free(sink);
}

#define WAITERS 3

static void count_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    __atomic_add_fetch((volatile ULONG *)context, 1, __ATOMIC_RELEASE);
}

/*
 * A processor whose thread could not be created when its DPC was queued: the others, which wait for it at
 * DISPATCH_LEVEL, create it when the host has memory again. No DPC may have been queued to another processor before.
 */
static void meet_with_heap(PKDPC dpc, PVOID context, PVOID call, PVOID barrier)
{
    (void)dpc;
    allocations_left = -1;
    if (KeSignalCallDpcSynchronize(barrier)) {
        __atomic_add_fetch((volatile ULONG *)context, 1, __ATOMIC_RELAXED);
    }
    KeSignalCallDpcDone(call);
}

static void test_generic_call(void **state)
{
    volatile ULONG last = 0;
    (void)state;
    allocations_left = 0;
    KeGenericCallDpc(meet_with_heap, (PVOID)(ULONG_PTR)&last);
    allocations_left = -1;
    assert_int_equal(last, 1);
}

/* The machine starts its own threads, for the clock and for DPCs, when they are first needed. */
static void start_machine(void **state)
{
    volatile ULONG calls = 0;
    KTIMER timer;
    KDPC dpc;
    (void)state;
    KeInitializeTimer(&timer);
    KeSetTimer(&timer, relative(1), NULL);
    KeInitializeDpc(&dpc, count_dpc, (PVOID)(ULONG_PTR)&calls);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeFlushQueuedDpcs();
    assert_int_equal(wait_for(&timer, NULL), STATUS_SUCCESS);
    assert_int_equal(calls, 1);
}

static void start_without_heap(waiter *w)
{
    start_waiters(w, WAITERS);
    for (ULONG i = 0; i < WAITERS; i += 1) {
        run_on(&w[i].actor, empty_heap, NULL);
    }
    allocations_refused = 0;
    allocations_left = 0;
}

static void end_without_heap(waiter *w)
{
    allocations_left = -1;
    for (ULONG i = 0; i < WAITERS; i += 1) {
        run_on(&w[i].actor, fill_heap, NULL);
    }
    end_waiters(w, WAITERS);
    assert_int_equal(allocations_refused, 0);
}

/* Every kind of object but a thread, whose creation needs the host. */
static void test_every_kind(void **state)
{
    waiter w[WAITERS];
    (void)state;
    start_without_heap(w);
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        test_object o;
        KEVENT event;
        if (kinds[k].make == make_thread) {
            continue;
        }
        make_object(&kinds[k], &o);
        KeInitializeEvent(&event, NotificationEvent, TRUE);
        w[0].call = (wait_call){.count = 1, .object = {&o}};
        w[1].call = (wait_call){.count = 2, .object = {&o, &event}, .all = TRUE};
        w[2].call = (wait_call){.count = 5, .multiple = TRUE};
        for (ULONG i = 0; i < 5; i += 1) {
            w[2].call.object[i] = &o;
        }
        for (ULONG i = 0; i < WAITERS; i += 1) {
            begin_wait(&w[i]);
        }
        kinds[k].signal(&o);
        for (ULONG i = 0; i < WAITERS; i += 1) {
            check(end_wait(&w[i]) == STATUS_WAIT_0);
            give_back(&kinds[k], &o, &w[i]);
            if (!kinds[k].releases_all && kinds[k].give_back == NULL && i + 1 < WAITERS) {
                kinds[k].signal(&o);
            }
        }
        destroy_object(&kinds[k], &o);
    }
    end_without_heap(w);
}

/* Timeouts, alerts, APCs, suspensions, pulses. */

static void ignore_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void ignore_call(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void test_everything_else(void **state)
{
    waiter w[WAITERS];
    KEVENT events[2];
    KAPC apc;
    (void)state;
    KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&events[1], NotificationEvent, FALSE);
    start_without_heap(w);
    for (ULONG i = 0; i < 50; i += 1) {
        LARGE_INTEGER briefly = relative(MILLISECOND / 10);
        w[0].call = (wait_call){.count = 1, .object = {&events[0]}, .timeout = &briefly};
        run_on(&w[0].actor, perform_wait, &w[0]);
        check(w[0].status == STATUS_TIMEOUT);

        w[0].call = (wait_call){.count = 1, .object = {&events[0]}, .alertable = TRUE, .mode = UserMode};
        begin_wait(&w[0]);
        KeAlertThread(w[0].actor.thread, UserMode);
        check(end_wait(&w[0]) == STATUS_ALERTED);

        begin_wait(&w[0]);
        KeInitializeApc(&apc, w[0].actor.thread, OriginalApcEnvironment, ignore_apc, NULL, ignore_call, UserMode, NULL);
        check(KeInsertQueueApc(&apc, NULL, NULL, 0));
        check(end_wait(&w[0]) == STATUS_USER_APC);

        begin_wait(&w[0]);
        KeSuspendThread(w[0].actor.thread);
        KeSetEvent(&events[0], 0, FALSE);
        KeResumeThread(w[0].actor.thread);
        check(end_wait(&w[0]) == STATUS_SUCCESS);

        w[1].call = (wait_call){.count = 2, .object = {&events[0], &events[1]}, .all = TRUE};
        begin_wait(&w[1]);
        KeSuspendThread(w[1].actor.thread);
        KeSetEvent(&events[1], 0, FALSE);
        KeResumeThread(w[1].actor.thread);
        KePulseEvent(&events[0], 0, FALSE);
        check(end_wait(&w[1]) == STATUS_SUCCESS);
        KeResetEvent(&events[1]);
    }
    end_without_heap(w);
}

/* Queues, registrations and DPCs. */

typedef struct worker {
    PKQUEUE queue;
    volatile ULONG packets;
} worker;

static void take_packets(void *argument)
{
    worker *k = argument;
    for (;;) {
        PLIST_ENTRY entry = KeRemoveQueue(k->queue, UserMode, NULL);
        if (entry == (PLIST_ENTRY)(LONG_PTR)STATUS_ABANDONED) {
            return;
        }
        __atomic_add_fetch(&k->packets, 1, __ATOMIC_RELEASE);
    }
}

static void test_queues(void **state)
{
    static LIST_ENTRY entries[100];
    static KOBJECT_NOTIFICATION notifications[20];
    volatile ULONG calls = 0;
    waiter w[WAITERS];
    worker workers[WAITERS];
    KWAIT_BLOCK block;
    KQUEUE queue;
    KEVENT event;
    KDPC dpc;
    ULONG packets = 0;
    (void)state;
    KeInitializeQueue(&queue, 2);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeDpc(&dpc, count_dpc, (PVOID)(ULONG_PTR)&calls);
    start_without_heap(w);
    for (ULONG i = 0; i < WAITERS; i += 1) {
        workers[i] = (worker){.queue = &queue};
        tell(&w[i].actor, take_packets, &workers[i]);
    }
    for (ULONG i = 0; i < ARRAYSIZE(entries); i += 1) {
        KeInsertQueue(&queue, &entries[i]);
    }
    for (ULONG i = 0; i < ARRAYSIZE(notifications); i += 1) {
        KeRegisterObjectNotification(&event, &queue, &notifications[i]);
    }
    KeRegisterObjectDpc(&event, &dpc, &block);
    KeSetEvent(&event, 0, FALSE);
    while (packets != ARRAYSIZE(entries) + ARRAYSIZE(notifications)) {
        packets = 0;
        for (ULONG i = 0; i < WAITERS; i += 1) {
            packets += __atomic_load_n(&workers[i].packets, __ATOMIC_ACQUIRE);
        }
        pause_briefly();
    }
    await(__atomic_load_n(&calls, __ATOMIC_ACQUIRE) == 1);
    KeRundownQueue(&queue);
    for (ULONG i = 0; i < WAITERS; i += 1) {
        await(is_idle(&w[i].actor));
    }
    end_without_heap(w);
}

/* A thread that is adopted, waits, and ends with a mutant. */

typedef struct newcomer {
    KMUTANT mutant;
    KEVENT event;
} newcomer;

static void *live_and_die(void *argument)
{
    newcomer *n = argument;
    allocations_left = 0;
    KeSetEvent(&n->event, 0, FALSE);
    check(NT_SUCCESS(wait_for(&n->mutant, NULL)));
    return NULL;
}

static void test_adoption(void **state)
{
    newcomer n;
    (void)state;
    KeInitializeMutant(&n.mutant, FALSE);
    KeInitializeEvent(&n.event, SynchronizationEvent, FALSE);
    allocations_refused = 0;
    for (ULONG i = 0; i < 20; i += 1) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, live_and_die, &n) == 0);
        check(wait_for(&n.event, NULL) == STATUS_SUCCESS);
        check(pthread_join(thread, NULL) == 0);
        assert_int_equal(KeReadStateMutant(&n.mutant), 1);
        assert_true(n.mutant.Abandoned);
    }
    assert_int_equal(allocations_refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_self),       WATCHED(test_generic_call),    WATCHED(start_machine),
        WATCHED(test_every_kind), WATCHED(test_everything_else), WATCHED(test_queues),
        WATCHED(test_adoption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
