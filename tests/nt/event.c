#include "objecttest.h"

static HANDLE create_event(EVENT_TYPE type, BOOLEAN state)
{
    HANDLE event;

    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, type, state), STATUS_SUCCESS);
    return event;
}

static HANDLE event_with(ACCESS_MASK access)
{
    HANDLE event;

    assert_int_equal(NtCreateEvent(&event, access, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    return event;
}

static EVENT_BASIC_INFORMATION query(HANDLE event)
{
    EVENT_BASIC_INFORMATION information = {77, 77};
    ULONG length = 0;

    assert_int_equal(NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), &length), 0);
    assert_int_equal(length, sizeof(information));
    return information;
}

static NTSTATUS poll(HANDLE handle)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    return NtWaitForSingleObject(handle, FALSE, &now);
}

/* A call that fails leaves 0 in place of the handle. */
static void expect_no_handle(NTSTATUS status, NTSTATUS expected, PHANDLE handle)
{
    assert_int_equal(status, expected);
    assert_null(*handle);
    *handle = (HANDLE)0x55;
}

static void creating_checks_its_parameters(void **state)
{
    HANDLE event = (HANDLE)0x55;
    ULONG objects;

    (void)state;
    /* The first use of a name creates the system's own events. */
    expect_no_handle(NtOpenEvent(&event, EVENT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\none", NULL, 0)),
                     STATUS_OBJECT_NAME_NOT_FOUND, &event);
    objects = objects_of("Event");
    assert_int_equal(NtCreateEvent(NULL, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_ACCESS_VIOLATION);
    expect_no_handle(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, (EVENT_TYPE)2, FALSE), STATUS_INVALID_PARAMETER,
                     &event);
    assert_int_equal(NtCreateEvent(NULL, EVENT_ALL_ACCESS, NULL, (EVENT_TYPE)2, FALSE), STATUS_ACCESS_VIOLATION);
    expect_no_handle(NtCreateEvent(&event, 0x8000, NULL, NotificationEvent, FALSE), STATUS_ACCESS_DENIED, &event);
    expect_no_handle(NtCreateEvent(&event, ACCESS_SYSTEM_SECURITY, NULL, NotificationEvent, FALSE),
                     STATUS_PRIVILEGE_NOT_HELD, &event);
    assert_int_equal(NtOpenEvent(NULL, EVENT_ALL_ACCESS, NULL), STATUS_ACCESS_VIOLATION);
    expect_no_handle(NtOpenEvent(&event, EVENT_ALL_ACCESS, NULL), STATUS_INVALID_PARAMETER, &event);
    assert_int_equal(objects_of("Event"), objects);
}

static void a_kernel_caller_is_not_subject_to_access(void **state)
{
    HANDLE event, opened, denied;
    LONG previous;

    (void)state;
    assert_int_equal(ZwCreateEvent(&event, 0x8000 | ACCESS_SYSTEM_SECURITY,
                                   NAMED(u"\\BaseNamedObjects\\zw", NULL, 0), NotificationEvent, TRUE),
                     STATUS_SUCCESS);
    assert_int_equal(basic_information(event).GrantedAccess, 0);
    assert_int_equal(NtSetEvent(event, &previous), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwSetEvent(event, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(ZwResetEvent(event, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(ZwPulseEvent(event, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_int_equal(ZwSetEvent(event, NULL), STATUS_SUCCESS);
    assert_int_equal(ZwClearEvent(event), STATUS_SUCCESS);
    assert_int_equal(ZwOpenEvent(&opened, EVENT_QUERY_STATE, NAMED(u"\\BaseNamedObjects\\zw", NULL, 0)),
                     STATUS_SUCCESS);
    assert_int_equal(query(opened).EventState, 0);
    assert_int_equal(ZwCreateEvent(&denied, 0x8000, NAMED(u"\\BaseNamedObjects\\zw", NULL, OBJ_OPENIF | OBJ_FORCE_ACCESS_CHECK),
                                   NotificationEvent, FALSE),
                     STATUS_ACCESS_DENIED);
    assert_null(denied);
    assert_int_equal(ZwClose(opened), STATUS_SUCCESS);
    assert_int_equal(ZwClose(event), STATUS_SUCCESS);
}

/* With no right at all an object can be created, but not opened, by either service. */
static void no_access_opens_nothing(void **state)
{
    HANDLE event, opened = (HANDLE)0x55;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, 0, NAMED(u"\\BaseNamedObjects\\no-access", NULL, 0), NotificationEvent, FALSE),
                     STATUS_SUCCESS);
    assert_int_equal(basic_information(event).GrantedAccess, 0);
    assert_int_equal(NtOpenEvent(&opened, 0, NAMED(u"\\BaseNamedObjects\\no-access", NULL, 0)), STATUS_ACCESS_DENIED);
    assert_null(opened);
    assert_int_equal(NtCreateEvent(&opened, 0, NAMED(u"\\BaseNamedObjects\\no-access", NULL, OBJ_OPENIF),
                                   NotificationEvent, FALSE),
                     STATUS_ACCESS_DENIED);
    assert_int_equal(NtOpenEvent(&opened, MAXIMUM_ALLOWED, NAMED(u"\\BaseNamedObjects\\no-access", NULL, 0)),
                     STATUS_SUCCESS);
    assert_int_equal(NtClose(opened), STATUS_SUCCESS);
    assert_int_equal(ZwOpenEvent(&opened, 0, NAMED(u"\\BaseNamedObjects\\no-access", NULL, 0)), STATUS_SUCCESS);
    assert_int_equal(NtClose(opened), STATUS_SUCCESS);
    assert_int_equal(NtClose(event), STATUS_SUCCESS);
}

static void set_reset_and_pulse_tell_the_previous_state(void **state)
{
    (void)state;
    for (int type = NotificationEvent; type <= SynchronizationEvent; type++) {
        HANDLE event = create_event((EVENT_TYPE)type, FALSE);
        LONG previous = 77;

        assert_int_equal(query(event).EventType, type);
        assert_int_equal(query(event).EventState, 0);
        assert_int_equal(NtSetEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 0);
        assert_int_equal(NtSetEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 1);
        assert_int_equal(query(event).EventState, 1);
        assert_int_equal(NtResetEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 1);
        assert_int_equal(NtResetEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 0);
        assert_int_equal(NtPulseEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 0);
        assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
        assert_int_equal(NtPulseEvent(event, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 1);
        assert_int_equal(query(event).EventState, 0);
        assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
        assert_int_equal(NtClearEvent(event), STATUS_SUCCESS);
        assert_int_equal(query(event).EventState, 0);
        close_handle(event);
    }
}

static void a_wait_consumes_a_synchronization_event_only(void **state)
{
    (void)state;
    for (int type = NotificationEvent; type <= SynchronizationEvent; type++) {
        HANDLE event = create_event((EVENT_TYPE)type, TRUE);

        assert_int_equal(poll(event), STATUS_SUCCESS);
        assert_int_equal(poll(event), type == NotificationEvent ? STATUS_SUCCESS : STATUS_TIMEOUT);
        close_handle(event);
    }
}

static void boost_is_for_synchronization_events(void **state)
{
    HANDLE notification = create_event(NotificationEvent, FALSE);
    HANDLE synchronization = create_event(SynchronizationEvent, FALSE);

    (void)state;
    assert_int_equal(NtSetEventBoostPriority(notification), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(query(notification).EventState, 0);
    assert_int_equal(NtSetEventBoostPriority(synchronization), STATUS_SUCCESS);
    assert_int_equal(query(synchronization).EventState, 1);
    close_handle(notification);
    close_handle(synchronization);
}

static NTSTATUS do_set(HANDLE event)
{
    return NtSetEvent(event, NULL);
}

static NTSTATUS do_reset(HANDLE event)
{
    return NtResetEvent(event, NULL);
}

static NTSTATUS do_pulse(HANDLE event)
{
    return NtPulseEvent(event, NULL);
}

static NTSTATUS do_query(HANDLE event)
{
    EVENT_BASIC_INFORMATION information;

    return NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL);
}

static void each_service_wants_its_access(void **state)
{
    static const struct {
        NTSTATUS (*function)(HANDLE);
        ACCESS_MASK access;
    } rows[] = {
        {do_set, EVENT_MODIFY_STATE},    {do_reset, EVENT_MODIFY_STATE}, {NtClearEvent, EVENT_MODIFY_STATE},
        {do_pulse, EVENT_MODIFY_STATE},  {NtSetEventBoostPriority, EVENT_MODIFY_STATE},
        {do_query, EVENT_QUERY_STATE},   {poll, SYNCHRONIZE},
    };
    HANDLE semaphore;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, 1), STATUS_SUCCESS);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        HANDLE with = event_with(rows[i].access);
        HANDLE without = event_with(EVENT_ALL_ACCESS & ~rows[i].access);

        assert_int_not_equal(rows[i].function(with), STATUS_ACCESS_DENIED);
        assert_int_equal(rows[i].function(without), STATUS_ACCESS_DENIED);
        assert_int_equal(rows[i].function(NULL), STATUS_INVALID_HANDLE);
        if (rows[i].function != poll) {
            assert_int_equal(rows[i].function(semaphore), STATUS_OBJECT_TYPE_MISMATCH);
            assert_int_equal(rows[i].function(NtCurrentThread()), STATUS_OBJECT_TYPE_MISMATCH);
        }
        close_handle(with);
        assert_int_equal(rows[i].function(with), STATUS_INVALID_HANDLE);
        close_handle(without);
    }
    close_handle(semaphore);
}

static void querying_checks_its_parameters(void **state)
{
    HANDLE event = create_event(NotificationEvent, TRUE);
    EVENT_BASIC_INFORMATION information[2];

    (void)state;
    assert_int_equal(NtQueryEvent(event, (EVENT_INFORMATION_CLASS)1, information, 8, NULL), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryEvent(event, EventBasicInformation, information, 7, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryEvent(event, EventBasicInformation, information, 9, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryEvent(event, EventBasicInformation, NULL, 8, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryEvent(NULL, EventBasicInformation, information, 7, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryEvent(NULL, EventBasicInformation, information, 8, NULL), STATUS_INVALID_HANDLE);
    close_handle(event);
}

static void generic_rights_are_mapped(void **state)
{
    static const struct {
        ACCESS_MASK asked, granted;
    } rows[] = {
        {GENERIC_READ, READ_CONTROL | EVENT_QUERY_STATE},
        {GENERIC_WRITE, READ_CONTROL | EVENT_MODIFY_STATE},
        {GENERIC_EXECUTE, READ_CONTROL | SYNCHRONIZE},
        {GENERIC_ALL, EVENT_ALL_ACCESS},
        {MAXIMUM_ALLOWED, EVENT_ALL_ACCESS},
        {0, 0},
        {SYNCHRONIZE | GENERIC_READ, SYNCHRONIZE | READ_CONTROL | EVENT_QUERY_STATE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        HANDLE event = event_with(rows[i].asked);

        assert_int_equal(basic_information(event).GrantedAccess, rows[i].granted);
        close_handle(event);
    }
}

static void wait_for_event(void *argument, unsigned index)
{
    (void)index;
    assert_int_equal(NtWaitForSingleObject(argument, FALSE, NULL), STATUS_SUCCESS);
}

static void waiters_are_released(void **state)
{
    HANDLE event = create_event(NotificationEvent, FALSE);
    test_threads *threads = start_threads(4, wait_for_event, event);

    (void)state;
    assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
    join_threads(threads, 60);
    close_handle(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_checks_its_parameters),
        cmocka_unit_test(a_kernel_caller_is_not_subject_to_access),
        cmocka_unit_test(no_access_opens_nothing),
        cmocka_unit_test(set_reset_and_pulse_tell_the_previous_state),
        cmocka_unit_test(a_wait_consumes_a_synchronization_event_only),
        cmocka_unit_test(boost_is_for_synchronization_events),
        cmocka_unit_test(each_service_wants_its_access),
        cmocka_unit_test(querying_checks_its_parameters),
        cmocka_unit_test(generic_rights_are_mapped),
        cmocka_unit_test(waiters_are_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
