/* recording.h: the recordings in progress, for the library and for a debugger that requests one. */
#ifndef INTERLOCK_RECORDING_H
#define INTERLOCK_RECORDING_H

#include "tracefile.h"

#include "../hal/hal.h"

#define TRACE_CONTENTION_ENTRIES 8192

typedef struct _TRACE_RECORDING {
    PCSTR Setting;
    PTRACE_FILE File;               /* permanent once begun: a thread may still write when recording stops */
    SIZE_T Size;
    HAL_OPEN_FILE Open;             /* of File */
    ULONG Beginnings;               /* how often recording was begun */
    CHAR Pattern[HAL_LONGEST_PATH]; /* absolute, with %p for the process id; empty: in memory, for a debugger */
    CHAR Path[HAL_LONGEST_PATH];    /* of the file; empty: it is in memory only */
    BOOLEAN Convert;                /* Output gets JSON, not the recording itself */
    HAL_OUTPUT Output;              /* what the user named; never opened if that is Path */
} TRACE_RECORDING, *PTRACE_RECORDING;

/*
 * TraceActive has a bit for each TRACE_CONTENT that is recorded. TRACE_POSTPONED bits above it is another one: that
 * recording begins with the next event. So begin
 * 1. forked children: most exec at once and leave no file behind;
 * 2. recordings that a debugger requests by writing the bit into the process. It stops them by clearing both bits, and
 *    may start and stop any number of times. The memory stays, and so does what a thread finds in its room.
 */
#define TRACE_POSTPONED 8
#define TRACE_CONTENTS 0xffu

/* What a debugger reads and writes of a TRACE_RECORDING. */
#define TRACE_RECORDING_LAYOUT                                                                                         \
    sizeof(TRACE_RECORDING), FIELD_OFFSET(TRACE_RECORDING, File), FIELD_OFFSET(TRACE_RECORDING, Size),                 \
        FIELD_OFFSET(TRACE_RECORDING, Open), FIELD_OFFSET(TRACE_RECORDING, Pattern)

#endif
