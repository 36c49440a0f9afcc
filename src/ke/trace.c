/* trace.c: recording waits, signals and contended acquires, for who asks by the environment. Theory in tracefile.h. */
#include "trace.h"

#include <stdio.h>

#include "wait.h"

#define KI_TRACE_PATH 1024
#define KI_TRACE_DEFAULT_LIMIT 32 /* in megabytes */
#define KI_TRACE_RAW ".trace"     /* a file of this name is left as it is, for `interlock trace` */
#define KI_CONTENTION_ENTRIES 8192
#define KI_CONTENTION_PROBES 64
#define KI_TRACE_BUFFER 65536

typedef struct _KI_RECORDING {
    PCSTR Setting;
    PKI_TRACE_FILE File;
    SIZE_T Size;
    LONG Descriptor;
    CHAR Pattern[KI_TRACE_PATH]; /* absolute, with %p for the id of the process */
    CHAR Path[KI_TRACE_PATH];    /* of the file */
    CHAR Output[KI_TRACE_PATH];  /* what is made of it at the end, or nothing */
} KI_RECORDING, *PKI_RECORDING;

/*
 * A bit for each KI_TRACE_CONTENT that is recorded, and above KI_TRACE_POSTPONED one for each that a forked child is to
 * record from the first event on: most children become another program at once, and leave nothing behind.
 */
#define KI_TRACE_POSTPONED 8
#define KI_TRACE_CONTENTS 0xffu
ULONG KiTracing;
static KI_RECORDING KiRecording[] = {
    [KiTraceEvents] = {.Setting = "INTERLOCK_TRACE"},
    [KiTraceContention] = {.Setting = "INTERLOCK_CONTENTION"},
};

static DECLSPEC_NOINLINE ULONG KiBeginPostponed(VOID);

static BOOLEAN KiRecords(KI_TRACE_CONTENT Content)
{
    ULONG Tracing = __atomic_load_n(&KiTracing, __ATOMIC_RELAXED);
    if (Tracing >= 1u << KI_TRACE_POSTPONED) {
        Tracing = KiBeginPostponed();
    }
    return (Tracing & (1u << Content)) != 0;
}

static ULONG KiIdOf(PKTHREAD Thread)
{
    return Thread != NULL ? __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED) : 0;
}

/* Units of a trace. */

static PVOID KiUnit(ULONG Number)
{
    return (PUCHAR)(KiRecording[KiTraceEvents].File + 1) + (SIZE_T)Number * KI_TRACE_UNIT;
}

static VOID KiCountDropped(PKI_TRACE_FILE File, ULONG64 Number)
{
    /* relaxed: a statistic */
    __atomic_fetch_add(&File->Dropped, Number, __ATOMIC_RELAXED);
}

/* The number of a unit + 1; 0: there is none for a thread that has Held chunks. */
static ULONG KiTakeUnit(PKI_TRACE_FILE File, ULONG Held)
{
    ULONG Most = Held > 1 ? File->Units - File->Units / 4 : File->Units;
    ULONG Used = __atomic_load_n(&File->UnitsUsed, __ATOMIC_RELAXED);
    do {
        if (Used >= Most) {
            return 0;
        }
        /* relaxed: nobody else has written to the unit */
    } while (!__atomic_compare_exchange_n(&File->UnitsUsed, &Used, Used + 1, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return Used + 1;
}

/* Tracks. */

/*
 * The name of a track is written by its thread, by whoever names that thread, and when the process ends, which keeps the
 * lock: names do not change while they are read.
 */
static KI_LOCK KiTrackNameLock;

static VOID KiNameTrack(PKI_TRACE_TRACK Track, PCSTR Name)
{
    while (KiRecords(KiTraceEvents)) {
        if (KiTryAcquireLock(&KiTrackNameLock)) {
            snprintf(Track->Name, sizeof(Track->Name), "%s", Name);
            KiReleaseLock(&KiTrackNameLock);
            return;
        }
        HalDispatch.Yield();
    }
}

static VOID KiNameOwnTrack(PKI_TRACE_TRACK Track)
{
    CHAR Name[KI_TRACE_NAME] = "";
    HalQueryThreadName(Track->ThreadId, Name, sizeof(Name));
    KiNameTrack(Track, Name);
}

static VOID KiBeginTrack(PKI_TRACE_TRACK Track, PKTHREAD Thread)
{
    Track->ThreadId = HalCurrentThreadId();
    Track->End = 0;
    Track->Depth = 0;
    Track->Busy = FALSE;
    /* release: pairs with KiTraceThreadName, by which another thread comes here */
    __atomic_store_n(&Thread->TraceTrack, Track, __ATOMIC_RELEASE);
    KiNameOwnTrack(Track); /* after that: who names the thread from now on also names the track */
}

static PKI_TRACE_TRACK KiNewTrack(PKI_TRACE_FILE File)
{
    ULONG Unit = KiTakeUnit(File, 0);
    if (Unit == 0) {
        return NULL;
    }
    PKI_TRACE_TRACK Track = KiUnit(Unit - 1);
    Track->Number = Unit - 1;
    ULONG First = __atomic_load_n(&File->FirstTrack, __ATOMIC_RELAXED);
    do {
        Track->Next = First;
        /* release: pairs with the acquire of whoever goes through the tracks */
    } while (!__atomic_compare_exchange_n(&File->FirstTrack, &First, Unit, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return Track;
}

/* What the thread that has ended did is gone; its chunks are used again in their order. */
static VOID KiEmptyTrack(PKI_TRACE_TRACK Track)
{
    for (ULONG Number = Track->Oldest; Number != 0;) {
        PKI_TRACE_CHUNK Chunk = KiUnit(Number - 1);
        Track->Dropped += Chunk->Count;
        __atomic_store_n(&Chunk->Count, 0, __ATOMIC_RELAXED);
        Number = Chunk->Next;
    }
    Track->Newest = Track->Oldest;
}

static PKI_TRACE_TRACK KiTakeOverTrack(PKI_TRACE_FILE File)
{
    PKI_TRACE_TRACK Track = NULL;
    ULONG Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE);
    ULONG State = KiTrackLive;
    for (; Number != 0 && State != KiTrackEnded; Number = Track->Next) {
        Track = KiUnit(Number - 1);
        State = KiTrackEnded;
        /* acquire: pairs with the release in KiTraceThreadEnd. On failure State is what the track is. */
        if (__atomic_compare_exchange_n(&Track->State, &State, KiTrackTaken, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            KiEmptyTrack(Track);
            __atomic_store_n(&Track->State, KiTrackLive, __ATOMIC_RELAXED);
        }
    }
    return State == KiTrackEnded ? Track : NULL;
}

/* Of the current thread. NULL: there is no room. */
static PKI_TRACE_TRACK KiTrackOf(PKTHREAD Thread)
{
    PKI_TRACE_FILE File = KiRecording[KiTraceEvents].File;
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    if (Track != NULL) {
        return Track;
    }
    Track = KiNewTrack(File);
    if (Track == NULL) {
        Track = KiTakeOverTrack(File);
    }
    if (Track == NULL) {
        KiCountDropped(File, 1);
        return NULL;
    }
    KiBeginTrack(Track, Thread);
    return Track;
}

VOID KiTraceThreadEnd(PKTHREAD Thread)
{
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    if (Track == NULL || !KiRecords(KiTraceEvents)) {
        return;
    }
    if (Thread == HalCurrentThread) {
        KiNameOwnTrack(Track);
    }
    __atomic_store_n(&Thread->TraceTrack, NULL, __ATOMIC_RELAXED);
    /* relaxed: a process that ends may look at it now, and finds it there or not */
    __atomic_store_n(&Track->End, HalQueryNanoseconds(), __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiTakeOverTrack */
    __atomic_store_n(&Track->State, KiTrackEnded, __ATOMIC_RELEASE);
}

VOID KiTraceThreadName(PKTHREAD Thread, PCSTR Name)
{
    /* acquire: pairs with the release in KiBeginTrack */
    PKI_TRACE_TRACK Track = __atomic_load_n(&Thread->TraceTrack, __ATOMIC_ACQUIRE);
    if (Track != NULL && KiRecords(KiTraceEvents) && Track->ThreadId == KiIdOf(Thread)) {
        KiNameTrack(Track, Name);
    }
}

/* Events. */

static VOID KiAppendChunk(PKI_TRACE_TRACK Track, ULONG Number)
{
    PKI_TRACE_CHUNK Chunk = KiUnit(Number - 1);
    __atomic_store_n(&Chunk->Count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&Chunk->Next, 0, __ATOMIC_RELAXED);
    if (Track->Newest != 0) {
        PKI_TRACE_CHUNK Newest = KiUnit(Track->Newest - 1);
        __atomic_store_n(&Newest->Next, Number, __ATOMIC_RELAXED);
    } else {
        Track->Oldest = Number;
    }
    Track->Newest = Number;
}

/* The oldest chunk becomes the newest, or if there is one alone it begins anew. */
static VOID KiReuseOldest(PKI_TRACE_TRACK Track)
{
    ULONG Number = Track->Oldest;
    PKI_TRACE_CHUNK Chunk = KiUnit(Number - 1);
    Track->Dropped += Chunk->Count;
    if (Track->Newest == Number) {
        __atomic_store_n(&Chunk->Count, 0, __ATOMIC_RELAXED);
        return;
    }
    Track->Oldest = Chunk->Next;
    KiAppendChunk(Track, Number);
}

/* NULL: there is none. */
static PKI_TRACE_CHUNK KiNextChunk(PKI_TRACE_TRACK Track)
{
    PKI_TRACE_CHUNK Newest = Track->Newest != 0 ? KiUnit(Track->Newest - 1) : NULL;
    if (Newest != NULL && Newest->Next != 0) {
        Track->Newest = Newest->Next;
        return KiUnit(Track->Newest - 1);
    }
    ULONG Number = KiTakeUnit(KiRecording[KiTraceEvents].File, Track->Chunks);
    if (Number != 0) {
        Track->Chunks += 1;
        KiAppendChunk(Track, Number);
    } else if (Newest != NULL) {
        KiReuseOldest(Track);
    } else {
        return NULL;
    }
    return KiUnit(Track->Newest - 1);
}

static BOOLEAN KiStore(PKI_TRACE_TRACK Track, const KI_TRACE_EVENT *Event)
{
    PKI_TRACE_CHUNK Chunk = Track->Newest != 0 ? KiUnit(Track->Newest - 1) : NULL;
    if (Chunk == NULL || Chunk->Count == KI_TRACE_CHUNK_EVENTS) {
        Chunk = KiNextChunk(Track);
    }
    if (Chunk == NULL) {
        return FALSE;
    }
    Chunk->Event[Chunk->Count] = *Event;
    /* release: pairs with whoever reads the file */
    __atomic_store_n(&Chunk->Count, Chunk->Count + 1, __ATOMIC_RELEASE);
    return TRUE;
}

/* Busy is against an interrupt on this thread: the fences keep the compiler from moving the writes out of it. */
static VOID KiRecord(PKI_TRACE_TRACK Track, const KI_TRACE_EVENT *Event)
{
    if (Track->Busy) {
        Track->Dropped += 1;
        return;
    }
    Track->Busy = TRUE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!KiStore(Track, Event)) {
        Track->Dropped += 1;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Track->Busy = FALSE;
}

/* What the thread is in the middle of; the kind is stored last, by the caller. NULL: it is not kept. */
static PKI_TRACE_EVENT KiOpenEvent(PKTHREAD Thread)
{
    PKI_TRACE_TRACK Track = KiTrackOf(Thread);
    if (Track == NULL) {
        return NULL;
    }
    ULONG Depth = Track->Depth;
    Track->Depth = Depth + 1;
    if (Depth >= KI_TRACE_DEPTH) {
        Track->Dropped += 1;
        return NULL;
    }
    Track->Open[Depth] = (KI_TRACE_EVENT){.Kind = KiTraceNothing};
    return &Track->Open[Depth];
}

static PKI_TRACE_EVENT KiInnermostEvent(PKTHREAD Thread)
{
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    return Track != NULL && Track->Depth != 0 && Track->Depth <= KI_TRACE_DEPTH ? &Track->Open[Track->Depth - 1] : NULL;
}

static VOID KiCloseEvent(PKTHREAD Thread)
{
    PKI_TRACE_EVENT Event = KiInnermostEvent(Thread);
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    if (Event != NULL) {
        Event->End = HalQueryNanoseconds();
        KiRecord(Track, Event);
    }
    if (Track != NULL && Track->Depth != 0) {
        Track->Depth -= 1;
    }
}

/* A status as a signaler stores it: the entry that a queue hands over is none. */
static LONG KiStatusOf(LONG_PTR Result)
{
    return Result == (LONG)Result && (ULONG_PTR)Result < 0x10000 ? (LONG)Result : STATUS_SUCCESS;
}

/* A queue may be gone already: it has taken the block off. */
static UCHAR KiTypeWaitedFor(PKWAIT_BLOCK Block)
{
    return Block->WaitType == WaitDequeue ? QueueObject : (UCHAR)KI_TYPE(KiReadHeader(Block->Object));
}

static VOID KiSetObject(PKI_TRACE_EVENT Event, PVOID Object, UCHAR Type)
{
    Event->Object = (ULONG64)Object;
    Event->Type = Type;
    Event->ObjectThread = Type == ThreadObject ? KiIdOf(CONTAINING_RECORD(Object, KTHREAD, Header)) : 0;
}

static VOID KiDescribeWait(PKI_TRACE_EVENT Event, PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    PKWAIT_BLOCK Block = Thread->WaitBlockCount != 0 ? Thread->WaitBlockList : NULL;
    BOOLEAN Hint = Block != NULL && Block->WaitType == KI_HINT_BLOCK;

    Event->Begin = HalQueryNanoseconds();
    KiSetObject(Event, Block != NULL ? Block->Object : NULL, Block != NULL && !Hint ? KiTypeWaitedFor(Block) : 0);
    Event->Count = Hint ? 0 : Thread->WaitBlockCount;
    Event->Reason = (UCHAR)Wait->Reason;
    Event->Flags = (UCHAR)((Wait->WaitType == WaitAll ? KI_TRACE_ALL : 0) | (Wait->Alertable ? KI_TRACE_ALERTABLE : 0) |
                           (Wait->Mode == UserMode ? KI_TRACE_USER_MODE : 0) | (Hint ? KI_TRACE_HINT : 0));
    if (Wait->Deadline.Clock != HalNoDeadline) {
        ULONGLONG Now = Wait->Deadline.Clock == HalSystemTime ? HalDispatch.QuerySystemTime()
                                                              : HalDispatch.QueryInterruptTime();
        Event->Argument = Wait->Deadline.Time > Now ? Wait->Deadline.Time - Now : 0;
        Event->Flags |= KI_TRACE_TIMEOUT;
    }
    /* release: what a reader finds here is complete */
    __atomic_store_n(&Event->Kind, KiTraceWait, __ATOMIC_RELEASE);
}

/* Of a wait for any, the object that ended it. */
static VOID KiNameSatisfier(PKI_TRACE_EVENT Event, PKTHREAD Thread)
{
    ULONG Index = (ULONG)(Event->Status >= STATUS_ABANDONED_WAIT_0 ? Event->Status - STATUS_ABANDONED_WAIT_0
                                                                   : Event->Status - STATUS_WAIT_0);
    if (!(Event->Flags & KI_TRACE_ALL) && Index != 0 && Index < Event->Count) {
        KiSetObject(Event, Thread->WaitBlockList[Index].Object, KiTypeWaitedFor(&Thread->WaitBlockList[Index]));
    }
}

static VOID KiEnterContention(PKI_CONTENTION Contention, ULONG64 Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive,
                              ULONG Owner);
static VOID KiLeaveContention(PKI_CONTENTION Contention);

/* A wait for a mutant alone is an acquire of it. */
static VOID KiContendForMutant(PKTHREAD Thread)
{
    PKWAIT_BLOCK Block = Thread->WaitBlockList;
    if (KiObjectBlocks(Thread) == 1 && KiTypeWaitedFor(Block) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD(Block->Object, KMUTANT, Header);
        PKTHREAD Owner = __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
        Thread->TraceMutant.Begin = HalQueryNanoseconds();
        KiEnterContention(&Thread->TraceMutant, (ULONG64)Mutant, KiLockMutant, TRUE, KiIdOf(Owner));
    }
}

VOID KiTraceWaitBegin(PKI_WAIT Wait)
{
    if (KiRecords(KiTraceEvents)) {
        PKI_TRACE_EVENT Event = KiOpenEvent(Wait->Thread);
        if (Event != NULL) {
            KiDescribeWait(Event, Wait);
        }
    }
    if (KiRecords(KiTraceContention)) {
        KiContendForMutant(Wait->Thread);
    }
}

VOID KiTraceWaitEnd(PKI_WAIT Wait, LONG_PTR Result)
{
    PKTHREAD Thread = Wait->Thread;
    if (KiRecords(KiTraceEvents)) {
        PKI_TRACE_EVENT Event = KiInnermostEvent(Thread);
        if (Event != NULL) {
            Event->Status = KiStatusOf(Result);
            Event->Flow = Thread->TraceFlow;
            KiNameSatisfier(Event, Thread);
        }
        Thread->TraceFlow = 0;
        KiCloseEvent(Thread);
    }
    if (Thread->TraceMutant.Entry != NULL) {
        KiLeaveContention(&Thread->TraceMutant);
        Thread->TraceMutant.Entry = NULL;
    }
}

VOID KiTraceSignaled(PDISPATCHER_HEADER Header, ULONG64 Word, ULONG64 Begin)
{
    PKI_TRACE_TRACK Track = KiRecords(KiTraceEvents) ? KiTrackOf(KiCurrentThread()) : NULL;
    if (Track != NULL) {
        KI_TRACE_EVENT Event = {
            .Begin = Begin,
            .End = HalQueryNanoseconds(),
            .Status = KI_STATE(Word),
            .Kind = KiTraceSignal,
        };
        KiSetObject(&Event, Header, (UCHAR)KI_TYPE(Word));
        KiRecord(Track, &Event);
    }
}

/* The thread reads TraceFlow when it has seen its WakeWord, which is stored after this. */
VOID KiTraceWoken(PKTHREAD Thread)
{
    PKI_TRACE_TRACK Track = KiRecords(KiTraceEvents) ? KiTrackOf(KiCurrentThread()) : NULL;
    if (Track != NULL) {
        ULONG64 Now = HalQueryNanoseconds();
        Track->Wakes += 1;
        KI_TRACE_EVENT Event = {
            .Begin = Now,
            .End = Now,
            .Argument = KiIdOf(Thread),
            .Flow = (ULONG64)(Track->Number + 1) << 32 | Track->Wakes,
            .Status = KiStatusOf(Thread->WaitStatus),
            .Kind = KiTraceWake,
        };
        Thread->TraceFlow = Event.Flow;
        KiRecord(Track, &Event);
    }
}

/* Contended acquires. */

static ULONG64 KiHash(ULONG64 Hash, ULONG64 Word)
{
    Hash = (Hash ^ Word) * 0x9e3779b97f4a7c15ull;
    return Hash ^ Hash >> 32;
}

static BOOLEAN KiIsEntryOf(PKI_CONTENTION_ENTRY Entry, const KI_CONTENTION_ENTRY *Wanted)
{
    return Entry->Hash == Wanted->Hash && Entry->Lock == Wanted->Lock && Entry->Kind == Wanted->Kind &&
           Entry->Exclusive == Wanted->Exclusive && Entry->Frames == Wanted->Frames &&
           memcmp(Entry->Frame, Wanted->Frame, Wanted->Frames * sizeof(Wanted->Frame[0])) == 0;
}

static VOID KiFillEntry(PKI_CONTENTION_ENTRY Entry, const KI_CONTENTION_ENTRY *Wanted)
{
    Entry->Kind = Wanted->Kind;
    Entry->Exclusive = Wanted->Exclusive;
    Entry->Frames = Wanted->Frames;
    Entry->Hash = Wanted->Hash;
    Entry->Lock = Wanted->Lock;
    memcpy(Entry->Frame, Wanted->Frame, sizeof(Entry->Frame));
    /* release: pairs with the acquire in KiFindEntry */
    __atomic_store_n(&Entry->State, KiEntryReady, __ATOMIC_RELEASE);
}

/* An entry that is just being filled is passed over: at worst two have the same stack, which a reader adds up. */
static PKI_CONTENTION_ENTRY KiFindEntry(const KI_CONTENTION_ENTRY *Wanted)
{
    PKI_TRACE_FILE File = KiRecording[KiTraceContention].File;
    PKI_CONTENTION_ENTRY Entries = (PKI_CONTENTION_ENTRY)(File + 1);
    for (ULONG Probe = 0; Probe < KI_CONTENTION_PROBES; Probe++) {
        PKI_CONTENTION_ENTRY Entry = &Entries[(Wanted->Hash + Probe) % KI_CONTENTION_ENTRIES];
        ULONG State = __atomic_load_n(&Entry->State, __ATOMIC_ACQUIRE);
        if (State == KiEntryReady && KiIsEntryOf(Entry, Wanted)) {
            return Entry;
        }
        /* acquire: as above, when somebody else was faster */
        if (State == KiEntryFree && __atomic_compare_exchange_n(&Entry->State, &State, KiEntryFilling, FALSE,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            KiFillEntry(Entry, Wanted);
            __atomic_fetch_add(&File->UnitsUsed, 1, __ATOMIC_RELAXED);
            return Entry;
        }
        if (State == KiEntryReady && KiIsEntryOf(Entry, Wanted)) {
            return Entry;
        }
    }
    KiCountDropped(File, 1);
    return NULL;
}

/* In an interrupt of the host the unwinder may be what was interrupted. */
static DECLSPEC_NOINLINE VOID KiEnterContention(PKI_CONTENTION Contention, ULONG64 Lock, KI_LOCK_KIND Kind,
                                                BOOLEAN Exclusive, ULONG Owner)
{
    KI_CONTENTION_ENTRY Wanted = {.Lock = Lock, .Kind = (UCHAR)Kind, .Exclusive = Exclusive != FALSE};
    if (KiCurrentThread()->HostInterrupts == 0) {
        Wanted.Frames = (USHORT)HalCaptureStack(2, Wanted.Frame, KI_CONTENTION_FRAMES);
    }
    Wanted.Hash = KiHash(KiHash(0, Lock), (ULONG64)Kind << 1 | Wanted.Exclusive);
    for (ULONG Frame = 0; Frame < Wanted.Frames; Frame++) {
        Wanted.Hash = KiHash(Wanted.Hash, Wanted.Frame[Frame]);
    }
    Contention->Entry = KiFindEntry(&Wanted);
    if (Contention->Entry != NULL) {
        /* relaxed, here and below: statistics */
        __atomic_fetch_add(&Contention->Entry->Waiting, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&Contention->Entry->LastOwner, Owner, __ATOMIC_RELAXED);
    }
}

static VOID KiLeaveContention(PKI_CONTENTION Contention)
{
    PKI_CONTENTION_ENTRY Entry = Contention->Entry;
    ULONG64 Time = HalQueryNanoseconds() - Contention->Begin;
    ULONG64 Longest = __atomic_load_n(&Entry->Longest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Time, Time, __ATOMIC_RELAXED);
    while (Longest < Time && !__atomic_compare_exchange_n(&Entry->Longest, &Longest, Time, FALSE, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_sub(&Entry->Waiting, 1, __ATOMIC_RELAXED);
}

VOID KiTraceContended(PKI_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner)
{
    Contention->Begin = HalQueryNanoseconds();
    if (KiRecords(KiTraceEvents)) {
        PKI_TRACE_EVENT Event = KiOpenEvent(KiCurrentThread());
        if (Event != NULL) {
            Event->Begin = Contention->Begin;
            Event->Object = (ULONG64)Lock;
            Event->Argument = Owner;
            Event->Type = (UCHAR)Kind;
            Event->Flags = Exclusive ? KI_TRACE_EXCLUSIVE : 0;
            /* release: what a reader finds here is complete */
            __atomic_store_n(&Event->Kind, KiTraceAcquire, __ATOMIC_RELEASE);
        }
    }
    if (KiRecords(KiTraceContention)) {
        KiEnterContention(Contention, (ULONG64)Lock, Kind, Exclusive, Owner);
    }
}

/* One that began in the parent of a fork has nothing to end here. */
static BOOLEAN KiIsOwnEntry(PKI_CONTENTION_ENTRY Entry)
{
    if (!KiRecords(KiTraceContention)) {
        return FALSE;
    }
    PKI_CONTENTION_ENTRY First = (PKI_CONTENTION_ENTRY)(KiRecording[KiTraceContention].File + 1);
    return Entry >= First && Entry < First + KI_CONTENTION_ENTRIES;
}

VOID KiTraceAcquired(PKI_CONTENTION Contention)
{
    if (Contention->Begin != 0 && KiRecords(KiTraceEvents)) {
        KiCloseEvent(KiCurrentThread());
    }
    if (KiIsOwnEntry(Contention->Entry)) {
        KiLeaveContention(Contention);
    }
}

/* Beginning. */

static BOOLEAN KiHasEnding(PCSTR Text, PCSTR Ending)
{
    SIZE_T Length = strlen(Text);
    return Length >= strlen(Ending) && strcmp(Text + Length - strlen(Ending), Ending) == 0;
}

/* The pattern with the id of the process: where it has %p, or before its last dot. */
static VOID KiExpandPattern(PCSTR Pattern, BOOLEAN Always, PSTR Path, SIZE_T Size)
{
    PCSTR Place = strstr(Pattern, "%p");
    PCSTR Rest = Place != NULL ? Place + 2 : NULL;
    PCSTR Slash = strrchr(Pattern, '/');
    if (Place == NULL && !Always) {
        snprintf(Path, Size, "%s", Pattern);
        return;
    }
    if (Place == NULL) {
        Place = strrchr(Pattern, '.');
        Place = Place != NULL && (Slash == NULL || Place > Slash) ? Place : Pattern + strlen(Pattern);
        Rest = Place;
    }
    snprintf(Path, Size, "%.*s%s%u%s", (int)(Place - Pattern), Pattern, Rest == Place ? "." : "", HalCurrentProcessId(),
             Rest);
}

static BOOLEAN KiTryCreateRecording(PKI_RECORDING Recording, KI_TRACE_CONTENT Content, BOOLEAN WithId,
                                    HAL_FILE_PROBLEM *Problem)
{
    PCSTR Raw = Content == KiTraceEvents && !KiHasEnding(Recording->Pattern, KI_TRACE_RAW) ? KI_TRACE_RAW : "";
    SIZE_T Room = sizeof(Recording->Output) - sizeof(KI_TRACE_RAW);

    KiExpandPattern(Recording->Pattern, WithId, Recording->Output, Room);
    memcpy(Recording->Path, Recording->Output, sizeof(Recording->Path));
    strcat(Recording->Path, Raw);
    if (Raw[0] == '\0') {
        Recording->Output[0] = '\0';
    }
    Recording->File = HalCreateMappedFile(Recording->Path, Recording->Size, &Recording->Descriptor, Problem);
    return Recording->File != NULL;
}

static VOID KiCreateRecording(KI_TRACE_CONTENT Content, BOOLEAN WithId)
{
    PKI_RECORDING Recording = &KiRecording[Content];
    HAL_FILE_PROBLEM Problem;
    if (!KiTryCreateRecording(Recording, Content, WithId, &Problem) &&
        !(Problem.InUse && KiTryCreateRecording(Recording, Content, TRUE, &Problem))) {
        HalPrint("interlock: %s: cannot write %s: %s; nothing is recorded\n", Recording->Setting, Recording->Path,
                 Problem.Text);
        return;
    }
    PKI_TRACE_FILE File = Recording->File;
    File->Content = Content;
    File->ProcessId = HalCurrentProcessId();
    File->Start = HalQueryNanoseconds();
    File->Units = (ULONG)((Recording->Size - sizeof(*File)) / KiTraceUnitSize(Content));
    HalQueryProgramName(File->Program, sizeof(File->Program));
    File->ModulesLength = HalQueryModules(File->Modules, sizeof(File->Modules));
    File->Magic = KI_TRACE_MAGIC;
    __atomic_fetch_or(&KiTracing, 1u << Content, __ATOMIC_RELAXED);
}

static VOID KiReadRecordingSetting(KI_TRACE_CONTENT Content, PCSTR Default, SIZE_T Size)
{
    PKI_RECORDING Recording = &KiRecording[Content];
    PCSTR Path = HalGetEnvironment(Recording->Setting);
    if (Path == NULL || Path[0] == '\0' || strcmp(Path, "0") == 0) {
        return;
    }
    if (!HalMakeAbsolutePath(strcmp(Path, "1") == 0 ? Default : Path, Recording->Pattern, sizeof(Recording->Pattern))) {
        HalPrint("interlock: %s: the name is too long; nothing is recorded\n", Recording->Setting);
        return;
    }
    Recording->Size = sizeof(KI_TRACE_FILE) + Size;
    KiCreateRecording(Content, FALSE);
}

VOID KiInitializeTrace(VOID)
{
    SIZE_T Limit = KiReadSetting("INTERLOCK_TRACE_LIMIT", 1, 4096, KI_TRACE_DEFAULT_LIMIT);
    KiReadRecordingSetting(KiTraceEvents, "interlock-%p.json", Limit << 20);
    KiReadRecordingSetting(KiTraceContention, "interlock-%p.contention",
                           KI_CONTENTION_ENTRIES * sizeof(KI_CONTENTION_ENTRY));
}

static ULONG KiBeginPostponed(VOID)
{
    ULONG Tracing = __atomic_fetch_and(&KiTracing, KI_TRACE_CONTENTS, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        if (Tracing & (1u << (KI_TRACE_POSTPONED + Content))) {
            KiCreateRecording((KI_TRACE_CONTENT)Content, TRUE);
        }
    }
    return __atomic_load_n(&KiTracing, __ATOMIC_RELAXED);
}

/* The parent goes on in its file; nothing of it is the child's. */
VOID KiTraceForkChild(VOID)
{
    KiTrackNameLock = 0;
    ULONG Tracing = __atomic_exchange_n(&KiTracing, 0, __ATOMIC_RELAXED);
    for (ULONG Slot = 0; Tracing != 0 && Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED); Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        Thread->TraceTrack = NULL;
        Thread->TraceFlow = 0;
        Thread->TraceMutant.Entry = NULL;
    }
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        if (Tracing & (1u << Content)) {
            HalUnmapFile(KiRecording[Content].File, KiRecording[Content].Size, KiRecording[Content].Descriptor);
            KiRecording[Content].File = NULL;
        }
    }
    Tracing = (Tracing | Tracing >> KI_TRACE_POSTPONED) & KI_TRACE_CONTENTS;
    __atomic_store_n(&KiTracing, Tracing << KI_TRACE_POSTPONED, __ATOMIC_RELAXED);
}

/* Finishing. */

typedef struct _KI_OUTPUT {
    LONG Descriptor;
    SIZE_T Length;
    CHAR Buffer[KI_TRACE_BUFFER];
} KI_OUTPUT, *PKI_OUTPUT;

static BOOLEAN KiFlushOutput(PKI_OUTPUT Output)
{
    SIZE_T Length = Output->Length;
    Output->Length = 0;
    return HalWriteOutput(Output->Descriptor, Output->Buffer, Length);
}

static BOOLEAN KiWriteToOutput(PVOID Context, PCSTR Text, SIZE_T Length)
{
    PKI_OUTPUT Output = Context;
    if (Length > sizeof(Output->Buffer) - Output->Length && !KiFlushOutput(Output)) {
        return FALSE;
    }
    memcpy(Output->Buffer + Output->Length, Text, Length);
    Output->Length += Length;
    return TRUE;
}

static BOOLEAN KiNameByHost(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Context);
    return HalQueryAddressName(Address, Buffer, Size);
}

static VOID KiConvertRecording(PKI_RECORDING Recording, BOOLEAN Orderly)
{
    static KI_OUTPUT Output;
    KI_TRACE_SINK Sink = {.Write = KiWriteToOutput, .Name = KiNameByHost, .Context = &Output};
    KI_TRACE_SUMMARY Summary;
    HAL_FILE_PROBLEM Problem;

    Output.Descriptor = HalCreateOutput(Recording->Output, &Problem);
    if (Output.Descriptor < 0) {
        HalPrint("interlock: %s: cannot write %s: %s\n", Recording->Setting, Recording->Output, Problem.Text);
        return;
    }
    if (Orderly) {
        Sink.Scratch = HalAllocate(KiTraceScratchSize(Recording->File), sizeof(ULONG64));
    }
    if (KiWriteTraceJson(Recording->File, &Sink, &Summary) && KiFlushOutput(&Output)) {
        HalRemoveFile(Recording->Path);
    } else {
        HalPrint("interlock: %s: %s could not be written whole; %s has what was recorded\n", Recording->Setting,
                 Recording->Output, Recording->Path);
    }
    if (Sink.Scratch != NULL) {
        HalFree(Sink.Scratch);
    }
    HalCloseDescriptor(Output.Descriptor);
}

static VOID KiRefreshTrackNames(PKI_TRACE_FILE File)
{
    PKI_TRACE_TRACK Track;
    for (ULONG Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE); Number != 0; Number = Track->Next) {
        Track = KiUnit(Number - 1);
        if (__atomic_load_n(&Track->State, __ATOMIC_RELAXED) == KiTrackLive) {
            HalQueryThreadName(Track->ThreadId, Track->Name, sizeof(Track->Name));
        }
    }
}

VOID KiFinishTrace(BOOLEAN Orderly)
{
    ULONG Tracing = __atomic_exchange_n(&KiTracing, 0, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        PKI_RECORDING Recording = &KiRecording[Content];
        if (!(Tracing & (1u << Content))) {
            continue;
        }
        if (Content == KiTraceEvents && KiTryAcquireLock(&KiTrackNameLock)) {
            KiRefreshTrackNames(Recording->File);
        }
        Recording->File->ModulesLength = HalQueryModules(Recording->File->Modules, sizeof(Recording->File->Modules));
        Recording->File->End = HalQueryNanoseconds();
        if (Recording->Output[0] != '\0') {
            KiConvertRecording(Recording, Orderly);
        }
    }
}

static __attribute__((destructor)) VOID KiFinishTraceAtExit(VOID)
{
    KiFinishTrace(TRUE);
}
