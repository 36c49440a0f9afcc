/* halp.h: what the files of the Linux host share. */
#ifndef INTERLOCK_HALP_H
#define INTERLOCK_HALP_H

#include "hal.h"

#include <time.h>

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

extern HAL_CALLBACKS HalpCallbacks;

/* dispatch.c. FALSE: the deadline never comes. */
BOOLEAN HalpDeadlineToTimespec(const HAL_DEADLINE *Deadline, struct timespec *Host);
struct timespec HalpIntervalToTimespec(ULONGLONG Interval);
VOID HalpInitializeClocks(VOID);

/* processor.c, thread.c, interrupt.c, priority.c, diag.c: called once by HalInitialize, in this order. */
VOID HalpInitializeProcessors(VOID);
VOID HalpInitializeThreads(VOID);
VOID HalpInitializeInterrupt(VOID);
VOID HalpInitializeBarrier(VOID);
VOID HalpInitializePriorities(VOID);
VOID HalpInitializeStackTrace(VOID);

/* Before Callbacks.ForkChild: forget what belongs to the parent. */
VOID HalpForkChildThread(VOID);
VOID HalpForkChildClock(VOID);
VOID HalpForkChildLibrary(VOID);

VOID HalpUnblockInterrupt(VOID);

/* library.c, for the thread that runs. */
VOID HalpInitializeLibrary(VOID);
BOOLEAN HalpIsInLibrary(const VOID *Context);            /* at each interrupt; Context: the host's, of where it was */
BOOLEAN HalpInterruptLater(int Signal, PVOID Value);     /* FALSE: it cannot be, or was so often enough */
VOID HalpCancelInterruptLater(VOID);                     /* before the thread ends */

extern volatile ULONG64 HalpFailedReads; /* reads of HalReadPointerOrFault that found nothing there */

#endif
