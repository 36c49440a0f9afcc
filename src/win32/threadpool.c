/* threadpool.c: the thread pool by its Win32 names. */
#include <interlock/win32/thread.h>

#include "../rtl/tpp.h"
#include "base.h"

/* NULL stays NULL: no time. */
static PLARGE_INTEGER BaseTimeOf(PFILETIME FileTime, PLARGE_INTEGER Time)
{
    if (FileTime == NULL) {
        return NULL;
    }
    Time->LowPart = FileTime->dwLowDateTime;
    Time->HighPart = (LONG)FileTime->dwHighDateTime;
    return Time;
}

PTP_POOL CreateThreadpool(PVOID reserved)
{
    PTP_POOL Pool = NULL;
    return BaseBoolStatus(TpAllocPool(&Pool, reserved)) ? Pool : NULL;
}

VOID SetThreadpoolThreadMaximum(PTP_POOL ptpp, DWORD cthrdMost)
{
    TpSetPoolMaxThreads(ptpp, cthrdMost);
}

BOOL SetThreadpoolThreadMinimum(PTP_POOL ptpp, DWORD cthrdMic)
{
    return BaseBoolStatus(TpSetPoolMinThreads(ptpp, cthrdMic));
}

BOOL SetThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi)
{
    return BaseBoolStatus(TpSetPoolStackInformation(ptpp, ptpsi));
}

BOOL QueryThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi)
{
    return BaseBoolStatus(TpQueryPoolStackInformation(ptpp, ptpsi));
}

VOID CloseThreadpool(PTP_POOL ptpp)
{
    TpReleasePool(ptpp);
}

PTP_CLEANUP_GROUP CreateThreadpoolCleanupGroup(VOID)
{
    PTP_CLEANUP_GROUP Group = NULL;
    return BaseBoolStatus(TpAllocCleanupGroup(&Group)) ? Group : NULL;
}

VOID CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP ptpcg, BOOL fCancelPendingCallbacks, PVOID pvCleanupContext)
{
    TpReleaseCleanupGroupMembers(ptpcg, (LOGICAL)fCancelPendingCallbacks, pvCleanupContext);
}

VOID CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP ptpcg)
{
    TpReleaseCleanupGroup(ptpcg);
}

VOID SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE evt)
{
    TpCallbackSetEventOnCompletion(pci, evt);
}

VOID ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE sem, DWORD crel)
{
    TpCallbackReleaseSemaphoreOnCompletion(pci, sem, crel);
}

VOID ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE mut)
{
    TpCallbackReleaseMutexOnCompletion(pci, mut);
}

VOID LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, PRTL_CRITICAL_SECTION pcs)
{
    TpCallbackLeaveCriticalSectionOnCompletion(pci, pcs);
}

VOID FreeLibraryWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HMODULE mod)
{
    TpCallbackUnloadDllOnCompletion(pci, mod);
}

BOOL CallbackMayRunLong(PTP_CALLBACK_INSTANCE pci)
{
    return BaseBoolStatus(TpCallbackMayRunLong(pci));
}

VOID DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE pci)
{
    TpDisassociateCallback(pci);
}

BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK pfns, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    return BaseBoolStatus(TpSimpleTryPost(pfns, pv, pcbe));
}

PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK pfnwk, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    PTP_WORK Work = NULL;
    return BaseBoolStatus(TpAllocWork(&Work, pfnwk, pv, pcbe)) ? Work : NULL;
}

VOID SubmitThreadpoolWork(PTP_WORK pwk)
{
    TpPostWork(pwk);
}

VOID WaitForThreadpoolWorkCallbacks(PTP_WORK pwk, BOOL fCancelPendingCallbacks)
{
    TpWaitForWork(pwk, (LOGICAL)fCancelPendingCallbacks);
}

VOID CloseThreadpoolWork(PTP_WORK pwk)
{
    TpReleaseWork(pwk);
}

PTP_TIMER CreateThreadpoolTimer(PTP_TIMER_CALLBACK pfnti, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    PTP_TIMER Timer = NULL;
    return BaseBoolStatus(TpAllocTimer(&Timer, pfnti, pv, pcbe)) ? Timer : NULL;
}

BOOL SetThreadpoolTimerEx(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength)
{
    LARGE_INTEGER DueTime;
    return (BOOL)TpSetTimerEx(pti, BaseTimeOf(pftDueTime, &DueTime), msPeriod, msWindowLength);
}

VOID SetThreadpoolTimer(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength)
{
    SetThreadpoolTimerEx(pti, pftDueTime, msPeriod, msWindowLength);
}

BOOL IsThreadpoolTimerSet(PTP_TIMER pti)
{
    return (BOOL)TpIsTimerSet(pti);
}

VOID WaitForThreadpoolTimerCallbacks(PTP_TIMER pti, BOOL fCancelPendingCallbacks)
{
    TpWaitForTimer(pti, (LOGICAL)fCancelPendingCallbacks);
}

VOID CloseThreadpoolTimer(PTP_TIMER pti)
{
    TpReleaseTimer(pti);
}

PTP_WAIT CreateThreadpoolWait(PTP_WAIT_CALLBACK pfnwa, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    PTP_WAIT Wait = NULL;
    return BaseBoolStatus(TpAllocWait(&Wait, pfnwa, pv, pcbe)) ? Wait : NULL;
}

BOOL SetThreadpoolWaitEx(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout, PVOID Reserved)
{
    LARGE_INTEGER Timeout;
    return (BOOL)TpSetWaitEx(pwa, h, BaseTimeOf(pftTimeout, &Timeout), Reserved);
}

VOID SetThreadpoolWait(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout)
{
    SetThreadpoolWaitEx(pwa, h, pftTimeout, NULL);
}

VOID WaitForThreadpoolWaitCallbacks(PTP_WAIT pwa, BOOL fCancelPendingCallbacks)
{
    TpWaitForWait(pwa, (LOGICAL)fCancelPendingCallbacks);
}

VOID CloseThreadpoolWait(PTP_WAIT pwa)
{
    TpReleaseWait(pwa);
}

static VOID BaseExecuteIo(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    PTP_IO Io = CONTAINING_RECORD(Object, TP_IO, Object);
    UNREFERENCED_PARAMETER(Result);
    ((PTP_WIN32_IO_CALLBACK)Object->Callback)(Instance, Object->Context, NULL, NO_ERROR, 0, Io);
}

PTP_IO CreateThreadpoolIo(HANDLE fl, PTP_WIN32_IO_CALLBACK pfnio, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    PTP_IO Io = NULL;
    return BaseBoolStatus(TppAllocateIo(&Io, fl, BaseExecuteIo, (PVOID)pfnio, pv, pcbe)) ? Io : NULL;
}

static VOID BaseExecuteBoundIo(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Result);
    ((LPOVERLAPPED_COMPLETION_ROUTINE)Object->Callback)(NO_ERROR, 0, NULL);
}

BOOL BindIoCompletionCallback(HANDLE FileHandle, LPOVERLAPPED_COMPLETION_ROUTINE Function, ULONG Flags)
{
    return BaseBoolStatus(Flags == 0 ? TppBindIo(FileHandle, BaseExecuteBoundIo, (PVOID)Function)
                                     : STATUS_INVALID_PARAMETER);
}

VOID StartThreadpoolIo(PTP_IO pio)
{
    TpStartAsyncIoOperation(pio);
}

VOID CancelThreadpoolIo(PTP_IO pio)
{
    TpCancelAsyncIoOperation(pio);
}

VOID WaitForThreadpoolIoCallbacks(PTP_IO pio, BOOL fCancelPendingCallbacks)
{
    TpWaitForIoCompletion(pio, (LOGICAL)fCancelPendingCallbacks);
}

VOID CloseThreadpoolIo(PTP_IO pio)
{
    TpReleaseIoCompletion(pio);
}

/* Work items, registered waits and timer queues. */

/* A callback that is still running is reported as an error, ERROR_IO_PENDING. */
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
