/* threadpool.c: the thread pool by its Win32 names. */
#include <interlock/win32/threadpool.h>

#include "../rtl/tpp.h"
#include "base.h"

/* NULL stays NULL: no time was given. */
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

static VOID BaseIoCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID ApcContext,
                           PIO_STATUS_BLOCK IoStatusBlock, PTP_IO Io)
{
    PTP_WIN32_IO_CALLBACK Callback = (PTP_WIN32_IO_CALLBACK)Io->Win32Callback;
    Callback(Instance, Context, ApcContext, RtlNtStatusToDosError(IoStatusBlock->Status), IoStatusBlock->Information,
             Io);
}

PTP_IO CreateThreadpoolIo(HANDLE fl, PTP_WIN32_IO_CALLBACK pfnio, PVOID pv, PTP_CALLBACK_ENVIRON pcbe)
{
    PTP_IO Io = NULL;
    if (!BaseBoolStatus(TpAllocIoCompletion(&Io, fl, pfnio != NULL ? BaseIoCallback : NULL, pv, pcbe))) {
        return NULL;
    }
    Io->Win32Callback = (PVOID)pfnio;
    return Io;
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
