/* dispatch.c: the object lock, and ending the waits that an object's state satisfies. Theory in dispatch.h. */
#include "dispatch.h"

#include "signalobject.h"

ULONG64 KiReadSettledHeader(PDISPATCHER_HEADER Header)
{
    ULONG64 Word;
    for (ULONG Round = 0; (Word = KiReadHeader(Header)) & KI_LOCKED; Round += 1) {
        HalLongSpin(Round);
    }
    return Word;
}

ULONG64 KiLockObjectSlow(PDISPATCHER_HEADER Header)
{
    ULONG64 Word;
    do {
        KiReadSettledHeader(Header);
    } while (!KiTryLockObject(Header, &Word));
    return Word;
}

/* Records the owner of a mutant whose count has just become 0. The list of owned mutants is the owner's own business. */
NTSTATUS KiGiveMutant(PKMUTANT Mutant, PKTHREAD Thread)
{
    NTSTATUS Status = Mutant->Abandoned ? STATUS_ABANDONED : STATUS_SUCCESS;
    Mutant->Abandoned = FALSE;
    /* relaxed: see KiOwnsMutant; other readers only show it */
    __atomic_store_n(&Mutant->OwnerThread, Thread, __ATOMIC_RELAXED);
    return Status;
}

NTSTATUS KiConsumeHeld(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    NTSTATUS Status = KiConsumeLocked(Header, &Word, Thread);
    /* relaxed: the lock is held, its release publishes */
    __atomic_store_n(KiHeaderWord(Header), Word, __ATOMIC_RELAXED);
    return Status;
}

/* An object that stays as it is still gets the compare-exchange: it is what synchronises with the signaler. */
static BOOLEAN KiTryTake(PDISPATCHER_HEADER Header, PKTHREAD Thread, ULONG64 *New)
{
    ULONG64 Word = KiReadHeader(Header);
    for (;;) {
        if (Word & KI_LOCKED) {
            Word = KiReadSettledHeader(Header);
        }
        if (!KiIsSignaledFor(Header, Word, Thread)) {
            return FALSE;
        }
        *New = KiConsumed(Word);
        if (KiCompareExchangeHeader(Header, &Word, *New)) {
            return TRUE;
        }
    }
}

/* In a dispatcher section: a fork must not find a mutant that is taken and has no owner yet. */
static BOOLEAN KiTryConsumeMutant(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status)
{
    ULONG64 New;
    KiEnterDispatcher(Thread);
    BOOLEAN Taken = KiTryTake(&Mutant->Header, Thread, &New);
    if (Taken) {
        *Status = STATUS_SUCCESS;
        if (KI_STATE(New) == 0) {
            *Status = KiGiveMutant(Mutant, Thread);
            KiTakeOwnershipOf(Mutant, Thread);
        }
    }
    KiExitDispatcher(Thread);
    return Taken;
}

/* In a dispatcher section, as above. */
static BOOLEAN KiTryOwnMutant(PKMUTANT Mutant, ULONG64 Word, PKTHREAD Thread, NTSTATUS *Status)
{
    KiEnterDispatcher(Thread);
    BOOLEAN Owned = KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, 0));
    if (Owned) {
        *Status = KiGiveMutant(Mutant, Thread);
        KiTakeOwnershipOf(Mutant, Thread);
    }
    KiExitDispatcher(Thread);
    return Owned;
}

BOOLEAN KiTryEnterMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    ULONG64 Word = KiReadHeader(Header);
    if (Word & KI_LOCKED) {
        return FALSE;
    }
    if (KI_STATE(Word) > 0) {
        return KiTryOwnMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Word, Thread, Status);
    }
    *Status = STATUS_SUCCESS;
    return KiOwnsMutant(Header, Thread) && KI_STATE(Word) != KI_MUTANT_LIMIT &&
           KiCompareExchangeHeader(Header, &Word, KiWithState(Word, KI_STATE(Word) - 1));
}

BOOLEAN KiTryConsume(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    ULONG64 New;
    if (KI_TYPE(KiReadHeader(Header)) == MutantObject) {
        return KiTryConsumeMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Thread, Status);
    }
    *Status = STATUS_SUCCESS;
    return KiTryTake(Header, Thread, &New);
}

static VOID KiMakeReady(PKI_READY Released, PKTHREAD Thread)
{
    Thread->ReadyNext = NULL;
    *Released->Last = Thread;
    Released->Last = &Thread->ReadyNext;
}

/* The block that a signal reaches before its thread's wait is committed passes through the bypass states. */
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

static VOID KiSatisfyAny(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, PKI_READY Released)
{
    PKTHREAD Thread = Block->Thread;
    USHORT Key = Block->WaitKey;
    if (KiEndWaitOfBlock(Block, Key, Released)) {
        if (KiConsumeLocked(Header, Word, Thread) == STATUS_ABANDONED) {
            Thread->WaitStatus = STATUS_ABANDONED_WAIT_0 + Key;
        }
    }
}

static VOID KiSatisfyNotification(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, PKI_READY Released)
{
    KiConsumeLocked(Header, Word, NULL);
    RemoveEntryList(&Block->WaitListEntry);
    Block->SparePtr = NULL;
    *Released->LastNotification = Block;
    Released->LastNotification = &Block->SparePtr;
    __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
}

VOID KiForeignWaiter(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block)
{
    HalPrint("interlock: the object at %p has a waiter, %p, that this process does not know. Objects and locks in memory that "
             "processes share are not supported, nor is memory that is overwritten\n", (PVOID)Header, (PVOID)Block);
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_CORRUPT_LIST_ENTRY, (ULONG_PTR)Header, (ULONG_PTR)Block, 0);
}

/*
 * A WaitAll block satisfies its thread only when every other object of that wait is signaled too, so those are locked
 * first. Where one signal can release several waits, all of the locks are taken before anything is changed.
 */
static BOOLEAN KiPrepareWaitAlls(PKI_PEERS Peers)
{
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Next) {
        PKWAIT_BLOCK Block = KiBlockOnList(Peers->Held, Entry);
        Next = Entry->Flink;
        if (Block->WaitType == WaitAll && !KiLockPeers(Peers, Block)) {
            KiUnlockPeers(Peers, NULL);
            return FALSE;
        }
    }
    return TRUE;
}

static VOID KiSatisfyAll(PDISPATCHER_HEADER Header, ULONG64 *Word, PKWAIT_BLOCK Block, PKI_READY Released)
{
    PKTHREAD Thread = Block->Thread;
    if (!KiPeersSignaled(Block) || KiEndWait(Thread, STATUS_WAIT_0) == KI_NOT_ENDED) {
        return;
    }
    NTSTATUS Status = KiConsumePeers(Block);
    if (KiConsumeLocked(Header, Word, Thread) == STATUS_ABANDONED) {
        Status = STATUS_ABANDONED;
    }
    Thread->WaitStatus = Status;
    KiUnlinkBlock(Block, WaitBlockInactive);
    KiMakeReady(Released, Thread);
}

BOOLEAN KiReleaseBehind(PDISPATCHER_HEADER Header, PLIST_ENTRY Before, ULONG64 *Word, PKI_READY Released)
{
    BOOLEAN Several = KiIsOfTypes(*Word, KI_TAKES_COUNT) ? KI_STATE(*Word) > 1
                                                         : !KiIsOfTypes(*Word, KI_TAKES_SIGNAL | KI_TAKES_OWNERSHIP);
    KI_PEERS Peers;

    KiInitializePeers(&Peers, Header, Before);
    if (Several && !KiPrepareWaitAlls(&Peers)) {
        return FALSE;
    }
    PLIST_ENTRY Next;
    for (PLIST_ENTRY Entry = Before->Flink; KI_STATE(*Word) > 0 && KiIsEligible(Header, Entry); Entry = Next) {
        PKWAIT_BLOCK Block = KiBlockOnList(Header, Entry);
        Next = Entry->Flink;
        switch (Block->WaitType) {
        case WaitAny:
            KiSatisfyAny(Header, Word, Block, Released);
            break;
        case WaitAll:
            if (!Several && !KiLockPeers(&Peers, Block)) {
                KiUnlockPeers(&Peers, NULL);
                return FALSE;
            }
            if (!KiIsDormant(Block)) {
                KiSatisfyAll(Header, Word, Block, Released);
            }
            break;
        case WaitNotification:
        case WaitDpc:
            KiSatisfyNotification(Header, Word, Block, Released);
            break;
        default:
            break; /* WaitDequeue: a queue has none of those behind Before */
        }
    }
    KiUnlockPeers(&Peers, Released);
    return TRUE;
}

static VOID KiWakeThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->WakerProcessor, HalDispatch.CurrentProcessor() + 1, __ATOMIC_RELAXED);
    /* release: everything decided about the wait is visible to the thread that sees the word; pairs with KiPark */
    if (__atomic_exchange_n(&Thread->WakeWord, KI_WOKEN, __ATOMIC_ACQ_REL) == KI_SLEEPING) {
        KiCurrentThread()->WokeSleeper = TRUE;
        HalDispatch.Wake(&Thread->WakeWord, 1);
    }
}

VOID KiReadyThread(PKTHREAD Thread, KPRIORITY Increment)
{
    KTRACE_WAKE(Thread);
    /* A wait that was aborted before it was committed has its queue accounting undone by its own thread. */
    if ((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_STATE_MASK) == WaitCommitted) {
        KiUnblockFromQueue(Thread);
    }
    KiBoostThread(Thread, Increment);
    __atomic_store_n(&Thread->State, DeferredReady, __ATOMIC_RELAXED);
    KiWakeThread(Thread);
}

static VOID KiReadyReleasedThread(PKI_READY Released, PKTHREAD Thread)
{
    KPRIORITY ToFloor = Released->BoostFloor - __atomic_load_n(&Thread->BasePriority, __ATOMIC_RELAXED);
    KiReadyThread(Thread, ToFloor > Released->Increment ? ToFloor : Released->Increment);
}

static DECLSPEC_NOINLINE VOID KiReadyAllReleased(PKI_READY Released)
{
    PKTHREAD NextThread;
    for (PKTHREAD Thread = Released->First; Thread != NULL; Thread = NextThread) {
        NextThread = Thread->ReadyNext;
        KiReadyReleasedThread(Released, Thread);
    }
    PKWAIT_BLOCK NextBlock;
    for (PKWAIT_BLOCK Block = Released->Notifications; Block != NULL; Block = NextBlock) {
        NextBlock = Block->SparePtr;
        KiDeliverNotification(Block);
    }
}

/* As a rule it is one thread. Then all calls from here down to the host are jumps: block.h says why. */
VOID KiReadyReleased(PKI_READY Released)
{
    PKTHREAD Thread = Released->First;
    if (Thread != NULL && Thread->ReadyNext == NULL && Released->Notifications == NULL) {
        KiReadyReleasedThread(Released, Thread);
    } else {
        KiReadyAllReleased(Released);
    }
}

BOOLEAN KiSignal(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    return KiSignalInline(Header, Signal, Previous);
}

static BOOLEAN KiAssignState(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    *Word = KiWithState(*Word, *(PLONG)Context);
    return TRUE;
}

LONG KiSignalObject(PDISPATCHER_HEADER Header, LONG State, KPRIORITY Increment)
{
    KI_SIGNAL Signal = {.Update = KiAssignState, .Context = &State, .Increment = Increment};
    LONG Previous;
    KiSignal(Header, &Signal, &Previous);
    return Previous;
}
