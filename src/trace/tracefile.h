/*
 * tracefile.h: the file that a traced process leaves behind. The process has it mapped, so its contents survive any end
 * of the process.
 *
 *     +--------+---------+------------------------------------------------------+
 *     | header | modules | units: tracks and chunks, or contended acquires      |
 *     +--------+---------+------------------------------------------------------+
 *
 * A trace consists of units of 4096 bytes. A track belongs to one thread at a time: it has the thread's name, the events
 * that the thread has begun and not ended, and a list of chunks. A chunk holds events, each with its thread's id. Units
 * are allocated in order and never freed.
 *
 * 1. Only its thread writes a track and the track's chunks, except for the name and the end of the track. Events take no
 *    lock.
 * 2. An event is written when it ends. Events that have begun are in Open, outermost first: a process that hangs and is
 *    killed shows where it hung.
 * 3. Events become visible by Count, which is stored after them. If the process still writes, a reader may see the last
 *    few events of a track replaced, never anything outside the file.
 * 4. A thread that ends leaves its open events and its name as events, and the track to the next thread that starts,
 *    which continues after them. So there are as many tracks as threads that ran at a time, and a short-lived thread
 *    costs the room of its events. Once the process ends no thread leaves its track. So the name of a thread is on its
 *    track or after its events, and is not overwritten before them.
 * 5. A track that finds no free unit overwrites its own oldest chunk, and counts the events that it drops. A track with
 *    several chunks leaves the last quarter of the units to others. Events of a thread that finds no room for a track
 *    are counted.
 *
 * A reader checks every number: the file is not trusted.
 */
#ifndef INTERLOCK_TRACEFILE_H
#define INTERLOCK_TRACEFILE_H

#include "../hal/hal.h"

#include <interlock/ke.h>

#define TRACE_MAGIC 0x3345434152544b49ull /* IKTRACE3 */
#define TRACE_UNIT 4096
#define TRACE_MODULES (256 * 1024)
#define TRACE_NAME 32

typedef enum _TRACE_CONTENT {
    TraceEvents,
    TraceContention
} TRACE_CONTENT;

/* Times are in nanoseconds of the host's monotonic clock. */
typedef struct _TRACE_FILE {
    ULONG64 Magic;
    ULONG Content;            /* TRACE_CONTENT */
    ULONG ProcessId;
    ULONG64 Start;            /* of this recording; older events are of one that a debugger stopped */
    volatile ULONG64 End;     /* 0: the process did not end in order */
    ULONG ModulesLength;      /* the host's list of modules, as text */
    ULONG Units;              /* in the file: tracks and chunks, or contended acquires */
    volatile ULONG UnitsUsed;
    volatile ULONG FirstTrack; /* number of the newest track + 1, see TRACE_TRACK.Next */
    volatile ULONG64 Dropped; /* events that found no room */
    CHAR Program[TRACE_NAME];
    ULONG64 Reserved[(TRACE_UNIT - 88) / sizeof(ULONG64)];
    CHAR Modules[TRACE_MODULES];
} TRACE_FILE, *PTRACE_FILE;

C_ASSERT(sizeof(TRACE_FILE) == TRACE_UNIT + TRACE_MODULES);

/* A pushlock is 0: the default of whatever does not name its kind. */
typedef enum _KI_LOCK_KIND {
    KiLockPushLock,
    KiLockSRWLock,
    KiLockFastMutex,
    KiLockGuardedMutex,
    KiLockResource,
    KiLockCriticalSection,
    KiLockMutant,
    KiLockSpinLock,
    KiLockRtlResource,
    KiLockKinds
} KI_LOCK_KIND;

typedef enum _TRACE_KIND {
    TraceNothing,
    TraceWait,    /* Object ended it, or is the first; Argument: timeout in 100 ns; Flow: the wake, or 0 */
    TraceAcquire, /* Object: the lock; Type: KI_LOCK_KIND; Argument: the owner's id */
    TraceSignal,  /* Status: the previous state */
    TraceWake,    /* Argument: the thread's id; Status: how its wait ends; Flow: this wake */
    TraceHold,    /* Object: the lock; Type: KI_LOCK_KIND; Argument: the threads that waited when it was released */
    TraceEnded      /* Name: of the thread, which ended at End; not counted as an event */
} TRACE_KIND;

#define TRACE_ALL 0x01        /* WaitAll */
#define TRACE_ALERTABLE 0x02
#define TRACE_USER_MODE 0x04
#define TRACE_TIMEOUT 0x08    /* Argument is one */
#define TRACE_EXCLUSIVE 0x10
#define TRACE_HINT 0x20       /* Object is an address, not an object */
#define TRACE_UNFINISHED 0x40 /* the thread ended before the event did */

typedef struct _TRACE_EVENT {
    ULONG64 Begin;
    ULONG64 End;
    union {
        struct {
            ULONG64 Object;
            ULONG64 Argument;
            ULONG64 Flow;
            LONG Status;
            ULONG ObjectThread; /* thread id, if the object is a thread */
        };
        CHAR Name[TRACE_NAME];
    };
    ULONG ThreadId;           /* of the thread that recorded it */
    USHORT Count;             /* objects waited for */
    UCHAR Kind;               /* TRACE_KIND */
    UCHAR Type;               /* of the object, or KI_LOCK_KIND */
    UCHAR Reason;
    UCHAR Flags;
    UCHAR Reserved[6];
} TRACE_EVENT, *PTRACE_EVENT;

C_ASSERT(sizeof(TRACE_EVENT) == 64);

#define TRACE_CHUNK_EVENTS (TRACE_UNIT / sizeof(TRACE_EVENT) - 1)
#define TRACE_DEPTH 16

typedef struct _TRACE_CHUNK {
    volatile ULONG Next;      /* number of the next newer chunk + 1 */
    volatile ULONG Count;
    ULONG64 Reserved[7];
    TRACE_EVENT Event[TRACE_CHUNK_EVENTS];
} TRACE_CHUNK, *PTRACE_CHUNK;

C_ASSERT(sizeof(TRACE_CHUNK) == TRACE_UNIT);

typedef enum _TRACE_TRACK_STATE {
    TraceTrackLive,              /* Name is its thread's */
    TraceTrackEnded,             /* its thread ended, with its name among the events; another thread may take the track */
    TraceTrackTaken              /* by a thread that is starting to record */
} TRACE_TRACK_STATE;

typedef struct _TRACE_TRACK {
    ULONG Next;               /* number of the next older track + 1 */
    volatile ULONG State;     /* TRACE_TRACK_STATE */
    ULONG Number;             /* of this unit */
    ULONG ThreadId;
    CHAR Name[TRACE_NAME];
    ULONG64 Dropped;
    ULONG Oldest;             /* numbers of chunks + 1 */
    ULONG Newest;
    ULONG Chunks;
    ULONG Wakes;              /* counter for Flow */
    volatile ULONG Busy;      /* the thread is writing; a host interrupt on it must not */
    volatile ULONG Depth;     /* of open events; may exceed Open */
    TRACE_EVENT Open[TRACE_DEPTH];
} TRACE_TRACK, *PTRACE_TRACK;

C_ASSERT(sizeof(TRACE_TRACK) <= TRACE_UNIT);

/*
 * What one stack did with one lock: the acquires that waited, or the releases of holds that others waited for. Claimed by
 * compare-exchange of State, found by hash.
 */
#define TRACE_CONTENTION_FRAMES 24

typedef enum _TRACE_ENTRY_STATE {
    TraceEntryFree,
    TraceEntryFilling,
    TraceEntryReady
} TRACE_ENTRY_STATE;

typedef enum _TRACE_ENTRY_ROLE {
    TraceWaited,
    TraceHeld,
    TraceEntryRoles
} TRACE_ENTRY_ROLE;

/*
 * A histogram of times. Bucket 0 counts times below 256 ns; above that each octave has four buckets, so a time is known
 * to a quarter. The last bucket counts times from 8 minutes.
 */
#define TRACE_BUCKETS 128
#define TRACE_FIRST_OCTAVE 8

typedef struct _TRACE_CONTENTION_ENTRY {
    volatile ULONG State;     /* TRACE_ENTRY_STATE */
    UCHAR Kind;               /* KI_LOCK_KIND */
    BOOLEAN Exclusive;
    UCHAR Frames;
    UCHAR Role;               /* TRACE_ENTRY_ROLE */
    ULONG64 Hash;
    ULONG64 Lock;
    volatile ULONG64 Count;
    volatile ULONG64 Time;    /* total */
    volatile ULONG64 Longest;
    volatile LONG Waiting;    /* acquires that have not acquired the lock yet */
    volatile ULONG LastOwner; /* at the last contended acquire, or that released last; 0: unknown */
    volatile ULONG64 Blocked; /* of holds: how long all threads together waited for them */
    ULONG64 Frame[TRACE_CONTENTION_FRAMES];
    volatile ULONG Bucket[TRACE_BUCKETS];
} TRACE_CONTENTION_ENTRY, *PTRACE_CONTENTION_ENTRY;

C_ASSERT(sizeof(TRACE_CONTENTION_ENTRY) == 768);

FORCEINLINE ULONG TraceBucketOf(ULONG64 Nanoseconds)
{
    if (Nanoseconds < 1ull << TRACE_FIRST_OCTAVE) {
        return 0;
    }
    ULONG Octave = 63 - (ULONG)__builtin_clzll(Nanoseconds);
    ULONG Bucket = 1 + (Octave - TRACE_FIRST_OCTAVE) * 4 + (ULONG)(Nanoseconds >> (Octave - 2) & 3);
    return Bucket < TRACE_BUCKETS ? Bucket : TRACE_BUCKETS - 1;
}

/* The shortest time in a bucket. */
FORCEINLINE ULONG64 TraceBucketBegin(ULONG Bucket)
{
    ULONG Octave = TRACE_FIRST_OCTAVE + (Bucket - 1) / 4;
    return Bucket == 0 ? 0 : (4ull + (Bucket - 1) % 4) << (Octave - 2);
}

FORCEINLINE ULONG TraceUnitSize(ULONG Content)
{
    return Content == TraceEvents ? TRACE_UNIT : (ULONG)sizeof(TRACE_CONTENTION_ENTRY);
}

/* json.c: a trace as Chrome and Perfetto read it. The debugger compiles it too, so it does not use the library. */
typedef struct _TRACE_SINK {
    BOOLEAN (*Write)(PVOID Context, PCSTR Text, SIZE_T Length); /* FALSE: failed */
    BOOLEAN (*Name)(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size); /* FALSE: no name */
    PVOID Context;
    PVOID Scratch;            /* TraceScratchSize bytes; NULL: omit the counter of waiting threads */
} TRACE_SINK, *PTRACE_SINK;

typedef struct _TRACE_SUMMARY {
    ULONG64 Events;
    ULONG64 Dropped;
    ULONG Threads;
} TRACE_SUMMARY, *PTRACE_SUMMARY;

BOOLEAN TraceIsFile(const TRACE_FILE *File, SIZE_T Size, TRACE_CONTENT Content);
SIZE_T TraceScratchSize(const TRACE_FILE *File);
BOOLEAN TraceWriteJson(const TRACE_FILE *File, const TRACE_SINK *Sink, PTRACE_SUMMARY Summary);
PCSTR TraceLockKindName(ULONG Kind);
PCSTR TraceWaitReasonName(ULONG Reason);

/* The recordings in progress, for the library and for a debugger that requests one. */

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
