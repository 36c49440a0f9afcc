/* queue.c: KQUEUE, and waits without a thread, which end with a packet in one, or with a DPC. */
#include "irql.h"
#include "wait.h"

/*
 * KQUEUE.
 *
 * Under the header's lock: EntryListHead with SignalState entries, CurrentCount, ThreadListHead. CurrentCount is the
 * number of threads in ThreadListHead that run: a thread leaves it when it starts to wait for anything (KTHREAD
 * QueueBlocked) and returns when that wait ends, above MaximumCount if necessary.
 *
 * 1. While an entry is queued and CurrentCount < MaximumCount, no thread is linked for dequeueing: an entry that
 *    arrives, and a thread that blocks, hand off to the newest waiting thread at once. One exception: if an APC that has
 *    interrupted a removal from the same queue inserts an entry, the entry stays queued for the thread that the APC runs
 *    on. That thread is about to wait again and is the newest of all; it hands off what it does not take.
 * 2. An entry is handed off by ending the thread's wait with the entry as its WaitStatus. The thread that hands off
 *    counts the other one as running.
 * 3. KTHREAD.Queue is written under the queue's lock and then the thread's QueueLock. A thread that starts from its own
 *    QueueLock only tries the queue's lock, so the two orders cannot deadlock. A rundown removes the queue from every
 *    thread before its memory may be freed.
 * 4. An entry that is not queued has a NULL Flink.
 * 5. A queue abandoned by KiAbandonQueue stays signaled: its SignalState is one more than the number of entries.
 * 6. While KI_QUEUE_EXPECTED is set, one counted thread, whose QueueExpects is TRUE, has yielded for entries: those that
 *    arrive stay queued, the second exception to 1. The thread is in a service, so it is neither suspended nor terminated
 *    before it has cleared the bit and restored 1.
 */

#define KI_QUEUE_ABANDONED ((ULONG64)1 << 8)
#define KI_QUEUE_EXPECTED ((ULONG64)1 << 15)

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

/* The entries. With the queue locked. */

FORCEINLINE PLIST_ENTRY KiTakeEntry(PKQUEUE Queue, ULONG64 *Word)
{
    PLIST_ENTRY Entry = RemoveHeadList(&Queue->EntryListHead);
    /* The next entry is still in its producer's cache: fetch it while this one is used. */
    HalPrefetchForWrite(Queue->EntryListHead.Flink);
    Entry->Flink = NULL;
    *Word = KiWithState(*Word, KI_STATE(*Word) - 1);
    return Entry;
}

FORCEINLINE ULONG KiTakeEntries(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY *EntryArray, ULONG Count)
{
    ULONG Taken = 0;
    while (Taken < Count && !IsListEmpty(&Queue->EntryListHead)) {
        EntryArray[Taken] = KiTakeEntry(Queue, Word);
        Taken += 1;
    }
    return Taken;
}

FORCEINLINE VOID KiLinkEntry(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY Entry, BOOLEAN Head)
{
    if (Head) {
        InsertHeadList(&Queue->EntryListHead, Entry);
    } else {
        InsertTailList(&Queue->EntryListHead, Entry);
    }
    *Word = KiWithState(*Word, KI_STATE(*Word) + 1);
}

/* The waiters. With the queue locked. Dequeuers come first on the list (dispatch.h). */

static BOOLEAN KiIsDequeuer(PKQUEUE Queue, PLIST_ENTRY Link)
{
    return Link != &Queue->Header.WaitListHead && KiBlockOfEntry(Link)->WaitType == WaitDequeue;
}

/* Hands Entry to the thread that began to wait last. */
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

/* Releases the threads that wait for the queue itself, by the state in *Word. FALSE: see KiReleaseBehind. */
static BOOLEAN KiReleasePlainWaiters(PKQUEUE Queue, ULONG64 *Word, PKI_READY Released)
{
    PLIST_ENTRY LastDequeuer = KiEndOfEligible(&Queue->Header)->Blink;
    while (LastDequeuer != &Queue->Header.WaitListHead && !KiIsDequeuer(Queue, LastDequeuer)) {
        LastDequeuer = LastDequeuer->Blink;
    }
    return KiReleaseBehind(&Queue->Header, LastDequeuer, Word, Released);
}

/* Restores invariant 1 after CurrentCount has decreased or an APC has inserted, and unlocks. */
static VOID KiActivateAndUnlock(PKQUEUE Queue, ULONG64 Word)
{
    KI_READY Released;
    KiInitializeReady(&Released, 0);
    while (!IsListEmpty(&Queue->EntryListHead) && Queue->CurrentCount < Queue->MaximumCount &&
           KiIsDequeuer(Queue, Queue->Header.WaitListHead.Flink)) {
        PLIST_ENTRY Entry = KiTakeEntry(Queue, &Word);
        if (!KiHandOver(Queue, Entry, &Released)) {
            KiLinkEntry(Queue, &Word, Entry, TRUE);
            break;
        }
    }
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

/* The queue that a thread belongs to. */

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
        KiBackOff(Round);
    }
}

static VOID KiAssignQueue(PKTHREAD Thread, PKQUEUE Queue)
{
    KiAcquireLock(&Thread->QueueLock);
    /* release: pairs with the acquire in KiHasOtherQueue; the thread's entry is off the old queue's list */
    __atomic_store_n(&Thread->Queue, Queue, __ATOMIC_RELEASE);
    KiReleaseLock(&Thread->QueueLock);
}

/* For the thread itself, a hint that there is accounting to do: KiLockThreadQueue checks again. Without a queue the
   thread owns its list entry again and may link it elsewhere. */
static BOOLEAN KiHasOtherQueue(PKTHREAD Thread, PKQUEUE Queue)
{
    /* acquire: pairs with the release in KiAssignQueue */
    PKQUEUE Own = __atomic_load_n(&Thread->Queue, __ATOMIC_ACQUIRE);
    return Own != NULL && Own != Queue;
}

/* For the thread itself: it belongs to Queue, which may be run down meanwhile, and runs. */
static BOOLEAN KiCountsFor(PKQUEUE Queue, PKTHREAD Thread)
{
    /* relaxed: certain under the queue's lock, a hint without it */
    return __atomic_load_n(&Thread->Queue, __ATOMIC_RELAXED) == Queue && !Thread->QueueBlocked;
}

VOID KiBlockFromQueueSlow(PKTHREAD Thread)
{
    ULONG64 Word;
    PKQUEUE Queue = KiLockThreadQueue(Thread, &Word);
    if (Queue != NULL) {
        Queue->CurrentCount -= 1;
        Thread->QueueBlocked = TRUE;
        KiActivateAndUnlock(Queue, Word);
    }
}

VOID KiUnblockFromQueueSlow(PKTHREAD Thread)
{
    ULONG64 Word;
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
    PKQUEUE Queue = KiLockThreadQueue(Thread, &Word);
    if (Queue == NULL) {
        return;
    }
    RemoveEntryList(&Thread->QueueListEntry);
    if (!Thread->QueueBlocked) {
        Queue->CurrentCount -= 1;
    }
    if (Thread->QueueExpects) { /* a lost thread, in a forked child */
        Word &= ~KI_QUEUE_EXPECTED;
    }
    Thread->QueueBlocked = FALSE;
    Thread->QueueExpects = FALSE;
    KiAssignQueue(Thread, NULL);
    KiActivateAndUnlock(Queue, Word);
}

/* Inserting. */

/* With Queue locked, which may be unlocked in between. Returns the previous number of entries. */
static LONG KiInsertEntry(PKQUEUE Queue, ULONG64 *Word, PLIST_ENTRY Entry, BOOLEAN Head, PKI_READY Released)
{
    BOOLEAN ForOthers = KiCurrentThread()->QueueAwaited != Queue && !(*Word & KI_QUEUE_EXPECTED);
    Entry->Flink = NULL;
    for (ULONG Round = 0;; Round += 1) {
        LONG Previous = KI_STATE(*Word);
        if (IsListEmpty(&Queue->Header.WaitListHead)) {
            KiLinkEntry(Queue, Word, Entry, Head);
            return Previous;
        }
        KiBlockOnList(&Queue->Header, Queue->Header.WaitListHead.Flink); /* stops if the waiter is of another process */
        if (ForOthers && Queue->CurrentCount < Queue->MaximumCount && KiHandOver(Queue, Entry, Released)) {
            return Previous;
        }
        /* Threads that wait for the queue itself are released before the entry is linked: they test the state only. */
        ULONG64 New = KiWithState(*Word, Previous + 1);
        if (KiReleasePlainWaiters(Queue, &New, Released)) {
            KiLinkEntry(Queue, Word, Entry, Head);
            return Previous;
        }
        KiUnlockObject(&Queue->Header, *Word);
        KiBackOff(Round);
        *Word = KiLockObject(&Queue->Header);
    }
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
    HalPrefetchForWrite(&Queue->Header); /* as in KiTryRemove */
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    LONG Previous = KI_STATE(Word);
    if (__builtin_expect(IsListEmpty(&Queue->Header.WaitListHead), TRUE)) {
        KiLinkEntry(Queue, &Word, Entry, Head);
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

static DECLSPEC_NOINLINE VOID KiQueueNotification(PKQUEUE Queue, PKWAIT_BLOCK Block, PLIST_ENTRY Entry)
{
    KI_READY Released;
    KiInitializeReady(&Released, 0);
    ULONG64 Word = KiLockObject(&Queue->Header);
    KiInsertEntry(Queue, &Word, Entry, FALSE, &Released);
    /* release, and under the queue's lock: a cancel that sees this finds the entry in the queue or already taken */
    __atomic_store_n(&Block->BlockState, WaitBlockBypassComplete, __ATOMIC_RELEASE);
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
}

/* Removing. */

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

FORCEINLINE BOOLEAN KiMayTakeLocked(PKQUEUE Queue, PKTHREAD Thread, ULONG64 Word)
{
    return KiCountsFor(Queue, Thread) && !(Word & KI_QUEUE_ABANDONED) && Queue->CurrentCount <= Queue->MaximumCount;
}

/*
 * The fast path: a thread that returns for its next entry and finds one does not begin a wait. It stays counted.
 * Returns the number of entries taken.
 */
FORCEINLINE ULONG KiTryRemove(PKTHREAD Thread, PKQUEUE Queue, PLIST_ENTRY *EntryArray, ULONG Count)
{
    ULONG Taken = 0;
    /* Without this the read fetches the producer's line shared, and the lock fetches it again (port-1x1: 5 % more). */
    HalPrefetchForWrite(&Queue->Header);
    if (KI_STATE(KiReadHeader(&Queue->Header)) <= 0) {
        return 0;
    }
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    if (KiMayTakeLocked(Queue, Thread, Word)) {
        Taken = KiTakeEntries(Queue, &Word, EntryArray, Count);
    }
    KiUnlockObject(&Queue->Header, Word);
    KiExitDispatcher(Thread);
    return Taken;
}

/*
 * For a thread that returns for its next entry: takes one if that needs no wait, or returns NULL. Stays decides, with the
 * queue locked, whether the entry remains queued, behind the others. Such an entry is not offered to threads that wait:
 * there are none, or CurrentCount is at its maximum (1), and neither has changed. NULL also if another thread has the
 * lock: callers that return at once would contend for it the more, the more of them there are.
 */
PLIST_ENTRY KiTakeNextEntry(PKQUEUE Queue, BOOLEAN (*Stays)(PLIST_ENTRY Entry, PVOID Context), PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY Entry = NULL;
    ULONG64 Word;
    if (KI_STATE(KiReadHeader(&Queue->Header)) <= 0 || !KiMayTakeAtOnce(Thread)) {
        return NULL;
    }
    KiEnterDispatcher(Thread);
    if (KiTryLockObject(&Queue->Header, &Word)) {
        if (KiMayTakeLocked(Queue, Thread, Word) && !IsListEmpty(&Queue->EntryListHead)) {
            Entry = Queue->EntryListHead.Flink;
            if (!Stays(Entry, Context)) {
                KiTakeEntry(Queue, &Word);
            } else if (Entry != Queue->EntryListHead.Blink) {
                RemoveEntryList(Entry);
                InsertTailList(&Queue->EntryListHead, Entry);
            }
        }
        KiUnlockObject(&Queue->Header, Word);
    }
    KiExitDispatcher(Thread);
    return Entry;
}

/*
 * TRUE: an entry was seen; other threads may see it, too. A producer writes the header for every entry, so each check
 * takes the line away from it. The gaps grow while the queue is empty. A thread whose first successful check finds
 * several entries starts with a longer gap the next time: they arrive faster than it can take them one by one. A single
 * entry halves that gap. Without this, a packet of a completion port costs twice as much between one producer and one
 * consumer.
 */
#define KI_LONGEST_FIRST_GAP 64

BOOLEAN KiSpinForEntry(PKQUEUE Queue, PKTHREAD Thread)
{
    KI_PATIENCE Patience;
    LONG Entries = 0;
    KiBeginPatience(&Patience, Thread, KiParkForQueueEntry);
    Patience.Gap = Thread->QueueGap > Patience.Gap ? Thread->QueueGap : Patience.Gap;
    while (Entries <= 0 && KiStayAwake(&Patience, Thread, KiParkForQueueEntry)) {
        Entries = KI_STATE(KiReadHeader(&Queue->Header));
    }
    KiEndPatience(&Patience, Thread, Entries > 0);
    ULONG Longer = 2 * Thread->QueueGap + 4;
    Longer = Longer < KI_LONGEST_FIRST_GAP ? Longer : KI_LONGEST_FIRST_GAP;
    Thread->QueueGap = (UCHAR)(Entries > 1 ? Longer : Thread->QueueGap / 2u);
    return Entries > 0;
}

/*
 * A thread that was woken from the processor on which it runs does not spin: its waker needs that processor. But where
 * the waker inserts entry after entry, each sleep costs a wakeup and two switches, several times as much as an entry. So
 * after many short sleeps in a row the thread yields instead, and expects entries: it stays counted, and what is
 * inserted meanwhile is queued for it (6). When it runs again it takes its own share and hands off the rest.
 *
 * A yield gains the wakeups that it saved, one for each entry, and costs the time until the thread runs again, for which
 * it delays them: some milliseconds if another program uses the processor. A yield without entries delays none, however
 * long it is; it is wasted, like a wakeup. (Charged with its time, the yield that ends a burst would forbid thousands of
 * those in the next one.) The thread keeps the balance, and does not yield while it is negative. Short sleeps pay a debt
 * off, so slowly that yields which do not pay take a few per cent of the time, and delay one entry of thousands.
 */
#define KI_WAKE_TIME 40 /* in units of interrupt time, as the next and the balance: a futex wake, and two switches */
#define KI_SHORT_SLEEP (4 * KI_WAKE_TIME)
#define KI_LEAST_SHORT_SLEEPS 16
#define KI_MOST_BALANCE (1000 * KI_WAKE_TIME) /* about one slice of the host */
#define KI_PAID_PER_SLEEP 4

/* The thread has nothing left to take. TRUE: it should yield once. */
static BOOLEAN KiMayExpectEntries(PKTHREAD Thread)
{
    /* relaxed: a hint */
    if (__atomic_load_n(&Thread->WakerProcessor, __ATOMIC_RELAXED) != HalDispatch.CurrentProcessor() + 1 ||
        Thread->ServiceDepth == 0) { /* it could be suspended while others leave entries to it */
        return FALSE;
    }
    ULONG Now = (ULONG)HalDispatch.QueryInterruptTime();
    BOOLEAN Short = Now - Thread->QueueSleepTime < KI_SHORT_SLEEP;
    Thread->QueueSleepTime = Now;
    Thread->QueueBalance += Short && Thread->QueueBalance < 0 ? KI_PAID_PER_SLEEP : 0;
    if (!Short) {
        Thread->QueueShortSleeps = 0;
    } else if (Thread->QueueShortSleeps < KI_LEAST_SHORT_SLEEPS) {
        Thread->QueueShortSleeps += 1;
    }
    return Thread->QueueShortSleeps == KI_LEAST_SHORT_SLEEPS && Thread->QueueBalance >= 0;
}

/* The thread has yielded and finds that many entries. */
static VOID KiJudgeYield(PKTHREAD Thread, LONG Entries)
{
    ULONG Now = (ULONG)HalDispatch.QueryInterruptTime();
    ULONG Cost = Now - Thread->QueueSleepTime;
    Cost = Entries > 0 || Cost < KI_WAKE_TIME ? Cost : KI_WAKE_TIME;
    LONG64 Balance = Thread->QueueBalance + (LONG64)Entries * KI_WAKE_TIME - (LONG64)Cost;
    Balance = Balance < KI_MOST_BALANCE ? Balance : KI_MOST_BALANCE;
    Thread->QueueBalance = Balance > -KI_MOST_BALANCE ? (LONG)Balance : -KI_MOST_BALANCE;
    Thread->QueueSleepTime = Now;
}

/* Returns the number of entries taken. */
static ULONG KiYieldForEntries(PKQUEUE Queue, PKTHREAD Thread, PLIST_ENTRY *EntryArray, ULONG Count)
{
    ULONG Taken = 0;
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    if (KiCountsFor(Queue, Thread) && KI_STATE(Word) <= 0 && !(Word & (KI_QUEUE_ABANDONED | KI_QUEUE_EXPECTED))) {
        Thread->QueueExpects = TRUE;
        Word |= KI_QUEUE_EXPECTED;
    }
    KiUnlockObject(&Queue->Header, Word);
    KiExitDispatcher(Thread);
    if (!Thread->QueueExpects) {
        return 0;
    }
    KiYieldOnce();
    KiEnterDispatcher(Thread);
    if (KiLockThreadQueue(Thread, &Word) != NULL) { /* NULL: a rundown, after which the queue may be freed */
        KiJudgeYield(Thread, KI_STATE(Word));
        Word &= ~KI_QUEUE_EXPECTED;
        if (Queue->CurrentCount <= Queue->MaximumCount) {
            Taken = KiTakeEntries(Queue, &Word, EntryArray, Count);
        }
        KiActivateAndUnlock(Queue, Word);
    }
    Thread->QueueExpects = FALSE;
    KiExitDispatcher(Thread);
    return Taken;
}

/* The thread joins the queue and stops being counted. Then it takes what is there, or is linked: STATUS_PENDING. */
static NTSTATUS KiTakeOrLink(PKI_WAIT Wait, PKQUEUE Queue, PLIST_ENTRY *EntryArray, ULONG Count, PULONG Taken)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG64 Word = KiLockObject(&Queue->Header);

    if (Word & KI_QUEUE_ABANDONED) {
        KiEndOwnWait(Thread);
        KiUnlockObject(&Queue->Header, Word);
        return STATUS_ABANDONED;
    }
    if (__atomic_load_n(&Thread->Queue, __ATOMIC_RELAXED) != Queue) { /* Queue's lock is held: no rundown of it */
        InsertTailList(&Queue->ThreadListHead, &Thread->QueueListEntry);
        KiAssignQueue(Thread, Queue);
    } else if (!Thread->QueueBlocked) {
        Queue->CurrentCount -= 1;
    }
    BOOLEAN MayTake = !IsListEmpty(&Queue->EntryListHead) && Queue->CurrentCount < Queue->MaximumCount;
    Thread->QueueBlocked = !MayTake && !Wait->Poll;
    if (Thread->QueueBlocked) {
        __atomic_store_n(&Wait->Blocks[0].BlockState, WaitBlockActive, __ATOMIC_RELAXED);
        InsertHeadList(&Queue->Header.WaitListHead, &Wait->Blocks[0].WaitListEntry);
        KiUnlockObject(&Queue->Header, Word);
        return STATUS_PENDING;
    }
    *Taken = MayTake ? KiTakeEntries(Queue, &Word, EntryArray, Count) : 0;
    KiEndOwnWait(Thread);
    Queue->CurrentCount += 1;
    KiActivateAndUnlock(Queue, Word); /* if more remains than it takes: an APC has inserted it */
    return MayTake ? STATUS_SUCCESS : STATUS_TIMEOUT;
}

/* One attempt, from begin to unlink. Interrupted: an APC has run in between, and may have inserted entries. */
static NTSTATUS KiRemoveOnce(PKI_WAIT Wait, PKQUEUE Queue, BOOLEAN Interrupted, PLIST_ENTRY *EntryArray, ULONG Count,
                             PULONG Taken)
{
    PKTHREAD Thread = Wait->Thread;
    PKWAIT_BLOCK Block = &Wait->Blocks[0];
    BOOLEAN EndedByOther;
    LONG_PTR Result;

    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable));
    if (Status != STATUS_PENDING) {
        if (Interrupted) {
            KiActivateAndUnlock(Queue, KiLockObject(&Queue->Header));
        }
        return Status;
    }
    Thread->WaitBlockList = Block;
    Thread->WaitBlockCount = 1;
    Status = KiTakeOrLink(Wait, Queue, EntryArray, Count, Taken);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    KiCommitAndSleep(Wait, &EndedByOther, &Result);
    /* acquire: pairs with the release store in KiUnlinkBlock. A queue that unlinked the block may be freed by now. */
    BOOLEAN Linked = __atomic_load_n(&Block->BlockState, __ATOMIC_ACQUIRE) == WaitBlockActive;
    BOOLEAN HandedOver = !Linked && Result != STATUS_ABANDONED;
    if (Linked) {
        ULONG64 Word = KiLockObject(&Queue->Header);
        if (Block->BlockState == WaitBlockActive) {
            KiUnlinkBlock(Block, WaitBlockInactive);
        }
        KiUnlockObject(&Queue->Header, Word);
    }
    KiLeaveWaitState(Wait, EndedByOther);
    if (HandedOver) {
        EntryArray[0] = (PLIST_ENTRY)Result;
        *Taken = 1;
        return STATUS_SUCCESS;
    }
    return (NTSTATUS)Result;
}

/* Returns the number of entries taken; when there is none, EntryArray[0] is the status and the number is 1. */
static DECLSPEC_NOINLINE ULONG KiRemoveQueueSlow(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                                 PLARGE_INTEGER Timeout, PLIST_ENTRY *EntryArray, ULONG Count)
{
    KI_WAIT Wait;
    ULONG Taken = 0;

    KiInitializeWait(&Wait, Queue, WrQueue, WaitMode, Alertable, Timeout);
    PKTHREAD Thread = Wait.Thread;
    if (!Alertable && !Wait.Poll && KiCountsFor(Queue, Thread)) {
        Wait.Spun = TRUE;
        if (KiSpinForEntry(Queue, Thread)) {
            Taken = KiTryRemove(Thread, Queue, EntryArray, Count);
        } else if (KiMayExpectEntries(Thread)) {
            Taken = KiYieldForEntries(Queue, Thread, EntryArray, Count);
        }
        if (Taken != 0) {
            return Taken;
        }
    }
    Wait.Count = 1;
    Wait.WaitType = WaitDequeue;
    for (BOOLEAN Interrupted = FALSE;; Interrupted = TRUE) {
        KiEnterDispatcher(Thread);
        KiPrepareBlock(&Wait.Blocks[0], Thread, Queue, WaitDequeue, 0);
        if (KiHasOtherQueue(Thread, Queue)) {
            KiLeaveQueue(Thread);
        }
        NTSTATUS Status = KiRemoveOnce(&Wait, Queue, Interrupted, EntryArray, Count, &Taken);
        if (Status != STATUS_KERNEL_APC) {
            KiExitDispatcher(Thread);
            if (Taken == 0) {
                EntryArray[0] = (PLIST_ENTRY)(LONG_PTR)Status;
                Taken = 1;
            }
            return Taken;
        }
        PKQUEUE Outer = Thread->QueueAwaited;
        Thread->QueueAwaited = Queue;
        KiExitDispatcher(Thread);
        KiDeliverApc(Thread);
        Thread->QueueAwaited = Outer;
        KiPollClock();
    }
}

ULONG KiRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                      PLIST_ENTRY *EntryArray, ULONG Count)
{
    PKTHREAD Thread = KiCurrentThread();
    /* Alertable or not: for a thread of the queue an available entry takes precedence over user APCs. */
    ULONG Taken = KiMayTakeAtOnce(Thread) ? KiTryRemove(Thread, Queue, EntryArray, Count) : 0;
    return Taken != 0 ? Taken : KiRemoveQueueSlow(Queue, WaitMode, Alertable, Timeout, EntryArray, Count);
}

PLIST_ENTRY KiRemoveQueue(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY Entry;
    if (!KiMayTakeAtOnce(Thread) || KiTryRemove(Thread, Queue, &Entry, 1) == 0) {
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

VOID KiSetQueueLimit(PKQUEUE Queue, ULONG MaximumCount)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&Queue->Header);
    Queue->MaximumCount = MaximumCount;
    KiActivateAndUnlock(Queue, Word);
    KiExitDispatcher(Thread);
}

/* Rundown. */

/* Releases every thread that waits for the queue, and removes the queue from its threads. Leaves it locked and returns
   its word. */
static ULONG64 KiLockAndExpel(PKQUEUE Queue, PKI_READY Released)
{
    ULONG64 Word = KiLockObject(&Queue->Header);
    ULONG64 Signaled = KiWithState(Word, 1);
    for (ULONG Round = 0; !KiReleasePlainWaiters(Queue, &Signaled, Released); Round += 1) {
        KiUnlockObject(&Queue->Header, Word);
        KiBackOff(Round);
        Word = KiLockObject(&Queue->Header);
        Signaled = KiWithState(Word, 1);
    }
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Link = Queue->Header.WaitListHead.Flink; KiIsDequeuer(Queue, Link); Link = Next) {
        Next = Link->Flink;
        KiEndWaitOfBlock(KiBlockOfEntry(Link), STATUS_ABANDONED, Released);
    }
    while (!IsListEmpty(&Queue->ThreadListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Queue->ThreadListHead);
        KiAssignQueue(CONTAINING_RECORD(Entry, KTHREAD, QueueListEntry), NULL);
    }
    Queue->CurrentCount = 0;
    return Word & ~KI_QUEUE_EXPECTED;
}

VOID KiAbandonQueue(PKQUEUE Queue)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_READY Released;

    KiInitializeReady(&Released, 0);
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockAndExpel(Queue, &Released);
    if (!(Word & KI_QUEUE_ABANDONED)) {
        Word = KiWithState(Word, KI_STATE(Word) + 1) | KI_QUEUE_ABANDONED;
    }
    KiUnlockObject(&Queue->Header, Word);
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
}

/* Returns the entries that were queued, linked in a ring without a head, or NULL. */
PLIST_ENTRY KeRundownQueue(PRKQUEUE Queue)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY First = NULL;
    KI_READY Released;

    KiInitializeReady(&Released, 0);
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockAndExpel(Queue, &Released);
    if (!IsListEmpty(&Queue->EntryListHead)) {
        First = Queue->EntryListHead.Flink;
        RemoveEntryList(&Queue->EntryListHead);
        InitializeListHead(&Queue->EntryListHead);
    }
    KiUnlockObject(&Queue->Header, KiWithState(Word, 0) | KI_QUEUE_ABANDONED);
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
    return First;
}

/*
 * Waiting without a thread. A registered block is linked to its object like a thread's and consumes it in the
 * same way, once. BlockState: WaitBlockActive while linked, WaitBlockBypassStart from the moment a signal has unlinked
 * it until the packet or DPC is queued, then WaitBlockBypassComplete; WaitBlockInactive after a cancel.
 */

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
    KiAwaitMove();
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
