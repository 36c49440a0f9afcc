/* dispatch.c: blocking and waking by futex, and the two clocks. */
#include "halp.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>

#define SLOWEST_HOST_HZ 100
#define SYSTEM_TIME_OF_1970 116444736000000000ULL
/* The host counts time in 63 bits of nanoseconds. */
#define LAST_HOST_SECOND ((ULONGLONG)INT64_MAX / 1000000000ULL)

struct timespec HalpIntervalToTimespec(ULONGLONG Interval)
{
    struct timespec Host = {
        .tv_sec = (time_t)(Interval / HALP_UNITS_PER_SECOND),
        .tv_nsec = (long)(Interval % HALP_UNITS_PER_SECOND) * HALP_NANOSECONDS_PER_UNIT,
    };

    return Host;
}

/* Less, if a signal comes. */
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
    return (ULONGLONG)Now.tv_sec * HALP_UNITS_PER_SECOND + (ULONGLONG)Now.tv_nsec / HALP_NANOSECONDS_PER_UNIT;
}

static ULONGLONG HalpQueryInterruptTime(VOID)
{
    return HalpQueryClock(CLOCK_MONOTONIC);
}

static ULONGLONG HalpQueryTickTime(VOID)
{
    return HalpQueryClock(CLOCK_MONOTONIC_COARSE);
}

static ULONGLONG HalpQuerySystemTime(VOID)
{
    return HalpQueryClock(CLOCK_REALTIME) + SYSTEM_TIME_OF_1970;
}

static BOOLEAN HalpDeadlineHasPassed(const HAL_DEADLINE *Deadline)
{
    switch (Deadline->Clock) {
    case HalInterruptTime:
        return HalpQueryInterruptTime() >= Deadline->Time;
    case HalSystemTime:
        return HalpQuerySystemTime() >= Deadline->Time;
    case HalNoDeadline:
        break;
    }
    return FALSE;
}

#ifdef HALP_THREAD_SANITIZER
#define LONGEST_SANITIZED_WAIT (HALP_UNITS_PER_SECOND / 50)

static ULONGLONG HalpTimeUntil(const HAL_DEADLINE *Deadline)
{
    ULONGLONG Now = Deadline->Clock == HalSystemTime ? HalpQuerySystemTime() : HalpQueryInterruptTime();

    return Deadline->Clock == HalNoDeadline ? MAXULONGLONG : Deadline->Time > Now ? Deadline->Time - Now : 0;
}

/*
 * The sanitizer holds signals back until the next instrumented operation: the handler of one that comes just before the
 * wait would not run before somebody wakes the thread. So a long wait comes back now and then.
 */
static VOID HalpShortenWait(HAL_DEADLINE *Deadline)
{
    if (HalpTimeUntil(Deadline) > LONGEST_SANITIZED_WAIT) {
        Deadline->Clock = HalInterruptTime;
        Deadline->Time = HalpQueryInterruptTime() + LONGEST_SANITIZED_WAIT;
    }
}
#else
static VOID HalpShortenWait(HAL_DEADLINE *Deadline)
{
    (VOID)Deadline;
}
#endif

/* Limit: how long the host is asked to wait. Below 0: why it did not, or not until it was woken. */
static long HalpWaitUntil(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Limit)
{
    struct timespec Until;
    const struct timespec *Timeout = HalpDeadlineToTimespec(Limit, &Until) ? &Until : NULL;
    int Operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;

    Operation |= Limit->Clock == HalSystemTime ? FUTEX_CLOCK_REALTIME : 0;
    return HalpCall(SYS_futex, Address, Operation, Expected, Timeout, NULL, FUTEX_BITSET_MATCH_ANY);
}

static BOOLEAN HalpWaitFailed(volatile ULONG *Address, const HAL_DEADLINE *Deadline, int Error)
{
    switch (Error) {
    case EAGAIN:
    case EINTR:
        return TRUE;
    case ETIMEDOUT:
        /* The system clock may have been set back since, and a clock read here may lag behind the host's timer. */
        return !HalpDeadlineHasPassed(Deadline);
    default:
        HalPrint("interlock: the host refuses to wait on %p (error %d)\n", (const void *)Address, Error);
        HalAbort();
    }
}

static BOOLEAN HalpWait(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    HAL_DEADLINE Limit = *Deadline;
    long Result;

    HalpShortenWait(&Limit);
    if (Limit.Clock == HalNoDeadline) {
        Result = HalpCall(SYS_futex, Address, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, Expected, NULL);
    } else {
        Result = HalpWaitUntil(Address, Expected, &Limit);
    }
    return Result == 0 || HalpWaitFailed(Address, Deadline, (int)-Result);
}

static VOID HalpWake(volatile ULONG *Address, ULONG Count)
{
    HalpCall(SYS_futex, Address, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, Count > INT_MAX ? INT_MAX : Count);
}

static VOID HalpYield(VOID)
{
    HalpCall(SYS_sched_yield);
}

/* The host counts how often a thread was switched away from, and counts a yield only if another thread ran. */
static ULONG HalpCountSwitches(VOID)
{
    struct rusage Usage;

    return HalpCall(SYS_getrusage, RUSAGE_THREAD, &Usage) == 0 ? (ULONG)(Usage.ru_nvcsw + Usage.ru_nivcsw) : 0;
}

BOOLEAN HalYieldToOther(VOID)
{
    ULONG Before = HalDispatch.CountSwitches();

    HalDispatch.Yield();
    return HalDispatch.CountSwitches() != Before;
}

/* The C library reads the number from its restartable sequence area where the host offers one. */
static ULONG HalpCurrentProcessor(VOID)
{
    int Number = sched_getcpu();

    return Number < 0 ? 0 : (ULONG)Number;
}

ULONGLONG HalQueryPerformanceCounter(VOID)
{
    C_ASSERT(HAL_PERFORMANCE_FREQUENCY == HALP_UNITS_PER_SECOND);
    return HalpQueryInterruptTime();
}

HAL_DISPATCH HalDispatch = {
    .Wait = HalpWait,
    .Wake = HalpWake,
    .QueryInterruptTime = HalpQueryInterruptTime,
    .QueryTickTime = HalpQueryTickTime,
    .QuerySystemTime = HalpQuerySystemTime,
    .Yield = HalpYield,
    .CurrentProcessor = HalpCurrentProcessor,
    .CountSwitches = HalpCountSwitches,
};
