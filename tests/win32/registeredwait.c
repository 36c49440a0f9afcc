/* Registered waits. */
#include "tptest.h"

#define WAITS 512
#define HOUR  3600000

typedef struct registration {
    HANDLE handle;
    HANDLE event; /* the object to wait for */
    HANDLE ran;
    HANDLE opened; /* if not NULL, the callback waits for it */
    volatile ULONG inside;
    volatile ULONG runs;
    volatile ULONG timeouts;
} registration;

static void note(PVOID context, BOOLEAN timed_out)
{
    registration *r = context;
    check(KiCurrentThread()->ServiceDepth == 0);
    add_one(&r->inside);
    if (timed_out) {
        add_one(&r->timeouts);
    }
    add_one(&r->runs);
    set_event(r->ran);
    if (r->opened != NULL) {
        wait_event(r->opened);
    }
    subtract_one(&r->inside);
}

static void enter(registration *r, EVENT_TYPE type, ULONG milliseconds, ULONG flags)
{
    *r = (registration){.event = make_event(type), .ran = make_event(SynchronizationEvent)};
    check(RegisterWaitForSingleObject(&r->handle, r->event, note, r, milliseconds, flags));
    check(r->handle != NULL);
    check(KiCurrentThread()->ServiceDepth == 0);
}

/* After it was unregistered. */
static void forget(registration *r)
{
    await(count_of(&r->inside) == 0);
    NtClose(r->event);
    NtClose(r->ran);
    if (r->opened != NULL) {
        NtClose(r->opened);
    }
}

static void leave(registration *r)
{
    check(UnregisterWaitEx(r->handle, INVALID_HANDLE_VALUE));
    forget(r);
}

static void test_signal(void **state)
{
    registration r;
    (void)state;
    enter(&r, SynchronizationEvent, INFINITE, WT_EXECUTEDEFAULT);
    for (ULONG i = 1; i <= 10; i += 1) {
        set_event(r.event);
        wait_event(r.ran);
        assert_int_equal(count_of(&r.runs), i);
    }
    leave(&r);
    assert_int_equal(r.timeouts, 0);
}

/* Without WT_EXECUTEONLYONCE an object that stays signaled calls back repeatedly. */
static void test_stays_signaled(void **state)
{
    registration r;
    (void)state;
    enter(&r, NotificationEvent, INFINITE, WT_EXECUTEDEFAULT);
    set_event(r.event);
    await(count_of(&r.runs) >= 5);
    leave(&r);
    ULONG runs = count_of(&r.runs);
    pause_briefly();
    assert_int_equal(count_of(&r.runs), runs);
}

static void test_only_once(void **state)
{
    registration r;
    (void)state;
    enter(&r, SynchronizationEvent, INFINITE, WT_EXECUTEONLYONCE);
    set_event(r.event);
    wait_event(r.ran);
    set_event(r.event);
    pause_briefly();
    assert_true(is_set(r.event));
    leave(&r);
    assert_int_equal(r.runs, 1);
}

static void test_timeout(void **state)
{
    registration r;
    (void)state;
    enter(&r, SynchronizationEvent, 1, WT_EXECUTEDEFAULT);
    await(count_of(&r.timeouts) >= 3);
    leave(&r);
    assert_int_equal(r.runs, r.timeouts);
    enter(&r, SynchronizationEvent, 0, WT_EXECUTEONLYONCE);
    wait_event(r.ran);
    leave(&r);
    assert_int_equal(r.timeouts, 1);
}

/* Callbacks in the wait thread do not overlap. */
static volatile ULONG inside;

static void alone(PVOID context, BOOLEAN timed_out)
{
    check(add_one(&inside) == 1);
    pause_briefly();
    subtract_one(&inside);
    note(context, timed_out);
}

static void test_wait_thread(void **state)
{
    static registration r[20];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        r[i] = (registration){.event = make_event(SynchronizationEvent), .ran = make_event(SynchronizationEvent)};
        assert_true(RegisterWaitForSingleObject(&r[i].handle, r[i].event, alone, &r[i], INFINITE,
                                                WT_EXECUTEINWAITTHREAD | WT_EXECUTEONLYONCE));
    }
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        set_event(r[i].event);
    }
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        wait_event(r[i].ran);
        leave(&r[i]);
    }
}

/* Unregistering while the callback runs. */
static void block(registration *r)
{
    enter(r, SynchronizationEvent, INFINITE, WT_EXECUTEDEFAULT);
    r->opened = make_event(NotificationEvent);
    set_event(r->event);
    wait_event(r->ran);
}

static void unblock(registration *r)
{
    set_event(r->opened);
}

static void *open_later(void *argument)
{
    pause_briefly();
    set_event(argument);
    return NULL;
}

static void test_unregister(void **state)
{
    registration r;
    HANDLE done = make_event(SynchronizationEvent);
    pthread_t thread;
    (void)state;

    enter(&r, SynchronizationEvent, INFINITE, WT_EXECUTEDEFAULT);
    assert_true(UnregisterWait(r.handle));
    forget(&r);
    enter(&r, SynchronizationEvent, INFINITE, WT_EXECUTEDEFAULT);
    assert_true(UnregisterWaitEx(r.handle, done));
    wait_event(done);
    forget(&r);

    block(&r);
    SetLastError(0);
    assert_false(UnregisterWaitEx(r.handle, done));
    assert_int_equal(GetLastError(), ERROR_IO_PENDING);
    assert_false(is_set(done));
    unblock(&r);
    wait_event(done);
    assert_int_equal(r.inside, 0);
    forget(&r);

    block(&r);
    pthread_create(&thread, NULL, open_later, r.opened);
    assert_true(UnregisterWaitEx(r.handle, INVALID_HANDLE_VALUE));
    pthread_join(thread, NULL);
    assert_int_equal(r.runs, 1);
    assert_int_equal(r.inside, 0);
    forget(&r);
    NtClose(done);
}

static void test_unregister_pending(void **state)
{
    registration r;
    (void)state;
    block(&r);
    SetLastError(0);
    assert_false(UnregisterWait(r.handle));
    assert_int_equal(GetLastError(), ERROR_IO_PENDING);
    unblock(&r);
    forget(&r);
}

static void unregister_itself(PVOID context, BOOLEAN timed_out)
{
    registration *r = context;
    (void)timed_out;
    SetLastError(0);
    check(!UnregisterWait(r->handle));
    check(GetLastError() == ERROR_IO_PENDING);
    set_event(r->ran);
}

/* A callback that the signal has begun before the wait is unregistered still occurs: no count is lost. The only thread
   is busy. */
typedef struct consumed {
    registration busy;
    registration late; /* event: a semaphore */
    HANDLE done;
} consumed;

static LONG semaphore_count(HANDLE semaphore)
{
    SEMAPHORE_BASIC_INFORMATION information;
    check(NT_SUCCESS(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL)));
    return information.CurrentCount;
}

static void prepare_consumed(consumed *c, ULONG flags)
{
    c->done = make_event(SynchronizationEvent);
    enter(&c->busy, SynchronizationEvent, INFINITE, WT_EXECUTEINWAITTHREAD);
    c->busy.opened = make_event(NotificationEvent);
    set_event(c->busy.event);
    wait_event(c->busy.ran);
    c->late = (registration){.ran = make_event(SynchronizationEvent)};
    check(NT_SUCCESS(NtCreateSemaphore(&c->late.event, SEMAPHORE_ALL_ACCESS, NULL, 0, 10)));
    check(RegisterWaitForSingleObject(&c->late.handle, c->late.event, note, &c->late, INFINITE,
                                      flags | WT_EXECUTEINWAITTHREAD));
    check(NT_SUCCESS(NtReleaseSemaphore(c->late.event, 3, NULL)));
    await(semaphore_count(c->late.event) == 2);
    SetLastError(0);
}

/* Every count was consumed for a callback, or is still there. */
static void finish_consumed(consumed *c)
{
    wait_event(c->late.ran);
    assert_int_equal(c->late.runs + semaphore_count(c->late.event), 3);
    assert_int_equal(c->late.runs, 1);
    leave(&c->busy);
    forget(&c->late);
    NtClose(c->done);
}

static void test_unregister_consumed(void **state)
{
    static const ULONG flags[] = {0, WT_EXECUTEONLYONCE};
    pthread_t thread;
    consumed c;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        prepare_consumed(&c, flags[i]);
        assert_false(UnregisterWait(c.late.handle));
        assert_int_equal(GetLastError(), ERROR_IO_PENDING);
        set_event(c.busy.opened);
        finish_consumed(&c);

        prepare_consumed(&c, flags[i]);
        assert_false(UnregisterWaitEx(c.late.handle, c.done));
        assert_int_equal(GetLastError(), ERROR_IO_PENDING);
        assert_false(is_set(c.done));
        set_event(c.busy.opened);
        wait_event(c.done);
        finish_consumed(&c);

        prepare_consumed(&c, flags[i]);
        pthread_create(&thread, NULL, open_later, c.busy.opened);
        assert_true(UnregisterWaitEx(c.late.handle, INVALID_HANDLE_VALUE));
        assert_int_equal(c.late.runs, 1);
        pthread_join(thread, NULL);
        finish_consumed(&c);
    }
}

/* Each signal begins a callback, whether or not the previous one has returned. */
static void test_overlap(void **state)
{
    registration r = {.ran = make_event(SynchronizationEvent), .opened = make_event(NotificationEvent)};
    (void)state;
    check(NT_SUCCESS(NtCreateSemaphore(&r.event, SEMAPHORE_ALL_ACCESS, NULL, 0, 10)));
    assert_true(RegisterWaitForSingleObject(&r.handle, r.event, note, &r, INFINITE, WT_EXECUTEDEFAULT));
    check(NT_SUCCESS(NtReleaseSemaphore(r.event, 3, NULL)));
    await(count_of(&r.inside) == 3);
    SetLastError(0);
    assert_false(UnregisterWait(r.handle));
    assert_int_equal(GetLastError(), ERROR_IO_PENDING);
    unblock(&r);
    forget(&r);
}

static void reset_and_note(PVOID context, BOOLEAN timed_out)
{
    registration *r = context;
    check(NT_SUCCESS(NtResetEvent(r->event, NULL)));
    note(context, timed_out);
}

/* The thread that waits runs the callback: it does not see an object signaled that the callback resets. */
static void test_wait_thread_resets(void **state)
{
    registration r = {.event = make_event(NotificationEvent), .ran = make_event(SynchronizationEvent)};
    (void)state;
    assert_true(RegisterWaitForSingleObject(&r.handle, r.event, reset_and_note, &r, INFINITE, WT_EXECUTEINWAITTHREAD));
    for (ULONG i = 1; i <= 20; i += 1) {
        set_event(r.event);
        wait_event(r.ran);
        assert_int_equal(count_of(&r.runs), i);
    }
    leave(&r);
    assert_int_equal(r.runs, 20);
}

/* Mutexes: the thread that waits becomes the owner. */

static HANDLE own_mutex(void)
{
    HANDLE mutex = CreateMutexW(NULL, TRUE, NULL);
    check(mutex != NULL);
    return mutex;
}

static void enter_mutex(registration *r, WAITORTIMERCALLBACK callback, ULONG milliseconds, ULONG flags)
{
    *r = (registration){.event = own_mutex(), .ran = make_event(SynchronizationEvent)};
    check(RegisterWaitForSingleObject(&r->handle, r->event, callback, r, milliseconds, flags));
}

static void release_and_note(PVOID context, BOOLEAN timed_out)
{
    registration *r = context;
    check(!timed_out && ReleaseMutex(r->event));
    note(context, timed_out);
}

static void test_mutex(void **state)
{
    static const ULONG flags[] = {0, WT_EXECUTEINWAITTHREAD};
    registration r;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        enter_mutex(&r, release_and_note, INFINITE, flags[i]);
        assert_int_equal(r.runs, 0);
        assert_true(ReleaseMutex(r.event));
        await(count_of(&r.runs) >= 3); /* it is free again after each callback */
        assert_true(UnregisterWaitEx(r.handle, INVALID_HANDLE_VALUE));
        assert_int_equal(WaitForSingleObject(r.event, 0), WAIT_OBJECT_0);
        ULONG runs = r.runs;
        assert_true(ReleaseMutex(r.event));
        pause_briefly();
        assert_int_equal(count_of(&r.runs), runs);
        forget(&r);
    }
}

/* The thread keeps a mutex that the callback does not release, and abandons it with the registration. */
static void test_mutex_once(void **state)
{
    registration r;
    (void)state;
    enter_mutex(&r, note, INFINITE, WT_EXECUTEONLYONCE);
    assert_true(ReleaseMutex(r.event));
    wait_event(r.ran);
    assert_int_equal(WaitForSingleObject(r.event, 1), WAIT_TIMEOUT);
    assert_true(UnregisterWaitEx(r.handle, INVALID_HANDLE_VALUE));
    assert_int_equal(WaitForSingleObject(r.event, 0), WAIT_ABANDONED);
    assert_int_equal(r.runs, 1);
    forget(&r);
}

/* Without the flag the callback of the owner runs repeatedly, and one release frees the mutex. */
static void test_mutex_is_kept(void **state)
{
    registration r;
    (void)state;
    enter_mutex(&r, note, INFINITE, WT_EXECUTEDEFAULT);
    assert_true(ReleaseMutex(r.event));
    await(count_of(&r.runs) >= 5);
    assert_true(UnregisterWaitEx(r.handle, INVALID_HANDLE_VALUE));
    assert_int_equal(WaitForSingleObject(r.event, 0), WAIT_ABANDONED);
    forget(&r);
}

static void test_mutex_timeout(void **state)
{
    registration r;
    (void)state;
    enter_mutex(&r, note, 1, WT_EXECUTEDEFAULT);
    await(count_of(&r.timeouts) >= 3);
    leave(&r);
    assert_int_equal(r.timeouts, r.runs);
    enter_mutex(&r, note, INFINITE, WT_EXECUTEDEFAULT);
    assert_true(UnregisterWait(r.handle)); /* no callback: nothing is outstanding */
    assert_true(ReleaseMutex(r.event));
    assert_int_equal(r.runs, 0);
    forget(&r);
}

static void *enter_and_abandon(void *argument)
{
    enter_mutex(argument, release_and_note, INFINITE, WT_EXECUTEONLYONCE);
    return NULL;
}

static void test_mutex_is_abandoned(void **state)
{
    HANDLE done = make_event(SynchronizationEvent);
    pthread_t thread;
    registration r;
    (void)state;
    pthread_create(&thread, NULL, enter_and_abandon, &r);
    pthread_join(thread, NULL);
    wait_event(r.ran);
    assert_true(UnregisterWaitEx(r.handle, done) || GetLastError() == ERROR_IO_PENDING);
    wait_event(done);
    NtClose(done);
    forget(&r);
}

static void test_mutex_while_calling(void **state)
{
    registration r;
    (void)state;
    enter_mutex(&r, note, INFINITE, WT_EXECUTEDEFAULT);
    r.opened = make_event(NotificationEvent);
    assert_true(ReleaseMutex(r.event));
    wait_event(r.ran);
    SetLastError(0);
    assert_false(UnregisterWait(r.handle));
    assert_int_equal(GetLastError(), ERROR_IO_PENDING);
    unblock(&r);
    assert_int_equal(WaitForSingleObject(r.event, INFINITE), WAIT_ABANDONED);
    assert_int_equal(count_of(&r.runs), 1);
    forget(&r);

    r = (registration){.event = own_mutex(), .ran = make_event(SynchronizationEvent)};
    assert_true(RegisterWaitForSingleObject(&r.handle, r.event, unregister_itself, &r, INFINITE, 0));
    assert_true(ReleaseMutex(r.event));
    wait_event(r.ran);
    forget(&r);
}

static void test_many_mutexes(void **state)
{
    static registration r[100];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        enter_mutex(&r[i], release_and_note, INFINITE, WT_EXECUTEONLYONCE);
    }
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        assert_true(ReleaseMutex(r[i].event));
    }
    for (ULONG i = 0; i < ARRAYSIZE(r); i += 1) {
        wait_event(r[i].ran);
        leave(&r[i]);
        assert_int_equal(r[i].runs, 1);
    }
}

static BOOLEAN end_in_child(void *argument)
{
    registration *r = argument;
    return UnregisterWaitEx(r->handle, INVALID_HANDLE_VALUE) && r->runs == 0;
}

/* The thread that waits stays behind. */
static void test_mutex_and_fork(void **state)
{
    registration r;
    (void)state;
    enter_mutex(&r, release_and_note, INFINITE, WT_EXECUTEONLYONCE);
    assert_int_equal(in_child(end_in_child, &r), 0);
    assert_true(ReleaseMutex(r.event));
    wait_event(r.ran);
    leave(&r);
}

static void test_max_threads(void **state)
{
    registration r;
    ULONG flags = WT_EXECUTEDEFAULT;
    (void)state;
    WT_SET_MAX_THREADPOOL_THREADS(flags, 501);
    enter(&r, SynchronizationEvent, INFINITE, flags);
    assert_int_equal(TppDefaultPool.Maximum, 501);
    leave(&r);
}

static void test_unregister_inside_callback(void **state)
{
    registration r = {.event = make_event(SynchronizationEvent), .ran = make_event(SynchronizationEvent)};
    (void)state;
    for (int i = 0; i < 20; i += 1) {
        set_event(r.event);
        assert_true(RegisterWaitForSingleObject(&r.handle, r.event, unregister_itself, &r, INFINITE, 0));
        wait_event(r.ran);
    }
    NtClose(r.event);
    NtClose(r.ran);
}

static void test_refusals(void **state)
{
    HANDLE mutant;
    HANDLE handle = NULL;
    registration r;
    (void)state;
    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, FALSE), STATUS_SUCCESS);
    SetLastError(0);
    assert_false(RegisterWaitForSingleObject(&handle, ULongToHandle(0x7ffffff0), note, NULL, INFINITE, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_false(RegisterWaitForSingleObject(&handle, mutant, NULL, NULL, INFINITE, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(handle);
    assert_false(UnregisterWait(NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    enter(&r, SynchronizationEvent, INFINITE, 0);
    assert_false(UnregisterWaitEx(r.handle, mutant));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    set_event(r.event);
    wait_event(r.ran);
    leave(&r);
    NtClose(mutant);
}

/* The handle may be closed; the wait continues. */
static void test_handle_is_closed(void **state)
{
    registration r;
    HANDLE other;
    (void)state;
    enter(&r, SynchronizationEvent, INFINITE, 0);
    assert_int_equal(
        NtDuplicateObject(NtCurrentProcess(), r.event, NtCurrentProcess(), &other, 0, 0, DUPLICATE_SAME_ACCESS),
        STATUS_SUCCESS);
    NtClose(r.event);
    for (int i = 0; i < 3; i += 1) {
        set_event(other);
        wait_event(r.ran);
    }
    r.event = other;
    leave(&r);
}

static void test_many(void **state)
{
    static registration r[WAITS];
    ULONG most = most_threads_without_ticks(&TppDefaultPool);
    (void)state;
    for (ULONG i = 0; i < WAITS; i += 1) {
        enter(&r[i], SynchronizationEvent, i % 2 ? HOUR : INFINITE, WT_EXECUTEDEFAULT);
    }
    for (ULONG round = 1; round <= 3; round += 1) {
        for (ULONG i = 0; i < WAITS; i += 1) {
            set_event(r[i].event);
        }
        for (ULONG i = 0; i < WAITS; i += 1) {
            wait_event(r[i].ran);
            assert_int_equal(count_of(&r[i].runs), round);
        }
    }
    assert_in_range(TppQueryThreads(&TppDefaultPool), 1, most);
    for (ULONG i = 0; i < WAITS; i += 1) {
        leave(&r[i]);
    }
}

static BOOLEAN use_in_child(void *argument)
{
    registration *r = argument;
    registration fresh;
    enter(&fresh, SynchronizationEvent, INFINITE, 0);
    set_event(fresh.event);
    wait_event(fresh.ran);
    leave(&fresh);
    set_event(r->event);
    wait_event(r->ran);
    leave(r);
    return TRUE;
}

static void test_fork(void **state)
{
    registration r;
    (void)state;
    enter(&r, SynchronizationEvent, INFINITE, 0);
    assert_int_equal(in_child(use_in_child, &r), 0);
    set_event(r.event);
    wait_event(r.ran);
    leave(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_signal),
        WATCHED(test_stays_signaled),
        WATCHED(test_only_once),
        WATCHED(test_timeout),
        WATCHED(test_wait_thread),
        WATCHED(test_unregister),
        WATCHED(test_unregister_pending),
        WATCHED(test_unregister_consumed),
        WATCHED(test_unregister_inside_callback),
        WATCHED(test_overlap),
        WATCHED(test_wait_thread_resets),
        WATCHED(test_mutex),
        WATCHED(test_mutex_once),
        WATCHED(test_mutex_is_kept),
        WATCHED(test_mutex_timeout),
        WATCHED(test_mutex_is_abandoned),
        WATCHED(test_mutex_while_calling),
        WATCHED(test_many_mutexes),
        WATCHED(test_mutex_and_fork),
        WATCHED(test_max_threads),
        WATCHED(test_refusals),
        WATCHED(test_handle_is_closed),
        WATCHED(test_many),
        WATCHED(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
