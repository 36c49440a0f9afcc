#include "support.h"

#include <windows.h>
#include <winternl.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static SYSTEMTIME date(WORD year, WORD month, WORD day, WORD hour, WORD minute, WORD second, WORD milliseconds)
{
    return (SYSTEMTIME){year, month, 0, day, hour, minute, second, milliseconds};
}

static ULONGLONG value_of(FILETIME time)
{
    return (ULONGLONG)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

static FILETIME file_time(ULONGLONG value)
{
    return (FILETIME){(DWORD)value, (DWORD)(value >> 32)};
}

static void known_dates(void **state)
{
    static const struct {
        SYSTEMTIME date;
        ULONGLONG value;
    } known[] = {
        {{1601, 1, 1, 1, 0, 0, 0, 0}, 0},
        {{1601, 1, 1, 1, 0, 0, 0, 1}, 10000},
        {{1970, 1, 4, 1, 0, 0, 0, 0}, 116444736000000000},
        {{2000, 2, 2, 29, 12, 34, 56, 789}, 125963012967890000},
        {{2038, 1, 2, 19, 3, 14, 7, 0}, 116444736000000000 + 2147483647ULL * 10000000},
        {{30827, 12, 5, 31, 23, 59, 59, 999}, 9223149887999990000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(known); i++) {
        FILETIME time;
        SYSTEMTIME back;

        assert_true(SystemTimeToFileTime(&known[i].date, &time));
        assert_int_equal(value_of(time), known[i].value);
        assert_true(FileTimeToSystemTime(&time, &back));
        assert_memory_equal(&back, &known[i].date, sizeof(back));
    }
}

/* It has no FILETIME of its own any more: the last year is not whole. */
static void the_last_time(void **state)
{
    static const SYSTEMTIME expected = {30828, 9, 4, 14, 2, 48, 5, 477};
    FILETIME time = file_time(0x7FFFFFFFFFFFFFFF);
    SYSTEMTIME last;

    (void)state;
    assert_true(FileTimeToSystemTime(&time, &last));
    assert_memory_equal(&last, &expected, sizeof(last));
}

/* Against the calendar of the C library, over 800 years, which are two of its cycles. */
static void every_day(void **state)
{
    ULONGLONG day = 864000000000;

    (void)state;
    for (ULONGLONG i = 0; i < 2 * 146097 + 10; i++) {
        time_t seconds = (time_t)(i * 86400) - 11644473600;
        FILETIME time = file_time(i * day + day - 1);
        FILETIME back;
        SYSTEMTIME ours;
        struct tm theirs;

        assert_true(FileTimeToSystemTime(&time, &ours));
        assert_non_null(gmtime_r(&seconds, &theirs));
        if (ours.wYear != theirs.tm_year + 1900 || ours.wMonth != theirs.tm_mon + 1 || ours.wDay != theirs.tm_mday ||
            ours.wDayOfWeek != theirs.tm_wday || ours.wHour != 23 || ours.wMilliseconds != 999)
            fail_msg("day %llu is %u-%u-%u", i, ours.wYear, ours.wMonth, ours.wDay);
        assert_true(SystemTimeToFileTime(&ours, &back));
        if (value_of(back) != value_of(time) - 9999)
            fail_msg("day %llu comes back as %llu", i, value_of(back) / day);
    }
}

static void refused(SYSTEMTIME date)
{
    FILETIME time;

    SetLastError(0);
    assert_false(SystemTimeToFileTime(&date, &time));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void what_is_no_date(void **state)
{
    FILETIME time = file_time(0x8000000000000000);
    SYSTEMTIME out;

    (void)state;
    refused(date(1600, 12, 31, 0, 0, 0, 0));
    refused(date(30828, 1, 1, 0, 0, 0, 0));
    refused(date(65535, 1, 1, 0, 0, 0, 0));
    refused(date(2000, 0, 1, 0, 0, 0, 0));
    refused(date(2000, 13, 1, 0, 0, 0, 0));
    refused(date(2000, 1, 0, 0, 0, 0, 0));
    refused(date(2000, 1, 32, 0, 0, 0, 0));
    refused(date(2000, 4, 31, 0, 0, 0, 0));
    refused(date(1900, 2, 29, 0, 0, 0, 0));
    refused(date(2001, 2, 29, 0, 0, 0, 0));
    refused(date(2000, 1, 1, 24, 0, 0, 0));
    refused(date(2000, 1, 1, 0, 60, 0, 0));
    refused(date(2000, 1, 1, 0, 0, 60, 0));
    refused(date(2000, 1, 1, 0, 0, 0, 1000));
    SetLastError(0);
    assert_false(FileTimeToSystemTime(&time, &out));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void times_compare(void **state)
{
    FILETIME low = file_time(0x1FFFFFFFF), high = file_time(0x200000000), top = file_time(~0ULL);

    (void)state;
    assert_int_equal(CompareFileTime(&low, &high), -1);
    assert_int_equal(CompareFileTime(&high, &low), 1);
    assert_int_equal(CompareFileTime(&high, &high), 0);
    assert_int_equal(CompareFileTime(&top, &high), 1);
}

static void clocks_agree(void **state)
{
    LARGE_INTEGER frequency, before, after;
    FILETIME first, second;
    SYSTEMTIME now;
    ULONGLONG interrupt, later, unbiased, tick = GetTickCount64();

    (void)state;
    assert_true(QueryPerformanceFrequency(&frequency));
    assert_true(frequency.QuadPart >= 1000000);
    assert_true(QueryPerformanceCounter(&before));
    GetSystemTimeAsFileTime(&first);
    QueryInterruptTime(&interrupt);
    assert_true(QueryUnbiasedInterruptTime(&unbiased));
    QueryInterruptTimePrecise(&later);
    GetSystemTimePreciseAsFileTime(&second);
    assert_true(QueryPerformanceCounter(&after));
    assert_true(after.QuadPart >= before.QuadPart);
    assert_true(value_of(second) >= value_of(first));
    assert_true(later >= interrupt && unbiased >= interrupt);
    QueryUnbiasedInterruptTimePrecise(&later);
    assert_true(later >= unbiased);
    assert_true(interrupt / 10000 >= tick && GetTickCount64() >= tick);
    assert_true(timeGetTime() - (DWORD)tick < 3600000 && GetTickCount() - (DWORD)tick < 3600000);
    GetSystemTime(&now);
    assert_true(SystemTimeToFileTime(&now, &second));
    assert_true(value_of(second) + 10000 > value_of(first));
}

static void clocks_without_a_place(void **state)
{
    (void)state;
    assert_false(QueryPerformanceCounter(NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_false(QueryPerformanceFrequency(NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_false(QueryUnbiasedInterruptTime(NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_int_equal(timeBeginPeriod(1), TIMERR_NOERROR);
    assert_int_equal(timeEndPeriod(1), TIMERR_NOERROR);
    assert_int_equal(timeBeginPeriod(0), TIMERR_NOCANDO);
    assert_int_equal(timeEndPeriod(0), TIMERR_NOCANDO);
}

static void local_time(void **state)
{
    FILETIME now, local, back, early = file_time(1);
    SYSTEMTIME zone, there;
    LONGLONG apart;

    (void)state;
    assert_int_equal(setenv("TZ", "XYZ-5:30", 1), 0);
    GetSystemTimeAsFileTime(&now);
    assert_true(FileTimeToLocalFileTime(&now, &local));
    assert_int_equal(value_of(local) - value_of(now), 198000000000);
    assert_true(LocalFileTimeToFileTime(&local, &back));
    assert_int_equal(value_of(back), value_of(now));
    GetLocalTime(&zone);
    assert_true(SystemTimeToFileTime(&zone, &local));
    apart = (LONGLONG)(value_of(local) - value_of(now)) - 198000000000;
    assert_true(apart > -10000 && apart < 36000000000);
    assert_false(LocalFileTimeToFileTime(&early, &back));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    GetSystemTimeAsFileTime(&now);
    GetLocalTime(&there);
    assert_true(SystemTimeToFileTime(&there, &local));
    assert_true(value_of(local) + 10000 > value_of(now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_dates),
        cmocka_unit_test(the_last_time),
        cmocka_unit_test(every_day),
        cmocka_unit_test(what_is_no_date),
        cmocka_unit_test(times_compare),
        cmocka_unit_test(clocks_agree),
        cmocka_unit_test(clocks_without_a_place),
        cmocka_unit_test(local_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
