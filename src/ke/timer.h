/* timer.h: timers: the tables in which they wait, setting and expiring them. */
#ifndef INTERLOCK_TIMER_H
#define INTERLOCK_TIMER_H

#include "dispatch.h"
#include "ki.h"

/*
 * The tables in which set timers wait until they expire.
 *
 * Each processor has a table, each table two wheels: one for relative timers, whose times are interrupt times, and one
 * for absolute timers, whose times are system times. Only the second follows a step of the system clock.
 *
 * A wheel has KI_WHEEL_LEVELS levels of 64 slots. Read times as numbers with six-bit digits. A timer is filed by the
 * highest digit in which its time T differs from the wheel's own time W: that digit's place is the level, the digit of
 * T the slot. So a slot of level 0 holds one time, a slot of level n 64^n of them.
 *
 *      W = .. 17 | 04 | 31        T = .. 17 | 09 | 02   ->  level 1, slot 9
 *                                 T = .. 17 | 04 | 40   ->  level 0, slot 40
 *
 * 1. T > W for every timer in a level. Timers with T <= W are in the slot KI_WHEEL_DUE, in the order of their times.
 * 2. A timer of level n agrees with W in every digit above n and is greater in digit n. So the first occupied slot of
 *    the lowest occupied level holds the earliest timers of the wheel, and finding it takes two bit scans.
 * 3. When W reaches the beginning of a slot, its timers are filed again; each lands on a lower level. So a timer moves
 *    at most KI_WHEEL_LEVELS - 1 times, and the cost of filing, removing and expiring does not depend on the number of
 *    timers. The timers of a slot that is being filed again wait in KI_WHEEL_CASCADE, so that the table's lock can be
 *    released in between; while that slot is occupied, W does not change.
 * 4. A bit of Occupied is set exactly if the list of that slot is not empty; the list head of an empty slot is garbage.
 *    A zeroed wheel is empty, at time 0.
 * 5. Earliest of a slot is never later than the earliest timer in it. It may be earlier after that timer was removed;
 *    then the clock wakes spuriously once, and files the slot again.
 * 6. Timers with the same time expire in the order in which they were set, unless one of them was set while the others
 *    were waiting in KI_WHEEL_CASCADE.
 * 7. Latest of a slot is KI_TIME_NEVER if a timer was put behind a later one. Otherwise its timers are in the order of
 *    their times, and none is later than Latest. So a slot whose Latest has passed is due as it is: its timers, mostly
 *    set one after the other for the same interval, move to KI_WHEEL_DUE as one list. Slots of level 0 are in order.
 */

#define KI_WHEEL_DIGIT 6
#define KI_WHEEL_SLOTS (1u << KI_WHEEL_DIGIT)
#define KI_WHEEL_LEVELS 11 /* of six bits each: times are below 2^63 */
#define KI_WHEEL_DUE (KI_WHEEL_LEVELS * KI_WHEEL_SLOTS)
#define KI_WHEEL_CASCADE (KI_WHEEL_DUE + 1)

#define KI_TIME_NEVER MAXULONGLONG
#define KI_TIME_LAST ((ULONG64)MAXLONGLONG)

typedef struct _KI_WHEEL_SLOT {
    LIST_ENTRY List;
    ULONG64 Earliest;
    ULONG64 Latest;
} KI_WHEEL_SLOT, *PKI_WHEEL_SLOT;

typedef struct _KI_WHEEL {
    ULONG64 Time;
    ULONG OccupiedLevels; /* bit n: a bit of Occupied[n] is set */
    ULONG64 Occupied[KI_WHEEL_LEVELS + 1];
    KI_WHEEL_SLOT Slot[KI_WHEEL_CASCADE + 1];
} KI_WHEEL, *PKI_WHEEL;

typedef struct _KTIMER_TABLE {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    USHORT Processor;
    struct _KTIMER_TABLE *Next; /* all tables that exist, see timer.c */
    KI_WHEEL Wheel[2];          /* 0: interrupt time, 1: system time */
} KTIMER_TABLE, *PKTIMER_TABLE;

/*
 * KTIMER.Processor: the low half is the processor whose table the timer is in, the high half, which Windows 10 calls
 * TimerType, says how it is filed. It is written under the object's lock while the timer is in no table.
 */
#define KI_TIMER_NUMBER_MASK 0x0000ffffu
#define KI_TIMER_ABSOLUTE 0x00010000u  /* DueTime is a system time */
#define KI_TIMER_EXECUTIVE 0x00020000u /* an EX_TIMER: Period is in 100 ns, header byte 1 are its Timer2 flags */
#define KI_TIMER_HAS_DPC 0x00040000u   /* expires at DISPATCH_LEVEL */
#define KI_TIMER_CALLS 0x00080000u     /* Dpc is a KI_TIMER_CALL (timer.h) */
#define KI_TIMER_TOLERANCE_SHIFT 24    /* six bits n: may expire up to 2^n * 100 ns late, 0: no tolerance */

FORCEINLINE ULONG KiTimerTolerance(PKTIMER Timer)
{
    return Timer->Processor >> KI_TIMER_TOLERANCE_SHIFT;
}

/* When the timer expires: DueTime, or the first multiple of its tolerance after it, where timers coalesce. */
FORCEINLINE ULONG64 KiTimerKey(PKTIMER Timer)
{
    ULONG64 Mask = (1ULL << KiTimerTolerance(Timer)) - 1;
    ULONG64 Key = (Timer->DueTime.QuadPart + Mask) & ~Mask;
    return Key <= KI_TIME_LAST ? Key : Timer->DueTime.QuadPart;
}

FORCEINLINE PKI_WHEEL KiTimerWheel(PKTIMER_TABLE Table, PKTIMER Timer)
{
    return &Table->Wheel[(Timer->Processor & KI_TIMER_ABSOLUTE) != 0];
}

/* All of these need the table's lock. */

FORCEINLINE BOOLEAN KiIsSlotOccupied(PKI_WHEEL Wheel, ULONG Number)
{
    return (Wheel->Occupied[Number / KI_WHEEL_SLOTS] >> (Number % KI_WHEEL_SLOTS)) & 1;
}

/* The list head of a slot, made valid if the slot was empty; from now on it is occupied. */
FORCEINLINE PKI_WHEEL_SLOT KiOpenSlot(PKI_WHEEL Wheel, ULONG Number)
{
    PKI_WHEEL_SLOT Slot = &Wheel->Slot[Number];
    if (!KiIsSlotOccupied(Wheel, Number)) {
        InitializeListHead(&Slot->List);
        Slot->Earliest = KI_TIME_NEVER;
        Slot->Latest = 0;
        Wheel->Occupied[Number / KI_WHEEL_SLOTS] |= 1ULL << (Number % KI_WHEEL_SLOTS);
        Wheel->OccupiedLevels |= 1u << (Number / KI_WHEEL_SLOTS);
    }
    return Slot;
}

/* Returns the number of the slot: the level is that of the highest digit in which the time differs from the wheel's. */
FORCEINLINE ULONG KiFileTimer(PKI_WHEEL Wheel, PKTIMER Timer)
{
    ULONG64 Key = KiTimerKey(Timer);
    ULONG Number = KI_WHEEL_DUE;
    if (Key > Wheel->Time) {
        ULONG Level = (63 - (ULONG)__builtin_clzll(Key ^ Wheel->Time)) / KI_WHEEL_DIGIT;
        Number = Level * KI_WHEEL_SLOTS + (ULONG)(Key >> (Level * KI_WHEEL_DIGIT)) % KI_WHEEL_SLOTS;
    }
    PKI_WHEEL_SLOT Slot = KiOpenSlot(Wheel, Number);
    if (Key < Slot->Earliest) {
        Slot->Earliest = Key;
    }
    Slot->Latest = Key >= Slot->Latest ? Key : KI_TIME_NEVER;
    InsertTailList(&Slot->List, &Timer->TimerListEntry);
    return Number;
}

VOID KiTakeOutTimer(PKI_WHEEL Wheel, PKTIMER Timer);
PKTIMER KiNextDueTimer(PKI_WHEEL Wheel, PKTIMER Previous);    /* the one after Previous, or NULL; NULL: the first one */
ULONG64 KiNextWheelTime(PKI_WHEEL Wheel);                     /* when there is something to do: 0 now, KI_TIME_NEVER */

/*
 * Turns the wheel to Time, which may be before the wheel's own if the clock was set back. FALSE: that takes more than
 * Budget moves, call it again.
 */
BOOLEAN KiTurnWheel(PKI_WHEEL Wheel, ULONG64 Time, ULONG Budget);

/*
 * Setting and expiring timers, for the kernel and for the timers of the executive.
 *
 * Two locks guard a timer. The object's lock (dispatch.h) guards its header, its members and whether it is in a table.
 * The table's lock guards the links and the rest of the table.
 *
 * 1. Setting and canceling take the object's lock, then the table's. The expirer finds the timer under the table's lock,
 *    so it only tries the object's: if that fails it leaves the timer in place and retries.
 * 2. The Inserted bit (KiInsertedFlag) changes under both locks. So a cancel that finds it set removes the timer before
 *    it can expire. A cancel that finds it clear, with the object unlocked, knows that no thread will touch the timer
 *    again: its memory may be freed when KeCancelTimer returns.
 * 3. The expirer keeps the object locked from removing the timer until the timer is signaled, filed again if it is
 *    periodic, and its DPC is queued. So after a cancel and KeFlushQueuedDpcs the DPC may be freed as well.
 * 4. A thread holds one table's lock at a time, and does not wait for an object under it. The expirer holds several
 *    objects, a group, in which only the last may need another object's lock: the others have no waiters and do no more
 *    than queue a DPC. They are signaled and unlocked in turn, so only the last one is still locked by then.
 * 5. A timer's DPC may free the timer, even from another processor. So the DPC is queued before the object is unlocked
 *    (3) and runs only afterwards: the object is unlocked while the queue is still locked, at DISPATCH_LEVEL, where a
 *    DPC of the same processor is only queued.
 */

/*
 * The flags of a timer in the header word (table 8-29). Hand and Index say where it was filed when it was set. An
 * EX_TIMER is in the same tables but has its own flags in byte 1; its bytes 2 and 3 are a component id, always 0 here.
 */
#define KI_TIMER_CONTROL_FLAGS 0x0000ff00ull
#define KI_TIMER_CONTROL_ABSOLUTE 0x00000100ull
#define KI_TIMER_CONTROL_DELAY_SHIFT 10
#define KI_TIMER_HAND_SHIFT 16
#define KI_TIMER_INDEX_SHIFT 24
#define KI_TIMER_PLACE 0x3fff0000ull
#define KI_TIMER_INSERTED 0x40000000ull
#define KI_TIMER_EXPIRED 0x80000000ull

/* Byte 1 of an EX_TIMER. */
#define KI_TIMER2_INSERTED 0x00000100ull
#define KI_TIMER2_EXPIRING 0x00000200ull /* expired, and its callback has not begun */
#define KI_TIMER2_CANCEL_PENDING 0x00000400ull
#define KI_TIMER2_RUNNING 0x00001000ull
#define KI_TIMER2_DISABLED 0x00002000ull

/* The bit that is set while the timer is in a table. Type: as in KTIMER.Processor. */
FORCEINLINE ULONG64 KiInsertedFlag(ULONG Type)
{
    return Type & KI_TIMER_EXECUTIVE ? KI_TIMER2_INSERTED : KI_TIMER_INSERTED;
}

/*
 * What a timer of a system service or of the thread pool does when it expires, in place of a DPC. Routine runs under the
 * object's lock, at any level, so it does not run after KeCancelTimer. It may queue an APC or insert a queue entry; it
 * must not touch the timer.
 */
typedef struct _KI_TIMER_CALL {
    VOID (*Routine)(struct _KI_TIMER_CALL *Call, ULARGE_INTEGER SystemTime);
} KI_TIMER_CALL, *PKI_TIMER_CALL;

typedef struct _KI_TIMER_SETTING {
    LONGLONG DueTime; /* negative: relative to now */
    ULONG Period;     /* in ms, for an EX_TIMER in 100 ns; 0: once */
    ULONG Type;       /* KI_TIMER_EXECUTIVE and the tolerance, as in KTIMER.Processor; the other bits are derived */
    PKDPC Dpc;
    PKI_TIMER_CALL Call; /* in place of Dpc */
    BOOLEAN Exact;       /* a relative time counts from now, however far away it is */
} KI_TIMER_SETTING;

ULONG KiEncodeTolerance(ULONG64 Units); /* as in KI_TIMER_TOLERANCE_SHIFT, rounded down */
BOOLEAN KiSetTimer(PKTIMER Timer, const KI_TIMER_SETTING *Setting); /* was it set? A disabled EX_TIMER stays as it is */
/* With the object locked: removes it from its table. Type: before the timer was first set, Processor is not valid. */
BOOLEAN KiRemoveTimer(PKTIMER Timer, ULONG Type, ULONG64 *Word);

NTSTATUS KiEnsureClock(VOID); /* STATUS_INSUFFICIENT_RESOURCES: there is no clock thread, see ownthread.h */
VOID KiWakeClock(VOID);       /* in a section too; without a clock thread, requests one */

/* What the clock thread sleeps for in either wheel; KI_TIME_NEVER also when it does not sleep. */
extern volatile ULONG64 KiClockDue[2];

#endif
