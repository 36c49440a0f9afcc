/* trace.c: the events of a trace: waits, signals and contended acquires. Theory in tracefile.h. */
#include "recording.h"

#include <stdio.h>

#include "wait.h"

#define MOST_ROUNDS_FOR_TRACKS 240 /* about a tenth of a second */

static ULONG KiIdOf(PKTHREAD Thread)
{
    return Thread != NULL ? __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED) : 0;
}

/* Units of a trace. */

static PVOID KiUnit(ULONG Number)
{
    return (PUCHAR)(KiRecording[KiTraceEvents].File + 1) + (SIZE_T)Number * KI_TRACE_UNIT;
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
 * Whose a track is and the name of that thread change under this lock. The end of the process keeps it: a thread that
 * ends from then on leaves its track as it is, with the name and what the thread was in the middle of.
 */
static KI_LOCK KiTrackLock;

/* FALSE: the process ends, and tracks stay as they are. */
static BOOLEAN KiLockTracks(VOID)
{
    while (KiRecords(KiTraceEvents)) {
        if (KiTryAcquireLock(&KiTrackLock)) {
            return TRUE;
        }
        HalDispatch.Yield();
    }
    return FALSE;
}

/* With the lock held, or a concurrent rename would be lost. If the host does not say, the name stays as it is. A process
   that is killed meanwhile leaves the one or the other. */
static VOID KiAskHostForName(PKI_TRACE_TRACK Track)
{
    CHAR Name[KI_TRACE_NAME];
    memcpy(Name, Track->Name, sizeof(Name));
    HalQueryThreadName(Track->ThreadId, Name, sizeof(Name));
    memcpy(Track->Name, Name, sizeof(Name));
}

/* FALSE: the process ends, and the track is nobody's. */
static BOOLEAN KiBeginTrack(PKI_TRACE_TRACK Track, PKTHREAD Thread)
{
    Track->ThreadId = HalCurrentThreadId();
    Track->Depth = 0;
    Track->Busy = FALSE;
    /* release: pairs with KiTraceThreadName, by which another thread comes here */
    __atomic_store_n(&Thread->TraceTrack, Track, __ATOMIC_RELEASE);
    if (!KiLockTracks()) {
        return FALSE;
    }
    /* after that: whoever names the thread from now on also names the track */
    Track->Name[0] = '\0';
    KiAskHostForName(Track);
    /* release: pairs with the acquire in KiHasThread, which finds the name of this thread, not of the one before */
    __atomic_store_n(&Track->State, KiTrackLive, __ATOMIC_RELEASE);
    KiReleaseLock(&KiTrackLock);
    return TRUE;
}

static volatile ULONG KiTracksLeft; /* by threads that have ended, for others */

static PKI_TRACE_TRACK KiNewTrack(PKI_TRACE_FILE File)
{
    ULONG Unit = KiTakeUnit(File, 0);
    if (Unit == 0) {
        return NULL;
    }
    PKI_TRACE_TRACK Track = KiUnit(Unit - 1);
    Track->Number = Unit - 1;
    Track->State = KiTrackTaken;
    ULONG First = __atomic_load_n(&File->FirstTrack, __ATOMIC_RELAXED);
    do {
        Track->Next = First;
        /* release: pairs with the acquire of whoever goes through the tracks */
    } while (!__atomic_compare_exchange_n(&File->FirstTrack, &First, Unit, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return Track;
}

static PKI_TRACE_TRACK KiTakeOverTrack(PKI_TRACE_FILE File)
{
    PKI_TRACE_TRACK Track;
    /* relaxed: at worst a track that was left just now waits for the next thread */
    if (__atomic_load_n(&KiTracksLeft, __ATOMIC_RELAXED) == 0) {
        return NULL;
    }
    for (ULONG Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE); Number != 0; Number = Track->Next) {
        ULONG State = KiTrackEnded;
        Track = KiUnit(Number - 1);
        /* acquire: pairs with the release in KiTraceThreadEnd */
        if (__atomic_load_n(&Track->State, __ATOMIC_RELAXED) == KiTrackEnded &&
            __atomic_compare_exchange_n(&Track->State, &State, KiTrackTaken, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            __atomic_fetch_sub(&KiTracksLeft, 1, __ATOMIC_RELAXED);
            return Track;
        }
    }
    return NULL;
}

/* Of the current thread. NULL: there is no room, or the process ends. */
static PKI_TRACE_TRACK KiTrackOf(PKTHREAD Thread)
{
    PKI_TRACE_FILE File = KiRecording[KiTraceEvents].File;
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    if (Track != NULL) {
        return Track;
    }
    Track = KiTakeOverTrack(File);
    if (Track == NULL) {
        Track = KiNewTrack(File);
    }
    if (Track == NULL) {
        KiCountDropped(File, 1);
        return NULL;
    }
    return KiBeginTrack(Track, Thread) ? Track : NULL;
}

VOID KiTraceThreadName(PKTHREAD Thread, PCSTR Name)
{
    /* acquire: pairs with the release in KiBeginTrack */
    PKI_TRACE_TRACK Track = __atomic_load_n(&Thread->TraceTrack, __ATOMIC_ACQUIRE);
    if (Track != NULL && KiLockTracks()) {
        /* relaxed: a thread leaves its track with the lock held */
        if (__atomic_load_n(&Thread->TraceTrack, __ATOMIC_RELAXED) == Track) {
            snprintf(Track->Name, sizeof(Track->Name), "%s", Name);
        }
        KiReleaseLock(&KiTrackLock);
    }
}

/* In the child of a fork, which has no other thread. */
VOID KiForgetTracks(VOID)
{
    KiTrackLock = 0;
    KiTracksLeft = 0;
    for (ULONG Slot = 0; Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED); Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        Thread->TraceTrack = NULL;
        Thread->TraceFlow = 0;
        Thread->TraceMutant.Entry = NULL;
    }
}

/* Who has the lock may be suspended, or be the thread that ended the process: the tracks are then read as they are. */
static BOOLEAN KiKeepTracks(VOID)
{
    BOOLEAN Kept = KiTryAcquireLock(&KiTrackLock);
    for (ULONG Round = 0; !Kept && Round < MOST_ROUNDS_FOR_TRACKS; Round++) {
        HalLongSpin(Round);
        Kept = KiTryAcquireLock(&KiTrackLock);
    }
    return Kept;
}

/* When the process ends: the lock is kept. */
VOID KiFinishTrackNames(PKI_TRACE_FILE File)
{
    PKI_TRACE_TRACK Track;
    if (!KiKeepTracks()) {
        return;
    }
    for (ULONG Number = __atomic_load_n(&File->FirstTrack, __ATOMIC_ACQUIRE); Number != 0; Number = Track->Next) {
        Track = KiUnit(Number - 1);
        if (__atomic_load_n(&Track->State, __ATOMIC_RELAXED) == KiTrackLive) {
            KiAskHostForName(Track);
        }
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
    for (ULONG Index = 0; Index < Chunk->Count; Index++) {
        Track->Dropped += Chunk->Event[Index].Kind != KiTraceThread;
    }
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
    ULONG Number = KiTakeUnit(KiRecording[KiTraceEvents].File, Track->Chunks);
    if (Number != 0) {
        Track->Chunks += 1;
        KiAppendChunk(Track, Number);
    } else if (Track->Newest != 0) {
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
    Chunk->Event[Chunk->Count].ThreadId = Track->ThreadId;
    /* release: pairs with whoever reads the file */
    __atomic_store_n(&Chunk->Count, Chunk->Count + 1, __ATOMIC_RELEASE);
    return TRUE;
}

/* Busy is against an interrupt on this thread: the fences keep the compiler from moving the writes out of it. */
static VOID KiRecord(PKI_TRACE_TRACK Track, const KI_TRACE_EVENT *Event)
{
    if (Track->Busy) {
        Track->Dropped += 1; /* only events come here by an interrupt */
        return;
    }
    Track->Busy = TRUE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!KiStore(Track, Event)) {
        Track->Dropped += Event->Kind != KiTraceThread;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Track->Busy = FALSE;
}

/* What the thread is in the middle of; the kind is stored last, by the caller. NULL: it is not kept. */
PKI_TRACE_EVENT KiOpenEvent(PKTHREAD Thread)
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

VOID KiCloseEvent(PKTHREAD Thread)
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

/* What the thread has not finished stays on the track as events, its name too. A thread that was ended inside KiRecord
   has left Busy behind. */
static VOID KiLeaveTrack(PKI_TRACE_TRACK Track)
{
    KI_TRACE_EVENT Last = {.End = HalQueryNanoseconds(), .Kind = KiTraceThread};
    ULONG Depth = Track->Depth < KI_TRACE_DEPTH ? Track->Depth : KI_TRACE_DEPTH;
    Track->Busy = FALSE;
    for (ULONG Index = 0; Index < Depth; Index++) {
        KI_TRACE_EVENT Event = Track->Open[Index];
        if (Event.Kind != KiTraceNothing) {
            Event.End = Last.End;
            Event.Flags |= KI_TRACE_UNFINISHED;
            KiRecord(Track, &Event);
        }
    }
    Track->Depth = 0;
    memcpy(Last.Name, Track->Name, sizeof(Last.Name));
    KiRecord(Track, &Last);
}

/* A thread that is still there may have another name by now, which the host alone knows. */
VOID KiTraceThreadEnd(PKTHREAD Thread)
{
    PKI_TRACE_TRACK Track = Thread->TraceTrack;
    if (Track == NULL || !KiLockTracks()) {
        return;
    }
    if (Thread == HalCurrentThread) {
        KiAskHostForName(Track);
    }
    KiLeaveTrack(Track);
    __atomic_store_n(&Thread->TraceTrack, NULL, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiTakeOverTrack and in KiHasThread: the name is among the events */
    __atomic_store_n(&Track->State, KiTrackEnded, __ATOMIC_RELEASE);
    __atomic_fetch_add(&KiTracksLeft, 1, __ATOMIC_RELAXED);
    KiReleaseLock(&KiTrackLock);
}

/* A status as a signaler stores it: the entry that a queue hands over is none. */
static LONG KiStatusOf(LONG_PTR Result)
{
    return Result == (LONG)Result && (ULONG_PTR)Result < 0x10000 ? (LONG)Result : STATUS_SUCCESS;
}

/* The object itself may be gone already: it has taken the block off. */
static UCHAR KiTypeWaitedFor(PKI_WAIT Wait, ULONG Index)
{
    return Wait->WaitType == WaitDequeue ? QueueObject : Wait->Types[Index];
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
    KiSetObject(Event, Block != NULL ? Block->Object : NULL, Block != NULL && !Hint ? KiTypeWaitedFor(Wait, 0) : 0);
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
static VOID KiNameSatisfier(PKI_TRACE_EVENT Event, PKI_WAIT Wait)
{
    ULONG Index = (ULONG)(Event->Status >= STATUS_ABANDONED_WAIT_0 ? Event->Status - STATUS_ABANDONED_WAIT_0
                                                                   : Event->Status - STATUS_WAIT_0);
    if (!(Event->Flags & KI_TRACE_ALL) && Index != 0 && Index < Event->Count) {
        KiSetObject(Event, Wait->Thread->WaitBlockList[Index].Object, KiTypeWaitedFor(Wait, Index));
    }
}

/* A wait for a mutant alone is an acquire of it. */
static VOID KiContendForMutant(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    if (KiObjectBlocks(Thread) == 1 && KiTypeWaitedFor(Wait, 0) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->WaitBlockList->Object, KMUTANT, Header);
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
        KiContendForMutant(Wait);
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
            KiNameSatisfier(Event, Wait);
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
