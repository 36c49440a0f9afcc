/*
 * interrupt.c: one thread interrupts another by a real-time signal, and barriers on all threads.
 *
 * The signal is the first one at or above SIGRTMIN+9 that nobody handles when the library is loaded; the environment
 * variable INTERLOCK_SIGNAL names another one ("44" or "SIGRTMIN+5"). A signal of that number which this library did
 * not send, itself or by the timer of library.c, goes on to the handler that was installed before.
 */
#include "halp.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFERRED_OFFSET 9
#define MOST_TRIES 1024
#define OUTWAIT_STORES (HALP_UNITS_PER_SECOND / 100)

static int HalpInterruptSignal;
static struct sigaction HalpPreviousAction;

static BOOLEAN HalpIsOwnInterrupt(const siginfo_t *Information)
{
    if (Information->si_value.sival_ptr != &HalpInterruptSignal) {
        return FALSE;
    }
    return Information->si_code == SI_TIMER ||
           (Information->si_code == SI_QUEUE && (ULONG)Information->si_pid == HalCurrentProcessId());
}

static VOID HalpCallPreviousAction(int Signal, siginfo_t *Information, VOID *Context)
{
    if ((HalpPreviousAction.sa_flags & SA_SIGINFO) != 0) {
        HalpPreviousAction.sa_sigaction(Signal, Information, Context);
    } else if (HalpPreviousAction.sa_handler != SIG_DFL && HalpPreviousAction.sa_handler != SIG_IGN) {
        HalpPreviousAction.sa_handler(Signal);
    }
}

static VOID HalpHandleInterrupt(int Signal, siginfo_t *Information, VOID *Context)
{
    int Error = errno;

    if (!HalpIsOwnInterrupt(Information)) {
        HalpCallPreviousAction(Signal, Information, Context);
    } else if (HalCurrentThread != NULL && HalpCallbacks.Interrupt != NULL) {
        HalpCallbacks.Interrupt(HalpIsInLibrary(Context));
    }
    errno = Error;
}

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

VOID HalpInitializeInterrupt(VOID)
{
    struct sigaction Action = {.sa_sigaction = HalpHandleInterrupt, .sa_flags = SA_SIGINFO | SA_RESTART};

    HalpInitializeLibrary();
    HalpInterruptSignal = HalpChooseSignal();
    sigaction(HalpInterruptSignal, NULL, &HalpPreviousAction);
    Action.sa_mask = HalpPreviousAction.sa_mask;
    if (sigaction(HalpInterruptSignal, &Action, NULL) != 0) {
        HalPrint("interlock: the host refuses a handler for signal %d (error %d)\n", HalpInterruptSignal, errno);
        HalAbort();
    }
}

VOID HalpUnblockInterrupt(VOID)
{
    sigset_t Set;

    sigemptyset(&Set);
    sigaddset(&Set, HalpInterruptSignal);
    pthread_sigmask(SIG_UNBLOCK, &Set, NULL);
}

static BOOLEAN HalpTrySend(ULONG ThreadId, siginfo_t *Information)
{
    return syscall(SYS_rt_tgsigqueueinfo, HalCurrentProcessId(), ThreadId, HalpInterruptSignal, Information) == 0;
}

BOOLEAN HalInterruptThread(ULONG ThreadId)
{
    int Error = errno;
    siginfo_t Information;
    BOOLEAN Sent;

    memset(&Information, 0, sizeof(Information));
    Information.si_signo = HalpInterruptSignal;
    Information.si_code = SI_QUEUE;
    Information.si_pid = (pid_t)HalCurrentProcessId();
    Information.si_value.sival_ptr = &HalpInterruptSignal;
    /* EAGAIN: the user's limit of queued signals is reached for the moment. ESRCH: the thread has ended. */
    Sent = HalpTrySend(ThreadId, &Information);
    for (ULONG Round = 0; !Sent && errno == EAGAIN && Round < MOST_TRIES; Round++) {
        HalLongSpin(Round);
        Sent = HalpTrySend(ThreadId, &Information);
    }
    errno = Error;
    return Sent;
}

BOOLEAN HalInterruptLater(VOID)
{
    return HalpInterruptLater(HalpInterruptSignal, &HalpInterruptSignal);
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
