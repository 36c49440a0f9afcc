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
 * 3. If the thread must not be stopped now (hal.h, HalInterruptLater) the state stays: another interrupt is on its way.
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
#include "park.h"
#include "wait.h"

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

NTSTATUS KiInterruptThread(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    /* acquire: pairs with the release of the id in KiStartThread; a thread that has not started looks by itself */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    NTSTATUS Status = STATUS_SUCCESS;
    ULONG State;
    if (ThreadId == 0 || Thread == HalCurrentThread) {
        return STATUS_SUCCESS;
    }
    if (Sent != NULL) {
        Sent->Slept = HalIsThreadAsleep(ThreadId);
    }
    /* acq_rel: pairs with the exchange in KiServeInterrupt; the thread that finds Wanted sees the requester's bits */
    State = __atomic_exchange_n(&Thread->InterruptState, KiInterruptWanted, __ATOMIC_ACQ_REL);
    if (Sent != NULL) {
        Sent->Served = KiReadServed(Thread);
    }
    if (State == KiInterruptNone) {
        Status = HalInterruptThread(ThreadId);
    }
    if (!NT_SUCCESS(Status)) {
        KiForgetInterrupt(Thread);
    }
    return Status == STATUS_INVALID_CID ? STATUS_SUCCESS : Status; /* the thread has ended: nothing to stop */
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

static VOID KiServeInterrupt(PKTHREAD Thread, BOOLEAN InsideLibc)
{
    ULONG State;
    do {
        /* acq_rel: pairs with KiInterruptThread */
        __atomic_exchange_n(&Thread->InterruptState, KiInterruptLooking, __ATOMIC_ACQ_REL);
        /* release: not before the exchange; see 5 above */
        __atomic_fetch_add(&Thread->InterruptsServed, 1, __ATOMIC_RELEASE);
        KiPollInterrupts(Thread);
        /* A suspension is one of the kernel APCs. relaxed: read after the exchange */
        if (InsideLibc &&
            (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) != 0 &&
            HalInterruptLater()) {
            return;
        }
        KiExitIfRequested(Thread);
        KiSuspendInterrupt(Thread);
        KiExitIfRequested(Thread);
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
}
