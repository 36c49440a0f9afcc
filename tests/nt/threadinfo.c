/* threadinfo.c: queries and settings of threads. */
#include "threadtest.h"

#include <stdio.h>

static void lengths_and_classes(void **state)
{
    static const struct {
        THREADINFOCLASS class;
        ULONG query, set; /* MAXULONG: not for this */
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
    wrong = ~all; /* only processors that do not exist */
    if (wrong != 0)
        assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &wrong, 8),
                         STATUS_INVALID_PARAMETER);
    wrong = ~(KAFFINITY)0; /* they are ignored beside others */
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &wrong, 8), 0);
    assert_int_equal(basic_of(NtCurrentThread()).AffinityMask, all);
    mask = 1;
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &mask, 8), 0);
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
    number = (PROCESSOR_NUMBER){.Group = 500};
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadIdealProcessorEx, &number, sizeof(number)),
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

    while (HalDispatch.QueryInterruptTime() < until || !__atomic_load_n((ULONG *)argument, __ATOMIC_RELAXED)) {
    }
    return STATUS_SUCCESS;
}

static void times_of_running_and_ended_threads(void **state)
{
    KERNEL_USER_TIMES times, later;
    LARGE_INTEGER now;
    ULONG seen_running = 0;
    HANDLE thread;
    ULONG ended = 9;
    KAFFINITY mask = 1;

    (void)state;
    KeQuerySystemTime(&now);
    assert_int_equal(create(&thread, burn, &seen_running, 0), 0);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &times, sizeof(times), NULL), 0);
    assert_true(times.CreateTime.QuadPart >= now.QuadPart);
    assert_int_equal(times.ExitTime.QuadPart, 0);
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadIsTerminated, &ended, 4, NULL), 0);
    assert_int_equal(ended, 0);
    __atomic_store_n(&seen_running, 1, __ATOMIC_RELAXED);
    join(thread);
    assert_int_equal(NtQueryInformationThread(thread, ThreadIsTerminated, &ended, 4, NULL), 0);
    assert_int_equal(ended, 1);
    assert_int_equal(NtSetInformationThread(thread, ThreadAffinityMask, &mask, sizeof(mask)),
                     STATUS_THREAD_IS_TERMINATING);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &times, sizeof(times), NULL), 0);
    assert_true(times.ExitTime.QuadPart >= times.CreateTime.QuadPart);
    assert_true(times.KernelTime.QuadPart + times.UserTime.QuadPart > 0);
    usleep(2000);
    assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &later, sizeof(later), NULL), 0);
    assert_memory_equal(&times, &later, sizeof(times));
    close_handle(thread);
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
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_classes),
        cmocka_unit_test(priorities),
        cmocka_unit_test(boosts_affinity_and_processors),
        cmocka_unit_test(times_of_running_and_ended_threads),
        cmocka_unit_test(names),
        cmocka_unit_test(the_rest_of_the_information),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
