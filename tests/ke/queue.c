/* KQUEUE: entries first in first out, threads last in first out, and a limit on how many run at a time. */
#include "waittest.h"

#include <sys/wait.h>
#include <unistd.h>

typedef struct entry {
    LIST_ENTRY link;
    ULONG number;
} entry;

static entry entries[8];

/* An actor that removes entries from a queue. */
typedef struct remover {
    actor actor;
    PKQUEUE queue;
    PLARGE_INTEGER timeout;
    PLIST_ENTRY taken; /* or a status */
    PKEVENT event;
} remover;

static void perform_remove(void *argument)
{
    remover *r = argument;
    r->taken = KeRemoveQueue(r->queue, KernelMode, r->timeout);
}

static void start_removers(remover *r, ULONG count, PKQUEUE queue)
{
    for (ULONG i = 0; i < count; i += 1) {
        memset(&r[i], 0, sizeof(r[i]));
        r[i].queue = queue;
        start_actor(&r[i].actor);
    }
    for (ULONG i = 0; i < ARRAYSIZE(entries); i += 1) {
        entries[i].number = i;
    }
}

static void end_removers(remover *r, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&r[i].actor);
    }
}

static void begin_remove(remover *r)
{
    tell(&r->actor, perform_remove, r);
    await(is_committed(r->actor.thread));
}

static PLIST_ENTRY end_remove(remover *r)
{
    await(is_idle(&r->actor));
    return r->taken;
}

static PLIST_ENTRY remove_now(remover *r)
{
    tell(&r->actor, perform_remove, r);
    return end_remove(r);
}

static BOOLEAN still_removes(remover *r)
{
    return is_committed(r->actor.thread);
}

static PLIST_ENTRY link_of(ULONG number)
{
    return &entries[number].link;
}

static PLIST_ENTRY as_entry(NTSTATUS status)
{
    return (PLIST_ENTRY)(LONG_PTR)status;
}

/* The thread of the test belongs to a queue after its first remove; this takes it out again. */
static void run_down(PKQUEUE queue)
{
    KeRundownQueue(queue);
    assert_null(KeGetCurrentThread()->Queue);
}

static void test_entries_are_first_in_first_out(void **state)
{
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    assert_int_equal(queue.MaximumCount, 1);
    for (ULONG i = 0; i < 4; i += 1) {
        assert_int_equal(KeReadStateQueue(&queue), i);
        assert_int_equal(KeInsertQueue(&queue, link_of(i)), i);
    }
    for (ULONG i = 0; i < 4; i += 1) {
        assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), link_of(i));
        assert_int_equal(KeReadStateQueue(&queue), 3 - i);
        assert_int_equal(queue.CurrentCount, 1);
    }
    run_down(&queue);
}

/* A thread that returns for an entry that is queued begins no wait; above the limit it finds none. */
static void test_next_entry_without_a_wait(void **state)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    PKTHREAD thread = KeGetCurrentThread();
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    for (ULONG i = 0; i < 3; i += 1) {
        KeInsertQueue(&queue, link_of(i));
    }
    thread->WakeWord = KI_WOKEN; /* a wait that begins takes this back */
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), link_of(0));
    assert_int_not_equal(thread->WakeWord, KI_WOKEN);
    thread->WakeWord = KI_WOKEN;
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), link_of(1));
    assert_int_equal(thread->WakeWord, KI_WOKEN);
    assert_null(link_of(1)->Flink);
    assert_int_equal(queue.CurrentCount, 1);
    queue.CurrentCount = 2; /* as if another thread had returned from its wait */
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, &now), as_entry(STATUS_TIMEOUT));
    assert_int_equal(queue.CurrentCount, 2);
    queue.CurrentCount = 1;
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, &now), link_of(2));
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, &now), as_entry(STATUS_TIMEOUT));
    assert_int_equal(queue.CurrentCount, 1);
    KeInsertQueue(&queue, link_of(3));
    assert_ptr_equal(KeRundownQueue(&queue), link_of(3));
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, &now), as_entry(STATUS_ABANDONED));
    assert_null(thread->Queue);
}

static void test_insert_at_the_head(void **state)
{
    static const ULONG order[] = {3, 2, 0, 1};
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInsertQueue(&queue, link_of(0));
    KeInsertQueue(&queue, link_of(1));
    assert_int_equal(KeInsertHeadQueue(&queue, link_of(2)), 2);
    assert_int_equal(KeInsertHeadQueue(&queue, link_of(3)), 3);
    for (ULONG i = 0; i < ARRAYSIZE(order); i += 1) {
        assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), link_of(order[i]));
    }
    run_down(&queue);
}

static void test_default_limit_is_the_number_of_processors(void **state)
{
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 0);
    assert_int_equal(queue.MaximumCount, KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
}

/* The thread that began to wait last gets the entry, and an entry that is handed off was never in the queue. */
static void test_threads_are_last_in_first_out(void **state)
{
    remover r[3];
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 3);
    start_removers(r, 3, &queue);
    for (ULONG i = 0; i < 3; i += 1) {
        begin_remove(&r[i]);
    }
    assert_int_equal(queue.CurrentCount, 0);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(KeInsertQueue(&queue, link_of(i)), 0);
        assert_int_equal(KeReadStateQueue(&queue), 0);
        assert_ptr_equal(end_remove(&r[2 - i]), link_of(i));
        assert_int_equal(queue.CurrentCount, i + 1);
    }
    end_removers(r, 3);
    assert_int_equal(queue.CurrentCount, 0);
    assert_true(IsListEmpty(&queue.ThreadListHead));
}

/* Last in, first out: a thread that returns overtakes the ones that wait. */
static void test_busy_thread_is_preferred(void **state)
{
    remover r[2];
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 2);
    start_removers(r, 2, &queue);
    begin_remove(&r[0]);
    begin_remove(&r[1]);
    for (ULONG i = 0; i < 5; i += 1) {
        KeInsertQueue(&queue, link_of(i));
        assert_ptr_equal(end_remove(&r[1]), link_of(i));
        begin_remove(&r[1]);
        assert_true(still_removes(&r[0]));
    }
    run_down(&queue);
    assert_ptr_equal(end_remove(&r[0]), as_entry(STATUS_ABANDONED));
    end_removers(r, 2);
}

static void wait_for_event(void *argument)
{
    remover *r = argument;
    check(wait_for(r->event, NULL) == STATUS_SUCCESS);
}

/*
 * With a limit of one: while the thread that has an entry runs, the next entry stays queued although another
 * thread waits for it. When the first one blocks, on anything, the other continues; the first returns above the limit.
 */
static void test_concurrency_limit(void **state)
{
    remover r[2];
    KQUEUE queue;
    KEVENT event;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    start_removers(r, 2, &queue);
    r[0].event = &event;
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(remove_now(&r[0]), link_of(0));
    begin_remove(&r[1]);
    assert_int_equal(queue.CurrentCount, 1);

    assert_int_equal(KeInsertQueue(&queue, link_of(1)), 0);
    assert_int_equal(KeInsertQueue(&queue, link_of(2)), 1);
    assert_true(still_removes(&r[1]));
    assert_int_equal(KeReadStateQueue(&queue), 2);

    tell(&r[0].actor, wait_for_event, &r[0]);
    assert_ptr_equal(end_remove(&r[1]), link_of(1));
    await(is_committed(r[0].actor.thread));
    assert_int_equal(queue.CurrentCount, 1);
    assert_int_equal(KeReadStateQueue(&queue), 1);

    KeSetEvent(&event, 0, FALSE);
    await(is_idle(&r[0].actor));
    assert_int_equal(queue.CurrentCount, 2);

    /* Two run where one may: the first that removes has to wait although an entry is queued. */
    begin_remove(&r[0]);
    assert_int_equal(queue.CurrentCount, 1);
    assert_int_equal(KeReadStateQueue(&queue), 1);
    assert_ptr_equal(remove_now(&r[1]), link_of(2));
    assert_int_equal(queue.CurrentCount, 1);
    assert_int_equal(KeReadStateQueue(&queue), 0);

    KeInsertQueue(&queue, link_of(3));
    assert_true(still_removes(&r[0]));
    end_removers(&r[1], 1);
    assert_ptr_equal(end_remove(&r[0]), link_of(3));
    end_removers(r, 1);
    assert_int_equal(queue.CurrentCount, 0);
}

/* A delay, a wait for all and a suspension release the place like any other wait. */

static void delay(void *argument)
{
    LARGE_INTEGER long_time = relative(600 * SECOND);
    (void)argument;
    KeDelayExecutionThread(KernelMode, TRUE, &long_time);
}

static void wait_for_all(void *argument)
{
    remover *r = argument;
    KEVENT other;
    KeInitializeEvent(&other, NotificationEvent, TRUE);
    perform(&(wait_call){.count = 2, .object = {r->event, &other}, .all = TRUE, .alertable = TRUE});
}

static void suspend_self(void *argument)
{
    (void)argument;
    KeSuspendThread(KeGetCurrentThread());
}

static void alert(remover *r)
{
    KeAlertThread(r->actor.thread, KernelMode);
}

static void resume(remover *r)
{
    KeResumeThread(r->actor.thread);
}

static void test_any_wait_gives_the_place_up(void **state)
{
    static const struct {
        void (*block)(void *argument);
        void (*unblock)(remover *r);
    } ways[] = {{delay, alert}, {wait_for_all, alert}, {suspend_self, resume}};
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(ways); i += 1) {
        remover r[2];
        KQUEUE queue;
        KeInitializeQueue(&queue, 1);
        start_removers(r, 2, &queue);
        r[0].event = &event;
        KeInsertQueue(&queue, link_of(0));
        assert_ptr_equal(remove_now(&r[0]), link_of(0));
        begin_remove(&r[1]);
        KeInsertQueue(&queue, link_of(1));
        assert_true(still_removes(&r[1]));
        tell(&r[0].actor, ways[i].block, &r[0]);
        assert_ptr_equal(end_remove(&r[1]), link_of(1));
        await(is_committed(r[0].actor.thread));
        ways[i].unblock(&r[0]);
        await(is_idle(&r[0].actor));
        assert_int_equal(queue.CurrentCount, 2);
        end_removers(r, 2);
        assert_int_equal(queue.CurrentCount, 0);
    }
}

/* The status of a failed remove is returned as a pointer. */
static void test_timeout(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    LARGE_INTEGER point = absolute(MILLISECOND);
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 2);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NO_TIME), as_entry(STATUS_TIMEOUT));
    assert_int_equal(queue.CurrentCount, 1);
    assert_ptr_equal(KeRemoveQueue(&queue, UserMode, &time), as_entry(STATUS_TIMEOUT));
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, &point), as_entry(STATUS_TIMEOUT));
    assert_int_equal(queue.CurrentCount, 1);
    assert_true(has_no_waiters(&queue));
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NO_TIME), link_of(0));
    run_down(&queue);
}

/* The limit also holds for a remove that does not wait. */
static void test_poll_respects_the_limit(void **state)
{
    remover r;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_removers(&r, 1, &queue);
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(remove_now(&r), link_of(0));
    KeInsertQueue(&queue, link_of(1));
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NO_TIME), as_entry(STATUS_TIMEOUT));
    assert_int_equal(KeReadStateQueue(&queue), 1);
    end_removers(&r, 1);
    run_down(&queue);
}

static void test_remove_several(void **state)
{
    PLIST_ENTRY array[4];
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    assert_int_equal(KeRemoveQueueEx(&queue, KernelMode, FALSE, NO_TIME, array, 0), 0);
    assert_int_equal(KeRemoveQueueEx(&queue, KernelMode, FALSE, NO_TIME, array, 4), 1);
    assert_ptr_equal(array[0], as_entry(STATUS_TIMEOUT));
    for (ULONG i = 0; i < 6; i += 1) {
        KeInsertQueue(&queue, link_of(i));
    }
    assert_int_equal(KeRemoveQueueEx(&queue, KernelMode, FALSE, NULL, array, 4), 4);
    for (ULONG i = 0; i < 4; i += 1) {
        assert_ptr_equal(array[i], link_of(i));
    }
    assert_int_equal(KeReadStateQueue(&queue), 2);
    assert_int_equal(KeRemoveQueueEx(&queue, KernelMode, FALSE, NULL, array, 4), 2);
    assert_ptr_equal(array[0], link_of(4));
    assert_ptr_equal(array[1], link_of(5));
    assert_int_equal(KeReadStateQueue(&queue), 0);
    run_down(&queue);
}

static void remove_alertably(void *argument)
{
    remover *r = argument;
    PLIST_ENTRY array[2];
    check(KeRemoveQueueEx(r->queue, UserMode, TRUE, NULL, array, 2) == 1);
    r->taken = array[0];
}

/* For a thread of the queue a queued entry takes precedence over the alert, which stays for the next wait. */
static void test_alertable_remove(void **state)
{
    static const KPROCESSOR_MODE modes[] = {KernelMode, UserMode};
    remover r;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_removers(&r, 1, &queue);
    for (ULONG i = 0; i < ARRAYSIZE(modes); i += 1) {
        for (ULONG before = 0; before < 2; before += 1) {
            if (before) {
                KeInsertQueue(&queue, link_of(0));
                KeAlertThread(r.actor.thread, modes[i]);
            }
            tell(&r.actor, remove_alertably, &r);
            if (!before) {
                await(is_committed(r.actor.thread));
                KeAlertThread(r.actor.thread, modes[i]);
            }
            if (before) {
                assert_ptr_equal(end_remove(&r), link_of(0));
                tell(&r.actor, remove_alertably, &r);
            }
            assert_ptr_equal(end_remove(&r), as_entry(STATUS_ALERTED));
            assert_int_equal(KeReadStateQueue(&queue), 0);
            assert_int_equal(queue.CurrentCount, 1);
        }
    }
    end_removers(&r, 1);
}

/* Waiting for the queue itself leaves its entries alone, and does not make the thread one of its removers. */
/* An entry inserted by an APC that interrupted a removal is for the interrupted thread; the rest is for others. */

static struct {
    KAPC apc;
    PKQUEUE queue;
    ULONG count;
    BOOLEAN alert;
} inserter;

static VOID insert_in_apc(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)normal;
    (void)context;
    (void)argument1;
    (void)argument2;
    for (ULONG i = 0; i < inserter.count; i += 1) {
        check(KeInsertQueue(inserter.queue, link_of(i)) == (LONG)i);
    }
    if (inserter.alert) {
        KeAlertThread(KeGetCurrentThread(), KernelMode);
    }
}

static void perform_alertable_remove(void *argument)
{
    remover *r = argument;
    check(KeRemoveQueueEx(r->queue, KernelMode, TRUE, NULL, &r->taken, 1) == 1);
}

static void test_inserted_by_an_apc_of_the_remover(void **state)
{
    (void)state;
    for (ULONG count = 1; count <= 2; count += 1) {
        for (ULONG alert = 0; alert < 2; alert += 1) {
            KQUEUE queue;
            remover r[4];
            KeInitializeQueue(&queue, ARRAYSIZE(r));
            start_removers(r, ARRAYSIZE(r), &queue);
            for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
                tell(&r[i].actor, perform_alertable_remove, &r[i]);
                await(is_committed(r[i].actor.thread));
            }
            inserter.queue = &queue;
            inserter.count = count;
            inserter.alert = alert != 0;
            KeInitializeApc(&inserter.apc, r[0].actor.thread, OriginalApcEnvironment, insert_in_apc, NULL, NULL,
                            KernelMode, NULL);
            assert_true(KeInsertQueueApc(&inserter.apc, NULL, NULL, 0));
            PLIST_ENTRY own = end_remove(&r[0]);
            assert_ptr_equal(own, alert ? as_entry(STATUS_ALERTED) : link_of(0));
            /* the newest of the others first */
            ULONG next = alert ? 0 : 1;
            for (ULONG i = ARRAYSIZE(r) - 1; i > 0; i -= 1) {
                if (next < count) {
                    assert_ptr_equal(end_remove(&r[i]), link_of(next));
                    next += 1;
                } else {
                    assert_true(still_removes(&r[i]));
                }
            }
            assert_int_equal(KeReadStateQueue(&queue), 0);
            assert_int_equal(queue.CurrentCount, alert ? count + 1 : count);
            KeRundownQueue(&queue);
            for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
                end_remove(&r[i]);
            }
            end_removers(r, ARRAYSIZE(r));
        }
    }
}

static void test_plain_waits_do_not_consume(void **state)
{
    waiter w[2];
    remover r;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_waiters(w, 2);
    start_removers(&r, 1, &queue);
    begin_wait_for(&w[0], &queue);
    begin_wait_for(&w[1], &queue);
    KeInsertQueue(&queue, link_of(0));
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateQueue(&queue), 1);
    assert_int_equal(queue.CurrentCount, 0);
    assert_int_equal(wait_for(&queue, NO_TIME), STATUS_WAIT_0);
    assert_int_equal(KeReadStateQueue(&queue), 1);
    assert_null(KeGetCurrentThread()->Queue);
    assert_ptr_equal(remove_now(&r), link_of(0));
    assert_int_equal(wait_for(&queue, NO_TIME), STATUS_TIMEOUT);
    end_removers(&r, 1);
    end_waiters(w, 2);
}

/* An entry is handed to a removing thread; threads that only wait for the queue do not see it. */
static void test_remover_comes_before_plain_waiters(void **state)
{
    waiter w;
    remover r;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_waiters(&w, 1);
    start_removers(&r, 1, &queue);
    begin_wait_for(&w, &queue);
    begin_remove(&r);
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(end_remove(&r), link_of(0));
    assert_true(still_waits(&w));
    KeInsertQueue(&queue, link_of(1));
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_ptr_equal(remove_now(&r), link_of(1));
    end_removers(&r, 1);
    end_waiters(&w, 1);
}

/* Rundown: removers get STATUS_ABANDONED, plain waiters success, the caller the entries, linked without a head. */
static void test_rundown(void **state)
{
    remover r[3];
    waiter w;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_waiters(&w, 1);
    start_removers(r, 3, &queue);
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(remove_now(&r[0]), link_of(0));
    begin_remove(&r[1]);
    begin_remove(&r[2]);
    begin_wait_for(&w, &queue);
    assert_null(KeRundownQueue(&queue));
    assert_ptr_equal(end_remove(&r[1]), as_entry(STATUS_ABANDONED));
    assert_ptr_equal(end_remove(&r[2]), as_entry(STATUS_ABANDONED));
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_true(queue.Header.Abandoned);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_null(r[i].actor.thread->Queue);
    }
    assert_ptr_equal(remove_now(&r[0]), as_entry(STATUS_ABANDONED));
    assert_null(r[0].actor.thread->Queue);
    end_removers(r, 3);
    end_waiters(&w, 1);
}

static void test_rundown_returns_the_entries(void **state)
{
    (void)state;
    for (ULONG count = 1; count <= 3; count += 1) {
        KQUEUE queue;
        KeInitializeQueue(&queue, 1);
        for (ULONG i = 0; i < count; i += 1) {
            KeInsertQueue(&queue, link_of(i));
        }
        PLIST_ENTRY first = KeRundownQueue(&queue);
        PLIST_ENTRY link = first;
        for (ULONG i = 0; i < count; i += 1) {
            assert_ptr_equal(link, link_of(i));
            assert_ptr_equal(link->Flink->Blink, link);
            link = link->Flink;
        }
        assert_ptr_equal(link, first);
        assert_int_equal(KeReadStateQueue(&queue), 0);
    }
}

/* When the rundown has returned the memory of the queue is the caller's, whatever its removers still do. */
static void test_queue_is_gone_after_rundown(void **state)
{
    (void)state;
    for (ULONG round = 0; round < 100; round += 1) {
        remover r[2];
        KEVENT event;
        PKQUEUE queue = malloc(sizeof(*queue));
        assert_non_null(queue);
        KeInitializeEvent(&event, NotificationEvent, FALSE);
        KeInitializeQueue(queue, 2);
        start_removers(r, 2, queue);
        r[1].event = &event;
        begin_remove(&r[0]);
        KeInsertQueue(queue, link_of(0));
        assert_ptr_equal(end_remove(&r[0]), link_of(0));
        begin_remove(&r[0]);
        begin_remove(&r[1]);
        KeInsertQueue(queue, link_of(1));
        assert_ptr_equal(end_remove(&r[1]), link_of(1));
        tell(&r[1].actor, wait_for_event, &r[1]);
        await(is_committed(r[1].actor.thread));
        KeRundownQueue(queue);
        memset(queue, 0xdd, sizeof(*queue));
        free(queue);
        KeSetEvent(&event, 0, FALSE);
        assert_ptr_equal(end_remove(&r[0]), as_entry(STATUS_ABANDONED));
        end_removers(r, 2);
    }
}

/* A thread belongs to one queue: removing from another one leaves the first, which may then let another thread run. */
static void test_changing_queues(void **state)
{
    remover r[2];
    KQUEUE first, second;
    (void)state;
    KeInitializeQueue(&first, 1);
    KeInitializeQueue(&second, 1);
    start_removers(r, 2, &first);
    KeInsertQueue(&first, link_of(0));
    assert_ptr_equal(remove_now(&r[0]), link_of(0));
    assert_ptr_equal(r[0].actor.thread->Queue, &first);
    begin_remove(&r[1]);
    KeInsertQueue(&first, link_of(1));
    assert_true(still_removes(&r[1]));

    r[0].queue = &second;
    begin_remove(&r[0]);
    assert_ptr_equal(end_remove(&r[1]), link_of(1));
    assert_int_equal(first.CurrentCount, 1);
    assert_int_equal(second.CurrentCount, 0);
    KeInsertQueue(&second, link_of(2));
    assert_ptr_equal(end_remove(&r[0]), link_of(2));
    assert_ptr_equal(r[0].actor.thread->Queue, &second);
    assert_int_equal(first.CurrentCount, 1);
    assert_int_equal(second.CurrentCount, 1);
    end_removers(r, 2);
    assert_int_equal(first.CurrentCount, 0);
    assert_int_equal(second.CurrentCount, 0);
    assert_true(IsListEmpty(&first.ThreadListHead));
    assert_true(IsListEmpty(&second.ThreadListHead));
}

/* A thread that ends frees its place for the next. */
static void test_end_of_a_thread(void **state)
{
    remover r[2];
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_removers(r, 2, &queue);
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(remove_now(&r[0]), link_of(0));
    begin_remove(&r[1]);
    KeInsertQueue(&queue, link_of(1));
    assert_true(still_removes(&r[1]));
    end_removers(r, 1);
    assert_ptr_equal(end_remove(&r[1]), link_of(1));
    assert_int_equal(queue.CurrentCount, 1);
    end_removers(&r[1], 1);
    assert_int_equal(queue.CurrentCount, 0);
}

/* The waiting thread shows why it waits. */
static void test_wait_reason(void **state)
{
    remover r;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    start_removers(&r, 1, &queue);
    begin_remove(&r);
    assert_int_equal(r.actor.thread->WaitReason, WrQueue);
    assert_int_equal(r.actor.thread->WaitBlockCount, 1);
    assert_int_equal(r.actor.thread->WaitBlockList->WaitType, WaitDequeue);
    assert_ptr_equal(r.actor.thread->WaitBlockList->Object, &queue);
    KeInsertQueue(&queue, link_of(0));
    assert_ptr_equal(end_remove(&r), link_of(0));
    end_removers(&r, 1);
}

/* Whatever threads do, an entry reaches exactly one of them, and never more run than may. */

#define WORKERS 4
#define LIMIT 2

typedef struct work {
    LIST_ENTRY link;
    volatile ULONG taken;
} work;

typedef struct pool {
    KQUEUE queue;
    KEVENT tick;
    volatile ULONG running;
    volatile ULONG most;
    volatile ULONG done;
    volatile ULONG last;
} pool;

static void work_until_rundown(void *argument)
{
    pool *p = argument;
    for (;;) {
        PLIST_ENTRY link = KeRemoveQueue(&p->queue, UserMode, NULL);
        if (link == as_entry(STATUS_ABANDONED)) {
            return;
        }
        ULONG running = __atomic_add_fetch(&p->running, 1, __ATOMIC_SEQ_CST);
        ULONG most = __atomic_load_n(&p->most, __ATOMIC_RELAXED);
        while (running > most && !__atomic_compare_exchange_n(&p->most, &most, running, FALSE, __ATOMIC_RELAXED,
                                                              __ATOMIC_RELAXED)) {
        }
        __atomic_add_fetch(&CONTAINING_RECORD(link, work, link)->taken, 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&p->running, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&p->done, 1, __ATOMIC_RELEASE);
    }
}

static void test_pool_of_workers(void **state)
{
    ULONG count = (ULONG)test_rounds(20000);
    work *works = calloc(count, sizeof(*works));
    actor workers[WORKERS];
    pool p = {.most = 0};
    (void)state;
    assert_non_null(works);
    KeInitializeQueue(&p.queue, LIMIT);
    memset(workers, 0, sizeof(workers));
    for (ULONG i = 0; i < WORKERS; i += 1) {
        start_actor(&workers[i]);
        tell(&workers[i], work_until_rundown, &p);
    }
    for (ULONG i = 0; i < count; i += 1) {
        if (i % 3 == 0) {
            KeInsertHeadQueue(&p.queue, &works[i].link);
        } else {
            KeInsertQueue(&p.queue, &works[i].link);
        }
    }
    await(__atomic_load_n(&p.done, __ATOMIC_ACQUIRE) == count);
    assert_null(KeRundownQueue(&p.queue));
    for (ULONG i = 0; i < WORKERS; i += 1) {
        end_actor(&workers[i]);
    }
    for (ULONG i = 0; i < count; i += 1) {
        assert_int_equal(works[i].taken, 1);
    }
    assert_true(p.most >= 1);
    assert_true(p.most <= LIMIT);
    free(works);
}

/* A thread that finds many entries at first checks later the next time, and sooner again after a single one. */
static void test_looks_follow_the_traffic(void **state)
{
    KQUEUE queue;
    PKTHREAD thread = KeGetCurrentThread();
    ULONG longest = 0;
    (void)state;
    KeInitializeQueue(&queue, 1);
    for (ULONG i = 0; i < 3; i += 1) {
        KeInsertQueue(&queue, &entries[i].link);
    }
    for (ULONG i = 0; i < 8; i += 1) {
        ULONG gap = thread->QueueGap;
        BOOLEAN found = KiSpinForEntry(&queue, thread); /* FALSE: there is no other processor, or none to spin on */
        assert_true(found ? thread->QueueGap > gap || thread->QueueGap == longest : thread->QueueGap == gap / 2);
        longest = thread->QueueGap > longest ? thread->QueueGap : longest;
    }
    assert_in_range(longest, 0, 64); /* pauses */
    KiTakeQueuedEntry(&queue);
    KiTakeQueuedEntry(&queue);
    for (ULONG i = 0; i < 8; i += 1) {
        ULONG gap = thread->QueueGap;
        KiSpinForEntry(&queue, thread);
        assert_int_equal(thread->QueueGap, gap / 2);
    }
    assert_int_equal(thread->QueueGap, 0);
    KeRundownQueue(&queue);
}

/* Looks at the next entry in the queue's lock, and leaves it there or not. */
typedef struct chooser {
    BOOLEAN stays;
    ULONG calls;
    PLIST_ENTRY seen;
} chooser;

static BOOLEAN choose(PLIST_ENTRY link, PVOID context)
{
    chooser *c = context;
    c->calls += 1;
    c->seen = link;
    return c->stays;
}

static void test_next_entry_stays(void **state)
{
    KQUEUE queue;
    chooser c = {.stays = TRUE};
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInsertQueue(&queue, &entries[0].link);
    assert_null(KiTakeNextEntry(&queue, choose, &c)); /* the thread does not belong to the queue yet */
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &entries[0].link);
    assert_null(KiTakeNextEntry(&queue, choose, &c)); /* empty */
    assert_int_equal(c.calls, 0);
    for (ULONG i = 0; i < 3; i += 1) {
        KeInsertQueue(&queue, &entries[i].link);
    }
    for (ULONG i = 0; i < 4; i += 1) {
        assert_ptr_equal(KiTakeNextEntry(&queue, choose, &c), &entries[i % 3].link);
        assert_ptr_equal(c.seen, &entries[i % 3].link);
        assert_non_null(entries[i % 3].link.Flink);
        assert_int_equal(KeReadStateQueue(&queue), 3);
    }
    c.stays = FALSE;
    assert_ptr_equal(KiTakeNextEntry(&queue, choose, &c), &entries[1].link);
    assert_null(entries[1].link.Flink);
    assert_ptr_equal(KiTakeNextEntry(&queue, choose, &c), &entries[2].link);
    c.stays = TRUE;
    assert_ptr_equal(KiTakeNextEntry(&queue, choose, &c), &entries[0].link); /* the only one */
    assert_int_equal(KeReadStateQueue(&queue), 1);
    assert_ptr_equal(queue.EntryListHead.Flink, &entries[0].link);
    assert_ptr_equal(queue.EntryListHead.Blink, &entries[0].link);
    queue.CurrentCount += 2; /* others run above the limit */
    assert_null(KiTakeNextEntry(&queue, choose, &c));
    queue.CurrentCount -= 2;
    assert_ptr_equal(KeRundownQueue(&queue), &entries[0].link);
    assert_null(KiTakeNextEntry(&queue, choose, &c));
}

/* A host on which the thread always runs on the processor of its waker, and that inserts while the thread yields. */
#define EXPECTED 0x80

static struct {
    HAL_DISPATCH real;
    PKTHREAD thread;
    PKQUEUE queue;
    ULONGLONG now, length_of_yield;
    ULONG processor, yields, inserts;
} host;

static BOOLEAN is_own(void)
{
    return KiCurrentThread() == host.thread;
}

static ULONGLONG play_time(VOID)
{
    return is_own() ? host.now : host.real.QueryInterruptTime();
}

static ULONG play_processor(VOID)
{
    return is_own() ? host.processor : host.real.CurrentProcessor();
}

static BOOLEAN play_wait(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    return is_own() ? FALSE : host.real.Wait(address, expected, deadline);
}

static VOID play_yield(VOID)
{
    if (!is_own()) {
        host.real.Yield();
        return;
    }
    host.yields += 1;
    assert_int_equal(host.queue->Header.QueueControlFlags, EXPECTED);
    for (ULONG i = 0; i < host.inserts; i += 1) {
        KeInsertQueue(host.queue, &entries[i].link);
    }
    host.now += host.length_of_yield;
}

static void play_host(PKQUEUE queue)
{
    host.real = HalDispatch;
    host.thread = KeGetCurrentThread();
    host.thread->WakerProcessor = 5;
    host.thread->QueueShortSleeps = 0;
    host.thread->QueueBalance = 0;
    host.queue = queue;
    host.now = 0x1fffffff0; /* the low half wraps soon */
    host.thread->QueueSleepTime = (ULONG)host.now;
    host.processor = 4;
    host.yields = host.inserts = 0;
    HalDispatch.QueryInterruptTime = play_time;
    HalDispatch.CurrentProcessor = play_processor;
    HalDispatch.Wait = play_wait;
    HalDispatch.Yield = play_yield;
}

/* What the removal returns, and whether it has yielded. */
static BOOLEAN remove_yields(PLIST_ENTRY expected)
{
    LARGE_INTEGER soon = {.QuadPart = -1};
    ULONG yields = host.yields;
    host.now += 10;
    assert_ptr_equal(KeRemoveQueue(host.queue, KernelMode, &soon), expected);
    assert_int_equal(host.queue->Header.QueueControlFlags, 0);
    assert_int_equal(host.queue->CurrentCount, 1);
    assert_false(host.thread->QueueExpects);
    return host.yields != yields;
}

/* A thread that has yielded for entries stays in the parent: the child's queue expects none. */
static volatile ULONG yields_long, may_return;

static VOID play_long_yield(VOID)
{
    if (!is_own()) {
        host.real.Yield();
        return;
    }
    __atomic_store_n(&yields_long, 1, __ATOMIC_RELEASE);
    await(__atomic_load_n(&may_return, __ATOMIC_ACQUIRE) != 0);
}

static void expect_entries(void *argument)
{
    remover *r = argument;
    PKTHREAD thread = KiCurrentThread();
    LARGE_INTEGER soon = {.QuadPart = -1};
    KiEnterService(thread);
    KeRemoveQueue(r->queue, KernelMode, NULL);
    play_host(r->queue);
    HalDispatch.Yield = play_long_yield;
    thread->QueueShortSleeps = 16;
    r->taken = KeRemoveQueue(r->queue, KernelMode, &soon);
    HalDispatch = host.real;
    KiExitService(thread);
}

static void test_fork_while_entries_are_expected(void **state)
{
    KQUEUE queue;
    remover r;
    int status;
    (void)state;
    KeInitializeQueue(&queue, 1);
    KeInsertQueue(&queue, &entries[0].link);
    start_removers(&r, 1, &queue);
    tell(&r.actor, expect_entries, &r);
    await(__atomic_load_n(&yields_long, __ATOMIC_ACQUIRE) != 0);
    assert_int_equal(queue.Header.QueueControlFlags, EXPECTED);
    pid_t child = fork();
    if (child == 0) {
        _exit(queue.Header.QueueControlFlags == 0 && queue.CurrentCount == 0 && IsListEmpty(&queue.ThreadListHead) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    __atomic_store_n(&may_return, 1, __ATOMIC_RELEASE);
    assert_int_equal((LONG_PTR)end_remove(&r), STATUS_TIMEOUT);
    assert_int_equal(queue.Header.QueueControlFlags, 0);
    end_removers(&r, 1);
    KeRundownQueue(&queue);
}

static void test_yields_for_entries(void **state)
{
    PLIST_ENTRY none = (PLIST_ENTRY)(LONG_PTR)STATUS_TIMEOUT;
    KQUEUE queue;
    (void)state;
    KeInitializeQueue(&queue, 1);
    play_host(&queue);
    PKTHREAD thread = host.thread;
    KeInsertQueue(&queue, &entries[0].link);
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &entries[0].link);
    KiEnterService(thread);
    for (ULONG i = 1; i < 16; i += 1) {
        assert_false(remove_yields(none));
    }
    host.inserts = 2;
    host.length_of_yield = 70;
    for (LONG gain = 10; gain <= 30; gain += 10) { /* two entries in 7 us: pays */
        assert_true(remove_yields(&entries[0].link));
        assert_false(remove_yields(&entries[1].link));
        assert_int_equal(thread->QueueBalance, gain);
    }
    host.inserts = 0;
    host.length_of_yield = 20;
    assert_true(remove_yields(none));
    assert_int_equal(thread->QueueBalance, 10);
    host.length_of_yield = 40000; /* another program ran, but no entry waited for it */
    thread->QueueBalance = 50;
    assert_true(remove_yields(none));
    assert_int_equal(thread->QueueBalance, 10);
    host.inserts = 1;
    host.length_of_yield = 100; /* one in 10 us does not */
    assert_true(remove_yields(&entries[0].link));
    assert_int_equal(thread->QueueBalance, 10 + 40 - 100);
    for (LONG balance = -46; balance < 0; balance += 4) {
        assert_false(remove_yields(none));
        assert_int_equal(thread->QueueBalance, balance);
    }
    assert_true(remove_yields(&entries[0].link));
    host.length_of_yield = 1000000;
    thread->QueueBalance = 0;
    assert_true(remove_yields(&entries[0].link));
    assert_int_equal(thread->QueueBalance, -40000); /* has a limit */
    thread->QueueBalance = 39000;
    thread->QueueSleepTime = (ULONG)host.now;
    host.inserts = ARRAYSIZE(entries);
    host.length_of_yield = 0;
    for (ULONG i = 0; i < 5; i += 1) { /* upwards too */
        assert_true(remove_yields(&entries[0].link));
        for (ULONG j = 1; j < ARRAYSIZE(entries); j += 1) {
            assert_false(remove_yields(&entries[j].link));
        }
    }
    assert_int_equal(thread->QueueBalance, 40000);
    host.now += 1000; /* a long sleep */
    assert_false(remove_yields(none));
    assert_int_equal(thread->QueueShortSleeps, 0);
    thread->QueueShortSleeps = 16;
    host.processor = 3; /* not that of the waker */
    assert_false(remove_yields(none));
    host.processor = 4;
    KiExitService(thread);
    assert_false(remove_yields(none)); /* in no service */
    HalDispatch = host.real;
    KeRundownQueue(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_entries_are_first_in_first_out),
        WATCHED(test_next_entry_without_a_wait),
        WATCHED(test_insert_at_the_head),
        WATCHED(test_default_limit_is_the_number_of_processors),
        WATCHED(test_threads_are_last_in_first_out),
        WATCHED(test_busy_thread_is_preferred),
        WATCHED(test_concurrency_limit),
        WATCHED(test_any_wait_gives_the_place_up),
        WATCHED(test_timeout),
        WATCHED(test_poll_respects_the_limit),
        WATCHED(test_remove_several),
        WATCHED(test_alertable_remove),
        WATCHED(test_inserted_by_an_apc_of_the_remover),
        WATCHED(test_plain_waits_do_not_consume),
        WATCHED(test_remover_comes_before_plain_waiters),
        WATCHED(test_rundown),
        WATCHED(test_rundown_returns_the_entries),
        WATCHED(test_queue_is_gone_after_rundown),
        WATCHED(test_changing_queues),
        WATCHED(test_end_of_a_thread),
        WATCHED(test_wait_reason),
        WATCHED(test_pool_of_workers),
        WATCHED(test_looks_follow_the_traffic),
        WATCHED(test_next_entry_stays),
        WATCHED(test_yields_for_entries),
        WATCHED(test_fork_while_entries_are_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
