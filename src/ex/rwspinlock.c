/*
 * rwspinlock.c: reader/writer spinlocks.
 *
 *      31   30   29                                      0
 *     +----+----+-----------------------------------------+
 *     | E  | W  |            number of sharers            |
 *     +----+----+-----------------------------------------+
 *
 * E: held exclusively. W: a writer waits.
 *
 * 1. Exclusion: E is set only while the number of sharers is 0, and no sharer is added while E is set.
 * 2. While W is set no reader becomes a sharer, so the readers drain and the writer acquires the lock. A waiting writer
 *    sets W whenever it finds W clear.
 * 3. The writer that acquires the lock clears W in the same step that sets E; others that still wait set it again. So W
 *    never outlives the writer that set it. Until it is set again E keeps readers out; if the writer releases before
 *    the next one checks, a reader may acquire it between two writers.
 * 4. A release leaves W alone.
 * 5. A try changes the word once or not at all, and fails only because of the word: for a reader E or W, for a writer
 *    any bit at all, for a conversion E or another sharer.
 * 6. A conversion only requires the caller to be the only sharer: it overtakes a waiting writer, and W stays.
 * 7. Zeroed memory is a free lock. Nothing is accessed after the release.
 * 8. In a forked child no writer of the parent waits: W is cleared, or readers would wait forever. Clearing it is harmless in
 *    any case, because a waiting writer sets it again (2). So the lock may be in memory that the parent shares.
 *
 * Counting the waiting writers in place of W was rejected: two writers that take turns would starve all readers. A
 * reader that holds the lock must not acquire it again: it would wait for the writer, and the writer for it.
 */
#include "exp.h"

#include "../ke/fork.h"
#include "../ke/verifier.h"
#include "../ke/park.h"

#define EXP_EXCLUSIVE ((LONG)0x80000000)
#define EXP_WRITER_WAITS 0x40000000

/* On failure *Word is the current value. acquire: pairs with the releases below. */
FORCEINLINE BOOLEAN ExpChangeSpinLock(PEX_SPIN_LOCK SpinLock, PLONG Word, LONG New)
{
    return __atomic_compare_exchange_n(SpinLock, Word, New, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

FORCEINLINE LONG ExpReadSpinLock(PEX_SPIN_LOCK SpinLock)
{
    /* relaxed: the compare-exchange has the acquire */
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED);
}

/* *Word is a guess, 0 a good one. On failure it is the value that excludes readers. */
FORCEINLINE BOOLEAN ExpTryAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock, PLONG Word)
{
    do {
        if (*Word & (EXP_EXCLUSIVE | EXP_WRITER_WAITS)) {
            return FALSE;
        }
    } while (!ExpChangeSpinLock(SpinLock, Word, *Word + 1));
    return TRUE;
}

static DECLSPEC_NOINLINE VOID ExpAwaitSpinLockShared(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock)
{
    KI_PATIENCE Patience;
    LONG Word;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    do {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        Word = ExpReadSpinLock(SpinLock);
    } while (!ExpTryAcquireSpinLockShared(SpinLock, &Word));
}

/* Requirement 8. */
static VOID ExpInheritWaitingWriter(PKI_QUEUED Queued)
{
    __atomic_fetch_and((PEX_SPIN_LOCK)Queued->Block, ~EXP_WRITER_WAITS, __ATOMIC_RELAXED);
}

/* The writer is registered whenever a fork finds that it has set W: the sections order both (ke/fork.h, 5). */
static DECLSPEC_NOINLINE VOID ExpAwaitSpinLockExclusive(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock, LONG Word)
{
    KI_QUEUED Queued = {.Block = (PVOID)SpinLock, .Inherit = ExpInheritWaitingWriter};
    KI_PATIENCE Patience;
    KiEnterDispatcher(Thread);
    KiRegisterQueued(Thread, &Queued);
    KiExitDispatcher(Thread);
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    for (;;) {
        if (!(Word & ~EXP_WRITER_WAITS)) {
            if (ExpChangeSpinLock(SpinLock, &Word, EXP_EXCLUSIVE)) {
                break;
            }
        } else if (Word & EXP_WRITER_WAITS || ExpChangeSpinLock(SpinLock, &Word, Word | EXP_WRITER_WAITS)) {
            KiStayAwake(&Patience, Thread, KiParkForSpinLock);
            Word = ExpReadSpinLock(SpinLock);
        }
    }
    KiEnterDispatcher(Thread);
    KiUnregisterQueued(Thread, &Queued);
    KiExitDispatcher(Thread);
}

/* Site: the return address of the call. */
FORCEINLINE VOID ExpAcquireSpinLockShared(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock, PVOID Site)
{
    LONG Word = 0;
    KiVerifyAcquire(Thread, (PVOID)SpinLock, KiHoldShared, KiOrderSharedSpinLock);
    if (__builtin_expect(!ExpTryAcquireSpinLockShared(SpinLock, &Word), 0)) {
        ExpAwaitSpinLockShared(Thread, SpinLock);
    }
    KiNoteAcquiredAt(Thread, (PVOID)SpinLock, KiHoldShared, KiOrderSharedSpinLock, Site);
}

FORCEINLINE VOID ExpAcquireSpinLockExclusive(PKTHREAD Thread, PEX_SPIN_LOCK SpinLock, PVOID Site)
{
    LONG Word = 0;
    KiVerifyAcquire(Thread, (PVOID)SpinLock, KiHoldExclusive, KiOrderSharedSpinLock);
    if (__builtin_expect(!ExpChangeSpinLock(SpinLock, &Word, EXP_EXCLUSIVE), 0)) {
        ExpAwaitSpinLockExclusive(Thread, SpinLock, Word);
    }
    KiNoteAcquiredAt(Thread, (PVOID)SpinLock, KiHoldExclusive, KiOrderSharedSpinLock, Site);
}

FORCEINLINE VOID ExpReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock)
{
    /* release: pairs with ExpChangeSpinLock */
    __atomic_fetch_sub(SpinLock, 1, __ATOMIC_RELEASE);
}

FORCEINLINE VOID ExpReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
    /* release: pairs with ExpChangeSpinLock */
    __atomic_fetch_and(SpinLock, ~EXP_EXCLUSIVE, __ATOMIC_RELEASE);
}

KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    ExpAcquireSpinLockShared(Thread, SpinLock, __builtin_return_address(0));
    return OldIrql;
}

KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    ExpAcquireSpinLockExclusive(Thread, SpinLock, __builtin_return_address(0));
    return OldIrql;
}

/* Already at DISPATCH_LEVEL. Without the verifier the thread matters only if it has to wait, so the common paths do not look
   it up. */

static DECLSPEC_NOINLINE VOID ExpAcquireSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock, PVOID Site)
{
    ExpAcquireSpinLockShared(KiCurrentThread(), SpinLock, Site);
}

static DECLSPEC_NOINLINE VOID ExpAcquireExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock, PVOID Site)
{
    ExpAcquireSpinLockExclusive(KiCurrentThread(), SpinLock, Site);
}

static DECLSPEC_NOINLINE VOID ExpVerifyReleaseFromDpcLevel(PEX_SPIN_LOCK SpinLock, KI_HOLD Hold)
{
    KiVerifyRelease(KiCurrentThread(), (PVOID)SpinLock, Hold);
}

VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    LONG Word = 0;
    if (__builtin_expect(KiVerifierEnabled || !ExpTryAcquireSpinLockShared(SpinLock, &Word), FALSE)) {
        ExpAcquireSharedAtDpcLevel(SpinLock, __builtin_return_address(0));
    }
}

VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    LONG Word = 0;
    if (__builtin_expect(KiVerifierEnabled || !ExpChangeSpinLock(SpinLock, &Word, EXP_EXCLUSIVE), FALSE)) {
        ExpAcquireExclusiveAtDpcLevel(SpinLock, __builtin_return_address(0));
    }
}

LOGICAL ExTryAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 0;
    KiVerifyAtDispatchLevel(Thread);
    if (!ExpTryAcquireSpinLockShared(SpinLock, &Word)) {
        return FALSE;
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldShared, KiOrderSharedSpinLock);
    return TRUE;
}

LOGICAL ExTryAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 0;
    KiVerifyAtDispatchLevel(Thread);
    if (!ExpChangeSpinLock(SpinLock, &Word, EXP_EXCLUSIVE)) {
        return FALSE;
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldExclusive, KiOrderSharedSpinLock);
    return TRUE;
}

LOGICAL ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Word = 1;
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldShared);
    while ((Word & ~EXP_WRITER_WAITS) == 1) {
        if (ExpChangeSpinLock(SpinLock, &Word, EXP_EXCLUSIVE | (Word & EXP_WRITER_WAITS))) {
            KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldExclusive, KiOrderSharedSpinLock);
            return TRUE;
        }
    }
    KiNoteAcquired(Thread, (PVOID)SpinLock, KiHoldShared, KiOrderSharedSpinLock);
    return FALSE;
}

VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldShared);
    ExpReleaseSpinLockShared(SpinLock);
    KiLowerIrql(Thread, OldIrql);
}

VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyRelease(Thread, (PVOID)SpinLock, KiHoldExclusive);
    ExpReleaseSpinLockExclusive(SpinLock);
    KiLowerIrql(Thread, OldIrql);
}

VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyReleaseFromDpcLevel(SpinLock, KiHoldShared);
    }
    ExpReleaseSpinLockShared(SpinLock);
}

VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyReleaseFromDpcLevel(SpinLock, KiHoldExclusive);
    }
    ExpReleaseSpinLockExclusive(SpinLock);
}
