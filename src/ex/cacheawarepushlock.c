/*
 * cacheawarepushlock.c: a pushlock for each processor, each on a cache line of its own.
 *
 * 1. A sharer takes the pushlock of the processor it runs on. It may move while it holds it: the release is told which.
 * 2. An exclusive owner takes all of them, in one order, so two of them cannot wait for each other. Turns (ke/turn.h) are
 *    counted at the first one only: a thread that gave its processor away at a later one would have the first in hand.
 * 3. There are as many pushlocks as processors: with fewer, sharers on different processors would meet. The public part
 *    has room for the first EX_PUSH_LOCK_FANNED_COUNT of them; where there are less it names them again and again.
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

static PEX_PUSH_LOCK ExpFannedLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Processor)
{
    return &CONTAINING_RECORD(PushLock, EXP_FANNED_PUSH_LOCK, Public)->Padded[Processor].Lock;
}

PEX_CACHE_AWARE_PUSH_LOCK ExAllocateCacheAwarePushLock(VOID)
{
    EXP_FANNED_PUSH_LOCK *Fanned =
        ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_CACHE_ALIGNED,
                        sizeof(EXP_FANNED_PUSH_LOCK) + KeNumberProcessors * sizeof(EXP_PADDED_PUSH_LOCK),
                        EXP_FANNED_TAG);
    if (Fanned == NULL) {
        return NULL;
    }
    for (ULONG Slot = 0; Slot < EX_PUSH_LOCK_FANNED_COUNT; Slot++) {
        Fanned->Public.Locks[Slot] = ExpFannedLock(&Fanned->Public, Slot % KeNumberProcessors);
    }
    return &Fanned->Public;
}

VOID ExFreeCacheAwarePushLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock)
{
    ExFreePoolWithTag(PushLock, EXP_FANNED_TAG);
}

VOID ExAcquireCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyAcquire(PushLock->Locks[0], Flags);
    ExAcquirePushLockExclusiveEx(ExpFannedLock(PushLock, 0), Flags);
    for (ULONG Processor = 1; Processor < KeNumberProcessors; Processor++) {
        ExpAcquireInner(ExpFannedLock(PushLock, Processor), Flags);
    }
}

VOID ExReleaseCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    ExpVerifyRelease(PushLock->Locks[0], Flags);
    for (ULONG Processor = KeNumberProcessors - 1; Processor != 0; Processor--) {
        ExpReleaseInner(ExpFannedLock(PushLock, Processor));
    }
    ExReleasePushLockExclusiveEx(ExpFannedLock(PushLock, 0), Flags);
}

PEX_PUSH_LOCK ExAcquireCacheAwarePushLockSharedEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags)
{
    PEX_PUSH_LOCK Held = ExpFannedLock(PushLock, KiHostProcessor(KeNumberProcessors));
    ExpVerifyAcquire(Held, Flags);
    ExAcquirePushLockSharedEx(Held, Flags);
    return Held;
}

VOID ExReleaseCacheAwarePushLockSharedEx(PEX_PUSH_LOCK Held, ULONG Flags)
{
    ExpVerifyRelease(Held, Flags);
    ExReleasePushLockSharedEx(Held, Flags);
}
