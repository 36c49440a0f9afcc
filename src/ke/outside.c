/* outside.c: objects whose state is in the world. Theory in outside.h. */
#include "wait.h"

#include "timer.h"

const KI_OUTSIDE_OPERATIONS *KiOutsideOperations;

VOID KiSetOutsideOperations(const KI_OUTSIDE_OPERATIONS *Operations)
{
    /* release: the table and what it relies on are complete; pairs with the reads behind KiIsOutside */
    __atomic_store_n(&KiOutsideOperations, Operations, __ATOMIC_RELEASE);
}

VOID KiMakeOutside(PDISPATCHER_HEADER Header, UCHAR Type, PKI_OUTSIDE Outside)
{
    Header->WaitListHead.Flink = NULL;
    Header->WaitListHead.Blink = (PLIST_ENTRY)(PVOID)Outside;
    /* release: pairs with KiIsOutside */
    __atomic_store_n(KiHeaderWord(Header), KiOutsideWord(Type), __ATOMIC_RELEASE);
}

/* Moving. */

static BOOLEAN KiIsTimer(ULONG64 Word)
{
    return KI_TYPE(Word) == TimerNotificationObject || KI_TYPE(Word) == TimerSynchronizationObject;
}

/* With the mutant locked. Only its owner changes its list of mutants, so only a free mutant can be moved, or the caller's
   own. STATUS_RETRY: it is being acquired or released. */
static NTSTATUS KiDescribeMutant(PKMUTANT Mutant, ULONG64 Word, PKTHREAD Thread, PKI_OUTSIDE_STATE State)
{
    State->Owner = __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
    State->Abandoned = Mutant->Abandoned;
    if (State->Owner == NULL) {
        return KI_STATE(Word) > 0 ? STATUS_SUCCESS : STATUS_RETRY;
    }
    if (State->Owner != Thread || (Word & KI_MUTANT_DPC_ACTIVE)) {
        return STATUS_MUTANT_NOT_OWNED;
    }
    __atomic_store_n(&Mutant->OwnerThread, NULL, __ATOMIC_RELAXED);
    RemoveEntryList(&Mutant->MutantListEntry);
    return STATUS_SUCCESS;
}

/* With the object locked. */
static NTSTATUS KiDescribeLocal(PDISPATCHER_HEADER Header, ULONG64 Word, PKTHREAD Thread, PKI_OUTSIDE_STATE State)
{
    *State = (KI_OUTSIDE_STATE){.State = KI_STATE(Word)};
    if (KI_TYPE(Word) == MutantObject) {
        return KiDescribeMutant(CONTAINING_RECORD(Header, KMUTANT, Header), Word, Thread, State);
    }
    if (KI_TYPE(Word) == SemaphoreObject) {
        State->Limit = CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit;
    }
    if (KiIsTimer(Word) && (Word & KI_TIMER_INSERTED)) {
        PKTIMER Timer = CONTAINING_RECORD(Header, KTIMER, Header);
        State->DueTime = Timer->DueTime.QuadPart;
        State->Absolute = (Timer->Processor & KI_TIMER_ABSOLUTE) != 0;
        State->Period = Timer->Period;
    }
    return STATUS_SUCCESS;
}

/* With the object locked: its waits begin again, outside. A notification registers there later: see the caller. */
static VOID KiEndLocalWaits(PDISPATCHER_HEADER Header, PKI_READY Released, PLIST_ENTRY Notifications)
{
    while (!IsListEmpty(&Header->WaitListHead)) {
        PKWAIT_BLOCK Block = KiBlockOnList(Header, Header->WaitListHead.Flink);
        if (Block->WaitType == WaitNotification || Block->WaitType == WaitDpc) {
            RemoveEntryList(&Block->WaitListEntry);
            InsertTailList(Notifications, &Block->WaitListEntry);
        } else if (!KiEndWaitOfBlock(Block, STATUS_KERNEL_APC, Released)) {
            KiUnlinkBlock(Block, WaitBlockInactive);
        }
    }
}

static VOID KiMoveLocked(PDISPATCHER_HEADER Header, ULONG64 Word, PKI_OUTSIDE Outside, const KI_OUTSIDE_STATE *State)
{
    KI_READY Released;
    LIST_ENTRY Notifications;
    InitializeListHead(&Notifications);
    KiInitializeReady(&Released, IO_NO_INCREMENT);
    if (KiIsTimer(Word)) {
        KiRemoveTimer(CONTAINING_RECORD(Header, KTIMER, Header), 0, &Word);
    }
    KiOutsideOperations->AdoptState(Outside, State);
    KiEndLocalWaits(Header, &Released, &Notifications);
    KiMakeOutside(Header, (UCHAR)KI_TYPE(Word), Outside);
    KiReadyThreads(&Released);
    while (!IsListEmpty(&Notifications)) {
        PKWAIT_BLOCK Block = KiBlockOfEntry(RemoveHeadList(&Notifications));
        if (KiOutsideOperations->RegisterBlock(Outside, Block) == STATUS_SUCCESS) {
            __atomic_store_n(&Block->BlockState, WaitBlockBypassStart, __ATOMIC_RELAXED);
            KiDeliverNotification(Block);
        }
    }
}

NTSTATUS KiMoveOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE Outside)
{
    PKTHREAD Thread = KiCurrentThread();
    KI_OUTSIDE_STATE State;
    NTSTATUS Status = KI_TYPE(KiReadHeader(Header)) == MutantObject ? KiOutsideOperations->PrepareOwner(Outside, Thread)
                                                                    : STATUS_SUCCESS;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    for (ULONG Round = 0;; Round += 1) {
        KiEnterDispatcher(Thread);
        ULONG64 Word = KiLockObject(Header);
        Status = Word == 0 ? STATUS_OBJECT_NAME_EXISTS : KiDescribeLocal(Header, Word, Thread, &State);
        if (Status == STATUS_SUCCESS) {
            KiMoveLocked(Header, Word, Outside, &State);
        } else if (Word != 0) {
            KiUnlockObject(Header, Word);
        }
        KiExitDispatcher(Thread);
        if (Status != STATUS_RETRY) {
            return Status;
        }
        KiBackOff(Round);
    }
}

/* Operations. A damaged world does nothing, and returns a status where the operation has one. */

LONG KiChangeOutsideEvent(PDISPATCHER_HEADER Header, KI_OUTSIDE_CHANGE Change, BOOLEAN Wait)
{
    LONG Previous;
    if (!NT_SUCCESS(KiOutsideOperations->ChangeEvent((PKI_OUTSIDE)(PVOID)Header->WaitListHead.Blink, Change, &Previous))) {
        return KI_OUTSIDE_LOST;
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return Previous;
}

BOOLEAN KiSignalOutside(PDISPATCHER_HEADER Header, const KI_SIGNAL *Signal, PLONG Previous)
{
    PKI_OUTSIDE Outside = KiOutsideOf(Header);
    switch (KI_TYPE(KiReadHeader(Header))) {
    case SemaphoreObject:
        return NT_SUCCESS(KiOutsideOperations->ReleaseSemaphore(Outside, *(PLONG)Signal->Context, Previous));
    case MutantObject:
        return FALSE; /* its owner moved it, or it had no owner */
    default:
        *Previous = KI_OUTSIDE_LOST;
        return NT_SUCCESS(KiOutsideOperations->ChangeEvent(Outside, Signal->Pulse ? KiOutsidePulse : KiOutsideSet,
                                                           Previous));
    }
}

static BOOLEAN KiIsOutsideTimerSet(PDISPATCHER_HEADER Header)
{
    KI_OUTSIDE_STATE State = {0};
    KiQueryOutside(Header, &State);
    return State.DueTime != 0;
}

BOOLEAN KiSetOutsideTimer(PDISPATCHER_HEADER Header, LONGLONG DueTime, ULONG Period)
{
    BOOLEAN WasSet = KiIsOutsideTimerSet(Header);
    BOOLEAN Previous;
    ULONG64 Arming;
    KiOutsideOperations->SetTimer(KiOutsideOf(Header), DueTime, Period, &Arming, &Previous);
    return WasSet;
}

BOOLEAN KiCancelOutsideTimer(PDISPATCHER_HEADER Header)
{
    BOOLEAN WasSet = KiIsOutsideTimerSet(Header);
    BOOLEAN Previous;
    KiOutsideOperations->CancelTimer(KiOutsideOf(Header), &Previous);
    return WasSet;
}

NTSTATUS KiQueryOutside(PDISPATCHER_HEADER Header, PKI_OUTSIDE_STATE State)
{
    return KiOutsideOperations->QueryState(KiOutsideOf(Header), KiCurrentThread(), State);
}

ULONG64 KiReadOutsideHeader(PDISPATCHER_HEADER Header)
{
    KI_OUTSIDE_STATE State = {0};
    KiQueryOutside(Header, &State);
    return KiWithState(KI_TYPE(KiReadHeader(Header)), State.State);
}

BOOLEAN KiTryConsumeOutside(PDISPATCHER_HEADER Header, PKTHREAD Thread, NTSTATUS *Status)
{
    PKI_OUTSIDE Outside = (PKI_OUTSIDE)(PVOID)Header->WaitListHead.Blink;
    *Status = KiOutsideOperations->TryWait(Thread, &Outside, 1, WaitAny);
    Thread->SawOutside = *Status == STATUS_TIMEOUT;
    return *Status != STATUS_TIMEOUT;
}

ULONG KiTryRowOutside(PVOID Object[], ULONG Count, PKTHREAD Thread, NTSTATUS *Status)
{
    PKI_OUTSIDE Row[MAXIMUM_WAIT_OBJECTS];
    ULONG Length = 0;
    while (Length < Count) {
        PKI_OUTSIDE Outside = KiOutsideOf(Object[Length]);
        if (Outside == NULL || (Length != 0 && Outside->View != Row[0]->View)) {
            break;
        }
        Row[Length] = Outside;
        Length += 1;
    }
    if (Length != 0) {
        *Status = KiOutsideOperations->TryWait(Thread, Row, Length, WaitAny);
    }
    return Length;
}
