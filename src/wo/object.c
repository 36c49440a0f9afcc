/*
 * object.c: the state of shared objects: creating, setting, resetting, pulsing, releasing, querying.
 *
 * While the object has no waiters, each operation is one compare-exchange. Otherwise it takes the lock, and grants waits
 * (grant.c). A store that concerns one word needs no journal.
 */
#include "waiter.h"

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
        Word |= New->Owner != 0 ? WO_W : 0; /* until it has its owner: mutant.c */
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
NTSTATUS WoReleaseSemaphore(PWO_VIEW View, WO_INDEX Semaphore, LONG Adjustment, PLONG Previous)
{
    PWO_OBJECT Object = WopObjectOfTypes(View, Semaphore, 1ull << WoSemaphore);
    if (Object == NULL) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    ULONG64 Word = WopReadWord(Object);
    while (!(Word & WO_W)) {
        ULONG64 New = Word;
        BOOLEAN Accepted = WopAdjustCount(Object, Adjustment, &New);
        *Previous = (LONG)WO_VALUE(Word);
        if (WopChangeWord(Object, &Word, New)) {
            return Accepted ? STATUS_SUCCESS : STATUS_SEMAPHORE_LIMIT_EXCEEDED;
        }
    }
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopFreeze(Object);
    Word = WopReadWord(Object);
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

static VOID WopDescribeMutant(PWO_VIEW View, PWO_OBJECT Mutant, ULONG64 Word, PWO_STATE State)
{
    State->Owner = WO_VALUE(Word);
    State->Abandoned = (Word & WO_ABANDONED) != 0;
    State->State = State->Owner == 0 ? 1 : (LONG)(0 - Mutant->Recursion);
    PWO_WAITER Owner = State->Owner != 0 ? WopRecord(View, State->Owner, WoWaiterRecord) : NULL;
    PWO_PROCESS Process = Owner != NULL ? WopRecord(View, Owner->Process, WoProcessRecord) : NULL;
    if (Process != NULL) {
        State->OwnerProcess = Process->ProcessId;
        State->OwnerThread = Owner->ThreadId;
    }
}

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
        WopDescribeMutant(View, Record, Word, State);
    }
    WopUnlock(View);
    return STATUS_SUCCESS;
}
