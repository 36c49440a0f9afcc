#include "support.h"

#include <windows.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_machine(void **state)
{
    SYSTEM_INFO information, native;

    (void)state;
    GetSystemInfo(&information);
    GetNativeSystemInfo(&native);
    assert_memory_equal(&information, &native, sizeof(native));
    assert_int_equal(information.dwNumberOfProcessors, GetActiveProcessorCount(0));
    assert_int_equal(information.dwPageSize, sysconf(_SC_PAGESIZE));
    assert_int_equal(information.dwAllocationGranularity, 65536);
    assert_int_equal(__builtin_popcountl(information.dwActiveProcessorMask),
                     information.dwNumberOfProcessors > 64 ? 64 : information.dwNumberOfProcessors);
    assert_true(information.lpMaximumApplicationAddress > (LPVOID)&information);
    assert_true(GetActiveProcessorGroupCount() >= 1);
    assert_true(GetMaximumProcessorGroupCount() >= GetActiveProcessorGroupCount());
    assert_true(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) >= information.dwNumberOfProcessors);
    assert_true(GetMaximumProcessorCount(ALL_PROCESSOR_GROUPS) >= GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
    SetLastError(0);
    assert_int_equal(GetActiveProcessorCount(1000), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void the_version(void **state)
{
    OSVERSIONINFOEXW wide = {.dwOSVersionInfoSize = sizeof(wide)};
    OSVERSIONINFOA narrow = {.dwOSVersionInfoSize = sizeof(narrow)};

    (void)state;
    assert_true(GetVersionExW((LPOSVERSIONINFOW)&wide));
    assert_int_equal(wide.dwOSVersionInfoSize, sizeof(wide));
    assert_int_equal(wide.dwMajorVersion, 10);
    assert_int_equal(wide.dwMinorVersion, 0);
    assert_int_equal(wide.dwPlatformId, VER_PLATFORM_WIN32_NT);
    assert_int_equal(wide.wProductType, VER_NT_WORKSTATION);
    assert_true(GetVersionExA(&narrow));
    assert_int_equal(narrow.dwBuildNumber, wide.dwBuildNumber);
    assert_int_equal(LOBYTE(LOWORD(GetVersion())), 10);
    assert_int_equal(HIWORD(GetVersion()), wide.dwBuildNumber);
    narrow.dwOSVersionInfoSize = 5;
    assert_false(GetVersionExA(&narrow));
    assert_int_equal(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    wide.dwOSVersionInfoSize = sizeof(wide) + 1;
    assert_false(GetVersionExW((LPOSVERSIONINFOW)&wide));
}

static void the_environment(void **state)
{
    char text[8];
    WCHAR wide[8];

    (void)state;
    assert_int_equal(setenv("INTERLOCK_TEST", "\xC3\xA9" "abcd", 1), 0);
    assert_int_equal(GetEnvironmentVariableA("INTERLOCK_TEST", text, 8), 6);
    assert_string_equal(text, "\xC3\xA9" "abcd");
    assert_int_equal(GetEnvironmentVariableA("INTERLOCK_TEST", text, 6), 7);
    assert_int_equal(GetEnvironmentVariableA("INTERLOCK_TEST", NULL, 0), 7);
    assert_int_equal(GetEnvironmentVariableW(u"INTERLOCK_TEST", wide, 8), 5);
    assert_memory_equal(wide, u"\u00E9abcd", 12);
    assert_int_equal(GetEnvironmentVariableW(u"INTERLOCK_TEST", wide, 5), 6);
    assert_int_equal(setenv("INTERLOCK_TEST", "", 1), 0);
    SetLastError(5);
    assert_int_equal(GetEnvironmentVariableA("INTERLOCK_TEST", text, 8), 0);
    assert_int_equal(GetLastError(), ERROR_SUCCESS);
    assert_int_equal(unsetenv("INTERLOCK_TEST"), 0);
    assert_int_equal(GetEnvironmentVariableA("INTERLOCK_TEST", text, 8), 0);
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
    assert_int_equal(GetEnvironmentVariableW(u"INTERLOCK_TEST", wide, 8), 0);
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
    SetLastError(5);
    assert_int_equal(GetEnvironmentVariableA(NULL, text, 8), 0);
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
    SetLastError(5);
    assert_int_equal(GetEnvironmentVariableW(NULL, wide, 8), 0);
    assert_int_equal(GetLastError(), ERROR_ENVVAR_NOT_FOUND);
}

static void multiplied_and_divided(void **state)
{
    (void)state;
    assert_int_equal(MulDiv(6, 7, 2), 21);
    assert_int_equal(MulDiv(1, 1, 2), 1);
    assert_int_equal(MulDiv(1, 1, 3), 0);
    assert_int_equal(MulDiv(-1, 1, 2), -1);
    assert_int_equal(MulDiv(1, -3, 2), -2);
    assert_int_equal(MulDiv(3, 1, -2), -2);
    assert_int_equal(MulDiv(-3, 1, -2), 2);
    assert_int_equal(MulDiv(0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), 0x7FFFFFFF);
    assert_int_equal(MulDiv(0x7FFFFFFF, 2, 1), -1);
    assert_int_equal(MulDiv(1, 1, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine),
        cmocka_unit_test(the_version),
        cmocka_unit_test(the_environment),
        cmocka_unit_test(multiplied_and_divided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
