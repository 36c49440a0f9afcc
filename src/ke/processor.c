/*
 * processor.c: processors: which thread owns which, levels, interrupts between them, and memory nodes. The theory of the
 * Owner word is in irql.h.
 */
#include "debugdata.h"
#include "irql.h"
#include "park.h"
#include "spinlock.h"

#include "../hal/hal.h"

/*
 * Which thread owns which processor, and where a thread may run.
 *
 * A thread that finds every processor that it may use busy queues here and sleeps. An owner that releases its processor
 * searches the queue:
 *
 * 1. It wakes the first queued thread that may run on this processor, which then competes with the others. A running
 *    thread may be faster: two threads that run all the time exchange a processor without sleeping.
 * 2. A thread that was woken KI_WAKES_BEFORE_HANDOFF times without getting the processor is handed it: its address
 *    replaces the owner's in the Owner word. So no thread starves. Handing off every time was rejected: the processor
 *    would be idle while the host schedules the next owner, and the queue would grow behind it.
 * 3. A queued thread has marked (W) every processor that it may run on, under KiProcessorWaitLock, and found each of
 *    them busy while doing so. An owner that releases a marked processor takes the same lock, so it sees the thread.
 * 4. A processor that is released with threads still queued for it (W stays set) is taken by the woken thread or by
 *    another one; that owner searches the queue again. So the woken thread tries this processor first, even if it may
 *    run elsewhere: the threads behind it may have no other.
 * 5. A thread that changes the affinity of a queued thread wakes it, so that it marks its new processors.
 */

#define KI_WAKES_BEFORE_HANDOFF 4

PKPRCB KiProcessorBlock[INTERLOCK_MAXIMUM_PROCESSORS];
ULONG KeNumberProcessors;

static LIST_ENTRY KiProcessorWaitList = {&KiProcessorWaitList, &KiProcessorWaitList};
KD_REGISTER_ROOT(KiProcessorWaitList);
static KI_LOCK KiProcessorWaitLock;

static ULONG KiNextAllowedProcessor(PKTHREAD Thread, ULONG Number)
{
    do {
        Number = (Number + 1) % KeNumberProcessors;
    } while (!KiMayRunOn(Thread, Number));
    return Number;
}

ULONG KiPreferredProcessor(PKTHREAD Thread)
{
    ULONG Number = KiHostProcessor(KeNumberProcessors);
    return KiMayRunOn(Thread, Number) ? Number : KiNextAllowedProcessor(Thread, Number);
}

/* Taking a processor. */

BOOLEAN KiTryAcquireProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word = KiReadOwner(Prcb);
    while (KiOwnerThread(Word) == NULL) {
        Thread->Prcb = Prcb;
        /* acquire: pairs with the release of the last owner */
        if (__atomic_compare_exchange_n(&Prcb->Owner, &Word, Word | (ULONG_PTR)Thread, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            Prcb->CurrentThread = Thread;
            return TRUE;
        }
    }
    return FALSE;
}

/* Bounded by the count too: if the affinity changes meanwhile, the loop may never return to the first processor. */
static BOOLEAN KiTryAnyProcessor(PKTHREAD Thread)
{
    ULONG First = KiPreferredProcessor(Thread);
    ULONG Number = First;
    ULONG Tries = KeNumberProcessors;
    do {
        if (KiTryAcquireProcessor(Thread, KiProcessorBlock[Number])) {
            return TRUE;
        }
        Number = KiNextAllowedProcessor(Thread, Number);
        Tries -= 1;
    } while (Number != First && Tries != 0);
    return FALSE;
}

/* Marks a busy processor; takes a free one. */
static BOOLEAN KiTryOrMarkProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word = KiReadOwner(Prcb);
    while (!(Word & KI_PRCB_WAITERS) || KiOwnerThread(Word) == NULL) {
        if (KiTryAcquireProcessor(Thread, Prcb)) {
            return TRUE;
        }
        Word = KiReadOwner(Prcb);
        /* relaxed: the mark only says that the lock has to be taken, and the lock orders the rest */
        if (KiOwnerThread(Word) != NULL &&
            __atomic_compare_exchange_n(&Prcb->Owner, &Word, Word | KI_PRCB_WAITERS, FALSE, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            break;
        }
    }
    return FALSE;
}

/* FALSE: the thread owns a processor now. A thread that was woken but lost the processor to another one returns to the
   head of the queue. */
static BOOLEAN KiQueueForProcessor(PKI_PROCESSOR_WAITER Waiter)
{
    PKTHREAD Thread = Waiter->Thread;
    BOOLEAN Owns = FALSE;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&KiProcessorWaitLock);
    for (ULONG Number = 0; Number < KeNumberProcessors && !Owns; Number++) {
        Owns = KiMayRunOn(Thread, Number) && KiTryOrMarkProcessor(Thread, KiProcessorBlock[Number]);
    }
    if (!Owns) {
        Waiter->State = KiWaiterQueued;
        Waiter->Prcb = NULL;
        if (Waiter->Wakes == 0) {
            InsertTailList(&KiProcessorWaitList, &Waiter->Entry);
        } else {
            InsertHeadList(&KiProcessorWaitList, &Waiter->Entry);
        }
    }
    KiReleaseLock(&KiProcessorWaitLock);
    KiExitDispatcher(Thread);
    return !Owns;
}

static VOID KiWaitForProcessor(PKTHREAD Thread)
{
    KI_PROCESSOR_WAITER Waiter = {.Thread = Thread};
    while (KiQueueForProcessor(&Waiter)) {
        KiSleepWhile(&Waiter.State, KiWaiterQueued); /* its acquire pairs with the release in KiWakeWaiter */
        if (__atomic_load_n(&Waiter.State, __ATOMIC_RELAXED) == KiWaiterOwns) {
            Thread->Prcb = Waiter.Prcb;
            Waiter.Prcb->CurrentThread = Thread;
            return;
        }
        Waiter.Wakes += 1;
        if ((Waiter.Prcb != NULL && KiTryAcquireProcessor(Thread, Waiter.Prcb)) || KiTryAnyProcessor(Thread)) {
            return;
        }
    }
}

DECLSPEC_NOINLINE VOID KiAcquireProcessorSlow(PKTHREAD Thread)
{
    if (!KiTryAnyProcessor(Thread)) {
        KiWaitForProcessor(Thread);
    }
    __atomic_store_n(&Thread->LastPrcb, Thread->Prcb, __ATOMIC_RELAXED);
    KiPollInterrupts(Thread);
}

BOOLEAN KiTryRaiseOnProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    KiSetIrql(Thread, DISPATCH_LEVEL);
    if (KiTryAcquireProcessor(Thread, Prcb)) {
        KiPollInterrupts(Thread);
        return TRUE;
    }
    Thread->Prcb = NULL;
    KiLowerSoftwareIrql(Thread, OldIrql);
    return FALSE;
}

/* Releasing a processor. */

static PKI_PROCESSOR_WAITER KiNextWaiterFor(PKPRCB Prcb, PLIST_ENTRY After)
{
    for (PLIST_ENTRY Entry = After->Flink; Entry != &KiProcessorWaitList; Entry = Entry->Flink) {
        PKI_PROCESSOR_WAITER Waiter = CONTAINING_RECORD(Entry, KI_PROCESSOR_WAITER, Entry);
        if (KiMayRunOn(Waiter->Thread, Prcb->Number)) {
            return Waiter;
        }
    }
    return NULL;
}

/* The waiter is on the other thread's stack: it may be invalid after the store. */
static VOID KiWakeWaiter(PKI_PROCESSOR_WAITER Waiter, KI_WAITER_STATE State)
{
    RemoveEntryList(&Waiter->Entry);
    __atomic_store_n(&Waiter->State, State, __ATOMIC_RELEASE);
    HalDispatch.Wake(&Waiter->State, 1);
}

/* Fails if there is work on this processor first. */
static VOID KiGiveProcessorAway(PKTHREAD Thread, PKPRCB Prcb)
{
    KiEnterDispatcher(Thread);
    KiAcquireLock(&KiProcessorWaitLock);
    PKI_PROCESSOR_WAITER Waiter = KiNextWaiterFor(Prcb, &KiProcessorWaitList);
    BOOLEAN Handoff = Waiter != NULL && Waiter->Wakes >= KI_WAKES_BEFORE_HANDOFF;
    ULONG_PTR Word = (ULONG_PTR)Thread | KI_PRCB_WAITERS;
    ULONG_PTR New = Handoff ? (ULONG_PTR)Waiter->Thread : 0;
    if (Waiter != NULL && KiNextWaiterFor(Prcb, &Waiter->Entry) != NULL) {
        New |= KI_PRCB_WAITERS;
    }
    /* release: pairs with the acquire of the next owner */
    BOOLEAN Given = __atomic_compare_exchange_n(&Prcb->Owner, &Word, New, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (Given && Waiter != NULL) {
        Waiter->Prcb = Prcb;
        KiWakeWaiter(Waiter, Handoff ? KiWaiterOwns : KiWaiterWoken);
    }
    KiReleaseLock(&KiProcessorWaitLock);
    KiExitDispatcher(Thread);
}

/* From DISPATCH_LEVEL or above to below it: does the work that has to precede the release of the processor, and releases
   it. */
DECLSPEC_NOINLINE VOID KiLowerIrqlSlow(PKTHREAD Thread, KIRQL NewIrql)
{
    PKPRCB Prcb = Thread->Prcb;
    ULONG_PTR Word;
    KiSetIrql(Thread, DISPATCH_LEVEL);
    /* After a signal with Wait TRUE the thread is at DISPATCH_LEVEL without owning its processor: KiSetWaitNext. */
    while (KiOwnerThread(Word = KiReadOwner(Prcb)) == Thread) {
        if (Word & KI_PRCB_INTERRUPT) {
            KiServiceInterrupts(Thread, Prcb);
        } else if (Word & KI_PRCB_DPC) {
            KiRetireDpcList(Thread, Prcb);
        } else if (Word & KI_PRCB_WAITERS) {
            KiGiveProcessorAway(Thread, Prcb);
        } else {
            /* release: pairs with the acquire of the next owner */
            __atomic_compare_exchange_n(&Prcb->Owner, &Word, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        }
    }
    Thread->Prcb = NULL;
    KiSetIrql(Thread, APC_LEVEL);
    KiReturnTakenProcessors(Thread);
    KiLowerSoftwareIrql(Thread, NewIrql);
}

static KI_LOCK KiReverseStallIpiLock; /* one broadcast at a time: see KeIpiGenericCall */

/* In a forked child: the survivor keeps what it owns, every other processor is free. */
VOID KiProcessorForkChild(PKTHREAD Survivor)
{
    KiProcessorWaitLock = 0;
    InitializeListHead(&KiProcessorWaitList);
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = KiProcessorBlock[Number];
        Prcb->Owner = KiOwnerThread(Prcb->Owner) == Survivor ? (ULONG_PTR)Survivor : 0;
        Prcb->SignalDone = NULL;
        Prcb->InterruptQueue = NULL;
        Prcb->InterruptList = NULL;
        KiResetDpcs(Prcb, Survivor);
    }
    KiResetLockQueues(Survivor);
    KiReverseStallIpiLock = 0;
    KiResetInterrupts(Survivor);
    KiInitializeCallDpc();
}

/* Processor numbers and groups. A group has 64 processors, the last one the rest. Functions without a group mean group 0. */

static ULONG KiProcessorsInGroup(ULONG Group)
{
    ULONG Before = Group * MAXIMUM_PROC_PER_GROUP;
    if (Before >= KeNumberProcessors) {
        return 0;
    }
    return KeNumberProcessors - Before < MAXIMUM_PROC_PER_GROUP ? KeNumberProcessors - Before : MAXIMUM_PROC_PER_GROUP;
}

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    ULONG Number = KiCurrentProcessorNumber(KiCurrentThread());
    if (ProcNumber != NULL) {
        KeGetProcessorNumberFromIndex(Number, ProcNumber);
    }
    return Number;
}

/* A DPC that keeps spinning or runs long delays the DPCs behind it and the threads that wait for this processor. */
ULONG KeShouldYieldProcessor(VOID)
{
    PKTHREAD Thread = KiEnterLocked(&KiProcessorWaitLock);
    PKPRCB Prcb = Thread->Prcb;
    /* relaxed: a hint */
    BOOLEAN Wanted = Prcb != NULL && (__atomic_load_n(&Prcb->DpcData[0].DpcQueueDepth, __ATOMIC_RELAXED) != 0 ||
                                      KiNextWaiterFor(Prcb, &KiProcessorWaitList) != NULL);
    KiExitLocked(&KiProcessorWaitLock, Thread);
    return Wanted;
}

ULONG KeGetCurrentProcessorNumber(VOID)
{
    return KiCurrentProcessorNumber(KiCurrentThread());
}

ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    return GroupNumber == ALL_PROCESSOR_GROUPS ? KeNumberProcessors : KiProcessorsInGroup(GroupNumber);
}

ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber)
{
    return KeQueryActiveProcessorCountEx(GroupNumber);
}

ULONG KeQueryActiveProcessorCount(PKAFFINITY ActiveProcessors)
{
    if (ActiveProcessors != NULL) {
        *ActiveProcessors = KeQueryGroupAffinity(0);
    }
    return KiProcessorsInGroup(0);
}

ULONG KeQueryMaximumProcessorCount(VOID)
{
    return KiProcessorsInGroup(0);
}

KAFFINITY KeQueryActiveProcessors(VOID)
{
    return KeQueryGroupAffinity(0);
}

USHORT KeQueryActiveGroupCount(VOID)
{
    return (USHORT)((KeNumberProcessors + MAXIMUM_PROC_PER_GROUP - 1) / MAXIMUM_PROC_PER_GROUP);
}

USHORT KeQueryMaximumGroupCount(VOID)
{
    return KeQueryActiveGroupCount();
}

KAFFINITY KeQueryGroupAffinity(USHORT GroupNumber)
{
    ULONG Count = KiProcessorsInGroup(GroupNumber);
    return Count == 0 ? 0 : ~(KAFFINITY)0 >> (MAXIMUM_PROC_PER_GROUP - Count);
}

NTSTATUS KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcIndex >= KeNumberProcessors) {
        return STATUS_INVALID_PARAMETER;
    }
    ProcNumber->Group = (USHORT)(ProcIndex / MAXIMUM_PROC_PER_GROUP);
    ProcNumber->Number = (UCHAR)(ProcIndex % MAXIMUM_PROC_PER_GROUP);
    ProcNumber->Reserved = 0;
    return STATUS_SUCCESS;
}

ULONG KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcNumber->Reserved != 0 || ProcNumber->Number >= KiProcessorsInGroup(ProcNumber->Group)) {
        return INVALID_PROCESSOR_INDEX;
    }
    return (ULONG)ProcNumber->Group * MAXIMUM_PROC_PER_GROUP + ProcNumber->Number;
}

/*
 * Affinity. The system affinity of a thread replaces its user affinity until it is reverted. An affinity that names no
 * processor, or one that does not exist, changes nothing. A thread that owns a processor keeps it until it lowers its
 * level below DISPATCH_LEVEL. ThreadLock guards the affinity, because other threads read it.
 */

static BOOLEAN KiIsValidAffinity(const GROUP_AFFINITY *Affinity)
{
    return Affinity->Mask != 0 && (Affinity->Mask & ~KeQueryGroupAffinity(Affinity->Group)) == 0 &&
           Affinity->Reserved[0] == 0 && Affinity->Reserved[1] == 0 && Affinity->Reserved[2] == 0;
}

static VOID KiVerifyAffinityLevel(PKTHREAD Thread)
{
    if (Thread->Irql > DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, DISPATCH_LEVEL, Thread->Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
}

/* With ThreadLock held. relaxed: see KiMayRunOn */
static VOID KiStoreAffinity(PKTHREAD Thread, const GROUP_AFFINITY *Affinity)
{
    __atomic_store_n(&Thread->Affinity.Mask, Affinity->Mask, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->Affinity.Group, Affinity->Group, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->LastPrcb, NULL, __ATOMIC_RELAXED);
    KiNoteChange(Thread, KI_WAIT_AFFINITY);
}

static VOID KiChangeAffinity(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, BOOLEAN System)
{
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Thread->ThreadLock);
    KiStoreAffinity(Thread, Affinity);
    Thread->SystemAffinityActive = System;
    KiReleaseLock(&Thread->ThreadLock);
    KiExitDispatcher(Thread);
}

VOID KiQueryUserAffinityThread(PKTHREAD Thread, PGROUP_AFFINITY Affinity)
{
    PKTHREAD Current = KiEnterLocked(&Thread->ThreadLock);
    *Affinity = Thread->UserAffinity;
    KiExitLocked(&Thread->ThreadLock, Current);
}

BOOLEAN KiSetUserAffinityThread(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, PGROUP_AFFINITY PreviousAffinity)
{
    BOOLEAN Valid = KiIsValidAffinity(Affinity) && KiMayUseProcessors(Affinity);
    PKTHREAD Current = KiEnterLocked(&Thread->ThreadLock);
    *PreviousAffinity = Thread->UserAffinity;
    if (Valid) {
        Thread->UserAffinity = *Affinity;
        if (!Thread->SystemAffinityActive) {
            KiStoreAffinity(Thread, Affinity);
        }
    }
    KiReleaseLock(&Thread->ThreadLock);
    /* 5 above: it may be queued for the old ones */
    KiAcquireLock(&KiProcessorWaitLock);
    for (PLIST_ENTRY Entry = KiProcessorWaitList.Flink; Entry != &KiProcessorWaitList; Entry = Entry->Flink) {
        PKI_PROCESSOR_WAITER Waiter = CONTAINING_RECORD(Entry, KI_PROCESSOR_WAITER, Entry);
        if (Waiter->Thread == Thread) {
            KiWakeWaiter(Waiter, KiWaiterWoken);
            break;
        }
    }
    KiExitLocked(&KiProcessorWaitLock, Current);
    return Valid;
}

VOID KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity, PGROUP_AFFINITY PreviousAffinity)
{
    static const GROUP_AFFINITY None;
    PKTHREAD Thread = KiCurrentThread();
    GROUP_AFFINITY Previous = Thread->SystemAffinityActive ? Thread->Affinity : None;
    KiVerifyAffinityLevel(Thread);
    if (KiIsValidAffinity(Affinity)) {
        KiChangeAffinity(Thread, Affinity, TRUE);
    }
    if (PreviousAffinity != NULL) {
        *PreviousAffinity = Previous;
    }
}

VOID KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAffinityLevel(Thread);
    if (!Thread->SystemAffinityActive) {
        return;
    }
    if (PreviousAffinity->Mask == 0) {
        GROUP_AFFINITY User = Thread->UserAffinity;
        KiChangeAffinity(Thread, &User, FALSE);
    } else if (KiIsValidAffinity(PreviousAffinity)) {
        KiChangeAffinity(Thread, PreviousAffinity, TRUE);
    }
}

KAFFINITY KeSetSystemAffinityThreadEx(KAFFINITY Affinity)
{
    GROUP_AFFINITY New = {.Mask = Affinity};
    GROUP_AFFINITY Previous;
    KeSetSystemGroupAffinityThread(&New, &Previous);
    return Previous.Mask;
}

VOID KeSetSystemAffinityThread(KAFFINITY Affinity)
{
    KeSetSystemAffinityThreadEx(Affinity);
}

VOID KeRevertToUserAffinityThreadEx(KAFFINITY Affinity)
{
    GROUP_AFFINITY Previous = {.Mask = Affinity};
    KeRevertToUserGroupAffinityThread(&Previous);
}

VOID KeRevertToUserAffinityThread(VOID)
{
    KeRevertToUserAffinityThreadEx(0);
}

/* Levels, and requesting and servicing interrupts of a processor. */

/*
 * The code names the condition that does not hold: "A call to KeLowerIrql is valid if it specifies NewIrql <= CurrentIrql.
 * A call to KeRaiseIrql is valid if the caller specifies NewIrql >= CurrentIrql." (the page of KeRaiseIrql)
 */
VOID KiRaiseIrqlFailure(KIRQL OldIrql, KIRQL NewIrql)
{
    KeBugCheckEx(IRQL_NOT_GREATER_OR_EQUAL, OldIrql, NewIrql, 0, (ULONG_PTR)__builtin_return_address(0));
}

VOID KiLowerIrqlFailure(KIRQL OldIrql, KIRQL NewIrql)
{
    KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, NewIrql, OldIrql, 0, (ULONG_PTR)__builtin_return_address(0));
}

KIRQL KeGetCurrentIrql(VOID)
{
    return KiCurrentThread()->Irql;
}

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
    return KiRaiseIrql(KiCurrentThread(), NewIrql);
}

VOID KfLowerIrql(KIRQL NewIrql)
{
    KiLowerIrql(KiCurrentThread(), NewIrql);
}

KIRQL KeRaiseIrqlToDpcLevel(VOID)
{
    return KiRaiseIrql(KiCurrentThread(), DISPATCH_LEVEL);
}

KIRQL KeRaiseIrqlToSynchLevel(VOID)
{
    return KiRaiseIrql(KiCurrentThread(), SYNCH_LEVEL);
}

/*
 * Below IPI_LEVEL: services what is pending on the thread's processor above the thread's level; the rest stays pending.
 * The flag is cleared before the requests are read, so a later request sets it again.
 */
VOID KiServiceInterrupts(PKTHREAD Thread, PKPRCB Prcb)
{
    BOOLEAN Left;
    do {
        /* acquire: pairs with the release in KiRequestInterrupt; the requests are visible */
        __atomic_fetch_and(&Prcb->Owner, ~KI_PRCB_INTERRUPT, __ATOMIC_ACQUIRE);
        KiServiceIpi(Thread, Prcb);
        Left = KiServiceDevices(Thread, Prcb);
    } while (!Left && (KiReadOwner(Prcb) & KI_PRCB_INTERRUPT) != 0);
    if (Left) {
        __atomic_fetch_or(&Prcb->Owner, KI_PRCB_INTERRUPT, __ATOMIC_RELAXED);
    }
}

BOOLEAN KiRequestInterrupt(PKTHREAD Thread, PKPRCB Prcb)
{
    /* release: pairs with the acquire in KiServiceInterrupts */
    ULONG_PTR Word = __atomic_fetch_or(&Prcb->Owner, KI_PRCB_INTERRUPT, __ATOMIC_RELEASE);
    PKTHREAD Owner = KiOwnerThread(Word);
    ULONG ThreadId;
    if (Owner == NULL) {
        return KiWakeIdleThread(Prcb);
    }
    if (Owner == Thread) {
        return Prcb == Thread->Prcb;
    }
    /* relaxed: a stale id interrupts a thread that finds nothing to do */
    ThreadId = __atomic_load_n(&Owner->ThreadId, __ATOMIC_RELAXED);
    if (ThreadId != 0) {
        HalInterruptThread(ThreadId);
    }
    return TRUE;
}

/*
 * A function on every processor at once.
 *
 * The calling processor is the source, all others are targets. The packet is in the source's PRCB.
 *
 *   source                                      target
 *   takes KiReverseStallIpiLock
 *   writes the packet, SignalDone of each target
 *   interrupts each target, raises to IPI_LEVEL  takes the packet out of SignalDone, raises to IPI_LEVEL
 *   waits until TargetCount is 0                 TargetCount -= 1
 *   PacketBarrier = 1                            waits for PacketBarrier
 *   runs the function                            runs the function
 *   waits until TargetsActive is 0               TargetsActive -= 1
 *   releases the lock                            continues
 *
 * 1. SignalDone is taken by exchange, and only by the owner of the processor: each processor runs the function once.
 * 2. From writing SignalDone until TargetsActive reaches 0 the source holds the lock, so packets never overlap, and
 *    TargetsActive is the last thing that a target touches.
 * 3. A thread that waits for the lock does so below IPI_LEVEL and polls for interrupts, so it is a target meanwhile.
 * 4. The source takes a processor without an owner for which the host refuses a thread. The source is then the target
 *    too: it runs the function for that processor after its own, and releases the processor when it lowers its level
 *    below DISPATCH_LEVEL.
 * 5. The lock is not held in a dispatcher section: a fork need not wait for it, the child frees it.
 */

static VOID KiAwaitCount(PKTHREAD Thread, volatile ULONG *Count, ULONG Value)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release of the thread that counts or opens the barrier */
    while (__atomic_load_n(Count, __ATOMIC_ACQUIRE) != Value) {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
    }
}

static ULONG_PTR KiRunBroadcast(PKTHREAD Thread, PKPRCB Prcb, PKPRCB Source)
{
    PVOID ExceptionList = Thread->ExceptionList;
    Thread->ExceptionList = NULL;
    Thread->Prcb = Prcb;
    Prcb->InterruptCount += 1;
    ULONG_PTR Result = Source->WorkerRoutine(Source->WorkerContext);
    Thread->ExceptionList = ExceptionList;
    return Result;
}

VOID KiServiceIpi(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL OldIrql = Thread->Irql;
    /* relaxed: a hint, the exchange below decides */
    if (__atomic_load_n(&Prcb->SignalDone, __ATOMIC_RELAXED) == NULL) {
        return;
    }
    KiSetIrql(Thread, IPI_LEVEL);
    /* acquire: pairs with the release in KiSendPackets */
    PKPRCB Source = __atomic_exchange_n(&Prcb->SignalDone, NULL, __ATOMIC_ACQUIRE);
    if (Source != NULL) {
        __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELEASE);
        KiAwaitCount(Thread, &Source->PacketBarrier, 1);
        KiRunBroadcast(Thread, Prcb, Source);
        __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELEASE);
    }
    KiSetIrql(Thread, OldIrql);
}

static VOID KiSendPackets(PKTHREAD Thread, PKPRCB Source)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Target = KiProcessorBlock[Number];
        if (Target == Source) {
            continue;
        }
        /* release: pairs with the acquire in KiServiceIpi */
        __atomic_store_n(&Target->SignalDone, Source, __ATOMIC_RELEASE);
        /* Requirement 4. If another thread has become the owner meanwhile, it finds the packet. */
        if (!KiRequestInterrupt(Thread, Target) && KiTakeBesideOwn(Thread, Target)) {
            __atomic_store_n(&Target->SignalDone, NULL, __ATOMIC_RELAXED);
            __atomic_fetch_sub(&Source->TargetCount, 1, __ATOMIC_RELAXED);
        }
    }
}

/* Repeats the interrupt now and then for targets that have not taken their packet. */
static VOID KiAwaitArrivals(PKTHREAD Thread, PKPRCB Source)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release in KiServiceIpi */
    for (ULONG Looks = 1; __atomic_load_n(&Source->TargetCount, __ATOMIC_ACQUIRE) != 0; Looks += 1) {
        KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        for (ULONG Number = 0; Number < KeNumberProcessors && Looks % KI_LOOKS_BEFORE_REPEAT == 0; Number++) {
            if (__atomic_load_n(&KiProcessorBlock[Number]->SignalDone, __ATOMIC_RELAXED) == Source) {
                KiRequestInterrupt(Thread, KiProcessorBlock[Number]);
            }
        }
    }
}

static ULONG_PTR KiBroadcast(PKTHREAD Thread, PKPRCB Source, PKIPI_BROADCAST_WORKER Function, ULONG_PTR Context)
{
    Source->WorkerRoutine = Function;
    Source->WorkerContext = Context;
    __atomic_store_n(&Source->TargetCount, KeNumberProcessors - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&Source->TargetsActive, KeNumberProcessors - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&Source->PacketBarrier, 0, __ATOMIC_RELAXED);
    KiSendPackets(Thread, Source);
    KiSetIrql(Thread, IPI_LEVEL);
    KiAwaitArrivals(Thread, Source);
    /* release: what every processor did before it arrived happens before the function runs anywhere */
    __atomic_store_n(&Source->PacketBarrier, 1, __ATOMIC_RELEASE);
    ULONG_PTR Result = KiRunBroadcast(Thread, Source, Source);
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) { /* requirement 4 */
        PKPRCB Target = KiProcessorBlock[Number];
        if (Target != Source && KiOwnerThread(KiReadOwner(Target)) == Thread) {
            KiRunBroadcast(Thread, Target, Source);
            __atomic_fetch_sub(&Source->TargetsActive, 1, __ATOMIC_RELAXED);
        }
    }
    Thread->Prcb = Source;
    KiAwaitCount(Thread, &Source->TargetsActive, 0);
    return Result;
}

ULONG_PTR KeIpiGenericCall(PKIPI_BROADCAST_WORKER BroadcastFunction, ULONG_PTR Context)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql >= IPI_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, IPI_LEVEL - 1, OldIrql, 0, (ULONG_PTR)KeIpiGenericCall);
    }
    KiStartIdleThreads(Thread);
    KiRaiseIrql(Thread, OldIrql < SYNCH_LEVEL ? SYNCH_LEVEL : OldIrql);
    KiAcquireLock(&KiReverseStallIpiLock);
    ULONG_PTR Result = KiBroadcast(Thread, Thread->Prcb, BroadcastFunction, Context);
    KiReleaseLock(&KiReverseStallIpiLock);
    KiLowerIrql(Thread, OldIrql);
    return Result;
}

/*
 * Memory nodes, and callbacks for processor changes.
 *
 * Which processors a node has is read from the host at the first query and kept. Two threads that query first both
 * read, and the loser frees its table.
 */

typedef struct _KI_NODES {
    USHORT Highest;
    USHORT NodeOf[]; /* a processor's node */
} KI_NODES, *PKI_NODES;

static PKI_NODES KiNodes;

/* NULL: no memory. */
static PKI_NODES KiReadNodes(VOID)
{
    PHAL_RELATION Relations;
    ULONG Count;
    PKI_NODES Nodes = HalAllocate(sizeof(KI_NODES) + KeNumberProcessors * sizeof(USHORT), sizeof(PVOID));
    if (Nodes == NULL || !HalQueryTopology(KeNumberProcessors, &Relations, &Count)) {
        HalFree(Nodes);
        return NULL;
    }
    for (ULONG i = 0; i < Count; i++) {
        for (ULONG Number = 0; Relations[i].Kind == HalNode && Number < KeNumberProcessors; Number++) {
            if (Relations[i].Processors[Number / 64] & (1ull << Number % 64)) {
                Nodes->NodeOf[Number] = (USHORT)Relations[i].Number;
                Nodes->Highest = Nodes->NodeOf[Number] > Nodes->Highest ? Nodes->NodeOf[Number] : Nodes->Highest;
            }
        }
    }
    HalFree(Relations);
    return Nodes;
}

static PKI_NODES KiQueryNodes(VOID)
{
    /* acquire: pairs with the release of the compare-exchange */
    PKI_NODES Nodes = __atomic_load_n(&KiNodes, __ATOMIC_ACQUIRE);
    if (Nodes == NULL) {
        PKI_NODES Fresh = KiReadNodes();
        if (Fresh == NULL ||
            __atomic_compare_exchange_n(&KiNodes, &Nodes, Fresh, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return Fresh;
        }
        HalFree(Fresh);
    }
    return Nodes;
}

/* Without memory for the table all processors are in node 0. */
static USHORT KiNodeOf(PKI_NODES Nodes, ULONG Processor)
{
    return Nodes != NULL ? Nodes->NodeOf[Processor] : 0;
}

USHORT KeQueryHighestNodeNumber(VOID)
{
    PKI_NODES Nodes = KiQueryNodes();
    return Nodes != NULL ? Nodes->Highest : 0;
}

USHORT KeGetCurrentNodeNumber(VOID)
{
    return KiNodeOf(KiQueryNodes(), KeGetCurrentProcessorNumberEx(NULL));
}

/* The groups in which a node has processors, as many as there is room for. Returns how many there are. */
static USHORT KiAffinitiesOfNode(USHORT NodeNumber, PGROUP_AFFINITY Affinities, USHORT Room)
{
    PKI_NODES Nodes = KiQueryNodes();
    USHORT Used = 0;
    for (USHORT Group = 0; Group < KeQueryActiveGroupCount(); Group++) {
        GROUP_AFFINITY Affinity = {.Group = Group};
        for (ULONG Number = 0; Number < KeQueryActiveProcessorCountEx(Group); Number++) {
            if (KiNodeOf(Nodes, (ULONG)Group * MAXIMUM_PROC_PER_GROUP + Number) == NodeNumber) {
                Affinity.Mask |= (KAFFINITY)1 << Number;
            }
        }
        if (Affinity.Mask != 0 && Used < Room) {
            Affinities[Used] = Affinity;
        }
        Used = (USHORT)(Used + (Affinity.Mask != 0));
    }
    return Used;
}

static USHORT KiProcessorsOfNode(USHORT NodeNumber)
{
    PKI_NODES Nodes = KiQueryNodes();
    USHORT Count = 0;
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        Count = (USHORT)(Count + (KiNodeOf(Nodes, Number) == NodeNumber));
    }
    return Count;
}

VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, PGROUP_AFFINITY Affinity, PUSHORT Count)
{
    GROUP_AFFINITY First = {0};
    KiAffinitiesOfNode(NodeNumber, &First, 1);
    if (Affinity != NULL) {
        *Affinity = First;
    }
    if (Count != NULL) {
        *Count = (USHORT)__builtin_popcountll(First.Mask);
    }
}

NTSTATUS KeQueryNodeActiveAffinity2(USHORT NodeNumber, PGROUP_AFFINITY GroupAffinities, USHORT GroupAffinitiesCount,
                                    PUSHORT GroupAffinitiesRequired)
{
    USHORT Required;
    if (NodeNumber > KeQueryHighestNodeNumber()) {
        return STATUS_INVALID_PARAMETER;
    }
    Required = KiAffinitiesOfNode(NodeNumber, GroupAffinities, GroupAffinitiesCount);
    *GroupAffinitiesRequired = Required;
    return Required <= GroupAffinitiesCount ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL;
}

USHORT KeQueryNodeActiveProcessorCount(USHORT NodeNumber)
{
    return KiProcessorsOfNode(NodeNumber);
}

USHORT KeQueryNodeMaximumProcessorCount(USHORT NodeNumber)
{
    return KiProcessorsOfNode(NodeNumber);
}

/*
 * Processor changes. None is ever added, so a registration sees the existing ones, if it asks for them. A processor is
 * added in two steps; if the callback refuses one in the first, it gets a failure for that one and for those before.
 */

typedef struct _KI_PROCESSOR_CALLBACK {
    PPROCESSOR_CALLBACK_FUNCTION Function;
    PVOID Context;
} KI_PROCESSOR_CALLBACK, *PKI_PROCESSOR_CALLBACK;

static NTSTATUS KiNotifyOfProcessor(PKI_PROCESSOR_CALLBACK Callback, ULONG Number,
                                    KE_PROCESSOR_CHANGE_NOTIFY_STATE State, NTSTATUS Status)
{
    KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT Change = {.State = State, .NtNumber = Number, .Status = Status};
    NTSTATUS Operation = STATUS_SUCCESS;
    KeGetProcessorNumberFromIndex(Number, &Change.ProcNumber);
    Callback->Function(Callback->Context, &Change, &Operation);
    return State == KeProcessorAddStartNotify ? Operation : STATUS_SUCCESS;
}

static BOOLEAN KiNotifyOfExisting(PKI_PROCESSOR_CALLBACK Callback)
{
    NTSTATUS Status = STATUS_SUCCESS;
    ULONG Started = 0;
    while (Started < KeNumberProcessors && NT_SUCCESS(Status)) {
        Status = KiNotifyOfProcessor(Callback, Started++, KeProcessorAddStartNotify, STATUS_SUCCESS);
    }
    for (ULONG Number = 0; Number < Started; Number++) {
        KiNotifyOfProcessor(Callback, Number,
                            NT_SUCCESS(Status) ? KeProcessorAddCompleteNotify : KeProcessorAddFailureNotify, Status);
    }
    return NT_SUCCESS(Status);
}

PVOID KeRegisterProcessorChangeCallback(PPROCESSOR_CALLBACK_FUNCTION CallbackFunction, PVOID CallbackContext,
                                        ULONG Flags)
{
    PKI_PROCESSOR_CALLBACK Callback;
    if (CallbackFunction == NULL || (Flags & ~(ULONG)KE_PROCESSOR_CHANGE_ADD_EXISTING)) {
        return NULL;
    }
    Callback = HalAllocate(sizeof(*Callback), sizeof(PVOID));
    if (Callback == NULL) {
        return NULL;
    }
    *Callback = (KI_PROCESSOR_CALLBACK){CallbackFunction, CallbackContext};
    if ((Flags & KE_PROCESSOR_CHANGE_ADD_EXISTING) && !KiNotifyOfExisting(Callback)) {
        HalFree(Callback);
        return NULL;
    }
    return Callback;
}

VOID KeDeregisterProcessorChangeCallback(PVOID CallbackHandle)
{
    HalFree(CallbackHandle);
}
