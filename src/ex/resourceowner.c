/*
 * resourceowner.c: the owners of resources.
 *
 * OwnerEntry, in the resource itself, names the first owner. Each further sharer needs an owner record. NT allocates a
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
#include "resource.h"

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

static PEXP_OWNER ExpTakeFromShard(ULONG Index)
{
    PEXP_OWNER_SHARD Shard = &ExpOwnerShards[Index];
    KiAcquireLock(&Shard->Lock);
    PEXP_OWNER Owner = Shard->Free;
    if (Owner != NULL) {
        Shard->Free = Owner->Next;
    } else if (Shard->Fresh < EXP_OWNERS_IN_SHARD) {
        Owner = &ExpOwnerRecords[Index][Shard->Fresh];
        Owner->Kind = EXP_POOLED_OWNER;
        Shard->Fresh += 1;
    }
    KiReleaseLock(&Shard->Lock);
    return Owner;
}

PEXP_OWNER ExpTakeOwnerRecord(PKTHREAD Thread)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    PEXP_OWNER Owner = ExpThreadKept(Thread)->SpareOwner;
    if (Owner != NULL) {
        ExpThreadKept(Thread)->SpareOwner = NULL;
        return Owner;
    }
    for (ULONG Tried = 0; Owner == NULL && Tried < EXP_OWNER_SHARDS; Tried += 1) {
        Owner = ExpTakeFromShard((Slot->Number + Tried) % EXP_OWNER_SHARDS);
    }
    return Owner;
}

VOID ExpGiveBackOwnerRecord(PKTHREAD Thread, PEXP_OWNER Owner)
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

static VOID ExpSetResource(PEXP_OWNER Owner, PERESOURCE Resource)
{
    __atomic_store_n(&Owner->Resource, Resource, __ATOMIC_RELAXED);
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

/* By the thread itself. Everything about the resource that it has locked is counted. */
static BOOLEAN ExpIsNamedNowhere(PKTHREAD Thread)
{
    PEXP_THREAD Own = ExpThread(Thread);
    return Own->ResourceOwners + __atomic_load_n(&Own->ResourceOwnersByOthers, __ATOMIC_RELAXED) == 0;
}

VOID ExpLinkOwner(PERESOURCE Resource, PEXP_OWNER Owner, PKTHREAD Thread)
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
    ExpSetResource(Owner, Resource);
    ExpCountOwners((ERESOURCE_THREAD)Thread, 1);
}

VOID ExpUnlinkOwner(PEXP_OWNER Owner)
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
    ExpSetResource(Owner, NULL);
}

VOID ExpRenameOwner(PERESOURCE Resource, POWNER_ENTRY Entry, ERESOURCE_THREAD NewOwner)
{
    if (Entry != &Resource->OwnerEntry) {
        ExpCountOwners(Entry->OwnerThread, -1);
        ExpCountOwners(NewOwner, 1);
    }
    ExpSetOwnerThread(Entry, NewOwner);
}

/* Only records are remembered: an entry of a fast resource may be in a dead stack frame. */
static PEXP_OWNER ExpGuessOwner(PERESOURCE Resource, PKTHREAD Thread)
{
    PEXP_OWNER Owner = ExpThread(Thread)->ResourceOwner;
    if (Owner != NULL && __atomic_load_n(&Owner->Resource, __ATOMIC_RELAXED) == Resource &&
        __atomic_load_n(&Owner->Entry.OwnerThread, __ATOMIC_RELAXED) == (ERESOURCE_THREAD)Thread) {
        return Owner;
    }
    return NULL;
}

static PEXP_OWNER ExpFindInChain(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread, USHORT Kind)
{
    PEXP_OWNER Owner = ExpFirstOwner(Resource);
    while (Owner != NULL &&
           (Owner->Entry.OwnerThread != OwnerThread || (Kind != EXP_ANY_OWNER && Owner->Kind != Kind))) {
        Owner = Owner->Next;
    }
    return Owner;
}

POWNER_ENTRY ExpFindLinkedOwner(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread, USHORT Kind)
{
    PKTHREAD Current = HalCurrentThread;
    PEXP_OWNER Owner = NULL;
    if (Resource->OwnerTable == NULL) {
        return NULL;
    }
    if ((ERESOURCE_THREAD)Current == OwnerThread) {
        if (ExpIsNamedNowhere(Current)) {
            return NULL;
        }
        Owner = ExpGuessOwner(Resource, Current);
    }
    if (Owner == NULL) {
        Owner = ExpFindInChain(Resource, OwnerThread, Kind);
        if (Owner != NULL && Owner->Kind == EXP_POOLED_OWNER && (ERESOURCE_THREAD)Current == OwnerThread) {
            ExpThread(Current)->ResourceOwner = Owner;
        }
    }
    return Owner != NULL ? &Owner->Entry : NULL;
}
