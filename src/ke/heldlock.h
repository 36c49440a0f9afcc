/*
 * heldlock.h: the verifier's notes of the spinlocks whose words do not name their owner: queued and reader/writer
 * spinlocks. A processor that acquires a lock it holds would wait for itself; one that releases a lock it does not hold
 * would release another owner's.
 *
 * Each processor has its own notes. An interrupt on the processor acquires and releases locks of its own, so the notes
 * change at HIGH_LEVEL. Locks beyond KI_HELD_LOCKS are only counted: while there are any, a release without a note is
 * not reported.
 */
#ifndef INTERLOCK_HELDLOCK_H
#define INTERLOCK_HELDLOCK_H

#include "lockorder.h"
#include "spinlock.h"

typedef enum _KI_HOLD {
    KiHoldExclusive,
    KiHoldShared
} KI_HOLD;

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind);
VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind, PVOID Site);
VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold);

/* Before the acquire. */
FORCEINLINE VOID KiVerifyAcquire(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiCheckNotHeld(Thread, Lock, Hold, Kind);
    }
}

FORCEINLINE VOID KiNoteAcquired(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAddHeldLock(Thread, Lock, Hold, Kind, __builtin_return_address(0));
    }
}

/* Before the release. */
FORCEINLINE VOID KiVerifyRelease(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiRemoveHeldLock(Thread, Lock, Hold);
    }
}

#endif
