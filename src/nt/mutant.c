/*
 * mutant.c: mutants by handle.
 *
 * A mutant may lose its last reference while a thread owns it. It is then still on the owner's list of mutants, which
 * only the owner touches, so the owner unlinks and frees it: in a special kernel APC, or when it ends, which abandons
 * its mutants and runs down its APCs. No other thread can find the mutant by then, so only the owner's end changes the
 * owner.
 */
#include "ntp.h"

#include "../ke/park.h"
#include "../ob/share.h"

typedef struct _NTP_MUTANT {
    KMUTANT Mutant;
    KAPC FreeApc;
} NTP_MUTANT, *PNTP_MUTANT;

static VOID NtpDeleteMutant(PVOID Object);

static VOID NtpDescribeMutant(PVOID Object, POBP_NEW New)
{
    New->World.Type = WoMutant;
    New->World.State = KeReadStateMutant(Object);
}

static const OBP_SHARING NtpMutantSharing = {
    .Kinds = OBP_KIND(WoMutant),
    .BodySize = sizeof(NTP_MUTANT),
    .Describe = NtpDescribeMutant,
};

static OBJECT_TYPE NtpMutantType = {
    .Name = "Mutant",
    .GenericMapping = {STANDARD_RIGHTS_READ | MUTANT_QUERY_STATE, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, MUTANT_ALL_ACCESS},
    .ValidAccessMask = MUTANT_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(NTP_MUTANT, Mutant),
    .OwnsMemory = TRUE,
    .DeleteProcedure = NtpDeleteMutant,
    .Sharing = &NtpMutantSharing,
};

OBP_REGISTER_TYPE(NtpMutantType);

/* Called by the owner, or when there is none, or for an owner that stayed behind in the parent of a fork. */
static VOID NtpFreeMutant(PNTP_MUTANT Mutant, PKTHREAD Thread)
{
    if (__atomic_load_n(&Mutant->Mutant.OwnerThread, __ATOMIC_RELAXED) == Thread) {
        RemoveEntryList(&Mutant->Mutant.MutantListEntry);
    }
    HalFree(ObpHeaderOf(Mutant));
}

static VOID NtpFreeMutantRundown(PKAPC Apc)
{
    NtpFreeMutant(CONTAINING_RECORD(Apc, NTP_MUTANT, FreeApc), Apc->Thread);
}

static VOID NtpFreeMutantKernel(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext,
                                PVOID *SystemArgument1, PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    NtpFreeMutant(CONTAINING_RECORD(Apc, NTP_MUTANT, FreeApc), Apc->Thread);
}

/* TRUE: the owner will free it. FALSE: the owner is ending and takes no more APCs; it abandons the mutant. */
static BOOLEAN NtpLeaveToOwner(PNTP_MUTANT Mutant, PKTHREAD Owner)
{
    KeInitializeApc(&Mutant->FreeApc, Owner, OriginalApcEnvironment, NtpFreeMutantKernel, NtpFreeMutantRundown, NULL,
                    KernelMode, NULL);
    return KeInsertQueueApc(&Mutant->FreeApc, NULL, NULL, IO_NO_INCREMENT);
}

static BOOLEAN NtpIsFreeMutant(PKMUTANT Mutant)
{
    /* acquire: pairs with the compare-exchange or unlock by which an abandoning owner makes the state 1, its last
       access */
    ULONG64 Word = __atomic_load_n(KiHeaderWord(&Mutant->Header), __ATOMIC_ACQUIRE);
    return !(Word & KI_LOCKED) && KI_STATE(Word) == 1;
}

static VOID NtpDeleteMutant(PVOID Object)
{
    PNTP_MUTANT Mutant = Object;
    PKTHREAD Thread = KiCurrentThread();
    if (KiIsOutside(&Mutant->Mutant.Header)) {
        HalFree(ObpHeaderOf(Mutant)); /* the world records its owner */
        return;
    }
    for (ULONG Round = 0; !NtpIsFreeMutant(&Mutant->Mutant); Round++) {
        PKTHREAD Owner = __atomic_load_n(&Mutant->Mutant.OwnerThread, __ATOMIC_RELAXED);
        if (Owner == Thread) {
            break;
        }
        if (Owner != NULL && NtpLeaveToOwner(Mutant, Owner)) {
            return;
        }
        KiBackOff(Round);
    }
    NtpFreeMutant(Mutant, Thread);
}

static NTSTATUS NtpInitializeMutant(PVOID Object, PVOID Context)
{
    KeInitializeMutant(&((PNTP_MUTANT)Object)->Mutant, *(PBOOLEAN)Context);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                        BOOLEAN InitialOwner)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpMutantType, sizeof(NTP_MUTANT), ObjectAttributes, DesiredAccess,
                                       NtpInitializeMutant, &InitialOwner, MutantHandle));
}

NTSTATUS NtOpenMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpMutantType, ObjectAttributes, DesiredAccess, MutantHandle));
}

NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount)
{
    PVOID Mutant;
    LONG Previous;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObpReferenceByHandle(MutantHandle, 0, &NtpMutantType, UserMode, &Mutant);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = KiReleaseMutant(Mutant, MUTANT_INCREMENT, FALSE, FALSE, &Previous);
    ObpDereferenceObject(Mutant);
    if (NT_SUCCESS(Status) && PreviousCount != NULL) {
        *PreviousCount = Previous;
    }
    return Status;
}

/* The source of both kinds of queries. */
typedef struct _NTP_MUTANT_STATE {
    MUTANT_BASIC_INFORMATION Basic;
    MUTANT_OWNER_INFORMATION Owner;
} NTP_MUTANT_STATE, *PNTP_MUTANT_STATE;

static NTSTATUS NtpReadOutsideMutant(PKI_OUTSIDE Outside, PNTP_MUTANT_STATE Mutant)
{
    KI_OUTSIDE_STATE State;
    NTSTATUS Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &State);
    if (NT_SUCCESS(Status)) {
        Mutant->Basic = (MUTANT_BASIC_INFORMATION){State.State, State.Mine, State.Abandoned};
        Mutant->Owner.ClientId =
            (CLIENT_ID){ULongToHandle(State.OwnerProcess), ULongToHandle(State.OwnerThread)};
    }
    return Status;
}

static NTSTATUS NtpReadMutant(PKMUTANT Mutant, PNTP_MUTANT_STATE State)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Mutant->Header);
    if (Outside != NULL) {
        return NtpReadOutsideMutant(Outside, State);
    }
    /* relaxed: only the caller can make itself the owner */
    PKTHREAD Owner = __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
    State->Basic.CurrentCount = KeReadStateMutant(Mutant);
    State->Basic.OwnedByCaller = Owner == KiCurrentThread();
    State->Basic.AbandonedState = __atomic_load_n(&Mutant->Abandoned, __ATOMIC_RELAXED);
    /* Safe even if the owner ends: slots are never unmapped; at worst the id is that of the slot's next thread. */
    State->Owner.ClientId.UniqueProcess = Owner != NULL ? PsGetCurrentProcessId() : NULL;
    State->Owner.ClientId.UniqueThread = Owner != NULL ? PsGetThreadId((PETHREAD)Owner) : NULL;
    return STATUS_SUCCESS;
}

NTSTATUS NtQueryMutant(HANDLE MutantHandle, MUTANT_INFORMATION_CLASS MutantInformationClass, PVOID MutantInformation,
                       ULONG MutantInformationLength, PULONG ReturnLength)
{
    BOOLEAN Basic = MutantInformationClass == MutantBasicInformation;
    ULONG Required = Basic ? sizeof(MUTANT_BASIC_INFORMATION) : sizeof(MUTANT_OWNER_INFORMATION);
    NTP_MUTANT_STATE State;
    PVOID Mutant;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(Basic || MutantInformationClass == MutantOwnerInformation, MutantInformation,
                                    MutantInformationLength, Required);
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(MutantHandle, MUTANT_QUERY_STATE, &NtpMutantType, UserMode, &Mutant, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = NtpReadMutant(Mutant, &State);
    ObpDereferenceObjectEx(Mutant, 1);
    if (NT_SUCCESS(Status)) {
        memcpy(MutantInformation, Basic ? (PVOID)&State.Basic : (PVOID)&State.Owner, Required);
        NtpReturnLength(ReturnLength, Required);
    }
    return Status;
}
