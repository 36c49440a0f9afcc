/*
 * cacheawarepushlock.c: a pushlock for each processor, each on a cache line of its own.
 *
 * 1. A sharer takes the pushlock of the processor it runs on. It may move while it holds it: the release is told which.
 * 2. An exclusive owner takes all of them, in one order, so two of them cannot wait for each other.
 * 3. There are no more pushlocks than processors, nor than EX_PUSH_LOCK_FANNED_COUNT. Every entry of Locks points to
 *    one, so that a processor finds its own by the low bits of its number.
 */
#include "exp.h"

#include "pushlock.h"

#define EXP_FANNED_TAG 0x6c506143u /* "CaPl" */

typedef struct _EXP_PADDED_PUSH_LOCK {
    EX_PUSH_LOCK Lock DECLSPEC_CACHEALIGN;
} EXP_PADDED_PUSH_LOCK;

typedef struct _EXP_FANNED_PUSH_LOCK {
    EX_CACHE_AWARE_PUSH_LOCK Public;
    EXP_PADDED_PUSH_LOCK Padded[];
} EXP_FANNED_PUSH_LOCK;

static ULONG ExpFannedCount(VOID)
{
    return KeNumberProcessors < EX_PUSH_LOCK_FANNED_COUNT ? KeNumberProcessors : EX_PUSH_LOCK_FANNED_COUNT;
}

PEX_CACHE_AWARE_PUSH_LOCK ExAllocateCacheAwarePushLock(VOID)
{
    ULONG Count = ExpFannedCount();
    EXP_FANNED_PUSH_LOCK *Fanned =
        ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_CACHE_ALIGNED,
                        sizeof(EXP_FANNED_PUSH_LOCK) + Count * sizeof(EXP_PADDED_PUSH_LOCK), EXP_FANNED_TAG);
    if (Fanned == NULL) {
        return NULL;
    }
    for (ULONG Slot = 0; Slot < EX_PUSH_LOCK_FANNED_COUNT; Slot++) {
        Fanned->Public.Locks[Slot] = &Fanned->Padded[Slot % Count].Lock;
    }
    return &Fanned->Public;
}

VOID ExFreeCacheAwarePushLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock)
{
    ExFreePoolWithTag(PushLock, EXP_FANNED_TAG);
}

VOID ExAcquireCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ULONG Count = ExpFannedCount();
    ExpVerifyAcquire(PushLock->Locks[0], Flags);
    for (ULONG Slot = 0; Slot < Count; Slot++) {
        ExAcquirePushLockExclusiveEx(PushLock->Locks[Slot], Flags);
    }
}

VOID ExReleaseCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock->Locks[0], Flags);
    for (ULONG Slot = ExpFannedCount(); Slot != 0; Slot--) {
        ExReleasePushLockExclusiveEx(PushLock->Locks[Slot - 1], Flags);
    }
}

PEX_PUSH_LOCK ExAcquireCacheAwarePushLockSharedEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    PEX_PUSH_LOCK Held = PushLock->Locks[HalDispatch.CurrentProcessor() % EX_PUSH_LOCK_FANNED_COUNT];
    ExpVerifyAcquire(Held, Flags);
    ExAcquirePushLockSharedEx(Held, Flags);
    return Held;
}

VOID ExReleaseCacheAwarePushLockSharedEx(PEX_PUSH_LOCK Held, ULONG Flags)
{
    ExpVerifyRelease(Held, Flags);
    ExReleasePushLockSharedEx(Held, Flags);
}
