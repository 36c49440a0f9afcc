/* tracep.h: what recording.c and events.c share. */
#ifndef INTERLOCK_TRACEP_H
#define INTERLOCK_TRACEP_H

#include "recording.h"
#include "trace.h"

/* A thread's room. */
typedef struct _TRACE_THREAD {
    PTRACE_TRACK Track;             /* where the thread records; NULL: nowhere yet */
    ULONG Beginning;                /* of the recording in which it last did */
    ULONG64 Flow;                   /* the wake that ends its wait; the waker stores it before it stores WakeWord */
    TRACE_CONTENTION Mutant;        /* the mutant that it waits for */
} TRACE_THREAD, *PTRACE_THREAD;

KI_THREAD_ROOM(TRACE_THREAD, Trace, TracepThread);

extern TRACE_RECORDING TraceRecording[]; /* by TRACE_CONTENT */

ULONG TracepBeginPostponed(VOID);

static inline BOOLEAN TracepRecords(TRACE_CONTENT Content)
{
    ULONG Active = __atomic_load_n(&TraceActive, __ATOMIC_RELAXED);
    if (Active >= 1u << TRACE_POSTPONED) {
        Active = TracepBeginPostponed();
    }
    return (Active & (1u << Content)) != 0;
}

/* events.c */
VOID TracepForgetTracks(VOID);                  /* in a forked child, which has no other thread */
VOID TracepForgetContention(PTRACE_FILE File);  /* what an earlier recording counted */
VOID TracepFinishTrackNames(PTRACE_FILE File);  /* the process ends: tracks keep their threads */

#endif
