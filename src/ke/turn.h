/*
 * turn.h: turns.
 *
 * A thread that runs takes a free lock past those that sleep for it, as often as it likes: that makes a contended lock
 * fast, because nobody has to be woken and the lines that the lock protects stay where they are. It makes it unfair,
 * too, for as long as the host lets the thread run. So a thread counts how often it has let go of the lock while others
 * waited for it: its passes. After KI_TURN of them its turn is over as soon as the next one is there to take the lock,
 * and after KI_LONGEST_TURN in any case. Then, when it wants the lock and somebody waits, it waits behind them, though
 * the lock be free. So each gets its turn after the other, few of them are awake at a time, and all it costs is a wake
 * per turn.
 *
 * The count has no place in the lock, and needs none: whoever passes others again and again uses one lock. A thread
 * knows its passes at the lock that it last passed somebody at. The address is only compared; a new lock in the place
 * of an old one begins with the count of the old one, which is of no consequence.
 */
#ifndef INTERLOCK_KE_TURN_H
#define INTERLOCK_KE_TURN_H

#include "ki.h"

#define KI_TURN 2000
#define KI_LONGEST_TURN (16 * KI_TURN)
#define KI_TURN_NOTICE 64 /* passes between two looks for the next one */

/* The thread has waited behind others. */
FORCEINLINE VOID KiBeginTurn(PKTHREAD Thread, volatile VOID *Lock)
{
    Thread->TurnLock = Lock;
    Thread->TurnPasses = 0;
    Thread->TurnOver = FALSE;
}

/* The thread lets go of Lock, for which others wait. TRUE: time to look whether the next one is there. */
FORCEINLINE BOOLEAN KiCountPass(PKTHREAD Thread, volatile VOID *Lock)
{
    if (Thread->TurnLock != Lock) {
        KiBeginTurn(Thread, Lock);
    }
    Thread->TurnPasses += 1;
    return Thread->TurnPasses >= KI_TURN && Thread->TurnPasses % KI_TURN_NOTICE == 0;
}

FORCEINLINE VOID KiEndTurn(PKTHREAD Thread, BOOLEAN NextIsThere)
{
    Thread->TurnOver = NextIsThere || Thread->TurnPasses >= KI_LONGEST_TURN;
}

FORCEINLINE BOOLEAN KiIsTurnOver(PKTHREAD Thread, volatile VOID *Lock)
{
    return Thread->TurnOver && Thread->TurnLock == Lock;
}

#endif
