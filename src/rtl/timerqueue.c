/*
 * timerqueue.c: timer queues. A timer is a timer object of the pool. A queue is a list of timers, for deleting them
 * all, and lives until it has been deleted and the last of its timers is gone.
 */
#include "tplegacy.h"

typedef struct _RTLP_TIMER_QUEUE {
    volatile LONG References;
    KI_LOCK Lock;
    LIST_ENTRY TimerListHead;
    PKEVENT CompletionEvent;
} RTLP_TIMER_QUEUE, *PRTLP_TIMER_QUEUE;

typedef struct _RTLP_TIMER {
    LIST_ENTRY Entry; /* in its queue, under the queue's lock; then with whoever deletes it */
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

static PRTLP_TIMER_QUEUE RtlpQueueOf(HANDLE TimerQueueHandle)
{
    return TimerQueueHandle != NULL ? TimerQueueHandle : &RtlpDefaultTimerQueue;
}

static VOID RtlpDropTimerQueue(PRTLP_TIMER_QUEUE Queue)
{
    /* acq_rel: the last one comes after all the others */
    if (__atomic_sub_fetch(&Queue->References, 1, __ATOMIC_ACQ_REL) == 0) {
        PKEVENT CompletionEvent = Queue->CompletionEvent;
        HalFree(Queue);
        RtlpSignalCompletion(CompletionEvent);
    }
}

static NTSTATUS RtlpCreateTimerQueue(PHANDLE TimerQueueHandle)
{
    PRTLP_TIMER_QUEUE Queue = HalAllocate(sizeof(*Queue), __alignof__(*Queue));
    if (Queue == NULL) {
        return STATUS_NO_MEMORY;
    }
    Queue->References = 1;
    InitializeListHead(&Queue->TimerListHead);
    *TimerQueueHandle = Queue;
    return STATUS_SUCCESS;
}

NTSTATUS RtlCreateTimerQueue(PHANDLE TimerQueueHandle)
{
    return NTP_SERVICE(RtlpCreateTimerQueue(TimerQueueHandle));
}

/* Timers. */

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

static NTSTATUS RtlpAllocateTimer(WAITORTIMERCALLBACKFUNC Function, PVOID Context, ULONG Flags, PRTLP_TIMER *Created)
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
    *Created = Entry;
    return Status;
}

static VOID RtlpEnqueueTimer(PRTLP_TIMER Entry, PRTLP_TIMER_QUEUE Queue)
{
    Entry->Queue = Queue;
    PKTHREAD Thread = KiEnterLocked(&Queue->Lock);
    __atomic_fetch_add(&Queue->References, 1, __ATOMIC_RELAXED); /* relaxed: the queue is not deleted yet */
    InsertTailList(&Queue->TimerListHead, &Entry->Entry);
    KiExitLocked(&Queue->Lock, Thread);
}

static VOID RtlpSetTimer(PRTLP_TIMER Entry, ULONG DueTime, ULONG Period)
{
    LARGE_INTEGER Relative = {.QuadPart = -(LONGLONG)DueTime * 10000};
    TpSetTimer(Entry->Timer, DueTime != MAXULONG ? &Relative : NULL, Period, 0);
}

static NTSTATUS RtlpCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function,
                                PVOID Context, ULONG DueTime, ULONG Period, ULONG Flags)
{
    PRTLP_TIMER Entry;
    NTSTATUS Status = RtlpAllocateTimer(Function, Context, Flags, &Entry);
    if (NT_SUCCESS(Status)) {
        RtlpEnqueueTimer(Entry, RtlpQueueOf(TimerQueueHandle));
        *Handle = Entry; /* the callback may need it */
        RtlpSetTimer(Entry, DueTime, Period);
    }
    return Status;
}

NTSTATUS RtlCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                        ULONG DueTime, ULONG Period, ULONG Flags)
{
    if (Function == NULL || ((Flags & WT_EXECUTEONLYONCE) && Period != 0)) {
        return STATUS_INVALID_PARAMETER;
    }
    return NTP_SERVICE(RtlpCreateTimer(TimerQueueHandle, Handle, Function, Context, DueTime, Period, Flags));
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

static VOID RtlpDequeueTimer(PRTLP_TIMER Entry)
{
    PKTHREAD Thread = KiEnterLocked(&Entry->Queue->Lock);
    RemoveEntryList(&Entry->Entry);
    KiExitLocked(&Entry->Queue->Lock, Thread);
}

static NTSTATUS RtlpDeleteTimer(PRTLP_TIMER Entry, HANDLE Event)
{
    RTLP_COMPLETION Completion;
    NTSTATUS Status = RtlpOpenCompletion(Event, &Completion);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    RtlpDequeueTimer(Entry);
    Entry->CompletionEvent = Completion.Event;
    return RtlpEndObject(&Entry->Timer->Object, Completion.Wait);
}

NTSTATUS RtlDeleteTimer(HANDLE TimerQueueHandle, HANDLE TimerToCancel, HANDLE Event)
{
    UNREFERENCED_PARAMETER(TimerQueueHandle);
    return TimerToCancel != NULL ? NTP_SERVICE(RtlpDeleteTimer(TimerToCancel, Event)) : STATUS_INVALID_PARAMETER;
}

/* Queues. */

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

/* All timers stop before any is waited for. If somebody ends the thread meanwhile, the waits are over at once. */
static NTSTATUS RtlpEndTimers(PRTLP_TIMER_QUEUE Queue, BOOLEAN Wait)
{
    NTSTATUS Status = STATUS_SUCCESS;
    LIST_ENTRY Held;
    PRTLP_TIMER Entry;
    ULONG Cancelled;
    InitializeListHead(&Held);
    while ((Entry = RtlpDequeueFirst(Queue)) != NULL) {
        PTPP_OBJECT Object = &Entry->Timer->Object;
        TppEnterPool(Object->Pool);
        TppTryHold(Object); /* it was open until now */
        InsertTailList(&Held, &Entry->Entry);
        if (TppCancelAndClose(Object, &Cancelled) && !Wait) {
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

static NTSTATUS RtlpDeleteTimerQueue(PRTLP_TIMER_QUEUE Queue, HANDLE Event)
{
    RTLP_COMPLETION Completion;
    NTSTATUS Status = RtlpOpenCompletion(Event, &Completion);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Queue->CompletionEvent = Completion.Event;
    Status = RtlpEndTimers(Queue, Completion.Wait);
    RtlpDropTimerQueue(Queue);
    return Status;
}

NTSTATUS RtlDeleteTimerQueueEx(HANDLE TimerQueueHandle, HANDLE Event)
{
    return TimerQueueHandle != NULL ? NTP_SERVICE(RtlpDeleteTimerQueue(TimerQueueHandle, Event))
                                    : STATUS_INVALID_HANDLE;
}

NTSTATUS RtlDeleteTimerQueue(HANDLE TimerQueueHandle)
{
    return RtlDeleteTimerQueueEx(TimerQueueHandle, NULL);
}
