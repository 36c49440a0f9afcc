/*
 * json.c: writes a trace as the JSON that Perfetto and chrome://tracing read. Every number in the file is checked: the
 * file may be truncated, overwritten, or no trace at all. Of the library only types are used.
 */
#include "tracefile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACEP_LONGEST_NAME 256
#define TRACEP_LONGEST_TEXT 512

typedef struct _TRACEP_WRITER {
    const TRACE_FILE *File;
    const TRACE_SINK *Sink;
    BOOLEAN Failed;
    BOOLEAN Used;      /* not the first event: a comma comes first */
    ULONG64 Last;      /* the latest time in the file */
    SIZE_T Edges;      /* in the scratch memory */
    PTRACE_SUMMARY Summary;
} TRACEP_WRITER, *PTRACEP_WRITER;

/* A thread begins (+1) or ends (-1) a wait. */
typedef struct _TRACEP_EDGE {
    ULONG64 Time;
    LONG Change;
} TRACEP_EDGE;

/* Text. */

static VOID TracepPutBytes(PTRACEP_WRITER Writer, PCSTR Text, SIZE_T Length)
{
    if (!Writer->Failed && !Writer->Sink->Write(Writer->Sink->Context, Text, Length)) {
        Writer->Failed = TRUE;
    }
}

static VOID __attribute__((format(printf, 2, 3))) TracepPut(PTRACEP_WRITER Writer, PCSTR Format, ...)
{
    CHAR Text[TRACEP_LONGEST_TEXT];
    va_list Arguments;
    va_start(Arguments, Format);
    int Length = vsnprintf(Text, sizeof(Text), Format, Arguments);
    va_end(Arguments);
    TracepPutBytes(Writer, Text, Length < (int)sizeof(Text) ? (SIZE_T)Length : sizeof(Text) - 1);
}

/* The length of the UTF-8 character that Text begins with; 0: invalid. */
static SIZE_T TracepCharacterLength(const UCHAR *Text)
{
    SIZE_T Length = *Text < 0x80 ? 1 : *Text >= 0xc2 && *Text < 0xe0 ? 2 : *Text >= 0xe0 && *Text < 0xf0 ? 3
                    : *Text >= 0xf0 && *Text < 0xf5                  ? 4
                                                                     : 0;
    for (SIZE_T Index = 1; Index < Length; Index++) {
        if ((Text[Index] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((*Text == 0xe0 && Text[1] < 0xa0) || (*Text == 0xed && Text[1] >= 0xa0) || (*Text == 0xf0 && Text[1] < 0x90) ||
        (*Text == 0xf4 && Text[1] >= 0x90)) {
        return 0;
    }
    return Length;
}

/* Text inside quotes. */
static VOID TracepPutEscaped(PTRACEP_WRITER Writer, PCSTR Text)
{
    for (const UCHAR *Next = (const UCHAR *)Text; *Next != '\0';) {
        SIZE_T Length = TracepCharacterLength(Next);
        if (Length == 0) {
            TracepPut(Writer, "\\ufffd");
        } else if (*Next < 0x20) {
            TracepPut(Writer, "\\u%04x", *Next);
        } else if (*Next == '"' || *Next == '\\') {
            TracepPut(Writer, "\\%c", *Next);
        } else {
            TracepPutBytes(Writer, (PCSTR)Next, Length);
        }
        Next += Length != 0 ? Length : 1;
    }
}

/* Names. */

#define TRACEP_NAME(Names, Index)                                                                                          \
    ((Index) < sizeof(Names) / sizeof((Names)[0]) && (Names)[Index] != NULL ? (Names)[Index] : "unknown")

PCSTR TraceWaitReasonName(ULONG Reason)
{
    static const PCSTR Names[] = {
        "Executive",        "FreePage",         "PageIn",          "PoolAllocation",    "DelayExecution",
        "Suspended",        "UserRequest",      "WrExecutive",     "WrFreePage",        "WrPageIn",
        "WrPoolAllocation", "WrDelayExecution", "WrSuspended",     "WrUserRequest",     "WrSpare0",
        "WrQueue",          "WrLpcReceive",     "WrLpcReply",      "WrVirtualMemory",   "WrPageOut",
        "WrRendezvous",     "WrKeyedEvent",     "WrTerminated",    "WrProcessInSwap",   "WrCpuRateControl",
        "WrCalloutStack",   "WrKernel",         "WrResource",      "WrPushLock",        "WrMutex",
        "WrQuantumEnd",     "WrDispatchInt",    "WrPreempted",     "WrYieldExecution",  "WrFastMutex",
        "WrGuardedMutex",   "WrRundown",        "WrAlertByThreadId", "WrDeferredPreempt", "WrPhysicalFault",
    };
    C_ASSERT(sizeof(Names) / sizeof(Names[0]) == MaximumWaitReason);
    return TRACEP_NAME(Names, Reason);
}

PCSTR TraceLockKindName(ULONG Kind)
{
    static const PCSTR Names[] = {
        [KiLockPushLock] = "pushlock",
        [KiLockSRWLock] = "SRW lock",
        [KiLockFastMutex] = "fast mutex",
        [KiLockGuardedMutex] = "guarded mutex",
        [KiLockResource] = "resource",
        [KiLockCriticalSection] = "critical section",
        [KiLockMutant] = "mutant",
        [KiLockSpinLock] = "spinlock",
        [KiLockRtlResource] = "RTL resource",
    };
    C_ASSERT(sizeof(Names) / sizeof(Names[0]) == KiLockKinds);
    return TRACEP_NAME(Names, Kind);
}

static PCSTR TracepTypeName(ULONG Type)
{
    static const PCSTR Names[] = {
        [EventNotificationObject] = "event",  [EventSynchronizationObject] = "event",
        [MutantObject] = "mutant",            [ProcessObject] = "process",
        [QueueObject] = "queue",              [SemaphoreObject] = "semaphore",
        [ThreadObject] = "thread",            [GateObject] = "gate",
        [TimerNotificationObject] = "timer",  [TimerSynchronizationObject] = "timer",
    };
    return TRACEP_NAME(Names, Type);
}

static PCSTR TracepTypeOfWait(const TRACE_EVENT *Event)
{
    if (Event->Flags & TRACE_HINT) {
        return "address";
    }
    return Event->Count != 0 ? TracepTypeName(Event->Type) : "delay";
}

/* Events. */

/* The format has microseconds. */
static VOID TracepPutTime(PTRACEP_WRITER Writer, PCSTR Key, ULONG64 Nanoseconds)
{
    TracepPut(Writer, ",\"%s\":%" PRIu64 ".%03u", Key, (uint64_t)(Nanoseconds / 1000), (ULONG)(Nanoseconds % 1000));
}

static VOID TracepBeginEvent(PTRACEP_WRITER Writer, PCSTR Phase, ULONG ThreadId)
{
    TracepPut(Writer, "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", Writer->Used ? "," : "", Phase,
              Writer->File->ProcessId, ThreadId);
    Writer->Used = TRUE;
}

static VOID TracepPutSlice(PTRACEP_WRITER Writer, ULONG ThreadId, const TRACE_EVENT *Event)
{
    TracepBeginEvent(Writer, "X", ThreadId);
    TracepPutTime(Writer, "ts", Event->Begin);
    TracepPutTime(Writer, "dur", Event->End > Event->Begin ? Event->End - Event->Begin : 1);
}

/* Completes the slice's name, and begins the arguments with the object. */
static VOID TracepPutObject(PTRACEP_WRITER Writer, const TRACE_EVENT *Event)
{
    ULONG64 Object = Event->Object;
    CHAR Name[TRACEP_LONGEST_NAME];
    BOOLEAN Named = Object != 0;
    if (Event->ObjectThread != 0) {
        snprintf(Name, sizeof(Name), "%u", Event->ObjectThread);
    } else {
        Named = Named && Writer->Sink->Name(Writer->Sink->Context, Object, Name, sizeof(Name));
    }
    if (Named) {
        TracepPut(Writer, " ");
        TracepPutEscaped(Writer, Name);
    }
    TracepPut(Writer, "\",\"args\":{\"object\":");
    if (Object != 0) {
        TracepPut(Writer, "\"0x%" PRIx64 "\"", (uint64_t)Object);
    } else {
        TracepPut(Writer, "null");
    }
    if (Named) {
        TracepPut(Writer, ",\"name\":\"");
        TracepPutEscaped(Writer, Name);
        TracepPut(Writer, "\"");
    }
}

static VOID TracepPutFlow(PTRACEP_WRITER Writer, PCSTR Phase, ULONG ThreadId, ULONG64 Time, ULONG64 Flow)
{
    TracepBeginEvent(Writer, Phase, ThreadId);
    TracepPutTime(Writer, "ts", Time);
    TracepPut(Writer, ",\"cat\":\"wake\",\"name\":\"wakes\",\"id\":\"0x%" PRIx64 "\"%s}", (uint64_t)Flow,
          Phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static VOID TracepPutWait(PTRACEP_WRITER Writer, ULONG ThreadId, const TRACE_EVENT *Event, BOOLEAN Finished)
{
    TRACEP_EDGE *Edges = Writer->Sink->Scratch;
    TracepPutSlice(Writer, ThreadId, Event);
    TracepPut(Writer, ",\"cat\":\"wait\",\"name\":\"wait: %s", TracepTypeOfWait(Event));
    TracepPutObject(Writer, Event);
    TracepPut(Writer, ",\"type\":\"%s\",\"reason\":\"%s\",\"mode\":\"%s\",\"alertable\":%s,\"objects\":%u,\"all\":%s",
          TracepTypeOfWait(Event), TraceWaitReasonName(Event->Reason), Event->Flags & TRACE_USER_MODE ? "user" : "kernel",
          Event->Flags & TRACE_ALERTABLE ? "true" : "false", Event->Count,
          Event->Flags & TRACE_ALL ? "true" : "false");
    if (Event->Flags & TRACE_TIMEOUT) {
        TracepPut(Writer, ",\"timeout_ms\":%" PRIu64 ".%04u", (uint64_t)(Event->Argument / 10000),
              (ULONG)(Event->Argument % 10000));
    } else {
        TracepPut(Writer, ",\"timeout_ms\":null");
    }
    if (Finished) {
        TracepPut(Writer, ",\"status\":\"0x%08x\"}}", (ULONG)Event->Status);
    } else {
        TracepPut(Writer, ",\"status\":null,\"unfinished\":true}}");
    }
    if (Edges != NULL && (Writer->Edges + 2) * sizeof(TRACEP_EDGE) <= TraceScratchSize(Writer->File)) {
        Edges[Writer->Edges++] = (TRACEP_EDGE){Event->Begin, 1};
        Edges[Writer->Edges++] = (TRACEP_EDGE){Event->End, -1};
    }
    if (Finished && Event->Flow != 0) {
        TracepPutFlow(Writer, "f", ThreadId, Event->End > Event->Begin ? Event->End - 1 : Event->Begin, Event->Flow);
    }
}

static VOID TracepPutAcquire(PTRACEP_WRITER Writer, ULONG ThreadId, const TRACE_EVENT *Event, BOOLEAN Finished)
{
    TracepPutSlice(Writer, ThreadId, Event);
    TracepPut(Writer, ",\"cat\":\"lock\",\"name\":\"acquire: %s", TraceLockKindName(Event->Type));
    TracepPutObject(Writer, Event);
    TracepPut(Writer, ",\"kind\":\"%s\",\"exclusive\":%s,\"owner\":", TraceLockKindName(Event->Type),
          Event->Flags & TRACE_EXCLUSIVE ? "true" : "false");
    if (Event->Argument != 0) {
        TracepPut(Writer, "%u", (ULONG)Event->Argument);
    } else {
        TracepPut(Writer, "null");
    }
    TracepPut(Writer, "%s}}", Finished ? "" : ",\"unfinished\":true");
}

/* Holds of several locks need not be nested, as slices of a thread must be: each lock has a track of its own. */
static VOID TracepPutHold(PTRACEP_WRITER Writer, ULONG ThreadId, const TRACE_EVENT *Event)
{
    for (ULONG End = 0; End < 2; End++) {
        TracepBeginEvent(Writer, End ? "e" : "b", ThreadId);
        TracepPutTime(Writer, "ts", End ? Event->End : Event->Begin);
        TracepPut(Writer, ",\"id\":\"0x%" PRIx64 "\",\"cat\":\"hold\",\"name\":\"held: %s", (uint64_t)Event->Object,
                  TraceLockKindName(Event->Type));
        TracepPutObject(Writer, Event);
        TracepPut(Writer, ",\"kind\":\"%s\",\"exclusive\":%s,\"thread\":%u,\"waiters\":%u}}", TraceLockKindName(Event->Type),
                  Event->Flags & TRACE_EXCLUSIVE ? "true" : "false", ThreadId, (ULONG)Event->Argument);
    }
}

static VOID TracepPutEvent(PTRACEP_WRITER Writer, ULONG ThreadId, const TRACE_EVENT *Event, BOOLEAN Finished)
{
    switch (Event->Kind) {
    case TraceWait:
        TracepPutWait(Writer, ThreadId, Event, Finished);
        break;
    case TraceAcquire:
        TracepPutAcquire(Writer, ThreadId, Event, Finished);
        break;
    case TraceHold:
        TracepPutHold(Writer, ThreadId, Event);
        break;
    case TraceSignal:
        TracepPutSlice(Writer, ThreadId, Event);
        TracepPut(Writer, ",\"cat\":\"signal\",\"name\":\"signal: %s", TracepTypeName(Event->Type));
        TracepPutObject(Writer, Event);
        TracepPut(Writer, ",\"type\":\"%s\",\"previous_state\":%d}}", TracepTypeName(Event->Type), Event->Status);
        break;
    case TraceWake:
        TracepPutSlice(Writer, ThreadId, Event);
        TracepPut(Writer, ",\"cat\":\"wake\",\"name\":\"wake\",\"args\":{\"thread\":%u,\"status\":\"0x%08x\"}}",
                  (ULONG)Event->Argument, (ULONG)Event->Status);
        TracepPutFlow(Writer, "s", ThreadId, Event->Begin, Event->Flow);
        break;
    default:
        return;
    }
    Writer->Summary->Events += 1;
}

/* Tracks. */

static const VOID *TracepUnitOf(const TRACE_FILE *File, ULONG Number)
{
    BOOLEAN Valid = Number != 0 && Number <= File->Units;
    return Valid ? (const UCHAR *)(File + 1) + (SIZE_T)(Number - 1) * TRACE_UNIT : NULL;
}

static ULONG TracepCountOf(const TRACE_CHUNK *Chunk)
{
    /* acquire: pairs with the release in TracepRecord; the process may still write */
    ULONG Count = __atomic_load_n(&Chunk->Count, __ATOMIC_ACQUIRE);
    return Count < TRACE_CHUNK_EVENTS ? Count : (ULONG)TRACE_CHUNK_EVENTS;
}

typedef VOID TRACEP_VISIT_EVENT(PTRACEP_WRITER Writer, const TRACE_EVENT *Event);

static VOID TracepVisitEvents(PTRACEP_WRITER Writer, const TRACE_TRACK *Track, TRACEP_VISIT_EVENT *Visit)
{
    const TRACE_CHUNK *Chunk = TracepUnitOf(Writer->File, Track->Oldest);
    for (ULONG Round = 0; Chunk != NULL && Round < Writer->File->Units; Round++) {
        for (ULONG Index = 0; Index < TracepCountOf(Chunk); Index++) {
            if (Chunk->Event[Index].End >= Writer->File->Start) { /* the others are of an earlier recording */
                Visit(Writer, &Chunk->Event[Index]);
            }
        }
        Chunk = TracepUnitOf(Writer->File, Chunk->Next);
    }
}

typedef VOID TRACEP_VISIT_TRACK(PTRACEP_WRITER Writer, const TRACE_TRACK *Track);

static VOID TracepVisitTracks(PTRACEP_WRITER Writer, TRACEP_VISIT_TRACK *Visit)
{
    /* acquire: pairs with the release in TracepTakeTrack */
    const TRACE_TRACK *Track = TracepUnitOf(Writer->File, __atomic_load_n(&Writer->File->FirstTrack, __ATOMIC_ACQUIRE));
    for (ULONG Round = 0; Track != NULL && Round < Writer->File->Units; Round++) {
        Visit(Writer, Track);
        Track = TracepUnitOf(Writer->File, Track->Next);
    }
}

static ULONG TracepDepthOf(const TRACE_TRACK *Track)
{
    ULONG Depth = __atomic_load_n(&Track->Depth, __ATOMIC_RELAXED);
    return Depth < TRACE_DEPTH ? Depth : TRACE_DEPTH;
}

static VOID TracepNoteEvent(PTRACEP_WRITER Writer, const TRACE_EVENT *Event)
{
    Writer->Last = Event->End > Writer->Last ? Event->End : Writer->Last;
    Writer->Summary->Threads += Event->Kind == TraceEnded;
}

/* Ask before reading the events: a thread that ends meanwhile leaves its name among them.
   acquire: pairs with the releases in TracepTrackOf and TraceThreadEnd. */
static BOOLEAN TracepIsLive(const TRACE_TRACK *Track)
{
    return __atomic_load_n(&Track->State, __ATOMIC_ACQUIRE) == TraceTrackLive;
}

static VOID TracepMeasureTrack(PTRACEP_WRITER Writer, const TRACE_TRACK *Track)
{
    Writer->Summary->Threads += TracepIsLive(Track);
    TracepVisitEvents(Writer, Track, TracepNoteEvent);
    for (ULONG Index = 0; Index < TracepDepthOf(Track); Index++) {
        ULONG64 Begin = Track->Open[Index].Begin;
        Writer->Last = Begin + 1 > Writer->Last ? Begin + 1 : Writer->Last; /* an event that began lasts */
    }
    Writer->Summary->Dropped += Track->Dropped;
}

/* What: thread_name or process_name. Recorded: TRACE_NAME bytes, which need not end. */
static VOID TracepPutName(PTRACEP_WRITER Writer, PCSTR What, ULONG ThreadId, const CHAR *Recorded)
{
    CHAR Name[TRACE_NAME];
    memcpy(Name, Recorded, sizeof(Name));
    Name[sizeof(Name) - 1] = '\0';
    TracepBeginEvent(Writer, "M", ThreadId);
    TracepPut(Writer, ",\"name\":\"%s\",\"args\":{\"name\":\"", What);
    TracepPutEscaped(Writer, Name);
    TracepPut(Writer, "\"}}");
}

static VOID TracepPutRecorded(PTRACEP_WRITER Writer, const TRACE_EVENT *Event)
{
    if (Event->Kind == TraceEnded) {
        TracepPutName(Writer, "thread_name", Event->ThreadId, Event->Name);
    } else {
        TracepPutEvent(Writer, Event->ThreadId, Event, !(Event->Flags & TRACE_UNFINISHED));
    }
}

static VOID TracepPutTrack(PTRACEP_WRITER Writer, const TRACE_TRACK *Track)
{
    BOOLEAN Live = TracepIsLive(Track);
    TracepVisitEvents(Writer, Track, TracepPutRecorded);
    if (!Live) {
        return;
    }
    TracepPutName(Writer, "thread_name", Track->ThreadId, Track->Name);
    for (ULONG Index = 0; Index < TracepDepthOf(Track) && Track->Open[Index].Begin >= Writer->File->Start; Index++) {
        TRACE_EVENT Event = Track->Open[Index];
        Event.End = Writer->Last;
        TracepPutEvent(Writer, Track->ThreadId, &Event, FALSE);
    }
}

/* The counter of waiting threads. */

static int TracepCompareEdges(const VOID *First, const VOID *Second)
{
    const TRACEP_EDGE *One = First;
    const TRACEP_EDGE *Other = Second;
    if (One->Time != Other->Time) {
        return One->Time < Other->Time ? -1 : 1;
    }
    return Other->Change - One->Change; /* begins come first: the counter never falls below 0 */
}

static VOID TracepPutCounter(PTRACEP_WRITER Writer)
{
    TRACEP_EDGE *Edges = Writer->Sink->Scratch;
    LONG Waiting = 0;
    if (Edges == NULL) {
        return;
    }
    qsort(Edges, Writer->Edges, sizeof(*Edges), TracepCompareEdges);
    for (SIZE_T Index = 0; Index < Writer->Edges; Index++) {
        Waiting += Edges[Index].Change;
        if (Index + 1 < Writer->Edges && Edges[Index + 1].Time == Edges[Index].Time) {
            continue;
        }
        TracepBeginEvent(Writer, "C", 0);
        TracepPutTime(Writer, "ts", Edges[Index].Time);
        TracepPut(Writer, ",\"name\":\"waiting threads\",\"args\":{\"waiting\":%d}}", Waiting);
    }
}

/* The whole trace. */

BOOLEAN TraceIsFile(const TRACE_FILE *File, SIZE_T Size, TRACE_CONTENT Content)
{
    return Size >= sizeof(*File) && File->Magic == TRACE_MAGIC && File->Content == (ULONG)Content &&
           File->Units <= (Size - sizeof(*File)) / TraceUnitSize((ULONG)Content) &&
           File->ModulesLength <= sizeof(File->Modules);
}

SIZE_T TraceScratchSize(const TRACE_FILE *File)
{
    ULONG Used = __atomic_load_n(&File->UnitsUsed, __ATOMIC_RELAXED);
    return (SIZE_T)(Used < File->Units ? Used : File->Units) * TRACE_CHUNK_EVENTS * 2 * sizeof(TRACEP_EDGE);
}

BOOLEAN TraceWriteJson(const TRACE_FILE *File, const TRACE_SINK *Sink, PTRACE_SUMMARY Summary)
{
    TRACEP_WRITER Writer = {.File = File, .Sink = Sink, .Last = File->End, .Summary = Summary};

    *Summary = (TRACE_SUMMARY){.Dropped = File->Dropped};
    TracepVisitTracks(&Writer, TracepMeasureTrack);
    TracepPut(&Writer, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    TracepPutName(&Writer, "process_name", 0, File->Program);
    TracepVisitTracks(&Writer, TracepPutTrack);
    TracepPutCounter(&Writer);
    TracepPut(&Writer,
          "\n],\"otherData\":{\"version\":\"%s\",\"process_id\":%u,\"threads\":%u,\"events\":%" PRIu64
          ",\"dropped_events\":%" PRIu64 ",\"finished\":%s}}\n",
          INTERLOCK_VERSION, File->ProcessId, Summary->Threads, (uint64_t)Summary->Events, (uint64_t)Summary->Dropped,
          File->End != 0 ? "true" : "false");
    return !Writer.Failed;
}
