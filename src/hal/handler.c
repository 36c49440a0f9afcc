/*
 * handler.c: signal handlers installed in front of the program's.
 *
 * 1. Each of our handlers keeps the action that it replaced, its predecessor. Signals that are not ours are passed to
 *    the predecessor, with the same arguments and under the same mask.
 * 2. A program may install its own handler later, or restore the default action. Users of a chain check before they rely
 *    on it, and put another handler in front. Because each of ours knows its own predecessor, a program's handler may
 *    chain to the one that it replaced, or restore it. A signal that arrives before the check goes to the program.
 * 3. The lock is held with every signal blocked, so no handler on this thread can try to take it. A forked child frees
 *    its parent's lock.
 */
#include "halp.h"

#include <pthread.h>
#include <unistd.h>

static volatile ULONG HalpHandlerLock; /* see HalpLockMasked */

VOID HalpLockMasked(volatile ULONG *Lock, sigset_t *Before)
{
    ULONG Process = (ULONG)getpid();
    ULONG Holder = 0;
    ULONG Round = 0;
    sigset_t All;

    sigfillset(&All);
    pthread_sigmask(SIG_SETMASK, &All, Before);
    /* acquire: pairs with the release in HalpUnlockMasked */
    while (!__atomic_compare_exchange_n(Lock, &Holder, Process, FALSE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (Holder == Process) {
            HalGiveWay(Round++);
            Holder = 0;
        }
    }
}

VOID HalpUnlockMasked(volatile ULONG *Lock, const sigset_t *Before)
{
    __atomic_store_n(Lock, 0, __ATOMIC_RELEASE);
    pthread_sigmask(SIG_SETMASK, Before, NULL);
}

VOID HalpLockHandlers(sigset_t *Before)
{
    HalpLockMasked(&HalpHandlerLock, Before);
}

VOID HalpUnlockHandlers(const sigset_t *Before)
{
    HalpUnlockMasked(&HalpHandlerLock, Before);
}

static BOOLEAN HalpIsOwnHandler(const HALP_CHAIN *Chain, const struct sigaction *Action)
{
    for (ULONG Place = 0; Place < HALP_PLACES; Place++) {
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

/* Mask and flags count only for a handler. */
static BOOLEAN HalpIsSameAction(const struct sigaction *First, const struct sigaction *Second)
{
    if (!HalpHasHandler(First)) {
        return First->sa_handler == Second->sa_handler;
    }
    return First->sa_sigaction == Second->sa_sigaction && First->sa_flags == Second->sa_flags &&
           memcmp(&First->sa_mask, &Second->sa_mask, sizeof(First->sa_mask)) == 0;
}

/* A place never changes its predecessor: a place that already has this one is reused. */
BOOLEAN HalpStandInFront(HALP_CHAIN *Chain)
{
    struct sigaction Own = {.sa_flags = SA_SIGINFO | Chain->Flags};
    struct sigaction Present;
    ULONG Place = 0;

    if (sigaction(Chain->Signal, NULL, &Present) != 0) {
        return FALSE;
    }
    if (HalpIsOwnHandler(Chain, &Present)) {
        return TRUE;
    }
    while (Place < Chain->Used && !HalpIsSameAction(&Chain->Predecessor[Place].Action, &Present)) {
        Place += 1;
    }
    if (Place == HALP_PLACES) {
        return FALSE;
    }
    if (Place == Chain->Used) {
        Chain->Predecessor[Place].Action = Present;
        Chain->Used += 1;
    }
    Own.sa_sigaction = Chain->Handler[Place];
    Own.sa_mask = Present.sa_mask;
    Own.sa_flags |= Present.sa_handler == SIG_DFL ? Chain->FlagsIfDefault : Present.sa_flags & Chain->InheritedFlags;
    /* A one-shot handler that is installed now has not had its signal. */
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
