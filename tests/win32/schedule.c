#include "support.h"

#include <windows.h>
#include <winternl.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_affinity_of_the_process(void **state)
{
    DWORD_PTR process = 0, system = 0, before;
    DWORD_PTR lowest;

    (void)state;
    assert_true(GetProcessAffinityMask(GetCurrentProcess(), &process, &system));
    assert_int_not_equal(process, 0);
    assert_int_equal(process, system);
    assert_int_equal(__builtin_popcountl(system), GetActiveProcessorCount(0));

    lowest = system & -system;
    assert_true(SetProcessAffinityMask(GetCurrentProcess(), lowest));
    assert_true(GetProcessAffinityMask(GetCurrentProcess(), &process, &system));
    assert_int_equal(process, lowest);
    before = SetThreadAffinityMask(GetCurrentThread(), lowest);
    assert_int_equal(before, lowest); /* the process's reached the thread */
    if (system != lowest) {
        SetLastError(0);
        assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), system & ~lowest), 0);
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    }

    assert_true(SetProcessAffinityMask(GetCurrentProcess(), system));
    assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), system), system);
}

static DWORD WINAPI query_own_affinity(LPVOID result)
{
    GROUP_AFFINITY affinity;
    BOOL disabled;

    GetThreadGroupAffinity(GetCurrentThread(), &affinity);
    GetThreadPriorityBoost(GetCurrentThread(), &disabled);
    *(DWORD_PTR *)result = affinity.Mask;
    return (DWORD)disabled;
}

static DWORD run(LPTHREAD_START_ROUTINE routine, LPVOID argument)
{
    DWORD code = 99;
    HANDLE thread = CreateThread(NULL, 0, routine, argument, 0, NULL);

    assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}

static void new_threads_have_the_settings(void **state)
{
    DWORD_PTR process, system, lowest, of_thread = 0;
    BOOL disabled = 2;

    (void)state;
    GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
    lowest = system & -system;
    SetProcessAffinityMask(GetCurrentProcess(), lowest);
    assert_true(SetProcessPriorityBoost(GetCurrentProcess(), TRUE));
    assert_true(GetProcessPriorityBoost(GetCurrentProcess(), &disabled));
    assert_int_equal(disabled, TRUE);
    assert_int_equal(run(query_own_affinity, &of_thread), TRUE);
    assert_int_equal(of_thread, lowest);
    assert_true(GetThreadPriorityBoost(GetCurrentThread(), &disabled));
    assert_int_equal(disabled, TRUE);
    assert_true(SetProcessPriorityBoost(GetCurrentProcess(), FALSE));
    SetProcessAffinityMask(GetCurrentProcess(), system);
    assert_int_equal(run(query_own_affinity, &of_thread), FALSE);
    assert_int_equal(of_thread, system);
}

static void bad_affinities(void **state)
{
    DWORD_PTR process, system;

    (void)state;
    GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
    assert_false(SetProcessAffinityMask(GetCurrentProcess(), 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    if (~system != 0) {
        assert_false(SetProcessAffinityMask(GetCurrentProcess(), ~system));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    }
    assert_false(GetProcessAffinityMask((HANDLE)0x123450, &process, &system));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_false(GetProcessAffinityMask(GetCurrentProcess(), NULL, &system));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
}

static LONG base_of(HANDLE thread)
{
    THREAD_BASIC_INFORMATION basic;

    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    return basic.Priority;
}

static void priority_classes(void **state)
{
    static const struct {
        DWORD class;
        LONG base;
        DWORD reported;
    } rows[] = {
        {IDLE_PRIORITY_CLASS, 4, IDLE_PRIORITY_CLASS},
        {BELOW_NORMAL_PRIORITY_CLASS, 6, BELOW_NORMAL_PRIORITY_CLASS},
        {ABOVE_NORMAL_PRIORITY_CLASS, 10, ABOVE_NORMAL_PRIORITY_CLASS},
        {HIGH_PRIORITY_CLASS, 13, HIGH_PRIORITY_CLASS},
        {REALTIME_PRIORITY_CLASS, 13, HIGH_PRIORITY_CLASS},
        {NORMAL_PRIORITY_CLASS, 8, NORMAL_PRIORITY_CLASS},
    };

    (void)state;
    assert_int_equal(GetPriorityClass(GetCurrentProcess()), NORMAL_PRIORITY_CLASS);
    assert_true(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_ABOVE_NORMAL));
    for (size_t row = 0; row < ARRAYSIZE(rows); row++) {
        assert_true(SetPriorityClass(GetCurrentProcess(), rows[row].class));
        assert_int_equal(GetPriorityClass(GetCurrentProcess()), rows[row].reported);
        assert_int_equal(base_of(GetCurrentThread()), rows[row].base + 1);
        assert_int_equal(GetThreadPriority(GetCurrentThread()), THREAD_PRIORITY_ABOVE_NORMAL);
    }
    SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_NORMAL);
    assert_false(SetPriorityClass(GetCurrentProcess(), 0x12345));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_int_equal(GetPriorityClass((HANDLE)0x123450), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void background_mode(void **state)
{
    (void)state;
    assert_false(SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_END));
    assert_int_equal(GetLastError(), ERROR_PROCESS_MODE_NOT_BACKGROUND);
    assert_true(SetPriorityClass(GetCurrentProcess(), ABOVE_NORMAL_PRIORITY_CLASS));
    assert_true(SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_BEGIN));
    assert_int_equal(base_of(GetCurrentThread()), 4);
    assert_false(SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_BEGIN));
    assert_int_equal(GetLastError(), ERROR_PROCESS_MODE_ALREADY_BACKGROUND);
    assert_true(SetPriorityClass(GetCurrentProcess(), PROCESS_MODE_BACKGROUND_END));
    assert_int_equal(GetPriorityClass(GetCurrentProcess()), ABOVE_NORMAL_PRIORITY_CLASS);
    assert_true(SetPriorityClass(GetCurrentProcess(), NORMAL_PRIORITY_CLASS));
}

/* Another process can be queried, not changed. */
static void another_process(void **state)
{
    char line[] = "sleep 60";
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION child;
    DWORD_PTR process = 0, system = 0;
    FILETIME created, exited, kernel, user, now;
    DWORD count;

    (void)state;
    assert_true(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &child));
    assert_true(GetProcessAffinityMask(child.hProcess, &process, &system));
    assert_int_equal(process, system);
    assert_int_equal(GetPriorityClass(child.hProcess), NORMAL_PRIORITY_CLASS);
    assert_false(SetPriorityClass(child.hProcess, IDLE_PRIORITY_CLASS));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_false(SetProcessAffinityMask(child.hProcess, system));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_false(GetProcessHandleCount(child.hProcess, &count));
    assert_true(GetProcessTimes(child.hProcess, &created, &exited, &kernel, &user));
    assert_int_equal(exited.dwHighDateTime, 0);
    GetSystemTimeAsFileTime(&now);
    assert_int_equal(CompareFileTime(&created, &now), -1);
    TerminateProcess(child.hProcess, 1);
    assert_int_equal(WaitForSingleObject(child.hProcess, INFINITE), WAIT_OBJECT_0);
    assert_true(GetProcessTimes(child.hProcess, &created, &exited, &kernel, &user));
    assert_int_equal(CompareFileTime(&created, &exited), -1);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
}

static ULONGLONG number(FILETIME time)
{
    return (ULONGLONG)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

static void times_of_this_process(void **state)
{
    FILETIME created, exited, kernel, user, again, now;
    volatile unsigned long sum;
    DWORD handles;
    ULONGLONG before;

    (void)state;
    assert_true(GetProcessTimes(GetCurrentProcess(), &created, &exited, &kernel, &user));
    GetSystemTimeAsFileTime(&now);
    assert_true(number(created) <= number(now));
    assert_true(number(now) - number(created) < 3600 * 10000000ULL);
    assert_int_equal(number(exited), 0);
    before = number(kernel) + number(user);
    do {
        for (int i = 0; i < 1000000; i++)
            sum = (unsigned long)i;
        assert_true(GetProcessTimes(GetCurrentProcess(), &again, &exited, &kernel, &user));
    } while (number(kernel) + number(user) == before);
    assert_true(number(kernel) + number(user) > before);
    assert_int_equal(sum, 999999);
    assert_false(GetProcessTimes(GetCurrentProcess(), NULL, &exited, &kernel, &user));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_true(GetProcessHandleCount(GetCurrentProcess(), &handles));
}

static void topology(void **state)
{
    DWORD length = 0, needed;
    PSYSTEM_LOGICAL_PROCESSOR_INFORMATION records;
    DWORD_PTR in_core = 0, in_package = 0, in_node = 0, process, system;

    (void)state;
    GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
    assert_false(GetLogicalProcessorInformation(NULL, &length));
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    assert_true(length > 0 && length % sizeof(*records) == 0);
    records = malloc(length);
    needed = length;
    assert_true(GetLogicalProcessorInformation(records, &length));
    assert_int_equal(length, needed);
    for (DWORD i = 0; i < length / sizeof(*records); i++) {
        DWORD_PTR mask = records[i].ProcessorMask;
        assert_int_not_equal(mask, 0);
        assert_int_equal(mask & ~system, 0);
        switch (records[i].Relationship) {
        case RelationProcessorCore:
            assert_int_equal(in_core & mask, 0); /* cores do not overlap */
            assert_int_equal(records[i].ProcessorCore.Flags == LTP_PC_SMT, __builtin_popcountl(mask) > 1);
            in_core |= mask;
            break;
        case RelationProcessorPackage:
            assert_int_equal(in_package & mask, 0);
            in_package |= mask;
            break;
        case RelationNumaNode:
            assert_int_equal(in_node & mask, 0);
            in_node |= mask;
            break;
        case RelationCache:
            assert_in_range(records[i].Cache.Level, 1, 4);
            break;
        default:
            fail();
        }
    }
    assert_int_equal(in_core, system);
    assert_int_equal(in_package, system);
    assert_int_equal(in_node, system);
    needed = length - 1;
    assert_false(GetLogicalProcessorInformation(records, &needed));
    assert_int_equal(needed, length);
    free(records);
    assert_false(GetLogicalProcessorInformation(NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void topology_with_groups(void **state)
{
    static const LOGICAL_PROCESSOR_RELATIONSHIP kinds[] = {RelationProcessorCore, RelationNumaNode, RelationCache,
                                                           RelationProcessorPackage, RelationGroup};
    DWORD all = 0, sum = 0, walked = 0;
    unsigned char *buffer;
    ULONG highest = 99;

    (void)state;
    assert_false(GetLogicalProcessorInformationEx(RelationAll, NULL, &all));
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    for (size_t kind = 0; kind < ARRAYSIZE(kinds); kind++) {
        DWORD length = 0;
        BOOL empty = GetLogicalProcessorInformationEx(kinds[kind], NULL, &length);
        assert_int_equal(empty, length == 0);
        sum += length;
    }
    assert_int_equal(sum, all);
    buffer = malloc(all);
    assert_true(GetLogicalProcessorInformationEx(RelationAll, (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX)buffer, &all));
    while (walked < all) {
        PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX record = (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX)(buffer + walked);
        if (record->Relationship == RelationGroup) {
            assert_int_equal(record->Group.ActiveGroupCount, GetActiveProcessorGroupCount());
            assert_int_equal(record->Group.GroupInfo[0].ActiveProcessorCount, GetActiveProcessorCount(0));
        } else if (record->Relationship == RelationProcessorCore) {
            assert_true(record->Processor.GroupCount >= 1);
            assert_int_not_equal(record->Processor.GroupMask[0].Mask, 0);
        }
        walked += record->Size;
    }
    assert_int_equal(walked, all);
    free(buffer);
    assert_false(GetLogicalProcessorInformationEx((LOGICAL_PROCESSOR_RELATIONSHIP)77, NULL, &all));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(GetNumaHighestNodeNumber(&highest));
    assert_int_not_equal(highest, 99);
}

/* The store of one thread and the load of the other cannot both miss if one side makes the barrier for both. */

static volatile LONG left, right;
static LONG saw_left, saw_right;
static volatile LONG rounds_of[2];

static void store_and_load(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(2000);

    (void)argument;
    for (unsigned long round = 1; round <= rounds; round++) {
        if (index == 0) {
            __atomic_store_n(&left, (LONG)round, __ATOMIC_RELAXED);
            FlushProcessWriteBuffers();
            saw_right = __atomic_load_n(&right, __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(&right, (LONG)round, __ATOMIC_RELAXED);
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
            saw_left = __atomic_load_n(&left, __ATOMIC_RELAXED);
        }
        InterlockedExchange(&rounds_of[index], (LONG)round * 2 - 1);
        while (ReadAcquire(&rounds_of[!index]) < (LONG)round * 2 - 1)
            YieldProcessor();
        if (index == 0)
            assert_true(saw_right == (LONG)round || saw_left == (LONG)round);
        InterlockedExchange(&rounds_of[index], (LONG)round * 2);
        while (ReadAcquire(&rounds_of[!index]) < (LONG)round * 2)
            YieldProcessor();
    }
}

static void write_buffers(void **state)
{
    (void)state;
    FlushProcessWriteBuffers();
    run_threads(2, 60, store_and_load, NULL);
}

static void services(void **state)
{
    PROCESS_PRIORITY_CLASS class = {0};
    ULONG length = 0;
    KPRIORITY base = 24;

    (void)state;
    assert_int_equal(
        NtQueryInformationProcess(GetCurrentProcess(), ProcessPriorityClass, &class, sizeof(class), &length), 0);
    assert_int_equal(length, sizeof(class));
    assert_int_equal(class.PriorityClass, PROCESS_PRIORITY_CLASS_NORMAL);
    assert_int_equal(NtQueryInformationProcess(GetCurrentProcess(), ProcessPriorityClass, &class, 1, NULL),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryInformationProcess(GetCurrentProcess(), ProcessAffinityMask, &class, 8, NULL),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtSetInformationProcess(GetCurrentProcess(), ProcessHandleCount, &length, 4),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtSetInformationProcess(GetCurrentProcess(), ProcessBasePriority, &base, sizeof(base)),
                     STATUS_PRIVILEGE_NOT_HELD);
    base = 0;
    assert_int_equal(NtSetInformationProcess(GetCurrentProcess(), ProcessBasePriority, &base, sizeof(base)),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtSetInformationProcess(GetCurrentProcess(), ProcessBasePriority, NULL, sizeof(base)),
                     STATUS_ACCESS_VIOLATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_affinity_of_the_process),
        cmocka_unit_test(new_threads_have_the_settings),
        cmocka_unit_test(bad_affinities),
        cmocka_unit_test(priority_classes),
        cmocka_unit_test(background_mode),
        cmocka_unit_test(another_process),
        cmocka_unit_test(times_of_this_process),
        cmocka_unit_test(topology),
        cmocka_unit_test(topology_with_groups),
        cmocka_unit_test(write_buffers),
        cmocka_unit_test(services),
    };

    return cmocka_run_group_tests_name("win32/schedule", tests, NULL, NULL);
}
