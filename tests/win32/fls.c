#include "support.h"

#include <windows.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 64

static DWORD first, second, third, plain;
static volatile LONG calls;
static ULONG_PTR called[CALLS];
static DWORD called_on[CALLS];

static VOID WINAPI note(PVOID value)
{
    LONG call = InterlockedIncrement(&calls) - 1;

    called[call % CALLS] = (ULONG_PTR)value;
    called_on[call % CALLS] = GetCurrentThreadId();
}

static void join(HANDLE thread)
{
    assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
    CloseHandle(thread);
}

static int make_indexes(void **state)
{
    (void)state;
    calls = 0;
    first = FlsAlloc(note);
    second = FlsAlloc(note);
    third = FlsAlloc(note);
    plain = FlsAlloc(NULL);
    return 0;
}

static int free_indexes(void **state)
{
    (void)state;
    FlsFree(first);
    FlsFree(second);
    FlsFree(third);
    FlsFree(plain);
    return 0;
}

static void set_values(void)
{
    FlsSetValue(third, (PVOID)30);
    FlsSetValue(first, (PVOID)10);
    FlsSetValue(plain, (PVOID)40);
    FlsSetValue(second, NULL);
}

static DWORD WINAPI return_after_setting(LPVOID argument)
{
    set_values();
    if (argument != NULL)
        ExitThread(0);
    return 0;
}

static void *pthread_after_setting(void *argument)
{
    set_values();
    if (argument != NULL)
        pthread_exit(NULL);
    return NULL;
}

/* In the order of the indexes, values that are not NULL, on the thread that ends, before its object is signaled. */
static void expect_calls_of_one_thread(DWORD id)
{
    assert_int_equal(calls, 2);
    assert_int_equal(called[0], 10);
    assert_int_equal(called[1], 30);
    if (id != 0) {
        assert_int_equal(called_on[0], id);
        assert_int_equal(called_on[1], id);
    }
    calls = 0;
}

static void callbacks_of_a_thread_that_ends(void **state)
{
    (void)state;
    for (ULONG_PTR how = 0; how < 2; how++) {
        DWORD id;
        HANDLE thread = CreateThread(NULL, 0, return_after_setting, (LPVOID)how, 0, &id);
        pthread_t host;

        join(thread);
        expect_calls_of_one_thread(id);
        assert_int_equal(pthread_create(&host, NULL, pthread_after_setting, (void *)how), 0);
        pthread_join(host, NULL);
        expect_calls_of_one_thread(0);
    }
}

static void values_and_errors(void **state)
{
    DWORD index = plain;

    (void)state;
    assert_true(first != 0 && second == first + 1 && third == second + 1);
    SetLastError(77);
    assert_null(FlsGetValue(index));
    assert_int_equal(GetLastError(), ERROR_SUCCESS);
    SetLastError(77);
    assert_true(FlsSetValue(index, (PVOID)5));
    assert_int_equal(GetLastError(), 77);
    assert_ptr_equal(FlsGetValue(index), (PVOID)5);
    assert_true(FlsSetValue(index, NULL));
    for (int i = 0; i < 2; i++) {
        DWORD bad = i == 0 ? 0 : FLS_MAXIMUM_AVAILABLE;

        SetLastError(0);
        assert_null(FlsGetValue(bad));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
        SetLastError(0);
        assert_false(FlsSetValue(bad, NULL));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
        SetLastError(0);
        assert_false(FlsFree(bad));
        assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    }
    assert_true(FlsFree(index));
    SetLastError(0);
    assert_false(FlsFree(index));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    /* An index that is not allocated takes a value, which its next owner does not find. */
    SetLastError(77);
    assert_true(FlsSetValue(index, (PVOID)1));
    assert_int_equal(GetLastError(), 77);
    assert_ptr_equal(FlsGetValue(index), (PVOID)1);
    assert_int_equal(FlsAlloc(NULL), index);
    assert_null(FlsGetValue(index));
    assert_true(FlsFree(index));
}

static void all_indexes(void **state)
{
    DWORD all[FLS_MAXIMUM_AVAILABLE], count = 0;

    (void)state;
    while ((all[count] = FlsAlloc(NULL)) != FLS_OUT_OF_INDEXES)
        count++;
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
    assert_int_equal(count, FLS_MAXIMUM_AVAILABLE - 1 - 4);
    for (DWORD i = 0; i < count; i++)
        assert_true(FlsSetValue(all[i], (PVOID)(ULONG_PTR)i) && FlsGetValue(all[i]) == (PVOID)(ULONG_PTR)i);
    while (count-- > 0)
        assert_true(FlsFree(all[count]));
}

static HANDLE set, go;

static DWORD WINAPI hold_value(LPVOID argument)
{
    FlsSetValue(first, argument);
    FlsSetValue(second, argument);
    ReleaseSemaphore(set, 1, NULL);
    WaitForSingleObject(go, INFINITE);
    return FlsGetValue(first) == NULL;
}

/* Freeing an index runs its callback at once, on this thread, for the values of all threads. */
static void freeing_calls_for_all_threads(void **state)
{
    HANDLE threads[3];
    ULONG_PTR sum = 0;

    (void)state;
    set = CreateSemaphoreW(NULL, 0, 10, NULL);
    go = CreateEventW(NULL, TRUE, FALSE, NULL);
    FlsSetValue(first, (PVOID)1000);
    for (ULONG_PTR i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, hold_value, (LPVOID)(i + 1), 0, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(WaitForSingleObject(set, 120000), WAIT_OBJECT_0);
    assert_true(FlsFree(first));
    assert_int_equal(calls, 4);
    for (int i = 0; i < 4; i++) {
        sum += called[i];
        assert_int_equal(called_on[i], GetCurrentThreadId());
    }
    assert_int_equal(sum, 1000 + 1 + 2 + 3);
    SetEvent(go);
    for (int i = 0; i < 3; i++) {
        DWORD code;

        assert_int_equal(WaitForSingleObject(threads[i], 120000), WAIT_OBJECT_0);
        assert_true(GetExitCodeThread(threads[i], &code));
        assert_int_equal(code, 1);
        CloseHandle(threads[i]);
    }
    assert_int_equal(calls, 7); /* the second index, by its threads */
    CloseHandle(set);
    CloseHandle(go);
}

static DWORD WINAPI wait_with_value(LPVOID argument)
{
    set_values();
    ReleaseSemaphore(set, 1, NULL);
    Sleep(INFINITE);
    return argument == NULL;
}

static void a_terminated_thread_has_no_callbacks(void **state)
{
    HANDLE thread;

    (void)state;
    set = CreateSemaphoreW(NULL, 0, 10, NULL);
    thread = CreateThread(NULL, 0, wait_with_value, NULL, 0, NULL);
    assert_int_equal(WaitForSingleObject(set, 120000), WAIT_OBJECT_0);
    assert_true(TerminateThread(thread, 1));
    join(thread);
    assert_int_equal(calls, 0);
    assert_true(FlsFree(first));
    assert_int_equal(calls, 0);
    CloseHandle(set);
}

static DWORD nested;
static BOOL nested_freed;

static VOID WINAPI free_itself(PVOID value)
{
    FlsSetValue(plain, value);
    nested_freed = FlsFree(nested);
    InterlockedIncrement(&calls);
}

static DWORD WINAPI set_nested(LPVOID argument)
{
    FlsSetValue(nested, argument);
    return 0;
}

static void a_callback_may_use_everything(void **state)
{
    (void)state;
    nested = FlsAlloc(free_itself);
    join(CreateThread(NULL, 0, set_nested, (LPVOID)1, 0, NULL));
    assert_int_equal(calls, 1);
    assert_true(nested_freed);
    assert_false(FlsFree(nested));
}

static volatile LONG in_callback;

static VOID WINAPI hang(PVOID value)
{
    (void)value;
    InterlockedExchange(&in_callback, 1);
    Sleep(INFINITE);
}

/* A thread that is ended inside its callback does not keep the index. */
static void ended_in_a_callback(void **state)
{
    HANDLE thread;

    (void)state;
    in_callback = 0;
    nested = FlsAlloc(hang);
    thread = CreateThread(NULL, 0, set_nested, (LPVOID)1, 0, NULL);
    while (InterlockedCompareExchange(&in_callback, 1, 1) == 0)
        SwitchToThread();
    assert_true(TerminateThread(thread, 1));
    join(thread);
    watchdog_start(60);
    assert_true(FlsFree(nested));
    watchdog_stop();
}

static VOID WINAPI wait_in_callback(PVOID event)
{
    InterlockedExchange(&in_callback, 1);
    WaitForSingleObject(event, INFINITE);
}

/* A callback that runs at the moment of a fork is not the child's: no thread of the child waits for its end. */
static void a_forked_child_waits_for_no_callback(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL), thread;
    pid_t child;
    int status;

    (void)state;
    in_callback = 0;
    nested = FlsAlloc(wait_in_callback);
    thread = CreateThread(NULL, 0, set_nested, event, 0, NULL);
    while (InterlockedCompareExchange(&in_callback, 1, 1) == 0)
        SwitchToThread();
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(!FlsFree(nested));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    SetEvent(event);
    join(thread);
    assert_true(FlsFree(nested));
    CloseHandle(event);
}

static volatile LONG balance;

static VOID WINAPI give_back(PVOID value)
{
    (void)value;
    InterlockedDecrement(&balance);
}

static DWORD WINAPI take(LPVOID argument)
{
    if (FlsSetValue(*(DWORD *)argument, argument))
        InterlockedIncrement(&balance);
    return 0;
}

/* The callback runs once for every value, whether its thread ends or its index is freed first. */
static void freeing_while_threads_end(void **state)
{
    (void)state;
    for (unsigned long round = test_rounds(100); round > 0; round--) {
        DWORD index = FlsAlloc(give_back);
        HANDLE threads[4];

        balance = 0;
        for (int i = 0; i < 4; i++)
            threads[i] = CreateThread(NULL, 0x40000, take, &index, 0, NULL);
        for (int i = 0; i < 2; i++)
            join(threads[i]);
        assert_true(FlsFree(index));
        for (int i = 2; i < 4; i++)
            join(threads[i]);
        /* a value set in the middle of FlsFree may be lost, never called twice */
        assert_true(balance >= 0 && balance <= 2);
    }
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, make_indexes, free_indexes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(callbacks_of_a_thread_that_ends), CASE(values_and_errors),
        CASE(all_indexes),                     CASE(freeing_calls_for_all_threads),
        CASE(a_terminated_thread_has_no_callbacks), CASE(a_callback_may_use_everything),
        CASE(ended_in_a_callback),             CASE(freeing_while_threads_end),
        CASE(a_forked_child_waits_for_no_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
