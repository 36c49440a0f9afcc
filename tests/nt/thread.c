#include "support.h"

#include <interlock/nt.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "ke/wait.h"
#include "ps/psp.h"

#define ENTIRE ((ULONG_PTR)-1)

static OBJECT_ATTRIBUTES no_attributes = {.Length = sizeof(OBJECT_ATTRIBUTES)};

static NTSTATUS return_argument(PVOID argument)
{
    return (NTSTATUS)(ULONG_PTR)argument;
}

static NTSTATUS create(PHANDLE thread, PUSER_THREAD_START_ROUTINE routine, PVOID argument, ULONG flags)
{
    return NtCreateThreadEx(thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), routine, argument, flags, 0, 0, 0,
                            NULL);
}

static void join(HANDLE thread)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(NtWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
}

static void close_handle(HANDLE handle)
{
    assert_int_equal(ObCloseHandle(handle, UserMode), STATUS_SUCCESS);
}

static THREAD_BASIC_INFORMATION basic_of(HANDLE thread)
{
    THREAD_BASIC_INFORMATION basic;
    ULONG length = 0;

    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), &length), 0);
    assert_int_equal(length, 48);
    return basic;
}

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

struct birth {
    HANDLE handle;
    CLIENT_ID id;
    PVOID teb;
    HANDLE seen_handle;
    CLIENT_ID seen_id;
    ULONG own_id;
    PVOID own_teb;
    volatile ULONG ran;
};

static NTSTATUS look_at_birth(PVOID argument)
{
    struct birth *birth = argument;

    birth->seen_handle = birth->handle;
    birth->seen_id = birth->id;
    birth->own_id = (ULONG)gettid();
    birth->own_teb = PspCurrentTeb();
    __atomic_store_n(&birth->ran, 1, __ATOMIC_RELEASE);
    return 0;
}

static NTSTATUS create_with_list(struct birth *birth, PPS_ATTRIBUTE_LIST list)
{
    return NtCreateThreadEx(&birth->handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), look_at_birth, birth, 0, 0, 0,
                            0, list);
}

/* The new thread may look at once at what its creator is told. */
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
            assert_ptr_equal(birth.handle, (HANDLE)0x55);
            assert_int_equal(birth.ran, 0);
        }
    }
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
    assert_ptr_equal(thread, (HANDLE)0x55);
}

/* Of each host resource that runs out nothing stays behind. Threads of earlier cases may still be on their way out. */
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
    assert_ptr_equal(thread, (HANDLE)0x55);
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

/* Information. */

static void lengths_and_classes(void **state)
{
    static const struct {
        THREADINFOCLASS class;
        ULONG query, set; /* ENTIRE: not for this */
    } rows[] = {
        {ThreadBasicInformation, 48, MAXULONG},
        {ThreadTimes, 32, MAXULONG},
        {ThreadPriority, MAXULONG, 4},
        {ThreadBasePriority, MAXULONG, 4},
        {ThreadAffinityMask, MAXULONG, 8},
        {ThreadImpersonationToken, MAXULONG, MAXULONG},
        {ThreadQuerySetWin32StartAddress, 8, 8},
        {ThreadPerformanceCount, 8, MAXULONG},
        {ThreadAmILastThread, 4, MAXULONG},
        {ThreadIdealProcessor, MAXULONG, 4},
        {ThreadPriorityBoost, 4, 4},
        {ThreadIsIoPending, 4, MAXULONG},
        {ThreadHideFromDebugger, 1, 0},
        {ThreadBreakOnTermination, 4, 4},
        {ThreadIsTerminated, 4, MAXULONG},
        {ThreadIoPriority, 4, MAXULONG},
        {ThreadPagePriority, 4, MAXULONG},
        {ThreadGroupInformation, 16, 16},
        {ThreadIdealProcessorEx, 4, 4},
        {ThreadSuspendCount, 4, MAXULONG},
        {MaxThreadInfoClass, MAXULONG, MAXULONG},
        {(THREADINFOCLASS)-1, MAXULONG, MAXULONG},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        UCHAR buffer[64] DECLSPEC_ALIGN(16) = {0};
        ULONG length = 99;

        if (rows[i].query == MAXULONG) {
            assert_int_equal(NtQueryInformationThread(NtCurrentThread(), rows[i].class, buffer, 8, &length),
                             STATUS_INVALID_INFO_CLASS);
        } else {
            assert_int_equal(
                NtQueryInformationThread(NtCurrentThread(), rows[i].class, buffer, rows[i].query + 1, &length),
                STATUS_INFO_LENGTH_MISMATCH);
            assert_int_equal(
                NtQueryInformationThread(NtCurrentThread(), rows[i].class, buffer, rows[i].query - 1, &length),
                STATUS_INFO_LENGTH_MISMATCH);
            assert_int_equal(NtQueryInformationThread(NtCurrentThread(), rows[i].class, NULL, rows[i].query, &length),
                             STATUS_ACCESS_VIOLATION);
            assert_int_equal(NtQueryInformationThread((HANDLE)0x4444, rows[i].class, buffer, rows[i].query, &length),
                             STATUS_INVALID_HANDLE);
            assert_int_equal(length, 99);
            assert_int_equal(NtQueryInformationThread(NtCurrentThread(), rows[i].class, buffer, rows[i].query, &length),
                             STATUS_SUCCESS);
            assert_int_equal(length, rows[i].query);
        }
        if (rows[i].set == MAXULONG) {
            assert_int_equal(NtSetInformationThread(NtCurrentThread(), rows[i].class, buffer, 8),
                             STATUS_INVALID_INFO_CLASS);
        } else {
            assert_int_equal(NtSetInformationThread(NtCurrentThread(), rows[i].class, buffer, rows[i].set + 1),
                             STATUS_INFO_LENGTH_MISMATCH);
            assert_int_equal(NtSetInformationThread((HANDLE)0x4444, rows[i].class, buffer, rows[i].set),
                             STATUS_INVALID_HANDLE);
            if (rows[i].set != 0)
                assert_int_equal(NtSetInformationThread(NtCurrentThread(), rows[i].class, NULL, rows[i].set),
                                 STATUS_ACCESS_VIOLATION);
        }
    }
}

static NTSTATUS set_base(HANDLE thread, LONG increment)
{
    return NtSetInformationThread(thread, ThreadBasePriority, &increment, sizeof(increment));
}

static NTSTATUS set_priority(HANDLE thread, KPRIORITY priority)
{
    return NtSetInformationThread(thread, ThreadPriority, &priority, sizeof(priority));
}

static void priorities(void **state)
{
    static const LONG refused[] = {3, -3, 15, -15, 17, -17, MAXLONG, MINLONG};
    static const struct {
        LONG increment;
        KPRIORITY priority;
    } rows[] = {{1, 9}, {2, 10}, {-1, 7}, {-2, 6}, {16, 15}, {-16, 1}, {0, 8}};
    struct birth birth = {0};

    (void)state;
    assert_int_equal(create(&birth.handle, look_at_birth, &birth, THREAD_CREATE_FLAGS_CREATE_SUSPENDED), 0);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        assert_int_equal(set_base(birth.handle, rows[i].increment), 0);
        assert_int_equal(basic_of(birth.handle).BasePriority, rows[i].increment);
        assert_int_equal(basic_of(birth.handle).Priority, rows[i].priority);
    }
    for (size_t i = 0; i < ARRAYSIZE(refused); i++)
        assert_int_equal(set_base(birth.handle, refused[i]), STATUS_INVALID_PARAMETER);
    assert_int_equal(basic_of(birth.handle).BasePriority, 0);
    assert_int_equal(set_priority(birth.handle, 12), 0);
    assert_int_equal(basic_of(birth.handle).Priority, 12);
    assert_int_equal(set_priority(birth.handle, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(set_priority(birth.handle, 32), STATUS_INVALID_PARAMETER);
    assert_int_equal(set_priority(birth.handle, 16), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(NtResumeThread(birth.handle, NULL), 0);
    join(birth.handle);
    close_handle(birth.handle);
}

static void boosts_affinity_and_processors(void **state)
{
    ULONG disable = 7;
    KAFFINITY mask = 1, all = basic_of(NtCurrentThread()).AffinityMask, wrong = ~(KAFFINITY)0;
    GROUP_AFFINITY group = {0};
    PROCESSOR_NUMBER number = {0}, back;
    ULONG ideal = 0, query = 64, beyond = 65;

    (void)state;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadPriorityBoost, &disable, 4), 0);
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadPriorityBoost, &disable, 4, NULL), 0);
    assert_int_equal(disable, 1);
    disable = 0;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadPriorityBoost, &disable, 4), 0);

    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &mask, 8), 0);
    assert_int_equal(basic_of(NtCurrentThread()).AffinityMask, 1);
    mask = 0;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &mask, 8), STATUS_INVALID_PARAMETER);
    if (all != wrong)
        assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &wrong, 8),
                         STATUS_INVALID_PARAMETER);
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadGroupInformation, &group, sizeof(group), NULL),
                     0);
    assert_int_equal(group.Mask, 1);
    group.Mask = all;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadGroupInformation, &group, sizeof(group)), 0);
    assert_int_equal(basic_of(NtCurrentThread()).AffinityMask, all);
    group.Group = 500;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadGroupInformation, &group, sizeof(group)),
                     STATUS_INVALID_PARAMETER);

    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadIdealProcessorEx, &number, sizeof(number)), 0);
    assert_true(NtSetInformationThread(NtCurrentThread(), ThreadIdealProcessor, &ideal, 4) == 0);
    assert_true(NtSetInformationThread(NtCurrentThread(), ThreadIdealProcessor, &query, 4) == 0);
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadIdealProcessor, &beyond, 4),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadIdealProcessorEx, &back, sizeof(back), NULL), 0);
    assert_int_equal(back.Number, 0);
    ideal = NtGetCurrentProcessorNumberEx(&back);
    assert_int_equal(ideal, back.Group * 64 + back.Number);
    assert_true(NtGetCurrentProcessorNumber() < KeNumberProcessors);
}

static NTSTATUS burn(PVOID argument)
{
    ULONGLONG until = HalDispatch.QueryInterruptTime() + 300000;

    while (HalDispatch.QueryInterruptTime() < until) {
    }
    return *(volatile ULONG *)argument == 0;
}

static void times_of_running_and_ended_threads(void **state)
{
    KERNEL_USER_TIMES times, later;
    LARGE_INTEGER now;
    volatile ULONG stop = 1;
    HANDLE thread;
    ULONG ended = 9;

    (void)state;
    KeQuerySystemTime(&now);
    assert_int_equal(create(&thread, burn, (PVOID)&stop, 0), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &times, sizeof(times), NULL), 0);
    assert_true(times.CreateTime.QuadPart >= now.QuadPart);
    assert_int_equal(times.ExitTime.QuadPart, 0);
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadIsTerminated, &ended, 4, NULL), 0);
    assert_int_equal(ended, 0);
    join(thread);
    assert_int_equal(NtQueryInformationThread(thread, ThreadIsTerminated, &ended, 4, NULL), 0);
    assert_int_equal(ended, 1);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &times, sizeof(times), NULL), 0);
    assert_true(times.ExitTime.QuadPart >= times.CreateTime.QuadPart);
    assert_true(times.KernelTime.QuadPart + times.UserTime.QuadPart > 0);
    usleep(2000);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &later, sizeof(later), NULL), 0);
    assert_memory_equal(&times, &later, sizeof(times));
    close_handle(thread);
}

static NTSTATUS stay(PVOID argument)
{
    KeWaitForSingleObject(argument, Executive, UserMode, FALSE, NULL);
    return 0;
}

static void name_of_host_thread(HANDLE thread, char *name, size_t size)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%u/comm", HandleToULong(basic_of(thread).ClientId.UniqueThread));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(name, (int)size, file));
    fclose(file);
}

static void names(void **state)
{
    static WCHAR text[] = u"a name that is longer than the host's";
    THREAD_NAME_INFORMATION name = {{sizeof(text) - 2, sizeof(text), text}};
    struct {
        THREAD_NAME_INFORMATION information;
        WCHAR text[64];
    } buffer;
    char host[64];
    KEVENT go;
    HANDLE thread;
    ULONG length = 0;

    (void)state;
    KeInitializeEvent(&go, NotificationEvent, FALSE);
    assert_int_equal(create(&thread, stay, &go, 0), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadNameInformation, NULL, 0, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 16);
    assert_int_equal(NtQueryInformationThread(thread, ThreadNameInformation, &buffer, sizeof(buffer), &length), 0);
    assert_int_equal(buffer.information.ThreadName.Length, 0);
    assert_int_equal(NtSetInformationThread(thread, ThreadNameInformation, &name, sizeof(name)), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadNameInformation, &buffer, 16, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 16 + sizeof(text) - 2);
    assert_int_equal(NtQueryInformationThread(thread, ThreadNameInformation, &buffer, length, &length), 0);
    assert_int_equal(buffer.information.ThreadName.Length, sizeof(text) - 2);
    assert_ptr_equal(buffer.information.ThreadName.Buffer, buffer.text);
    assert_memory_equal(buffer.text, text, sizeof(text) - 2);
    name_of_host_thread(thread, host, sizeof(host));
    assert_string_equal(host, "a name that is \n");
    name.ThreadName.Length = 3;
    assert_int_equal(NtSetInformationThread(thread, ThreadNameInformation, &name, sizeof(name)),
                     STATUS_INVALID_PARAMETER);
    name.ThreadName.Length = 4;
    name.ThreadName.Buffer = NULL;
    assert_int_equal(NtSetInformationThread(thread, ThreadNameInformation, &name, sizeof(name)),
                     STATUS_ACCESS_VIOLATION);
    KeSetEvent(&go, 0, FALSE);
    join(thread);
    name.ThreadName.Buffer = text;
    assert_int_equal(NtSetInformationThread(thread, ThreadNameInformation, &name, sizeof(name)), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadNameInformation, &buffer, sizeof(buffer), &length), 0);
    assert_int_equal(buffer.information.ThreadName.Length, 4);
    close_handle(thread);
}

static void the_rest_of_the_information(void **state)
{
    PVOID address = NULL;
    BOOLEAN hidden = 9;
    ULONG flag = 9;
    KEVENT go;
    HANDLE thread;

    (void)state;
    KeInitializeEvent(&go, NotificationEvent, FALSE);
    assert_int_equal(create(&thread, stay, &go, 0), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadQuerySetWin32StartAddress, &address, 8, NULL), 0);
    assert_ptr_equal(address, (PVOID)stay);
    assert_int_equal(NtQueryInformationThread(thread, ThreadHideFromDebugger, &hidden, 1, NULL), 0);
    assert_int_equal(hidden, FALSE);
    assert_int_equal(NtSetInformationThread(thread, ThreadHideFromDebugger, NULL, 0), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadHideFromDebugger, &hidden, 1, NULL), 0);
    assert_int_equal(hidden, TRUE);
    assert_int_equal(NtSetInformationThread(thread, ThreadBreakOnTermination, &flag, 4), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(NtQueryInformationThread(thread, ThreadIsIoPending, &flag, 4, NULL), 0);
    assert_int_equal(flag, 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadAmILastThread, &flag, 4, NULL), 0);
    assert_int_equal(flag, 0);
    KeSetEvent(&go, 0, FALSE);
    join(thread);
    assert_int_equal(NtQueryInformationThread(thread, ThreadAmILastThread, &flag, 4, NULL), 0);
    assert_int_equal(flag, 1);
    assert_int_equal(NtTerminateThread(NULL, 0), STATUS_CANT_TERMINATE_SELF);
    close_handle(thread);
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
        cmocka_unit_test(what_cannot_be_created),
        cmocka_unit_test(a_creation_that_fails_leaks_nothing),
        cmocka_unit_test(the_stack_is_as_large_as_asked_for),
        cmocka_unit_test(a_thread_made_suspended_does_not_run),
        cmocka_unit_test(the_suspend_count_has_a_limit),
        cmocka_unit_test(a_thread_suspends_itself),
        cmocka_unit_test(alerts),
        cmocka_unit_test(opening_by_id),
        cmocka_unit_test(a_thread_that_has_ended_is_still_there),
        cmocka_unit_test(lengths_and_classes),
        cmocka_unit_test(priorities),
        cmocka_unit_test(boosts_affinity_and_processors),
        cmocka_unit_test(times_of_running_and_ended_threads),
        cmocka_unit_test(names),
        cmocka_unit_test(the_rest_of_the_information),
        cmocka_unit_test(a_thousand_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
