/* Timer queues. */
#include "tptest.h"

#define TIMERS 1000
#define HOUR   3600000

typedef struct entry {
    HANDLE handle;
    HANDLE ran;
    HANDLE opened; /* if not NULL, the callback waits for it */
    volatile ULONG inside;
    volatile ULONG runs;
} entry;

static void note(PVOID context, BOOLEAN fired)
{
    entry *e = context;
    check(fired);
    add_one(&e->inside);
    add_one(&e->runs);
    set_event(e->ran);
    if (e->opened != NULL) {
        wait_event(e->opened);
    }
    subtract_one(&e->inside);
}

static void add(entry *e, HANDLE queue, DWORD due, DWORD period, ULONG flags)
{
    *e = (entry){.ran = make_event(SynchronizationEvent)};
    check(CreateTimerQueueTimer(&e->handle, queue, note, e, due, period, flags));
    check(e->handle != NULL);
}

/* After it was deleted. */
static void forget(entry *e)
{
    await(count_of(&e->inside) == 0);
    NtClose(e->ran);
    if (e->opened != NULL) {
        NtClose(e->opened);
    }
}

static void take_away(entry *e, HANDLE queue)
{
    check(DeleteTimerQueueTimer(queue, e->handle, INVALID_HANDLE_VALUE));
    forget(e);
}

static HANDLE make_queue(void)
{
    HANDLE queue = CreateTimerQueue();
    check(queue != NULL);
    return queue;
}

static void test_one_shot(void **state)
{
    HANDLE queues[] = {NULL, make_queue()};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(queues); i += 1) {
        entry e;
        add(&e, queues[i], 1, 0, WT_EXECUTEONLYONCE);
        wait_event(e.ran);
        take_away(&e, queues[i]);
        assert_int_equal(e.runs, 1);
        add(&e, queues[i], 0, 0, WT_EXECUTEDEFAULT);
        wait_event(e.ran);
        take_away(&e, queues[i]);
        add(&e, queues[i], HOUR, 0, WT_EXECUTEDEFAULT);
        take_away(&e, queues[i]);
        assert_int_equal(e.runs, 0);
    }
    assert_true(DeleteTimerQueue(queues[1]));
}

static void test_period(void **state)
{
    HANDLE queue = make_queue();
    entry e;
    (void)state;
    add(&e, queue, 0, 1, WT_EXECUTEDEFAULT);
    await(count_of(&e.runs) >= 5);
    take_away(&e, queue);
    ULONG runs = count_of(&e.runs);
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -10 * MILLISECOND});
    assert_int_equal(count_of(&e.runs), runs);
    assert_true(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
}

/* The callback is called every time the period elapses, whether or not the previous one has returned. */
static void test_overlap(void **state)
{
    HANDLE queue = make_queue();
    entry e;
    (void)state;
    add(&e, queue, HOUR, 0, 0);
    e.opened = make_event(NotificationEvent);
    assert_true(ChangeTimerQueueTimer(queue, e.handle, 0, 1));
    await(count_of(&e.inside) >= 3);
    set_event(e.opened);
    take_away(&e, queue);
    assert_true(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
}

static void test_change(void **state)
{
    HANDLE queue = make_queue();
    entry e;
    (void)state;
    add(&e, queue, HOUR, 0, WT_EXECUTEDEFAULT);
    assert_true(ChangeTimerQueueTimer(queue, e.handle, 1, 0));
    wait_event(e.ran);
    /* a timer that has expired and has no period does not change any more */
    assert_true(ChangeTimerQueueTimer(queue, e.handle, 0, 0));
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -10 * MILLISECOND});
    assert_int_equal(count_of(&e.runs), 1);
    take_away(&e, queue);
    add(&e, queue, 0, HOUR, WT_EXECUTEDEFAULT);
    wait_event(e.ran);
    assert_true(ChangeTimerQueueTimer(queue, e.handle, 0, 1));
    await(count_of(&e.runs) >= 4);
    take_away(&e, queue);
    add(&e, queue, INFINITE, 0, WT_EXECUTEDEFAULT);
    assert_true(ChangeTimerQueueTimer(queue, e.handle, 0, 0));
    wait_event(e.ran);
    take_away(&e, queue);
    assert_true(DeleteTimerQueue(queue));
}

static void block(entry *e, HANDLE queue)
{
    add(e, queue, HOUR, 0, WT_EXECUTEDEFAULT);
    e->opened = make_event(NotificationEvent);
    check(ChangeTimerQueueTimer(queue, e->handle, 0, 0));
    wait_event(e->ran);
}

static void *open_later(void *argument)
{
    pause_briefly();
    set_event(argument);
    return NULL;
}

static void expect_pending(BOOL result)
{
    assert_false(result);
    assert_int_equal(GetLastError(), ERROR_IO_PENDING);
}

static void test_delete_timer(void **state)
{
    HANDLE queue = make_queue();
    HANDLE done = make_event(SynchronizationEvent);
    pthread_t thread;
    entry e;
    (void)state;

    add(&e, queue, HOUR, 0, 0);
    assert_true(DeleteTimerQueueTimer(queue, e.handle, NULL));
    forget(&e);
    add(&e, queue, HOUR, 0, 0);
    assert_true(DeleteTimerQueueTimer(queue, e.handle, done));
    wait_event(done);
    forget(&e);

    block(&e, queue);
    SetLastError(0);
    expect_pending(DeleteTimerQueueTimer(queue, e.handle, done));
    assert_false(is_set(done));
    set_event(e.opened);
    wait_event(done);
    assert_int_equal(e.inside, 0);
    forget(&e);

    block(&e, queue);
    pthread_create(&thread, NULL, open_later, e.opened);
    assert_true(DeleteTimerQueueTimer(queue, e.handle, INVALID_HANDLE_VALUE));
    pthread_join(thread, NULL);
    assert_int_equal(e.inside, 0);
    forget(&e);

    block(&e, queue);
    SetLastError(0);
    expect_pending(DeleteTimerQueueTimer(queue, e.handle, NULL));
    set_event(e.opened);
    assert_true(DeleteTimerQueueEx(queue, done) || GetLastError() == ERROR_IO_PENDING);
    wait_event(done);
    forget(&e);
    NtClose(done);
}

static void test_delete_queue(void **state)
{
    HANDLE done = make_event(SynchronizationEvent);
    pthread_t thread;
    entry blocked;
    entry waiting;
    (void)state;

    HANDLE queue = make_queue();
    assert_true(DeleteTimerQueueEx(queue, done));
    wait_event(done);

    queue = make_queue();
    add(&waiting, queue, HOUR, 0, 0);
    block(&blocked, queue);
    SetLastError(0);
    expect_pending(DeleteTimerQueueEx(queue, done));
    assert_false(is_set(done));
    set_event(blocked.opened);
    wait_event(done);
    assert_int_equal(blocked.inside, 0);
    forget(&blocked);
    forget(&waiting);

    queue = make_queue();
    add(&waiting, queue, HOUR, 1, 0);
    block(&blocked, queue);
    pthread_create(&thread, NULL, open_later, blocked.opened);
    assert_true(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    pthread_join(thread, NULL);
    assert_int_equal(waiting.runs, 0);
    assert_int_equal(blocked.inside, 0);
    forget(&blocked);
    forget(&waiting);

    queue = make_queue();
    block(&blocked, queue);
    SetLastError(0);
    expect_pending(DeleteTimerQueue(queue));
    set_event(blocked.opened);
    forget(&blocked);
    NtClose(done);
}

/* A timer that has expired before it is deleted: "the timer callback function will run to completion". The only thread
   is busy, so its callback has not begun. */
typedef struct due {
    entry busy;
    entry late;
    HANDLE queue;
    HANDLE done;
} due;

static void prepare_due(due *d)
{
    d->queue = make_queue();
    d->done = make_event(SynchronizationEvent);
    add(&d->busy, d->queue, HOUR, 0, WT_EXECUTEINTIMERTHREAD);
    d->busy.opened = make_event(NotificationEvent);
    check(ChangeTimerQueueTimer(d->queue, d->busy.handle, 0, 0));
    wait_event(d->busy.ran);
    add(&d->late, d->queue, 0, 0, WT_EXECUTEINTIMERTHREAD);
    await(TppHasBacklog(&TppTimerThreadPool));
    SetLastError(0);
}

static void finish_due(due *d, BOOLEAN queue_deleted)
{
    set_event(d->busy.opened);
    wait_event(d->late.ran);
    await(count_of(&d->busy.inside) + count_of(&d->late.inside) == 0);
    assert_int_equal(d->late.runs, 1);
    if (!queue_deleted) {
        assert_true(DeleteTimerQueueTimer(d->queue, d->busy.handle, INVALID_HANDLE_VALUE));
        assert_true(DeleteTimerQueueEx(d->queue, INVALID_HANDLE_VALUE));
    }
    forget(&d->busy);
    forget(&d->late);
    NtClose(d->done);
}

static void test_delete_due_timer(void **state)
{
    pthread_t thread;
    due d;
    (void)state;
    prepare_due(&d);
    expect_pending(DeleteTimerQueueTimer(d.queue, d.late.handle, NULL));
    finish_due(&d, FALSE);

    prepare_due(&d);
    expect_pending(DeleteTimerQueueTimer(d.queue, d.late.handle, d.done));
    assert_false(is_set(d.done));
    set_event(d.busy.opened);
    wait_event(d.done);
    assert_int_equal(d.late.runs, 1);
    finish_due(&d, FALSE);

    prepare_due(&d);
    pthread_create(&thread, NULL, open_later, d.busy.opened);
    assert_true(DeleteTimerQueueTimer(d.queue, d.late.handle, INVALID_HANDLE_VALUE));
    assert_int_equal(d.late.runs, 1);
    pthread_join(thread, NULL);
    finish_due(&d, FALSE);
}

static void test_delete_queue_of_due_timer(void **state)
{
    pthread_t thread;
    due d;
    (void)state;
    prepare_due(&d);
    pthread_create(&thread, NULL, open_later, d.busy.opened);
    assert_true(DeleteTimerQueueEx(d.queue, INVALID_HANDLE_VALUE));
    assert_int_equal(d.late.runs, 1);
    pthread_join(thread, NULL);
    finish_due(&d, TRUE);

    prepare_due(&d);
    expect_pending(DeleteTimerQueueEx(d.queue, d.done));
    assert_false(is_set(d.done));
    set_event(d.busy.opened);
    wait_event(d.done);
    finish_due(&d, TRUE);
}

/* The inherited callback gets a thread in the child too. */
static BOOLEAN delete_due_in_child(void *argument)
{
    due *d = argument;
    BOOL deleted = DeleteTimerQueueTimer(d->queue, d->late.handle, NULL); /* TRUE: it has run already */
    wait_event(d->late.ran);
    return (deleted || GetLastError() == ERROR_IO_PENDING) && d->late.runs == 1;
}

static void test_fork_with_due_timer(void **state)
{
    due d;
    (void)state;
    prepare_due(&d);
    assert_int_equal(in_child(delete_due_in_child, &d), 0);
    expect_pending(DeleteTimerQueueTimer(d.queue, d.late.handle, NULL));
    finish_due(&d, FALSE);
}

static void delete_itself(PVOID context, BOOLEAN fired)
{
    entry *e = context;
    (void)fired;
    SetLastError(0);
    check(!DeleteTimerQueueTimer(NULL, e->handle, NULL));
    check(GetLastError() == ERROR_IO_PENDING);
    set_event(e->ran);
}

static void test_delete_inside_callback(void **state)
{
    entry e = {.ran = make_event(SynchronizationEvent)};
    (void)state;
    for (int i = 0; i < 20; i += 1) {
        /* periodic, but not due again before it is deleted: two callbacks would both delete it */
        assert_true(CreateTimerQueueTimer(&e.handle, NULL, delete_itself, &e, 0, 600000, 0));
        wait_event(e.ran);
    }
    NtClose(e.ran);
}

static void test_refusals(void **state)
{
    HANDLE handle = NULL;
    (void)state;
    SetLastError(0);
    assert_false(CreateTimerQueueTimer(&handle, NULL, NULL, NULL, 0, 0, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(CreateTimerQueueTimer(&handle, NULL, note, NULL, 0, 1, WT_EXECUTEONLYONCE));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(handle);
    SetLastError(0);
    assert_false(DeleteTimerQueueTimer(NULL, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(ChangeTimerQueueTimer(NULL, NULL, 0, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(DeleteTimerQueue(NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    SetLastError(0);
    assert_false(DeleteTimerQueueEx(NULL, INVALID_HANDLE_VALUE));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    HANDLE queue = make_queue();
    SetLastError(0);
    assert_false(DeleteTimerQueueEx(queue, ULongToHandle(0x7ffffff0)));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_true(DeleteTimerQueue(queue));
}

/* There is one timer thread. */
static volatile ULONG inside;

static void alone(PVOID context, BOOLEAN fired)
{
    check(add_one(&inside) == 1);
    pause_briefly();
    subtract_one(&inside);
    note(context, fired);
}

static void test_timer_thread(void **state)
{
    static entry e[20];
    HANDLE queue = make_queue();
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(e); i += 1) {
        e[i] = (entry){.ran = make_event(SynchronizationEvent)};
        assert_true(CreateTimerQueueTimer(&e[i].handle, queue, alone, &e[i], 1, 0, WT_EXECUTEINTIMERTHREAD));
    }
    for (ULONG i = 0; i < ARRAYSIZE(e); i += 1) {
        wait_event(e[i].ran);
        NtClose(e[i].ran);
    }
    assert_true(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
}

static void count(PVOID context, BOOLEAN fired)
{
    check(fired);
    add_one(context);
}

static void test_many(void **state)
{
    static volatile ULONG runs[TIMERS];
    HANDLE queue = make_queue();
    HANDLE handle;
    ULONG most = most_threads_without_ticks(&TppDefaultPool);
    (void)state;
    for (ULONG i = 0; i < TIMERS; i += 1) {
        assert_true(CreateTimerQueueTimer(&handle, queue, count, (PVOID)&runs[i], i % 30, i % 2 ? 5 : 0, 0));
    }
    for (ULONG i = 0; i < TIMERS; i += 1) {
        await(count_of(&runs[i]) >= 1 + i % 2);
    }
    assert_in_range(TppQueryThreads(&TppDefaultPool), 1, most);
    assert_true(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    for (ULONG i = 0; i < TIMERS; i += 2) {
        assert_int_equal(runs[i], 1);
    }
}

static BOOLEAN use_in_child(void *argument)
{
    entry *inherited = argument;
    entry e;
    add(&e, NULL, 1, 0, 0);
    wait_event(e.ran);
    take_away(&e, NULL);
    await(count_of(&inherited->runs) >= 2);
    take_away(inherited, NULL);
    return TRUE;
}

static void test_fork(void **state)
{
    entry e;
    (void)state;
    add(&e, NULL, 5, 5, 0);
    assert_int_equal(in_child(use_in_child, &e), 0);
    take_away(&e, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_one_shot),
        WATCHED(test_period),
        WATCHED(test_overlap),
        WATCHED(test_change),
        WATCHED(test_delete_timer),
        WATCHED(test_delete_queue),
        WATCHED(test_delete_inside_callback),
        WATCHED(test_refusals),
        WATCHED(test_timer_thread),
        WATCHED(test_many),
        WATCHED(test_fork),
        WATCHED(test_fork_with_due_timer),
        WATCHED(test_delete_due_timer),
        WATCHED(test_delete_queue_of_due_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
