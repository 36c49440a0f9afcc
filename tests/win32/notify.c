/* notify.c: DllMain and TLS callbacks. */
#include "support.h"

#include <windows.h>
#include <winternl.h>

#include <pthread.h>

#include "child.h"

/* What was called, in order: a letter for the routine, a digit for the reason. */
static char calls[256];
static volatile LONG count;
static HINSTANCE module;
static DWORD slot = TLS_OUT_OF_INDEXES;
static void *value_at_detach;

static void note(char routine, DWORD reason)
{
    LONG at = InterlockedExchangeAdd(&count, 2);
    calls[at] = routine;
    calls[at + 1] = (char)('0' + reason);
}

static BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    if (reason == DLL_PROCESS_DETACH)
        return reserved != NULL;
    module = instance;
    note('M', reason);
    if (reason == DLL_THREAD_DETACH && slot != TLS_OUT_OF_INDEXES)
        value_at_detach = TlsGetValue(slot);
    return TRUE;
}

static VOID NTAPI on_thread(PVOID instance, DWORD reason, PVOID reserved)
{
    (void)instance, (void)reserved;
    if (reason != DLL_PROCESS_DETACH)
        note('T', reason);
}

INTERLOCK_DLL_MAIN(DllMain);
INTERLOCK_TLS_CALLBACK(on_thread);

#define expect_calls(text)                                                                                             \
    do {                                                                                                               \
        calls[count] = 0;                                                                                              \
        assert_string_equal(calls, (text));                                                                            \
        count = 0;                                                                                                     \
    } while (0)

static void attached_by_a_constructor(void **state)
{
    (void)state;
    expect_calls("M1T1");
    assert_non_null(module);
}

static DWORD WINAPI remember(LPVOID parameter)
{
    note('r', 0);
    TlsSetValue(slot, parameter);
    return 0;
}

static void run(LPTHREAD_START_ROUTINE routine, void *parameter, BOOL terminate)
{
    HANDLE thread = CreateThread(NULL, 0, routine, parameter, 0, NULL);

    assert_non_null(thread);
    if (terminate)
        assert_true(TerminateThread(thread, 1));
    assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CloseHandle(thread);
}

static void threads_of_the_library(void **state)
{
    (void)state;
    slot = TlsAlloc();
    run(remember, &slot, FALSE);
    expect_calls("T2M2r0T3M3"); /* TLS callbacks first, then DllMain */
    assert_ptr_equal(value_at_detach, &slot);
    TlsFree(slot);
    slot = TLS_OUT_OF_INDEXES;
}

static volatile LONG started;

static DWORD WINAPI sleep_forever(LPVOID parameter)
{
    (void)parameter;
    InterlockedExchange(&started, 1);
    Sleep(INFINITE);
    return 0;
}

static void terminated_threads_do_not_detach(void **state)
{
    HANDLE thread = CreateThread(NULL, 0, sleep_forever, NULL, 0, NULL);

    (void)state;
    while (!InterlockedCompareExchange(&started, 0, 0))
        Sleep(1);
    assert_true(TerminateThread(thread, 1));
    assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CloseHandle(thread);
    expect_calls("T2M2");
}

/* A thread of the host attaches on request, and detaches if the library knows it. */
static void *call_the_library(void *attach)
{
    if (attach != NULL)
        InterlockAttachThread();
    note('r', GetCurrentThreadId() == 0);
    return NULL;
}

static void threads_of_the_host(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, call_the_library, NULL), 0);
    pthread_join(thread, NULL);
    expect_calls("r0T3M3");
    assert_int_equal(pthread_create(&thread, NULL, call_the_library, calls), 0);
    pthread_join(thread, NULL);
    expect_calls("T2M2r0T3M3");
}

static VOID CALLBACK work(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    SetEvent(context);
}

static void threads_of_a_pool(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool;
    HANDLE done;

    (void)state;
    if (test_slowdown() != 1)
        skip(); /* the text is complete before it is read, which a sanitizer does not see */
    done = CreateEventA(NULL, TRUE, FALSE, NULL);
    pool = CreateThreadpool(NULL);
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolThreadMaximum(pool, 1);
    SetThreadpoolCallbackPool(&environment, pool);
    assert_true(TrySubmitThreadpoolCallback(work, done, &environment));
    assert_int_equal(WaitForSingleObject(done, INFINITE), WAIT_OBJECT_0);
    CloseHandle(done);
    assert_memory_equal(calls, "T2M2", 4);
    CloseThreadpool(pool);
    while (InterlockedCompareExchange(&count, 0, 0) < 8)
        Sleep(1);
    expect_calls("T2M2T3M3");
}

static VOID NTAPI counted(PVOID instance, DWORD reason, PVOID reserved)
{
    (void)instance, (void)reserved;
    note('c', reason);
}

static BOOL WINAPI refuse(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    (void)instance, (void)reason, (void)reserved;
    return FALSE;
}

/* Modules are added and removed; detaching is in the opposite order. */
static void modules_of_a_moment(void **state)
{
    static INTERLOCK_MODULE added = {.TlsCallback = counted}, refused = {.EntryPoint = refuse};
    volatile int raised = 0;

    (void)state;
    InterlockAttachModule(&added);
    run(remember, NULL, FALSE);
    InterlockDetachModule(&added);
    InterlockDetachModule(&added); /* once is enough */
    expect_calls("c1T2c2M2r0c3T3M3c0");
    __try {
        InterlockAttachModule(&refused);
    } __except (GetExceptionCode() == (DWORD)STATUS_DLL_INIT_FAILED ? EXCEPTION_EXECUTE_HANDLER
                                                                     : EXCEPTION_CONTINUE_SEARCH) {
        raised = 1;
    }
    assert_int_equal(raised, 1);
    InterlockDetachModule(&refused);
    run(remember, NULL, FALSE);
    expect_calls("T2M2r0T3M3");
}

static void exit_normally(void *unused)
{
    (void)unused;
    exit(0); /* the destructor gets a Reserved that is not NULL */
}

static void the_process_ends(void **state)
{
    (void)state;
    run_in_child(exit_normally, NULL);
}

static void without_thread_calls(void **state)
{
    (void)state;
    assert_false(DisableThreadLibraryCalls((HMODULE)&count));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(DisableThreadLibraryCalls(module));
    run(remember, NULL, FALSE);
    expect_calls("T2r0T3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attached_by_a_constructor),
        cmocka_unit_test(threads_of_the_library),
        cmocka_unit_test(terminated_threads_do_not_detach),
        cmocka_unit_test(threads_of_the_host),
        cmocka_unit_test(threads_of_a_pool),
        cmocka_unit_test(modules_of_a_moment),
        cmocka_unit_test(the_process_ends),
        cmocka_unit_test(without_thread_calls), /* last: for good */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
