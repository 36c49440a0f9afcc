/*
 * pushlock.c: the pushlocks of the kernel: the algorithm of pushlockcore.c over events, with AutoBoost.
 *
 * AutoBoost: a sleeper that is given a lock runs at least at the priority of the one who gives it, and a little above
 * its own, so that it can let in those who wait behind it. It belongs to the acquire, not to the release: a thread that
 * asked for the lock without it is woken without it. A thread's AutoBoostCount counts the boosts it got.
 */
#include "pushlock.h"

#define EXP_PUSH_LOCK_FLAGS EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST

/* What the first parameter of DRIVER_VERIFIER_DETECTED_VIOLATION says. */
#define EXP_ACQUIRED_WITH_APCS 0xea
#define EXP_RELEASED_WITH_APCS 0xeb

static VOID ExpPrepareBoosted(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    Block->AutoBoost = TRUE;
    KeInitializeEvent(&Block->WakeEvent, SynchronizationEvent, FALSE);
}

static VOID ExpPrepareUnboosted(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    Block->AutoBoost = FALSE;
    KeInitializeEvent(&Block->WakeEvent, SynchronizationEvent, FALSE);
}

static VOID ExpSleepOnEvent(PEX_PUSH_LOCK_WAIT_BLOCK Block, volatile ULONG_PTR *Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Previous = KiNoteLockWaitedFor(Thread, (PVOID)Lock);
    KeWaitForSingleObject(&Block->WakeEvent, WrPushLock, KernelMode, FALSE, NULL);
    KiNoteLockWaitedFor(Thread, Previous);
    if (Block->AutoBoost) {
        Thread->AutoBoostCount += 1;
    }
}

static VOID ExpWakeByEvent(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    if (Block->AutoBoost) {
        KeSetEventBoostPriority(&Block->WakeEvent, NULL);
    } else {
        KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);
    }
}

static VOID ExpBugcheckNotOwned(volatile ULONG_PTR *Lock)
{
    KeBugCheckEx(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, (ULONG_PTR)KiCurrentThread(), (ULONG_PTR)Lock, 0, 0);
}

static const EXP_PUSH_LOCK_METHODS ExpBoostedMethods = {
    .Prepare = ExpPrepareBoosted,
    .Sleep = ExpSleepOnEvent,
    .Wake = ExpWakeByEvent,
    .NotOwned = ExpBugcheckNotOwned,
};

const EXP_PUSH_LOCK_METHODS ExpPushLockMethods = {
    .Prepare = ExpPrepareUnboosted,
    .Sleep = ExpSleepOnEvent,
    .Wake = ExpWakeByEvent,
    .NotOwned = ExpBugcheckNotOwned,
};

const EXP_PUSH_LOCK_METHODS *ExpMethodsFor(ULONG Flags)
{
    return Flags & EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST ? &ExpPushLockMethods : &ExpBoostedMethods;
}

/* With the verifier on. */

VOID ExpCheckFlags(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (Flags & ~(ULONG)EXP_PUSH_LOCK_FLAGS) {
        KeBugCheckEx(INVALID_PUSH_LOCK_FLAGS, Flags, (ULONG_PTR)PushLock, 0, 0);
    }
}

static VOID ExpCheckCall(PEX_PUSH_LOCK PushLock, ULONG Flags, ULONG_PTR Violation)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFlags(PushLock, Flags);
    if (Thread->Irql > APC_LEVEL) {
        KeBugCheckEx(KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, (ULONG_PTR)Thread, (ULONG_PTR)PushLock,
                     Thread->Irql, 0);
    }
    if (Thread->Irql < APC_LEVEL && !KeAreApcsDisabled()) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Violation, Thread->Irql, (ULONG_PTR)Thread->KernelApcDisable,
                     (ULONG_PTR)PushLock);
    }
}

VOID ExpCheckAcquire(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpCheckCall(PushLock, Flags, EXP_ACQUIRED_WITH_APCS);
}

VOID ExpCheckRelease(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpCheckCall(PushLock, Flags, EXP_RELEASED_WITH_APCS);
}

VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock, Flags);
    ExpAcquireExclusive(PushLock, ExpMethodsFor(Flags));
}

VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock, Flags);
    ExpAcquireShared(PushLock, ExpMethodsFor(Flags));
}

BOOLEAN ExfTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock, Flags);
    return ExpTryAcquireExclusive(PushLock);
}

BOOLEAN ExfTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock, Flags);
    return ExpTryAcquireShared(PushLock);
}

VOID ExfReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpRelease(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpReleaseExclusive(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock, Flags);
    ExpReleaseShared(PushLock, &ExpPushLockMethods);
}

VOID ExfAcquirePushLockExclusive(PEX_PUSH_LOCK PushLock)
{
    ExfAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfAcquirePushLockShared(PEX_PUSH_LOCK PushLock)
{
    ExfAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock)
{
    return ExfTryAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock)
{
    ExfReleasePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS);
}

BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock)
{
    return ExpTryConvertToExclusive(PushLock);
}

VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock)
{
    ExpConvertToShared(PushLock, &ExpPushLockMethods);
}
