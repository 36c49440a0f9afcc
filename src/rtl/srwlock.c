/*
 * srwlock.c: slim reader/writer locks: the algorithm of ex/pushlockcore.c over alerts by thread id.
 *
 * A sleeper is alerted by who wakes it, and only then, so every alert is taken by the sleep it is meant for. Woken
 * tells it from a stray one, and is the last touch of the waker.
 */
#include <interlock/rtl.h>

#include "../ex/pushlock.h"
#include "../trace/trace.h"

static VOID RtlpPrepareAlerted(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    Block->Thread = KiCurrentThread();
    Block->Woken = FALSE;
}

static VOID RtlpSleepUntilAlerted(PEX_PUSH_LOCK_WAIT_BLOCK Block, volatile ULONG_PTR *Lock)
{
    do {
        KeWaitForAlertByThreadId((PVOID)Lock, NULL);
        /* acquire: pairs with the store in RtlpWakeByAlert */
    } while (!__atomic_load_n(&Block->Woken, __ATOMIC_ACQUIRE));
    Block->Woken = FALSE;
}

static VOID RtlpWakeByAlert(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    PKTHREAD Thread = Block->Thread;
    /* release: pairs with the load in RtlpSleepUntilAlerted; the block may be gone afterwards */
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
    ExpAcquireExclusive(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

VOID RtlpAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    ExpAcquireShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

BOOLEAN RtlpTryAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock)
{
    return ExpTryAcquireExclusive(RtlpWordOf(SRWLock));
}

BOOLEAN RtlpTryAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    return ExpTryAcquireShared(RtlpWordOf(SRWLock));
}

VOID RtlpReleaseSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock)
{
    ExpReleaseExclusive(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

VOID RtlpReleaseSRWLockSharedContended(PRTL_SRWLOCK SRWLock)
{
    ExpReleaseShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

BOOLEAN RtlConvertSRWLockSharedToExclusive(PRTL_SRWLOCK SRWLock)
{
    return ExpTryConvertToExclusive(RtlpWordOf(SRWLock));
}

VOID RtlConvertSRWLockExclusiveToShared(PRTL_SRWLOCK SRWLock)
{
    ExpConvertToShared(RtlpWordOf(SRWLock), &RtlpSRWLockMethods);
}

/* The inline functions of the header get their external definitions here. */
extern BOOLEAN RtlpChangeSRWLock(PRTL_SRWLOCK SRWLock, ULONG_PTR From, ULONG_PTR To);
extern VOID RtlInitializeSRWLock(PRTL_SRWLOCK SRWLock);
extern VOID RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern BOOLEAN RtlTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock);
extern VOID RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock);
extern VOID RtlReleaseSRWLockShared(PRTL_SRWLOCK SRWLock);
