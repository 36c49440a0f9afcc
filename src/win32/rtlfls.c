/* rtlfls.c: fiber-local storage with statuses. They leave the last error alone. */
#include <interlock/win32/thread.h>

#include "base.h"

static NTSTATUS BaseFlsStatus(BOOL Succeeded, ULONG LastError, NTSTATUS Failure)
{
    BaseSetLastError(LastError);
    return Succeeded ? STATUS_SUCCESS : Failure;
}

NTSTATUS RtlFlsAlloc(VOID (*Callback)(PVOID FlsData), PULONG FlsIndex)
{
    ULONG LastError = GetLastError();
    DWORD Index;
    if (FlsIndex == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Index = FlsAlloc(Callback);
    if (Index != FLS_OUT_OF_INDEXES) {
        *FlsIndex = Index;
    }
    return BaseFlsStatus(Index != FLS_OUT_OF_INDEXES, LastError, STATUS_NO_MEMORY);
}

NTSTATUS RtlFlsFree(ULONG FlsIndex)
{
    ULONG LastError = GetLastError();
    return BaseFlsStatus(FlsFree(FlsIndex), LastError, STATUS_INVALID_PARAMETER);
}

NTSTATUS RtlFlsGetValue(ULONG FlsIndex, PVOID *FlsData)
{
    ULONG LastError = GetLastError();
    PVOID Value;
    if (FlsData == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Value = FlsGetValue(FlsIndex);
    *FlsData = Value;
    return BaseFlsStatus(Value != NULL || GetLastError() == ERROR_SUCCESS, LastError, STATUS_INVALID_PARAMETER);
}

NTSTATUS RtlFlsSetValue(ULONG FlsIndex, PVOID FlsData)
{
    ULONG LastError = GetLastError();
    BOOL Set = FlsSetValue(FlsIndex, FlsData);
    NTSTATUS Failure = GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? STATUS_NO_MEMORY : STATUS_INVALID_PARAMETER;
    return BaseFlsStatus(Set, LastError, Failure);
}
