/* futex.c: sleeping on a word and waking, and the table of operations that tests replace. */
#include "halp.h"

#include <limits.h>

/*
 * The thread sanitizer defers signals until the next instrumented operation: the handler of a signal that arrives just
 * before the wait would not run before the thread is woken. So under the sanitizer a long wait returns now and then.
 */
#ifdef HALP_THREAD_SANITIZER
#define LONGEST_WAIT (HALP_UNITS_PER_SECOND / 50)
#else
#define LONGEST_WAIT MAXULONGLONG
#endif

/*
 * The bare system call; the host ignores the arguments that an operation does not have. Inline on the machine that is
 * measured: after a sleep the processor's return predictor holds the callers of another thread, so each return on the
 * way up from the host is mispredicted.
 */
static inline long HalpFutex(volatile ULONG *Address, int Operation, ULONG Value, const struct timespec *Timeout)
{
#if defined(__x86_64__) && !defined(__ILP32__)
    register const struct timespec *Fourth __asm__("r10") = Timeout;
    register volatile ULONG *Fifth __asm__("r8") = NULL;
    register ULONG Sixth __asm__("r9") = FUTEX_BITSET_MATCH_ANY;
    long Result = SYS_futex;

    __asm__ volatile("syscall"
                     : "+a"(Result)
                     : "D"(Address), "S"((long)Operation), "d"(Value), "r"(Fourth), "r"(Fifth), "r"(Sixth)
                     : "rcx", "r11", "memory");
    return Result;
#else
    return HalpCall(SYS_futex, Address, Operation, Value, Timeout, NULL, FUTEX_BITSET_MATCH_ANY);
#endif
}

/* Scope: FUTEX_PRIVATE_FLAG, or 0 for a word that processes share. Returns the host's result. */
FORCEINLINE long HalpWaitInScope(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline, int Scope)
{
    HAL_DEADLINE Limit = *Deadline;

    if (LONGEST_WAIT != MAXULONGLONG && HalpTimeUntil(Deadline) > LONGEST_WAIT) {
        Limit.Clock = HalInterruptTime;
        Limit.Time = HalpQueryInterruptTime() + LONGEST_WAIT;
    }
    if (Limit.Clock == HalNoDeadline) {
        return HalpFutex(Address, FUTEX_WAIT | Scope, Expected, NULL);
    }
    struct timespec Until;
    const struct timespec *Timeout = HalpDeadlineToTimespec(&Limit, &Until) ? &Until : NULL;
    int Clock = Limit.Clock == HalSystemTime ? FUTEX_CLOCK_REALTIME : 0;
    return HalpFutex(Address, FUTEX_WAIT_BITSET | Scope | Clock, Expected, Timeout);
}

static BOOLEAN HalpIsAwake(long Result)
{
    return Result == 0 || Result == -EAGAIN || Result == -EINTR;
}

/* Not awake: the deadline has passed, or the host has refused. */
static DECLSPEC_NOINLINE BOOLEAN HalpJudgeWait(long Result, volatile ULONG *Address, const HAL_DEADLINE *Deadline)
{
    if (Result != -ETIMEDOUT) {
        HalPrint("interlock: the host refuses to wait on %p (error %ld)\n", (const void *)Address, -Result);
        HalAbort();
    }
    /* The system clock may have been set back since, and a clock read here may lag behind the host's timer. */
    return HalpTimeUntil(Deadline) != 0;
}

static DECLSPEC_NOINLINE BOOLEAN HalpWaitUntil(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    long Result = HalpWaitInScope(Address, Expected, Deadline, FUTEX_PRIVATE_FLAG);
    return HalpIsAwake(Result) || HalpJudgeWait(Result, Address, Deadline);
}

/* Without a deadline nothing is kept across the system call. */
static BOOLEAN HalpWait(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    if (LONGEST_WAIT != MAXULONGLONG || Deadline->Clock != HalNoDeadline) {
        return HalpWaitUntil(Address, Expected, Deadline);
    }
    long Result = HalpFutex(Address, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, Expected, NULL);
    return HalpIsAwake(Result) || HalpJudgeWait(Result, Address, Deadline);
}

static VOID HalpWake(volatile ULONG *Address, ULONG Count)
{
    HalpFutex(Address, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, Count > INT_MAX ? INT_MAX : Count, NULL);
}

BOOLEAN HalWaitShared(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline)
{
    return HalpWaitInScope(Address, Expected, Deadline, 0) != -ETIMEDOUT || HalpTimeUntil(Deadline) != 0;
}

VOID HalWakeShared(volatile ULONG *Address, ULONG Count)
{
    HalpFutex(Address, FUTEX_WAKE, Count > INT_MAX ? INT_MAX : Count, NULL);
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
