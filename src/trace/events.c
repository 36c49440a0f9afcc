/* events.c: records waits, signals, wakes and contended acquires. Theory in tracefile.h. */
#include "tracep.h"

#include <stdio.h>

#include "../ke/park.h"
#include "../ke/wait.h"

#define MOST_ROUNDS_FOR_TRACKS 240 /* about a tenth of a second */
#define CONTENTION_PROBES 64

static ULONG TracepIdOf(PKTHREAD Thread)
{
    return Thread != NULL ? __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED) : 0;
}

static VOID TracepCountDropped(PTRACE_FILE File)
{
    /* relaxed: a statistic */
    __atomic_fetch_add(&File->Dropped, 1, __ATOMIC_RELAXED);
}

/* Units. Every number here is stored plus 1; 0 is none. */

static PVOID TracepUnit(ULONG Number)
{
    return (PUCHAR)(TraceRecording[TraceEvents].File + 1) + (SIZE_T)(Number - 1) * TRACE_UNIT;
}

/* 0: there is none for a track that has Held chunks. */
static ULONG TracepTakeUnit(PTRACE_FILE File, ULONG Held)
{
    ULONG Most = Held > 1 ? File->Units - File->Units / 4 : File->Units;
    ULONG Used = __atomic_load_n(&File->UnitsUsed, __ATOMIC_RELAXED);
    do {
        if (Used >= Most) {
            return 0;
        }
        /* relaxed: nobody has written to the unit before */
    } while (!__atomic_compare_exchange_n(&File->UnitsUsed, &Used, Used + 1, FALSE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return Used + 1;
}

/* Tracks. */

/*
 * Guards the owner of a track and its name. The end of the process keeps the lock: a thread that ends after that leaves its
 * track as it is, with the name and the events that it had open.
 */
static KI_LOCK TracepTrackLock;
static volatile ULONG TracepTracksLeft; /* by threads that have ended, for others */

/* FALSE: the process ends, and tracks stay as they are. */
static BOOLEAN TracepLockTracks(VOID)
{
    for (ULONG Round = 0; TracepRecords(TraceEvents); Round++) {
        if (KiTryAcquireLock(&TracepTrackLock)) {
            return TRUE;
        }
        KiBackOff(Round);
    }
    return FALSE;
}

/* With the lock held: otherwise a concurrent rename would be lost. If the host does not know the thread, the name stays.
   A process that is killed meanwhile leaves either name. */
static VOID TracepAskHostForName(PTRACE_TRACK Track)
{
    CHAR Name[TRACE_NAME];
    memcpy(Name, Track->Name, sizeof(Name));
    HalQueryThreadName(Track->ThreadId, Name, sizeof(Name));
    memcpy(Track->Name, Name, sizeof(Name));
}

/* One that an ended thread left, else a new one. NULL: there is no room. */
static PTRACE_TRACK TracepTakeTrack(PTRACE_FILE File)
{
    PTRACE_TRACK Track;
    ULONG Number, First;
    /* relaxed: at worst a track that was left just now waits for the next thread */
    if (__atomic_load_n(&TracepTracksLeft, __ATOMIC_RELAXED) != 0) {
        for (Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE); Number != 0; Number = Track->Next) {
            ULONG State = TraceTrackEnded;
            Track = TracepUnit(Number);
            /* acquire: pairs with the release in TraceThreadEnd */
            if (__atomic_load_n(&Track->State, __ATOMIC_RELAXED) == TraceTrackEnded &&
                __atomic_compare_exchange_n(&Track->State, &State, TraceTrackTaken, FALSE, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED)) {
                __atomic_fetch_sub(&TracepTracksLeft, 1, __ATOMIC_RELAXED);
                return Track;
            }
        }
    }
    Number = TracepTakeUnit(File, 0);
    if (Number == 0) {
        return NULL;
    }
    Track = TracepUnit(Number);
    Track->Number = Number - 1;
    Track->State = TraceTrackTaken;
    First = __atomic_load_n(&File->FirstTrack, __ATOMIC_RELAXED);
    do {
        Track->Next = First;
        /* release: pairs with the acquire loads of FirstTrack */
    } while (!__atomic_compare_exchange_n(&File->FirstTrack, &First, Number, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return Track;
}

/* What the thread began in an earlier recording, and ended after that had stopped, is not open any more. */
static VOID TracepJoinRecording(PKTHREAD Thread, PTRACE_TRACK Track)
{
    ULONG Beginnings = TraceRecording[TraceEvents].Beginnings;
    if (TracepThread(Thread)->Beginning != Beginnings) {
        TracepThread(Thread)->Beginning = Beginnings;
        Track->Depth = 0;
    }
}

/* Of the current thread. NULL: there is no room, or the process ends. */
static PTRACE_TRACK TracepTrackOf(PKTHREAD Thread)
{
    PTRACE_FILE File = TraceRecording[TraceEvents].File;
    PTRACE_TRACK Track = TracepThread(Thread)->Track;
    if (Track != NULL) {
        TracepJoinRecording(Thread, Track);
        return Track;
    }
    Track = TracepTakeTrack(File);
    if (Track == NULL) {
        TracepCountDropped(File);
        return NULL;
    }
    Track->ThreadId = HalCurrentThreadId();
    Track->Depth = 0;
    Track->Busy = FALSE;
    TracepThread(Thread)->Beginning = TraceRecording[TraceEvents].Beginnings;
    /* release: pairs with the acquire in TraceThreadName, by which another thread finds the track */
    __atomic_store_n(&TracepThread(Thread)->Track, Track, __ATOMIC_RELEASE);
    if (!TracepLockTracks()) {
        return NULL;
    }
    /* after that store: from now on a rename of the thread renames the track, too */
    Track->Name[0] = '\0';
    TracepAskHostForName(Track);
    /* release: pairs with the acquire in TracepIsLive, which then finds this thread's name, not its predecessor's */
    __atomic_store_n(&Track->State, TraceTrackLive, __ATOMIC_RELEASE);
    KiReleaseLock(&TracepTrackLock);
    return Track;
}

VOID TraceThreadName(PKTHREAD Thread, PCSTR Name)
{
    /* acquire: pairs with the release in TracepTrackOf */
    PTRACE_TRACK Track = __atomic_load_n(&TracepThread(Thread)->Track, __ATOMIC_ACQUIRE);
    if (Track != NULL && TracepLockTracks()) {
        /* relaxed: a thread leaves its track with the lock held */
        if (__atomic_load_n(&TracepThread(Thread)->Track, __ATOMIC_RELAXED) == Track) {
            snprintf(Track->Name, sizeof(Track->Name), "%s", Name);
        }
        KiReleaseLock(&TracepTrackLock);
    }
}

VOID TracepForgetTracks(VOID)
{
    TracepTrackLock = 0;
    TracepTracksLeft = 0;
    for (ULONG Slot = 0; Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED); Slot++) {
        *TracepThread(KiThreadFromNumber(Slot)) = (TRACE_THREAD){0};
    }
}

/* The lock's owner may be suspended, or be the thread that ends the process: the tracks are then read as they are. */
VOID TracepFinishTrackNames(PTRACE_FILE File)
{
    BOOLEAN Locked = KiTryAcquireLock(&TracepTrackLock);
    PTRACE_TRACK Track;
    for (ULONG Round = 0; !Locked && Round < MOST_ROUNDS_FOR_TRACKS; Round++) {
        KiBackOff(Round);
        Locked = KiTryAcquireLock(&TracepTrackLock);
    }
    if (!Locked) {
        return;
    }
    for (ULONG Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE); Number != 0; Number = Track->Next) {
        Track = TracepUnit(Number);
        if (__atomic_load_n(&Track->State, __ATOMIC_RELAXED) == TraceTrackLive) {
            TracepAskHostForName(Track);
        }
    }
}

/* Events. */

/* A fresh chunk, else the track's oldest: that becomes the newest, or starts over if it is the only one. NULL: none. */
static PTRACE_CHUNK TracepNextChunk(PTRACE_TRACK Track)
{
    ULONG Number = TracepTakeUnit(TraceRecording[TraceEvents].File, Track->Chunks);
    PTRACE_CHUNK Chunk;
    if (Number != 0) {
        Track->Chunks += 1;
    } else if (Track->Newest == 0) {
        return NULL;
    } else {
        Number = Track->Oldest;
        Chunk = TracepUnit(Number);
        for (ULONG Index = 0; Index < Chunk->Count; Index++) {
            Track->Dropped += Chunk->Event[Index].Kind != TraceEnded;
        }
        if (Track->Newest == Number) {
            __atomic_store_n(&Chunk->Count, 0, __ATOMIC_RELAXED);
            return Chunk;
        }
        Track->Oldest = Chunk->Next;
    }
    Chunk = TracepUnit(Number);
    __atomic_store_n(&Chunk->Count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&Chunk->Next, 0, __ATOMIC_RELAXED);
    if (Track->Newest != 0) {
        PTRACE_CHUNK Newest = TracepUnit(Track->Newest);
        __atomic_store_n(&Newest->Next, Number, __ATOMIC_RELAXED);
    } else {
        Track->Oldest = Number;
    }
    Track->Newest = Number;
    return Chunk;
}

/* Busy keeps out a host interrupt on this thread: the fences keep the compiler from moving the writes out of it. */
static VOID TracepRecord(PTRACE_TRACK Track, const TRACE_EVENT *Event)
{
    PTRACE_CHUNK Chunk;
    if (Track->Busy) {
        Track->Dropped += 1; /* an interrupt records no TraceEnded */
        return;
    }
    Track->Busy = TRUE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Chunk = Track->Newest != 0 ? TracepUnit(Track->Newest) : NULL;
    if (Chunk == NULL || Chunk->Count == TRACE_CHUNK_EVENTS) {
        Chunk = TracepNextChunk(Track);
    }
    if (Chunk != NULL) {
        Chunk->Event[Chunk->Count] = *Event;
        Chunk->Event[Chunk->Count].ThreadId = Track->ThreadId;
        /* release: pairs with the acquire in TracepCountOf, by a reader of the file */
        __atomic_store_n(&Chunk->Count, Chunk->Count + 1, __ATOMIC_RELEASE);
    } else {
        Track->Dropped += Event->Kind != TraceEnded;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Track->Busy = FALSE;
}

/* An event that begins; the caller stores its Kind last. NULL: it is not kept. */
static PTRACE_EVENT TracepOpenEvent(PKTHREAD Thread)
{
    PTRACE_TRACK Track = TracepTrackOf(Thread);
    if (Track == NULL) {
        return NULL;
    }
    ULONG Depth = Track->Depth;
    Track->Depth = Depth + 1;
    if (Depth >= TRACE_DEPTH) {
        Track->Dropped += 1;
        return NULL;
    }
    Track->Open[Depth] = (TRACE_EVENT){.Kind = TraceNothing};
    return &Track->Open[Depth];
}

static PTRACE_EVENT TracepInnermostEvent(PKTHREAD Thread)
{
    PTRACE_TRACK Track = TracepThread(Thread)->Track;
    if (Track != NULL) {
        TracepJoinRecording(Thread, Track);
    }
    return Track != NULL && Track->Depth != 0 && Track->Depth <= TRACE_DEPTH ? &Track->Open[Track->Depth - 1] : NULL;
}

static VOID TracepCloseEvent(PKTHREAD Thread)
{
    PTRACE_EVENT Event = TracepInnermostEvent(Thread);
    PTRACE_TRACK Track = TracepThread(Thread)->Track;
    if (Event != NULL) {
        Event->End = HalQueryNanoseconds();
        TracepRecord(Track, Event);
    }
    if (Track != NULL && Track->Depth != 0) {
        Track->Depth -= 1;
    }
}

/* What the thread had open becomes events, then its name does. The host alone may know the name that a living thread has
   by now. A thread that was terminated inside TracepRecord has left Busy set. */
VOID TraceThreadEnd(PKTHREAD Thread)
{
    PTRACE_TRACK Track = TracepThread(Thread)->Track;
    TRACE_EVENT Last = {.Kind = TraceEnded};
    if (Track == NULL || !TracepLockTracks()) {
        return;
    }
    if (Thread == HalCurrentThread) {
        TracepAskHostForName(Track);
    }
    Last.End = HalQueryNanoseconds();
    Track->Busy = FALSE;
    for (ULONG Index = 0; Index < Track->Depth && Index < TRACE_DEPTH; Index++) {
        TRACE_EVENT Event = Track->Open[Index];
        if (Event.Kind != TraceNothing) {
            Event.End = Last.End;
            Event.Flags |= TRACE_UNFINISHED;
            TracepRecord(Track, &Event);
        }
    }
    Track->Depth = 0;
    memcpy(Last.Name, Track->Name, sizeof(Last.Name));
    TracepRecord(Track, &Last);
    __atomic_store_n(&TracepThread(Thread)->Track, NULL, __ATOMIC_RELAXED);
    /* release: pairs with the acquires in TracepTakeTrack and TracepIsLive: the name is among the events */
    __atomic_store_n(&Track->State, TraceTrackEnded, __ATOMIC_RELEASE);
    __atomic_fetch_add(&TracepTracksLeft, 1, __ATOMIC_RELAXED);
    KiReleaseLock(&TracepTrackLock);
}

/* Contended acquires: a hash table of locks and the stacks that waited for them. */

static ULONG64 TracepHash(ULONG64 Hash, ULONG64 Word)
{
    Hash = (Hash ^ Word) * 0x9e3779b97f4a7c15ull;
    return Hash ^ Hash >> 32;
}

static BOOLEAN TracepIsSameEntry(const TRACE_CONTENTION_ENTRY *Entry, const TRACE_CONTENTION_ENTRY *Wanted)
{
    return Entry->Hash == Wanted->Hash && Entry->Lock == Wanted->Lock && Entry->Kind == Wanted->Kind &&
           Entry->Exclusive == Wanted->Exclusive && Entry->Frames == Wanted->Frames &&
           memcmp(Entry->Frame, Wanted->Frame, Wanted->Frames * sizeof(Wanted->Frame[0])) == 0;
}

/* An entry that another thread is filling is passed over: at worst two have the same stack, and a reader adds them. */
static PTRACE_CONTENTION_ENTRY TracepFindEntry(const TRACE_CONTENTION_ENTRY *Wanted)
{
    PTRACE_FILE File = TraceRecording[TraceContention].File;
    PTRACE_CONTENTION_ENTRY Entries = (PTRACE_CONTENTION_ENTRY)(File + 1);
    for (ULONG Probe = 0; Probe < CONTENTION_PROBES; Probe++) {
        PTRACE_CONTENTION_ENTRY Entry = &Entries[(Wanted->Hash + Probe) % TRACE_CONTENTION_ENTRIES];
        ULONG State = __atomic_load_n(&Entry->State, __ATOMIC_ACQUIRE);
        /* acquire: pairs with the release below, by a thread that was faster */
        if (State == TraceEntryFree && __atomic_compare_exchange_n(&Entry->State, &State, TraceEntryFilling, FALSE,
                                                                   __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            Entry->Kind = Wanted->Kind;
            Entry->Exclusive = Wanted->Exclusive;
            Entry->Frames = Wanted->Frames;
            Entry->Hash = Wanted->Hash;
            Entry->Lock = Wanted->Lock;
            memcpy(Entry->Frame, Wanted->Frame, sizeof(Entry->Frame));
            /* release: pairs with both acquires above */
            __atomic_store_n(&Entry->State, TraceEntryReady, __ATOMIC_RELEASE);
            __atomic_fetch_add(&File->UnitsUsed, 1, __ATOMIC_RELAXED);
            return Entry;
        }
        if (State == TraceEntryReady && TracepIsSameEntry(Entry, Wanted)) {
            return Entry;
        }
    }
    TracepCountDropped(File);
    return NULL;
}

VOID TracepForgetContention(PTRACE_FILE File)
{
    PTRACE_CONTENTION_ENTRY Entry = (PTRACE_CONTENTION_ENTRY)(File + 1);
    for (ULONG Number = 0; Number < TRACE_CONTENTION_ENTRIES; Number += 1, Entry += 1) {
        /* relaxed: statistics. A thread that still ends an acquire of the earlier recording may count here */
        __atomic_store_n(&Entry->Count, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Time, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Longest, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Waiting, 0, __ATOMIC_RELAXED);
    }
}

/* In a host interrupt the unwinder itself may be what was interrupted: no stack then. */
static DECLSPEC_NOINLINE VOID TracepEnterContention(PTRACE_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind,
                                                    BOOLEAN Exclusive, ULONG Owner)
{
    TRACE_CONTENTION_ENTRY Wanted = {.Lock = (ULONG64)Lock, .Kind = (UCHAR)Kind, .Exclusive = Exclusive != FALSE};
    if (KiCurrentThread()->HostInterrupts == 0) {
        Wanted.Frames = (USHORT)HalCaptureStack(2, Wanted.Frame, TRACE_CONTENTION_FRAMES);
    }
    Wanted.Hash = TracepHash(TracepHash(0, Wanted.Lock), (ULONG64)Kind << 1 | Wanted.Exclusive);
    for (ULONG Frame = 0; Frame < Wanted.Frames; Frame++) {
        Wanted.Hash = TracepHash(Wanted.Hash, Wanted.Frame[Frame]);
    }
    Contention->Entry = TracepFindEntry(&Wanted);
    if (Contention->Entry != NULL) {
        /* relaxed, here and below: statistics */
        __atomic_fetch_add(&Contention->Entry->Waiting, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&Contention->Entry->LastOwner, Owner, __ATOMIC_RELAXED);
    }
}

static VOID TracepLeaveContention(PTRACE_CONTENTION Contention)
{
    PTRACE_CONTENTION_ENTRY Entry = Contention->Entry;
    ULONG64 Time = HalQueryNanoseconds() - Contention->Begin;
    if (Contention->Begin < TraceRecording[TraceContention].File->Start) {
        return; /* it began in an earlier recording, whose counts are forgotten */
    }
    ULONG64 Longest = __atomic_load_n(&Entry->Longest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Time, Time, __ATOMIC_RELAXED);
    while (Longest < Time && !__atomic_compare_exchange_n(&Entry->Longest, &Longest, Time, FALSE, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_sub(&Entry->Waiting, 1, __ATOMIC_RELAXED);
}

VOID TraceContended(PTRACE_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner)
{
    Contention->Begin = HalQueryNanoseconds();
    if (TracepRecords(TraceEvents)) {
        PTRACE_EVENT Event = TracepOpenEvent(KiCurrentThread());
        if (Event != NULL) {
            Event->Begin = Contention->Begin;
            Event->Object = (ULONG64)Lock;
            Event->Argument = Owner;
            Event->Type = (UCHAR)Kind;
            Event->Flags = Exclusive ? TRACE_EXCLUSIVE : 0;
            /* release: the event is complete for a reader that finds its kind */
            __atomic_store_n(&Event->Kind, TraceAcquire, __ATOMIC_RELEASE);
        }
    }
    if (TracepRecords(TraceContention)) {
        TracepEnterContention(Contention, Lock, Kind, Exclusive, Owner);
    }
}

/* An acquire that began in the parent of a fork has its entry there, and ends nothing here. */
VOID TraceAcquired(PTRACE_CONTENTION Contention)
{
    if (Contention->Begin != 0 && TracepRecords(TraceEvents)) {
        TracepCloseEvent(KiCurrentThread());
    }
    if (TracepRecords(TraceContention)) {
        PTRACE_CONTENTION_ENTRY First = (PTRACE_CONTENTION_ENTRY)(TraceRecording[TraceContention].File + 1);
        if (Contention->Entry >= First && Contention->Entry < First + TRACE_CONTENTION_ENTRIES) {
            TracepLeaveContention(Contention);
        }
    }
}

/* Waits, signals and wakes. */

/* The entry that a queue hands over is no status. */
static LONG TracepStatusOf(LONG_PTR Result)
{
    return Result == (LONG)Result && (ULONG_PTR)Result < 0x10000 ? (LONG)Result : STATUS_SUCCESS;
}

/* Not read from the object: it may be gone once it has taken the wait block off. */
static UCHAR TracepTypeWaitedFor(PKI_WAIT Wait, ULONG Index)
{
    return Wait->WaitType == WaitDequeue ? QueueObject : *KiTypeOf(Wait, Index);
}

static VOID TracepSetObject(PTRACE_EVENT Event, PVOID Object, UCHAR Type)
{
    Event->Object = (ULONG64)Object;
    Event->Type = Type;
    Event->ObjectThread = Type == ThreadObject ? TracepIdOf(CONTAINING_RECORD(Object, KTHREAD, Header)) : 0;
}

static VOID TracepDescribeWait(PTRACE_EVENT Event, PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    PKWAIT_BLOCK Block = Thread->WaitBlockCount != 0 ? Thread->WaitBlockList : NULL;
    BOOLEAN Hint = Block != NULL && Block->WaitType == KI_HINT_BLOCK;

    Event->Begin = HalQueryNanoseconds();
    TracepSetObject(Event, Block != NULL ? Block->Object : NULL,
                    Block != NULL && !Hint ? TracepTypeWaitedFor(Wait, 0) : 0);
    Event->Count = Hint ? 0 : Thread->WaitBlockCount;
    Event->Reason = (UCHAR)Wait->Reason;
    Event->Flags = (UCHAR)((Wait->WaitType == WaitAll ? TRACE_ALL : 0) | (Wait->Alertable ? TRACE_ALERTABLE : 0) |
                           (Wait->Mode == UserMode ? TRACE_USER_MODE : 0) | (Hint ? TRACE_HINT : 0));
    if (Wait->Deadline.Clock != HalNoDeadline) {
        ULONGLONG Now = Wait->Deadline.Clock == HalSystemTime ? HalDispatch.QuerySystemTime()
                                                              : HalDispatch.QueryInterruptTime();
        Event->Argument = Wait->Deadline.Time > Now ? Wait->Deadline.Time - Now : 0;
        Event->Flags |= TRACE_TIMEOUT;
    }
    /* release: the event is complete for a reader that finds its kind */
    __atomic_store_n(&Event->Kind, TraceWait, __ATOMIC_RELEASE);
}

/* A wait for a single mutant is an acquire of it. */
VOID TraceWaitBegin(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    if (TracepRecords(TraceEvents)) {
        PTRACE_EVENT Event = TracepOpenEvent(Thread);
        if (Event != NULL) {
            TracepDescribeWait(Event, Wait);
        }
    }
    if (TracepRecords(TraceContention) && KiObjectBlocks(Thread) == 1 && TracepTypeWaitedFor(Wait, 0) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->WaitBlockList->Object, KMUTANT, Header);
        PKTHREAD Owner = __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
        TracepThread(Thread)->Mutant.Begin = HalQueryNanoseconds();
        TracepEnterContention(&TracepThread(Thread)->Mutant, Mutant, KiLockMutant, TRUE, TracepIdOf(Owner));
    }
}

VOID TraceWaitEnd(PKI_WAIT Wait, LONG_PTR Result)
{
    PKTHREAD Thread = Wait->Thread;
    PTRACE_THREAD Own = TracepThread(Thread);
    if (TracepRecords(TraceEvents)) {
        PTRACE_EVENT Event = TracepInnermostEvent(Thread);
        if (Event != NULL) {
            LONG Status = TracepStatusOf(Result);
            ULONG Index = (ULONG)(Status - (Status >= STATUS_ABANDONED_WAIT_0 ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0));
            if (Wait->WaitType == KI_MANY_BLOCK) {
                Status = KiSplitManyStatus((NTSTATUS)Result, &Index);
            }
            Event->Status = Status;
            Event->Flow = Own->Flow;
            /* of a WaitAny, the object that satisfied it */
            if (!(Event->Flags & TRACE_ALL) && Index != 0 && Index < Event->Count) {
                TracepSetObject(Event, Thread->WaitBlockList[Index].Object, TracepTypeWaitedFor(Wait, Index));
            }
        }
        Own->Flow = 0;
        TracepCloseEvent(Thread);
    }
    if (Own->Mutant.Entry != NULL) {
        TracepLeaveContention(&Own->Mutant);
        Own->Mutant.Entry = NULL;
    }
}

VOID TraceSignaled(PDISPATCHER_HEADER Header, ULONG64 Word, ULONG64 Begin)
{
    PTRACE_TRACK Track = TracepRecords(TraceEvents) ? TracepTrackOf(KiCurrentThread()) : NULL;
    if (Track != NULL) {
        TRACE_EVENT Event = {
            .Begin = Begin,
            .End = HalQueryNanoseconds(),
            .Status = KI_STATE(Word),
            .Kind = TraceSignal,
        };
        TracepSetObject(&Event, Header, (UCHAR)KI_TYPE(Word));
        TracepRecord(Track, &Event);
    }
}

VOID TraceWoken(PKTHREAD Thread)
{
    PTRACE_TRACK Track = TracepRecords(TraceEvents) ? TracepTrackOf(KiCurrentThread()) : NULL;
    if (Track != NULL) {
        ULONG64 Now = HalQueryNanoseconds();
        Track->Wakes += 1;
        TRACE_EVENT Event = {
            .Begin = Now,
            .End = Now,
            .Argument = TracepIdOf(Thread),
            .Flow = (ULONG64)(Track->Number + 1) << 32 | Track->Wakes,
            .Status = TracepStatusOf(Thread->WaitStatus),
            .Kind = TraceWake,
        };
        TracepThread(Thread)->Flow = Event.Flow;
        TracepRecord(Track, &Event);
    }
}
