/* timer.c: waitable timers. */
#include <interlock/win32/timer.h>

#include "base.h"

#define BASE_TIMER_FLAGS (CREATE_WAITABLE_TIMER_MANUAL_RESET | CREATE_WAITABLE_TIMER_HIGH_RESOLUTION)

HANDLE CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName, DWORD dwFlags,
                              DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Timer = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~BASE_TIMER_FLAGS) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpTimerAttributes, lpTimerName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateTimer(&Timer, dwDesiredAccess, &Object.Attributes,
                               dwFlags & CREATE_WAITABLE_TIMER_MANUAL_RESET ? NotificationTimer : SynchronizationTimer);
    }
    return BaseCreatedHandle(Status, Timer);
}

HANDLE CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName, DWORD dwFlags,
                              DWORD dwDesiredAccess)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpTimerName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? CreateWaitableTimerExW(lpTimerAttributes, Wide, dwFlags, dwDesiredAccess)
                              : BaseCreatedHandle(Status, NULL);
}

HANDLE CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset, LPCWSTR lpTimerName)
{
    return CreateWaitableTimerExW(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0, TIMER_ALL_ACCESS);
}

HANDLE CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset, LPCSTR lpTimerName)
{
    return CreateWaitableTimerExA(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0, TIMER_ALL_ACCESS);
}

HANDLE OpenWaitableTimerW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpTimerName)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Timer = NULL;
    NTSTATUS Status = BaseFormatOpenAttributes(&Object, bInheritHandle, lpTimerName);
    if (NT_SUCCESS(Status)) {
        Status = NtOpenTimer(&Timer, dwDesiredAccess, &Object.Attributes);
    }
    return BaseOpenedHandle(Status, Timer);
}

HANDLE OpenWaitableTimerA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpTimerName)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpTimerName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? OpenWaitableTimerW(dwDesiredAccess, bInheritHandle, Wide)
                              : BaseOpenedHandle(Status, NULL);
}

/* A timer that cannot wake the machine is set all the same, and the last error tells. */
static BOOL BasepTimerSet(NTSTATUS Status)
{
    if (Status == STATUS_TIMER_RESUME_IGNORED) {
        BaseSetLastError(ERROR_NOT_SUPPORTED);
    }
    return BaseBoolStatus(Status);
}

BOOL SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                      PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine, BOOL fResume)
{
    NTSTATUS Status = NtSetTimer(hTimer, (PLARGE_INTEGER)lpDueTime, (PTIMER_APC_ROUTINE)(PVOID)pfnCompletionRoutine,
                                 lpArgToCompletionRoutine, fResume != FALSE, lPeriod, NULL);
    return BasepTimerSet(Status);
}

BOOL SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                        PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                        PREASON_CONTEXT WakeContext, ULONG TolerableDelay)
{
    TIMER_SET_COALESCABLE_TIMER_INFO Info = {
        .TimerApcRoutine = (PTIMER_APC_ROUTINE)(PVOID)pfnCompletionRoutine,
        .TimerContext = lpArgToCompletionRoutine,
        .WakeContext = (PVOID)WakeContext,
        .Period = (ULONG)lPeriod,
        .TolerableDelay = TolerableDelay,
    };
    if (lpDueTime == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    Info.DueTime = *lpDueTime;
    return BasepTimerSet(NtSetTimerEx(hTimer, TimerSetCoalescableTimer, &Info, sizeof(Info)));
}

BOOL CancelWaitableTimer(HANDLE hTimer)
{
    return BaseBoolStatus(NtCancelTimer(hTimer, NULL));
}
