/*
 * trace.h: the hooks of tracing. A hook is a static probe for the host's tools (hal/hal.h) and a call of the recorder,
 * which INTERLOCK_TRACE and INTERLOCK_CONTENTION turn on when the library is loaded (recording.c).
 *
 * Hooks are only on paths that block, spin or wake a thread. Operations that complete with one compare-exchange (a
 * signal without waiters, a wait for an object that is already signaled, an uncontended acquire) have none, not even a
 * nop: to see those, put a probe of the host on the exported function.
 *
 * An unused probe is a nop; a recorder that is off is a load and a branch. The simulated machine has neither.
 */
#ifndef INTERLOCK_TRACE_H
#define INTERLOCK_TRACE_H

#include "tracefile.h"

#include "../ke/ki.h"

#ifdef INTERLOCK_TRACING

struct _KI_WAIT;

/* An acquire that is being recorded. */
typedef struct _TRACE_CONTENTION {
    ULONG64 Begin;                     /* 0: it is not */
    struct _TRACE_CONTENTION_ENTRY *Entry;
    PVOID Lock;
    KI_LOCK_KIND Kind;
    BOOLEAN Exclusive;
} TRACE_CONTENTION, *PTRACE_CONTENTION;

extern ULONG TraceActive; /* what is recorded (tracep.h); 0: nothing */

FORCEINLINE BOOLEAN TraceIsActive(VOID)
{
    /* relaxed: changes only before the first wait and when the process ends */
    return __builtin_expect(__atomic_load_n(&TraceActive, __ATOMIC_RELAXED) != 0, FALSE);
}

VOID TraceInitialize(VOID);
VOID TraceForkChild(VOID);
VOID TraceFinish(BOOLEAN Orderly); /* the process is about to end; Orderly: its heap can be used */
VOID TraceThreadName(PKTHREAD Thread, PCSTR Name);
VOID TraceThreadEnd(PKTHREAD Thread);
VOID TraceWaitBegin(struct _KI_WAIT *Wait);
VOID TraceWaitEnd(struct _KI_WAIT *Wait, LONG_PTR Result);
VOID TraceSignaled(PDISPATCHER_HEADER Header, ULONG64 Word, ULONG64 Begin);
VOID TraceWoken(PKTHREAD Thread);
VOID TraceContended(PTRACE_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner);
VOID TraceAcquired(PTRACE_CONTENTION Contention);
VOID TraceGivenUp(PTRACE_CONTENTION Contention);
VOID TraceReleasing(PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, PKTHREAD Holder);
VOID TraceReleased(BOOLEAN Last);

/* Around the part of a wait in which the thread sleeps. */
#define KTRACE_WAIT_BEGIN(Wait)                                                                                        \
    do {                                                                                                               \
        HAL_PROBE4(wait_begin, (Wait)->Thread, (Wait)->Thread->WaitBlockList, (ULONG)(Wait)->Thread->WaitBlockCount,   \
                   (Wait)->Reason);                                                                                    \
        if (TraceIsActive()) {                                                                                           \
            TraceWaitBegin(Wait);                                                                                    \
        }                                                                                                              \
    } while (0)

#define KTRACE_WAIT_END(Wait, Result)                                                                                  \
    do {                                                                                                               \
        HAL_PROBE4(wait_end, (Wait)->Thread, (Wait)->Thread->WaitBlockList, (ULONG)(Wait)->Thread->WaitBlockCount,     \
                   Result);                                                                                            \
        if (TraceIsActive()) {                                                                                           \
            TraceWaitEnd(Wait, Result);                                                                              \
        }                                                                                                              \
    } while (0)

/* KTRACE_NOW when a signal begins, KTRACE_SIGNAL after it has woken its waiters. The object may be freed by then: Word
   has its first eight bytes from before. */
#define KTRACE_NOW() (TraceIsActive() ? HalQueryNanoseconds() : 0)
#define KTRACE_SIGNAL(Header, Word, Begin)                                                                             \
    do {                                                                                                               \
        HAL_PROBE2(signal, Header, Word);                                                                              \
        if (TraceIsActive()) {                                                                                           \
            TraceSignaled(Header, Word, Begin);                                                                      \
        }                                                                                                              \
    } while (0)

/* After Thread's wait has been ended by another thread, before Thread is woken. */
#define KTRACE_WAKE(Thread)                                                                                            \
    do {                                                                                                               \
        HAL_PROBE2(wake, Thread, (Thread)->WaitStatus);                                                                \
        if (TraceIsActive()) {                                                                                           \
            TraceWoken(Thread);                                                                                      \
        }                                                                                                              \
    } while (0)

/* Around the slow path of an acquire. Owner: the owner's thread id, 0: unknown. */
#define KTRACE_CONTENTION_BEGIN(Lock, Kind, Exclusive, Owner)                                                          \
    TRACE_CONTENTION TraceAcquiring = {.Begin = 0};                                                                          \
    do {                                                                                                               \
        HAL_PROBE3(contention_begin, Lock, Kind, (ULONG)(Exclusive));                                                  \
        if (TraceIsActive()) {                                                                                           \
            TraceContended(&TraceAcquiring, (PVOID)(Lock), (KI_LOCK_KIND)(Kind), Exclusive, Owner);                    \
        }                                                                                                              \
    } while (0)

#define KTRACE_CONTENTION_END(Lock, Kind, Exclusive)                                                                   \
    do {                                                                                                               \
        HAL_PROBE3(contention_end, Lock, Kind, (ULONG)(Exclusive));                                                    \
        if (TraceIsActive()) {                                                                                           \
            TraceAcquired(&TraceAcquiring);                                                                            \
        }                                                                                                              \
    } while (0)

/* Instead of the end: the thread no longer waits, and has not acquired the lock. */
#define KTRACE_CONTENTION_GIVEN_UP()                                                                                   \
    do {                                                                                                               \
        if (TraceIsActive()) {                                                                                         \
            TraceGivenUp(&TraceAcquiring);                                                                             \
        }                                                                                                              \
    } while (0)

/*
 * Around the release of a lock that has waiters: KTRACE_RELEASING before it can be acquired, KTRACE_RELEASED afterwards on
 * the same thread, which captures the stack when no thread waits for it. Neither accesses the lock, which may be freed.
 * A release that retries may repeat the first one. Holder: the thread whose hold ends. Last: no other thread still
 * holds it.
 */
#define KTRACE_RELEASING(Lock, Kind, Exclusive, Holder)                                                                \
    do {                                                                                                               \
        HAL_PROBE3(contended_release, Lock, Kind, (ULONG)(Exclusive));                                                 \
        if (TraceIsActive()) {                                                                                         \
            TraceReleasing((PVOID)(Lock), (KI_LOCK_KIND)(Kind), Exclusive, Holder);                                    \
        }                                                                                                              \
    } while (0)

#define KTRACE_RELEASED(Last)                                                                                          \
    do {                                                                                                               \
        if (TraceIsActive()) {                                                                                         \
            TraceReleased(Last);                                                                                       \
        }                                                                                                              \
    } while (0)

#define KTRACE_THREAD_END(Thread)                                                                                      \
    do {                                                                                                               \
        if (TraceIsActive()) {                                                                                           \
            TraceThreadEnd(Thread);                                                                                  \
        }                                                                                                              \
    } while (0)

#define KTRACE_INITIALIZE() TraceInitialize()
#define KTRACE_FORK_CHILD() TraceForkChild()
#define KTRACE_FINISH(Orderly) TraceFinish(Orderly)
/* A lock's number of waits, for the debugger only. relaxed: statistics. In the simulated machine it would be a step. */
#define KTRACE_COUNT(Counter) ((VOID)__atomic_add_fetch(Counter, 1, __ATOMIC_RELAXED))
#define KTRACE_THREAD_NAME(Thread, Name)                                                                               \
    do {                                                                                                               \
        if (TraceIsActive()) {                                                                                           \
            TraceThreadName(Thread, Name);                                                                           \
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
#define KTRACE_CONTENTION_GIVEN_UP() ((VOID)0)
#define KTRACE_RELEASING(Lock, Kind, Exclusive, Holder)                                                                \
    do {                                                                                                               \
        if (0) {                                                                                                       \
            (VOID)(Lock), (VOID)(Kind), (VOID)(Exclusive), (VOID)(Holder);                                             \
        }                                                                                                              \
    } while (0)
#define KTRACE_RELEASED(Last) ((VOID)0)
#define KTRACE_THREAD_END(Thread) ((VOID)0)
#define KTRACE_INITIALIZE() ((VOID)0)
#define KTRACE_FORK_CHILD() ((VOID)0)
#define KTRACE_FINISH(Orderly) ((VOID)0)
#define KTRACE_COUNT(Counter) ((VOID)(Counter))
#define KTRACE_THREAD_NAME(Thread, Name) ((VOID)0)

#endif

#endif
