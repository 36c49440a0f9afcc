/*
 * The order of a wait list, by the numbers in src/ke/dispatch.h; and that waiters which a signal cannot wake cost it
 * nothing: their blocks are on pages where an access would fault.
 */
#include "waittest.h"

#include "../support/guarded.h"

#define CROWD 32

/* Dequeuers, then eligible blocks by their numbers, then dormant ones; the last dormant block points to the first. */
static void check_order(PDISPATCHER_HEADER header)
{
    PLIST_ENTRY first_dormant = NULL;
    ULONG64 number = 0;
    BOOLEAN plain = FALSE;
    KiEnterDispatcher(KeGetCurrentThread());
    ULONG64 word = KiLockObject(header);
    for (PLIST_ENTRY link = header->WaitListHead.Flink; link != &header->WaitListHead; link = link->Flink) {
        PKWAIT_BLOCK block = KiBlockOfEntry(link);
        check(block->BlockState == WaitBlockActive && block->Object == header);
        if (KiIsDormant(block)) {
            first_dormant = first_dormant != NULL ? first_dormant : link;
            plain = TRUE;
            check(block->WaitType == WaitAll);
            continue;
        }
        check(first_dormant == NULL);
        check(block->WaitType != WaitDequeue || !plain);
        if (block->WaitType != WaitDequeue) {
            plain = TRUE;
            check((ULONG_PTR)block->SparePtr >= number);
            number = (ULONG_PTR)block->SparePtr;
        }
    }
    check(KiEndOfEligible(header) == (first_dormant != NULL ? first_dormant : &header->WaitListHead));
    KiUnlockObject(header, word);
    KiExitDispatcher(KeGetCurrentThread());
}

static void begin_wait_for_both(waiter *w, PVOID first, PVOID second)
{
    w->call = (wait_call){.count = 2, .all = TRUE, .object = {first, second}};
    begin_wait(w);
}

/* The blocks of one wait are an item; the thread itself sleeps and does not read them. */
typedef struct guarded_waiter {
    actor actor;
    PVOID object[2];
    PKWAIT_BLOCK blocks;
    NTSTATUS status;
} guarded_waiter;

static void wait_on_guarded_blocks(void *argument)
{
    guarded_waiter *w = argument;
    w->status = KeWaitForMultipleObjects(2, w->object, WaitAll, Executive, KernelMode, FALSE, NULL, w->blocks);
}

static void test_signal_leaves_alone_what_it_cannot_wake(void **state)
{
    static guarded_waiter w[CROWD];
    static KEVENT own[CROWD];
    guarded blocks = guarded_items(CROWD);
    (void)state;
    for (int kind = 0; kind < 3; kind += 1) {
        KSEMAPHORE semaphore;
        KEVENT event;
        PVOID shared = kind == 2 ? (PVOID)&semaphore : (PVOID)&event;
        KeInitializeSemaphore(&semaphore, 0, MAXLONG);
        KeInitializeEvent(&event, kind == 0 ? NotificationEvent : SynchronizationEvent, FALSE);
        for (ULONG i = 0; i < CROWD; i += 1) {
            start_actor(&w[i].actor);
            KeInitializeEvent(&own[i], NotificationEvent, FALSE);
            w[i].object[0] = shared;
            w[i].object[1] = &own[i];
            w[i].blocks = guarded_item(&blocks, i);
            tell(&w[i].actor, wait_on_guarded_blocks, &w[i]);
            await(is_committed(w[i].actor.thread));
        }
        /* The first wait watches the shared object, which has no other waiter, until it is signaled. */
        guard(&blocks, 2);
        for (int round = 0; round < 3; round += 1) {
            if (kind == 2) {
                KeReleaseSemaphore(&semaphore, 0, 1 + round, FALSE);
                while (poll_object(&semaphore)) {
                }
            } else {
                KePulseEvent(&event, 0, FALSE);
                KeSetEvent(&event, 0, FALSE);
                KeSetEvent(&event, 0, FALSE);
                KeResetEvent(&event);
            }
        }
        unguard(&blocks);
        for (ULONG i = 0; i < CROWD; i += 1) {
            KeSetEvent(&own[i], 0, FALSE);
            assert_true(is_committed(w[i].actor.thread));
            if (kind == 2) {
                KeReleaseSemaphore(&semaphore, 0, 1, FALSE);
            } else {
                KeSetEvent(&event, 0, FALSE);
            }
            await(is_idle(&w[i].actor));
            assert_int_equal(w[i].status, STATUS_WAIT_0);
            KeResetEvent(&event);
        }
        assert_true(has_no_waiters(shared));
        for (ULONG i = 0; i < CROWD; i += 1) {
            end_actor(&w[i].actor);
        }
    }
    free_guarded(&blocks);
}

/* Waits that all watch the shared object are moved to their own by its first signal; the next signal finds none. */
static void test_signal_moves_watching_waits(void **state)
{
    enum { COUNT = 4 };
    static waiter w[COUNT];
    KEVENT shared, own[COUNT];
    (void)state;
    start_waiters(w, COUNT);
    KeInitializeEvent(&shared, NotificationEvent, FALSE);
    for (ULONG i = 0; i < COUNT; i += 1) {
        KeInitializeEvent(&own[i], NotificationEvent, TRUE);
        begin_wait_for_both(&w[i], &own[i], &shared);
        KeResetEvent(&own[i]);
        check_order(&shared.Header);
        assert_ptr_equal(KiEndOfEligible(&shared.Header), &shared.Header.WaitListHead);
    }
    KeSetEvent(&shared, 0, FALSE);
    assert_int_equal(count_waiting(w, COUNT), COUNT);
    assert_ptr_equal(KiEndOfEligible(&shared.Header), shared.Header.WaitListHead.Flink);
    check_order(&shared.Header);
    KeResetEvent(&shared);
    for (ULONG i = 0; i < COUNT; i += 1) {
        check_order(&own[i].Header);
        KeSetEvent(&own[i], 0, FALSE);
        check_order(&shared.Header);
    }
    assert_int_equal(count_waiting(w, COUNT), COUNT);
    KePulseEvent(&shared, 0, FALSE);
    for (ULONG i = 0; i < COUNT; i += 1) {
        assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
        assert_true(has_no_waiters(&own[i]));
    }
    assert_true(has_no_waiters(&shared));
    end_waiters(w, COUNT);
}

/*
 * 3: first in, first out, whatever kind the waits are. Each of five is a WaitAll or not; the objects that the WaitAlls
 * need besides become signaled in an order of their own.
 */
static void test_order_of_age(void **state)
{
    enum { COUNT = 5 };
    static const ULONG orders[][COUNT] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}};
    static waiter w[COUNT];
    (void)state;
    start_waiters(w, COUNT);
    for (ULONG kinds = 0; kinds < 1u << COUNT; kinds += 1) {
        const ULONG *order = orders[kinds % ARRAYSIZE(orders)];
        KEVENT shared, own[COUNT];
        KeInitializeEvent(&shared, SynchronizationEvent, FALSE);
        for (ULONG i = 0; i < COUNT; i += 1) {
            KeInitializeEvent(&own[i], NotificationEvent, FALSE);
            if (kinds >> i & 1) {
                begin_wait_for_both(&w[i], i % 2 ? &shared : &own[i], i % 2 ? &own[i] : &shared);
            } else {
                begin_wait_for(&w[i], &shared);
            }
        }
        for (ULONG i = 0; i < COUNT; i += 1) {
            KeSetEvent(&own[order[i]], 0, FALSE);
            check_order(&shared.Header);
        }
        for (ULONG i = 0; i < COUNT; i += 1) {
            assert_int_equal(count_waiting(w, COUNT), COUNT - i);
            KeSetEvent(&shared, 0, FALSE);
            assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
            assert_int_equal(state_of(&shared), 0);
        }
        assert_true(has_no_waiters(&shared));
    }
    end_waiters(w, COUNT);
}

/* 4: dormant waits end in every order, and each time the rest is still found. */
static void test_dormant_waits_end_in_any_order(void **state)
{
    enum { COUNT = 3 };
    static const ULONG orders[][COUNT] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static waiter w[COUNT], plain;
    (void)state;
    start_waiters(w, COUNT);
    start_waiters(&plain, 1);
    for (ULONG o = 0; o < ARRAYSIZE(orders); o += 1) {
        KEVENT shared, own[COUNT];
        KeInitializeEvent(&shared, SynchronizationEvent, FALSE);
        for (ULONG i = 0; i < COUNT; i += 1) {
            KeInitializeEvent(&own[i], NotificationEvent, FALSE);
            w[i].call = (wait_call){.count = 2, .all = TRUE, .alertable = TRUE, .object = {&shared, &own[i]}};
            begin_wait(&w[i]);
        }
        for (ULONG i = 0; i < COUNT; i += 1) {
            KeAlertThread(w[orders[o][i]].actor.thread, KernelMode);
            assert_int_equal(end_wait(&w[orders[o][i]]), STATUS_ALERTED);
            check_order(&shared.Header);
            begin_wait_for(&plain, &shared);
            check_order(&shared.Header);
            KeSetEvent(&shared, 0, FALSE);
            assert_int_equal(end_wait(&plain), STATUS_WAIT_0);
            assert_int_equal(count_waiting(w, COUNT), COUNT - 1 - i);
        }
        assert_true(has_no_waiters(&shared));
    }
    end_waiters(&plain, 1);
    end_waiters(w, COUNT);
}

/* A pulse releases a wait whose other object is signaled, whichever of the two it watched before. */
static void test_pulse_completes(void **state)
{
    static waiter w;
    KEVENT events[3];
    (void)state;
    start_waiters(&w, 1);
    for (ULONG pulsed = 0; pulsed < ARRAYSIZE(events); pulsed += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(events); i += 1) {
            KeInitializeEvent(&events[i], i == 1 ? SynchronizationEvent : NotificationEvent, FALSE);
        }
        w.call = (wait_call){.count = 3, .all = TRUE, .object = {&events[0], &events[1], &events[2]}};
        begin_wait(&w);
        for (ULONG i = 0; i < ARRAYSIZE(events); i += 1) {
            KePulseEvent(&events[i], 0, FALSE);
        }
        for (ULONG i = 0; i < ARRAYSIZE(events); i += 1) {
            if (i != pulsed) {
                KeSetEvent(&events[i], 0, FALSE);
            }
        }
        assert_true(still_waits(&w));
        KePulseEvent(&events[pulsed], 0, FALSE);
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        for (ULONG i = 0; i < ARRAYSIZE(events); i += 1) {
            assert_true(has_no_waiters(&events[i]));
            assert_int_equal(state_of(&events[i]), i != pulsed && i != 1);
        }
    }
    end_waiters(&w, 1);
}

/* A queue at its limit, with dequeuers that only the test itself could wake. */
typedef struct busy_queue {
    KQUEUE queue;
    guarded dequeuers;
} busy_queue;

static void fill(busy_queue *b)
{
    LIST_ENTRY entry;
    PKTHREAD thread = KeGetCurrentThread();
    KeInitializeQueue(&b->queue, 1);
    KeInsertQueue(&b->queue, &entry);
    assert_ptr_equal(KeRemoveQueue(&b->queue, KernelMode, NO_TIME), &entry);
    b->dequeuers = guarded_items(CROWD);
    for (ULONG i = 0; i < CROWD; i += 1) {
        PKWAIT_BLOCK block = guarded_item(&b->dequeuers, i);
        KiPrepareBlock(block, thread, &b->queue, WaitDequeue, 0);
        block->BlockState = WaitBlockActive;
        KiEnterDispatcher(thread);
        ULONG64 word = KiLockObject(&b->queue.Header);
        InsertHeadList(&b->queue.Header.WaitListHead, &block->WaitListEntry);
        KiUnlockObject(&b->queue.Header, word);
        KiExitDispatcher(thread);
    }
    guard(&b->dequeuers, 1);
}

static void empty(busy_queue *b)
{
    PKTHREAD thread = KeGetCurrentThread();
    unguard(&b->dequeuers);
    for (ULONG i = 0; i < CROWD; i += 1) {
        KiEnterDispatcher(thread);
        ULONG64 word = KiLockObject(&b->queue.Header);
        KiUnlinkBlock(guarded_item(&b->dequeuers, i), WaitBlockInactive);
        KiUnlockObject(&b->queue.Header, word);
        KiExitDispatcher(thread);
    }
    assert_null(KeRundownQueue(&b->queue));
    assert_true(has_no_waiters(&b->queue));
    free_guarded(&b->dequeuers);
}

static void test_post_at_the_limit_leaves_dequeuers_alone(void **state)
{
    busy_queue b;
    LIST_ENTRY entry[3];
    (void)state;
    fill(&b);
    for (int round = 0; round < 3; round += 1) {
        assert_int_equal(KeInsertQueue(&b.queue, &entry[0]), 0);
        assert_int_equal(KeInsertQueue(&b.queue, &entry[1]), 1);
        assert_int_equal(KeInsertHeadQueue(&b.queue, &entry[2]), 2);
        assert_ptr_equal(KeRemoveQueue(&b.queue, KernelMode, NO_TIME), &entry[2]);
        assert_ptr_equal(KeRemoveQueue(&b.queue, KernelMode, NO_TIME), &entry[0]);
        assert_ptr_equal(KeRemoveQueue(&b.queue, KernelMode, NO_TIME), &entry[1]);
    }
    empty(&b);
}

/* Those that wait for the queue itself are released by the first entry, past all dequeuers; a WaitAll if it can be. */
static void test_post_at_the_limit_releases_plain_waiters(void **state)
{
    static waiter w[4];
    busy_queue b;
    LIST_ENTRY entry[2];
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    start_waiters(w, ARRAYSIZE(w));
    fill(&b);
    begin_wait_for(&w[0], &b.queue);
    begin_wait_for_both(&w[1], &b.queue, &event);
    begin_wait_for(&w[2], &b.queue);
    begin_wait_for_both(&w[3], &event, &b.queue);
    KeInsertQueue(&b.queue, &entry[0]);
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_int_equal(end_wait(&w[2]), STATUS_WAIT_0);
    assert_true(still_waits(&w[1]) && still_waits(&w[3]));
    KeInsertQueue(&b.queue, &entry[1]);
    assert_true(still_waits(&w[1]) && still_waits(&w[3]));
    KeRemoveQueue(&b.queue, KernelMode, NO_TIME);
    KeRemoveQueue(&b.queue, KernelMode, NO_TIME);
    KeSetEvent(&event, 0, FALSE);
    assert_true(still_waits(&w[1]) && still_waits(&w[3]));
    KeInsertQueue(&b.queue, &entry[0]);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    assert_int_equal(end_wait(&w[3]), STATUS_WAIT_0);
    KeRemoveQueue(&b.queue, KernelMode, NO_TIME);
    empty(&b);
    end_waiters(w, ARRAYSIZE(w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_signal_leaves_alone_what_it_cannot_wake),
        WATCHED(test_signal_moves_watching_waits),
        WATCHED(test_order_of_age),
        WATCHED(test_dormant_waits_end_in_any_order),
        WATCHED(test_pulse_completes),
        WATCHED(test_post_at_the_limit_leaves_dequeuers_alone),
        WATCHED(test_post_at_the_limit_releases_plain_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
