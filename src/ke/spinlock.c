/* spinlock.c: spinlocks (theory in spinlock.h), queued spinlocks, and the locks of the kernel's own. */
#include "spinlock.h"
#include "debugdata.h"
#include "fork.h"
#include "lockorder.h"
#include "park.h"
#include "verifier.h"

#include "../trace/trace.h"

static inline BOOLEAN KiTryFreeLock(PVOID Lock)
{
    /* relaxed: a check before the compare-exchange, which has the acquire */
    return __atomic_load_n((PKI_LOCK)Lock, __ATOMIC_RELAXED) == 0 && KiTryAcquireLock(Lock);
}

DECLSPEC_NOINLINE VOID KiAcquireLockSlow(PKI_LOCK Lock)
{
    KiParkUntil(KiCurrentThread(), KiParkForSpinLock, KiTryFreeLock, (PVOID)Lock);
}

static inline BOOLEAN KiTryFreeSpinLock(PVOID SpinLock)
{
    PKTHREAD Thread = HalCurrentThread;
    /* relaxed: a check before the compare-exchange, which has the acquire */
    KSPIN_LOCK Word = __atomic_load_n((PKSPIN_LOCK)SpinLock, __ATOMIC_RELAXED);
    if (KiVerifierEnabled && KiSpinLockOwner(Word) == Thread) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)SpinLock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
    }
    return Word == 0 && KiTakeSpinLockFor(Thread, SpinLock);
}

DECLSPEC_NOINLINE VOID KiAcquireSpinLockSlow(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    KTRACE_CONTENTION_BEGIN(SpinLock, KiLockSpinLock, TRUE, 0);
    KiParkUntil(Thread, KiParkForSpinLock, KiTryFreeSpinLock, (PVOID)SpinLock);
    KTRACE_CONTENTION_END(SpinLock, KiLockSpinLock, TRUE);
}

DECLSPEC_NOINLINE VOID KiAcquireVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site)
{
    KiOrderCheck(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive);
    if (!KiTakeSpinLockFor(Thread, SpinLock)) {
        KiAcquireSpinLockSlow(Thread, SpinLock);
    }
    KiOrderHold(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive, Site);
}

DECLSPEC_NOINLINE BOOLEAN KiTryVerifiedSpinLock(PKTHREAD Thread, PKSPIN_LOCK SpinLock, PVOID Site)
{
    if (!KiTakeSpinLockFor(Thread, SpinLock)) {
        return FALSE;
    }
    KiOrderHold(Thread, SpinLock, KiOrderSpinLock, KiOrderExclusive, Site);
    return TRUE;
}

DECLSPEC_NOINLINE VOID KiVerifySpinLockOwned(PKTHREAD Thread, PKSPIN_LOCK SpinLock)
{
    KSPIN_LOCK Word = __atomic_load_n(SpinLock, __ATOMIC_RELAXED);
    /* KI_SPIN_LOCK_HELD alone: acquired before the verifier was on */
    if (KiSpinLockOwner(Word) != Thread && Word != KI_SPIN_LOCK_HELD) {
        KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)SpinLock, (ULONG_PTR)Thread, (ULONG_PTR)KiSpinLockOwner(Word), 0);
    }
    KiOrderRelease(Thread, SpinLock);
}

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock)
{
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELAXED);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiOrderInitialize(SpinLock, KiOrderSpinLock);
    }
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    KiAcquireSpinLock(Thread, SpinLock);
    return OldIrql;
}

KIRQL KeAcquireSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, SYNCH_LEVEL);
    KiAcquireSpinLock(Thread, SpinLock);
    return OldIrql;
}

/* Already at DISPATCH_LEVEL. Without the verifier the thread matters only if it has to wait, so the common path does
   not look it up. */

static DECLSPEC_NOINLINE VOID KiAcquireContendedAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    KiAcquireSpinLockSlow(KiCurrentThread(), SpinLock);
}

static DECLSPEC_NOINLINE VOID KiAcquireVerifiedAtDpcLevel(PKSPIN_LOCK SpinLock, PVOID Site)
{
    PKTHREAD Thread = KiCurrentThread();
    KiRequireDispatchLevel(Thread);
    KiAcquireVerifiedSpinLock(Thread, SpinLock, Site);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAcquireVerifiedAtDpcLevel(SpinLock, __builtin_return_address(0));
    } else if (__builtin_expect(!KiTakeSpinLock(SpinLock, KI_SPIN_LOCK_HELD), FALSE)) {
        KiAcquireContendedAtDpcLevel(SpinLock);
    }
}

BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAtDispatchLevel(Thread);
    return KiTrySpinLock(Thread, SpinLock);
}

static DECLSPEC_NOINLINE VOID KiReleaseVerifiedSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAtDispatchLevel(Thread);
    KiReleaseSpinLock(Thread, SpinLock);
    KiLowerIrql(Thread, NewIrql);
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL || KiVerifierEnabled, FALSE)) {
        KiReleaseVerifiedSpinLock(SpinLock, NewIrql);
        return;
    }
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
    KiLowerIrql(Thread, NewIrql);
}

static DECLSPEC_NOINLINE VOID KiReleaseVerifiedFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiRequireDispatchLevel(Thread);
    KiReleaseSpinLock(Thread, SpinLock);
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiReleaseVerifiedFromDpcLevel(SpinLock);
    } else {
        __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
    }
}

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
    /* relaxed: advisory only */
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED) == 0;
}

/*
 * Queued spinlocks.
 *
 * The lock's word is 0 or points to the newest entry of a queue, whose oldest entry is that of the owner:
 *
 *     lock --------------------------------------+
 *                                                v
 *     owner's entry --Next--> waiter's --Next--> waiter's --Next--> NULL
 *     Lock: &lock | OWNER     &lock | WAIT       &lock | WAIT | PARKED
 *
 * 1. Exclusion: an entry has OWNER if its exchange found the word 0, or if the previous owner turned its WAIT into OWNER.
 * 2. First come, first served: the exchange on the word determines an entry's place, and the owner hands the lock only
 *    to its own Next. No thread overtakes; a try only takes a free lock.
 * 3. A waiter spins on its own entry only, until its predecessor writes into it.
 * 4. An entry stays in place while it waits and until it is released. After the release no thread touches it: the
 *    releaser hands off with its only write to the next entry, and never reads that entry afterwards.
 * 5. An entry that neither waits nor owns has Next NULL and no bits in Lock. So the entries in the processors' LockQueue
 *    arrays are ready for reuse.
 * 6. A waiter that has exchanged the word and not yet linked itself to its predecessor delays the predecessor's
 *    release. The link is the next thing it does. If the waiter is preempted there, the releaser yields
 *    (KiParkForSpinLock). The predecessor's entry stays in place until then.
 * 7. A waiter that has spun for a while marks its entry PARKED and sleeps, and the handoff wakes it. Continuing to spin
 *    with yields was rejected: the lock goes to one particular waiter, and with more waiters than host processors the
 *    host runs that one last. There only the next in line spins for long. With a host processor for every processor all
 *    waiters may run, and a handoff to a spinning waiter costs a tenth of one to a sleeper: all waiters spin for long.
 * 8. In a forked child the queue has no waiter of the parent (fork.h). A waiter takes its place, links itself and registers in
 *    one dispatcher section, so the child has complete queues. The entry behind the first one has all that the child needs.
 *    If the first one has no bits, its thread was handing the lock on: the lock is free. What another thread owned stays owned.
 */

#define KI_LOCK_QUEUE_PARKED 4u
#define KI_LOCK_QUEUE_BITS ((ULONG_PTR)(LOCK_QUEUE_WAIT | LOCK_QUEUE_OWNER))

typedef struct _KI_NUMBERED_LOCK {
    KSPIN_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
} KI_NUMBERED_LOCK;

static KI_NUMBERED_LOCK KiNumberedLocks[LockQueueMaximumLock];
KD_REGISTER_ROOT(KiNumberedLocks);

/* relaxed: the caller's own entry, or advisory */
static ULONG_PTR KiReadQueueLock(PKSPIN_LOCK_QUEUE LockQueue)
{
    return (ULONG_PTR)__atomic_load_n(&LockQueue->Lock, __ATOMIC_RELAXED);
}

static VOID KiWriteQueueLock(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock, ULONG_PTR Bits)
{
    __atomic_store_n(&LockQueue->Lock, (PKSPIN_LOCK)((ULONG_PTR)SpinLock | Bits), __ATOMIC_RELAXED);
}

static PKSPIN_LOCK KiLockOfQueue(PKSPIN_LOCK_QUEUE LockQueue)
{
    return (PKSPIN_LOCK)(KiReadQueueLock(LockQueue) & ~KI_LOCK_QUEUE_BITS);
}

/* Value: the low half of an entry's Lock. KiParkOnWord's acquire pairs with the release in KiHandToNext. */
static inline BOOLEAN KiHasTurnInQueue(ULONG Value, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    return !(Value & LOCK_QUEUE_WAIT);
}

typedef struct _KI_QUEUED_ENTRY {
    KI_QUEUED Queued; /* Block: the entry */
    PKSPIN_LOCK_QUEUE Previous;
} KI_QUEUED_ENTRY;

static BOOLEAN KiIsNumberedLock(volatile ULONG_PTR *Word)
{
    return (ULONG_PTR)Word - (ULONG_PTR)KiNumberedLocks < sizeof(KiNumberedLocks);
}

/* Requirement 8. While an entry waits, the one before it is in place (4). KiResetLockQueues resets the numbered locks. */
static VOID KiInheritEntry(PKI_QUEUED Queued)
{
    PKSPIN_LOCK_QUEUE Previous = CONTAINING_RECORD(Queued, KI_QUEUED_ENTRY, Queued)->Previous;
    ULONG_PTR PreviousWord = KiReadQueueLock(Previous) & ~(ULONG_PTR)KI_LOCK_QUEUE_PARKED;
    if (KiIsNumberedLock(Queued->Word) || !(KiReadQueueLock(Queued->Block) & LOCK_QUEUE_WAIT) ||
        PreviousWord == ((ULONG_PTR)Queued->Word | LOCK_QUEUE_WAIT)) {
        return;
    }
    PKSPIN_LOCK_QUEUE Owner = PreviousWord != (ULONG_PTR)Queued->Word ? Previous : NULL;
    ULONG_PTR Newest = *Queued->Word;
    KiRecordInheritedQueue(Queued->Word, Newest, (ULONG_PTR)Owner);
    if (*Queued->Word != Newest && Owner != NULL) {
        Owner->Next = NULL; /* no memory: the lock was corrected at once */
    }
}

/* Takes a place and links to the entry before. FALSE: there is none, and the lock is acquired. In a dispatcher section. */
static BOOLEAN KiTakePlace(PKTHREAD Thread, PKSPIN_LOCK_QUEUE LockQueue, KI_QUEUED_ENTRY *Waiter, PBOOLEAN SpinsForLong)
{
    PKSPIN_LOCK SpinLock = (PKSPIN_LOCK)Waiter->Queued.Word;
    KiDropInheritedEntries(SpinLock);
    /* acquire, release: as in KiTakeFreeQueue */
    PKSPIN_LOCK_QUEUE Previous =
        (PKSPIN_LOCK_QUEUE)__atomic_exchange_n(SpinLock, (KSPIN_LOCK)LockQueue, __ATOMIC_ACQ_REL);
    if (Previous == NULL) {
        KiWriteQueueLock(LockQueue, SpinLock, LOCK_QUEUE_OWNER);
        return FALSE;
    }
    if (KiVerifierEnabled && ((ULONG_PTR)Previous & KI_SPIN_LOCK_HELD)) {
        KiExitDispatcher(Thread);
        KeBugCheckEx(SPIN_LOCK_INIT_FAILURE, (ULONG_PTR)SpinLock, (ULONG_PTR)Thread, (ULONG_PTR)Previous, 0);
    }
    /* The predecessor's line is read only where it matters: the store below would have to fetch it a second time. */
    *SpinsForLong = HalProcessorsAvailable(KeNumberProcessors) || !(KiReadQueueLock(Previous) & LOCK_QUEUE_WAIT);
    KiWriteQueueLock(LockQueue, SpinLock, LOCK_QUEUE_WAIT);
    Waiter->Previous = Previous;
    KiRegisterQueued(Thread, &Waiter->Queued);
    /* release: WAIT is set before the predecessor can find the entry; pairs with the acquire in KiIsLinked */
    __atomic_store_n(&Previous->Next, LockQueue, __ATOMIC_RELEASE);
    return TRUE;
}

static DECLSPEC_NOINLINE VOID KiWaitInQueue(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    PKTHREAD Thread = KiCurrentThread();
    volatile ULONG *Word = (volatile ULONG *)&LockQueue->Lock;
    KI_QUEUED_ENTRY Waiter = {.Queued = {.Word = SpinLock, .Block = LockQueue, .Inherit = KiInheritEntry}};
    BOOLEAN SpinsForLong;
    KiEnterDispatcher(Thread);
    BOOLEAN Waits = KiTakePlace(Thread, LockQueue, &Waiter, &SpinsForLong);
    KiExitDispatcher(Thread);
    if (!Waits) {
        return;
    }
    if (SpinsForLong) {
        KiParkOnWord(Thread, KiParkForNextInLine, Word, KI_LOCK_QUEUE_PARKED, KiHasTurnInQueue, NULL, NULL);
    } else {
        KiParkOnWord(Thread, KiParkForQueuedLock, Word, KI_LOCK_QUEUE_PARKED, KiHasTurnInQueue, NULL, NULL);
    }
    KiUnregisterQueued(Thread, &Waiter.Queued); /* in no section: an entry that does not wait means nothing to a child */
}

static inline BOOLEAN KiIsLinked(PVOID LockQueue)
{
    /* acquire: pairs with the release in KiWaitInQueue */
    return __atomic_load_n(&((PKSPIN_LOCK_QUEUE)LockQueue)->Next, __ATOMIC_ACQUIRE) != NULL;
}

static DECLSPEC_NOINLINE VOID KiHandToNext(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    PKSPIN_LOCK Owner = (PKSPIN_LOCK)((ULONG_PTR)SpinLock | LOCK_QUEUE_OWNER);
    if (__builtin_expect(KiForkDepth != 0, FALSE)) {
        KSPIN_LOCK Newest = (KSPIN_LOCK)LockQueue;
        KiDropInheritedEntries(SpinLock);
        /* release: pairs with the acquire of the next owner */
        if (!KiIsLinked(LockQueue) &&
            __atomic_compare_exchange_n(SpinLock, &Newest, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            return;
        }
    }
    KiParkUntil(KiCurrentThread(), KiParkForSpinLock, KiIsLinked, LockQueue);
    PKSPIN_LOCK_QUEUE Waiter = LockQueue->Next;
    __atomic_store_n(&LockQueue->Next, NULL, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiParkOnWord */
    if ((ULONG_PTR)__atomic_exchange_n(&Waiter->Lock, Owner, __ATOMIC_RELEASE) & KI_LOCK_QUEUE_PARKED) {
        HalDispatch.Wake((volatile ULONG *)&Waiter->Lock, 1);
    }
}

FORCEINLINE BOOLEAN KiTakeFreeQueue(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    KSPIN_LOCK Free = 0;
    /* acquire: pairs with the release in KiReleaseQueuedLock that stored 0. release: Next is NULL before a successor can
       find the entry; pairs with the acquire of the successor's exchange. */
    return __atomic_compare_exchange_n(SpinLock, &Free, (KSPIN_LOCK)LockQueue, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

FORCEINLINE VOID KiEnterQueue(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiTakeFreeQueue(LockQueue, SpinLock), 1)) {
        KiWriteQueueLock(LockQueue, SpinLock, LOCK_QUEUE_OWNER);
    } else {
        KiWaitInQueue(LockQueue, SpinLock);
    }
}

static DECLSPEC_NOINLINE VOID KiAcquireVerifiedQueuedLock(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock, PVOID Site)
{
    PKTHREAD Thread = KiCurrentThread();
    KiVerifyAcquire(Thread, SpinLock, KiHoldExclusive, KiOrderQueuedLock);
    KiEnterQueue(LockQueue, SpinLock);
    KiNoteAcquiredAt(Thread, SpinLock, KiHoldExclusive, KiOrderQueuedLock, Site);
}

FORCEINLINE VOID KiAcquireQueuedLock(PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAcquireVerifiedQueuedLock(LockQueue, SpinLock, __builtin_return_address(0));
    } else {
        KiEnterQueue(LockQueue, SpinLock);
    }
}

FORCEINLINE BOOLEAN KiTryQueuedLock(PKTHREAD Thread, PKSPIN_LOCK_QUEUE LockQueue, PKSPIN_LOCK SpinLock)
{
    KiVerifyAtDispatchLevel(Thread);
    if (!KiTakeFreeQueue(LockQueue, SpinLock)) {
        KiDropInheritedEntries(SpinLock); /* of a lock that was being released when the process forked */
        if (KiForkDepth == 0 || !KiTakeFreeQueue(LockQueue, SpinLock)) {
            return FALSE;
        }
    }
    KiWriteQueueLock(LockQueue, SpinLock, LOCK_QUEUE_OWNER);
    KiNoteAcquired(Thread, SpinLock, KiHoldExclusive, KiOrderQueuedLock);
    return TRUE;
}

/* Otherwise the release would wait for a successor that never comes. */
static DECLSPEC_NOINLINE VOID KiStopAtQueueNotOwner(PKSPIN_LOCK SpinLock)
{
    KeBugCheckEx(SPIN_LOCK_NOT_OWNED, (ULONG_PTR)SpinLock, (ULONG_PTR)KiCurrentThread(), 0, 0);
}

FORCEINLINE VOID KiReleaseQueuedLock(PKSPIN_LOCK_QUEUE LockQueue)
{
    ULONG_PTR Word = KiReadQueueLock(LockQueue);
    PKSPIN_LOCK SpinLock = (PKSPIN_LOCK)(Word & ~KI_LOCK_QUEUE_BITS);
    KSPIN_LOCK Newest = (KSPIN_LOCK)LockQueue;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiVerifyRelease(KiCurrentThread(), SpinLock, KiHoldExclusive);
    }
    if (__builtin_expect(!(Word & LOCK_QUEUE_OWNER), 0)) {
        KiStopAtQueueNotOwner(SpinLock);
    }
    KiWriteQueueLock(LockQueue, SpinLock, 0);
    /* With a successor the word points to another entry, and its line is in the newest waiter's cache: it is left
       alone. release: pairs with the acquire of the next owner */
    if (__builtin_expect(KiIsLinked(LockQueue) ||
                             !__atomic_compare_exchange_n(SpinLock, &Newest, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED),
                         0)) {
        KiHandToNext(LockQueue, SpinLock);
    }
}

/* The locks of the system, by number. */

VOID KiInitializeLockQueues(PKPRCB Prcb)
{
    for (ULONG Number = 0; Number < LockQueueMaximumLock; Number++) {
        Prcb->LockQueue[Number].Next = NULL;
        Prcb->LockQueue[Number].Lock = &KiNumberedLocks[Number].Lock;
    }
    Prcb->HeldLocks = 0;
    Prcb->HeldLocksUnnoted = 0;
}

/* In a forked child: the survivor keeps the locks that it owns, and they have no waiters. */
VOID KiResetLockQueues(PKTHREAD Survivor)
{
    for (ULONG Number = 0; Number < LockQueueMaximumLock; Number++) {
        KiNumberedLocks[Number].Lock = 0;
    }
    for (ULONG Processor = 0; Processor < KeNumberProcessors; Processor++) {
        PKPRCB Prcb = KiProcessorBlock[Processor];
        if (KiOwnerThread(Prcb->Owner) != Survivor) {
            KiInitializeLockQueues(Prcb);
            continue;
        }
        for (ULONG Number = 0; Number < LockQueueMaximumLock; Number++) {
            PKSPIN_LOCK_QUEUE LockQueue = &Prcb->LockQueue[Number];
            LockQueue->Next = NULL;
            if (KiReadQueueLock(LockQueue) & LOCK_QUEUE_OWNER) {
                KiNumberedLocks[Number].Lock = (KSPIN_LOCK)LockQueue;
            }
        }
    }
}

VOID KiReleaseNumberedLocks(PKTHREAD Thread)
{
    for (ULONG Number = 0; Number < LockQueueMaximumLock; Number++) {
        PKSPIN_LOCK_QUEUE LockQueue = &Thread->Prcb->LockQueue[Number];
        if (KiReadQueueLock(LockQueue) & LOCK_QUEUE_OWNER) {
            KiReleaseQueuedLock(LockQueue);
        }
    }
}

static VOID KiCheckLockNumber(KSPIN_LOCK_QUEUE_NUMBER Number)
{
    if (Number >= LockQueueMaximumLock) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
}

static KIRQL KiAcquireNumberedLock(KSPIN_LOCK_QUEUE_NUMBER Number, KIRQL NewIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiCheckLockNumber(Number);
    KIRQL OldIrql = KiRaiseIrql(Thread, NewIrql);
    KiAcquireQueuedLock(&Thread->Prcb->LockQueue[Number], &KiNumberedLocks[Number].Lock);
    return OldIrql;
}

static LOGICAL KiTryNumberedLock(KSPIN_LOCK_QUEUE_NUMBER Number, KIRQL NewIrql, PKIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiCheckLockNumber(Number);
    *OldIrql = KiRaiseIrql(Thread, NewIrql);
    if (KiTryQueuedLock(Thread, &Thread->Prcb->LockQueue[Number], &KiNumberedLocks[Number].Lock)) {
        return TRUE;
    }
    KiLowerIrql(Thread, *OldIrql);
    return FALSE;
}

KIRQL KeAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number)
{
    return KiAcquireNumberedLock(Number, DISPATCH_LEVEL);
}

KIRQL KeAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number)
{
    return KiAcquireNumberedLock(Number, SYNCH_LEVEL);
}

LOGICAL KeTryToAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql)
{
    return KiTryNumberedLock(Number, DISPATCH_LEVEL, OldIrql);
}

LOGICAL KeTryToAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql)
{
    return KiTryNumberedLock(Number, SYNCH_LEVEL, OldIrql);
}

VOID KeReleaseQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiCheckLockNumber(Number);
    KiRequireDispatchLevel(Thread);
    KiReleaseQueuedLock(&Thread->Prcb->LockQueue[Number]);
    KiLowerIrql(Thread, OldIrql);
}

VOID KeAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue)
{
    KiAcquireQueuedLock(LockQueue, KiLockOfQueue(LockQueue));
}

LOGICAL KeTryToAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue)
{
    return KiTryQueuedLock(KiCurrentThread(), LockQueue, KiLockOfQueue(LockQueue));
}

VOID KeReleaseQueuedSpinLockFromDpcLevel(PKSPIN_LOCK_QUEUE LockQueue)
{
    KiReleaseQueuedLock(LockQueue);
}

/* Locks of the caller, with the entry in the caller's handle. */

FORCEINLINE VOID KiAcquireInStack(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    __atomic_store_n(&LockHandle->LockQueue.Next, NULL, __ATOMIC_RELAXED);
    KiAcquireQueuedLock(&LockHandle->LockQueue, SpinLock);
}

VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    PKTHREAD Thread = KiCurrentThread();
    LockHandle->OldIrql = KiRaiseIrql(Thread, DISPATCH_LEVEL);
    KiAcquireInStack(SpinLock, LockHandle);
}

VOID KeAcquireInStackQueuedSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    PKTHREAD Thread = KiCurrentThread();
    LockHandle->OldIrql = KiRaiseIrql(Thread, SYNCH_LEVEL);
    KiAcquireInStack(SpinLock, LockHandle);
}

VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle)
{
    PKTHREAD Thread = KiCurrentThread();
    KiReleaseQueuedLock(&LockHandle->LockQueue);
    KiLowerIrql(Thread, LockHandle->OldIrql);
}

VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    KiAcquireInStack(SpinLock, LockHandle);
}

VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle)
{
    KiReleaseQueuedLock(&LockHandle->LockQueue);
}

/* The level to return to differs: a threaded DPC runs below DISPATCH_LEVEL, an ordinary one at it. */
VOID KeAcquireInStackQueuedSpinLockForDpc(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    KeAcquireInStackQueuedSpinLock(SpinLock, LockHandle);
}

VOID KeReleaseInStackQueuedSpinLockForDpc(PKLOCK_QUEUE_HANDLE LockHandle)
{
    KeReleaseInStackQueuedSpinLock(LockHandle);
}
