/* sync.c: events, event pairs, semaphores, mutants and keyed events by handle. */
#include <interlock/io.h>

#include "../ex/exp.h"
#include "../ke/outside.h"
#include "../ke/park.h"
#include "../ob/share.h"
#include "ntp.h"

/* Events and event pairs. */

static EVENT_TYPE NtpEventTypeOf(PKEVENT Event)
{
    return KI_TYPE(KiReadHeader(&Event->Header)) == EventNotificationObject ? NotificationEvent : SynchronizationEvent;
}

static const OBP_SHARING NtpEventSharing = {
    .Kinds = OBP_KIND(WoNotificationEvent) | OBP_KIND(WoSynchronizationEvent),
    .BodySize = sizeof(KEVENT),
};

static OBJECT_TYPE NtpEventType = {
    .Name = "Event",
    .GenericMapping = {STANDARD_RIGHTS_READ | EVENT_QUERY_STATE, STANDARD_RIGHTS_WRITE | EVENT_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, EVENT_ALL_ACCESS},
    .ValidAccessMask = EVENT_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(KEVENT, Header),
    .Sharing = &NtpEventSharing,
};

OBP_REGISTER_TYPE(NtpEventType);

static POBJECT_TYPE NtpEventTypePointer = &NtpEventType;
POBJECT_TYPE *ExEventObjectType = &NtpEventTypePointer;

typedef struct _NTP_EVENT_SETTING {
    EVENT_TYPE Type;
    BOOLEAN State;
} NTP_EVENT_SETTING;

static NTSTATUS NtpInitializeEvent(PVOID Object, PVOID Context)
{
    NTP_EVENT_SETTING *Setting = Context;
    KeInitializeEvent(Object, Setting->Type, Setting->State);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpCreateEvent(KPROCESSOR_MODE Mode, PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                               POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType, BOOLEAN InitialState)
{
    NTP_EVENT_SETTING Setting = {EventType, InitialState != FALSE};
    OBP_BLUEPRINT Blueprint = {&NtpEventType, sizeof(KEVENT), NtpInitializeEvent, &Setting};
    if (!NtpClearHandle(EventHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (EventType != NotificationEvent && EventType != SynchronizationEvent) {
        return STATUS_INVALID_PARAMETER;
    }
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, EventHandle);
}

NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       EVENT_TYPE EventType, BOOLEAN InitialState)
{
    return NTP_SERVICE(NtpCreateEvent(UserMode, EventHandle, DesiredAccess, ObjectAttributes, EventType, InitialState));
}

NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       EVENT_TYPE EventType, BOOLEAN InitialState)
{
    return NTP_SERVICE(
        NtpCreateEvent(KernelMode, EventHandle, DesiredAccess, ObjectAttributes, EventType, InitialState));
}

/* The handle keeps the event alive; the caller gets no reference. */
static PKEVENT NtpCreateDriverEvent(PUNICODE_STRING EventName, PHANDLE EventHandle, EVENT_TYPE EventType)
{
    OBJECT_ATTRIBUTES Attributes;
    PVOID Event;
    InitializeObjectAttributes(&Attributes, EventName, OBJ_OPENIF | OBJ_KERNEL_HANDLE, NULL, NULL);
    if (!NT_SUCCESS(ZwCreateEvent(EventHandle, EVENT_ALL_ACCESS, &Attributes, EventType, TRUE)) ||
        !NT_SUCCESS(ObReferenceObjectByHandle(*EventHandle, 0, &NtpEventType, KernelMode, &Event, NULL))) {
        return NULL;
    }
    ObpDereferenceObject(Event);
    return Event;
}

PKEVENT IoCreateNotificationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle)
{
    return NtpCreateDriverEvent(EventName, EventHandle, NotificationEvent);
}

PKEVENT IoCreateSynchronizationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle)
{
    return NtpCreateDriverEvent(EventName, EventHandle, SynchronizationEvent);
}

NTSTATUS NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &NtpEventType, ObjectAttributes, DesiredAccess, EventHandle));
}

NTSTATUS ZwOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(KernelMode, &NtpEventType, ObjectAttributes, DesiredAccess, EventHandle));
}

/* Change is a constant in each caller. An event that one compare-exchange can set needs no reference: obp.h. One that has
   waiters is referenced while it is borrowed, which saves a second lookup. */
FORCEINLINE NTSTATUS NtpChangeEvent(KPROCESSOR_MODE Mode, HANDLE EventHandle, KI_OUTSIDE_CHANGE Change,
                                    PLONG PreviousState)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Changed = FALSE;
    PVOID Event = NULL;
    LONG Previous;
    if (Change == KiOutsideSet) {
        Event = ObpTryBorrowByHandle(Thread, EventHandle, Mode != KernelMode ? EVENT_MODIFY_STATE : 0, &NtpEventType);
    }
    if (Event != NULL) {
        Changed = KiTrySetEventAtOnce(Event, &Previous) || KiTrySetOutsideAtOnce(Event, &Previous);
        if (!Changed) {
            KiEnterService(Thread); /* here, so that no termination loses the reference */
            ObReferenceObject(Event);
        }
        ObpEndBorrowing(Thread);
    }
    if (!Changed) {
        NTSTATUS Status = STATUS_SUCCESS;
        if (Event == NULL) {
            KiEnterService(Thread);
            Status = ObpReferenceByHandle(EventHandle, EVENT_MODIFY_STATE, &NtpEventType, Mode, &Event);
        }
        if (NT_SUCCESS(Status)) {
            Previous = Change == KiOutsideSet     ? KeSetEvent(Event, EVENT_INCREMENT, FALSE)
                       : Change == KiOutsidePulse ? KePulseEvent(Event, EVENT_INCREMENT, FALSE)
                                                  : KeResetEvent(Event);
            ObpDereferenceObject(Event);
            Status = Previous != KI_OUTSIDE_LOST ? STATUS_SUCCESS : STATUS_FILE_CORRUPT_ERROR;
        }
        KiExitService(Thread);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
    }
    if (PreviousState != NULL) {
        *PreviousState = Previous;
    }
    return STATUS_SUCCESS;
}

NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(UserMode, EventHandle, KiOutsideSet, PreviousState);
}

NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(KernelMode, EventHandle, KiOutsideSet, PreviousState);
}

NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(UserMode, EventHandle, KiOutsideReset, PreviousState);
}

NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(KernelMode, EventHandle, KiOutsideReset, PreviousState);
}

NTSTATUS NtClearEvent(HANDLE EventHandle)
{
    return NtpChangeEvent(UserMode, EventHandle, KiOutsideReset, NULL);
}

NTSTATUS ZwClearEvent(HANDLE EventHandle)
{
    return NtpChangeEvent(KernelMode, EventHandle, KiOutsideReset, NULL);
}

NTSTATUS NtPulseEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(UserMode, EventHandle, KiOutsidePulse, PreviousState);
}

NTSTATUS ZwPulseEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpChangeEvent(KernelMode, EventHandle, KiOutsidePulse, PreviousState);
}

NTSTATUS NtSetEventBoostPriority(HANDLE EventHandle)
{
    PVOID Event;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObReferenceObjectByHandle(EventHandle, EVENT_MODIFY_STATE, &NtpEventType, UserMode, &Event, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKI_OUTSIDE Outside = KiOutsideOf(&((PKEVENT)Event)->Header);
    LONG Previous;
    if (NtpEventTypeOf(Event) != SynchronizationEvent) {
        Status = STATUS_OBJECT_TYPE_MISMATCH;
    } else if (Outside != NULL) {
        Status = KiOutsideOperations->ChangeEvent(Outside, KiOutsideSet, &Previous);
    } else {
        KeSetEventBoostPriority(Event, NULL);
    }
    ObpDereferenceObjectEx(Event, 1);
    return Status;
}

NTSTATUS NtQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass, PVOID EventInformation,
                      ULONG EventInformationLength, PULONG ReturnLength)
{
    PEVENT_BASIC_INFORMATION Information = EventInformation;
    PVOID Event;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(EventInformationClass == EventBasicInformation, EventInformation,
                                    EventInformationLength, sizeof(*Information));
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(EventHandle, EVENT_QUERY_STATE, &NtpEventType, UserMode, &Event, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKI_OUTSIDE Outside = KiOutsideOf(&((PKEVENT)Event)->Header);
    Information->EventType = NtpEventTypeOf(Event);
    if (Outside == NULL) {
        Information->EventState = KeReadStateEvent(Event);
    } else {
        KI_OUTSIDE_STATE State;
        Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &State);
        Information->EventState = State.State;
    }
    ObpDereferenceObjectEx(Event, 1);
    NtpReturnLength(ReturnLength, sizeof(*Information));
    return Status;
}

/* Event pairs. */

static OBJECT_TYPE NtpEventPairType = {
    .Name = "EventPair",
    .GenericMapping = {STANDARD_RIGHTS_READ | SYNCHRONIZE, STANDARD_RIGHTS_WRITE | SYNCHRONIZE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, EVENT_PAIR_ALL_ACCESS},
    .ValidAccessMask = EVENT_PAIR_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
};

OBP_REGISTER_TYPE(NtpEventPairType);

static NTSTATUS NtpInitializeEventPair(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeInitializeEventPair(Object);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpEventPairType, sizeof(KEVENT_PAIR), ObjectAttributes, DesiredAccess,
                                       NtpInitializeEventPair, NULL, EventPairHandle));
}

NTSTATUS NtOpenEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpEventPairType, ObjectAttributes, DesiredAccess, EventPairHandle));
}

typedef enum _NTP_PAIR_USE {
    NtpSetLow,
    NtpSetHigh,
    NtpWaitLow,
    NtpWaitHigh,
    NtpSetLowWaitHigh,
    NtpSetHighWaitLow
} NTP_PAIR_USE;

static NTSTATUS NtpUseEventPair(HANDLE EventPairHandle, NTP_PAIR_USE Use)
{
    PVOID EventPair;
    NTSTATUS Status =
        ObReferenceObjectByHandle(EventPairHandle, SYNCHRONIZE, &NtpEventPairType, UserMode, &EventPair, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    switch (Use) {
    case NtpSetLow:
        KeSetLowEventPair(EventPair, EVENT_INCREMENT, FALSE);
        break;
    case NtpSetHigh:
        KeSetHighEventPair(EventPair, EVENT_INCREMENT, FALSE);
        break;
    case NtpWaitLow:
        Status = KeWaitForLowEventPair(EventPair, UserMode, FALSE, NULL);
        break;
    case NtpWaitHigh:
        Status = KeWaitForHighEventPair(EventPair, UserMode, FALSE, NULL);
        break;
    case NtpSetLowWaitHigh:
        Status = KeSetLowWaitHighThread(EventPair, UserMode);
        break;
    case NtpSetHighWaitLow:
        Status = KeSetHighWaitLowThread(EventPair, UserMode);
        break;
    }
    ObpDereferenceObjectEx(EventPair, 1);
    return Status;
}

NTSTATUS NtSetLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetLow));
}

NTSTATUS NtSetHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetHigh));
}

NTSTATUS NtWaitLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpWaitLow));
}

NTSTATUS NtWaitHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpWaitHigh));
}

NTSTATUS NtSetLowWaitHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetLowWaitHigh));
}

NTSTATUS NtSetHighWaitLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetHighWaitLow));
}

/* Semaphores. */

static const OBP_SHARING NtpSemaphoreSharing = {
    .Kinds = OBP_KIND(WoSemaphore),
    .BodySize = sizeof(KSEMAPHORE),
};

static OBJECT_TYPE NtpSemaphoreType = {
    .Name = "Semaphore",
    .GenericMapping = {STANDARD_RIGHTS_READ | SEMAPHORE_QUERY_STATE, STANDARD_RIGHTS_WRITE | SEMAPHORE_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, SEMAPHORE_ALL_ACCESS},
    .ValidAccessMask = SEMAPHORE_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(KSEMAPHORE, Header),
    .Sharing = &NtpSemaphoreSharing,
};

OBP_REGISTER_TYPE(NtpSemaphoreType);

static POBJECT_TYPE NtpSemaphoreTypePointer = &NtpSemaphoreType;
POBJECT_TYPE *ExSemaphoreObjectType = &NtpSemaphoreTypePointer;

typedef struct _NTP_SEMAPHORE_SETTING {
    LONG Count;
    LONG Limit;
} NTP_SEMAPHORE_SETTING;

static NTSTATUS NtpInitializeSemaphore(PVOID Object, PVOID Context)
{
    NTP_SEMAPHORE_SETTING *Setting = Context;
    KeInitializeSemaphore(Object, Setting->Count, Setting->Limit);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                           LONG InitialCount, LONG MaximumCount)
{
    NTP_SEMAPHORE_SETTING Setting = {InitialCount, MaximumCount};
    if (!NtpClearHandle(SemaphoreHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (MaximumCount <= 0 || InitialCount < 0 || InitialCount > MaximumCount) {
        return STATUS_INVALID_PARAMETER;
    }
    return NTP_SERVICE(ObpCreateHandle(&NtpSemaphoreType, sizeof(KSEMAPHORE), ObjectAttributes, DesiredAccess,
                                       NtpInitializeSemaphore, &Setting, SemaphoreHandle));
}

NTSTATUS NtOpenSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpSemaphoreType, ObjectAttributes, DesiredAccess, SemaphoreHandle));
}

FORCEINLINE BOOLEAN NtpTryReleaseBorrowedSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG Previous)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Semaphore = ObpTryBorrowByHandle(Thread, SemaphoreHandle, SEMAPHORE_MODIFY_STATE, &NtpSemaphoreType);
    BOOLEAN Released = FALSE;
    if (Semaphore != NULL) {
        Released = KiTryReleaseSemaphoreAtOnce(Semaphore, ReleaseCount, Previous);
        ObpEndBorrowing(Thread);
    }
    return Released;
}

static DECLSPEC_NOINLINE NTSTATUS NtpReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG Previous)
{
    PVOID Semaphore;
    NTSTATUS Status =
        ObpReferenceByHandle(SemaphoreHandle, SEMAPHORE_MODIFY_STATE, &NtpSemaphoreType, UserMode, &Semaphore);
    if (NT_SUCCESS(Status)) {
        Status = KiReleaseSemaphore(Semaphore, SEMAPHORE_INCREMENT, ReleaseCount, FALSE, Previous);
        ObpDereferenceObject(Semaphore);
    }
    return Status;
}

NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount)
{
    LONG Previous;
    if (ReleaseCount <= 0) {
        return STATUS_INVALID_PARAMETER;
    }
    NTSTATUS Status = STATUS_SUCCESS;
    if (!NtpTryReleaseBorrowedSemaphore(SemaphoreHandle, ReleaseCount, &Previous)) {
        Status = NTP_SERVICE(NtpReleaseSemaphore(SemaphoreHandle, ReleaseCount, &Previous));
    }
    if (NT_SUCCESS(Status) && PreviousCount != NULL) {
        *PreviousCount = Previous;
    }
    return Status;
}

NTSTATUS NtQuerySemaphore(HANDLE SemaphoreHandle, SEMAPHORE_INFORMATION_CLASS SemaphoreInformationClass,
                          PVOID SemaphoreInformation, ULONG SemaphoreInformationLength, PULONG ReturnLength)
{
    PSEMAPHORE_BASIC_INFORMATION Information = SemaphoreInformation;
    PVOID Semaphore;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(SemaphoreInformationClass == SemaphoreBasicInformation, SemaphoreInformation,
                                    SemaphoreInformationLength, sizeof(*Information));
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(SemaphoreHandle, SEMAPHORE_QUERY_STATE, &NtpSemaphoreType, UserMode,
                                           &Semaphore, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKI_OUTSIDE Outside = KiOutsideOf(&((PKSEMAPHORE)Semaphore)->Header);
    if (Outside == NULL) {
        Information->CurrentCount = KeReadStateSemaphore(Semaphore);
        Information->MaximumCount = ((PKSEMAPHORE)Semaphore)->Limit;
    } else {
        KI_OUTSIDE_STATE State;
        Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &State);
        *Information = (SEMAPHORE_BASIC_INFORMATION){State.State, State.Limit};
    }
    ObpDereferenceObjectEx(Semaphore, 1);
    NtpReturnLength(ReturnLength, sizeof(*Information));
    return Status;
}

/*
 * Mutants by handle.
 *
 * A mutant may lose its last reference while a thread owns it. It is then still on the owner's list of mutants, which
 * only the owner touches, so the owner unlinks and frees it: in a special kernel APC, or when it ends, which abandons
 * its mutants and runs down its APCs. No other thread can find the mutant by then, so only the owner's end changes the
 * owner.
 */

typedef struct _NTP_MUTANT {
    KMUTANT Mutant;
    KAPC FreeApc;
} NTP_MUTANT, *PNTP_MUTANT;

static VOID NtpDeleteMutant(PVOID Object);

static const OBP_SHARING NtpMutantSharing = {
    .Kinds = OBP_KIND(WoMutant),
    .BodySize = sizeof(NTP_MUTANT),
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

FORCEINLINE BOOLEAN NtpTryReleaseBorrowedMutant(HANDLE MutantHandle, PLONG Previous)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Mutant = ObpTryBorrowByHandle(Thread, MutantHandle, 0, &NtpMutantType);
    BOOLEAN Released = FALSE;
    if (Mutant != NULL) {
        Released = KiTryReleaseMutantAtOnce(Mutant, Thread, Previous);
        ObpEndBorrowing(Thread);
    }
    return Released;
}

static DECLSPEC_NOINLINE NTSTATUS NtpReleaseMutant(HANDLE MutantHandle, PLONG Previous)
{
    PVOID Mutant;
    NTSTATUS Status = ObpReferenceByHandle(MutantHandle, 0, &NtpMutantType, UserMode, &Mutant);
    if (NT_SUCCESS(Status)) {
        Status = KiReleaseMutant(Mutant, MUTANT_INCREMENT, FALSE, FALSE, Previous);
        ObpDereferenceObject(Mutant);
    }
    return Status;
}

NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount)
{
    LONG Previous;
    NTSTATUS Status = STATUS_SUCCESS;
    if (!NtpTryReleaseBorrowedMutant(MutantHandle, &Previous)) {
        Status = NTP_SERVICE(NtpReleaseMutant(MutantHandle, &Previous));
    }
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

static NTSTATUS NtpReadMutant(PKMUTANT Mutant, PNTP_MUTANT_STATE State)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Mutant->Header);
    if (Outside != NULL) {
        KI_OUTSIDE_STATE Shared;
        NTSTATUS Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &Shared);
        if (NT_SUCCESS(Status)) {
            State->Basic = (MUTANT_BASIC_INFORMATION){Shared.State, Shared.Mine, Shared.Abandoned};
            State->Owner.ClientId =
                (CLIENT_ID){ULongToHandle(Shared.OwnerProcess), ULongToHandle(Shared.OwnerThread)};
        }
        return Status;
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

/* Keyed events. */

/* Global: the object stands for the keyed event that needs no handle. */
typedef struct _NTP_KEYED_EVENT {
    EX_KEYED_EVENT KeyedEvent;
    BOOLEAN Global;
} NTP_KEYED_EVENT, *PNTP_KEYED_EVENT;

static VOID NtpRepresentKeyedEvent(PVOID Proxy, POBP_SHARE Share)
{
    UNREFERENCED_PARAMETER(Share);
    ExpInitializeKeyedEvent(&((PNTP_KEYED_EVENT)Proxy)->KeyedEvent);
}

static const OBP_SHARING NtpKeyedEventSharing = {
    .Kinds = OBP_KIND(WoKeyedEvent),
    .BodySize = sizeof(NTP_KEYED_EVENT),
    .Represent = NtpRepresentKeyedEvent,
};

static OBJECT_TYPE NtpKeyedEventType = {
    .Name = "KeyedEvent",
    .GenericMapping = {STANDARD_RIGHTS_READ | KEYEDEVENT_WAIT, STANDARD_RIGHTS_WRITE | KEYEDEVENT_WAKE,
                       STANDARD_RIGHTS_EXECUTE, KEYEDEVENT_ALL_ACCESS},
    .ValidAccessMask = KEYEDEVENT_ALL_ACCESS | SYNCHRONIZE,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .Sharing = &NtpKeyedEventSharing,
};

OBP_REGISTER_TYPE(NtpKeyedEventType);

static NTSTATUS NtpInitializeKeyedEvent(PVOID Object, PVOID Context)
{
    PNTP_KEYED_EVENT KeyedEvent = Object;
    ExpInitializeKeyedEvent(&KeyedEvent->KeyedEvent);
    KeyedEvent->Global = Context != NULL;
    return STATUS_SUCCESS;
}

static OBP_SYSTEM_OBJECT NtpGlobalKeyedEvent = {
    .Path = u"\\KernelObjects\\CritSecOutOfMemoryEvent",
    .Blueprint = {&NtpKeyedEventType, sizeof(NTP_KEYED_EVENT), NtpInitializeKeyedEvent, &NtpGlobalKeyedEvent},
};

static VOID NtpRegisterGlobalKeyedEvent(VOID)
{
    ObpRegisterSystemObject(&NtpGlobalKeyedEvent);
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterGlobalKeyedEvent);

NTSTATUS NtCreateKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                            ULONG Flags)
{
    if (!NtpClearHandle(KeyedEventHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Flags != 0) {
        return STATUS_INVALID_PARAMETER_4;
    }
    return NTP_SERVICE(ObpCreateHandle(&NtpKeyedEventType, sizeof(NTP_KEYED_EVENT), ObjectAttributes, DesiredAccess,
                                       NtpInitializeKeyedEvent, NULL, KeyedEventHandle));
}

NTSTATUS NtOpenKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpKeyedEventType, ObjectAttributes, DesiredAccess, KeyedEventHandle));
}

typedef NTSTATUS NTP_MEET(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                          PLARGE_INTEGER Timeout);

static NTSTATUS NtpMeetAtKey(NTP_MEET *Meet, HANDLE KeyedEventHandle, ACCESS_MASK Access, PVOID KeyValue,
                             BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PVOID Object;
    PNTP_KEYED_EVENT KeyedEvent;
    NTSTATUS Status;
    if ((ULONG_PTR)KeyValue & 1) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (KeyedEventHandle == NULL) {
        return Meet(NULL, KeyValue, UserMode, Alertable, Timeout);
    }
    Status = ObReferenceObjectByHandle(KeyedEventHandle, Access, &NtpKeyedEventType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        POBP_SHARE Share = ObpShareOf(Object);
        KeyedEvent = Object;
        Status = Share != NULL ? KiMeetOutside(&Share->Outside, (ULONG_PTR)KeyValue, Access == KEYEDEVENT_WAKE, Alertable,
                                               Timeout)
                               : Meet(KeyedEvent->Global ? NULL : &KeyedEvent->KeyedEvent, KeyValue, UserMode, Alertable,
                                      Timeout);
        ObpDereferenceObjectEx(Object, 1);
    }
    return Status;
}

NTSTATUS NtWaitForKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpFinishWait(NTP_SERVICE(
        NtpMeetAtKey(ExpWaitForKeyedEvent, KeyedEventHandle, KEYEDEVENT_WAIT, KeyValue, Alertable, Timeout)));
}

NTSTATUS NtReleaseKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpFinishWait(NTP_SERVICE(
        NtpMeetAtKey(ExpReleaseKeyedEvent, KeyedEventHandle, KEYEDEVENT_WAKE, KeyValue, Alertable, Timeout)));
}
