/* object.c: services for objects of any type. */
#include "ntp.h"

#include "../ob/remote.h"
#include "../ps/psp.h"

#define NTP_LOWEST_PSEUDO_HANDLE (-6) /* -1 to -6: process, thread, and Windows' tokens */

static BOOLEAN NtpIsPseudoHandle(HANDLE Handle)
{
    return (LONG_PTR)Handle < 0 && (LONG_PTR)Handle >= NTP_LOWEST_PSEUDO_HANDLE;
}

/* Closing a pseudo handle succeeds and does nothing. */
NTSTATUS NtClose(HANDLE Handle)
{
    return NtpIsPseudoHandle(Handle) ? STATUS_SUCCESS : NTP_SERVICE(ObCloseHandle(Handle, UserMode));
}

/* Duplicating. */

/* The process whose handles are used. 0: this one. */
static NTSTATUS NtpIdentifyHandleProcess(HANDLE ProcessHandle, KPROCESSOR_MODE Mode, PULONG ProcessId)
{
    PEPROCESS Process;
    NTSTATUS Status = ObReferenceObjectByHandle(ProcessHandle, PROCESS_DUP_HANDLE, &ObpProcessType, Mode, (PVOID *)&Process,
                                                NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    *ProcessId = Process == PsGetCurrentProcess() ? 0 : Process->Pcb.ProcessId;
    if (*ProcessId != 0 && __atomic_load_n(&Process->Ended, __ATOMIC_ACQUIRE)) {
        Status = STATUS_PROCESS_IS_TERMINATING;
    }
    ObpDereferenceObjectEx(Process, 1);
    return Status;
}

/* Without a TargetHandle no duplicate is made. */
static NTSTATUS NtpDuplicate(const OBP_PICKUP *Pickup, KPROCESSOR_MODE Mode, ULONG Source, ULONG Target,
                             PHANDLE TargetHandle)
{
    OBP_PARCEL Parcel;
    NTSTATUS Status = Source == 0 ? ObpTakeParcel(Pickup, Mode, &Parcel) : ObpFetchParcel(Source, Pickup, &Parcel);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (TargetHandle != NULL) {
        Status = Target == 0 ? ObpDeliverParcel(&Parcel, TargetHandle) : ObpSendParcel(Target, &Parcel, TargetHandle);
    }
    ObpDropParcel(&Parcel);
    return Status;
}

static NTSTATUS NtpCloseSource(ULONG Source, HANDLE Handle, KPROCESSOR_MODE Mode)
{
    return Source == 0 ? ObCloseHandle(Handle, Mode) : ObpCloseRemoteHandle(Source, Handle);
}

/* Closes the source even if there is no duplicate. */
static NTSTATUS NtpDuplicateObject(KPROCESSOR_MODE Mode, HANDLE SourceProcessHandle, HANDLE TargetProcessHandle,
                                   PHANDLE TargetHandle, const OBP_PICKUP *Pickup)
{
    BOOLEAN Close = (Pickup->Options & DUPLICATE_CLOSE_SOURCE) != 0;
    ULONG Source, Target;
    NTSTATUS Status = NtpIdentifyHandleProcess(SourceProcessHandle, Mode, &Source);
    NtpClearHandle(TargetHandle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (TargetProcessHandle == NULL && Close) {
        return NtpCloseSource(Source, Pickup->Handle, Mode);
    }
    Status = NtpIdentifyHandleProcess(TargetProcessHandle, Mode, &Target);
    if (NT_SUCCESS(Status)) {
        Status = NtpDuplicate(Pickup, Mode, Source, Target, TargetHandle);
    }
    if (Close && Status != STATUS_INVALID_HANDLE && !NtpIsPseudoHandle(Pickup->Handle)) {
        NtpCloseSource(Source, Pickup->Handle, Mode);
    }
    return Status;
}

NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                           PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options)
{
    OBP_PICKUP Pickup = {SourceHandle, DesiredAccess, HandleAttributes, Options};
    return NTP_SERVICE(
        NtpDuplicateObject(UserMode, SourceProcessHandle, TargetProcessHandle, TargetHandle, &Pickup));
}

NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                           PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options)
{
    OBP_PICKUP Pickup = {SourceHandle, DesiredAccess, HandleAttributes, Options};
    return NTP_SERVICE(
        NtpDuplicateObject(KernelMode, SourceProcessHandle, TargetProcessHandle, TargetHandle, &Pickup));
}

NTSTATUS NtCompareObjects(HANDLE FirstObjectHandle, HANDLE SecondObjectHandle)
{
    PVOID First, Second;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObReferenceObjectByHandle(FirstObjectHandle, 0, NULL, UserMode, &First, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObReferenceObjectByHandle(SecondObjectHandle, 0, NULL, UserMode, &Second, NULL);
    if (NT_SUCCESS(Status)) {
        Status = First == Second ? STATUS_SUCCESS : STATUS_NOT_SAME_OBJECT;
        ObpDereferenceObjectEx(Second, 1);
    }
    ObpDereferenceObjectEx(First, 1);
    return Status;
}

/* Permanence. Only a named object can be permanent. */

static NTSTATUS NtpSetPermanent(HANDLE Handle, ACCESS_MASK Access, KPROCESSOR_MODE Mode, BOOLEAN Permanent)
{
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, Access, NULL, Mode, &Object, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (ObpHeaderOf(Object)->NameInfo != NULL) {
        ObpSetPermanent(Object, Permanent);
    }
    ObpDereferenceObjectEx(Object, 1);
    return STATUS_SUCCESS;
}

NTSTATUS NtMakeTemporaryObject(HANDLE Handle)
{
    return NTP_SERVICE(NtpSetPermanent(Handle, DELETE, UserMode, FALSE));
}

NTSTATUS ZwMakeTemporaryObject(HANDLE Handle)
{
    return NTP_SERVICE(NtpSetPermanent(Handle, DELETE, KernelMode, FALSE));
}

NTSTATUS NtMakePermanentObject(HANDLE Handle)
{
    return NTP_SERVICE(NtpSetPermanent(Handle, 0, UserMode, TRUE));
}

/* Querying. */

/* The caller's buffer. Each query below sets Needed, and fails if that exceeds Length. */
typedef struct _NTP_ANSWER {
    PVOID Information;
    ULONG Length;
    ULONG Needed;
} NTP_ANSWER, *PNTP_ANSWER;

static ULONG NtpTypeNameBytes(POBJECT_TYPE Type)
{
    return (ULONG)strlen(Type->Name) * (ULONG)sizeof(WCHAR);
}

static ULONG NtpTypeSize(POBJECT_TYPE Type)
{
    return (ULONG)sizeof(OBJECT_TYPE_INFORMATION) + NtpTypeNameBytes(Type) + (ULONG)sizeof(WCHAR);
}

static VOID NtpDescribeType(POBJECT_TYPE Type, POBJECT_TYPE_INFORMATION Information)
{
    PWCHAR Name = (PWCHAR)(Information + 1);
    memset(Information, 0, sizeof(*Information));
    Information->TypeName.Length = (USHORT)NtpTypeNameBytes(Type);
    Information->TypeName.MaximumLength = Information->TypeName.Length + (USHORT)sizeof(WCHAR);
    Information->TypeName.Buffer = Name;
    for (PCSTR Text = Type->Name; *Text != 0; Text++) {
        *Name++ = (WCHAR)(UCHAR)*Text;
    }
    *Name = 0;
    /* relaxed: see ObpCountUp */
    Information->TotalNumberOfObjects = __atomic_load_n(&Type->TotalNumberOfObjects, __ATOMIC_RELAXED);
    Information->TotalNumberOfHandles = __atomic_load_n(&Type->TotalNumberOfHandles, __ATOMIC_RELAXED);
    Information->HighWaterNumberOfObjects = __atomic_load_n(&Type->HighWaterNumberOfObjects, __ATOMIC_RELAXED);
    Information->HighWaterNumberOfHandles = __atomic_load_n(&Type->HighWaterNumberOfHandles, __ATOMIC_RELAXED);
    Information->InvalidAttributes = Type->InvalidAttributes;
    Information->GenericMapping = Type->GenericMapping;
    Information->ValidAccessMask = Type->ValidAccessMask;
    Information->TypeIndex = Type->Index;
}

static NTSTATUS NtpQueryType(PVOID Object, PNTP_ANSWER Answer)
{
    POBJECT_TYPE Type = ObpHeaderOf(Object)->Type;
    Answer->Needed = NtpTypeSize(Type);
    if (Answer->Length < Answer->Needed) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    NtpDescribeType(Type, Answer->Information);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryTypes(PNTP_ANSWER Answer)
{
    POBJECT_TYPES_INFORMATION Information = Answer->Information;
    /* acquire: pairs with the release in ObpRegisterType */
    POBJECT_TYPE First = __atomic_load_n(&ObpFirstType, __ATOMIC_ACQUIRE);
    ULONG Offset = (ULONG)ALIGN_UP_BY(sizeof(*Information), sizeof(PVOID));
    ULONG Count = 0;
    for (POBJECT_TYPE Type = First; Type != NULL; Type = Type->NextType) {
        ULONG End = Offset + NtpTypeSize(Type);
        if (End <= Answer->Length) {
            NtpDescribeType(Type, (PVOID)((PUCHAR)Information + Offset));
        }
        Answer->Needed = End;
        Offset = (ULONG)ALIGN_UP_BY(End, sizeof(PVOID));
        Count += 1;
    }
    if (Answer->Length < Answer->Needed) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    Information->NumberOfTypes = Count;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryObjectBasic(HANDLE Handle, PVOID Object, ACCESS_MASK GrantedAccess, PNTP_ANSWER Answer)
{
    POBJECT_BASIC_INFORMATION Information = Answer->Information;
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    BOOLEAN Inherit, ProtectFromClose;
    ULONG Length;
    Answer->Needed = sizeof(*Information);
    if (Answer->Length != Answer->Needed) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    ObpQueryHandleAttributes(Handle, &Inherit, &ProtectFromClose);
    ObpQueryPath(Object, NULL, 0, &Length);
    memset(Information, 0, sizeof(*Information));
    Information->Attributes = (Inherit ? OBJ_INHERIT : 0) | (ProtectFromClose ? OBJ_PROTECT_CLOSE : 0) |
                              (Header->NameInfo != NULL ? ObpQueryNameAttributes(Object) : 0);
    Information->GrantedAccess = GrantedAccess;
    Information->HandleCount = ObpQueryHandleCount(Object);
    /* relaxed: for display; without the reference of this call */
    Information->PointerCount = (ULONG)__atomic_load_n(&Header->PointerCount, __ATOMIC_RELAXED) - 1;
    if (Length != 0) {
        Information->NameInfoSize = (ULONG)sizeof(OBJECT_NAME_INFORMATION) + (Length + 1) * (ULONG)sizeof(WCHAR);
    }
    Information->TypeInfoSize = NtpTypeSize(Header->Type);
    if (Header->Type == &ObpSymbolicLinkType) {
        Information->CreationTime = ((POBJECT_SYMBOLIC_LINK)Object)->CreationTime;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryFlags(HANDLE Handle, PNTP_ANSWER Answer)
{
    POBJECT_HANDLE_FLAG_INFORMATION Information = Answer->Information;
    Answer->Needed = sizeof(*Information);
    if (Answer->Length < Answer->Needed) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    return ObpQueryHandleAttributes(Handle, &Information->Inherit, &Information->ProtectFromClose);
}

static NTSTATUS NtpQueryOne(HANDLE Handle, KPROCESSOR_MODE Mode, OBJECT_INFORMATION_CLASS InformationClass,
                            PNTP_ANSWER Answer)
{
    OBJECT_HANDLE_INFORMATION HandleInformation;
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, NULL, Mode, &Object, &HandleInformation);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    switch (InformationClass) {
    case ObjectBasicInformation:
        Status = NtpQueryObjectBasic(Handle, Object, HandleInformation.GrantedAccess, Answer);
        break;
    case ObjectNameInformation:
        Status = ObQueryNameString(Object, Answer->Information, Answer->Length, &Answer->Needed);
        break;
    case ObjectTypeInformation:
        Status = NtpQueryType(Object, Answer);
        break;
    case ObjectHandleFlagInformation:
        Status = NtpQueryFlags(Handle, Answer);
        break;
    default:
        Status = STATUS_INVALID_INFO_CLASS;
        break;
    }
    ObpDereferenceObjectEx(Object, 1);
    return Status;
}

static NTSTATUS NtpQueryObject(KPROCESSOR_MODE Mode, HANDLE Handle, OBJECT_INFORMATION_CLASS InformationClass,
                               PVOID Information, ULONG Length, PULONG ReturnLength)
{
    NTP_ANSWER Answer = {Information, Length, 0};
    NTSTATUS Status;
    if (Information == NULL && Length != 0) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (InformationClass == ObjectTypesInformation) {
        Status = NtpQueryTypes(&Answer);
    } else {
        Status = NtpQueryOne(Handle, Mode, InformationClass, &Answer);
    }
    if (Answer.Needed != 0) {
        NtpReturnLength(ReturnLength, Answer.Needed);
    }
    return Status;
}

NTSTATUS NtQueryObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass, PVOID ObjectInformation,
                       ULONG ObjectInformationLength, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryObject(UserMode, Handle, ObjectInformationClass, ObjectInformation,
                                      ObjectInformationLength, ReturnLength));
}

NTSTATUS ZwQueryObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass, PVOID ObjectInformation,
                       ULONG ObjectInformationLength, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryObject(KernelMode, Handle, ObjectInformationClass, ObjectInformation,
                                      ObjectInformationLength, ReturnLength));
}

NTSTATUS NtSetInformationObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass,
                                PVOID ObjectInformation, ULONG ObjectInformationLength)
{
    POBJECT_HANDLE_FLAG_INFORMATION Information = ObjectInformation;
    NTSTATUS Status = NtpCheckQuery(ObjectInformationClass == ObjectHandleFlagInformation, ObjectInformation,
                                    ObjectInformationLength, sizeof(*Information));
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    return ObpSetHandleAttributes(Handle, Information->Inherit, Information->ProtectFromClose);
}
