/*
 * tracejson.c: a trace as the JSON that Perfetto and chrome://tracing read. Every number in the file is checked: it may
 * have been cut off, written over, or never have been a trace. Nothing of the library is used but its types.
 */
#include "tracefile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KI_LONGEST_NAME 256
#define KI_LONGEST_TEXT 512

typedef struct _KI_WRITER {
    const KI_TRACE_FILE *File;
    const KI_TRACE_SINK *Sink;
    BOOLEAN Failed;
    BOOLEAN Used;      /* something was written already, so a comma comes first */
    ULONG64 Last;      /* when anything was last seen to happen */
    SIZE_T Edges;      /* in the scratch memory */
    PKI_TRACE_SUMMARY Summary;
} KI_WRITER, *PKI_WRITER;

/* A thread begins or ends to wait. */
typedef struct _KI_EDGE {
    ULONG64 Time;
    LONG Change;
} KI_EDGE;

/* Text. */

static VOID KiPutBytes(PKI_WRITER Writer, PCSTR Text, SIZE_T Length)
{
    if (!Writer->Failed && !Writer->Sink->Write(Writer->Sink->Context, Text, Length)) {
        Writer->Failed = TRUE;
    }
}

static VOID __attribute__((format(printf, 2, 3))) KiPut(PKI_WRITER Writer, PCSTR Format, ...)
{
    CHAR Text[KI_LONGEST_TEXT];
    va_list Arguments;
    va_start(Arguments, Format);
    int Length = vsnprintf(Text, sizeof(Text), Format, Arguments);
    va_end(Arguments);
    KiPutBytes(Writer, Text, Length < (int)sizeof(Text) ? (SIZE_T)Length : sizeof(Text) - 1);
}

/* The length of the UTF-8 character that Text begins with; 0: it is none. */
static SIZE_T KiCharacterLength(const UCHAR *Text)
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

/* What is inside of the quotes. */
static VOID KiPutEscaped(PKI_WRITER Writer, PCSTR Text)
{
    for (const UCHAR *Next = (const UCHAR *)Text; *Next != '\0';) {
        SIZE_T Length = KiCharacterLength(Next);
        if (Length == 0) {
            KiPut(Writer, "\\ufffd");
        } else if (*Next < 0x20) {
            KiPut(Writer, "\\u%04x", *Next);
        } else if (*Next == '"' || *Next == '\\') {
            KiPut(Writer, "\\%c", *Next);
        } else {
            KiPutBytes(Writer, (PCSTR)Next, Length);
        }
        Next += Length != 0 ? Length : 1;
    }
}

/* Names. */

#define KI_NAME(Names, Index)                                                                                          \
    ((Index) < sizeof(Names) / sizeof((Names)[0]) && (Names)[Index] != NULL ? (Names)[Index] : "unknown")

PCSTR KiWaitReasonName(ULONG Reason)
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
    return KI_NAME(Names, Reason);
}

PCSTR KiLockKindName(ULONG Kind)
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
    };
    C_ASSERT(sizeof(Names) / sizeof(Names[0]) == KiLockKinds);
    return KI_NAME(Names, Kind);
}

static PCSTR KiTypeName(ULONG Type)
{
    static const PCSTR Names[] = {
        [EventNotificationObject] = "event",  [EventSynchronizationObject] = "event",
        [MutantObject] = "mutant",            [ProcessObject] = "process",
        [QueueObject] = "queue",              [SemaphoreObject] = "semaphore",
        [ThreadObject] = "thread",            [GateObject] = "gate",
        [TimerNotificationObject] = "timer",  [TimerSynchronizationObject] = "timer",
    };
    return KI_NAME(Names, Type);
}

static PCSTR KiTypeOfWait(const KI_TRACE_EVENT *Event)
{
    if (Event->Flags & KI_TRACE_HINT) {
        return "address";
    }
    return Event->Count != 0 ? KiTypeName(Event->Type) : "delay";
}

/* Events. */

static VOID KiBeginEvent(PKI_WRITER Writer)
{
    KiPut(Writer, "%s\n", Writer->Used ? "," : "");
    Writer->Used = TRUE;
}

/* Of the format: microseconds. */
static VOID KiPutTime(PKI_WRITER Writer, PCSTR Key, ULONG64 Nanoseconds)
{
    KiPut(Writer, ",\"%s\":%" PRIu64 ".%03u", Key, (uint64_t)(Nanoseconds / 1000), (ULONG)(Nanoseconds % 1000));
}

static VOID KiPutPlace(PKI_WRITER Writer, PCSTR Phase, ULONG ThreadId, ULONG64 Time)
{
    KiPut(Writer, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", Phase, Writer->File->ProcessId, ThreadId);
    KiPutTime(Writer, "ts", Time);
}

static VOID KiPutSlice(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event)
{
    KiBeginEvent(Writer);
    KiPutPlace(Writer, "X", ThreadId, Event->Begin);
    KiPutTime(Writer, "dur", Event->End > Event->Begin ? Event->End - Event->Begin : 1);
}

/* The end of the slice's name, and the object among the arguments. */
static VOID KiPutObject(PKI_WRITER Writer, const KI_TRACE_EVENT *Event)
{
    ULONG64 Object = Event->Object;
    CHAR Name[KI_LONGEST_NAME];
    BOOLEAN Named = Object != 0;
    if (Event->ObjectThread != 0) {
        snprintf(Name, sizeof(Name), "%u", Event->ObjectThread);
    } else {
        Named = Named && Writer->Sink->Name(Writer->Sink->Context, Object, Name, sizeof(Name));
    }
    if (Named) {
        KiPut(Writer, " ");
        KiPutEscaped(Writer, Name);
    }
    KiPut(Writer, "\",\"args\":{\"object\":");
    if (Object != 0) {
        KiPut(Writer, "\"0x%" PRIx64 "\"", (uint64_t)Object);
    } else {
        KiPut(Writer, "null");
    }
    if (Named) {
        KiPut(Writer, ",\"name\":\"");
        KiPutEscaped(Writer, Name);
        KiPut(Writer, "\"");
    }
}

static VOID KiPutFlow(PKI_WRITER Writer, PCSTR Phase, ULONG ThreadId, ULONG64 Time, ULONG64 Flow)
{
    KiBeginEvent(Writer);
    KiPutPlace(Writer, Phase, ThreadId, Time);
    KiPut(Writer, ",\"cat\":\"wake\",\"name\":\"wakes\",\"id\":\"0x%" PRIx64 "\"%s}", (uint64_t)Flow,
          Phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static VOID KiNoteEdges(PKI_WRITER Writer, const KI_TRACE_EVENT *Event)
{
    KI_EDGE *Edges = Writer->Sink->Scratch;
    if (Edges != NULL && (Writer->Edges + 2) * sizeof(KI_EDGE) <= KiTraceScratchSize(Writer->File)) {
        Edges[Writer->Edges++] = (KI_EDGE){Event->Begin, 1};
        Edges[Writer->Edges++] = (KI_EDGE){Event->End, -1};
    }
}

static VOID KiPutWait(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event, BOOLEAN Finished)
{
    KiPutSlice(Writer, ThreadId, Event);
    KiPut(Writer, ",\"cat\":\"wait\",\"name\":\"wait: %s", KiTypeOfWait(Event));
    KiPutObject(Writer, Event);
    KiPut(Writer, ",\"type\":\"%s\",\"reason\":\"%s\",\"mode\":\"%s\",\"alertable\":%s,\"objects\":%u,\"all\":%s",
          KiTypeOfWait(Event), KiWaitReasonName(Event->Reason), Event->Flags & KI_TRACE_USER_MODE ? "user" : "kernel",
          Event->Flags & KI_TRACE_ALERTABLE ? "true" : "false", Event->Count,
          Event->Flags & KI_TRACE_ALL ? "true" : "false");
    if (Event->Flags & KI_TRACE_TIMEOUT) {
        KiPut(Writer, ",\"timeout_ms\":%" PRIu64 ".%04u", (uint64_t)(Event->Argument / 10000),
              (ULONG)(Event->Argument % 10000));
    } else {
        KiPut(Writer, ",\"timeout_ms\":null");
    }
    if (Finished) {
        KiPut(Writer, ",\"status\":\"0x%08x\"}}", (ULONG)Event->Status);
    } else {
        KiPut(Writer, ",\"status\":null,\"unfinished\":true}}");
    }
    KiNoteEdges(Writer, Event);
    if (Finished && Event->Flow != 0) {
        KiPutFlow(Writer, "f", ThreadId, Event->End > Event->Begin ? Event->End - 1 : Event->Begin, Event->Flow);
    }
}

static VOID KiPutAcquire(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event, BOOLEAN Finished)
{
    KiPutSlice(Writer, ThreadId, Event);
    KiPut(Writer, ",\"cat\":\"lock\",\"name\":\"acquire: %s", KiLockKindName(Event->Type));
    KiPutObject(Writer, Event);
    KiPut(Writer, ",\"kind\":\"%s\",\"exclusive\":%s,\"owner\":", KiLockKindName(Event->Type),
          Event->Flags & KI_TRACE_EXCLUSIVE ? "true" : "false");
    if (Event->Argument != 0) {
        KiPut(Writer, "%u", (ULONG)Event->Argument);
    } else {
        KiPut(Writer, "null");
    }
    KiPut(Writer, "%s}}", Finished ? "" : ",\"unfinished\":true");
}

static VOID KiPutSignal(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event)
{
    KiPutSlice(Writer, ThreadId, Event);
    KiPut(Writer, ",\"cat\":\"signal\",\"name\":\"signal: %s", KiTypeName(Event->Type));
    KiPutObject(Writer, Event);
    KiPut(Writer, ",\"type\":\"%s\",\"previous_state\":%d}}", KiTypeName(Event->Type), Event->Status);
}

static VOID KiPutWake(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event)
{
    KiPutSlice(Writer, ThreadId, Event);
    KiPut(Writer, ",\"cat\":\"wake\",\"name\":\"wake\",\"args\":{\"thread\":%u,\"status\":\"0x%08x\"}}",
          (ULONG)Event->Argument, (ULONG)Event->Status);
    KiPutFlow(Writer, "s", ThreadId, Event->Begin, Event->Flow);
}

static VOID KiPutEvent(PKI_WRITER Writer, ULONG ThreadId, const KI_TRACE_EVENT *Event, BOOLEAN Finished)
{
    Writer->Summary->Events += 1;
    switch (Event->Kind) {
    case KiTraceWait:
        KiPutWait(Writer, ThreadId, Event, Finished);
        break;
    case KiTraceAcquire:
        KiPutAcquire(Writer, ThreadId, Event, Finished);
        break;
    case KiTraceSignal:
        KiPutSignal(Writer, ThreadId, Event);
        break;
    case KiTraceWake:
        KiPutWake(Writer, ThreadId, Event);
        break;
    default:
        Writer->Summary->Events -= 1;
        break;
    }
}

/* Tracks. */

static const VOID *KiUnitOf(const KI_TRACE_FILE *File, ULONG Number)
{
    BOOLEAN Valid = Number != 0 && Number <= File->Units;
    return Valid ? (const UCHAR *)(File + 1) + (SIZE_T)(Number - 1) * KI_TRACE_UNIT : NULL;
}

static ULONG KiCountOf(const KI_TRACE_CHUNK *Chunk)
{
    /* acquire: pairs with the release in KiStore; the process may still write */
    ULONG Count = __atomic_load_n(&Chunk->Count, __ATOMIC_ACQUIRE);
    return Count < KI_TRACE_CHUNK_EVENTS ? Count : (ULONG)KI_TRACE_CHUNK_EVENTS;
}

typedef VOID KI_VISIT_EVENT(PKI_WRITER Writer, const KI_TRACE_EVENT *Event);

static VOID KiVisitEvents(PKI_WRITER Writer, const KI_TRACE_TRACK *Track, KI_VISIT_EVENT *Visit)
{
    const KI_TRACE_CHUNK *Chunk = KiUnitOf(Writer->File, Track->Oldest);
    for (ULONG Round = 0; Chunk != NULL && Round < Writer->File->Units; Round++) {
        for (ULONG Index = 0; Index < KiCountOf(Chunk); Index++) {
            Visit(Writer, &Chunk->Event[Index]);
        }
        Chunk = KiUnitOf(Writer->File, Chunk->Next);
    }
}

typedef VOID KI_VISIT_TRACK(PKI_WRITER Writer, const KI_TRACE_TRACK *Track);

static VOID KiVisitTracks(PKI_WRITER Writer, KI_VISIT_TRACK *Visit)
{
    /* acquire: pairs with the release in KiNewTrack */
    const KI_TRACE_TRACK *Track = KiUnitOf(Writer->File, __atomic_load_n(&Writer->File->FirstTrack, __ATOMIC_ACQUIRE));
    for (ULONG Round = 0; Track != NULL && Round < Writer->File->Units; Round++) {
        Visit(Writer, Track);
        Track = KiUnitOf(Writer->File, Track->Next);
    }
}

static ULONG KiDepthOf(const KI_TRACE_TRACK *Track)
{
    ULONG Depth = __atomic_load_n(&Track->Depth, __ATOMIC_RELAXED);
    return Depth < KI_TRACE_DEPTH ? Depth : KI_TRACE_DEPTH;
}

static VOID KiNoteTime(PKI_WRITER Writer, ULONG64 Time)
{
    if (Time > Writer->Last) {
        Writer->Last = Time;
    }
}

static VOID KiNoteEvent(PKI_WRITER Writer, const KI_TRACE_EVENT *Event)
{
    KiNoteTime(Writer, Event->End);
    Writer->Summary->Threads += Event->Kind == KiTraceThread;
}

/* To be asked before the events are read: the thread may be ending, and one that has ended has left its name there.
   acquire: pairs with the release in KiBeginTrack and KiTraceThreadEnd. */
static BOOLEAN KiHasThread(const KI_TRACE_TRACK *Track)
{
    return __atomic_load_n(&Track->State, __ATOMIC_ACQUIRE) == KiTrackLive;
}

static VOID KiMeasureTrack(PKI_WRITER Writer, const KI_TRACE_TRACK *Track)
{
    Writer->Summary->Threads += KiHasThread(Track);
    KiVisitEvents(Writer, Track, KiNoteEvent);
    for (ULONG Index = 0; Index < KiDepthOf(Track); Index++) {
        KiNoteTime(Writer, Track->Open[Index].Begin);
    }
    Writer->Summary->Dropped += Track->Dropped;
}

static VOID KiPutThreadName(PKI_WRITER Writer, ULONG ThreadId, const CHAR *Recorded)
{
    CHAR Name[KI_TRACE_NAME];
    memcpy(Name, Recorded, sizeof(Name));
    Name[sizeof(Name) - 1] = '\0';
    KiBeginEvent(Writer);
    KiPut(Writer, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"",
          Writer->File->ProcessId, ThreadId);
    KiPutEscaped(Writer, Name);
    KiPut(Writer, "\"}}");
}

static VOID KiPutRecorded(PKI_WRITER Writer, const KI_TRACE_EVENT *Event)
{
    if (Event->Kind == KiTraceThread) {
        KiPutThreadName(Writer, Event->ThreadId, Event->Name);
    } else {
        KiPutEvent(Writer, Event->ThreadId, Event, !(Event->Flags & KI_TRACE_UNFINISHED));
    }
}

static VOID KiPutTrack(PKI_WRITER Writer, const KI_TRACE_TRACK *Track)
{
    BOOLEAN Live = KiHasThread(Track);
    KiVisitEvents(Writer, Track, KiPutRecorded);
    if (!Live) {
        return;
    }
    KiPutThreadName(Writer, Track->ThreadId, Track->Name);
    for (ULONG Index = 0; Index < KiDepthOf(Track); Index++) {
        KI_TRACE_EVENT Event = Track->Open[Index];
        Event.End = Writer->Last;
        KiPutEvent(Writer, Track->ThreadId, &Event, FALSE);
    }
}

/* How many threads wait at a time. */

static int KiCompareEdges(const VOID *First, const VOID *Second)
{
    const KI_EDGE *One = First;
    const KI_EDGE *Other = Second;
    if (One->Time != Other->Time) {
        return One->Time < Other->Time ? -1 : 1;
    }
    return Other->Change - One->Change; /* who begins comes first: the number is never negative */
}

static VOID KiPutCounter(PKI_WRITER Writer)
{
    KI_EDGE *Edges = Writer->Sink->Scratch;
    LONG Waiting = 0;
    if (Edges == NULL) {
        return;
    }
    qsort(Edges, Writer->Edges, sizeof(*Edges), KiCompareEdges);
    for (SIZE_T Index = 0; Index < Writer->Edges; Index++) {
        Waiting += Edges[Index].Change;
        if (Index + 1 < Writer->Edges && Edges[Index + 1].Time == Edges[Index].Time) {
            continue;
        }
        KiBeginEvent(Writer);
        KiPutPlace(Writer, "C", 0, Edges[Index].Time);
        KiPut(Writer, ",\"name\":\"waiting threads\",\"args\":{\"waiting\":%d}}", Waiting);
    }
}

/* The whole. */

BOOLEAN KiIsTraceFile(const KI_TRACE_FILE *File, SIZE_T Size, KI_TRACE_CONTENT Content)
{
    return Size >= sizeof(*File) && File->Magic == KI_TRACE_MAGIC && File->Content == (ULONG)Content &&
           File->Units <= (Size - sizeof(*File)) / KiTraceUnitSize((ULONG)Content) &&
           File->ModulesLength <= sizeof(File->Modules);
}

SIZE_T KiTraceScratchSize(const KI_TRACE_FILE *File)
{
    ULONG Used = __atomic_load_n(&File->UnitsUsed, __ATOMIC_RELAXED);
    return (SIZE_T)(Used < File->Units ? Used : File->Units) * KI_TRACE_CHUNK_EVENTS * 2 * sizeof(KI_EDGE);
}

static VOID KiPutProcess(PKI_WRITER Writer)
{
    CHAR Name[KI_TRACE_NAME];
    memcpy(Name, Writer->File->Program, sizeof(Name));
    Name[sizeof(Name) - 1] = '\0';
    KiBeginEvent(Writer);
    KiPut(Writer, "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"", Writer->File->ProcessId);
    KiPutEscaped(Writer, Name);
    KiPut(Writer, "\"}}");
}

BOOLEAN KiWriteTraceJson(const KI_TRACE_FILE *File, const KI_TRACE_SINK *Sink, PKI_TRACE_SUMMARY Summary)
{
    KI_WRITER Writer = {.File = File, .Sink = Sink, .Last = File->End, .Summary = Summary};

    *Summary = (KI_TRACE_SUMMARY){.Dropped = File->Dropped};
    KiVisitTracks(&Writer, KiMeasureTrack);
    KiPut(&Writer, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    KiPutProcess(&Writer);
    KiVisitTracks(&Writer, KiPutTrack);
    KiPutCounter(&Writer);
    KiPut(&Writer,
          "\n],\"otherData\":{\"version\":\"%s\",\"process_id\":%u,\"threads\":%u,\"events\":%" PRIu64
          ",\"dropped_events\":%" PRIu64 ",\"finished\":%s}}\n",
          INTERLOCK_VERSION, File->ProcessId, Summary->Threads, (uint64_t)Summary->Events, (uint64_t)Summary->Dropped,
          File->End != 0 ? "true" : "false");
    return !Writer.Failed;
}
