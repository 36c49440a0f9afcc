/*
 * timer.h: setting and expiring timers, for the kernel and for the timers of the executive.
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
#ifndef INTERLOCK_TIMER_H
#define INTERLOCK_TIMER_H

#include "dispatch.h"
#include "timertable.h"

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
