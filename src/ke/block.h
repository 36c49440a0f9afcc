/*
 * block.h: the part of a wait in which the thread is off the processor.
 *
 * In line wherever a thread waits, and as flat as it can be on the way back from the host: when the host has switched
 * threads, the processor no longer knows where the calls that were made before return to, and every return from one of
 * them is mispredicted. Where a signaler wakes a thread, the calls down to the host are jumps for the same reason.
 */
#ifndef INTERLOCK_BLOCK_H
#define INTERLOCK_BLOCK_H

#include "../trace/trace.h"
#include "wait.h"

#define KI_LAST_SWAPPABLE_PRIORITY 24

/* The three conditions under which a waiting thread's stack may go: user mode, not forbidden, not time-critical. */
FORCEINLINE BOOLEAN KiIsStackSwappable(PKI_WAIT Wait)
{
    return Wait->Mode == UserMode && Wait->Thread->EnableStackSwap &&
           __atomic_load_n(&Wait->Thread->Priority, __ATOMIC_RELAXED) <= KI_LAST_SWAPPABLE_PRIORITY;
}

FORCEINLINE VOID KiEnterWaitState(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    __atomic_store_n(&Thread->State, Waiting, __ATOMIC_RELAXED);
    /* relaxed: others only show it */
    __atomic_store_n(&Thread->WaitReason, (UCHAR)Wait->Reason, __ATOMIC_RELAXED);
    Thread->WaitMode = Wait->Mode;
    Thread->WaitIrql = Thread->Irql;
    Thread->Alertable = Wait->Alertable;
    Thread->WaitDeadline = Wait->Deadline;
    Thread->WaitTime = (ULONG)(HalDispatch.QueryTickTime() / KI_TICK);
    if (Wait->Deadline.Clock != HalNoDeadline) {
        KiPrepareBlock(&Thread->WaitBlock[TIMER_WAIT_BLOCK], Thread, &Thread->Timer, WaitAny, (USHORT)STATUS_TIMEOUT);
        Thread->Timer.DueTime.QuadPart = Wait->Deadline.Time;
    }
    if (Wait->WaitType != WaitDequeue) { /* a dequeue has done its accounting when it was linked */
        KiBlockFromQueue(Thread);
    }
    if (KiIsStackSwappable(Wait)) {
        KiListWaitingThread(Thread);
    }
}

FORCEINLINE VOID KiLeaveWaitState(PKI_WAIT Wait, BOOLEAN EndedByOther)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    if (Thread->WaitListed) {
        KiUnlistWaitingThread(Thread);
    }
    if (!EndedByOther || (Register & KI_WAIT_STATE_MASK) != WaitCommitted) {
        KiUnblockFromQueue(Thread);
    }
    Thread->WaitBlock[TIMER_WAIT_BLOCK].BlockState = WaitBlockInactive;
    if (Register & (KI_WAIT_PRIORITY | KI_WAIT_AFFINITY)) { /* nobody sets them once the wait is not Active */
        __atomic_and_fetch(&Thread->WaitRegister, ~(KI_WAIT_PRIORITY | KI_WAIT_AFFINITY), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&Thread->State, Running, __ATOMIC_RELAXED);
    Thread->ContextSwitches += 1;
}

/* A lightweight suspend takes the deadline away for its duration. */
FORCEINLINE const HAL_DEADLINE *KiEffectiveDeadline(PKTHREAD Thread)
{
    static const HAL_DEADLINE NoDeadline = {HalNoDeadline, 0};
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    if (!(Register & KI_WAIT_ACTIVE) || (Register & KI_WAIT_STATE_MASK) != WaitCommitted) {
        return &NoDeadline;
    }
    return &Thread->WaitDeadline;
}

/* Earlier than the deadline, if the thread has to stand in for the clock meanwhile: see clock.c. */
FORCEINLINE const HAL_DEADLINE *KiNextWake(PKTHREAD Thread, PHAL_DEADLINE Nap)
{
    const HAL_DEADLINE *Deadline = KiEffectiveDeadline(Thread);
    return __builtin_expect(KiIsClockMissing(), 0) ? KiShortenToNap(Thread, Deadline, Nap) : Deadline;
}

/* TRUE: woken. FALSE: the time in *Until has come, and the thread has ended its wait itself. */
FORCEINLINE BOOLEAN KiPark(PKTHREAD Thread, const HAL_DEADLINE **Until, PHAL_DEADLINE Nap)
{
    for (;;) {
        ULONG Word = KI_AWAKE;
        /* acquire: pairs with the exchange in KiWakeThread */
        if (!__atomic_compare_exchange_n(&Thread->WakeWord, &Word, KI_SLEEPING, FALSE, __ATOMIC_ACQUIRE,
                                         __ATOMIC_ACQUIRE) &&
            Word == KI_WOKEN) {
            return TRUE;
        }
        *Until = KiNextWake(Thread, Nap);
        if (!HalDispatch.Wait(&Thread->WakeWord, KI_SLEEPING, *Until) && KiEndOwnWait(Thread)) {
            return FALSE;
        }
    }
}

FORCEINLINE NTSTATUS KiCommitAndSleep(PKI_WAIT Wait, BOOLEAN *EndedByOther, LONG_PTR *Result)
{
    PKTHREAD Thread = Wait->Thread;
    const HAL_DEADLINE *Until;
    HAL_DEADLINE Nap;
    NTSTATUS Status;

    KiEnterWaitState(Wait);
    Status = KiCommitWait(Thread);
    if (Status != STATUS_PENDING && Status != STATUS_WAIT_0) {
        *EndedByOther = FALSE;
        *Result = Status;
        return Status;
    }
    KiExitDispatcher(Thread);
    if (!Wait->Spun) {
        Wait->Spun = TRUE;
        KiSpinForWake(Thread);
    }
    *EndedByOther = KiPark(Thread, &Until, &Nap);
    KiEnterDispatcher(Thread);
    *Result = *EndedByOther ? Thread->WaitStatus : Until == &Nap ? STATUS_KERNEL_APC : STATUS_TIMEOUT;
    return (NTSTATUS)*Result;
}

FORCEINLINE NTSTATUS KiCommitAndPark(PKI_WAIT Wait, BOOLEAN *EndedByOther, LONG_PTR *Result)
{
    KTRACE_WAIT_BEGIN(Wait);
    NTSTATUS Status = KiCommitAndSleep(Wait, EndedByOther, Result);
    KTRACE_WAIT_END(Wait, *Result);
    return Status;
}

#endif
