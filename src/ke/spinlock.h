/*
 * spinlock.h: the spinlock. The word is 0 while the lock is free and 1 while it is held. With the verifier on it is the
 * address of the owner's KTHREAD plus 1: then a recursive acquire and a release by another thread are detected.
 *
 * The owner of a spinlock owns a processor, but the host may preempt it at any time. So a long spin yields, and finally
 * naps (KiParkForSpinLock), as NT notifies a hypervisor of a long spin.
 */
#ifndef INTERLOCK_SPINLOCK_H
#define INTERLOCK_SPINLOCK_H

#include "irql.h"

#define KI_SPIN_LOCK_HELD ((KSPIN_LOCK)1)

VOID KiAcquireSpinLockSlow(PKTHREAD Thread, PKSPIN_LOCK SpinLock);
VOID KiVerifySpinLockOwned(PKTHREAD Thread, PKSPIN_LOCK SpinLock);
VOID KiAcquireVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site);
BOOLEAN KiTryVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site);

/* The numbered queued spinlocks (spinlock.c), at the start and in a forked child. */
VOID KiInitializeLockQueues(PKPRCB Prcb);
VOID KiResetLockQueues(PKTHREAD Survivor);
VOID KiReleaseNumberedLocks(PKTHREAD Thread); /* those that its processor owns; at DISPATCH_LEVEL */

FORCEINLINE VOID KiRequireDispatchLevel(PKTHREAD Thread)
{
    if (__builtin_expect(Thread->Irql < DISPATCH_LEVEL, FALSE)) {
        KeBugCheckEx(IRQL_NOT_GREATER_OR_EQUAL, Thread->Irql, DISPATCH_LEVEL, 0, 0);
    }
}

FORCEINLINE VOID KiVerifyAtDispatchLevel(PKTHREAD Thread)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiRequireDispatchLevel(Thread);
    }
}

FORCEINLINE PKTHREAD KiSpinLockOwner(KSPIN_LOCK Word)
{
    return (PKTHREAD)(Word & ~KI_SPIN_LOCK_HELD);
}

FORCEINLINE BOOLEAN KiTakeSpinLock(PKSPIN_LOCK SpinLock, KSPIN_LOCK Held)
{
    KSPIN_LOCK Free = 0;
    /* acquire: pairs with the release in KiReleaseSpinLock */
    return __atomic_compare_exchange_n(SpinLock, &Free, Held, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* For slow paths: bypasses the verifier. */
FORCEINLINE BOOLEAN KiTakeSpinLockFor(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    return KiTakeSpinLock(SpinLock, KiVerifierEnabled ? (KSPIN_LOCK)Thread | KI_SPIN_LOCK_HELD : KI_SPIN_LOCK_HELD);
}

FORCEINLINE BOOLEAN KiTrySpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        return KiTryVerifiedSpinLock(Thread, SpinLock, __builtin_return_address(0));
    }
    return KiTakeSpinLock(SpinLock, KI_SPIN_LOCK_HELD);
}

FORCEINLINE VOID KiAcquireSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAcquireVerifiedSpinLock(Thread, SpinLock, __builtin_return_address(0));
        return;
    }
    if (HAL_SIMULATED && HalSimulateAcquire(SpinLock, sizeof(*SpinLock), KI_SPIN_LOCK_HELD) != 0) {
        return;
    }
    if (__builtin_expect(!KiTakeSpinLock(SpinLock, KI_SPIN_LOCK_HELD), 0)) {
        KiAcquireSpinLockSlow(Thread, SpinLock);
    }
}

FORCEINLINE VOID KiReleaseSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiVerifySpinLockOwned(Thread, SpinLock);
    }
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
}

#endif
