/* pushlock.h: pushlocks. Part of ex.h, which includes it. The theory of the word is in src/ex/pushlockcore.c. */
#ifndef INTERLOCK_PUSHLOCK_PUBLIC_H
#define INTERLOCK_PUSHLOCK_PUBLIC_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

typedef ULONG_PTR EX_PUSH_LOCK, *PEX_PUSH_LOCK;

#define EX_PUSH_LOCK_LOCK ((ULONG_PTR)0x1)
#define EX_PUSH_LOCK_WAITING ((ULONG_PTR)0x2)
#define EX_PUSH_LOCK_WAKING ((ULONG_PTR)0x4)
#define EX_PUSH_LOCK_MULTIPLE_SHARED ((ULONG_PTR)0x8)
#define EX_PUSH_LOCK_SHARE_INC ((ULONG_PTR)0x10)

#define EX_DEFAULT_PUSH_LOCK_FLAGS 0
#define EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST 1

/* The contended paths. */
NTKERNELAPI VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock);

NTKERNELAPI BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock);

/* Guesses the common value instead of reading it first: a read would have to wait for the last store to the line. */
FORCEINLINE BOOLEAN ExpPushLockChange(PEX_PUSH_LOCK PushLock, ULONG_PTR From, ULONG_PTR To)
{
    return __atomic_compare_exchange_n(PushLock, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

FORCEINLINE VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock)
{
    *PushLock = 0;
}

FORCEINLINE VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK)) {
        ExfAcquirePushLockExclusiveEx(PushLock, Flags);
    }
}

FORCEINLINE VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC)) {
        ExfAcquirePushLockSharedEx(PushLock, Flags);
    }
}

FORCEINLINE BOOLEAN ExTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK);
}

FORCEINLINE BOOLEAN ExTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC) ||
           ExfTryAcquirePushLockShared(PushLock);
}

FORCEINLINE VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLockExclusive(PushLock);
    }
}

FORCEINLINE VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC, 0)) {
        ExfReleasePushLockShared(PushLock);
    }
}

FORCEINLINE VOID ExReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    (void)Flags;
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLock(PushLock);
    }
}

#define ExAcquirePushLockExclusive(PushLock) ExAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquirePushLockShared(PushLock) ExAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockExclusive(PushLock) ExTryAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockShared(PushLock) ExTryAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockExclusive(PushLock) ExReleasePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockShared(PushLock) ExReleasePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLock(PushLock) ExReleasePushLockEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)

INTERLOCK_END

#endif
