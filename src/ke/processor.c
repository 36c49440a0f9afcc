/*
 * processor.c: which thread owns which processor, and where a thread may run. The theory of the Owner word is in prcb.h.
 *
 * A thread that finds every processor that it may use busy queues here and sleeps. An owner that releases its processor
 * searches the queue:
 *
 * 1. It wakes the first queued thread that may run on this processor, which then competes with the others. A running
 *    thread may be faster: two threads that run all the time exchange a processor without sleeping.
 * 2. A thread that was woken KI_WAKES_BEFORE_HANDOFF times in vain is handed the processor: its address replaces the
 *    owner's in the Owner word. So no thread starves. Handing off every time was rejected: the processor would be idle
 *    while the host schedules the next owner, and the queue would grow behind it.
 * 3. A queued thread has marked (W) every processor that it may run on, under KiProcessorWaitLock, and found each of
 *    them busy while doing so. An owner that releases a marked processor takes the same lock, so it sees the thread.
 * 4. A processor that is released with threads still queued for it (W stays set) is taken by the woken thread or by
 *    another one; that owner searches the queue again. So the woken thread tries this processor first, even if it may
 *    run elsewhere: the threads behind it may have no other.
 * 5. A thread that changes the affinity of a queued thread wakes it, so that it marks its new processors.
 */
#include "irql.h"

#include "debugdata.h"
#include "dpc.h"
#include "interrupt.h"
#include "park.h"
#include "spinlock.h"

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

/* FALSE: the thread owns a processor now. A thread that was woken in vain returns to the head of the queue. */
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

/* FALSE: there is work on this processor first. */
static BOOLEAN KiGiveProcessorAway(PKTHREAD Thread, PKPRCB Prcb)
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
    return Given;
}

/* Does the work that has to precede the release of the processor, and tries to release it. */
static BOOLEAN KiTryReleaseProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word;
    while (((Word = KiReadOwner(Prcb)) & (KI_PRCB_INTERRUPT | KI_PRCB_DPC)) != 0) {
        if (Word & KI_PRCB_INTERRUPT) {
            KiServiceInterrupts(Thread, Prcb);
        } else {
            KiRetireDpcList(Thread, Prcb);
        }
    }
    if (Word & KI_PRCB_WAITERS) {
        return KiGiveProcessorAway(Thread, Prcb);
    }
    /* release: pairs with the acquire of the next owner */
    return __atomic_compare_exchange_n(&Prcb->Owner, &Word, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* From DISPATCH_LEVEL or above to below it, with work to do on the way. */
DECLSPEC_NOINLINE VOID KiLowerIrqlSlow(PKTHREAD Thread, KIRQL NewIrql)
{
    KiSetIrql(Thread, DISPATCH_LEVEL);
    /* After a signal with Wait TRUE the thread is at DISPATCH_LEVEL without owning its processor: KiSetWaitNext. */
    while (KiOwnerThread(KiReadOwner(Thread->Prcb)) == Thread && !KiTryReleaseProcessor(Thread, Thread->Prcb)) {
    }
    Thread->Prcb = NULL;
    KiSetIrql(Thread, APC_LEVEL);
    KiReturnTakenProcessors(Thread);
    KiLowerSoftwareIrql(Thread, NewIrql);
}

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
    KiResetIpi();
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
