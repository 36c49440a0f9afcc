/*
 * clock.c: the timer tables, and the thread that expires what is in them.
 *
 * The clock has one thread, made when the first timer is set. It sleeps until the earliest time of all tables. If the
 * host refuses the thread, timers expire all the same, late: every KeSetTimer, and every wait that times out
 * (KiPollClock), asks for the thread again and, while it is refused, expires what is due.
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

#define KI_CLOCK_STACK (256 * 1024)
#define KI_TURN_BUDGET 256     /* timers that are moved under one hold of a table's lock */
#define KI_EXPIRY_BATCH 4096   /* timers of one wheel that expire before the clock looks at the other wheels */

volatile ULONG64 KiClockDue[2] = {KI_TIME_NEVER, KI_TIME_NEVER};
static volatile ULONG KiClockWake;
static volatile ULONG KiClockRunning; /* the clock has a thread, or somebody is just making it */

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
    Table->Processor = Prcb->Number;
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

/* Locks the first due timer that can be had at the current level. */
static PKTIMER KiLockDueTimer(PKTHREAD Thread, PKI_WHEEL Wheel, ULONG64 *Word, KI_EXPIRY *WhyNot)
{
    *WhyNot = KiNothingDue;
    for (PKTIMER Timer = KiNextDueTimer(Wheel, NULL); Timer != NULL; Timer = KiNextDueTimer(Wheel, Timer)) {
        if (Thread->Irql < DISPATCH_LEVEL && (Timer->Processor & KI_TIMER_HAS_DPC)) {
            *WhyNot = KiNeedsDispatchLevel;
        } else if (KiTryLockObject(&Timer->Header, Word)) {
            return Timer;
        } else if (*WhyNot == KiNothingDue) {
            *WhyNot = KiTimersBusy;
        }
    }
    return NULL;
}

/* At most one timer. *Next: when there is something to do again; 0: now. */
static KI_EXPIRY KiExpireOne(PKTHREAD Thread, PKTIMER_TABLE Table, ULONG Index, ULONG64 *Next)
{
    PKI_WHEEL Wheel = &Table->Wheel[Index];
    BOOLEAN Turned = TRUE;
    KI_EXPIRY WhyNot;
    ULONG64 Word;

    KiAcquireLock(&Table->Lock);
    if (KiNextDueTimer(Wheel, NULL) == NULL) {
        Turned = KiTurnWheel(Wheel, KiWheelClock(Index), KI_TURN_BUDGET);
    }
    PKTIMER Timer = KiLockDueTimer(Thread, Wheel, &Word, &WhyNot);
    if (Timer != NULL) {
        KiTakeOutTimer(Wheel, Timer);
    }
    *Next = KiNextWheelTime(Wheel);
    KiReleaseLock(&Table->Lock);

    if (Timer != NULL) {
        return KiExpireTimer(Table, Timer, Word) ? KiTimerExpired : KiTimersBusy;
    }
    return WhyNot == KiNothingDue && !Turned ? KiWheelTurning : WhyNot;
}

static ULONG64 KiExpireWheel(PKTHREAD Thread, PKTIMER_TABLE Table, ULONG Index)
{
    KIRQL OldIrql = Thread->Irql;
    KI_EXPIRY Expiry = KiWheelTurning;
    ULONG64 Next = 0;
    ULONG Round = 0;

    for (ULONG Count = 0; Expiry != KiNothingDue && Count < KI_EXPIRY_BATCH; Count += 1) {
        KiEnterDispatcher(Thread);
        Expiry = KiExpireOne(Thread, Table, Index, &Next);
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

static VOID KiStartClock(VOID)
{
    ULONG64 Next[2];
    ULONG None = 0;
    if (!__atomic_compare_exchange_n(&KiClockRunning, &None, 1, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return;
    }
    if (!NT_SUCCESS(HalCreateThread(KiRunClock, NULL, KI_CLOCK_STACK, "interlock-clock"))) {
        /* release: lets the next one try */
        __atomic_store_n(&KiClockRunning, 0, __ATOMIC_RELEASE);
        KiExpireTimers(KiCurrentThread(), Next);
        /* relaxed: a thread that was got meanwhile may have missed what was just filed again */
        if (__atomic_load_n(&KiClockRunning, __ATOMIC_RELAXED) != 0) {
            KiWakeSleepingClock();
        }
    }
}

VOID KiWakeClock(VOID)
{
    KiWakeSleepingClock();
    if (__atomic_load_n(&KiClockRunning, __ATOMIC_RELAXED) == 0) {
        KiStartClock();
    }
}

VOID KiPollClock(VOID)
{
    /* relaxed: a 1 without a thread stays until the thread is there, so it is found sooner or later */
    if (__atomic_load_n(&KiClockRunning, __ATOMIC_RELAXED) == 0 &&
        __atomic_load_n(&KiClockWake, __ATOMIC_RELAXED) != 0) {
        KiStartClock();
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
    __atomic_store_n(&KiClockRunning, 0, __ATOMIC_RELAXED);
    if (Pending) {
        KiWakeClock();
    }
}
