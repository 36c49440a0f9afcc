/*
 * mutant.c: KMUTANT and KMUTEX.
 *
 * SignalState: 1 free, 0 owned, -1, -2, ... owned and acquired recursively. The thread that makes the count 0 writes
 * OwnerThread; the owner clears it before it makes the count 1. A thread keeps its mutants in MutantListHead, which
 * only it touches: a signaler that hands a mutant off leaves the entry to the new owner, which adds it when its wait
 * returns.
 */
#include "wait.h"

#include "lockorder.h"

#include "../trace/trace.h"

static VOID KiInitializeMutantObject(PRKMUTANT Mutant, LONG State, PKTHREAD Owner, UCHAR ApcDisable)
{
    KiInitializeBareHeader(&Mutant->Header, MutantObject, State);
    Mutant->Header.MutantSize = sizeof(KMUTANT) / sizeof(LONG);
    Mutant->Header.DpcActive = FALSE;
    Mutant->OwnerThread = Owner;
    Mutant->Abandoned = FALSE;
    Mutant->ApcDisable = ApcDisable;
    if (KiVerifierEnabled) {
        Mutant->ApcDisable |= KI_MUTANT_VERIFIED;
        KiOrderInitialize(Mutant, KiOrderMutant);
    }
}

VOID KeInitializeMutant(PRKMUTANT Mutant, BOOLEAN InitialOwner)
{
    if (InitialOwner) {
        PKTHREAD Thread = KiCurrentThread();
        KiInitializeMutantObject(Mutant, 0, Thread, 0);
        KiTakeOwnershipOf(Mutant, Thread);
    } else {
        KiInitializeMutantObject(Mutant, 1, NULL, 0);
    }
}

VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level)
{
    UNREFERENCED_PARAMETER(Level);
    KiInitializeMutantObject(Mutex, 1, NULL, 1);
}

/* Acquiring. */

NTSTATUS KiGiveMutant(PKMUTANT Mutant, PKTHREAD Thread)
{
    NTSTATUS Status = Mutant->Abandoned ? STATUS_ABANDONED : STATUS_SUCCESS;
    Mutant->Abandoned = FALSE;
    /* relaxed: see KiOwnsMutant; other readers only show it */
    __atomic_store_n(&Mutant->OwnerThread, Thread, __ATOMIC_RELAXED);
    return Status;
}

static VOID KiChangeDpcActive(PKMUTANT Mutant, ULONG64 Set)
{
    ULONG64 Word = KiReadSettledHeader(&Mutant->Header);
    while (!KiCompareExchangeHeader(&Mutant->Header, &Word, (Word & ~KI_MUTANT_DPC_ACTIVE) | Set)) {
        Word = KiReadSettledHeader(&Mutant->Header);
    }
}

/* The current thread has become the owner of a mutant that the verifier watches. */
static DECLSPEC_NOINLINE VOID KiNoteOwnership(PKMUTANT Mutant, PKTHREAD Thread)
{
    if (Mutant->ApcDisable & KI_MUTANT_MUTEX) {
        Thread->KernelApcDisable -= 1;
    }
    if (KiVerifierEnabled && Thread == HalCurrentThread) {
        if (Thread->OrderWaits) {
            KiOrderCheck(Thread, Mutant, KiOrderMutant, KiOrderExclusive);
        }
        KiOrderHold(Thread, Mutant, KiOrderMutant, KiOrderExclusive, NULL);
    }
}

/* As KiLeavesRegion, for a mutant that is free again. */
static DECLSPEC_NOINLINE BOOLEAN KiNoteFreed(UCHAR ApcDisable, PKMUTANT Mutant, PKTHREAD Thread)
{
    KiOrderRelease(Thread, Mutant);
    return (ApcDisable & KI_MUTANT_MUTEX) != 0;
}

/* ApcDisable: what KiFreeMutant has returned. TRUE: the owner has to leave the region in which the mutant disabled
   kernel APCs. */
FORCEINLINE BOOLEAN KiLeavesRegion(UCHAR ApcDisable, PKMUTANT Mutant, PKTHREAD Thread)
{
    return ApcDisable != 0 &&
           (__builtin_expect(ApcDisable == KI_MUTANT_MUTEX, TRUE) || KiNoteFreed(ApcDisable, Mutant, Thread));
}

/* A mutant that a DPC acquires is on no list: the thread that the DPC interrupted does not own it. */
VOID KiTakeOwnershipOf(PKMUTANT Mutant, PKTHREAD Thread)
{
    if (Thread->DpcDepth != 0) {
        KiChangeDpcActive(Mutant, KI_MUTANT_DPC_ACTIVE);
        return;
    }
    InsertTailList(&Thread->MutantListHead, &Mutant->MutantListEntry);
    if (Mutant->ApcDisable != 0) {
        if (__builtin_expect(Mutant->ApcDisable > KI_MUTANT_MUTEX, FALSE)) {
            KiNoteOwnership(Mutant, Thread);
        } else {
            Thread->KernelApcDisable -= 1;
        }
    }
}

/* The header was found locked. */
static DECLSPEC_NOINLINE BOOLEAN KiTryAcquireLockedMutant(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status)
{
    if (KiIsOutside(&Mutant->Header)) {
        return KiTryConsumeOutside(&Mutant->Header, Thread, Status);
    }
    KiReadSettledHeader(&Mutant->Header);
    return KiTryAcquireMutant(Mutant, Thread, Status);
}

BOOLEAN KiTryAcquireMutant(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status)
{
    PDISPATCHER_HEADER Header = &Mutant->Header;
    ULONG64 Word = KiReadHeader(Header);
    for (;;) {
        if (Word & KI_LOCKED) {
            return KiTryAcquireLockedMutant(Mutant, Thread, Status);
        }
        if (KI_STATE(Word) > 0) {
            KiEnterDispatcher(Thread); /* a fork must not find a mutant that is taken and has no owner yet */
            BOOLEAN Acquired = KiCompareExchangeHeader(Header, &Word, KiWithState(Word, 0));
            if (Acquired) {
                *Status = KiGiveMutant(Mutant, Thread);
                KiTakeOwnershipOf(Mutant, Thread);
            }
            KiExitDispatcher(Thread);
            if (Acquired) {
                return TRUE;
            }
        } else if (!KiOwnsMutant(Header, Thread) || KI_STATE(Word) == KI_MUTANT_LIMIT) {
            return FALSE;
        } else if (KiCompareExchangeHeader(Header, &Word, KiWithState(Word, KI_STATE(Word) - 1))) {
            *Status = STATUS_SUCCESS;
            return TRUE;
        }
    }
}

/* The caller is in a dispatcher section. A mutant that the verifier watches, or that disables APCs, is left to the slow path. */
BOOLEAN KiTryAcquireMutantAtOnce(PKMUTANT Mutant, PKTHREAD Thread, NTSTATUS *Status)
{
    PDISPATCHER_HEADER Header = &Mutant->Header;
    ULONG64 Word = KiReadHeader(Header);
    if (__builtin_expect((Word & KI_LOCKED) != 0, FALSE)) {
        return KiTryConsumeOutsideAtOnce(Header, Thread, Status);
    }
    if (__builtin_expect(Mutant->ApcDisable != 0 || Thread->DpcDepth != 0, FALSE)) {
        return FALSE;
    }
    *Status = STATUS_SUCCESS;
    if (KI_STATE(Word) <= 0) {
        return KiOwnsMutant(Header, Thread) && KI_STATE(Word) != KI_MUTANT_LIMIT &&
               KiCompareExchangeHeader(Header, &Word, KiWithState(Word, KI_STATE(Word) - 1));
    }
    if (!KiCompareExchangeHeader(Header, &Word, KiWithState(Word, 0))) {
        return FALSE;
    }
    *Status = KiGiveMutant(Mutant, Thread);
    InsertTailList(&Thread->MutantListHead, &Mutant->MutantListEntry);
    return TRUE;
}

/* Releasing. */

static DECLSPEC_NOINLINE VOID KiFreeMutantSlow(PKMUTANT Mutant, KPRIORITY Increment, PKTHREAD Owner)
{
    LONG Free = 1;
    PKTHREAD NewOwner = NULL;
    KI_SIGNAL Signal = {.Update = KiUpdateState, .Context = &Free, .Increment = Increment, .Released = &NewOwner};
    LONG Previous;
    KTRACE_RELEASING(Mutant, KiLockMutant, TRUE, Owner);
    KiSignal(&Mutant->Header, &Signal, &Previous);
    KTRACE_RELEASED(TRUE);
    KiPassOnLentPriority(KiCurrentThread(), NewOwner);
}

/* Gives up ownership. Returns ApcDisable for KiLeavesRegion, 0 if a DPC had it. */
FORCEINLINE UCHAR KiFreeMutant(PKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, PKTHREAD Owner)
{
    UCHAR ApcDisable = Mutant->ApcDisable;
    Mutant->Abandoned = Abandoned;
    /* relaxed: see KiOwnsMutant in wait.h */
    __atomic_store_n(&Mutant->OwnerThread, NULL, __ATOMIC_RELAXED);
    if (KiReadHeader(&Mutant->Header) & KI_MUTANT_DPC_ACTIVE) {
        KiChangeDpcActive(Mutant, 0);
        ApcDisable = 0;
    } else {
        RemoveEntryList(&Mutant->MutantListEntry);
    }
    ULONG64 Word = KiReadHeader(&Mutant->Header);
    do {
        if (Word & (KI_LOCKED | KI_WAITERS)) {
            KiFreeMutantSlow(Mutant, Increment, Owner);
            break;
        }
    } while (!KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, 1)));
    return ApcDisable;
}

/* The proxy has no owner. */
static DECLSPEC_NOINLINE NTSTATUS KiReleaseOutsideMutant(PRKMUTANT Mutant, BOOLEAN Abandoned, BOOLEAN Wait,
                                                         PLONG PreviousCount)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Mutant->Header);
    return Outside == NULL ? STATUS_MUTANT_NOT_OWNED
                           : KiSetWaitNextIf(Wait, KiOutsideOperations->ReleaseMutant(Outside, KiCurrentThread(),
                                                                                     Abandoned, PreviousCount));
}

FORCEINLINE NTSTATUS KiReleaseOwnMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait,
                                        PLONG PreviousCount)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Word;

    if (__atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED) != Thread) {
        return KiReleaseOutsideMutant(Mutant, Abandoned, Wait, PreviousCount);
    }
    Word = KiReadHeader(&Mutant->Header);
    *PreviousCount = KI_STATE(Word); /* only the owner changes it */
    if (KI_STATE(Word) < 0 && !Abandoned) {
        while ((Word & KI_LOCKED) ||
               !KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, KI_STATE(Word) + 1))) {
            Word = KiReadSettledHeader(&Mutant->Header);
        }
    } else {
        KiEnterDispatcher(Thread); /* a fork must not find a mutant that has no owner and is not free */
        UCHAR ApcDisable = KiFreeMutant(Mutant, Increment, Abandoned, Thread);
        KiExitDispatcher(Thread);
        if (KiLeavesRegion(ApcDisable, Mutant, Thread)) {
            KeLeaveCriticalRegion();
        }
    }
    if (Wait) {
        KiSetWaitNext(Thread);
    }
    return STATUS_SUCCESS;
}

NTSTATUS KiReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait, PLONG PreviousCount)
{
    return KiReleaseOwnMutant(Mutant, Increment, Abandoned, Wait, PreviousCount);
}

/* The caller is in a dispatcher section. Waiters, and what KiTryAcquireMutantAtOnce leaves to the slow path, are left to it. */
BOOLEAN KiTryReleaseMutantAtOnce(PKMUTANT Mutant, PKTHREAD Thread, PLONG PreviousCount)
{
    ULONG64 Word = KiReadHeader(&Mutant->Header);
    if (!KiOwnsMutant(&Mutant->Header, Thread)) {
        PKI_OUTSIDE Outside = KiOutsideOf(&Mutant->Header);
        return Outside != NULL && KiOutsideOperations->TryReleaseMutantAtOnce(Outside, Thread, PreviousCount);
    }
    if (__builtin_expect((Word & (KI_LOCKED | KI_WAITERS | KI_MUTANT_DPC_ACTIVE)) || Mutant->ApcDisable != 0, FALSE)) {
        return FALSE;
    }
    *PreviousCount = KI_STATE(Word);
    if (KI_STATE(Word) < 0) {
        return KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, KI_STATE(Word) + 1));
    }
    /* relaxed, both: see KiOwnsMutant in wait.h */
    __atomic_store_n(&Mutant->OwnerThread, NULL, __ATOMIC_RELAXED);
    RemoveEntryList(&Mutant->MutantListEntry);
    if (KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, 1))) {
        return TRUE;
    }
    InsertTailList(&Thread->MutantListHead, &Mutant->MutantListEntry); /* a waiter came: it is still owned */
    __atomic_store_n(&Mutant->OwnerThread, Thread, __ATOMIC_RELAXED);
    return FALSE;
}

LONG KeReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait)
{
    LONG Previous;
    NTSTATUS Status = KiReleaseOwnMutant(Mutant, Increment, Abandoned, Wait, &Previous);
    if (__builtin_expect(!NT_SUCCESS(Status), FALSE)) {
        KiRaiseStatus(Status);
    }
    return Previous;
}

LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait)
{
    return KeReleaseMutant(Mutex, MUTANT_INCREMENT, FALSE, Wait);
}

VOID KiAbandonMutants(PKTHREAD Thread)
{
    if (KiOutsideOperations != NULL) {
        KiOutsideOperations->EndThread(Thread);
    }
    while (!IsListEmpty(&Thread->MutantListHead)) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->MutantListHead.Flink, KMUTANT, MutantListEntry);
        UCHAR ApcDisable = KiFreeMutant(Mutant, MUTANT_INCREMENT, TRUE, Thread);
        if (KiLeavesRegion(ApcDisable, Mutant, Thread)) {
            Thread->KernelApcDisable += 1;
        }
    }
}

LONG KeReadStateMutant(PRKMUTANT Mutant)
{
    return KI_STATE(KiReadSettledHeader(&Mutant->Header));
}

LONG KeReadStateMutex(PRKMUTEX Mutex)
{
    return KeReadStateMutant(Mutex);
}
