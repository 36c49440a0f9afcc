/* tracep.h: what recording.c and contention.c share. */
#ifndef INTERLOCK_TRACEP_H
#define INTERLOCK_TRACEP_H

#include "trace.h"

/* A hold that ends. */
typedef struct _TRACE_RELEASE {
    PVOID Lock;
    ULONG64 Begin, End;             /* of the part that others waited for */
    ULONG64 Blocked;                /* how long they have waited for it, all together */
    ULONG Waiters;                  /* 0: none, it is not recorded */
    ULONG Holder;                   /* its id */
    KI_LOCK_KIND Kind;
    BOOLEAN Exclusive;
} TRACE_RELEASE, *PTRACE_RELEASE;

/* A thread's room. */
typedef struct _TRACE_THREAD {
    PTRACE_TRACK Track;             /* where the thread records; NULL: nowhere yet */
    ULONG Beginning;                /* of the recording in which it last did */
    ULONG64 Flow;                   /* the wake that ends its wait; the waker stores it before it stores WakeWord */
} TRACE_THREAD, *PTRACE_THREAD;

KI_THREAD_ROOM(TRACE_THREAD, Trace, TracepThread);

extern TRACE_RECORDING TraceRecording[]; /* by TRACE_CONTENT */

ULONG TracepBeginPostponed(VOID);

static inline BOOLEAN TracepRecords(TRACE_CONTENT Content)
{
    /* acquire: pairs with the release in TracepCreate; the file and its start time are visible */
    ULONG Active = __atomic_load_n(&TraceActive, __ATOMIC_ACQUIRE);
    if (Active >= 1u << TRACE_POSTPONED) {
        Active = TracepBeginPostponed();
    }
    return (Active & (1u << Content)) != 0;
}

/* recording.c */
PTRACE_EVENT TracepOpenEvent(PKTHREAD Thread);
VOID TracepCloseEvent(PKTHREAD Thread);
VOID TracepRecordHold(const TRACE_RELEASE *Release);
ULONG TracepIdOf(PKTHREAD Thread);
VOID TracepCountDropped(PTRACE_FILE File);

/* contention.c */
VOID TracepForgetContention(PTRACE_FILE File);  /* what an earlier recording counted */
VOID TracepForgetWaiters(VOID);                 /* of every lock: those of an earlier recording, or of the parent */
VOID TracepBeginMutantWait(PKTHREAD Thread, PKMUTANT Mutant);
VOID TracepEndMutantWait(PKTHREAD Thread, BOOLEAN Acquired);
VOID TracepAbandonAcquires(PKTHREAD Thread);    /* it ended inside them */

#endif
