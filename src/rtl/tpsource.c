/*
 * tpsource.c: kernel objects whose signal becomes a callback.
 *
 * A source that is armed has a packet on the way: linked to its kernel object, or in the queue, or in the hands of a
 * thread that is about to ask for the object's lock. Disarming takes back what is linked or queued. What a thread has
 * is stale from then on: the thread finds out when it has the lock, and which of several such threads it is makes no
 * difference. The packet, and with it the right to touch the object, is worth one hold.
 */
#include "tpp.h"

VOID TppInitializeSource(PTPP_SOURCE Source, PTPP_OBJECT Object)
{
    Source->Kind = TppSourcePacket;
    Source->Object = Object;
}

NTSTATUS TppArm(PTPP_SOURCE Source, PVOID KernelObject)
{
    PTPP_OBJECT Object = Source->Object;
    Source->Armed = TRUE;
    __atomic_fetch_add(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    NTSTATUS Status = KeRegisterObjectNotification(KernelObject, &Object->Pool->Queue, &Source->Notification);
    if (!NT_SUCCESS(Status)) {
        Source->Armed = FALSE;
        __atomic_fetch_sub(&Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    }
    return Status;
}

TPP_DISARMED TppDisarm(PTPP_SOURCE Source)
{
    if (!Source->Armed) {
        return TppWasNotArmed;
    }
    Source->Armed = FALSE;
    KNOTIFICATION_CANCEL_RESULT Result = KeCancelObjectNotification(&Source->Notification, TRUE);
    if (Result == NotificationSignaled) {
        Source->Stale += 1;
        return TppHadFired;
    }
    /* Whoever disarms has a right of its own to the object: this was not the last thing that kept it. */
    __atomic_fetch_sub(&Source->Object->State, TPP_HOLD_ONE, __ATOMIC_ACQ_REL);
    return Result == NotificationCancelled ? TppWasWaiting : TppHadFired;
}

BOOLEAN TppHasFired(PTPP_SOURCE Source)
{
    /* relaxed: who acts on it disarms, and learns there what is true */
    return Source->Armed &&
           __atomic_load_n(&Source->Notification.WaitBlock.BlockState, __ATOMIC_RELAXED) != WaitBlockActive;
}

BOOLEAN TppAcceptPacket(PTPP_SOURCE Source)
{
    if (Source->Stale != 0) {
        Source->Stale -= 1;
        return FALSE;
    }
    Source->Armed = FALSE;
    return TRUE;
}

/* In a forked child: stale packets are gone with their threads, and one that counts is queued again. */
VOID TppRepairSource(PTPP_SOURCE Source)
{
    Source->Stale = 0;
    if (Source->Armed) {
        __atomic_fetch_add(&Source->Object->State, TPP_HOLD_ONE, __ATOMIC_RELAXED); /* relaxed: as the repair itself */
    }
    if (TppHasFired(Source) && Source->Notification.QueueListEntry.Flink == NULL) {
        KeInsertQueue(&Source->Object->Pool->Queue, &Source->Notification.QueueListEntry);
    }
}
