/*
 * srwlock.c: slim reader/writer locks: the pushlock algorithm (ex/pushlock.c) over alerts by thread id.
 *
 * Only the waker of a sleeper alerts it, and only once, so every alert is consumed by the sleep that it is for. Woken
 * distinguishes it from a stray alert. The waker's store to it is its last access to the block.
 */
#include <interlock/rtl.h>

#include "../ex/pushlock.h"
#include "../ke/lockorder.h"
#include "../trace/trace.h"

static VOID RtlpPrepareAlerted(PEXP_WAIT_BLOCK Block)
{
    Block->Thread = KiCurrentThread();
    Block->Woken = FALSE;
}

static VOID RtlpSleepUntilAlerted(PEXP_WAIT_BLOCK Block, volatile ULONG_PTR *Lock)
{
    do {
        KiWaitForAlertById((PVOID)Lock, NULL, FALSE);
        /* acquire: pairs with the store in RtlpWakeByAlert */
    } while (!__atomic_load_n(&Block->Woken, __ATOMIC_ACQUIRE));
    Block->Woken = FALSE;
}

static VOID RtlpWakeByAlert(PEXP_WAIT_BLOCK Block)
{
    PKTHREAD Thread = Block->Thread;
    /* release: pairs with the load in RtlpSleepUntilAlerted; the block may be invalid afterwards */
    __atomic_store_n(&Block->Woken, TRUE, __ATOMIC_RELEASE);
    KeAlertThreadById(Thread);
}

static VOID RtlpRaiseNotOwned(volatile ULONG_PTR *Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    RtlRaiseStatus(STATUS_RESOURCE_NOT_OWNED);
}

static const EXP_PUSH_LOCK_METHODS RtlpSRWLockMethods = {
    .Prepare = RtlpPrepareAlerted,
    .Sleep = RtlpSleepUntilAlerted,
    .Wake = RtlpWakeByAlert,
    .NotOwned = RtlpRaiseNotOwned,
    .Kind = KiLockSRWLock,
};

static volatile ULONG_PTR *RtlpWordOf(PRTL_SRWLOCK SRWLock)
{
    return (volatile ULONG_PTR *)SRWLock;
}

VOID RtlpAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock)
{
    ExpAcquirePushLockExclusive(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

VOID RtlpAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    ExpAcquirePushLockShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

BOOLEAN RtlpTryAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock)
{
    return ExpTryAcquirePushLockExclusive(RtlpWordOf(SRWLock));
}

BOOLEAN RtlpTryAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    return ExpTryAcquirePushLockShared(RtlpWordOf(SRWLock));
}

VOID RtlpReleaseSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock)
{
    ExpReleasePushLockExclusive(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

VOID RtlpReleaseSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    ExpReleasePushLockShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

/* Lock order, of programs built with DBG. */

static DECLSPEC_NOINLINE BOOLEAN RtlpWatchAcquire(PRTL_SRWLOCK SRWLock, BOOLEAN Exclusive, BOOLEAN Waits, PVOID Site)
{
    KI_ORDER_MODE Mode = Exclusive ? KiOrderExclusive : KiOrderShared;
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Acquired = TRUE;
    if (KiVerifierEnabled && Waits) {
        KiOrderCheck(Thread, SRWLock, KiOrderSRWLock, Mode);
    }
    if (!Waits) {
        Acquired = Exclusive ? RtlpTryAcquireSRWLockExclusive(SRWLock) : RtlpTryAcquireSRWLockShared(SRWLock);
    } else if (Exclusive) {
        RtlpAcquireSRWLockExclusive(SRWLock);
    } else {
        RtlpAcquireSRWLockShared(SRWLock);
    }
    if (KiVerifierEnabled && Acquired) {
        KiOrderHold(Thread, SRWLock, KiOrderSRWLock, Mode, Site);
    }
    return Acquired;
}

static VOID RtlpWatchRelease(PRTL_SRWLOCK SRWLock, BOOLEAN Exclusive)
{
    if (KiVerifierEnabled) {
        KiOrderRelease(KiCurrentThread(), SRWLock);
    }
    if (Exclusive) {
        RtlpReleaseSRWLockExclusive(SRWLock);
    } else {
        RtlpReleaseSRWLockShared(SRWLock);
    }
}

BOOLEAN RtlpWatchSRWLock(PRTL_SRWLOCK SRWLock, RTLP_SRWLOCK_CALL Call)
{
    BOOLEAN Exclusive = Call == RtlpSRWLockAcquireExclusive || Call == RtlpSRWLockTryExclusive ||
                        Call == RtlpSRWLockReleaseExclusive;
    switch (Call) {
    case RtlpSRWLockInitialized:
        if (KiVerifierEnabled) {
            KiOrderInitialize(SRWLock, KiOrderSRWLock);
        }
        return TRUE;
    case RtlpSRWLockReleaseExclusive:
    case RtlpSRWLockReleaseShared:
        RtlpWatchRelease(SRWLock, Exclusive);
        return TRUE;
    default:
        return RtlpWatchAcquire(SRWLock, Exclusive,
                                Call == RtlpSRWLockAcquireExclusive || Call == RtlpSRWLockAcquireShared,
                                __builtin_return_address(0));
    }
}

BOOLEAN RtlConvertSRWLockSharedToExclusive(PRTL_SRWLOCK SRWLock)
{
    BOOLEAN Converted = ExpTryConvertPushLockToExclusive(RtlpWordOf(SRWLock));
    if (Converted && KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), SRWLock, KiOrderExclusive);
    }
    return Converted;
}

VOID RtlConvertSRWLockExclusiveToShared(PRTL_SRWLOCK SRWLock)
{
    ExpConvertPushLockToShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
    if (KiVerifierEnabled) {
        KiOrderConvert(KiCurrentThread(), SRWLock, KiOrderShared);
    }
}

/* External definitions of the header's inline functions. */
extern BOOLEAN RtlpChangeSRWLock(PRTL_SRWLOCK SRWLock, ULONG_PTR From, ULONG_PTR To);
extern VOID RtlpInitializeSRWLock(PRTL_SRWLOCK SRWLock);
extern VOID RtlpAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlpAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlpTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlpTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern VOID RtlpReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlpReleaseSRWLockShared(PRTL_SRWLOCK SRWLock);
extern VOID RtlInitializeSRWLock(PRTL_SRWLOCK SRWLock);
extern VOID RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern VOID RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlReleaseSRWLockShared(PRTL_SRWLOCK SRWLock);
