/*
 * interrupt.c: one thread interrupts another by a real-time signal; barriers on all threads.
 *
 * The signal is the first one from SIGRTMIN+9 on that has no handler when the library is loaded, or the one that
 * INTERLOCK_SIGNAL names ("44" or "SIGRTMIN+5"). The handler is in front of the program's (handler.c), even of one that
 * the program installs later: every send checks first. Our signals carry a value, including those from the timer in
 * insidelibc.c. Any other signal of that number is passed to the predecessor. If a filter refuses the system call for a
 * value, signals without one are used, unless the program has a handler for the signal.
 *
 * A signal that was sent need not arrive: the thread may block it, take it by sigwait without a handler, or the program
 * may change the action before delivery. The sender checks (HalIsInterruptOnItsWay).
 */
#include "context.h"
#include "handler.h"
#include "kernelabi.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFERRED_OFFSET 9
#define MOST_TRIES 1024

static HALP_CHAIN HalpInterruptChain;
static volatile ULONG HalpSignalsArePlain; /* the host refuses signals that carry a value */

static BOOLEAN HalpIsOwnInterrupt(const HALP_PREDECESSOR *Predecessor, const siginfo_t *Information)
{
    BOOLEAN FromSelf = (ULONG)Information->si_pid == HalCurrentProcessId();

    if (Information->si_code == SI_TKILL) {
        /* relaxed: the sender set it before its system call */
        return FromSelf && __atomic_load_n(&HalpSignalsArePlain, __ATOMIC_RELAXED) != 0 &&
               !HalpHasHandler(&Predecessor->Action);
    }
    return Information->si_value.sival_ptr == &HalpInterruptChain &&
           (Information->si_code == SI_TIMER || (Information->si_code == SI_QUEUE && FromSelf));
}

/* A foreign signal without a handler is ignored: its default action would kill the process. */
static VOID HalpHandleInterrupt(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    HALP_PREDECESSOR *Predecessor = &HalpInterruptChain.Predecessor[Place];
    int Error = errno;

    if (!HalpIsOwnInterrupt(Predecessor, Information)) {
        HalpPassOn(Predecessor, Signal, Information, Context);
    } else if (HalCurrentThread != NULL && HalpCallbacks.Interrupt != NULL) {
        PVOID Outer = HalInterruptFrame;

        HalInterruptFrame = Context;
        HalpCallbacks.Interrupt(HalpIsInsideLibc(Context));
        HalInterruptFrame = Outer;
    }
    errno = Error;
}

HALP_DEFINE_HANDLERS(HalpInterruptHandler, HalpHandleInterrupt);

static HALP_CHAIN HalpInterruptChain = {.Handler = HalpInterruptHandler, .Flags = SA_RESTART};

/* The first one from SIGRTMIN+9 on that has no handler. */
static int HalpFindFreeSignal(VOID)
{
    int Count = SIGRTMAX - SIGRTMIN + 1;

    for (int Offset = 0; Offset < Count; Offset++) {
        int Signal = SIGRTMIN + (PREFERRED_OFFSET + Offset) % Count;
        struct sigaction Action;
        if (sigaction(Signal, NULL, &Action) == 0 && (Action.sa_flags & SA_SIGINFO) == 0 &&
            Action.sa_handler == SIG_DFL) {
            return Signal;
        }
    }
    return SIGRTMIN + PREFERRED_OFFSET;
}

/* "44" or "SIGRTMIN+5"; 0: no real-time signal. */
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

/* The program may have replaced our handler since the last call. */
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
    PCSTR Setting = HalGetEnvironment("INTERLOCK_SIGNAL");
    int Signal = Setting != NULL ? HalpParseSignal(Setting) : 0;

    HalpInitializeLibc();
    HalpInterruptChain.Signal = Signal != 0 ? Signal : HalpFindFreeSignal();
    if (Setting != NULL && Signal == 0) {
        HalPrint("interlock: INTERLOCK_SIGNAL=%s is not a real-time signal (%d to %d); using %d\n", Setting, SIGRTMIN,
                 SIGRTMAX, HalpInterruptChain.Signal);
    }
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

/* Without a value: only where no handler of the program's could take the signal for its own. */
static BOOLEAN HalpTrySendPlain(ULONG ThreadId)
{
    struct sigaction Present;

    sigaction(HalpInterruptChain.Signal, NULL, &Present);
    for (ULONG Place = 0; Place < HALP_PLACES; Place++) {
        if (Present.sa_sigaction == HalpInterruptHandler[Place] &&
            !HalpHasHandler(&HalpInterruptChain.Predecessor[Place].Action)) {
            __atomic_store_n(&HalpSignalsArePlain, 1, __ATOMIC_RELAXED); /* relaxed: the system call comes after it */
            return syscall(SYS_tgkill, HalCurrentProcessId(), ThreadId, HalpInterruptChain.Signal) == 0;
        }
    }
    errno = EPERM;
    return FALSE;
}

/*
 * ESRCH, EINVAL: there is no such thread. EAGAIN: the user's limit of queued signals is reached for the moment. Any
 * other error comes from a filter of system calls.
 */
NTSTATUS HalInterruptThread(ULONG ThreadId)
{
    int Error = errno;
    NTSTATUS Status = STATUS_ACCESS_DENIED;
    siginfo_t Information;

    if (HalpEnsureHandler()) {
        memset(&Information, 0, sizeof(Information));
        Information.si_signo = HalpInterruptChain.Signal;
        Information.si_code = SI_QUEUE;
        Information.si_pid = (pid_t)HalCurrentProcessId();
        Information.si_value.sival_ptr = &HalpInterruptChain;
        for (ULONG Round = 0;; Round++) {
            if (syscall(SYS_rt_tgsigqueueinfo, HalCurrentProcessId(), ThreadId, Information.si_signo, &Information) == 0 ||
                (errno != EAGAIN && errno != ESRCH && errno != EINVAL && HalpTrySendPlain(ThreadId))) {
                Status = STATUS_SUCCESS;
            } else if (errno == ESRCH || errno == EINVAL) {
                Status = STATUS_INVALID_CID;
            } else if (errno == EAGAIN && Round < MOST_TRIES) {
                HalGiveWay(Round);
                continue;
            } else if (errno == EAGAIN) {
                Status = STATUS_INSUFFICIENT_RESOURCES;
            }
            break;
        }
    }
    errno = Error;
    return Status;
}

BOOLEAN HalIsInterruptOnItsWay(ULONG ThreadId)
{
    return HalpIsSignalOnItsWay(ThreadId, HalpInterruptChain.Signal);
}

HAL_LATER HalInterruptLater(VOID)
{
    return HalpInterruptLater(HalpInterruptChain.Signal, &HalpInterruptChain);
}

BOOLEAN HalCanInterruptLater(VOID)
{
    return HalpHasTimer(HalpInterruptChain.Signal, &HalpInterruptChain);
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
 * A process may enter a sandbox later that refuses the call. The other threads still rely on what was offered at the
 * start. Then time replaces the barrier: a store is visible to all processors within microseconds, and a thread that
 * does not run has been through the host's scheduler, which is a barrier.
 */
BOOLEAN HalBarrierAllThreads(VOID)
{
    if (HalpBarrierOffered && !HalpMakeBarrier() && !HalpRegisterAndMakeBarrier()) {
        HalpOutwaitStores();
    }
    return HalpBarrierOffered;
}
