/*
 * outside.h: outside objects: dispatcher objects whose state is not in this process. The world (src/wo) has it.
 *
 * A handle to a shared object refers to an ordinary object of the same type, the proxy: an ordinary KEVENT, KSEMAPHORE,
 * KMUTANT or KTIMER. Its header has the lock bit permanently set, and a SignalState that a local object of its type
 * never has; WaitListHead.Blink points to a KI_OUTSIDE. Every fast path requires a clear lock bit. So local objects pay
 * nothing, and each function that finds an object locked first asks KiIsOutside, then goes through the table of
 * operations.
 *
 * A wait with an outside object (KI_WAIT_OUTSIDE in the register) has one more referee, the waiter record in the world:
 *
 * 1. Outside objects are linked first (BeginWait), then the register becomes Active, then local blocks are linked.
 * 2. A thread of this process that ends the wait (signal of a local object, alert, APC, timeout, termination) claims the
 *    record first. If that fails, the wait is being granted, and is not ended locally.
 * 3. A granted wait is ended by its own thread, which clears Active itself. Only the waiting thread does so after a
 *    grant, and nothing else can: see 2.
 * 4. A claim names its wait by number (OutsideNumber), which the thread publishes before Active. A claimer reads the
 *    register, the number, and the register again; so it never claims a later wait for what it found in an earlier one.
 *    After a claim the wait is ended by the claimer, or by another thread that was faster. No other claim fails for that. The
 *    claimer ends it even if the APC that it was claimed for has been removed meanwhile: the world does not grant it any more.
 * 5. The thread sleeps on OutsideWake, a word in the world. A local waker makes WakeWord KI_WAKING_OUTSIDE, changes and
 *    wakes OutsideWake, and makes WakeWord KI_WOKEN: the thread does not leave before that, so the word is still its own.
 * 6. A granter that died may have turned away a local ender without granting the wait. The record then says
 *    STATUS_RETRY, and the thread begins its wait again.
 * 7. A WaitAll over local and outside objects, or those of two worlds, takes all or nothing with every lock held. If it
 *    cannot, it watches one object that it found not signaled, here or outside, and tries again when that is signaled.
 */
#ifndef INTERLOCK_KE_OUTSIDE_H
#define INTERLOCK_KE_OUTSIDE_H

#include "dispatch.h"

/* Belongs to the proxy for its whole life. */
typedef struct _KI_OUTSIDE {
    PVOID View;  /* PWO_VIEW */
    ULONG Index; /* WO_INDEX of the object */
} KI_OUTSIDE, *PKI_OUTSIDE;

#define KI_OUTSIDE_ASLEEP 1u /* in the word that OutsideWake points to: the thread sleeps, or is about to */

typedef enum _KI_OUTSIDE_CHANGE { KiOutsideSet, KiOutsideReset, KiOutsidePulse } KI_OUTSIDE_CHANGE;
typedef enum _KI_OUTSIDE_WAIT { KiOutsideAny, KiOutsideAll, KiOutsideWatch, KiOutsideMixedAny } KI_OUTSIDE_WAIT; /* the last:
    any of these, or of others that are not of this world */

typedef enum _KI_OUTSIDE_CLAIM { KiOutsideGranted, KiOutsideClaimed, KiOutsideOtherWait } KI_OUTSIDE_CLAIM;

typedef struct _KI_OUTSIDE_STATE {
    LONG State;         /* as SignalState, for the thread that asks */
    LONG Limit;         /* semaphore */
    BOOLEAN Abandoned;  /* mutant, and */
    BOOLEAN Mine;       /* owned by the thread that asks, and */
    PKTHREAD Owner;     /* adopted states only: the local thread that owns it */
    ULONG OwnerProcess, OwnerThread; /* host ids; 0: none */
    ULONG64 DueTime;    /* timer: interrupt time, or system time if Absolute; 0: not set */
    BOOLEAN Absolute;
    ULONG Period;       /* in milliseconds */
} KI_OUTSIDE_STATE, *PKI_OUTSIDE_STATE;

/* Objects of one world. */
typedef struct _KI_OUTSIDE_PART {
    const PKI_OUTSIDE *Objects;
    ULONG Count;
} KI_OUTSIDE_PART;

/* The world's operations for ke. Statuses are those of the services; STATUS_FILE_CORRUPT_ERROR: the world is poisoned. */
typedef struct _KI_OUTSIDE_OPERATIONS {
    NTSTATUS (*ChangeEvent)(PKI_OUTSIDE Event, KI_OUTSIDE_CHANGE Change, PLONG Previous);
    /* What one compare-exchange can do, without a lock. FALSE: nothing has happened, the slow path decides. */
    BOOLEAN (*TrySetEventAtOnce)(PKI_OUTSIDE Event, PLONG Previous);
    BOOLEAN (*TryReleaseSemaphoreAtOnce)(PKI_OUTSIDE Semaphore, LONG Adjustment, PLONG Previous);
    BOOLEAN (*TryReleaseMutantAtOnce)(PKI_OUTSIDE Mutant, PKTHREAD Thread, PLONG Previous);
    BOOLEAN (*TryConsumeAtOnce)(PKI_OUTSIDE Object, PKTHREAD Thread, NTSTATUS *Status);
    NTSTATUS (*ReleaseSemaphore)(PKI_OUTSIDE Semaphore, LONG Adjustment, PLONG Previous);
    NTSTATUS (*ReleaseMutant)(PKI_OUTSIDE Mutant, PKTHREAD Thread, BOOLEAN Abandoned, PLONG Previous);
    /* DueTime: as for KeSetTimer */
    NTSTATUS (*SetTimer)(PKI_OUTSIDE Timer, LONGLONG DueTime, ULONG Period, PULONG64 Arming, PBOOLEAN Previous);
    NTSTATUS (*CancelTimer)(PKI_OUTSIDE Timer, PBOOLEAN Previous);
    BOOLEAN (*IsArmed)(PKI_OUTSIDE Timer, ULONG64 Arming);
    NTSTATUS (*QueryState)(PKI_OUTSIDE Object, PKTHREAD Thread, PKI_OUTSIDE_STATE State);
    /* For KiMoveOutside: a state for an object that no other process knows yet. The first may wait, and makes the
       current thread known to the world; the second does neither. */
    NTSTATUS (*PrepareOwner)(PKI_OUTSIDE Object, PKTHREAD Thread);
    VOID (*AdoptState)(PKI_OUTSIDE Object, const KI_OUTSIDE_STATE *State);

    /* Waits of the current thread; the objects are of one world. BeginWait sets OutsideWake and OutsideNumber. */
    NTSTATUS (*TryWait)(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count, WAIT_TYPE WaitType);
    /* All of the objects of two worlds, or none. */
    NTSTATUS (*TryWaitForBoth)(PKTHREAD Thread, const KI_OUTSIDE_PART Parts[2]);
    BOOLEAN (*LooksSignaled)(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count); /* one of them: a hint */
    NTSTATUS (*BeginWait)(PKTHREAD Thread, const PKI_OUTSIDE Objects[], ULONG Count, KI_OUTSIDE_WAIT Kind);
    NTSTATUS (*BeginKeyedWait)(PKTHREAD Thread, PKI_OUTSIDE KeyedEvent, ULONG64 Key, BOOLEAN Release);
    KI_OUTSIDE_CLAIM (*Claim)(PKTHREAD Thread, ULONG64 Number); /* by any thread of this process */
    NTSTATUS (*CheckWait)(PKTHREAD Thread); /* STATUS_PENDING; STATUS_RETRY: begin again; otherwise it is granted */
    BOOLEAN (*NextDue)(PKTHREAD Thread, PHAL_DEADLINE Due);
    VOID (*ExpireTimers)(PKTHREAD Thread);
    NTSTATUS (*EndWait)(PKTHREAD Thread); /* STATUS_PENDING: nothing was taken */

    /* Notifications: Block is delivered by KiDeliverNotification, once. STATUS_PENDING: registered; STATUS_SUCCESS: the
       object was signaled and is consumed. Unregister, FALSE: it was consumed, and has been or will be delivered. */
    NTSTATUS (*RegisterBlock)(PKI_OUTSIDE Object, PKWAIT_BLOCK Block);
    BOOLEAN (*UnregisterBlock)(PKI_OUTSIDE Object, PKWAIT_BLOCK Block);
    /* For KiMoveOutside: room for Count more blocks, which MoveBlock, a RegisterBlock that needs no other room, uses up.
       ReserveBlocks may wait. ReturnBlocks returns what is left. */
    NTSTATUS (*ReserveBlocks)(PKI_OUTSIDE Object, ULONG Count);
    NTSTATUS (*MoveBlock)(PKI_OUTSIDE Object, PKWAIT_BLOCK Block);
    VOID (*ReturnBlocks)(PKI_OUTSIDE Object);

    VOID (*EndThread)(PKTHREAD Thread); /* abandons what the thread owns */
} KI_OUTSIDE_OPERATIONS;

extern const KI_OUTSIDE_OPERATIONS *KiOutsideOperations; /* NULL: this process has no outside object */
VOID KiSetOutsideOperations(const KI_OUTSIDE_OPERATIONS *Operations); /* the same table each time */

/* The header of a new proxy: event, semaphore, mutant or timer. It replaces KeInitializeEvent and similar functions. */
VOID KiMakeOutside(PDISPATCHER_HEADER Header, UCHAR Type, PKI_OUTSIDE Outside);

/*
 * A local object becomes shared. Outside: a shared object of the same type that no other process knows yet; its state is
 * overwritten with that of the local one. Threads that wait for the local object wait outside from then on, at the end of
 * the queue. STATUS_OBJECT_NAME_EXISTS: another thread has moved it already. STATUS_MUTANT_NOT_OWNED: it is a mutant that
 * another thread owns. STATUS_INSUFFICIENT_RESOURCES: the world has no room for its notifications. A failure changes
 * nothing. Only a world that is damaged meanwhile loses notifications, as it loses those that it has.
 */
NTSTATUS KiMoveOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE Outside);
VOID KiAwaitMove(VOID); /* in a dispatcher section */

/* wait.h's functions for outside objects. */
struct _KI_WAIT;
NTSTATUS KiWaitOutside(struct _KI_WAIT *Wait); /* at least one object is outside, or was when the caller checked */
/* A service that waits for, or releases, a shared keyed event. */
NTSTATUS KiMeetOutside(PKI_OUTSIDE KeyedEvent, ULONG64 Key, BOOLEAN Release, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
BOOLEAN KiTryConsumeOutside(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status);
/* Tries as many objects together as are outside in a row from the first one on, in one world. Returns how many. */
ULONG KiTryRowOutside(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status);
BOOLEAN KiClaimOutside(PKTHREAD Thread); /* FALSE: it is being granted. By the thread, or with an object of it locked */
VOID KiWakeOutside(PKTHREAD Thread);                     /* the wait was ended here */
/* The previous state, or KI_OUTSIDE_LOST: the world is damaged, and nothing has happened. So return KeSetEvent, KePulseEvent
   and KeResetEvent. */
#define KI_OUTSIDE_LOST (-1)
LONG KiChangeOutsideEvent(PDISPATCHER_HEADER Header, KI_OUTSIDE_CHANGE Change, BOOLEAN Wait);
BOOLEAN KiSetOutsideTimer(PDISPATCHER_HEADER Header, LONGLONG DueTime, ULONG Period); /* both: was it set? */
BOOLEAN KiCancelOutsideTimer(PDISPATCHER_HEADER Header);
NTSTATUS KiQueryOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE_STATE State);
ULONG64 KiReadOutsideHeader(PDISPATCHER_HEADER Header);  /* the word that it would have, unlocked */

/* For a header that was found locked, or where a few cycles do not matter. acquire: pairs with KiMoveOutside */
FORCEINLINE BOOLEAN KiIsOutside(PDISPATCHER_HEADER Header)
{
    ULONG64 Word = __atomic_load_n(KiHeaderWord(Header), __ATOMIC_ACQUIRE);
    return (Word & KI_LOCKED) && KI_STATE(Word) == (KI_TYPE(Word) == MutantObject ? 2 : -1);
}

FORCEINLINE PKI_OUTSIDE KiOutsideOf(PDISPATCHER_HEADER Header) /* NULL: it is local */
{
    return KiIsOutside(Header) ? (PKI_OUTSIDE)(PVOID)Header->WaitListHead.Blink : NULL;
}

/* The functions AtOnce of wait.h, for a header that they have found locked. */
FORCEINLINE BOOLEAN KiTrySetOutsideAtOnce(PDISPATCHER_HEADER Header, PLONG Previous)
{
    PKI_OUTSIDE Outside = KiOutsideOf(Header);
    return Outside != NULL && KiOutsideOperations->TrySetEventAtOnce(Outside, Previous);
}

FORCEINLINE BOOLEAN KiTryConsumeOutsideAtOnce(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    PKI_OUTSIDE Outside = KiOutsideOf(Header);
    return Outside != NULL && KiOutsideOperations->TryConsumeAtOnce(Outside, Thread, Status);
}

#endif
