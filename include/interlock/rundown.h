/* rundown.h: rundown protection. Part of ex.h, which includes it. The theory of the word is in src/ex/rundown.c. */
#ifndef INTERLOCK_RUNDOWN_PUBLIC_H
#define INTERLOCK_RUNDOWN_PUBLIC_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/*
 * Keeps an object while it is in use; zeroed memory is a reference that nobody holds. An acquire succeeds until the
 * wait for the release of the protection begins, and never again until the reference is reinitialised. The wait returns
 * when the last holder is out, and then the memory of the reference may go. Several threads may wait: then it may go
 * when all of them have returned. Waiting for a reference that has been run down returns at once. Releasing what nobody
 * holds is a fast fail, FAST_FAIL_INVALID_REFERENCE_COUNT.
 */

typedef struct _EX_RUNDOWN_REF {
    __extension__ union {
        volatile ULONG_PTR Count;
        volatile PVOID Ptr;
    };
} EX_RUNDOWN_REF, *PEX_RUNDOWN_REF;

C_ASSERT(sizeof(EX_RUNDOWN_REF) == 8);

#define EX_RUNDOWN_ACTIVE 0x1
#define EX_RUNDOWN_COUNT_SHIFT 0x1
#define EX_RUNDOWN_COUNT_INC (1 << EX_RUNDOWN_COUNT_SHIFT)

NTKERNELAPI BOOLEAN ExfAcquireRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExfReleaseRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExfWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef);

NTKERNELAPI VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
NTKERNELAPI VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);

/* Guesses the common value instead of reading it first: a read would have to wait for the last store to the line. */
FORCEINLINE BOOLEAN ExpRundownChange(PEX_RUNDOWN_REF RunRef, ULONG_PTR From, ULONG_PTR To)
{
    return __atomic_compare_exchange_n(&RunRef->Count, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

FORCEINLINE BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    return ExpRundownChange(RunRef, 0, EX_RUNDOWN_COUNT_INC) || ExfAcquireRundownProtection(RunRef);
}

FORCEINLINE VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    if (!ExpRundownChange(RunRef, EX_RUNDOWN_COUNT_INC, 0)) {
        ExfReleaseRundownProtection(RunRef);
    }
}

FORCEINLINE VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef)
{
    if (!ExpRundownChange(RunRef, 0, EX_RUNDOWN_ACTIVE)) {
        ExfWaitForRundownProtectionRelease(RunRef);
    }
}

/*
 * The same with a cache line for each processor: acquire and release touch that of the current one only, and need not
 * happen on the same. The caller may give the memory: ExSizeOfRundownProtectionCacheAware bytes at any address that is
 * a multiple of 8.
 */

typedef struct _EX_RUNDOWN_REF_CACHE_AWARE *PEX_RUNDOWN_REF_CACHE_AWARE;

NTKERNELAPI SIZE_T ExSizeOfRundownProtectionCacheAware(VOID);
NTKERNELAPI VOID ExInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware,
                                                         SIZE_T RunRefSize);
NTKERNELAPI VOID ExFreeCacheAwareRundownProtection(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware,
                                                           ULONG Count);
NTKERNELAPI VOID ExReleaseRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI VOID ExReleaseRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count);
NTKERNELAPI VOID ExWaitForRundownProtectionReleaseCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRef);
NTKERNELAPI VOID ExReInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI VOID ExRundownCompletedCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);

INTERLOCK_END

#endif
