#include "sanitizers.h"
#include "support.h"

#include <windows.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void variables(void **state)
{
    char text[16];
    WCHAR wide[16];

    (void)state;
    unsetenv("interlock_one");
    assert_true(SetEnvironmentVariableA("interlock_one", "value"));
    assert_string_equal(getenv("interlock_one"), "value");
    assert_int_equal(GetEnvironmentVariableA("interlock_one", text, sizeof(text)), 5);
    assert_string_equal(text, "value");
    assert_int_equal(GetEnvironmentVariableA("interlock_one", text, 5), 6);
    assert_true(SetEnvironmentVariableW(u"interlock_one", u"\u00e4"));
    assert_int_equal(GetEnvironmentVariableW(u"interlock_one", wide, 16), 1);
    assert_int_equal(wide[0], 0xe4);
    assert_int_equal(GetEnvironmentVariableA("interlock_one", text, sizeof(text)), 2);
    assert_true(SetEnvironmentVariableA("interlock_one", ""));
    SetLastError(5);
    assert_int_equal(GetEnvironmentVariableA("interlock_one", text, sizeof(text)), 0);
    assert_int_equal(GetLastError(), ERROR_SUCCESS);
    assert_true(SetEnvironmentVariableA("interlock_one", NULL));
    assert_null(getenv("interlock_one"));
    assert_false(SetEnvironmentVariableA("interlock_one", NULL));
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
    assert_false(SetEnvironmentVariableA("", "x"));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(SetEnvironmentVariableA("a=b", "x"));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(SetEnvironmentVariableW(NULL, u"x"));
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
}

static void all_variables(void **state)
{
    LPCH block;
    LPWCH wide;
    bool found = false, found_wide = false;

    (void)state;
    SetEnvironmentVariableA("interlock_two", "2");
    block = GetEnvironmentStringsA();
    assert_non_null(block);
    for (LPCH next = block; *next != 0; next += strlen(next) + 1)
        found = found || strcmp(next, "interlock_two=2") == 0;
    assert_true(found);
    assert_true(FreeEnvironmentStringsA(block));
    wide = GetEnvironmentStringsW();
    assert_non_null(wide);
    for (LPWCH next = wide; *next != 0; next += lstrlenW(next) + 1)
        found_wide = found_wide || lstrcmpW(next, u"interlock_two=2") == 0;
    assert_true(found_wide);
    assert_true(FreeEnvironmentStringsW(wide));
}

/* The C library's setenv moves the array under a getenv of another thread. */
static void set_and_get(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(500);
    char name[32], value[64];

    (void)argument;
    for (unsigned long round = 0; round < rounds; round++) {
        snprintf(name, sizeof(name), "interlock_%u_%lu", index, round % 50);
        snprintf(value, sizeof(value), "%lu", round);
        assert_true(SetEnvironmentVariableA(name, value));
        assert_int_equal(GetEnvironmentVariableA(name, value, sizeof(value)), strlen(value));
        assert_int_equal(strtoul(value, NULL, 10), round);
    }
}

static void variables_of_many_threads(void **state)
{
    (void)state;
    errno = 77;
    SetEnvironmentVariableA("interlock_errno", "x");
    assert_int_equal(errno, 77);
    run_threads(4, 60, set_and_get, NULL);
}

static void file_names(void **state)
{
    char program[PATH_MAX], path[PATH_MAX];
    WCHAR wide[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    (void)state;
    program[length] = 0;
    assert_int_equal(GetModuleFileNameA(NULL, path, sizeof(path)), length);
    assert_string_equal(path, program);
    assert_int_equal(GetModuleFileNameW(NULL, wide, PATH_MAX), length);
    assert_int_equal(wide[0], '/');
    assert_int_equal(wide[length], 0);
    assert_int_equal(GetModuleFileNameA(GetModuleHandleA("kernel32"), path, sizeof(path)), strlen(path));
    assert_int_equal(path[0], '/');

    SetLastError(0);
    assert_int_equal(GetModuleFileNameA(NULL, path, 4), 4); /* truncated, and terminated */
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    assert_int_equal(strlen(path), 3);
    assert_int_equal(GetModuleFileNameW(NULL, wide, 1), 1);
    assert_int_equal(wide[0], 0);
    assert_int_equal(GetModuleFileNameA((HMODULE)&length, path, sizeof(path)), 0);
    assert_int_equal(GetLastError(), ERROR_MOD_NOT_FOUND);
}

static __attribute__((noinline)) USHORT capture(ULONG skip, ULONG count, PVOID *frames, PULONG hash)
{
    volatile USHORT captured = CaptureStackBackTrace(skip, count, frames, hash); /* no jump in place of the call */

    return captured;
}

static void back_traces(void **state)
{
    PVOID frames[32], fewer[32];
    ULONG hash = 0, again = 1;
    USHORT count = capture(0, 32, frames, &hash);

    (void)state;
#if defined(ADDRESS_SANITIZER) || defined(THREAD_SANITIZER)
    skip(); /* their own frames are in between */
#endif
    assert_true(count >= 3);
    assert_in_range((ULONG_PTR)frames[0], (ULONG_PTR)capture, (ULONG_PTR)capture + 512);
    assert_int_equal(capture(1, 32, fewer, NULL), count - 1);
    assert_in_range((ULONG_PTR)fewer[0], (ULONG_PTR)back_traces, (ULONG_PTR)back_traces + 4096);
    assert_ptr_equal(fewer[1], frames[2]);
    assert_int_equal(capture(0, 2, fewer, &again), 2);
    assert_ptr_equal(fewer[0], frames[0]);
    assert_int_equal(again, (ULONG)(ULONG_PTR)fewer[0] + (ULONG)(ULONG_PTR)fewer[1]);
    assert_int_equal(capture(0, 0, fewer, &again), 0);
    assert_int_equal(again, 0);
}

static DWORD WINAPI query_error_mode(LPVOID unused)
{
    (void)unused;
    return GetThreadErrorMode();
}

static void error_modes(void **state)
{
    DWORD old = 99, code = 99;
    HANDLE thread;

    (void)state;
    assert_int_equal(GetThreadErrorMode(), 0);
    assert_true(SetThreadErrorMode(SEM_FAILCRITICALERRORS, &old));
    assert_int_equal(old, 0);
    assert_int_equal(GetThreadErrorMode(), SEM_FAILCRITICALERRORS);
    thread = CreateThread(NULL, 0, query_error_mode, NULL, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    assert_int_equal(code, 0); /* it is the thread's */
    CloseHandle(thread);
    assert_false(SetThreadErrorMode(0x4000, &old));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(SetThreadErrorMode(0, NULL));
    assert_int_equal(GetThreadErrorMode(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables),   cmocka_unit_test(all_variables),
        cmocka_unit_test(file_names),  cmocka_unit_test(back_traces),
        cmocka_unit_test(error_modes), cmocka_unit_test(variables_of_many_threads),
    };

    return cmocka_run_group_tests_name("win32/program", tests, NULL, NULL);
}
