/*
 * pushlock.h: the pushlock algorithm, for whoever brings a way to sleep and wake. Pushlocks of the kernel and the slim
 * reader/writer locks of user mode are both this.
 */
#ifndef INTERLOCK_PUSHLOCK_H
#define INTERLOCK_PUSHLOCK_H

#include <interlock/ex.h>

#include "../ke/ki.h"

#define EXP_PUSH_LOCK_BITS ((ULONG_PTR)0xf)

C_ASSERT(sizeof(EX_PUSH_LOCK_WAIT_BLOCK) == 64);

/* How far a waiter's block has got. The one who tells it exchanges the word and touches the block no more, unless the
   waiter had gone to sleep: then the wake of the sleeper is the last touch. */
typedef enum _EXP_WAIT_STATE {
    ExpAwake,
    ExpSleeping,
    ExpWoken,       /* try again; nobody is left in the queue */
    ExpWokenWaking, /* try again; the Waking bit is yours now */
    ExpGranted      /* the lock is yours */
} EXP_WAIT_STATE;

/* Sleep returns when Wake was called for the block, not before: Wake may still be about to touch it. Lock is what is
   waited for. */
typedef struct _EXP_PUSH_LOCK_METHODS {
    VOID (*Prepare)(PEX_PUSH_LOCK_WAIT_BLOCK Block);
    VOID (*Sleep)(PEX_PUSH_LOCK_WAIT_BLOCK Block, volatile ULONG_PTR *Lock);
    VOID (*Wake)(PEX_PUSH_LOCK_WAIT_BLOCK Block);
    VOID (*NotOwned)(volatile ULONG_PTR *Lock); /* a release of what is not held; does not return */
    ULONG Kind; /* KI_LOCK_KIND, for traces */
} EXP_PUSH_LOCK_METHODS;

VOID ExpAcquireExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpAcquireShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryAcquireExclusive(volatile ULONG_PTR *Lock);
BOOLEAN ExpTryAcquireShared(volatile ULONG_PTR *Lock);
VOID ExpReleaseExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleaseShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpRelease(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods); /* whichever way it is held */

/* The same by the owner of another one that comes first for everybody: that is where turns are counted and end. */
VOID ExpAcquireInnerExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleaseInnerExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);

VOID ExpConvertToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryConvertToExclusive(volatile ULONG_PTR *Lock);
BOOLEAN ExpIsHeldExclusively(ULONG_PTR Value);
BOOLEAN ExpIsHeldShared(ULONG_PTR Value);

/*
 * Before a waiter sleeps it looks for a while, first after pauses, then by giving the host's processor away: what it
 * waits for may be that somebody who was stopped by the host gets on. Both together take less than being put to sleep
 * and woken does, so in the worst case a wait costs twice what it has to.
 */
typedef struct _EXP_PATIENCE {
    ULONG Spins;      /* pauses of the processor that are left */
    ULONG Pauses;     /* how many of them before the next look: doubled each time, up to */
    ULONG MostPauses;
    ULONG Yields;
} EXP_PATIENCE;

EXP_PATIENCE ExpFreshPatience(BOOLEAN Near); /* to who changes what is looked at, see ke/turn.h */
BOOLEAN ExpStayAwake(EXP_PATIENCE *Patience); /* a moment passes; FALSE: time to sleep */

/* The same for who looks at a word in which it has found Value, and which tells how near the others are. */
BOOLEAN ExpLookAgain(PKTHREAD Thread, volatile ULONG_PTR *Word, ULONG_PTR Value, EXP_PATIENCE *Patience);

/* A block and its waiter. */
VOID ExpTell(PEX_PUSH_LOCK_WAIT_BLOCK Block, EXP_WAIT_STATE State, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpFallAsleep(PEX_PUSH_LOCK_WAIT_BLOCK Block); /* FALSE: it was told already */

FORCEINLINE EXP_WAIT_STATE ExpStateOf(PEX_PUSH_LOCK_WAIT_BLOCK Block)
{
    /* acquire: pairs with the exchange in ExpTell */
    return (EXP_WAIT_STATE)__atomic_load_n(&Block->State, __ATOMIC_ACQUIRE);
}

/* pushlock.c: sleeping on the event in the block. */
extern const EXP_PUSH_LOCK_METHODS ExpPushLockMethods;
const EXP_PUSH_LOCK_METHODS *ExpMethodsFor(ULONG Flags);

/* The rules: level, APCs, flags. The inline paths of the public header do not look. */
VOID ExpCheckFlags(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExpCheckAcquire(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExpCheckRelease(PEX_PUSH_LOCK PushLock, ULONG Flags);

FORCEINLINE VOID ExpVerifyFlags(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpCheckFlags(PushLock, Flags);
    }
}

FORCEINLINE VOID ExpVerifyAcquire(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpCheckAcquire(PushLock, Flags);
    }
}

FORCEINLINE VOID ExpVerifyRelease(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpCheckRelease(PushLock, Flags);
    }
}

FORCEINLINE BOOLEAN ExpGuessSharedAcquire(PEX_PUSH_LOCK PushLock)
{
    ULONG_PTR Free = 0;
    /* acquire: pairs with the release of an exclusive owner */
    return __atomic_compare_exchange_n(PushLock, &Free, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC, FALSE,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

FORCEINLINE VOID ExpAcquireInner(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    ULONG_PTR Free = 0;
    /* acquire: pairs with the release of who held it */
    if (!__atomic_compare_exchange_n(PushLock, &Free, EX_PUSH_LOCK_LOCK, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        ExpAcquireInnerExclusive(PushLock, ExpMethodsFor(Flags));
    }
}

FORCEINLINE VOID ExpReleaseInner(PEX_PUSH_LOCK PushLock)
{
    ULONG_PTR Held = EX_PUSH_LOCK_LOCK;
    /* release: pairs with the acquire of who holds it next */
    if (!__atomic_compare_exchange_n(PushLock, &Held, 0, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        ExpReleaseInnerExclusive(PushLock, &ExpPushLockMethods);
    }
}

#endif
