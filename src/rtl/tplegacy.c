/*
 * tplegacy.c: work items, timer queues and registered waits. They are objects of the pool like any other, with a
 * structure of their own for the older interface.
 *
 * Ending a timer or a wait cancels no callback: a callback whose timer has expired, or whose object was consumed, still
 * occurs. So no expiration and no signal is lost.
 */
#include "tpp.h"

#define RTLP_WAIT_FOR_CALLBACKS ((HANDLE)(LONG_PTR)-1)

/* A completion event: none; INVALID_HANDLE_VALUE, the caller waits; or one to set at the end. */
static NTSTATUS RtlpOpenCompletion(HANDLE Event, PBOOLEAN Wait, PKEVENT *Referenced)
{
    PVOID Object = NULL;
    NTSTATUS Status = STATUS_SUCCESS;
    *Wait = Event == RTLP_WAIT_FOR_CALLBACKS;
    if (Event != NULL && !*Wait) {
        Status = ObReferenceObjectByHandle(Event, EVENT_MODIFY_STATE, *ExEventObjectType, UserMode, &Object, NULL);
    }
    *Referenced = Object;
    return Status;
}

static VOID RtlpSignalCompletion(PKEVENT Event)
{
    if (Event != NULL) {
        KeSetEvent(Event, EVENT_INCREMENT, FALSE);
        ObDereferenceObject(Event);
    }
}

static VOID RtlpFormatEnviron(PTP_CALLBACK_ENVIRON Environ, ULONG Flags)
{
    TpInitializeCallbackEnviron(Environ);
    Environ->u.s.LongFunction = (Flags & WT_EXECUTELONGFUNCTION) != 0;
    /* A callback that starts I/O needs its thread to stay: the thread's end would cancel the I/O. */
    Environ->u.s.Persistent =
        (Flags & (WT_EXECUTEINPERSISTENTTHREAD | WT_EXECUTEINPERSISTENTIOTHREAD | WT_EXECUTEINIOTHREAD)) != 0;
    if (Flags & WT_EXECUTEINTIMERTHREAD) {
        Environ->Pool = &TppTimerThreadPool;
    } else if (Flags & WT_EXECUTEINWAITTHREAD) {
        Environ->Pool = &TppWaitThreadPool;
    }
    if (Flags >> 16 != 0) { /* WT_SET_MAX_THREADPOOL_THREADS */
        TpSetPoolMaxThreads(&TppDefaultPool, Flags >> 16);
    }
}

/* Closes an open one; STATUS_PENDING: a callback is pending or running. */
static NTSTATUS RtlpEndObject(PTPP_OBJECT Object, BOOLEAN Wait)
{
    if (!Wait) {
        return TppClose(Object, TppProgram) ? STATUS_PENDING : STATUS_SUCCESS;
    }
    TppEnterPool(Object->Pool);
    TppTryHold(Object); /* cannot fail: the object is open */
    if (TppClose(Object, TppProgram)) {
        TppWaitForCallbacks(Object, FALSE);
    }
    TppDropHold(Object);
    return STATUS_SUCCESS;
}

/* Work items. */

static VOID RtlpExecuteWorkItem(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Result);
    ((WORKERCALLBACKFUNC)Object->Callback)(Object->Context);
}

NTSTATUS RtlQueueWorkItem(WORKERCALLBACKFUNC Function, PVOID Context, ULONG Flags)
{
    TP_CALLBACK_ENVIRON Environ;
    RtlpFormatEnviron(&Environ, Flags);
    return TppSubmitOnce(RtlpExecuteWorkItem, (PVOID)Function, Context, &Environ);
}

/* Timer queues. A queue lists its timers to delete them all, and lives until it and its last timer have been
   deleted. */

typedef struct _RTLP_TIMER_QUEUE {
    volatile LONG References;
    KI_LOCK Lock;
    LIST_ENTRY TimerListHead;
    PKEVENT CompletionEvent;
} RTLP_TIMER_QUEUE, *PRTLP_TIMER_QUEUE;

typedef struct _RTLP_TIMER {
    LIST_ENTRY Entry; /* in its queue, under the queue's lock; then of the thread that deletes it */
    PRTLP_TIMER_QUEUE Queue;
    PTP_TIMER Timer;
    WAITORTIMERCALLBACKFUNC Function;
    PVOID Context;
    PKEVENT CompletionEvent;
} RTLP_TIMER, *PRTLP_TIMER;

static RTLP_TIMER_QUEUE RtlpDefaultTimerQueue = {
    .References = 1,
    .TimerListHead = {&RtlpDefaultTimerQueue.TimerListHead, &RtlpDefaultTimerQueue.TimerListHead},
};

static VOID RtlpDropTimerQueue(PRTLP_TIMER_QUEUE Queue)
{
    /* acq_rel: the free comes after every other thread's last access */
    if (__atomic_sub_fetch(&Queue->References, 1, __ATOMIC_ACQ_REL) == 0) {
        PKEVENT CompletionEvent = Queue->CompletionEvent;
        HalFree(Queue);
        RtlpSignalCompletion(CompletionEvent);
    }
}

NTSTATUS RtlCreateTimerQueue(PHANDLE TimerQueueHandle)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PRTLP_TIMER_QUEUE Queue = HalAllocate(sizeof(*Queue), __alignof__(*Queue));
    if (Queue != NULL) {
        Queue->References = 1;
        InitializeListHead(&Queue->TimerListHead);
        *TimerQueueHandle = Queue;
    }
    KiExitService(Thread);
    return Queue != NULL ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static VOID RtlpTimerCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_TIMER Timer)
{
    PRTLP_TIMER Entry = Context;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Timer);
    Entry->Function(Entry->Context, TRUE);
}

static VOID RtlpDestroyTimer(PVOID Context)
{
    PRTLP_TIMER Entry = Context;
    PRTLP_TIMER_QUEUE Queue = Entry->Queue;
    PKEVENT CompletionEvent = Entry->CompletionEvent;
    HalFree(Entry);
    RtlpSignalCompletion(CompletionEvent);
    RtlpDropTimerQueue(Queue);
}

static NTSTATUS RtlpCreateTimer(PRTLP_TIMER_QUEUE Queue, PRTLP_TIMER *Created, WAITORTIMERCALLBACKFUNC Function,
                                PVOID Context, ULONG Flags)
{
    TP_CALLBACK_ENVIRON Environ;
    PRTLP_TIMER Entry = HalAllocate(sizeof(*Entry), __alignof__(*Entry));
    if (Entry == NULL) {
        return STATUS_NO_MEMORY;
    }
    RtlpFormatEnviron(&Environ, Flags);
    NTSTATUS Status = TpAllocTimer(&Entry->Timer, RtlpTimerCallback, Entry, &Environ);
    if (!NT_SUCCESS(Status)) {
        HalFree(Entry);
        return Status;
    }
    Entry->Timer->Object.Destroy = RtlpDestroyTimer;
    Entry->Timer->Object.DestroyContext = Entry;
    Entry->Function = Function;
    Entry->Context = Context;
    Entry->Queue = Queue;
    PKTHREAD Thread = KiEnterLocked(&Queue->Lock);
    __atomic_fetch_add(&Queue->References, 1, __ATOMIC_RELAXED); /* relaxed: the queue is not deleted yet */
    InsertTailList(&Queue->TimerListHead, &Entry->Entry);
    KiExitLocked(&Queue->Lock, Thread);
    *Created = Entry;
    return Status;
}

static VOID RtlpSetTimer(PRTLP_TIMER Entry, ULONG DueTime, ULONG Period)
{
    LARGE_INTEGER Relative = {.QuadPart = -(LONGLONG)DueTime * 10000};
    TpSetTimer(Entry->Timer, DueTime != MAXULONG ? &Relative : NULL, Period, 0);
}

NTSTATUS RtlCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                        ULONG DueTime, ULONG Period, ULONG Flags)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_TIMER_QUEUE Queue = TimerQueueHandle != NULL ? TimerQueueHandle : &RtlpDefaultTimerQueue;
    PRTLP_TIMER Entry;
    if (Function == NULL || ((Flags & WT_EXECUTEONLYONCE) && Period != 0)) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    NTSTATUS Status = RtlpCreateTimer(Queue, &Entry, Function, Context, Flags);
    if (NT_SUCCESS(Status)) {
        *Handle = Entry; /* before the timer is set: the callback may need it */
        RtlpSetTimer(Entry, DueTime, Period);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlUpdateTimer(HANDLE TimerQueueHandle, HANDLE TimerHandle, ULONG DueTime, ULONG Period)
{
    PRTLP_TIMER Entry = TimerHandle;
    UNREFERENCED_PARAMETER(TimerQueueHandle);
    if (Entry == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    if (!TppHasTimerEnded(Entry->Timer)) {
        RtlpSetTimer(Entry, DueTime, Period);
    }
    return STATUS_SUCCESS;
}

NTSTATUS RtlDeleteTimer(HANDLE TimerQueueHandle, HANDLE TimerToCancel, HANDLE Event)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_TIMER Entry = TimerToCancel;
    PKEVENT CompletionEvent;
    BOOLEAN Wait;
    UNREFERENCED_PARAMETER(TimerQueueHandle);
    if (Entry == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    NTSTATUS Status = RtlpOpenCompletion(Event, &Wait, &CompletionEvent);
    if (NT_SUCCESS(Status)) {
        KiEnterLocked(&Entry->Queue->Lock);
        RemoveEntryList(&Entry->Entry);
        KiExitLocked(&Entry->Queue->Lock, Thread);
        Entry->CompletionEvent = CompletionEvent;
        Status = RtlpEndObject(&Entry->Timer->Object, Wait);
    }
    KiExitService(Thread);
    return Status;
}

static PRTLP_TIMER RtlpDequeueFirst(PRTLP_TIMER_QUEUE Queue)
{
    PRTLP_TIMER Entry = NULL;
    PKTHREAD Thread = KiEnterLocked(&Queue->Lock);
    if (!IsListEmpty(&Queue->TimerListHead)) {
        Entry = CONTAINING_RECORD(RemoveHeadList(&Queue->TimerListHead), RTLP_TIMER, Entry);
    }
    KiExitLocked(&Queue->Lock, Thread);
    return Entry;
}

/* Stops all timers before it waits for any. If the thread is terminated meanwhile, the waits return at once. */
static NTSTATUS RtlpEndTimers(PRTLP_TIMER_QUEUE Queue, BOOLEAN Wait)
{
    NTSTATUS Status = STATUS_SUCCESS;
    LIST_ENTRY Held;
    PRTLP_TIMER Entry;
    InitializeListHead(&Held);
    while ((Entry = RtlpDequeueFirst(Queue)) != NULL) {
        PTPP_OBJECT Object = &Entry->Timer->Object;
        TppEnterPool(Object->Pool);
        TppTryHold(Object); /* cannot fail: the object is open */
        InsertTailList(&Held, &Entry->Entry);
        if (TppClose(Object, TppProgram) && !Wait) {
            Status = STATUS_PENDING;
        }
    }
    while (!IsListEmpty(&Held)) {
        PTPP_OBJECT Object = &CONTAINING_RECORD(RemoveHeadList(&Held), RTLP_TIMER, Entry)->Timer->Object;
        if (Wait) {
            TppWaitForCallbacks(Object, FALSE);
        }
        TppDropHold(Object);
    }
    return Status;
}

NTSTATUS RtlDeleteTimerQueueEx(HANDLE TimerQueueHandle, HANDLE Event)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_TIMER_QUEUE Queue = TimerQueueHandle;
    PKEVENT CompletionEvent;
    BOOLEAN Wait;
    if (Queue == NULL) {
        return STATUS_INVALID_HANDLE;
    }
    KiEnterService(Thread);
    NTSTATUS Status = RtlpOpenCompletion(Event, &Wait, &CompletionEvent);
    if (NT_SUCCESS(Status)) {
        Queue->CompletionEvent = CompletionEvent;
        Status = RtlpEndTimers(Queue, Wait);
        RtlpDropTimerQueue(Queue);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlDeleteTimerQueue(HANDLE TimerQueueHandle)
{
    return RtlDeleteTimerQueueEx(TimerQueueHandle, NULL);
}

/*
 * Registered waits. Each references the object it waits for: the handle may be closed.
 *
 * There are three ways to wait:
 *
 *   overlapping   a wait object that is armed again when its packet is served, before the callback runs. So each signal
 *                 begins a callback, whether or not the previous one has returned.
 *   one by one    a wait object that the callback sets again when it returns: for WT_EXECUTEINWAITTHREAD, where the
 *                 thread that waits runs the callback, and for objects whose state must be queried from the host.
 *   by a thread   for a mutex, which only a thread can own. The registration has a pool of one thread. It waits for the
 *                 mutex and runs the function itself, as the owner.
 */

/*
 * Of a wait for a mutex:
 *
 *   RTLP_STOPPING   the wait was deregistered: the function is no longer called
 *   RTLP_CALLING    the function runs
 *
 * Each is set by one thread, which sees in the same operation whether the other was set before. So the function begins
 * before the wait is deregistered, and deregistering reports it, or the function does not begin.
 */
#define RTLP_STOPPING 0x1
#define RTLP_CALLING  0x2

typedef struct _RTLP_WAIT {
    PTPP_OBJECT Object; /* a wait; or, of a mutex, work whose one callback lasts until the wait is deregistered */
    WAITORTIMERCALLBACKFUNC Function;
    PVOID Context;
    PVOID Target;
    LARGE_INTEGER Timeout; /* relative; ignored if Infinite */
    BOOLEAN Infinite;
    BOOLEAN OnlyOnce;
    BOOLEAN OneByOne;
    BOOLEAN ByThread;
    volatile ULONG Phase; /* if ByThread, as the next */
    KEVENT Stop;
    PKEVENT CompletionEvent;
} RTLP_WAIT, *PRTLP_WAIT;

/* With a wait object. */

static VOID RtlpStartWait(PRTLP_WAIT Registration)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    ObReferenceObject(Registration->Target);
    TppSetWaitTarget(CONTAINING_RECORD(Registration->Object, TP_WAIT, Object), Registration->Target,
                     Registration->Infinite ? NULL : &Registration->Timeout);
    KiExitService(Thread);
}

static VOID RtlpWaitCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WAIT Wait, TP_WAIT_RESULT WaitResult)
{
    PRTLP_WAIT Registration = Context;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Wait);
    Registration->Function(Registration->Context, WaitResult == STATUS_TIMEOUT);
    if (!Registration->OnlyOnce && Registration->OneByOne) {
        RtlpStartWait(Registration);
    }
}

static NTSTATUS RtlpAllocateWait(PRTLP_WAIT Registration, PTP_CALLBACK_ENVIRON Environ)
{
    PTP_WAIT Wait;
    NTSTATUS Status = TpAllocWait(&Wait, RtlpWaitCallback, Registration, Environ);
    if (NT_SUCCESS(Status)) {
        Wait->Repeats = !Registration->OnlyOnce && !Registration->OneByOne;
        Wait->TimesOut = !Registration->Infinite;
        Wait->Interval = Registration->Timeout;
        Registration->Object = &Wait->Object;
    }
    return Status;
}

/* Waits by a thread. */

/* In a service. TRUE: call the function. A thread that already owned the mutex, because the function did not release
   it, releases the additional ownership. So does a thread that must not call the function. */
static BOOLEAN RtlpMayCall(PRTLP_WAIT Registration, PKMUTANT Mutant, NTSTATUS Status, BOOLEAN WasOwner)
{
    BOOLEAN Acquired = Status == STATUS_WAIT_1 || Status == STATUS_ABANDONED_WAIT_0 + 1;
    if (!Acquired && Status != STATUS_TIMEOUT) {
        return FALSE;
    }
    /* acq_rel, as for every change of Phase: what one side did before is visible to the other */
    ULONG Phase = __atomic_fetch_or(&Registration->Phase, RTLP_CALLING, __ATOMIC_ACQ_REL);
    BOOLEAN Stopping = (Phase & RTLP_STOPPING) != 0;
    if (Acquired && (WasOwner || Stopping)) {
        KeReleaseMutant(Mutant, 0, FALSE, FALSE);
    }
    return !Stopping;
}

/* Waits once. TRUE: call the function. */
static BOOLEAN RtlpAwaitMutex(PRTLP_WAIT Registration, PKMUTANT Mutant, BOOLEAN OnlyStop, PBOOLEAN TimedOut)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Objects[] = {&Registration->Stop, Mutant};
    PLARGE_INTEGER Timeout = Registration->Infinite || OnlyStop ? NULL : &Registration->Timeout;
    BOOLEAN WasOwner = KiOwnsMutant(&Mutant->Header, Thread);
    KiEnterService(Thread);
    ULONG Count = OnlyStop ? 1 : ARRAYSIZE(Objects);
    NTSTATUS Status = KeWaitForMultipleObjects(Count, Objects, WaitAny, UserRequest, UserMode, FALSE, Timeout, NULL);
    BOOLEAN Call = RtlpMayCall(Registration, Mutant, Status, WasOwner);
    KiExitService(Thread); /* a terminated thread ends here */
    *TimedOut = Status == STATUS_TIMEOUT;
    return Call;
}

/* The thread ends with the registration. A mutex that it owns is abandoned then, but before any other thread can learn
   that the registration has ended. */
static VOID RtlpThreadCallback(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WORK Work)
{
    PRTLP_WAIT Registration = Context;
    PKTHREAD Thread = KiCurrentThread();
    PKMUTANT Mutant = ObpDispatcherObject(Registration->Target);
    BOOLEAN Called = FALSE;
    BOOLEAN TimedOut;
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Work);
    while (!(__atomic_load_n(&Registration->Phase, __ATOMIC_ACQUIRE) & RTLP_STOPPING)) {
        if (RtlpAwaitMutex(Registration, Mutant, Called && Registration->OnlyOnce, &TimedOut)) {
            Registration->Function(Registration->Context, TimedOut);
            __atomic_fetch_and(&Registration->Phase, ~RTLP_CALLING, __ATOMIC_ACQ_REL);
            Called = TRUE;
        }
    }
    KiEnterService(Thread);
    if (KiOwnsMutant(&Mutant->Header, Thread)) {
        KeReleaseMutant(Mutant, 0, TRUE, FALSE);
    }
    KiExitService(Thread);
}

static NTSTATUS RtlpAllocateThread(PRTLP_WAIT Registration, PTP_CALLBACK_ENVIRON Environ)
{
    PTP_POOL Pool;
    PTP_WORK Work;
    NTSTATUS Status = TpAllocPool(&Pool, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    TpSetPoolMaxThreads(Pool, 1);
    Environ->Pool = Pool;
    KeInitializeEvent(&Registration->Stop, NotificationEvent, FALSE);
    Status = TpAllocWork(&Work, RtlpThreadCallback, Registration, Environ);
    if (NT_SUCCESS(Status)) {
        Registration->Object = &Work->Object;
    }
    TpReleasePool(Pool); /* it lives as long as the work object */
    return Status;
}

static NTSTATUS RtlpEndThreadWait(PRTLP_WAIT Registration, BOOLEAN Wait)
{
    ULONG Phase = __atomic_fetch_or(&Registration->Phase, RTLP_STOPPING, __ATOMIC_ACQ_REL);
    KeSetEvent(&Registration->Stop, 0, FALSE);
    NTSTATUS Status = RtlpEndObject(Registration->Object, Wait);
    return Phase & RTLP_CALLING ? Status : STATUS_SUCCESS;
}

/* Both. */

static VOID RtlpDestroyWait(PVOID Context)
{
    PRTLP_WAIT Registration = Context;
    PKEVENT CompletionEvent = Registration->CompletionEvent;
    ObDereferenceObject(Registration->Target);
    HalFree(Registration);
    RtlpSignalCompletion(CompletionEvent);
}

/* Takes over the reference to Target, if it succeeds. */
static NTSTATUS RtlpCreateWait(PRTLP_WAIT Description, ULONG Flags, PRTLP_WAIT *Created)
{
    TP_CALLBACK_ENVIRON Environ;
    PRTLP_WAIT Registration = HalAllocate(sizeof(*Registration), __alignof__(*Registration));
    if (Registration == NULL) {
        return STATUS_NO_MEMORY;
    }
    *Registration = *Description;
    RtlpFormatEnviron(&Environ, Flags);
    NTSTATUS Status =
        Registration->ByThread ? RtlpAllocateThread(Registration, &Environ) : RtlpAllocateWait(Registration, &Environ);
    if (!NT_SUCCESS(Status)) {
        HalFree(Registration);
        return Status;
    }
    Registration->Object->Destroy = RtlpDestroyWait;
    Registration->Object->DestroyContext = Registration;
    *Created = Registration;
    return Status;
}

NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                         ULONG Milliseconds, ULONG Flags)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_WAIT Registration;
    RTLP_WAIT Description = {
        .Function = Function,
        .Context = Context,
        .Timeout.QuadPart = -(LONGLONG)Milliseconds * 10000,
        .Infinite = Milliseconds == MAXULONG,
        .OnlyOnce = (Flags & WT_EXECUTEONLYONCE) != 0,
        .OneByOne = (Flags & WT_EXECUTEINWAITTHREAD) != 0,
    };
    if (Function == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, UserMode, &Description.Target, NULL);
    if (NT_SUCCESS(Status)) {
        Description.ByThread = TppIsMutex(Description.Target);
        Description.OneByOne |= ObpHeaderOf(Description.Target)->Type->WaitProcedure != NULL;
        Status = RtlpCreateWait(&Description, Flags, &Registration);
        if (!NT_SUCCESS(Status)) {
            ObDereferenceObject(Description.Target);
        }
    }
    if (NT_SUCCESS(Status)) {
        *WaitHandle = Registration; /* before the wait is set: the callback may need it */
        if (Registration->ByThread) {
            TpPostWork(CONTAINING_RECORD(Registration->Object, TP_WORK, Object));
        } else {
            RtlpStartWait(Registration);
        }
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event)
{
    PKTHREAD Thread = KiCurrentThread();
    PRTLP_WAIT Registration = WaitHandle;
    PKEVENT CompletionEvent;
    BOOLEAN Wait;
    if (Registration == NULL) {
        return STATUS_INVALID_HANDLE;
    }
    KiEnterService(Thread);
    NTSTATUS Status = RtlpOpenCompletion(Event, &Wait, &CompletionEvent);
    if (NT_SUCCESS(Status)) {
        Registration->CompletionEvent = CompletionEvent;
        Status =
            Registration->ByThread ? RtlpEndThreadWait(Registration, Wait) : RtlpEndObject(Registration->Object, Wait);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS RtlDeregisterWait(HANDLE WaitHandle)
{
    return RtlDeregisterWaitEx(WaitHandle, NULL);
}
