/* error.c: the last error of a thread. */
#include <interlock/win32/error.h>

#include "base.h"

VOID BaseSetLastError(ULONG Error)
{
    RtlSetLastWin32Error(Error);
}

ULONG BaseSetLastNTError(NTSTATUS Status)
{
    ULONG Error = RtlNtStatusToDosError(Status);
    BaseSetLastError(Error);
    return Error;
}

BOOL BaseBoolStatus(NTSTATUS Status)
{
    if (NT_SUCCESS(Status)) {
        return TRUE;
    }
    BaseSetLastNTError(Status);
    return FALSE;
}

DWORD GetLastError(VOID)
{
    return RtlGetLastWin32Error();
}

VOID SetLastError(DWORD dwErrCode)
{
    BaseSetLastError(dwErrCode);
}

VOID SetLastErrorEx(DWORD dwErrCode, DWORD dwType)
{
    UNREFERENCED_PARAMETER(dwType);
    BaseSetLastError(dwErrCode);
}

VOID RestoreLastError(DWORD dwErrCode)
{
    BaseSetLastError(dwErrCode);
}
