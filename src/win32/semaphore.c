/* semaphore.c: semaphores. */
#include <interlock/win32/semaphore.h>

#include "base.h"

HANDLE CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                          LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Semaphore = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if (dwFlags == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpSemaphoreAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateSemaphore(&Semaphore, dwDesiredAccess, &Object.Attributes, lInitialCount, lMaximumCount);
    }
    return BaseCreatedHandle(Status, Semaphore);
}

HANDLE CreateSemaphoreExA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                          LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, Wide, dwFlags,
                                                   dwDesiredAccess)
                              : BaseCreatedHandle(Status, NULL);
}

HANDLE CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                        LPCWSTR lpName)
{
    return CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0, SEMAPHORE_ALL_ACCESS);
}

HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount, LONG lMaximumCount,
                        LPCSTR lpName)
{
    return CreateSemaphoreExA(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0, SEMAPHORE_ALL_ACCESS);
}

HANDLE OpenSemaphoreW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Semaphore = NULL;
    NTSTATUS Status = BaseFormatOpenAttributes(&Object, bInheritHandle, lpName);
    if (NT_SUCCESS(Status)) {
        Status = NtOpenSemaphore(&Semaphore, dwDesiredAccess, &Object.Attributes);
    }
    return BaseOpenedHandle(Status, Semaphore);
}

HANDLE OpenSemaphoreA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? OpenSemaphoreW(dwDesiredAccess, bInheritHandle, Wide) : BaseOpenedHandle(Status, NULL);
}

BOOL ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount)
{
    return BaseBoolStatus(NtReleaseSemaphore(hSemaphore, lReleaseCount, lpPreviousCount));
}
