/*
 * clock.c: the timer tables, and the thread that expires what is in them.
 *
 * The clock has one thread, made when the first timer is set. It sleeps until the earliest time of all tables. Services
 * that can fail make sure of it first (KiEnsureClock). If a timer is set without that and the host refuses the thread,
 * KiClockMissing is set, and those who wait stand in: they sleep for a tick at most, ask for the thread again and,
 * while it is refused, expire what is due (KiPollClock). So does every KeSetTimer. A timer may then be late by a tick of
 * NT's clock. A thread leaves its wait for that and begins it again, as for an APC.
 *
 * Whoever sets a timer must wake the clock if and only if the new timer comes before what the clock sleeps for.
 * 1. The clock takes KiClockWake back to 0, then stores KI_TIME_NEVER in KiClockDue, then looks at each table under its
 *    lock, then stores in KiClockDue what it will sleep for, then sleeps unless KiClockWake is set.
 * 2. A setter has put its timer into the table, under the lock, then reads KiClockDue, and if its time is earlier sets
 *    KiClockWake.
 * 3. So either the clock's look at that table comes after the timer, or the setter reads a KiClockDue that was stored
 *    before that look or later: KI_TIME_NEVER, or the time the clock sleeps for, which is then compared rightly.
 * 4. KiClockWake is exchanged on both sides: a clock that takes back a setter's 1 looks at the tables after that
 *    setter's timer was in. While it is 1, further setters make no system call.
 */
#include "timer.h"

#include "debugdata.h"
#include "irql.h"
#include "wait.h"

#define KI_TURN_BUDGET 256     /* timers that are moved under one hold of a table's lock */
#define KI_EXPIRY_GROUP 16     /* timers that are taken out under one hold of a table's lock */
#define KI_EXPIRY_LOOKS 64     /* due timers that are looked at for that: there may be a million */
#define KI_EXPIRY_BATCH 256    /* groups of one wheel that expire before the clock looks at the other wheels */

volatile ULONG64 KiClockDue[2] = {KI_TIME_NEVER, KI_TIME_NEVER};
static volatile ULONG KiClockWake;
static KI_OWN_THREAD KiClockThread;
volatile ULONG KiClockMissing;

/* Processor 0's table is always there; any timer may go into it when there is no memory for another. */
static KTIMER_TABLE KiFirstTimerTable;
static PKTIMER_TABLE KiTimerTables = &KiFirstTimerTable;
KD_REGISTER_ROOT(KiTimerTables);

static VOID KiPublishTable(PKTIMER_TABLE Table)
{
    PKTIMER_TABLE First = __atomic_load_n(&KiTimerTables, __ATOMIC_RELAXED);
    do {
        Table->Next = First;
        /* release: pairs with the acquire load in KiFirstTable */
    } while (!__atomic_compare_exchange_n(&KiTimerTables, &First, Table, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static PKTIMER_TABLE KiFirstTable(VOID)
{
    return __atomic_load_n(&KiTimerTables, __ATOMIC_ACQUIRE);
}

static DECLSPEC_NOINLINE PKTIMER_TABLE KiCreateTimerTable(PKPRCB Prcb)
{
    PVOID Existing = NULL;
    if (Prcb->Number == 0) {
        /* release: as the compare-exchange below */
        __atomic_store_n(&Prcb->TimerTable, &KiFirstTimerTable, __ATOMIC_RELEASE);
        return &KiFirstTimerTable;
    }
    PKTIMER_TABLE Table = HalAllocate(sizeof(*Table), KI_CACHE_LINE);
    if (Table == NULL) {
        return &KiFirstTimerTable;
    }
    Table->Processor = (USHORT)Prcb->Number;
    /* acq_rel: the new table is initialised before it is seen, or the other's was before we see it */
    if (!__atomic_compare_exchange_n(&Prcb->TimerTable, &Existing, Table, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        HalFree(Table);
        return Existing;
    }
    KiPublishTable(Table);
    return Table;
}

PKTIMER_TABLE KiSelectTimerTable(PKTHREAD Thread)
{
    PKPRCB Prcb = KiCurrentPrcb(Thread);
    /* acquire: pairs with the compare-exchange in KiCreateTimerTable */
    PKTIMER_TABLE Table = __atomic_load_n(&Prcb->TimerTable, __ATOMIC_ACQUIRE);
    return Table != NULL ? Table : KiCreateTimerTable(Prcb);
}

PKTIMER_TABLE KiTimerTableOf(PKTIMER Timer)
{
    ULONG Number = Timer->Processor & KI_TIMER_NUMBER_MASK;
    /* acquire: as in KiSelectTimerTable */
    return Number == 0 ? &KiFirstTimerTable : __atomic_load_n(&KiProcessorBlock[Number]->TimerTable, __ATOMIC_ACQUIRE);
}

static ULONG64 KiWheelClock(ULONG Index)
{
    return Index == 0 ? HalDispatch.QueryInterruptTime() : HalDispatch.QuerySystemTime();
}

typedef enum _KI_EXPIRY {
    KiNothingDue,
    KiTimerExpired,
    KiWheelTurning,      /* there is more to move before it is known what is due */
    KiTimersBusy,        /* what is due is in the hands of others who set, cancel or wait */
    KiNeedsDispatchLevel /* what is due has a DPC */
} KI_EXPIRY;

typedef struct _KI_EXPIRY_GROUP_ENTRY {
    PKTIMER Timer;
    ULONG64 Word; /* the locked header */
} KI_EXPIRY_GROUP_ENTRY, *PKI_EXPIRY_GROUP_ENTRY;

/* Whether expiring it may take locks of other objects (4 in timer.h). */
static BOOLEAN KiIsLastOfGroup(PKTIMER Timer, ULONG64 Word)
{
    return (Word & KI_WAITERS) != 0 || (Timer->Processor & KI_TIMER_CALLS) != 0;
}

/* The first member and the last one that queueing writes: a KDPC need not begin with a cache line. */
FORCEINLINE VOID KiPrefetchDpc(PKDPC Dpc)
{
    if (Dpc != NULL) {
        __builtin_prefetch(Dpc, 1);
        __builtin_prefetch((PVOID)&Dpc->DpcData, 1);
    }
}

/* Of the due timers that come first: locks and takes out those that can be had at the current level. */
static ULONG KiTakeDueTimers(PKTHREAD Thread, PKI_WHEEL Wheel, PKI_EXPIRY_GROUP_ENTRY Group, KI_EXPIRY *WhyNot)
{
    PKTIMER Timer = KiNextDueTimer(Wheel, NULL);
    ULONG Count = 0;
    *WhyNot = KiNothingDue;
    for (ULONG Looks = 0; Timer != NULL && Looks < KI_EXPIRY_LOOKS && Count < KI_EXPIRY_GROUP; Looks += 1) {
        PKTIMER Next = KiNextDueTimer(Wheel, Timer);
        ULONG64 Word;
        if (Thread->Irql < DISPATCH_LEVEL && (Timer->Processor & KI_TIMER_HAS_DPC)) {
            *WhyNot = KiNeedsDispatchLevel;
        } else if (KiTryLockObject(&Timer->Header, &Word)) {
            KiTakeOutTimer(Wheel, Timer);
            KiPrefetchDpc(Timer->Dpc);
            Group[Count++] = (KI_EXPIRY_GROUP_ENTRY){Timer, Word};
            if (KiIsLastOfGroup(Timer, Word)) {
                break;
            }
        } else if (*WhyNot == KiNothingDue) {
            *WhyNot = KiTimersBusy;
        }
        Timer = Next;
    }
    return Count;
}

/* *Next: when there is something to do again; 0: now. */
static KI_EXPIRY KiExpireGroup(PKTHREAD Thread, PKTIMER_TABLE Table, ULONG Index, ULONG64 *Next)
{
    PKI_WHEEL Wheel = &Table->Wheel[Index];
    KI_EXPIRY_GROUP_ENTRY Group[KI_EXPIRY_GROUP];
    BOOLEAN Turned = TRUE;
    ULONG64 SystemTime = 0;
    KI_EXPIRY Expiry;

    KiAcquireLock(&Table->Lock);
    if (KiNextDueTimer(Wheel, NULL) == NULL) {
        Turned = KiTurnWheel(Wheel, KiWheelClock(Index), KI_TURN_BUDGET);
    }
    ULONG Count = KiTakeDueTimers(Thread, Wheel, Group, &Expiry);
    *Next = KiNextWheelTime(Wheel);
    KiReleaseLock(&Table->Lock);

    if (Count == 0) {
        return Expiry == KiNothingDue && !Turned ? KiWheelTurning : Expiry;
    }
    for (ULONG Number = 0; Number < Count; Number += 1) {
        BOOLEAN Expired = KiExpireTimer(Table, Group[Number].Timer, Group[Number].Word, &SystemTime);
        Expiry = Expired ? KiTimerExpired : KiTimersBusy;
    }
    return Expiry;
}

static ULONG64 KiExpireWheel(PKTHREAD Thread, PKTIMER_TABLE Table, ULONG Index)
{
    KIRQL OldIrql = Thread->Irql;
    KI_EXPIRY Expiry = KiWheelTurning;
    ULONG64 Next = 0;
    ULONG Round = 0;

    for (ULONG Count = 0; Expiry != KiNothingDue && Count < KI_EXPIRY_BATCH; Count += 1) {
        KiEnterDispatcher(Thread);
        Expiry = KiExpireGroup(Thread, Table, Index, &Next);
        KiExitDispatcher(Thread);
        if (Expiry == KiTimersBusy) {
            HalLongSpin(Round);
            Round += 1;
        } else if (Expiry == KiNeedsDispatchLevel) {
            KiRaiseIrql(Thread, DISPATCH_LEVEL);
        }
    }
    if (Thread->Irql != OldIrql) {
        KiLowerIrql(Thread, OldIrql);
    }
    return Expiry == KiNothingDue ? Next : 0;
}

/* A periodic timer may go from the wheel of absolute timers to the other one, which therefore comes second. */
static VOID KiExpireTimers(PKTHREAD Thread, ULONG64 Next[2])
{
    Next[0] = KI_TIME_NEVER;
    Next[1] = KI_TIME_NEVER;
    for (PKTIMER_TABLE Table = KiFirstTable(); Table != NULL; Table = Table->Next) {
        for (ULONG Index = 2; Index-- > 0;) {
            ULONG64 Time = KiExpireWheel(Thread, Table, Index);
            Next[Index] = Time < Next[Index] ? Time : Next[Index];
        }
    }
}

static VOID KiStoreClockDue(ULONG64 InterruptTime, ULONG64 SystemTime)
{
    /* relaxed: see 3 above */
    __atomic_store_n(&KiClockDue[0], InterruptTime, __ATOMIC_RELAXED);
    __atomic_store_n(&KiClockDue[1], SystemTime, __ATOMIC_RELAXED);
}

static VOID KiRunClock(PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Next[2];

    UNREFERENCED_PARAMETER(Context);
    Thread->IsIdleThread = TRUE;
    for (;;) {
        /* acq_rel: see 4 above */
        __atomic_exchange_n(&KiClockWake, 0, __ATOMIC_ACQ_REL);
        KiStoreClockDue(KI_TIME_NEVER, KI_TIME_NEVER);
        KiExpireTimers(Thread, Next);
        if (Next[0] == 0 || Next[1] == 0) {
            continue;
        }
        KiStoreClockDue(Next[0], Next[1]);
        HalClockWait(&KiClockWake, 0, Next[0] == KI_TIME_NEVER ? 0 : Next[0], Next[1] == KI_TIME_NEVER ? 0 : Next[1]);
    }
}

static VOID KiWakeSleepingClock(VOID)
{
    /* acq_rel: see 4 above */
    if (__atomic_exchange_n(&KiClockWake, 1, __ATOMIC_ACQ_REL) == 0) {
        HalClockWake(&KiClockWake);
    }
}

NTSTATUS KiEnsureClock(VOID)
{
    NTSTATUS Status = KiEnsureOwnThread(&KiClockThread, KiRunClock, NULL, "interlock-clock");
    if (NT_SUCCESS(Status) && KiIsClockMissing()) {
        /* relaxed: a waiter that still sees the old value takes a nap that finds nothing to do */
        __atomic_store_n(&KiClockMissing, 0, __ATOMIC_RELAXED);
    }
    return Status;
}

/* Threads that sleep already find out that they have to stand in. */
static VOID KiAnnounceMissingClock(VOID)
{
    /* acquire: as in KiThreadFromNumber; a thread that is adopted later reads KiClockMissing when it first sleeps */
    ULONG Count = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE);
    for (ULONG Number = 0; Number < Count; Number += 1) {
        KiReconsiderDeadline(KiThreadFromNumber(Number));
    }
}

/* The timer that is the reason for it is in its table. */
static VOID KiStandInForClock(VOID)
{
    ULONG64 Next[2];
    KiExpireTimers(KiCurrentThread(), Next);
    /* acq_rel: comes before the words that KiReconsiderDeadline writes, by which the sleepers see it */
    if (__atomic_exchange_n(&KiClockMissing, 1, __ATOMIC_ACQ_REL) == 0) {
        KiAnnounceMissingClock();
    }
    /* A thread that was got meanwhile may have missed what was just filed again. */
    if (KiHasOwnThread(&KiClockThread)) {
        __atomic_store_n(&KiClockMissing, 0, __ATOMIC_RELAXED);
        KiWakeSleepingClock();
    }
}

const HAL_DEADLINE *KiShortenToNap(PKTHREAD Thread, const HAL_DEADLINE *Deadline, PHAL_DEADLINE Nap)
{
    ULONG64 End = HalDispatch.QueryInterruptTime() + KI_TICK;
    /* A suspended wait is not left. Of the system's clock nobody knows where it is in interrupt time. */
    if (Deadline != &Thread->WaitDeadline || (Deadline->Clock == HalInterruptTime && Deadline->Time <= End)) {
        return Deadline;
    }
    if (Deadline->Clock == HalSystemTime && Deadline->Time <= HalDispatch.QuerySystemTime() + KI_TICK) {
        return Deadline;
    }
    *Nap = (HAL_DEADLINE){HalInterruptTime, End};
    return Nap;
}

VOID KiWakeClock(VOID)
{
    KiWakeSleepingClock();
    if (!NT_SUCCESS(KiEnsureClock())) {
        KiStandInForClock();
    }
}

VOID KiPollClock(VOID)
{
    if (KiIsClockMissing() && !NT_SUCCESS(KiEnsureClock())) {
        KiStandInForClock();
    }
}

/* The fork has waited until nobody was in a dispatcher section, so the tables are whole and their locks free. */
VOID KiTimerForkChild(VOID)
{
    BOOLEAN Pending = FALSE;
    for (PKTIMER_TABLE Table = KiFirstTable(); Table != NULL; Table = Table->Next) {
        KiReleaseLock(&Table->Lock);
        Pending |= Table->Wheel[0].OccupiedLevels != 0 || Table->Wheel[1].OccupiedLevels != 0;
    }
    KiStoreClockDue(KI_TIME_NEVER, KI_TIME_NEVER);
    __atomic_store_n(&KiClockWake, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&KiClockMissing, 0, __ATOMIC_RELAXED);
    KiResetOwnThread(&KiClockThread);
    if (Pending) {
        KiWakeClock();
    }
}
