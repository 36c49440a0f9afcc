/*
 * fairness.h: turns, which bound how long a running thread barges past the waiters of a lock.
 *
 * A running thread takes a free lock past its sleeping waiters without limit. That makes a contended lock fast: no
 * thread has to be woken, and the lines that the lock protects stay in one cache. It also makes the lock unfair for as
 * long as the host lets the thread run. So
 * 1. A thread counts its passes: how often it has released the lock while others waited for it. After each KI_TURN passes
 *    it yields, because that is usually all that a woken waiter needs. After KI_LONGEST_TURN its turn is over: when it
 *    next acquires the lock and others wait, it queues behind them even if the lock is free.
 * 2. A thread that finds locks held yields when it has had its processor for a while (hal/fairshare.c). If more threads
 *    than processors contend for a lock and hardly any of them sleeps, this is their turn, not the host's much longer
 *    slice.
 * 3. In a crowd, dozens of threads to a processor, threads in lockstep would never find the lock held and run until the host's
 *    tick. Two things end that:
 *    a. A thread checks rarely even if the owner is near (KiLockUse): then one thread has a run of sections, and lockstep does
 *       not arise. mutex-64 on near lines of AMD EPYC, family 26, SRW lock, 27.6 M/s instead of 19.0, at a fairness of 0.53
 *       instead of 0.60; critical section, 26.2 instead of 17.3, at 0.50 instead of 0.53.
 *    b. A lock without bounded barging, a critical section or fast mutex, also queues a thread as soon as it has spun in vain.
 *       While a thread is queued the inline fast paths fail, so threads in lockstep pass waiters instead; there a pass counts as
 *       contention and 2 ends their turns. Critical section: a fairness of 0.62 instead of 0.30. (Rejected for pushlocks and SRW
 *       locks: 19.5 M/s instead of 27.5 at the same fairness. Rejected for fewer threads: their turns are short enough.)
 *
 * The count of passes needs no space in the lock: a thread that overtakes others repeatedly uses one lock. The count is
 * that of the lock at which it last overtook a waiter. The address is only compared. A new lock at an old address
 * inherits the count, which does no harm.
 */
#ifndef INTERLOCK_KE_FAIRNESS_H
#define INTERLOCK_KE_FAIRNESS_H

#include "park.h"

#define KI_TURN 4096
#define KI_LONGEST_TURN (8 * KI_TURN)

/* The thread has queued behind others. */
FORCEINLINE VOID KiBeginTurn(PKTHREAD Thread, volatile VOID *Lock)
{
    Thread->TurnLock = Lock;
    Thread->TurnPasses = 0;
    Thread->TurnOver = FALSE;
}

/* The thread is about to release Lock, for which others wait. TRUE: it should yield afterwards. */
FORCEINLINE BOOLEAN KiCountPass(PKTHREAD Thread, volatile VOID *Lock)
{
    if (Thread->TurnLock != Lock) {
        KiBeginTurn(Thread, Lock);
    }
    Thread->TurnPasses += 1;
    if (Thread->TurnPasses % KI_TURN != 0) {
        return FALSE;
    }
    Thread->TurnOver = Thread->TurnPasses >= KI_LONGEST_TURN;
    return TRUE;
}

FORCEINLINE BOOLEAN KiIsTurnOver(PKTHREAD Thread, volatile VOID *Lock)
{
    return Thread->TurnOver && Thread->TurnLock == Lock;
}

/* The thread has found a lock held. */
FORCEINLINE VOID KiCountContention(PKTHREAD Thread)
{
    HalCountContention(&Thread->HostTurn);
}

/* After the release that KiCountPass has counted. Queues: see 3 b. */
FORCEINLINE VOID KiEndPass(PKTHREAD Thread, BOOLEAN Yields, BOOLEAN Queues)
{
    if (Queues && HalIsCrowded()) {
        KiCountContention(Thread);
    } else if (Yields) {
        KiYieldOnce();
    }
}

/* How a thread waits for a lock: see 3 a. */
FORCEINLINE KI_PARK_USE KiLockUse(PKTHREAD Thread)
{
    return KiIsNear(Thread) && !HalIsCrowded() ? KiParkForNearPushLock : KiParkForPushLock;
}

/*
 * KiBeginPatience for a lock: see 3; Queues: b. A policy's rare checks let the owner pass several times, which pays if both threads
 * take the lock in a loop. A thread that has waited for something else in between often finds its waker about to release:
 * its gaps grow from a single pause (condition-two on Intel Xeon).
 */
FORCEINLINE VOID KiBeginLockPatience(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use, BOOLEAN Queues)
{
    KiBeginPatience(Patience, Thread, Use);
    if (Queues && HalIsCrowded()) {
        Patience->Yields = 0;
    }
    if (Thread->HasWaited) {
        Thread->HasWaited = FALSE;
        Patience->Gap = Patience->Spun = 1;
    } else if (Use == KiParkForPushLock && Patience->Spins != 0) {
        KiStretchGaps(Patience, KiIsNear(Thread));
    }
}

#endif
