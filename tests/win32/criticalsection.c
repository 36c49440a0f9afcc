/* Critical sections by their Win32 names. */
#include "../rtl/locktest.h"

#include "ob/obp.h"

#include <interlock/win32.h>

#define FREE (-1)
#define HELD (-2)

static void test_enter_and_leave(void **state)
{
    CRITICAL_SECTION section;
    (void)state;
    InitializeCriticalSection(&section);
    assert_int_equal(section.LockCount, FREE);
    assert_ptr_equal(section.DebugInfo, (PVOID)(LONG_PTR)-1);
    assert_int_equal(section.SpinCount, KeNumberProcessors == 1 ? 0 : 0x020007D0);
    EnterCriticalSection(&section);
    assert_true(TryEnterCriticalSection(&section));
    assert_int_equal(section.LockCount, HELD);
    assert_int_equal(section.RecursionCount, 2);
    assert_ptr_equal(section.OwningThread, ULongToHandle(KeGetCurrentThread()->ThreadId));
    LeaveCriticalSection(&section);
    LeaveCriticalSection(&section);
    assert_int_equal(section.LockCount, FREE);
    DeleteCriticalSection(&section);
}

static void fail_to_enter(void *section)
{
    SetLastError(1234);
    check(!TryEnterCriticalSection(section));
    check(GetLastError() == 1234);
}

static void test_try_of_another(void **state)
{
    CRITICAL_SECTION section;
    actor a;
    (void)state;
    InitializeCriticalSection(&section);
    start_actor(&a);
    EnterCriticalSection(&section);
    run_on(&a, fail_to_enter, &section);
    LeaveCriticalSection(&section);
    end_actor(&a);
    DeleteCriticalSection(&section);
}

static void test_spin_count(void **state)
{
    CRITICAL_SECTION section;
    ULONG many = KeNumberProcessors != 1;
    (void)state;
    SetLastError(1234);
    assert_true(InitializeCriticalSectionAndSpinCount(&section, 4000));
    assert_int_equal(section.SpinCount, 4000 * many);
    assert_int_equal(SetCriticalSectionSpinCount(&section, 10), 4000 * many);
    assert_int_equal(SetCriticalSectionSpinCount(&section, 0), 10 * many);
    DeleteCriticalSection(&section);
    assert_true(InitializeCriticalSectionEx(&section, 4000, CRITICAL_SECTION_NO_DEBUG_INFO));
    assert_int_equal(section.SpinCount, 4000 * many);
    DeleteCriticalSection(&section);
    assert_int_equal(GetLastError(), 1234);
}

static void test_bad_arguments(void **state)
{
    CRITICAL_SECTION section;
    (void)state;
    SetLastError(0);
    assert_false(InitializeCriticalSectionEx(&section, 0, 0x20000000));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    SetLastError(0);
    assert_false(InitializeCriticalSectionEx(&section, 0x01000000, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

/* The names are functions as well: programs take their addresses. */
static void test_addresses(void **state)
{
    VOID (*volatile enter)(LPCRITICAL_SECTION) = EnterCriticalSection;
    BOOL (*volatile try)(LPCRITICAL_SECTION) = TryEnterCriticalSection;
    VOID (*volatile leave)(LPCRITICAL_SECTION) = LeaveCriticalSection;
    CRITICAL_SECTION section;
    (void)state;
    InitializeCriticalSection(&section);
    enter(&section);
    assert_true(try(&section));
    assert_int_equal(section.RecursionCount, 2);
    leave(&section);
    leave(&section);
    assert_int_equal(section.LockCount, FREE);
    DeleteCriticalSection(&section);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_enter_and_leave), WATCHED(test_try_of_another), WATCHED(test_spin_count),
        WATCHED(test_bad_arguments),   WATCHED(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
