/*
 * waitall.c: locking the several objects of a WaitAll.
 *
 * A thread that finds all of its objects signaled locks them as they come, by rule 5 of dispatch.h, and takes them. One
 * that has to wait chains its blocks by the addresses of the objects (through SparePtr) and locks in that order. A
 * signaler already holds one of the objects. It first peeks at the others without locking: if one is neither signaled nor
 * locked, the wait cannot be satisfied now, and whoever signals that one later will find this object's lock bit or its
 * new state, because both sides lock (seq_cst) before they peek (seq_cst). Otherwise it locks the others by rule 5 of
 * dispatch.h.
 *
 * KWAIT_BLOCK.SpareLong says by which signaler, and whether through this block, the block's object is locked. It is
 * written under that object's lock; a thread that reads its own mark there wrote it itself. Two waits of one signal may
 * share an object: it is locked through the first one's block, and only marked in the second's.
 */
#include "wait.h"

#define KI_LOCKED_HERE 1
#define KI_LOCKED_ELSEWHERE 2

static LONG KiReadMark(PKWAIT_BLOCK Block)
{
    /* relaxed: see the head of this file */
    return __atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED);
}

static VOID KiWriteMark(PKWAIT_BLOCK Block, LONG Mark)
{
    __atomic_store_n(&Block->SpareLong, Mark, __ATOMIC_RELAXED);
}

VOID KiInitializePeers(PKI_PEERS Peers, PDISPATCHER_HEADER Held)
{
    Peers->Held = Held;
    Peers->Highest = Held;
    Peers->Count = 0;
    Peers->Mark = (LONG)(KiCurrentThread()->ThreadId << 2);
}

static PKWAIT_BLOCK KiFirstBlock(PKWAIT_BLOCK Block)
{
    return Block->Thread->WaitBlockList;
}

static PKWAIT_BLOCK KiEndOfBlocks(PKWAIT_BLOCK Block)
{
    return Block->Thread->WaitBlockList + Block->Thread->WaitBlockCount;
}

static BOOLEAN KiPeerMayBeSignaled(PKWAIT_BLOCK Block)
{
    PDISPATCHER_HEADER Header = Block->Object;
    /* seq_cst: pairs with the compare-exchange in KiTryLockObject of whoever signals this peer */
    ULONG64 Word = __atomic_load_n(KiHeaderWord(Header), __ATOMIC_SEQ_CST);
    return (Word & KI_LOCKED) || KiIsSignaledFor(Header, Word, Block->Thread);
}

/* The look begins where the last one failed: of many signals that come one after the other, each looks at a few peers. */
static BOOLEAN KiAllMayBeSignaled(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    PKTHREAD Thread = Block->Thread;
    ULONG Index = __atomic_load_n(&Thread->WaitAllHint, __ATOMIC_RELAXED); /* relaxed, here and below: a hint */
    for (ULONG Left = Thread->WaitBlockCount; Left != 0; Left -= 1) {
        Index = Index < Thread->WaitBlockCount ? Index : 0;
        PKWAIT_BLOCK Peer = &Thread->WaitBlockList[Index];
        if (Peer->Object != Peers->Held && !KiPeerMayBeSignaled(Peer)) {
            __atomic_store_n(&Thread->WaitAllHint, (UCHAR)Index, __ATOMIC_RELAXED);
            return FALSE;
        }
        Index += 1;
    }
    return TRUE;
}

/* Has this signaler locked Object through a block of another wait on the same list? */
static BOOLEAN KiIsLockedElsewhere(PKI_PEERS Peers, PVOID Object)
{
    PLIST_ENTRY Head = &Peers->Held->WaitListHead;
    if (Peers->Count == 0 || !(KiReadHeader(Object) & KI_LOCKED)) {
        return FALSE;
    }
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
        if (Block->WaitType != WaitAll) {
            continue;
        }
        for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
            if (Peer->Object == Object && KiReadMark(Peer) == (Peers->Mark | KI_LOCKED_HERE)) {
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
        KiWriteMark(Peer, Peers->Mark | KI_LOCKED_ELSEWHERE);
        return TRUE;
    }
    if (Header > Peers->Highest) {
        KiLockObject(Header);
        Peers->Highest = Header;
    } else if (!KiTryLockObject(Header, &Word)) {
        return FALSE;
    }
    Peers->Count += 1;
    KiWriteMark(Peer, Peers->Mark | KI_LOCKED_HERE);
    return TRUE;
}

PKWAIT_BLOCK KiLowestBlock(PKTHREAD Thread)
{
    PKWAIT_BLOCK Lowest = Thread->WaitBlockList;
    for (ULONG Index = 1; Index < Thread->WaitBlockCount; Index += 1) {
        if (Thread->WaitBlockList[Index].Object < Lowest->Object) {
            Lowest = &Thread->WaitBlockList[Index];
        }
    }
    return Lowest;
}

BOOLEAN KiLockPeers(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    if (!KiAllMayBeSignaled(Peers, Block)) {
        return TRUE;
    }
    for (PKWAIT_BLOCK Peer = KiLowestBlock(Block->Thread); Peer != NULL; Peer = Peer->SparePtr) {
        if (Peer->Object != Peers->Held && !KiLockPeer(Peers, Peer)) {
            return FALSE;
        }
    }
    return TRUE;
}

static BOOLEAN KiIsMarked(PKI_PEERS Peers, PKWAIT_BLOCK Peer)
{
    LONG Mark = KiReadMark(Peer);
    return Mark == (Peers->Mark | KI_LOCKED_HERE) || Mark == (Peers->Mark | KI_LOCKED_ELSEWHERE);
}

BOOLEAN KiPeersSignaled(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
        if (Peer->Object != Peers->Held &&
            (!KiIsMarked(Peers, Peer) || !KiIsSignaledFor(Peer->Object, KiReadHeader(Peer->Object), Peer->Thread))) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS KiConsumePeers(PKI_PEERS Peers, PKWAIT_BLOCK Block)
{
    NTSTATUS Status = STATUS_WAIT_0;
    for (PKWAIT_BLOCK Peer = KiFirstBlock(Block); Peer != KiEndOfBlocks(Block); Peer += 1) {
        if (Peer->Object == Peers->Held) {
            continue;
        }
        if (KiConsumeHeld(Peer->Object, Peer->Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
        KiUnlinkBlock(Peer, WaitBlockInactive);
    }
    return Status;
}

/* Marks of shared objects go first: once an object is unlocked, its marks are no longer ours to write. */
static VOID KiUnlockPeersOf(PKI_PEERS Peers, PKTHREAD Thread, LONG How)
{
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Peer = &Thread->WaitBlockList[Index];
        if (KiReadMark(Peer) != (Peers->Mark | How)) {
            continue;
        }
        KiWriteMark(Peer, 0);
        if (How == KI_LOCKED_HERE) {
            KiUnlockObject(Peer->Object, KiReadHeader(Peer->Object));
            Peers->Count -= 1;
        }
    }
}

static VOID KiUnlockAllPeers(PKI_PEERS Peers, PKI_READY Released, LONG How)
{
    PLIST_ENTRY Head = &Peers->Held->WaitListHead;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        PKWAIT_BLOCK Block = CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
        if (Block->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, Block->Thread, How);
        }
    }
    for (PKTHREAD Thread = Released != NULL ? Released->First : NULL; Thread != NULL; Thread = Thread->ReadyNext) {
        if (Thread->WaitBlockList->WaitType == WaitAll) {
            KiUnlockPeersOf(Peers, Thread, How);
        }
    }
}

/* Released: the threads released by this signal, whose blocks are no longer on the list. */
VOID KiUnlockPeers(PKI_PEERS Peers, PKI_READY Released)
{
    if (Peers->Count != 0) {
        KiUnlockAllPeers(Peers, Released, KI_LOCKED_ELSEWHERE);
        KiUnlockAllPeers(Peers, Released, KI_LOCKED_HERE);
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

/* With all of them locked. *Mutants: there is one among them, which its new owner has to enter into its list. */
static NTSTATUS KiConsumeAndUnlock(PVOID Object[], ULONG Count, PKTHREAD Thread, BOOLEAN *Mutants)
{
    NTSTATUS Status = STATUS_WAIT_0;
    *Mutants = FALSE;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        *Mutants |= KI_TYPE(Word) == MutantObject;
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
    BOOLEAN Mutants;
    ULONG Locked = KiLockSignaled(Object, Count, Thread);
    if (Locked != Count) {
        KiUnlockFirst(Object, Locked);
        return FALSE;
    }
    *Status = KiConsumeAndUnlock(Object, Count, Thread, &Mutants);
    for (ULONG Index = 0; Mutants && Index < Count; Index += 1) {
        KiTakeOwnershipIfMutant(Object[Index], Thread);
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

PKWAIT_BLOCK KiChainBlocks(PKWAIT_BLOCK Blocks, ULONG Count, const UCHAR Order[])
{
    PKWAIT_BLOCK Higher = NULL;
    for (ULONG Index = Count; Index != 0; Index -= 1) {
        PKWAIT_BLOCK Block = &Blocks[Order[Index - 1]];
        Block->SparePtr = Higher;
        Higher = Block;
    }
    return Higher;
}

VOID KiLockInOrder(PKWAIT_BLOCK Lowest)
{
    for (PKWAIT_BLOCK Block = Lowest; Block != NULL; Block = Block->SparePtr) {
        KiLockObject(Block->Object);
    }
}

VOID KiUnlockInOrder(PKWAIT_BLOCK Lowest)
{
    PKWAIT_BLOCK Next;
    for (PKWAIT_BLOCK Block = Lowest; Block != NULL; Block = Next) {
        Next = Block->SparePtr;
        KiUnlockObject(Block->Object, KiReadHeader(Block->Object));
    }
}

BOOLEAN KiAllSignaledFor(PKWAIT_BLOCK Lowest, PKTHREAD Thread)
{
    for (PKWAIT_BLOCK Block = Lowest; Block != NULL; Block = Block->SparePtr) {
        if (!KiIsSignaledFor(Block->Object, KiReadHeader(Block->Object), Thread)) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS KiConsumeAll(PKWAIT_BLOCK Lowest, PKTHREAD Thread)
{
    NTSTATUS Status = STATUS_WAIT_0;
    for (PKWAIT_BLOCK Block = Lowest; Block != NULL; Block = Block->SparePtr) {
        if (KiConsumeHeld(Block->Object, Thread) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
    }
    return Status;
}
