/* spinlock.c: spinlocks, and the locks of the kernel's own. Theory in spinlock.h. */
#include "lockorder.h"
#include "park.h"
#include "spinlock.h"

#include "../trace/trace.h"

static inline BOOLEAN KiTryFreeLock(PVOID Lock)
{
    /* relaxed: a check before the compare-exchange, which has the acquire */
    return __atomic_load_n((PKI_LOCK)Lock, __ATOMIC_RELAXED) == 0 && KiTryAcquireLock(Lock);
}

DECLSPEC_NOINLINE VOID KiAcquireLockSlow(PKI_LOCK Lock)
{
    KiParkUntil(KiCurrentThread(), KiParkForSpinLock, KiTryFreeLock, (PVOID)Lock);
}

static inline BOOLEAN KiTryFreeSpinLock(PVOID SpinLock)
{
    PKTHREAD Thread = HalCurrentThread;
    /* relaxed: a check before the compare-exchange, which has the acquire */
    KSPIN_LOCK Word = __atomic_load_n((PKSPIN_LOCK)SpinLock, __ATOMIC_RELAXED);
    if (KiVerifierEnabled && KiSpinLockOwner(Word) == Thread) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)SpinLock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
    }
    return Word == 0 && KiTakeSpinLockFor(Thread, SpinLock);
}

DECLSPEC_NOINLINE VOID KiAcquireSpinLockSlow(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    KTRACE_CONTENTION_BEGIN(SpinLock, KiLockSpinLock, TRUE, 0);
    KiParkUntil(Thread, KiParkForSpinLock, KiTryFreeSpinLock, (PVOID)SpinLock);
    KTRACE_CONTENTION_END(SpinLock, KiLockSpinLock, TRUE);
}

DECLSPEC_NOINLINE VOID KiAcquireVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site)
{
    KiOrderCheck(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive);
    if (!KiTakeSpinLockFor(Thread, SpinLock)) {
        KiAcquireSpinLockSlow(Thread, SpinLock);
    }
    KiOrderHold(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive, Site);
}

DECLSPEC_NOINLINE BOOLEAN KiTryVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site)
{
    if (!KiTakeSpinLockFor(Thread, SpinLock)) {
        return FALSE;
    }
    KiOrderHold(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive, Site);
    return TRUE;
}

DECLSPEC_NOINLINE VOID KiVerifySpinLockOwned(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    KSPIN_LOCK Word = __atomic_load_n(SpinLock, __ATOMIC_RELAXED);
    /* KI_SPIN_LOCK_HELD alone: acquired before the verifier was on */
    if (KiSpinLockOwner(Word) != Thread && Word != KI_SPIN_LOCK_HELD) {
        KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)SpinLock, (ULONG_PTR)Thread, (ULONG_PTR)KiSpinLockOwner(Word), 0);
    }
    KiOrderRelease(Thread, SpinLock);
}

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock)
{
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELAXED);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiOrderInitialize(SpinLock, KiOrderSpinLock);
    }
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    KiAcquireSpinLock(Thread, SpinLock);
    return OldIrql;
}

KIRQL KeAcquireSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, SYNCH_LEVEL);
    KiAcquireSpinLock(Thread, SpinLock);
    return OldIrql;
}

/* Already at DISPATCH_LEVEL. Without the verifier the thread matters only if it has to wait, so the common path does
   not look it up. */

static DECLSPEC_NOINLINE VOID KiAcquireContendedAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    KiAcquireSpinLockSlow(KiCurrentThread(), SpinLock);
}

static DECLSPEC_NOINLINE VOID KiAcquireVerifiedAtDpcLevel(PKSPIN_LOCK SpinLock, PVOID Site)
{
    PKTHREAD Thread = KiCurrentThread();
    KiRequireDispatchLevel(Thread);
    KiAcquireVerifiedSpinLock(Thread, SpinLock, Site);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAcquireVerifiedAtDpcLevel(SpinLock, __builtin_return_address(0));
    } else if (__builtin_expect(!KiTakeSpinLock(SpinLock, KI_SPIN_LOCK_HELD), FALSE)) {
        KiAcquireContendedAtDpcLevel(SpinLock);
    }
}

BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAtDispatchLevel(Thread);
    return KiTrySpinLock(Thread, SpinLock);
}

static DECLSPEC_NOINLINE VOID KiReleaseVerifiedSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAtDispatchLevel(Thread);
    KiReleaseSpinLock(Thread, SpinLock);
    KiLowerIrql(Thread, NewIrql);
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL || KiVerifierEnabled, FALSE)) {
        KiReleaseVerifiedSpinLock(SpinLock, NewIrql);
        return;
    }
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
    KiLowerIrql(Thread, NewIrql);
}

static DECLSPEC_NOINLINE VOID KiReleaseVerifiedFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiRequireDispatchLevel(Thread);
    KiReleaseSpinLock(Thread, SpinLock);
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiReleaseVerifiedFromDpcLevel(SpinLock);
    } else {
        __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
    }
}

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
    /* relaxed: advisory only */
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED) == 0;
}
