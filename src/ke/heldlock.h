/*
 * heldlock.h: what the verifier notes of the spinlocks whose words do not name their owner: queued ones and those of
 * readers and writers. A processor that holds one and asks for it again would wait for itself; one that gives back what
 * it does not hold gives back somebody else's.
 *
 * The notes are the processor's. An interrupt on it takes and gives back locks of its own in between, so they are
 * changed at HIGH_LEVEL. Locks beyond KI_HELD_LOCKS are only counted, and give the benefit of the doubt.
 */
#ifndef INTERLOCK_HELDLOCK_H
#define INTERLOCK_HELDLOCK_H

#include "spinlock.h"

typedef enum _KI_HOLD {
    KiHoldExclusive,
    KiHoldShared
} KI_HOLD;

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold);
VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold);
VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold);

/* Before the lock is waited for. */
FORCEINLINE VOID KiVerifyAcquire(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiCheckNotHeld(Thread, Lock, Hold);
    }
}

FORCEINLINE VOID KiNoteAcquired(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAddHeldLock(Thread, Lock, Hold);
    }
}

/* Before the lock is given back. */
FORCEINLINE VOID KiVerifyRelease(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiRemoveHeldLock(Thread, Lock, Hold);
    }
}

#endif
