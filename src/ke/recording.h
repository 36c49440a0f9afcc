/* recording.h: what the files that record share: recording.c, trace.c, tracecontention.c. */
#ifndef INTERLOCK_RECORDING_H
#define INTERLOCK_RECORDING_H

#include "trace.h"

#define KI_CONTENTION_ENTRIES 8192

typedef struct _KI_RECORDING {
    PCSTR Setting;
    PKI_TRACE_FILE File;
    SIZE_T Size;
    LONG Descriptor;
    CHAR Pattern[HAL_LONGEST_PATH]; /* absolute, with %p for the id of the process */
    CHAR Path[HAL_LONGEST_PATH];    /* of the file; empty: it is only in memory */
    BOOLEAN Convert;                /* Output gets a trace for people's tools, not the recording itself */
    HAL_OUTPUT Output;              /* what the user has named; where Path is that, it is never opened */
} KI_RECORDING, *PKI_RECORDING;

extern KI_RECORDING KiRecording[]; /* by KI_TRACE_CONTENT */

/*
 * KiTracing has a bit for each KI_TRACE_CONTENT that is recorded, and above KI_TRACE_POSTPONED one for each that a forked
 * child is to record from the first event on: most children become another program at once, and leave nothing behind.
 */
#define KI_TRACE_POSTPONED 8
#define KI_TRACE_CONTENTS 0xffu

ULONG KiBeginPostponed(VOID);

static inline BOOLEAN KiRecords(KI_TRACE_CONTENT Content)
{
    ULONG Tracing = __atomic_load_n(&KiTracing, __ATOMIC_RELAXED);
    if (Tracing >= 1u << KI_TRACE_POSTPONED) {
        Tracing = KiBeginPostponed();
    }
    return (Tracing & (1u << Content)) != 0;
}

static inline VOID KiCountDropped(PKI_TRACE_FILE File, ULONG64 Number)
{
    /* relaxed: a statistic */
    __atomic_fetch_add(&File->Dropped, Number, __ATOMIC_RELAXED);
}

/* trace.c: what the thread is in the middle of; the kind is stored last, by the caller. NULL: it is not kept. */
PKI_TRACE_EVENT KiOpenEvent(PKTHREAD Thread);
VOID KiCloseEvent(PKTHREAD Thread);
VOID KiForgetTracks(VOID);
VOID KiFinishTrackNames(PKI_TRACE_FILE File);

/* tracecontention.c */
VOID KiEnterContention(PKI_CONTENTION Contention, ULONG64 Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner);
VOID KiLeaveContention(PKI_CONTENTION Contention);

#endif
