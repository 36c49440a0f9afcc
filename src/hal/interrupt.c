/*
 * interrupt.c: one thread interrupts another by a real-time signal, and barriers on all threads.
 *
 * The signal is the first one at or above SIGRTMIN+9 that nobody handles when the library is loaded; the environment
 * variable INTERLOCK_SIGNAL names another one ("44" or "SIGRTMIN+5"). The handler stands in front of the program's
 * (handler.c), also of one that the program installs later: every send looks first. A signal of that number which this
 * library did not send, itself or by the timer of library.c, goes on to the handler that was installed before. Ours
 * carry a value by which they are known. Where a filter refuses the system call for that, signals without one serve,
 * unless the program has a handler of its own for the signal.
 *
 * A signal that was sent need not arrive: the thread may block it, or wait for it by sigwait, which takes it without
 * a handler, or the program may change the action before it is delivered. The sender asks (HalIsInterruptOnItsWay).
 */
#include "handler.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFERRED_OFFSET 9
#define MOST_TRIES 1024
#define OUTWAIT_STORES (HALP_UNITS_PER_SECOND / 100)

static HALP_CHAIN HalpInterruptChain;
static volatile ULONG HalpSignalsArePlain; /* the host refuses signals that carry a value */

static BOOLEAN HalpIsOwnInterrupt(const HALP_PREDECESSOR *Predecessor, const siginfo_t *Information)
{
    BOOLEAN FromSelf = (ULONG)Information->si_pid == HalCurrentProcessId();

    if (Information->si_code == SI_TKILL) {
        /* relaxed: the sender has set it before it made the system call */
        return FromSelf && __atomic_load_n(&HalpSignalsArePlain, __ATOMIC_RELAXED) != 0 &&
               !HalpHasHandler(&Predecessor->Action);
    }
    return Information->si_value.sival_ptr == &HalpInterruptChain &&
           (Information->si_code == SI_TIMER || (Information->si_code == SI_QUEUE && FromSelf));
}

/* A signal of somebody else's without a handler has no effect: its default action would end the process. */
static VOID HalpHandleInterrupt(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    HALP_PREDECESSOR *Predecessor = &HalpInterruptChain.Predecessor[Place];
    int Error = errno;

    if (!HalpIsOwnInterrupt(Predecessor, Information)) {
        HalpPassOn(Predecessor, Signal, Information, Context);
    } else if (HalCurrentThread != NULL && HalpCallbacks.Interrupt != NULL) {
        HalpCallbacks.Interrupt(HalpIsInLibrary(Context));
    }
    errno = Error;
}

HALP_DEFINE_HANDLERS(HalpInterruptHandler, HalpHandleInterrupt);

static HALP_CHAIN HalpInterruptChain = {.Handler = HalpInterruptHandler, .Flags = SA_RESTART};

static BOOLEAN HalpIsSignalFree(int Signal)
{
    struct sigaction Action;

    return sigaction(Signal, NULL, &Action) == 0 && (Action.sa_flags & SA_SIGINFO) == 0 &&
           Action.sa_handler == SIG_DFL;
}

static int HalpFindFreeSignal(VOID)
{
    int Count = SIGRTMAX - SIGRTMIN + 1;
    int Offset;

    for (Offset = 0; Offset < Count; Offset++) {
        int Signal = SIGRTMIN + (PREFERRED_OFFSET + Offset) % Count;

        if (HalpIsSignalFree(Signal)) {
            return Signal;
        }
    }
    return SIGRTMIN + PREFERRED_OFFSET;
}

static int HalpParseSignal(PCSTR Text)
{
    static const CHAR Symbolic[] = "SIGRTMIN+";
    BOOLEAN FromFirst = strncmp(Text, Symbolic, sizeof(Symbolic) - 1) == 0;
    PCSTR Digits = FromFirst ? Text + sizeof(Symbolic) - 1 : Text;
    char *End;
    long Number = strtol(Digits, &End, 10);

    if (End == Digits || *End != '\0' || Number < 0 || Number > SIGRTMAX) {
        return 0;
    }
    Number += FromFirst ? SIGRTMIN : 0;
    return Number >= SIGRTMIN && Number <= SIGRTMAX ? (int)Number : 0;
}

static int HalpChooseSignal(VOID)
{
    PCSTR Setting = HalGetEnvironment("INTERLOCK_SIGNAL");
    int Signal = Setting != NULL ? HalpParseSignal(Setting) : 0;

    if (Signal != 0) {
        return Signal;
    }
    Signal = HalpFindFreeSignal();
    if (Setting != NULL) {
        HalPrint("interlock: INTERLOCK_SIGNAL=%s is not a real-time signal (%d to %d); using %d\n", Setting, SIGRTMIN,
                 SIGRTMAX, Signal);
    }
    return Signal;
}

/* The program may have taken our handler away since the last time. */
static BOOLEAN HalpEnsureHandler(VOID)
{
    sigset_t Before;
    BOOLEAN InFront = HalpIsInFront(&HalpInterruptChain);

    if (!InFront) {
        HalpLockHandlers(&Before);
        InFront = HalpStandInFront(&HalpInterruptChain);
        HalpUnlockHandlers(&Before);
    }
    return InFront;
}

VOID HalpInitializeInterrupt(VOID)
{
    HalpInitializeLibrary();
    HalpInterruptChain.Signal = HalpChooseSignal();
    if (!HalpEnsureHandler()) {
        HalPrint("interlock: the host refuses a handler for signal %d (error %d)\n", HalpInterruptChain.Signal, errno);
        HalAbort();
    }
}

VOID HalpUnblockInterrupt(VOID)
{
    sigset_t Set;

    sigemptyset(&Set);
    sigaddset(&Set, HalpInterruptChain.Signal);
    pthread_sigmask(SIG_UNBLOCK, &Set, NULL);
}

/* Without a value: only where no handler of the program's could take the signal for one of its own. */
static BOOLEAN HalpTrySendPlain(ULONG ThreadId)
{
    struct sigaction Present;
    ULONG Place;

    sigaction(HalpInterruptChain.Signal, NULL, &Present);
    for (Place = 0; Place < HALP_PLACES; Place++) {
        if (Present.sa_sigaction == HalpInterruptHandler[Place] &&
            !HalpHasHandler(&HalpInterruptChain.Predecessor[Place].Action)) {
            __atomic_store_n(&HalpSignalsArePlain, 1, __ATOMIC_RELAXED); /* relaxed: the call comes after it */
            return syscall(SYS_tgkill, HalCurrentProcessId(), ThreadId, HalpInterruptChain.Signal) == 0;
        }
    }
    errno = EPERM;
    return FALSE;
}

/*
 * EAGAIN: the user's limit of queued signals is reached for the moment. ESRCH, EINVAL: there is no such thread.
 * Anything else is what a filter of system calls answers.
 */
static BOOLEAN HalpTrySend(ULONG ThreadId)
{
    int Signal = HalpInterruptChain.Signal;
    siginfo_t Information;

    memset(&Information, 0, sizeof(Information));
    Information.si_signo = Signal;
    Information.si_code = SI_QUEUE;
    Information.si_pid = (pid_t)HalCurrentProcessId();
    Information.si_value.sival_ptr = &HalpInterruptChain;
    return syscall(SYS_rt_tgsigqueueinfo, HalCurrentProcessId(), ThreadId, Signal, &Information) == 0 ||
           (errno != EAGAIN && errno != ESRCH && errno != EINVAL && HalpTrySendPlain(ThreadId));
}

static NTSTATUS HalpSend(ULONG ThreadId)
{
    for (ULONG Round = 0; !HalpTrySend(ThreadId); Round++) {
        if (errno == ESRCH || errno == EINVAL) {
            return STATUS_INVALID_CID;
        }
        if (errno != EAGAIN) {
            return STATUS_ACCESS_DENIED;
        }
        if (Round == MOST_TRIES) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        HalGiveWay(Round);
    }
    return STATUS_SUCCESS;
}

NTSTATUS HalInterruptThread(ULONG ThreadId)
{
    int Error = errno;
    NTSTATUS Status = HalpEnsureHandler() ? HalpSend(ThreadId) : STATUS_ACCESS_DENIED;

    errno = Error;
    return Status;
}

BOOLEAN HalIsInterruptOnItsWay(ULONG ThreadId)
{
    return HalpIsSignalOnItsWay(ThreadId, HalpInterruptChain.Signal);
}

BOOLEAN HalInterruptLater(VOID)
{
    return HalpInterruptLater(HalpInterruptChain.Signal, &HalpInterruptChain);
}

static BOOLEAN HalpBarrierOffered;

static BOOLEAN HalpMakeBarrier(VOID)
{
    return HalpCall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static BOOLEAN HalpRegisterAndMakeBarrier(VOID)
{
    HalpCall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    return HalpMakeBarrier();
}

VOID HalpInitializeBarrier(VOID)
{
    HalpBarrierOffered = HalpRegisterAndMakeBarrier();
}

/*
 * A process may enter a sandbox later that refuses the call. The other threads go by what was offered at the start, so
 * then time does it: a store that a thread has made is on its way out of the processor and seen by all within
 * microseconds, and a thread that does not run has been through the host's scheduler, which is a barrier.
 */
static VOID HalpOutwaitStores(VOID)
{
    ULONGLONG End = HalDispatch.QueryInterruptTime() + OUTWAIT_STORES;

    while (HalDispatch.QueryInterruptTime() < End) {
        HalpSleep(OUTWAIT_STORES);
    }
}

BOOLEAN HalBarrierAllThreads(VOID)
{
    if (HalpBarrierOffered && !HalpMakeBarrier() && !HalpRegisterAndMakeBarrier()) {
        HalpOutwaitStores();
    }
    return HalpBarrierOffered;
}
