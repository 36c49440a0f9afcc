/*
 * hostinterrupt.c: interrupts a running thread through the host.
 *
 * To stop a thread, temporarily or permanently, a requester sets bits in its wait status register and then interrupts
 * it. An interrupt is a signal with a handler, and each one is delivered: suspending and resuming a thread without a
 * pause could keep it in the handler forever. So at most one is in flight:
 *
 *     InterruptState   None        none was sent, or it has been served
 *                      Wanted      one is in flight, or the thread is checking and has to check again
 *                      Looking     the thread is checking
 *
 * 1. The requester that changes None to Wanted sends. If that fails the state becomes None again, and the thread finds
 *    the request when it next calls in.
 * 2. The thread sets Looking, checks its register, and changes Looking to None. If that fails it checks again.
 * 3. Inside the C library the thread may hold the heap's lock, so it avoids stopping there (hal/insidelibc.c). An
 *    interrupt that finds a request there is deferred: the state stays, and another interrupt follows. An interrupt
 *    that finds none must not stop the thread either: a request may arrive a moment later. It ends as in 2, and the
 *    thread checks again if a request arrived. Deferred interrupts come from a timer of the host, or, where the host
 *    refuses timers, from a thread of the library, the repeater, which requesters start beforehand.
 * 4. An interrupt may not reach the thread: while the thread blocks the host's signal, or ever, if something else takes
 *    the signal. So a requester that depends on the result asks whether the interrupt arrives (KiInterruptArrives), and
 *    sends again if it does not. A redundant interrupt finds nothing to do.
 * 5. InterruptsServed is incremented when the thread starts to check. A requester reads it after it has set Wanted. If
 *    the number changes later, the thread has checked after the request: either it had not started when the state
 *    changed, or it finds Wanted at the end and checks again.
 * 6. The handler takes a pending, unblocked signal before the thread runs any further. But a thread in sigwait takes it
 * without the handler, and the host does not show that the thread otherwise blocks the signal. Such a thread sleeps
 * when the signal is sent, unless something else has just woken it. So for a sleeping thread only InterruptsServed
 * counts, or, as a last resort, that it has not run yet. Processors interrupt their owners without this (irql.c): they
 * hold no reference, and the owner may have changed meanwhile. They repeat their requests until an owner has served
 * them.
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
    /* acquire: pairs with the release of the id in KiStartThread; a thread that has not started checks by itself */
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

/* A thread that runs on another processor takes the interrupt faster than the host answers a query. */
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

/* FALSE: no thread wanted one. An interrupt that cannot be sent now is sent in the next round. The thread may have
   ended or its slot may be recycled: then the interrupted thread finds nothing to do. */
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

/* The interrupt, and the timer of a deferred one, stayed in the parent. */
VOID KiInterruptForkChild(PKTHREAD Survivor)
{
    __atomic_store_n(&Survivor->InterruptState, KiInterruptNone, __ATOMIC_RELAXED);
    __atomic_store_n(&Survivor->WantsInterruptAgain, FALSE, __ATOMIC_RELAXED);
}
