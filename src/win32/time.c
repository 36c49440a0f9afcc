/*
 * time.c: clocks and the calendar. All clocks have the host's resolution. A process does not notice that the machine
 * slept, so biased and unbiased interrupt time are the same.
 */
#include <interlock/win32/base.h>

#include "base.h"
#include "../hal/hal.h"

#define BASE_UNITS_PER_MILLISECOND 10000

C_ASSERT(sizeof(FILETIME) == sizeof(LARGE_INTEGER));

PLARGE_INTEGER BaseFormatTimeOut(PLARGE_INTEGER Timeout, ULONG Milliseconds)
{
    if (Milliseconds == INFINITE) {
        return NULL;
    }
    Timeout->QuadPart = -(LONGLONG)Milliseconds * BASE_UNITS_PER_MILLISECOND;
    return Timeout;
}

BOOL QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount)
{
    if (lpPerformanceCount == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    *lpPerformanceCount = KeQueryPerformanceCounter(NULL);
    return TRUE;
}

BOOL QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency)
{
    if (lpFrequency == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    KeQueryPerformanceCounter(lpFrequency);
    return TRUE;
}

ULONGLONG GetTickCount64(VOID)
{
    return KeQueryInterruptTime() / BASE_UNITS_PER_MILLISECOND;
}

DWORD GetTickCount(VOID)
{
    return (DWORD)GetTickCount64();
}

DWORD timeGetTime(VOID)
{
    return GetTickCount();
}

VOID QueryInterruptTime(PULONGLONG lpInterruptTime)
{
    *lpInterruptTime = KeQueryInterruptTime();
}

VOID QueryInterruptTimePrecise(PULONGLONG lpInterruptTimePrecise)
{
    *lpInterruptTimePrecise = KeQueryInterruptTime();
}

BOOL QueryUnbiasedInterruptTime(PULONGLONG UnbiasedTime)
{
    if (UnbiasedTime == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    *UnbiasedTime = KeQueryInterruptTime();
    return TRUE;
}

VOID QueryUnbiasedInterruptTimePrecise(PULONGLONG lpUnbiasedInterruptTimePrecise)
{
    *lpUnbiasedInterruptTimePrecise = KeQueryInterruptTime();
}

static LONGLONG BaseFromFileTime(const FILETIME *FileTime)
{
    return (LONGLONG)((ULONGLONG)FileTime->dwHighDateTime << 32 | FileTime->dwLowDateTime);
}

static VOID BaseToFileTime(LONGLONG Time, LPFILETIME FileTime)
{
    FileTime->dwLowDateTime = (DWORD)Time;
    FileTime->dwHighDateTime = (DWORD)(Time >> 32);
}

VOID GetSystemTimePreciseAsFileTime(LPFILETIME lpSystemTimeAsFileTime)
{
    LARGE_INTEGER Now;
    KeQuerySystemTimePrecise(&Now);
    BaseToFileTime(Now.QuadPart, lpSystemTimeAsFileTime);
}

VOID GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime)
{
    GetSystemTimePreciseAsFileTime(lpSystemTimeAsFileTime);
}

static VOID BaseToSystemTime(LONGLONG Time, LPSYSTEMTIME SystemTime)
{
    LARGE_INTEGER Value = {.QuadPart = Time};
    TIME_FIELDS Fields;
    RtlTimeToTimeFields(&Value, &Fields);
    SystemTime->wYear = (WORD)Fields.Year;
    SystemTime->wMonth = (WORD)Fields.Month;
    SystemTime->wDayOfWeek = (WORD)Fields.Weekday;
    SystemTime->wDay = (WORD)Fields.Day;
    SystemTime->wHour = (WORD)Fields.Hour;
    SystemTime->wMinute = (WORD)Fields.Minute;
    SystemTime->wSecond = (WORD)Fields.Second;
    SystemTime->wMilliseconds = (WORD)Fields.Milliseconds;
}

VOID GetSystemTime(LPSYSTEMTIME lpSystemTime)
{
    LARGE_INTEGER Now;
    KeQuerySystemTimePrecise(&Now);
    BaseToSystemTime(Now.QuadPart, lpSystemTime);
}

VOID GetLocalTime(LPSYSTEMTIME lpSystemTime)
{
    LARGE_INTEGER Now;
    KeQuerySystemTimePrecise(&Now);
    BaseToSystemTime(Now.QuadPart + HalQueryZoneOffset((ULONGLONG)Now.QuadPart), lpSystemTime);
}

BOOL FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime)
{
    LONGLONG Time = BaseFromFileTime(lpFileTime);
    if (Time < 0) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BaseToSystemTime(Time, lpSystemTime);
    return TRUE;
}

/* Ignores the day of the week. */
BOOL SystemTimeToFileTime(const SYSTEMTIME *lpSystemTime, LPFILETIME lpFileTime)
{
    TIME_FIELDS Fields = {
        .Year = (CSHORT)lpSystemTime->wYear,
        .Month = (CSHORT)lpSystemTime->wMonth,
        .Day = (CSHORT)lpSystemTime->wDay,
        .Hour = (CSHORT)lpSystemTime->wHour,
        .Minute = (CSHORT)lpSystemTime->wMinute,
        .Second = (CSHORT)lpSystemTime->wSecond,
        .Milliseconds = (CSHORT)lpSystemTime->wMilliseconds,
    };
    LARGE_INTEGER Time;
    if (!RtlTimeFieldsToTime(&Fields, &Time)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BaseToFileTime(Time.QuadPart, lpFileTime);
    return TRUE;
}

/* By the UTC offset in effect now, not at the given time. */
static BOOL BaseShiftByZone(const FILETIME *From, LPFILETIME To, LONG Direction)
{
    LARGE_INTEGER Now;
    LONGLONG Shifted;
    KeQuerySystemTimePrecise(&Now);
    if (__builtin_add_overflow(BaseFromFileTime(From), Direction * HalQueryZoneOffset((ULONGLONG)Now.QuadPart),
                               &Shifted) ||
        BaseFromFileTime(From) < 0 || Shifted < 0) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BaseToFileTime(Shifted, To);
    return TRUE;
}

BOOL FileTimeToLocalFileTime(const FILETIME *lpFileTime, LPFILETIME lpLocalFileTime)
{
    return BaseShiftByZone(lpFileTime, lpLocalFileTime, 1);
}

BOOL LocalFileTimeToFileTime(const FILETIME *lpLocalFileTime, LPFILETIME lpFileTime)
{
    return BaseShiftByZone(lpLocalFileTime, lpFileTime, -1);
}

/* A date as the n-th weekday of its month; from the 25th on it is the last one. */
static VOID BaseDescribeChange(LONGLONG Seconds, LPSYSTEMTIME Date)
{
    if (Seconds == 0) {
        return;
    }
    BaseToSystemTime((Seconds + BASE_MILLISECONDS_TO_1970 / 1000) * 10000000, Date);
    Date->wYear = 0;
    Date->wDay = Date->wDay > 24 ? 5 : (WORD)((Date->wDay + 6) / 7);
}

DWORD GetTimeZoneInformation(LPTIME_ZONE_INFORMATION lpTimeZoneInformation)
{
    HAL_TIME_ZONE Zone;
    LARGE_INTEGER Now;
    PHAL_SEASON Standard = &Zone.Seasons[0], Daylight = &Zone.Seasons[1];
    if (lpTimeZoneInformation == NULL) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return TIME_ZONE_ID_INVALID;
    }
    GetSystemTimeAsFileTime((LPFILETIME)&Now);
    HalQueryTimeZone(Now.QuadPart / 10000000 - BASE_MILLISECONDS_TO_1970 / 1000, &Zone);
    if (!Standard->Known) {
        *Standard = *Daylight;
    }
    memset(lpTimeZoneInformation, 0, sizeof(*lpTimeZoneInformation));
    lpTimeZoneInformation->Bias = -Standard->Offset / 60;
    ExpUtf8ToWide(Standard->Name, strlen(Standard->Name) + 1, lpTimeZoneInformation->StandardName,
                   RTL_NUMBER_OF(lpTimeZoneInformation->StandardName), NULL);
    if (!Daylight->Known || Standard->Begins == 0 || Daylight->Begins == 0) {
        return TIME_ZONE_ID_UNKNOWN;
    }
    lpTimeZoneInformation->DaylightBias = (Standard->Offset - Daylight->Offset) / 60;
    BaseDescribeChange(Standard->Begins, &lpTimeZoneInformation->StandardDate);
    BaseDescribeChange(Daylight->Begins, &lpTimeZoneInformation->DaylightDate);
    ExpUtf8ToWide(Daylight->Name, strlen(Daylight->Name) + 1, lpTimeZoneInformation->DaylightName,
                   RTL_NUMBER_OF(lpTimeZoneInformation->DaylightName), NULL);
    return Zone.Daylight ? TIME_ZONE_ID_DAYLIGHT : TIME_ZONE_ID_STANDARD;
}

LONG CompareFileTime(const FILETIME *lpFileTime1, const FILETIME *lpFileTime2)
{
    ULONGLONG First = (ULONGLONG)BaseFromFileTime(lpFileTime1);
    ULONGLONG Second = (ULONGLONG)BaseFromFileTime(lpFileTime2);
    return (First > Second) - (First < Second);
}
