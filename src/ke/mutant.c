/*
 * mutant.c: KMUTANT and KMUTEX.
 *
 * SignalState: 1 free, 0 owned, -1, -2, ... owned and entered again. OwnerThread is written by whoever makes the count
 * 0, and cleared by the owner before it makes the count 1. A thread keeps its mutants in MutantListHead, which only it
 * touches: who hands a mutant over leaves the entry to the new owner, who makes it when its wait returns.
 */
#include "wait.h"

#define KI_DPC_ACTIVE ((ULONG64)1 << 16)

static VOID KiInitializeMutantObject(PRKMUTANT Mutant, LONG State, PKTHREAD Owner, UCHAR ApcDisable)
{
    KiInitializeBareHeader(&Mutant->Header, MutantObject, State);
    Mutant->Header.MutantSize = sizeof(KMUTANT) / sizeof(LONG);
    Mutant->Header.DpcActive = FALSE;
    Mutant->OwnerThread = Owner;
    Mutant->Abandoned = FALSE;
    Mutant->ApcDisable = ApcDisable;
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

static VOID KiChangeDpcActive(PKMUTANT Mutant, ULONG64 Set)
{
    ULONG64 Word = KiReadSettledHeader(&Mutant->Header);
    while (!KiCompareExchangeHeader(&Mutant->Header, &Word, (Word & ~KI_DPC_ACTIVE) | Set)) {
        Word = KiReadSettledHeader(&Mutant->Header);
    }
}

/* What a DPC acquires belongs to no thread's list: the thread that the DPC has interrupted does not know of it. */
VOID KiTakeOwnershipOf(PKMUTANT Mutant, PKTHREAD Thread)
{
    if (Thread->DpcDepth != 0) {
        KiChangeDpcActive(Mutant, KI_DPC_ACTIVE);
        return;
    }
    InsertTailList(&Thread->MutantListHead, &Mutant->MutantListEntry);
    if (Mutant->ApcDisable) {
        Thread->KernelApcDisable -= 1;
    }
}

/* Returns whether a region that holds kernel APCs back has to be left. */
FORCEINLINE BOOLEAN KiDropOwnershipOf(PKMUTANT Mutant)
{
    /* relaxed: see KiOwnsMutant in wait.h */
    __atomic_store_n(&Mutant->OwnerThread, NULL, __ATOMIC_RELAXED);
    if (KiReadHeader(&Mutant->Header) & KI_DPC_ACTIVE) {
        KiChangeDpcActive(Mutant, 0);
        return FALSE;
    }
    RemoveEntryList(&Mutant->MutantListEntry);
    return Mutant->ApcDisable != 0;
}

static BOOLEAN KiUpdateFreeMutant(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    UNREFERENCED_PARAMETER(Header);
    UNREFERENCED_PARAMETER(Context);
    *Word = KiWithState(*Word, 1);
    return TRUE;
}

static DECLSPEC_NOINLINE VOID KiSignalMutant(PKMUTANT Mutant, KPRIORITY Increment)
{
    PKTHREAD NewOwner = NULL;
    KI_SIGNAL Signal = {.Update = KiUpdateFreeMutant, .Increment = Increment, .Released = &NewOwner};
    LONG Previous;
    KiSignal(&Mutant->Header, &Signal, &Previous);
    KiPassOnLentPriority(KiCurrentThread(), NewOwner);
}

FORCEINLINE VOID KiFreeMutant(PKMUTANT Mutant, KPRIORITY Increment)
{
    ULONG64 Word = KiReadHeader(&Mutant->Header);
    while (!(Word & (KI_LOCKED | KI_WAITERS))) {
        if (KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, 1))) {
            return;
        }
    }
    KiSignalMutant(Mutant, Increment);
}

FORCEINLINE VOID KiLeaveOnce(PKMUTANT Mutant)
{
    ULONG64 Word = KiReadHeader(&Mutant->Header);
    while ((Word & KI_LOCKED) ||
           !KiCompareExchangeHeader(&Mutant->Header, &Word, KiWithState(Word, KI_STATE(Word) + 1))) {
        Word = KiReadSettledHeader(&Mutant->Header);
    }
}

FORCEINLINE NTSTATUS KiReleaseOwnMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait,
                                        PLONG PreviousCount)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Previous;

    if (__atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED) != Thread) {
        return STATUS_MUTANT_NOT_OWNED;
    }
    Previous = KI_STATE(KiReadHeader(&Mutant->Header)); /* only the owner changes it */
    if (Previous < 0 && !Abandoned) {
        KiLeaveOnce(Mutant);
    } else {
        Mutant->Abandoned = Abandoned;
        KiEnterDispatcher(Thread); /* a fork must not find a mutant that has no owner and is not free */
        BOOLEAN LeaveRegion = KiDropOwnershipOf(Mutant);
        KiFreeMutant(Mutant, Increment);
        KiExitDispatcher(Thread);
        if (LeaveRegion) {
            KeLeaveCriticalRegion();
        }
    }
    if (Wait) {
        KiSetWaitNext(Thread);
    }
    *PreviousCount = Previous;
    return STATUS_SUCCESS;
}

NTSTATUS KiReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait, PLONG PreviousCount)
{
    return KiReleaseOwnMutant(Mutant, Increment, Abandoned, Wait, PreviousCount);
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
    while (!IsListEmpty(&Thread->MutantListHead)) {
        PKMUTANT Mutant = CONTAINING_RECORD(Thread->MutantListHead.Flink, KMUTANT, MutantListEntry);
        Mutant->Abandoned = TRUE;
        if (KiDropOwnershipOf(Mutant)) {
            Thread->KernelApcDisable += 1;
        }
        KiFreeMutant(Mutant, MUTANT_INCREMENT);
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
