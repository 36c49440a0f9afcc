/* The services of processes, on the own process. */
#include "objecttest.h"

#include <interlock/ps.h>

static OBJECT_ATTRIBUTES nameless = {.Length = sizeof(OBJECT_ATTRIBUTES)};

static CLIENT_ID this_process(void)
{
    return (CLIENT_ID){.UniqueProcess = PsGetCurrentProcessId()};
}

static HANDLE open_process(ACCESS_MASK access)
{
    CLIENT_ID id = this_process();
    HANDLE process;

    assert_int_equal(NtOpenProcess(&process, access, &nameless, &id), STATUS_SUCCESS);
    return process;
}

/* Each look costs one of the references that a handle has in advance, and a handle that is closed returns all of its own. So what
   was done by other handles, closed since, has left nothing behind if the count is only one less. */
static ULONG references(HANDLE watch)
{
    return (ULONG)basic_information(watch).PointerCount;
}

static void opening_checks_its_parameters(void **state)
{
    CLIENT_ID id = this_process(), none = {.UniqueProcess = (HANDLE)(ULONG_PTR)0x7ffffff0};
    HANDLE process = (HANDLE)0x55;

    (void)state;
    assert_int_equal(NtOpenProcess(NULL, PROCESS_ALL_ACCESS, &nameless, &id), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, NULL, &id), STATUS_ACCESS_VIOLATION);
    assert_null(process);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, &nameless, NULL), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, NAMED(u"\\process", NULL, 0), &id),
                     STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, &nameless, &none), STATUS_INVALID_CID);
    assert_null(process);
}

/* A thread's identifier leads to its process, and the thread is not kept. */
static void a_thread_leads_to_its_process(void **state)
{
    CLIENT_ID id = {.UniqueThread = PsGetCurrentThreadId()};
    CLIENT_ID none = {.UniqueProcess = PsGetCurrentProcessId(), .UniqueThread = (HANDLE)(ULONG_PTR)0x7ffffff0};
    PROCESS_BASIC_INFORMATION information;
    HANDLE process, thread;
    ULONG before;

    (void)state;
    assert_int_equal(NtOpenThread(&thread, THREAD_ALL_ACCESS, &nameless, &id), STATUS_SUCCESS);
    before = references(thread);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, &nameless, &id), STATUS_SUCCESS);
    assert_int_equal(references(thread), before - 1);
    assert_int_equal(NtQueryInformationProcess(process, ProcessBasicInformation, &information, sizeof(information), NULL),
                     STATUS_SUCCESS);
    assert_true(information.UniqueProcessId == (ULONG_PTR)PsGetCurrentProcessId());
    close_handle(process);
    close_handle(thread);
    assert_int_equal(NtOpenProcess(&process, PROCESS_ALL_ACCESS, &nameless, &none), STATUS_INVALID_CID);
}

static void queries_check_their_parameters(void **state)
{
    HANDLE watch = open_process(PROCESS_TERMINATE);
    ULONG before = references(watch);
    HANDLE process = open_process(PROCESS_QUERY_LIMITED_INFORMATION), blind = open_process(PROCESS_TERMINATE);
    ULONG count = 0, length = 0;

    (void)state;
    assert_int_equal(NtQueryInformationProcess(process, ProcessHandleCount, &count, sizeof(count), &length),
                     STATUS_SUCCESS);
    assert_int_equal(length, sizeof(count));
    assert_in_range(count, 2, 1000);
    length = 77;
    assert_int_equal(NtQueryInformationProcess(process, ProcessHandleCount, &count, sizeof(count) + 1, &length),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryInformationProcess(process, ProcessHandleCount, NULL, sizeof(count), &length),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryInformationProcess(process, (PROCESSINFOCLASS)999, &count, sizeof(count), &length),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryInformationProcess(blind, ProcessHandleCount, &count, sizeof(count), &length),
                     STATUS_ACCESS_DENIED);
    assert_int_equal(length, 77);
    assert_int_equal(ZwQueryInformationProcess(blind, ProcessHandleCount, &count, sizeof(count), NULL), STATUS_SUCCESS);
    close_handle(blind);
    close_handle(process);
    assert_int_equal(references(watch), before - 1);
    close_handle(watch);
}

static KPRIORITY base_priority(void)
{
    PROCESS_BASIC_INFORMATION information;

    assert_int_equal(NtQueryInformationProcess(NtCurrentProcess(), ProcessBasicInformation, &information,
                                               sizeof(information), NULL),
                     STATUS_SUCCESS);
    return information.BasePriority;
}

static NTSTATUS set_base(HANDLE process, KPRIORITY base)
{
    return NtSetInformationProcess(process, ProcessBasePriority, &base, sizeof(base));
}

static void base_priorities_have_bounds(void **state)
{
    static const struct {
        KPRIORITY base;
        NTSTATUS status;
    } cases[] = {
        {-1, STATUS_INVALID_PARAMETER},      {LOW_PRIORITY, STATUS_INVALID_PARAMETER},
        {LOW_PRIORITY + 1, STATUS_SUCCESS},  {LOW_REALTIME_PRIORITY - 1, STATUS_SUCCESS},
        {LOW_REALTIME_PRIORITY, STATUS_PRIVILEGE_NOT_HELD}, {HIGH_PRIORITY, STATUS_PRIVILEGE_NOT_HELD},
        {HIGH_PRIORITY + 1, STATUS_INVALID_PARAMETER},
    };
    HANDLE watch = open_process(PROCESS_TERMINATE);
    ULONG before = references(watch);
    HANDLE process = open_process(PROCESS_SET_INFORMATION), blind = open_process(PROCESS_TERMINATE);
    KPRIORITY base = base_priority();

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        KPRIORITY expected = cases[i].status == STATUS_SUCCESS ? cases[i].base : base_priority();
        assert_int_equal(set_base(process, cases[i].base), cases[i].status);
        assert_int_equal(base_priority(), expected);
    }
    assert_int_equal(set_base(blind, base), STATUS_ACCESS_DENIED);
    assert_int_equal(set_base(process, base), STATUS_SUCCESS);
    close_handle(blind);
    close_handle(process);
    assert_int_equal(references(watch), before - 1);
    close_handle(watch);
}

static UCHAR priority_class(void)
{
    PROCESS_PRIORITY_CLASS class;

    assert_int_equal(NtQueryInformationProcess(NtCurrentProcess(), ProcessPriorityClass, &class, sizeof(class), NULL),
                     STATUS_SUCCESS);
    return class.PriorityClass;
}

static NTSTATUS set_class(UCHAR number)
{
    PROCESS_PRIORITY_CLASS class = {.PriorityClass = number};

    return NtSetInformationProcess(NtCurrentProcess(), ProcessPriorityClass, &class, sizeof(class));
}

static void priority_classes_have_a_base(void **state)
{
    static const struct {
        UCHAR class;
        KPRIORITY base;
    } cases[] = {
        {PROCESS_PRIORITY_CLASS_IDLE, 4},          {PROCESS_PRIORITY_CLASS_BELOW_NORMAL, 6},
        {PROCESS_PRIORITY_CLASS_ABOVE_NORMAL, 10}, {PROCESS_PRIORITY_CLASS_HIGH, 13},
        {PROCESS_PRIORITY_CLASS_NORMAL, 8},
    };

    (void)state;
    assert_int_equal(priority_class(), PROCESS_PRIORITY_CLASS_NORMAL);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(set_class(cases[i].class), STATUS_SUCCESS);
        assert_int_equal(priority_class(), cases[i].class);
        assert_int_equal(base_priority(), cases[i].base);
    }
    assert_int_equal(set_class(PROCESS_PRIORITY_CLASS_UNKNOWN), STATUS_INVALID_PARAMETER);
    assert_int_equal(set_class(PROCESS_PRIORITY_CLASS_ABOVE_NORMAL + 1), STATUS_INVALID_PARAMETER);
    assert_int_equal(set_class(PROCESS_PRIORITY_CLASS_REALTIME), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(priority_class(), PROCESS_PRIORITY_CLASS_NORMAL);
    assert_int_equal(base_priority(), 8);
}

static void other_settings(void **state)
{
    KAFFINITY mask = 0;
    ULONG off = 1, found = 0;
    PROCESS_BASIC_INFORMATION information;

    (void)state;
    assert_int_equal(NtSetInformationProcess(NtCurrentProcess(), ProcessAffinityMask, &mask, sizeof(mask)),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtSetInformationProcess(NtCurrentProcess(), ProcessAffinityMask, &mask, sizeof(mask) - 1),
                     STATUS_INFO_LENGTH_MISMATCH);
    mask = 1;
    assert_int_equal(NtSetInformationProcess(NtCurrentProcess(), ProcessAffinityMask, &mask, sizeof(mask)),
                     STATUS_SUCCESS);
    assert_int_equal(NtQueryInformationProcess(NtCurrentProcess(), ProcessBasicInformation, &information,
                                               sizeof(information), NULL),
                     STATUS_SUCCESS);
    assert_true(information.AffinityMask == 1);
    assert_int_equal(information.ExitStatus, STATUS_PENDING);
    for (unsigned round = 0; round < 2; round++, off = 0) {
        assert_int_equal(NtSetInformationProcess(NtCurrentProcess(), ProcessPriorityBoost, &off, sizeof(off)),
                         STATUS_SUCCESS);
        assert_int_equal(NtQueryInformationProcess(NtCurrentProcess(), ProcessPriorityBoost, &found, sizeof(found), NULL),
                         STATUS_SUCCESS);
        assert_int_equal(found, off);
    }
    assert_int_equal(NtSetInformationProcess(NtCurrentProcess(), ProcessTimes, &off, sizeof(off)),
                     STATUS_INVALID_INFO_CLASS);
}

static KAFFINITY process_affinity(void)
{
    PROCESS_BASIC_INFORMATION information;

    assert_int_equal(NtQueryInformationProcess(NtCurrentProcess(), ProcessBasicInformation, &information,
                                               sizeof(information), NULL),
                     STATUS_SUCCESS);
    return information.AffinityMask;
}

/* A process with threads in several groups has no mask. */
static void affinity_of_groups(void **state)
{
    GROUP_AFFINITY other = {.Group = 1, .Mask = 1}, before;

    (void)state;
    assert_true(process_affinity() != 0);
    if (KeQueryActiveGroupCount() == 1)
        return;
    assert_int_equal(NtQueryInformationThread(NtCurrentThread(), ThreadGroupInformation, &before, sizeof(before), NULL),
                     STATUS_SUCCESS);
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadGroupInformation, &other, sizeof(other)),
                     STATUS_SUCCESS);
    assert_true(process_affinity() == 0);
    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadGroupInformation, &before, sizeof(before)),
                     STATUS_SUCCESS);
    assert_true(process_affinity() != 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_checks_its_parameters),
        cmocka_unit_test(a_thread_leads_to_its_process),
        cmocka_unit_test(queries_check_their_parameters),
        cmocka_unit_test(base_priorities_have_bounds),
        cmocka_unit_test(priority_classes_have_a_base),
        cmocka_unit_test(other_settings),
        cmocka_unit_test(affinity_of_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
