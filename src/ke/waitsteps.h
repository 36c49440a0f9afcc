/*
 * waitsteps.h: the waiter's steps, for wait.c and manyobjects.c. Theory in wait.h.
 *
 * Many is a constant in each caller. TRUE: a wait for any of so many objects that a status of Windows cannot hold the
 * index of each; the two ranges KI_MANY_ hold it. A wait for up to 64 objects compiles to the same code as without it.
 */
#ifndef INTERLOCK_KE_WAITSTEPS_H
#define INTERLOCK_KE_WAITSTEPS_H

#include "timer.h"
#include "wait.h"

/* Status: STATUS_WAIT_0, or STATUS_ABANDONED_WAIT_0 for a mutant whose owner has ended. */
FORCEINLINE NTSTATUS KiStatusOfIndex(NTSTATUS Status, ULONG Index, BOOLEAN Many)
{
    if (Many) {
        Status = Status == STATUS_ABANDONED_WAIT_0 ? KI_MANY_ABANDONED_0 : KI_MANY_WAIT_0;
    }
    return Status + (NTSTATUS)Index;
}

FORCEINLINE BOOLEAN KiIsAtMutantLimit(PDISPATCHER_HEADER Header, PKTHREAD Thread)
{
    ULONG64 Word = KiReadHeader(Header);
    return KI_TYPE(Word) == MutantObject && KI_STATE(Word) == KI_MUTANT_LIMIT && KiIsSignaledFor(Header, Word, Thread);
}

/* Tests the objects in order, as documented, and consumes the first signaled one. */
FORCEINLINE BOOLEAN KiTryConsumeFirst(PVOID Object[], ULONG Count, PKTHREAD Thread, BOOLEAN Many, NTSTATUS *Status)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ULONG64 Word = KiReadHeader(Object[Index]);
        if (KI_STATE(Word) <= 0 && !(Word & KI_LOCKED) && KI_TYPE(Word) != MutantObject) {
            continue;
        }
        if (KiIsAtMutantLimit(Object[Index], Thread)) {
            *Status = STATUS_MUTANT_LIMIT_EXCEEDED;
            return TRUE;
        }
        if (KiTryConsume(Object[Index], Thread, Status)) {
            *Status = KiStatusOfIndex(*Status, Index, Many);
            return TRUE;
        }
    }
    return FALSE;
}

/* Linking. */

/* With the object locked: it may be freed afterwards. AutoBoost: a mutant's owner runs at least at the waiter's priority. */
FORCEINLINE VOID KiLendToOwner(PKI_WAIT Wait, PKWAIT_BLOCK Block)
{
    if (*KiTypeOf(Wait, Block->WaitKey) == MutantObject) {
        PKMUTANT Mutant = CONTAINING_RECORD((PDISPATCHER_HEADER)Block->Object, KMUTANT, Header);
        /* relaxed: KTHREADs are never unmapped, and the boost of a thread that is no longer the owner decays */
        KiLendPriority(Wait->Thread, __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED));
    }
}

/* With the object of the block locked in *Word, and signaled: the thread tries to end its own wait, and consumes it. */
FORCEINLINE NTSTATUS KiEndByObject(PKI_WAIT Wait, ULONG Index, BOOLEAN Many, ULONG64 *Word)
{
    PKTHREAD Thread = Wait->Thread;
    NTSTATUS Status = STATUS_WAIT_0;
    if (!KiEndOwnWait(Thread)) {
        return STATUS_PENDING; /* a signal through an earlier block was faster; KiCommitWait detects that */
    }
    if (Wait->WaitType != KI_WATCH_BLOCK &&
        KiConsumeLocked(Wait->Blocks[Index].Object, Word, Thread) == STATUS_ABANDONED) {
        Status = STATUS_ABANDONED_WAIT_0;
    }
    return KiStatusOfIndex(Status, Index, Many);
}

/* STATUS_RETRY: the object is outside; the wait is ended. */
FORCEINLINE NTSTATUS KiLinkObjectInline(PKI_WAIT Wait, ULONG Index, BOOLEAN Many, BOOLEAN *Signaled)
{
    PKTHREAD Thread = Wait->Thread;
    PKWAIT_BLOCK Block = &Wait->Blocks[Index];
    PDISPATCHER_HEADER Header = Block->Object;
    NTSTATUS Status = STATUS_PENDING;
    ULONG64 Word = KiLockObject(Header);
    if (Word == 0) {
        *Signaled = TRUE;
        return KiEndOwnWait(Thread) ? STATUS_RETRY : STATUS_PENDING;
    }
    *KiTypeOf(Wait, Index) = Wait->WaitType == KI_WATCH_BLOCK ? 0 : (UCHAR)KI_TYPE(Word);
    *Signaled = KiIsSignaledFor(Header, Word, Thread);
    if (*Signaled) {
        Status = KiEndByObject(Wait, Index, Many, &Word);
    } else if (!Wait->Poll) {
        KiLinkBlock(Block);
        KiLendToOwner(Wait, Block);
    }
    KiUnlockObject(Header, Word);
    return Status;
}

/* Links each block to its object, up to the first object that is signaled. */
FORCEINLINE NTSTATUS KiLinkAny(PKI_WAIT Wait, BOOLEAN Many)
{
    NTSTATUS Status = STATUS_PENDING;
    BOOLEAN Signaled = FALSE;
    for (ULONG Index = 0; Index < Wait->Count && !Signaled; Index += 1) {
        Status = KiLinkObjectInline(Wait, Index, Many, &Signaled);
    }
    return Status;
}

/* After the wait. */

/* Of the objects that satisfied the wait, only those that were noted as mutants may be touched: rule 6. */
FORCEINLINE VOID KiTakeOwnershipsInline(PKI_WAIT Wait, NTSTATUS Status, BOOLEAN Many)
{
    NTSTATUS Satisfied0 = Many ? KI_MANY_WAIT_0 : STATUS_WAIT_0;
    NTSTATUS Abandoned0 = Many ? KI_MANY_ABANDONED_0 : STATUS_ABANDONED_WAIT_0;
    ULONG Most = Many ? MAXUSHORT : MAXIMUM_WAIT_OBJECTS;
    BOOLEAN Abandoned = Status >= Abandoned0 && Status < Abandoned0 + (NTSTATUS)Most;
    ULONG Satisfied = (ULONG)(Status - (Abandoned ? Abandoned0 : Satisfied0));
    if (Satisfied >= Most) {
        return;
    }
    BOOLEAN One = Many || Wait->WaitType == WaitAny;
    ULONG Index = One ? Satisfied : 0;
    ULONG End = One && Satisfied < Wait->Count ? Satisfied + 1 : Wait->Count;
    for (; Index < End; Index += 1) {
        if (*KiTypeOf(Wait, Index) == MutantObject) {
            KiTakeOwnershipIfMutant(Wait->Objects[Index], Wait->Thread);
        }
    }
}

/* The whole wait. */

/* One attempt, from begin to unlink. STATUS_KERNEL_APC: a kernel APC has to run first. */
FORCEINLINE NTSTATUS KiWaitOnce(PKI_WAIT Wait, BOOLEAN Many)
{
    PKTHREAD Thread = Wait->Thread;
    ULONG Blocks = Wait->WaitType == KI_HINT_BLOCK ? 1 : Wait->Count;
    BOOLEAN EndedByOther = FALSE;
    LONG_PTR Result;

    NTSTATUS Status = KiBeginWait(Thread, KiWaitFlags(Thread, Wait->Mode, Wait->Alertable) | Wait->Flags);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    for (ULONG Index = 0; Index < Blocks; Index += 1) {
        KiPrepareBlock(&Wait->Blocks[Index], Thread, Wait->Objects[Index], Wait->WaitType, (USHORT)Index);
    }
    Thread->WaitBlockList = Wait->Blocks;
    Thread->WaitBlockCount = (USHORT)Blocks;
    Status = Wait->WaitType == WaitAll ? KiLinkAll(Wait) : KiLinkAny(Wait, Many);
    if (Status == STATUS_PENDING && Wait->Poll && KiEndOwnWait(Thread)) {
        Status = STATUS_TIMEOUT;
    }
    if (Status == STATUS_PENDING) {
        Status = KiCommitAndSleep(Wait, &EndedByOther, &Result);
        KiUnlinkBlocks(Wait);
        KiLeaveWaitState(Wait, EndedByOther);
    } else {
        KiUnlinkBlocks(Wait);
    }
    return Status;
}

/* Delivers kernel APCs and starts over as often as necessary. */
FORCEINLINE NTSTATUS KiRunWait(PKI_WAIT Wait, BOOLEAN Many)
{
    PKTHREAD Thread = Wait->Thread;
    for (;;) {
        KiEnterDispatcher(Thread);
        NTSTATUS Status = KiWaitOnce(Wait, Many);
        KiTakeOwnershipsInline(Wait, Status, Many);
        KiExitDispatcher(Thread);
        if (Status == STATUS_RETRY) {
            return Wait->WaitType != KI_WATCH_BLOCK ? KiWaitOutside(Wait) : Status;
        }
        if (Status != STATUS_KERNEL_APC) {
            if (Status == STATUS_TIMEOUT) {
                KiPollClock();
            }
            return Status;
        }
        KiDeliverApc(Thread);
        KiPollClock();
    }
}

#endif
