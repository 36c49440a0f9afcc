/*
 * turn.h: turns, and how a thread finds out how to wait for a lock.
 *
 * A thread that runs takes a free lock past those that sleep for it, as often as it likes: that makes a contended lock
 * fast, because nobody has to be woken and the lines that the lock protects stay where they are. It makes it unfair,
 * too, for as long as the host lets the thread run. So
 * 1. a thread counts how often it has let go of the lock while others waited for it: its passes. After each KI_TURN of
 *    them it gives its processor away, which is what the one who was woken needs most often; after KI_LONGEST_TURN its
 *    turn is over: when it wants the lock and somebody waits, it waits behind them, though the lock be free;
 * 2. a thread that finds locks held gives its processor away when it has had that for a while (hal/turn.c). Where more
 *    threads than processors want a lock and hardly anybody sleeps, that and not the host's much longer slice is their
 *    turn.
 *
 * The count of passes has no place in the lock, and needs none: whoever passes others again and again uses one lock. A
 * thread knows its passes at the lock that it last passed somebody at. The address is only compared; a new lock in the
 * place of an old one begins with the count of the old one, which is of no consequence.
 *
 * How often to look at a lock that is held depends on what a look costs the holder. Two hardware threads of one core
 * share their caches: a look costs nothing, and who looks all the time takes the lock the moment it is free, so both get
 * on side by side. Between two cores each look takes the line away, and with it every section becomes several times
 * longer: there it is best to look rarely, while the other one has a run of sections undisturbed. The host does not say
 * which it is, and on a virtual machine it changes. So now and then a thread times a look at a word that was changed
 * while it spun, by somebody who therefore runs on another processor: it was either near or far. Some near looks in a
 * row outweigh a far one, which may have been an interrupt.
 */
#ifndef INTERLOCK_KE_TURN_H
#define INTERLOCK_KE_TURN_H

#include "ki.h"

#define KI_TURN 4096
#define KI_LONGEST_TURN (8 * KI_TURN)

#define KI_NEAR_CYCLES 150 /* a line that comes from another core takes longer */
#define KI_MOST_NEAR_LOOKS 7
#define KI_LOOKS_BETWEEN_TIMED 255

/* The thread has waited behind others. */
FORCEINLINE VOID KiBeginTurn(PKTHREAD Thread, volatile VOID *Lock)
{
    Thread->TurnLock = Lock;
    Thread->TurnPasses = 0;
    Thread->TurnOver = FALSE;
}

/* The thread lets go of Lock, for which others wait. TRUE: when it has, it is to give its processor away. */
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
FORCEINLINE VOID KiCountWait(PKTHREAD Thread)
{
    HalCountWait(&Thread->HostTurn);
}

FORCEINLINE BOOLEAN KiIsNear(PKTHREAD Thread)
{
    return Thread->NearLooks != 0;
}

/* The thread has spun since it found Before in the word. Only a word that was changed meanwhile tells anything. */
FORCEINLINE VOID KiTimeLook(PKTHREAD Thread, const volatile ULONG_PTR *Word, ULONG_PTR Before)
{
    ULONG Cycles;
    if (Thread->UntimedLooks != 0) {
        Thread->UntimedLooks -= 1;
    } else if (HalTimedRead(Word, &Cycles) != Before) {
        Thread->UntimedLooks = KI_LOOKS_BETWEEN_TIMED;
        if (Cycles >= KI_NEAR_CYCLES) {
            Thread->NearLooks -= Thread->NearLooks != 0;
        } else {
            Thread->NearLooks += Thread->NearLooks < KI_MOST_NEAR_LOOKS;
        }
    }
}

#endif
