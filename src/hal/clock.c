/*
 * clock.c: the sleep of the clock thread. One thread sleeps here at a time; anybody may wake it.
 *
 * A wait of the host has one deadline, on one clock. A sleep that ends at an interrupt time and also at a system time
 * therefore has a second: a thread of its own, the pacer, waits on the system clock and wakes the clock thread. The
 * host ends a wait on the system clock when that clock gets there, also by a step. Without the pacer (the host
 * refuses the thread) the clock thread looks at the system clock once a second. No descriptor is needed for any of
 * this: a program that closes every descriptor it finds does not stop the clock.
 *
 *     HalpSleeper    HalpAwake      nobody is to be woken
 *                    HalpAsleep     the clock thread sleeps on this word, or is about to
 * 1. The sleeper announces itself here and then looks at the wake word; a waker has changed the wake word and then
 *    takes the announcement. Both are exchanges, so one comes second and sees what was written before the first:
 *    either the waker finds the announcement, or the sleeper finds the wake word changed.
 * 2. An announcement is taken once, so a sleep costs its wakers one system call together.
 * 3. The pacer is given its time after the announcement, so it finds it when that time has come.
 * 4. A waker that took the announcement of a sleeper that was just leaving makes the next sleep return early. That is
 *    legal: the clock thread looks again.
 */
#include "halp.h"

#define SECONDS_FROM_1601_TO_1970 11644473600LL
#define PACER_STACK (256 * 1024)
#define LOOK_INTERVAL HALP_UNITS_PER_SECOND

typedef enum _HALP_SLEEP {
    HalpAwake,
    HalpAsleep
} HALP_SLEEP;

static volatile ULONG HalpSleeper;

/*
 * What the pacer waits for: a system time, 0 if none. Whoever changes it, and only the sleeper does, then changes
 * HalpPacerTurn, on which the pacer sleeps; the pacer reads them in the other order. So it never sleeps for an old time
 * with the new turn.
 */
static volatile ULONG64 HalpPacerDue;
static volatile ULONG HalpPacerTurn;
static BOOLEAN HalpPacerRuns; /* only the sleeper looks */

/* acq_rel: pairs with the exchange of the other side, see 1 above */
static HALP_SLEEP HalpExchangeSleeper(HALP_SLEEP New)
{
    return (HALP_SLEEP)__atomic_exchange_n(&HalpSleeper, (ULONG)New, __ATOMIC_ACQ_REL);
}

static VOID HalpWakeSleeper(VOID)
{
    if (HalpExchangeSleeper(HalpAwake) == HalpAsleep) {
        HalDispatch.Wake(&HalpSleeper, 1);
    }
}

static VOID HalpRunPacer(PVOID Context)
{
    (VOID)Context;
    for (;;) {
        /* acquire: pairs with the release in HalpPace, so the time is not older than the turn */
        ULONG Turn = __atomic_load_n(&HalpPacerTurn, __ATOMIC_ACQUIRE);
        ULONG64 Due = __atomic_load_n(&HalpPacerDue, __ATOMIC_RELAXED);
        HAL_DEADLINE Deadline = {Due != 0 ? HalSystemTime : HalNoDeadline, Due};

        if (!HalDispatch.Wait(&HalpPacerTurn, Turn, &Deadline)) {
            /* relaxed: the sleeper may have set a new time, which stays */
            __atomic_compare_exchange_n(&HalpPacerDue, &Due, 0, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            HalpWakeSleeper();
        }
    }
}

/* FALSE: there is no pacer. */
static BOOLEAN HalpPace(ULONGLONG SystemTime)
{
    if (!HalpPacerRuns) {
        HalpPacerRuns = NT_SUCCESS(HalCreateThread(HalpRunPacer, NULL, PACER_STACK, "interlock-pacer"));
    }
    /* relaxed: only the sleeper makes it anything but 0 */
    if (HalpPacerRuns && __atomic_load_n(&HalpPacerDue, __ATOMIC_RELAXED) != SystemTime) {
        __atomic_store_n(&HalpPacerDue, SystemTime, __ATOMIC_RELAXED);
        /* release: pairs with the acquire in HalpRunPacer */
        __atomic_add_fetch(&HalpPacerTurn, 1, __ATOMIC_RELEASE);
        HalDispatch.Wake(&HalpPacerTurn, 1);
    }
    return HalpPacerRuns;
}

/* The interrupt time at which a sleep that cannot follow the system clock looks at it again. */
static ULONGLONG HalpNextLook(ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    ULONGLONG SystemNow = HalDispatch.QuerySystemTime();
    ULONGLONG Remaining = SystemTime > SystemNow ? SystemTime - SystemNow : 0;
    ULONGLONG Look = HalDispatch.QueryInterruptTime();

    Look += Remaining < LOOK_INTERVAL ? Remaining : LOOK_INTERVAL;
    return InterruptTime < Look ? InterruptTime : Look;
}

static HAL_DEADLINE HalpDeadlineOfSleep(ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    HAL_DEADLINE Deadline = {HalInterruptTime, InterruptTime};

    if (InterruptTime == 0) {
        Deadline.Clock = SystemTime != 0 ? HalSystemTime : HalNoDeadline;
        Deadline.Time = SystemTime;
    } else if (SystemTime != 0 && !HalpPace(SystemTime)) {
        Deadline.Time = HalpNextLook(InterruptTime, SystemTime);
    }
    return Deadline;
}

VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    HAL_DEADLINE Deadline;

    HalpExchangeSleeper(HalpAsleep);
    Deadline = HalpDeadlineOfSleep(InterruptTime, SystemTime);
    /* acquire: what the waker did before it changed the word is visible to the clock thread */
    if (__atomic_load_n(Wake, __ATOMIC_ACQUIRE) == Expected) {
        HalDispatch.Wait(&HalpSleeper, HalpAsleep, &Deadline);
    }
    HalpExchangeSleeper(HalpAwake);
}

VOID HalClockWake(volatile ULONG *Wake)
{
    (VOID)Wake;
    HalpWakeSleeper();
}

/* The pacer stayed with the parent. */
VOID HalpForkChildClock(VOID)
{
    __atomic_store_n(&HalpSleeper, HalpAwake, __ATOMIC_RELAXED);
    __atomic_store_n(&HalpPacerDue, 0, __ATOMIC_RELAXED);
    HalpPacerRuns = FALSE;
}

LONGLONG HalQueryZoneOffset(ULONGLONG SystemTime)
{
    HALP_HOST_CALLS;
    time_t Seconds = (time_t)((LONGLONG)(SystemTime / HALP_UNITS_PER_SECOND) - SECONDS_FROM_1601_TO_1970);
    struct tm Local;

    tzset();
    return localtime_r(&Seconds, &Local) != NULL ? (LONGLONG)Local.tm_gmtoff * (LONGLONG)HALP_UNITS_PER_SECOND : 0;
}
