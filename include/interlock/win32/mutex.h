/* mutex.h: mutexes. Part of win32.h. */
#ifndef INTERLOCK_WIN32_MUTEX_H
#define INTERLOCK_WIN32_MUTEX_H

#include <interlock/win32/base.h>

#define CREATE_MUTEX_INITIAL_OWNER 0x00000001

INTERLOCK_BEGIN

WINBASEAPI HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI OpenMutexA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenMutexW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);
WINBASEAPI BOOL WINAPI ReleaseMutex(HANDLE hMutex);
#define CreateMutex INTERLOCK_AW(CreateMutex)
#define CreateMutexEx INTERLOCK_AW(CreateMutexEx)
#define OpenMutex INTERLOCK_AW(OpenMutex)

INTERLOCK_END

#endif
