/* wait.c: waits for shared objects: the waiter's side, then the signaler's. Theory in wo.h, 5 to 8. */
#include "wop.h"

#include "../ke/ki.h"

#include <string.h>

/*
 * The signaler's side of a wait for shared objects: freezing, lists of blocks, and the release of waiters. All of
 * it with the lock held. Theory in wo.h.
 *
 * A signal is a chain of transactions: the first makes the object signaled, and each grants as many waits as the journal
 * has room for. The list is walked once. A block that is skipped belongs to a wait that its own process has ended and
 * its thread unlinks. A WaitAll whose other object is not signaled moves there.
 */

/* Freezing. */

VOID WopFreeze(PWO_OBJECT Object)
{
    if (!(WopReadWord(Object) & WO_W)) {
        /* acq_rel: what came before the last compare-exchange is visible, and none comes later */
        __atomic_fetch_or(&Object->Word, WO_W, __ATOMIC_ACQ_REL);
    }
}

/* The same chain may have thawed it before: then any thread may change the word. */
VOID WopThaw(PWO_OBJECT Object)
{
    ULONG64 Word = WopReadWord(Object);
    if ((Word & WO_W) && Object->WaitersWord == 0) {
        /* release: pairs with the compare-exchange of the next thread */
        __atomic_store_n(&Object->Word, Word & ~WO_W, __ATOMIC_RELEASE);
    }
}

static VOID WopNoteThaw(PWOP_CHAIN Chain, PWO_OBJECT Object)
{
    if (Chain->Thaws < WO_MOST_THAWS) {
        Chain->Thaw[Chain->Thaws] = WopIndexOf(Chain->View, Object);
        Chain->Thaws += 1;
    }
}

/* Chains of transactions. */

VOID WopBeginChain(PWOP_CHAIN Chain, PWO_VIEW View, PWO_OBJECT Object, WO_INTENTION Intention)
{
    Chain->View = View;
    Chain->Thaws = 0;
    WopBegin(View);
    WopEdit(View, &View->World->IntentionArgument, WopIndexOf(View, Object));
    WopEdit(View, &View->World->Intention, Intention);
}

VOID WopEndChain(PWOP_CHAIN Chain, PWO_OBJECT Object)
{
    WopEdit(Chain->View, &Chain->View->World->Intention, WoNoIntention);
    WopCommit(Chain->View);
    for (ULONG Index = 0; Index < Chain->Thaws; Index += 1) {
        WopThaw(WopAt(Chain->View, Chain->Thaw[Index]));
    }
    WopThaw(Object);
}

/* Lists of blocks. */

ULONG WopMostBlocks(PWO_VIEW View)
{
    return (ULONG)(View->Mapped / sizeof(WO_BLOCK));
}

PWO_WAITER WopWaiterOfBlock(PWO_VIEW View, ULONG Block, PULONG Number)
{
    PWO_WAITER Waiter = WopRecordInline(View, Block / WO_BLOCKS, WoWaiterRecord);
    *Number = Block % WO_BLOCKS;
    if (Waiter != NULL && (Waiter->Count > WO_BLOCKS || *Number >= Waiter->Count || !Waiter->Block[*Number].Linked)) {
        WopPoison(View, "a list has a block that is not linked");
        return NULL;
    }
    return Waiter;
}

static PWO_BLOCK WopBlock(PWO_VIEW View, ULONG Block, ULONG64 *Age)
{
    ULONG Number;
    PWO_WAITER Waiter = WopWaiterOfBlock(View, Block, &Number);
    if (Waiter == NULL) {
        return NULL;
    }
    *Age = Waiter->Age;
    return &Waiter->Block[Number];
}

typedef union _WOP_PAIR {
    WO_LINKS List;
    struct { ULONG Next, Previous; } Links;
    struct { WO_INDEX Object; ULONG Linked; } Place;
    ULONG64 Word;
} WOP_PAIR;

static VOID WopSetLinks(PWO_VIEW View, PWO_BLOCK Block, ULONG Next, ULONG Previous)
{
    WOP_PAIR New = {.Links = {Next, Previous}};
    WopEdit(View, &Block->LinksWord, New.Word);
}

static VOID WopSetPlace(PWO_VIEW View, PWO_BLOCK Block, WO_INDEX Object, ULONG Linked)
{
    WOP_PAIR New = {.Place = {Object, Linked}};
    WopEdit(View, &Block->Object, New.Word);
}

/* The youngest block of Object that is older than Age, or 0. A new wait is the youngest of all. */
static ULONG WopFindOlder(PWO_VIEW View, PWO_OBJECT Object, ULONG64 Age, PWO_BLOCK *Older)
{
    ULONG Block = Object->Waiters.Last;
    for (ULONG Left = WopMostBlocks(View); Block != 0 && Left != 0; Left -= 1) {
        ULONG64 Found;
        *Older = WopBlock(View, Block, &Found);
        if (*Older == NULL || Found <= Age) {
            break;
        }
        Block = (*Older)->Previous;
    }
    return Block;
}

/* Its own links need no journal: while the block is not linked, no thread reads them. */
VOID WopLinkBlock(PWO_VIEW View, PWO_WAITER Waiter, ULONG Number, PWO_OBJECT Object)
{
    PWO_BLOCK Block = &Waiter->Block[Number];
    ULONG Self = WopIndexOf(View, Waiter) * WO_BLOCKS + Number;
    WOP_PAIR List = {.List = Object->Waiters};
    PWO_BLOCK Older = NULL;
    ULONG64 Age;
    ULONG Before = WopFindOlder(View, Object, Waiter->Age, &Older);
    if (Before != 0 && Older == NULL) {
        return;
    }
    ULONG Behind = Before != 0 ? Older->Next : List.List.First;
    PWO_BLOCK Younger = Behind != 0 ? WopBlock(View, Behind, &Age) : NULL;
    if (Behind != 0 && Younger == NULL) {
        return;
    }
    Block->Next = Behind;
    Block->Previous = Before;
    if (Before != 0) {
        WopSetLinks(View, Older, Self, Older->Previous);
    } else {
        List.List.First = Self;
    }
    if (Behind != 0) {
        WopSetLinks(View, Younger, Younger->Next, Self);
    } else {
        List.List.Last = Self;
    }
    if (List.Word != Object->WaitersWord) {
        WopEdit(View, &Object->WaitersWord, List.Word);
    }
    WopSetPlace(View, Block, WopIndexOf(View, Object), TRUE);
}

static VOID WopUnlinkBlock(PWOP_CHAIN Chain, PWO_WAITER Waiter, ULONG Number)
{
    PWO_VIEW View = Chain->View;
    PWO_BLOCK Block = &Waiter->Block[Number];
    PWO_OBJECT Object = WopObject(View, Block->Object);
    ULONG64 Age;
    if (Object == NULL) {
        return;
    }
    WOP_PAIR List = {.List = Object->Waiters};
    PWO_BLOCK Older = Block->Previous != 0 ? WopBlock(View, Block->Previous, &Age) : NULL;
    PWO_BLOCK Younger = Block->Next != 0 ? WopBlock(View, Block->Next, &Age) : NULL;
    if ((Block->Previous != 0 && Older == NULL) || (Block->Next != 0 && Younger == NULL)) {
        return;
    }
    if (Older != NULL) {
        WopSetLinks(View, Older, Block->Next, Older->Previous);
    } else {
        List.List.First = Block->Next;
    }
    if (Younger != NULL) {
        WopSetLinks(View, Younger, Younger->Next, Block->Previous);
    } else {
        List.List.Last = Block->Previous;
    }
    if (List.Word != Object->WaitersWord) {
        WopEdit(View, &Object->WaitersWord, List.Word);
    }
    WopSetPlace(View, Block, Block->Object, FALSE);
    WopNoteThaw(Chain, Object);
}

VOID WopUnlinkBlocks(PWOP_CHAIN Chain, PWO_WAITER Waiter)
{
    for (ULONG Number = 0; Number < Waiter->Count && Number < WO_BLOCKS; Number += 1) {
        if (Waiter->Block[Number].Linked) {
            WopUnlinkBlock(Chain, Waiter, Number);
        }
    }
}

/* Waking. */

VOID WopWake(PWO_VIEW View, PWO_WAITER Waiter, BOOLEAN Surely)
{
    if (Waiter->Notification != 0) {
        PWO_PROCESS Process = WopRecord(View, Waiter->Process, WoProcessRecord);
        if (Process != NULL) {
            /* release: as below, for the session thread */
            __atomic_fetch_add(&Process->GuardWord, 1, __ATOMIC_RELEASE);
            HalWakeShared(&Process->GuardWord, 1);
        }
        return;
    }
    ULONG Word = __atomic_load_n(&Waiter->WakeWord, __ATOMIC_RELAXED);
    /* release: pairs with the acquire of the waiter, which then reads State and Recheck */
    while (!__atomic_compare_exchange_n(&Waiter->WakeWord, &Word, (Word + 2) & ~WO_ASLEEP, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    if ((Word & WO_ASLEEP) || Surely) {
        KiCurrentThread()->WokeSleeper = TRUE; /* it may spin for the reply: ke/park.h */
        HalWakeShared(&Waiter->WakeWord, MAXULONG);
    }
}

/* Granting. */

static BOOLEAN WopClaimFor(PWO_VIEW View, PWO_WAITER Waiter, NTSTATUS Status)
{
    if (!WopClaim(View, Waiter, Status)) {
        return FALSE;
    }
    /* relaxed: a hint for its next spin */
    __atomic_store_n(&Waiter->WakerProcessor, HalDispatch.CurrentProcessor() + 1, __ATOMIC_RELAXED);
    return TRUE;
}

/* In a transaction. */
static VOID WopConsume(PWO_VIEW View, PWO_OBJECT Object, WO_INDEX Waiter)
{
    ULONG64 Word = WopReadWord(Object);
    ULONG64 New = WopConsumed(Word, Waiter);
    if (WO_TYPE_OF(Word) == WoMutant) {
        ULONG Recursion = WO_VALUE(Word) == Waiter ? Object->Recursion + 1 : 0;
        if (Recursion != Object->Recursion) {
            WopEditUlong(View, &Object->Recursion, Recursion);
        }
    }
    if (New != Word) {
        WopEdit(View, &Object->Word, New);
    }
}

/* The object of a block that is not signaled for the wait, frozen, or NULL. Without Freezing it only reads, and freezes
   the object that it finds. A timer that is due is not signaled yet: its waiter expires it. */
static PWO_OBJECT WopFindMissing(PWOP_CHAIN Chain, PWO_WAITER Waiter, BOOLEAN Freezing, PULONG Missing)
{
    WO_INDEX Self = WopIndexOf(Chain->View, Waiter);
    for (ULONG Number = 0; Number < Waiter->Count; Number += 1) {
        PWO_OBJECT Object = WopObject(Chain->View, Waiter->Block[Number].Object);
        *Missing = Number;
        if (Object == NULL || (!Freezing && WopIsSignaledFor(WopReadWord(Object), Self))) {
            continue;
        }
        WopFreeze(Object);
        WopNoteThaw(Chain, Object);
        if (!WopIsSignaledFor(WopReadWord(Object), Self)) {
            return Object;
        }
    }
    return NULL;
}

static VOID WopGrantAll(PWOP_CHAIN Chain, PWO_WAITER Waiter, ULONG Watched)
{
    PWO_VIEW View = Chain->View;
    NTSTATUS Status = STATUS_WAIT_0;
    ULONG Missing;
    PWO_OBJECT Object = WopFindMissing(Chain, Waiter, FALSE, &Missing);
    if (Object == NULL) {
        Object = WopFindMissing(Chain, Waiter, TRUE, &Missing);
    }
    if (Object != NULL) {
        if (Watched != Missing) {
            WopUnlinkBlock(Chain, Waiter, Watched);
            WopLinkBlock(View, Waiter, Missing, Object);
            /* The waiter may sleep until a time that is not the timer's: it has to check again. Before the commit, so
               that no death in between loses the wake. */
            if (WO_IS_OF_TYPES(WopReadWord(Object), WO_TIMERS)) {
                WopWake(View, Waiter, TRUE);
            }
        }
        return;
    }
    for (ULONG Number = 0; Number < Waiter->Count; Number += 1) {
        Object = WopObject(View, Waiter->Block[Number].Object);
        if (Object != NULL && WopTakingStatus(WopReadWord(Object)) == STATUS_ABANDONED) {
            Status = STATUS_ABANDONED;
        }
    }
    if (!WopClaimFor(View, Waiter, Status)) {
        return;
    }
    for (ULONG Number = 0; Number < Waiter->Count; Number += 1) {
        Object = WopObject(View, Waiter->Block[Number].Object);
        if (Object != NULL) {
            WopConsume(View, Object, WopIndexOf(View, Waiter));
        }
    }
    WopUnlinkBlocks(Chain, Waiter);
}

static VOID WopGrantBlock(PWOP_CHAIN Chain, PWO_OBJECT Object, PWO_WAITER Waiter, ULONG Number)
{
    BOOLEAN Abandoned = WopTakingStatus(WopReadWord(Object)) == STATUS_ABANDONED;
    NTSTATUS Status = (Abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0) + (NTSTATUS)Number;
    switch (Waiter->Kind) {
    case WoWaitAny:
        if (WopClaimFor(Chain->View, Waiter, Status)) {
            WopConsume(Chain->View, Object, WopIndexOf(Chain->View, Waiter));
            WopUnlinkBlocks(Chain, Waiter);
        }
        break;
    case WoWaitAll:
        WopGrantAll(Chain, Waiter, Number);
        break;
    case WoWatch:
        if (WopClaimFor(Chain->View, Waiter, STATUS_WAIT_0)) {
            WopUnlinkBlocks(Chain, Waiter);
        }
        break;
    default:
        WopPoison(Chain->View, "a wait has an unknown kind");
        break;
    }
}

/* The next block after Block that belongs to another wait: a wait may name an object twice, and all of its blocks leave
   together. */
static ULONG WopNextOfOther(PWO_VIEW View, ULONG Block)
{
    ULONG Waiter = Block / WO_BLOCKS;
    for (ULONG Left = WO_BLOCKS; Block != 0 && Block / WO_BLOCKS == Waiter && Left != 0; Left -= 1) {
        ULONG64 Age;
        PWO_BLOCK Found = WopBlock(View, Block, &Age);
        Block = Found != NULL ? Found->Next : 0;
    }
    return Block;
}

VOID WopReleaseWaiters(PWOP_CHAIN Chain, PWO_OBJECT Object)
{
    ULONG Block = Object->Waiters.First;
    for (ULONG Left = WopMostBlocks(Chain->View); Block != 0 && WopIsSignaledFor(WopReadWord(Object), 0); Left -= 1) {
        ULONG Number;
        PWO_WAITER Waiter = WopWaiterOfBlock(Chain->View, Block, &Number);
        if (Waiter == NULL || Left == 0) {
            return;
        }
        ULONG Next = WopNextOfOther(Chain->View, Block);
        if (!WopHasRoom(Chain->View, 5 * Waiter->Count + 8, 1)) { /* edits of one grant */
            WopCommit(Chain->View);
            WopBegin(Chain->View);
        }
        WopGrantBlock(Chain, Object, Waiter, Number);
        Block = Next;
    }
}

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
    /* release: the decision about the wait comes first */
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

/* Taking signaled objects. */

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

/* Freezes objects that were looked up before. Returns one that is not signaled for Self, then the only frozen one; NULL: all are
   signaled. */
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

/* With the lock held and all objects frozen and signaled. No thread claims the wait: it is never Waiting. Its blocks
   name the mutants, if there are any, until those are in the list. */
static NTSTATUS WopTakeAll(PWO_VIEW View, PWO_WAITER Waiter, const WO_INDEX Objects[], ULONG Count)
{
    WO_INDEX Self = WopIndexOf(View, Waiter);
    NTSTATUS Status = STATUS_WAIT_0;
    BOOLEAN Mutants = FALSE;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Mutants |= WO_TYPE_OF(WopReadWord(WopAt(View, Objects[Index]))) == WoMutant;
    }
    if (Mutants) {
        WopPrepareBlocks(View, Waiter, Objects, Count, WoWaitAll);
        WopSetState(Waiter, WoGranted);
    }
    WopBegin(View);
    for (ULONG Index = 0; Index < Count; Index += 1) {
        PWO_OBJECT Object = WopAt(View, Objects[Index]);
        ULONG64 Word = WopReadWord(Object);
        Status = WopTakingStatus(Word) == STATUS_ABANDONED ? STATUS_ABANDONED : Status;
        if (WopConsumed(Word, Self) != Word || WO_TYPE_OF(Word) == WoMutant) {
            WopConsume(View, Object, Self);
        }
    }
    Waiter->Status = Status;
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

/* Lock order: the machine's world is last. */
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
        PWO_OBJECT Object = WopObject(View, Objects[Index]);
        ULONG64 Word = Object != NULL ? WopReadWord(Object) : 0;
        if (WO_TYPE_OF(Word) == WoMutant && WO_VALUE(Word) == Self && Object->Recursion == WO_MOST_RECURSION) {
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
        /* acq_rel: the claimer sees the waiter's earlier stores, and the waiter sees why it was claimed */
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
