/* heldlock.c: the verifier's notes of held spinlocks. Theory in heldlock.h. */
#include "heldlock.h"

/* A note is the lock's address with its KI_HOLD in bit 0. */
static BOOLEAN KiIsNoted(PKPRCB Prcb, PVOID Lock, KI_HOLD Hold)
{
    for (ULONG Index = 0; Index < Prcb->HeldLocks; Index++) {
        if (Prcb->HeldLock[Index] == ((ULONG_PTR)Lock | (ULONG_PTR)Hold)) {
            return TRUE;
        }
    }
    return FALSE;
}

static KI_ORDER_MODE KiModeOfHold(KI_HOLD Hold)
{
    return Hold == KiHoldExclusive ? KiOrderExclusive : KiOrderShared;
}

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    if (KiIsNoted(Thread->Prcb, Lock, KiHoldExclusive) ||
        (Hold == KiHoldExclusive && KiIsNoted(Thread->Prcb, Lock, KiHoldShared))) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
    }
    KiOrderCheck(Thread, Lock, Kind, KiModeOfHold(Hold));
}

VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind, PVOID Site)
{
    PKPRCB Prcb = Thread->Prcb;
    KIRQL Irql = Thread->Irql;
    KiSetIrql(Thread, HIGH_LEVEL);
    if (Prcb->HeldLocks < KI_HELD_LOCKS) {
        Prcb->HeldLock[Prcb->HeldLocks++] = (ULONG_PTR)Lock | (ULONG_PTR)Hold;
    } else {
        Prcb->HeldLocksUnnoted += 1;
    }
    KiSetIrql(Thread, Irql);
    KiPollInterrupts(Thread);
    KiOrderHold(Thread, Lock, Kind, KiModeOfHold(Hold), Site);
}

VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    PKPRCB Prcb = Thread->Prcb;
    KIRQL Irql = Thread->Irql;
    KiOrderRelease(Thread, Lock);
    KiSetIrql(Thread, HIGH_LEVEL);
    ULONG Index = Prcb->HeldLocks;
    while (Index != 0 && Prcb->HeldLock[Index - 1] != ((ULONG_PTR)Lock | (ULONG_PTR)Hold)) {
        Index -= 1;
    }
    if (Index != 0) {
        Prcb->HeldLocks -= 1;
        Prcb->HeldLock[Index - 1] = Prcb->HeldLock[Prcb->HeldLocks];
    } else if (Prcb->HeldLocksUnnoted != 0) {
        Prcb->HeldLocksUnnoted -= 1;
    } else {
        KiSetIrql(Thread, Irql);
        KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, 0, 0);
    }
    KiSetIrql(Thread, Irql);
    KiPollInterrupts(Thread);
}
