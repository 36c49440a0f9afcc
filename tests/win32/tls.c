#include "support.h"

#include <windows.h>

#include <sys/wait.h>
#include <unistd.h>

#include "ps/psp.h"

#define INDEXES (64 + 1024)
#define ALLOCATABLE (INDEXES - 1) /* 0 is never given out */

static DWORD indexes[INDEXES];

static void join(HANDLE thread)
{
    assert_int_equal(WaitForSingleObject(thread, 120000), WAIT_OBJECT_0);
    CloseHandle(thread);
}

static DWORD WINAPI use_all(LPVOID argument)
{
    ULONG_PTR base = (ULONG_PTR)argument;

    for (DWORD i = 0; i < ALLOCATABLE; i++)
        if (TlsGetValue(indexes[i]) != NULL || !TlsSetValue(indexes[i], (LPVOID)(base + i)))
            return 1;
    for (DWORD i = 0; i < ALLOCATABLE; i++)
        if (TlsGetValue(indexes[i]) != (LPVOID)(base + i))
            return 2;
    return 0;
}

static void every_index_in_every_thread(void **state)
{
    HANDLE threads[4];

    (void)state;
    for (DWORD i = 0; i < ALLOCATABLE; i++) {
        indexes[i] = TlsAlloc();
        assert_true(indexes[i] != 0 && indexes[i] < INDEXES);
        for (DWORD j = i > 2 ? i - 2 : 0; j < i; j++)
            assert_int_not_equal(indexes[i], indexes[j]);
    }
    SetLastError(0);
    assert_int_equal(TlsAlloc(), TLS_OUT_OF_INDEXES);
    assert_int_equal(GetLastError(), ERROR_NO_MORE_ITEMS);
    for (ULONG_PTR i = 0; i < 4; i++)
        threads[i] = CreateThread(NULL, 0, use_all, (LPVOID)(0x10000 * (i + 1)), 0, NULL);
    assert_int_equal(use_all((LPVOID)0x1000000), 0);
    for (int i = 0; i < 4; i++) {
        DWORD code;

        assert_int_equal(WaitForSingleObject(threads[i], 120000), WAIT_OBJECT_0);
        assert_true(GetExitCodeThread(threads[i], &code));
        assert_int_equal(code, 0);
        CloseHandle(threads[i]);
    }
    for (DWORD i = 0; i < ALLOCATABLE; i++)
        assert_true(TlsFree(indexes[i]));
}

static void errors(void **state)
{
    DWORD index = TlsAlloc();

    (void)state;
    assert_true(TlsSetValue(index, (LPVOID)5));
    SetLastError(77);
    assert_ptr_equal(TlsGetValue(index), (LPVOID)5);
    assert_int_equal(GetLastError(), ERROR_SUCCESS);
    SetLastError(77);
    assert_true(TlsSetValue(index, NULL));
    assert_int_equal(GetLastError(), 77);
    assert_null(TlsGetValue(INDEXES));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(TlsSetValue(INDEXES, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(TlsFree(index));
    SetLastError(0);
    assert_false(TlsFree(index));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(TlsFree(0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(TlsFree(TLS_OUT_OF_INDEXES));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

struct pair {
    DWORD low, high;
    HANDLE set, freed;
};

static DWORD WINAPI keep_values(LPVOID argument)
{
    struct pair *pair = argument;

    TlsSetValue(pair->low, (LPVOID)1);
    TlsSetValue(pair->high, (LPVOID)2);
    ReleaseSemaphore(pair->set, 1, NULL);
    WaitForSingleObject(pair->freed, INFINITE);
    return TlsGetValue(pair->low) == NULL && TlsGetValue(pair->high) == NULL;
}

/* The next owner of a freed index finds NULL in all threads, even in those that had a value. */
static void freeing_clears_the_index_in_all_threads(void **state)
{
    struct pair pair = {.set = CreateSemaphoreW(NULL, 0, 10, NULL), .freed = CreateEventW(NULL, TRUE, FALSE, NULL)};
    DWORD fill[100], filled = 0;
    HANDLE threads[3];

    (void)state;
    pair.low = TlsAlloc();
    do {
        fill[filled] = TlsAlloc();
    } while (fill[filled++] < 80);
    pair.high = fill[filled - 1];
    for (int i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, keep_values, &pair, 0, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(WaitForSingleObject(pair.set, 120000), WAIT_OBJECT_0);
    TlsSetValue(pair.low, (LPVOID)3);
    TlsSetValue(pair.high, (LPVOID)4);
    assert_true(TlsFree(pair.low));
    assert_true(TlsFree(pair.high));
    assert_int_equal(TlsAlloc(), pair.low);
    assert_int_equal(TlsAlloc(), pair.high);
    assert_null(TlsGetValue(pair.low));
    assert_null(TlsGetValue(pair.high));
    SetEvent(pair.freed);
    for (int i = 0; i < 3; i++) {
        DWORD code;

        assert_int_equal(WaitForSingleObject(threads[i], 120000), WAIT_OBJECT_0);
        assert_true(GetExitCodeThread(threads[i], &code));
        assert_int_equal(code, 1);
        CloseHandle(threads[i]);
    }
    TlsFree(pair.low);
    while (filled-- > 0)
        TlsFree(fill[filled]);
    CloseHandle(pair.set);
    CloseHandle(pair.freed);
}

static volatile LONG stop;

static DWORD WINAPI use_expansion(LPVOID argument)
{
    DWORD index = *(DWORD *)argument;

    do {
        TlsSetValue(index, (LPVOID)1);
        TlsGetValue(index);
    } while (!__atomic_load_n(&stop, __ATOMIC_RELAXED));
    return 0;
}

static DWORD WINAPI come_and_go(LPVOID argument)
{
    for (unsigned long i = test_rounds(100); i > 0; i--)
        join(CreateThread(NULL, 0x40000, use_expansion, argument, 0, NULL));
    return 0;
}

/* Arrays are freed with their threads, which exit or are terminated, while another thread frees indexes that are in
   them. */
static void freeing_while_threads_end(void **state)
{
    DWORD fill[70], index;
    HANDLE spawner;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(fill); i++)
        fill[i] = TlsAlloc();
    index = fill[ARRAYSIZE(fill) - 1];
    assert_true(index >= 64);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    spawner = CreateThread(NULL, 0, come_and_go, &index, 0, NULL);
    do {
        DWORD other = TlsAlloc();

        TlsFree(other);
        __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
        HANDLE victim = CreateThread(NULL, 0x40000, use_expansion, &index, 0, NULL);
        SwitchToThread();
        assert_true(TerminateThread(victim, 1));
        join(victim);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    } while (WaitForSingleObject(spawner, 0) == WAIT_TIMEOUT);
    CloseHandle(spawner);
    for (size_t i = 0; i < ARRAYSIZE(fill); i++)
        TlsFree(fill[i]);
}

static DWORD WINAPI allocate_and_free(LPVOID argument)
{
    while (__atomic_load_n((ULONG *)argument, __ATOMIC_RELAXED) == 0) {
        DWORD index = TlsAlloc(), fiber = FlsAlloc(NULL);

        TlsFree(index);
        FlsFree(fiber);
    }
    return 0;
}

/* Whatever others do at the moment of a fork, the child finds both kinds of storage usable. Not with a sanitizer, whose
   own locks another thread may hold then. */
static void a_forked_child_allocates(void **state)
{
    ULONG done = 0;
    HANDLE threads[2];

    (void)state;
    if (test_slowdown() != 1)
        skip();
    for (int i = 0; i < 2; i++)
        threads[i] = CreateThread(NULL, 0x40000, allocate_and_free, &done, 0, NULL);
    for (unsigned long round = test_rounds(200); round > 0; round--) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            alarm(60);
            _exit(!TlsFree(TlsAlloc()) || !FlsFree(FlsAlloc(NULL)));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        join(threads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_in_every_thread),
        cmocka_unit_test(errors),
        cmocka_unit_test(freeing_clears_the_index_in_all_threads),
        cmocka_unit_test(freeing_while_threads_end),
        cmocka_unit_test(a_forked_child_allocates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
