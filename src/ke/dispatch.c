/*
 * dispatch.c: the object lock, the wait list, and the signaler's side of a wait. Theory in dispatch.h.
 *
 * The signaler of a WaitAll's watched object holds that object's lock. It first peeks at the peers, the wait's other
 * objects, without locking. If a peer looks neither signaled nor locked, the signaler locks and checks it, and makes the
 * wait watch it instead. Otherwise it locks all of the peers by rule 5, and either completes the wait or makes it watch
 * the peer that is not signaled after all. The peek decides nothing: it only chooses what to lock.
 *
 * KWAIT_BLOCK.SpareLong names the signaler that has locked the block's object through this block, by the signaler's
 * mark. It is written under that object's lock; a thread that reads its own mark wrote it itself. Two waits of one
 * signal may share an object: it is locked and marked through the first one's block. KI_DORMANT is not part of the mark.
 */
#include "wait.h"

/* The object lock. */

ULONG64 KiReadSettledHeader(PDISPATCHER_HEADER Header)
{
    ULONG64 Word;
    for (ULONG Round = 0; (Word = KiReadHeader(Header)) & KI_LOCKED; Round += 1) {
        if (KiIsOutside(Header)) {
            return KiReadOutsideHeader(Header);
        }
        KiBackOff(Round);
    }
    return Word;
}

/* For the explorer a line has no distance; the reads would only add steps to interleave. */
static VOID KiTimeObject(PKTHREAD Thread, const KI_PATIENCE *Patience, PDISPATCHER_HEADER Header)
{
#ifdef INTERLOCK_HOST
    KiTimeLook(Thread, Patience, (volatile ULONG *)&Header->SignalState);
#else
    UNREFERENCED_PARAMETER(Thread);
    UNREFERENCED_PARAMETER(Patience);
    UNREFERENCED_PARAMETER(Header);
#endif
}

ULONG64 KiLockObjectSlow(PDISPATCHER_HEADER Header)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_PARK_USE Use = KiIsNear(Thread) ? KiParkForOther : KiParkForFarObject;
    KI_PATIENCE Patience;
    ULONG64 Word;
    KiBeginPatience(&Patience, Thread, Use);
    while (!KiTryLockObject(Header, &Word)) {
        if (KiIsOutside(Header)) {
            return 0;
        }
        BOOLEAN Spins = Patience.Spins != 0;
        KiStayAwake(&Patience, Thread, Use);
        if (Spins) {
            KiTimeObject(Thread, &Patience, Header);
        }
    }
    return Word;
}

/* The wait list. */

volatile ULONG64 KiWaitAllNumber;

/* relaxed: under the object's lock; other signalers only compare with their own marks */
static VOID KiChangeSpareLong(PKWAIT_BLOCK Block, LONG Clear, LONG Set)
{
    LONG Value = __atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED);
    __atomic_store_n(&Block->SpareLong, (Value & ~Clear) | Set, __ATOMIC_RELAXED);
}

static VOID KiInsertDormant(PKWAIT_BLOCK Block)
{
    PLIST_ENTRY Head = &((PDISPATCHER_HEADER)Block->Object)->WaitListHead;
    PLIST_ENTRY First = KiEndOfEligible(Block->Object);
    InsertTailList(Head, &Block->WaitListEntry);
    Block->SparePtr = First != Head ? First : &Block->WaitListEntry;
    KiChangeSpareLong(Block, 0, KI_DORMANT);
}

/* Keeps rule 10: the last of the remaining dormant blocks points to the first. */
VOID KiRemoveDormant(PKWAIT_BLOCK Block)
{
    PLIST_ENTRY Entry = &Block->WaitListEntry;
    PKWAIT_BLOCK Last = KiBlockOfEntry(((PDISPATCHER_HEADER)Block->Object)->WaitListHead.Blink);
    if (Last->SparePtr == Entry) {
        Last->SparePtr = Entry->Flink;
    } else if (Last == Block) {
        KiBlockOfEntry(Entry->Blink)->SparePtr = Block->SparePtr;
    }
    RemoveEntryList(Entry);
    KiChangeSpareLong(Block, KI_DORMANT, 0);
}

/* Prefers an object without waiters: it will be signaled for this wait alone. If all objects are signaled, the wait is
   about to be abandoned, and any object is fine. */
static PKWAIT_BLOCK KiChooseWatched(PKTHREAD Thread)
{
    PKWAIT_BLOCK Watched = NULL;
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        PDISPATCHER_HEADER Header = Block->Object;
        if (KiIsSignaledFor(Header, KiReadHeader(Header), Thread)) {
            continue;
        }
        if (IsListEmpty(&Header->WaitListHead)) {
            return Block;
        }
        Watched = Watched != NULL ? Watched : Block;
    }
    return Watched != NULL ? Watched : Thread->WaitBlockList;
}

VOID KiLinkWaitAll(PKTHREAD Thread)
{
    PKWAIT_BLOCK Watched = KiChooseWatched(Thread);
    Thread->WaitAllNumber = __atomic_add_fetch(&KiWaitAllNumber, 1, __ATOMIC_RELAXED);
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        if (Block == Watched) {
            KiLinkYoungest(Block, Thread->WaitAllNumber);
        } else {
            __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
            KiInsertDormant(Block);
        }
    }
}

VOID KiForeignWaiter(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block)
{
    HalPrint("interlock: the object at %p has a waiter, %p, that this process did not create. Objects and locks in memory "
             "shared between processes are not supported; or the memory was overwritten\n", (PVOID)Header, (PVOID)Block);
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_CORRUPT_LIST_ENTRY, (ULONG_PTR)Header, (ULONG_PTR)Block, 0);
}

/* The peers of WaitAlls, locked by a signaler that holds one of the objects. */

#define KI_MARKED 2
#define KI_MARK_SHIFT 2

typedef struct _KI_PEERS {
    PDISPATCHER_HEADER Held;    /* the object that is being signaled */
    PLIST_ENTRY Before;         /* the examined blocks begin after this entry of its list, or its head */
    PDISPATCHER_HEADER Highest; /* the highest address locked so far */
    LONG Mark;                  /* the signaler's own */
    ULONG Count;                /* peers locked */
} KI_PEERS, *PKI_PEERS;

static BOOLEAN KiHasMark(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    /* relaxed: see the head of this file */
    return (__atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & ~KI_DORMANT) == Peers->Mark;
}

/* Locks by rule 5. */
static BOOLEAN KiLockByAddress(PKI_PEERS Peers, PDISPATCHER_HEADER Header, ULONG64 *Word)
{
    if (Header > Peers->Highest) {
        *Word = KiLockObject(Header);
        return *Word != 0; /* 0: it has just moved outside, and its waits have ended */
    }
    return KiTryLockObject(Header, Word);
}

/* With Peer's object locked: TRUE if it is not signaled and watched now. The block goes behind the eligible blocks that are
   older than its wait. A dequeuer's number is 0: it stays in front. The block of a wait that has ended, or that a suspension
   is unlinking, is no longer Active, and stays where it is. */
static BOOLEAN KiWatch(PKWAIT_BLOCK Peer, ULONG64 Word)
{
    PDISPATCHER_HEADER Header = Peer->Object;
    ULONG64 Number = Peer->Thread->WaitAllNumber;
    if (KiIsSignaledFor(Header, Word, Peer->Thread)) {
        return FALSE;
    }
    if (Peer->BlockState == WaitBlockActive && KiIsDormant(Peer)) {
        KiRemoveDormant(Peer);
        PLIST_ENTRY Older = KiEndOfEligible(Header)->Blink;
        while (Older != &Header->WaitListHead && (ULONG_PTR)KiBlockOfEntry(Older)->SparePtr >= Number) {
            Older = Older->Blink;
        }
        Peer->SparePtr = (PVOID)Number;
        InsertHeadList(Older, &Peer->WaitListEntry);
    }
    return TRUE;
}

/* Has this signaler locked Object through the block of another wait on the same list? */
static BOOLEAN KiIsLockedElsewhere(PKI_PEERS Peers, PVOID Object)
{
    if (Peers->Count == 0 || !(KiReadHeader(Object) & KI_LOCKED)) {
        return FALSE;
    }
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(Entry);
        for (ULONG Index = 0; Block->WaitType == WaitAll && Index < Block->Thread->WaitBlockCount; Index += 1) {
            PKWAIT_BLOCK Peer = &Block->Thread->WaitBlockList[Index];
            if (Peer->Object == Object && KiHasMark(Peers, Peer)) {
                return TRUE;
            }
        }
    }
    return FALSE;
}

/* Locks the other objects of Block's wait, or makes the wait watch one that is not signaled; then Block is dormant.
   FALSE: one of them could not be locked. */
static BOOLEAN KiLockPeers(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    PKTHREAD Thread = Block->Thread;
    PKWAIT_BLOCK Peer = Block;
    ULONG64 Word;

    /* The peek begins after Block, so signals that arrive in the order of the objects examine one or two peers each. */
    for (ULONG Left = Thread->WaitBlockCount; Left > 1; Left -= 1) {
        Peer = Peer + 1 != Thread->WaitBlockList + Thread->WaitBlockCount ? Peer + 1 : Thread->WaitBlockList;
        Word = KiReadHeader(Peer->Object);
        if ((Word & KI_LOCKED) || KiIsSignaledFor(Peer->Object, Word, Thread)) {
            continue;
        }
        if (!KiLockByAddress(Peers, Peer->Object, &Word)) {
            return FALSE;
        }
        BOOLEAN Watched = KiWatch(Peer, Word);
        if (Watched) {
            RemoveEntryList(&Block->WaitListEntry);
            KiInsertDormant(Block);
        }
        KiUnlockObject(Peer->Object, Word);
        if (Watched) {
            return TRUE;
        }
    }
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        Peer = &Thread->WaitBlockList[Thread->WaitAllOrder[Index]];
        PDISPATCHER_HEADER Header = Peer->Object;
        if (Peer == Block || KiIsLockedElsewhere(Peers, Header)) {
            continue;
        }
        if (!KiLockByAddress(Peers, Header, &Word)) {
            return FALSE;
        }
        Peers->Highest = Header > Peers->Highest ? Header : Peers->Highest;
        Peers->Count += 1;
        KiChangeSpareLong(Peer, ~KI_DORMANT, Peers->Mark);
    }
    return TRUE;
}

/* The mark goes before the lock: the next signaler may mark the block at once. The order of the objects is free: a thread
   that waits for one of them holds only lower ones, and the signaler needs no more locks. */
static VOID KiUnlockPeersOf(PKI_PEERS Peers, PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Peer = &Thread->WaitBlockList[Index];
        if (KiHasMark(Peers, Peer)) {
            KiChangeSpareLong(Peer, ~KI_DORMANT, 0);
            KiUnlockObject(Peer->Object, KiReadHeader(Peer->Object));
        }
    }
}

/* Released: the threads that this signal released; their blocks are no longer on the list. */
static VOID KiUnlockPeers(PKI_PEERS Peers, PKI_READY Released)
{
    if (Peers->Count == 0) {
        return;
    }
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Entry->Flink) {
        if (KiBlockOfEntry(Entry)->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, KiBlockOfEntry(Entry)->Thread);
        }
    }
    for (PKTHREAD Thread = Released->First; Thread != NULL; Thread = Thread->ReadyNext) {
        if (Thread->WaitBlockList->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, Thread);
        }
    }
}

/* Ending waits. */

static VOID KiMakeReady(PKI_READY Released, PKTHREAD Thread)
{
    Thread->ReadyNext = NULL;
    *Released->Last = Thread;
    Released->Last = &Thread->ReadyNext;
}

/* If the wait was not committed yet, the block passes through the bypass states. */
BOOLEAN KiEndWaitOfBlock(PKWAIT_BLOCK Block, LONG_PTR Status, PKI_READY Released)
{
    PKTHREAD Thread = Block->Thread;
    ULONG Ended = KiEndWait(Thread, Status);
    if (Ended == KI_NOT_ENDED) {
        return FALSE;
    }
    if (Ended == WaitInProgress) {
        __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
        KiUnlinkBlock(Block, WaitBlockBypassComplete);
    } else {
        KiUnlinkBlock(Block, WaitBlockInactive);
    }
    KiMakeReady(Released, Thread);
    return TRUE;
}

/* Many: of a wait for any of many objects, see wait.c. */
FORCEINLINE VOID KiSatisfyAny(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, BOOLEAN Many,
                              PKI_READY Released)
{
    PKTHREAD Thread = Block->Thread;
    USHORT Key = Block->WaitKey;
    if (KiEndWaitOfBlock(Block, KiStatusOfIndex(STATUS_WAIT_0, Key, Many), Released) &&
        KiConsumeLocked(Header, Word, Thread) == STATUS_ABANDONED) {
        Thread->WaitStatus = KiStatusOfIndex(STATUS_ABANDONED_WAIT_0, Key, Many);
    }
}

/* With all of the peers locked. If one of them is not signaled, the wait watches it too; Block stays eligible, because
   the objects that were locked for it are found through it. */
static VOID KiSatisfyAll(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, PKI_READY Released)
{
    PKTHREAD Thread = Block->Thread;
    PKWAIT_BLOCK End = Thread->WaitBlockList + Thread->WaitBlockCount;
    for (PKWAIT_BLOCK Peer = Thread->WaitBlockList; Peer != End; Peer += 1) {
        if (Peer != Block && KiWatch(Peer, KiReadHeader(Peer->Object))) {
            return;
        }
    }
    if (KiEndWait(Thread, STATUS_WAIT_0) == KI_NOT_ENDED) {
        return;
    }
    NTSTATUS Status = KiConsumeLocked(Header, Word, Thread);
    for (PKWAIT_BLOCK Peer = Thread->WaitBlockList; Peer != End; Peer += 1) {
        if (Peer != Block && KiConsumeHeld(Peer->Object, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
        KiUnlinkBlock(Peer, WaitBlockInactive);
    }
    Thread->WaitStatus = Status;
    KiMakeReady(Released, Thread);
}

/* Where one signal can release several waits, the peers of all of them are locked before anything changes. */
static BOOLEAN KiLockPeersOfAll(PKI_PEERS Peers)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Next) {
        PKWAIT_BLOCK Block = KiBlockOnList(Peers->Held, Entry);
        Next = Entry->Flink;
        if (Block->WaitType == WaitAll && !KiLockPeers(Peers, Block)) {
            return FALSE;
        }
    }
    return TRUE;
}

/* The notification is delivered after the object is unlocked. */
static VOID KiSatisfyNotification(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, PKI_READY Released)
{
    KiConsumeLocked(Header, Word, NULL);
    RemoveEntryList(&Block->WaitListEntry);
    Block->SparePtr = NULL;
    *Released->LastNotification = Block;
    Released->LastNotification = &Block->SparePtr;
    __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
}

/* KiReleaseBehind. Several: one signal can release several waits. */
static DECLSPEC_NOINLINE BOOLEAN KiReleaseEach(PDISPATCHER_HEADER Header, PLIST_ENTRY Before, BOOLEAN Several,
                                               ULONG64 *Word, PKI_READY Released)
{
    KI_PEERS Peers = {.Held = Header, .Before = Before, .Highest = Header,
                      .Mark = (LONG)(KiCurrentThread()->ThreadId << KI_MARK_SHIFT | KI_MARKED)};
    BOOLEAN Locked = !Several || KiLockPeersOfAll(&Peers);
    PLIST_ENTRY Next;

    for (PLIST_ENTRY Entry = Before->Flink; Locked && KI_STATE(*Word) > 0 && KiIsEligible(Header, Entry); Entry = Next) {
        PKWAIT_BLOCK Block = KiBlockOnList(Header, Entry);
        Next = Entry->Flink;
        switch (Block->WaitType) {
        case WaitAny:
            KiSatisfyAny(Header, Word, Block, FALSE, Released);
            break;
        case WaitAll:
            Locked = Several || KiLockPeers(&Peers, Block);
            if (Locked && !KiIsDormant(Block)) {
                KiSatisfyAll(Header, Word, Block, Released);
            }
            break;
        case WaitNotification:
        case WaitDpc:
            KiSatisfyNotification(Header, Word, Block, Released);
            break;
        case KI_MANY_BLOCK:
            KiSatisfyAny(Header, Word, Block, TRUE, Released);
            break;
        case KI_WATCH_BLOCK:
            KiEndWaitOfBlock(Block, STATUS_WAIT_0, Released);
            break;
        default:
            break; /* WaitDequeue: a queue has none of those behind Before */
        }
    }
    KiUnlockPeers(&Peers, Released);
    return Locked;
}

/* Usually the oldest wait is one for any of its objects, or a notification, and takes the whole signal. If another thread has just
   ended it, KiReleaseEach meets its block again and passes it. */
BOOLEAN KiReleaseBehind(PDISPATCHER_HEADER Header, PLIST_ENTRY Before, ULONG64 *Word, PKI_READY Released)
{
    PLIST_ENTRY First = Before->Flink;
    if (!KiIsEligible(Header, First)) {
        return TRUE; /* usually WaitAlls that watch other objects, which must cost this signal nothing */
    }
    BOOLEAN Several = KiIsOfTypes(*Word, KI_TAKES_COUNT) ? KI_STATE(*Word) > 1
                                                         : !KiIsOfTypes(*Word, KI_TAKES_SIGNAL | KI_TAKES_OWNERSHIP);
    PKWAIT_BLOCK Block = KiBlockOnList(Header, First);
    if (!Several && (Block->WaitType == WaitAny || Block->WaitType == WaitNotification)) {
        if (Block->WaitType == WaitAny) {
            KiSatisfyAny(Header, Word, Block, FALSE, Released);
        } else {
            KiSatisfyNotification(Header, Word, Block, Released);
        }
        if (KI_STATE(*Word) <= 0) {
            return TRUE;
        }
    }
    return KiReleaseEach(Header, Before, Several, Word, Released);
}

/* Waking. */

VOID KiReadyThread(PKTHREAD Thread, KPRIORITY Increment)
{
    KTRACE_WAKE(Thread);
    /* A wait that was aborted before it was committed has its queue accounting undone by its own thread. */
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    if ((Register & KI_WAIT_STATE_MASK) == WaitCommitted) {
        KiUnblockFromQueue(Thread);
    }
    if (Increment > 0) {
        KiBoostWokenThread(Thread, Increment);
    }
    __atomic_store_n(&Thread->State, DeferredReady, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->WakerProcessor, HalDispatch.CurrentProcessor() + 1, __ATOMIC_RELAXED);
    if (Register & KI_WAIT_OUTSIDE) {
        KiWakeOutside(Thread);
        return;
    }
    /* release: the thread that sees the word sees everything decided about its wait; pairs with KiParkOnWord */
    if (__atomic_exchange_n(&Thread->WakeWord, KI_WOKEN, __ATOMIC_ACQ_REL) == KI_SLEEPING) {
        KiCurrentThread()->WokeSleeper = TRUE;
        HalDispatch.Wake(&Thread->WakeWord, 1);
    }
}

VOID KiReadyReleased(PKI_READY Released)
{
    PKTHREAD NextThread;
    for (PKTHREAD Thread = Released->First; Thread != NULL; Thread = NextThread) {
        KPRIORITY ToFloor = Released->BoostFloor - __atomic_load_n(&Thread->BasePriority, __ATOMIC_RELAXED);
        KPRIORITY Increment = ToFloor > Released->Increment ? ToFloor : Released->Increment;
        NextThread = Thread->ReadyNext; /* before the thread runs */
        KiReadyThread(Thread, Increment);
    }
    PKWAIT_BLOCK NextBlock;
    for (PKWAIT_BLOCK Block = Released->Notifications; Block != NULL; Block = NextBlock) {
        NextBlock = Block->SparePtr;
        KiDeliverNotification(Block);
    }
}

/* Signals. */

BOOLEAN KiSignal(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    return KiSignalInline(Header, Signal, Previous);
}

LONG KiSignalObject(PDISPATCHER_HEADER Header, LONG State, KPRIORITY Increment)
{
    KI_SIGNAL Signal = {.Update = KiUpdateState, .Context = &State, .Increment = Increment};
    LONG Previous;
    KiSignal(Header, &Signal, &Previous);
    return Previous;
}
