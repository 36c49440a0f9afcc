/*
 * lock.c: the lock of a world, the transactions under it, and what makes a world unusable.
 *
 * The holder's key is in the lock's word, so the word alone shows whether the holder lives. A waiting thread queries
 * the host only after it has slept for a while: the query costs about 20 us, and the lock is held for less. Unlocking
 * makes the word 0 and then wakes one sleeper; a process that is killed in between costs that sleeper the rest of its
 * nap.
 *
 * A signaler wakes waiters while it holds the lock, so that a killed one leaves the wakes to repair. On one
 * processor the woken thread may preempt it and find the lock held by its waker. It yields at once instead of spinning: with
 * the policy of pushlocks a round trip of two processes on one processor took 1.6 times that of a futex.
 */
#include "wop.h"

#include "../ke/ki.h"
#include "../ke/park.h"

#define WO_FIRST_NAP 50000ull   /* 5 ms */
#define WO_LONGEST_NAP 800000ull
#define WO_MANY_NAPS 16         /* about a second */

/* A world does not end while a process is in it. relaxed, all: nothing is read on the strength of the answer, and a sleeper
   reads it after the word by which it is woken */
BOOLEAN WoIsPoisoned(PWO_VIEW View)
{
    ULONG State = __atomic_load_n(&View->World->State, __ATOMIC_RELAXED);
    return (State != WoLive && (State != WoEnded || !__atomic_load_n(&View->MayHaveEnded, __ATOMIC_RELAXED))) ||
           __atomic_load_n(&View->Poisoned, __ATOMIC_RELAXED) != 0;
}

/* release: a sleeper that reads the new value finds the world damaged */
static VOID WopWakeSleeper(volatile ULONG *Word, BOOLEAN Known)
{
    if (Known) {
        __atomic_fetch_add(Word, 1, __ATOMIC_RELEASE);
    }
    HalWakeShared(Word, MAXULONG);
}

/* Nothing in the world can be trusted any more, not even what kind of record is where. So every word that a
   thread may sleep on is woken, which is harmless; only in a record does the word change, which stops a thread that is about
   to sleep. An access beyond the end of the file changes View->Poisoned. */
VOID WopWakeEverybody(PWO_VIEW View)
{
    ULONG64 Size = __atomic_load_n(&View->World->Size, __ATOMIC_RELAXED); /* may be rubbish */
    ULONG64 Known = __atomic_load_n(&View->Known, __ATOMIC_RELAXED);
    ULONG64 End = Size > Known ? Size : Known;
    WopMakeWritable(View, End);
    End = (End < View->Mapped ? End : View->Mapped) / WO_UNIT;
    /* relaxed: a hint that the file ends here */
    for (WO_INDEX Index = WO_FIRST_RECORD;
         Index < End && __atomic_load_n(&View->Poisoned, __ATOMIC_RELAXED) == WO_VIEW_POISONED; Index += 1) {
        PWO_RECORD Record = WopAt(View, Index);
        /* relaxed: no thread sleeps on a record that is being created */
        UCHAR Kind = __atomic_load_n(&Record->Kind, __ATOMIC_RELAXED);
        WopWakeSleeper(&((PWO_WAITER)Record)->WakeWord, Kind == WoWaiterRecord);
        WopWakeSleeper(&((PWO_PROCESS)Record)->GuardWord, Kind == WoProcessRecord);
    }
}

VOID WopPoison(PWO_VIEW View, PCSTR Reason)
{
    /* relaxed, both: WopWakeSleeper publishes them */
    ULONG Before = __atomic_exchange_n(&View->Poisoned, WO_VIEW_POISONED, __ATOMIC_RELAXED);
    if (Before == WO_VIEW_POISONED) {
        return;
    }
    if (__atomic_exchange_n(&View->World->State, WoDamaged, __ATOMIC_RELAXED) != WoDamaged) {
        HalPrint("interlock: the shared objects in %s are damaged: %s. They can no longer be used; the next process "
                 "makes new ones\n", View->Path, Before == WO_VIEW_LOST ? "the file was cut off" : Reason);
    }
    if (Before == WO_VIEW_LOST) {
        WopWakeBehindEnd(View);
    } else {
        WopWakeEverybody(View);
    }
}

static BOOLEAN WopTryLock(PWO_VIEW View, ULONG64 Sleepers)
{
    ULONG64 Free = 0;
    /* acquire: pairs with the release in WopUnlock */
    return __atomic_compare_exchange_n(&View->World->Lock, &Free, View->Key | Sleepers, FALSE, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* The caller has found the lock held with this value. TRUE: its holder is dead, and the lock is now the caller's. relaxed: the
   host has reported the holder's death, which comes after all of its stores */
static BOOLEAN WopTakeOver(PWO_VIEW View, ULONG64 Value)
{
    if (HalIsProcessAlive(Value & ~WO_LOCK_SLEEPERS) ||
        !__atomic_compare_exchange_n(&View->World->Lock, &Value, View->Key | WO_LOCK_SLEEPERS, FALSE, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return FALSE;
    }
    WopFollowSize(View);
    WopRepairJournal(View);
    if (View->World->Intention != 0) {
        WopCompleteIntention(View);
    }
    return TRUE;
}

/* Announces the sleeper, then sleeps until the lock is released or the nap is over. TRUE: the nap is over, and the word
   is still, or again, *Value. */
static BOOLEAN WopNap(PWO_VIEW View, ULONG64 *Value, ULONGLONG Nap)
{
    PWO_WORLD World = View->World;
    HAL_DEADLINE Deadline = {HalInterruptTime, HalDispatch.QueryInterruptTime() + Nap};
    /* seq_cst, all: the read of LockWake comes before the one of Lock; WopUnlock changes them in the other order */
    ULONG Wake = __atomic_load_n(&World->LockWake, __ATOMIC_SEQ_CST);
    if ((*Value & WO_LOCK_SLEEPERS) == 0) {
        if (!__atomic_compare_exchange_n(&World->Lock, Value, *Value | WO_LOCK_SLEEPERS, FALSE, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED)) {
            return FALSE;
        }
        *Value |= WO_LOCK_SLEEPERS;
    } else if (__atomic_load_n(&World->Lock, __ATOMIC_SEQ_CST) != *Value) {
        return FALSE;
    }
    BOOLEAN Over;
    do { /* a signal ends the sleep, but not the nap: frequent signals must not prolong it forever */
        Over = !KiSleepShared(&World->LockWake, Wake, &Deadline);
        /* relaxed, both: hints, the caller reads the lock again */
    } while (!Over && __atomic_load_n(&World->LockWake, __ATOMIC_RELAXED) == Wake &&
             __atomic_load_n(&World->Lock, __ATOMIC_RELAXED) == *Value);
    return Over && __atomic_load_n(&World->Lock, __ATOMIC_RELAXED) == *Value;
}

typedef struct _WOP_NAPS { ULONG Count, Unlocks; } WOP_NAPS;

/* After a nap: the process that holds the lock is alive. Reports it once, if no thread has released the lock for a second. */
static VOID WopNoteLongHold(PWO_VIEW View, ULONG64 Value, WOP_NAPS *Naps)
{
    /* relaxed, both: only a report depends on them */
    ULONG Unlocks = __atomic_load_n(&View->World->LockWake, __ATOMIC_RELAXED);
    Naps->Count = Naps->Count != 0 && Unlocks == Naps->Unlocks ? Naps->Count + 1 : 1;
    Naps->Unlocks = Unlocks;
    if (Naps->Count == WO_MANY_NAPS && !__atomic_exchange_n(&View->ToldStuck, TRUE, __ATOMIC_RELAXED)) {
        HalPrint("interlock: process %u has kept the shared objects in %s locked for a second. All others wait for it: is it "
                 "stopped?\n", (ULONG)(Value & ((1ull << HAL_PROCESS_ID_BITS) - 1)), View->Path);
    }
}

/* A thread that has slept takes the lock with the mark: others may still sleep. FALSE: the world is damaged. */
static BOOLEAN WopLockSlow(PWO_VIEW View, PKTHREAD Thread)
{
    KI_PATIENCE Patience;
    ULONG64 Sleepers = 0;
    ULONGLONG Nap = WO_FIRST_NAP;
    WOP_NAPS Naps = {0};
    KiBeginPatience(&Patience, Thread, KiParkForSharedLock);
    while (!WoIsPoisoned(View)) {
        ULONG64 Value = __atomic_load_n(&View->World->Lock, __ATOMIC_RELAXED);
        if ((Value & ~WO_LOCK_SLEEPERS) == 0) {
            if (Value != 0) { /* no operation leaves this value: the world is corrupt */
                __atomic_compare_exchange_n(&View->World->Lock, &Value, 0, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            }
            if (WopTryLock(View, Sleepers)) {
                return TRUE;
            }
        } else if (!KiStayAwake(&Patience, Thread, KiParkForSharedLock)) {
            Sleepers = WO_LOCK_SLEEPERS;
            if (WopNap(View, &Value, Nap)) {
                if (WopTakeOver(View, Value)) {
                    return TRUE;
                }
                Nap = Nap < WO_LONGEST_NAP ? Nap * 2 : Nap;
                WopNoteLongHold(View, Value, &Naps);
            }
        }
    }
    return FALSE;
}

BOOLEAN WopLock(PWO_VIEW View)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    if (WopTryLock(View, 0) || WopLockSlow(View, Thread)) {
        if (!WoIsPoisoned(View)) {
            WopFollowSize(View);
            return TRUE;
        }
        WopUnlock(View);
    } else {
        KiExitDispatcher(Thread);
    }
    WopPoison(View, "another process has detected it"); /* and may have been killed before it had woken all sleepers */
    return FALSE;
}

VOID WopUnlock(PWO_VIEW View)
{
    PWO_WORLD World = View->World;
    /* release: pairs with the acquires above. seq_cst: comes before the change of LockWake */
    if ((__atomic_exchange_n(&World->Lock, 0, __ATOMIC_SEQ_CST) & WO_LOCK_SLEEPERS) != 0) {
        __atomic_fetch_add(&World->LockWake, 1, __ATOMIC_SEQ_CST);
        HalWakeShared(&World->LockWake, 1);
    }
    KiExitDispatcher(KiCurrentThread());
}

/*
 * Transactions. Theory in wo.h, 2 and 5.
 *
 * A process may be killed between any two instructions, and all that it stored before then stays. So the order of the
 * stores matters: the old value of a word is in the journal, and the journal's count includes it, before the word
 * changes; a claim is posted before it is made. The release stores below keep that order.
 *
 * The repairer may die as well, and the next one starts over. Restoring old values twice is harmless, since nothing but
 * the owner of the lock changes them. The state of a waiter is different: its own process changes it without the lock.
 * So claims are undone and carried out by compare-exchange from Claimed with the number of the wait.
 */

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
