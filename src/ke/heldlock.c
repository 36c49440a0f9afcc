/* heldlock.c: the verifier's notes of held spinlocks. Theory in heldlock.h. */
#include "heldlock.h"

/* What is noted: the lock's address, and in its bit 0 the KI_HOLD. */
static ULONG_PTR KiNoteOf(PVOID Lock, KI_HOLD Hold)
{
    return (ULONG_PTR)Lock | (ULONG_PTR)Hold;
}

static BOOLEAN KiIsNoted(PKPRCB Prcb, ULONG_PTR Note)
{
    for (ULONG Index = 0; Index < Prcb->HeldLocks; Index++) {
        if (Prcb->HeldLock[Index] == Note) {
            return TRUE;
        }
    }
    return FALSE;
}

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    if (KiIsNoted(Thread->Prcb, KiNoteOf(Lock, KiHoldExclusive)) ||
        (Hold == KiHoldExclusive && KiIsNoted(Thread->Prcb, KiNoteOf(Lock, KiHoldShared)))) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
    }
}

static KIRQL KiBeginNote(PKTHREAD Thread)
{
    KIRQL Irql = Thread->Irql;
    KiSetIrql(Thread, HIGH_LEVEL);
    return Irql;
}

static VOID KiEndNote(PKTHREAD Thread, KIRQL Irql)
{
    KiSetIrql(Thread, Irql);
    KiPollInterrupts(Thread);
}

VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    PKPRCB Prcb = Thread->Prcb;
    KIRQL Irql = KiBeginNote(Thread);
    if (Prcb->HeldLocks < KI_HELD_LOCKS) {
        Prcb->HeldLock[Prcb->HeldLocks++] = KiNoteOf(Lock, Hold);
    } else {
        Prcb->HeldLocksUnnoted += 1;
    }
    KiEndNote(Thread, Irql);
}

static BOOLEAN KiTakeNote(PKPRCB Prcb, ULONG_PTR Note)
{
    for (ULONG Index = Prcb->HeldLocks; Index-- != 0;) {
        if (Prcb->HeldLock[Index] == Note) {
            Prcb->HeldLock[Index] = Prcb->HeldLock[--Prcb->HeldLocks];
            return TRUE;
        }
    }
    if (Prcb->HeldLocksUnnoted == 0) {
        return FALSE;
    }
    Prcb->HeldLocksUnnoted -= 1;
    return TRUE;
}

VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    KIRQL Irql = KiBeginNote(Thread);
    if (!KiTakeNote(Thread->Prcb, KiNoteOf(Lock, Hold))) {
        KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, 0, 0);
    }
    KiEndNote(Thread, Irql);
}
