/* threadpool.c: the thread pool by its Win32 names, and the multimedia timers, which use it. */
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

/*
 * The timers of winmm. "The multimedia timer runs in its own thread": they are timers of the thread pool,
 * in a pool of one thread.
 *
 * A timer event is listed by its identifier until it is killed or, if it occurs once, its callback has returned. The
 * thread that removes it from the list closes the pool's timer, and the event is freed with the timer.
 *
 * Killed: the event no longer occurs. With TIME_KILL_SYNCHRONOUS the thread that kills it also waits for a callback
 * that runs, except on the timers' own thread: it would wait for itself, and no other callback runs there.
 */

#define BASE_SHORTEST_PERIOD 1
#define BASE_LONGEST_PERIOD  1000000

typedef struct _BASE_TIMER_EVENT {
    LIST_ENTRY ListEntry; /* Flink is NULL if it is not listed; under BasepTimerEvents.Lock */
    UINT Id;
    UINT Flags;
    PTP_TIMER Timer;
    LPTIMECALLBACK Callback; /* if Event is NULL */
    HANDLE Event;            /* our own */
    DWORD_PTR User;
    volatile BOOLEAN Killed;
} BASE_TIMER_EVENT, *PBASE_TIMER_EVENT;

static struct {
    KI_LOCK Lock;
    LIST_ENTRY ListHead;
    UINT LastId;
} BasepTimerEvents = {.ListHead = {&BasepTimerEvents.ListHead, &BasepTimerEvents.ListHead}};

static TP_POOL BasepTimerEventPool = {.Maximum = 1};

static BOOLEAN BaseIsPeriod(UINT Period)
{
    return Period >= BASE_SHORTEST_PERIOD && Period <= BASE_LONGEST_PERIOD;
}

MMRESULT timeGetDevCaps(LPTIMECAPS ptc, UINT cbtc)
{
    if (ptc == NULL || cbtc < sizeof(*ptc)) {
        return TIMERR_NOCANDO;
    }
    *ptc = (TIMECAPS){.wPeriodMin = BASE_SHORTEST_PERIOD, .wPeriodMax = BASE_LONGEST_PERIOD};
    return MMSYSERR_NOERROR;
}

/* The resolution is always the host's; requests have no effect. */
MMRESULT timeBeginPeriod(UINT uPeriod)
{
    return BaseIsPeriod(uPeriod) ? TIMERR_NOERROR : TIMERR_NOCANDO;
}

MMRESULT timeEndPeriod(UINT uPeriod)
{
    return BaseIsPeriod(uPeriod) ? TIMERR_NOERROR : TIMERR_NOCANDO;
}

static PBASE_TIMER_EVENT BaseFindTimerEvent(UINT Id)
{
    PLIST_ENTRY Head = &BasepTimerEvents.ListHead;
    PBASE_TIMER_EVENT Found = NULL;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Found == NULL; Entry = Entry->Flink) {
        PBASE_TIMER_EVENT TimerEvent = CONTAINING_RECORD(Entry, BASE_TIMER_EVENT, ListEntry);
        Found = TimerEvent->Id == Id ? TimerEvent : NULL;
    }
    return Found;
}

/* With a unique identifier: not 0, and reused as late as possible. */
static VOID BaseListTimerEvent(PBASE_TIMER_EVENT TimerEvent)
{
    PKTHREAD Thread = KiEnterLocked(&BasepTimerEvents.Lock);
    do {
        BasepTimerEvents.LastId += 1;
    } while (BasepTimerEvents.LastId == 0 || BaseFindTimerEvent(BasepTimerEvents.LastId) != NULL);
    TimerEvent->Id = BasepTimerEvents.LastId;
    InsertTailList(&BasepTimerEvents.ListHead, &TimerEvent->ListEntry);
    KiExitLocked(&BasepTimerEvents.Lock, Thread);
}

/* FALSE: another thread has done it. */
static BOOLEAN BaseUnlistTimerEvent(PBASE_TIMER_EVENT TimerEvent)
{
    PKTHREAD Thread = KiEnterLocked(&BasepTimerEvents.Lock);
    BOOLEAN Listed = TimerEvent->ListEntry.Flink != NULL;
    if (Listed) {
        RemoveEntryList(&TimerEvent->ListEntry);
        TimerEvent->ListEntry.Flink = NULL;
    }
    KiExitLocked(&BasepTimerEvents.Lock, Thread);
    return Listed;
}

static VOID BaseTimerEventCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_TIMER Timer)
{
    PBASE_TIMER_EVENT TimerEvent = Context;
    UNREFERENCED_PARAMETER(Instance);
    /* acquire: pairs with the release in timeKillEvent */
    if (!__atomic_load_n(&TimerEvent->Killed, __ATOMIC_ACQUIRE)) {
        if (TimerEvent->Flags & TIME_CALLBACK_EVENT_SET) {
            NtSetEvent(TimerEvent->Event, NULL);
        } else if (TimerEvent->Flags & TIME_CALLBACK_EVENT_PULSE) {
            NtPulseEvent(TimerEvent->Event, NULL);
        } else {
            TimerEvent->Callback(TimerEvent->Id, 0, TimerEvent->User, 0, 0);
        }
    }
    if (!(TimerEvent->Flags & TIME_PERIODIC) && BaseUnlistTimerEvent(TimerEvent)) {
        TpReleaseTimer(Timer);
    }
}

static VOID BaseDestroyTimerEvent(PVOID Context)
{
    PBASE_TIMER_EVENT TimerEvent = Context;
    if (TimerEvent->Event != NULL) {
        NtClose(TimerEvent->Event);
    }
    HalFree(TimerEvent);
}

static NTSTATUS BaseCreateTimerEvent(PBASE_TIMER_EVENT Description, HANDLE Event, PBASE_TIMER_EVENT *Created)
{
    TP_CALLBACK_ENVIRON Environ;
    NTSTATUS Status = STATUS_SUCCESS;
    PBASE_TIMER_EVENT TimerEvent = HalAllocate(sizeof(*TimerEvent), __alignof__(*TimerEvent));
    if (TimerEvent == NULL) {
        return STATUS_NO_MEMORY;
    }
    *TimerEvent = *Description;
    if (Event != NULL) { /* the program may close its handle */
        Status = NtDuplicateObject(NtCurrentProcess(), Event, NtCurrentProcess(), &TimerEvent->Event, 0, 0,
                                   DUPLICATE_SAME_ACCESS);
    }
    if (NT_SUCCESS(Status)) {
        TpInitializeCallbackEnviron(&Environ);
        TpSetCallbackThreadpool(&Environ, &BasepTimerEventPool);
        Status = TpAllocTimer(&TimerEvent->Timer, BaseTimerEventCallback, TimerEvent, &Environ);
    }
    if (!NT_SUCCESS(Status)) {
        BaseDestroyTimerEvent(TimerEvent);
        return Status;
    }
    TimerEvent->Timer->Object.Destroy = BaseDestroyTimerEvent;
    TimerEvent->Timer->Object.DestroyContext = TimerEvent;
    *Created = TimerEvent;
    return Status;
}

MMRESULT timeSetEvent(UINT uDelay, UINT uResolution, LPTIMECALLBACK fptc, DWORD_PTR dwUser, UINT fuEvent)
{
    PKTHREAD Thread = KiCurrentThread();
    LARGE_INTEGER DueTime = {.QuadPart = -(LONGLONG)uDelay * 10000};
    BOOLEAN SetsEvent = (fuEvent & (TIME_CALLBACK_EVENT_SET | TIME_CALLBACK_EVENT_PULSE)) != 0;
    BASE_TIMER_EVENT Description = {.Flags = fuEvent, .Callback = SetsEvent ? NULL : fptc, .User = dwUser};
    PBASE_TIMER_EVENT TimerEvent;
    UINT Id = 0;
    UNREFERENCED_PARAMETER(uResolution);
    if (!BaseIsPeriod(uDelay) || fptc == NULL) {
        return 0;
    }
    KiEnterService(Thread);
    if (NT_SUCCESS(BaseCreateTimerEvent(&Description, SetsEvent ? (HANDLE)(PVOID)fptc : NULL, &TimerEvent))) {
        PTP_TIMER Timer = TimerEvent->Timer;
        TppTryHold(&Timer->Object); /* cannot fail: it is open. Once listed, it may be killed, even before it is set */
        BaseListTimerEvent(TimerEvent);
        Id = TimerEvent->Id;
        TpSetTimer(Timer, &DueTime, fuEvent & TIME_PERIODIC ? uDelay : 0, 0);
        TppDropHold(&Timer->Object);
    }
    KiExitService(Thread);
    return Id;
}

/* The event listed by Id, which the caller closes; NULL: there is none. */
static PBASE_TIMER_EVENT BaseTakeTimerEvent(UINT Id)
{
    PKTHREAD Thread = KiEnterLocked(&BasepTimerEvents.Lock);
    PBASE_TIMER_EVENT TimerEvent = BaseFindTimerEvent(Id);
    if (TimerEvent != NULL) {
        RemoveEntryList(&TimerEvent->ListEntry);
        TimerEvent->ListEntry.Flink = NULL;
    }
    KiExitLocked(&BasepTimerEvents.Lock, Thread);
    return TimerEvent;
}

MMRESULT timeKillEvent(UINT uTimerID)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PBASE_TIMER_EVENT TimerEvent = BaseTakeTimerEvent(uTimerID);
    if (TimerEvent != NULL) {
        PTP_TIMER Timer = TimerEvent->Timer;
        /* release: what the program did before is visible to a callback that finds the event killed */
        __atomic_store_n(&TimerEvent->Killed, TRUE, __ATOMIC_RELEASE);
        TpSetTimer(Timer, NULL, 0, 0);
        PTPP_WORKER Worker = RtlpCurrentTeb()->ThreadPoolData;
        BOOLEAN Itself = Worker != NULL && Worker->Pool == &BasepTimerEventPool;
        if ((TimerEvent->Flags & TIME_KILL_SYNCHRONOUS) && !Itself) {
            TpWaitForTimer(Timer, TRUE);
        }
        TpReleaseTimer(Timer);
    }
    KiExitService(Thread);
    return TimerEvent != NULL ? TIMERR_NOERROR : MMSYSERR_INVALPARAM;
}
