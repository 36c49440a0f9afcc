/*
 * hostinterrupt.c: the host interrupts a thread because something is to be done on it at once.
 *
 * Whoever wants a thread to stop, for a while or for good, says so in its wait status register and then interrupts it.
 * An interrupt is a signal with a handler, and each of them is delivered: somebody who suspends and resumes a thread
 * without end could keep it in the handler for good. So there is one on its way at most:
 *
 *     InterruptState   None        nobody has sent one, or it has been served
 *                      Wanted      one is on its way, or the thread looks and has to look again
 *                      Looking     the thread looks
 *
 * 1. Who makes it Wanted from None sends. If that fails it becomes None again, and the thread finds out when it next
 *    calls in.
 * 2. The thread makes it Looking, looks, and makes it None if it is still Looking. Otherwise it looks again.
 * 3. If the thread must not be stopped now (hal.h, HalInterruptLater) the state stays as it is: another interrupt is on
 *    its way.
 * 4. An interrupt that was sent may be kept from the thread, for as long as it blocks the host's signal, or for good,
 *    if somebody else takes the signal. So a requester that promises something about the thread asks whether it arrives
 *    (KiInterruptArrives), and sends again if it does not. One that comes too often finds nothing to do.
 * 5. InterruptsServed grows when the thread begins to look. A requester reads it after it has made the state Wanted. If
 *    it is another number later, the thread looks after the request: it had not begun to look when the state changed,
 *    or it finds Wanted when it wants to go, and looks again.
 * 6. A signal that is pending and not blocked is taken before the thread runs on, by its handler. But a thread that
 *    waits for signals (sigwait) takes it as well, without one, and lets no one see that it blocks it otherwise. Such a
 *    thread sleeps when the signal is sent, unless something else has just woken it. So for one that slept only what
 *    was served counts, or, in the end, that it has not come to run yet.
 * Processors interrupt their owners without this (irql.c): they hold no reference, it may be another thread by then.
 * They repeat their requests until the owner has served them, or it comes by itself to where it does.
 */
#include "irql.h"
#include "wait.h"

#define KI_INTERRUPT_CYCLES 20000

typedef enum _KI_INTERRUPT_STATE {
    KiInterruptNone,
    KiInterruptWanted,
    KiInterruptLooking
} KI_INTERRUPT_STATE;

/* relaxed: nothing is handed over */
static VOID KiForgetInterrupt(PKTHREAD Thread)
{
    ULONG Wanted = KiInterruptWanted;
    __atomic_compare_exchange_n(&Thread->InterruptState, &Wanted, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static ULONG KiReadServed(PKTHREAD Thread)
{
    /* acquire: comes after the exchange of the state in KiInterruptThread, and the number after what made it grow */
    return __atomic_load_n(&Thread->InterruptsServed, __ATOMIC_ACQUIRE);
}

NTSTATUS KiInterruptThread(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    /* acquire: pairs with the release store of the id in KiStartThread; one that has not started looks by itself */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    NTSTATUS Status = STATUS_SUCCESS;
    ULONG State;
    if (ThreadId == 0 || Thread == HalCurrentThread) {
        return STATUS_SUCCESS;
    }
    if (Sent != NULL) {
        Sent->Slept = HalIsThreadAsleep(ThreadId);
    }
    /* acq_rel: pairs with KiServeInterrupt; what was said before is seen by who finds this */
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
    return Status == STATUS_INVALID_CID ? STATUS_SUCCESS : Status; /* the thread has ended, it does nothing any more */
}

NTSTATUS KiInterruptThreadAgain(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent)
{
    KiForgetInterrupt(Thread);
    return KiInterruptThread(Thread, Sent);
}

/* A thread that runs on another processor is there in less time than it takes to ask the host. */
static BOOLEAN KiIsSoonServed(PKTHREAD Thread, ULONG Served)
{
    ULONG Left = KiMaySpin(KiCurrentThread()) ? HalSpinsForCycles(KI_INTERRUPT_CYCLES) : 0;
    while (Left != 0 && KiReadServed(Thread) == Served) {
        Left -= 1;
        HalPause();
    }
    return KiReadServed(Thread) != Served;
}

BOOLEAN KiInterruptArrives(PKTHREAD Thread, const KI_INTERRUPT_SENT *Sent, BOOLEAN Finally)
{
    /* relaxed: the id of a thread that has been started stays */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED);
    return ThreadId == 0 || KiIsSoonServed(Thread, Sent->Served) ||
           ((Finally || !Sent->Slept) && HalIsInterruptOnItsWay(ThreadId)) || KiReadServed(Thread) != Sent->Served;
}

/* A suspension is one of the kernel APCs. */
static BOOLEAN KiIsStopPending(PKTHREAD Thread)
{
    /* relaxed: read after the state, see KiServeInterrupt */
    return (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) != 0;
}

static VOID KiStopInterrupted(PKTHREAD Thread)
{
    KiExitIfRequested(Thread);
    KiSuspendInterrupt(Thread);
    KiExitIfRequested(Thread);
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
        if (InsideLibc && KiIsStopPending(Thread) && HalInterruptLater()) {
            return;
        }
        KiStopInterrupted(Thread);
        State = KiInterruptLooking;
        /* relaxed: nothing is handed over; on failure the exchange above acquires */
    } while (!__atomic_compare_exchange_n(&Thread->InterruptState, &State, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* What runs here must not raise into the frames of the code that it interrupted: the host's interrupt would not end. */
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

/* The interrupt, and the timer of one that was put off, have stayed with the parent. */
VOID KiInterruptForkChild(PKTHREAD Survivor)
{
    __atomic_store_n(&Survivor->InterruptState, KiInterruptNone, __ATOMIC_RELAXED);
}
