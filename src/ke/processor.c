/*
 * processor.c: who owns which processor. The theory of the Owner word is in prcb.h.
 *
 * A thread that finds every processor busy that it may run on queues up here and sleeps. An owner that gives its
 * processor back looks through the queue:
 *
 * 1. The longest waiting thread that may run on this processor is woken, and tries again like everybody else. Whoever
 *    runs already may be faster: between two threads that both run all the time a processor changes hands without
 *    anybody being put to sleep and woken.
 * 2. A thread that was woken KI_WAKES_BEFORE_HANDOVER times for nothing gets the processor itself: its address goes
 *    into the Owner word in place of the one who gives back. So nobody starves. To hand over every time was rejected,
 *    because then the processor idles while the host brings the next owner to life, and everybody queues up behind it.
 * 3. A queued thread has marked (W) every processor that it may run on, under KiProcessorWaitLock, and found each of
 *    them busy while doing so. Whoever gives back a marked processor takes the same lock, so it sees the thread queued.
 * 4. A processor that is given back with others still queued for it (W stays set) is taken by the thread that was woken,
 *    or has been taken by somebody else: whoever gives it back the next time looks through the queue again. So the woken
 *    thread tries that processor first, though it might run on another one: those behind it may have no other.
 * 5. Whoever changes the affinity of a queued thread wakes it, so that it marks the processors that it may run on now.
 */
#include "irql.h"

#include "debugdata.h"
#include "dpc.h"
#include "idle.h"
#include "interrupt.h"
#include "ipi.h"
#include "park.h"
#include "queuedlock.h"

#define KI_WAKES_BEFORE_HANDOVER 4

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

/* Bounded by the count too: the affinity may change meanwhile, and the first processor never come again. */
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

/* Marks a busy processor; a free one is taken. */
static BOOLEAN KiTryOrMarkProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word = KiReadOwner(Prcb);
    while (!(Word & KI_PRCB_WAITERS) || KiOwnerThread(Word) == NULL) {
        if (KiTryAcquireProcessor(Thread, Prcb)) {
            return TRUE;
        }
        Word = KiReadOwner(Prcb);
        /* relaxed: the mark says no more than that the lock is to be taken, and the lock orders the rest */
        if (KiOwnerThread(Word) != NULL &&
            __atomic_compare_exchange_n(&Prcb->Owner, &Word, Word | KI_PRCB_WAITERS, FALSE, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            break;
        }
    }
    return FALSE;
}

static BOOLEAN KiTryOrMarkProcessors(PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        if (KiMayRunOn(Thread, Number) && KiTryOrMarkProcessor(Thread, KiProcessorBlock[Number])) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Who was woken for nothing goes back to the head of the queue. */
static BOOLEAN KiQueueForProcessor(PKI_PROCESSOR_WAITER Waiter)
{
    BOOLEAN Queued = FALSE;
    KiEnterDispatcher(Waiter->Thread);
    KiAcquireLock(&KiProcessorWaitLock);
    if (!KiTryOrMarkProcessors(Waiter->Thread)) {
        Queued = TRUE;
        Waiter->State = KiWaiterQueued;
        Waiter->Prcb = NULL;
        if (Waiter->Wakes == 0) {
            InsertTailList(&KiProcessorWaitList, &Waiter->Entry);
        } else {
            InsertHeadList(&KiProcessorWaitList, &Waiter->Entry);
        }
    }
    KiReleaseLock(&KiProcessorWaitLock);
    KiExitDispatcher(Waiter->Thread);
    return Queued;
}

static KI_WAITER_STATE KiSleepInQueue(PKI_PROCESSOR_WAITER Waiter)
{
    KiSleepWhile(&Waiter->State, KiWaiterQueued); /* its acquire pairs with the release in KiWakeWaiter */
    return (KI_WAITER_STATE)__atomic_load_n(&Waiter->State, __ATOMIC_RELAXED);
}

static VOID KiWaitForProcessor(PKTHREAD Thread)
{
    KI_PROCESSOR_WAITER Waiter = {.Thread = Thread};
    while (KiQueueForProcessor(&Waiter)) {
        if (KiSleepInQueue(&Waiter) == KiWaiterOwns) {
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

/* The waiter is on the other thread's stack: it may be gone after the store. */
static VOID KiWakeWaiter(PKI_PROCESSOR_WAITER Waiter, KI_WAITER_STATE State)
{
    __atomic_store_n(&Waiter->State, State, __ATOMIC_RELEASE);
    HalDispatch.Wake(&Waiter->State, 1);
}

/* With KiProcessorWaitLock held. FALSE: there is work on this processor first. */
static BOOLEAN KiGiveProcessorTo(PKI_PROCESSOR_WAITER Waiter, PKTHREAD Thread, PKPRCB Prcb)
{
    BOOLEAN Handover = Waiter != NULL && Waiter->Wakes >= KI_WAKES_BEFORE_HANDOVER;
    ULONG_PTR Word = (ULONG_PTR)Thread | KI_PRCB_WAITERS;
    ULONG_PTR New = Handover ? (ULONG_PTR)Waiter->Thread : 0;
    if (Waiter != NULL && KiNextWaiterFor(Prcb, &Waiter->Entry) != NULL) {
        New |= KI_PRCB_WAITERS;
    }
    /* release: pairs with the acquire of the next owner */
    if (!__atomic_compare_exchange_n(&Prcb->Owner, &Word, New, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        return FALSE;
    }
    if (Waiter != NULL) {
        RemoveEntryList(&Waiter->Entry);
        Waiter->Prcb = Prcb;
        KiWakeWaiter(Waiter, Handover ? KiWaiterOwns : KiWaiterWoken);
    }
    return TRUE;
}

/* Called by a thread in the dispatcher when the other thread has its new affinity. */
VOID KiRequeueForProcessor(PKTHREAD Thread)
{
    KiAcquireLock(&KiProcessorWaitLock);
    for (PLIST_ENTRY Entry = KiProcessorWaitList.Flink; Entry != &KiProcessorWaitList; Entry = Entry->Flink) {
        PKI_PROCESSOR_WAITER Waiter = CONTAINING_RECORD(Entry, KI_PROCESSOR_WAITER, Entry);
        if (Waiter->Thread == Thread) {
            RemoveEntryList(Entry);
            KiWakeWaiter(Waiter, KiWaiterWoken);
            break;
        }
    }
    KiReleaseLock(&KiProcessorWaitLock);
}

static BOOLEAN KiGiveProcessorAway(PKTHREAD Thread, PKPRCB Prcb)
{
    BOOLEAN Given;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&KiProcessorWaitLock);
    Given = KiGiveProcessorTo(KiNextWaiterFor(Prcb, &KiProcessorWaitList), Thread, Prcb);
    KiReleaseLock(&KiProcessorWaitLock);
    KiExitDispatcher(Thread);
    return Given;
}

/* Does what is to be done before the processor may be given back; returns the word that says there is nothing left. */
static ULONG_PTR KiFinishProcessorWork(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word;
    while (((Word = KiReadOwner(Prcb)) & (KI_PRCB_INTERRUPT | KI_PRCB_DPC)) != 0) {
        if (Word & KI_PRCB_INTERRUPT) {
            KiServiceInterrupts(Thread, Prcb);
        } else {
            KiRetireDpcList(Thread, Prcb);
        }
    }
    return Word;
}

static BOOLEAN KiTryReleaseProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    ULONG_PTR Word = KiFinishProcessorWork(Thread, Prcb);
    if (Word & KI_PRCB_WAITERS) {
        return KiGiveProcessorAway(Thread, Prcb);
    }
    /* release: pairs with the acquire of the next owner */
    return __atomic_compare_exchange_n(&Prcb->Owner, &Word, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* From DISPATCH_LEVEL or above to below it, where there is something to do on the way. */
DECLSPEC_NOINLINE VOID KiLowerIrqlSlow(PKTHREAD Thread, KIRQL NewIrql)
{
    KiSetIrql(Thread, DISPATCH_LEVEL);
    /* After a signal with Wait TRUE the thread is at DISPATCH_LEVEL without owning its processor: KiSetWaitNext. */
    while (KiOwnerThread(KiReadOwner(Thread->Prcb)) == Thread && !KiTryReleaseProcessor(Thread, Thread->Prcb)) {
    }
    Thread->Prcb = NULL;
    KiSetIrql(Thread, APC_LEVEL);
    KiAttendProcessors(Thread);
    KiLowerSoftwareIrql(Thread, NewIrql);
}

/* In a forked child: the survivor keeps what it owns, every other processor is free. DPCs stay queued. */
static VOID KiResetProcessor(PKPRCB Prcb, PKTHREAD Survivor)
{
    BOOLEAN Owned = KiOwnerThread(Prcb->Owner) == Survivor;
    Prcb->Owner = (Owned ? (ULONG_PTR)Survivor : 0) | (IsListEmpty(&Prcb->DpcData[KI_DPC_NORMAL].DpcListHead) ? 0 :
                                                                                                  KI_PRCB_DPC);
    Prcb->DpcRoutineActive = Prcb->DpcRoutineActive && Owned;
    Prcb->SignalDone = NULL;
    Prcb->InterruptQueue = NULL;
    Prcb->InterruptList = NULL;
    KiResetDpcData(Prcb, Owned);
    KiResetIdleThreads(Prcb);
}

VOID KiProcessorForkChild(PKTHREAD Survivor)
{
    KiProcessorWaitLock = 0;
    InitializeListHead(&KiProcessorWaitList);
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        KiResetProcessor(KiProcessorBlock[Number], Survivor);
    }
    KiResetLockQueues(Survivor);
    KiResetIpi();
    KiResetInterrupts(Survivor);
    KiInitializeCallDpc();
}
