/* criticalsection.c: critical sections by their Win32 names. */
#include "base.h"

#include <interlock/win32/lock.h>

extern inline VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
extern inline BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
extern inline VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    NTSTATUS Status = RtlInitializeCriticalSection(lpCriticalSection);
    if (!NT_SUCCESS(Status)) {
        RtlRaiseStatus(Status);
    }
}

BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount)
{
    return BaseBoolStatus(RtlInitializeCriticalSectionAndSpinCount(lpCriticalSection, dwSpinCount));
}

BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount, DWORD Flags)
{
    return BaseBoolStatus(RtlInitializeCriticalSectionEx(lpCriticalSection, dwSpinCount, Flags));
}

DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount)
{
    return RtlSetCriticalSectionSpinCount(lpCriticalSection, dwSpinCount);
}

VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    RtlDeleteCriticalSection(lpCriticalSection);
}
