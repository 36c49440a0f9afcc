/* pushlock.c: the pushlocks of the kernel: the algorithm of pushlockcore.c over events, with AutoBoost. */
#include "pushlock.h"

static VOID ExpPrepareEvent(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    KeInitializeEvent(&Block->WakeEvent, SynchronizationEvent, FALSE);
}

static VOID ExpSleepOnEvent(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    KeWaitForSingleObject(&Block->WakeEvent, WrPushLock, KernelMode, FALSE, NULL);
}

static VOID ExpWakeByEvent(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);
}

/* AutoBoost: whoever gets a lock that others wait for is to run before them, so it can let them in. */
static VOID ExpWakeByEventAndBoost(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    KeSetEventBoostPriority(&Block->WakeEvent, NULL);
}

static VOID ExpBugcheckNotOwned(volatile ULONG_PTR *Lock)
{
    KeBugCheckEx(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, (ULONG_PTR)KiCurrentThread(), (ULONG_PTR)Lock,
                 __atomic_load_n(Lock, __ATOMIC_RELAXED), 0);
}

static const EXP_PUSH_LOCK_METHODS ExpPushLockMethods = {
    .Prepare = ExpPrepareEvent,
    .Sleep = ExpSleepOnEvent,
    .Wake = ExpWakeByEventAndBoost,
    .NotOwned = ExpBugcheckNotOwned,
};

static const EXP_PUSH_LOCK_METHODS ExpPlainPushLockMethods = {
    .Prepare = ExpPrepareEvent,
    .Sleep = ExpSleepOnEvent,
    .Wake = ExpWakeByEvent,
    .NotOwned = ExpBugcheckNotOwned,
};

static const EXP_PUSH_LOCK_METHODS *ExpMethodsFor(ULONG Flags)
{
    return (Flags & EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST) ? &ExpPlainPushLockMethods : &ExpPushLockMethods;
}

VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpAcquireExclusive(PushLock, ExpMethodsFor(Flags));
}

VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpAcquireShared(PushLock, ExpMethodsFor(Flags));
}

BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock)
{
    return ExpTryAcquireShared(PushLock);
}

VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock)
{
    ExpRelease(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock)
{
    ExpReleaseExclusive(PushLock, &ExpPushLockMethods);
}

VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock)
{
    ExpReleaseShared(PushLock, &ExpPushLockMethods);
}

BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock)
{
    return ExpTryConvertToExclusive(PushLock);
}

VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock)
{
    ExpConvertToShared(PushLock, &ExpPushLockMethods);
}
