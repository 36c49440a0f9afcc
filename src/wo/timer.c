/*
 * timer.c: shared timers. No thread drives them: a timer is its due time, and becomes signaled at the first check after
 * that time (WopExpireIfDue).
 *
 * 1. Every operation that reads the state of a timer checks first.
 * 2. A thread that waits for a timer sleeps at most until the timer is due, then checks (WoNextDue, WoExpireTimers). So
 *    a timer with a waiter expires in time, and its waits are granted in order, no matter which waiter wakes up first.
 * 3. A thread that sets or cancels a timer wakes its waiters, which read the new time. A WaitAll that begins to watch a
 *    timer is woken for the same reason (grant.c).
 *
 * Times are the host's, the same in all processes. An absolute time is compared with the system clock at each check, so
 * it follows clock steps. A periodic timer that was not checked for several periods expires once, and is due next at
 * the first multiple of its period that is in the future.
 */
#include "waiter.h"

#define WO_UNITS_PER_MILLISECOND 10000ull

BOOLEAN WopIsDue(PWO_OBJECT Timer)
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

/* For the waiters of a timer that was set or canceled. */
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

static NTSTATUS WopChangeTimer(PWO_VIEW View, WO_INDEX Timer, const WO_TIMER_SETTING *Setting, PULONG64 Arming,
                               PBOOLEAN Previous)
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

NTSTATUS WoSetTimer(PWO_VIEW View, WO_INDEX Timer, const WO_TIMER_SETTING *Setting, PULONG64 Arming, PBOOLEAN Previous)
{
    return WopChangeTimer(View, Timer, Setting, Arming, Previous);
}

NTSTATUS WoCancelTimer(PWO_VIEW View, WO_INDEX Timer, PBOOLEAN Previous)
{
    ULONG64 Arming;
    return WopChangeTimer(View, Timer, NULL, &Arming, Previous);
}

BOOLEAN WoIsArmed(PWO_VIEW View, WO_INDEX Timer, ULONG64 Arming)
{
    PWO_OBJECT Object = WopObject(View, Timer);
    /* relaxed: the caller knows its arming from WoSetTimer; a later one may happen at any time */
    return Object != NULL && __atomic_load_n(&Object->Arming, __ATOMIC_RELAXED) == Arming;
}

/* The waiter's side. */

/* The remaining time of a timer, and its clock. Times of two clocks can be compared only by the remaining time. */
static BOOLEAN WopRemaining(PWO_OBJECT Timer, PHAL_DEADLINE Due, ULONG64 *Remaining)
{
    *Due = (HAL_DEADLINE){Timer->Absolute ? HalSystemTime : HalInterruptTime, Timer->DueTime};
    if (Timer->DueTime == 0) {
        return FALSE;
    }
    ULONG64 Now = Timer->Absolute ? HalDispatch.QuerySystemTime() : HalDispatch.QueryInterruptTime();
    *Remaining = Due->Time > Now ? Due->Time - Now : 0;
    return TRUE;
}

/* With the lock, so that the time and its clock belong together. */
BOOLEAN WoNextDue(PWO_VIEW View, WO_INDEX Self, PHAL_DEADLINE Due)
{
    PWO_WAITER Waiter = WopRecordInline(View, Self, WoWaiterRecord);
    ULONG64 Least = MAXULONGLONG;
    if (Waiter == NULL || Waiter->Timers == 0 || !WopLock(View)) {
        return FALSE;
    }
    for (ULONG Number = 0; Number < Waiter->Count && Number < WO_BLOCKS; Number += 1) {
        PWO_OBJECT Object = WopObject(View, Waiter->Block[Number].Object);
        HAL_DEADLINE Found;
        ULONG64 Remaining;
        if (WopIsTimer(Object) && WopRemaining(Object, &Found, &Remaining) && Remaining < Least) {
            Least = Remaining;
            *Due = Found;
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
