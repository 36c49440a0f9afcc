/*
 * waiterhash.h: the table of threads that wait for a key. It knows which threads wait, in which order, and for what; its
 * users put them to sleep and wake them.
 *
 * 1. A waiter's entry is on its own stack, linked in one bucket under the bucket's lock. The lock is held inside a
 *    dispatcher section, for as long as a walk through the keys of one bucket takes.
 * 2. Waiters of one key leave in the order of arrival. They are neighbours on the bucket's list, oldest first, and the
 *    oldest and the youngest know each other (OtherEnd):
 *
 *        head -> a1 a2 a3 a4 -> b1 -> c1 c2 -> head        a1 <=> a4   b1 <=> b1   c1 <=> c2
 *
 *    So a search steps over all waiters of another key at once, a new waiter is linked after the youngest, and any waiter
 *    leaves in a few steps. The cost of a wait or wake depends on the number of other keys in the bucket, not on the number of
 *    their waiters. Usually it does not depend on those either: Signs has a bit for each key that was added since the bucket
 *    was last empty, and distinguishes most other keys without an access to the stacks of the waiters.
 * 3. The thread that removes an entry must wake its owner, and is the only one to access it until then. An owner that
 *    wants to leave and finds its entry removed waits for that wake.
 * 4. Entries of different keys never match, even in the same bucket. Process is part of the key.
 * 5. A thread can see without the lock that a key has no waiters (ExpMayHaveWaiters, with the proof). Address waits
 *    have a cheaper way for a bucket that is repeatedly woken without waiters, and keep their count in the bucket
 *    (rtl/addresswait.c).
 * 6. Nothing is allocated. Zeroed memory is an empty table. A forked child finds the table empty.
 */
#ifndef INTERLOCK_WAITERHASH_H
#define INTERLOCK_WAITERHASH_H

#include "exp.h"

typedef struct _EXP_WAIT_KEY {
    PVOID Key;
    PVOID Object;        /* to which the key belongs */
    PKPROCESS Process;
    ULONG Kind;          /* why the key is waited for */
} EXP_WAIT_KEY, *PEXP_WAIT_KEY;

typedef struct _EXP_WAITER {
    LIST_ENTRY Link;
    EXP_WAIT_KEY Key;
    struct _EXP_WAITER *OtherEnd; /* see 2; NULL: neither the oldest nor the youngest. Under the bucket's lock, */
    BOOLEAN Listed;               /* as is this */
} EXP_WAITER, *PEXP_WAITER;

/* One for each thread slot before the table of threads grows, because each waiter is a thread. */
#define EXP_WAITER_BUCKETS 4096

typedef struct _EXP_WAITER_BUCKET {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG ProcessId;       /* the list's process; 0 or that of the parent: the list is empty */
    volatile ULONG Count;  /* in the list; written under the lock */
    LIST_ENTRY WaiterList;
    ULONG64 Signs;         /* see 2; 0 if Count is */
    /* Used by address waits: see rtl/addresswait.c. */
    ULONG QuietsEnded;            /* under the lock */
    volatile ULONG BarrierMade;
    volatile ULONG VainWakes;
} EXP_WAITER_BUCKET, *PEXP_WAITER_BUCKET;

/* Read by the debugger. */
#define EXP_WAITER_LAYOUT                                                                                              \
    EXP_WAITER_BUCKETS, sizeof(EXP_WAITER_BUCKET), KDP_MEMBER(EXP_WAITER_BUCKET, ProcessId),                           \
        KDP_MEMBER(EXP_WAITER_BUCKET, Count), KDP_MEMBER(EXP_WAITER_BUCKET, WaiterList), sizeof(EXP_WAITER),           \
        KDP_MEMBER(EXP_WAITER, Link), KDP_MEMBER(EXP_WAITER, Key.Key), KDP_MEMBER(EXP_WAITER, Key.Object),             \
        KDP_MEMBER(EXP_WAITER, Key.Kind)

/* Keys that differ in nothing but Kind share a bucket, so one lock covers both sides of a rendezvous. */
PEXP_WAITER_BUCKET ExpLockWaiters(const EXP_WAIT_KEY *Key, PKTHREAD Thread);
VOID ExpUnlockWaiters(PEXP_WAITER_BUCKET Bucket, PKTHREAD Thread);

/* With the bucket of the key locked. */
VOID ExpInsertWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter);
PEXP_WAITER ExpTakeFirstWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key); /* NULL: no waiters */
ULONG ExpTakeWaiters(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key, ULONG Most, PLIST_ENTRY Taken);
BOOLEAN ExpTakeListedWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter); /* FALSE: it is already removed */

/* FALSE: another thread has removed it. */
BOOLEAN ExpTakeWaiter(PEXP_WAITER Waiter, PKTHREAD Thread);

/* hidden: saves an indirection in a wake without waiters */
extern EXP_WAITER_BUCKET ExpWaiterTable[EXP_WAITER_BUCKETS] __attribute__((visibility("hidden")));

#define EXP_WAITER_BUCKET_SHIFT 52
#define EXP_WAITER_HASH 0x9e3779b97f4a7c15ull
#define EXP_WAITER_SIGN_SHIFT (EXP_WAITER_BUCKET_SHIFT - 6)

C_ASSERT(EXP_WAITER_BUCKETS == 1 << (64 - EXP_WAITER_BUCKET_SHIFT));

/* Multiplying by the golden ratio spreads neighbouring addresses over the high bits. Without an object it is the
   hash of RtlpIsAddressQuiet, in a public header. */
FORCEINLINE ULONG64 ExpHashOf(const EXP_WAIT_KEY *Key)
{
    return ((ULONG_PTR)Key->Key ^ ((ULONG_PTR)Key->Object << 13)) * EXP_WAITER_HASH;
}

FORCEINLINE PEXP_WAITER_BUCKET ExpBucketOf(const EXP_WAIT_KEY *Key)
{
    return &ExpWaiterTable[ExpHashOf(Key) >> EXP_WAITER_BUCKET_SHIFT];
}

FORCEINLINE ULONG64 ExpSignOf(const EXP_WAIT_KEY *Key)
{
    return (ULONG64)1 << (ExpHashOf(Key) >> EXP_WAITER_SIGN_SHIFT & 63);
}

/*
 * Without the lock. FALSE: a thread that locks the bucket later, to wait for the key, sees all that the caller did before
 * the call. TRUE: the caller has to lock the bucket and search.
 *
 * A read-modify-write that leaves the lock's word as it is reads it, so the read has its place among the changes of that
 * word. Let W be a waiter that locks the bucket.
 *   Before: W still holds the lock, and the word is not 0; or W has released it, and the caller that reads 0 sees Count as
 *   W or a later owner left it (the release in KiReleaseLock pairs with the acquire here).
 *   After: W's acquire of the lock reads this change of the word (the release here pairs with the acquire in
 *   KiTryAcquireLock), so W sees what the caller did before.
 * A plain read could come before the caller's store to the value that W compares.
 */
FORCEINLINE BOOLEAN ExpMayHaveWaiters(const EXP_WAIT_KEY *Key)
{
    PEXP_WAITER_BUCKET Bucket = ExpBucketOf(Key);
    return __atomic_fetch_add(&Bucket->Lock, 0, __ATOMIC_ACQ_REL) != 0 ||
           __atomic_load_n(&Bucket->Count, __ATOMIC_RELAXED) != 0;
}

/* The values that address waits and address-based pushlocks wait for. */
BOOLEAN ExpIsValueSize(SIZE_T Size); /* 1, 2, 4 or 8 */
BOOLEAN ExpIsSameValue(const volatile VOID *Address, const VOID *CompareAddress, SIZE_T Size); /* at any alignment */

#endif
