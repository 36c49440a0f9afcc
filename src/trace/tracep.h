/* tracep.h: what recording.c and events.c share. */
#ifndef INTERLOCK_TRACEP_H
#define INTERLOCK_TRACEP_H

#include "trace.h"

#define TRACE_CONTENTION_ENTRIES 8192

/* A thread's room. */
typedef struct _TRACE_THREAD {
    PTRACE_TRACK Track;             /* where the thread records; NULL: nowhere yet */
    ULONG64 Flow;                   /* the wake that ends its wait; the waker stores it before it stores WakeWord */
    TRACE_CONTENTION Mutant;        /* the mutant that it waits for */
} TRACE_THREAD, *PTRACE_THREAD;

KI_THREAD_ROOM(TRACE_THREAD, Trace, TracepThread);

typedef struct _TRACE_RECORDING {
    PCSTR Setting;
    PTRACE_FILE File;
    SIZE_T Size;
    LONG Descriptor;
    CHAR Pattern[HAL_LONGEST_PATH]; /* absolute, with %p for the process id */
    CHAR Path[HAL_LONGEST_PATH];    /* of the file; empty: it is in memory only */
    BOOLEAN Convert;                /* Output gets JSON, not the recording itself */
    HAL_OUTPUT Output;              /* what the user named; never opened if that is Path */
} TRACE_RECORDING, *PTRACE_RECORDING;

extern TRACE_RECORDING TraceRecording[]; /* by TRACE_CONTENT */

/*
 * TraceActive has a bit for each TRACE_CONTENT that is recorded. TRACE_POSTPONED bits above it is another one: a forked
 * child starts that recording with its first event. Most children exec at once and leave no file behind.
 */
#define TRACE_POSTPONED 8
#define TRACE_CONTENTS 0xffu

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
VOID TracepFinishTrackNames(PTRACE_FILE File);  /* the process ends: tracks keep their threads */

#endif
