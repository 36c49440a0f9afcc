/*
 * fork.c: makes the child of a multithreaded process usable after a fork.
 *
 * Only the forking thread exists in the child, so no other thread may hold a lock of the kernel at that moment. Locks
 * are held in dispatcher sections only (KiEnterDispatcher), and so:
 *
 * 1. The forker sets KiForkPending, then passes a barrier on all threads, then reads every DispatcherDepth until it has
 *    seen each of them 0 once. A thread that enters stores its depth before it reads KiForkPending. So either the
 *    forker sees the depth, or the thread sees the fork.
 * 2. A thread that sees the fork when it enters its outermost section resets its depth and waits. A thread that is
 *    inside continues, nested sections too: others may wait for what it holds.
 * 3. The forker itself enters sections freely: other handlers of the program run between prepare and the fork.
 * 4. One fork at a time: the thread that sets KiForkPending from 0.
 * 5. An allocator may lock its heap over the fork, before our handler in the parent and until after ours in parent and
 *    child. So no thread uses the heap in a section (builds with the verifier check that), and both handlers leave it
 *    alone: hal defers frees, and APCs and threads that are requested wait for the late handlers (ownthread.h).
 *
 * In the child the threads that stayed behind count as ended: they wait for nothing, their mutants are abandoned, their
 * objects are signaled.
 */
#include "lockorder.h"
#include "fork.h"
#include "ownthread.h"
#include "park.h"
#include "../trace/trace.h"
#include "wait.h"

volatile ULONG KiForkPending;
ULONG KiForkDepth;
ULONG_PTR KiForkTag;
BOOLEAN KiDispatcherFence;
static PKTHREAD volatile KiForkingThread;

static VOID KiAwaitForkEnd(VOID)
{
    KiSleepWhile(&KiForkPending, 1); /* its acquire pairs with the release in KiEndFork */
}

VOID KiEnterDispatcherSlow(PKTHREAD Thread)
{
    /* relaxed: only the forking thread itself finds its own address here */
    if (__atomic_load_n(&KiForkingThread, __ATOMIC_RELAXED) == Thread) {
        return;
    }
    do {
        __atomic_store_n(&Thread->DispatcherDepth, 0, __ATOMIC_RELEASE);
        KiAwaitForkEnd();
        /* seq_cst, both: the store comes before the load; pairs with KiForkPrepare */
        __atomic_exchange_n(&Thread->DispatcherDepth, 1, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&KiForkPending, __ATOMIC_SEQ_CST) != 0);
}

static const KI_FORK_HOOKS *KiForkHooks;

VOID KiSetForkHooks(const KI_FORK_HOOKS *Hooks)
{
    __atomic_store_n(&KiForkHooks, Hooks, __ATOMIC_RELEASE);
}

/* For forks. Other callers stop the threads in the same way, without the hooks. */
VOID KiForkPrepareWithHooks(VOID)
{
    KiForkPrepare();
    /* acquire, both: pair with the release in KiSetForkHooks. A fork that does not see the hooks does not see the state
       that they handle either */
    const KI_FORK_HOOKS *Hooks = __atomic_load_n(&KiForkHooks, __ATOMIC_ACQUIRE);
    if (Hooks != NULL) {
        Hooks->Prepare();
    }
}

VOID KiForkParentWithHooks(BOOLEAN LateFollows)
{
    const KI_FORK_HOOKS *Hooks = __atomic_load_n(&KiForkHooks, __ATOMIC_ACQUIRE);
    if (Hooks != NULL) {
        Hooks->Parent();
    }
    KiForkParent(LateFollows);
}

VOID KiForkPrepare(VOID)
{
    PKTHREAD Forker = KiCurrentThread();
    ULONG Free = 0;
    Forker->SpecialApcDisable -= 1; /* others wait for this thread: it must not be suspended or terminated */
    /* seq_cst: pairs with KiEnterDispatcher where there is no barrier on all threads, and with KiEnterDispatcherSlow */
    while (!__atomic_compare_exchange_n(&KiForkPending, &Free, 1, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        KiAwaitForkEnd();
        Free = 0;
    }
    __atomic_store_n(&KiForkingThread, Forker, __ATOMIC_RELAXED);
    /* Orders KiForkPending before the depths below; pairs with KiEnterDispatcher. Where the host did not offer it at the
       start, KiDispatcherFence makes every entering thread do its part; if it is refused later, hal has another way. */
    HalBarrierAllThreads();
    ULONG SlotsUsed = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE);
    for (ULONG Slot = 0; Slot < SlotsUsed; Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        /* seq_cst: after KiForkPending was set; also acquires what KiExitDispatcher releases, so everything that the
           thread did in the section is visible */
        for (ULONG Round = 0; Thread != Forker && __atomic_load_n(&Thread->DispatcherDepth, __ATOMIC_SEQ_CST) != 0;
             Round++) {
            KiBackOff(Round);
        }
    }
}

static VOID KiEndFork(VOID)
{
    __atomic_store_n(&KiForkingThread, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&KiForkPending, 0, __ATOMIC_RELEASE);
    HalDispatch.Wake(&KiForkPending, MAXLONG);
}

/* Requirement 5: an APC might use the heap or suspend the thread, and a requested thread would be created. Without a
   late handler the thread interrupts itself: the interrupt is deferred until the thread has left the C library's
   fork. */
VOID KiForkParent(BOOLEAN LateFollows)
{
    PKTHREAD Forker = HalCurrentThread;
    KiEndFork();
    if (!LateFollows) {
        Forker->SpecialApcDisable += 1;
        if (KiIsDeliveryPending(Forker)) {
            KiInterruptCurrentThread(Forker);
        }
    }
}

VOID KiForkParentLate(VOID)
{
    PKTHREAD Forker = HalCurrentThread;
    Forker->SpecialApcDisable += 1;
    if (KiIsDeliveryPending(Forker)) {
        KiDeliverApc(Forker);
    }
}

/* The child. */

/* Queues of the parent. Theory in fork.h. */

typedef struct _KI_INHERITED_QUEUE {
    volatile ULONG_PTR *Word;
    ULONG_PTR Value;
    ULONG_PTR WithoutQueue;
} KI_INHERITED_QUEUE, *PKI_INHERITED_QUEUE;

static struct {
    KI_LOCK Lock;
    ULONG Count;
    ULONG Room;
    PKI_INHERITED_QUEUE Record;
} KiInheritedQueues;

/* The child has one thread. Without memory the lock is corrected at once, which is wrong only where the parent shares it. */
VOID KiRecordInheritedQueue(volatile ULONG_PTR *Word, ULONG_PTR Value, ULONG_PTR WithoutQueue)
{
    if (KiInheritedQueues.Count == KiInheritedQueues.Room) {
        ULONG Room = 2 * KiInheritedQueues.Room + 128;
        PKI_INHERITED_QUEUE Record = HalAllocatePages(Room * sizeof(*Record));
        if (Record == NULL) {
            __atomic_store_n(Word, WithoutQueue, __ATOMIC_RELAXED);
            return;
        }
        if (KiInheritedQueues.Record != NULL) {
            memcpy(Record, KiInheritedQueues.Record, KiInheritedQueues.Count * sizeof(*Record));
            HalFreePages(KiInheritedQueues.Record, KiInheritedQueues.Room * sizeof(*Record));
        }
        KiInheritedQueues.Record = Record;
        KiInheritedQueues.Room = Room;
    }
    KiInheritedQueues.Record[KiInheritedQueues.Count] = (KI_INHERITED_QUEUE){Word, Value, WithoutQueue};
    KiInheritedQueues.Count += 1;
}

VOID KiForeignQueue(volatile ULONG_PTR *Word, ULONG_PTR Value)
{
    HalPrint("interlock: the lock at %p has a waiter that this process did not create (its word is %p). Objects and locks "
             "in memory shared between processes are not supported; or the memory was overwritten\n",
             (PVOID)Word, (PVOID)Value);
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_CORRUPT_LIST_ENTRY, (ULONG_PTR)Word, Value, 0);
}

/* With the lock held. Count: there is none. */
static ULONG KiFindInheritedQueue(volatile ULONG_PTR *Word)
{
    ULONG Index = 0;
    while (Index < KiInheritedQueues.Count && KiInheritedQueues.Record[Index].Word != Word) {
        Index += 1;
    }
    return Index;
}

static VOID KiRemoveInheritedQueue(ULONG Index)
{
    /* release: the word was changed before; pairs with the acquire in KiDropInheritedEntries */
    __atomic_store_n(&KiInheritedQueues.Count, KiInheritedQueues.Count - 1, __ATOMIC_RELEASE);
    KiInheritedQueues.Record[Index] = KiInheritedQueues.Record[KiInheritedQueues.Count];
}

/* A word that has another value by now was initialized again: the lock is another one. A second fork may find that one, too. */
VOID KiDropInheritedEntries(PKSPIN_LOCK SpinLock)
{
    /* acquire: pairs with the release in KiRemoveInheritedQueue */
    if (__atomic_load_n(&KiInheritedQueues.Count, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    PKTHREAD Thread = KiEnterLocked(&KiInheritedQueues.Lock);
    ULONG Index;
    while ((Index = KiFindInheritedQueue(SpinLock)) != KiInheritedQueues.Count) {
        KI_INHERITED_QUEUE Record = KiInheritedQueues.Record[Index];
        PKSPIN_LOCK_QUEUE Owner = (PKSPIN_LOCK_QUEUE)Record.WithoutQueue;
        if (__atomic_load_n(SpinLock, __ATOMIC_RELAXED) == Record.Value) {
            if (Owner != NULL) {
                __atomic_store_n(&Owner->Next, NULL, __ATOMIC_RELAXED);
            }
            /* release: a thread that finds the owner's entry in the word links itself to it after that; pairs with the
               acquire of its exchange. A plain store: every other thread that could change the word comes here first */
            __atomic_store_n(SpinLock, Record.WithoutQueue, __ATOMIC_RELEASE);
        }
        KiRemoveInheritedQueue(Index);
    }
    KiExitLocked(&KiInheritedQueues.Lock, Thread);
}

/* Only the owner of the lock here changes an inherited word, so a word that is still Value does not change meanwhile. */
VOID KiDropInheritedQueue(volatile ULONG_PTR *Word, ULONG_PTR Value)
{
    PKTHREAD Thread = KiEnterLocked(&KiInheritedQueues.Lock);
    if (__atomic_load_n(Word, __ATOMIC_RELAXED) == Value) {
        PKI_INHERITED_QUEUE Record = KiInheritedQueues.Record;
        ULONG Index = 0;
        while (Index < KiInheritedQueues.Count && (Record[Index].Word != Word || Record[Index].Value != Value)) {
            Index += 1;
        }
        if (Index == KiInheritedQueues.Count) {
            KiForeignQueue(Word, Value);
        }
        /* relaxed: the threads that stayed behind did everything before the fork */
        __atomic_store_n(Word, Record[Index].WithoutQueue, __ATOMIC_RELAXED);
        KiRemoveInheritedQueue(Index);
    }
    KiExitLocked(&KiInheritedQueues.Lock, Thread);
}

static VOID KiInheritQueues(PKTHREAD Thread)
{
    for (PKI_QUEUED Queued = Thread->Queued; Queued != NULL; Queued = Queued->Outer) {
        Queued->Inherit(Queued);
    }
}

/* A mutant that was handed off while its new owner slept is not on the owner's list yet. */
static VOID KiClaimHandedMutant(PKTHREAD Thread, PDISPATCHER_HEADER Header)
{
    PKMUTANT Mutant = CONTAINING_RECORD(Header, KMUTANT, Header);
    if (KI_TYPE(KiReadHeader(Header)) != MutantObject || Mutant->OwnerThread != Thread) {
        return;
    }
    for (PLIST_ENTRY Entry = Thread->MutantListHead.Flink; Entry != &Thread->MutantListHead; Entry = Entry->Flink) {
        if (Entry == &Mutant->MutantListEntry) {
            return;
        }
    }
    KiTakeOwnershipOf(Mutant, Thread);
}

static VOID KiTakeOffWait(PKTHREAD Thread)
{
    ULONG Count = KiObjectBlocks(Thread);
    for (ULONG Index = 0; Index < Count; Index++) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        PDISPATCHER_HEADER Header = Block->Object;
        if (Block->BlockState == WaitBlockActive) {
            ULONG64 Word = KiLockObject(Header);
            KiUnlinkBlock(Block, WaitBlockInactive);
            KiUnlockObject(Header, Word);
        }
        KiClaimHandedMutant(Thread, Header);
    }
    __atomic_store_n(&Thread->WaitRegister, 0, __ATOMIC_RELAXED);
}

static BOOLEAN KiIsInUse(PKTHREAD Thread, KI_SLOT_USE Use)
{
    return __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) == (ULONG)Use;
}

/* Afterwards no object has a waiter that stayed behind. A thread that ended before the fork is freed with its
   references. */
static VOID KiOrphanThreads(PKTHREAD Survivor)
{
    for (ULONG Slot = 0; Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE); Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        if (Thread == Survivor || !KiIsInUse(Thread, KiSlotUsed) || Thread->State == Terminated) {
            continue;
        }
        __atomic_store_n(&KiSlotOfThread(Thread)->Use, KiSlotOrphaned, __ATOMIC_RELAXED);
        KiInheritQueues(Thread);
        Thread->Queued = NULL;
        if (Thread->State == Waiting || Thread->State == DeferredReady) {
            KiTakeOffWait(Thread);
        }
        /* so that its APCs are run down, not delivered */
        __atomic_store_n(&Thread->State, Terminated, __ATOMIC_RELAXED);
        KiForgetHostThread(Thread);
    }
}

static VOID KiEndOrphans(VOID)
{
    for (ULONG Slot = 0; Slot < __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE); Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        if (KiIsInUse(Thread, KiSlotOrphaned)) {
            if (KiThreadObjectRoutines.Orphan != NULL) {
                KiThreadObjectRoutines.Orphan(Thread);
            }
            KiFlushThreadApcs(Thread);
            KiAbandonMutants(Thread);
            KiLeaveQueue(Thread);
            KiEndThread(Thread);
            KiDropThread(Thread);
        }
    }
}

VOID KiForkChild(VOID)
{
    PKTHREAD Survivor = HalCurrentThread;
    ULONG ThreadId = HalCurrentThreadId();
    UCHAR Use = Survivor->OwnThreadUse;
    KiEndFork();
    Survivor->SpecialApcDisable += 1;
    Survivor->OwnThreadUse = KI_CREATION_FORBIDDEN; /* 5 above */
    KiStopForkChild(Survivor);

    KiForkDepth = (KiForkDepth + 1) & MAXLONG; /* critical sections have 31 bits for it: rtl/criticalsection.c */
    KiForkTag = (ULONG_PTR)KiForkDepth << KI_FORK_TAG_SHIFT;
    Survivor->ThreadIdBeforeFork = Survivor->ThreadId;
    KiRemoveThreadId(Survivor, Survivor->ThreadId);
    KiInsertThreadId(Survivor, ThreadId);
    __atomic_store_n(&Survivor->ThreadId, ThreadId, __ATOMIC_RELAXED);
    KiInitialProcess.ProcessId = HalCurrentProcessId();
    KTRACE_FORK_CHILD();
    KiInheritQueues(Survivor); /* an APC that forks inside a wait */

    KiOrderForkChild(Survivor);
    KiSlotInitializationLock = 0;
    KiOrphanThreads(Survivor);
    KiRebuildFreeSlots();
    KiOwnThreadForkChild();
    KiProcessorForkChild(Survivor);
    KiTimerForkChild();
    KiEndOrphans();
    if (KiForkHooks != NULL) {
        KiForkHooks->Child();
    }
    Survivor->OwnThreadUse = Use;
}

/* After the handlers of an allocator. */
VOID KiForkChildLate(VOID)
{
    if (HalCurrentThread != NULL) {
        KiStartWantedThreads(HalCurrentThread);
    }
}
