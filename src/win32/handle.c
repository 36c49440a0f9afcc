/* handle.c: handles of any kind. */
#include <interlock/win32/handle.h>

#include "base.h"

BOOL CloseHandle(HANDLE hObject)
{
    return BaseBoolStatus(NtClose(hObject));
}

BOOL DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle, HANDLE hTargetProcessHandle,
                     LPHANDLE lpTargetHandle, DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions)
{
    return BaseBoolStatus(NtDuplicateObject(hSourceProcessHandle, hSourceHandle, hTargetProcessHandle, lpTargetHandle,
                                            dwDesiredAccess, bInheritHandle ? OBJ_INHERIT : 0, dwOptions));
}

BOOL GetHandleInformation(HANDLE hObject, LPDWORD lpdwFlags)
{
    OBJECT_HANDLE_FLAG_INFORMATION Flags;
    NTSTATUS Status = NtQueryObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags), NULL);
    if (NT_SUCCESS(Status) && lpdwFlags == NULL) {
        Status = STATUS_ACCESS_VIOLATION;
    }
    if (NT_SUCCESS(Status)) {
        *lpdwFlags =
            (Flags.Inherit ? HANDLE_FLAG_INHERIT : 0) | (Flags.ProtectFromClose ? HANDLE_FLAG_PROTECT_FROM_CLOSE : 0);
    }
    return BaseBoolStatus(Status);
}

/* Flags outside of the mask stay. */
BOOL SetHandleInformation(HANDLE hObject, DWORD dwMask, DWORD dwFlags)
{
    OBJECT_HANDLE_FLAG_INFORMATION Flags;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwMask & ~(HANDLE_FLAG_INHERIT | HANDLE_FLAG_PROTECT_FROM_CLOSE)) == 0) {
        Status = NtQueryObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags), NULL);
    }
    if (NT_SUCCESS(Status)) {
        Flags.Inherit = dwMask & HANDLE_FLAG_INHERIT ? (dwFlags & HANDLE_FLAG_INHERIT) != 0 : Flags.Inherit;
        Flags.ProtectFromClose = dwMask & HANDLE_FLAG_PROTECT_FROM_CLOSE
                                     ? (dwFlags & HANDLE_FLAG_PROTECT_FROM_CLOSE) != 0
                                     : Flags.ProtectFromClose;
        Status = NtSetInformationObject(hObject, ObjectHandleFlagInformation, &Flags, sizeof(Flags));
    }
    return BaseBoolStatus(Status);
}

/* Different objects are a failure too: ERROR_NOT_SAME_OBJECT. */
BOOL CompareObjectHandles(HANDLE hFirstObjectHandle, HANDLE hSecondObjectHandle)
{
    return BaseBoolStatus(NtCompareObjects(hFirstObjectHandle, hSecondObjectHandle));
}
