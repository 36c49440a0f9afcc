/*
 * object.c: shared objects of each kind: creating, setting, resetting, pulsing, releasing and querying them; mutants, timers,
 * keyed events; and queries of owners and waiters.
 *
 * While the object has no waiters, each operation is one compare-exchange. Otherwise it takes the lock, and grants waits
 * (wait.c). A store that concerns one word needs no journal.
 */
#include "wop.h"
#include "session.h"

/* Creating. */

WO_INDEX WopNewObject(PWO_VIEW View, const WO_NEW *New)
{
    WO_INDEX Index = WopAllocate(View, WoObjectRecord, sizeof(WO_OBJECT));
    PWO_OBJECT Object = Index != 0 ? WopObject(View, Index) : NULL;
    if (Object == NULL) {
        return 0;
    }
    ULONG64 Word = (ULONG64)New->Type << 2;
    if (New->Type == WoMutant) {
        Word |= New->Owner != 0 ? WO_W : 0; /* until it has its owner: WopTakeFrozenMutant */
    } else if (New->Type <= WoSemaphore) {
        Word = WopWithValue(Word, (ULONG)New->State);
    }
    Object->Limit = New->Limit;
    Object->Word = Word;
    WopEditUlong(View, &View->World->Objects, View->World->Objects + 1);
    return Index;
}

NTSTATUS WoCreateObject(PWO_VIEW View, const WO_NEW *New, WO_INDEX *Object)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    *Object = WopNewObject(View, New);
    BOOLEAN Done = *Object != 0 && WopAddReference(View, View->Self, *Object, 0) != 0;
    if (Done && New->Owner != 0 && !WoIsPoisoned(View)) {
        WopCommit(View);
        WopTakeInitialOwnership(View, New->Owner, *Object);
        WopUnlock(View);
        return STATUS_SUCCESS;
    }
    return WopFinish(View, Done);
}

WO_TYPE WoTypeOf(PWO_VIEW View, WO_INDEX Object)
{
    PWO_OBJECT Record = WopObject(View, Object);
    return Record != NULL ? (WO_TYPE)WO_TYPE_OF(WopReadWord(Record)) : 0;
}

/* NULL: poisoned. The caller knows the type; any other means that the world is corrupt. */
static PWO_OBJECT WopObjectOfTypes(PWO_VIEW View, WO_INDEX Index, ULONG64 Types)
{
    PWO_OBJECT Object = WopIsUnusable(View) ? NULL : WopObject(View, Index);
    if (Object != NULL && !WO_IS_OF_TYPES(WopReadWord(Object), Types)) {
        WopPoison(View, "an object has another type than before");
        return NULL;
    }
    return Object;
}

/* Signals. */

/* With the lock held and the object frozen: it becomes New, which is signaled. */
static VOID WopSignal(PWO_VIEW View, PWO_OBJECT Object, ULONG64 New, WO_INTENTION Intention)
{
    WOP_CHAIN Chain;
    WopBeginChain(&Chain, View, Object, Intention);
    WopEdit(View, &Object->Word, New);
    WopReleaseWaiters(&Chain, Object);
    if (Intention == WoPulse) {
        WopEdit(View, &Object->Word, WopWithValue(WopReadWord(Object), 0));
    }
    WopEndChain(&Chain, Object);
}

VOID WopCompleteIntention(PWO_VIEW View)
{
    WO_INTENTION Intention = (WO_INTENTION)View->World->Intention;
    PWO_OBJECT Object = WopObject(View, (WO_INDEX)View->World->IntentionArgument);
    if (Object == NULL) {
        return;
    }
    WopFreeze(Object);
    switch (Intention) {
    case WoSettle:
    case WoPulse:
        WopSignal(View, Object, WopReadWord(Object), Intention);
        break;
    case WoNudge:
        WopNudgeWaiters(View, Object);
        break;
    default:
        WopPoison(View, "the lock has an unknown intention");
        break;
    }
}

/* With the lock held: the object becomes New at once if it has no waiters, otherwise by a signal. */
static VOID WopSetFrozen(PWO_VIEW View, PWO_OBJECT Object, ULONG64 New, WO_INTENTION Intention)
{
    if (Object->WaitersWord != 0) {
        WopSignal(View, Object, New, Intention);
    } else {
        /* release: as in WopThaw */
        __atomic_store_n(&Object->Word, (Intention == WoPulse ? WopWithValue(New, 0) : New) & ~WO_W, __ATOMIC_RELEASE);
    }
}

/* Value: of the event afterwards, unless it is frozen. */
static NTSTATUS WopChangeEvent(PWO_VIEW View, WO_INDEX Event, ULONG Value, WO_INTENTION Intention, PLONG Previous)
{
    PWO_OBJECT Object = WopObjectOfTypes(View, Event, WO_EVENTS);
    if (Object == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    ULONG64 Word = WopReadWord(Object);
    while (!(Word & WO_W)) {
        if (WopChangeWord(Object, &Word, WopWithValue(Word, Value))) {
            *Previous = (LONG)WO_VALUE(Word);
            return STATUS_SUCCESS;
        }
    }
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopFreeze(Object);
    Word = WopReadWord(Object);
    *Previous = (LONG)WO_VALUE(Word);
    if (Intention != WoNoIntention) {
        WopSetFrozen(View, Object, WopWithValue(Word, 1), Intention);
    } else {
        __atomic_store_n(&Object->Word, WopWithValue(Word, 0), __ATOMIC_RELEASE);
        WopThaw(Object);
    }
    WopUnlock(View);
    return STATUS_SUCCESS;
}

NTSTATUS WoSetEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous)
{
    return WopChangeEvent(View, Event, 1, WoSettle, Previous);
}

NTSTATUS WoResetEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous)
{
    return WopChangeEvent(View, Event, 0, WoNoIntention, Previous);
}

NTSTATUS WoPulseEvent(PWO_VIEW View, WO_INDEX Event, PLONG Previous)
{
    return WopChangeEvent(View, Event, 0, WoPulse, Previous);
}

/* FALSE: the count would exceed the limit, or decrease. */
static BOOLEAN WopAdjustCount(PWO_OBJECT Semaphore, LONG Adjustment, ULONG64 *Word)
{
    LONG Adjusted;
    if (Adjustment < 0 || __builtin_add_overflow((LONG)WO_VALUE(*Word), Adjustment, &Adjusted) ||
        Adjusted > Semaphore->Limit) {
        return FALSE;
    }
    *Word = WopWithValue(*Word, (ULONG)Adjusted);
    return TRUE;
}

/* A refused release also needs its compare-exchange, so that the count it reports was current. */
NTSTATUS WopTryReleaseSemaphore(PWO_OBJECT Semaphore, LONG Adjustment, PLONG Previous)
{
    ULONG64 Word = WopReadWord(Semaphore);
    while (!(Word & WO_W) && WO_TYPE_OF(Word) == WoSemaphore) {
        ULONG64 New = Word;
        BOOLEAN Accepted = WopAdjustCount(Semaphore, Adjustment, &New);
        *Previous = (LONG)WO_VALUE(Word);
        if (WopChangeWord(Semaphore, &Word, New)) {
            return Accepted ? STATUS_SUCCESS : STATUS_SEMAPHORE_LIMIT_EXCEEDED;
        }
    }
    return STATUS_PENDING;
}

NTSTATUS WoReleaseSemaphore(PWO_VIEW View, WO_INDEX Semaphore, LONG Adjustment, PLONG Previous)
{
    PWO_OBJECT Object = WopObjectOfTypes(View, Semaphore, 1ull << WoSemaphore);
    if (Object == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    NTSTATUS Status = WopTryReleaseSemaphore(Object, Adjustment, Previous);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopFreeze(Object);
    ULONG64 Word = WopReadWord(Object);
    *Previous = (LONG)WO_VALUE(Word);
    BOOLEAN Accepted = WopAdjustCount(Object, Adjustment, &Word);
    if (Accepted && WO_VALUE(Word) != 0) {
        WopSetFrozen(View, Object, Word, WoSettle);
    } else {
        WopThaw(Object);
    }
    WopUnlock(View);
    return Accepted ? STATUS_SUCCESS : STATUS_SEMAPHORE_LIMIT_EXCEEDED;
}

/* Querying. */

NTSTATUS WoQueryState(PWO_VIEW View, WO_INDEX Object, PWO_STATE State)
{
    PWO_OBJECT Record = WopIsUnusable(View) ? NULL : WopObject(View, Object);
    *State = (WO_STATE){0};
    if (Record == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    ULONG64 Word = WopReadWord(Record);
    if (!(Word & WO_W) && WO_IS_OF_TYPES(Word, WO_EVENTS | 1ull << WoSemaphore)) {
        State->State = (LONG)WO_VALUE(Word);
        State->Limit = Record->Limit;
        return STATUS_SUCCESS;
    }
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (WO_IS_OF_TYPES(Word, WO_TIMERS)) {
        WopExpireIfDue(View, Record);
        State->Timer = (WO_TIMER_SETTING){Record->DueTime, Record->Absolute, Record->Period};
    }
    Word = WopReadWord(Record);
    State->State = (LONG)WO_VALUE(Word);
    State->Limit = Record->Limit;
    if (WO_TYPE_OF(Word) == WoMutant) {
        State->Owner = WO_VALUE(Word);
        State->Abandoned = (Word & WO_ABANDONED) != 0;
        /* relaxed: the owner changes it without the lock; see WopSetRecursion */
        ULONG Recursion = __atomic_load_n(&Record->Recursion, __ATOMIC_RELAXED);
        State->State = State->Owner == 0 ? 1 : (LONG)(0 - Recursion);
        PWO_WAITER Owner = State->Owner != 0 ? WopRecord(View, State->Owner, WoWaiterRecord) : NULL;
        PWO_PROCESS Process = Owner != NULL ? WopRecord(View, Owner->Process, WoProcessRecord) : NULL;
        if (Process != NULL) {
            State->OwnerProcess = Process->ProcessId;
            State->OwnerThread = Owner->ThreadId;
        }
    }
    WopUnlock(View);
    return STATUS_SUCCESS;
}

/*
 * Shared mutants. Ownership is in the state word; the list of what a thread owns is in wop.h.
 *
 * Acquiring a free mutant and releasing one without waiters is one compare-exchange. Acquiring again and releasing again
 * touch Recursion alone, which is the owner's.
 */

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

/* Called by the owner. relaxed: a query by another thread gets the old value or the new one. */
static VOID WopSetRecursion(PWO_OBJECT Mutant, ULONG Recursion)
{
    __atomic_store_n(&Mutant->Recursion, Recursion, __ATOMIC_RELAXED);
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
        WopSetRecursion(Mutant, Mutant->Recursion + (*Status == STATUS_SUCCESS));
        return TRUE;
    }
    while (!(Word & WO_W) && WO_VALUE(Word) == 0) {
        *Status = WopTakingStatus(Word);
        WopSetPending(Waiter, WopIndexOf(View, Mutant));
        if (WopChangeWord(Mutant, &Word, WopConsumed(Word, Self))) {
            WopSetRecursion(Mutant, 0);
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
        WopSetRecursion(Mutant, 0);
        WopEnterOwned(View, Waiter, Mutant);
        WopSetPending(Waiter, 0);
    }
}

/* Releasing. */

/* Where a dead owner's list refers to a mutant, and what the list refers to afterwards; Word is NULL: in neither
   place. */
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

/* Mark: WO_ABANDONED or 0. FALSE: it is frozen, and still owned. */
static BOOLEAN WopTryFree(PWO_VIEW View, PWO_OBJECT Mutant, PWO_WAITER Owner, ULONG64 Mark)
{
    ULONG64 Word = WopReadWord(Mutant);
    BOOLEAN Freed = FALSE;
    if (Word & WO_W) {
        return FALSE;
    }
    WopSetPending(Owner, WopIndexOf(View, Mutant));
    WopLeaveOwned(View, Owner, Mutant);
    while (!Freed && !(Word & WO_W)) {
        Freed = WopChangeWord(Mutant, &Word, WopWithValue(Word, 0) | Mark);
    }
    if (!Freed) { /* a waiter came */
        WopEnterOwned(View, Owner, Mutant);
    }
    WopSetPending(Owner, 0);
    return Freed;
}

NTSTATUS WopTryReleaseMutant(PWO_VIEW View, PWO_OBJECT Mutant, WO_INDEX Self, BOOLEAN Abandoned, PLONG Previous)
{
    PWO_WAITER Owner = WopRecordInline(View, Self, WoWaiterRecord);
    if (Owner == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (WO_VALUE(WopReadWord(Mutant)) != Self) {
        return STATUS_MUTANT_NOT_OWNED;
    }
    *Previous = (LONG)(0 - Mutant->Recursion);
    if (Mutant->Recursion != 0 && !Abandoned) {
        WopSetRecursion(Mutant, Mutant->Recursion - 1);
        return STATUS_SUCCESS;
    }
    return WopTryFree(View, Mutant, Owner, Abandoned ? WO_ABANDONED : 0) ? STATUS_SUCCESS : STATUS_PENDING;
}

NTSTATUS WoReleaseMutant(PWO_VIEW View, WO_INDEX Mutant, WO_INDEX Self, BOOLEAN Abandoned, PLONG Previous)
{
    PWO_OBJECT Object = WopIsUnusable(View) ? NULL : WopObject(View, Mutant);
    if (Object == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (Self == 0) {
        return STATUS_MUTANT_NOT_OWNED;
    }
    NTSTATUS Status = WopTryReleaseMutant(View, Object, Self, Abandoned, Previous);
    PWO_WAITER Owner = Status == STATUS_PENDING ? WopRecordInline(View, Self, WoWaiterRecord) : NULL;
    if (Owner == NULL) {
        return Status != STATUS_PENDING ? Status : STATUS_FILE_CORRUPT_ERROR;
    }
    Status = STATUS_FILE_CORRUPT_ERROR;
    WopSetPending(Owner, Mutant);
    WopLeaveOwned(View, Owner, Object);
    if (WopLock(View)) {
        WopHandOff(View, Object, Abandoned ? WO_ABANDONED : 0, &(WOP_NAMED){0});
        WopUnlock(View);
        Status = STATUS_SUCCESS;
    }
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

/*
 * Shared timers. No thread drives them: a timer is its due time, and becomes signaled at the first check after
 * that time (WopExpireIfDue).
 *
 * 1. Every operation that reads the state of a timer checks first.
 * 2. A thread that waits for a timer sleeps at most until the timer is due, then checks (WoNextDue, WoExpireTimers). So
 *    a timer with a waiter expires in time, and its waits are granted in order, no matter which waiter wakes up first.
 * 3. A thread that sets or cancels a timer wakes its waiters, which read the new time. A WaitAll that begins to watch a
 *    timer is woken for the same reason (wait.c).
 *
 * Times are the host's, the same in all processes. An absolute time is compared with the system clock at each check, so
 * it follows clock steps. A periodic timer that was not checked for several periods expires once, and is due next at
 * the first multiple of its period that is in the future.
 */

#define WO_UNITS_PER_MILLISECOND 10000ull

/* Also without the lock: then a hint. */
static BOOLEAN WopIsDue(PWO_OBJECT Timer)
{
    /* relaxed: under the lock, or a hint */
    ULONG64 DueTime = __atomic_load_n(&Timer->DueTime, __ATOMIC_RELAXED);
    if (DueTime == 0) {
        return FALSE;
    }
    ULONG64 Now = __atomic_load_n(&Timer->Absolute, __ATOMIC_RELAXED) ? HalDispatch.QuerySystemTime()
                                                                      : HalDispatch.QueryInterruptTime();
    return DueTime <= Now;
}

/* As KiFileNextPeriod: lateness does not add up, and after its first expiration a periodic timer counts in interrupt
   time. 0: it is not periodic. */
static ULONG64 WopNextPeriod(PWO_OBJECT Timer)
{
    ULONG64 Period = Timer->Period * WO_UNITS_PER_MILLISECOND;
    ULONG64 Now = HalDispatch.QueryInterruptTime();
    ULONG64 Base = Timer->DueTime;
    if (Period == 0) {
        return 0;
    }
    if (Timer->Absolute) {
        ULONG64 Late = HalDispatch.QuerySystemTime() - Base;
        Base = Late < Now ? Now - Late : Now;
    }
    return Base + ((Now > Base ? Now - Base : 0) / Period + 1) * Period;
}

typedef union _WOP_PERIOD {
    struct { ULONG Period; BOOLEAN Absolute; } Fields;
    ULONG64 Word;
} WOP_PERIOD;

static VOID WopSetDue(PWO_VIEW View, PWO_OBJECT Timer, ULONG64 DueTime, ULONG Period, BOOLEAN Absolute)
{
    WOP_PERIOD New = {.Word = 0};
    New.Fields.Period = Period;
    New.Fields.Absolute = Absolute;
    WopEdit(View, &Timer->DueTime, DueTime);
    WopEdit(View, &Timer->Period, New.Word);
}

VOID WopExpireIfDue(PWO_VIEW View, PWO_OBJECT Timer)
{
    WOP_CHAIN Chain;
    if (!WopIsDue(Timer)) {
        return;
    }
    WopFreeze(Timer);
    WopBeginChain(&Chain, View, Timer, WoSettle);
    WopSetDue(View, Timer, WopNextPeriod(Timer), Timer->Period, FALSE);
    WopEdit(View, &Timer->Word, WopWithValue(WopReadWord(Timer), 1));
    WopReleaseWaiters(&Chain, Timer);
    WopEndChain(&Chain, Timer);
}

static BOOLEAN WopIsTimer(PWO_OBJECT Object)
{
    return Object != NULL && WO_IS_OF_TYPES(WopReadWord(Object), WO_TIMERS);
}

VOID WopExpireDueTimers(PWO_VIEW View, const WO_INDEX Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopObject(View, Objects[Index]);
        if (WopIsTimer(Object) && WopIsDue(Object) && WopLock(View)) {
            WopExpireIfDue(View, Object);
            WopUnlock(View);
        }
    }
}

/* Wakes the waiters of a timer that was set or canceled: they check again. */
VOID WopNudgeWaiters(PWO_VIEW View, PWO_OBJECT Timer)
{
    ULONG Block = Timer->Waiters.First;
    for (ULONG Left = WopMostBlocks(View); Block != 0 && Left != 0; Left -= 1) {
        ULONG Number;
        PWO_WAITER Waiter = WopWaiterOfBlock(View, Block, &Number);
        if (Waiter == NULL) {
            return;
        }
        WopWake(View, Waiter, TRUE);
        Block = Waiter->Block[Number].Next;
    }
    /* release: after the wakes */
    __atomic_store_n(&View->World->Intention, WoNoIntention, __ATOMIC_RELEASE);
    WopThaw(Timer);
}

/* With the lock held. Setting: NULL: none. */
static VOID WopArm(PWO_VIEW View, PWO_OBJECT Timer, const WO_TIMER_SETTING *Setting)
{
    WOP_CHAIN Chain;
    WopFreeze(Timer);
    WopBeginChain(&Chain, View, Timer, WoNudge);
    WopEdit(View, &Timer->Arming, Timer->Arming + 1);
    if (Setting != NULL) {
        /* A time that has passed already is now: the periods begin with it. */
        BOOLEAN Past = Setting->Absolute && Setting->DueTime <= HalDispatch.QuerySystemTime();
        WopSetDue(View, Timer, Past ? HalDispatch.QueryInterruptTime() : Setting->DueTime, Setting->Period,
                  Setting->Absolute && !Past);
        WopEdit(View, &Timer->Word, WopWithValue(WopReadWord(Timer), 0));
    } else {
        WopSetDue(View, Timer, 0, 0, FALSE);
    }
    WopCommit(View);
    WopNudgeWaiters(View, Timer);
}

NTSTATUS WoSetTimer(PWO_VIEW View, WO_INDEX Timer, const WO_TIMER_SETTING *Setting, PULONG64 Arming, PBOOLEAN Previous)
{
    PWO_OBJECT Object = WopObject(View, Timer);
    if (Object == NULL || !WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopExpireIfDue(View, Object);
    *Previous = WO_VALUE(WopReadWord(Object)) != 0;
    WopArm(View, Object, Setting);
    *Arming = Object->Arming;
    WopExpireIfDue(View, Object);
    WopUnlock(View);
    return STATUS_SUCCESS;
}

NTSTATUS WoCancelTimer(PWO_VIEW View, WO_INDEX Timer, PBOOLEAN Previous)
{
    ULONG64 Arming;
    return WoSetTimer(View, Timer, NULL, &Arming, Previous);
}

BOOLEAN WoIsArmed(PWO_VIEW View, WO_INDEX Timer, ULONG64 Arming)
{
    PWO_OBJECT Object = WopObject(View, Timer);
    /* relaxed: the caller knows its arming from WoSetTimer; a later one may happen at any time */
    return Object != NULL && __atomic_load_n(&Object->Arming, __ATOMIC_RELAXED) == Arming;
}

/* The waiter's side. */

/* With the lock, so that the time and its clock belong together. Times of two clocks can be compared only by the
   remaining time. */
BOOLEAN WoNextDue(PWO_VIEW View, WO_INDEX Self, PHAL_DEADLINE Due)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    ULONG64 Least = MAXULONGLONG;
    if (Waiter == NULL || Waiter->Timers == 0 || !WopLock(View)) {
        return FALSE;
    }
    for (ULONG Number = 0; Number < Waiter->Count && Number < WO_BLOCKS; Number += 1) {
        PWO_OBJECT Object = WopObject(View, Waiter->Block[Number].Object);
        if (!WopIsTimer(Object) || Object->DueTime == 0) {
            continue;
        }
        ULONG64 Now = Object->Absolute ? HalDispatch.QuerySystemTime() : HalDispatch.QueryInterruptTime();
        ULONG64 Remaining = Object->DueTime > Now ? Object->DueTime - Now : 0;
        if (Remaining < Least) {
            Least = Remaining;
            *Due = (HAL_DEADLINE){Object->Absolute ? HalSystemTime : HalInterruptTime, Object->DueTime};
        }
    }
    WopUnlock(View);
    return Least != MAXULONGLONG;
}

VOID WoExpireTimers(PWO_VIEW View, WO_INDEX Self)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    if (Waiter == NULL || Waiter->Timers == 0 || !WopLock(View)) {
        return;
    }
    for (ULONG Number = 0; Number < Waiter->Count && Number < WO_BLOCKS; Number += 1) {
        PWO_OBJECT Object = WopObject(View, Waiter->Block[Number].Object);
        if (WopIsTimer(Object)) {
            WopExpireIfDue(View, Object);
        }
    }
    WopUnlock(View);
}

/*
 * Shared keyed events: a thread that waits and one that releases rendezvous at a key, in any processes.
 * The second one grants the wait of the first, and does not wait itself. The oldest of the other side is paired first.
 */

/* With the lock held: claims the oldest wait of that kind and key that can still be claimed. */
static BOOLEAN WopPair(PWOP_CHAIN Chain, PWO_OBJECT KeyedEvent, ULONG64 Key, UCHAR Kind)
{
    PWO_VIEW View = Chain->View;
    ULONG Block = KeyedEvent->Waiters.First;
    for (ULONG Left = WopMostBlocks(View); Block != 0 && Left != 0; Left -= 1) {
        ULONG Number;
        PWO_WAITER Waiter = WopWaiterOfBlock(View, Block, &Number);
        if (Waiter == NULL) {
            return FALSE;
        }
        if (Waiter->Kind == Kind && Waiter->Key == Key && WopClaim(View, Waiter, STATUS_SUCCESS)) {
            WopUnlinkBlocks(Chain, Waiter);
            return TRUE;
        }
        Block = Waiter->Block[Number].Next;
    }
    return FALSE;
}

NTSTATUS WoBeginKeyedWait(PWO_VIEW View, WO_INDEX Self, WO_INDEX KeyedEvent, ULONG64 Key, BOOLEAN Release)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    PWO_OBJECT Object = WopObject(View, KeyedEvent);
    WOP_CHAIN Chain = {.View = View};
    if (Waiter == NULL || Object == NULL || !WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    BOOLEAN Paired = WopPair(&Chain, Object, Key, Release ? WO_KEYED_WAIT : WO_KEYED_RELEASE);
    if (!Paired) {
        Waiter->Kind = Release ? WO_KEYED_RELEASE : WO_KEYED_WAIT;
        Waiter->Count = 1;
        Waiter->Timers = 0;
        Waiter->Key = Key;
        Waiter->Block[0].Linked = FALSE;
        WopBecomeWaiting(View, Waiter);
        WopLinkBlock(View, Waiter, 0, Object);
    }
    WopCommit(View);
    WopUnlock(View);
    return Paired ? STATUS_SUCCESS : STATUS_PENDING;
}

/*
 * Owners and waits of threads: for wait chains. A thread of another process may end at any time, so a dangling index or
 * id is not damage here.
 */

PWO_VIEW WoAttachedView(WO_SCOPE Scope)
{
    PWO_PLACE Place = &WopPlaces[Scope];
    /* acquire: pairs with the release in WopOpenPlace */
    return __atomic_load_n(&Place->State, __ATOMIC_ACQUIRE) == WoPlaceAttached ? &Place->View : NULL;
}

/* With the lock held. */
static VOID WopDescribeWait(PWO_VIEW View, PWO_WAITER Waiter, PWO_THREAD_WAIT Wait, ULONG64 *Key)
{
    PWO_PROCESS Process = WopRecord(View, Waiter->Process, WoProcessRecord);
    ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_RELAXED); /* relaxed: it may end at any time, lock or not */
    *Wait = (WO_THREAD_WAIT){.ThreadId = Waiter->ThreadId};
    if (Process == NULL) {
        return;
    }
    Wait->ProcessId = Process->ProcessId;
    *Key = Process->Key;
    if ((State & WO_STATE_MASK) == WoWaiting) {
        Wait->Number = State;
        Wait->Count = Waiter->Count + Waiter->Mixed;
        Wait->Object = Waiter->Block[0].Object;
    }
}

/* Without the lock, because it queries the host. What a dead process had is about to be cleaned up. */
static BOOLEAN WopIsThere(const WO_THREAD_WAIT *Wait, ULONG64 Key)
{
    return Wait->ProcessId != 0 && HalQueryProcessKey(Wait->ProcessId) == Key;
}

BOOLEAN WoQueryOwner(PWO_VIEW View, WO_INDEX Mutant, PWO_THREAD_WAIT Owner)
{
    ULONG64 Key = 0;
    *Owner = (WO_THREAD_WAIT){0};
    if (!WopLock(View)) {
        return FALSE;
    }
    ULONG64 Word = WopIsRecord(View, Mutant, WoObjectRecord) ? WopReadWord(WopAt(View, Mutant)) : 0;
    BOOLEAN Found = WO_TYPE_OF(Word) == WoMutant;
    if (Found && WopIsRecord(View, WO_VALUE(Word), WoWaiterRecord)) {
        WopDescribeWait(View, WopAt(View, WO_VALUE(Word)), Owner, &Key);
    }
    WopUnlock(View);
    if (!WopIsThere(Owner, Key)) {
        *Owner = (WO_THREAD_WAIT){0};
    }
    return Found;
}

/* With the lock held. */
static PWO_WAITER WopFindWaiterOf(PWO_VIEW View, PWO_PROCESS Process, ULONG ThreadId)
{
    WO_INDEX Index = Process->FirstWaiter;
    for (ULONG Left = WopBound(View, View->World->Waiters); Index != 0 && Left != 0; Left -= 1) {
        PWO_WAITER Waiter = WopRecord(View, Index, WoWaiterRecord);
        if (Waiter == NULL || (Waiter->ThreadId == ThreadId && Waiter->Notification == 0)) {
            return Waiter;
        }
        Index = Waiter->NextOfProcess;
    }
    return NULL;
}

static PWO_WAITER WopFindWaiter(PWO_VIEW View, ULONG ProcessId, ULONG ThreadId)
{
    WO_INDEX First = View->World->AnyProcess;
    WO_INDEX Index = First;
    for (ULONG Left = WopBound(View, View->World->Processes); Index != 0 && Left != 0; Left -= 1) {
        PWO_PROCESS Process = WopRecord(View, Index, WoProcessRecord);
        if (Process == NULL) {
            return NULL;
        }
        PWO_WAITER Waiter = ProcessId == 0 || Process->ProcessId == ProcessId ? WopFindWaiterOf(View, Process, ThreadId) : NULL;
        if (Waiter != NULL) {
            return Waiter;
        }
        Index = Process->Next != First ? Process->Next : 0;
    }
    return NULL;
}

BOOLEAN WoQueryThread(PWO_VIEW View, ULONG ProcessId, ULONG ThreadId, PWO_THREAD_WAIT Wait)
{
    ULONG64 Key = 0;
    *Wait = (WO_THREAD_WAIT){0};
    if (ThreadId == 0 || !WopLock(View)) {
        return FALSE;
    }
    PWO_WAITER Waiter = WopFindWaiter(View, ProcessId, ThreadId);
    if (Waiter != NULL) {
        WopDescribeWait(View, Waiter, Wait, &Key);
    }
    WopUnlock(View);
    return WopIsThere(Wait, Key);
}
