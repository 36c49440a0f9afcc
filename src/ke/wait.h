/*
 * wait.h: the wait engine.
 *
 * A wait goes through these steps. T is the waiting thread, S the thread that ends the wait.
 *
 *   T: begin      WaitRegister becomes Active|WaitInProgress, unless an alert or user APC ends the wait right here
 *   T: link       locks and tests each object, and puts a block on its list (a WaitAll holds all locks together)
 *   T: commit     WaitInProgress -> WaitCommitted by compare-exchange, unless an interruption came first
 *   T: sleep      on WakeWord, until the deadline
 *   S: end        clears Active by compare-exchange; exactly one thread succeeds and has ended the wait
 *   S: ready      consumes the object, unlinks T's block, stores WaitStatus, and last of all WakeWord
 *   T: unlink     removes the blocks that S has left, lock by lock
 *
 * 1. S reaches T either through a block on the list of an object that S has locked, or through T's register (alert,
 *    APC, suspension). T cannot leave its wait while S holds that lock, because T needs it to unlink; KTHREADs are
 *    never unmapped. So S never touches a wait that has ended.
 * 2. A wait that another thread ended returns only after that thread's store to WakeWord, its last access.
 * 3. T ends its own wait (timeout, alert found at commit) by the same compare-exchange. So a signal that races with a
 *    timeout has one winner, and only the winner consumes.
 * 4. Before commit, alerts and APCs only set their bits: T finds them when it commits. A signal that finds a wait in
 *    progress aborts it (WaitAborted, the block passes through WaitBlockBypassStart and -Complete).
 * 5. A spurious wakeup changes nothing: T checks WakeWord again, with the same deadline.
 * 6. T does not touch the object by which S ended its wait: another thread that S released may have freed it.
 */
#ifndef INTERLOCK_WAIT_H
#define INTERLOCK_WAIT_H

#include "dispatch.h"
#include "outside.h"
#include "park.h"

/* WakeWord: reset by the thread before its wait becomes Active. */
#define KI_AWAKE 0u
#define KI_WOKEN 1u
#define KI_SLEEPING 2u
#define KI_WAKING_OUTSIDE 4u

/* Objects. */

/* What a wait consumes, by the object's type; nothing for all other types. */
#define KI_TAKES_SIGNAL                                                                                                \
    ((ULONG64)1 << EventSynchronizationObject | (ULONG64)1 << GateObject | (ULONG64)1 << TimerSynchronizationObject)
#define KI_TAKES_COUNT ((ULONG64)1 << SemaphoreObject)
#define KI_TAKES_OWNERSHIP ((ULONG64)1 << MutantObject)

FORCEINLINE BOOLEAN KiIsOfTypes(ULONG64 Word, ULONG64 Types)
{
    return (Types >> KI_TYPE(Word) & 1) != 0;
}

/* The word of a signaled object after a wait has consumed it. */
FORCEINLINE ULONG64 KiConsumed(ULONG64 Word)
{
    if (KiIsOfTypes(Word, KI_TAKES_SIGNAL)) {
        return KiWithState(Word, 0);
    }
    return KiIsOfTypes(Word, KI_TAKES_COUNT | KI_TAKES_OWNERSHIP) ? Word - KI_COUNTED(1) : Word;
}

/* The count at which a mutant's owner cannot acquire it again. */
#define KI_MUTANT_LIMIT ((LONG)MINLONG)

FORCEINLINE BOOLEAN KiOwnsMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    PKMUTANT Mutant = CONTAINING_RECORD(Header, KMUTANT, Header);
    /* relaxed: only Thread itself makes this true or false for Thread */
    return __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED) == Thread;
}

FORCEINLINE BOOLEAN KiIsSignaledFor(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread)
{
    return KI_STATE(Word) > 0 || (KI_TYPE(Word) == MutantObject && KiOwnsMutant(Header, Thread));
}

#define KI_MUTANT_DPC_ACTIVE ((ULONG64)1 << 16) /* a DPC has acquired it: it is on no list */

/* Bits of KMUTANT.ApcDisable, which is otherwise TRUE or FALSE. The verifier watches a mutant with the second: it takes the
   branches that a mutex takes, so other mutants do not pay for it. */
#define KI_MUTANT_MUTEX 1u
#define KI_MUTANT_VERIFIED 2u

/* mutant.c */
NTSTATUS KiGiveMutant(PKMUTANT Mutant, PKTHREAD Thread);      /* its count has just become 0; STATUS_ABANDONED or success */
VOID KiTakeOwnershipOf(PKMUTANT Mutant, PKTHREAD Thread);     /* by the new owner: adds the mutant to its own list */
BOOLEAN KiTryAcquireMutant(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status); /* FALSE: has an owner, or is at its limit */

/* With the lock held; *Word is what the caller will unlock the object with. STATUS_SUCCESS or STATUS_ABANDONED. */
FORCEINLINE NTSTATUS KiConsumeLocked(PDISPATCHER_HEADER Header, ULONG64 *Word, PKTHREAD Thread)
{
    *Word = KiConsumed(*Word);
    return KI_TYPE(*Word) == MutantObject && KI_STATE(*Word) == 0
               ? KiGiveMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Thread)
               : STATUS_SUCCESS;
}

/* With the lock held: the same, in the object's word. */
FORCEINLINE NTSTATUS KiConsumeHeld(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    NTSTATUS Status = KiConsumeLocked(Header, &Word, Thread);
    /* relaxed: the lock is held, its release publishes */
    __atomic_store_n(KiHeaderWord(Header), Word, __ATOMIC_RELAXED);
    return Status;
}

/* semaphore.c, mutant.c: the documented functions, but return the status that those raise; then nothing has changed. */
NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount);
NTSTATUS KiReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait, PLONG PreviousCount);

/* register.c: every change of a wait status register. */

#define KI_NOT_ENDED 0xffu
ULONG KiEndWait(PKTHREAD Thread, LONG_PTR Status);      /* the KWAIT_STATE that the wait was in, or KI_NOT_ENDED */
BOOLEAN KiEndOwnWait(PKTHREAD Thread);                  /* FALSE: another thread has ended it */
BOOLEAN KiEndGrantedWait(PKTHREAD Thread);              /* by the thread itself, if the world has granted it; as above */
NTSTATUS KiBeginWait(PKTHREAD Thread, ULONG HowIssued); /* STATUS_PENDING, or the status that ends the wait at once */
NTSTATUS KiCommitWait(PKTHREAD Thread);                 /* STATUS_PENDING, or the status that ends the wait */
/* Sets Pending bits, which may end the wait. Returns the register before. */
ULONG KiInterruptWait(PKTHREAD Thread, ULONG Pending, KPRIORITY Increment);
BOOLEAN KiGivesUpWait(PKTHREAD Thread);                 /* the thread is about to exit, which ends its wait */
BOOLEAN KiBeginSuspend(PKTHREAD Thread);                /* WaitCommitted -> WaitSuspendInProgress, if that is allowed */
VOID KiFinishSuspend(PKTHREAD Thread);                  /* -> WaitSuspended */
BOOLEAN KiBeginResume(PKTHREAD Thread);                 /* WaitSuspended -> WaitResumeInProgress; FALSE: not suspended */
VOID KiFinishResume(PKTHREAD Thread);                   /* -> WaitCommitted, unless a signal has ended the wait */
NTSTATUS KiTakeAlert(PKTHREAD Thread, ULONG HowIssued); /* what an alertable wait issued like this finds pending */
NTSTATUS KiTakeInterruption(PKTHREAD Thread, ULONG HowIssued); /* the same, and the end of the thread; before its wait */
BOOLEAN KiClearAlert(PKTHREAD Thread, KPROCESSOR_MODE Mode);
KPROCESSOR_MODE KiModeOfTakenAlert(PKTHREAD Thread);    /* by the thread itself, after STATUS_ALERTED: to restore it */
BOOLEAN KiTakeAlertById(PKTHREAD Thread);               /* by the thread itself; FALSE: none is pending */

/* What may interrupt a wait that begins now, for the register. */
FORCEINLINE ULONG KiWaitFlags(PKTHREAD Thread, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable)
{
    ULONG Flags = (Alertable ? KI_WAIT_ALERTABLE : 0) | (WaitMode == UserMode ? KI_WAIT_USER_MODE : 0);
    if (Thread->Irql < APC_LEVEL && Thread->SpecialApcDisable == 0) {
        Flags |= KI_WAIT_SPECIAL_APC_OK;
        if (Thread->KernelApcDisable == 0 && !Thread->ApcState.KernelApcInProgress) {
            Flags |= KI_WAIT_NORMAL_APC_OK;
            Flags |= Thread->ServiceDepth == 0 || WaitMode == UserMode ? KI_WAIT_EXIT_OK : 0;
        }
    }
    return Flags;
}

/* stop.c */
VOID KiReconsiderDeadline(PKTHREAD Thread);             /* if it sleeps, it recomputes its deadline */

/* wait.c */

/* The WaitType of the one block of a wait for an alert by id: its Object is the hint. */
#define KI_HINT_BLOCK 0xff
/* The WaitType of a block which a signal ends without consuming: see outside.h, 7. */
#define KI_WATCH_BLOCK 0xfe
/* The WaitType of the blocks of a wait for any of many objects: see wait.c. */
#define KI_MANY_BLOCK 0xfd

/* How many of the blocks of Thread's wait are for an object. */
FORCEINLINE ULONG KiObjectBlocks(PKTHREAD Thread)
{
    return Thread->WaitBlockCount != 0 && Thread->WaitBlockList->WaitType == KI_HINT_BLOCK ? 0 : Thread->WaitBlockCount;
}

typedef struct _KI_WAIT {
    PKTHREAD Thread;
    PVOID *Objects;      /* Count of them; with WaitType KI_HINT_BLOCK none, but the hint */
    const USHORT *Order; /* of a WaitAll: the indices of its objects, by address */
    PKWAIT_BLOCK Blocks; /* prepared for every attempt: an APC in between may have used the same blocks */
    ULONG Count;
    UCHAR WaitType;
    KWAIT_REASON Reason;
    KPROCESSOR_MODE Mode;
    BOOLEAN Alertable;
    BOOLEAN Spun; /* has spun already, or has nothing to spin for */
    BOOLEAN Poll; /* a timeout of zero: test, never block */
    ULONG Flags;  /* more KI_WAIT_ bits for the register */
    HAL_DEADLINE Deadline;
    UCHAR Types[MAXIMUM_WAIT_OBJECTS]; /* of the objects that were linked or tested: the object that ends the wait may be
                                          freed by then, unless it is a mutant that the thread now owns. For many
                                          objects the array continues after the structure: KiTypeOf */
} KI_WAIT, *PKI_WAIT;

FORCEINLINE PUCHAR KiTypeOf(PKI_WAIT Wait, ULONG Index)
{
    return (PUCHAR)Wait + FIELD_OFFSET(KI_WAIT, Types) + Index;
}

/* Checks the level; Object is only for the bugcheck. */
VOID KiInitializeWait(PKI_WAIT Wait, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                      PLARGE_INTEGER Timeout);
VOID KiPrepareBlock(PKWAIT_BLOCK Block, PKTHREAD Thread, PVOID Object, UCHAR WaitType, USHORT Key);
VOID KiSpinForWake(PKTHREAD Thread); /* after the wait is committed */
/* The parts of a wait that has outside objects too. Signaled: the wait links no more objects. */
NTSTATUS KiLinkObject(PKI_WAIT Wait, ULONG Index, BOOLEAN *Signaled);
VOID KiUnlinkBlocks(PKI_WAIT Wait);
VOID KiTakeOwnerships(PKI_WAIT Wait, NTSTATUS Status);
NTSTATUS KiWait(PKI_WAIT Wait); /* runs the steps above; delivers kernel APCs and starts over as often as necessary */
/* FALSE: the objects are not all different. */
BOOLEAN KiSortObjects(PVOID Object[], ULONG Count, USHORT Order[MAXIMUM_WAIT_OBJECTS]);
BOOLEAN KiSortManyObjects(PVOID Object[], ULONG Count, USHORT Order[]);
BOOLEAN KiHasDuplicates(PVOID Object[], ULONG Count);
NTSTATUS KiSetWaitNextIf(BOOLEAN Wait, NTSTATUS Status); /* the same for an outside object; returns Status */
VOID KiSetWaitNext(PKTHREAD Thread); /* after a signal with Wait TRUE: at DISPATCH_LEVEL until the wait that follows */

/* TRUE: the wait has ended with *Status. */
BOOLEAN KiTryConsume(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status);

/* All objects of Thread's wait, which is a WaitAll. */
BOOLEAN KiLockInOrder(PKTHREAD Thread); /* FALSE: one is outside, and none is locked */
VOID KiUnlockInOrder(PKTHREAD Thread);
BOOLEAN KiAllSignaledFor(PKTHREAD Thread);
NTSTATUS KiConsumeAll(PKTHREAD Thread);

/* Nothing precedes the wait: no alert to check, no level to lower or to report. */
FORCEINLINE BOOLEAN KiMayConsumeAtOnce(PKTHREAD Thread, BOOLEAN Alertable)
{
    return !Alertable && !Thread->WaitNext && Thread->Irql < DISPATCH_LEVEL;
}

/* The same, for waits that the verifier does not watch. */
FORCEINLINE BOOLEAN KiMayTakeAtOnce(PKTHREAD Thread)
{
    return !(Thread->WaitNext & KI_WAIT_NEXT_SIGNALED) && Thread->Irql < DISPATCH_LEVEL;
}

/* KiNotAtOnce: the object is not signaled, or another thread was faster, or something precedes the wait. */
typedef enum _KI_AT_ONCE { KiNotAtOnce, KiConsumedAtOnce, KiLockedAtOnce, KiMutantAtOnce } KI_AT_ONCE;

FORCEINLINE KI_AT_ONCE KiTryConsumeAtOnce(PDISPATCHER_HEADER Header, BOOLEAN Alertable)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL, FALSE) || !KiMayConsumeAtOnce(Thread, Alertable)) {
        return KiNotAtOnce;
    }
    ULONG64 Word = KiReadHeader(Header);
    if (__builtin_expect((Word & KI_LOCKED) != 0, FALSE)) {
        return KiLockedAtOnce;
    }
    if (KI_TYPE(Word) == MutantObject) {
        return KiMutantAtOnce;
    }
    return KI_STATE(Word) > 0 && KiCompareExchangeHeader(Header, &Word, KiConsumed(Word)) ? KiConsumedAtOnce : KiNotAtOnce;
}

/* semaphore.c, mutant.c: as the next one, for KiReleaseSemaphore, for KiTryAcquireMutant and for KiReleaseMutant. Of a mutant
   they also change what only Thread changes: the owner and the list of its mutants. */
BOOLEAN KiTryReleaseSemaphoreAtOnce(PRKSEMAPHORE Semaphore, LONG Adjustment, PLONG PreviousCount);
BOOLEAN KiTryAcquireMutantAtOnce(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status);
BOOLEAN KiTryReleaseMutantAtOnce(PKMUTANT Mutant, PKTHREAD Thread, PLONG PreviousCount);

/* KeSetEvent if one compare-exchange can do it. FALSE: nothing has happened. */
FORCEINLINE BOOLEAN KiTrySetEventAtOnce(PRKEVENT Event, PLONG Previous)
{
    ULONG64 Word = KiReadHeader(&Event->Header);
    *Previous = KI_STATE(Word);
    return !(Word & (KI_LOCKED | KI_WAITERS)) && KiCompareExchangeHeader(&Event->Header, &Word, KiWithState(Word, 1));
}

/* The documented functions, except for their end: after STATUS_USER_APC the caller runs KiDeliverUserApcs, once it has
   released what it holds, and STATUS_MUTANT_LIMIT_EXCEEDED is returned, not raised. */
NTSTATUS KiWaitForSingleObjectSlow(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout);

/* The object is locked, or outside, and nothing precedes the wait. */
NTSTATUS KiWaitForLockedObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                               PLARGE_INTEGER Timeout);

FORCEINLINE NTSTATUS KiWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                           BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    switch (KiTryConsumeAtOnce(Object, Alertable)) {
    case KiConsumedAtOnce:
        return STATUS_SUCCESS;
    case KiLockedAtOnce:
        return KiWaitForLockedObject(Object, WaitReason, WaitMode, Alertable, Timeout);
    default:
        return KiWaitForSingleObjectSlow(Object, WaitReason, WaitMode, Alertable, Timeout);
    }
}

NTSTATUS KiWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray);

/* Waits for many objects. */

/*
 * The status of a wait for any of many objects, inside the engine: the index of an object is beyond STATUS_TIMEOUT and
 * similar statuses. No other status of a wait is in these two ranges; MAXUSHORT objects end below the second one.
 */
#define KI_MANY_WAIT_0 ((NTSTATUS)0x10000)
#define KI_MANY_ABANDONED_0 ((NTSTATUS)0x20000)

/* Status: STATUS_WAIT_0, or STATUS_ABANDONED_WAIT_0 for a mutant whose owner has ended. */
FORCEINLINE NTSTATUS KiStatusOfIndex(NTSTATUS Status, ULONG Index, BOOLEAN Many)
{
    if (Many) {
        Status = Status == STATUS_ABANDONED_WAIT_0 ? KI_MANY_ABANDONED_0 : KI_MANY_WAIT_0;
    }
    return Status + (NTSTATUS)Index;
}

BOOLEAN KiTryConsumeAnyOf(PKI_WAIT Wait, NTSTATUS *Status); /* with such a status if it has many */
NTSTATUS KiWaitMany(PKI_WAIT Wait); /* KiWait */
NTSTATUS KiSplitManyStatus(NTSTATUS Status, PULONG Index); /* into a status of Windows and the index, or 0 */
/* KeWaitForManyObjects, except for its end: see KiWaitForSingleObjectSlow. */
NTSTATUS KiWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                              KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                              PKWAIT_BLOCK WaitBlockArray, PULONG Index);

/* priority.c: PendingBoost of a thread. */

#define KI_PENDING_BOOST(Time, Increment) ((ULONG64)(Time) << 8 | (ULONG64)(Increment))
#define KI_PENDING_INCREMENT(Pending) ((KPRIORITY)((Pending) & 0xff))
#define KI_PENDING_TIME(Pending) ((Pending) >> 8)

FORCEINLINE KPRIORITY KiBoostTarget(KPRIORITY BasePriority, KPRIORITY Increment)
{
    KPRIORITY Highest = LOW_REALTIME_PRIORITY - 1;
    return BasePriority + Increment < Highest ? BasePriority + Increment : Highest;
}

/* Priority with the pending boost, as a debugger shows it. relaxed: advisory only */
FORCEINLINE KPRIORITY KiBoostedPriority(const KTHREAD *Thread)
{
    ULONG64 Pending = __atomic_load_n(&Thread->PendingBoost, __ATOMIC_RELAXED);
    KPRIORITY Priority = __atomic_load_n(&Thread->Priority, __ATOMIC_RELAXED);
    KPRIORITY Boosted = KiBoostTarget(__atomic_load_n(&Thread->BasePriority, __ATOMIC_RELAXED),
                                      KI_PENDING_INCREMENT(Pending));
    return Pending != 0 && Priority < LOW_REALTIME_PRIORITY && !Thread->DisableBoost && Boosted > Priority ? Boosted
                                                                                                          : Priority;
}

/* queue.c: the documented functions, for callers inside the library; these leave user APCs to the caller. */
LONG KiInsertQueue(PKQUEUE Queue, PLIST_ENTRY Entry);
PLIST_ENTRY KiRemoveQueue(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout);
ULONG KiRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                      PLIST_ENTRY *EntryArray, ULONG Count);
BOOLEAN KiSpinForEntry(PKQUEUE Queue, PKTHREAD Thread);
VOID KiBlockFromQueueSlow(PKTHREAD Thread);
VOID KiUnblockFromQueueSlow(PKTHREAD Thread);

/* The thread is about to wait: its queue may let another thread run. */
FORCEINLINE VOID KiBlockFromQueue(PKTHREAD Thread)
{
    /* acquire: pairs with the release in KiAssignQueue */
    if (__builtin_expect(__atomic_load_n(&Thread->Queue, __ATOMIC_ACQUIRE) != NULL, FALSE) && !Thread->QueueBlocked) {
        KiBlockFromQueueSlow(Thread);
    }
}

/* Its wait has ended: it counts again, above the limit if necessary. */
FORCEINLINE VOID KiUnblockFromQueue(PKTHREAD Thread)
{
    if (__builtin_expect(Thread->QueueBlocked, FALSE)) {
        KiUnblockFromQueueSlow(Thread);
    }
}

PLIST_ENTRY KiTakeNextEntry(PKQUEUE Queue, BOOLEAN (*Stays)(PLIST_ENTRY Entry, PVOID Context), PVOID Context);
BOOLEAN KiRemoveQueuedEntry(PKQUEUE Queue, PLIST_ENTRY Entry);
PLIST_ENTRY KiTakeQueuedEntry(PKQUEUE Queue); /* the oldest one, regardless of the concurrency limit; or NULL */
VOID KiAbandonQueue(PKQUEUE Queue);           /* KeRundownQueue, but the entries stay, to be taken one by one */
VOID KiSetQueueLimit(PKQUEUE Queue, ULONG MaximumCount); /* how many threads may run from now on */

/* Waits without a thread. */
VOID KiDeliverNotification(PKWAIT_BLOCK Block);

/* timer.c. There are timers, but no thread to expire them: threads that wait do it. */
extern volatile ULONG KiClockMissing;
const HAL_DEADLINE *KiShortenToNap(PKTHREAD Thread, const HAL_DEADLINE *Deadline, PHAL_DEADLINE Nap);
VOID KiPollClock(VOID); /* by threads that wait, outside their wait */

FORCEINLINE BOOLEAN KiIsClockMissing(VOID)
{
    /* seq_cst, like the mark in KiParkOnWord before it: a thread that reads the old value is found asleep by the thread
       that sets it (KiReconsiderDeadline) */
    return __atomic_load_n(&KiClockMissing, __ATOMIC_SEQ_CST) != 0;
}

/*
 * The part of a wait in which the thread is off the processor.
 *
 * It is inline wherever a thread waits, and as flat as possible on the way back from the host: after the host has
 * switched threads, the processor's return predictor no longer holds the callers, and every return from a call made
 * before the switch is mispredicted. Where a signaler wakes a thread, the calls down to the host are jumps for the same
 * reason.
 */

#define KI_LAST_SWAPPABLE_PRIORITY 24

/*
 * NT links a waiting thread whose kernel stack may be swapped out to the WaitListHead of the processor that it ran on
 * (here WaitProcessor): a user-mode wait, stack swapping enabled, and a priority that is not time-critical. Nothing here
 * swaps stacks, so no list is kept and a wait costs no lock for it; the debugger derives the list from the threads.
 */
FORCEINLINE BOOLEAN KiIsOnWaitList(const KTHREAD *Thread)
{
    /* relaxed, both: advisory only */
    return __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) == Waiting && Thread->WaitMode == UserMode &&
           Thread->EnableStackSwap &&
           __atomic_load_n(&Thread->Priority, __ATOMIC_RELAXED) <= KI_LAST_SWAPPABLE_PRIORITY;
}

FORCEINLINE VOID KiEnterWaitState(PKI_WAIT Wait)
{
    PKTHREAD Thread = Wait->Thread;
    /* relaxed: others only display it and the reason */
    __atomic_store_n(&Thread->State, Waiting, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->WaitReason, (UCHAR)Wait->Reason, __ATOMIC_RELAXED);
    Thread->WaitMode = Wait->Mode;
    Thread->WaitIrql = Thread->Irql;
    Thread->Alertable = Wait->Alertable;
    Thread->WaitDeadline = Wait->Deadline;
    Thread->WaitTime = (ULONG)(HalDispatch.QueryTickTime() / KI_TICK);
    if (Wait->Mode == UserMode) {
        Thread->WaitProcessor = KiHostProcessor(KeNumberProcessors);
    }
    if (Wait->Deadline.Clock != HalNoDeadline) {
        KiPrepareBlock(&Thread->WaitBlock[TIMER_WAIT_BLOCK], Thread, &Thread->Timer, WaitAny, (USHORT)STATUS_TIMEOUT);
        Thread->Timer.DueTime.QuadPart = Wait->Deadline.Time;
    }
    if (Wait->WaitType != WaitDequeue) { /* a dequeue did its accounting when it was linked */
        KiBlockFromQueue(Thread);
    }
}

FORCEINLINE VOID KiLeaveWaitState(PKI_WAIT Wait, BOOLEAN EndedByOther)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    if (!EndedByOther || (Register & KI_WAIT_STATE_MASK) != WaitCommitted) {
        KiUnblockFromQueue(Thread);
    }
    if (Register & (KI_WAIT_PRIORITY | KI_WAIT_AFFINITY)) { /* no thread sets them once the wait is not Active */
        __atomic_and_fetch(&Thread->WaitRegister, ~(KI_WAIT_PRIORITY | KI_WAIT_AFFINITY), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&Thread->State, Running, __ATOMIC_RELAXED);
    Thread->ContextSwitches += 1;
}

typedef struct _KI_SLEEP {
    PKTHREAD Thread;
    const HAL_DEADLINE *Until; /* the deadline of the last sleep */
    HAL_DEADLINE Nap;
} KI_SLEEP, *PKI_SLEEP;

static inline BOOLEAN KiIsWoken(ULONG WakeWord, PVOID Sleep)
{
    UNREFERENCED_PARAMETER(Sleep);
    return WakeWord == KI_WOKEN;
}

/* When to wake up at the latest. A lightweight suspend has no deadline while it lasts. A thread that acts as the clock
   wakes earlier: see timer.c. */
static inline const HAL_DEADLINE *KiNextWake(PVOID Context)
{
    static const HAL_DEADLINE NoDeadline = {HalNoDeadline, 0};
    PKI_SLEEP Sleep = Context;
    PKTHREAD Thread = Sleep->Thread;
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    BOOLEAN Counts = (Register & KI_WAIT_ACTIVE) && (Register & KI_WAIT_STATE_MASK) == WaitCommitted;
    Sleep->Until = Counts ? &Thread->WaitDeadline : &NoDeadline;
    if (__builtin_expect(KiIsClockMissing(), 0)) {
        Sleep->Until = KiShortenToNap(Thread, Sleep->Until, &Sleep->Nap);
    }
    return Sleep->Until;
}

/* Commits the wait and sleeps until another thread ends it (KiReadyThread is the other half), or until the deadline,
 * after which the thread ends it itself. *Result is the status, or the entry that a queue handed over. */
FORCEINLINE NTSTATUS KiCommitAndSleep(PKI_WAIT Wait, BOOLEAN *EndedByOther, LONG_PTR *Result)
{
    PKTHREAD Thread = Wait->Thread;
    KI_SLEEP Sleep = {.Thread = Thread};

    KTRACE_WAIT_BEGIN(Wait);
    KiEnterWaitState(Wait);
    NTSTATUS Status = KiCommitWait(Thread);
    if (Status == STATUS_PENDING || Status == STATUS_WAIT_0) {
        KiExitDispatcher(Thread);
        if (!Wait->Spun) {
            Wait->Spun = TRUE;
            KiSpinForWake(Thread);
        }
        do {
            if (HAL_SIMULATED && HalSimulateSleep(&Thread->WakeWord, KI_WOKEN, KiNextWake(&Sleep), EndedByOther)) {
                continue;
            }
            *EndedByOther = KiParkOnWord(Thread, KiParkAsleep, &Thread->WakeWord, KI_SLEEPING, KiIsWoken, KiNextWake, &Sleep);
        } while (!*EndedByOther && !KiEndOwnWait(Thread));
        KiEnterDispatcher(Thread);
        *Result = *EndedByOther ? Thread->WaitStatus : Sleep.Until == &Sleep.Nap ? STATUS_KERNEL_APC : STATUS_TIMEOUT;
    } else {
        *EndedByOther = FALSE;
        *Result = Status;
    }
    KTRACE_WAIT_END(Wait, *Result);
    return (NTSTATUS)*Result;
}

#endif
