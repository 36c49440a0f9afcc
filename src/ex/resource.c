/*
 * resource.c: executive resources, and the records of their owners.
 *
 *     free                 ActiveEntries 0, ActiveCount 0; no waiters
 *     owned exclusively    Flag 0x80, ActiveCount 1; all owners are one thread
 *     shared               Flag 0x80 clear, ActiveCount 1; ActiveEntries is the number of owners
 *
 * SpinLock, a short lock of the kernel, protects everything in a resource but its place in the list of all resources.
 * No thread blocks while it holds this lock. Waiters are in two queues, first come, first served, of blocks in the
 * waiters' own stack frames: a shared waiter waits on a semaphore in its block, an exclusive one on a synchronization
 * event. A release that makes it possible hands the resource to the next waiters: it makes them owners, removes them
 * from their queue, unlocks, and only then signals them. A waiter that wakes up already owns the resource.
 *
 * A handoff to a sleeper takes as long as a wakeup, and all other threads would have to wait meanwhile: once one thread
 * sleeps all do, and each acquire costs a wakeup. So a contended acquire does not become a waiter at once. It spins and
 * then yields a few times, by KiParkForPushLock. It overtakes no waiter, because a release hands the resource to the
 * waiters. It checks without the lock: the checks are cheap, and their result is a hint.
 *
 * Requirements, each with a test of that number in tests/ex/resource.c (15: forklocks.c):
 *  1. Exclusion: an exclusive owner is alone; sharers are among themselves.
 *  2. The exclusive owner may acquire it again, either way, and stays exclusive until it has released as often.
 *  3. A sharer may acquire it shared again, even with an exclusive waiter; each thread's acquires are counted separately.
 *     (If every sharer waited behind the exclusive waiter, the waiter would wait for the sharer, and the sharer for the
 *     waiter.)
 *  4. A thread that does not share it yet waits behind an exclusive waiter; with StarveExclusive it does not; with
 *     WaitForExclusive even a sharer does.
 *  5. The last release of an exclusive owner admits all waiting sharers, or if there are none the oldest exclusive
 *     waiter; the release of the last sharer admits the oldest exclusive waiter. So neither kind starves the other, and
 *     the resource never idles while threads wait. The handoff is done when the release returns. (Always admitting an
 *     exclusive waiter fails this: two writers that take turns starve all sharers. So does opening the resource to
 *     whichever woken thread is first.)
 *  6. Converting admits all waiting sharers and keeps the owner's count, whatever else waits. It never waits.
 *  7. Without Wait an acquire never waits, and succeeds whenever it would not have to.
 *  8. Ownership may move to an owner pointer; then any thread that knows the pointer may release.
 *  9. ContentionCount counts the acquires that became waiters.
 * 10. Nothing is allocated; the second part says where owners are kept.
 * 11. After a release has unlocked it does not access the resource, and deleting takes the lock: then the memory may be
 *     freed. A waiter's block is not accessed after its signal.
 * 12. A waiter that has waited for half a second raises the owners whose priority is below its own to 15, unless boosting
 *     is disabled for the resource: once, and only if there was such an owner when it began to wait. All other waiters
 *     sleep until they are admitted. (NT's waiters wake every half second, to repeat the boost or to find no owner to
 *     boost; fails 14.)
 * 13. Releasing by a thread that does not own it, deleting it with owners or waiters, an owner pointer without its low
 *     bits: bugchecks. Verifier: also enabled APCs, a wrong level, a sharer that waits for itself.
 * 14. A long wait costs nothing.
 * 15. In a forked child the waiters of the parent do not count. The high half of SpinLock has the fork depth of the
 *     process to which the waiters belong.
 */
#include "resource.h"

#include "../ke/debugdata.h"
#include "../ke/fairness.h"
#include "../ke/fork.h"
#include "../ke/verifier.h"
#include "../ke/irql.h"
#include "../ke/park.h"
#include "../trace/trace.h"

#define EXP_BOOST_DELAY 5000000LL /* half a second */
#define EXP_OWNER_RECORD_DELAY 10000LL /* a millisecond */
#define EXP_BOOSTED_PRIORITY (LOW_REALTIME_PRIORITY - 1)

#define EXP_ACQUIRED_WITH_APCS 0x37
#define EXP_RELEASED_WITH_APCS 0x38
#define EXP_MISALIGNED 0x3D
#define EXP_INITIALIZED_AGAIN 0xD0
#define EXP_NOT_INITIALIZED 0xD1
#define EXP_DELETED_WHILE_HELD 0x100B

#define EXP_NO_LEGACY_ROUTINE 0xE
#define EXP_NO_LEGACY_APIS 0xF
#define EXP_RELEASED_FOR_OTHER 0x11
#define EXP_CONVERTED_WITHOUT_OWNING 0x16

LIST_ENTRY ExpSystemResourcesList = {&ExpSystemResourcesList, &ExpSystemResourcesList};
KD_REGISTER_ROOT(ExpSystemResourcesList);
KD_REGISTER_LAYOUT(ExpResourceLayout, EXP_RESOURCE_LAYOUT);
KI_LOCK ExpResourceSpinLock;

/*
 * Owners. OwnerEntry, in the resource itself, names the first owner. Each further sharer needs an owner record. NT allocates a
 * table for them; here an acquire must not depend on memory. So the records are preallocated in .bss, where they cost
 * nothing until they are used: EXP_OWNER_RECORDS of them for all pairs of a thread and a resource that it shares as
 * second or later owner.
 *
 * 1. A record is free, or spare (kept by a thread's slot for its next acquire), or a waiter's (the release that admits
 *    the waiter links it), or linked to one resource and names one owner there.
 * 2. The links, the owner and the count of a linked record change under the lock of its resource. A record's memory is
 *    always a record, so a stale pointer to one may be read: if it names the resource that is locked, all of it is valid.
 * 3. A resource has at most one entry of its own or record for each owner; the count in it says how often it was
 *    acquired. Entries that the callers of fast resources bring stand for one acquire each.
 * 4. EXP_THREAD.ResourceOwners and ResourceOwnersByOthers are together how many records and entries name the thread, so a
 *    thread without any does not search. The thread itself counts in the first, which needs no locked instruction;
 *    other threads that admit it or release for it count in the second. Each alone may fall below 0. ResourceOwner is a
 *    hint: the record that the thread will probably need next.
 * 5. When all records are in use, an acquire that needs one behaves as if it had to wait: it retries when others may
 *    have freed theirs, or fails if it must not wait.
 *
 * Records inside the KTHREAD were rejected: an owner may end after it has passed its ownership to an owner pointer, and
 * its slot is recycled. A limit for every resource was rejected too: a few resources are shared by all threads, most by
 * none.
 */

#define EXP_OWNER_SHARDS 64
#define EXP_OWNERS_IN_SHARD 2048
#define EXP_OWNER_RECORDS (EXP_OWNER_SHARDS * EXP_OWNERS_IN_SHARD)

C_ASSERT(EXP_OWNER_RECORDS == 131072);

/* Shards keep threads with different resources from contending for one free list. */
typedef struct _EXP_OWNER_SHARD {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Fresh; /* records from this one on have never been used */
    PEXP_OWNER Free;
} EXP_OWNER_SHARD, *PEXP_OWNER_SHARD;

static EXP_OWNER_SHARD ExpOwnerShards[EXP_OWNER_SHARDS];
static EXP_OWNER ExpOwnerRecords[EXP_OWNER_SHARDS][EXP_OWNERS_IN_SHARD];

PEXP_OWNER ExpTakeOwnerRecord(PKTHREAD Thread)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    PEXP_OWNER Owner = ExpThreadKept(Thread)->SpareOwner;
    if (Owner != NULL) {
        ExpThreadKept(Thread)->SpareOwner = NULL;
        return Owner;
    }
    for (ULONG Tried = 0; Owner == NULL && Tried < EXP_OWNER_SHARDS; Tried += 1) {
        ULONG Index = (Slot->Number + Tried) % EXP_OWNER_SHARDS;
        PEXP_OWNER_SHARD Shard = &ExpOwnerShards[Index];
        KiAcquireLock(&Shard->Lock);
        Owner = Shard->Free;
        if (Owner != NULL) {
            Shard->Free = Owner->Next;
        } else if (Shard->Fresh < EXP_OWNERS_IN_SHARD) {
            Owner = &ExpOwnerRecords[Index][Shard->Fresh];
            Owner->Kind = EXP_POOLED_OWNER;
            Shard->Fresh += 1;
        }
        KiReleaseLock(&Shard->Lock);
    }
    return Owner;
}

DECLSPEC_NOINLINE VOID ExpGiveBackOwnerRecord(PKTHREAD Thread, PEXP_OWNER Owner)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    if (ExpThreadKept(Thread)->SpareOwner == NULL) {
        ExpThreadKept(Thread)->SpareOwner = Owner;
        return;
    }
    PEXP_OWNER_SHARD Shard = &ExpOwnerShards[Slot->Number % EXP_OWNER_SHARDS];
    KiAcquireLock(&Shard->Lock);
    Owner->Next = Shard->Free;
    Shard->Free = Owner;
    KiReleaseLock(&Shard->Lock);
}

/* relaxed, here and below: the lock of the resource orders them; a read without it is only a hint */
static VOID ExpSetOwnerThread(POWNER_ENTRY Entry, ERESOURCE_THREAD OwnerThread)
{
    __atomic_store_n(&Entry->OwnerThread, OwnerThread, __ATOMIC_RELAXED);
}

/* An owner pointer never searches, so it is not counted. */
static VOID ExpCountOwners(ERESOURCE_THREAD OwnerThread, LONG Difference)
{
    PKTHREAD Thread = (PKTHREAD)OwnerThread;
    if (Thread == HalCurrentThread) {
        ExpThread(Thread)->ResourceOwners += (ULONG)Difference;
    } else if (!(OwnerThread & EXP_OWNER_POINTER)) {
        __atomic_fetch_add(&ExpThread(Thread)->ResourceOwnersByOthers, (ULONG)Difference, __ATOMIC_RELAXED);
    }
}

static VOID ExpLinkOwner(PERESOURCE Resource, PEXP_OWNER Owner, PKTHREAD Thread)
{
    PEXP_OWNER First = ExpFirstOwner(Resource);
    ExpSetOwnerThread(&Owner->Entry, (ERESOURCE_THREAD)Thread);
    Owner->Entry.TableSize = 0;
    Owner->Entry.OwnerCount = 1;
    Owner->Next = First;
    Owner->Previous = NULL;
    if (First != NULL) {
        First->Previous = Owner;
    }
    Resource->OwnerTable = &Owner->Entry;
    __atomic_store_n(&Owner->Resource, Resource, __ATOMIC_RELAXED);
    ExpCountOwners((ERESOURCE_THREAD)Thread, 1);
}

/* Out of line, like ExpGiveBackOwnerRecord, so that releasing a resource with one owner saves fewer registers. */
static DECLSPEC_NOINLINE VOID ExpUnlinkOwner(PEXP_OWNER Owner)
{
    ExpCountOwners(Owner->Entry.OwnerThread, -1);
    if (Owner->Previous != NULL) {
        Owner->Previous->Next = Owner->Next;
    } else {
        Owner->Resource->OwnerTable = (POWNER_ENTRY)Owner->Next;
    }
    if (Owner->Next != NULL) {
        Owner->Next->Previous = Owner->Previous;
    }
    ExpSetOwnerThread(&Owner->Entry, 0);
    __atomic_store_n(&Owner->Resource, NULL, __ATOMIC_RELAXED);
}

VOID ExpRenameOwner(PERESOURCE Resource, POWNER_ENTRY Entry, ERESOURCE_THREAD NewOwner)
{
    if (Entry != &Resource->OwnerEntry) {
        ExpCountOwners(Entry->OwnerThread, -1);
        ExpCountOwners(NewOwner, 1);
    }
    ExpSetOwnerThread(Entry, NewOwner);
}

POWNER_ENTRY ExpFindLinkedOwner(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread, USHORT Kind)
{
    PKTHREAD Current = HalCurrentThread;
    if (Resource->OwnerTable == NULL) {
        return NULL;
    }
    if ((ERESOURCE_THREAD)Current == OwnerThread) {
        PEXP_THREAD Own = ExpThread(Current);
        /* Everything about the resource that the thread itself has locked is counted. */
        if (Own->ResourceOwners + __atomic_load_n(&Own->ResourceOwnersByOthers, __ATOMIC_RELAXED) == 0) {
            return NULL;
        }
        PEXP_OWNER Hint = Own->ResourceOwner;
        if (Hint != NULL && __atomic_load_n(&Hint->Resource, __ATOMIC_RELAXED) == Resource &&
            __atomic_load_n(&Hint->Entry.OwnerThread, __ATOMIC_RELAXED) == OwnerThread) {
            return &Hint->Entry;
        }
    }
    PEXP_OWNER Owner = ExpFirstOwner(Resource);
    while (Owner != NULL &&
           (Owner->Entry.OwnerThread != OwnerThread || (Kind != EXP_ANY_OWNER && Owner->Kind != Kind))) {
        Owner = Owner->Next;
    }
    /* Only records are remembered: an entry of a fast resource may be in a dead stack frame. */
    if (Owner != NULL && Owner->Kind == EXP_POOLED_OWNER && (ERESOURCE_THREAD)Current == OwnerThread) {
        ExpThread(Current)->ResourceOwner = Owner;
    }
    return Owner != NULL ? &Owner->Entry : NULL;
}

/*
 * Unless it was preempted, the owner releases the lock before the next check. But sharers that acquire repeatedly lock
 * it twice each time, and if two of them alternate, the lines of the resource keep moving. So an acquire that may wait
 * checks rarely, as for a pushlock. All other operations check continuously: other threads may wait for what an owner
 * is about to do.
 */
static inline BOOLEAN ExpTryLockResource(PVOID Resource)
{
    PKI_LOCK Lock = ExpResourceLock(Resource);
    /* relaxed: the compare-exchange has the acquire */
    return __atomic_load_n(Lock, __ATOMIC_RELAXED) == 0 && KiTryAcquireLock(Lock);
}

DECLSPEC_NOINLINE VOID ExpAwaitResourceLock(PERESOURCE Resource, PKTHREAD Thread)
{
    KiParkUntil(Thread, KiParkForSpinLock, ExpTryLockResource, Resource);
}

/* A contended acquire counts toward the caller's turn (ke/fairness.h). A release does not: an owner that yields keeps all
   others waiting meanwhile. */
static DECLSPEC_NOINLINE VOID ExpAwaitLockToAcquire(PERESOURCE Resource, PKTHREAD Thread, BOOLEAN Wait)
{
    if (Wait) {
        KiExitDispatcher(Thread);
        KiCountContention(Thread);
        KiEnterDispatcher(Thread);
        if (KiParkUntil(Thread, KiParkForPushLock, ExpTryLockResource, Resource)) {
            return;
        }
    }
    ExpAwaitResourceLock(Resource, Thread);
}

/* Wait is that of the acquire. */
FORCEINLINE VOID ExpLockToAcquire(PERESOURCE Resource, PKTHREAD Thread, BOOLEAN Wait)
{
    KiEnterDispatcher(Thread);
    if (__builtin_expect(!KiTryAcquireLock(ExpResourceLock(Resource)), 0)) {
        ExpAwaitLockToAcquire(Resource, Thread, Wait);
    }
}

/* Bugchecks. */

static DECLSPEC_NORETURN VOID ExpResourceViolation(ULONG_PTR Kind, ULONG_PTR Second, ULONG_PTR Third,
                                                   PERESOURCE Resource)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, Second, Third, (ULONG_PTR)Resource);
}

/* The caller has locked the resource. It must not stay locked, because a test that expects this bugcheck continues. */
static DECLSPEC_NORETURN VOID ExpNotOwned(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread)
{
    ExpUnlockResource(Resource, KiCurrentThread());
    KeBugCheckEx(RESOURCE_NOT_OWNED, (ULONG_PTR)Resource, OwnerThread, (ULONG_PTR)Resource->OwnerTable, 0);
}

/* System threads are exempt from the rule about APCs: docs/locks.md has the source. */
static DECLSPEC_NOINLINE VOID ExpVerifyResource(PERESOURCE Resource, ULONG_PTR ApcsEnabled, KIRQL HighestLevel)
{
    PKTHREAD Thread = KiCurrentThread();
    if (((ULONG_PTR)Resource & (sizeof(PVOID) - 1)) != 0) {
        ExpResourceViolation(EXP_MISALIGNED, 0, 0, Resource);
    }
    if (Thread->Irql > HighestLevel) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Resource, Thread->Irql, 0,
                     (ULONG_PTR)__builtin_return_address(0));
    }
    if (Thread->Irql < APC_LEVEL && Thread->KernelApcDisable == 0 && Thread->SpecialApcDisable == 0 &&
        (Thread->Foreign || Thread->UserThread)) {
        ExpResourceViolation(ApcsEnabled, Thread->Irql, 0, Resource);
    }
}

static DECLSPEC_NOINLINE VOID ExpRefuseFastResource(PERESOURCE Resource, ULONG_PTR Violation)
{
    ULONG_PTR Kind = (ULONG_PTR)Resource->Reserved2;
    if (Violation != EXP_NO_LEGACY_APIS || !(Kind & EX_FAST_RESOURCE_ENABLE_LEGACY_APIS)) {
        KeBugCheckEx(FAST_ERESOURCE_PRECONDITION_VIOLATION, Violation, (ULONG_PTR)Resource, 0, 0);
    }
}

/* Called by functions that also accept fast resources, if those were initialized for that. */
static VOID ExpCheckAnyResource(PERESOURCE Resource)
{
    if (__builtin_expect(Resource->Reserved2 != NULL, 0)) {
        ExpRefuseFastResource(Resource, EXP_NO_LEGACY_APIS);
    }
}

static VOID ExpCheckNoFastResource(PERESOURCE Resource)
{
    if (Resource->Reserved2 != NULL) {
        ExpRefuseFastResource(Resource, EXP_NO_LEGACY_ROUTINE);
    }
}

/* Requirement 15, with the resource locked, before its waiters are read. */
static VOID ExpForgetInheritedResourceWaiters(PERESOURCE Resource)
{
    PULONG ForkDepth = (PULONG)&Resource->SpinLock + 1;
    if (__builtin_expect(*ForkDepth != KiForkDepth, FALSE)) {
        if (KiIsDepthOfChild(*ForkDepth)) {
            KiForeignQueue(&Resource->SpinLock, Resource->SpinLock);
        }
        *ForkDepth = KiForkDepth;
        Resource->SharedWaiters = NULL;
        Resource->ExclusiveWaiters = NULL;
        __atomic_store_n(&Resource->NumberOfSharedWaiters, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Resource->NumberOfExclusiveWaiters, 0, __ATOMIC_RELAXED);
    }
}

/* Waiters. */

/* relaxed: ExGetSharedWaiterCount and ExGetExclusiveWaiterCount read without the lock */
static VOID ExpCountWaiters(PULONG Number, LONG Difference)
{
    __atomic_store_n(Number, *Number + (ULONG)Difference, __ATOMIC_RELAXED);
}

/* relaxed, here and in ExpMarkExclusive: ExpLooksAvailable reads without the lock */
static VOID ExpSetActive(PERESOURCE Resource, ULONG Entries)
{
    __atomic_store_n(&Resource->ActiveEntries, Entries, __ATOMIC_RELAXED);
}

static VOID ExpMarkExclusive(PERESOURCE Resource, BOOLEAN Exclusive)
{
    USHORT Shared = Resource->Flag & (USHORT)~ResourceOwnedExclusive;
    __atomic_store_n(&Resource->Flag, (USHORT)(Exclusive ? Shared | ResourceOwnedExclusive : Shared), __ATOMIC_RELAXED);
}

static PEXP_RESOURCE_WAIT ExpAppendWaiter(PEXP_RESOURCE_WAIT First, PEXP_RESOURCE_WAIT Block)
{
    Block->Next = NULL;
    if (First == NULL) {
        Block->Last = Block;
        return Block;
    }
    First->Last->Next = Block;
    First->Last = Block;
    return First;
}

/* Requirement 12, with the resource locked: whether an owner runs below the waiter. Boost: raises these owners.
   Otherwise the priorities count that they will have at the time of the boost: the current boosts have decayed by then. */
static BOOLEAN ExpFindOwnersBelow(PERESOURCE Resource, PKTHREAD Waiter, BOOLEAN Boost)
{
    KPRIORITY Priority = Boost ? KeQueryPriorityThread(Waiter) : KiSettledPriority(Waiter);
    POWNER_ENTRY Entry = Resource->Flag & EXP_RESOURCE_NO_BOOST ? NULL : &Resource->OwnerEntry;
    PEXP_OWNER Next = ExpFirstOwner(Resource);
    BOOLEAN Found = FALSE;
    while (Entry != NULL && (Boost || !Found)) {
        BOOLEAN IsThread = !(Entry->OwnerThread & EXP_OWNER_POINTER) || Entry->OwnerReferenced;
        PKTHREAD Owner = IsThread ? (PKTHREAD)(Entry->OwnerThread & ~EXP_OWNER_POINTER) : NULL;
        if (Owner != NULL && (Boost ? KeQueryPriorityThread(Owner) : KiSettledPriority(Owner)) < Priority) {
            Found = TRUE;
            if (Boost) {
                KiBoostThread(Owner, EXP_BOOSTED_PRIORITY);
            }
        }
        Entry = Next != NULL ? &Next->Entry : NULL;
        Next = Next != NULL ? Next->Next : NULL;
    }
    return Found;
}

/* The id of the first owner, 0: it is not a thread. */
static ULONG ExpFirstOwnerId(PERESOURCE Resource, PKTHREAD Thread)
{
    ExpLockResource(Resource, Thread);
    ERESOURCE_THREAD Owner = Resource->OwnerEntry.OwnerThread;
    ExpUnlockResource(Resource, Thread);
    if (Owner == 0 || (Owner & EXP_OWNER_POINTER)) {
        return 0;
    }
    return __atomic_load_n(&((PKTHREAD)Owner)->ThreadId, __ATOMIC_RELAXED);
}

static DECLSPEC_NOINLINE VOID ExpAwaitResource(PERESOURCE Resource, PEXP_RESOURCE_WAIT Block)
{
    LARGE_INTEGER Delay = {.QuadPart = -EXP_BOOST_DELAY};
    KTRACE_CONTENTION_BEGIN(Resource, KiLockResource, Block->Exclusive, ExpFirstOwnerId(Resource, Block->Thread));
    if (Block->Boosts && KeWaitForSingleObject(Block, WrResource, KernelMode, FALSE, &Delay) == STATUS_TIMEOUT) {
        ExpLockResource(Resource, Block->Thread); /* a waiter, or just admitted and has not noticed yet */
        ExpFindOwnersBelow(Resource, Block->Thread, TRUE);
        ExpUnlockResource(Resource, Block->Thread);
        Block->Boosts = FALSE;
    }
    if (!Block->Boosts) {
        KeWaitForSingleObject(Block, WrResource, KernelMode, FALSE, NULL);
    }
    KTRACE_CONTENTION_END(Resource, KiLockResource, Block->Exclusive);
}

VOID ExpWakeReleased(PEXP_RESOURCE_WAIT Released)
{
    PEXP_RESOURCE_WAIT Next;
    if (Released == NULL) {
        return;
    }
    for (PEXP_RESOURCE_WAIT Block = Released; Block != NULL; Block = Next) {
        Next = Block->Next;
        if (Block->Exclusive) {
            KeSetEventBoostPriority(&Block->Event, NULL);
        } else {
            KeReleaseSemaphore(&Block->Semaphore, IO_NO_INCREMENT, 1, FALSE);
        }
    }
    KTRACE_RELEASED(TRUE);
}

/* Admitting and dropping owners. */

static VOID ExpNoteInResource(PERESOURCE Resource, PKTHREAD Thread)
{
    ExpSetOwnerThread(&Resource->OwnerEntry, (ERESOURCE_THREAD)Thread);
    Resource->OwnerEntry.TableSize = 0;
    Resource->OwnerEntry.OwnerCount = 1;
}

/* A new owner: in the resource itself if there is room, otherwise in Owner, and then TRUE. An entry of a fast resource
   is always used. */
static BOOLEAN ExpAddOwner(PERESOURCE Resource, PKTHREAD Thread, PEXP_OWNER Owner)
{
    BOOLEAN Linked = FALSE;
    if (Resource->OwnerEntry.OwnerThread == 0 && (Owner == NULL || Owner->Kind == EXP_POOLED_OWNER)) {
        ExpNoteInResource(Resource, Thread);
    } else {
        ExpLinkOwner(Resource, Owner, Thread);
        Linked = TRUE;
    }
    ExpSetActive(Resource, Resource->ActiveEntries + 1);
    Resource->ActiveCount = 1;
    return Linked;
}

static VOID ExpLetIn(PERESOURCE Resource, PEXP_RESOURCE_WAIT Block)
{
    if (ExpAddOwner(Resource, Block->Thread, Block->Owner)) {
        Block->Owner = NULL;
    }
}

PEXP_RESOURCE_WAIT ExpShareResource(PERESOURCE Resource)
{
    ExpForgetInheritedResourceWaiters(Resource);
    PEXP_RESOURCE_WAIT Released = (PEXP_RESOURCE_WAIT)Resource->SharedWaiters;
    if (Released != NULL) {
        KTRACE_RELEASING(Resource, KiLockResource, TRUE, KiCurrentThread());
    }
    ExpMarkExclusive(Resource, FALSE);
    Resource->SharedWaiters = NULL;
    ExpCountWaiters(&Resource->NumberOfSharedWaiters, -(LONG)Resource->NumberOfSharedWaiters);
    for (PEXP_RESOURCE_WAIT Block = Released; Block != NULL; Block = Block->Next) {
        ExpLetIn(Resource, Block);
    }
    return Released;
}

/* The last owner has released, and there are waiters. */
static DECLSPEC_NOINLINE PEXP_RESOURCE_WAIT ExpLetNextIn(PERESOURCE Resource, BOOLEAN WasExclusive)
{
    ExpForgetInheritedResourceWaiters(Resource);
    if (Resource->SharedWaiters == NULL && Resource->ExclusiveWaiters == NULL) {
        return NULL;
    }
    KTRACE_RELEASING(Resource, KiLockResource, WasExclusive, KiCurrentThread());
    if (Resource->SharedWaiters != NULL && (WasExclusive || Resource->ExclusiveWaiters == NULL)) {
        return ExpShareResource(Resource);
    }
    PEXP_RESOURCE_WAIT Released = (PEXP_RESOURCE_WAIT)Resource->ExclusiveWaiters;
    PEXP_RESOURCE_WAIT Next = Released->Next;
    if (Next != NULL) {
        Next->Last = Released->Last;
    }
    Resource->ExclusiveWaiters = (PKEVENT)Next;
    ExpCountWaiters(&Resource->NumberOfExclusiveWaiters, -1);
    Released->Next = NULL;
    ExpMarkExclusive(Resource, TRUE);
    ExpLetIn(Resource, Released);
    return Released;
}

FORCEINLINE PEXP_RESOURCE_WAIT ExpDrop(PERESOURCE Resource, PKTHREAD Thread, POWNER_ENTRY Entry)
{
    Entry->OwnerCount -= 1;
    if (Entry->OwnerCount != 0) {
        return NULL;
    }
    if (Entry == &Resource->OwnerEntry) {
        ExpSetOwnerThread(Entry, 0);
        Entry->TableSize = 0;
    } else {
        PEXP_OWNER Owner = (PEXP_OWNER)Entry;
        ExpUnlinkOwner(Owner);
        if (Owner->Kind == EXP_POOLED_OWNER) {
            ExpGiveBackOwnerRecord(Thread, Owner);
        }
    }
    ULONG Left = Resource->ActiveEntries - 1;
    ExpSetActive(Resource, Left);
    if (Left != 0) {
        return NULL;
    }
    BOOLEAN WasExclusive = ExpIsOwnedExclusively(Resource);
    ExpMarkExclusive(Resource, FALSE);
    Resource->ActiveCount = 0;
    if (__builtin_expect(Resource->SharedWaiters != NULL || Resource->ExclusiveWaiters != NULL, 0)) {
        return ExpLetNextIn(Resource, WasExclusive);
    }
    return NULL;
}

PEXP_RESOURCE_WAIT ExpDropOwner(PERESOURCE Resource, PKTHREAD Thread, POWNER_ENTRY Entry)
{
    return ExpDrop(Resource, Thread, Entry);
}

/* Acquiring. */

typedef enum _EXP_OUTCOME {
    ExpAcquired,
    ExpMustWait,
    ExpNoOwnerRecord
} EXP_OUTCOME;

/* A hint, read without the lock. */
static BOOLEAN ExpLooksAvailable(PERESOURCE Resource, EXP_ACCESS Access)
{
    if (__atomic_load_n(&Resource->ActiveEntries, __ATOMIC_RELAXED) == 0) {
        return TRUE;
    }
    if (Access == ExpExclusive || (__atomic_load_n(&Resource->Flag, __ATOMIC_RELAXED) & ResourceOwnedExclusive)) {
        return FALSE;
    }
    return Access == ExpSharedStarveExclusive || ExGetExclusiveWaiterCount(Resource) == 0;
}

static BOOLEAN ExpMayAcquire(PERESOURCE Resource, PKTHREAD Thread, EXP_ACCESS Access)
{
    if (Resource->ActiveEntries == 0) {
        return TRUE;
    }
    if (ExpIsOwnedExclusively(Resource)) {
        return ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_ANY_OWNER) != NULL;
    }
    switch (Access) {
    case ExpShared:
        return Resource->ExclusiveWaiters == NULL ||
               ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_ANY_OWNER) != NULL;
    case ExpSharedStarveExclusive:
        return TRUE;
    case ExpSharedWaitForExclusive:
        return Resource->ExclusiveWaiters == NULL;
    default:
        return FALSE;
    }
}

/* The record for the owner, if the resource itself has no room. FALSE: all records are in use. */
static BOOLEAN ExpReserveOwner(PKTHREAD Thread, BOOLEAN Needed, PEXP_OWNER *Owner)
{
    if (*Owner == NULL && Needed) {
        *Owner = ExpTakeOwnerRecord(Thread);
        return *Owner != NULL;
    }
    return TRUE;
}

static EXP_OUTCOME ExpTakeResource(PERESOURCE Resource, PKTHREAD Thread, EXP_ACCESS Access, PEXP_OWNER Owner)
{
    POWNER_ENTRY Entry = Owner == NULL ? ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_POOLED_OWNER) : NULL;
    if (Entry != NULL) {
        Entry->OwnerCount += 1;
        return ExpAcquired;
    }
    if (!ExpReserveOwner(Thread, Resource->OwnerEntry.OwnerThread != 0, &Owner)) {
        return ExpNoOwnerRecord;
    }
    if (Access == ExpExclusive) {
        ExpMarkExclusive(Resource, TRUE);
    }
    if (ExpAddOwner(Resource, Thread, Owner) && Owner->Kind == EXP_POOLED_OWNER) {
        ExpThread(Thread)->ResourceOwner = Owner;
    }
    return ExpAcquired;
}

static EXP_OUTCOME ExpBecomeWaiter(PERESOURCE Resource, EXP_ACCESS Access, PEXP_RESOURCE_WAIT Block)
{
    Block->Exclusive = Access == ExpExclusive;
    /* A sharer that waits for it exclusively waits for itself. */
    if (Block->Exclusive && __builtin_expect(KiVerifierEnabled, FALSE) &&
        ExpFindOwner(Resource, (ERESOURCE_THREAD)Block->Thread, EXP_ANY_OWNER) != NULL) {
        ExpUnlockResource(Resource, Block->Thread);
        KeBugCheckEx(SHARED_RESOURCE_CONV_ERROR, (ULONG_PTR)Resource, (ULONG_PTR)Block->Thread, 0, 0);
    }
    if (!ExpReserveOwner(Block->Thread, !Block->Exclusive, &Block->Owner)) {
        return ExpNoOwnerRecord;
    }
    Block->Record = Block->Owner;
    Block->Boosts = ExpFindOwnersBelow(Resource, Block->Thread, FALSE);
    Block->Event.Header.Lock = 0; /* the initializers keep some of its bytes */
    if (Block->Exclusive) {
        KeInitializeEvent(&Block->Event, SynchronizationEvent, FALSE);
        Resource->ExclusiveWaiters = &ExpAppendWaiter((PEXP_RESOURCE_WAIT)Resource->ExclusiveWaiters, Block)->Event;
        ExpCountWaiters(&Resource->NumberOfExclusiveWaiters, 1);
    } else {
        KeInitializeSemaphore(&Block->Semaphore, 0, 1);
        Resource->SharedWaiters = &ExpAppendWaiter((PEXP_RESOURCE_WAIT)Resource->SharedWaiters, Block)->Semaphore;
        ExpCountWaiters(&Resource->NumberOfSharedWaiters, 1);
    }
    Resource->ContentionCount += 1;
    return ExpMustWait;
}

/* One attempt, with the resource locked. Block is NULL if the thread must not wait. */
static DECLSPEC_NOINLINE EXP_OUTCOME ExpTryLocked(PERESOURCE Resource, PKTHREAD Thread, EXP_ACCESS Access,
                                                  PEXP_OWNER FastOwner, PEXP_RESOURCE_WAIT Block)
{
    ExpForgetInheritedResourceWaiters(Resource);
    if (ExpMayAcquire(Resource, Thread, Access)) {
        return ExpTakeResource(Resource, Thread, Access, FastOwner);
    }
    if (Block == NULL) {
        return ExpMustWait;
    }
    Block->Thread = Thread;
    Block->Owner = FastOwner;
    return ExpBecomeWaiter(Resource, Access, Block);
}

/* After a first failed attempt, with its outcome. The thread spins and retries, then queues. */
static DECLSPEC_NOINLINE VOID ExpContendForResource(PERESOURCE Resource, PKTHREAD Thread, EXP_ACCESS Access,
                                                    PEXP_OWNER FastOwner, EXP_OUTCOME Outcome)
{
    EXP_RESOURCE_WAIT Block;
    KI_PATIENCE Patience;
    BOOLEAN Queues = FALSE;
    KiCountContention(Thread);
    KiBeginPatience(&Patience, Thread, KiParkForPushLock);
    while (Outcome != ExpAcquired) {
        if (Queues && Outcome == ExpMustWait) {
            ExpAwaitResource(Resource, &Block);
            BOOLEAN Pooled = Block.Record != NULL && Block.Record->Kind == EXP_POOLED_OWNER;
            if (Pooled && Block.Owner == NULL) { /* it was linked */
                ExpThread(Thread)->ResourceOwner = Block.Record;
            } else if (Pooled) { /* it was not used */
                KiEnterDispatcher(Thread);
                ExpGiveBackOwnerRecord(Thread, Block.Record);
                KiExitDispatcher(Thread);
            }
            return;
        }
        if (Queues) { /* all owner records are in use */
            LARGE_INTEGER Delay = {.QuadPart = -EXP_OWNER_RECORD_DELAY};
            KeDelayExecutionThread(KernelMode, FALSE, &Delay);
        }
        while (!Queues) {
            Queues = !KiStayAwake(&Patience, Thread, KiParkForPushLock);
            if (ExpLooksAvailable(Resource, Access)) {
                break;
            }
        }
        ExpLockToAcquire(Resource, Thread, TRUE);
        Outcome = ExpTryLocked(Resource, Thread, Access, FastOwner, Queues ? &Block : NULL);
        ExpUnlockResource(Resource, Thread);
    }
}

FORCEINLINE BOOLEAN ExpFinishAcquire(PERESOURCE Resource, PKTHREAD Thread, EXP_ACCESS Access, BOOLEAN Wait,
                                     PEXP_OWNER FastOwner, EXP_OUTCOME Outcome)
{
    if (__builtin_expect(Outcome == ExpAcquired, 1)) {
        return TRUE;
    }
    if (!Wait) {
        return FALSE;
    }
    ExpContendForResource(Resource, Thread, Access, FastOwner, Outcome);
    return TRUE;
}

BOOLEAN ExpAcquireForFastOwner(PERESOURCE Resource, EXP_ACCESS Access, BOOLEAN Wait, PEXP_OWNER FastOwner)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpLockToAcquire(Resource, Thread, Wait);
    EXP_OUTCOME Outcome = ExpTryLocked(Resource, Thread, Access, FastOwner, NULL);
    ExpUnlockResource(Resource, Thread);
    return ExpFinishAcquire(Resource, Thread, Access, Wait, FastOwner, Outcome);
}

FORCEINLINE BOOLEAN ExpAcquireResource(PERESOURCE Resource, EXP_ACCESS Access, BOOLEAN Wait)
{
    PKTHREAD Thread = KiCurrentThread();
    EXP_OUTCOME Outcome = ExpAcquired;
    ExpLockToAcquire(Resource, Thread, Wait);
    if (Resource->ActiveEntries == 0) {
        /* Without owners it has no waiters. The first owner needs no record. */
        if (Access == ExpExclusive) {
            ExpMarkExclusive(Resource, TRUE);
        }
        ExpNoteInResource(Resource, Thread);
        ExpSetActive(Resource, 1);
        Resource->ActiveCount = 1;
    } else {
        Outcome = ExpTryLocked(Resource, Thread, Access, NULL, NULL);
    }
    ExpUnlockResource(Resource, Thread);
    return ExpFinishAcquire(Resource, Thread, Access, Wait, NULL, Outcome);
}

KI_ORDER_MODE ExpOrderModeOf(EXP_ACCESS Access)
{
    return Access == ExpExclusive               ? KiOrderExclusive
           : Access == ExpSharedStarveExclusive ? KiOrderSharedPasses
                                                : KiOrderShared;
}

static DECLSPEC_NOINLINE BOOLEAN ExpAcquireVerifiedResource(PERESOURCE Resource, EXP_ACCESS Access, BOOLEAN Wait,
                                                            PVOID Site)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpVerifyResource(Resource, EXP_ACQUIRED_WITH_APCS, APC_LEVEL);
    ExpCheckAnyResource(Resource);
    if (Wait) {
        KiOrderCheck(Thread, Resource, KiOrderResource, ExpOrderModeOf(Access));
    }
    BOOLEAN Acquired = ExpAcquireResource(Resource, Access, Wait);
    if (Acquired) {
        KiOrderHold(Thread, Resource, KiOrderResource, ExpOrderModeOf(Access), Site);
    }
    return Acquired;
}

FORCEINLINE BOOLEAN ExpAcquireChecked(PERESOURCE Resource, EXP_ACCESS Access, BOOLEAN Wait)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        return ExpAcquireVerifiedResource(Resource, Access, Wait, __builtin_return_address(0));
    }
    ExpCheckAnyResource(Resource);
    return ExpAcquireResource(Resource, Access, Wait);
}

BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait)
{
    return ExpAcquireChecked(Resource, ExpExclusive, Wait);
}

BOOLEAN ExTryToAcquireResourceExclusiveLite(PERESOURCE Resource)
{
    return ExpAcquireChecked(Resource, ExpExclusive, FALSE);
}

BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait)
{
    return ExpAcquireChecked(Resource, ExpShared, Wait);
}

BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait)
{
    return ExpAcquireChecked(Resource, ExpSharedStarveExclusive, Wait);
}

BOOLEAN ExAcquireSharedWaitForExclusive(PERESOURCE Resource, BOOLEAN Wait)
{
    return ExpAcquireChecked(Resource, ExpSharedWaitForExclusive, Wait);
}

static PVOID ExpEnterAndAcquire(PERESOURCE Resource, EXP_ACCESS Access)
{
    KeEnterCriticalRegion();
    ExpAcquireChecked(Resource, Access, TRUE);
    return KiCurrentThread();
}

PVOID ExEnterCriticalRegionAndAcquireResourceExclusive(PERESOURCE Resource)
{
    return ExpEnterAndAcquire(Resource, ExpExclusive);
}

PVOID ExEnterCriticalRegionAndAcquireResourceShared(PERESOURCE Resource)
{
    return ExpEnterAndAcquire(Resource, ExpShared);
}

PVOID ExEnterCriticalRegionAndAcquireSharedWaitForExclusive(PERESOURCE Resource)
{
    return ExpEnterAndAcquire(Resource, ExpSharedWaitForExclusive);
}

/* Releasing. */

/* Acquires of an owner pointer are not in any thread's lock order. */
static DECLSPEC_NOINLINE VOID ExpVerifyResourceRelease(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread)
{
    ExpVerifyResource(Resource, EXP_RELEASED_WITH_APCS, DISPATCH_LEVEL);
    if (!(OwnerThread & EXP_OWNER_POINTER)) {
        KiOrderRelease((PKTHREAD)OwnerThread, Resource);
    }
}

FORCEINLINE VOID ExpReleaseFor(PERESOURCE Resource, PKTHREAD Thread, ERESOURCE_THREAD OwnerThread)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyResourceRelease(Resource, OwnerThread);
    }
    ExpCheckAnyResource(Resource);
    ExpLockResource(Resource, Thread);
    POWNER_ENTRY Entry = ExpFindOwner(Resource, OwnerThread, EXP_POOLED_OWNER);
    if (__builtin_expect(Entry == NULL || Entry->OwnerCount == 0, 0)) {
        ExpNotOwned(Resource, OwnerThread);
    }
    PEXP_RESOURCE_WAIT Released = ExpDrop(Resource, Thread, Entry);
    ExpUnlockResource(Resource, Thread);
    ExpWakeReleased(Released);
}

VOID ExReleaseResourceLite(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpReleaseFor(Resource, Thread, (ERESOURCE_THREAD)Thread);
}

/* The waiter that ExAcquireSharedWaitForExclusive makes of a sharer needs a release by another thread. */
VOID ExReleaseResourceForThreadLite(PERESOURCE Resource, ERESOURCE_THREAD ResourceThreadId)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN ForOther = ResourceThreadId != (ERESOURCE_THREAD)Thread;
    if (ForOther && Resource->Reserved2 != NULL) {
        KeBugCheckEx(FAST_ERESOURCE_PRECONDITION_VIOLATION, EXP_RELEASED_FOR_OTHER, (ULONG_PTR)Resource,
                     ResourceThreadId, 0);
    }
    if (ForOther && !(ResourceThreadId & EXP_OWNER_POINTER) && __builtin_expect(KiVerifierEnabled, FALSE)) {
        KeBugCheckEx(ERESOURCE_INVALID_RELEASE, (ULONG_PTR)Resource, (ULONG_PTR)Thread, ResourceThreadId, 0);
    }
    ExpReleaseFor(Resource, Thread, ResourceThreadId);
}

VOID ExReleaseResourceAndLeaveCriticalRegion(PERESOURCE Resource)
{
    ExReleaseResourceLite(Resource);
    KeLeaveCriticalRegion();
}

VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckAnyResource(Resource);
    ExpLockResource(Resource, Thread);
    if (!ExpIsOwnedExclusively(Resource) ||
        ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_POOLED_OWNER) == NULL) {
        if (Resource->Reserved2 != NULL) {
            ExpUnlockResource(Resource, Thread);
            KeBugCheckEx(FAST_ERESOURCE_PRECONDITION_VIOLATION, EXP_CONVERTED_WITHOUT_OWNING, (ULONG_PTR)Resource,
                         (ULONG_PTR)Thread, 0);
        }
        ExpNotOwned(Resource, (ERESOURCE_THREAD)Thread);
    }
    PEXP_RESOURCE_WAIT Released = ExpShareResource(Resource);
    ExpUnlockResource(Resource, Thread);
    ExpWakeReleased(Released);
    if (KiVerifierEnabled) {
        KiOrderConvert(Thread, Resource, KiOrderShared);
    }
}

/* Owner pointers. */

VOID ExSetResourceOwnerPointerEx(PERESOURCE Resource, PVOID OwnerPointer, ULONG Flags)
{
    PKTHREAD Thread = KiCurrentThread();
    ERESOURCE_THREAD NewOwner = (ERESOURCE_THREAD)OwnerPointer;
    ExpCheckNoFastResource(Resource);
    if ((NewOwner & EXP_OWNER_POINTER) != EXP_OWNER_POINTER) {
        KeBugCheckEx(RESOURCE_OWNER_POINTER_INVALID, (ULONG_PTR)Resource, (ULONG_PTR)Resource->OwnerTable,
                     (ULONG_PTR)Thread, NewOwner);
    }
    ExpLockResource(Resource, Thread);
    POWNER_ENTRY Entry = ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_POOLED_OWNER);
    if (Entry == NULL) {
        ExpNotOwned(Resource, (ERESOURCE_THREAD)Thread);
    }
    Entry->OwnerReferenced = (Flags & FLAG_OWNER_POINTER_IS_THREAD) != 0;
    POWNER_ENTRY Heir = ExpFindOwner(Resource, NewOwner, EXP_POOLED_OWNER);
    if (Heir == NULL) {
        ExpRenameOwner(Resource, Entry, NewOwner);
    } else {
        Heir->OwnerCount += Entry->OwnerCount;
        Entry->OwnerCount = 1;
        ExpDropOwner(Resource, Thread, Entry); /* the new owner remains, so no waiter is admitted */
    }
    ExpUnlockResource(Resource, Thread);
    if (KiVerifierEnabled) {
        KiOrderDisown(Thread, Resource);
    }
}

VOID ExSetResourceOwnerPointer(PERESOURCE Resource, PVOID OwnerPointer)
{
    ExSetResourceOwnerPointerEx(Resource, OwnerPointer, 0);
}

/* Querying. */

static ULONG ExpCountAcquires(PERESOURCE Resource, PKTHREAD Thread)
{
    POWNER_ENTRY Entry = ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_POOLED_OWNER);
    return Entry != NULL ? Entry->OwnerCount : 0;
}

BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckAnyResource(Resource);
    ExpLockResource(Resource, Thread);
    BOOLEAN Mine = ExpIsOwnedExclusively(Resource) && ExpCountAcquires(Resource, Thread) != 0;
    ExpUnlockResource(Resource, Thread);
    return Mine;
}

ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckAnyResource(Resource);
    ExpLockResource(Resource, Thread);
    ULONG Acquires = ExpCountAcquires(Resource, Thread);
    ExpUnlockResource(Resource, Thread);
    return Acquires;
}

ULONG ExGetSharedWaiterCount(PERESOURCE Resource)
{
    return __atomic_load_n(&Resource->NumberOfSharedWaiters, __ATOMIC_RELAXED);
}

ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource)
{
    return __atomic_load_n(&Resource->NumberOfExclusiveWaiters, __ATOMIC_RELAXED);
}

VOID ExDisableResourceBoostLite(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpLockResource(Resource, Thread);
    Resource->Flag |= EXP_RESOURCE_NO_BOOST;
    ExpUnlockResource(Resource, Thread);
}

/* Creation and deletion. */

/* Everything but its place in the list. */
static VOID ExpClearResource(PERESOURCE Resource, ULONG_PTR Kind)
{
    memset(&Resource->OwnerTable, 0, sizeof(*Resource) - FIELD_OFFSET(ERESOURCE, OwnerTable));
    Resource->Reserved2 = (PVOID)Kind;
}

VOID ExpInitializeResource(PERESOURCE Resource, ULONG_PTR Kind)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    KiAcquireLock(&ExpResourceSpinLock);
    for (PLIST_ENTRY Entry = ExpSystemResourcesList.Flink; KiVerifierEnabled && Entry != &ExpSystemResourcesList;
         Entry = Entry->Flink) {
        if (Entry == &Resource->SystemResourcesList) {
            ExpResourceViolation(EXP_INITIALIZED_AGAIN, (ULONG_PTR)Resource, 0, NULL);
        }
    }
    ExpClearResource(Resource, Kind);
    InsertTailList(&ExpSystemResourcesList, &Resource->SystemResourcesList);
    KiReleaseLock(&ExpResourceSpinLock);
    KiExitDispatcher(Thread);
    if (KiVerifierEnabled) {
        KiOrderInitialize(Resource, KiOrderResource);
    }
}

static PVOID ExpFindFreedResource(PVOID Base, PVOID End)
{
    PKTHREAD Thread = KiEnterLocked(&ExpResourceSpinLock);
    PERESOURCE Found = NULL;
    for (PLIST_ENTRY Entry = ExpSystemResourcesList.Flink; Entry != &ExpSystemResourcesList && Found == NULL;
         Entry = Entry->Flink) {
        Found = KiIsInMemory(Entry, Base, End) ? CONTAINING_RECORD(Entry, ERESOURCE, SystemResourcesList) : Found;
    }
    KiExitLocked(&ExpResourceSpinLock, Thread);
    return Found;
}

static VOID ExpWatchFreedResources(VOID)
{
    KiFindFreed[KiFreedResources] = ExpFindFreedResource;
}
KI_INITIALIZER(KiInitializeKernel, ExpWatchFreedResources);

VOID ExpRemoveResource(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Resource->SystemResourcesList.Flink == NULL) {
        ExpResourceViolation(EXP_NOT_INITIALIZED, (ULONG_PTR)Resource, 0, NULL);
    }
    KiEnterDispatcher(Thread);
    KiAcquireLock(&ExpResourceSpinLock);
    RemoveEntryList(&Resource->SystemResourcesList);
    Resource->SystemResourcesList.Flink = NULL;
    Resource->SystemResourcesList.Blink = NULL;
    KiReleaseLock(&ExpResourceSpinLock);
    KiExitDispatcher(Thread);
    if (KiVerifierEnabled) {
        KiOrderForget(Resource);
    }
}

BOOLEAN ExpIsResourceIdle(PERESOURCE Resource)
{
    ExpForgetInheritedResourceWaiters(Resource);
    return Resource->ActiveEntries == 0 && Resource->SharedWaiters == NULL && Resource->ExclusiveWaiters == NULL;
}

static VOID ExpRequireIdle(PERESOURCE Resource)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckNoFastResource(Resource);
    ExpLockResource(Resource, Thread);
    if (!ExpIsResourceIdle(Resource)) {
        ExpResourceViolation(EXP_DELETED_WHILE_HELD, (ULONG_PTR)Resource, Resource->OwnerEntry.OwnerThread, NULL);
    }
    ExpUnlockResource(Resource, Thread);
}

NTSTATUS ExInitializeResourceLite(PERESOURCE Resource)
{
    ExpInitializeResource(Resource, 0);
    return STATUS_SUCCESS;
}

NTSTATUS ExReinitializeResourceLite(PERESOURCE Resource)
{
    ExpRequireIdle(Resource);
    ExpClearResource(Resource, 0);
    return STATUS_SUCCESS;
}

NTSTATUS ExDeleteResourceLite(PERESOURCE Resource)
{
    ExpRequireIdle(Resource);
    ExpRemoveResource(Resource);
    return STATUS_SUCCESS;
}
