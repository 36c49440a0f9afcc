/*
 * pushlock.h: the pushlock algorithm, over any way to sleep and wake. Kernel pushlocks and user-mode SRW locks both use
 * it. Theory in pushlock.c.
 */
#ifndef INTERLOCK_PUSHLOCK_H
#define INTERLOCK_PUSHLOCK_H

#include <interlock/ex.h>

#include "../ke/lockorder.h"

#define EXP_PUSH_LOCK_BITS ((ULONG_PTR)0xf)

/* A waiter, in its own stack frame. For the public interface it is an opaque EX_PUSH_LOCK_WAIT_BLOCK. */
typedef struct _EXP_WAIT_BLOCK {
    __extension__ union {
        KEVENT WakeEvent;
        __extension__ struct {
            PKTHREAD Thread;               /* with an alert in place of the event */
            volatile ULONG Woken;
        };
    };
    struct _EXP_WAIT_BLOCK *Next;          /* the previous waiter; NULL in the oldest */
    struct _EXP_WAIT_BLOCK *volatile Last; /* the oldest, once an owner of K has filled it in; NULL: unknown */
    union {
        struct _EXP_WAIT_BLOCK *Previous;  /* the next newer waiter; set by an owner of K */
        PVOID Address;                     /* address-based: what is waited for */
    };
    volatile LONG ShareCount;              /* in the oldest, unless K is set: how many share the lock; 0: exclusive */
    volatile ULONG State;                  /* EXP_WAIT_STATE */
    BOOLEAN Exclusive;
    BOOLEAN AutoBoost;
    UCHAR Losses;                          /* how often it was woken in vain */
    ULONG ProcessId;                       /* of the process that queued the block */
} DECLSPEC_ALIGN(16) EXP_WAIT_BLOCK, *PEXP_WAIT_BLOCK;

C_ASSERT(sizeof(EXP_WAIT_BLOCK) == 64);
C_ASSERT(sizeof(EXP_WAIT_BLOCK) == sizeof(EX_PUSH_LOCK_WAIT_BLOCK));
C_ASSERT(FIELD_OFFSET(EXP_WAIT_BLOCK, ProcessId) == 60);

/* A waker exchanges State. That is its last access to the block, unless the waiter sleeps: then Wake is. */
typedef enum _EXP_WAIT_STATE {
    ExpAwake,
    ExpSleeping,
    ExpWoken,       /* retry; the queue was empty afterwards */
    ExpWokenWaking, /* retry, as the owner of K */
    ExpGranted      /* the waiter owns the lock */
} EXP_WAIT_STATE;

/* Sleep returns after Wake was called for the block, and not before: Wake may still be about to access it. */
typedef struct _EXP_PUSH_LOCK_METHODS {
    VOID (*Prepare)(PEXP_WAIT_BLOCK Block);
    VOID (*Sleep)(PEXP_WAIT_BLOCK Block, volatile ULONG_PTR *Lock);
    VOID (*Wake)(PEXP_WAIT_BLOCK Block);
    VOID (*NotOwned)(volatile ULONG_PTR *Lock); /* a release of a lock that is not held; does not return */
    ULONG Kind;                                 /* KI_LOCK_KIND, for traces */
    BOOLEAN AutoBoost;
} EXP_PUSH_LOCK_METHODS;

/* The slow paths behind the inline fast paths. */
VOID ExpAcquirePushLockExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpAcquirePushLockShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryAcquirePushLockExclusive(volatile ULONG_PTR *Lock);
BOOLEAN ExpTryAcquirePushLockShared(volatile ULONG_PTR *Lock);
VOID ExpReleasePushLockExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleasePushLockShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleasePushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods); /* held either way */
VOID ExpConvertPushLockToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryConvertPushLockToExclusive(volatile ULONG_PTR *Lock);

/* Called by the owner of an outer lock that every thread acquires first. Turns (ke/fairness.h) are counted there, not here. */
VOID ExpAcquireInnerPushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleaseInnerPushLock(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);

BOOLEAN ExpIsPushLockHeldExclusive(ULONG_PTR Value); /* or by one sharer, with waiters */
BOOLEAN ExpIsPushLockHeldShared(ULONG_PTR Value);    /* or exclusively, with waiters */

/* The waiter of a block, and its waker. */
VOID ExpWakeBlock(PEXP_WAIT_BLOCK Block, EXP_WAIT_STATE State, const EXP_PUSH_LOCK_METHODS *Methods);

FORCEINLINE EXP_WAIT_STATE ExpStateOfBlock(PEXP_WAIT_BLOCK Block)
{
    /* acquire: pairs with the exchange in ExpWakeBlock */
    return (EXP_WAIT_STATE)__atomic_load_n(&Block->State, __ATOMIC_ACQUIRE);
}

/* Sleeps on the event in the block. */
extern const EXP_PUSH_LOCK_METHODS ExpPushLockMethods;
const EXP_PUSH_LOCK_METHODS *ExpMethodsFor(ULONG Flags);

/* For a lock that consists of several pushlocks: Word stands for it in the lock order. */
VOID ExpWatchAcquire(PEX_PUSH_LOCK Word, ULONG Flags, KI_ORDER_MODE Mode, PVOID Site);
VOID ExpWatchRelease(PEX_PUSH_LOCK Word, ULONG Flags);

FORCEINLINE VOID ExpVerifyAcquire(PEX_PUSH_LOCK Word, ULONG Flags, KI_ORDER_MODE Mode)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpWatchAcquire(Word, Flags, Mode, __builtin_return_address(0));
    }
}

FORCEINLINE VOID ExpVerifyRelease(PEX_PUSH_LOCK Word, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpWatchRelease(Word, Flags);
    }
}

#endif
