/* wait.c: waiting for objects, sleeping. Success and timeout leave the last error alone. */
#include "base.h"

#include <interlock/win32/extra.h>
#include <interlock/win32/sync.h>

VOID BaseBeginWait(PBASE_WAIT_TIME Time, ULONG Milliseconds, BOOL Alertable)
{
    Time->Timeout = BaseFormatTimeOut(&Time->Interval, Milliseconds);
    Time->Alertable = Alertable != FALSE;
    Time->End = 0;
    if (Alertable && Time->Timeout != NULL && Milliseconds != 0) {
        Time->End = KeQueryInterruptTime() + (ULONGLONG)-Time->Interval.QuadPart;
    }
}

BOOLEAN BaseWaitAgain(PBASE_WAIT_TIME Time, NTSTATUS Status)
{
    if (Status != STATUS_ALERTED || !Time->Alertable) {
        return FALSE;
    }
    if (Time->Timeout != NULL) {
        ULONGLONG Now = KeQueryInterruptTime();
        Time->Interval.QuadPart = Now < Time->End ? -(LONGLONG)(Time->End - Now) : 0;
    }
    return TRUE;
}

static DWORD BaseWaitResult(NTSTATUS Status)
{
    if (NT_SUCCESS(Status)) {
        return (DWORD)Status;
    }
    BaseSetLastNTError(Status);
    return WAIT_FAILED;
}

DWORD WaitForSingleObjectEx(HANDLE hHandle, DWORD dwMilliseconds, BOOL bAlertable)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForSingleObject(hHandle, Time.Alertable, Time.Timeout);
    } while (BaseWaitAgain(&Time, Status));
    return BaseWaitResult(Status);
}

DWORD WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds)
{
    LARGE_INTEGER Interval;
    return BaseWaitResult(NtWaitForSingleObject(hHandle, FALSE, BaseFormatTimeOut(&Interval, dwMilliseconds)));
}

DWORD WaitForMultipleObjectsEx(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds,
                               BOOL bAlertable)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForMultipleObjects(nCount, (HANDLE *)lpHandles, bWaitAll ? WaitAll : WaitAny, Time.Alertable,
                                          Time.Timeout);
    } while (BaseWaitAgain(&Time, Status));
    return BaseWaitResult(Status);
}

DWORD WaitForMultipleObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds)
{
    return WaitForMultipleObjectsEx(nCount, lpHandles, bWaitAll, dwMilliseconds, FALSE);
}

DWORD WaitForManyObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds, BOOL bAlertable,
                         DWORD *lpIndex)
{
    BASE_WAIT_TIME Time;
    NTSTATUS Status;
    ULONG Index = 0;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtWaitForManyObjects(nCount, (HANDLE *)lpHandles, bWaitAll ? WaitAll : WaitAny, Time.Alertable,
                                      Time.Timeout, &Index);
    } while (BaseWaitAgain(&Time, Status));
    if (lpIndex != NULL) {
        *lpIndex = Index;
    }
    return BaseWaitResult(Status);
}

/* Signals once: only the wait starts over. */
DWORD SignalObjectAndWait(HANDLE hObjectToSignal, HANDLE hObjectToWaitOn, DWORD dwMilliseconds, BOOL bAlertable)
{
    BASE_WAIT_TIME Time;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    NTSTATUS Status = NtSignalAndWaitForSingleObject(hObjectToSignal, hObjectToWaitOn, Time.Alertable, Time.Timeout);
    while (BaseWaitAgain(&Time, Status)) {
        Status = NtWaitForSingleObject(hObjectToWaitOn, Time.Alertable, Time.Timeout);
    }
    return BaseWaitResult(Status);
}

DWORD SleepEx(DWORD dwMilliseconds, BOOL bAlertable)
{
    LARGE_INTEGER Forever = {.QuadPart = -MAXLONGLONG};
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, bAlertable);
    do {
        Status = NtDelayExecution(Time.Alertable, Time.Timeout != NULL ? Time.Timeout : &Forever);
    } while (BaseWaitAgain(&Time, Status));
    return Status == STATUS_USER_APC ? WAIT_IO_COMPLETION : 0;
}

VOID Sleep(DWORD dwMilliseconds)
{
    SleepEx(dwMilliseconds, FALSE);
}

BOOL SwitchToThread(VOID)
{
    return NtYieldExecution() != STATUS_NO_YIELD_PERFORMED;
}
