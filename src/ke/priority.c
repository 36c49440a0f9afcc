/*
 * priority.c: priorities as NT keeps and shows them.
 *
 * A thread has a base priority and a current one. In the variable range (1 to 15) the current one is raised by boosts
 * and sinks back to the base by one level for every quantum; in the real-time range (16 to 31) it stays where it was
 * set. There is no clock interrupt here that could lower it, so the level that the thread has sunk to is worked out
 * when somebody asks: BoostTime is the moment from which the next quantum counts, 0 when nothing is to decay.
 *
 * 1. Priority, BasePriority, PriorityDecrement, HostPriority, LentPriority, BasePriorityIncrement, Saturation,
 *    DisableBoost and BoostTime change under ThreadLock only. The first five may be read without it: they show the state
 *    of the last change.
 * 2. BoostTime is not 0 only if Priority is above BasePriority and below 16. PriorityDecrement is then how far above it
 *    was boosted, otherwise 0.
 * 3. A priority that was set does not decay; once a boost has gone above it, that decays to the base.
 *
 * AutoBoost of mutants: a thread that blocks for one lends its priority to the owner, up to 15, so that the owner gets
 * to its release; and whoever is given the mutant inherits that, for the sake of those that still wait. Both happen
 * where a thread blocks or is woken, and only if priorities differ. What was lent does not end with the release, it
 * decays like every other boost, and LentPriority is 0 again when BoostTime is.
 *
 * The host's scheduler hears of priorities that were set, never of boosts, and only where the process may.
 */
#include "ki.h"

#define KI_QUANTUM (2 * KI_TICK)
#define KI_SATURATION ((HIGH_PRIORITY + 1) / 2)

static PKTHREAD KiLockPriority(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->ThreadLock);
    return Current;
}

static VOID KiUnlockPriority(PKTHREAD Thread, PKTHREAD Current)
{
    KiReleaseLock(&Thread->ThreadLock);
    KiExitDispatcher(Current);
}

static BOOLEAN KiIsRealTime(KPRIORITY Priority)
{
    return Priority >= LOW_REALTIME_PRIORITY;
}

static KPRIORITY KiClampPriority(LONG Priority, KPRIORITY Lowest, KPRIORITY Highest)
{
    return Priority < Lowest ? Lowest : Priority > Highest ? Highest : Priority;
}

/* relaxed, here and below: the lock orders writers; readers without it take what they get */
static VOID KiStorePriority(PKTHREAD Thread, KPRIORITY Priority)
{
    __atomic_store_n(&Thread->Priority, (SCHAR)Priority, __ATOMIC_RELAXED);
}

static VOID KiStoreBoost(PKTHREAD Thread, KPRIORITY Decrement, ULONGLONG Time)
{
    __atomic_store_n(&Thread->PriorityDecrement, (SCHAR)Decrement, __ATOMIC_RELAXED);
    Thread->BoostTime = Time;
    if (Time == 0) {
        __atomic_store_n(&Thread->LentPriority, 0, __ATOMIC_RELAXED);
    }
}

static VOID KiStoreHostPriority(PKTHREAD Thread, KPRIORITY Priority)
{
    __atomic_store_n(&Thread->HostPriority, (SCHAR)Priority, __ATOMIC_RELAXED);
}

static VOID KiDecayPriority(PKTHREAD Thread)
{
    ULONGLONG Quanta;
    LONG Priority;
    if (Thread->BoostTime == 0) {
        return;
    }
    Quanta = (HalDispatch.QueryTickTime() - Thread->BoostTime) / KI_QUANTUM;
    if (Quanta == 0) {
        return;
    }
    Priority = Thread->Priority - (LONG)(Quanta < HIGH_PRIORITY ? Quanta : HIGH_PRIORITY);
    if (Priority > Thread->BasePriority) {
        KiStoreBoost(Thread, Thread->PriorityDecrement, Thread->BoostTime + Quanta * KI_QUANTUM);
    } else {
        Priority = Thread->BasePriority;
        KiStoreBoost(Thread, 0, 0);
    }
    KiStorePriority(Thread, Priority);
}

static VOID KiRaisePriority(PKTHREAD Thread, KPRIORITY Priority)
{
    ULONGLONG Now;
    if (Priority <= Thread->Priority) {
        return;
    }
    Now = HalDispatch.QueryTickTime();
    KiStorePriority(Thread, Priority);
    KiStoreBoost(Thread, Priority - Thread->BasePriority, Now != 0 ? Now : 1);
    KiNoteChange(Thread, KI_WAIT_PRIORITY);
}

VOID KiBoostThread(PKTHREAD Thread, KPRIORITY Increment)
{
    if (Increment <= 0) {
        return;
    }
    KiAcquireLock(&Thread->ThreadLock);
    if (!KiIsRealTime(Thread->Priority) && !Thread->DisableBoost) {
        KiDecayPriority(Thread);
        KiRaisePriority(Thread, KiClampPriority(Thread->BasePriority + Increment, 1, LOW_REALTIME_PRIORITY - 1));
    }
    KiReleaseLock(&Thread->ThreadLock);
}

static VOID KiBoostOwner(PKTHREAD Owner, KPRIORITY Priority)
{
    PKTHREAD Current = KiLockPriority(Owner);
    Priority = KiClampPriority(Priority, 1, LOW_REALTIME_PRIORITY - 1);
    KiDecayPriority(Owner);
    if (Owner->Priority < Priority && !Owner->DisableBoost) {
        KiRaisePriority(Owner, Priority);
        __atomic_store_n(&Owner->LentPriority, (SCHAR)Priority, __ATOMIC_RELAXED);
    }
    KiUnlockPriority(Owner, Current);
}

/* What the thread has of its own or was itself lent; not what a wait that has just ended left it for a moment. */
static KPRIORITY KiLendablePriority(PKTHREAD Thread)
{
    KPRIORITY Settled = KiSettledPriority(Thread);
    KPRIORITY Lent = __atomic_load_n(&Thread->LentPriority, __ATOMIC_RELAXED); /* relaxed: advisory only */
    return Settled > Lent ? Settled : Lent;
}

VOID KiLendPriority(PKTHREAD Thread, PKTHREAD Owner)
{
    KPRIORITY Priority = KiLendablePriority(Thread);
    /* relaxed: a hint; an owner whose boost has decayed since it was last looked at is only looked at more closely */
    if (Owner != NULL && Priority > __atomic_load_n(&Owner->Priority, __ATOMIC_RELAXED)) {
        KiBoostOwner(Owner, Priority);
    }
}

VOID KiPassOnLentPriority(PKTHREAD Thread, PKTHREAD NewOwner)
{
    /* relaxed: what is lent at this very moment may be missed */
    KPRIORITY Lent = __atomic_load_n(&Thread->LentPriority, __ATOMIC_RELAXED);
    if (NewOwner == NULL || Lent == 0) {
        return;
    }
    KPRIORITY Left = KeQueryPriorityThread(Thread); /* what of it has not decayed */
    KiBoostOwner(NewOwner, Lent < Left ? Lent : Left);
}

/*
 * After HostPriority was stored. Only one thread at a time calls the host about Thread, and each reads HostPriority when
 * its turn has come. So the call after the last store, at the latest that of the last setter, says what that setter said.
 */
static VOID KiTellHost(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(Thread, &ThreadId)) {
        /* relaxed: holding orders it after the stores of those that have held it before, and our own is ours */
        HalSetThreadPriority(ThreadId, __atomic_load_n(&Thread->HostPriority, __ATOMIC_RELAXED));
        KiReleaseHostThread(Thread);
    }
    KiExitDispatcher(Current);
}

static KPRIORITY KiCheckPriority(PKTHREAD Thread, KPRIORITY Priority)
{
    if (KiVerifierEnabled && (Priority <= LOW_PRIORITY || Priority > HIGH_PRIORITY)) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x2000, (ULONG_PTR)Thread, (ULONG_PTR)Priority,
                     0);
    }
    return KiClampPriority(Priority, LOW_PRIORITY + 1, HIGH_PRIORITY);
}

KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority)
{
    PKTHREAD Current;
    KPRIORITY Previous;
    Priority = KiCheckPriority(Thread, Priority);
    Current = KiLockPriority(Thread);
    KiDecayPriority(Thread);
    Previous = Thread->Priority;
    KiStoreBoost(Thread, 0, 0);
    KiStoreHostPriority(Thread, Priority);
    if (Priority != Previous) {
        KiStorePriority(Thread, Priority);
        KiNoteChange(Thread, KI_WAIT_PRIORITY);
    }
    KiUnlockPriority(Thread, Current);
    KiTellHost(Thread);
    return Previous;
}

/* The base stays in the range, variable or real-time, that the process is in. */
static KPRIORITY KiBaseForIncrement(KPRIORITY ProcessBase, LONG Increment)
{
    KPRIORITY Lowest = KiIsRealTime(ProcessBase) ? LOW_REALTIME_PRIORITY : LOW_PRIORITY + 1;
    KPRIORITY Highest = KiIsRealTime(ProcessBase) ? HIGH_PRIORITY : LOW_REALTIME_PRIORITY - 1;
    return KiClampPriority(ProcessBase + KiClampPriority(Increment, -HIGH_PRIORITY, HIGH_PRIORITY), Lowest, Highest);
}

LONG KeSetBasePriorityThread(PRKTHREAD Thread, LONG Increment)
{
    PKTHREAD Current = KiLockPriority(Thread);
    KPRIORITY ProcessBase = Thread->Process->BasePriority;
    KPRIORITY Base = KiBaseForIncrement(ProcessBase, Increment);
    LONG Previous = Thread->BasePriorityIncrement;

    Thread->Saturation = Increment >= KI_SATURATION || Increment <= -KI_SATURATION;
    Thread->BasePriorityIncrement = (SCHAR)KiClampPriority(
        Thread->Saturation ? Increment : Base - ProcessBase, -KI_SATURATION, KI_SATURATION);
    KiStoreBoost(Thread, 0, 0);
    KiStoreHostPriority(Thread, Base);
    __atomic_store_n(&Thread->BasePriority, (SCHAR)Base, __ATOMIC_RELAXED);
    if (Base != Thread->Priority) {
        KiStorePriority(Thread, Base);
        KiNoteChange(Thread, KI_WAIT_PRIORITY);
    }
    KiUnlockPriority(Thread, Current);
    KiTellHost(Thread);
    return Previous;
}

LONG KiQueryBasePriorityThread(PKTHREAD Thread)
{
    PKTHREAD Current = KiLockPriority(Thread);
    LONG Increment = Thread->BasePriorityIncrement;
    KiUnlockPriority(Thread, Current);
    return Increment;
}

BOOLEAN KiQueryDisableBoostThread(PKTHREAD Thread)
{
    PKTHREAD Current = KiLockPriority(Thread);
    BOOLEAN Disable = Thread->DisableBoost;
    KiUnlockPriority(Thread, Current);
    return Disable;
}

KPRIORITY KeQueryPriorityThread(PRKTHREAD Thread)
{
    PKTHREAD Current = KiLockPriority(Thread);
    KPRIORITY Priority;
    KiDecayPriority(Thread);
    Priority = Thread->Priority;
    KiUnlockPriority(Thread, Current);
    return Priority;
}

KPRIORITY KiSettledPriority(PKTHREAD Thread)
{
    /* relaxed: advisory only */
    BOOLEAN Boosted = __atomic_load_n(&Thread->PriorityDecrement, __ATOMIC_RELAXED) != 0;
    return Boosted ? __atomic_load_n(&Thread->BasePriority, __ATOMIC_RELAXED)
                   : __atomic_load_n(&Thread->Priority, __ATOMIC_RELAXED);
}

BOOLEAN KeSetDisableBoostThread(PKTHREAD Thread, BOOLEAN Disable)
{
    PKTHREAD Current = KiLockPriority(Thread);
    BOOLEAN Previous = Thread->DisableBoost;
    Thread->DisableBoost = Disable != FALSE;
    KiUnlockPriority(Thread, Current);
    return Previous;
}
