/*
 * time.c: times as dates of the Gregorian calendar.
 *
 * 1601-01-01 was a Monday and the first day of a cycle of 400 years. Years are counted from the 1st of March, so that
 * the leap day is the last one and the lengths of the months before it follow one rule.
 */
#include <interlock/rtl.h>

#define RTLP_UNITS_PER_MILLISECOND 10000
#define RTLP_MILLISECONDS_PER_DAY 86400000
#define RTLP_DAYS_PER_400_YEARS 146097
#define RTLP_DAYS_BEFORE_MARCH 306 /* from the 1st of March to the end of December */
#define RTLP_FIRST_YEAR 1601
#define RTLP_LAST_YEAR 30827
#define RTLP_MONDAY 1

/* Days before the month, counted from March = 0. */
static LONG RtlpDaysBeforeMonth(LONG Month)
{
    return (153 * Month + 2) / 5;
}

/* Days from 1601-01-01. */
static LONGLONG RtlpDaysOfDate(LONG Year, LONG Month, LONG Day)
{
    LONGLONG MarchYear = Month > 2 ? Year : Year - 1;
    LONG MarchMonth = (Month + 9) % 12;
    LONGLONG Since = MarchYear - (RTLP_FIRST_YEAR - 1);
    /* 1600-03-01 is day 0 of this count; 1600 is a leap year whose leap day is behind it. */
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

static LONG RtlpDaysInMonth(LONG Year, LONG Month)
{
    LONG Next = Month == 12 ? 1 : Month + 1;
    return (LONG)(RtlpDaysOfDate(Month == 12 ? Year + 1 : Year, Next, 1) - RtlpDaysOfDate(Year, Month, 1));
}

static BOOLEAN RtlpIsBelow(CSHORT Value, CSHORT Limit)
{
    return Value >= 0 && Value < Limit;
}

static BOOLEAN RtlpIsDate(PTIME_FIELDS Fields)
{
    return Fields->Year >= RTLP_FIRST_YEAR && Fields->Year <= RTLP_LAST_YEAR && Fields->Month >= 1 &&
           Fields->Month <= 12 && Fields->Day >= 1 && Fields->Day <= RtlpDaysInMonth(Fields->Year, Fields->Month) &&
           RtlpIsBelow(Fields->Hour, 24) && RtlpIsBelow(Fields->Minute, 60) && RtlpIsBelow(Fields->Second, 60) &&
           RtlpIsBelow(Fields->Milliseconds, 1000);
}

BOOLEAN RtlTimeFieldsToTime(PTIME_FIELDS TimeFields, PLARGE_INTEGER Time)
{
    LONGLONG Days;
    LONG Rest;
    if (!RtlpIsDate(TimeFields)) {
        return FALSE;
    }
    Days = RtlpDaysOfDate(TimeFields->Year, TimeFields->Month, TimeFields->Day);
    Rest = ((TimeFields->Hour * 60 + TimeFields->Minute) * 60 + TimeFields->Second) * 1000 + TimeFields->Milliseconds;
    Time->QuadPart = (Days * RTLP_MILLISECONDS_PER_DAY + Rest) * RTLP_UNITS_PER_MILLISECOND;
    return TRUE;
}
