#include "support.h"

#include <windows.h>

#include <errno.h>
#include <process.h>
#include <unistd.h>

static DWORD WINAPI return_argument(LPVOID argument)
{
    return (DWORD)(ULONG_PTR)argument;
}

static void join(HANDLE thread)
{
    assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
}

static DWORD exit_code_of(HANDLE thread)
{
    DWORD code = 0xdead;

    assert_true(GetExitCodeThread(thread, &code));
    return code;
}

static void creation_and_exit_codes(void **state)
{
    static const DWORD codes[] = {0, 1, 0xffffffff, STILL_ACTIVE};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(codes); i++) {
        DWORD id = 0;
        HANDLE thread = CreateThread(NULL, 0, return_argument, (LPVOID)(ULONG_PTR)codes[i], CREATE_SUSPENDED, &id);

        assert_non_null(thread);
        assert_int_equal(exit_code_of(thread), STILL_ACTIVE);
        assert_int_equal(GetThreadId(thread), id);
        assert_int_equal(GetProcessIdOfThread(thread), getpid());
        assert_int_equal(WaitForSingleObject(thread, 0), WAIT_TIMEOUT);
        assert_int_equal(ResumeThread(thread), 1);
        join(thread);
        assert_int_equal(exit_code_of(thread), codes[i]);
        assert_int_equal(ResumeThread(thread), 0);
        assert_true(CloseHandle(thread));
    }
}

static void who_am_i(void **state)
{
    (void)state;
    assert_ptr_equal(GetCurrentThread(), (HANDLE)(LONG_PTR)-2);
    assert_ptr_equal(GetCurrentProcess(), (HANDLE)(LONG_PTR)-1);
    assert_int_equal(GetCurrentThreadId(), gettid());
    assert_int_equal(GetCurrentProcessId(), getpid());
    assert_int_equal(GetThreadId(GetCurrentThread()), gettid());
    assert_int_equal(GetProcessIdOfThread(GetCurrentThread()), getpid());
}

static void creation_that_fails(void **state)
{
    (void)state;
    SetLastError(0);
    assert_null(CreateThread(NULL, 0, return_argument, NULL, 0x80000000, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_null(CreateThread(NULL, 0, NULL, NULL, 0, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_null(CreateRemoteThread((HANDLE)0x4444, NULL, 0, return_argument, NULL, 0, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    SetLastError(0);
    assert_null(CreateThread(NULL, (SIZE_T)1 << 46, return_argument, NULL, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL));
    assert_int_equal(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
}

static void inheritance_is_kept(void **state)
{
    SECURITY_ATTRIBUTES security = {sizeof(security), NULL, TRUE};
    DWORD flags = 9;
    HANDLE thread =
        CreateRemoteThreadEx(GetCurrentProcess(), &security, 0, return_argument, (LPVOID)4, 0, NULL, NULL);

    (void)state;
    assert_non_null(thread);
    join(thread);
    assert_true(GetHandleInformation(thread, &flags));
    assert_int_equal(flags, HANDLE_FLAG_INHERIT);
    CloseHandle(thread);
}

static DWORD WINAPI exit_early(LPVOID argument)
{
    ExitThread((DWORD)(ULONG_PTR)argument);
}

static DWORD WINAPI spin(LPVOID argument)
{
    volatile DWORD *ready = argument;

    __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(ready, __ATOMIC_RELAXED) == 1)
        YieldProcessor();
    return 0;
}

static DWORD WINAPI own_mutex(LPVOID argument)
{
    HANDLE *handles = argument;

    WaitForSingleObject(handles[0], INFINITE);
    SetEvent(handles[1]);
    Sleep(INFINITE);
    return 0;
}

static void ends(void **state)
{
    volatile DWORD ready = 0;
    HANDLE handles[2] = {CreateMutexW(NULL, FALSE, NULL), CreateEventW(NULL, TRUE, FALSE, NULL)};
    HANDLE thread = CreateThread(NULL, 0, exit_early, (LPVOID)321, 0, NULL);

    (void)state;
    join(thread);
    assert_int_equal(exit_code_of(thread), 321);
    SetLastError(0);
    assert_int_equal(SuspendThread(thread), (DWORD)-1);
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    assert_true(TerminateThread(thread, 5));
    assert_int_equal(exit_code_of(thread), 321);
    CloseHandle(thread);

    thread = CreateThread(NULL, 0, spin, (LPVOID)&ready, 0, NULL);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0)
        SwitchToThread();
    assert_true(TerminateThread(thread, 654));
    join(thread);
    assert_int_equal(exit_code_of(thread), 654);
    CloseHandle(thread);

    thread = CreateThread(NULL, 0, own_mutex, handles, 0, NULL);
    join(handles[1]);
    assert_int_equal(WaitForSingleObject(handles[0], 0), WAIT_TIMEOUT);
    assert_true(TerminateThread(thread, 987));
    assert_int_equal(WaitForSingleObject(handles[0], 120000), WAIT_ABANDONED);
    assert_true(ReleaseMutex(handles[0]));
    join(thread);
    CloseHandle(thread);
    CloseHandle(handles[0]);
    CloseHandle(handles[1]);

    SetLastError(0);
    assert_false(TerminateThread(NULL, 1));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    SetLastError(0);
    assert_false(TerminateThread((HANDLE)0x4444, 1));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void opening(void **state)
{
    DWORD code;
    HANDLE thread = OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, GetCurrentThreadId());

    (void)state;
    assert_non_null(thread);
    assert_int_equal(GetThreadId(thread), gettid());
    assert_true(GetExitCodeThread(thread, &code));
    assert_int_equal(code, STILL_ACTIVE);
    SetLastError(0);
    assert_int_equal(SuspendThread(thread), (DWORD)-1);
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    SetLastError(0);
    assert_false(GetExitCodeThread(thread, NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    CloseHandle(thread);
    SetLastError(0);
    assert_null(OpenThread(THREAD_ALL_ACCESS, FALSE, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_int_equal(GetThreadId((HANDLE)0x4444), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void suspension(void **state)
{
    HANDLE thread = CreateThread(NULL, 0, return_argument, NULL, CREATE_SUSPENDED, NULL);

    (void)state;
    for (DWORD i = 1; i < 127; i++)
        assert_int_equal(SuspendThread(thread), i);
    SetLastError(0);
    assert_int_equal(SuspendThread(thread), (DWORD)-1);
    assert_int_equal(GetLastError(), ERROR_SIGNAL_REFUSED);
    assert_true(TerminateThread(thread, 11));
    join(thread);
    assert_int_equal(exit_code_of(thread), 11);
    CloseHandle(thread);
}

static void priorities(void **state)
{
    static const int good[] = {-15, -2, -1, 0, 1, 2, 15};
    static const int bad[] = {3, -3, 14, 16, -16, 17, 1000};
    HANDLE thread = CreateThread(NULL, 0, return_argument, NULL, CREATE_SUSPENDED, NULL);
    BOOL disabled = 9;

    (void)state;
    assert_int_equal(GetThreadPriority(thread), THREAD_PRIORITY_NORMAL);
    for (size_t i = 0; i < ARRAYSIZE(good); i++) {
        assert_true(SetThreadPriority(thread, good[i]));
        assert_int_equal(GetThreadPriority(thread), good[i]);
    }
    for (size_t i = 0; i < ARRAYSIZE(bad); i++) {
        SetLastError(0);
        assert_false(SetThreadPriority(thread, bad[i]));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
        assert_int_equal(GetThreadPriority(thread), 15);
    }
    assert_int_equal(GetThreadPriority((HANDLE)0x4444), THREAD_PRIORITY_ERROR_RETURN);
    assert_true(GetThreadPriorityBoost(thread, &disabled));
    assert_false(disabled);
    assert_true(SetThreadPriorityBoost(thread, 5));
    assert_true(GetThreadPriorityBoost(thread, &disabled));
    assert_int_equal(disabled, TRUE);
    ResumeThread(thread);
    join(thread);
    CloseHandle(thread);
}

static void processors(void **state)
{
    DWORD_PTR all = SetThreadAffinityMask(GetCurrentThread(), 1);
    PROCESSOR_NUMBER number = {0}, previous = {.Number = 99};
    GROUP_AFFINITY group;

    (void)state;
    assert_true(all & 1);
    assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), all), 1);
    SetLastError(0);
    assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), 0), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(GetThreadGroupAffinity(GetCurrentThread(), &group));
    assert_int_equal(group.Mask, all);
    assert_true(SetThreadGroupAffinity(GetCurrentThread(), &group, &group));
    assert_true(SetThreadIdealProcessorEx(GetCurrentThread(), &number, &previous));
    assert_int_not_equal(previous.Number, 99);
    assert_int_equal(SetThreadIdealProcessor(GetCurrentThread(), 64), 0);
    assert_int_equal(SetThreadIdealProcessor(GetCurrentThread(), 0), 0);
    assert_int_equal(SetThreadIdealProcessor(GetCurrentThread(), 1000), (DWORD)-1);
    assert_true(GetThreadIdealProcessorEx(GetCurrentThread(), &number));
    assert_int_equal(number.Number, 0);
    GetCurrentProcessorNumberEx(&number);
    assert_true(number.Number < 64);
    assert_true(GetCurrentProcessorNumber() < 64 * 40);
}

static ULONGLONG value_of(FILETIME time)
{
    return (ULONGLONG)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

static void times(void **state)
{
    FILETIME create, exit, kernel, user, now;
    HANDLE thread = CreateThread(NULL, 0, return_argument, NULL, 0, NULL);

    (void)state;
    join(thread);
    assert_true(GetThreadTimes(thread, &create, &exit, &kernel, &user));
    GetSystemTimeAsFileTime(&now);
    assert_true(value_of(create) <= value_of(exit));
    assert_true(value_of(exit) <= value_of(now) + 10000000);
    assert_true(GetThreadTimes(GetCurrentThread(), &create, &exit, &kernel, &user));
    assert_int_equal(value_of(exit), 0);
    assert_true(value_of(kernel) + value_of(user) > 0);
    CloseHandle(thread);
}

static void descriptions(void **state)
{
    static const WCHAR name[] = u"worker \u00e9";
    PWSTR text;

    (void)state;
    assert_true(SUCCEEDED(GetThreadDescription(GetCurrentThread(), &text)));
    assert_int_equal(text[0], 0);
    assert_null(LocalFree(text));
    assert_true(SUCCEEDED(SetThreadDescription(GetCurrentThread(), name)));
    assert_true(SUCCEEDED(GetThreadDescription(GetCurrentThread(), &text)));
    assert_memory_equal(text, name, sizeof(name));
    assert_null(LocalFree(text));
    assert_true(SUCCEEDED(SetThreadDescription(GetCurrentThread(), u"")));
    assert_true(SUCCEEDED(GetThreadDescription(GetCurrentThread(), &text)));
    assert_int_equal(text[0], 0);
    assert_null(LocalFree(text));
    assert_true(FAILED(SetThreadDescription((HANDLE)0x4444, name)));
    assert_true(FAILED(GetThreadDescription((HANDLE)0x4444, &text)));
    assert_null(text);
}

static ULONG_PTR apc_sum;

static VOID WINAPI add(ULONG_PTR data)
{
    apc_sum = apc_sum * 10 + data;
}

static void apcs(void **state)
{
    HANDLE thread = CreateThread(NULL, 0, return_argument, NULL, 0, NULL);
    BOOL pending = 9;
    ULONG size = 0x4000;

    (void)state;
    apc_sum = 0;
    assert_int_equal(QueueUserAPC(add, GetCurrentThread(), 1), 1);
    assert_true(QueueUserAPC2(add, GetCurrentThread(), 2, QUEUE_USER_APC_FLAGS_NONE));
    assert_int_equal(SleepEx(0, FALSE), 0);
    assert_int_equal(apc_sum, 0);
    assert_int_equal(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    assert_int_equal(apc_sum, 12);
    join(thread);
    SetLastError(0);
    assert_int_equal(QueueUserAPC(add, thread, 1), 0);
    assert_int_equal(GetLastError(), ERROR_GEN_FAILURE);
    SetLastError(0);
    assert_int_equal(QueueUserAPC(NULL, GetCurrentThread(), 1), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(QueueUserAPC2(add, GetCurrentThread(), 2, QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_true(GetThreadIOPendingFlag(thread, &pending));
    assert_false(pending);
    assert_true(SetThreadStackGuarantee(&size));
    assert_int_equal(size, 0);
    assert_true(SetThreadStackGuarantee(&size));
    assert_int_equal(size, 0x4000);
    CloseHandle(thread);
}

/* The C runtime's names. */

static HANDLE crt_done;
static DWORD crt_seen;

static unsigned crt_ex(void *argument)
{
    crt_seen = GetCurrentThreadId();
    if (argument != NULL)
        _endthreadex(44);
    return 33;
}

static void crt_plain(void *argument)
{
    if (argument != NULL) {
        SetEvent(crt_done);
        _endthread();
    }
    SetEvent(crt_done);
}

static void crt(void **state)
{
    unsigned id = 0;
    HANDLE thread = (HANDLE)_beginthreadex(NULL, 0, crt_ex, NULL, CREATE_SUSPENDED, &id);
    DWORD flags;

    (void)state;
    assert_non_null(thread);
    assert_int_equal(GetThreadId(thread), id);
    ResumeThread(thread);
    join(thread);
    assert_int_equal(exit_code_of(thread), 33);
    assert_int_equal(crt_seen, id);
    CloseHandle(thread);
    thread = (HANDLE)_beginthreadex(NULL, 0, crt_ex, (void *)1, 0, NULL);
    join(thread);
    assert_int_equal(exit_code_of(thread), 44);
    CloseHandle(thread);

    crt_done = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (ULONG_PTR how = 0; how < 2; how++) {
        thread = (HANDLE)_beginthread(crt_plain, 0, (void *)how);
        assert_true((uintptr_t)thread != (uintptr_t)-1);
        join(crt_done);
        /* it closes its own handle */
        watchdog_start(60);
        while (GetHandleInformation(thread, &flags))
            SwitchToThread();
        watchdog_stop();
    }
    CloseHandle(crt_done);
    errno = 0;
    assert_int_equal(_beginthreadex(NULL, 0, NULL, NULL, 0, NULL), 0);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_true(_beginthread(NULL, 0, NULL) == (uintptr_t)-1);
    assert_int_equal(errno, EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_and_exit_codes), cmocka_unit_test(who_am_i),     cmocka_unit_test(creation_that_fails),
        cmocka_unit_test(inheritance_is_kept),     cmocka_unit_test(ends),         cmocka_unit_test(opening),
        cmocka_unit_test(suspension),              cmocka_unit_test(priorities),   cmocka_unit_test(processors),
        cmocka_unit_test(times),                   cmocka_unit_test(descriptions), cmocka_unit_test(apcs),
        cmocka_unit_test(crt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
