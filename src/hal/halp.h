/* halp.h: what the files of the Linux host share. */
#ifndef INTERLOCK_HALP_H
#define INTERLOCK_HALP_H

#include "hal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HALP_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HALP_THREAD_SANITIZER 1
#endif
#endif

#define HALP_UNITS_PER_SECOND 10000000ULL
#define HALP_NANOSECONDS_PER_UNIT 100

static inline ULONGLONG HalpUnitsOfTimespec(const struct timespec *Time)
{
    return (ULONGLONG)Time->tv_sec * HALP_UNITS_PER_SECOND + (ULONGLONG)Time->tv_nsec / HALP_NANOSECONDS_PER_UNIT;
}

static inline ULONGLONG HalpUnitsOfTimeval(const struct timeval *Time)
{
    return (ULONGLONG)Time->tv_sec * HALP_UNITS_PER_SECOND + (ULONGLONG)Time->tv_usec * 10;
}

/* Static TLS in one segment with HalCurrentThread: reachable from a signal handler, never allocated on first use. */
#define HALP_THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))

/*
 * Calls of the host. No function of this library is a cancellation point, and none changes errno. So the files of this
 * folder call the host in one of three ways:
 * 1. HalpCall: the bare system call. It returns the host's result; an error is its number, negated.
 * 2. A scope that begins with HALP_HOST_CALLS, for functions of the C library: cancellation is off in the scope, and its
 *    end restores errno.
 * 3. Functions that can neither fail nor wait: clock_gettime of a clock that exists, sched_getcpu, pthread_sigmask; and
 *    the heap, around which memory.c keeps errno.
 * tests/checks/cancellation.py compares the calls of the library's files with the cancellation points of POSIX.
 */
static inline long HalpMakeCall(long Number, long First, long Second, long Third, long Fourth, long Fifth, long Sixth)
{
    int Error = errno;
    long Result = syscall(Number, First, Second, Third, Fourth, Fifth, Sixth);

    if (Result == -1) {
        Result = -errno;
        errno = Error;
    }
    return Result;
}

#define HALP_CALL_PADDED(Number, First, Second, Third, Fourth, Fifth, Sixth, ...)                                     \
    HalpMakeCall((Number), (long)(First), (long)(Second), (long)(Third), (long)(Fourth), (long)(Fifth), (long)(Sixth))
#define HalpCall(...) HALP_CALL_PADDED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

typedef struct _HALP_CALLER {
    int Error;
    int CancelState;
} HALP_CALLER;

static inline HALP_CALLER HalpEnterHost(VOID)
{
    HALP_CALLER Caller = {.Error = errno};

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &Caller.CancelState);
    return Caller;
}

static inline VOID HalpLeaveHost(const HALP_CALLER *Caller)
{
    pthread_setcancelstate(Caller->CancelState, NULL);
    errno = Caller->Error;
}

#define HALP_HOST_CALLS                                                                                               \
    const HALP_CALLER HalpCaller __attribute__((cleanup(HalpLeaveHost), unused)) = HalpEnterHost()

extern HAL_CALLBACKS HalpCallbacks;

/* clock.c. */
VOID HalpInitializeClocks(VOID);
ULONGLONG HalpQueryInterruptTime(VOID);
ULONGLONG HalpQueryTickTime(VOID);
ULONGLONG HalpQuerySystemTime(VOID);
VOID HalpSleep(ULONGLONG Interval); /* or until a signal comes */
BOOLEAN HalpDeadlineToTimespec(const HAL_DEADLINE *Deadline, struct timespec *Host); /* FALSE: it is never reached */
ULONGLONG HalpTimeUntil(const HAL_DEADLINE *Deadline); /* 0: it has passed */

/* processor.c, for HalDispatch. */
VOID HalpYield(VOID);
ULONG HalpCurrentProcessor(VOID);
ULONG HalpCountSwitches(VOID);

/* descriptor.c. Files of the host: below 0 is the error number, negated. */
int HalpOpenFile(PCSTR Path, int Flags);
SSIZE_T HalpReadFile(int File, PVOID Buffer, SIZE_T Size);
SSIZE_T HalpWriteFile(int File, const VOID *Buffer, SIZE_T Size);
NTSTATUS HalpStatusOfRefusal(long Error, NTSTATUS Other); /* Other: the host does not lack descriptors or memory */
LONG HalpKeepDescriptor(LONG Descriptor); /* the same file under a number that programs do not get; closes this one */

/* process.c: a field of a thread's or process's status line; NULL: there is none. */
#define HALP_STATUS_SIZE 1024
char *HalpReadStatus(PCSTR Path, CHAR Line[HALP_STATUS_SIZE], ULONG FieldsBefore);

/* processor.c, thread.c, interrupt.c: called once by HalInitialize, in this order. */
VOID HalpInitializeProcessors(VOID);
VOID HalpInitializeThreads(VOID);
VOID HalpInitializeInterrupt(VOID);
VOID HalpInitializeBarrier(VOID);
VOID HalpInitializeSections(VOID);

/* module.c */
VOID HalpDemangle(PSTR Name, SIZE_T Size); /* in place; a name that is not C++ stays */

/* interrupt.c, diag.c: called once by HalCompleteInitialization. */
VOID HalpStayLoaded(VOID);
VOID HalpInitializeStackTrace(VOID);
VOID HalpInitializeSizes(VOID);

VOID HalpAnnounceExit(VOID); /* fiber.c: to sanitizers, before pthread_exit */

/* Before Callbacks.ForkChild: drops what belongs to the parent. */
VOID HalpForkChildThread(VOID);
VOID HalpForkChildClock(VOID);
VOID HalpCloseKeeper(VOID);
VOID HalpForkChildLibc(VOID);
VOID HalpDeferFrees(BOOLEAN Defer);
VOID HalpRegisterLateForkHandlers(VOID); /* init.c; with the first thread */

VOID HalpUnblockInterrupt(VOID);
VOID HalpOutwaitStores(VOID); /* machine.c: until every store that was made is visible */
BOOLEAN HalpIsSignalOnItsWay(ULONG ThreadId, int Signal); /* thread.c; see HalIsInterruptOnItsWay */

/* interrupt.c, for the current thread. */
VOID HalpCancelInterruptLater(VOID);                     /* before the thread ends */

extern volatile ULONG64 HalpFailedReads; /* reads of HalReadPointerOrFault that faulted */

/* handler.c: signal handlers installed in front of the program's. */

/* How many handlers a program may install over ours; one more stays in front. */
#define HALP_FOR_EACH_PLACE(Do, Name)                                                                                 \
    Do(Name, 0) Do(Name, 1) Do(Name, 2) Do(Name, 3) Do(Name, 4) Do(Name, 5) Do(Name, 6) Do(Name, 7)
#define HALP_COUNT_PLACE(Name, Place) +1
#define HALP_PLACES (HALP_FOR_EACH_PLACE(HALP_COUNT_PLACE, ))

typedef VOID HALP_HANDLER(int Signal, siginfo_t *Information, VOID *Context);

/* Defines Table: one handler for each place, which calls Name(Place, Signal, Information, Context). */
#define HALP_DEFINE_HANDLER(Name, Place)                                                                              \
    static VOID Name##Place(int Signal, siginfo_t *Information, VOID *Context)                                        \
    {                                                                                                                 \
        Name(Place, Signal, Information, Context);                                                                    \
    }
#define HALP_NAME_HANDLER(Name, Place) Name##Place,
#define HALP_DEFINE_HANDLERS(Table, Name)                                                                             \
    HALP_FOR_EACH_PLACE(HALP_DEFINE_HANDLER, Name)                                                                    \
    static HALP_HANDLER *const Table[HALP_PLACES] = {HALP_FOR_EACH_PLACE(HALP_NAME_HANDLER, Name)}

typedef struct _HALP_PREDECESSOR {
    struct sigaction Action;
    volatile BOOLEAN Spent;       /* SA_RESETHAND: it has had its one signal */
} HALP_PREDECESSOR;

typedef struct _HALP_CHAIN {
    int Signal;
    HALP_HANDLER *const *Handler; /* HALP_PLACES of them, each with its place compiled in */
    int Flags;                    /* always set, */
    int FlagsIfDefault;           /* set in front of the host's default action, */
    int InheritedFlags;           /* copied from a predecessor's handler */
    HALP_PREDECESSOR Predecessor[HALP_PLACES];
    ULONG Used;                   /* under the lock in handler.c */
} HALP_CHAIN;

BOOLEAN HalpHasHandler(const struct sigaction *Action); /* of the program's: neither SIG_DFL nor SIG_IGN */
BOOLEAN HalpIsInFront(const HALP_CHAIN *Chain);
/* Puts one of our handlers in front. FALSE: no place is left, or the host refuses. */
BOOLEAN HalpStandInFront(HALP_CHAIN *Chain);
/* A lock that is held with every signal blocked: 0, or the process id of the holder. A forked child takes its parent's. */
VOID HalpLockMasked(volatile ULONG *Lock, sigset_t *Before);
VOID HalpUnlockMasked(volatile ULONG *Lock, const sigset_t *Before);
/* Around HalpStandInFront: blocks every signal of this thread. */
VOID HalpLockHandlers(sigset_t *Before);
VOID HalpUnlockHandlers(const sigset_t *Before);
/* FALSE: the predecessor is the host's default action, which was not taken. */
BOOLEAN HalpPassOn(HALP_PREDECESSOR *Predecessor, int Signal, siginfo_t *Information, VOID *Context);

/* Where a thread was when a signal interrupted it. */
#if defined(__x86_64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.pc)
#elif defined(__riscv) && __riscv_xlen == 64
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.__gregs[REG_PC])
#else
#error "halp.h: no code to read the program counter on this machine."
#endif

/*
 * What hal uses of the kernel's own headers. A second C library (musl-gcc) does not have them; these
 * numbers and structures are the kernel's binary interface and never change.
 */

#if __has_include(<linux/futex.h>)

#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/membarrier.h>

#else

#define FUTEX_WAIT             0
#define FUTEX_WAKE             1
#define FUTEX_WAIT_BITSET      9
#define FUTEX_PRIVATE_FLAG     128
#define FUTEX_CLOCK_REALTIME   256
#define FUTEX_BITSET_MATCH_ANY 0xFFFFFFFF

#define MEMBARRIER_CMD_GLOBAL                     (1 << 0)
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED          (1 << 3)
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED (1 << 4)

#define _LINUX_CAPABILITY_VERSION_3 0x20080522
#define _LINUX_CAPABILITY_U32S_3    2
#define CAP_SYS_NICE                23
#define CAP_TO_INDEX(Capability)    ((Capability) >> 5)
#define CAP_TO_MASK(Capability)     (1U << ((Capability) & 31))
struct __user_cap_header_struct {
    unsigned int version;
    int pid;
};
struct __user_cap_data_struct {
    unsigned int effective;
    unsigned int permitted;
    unsigned int inheritable;
};

#endif

#endif
