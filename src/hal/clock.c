/*
 * clock.c: the host's clocks, and the sleep of the clock thread.
 *
 * One thread sleeps here at a time; any thread may wake it. A wait of the host has one deadline, on one clock. A sleep
 * that ends at an interrupt time and also at a system time needs a second one: a thread of its own, the pacer, waits on
 * the system clock and wakes the clock thread. The host ends a wait on the system clock when that clock reaches the
 * time, even by a step. If the host refuses the pacer's thread, the clock thread checks the system clock once a second.
 * None of this needs a descriptor: a program that closes every descriptor it finds does not stop the clock.
 *
 *     HalpSleeper    HalpAwake      no thread has to be woken
 *                    HalpAsleep     the clock thread sleeps on this word, or is about to
 * 1. The sleeper announces itself here and then reads the wake word; a waker changes the wake word and then takes the
 *    announcement. Both are exchanges, so the second sees what was written before the first: either the waker finds the
 *    announcement, or the sleeper finds the wake word changed.
 * 2. An announcement is taken once, so a sleep costs all its wakers one system call.
 * 3. The pacer gets its time after the announcement, so it finds the announcement when that time is reached.
 * 4. A waker that took the announcement of a sleeper that was just leaving makes the next sleep return early. That is
 *    harmless: the clock thread checks again.
 */
#include "halp.h"

#include <stdint.h>

#define SLOWEST_HOST_HZ 100
#define SYSTEM_TIME_OF_1970 116444736000000000ULL
/* The host counts time in 63 bits of nanoseconds. */
#define LAST_HOST_SECOND ((ULONGLONG)INT64_MAX / 1000000000ULL)

#define PACER_STACK (256 * 1024)
#define LOOK_INTERVAL HALP_UNITS_PER_SECOND

ULONG HalTickLength = (ULONG)(HALP_UNITS_PER_SECOND / SLOWEST_HOST_HZ);

VOID HalpInitializeClocks(VOID)
{
    struct timespec Tick;

    if (clock_getres(CLOCK_MONOTONIC_COARSE, &Tick) == 0 && Tick.tv_sec == 0) {
        HalTickLength = (ULONG)(Tick.tv_nsec / HALP_NANOSECONDS_PER_UNIT) + 1;
    }
}

static ULONGLONG HalpQueryClock(clockid_t Clock)
{
    struct timespec Now;

    clock_gettime(Clock, &Now);
    return HalpUnitsOfTimespec(&Now);
}

ULONGLONG HalpQueryInterruptTime(VOID)
{
    return HalpQueryClock(CLOCK_MONOTONIC);
}

ULONGLONG HalpQueryTickTime(VOID)
{
    return HalpQueryClock(CLOCK_MONOTONIC_COARSE);
}

ULONGLONG HalpQuerySystemTime(VOID)
{
    return HalpQueryClock(CLOCK_REALTIME) + SYSTEM_TIME_OF_1970;
}

ULONGLONG HalQueryPerformanceCounter(VOID)
{
    C_ASSERT(HAL_PERFORMANCE_FREQUENCY == HALP_UNITS_PER_SECOND);
    return HalpQueryInterruptTime();
}

static struct timespec HalpIntervalToTimespec(ULONGLONG Interval)
{
    struct timespec Host = {
        .tv_sec = (time_t)(Interval / HALP_UNITS_PER_SECOND),
        .tv_nsec = (long)(Interval % HALP_UNITS_PER_SECOND) * HALP_NANOSECONDS_PER_UNIT,
    };

    return Host;
}

VOID HalpSleep(ULONGLONG Interval)
{
    struct timespec Time = HalpIntervalToTimespec(Interval);

    HalpCall(SYS_nanosleep, &Time, NULL);
}

BOOLEAN HalpDeadlineToTimespec(const HAL_DEADLINE *Deadline, struct timespec *Host)
{
    ULONGLONG Time = Deadline->Time;

    if (Deadline->Clock == HalNoDeadline) {
        return FALSE;
    }
    if (Deadline->Clock == HalSystemTime) {
        Time = Time > SYSTEM_TIME_OF_1970 ? Time - SYSTEM_TIME_OF_1970 : 0;
    }
    *Host = HalpIntervalToTimespec(Time);
    return (ULONGLONG)Host->tv_sec < LAST_HOST_SECOND;
}

ULONGLONG HalpTimeUntil(const HAL_DEADLINE *Deadline)
{
    ULONGLONG Now;

    if (Deadline->Clock == HalNoDeadline) {
        return MAXULONGLONG;
    }
    Now = Deadline->Clock == HalSystemTime ? HalpQuerySystemTime() : HalpQueryInterruptTime();
    return Deadline->Time > Now ? Deadline->Time - Now : 0;
}

/* The sleep of the clock thread. */

typedef enum _HALP_SLEEP {
    HalpAwake,
    HalpAsleep
} HALP_SLEEP;

static volatile ULONG HalpSleeper;

/*
 * What the pacer waits for: a system time, 0 if none. The sleeper changes it and then HalpPacerRequests, on which the
 * pacer sleeps; the pacer reads them in the other order. So it never sleeps until an old time with the new number.
 */
static volatile ULONG64 HalpPacerDue;
static volatile ULONG HalpPacerRequests;
static BOOLEAN HalpPacerRuns; /* only the sleeper uses it */

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
        /* acquire: pairs with the release in HalpPace, so the time is not older than the number */
        ULONG Request = __atomic_load_n(&HalpPacerRequests, __ATOMIC_ACQUIRE);
        ULONG64 Due = __atomic_load_n(&HalpPacerDue, __ATOMIC_RELAXED);
        HAL_DEADLINE Deadline = {Due != 0 ? HalSystemTime : HalNoDeadline, Due};

        if (!HalDispatch.Wait(&HalpPacerRequests, Request, &Deadline)) {
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
        __atomic_add_fetch(&HalpPacerRequests, 1, __ATOMIC_RELEASE);
        HalDispatch.Wake(&HalpPacerRequests, 1);
    }
    return HalpPacerRuns;
}

VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime)
{
    HAL_DEADLINE Deadline = {HalInterruptTime, InterruptTime};

    HalpExchangeSleeper(HalpAsleep);
    if (InterruptTime == 0) {
        Deadline.Clock = SystemTime != 0 ? HalSystemTime : HalNoDeadline;
        Deadline.Time = SystemTime;
    } else if (SystemTime != 0 && !HalpPace(SystemTime)) {
        ULONGLONG SystemNow = HalDispatch.QuerySystemTime();
        ULONGLONG Remaining = SystemTime > SystemNow ? SystemTime - SystemNow : 0;
        ULONGLONG Look = HalDispatch.QueryInterruptTime() + (Remaining < LOOK_INTERVAL ? Remaining : LOOK_INTERVAL);

        Deadline.Time = InterruptTime < Look ? InterruptTime : Look;
    }
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
    time_t Seconds = (time_t)((LONGLONG)(SystemTime / HALP_UNITS_PER_SECOND) -
                              (LONGLONG)(SYSTEM_TIME_OF_1970 / HALP_UNITS_PER_SECOND));
    struct tm Local;

    tzset();
    return localtime_r(&Seconds, &Local) != NULL ? (LONGLONG)Local.tm_gmtoff * (LONGLONG)HALP_UNITS_PER_SECOND : 0;
}
