/*
 * recording.c: opens the files that settings request, records waits, signals, wakes and holds, and finishes the files when
 * the process ends. Theory in tracefile.h.
 */
#include "tracep.h"

#include "../ke/debugdata.h"
#include "../ke/park.h"
#include "../ke/wait.h"

#include <stdio.h>

/* Events. */

#define MOST_ROUNDS_FOR_TRACKS 240 /* about a tenth of a second */

ULONG TracepIdOf(PKTHREAD Thread)
{
    return Thread != NULL ? __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED) : 0;
}

VOID TracepCountDropped(PTRACE_FILE File)
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
        /* relaxed: the unit was never written before */
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

/* Reuses the track of an ended thread, or takes a new one. NULL: there is no room. */
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

/* An event that began in an earlier recording and ended after that one had stopped is no longer open. */
static VOID TracepJoinRecording(PKTHREAD Thread, PTRACE_TRACK Track)
{
    ULONG Beginnings = TraceRecording[TraceEvents].Beginnings;
    if (TracepThread(Thread)->Beginning != Beginnings) {
        TracepThread(Thread)->Beginning = Beginnings;
        Track->Depth = 0;
    }
}

/* The track of the current thread. NULL: there is no room, or the process ends. */
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

static VOID TracepForgetTracks(VOID)
{
    TracepTrackLock = 0;
    TracepTracksLeft = 0;
    for (ULONG Slot = 0; Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED); Slot++) {
        *TracepThread(KiThreadFromNumber(Slot)) = (TRACE_THREAD){0};
    }
}

/* The lock's owner may be suspended, or be the thread that ends the process: the tracks are then read as they are. */
static VOID TracepFinishTrackNames(PTRACE_FILE File)
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
PTRACE_EVENT TracepOpenEvent(PKTHREAD Thread)
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

VOID TracepCloseEvent(PKTHREAD Thread)
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

/* Records the thread's open waits as events, then its name. While the thread lives, only the host knows its current name. A
   thread that was terminated inside TracepRecord has left Busy set. */
VOID TraceThreadEnd(PKTHREAD Thread)
{
    PTRACE_TRACK Track = TracepThread(Thread)->Track;
    TRACE_EVENT Last = {.Kind = TraceEnded};
    TracepAbandonAcquires(Thread);
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

/* Waits, signals and wakes. */

/* The entry that a queue hands off is not a status. */
static LONG TracepStatusOf(LONG_PTR Result)
{
    return Result == (LONG)Result && (ULONG_PTR)Result < 0x10000 ? (LONG)Result : STATUS_SUCCESS;
}

/* Not read from the object: it may be freed once it has unlinked the wait block. */
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
    if (KiObjectBlocks(Thread) == 1 && TracepTypeWaitedFor(Wait, 0) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->WaitBlockList->Object, KMUTANT, Header);
        TracepBeginMutantWait(Thread, Mutant);
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
    TracepEndMutantWait(Thread, Result == STATUS_WAIT_0 || Result == STATUS_ABANDONED_WAIT_0);
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

VOID TracepRecordHold(const TRACE_RELEASE *Release)
{
    PTRACE_TRACK Track = TracepTrackOf(KiCurrentThread());
    if (Track != NULL) {
        TRACE_EVENT Event = {
            .Begin = Release->Begin,
            .End = Release->End,
            .Object = (ULONG64)Release->Lock,
            .Argument = Release->Waiters,
            .Kind = TraceHold,
            .Type = (UCHAR)Release->Kind,
            .Flags = Release->Exclusive ? TRACE_EXCLUSIVE : 0,
        };
        TracepRecord(Track, &Event);
    }
}

/* The files. */

#define TRACE_DEFAULT_LIMIT 32 /* in megabytes */
#define TRACE_RAW ".trace"     /* a file with this ending is not converted; `interlock trace` reads it */
#define TRACE_BUFFER 65536

ULONG TraceActive;
TRACE_RECORDING TraceRecording[] = {
    [TraceEvents] = {.Setting = "INTERLOCK_TRACE"},
    [TraceContention] = {.Setting = "INTERLOCK_CONTENTION"},
};

KD_REGISTER_ROOT(TraceActive);
KD_REGISTER_ROOT(TraceRecording);
KD_REGISTER_LAYOUT(TraceRecordingLayout, TRACE_RECORDING_LAYOUT);

/* Beginning. */

/* Puts the process id where the pattern has %p, else, if Always, before its last dot. */
static VOID TracepExpandPattern(PCSTR Pattern, BOOLEAN Always, PSTR Path, SIZE_T Size)
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

/* The path of the recording itself, which must be a regular file. */
static BOOLEAN TracepFindRawFile(PTRACE_RECORDING Recording, HAL_FILE_PROBLEM *Problem)
{
    static HAL_OUTPUT Raw;
    SIZE_T Length = strlen(Recording->Output.Path);
    if (Length + sizeof(TRACE_RAW) > sizeof(Recording->Path)) {
        Problem->Text = "the name is too long";
        return FALSE;
    }
    memcpy(Recording->Path, Recording->Output.Path, Length);
    memcpy(Recording->Path + Length, TRACE_RAW, sizeof(TRACE_RAW));
    if (!HalFindOutput(Recording->Path, &Raw, Problem)) {
        return FALSE;
    }
    memcpy(Recording->Path, Raw.Path, sizeof(Recording->Path));
    HalDiscardOutput(&Raw);
    Problem->Text = "it is not a regular file";
    return !Raw.Stream;
}

static BOOLEAN TracepTryCreate(PTRACE_RECORDING Recording, TRACE_CONTENT Content, BOOLEAN WithId,
                                    HAL_FILE_PROBLEM *Problem)
{
    PSTR Path = Recording->Path;
    SIZE_T Length;
    *Problem = (HAL_FILE_PROBLEM){0};
    TracepExpandPattern(Recording->Pattern, WithId, Path, sizeof(Recording->Path));
    Length = strlen(Path);
    Recording->Convert = Content == TraceEvents &&
                         (Length < strlen(TRACE_RAW) || strcmp(Path + Length - strlen(TRACE_RAW), TRACE_RAW) != 0);
    if (!HalFindOutput(Path, &Recording->Output, Problem)) {
        return FALSE;
    }
    if (Recording->Output.Stream) {
        Path[0] = '\0';
    } else if (!Recording->Convert) {
        memcpy(Path, Recording->Output.Path, sizeof(Recording->Path));
    } else if (!TracepFindRawFile(Recording, Problem)) {
        return FALSE;
    }
    Recording->File = HalCreateMappedFile(Path[0] != '\0' ? Path : NULL, Recording->Size, &Recording->Open, Problem);
    if (Recording->File == NULL) {
        HalDiscardOutput(&Recording->Output);
    }
    return Recording->File != NULL;
}

static BOOLEAN TracepCreateFile(PTRACE_RECORDING Recording, TRACE_CONTENT Content, BOOLEAN WithId)
{
    HAL_FILE_PROBLEM Problem = {0};
    BOOLEAN Created;
    if (Recording->Pattern[0] == '\0') {
        Recording->File = HalCreateMappedFile(NULL, Recording->Size, &Recording->Open, &Problem);
        Created = Recording->File != NULL;
    } else {
        Created = TracepTryCreate(Recording, Content, WithId, &Problem) ||
                  (Problem.InUse && TracepTryCreate(Recording, Content, TRUE, &Problem));
    }
    if (!Created) {
        HalPrint("interlock: %s: cannot write %s: %s; nothing is recorded\n", Recording->Setting,
                 Recording->Path[0] != '\0' ? Recording->Path : Recording->Output.Path, Problem.Text);
    }
    return Created;
}

static VOID TracepCreate(TRACE_CONTENT Content, BOOLEAN WithId)
{
    PTRACE_RECORDING Recording = &TraceRecording[Content];
    if (Recording->File == NULL && !TracepCreateFile(Recording, Content, WithId)) {
        return;
    }
    PTRACE_FILE File = Recording->File;
    Recording->Beginnings += 1;
    if (Content == TraceContention && Recording->Beginnings > 1) {
        TracepForgetContention(File);
    }
    File->Content = Content;
    File->ProcessId = HalCurrentProcessId();
    File->Start = HalQueryNanoseconds();
    File->End = 0;
    File->Units = (ULONG)((Recording->Size - sizeof(*File)) / TraceUnitSize(Content));
    HalQueryProgramName(File->Program, sizeof(File->Program));
    File->ModulesLength = HalQueryModules(File->Modules, sizeof(File->Modules));
    /* release: pairs with the acquire of a debugger, which finds the head complete */
    __atomic_store_n(&File->Magic, TRACE_MAGIC, __ATOMIC_RELEASE);
    if ((__atomic_load_n(&TraceActive, __ATOMIC_RELAXED) & TRACE_CONTENTS) == 0) {
        TracepForgetWaiters();
    }
    __atomic_fetch_or(&TraceActive, 1u << Content, __ATOMIC_RELEASE); /* release: threads find the file */
}

static VOID TracepReadSetting(TRACE_CONTENT Content, PCSTR Default, SIZE_T Size)
{
    PTRACE_RECORDING Recording = &TraceRecording[Content];
    PCSTR Path = HalGetEnvironment(Recording->Setting);
    if (Path == NULL || Path[0] == '\0' || strcmp(Path, "0") == 0) {
        return;
    }
    if (!HalMakeAbsolutePath(strcmp(Path, "1") == 0 ? Default : Path, Recording->Pattern, sizeof(Recording->Pattern))) {
        HalPrint("interlock: %s: the name is too long; nothing is recorded\n", Recording->Setting);
        return;
    }
    Recording->Size = sizeof(TRACE_FILE) + Size;
    TracepCreate(Content, FALSE);
}

VOID TraceInitialize(VOID)
{
    SIZE_T Limit = KiReadSetting("INTERLOCK_TRACE_LIMIT", 1, 4096, TRACE_DEFAULT_LIMIT);
    TracepReadSetting(TraceEvents, "interlock-%p.json", Limit << 20);
    TracepReadSetting(TraceContention, "interlock-%p.contention",
                           TRACE_CONTENTION_ENTRIES * sizeof(TRACE_CONTENTION_ENTRY));
}

/* Not in an interrupt of the host, which may have interrupted the host's allocator. */
DECLSPEC_NOINLINE ULONG TracepBeginPostponed(VOID)
{
    if (KiCurrentThread()->HostInterrupts != 0) {
        return __atomic_load_n(&TraceActive, __ATOMIC_ACQUIRE);
    }
    ULONG Active = __atomic_fetch_and(&TraceActive, TRACE_CONTENTS, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        if (Active & (1u << (TRACE_POSTPONED + Content))) {
            TracepCreate((TRACE_CONTENT)Content, TRUE);
        }
    }
    return __atomic_load_n(&TraceActive, __ATOMIC_ACQUIRE);
}

/* The parent continues in its file; the child keeps nothing of it. */
VOID TraceForkChild(VOID)
{
    ULONG Active = __atomic_exchange_n(&TraceActive, 0, __ATOMIC_RELAXED);
    BOOLEAN Recorded = Active != 0;
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        PTRACE_RECORDING Recording = &TraceRecording[Content];
        if (Recording->File != NULL) {
            HalUnmapFile(Recording->File, Recording->Size, &Recording->Open);
            Recording->File = NULL;
            Recorded = TRUE;
        }
        /* A child has no stream of its own, and no debugger has requested it. */
        if (Recording->Output.Stream) {
            HalDiscardOutput(&Recording->Output);
            Active &= ~(1u << Content);
        } else if (Recording->Pattern[0] == '\0') {
            Active &= ~((1u | 1u << TRACE_POSTPONED) << Content);
        }
    }
    if (Recorded) {
        TracepForgetTracks();
        TracepForgetWaiters();
    }
    Active = (Active | Active >> TRACE_POSTPONED) & TRACE_CONTENTS;
    __atomic_store_n(&TraceActive, Active << TRACE_POSTPONED, __ATOMIC_RELAXED);
}

/* Finishing. */

typedef struct _TRACEP_BUFFER {
    PHAL_OUTPUT Output;
    HAL_FILE_PROBLEM Problem;
    SIZE_T Length;
    CHAR Text[TRACE_BUFFER];
} TRACEP_BUFFER, *PTRACEP_BUFFER;

static BOOLEAN TracepFlush(PTRACEP_BUFFER Buffer)
{
    SIZE_T Length = Buffer->Length;
    Buffer->Length = 0;
    return HalWriteOutput(Buffer->Output, Buffer->Text, Length, &Buffer->Problem);
}

static BOOLEAN TracepWriteToBuffer(PVOID Context, PCSTR Text, SIZE_T Length)
{
    PTRACEP_BUFFER Buffer = Context;
    if (Length > sizeof(Buffer->Text) - Buffer->Length && !TracepFlush(Buffer)) {
        return FALSE;
    }
    memcpy(Buffer->Text + Buffer->Length, Text, Length);
    Buffer->Length += Length;
    return TRUE;
}

static BOOLEAN TracepNameByHost(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Context);
    return HalQueryAddressName(Address, Buffer, Size);
}

static BOOLEAN TracepConvert(PTRACE_RECORDING Recording, PTRACEP_BUFFER Buffer, BOOLEAN Orderly)
{
    TRACE_SINK Sink = {.Write = TracepWriteToBuffer, .Name = TracepNameByHost, .Context = Buffer};
    TRACE_SUMMARY Summary;
    BOOLEAN Written;

    if (Orderly) {
        Sink.Scratch = HalAllocate(TraceScratchSize(Recording->File), sizeof(ULONG64));
    }
    Written = TraceWriteJson(Recording->File, &Sink, &Summary) && TracepFlush(Buffer);
    if (Sink.Scratch != NULL) {
        HalFree(Sink.Scratch);
    }
    if (Summary.Dropped != 0) {
        HalPrint("interlock: %s: %llu older events were dropped, INTERLOCK_TRACE_LIMIT allows for more\n", Recording->Setting,
                 (unsigned long long)Summary.Dropped);
    }
    return Written;
}

/* Writes the output that the user named, unless the recording is that file itself. */
static VOID TracepWriteOutput(PTRACE_RECORDING Recording, BOOLEAN Orderly)
{
    static TRACEP_BUFFER Buffer;
    PHAL_OUTPUT Output = &Recording->Output;
    BOOLEAN Written = HalOpenOutput(Output, &Buffer.Problem);

    Buffer.Output = Output;
    Buffer.Length = 0;
    if (Written && Recording->Convert) {
        Written = TracepConvert(Recording, &Buffer, Orderly);
    } else if (Written) {
        Written = HalWriteOutput(Output, (PCSTR)Recording->File, Recording->Size, &Buffer.Problem);
    }
    if (Written) {
        Written = HalCompleteOutput(Output, &Buffer.Problem);
    } else {
        HalDiscardOutput(Output);
    }
    if (!Written) {
        HalPrint("interlock: %s: cannot write %s: %s%s%s\n", Recording->Setting, Output->Path, Buffer.Problem.Text,
                 Recording->Path[0] != '\0' ? "; what was recorded is in " : "", Recording->Path);
    } else if (Recording->Path[0] != '\0') {
        HalRemoveMappedFile(Recording->Path, &Recording->Open);
    }
}

VOID TraceFinish(BOOLEAN Orderly)
{
    ULONG Active = __atomic_exchange_n(&TraceActive, 0, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        PTRACE_RECORDING Recording = &TraceRecording[Content];
        if (!(Active & (1u << Content))) {
            continue;
        }
        if (Content == TraceEvents) {
            TracepFinishTrackNames(Recording->File);
        }
        Recording->File->ModulesLength = HalQueryModules(Recording->File->Modules, sizeof(Recording->File->Modules));
        Recording->File->End = HalQueryNanoseconds();
        if (Recording->Convert || Recording->Output.Stream) {
            TracepWriteOutput(Recording, Orderly);
        }
    }
}

static __attribute__((destructor)) VOID TracepFinishAtExit(VOID)
{
    TraceFinish(TRUE);
}
