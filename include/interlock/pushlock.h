/* pushlock.h: pushlocks. Part of ex.h, which includes it. The theory of the word is in src/ex/pushlock.c. */
#ifndef INTERLOCK_PUSHLOCK_PUBLIC_H
#define INTERLOCK_PUSHLOCK_PUBLIC_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/*
 * Normal pushlocks; zeroed memory is a free one. To be used at IRQL <= APC_LEVEL with normal kernel APCs disabled. An
 * owner that asks again waits for itself; a sharer may be given the lock again only while nobody waits for it.
 */

typedef ULONG_PTR EX_PUSH_LOCK, *PEX_PUSH_LOCK;

#define EX_PUSH_LOCK_LOCK ((ULONG_PTR)0x1)
#define EX_PUSH_LOCK_WAITING ((ULONG_PTR)0x2)
#define EX_PUSH_LOCK_WAKING ((ULONG_PTR)0x4)
#define EX_PUSH_LOCK_MULTIPLE_SHARED ((ULONG_PTR)0x8)
#define EX_PUSH_LOCK_SHARE_INC ((ULONG_PTR)0x10)

#define EX_DEFAULT_PUSH_LOCK_FLAGS 0
#define EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST 1

/* The contended paths, and every path of a program built with DBG: there the verifier looks at each call. */
NTKERNELAPI VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);

/* The same with EX_DEFAULT_PUSH_LOCK_FLAGS, by the names of before AutoBoost. */
NTKERNELAPI VOID ExfAcquirePushLockExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfAcquirePushLockShared(PEX_PUSH_LOCK PushLock);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock);

/* Neither blocks. To exclusive succeeds for an only sharer; to shared lets waiting sharers in. */
NTKERNELAPI BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock);

#if defined(INTERLOCK_DEBUG) || (defined(DBG) && DBG)
#define INTERLOCK_PUSH_LOCK_CHECKED TRUE
#else
#define INTERLOCK_PUSH_LOCK_CHECKED FALSE
#endif

/* Guesses the common value instead of reading it first: a read would have to wait for the last store to the line. */
FORCEINLINE BOOLEAN ExpPushLockChange(PEX_PUSH_LOCK PushLock, ULONG_PTR From, ULONG_PTR To)
{
    return !INTERLOCK_PUSH_LOCK_CHECKED &&
           __atomic_compare_exchange_n(PushLock, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
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
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK) || ExfTryAcquirePushLockExclusiveEx(PushLock, Flags);
}

FORCEINLINE BOOLEAN ExTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC) ||
           ExfTryAcquirePushLockSharedEx(PushLock, Flags);
}

FORCEINLINE VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLockExclusiveEx(PushLock, Flags);
    }
}

FORCEINLINE VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC, 0)) {
        ExfReleasePushLockSharedEx(PushLock, Flags);
    }
}

/* However it is held. */
FORCEINLINE VOID ExReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLockEx(PushLock, Flags);
    }
}

#define ExAcquirePushLockExclusive(PushLock) ExAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquirePushLockShared(PushLock) ExAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockExclusive(PushLock) ExTryAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockShared(PushLock) ExTryAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockExclusive(PushLock) ExReleasePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockShared(PushLock) ExReleasePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLock(PushLock) ExReleasePushLockEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)

/*
 * Cache-aware pushlocks: a pushlock for each processor, each on a cache line of its own; Locks are those of the first
 * ones. A sharer takes that of the processor it runs on and gets it as the handle of its release; an exclusive owner
 * takes all of them. NULL: there is no memory for one.
 */

#define EX_PUSH_LOCK_FANNED_COUNT 32

typedef struct _EX_CACHE_AWARE_PUSH_LOCK {
    PEX_PUSH_LOCK Locks[EX_PUSH_LOCK_FANNED_COUNT];
} EX_CACHE_AWARE_PUSH_LOCK, *PEX_CACHE_AWARE_PUSH_LOCK;

NTKERNELAPI PEX_CACHE_AWARE_PUSH_LOCK ExAllocateCacheAwarePushLock(VOID);
NTKERNELAPI VOID ExFreeCacheAwarePushLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExAcquireCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI PEX_PUSH_LOCK ExAcquireCacheAwarePushLockSharedEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseCacheAwarePushLockSharedEx(PEX_PUSH_LOCK Held, ULONG Flags);

#define ExAcquireCacheAwarePushLockExclusive(PushLock)                                                                 \
    ExAcquireCacheAwarePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleaseCacheAwarePushLockExclusive(PushLock)                                                                 \
    ExReleaseCacheAwarePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquireCacheAwarePushLockShared(PushLock)                                                                    \
    ExAcquireCacheAwarePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleaseCacheAwarePushLockShared(Held) ExReleaseCacheAwarePushLockSharedEx(Held, EX_DEFAULT_PUSH_LOCK_FLAGS)

/*
 * Auto-expand pushlocks: one word while sharers do not meet on it, then more and more words on cache lines of the
 * single processors. Sharers get what they hold as the handle of their release. The theory is in
 * src/ex/fannedpushlock.c.
 */

typedef struct _EX_PUSH_LOCK_AUTO_EXPAND {
    EX_PUSH_LOCK LocalLock;
    volatile ULONG State;
    volatile ULONG Stats;
} EX_PUSH_LOCK_AUTO_EXPAND, *PEX_PUSH_LOCK_AUTO_EXPAND;

/* Flags of ExAllocateAutoExpandPushLock. */
#define EX_PUSH_LOCK_AUTO_EXPAND_FLAG_PAGEABLE 1

NTKERNELAPI PEX_PUSH_LOCK_AUTO_EXPAND ExAllocateAutoExpandPushLock(ULONG Flags); /* NULL: there is no memory */
NTKERNELAPI VOID ExFreeAutoExpandPushLock(PEX_PUSH_LOCK_AUTO_EXPAND PushLock);
NTKERNELAPI VOID ExAcquireAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);
NTKERNELAPI PEX_PUSH_LOCK ExAcquireAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, PEX_PUSH_LOCK Held,
                                                   ULONG Flags);

/*
 * Address-based pushlocks: the word is the list of those who wait for a change. ExBlockOnAddressPushLock waits as long
 * as the Size bytes (1, 2, 4 or 8) at Address and at CompareAddress are the same; it may return early, so look again.
 * Who changes the value calls ExUnblockOnAddressPushLockEx afterwards, which wakes all who wait for that address; NULL
 * as Address wakes nobody.
 *
 * The same in single steps, for conditions of any kind: announce a block of your own, look at the condition, then
 * either wait for the announced block or take it back by ExUnblockPushLockEx. With NULL as WaitBlock that wakes
 * everybody.
 */

typedef struct _EX_PUSH_LOCK_WAIT_BLOCK {
    ULONG_PTR Reserved[8];
} DECLSPEC_ALIGN(16) EX_PUSH_LOCK_WAIT_BLOCK, *PEX_PUSH_LOCK_WAIT_BLOCK;

NTKERNELAPI NTSTATUS ExBlockOnAddressPushLock(PEX_PUSH_LOCK PushLock, PVOID Address, PVOID CompareAddress, SIZE_T Size,
                                              PLARGE_INTEGER Timeout);
NTKERNELAPI VOID ExUnblockOnAddressPushLockEx(PEX_PUSH_LOCK PushLock, PVOID Address, ULONG Flags);
NTKERNELAPI VOID ExBlockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock);
NTKERNELAPI NTSTATUS ExTimedWaitForUnblockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock,
                                                   PLARGE_INTEGER Timeout);
NTKERNELAPI VOID ExUnblockPushLockEx(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock, ULONG Flags);

#define ExUnblockOnAddressPushLock(PushLock, Address)                                                                  \
    ExUnblockOnAddressPushLockEx(PushLock, Address, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExUnblockPushLock(PushLock, WaitBlock) ExUnblockPushLockEx(PushLock, WaitBlock, EX_DEFAULT_PUSH_LOCK_FLAGS)

INTERLOCK_END

#endif
