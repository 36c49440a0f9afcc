/*
 * dpc.c: deferred procedure calls.
 *
 * A KDPC is in at most one queue: DpcData is NULL, or the queue it is in. It is claimed by a compare-exchange from NULL
 * and given free, under the queue's lock, by whoever takes it out. The lock is held at HIGH_LEVEL, because interrupt
 * service routines queue DPCs: an interrupt on the thread that holds the lock would wait for it forever.
 */
#include "dpc.h"

#include "idle.h"

FORCEINLINE KIRQL KiLockDpcData(PKTHREAD Thread, PKDPC_DATA Data)
{
    KIRQL OldIrql = Thread->Irql;
    KiEnterDispatcher(Thread);
    KiSetIrql(Thread, HIGH_LEVEL);
    KiAcquireLock(&Data->DpcLock);
    return OldIrql;
}

FORCEINLINE VOID KiUnlockDpcData(PKTHREAD Thread, PKDPC_DATA Data, KIRQL OldIrql)
{
    KiReleaseLock(&Data->DpcLock);
    KiSetIrql(Thread, OldIrql);
    KiExitDispatcher(Thread);
    KiPollInterrupts(Thread);
}

VOID KiInitializeDpcData(PKPRCB Prcb)
{
    InitializeListHead(&Prcb->DpcData[KI_DPC_NORMAL].DpcListHead);
    InitializeListHead(&Prcb->DpcData[KI_DPC_THREADED].DpcListHead);
}

VOID KiResetDpcData(PKPRCB Prcb, BOOLEAN Owned)
{
    Prcb->DpcData[KI_DPC_NORMAL].DpcLock = 0;
    Prcb->DpcData[KI_DPC_THREADED].DpcLock = 0;
    Prcb->DpcData[KI_DPC_THREADED].ActiveDpc = NULL;
    if (!Owned) {
        Prcb->DpcData[KI_DPC_NORMAL].ActiveDpc = NULL;
    }
}

/* Queueing. */

static VOID KiInitializeDpc(PRKDPC Dpc, UCHAR Type, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
    Dpc->Type = Type;
    Dpc->Importance = MediumImportance;
    Dpc->Number = 0;
    Dpc->DeferredRoutine = DeferredRoutine;
    Dpc->DeferredContext = DeferredContext;
    Dpc->DpcData = NULL;
}

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
    KiInitializeDpc(Dpc, DpcObject, DeferredRoutine, DeferredContext);
}

VOID KeInitializeThreadedDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
    KiInitializeDpc(Dpc, ThreadedDpcObject, DeferredRoutine, DeferredContext);
}

FORCEINLINE BOOLEAN KiPutInQueue(PKTHREAD Thread, PKDPC_DATA Data, PRKDPC Dpc, PVOID SystemArgument1,
                                 PVOID SystemArgument2, KI_DPC_RELEASE *Release, PVOID Context)
{
    PVOID Free = NULL;
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    /* acquire: pairs with the release in KiTakeOut, whose reads of the arguments came before */
    BOOLEAN Inserted = __atomic_compare_exchange_n(&Dpc->DpcData, &Free, (PVOID)Data, FALSE, __ATOMIC_ACQUIRE,
                                                   __ATOMIC_RELAXED);
    if (Inserted) {
        Dpc->SystemArgument1 = SystemArgument1;
        Dpc->SystemArgument2 = SystemArgument2;
        if (__atomic_load_n(&Dpc->Importance, __ATOMIC_RELAXED) == HighImportance) {
            InsertHeadList(&Data->DpcListHead, &Dpc->DpcListEntry);
        } else {
            InsertTailList(&Data->DpcListHead, &Dpc->DpcListEntry);
        }
        Data->DpcQueueDepth += 1;
        Data->DpcCount += 1;
    }
    if (Release != NULL) {
        Release(Context);
    }
    KiUnlockDpcData(Thread, Data, OldIrql);
    return Inserted;
}

/* After the DPC was put in the queue, whose lock orders the load after a clearing that has not found it there. */
static VOID KiRequestDpc(PKTHREAD Thread, PKPRCB Prcb)
{
    if (KiReadOwner(Prcb) & KI_PRCB_DPC) {
        return;
    }
    /* release: pairs with the acquire in KiRetireDpcList; who clears this flag finds the DPC in the queue */
    ULONG_PTR Word = __atomic_fetch_or(&Prcb->Owner, KI_PRCB_DPC, __ATOMIC_RELEASE);
    if (KiOwnerThread(Word) == NULL) {
        KiProvideOwner(Thread, Prcb);
    }
}

static PKPRCB KiTargetOfDpc(PKTHREAD Thread, PRKDPC Dpc)
{
    ULONG Number = __atomic_load_n(&Dpc->Number, __ATOMIC_RELAXED);
    return Number < KI_DPC_TARGETED ? Thread->Prcb : KiProcessorBlock[Number - KI_DPC_TARGETED];
}

/* A threaded DPC that no thread can be had for runs as a normal one, which its routine has to expect anyway. */
FORCEINLINE BOOLEAN KiQueueDpc(PKTHREAD Thread, PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2,
                               KI_DPC_RELEASE *Release, PVOID Context)
{
    PKPRCB Prcb = KiTargetOfDpc(Thread, Dpc);
    BOOLEAN Threaded = Dpc->Type == ThreadedDpcObject && KiStartDpcThread(Prcb);
    PKDPC_DATA Data = &Prcb->DpcData[Threaded ? KI_DPC_THREADED : KI_DPC_NORMAL];
    if (!KiPutInQueue(Thread, Data, Dpc, SystemArgument1, SystemArgument2, Release, Context)) {
        return FALSE;
    }
    if (Threaded) {
        KiWakeDpcThread(Prcb);
    } else {
        KiRequestDpc(Thread, Prcb);
    }
    return TRUE;
}

FORCEINLINE BOOLEAN KiInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                     PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    BOOLEAN Inserted;
    if (OldIrql >= DISPATCH_LEVEL) {
        return KiQueueDpc(Thread, Dpc, SystemArgument1, SystemArgument2, Release, Context);
    }
    KiRaiseIrql(Thread, DISPATCH_LEVEL);
    Inserted = KiQueueDpc(Thread, Dpc, SystemArgument1, SystemArgument2, Release, Context);
    KiLowerIrql(Thread, OldIrql);
    return Inserted;
}

BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2)
{
    return KiInsertQueueDpc(Dpc, SystemArgument1, SystemArgument2, NULL, NULL);
}

VOID KiInsertQueueDpcAndRelease(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                PVOID Context)
{
    KiInsertQueueDpc(Dpc, SystemArgument1, SystemArgument2, Release, Context);
}

/* With the queue's lock held. */
static VOID KiTakeOut(PKDPC_DATA Data, PRKDPC Dpc)
{
    RemoveEntryList(&Dpc->DpcListEntry);
    Data->DpcQueueDepth -= 1;
    __atomic_store_n(&Dpc->DpcData, NULL, __ATOMIC_RELEASE);
}

BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc)
{
    PKTHREAD Thread = KiCurrentThread();
    /* relaxed: looked at again under the lock */
    PKDPC_DATA Data = __atomic_load_n(&Dpc->DpcData, __ATOMIC_RELAXED);
    BOOLEAN Removed;
    KIRQL OldIrql;
    if (Data == NULL) {
        return FALSE;
    }
    OldIrql = KiLockDpcData(Thread, Data);
    Removed = __atomic_load_n(&Dpc->DpcData, __ATOMIC_RELAXED) == Data;
    if (Removed) {
        KiTakeOut(Data, Dpc);
    }
    KiUnlockDpcData(Thread, Data, OldIrql);
    return Removed;
}

VOID KeSetImportanceDpc(PRKDPC Dpc, KDPC_IMPORTANCE Importance)
{
    __atomic_store_n(&Dpc->Importance, (UCHAR)Importance, __ATOMIC_RELAXED);
}

static VOID KiSetTargetProcessorDpc(PRKDPC Dpc, ULONG Number)
{
    __atomic_store_n(&Dpc->Number, (USHORT)(KI_DPC_TARGETED + Number), __ATOMIC_RELAXED);
}

VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CCHAR Number)
{
    if (Number < 0 || (ULONG)Number >= KeNumberProcessors) {
        KeBugCheckEx(TIMER_OR_DPC_INVALID, 3, (ULONG_PTR)Dpc, (ULONG_PTR)Number, KeNumberProcessors);
    }
    KiSetTargetProcessorDpc(Dpc, (ULONG)Number);
}

NTSTATUS KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber)
{
    ULONG Number = KeGetProcessorIndexFromNumber(ProcNumber);
    if (Number == INVALID_PROCESSOR_INDEX) {
        return STATUS_INVALID_PARAMETER;
    }
    KiSetTargetProcessorDpc(Dpc, Number);
    return STATUS_SUCCESS;
}

/* Running. The KDPC may be freed or queued again by its routine, so what it says is copied. */

static BOOLEAN KiTakeNextDpc(PKTHREAD Thread, PKDPC_DATA Data, PRKDPC *Dpc, PKDPC Copy)
{
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    Data->ActiveDpc = NULL;
    if (!IsListEmpty(&Data->DpcListHead)) {
        *Dpc = CONTAINING_RECORD(Data->DpcListHead.Flink, KDPC, DpcListEntry);
        Data->ActiveDpc = *Dpc;
        Copy->DeferredRoutine = (*Dpc)->DeferredRoutine;
        Copy->DeferredContext = (*Dpc)->DeferredContext;
        Copy->SystemArgument1 = (*Dpc)->SystemArgument1;
        Copy->SystemArgument2 = (*Dpc)->SystemArgument2;
        KiTakeOut(Data, *Dpc);
    } else {
        *Dpc = NULL;
    }
    KiUnlockDpcData(Thread, Data, OldIrql);
    return *Dpc != NULL;
}

static VOID KiCallDpc(PKTHREAD Thread, PRKDPC Dpc, PKDPC Copy)
{
    PVOID ExceptionList = Thread->ExceptionList;
    KIRQL Irql = Thread->Irql;
    Thread->ExceptionList = NULL;
    Copy->DeferredRoutine(Dpc, Copy->DeferredContext, Copy->SystemArgument1, Copy->SystemArgument2);
    if (Thread->Irql != Irql) {
        KeBugCheckEx(Thread->Irql < Irql ? IRQL_NOT_GREATER_OR_EQUAL : IRQL_NOT_LESS_OR_EQUAL, Thread->Irql, Irql,
                     (ULONG_PTR)Dpc, (ULONG_PTR)Copy->DeferredRoutine);
    }
    Thread->ExceptionList = ExceptionList;
}

VOID KiRetireDpcList(PKTHREAD Thread, PKPRCB Prcb)
{
    PRKDPC Dpc;
    KDPC Copy;
    /* acquire: pairs with the release in KiRequestDpc; a DPC that is queued after this sets the flag again */
    __atomic_fetch_and(&Prcb->Owner, ~KI_PRCB_DPC, __ATOMIC_ACQUIRE);
    Prcb->DpcRoutineActive = TRUE;
    Thread->DpcDepth += 1;
    while (KiTakeNextDpc(Thread, &Prcb->DpcData[KI_DPC_NORMAL], &Dpc, &Copy)) {
        KiCallDpc(Thread, Dpc, &Copy);
    }
    Thread->DpcDepth -= 1;
    Prcb->DpcRoutineActive = FALSE;
}

BOOLEAN KiRunThreadedDpc(PKTHREAD Thread, PKPRCB Prcb)
{
    PRKDPC Dpc;
    KDPC Copy;
    if (!KiTakeNextDpc(Thread, &Prcb->DpcData[KI_DPC_THREADED], &Dpc, &Copy)) {
        return FALSE;
    }
    KiCallDpc(Thread, Dpc, &Copy);
    return TRUE;
}

/* Flushing: a DPC behind all others of a queue that is not idle. */

static BOOLEAN KiHasDpcs(PKTHREAD Thread, PKDPC_DATA Data)
{
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    BOOLEAN Busy = Data->DpcQueueDepth != 0 || Data->ActiveDpc != NULL;
    KiUnlockDpcData(Thread, Data, OldIrql);
    return Busy;
}

static VOID KiFlushedDpc(PKDPC Dpc, PVOID Flushed, PVOID SystemArgument1, PVOID SystemArgument2)
{
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    KeSetEvent(Flushed, 0, FALSE);
}

static VOID KiFlushDpcs(PKPRCB Prcb, ULONG Queue)
{
    KEVENT Flushed;
    KDPC Dpc;
    KeInitializeEvent(&Flushed, NotificationEvent, FALSE);
    KiInitializeDpc(&Dpc, Queue == KI_DPC_NORMAL ? DpcObject : ThreadedDpcObject, KiFlushedDpc, &Flushed);
    KiSetTargetProcessorDpc(&Dpc, Prcb->Number);
    KeInsertQueueDpc(&Dpc, NULL, NULL);
    KeWaitForSingleObject(&Flushed, Executive, KernelMode, FALSE, NULL);
}

VOID KeFlushQueuedDpcs(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->Irql != PASSIVE_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, PASSIVE_LEVEL, Thread->Irql, 0, (ULONG_PTR)KeFlushQueuedDpcs);
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        for (ULONG Queue = KI_DPC_NORMAL; Queue <= KI_DPC_THREADED; Queue++) {
            if (KiHasDpcs(Thread, &Prcb->DpcData[Queue])) {
                KiFlushDpcs(Prcb, Queue);
            }
        }
    }
}
