/*
 * hostinterrupt.c: the host interrupts a thread that has to do something at once.
 *
 * To stop a thread, for a while or for good, a requester sets bits in its wait status register and then interrupts it.
 * An interrupt is a signal with a handler, and each one is delivered: suspending and resuming a thread without a pause
 * could keep it in the handler forever. So at most one is on its way:
 *
 *     InterruptState   None        none was sent, or it has been served
 *                      Wanted      one is on its way, or the thread is looking and has to look again
 *                      Looking     the thread is looking
 *
 * 1. The requester that changes None to Wanted sends. If that fails the state becomes None again, and the thread finds
 *    out when it next calls in.
 * 2. The thread sets Looking, looks, and changes Looking to None. If that fails it looks again.
 * 3. Inside the C library the thread may hold the heap's lock, so it does not stop there if that can be helped
 *    (hal/insidelibc.c). An interrupt that finds a request there is put off: the state stays, and another interrupt comes
 *    later. An interrupt that finds none must not stop the thread either: a request may come a moment later. It ends as
 *    in 2, and the thread looks again if one came. Interrupts come later from a timer of the host, or, where the host
 *    refuses timers, from a thread of the library, the repeater, which requesters start beforehand.
 * 4. An interrupt may be kept from the thread: for as long as the thread blocks the host's signal, or for good if
 *    something else takes the signal. So a requester that promises something about the thread asks whether it arrives
 *    (KiInterruptArrives), and sends again if it does not. A redundant interrupt finds nothing to do.
 * 5. InterruptsServed is incremented when the thread starts to look. A requester reads it after it has set Wanted. If
 *    the number has changed later, the thread has looked after the request: either it had not started when the state
 *    changed, or it finds Wanted when it is done, and looks again.
 * 6. A pending signal that is not blocked is taken by its handler before the thread runs on. But a thread in sigwait
 *    takes it without the handler, and the host does not show that it blocks the signal otherwise. Such a thread sleeps
 *    when the signal is sent, unless something else has just woken it. So for a thread that slept only InterruptsServed
 *    counts, or, in the end, that it has not run yet.
 * Processors interrupt their owners without this (irql.c): they hold no reference, and the owner may have changed by
 * then. They repeat their requests until an owner has served them.
 */
#include "ownthread.h"
#include "park.h"
#include "wait.h"

#define KI_TIME_BEFORE_SIGNAL_REPEAT 1000ULL /* 100 us */

typedef enum _KI_INTERRUPT_STATE {
    KiInterruptNone,
    KiInterruptWanted,
    KiInterruptLooking
} KI_INTERRUPT_STATE;

/* relaxed: publishes nothing */
static VOID KiForgetInterrupt(PKTHREAD Thread)
{
    ULONG Wanted = KiInterruptWanted;
    __atomic_compare_exchange_n(&Thread->InterruptState, &Wanted, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static ULONG KiReadServed(PKTHREAD Thread)
{
    /* acquire: read after the exchange in KiInterruptThread; what the thread did before it counted is visible */
    return __atomic_load_n(&Thread->InterruptsServed, __ATOMIC_ACQUIRE);
}

/* Rule 1. */
static NTSTATUS KiWantInterrupt(PKTHREAD Thread, ULONG ThreadId, PULONG Served)
{
    NTSTATUS Status = STATUS_SUCCESS;
    /* acq_rel: pairs with the exchange in KiServeInterrupt; the thread that finds Wanted sees the requester's bits */
    ULONG State = __atomic_exchange_n(&Thread->InterruptState, KiInterruptWanted, __ATOMIC_ACQ_REL);
    *Served = KiReadServed(Thread);
    if (State == KiInterruptNone) {
        Status = HalInterruptThread(ThreadId);
    }
    if (!NT_SUCCESS(Status)) {
        KiForgetInterrupt(Thread);
    }
    return Status == STATUS_INVALID_CID ? STATUS_SUCCESS : Status; /* the thread has ended: nothing to stop */
}

NTSTATUS KiInterruptThread(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    /* acquire: pairs with the release of the id in KiStartThread; a thread that has not started looks by itself */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    ULONG Unused;
    if (ThreadId == 0 || Thread == HalCurrentThread) {
        return STATUS_SUCCESS;
    }
    if (Sent != NULL) {
        Sent->Slept = HalIsThreadAsleep(ThreadId);
    }
    return KiWantInterrupt(Thread, ThreadId, Sent != NULL ? &Sent->Served : &Unused);
}

/* Best effort: if it cannot be sent, the thread finds the request when it next calls in. */
VOID KiInterruptCurrentThread(PKTHREAD Thread)
{
    ULONG Served;
    KiForgetInterrupt(Thread);
    KiWantInterrupt(Thread, HalCurrentThreadId(), &Served);
}

NTSTATUS KiInterruptThreadAgain(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    KiForgetInterrupt(Thread);
    return KiInterruptThread(Thread, Sent);
}

typedef struct _KI_AWAITED_SERVICE {
    PKTHREAD Thread;
    ULONG Served;
} KI_AWAITED_SERVICE, *PKI_AWAITED_SERVICE;

static inline BOOLEAN KiIsInterruptServed(PVOID Awaited)
{
    return KiReadServed(((PKI_AWAITED_SERVICE)Awaited)->Thread) != ((PKI_AWAITED_SERVICE)Awaited)->Served;
}

/* A thread that runs on another processor takes the interrupt in less time than it takes to ask the host. */
BOOLEAN KiInterruptArrives(PKTHREAD Thread, const KI_INTERRUPT_SENT *Sent, BOOLEAN Finally)
{
    KI_AWAITED_SERVICE Awaited = {Thread, Sent->Served};
    /* relaxed: a started thread keeps its id */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED);
    return ThreadId == 0 || KiIsInterruptServed(&Awaited) ||
           KiParkUntil(KiCurrentThread(), KiParkForInterrupt, KiIsInterruptServed, &Awaited) ||
           ((Finally || !Sent->Slept) && HalIsInterruptOnItsWay(ThreadId)) || KiIsInterruptServed(&Awaited);
}

/* The repeater. */

static VOID KiRepeater(PVOID Context);

static const KI_OWN_KIND KiRepeaterKind = {
    .Name = "interlock-again", .Routine = KiRepeater, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD KiRepeaterThread = {.Kind = &KiRepeaterKind};
static volatile ULONG KiRepeatsWanted;

/* Best effort: without the repeater the thread stops where it is. */
VOID KiEnsureInterruptsRepeat(VOID)
{
    if (!HalCanInterruptLater()) {
        KiEnsureOwnThread(&KiRepeaterThread);
    }
}

/* On the interrupted thread. FALSE: there is no repeater. */
static BOOLEAN KiRequestRepeat(PKTHREAD Thread)
{
    if (!KiHasOwnThread(&KiRepeaterThread)) {
        return FALSE;
    }
    __atomic_store_n(&Thread->WantsInterruptAgain, TRUE, __ATOMIC_RELAXED);
    /* release: a repeater that sees the new number also sees the flag */
    __atomic_fetch_add(&KiRepeatsWanted, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiRepeatsWanted, 1);
    return TRUE;
}

/* FALSE: no thread wanted one. An interrupt that cannot be sent now is sent in the next round. The thread may have ended
   or its slot may be recycled: then a thread is interrupted that finds nothing to do. */
static BOOLEAN KiRepeatInterrupts(VOID)
{
    BOOLEAN Found = FALSE;
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        /* relaxed: the caller has acquired */
        if (__atomic_load_n(&Thread->WantsInterruptAgain, __ATOMIC_RELAXED)) {
            __atomic_store_n(&Thread->WantsInterruptAgain, FALSE, __ATOMIC_RELAXED);
            Found = TRUE;
            if (HalInterruptThread(__atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED)) == STATUS_INSUFFICIENT_RESOURCES) {
                __atomic_store_n(&Thread->WantsInterruptAgain, TRUE, __ATOMIC_RELAXED);
            }
        }
    }
    return Found;
}

static VOID KiRepeater(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    __atomic_store_n(&KiCurrentThread()->Foreign, FALSE, __ATOMIC_RELAXED);
    for (;;) {
        /* acquire: read before the flags, so a flag that the walk misses changes the number */
        ULONG Seen = __atomic_load_n(&KiRepeatsWanted, __ATOMIC_ACQUIRE);
        if (!KiRepeatInterrupts()) {
            KiSleepWhile(&KiRepeatsWanted, Seen);
        }
        KiSleepUntil(HalDispatch.QueryInterruptTime() + KI_TIME_BEFORE_SIGNAL_REPEAT);
    }
}

/* Serving, on the interrupted thread. */

typedef enum _KI_STOP {
    KiStopNow,
    KiStopLater,
    KiNothingToStopFor
} KI_STOP;

/* Rule 3. A suspension is one of the kernel APCs. */
static KI_STOP KiWhenToStop(PKTHREAD Thread, BOOLEAN InsideLibc)
{
    if (!InsideLibc) {
        return KiStopNow;
    }
    /* relaxed: read after the exchange in KiServeInterrupt */
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) == 0) {
        return KiNothingToStopFor;
    }
    switch (HalInterruptLater()) {
    case HalLaterSet:
        return KiStopLater;
    case HalLaterRefused:
        return KiRequestRepeat(Thread) ? KiStopLater : KiStopNow;
    default:
        return KiStopNow;
    }
}

static VOID KiServeInterrupt(PKTHREAD Thread, BOOLEAN InsideLibc)
{
    ULONG State;
    KI_STOP Stop;
    do {
        /* acq_rel: pairs with KiInterruptThread */
        __atomic_exchange_n(&Thread->InterruptState, KiInterruptLooking, __ATOMIC_ACQ_REL);
        /* release: not before the exchange; see 5 above */
        __atomic_fetch_add(&Thread->InterruptsServed, 1, __ATOMIC_RELEASE);
        KiShowRegisters(Thread);
        KiPollInterrupts(Thread);
        Stop = KiWhenToStop(Thread, InsideLibc);
        if (Stop == KiStopLater) {
            return;
        }
        if (Stop == KiStopNow) {
            KiExitIfRequested(Thread);
            KiSuspendInterrupt(Thread);
            KiExitIfRequested(Thread);
        }
        State = KiInterruptLooking;
        /* relaxed: publishes nothing; after a failure the exchange above acquires */
    } while (!__atomic_compare_exchange_n(&Thread->InterruptState, &State, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* What runs here must not raise into the frames of the interrupted code: the host's handler would never return. */
VOID KiHostInterrupt(BOOLEAN InsideLibc)
{
    PKTHREAD Thread = HalCurrentThread;
    PVOID ExceptionList;
    if (Thread == NULL) {
        return;
    }
    ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = NULL;
    Thread->HostInterrupts += 1;
    KiServeInterrupt(Thread, InsideLibc);
    Thread->HostInterrupts -= 1;
    Thread->ExceptionList = ExceptionList;
}

/* The interrupt, and the timer of one that was put off, stayed in the parent. */
VOID KiInterruptForkChild(PKTHREAD Survivor)
{
    __atomic_store_n(&Survivor->InterruptState, KiInterruptNone, __ATOMIC_RELAXED);
    __atomic_store_n(&Survivor->WantsInterruptAgain, FALSE, __ATOMIC_RELAXED);
}
