/*
 * mutant.c: shared mutants. Ownership is in the state word; the list of what a thread owns is in wop.h.
 *
 * Acquiring a free mutant and releasing one without waiters is one compare-exchange. Acquiring again and releasing again
 * touch Recursion alone, which is the owner's.
 */
#include "waiter.h"

/* The list. release, all: the order of the stores counts, since the thread may be killed between any two. */

static VOID WopEnterOwned(PWO_VIEW View, PWO_WAITER Owner, PWO_OBJECT Mutant)
{
    WO_INDEX Index = WopIndexOf(View, Mutant);
    PWO_OBJECT First = Owner->FirstOwned != 0 ? WopObject(View, Owner->FirstOwned) : NULL;
    __atomic_store_n(&Mutant->PreviousOwned, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&Mutant->NextOwned, Owner->FirstOwned, __ATOMIC_RELEASE);
    __atomic_store_n(&Owner->FirstOwned, Index, __ATOMIC_RELEASE);
    if (First != NULL) {
        __atomic_store_n(&First->PreviousOwned, Index, __ATOMIC_RELEASE);
    }
}

static VOID WopLeaveOwned(PWO_VIEW View, PWO_WAITER Owner, PWO_OBJECT Mutant)
{
    WO_INDEX Next = Mutant->NextOwned;
    WO_INDEX Previous = Mutant->PreviousOwned;
    PWO_OBJECT Younger = Previous != 0 ? WopObject(View, Previous) : NULL;
    PWO_OBJECT Older = Next != 0 ? WopObject(View, Next) : NULL;
    if (Younger != NULL) {
        __atomic_store_n(&Younger->NextOwned, Next, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&Owner->FirstOwned, Next, __ATOMIC_RELEASE);
    }
    if (Older != NULL) {
        __atomic_store_n(&Older->PreviousOwned, Previous, __ATOMIC_RELEASE);
    }
}

static VOID WopSetPending(PWO_WAITER Owner, WO_INDEX Mutant)
{
    __atomic_store_n(&Owner->Pending, Mutant, __ATOMIC_RELEASE);
}

VOID WopTakeOwnership(PWO_VIEW View, PWO_WAITER Owner, PWO_OBJECT Mutant)
{
    if (Mutant->Recursion == 0) { /* otherwise it is in the list */
        WopEnterOwned(View, Owner, Mutant);
    }
}

BOOLEAN WopTryAcquire(PWO_VIEW View, PWO_OBJECT Mutant, WO_INDEX Self, NTSTATUS *Status)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    ULONG64 Word = WopReadWord(Mutant);
    *Status = STATUS_FILE_CORRUPT_ERROR;
    if (Waiter == NULL) {
        return TRUE;
    }
    if (WO_VALUE(Word) == Self) {
        *Status = Mutant->Recursion < WO_MOST_RECURSION ? STATUS_SUCCESS : STATUS_MUTANT_LIMIT_EXCEEDED;
        Mutant->Recursion += *Status == STATUS_SUCCESS;
        return TRUE;
    }
    while (!(Word & WO_W) && WO_VALUE(Word) == 0) {
        *Status = WopTakingStatus(Word);
        WopSetPending(Waiter, WopIndexOf(View, Mutant));
        if (WopChangeWord(Mutant, &Word, WopConsumed(Word, Self))) {
            Mutant->Recursion = 0;
            WopEnterOwned(View, Waiter, Mutant);
            WopSetPending(Waiter, 0);
            return TRUE;
        }
        WopSetPending(Waiter, 0);
    }
    return FALSE;
}

/* Others may have found it abandoned, and wait; it stays frozen. */
VOID WopTakeFrozenMutant(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Mutant)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter != NULL) {
        WopSetPending(Waiter, WopIndexOf(View, Mutant));
        __atomic_store_n(&Mutant->Word, WopConsumed(WopReadWord(Mutant), Self), __ATOMIC_RELEASE);
        Mutant->Recursion = 0;
        WopEnterOwned(View, Waiter, Mutant);
        WopSetPending(Waiter, 0);
    }
}

/* Releasing. */

/* Where a dead owner names a mutant, and what it names then; Word is NULL: in neither place. */
typedef struct _WOP_NAMED {
    WO_INDEX *Word, Then;
} WOP_NAMED;

static VOID WopForget(PWO_VIEW View, const WOP_NAMED *Named)
{
    if (Named->Word != NULL) {
        WopEditUlong(View, Named->Word, Named->Then);
    }
}

/* With the lock held: the mutant becomes free, and its first waiter the owner. */
static VOID WopHandOff(PWO_VIEW View, PWO_OBJECT Mutant, ULONG64 Abandoned, const WOP_NAMED *Named)
{
    WOP_CHAIN Chain;
    WopFreeze(Mutant);
    WopBeginChain(&Chain, View, Mutant, WoSettle);
    WopForget(View, Named); /* at once: its links are the next owner's from now on */
    WopEdit(View, &Mutant->Word, WopWithValue(WopReadWord(Mutant), 0) | Abandoned);
    WopReleaseWaiters(&Chain, Mutant);
    WopEndChain(&Chain, Mutant);
}

/* Its owner's thread has left its list and named it in Pending. */
static NTSTATUS WopFreeMutant(PWO_VIEW View, PWO_OBJECT Mutant, ULONG64 Abandoned)
{
    ULONG64 Word = WopReadWord(Mutant);
    while (!(Word & WO_W)) {
        if (WopChangeWord(Mutant, &Word, WopWithValue(Word, 0) | Abandoned)) {
            return STATUS_SUCCESS;
        }
    }
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopHandOff(View, Mutant, Abandoned, &(WOP_NAMED){0});
    WopUnlock(View);
    return STATUS_SUCCESS;
}

NTSTATUS WoReleaseMutant(PWO_VIEW View, WO_INDEX Mutant, WO_INDEX Self, BOOLEAN Abandoned, PLONG Previous)
{
    PWO_OBJECT Object = WopIsUnusable(View) ? NULL : WopObject(View, Mutant);
    PWO_WAITER Owner = Self != 0 ? WopRecordInline(View, Self, WoWaiterRecord) : NULL;
    if (Object == NULL || (Self != 0 && Owner == NULL)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (Self == 0 || WO_VALUE(WopReadWord(Object)) != Self) {
        return STATUS_MUTANT_NOT_OWNED;
    }
    *Previous = (LONG)(0 - Object->Recursion);
    if (Object->Recursion != 0 && !Abandoned) {
        Object->Recursion -= 1;
        return STATUS_SUCCESS;
    }
    WopSetPending(Owner, Mutant);
    WopLeaveOwned(View, Owner, Object);
    NTSTATUS Status = WopFreeMutant(View, Object, Abandoned ? WO_ABANDONED : 0);
    WopSetPending(Owner, 0);
    return Status;
}

VOID WopGiveUpMutant(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Object)
{
    ULONG64 Word = WopReadWord(Object);
    PWO_WAITER Owner = WopRecord(View, Self, WoWaiterRecord);
    if (WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == Self && Owner != NULL) {
        WopSetPending(Owner, WopIndexOf(View, Object));
        WopLeaveOwned(View, Owner, Object);
        /* release: pairs with the compare-exchange of a thread that finds it free */
        __atomic_store_n(&Object->Word, WopWithValue(Word, 0), __ATOMIC_RELEASE);
        WopSetPending(Owner, 0);
    }
}

/* The end of an owner. */

BOOLEAN WopIsOwned(PWO_OBJECT Object)
{
    ULONG64 Word = WopReadWord(Object);
    return WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) != 0;
}

/* With the lock held. Owner does not run any more, or is the calling thread. A mutant that is named in a second place may
   have been freed by now; if it is no longer the owner's, it was released, never acquired, or already abandoned. */
static VOID WopAbandon(PWO_VIEW View, PWO_WAITER Owner, WO_INDEX Mutant, const WOP_NAMED *Named)
{
    PWO_OBJECT Object = WopIsRecord(View, Mutant, WoObjectRecord) ? WopAt(View, Mutant) : NULL;
    ULONG64 Word = Object != NULL ? WopReadWord(Object) : 0;
    BOOLEAN Owned = WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == WopIndexOf(View, Owner);
    if (Owned && Object->References != 0) {
        WopHandOff(View, Object, WO_ABANDONED, Named);
        return;
    }
    WopBegin(View);
    WopForget(View, Named);
    if (Owned) { /* no process refers to it */
        WopEdit(View, &Object->Word, WopWithValue(Word, 0));
        WopFreeUnused(View, Mutant);
    }
    WopCommit(View);
}

VOID WopAbandonMutants(PWO_VIEW View, PWO_WAITER Owner)
{
    for (ULONG Left = WopMostBlocks(View); Owner->FirstOwned != 0 && Left != 0; Left -= 1) {
        PWO_OBJECT First = WopObject(View, Owner->FirstOwned);
        if (First == NULL) {
            return;
        }
        WopAbandon(View, Owner, Owner->FirstOwned, &(WOP_NAMED){&Owner->FirstOwned, First->NextOwned});
    }
    if (Owner->Pending != 0) {
        WopAbandon(View, Owner, Owner->Pending, &(WOP_NAMED){&Owner->Pending, 0});
    }
    if ((WopReadState(Owner) & WO_STATE_MASK) == WoIdle) {
        return; /* its blocks are those of an old wait */
    }
    for (ULONG Number = 0; Number < Owner->Count && Number < WO_BLOCKS; Number += 1) {
        WopAbandon(View, Owner, Owner->Block[Number].Object, &(WOP_NAMED){0});
    }
}

/* A new mutant that belongs to its creator. With the lock held: it is free, frozen, and already visible to others. If
   its creator is killed before the store, it stays free. */
VOID WopTakeInitialOwnership(PWO_VIEW View, WO_INDEX Owner, WO_INDEX Mutant)
{
    PWO_OBJECT Object = WopObject(View, Mutant);
    if (Object != NULL) {
        WopTakeFrozenMutant(View, Owner, Object);
        WopThaw(Object);
    }
}
