/*
 * waitall.c: locking the several objects of a WaitAll.
 *
 * A thread that finds all of its objects signaled locks them as they come, by rule 5 of dispatch.h, and takes them. One
 * that has to wait locks them in the order of their addresses (WaitAllOrder) and then watches one that is not signaled:
 * waitlist.h. A signaler of that one already holds its lock. It first peeks at the others without locking. One that is
 * neither signaled nor locked is locked, looked at again, and watched in the place of the signaler's. Otherwise all of
 * the others are locked by rule 5 of dispatch.h, and the wait is completed, or watches the one that turned out not to be
 * signaled. The peek decides nothing: it only chooses what to lock.
 *
 * KWAIT_BLOCK.SpareLong says which signaler has locked the block's object through this block: it has the signaler's mark.
 * It is written under that object's lock; a thread that reads its own mark there wrote it itself. Two waits of one signal
 * may share an object: it is locked and marked through the first one's block. KI_DORMANT is not part of the mark.
 */
#include "wait.h"

#define KI_MARKED 2
#define KI_MARK_SHIFT 2

static LONG KiReadMark(PKWAIT_BLOCK Block)
{
    /* relaxed: see the head of this file */
    return __atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & ~KI_DORMANT;
}

static VOID KiWriteMark(PKWAIT_BLOCK Block, LONG Mark)
{
    LONG Dormant = __atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & KI_DORMANT;
    __atomic_store_n(&Block->SpareLong, Mark | Dormant, __ATOMIC_RELAXED);
}

VOID KiInitializePeers(PKI_PEERS Peers, PDISPATCHER_HEADER Held, PLIST_ENTRY Before)
{
    Peers->Held = Held;
    Peers->Before = Before;
    Peers->Highest = Held;
    Peers->Count = 0;
    Peers->Mark = (LONG)(KiCurrentThread()->ThreadId << KI_MARK_SHIFT | KI_MARKED);
}

static PKWAIT_BLOCK KiFirstBlock(PKWAIT_BLOCK Block)
{
    return Block->Thread->WaitBlockList;
}

static PKWAIT_BLOCK KiEndOfBlocks(PKWAIT_BLOCK Block)
{
    return Block->Thread->WaitBlockList + Block->Thread->WaitBlockCount;
}

/* Without a lock: a peer that is certainly neither signaled nor locked, or NULL. The look begins behind Block, so of many
   signals that come in the order of the objects each looks at one or two peers. */
static PKWAIT_BLOCK KiFindUnsignaled(PKWAIT_BLOCK Block)
{
    PKWAIT_BLOCK Peer = Block;
    for (ULONG Left = Block->Thread->WaitBlockCount; Left > 1; Left -= 1) {
        Peer = Peer + 1 != KiEndOfBlocks(Block) ? Peer + 1 : KiFirstBlock(Block);
        ULONG64 Word = KiReadHeader(Peer->Object);
        if (!(Word & KI_LOCKED) && !KiIsSignaledFor(Peer->Object, Word, Block->Thread)) {
            return Peer;
        }
    }
    return NULL;
}

/* By rule 5 of dispatch.h. */
static BOOLEAN KiLockByAddress(PKI_PEERS Peers, PDISPATCHER_HEADER Header, ULONG64 *Word)
{
    if (Header > Peers->Highest) {
        *Word = KiLockObject(Header);
        return TRUE;
    }
    return KiTryLockObject(Header, Word);
}

/* With the objects of both blocks locked: TRUE if Peer's is not signaled, and watched. A block that is no longer Active
   belongs to a wait that is over, or that a suspension is taking off its objects. */
static BOOLEAN KiWatch(PKWAIT_BLOCK Peer, ULONG64 Word)
{
    if (KiIsSignaledFor(Peer->Object, Word, Peer->Thread)) {
        return FALSE;
    }
    if (Peer->BlockState == WaitBlockActive) {
        KiMakeEligible(Peer);
    }
    return TRUE;
}

/* Has this signaler locked Object through a block of another wait on the same list? */
static BOOLEAN KiIsLockedElsewhere(PKI_PEERS Peers, PVOID Object)
{
    if (Peers->Count == 0 || !(KiReadHeader(Object) & KI_LOCKED)) {
        return FALSE;
    }
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(Entry);
        if (Block->WaitType != WaitAll) {
            continue;
        }
        for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
            if (Peer->Object == Object && KiReadMark(Peer) == Peers->Mark) {
                return TRUE;
            }
        }
    }
    return FALSE;
}

static BOOLEAN KiLockPeer(PKI_PEERS Peers, PKWAIT_BLOCK Peer)
{
    PDISPATCHER_HEADER Header = Peer->Object;
    ULONG64 Word;
    if (KiIsLockedElsewhere(Peers, Header)) {
        return TRUE;
    }
    if (!KiLockByAddress(Peers, Header, &Word)) {
        return FALSE;
    }
    Peers->Highest = Header > Peers->Highest ? Header : Peers->Highest;
    Peers->Count += 1;
    KiWriteMark(Peer, Peers->Mark);
    return TRUE;
}

static PKWAIT_BLOCK KiBlockInOrder(PKTHREAD Thread, ULONG Index)
{
    return &Thread->WaitBlockList[Thread->WaitAllOrder[Index]];
}

BOOLEAN KiLockPeers(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    PKWAIT_BLOCK Unsignaled;
    while ((Unsignaled = KiFindUnsignaled(Block)) != NULL) {
        ULONG64 Word;
        if (!KiLockByAddress(Peers, Unsignaled->Object, &Word)) {
            return FALSE;
        }
        BOOLEAN Watched = KiWatch(Unsignaled, Word);
        if (Watched) {
            KiMakeDormant(Block);
        }
        KiUnlockObject(Unsignaled->Object, Word);
        if (Watched) {
            return TRUE;
        }
    }
    PKTHREAD Thread = Block->Thread;
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Peer = KiBlockInOrder(Thread, Index);
        if (Peer != Block && !KiLockPeer(Peers, Peer)) {
            return FALSE;
        }
    }
    return TRUE;
}

/* With all of them locked. Block itself stays eligible: the objects that were locked for it are found through it. */
BOOLEAN KiPeersSignaled(PKWAIT_BLOCK Block)
{
    for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
        if (Peer != Block && KiWatch(Peer, KiReadHeader(Peer->Object))) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS KiConsumePeers(PKWAIT_BLOCK Block)
{
    NTSTATUS Status = STATUS_WAIT_0;
    for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
        if (Peer == Block) {
            continue;
        }
        if (KiConsumeHeld(Peer->Object, Peer->Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
        KiUnlinkBlock(Peer, WaitBlockInactive);
    }
    return Status;
}

static VOID KiUnlockPeersOf(PKI_PEERS Peers, PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Peer = &Thread->WaitBlockList[Index];
        if (KiReadMark(Peer) == Peers->Mark) {
            KiWriteMark(Peer, 0);
            KiUnlockObject(Peer->Object, KiReadHeader(Peer->Object));
            Peers->Count -= 1;
        }
    }
}

static VOID KiUnlockAllPeers(PKI_PEERS Peers, PKI_READY Released)
{
    for (PLIST_ENTRY Entry = Peers->Before->Flink; KiIsEligible(Peers->Held, Entry); Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(Entry);
        if (Block->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, Block->Thread);
        }
    }
    for (PKTHREAD Thread = Released != NULL ? Released->First : NULL; Thread != NULL; Thread = Thread->ReadyNext) {
        if (Thread->WaitBlockList->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, Thread);
        }
    }
}

/* Released: the threads released by this signal, whose blocks are no longer on the list. */
VOID KiUnlockPeers(PKI_PEERS Peers, PKI_READY Released)
{
    if (Peers->Count != 0) {
        KiUnlockAllPeers(Peers, Released);
    }
    Peers->Highest = Peers->Held;
}

/* A mutant that cannot be entered once more is left to the caller's own look. */
static BOOLEAN KiMayTake(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread)
{
    return KiIsSignaledFor(Header, Word, Thread) && KI_STATE(Word) != KI_MUTANT_LIMIT;
}

/* Without a lock: a hint, but if it is FALSE there was a moment at which they were not all signaled. */
static BOOLEAN KiMayTakeAll(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        if (!(Word & KI_LOCKED) && !KiMayTake(Object[Index], Word, Thread)) {
            return FALSE;
        }
    }
    return TRUE;
}

/* Returns how many are locked, from the first one on. The second lock of an object that is named twice is tried, and
   fails. */
static ULONG KiLockSignaled(PVOID Object[], ULONG Count, PKTHREAD Thread)
{
    PDISPATCHER_HEADER Highest = NULL;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PDISPATCHER_HEADER Header = Object[Index];
        ULONG64 Word;
        if (Header > Highest) {
            Word = KiLockObject(Header);
            Highest = Header;
        } else if (!KiTryLockObject(Header, &Word)) {
            return Index;
        }
        if (!KiMayTake(Header, Word, Thread)) {
            KiUnlockObject(Header, Word);
            return Index;
        }
    }
    return Count;
}

/*
 * With all of them locked. *Mutants: a bit for each mutant, which its new owner has to enter into its list. Once the
 * others are unlocked, another thread that waited for them may free them.
 */
static NTSTATUS KiConsumeAndUnlock(PVOID Object[], ULONG Count, PKTHREAD Thread, ULONG64 *Mutants)
{
    NTSTATUS Status = STATUS_WAIT_0;
    *Mutants = 0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        *Mutants |= (ULONG64)(KI_TYPE(Word) == MutantObject) << Index;
        if (KiConsumeLocked(Object[Index], &Word, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
        KiUnlockObject(Object[Index], Word);
    }
    return Status;
}

static VOID KiUnlockFirst(PVOID Object[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        KiUnlockObject(Object[Index], KiReadHeader(Object[Index]));
    }
}

/* With the section entered. */
static BOOLEAN KiConsumeIfAllSignaled(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    ULONG64 Mutants;
    ULONG Locked = KiLockSignaled(Object, Count, Thread);
    if (Locked != Count) {
        KiUnlockFirst(Object, Locked);
        return FALSE;
    }
    *Status = KiConsumeAndUnlock(Object, Count, Thread, &Mutants);
    for (; Mutants != 0; Mutants &= Mutants - 1) {
        KiTakeOwnershipIfMutant(Object[__builtin_ctzll(Mutants)], Thread);
    }
    return TRUE;
}

BOOLEAN KiTryConsumeAll(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    if (!KiMayTakeAll(Object, Count, Thread)) {
        return FALSE;
    }
    KiEnterDispatcher(Thread);
    BOOLEAN Taken = KiConsumeIfAllSignaled(Object, Count, Thread, Status);
    KiExitDispatcher(Thread);
    return Taken;
}

VOID KiLockInOrder(PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        KiLockObject(KiBlockInOrder(Thread, Index)->Object);
    }
}

/* The wait cannot be over while one of its objects is locked: its thread has still to take the block off. */
VOID KiUnlockInOrder(PKTHREAD Thread)
{
    ULONG Count = Thread->WaitBlockCount;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PDISPATCHER_HEADER Header = KiBlockInOrder(Thread, Index)->Object;
        KiUnlockObject(Header, KiReadHeader(Header));
    }
}

BOOLEAN KiAllSignaledFor(PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PDISPATCHER_HEADER Header = Thread->WaitBlockList[Index].Object;
        if (!KiIsSignaledFor(Header, KiReadHeader(Header), Thread)) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS KiConsumeAll(PKTHREAD Thread)
{
    NTSTATUS Status = STATUS_WAIT_0;
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        if (KiConsumeHeld(Thread->WaitBlockList[Index].Object, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
    }
    return Status;
}
