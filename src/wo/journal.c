/*
 * journal.c: transactions. Theory in wo.h, 2 and 5.
 *
 * A process may be killed between any two instructions, and all that it stored before then stays. So the order of the
 * stores matters: the old value of a word is in the journal, and the journal's count includes it, before the word
 * changes; a claim is posted before it is made. The release stores below keep that order.
 *
 * The repairer may die as well, and the next one starts over. Restoring old values twice is harmless, since nothing but
 * the owner of the lock changes them. The state of a waiter is different: its own process changes it without the lock.
 * So claims are undone and carried out by compare-exchange from Claimed with the number of the wait.
 */
#include "wop.h"

VOID WopBegin(PWO_VIEW View)
{
    PWO_WORLD World = View->World;
    __atomic_store_n(&World->Edits, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&World->Posts, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&World->Phase, WoPhaseEditing, __ATOMIC_RELEASE);
}

/* The lock and the journal itself are never journaled. */
static BOOLEAN WopIsEditable(PWO_VIEW View, ULONG64 Offset)
{
    return Offset % sizeof(ULONG64) == 0 && Offset <= View->Mapped - sizeof(ULONG64) &&
           (Offset < FIELD_OFFSET(WO_WORLD, Lock) || Offset >= FIELD_OFFSET(WO_WORLD, Bucket) ||
            (Offset >= FIELD_OFFSET(WO_WORLD, Intention) && Offset < FIELD_OFFSET(WO_WORLD, Edit)));
}

BOOLEAN WopHasRoom(PWO_VIEW View, ULONG Edits, ULONG Posts)
{
    return View->World->Edits + Edits <= WO_JOURNAL && View->World->Posts + Posts <= WO_POSTS;
}

VOID WopEdit(PWO_VIEW View, volatile VOID *Word, ULONG64 New)
{
    PWO_WORLD World = View->World;
    volatile ULONG64 *Target = Word;
    ULONG64 Offset = (ULONG64)((volatile UCHAR *)Word - (PUCHAR)World);
    ULONG Number = World->Edits;
    if (Number >= WO_JOURNAL || !WopIsEditable(View, Offset)) {
        WopPoison(View, "a change does not fit into the journal");
        return;
    }
    World->Edit[Number].Offset = Offset;
    World->Edit[Number].Old = __atomic_load_n(Target, __ATOMIC_RELAXED);
    __atomic_store_n(&World->Edits, Number + 1, __ATOMIC_RELEASE);
    /* release: threads without the lock read some of these words */
    __atomic_store_n(Target, New, __ATOMIC_RELEASE);
}

VOID WopEditUlong(PWO_VIEW View, volatile VOID *Field, ULONG New)
{
    volatile ULONG *Word = (volatile ULONG *)((ULONG_PTR)Field & ~(ULONG_PTR)7);
    union { ULONG Half[2]; ULONG64 Whole; } Value;
    Value.Whole = __atomic_load_n((volatile ULONG64 *)Word, __ATOMIC_RELAXED);
    Value.Half[(volatile ULONG *)Field - Word] = New;
    WopEdit(View, Word, Value.Whole);
}

BOOLEAN WopClaim(PWO_VIEW View, PWO_WAITER Waiter, NTSTATUS Status)
{
    PWO_WORLD World = View->World;
    /* relaxed, here and below: the waiter wrote its record under the lock, and learns the outcome from WopSettlePost */
    ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_RELAXED);
    ULONG Number = World->Posts;
    if ((State & WO_STATE_MASK) != WoWaiting) {
        return FALSE;
    }
    if (Number >= WO_POSTS) {
        WopPoison(View, "a transaction grants too many waits");
        return FALSE;
    }
    World->Post[Number].State = State;
    World->Post[Number].Waiter = WopIndexOf(View, Waiter);
    __atomic_store_n(&World->Posts, Number + 1, __ATOMIC_RELEASE);
    if (!__atomic_compare_exchange_n(&Waiter->State, &State, WopStateOf(State, WoClaimed), FALSE, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        __atomic_store_n(&World->Posts, Number, __ATOMIC_RELEASE);
        return FALSE;
    }
    __atomic_store_n(&Waiter->Status, Status, __ATOMIC_RELAXED); /* read after Granted */
    return TRUE;
}

/* Granted: the wait has its objects. Otherwise it continues, and its process may have tried to end it meanwhile. Again:
   an earlier attempt may have died midway. */
static VOID WopSettlePost(PWO_VIEW View, const WO_POST *Post, BOOLEAN Granted, BOOLEAN Again)
{
    PWO_WAITER Waiter = WopRecord(View, Post->Waiter, WoWaiterRecord);
    ULONG64 Claimed = WopStateOf(Post->State, WoClaimed);
    if (Waiter == NULL) {
        return;
    }
    if (!Granted) {
        __atomic_store_n(&Waiter->Recheck, 1, __ATOMIC_RELAXED);
    }
    /* release: pairs with the acquires in WoIsGranted and WoCheckWait, which then read Status or Recheck */
    __atomic_compare_exchange_n(&Waiter->State, &Claimed, WopStateOf(Post->State, Granted ? WoGranted : WoWaiting), FALSE,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    WopWake(View, Waiter, Again);
}

static VOID WopSettlePosts(PWO_VIEW View, BOOLEAN Granted, BOOLEAN Again)
{
    ULONG Posts = View->World->Posts;
    if (Posts > WO_POSTS) {
        WopPoison(View, "the journal's number of posts is wrong");
        return;
    }
    for (ULONG Number = 0; Number < Posts; Number += 1) {
        WopSettlePost(View, &View->World->Post[Number], Granted, Again);
    }
}

static VOID WopUndo(PWO_VIEW View)
{
    PWO_WORLD World = View->World;
    ULONG Edits = World->Edits;
    if (Edits > WO_JOURNAL) {
        WopPoison(View, "the journal's length is wrong");
        return;
    }
    while (Edits != 0) {
        const WO_EDIT *Edit = &World->Edit[--Edits];
        if (!WopIsEditable(View, Edit->Offset)) {
            WopPoison(View, "the journal has a wrong address");
            return;
        }
        __atomic_store_n((volatile ULONG64 *)((PUCHAR)World + Edit->Offset), Edit->Old, __ATOMIC_RELEASE);
    }
    WopSettlePosts(View, FALSE, TRUE);
}

static VOID WopEndTransaction(PWO_VIEW View)
{
    __atomic_store_n(&View->World->Phase, WoPhaseIdle, __ATOMIC_RELEASE);
}

VOID WopCommit(PWO_VIEW View)
{
    if (View->World->Posts != 0) {
        __atomic_store_n(&View->World->Phase, WoPhaseFinishing, __ATOMIC_RELEASE);
        WopSettlePosts(View, TRUE, FALSE);
    }
    WopEndTransaction(View);
}

VOID WopCancel(PWO_VIEW View)
{
    WopUndo(View);
    WopEndTransaction(View);
}

VOID WopRepairJournal(PWO_VIEW View)
{
    switch (View->World->Phase) {
    case WoPhaseIdle:
        return;
    case WoPhaseEditing:
        WopUndo(View);
        break;
    case WoPhaseFinishing:
        WopSettlePosts(View, TRUE, TRUE);
        break;
    default:
        WopPoison(View, "the journal's phase is wrong");
        return;
    }
    WopEndTransaction(View);
}
