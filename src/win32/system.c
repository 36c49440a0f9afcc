/* system.c: the machine, the version. */
#include <limits.h>

#include <interlock/ke.h>
#include <interlock/rtldriver.h>
#include <interlock/win32/base.h>

#include "../hal/hal.h"
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
        BaseSetLastError(ERROR_INVALID_PARAMETER);
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
