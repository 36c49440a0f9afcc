/*
 * trace.h: where the library tells what blocks, and who ends that: static probes for the host's tools (hal/probe.h),
 * and the recording that INTERLOCK_TRACE and INTERLOCK_CONTENTION turn on when the library is loaded (recording.c).
 *
 * All of these are on paths that block, spin or wake somebody. What is done at one stroke (a signal that nobody waits
 * for, a wait that is satisfied, an acquire of a free lock) has none, not even a nop: whoever wants to see those too
 * can put a probe of the host on the exported function itself.
 *
 * A probe that nobody uses is a nop, recording that is off a load and a branch. The simulated machine has neither.
 */
#ifndef INTERLOCK_KE_TRACE_H
#define INTERLOCK_KE_TRACE_H

#include "ki.h"
#include "tracefile.h"

#include "../hal/probe.h"

#ifdef INTERLOCK_TRACING

struct _KI_WAIT;

extern ULONG KiTracing; /* what is recorded; 0: nothing */

FORCEINLINE BOOLEAN KiIsTracing(VOID)
{
    /* relaxed: changes before the first thread waits, and at the end of the process */
    return __builtin_expect(__atomic_load_n(&KiTracing, __ATOMIC_RELAXED) != 0, FALSE);
}

VOID KiInitializeTrace(VOID);
VOID KiTraceForkChild(VOID);
VOID KiFinishTrace(BOOLEAN Orderly); /* the process is about to end; FALSE: its heap is not to be touched */
VOID KiTraceThreadName(PKTHREAD Thread, PCSTR Name);
VOID KiTraceThreadEnd(PKTHREAD Thread);
VOID KiTraceWaitBegin(struct _KI_WAIT *Wait);
VOID KiTraceWaitEnd(struct _KI_WAIT *Wait, LONG_PTR Result);
VOID KiTraceSignaled(PDISPATCHER_HEADER Header, ULONG64 Word, ULONG64 Begin);
VOID KiTraceWoken(PKTHREAD Thread);
VOID KiTraceContended(PKI_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner);
VOID KiTraceAcquired(PKI_CONTENTION Contention);

/* Around the part of a wait in which the thread is off the processor. */
#define KTRACE_WAIT_BEGIN(Wait)                                                                                        \
    do {                                                                                                               \
        HAL_PROBE4(wait_begin, (Wait)->Thread, (Wait)->Thread->WaitBlockList, (ULONG)(Wait)->Thread->WaitBlockCount,   \
                   (Wait)->Reason);                                                                                    \
        if (KiIsTracing()) {                                                                                           \
            KiTraceWaitBegin(Wait);                                                                                    \
        }                                                                                                              \
    } while (0)

#define KTRACE_WAIT_END(Wait, Result)                                                                                  \
    do {                                                                                                               \
        HAL_PROBE4(wait_end, (Wait)->Thread, (Wait)->Thread->WaitBlockList, (ULONG)(Wait)->Thread->WaitBlockCount,     \
                   Result);                                                                                            \
        if (KiIsTracing()) {                                                                                           \
            KiTraceWaitEnd(Wait, Result);                                                                              \
        }                                                                                                              \
    } while (0)

/* When a signal began, and after those it releases were woken: the object, that had the first eight bytes Word, may be
   gone by then. */
#define KTRACE_NOW() (KiIsTracing() ? HalQueryNanoseconds() : 0)
#define KTRACE_SIGNAL(Header, Word, Begin)                                                                             \
    do {                                                                                                               \
        HAL_PROBE2(signal, Header, Word);                                                                              \
        if (KiIsTracing()) {                                                                                           \
            KiTraceSignaled(Header, Word, Begin);                                                                      \
        }                                                                                                              \
    } while (0)

/* Before Thread, whose wait somebody else has ended, is told. */
#define KTRACE_WAKE(Thread)                                                                                            \
    do {                                                                                                               \
        HAL_PROBE2(wake, Thread, (Thread)->WaitStatus);                                                                \
        if (KiIsTracing()) {                                                                                           \
            KiTraceWoken(Thread);                                                                                      \
        }                                                                                                              \
    } while (0)

/* An acquire that has not got its lock at the first try, until it has. Owner: the id of who has it, 0: not known. */
#define KTRACE_CONTENTION_BEGIN(Lock, Kind, Exclusive, Owner)                                                          \
    KI_CONTENTION KiContention = {0, NULL};                                                                            \
    do {                                                                                                               \
        HAL_PROBE3(contention_begin, Lock, Kind, (ULONG)(Exclusive));                                                  \
        if (KiIsTracing()) {                                                                                           \
            KiTraceContended(&KiContention, (PVOID)(Lock), (KI_LOCK_KIND)(Kind), Exclusive, Owner);                    \
        }                                                                                                              \
    } while (0)

#define KTRACE_CONTENTION_END(Lock, Kind, Exclusive)                                                                   \
    do {                                                                                                               \
        HAL_PROBE3(contention_end, Lock, Kind, (ULONG)(Exclusive));                                                    \
        if (KiIsTracing()) {                                                                                           \
            KiTraceAcquired(&KiContention);                                                                            \
        }                                                                                                              \
    } while (0)

#define KTRACE_THREAD_END(Thread)                                                                                      \
    do {                                                                                                               \
        if (KiIsTracing()) {                                                                                           \
            KiTraceThreadEnd(Thread);                                                                                  \
        }                                                                                                              \
    } while (0)

#define KTRACE_INITIALIZE() KiInitializeTrace()
#define KTRACE_FORK_CHILD() KiTraceForkChild()
#define KTRACE_FINISH(Orderly) KiFinishTrace(Orderly)
#define KTRACE_THREAD_NAME(Thread, Name)                                                                               \
    do {                                                                                                               \
        if (KiIsTracing()) {                                                                                           \
            KiTraceThreadName(Thread, Name);                                                                           \
        }                                                                                                              \
    } while (0)

#else

#define KTRACE_WAIT_BEGIN(Wait) ((VOID)0)
#define KTRACE_WAIT_END(Wait, Result) ((VOID)0)
#define KTRACE_NOW() 0
#define KTRACE_SIGNAL(Header, Word, Begin) ((VOID)(Begin))
#define KTRACE_WAKE(Thread) ((VOID)0)
#define KTRACE_CONTENTION_BEGIN(Lock, Kind, Exclusive, Owner)                                                          \
    do {                                                                                                               \
        if (0) {                                                                                                       \
            (VOID)(Kind), (VOID)(Owner);                                                                               \
        }                                                                                                              \
    } while (0)
#define KTRACE_CONTENTION_END(Lock, Kind, Exclusive) ((VOID)0)
#define KTRACE_THREAD_END(Thread) ((VOID)0)
#define KTRACE_INITIALIZE() ((VOID)0)
#define KTRACE_FORK_CHILD() ((VOID)0)
#define KTRACE_FINISH(Orderly) ((VOID)0)
#define KTRACE_THREAD_NAME(Thread, Name) ((VOID)0)

#endif

#endif
