/* NtWaitForManyObjects: what is checked, in which order, what is consumed, and what keeps the object alive. */
#include "handles.h"

#include <interlock/ps.h>

#define COUNT 500

static HANDLE handles[COUNT];
static PKEVENT events[COUNT];

static void make_handles(EVENT_TYPE type)
{
    for (ULONG i = 0; i < COUNT; i += 1) {
        handles[i] = make_event(type, FALSE, &events[i]);
    }
}

static void close_handles(void)
{
    for (ULONG i = 0; i < COUNT; i += 1) {
        close_handle(handles[i]);
    }
    assert_int_equal(live_objects(), 0);
}

static NTSTATUS poll_many(ULONG count, HANDLE *many, WAIT_TYPE type, PULONG index)
{
    *index = 4711;
    return NtWaitForManyObjects(count, many, type, FALSE, NO_TIME, index);
}

static void test_any(void **state)
{
    ULONG index;
    (void)state;
    make_handles(SynchronizationEvent);
    KeSetEvent(events[0x102], 0, FALSE);
    KeSetEvent(events[400], 0, FALSE);
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_WAIT_0);
    assert_int_equal(index, 0x102);
    assert_int_equal(NtWaitForManyObjects(COUNT, handles, WaitAny, TRUE, NULL, &index), STATUS_WAIT_0);
    assert_int_equal(index, 400);
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_TIMEOUT);
    assert_int_equal(index, 0);
    assert_int_equal(NtWaitForManyObjects(COUNT, handles, WaitAny, FALSE, NO_TIME, NULL), STATUS_TIMEOUT);
    close_handles();
}

static void test_all(void **state)
{
    ULONG index;
    (void)state;
    make_handles(SynchronizationEvent);
    for (ULONG i = 0; i + 1 < COUNT; i += 1) {
        KeSetEvent(events[i], 0, FALSE);
    }
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_TIMEOUT);
    assert_int_equal(KeReadStateEvent(events[7]), 1);
    KeSetEvent(events[COUNT - 1], 0, FALSE);
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_WAIT_0);
    assert_int_equal(index, 0);
    for (ULONG i = 0; i < COUNT; i += 1) {
        assert_int_equal(KeReadStateEvent(events[i]), 0);
    }
    close_handles();
}

static void test_bad_input(void **state)
{
    ULONG index = 4711;
    HANDLE last;
    (void)state;
    make_handles(SynchronizationEvent);
    KeSetEvent(events[0], 0, FALSE);
    assert_int_equal(NtWaitForManyObjects(0, handles, WaitAny, FALSE, NULL, &index), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForManyObjects(65536, handles, WaitAny, FALSE, NULL, &index), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForManyObjects(MAXULONG, NULL, WaitAll, FALSE, NULL, &index), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForManyObjects(COUNT, handles, WaitNotification, FALSE, NULL, &index),
                     STATUS_INVALID_PARAMETER_3);
    assert_int_equal(NtWaitForManyObjects(COUNT, NULL, WaitAny, FALSE, NULL, &index), STATUS_ACCESS_VIOLATION);
    assert_int_equal(index, 4711);
    last = handles[COUNT - 1];
    handles[COUNT - 1] = NtCurrentThread();
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_INVALID_HANDLE);
    handles[COUNT - 1] = closed_handle();
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_INVALID_HANDLE);
    handles[COUNT - 1] = same_object(last, ALL_ACCESS & ~SYNCHRONIZE);
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_ACCESS_DENIED);
    close_handle(handles[COUNT - 1]);
    handles[COUNT - 1] = same_object(handles[3], SYNCHRONIZE);
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(KeReadStateEvent(events[0]), 1);
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_WAIT_0);
    assert_int_equal(index, 0);
    close_handle(last);
    close_handles();
}

static void test_most(void **state)
{
    static HANDLE most[KE_MAXIMUM_MANY_OBJECTS];
    PKEVENT event;
    ULONG index;
    (void)state;
    most[0] = make_event(NotificationEvent, FALSE, &event);
    for (ULONG i = 1; i < KE_MAXIMUM_MANY_OBJECTS; i += 1) {
        most[i] = most[0];
    }
    assert_int_equal(poll_many(KE_MAXIMUM_MANY_OBJECTS, most, WaitAny, &index), STATUS_TIMEOUT);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(poll_many(KE_MAXIMUM_MANY_OBJECTS, most, WaitAny, &index), STATUS_WAIT_0);
    close_handle(most[0]);
    assert_int_equal(live_objects(), 0);
}

/* Objects that are always signaled: any finds them at their place, all omits them, and still detects a duplicate. */
static void test_always_signaled(void **state)
{
    ULONG index;
    HANDLE constant = make_constant(), events_last = NULL;
    (void)state;
    make_handles(SynchronizationEvent);
    events_last = handles[COUNT - 1];
    handles[COUNT - 1] = constant;
    assert_int_equal(poll_many(COUNT, handles, WaitAny, &index), STATUS_WAIT_0);
    assert_int_equal(index, COUNT - 1);
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_TIMEOUT);
    for (ULONG i = 0; i + 1 < COUNT; i += 1) {
        KeSetEvent(events[i], 0, FALSE);
    }
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_WAIT_0);
    assert_int_equal(poll_many(1, &constant, WaitAll, &index), STATUS_WAIT_0);
    HANDLE pair[] = {constant, make_constant()}; /* two objects, one dispatcher header */
    assert_int_equal(poll_many(2, pair, WaitAll, &index), STATUS_WAIT_0);
    close_handle(pair[1]);
    HANDLE first = handles[0];
    handles[0] = constant;
    assert_int_equal(poll_many(COUNT, handles, WaitAll, &index), STATUS_INVALID_PARAMETER_MIX);
    handles[0] = first;
    close_handle(events_last);
    close_handles();
}

/* Threads, from their handles: the wait ends with the one that ends. */
static NTSTATUS NTAPI wait_for_event(PVOID event)
{
    KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
    return 0;
}

static void test_thread_handles(void **state)
{
    HANDLE many[70], threads[2];
    KEVENT end[2];
    ULONG index;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(many); i += 1) {
        many[i] = make_event(SynchronizationEvent, FALSE, NULL);
    }
    for (ULONG i = 0; i < 2; i += 1) {
        KeInitializeEvent(&end[i], NotificationEvent, FALSE);
        assert_int_equal(NtCreateThreadEx(&threads[i], THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), wait_for_event,
                                          &end[i], 0, 0, 0, 0, NULL), STATUS_SUCCESS);
        close_handle(many[66 + i]);
        many[66 + i] = threads[i];
    }
    KeSetEvent(&end[1], 0, FALSE);
    assert_int_equal(NtWaitForManyObjects(ARRAYSIZE(many), many, WaitAny, FALSE, NULL, &index), STATUS_WAIT_0);
    assert_int_equal(index, 67);
    KeSetEvent(&end[0], 0, FALSE);
    assert_int_equal(NtWaitForManyObjects(2, threads, WaitAll, FALSE, NULL, &index), STATUS_WAIT_0);
    for (ULONG i = 0; i < ARRAYSIZE(many); i += 1) {
        close_handle(many[i]);
    }
    assert_int_equal(live_objects(), 0);
}

/* Closing the handles under the wait: the wait keeps the objects. */
typedef struct sleeper {
    actor actor;
    NTSTATUS status;
    ULONG index;
} sleeper;

static void sleep_on_many(void *argument)
{
    sleeper *s = argument;
    s->status = NtWaitForManyObjects(COUNT, handles, WaitAny, FALSE, NULL, &s->index);
}

static void test_close_under_a_waiter(void **state)
{
    sleeper s;
    (void)state;
    make_handles(SynchronizationEvent);
    start_actor(&s.actor);
    tell(&s.actor, sleep_on_many, &s);
    await(__atomic_load_n(&s.actor.thread->State, __ATOMIC_ACQUIRE) == Waiting);
    for (ULONG i = 0; i < COUNT; i += 1) {
        close_handle(handles[i]);
    }
    assert_int_equal(live_objects(), COUNT);
    KeSetEvent(events[COUNT - 1], 0, FALSE);
    end_actor(&s.actor);
    assert_int_equal(s.status, STATUS_WAIT_0);
    assert_int_equal(s.index, COUNT - 1);
    assert_int_equal(live_objects(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_any),            WATCHED(test_all),            WATCHED(test_bad_input),
        WATCHED(test_most),           WATCHED(test_always_signaled),
        WATCHED(test_thread_handles), WATCHED(test_close_under_a_waiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
