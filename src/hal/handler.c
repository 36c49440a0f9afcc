/*
 * handler.c: handlers of this library that stand in front of the program's.
 *
 * 1. What was there before is kept with the handler that took its place: the signals that are not ours go on to it
 *    with the same arguments, under the same mask.
 * 2. A program may install its own handler later, or go back to the default action. Whoever relies on a handler of ours
 *    looks and puts another one in front. As each of ours knows its own predecessor, it does not matter whether the
 *    program's handler passes signals on to the one it had replaced, or puts that one back. A signal that comes before
 *    somebody has looked ends up with the program.
 * 3. The lock is held with every signal blocked, so that no handler on this thread asks for it meanwhile. A forked
 *    child frees the lock of its parent.
 */
#include "handler.h"

#include <pthread.h>
#include <unistd.h>

static volatile ULONG HalpHandlerLock; /* 0, or the process id of the holder */

static VOID HalpAcquireHandlerLock(VOID)
{
    ULONG Process = (ULONG)getpid();
    ULONG Holder = 0;
    ULONG Round = 0;

    /* acquire: pairs with the release in HalpUnlockHandlers */
    while (!__atomic_compare_exchange_n(&HalpHandlerLock, &Holder, Process, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (Holder == Process) {
            HalGiveWay(Round++);
            Holder = 0;
        }
    }
}

VOID HalpLockHandlers(sigset_t *Before)
{
    sigset_t All;

    sigfillset(&All);
    pthread_sigmask(SIG_SETMASK, &All, Before);
    HalpAcquireHandlerLock();
}

VOID HalpUnlockHandlers(const sigset_t *Before)
{
    __atomic_store_n(&HalpHandlerLock, 0, __ATOMIC_RELEASE);
    pthread_sigmask(SIG_SETMASK, Before, NULL);
}

static BOOLEAN HalpIsOwnHandler(const HALP_CHAIN *Chain, const struct sigaction *Action)
{
    ULONG Place;

    for (Place = 0; Place < HALP_PLACES; Place++) {
        if ((Action->sa_flags & SA_SIGINFO) != 0 && Action->sa_sigaction == Chain->Handler[Place]) {
            return TRUE;
        }
    }
    return FALSE;
}

BOOLEAN HalpIsInFront(const HALP_CHAIN *Chain)
{
    struct sigaction Present;

    return sigaction(Chain->Signal, NULL, &Present) == 0 && HalpIsOwnHandler(Chain, &Present);
}

BOOLEAN HalpHasHandler(const struct sigaction *Action)
{
    return Action->sa_handler != SIG_DFL && Action->sa_handler != SIG_IGN;
}

/* Mask and flags belong to a handler. */
static BOOLEAN HalpIsSameAction(const struct sigaction *First, const struct sigaction *Second)
{
    if (!HalpHasHandler(First)) {
        return First->sa_handler == Second->sa_handler;
    }
    return First->sa_sigaction == Second->sa_sigaction && First->sa_flags == Second->sa_flags &&
           memcmp(&First->sa_mask, &Second->sa_mask, sizeof(First->sa_mask)) == 0;
}

/* The place whose handler stands in front of this action; a place is never given another predecessor. */
static ULONG HalpPlaceBefore(HALP_CHAIN *Chain, const struct sigaction *Action)
{
    ULONG Place;

    for (Place = 0; Place < Chain->Used; Place++) {
        if (HalpIsSameAction(&Chain->Predecessor[Place].Action, Action)) {
            return Place;
        }
    }
    if (Chain->Used < HALP_PLACES) {
        Chain->Predecessor[Place].Action = *Action;
        Chain->Used = Place + 1;
    }
    return Place;
}

BOOLEAN HalpStandInFront(HALP_CHAIN *Chain)
{
    struct sigaction Present;
    struct sigaction Own = {.sa_flags = SA_SIGINFO | Chain->Flags};
    ULONG Place;

    if (sigaction(Chain->Signal, NULL, &Present) != 0) {
        return FALSE;
    }
    if (HalpIsOwnHandler(Chain, &Present)) {
        return TRUE;
    }
    Place = HalpPlaceBefore(Chain, &Present);
    if (Place == HALP_PLACES) {
        return FALSE;
    }
    Own.sa_sigaction = Chain->Handler[Place];
    Own.sa_mask = Present.sa_mask;
    Own.sa_flags |= Present.sa_handler == SIG_DFL ? Chain->FlagsIfDefault : Present.sa_flags & Chain->InheritedFlags;
    /* A one-shot handler that is there now has been put there anew. */
    __atomic_store_n(&Chain->Predecessor[Place].Spent, FALSE, __ATOMIC_RELAXED);
    return sigaction(Chain->Signal, &Own, NULL) == 0;
}

BOOLEAN HalpPassOn(HALP_PREDECESSOR *Predecessor, int Signal, siginfo_t *Information, VOID *Context)
{
    const struct sigaction *Action = &Predecessor->Action;
    BOOLEAN Spent = (Action->sa_flags & SA_RESETHAND) != 0 &&
                    __atomic_exchange_n(&Predecessor->Spent, TRUE, __ATOMIC_RELAXED);

    if (Action->sa_handler == SIG_IGN) {
        return Information->si_code <= 0; /* a fault cannot be ignored */
    }
    if (Spent || Action->sa_handler == SIG_DFL) {
        return FALSE;
    }
    if ((Action->sa_flags & SA_SIGINFO) != 0) {
        Action->sa_sigaction(Signal, Information, Context);
    } else {
        Action->sa_handler(Signal);
    }
    return TRUE;
}
