#include "objecttest.h"

static const LARGE_INTEGER now = {.QuadPart = 0};
#define NOW ((PLARGE_INTEGER)&now)

static HANDLE create_keyed_event(void)
{
    HANDLE event;

    assert_int_equal(NtCreateKeyedEvent(&event, KEYEDEVENT_ALL_ACCESS, NULL, 0), STATUS_SUCCESS);
    return event;
}

static void creating_checks_its_parameters(void **state)
{
    HANDLE event;

    (void)state;
    assert_int_equal(NtCreateKeyedEvent(NULL, KEYEDEVENT_ALL_ACCESS, NULL, 1), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCreateKeyedEvent(&event, KEYEDEVENT_ALL_ACCESS, NULL, 1), STATUS_INVALID_PARAMETER_4);
    assert_int_equal(NtCreateKeyedEvent(&event, 0x8000, NULL, 0), STATUS_ACCESS_DENIED);
}

static void an_odd_key_is_refused_before_the_handle(void **state)
{
    HANDLE event = create_keyed_event();

    (void)state;
    for (int i = 0; i < 3; i++) {
        HANDLE handle = i == 0 ? event : i == 1 ? NULL : (HANDLE)0x7ffffff0;

        assert_int_equal(NtWaitForKeyedEvent(handle, (PVOID)1, FALSE, NOW), STATUS_INVALID_PARAMETER_1);
        assert_int_equal(NtReleaseKeyedEvent(handle, (PVOID)1, FALSE, NOW), STATUS_INVALID_PARAMETER_1);
    }
    assert_int_equal(NtWaitForKeyedEvent((HANDLE)0x7ffffff0, (PVOID)2, FALSE, NOW), STATUS_INVALID_HANDLE);
    assert_int_equal(NtReleaseKeyedEvent(NtCurrentThread(), NULL, FALSE, NOW), STATUS_OBJECT_TYPE_MISMATCH);
    close_handle(event);
}

static void each_side_wants_its_access(void **state)
{
    HANDLE waiter, releaser;

    (void)state;
    assert_int_equal(NtCreateKeyedEvent(&waiter, KEYEDEVENT_WAIT, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(NtCreateKeyedEvent(&releaser, KEYEDEVENT_WAKE, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(NtWaitForKeyedEvent(waiter, NULL, FALSE, NOW), STATUS_TIMEOUT);
    assert_int_equal(NtReleaseKeyedEvent(waiter, NULL, FALSE, NOW), STATUS_ACCESS_DENIED);
    assert_int_equal(NtWaitForKeyedEvent(releaser, NULL, FALSE, NOW), STATUS_ACCESS_DENIED);
    assert_int_equal(NtReleaseKeyedEvent(releaser, NULL, FALSE, NOW), STATUS_TIMEOUT);
    close_handle(waiter);
    close_handle(releaser);
}

struct meeting {
    HANDLE waits, releases;
    PVOID key;
};

static void meet(void *argument, unsigned index)
{
    struct meeting *meeting = argument;

    if (index % 2)
        assert_int_equal(NtWaitForKeyedEvent(meeting->waits, meeting->key, FALSE, NULL), STATUS_SUCCESS);
    else
        assert_int_equal(NtReleaseKeyedEvent(meeting->releases, meeting->key, FALSE, NULL), STATUS_SUCCESS);
}

static void both_sides_meet(void **state)
{
    struct meeting meeting = {create_keyed_event(), NULL, NULL};

    (void)state;
    meeting.releases = meeting.waits;
    run_threads(6, 60, meet, &meeting);
    meeting.key = (PVOID)0x1000;
    run_threads(6, 60, meet, &meeting);
    close_handle(meeting.waits);
    meeting.waits = meeting.releases = NULL;
    run_threads(6, 60, meet, &meeting);
}

static void two_keyed_events_do_not_meet(void **state)
{
    HANDLE first = create_keyed_event(), second = create_keyed_event();
    struct meeting meeting = {first, first, (PVOID)0x20};
    test_threads *waiter;
    LARGE_INTEGER moment = {.QuadPart = -100000};

    (void)state;
    waiter = start_threads(1, meet, &meeting); /* index 0: releases */
    assert_int_equal(NtWaitForKeyedEvent(second, meeting.key, FALSE, &moment), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForKeyedEvent(NULL, meeting.key, FALSE, &moment), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForKeyedEvent(first, (PVOID)0x22, FALSE, &moment), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForKeyedEvent(first, meeting.key, FALSE, NULL), STATUS_SUCCESS);
    join_threads(waiter, 60);
    close_handle(first);
    close_handle(second);
}

static void the_global_one_has_a_name(void **state)
{
    HANDLE global;
    struct meeting meeting = {NULL, NULL, (PVOID)0x40};

    (void)state;
    assert_int_equal(NtOpenKeyedEvent(&global, KEYEDEVENT_ALL_ACCESS,
                                      NAMED(u"\\KernelObjects\\CritSecOutOfMemoryEvent", NULL, 0)),
                     STATUS_SUCCESS);
    meeting.waits = global;
    run_threads(2, 60, meet, &meeting);
    meeting.waits = NULL;
    meeting.releases = global;
    run_threads(2, 60, meet, &meeting);
    close_handle(global);
    assert_int_equal(NtOpenKeyedEvent(&global, KEYEDEVENT_ALL_ACCESS,
                                      NAMED(u"\\KernelObjects\\CritSecOutOfMemoryEvent", NULL, 0)),
                     STATUS_SUCCESS);
    close_handle(global);
}

static void the_handle_itself_is_signaled(void **state)
{
    HANDLE event;

    (void)state;
    assert_int_equal(NtCreateKeyedEvent(&event, KEYEDEVENT_ALL_ACCESS | SYNCHRONIZE, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(event, FALSE, NOW), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(event, FALSE, NOW), STATUS_SUCCESS);
    close_handle(event);
}

static void note_apc(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    *(int *)context += 1;
}

static void take_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc, (void)routine, (void)context, (void)argument1, (void)argument2;
}

static void an_alertable_wait_runs_apcs_outside(void **state)
{
    HANDLE event = create_keyed_event();
    ULONG before = basic_information(event).PointerCount;
    int ran = 0;
    KAPC apc;

    (void)state;
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, take_apc, NULL, note_apc, UserMode, &ran);
    assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
    assert_int_equal(NtWaitForKeyedEvent(event, NULL, FALSE, NOW), STATUS_TIMEOUT);
    assert_int_equal(ran, 0);
    assert_int_equal(NtWaitForKeyedEvent(event, NULL, TRUE, NULL), STATUS_USER_APC);
    assert_int_equal(ran, 1);
    assert_int_equal(basic_information(event).HandleCount, 1);
    assert_true(basic_information(event).PointerCount <= before);
    close_handle(event);
}

static void end_in_apc(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    NtSetEvent(context, NULL);
    NtTerminateThread(NtCurrentThread(), STATUS_SUCCESS);
}

static void wait_until_ended(void *argument, unsigned index)
{
    HANDLE *handles = argument;
    KAPC apc;

    (void)index;
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, take_apc, NULL, end_in_apc, UserMode, handles[1]);
    KeInsertQueueApc(&apc, NULL, NULL, 0);
    NtWaitForKeyedEvent(handles[0], (PVOID)0x60, TRUE, NULL);
    fail();
}

/* A thread that ends in an APC has left the keyed event: a release does not find it, and the object is freed with its
   handle. */
static void an_apc_may_end_the_thread(void **state)
{
    ULONG objects = objects_of("KeyedEvent");
    HANDLE handles[2] = {create_keyed_event()};

    (void)state;
    assert_int_equal(NtCreateEvent(&handles[1], EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    test_threads *threads = start_threads(1, wait_until_ended, handles);
    assert_int_equal(NtWaitForSingleObject(handles[1], FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(NtReleaseKeyedEvent(handles[0], (PVOID)0x60, FALSE, NOW), STATUS_TIMEOUT);
    join_threads(threads, 60);
    close_handle(handles[0]);
    close_handle(handles[1]);
    assert_int_equal(objects_of("KeyedEvent"), objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_checks_its_parameters),
        cmocka_unit_test(an_odd_key_is_refused_before_the_handle),
        cmocka_unit_test(each_side_wants_its_access),
        cmocka_unit_test(both_sides_meet),
        cmocka_unit_test(two_keyed_events_do_not_meet),
        cmocka_unit_test(the_global_one_has_a_name),
        cmocka_unit_test(the_handle_itself_is_signaled),
        cmocka_unit_test(an_alertable_wait_runs_apcs_outside),
        cmocka_unit_test(an_apc_may_end_the_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
