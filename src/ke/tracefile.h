/*
 * tracefile.h: what a traced process leaves behind. It is a file that the process has mapped: whatever was written to
 * it is there however the process ends, and nothing has to be done when it does.
 *
 *     +--------+---------+------------------------------------------------------+
 *     | header | modules | units: tracks and chunks, or contended acquires      |
 *     +--------+---------+------------------------------------------------------+
 *
 * A trace consists of units of 4096 bytes. A track is what one thread at a time writes to: the thread's name, what it is
 * in the middle of, and the list of chunks; a chunk holds events, each with the id of its thread. Units are taken in
 * order and never given back.
 *
 * 1. Only its thread writes a track and the track's chunks, but for the name and the end of it. No lock is taken.
 * 2. An event is written when it is over. What a thread is in the middle of is in Open, outermost first, so a process
 *    that hangs and is killed shows what it hung in.
 * 3. Events become visible by Count, stored after them. A reader of a file that is written meanwhile may see the last
 *    few of a track replaced, never anything outside of the file.
 * 4. A thread that ends leaves its name, and what it was in the middle of, as events, and then the track to the next
 *    thread that begins, which goes on behind them. So there are as many tracks as there were threads at a time, and a
 *    thread that lives for a moment takes the room of its events. Once the process ends no thread leaves its track. So
 *    the name of a thread is on its track or behind its events, and is not overwritten before them.
 * 5. A track that finds no free unit writes over its own oldest chunk, and counts what it drops. One that has several
 *    leaves the last quarter of the units to others. The events of a thread that finds no room for a track are counted.
 *
 * A reader checks every number: the file may be anything.
 */
#ifndef INTERLOCK_KE_TRACEFILE_H
#define INTERLOCK_KE_TRACEFILE_H

#include <interlock/ke.h>

#define KI_TRACE_MAGIC 0x3245434152544b49ull /* IKTRACE2 */
#define KI_TRACE_UNIT 4096
#define KI_TRACE_MODULES (256 * 1024)
#define KI_TRACE_NAME 32

typedef enum _KI_TRACE_CONTENT {
    KiTraceEvents,
    KiTraceContention
} KI_TRACE_CONTENT;

/* Times are in nanoseconds of the host's monotonic clock. */
typedef struct _KI_TRACE_FILE {
    ULONG64 Magic;
    ULONG Content;            /* KI_TRACE_CONTENT */
    ULONG ProcessId;
    ULONG64 Start;
    volatile ULONG64 End;     /* 0: the process was not asked to finish */
    ULONG ModulesLength;      /* the host's list of modules, as text */
    ULONG Units;              /* that there are, of a track or chunk each, or of a contended acquire each */
    volatile ULONG UnitsUsed;
    volatile ULONG FirstTrack; /* number of the newest track + 1, see KI_TRACE_TRACK.Next */
    volatile ULONG64 Dropped; /* events that nobody could keep */
    CHAR Program[KI_TRACE_NAME];
    ULONG64 Reserved[(KI_TRACE_UNIT - 88) / sizeof(ULONG64)];
    CHAR Modules[KI_TRACE_MODULES];
} KI_TRACE_FILE, *PKI_TRACE_FILE;

C_ASSERT(sizeof(KI_TRACE_FILE) == KI_TRACE_UNIT + KI_TRACE_MODULES);

/* What kinds of locks acquires are told apart by. A pushlock is 0, so that methods which do not say are pushlocks. */
typedef enum _KI_LOCK_KIND {
    KiLockPushLock,
    KiLockSRWLock,
    KiLockFastMutex,
    KiLockGuardedMutex,
    KiLockResource,
    KiLockCriticalSection,
    KiLockMutant,
    KiLockSpinLock,
    KiLockKinds
} KI_LOCK_KIND;

typedef enum _KI_TRACE_KIND {
    KiTraceNothing,
    KiTraceWait,    /* Object is what ended it, or the first; Argument the timeout in 100 ns; Flow the wake, or 0 */
    KiTraceAcquire, /* Object is the lock, Type a KI_LOCK_KIND, Argument the id of the owner */
    KiTraceSignal,  /* Status is the state before */
    KiTraceWake,    /* Argument is the id of the thread, Status how its wait ends, Flow this wake */
    KiTraceThread   /* Name is that of the thread, which has ended at End. No event of the thread's own: not counted */
} KI_TRACE_KIND;

#define KI_TRACE_ALL 0x01        /* waits for all objects */
#define KI_TRACE_ALERTABLE 0x02
#define KI_TRACE_USER_MODE 0x04
#define KI_TRACE_TIMEOUT 0x08    /* has one */
#define KI_TRACE_EXCLUSIVE 0x10
#define KI_TRACE_HINT 0x20       /* Object is an address, not an object */
#define KI_TRACE_UNFINISHED 0x40 /* the thread ended in the middle of it */

typedef struct _KI_TRACE_EVENT {
    ULONG64 Begin;
    ULONG64 End;
    union {
        struct {
            ULONG64 Object;
            ULONG64 Argument;
            ULONG64 Flow;
            LONG Status;
            ULONG ObjectThread; /* the id of a thread that is the object */
        };
        CHAR Name[KI_TRACE_NAME];
    };
    ULONG ThreadId;           /* whose event it is */
    USHORT Count;             /* objects waited for */
    UCHAR Kind;               /* KI_TRACE_KIND */
    UCHAR Type;               /* of the object, or KI_LOCK_KIND */
    UCHAR Reason;
    UCHAR Flags;
    UCHAR Reserved[6];
} KI_TRACE_EVENT, *PKI_TRACE_EVENT;

C_ASSERT(sizeof(KI_TRACE_EVENT) == 64);

#define KI_TRACE_CHUNK_EVENTS (KI_TRACE_UNIT / sizeof(KI_TRACE_EVENT) - 1)
#define KI_TRACE_DEPTH 16

typedef struct _KI_TRACE_CHUNK {
    volatile ULONG Next;      /* number of the next newer one + 1 */
    volatile ULONG Count;
    ULONG64 Reserved[7];
    KI_TRACE_EVENT Event[KI_TRACE_CHUNK_EVENTS];
} KI_TRACE_CHUNK, *PKI_TRACE_CHUNK;

C_ASSERT(sizeof(KI_TRACE_CHUNK) == KI_TRACE_UNIT);

typedef enum _KI_TRACK_STATE {
    KiTrackLive,              /* Name is that of its thread */
    KiTrackEnded,             /* its thread has, and its name is among the events; another one may take it over */
    KiTrackTaken              /* by a thread that is about to begin */
} KI_TRACK_STATE;

typedef struct _KI_TRACE_TRACK {
    ULONG Next;               /* number of the next older track + 1 */
    volatile ULONG State;     /* KI_TRACK_STATE */
    ULONG Number;             /* of this unit */
    ULONG ThreadId;
    CHAR Name[KI_TRACE_NAME];
    ULONG64 Dropped;
    ULONG Oldest;             /* numbers of chunks + 1 */
    ULONG Newest;
    ULONG Chunks;
    ULONG Wakes;              /* counts them, for Flow */
    volatile ULONG Busy;      /* the thread is writing: an interrupt on it must not */
    volatile ULONG Depth;     /* of Open; may be larger than that */
    KI_TRACE_EVENT Open[KI_TRACE_DEPTH];
} KI_TRACE_TRACK, *PKI_TRACE_TRACK;

C_ASSERT(sizeof(KI_TRACE_TRACK) <= KI_TRACE_UNIT);

/* A contended acquire: all those of one lock by the same stack. Entered by compare-exchange of State, found by hash. */
#define KI_CONTENTION_FRAMES 24

typedef enum _KI_ENTRY_STATE {
    KiEntryFree,
    KiEntryFilling,
    KiEntryReady
} KI_ENTRY_STATE;

typedef struct _KI_CONTENTION_ENTRY {
    volatile ULONG State;     /* KI_ENTRY_STATE */
    UCHAR Kind;               /* KI_LOCK_KIND */
    BOOLEAN Exclusive;
    USHORT Frames;
    ULONG64 Hash;
    ULONG64 Lock;
    volatile ULONG64 Count;
    volatile ULONG64 Time;    /* of all together */
    volatile ULONG64 Longest;
    volatile LONG Waiting;    /* that have not got it yet */
    volatile ULONG LastOwner; /* who had it when somebody last came, 0: not known */
    ULONG64 Reserved;
    ULONG64 Frame[KI_CONTENTION_FRAMES];
} KI_CONTENTION_ENTRY, *PKI_CONTENTION_ENTRY;

C_ASSERT(sizeof(KI_CONTENTION_ENTRY) == 256);

FORCEINLINE ULONG KiTraceUnitSize(ULONG Content)
{
    return Content == KiTraceEvents ? KI_TRACE_UNIT : (ULONG)sizeof(KI_CONTENTION_ENTRY);
}

/* tracejson.c: a trace as Chrome and Perfetto read it. The debugger has it too, so it needs nothing of the library. */
typedef struct _KI_TRACE_SINK {
    BOOLEAN (*Write)(PVOID Context, PCSTR Text, SIZE_T Length); /* FALSE: it cannot */
    BOOLEAN (*Name)(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size); /* FALSE: it has none */
    PVOID Context;
    PVOID Scratch;            /* KiTraceScratchSize bytes; NULL: without the count of those who wait */
} KI_TRACE_SINK, *PKI_TRACE_SINK;

typedef struct _KI_TRACE_SUMMARY {
    ULONG64 Events;
    ULONG64 Dropped;
    ULONG Threads;
} KI_TRACE_SUMMARY, *PKI_TRACE_SUMMARY;

BOOLEAN KiIsTraceFile(const KI_TRACE_FILE *File, SIZE_T Size, KI_TRACE_CONTENT Content);
SIZE_T KiTraceScratchSize(const KI_TRACE_FILE *File);
BOOLEAN KiWriteTraceJson(const KI_TRACE_FILE *File, const KI_TRACE_SINK *Sink, PKI_TRACE_SUMMARY Summary);
PCSTR KiLockKindName(ULONG Kind);
PCSTR KiWaitReasonName(ULONG Reason);

#endif
