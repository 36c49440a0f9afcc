/* timer.h: waitable timers. Part of win32.h. */
#ifndef INTERLOCK_WIN32_TIMER_H
#define INTERLOCK_WIN32_TIMER_H

#include <interlock/win32/base.h>

#define CREATE_WAITABLE_TIMER_MANUAL_RESET 0x00000001
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002 /* accepted; every timer has the resolution of the host */

typedef VOID(APIENTRY *PTIMERAPCROUTINE)(LPVOID lpArgToCompletionRoutine, DWORD dwTimerLowValue,
                                         DWORD dwTimerHighValue);

typedef struct _REASON_CONTEXT {
    ULONG Version;
    DWORD Flags;
    union {
        struct {
            HMODULE LocalizedReasonModule;
            ULONG LocalizedReasonId;
            ULONG ReasonStringCount;
            LPWSTR *ReasonStrings;
        } Detailed;
        LPWSTR SimpleReasonString;
    } Reason;
} REASON_CONTEXT, *PREASON_CONTEXT;

#define POWER_REQUEST_CONTEXT_VERSION 0
#define POWER_REQUEST_CONTEXT_SIMPLE_STRING 0x00000001

INTERLOCK_BEGIN

WINBASEAPI HANDLE WINAPI CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCWSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI OpenWaitableTimerA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI OpenWaitableTimerW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpTimerName);
/* With fResume TRUE the timer is set, and the last error is ERROR_NOT_SUPPORTED: nobody wakes the host from sleep. */
WINBASEAPI BOOL WINAPI SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                        PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                        BOOL fResume);
WINBASEAPI BOOL WINAPI SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                          PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                          PREASON_CONTEXT WakeContext, ULONG TolerableDelay);
WINBASEAPI BOOL WINAPI CancelWaitableTimer(HANDLE hTimer);
#define CreateWaitableTimer INTERLOCK_AW(CreateWaitableTimer)
#define CreateWaitableTimerEx INTERLOCK_AW(CreateWaitableTimerEx)
#define OpenWaitableTimer INTERLOCK_AW(OpenWaitableTimer)

INTERLOCK_END

#endif
