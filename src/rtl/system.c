/*
 * system.c: system time to and from dates of the Gregorian calendar, the version of Windows that this library reports,
 * memory by words, and pseudo-random numbers.
 *
 * Dates: 1601-01-01 was a Monday and the first day of a 400-year cycle. Years start on March 1, so the leap day comes last and
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

/* The version. */

static const RTL_OSVERSIONINFOEXW RtlpVersion = {
    .dwOSVersionInfoSize = sizeof(RTL_OSVERSIONINFOEXW),
    .dwMajorVersion = 10,
    .dwMinorVersion = 0,
    .dwBuildNumber = 19045,
    .dwPlatformId = VER_PLATFORM_WIN32_NT,
    .wProductType = VER_NT_WORKSTATION,
};

NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW lpVersionInformation)
{
    ULONG Size = lpVersionInformation->dwOSVersionInfoSize;
    /* Any other size counts as that of the short form, as on Windows. */
    memcpy(lpVersionInformation, &RtlpVersion, Size == sizeof(RTL_OSVERSIONINFOEXW) ? Size : sizeof(RTL_OSVERSIONINFOW));
    lpVersionInformation->dwOSVersionInfoSize = Size;
    return STATUS_SUCCESS;
}

/* A member that can be compared. */
typedef struct _RTLP_VERSION_MEMBER {
    ULONG Type;
    ULONG Ours;
    ULONG Theirs;
} RTLP_VERSION_MEMBER;

static ULONG RtlpConditionShift(ULONG Type)
{
    return (ULONG)__builtin_ctz(Type) * VER_NUM_BITS_PER_CONDITION_MASK;
}

static ULONG RtlpConditionOf(ULONGLONG ConditionMask, ULONG Type)
{
    return (ULONG)(ConditionMask >> RtlpConditionShift(Type)) & VER_CONDITION_MASK;
}

static BOOLEAN RtlpIsConditionTrue(ULONG Condition, ULONG Ours, ULONG Theirs)
{
    switch (Condition) {
    case VER_EQUAL:
        return Ours == Theirs;
    case VER_GREATER:
        return Ours > Theirs;
    case VER_GREATER_EQUAL:
        return Ours >= Theirs;
    case VER_LESS:
        return Ours < Theirs;
    case VER_LESS_EQUAL:
        return Ours <= Theirs;
    case VER_AND: /* of a set of suites: all of them */
        return (Ours & Theirs) == Theirs;
    default: /* VER_OR: one of them */
        return Theirs == 0 || (Ours & Theirs) != 0;
    }
}

/* Numbers of decreasing significance: the first one that differs decides by its condition; if none does, the last one. */
static BOOLEAN RtlpCompareNumbers(const RTLP_VERSION_MEMBER *Members, ULONG Count, ULONG TypeMask, ULONGLONG ConditionMask)
{
    BOOLEAN Result = TRUE;
    for (ULONG Index = 0; Index < Count; Index++) {
        const RTLP_VERSION_MEMBER *Member = &Members[Index];
        if ((TypeMask & Member->Type) != 0) {
            Result = RtlpIsConditionTrue(RtlpConditionOf(ConditionMask, Member->Type), Member->Ours, Member->Theirs);
            if (Member->Ours != Member->Theirs) {
                break;
            }
        }
    }
    return Result;
}

NTSTATUS RtlVerifyVersionInfo(PRTL_OSVERSIONINFOEXW VersionInfo, ULONG TypeMask, ULONGLONG ConditionMask)
{
    const RTL_OSVERSIONINFOEXW *Ours = &RtlpVersion;
    const RTLP_VERSION_MEMBER Numbers[] = {
        {VER_MAJORVERSION, Ours->dwMajorVersion, VersionInfo->dwMajorVersion},
        {VER_MINORVERSION, Ours->dwMinorVersion, VersionInfo->dwMinorVersion},
        {VER_SERVICEPACKMAJOR, Ours->wServicePackMajor, VersionInfo->wServicePackMajor},
        {VER_SERVICEPACKMINOR, Ours->wServicePackMinor, VersionInfo->wServicePackMinor},
    };
    const RTLP_VERSION_MEMBER Others[] = {
        {VER_BUILDNUMBER, Ours->dwBuildNumber, VersionInfo->dwBuildNumber},
        {VER_PLATFORMID, Ours->dwPlatformId, VersionInfo->dwPlatformId},
        {VER_PRODUCT_TYPE, Ours->wProductType, VersionInfo->wProductType},
        {VER_SUITENAME, Ours->wSuiteMask, VersionInfo->wSuiteMask},
    };
    BOOLEAN Result;
    if (TypeMask == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    for (ULONG Type = VER_MINORVERSION; Type <= VER_PRODUCT_TYPE; Type <<= 1) {
        ULONG Condition = RtlpConditionOf(ConditionMask, Type);
        BOOLEAN Known =
            Type == VER_SUITENAME ? Condition >= VER_AND : Condition >= VER_EQUAL && Condition <= VER_LESS_EQUAL;
        if ((TypeMask & Type) != 0 && !Known) {
            return STATUS_INVALID_PARAMETER;
        }
    }
    Result = RtlpCompareNumbers(Numbers, RTL_NUMBER_OF(Numbers), TypeMask, ConditionMask);
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Others); Index++) {
        Result = Result && RtlpCompareNumbers(&Others[Index], 1, TypeMask, ConditionMask);
    }
    return Result ? STATUS_SUCCESS : STATUS_REVISION_MISMATCH;
}

ULONGLONG VerSetConditionMask(ULONGLONG ConditionMask, ULONG TypeMask, UCHAR Condition)
{
    for (ULONG Type = VER_MINORVERSION; Type <= VER_PRODUCT_TYPE; Type <<= 1) {
        if ((TypeMask & Type) != 0) {
            ConditionMask &= ~((ULONGLONG)VER_CONDITION_MASK << RtlpConditionShift(Type));
            ConditionMask |= (ULONGLONG)(Condition & VER_CONDITION_MASK) << RtlpConditionShift(Type);
        }
    }
    return ConditionMask;
}

/* Memory by words. The pointers may have any alignment. */

VOID RtlFillMemoryUlonglong(PVOID Destination, SIZE_T Length, ULONGLONG Pattern)
{
    for (SIZE_T Offset = 0; Length - Offset >= sizeof(Pattern); Offset += sizeof(Pattern)) {
        memcpy((PUCHAR)Destination + Offset, &Pattern, sizeof(Pattern));
    }
}

VOID RtlFillMemoryUlong(PVOID Destination, SIZE_T Length, ULONG Pattern)
{
    for (SIZE_T Offset = 0; Length - Offset >= sizeof(Pattern); Offset += sizeof(Pattern)) {
        memcpy((PUCHAR)Destination + Offset, &Pattern, sizeof(Pattern));
    }
}

SIZE_T RtlCompareMemoryUlong(PVOID Source, SIZE_T Length, ULONG Pattern)
{
    SIZE_T Offset = 0;
    while (Length - Offset >= sizeof(Pattern) && memcmp((PUCHAR)Source + Offset, &Pattern, sizeof(Pattern)) == 0) {
        Offset += sizeof(Pattern);
    }
    return Offset;
}

BOOLEAN RtlIsZeroMemory(PVOID Buffer, SIZE_T Length)
{
    const UCHAR *Bytes = Buffer;
    /* Zero if the first byte is, and each byte equals the one before. */
    return Length == 0 || (Bytes[0] == 0 && memcmp(Bytes, Bytes + 1, Length - 1) == 0);
}

/* Pseudo-random numbers. */

#define RTLP_RANDOM_RANGE 0x7FFFFFFFu /* a prime */

/* Lehmer's generator with an increment. */
ULONG RtlUniform(PULONG Seed)
{
    *Seed = (ULONG)(((ULONGLONG)*Seed * 0x7FFFFFED + 0x7FFFFFC3) % RTLP_RANDOM_RANGE);
    return *Seed;
}

/* A step of the seed with full period, whose low bits are weak, and a permutation that mixes them (PCG, RXS-M-XS). */
ULONG RtlRandomEx(PULONG Seed)
{
    ULONG State = *Seed;
    ULONG Mixed = ((State >> ((State >> 28) + 4)) ^ State) * 277803737u;
    *Seed = State * 747796405u + 2891336453u;
    return ((Mixed >> 22) ^ Mixed) % RTLP_RANDOM_RANGE;
}

ULONG RtlRandom(PULONG Seed)
{
    return RtlRandomEx(Seed);
}
