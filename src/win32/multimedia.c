/*
 * multimedia.c: the timers of winmm. "The multimedia timer runs in its own thread": they are timers of the thread pool,
 * in a pool of one thread.
 *
 * A timer event is listed by its identifier until it is killed or, if it occurs once, its callback has returned. The
 * thread that removes it from the list closes the pool's timer, and the event is freed with the timer.
 *
 * Killed: the event no longer occurs. With TIME_KILL_SYNCHRONOUS the thread that kills it also waits for a callback
 * that runs, except on the timers' own thread: it would wait for itself, and no other callback runs there.
 */
#include <interlock/win32/base.h>

#include "../rtl/tpp.h"
#include "base.h"

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

/* The resolution is that of the host, whatever the program requests. */
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

static BOOLEAN BaseIsTimerEventThread(VOID)
{
    PTPP_WORKER Worker = RtlpCurrentTeb()->ThreadPoolData;
    return Worker != NULL && Worker->Pool == &BasepTimerEventPool;
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
        if ((TimerEvent->Flags & TIME_KILL_SYNCHRONOUS) && !BaseIsTimerEventThread()) {
            TpWaitForTimer(Timer, TRUE);
        }
        TpReleaseTimer(Timer);
    }
    KiExitService(Thread);
    return TimerEvent != NULL ? TIMERR_NOERROR : MMSYSERR_INVALPARAM;
}
