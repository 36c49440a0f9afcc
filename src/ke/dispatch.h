/*
 * dispatch.h: the dispatcher header as one atomic word, the object lock, the wait list, and the release of waiters.
 *
 * The first eight bytes of a DISPATCHER_HEADER, read as one little-endian word:
 *
 *      63                            32 31      24 23      16 15       8  7   6  5      0
 *     +--------------------------------+----------+----------+----------+---+---+--------+
 *     |          SignalState           |  byte 3  |  byte 2  |  byte 1  | L | W |  Type  |
 *     +--------------------------------+----------+----------+----------+---+---+--------+
 *
 * L, the object lock: the thread that set it by compare-exchange owns the word, the wait list and everything in the
 * object that belongs to the wait list. W: the wait list is not empty. The type defines bytes 1 to 3 (table 8-29).
 *
 * 1. While L is clear, the word changes by compare-exchange only. While L is set, only the lock's owner changes it, so
 *    unlocking is a store.
 * 2. While L and W are clear, setting, resetting and consuming the object is one compare-exchange on the word.
 * 3. W is clear only if the wait list is empty. W may briefly be set while the list is empty; the next thread that
 *    locks the object corrects it.
 * 4. The state of a locked object is not final: a reader waits until L is clear.
 * 5. A thread that locks several objects blocks only on an object at a higher address than all that it holds. It only
 *    tries a lower one; if that fails, it releases everything and starts over. So the holder of the
 *    lowest contended address always makes progress.
 * 6. The lock is held inside a dispatcher section (KiEnterDispatcher), for a bounded time, never across a call that
 *    can block.
 *
 * The order of the blocks on a wait list, and which of them a signal examines:
 *
 *     head -> dequeuers, newest first -> eligible blocks, oldest first -> dormant blocks -> head
 *
 * Only queues have dequeuers. A signal examines the eligible blocks and stops at the first dormant one. Dormant blocks
 * belong to WaitAlls that this object cannot complete, so they cost a signal nothing.
 *
 * 7. A WaitAll has a block on the list of each of its objects, and watches at least one object that is not signaled for
 *    it: there its block is eligible. Its other blocks may be dormant. A signaler of a watched object holds that
 *    object's lock. Before it unlocks, it completes the wait, or makes the wait watch another object that it found not
 *    signaled under that object's lock, or leaves the watched object not signaled. So a signal of an object on which a
 *    live wait is dormant can never be the signal that completes the wait: another object of the wait is not signaled,
 *    or is locked by a signaler that has yet to examine this one.
 * 8. An eligible block is always safe. It only costs the next signal an examination.
 * 9. Eligible blocks are served first in, first out, including those that were dormant: a block becomes eligible behind
 *    the blocks that are older than its wait. A WaitAll takes a number when it is linked (KiWaitAllNumber, under the
 *    locks of all its objects); every other block reads the number last taken. A WaitAll is older than another block
 *    of the list exactly if its number is not higher than the block's: both accesses happened under the list's lock.
 * 10. The last dormant block points to the first one by SparePtr. In an eligible block SparePtr is its number.
 *    KI_DORMANT in SpareLong tells the two apart. All are written under the object's lock.
 *
 * Rejected: one list of all blocks with a cheap test in each. A signal would cost a cache line, and often a TLB miss,
 * for each wait that it cannot complete. Also rejected: blocks on the list of the watched object only. Debuggers, and
 * readers of figure 8-39, expect a wait on the list of every object that it waits for.
 *
 * Remaining costs: a signal that finds many waits watching its object moves each of them once, and locks one other
 * object for each. Waits for the same two objects, signaled in turns, are moved by each signal. A wait that becomes
 * eligible searches for its place among the younger blocks.
 */
#ifndef INTERLOCK_DISPATCH_H
#define INTERLOCK_DISPATCH_H

#include "ki.h"
#include "park.h"
#include "../trace/trace.h"

/* The word. */

#define KI_LOCKED ((ULONG64)KOBJECT_LOCK_BIT)
#define KI_WAITERS ((ULONG64)KOBJECT_WAITERS_BIT)
#define KI_TYPE(Word) ((ULONG)(Word) & KOBJECT_TYPE_MASK)
#define KI_STATE(Word) ((LONG)((Word) >> 32))

/* What a word gains if its state grows by Count. */
#define KI_COUNTED(Count) ((ULONG64)(ULONG)(Count) << 32)

FORCEINLINE ULONG64 KiWithState(ULONG64 Word, LONG State)
{
    return (Word & 0xffffffffu) | KI_COUNTED(State);
}

FORCEINLINE volatile ULONG64 *KiHeaderWord(PDISPATCHER_HEADER Header)
{
    return (volatile ULONG64 *)(volatile void *)Header;
}

FORCEINLINE ULONG64 KiReadHeader(PDISPATCHER_HEADER Header)
{
    return __atomic_load_n(KiHeaderWord(Header), __ATOMIC_RELAXED);
}

/* On failure *Word is the current word. acq_rel: what happened before a signal is visible after the wait it ends. */
FORCEINLINE BOOLEAN KiCompareExchangeHeader(PDISPATCHER_HEADER Header, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(KiHeaderWord(Header), Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Leaves bytes 1 to 3 alone: each type writes those that it uses. Memcheck reports a compare-exchange of a word that has bytes
   which were never written, so under valgrind they are cleared. */
FORCEINLINE VOID KiInitializeBareHeader(PDISPATCHER_HEADER Header, UCHAR Type, LONG State)
{
    if (__builtin_expect(KiUnderValgrind, FALSE)) {
        Header->LockNV = 0;
    }
    Header->Type = Type;
    Header->SignalState = State;
    InitializeListHead(&Header->WaitListHead);
}

/* For types that keep their size in byte 2: all but mutants, which keep it in byte 1, and threads. */
FORCEINLINE VOID KiInitializeHeader(PDISPATCHER_HEADER Header, UCHAR Type, SIZE_T Size, LONG State)
{
    KiInitializeBareHeader(Header, Type, State);
    Header->Size = (UCHAR)(Size / sizeof(LONG));
}

/* The object lock. */

ULONG64 KiReadSettledHeader(PDISPATCHER_HEADER Header); /* waits until the lock bit is clear */
ULONG64 KiLockObjectSlow(PDISPATCHER_HEADER Header); /* 0: the object is outside, see outside.h */

/* This function and the next one return the word with the lock bit set. */
FORCEINLINE BOOLEAN KiTryLockObject(PDISPATCHER_HEADER Header, ULONG64 *Word)
{
    ULONG64 Found = KiReadHeader(Header);
    while (!(Found & KI_LOCKED)) {
        /* acquire: pairs with the release in KiUnlockObject and with the compare-exchanges on an unlocked word */
        if (__atomic_compare_exchange_n(KiHeaderWord(Header), &Found, Found | KI_LOCKED, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            *Word = Found | KI_LOCKED;
            return TRUE;
        }
    }
    return FALSE;
}

FORCEINLINE ULONG64 KiLockObject(PDISPATCHER_HEADER Header)
{
    ULONG64 Word;
    if (HAL_SIMULATED && (Word = HalSimulateAcquire(KiHeaderWord(Header), sizeof(Word), KI_LOCKED)) != 0) {
        return Word;
    }
    return __builtin_expect(KiTryLockObject(Header, &Word), 1) ? Word : KiLockObjectSlow(Header);
}

/* Word: the locked word with the owner's changes. Sets W from the list, clears L. */
FORCEINLINE VOID KiUnlockObject(PDISPATCHER_HEADER Header, ULONG64 Word)
{
    Word &= ~(KI_LOCKED | KI_WAITERS);
    if (!IsListEmpty(&Header->WaitListHead)) {
        Word |= KI_WAITERS;
    }
    /* release: pairs with the compare-exchange of the next thread that locks or consumes */
    __atomic_store_n(KiHeaderWord(Header), Word, __ATOMIC_RELEASE);
}

/* The wait list. All of these with the object locked. */

#define KI_DORMANT 1 /* KWAIT_BLOCK.SpareLong; the bits above it are the marks of dispatch.c */

FORCEINLINE PKWAIT_BLOCK KiBlockOfEntry(PLIST_ENTRY Entry)
{
    return CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
}

/* The list holds a block that another process linked, whose addresses are not valid here. */
DECLSPEC_NORETURN VOID KiForeignWaiter(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block);

FORCEINLINE PKWAIT_BLOCK KiBlockOnList(PDISPATCHER_HEADER Header, PLIST_ENTRY Entry)
{
    PKWAIT_BLOCK Block = KiBlockOfEntry(Entry);
    if (__builtin_expect(Block->Object != Header, FALSE)) {
        KiForeignWaiter(Header, Block);
    }
    return Block;
}

FORCEINLINE BOOLEAN KiIsDormant(PKWAIT_BLOCK Block)
{
    /* relaxed: under the object's lock. Atomic because signalers of other objects read their marks in the word. */
    return (__atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & KI_DORMANT) != 0;
}

/* FALSE: the list, or the part of it that a signal examines, ends before this entry. */
FORCEINLINE BOOLEAN KiIsEligible(PDISPATCHER_HEADER Header, PLIST_ENTRY Entry)
{
    return Entry != &Header->WaitListHead && !KiIsDormant(KiBlockOfEntry(Entry));
}

/* The entry after the last eligible block: the first dormant one, or the head. */
FORCEINLINE PLIST_ENTRY KiEndOfEligible(PDISPATCHER_HEADER Header)
{
    PLIST_ENTRY Head = &Header->WaitListHead;
    PLIST_ENTRY Last = Head->Blink;
    return Last != Head && KiIsDormant(KiBlockOfEntry(Last)) ? KiBlockOfEntry(Last)->SparePtr : Head;
}

FORCEINLINE VOID KiLinkYoungest(PKWAIT_BLOCK Block, ULONG64 Number)
{
    PDISPATCHER_HEADER Header = Block->Object;
    /* A forked process has its threads at the same addresses: the block may be on the list before it is linked. */
    if (!IsListEmpty(&Header->WaitListHead) && KiBlockOnList(Header, Header->WaitListHead.Blink) == Block) {
        KiForeignWaiter(Header, Block);
    }
    __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
    Block->SparePtr = (PVOID)Number;
    InsertTailList(KiEndOfEligible(Header), &Block->WaitListEntry);
}

/* The number that a WaitAll took last. relaxed, everywhere: see 9, the locks order the numbers that are compared. */
extern volatile ULONG64 KiWaitAllNumber __attribute__((visibility("hidden")));

/* For all blocks but those of a WaitAll. */
FORCEINLINE VOID KiLinkBlock(PKWAIT_BLOCK Block)
{
    KiLinkYoungest(Block, __atomic_load_n(&KiWaitAllNumber, __ATOMIC_RELAXED));
}

VOID KiRemoveDormant(PKWAIT_BLOCK Block);

FORCEINLINE VOID KiUnlinkBlock(PKWAIT_BLOCK Block, UCHAR NewState)
{
    if (KiIsDormant(Block)) {
        KiRemoveDormant(Block);
    } else {
        RemoveEntryList(&Block->WaitListEntry);
    }
    /* release: the last access by any thread but the block's owner, which may reuse its memory after seeing this */
    __atomic_store_n(&Block->BlockState, NewState, __ATOMIC_RELEASE);
}

VOID KiLinkWaitAll(PKTHREAD Thread); /* with all of its objects locked */

/* Releasing waiters. */

/*
 * What a signaler decides under the lock and carries out after it: threads to wake, packets for queues, DPCs. Nothing
 * in it is allocated; the links are in the threads and blocks themselves.
 */
typedef struct _KI_READY {
    PKTHREAD First;
    PKTHREAD *Last;
    KPRIORITY Increment;
    SCHAR BoostFloor;           /* boost a released thread at least to this priority; 0: by Increment only */
    PVOID Notifications;        /* blocks, linked by SparePtr, in the order in which they waited */
    PVOID *LastNotification;
} KI_READY, *PKI_READY;

FORCEINLINE VOID KiInitializeReady(PKI_READY Released, KPRIORITY Increment)
{
    Released->First = NULL;
    Released->Last = &Released->First;
    Released->Increment = Increment;
    Released->BoostFloor = 0;
    Released->Notifications = NULL;
    Released->LastNotification = &Released->Notifications;
}

/*
 * With the object locked and signaled in *Word: ends the waits of the eligible blocks behind an entry of the list, or
 * its head, in list order until the object is no longer signaled. FALSE: a lock that a WaitAll needs was not free.
 * Then nothing visible has changed; the caller must undo its own change, unlock the object, relax and start over.
 */
BOOLEAN KiReleaseBehind(PDISPATCHER_HEADER Header, PLIST_ENTRY Before, ULONG64 *Word, PKI_READY Released);

FORCEINLINE BOOLEAN KiReleaseWaiters(PDISPATCHER_HEADER Header, ULONG64 *Word, PKI_READY Released)
{
    return KiReleaseBehind(Header, &Header->WaitListHead, Word, Released);
}

/* With the block's object locked: ends the wait of its thread. FALSE: the wait has ended, or cannot be ended now. */
BOOLEAN KiEndWaitOfBlock(PKWAIT_BLOCK Block, LONG_PTR Status, PKI_READY Released);

/* With no object locked: wakes the threads in Released and delivers its notifications. */
VOID KiReadyReleased(PKI_READY Released);
VOID KiReadyThread(PKTHREAD Thread, KPRIORITY Increment);

/* Usually one thread is released. Then all calls from KiReadyThread down to the host are jumps: wait.h explains why. */
FORCEINLINE VOID KiReadyThreads(PKI_READY Released)
{
    PKTHREAD First = Released->First;
    if (First != NULL && First->ReadyNext == NULL && Released->Notifications == NULL && Released->BoostFloor == 0) {
        KiReadyThread(First, Released->Increment);
    } else if (First != NULL || Released->Notifications != NULL) {
        KiReadyReleased(Released);
    }
}

/* Signals. */

/* Update changes the state in the locked word, or refuses by returning FALSE. A signal that starts over calls it again,
   so whatever else of the object it changes must be repeatable. */
typedef struct _KI_SIGNAL {
    BOOLEAN (*Update)(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context);
    PVOID Context;
    KPRIORITY Increment;
    SCHAR BoostFloor;
    BOOLEAN Pulse;      /* the state is 0 again before the object is unlocked */
    PKTHREAD *Released; /* if not NULL: receives the first thread released; unchanged if there was none */
} KI_SIGNAL;

/* An Update: Context points to the new state. */
FORCEINLINE BOOLEAN KiUpdateState(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    *Word = KiWithState(*Word, *(PLONG)Context);
    return TRUE;
}

BOOLEAN KiSignal(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous);
BOOLEAN KiSignalOutside(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous); /* it has just moved there */

/* KiSignal, for the objects whose waiters are woken most often. */
FORCEINLINE BOOLEAN KiSignalInline(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Begin = KTRACE_NOW();
    ULONG64 Old;
    KI_READY Released;
    BOOLEAN Changed;

    KiInitializeReady(&Released, Signal->Increment);
    Released.BoostFloor = Signal->BoostFloor;
    KiEnterDispatcher(Thread);
    for (ULONG Round = 0;; Round += 1) {
        Old = KiLockObject(Header);
        if (Old == 0) {
            KI_SIGNAL Copy = *Signal; /* no other function gets Signal itself, so its members stay constants of the caller */
            Changed = KiSignalOutside(Header, &Copy, Previous);
            break;
        }
        ULONG64 New = Old;
        *Previous = KI_STATE(Old);
        Changed = Signal->Update(Header, &New, Signal->Context);
        if (!Changed || KI_STATE(New) <= 0 || KiReleaseWaiters(Header, &New, &Released)) {
            KiUnlockObject(Header, Signal->Pulse ? KiWithState(New, 0) : New);
            break;
        }
        KiUnlockObject(Header, Old);
        KiBackOff(Round);
    }
    if (Signal->Released != NULL && Released.First != NULL) {
        *Signal->Released = Released.First;
    }
    KiReadyThreads(&Released);
    if (Changed && (Old & KI_WAITERS)) {
        KTRACE_SIGNAL(Header, Old, Begin);
    }
    KiExitDispatcher(Thread);
    return Changed;
}

/* Sets SignalState and releases waiters, whatever the object's type. Returns the previous state. */
LONG KiSignalObject(PDISPATCHER_HEADER Header, LONG State, KPRIORITY Increment);

#endif
