/*
 * conditionvariable.c: condition variables. Sleepers are in the waiter hash; the word says whether there are any:
 *
 *      63                             32 31                      8 7             0
 *     +---------------------------------+-------------------------+---------------+
 *     |             sleepers            |            0            |     slept     |
 *     +---------------------------------+-------------------------+---------------+
 *
 * 1. The word is written under the lock of its bucket in the hash. Slept is 1 exactly if sleepers is not 0. It is a byte of
 *    its own, so that a wake can read it at any address without seeing half of a change.
 * 2. A wake that finds slept clear is done: the lock orders it. A sleeper is in the hash before it releases the lock, and
 *    the waker has held the lock since then, to change what the sleeper waits for.
 * 3. A wake removes sleepers from the hash, in the order of arrival, which is the last access to the variable on their
 *    behalf; it wakes them afterwards. So a variable may be freed as soon as its sleepers have returned and no wake is
 *    in progress.
 * 4. A wake that races with a timeout has one winner (rtlp.h), decided before the lock is reacquired.
 * 5. Nothing is allocated. Zeroed memory is a variable without sleepers. In a forked child the word may count sleepers of
 *    the parent: the first wake that searches for them corrects it.
 */
#include <interlock/rtl.h>

#include "rtlp.h"

#include "../ex/pushlock.h"

typedef struct __attribute__((packed, aligned(1))) _RTLP_CONDITION_WORD {
    volatile UCHAR Slept;
    UCHAR Zero[3];
    ULONG Sleepers;
} RTLP_CONDITION_WORD, *PRTLP_CONDITION_WORD;

C_ASSERT(sizeof(RTLP_CONDITION_WORD) == sizeof(RTL_CONDITION_VARIABLE));

/* With the bucket locked. */
static VOID RtlpSetSleepers(PRTLP_CONDITION_WORD Word, ULONG Sleepers)
{
    Word->Sleepers = Sleepers;
    /* relaxed: see 2 */
    __atomic_store_n(&Word->Slept, Sleepers != 0, __ATOMIC_RELAXED);
}

VOID RtlInitializeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    memset(ConditionVariable, 0, sizeof(*ConditionVariable));
}

static VOID RtlpEnterCondition(PRTLP_WAITER Waiter, PRTL_CONDITION_VARIABLE ConditionVariable)
{
    PRTLP_CONDITION_WORD Word = (PRTLP_CONDITION_WORD)ConditionVariable;
    RtlpInitializeWaiter(Waiter, ConditionVariable, RtlpConditionWait);
    KiEnterService(Waiter->Thread);
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Waiter.Key, Waiter->Thread);
    ExpInsertWaiter(Bucket, &Waiter->Waiter);
    RtlpSetSleepers(Word, Word->Sleepers + 1);
    ExpUnlockWaiters(Bucket, Waiter->Thread);
}

static BOOLEAN RtlpTakeOutOfCondition(PRTLP_WAITER Waiter)
{
    PRTLP_CONDITION_WORD Word = Waiter->Waiter.Key.Key;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Waiter->Waiter.Key, Waiter->Thread);
    BOOLEAN Taken = ExpTakeListedWaiter(Bucket, &Waiter->Waiter);
    if (Taken) {
        RtlpSetSleepers(Word, Word->Sleepers - 1);
    }
    ExpUnlockWaiters(Bucket, Waiter->Thread);
    return Taken;
}

static NTSTATUS RtlpAwaitConditionWake(PRTLP_WAITER Waiter, PLARGE_INTEGER Timeout)
{
    return RtlpSpinForWake(Waiter) ? STATUS_SUCCESS : RtlpAwaitWake(Waiter, Timeout, RtlpTakeOutOfCondition);
}

NTSTATUS RtlSleepConditionVariableCS(PRTL_CONDITION_VARIABLE ConditionVariable, PRTL_CRITICAL_SECTION CriticalSection,
                                     PLARGE_INTEGER Timeout)
{
    RTLP_WAITER Waiter;
    RtlpEnterCondition(&Waiter, ConditionVariable);
    RtlLeaveCriticalSection(CriticalSection);
    NTSTATUS Status = RtlpAwaitConditionWake(&Waiter, Timeout);
    KiExitService(Waiter.Thread);
    RtlEnterCriticalSection(CriticalSection);
    return Status;
}

NTSTATUS RtlSleepConditionVariableSRW(PRTL_CONDITION_VARIABLE ConditionVariable, PRTL_SRWLOCK SRWLock,
                                      PLARGE_INTEGER Timeout, ULONG Flags)
{
    BOOLEAN Shared = (Flags & RTL_CONDITION_VARIABLE_LOCKMODE_SHARED) != 0;
    RTLP_WAITER Waiter;
    if (Flags & ~(ULONG)RTL_CONDITION_VARIABLE_LOCKMODE_SHARED) {
        return STATUS_INVALID_PARAMETER;
    }
    /* Before the waiter is in the hash: raising leaves the frame that it is in. relaxed: the caller holds the lock, or
       misuses it anyway */
    ULONG_PTR Value = __atomic_load_n((volatile ULONG_PTR *)SRWLock, __ATOMIC_RELAXED);
    if (!(Shared ? ExpIsPushLockHeldShared(Value) : ExpIsPushLockHeldExclusive(Value))) {
        RtlRaiseStatus(STATUS_RESOURCE_NOT_OWNED);
    }
    RtlpEnterCondition(&Waiter, ConditionVariable);
    if (Shared) {
        RtlReleaseSRWLockShared(SRWLock);
    } else {
        RtlReleaseSRWLockExclusive(SRWLock);
    }
    NTSTATUS Status = RtlpAwaitConditionWake(&Waiter, Timeout);
    KiExitService(Waiter.Thread);
    if (Shared) {
        RtlAcquireSRWLockShared(SRWLock);
    } else {
        RtlAcquireSRWLockExclusive(SRWLock);
    }
    return Status;
}

static VOID RtlpWakeCondition(PRTL_CONDITION_VARIABLE ConditionVariable, ULONG Most)
{
    PRTLP_CONDITION_WORD Word = (PRTLP_CONDITION_WORD)ConditionVariable;
    LIST_ENTRY Taken;
    /* relaxed: see 2 */
    if (!__atomic_load_n(&Word->Slept, __ATOMIC_RELAXED)) {
        return;
    }
    PKTHREAD Thread = KiCurrentThread();
    EXP_WAIT_KEY Key = RtlpWaitKey(ConditionVariable, RtlpConditionWait);
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Key, Thread);
    ULONG Woken = ExpTakeWaiters(Bucket, &Key, Most, &Taken);
    RtlpSetSleepers(Word, Woken == Most ? Word->Sleepers - Woken : 0);
    ExpUnlockWaiters(Bucket, Thread);
    RtlpWakeTakenWaiters(&Taken);
}

VOID RtlWakeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    RtlpWakeCondition(ConditionVariable, 1);
}

VOID RtlWakeAllConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    RtlpWakeCondition(ConditionVariable, MAXULONG);
}
