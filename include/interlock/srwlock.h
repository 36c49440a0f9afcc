/* srwlock.h: slim reader/writer locks. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_SRWLOCK_H
#define INTERLOCK_SRWLOCK_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/*
 * Zeroed memory is a free lock, at any address. The word is that of a pushlock, whose theory is in
 * src/ex/pushlockcore.c: 0 free, 1 held exclusively, 1 + 16n held by n sharers.
 *
 * A lock has no owner: any thread may release it. Who asks again for what it holds exclusively waits for itself; a
 * sharer may be given it again only while nobody waits. Releasing what is not held raises STATUS_RESOURCE_NOT_OWNED.
 */

typedef struct _RTL_SRWLOCK {
    PVOID Ptr;
} RTL_SRWLOCK, *PRTL_SRWLOCK;

#define RTL_SRWLOCK_INIT {0}

C_ASSERT(sizeof(RTL_SRWLOCK) == 8);

/* Neither blocks. To exclusive succeeds for an only sharer; to shared lets waiting sharers in. */
NTSYSAPI BOOLEAN RtlConvertSRWLockSharedToExclusive(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlConvertSRWLockExclusiveToShared(PRTL_SRWLOCK SRWLock);

/* Where the word is not the one that the inline paths guess. */
NTSYSAPI VOID RtlpAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI BOOLEAN RtlpTryAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI BOOLEAN RtlpTryAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpReleaseSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpReleaseSRWLockSharedContended(PRTL_SRWLOCK SRWLock);

/*
 * The functions below are inline, and exported too for whoever takes their address or calls from another language. They
 * guess the common value instead of reading it first: a read would have to wait for the last store to the line.
 * acq_rel: an acquire pairs with the release before it.
 */

#define RTLP_SRWLOCK_EXCLUSIVE ((ULONG_PTR)0x1)
#define RTLP_SRWLOCK_ONE_SHARER ((ULONG_PTR)0x11)

NTSYSAPI inline BOOLEAN RtlpChangeSRWLock(PRTL_SRWLOCK SRWLock, ULONG_PTR From, ULONG_PTR To)
{
    return __atomic_compare_exchange_n((volatile ULONG_PTR *)SRWLock, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

NTSYSAPI inline VOID RtlInitializeSRWLock(PRTL_SRWLOCK SRWLock)
{
    __atomic_store_n((volatile ULONG_PTR *)SRWLock, 0, __ATOMIC_RELEASE);
}

NTSYSAPI inline VOID RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (!RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_EXCLUSIVE)) {
        RtlpAcquireSRWLockExclusiveContended(SRWLock);
    }
}

NTSYSAPI inline VOID RtlAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    if (!RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_ONE_SHARER)) {
        RtlpAcquireSRWLockSharedContended(SRWLock);
    }
}

NTSYSAPI inline BOOLEAN RtlTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    return RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_EXCLUSIVE) || RtlpTryAcquireSRWLockExclusiveContended(SRWLock);
}

NTSYSAPI inline BOOLEAN RtlTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    return RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_ONE_SHARER) || RtlpTryAcquireSRWLockSharedContended(SRWLock);
}

NTSYSAPI inline VOID RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (!RtlpChangeSRWLock(SRWLock, RTLP_SRWLOCK_EXCLUSIVE, 0)) {
        RtlpReleaseSRWLockExclusiveContended(SRWLock);
    }
}

NTSYSAPI inline VOID RtlReleaseSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    if (!RtlpChangeSRWLock(SRWLock, RTLP_SRWLOCK_ONE_SHARER, 0)) {
        RtlpReleaseSRWLockSharedContended(SRWLock);
    }
}

INTERLOCK_END

#endif
