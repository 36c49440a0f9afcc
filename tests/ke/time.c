/* The clocks. */
#include <interlock/ke.h>

#include "hal/hal.h"
#include "support.h"

#define UNITS_PER_SECOND 10000000LL
#define SYSTEM_TIME_OF_2020 132223104000000000LL

static void test_system_time(void **state)
{
    (void)state;
    LARGE_INTEGER coarse, precise;
    KeQuerySystemTime(&coarse);
    KeQuerySystemTimePrecise(&precise);
    assert_true(coarse.QuadPart > SYSTEM_TIME_OF_2020);
    assert_true(precise.QuadPart >= coarse.QuadPart);
    assert_true(precise.QuadPart - coarse.QuadPart < 60 * UNITS_PER_SECOND);
}

static void test_interrupt_time_never_goes_back(void **state)
{
    (void)state;
    ULONG64 stamp, last_stamp = 0;
    ULONGLONG last = 0;
    for (ULONG i = 0; i < 100000; i += 1) {
        ULONGLONG now = i % 2 == 0 ? KeQueryInterruptTime() : KeQueryInterruptTimePrecise(&stamp);
        assert_true(now >= last);
        last = now;
        if (i % 2 != 0) {
            assert_true(stamp >= last_stamp);
            last_stamp = stamp;
        }
    }
    assert_true(last_stamp > 0);
}

static void test_ticks_are_the_interrupt_time_in_increments(void **state)
{
    (void)state;
    LARGE_INTEGER ticks;
    assert_int_equal(KeQueryTimeIncrement(), 156250);
    ULONGLONG before = KeQueryInterruptTime();
    KeQueryTickCount(&ticks);
    ULONGLONG after = KeQueryInterruptTime();
    assert_in_range(ticks.QuadPart, before / 156250, after / 156250);
}

static void test_performance_counter(void **state)
{
    (void)state;
    LARGE_INTEGER frequency;
    LARGE_INTEGER first = KeQueryPerformanceCounter(&frequency);
    LARGE_INTEGER second = KeQueryPerformanceCounter(NULL);
    assert_int_equal(frequency.QuadPart, UNITS_PER_SECOND);
    assert_true(second.QuadPart >= first.QuadPart);
}

static void test_stall_is_not_shorter_than_asked(void **state)
{
    (void)state;
    static const ULONG stalls[] = {0, 1, 5, 50, 1000};
    for (ULONG i = 0; i < ARRAYSIZE(stalls); i += 1) {
        ULONGLONG before = KeQueryInterruptTime();
        KeStallExecutionProcessor(stalls[i]);
        assert_true(KeQueryInterruptTime() - before >= stalls[i] * 10);
    }
}

static ULONGLONG fixed_time(void)
{
    return 1234567890;
}

static void test_clocks_can_be_replaced(void **state)
{
    (void)state;
    HAL_DISPATCH host = HalDispatch;
    LARGE_INTEGER system_time, ticks;
    HalDispatch.QueryInterruptTime = fixed_time;
    HalDispatch.QuerySystemTime = fixed_time;
    KeQuerySystemTime(&system_time);
    KeQueryTickCount(&ticks);
    ULONGLONG interrupt_time = KeQueryInterruptTime();
    HalDispatch = host;
    assert_int_equal(system_time.QuadPart, 1234567890);
    assert_int_equal(interrupt_time, 1234567890);
    assert_int_equal(ticks.QuadPart, 1234567890 / 156250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_time),
        cmocka_unit_test(test_interrupt_time_never_goes_back),
        cmocka_unit_test(test_ticks_are_the_interrupt_time_in_increments),
        cmocka_unit_test(test_performance_counter),
        cmocka_unit_test(test_stall_is_not_shorter_than_asked),
        cmocka_unit_test(test_clocks_can_be_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
