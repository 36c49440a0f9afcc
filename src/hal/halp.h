/* halp.h: what the files of the Linux host share. */
#ifndef INTERLOCK_HALP_H
#define INTERLOCK_HALP_H

#include "hal.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
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

/* lastthread.c */
extern volatile ULONG HalpStartingThreads;  /* created by HalCreateThread, and not yet entered */
VOID HalpEnterOwnThread(VOID);              /* until HalNoteThreadEnds */
VOID HalpForkChildOwnThread(VOID);

/* process.c: a field of a thread's or process's status line; NULL: there is none. */
#define HALP_STATUS_SIZE 1024
char *HalpReadStatus(PCSTR Path, CHAR Line[HALP_STATUS_SIZE], ULONG FieldsBefore);

/* processor.c, thread.c, interrupt.c, priority.c: called once by HalInitialize, in this order. */
VOID HalpInitializeProcessors(VOID);
VOID HalpInitializeThreads(VOID);
VOID HalpInitializeInterrupt(VOID);
VOID HalpInitializeBarrier(VOID);
VOID HalpInitializeSections(VOID);

/* demangle.c */
VOID HalpDemangle(PSTR Name, SIZE_T Size); /* in place; a name that is not C++ stays */

/* insidelibc.c, diag.c: called once by HalCompleteInitialization. */
VOID HalpStayLoaded(VOID);
VOID HalpInitializeStackTrace(VOID);
VOID HalpInitializeSizes(VOID);

VOID HalpAnnounceExit(VOID); /* fiber.c: to sanitizers, before pthread_exit */

/* Before Callbacks.ForkChild: drops what belongs to the parent. */
VOID HalpForkChildThread(VOID);
VOID HalpForkChildClock(VOID);
VOID HalpForkChildKeeper(VOID);
VOID HalpForkChildLibc(VOID);
VOID HalpDeferFrees(BOOLEAN Defer);
VOID HalpRegisterLateForkHandlers(VOID); /* init.c; with the first thread */

VOID HalpUnblockInterrupt(VOID);
VOID HalpOutwaitStores(VOID); /* machine.c: until every store that was made is visible */
BOOLEAN HalpIsSignalOnItsWay(ULONG ThreadId, int Signal); /* threadinfo.c; see HalIsInterruptOnItsWay */

/* insidelibc.c, for the current thread. */
VOID HalpInitializeLibc(VOID);
BOOLEAN HalpIsInsideLibc(const VOID *Context);           /* at each interrupt; Context: the handler's */
HAL_LATER HalpInterruptLater(int Signal, PVOID Value);
BOOLEAN HalpHasTimer(int Signal, PVOID Value);
VOID HalpCancelInterruptLater(VOID);                     /* before the thread ends */

extern volatile ULONG64 HalpFailedReads; /* reads of HalReadPointerOrFault that faulted */

#endif
