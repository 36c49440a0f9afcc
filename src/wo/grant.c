/*
 * grant.c: the signaler's side of a wait for shared objects: freezing, lists of blocks, and the release of waiters. All of
 * it with the lock held. Theory in wo.h.
 *
 * A signal is a chain of transactions: the first makes the object signaled, and each grants as many waits as the journal
 * has room for. The list is walked once. A block that is skipped belongs to a wait that its own process has ended and
 * its thread unlinks. A WaitAll whose other object is not signaled moves there.
 */
#include "waiter.h"

#include "../ke/ki.h"

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

VOID WopNoteThaw(PWOP_CHAIN Chain, PWO_OBJECT Object)
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

VOID WopConsume(PWO_VIEW View, PWO_OBJECT Object, WO_INDEX Waiter)
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

static VOID WopGrantAny(PWOP_CHAIN Chain, PWO_OBJECT Object, PWO_WAITER Waiter, ULONG Number)
{
    BOOLEAN Abandoned = WopTakingStatus(WopReadWord(Object)) == STATUS_ABANDONED;
    NTSTATUS Status = (Abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0) + (NTSTATUS)Number;
    if (WopClaimFor(Chain->View, Waiter, Status)) {
        WopConsume(Chain->View, Object, WopIndexOf(Chain->View, Waiter));
        WopUnlinkBlocks(Chain, Waiter);
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

/* The waiter may sleep until a time that is not the timer's: it has to check again. Before the commit, so that no death
   in between loses the wake. */
static VOID WopMoveWatch(PWOP_CHAIN Chain, PWO_WAITER Waiter, ULONG From, ULONG To, PWO_OBJECT Object)
{
    if (From == To) {
        return;
    }
    WopUnlinkBlock(Chain, Waiter, From);
    WopLinkBlock(Chain->View, Waiter, To, Object);
    if (WO_IS_OF_TYPES(WopReadWord(Object), WO_TIMERS)) {
        WopWake(Chain->View, Waiter, TRUE);
    }
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
        WopMoveWatch(Chain, Waiter, Watched, Missing, Object);
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
    switch (Waiter->Kind) {
    case WoWaitAny:
        WopGrantAny(Chain, Object, Waiter, Number);
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

/* The block behind Block that belongs to another wait: a wait may name an object twice, and all of its blocks leave
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
