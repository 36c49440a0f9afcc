#include "sanitizers.h"
#include "support.h"

#include <windows.h>
#include <winternl.h>

static void no_context(void **state)
{
    (void)state;
    assert_false(GetThreadContext(GetCurrentThread(), NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_false(SetThreadContext(NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
}

/* ThreadSanitizer calls handlers later, with other registers. */
#if defined(__x86_64__) && !defined(THREAD_SANITIZER)
#define HAS_REGISTERS 1
#endif

#ifdef HAS_REGISTERS

static volatile LONG spins, redirected;
static volatile ULONG64 kept;

/* Runs its own code: the host has to interrupt it. */
static DWORD WINAPI spin(LPVOID unused)
{
    (void)unused;
    for (;;)
        InterlockedIncrement(&spins);
    return 0;
}

static HANDLE start_spinning(void)
{
    LONG before = ReadNoFence(&spins);
    HANDLE thread = CreateThread(NULL, 0, spin, NULL, 0, NULL);

    assert_non_null(thread);
    while (ReadNoFence(&spins) == before)
        SwitchToThread();
    return thread;
}

static void the_registers_of_a_running_thread(void **state)
{
    CONTEXT context = {.ContextFlags = CONTEXT_CONTROL}, full = {.ContextFlags = CONTEXT_FULL};
    MEMORY_BASIC_INFORMATION information;
    HANDLE thread = start_spinning();

    (void)state;
    assert_int_equal(SuspendThread(thread), 0);
    assert_true(GetThreadContext(thread, &context));
    assert_int_equal(VirtualQuery((PVOID)context.Rip, &information, sizeof(information)), sizeof(information));
    assert_int_not_equal(information.Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE), 0);
    assert_int_equal(VirtualQuery((PVOID)context.Rsp, &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.Protect, PAGE_READWRITE);
    assert_int_equal(context.Rbx, 0); /* not asked for */
    assert_true(GetThreadContext(thread, &full));
    assert_int_equal(full.Rip, context.Rip);
    assert_int_equal(full.FltSave.MxCsr & 0x1F80, 0x1F80);
    assert_true(SetThreadContext(thread, &full)); /* as it was: the thread continues */
    assert_int_equal(ResumeThread(thread), 1);
    LONG now = ReadNoFence(&spins);
    while (ReadNoFence(&spins) == now)
        SwitchToThread();
    TerminateThread(thread, 0);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

static DECLSPEC_NORETURN VOID end_here(VOID)
{
    double aligned[2] = {1, 2}; /* faults on a stack that is not aligned */

    kept = (ULONG64)(aligned[0] + aligned[1]);
    InterlockedExchange(&redirected, 1);
    ExitThread(33);
}

/* As an emulation of asynchronous cancellation does it. */
static void a_thread_continues_elsewhere(void **state)
{
    for (unsigned long round = test_rounds(200); round != 0; round--) {
        CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
        HANDLE thread = start_spinning();
        DWORD code = 0;

        assert_int_equal(SuspendThread(thread), 0);
        assert_true(GetThreadContext(thread, &context));
        context.Rip = (ULONG64)(ULONG_PTR)end_here;
        assert_true(SetThreadContext(thread, &context));
        assert_int_equal(ResumeThread(thread), 1);
        assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
        GetExitCodeThread(thread, &code);
        assert_int_equal(code, 33);
        CloseHandle(thread);
    }
    (void)state;
    assert_int_equal(redirected, 1);
    assert_int_equal(kept, 3);
}

static DWORD WINAPI wait_for_event(LPVOID event)
{
    return WaitForSingleObject(event, INFINITE);
}

static DWORD WINAPI wait_for_both(LPVOID events)
{
    return WaitForMultipleObjects(2, events, TRUE, INFINITE);
}

/* A thread that waits shows where it sleeps: its stack pointer is on its stack. The wait continues, whether a
   suspension has interrupted it (one object) or converted it (all of several). */
static void the_registers_of_a_waiting_thread(void **state)
{
    HANDLE events[2] = {CreateEventA(NULL, TRUE, FALSE, NULL), CreateEventA(NULL, TRUE, FALSE, NULL)};

    (void)state;
    for (unsigned long round = test_rounds(40); round != 0; round--) {
        BOOL all = round % 2 != 0;
        DWORD id, code = 99;
        HANDLE thread = CreateThread(NULL, 0, all ? wait_for_both : wait_for_event, all ? (LPVOID)events : events[0], 0, &id);
        CONTEXT context = {.ContextFlags = CONTEXT_FULL}, again = {.ContextFlags = CONTEXT_CONTROL};
        MEMORY_BASIC_INFORMATION information;

        while (!sleeps_in_the_host(id))
            SwitchToThread();
        assert_int_equal(SuspendThread(thread), 0);
        while (!sleeps_in_the_host(id))
            SwitchToThread();
        assert_true(GetThreadContext(thread, &context));
        assert_int_equal(VirtualQuery((PVOID)context.Rip, &information, sizeof(information)), sizeof(information));
        assert_int_not_equal(information.Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE), 0);
        assert_int_equal(VirtualQuery((PVOID)context.Rsp, &information, sizeof(information)), sizeof(information));
        assert_int_equal(information.Protect, PAGE_READWRITE);
        assert_true(context.Rsp != 0 && context.Rip != 0);
        while (!sleeps_in_the_host(id)) /* the first read has interrupted it */
            SwitchToThread();
        assert_true(GetThreadContext(thread, &again)); /* it has not moved */
        assert_true(again.Rsp == context.Rsp && again.Rip == context.Rip);
        assert_true(SetThreadContext(thread, &context)); /* as it was */
        SetEvent(events[0]);
        SetEvent(events[1]);
        assert_int_equal(WaitForSingleObject(thread, 0), WAIT_TIMEOUT); /* suspended */
        assert_int_equal(ResumeThread(thread), 1);
        assert_int_equal(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
        GetExitCodeThread(thread, &code);
        assert_int_equal(code, WAIT_OBJECT_0);
        CloseHandle(thread);
        ResetEvent(events[0]);
        ResetEvent(events[1]);
    }
    CloseHandle(events[0]);
    CloseHandle(events[1]);
}

static DWORD WINAPI sleep_for_ever(LPVOID ready)
{
    SetEvent(ready);
    for (;;)
        Sleep(1);
    return 0;
}

static void send_elsewhere(HANDLE thread)
{
    CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};

    assert_int_equal(SuspendThread(thread), 0);
    assert_true(GetThreadContext(thread, &context));
    context.Rip = (ULONG64)(ULONG_PTR)end_here;
    assert_true(SetThreadContext(thread, &context));
    assert_int_equal(ResumeThread(thread), 1);
}

static void expect_elsewhere(HANDLE thread)
{
    DWORD code = 0;

    assert_int_equal(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    GetExitCodeThread(thread, &code);
    assert_int_equal(code, 33);
    CloseHandle(thread);
}

/* New registers do not end a wait: the thread has them when its wait has ended. */
static void a_waiting_thread_continues_elsewhere(void **state)
{
    HANDLE events[2] = {CreateEventA(NULL, TRUE, FALSE, NULL), CreateEventA(NULL, TRUE, FALSE, NULL)};

    (void)state;
    for (unsigned long round = test_rounds(40); round != 0; round--) {
        BOOL all = round % 2 != 0;
        DWORD id;
        HANDLE thread = CreateThread(NULL, 0, all ? wait_for_both : wait_for_event, all ? (LPVOID)events : events[0], 0, &id);

        while (!sleeps_in_the_host(id))
            SwitchToThread();
        send_elsewhere(thread);
        while (!sleeps_in_the_host(id))
            SwitchToThread();
        assert_int_equal(WaitForSingleObject(thread, 0), WAIT_TIMEOUT);
        SetEvent(events[0]);
        SetEvent(events[1]);
        expect_elsewhere(thread);
        ResetEvent(events[0]);
        ResetEvent(events[1]);
    }
    CloseHandle(events[0]);
    CloseHandle(events[1]);
}

/* Asleep, between two sleeps, or in the library: wherever it is. */
static void a_sleeping_thread_continues_elsewhere(void **state)
{
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)state;
    for (unsigned long round = test_rounds(200); round != 0; round--) {
        HANDLE thread = CreateThread(NULL, 0, sleep_for_ever, ready, 0, NULL);

        assert_int_equal(WaitForSingleObject(ready, 120000), WAIT_OBJECT_0);
        send_elsewhere(thread);
        expect_elsewhere(thread);
    }
    CloseHandle(ready);
}

static void where_there_are_no_registers(void **state)
{
    CONTEXT context = {.ContextFlags = CONTEXT_CONTROL};
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    DWORD id;
    HANDLE thread = CreateThread(NULL, 0, wait_for_event, event, 0, &id), other;

    (void)state;
    assert_false(GetThreadContext(thread, &context)); /* not suspended */
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    SetEvent(event);
    WaitForSingleObject(thread, INFINITE);
    assert_false(GetThreadContext(thread, &context)); /* has ended */
    assert_false(GetThreadContext(GetCurrentThread(), &context));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    other = OpenThread(THREAD_QUERY_INFORMATION, FALSE, GetCurrentThreadId());
    assert_false(GetThreadContext(other, &context));
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    CloseHandle(other);
    CloseHandle(thread);
    CloseHandle(event);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_context),
#ifdef HAS_REGISTERS
        cmocka_unit_test(the_registers_of_a_running_thread),
        cmocka_unit_test(a_thread_continues_elsewhere),
        cmocka_unit_test(the_registers_of_a_waiting_thread),
        cmocka_unit_test(a_waiting_thread_continues_elsewhere),
        cmocka_unit_test(a_sleeping_thread_continues_elsewhere),
        cmocka_unit_test(where_there_are_no_registers),
#endif
    };

    return cmocka_run_group_tests_name("win32/context", tests, NULL, NULL);
}
