/*
 * timer.h: setting and expiring timers, for the kernel and the timers of the executive.
 *
 * Two locks guard a timer. The object's own (dispatch.h) guards its header, its members and whether it is in a table;
 * the table's guards the links and what the table knows about it.
 *
 * 1. Who sets or cancels takes the object's lock, then the table's. Who expires finds the timer under the table's lock,
 *    so it only tries the object's: when that fails it leaves the timer where it is and comes back to it.
 * 2. The Inserted bit (KiInsertedFlag) changes under both locks. So a cancel that finds it set takes the timer out before it can expire,
 *    and one that finds it clear, with the object unlocked, knows that nobody will touch the timer any more: its memory
 *    may be given up when KeCancelTimer returns.
 * 3. The expirer keeps the object locked from the moment it has taken the timer out until the timer is signaled, filed
 *    again if it is periodic, and its DPC is queued. So whoever cancels and then calls KeFlushQueuedDpcs may give up
 *    the DPC as well.
 * 4. Only one lock of a table is held at a time, and no object is waited for under it. The expirer holds several
 *    objects, a group, where each of them but the last needs no other object's lock any more: nobody waits for it, and
 *    it does no more than queue a DPC. They are signaled and unlocked in turn, so the last one is alone by then.
 * 5. A timer's DPC may free the timer, on another processor too. So it is queued before the object is unlocked (3) and
 *    can run only afterwards: the object is unlocked while the queue is still locked. This is done at DISPATCH_LEVEL,
 *    where a DPC of the same processor is only queued.
 */
#ifndef INTERLOCK_TIMER_H
#define INTERLOCK_TIMER_H

#include "dispatch.h"
#include "timertable.h"

/*
 * The flags of a timer in the header word (table 8-29). Hand and Index say where it was filed when it was set. Timers of
 * the kernel and those of the executive share the table of processors, not the flags: an EX_TIMER has its own in byte 1,
 * and bytes 2 and 3 name its component, of which there is none here.
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
#define KI_TIMER2_EXPIRING 0x00000200ull /* expired, and its callback has not yet begun */
#define KI_TIMER2_CANCEL_PENDING 0x00000400ull
#define KI_TIMER2_RUNNING 0x00001000ull
#define KI_TIMER2_DISABLED 0x00002000ull

/* Type: as in KTIMER.Processor. Which bit says that the timer is in a table. */
FORCEINLINE ULONG64 KiInsertedFlag(ULONG Type)
{
    return Type & KI_TIMER_EXECUTIVE ? KI_TIMER2_INSERTED : KI_TIMER_INSERTED;
}

/*
 * What a timer of a system service does at the moment when it expires: Routine runs under the object's lock, at any
 * level, so that after KeCancelTimer it does not run any more. It may queue an APC; it may not touch the timer.
 */
typedef struct _KI_TIMER_CALL {
    VOID (*Routine)(struct _KI_TIMER_CALL *Call, ULARGE_INTEGER SystemTime);
} KI_TIMER_CALL, *PKI_TIMER_CALL;

typedef struct _KI_TIMER_SETTING {
    LONGLONG DueTime; /* negative: relative to now */
    ULONG Period;     /* in ms, for an EX_TIMER in 100 ns; 0: once */
    ULONG Type;       /* KI_TIMER_EXECUTIVE and the tolerance, as in KTIMER.Processor; the rest is found out */
    PKDPC Dpc;
    PKI_TIMER_CALL Call; /* in place of Dpc */
    BOOLEAN Exact;       /* a relative time counts from this very moment, however far away it is */
} KI_TIMER_SETTING;

/* timer.c */

ULONG KiEncodeTolerance(ULONG64 Units); /* as in KI_TIMER_TOLERANCE_SHIFT, rounded down */
BOOLEAN KiSetTimer(PKTIMER Timer, const KI_TIMER_SETTING *Setting); /* was it set? An EX_TIMER may refuse: disabled */
/* With the object locked: takes it out of its table. Type says what timer it is: before it was set, Processor does not. */
BOOLEAN KiRemoveTimer(PKTIMER Timer, ULONG Type, ULONG64 *Word);

/*
 * Locked, and taken out; FALSE: put back. SystemTime: 0, or what the last one has left there, so that those that expire
 * together ask once.
 */
BOOLEAN KiExpireTimer(PKTIMER_TABLE Table, PKTIMER Timer, ULONG64 Word, ULONG64 *SystemTime);

/* clock.c */

PKTIMER_TABLE KiSelectTimerTable(PKTHREAD Thread); /* the current processor's */
PKTIMER_TABLE KiTimerTableOf(PKTIMER Timer);
NTSTATUS KiEnsureClock(VOID); /* STATUS_INSUFFICIENT_RESOURCES: no timer would expire by itself */
VOID KiWakeClock(VOID);

/* What the clock thread sleeps for in either wheel; KI_TIME_NEVER also when it does not sleep. */
extern volatile ULONG64 KiClockDue[2];

/* With no lock held, after a timer was filed that is to expire at Time. */
FORCEINLINE VOID KiNoticeTimer(BOOLEAN Absolute, ULONG64 Time)
{
    /* relaxed: if the clock thread has looked at the table before the timer was in it, the table's lock has made the
       clock's store visible that preceded the look (KiRunClock) */
    if (Time < __atomic_load_n(&KiClockDue[Absolute], __ATOMIC_RELAXED)) {
        KiWakeClock();
    }
}

#endif
