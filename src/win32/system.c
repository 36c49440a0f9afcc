/*
 * system.c: the machine: processors, version, physical memory; clocks and the calendar. All clocks have the host's
 * resolution. A process does not notice that the machine slept, so biased and unbiased interrupt time are the same.
 */
#include <limits.h>

#include <interlock/ke.h>
#include <interlock/rtl.h>

#include "../hal/hal.h"
#include "../ke/ki.h"
#include "../ke/ownthread.h"
#include "../nt/ntp.h"
#include "base.h"

#define BASE_ALLOCATION_GRANULARITY 0x10000
#define BASE_LOWEST_ADDRESS ((LPVOID)0x10000)
#define BASE_HIGHEST_ADDRESS ((LPVOID)0x7FFFFFFFEFFF) /* the host uses more of the last 64 KB than Windows does */

#if defined(__x86_64__)
#define BASE_ARCHITECTURE PROCESSOR_ARCHITECTURE_AMD64
#define BASE_PROCESSOR_TYPE PROCESSOR_AMD_X8664
#elif defined(__aarch64__)
#define BASE_ARCHITECTURE PROCESSOR_ARCHITECTURE_ARM64
#define BASE_PROCESSOR_TYPE 0
#else
#define BASE_ARCHITECTURE PROCESSOR_ARCHITECTURE_UNKNOWN
#define BASE_PROCESSOR_TYPE 0
#endif

VOID GetSystemInfo(LPSYSTEM_INFO lpSystemInfo)
{
    KAFFINITY Active;
    SYSTEM_INFO Information = {
        .wProcessorArchitecture = BASE_ARCHITECTURE,
        .dwPageSize = HalQueryPageSize(),
        .lpMinimumApplicationAddress = BASE_LOWEST_ADDRESS,
        .lpMaximumApplicationAddress = BASE_HIGHEST_ADDRESS,
        .dwNumberOfProcessors = KeQueryActiveProcessorCount(&Active),
        .dwProcessorType = BASE_PROCESSOR_TYPE,
        .dwAllocationGranularity = BASE_ALLOCATION_GRANULARITY,
    };
    Information.dwActiveProcessorMask = Active;
    *lpSystemInfo = Information;
}

VOID GetNativeSystemInfo(LPSYSTEM_INFO lpSystemInfo)
{
    GetSystemInfo(lpSystemInfo);
}

static DWORD BaseCountOrError(DWORD Count)
{
    if (Count == 0) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
    }
    return Count;
}

DWORD GetActiveProcessorCount(WORD GroupNumber)
{
    return BaseCountOrError(KeQueryActiveProcessorCountEx(GroupNumber));
}

DWORD GetMaximumProcessorCount(WORD GroupNumber)
{
    return BaseCountOrError(KeQueryMaximumProcessorCountEx(GroupNumber));
}

WORD GetActiveProcessorGroupCount(VOID)
{
    return KeQueryActiveGroupCount();
}

WORD GetMaximumProcessorGroupCount(VOID)
{
    return KeQueryMaximumGroupCount();
}

DWORD GetVersion(VOID)
{
    RTL_OSVERSIONINFOW Version = {.dwOSVersionInfoSize = sizeof(Version)};
    RtlGetVersion(&Version);
    return MAKELONG(MAKEWORD(Version.dwMajorVersion, Version.dwMinorVersion), Version.dwBuildNumber);
}

/* The A and the W form begin with the same members. */
static BOOL BaseFillVersion(LPOSVERSIONINFOA Information, DWORD Plain, DWORD Extended, LONG ProductType)
{
    DWORD Size = Information->dwOSVersionInfoSize;
    RTL_OSVERSIONINFOW Version = {.dwOSVersionInfoSize = sizeof(Version)};
    if (Size != Plain && Size != Extended) {
        return BaseBoolStatus(STATUS_BUFFER_TOO_SMALL);
    }
    RtlGetVersion(&Version);
    memset(Information, 0, Size);
    memcpy(Information, &Version, FIELD_OFFSET(RTL_OSVERSIONINFOW, szCSDVersion));
    Information->dwOSVersionInfoSize = Size;
    if (Size == Extended) {
        *((PUCHAR)Information + ProductType) = VER_NT_WORKSTATION;
    }
    return TRUE;
}

BOOL GetVersionExA(LPOSVERSIONINFOA lpVersionInformation)
{
    return BaseFillVersion(lpVersionInformation, sizeof(OSVERSIONINFOA), sizeof(OSVERSIONINFOEXA),
                           FIELD_OFFSET(OSVERSIONINFOEXA, wProductType));
}

BOOL GetVersionExW(LPOSVERSIONINFOW lpVersionInformation)
{
    return BaseFillVersion((LPOSVERSIONINFOA)lpVersionInformation, sizeof(OSVERSIONINFOW), sizeof(OSVERSIONINFOEXW),
                           FIELD_OFFSET(OSVERSIONINFOEXW, wProductType));
}

int MulDiv(int nNumber, int nNumerator, int nDenominator)
{
    LONGLONG Product = (LONGLONG)nNumber * nNumerator;
    LONGLONG Half = (nDenominator < 0 ? -(LONGLONG)nDenominator : nDenominator) / 2;
    LONGLONG Result;
    if (nDenominator == 0) {
        return -1;
    }
    Result = (Product < 0 ? Product - Half : Product + Half) / nDenominator;
    return Result < INT_MIN || Result > INT_MAX ? -1 : (int)Result;
}

/*
 * Physical memory, and notifications about it.
 *
 * Notifications are two events in \KernelObjects, as on Windows. A thread of the library's own sets and resets them:
 * every second, and when the host reports that threads stall for memory. Each query does the same first, so its result
 * is never older than the call. The levels are those of Windows: memory is low below 32 MB for each 4 GB, at most 64
 * MB, and high above three times that. It is also low while threads have stalled for a tenth of the last ten seconds.
 */

#define BASE_GIGABYTE (1ULL << 30)
#define BASE_MEGABYTE (1ULL << 20)
#define BASE_LOW_PER_4GB (32 * BASE_MEGABYTE)
#define BASE_MOST_LOW (64 * BASE_MEGABYTE)
#define BASE_LOW_PRESSURE 10 /* percent */
#define BASE_CHECK_INTERVAL 10000000ULL
#define BASE_USER_SPACE 0x7FFFFFFE0000ULL

BOOL GlobalMemoryStatusEx(LPMEMORYSTATUSEX lpBuffer)
{
    HAL_MEMORY_STATUS Status;
    if (lpBuffer->dwLength != sizeof(*lpBuffer)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    HalQueryMemoryStatus(&Status);
    lpBuffer->ullTotalPhys = Status.TotalPhysical;
    lpBuffer->ullAvailPhys = Status.AvailablePhysical;
    lpBuffer->ullTotalPageFile = Status.TotalPhysical + Status.TotalSwap;
    lpBuffer->ullAvailPageFile = Status.AvailablePhysical + Status.AvailableSwap;
    lpBuffer->ullTotalVirtual = BASE_USER_SPACE;
    lpBuffer->ullAvailVirtual = BASE_USER_SPACE;
    lpBuffer->ullAvailExtendedVirtual = 0;
    lpBuffer->dwMemoryLoad =
        Status.TotalPhysical != 0 ? (DWORD)(100 - Status.AvailablePhysical * 100 / Status.TotalPhysical) : 0;
    return TRUE;
}

/* Notifications. */

static VOID BaseShowCondition(BOOLEAN High, BOOLEAN Holds)
{
    HANDLE Event;
    if (NT_SUCCESS(NtpOpenMemoryCondition(High, EVENT_MODIFY_STATE, &Event))) {
        if (Holds) {
            NtSetEvent(Event, NULL);
        } else {
            NtClearEvent(Event);
        }
        NtClose(Event);
    }
}

static VOID BaseCheckMemory(VOID)
{
    HAL_MEMORY_STATUS Status;
    HalQueryMemoryStatus(&Status);
    ULONG64 Low = (Status.TotalPhysical / (4 * BASE_GIGABYTE) + 1) * BASE_LOW_PER_4GB;
    Low = Low < BASE_MOST_LOW ? Low : BASE_MOST_LOW;
    BOOLEAN Known = Status.TotalPhysical != 0;
    BOOLEAN Scarce = Status.AvailablePhysical < Low || Status.Pressure >= BASE_LOW_PRESSURE;
    BaseShowCondition(FALSE, Known && Scarce);
    BaseShowCondition(TRUE, Known && !Scarce && Status.AvailablePhysical > 3 * Low);
}

static VOID BaseWatchMemory(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KiBecomeOwnThread(); /* the process may end while it runs */
    for (;;) {
        BaseCheckMemory();
        HalAwaitMemoryPressure(BASE_CHECK_INTERVAL);
    }
}

static const KI_OWN_KIND BaseMemoryKind = {
    .Name = "interlock-mem", .Routine = BaseWatchMemory, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD BaseMemoryThread = {.Kind = &BaseMemoryKind};

HANDLE CreateMemoryResourceNotification(MEMORY_RESOURCE_NOTIFICATION_TYPE NotificationType)
{
    HANDLE Event = NULL;
    NTSTATUS Status;
    if ((ULONG)NotificationType > HighMemoryResourceNotification) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    Status = KiEnsureOwnThread(&BaseMemoryThread);
    if (NT_SUCCESS(Status)) {
        Status = NtpOpenMemoryCondition(NotificationType == HighMemoryResourceNotification, EVENT_QUERY_STATE | SYNCHRONIZE, &Event);
        BaseCheckMemory();
    }
    return BaseBoolStatus(Status) ? Event : NULL;
}

BOOL QueryMemoryResourceNotification(HANDLE ResourceNotificationHandle, PBOOL ResourceState)
{
    EVENT_BASIC_INFORMATION Information;
    NTSTATUS Status;
    if (ResourceState == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BaseCheckMemory();
    KiEnsureOwnThread(&BaseMemoryThread); /* a forked child has lost it */
    Status = NtQueryEvent(ResourceNotificationHandle, EventBasicInformation, &Information, sizeof(Information), NULL);
    if (NT_SUCCESS(Status)) {
        *ResourceState = Information.EventState != 0;
    }
    return BaseBoolStatus(Status);
}

/* Time. */

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

/* Uses the UTC offset in effect now, not at the given time. */
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
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
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
