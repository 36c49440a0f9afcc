/*
 * cacheawarerundown.c: rundown protection with a slot for each processor. The theory is in rundown.c.
 *
 * 1. Acquire and release read the head, which nobody writes, and change the slot of the processor they run on.
 * 2. They may run on different processors: slots count below zero, the sum is what counts.
 * 3. The slots are on lines of their own wherever the memory begins.
 * 4. An acquire that meets the beginning of a wait may still succeed through a slot that the waiter has not come to;
 *    the waiter then finds it there. To look at a common word as well would exclude that, and fail 1.
 */
#include "rundown.h"

typedef struct _EX_RUNDOWN_REF_CACHE_AWARE {
    PEX_RUNDOWN_REF First;
    ULONG Number;
} EX_RUNDOWN_REF_CACHE_AWARE;

static PEX_RUNDOWN_REF ExpCurrentRundownSlot(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    return ExpRundownSlot(RunRef->First, KiHostProcessor(RunRef->Number));
}

static VOID ExpSetRundownSlots(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG_PTR Value)
{
    for (ULONG Index = 0; Index < RunRef->Number; Index++) {
        ExpSetRundown(ExpRundownSlot(RunRef->First, Index), Value);
    }
}

/* One line for the head, which need not begin at a line, and one for each slot. */
SIZE_T ExSizeOfRundownProtectionCacheAware(VOID)
{
    return sizeof(EX_RUNDOWN_REF_CACHE_AWARE) + SYSTEM_CACHE_ALIGNMENT_SIZE +
           KeNumberProcessors * sizeof(EXP_RUNDOWN_SLOT);
}

VOID ExInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware, SIZE_T RunRefSize)
{
    ULONG_PTR End = (ULONG_PTR)RunRefCacheAware + RunRefSize;
    ULONG_PTR First = ALIGN_UP_BY((ULONG_PTR)(RunRefCacheAware + 1), SYSTEM_CACHE_ALIGNMENT_SIZE);
    ULONG_PTR Room = End > First ? (End - First) / sizeof(EXP_RUNDOWN_SLOT) : 0;
    if (Room == 0) {
        ExRaiseStatus(STATUS_INVALID_PARAMETER_2);
    }
    RunRefCacheAware->First = (PEX_RUNDOWN_REF)First;
    RunRefCacheAware->Number = Room < KeNumberProcessors ? (ULONG)Room : KeNumberProcessors;
    ExpSetRundownSlots(RunRefCacheAware, 0);
}

PEX_RUNDOWN_REF_CACHE_AWARE ExAllocateCacheAwareRundownProtection(POOL_TYPE PoolType, ULONG PoolTag)
{
    SIZE_T Size = ExSizeOfRundownProtectionCacheAware();
    PEX_RUNDOWN_REF_CACHE_AWARE RunRef = ExAllocatePoolWithTag(PoolType, Size, PoolTag);
    if (RunRef != NULL) {
        ExInitializeRundownProtectionCacheAware(RunRef, Size);
    }
    return RunRef;
}

VOID ExFreeCacheAwareRundownProtection(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExFreePool(RunRefCacheAware);
}

BOOLEAN ExAcquireRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    return ExpAcquireRundown(ExpCurrentRundownSlot(RunRefCacheAware), 1);
}

BOOLEAN ExAcquireRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware, ULONG Count)
{
    return ExpAcquireRundown(ExpCurrentRundownSlot(RunRefCacheAware), Count);
}

VOID ExReleaseRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count)
{
    ExpReleaseRundown(ExpCurrentRundownSlot(RunRef), RunRef->First, Count);
}

VOID ExReleaseRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExReleaseRundownProtectionCacheAwareEx(RunRefCacheAware, 1);
}

VOID ExWaitForRundownProtectionReleaseCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    ExpWaitForRundown(RunRef->First, RunRef->Number);
}

VOID ExReInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExpSetRundownSlots(RunRefCacheAware, 0);
}

VOID ExRundownCompletedCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware)
{
    ExpSetRundownSlots(RunRefCacheAware, EX_RUNDOWN_ACTIVE);
}
