/*
 * fastmutex.h: fast mutexes and guarded mutexes, which since Windows 8 are the same thing. Part of ex.h, which includes
 * it. The theory of the count is in src/ex/fastmutex.c.
 */
#ifndef INTERLOCK_FASTMUTEX_H
#define INTERLOCK_FASTMUTEX_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

typedef struct _FAST_MUTEX {
    volatile LONG Count;
    ULONG Waking; /* Interlock's own, where Windows leaves a gap */
    PKTHREAD Owner;
    ULONG Contention;
    ULONG ForkDepth; /* the same */
    KEVENT Event;
    ULONG OldIrql;
} FAST_MUTEX, *PFAST_MUTEX, KGUARDED_MUTEX, *PKGUARDED_MUTEX;

C_ASSERT(sizeof(FAST_MUTEX) == 56);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, Owner) == 8);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, Event) == 24);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, OldIrql) == 48);

#define FM_LOCK_BIT 0x1 /* Count of a free mutex */

FORCEINLINE VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex)
{
    FastMutex->Count = FM_LOCK_BIT;
    FastMutex->Waking = 0;
    FastMutex->Owner = NULL;
    FastMutex->Contention = 0;
    FastMutex->ForkDepth = 0;
    KeInitializeEvent(&FastMutex->Event, SynchronizationEvent, FALSE);
    FastMutex->OldIrql = 0;
}

/* Acquiring raises to APC_LEVEL, releasing goes back. The Unsafe forms do neither: APCs are disabled already. */

NTKERNELAPI VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex);
NTKERNELAPI VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex);
NTKERNELAPI BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex);
NTKERNELAPI VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex);
NTKERNELAPI VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex);

NTKERNELAPI VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex);

INTERLOCK_END

#endif
