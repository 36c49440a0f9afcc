/* semaphore.c: semaphores by handle. */
#include "ntp.h"

#include "../ob/share.h"

static VOID NtpDescribeSemaphore(PVOID Object, POBP_NEW New)
{
    New->World.Type = WoSemaphore;
    New->World.State = KeReadStateSemaphore(Object);
    New->World.Limit = ((PKSEMAPHORE)Object)->Limit;
}

static const OBP_SHARING NtpSemaphoreSharing = {
    .Kinds = OBP_KIND(WoSemaphore),
    .BodySize = sizeof(KSEMAPHORE),
    .Describe = NtpDescribeSemaphore,
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

NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount)
{
    PVOID Semaphore;
    LONG Previous;
    if (ReleaseCount <= 0) {
        return STATUS_INVALID_PARAMETER;
    }
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObpReferenceByHandle(SemaphoreHandle, SEMAPHORE_MODIFY_STATE, &NtpSemaphoreType, UserMode, &Semaphore);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = KiReleaseSemaphore(Semaphore, SEMAPHORE_INCREMENT, ReleaseCount, FALSE, &Previous);
    ObpDereferenceObject(Semaphore);
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
