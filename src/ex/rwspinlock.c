/*
 * rwspinlock.c: spinlocks of readers and writers.
 *
 *      31   30   29                                      0
 *     +----+----+-----------------------------------------+
 *     | E  | W  |            number of sharers            |
 *     +----+----+-----------------------------------------+
 *
 * E: held exclusively. W: a writer waits.
 *
 * 1. Exclusion: E is set only together with the number of sharers being 0, and no sharer is added while E is set.
 * 2. While W is set nobody becomes a sharer, so the readers run out and the writer gets in. A writer that waits sets W
 *    whenever it finds W clear.
 * 3. W is cleared by the writer that gets in, in the same step that sets E; others that still wait set it again. So W
 *    is never left behind by somebody who has stopped waiting. Between the step and the setting again E keeps readers
 *    out; if the writer is through before the next one looks, a reader may get in between two writers.
 * 4. A release leaves W alone.
 * 5. A try changes the word once or not at all, and fails only for what the word says: for a reader E or W, for a
 *    writer any bit at all, for a conversion E or another sharer.
 * 6. A conversion needs no more than to be the only sharer: it goes ahead of a waiting writer, and W stays.
 * 7. Zeroed memory is a free lock. Nothing is touched after the release.
 *
 * To count the waiting writers in place of W was rejected: then two writers that take turns shut all readers out for as
 * long as they like. A reader that has the lock and asks for it again waits behind W, and W for it: it must not.
 */
#include "exp.h"

#include "../ke/heldlock.h"

#define EXP_EXCLUSIVE ((LONG)0x80000000)
#define EXP_WRITER_WAITS 0x40000000

/* On failure *Word is what the lock holds now. acquire: pairs with the releases in ExpReleaseShared and -Exclusive. */
FORCEINLINE BOOLEAN ExpReplaceLock(PEX_SPIN_LOCK SpinLock, PLONG Word, LONG New)
{
    return __atomic_compare_exchange_n(SpinLock, Word, New, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

FORCEINLINE LONG ExpReadLock(PEX_SPIN_LOCK SpinLock)
{
    /* relaxed: a look before the compare-exchange, which has the acquire */
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED);
}

/* Word: what the lock may hold; 0 is a good guess. On failure it is what shuts readers out. */
FORCEINLINE BOOLEAN ExpTryShared(PEX_SPIN_LOCK SpinLock, PLONG Word)
{
    do {
        if (*Word & (EXP_EXCLUSIVE | EXP_WRITER_WAITS)) {
            return FALSE;
        }
    } while (!ExpReplaceLock(SpinLock, Word, *Word + 1));
    return TRUE;
}

static DECLSPEC_NOINLINE VOID ExpWaitShared(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock, LONG Word)
{
    ULONG Spins = 0;
    do {
        KiSpin(Thread, &Spins);
        Word = ExpReadLock(SpinLock);
    } while (!ExpTryShared(SpinLock, &Word));
}

static DECLSPEC_NOINLINE VOID ExpWaitExclusive(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock, LONG Word)
{
    ULONG Spins = 0;
    for (;;) {
        if (!(Word & ~EXP_WRITER_WAITS)) {
            if (ExpReplaceLock(SpinLock, &Word, EXP_EXCLUSIVE)) {
                return;
            }
        } else if (Word & EXP_WRITER_WAITS || ExpReplaceLock(SpinLock, &Word, Word | EXP_WRITER_WAITS)) {
            KiSpin(Thread, &Spins);
            Word = ExpReadLock(SpinLock);
        }
    }
}

FORCEINLINE VOID ExpAcquireShared(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock)
{
    LONG Word = 0;
    KiVerifyAcquire(Thread, (PVOID)SpinLock, KiHoldShared);
    if (__builtin_expect(!ExpTryShared(SpinLock, &Word), 0)) {
        ExpWaitShared(Thread, SpinLock, Word);
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldShared);
}

FORCEINLINE VOID ExpAcquireExclusive(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock)
{
    LONG Word = 0;
    KiVerifyAcquire(Thread, (PVOID)SpinLock, KiHoldExclusive);
    if (__builtin_expect(!ExpReplaceLock(SpinLock, &Word, EXP_EXCLUSIVE), 0)) {
        ExpWaitExclusive(Thread, SpinLock, Word);
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldExclusive);
}

FORCEINLINE VOID ExpReleaseShared(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock)
{
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldShared);
    /* release: pairs with the acquire in ExpReplaceLock */
    __atomic_fetch_sub(SpinLock, 1, __ATOMIC_RELEASE);
}

FORCEINLINE VOID ExpReleaseExclusive(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock)
{
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldExclusive);
    /* release: pairs with the acquire in ExpReplaceLock */
    __atomic_fetch_and(SpinLock, ~EXP_EXCLUSIVE, __ATOMIC_RELEASE);
}

KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    ExpAcquireShared(Thread, SpinLock);
    return OldIrql;
}

KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    ExpAcquireExclusive(Thread, SpinLock);
    return OldIrql;
}

VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    ExpAcquireShared(KiCurrentThread(), SpinLock);
}

VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    ExpAcquireExclusive(KiCurrentThread(), SpinLock);
}

LOGICAL ExTryAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 0;
    KiVerifyAtDispatchLevel(Thread);
    if (!ExpTryShared(SpinLock, &Word)) {
        return FALSE;
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldShared);
    return TRUE;
}

LOGICAL ExTryAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 0;
    KiVerifyAtDispatchLevel(Thread);
    if (!ExpReplaceLock(SpinLock, &Word, EXP_EXCLUSIVE)) {
        return FALSE;
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldExclusive);
    return TRUE;
}

LOGICAL ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 1;
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldShared);
    while ((Word & ~EXP_WRITER_WAITS) == 1) {
        if (ExpReplaceLock(SpinLock, &Word, EXP_EXCLUSIVE | (Word & EXP_WRITER_WAITS))) {
            KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldExclusive);
            return TRUE;
        }
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldShared);
    return FALSE;
}

VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpReleaseShared(Thread, SpinLock);
    KiLowerIrql(Thread, OldIrql);
}

VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpReleaseExclusive(Thread, SpinLock);
    KiLowerIrql(Thread, OldIrql);
}

VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    ExpReleaseShared(KiCurrentThread(), SpinLock);
}

VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    ExpReleaseExclusive(KiCurrentThread(), SpinLock);
}
