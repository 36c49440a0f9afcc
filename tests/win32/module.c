#include "support.h"

#include <windows.h>
#include <winternl.h>
#include <process.h>

#include <string.h>

/* The library is linked into this program, so both are one module. */
__attribute__((visibility("default"))) int exported_by_the_program(void);

int exported_by_the_program(void)
{
    return 5;
}

static void names_of_modules(void **state)
{
    static const char *const names[] = {"kernel32", "kernel32.dll", "KERNEL32.DLL", "Kernel32"};
    HMODULE kernel = GetModuleHandleA("kernel32"), nt = GetModuleHandleW(u"ntdll"), module = NULL;

    (void)state;
    assert_non_null(kernel);
    assert_non_null(nt);
    assert_ptr_not_equal(kernel, nt);
    for (size_t i = 0; i < ARRAYSIZE(names); i++)
        assert_ptr_equal(GetModuleHandleA(names[i]), kernel);
    assert_ptr_equal(GetModuleHandleW(u"NTDLL.dll"), nt);
    assert_non_null(GetModuleHandleA("kernelbase.dll"));
    assert_non_null(GetModuleHandleA(NULL));
    assert_ptr_equal(GetModuleHandleA(NULL), GetModuleHandleW(NULL));
    assert_ptr_equal(LoadLibraryA("ntdll.dll"), nt);
    assert_ptr_equal(LoadLibraryW(u"kernel32"), kernel);
    assert_ptr_equal(LoadLibraryExA("kernel32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32), kernel);
    assert_ptr_equal(LoadLibraryExW(u"kernel32.dll", NULL, 0), kernel);
    assert_true(FreeLibrary(kernel));
    assert_ptr_equal(GetModuleHandleA("kernel32"), kernel);
    assert_true(GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN, "ntdll", &module));
    assert_ptr_equal(module, nt);
    assert_true(GetModuleHandleExW(0, u"kernel32", &module));
    assert_ptr_equal(module, kernel);
}

#define assert_not_found(call, error)                                                                                  \
    do {                                                                                                               \
        SetLastError(0);                                                                                               \
        assert_false(call);                                                                                            \
        assert_int_equal(GetLastError(), (error));                                                                     \
    } while (0)

static void what_is_no_module(void **state)
{
    char name[1000];
    HMODULE module = (HMODULE)1;

    (void)state;
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = 0;
    assert_not_found(GetModuleHandleA("user32"), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA(""), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA(".dll"), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA("kernel32x"), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA("kernel"), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA(name), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleW(u"user32.dll"), ERROR_MOD_NOT_FOUND);
    assert_not_found(LoadLibraryA("libc.so.6"), ERROR_MOD_NOT_FOUND);
    assert_not_found(LoadLibraryA(NULL), ERROR_MOD_NOT_FOUND);
    assert_not_found(LoadLibraryW(NULL), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleExA(0, "user32", &module), ERROR_MOD_NOT_FOUND);
    assert_null(module);
    assert_not_found(GetModuleHandleExA(0, "ntdll", NULL), ERROR_INVALID_PARAMETER);
    assert_not_found(FreeLibrary(NULL), ERROR_INVALID_HANDLE);
    assert_not_found(FreeLibrary((HMODULE)0x1234), ERROR_INVALID_HANDLE);
    assert_not_found(GetProcAddress((HMODULE)0x1234, "CloseHandle"), ERROR_MOD_NOT_FOUND);
}

static void functions(void **state)
{
    HMODULE kernel = GetModuleHandleA("kernel32"), base = GetModuleHandleA("kernelbase");
    HMODULE nt = GetModuleHandleA("ntdll");

    (void)state;
    assert_ptr_equal(GetProcAddress(kernel, "CloseHandle"), CloseHandle);
    assert_ptr_equal(GetProcAddress(base, "CloseHandle"), CloseHandle);
    assert_ptr_equal(GetProcAddress(nt, "NtClose"), NtClose);
    assert_ptr_equal(GetProcAddress(nt, "RtlNtStatusToDosError"), RtlNtStatusToDosError);
    assert_ptr_equal(GetProcAddress(GetModuleHandleA(NULL), "exported_by_the_program"), exported_by_the_program);
    assert_not_found(GetProcAddress(nt, "CloseHandle"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, "NtClose"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, "KeSetEvent"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(nt, "KeSetEvent"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, "closehandle"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, "MessageBoxA"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, "getopt_long"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, ""), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, (LPCSTR)5), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(kernel, NULL), ERROR_PROC_NOT_FOUND);
}

/* API sets stand for modules; the C library has its thread functions; macros and inline functions are found too. */
static void sets_and_macros(void **state)
{
    HMODULE crt = GetModuleHandleA("ucrtbase.dll"), nt = GetModuleHandleA("ntdll"), kernel = GetModuleHandleA("kernel32");
    void(WINAPI * zero)(void *, size_t);
    LONG(WINAPI * increment)(LONG volatile *);
    LONG value = 1;

    (void)state;
    assert_ptr_equal(GetModuleHandleA("api-ms-win-core-synch-l1-2-0.dll"), GetModuleHandleA("kernelbase"));
    assert_ptr_equal(LoadLibraryA("API-MS-Win-Core-Synch-l1-2-0"), GetModuleHandleA("kernelbase"));
    assert_ptr_equal(LoadLibraryW(u"api-ms-win-crt-runtime-l1-1-0.dll"), crt);
    assert_ptr_equal(GetProcAddress(LoadLibraryA("api-ms-win-core-synch-l1-2-0"), "WaitOnAddress"), WaitOnAddress);
    assert_ptr_equal(LoadLibraryA("winmm.dll"), GetModuleHandleA("WinMM"));
    assert_ptr_equal(LoadLibraryW(u"winmm"), GetModuleHandleA("api-ms-win-mm-time-l1-1-0.dll"));
    assert_ptr_equal(GetProcAddress(LoadLibraryA("winmm"), "timeBeginPeriod"), timeBeginPeriod);
    assert_ptr_equal(GetProcAddress(LoadLibraryA("winmm"), "timeGetTime"), timeGetTime);
    assert_ptr_equal(GetProcAddress(LoadLibraryA("winmm"), "timeSetEvent"), timeSetEvent);
    assert_ptr_equal(GetProcAddress(kernel, "timeGetTime"), timeGetTime);
    assert_not_found(GetProcAddress(kernel, "timeKillEvent"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(LoadLibraryA("winmm"), "CloseHandle"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetModuleHandleA("api-ms-win-core-"), ERROR_MOD_NOT_FOUND);
    assert_not_found(GetModuleHandleA("api-ms-win-gdi-1"), ERROR_MOD_NOT_FOUND);
    assert_non_null(GetModuleHandleA("msvcrt"));
    assert_ptr_equal(GetProcAddress(crt, "_beginthreadex"), _beginthreadex);
    assert_ptr_equal(GetProcAddress(GetModuleHandleA("msvcrt"), "_endthread"), _endthread);
    assert_not_found(GetProcAddress(kernel, "_beginthreadex"), ERROR_PROC_NOT_FOUND);
    assert_not_found(GetProcAddress(crt, "CloseHandle"), ERROR_PROC_NOT_FOUND);
    assert_ptr_equal(GetProcAddress(crt, "wcslen"), InterlockWcslen);
    assert_non_null(GetProcAddress(crt, "_getpid"));
    assert_non_null(GetProcAddress(nt, "RtlMoveMemory"));
    zero = (void(WINAPI *)(void *, size_t))(void (*)(void))GetProcAddress(kernel, "RtlZeroMemory");
    increment = (LONG(WINAPI *)(LONG volatile *))(void (*)(void))GetProcAddress(kernel, "InterlockedIncrement");
    assert_int_equal(increment(&value), 2);
    zero(&value, sizeof(value));
    assert_int_equal(value, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_modules),
        cmocka_unit_test(what_is_no_module),
        cmocka_unit_test(functions),
        cmocka_unit_test(sets_and_macros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
