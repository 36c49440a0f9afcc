/* threadpoollegacy.c: work items, registered waits and timer queues by their Win32 names. */
#include <interlock/win32/threadpool.h>

#include "base.h"

/* What has not ended yet is reported like an error: ERROR_IO_PENDING. */
static BOOL BaseEndedStatus(NTSTATUS Status)
{
    if (Status == STATUS_PENDING) {
        BaseSetLastNTError(Status);
        return FALSE;
    }
    return BaseBoolStatus(Status);
}

BOOL QueueUserWorkItem(LPTHREAD_START_ROUTINE Function, PVOID Context, ULONG Flags)
{
    return BaseBoolStatus(RtlQueueWorkItem((WORKERCALLBACKFUNC)(PVOID)Function, Context, Flags));
}

BOOL RegisterWaitForSingleObject(PHANDLE phNewWaitObject, HANDLE hObject, WAITORTIMERCALLBACK Callback, PVOID Context,
                                 ULONG dwMilliseconds, ULONG dwFlags)
{
    return BaseBoolStatus(RtlRegisterWait(phNewWaitObject, hObject, Callback, Context, dwMilliseconds, dwFlags));
}

BOOL UnregisterWait(HANDLE WaitHandle)
{
    return BaseEndedStatus(RtlDeregisterWait(WaitHandle));
}

BOOL UnregisterWaitEx(HANDLE WaitHandle, HANDLE CompletionEvent)
{
    return BaseEndedStatus(RtlDeregisterWaitEx(WaitHandle, CompletionEvent));
}

HANDLE CreateTimerQueue(VOID)
{
    HANDLE TimerQueue = NULL;
    return BaseBoolStatus(RtlCreateTimerQueue(&TimerQueue)) ? TimerQueue : NULL;
}

BOOL CreateTimerQueueTimer(PHANDLE phNewTimer, HANDLE TimerQueue, WAITORTIMERCALLBACK Callback, PVOID Parameter,
                           DWORD DueTime, DWORD Period, ULONG Flags)
{
    return BaseBoolStatus(RtlCreateTimer(TimerQueue, phNewTimer, Callback, Parameter, DueTime, Period, Flags));
}

BOOL ChangeTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, ULONG DueTime, ULONG Period)
{
    return BaseBoolStatus(RtlUpdateTimer(TimerQueue, Timer, DueTime, Period));
}

BOOL DeleteTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, HANDLE CompletionEvent)
{
    return BaseEndedStatus(RtlDeleteTimer(TimerQueue, Timer, CompletionEvent));
}

BOOL DeleteTimerQueue(HANDLE TimerQueue)
{
    return BaseEndedStatus(RtlDeleteTimerQueue(TimerQueue));
}

BOOL DeleteTimerQueueEx(HANDLE TimerQueue, HANDLE CompletionEvent)
{
    return BaseEndedStatus(RtlDeleteTimerQueueEx(TimerQueue, CompletionEvent));
}
