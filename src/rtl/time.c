/*
 * time.c: system time to and from dates of the Gregorian calendar.
 *
 * 1601-01-01 was a Monday and the first day of a 400-year cycle. Years start on March 1, so the leap day comes last and
 * one formula gives the lengths of the months.
 */
#include <interlock/rtl.h>

#define RTLP_UNITS_PER_MILLISECOND 10000
#define RTLP_UNITS_PER_SECOND 10000000LL
#define RTLP_MILLISECONDS_PER_DAY 86400000
#define RTLP_DAYS_PER_400_YEARS 146097
#define RTLP_DAYS_BEFORE_MARCH 306 /* from March 1 to the end of December */
#define RTLP_FIRST_YEAR 1601
#define RTLP_LAST_YEAR 30827
#define RTLP_MONDAY 1

/* Days from March 1 to the first of the month; March is 0. */
static LONG RtlpDaysBeforeMonth(LONG Month)
{
    return (153 * Month + 2) / 5;
}

/* Days since 1601-01-01. */
static LONGLONG RtlpDaysOfDate(LONG Year, LONG Month, LONG Day)
{
    LONGLONG MarchYear = Month > 2 ? Year : Year - 1;
    LONG MarchMonth = (Month + 9) % 12;
    LONGLONG Since = MarchYear - (RTLP_FIRST_YEAR - 1);
    /* Counts from 1600-03-01, just after the leap day of 1600. */
    return Since * 365 + Since / 4 - Since / 100 + Since / 400 + RtlpDaysBeforeMonth(MarchMonth) + Day - 1 -
           RTLP_DAYS_BEFORE_MARCH;
}

static VOID RtlpDateOfDays(LONGLONG Days, PTIME_FIELDS Fields)
{
    LONGLONG Count = Days + RTLP_DAYS_BEFORE_MARCH;
    LONGLONG Cycle = Count / RTLP_DAYS_PER_400_YEARS;
    LONG Rest = (LONG)(Count % RTLP_DAYS_PER_400_YEARS);
    LONG Year = (Rest - Rest / 1460 + Rest / 36524 - Rest / 146096) / 365;
    LONG DayOfYear = Rest - (365 * Year + Year / 4 - Year / 100);
    LONG Month = (5 * DayOfYear + 2) / 153;
    Fields->Day = (CSHORT)(DayOfYear - RtlpDaysBeforeMonth(Month) + 1);
    Fields->Month = (CSHORT)(Month < 10 ? Month + 3 : Month - 9);
    Fields->Year = (CSHORT)(RTLP_FIRST_YEAR - 1 + Cycle * 400 + Year + (Fields->Month <= 2));
}

VOID RtlTimeToTimeFields(PLARGE_INTEGER Time, PTIME_FIELDS TimeFields)
{
    LONGLONG Milliseconds = Time->QuadPart / RTLP_UNITS_PER_MILLISECOND;
    LONGLONG Days = Milliseconds / RTLP_MILLISECONDS_PER_DAY;
    LONG Rest = (LONG)(Milliseconds % RTLP_MILLISECONDS_PER_DAY);
    RtlpDateOfDays(Days, TimeFields);
    TimeFields->Weekday = (CSHORT)((Days + RTLP_MONDAY) % 7);
    TimeFields->Milliseconds = (CSHORT)(Rest % 1000);
    TimeFields->Second = (CSHORT)(Rest / 1000 % 60);
    TimeFields->Minute = (CSHORT)(Rest / 60000 % 60);
    TimeFields->Hour = (CSHORT)(Rest / 3600000);
}

static BOOLEAN RtlpIsInRange(LONG Value, LONG First, LONG Last)
{
    return Value >= First && Value <= Last;
}

static BOOLEAN RtlpIsDate(PTIME_FIELDS Fields)
{
    LONG Year = Fields->Year;
    LONG Month = Fields->Month;
    if (!RtlpIsInRange(Year, RTLP_FIRST_YEAR, RTLP_LAST_YEAR) || !RtlpIsInRange(Month, 1, 12)) {
        return FALSE;
    }
    LONGLONG NextMonth = Month == 12 ? RtlpDaysOfDate(Year + 1, 1, 1) : RtlpDaysOfDate(Year, Month + 1, 1);
    return RtlpIsInRange(Fields->Day, 1, (LONG)(NextMonth - RtlpDaysOfDate(Year, Month, 1))) &&
           RtlpIsInRange(Fields->Hour, 0, 23) && RtlpIsInRange(Fields->Minute, 0, 59) &&
           RtlpIsInRange(Fields->Second, 0, 59) && RtlpIsInRange(Fields->Milliseconds, 0, 999);
}

BOOLEAN RtlTimeFieldsToTime(PTIME_FIELDS TimeFields, PLARGE_INTEGER Time)
{
    if (!RtlpIsDate(TimeFields)) {
        return FALSE;
    }
    LONGLONG Days = RtlpDaysOfDate(TimeFields->Year, TimeFields->Month, TimeFields->Day);
    LONG Rest =
        ((TimeFields->Hour * 60 + TimeFields->Minute) * 60 + TimeFields->Second) * 1000 + TimeFields->Milliseconds;
    Time->QuadPart = (Days * RTLP_MILLISECONDS_PER_DAY + Rest) * RTLP_UNITS_PER_MILLISECOND;
    return TRUE;
}

static LONGLONG RtlpStartOfYear(LONG Year)
{
    return RtlpDaysOfDate(Year, 1, 1) * RTLP_MILLISECONDS_PER_DAY * RTLP_UNITS_PER_MILLISECOND;
}

static BOOLEAN RtlpTimeToSeconds(PLARGE_INTEGER Time, LONG Year, PULONG Seconds)
{
    if (Time->QuadPart < RtlpStartOfYear(Year)) {
        return FALSE;
    }
    LONGLONG Since = (Time->QuadPart - RtlpStartOfYear(Year)) / RTLP_UNITS_PER_SECOND;
    if (Since > MAXULONG) {
        return FALSE;
    }
    *Seconds = (ULONG)Since;
    return TRUE;
}

BOOLEAN RtlTimeToSecondsSince1970(PLARGE_INTEGER Time, PULONG ElapsedSeconds)
{
    return RtlpTimeToSeconds(Time, 1970, ElapsedSeconds);
}

BOOLEAN RtlTimeToSecondsSince1980(PLARGE_INTEGER Time, PULONG ElapsedSeconds)
{
    return RtlpTimeToSeconds(Time, 1980, ElapsedSeconds);
}

VOID RtlSecondsSince1970ToTime(ULONG ElapsedSeconds, PLARGE_INTEGER Time)
{
    Time->QuadPart = RtlpStartOfYear(1970) + ElapsedSeconds * RTLP_UNITS_PER_SECOND;
}

VOID RtlSecondsSince1980ToTime(ULONG ElapsedSeconds, PLARGE_INTEGER Time)
{
    Time->QuadPart = RtlpStartOfYear(1980) + ElapsedSeconds * RTLP_UNITS_PER_SECOND;
}
