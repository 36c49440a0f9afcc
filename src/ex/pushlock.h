/*
 * pushlock.h: the pushlock algorithm, for whoever brings a way to sleep and wake. Pushlocks of the kernel and the slim
 * reader/writer locks of user mode are both this.
 */
#ifndef INTERLOCK_PUSHLOCK_H
#define INTERLOCK_PUSHLOCK_H

#include <interlock/ex.h>

#include "../ke/ki.h"

#define EXP_PUSH_LOCK_BITS ((ULONG_PTR)0xf)

/* How far a waiter's block has got. The one who wakes it exchanges the word and touches the block no more, unless the
   waiter had gone to sleep: then the wake of the sleeper is the last touch. */
typedef enum _EXP_WAIT_STATE {
    ExpSpinning,
    ExpSleeping,
    ExpWoken,       /* try again; nobody is left in the queue */
    ExpWokenWaking, /* try again; the Waking bit is yours now */
    ExpGranted      /* the lock is yours */
} EXP_WAIT_STATE;

typedef struct _EX_PUSH_LOCK_WAIT_BLOCK {
    KEVENT WakeEvent;
    struct _EX_PUSH_LOCK_WAIT_BLOCK *Next;              /* the one that came before, NULL in the oldest */
    struct _EX_PUSH_LOCK_WAIT_BLOCK *Previous;          /* the one that came after; set by the optimisation */
    struct _EX_PUSH_LOCK_WAIT_BLOCK *volatile Last;     /* the oldest, if the optimisation has been here */
    volatile LONG ShareCount;                           /* in the oldest: sharers left, with MultipleShared */
    volatile ULONG State;                               /* EXP_WAIT_STATE */
    BOOLEAN Exclusive;
    UCHAR Lost;                                         /* how often it was woken in vain */
} DECLSPEC_ALIGN(16) EX_PUSH_LOCK_WAIT_BLOCK, *PEX_PUSH_LOCK_WAIT_BLOCK;

typedef struct _EXP_PUSH_LOCK_METHODS {
    VOID (*Prepare)(PEX_PUSH_LOCK_WAIT_BLOCK Block);
    VOID (*Sleep)(PEX_PUSH_LOCK_WAIT_BLOCK Block);
    VOID (*Wake)(PEX_PUSH_LOCK_WAIT_BLOCK Block);
    VOID (*NotOwned)(volatile ULONG_PTR *Lock); /* a release of what is not held; does not return */
} EXP_PUSH_LOCK_METHODS;

VOID ExpAcquireExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpAcquireShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryAcquireExclusive(volatile ULONG_PTR *Lock);
BOOLEAN ExpTryAcquireShared(volatile ULONG_PTR *Lock);
VOID ExpReleaseExclusive(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpReleaseShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
VOID ExpRelease(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods); /* whichever way it is held */
VOID ExpConvertToShared(volatile ULONG_PTR *Lock, const EXP_PUSH_LOCK_METHODS *Methods);
BOOLEAN ExpTryConvertToExclusive(volatile ULONG_PTR *Lock);

#endif
