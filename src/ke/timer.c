/* timer.c: the clocks, the timing wheel, timer objects, and the clock thread that expires them. Theory in timer.h. */
#include "timer.h"
#include "debugdata.h"
#include "irql.h"
#include "ownthread.h"
#include "park.h"
#include "verifier.h"
#include "wait.h"

/* The clocks. All have the full resolution of the host, even if the caller does not request it. */

VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime)
{
    CurrentTime->QuadPart = (LONGLONG)HalDispatch.QuerySystemTime();
}

VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime)
{
    KeQuerySystemTimePrecise(CurrentTime);
}

ULONGLONG KeQueryInterruptTime(VOID)
{
    return HalDispatch.QueryInterruptTime();
}

ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
    *QpcTimeStamp = HalQueryPerformanceCounter();
    return HalDispatch.QueryInterruptTime();
}

ULONGLONG KeQueryUnbiasedInterruptTime(VOID)
{
    return KeQueryInterruptTime();
}

ULONGLONG KeQueryUnbiasedInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
    return KeQueryInterruptTimePrecise(QpcTimeStamp);
}

VOID KeQueryTickCount(PLARGE_INTEGER CurrentCount)
{
    CurrentCount->QuadPart = (LONGLONG)(HalDispatch.QueryInterruptTime() / KI_TICK);
}

ULONG KeQueryTimeIncrement(VOID)
{
    return (ULONG)KI_TICK;
}

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER Counter;
    if (PerformanceFrequency != NULL) {
        PerformanceFrequency->QuadPart = (LONGLONG)HAL_PERFORMANCE_FREQUENCY;
    }
    Counter.QuadPart = (LONGLONG)HalQueryPerformanceCounter();
    return Counter;
}

VOID KeStallExecutionProcessor(ULONG MicroSeconds)
{
    /* + 1: the clock may have been read almost one unit late. */
    ULONGLONG End = HalDispatch.QueryInterruptTime() + MicroSeconds * 10ULL + 1;
    while (HalDispatch.QueryInterruptTime() < End) {
        HalPause();
    }
}

/* The timing wheel. */

#define KI_WHEEL_TIMED_LEVELS ((1u << KI_WHEEL_LEVELS) - 1)

FORCEINLINE VOID KiMarkSlotEmpty(PKI_WHEEL Wheel, ULONG Number)
{
    ULONG Level = Number / KI_WHEEL_SLOTS;
    Wheel->Occupied[Level] &= ~(1ULL << (Number % KI_WHEEL_SLOTS));
    if (Wheel->Occupied[Level] == 0) {
        Wheel->OccupiedLevels &= ~(1u << Level);
    }
}

VOID KiTakeOutTimer(PKI_WHEEL Wheel, PKTIMER Timer)
{
    PLIST_ENTRY Head = Timer->TimerListEntry.Flink;
    if (RemoveEntryList(&Timer->TimerListEntry)) {
        KiMarkSlotEmpty(Wheel, (ULONG)(CONTAINING_RECORD(Head, KI_WHEEL_SLOT, List) - Wheel->Slot));
    }
}

PKTIMER KiNextDueTimer(PKI_WHEEL Wheel, PKTIMER Previous)
{
    PLIST_ENTRY Head = &Wheel->Slot[KI_WHEEL_DUE].List;
    if (!KiIsSlotOccupied(Wheel, KI_WHEEL_DUE)) {
        return NULL;
    }
    PLIST_ENTRY Entry = Previous == NULL ? Head->Flink : Previous->TimerListEntry.Flink;
    return Entry == Head ? NULL : CONTAINING_RECORD(Entry, KTIMER, TimerListEntry);
}

static BOOLEAN KiFindFirstSlot(PKI_WHEEL Wheel, PULONG Number)
{
    ULONG Levels = Wheel->OccupiedLevels & KI_WHEEL_TIMED_LEVELS;
    if (Levels == 0) {
        return FALSE;
    }
    ULONG Level = (ULONG)__builtin_ctz(Levels);
    *Number = Level * KI_WHEEL_SLOTS + (ULONG)__builtin_ctzll(Wheel->Occupied[Level]);
    return TRUE;
}

ULONG64 KiNextWheelTime(PKI_WHEEL Wheel)
{
    ULONG Number;
    if (Wheel->OccupiedLevels & ~KI_WHEEL_TIMED_LEVELS) {
        return 0;
    }
    return KiFindFirstSlot(Wheel, &Number) ? Wheel->Slot[Number].Earliest : KI_TIME_NEVER;
}

/* The earliest time that belongs to a slot: the wheel's digits above, the slot's own, zeroes below. */
static ULONG64 KiBeginningOfSlot(PKI_WHEEL Wheel, ULONG Number)
{
    ULONG Shift = Number / KI_WHEEL_SLOTS * KI_WHEEL_DIGIT;
    ULONG64 Above = Wheel->Time >> Shift & ~(ULONG64)(KI_WHEEL_SLOTS - 1);
    return (Above | Number % KI_WHEEL_SLOTS) << Shift;
}

static VOID KiMoveSlot(PKI_WHEEL Wheel, ULONG From, ULONG To)
{
    PLIST_ENTRY Source = &Wheel->Slot[From].List;
    PLIST_ENTRY First = Source->Flink;
    PLIST_ENTRY Target = &KiOpenSlot(Wheel, To)->List;
    RemoveEntryList(Source);
    AppendTailList(Target, First);
    KiMarkSlotEmpty(Wheel, From);
}

/* Only the rest is linked to the head again: a timer's memory is not touched before its turn. */
static BOOLEAN KiFileCascade(PKI_WHEEL Wheel, PULONG Budget)
{
    PLIST_ENTRY Head = &Wheel->Slot[KI_WHEEL_CASCADE].List;
    PLIST_ENTRY Next;
    if (!KiIsSlotOccupied(Wheel, KI_WHEEL_CASCADE)) {
        return TRUE;
    }
    PLIST_ENTRY Entry = Head->Flink;
    for (; Entry != Head && *Budget != 0; Entry = Next) {
        Next = Entry->Flink;
        __builtin_prefetch(Next, 1);
        KiFileTimer(Wheel, CONTAINING_RECORD(Entry, KTIMER, TimerListEntry));
        *Budget -= 1;
    }
    if (Entry == Head) {
        KiMarkSlotEmpty(Wheel, KI_WHEEL_CASCADE);
        return TRUE;
    }
    Head->Flink = Entry;
    Entry->Blink = Head;
    return FALSE;
}

BOOLEAN KiTurnWheel(PKI_WHEEL Wheel, ULONG64 Time, ULONG Budget)
{
    ULONG Number;
    if (Time < Wheel->Time) {
        /* With an earlier time every timer may belong elsewhere. Those that were found due stay so. */
        while (KiFindFirstSlot(Wheel, &Number)) {
            KiMoveSlot(Wheel, Number, KI_WHEEL_CASCADE);
        }
        Wheel->Time = Time;
    }
    for (;;) {
        if (!KiFileCascade(Wheel, &Budget)) {
            return FALSE;
        }
        if (!KiFindFirstSlot(Wheel, &Number) || KiBeginningOfSlot(Wheel, Number) > Time) {
            break;
        }
        if (Wheel->Slot[Number].Latest <= Time) {
            KiMoveSlot(Wheel, Number, KI_WHEEL_DUE);
        } else {
            Wheel->Time = KiBeginningOfSlot(Wheel, Number);
            KiMoveSlot(Wheel, Number, KI_WHEEL_CASCADE);
        }
    }
    Wheel->Time = Time;
    return TRUE;
}

/*
 * Timer objects, and the clock that expires them.
 *
 * The clock is a thread of the library (ownthread.h). It sleeps until the earliest time in any table. The first timer
 * that is set requests it. While the host refuses it, KiClockMissing is set, and threads that wait act as the clock: they
 * sleep for at most a tick, leave their wait as for an APC, request the clock again and, if it is refused, expire what is
 * due (KiPollClock). A timer may then be late by a tick of NT's clock.
 *
 * A setter must wake the clock if and only if the new timer is earlier than what the clock sleeps for.
 * 1. The clock resets KiClockWake to 0, stores KI_TIME_NEVER in KiClockDue, reads each table under its lock, stores in
 *    KiClockDue what it will sleep for, and sleeps unless KiClockWake is set.
 * 2. A setter puts its timer into the table, under the lock, then reads KiClockDue, and if its time is earlier sets
 *    KiClockWake.
 * 3. So either the clock reads that table after the timer is in it, or the setter reads a KiClockDue that was stored
 *    before that read or later: KI_TIME_NEVER, or the time that the clock sleeps for, which is the right one to
 *    compare.
 * 4. Both sides exchange KiClockWake: a clock that resets a setter's 1 reads the tables after that setter's timer was
 *    in. While it is 1, further setters make no system call.
 */

#define KI_UNITS_PER_MILLISECOND 10000ULL
#define KI_FAR_AWAY (1000 * KI_UNITS_PER_MILLISECOND) /* a tick of the host does not matter here */

#define KI_TURN_BUDGET 256     /* timers that are moved under one hold of a table's lock */
#define KI_EXPIRY_GROUP 16     /* timers that are removed under one hold of a table's lock */
#define KI_EXPIRY_LOOKS 64     /* due timers that are examined for that: there may be a million */
#define KI_EXPIRY_BATCH 256    /* groups of one wheel that expire before the clock checks the other wheels */

volatile ULONG64 KiClockDue[2] = {KI_TIME_NEVER, KI_TIME_NEVER};
static volatile ULONG KiClockWake;
volatile ULONG KiClockMissing;

/* Processor 0's table always exists; any timer may use it when there is no memory for another. */
static KTIMER_TABLE KiFirstTimerTable;
static PKTIMER_TABLE KiTimerTables = &KiFirstTimerTable;
KD_REGISTER_ROOT(KiTimerTables);

static ULONG64 KiTimeOfWheel(ULONG Index)
{
    return Index == 0 ? HalDispatch.QueryInterruptTime() : HalDispatch.QuerySystemTime();
}

/*
 * An empty wheel may have any time. With the present one, a timer is filed in a slot that begins in the future, so the
 * clock does not touch the timer before then.
 */
static VOID KiSetTimeOfEmptyWheels(PKTIMER_TABLE Table)
{
    KiAcquireLock(&Table->Lock);
    for (ULONG Index = 0; Index < ARRAYSIZE(Table->Wheel); Index++) {
        if (Table->Wheel[Index].OccupiedLevels == 0) {
            Table->Wheel[Index].Time = KiTimeOfWheel(Index);
        }
    }
    KiReleaseLock(&Table->Lock);
}

/* The pages come from the host, not from the heap: the caller is in a dispatcher section. */
static DECLSPEC_NOINLINE PKTIMER_TABLE KiCreateTimerTable(PKPRCB Prcb)
{
    PVOID Existing = NULL;
    if (Prcb->Number == 0) {
        KiSetTimeOfEmptyWheels(&KiFirstTimerTable); /* locked: threads of other processors may use it already */
        /* release: as the compare-exchange below */
        __atomic_store_n(&Prcb->TimerTable, &KiFirstTimerTable, __ATOMIC_RELEASE);
        return &KiFirstTimerTable;
    }
    PKTIMER_TABLE Table = HalAllocatePages(sizeof(*Table));
    if (Table == NULL) {
        return &KiFirstTimerTable;
    }
    Table->Processor = (USHORT)Prcb->Number;
    KiSetTimeOfEmptyWheels(Table);
    /* acq_rel: the new table is initialized before it is seen, or the other's was before we see it */
    if (!__atomic_compare_exchange_n(&Prcb->TimerTable, &Existing, Table, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        HalFreePages(Table, sizeof(*Table));
        return Existing;
    }
    Table->Next = __atomic_load_n(&KiTimerTables, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiFirstTable */
    while (!__atomic_compare_exchange_n(&KiTimerTables, &Table->Next, Table, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return Table;
}

static PKTIMER_TABLE KiFirstTable(VOID)
{
    return __atomic_load_n(&KiTimerTables, __ATOMIC_ACQUIRE);
}

/* For a timer that is in a table. */
FORCEINLINE PKTIMER_TABLE KiTableOfTimer(PKTIMER Timer)
{
    ULONG Number = Timer->Processor & KI_TIMER_NUMBER_MASK;
    /* acquire: pairs with the compare-exchange in KiCreateTimerTable */
    return Number == 0 ? &KiFirstTimerTable : __atomic_load_n(&KiProcessorBlock[Number]->TimerTable, __ATOMIC_ACQUIRE);
}

/* The verifier. */

static PKTIMER KiFindTimerInSlot(PLIST_ENTRY Head, PVOID Base, PVOID End, PKDPC *Dpc)
{
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        PKTIMER Timer = CONTAINING_RECORD(Entry, KTIMER, TimerListEntry);
        if (KiIsInMemory(Timer, Base, End)) {
            return Timer;
        }
        if ((Timer->Processor & (KI_TIMER_HAS_DPC | KI_TIMER_CALLS)) == KI_TIMER_HAS_DPC &&
            KiIsInMemory(Timer->Dpc, Base, End)) {
            *Dpc = Timer->Dpc;
        }
    }
    return NULL;
}

PKTIMER KiFindSetTimer(PVOID Base, PVOID End, PKDPC *Dpc)
{
    PKTHREAD Thread = KiCurrentThread();
    PKTIMER Found = NULL;
    for (PKTIMER_TABLE Table = KiFirstTable(); Table != NULL && Found == NULL; Table = Table->Next) {
        KiEnterDispatcher(Thread);
        KiAcquireLock(&Table->Lock);
        for (ULONG Index = 0; Index < ARRAYSIZE(Table->Wheel); Index++) {
            PKI_WHEEL Wheel = &Table->Wheel[Index];
            for (ULONG Slot = 0; Slot < ARRAYSIZE(Wheel->Slot) && Found == NULL; Slot++) {
                if (KiIsSlotOccupied(Wheel, Slot)) {
                    Found = KiFindTimerInSlot(&Wheel->Slot[Slot].List, Base, End, Dpc);
                }
            }
        }
        KiReleaseLock(&Table->Lock);
        KiExitDispatcher(Thread);
    }
    return Found;
}

/* Timer objects. */

VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type)
{
    Timer->Header.TimerMiscFlags = 0;
    KiInitializeHeader(&Timer->Header, (UCHAR)(TimerNotificationObject + Type), sizeof(*Timer), 0);
}

VOID KeInitializeTimer(PKTIMER Timer)
{
    KeInitializeTimerEx(Timer, NotificationTimer);
}

ULONG KiEncodeTolerance(ULONG64 Units)
{
    return Units < 2 ? 0 : (63 - (ULONG)__builtin_clzll(Units)) << KI_TIMER_TOLERANCE_SHIFT;
}

/* An EX_TIMER has no such flag. */
FORCEINLINE ULONG64 KiExpiredFlag(ULONG Type)
{
    return Type & KI_TIMER_EXECUTIVE ? 0 : KI_TIMER_EXPIRED;
}

FORCEINLINE BOOLEAN KiRemoveTimerInline(PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    if (!(*Word & KiInsertedFlag(Type))) {
        return FALSE;
    }
    PKTIMER_TABLE Table = KiTableOfTimer(Timer);
    KiAcquireLock(&Table->Lock);
    KiTakeOutTimer(KiTimerWheel(Table, Timer), Timer);
    KiReleaseLock(&Table->Lock);
    *Word &= ~KiInsertedFlag(Type);
    return TRUE;
}

BOOLEAN KiRemoveTimer(PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    return KiRemoveTimerInline(Timer, Type, Word);
}

/*
 * With the object and the table locked: files the timer by its DueTime, and writes into its members and flags how.
 * Type: as in Processor, known where the call is made. FALSE: it is an absolute time and has passed, nothing is filed.
 */
FORCEINLINE BOOLEAN KiFileLockedTimer(PKTIMER_TABLE Table, PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    PKI_WHEEL Wheel = &Table->Wheel[(Type & KI_TIMER_ABSOLUTE) != 0];
    Timer->Processor = Table->Processor | Type | (Timer->Dpc != NULL && !(Type & KI_TIMER_CALLS) ? KI_TIMER_HAS_DPC : 0);
    if (!(Type & KI_TIMER_EXECUTIVE)) {
        *Word &= ~KI_TIMER_CONTROL_FLAGS;
        *Word |= (ULONG64)KiTimerTolerance(Timer) << KI_TIMER_CONTROL_DELAY_SHIFT;
        *Word |= Type & KI_TIMER_ABSOLUTE ? KI_TIMER_CONTROL_ABSOLUTE : 0;
    }
    if (Type & KI_TIMER_ABSOLUTE) {
        /* Read under the lock, the clock is behind the wheel only if it was set back. */
        ULONG64 Now = HalDispatch.QuerySystemTime();
        if (Timer->DueTime.QuadPart <= Now) {
            return FALSE;
        }
        if (Now < Wheel->Time) {
            KiTurnWheel(Wheel, Now, 0);
        }
    }
    ULONG64 Slot = KiFileTimer(Wheel, Timer);
    if (!(Type & KI_TIMER_EXECUTIVE)) {
        *Word &= ~KI_TIMER_PLACE;
        *Word |= Slot % KI_WHEEL_SLOTS << KI_TIMER_HAND_SHIFT | Slot / KI_WHEEL_SLOTS << KI_TIMER_INDEX_SHIFT;
    }
    *Word |= KiInsertedFlag(Type);
    return TRUE;
}

/*
 * The next time of a periodic timer: a whole number of periods after the last one, so that lateness does not add up, and
 * the first such time in the future, so that missed expirations do not come in a burst. AtOnce: the time had passed when
 * the timer was set, its periods begin now. After its first expiration a periodic timer counts in interrupt time.
 */
static VOID KiFileNextPeriod(PKTIMER Timer, BOOLEAN AtOnce, ULONG64 *Word)
{
    PKTIMER_TABLE Table = KiTableOfTimer(Timer);
    ULONG64 Period = Timer->Processor & KI_TIMER_EXECUTIVE ? Timer->Period : Timer->Period * KI_UNITS_PER_MILLISECOND;
    ULONG64 Now = HalDispatch.QueryInterruptTime();
    ULONG64 Base = Timer->DueTime.QuadPart;
    if (AtOnce) {
        Base = Now;
    } else if (Timer->Processor & KI_TIMER_ABSOLUTE) {
        ULONG64 Late = HalDispatch.QuerySystemTime() - Base;
        Base = Late < Now ? Now - Late : Now;
    }
    Timer->DueTime.QuadPart = Base + ((Now > Base ? Now - Base : 0) / Period + 1) * Period;
    KiAcquireLock(&Table->Lock);
    KiFileLockedTimer(Table, Timer, Timer->Processor & ~(KI_TIMER_NUMBER_MASK | KI_TIMER_ABSOLUTE), Word);
    KiReleaseLock(&Table->Lock);
}

typedef struct _KI_LOCKED_TIMER {
    PKTIMER Timer;
    ULONG64 Word; /* to unlock it with */
} KI_LOCKED_TIMER, *PKI_LOCKED_TIMER;

static VOID KiUnlockTimer(PVOID Context)
{
    PKI_LOCKED_TIMER Locked = Context;
    KiUnlockObject(&Locked->Timer->Header, Locked->Word);
}

/*
 * The timer is due. With the object locked and the timer in no table: signals it, files it again if it is periodic,
 * queues its DPC, and unlocks it; its memory may then be invalid. SystemTime: 0, or the value from an earlier call, so
 * that timers that expire together read the clock once. Returns the next time of a periodic timer, KI_TIME_NEVER for
 * another one. 0: nothing was done, the object is still locked, and the caller has to start over.
 */
static DECLSPEC_NOINLINE ULONG64 KiSignalAndUnlockTimer(PKTIMER Timer, BOOLEAN AtOnce, ULONG64 Word,
                                                        PKI_READY Released, ULONG64 *SystemTime)
{
    ULONG64 Next = KI_TIME_NEVER;
    ULARGE_INTEGER Now;
    Word = KiWithState((Word & ~KiInsertedFlag(Timer->Processor)) | KiExpiredFlag(Timer->Processor), 1);
    if ((Word & KI_WAITERS) && !KiReleaseWaiters(&Timer->Header, &Word, Released)) {
        return 0;
    }
    if (Timer->Period != 0) {
        KiFileNextPeriod(Timer, AtOnce, &Word);
        Next = KiTimerKey(Timer);
    }
    /* an EX_TIMER's DPC is not queued again before its callback has begun */
    if (Timer->Dpc == NULL || ((Timer->Processor & KI_TIMER_EXECUTIVE) && (Word & KI_TIMER2_EXPIRING))) {
        KiUnlockObject(&Timer->Header, Word);
        return Next;
    }
    if (*SystemTime == 0) {
        *SystemTime = HalDispatch.QuerySystemTime();
    }
    Now.QuadPart = *SystemTime;
    Word |= Timer->Processor & KI_TIMER_EXECUTIVE ? KI_TIMER2_EXPIRING : 0;
    if (Timer->Processor & KI_TIMER_CALLS) {
        PKI_TIMER_CALL Call = (PVOID)Timer->Dpc;
        Call->Routine(Call, Now);
        KiUnlockObject(&Timer->Header, Word);
    } else {
        KI_LOCKED_TIMER Locked = {Timer, Word};
        KiInsertQueueDpcAndRelease(Timer->Dpc, ULongToPtr(Now.LowPart), ULongToPtr(Now.HighPart), KiUnlockTimer,
                                   &Locked);
    }
    return Next;
}

/*
 * A relative time that is far away counts from the host's last tick, plus the whole tick that may have passed since: it
 * expires at most a tick late, early only if the tick itself was late, and setting a timer costs half as much. All of
 * NT's own times are times of its ticks, which are longer.
 */
FORCEINLINE ULONG64 KiAbsoluteTime(const KI_TIMER_SETTING *Setting)
{
    ULONG64 Interval = 0 - (ULONG64)Setting->DueTime;
    if (Setting->DueTime >= 0) {
        return (ULONG64)Setting->DueTime;
    }
    ULONG64 Begin = Interval < KI_FAR_AWAY || Setting->Exact ? HalDispatch.QueryInterruptTime()
                                                             : HalDispatch.QueryTickTime() + HalTickLength;
    return Begin + Interval <= KI_TIME_LAST ? Begin + Interval : KI_TIME_LAST;
}

/*
 * With the object locked: takes the timer out of its table and files it again, in the same table if it was in one, so that
 * one lock is enough. FALSE: its time has passed, and it is in no table. WasSet keeps its value, since this may have to be
 * repeated.
 */
FORCEINLINE BOOLEAN KiSetLockedTimer(PKTHREAD Thread, PKTIMER Timer, const KI_TIMER_SETTING *Setting, ULONG64 DueTime,
                                     ULONG64 *Word, BOOLEAN *WasSet)
{
    BOOLEAN Inserted = (*Word & KiInsertedFlag(Setting->Type)) != 0;
    PKTIMER_TABLE Table;
    ULONG Type = Setting->Type | (Setting->DueTime >= 0 ? KI_TIMER_ABSOLUTE : 0) |
                 (Setting->Call != NULL ? KI_TIMER_CALLS : 0);
    if (Inserted) {
        Table = KiTableOfTimer(Timer);
    } else {
        PKPRCB Prcb = KiCurrentPrcb(Thread);
        /* acquire: as in KiTableOfTimer */
        Table = __atomic_load_n(&Prcb->TimerTable, __ATOMIC_ACQUIRE);
        Table = Table != NULL ? Table : KiCreateTimerTable(Prcb);
    }
    KiAcquireLock(&Table->Lock);
    if (Inserted) {
        KiTakeOutTimer(KiTimerWheel(Table, Timer), Timer);
        *Word &= ~KiInsertedFlag(Setting->Type);
        *WasSet = TRUE;
    }
    Timer->DueTime.QuadPart = DueTime;
    Timer->Period = Setting->Period;
    Timer->Dpc = Setting->Call != NULL ? (PVOID)Setting->Call : Setting->Dpc;
    *Word = KiWithState(*Word & ~KiExpiredFlag(Setting->Type), 0);
    BOOLEAN Filed = KiFileLockedTimer(Table, Timer, Type, Word);
    KiReleaseLock(&Table->Lock);
    return Filed;
}

/* Inline, because most of a setting is known where it is made. */
FORCEINLINE BOOLEAN KiSetTimerInline(PKTIMER Timer, const KI_TIMER_SETTING *Setting)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = Thread->Irql;
    ULONG64 DueTime = KiAbsoluteTime(Setting);
    /* it may be signaled here, and has a DPC (5 in timer.h) */
    BOOLEAN Raise = OldIrql < DISPATCH_LEVEL && Setting->Dpc != NULL && Setting->DueTime >= 0;
    BOOLEAN WasSet = FALSE;
    BOOLEAN Absolute = Setting->DueTime >= 0;
    ULONG64 Next = KI_TIME_NEVER;
    KI_READY Released;

    if (Raise) {
        KiRaiseIrql(Thread, DISPATCH_LEVEL);
    }
    KiInitializeReady(&Released, IO_NO_INCREMENT);
    KiEnterDispatcher(Thread);
    for (ULONG Round = 0;; Round += 1) {
        ULONG64 Word = KiLockObject(&Timer->Header);
        ULONG64 SystemTime = 0;
        if (Word == 0) {
            WasSet = KiSetOutsideTimer(&Timer->Header, Setting->DueTime, Setting->Period);
            break;
        }
        if ((Setting->Type & KI_TIMER_EXECUTIVE) && (Word & KI_TIMER2_DISABLED)) {
            KiUnlockObject(&Timer->Header, Word);
            break;
        }
        if (KiSetLockedTimer(Thread, Timer, Setting, DueTime, &Word, &WasSet)) {
            Next = KiTimerKey(Timer);
            KiUnlockObject(&Timer->Header, Word);
            break;
        }
        Next = KiSignalAndUnlockTimer(Timer, TRUE, Word, &Released, &SystemTime);
        if (Next != 0) {
            Absolute = FALSE; /* the time of a next period */
            break;
        }
        KiUnlockObject(&Timer->Header, Word);
        KiBackOff(Round);
    }
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
    if (Raise) {
        KiLowerIrql(Thread, OldIrql);
    }
    /* relaxed: if the clock read the table before the timer was in it, the table's lock has made visible what the clock
       had stored before that (KiRunClock) */
    if (Next < __atomic_load_n(&KiClockDue[Absolute], __ATOMIC_RELAXED)) {
        KiWakeClock();
    }
    return WasSet;
}

BOOLEAN KiSetTimer(PKTIMER Timer, const KI_TIMER_SETTING *Setting)
{
    return KiSetTimerInline(Timer, Setting);
}

BOOLEAN KeSetCoalescableTimer(PKTIMER Timer, LARGE_INTEGER DueTime, ULONG Period, ULONG TolerableDelay, PKDPC Dpc)
{
    KI_TIMER_SETTING Setting = {
        .DueTime = DueTime.QuadPart,
        .Period = Period,
        .Type = KiEncodeTolerance(TolerableDelay * KI_UNITS_PER_MILLISECOND),
        .Dpc = Dpc,
    };
    return KiSetTimer(Timer, &Setting);
}

BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc)
{
    KI_TIMER_SETTING Setting = {.DueTime = DueTime.QuadPart, .Period = (ULONG)Period, .Type = 0, .Dpc = Dpc};
    return KiSetTimer(Timer, &Setting);
}

BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc)
{
    KI_TIMER_SETTING Setting = {.DueTime = DueTime.QuadPart, .Dpc = Dpc};
    return DueTime.QuadPart < 0 ? KiSetTimerInline(Timer, &Setting) : KeSetTimerEx(Timer, DueTime, 0, Dpc);
}

BOOLEAN KeCancelTimer(PKTIMER Timer)
{
    /* acquire: pairs with the expirer's KiUnlockObject, after which the timer's memory may be freed */
    ULONG64 Word = __atomic_load_n(KiHeaderWord(&Timer->Header), __ATOMIC_ACQUIRE);
    /* KI_LOCKED: an outside timer never has Inserted set. A local one keeps the bit until it is unlocked. */
    if (!(Word & (KI_LOCKED | KI_TIMER_INSERTED))) {
        return FALSE;
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    Word = KiLockObject(&Timer->Header);
    if (Word == 0) {
        KiExitDispatcher(Thread);
        return KiCancelOutsideTimer(&Timer->Header);
    }
    BOOLEAN WasSet = KiRemoveTimerInline(Timer, 0, &Word);
    KiUnlockObject(&Timer->Header, Word);
    KiExitDispatcher(Thread);
    return WasSet;
}

BOOLEAN KeReadStateTimer(PKTIMER Timer)
{
    return KI_STATE(KiReadSettledHeader(&Timer->Header)) != 0;
}

/* The clock: expiring. */

typedef enum _KI_EXPIRY {
    KiNothingDue,
    KiTimerExpired,
    KiWheelTurning,      /* timers have to be moved before the due ones are known */
    KiTimersBusy,        /* other threads set, cancel or wait for what is due */
    KiNeedsDispatchLevel /* what is due has a DPC */
} KI_EXPIRY;

/*
 * With the table locked: locks and removes due timers, Timer first. Stops after one whose expiry may need another
 * object's lock (4 in timer.h). *Expiry: why there are none.
 */
static ULONG KiTakeDueTimers(PKTHREAD Thread, PKI_WHEEL Wheel, PKTIMER Timer, PKI_LOCKED_TIMER Group, KI_EXPIRY *Expiry)
{
    ULONG Count = 0;
    for (ULONG Looks = 0; Timer != NULL && Looks < KI_EXPIRY_LOOKS && Count < KI_EXPIRY_GROUP; Looks += 1) {
        PKTIMER Next = KiNextDueTimer(Wheel, Timer);
        ULONG64 Word;
        if (Thread->Irql < DISPATCH_LEVEL && (Timer->Processor & KI_TIMER_HAS_DPC)) {
            *Expiry = KiNeedsDispatchLevel;
        } else if (KiTryLockObject(&Timer->Header, &Word)) {
            KiTakeOutTimer(Wheel, Timer);
            if (Timer->Dpc != NULL) { /* the first and the last member that queueing writes: it may span cache lines */
                __builtin_prefetch(Timer->Dpc, 1);
                __builtin_prefetch((PVOID)&Timer->Dpc->DpcData, 1);
            }
            Group[Count++] = (KI_LOCKED_TIMER){Timer, Word};
            if ((Word & KI_WAITERS) != 0 || (Timer->Processor & KI_TIMER_CALLS) != 0) {
                break;
            }
        } else if (*Expiry == KiNothingDue) {
            *Expiry = KiTimersBusy;
        }
        Timer = Next;
    }
    return Count;
}

/* In a dispatcher section. *NextTime: when there is something to do again; 0: now. */
static KI_EXPIRY KiExpireGroup(PKTHREAD Thread, PKTIMER_TABLE Table, ULONG Index, ULONG64 *NextTime)
{
    PKI_WHEEL Wheel = &Table->Wheel[Index];
    KI_LOCKED_TIMER Group[KI_EXPIRY_GROUP];
    KI_EXPIRY Expiry = KiNothingDue;
    ULONG64 SystemTime = 0;
    KI_READY Released;

    KiAcquireLock(&Table->Lock);
    PKTIMER First = KiNextDueTimer(Wheel, NULL);
    if (First == NULL) {
        Expiry = KiTurnWheel(Wheel, KiTimeOfWheel(Index), KI_TURN_BUDGET) ? KiNothingDue : KiWheelTurning;
        First = KiNextDueTimer(Wheel, NULL);
    }
    ULONG Count = KiTakeDueTimers(Thread, Wheel, First, Group, &Expiry);
    *NextTime = KiNextWheelTime(Wheel);
    KiReleaseLock(&Table->Lock);

    KiInitializeReady(&Released, IO_NO_INCREMENT);
    for (PKI_LOCKED_TIMER Entry = Group; Entry != Group + Count; Entry += 1) {
        PKTIMER Timer = Entry->Timer;
        Expiry = KiTimerExpired;
        if (KiSignalAndUnlockTimer(Timer, FALSE, Entry->Word, &Released, &SystemTime) == 0) {
            Expiry = KiTimersBusy; /* the last of the group: back into the table, as the next one to expire */
            KiAcquireLock(&Table->Lock);
            InsertHeadList(&KiOpenSlot(KiTimerWheel(Table, Timer), KI_WHEEL_DUE)->List, &Timer->TimerListEntry);
            KiReleaseLock(&Table->Lock);
            KiUnlockObject(&Timer->Header, Entry->Word);
        }
    }
    KiReadyThreads(&Released);
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
            KiBackOff(Round);
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

/* A periodic timer may move from the wheel of absolute timers to the other one, which therefore comes second. */
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

/* The clock: its thread. */

static VOID KiStoreClockDue(ULONG64 InterruptTime, ULONG64 SystemTime)
{
    /* relaxed: see 3 above */
    __atomic_store_n(&KiClockDue[0], InterruptTime, __ATOMIC_RELAXED);
    __atomic_store_n(&KiClockDue[1], SystemTime, __ATOMIC_RELAXED);
}

static VOID KiRunClock(PVOID Context)
{
    PKTHREAD Thread = KiBecomeOwnThread();
    ULONG64 Next[2];

    UNREFERENCED_PARAMETER(Context);
    for (;;) {
        /* acq_rel: see 4 above */
        __atomic_exchange_n(&KiClockWake, 0, __ATOMIC_ACQ_REL);
        KiStoreClockDue(KI_TIME_NEVER, KI_TIME_NEVER);
        KiExpireTimers(Thread, Next);
        if (Next[0] == 0 || Next[1] == 0) {
            continue;
        }
        if (KiRetryRefusedThreads(Thread)) {
            ULONG64 Tick = HalDispatch.QueryInterruptTime() + KI_TICK;
            Next[0] = Next[0] < Tick ? Next[0] : Tick;
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

/*
 * Without the thread, the caller acts as the clock once, and sleeping threads are woken to act as the clock from then
 * on. They request the thread again at every tick, so the request need not be kept.
 */
static BOOLEAN KiServeClock(PVOID Context, BOOLEAN HasThread)
{
    PKI_OWN_THREAD Clock = Context;
    ULONG64 Next[2];
    if (!HasThread) {
        KiExpireTimers(KiCurrentThread(), Next);
        /* seq_cst: comes before the words that KiReconsiderDeadline writes, by which the sleepers see it */
        if (__atomic_exchange_n(&KiClockMissing, 1, __ATOMIC_SEQ_CST) == 0) {
            /* acquire: as in KiThreadFromNumber; a thread adopted later reads KiClockMissing when it first sleeps */
            ULONG Count = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE);
            for (ULONG Number = 0; Number < Count; Number += 1) {
                KiReconsiderDeadline(KiThreadFromNumber(Number));
            }
        }
    }
    /* A thread that was created meanwhile may have missed the timers that were just filed again. */
    if (KiHasOwnThread(Clock)) {
        /* relaxed: a waiter that still sees the old value takes a nap that finds nothing to do */
        __atomic_store_n(&KiClockMissing, 0, __ATOMIC_RELAXED);
        KiWakeSleepingClock();
    }
    return TRUE;
}

static const KI_OWN_KIND KiClockKind = {
    .Name = "interlock-clock", .Routine = KiRunClock, .Serve = KiServeClock, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD KiClockThread = {.Kind = &KiClockKind, .Context = &KiClockThread};

NTSTATUS KiEnsureClock(VOID)
{
    NTSTATUS Status = KiEnsureOwnThread(&KiClockThread);
    if (NT_SUCCESS(Status) && KiIsClockMissing()) {
        KiServeClock(&KiClockThread, TRUE);
    }
    return Status;
}

VOID KiWakeClock(VOID)
{
    KiWakeSleepingClock();
    if (!KiHasOwnThread(&KiClockThread)) {
        KiRequestOwnThread(KiCurrentThread(), &KiClockThread);
    }
}

VOID KiPollClock(VOID)
{
    if (KiIsClockMissing()) {
        KiRequestOwnThread(KiCurrentThread(), &KiClockThread);
    }
}

const HAL_DEADLINE *KiShortenToNap(PKTHREAD Thread, const HAL_DEADLINE *Deadline, PHAL_DEADLINE Nap)
{
    ULONG64 End = HalDispatch.QueryInterruptTime() + KI_TICK;
    /* A suspended wait is not left. A system time cannot be converted to interrupt time, only compared with now. */
    if (Deadline != &Thread->WaitDeadline || (Deadline->Clock == HalInterruptTime && Deadline->Time <= End) ||
        (Deadline->Clock == HalSystemTime && Deadline->Time <= HalDispatch.QuerySystemTime() + KI_TICK)) {
        return Deadline;
    }
    *Nap = (HAL_DEADLINE){HalInterruptTime, End};
    return Nap;
}

/* The fork waited until no thread was in a dispatcher section, so the tables are whole and their locks free. */
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
    if (Pending) {
        KiWakeClock();
    }
}
