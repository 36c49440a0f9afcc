/*
 * contention.c: records contended acquires, and the holds that they waited for.
 *
 * An uncontended acquire and its release have no hook. A hold counts only as far as others waited for it, from the later of two
 * moments, when the owner acquired the lock and when the first waiter arrived, to the release:
 *
 *     owner     |------------------ holds ------------------|
 *     waiters            |------------ waits ---------------|--- holds ---|
 *                               |-------- waits --------------------------|--- holds ---
 *     recorded           |============== a hold ============|==== next ===|
 *
 * A hold without waiters is not recorded, nor one for which others spun without queueing: its release takes the fast
 * path.
 *
 * While a lock is waited for it is in a table: how many threads wait, since when it is both held and waited for, and the
 * sum of the moments from which each wait counts for the current hold. So a release knows how long all waiters together
 * have waited for this hold, without visiting them: number * now - sum. Each part of a wait is attributed to one hold,
 * so their total never exceeds that of the waits.
 *
 * The table has sets of a few places, each with a lock of the kernel's own, held for a few additions. A thread in a
 * host interrupt may have interrupted the owner of that lock, and only tries. A lock that finds its set full has no
 * holds recorded; both are counted as dropped. Nothing is allocated, and nothing here waits for a program's lock.
 *
 * Acquires and holds are then counted by lock and stack, in the file (tracefile.h).
 */
#include "tracep.h"

#include "../ke/park.h"

#define TRACEP_PROBES 64
#define TRACEP_SETS 512
#define TRACEP_WAYS 8

/* Locks that are waited for. */

typedef struct _TRACEP_WAITED {
    PVOID Lock;        /* of some address, even if Waiters is 0: that place is free */
    ULONG Waiters;
    KI_LOCK_KIND Kind;
    BOOLEAN Shared;    /* sharers have acquired it since its last release */
    ULONG64 Since;     /* it is held and waited for */
    ULONG64 Counted;   /* waits count for the current hold from here, or from where they began */
    ULONG64 Begins;    /* the sum of that over all waiters, modulo 2^64 */
} TRACEP_WAITED, *PTRACEP_WAITED;

typedef struct _TRACEP_SET {
    KI_LOCK Lock;
    TRACEP_WAITED Way[TRACEP_WAYS];
} TRACEP_SET, *PTRACEP_SET;

static TRACEP_SET TracepWaitedLocks[TRACEP_SETS];
static volatile ULONG64 TracepWaitersKnownSince; /* acquires that began before are not in the table */

static ULONG64 TracepHash(ULONG64 Hash, ULONG64 Word)
{
    Hash = (Hash ^ Word) * 0x9e3779b97f4a7c15ull;
    return Hash ^ Hash >> 32;
}

/* NULL: gave up. Between KiEnterDispatcher and KiExitDispatcher: a thread that is suspended here would block others. */
static PTRACEP_SET TracepLockSet(PKTHREAD Thread, PVOID Lock)
{
    PTRACEP_SET Set = &TracepWaitedLocks[TracepHash(0, (ULONG64)Lock) % TRACEP_SETS];
    if (Thread->HostInterrupts == 0) {
        KiAcquireLock(&Set->Lock);
        return Set;
    }
    return KiTryAcquireLock(&Set->Lock) ? Set : NULL;
}

/* An RTL resource begins with a critical section, which is waited for on its own. Otherwise the waiter's kind counts: a
   fast mutex may be released as a guarded one. NULL: it is not in the set, and, if Add, there is no place for it. */
static PTRACEP_WAITED TracepFindWaited(PTRACEP_SET Set, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Add)
{
    PTRACEP_WAITED Free = NULL;
    for (ULONG Way = 0; Way < TRACEP_WAYS; Way++) {
        PTRACEP_WAITED Waited = &Set->Way[Way];
        if (Waited->Waiters == 0) {
            Free = Free != NULL ? Free : Waited;
        } else if (Waited->Lock == Lock && (Waited->Kind == KiLockRtlResource) == (Kind == KiLockRtlResource)) {
            return Waited;
        }
    }
    if (!Add || Free == NULL) {
        return NULL;
    }
    *Free = (TRACEP_WAITED){.Lock = Lock, .Kind = Kind};
    return Free;
}

static VOID TracepCountLostHold(VOID)
{
    PTRACE_FILE File = TraceRecording[TraceContention].File;
    if (File != NULL) {
        TracepCountDropped(File);
    }
}

static BOOLEAN TracepIsKnown(ULONG64 Time)
{
    /* relaxed: a thread that reads an old value counts a waiter that is forgotten together with the others */
    return Time != 0 && Time >= __atomic_load_n(&TracepWaitersKnownSince, __ATOMIC_RELAXED);
}

static VOID TracepAddWaiter(PKTHREAD Thread, const TRACE_CONTENTION *Contention)
{
    PTRACEP_WAITED Waited = NULL;
    KiEnterDispatcher(Thread);
    PTRACEP_SET Set = TracepLockSet(Thread, Contention->Lock);
    if (Set != NULL) {
        Waited = TracepIsKnown(Contention->Begin) ? TracepFindWaited(Set, Contention->Lock, Contention->Kind, TRUE) : NULL;
        if (Waited != NULL) {
            Waited->Since = Waited->Waiters == 0 ? Contention->Begin : Waited->Since;
            Waited->Waiters += 1;
            Waited->Begins += Contention->Begin > Waited->Counted ? Contention->Begin : Waited->Counted;
        }
        KiReleaseLock(&Set->Lock);
    }
    if (Waited == NULL) {
        TracepCountLostHold();
    }
    KiExitDispatcher(Thread);
}

/* Acquired: otherwise the thread no longer waits. A sharer that joins others continues their hold. */
static VOID TracepRemoveWaiter(PKTHREAD Thread, const TRACE_CONTENTION *Contention, ULONG64 Now, BOOLEAN Acquired)
{
    KiEnterDispatcher(Thread);
    PTRACEP_SET Set = TracepLockSet(Thread, Contention->Lock);
    if (Set != NULL) {
        PTRACEP_WAITED Waited = TracepFindWaited(Set, Contention->Lock, Contention->Kind, FALSE);
        if (Waited != NULL) {
            Waited->Waiters -= 1;
            Waited->Begins -= Contention->Begin > Waited->Counted ? Contention->Begin : Waited->Counted;
            if (Acquired && (Contention->Exclusive || !Waited->Shared)) { /* a hold begins: earlier waiting does not count */
                Waited->Since = Now;
                Waited->Counted = Now;
                Waited->Begins = Waited->Waiters * Now;
            }
            Waited->Shared = Acquired ? !Contention->Exclusive : Waited->Shared;
        }
        KiReleaseLock(&Set->Lock);
    }
    KiExitDispatcher(Thread);
}

VOID TracepForgetWaiters(VOID)
{
    ULONG64 Before = __atomic_exchange_n(&TracepWaitersKnownSince, HalQueryNanoseconds(), __ATOMIC_RELAXED);
    if (Before == 0) {
        return; /* the table is empty, and the library may just be starting */
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    for (ULONG Number = 0; Number < TRACEP_SETS; Number++) {
        PTRACEP_SET Set = &TracepWaitedLocks[Number];
        KiAcquireLock(&Set->Lock);
        for (ULONG Way = 0; Way < TRACEP_WAYS; Way++) {
            if (Set->Way[Way].Waiters != 0) {
                Set->Way[Way].Waiters = 0;
            }
        }
        KiReleaseLock(&Set->Lock);
    }
    KiExitDispatcher(Thread);
}

/*
 * A thread's activity: acquires that wait, and releases. Not in its KTHREAD's room, which is zeroed for every new
 * thread. Threads beyond the first 4096 at a time have no holds recorded.
 */

#define TRACEP_ACQUIRES 4 /* nested: an APC runs in a wait, and may wait itself */
#define TRACEP_RELEASES 3 /* likewise: the wake of a waiter may release a lock of the library */

typedef struct _TRACEP_ACTIVITY {
    ULONG ThreadId;            /* the thread */
    ULONG Acquires, Releases;  /* in use */
    TRACE_CONTENTION Acquiring[TRACEP_ACQUIRES]; /* copies: a thread that is terminated in there does not end them */
    TRACE_CONTENTION Mutant;   /* that it waits for */
    TRACE_RELEASE Releasing[TRACEP_RELEASES];
} TRACEP_ACTIVITY, *PTRACEP_ACTIVITY;

static TRACEP_ACTIVITY TracepActivities[KI_THREAD_CHUNK];

/* NULL: it has none. */
static PTRACEP_ACTIVITY TracepActivityOf(PKTHREAD Thread)
{
    ULONG Number = KiSlotOfThread(Thread)->Number;
    if (Number >= KI_THREAD_CHUNK) {
        return NULL;
    }
    if (TracepActivities[Number].ThreadId != TracepIdOf(Thread)) {
        TracepActivities[Number] = (TRACEP_ACTIVITY){.ThreadId = TracepIdOf(Thread)};
    }
    return &TracepActivities[Number];
}

/* Entries of the file. */

typedef struct _TRACEP_STACK {
    ULONG64 Lock;
    ULONG64 Hash;
    UCHAR Kind;
    BOOLEAN Exclusive;
    UCHAR Role;
    UCHAR Frames;
    ULONG64 Frame[TRACE_CONTENTION_FRAMES];
} TRACEP_STACK, *PTRACEP_STACK;

static BOOLEAN TracepIsSameEntry(const TRACE_CONTENTION_ENTRY *Entry, const TRACEP_STACK *Wanted)
{
    return Entry->Hash == Wanted->Hash && Entry->Lock == Wanted->Lock && Entry->Kind == Wanted->Kind &&
           Entry->Exclusive == Wanted->Exclusive && Entry->Role == Wanted->Role && Entry->Frames == Wanted->Frames &&
           memcmp(Entry->Frame, Wanted->Frame, Wanted->Frames * sizeof(Wanted->Frame[0])) == 0;
}

/* An entry that another thread is filling is skipped: at worst two have the same stack, and a reader adds them. */
static PTRACE_CONTENTION_ENTRY TracepFindEntry(const TRACEP_STACK *Wanted)
{
    PTRACE_FILE File = TraceRecording[TraceContention].File;
    PTRACE_CONTENTION_ENTRY Entries = (PTRACE_CONTENTION_ENTRY)(File + 1);
    for (ULONG Probe = 0; Probe < TRACEP_PROBES; Probe++) {
        PTRACE_CONTENTION_ENTRY Entry = &Entries[(Wanted->Hash + Probe) % TRACE_CONTENTION_ENTRIES];
        ULONG State = __atomic_load_n(&Entry->State, __ATOMIC_ACQUIRE);
        /* acquire: pairs with the release below, by a thread that was faster */
        if (State == TraceEntryFree && __atomic_compare_exchange_n(&Entry->State, &State, TraceEntryFilling, FALSE,
                                                                   __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            Entry->Kind = Wanted->Kind;
            Entry->Exclusive = Wanted->Exclusive;
            Entry->Role = Wanted->Role;
            Entry->Frames = Wanted->Frames;
            Entry->Hash = Wanted->Hash;
            Entry->Lock = Wanted->Lock;
            memcpy(Entry->Frame, Wanted->Frame, Wanted->Frames * sizeof(Wanted->Frame[0]));
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
        if (__atomic_load_n(&Entry->State, __ATOMIC_RELAXED) == TraceEntryFree) {
            continue;
        }
        /* relaxed: statistics. A thread that still ends an acquire of the earlier recording may count here */
        __atomic_store_n(&Entry->Count, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Time, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Longest, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Waiting, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->Blocked, 0, __ATOMIC_RELAXED);
        for (ULONG Bucket = 0; Bucket < TRACE_BUCKETS; Bucket++) {
            __atomic_store_n(&Entry->Bucket[Bucket], 0, __ATOMIC_RELAXED);
        }
    }
}

/* Without the two callers inside the recorder. A host interrupt may have interrupted the unwinder itself: then there is
   no stack. */
static DECLSPEC_NOINLINE PTRACE_CONTENTION_ENTRY TracepEntryFor(PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive,
                                                                TRACE_ENTRY_ROLE Role)
{
    TRACEP_STACK Wanted;
    Wanted.Lock = (ULONG64)Lock;
    Wanted.Kind = (UCHAR)Kind;
    Wanted.Exclusive = Exclusive != FALSE;
    Wanted.Role = (UCHAR)Role;
    Wanted.Frames = 0;
    if (KiCurrentThread()->HostInterrupts == 0) {
        Wanted.Frames = (UCHAR)HalCaptureStack(2, Wanted.Frame, TRACE_CONTENTION_FRAMES);
    }
    Wanted.Hash = TracepHash(TracepHash(0, Wanted.Lock), (ULONG64)Kind << 2 | (ULONG64)Role << 1 | Wanted.Exclusive);
    for (ULONG Frame = 0; Frame < Wanted.Frames; Frame++) {
        Wanted.Hash = TracepHash(Wanted.Hash, Wanted.Frame[Frame]);
    }
    return TracepFindEntry(&Wanted);
}

/* relaxed, here and below: statistics */
static VOID TracepCountTime(PTRACE_CONTENTION_ENTRY Entry, ULONG64 Time)
{
    ULONG64 Longest = __atomic_load_n(&Entry->Longest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Time, Time, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Bucket[TraceBucketOf(Time)], 1, __ATOMIC_RELAXED);
    while (Longest < Time && !__atomic_compare_exchange_n(&Entry->Longest, &Longest, Time, FALSE, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {
    }
}

/* Acquires. */

static VOID TracepEnterEntry(PTRACE_CONTENTION Contention, PTRACE_CONTENTION_ENTRY Entry, ULONG Owner)
{
    Contention->Entry = Entry;
    if (Entry != NULL) {
        __atomic_fetch_add(&Entry->Waiting, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&Entry->LastOwner, Owner, __ATOMIC_RELAXED);
    }
}

/* The wait has ended; Acquired: successfully. One of the parent of a fork must not begin a recording of the child. */
static VOID TracepEndAcquire(PKTHREAD Thread, const TRACE_CONTENTION *Contention, BOOLEAN Acquired)
{
    if (!TracepIsKnown(Contention->Begin)) {
        return;
    }
    ULONG64 Now = HalQueryNanoseconds();
    /* an acquire that began in an earlier recording is not counted */
    PTRACE_CONTENTION_ENTRY Entry = Contention->Entry;
    BOOLEAN Counts = Entry != NULL && TracepRecords(TraceContention) &&
                     Contention->Begin >= TraceRecording[TraceContention].File->Start;
    TracepRemoveWaiter(Thread, Contention, Now, Acquired);
    if (Counts) {
        TracepCountTime(Entry, Now - Contention->Begin);
        __atomic_fetch_sub(&Entry->Waiting, 1, __ATOMIC_RELAXED);
    }
}

/* Acquires that began before the recording did were ended while nothing was recorded. */
static VOID TracepNoteAcquire(PTRACEP_ACTIVITY Own, const TRACE_CONTENTION *Contention)
{
    if (Own == NULL) {
        return;
    }
    while (Own->Acquires != 0 && !TracepIsKnown(Own->Acquiring[Own->Acquires - 1].Begin)) {
        Own->Acquires -= 1;
    }
    if (Own->Acquires < TRACEP_ACQUIRES) {
        Own->Acquiring[Own->Acquires] = *Contention;
        Own->Acquires += 1;
    }
}

static VOID TracepForgetAcquire(PTRACEP_ACTIVITY Own, const TRACE_CONTENTION *Contention)
{
    for (ULONG Number = Own != NULL ? Own->Acquires : 0; Number-- != 0;) {
        if (Own->Acquiring[Number].Lock == Contention->Lock && Own->Acquiring[Number].Begin == Contention->Begin) {
            Own->Acquires = Number;
            return;
        }
    }
}

VOID TraceContended(PTRACE_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner)
{
    PKTHREAD Thread = KiCurrentThread();
    Contention->Begin = HalQueryNanoseconds();
    Contention->Lock = Lock;
    Contention->Kind = Kind;
    Contention->Exclusive = Exclusive;
    if (TracepRecords(TraceEvents)) {
        PTRACE_EVENT Event = TracepOpenEvent(Thread);
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
        TracepEnterEntry(Contention, TracepEntryFor(Lock, Kind, Exclusive, TraceWaited), Owner);
    }
    TracepNoteAcquire(TracepActivityOf(Thread), Contention);
    if (Kind != KiLockSpinLock) { /* its release is one store, without a hook */
        TracepAddWaiter(Thread, Contention);
    }
}

static VOID TracepEndContention(PTRACE_CONTENTION Contention, BOOLEAN Acquired)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Contention->Begin == 0) {
        return;
    }
    if (TracepRecords(TraceEvents)) {
        TracepCloseEvent(Thread);
    }
    TracepForgetAcquire(TracepActivityOf(Thread), Contention);
    TracepEndAcquire(Thread, Contention, Acquired);
}

VOID TraceAcquired(PTRACE_CONTENTION Contention)
{
    TracepEndContention(Contention, TRUE);
}

VOID TraceGivenUp(PTRACE_CONTENTION Contention)
{
    TracepEndContention(Contention, FALSE);
}

/* TraceWaitBegin and TraceWaitEnd record the events of a wait for a mutant, as of any wait. */

VOID TracepBeginMutantWait(PKTHREAD Thread, PKMUTANT Mutant)
{
    PTRACEP_ACTIVITY Own = TracepActivityOf(Thread);
    ULONG Owner = TracepIdOf(__atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED));
    if (Own == NULL) {
        TracepCountLostHold();
        return;
    }
    Own->Mutant = (TRACE_CONTENTION){.Begin = HalQueryNanoseconds(), .Lock = Mutant, .Kind = KiLockMutant, .Exclusive = TRUE};
    if (TracepRecords(TraceContention)) {
        TracepEnterEntry(&Own->Mutant, TracepEntryFor(Mutant, KiLockMutant, TRUE, TraceWaited), Owner);
    }
    TracepAddWaiter(Thread, &Own->Mutant);
}

VOID TracepEndMutantWait(PKTHREAD Thread, BOOLEAN Acquired)
{
    PTRACEP_ACTIVITY Own = TracepActivityOf(Thread);
    if (Own != NULL && Own->Mutant.Begin != 0) {
        TracepEndAcquire(KiCurrentThread(), &Own->Mutant, Acquired);
        Own->Mutant.Begin = 0;
    }
}

VOID TracepAbandonAcquires(PKTHREAD Thread)
{
    PTRACEP_ACTIVITY Own = TracepActivityOf(Thread);
    while (Own != NULL && Own->Acquires != 0) {
        Own->Acquires -= 1;
        TracepEndAcquire(KiCurrentThread(), &Own->Acquiring[Own->Acquires], FALSE);
    }
    TracepEndMutantWait(Thread, FALSE);
}

/* Holds. */

static VOID TracepMeasureHold(PTRACEP_WAITED Waited, PTRACE_RELEASE Release)
{
    ULONG64 Now = HalQueryNanoseconds();
    Release->Begin = Waited->Since < Now ? Waited->Since : Now;
    Release->End = Now;
    Release->Blocked = Waited->Waiters * Now - Waited->Begins;
    Release->Waiters = Waited->Waiters;
    Release->Kind = Waited->Kind;
    Waited->Counted = Now;
    Waited->Begins = Waited->Waiters * Now;
}

VOID TraceReleasing(PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, PKTHREAD Holder)
{
    PKTHREAD Thread = KiCurrentThread();
    PTRACEP_ACTIVITY Own = TracepActivityOf(Thread);
    TRACE_RELEASE Release = {.Lock = Lock, .Holder = TracepIdOf(Holder), .Exclusive = Exclusive, .Kind = Kind};
    if (Own == NULL) {
        TracepCountLostHold();
        return;
    }
    if (Own->Releases != 0 && Own->Releasing[Own->Releases - 1].Lock == Lock &&
        TracepIsKnown(Own->Releasing[Own->Releases - 1].End)) {
        return; /* the release retries */
    }
    KiEnterDispatcher(Thread);
    PTRACEP_SET Set = TracepLockSet(Thread, Lock);
    if (Set != NULL) {
        PTRACEP_WAITED Waited = TracepFindWaited(Set, Lock, Kind, FALSE);
        if (Waited != NULL) {
            TracepMeasureHold(Waited, &Release);
        }
        KiReleaseLock(&Set->Lock);
    } else {
        TracepCountLostHold();
    }
    KiExitDispatcher(Thread);
    Own->Releases = Own->Releases < TRACEP_RELEASES ? Own->Releases : 0; /* those were left by an exception */
    Own->Releasing[Own->Releases] = Release;
    Own->Releases += 1;
}

/* If no next owner has been seen, it may be a thread that did not wait: its hold began after this one at the
   earliest. */
static VOID TracepEndHold(PKTHREAD Thread, const TRACE_RELEASE *Release)
{
    KiEnterDispatcher(Thread);
    PTRACEP_SET Set = TracepLockSet(Thread, Release->Lock);
    if (Set != NULL) {
        PTRACEP_WAITED Waited = TracepFindWaited(Set, Release->Lock, Release->Kind, FALSE);
        if (Waited != NULL && Waited->Since < Release->End) {
            Waited->Since = Release->End;
            Waited->Shared = FALSE;
        }
        KiReleaseLock(&Set->Lock);
    }
    KiExitDispatcher(Thread);
}

VOID TraceReleased(BOOLEAN Last)
{
    PKTHREAD Thread = KiCurrentThread();
    PTRACEP_ACTIVITY Own = TracepActivityOf(Thread);
    if (Own == NULL || Own->Releases == 0) {
        return;
    }
    Own->Releases -= 1;
    TRACE_RELEASE Release = Own->Releasing[Own->Releases];
    if (Release.Waiters == 0 || !TracepIsKnown(Release.Begin)) {
        return;
    }
    if (Last) {
        TracepEndHold(Thread, &Release);
    }
    if (TracepRecords(TraceEvents)) {
        TracepRecordHold(&Release);
    }
    if (TracepRecords(TraceContention) && Release.Begin >= TraceRecording[TraceContention].File->Start) {
        PTRACE_CONTENTION_ENTRY Entry = TracepEntryFor(Release.Lock, Release.Kind, Release.Exclusive, TraceHeld);
        if (Entry != NULL) {
            TracepCountTime(Entry, Release.End - Release.Begin);
            __atomic_fetch_add(&Entry->Blocked, Release.Blocked, __ATOMIC_RELAXED);
            __atomic_store_n(&Entry->LastOwner, Release.Holder, __ATOMIC_RELAXED);
        }
    }
}
