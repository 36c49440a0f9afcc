/* waiter.h: what the files about objects and waits share: the state word, freezing, lists of blocks, granting. */
#ifndef INTERLOCK_WO_WAITER_H
#define INTERLOCK_WO_WAITER_H

#include "wop.h"

/* The state word. */

#define WO_VALUE(Word) ((ULONG)((Word) >> 32))
#define WO_TYPE_OF(Word) ((ULONG)((Word) >> 2 & 0x3f))
#define WO_IS_OF_TYPES(Word, Types) (((Types) >> WO_TYPE_OF(Word) & 1) != 0)
#define WO_EVENTS (1ull << WoNotificationEvent | 1ull << WoSynchronizationEvent)
#define WO_TIMERS (1ull << WoNotificationTimer | 1ull << WoSynchronizationTimer)
#define WO_TAKES_SIGNAL (1ull << WoSynchronizationEvent | 1ull << WoSynchronizationTimer)
#define WO_MOST_RECURSION 0x80000000u /* of a mutant: its count is then MINLONG */

FORCEINLINE ULONG64 WopWithValue(ULONG64 Word, ULONG Value)
{
    return (Word & 0xffffffffu) | (ULONG64)Value << 32;
}

/* acquire: what happened before a signal is visible after the wait that it ends */
FORCEINLINE ULONG64 WopReadWord(PWO_OBJECT Object)
{
    return __atomic_load_n(&Object->Word, __ATOMIC_ACQUIRE);
}

/* While W is clear. On failure *Word is the current word. acq_rel: as in WopReadWord, and the other way round */
FORCEINLINE BOOLEAN WopChangeWord(PWO_OBJECT Object, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(&Object->Word, Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* relaxed: by its own thread, or under the lock, to see which of the states that do not change then it is in */
FORCEINLINE ULONG64 WopReadState(PWO_WAITER Waiter)
{
    return __atomic_load_n(&Waiter->State, __ATOMIC_RELAXED);
}

FORCEINLINE BOOLEAN WopIsSignaledFor(ULONG64 Word, WO_INDEX Waiter)
{
    ULONG Value = WO_VALUE(Word);
    return WO_TYPE_OF(Word) == WoMutant ? Value == 0 || Value == Waiter : Value != 0;
}

/* The word of a signaled object after a wait has consumed it. */
FORCEINLINE ULONG64 WopConsumed(ULONG64 Word, WO_INDEX Waiter)
{
    if (WO_IS_OF_TYPES(Word, WO_TAKES_SIGNAL)) {
        return WopWithValue(Word, 0);
    }
    if (WO_TYPE_OF(Word) == WoSemaphore) {
        return WopWithValue(Word, WO_VALUE(Word) - 1);
    }
    return WO_TYPE_OF(Word) == WoMutant ? WopWithValue(Word & ~WO_ABANDONED, Waiter) : Word;
}

/* A mutant that is free and abandoned: the wait that takes it reports that. */
FORCEINLINE NTSTATUS WopTakingStatus(ULONG64 Word)
{
    return (Word & WO_ABANDONED) && WO_VALUE(Word) == 0 ? STATUS_ABANDONED : STATUS_SUCCESS;
}

/* WopRecord for the kinds that are looked up most often. An index after the records of the world, but inside the
   mapping, leads to zeros, or to a fault that the host turns into zeros. */
FORCEINLINE PVOID WopRecordInline(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind)
{
    PWO_RECORD Record = WopAt(View, Index);
    BOOLEAN Inside = Index >= WO_FIRST_RECORD && Index < View->Mapped / WO_UNIT - sizeof(WO_WAITER) / WO_UNIT;
    /* relaxed: as in WopReadRecord */
    return Inside && __atomic_load_n(&Record->Kind, __ATOMIC_RELAXED) == Kind ? (PVOID)Record
                                                                            : WopRecord(View, Index, Kind);
}

FORCEINLINE PWO_OBJECT WopObject(PWO_VIEW View, WO_INDEX Index)
{
    return WopRecordInline(View, Index, WoObjectRecord);
}

/* For operations that may need no lock. A view that was cut off has zeros instead of records, which poison it when they are
   read. relaxed: a world that is damaged at this moment is found out later */
FORCEINLINE BOOLEAN WopIsUnusable(PWO_VIEW View)
{
    return __atomic_load_n(&View->World->State, __ATOMIC_RELAXED) == WoDamaged;
}

/* Everything below: with the lock held. */

VOID WopFreeze(PWO_OBJECT Object);
VOID WopThaw(PWO_OBJECT Object); /* after the commit: clears W if the object has no waiters */

/*
 * A change that grants waits: a chain of transactions, in which the objects that may have lost their last waiter are
 * noted. Those that do not fit stay frozen, which is legal.
 */
#define WO_MOST_THAWS 192
typedef struct _WOP_CHAIN {
    PWO_VIEW View;
    ULONG Thaws;
    WO_INDEX Thaw[WO_MOST_THAWS];
} WOP_CHAIN, *PWOP_CHAIN;

/* Object is frozen. The first begins a transaction, and records what the repairer has to do if the process dies in the
   chain; the last commits, thaws and clears the record. */
VOID WopBeginChain(PWOP_CHAIN Chain, PWO_VIEW View, PWO_OBJECT Object, WO_INTENTION Intention);
VOID WopReleaseWaiters(PWOP_CHAIN Chain, PWO_OBJECT Object); /* first in, first out, while it is signaled */
VOID WopEndChain(PWOP_CHAIN Chain, PWO_OBJECT Object);

/* Lists of blocks. */
PWO_WAITER WopWaiterOfBlock(PWO_VIEW View, ULONG Block, PULONG Number); /* NULL: poisoned */
VOID WopLinkBlock(PWO_VIEW View, PWO_WAITER Waiter, ULONG Number, PWO_OBJECT Object); /* by age */
VOID WopUnlinkBlocks(PWOP_CHAIN Chain, PWO_WAITER Waiter);
VOID WopNoteThaw(PWOP_CHAIN Chain, PWO_OBJECT Object);
VOID WopConsume(PWO_VIEW View, PWO_OBJECT Object, WO_INDEX Waiter); /* in a transaction */
ULONG WopMostBlocks(PWO_VIEW View); /* more in one list are a loop */

/* A wait of the calling thread, which links its blocks in a transaction of its own. */
VOID WopBecomeWaiting(PWO_VIEW View, PWO_WAITER Waiter);

/* mutant.c: ownership, by the owner's thread. */
VOID WopTakeOwnership(PWO_VIEW View, PWO_WAITER Owner, PWO_OBJECT Mutant);   /* it has just become Owner's */
VOID WopTakeFrozenMutant(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Mutant);   /* with the lock held: it is free */
VOID WopAbandonMutants(PWO_VIEW View, PWO_WAITER Owner);
BOOLEAN WopTryAcquire(PWO_VIEW View, PWO_OBJECT Mutant, WO_INDEX Self, NTSTATUS *Status); /* FALSE: not without the lock */

/* timer.c */
VOID WopExpireIfDue(PWO_VIEW View, PWO_OBJECT Timer); /* with the lock held */
BOOLEAN WopIsDue(PWO_OBJECT Timer);                   /* also without the lock: then a hint */
VOID WopExpireDueTimers(PWO_VIEW View, const WO_INDEX Objects[], ULONG Count); /* takes the lock if it has to */
VOID WopNudgeWaiters(PWO_VIEW View, PWO_OBJECT Timer);

#endif
