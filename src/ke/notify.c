/*
 * notify.c: waiting without a thread. A registered block is linked to its object like a thread's and consumes it in the
 * same way, once. BlockState: WaitBlockActive while linked, WaitBlockBypassStart from the moment a signal has unlinked
 * it until the packet or DPC is queued, then WaitBlockBypassComplete; WaitBlockInactive after a cancel.
 */
#include "dpc.h"
#include "wait.h"

static NTSTATUS KiRegisterOutside(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block)
{
    __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
    NTSTATUS Status = KiOutsideOperations->RegisterBlock(KiOutsideOf(Header), Block);
    if (Status == STATUS_SUCCESS) {
        __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
        KiDeliverNotification(Block);
    } else if (!NT_SUCCESS(Status)) {
        __atomic_store_n(&Block->BlockState, WaitBlockInactive, __ATOMIC_RELAXED);
    }
    return Status;
}

static NTSTATUS KiRegister(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status = STATUS_PENDING;

    if (KI_TYPE(KiReadHeader(Header)) == MutantObject) {
        return STATUS_INVALID_PARAMETER_1;
    }
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(Header);
    if (Word == 0) {
        Status = KiRegisterOutside(Header, Block);
        KiExitDispatcher(Thread);
        return Status;
    }
    if (KI_STATE(Word) > 0) {
        KiConsumeLocked(Header, &Word, NULL);
        __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
        Status = STATUS_SUCCESS;
    } else {
        KiLinkBlock(Block);
    }
    KiUnlockObject(Header, Word);
    if (Status == STATUS_SUCCESS) {
        KiDeliverNotification(Block);
    }
    KiExitDispatcher(Thread);
    return Status;
}

NTSTATUS KeRegisterObjectNotification(PVOID Object, PKQUEUE Queue, PKOBJECT_NOTIFICATION Notification)
{
    KiPrepareBlock(&Notification->WaitBlock, NULL, Object, WaitNotification, 0);
    Notification->WaitBlock.NotificationQueue = Queue;
    Notification->QueueListEntry.Flink = NULL;
    return KiRegister(Object, &Notification->WaitBlock);
}

NTSTATUS KeRegisterObjectDpc(PVOID Object, PRKDPC Dpc, PKWAIT_BLOCK WaitBlock)
{
    KiPrepareBlock(WaitBlock, NULL, Object, WaitDpc, 0);
    WaitBlock->Dpc = Dpc;
    return KiRegister(Object, WaitBlock);
}

static VOID KiCompleteBlock(PVOID Context)
{
    PKWAIT_BLOCK Block = Context;
    /* release: the last access to the block; pairs with the load in KiUnregister */
    __atomic_store_n(&Block->BlockState, WaitBlockBypassComplete, __ATOMIC_RELEASE);
}

/* A cancel that finds the block complete finds the packet or the DPC queued, or gone. */
VOID KiDeliverNotification(PKWAIT_BLOCK Block)
{
    if (Block->WaitType == WaitNotification) {
        PKOBJECT_NOTIFICATION Notification = CONTAINING_RECORD(Block, KOBJECT_NOTIFICATION, WaitBlock);
        KiQueueNotification(Block->NotificationQueue, Block, &Notification->QueueListEntry);
        return;
    }
    KiInsertQueueDpcAndRelease(Block->Dpc, Block->Object, NULL, KiCompleteBlock, Block);
}

static VOID KiAwaitDelivery(PKWAIT_BLOCK Block)
{
    for (ULONG Round = 0; __atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) == WaitBlockBypassStart; Round += 1) {
        KiBackOff(Round);
    }
}

/* FALSE: it was granted. The session thread is about to deliver it, or has. */
static BOOLEAN KiUnregisterOutside(PKWAIT_BLOCK Block)
{
    /* acquire: pairs with the store that ends the delivery */
    BOOLEAN Linked = __atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) == WaitBlockActive &&
                     KiOutsideOperations->UnregisterBlock(KiOutsideOf(Block->Object), Block);
    if (Linked) {
        __atomic_store_n(&Block->BlockState, WaitBlockInactive, __ATOMIC_RELAXED);
    }
    KiAwaitDelivery(Block);
    return Linked;
}

/* TRUE: the block was linked and no longer is. FALSE: a signal took it, and has delivered it. */
static BOOLEAN KiUnregister(PKWAIT_BLOCK Block)
{
    PDISPATCHER_HEADER Header = Block->Object;
    ULONG64 Word = KiLockObject(Header);
    if (Word == 0) {
        return KiUnregisterOutside(Block);
    }
    /* relaxed: it changes to or from Active only under this lock; the loop waits for the rest */
    BOOLEAN Linked = __atomic_load_n(&Block->BlockState, __ATOMIC_RELAXED) == WaitBlockActive;
    if (Linked) {
        KiUnlinkBlock(Block, WaitBlockInactive);
    }
    KiUnlockObject(Header, Word);
    KiAwaitDelivery(Block);
    return Linked;
}

KNOTIFICATION_CANCEL_RESULT KeCancelObjectNotification(PKOBJECT_NOTIFICATION Notification, BOOLEAN RemoveSignaledPacket)
{
    PKTHREAD Thread = KiCurrentThread();
    KNOTIFICATION_CANCEL_RESULT Result = NotificationSignaled;

    KiEnterDispatcher(Thread);
    if (KiUnregister(&Notification->WaitBlock)) {
        Result = NotificationCancelled;
    } else if (RemoveSignaledPacket &&
               KiRemoveQueuedEntry(Notification->WaitBlock.NotificationQueue, &Notification->QueueListEntry)) {
        Result = NotificationRemovedFromQueue;
    }
    KiExitDispatcher(Thread);
    return Result;
}

BOOLEAN KeCancelObjectDpc(PKWAIT_BLOCK WaitBlock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    BOOLEAN Cancelled = KiUnregister(WaitBlock);
    KiExitDispatcher(Thread);
    return Cancelled;
}
