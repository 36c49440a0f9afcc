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
 * Processors interrupt their owners without this (irql.c): they hold no reference, it may be another thread by then.
 */
#include "irql.h"
#include "wait.h"

typedef enum _KI_INTERRUPT_STATE {
    KiInterruptNone,
    KiInterruptWanted,
    KiInterruptLooking
} KI_INTERRUPT_STATE;

VOID KiInterruptThread(PKTHREAD Thread)
{
    /* acquire: pairs with the release store of the id in KiStartThread; one that has not started looks by itself */
    ULONG ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    ULONG Wanted = KiInterruptWanted;
    if (ThreadId == 0 || Thread == HalCurrentThread) {
        return;
    }
    /* acq_rel: pairs with KiServeInterrupt; what was said before is seen by who finds this */
    if (__atomic_exchange_n(&Thread->InterruptState, KiInterruptWanted, __ATOMIC_ACQ_REL) == KiInterruptNone &&
        !HalInterruptThread(ThreadId)) {
        __atomic_compare_exchange_n(&Thread->InterruptState, &Wanted, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
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

static VOID KiServeInterrupt(PKTHREAD Thread, BOOLEAN InLibrary)
{
    ULONG State;
    do {
        /* acq_rel: pairs with KiInterruptThread */
        __atomic_exchange_n(&Thread->InterruptState, KiInterruptLooking, __ATOMIC_ACQ_REL);
        KiPollInterrupts(Thread);
        if (InLibrary && KiIsStopPending(Thread) && HalInterruptLater()) {
            return;
        }
        KiStopInterrupted(Thread);
        State = KiInterruptLooking;
        /* relaxed: nothing is handed over; on failure the exchange above acquires */
    } while (!__atomic_compare_exchange_n(&Thread->InterruptState, &State, KiInterruptNone, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* What runs here must not raise into the frames of the code that it interrupted: the host's interrupt would not end. */
VOID KiHostInterrupt(BOOLEAN InLibrary)
{
    PKTHREAD Thread = HalCurrentThread;
    PVOID ExceptionList;
    if (Thread == NULL) {
        return;
    }
    ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = NULL;
    Thread->HostInterrupts += 1;
    KiServeInterrupt(Thread, InLibrary);
    Thread->HostInterrupts -= 1;
    Thread->ExceptionList = ExceptionList;
}

/* The interrupt, and the timer of one that was put off, have stayed with the parent. */
VOID KiInterruptForkChild(PKTHREAD Survivor)
{
    __atomic_store_n(&Survivor->InterruptState, KiInterruptNone, __ATOMIC_RELAXED);
}
