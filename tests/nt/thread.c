/* thread.c: creating, suspending, alerting and opening threads. */
#include "threadtest.h"

#include <pthread.h>
#include <stdio.h>

#define ENTIRE ((ULONG_PTR)-1)

static OBJECT_ATTRIBUTES no_attributes = {.Length = sizeof(OBJECT_ATTRIBUTES)};

static void the_exit_code_is_what_the_routine_returns(void **state)
{
    static const NTSTATUS codes[] = {0, 1, -1, STATUS_PENDING, STATUS_ACCESS_DENIED, MINLONG, MAXLONG};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(codes); i++) {
        HANDLE thread;

        assert_int_equal(create(&thread, return_argument, (PVOID)(ULONG_PTR)(ULONG)codes[i], 0), 0);
        assert_true(((ULONG_PTR)thread & 3) == 0);
        join(thread);
        assert_int_equal(basic_of(thread).ExitStatus, codes[i]);
        join(thread);
        close_handle(thread);
    }
}

static NTSTATUS create_with_list(struct birth *birth, PPS_ATTRIBUTE_LIST list)
{
    return NtCreateThreadEx(&birth->handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), look_at_birth, birth, 0, 0, 0,
                            0, list);
}

/* The new thread may read at once what its creator receives. */
static void handle_and_id_are_there_when_the_thread_begins(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct birth birth = {0};
        SIZE_T written = 0;
        struct {
            SIZE_T length;
            PS_ATTRIBUTE attributes[2];
        } list = {sizeof(list),
                  {{PS_ATTRIBUTE_CLIENT_ID, sizeof(CLIENT_ID), {.ValuePtr = &birth.id}, &written},
                   {PS_ATTRIBUTE_TEB_ADDRESS, sizeof(PVOID), {.ValuePtr = &birth.teb}, NULL}}};

        assert_int_equal(create_with_list(&birth, (PPS_ATTRIBUTE_LIST)&list), 0);
        join(birth.handle);
        assert_int_equal(written, sizeof(CLIENT_ID));
        assert_ptr_equal(birth.seen_handle, birth.handle);
        assert_int_equal(HandleToULong(birth.seen_id.UniqueThread), birth.own_id);
        assert_int_equal(HandleToULong(birth.seen_id.UniqueProcess), getpid());
        assert_ptr_equal(birth.teb, birth.own_teb);
        assert_ptr_equal(basic_of(birth.handle).ClientId.UniqueThread, birth.id.UniqueThread);
        assert_ptr_equal(basic_of(birth.handle).ClientId.UniqueProcess, birth.id.UniqueProcess);
        assert_ptr_equal(basic_of(birth.handle).TebBaseAddress, birth.teb);
        close_handle(birth.handle);
    }
}

static void attribute_lists(void **state)
{
    GROUP_AFFINITY one = {.Mask = 1}, none = {.Mask = 0};
    PROCESSOR_NUMBER first = {0}, beyond = {.Group = 999};
    CLIENT_ID id;
    struct {
        NTSTATUS status;
        SIZE_T length;
        PS_ATTRIBUTE attribute;
    } rows[] = {
        {STATUS_SUCCESS, 40, {PS_ATTRIBUTE_CLIENT_ID, sizeof(id), {.ValuePtr = &id}, NULL}},
        {STATUS_SUCCESS, 8, {ENTIRE, 0, {0}, NULL}},
        {STATUS_INVALID_PARAMETER, 7, {PS_ATTRIBUTE_CLIENT_ID, sizeof(id), {.ValuePtr = &id}, NULL}},
        {STATUS_INVALID_PARAMETER, 39, {PS_ATTRIBUTE_CLIENT_ID, sizeof(id), {.ValuePtr = &id}, NULL}},
        {STATUS_INVALID_PARAMETER, 40, {PS_ATTRIBUTE_CLIENT_ID, sizeof(id) - 1, {.ValuePtr = &id}, NULL}},
        {STATUS_ACCESS_VIOLATION, 40, {PS_ATTRIBUTE_CLIENT_ID, sizeof(id), {0}, NULL}},
        {STATUS_INVALID_PARAMETER, 40, {PsAttributeImageName | PS_ATTRIBUTE_INPUT, 8, {.ValuePtr = &id}, NULL}},
        {STATUS_SUCCESS, 40, {PS_ATTRIBUTE_GROUP_AFFINITY, sizeof(one), {.ValuePtr = &one}, NULL}},
        {STATUS_INVALID_PARAMETER, 40, {PS_ATTRIBUTE_GROUP_AFFINITY, sizeof(none), {.ValuePtr = &none}, NULL}},
        {STATUS_SUCCESS, 40, {PS_ATTRIBUTE_IDEAL_PROCESSOR, sizeof(first), {.ValuePtr = &first}, NULL}},
        {STATUS_INVALID_PARAMETER, 40, {PS_ATTRIBUTE_IDEAL_PROCESSOR, sizeof(beyond), {.ValuePtr = &beyond}, NULL}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        struct birth birth = {.handle = (HANDLE)0x55};
        PS_ATTRIBUTE_LIST list = {rows[i].length, {rows[i].attribute}};

        assert_int_equal(create_with_list(&birth, &list), rows[i].status);
        if (NT_SUCCESS(rows[i].status)) {
            join(birth.handle);
            close_handle(birth.handle);
        } else {
            assert_null(birth.handle);
            assert_int_equal(birth.ran, 0);
        }
    }
}

/* The first attribute that is wrong decides. */
static void a_wrong_attribute_before_a_right_one(void **state)
{
    struct birth birth = {.handle = (HANDLE)0x55};
    struct {
        SIZE_T length;
        PS_ATTRIBUTE attributes[2];
    } list = {sizeof(list),
              {{PS_ATTRIBUTE_CLIENT_ID, sizeof(CLIENT_ID), {0}, NULL},
               {PS_ATTRIBUTE_TEB_ADDRESS, sizeof(PVOID), {.ValuePtr = &birth.teb}, NULL}}};

    (void)state;
    assert_int_equal(create_with_list(&birth, (PPS_ATTRIBUTE_LIST)&list), STATUS_ACCESS_VIOLATION);
    assert_null(birth.handle);
    assert_int_equal(birth.ran, 0);
}

static void what_cannot_be_created(void **state)
{
    OBJECT_ATTRIBUTES permanent = {.Length = sizeof(permanent), .Attributes = OBJ_PERMANENT};
    HANDLE thread = (HANDLE)0x55;

    (void)state;
    assert_int_equal(create(NULL, return_argument, NULL, 0), STATUS_ACCESS_VIOLATION);
    assert_int_equal(create(&thread, NULL, NULL, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(create(&thread, return_argument, NULL, 0x80000000), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, &permanent, NtCurrentProcess(), return_argument, NULL,
                                      0, 0, 0, 0, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtCreateThreadEx(&thread, 0x10000000 | ACCESS_SYSTEM_SECURITY, NULL, NtCurrentProcess(),
                                      return_argument, NULL, 0, 0, 0, 0, NULL),
                     STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentThread(), return_argument, NULL, 0, 0,
                                      0, 0, NULL),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, (HANDLE)0x4444, return_argument, NULL, 0, 0, 0,
                                      0, NULL),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), return_argument, NULL, 0, 0,
                                      (SIZE_T)1 << 46, 0, NULL),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(thread);
}

/* When a host resource runs out, nothing is leaked. Threads of earlier cases may still be ending. */
static void a_creation_that_fails_leaks_nothing(void **state)
{
    /* Threads of the tests before may still be ending. */
    ULONG objects = __atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED);
    ULONG handles = ObpThreadType.TotalNumberOfHandles;
    HANDLE thread;

    (void)state;
    for (int round = 0; round < 20; round++)
        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), return_argument, NULL,
                                          round & 1, 0, (SIZE_T)1 << 46, 0, NULL),
                         STATUS_INSUFFICIENT_RESOURCES);
    assert_true(__atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED) <= objects);
    assert_int_equal(ObpThreadType.TotalNumberOfHandles, handles);
}

static NTSTATUS measure_stack(PVOID argument)
{
    pthread_attr_t attributes;
    size_t size = 0;
    void *base;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &base, &size);
        pthread_attr_destroy(&attributes);
    }
    *(size_t *)argument = size;
    return 0;
}

static void the_stack_is_as_large_as_asked_for(void **state)
{
    static const struct {
        SIZE_T commit, reserve, least;
    } rows[] = {{0, 0, 65536}, {0x300000, 0, 0x300000}, {0x10000, 0x500000, 0x500000}, {0x400000, 0x10000, 0x400000}};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        size_t size = 0;
        HANDLE thread;

        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), measure_stack, &size, 0,
                                          0, rows[i].commit, rows[i].reserve, NULL),
                         0);
        join(thread);
        assert_true(size >= rows[i].least); /* the host may use a larger one again */
        close_handle(thread);
    }
}

/* Suspending. */

static void a_thread_made_suspended_does_not_run(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct birth birth = {0};
        ULONG count = 99;

        assert_int_equal(create(&birth.handle, look_at_birth, &birth, THREAD_CREATE_FLAGS_CREATE_SUSPENDED), 0);
        if (round % 10 == 0)
            usleep(2000);
        assert_int_equal(__atomic_load_n(&birth.ran, __ATOMIC_ACQUIRE), 0);
        assert_int_equal(NtQueryInformationThread(birth.handle, ThreadSuspendCount, &count, sizeof(count), NULL), 0);
        assert_int_equal(count, 1);
        assert_int_equal(NtSuspendThread(birth.handle, &count), 0);
        assert_int_equal(count, 1);
        assert_int_equal(NtResumeThread(birth.handle, &count), 0);
        assert_int_equal(count, 2);
        assert_int_equal(__atomic_load_n(&birth.ran, __ATOMIC_ACQUIRE), 0);
        assert_int_equal(NtResumeThread(birth.handle, &count), 0);
        assert_int_equal(count, 1);
        join(birth.handle);
        assert_int_equal(birth.ran, 1);
        assert_int_equal(NtResumeThread(birth.handle, &count), 0);
        assert_int_equal(count, 0);
        close_handle(birth.handle);
    }
}

static void the_suspend_count_has_a_limit(void **state)
{
    struct birth birth = {0};
    ULONG count;

    (void)state;
    assert_int_equal(create(&birth.handle, look_at_birth, &birth, THREAD_CREATE_FLAGS_CREATE_SUSPENDED), 0);
    for (ULONG i = 1; i < MAXIMUM_SUSPEND_COUNT; i++)
        assert_int_equal(NtSuspendThread(birth.handle, NULL), 0);
    count = 99;
    assert_int_equal(NtSuspendThread(birth.handle, &count), STATUS_SUSPEND_COUNT_EXCEEDED);
    assert_int_equal(count, 99);
    for (ULONG i = MAXIMUM_SUSPEND_COUNT; i > 0; i--) {
        assert_int_equal(birth.ran, 0);
        assert_int_equal(NtResumeThread(birth.handle, &count), 0);
        assert_int_equal(count, i);
    }
    join(birth.handle);
    assert_int_equal(NtSuspendThread(birth.handle, &count), STATUS_THREAD_IS_TERMINATING);
    close_handle(birth.handle);
}

static NTSTATUS suspend_itself(PVOID argument)
{
    struct birth *birth = argument;

    __atomic_store_n(&birth->ran, 1, __ATOMIC_RELEASE);
    if (NtSuspendThread(NtCurrentThread(), NULL) != STATUS_SUCCESS)
        return 1;
    __atomic_store_n(&birth->ran, 2, __ATOMIC_RELEASE);
    return 0;
}

static void a_thread_suspends_itself(void **state)
{
    struct birth birth = {0};
    ULONG count;

    (void)state;
    assert_int_equal(create(&birth.handle, suspend_itself, &birth, 0), 0);
    do {
        HalDispatch.Yield();
        assert_int_equal(NtQueryInformationThread(birth.handle, ThreadSuspendCount, &count, sizeof(count), NULL), 0);
    } while (count == 0);
    usleep(2000);
    assert_int_equal(__atomic_load_n(&birth.ran, __ATOMIC_ACQUIRE), 1);
    assert_int_equal(NtResumeThread(birth.handle, &count), 0);
    assert_int_equal(count, 1);
    join(birth.handle);
    assert_int_equal(birth.ran, 2);
    assert_int_equal(basic_of(birth.handle).ExitStatus, 0);
    close_handle(birth.handle);
}

/* Alerts. */

static NTSTATUS wait_alertable(PVOID argument)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    (void)argument;
    return NtDelayExecution(TRUE, &timeout);
}

static void alerts(void **state)
{
    HANDLE thread;
    ULONG count = 99;

    (void)state;
    assert_int_equal(create(&thread, wait_alertable, NULL, 0), 0);
    assert_int_equal(NtAlertThread(thread), 0);
    join(thread);
    assert_int_equal(basic_of(thread).ExitStatus, STATUS_ALERTED);
    close_handle(thread);

    assert_int_equal(create(&thread, wait_alertable, NULL, THREAD_CREATE_FLAGS_CREATE_SUSPENDED), 0);
    assert_int_equal(NtAlertResumeThread(thread, &count), 0);
    assert_int_equal(count, 1);
    join(thread);
    assert_int_equal(basic_of(thread).ExitStatus, STATUS_ALERTED);
    close_handle(thread);
    assert_int_equal(NtAlertThread((HANDLE)0x4444), STATUS_INVALID_HANDLE);
}

/* Opening. */

static void opening_by_id(void **state)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"x");
    OBJECT_ATTRIBUTES named = {.Length = sizeof(named), .ObjectName = &name};
    CLIENT_ID id = {NULL, PsGetCurrentThreadId()};
    CLIENT_ID wrong_process = {ULongToHandle(1), PsGetCurrentThreadId()};
    CLIENT_ID nobody = {NULL, ULongToHandle(0x7ffffff0)};
    CLIENT_ID zero = {PsGetCurrentProcessId(), NULL};
    HANDLE thread = (HANDLE)0x55;

    (void)state;
    assert_int_equal(NtOpenThread(NULL, THREAD_ALL_ACCESS, &no_attributes, &id), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, NULL, &id), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &no_attributes, NULL), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &named, &id), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &no_attributes, &nobody), STATUS_INVALID_CID);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &no_attributes, &zero), STATUS_INVALID_CID);
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &no_attributes, &wrong_process), STATUS_INVALID_CID);
    assert_null(thread);
    assert_int_equal(NtOpenThread(&thread, 0, &no_attributes, &id), STATUS_ACCESS_DENIED);
    assert_int_equal(NtOpenThread(&thread, THREAD_QUERY_INFORMATION, &no_attributes, &id), 0);
    assert_ptr_equal(basic_of(thread).ClientId.UniqueThread, id.UniqueThread);
    assert_int_equal(NtSuspendThread(thread, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtResumeThread(thread, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtAlertThread(thread), STATUS_ACCESS_DENIED);
    assert_int_equal(NtQueueApcThread(thread, (PPS_APC_ROUTINE)(PVOID)close_handle, NULL, NULL, NULL),
                     STATUS_ACCESS_DENIED);
    close_handle(thread);
    id.UniqueProcess = PsGetCurrentProcessId();
    assert_int_equal(NtOpenThread(&thread, SYNCHRONIZE, &no_attributes, &id), 0);
    close_handle(thread);
}

/* A handle keeps the object of a thread that has ended, and its id with it. */
static void a_thread_that_has_ended_is_still_there(void **state)
{
    HANDLE thread, again;
    CLIENT_ID id;

    (void)state;
    assert_int_equal(create(&thread, return_argument, (PVOID)5, 0), 0);
    join(thread);
    id = basic_of(thread).ClientId;
    assert_int_equal(NtOpenThread(&again, THREAD_ALL_ACCESS, &no_attributes, &id), 0);
    assert_int_equal(basic_of(again).ExitStatus, 5);
    close_handle(thread);
    assert_int_equal(basic_of(again).ExitStatus, 5);
    close_handle(again);
    watchdog_start(60);
    while (NtOpenThread(&again, THREAD_ALL_ACCESS, &no_attributes, &id) == STATUS_SUCCESS)
        close_handle(again);
    watchdog_stop();
}


#define CROWD 1000

static void a_thousand_threads(void **state)
{
    static HANDLE threads[CROWD];
    KEVENT go;

    (void)state;
    KeInitializeEvent(&go, NotificationEvent, FALSE);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(NtCreateThreadEx(&threads[i], THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), stay, &go, i % 2, 0,
                                          0x10000, 0, NULL),
                         0);
    for (int i = 0; i < CROWD; i += 2)
        assert_int_equal(basic_of(threads[i]).ExitStatus, STATUS_PENDING);
    KeSetEvent(&go, 0, FALSE);
    for (int i = 1; i < CROWD; i += 2)
        assert_int_equal(NtResumeThread(threads[i], NULL), 0);
    for (int i = 0; i < CROWD; i++) {
        join(threads[i]);
        close_handle(threads[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_code_is_what_the_routine_returns),
        cmocka_unit_test(handle_and_id_are_there_when_the_thread_begins),
        cmocka_unit_test(attribute_lists),
        cmocka_unit_test(a_wrong_attribute_before_a_right_one),
        cmocka_unit_test(what_cannot_be_created),
        cmocka_unit_test(a_creation_that_fails_leaks_nothing),
        cmocka_unit_test(the_stack_is_as_large_as_asked_for),
        cmocka_unit_test(a_thread_made_suspended_does_not_run),
        cmocka_unit_test(the_suspend_count_has_a_limit),
        cmocka_unit_test(a_thread_suspends_itself),
        cmocka_unit_test(alerts),
        cmocka_unit_test(opening_by_id),
        cmocka_unit_test(a_thread_that_has_ended_is_still_there),
        cmocka_unit_test(a_thousand_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
