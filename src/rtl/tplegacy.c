/*
 * tplegacy.c: work items, timer queues, and what registered waits (tpregister.c) share with them. They are objects of
 * the pool like any other, with a structure of their own for the older interface.
 *
 * Ending a timer or a wait cancels no callback: a callback whose timer has expired, or whose object was consumed, still
 * occurs. So no expiration and no signal is lost.
 */
#include "tpp.h"

#define RTLP_WAIT_FOR_CALLBACKS ((HANDLE)(LONG_PTR)-1)

NTSTATUS RtlpOpenCompletion(HANDLE Event, PBOOLEAN Wait, PKEVENT *Referenced)
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

VOID RtlpSignalCompletion(PKEVENT Event)
{
    if (Event != NULL) {
        KeSetEvent(Event, EVENT_INCREMENT, FALSE);
        ObDereferenceObject(Event);
    }
}

VOID RtlpFormatEnviron(PTP_CALLBACK_ENVIRON Environ, ULONG Flags)
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

NTSTATUS RtlpEndObject(PTPP_OBJECT Object, BOOLEAN Wait)
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
