/*
 * priority.c: priorities as NT keeps and shows them.
 *
 * A thread has a base priority and a current one. In the variable range (1 to 15) boosts raise the current priority, and
 * it decays to the base by one level per quantum; in the real-time range (16 to 31) it stays where it was set. No clock
 * interrupt lowers it here: a reader computes the current value. BoostTime is the start of the next quantum, or 0 when
 * nothing decays.
 *
 * 1. Priority, BasePriority, PriorityDecrement, HostPriority, LentPriority, BasePriorityIncrement, Saturation,
 *    DisableBoost and BoostTime change under ThreadLock only. The first five may be read without it: they show the state
 *    of the last change.
 * 2. BoostTime is not 0 only if Priority is above BasePriority and below 16. PriorityDecrement is then the size of the
 *    boost, otherwise 0.
 * 3. A priority that was set does not decay; once a boost has exceeded it, the boost decays to the base.
 * 4. A wakeup leaves its boost in PendingBoost, the tick time above the increment, without a lock: the host's scheduler
 *    does not see boosts, and most threads are woken far more often than their priority is read. KiUpdatePriority,
 *    under ThreadLock, makes it part of Priority as of its tick. A new pending boost may overwrite one that is not
 *    higher: at the later tick the older one has decayed to the same level or below.
 *
 * AutoBoost of mutants: a thread that blocks for a mutant lends its priority to the owner, up to 15, so that the owner
 * reaches its release; the next owner inherits that on behalf of the remaining waiters. Both happen where a thread
 * blocks or is woken, and only if priorities differ. A lent priority does not end with the release: it decays like any
 * other boost, and LentPriority is 0 again when BoostTime is.
 *
 * The host's scheduler gets priorities that were set, never boosts, and only where the process may set them.
 */
#include "wait.h"

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

/* With ThreadLock held, from here on. relaxed, here and below: the lock orders writers; readers without it accept a
   stale value. */
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

static VOID KiDecayPriority(PKTHREAD Thread, ULONGLONG Now)
{
    /* A boost may carry an earlier tick than the one before: it was published late. */
    if (Thread->BoostTime == 0 || Now < Thread->BoostTime + KI_QUANTUM) {
        return;
    }
    ULONGLONG Quanta = (Now - Thread->BoostTime) / KI_QUANTUM;
    LONG Priority = Thread->Priority - (LONG)(Quanta < HIGH_PRIORITY ? Quanta : HIGH_PRIORITY);
    if (Priority > Thread->BasePriority) {
        KiStoreBoost(Thread, Thread->PriorityDecrement, Thread->BoostTime + Quanta * KI_QUANTUM);
    } else {
        Priority = Thread->BasePriority;
        KiStoreBoost(Thread, 0, 0);
    }
    KiStorePriority(Thread, Priority);
}

static VOID KiRaisePriority(PKTHREAD Thread, KPRIORITY Priority, ULONGLONG Now)
{
    if (Priority > Thread->Priority) {
        KiStorePriority(Thread, Priority);
        KiStoreBoost(Thread, Priority - Thread->BasePriority, Now != 0 ? Now : 1);
        KiNoteChange(Thread, KI_WAIT_PRIORITY);
    }
}

static VOID KiApplyBoost(PKTHREAD Thread, KPRIORITY Increment, ULONGLONG Now)
{
    KiDecayPriority(Thread, Now);
    if (!KiIsRealTime(Thread->Priority) && !Thread->DisableBoost) {
        KiRaisePriority(Thread, KiBoostTarget(Thread->BasePriority, Increment), Now);
    }
}

/* Priority becomes what it is at Now. */
static VOID KiUpdatePriority(PKTHREAD Thread, ULONGLONG Now)
{
    /* relaxed: the word is self-contained */
    ULONG64 Pending = __atomic_load_n(&Thread->PendingBoost, __ATOMIC_RELAXED);
    if (Pending != 0) {
        Pending = __atomic_exchange_n(&Thread->PendingBoost, 0, __ATOMIC_RELAXED);
        KiApplyBoost(Thread, KI_PENDING_INCREMENT(Pending), KI_PENDING_TIME(Pending));
    }
    KiDecayPriority(Thread, Now);
}

/* Boosts. */

VOID KiBoostThread(PKTHREAD Thread, KPRIORITY Increment)
{
    if (Increment <= 0) {
        return;
    }
    ULONGLONG Now = HalDispatch.QueryTickTime();
    KiAcquireLock(&Thread->ThreadLock);
    KiUpdatePriority(Thread, Now);
    KiApplyBoost(Thread, Increment, Now);
    KiReleaseLock(&Thread->ThreadLock);
}

VOID KiBoostWokenThread(PKTHREAD Thread, KPRIORITY Increment)
{
    /* relaxed, both: invariant 4. Only the waker stores here, and readers clear the word. */
    if (KI_PENDING_INCREMENT(__atomic_load_n(&Thread->PendingBoost, __ATOMIC_RELAXED)) > Increment) {
        KiBoostThread(Thread, Increment);
    } else {
        Increment = Increment < HIGH_PRIORITY ? Increment : HIGH_PRIORITY;
        __atomic_store_n(&Thread->PendingBoost, KI_PENDING_BOOST(HalDispatch.QueryTickTime(), Increment),
                         __ATOMIC_RELAXED);
    }
}

static VOID KiBoostOwner(PKTHREAD Owner, KPRIORITY Priority)
{
    PKTHREAD Current = KiLockPriority(Owner);
    ULONGLONG Now = HalDispatch.QueryTickTime();
    Priority = KiClampPriority(Priority, 1, LOW_REALTIME_PRIORITY - 1);
    KiUpdatePriority(Owner, Now);
    if (Owner->Priority < Priority && !Owner->DisableBoost) {
        KiRaisePriority(Owner, Priority, Now);
        __atomic_store_n(&Owner->LentPriority, (SCHAR)Priority, __ATOMIC_RELAXED);
    }
    KiUnlockPriority(Owner, Current);
}

KPRIORITY KiSettledPriority(PKTHREAD Thread)
{
    /* relaxed: advisory only */
    KPRIORITY Priority = __atomic_load_n(&Thread->Priority, __ATOMIC_RELAXED);
    BOOLEAN Boosted = __atomic_load_n(&Thread->PriorityDecrement, __ATOMIC_RELAXED) != 0;
    return Boosted || KiBoostedPriority(Thread) > Priority ? __atomic_load_n(&Thread->BasePriority, __ATOMIC_RELAXED)
                                                           : Priority;
}

/* Lends the thread's own priority, or what it was lent itself; not the boost of a wait that has just ended. */
VOID KiLendPriority(PKTHREAD Thread, PKTHREAD Owner)
{
    KPRIORITY Priority = KiSettledPriority(Thread);
    KPRIORITY Lent = __atomic_load_n(&Thread->LentPriority, __ATOMIC_RELAXED); /* relaxed: advisory only */
    Priority = Priority > Lent ? Priority : Lent;
    /* relaxed: a hint; for an owner whose boost has decayed unnoticed, KiBoostOwner decides */
    if (Owner != NULL && Priority > __atomic_load_n(&Owner->Priority, __ATOMIC_RELAXED)) {
        KiBoostOwner(Owner, Priority);
    }
}

VOID KiPassOnLentPriority(PKTHREAD Thread, PKTHREAD NewOwner)
{
    /* relaxed: a priority lent at this very moment may be missed */
    KPRIORITY Lent = __atomic_load_n(&Thread->LentPriority, __ATOMIC_RELAXED);
    if (NewOwner == NULL || Lent == 0) {
        return;
    }
    KPRIORITY Left = KeQueryPriorityThread(Thread); /* the part that has not decayed */
    KiBoostOwner(NewOwner, Lent < Left ? Lent : Left);
}

/* Setting and querying. */

/*
 * After HostPriority was stored. Only one thread at a time calls the host about Thread, and each reads HostPriority when
 * its turn has come. So the call after the last store, at the latest that of the last setter, passes on the last value.
 */
static VOID KiTellHost(PKTHREAD Thread)
{
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(Thread, &ThreadId)) {
        /* relaxed: the hold orders it after the stores of earlier holders, and our own store is ours */
        HalSetThreadPriority(ThreadId, __atomic_load_n(&Thread->HostPriority, __ATOMIC_RELAXED));
        KiReleaseHostThread(Thread);
    }
    KiExitDispatcher(Current);
}

/* With ThreadLock held: a priority that was set replaces every boost. */
static VOID KiSetPriority(PKTHREAD Thread, KPRIORITY Priority)
{
    __atomic_store_n(&Thread->PendingBoost, 0, __ATOMIC_RELAXED);
    KiStoreBoost(Thread, 0, 0);
    __atomic_store_n(&Thread->HostPriority, (SCHAR)Priority, __ATOMIC_RELAXED);
    if (Priority != Thread->Priority) {
        KiStorePriority(Thread, Priority);
        KiNoteChange(Thread, KI_WAIT_PRIORITY);
    }
}

KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority)
{
    if (KiVerifierEnabled && (Priority <= LOW_PRIORITY || Priority > HIGH_PRIORITY)) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x2000, (ULONG_PTR)Thread, (ULONG_PTR)Priority, 0);
    }
    PKTHREAD Current = KiLockPriority(Thread);
    KiUpdatePriority(Thread, HalDispatch.QueryTickTime());
    KPRIORITY Previous = Thread->Priority;
    KiSetPriority(Thread, KiClampPriority(Priority, LOW_PRIORITY + 1, HIGH_PRIORITY));
    KiUnlockPriority(Thread, Current);
    KiTellHost(Thread);
    return Previous;
}

/* The base stays in the range, variable or real-time, of the process. */
static KPRIORITY KiBaseForIncrement(KPRIORITY ProcessBase, LONG Increment)
{
    KPRIORITY Lowest = KiIsRealTime(ProcessBase) ? LOW_REALTIME_PRIORITY : LOW_PRIORITY + 1;
    KPRIORITY Highest = KiIsRealTime(ProcessBase) ? HIGH_PRIORITY : LOW_REALTIME_PRIORITY - 1;
    return KiClampPriority(ProcessBase + KiClampPriority(Increment, -HIGH_PRIORITY, HIGH_PRIORITY), Lowest, Highest);
}

LONG KeSetBasePriorityThread(PRKTHREAD Thread, LONG Increment)
{
    PKTHREAD Current = KiLockPriority(Thread);
    KPRIORITY ProcessBase = KiReadProcessBase(Thread->Process);
    KPRIORITY Base = KiBaseForIncrement(ProcessBase, Increment);
    LONG Previous = Thread->BasePriorityIncrement;

    Thread->Saturation = Increment >= KI_SATURATION || Increment <= -KI_SATURATION;
    Thread->BasePriorityIncrement = (SCHAR)KiClampPriority(
        Thread->Saturation ? Increment : Base - ProcessBase, -KI_SATURATION, KI_SATURATION);
    __atomic_store_n(&Thread->BasePriority, (SCHAR)Base, __ATOMIC_RELAXED);
    KiSetPriority(Thread, Base);
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

KPRIORITY KeQueryPriorityThread(PRKTHREAD Thread)
{
    PKTHREAD Current = KiLockPriority(Thread);
    KiUpdatePriority(Thread, HalDispatch.QueryTickTime());
    KPRIORITY Priority = Thread->Priority;
    KiUnlockPriority(Thread, Current);
    return Priority;
}

BOOLEAN KiQueryDisableBoostThread(PKTHREAD Thread)
{
    PKTHREAD Current = KiLockPriority(Thread);
    BOOLEAN Disable = Thread->DisableBoost;
    KiUnlockPriority(Thread, Current);
    return Disable;
}

BOOLEAN KeSetDisableBoostThread(PKTHREAD Thread, BOOLEAN Disable)
{
    PKTHREAD Current = KiLockPriority(Thread);
    BOOLEAN Previous = Thread->DisableBoost;
    KiUpdatePriority(Thread, HalDispatch.QueryTickTime()); /* a pending boost is older */
    Thread->DisableBoost = Disable != FALSE;
    KiUnlockPriority(Thread, Current);
    return Previous;
}
