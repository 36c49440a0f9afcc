/* Waiting without a thread: a packet for a queue, or a DPC. */
#include "kinds.h"

static BOOLEAN is_mutant(const kind *k)
{
    return k->make == make_mutant || k->make == make_mutex;
}

static PLIST_ENTRY take(PKQUEUE queue)
{
    return KeRemoveQueue(queue, KernelMode, NO_TIME);
}

static PLIST_ENTRY nothing(void)
{
    return (PLIST_ENTRY)(LONG_PTR)STATUS_TIMEOUT;
}

static NTSTATUS register_for(const test_object *o, PKQUEUE queue, PKOBJECT_NOTIFICATION notification)
{
    memset(notification, 0xdd, sizeof(*notification));
    return KeRegisterObjectNotification(waitable(o), queue, notification);
}

/* Every kind, signaled before the registration or after it: consumed as a wait would, one packet, and only once. */
static void test_packet(void **state)
{
    (void)state;
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        for (ULONG before = 0; before < 2; before += 1) {
            KOBJECT_NOTIFICATION notification;
            KQUEUE queue;
            test_object o;
            if (is_mutant(&kinds[k])) {
                continue;
            }
            print_message("# %s, signaled %s\n", kinds[k].name, before ? "before" : "after");
            KeInitializeQueue(&queue, 1);
            make_object(&kinds[k], &o);
            if (before) {
                kinds[k].signal(&o);
                assert_int_equal(register_for(&o, &queue, &notification), STATUS_SUCCESS);
            } else {
                assert_int_equal(register_for(&o, &queue, &notification), STATUS_PENDING);
                assert_int_equal(notification.WaitBlock.WaitType, WaitNotification);
                assert_int_equal(notification.WaitBlock.BlockState, WaitBlockActive);
                assert_ptr_equal(notification.WaitBlock.NotificationQueue, &queue);
                assert_int_equal(KeReadStateQueue(&queue), 0);
                kinds[k].signal(&o);
            }
            assert_true(has_no_waiters(waitable(&o)));
            assert_int_equal(state_of(waitable(&o)), kinds[k].taken);
            assert_int_equal(KeReadStateQueue(&queue), 1);
            assert_ptr_equal(take(&queue), &notification.QueueListEntry);
            assert_ptr_equal(take(&queue), nothing());
            KeRundownQueue(&queue);
            destroy_object(&kinds[k], &o);
        }
    }
}

/* Once: a second signal stays with the object. Registered again, it reports another one. */
static void test_once(void **state)
{
    KOBJECT_NOTIFICATION notification;
    KQUEUE queue;
    KEVENT event;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(KeRegisterObjectNotification(&event, &queue, &notification), STATUS_PENDING);
        KeSetEvent(&event, 0, FALSE);
        KeSetEvent(&event, 0, FALSE);
        assert_int_equal(KeReadStateEvent(&event), 1);
        assert_ptr_equal(take(&queue), &notification.QueueListEntry);
        assert_ptr_equal(take(&queue), nothing());
        KeResetEvent(&event);
    }
    KeRundownQueue(&queue);
}

static void test_mutants_are_refused(void **state)
{
    KOBJECT_NOTIFICATION notification;
    KWAIT_BLOCK block;
    KQUEUE queue;
    KDPC dpc;
    KMUTANT mutant;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInitializeMutant(&mutant, FALSE);
    assert_int_equal(KeRegisterObjectNotification(&mutant, &queue, &notification), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(KeRegisterObjectDpc(&mutant, &dpc, &block), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(KeReadStateMutant(&mutant), 1);
}

/* A thread that removes from the queue gets the packet in the signal itself. */

typedef struct remover {
    actor actor;
    PKQUEUE queue;
    PLIST_ENTRY taken;
} remover;

static void perform_remove(void *argument)
{
    remover *r = argument;
    r->taken = KeRemoveQueue(r->queue, UserMode, NULL);
}

static void test_second_order_wait(void **state)
{
    KOBJECT_NOTIFICATION notification;
    KQUEUE queue;
    KEVENT event;
    remover r;
    (void)state;
    memset(&r, 0, sizeof(r));
    r.queue = &queue;
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    start_actor(&r.actor);
    assert_int_equal(KeRegisterObjectNotification(&event, &queue, &notification), STATUS_PENDING);
    tell(&r.actor, perform_remove, &r);
    await(is_committed(r.actor.thread));
    KeSetEvent(&event, 0, FALSE);
    assert_false(is_committed(r.actor.thread));
    await(is_idle(&r.actor));
    assert_ptr_equal(r.taken, &notification.QueueListEntry);
    end_actor(&r.actor);
}

/* Threads and registrations share the object in the order of their arrival. */
static void test_in_line_with_threads(void **state)
{
    KOBJECT_NOTIFICATION notifications[2];
    KQUEUE queue;
    KEVENT event;
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeRegisterObjectNotification(&event, &queue, &notifications[0]);
    begin_wait_for(&w, &event);
    KeRegisterObjectNotification(&event, &queue, &notifications[1]);
    KeSetEvent(&event, 0, FALSE);
    assert_ptr_equal(take(&queue), &notifications[0].QueueListEntry);
    assert_true(still_waits(&w));
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    assert_ptr_equal(take(&queue), nothing());
    KeSetEvent(&event, 0, FALSE);
    assert_ptr_equal(take(&queue), &notifications[1].QueueListEntry);

    /* One signal for all of them. */
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeRegisterObjectNotification(&event, &queue, &notifications[0]);
    begin_wait_for(&w, &event);
    KeRegisterObjectNotification(&event, &queue, &notifications[1]);
    KePulseEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    assert_int_equal(KeReadStateQueue(&queue), 2);
    KeRundownQueue(&queue);
    end_waiters(&w, 1);
}

static void test_cancel(void **state)
{
    KOBJECT_NOTIFICATION notification;
    KQUEUE queue;
    KEVENT event;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG remove = 0; remove < 2; remove += 1) {
        /* Before the signal. */
        KeRegisterObjectNotification(&event, &queue, &notification);
        assert_int_equal(KeCancelObjectNotification(&notification, (BOOLEAN)remove), NotificationCancelled);
        assert_int_equal(notification.WaitBlock.BlockState, WaitBlockInactive);
        assert_true(has_no_waiters(&event));
        KeSetEvent(&event, 0, FALSE);
        assert_int_equal(KeReadStateEvent(&event), 1);
        assert_int_equal(KeReadStateQueue(&queue), 0);

        /* After it, with the packet in the queue. */
        assert_int_equal(KeRegisterObjectNotification(&event, &queue, &notification), STATUS_SUCCESS);
        assert_int_equal(KeCancelObjectNotification(&notification, (BOOLEAN)remove),
                         remove ? NotificationRemovedFromQueue : NotificationSignaled);
        assert_int_equal(KeReadStateEvent(&event), 0);
        assert_int_equal(KeReadStateQueue(&queue), !remove);
        assert_ptr_equal(take(&queue), remove ? nothing() : &notification.QueueListEntry);

        /* After the packet was removed. */
        assert_int_equal(KeCancelObjectNotification(&notification, (BOOLEAN)remove), NotificationSignaled);
    }
    KeRundownQueue(&queue);
}

/* Out of the middle of the queue. */
static void test_remove_packet_between_others(void **state)
{
    KOBJECT_NOTIFICATION notifications[3];
    KQUEUE queue;
    KEVENT event;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(KeRegisterObjectNotification(&event, &queue, &notifications[i]), STATUS_SUCCESS);
    }
    assert_int_equal(KeCancelObjectNotification(&notifications[1], TRUE), NotificationRemovedFromQueue);
    assert_int_equal(KeReadStateQueue(&queue), 2);
    assert_ptr_equal(take(&queue), &notifications[0].QueueListEntry);
    assert_ptr_equal(take(&queue), &notifications[2].QueueListEntry);
    assert_ptr_equal(take(&queue), nothing());
    KeRundownQueue(&queue);
}

/* DPCs. */

typedef struct dpc_run {
    volatile ULONG calls;
    PVOID argument1, argument2;
    KIRQL irql;
    ULONG processor;
} dpc_run;

static void note_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    dpc_run *run = context;
    (void)dpc;
    run->argument1 = argument1;
    run->argument2 = argument2;
    run->irql = KeGetCurrentIrql();
    run->processor = KeGetCurrentProcessorNumber();
    __atomic_add_fetch(&run->calls, 1, __ATOMIC_RELEASE);
}

static void test_dpc(void **state)
{
    (void)state;
    for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
        for (ULONG before = 0; before < 2; before += 1) {
            KWAIT_BLOCK block;
            KDPC dpc;
            dpc_run run = {.calls = 0};
            test_object o;
            if (is_mutant(&kinds[k])) {
                continue;
            }
            print_message("# %s, signaled %s\n", kinds[k].name, before ? "before" : "after");
            KeInitializeDpc(&dpc, note_dpc, &run);
            make_object(&kinds[k], &o);
            if (before) {
                kinds[k].signal(&o);
                assert_int_equal(KeRegisterObjectDpc(waitable(&o), &dpc, &block), STATUS_SUCCESS);
            } else {
                assert_int_equal(KeRegisterObjectDpc(waitable(&o), &dpc, &block), STATUS_PENDING);
                assert_int_equal(block.WaitType, WaitDpc);
                assert_int_equal(block.BlockState, WaitBlockActive);
                assert_ptr_equal(block.Dpc, &dpc);
                kinds[k].signal(&o);
            }
            KeFlushQueuedDpcs();
            assert_int_equal(__atomic_load_n(&run.calls, __ATOMIC_ACQUIRE), 1);
            assert_int_equal(run.irql, DISPATCH_LEVEL);
            assert_int_equal(state_of(waitable(&o)), kinds[k].taken);
            assert_true(has_no_waiters(waitable(&o)));
            assert_false(KeCancelObjectDpc(&block));
            destroy_object(&kinds[k], &o);
        }
    }
}

/* Queued on the processor that signals: below DISPATCH_LEVEL it has run when the signal returns, above it waits. */
static void test_dpc_runs_on_the_signaling_processor(void **state)
{
    KWAIT_BLOCK block;
    KDPC dpc;
    dpc_run run = {.calls = 0};
    KEVENT event;
    KIRQL irql;
    (void)state;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, note_dpc, &run);
    KeRegisterObjectDpc(&event, &dpc, &block);
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(run.calls, 1);
    assert_int_equal(KeReadStateEvent(&event), 0);

    KeRegisterObjectDpc(&event, &dpc, &block);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    ULONG processor = KeGetCurrentProcessorNumber();
    KeSetEvent(&event, 0, FALSE);
    ULONG calls_at_dispatch_level = run.calls;
    KeLowerIrql(irql);
    assert_int_equal(calls_at_dispatch_level, 1);
    assert_int_equal(run.calls, 2);
    assert_int_equal(run.processor, processor);
}

static void test_cancel_dpc(void **state)
{
    KWAIT_BLOCK block;
    KDPC dpc;
    dpc_run run = {.calls = 0};
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, note_dpc, &run);
    KeRegisterObjectDpc(&event, &dpc, &block);
    assert_true(KeCancelObjectDpc(&block));
    assert_false(KeCancelObjectDpc(&block));
    assert_true(has_no_waiters(&event));
    KeSetEvent(&event, 0, FALSE);
    KeFlushQueuedDpcs();
    assert_int_equal(run.calls, 0);
    assert_int_equal(KeReadStateEvent(&event), 1);
}

/* Signals against cancellations, with real threads: a packet arrives exactly if it was not cancelled. */

typedef struct signaler {
    actor actor;
    PKEVENT event;
} signaler;

static void perform_set(void *argument)
{
    signaler *s = argument;
    KeSetEvent(s->event, 0, FALSE);
}

static void test_cancel_against_signal(void **state)
{
    ULONG rounds = (ULONG)test_rounds(1000);
    ULONG results[3] = {0};
    signaler s;
    KQUEUE queue;
    KEVENT event;
    (void)state;
    memset(&s, 0, sizeof(s));
    s.event = &event;
    start_actor(&s.actor);
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < rounds; i += 1) {
        PKOBJECT_NOTIFICATION notification = malloc(sizeof(*notification));
        assert_non_null(notification);
        assert_int_equal(KeRegisterObjectNotification(&event, &queue, notification), STATUS_PENDING);
        tell(&s.actor, perform_set, &s);
        KeStallExecutionProcessor(i % 20);
        KNOTIFICATION_CANCEL_RESULT result = KeCancelObjectNotification(notification, i % 2 != 0);
        results[result] += 1;
        if (result == NotificationSignaled) {
            assert_ptr_equal(take(&queue), &notification->QueueListEntry);
        } else {
            assert_ptr_equal(take(&queue), nothing());
        }
        free(notification);
        await(is_idle(&s.actor));
        assert_int_equal(KeReadStateEvent(&event), result == NotificationCancelled);
        KeResetEvent(&event);
    }
    print_message("# cancelled %u, signaled %u, removed %u\n", results[0], results[1], results[2]);
    end_actor(&s.actor);
    KeRundownQueue(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_packet),
        WATCHED(test_once),
        WATCHED(test_mutants_are_refused),
        WATCHED(test_second_order_wait),
        WATCHED(test_in_line_with_threads),
        WATCHED(test_cancel),
        WATCHED(test_remove_packet_between_others),
        WATCHED(test_dpc),
        WATCHED(test_dpc_runs_on_the_signaling_processor),
        WATCHED(test_cancel_dpc),
        WATCHED(test_cancel_against_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
