/* threadpool.h: the thread pool, and the older interface to it. Part of win32.h. */
#ifndef INTERLOCK_WIN32_THREADPOOL_H
#define INTERLOCK_WIN32_THREADPOOL_H

#include <interlock/rtl.h>
#include <interlock/win32/base.h>
#include <interlock/win32/thread.h>

INTERLOCK_BEGIN

typedef VOID (*PTP_WIN32_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID Overlapped, ULONG IoResult,
                                      ULONG_PTR NumberOfBytesTransferred, PTP_IO Io);

/* How the callbacks of an object run: see TP_CALLBACK_ENVIRON. */

FORCEINLINE VOID InitializeThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpInitializeCallbackEnviron(pcbe);
}

FORCEINLINE VOID SetThreadpoolCallbackPool(PTP_CALLBACK_ENVIRON pcbe, PTP_POOL ptpp)
{
    TpSetCallbackThreadpool(pcbe, ptpp);
}

FORCEINLINE VOID SetThreadpoolCallbackCleanupGroup(PTP_CALLBACK_ENVIRON pcbe, PTP_CLEANUP_GROUP ptpcg,
                                                   PTP_CLEANUP_GROUP_CANCEL_CALLBACK pfng)
{
    TpSetCallbackCleanupGroup(pcbe, ptpcg, pfng);
}

FORCEINLINE VOID SetThreadpoolCallbackRunsLong(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackLongFunction(pcbe);
}

FORCEINLINE VOID SetThreadpoolCallbackLibrary(PTP_CALLBACK_ENVIRON pcbe, PVOID mod)
{
    TpSetCallbackRaceWithDll(pcbe, mod);
}

FORCEINLINE VOID SetThreadpoolCallbackPriority(PTP_CALLBACK_ENVIRON pcbe, TP_CALLBACK_PRIORITY Priority)
{
    TpSetCallbackPriority(pcbe, Priority);
}

FORCEINLINE VOID SetThreadpoolCallbackPersistent(PTP_CALLBACK_ENVIRON pcbe)
{
    TpSetCallbackPersistent(pcbe);
}

FORCEINLINE VOID DestroyThreadpoolEnvironment(PTP_CALLBACK_ENVIRON pcbe)
{
    TpDestroyCallbackEnviron(pcbe);
}

WINBASEAPI PTP_POOL CreateThreadpool(PVOID reserved);
WINBASEAPI VOID SetThreadpoolThreadMaximum(PTP_POOL ptpp, DWORD cthrdMost);
WINBASEAPI BOOL SetThreadpoolThreadMinimum(PTP_POOL ptpp, DWORD cthrdMic);
WINBASEAPI BOOL SetThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);
WINBASEAPI BOOL QueryThreadpoolStackInformation(PTP_POOL ptpp, PTP_POOL_STACK_INFORMATION ptpsi);
WINBASEAPI VOID CloseThreadpool(PTP_POOL ptpp);

WINBASEAPI PTP_CLEANUP_GROUP CreateThreadpoolCleanupGroup(VOID);
WINBASEAPI VOID CloseThreadpoolCleanupGroupMembers(PTP_CLEANUP_GROUP ptpcg, BOOL fCancelPendingCallbacks,
                                                   PVOID pvCleanupContext);
WINBASEAPI VOID CloseThreadpoolCleanupGroup(PTP_CLEANUP_GROUP ptpcg);

WINBASEAPI VOID SetEventWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE evt);
WINBASEAPI VOID ReleaseSemaphoreWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE sem, DWORD crel);
WINBASEAPI VOID ReleaseMutexWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HANDLE mut);
WINBASEAPI VOID LeaveCriticalSectionWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, PRTL_CRITICAL_SECTION pcs);
WINBASEAPI VOID FreeLibraryWhenCallbackReturns(PTP_CALLBACK_INSTANCE pci, HMODULE mod);
WINBASEAPI BOOL CallbackMayRunLong(PTP_CALLBACK_INSTANCE pci);
WINBASEAPI VOID DisassociateCurrentThreadFromCallback(PTP_CALLBACK_INSTANCE pci);

WINBASEAPI BOOL TrySubmitThreadpoolCallback(PTP_SIMPLE_CALLBACK pfns, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);
WINBASEAPI PTP_WORK CreateThreadpoolWork(PTP_WORK_CALLBACK pfnwk, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);
WINBASEAPI VOID SubmitThreadpoolWork(PTP_WORK pwk);
WINBASEAPI VOID WaitForThreadpoolWorkCallbacks(PTP_WORK pwk, BOOL fCancelPendingCallbacks);
WINBASEAPI VOID CloseThreadpoolWork(PTP_WORK pwk);

WINBASEAPI PTP_TIMER CreateThreadpoolTimer(PTP_TIMER_CALLBACK pfnti, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);
WINBASEAPI VOID SetThreadpoolTimer(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);
WINBASEAPI BOOL SetThreadpoolTimerEx(PTP_TIMER pti, PFILETIME pftDueTime, DWORD msPeriod, DWORD msWindowLength);
WINBASEAPI BOOL IsThreadpoolTimerSet(PTP_TIMER pti);
WINBASEAPI VOID WaitForThreadpoolTimerCallbacks(PTP_TIMER pti, BOOL fCancelPendingCallbacks);
WINBASEAPI VOID CloseThreadpoolTimer(PTP_TIMER pti);

WINBASEAPI PTP_WAIT CreateThreadpoolWait(PTP_WAIT_CALLBACK pfnwa, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);
WINBASEAPI VOID SetThreadpoolWait(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout);
WINBASEAPI BOOL SetThreadpoolWaitEx(PTP_WAIT pwa, HANDLE h, PFILETIME pftTimeout, PVOID Reserved);
WINBASEAPI VOID WaitForThreadpoolWaitCallbacks(PTP_WAIT pwa, BOOL fCancelPendingCallbacks);
WINBASEAPI VOID CloseThreadpoolWait(PTP_WAIT pwa);

/* fl is a descriptor object: see TpAllocIoCompletion. The callback's Overlapped is NULL, its IoResult NO_ERROR. */

WINBASEAPI PTP_IO CreateThreadpoolIo(HANDLE fl, PTP_WIN32_IO_CALLBACK pfnio, PVOID pv, PTP_CALLBACK_ENVIRON pcbe);
WINBASEAPI VOID StartThreadpoolIo(PTP_IO pio);
WINBASEAPI VOID CancelThreadpoolIo(PTP_IO pio);
WINBASEAPI VOID WaitForThreadpoolIoCallbacks(PTP_IO pio, BOOL fCancelPendingCallbacks);
WINBASEAPI VOID CloseThreadpoolIo(PTP_IO pio);

/* The older interface. Completion event INVALID_HANDLE_VALUE: the call returns when the last callback is over. */

WINBASEAPI BOOL QueueUserWorkItem(LPTHREAD_START_ROUTINE Function, PVOID Context, ULONG Flags);

WINBASEAPI BOOL RegisterWaitForSingleObject(PHANDLE phNewWaitObject, HANDLE hObject, WAITORTIMERCALLBACK Callback,
                                            PVOID Context, ULONG dwMilliseconds, ULONG dwFlags);
WINBASEAPI BOOL UnregisterWait(HANDLE WaitHandle);
WINBASEAPI BOOL UnregisterWaitEx(HANDLE WaitHandle, HANDLE CompletionEvent);

WINBASEAPI HANDLE CreateTimerQueue(VOID);
WINBASEAPI BOOL CreateTimerQueueTimer(PHANDLE phNewTimer, HANDLE TimerQueue, WAITORTIMERCALLBACK Callback,
                                      PVOID Parameter, DWORD DueTime, DWORD Period, ULONG Flags);
WINBASEAPI BOOL ChangeTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, ULONG DueTime, ULONG Period);
WINBASEAPI BOOL DeleteTimerQueueTimer(HANDLE TimerQueue, HANDLE Timer, HANDLE CompletionEvent);
WINBASEAPI BOOL DeleteTimerQueue(HANDLE TimerQueue);
WINBASEAPI BOOL DeleteTimerQueueEx(HANDLE TimerQueue, HANDLE CompletionEvent);

INTERLOCK_END

#endif
