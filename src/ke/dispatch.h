/*
 * dispatch.h: the dispatcher header as one atomic word, the object lock, and the release of waiters.
 *
 * The first eight bytes of a DISPATCHER_HEADER, read as one little-endian word:
 *
 *      63                            32 31      24 23      16 15       8  7   6  5      0
 *     +--------------------------------+----------+----------+----------+---+---+--------+
 *     |          SignalState           |  byte 3  |  byte 2  |  byte 1  | L | W |  Type  |
 *     +--------------------------------+----------+----------+----------+---+---+--------+
 *
 * L, the object's lock: whoever set it by compare-exchange owns the word, the wait list and everything in the object
 * that the wait list goes with. W: the wait list is not empty. Bytes 1 to 3 are what the type makes of them (table 8-29).
 *
 * 1. While L is clear the word is changed by compare-exchange only. While L is set only the owner of the lock changes
 *    it, so unlocking is a store.
 * 2. While L and W are clear, setting, resetting and consuming the object is one compare-exchange on the word.
 * 3. W is clear only if the wait list is empty. It may be set for a moment while the list is empty: the next one who
 *    locks the object finds out.
 * 4. The state that a locked object shows is not final: a reader waits until L is clear.
 * 5. A thread that locks several objects blocks only on an object whose address is higher than that of every object it
 *    holds; on a lower one it tries, and when that fails gives back everything it has and starts over. So the holder
 *    of the lowest contended address always gets on.
 * 6. The lock is held inside a dispatcher section (KiEnterDispatcher), for a bounded time, never across a call that
 *    can block.
 */
#ifndef INTERLOCK_DISPATCH_H
#define INTERLOCK_DISPATCH_H

#include "ki.h"

#define KI_LOCKED ((ULONG64)KOBJECT_LOCK_BIT)
#define KI_WAITERS ((ULONG64)KOBJECT_WAITERS_BIT)
#define KI_TYPE(Word) ((ULONG)(Word) & KOBJECT_TYPE_MASK)
#define KI_STATE(Word) ((LONG)((Word) >> 32))

FORCEINLINE ULONG64 KiWithState(ULONG64 Word, LONG State)
{
    return (Word & 0xffffffffu) | ((ULONG64)(ULONG)State << 32);
}

FORCEINLINE volatile ULONG64 *KiHeaderWord(PDISPATCHER_HEADER Header)
{
    return (volatile ULONG64 *)(volatile void *)Header;
}

FORCEINLINE ULONG64 KiReadHeader(PDISPATCHER_HEADER Header)
{
    return __atomic_load_n(KiHeaderWord(Header), __ATOMIC_RELAXED);
}

/* On failure *Word is what the header holds now. acq_rel: what came before a signal is visible after the wait it ends. */
FORCEINLINE BOOLEAN KiCompareExchangeHeader(PDISPATCHER_HEADER Header, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(KiHeaderWord(Header), Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* What every initializer writes. Bytes 1 to 3 keep what they had: those that its type uses are written by each itself. */
FORCEINLINE VOID KiInitializeBareHeader(PDISPATCHER_HEADER Header, UCHAR Type, LONG State)
{
    Header->Type = Type;
    Header->SignalState = State;
    InitializeListHead(&Header->WaitListHead);
}

/* For the types that have their size in byte 2: all but mutants, which have it in byte 1, and threads. */
FORCEINLINE VOID KiInitializeHeader(PDISPATCHER_HEADER Header, UCHAR Type, SIZE_T Size, LONG State)
{
    KiInitializeBareHeader(Header, Type, State);
    Header->Size = (UCHAR)(Size / sizeof(LONG));
}

/* A word without the lock bit: waits for whoever holds the lock. */
ULONG64 KiReadSettledHeader(PDISPATCHER_HEADER Header);
ULONG64 KiLockObjectSlow(PDISPATCHER_HEADER Header);

/* This one and the next return the word with the lock bit set. */
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
    return __builtin_expect(KiTryLockObject(Header, &Word), 1) ? Word : KiLockObjectSlow(Header);
}

/* Word: the locked word with whatever the owner changed in it. Sets W from the list, clears L. */
FORCEINLINE VOID KiUnlockObject(PDISPATCHER_HEADER Header, ULONG64 Word)
{
    Word &= ~(KI_LOCKED | KI_WAITERS);
    if (!IsListEmpty(&Header->WaitListHead)) {
        Word |= KI_WAITERS;
    }
    /* release: pairs with the compare-exchange of the next one who locks or consumes */
    __atomic_store_n(KiHeaderWord(Header), Word, __ATOMIC_RELEASE);
}

/*
 * What a signaler has decided under the lock and carries out after it: threads to wake, packets for queues, DPCs.
 * Nothing in it is allocated; the links are in the threads and blocks themselves.
 */
typedef struct _KI_READY {
    PKTHREAD First;
    PKTHREAD *Last;
    KPRIORITY Increment;
    SCHAR BoostFloor;           /* a released thread is boosted to this priority at least; 0: no more than Increment */
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
 * With the object locked and *Word saying that it is signaled: ends the waits of the eligible blocks (waitlist.h) behind
 * an entry of the list, or its head, in list order until the object is no longer signaled. Returns FALSE when it could not lock what a WaitAll needs: then nothing was changed
 * in this call that anybody could see, the caller must undo its own change, unlock the object, relax and start over.
 */
BOOLEAN KiReleaseBehind(PDISPATCHER_HEADER Header, PLIST_ENTRY Before, ULONG64 *Word, PKI_READY Released);

FORCEINLINE BOOLEAN KiReleaseWaiters(PDISPATCHER_HEADER Header, ULONG64 *Word, PKI_READY Released)
{
    return KiReleaseBehind(Header, &Header->WaitListHead, Word, Released);
}

/*
 * A wait block of the object's list; with the object locked. Another one is there if another process has linked it, whose
 * address means something else here: that process is not known, and to follow the list would lead anywhere.
 */
DECLSPEC_NORETURN VOID KiForeignWaiter(PDISPATCHER_HEADER Header, PKWAIT_BLOCK Block);

FORCEINLINE PKWAIT_BLOCK KiBlockOnList(PDISPATCHER_HEADER Header, PLIST_ENTRY Entry)
{
    PKWAIT_BLOCK Block = CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
    if (__builtin_expect(Block->Object != Header, FALSE)) {
        KiForeignWaiter(Header, Block);
    }
    return Block;
}

/* With no object locked: wakes what Released collected. */
VOID KiReadyReleased(PKI_READY Released);
VOID KiReadyThread(PKTHREAD Thread, KPRIORITY Increment);

FORCEINLINE VOID KiReadyThreads(PKI_READY Released)
{
    if (Released->First != NULL || Released->Notifications != NULL) {
        KiReadyReleased(Released);
    }
}

/*
 * One signal: Update changes the state in the locked word (and whatever of the object goes with it, but nothing that it
 * could not do again: it is called once more when the signal has to start over), or refuses by returning FALSE.
 */
typedef struct _KI_SIGNAL {
    BOOLEAN (*Update)(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context);
    PVOID Context;
    KPRIORITY Increment;
    SCHAR BoostFloor;
    BOOLEAN Pulse;      /* the state is 0 again before anybody can see it */
    PKTHREAD *Released; /* if not NULL: the first thread released, left alone if there was none */
} KI_SIGNAL;

BOOLEAN KiSignal(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous);

/* Sets SignalState and releases waiters, whatever the object is. Returns the previous state. */
LONG KiSignalObject(PDISPATCHER_HEADER Header, LONG State, KPRIORITY Increment);

#endif
