/*
 * waitlist.h: the order of the blocks on an object's wait list, and which of them a signal examines.
 *
 *     head -> dequeuers, newest first -> eligible blocks, oldest first -> dormant blocks -> head
 *
 * Dequeuers are on the list of a queue only. A signal examines the eligible blocks. The dormant ones belong to WaitAlls
 * that this object cannot complete, so a signal costs nothing for them: it stops at the first one.
 *
 * 1. A WaitAll has a block on the list of each of its objects, and watches at least one object that is not signaled for
 *    it: there its block is eligible. Its other blocks may be dormant. Whoever signals a watched object holds its lock,
 *    and before it unlocks completes the wait, or makes it watch another object that it has found not signaled under that
 *    one's lock, or leaves the watched object not signaled. So a signal of an object on which a live wait is dormant can
 *    never be the one that completes the wait: another object of it is not signaled, or is locked by a signaler that has
 *    this object still to look at.
 * 2. An eligible block is always safe. It only costs the next signal a look.
 * 3. Eligible blocks are served first in, first out, also those that were dormant: a block becomes eligible behind those
 *    that are older than its wait. A WaitAll takes a number when it is linked (KiWaitAllNumber, under the locks of all its
 *    objects), every other block reads the number last taken. A WaitAll is older than another block of the list exactly
 *    if its number is not higher than the block's: both accesses were made under the lock of this list's object.
 * 4. The first dormant block is found from the last one, in which SparePtr points to it. In an eligible block SparePtr
 *    is its number. KI_DORMANT in SpareLong tells the two apart. All are written under the object's lock.
 *
 * What was rejected: one list of all blocks with a cheap test in each. It keeps a signal proportional to the number of
 * waits that it cannot complete, at a cache line and often a TLB miss for each. Blocks only on the list of the watched
 * object: a debugger, and a reader of figure 8-39, expect a wait on the list of every object that it waits for.
 *
 * What remains: the signal that finds many waits watching its object moves each of them, once, at the price of locking one
 * other object each. Waits for the same two objects, signaled in turns, are moved by each signal. And a wait that becomes
 * eligible looks for its place among the blocks that are younger.
 */
#ifndef INTERLOCK_WAITLIST_H
#define INTERLOCK_WAITLIST_H

#include "dispatch.h"

#define KI_DORMANT 1 /* KWAIT_BLOCK.SpareLong; the bits above it are those of waitall.c */

FORCEINLINE PKWAIT_BLOCK KiBlockOfEntry(PLIST_ENTRY Entry)
{
    return CONTAINING_RECORD(Entry, KWAIT_BLOCK, WaitListEntry);
}

FORCEINLINE BOOLEAN KiIsDormant(PKWAIT_BLOCK Block)
{
    /* relaxed: under the object's lock. Atomic because signalers of other objects look for their marks in the word. */
    return (__atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & KI_DORMANT) != 0;
}

/* All of these with the object locked. */

/* FALSE: the list, or that part of it that a signal examines, ends before this entry. */
FORCEINLINE BOOLEAN KiIsEligible(PDISPATCHER_HEADER Header, PLIST_ENTRY Entry)
{
    return Entry != &Header->WaitListHead && !KiIsDormant(KiBlockOfEntry(Entry));
}

/* The entry behind the last eligible block: the first dormant one, or the head. */
FORCEINLINE PLIST_ENTRY KiEndOfEligible(PDISPATCHER_HEADER Header)
{
    PLIST_ENTRY Head = &Header->WaitListHead;
    PLIST_ENTRY Last = Head->Blink;
    return Last != Head && KiIsDormant(KiBlockOfEntry(Last)) ? KiBlockOfEntry(Last)->SparePtr : Head;
}

FORCEINLINE VOID KiLinkYoungest(PKWAIT_BLOCK Block, ULONG64 Number)
{
    PDISPATCHER_HEADER Header = Block->Object;
    /* A forked process has its threads where this one has them: the block may be there before it is linked. */
    if (!IsListEmpty(&Header->WaitListHead) && KiBlockOnList(Header, Header->WaitListHead.Blink) == Block) {
        KiForeignWaiter(Header, Block);
    }
    __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
    Block->SparePtr = (PVOID)Number;
    InsertTailList(KiEndOfEligible(Block->Object), &Block->WaitListEntry);
}

/* The number that a WaitAll took last. relaxed, everywhere: see 3, the locks order what is compared. */
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
    /* release: the last touch of a block by anybody but its owner, who may give up its memory on seeing this */
    __atomic_store_n(&Block->BlockState, NewState, __ATOMIC_RELEASE);
}

VOID KiLinkWaitAll(PKTHREAD Thread);                      /* with all of its objects locked */
VOID KiMakeEligible(PKWAIT_BLOCK Block);                  /* of a WaitAll; nothing happens if it is already */
VOID KiMakeDormant(PKWAIT_BLOCK Block);                   /* of a WaitAll that is eligible */
PLIST_ENTRY KiLastDequeuer(PDISPATCHER_HEADER Header);    /* or the head: what is behind it is examined by a signal */

#endif
