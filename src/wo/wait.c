/* wait.c: the waiter's side of a wait for shared objects. Theory in wo.h, 5 to 8. */
#include "waiter.h"

#include <string.h>

/* Waiter records. */

static NTSTATUS WopCreateLockedWaiter(PWO_VIEW View, ULONG ThreadId, WO_INDEX *Index)
{
    PWO_PROCESS Process = WopRecord(View, View->Self, WoProcessRecord);
    if (Process == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    *Index = WopAllocate(View, WoWaiterRecord, sizeof(WO_WAITER));
    PWO_WAITER Waiter = *Index != 0 ? WopRecord(View, *Index, WoWaiterRecord) : NULL;
    PWO_WAITER First = Process->FirstWaiter != 0 ? WopRecord(View, Process->FirstWaiter, WoWaiterRecord) : NULL;
    if (Waiter == NULL) {
        WopCancel(View);
        return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_INSUFFICIENT_RESOURCES;
    }
    Waiter->Process = View->Self;
    Waiter->ThreadId = ThreadId;
    Waiter->NextOfProcess = Process->FirstWaiter;
    if (First != NULL) {
        WopEditUlong(View, &First->PreviousOfProcess, *Index);
    }
    WopEditUlong(View, &Process->FirstWaiter, *Index);
    WopEditUlong(View, &View->World->Waiters, View->World->Waiters + 1);
    WopCommit(View);
    return STATUS_SUCCESS;
}

NTSTATUS WoCreateWaiter(PWO_VIEW View, ULONG ThreadId, WO_INDEX *Waiter)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    NTSTATUS Status = WopCreateLockedWaiter(View, ThreadId, Waiter);
    WopUnlock(View);
    return Status;
}

VOID WopFreeWaiter(PWO_VIEW View, PWO_WAITER Waiter)
{
    PWO_PROCESS Process = WopRecord(View, Waiter->Process, WoProcessRecord);
    PWO_WAITER Next = Waiter->NextOfProcess != 0 ? WopRecord(View, Waiter->NextOfProcess, WoWaiterRecord) : NULL;
    PWO_WAITER Previous =
        Waiter->PreviousOfProcess != 0 ? WopRecord(View, Waiter->PreviousOfProcess, WoWaiterRecord) : NULL;
    if (Process == NULL || WoIsPoisoned(View)) {
        return;
    }
    WopBegin(View);
    WopEditUlong(View, Previous != NULL ? &Previous->NextOfProcess : &Process->FirstWaiter, Waiter->NextOfProcess);
    if (Next != NULL) {
        WopEditUlong(View, &Next->PreviousOfProcess, Waiter->PreviousOfProcess);
    }
    WopEditUlong(View, &View->World->Waiters, View->World->Waiters - 1);
    WopFree(View, WopIndexOf(View, Waiter));
    WopCommit(View);
}

static VOID WopSetState(PWO_WAITER Waiter, WO_WAITER_STATE State)
{
    /* release: what was decided about the wait comes first */
    __atomic_store_n(&Waiter->State, WopStateOf(WopReadState(Waiter), State), __ATOMIC_RELEASE);
}

/* With the lock held. */
static VOID WopUnlinkWait(PWO_VIEW View, PWO_WAITER Waiter)
{
    WOP_CHAIN Chain = {.View = View};
    WopBegin(View);
    WopUnlinkBlocks(&Chain, Waiter);
    WopCommit(View);
    for (ULONG Index = 0; Index < Chain.Thaws; Index += 1) {
        WopThaw(WopAt(View, Chain.Thaw[Index]));
    }
}

VOID WopEndWaiter(PWO_VIEW View, WO_INDEX Waiter)
{
    PWO_WAITER Record = WopRecord(View, Waiter, WoWaiterRecord);
    if (Record == NULL) {
        return;
    }
    if ((WopReadState(Record) & WO_STATE_MASK) != WoIdle) {
        WopUnlinkWait(View, Record);
    }
    WopAbandonMutants(View, Record);
    WopSetState(Record, WoIdle);
}

VOID WoDeleteWaiter(PWO_VIEW View, WO_INDEX Waiter)
{
    PWO_WAITER Record = WopRecord(View, Waiter, WoWaiterRecord);
    if (Record != NULL && WopLock(View)) {
        WopEndWaiter(View, Waiter);
        WopFreeWaiter(View, Record);
        WopUnlock(View);
    }
}

/* Taking what is signaled. */

/* One object, without the lock. STATUS_PENDING: it is frozen. */
static NTSTATUS WopTryTake(PWO_VIEW View, WO_INDEX Self, WO_INDEX Index)
{
    PWO_OBJECT Object = WopObject(View, Index);
    NTSTATUS Status;
    if (Object == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    ULONG64 Word = WopReadWord(Object);
    if (WO_TYPE_OF(Word) == WoMutant) {
        if (WopTryAcquire(View, Object, Self, &Status)) {
            return Status;
        }
        Word = WopReadWord(Object);
        return Word & WO_W ? STATUS_PENDING : STATUS_TIMEOUT;
    }
    while (!(Word & WO_W)) {
        ULONG64 New = WopConsumed(Word, Self);
        if (WO_VALUE(Word) == 0) {
            return STATUS_TIMEOUT;
        }
        if (New == Word || WopChangeWord(Object, &Word, New)) {
            return STATUS_SUCCESS;
        }
    }
    return STATUS_PENDING;
}

/* The same with the lock held and the object frozen: one store. */
static NTSTATUS WopTakeFrozen(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Object)
{
    ULONG64 Word = WopReadWord(Object);
    NTSTATUS Status = WopTakingStatus(Word);
    if (WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == Self) {
        return WopTryAcquire(View, Object, Self, &Status) ? Status : STATUS_TIMEOUT;
    }
    if (!WopIsSignaledFor(Word, Self)) {
        return STATUS_TIMEOUT;
    }
    if (WO_TYPE_OF(Word) == WoMutant) {
        WopTakeFrozenMutant(View, Self, Object);
    } else {
        /* release: as in WopThaw */
        __atomic_store_n(&Object->Word, WopConsumed(Word, Self), __ATOMIC_RELEASE);
    }
    return Status;
}

/* A status that counts from the object Index. */
FORCEINLINE NTSTATUS WopIndexedStatus(NTSTATUS Status, ULONG Index)
{
    BOOLEAN Taken = (Status >= STATUS_WAIT_0 && Status < STATUS_WAIT_0 + WO_BLOCKS) ||
                    (Status >= STATUS_ABANDONED_WAIT_0 && Status < STATUS_ABANDONED_WAIT_0 + WO_BLOCKS);
    return Taken ? Status + (NTSTATUS)Index : Status;
}

/* With the lock held: the first signaled one. STATUS_TIMEOUT: none; with Linking all stay frozen then. */
static NTSTATUS WopTakeAny(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, BOOLEAN Linking)
{
    NTSTATUS Status = STATUS_TIMEOUT;
    ULONG Frozen = 0;
    for (ULONG Index = 0; Index < Count && Status == STATUS_TIMEOUT; Index += 1) {
        PWO_OBJECT Object = WopObject(View, Objects[Index]);
        if (Object == NULL) {
            return STATUS_FILE_CORRUPT_ERROR;
        }
        WopFreeze(Object);
        Frozen = Index + 1;
        Status = WopIndexedStatus(WopTakeFrozen(View, Self, Object), Index);
    }
    for (ULONG Index = 0; Index < Frozen && (Status != STATUS_TIMEOUT || !Linking); Index += 1) {
        WopThaw(WopAt(View, Objects[Index]));
    }
    return Status;
}

/* All of several objects. */

/* Of objects that were looked up before: one that is not signaled for Self, frozen, or NULL: all are signaled and frozen. */
static PWO_OBJECT WopFreezeAll(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, PULONG Number)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopAt(View, Objects[Index]);
        WopFreeze(Object);
        if (!WopIsSignaledFor(WopReadWord(Object), Self)) {
            for (ULONG Frozen = 0; Frozen < Index; Frozen += 1) {
                WopThaw(WopAt(View, Objects[Frozen]));
            }
            *Number = Index;
            return Object;
        }
    }
    return NULL;
}

/* The same, but freezes as few as it can. */
static PWO_OBJECT WopFindUnsignaled(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, PULONG Number)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopObject(View, Objects[Index]);
        if (Object != NULL && !WopIsSignaledFor(WopReadWord(Object), Self)) {
            WopFreeze(Object);
            if (!WopIsSignaledFor(WopReadWord(Object), Self)) {
                *Number = Index;
                return Object;
            }
            WopThaw(Object);
        }
    }
    return WoIsPoisoned(View) ? NULL : WopFreezeAll(View, Self, Objects, Count, Number);
}

static BOOLEAN WopIsAtLimit(PWO_VIEW View, WO_INDEX Self, WO_INDEX Index)
{
    PWO_OBJECT Object = WopObject(View, Index);
    ULONG64 Word = Object != NULL ? WopReadWord(Object) : 0;
    return WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == Self && Object->Recursion == WO_MOST_RECURSION;
}

/* The objects were looked up before. */
static VOID WopPrepareBlocks(PWO_VIEW View, PWO_WAITER Waiter, const WO_INDEX Objects[], ULONG Count, UCHAR Kind)
{
    Waiter->Kind = Kind;
    Waiter->Count = (UCHAR)Count;
    Waiter->Timers = 0;
    for (ULONG Number = 0; Number < Count; Number += 1) {
        Waiter->Block[Number].Object = Objects[Number];
        Waiter->Block[Number].Linked = FALSE;
        Waiter->Timers += WO_IS_OF_TYPES(WopReadWord(WopAt(View, Objects[Number])), WO_TIMERS);
    }
}

/* The wait has its objects: mutants enter its list, and the wait ends. */
static NTSTATUS WopFinishGrant(PWO_VIEW View, PWO_WAITER Waiter)
{
    NTSTATUS Status = Waiter->Status;
    WO_INDEX Self = WopIndexOf(View, Waiter);
    ULONG Taken = (ULONG)Status % WO_BLOCKS;
    for (ULONG Number = 0; Waiter->Kind < WoWatch && Number < Waiter->Count && Number < WO_BLOCKS; Number += 1) {
        if (Waiter->Kind == WoWaitAny && Number != Taken) {
            continue;
        }
        PWO_OBJECT Object = WopObject(View, Waiter->Block[Number].Object);
        if (Object != NULL && WO_TYPE_OF(WopReadWord(Object)) == WoMutant && WO_VALUE(WopReadWord(Object)) == Self) {
            WopTakeOwnership(View, Waiter, Object);
        }
    }
    WopSetState(Waiter, WoIdle);
    return Status;
}

/* In a transaction, with all objects frozen and signaled. Returns whether one of them was abandoned. */
static BOOLEAN WopConsumeAll(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count)
{
    BOOLEAN Abandoned = FALSE;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopAt(View, Objects[Index]);
        ULONG64 Word = WopReadWord(Object);
        Abandoned |= WopTakingStatus(Word) == STATUS_ABANDONED;
        if (WopConsumed(Word, Self) != Word || WO_TYPE_OF(Word) == WoMutant) {
            WopConsume(View, Object, Self);
        }
    }
    return Abandoned;
}

/* With the lock held and all objects frozen and signaled. No thread claims the wait: it is never Waiting. Its blocks
   name the mutants, if there are any, until those are in the list. */
static NTSTATUS WopTakeAll(PWO_VIEW View, PWO_WAITER Waiter, const WO_INDEX Objects[], ULONG Count)
{
    BOOLEAN Mutants = FALSE;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Mutants |= WO_TYPE_OF(WopReadWord(WopAt(View, Objects[Index]))) == WoMutant;
    }
    if (Mutants) {
        WopPrepareBlocks(View, Waiter, Objects, Count, WoWaitAll);
        WopSetState(Waiter, WoGranted);
    }
    WopBegin(View);
    Waiter->Status = WopConsumeAll(View, WopIndexOf(View, Waiter), Objects, Count) ? STATUS_ABANDONED : STATUS_WAIT_0;
    WopCommit(View);
    for (ULONG Index = 0; Index < Count; Index += 1) {
        WopThaw(WopAt(View, Objects[Index]));
    }
    return Mutants ? WopFinishGrant(View, Waiter) : STATUS_WAIT_0;
}

/* Trying. */

/* Without the lock: STATUS_PENDING: all look signaled. If one is not signaled now, there was a moment at which they were
   not all; a frozen one may be changing. */
static NTSTATUS WopLookAtAll(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopObject(View, Objects[Index]);
        if (Object == NULL) {
            return STATUS_FILE_CORRUPT_ERROR;
        }
        ULONG64 Word = WopReadWord(Object);
        if (WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == Self && Object->Recursion == WO_MOST_RECURSION) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
        if (WO_IS_OF_TYPES(Word, WO_TIMERS)) {
            WopExpireDueTimers(View, &Objects[Index], 1);
            Word = WopReadWord(Object);
        }
        if (!(Word & WO_W) && !WopIsSignaledFor(Word, Self)) {
            return STATUS_TIMEOUT;
        }
    }
    return STATUS_PENDING;
}

static NTSTATUS WopTryAll(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    NTSTATUS Status = WopLookAtAll(View, Self, Objects, Count);
    ULONG Number;
    if (Status != STATUS_PENDING) {
        return Status;
    }
    if (Waiter == NULL || !WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_OBJECT Missing = WopFreezeAll(View, Self, Objects, Count, &Number);
    if (Missing != NULL) {
        WopThaw(Missing);
        Status = STATUS_TIMEOUT;
    } else {
        Status = WopTakeAll(View, Waiter, Objects, Count);
    }
    WopUnlock(View);
    return Status;
}

static NTSTATUS WopTryAny(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        NTSTATUS Status = WopTryTake(View, Self, Objects[Index]);
        if (Status == STATUS_PENDING) {
            if (!WopLock(View)) {
                return STATUS_FILE_CORRUPT_ERROR;
            }
            Status = WopTakeAny(View, Self, Objects + Index, Count - Index, FALSE);
            WopUnlock(View);
            return WopIndexedStatus(Status, Index);
        }
        if (Status != STATUS_TIMEOUT) {
            return WopIndexedStatus(Status, Index);
        }
    }
    return STATUS_TIMEOUT;
}

NTSTATUS WoTryWait(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, WAIT_TYPE WaitType)
{
    if (WopIsUnusable(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (WaitType == WaitAll) {
        return WopTryAll(View, Self, Objects, Count);
    }
    WopExpireDueTimers(View, Objects, Count);
    return WopTryAny(View, Self, Objects, Count);
}

/* With both locks held. */
static NTSTATUS WopTakeBoth(const WO_PART Parts[2])
{
    PWO_WAITER Waiters[2];
    ULONG Number;
    for (ULONG Part = 0; Part < 2; Part += 1) {
        Waiters[Part] = WopRecordInline(Parts[Part].View, Parts[Part].Self, WoWaiterRecord);
        if (Waiters[Part] == NULL) {
            return STATUS_FILE_CORRUPT_ERROR;
        }
    }
    for (ULONG Part = 0; Part < 2; Part += 1) {
        const WO_PART *This = &Parts[Part];
        PWO_OBJECT Missing = WopFreezeAll(This->View, This->Self, This->Objects, This->Count, &Number);
        if (Missing != NULL) {
            WopThaw(Missing);
            for (ULONG Index = 0; Part == 1 && Index < Parts[0].Count; Index += 1) {
                WopThaw(WopAt(Parts[0].View, Parts[0].Objects[Index]));
            }
            return STATUS_TIMEOUT;
        }
    }
    NTSTATUS First = WopTakeAll(Parts[0].View, Waiters[0], Parts[0].Objects, Parts[0].Count);
    NTSTATUS Second = WopTakeAll(Parts[1].View, Waiters[1], Parts[1].Objects, Parts[1].Count);
    return First != STATUS_WAIT_0 ? First : Second;
}

/* The machine's world is locked last, by everybody. */
NTSTATUS WoTryWaitForBoth(const WO_PART Parts[2])
{
    ULONG Last = Parts[0].View->Machine ? 0 : 1;
    PWO_VIEW Inner = Parts[Last].View;
    PWO_VIEW Outer = Parts[1 - Last].View;
    NTSTATUS Status = STATUS_PENDING;
    for (ULONG Part = 0; Part < 2 && Status == STATUS_PENDING; Part += 1) {
        Status = WopLookAtAll(Parts[Part].View, Parts[Part].Self, Parts[Part].Objects, Parts[Part].Count);
    }
    if (Status != STATUS_PENDING) {
        return Status;
    }
    Status = STATUS_FILE_CORRUPT_ERROR;
    if (WopLock(Outer)) {
        if (WopLock(Inner)) {
            Status = WopTakeBoth(Parts);
            WopUnlock(Inner);
        }
        WopUnlock(Outer);
    }
    return Status;
}

/* Waiting. */

/* With the lock held: a new wait, which no thread can claim before its blocks are linked. */
VOID WopBecomeWaiting(PWO_VIEW View, PWO_WAITER Waiter)
{
    View->World->WaitNumber += 1;
    Waiter->Age = View->World->WaitNumber;
    __atomic_store_n(&Waiter->Recheck, 0, __ATOMIC_RELAXED);
    /* release: pairs with the acquire of a claimer */
    __atomic_store_n(&Waiter->State, WopStateOf(WopReadState(Waiter) + WO_STATE_MASK + 1, WoWaiting), __ATOMIC_RELEASE);
}

static NTSTATUS WopLinkAny(PWO_VIEW View, PWO_WAITER Waiter, const WO_INDEX Objects[], ULONG Count)
{
    NTSTATUS Status = WopTakeAny(View, WopIndexOf(View, Waiter), Objects, Count, TRUE);
    if (Status != STATUS_TIMEOUT) {
        return Status;
    }
    WopPrepareBlocks(View, Waiter, Objects, Count, WoWaitAny);
    WopBecomeWaiting(View, Waiter);
    WopBegin(View);
    for (ULONG Number = 0; Number < Count; Number += 1) {
        WopLinkBlock(View, Waiter, Number, WopAt(View, Objects[Number]));
    }
    WopCommit(View);
    return STATUS_PENDING;
}

/* WaitAll, and the watch of one object. */
static NTSTATUS WopLinkAll(PWO_VIEW View, PWO_WAITER Waiter, const WO_INDEX Objects[], ULONG Count, WO_WAIT_KIND Kind)
{
    ULONG Number;
    PWO_OBJECT Missing = WopFindUnsignaled(View, WopIndexOf(View, Waiter), Objects, Count, &Number);
    if (WoIsPoisoned(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (Missing == NULL && Kind == WoWatch) {
        WopThaw(WopAt(View, Objects[0]));
        return STATUS_WAIT_0;
    }
    if (Missing == NULL) {
        return WopTakeAll(View, Waiter, Objects, Count);
    }
    WopPrepareBlocks(View, Waiter, Objects, Count, (UCHAR)Kind);
    WopBecomeWaiting(View, Waiter);
    WopBegin(View);
    WopLinkBlock(View, Waiter, Number, Missing);
    WopCommit(View);
    return STATUS_PENDING;
}

NTSTATUS WoBeginWait(PWO_VIEW View, WO_INDEX Self, const WO_INDEX Objects[], ULONG Count, WO_WAIT_KIND Kind)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    WopExpireDueTimers(View, Objects, Count);
    for (ULONG Index = 0; Kind == WoWaitAll && Index < Count; Index += 1) {
        if (WopIsAtLimit(View, Self, Objects[Index])) {
            return STATUS_MUTANT_LIMIT_EXCEEDED;
        }
    }
    if (Waiter == NULL || !WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    NTSTATUS Status = Kind == WoWaitAny ? WopLinkAny(View, Waiter, Objects, Count)
                                        : WopLinkAll(View, Waiter, Objects, Count, Kind);
    WopUnlock(View);
    return Status;
}

BOOLEAN WoClaimLocally(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter == NULL) {
        return TRUE;
    }
    ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_ACQUIRE);
    while ((State & WO_STATE_MASK) == WoWaiting) {
        /* acq_rel: the claimer sees what the waiter did before it waited, and the waiter why it was claimed */
        if (__atomic_compare_exchange_n(&Waiter->State, &State, WopStateOf(State, WoLocallyEnded), FALSE,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return TRUE;
        }
    }
    return (State & WO_STATE_MASK) == WoLocallyEnded || (State & WO_STATE_MASK) == WoIdle;
}

WO_CLAIM WoClaimWait(PWO_VIEW View, WO_INDEX Self, ULONG64 Number)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    ULONG64 State = WopStateOf(Number, WoWaiting);
    if (Waiter == NULL) {
        return WoClaimedByUs;
    }
    /* acq_rel: as in WoClaimLocally */
    if (__atomic_compare_exchange_n(&Waiter->State, &State, WopStateOf(Number, WoLocallyEnded), FALSE, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return WoClaimedByUs;
    }
    if (WopStateOf(State, WoIdle) != Number) {
        return WoOtherWait;
    }
    return (State & WO_STATE_MASK) == WoClaimed || (State & WO_STATE_MASK) == WoGranted ? WoNotClaimed : WoClaimedByUs;
}

ULONG64 WoWaitNumber(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    return Waiter != NULL ? WopStateOf(WopReadState(Waiter), WoIdle) : 0;
}

NTSTATUS WoCheckWait(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter == NULL || WoIsPoisoned(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    /* acquire: pairs with the release in WopCommit; Recheck is written before the state is restored */
    ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_ACQUIRE) & WO_STATE_MASK;
    if (State == WoGranted) {
        return Waiter->Status;
    }
    BOOLEAN Recheck = __atomic_load_n(&Waiter->Recheck, __ATOMIC_RELAXED) != 0;
    return State == WoClaimed || (State == WoWaiting && !Recheck) ? STATUS_PENDING : STATUS_RETRY;
}

BOOLEAN WoIsGranted(PWO_VIEW View, WO_INDEX Self, NTSTATUS *Status)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter == NULL || WoIsPoisoned(View)) {
        *Status = STATUS_FILE_CORRUPT_ERROR;
        return TRUE;
    }
    /* acquire: pairs with the release in WopCommit */
    if ((__atomic_load_n(&Waiter->State, __ATOMIC_ACQUIRE) & WO_STATE_MASK) != WoGranted) {
        return FALSE;
    }
    *Status = Waiter->Status;
    return TRUE;
}

volatile ULONG *WoWakeWord(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    return Waiter != NULL ? &Waiter->WakeWord : NULL;
}

/* A wait that is being granted has been granted or undone once we have held the lock. */
NTSTATUS WoEndWait(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    for (;;) {
        WoClaimLocally(View, Self);
        ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_ACQUIRE) & WO_STATE_MASK;
        if (State == WoGranted) {
            return WopFinishGrant(View, Waiter);
        }
        if (State == WoIdle) {
            return STATUS_PENDING;
        }
        if (!WopLock(View)) {
            WopSetState(Waiter, WoIdle);
            return STATUS_FILE_CORRUPT_ERROR;
        }
        if (State == WoLocallyEnded) {
            WopUnlinkWait(View, Waiter);
            WopSetState(Waiter, WoIdle);
        }
        WopUnlock(View);
    }
}
