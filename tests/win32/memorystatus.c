#include "support.h"

#include <windows.h>

#include "hal/hal.h"

#define GIGABYTE (1ULL << 30)
#define MEGABYTE (1ULL << 20)

/* What the host says (the linker wraps HalQueryMemoryStatus). */
static ULONG64 volatile available;
static ULONG volatile pressure;

VOID __wrap_HalQueryMemoryStatus(PHAL_MEMORY_STATUS status);
VOID __real_HalQueryMemoryStatus(PHAL_MEMORY_STATUS status);

VOID __wrap_HalQueryMemoryStatus(PHAL_MEMORY_STATUS status)
{
    __real_HalQueryMemoryStatus(status);
    if (__atomic_load_n(&available, __ATOMIC_RELAXED) != 0) {
        status->TotalPhysical = 16 * GIGABYTE;
        status->AvailablePhysical = __atomic_load_n(&available, __ATOMIC_RELAXED);
        status->Pressure = __atomic_load_n(&pressure, __ATOMIC_RELAXED);
    }
}

static void pretend(ULONG64 bytes, ULONG percent)
{
    __atomic_store_n(&pressure, percent, __ATOMIC_RELAXED);
    __atomic_store_n(&available, bytes, __ATOMIC_RELAXED);
}

static void expect(HANDLE notification, BOOL expected)
{
    BOOL state = 7;

    assert_true(QueryMemoryResourceNotification(notification, &state));
    assert_int_equal(state, expected);
    assert_int_equal(WaitForSingleObject(notification, 0), expected ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
}

static void low_and_high(void **state)
{
    HANDLE low, high;

    (void)state;
    pretend(GIGABYTE, 0);
    low = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    high = CreateMemoryResourceNotification(HighMemoryResourceNotification);
    assert_non_null(low);
    assert_non_null(high);
    expect(low, FALSE);
    expect(high, TRUE);
    pretend(100 * MEGABYTE, 0); /* between 64 MB and 192 MB */
    expect(low, FALSE);
    expect(high, FALSE);
    pretend(63 * MEGABYTE, 0);
    expect(low, TRUE);
    expect(high, FALSE);
    pretend(GIGABYTE, 10);
    expect(low, TRUE);
    expect(high, FALSE);
    pretend(GIGABYTE, 0);
    expect(low, FALSE);
    CloseHandle(low);
    CloseHandle(high);
}

/* The wait ends although no thread queries the status. */
static void a_wait_ends_when_memory_gets_low(void **state)
{
    HANDLE low;

    (void)state;
    pretend(GIGABYTE, 0);
    low = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    assert_int_equal(WaitForSingleObject(low, 0), WAIT_TIMEOUT);
    assert_int_equal(WaitForSingleObject(low, 1), WAIT_TIMEOUT);
    pretend(10 * MEGABYTE, 0);
    watchdog_start(60);
    assert_int_equal(WaitForSingleObject(low, INFINITE), WAIT_OBJECT_0);
    watchdog_stop();
    pretend(GIGABYTE, 0);
    assert_false(SetEvent(low)); /* only the system sets it */
    assert_int_equal(GetLastError(), ERROR_ACCESS_DENIED);
    CloseHandle(low);
}

static void documented_errors(void **state)
{
    HANDLE mutex = CreateMutexA(NULL, FALSE, NULL);
    HANDLE low = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    BOOL result;

    (void)state;
    assert_null(CreateMemoryResourceNotification((MEMORY_RESOURCE_NOTIFICATION_TYPE)2));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(QueryMemoryResourceNotification(NULL, &result));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_false(QueryMemoryResourceNotification(mutex, &result));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_false(QueryMemoryResourceNotification(low, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    CloseHandle(mutex);
    CloseHandle(low);
}

static void the_status(void **state)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof(status)};

    (void)state;
    pretend(0, 0);
    assert_true(GlobalMemoryStatusEx(&status));
    assert_true(status.ullTotalPhys > 16 * MEGABYTE);
    assert_true(status.ullAvailPhys <= status.ullTotalPhys);
    assert_in_range(status.dwMemoryLoad, 0, 100);
    status.dwLength = 8;
    assert_false(GlobalMemoryStatusEx(&status));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_and_high),
        cmocka_unit_test(a_wait_ends_when_memory_gets_low),
        cmocka_unit_test(documented_errors),
        cmocka_unit_test(the_status),
    };

    return cmocka_run_group_tests_name("win32/memorystatus", tests, NULL, NULL);
}
