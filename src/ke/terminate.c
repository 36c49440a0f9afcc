/*
 * terminate.c: how one thread ends another. ps/thread.c has the thread's own end.
 *
 * A thread cannot be removed from outside: it may hold locks of the kernel. Another thread requests its end, and the
 * thread stops itself at the first point where it holds none. The requester does not wait for that.
 *
 *      63          33 32                            31              0
 *     +--------------+------+------------------------+---------------+
 *     |              |   2  Exiting   1  Requested   |  exit status  |    KTHREAD.ExitRequest; 0: the thread lives
 *     +--------------+------+------------------------+---------------+
 *
 * 1. The word leaves 0 once: to Requested, by another thread, or to Exiting, by the thread itself when only the C
 *    library's and the kernel's part of its end is left. Requested becomes Exiting: a thread that was already ending
 *    finishes in the orderly way, with the requested status.
 * 2. The requester sets the Exit bit in the wait register, which ends a wait that allows it (ExitOk); resumes a
 *    suspended thread; and interrupts a running one. The thread checks the bit wherever an APC could be delivered. A
 *    thread that was suspended just before it made the word Exiting is parked in its own end: it is resumed, too.
 * 3. The thread stops where a normal kernel APC could run, outside system services: it holds no lock of the kernel, has
 *    raised no level and entered no region, none of its wait blocks is on a list of the kernel, and no memory of the
 *    library is half allocated. Anywhere else it continues until it reaches such a point.
 * 4. Stopping is all that the thread does. It may have been interrupted anywhere in the program, with the heap's lock
 *    held, so it allocates and frees nothing, calls nothing of the program, pushes itself onto the list of stopped
 *    threads, and leaves by the system call that ends a host thread. Once it is on the list it does not touch its
 *    KTHREAD.
 * 5. The reaper takes stopped threads from the list and runs each down as its own end would have: exit routines, APCs,
 *    mutants, queue; then it signals the thread object.
 *
 * The reaper is a thread of its own because a rundown may block and frees memory, and because no existing thread is
 * suitable: the requester may itself be terminated, and a work item may be waiting for the very thread. The first
 * termination creates it, before it requests anything. A forked child creates its own; the threads on the parent's list
 * are among those that stayed behind.
 *
 * These are leaked: the host's stack and its thread-local memory, allocations, and user-mode locks that the thread held
 * or waited for.
 */
#include "ownthread.h"
#include "park.h"
#include "wait.h"

#define KI_EXIT_REQUESTED ((ULONG64)1 << 32)
#define KI_EXITING ((ULONG64)2 << 32)

static PKTHREAD volatile KiStoppedThreads DECLSPEC_ALIGN(KI_CACHE_LINE); /* linked by NextDead */
volatile ULONG KiReaperWakes;
static VOID KiReaper(PVOID Context);

static const KI_OWN_KIND KiReaperKind = {
    .Name = "interlock-reap", .Routine = KiReaper, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD KiReaperThread = {.Kind = &KiReaperKind};

BOOLEAN KiIsExiting(PKTHREAD Thread)
{
    /* relaxed: callers that act on it check again, or cannot be too late */
    return __atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) != 0;
}

/* Its end was requested and has not begun. */
static BOOLEAN KiMustStop(PKTHREAD Thread)
{
    /* relaxed: as in KiIsExiting */
    return (__atomic_load_n(&Thread->ExitRequest, __ATOMIC_RELAXED) & KI_EXIT_REQUESTED) != 0;
}

NTSTATUS KiTerminateThread(PKTHREAD Thread, NTSTATUS ExitStatus)
{
    PKTHREAD Current = KiCurrentThread();
    ULONG64 Alive = 0;
    NTSTATUS Status = KiEnsureOwnThread(&KiReaperThread);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KiEnsureInterruptsRepeat();
    KiEnterDispatcher(Current);
    /* release: pairs with the acquire in KiClaimExit; what the requester did comes before the end */
    if (__atomic_compare_exchange_n(&Thread->ExitRequest, &Alive, KI_EXIT_REQUESTED | (ULONG)ExitStatus, FALSE,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        KiInterruptWait(Thread, KI_WAIT_EXIT, 0);
    }
    KiForceResumeThread(Thread);
    if (KiMustStop(Thread)) {
        /* Best effort: if the interrupt is lost, the thread finds the request when it next calls in. Another request
           for the same thread sends another one. */
        KiInterruptThreadAgain(Thread, NULL);
    }
    KiExitDispatcher(Current);
    return STATUS_SUCCESS;
}

VOID KiClaimExit(PKTHREAD Thread)
{
    /* acquire: pairs with the release in KiTerminateThread */
    ULONG64 Request = __atomic_exchange_n(&Thread->ExitRequest, KI_EXITING, __ATOMIC_ACQUIRE);
    if (Request & KI_EXIT_REQUESTED) {
        Thread->ExitStatus = (NTSTATUS)(ULONG)Request;
    }
}

/* Requirement 4. Transition: no longer running, so no APC is delivered, and not yet ended. */
static DECLSPEC_NORETURN VOID KiStop(PKTHREAD Thread)
{
    KiClaimExit(Thread);
    KiRecordTimes(Thread);
    HalNoteThreadEnds();
    __atomic_store_n(&Thread->State, Transition, __ATOMIC_RELAXED);
    HalCurrentThread = NULL;
    Thread->NextDead = __atomic_load_n(&KiStoppedThreads, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiReaper; all that the thread did comes before its rundown */
    while (!__atomic_compare_exchange_n(&KiStoppedThreads, &Thread->NextDead, Thread, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    /* release: a reaper that sees the new number also sees the list */
    __atomic_fetch_add(&KiReaperWakes, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiReaperWakes, 1);
    HalTerminateThread();
}

/* Requirement 3. */
VOID KiExitIfRequested(PKTHREAD Thread)
{
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_EXIT) == 0 || Thread != HalCurrentThread) {
        return;
    }
    if (Thread->ServiceDepth == 0 && Thread->KernelApcDisable == 0 && !Thread->ApcState.KernelApcInProgress &&
        KiKernelApcDeliverable(Thread) && KiMustStop(Thread)) {
        KiStop(Thread);
    }
}

/* Requirement 5. */
static VOID KiReaper(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    __atomic_store_n(&KiCurrentThread()->Foreign, FALSE, __ATOMIC_RELAXED);
    for (;;) {
        /* acquire: read before the list, so a thread that the list misses changes the number */
        ULONG Seen = __atomic_load_n(&KiReaperWakes, __ATOMIC_ACQUIRE);
        PKTHREAD Thread = __atomic_exchange_n(&KiStoppedThreads, NULL, __ATOMIC_ACQUIRE);
        if (Thread == NULL) {
            KiSleepWhile(&KiReaperWakes, Seen);
        }
        while (Thread != NULL) {
            PKTHREAD Next = Thread->NextDead;
            if (KiThreadObjectRoutines.Exit != NULL) {
                KiThreadObjectRoutines.Exit(Thread, TRUE);
            }
            KiFlushThreadApcs(Thread);
            KiAbandonMutants(Thread);
            KiLeaveQueue(Thread);
            KiEndThread(Thread);
            NTSTATUS ExitStatus = Thread->ExitStatus;
            ULONG EndOrdinal = Thread->EndOrdinal;
            KiDropThread(Thread);
            if (KiThreadObjectRoutines.Ended != NULL) {
                KiThreadObjectRoutines.Ended(EndOrdinal, ExitStatus);
            }
            Thread = Next;
        }
    }
}

VOID KiTerminateForkChild(VOID)
{
    __atomic_store_n(&KiStoppedThreads, NULL, __ATOMIC_RELAXED);
}

/*
 * Holding the host's thread. The host reuses the id of a thread that has ended, even for another process. So a caller
 * of the host holds the thread, one caller at a time, and the thread does not end meanwhile:
 *
 *     Present <-> Held        the caller of the host
 *     Present  -> Gone        the thread itself, when it ends
 *
 * Held is never left behind: the holder is in a dispatcher section, where it is neither stopped nor terminated, and
 * which a fork waits for.
 */
typedef enum _KI_HOST_HOLD { KiHostPresent, KiHostHeld, KiHostGone } KI_HOST_HOLD;

/* FALSE: it has ended. acq_rel: one holder's work happens before the next one's, the recorded times before Gone */
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
        KiBackOff(Round);
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
