/*
 * hal.h: what the host machine gives. Everything above this folder runs on any host that implements this header; the
 * explorer links its own simulated one.
 */
#ifndef INTERLOCK_HAL_H
#define INTERLOCK_HAL_H

#include <interlock/ntdef.h>
#include <interlock/interlocked.h>
#include <interlock/ntstatus.h>

/* The moment at which a wait gives up. Times are in 100 ns. */
typedef enum _HAL_CLOCK {
    HalNoDeadline,
    HalInterruptTime, /* since boot, never steps */
    HalSystemTime     /* since 1601, follows clock steps */
} HAL_CLOCK;

typedef struct _HAL_DEADLINE {
    HAL_CLOCK Clock;
    ULONGLONG Time;
} HAL_DEADLINE, *PHAL_DEADLINE;

/*
 * The operations that tests replace. Wait blocks while *Address == Expected and may return early for no reason; it
 * returns FALSE only when the deadline has passed. Wake wakes at most Count threads blocked on Address.
 * CurrentProcessor is the host's number: a hint, and not always below HalProcessorCount.
 */
typedef struct _HAL_DISPATCH {
    BOOLEAN (*Wait)(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline);
    VOID (*Wake)(volatile ULONG *Address, ULONG Count);
    ULONGLONG (*QueryInterruptTime)(VOID);
    ULONGLONG (*QuerySystemTime)(VOID);
    VOID (*Yield)(VOID);
    ULONG (*CurrentProcessor)(VOID);
} HAL_DISPATCH;

extern HAL_DISPATCH HalDispatch;

/* The thread that runs, or NULL before it was adopted. */
struct _KTHREAD;
extern __thread struct _KTHREAD *HalCurrentThread __attribute__((tls_model("initial-exec")));

/* What the host tells the layers above; ke sets them once, before anything else of hal is used. */
typedef struct _HAL_CALLBACKS {
    VOID (*ThreadExit)(struct _KTHREAD *Thread); /* on the exiting host thread, with HalCurrentThread still set */
    VOID (*Interrupt)(VOID);                     /* on the interrupted host thread, asynchronously, never nested: it
                                                    returns or ends the thread */
    VOID (*ForkPrepare)(VOID);
    VOID (*ForkParent)(VOID);
    VOID (*ForkChild)(VOID);
} HAL_CALLBACKS;

VOID HalInitialize(const HAL_CALLBACKS *Callbacks);

/* Host threads. Ids are the host's and fit in 32 bits. */
ULONG HalCurrentThreadId(VOID);
ULONG HalCurrentProcessId(VOID);
NTSTATUS HalCreateThread(VOID (*StartRoutine)(PVOID), PVOID Context, SIZE_T StackSize, PCSTR Name);
DECLSPEC_NORETURN VOID HalExitThread(VOID);
/* Adopts: Callbacks.ThreadExit will run for this thread, and interrupts reach it. NULL: it need not run any more. */
VOID HalWatchThreadExit(struct _KTHREAD *Thread);
/* Callbacks.Interrupt runs on that thread soon; several may become one. INTERLOCK_SIGNAL, see interrupt.c. */
VOID HalInterruptThread(ULONG ThreadId);
BOOLEAN HalBarrierAllThreads(VOID);                 /* every running thread passes a full barrier; FALSE: not offered */
BOOLEAN HalSetThreadPriority(ULONG ThreadId, LONG NtPriority); /* FALSE: the process may not */

/* Processors. */
ULONG HalProcessorCount(VOID);
BOOLEAN HalOtherProcessorAvailable(VOID);           /* can anybody else run while a thread of this process spins? As of when the library was loaded */
ULONG HalSpinsForCycles(ULONG NtCycles);            /* pauses that last as long as NT spins for that many cycles */
FORCEINLINE VOID HalPause(VOID) { YieldProcessor(); }
VOID HalLongSpin(ULONG Round);                      /* a spin that lasts: gives the CPU away, harder with every round */

/* The sleep of the clock thread, the only one here: until *Wake != Expected, or either deadline, or a step of the
   system clock, or for no reason. 0: no deadline. Whoever has changed *Wake calls HalClockWake. */
VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime);
VOID HalClockWake(volatile ULONG *Wake);
ULONGLONG HalQueryPerformanceCounter(VOID);         /* in units of HAL_PERFORMANCE_FREQUENCY */
#define HAL_PERFORMANCE_FREQUENCY 10000000ULL

/* Memory: never used on a wait, signal, acquire or release path. */
PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment);   /* zeroed; NULL when there is none */
VOID HalFree(PVOID Memory);

/* Reading memory that another thread may unmap at any time. */
typedef struct _HAL_READ {
    PVOID Value;
    ULONG_PTR Readable;                             /* 0: the address cannot be read, Value says nothing */
} HAL_READ;

HAL_READ HalReadPointerOrFault(PVOID volatile *Address);

/* Diagnostics. */
PCSTR HalGetEnvironment(PCSTR Name);
VOID HalPrint(PCSTR Format, ...) __attribute__((format(printf, 1, 2))); /* to standard error, safe in any context */
VOID HalPrintStackTrace(ULONG FramesToSkip);
DECLSPEC_NORETURN VOID HalAbort(VOID);

#endif
