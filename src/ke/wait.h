/*
 * wait.h: the wait engine.
 *
 * A wait goes through these steps; T is the waiting thread, S whoever ends the wait.
 *
 *   T: begin      WaitRegister becomes Active|WaitInProgress, unless an alert or user APC stops the wait right here
 *   T: link       each object is locked, tested, and T's block put on its list (a WaitAll holds all locks at once)
 *   T: commit     WaitInProgress -> WaitCommitted by compare-exchange, unless something has come in between
 *   T: park       on WakeWord, until the deadline
 *   S: end        clears Active by compare-exchange; the one who does has ended the wait, nobody else can
 *   S: ready      consumes the object, unlinks T's block, stores WaitStatus, and last of all WakeWord
 *   T: unlink     takes the blocks off that S has left, lock by lock
 *
 * 1. S reaches T either through a block on the list of an object that S has locked, or through T's register (alert,
 *    APC, suspension). T cannot leave its wait while S holds that lock, because T has to take it to unlink; KTHREADs
 *    are never unmapped. So S never touches a wait that is over.
 * 2. A wait that was ended by another thread returns only after that thread's store to WakeWord, its last touch.
 * 3. T's own end of the wait (timeout, alert found at commit) is the same compare-exchange, so a signal and a timeout
 *    that meet have one winner, and only the winner consumes.
 * 4. Before commit, alerts and APCs only set their bits: T finds them when it commits. A signal that meets a wait in
 *    progress aborts it (WaitAborted, the block passes through WaitBlockBypassStart and -Complete).
 * 5. A stray wake of the host changes nothing: T looks at WakeWord again, with the same deadline.
 * 6. T does not touch the object by which S has ended its wait: another thread that S has released may have freed it.
 */
#ifndef INTERLOCK_WAIT_H
#define INTERLOCK_WAIT_H

#include "waitlist.h"

/* WakeWord: reset by the thread before its wait becomes Active. */
#define KI_AWAKE 0u
#define KI_WOKEN 1u
#define KI_SLEEPING 2u

/* Objects. */

/* What a wait takes from an object, by its type; from those that are in no set, nothing. */
#define KI_TAKES_SIGNAL                                                                                                \
    ((ULONG64)1 << EventSynchronizationObject | (ULONG64)1 << GateObject | (ULONG64)1 << TimerSynchronizationObject)
#define KI_TAKES_COUNT ((ULONG64)1 << SemaphoreObject)
#define KI_TAKES_OWNERSHIP ((ULONG64)1 << MutantObject)

FORCEINLINE BOOLEAN KiIsOfTypes(ULONG64 Word, ULONG64 Types)
{
    return (Types >> KI_TYPE(Word) & 1) != 0;
}

/* The word of a signaled object after a wait has taken its share. */
FORCEINLINE ULONG64 KiConsumed(ULONG64 Word)
{
    if (KiIsOfTypes(Word, KI_TAKES_SIGNAL)) {
        return KiWithState(Word, 0);
    }
    return KiIsOfTypes(Word, KI_TAKES_COUNT | KI_TAKES_OWNERSHIP) ? KiWithState(Word, KI_STATE(Word) - 1) : Word;
}

FORCEINLINE BOOLEAN KiOwnsMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    PKMUTANT Mutant = CONTAINING_RECORD(Header, KMUTANT, Header);
    /* relaxed: only Thread itself makes this true or false for Thread */
    return __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED) == Thread;
}

/* The count of a mutant that its owner cannot enter once more. */
#define KI_MUTANT_LIMIT ((LONG)MINLONG)

FORCEINLINE BOOLEAN KiIsSignaledFor(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread)
{
    return KI_STATE(Word) > 0 || (KI_TYPE(Word) == MutantObject && KiOwnsMutant(Header, Thread));
}

NTSTATUS KiGiveMutant(PKMUTANT Mutant, PKTHREAD Thread);

/* With the lock held; *Word is what the caller will unlock the object with. STATUS_SUCCESS or STATUS_ABANDONED. */
FORCEINLINE NTSTATUS KiConsumeLocked(PDISPATCHER_HEADER Header, ULONG64 *Word, PKTHREAD Thread)
{
    *Word = KiConsumed(*Word);
    return KI_TYPE(*Word) == MutantObject && KI_STATE(*Word) == 0
               ? KiGiveMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Thread)
               : STATUS_SUCCESS;
}

BOOLEAN KiTryConsume(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status);
/* FALSE: it has another owner, or is locked, or is at its limit, or somebody was faster. */
BOOLEAN KiTryEnterMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status);
NTSTATUS KiConsumeHeld(PDISPATCHER_HEADER Header, PKTHREAD Thread); /* with the lock held */
BOOLEAN KiEndWaitOfBlock(PKWAIT_BLOCK Block, LONG_PTR Status, PKI_READY Released);

/* semaphore.c, mutant.c: the documented functions, but what they raise is returned, and then nothing has happened. */
NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount);
NTSTATUS KiReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait, PLONG PreviousCount);

/* mutant.c: the thread enters a mutant that it has just been given into its own list. */
VOID KiTakeOwnershipOf(PKMUTANT Mutant, PKTHREAD Thread);

/* register.c: everything that changes a wait status register. */

#define KI_NOT_ENDED 0xffu
ULONG KiEndWait(PKTHREAD Thread, LONG_PTR Status); /* the KWAIT_STATE that the wait was in, or KI_NOT_ENDED */
NTSTATUS KiBeginWait(PKTHREAD Thread, ULONG HowIssued); /* STATUS_PENDING, or why there is nothing to wait for */
NTSTATUS KiCommitWait(PKTHREAD Thread);                 /* STATUS_PENDING, or why the wait is over */
VOID KiReconsiderDeadline(PKTHREAD Thread);             /* suspend.c: if it sleeps, it finds out again until when */
BOOLEAN KiEndOwnWait(PKTHREAD Thread);                  /* FALSE: somebody else has ended it */
ULONG KiInterruptWait(PKTHREAD Thread, ULONG Pending, KPRIORITY Increment); /* sets Pending bits, which may end the wait;
                                                           returns the register before */
BOOLEAN KiGivesUpWait(PKTHREAD Thread);                 /* it is to end, which ends its wait */
BOOLEAN KiBeginSuspend(PKTHREAD Thread);                /* WaitCommitted -> WaitSuspendInProgress, if that is allowed */
VOID KiFinishSuspend(PKTHREAD Thread);                  /* -> WaitSuspended */
BOOLEAN KiBeginResume(PKTHREAD Thread);                 /* WaitSuspended -> WaitResumeInProgress; FALSE: was not suspended so */
VOID KiFinishResume(PKTHREAD Thread);                   /* -> WaitCommitted, unless a signal has ended the wait meanwhile */
NTSTATUS KiTakeAlert(PKTHREAD Thread, ULONG HowIssued);  /* what an alertable wait issued like this finds pending */
BOOLEAN KiClearAlert(PKTHREAD Thread, KPROCESSOR_MODE Mode);
KPROCESSOR_MODE KiModeOfTakenAlert(PKTHREAD Thread);    /* by the thread itself, after STATUS_ALERTED: to give it back */
BOOLEAN KiTakeAlertById(PKTHREAD Thread);               /* by the thread itself; FALSE: none is pending */
ULONG KiWaitFlags(PKTHREAD Thread, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable);

/* waitall.c: the other objects of a WaitAll, locked on behalf of a signaler that holds one of them. */

typedef struct _KI_PEERS {
    PDISPATCHER_HEADER Held;    /* the object that is being signaled */
    PLIST_ENTRY Before;         /* behind this entry of its list, or its head, the blocks begin that are examined */
    PDISPATCHER_HEADER Highest; /* the highest address locked so far */
    LONG Mark;                  /* the signaler's own, in KWAIT_BLOCK.SpareLong of what it has locked */
    ULONG Count;                /* peers locked */
} KI_PEERS, *PKI_PEERS;

VOID KiInitializePeers(PKI_PEERS Peers, PDISPATCHER_HEADER Held, PLIST_ENTRY Before);
/* Locks the other objects of Block's wait, or finds one that is not signaled, which the wait watches from now on in the
   place of Block's object. FALSE: one of them could not be locked, the signal has to start over. */
BOOLEAN KiLockPeers(PKI_PEERS Peers, PKWAIT_BLOCK Block);
BOOLEAN KiPeersSignaled(PKWAIT_BLOCK Block); /* FALSE: the wait watches one that is not */
NTSTATUS KiConsumePeers(PKWAIT_BLOCK Block);
VOID KiUnlockPeers(PKI_PEERS Peers, PKI_READY Released);

/* All of them at one instant, if all are signaled; FALSE: they are not, or are locked by others, or not all different. */
BOOLEAN KiTryConsumeAll(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status);
VOID KiTakeOwnershipIfMutant(PDISPATCHER_HEADER Header, PKTHREAD Thread);

/* All objects of Thread's wait, which is a WaitAll. */
VOID KiLockInOrder(PKTHREAD Thread);
VOID KiUnlockInOrder(PKTHREAD Thread);
BOOLEAN KiAllSignaledFor(PKTHREAD Thread);
NTSTATUS KiConsumeAll(PKTHREAD Thread);

/* wait.c */

/* The WaitType of the one block of a wait for an alert by id: in the place of the object it has the hint. */
#define KI_HINT_BLOCK 0xff

/* How many of the blocks of Thread's wait are for an object. */
FORCEINLINE ULONG KiObjectBlocks(PKTHREAD Thread)
{
    return Thread->WaitBlockCount != 0 && Thread->WaitBlockList->WaitType == KI_HINT_BLOCK ? 0 : Thread->WaitBlockCount;
}

typedef struct _KI_WAIT {
    PKTHREAD Thread;
    PVOID *Objects;      /* Count of them; or with WaitType KI_HINT_BLOCK none, and the hint */
    const UCHAR *Order;  /* of a WaitAll: the indices of its objects, by their addresses */
    PKWAIT_BLOCK Blocks; /* prepared anew for every attempt: an APC in between may have used the same ones */
    ULONG Count;
    UCHAR WaitType;
    KWAIT_REASON Reason;
    KPROCESSOR_MODE Mode;
    BOOLEAN Alertable;
    BOOLEAN Spun; /* has spun already, or has nothing to spin for */
    BOOLEAN Poll; /* a timeout of zero: look, never block */
    ULONG Flags;  /* more KI_WAIT_ bits for the register */
    HAL_DEADLINE Deadline;
    UCHAR Types[MAXIMUM_WAIT_OBJECTS]; /* of the objects whose turn to be linked has come: what ends the wait may be gone
                                          afterwards, unless it is a mutant that the thread owns then */
} KI_WAIT, *PKI_WAIT;

VOID KiInitializeWait(PKI_WAIT Wait, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
                      PLARGE_INTEGER Timeout); /* checks the level; Object is only for the bugcheck */
VOID KiPrepareBlock(PKWAIT_BLOCK Block, PKTHREAD Thread, PVOID Object, UCHAR WaitType, USHORT Key);
NTSTATUS KiWait(PKI_WAIT Wait);         /* runs the steps above, delivers kernel APCs and starts over as often as need be */
BOOLEAN KiTryConsumeAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status); /* TRUE: *Status ends the wait */
/* waitorder.c. FALSE: not all of the objects are different ones. */
BOOLEAN KiSortObjects(PVOID Object[], ULONG Count, UCHAR Order[MAXIMUM_WAIT_OBJECTS]);
BOOLEAN KiHasDuplicates(PVOID Object[], ULONG Count);

/* A wait that nothing comes before: no alert, no level to come down from or to complain about. */
FORCEINLINE BOOLEAN KiMayConsumeAtOnce(PKTHREAD Thread, BOOLEAN Alertable)
{
    return !Alertable && !Thread->WaitNext && Thread->Irql < DISPATCH_LEVEL;
}

/* FALSE: the object is not signaled, or not at the first look, or is a mutant. TRUE: the wait is over, STATUS_SUCCESS. */
FORCEINLINE BOOLEAN KiTryConsumeAtOnce(PDISPATCHER_HEADER Header, BOOLEAN Alertable)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL, FALSE) || !KiMayConsumeAtOnce(Thread, Alertable)) {
        return FALSE;
    }
    ULONG64 Word = KiReadHeader(Header);
    return KI_STATE(Word) > 0 && !(Word & KI_LOCKED) && KI_TYPE(Word) != MutantObject &&
           KiCompareExchangeHeader(Header, &Word, KiConsumed(Word));
}

/* The documented functions but for their end: after STATUS_USER_APC the caller runs KiDeliverUserApcs, when it has given
   back what it holds, and STATUS_MUTANT_LIMIT_EXCEEDED is returned, not raised. */
NTSTATUS KiWaitForSingleObjectSlow(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                   PLARGE_INTEGER Timeout);

FORCEINLINE NTSTATUS KiWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                           BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return KiTryConsumeAtOnce(Object, Alertable)
               ? STATUS_SUCCESS
               : KiWaitForSingleObjectSlow(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS KiWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                  KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray);
VOID KiSetWaitNext(PKTHREAD Thread);    /* a signal with Wait TRUE: to DISPATCH_LEVEL until the wait that follows */

/* block.c: the WaitListHead of a PRCB. */
VOID KiListWaitingThread(PKTHREAD Thread);
VOID KiUnlistWaitingThread(PKTHREAD Thread);

/* spin.c: a short look before a wait goes to sleep. */
BOOLEAN KiSpinForObject(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status);
BOOLEAN KiMaySpin(PKTHREAD Thread); /* rule 1 there */
BOOLEAN KiSpinForAlertById(PKTHREAD Thread);
BOOLEAN KiSpinForAny(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status);
BOOLEAN KiSpinForQueue(PKQUEUE Queue, PKTHREAD Thread); /* TRUE: an entry was seen, which others see as well */
VOID KiSpinForWake(PKTHREAD Thread);

/* queue.c, notify.c */
/* The documented functions, called inside the library; user APCs are left to the caller. */
LONG KiInsertQueue(PKQUEUE Queue, PLIST_ENTRY Entry);
PLIST_ENTRY KiRemoveQueue(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout);
ULONG KiRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                      PLIST_ENTRY *EntryArray, ULONG Count);
VOID KiBlockFromQueue(PKTHREAD Thread);   /* the thread is about to wait: its queue may let another one run */
VOID KiUnblockFromQueue(PKTHREAD Thread); /* its wait is over: it counts again, above the limit if need be */
VOID KiQueueNotification(PKQUEUE Queue, PKWAIT_BLOCK Block, PLIST_ENTRY Entry);
BOOLEAN KiRemoveQueuedEntry(PKQUEUE Queue, PLIST_ENTRY Entry);
PLIST_ENTRY KiTakeQueuedEntry(PKQUEUE Queue); /* the oldest one, whatever the number of threads that run; or NULL */
VOID KiAbandonQueue(PKQUEUE Queue);           /* KeRundownQueue, but the entries stay, to be taken one by one */
VOID KiSetQueueLimit(PKQUEUE Queue, ULONG MaximumCount); /* how many threads may run, from now on */
VOID KiDeliverNotification(PKWAIT_BLOCK Block);

/* clock.c. There are timers, and no thread to expire them: those who wait do it. */
extern volatile ULONG KiClockMissing;
const HAL_DEADLINE *KiShortenToNap(PKTHREAD Thread, const HAL_DEADLINE *Deadline, PHAL_DEADLINE Nap);
VOID KiPollClock(VOID);                                 /* by those who wait, outside of their wait */

FORCEINLINE BOOLEAN KiIsClockMissing(VOID)
{
    /* relaxed: who sets it wakes those who sleep (KiReconsiderDeadline) */
    return __atomic_load_n(&KiClockMissing, __ATOMIC_RELAXED) != 0;
}

#endif
