/*
 * terminate.c: ending another thread.
 *
 * The thread that is to end cannot be taken away from the outside: it may hold locks of the kernel. So it is asked to
 * stop by itself, at the first moment when it holds none, and whoever asked does not wait for that.
 *
 *      63          33 32                            31              0
 *     +--------------+------+------------------------+---------------+
 *     |              |   2  Exiting   1  Requested   |  exit status  |    KTHREAD.ExitRequest; 0: it lives
 *     +--------------+------+------------------------+---------------+
 *
 * 1. The word changes once from 0 to Requested (by another thread) or to Exiting (by the thread, when it ends by itself
 *    and all that is left is the C library's and the kernel's), and from Requested to Exiting: such a thread ends in
 *    the orderly way with the status that was asked for.
 * 2. Who has made it Requested sets the register's Exit bit. That ends a wait which may be ended so (ExitOk), ends a
 *    suspension, and goes with a host interrupt. The bit is looked at wherever an APC could be delivered. A thread that
 *    was suspended just before it made the word Exiting stops in its own end; that suspension ends, too.
 * 3. The thread stops where a normal kernel APC could run, and not inside a system service: no lock of the kernel is
 *    held, no level raised, no region entered, no block of its own is on any list of the kernel, none of the library's
 *    memory is half allocated. A thread that is elsewhere goes on until it comes there.
 * 4. Stopping is all that it does itself. It may have been interrupted anywhere in the program, with the lock of the
 *    heap held: so it allocates and frees nothing, calls nothing of the program, enters itself into the list of the
 *    dead, and leaves by the system call that ends a thread of the host and nothing else. From the moment when it is in
 *    the list it touches its KTHREAD no more.
 * 5. Whoever takes it from that list runs it down as its own end would have done: exit routines, APCs, mutants, queue,
 *    and then its object is signaled.
 *
 * What stays behind is what the program had on the thread's stack and in its hands: the host's stack and its
 * thread-local memory, what it had allocated, locks of user mode that it held or waited for.
 */
#include "wait.h"

#define KI_EXIT_REQUESTED ((ULONG64)1 << 32)
#define KI_EXITING ((ULONG64)2 << 32)

static struct {
    PKTHREAD volatile First DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG Wakes;
} KiDeadThreads;

BOOLEAN KiIsExiting(PKTHREAD Thread)
{
    /* relaxed: who acts on it looks again, or cannot be too late */
    return __atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) != 0;
}

/* TRUE: it had not begun to end, nor had anybody asked for that. */
static BOOLEAN KiSetExitRequest(PKTHREAD Thread, NTSTATUS ExitStatus)
{
    ULONG64 None = 0;
    /* release: pairs with the acquire in KiStop and KiClaimExit, what the requester did comes before the end */
    return __atomic_compare_exchange_n(&Thread->ExitRequest, &None, KI_EXIT_REQUESTED | (ULONG)ExitStatus, FALSE,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Somebody has asked for its end, and it has not begun. */
static BOOLEAN KiIsToStop(PKTHREAD Thread)
{
    /* relaxed: as in KiIsExiting */
    return (__atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) & KI_EXIT_REQUESTED) != 0;
}

/* Whether the interrupt arrives makes no difference: the request stays, and the thread finds it at the latest when it
   next calls in. Another request for the same thread sends another interrupt. */
VOID KiRequestExit(PKTHREAD Thread, NTSTATUS ExitStatus)
{
    PKTHREAD Current = KiCurrentThread();
    BOOLEAN First = KiSetExitRequest(Thread, ExitStatus);
    KiEnterDispatcher(Current);
    if (First) {
        KiInterruptWait(Thread, KI_WAIT_EXIT, 0);
    }
    KiForceResumeThread(Thread); /* also one that was suspended just before it began to end by itself */
    if (KiIsToStop(Thread)) {
        KiInterruptThreadAgain(Thread, NULL);
    }
    KiExitDispatcher(Current);
}

VOID KiClaimExit(PKTHREAD Thread)
{
    /* acquire: pairs with the release in KiSetExitRequest */
    ULONG64 Request = __atomic_exchange_n(&Thread->ExitRequest, KI_EXITING, __ATOMIC_ACQUIRE);
    if (Request & KI_EXIT_REQUESTED) {
        Thread->ExitStatus = (NTSTATUS)(ULONG)Request;
    }
}

/*
 * The host gives the id of a thread that has ended to another one, even of another process. So whoever calls the host
 * about a thread holds it, one at a time, and the thread does not end meanwhile:
 *
 *     Present <-> Held        whoever calls the host
 *     Present  -> Gone        the thread itself, when it ends
 *
 * Held is not left behind: whoever holds is in a dispatcher section, in which nobody stops or ends it and a fork waits.
 */
typedef enum _KI_HOST_HOLD { KiHostPresent, KiHostHeld, KiHostGone } KI_HOST_HOLD;

/* FALSE: it is gone. acq_rel: what one holder did comes before the next, and the recorded times before Gone is seen */
static BOOLEAN KiChangeHostHold(PKTHREAD Thread, KI_HOST_HOLD New)
{
    for (ULONG Round = 0;; Round += 1) {
        ULONG Found = KiHostPresent;
        if (__atomic_compare_exchange_n(&Thread->HostHold, &Found, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return TRUE;
        }
        if (Found == KiHostGone) {
            return FALSE;
        }
        HalLongSpin(Round);
    }
}

BOOLEAN KiHoldHostThread(PKTHREAD Thread, PULONG ThreadId)
{
    /* acquire: pairs with the release in KiStartThread */
    *ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    return *ThreadId != 0 && KiChangeHostHold(Thread, KiHostHeld);
}

VOID KiReleaseHostThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->HostHold, KiHostPresent, __ATOMIC_RELEASE);
}

VOID KiForgetHostThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->HostHold, KiHostGone, __ATOMIC_RELAXED);
}

VOID KiRecordTimes(PKTHREAD Thread)
{
    Thread->ExitTime = HalDispatch.QuerySystemTime();
    HalQueryThreadTimes(HalCurrentThreadId(), &Thread->KernelTime, &Thread->UserTime);
    KiChangeHostHold(Thread, KiHostGone);
}

static VOID KiPushDeadThread(PKTHREAD Thread)
{
    Thread->NextDead = __atomic_load_n(&KiDeadThreads.First, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiTakeDeadThreads; all that the thread did comes before its rundown */
    while (!__atomic_compare_exchange_n(&KiDeadThreads.First, &Thread->NextDead, Thread, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    /* release: whoever sees the new number also sees the list */
    __atomic_fetch_add(&KiDeadThreads.Wakes, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiDeadThreads.Wakes, 1);
}

/* Requirement 4. Transition: not running, so no APC is delivered any more, and not yet ended. */
static DECLSPEC_NORETURN VOID KiStop(PKTHREAD Thread)
{
    KiClaimExit(Thread);
    KiRecordTimes(Thread);
    __atomic_store_n(&Thread->State, Transition, __ATOMIC_RELAXED);
    HalCurrentThread = NULL;
    KiPushDeadThread(Thread);
    HalTerminateThread();
}

/* Requirement 3. */
VOID KiExitIfRequested(PKTHREAD Thread)
{
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_EXIT) == 0 || Thread != HalCurrentThread) {
        return;
    }
    if (Thread->ServiceDepth == 0 && Thread->KernelApcDisable == 0 && !Thread->ApcState.KernelApcInProgress &&
        KiKernelApcDeliverable(Thread) && KiIsToStop(Thread)) {
        KiStop(Thread);
    }
}

PKTHREAD KiTakeDeadThreads(volatile ULONG **Wakes, PULONG Seen)
{
    *Wakes = &KiDeadThreads.Wakes;
    /* acquire: the number is read before the list, so a thread that is missed there changes it */
    *Seen = __atomic_load_n(&KiDeadThreads.Wakes, __ATOMIC_ACQUIRE);
    return __atomic_exchange_n(&KiDeadThreads.First, NULL, __ATOMIC_ACQUIRE);
}

VOID KiRundownThread(PKTHREAD Thread)
{
    if (KiThreadObjectRoutines.Exit != NULL) {
        KiThreadObjectRoutines.Exit(Thread, TRUE);
    }
    KiFlushThreadApcs(Thread);
    KiAbandonMutants(Thread);
    KiLeaveQueue(Thread);
    KiEndThread(Thread);
    KiDropThread(Thread);
}

/* Those in the list are among the threads that stayed behind. */
VOID KiTerminateForkChild(VOID)
{
    __atomic_store_n(&KiDeadThreads.First, NULL, __ATOMIC_RELAXED);
}
