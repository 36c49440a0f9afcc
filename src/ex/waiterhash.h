/*
 * waiterhash.h: the table of those who wait for a key. It knows who waits, in which order, and for what; how a waiter
 * is put to sleep and woken is up to whoever uses it.
 *
 * 1. A waiter's entry is on its own stack, linked in one bucket under the bucket's lock. The lock is held inside a
 *    dispatcher section and for as long as a look through the keys of one bucket takes.
 * 2. Waiters of one key leave in the order in which they came. They are neighbours on the bucket's list, oldest first,
 *    and the oldest and the youngest know each other (OtherEnd):
 *
 *        head -> a1 a2 a3 a4 -> b1 -> c1 c2 -> head        a1 <=> a4   b1 <=> b1   c1 <=> c2
 *
 *    So whoever looks for a key steps over all waiters of another one at once, a new waiter goes behind the youngest,
 *    and any waiter comes out in a few steps. What a wait or a wake costs depends on the number of other keys in the
 *    bucket, not on the number of their waiters. Mostly not even on that: Signs has a bit for each key that came since the
 *    bucket was last empty, and tells most others from these without a look at the stacks of the waiters.
 * 3. Who takes an entry out owes its owner a wake and is the only one to touch it until then; so an owner that wants to
 *    leave and finds its entry gone waits for that wake.
 * 4. Entries of different keys never match, whatever bucket they share. Process is part of the key.
 * 5. That nobody waits for a key can be seen without the lock (ExpMayHaveWaiters): the proof is there.
 * 6. Nothing is allocated. Zeroed memory is an empty table, and a forked child finds it empty: those who waited are not
 *    there any more.
 */
#ifndef INTERLOCK_WAITERHASH_H
#define INTERLOCK_WAITERHASH_H

#include "exp.h"

typedef struct _EXP_WAIT_KEY {
    PVOID Key;
    PVOID Object;        /* what the key belongs to */
    PKPROCESS Process;
    ULONG Kind;          /* tells apart what one key may be waited on for */
} EXP_WAIT_KEY, *PEXP_WAIT_KEY;

typedef struct _EXP_WAITER {
    LIST_ENTRY Link;
    EXP_WAIT_KEY Key;
    struct _EXP_WAITER *OtherEnd; /* see 2; NULL: neither the oldest nor the youngest. Under the bucket's lock, as is */
    BOOLEAN Listed;
} EXP_WAITER, *PEXP_WAITER;

/* As many as there are threads without a table that grows: a waiter is a thread. */
#define EXP_WAITER_BUCKETS 4096

typedef struct _EXP_WAITER_BUCKET {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG ProcessId;       /* whose the list is: 0, or that of the parent, and there is none yet */
    volatile ULONG Count;  /* in the list; written under the lock */
    LIST_ENTRY WaiterList;
    ULONG64 Signs;         /* see 2; 0 if Count is */
} EXP_WAITER_BUCKET, *PEXP_WAITER_BUCKET;

/* What a debugger reads of these. */
#define EXP_WAITER_LAYOUT                                                                                              \
    EXP_WAITER_BUCKETS, sizeof(EXP_WAITER_BUCKET), KDP_MEMBER(EXP_WAITER_BUCKET, ProcessId),                           \
        KDP_MEMBER(EXP_WAITER_BUCKET, Count), KDP_MEMBER(EXP_WAITER_BUCKET, WaiterList), sizeof(EXP_WAITER),           \
        KDP_MEMBER(EXP_WAITER, Link), KDP_MEMBER(EXP_WAITER, Key.Key), KDP_MEMBER(EXP_WAITER, Key.Object),             \
        KDP_MEMBER(EXP_WAITER, Key.Kind)

/* Keys that differ in nothing but Kind share a bucket, so one lock covers both sides of a meeting. */
PEXP_WAITER_BUCKET ExpLockWaiters(const EXP_WAIT_KEY *Key, PKTHREAD Thread);
VOID ExpUnlockWaiters(PEXP_WAITER_BUCKET Bucket, PKTHREAD Thread);

/* With the bucket of the key locked. */
VOID ExpInsertWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter);
PEXP_WAITER ExpTakeFirstWaiter(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key); /* NULL: nobody waits */
ULONG ExpTakeWaiters(PEXP_WAITER_BUCKET Bucket, const EXP_WAIT_KEY *Key, ULONG Most, PLIST_ENTRY Taken);
BOOLEAN ExpTakeListedWaiter(PEXP_WAITER_BUCKET Bucket, PEXP_WAITER Waiter); /* FALSE: it is out already */

/* FALSE: somebody else has taken it out. */
BOOLEAN ExpTakeWaiter(PEXP_WAITER Waiter, PKTHREAD Thread);

/* hidden: spares who finds nobody waiting an indirection */
extern EXP_WAITER_BUCKET ExpWaiterTable[EXP_WAITER_BUCKETS] __attribute__((visibility("hidden")));

#define EXP_WAITER_BUCKET_SHIFT 52
#define EXP_WAITER_SIGN_SHIFT (EXP_WAITER_BUCKET_SHIFT - 6)

C_ASSERT(EXP_WAITER_BUCKETS == 1 << (64 - EXP_WAITER_BUCKET_SHIFT));

/* Multiplying by the golden ratio spreads neighbouring addresses over the high bits. */
FORCEINLINE ULONG64 ExpHashOf(const EXP_WAIT_KEY *Key)
{
    ULONG64 Mixed = (ULONG_PTR)Key->Key ^ ((ULONG_PTR)Key->Object << 13) ^ ((ULONG_PTR)Key->Process << 27);
    return Mixed * 0x9e3779b97f4a7c15ull;
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
 * Without the lock. FALSE: whoever comes to wait for the key from now on, having locked the bucket, sees all that the
 * caller did before the call. TRUE: lock the bucket and look.
 *
 * The lock's word is read by a read-modify-write that leaves it as it is, so it has its place among the changes of that
 * word. Let W be a waiter that locked the bucket.
 *   Before: W's lock is held still, and the word is not 0; or it was released, and Count as W left it, or as somebody
 *   did after W, is visible to who found the 0 (the release in KiReleaseLock pairs with the acquire here).
 *   After: W's lock was taken on top of this change of the word (the release here pairs with the acquire in
 *   KiTryAcquireLock), so W sees what the caller did before.
 * A plain read would not do: it could come before a store that the caller has made to what W looks at.
 */
FORCEINLINE BOOLEAN ExpMayHaveWaiters(const EXP_WAIT_KEY *Key)
{
    PEXP_WAITER_BUCKET Bucket = ExpBucketOf(Key);
    return __atomic_fetch_add(&Bucket->Lock, 0, __ATOMIC_ACQ_REL) != 0 ||
           __atomic_load_n(&Bucket->Count, __ATOMIC_RELAXED) != 0;
}

#endif
