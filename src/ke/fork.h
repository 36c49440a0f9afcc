/*
 * fork.h: lock queues over a fork.
 *
 * The queue of a pointer-sized lock is a chain of blocks on the stacks of its waiters. In a forked child these threads
 * do not exist, and their stacks soon belong to other threads. So the child must not follow a chain that it inherited,
 * and must not touch it before it uses the lock: the lock may be in memory that the parent still shares.
 *
 * 1. A word that points to a block has a tag in its 16 highest bits, which no address on a stack needs: the fork depth
 *    of the process that queued the block. A word with a tag other than KiForkTag was inherited.
 * 2. A thread registers what it is queued on in its KTHREAD. The child reads the registrations of the threads that
 *    stayed behind, before another thread reuses their stacks, and records for each queue the value of the lock without
 *    that queue.
 * 3. An operation that finds an inherited word replaces it with the recorded value (KiDropInheritedQueue).
 * 4. An inherited word without a record was not queued before the fork. Another process uses the lock: a bugcheck.
 * 5. Chains change inside dispatcher sections only, and no thread is in one when the process forks. So the child has
 *    complete chains.
 *
 * The word of a queued spinlock has no tag: drivers may compare it with the address of an entry. Instead, an acquire that does
 * not find the lock free, a failing try and a release to a successor drop the inherited queue first (KiDropInheritedEntries).
 * Until one of them has, the word keeps its inherited value. So an inherited word that is recorded and not yet dropped does
 * not name an entry of the child.
 *
 * A tag in the block was rejected: a new thread may queue a block of its own at the address of an inherited one.
 */
#ifndef INTERLOCK_KE_FORK_H
#define INTERLOCK_KE_FORK_H

#include "ki.h"

#define KI_FORK_TAG_SHIFT 48
#define KI_FORK_TAG_MASK ((ULONG_PTR)0xffff << KI_FORK_TAG_SHIFT)

extern ULONG_PTR KiForkTag __attribute__((visibility("hidden"))); /* the low bits of KiForkDepth, shifted */

typedef struct _KI_QUEUED {
    struct _KI_QUEUED *Outer; /* of a wait in which an APC waits */
    volatile ULONG_PTR *Word;
    PVOID Block;
    VOID (*Inherit)(struct _KI_QUEUED *Queued); /* in the child. Also called for a waiter that was already woken: Word
                                                   may be invalid */
} KI_QUEUED, *PKI_QUEUED;

/* In the same dispatcher section as the compare-exchange that queues the block. */
FORCEINLINE VOID KiRegisterQueued(PKTHREAD Thread, PKI_QUEUED Queued)
{
    Queued->Outer = Thread->Queued;
    Thread->Queued = Queued;
}

FORCEINLINE VOID KiUnregisterQueued(PKTHREAD Thread, PKI_QUEUED Queued)
{
    Thread->Queued = Queued->Outer;
}

/* For a value that points to a block. */
FORCEINLINE BOOLEAN KiIsInherited(ULONG_PTR Value)
{
    return ((Value ^ KiForkTag) & KI_FORK_TAG_MASK) != 0;
}

/* Not inherited: a process that this one has forked uses the lock, too. Depths have 31 bits, tags 16. */
FORCEINLINE BOOLEAN KiIsDepthOfChild(ULONG Depth)
{
    return (LONG)((Depth - KiForkDepth) << 1) > 0;
}

FORCEINLINE BOOLEAN KiIsTagOfChild(ULONG_PTR Value)
{
    return (LONG_PTR)((Value & KI_FORK_TAG_MASK) - KiForkTag) > 0;
}

VOID KiRecordInheritedQueue(volatile ULONG_PTR *Word, ULONG_PTR Value, ULONG_PTR WithoutQueue); /* by Inherit */
VOID KiDropInheritedQueue(volatile ULONG_PTR *Word, ULONG_PTR Value); /* unless *Word is no longer Value */
VOID KiDropInheritedEntries(PKSPIN_LOCK SpinLock); /* of a queued spinlock; WithoutQueue is its owner's entry, or 0 */
DECLSPEC_NORETURN VOID KiForeignQueue(volatile ULONG_PTR *Word, ULONG_PTR Value);

#endif
