/*
 * dpc.c: deferred procedure calls, and the threads of a processor that run them.
 *
 * A KDPC is in at most one queue: DpcData is NULL, or the queue it is in. It is claimed by a compare-exchange from NULL
 * and released, under the queue's lock, by the thread that takes it out. The lock is held at HIGH_LEVEL, because
 * interrupt service routines queue DPCs: an interrupt on the thread that holds the lock would wait for it forever.
 *
 * A DPC is run by the owner of its processor, when the owner lowers its level. A processor without an owner has an idle
 * thread, which becomes the owner. Threaded DPCs run on the processor's DPC thread. Both threads are requested when
 * they are first needed (ownthread.h). If the host refuses an idle thread, the thread that queued the work owns the
 * processor until the work is done. A threaded DPC without a DPC thread runs as a normal DPC, which its routine has to
 * expect anyway. This includes the first threaded DPC, if it is queued where no thread may be created, for example by a
 * timer.
 */
#include "irql.h"
#include "verifier.h"

#include "park.h"

#define KI_LOOKS_BEFORE_RETRY 256

static volatile ULONG KiTakenProcessors; /* owned in addition to another one */

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

/* The processor's threads. */

static DECLSPEC_NORETURN VOID KiRunHelper(PKPRCB Prcb, PKI_HELPER Helper, BOOLEAN (*Work)(PKTHREAD, PKPRCB))
{
    PKTHREAD Thread = KiBecomeOwnThread();
    Thread->Affinity.Group = Prcb->Group;
    Thread->Affinity.Mask = (KAFFINITY)1 << Prcb->GroupIndex;
    Thread->UserAffinity = Thread->Affinity;
    Thread->LastPrcb = NULL;
    __atomic_store_n(&Helper->Thread, Thread, __ATOMIC_RELEASE);
    for (;;) {
        /* acquire: pairs with the release in KiWakeHelper; work that was left before the wake is visible */
        ULONG Wakes = __atomic_load_n(&Helper->Wakes, __ATOMIC_ACQUIRE);
        if (!Work(Thread, Prcb)) {
            KiSleepWhile(&Helper->Wakes, Wakes);
        }
    }
}

static VOID KiWakeHelper(PKI_HELPER Helper)
{
    __atomic_fetch_add(&Helper->Wakes, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&Helper->Wakes, 1);
}

static BOOLEAN KiIsUnattended(PKPRCB Prcb)
{
    ULONG_PTR Word = KiReadOwner(Prcb);
    return KiOwnerThread(Word) == NULL && (Word & (KI_PRCB_DPC | KI_PRCB_INTERRUPT)) != 0;
}

/* Releasing the processor runs the work. */
static BOOLEAN KiActAsOwner(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    if (!KiIsUnattended(Prcb) || !KiTryRaiseOnProcessor(Thread, Prcb)) {
        return FALSE;
    }
    KiLowerIrql(Thread, OldIrql);
    return TRUE;
}

static VOID KiIdleThread(PVOID Context)
{
    PKPRCB Prcb = Context;
    KiRunHelper(Prcb, &Prcb->Idle, KiActAsOwner);
}

/* If KiActAsOwner finds another owner, that owner does the work. */
static BOOLEAN KiServeIdleThread(PVOID Context, BOOLEAN HasThread)
{
    PKPRCB Prcb = Context;
    if (HasThread) {
        KiWakeHelper(&Prcb->Idle);
    } else {
        KiActAsOwner(KiCurrentThread(), Prcb);
    }
    return TRUE;
}

static const KI_OWN_KIND KiIdleKind = {
    .Name = "interlock-idle", .Routine = KiIdleThread, .Serve = KiServeIdleThread, .StackSize = KI_OWN_THREAD_STACK};

BOOLEAN KiWakeIdleThread(PKPRCB Prcb)
{
    if (!NT_SUCCESS(KiEnsureOwnThread(&Prcb->Idle.Own))) {
        return FALSE;
    }
    KiWakeHelper(&Prcb->Idle);
    return TRUE;
}

VOID KiProvideOwner(PKTHREAD Thread, PKPRCB Prcb)
{
    if (KiHasOwnThread(&Prcb->Idle.Own)) {
        KiWakeHelper(&Prcb->Idle);
    } else {
        KiRequestOwnThread(Thread, &Prcb->Idle.Own);
    }
}

VOID KiStartIdleThreads(PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        if (!NT_SUCCESS(KiEnsureOwnThread(&Prcb->Idle.Own)) && KiIsUnattended(Prcb)) {
            KiProvideOwner(Thread, Prcb);
        }
    }
}

/* The DPC flag on the thread's own processor makes it take the slow path down, to KiReturnTakenProcessors. */
BOOLEAN KiTakeBesideOwn(PKTHREAD Thread, PKPRCB Prcb)
{
    PKPRCB Own = Thread->Prcb;
    BOOLEAN Owns = KiOwnerThread(KiReadOwner(Prcb)) == Thread;
    if (!Owns && KiTryAcquireProcessor(Thread, Prcb)) {
        __atomic_fetch_add(&KiTakenProcessors, 1, __ATOMIC_RELAXED);
        __atomic_fetch_or(&Own->Owner, KI_PRCB_DPC, __ATOMIC_RELAXED);
        Owns = TRUE;
    }
    Thread->Prcb = Own;
    return Owns;
}

VOID KiReturnTakenProcessors(PKTHREAD Thread)
{
    if (__atomic_load_n(&KiTakenProcessors, __ATOMIC_RELAXED) == 0) {
        return;
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        if (KiOwnerThread(KiReadOwner(Prcb)) == Thread) {
            __atomic_fetch_sub(&KiTakenProcessors, 1, __ATOMIC_RELAXED);
            Thread->Prcb = Prcb;
            KiSetIrql(Thread, DISPATCH_LEVEL);
            KiLowerIrql(Thread, APC_LEVEL);
        }
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

static DECLSPEC_NOINLINE BOOLEAN KiHasDpcThread(PKTHREAD Thread, PKPRCB Prcb)
{
    if (!KiHasOwnThread(&Prcb->Dpc.Own)) {
        KiRequestOwnThread(Thread, &Prcb->Dpc.Own);
    }
    return KiHasOwnThread(&Prcb->Dpc.Own);
}

/* At DISPATCH_LEVEL or above. */
FORCEINLINE BOOLEAN KiQueueDpc(PKTHREAD Thread, PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2,
                               KI_DPC_RELEASE *Release, PVOID Context)
{
    ULONG Number = __atomic_load_n(&Dpc->Number, __ATOMIC_RELAXED);
    PKPRCB Prcb = Number < KI_DPC_TARGETED ? Thread->Prcb : KiProcessorBlock[Number - KI_DPC_TARGETED];
    BOOLEAN Threaded = Dpc->Type == ThreadedDpcObject && KiHasDpcThread(Thread, Prcb);
    PKDPC_DATA Data = &Prcb->DpcData[Threaded ? KI_DPC_THREADED : KI_DPC_NORMAL];
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
    if (!Inserted) {
        return FALSE;
    }
    if (Threaded) {
        KiWakeHelper(&Prcb->Dpc);
        return TRUE;
    }
    /* relaxed: the queue's lock orders the load after a clearing that has not found the DPC there */
    if (!(KiReadOwner(Prcb) & KI_PRCB_DPC)) {
        /* release: pairs with the acquire in KiRetireDpcList; the thread that clears the flag finds the DPC */
        ULONG_PTR Word = __atomic_fetch_or(&Prcb->Owner, KI_PRCB_DPC, __ATOMIC_RELEASE);
        if (KiOwnerThread(Word) == NULL) {
            KiProvideOwner(Thread, Prcb);
        }
    }
    return TRUE;
}

FORCEINLINE BOOLEAN KiInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2, KI_DPC_RELEASE *Release,
                                     PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql >= DISPATCH_LEVEL) {
        return KiQueueDpc(Thread, Dpc, SystemArgument1, SystemArgument2, Release, Context);
    }
    KiRaiseIrql(Thread, DISPATCH_LEVEL);
    BOOLEAN Inserted = KiQueueDpc(Thread, Dpc, SystemArgument1, SystemArgument2, Release, Context);
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
    /* relaxed: checked again under the lock */
    PKDPC_DATA Data = __atomic_load_n(&Dpc->DpcData, __ATOMIC_RELAXED);
    if (Data == NULL) {
        return FALSE;
    }
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    BOOLEAN Removed = __atomic_load_n(&Dpc->DpcData, __ATOMIC_RELAXED) == Data;
    if (Removed) {
        KiTakeOut(Data, Dpc);
    }
    KiUnlockDpcData(Thread, Data, OldIrql);
    return Removed;
}

PKDPC KiFindQueuedDpc(PVOID Base, PVOID End)
{
    PKTHREAD Thread = KiCurrentThread();
    PKDPC Found = NULL;
    for (ULONG Number = 0; Number < 2 * KeNumberProcessors && Found == NULL; Number++) {
        PKDPC_DATA Data = &KiProcessorBlock[Number / 2]->DpcData[Number % 2 != 0 ? KI_DPC_THREADED : KI_DPC_NORMAL];
        KIRQL OldIrql = KiLockDpcData(Thread, Data);
        for (PLIST_ENTRY Entry = Data->DpcListHead.Flink; Entry != &Data->DpcListHead && Found == NULL;
             Entry = Entry->Flink) {
            PKDPC Dpc = CONTAINING_RECORD(Entry, KDPC, DpcListEntry);
            Found = KiIsInMemory(Dpc, Base, End) ? Dpc : Found;
        }
        KiUnlockDpcData(Thread, Data, OldIrql);
    }
    return Found;
}

/* Running. */

/* Runs the next DPC of the queue. Its routine may free the KDPC or queue it again, so the members are copied. */
static BOOLEAN KiRunNextDpc(PKTHREAD Thread, PKDPC_DATA Data)
{
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    if (IsListEmpty(&Data->DpcListHead)) {
        Data->ActiveDpc = NULL;
        KiUnlockDpcData(Thread, Data, OldIrql);
        return FALSE;
    }
    PRKDPC Dpc = CONTAINING_RECORD(Data->DpcListHead.Flink, KDPC, DpcListEntry);
    PKDEFERRED_ROUTINE Routine = Dpc->DeferredRoutine;
    PVOID Context = Dpc->DeferredContext;
    PVOID SystemArgument1 = Dpc->SystemArgument1;
    PVOID SystemArgument2 = Dpc->SystemArgument2;
    Data->ActiveDpc = Dpc;
    KiTakeOut(Data, Dpc);
    KiUnlockDpcData(Thread, Data, OldIrql);

    PVOID ExceptionList = Thread->ExceptionList;
    KI_CALLBACK Callback;
    Thread->ExceptionList = NULL;
    KiBeginCallback(Thread, &Callback);
    Routine(Dpc, Context, SystemArgument1, SystemArgument2);
    if (Thread->Irql != OldIrql) {
        KeBugCheckEx(Thread->Irql < OldIrql ? IRQL_NOT_GREATER_OR_EQUAL : IRQL_NOT_LESS_OR_EQUAL, Thread->Irql, OldIrql,
                     (ULONG_PTR)Dpc, (ULONG_PTR)Routine);
    }
    KiEndCallback(Thread, &Callback, KiCallbackDpc, (PVOID)Routine);
    Thread->ExceptionList = ExceptionList;
    return TRUE;
}

VOID KiRetireDpcList(PKTHREAD Thread, PKPRCB Prcb)
{
    /* acquire: pairs with the release in KiQueueDpc; a DPC that is queued after this sets the flag again */
    __atomic_fetch_and(&Prcb->Owner, ~KI_PRCB_DPC, __ATOMIC_ACQUIRE);
    Prcb->DpcRoutineActive = TRUE;
    Thread->DpcDepth += 1;
    while (KiRunNextDpc(Thread, &Prcb->DpcData[KI_DPC_NORMAL])) {
    }
    Thread->DpcDepth -= 1;
    Prcb->DpcRoutineActive = FALSE;
}

static BOOLEAN KiRunThreadedDpc(PKTHREAD Thread, PKPRCB Prcb)
{
    return KiRunNextDpc(Thread, &Prcb->DpcData[KI_DPC_THREADED]);
}

static VOID KiDpcThread(PVOID Context)
{
    PKPRCB Prcb = Context;
    KiRunHelper(Prcb, &Prcb->Dpc, KiRunThreadedDpc);
}

/* No DPC is put in the threaded queue before the thread runs, but a forked child inherits the queue without it. */
static BOOLEAN KiServeDpcThread(PVOID Context, BOOLEAN HasThread)
{
    PKPRCB Prcb = Context;
    return HasThread || __atomic_load_n(&Prcb->DpcData[KI_DPC_THREADED].DpcQueueDepth, __ATOMIC_RELAXED) == 0;
}

static const KI_OWN_KIND KiDpcKind = {
    .Name = "interlock-dpc", .Routine = KiDpcThread, .Serve = KiServeDpcThread, .StackSize = KI_OWN_THREAD_STACK};

/* Flushing: a DPC behind all others of a queue that is not idle. */

static VOID KiFlushedDpc(PKDPC Dpc, PVOID Flushed, PVOID SystemArgument1, PVOID SystemArgument2)
{
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    KeSetEvent(Flushed, 0, FALSE);
}

static VOID KiFlushDpcs(PKTHREAD Thread, PKPRCB Prcb, ULONG Queue)
{
    PKDPC_DATA Data = &Prcb->DpcData[Queue];
    KIRQL OldIrql = KiLockDpcData(Thread, Data);
    BOOLEAN Busy = Data->DpcQueueDepth != 0 || Data->ActiveDpc != NULL;
    KEVENT Flushed;
    KDPC Dpc;
    KiUnlockDpcData(Thread, Data, OldIrql);
    if (Busy) {
        KeInitializeEvent(&Flushed, NotificationEvent, FALSE);
        KiInitializeDpc(&Dpc, Queue == KI_DPC_NORMAL ? DpcObject : ThreadedDpcObject, KiFlushedDpc, &Flushed);
        KiSetTargetProcessorDpc(&Dpc, Prcb->Number);
        KeInsertQueueDpc(&Dpc, NULL, NULL);
        KeWaitForSingleObject(&Flushed, Executive, KernelMode, FALSE, NULL);
    }
}

VOID KeFlushQueuedDpcs(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    if (Thread->Irql != PASSIVE_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, PASSIVE_LEVEL, Thread->Irql, 0, (ULONG_PTR)KeFlushQueuedDpcs);
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        KiFlushDpcs(Thread, KiProcessorBlock[Number], KI_DPC_NORMAL);
        KiFlushDpcs(Thread, KiProcessorBlock[Number], KI_DPC_THREADED);
    }
}

/*
 * A DPC on every processor, all at the same time. The routine gets two pointers for KeSignalCallDpcDone and
 * KeSignalCallDpcSynchronize; both point to the call. One call at a time: each processor has one CallDpc, and two calls
 * whose routines wait for each other on different processors would never end.
 */
typedef struct _KI_CALL_DPC {
    volatile ULONG Running;  /* routines that have not called KeSignalCallDpcDone */
    volatile ULONG Arrived;  /* at the barrier */
    volatile ULONG Round;    /* of the barrier */
    KEVENT Done;
} KI_CALL_DPC, *PKI_CALL_DPC;

static KEVENT KiCallDpcLock;

VOID KiInitializeCallDpc(VOID)
{
    KeInitializeEvent(&KiCallDpcLock, SynchronizationEvent, TRUE);
}

VOID KeGenericCallDpc(PKDEFERRED_ROUTINE Routine, PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_CALL_DPC Call = {.Running = KeNumberProcessors};
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql >= DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, APC_LEVEL, OldIrql, 0, (ULONG_PTR)KeGenericCallDpc);
    }
    KeInitializeEvent(&Call.Done, NotificationEvent, FALSE);
    KeEnterCriticalRegion(); /* the lock must not be lost with the thread */
    KeWaitForSingleObject(&KiCallDpcLock, Executive, KernelMode, FALSE, NULL);
    KiRaiseIrql(Thread, DISPATCH_LEVEL); /* so the caller's own runs when it lowers its level */
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKDPC Dpc = &KiProcessorBlock[Number]->CallDpc;
        KeInitializeDpc(Dpc, Routine, Context);
        KeSetImportanceDpc(Dpc, HighImportance);
        KiSetTargetProcessorDpc(Dpc, Number);
        KeInsertQueueDpc(Dpc, &Call, &Call);
    }
    KiLowerIrql(Thread, OldIrql);
    KeWaitForSingleObject(&Call.Done, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(&KiCallDpcLock, 0, FALSE);
    KeLeaveCriticalRegion();
}

VOID KeSignalCallDpcDone(PVOID SystemArgument1)
{
    PKI_CALL_DPC Call = SystemArgument1;
    /* acq_rel: what every routine did happens before KeGenericCallDpc returns */
    if (__atomic_sub_fetch(&Call->Running, 1, __ATOMIC_ACQ_REL) == 0) {
        KeSetEvent(&Call->Done, 0, FALSE);
    }
}

/* TRUE on the processor that came last. */
LOGICAL KeSignalCallDpcSynchronize(PVOID SystemArgument2)
{
    PKI_CALL_DPC Call = SystemArgument2;
    PKTHREAD Thread = KiCurrentThread();
    ULONG Round = __atomic_load_n(&Call->Round, __ATOMIC_RELAXED);
    KI_PATIENCE Patience;
    /* acq_rel: what every processor did before the barrier happens before the last one opens it */
    if (__atomic_add_fetch(&Call->Arrived, 1, __ATOMIC_ACQ_REL) == KeNumberProcessors) {
        __atomic_store_n(&Call->Arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&Call->Round, Round + 1, __ATOMIC_RELEASE);
        return TRUE;
    }
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release above */
    for (ULONG Looks = 1; __atomic_load_n(&Call->Round, __ATOMIC_ACQUIRE) == Round; Looks += 1) {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        if (Looks % KI_LOOKS_BEFORE_RETRY == 0) {
            KiStartIdleThreads(Thread); /* for processors whose DPC was queued when the host refused a thread */
        }
    }
    return FALSE;
}

VOID KiInitializeDpcs(PKPRCB Prcb)
{
    InitializeListHead(&Prcb->DpcData[KI_DPC_NORMAL].DpcListHead);
    InitializeListHead(&Prcb->DpcData[KI_DPC_THREADED].DpcListHead);
    Prcb->Idle.Own.Kind = &KiIdleKind;
    Prcb->Idle.Own.Context = Prcb;
    Prcb->Dpc.Own.Kind = &KiDpcKind;
    Prcb->Dpc.Own.Context = Prcb;
}

/* DPCs stay queued. Their threads do not exist here (KiOwnThreadForkChild). */
VOID KiResetDpcs(PKPRCB Prcb, PKTHREAD Survivor)
{
    BOOLEAN Owned = KiOwnerThread(Prcb->Owner) == Survivor;
    KiTakenProcessors = 0;
    Prcb->DpcRoutineActive = Prcb->DpcRoutineActive && Owned;
    Prcb->DpcData[KI_DPC_NORMAL].DpcLock = 0;
    Prcb->DpcData[KI_DPC_THREADED].DpcLock = 0;
    Prcb->DpcData[KI_DPC_THREADED].ActiveDpc = NULL;
    if (!Owned) {
        Prcb->DpcData[KI_DPC_NORMAL].ActiveDpc = NULL;
    }
    Prcb->Idle.Thread = NULL;
    Prcb->Dpc.Thread = NULL;
    if (!IsListEmpty(&Prcb->DpcData[KI_DPC_NORMAL].DpcListHead)) {
        Prcb->Owner |= KI_PRCB_DPC;
        if (!Owned) {
            KiRequestOwnThread(Survivor, &Prcb->Idle.Own);
        }
    }
    if (!IsListEmpty(&Prcb->DpcData[KI_DPC_THREADED].DpcListHead)) {
        KiRequestOwnThread(Survivor, &Prcb->Dpc.Own);
    }
}
