/*
 * queue.c: KQUEUE.
 *
 * Under the header's lock: EntryListHead with SignalState entries, CurrentCount, ThreadListHead. CurrentCount is the
 * number of threads in ThreadListHead that run: a thread leaves it when it starts to wait for anything (KTHREAD
 * QueueBlocked) and comes back when that wait ends, above MaximumCount if need be.
 *
 * 1. While an entry is queued and CurrentCount < MaximumCount, nobody is linked for dequeueing: an entry that arrives,
 *    and a thread that blocks, hand over to the newest waiting thread at once. Except for a while: what an APC inserts
 *    that has interrupted a removal from the same queue stays queued, for the thread that it runs on, which is about to
 *    go on waiting and is the newest of all. That thread hands on what it does not take.
 * 2. An entry is handed over by ending the thread's wait with the entry as its WaitStatus; the thread is counted by
 *    whoever hands over.
 * 3. KTHREAD.Queue is written under the queue's lock and then the thread's QueueLock. A thread that starts from its own
 *    QueueLock only tries the queue's lock, so the two orders do not meet. A queue that is run down is out of every
 *    thread before its memory goes.
 * 4. An entry that is not queued has a NULL Flink.
 * 5. A queue that KiAbandonQueue has abandoned stays signaled: its SignalState is one more than the number of entries.
 */
#include "block.h"

#define KI_QUEUE_ABANDONED ((ULONG64)1 << 8)

VOID KeInitializeQueue(PRKQUEUE Queue, ULONG Count)
{
    KiInitializeHeader(&Queue->Header, QueueObject, sizeof(KQUEUE), 0);
    Queue->Header.QueueControlFlags = 0;
    InitializeListHead(&Queue->EntryListHead);
    InitializeListHead(&Queue->ThreadListHead);
    Queue->CurrentCount = 0;
    Queue->MaximumCount = Count != 0 ? Count : KeNumberProcessors;
}

LONG KeReadStateQueue(PRKQUEUE Queue)
{
    return KI_STATE(KiReadSettledHeader(&Queue->Header));
}

static BOOLEAN KiMayRunOneMore(PKQUEUE Queue)
{
    return Queue->CurrentCount < Queue->MaximumCount;
}

static PLIST_ENTRY KiTakeEntry(PKQUEUE Queue, ULONG64 *Word)
{
    PLIST_ENTRY Entry = RemoveHeadList(&Queue->EntryListHead);
    /* The next entry is still in the cache of whoever put it there: it comes while this one is used. */
    __builtin_prefetch(Queue->EntryListHead.Flink, TRUE);
    Entry->Flink = NULL;
    *Word = KiWithState(*Word, KI_STATE(*Word) - 1);
    return Entry;
}

static VOID KiLinkEntry(PKQUEUE Queue, PLIST_ENTRY Entry, BOOLEAN Head)
{
    if (Head) {
        InsertHeadList(&Queue->EntryListHead, Entry);
    } else {
        InsertTailList(&Queue->EntryListHead, Entry);
    }
}

static BOOLEAN KiIsDequeuer(PKQUEUE Queue, PLIST_ENTRY Link)
{
    return Link != &Queue->Header.WaitListHead && KiBlockOfEntry(Link)->WaitType == WaitDequeue;
}

/* Dequeuers come first on the list: waitlist.h. */
static BOOLEAN KiHasDequeuer(PKQUEUE Queue)
{
    return KiIsDequeuer(Queue, Queue->Header.WaitListHead.Flink);
}

/* Gives Entry to the thread that began to wait last. */
static BOOLEAN KiHandOver(PKQUEUE Queue, PLIST_ENTRY Entry, PKI_READY Released)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Link = Queue->Header.WaitListHead.Flink; KiIsDequeuer(Queue, Link); Link = Next) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(Link);
        Next = Link->Flink;
        PKTHREAD Thread = Block->Thread;
        if (KiEndWaitOfBlock(Block, (LONG_PTR)Entry, Released)) {
            Thread->QueueBlocked = FALSE;
            Queue->CurrentCount += 1;
            return TRUE;
        }
    }
    return FALSE;
}

/* Releases those that wait for the queue itself, by the state in *Word. FALSE: see KiReleaseBehind. */
static BOOLEAN KiReleasePlainWaiters(PKQUEUE Queue, ULONG64 *Word, PKI_READY Released)
{
    return KiReleaseBehind(&Queue->Header, KiLastDequeuer(&Queue->Header), Word, Released);
}

/* Invariant 1, after CurrentCount has fallen. */
static VOID KiActivateWaiter(PKQUEUE Queue, ULONG64 *Word, PKI_READY Released)
{
    while (!IsListEmpty(&Queue->EntryListHead) && KiMayRunOneMore(Queue) && KiHasDequeuer(Queue)) {
        PLIST_ENTRY Entry = KiTakeEntry(Queue, Word);
        if (!KiHandOver(Queue, Entry, Released)) {
            InsertHeadList(&Queue->EntryListHead, Entry);
            *Word = KiWithState(*Word, KI_STATE(*Word) + 1);
            return;
        }
    }
}

/* The queue of Thread with its lock held, or NULL. Invariant 3. */
static PKQUEUE KiLockThreadQueue(PKTHREAD Thread, ULONG64 *Word)
{
    for (ULONG Round = 0;; Round += 1) {
        KiAcquireLock(&Thread->QueueLock);
        PKQUEUE Queue = Thread->Queue;
        BOOLEAN Locked = Queue == NULL || KiTryLockObject(&Queue->Header, Word);
        KiReleaseLock(&Thread->QueueLock);
        if (Locked) {
            return Queue;
        }
        HalLongSpin(Round);
    }
}

static VOID KiAssignQueue(PKTHREAD Thread, PKQUEUE Queue)
{
    KiAcquireLock(&Thread->QueueLock);
    /* release: pairs with the acquire in KiHasOtherQueue; whoever took the thread's entry out has done with it */
    __atomic_store_n(&Thread->Queue, Queue, __ATOMIC_RELEASE);
    KiReleaseLock(&Thread->QueueLock);
}

/* A hint for the thread itself that there is accounting to do: KiLockThreadQueue looks again. Without a queue its entry
   is its own again, to link it elsewhere. */
static BOOLEAN KiHasOtherQueue(PKTHREAD Thread, PKQUEUE Queue)
{
    /* acquire: pairs with the release in KiAssignQueue */
    PKQUEUE Own = __atomic_load_n(&Thread->Queue, __ATOMIC_ACQUIRE);
    return Own != NULL && Own != Queue;
}

VOID KiBlockFromQueue(PKTHREAD Thread)
{
    ULONG64 Word;
    KI_READY Released;
    if (!KiHasOtherQueue(Thread, NULL) || Thread->QueueBlocked) {
        return;
    }
    PKQUEUE Queue = KiLockThreadQueue(Thread, &Word);
    if (Queue == NULL) {
        return;
    }
    KiInitializeReady(&Released, 0);
    Queue->CurrentCount -= 1;
    Thread->QueueBlocked = TRUE;
    KiActivateWaiter(Queue, &Word, &Released);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

VOID KiUnblockFromQueue(PKTHREAD Thread)
{
    ULONG64 Word;
    if (!Thread->QueueBlocked) {
        return;
    }
    Thread->QueueBlocked = FALSE;
    PKQUEUE Queue = KiLockThreadQueue(Thread, &Word);
    if (Queue != NULL) {
        Queue->CurrentCount += 1;
        KiUnlockObject(&Queue->Header, Word);
    }
}

VOID KiLeaveQueue(PKTHREAD Thread)
{
    ULONG64 Word;
    KI_READY Released;
    PKQUEUE Queue = KiLockThreadQueue(Thread, &Word);
    if (Queue == NULL) {
        return;
    }
    KiInitializeReady(&Released, 0);
    RemoveEntryList(&Thread->QueueListEntry);
    if (!Thread->QueueBlocked) {
        Queue->CurrentCount -= 1;
    }
    Thread->QueueBlocked = FALSE;
    KiAssignQueue(Thread, NULL);
    KiActivateWaiter(Queue, &Word, &Released);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

/* With the lock of Queue held: Thread belongs to it and does not count as running. */
static VOID KiStopCounting(PKQUEUE Queue, PKTHREAD Thread)
{
    if (__atomic_load_n(&Thread->Queue, __ATOMIC_RELAXED) != Queue) { /* Queue's lock is held: no rundown of it */
        InsertTailList(&Queue->ThreadListHead, &Thread->QueueListEntry);
        KiAssignQueue(Thread, Queue);
    } else if (!Thread->QueueBlocked) {
        Queue->CurrentCount -= 1;
    }
    Thread->QueueBlocked = TRUE;
}

/* Asked by Thread itself: belongs to Queue, which may be run down meanwhile, and runs. */
static BOOLEAN KiCountsFor(PKQUEUE Queue, PKTHREAD Thread)
{
    /* relaxed: under the queue's lock it is certain, without it a hint */
    return __atomic_load_n(&Thread->Queue, __ATOMIC_RELAXED) == Queue && !Thread->QueueBlocked;
}

static VOID KiCountAgain(PKQUEUE Queue, PKTHREAD Thread)
{
    Queue->CurrentCount += 1;
    Thread->QueueBlocked = FALSE;
}

/* With Queue locked: FALSE, and nothing has happened, if somebody waits. */
FORCEINLINE BOOLEAN KiTryInsertEntry(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY Entry, BOOLEAN Head)
{
    if (!IsListEmpty(&Queue->Header.WaitListHead)) {
        return FALSE;
    }
    KiLinkEntry(Queue, Entry, Head);
    *Word = KiWithState(*Word, KI_STATE(*Word) + 1);
    return TRUE;
}

/* With Queue locked, which may be let go of in between. Returns the previous number of entries. */
static LONG KiInsertEntry(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY Entry, BOOLEAN Head, PKI_READY Released)
{
    BOOLEAN ForOthers = KiCurrentThread()->QueueAwaited != Queue;
    LONG Previous = KI_STATE(*Word);
    if (KiTryInsertEntry(Queue, Word, Entry, Head)) {
        return Previous;
    }
    Entry->Flink = NULL;
    for (ULONG Round = 0;; Round += 1) {
        Previous = KI_STATE(*Word);
        if (ForOthers && KiMayRunOneMore(Queue) && KiHandOver(Queue, Entry, Released)) {
            break;
        }
        /* Plain waiters on the queue itself come before the entry is there: they look at the state only. */
        ULONG64 New = KiWithState(*Word, Previous + 1);
        if (KiReleasePlainWaiters(Queue, &New, Released)) {
            KiLinkEntry(Queue, Entry, Head);
            *Word = New;
            break;
        }
        KiUnlockObject(&Queue->Header, *Word);
        HalLongSpin(Round);
        *Word = KiLockObject(&Queue->Header);
    }
    return Previous;
}

/* With Queue locked by Word; unlocks it. */
static DECLSPEC_NOINLINE LONG KiInsertForWaiter(PKQUEUE Queue, ULONG64 Word, PLIST_ENTRY Entry, BOOLEAN Head)
{
    KI_READY Released;
    KiInitializeReady(&Released, 0);
    LONG Previous = KiInsertEntry(Queue, &Word, Entry, Head, &Released);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
    return Previous;
}

FORCEINLINE LONG KiInsertQueueEntry(PKQUEUE Queue, PLIST_ENTRY Entry, BOOLEAN Head)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    LONG Previous = KI_STATE(Word);
    if (__builtin_expect(KiTryInsertEntry(Queue, &Word, Entry, Head), TRUE)) {
        KiUnlockObject(&Queue->Header, Word);
    } else {
        Previous = KiInsertForWaiter(Queue, Word, Entry, Head);
    }
    KiExitDispatcher(Thread);
    return Previous;
}

LONG KiInsertQueue(PKQUEUE Queue, PLIST_ENTRY Entry)
{
    return KiInsertQueueEntry(Queue, Entry, FALSE);
}

LONG KeInsertQueue(PRKQUEUE Queue, PLIST_ENTRY Entry)
{
    return KiInsertQueue(Queue, Entry);
}

LONG KeInsertHeadQueue(PRKQUEUE Queue, PLIST_ENTRY Entry)
{
    return KiInsertQueueEntry(Queue, Entry, TRUE);
}

VOID KiQueueNotification(PKQUEUE Queue, PKWAIT_BLOCK Block, PLIST_ENTRY Entry)
{
    KI_READY Released;
    KiInitializeReady(&Released, 0);
    ULONG64 Word = KiLockObject(&Queue->Header);
    KiInsertEntry(Queue, &Word, Entry, FALSE, &Released);
    /* release, and under the queue's lock: who cancels and sees this finds the entry in the queue or already taken */
    __atomic_store_n(&Block->BlockState, WaitBlockBypassComplete, __ATOMIC_RELEASE);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

BOOLEAN KiRemoveQueuedEntry(PKQUEUE Queue, PLIST_ENTRY Entry)
{
    ULONG64 Word = KiLockObject(&Queue->Header);
    BOOLEAN Queued = Entry->Flink != NULL;
    if (Queued) {
        RemoveEntryList(Entry);
        Entry->Flink = NULL;
        Word = KiWithState(Word, KI_STATE(Word) - 1);
    }
    KiUnlockObject(&Queue->Header, Word);
    return Queued;
}

static ULONG KiTakeEntries(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY *EntryArray, ULONG Count)
{
    ULONG Taken = 0;
    while (Taken < Count && !IsListEmpty(&Queue->EntryListHead)) {
        EntryArray[Taken] = KiTakeEntry(Queue, Word);
        Taken += 1;
    }
    return Taken;
}

/* What APCs have inserted, and the thread that they ran on does not take: invariant 1 holds again. */
static VOID KiHandOnEntries(PKQUEUE Queue)
{
    KI_READY Released;
    KiInitializeReady(&Released, 0);
    ULONG64 Word = KiLockObject(&Queue->Header);
    KiActivateWaiter(Queue, &Word, &Released);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

/* One attempt to remove: takes what is there, or links the thread. *Taken is how many entries were taken. */
static NTSTATUS KiTakeOrLink(PKI_WAIT Wait, PKQUEUE Queue, PLIST_ENTRY *EntryArray, ULONG Count, PULONG Taken)
{
    PKTHREAD Thread = Wait->Thread;
    KI_READY Released;
    ULONG64 Word = KiLockObject(&Queue->Header);
    NTSTATUS Status = STATUS_PENDING;

    if (Word & KI_QUEUE_ABANDONED) {
        KiEndOwnWait(Thread);
        KiUnlockObject(&Queue->Header, Word);
        return STATUS_ABANDONED;
    }
    KiStopCounting(Queue, Thread);
    if (!IsListEmpty(&Queue->EntryListHead) && KiMayRunOneMore(Queue)) {
        *Taken = KiTakeEntries(Queue, &Word, EntryArray, Count);
        Status = STATUS_SUCCESS;
    } else if (Wait->Poll) {
        Status = STATUS_TIMEOUT;
    }
    if (Status == STATUS_PENDING) {
        __atomic_store_n(&Wait->Blocks[0].BlockState, WaitBlockActive, __ATOMIC_RELAXED);
        InsertHeadList(&Queue->Header.WaitListHead, &Wait->Blocks[0].WaitListEntry);
        KiUnlockObject(&Queue->Header, Word);
        return Status;
    }
    KiEndOwnWait(Thread);
    KiCountAgain(Queue, Thread);
    KiInitializeReady(&Released, 0);
    KiActivateWaiter(Queue, &Word, &Released); /* if there is more than it takes: an APC has put it there */
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
    return Status;
}

static VOID KiUnlinkDequeuer(PKQUEUE Queue, PKWAIT_BLOCK Block)
{
    ULONG64 Word = KiLockObject(&Queue->Header);
    if (Block->BlockState == WaitBlockActive) {
        KiUnlinkBlock(Block, WaitBlockInactive);
    }
    KiUnlockObject(&Queue->Header, Word);
}

static NTSTATUS KiRemoveOnce(PKI_WAIT Wait, PKQUEUE Queue, BOOLEAN Interrupted, PLIST_ENTRY *EntryArray, ULONG Count,
                             PULONG Taken)
{
    PKTHREAD Thread = Wait->Thread;
    BOOLEAN EndedByOther;
    LONG_PTR Result;

    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable));
    if (Status != STATUS_PENDING) {
        if (Interrupted) {
            KiHandOnEntries(Queue);
        }
        return Status;
    }
    Thread->WaitBlockList = Wait->Blocks;
    Thread->WaitBlockCount = 1;
    Status = KiTakeOrLink(Wait, Queue, EntryArray, Count, Taken);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    KiCommitAndPark(Wait, &EndedByOther, &Result);
    /* acquire: pairs with the release store in KiUnlinkBlock. A queue that took the block off may be gone by now. */
    BOOLEAN Linked = __atomic_load_n(&Wait->Blocks[0].BlockState, __ATOMIC_ACQUIRE) == WaitBlockActive;
    BOOLEAN HandedOver = !Linked && Result != STATUS_ABANDONED;
    if (Linked) {
        KiUnlinkDequeuer(Queue, &Wait->Blocks[0]);
    }
    KiLeaveWaitState(Wait, EndedByOther);
    if (HandedOver) {
        EntryArray[0] = (PLIST_ENTRY)Result;
        *Taken = 1;
        return STATUS_SUCCESS;
    }
    return (NTSTATUS)Result;
}

/*
 * The thread that comes back for its next entry, and finds one, does not begin a wait: it counts already and goes on to
 * do so. Returns the number of entries taken.
 */
FORCEINLINE ULONG KiTryRemove(PKTHREAD Thread, PKQUEUE Queue, PLIST_ENTRY *EntryArray, ULONG Count)
{
    ULONG Taken = 0;
    if (KI_STATE(KiReadHeader(&Queue->Header)) <= 0) {
        return 0;
    }
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    if (KiCountsFor(Queue, Thread) && !(Word & KI_QUEUE_ABANDONED) && Queue->CurrentCount <= Queue->MaximumCount) {
        Taken = KiTakeEntries(Queue, &Word, EntryArray, Count);
    }
    KiUnlockObject(&Queue->Header, Word);
    KiExitDispatcher(Thread);
    return Taken;
}

/* Leaves the dispatcher section of a removal that a kernel APC interrupts, and lets the APC run. */
static VOID KiInterruptRemoval(PKQUEUE Queue, PKTHREAD Thread)
{
    PKQUEUE Outer = Thread->QueueAwaited;
    Thread->QueueAwaited = Queue;
    KiExitDispatcher(Thread);
    KiDeliverApc(Thread);
    Thread->QueueAwaited = Outer;
}

/* Returns the number of entries taken; when there is none, EntryArray[0] is the status and the number is 1. */
static DECLSPEC_NOINLINE ULONG KiRemoveQueueSlow(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                                 PLARGE_INTEGER Timeout, PLIST_ENTRY *EntryArray, ULONG Count)
{
    KI_WAIT Wait;
    BOOLEAN Interrupted = FALSE;
    ULONG Taken = 0;
    NTSTATUS Status;

    KiInitializeWait(&Wait, Queue, WrQueue, WaitMode, Alertable, Timeout);
    PKTHREAD Thread = Wait.Thread;
    if (!Alertable && !Wait.Poll && KiCountsFor(Queue, Thread)) {
        Wait.Spun = TRUE;
        if (KiSpinForQueue(Queue, Thread) && (Taken = KiTryRemove(Thread, Queue, EntryArray, Count)) != 0) {
            return Taken;
        }
    }
    Wait.Count = 1;
    Wait.WaitType = WaitDequeue;
    for (;;) {
        KiEnterDispatcher(Thread);
        KiPrepareBlock(&Wait.Blocks[0], Thread, Queue, WaitDequeue, 0);
        if (KiHasOtherQueue(Thread, Queue)) {
            KiLeaveQueue(Thread);
        }
        Status = KiRemoveOnce(&Wait, Queue, Interrupted, EntryArray, Count, &Taken);
        if (Status != STATUS_KERNEL_APC) {
            KiExitDispatcher(Thread);
            break;
        }
        KiInterruptRemoval(Queue, Thread);
        Interrupted = TRUE;
        KiPollClock();
    }
    if (Taken == 0) {
        EntryArray[0] = (PLIST_ENTRY)(LONG_PTR)Status;
        return 1;
    }
    return Taken;
}

ULONG KiRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                      PLIST_ENTRY *EntryArray, ULONG Count)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Taken = KiMayConsumeAtOnce(Thread, Alertable) ? KiTryRemove(Thread, Queue, EntryArray, Count) : 0;
    return Taken != 0 ? Taken : KiRemoveQueueSlow(Queue, WaitMode, Alertable, Timeout, EntryArray, Count);
}

PLIST_ENTRY KiRemoveQueue(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY Entry;
    if (!KiMayConsumeAtOnce(Thread, FALSE) || KiTryRemove(Thread, Queue, &Entry, 1) == 0) {
        KiRemoveQueueSlow(Queue, WaitMode, FALSE, Timeout, &Entry, 1);
    }
    return Entry;
}

PLIST_ENTRY KeRemoveQueue(PRKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout)
{
    return KiRemoveQueue(Queue, WaitMode, Timeout);
}

ULONG KeRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                      PLIST_ENTRY *EntryArray, ULONG Count)
{
    if (Count == 0) {
        return 0;
    }
    ULONG Removed = KiRemoveQueueEx(Queue, WaitMode, Alertable, Timeout, EntryArray, Count);
    if (EntryArray[0] == (PLIST_ENTRY)(LONG_PTR)STATUS_USER_APC) {
        KiDeliverUserApcs(KiCurrentThread());
    }
    return Removed;
}

static VOID KiReleaseDequeuers(PKQUEUE Queue, PKI_READY Released)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Link = Queue->Header.WaitListHead.Flink; KiIsDequeuer(Queue, Link); Link = Next) {
        Next = Link->Flink;
        KiEndWaitOfBlock(KiBlockOfEntry(Link), STATUS_ABANDONED, Released);
    }
}

static VOID KiExpelThreads(PKQUEUE Queue)
{
    while (!IsListEmpty(&Queue->ThreadListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Queue->ThreadListHead);
        KiAssignQueue(CONTAINING_RECORD(Entry, KTHREAD, QueueListEntry), NULL);
    }
}

static PLIST_ENTRY KiDetachEntries(PKQUEUE Queue)
{
    if (IsListEmpty(&Queue->EntryListHead)) {
        return NULL;
    }
    PLIST_ENTRY First = Queue->EntryListHead.Flink;
    RemoveEntryList(&Queue->EntryListHead);
    InitializeListHead(&Queue->EntryListHead);
    return First;
}

/* Releases whoever waits or belongs to the queue. Leaves it locked and returns its word. */
static ULONG64 KiLockAndRelease(PKQUEUE Queue, PKI_READY Released)
{
    for (ULONG Round = 0;; Round += 1) {
        ULONG64 Word = KiLockObject(&Queue->Header);
        ULONG64 Signaled = KiWithState(Word, 1);
        if (KiReleasePlainWaiters(Queue, &Signaled, Released)) {
            KiReleaseDequeuers(Queue, Released);
            KiExpelThreads(Queue);
            Queue->CurrentCount = 0;
            return Word;
        }
        KiUnlockObject(&Queue->Header, Word);
        HalLongSpin(Round);
    }
}

VOID KiAbandonQueue(PKQUEUE Queue)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_READY Released;

    KiInitializeReady(&Released, 0);
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockAndRelease(Queue, &Released);
    if (!(Word & KI_QUEUE_ABANDONED)) {
        Word = KiWithState(Word, KI_STATE(Word) + 1) | KI_QUEUE_ABANDONED;
    }
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
}

PLIST_ENTRY KiTakeQueuedEntry(PKQUEUE Queue)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY Entry = NULL;

    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    if (!IsListEmpty(&Queue->EntryListHead)) {
        Entry = KiTakeEntry(Queue, &Word);
    }
    KiUnlockObject(&Queue->Header, Word);
    KiExitDispatcher(Thread);
    return Entry;
}

VOID KiSetQueueLimit(PKQUEUE Queue, ULONG MaximumCount)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_READY Released;

    KiInitializeReady(&Released, 0);
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    Queue->MaximumCount = MaximumCount;
    KiActivateWaiter(Queue, &Word, &Released);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
}

/* Returns the entries that were queued, linked in a ring without a head, or NULL. */
PLIST_ENTRY KeRundownQueue(PRKQUEUE Queue)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_READY Released;

    KiInitializeReady(&Released, 0);
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockAndRelease(Queue, &Released);
    PLIST_ENTRY First = KiDetachEntries(Queue);
    KiUnlockObject(&Queue->Header, KiWithState(Word, 0) | KI_QUEUE_ABANDONED);
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
    return First;
}
