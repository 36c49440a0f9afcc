/* timer.c: timer objects. Theory in timer.h. */
#include "timer.h"

#include "dpc.h"
#include "irql.h"

#define KI_UNITS_PER_MILLISECOND 10000ULL
#define KI_FAR_AWAY (1000 * KI_UNITS_PER_MILLISECOND) /* against which a tick of the host does not count */

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

/* Of an EX_TIMER nobody remembers that. */
FORCEINLINE ULONG64 KiExpiredFlag(ULONG Type)
{
    return Type & KI_TIMER_EXECUTIVE ? 0 : KI_TIMER_EXPIRED;
}

static ULONG64 KiPeriodOf(PKTIMER Timer)
{
    return Timer->Processor & KI_TIMER_EXECUTIVE ? Timer->Period : Timer->Period * KI_UNITS_PER_MILLISECOND;
}

/* With the object and the table locked. Type, here and below: as in Processor, but known where the call is made. */
FORCEINLINE VOID KiFileLockedTimer(PKTIMER_TABLE Table, PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    ULONG Slot = KiFileTimer(KiTimerWheel(Table, Timer), Timer);
    if (!(Type & KI_TIMER_EXECUTIVE)) {
        ULONG64 Hand = Slot % KI_WHEEL_SLOTS;
        ULONG64 Index = Slot / KI_WHEEL_SLOTS;
        *Word = (*Word & ~KI_TIMER_PLACE) | Hand << KI_TIMER_HAND_SHIFT | Index << KI_TIMER_INDEX_SHIFT;
    }
    *Word |= KiInsertedFlag(Type);
}

/* With the object and the table locked, if the timer is in that table. */
FORCEINLINE BOOLEAN KiRemoveLockedTimer(PKTIMER_TABLE Table, PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    if (!(*Word & KiInsertedFlag(Type))) {
        return FALSE;
    }
    KiTakeOutTimer(KiTimerWheel(Table, Timer), Timer);
    *Word &= ~KiInsertedFlag(Type);
    return TRUE;
}

FORCEINLINE BOOLEAN KiRemoveTimerInline(PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    if (!(*Word & KiInsertedFlag(Type))) {
        return FALSE;
    }
    PKTIMER_TABLE Table = KiTimerTableOf(Timer);
    KiAcquireLock(&Table->Lock);
    KiRemoveLockedTimer(Table, Timer, Type, Word);
    KiReleaseLock(&Table->Lock);
    return TRUE;
}

BOOLEAN KiRemoveTimer(PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    return KiRemoveTimerInline(Timer, Type, Word);
}

/* Writes how the timer is filed into its members and flags. */
FORCEINLINE VOID KiDescribeTimer(PKTIMER Timer, USHORT Processor, ULONG Type, ULONG64 *Word)
{
    Timer->Processor = Processor | Type | (Timer->Dpc != NULL && !(Type & KI_TIMER_CALLS) ? KI_TIMER_HAS_DPC : 0);
    if (!(Type & KI_TIMER_EXECUTIVE)) {
        *Word &= ~KI_TIMER_CONTROL_FLAGS;
        *Word |= (ULONG64)KiTimerTolerance(Timer) << KI_TIMER_CONTROL_DELAY_SHIFT;
        *Word |= Type & KI_TIMER_ABSOLUTE ? KI_TIMER_CONTROL_ABSOLUTE : 0;
    }
}

/*
 * The next time of a periodic timer that was due at Base: a whole number of periods after it, so that lateness does not
 * add up, and the first such time in the future, so that missed ones are not made good in a burst. From its first
 * expiration on a periodic timer counts in interrupt time.
 */
static VOID KiFileNextPeriod(PKTIMER Timer, ULONG64 Base, ULONG64 Now, ULONG64 *Word)
{
    PKTIMER_TABLE Table = KiTimerTableOf(Timer);
    ULONG64 Period = KiPeriodOf(Timer);
    ULONG64 Late = Now > Base ? Now - Base : 0;
    Timer->DueTime.QuadPart = Base + (Late / Period + 1) * Period;
    KiDescribeTimer(Timer, Table->Processor, Timer->Processor & ~(KI_TIMER_NUMBER_MASK | KI_TIMER_ABSOLUTE), Word);
    KiAcquireLock(&Table->Lock);
    KiFileLockedTimer(Table, Timer, Timer->Processor, Word);
    KiReleaseLock(&Table->Lock);
}

/* A timer of the executive is not queued a second time before its callback has begun. */
static ULONG64 KiExpiringFlag(PKTIMER Timer)
{
    return Timer->Processor & KI_TIMER_EXECUTIVE ? KI_TIMER2_EXPIRING : 0;
}

typedef struct _KI_LOCKED_TIMER {
    PKTIMER Timer;
    ULONG64 Word; /* to unlock it with */
} KI_LOCKED_TIMER;

static VOID KiUnlockTimer(PVOID Context)
{
    KI_LOCKED_TIMER *Locked = Context;
    KiUnlockObject(&Locked->Timer->Header, Locked->Word);
}

/*
 * Queues the DPC that goes with the timer, or calls what stands in its place, and unlocks the object. SystemTime: 0 as
 * long as nobody has asked for it.
 */
static VOID KiQueueDpcAndUnlockTimer(PKTIMER Timer, ULONG64 Word, ULONG64 *SystemTime)
{
    ULARGE_INTEGER Now;
    if (Timer->Dpc == NULL || (Word & KiExpiringFlag(Timer))) {
        KiUnlockObject(&Timer->Header, Word);
        return;
    }
    Word |= KiExpiringFlag(Timer);
    if (*SystemTime == 0) {
        *SystemTime = HalDispatch.QuerySystemTime();
    }
    Now.QuadPart = *SystemTime;
    if (Timer->Processor & KI_TIMER_CALLS) {
        PKI_TIMER_CALL Call = (PVOID)Timer->Dpc;
        Call->Routine(Call, Now);
        KiUnlockObject(&Timer->Header, Word);
    } else {
        KI_LOCKED_TIMER Locked = {Timer, Word};
        KiInsertQueueDpcAndRelease(Timer->Dpc, ULongToPtr(Now.LowPart), ULongToPtr(Now.HighPart), KiUnlockTimer,
                                   &Locked);
    }
}

/* The interrupt time at which the timer was due. */
static ULONG64 KiDueInterruptTime(PKTIMER Timer, ULONG64 Now)
{
    if (!(Timer->Processor & KI_TIMER_ABSOLUTE)) {
        return Timer->DueTime.QuadPart;
    }
    ULONG64 Late = HalDispatch.QuerySystemTime() - Timer->DueTime.QuadPart;
    return Late < Now ? Now - Late : Now;
}

/*
 * With the object locked and the timer in no table. AtOnce: the time had passed when the timer was set, its periods
 * begin now. Returns the next time of a periodic timer, KI_TIME_NEVER for another one; the object is unlocked then, and
 * its memory may be gone. 0: nothing was done, the object is still locked, and the caller has to start over.
 */
static DECLSPEC_NOINLINE ULONG64 KiSignalAndUnlockTimer(PKTIMER Timer, BOOLEAN AtOnce, ULONG64 Word,
                                                        PKI_READY Released, ULONG64 *SystemTime)
{
    ULONG64 Next = KI_TIME_NEVER;
    ULONG64 New = KiWithState((Word & ~KiInsertedFlag(Timer->Processor)) | KiExpiredFlag(Timer->Processor), 1);
    if ((New & KI_WAITERS) && !KiReleaseWaiters(&Timer->Header, &New, Released)) {
        return 0;
    }
    if (Timer->Period != 0) {
        ULONG64 Now = HalDispatch.QueryInterruptTime();
        KiFileNextPeriod(Timer, AtOnce ? Now : KiDueInterruptTime(Timer, Now), Now, &New);
        Next = KiTimerKey(Timer);
    }
    KiQueueDpcAndUnlockTimer(Timer, New, SystemTime);
    return Next;
}

BOOLEAN KiExpireTimer(PKTIMER_TABLE Table, PKTIMER Timer, ULONG64 Word, ULONG64 *SystemTime)
{
    KI_READY Released;
    KiInitializeReady(&Released, IO_NO_INCREMENT);
    if (KiSignalAndUnlockTimer(Timer, FALSE, Word, &Released, SystemTime) != 0) {
        KiReadyThreads(&Released);
        return TRUE;
    }
    KiAcquireLock(&Table->Lock);
    KiMakeTimerDue(KiTimerWheel(Table, Timer), Timer);
    KiReleaseLock(&Table->Lock);
    KiUnlockObject(&Timer->Header, Word);
    return FALSE;
}

/* With the object and the table locked. FALSE: it is an absolute time, and it has passed. */
FORCEINLINE BOOLEAN KiFileUnlessPast(PKTIMER_TABLE Table, PKTIMER Timer, ULONG Type, ULONG64 *Word)
{
    if (Timer->Processor & KI_TIMER_ABSOLUTE) {
        /* Read under the lock, the clock is behind the wheel only if it was set back. */
        PKI_WHEEL Wheel = KiTimerWheel(Table, Timer);
        ULONG64 Now = HalDispatch.QuerySystemTime();
        if (Timer->DueTime.QuadPart <= Now) {
            return FALSE;
        }
        if (Now < Wheel->Time) {
            KiTurnWheel(Wheel, Now, 0);
        }
    }
    KiFileLockedTimer(Table, Timer, Type, Word);
    return TRUE;
}

/*
 * The interrupt time from which a relative time counts. One that is far away counts from the host's last tick, to which
 * the whole tick is added that may have passed since: it comes a tick late at most, early only where the tick itself was
 * late, and half of what it costs to set a timer is saved. NT knows no other times than those of its own, longer ticks.
 */
FORCEINLINE ULONG64 KiBeginningOfInterval(ULONG64 Interval, BOOLEAN Exact)
{
    if (Interval < KI_FAR_AWAY || Exact) {
        return HalDispatch.QueryInterruptTime();
    }
    return HalDispatch.QueryTickTime() + HalTickLength;
}

FORCEINLINE ULONG64 KiAbsoluteTime(const KI_TIMER_SETTING *Setting)
{
    ULONG64 Interval = 0 - (ULONG64)Setting->DueTime;
    ULONG64 Time;
    if (Setting->DueTime >= 0) {
        return (ULONG64)Setting->DueTime;
    }
    Time = KiBeginningOfInterval(Interval, Setting->Exact) + Interval;
    return Time <= KI_TIME_LAST ? Time : KI_TIME_LAST;
}

/*
 * With the object locked. A timer that is in a table stays in that one, so that one lock is enough. FALSE: the time has
 * passed, and the timer is in no table. WasSet remembers what was found, for this call may have to be repeated.
 */
FORCEINLINE BOOLEAN KiSetLockedTimer(PKTIMER Timer, PKTIMER_TABLE Table, const KI_TIMER_SETTING *Setting,
                                     ULONG64 DueTime, ULONG64 *Word, BOOLEAN *WasSet)
{
    if (*Word & KiInsertedFlag(Setting->Type)) {
        Table = KiTimerTableOf(Timer);
    }
    KiAcquireLock(&Table->Lock);
    *WasSet |= KiRemoveLockedTimer(Table, Timer, Setting->Type, Word);
    Timer->DueTime.QuadPart = DueTime;
    Timer->Period = Setting->Period;
    Timer->Dpc = Setting->Call != NULL ? (PVOID)Setting->Call : Setting->Dpc;
    KiDescribeTimer(Timer, Table->Processor,
                    Setting->Type | (Setting->DueTime >= 0 ? KI_TIMER_ABSOLUTE : 0) |
                        (Setting->Call != NULL ? KI_TIMER_CALLS : 0),
                    Word);
    *Word = KiWithState(*Word & ~KiExpiredFlag(Setting->Type), 0);
    BOOLEAN Filed = KiFileUnlessPast(Table, Timer, Setting->Type, Word);
    KiReleaseLock(&Table->Lock);
    return Filed;
}

/* A timer that may have to be signaled at once, and has a DPC. */
FORCEINLINE KIRQL KiRaiseForTimer(PKTHREAD Thread, const KI_TIMER_SETTING *Setting)
{
    KIRQL OldIrql = Thread->Irql;
    if (OldIrql < DISPATCH_LEVEL && Setting->Dpc != NULL && Setting->DueTime >= 0) {
        KiRaiseIrql(Thread, DISPATCH_LEVEL);
    }
    return OldIrql;
}

static VOID KiLowerAfterTimer(PKTHREAD Thread, KIRQL OldIrql)
{
    if (Thread->Irql != OldIrql) {
        KiLowerIrql(Thread, OldIrql);
    }
}

/* In line, because most of what a setting may say is known where it is made. */
FORCEINLINE BOOLEAN KiSetTimerInline(PKTIMER Timer, const KI_TIMER_SETTING *Setting)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseForTimer(Thread, Setting);
    PKTIMER_TABLE Table = KiSelectTimerTable(Thread);
    ULONG64 DueTime = KiAbsoluteTime(Setting);
    BOOLEAN WasSet = FALSE;
    BOOLEAN Absolute = FALSE;
    ULONG64 Next = KI_TIME_NEVER;
    KI_READY Released;

    KiInitializeReady(&Released, IO_NO_INCREMENT);
    KiEnterDispatcher(Thread);
    for (ULONG Round = 0;; Round += 1) {
        ULONG64 Word = KiLockObject(&Timer->Header);
        if ((Setting->Type & KI_TIMER_EXECUTIVE) && (Word & KI_TIMER2_DISABLED)) {
            KiUnlockObject(&Timer->Header, Word);
            break;
        }
        if (KiSetLockedTimer(Timer, Table, Setting, DueTime, &Word, &WasSet)) {
            Absolute = (Timer->Processor & KI_TIMER_ABSOLUTE) != 0;
            Next = KiTimerKey(Timer);
            KiUnlockObject(&Timer->Header, Word);
            break;
        }
        ULONG64 SystemTime = 0;
        Next = KiSignalAndUnlockTimer(Timer, TRUE, Word, &Released, &SystemTime);
        if (Next != 0) {
            break;
        }
        KiUnlockObject(&Timer->Header, Word);
        HalLongSpin(Round);
    }
    KiReadyThreads(&Released);
    KiExitDispatcher(Thread);
    KiLowerAfterTimer(Thread, OldIrql);
    KiNoticeTimer(Absolute, Next);
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
    /* acquire: pairs with the expirer's KiUnlockObject, after which the timer's memory may be given up */
    ULONG64 Word = __atomic_load_n(KiHeaderWord(&Timer->Header), __ATOMIC_ACQUIRE);
    if (!(Word & (KI_LOCKED | KI_TIMER_INSERTED))) {
        return FALSE;
    }
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    Word = KiLockObject(&Timer->Header);
    BOOLEAN WasSet = KiRemoveTimerInline(Timer, 0, &Word);
    KiUnlockObject(&Timer->Header, Word);
    KiExitDispatcher(Thread);
    return WasSet;
}

BOOLEAN KeReadStateTimer(PKTIMER Timer)
{
    return KI_STATE(KiReadSettledHeader(&Timer->Header)) != 0;
}
