/* mutex.c: mutexes, which NT calls mutants. */
#include <interlock/win32/mutex.h>

#include "base.h"

HANDLE CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Mutant = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~CREATE_MUTEX_INITIAL_OWNER) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpMutexAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateMutant(&Mutant, dwDesiredAccess, &Object.Attributes,
                                (dwFlags & CREATE_MUTEX_INITIAL_OWNER) != 0);
    }
    return BaseCreatedHandle(Status, Mutant);
}

HANDLE CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? CreateMutexExW(lpMutexAttributes, Wide, dwFlags, dwDesiredAccess)
                              : BaseCreatedHandle(Status, NULL);
}

HANDLE CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCWSTR lpName)
{
    return CreateMutexExW(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0, MUTEX_ALL_ACCESS);
}

HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCSTR lpName)
{
    return CreateMutexExA(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0, MUTEX_ALL_ACCESS);
}

HANDLE OpenMutexW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Mutant = NULL;
    NTSTATUS Status = BaseFormatOpenAttributes(&Object, bInheritHandle, lpName);
    if (NT_SUCCESS(Status)) {
        Status = NtOpenMutant(&Mutant, dwDesiredAccess, &Object.Attributes);
    }
    return BaseOpenedHandle(Status, Mutant);
}

HANDLE OpenMutexA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? OpenMutexW(dwDesiredAccess, bInheritHandle, Wide) : BaseOpenedHandle(Status, NULL);
}

BOOL ReleaseMutex(HANDLE hMutex)
{
    return BaseBoolStatus(NtReleaseMutant(hMutex, NULL));
}
