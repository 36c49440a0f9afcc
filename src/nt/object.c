/*
 * object.c: services for objects of any type: handles, information, directories and symbolic links, and the bytes of
 * descriptor objects.
 */
#include "../io/watch.h"
#include "../ob/share.h"
#include "../ps/psp.h"
#include "ntp.h"

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

/* With the terminating zero. */
static ULONG NtpTypeNameSize(POBJECT_TYPE Type)
{
    return ((ULONG)strlen(Type->Name) + 1) * (ULONG)sizeof(WCHAR);
}

static ULONG NtpTypeSize(POBJECT_TYPE Type)
{
    return (ULONG)sizeof(OBJECT_TYPE_INFORMATION) + NtpTypeNameSize(Type);
}

static VOID NtpDescribeType(POBJECT_TYPE Type, POBJECT_TYPE_INFORMATION Information)
{
    PWCHAR Name = (PWCHAR)(Information + 1);
    memset(Information, 0, sizeof(*Information));
    Information->TypeName.MaximumLength = (USHORT)NtpTypeNameSize(Type);
    Information->TypeName.Length = Information->TypeName.MaximumLength - (USHORT)sizeof(WCHAR);
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

/* Directories, symbolic links and private namespaces. */

static NTSTATUS NtpCreateDirectory(KPROCESSOR_MODE Mode, PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                   POBJECT_ATTRIBUTES ObjectAttributes)
{
    OBP_BLUEPRINT Blueprint = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, NULL};
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, DirectoryHandle);
}

NTSTATUS NtCreateDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                 POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(NtpCreateDirectory(UserMode, DirectoryHandle, DesiredAccess, ObjectAttributes));
}

NTSTATUS ZwCreateDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                 POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(NtpCreateDirectory(KernelMode, DirectoryHandle, DesiredAccess, ObjectAttributes));
}

/* A shadow directory continues a lookup that fails in the first one; it serves the DOS devices of logon sessions. */
NTSTATUS NtCreateDirectoryObjectEx(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                   POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ShadowDirectoryHandle, ULONG Flags)
{
    if (!NtpClearHandle(DirectoryHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Flags != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (ShadowDirectoryHandle != NULL) {
        return STATUS_NOT_SUPPORTED;
    }
    return NTP_SERVICE(NtpCreateDirectory(UserMode, DirectoryHandle, DesiredAccess, ObjectAttributes));
}

NTSTATUS NtOpenDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &ObpDirectoryType, ObjectAttributes, DesiredAccess, DirectoryHandle));
}

NTSTATUS ZwOpenDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(
        ObpOpenHandleAs(KernelMode, &ObpDirectoryType, ObjectAttributes, DesiredAccess, DirectoryHandle));
}

/*
 * The caller's buffer while it is being filled: entries from the front, with an empty one after the last, and strings
 * from the back. Finally the strings move to the end of the entries.
 */
typedef struct _NTP_LISTING {
    POBJECT_DIRECTORY_INFORMATION Entry;
    ULONG Length;
    ULONG Most;    /* entries requested */
    ULONG Count;
    ULONG Strings; /* bytes at the back */
    ULONG Missing; /* bytes needed for the first entry that did not fit; 0: all fit */
} NTP_LISTING, *PNTP_LISTING;

static VOID NtpPlaceString(PNTP_LISTING Listing, PUNICODE_STRING String, ULONG Size)
{
    Listing->Strings += Size;
    String->Length = (USHORT)(Size - sizeof(WCHAR));
    String->MaximumLength = (USHORT)Size;
    String->Buffer = (PWCHAR)((PUCHAR)Listing->Entry + Listing->Length - Listing->Strings);
    String->Buffer[Size / sizeof(WCHAR) - 1] = 0;
}

static BOOLEAN NtpVisitEntry(PCUNICODE_STRING Name, POBJECT_TYPE Type, PVOID Context)
{
    PNTP_LISTING Listing = Context;
    POBJECT_DIRECTORY_INFORMATION Entry = &Listing->Entry[Listing->Count];
    ULONG Strings = Listing->Strings + Name->Length + (ULONG)sizeof(WCHAR) + NtpTypeNameSize(Type);
    ULONG64 Needed = (Listing->Count + 2ull) * sizeof(OBJECT_DIRECTORY_INFORMATION) + Strings;
    if (Needed > Listing->Length || Listing->Count == Listing->Most) {
        Listing->Missing = (ULONG)Needed;
        return FALSE;
    }
    NtpPlaceString(Listing, &Entry->TypeName, NtpTypeNameSize(Type));
    for (ULONG Index = 0; Index < Entry->TypeName.Length / sizeof(WCHAR); Index++) {
        Entry->TypeName.Buffer[Index] = (WCHAR)(UCHAR)Type->Name[Index];
    }
    NtpPlaceString(Listing, &Entry->Name, Name->Length + (ULONG)sizeof(WCHAR));
    memcpy(Entry->Name.Buffer, Name->Buffer, Name->Length);
    Listing->Count += 1;
    return TRUE;
}

/* Returns the bytes of the buffer in use. */
static ULONG NtpFinishListing(PNTP_LISTING Listing)
{
    POBJECT_DIRECTORY_INFORMATION Last = &Listing->Entry[Listing->Count];
    ULONG Entries = (Listing->Count + 1) * (ULONG)sizeof(*Last);
    ULONG Distance = Listing->Length - Listing->Strings - Entries;
    memset(Last, 0, sizeof(*Last));
    memmove(Last + 1, (PUCHAR)(Last + 1) + Distance, Listing->Strings);
    for (POBJECT_DIRECTORY_INFORMATION Entry = Listing->Entry; Entry != Last; Entry++) {
        Entry->Name.Buffer -= Distance / sizeof(WCHAR);
        Entry->TypeName.Buffer -= Distance / sizeof(WCHAR);
    }
    return Entries + Listing->Strings;
}

/* First: the first entry to list. *Context changes only on success. */
static NTSTATUS NtpListDirectory(POBJECT_DIRECTORY Directory, PNTP_LISTING Listing, ULONG First, PULONG Context,
                                 PULONG ReturnLength)
{
    BOOLEAN Single = Listing->Most == 1;
    ULONG Used = sizeof(OBJECT_DIRECTORY_INFORMATION);
    ObpVisitEntries(Directory, First, NtpVisitEntry, Listing);
    if (Listing->Length >= sizeof(OBJECT_DIRECTORY_INFORMATION)) {
        Used = NtpFinishListing(Listing);
    }
    if (Listing->Count == 0 && Listing->Missing != 0 && Single) {
        NtpReturnLength(ReturnLength, Listing->Missing);
        return STATUS_BUFFER_TOO_SMALL;
    }
    NtpReturnLength(ReturnLength, Used);
    if (Listing->Count == 0 && Listing->Missing == 0) {
        return STATUS_NO_MORE_ENTRIES;
    }
    *Context = First + Listing->Count;
    return Listing->Missing != 0 && !Single ? STATUS_MORE_ENTRIES : STATUS_SUCCESS;
}

static NTSTATUS NtpQueryDirectory(KPROCESSOR_MODE Mode, HANDLE DirectoryHandle, PVOID Buffer, ULONG Length,
                                  BOOLEAN ReturnSingleEntry, BOOLEAN RestartScan, PULONG Context, PULONG ReturnLength)
{
    NTP_LISTING Listing = {.Entry = Buffer, .Length = Length & ~1u, .Most = ReturnSingleEntry ? 1 : MAXULONG};
    PVOID Directory;
    NTSTATUS Status;
    if (Context == NULL || (Buffer == NULL && Length != 0)) {
        return STATUS_ACCESS_VIOLATION;
    }
    Status = ObReferenceObjectByHandle(DirectoryHandle, DIRECTORY_QUERY, &ObpDirectoryType, Mode, &Directory, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = NtpListDirectory(Directory, &Listing, RestartScan ? 0 : *Context, Context, ReturnLength);
    ObpDereferenceObjectEx(Directory, 1);
    return Status;
}

NTSTATUS NtQueryDirectoryObject(HANDLE DirectoryHandle, PVOID Buffer, ULONG Length, BOOLEAN ReturnSingleEntry,
                                BOOLEAN RestartScan, PULONG Context, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryDirectory(UserMode, DirectoryHandle, Buffer, Length, ReturnSingleEntry, RestartScan,
                                         Context, ReturnLength));
}

NTSTATUS ZwQueryDirectoryObject(HANDLE DirectoryHandle, PVOID Buffer, ULONG Length, BOOLEAN ReturnSingleEntry,
                                BOOLEAN RestartScan, PULONG Context, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryDirectory(KernelMode, DirectoryHandle, Buffer, Length, ReturnSingleEntry, RestartScan,
                                         Context, ReturnLength));
}

/* Private namespaces. */

NTSTATUS NtpOpenPrivateNamespace(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN Create,
                                 PHANDLE NamespaceHandle)
{
    NTSTATUS Status = NTP_SERVICE(
        ObpOpenBoundary(Boundary, ObjectAttributes, DIRECTORY_ALL_ACCESS, Create, NamespaceHandle));
    return Status == STATUS_OBJECT_NAME_NOT_FOUND ? STATUS_OBJECT_PATH_NOT_FOUND : Status;
}

NTSTATUS NtpDeletePrivateNamespace(HANDLE NamespaceHandle)
{
    return NTP_SERVICE(ObpRemoveBoundary(NamespaceHandle));
}

/* Symbolic links. */

static NTSTATUS NtpCheckTarget(PCUNICODE_STRING Target)
{
    if (Target == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Target->Length == 0 || Target->Length % sizeof(WCHAR) != 0 || Target->Length > Target->MaximumLength) {
        return STATUS_INVALID_PARAMETER;
    }
    return Target->Buffer != NULL ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

static NTSTATUS NtpCreateSymbolicLink(KPROCESSOR_MODE Mode, PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes, PUNICODE_STRING LinkTarget)
{
    OBP_BLUEPRINT Blueprint = {&ObpSymbolicLinkType, 0, ObpInitializeSymbolicLink, LinkTarget};
    NTSTATUS Status = NtpClearHandle(LinkHandle) ? NtpCheckTarget(LinkTarget) : STATUS_ACCESS_VIOLATION;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Blueprint.BodySize = ObpSymbolicLinkSize(LinkTarget);
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, LinkHandle);
}

NTSTATUS NtCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                    PUNICODE_STRING LinkTarget)
{
    return NTP_SERVICE(NtpCreateSymbolicLink(UserMode, LinkHandle, DesiredAccess, ObjectAttributes, LinkTarget));
}

NTSTATUS ZwCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                    PUNICODE_STRING LinkTarget)
{
    return NTP_SERVICE(NtpCreateSymbolicLink(KernelMode, LinkHandle, DesiredAccess, ObjectAttributes, LinkTarget));
}

NTSTATUS NtOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &ObpSymbolicLinkType, ObjectAttributes, DesiredAccess, LinkHandle));
}

NTSTATUS ZwOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(KernelMode, &ObpSymbolicLinkType, ObjectAttributes, DesiredAccess, LinkHandle));
}

/* With ReturnedLength the caller also gets the terminating null. */
static NTSTATUS NtpCopyTarget(POBJECT_SYMBOLIC_LINK Link, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    ULONG Length = Link->Length * (ULONG)sizeof(WCHAR);
    ULONG Needed = Length + (ReturnedLength != NULL ? (ULONG)sizeof(WCHAR) : 0);
    NtpReturnLength(ReturnedLength, Needed);
    if (Needed > LinkTarget->MaximumLength) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    if (LinkTarget->Buffer == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    memcpy(LinkTarget->Buffer, Link->Target, Length);
    if (ReturnedLength != NULL) {
        LinkTarget->Buffer[Link->Length] = 0;
    }
    LinkTarget->Length = (USHORT)Length;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQuerySymbolicLink(KPROCESSOR_MODE Mode, HANDLE LinkHandle, PUNICODE_STRING LinkTarget,
                                     PULONG ReturnedLength)
{
    PVOID Link;
    NTSTATUS Status;
    if (LinkTarget == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    Status = ObReferenceObjectByHandle(LinkHandle, SYMBOLIC_LINK_QUERY, &ObpSymbolicLinkType, Mode, &Link, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpCopyTarget(Link, LinkTarget, ReturnedLength);
        ObpDereferenceObjectEx(Link, 1);
    }
    return Status;
}

NTSTATUS NtQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    return NTP_SERVICE(NtpQuerySymbolicLink(UserMode, LinkHandle, LinkTarget, ReturnedLength));
}

NTSTATUS ZwQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget, PULONG ReturnedLength)
{
    return NTP_SERVICE(NtpQuerySymbolicLink(KernelMode, LinkHandle, LinkTarget, ReturnedLength));
}

/*
 * Reading and writing descriptor objects.
 *
 * The object stays referenced while its descriptor is in use. The thread is not in a service meanwhile: it may block
 * indefinitely, and can be terminated. Then its reference is lost.
 */

static NTSTATUS NtpReferenceDescriptor(HANDLE Handle, PVOID *Object, PLONG Descriptor)
{
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, &IopDescriptorType, UserMode, Object, NULL);
    if (NT_SUCCESS(Status)) {
        *Descriptor = IopDescriptorOfObject(*Object);
        if (*Descriptor < 0) {
            ObDereferenceObject(*Object);
            Status = STATUS_FILE_CLOSED;
        }
    }
    return Status;
}

static VOID NtpReleaseDescriptor(PVOID Object)
{
    NTP_SERVICE_UNTIL_RETURN();
    ObDereferenceObject(Object);
}

NTSTATUS NtpReadDescriptor(HANDLE Handle, PVOID Buffer, ULONG Length, PULONG Done)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    *Done = 0;
    if (NT_SUCCESS(Status)) {
        Status = HalReadDescriptor(Descriptor, Buffer, Length, Done);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}

NTSTATUS NtpWriteDescriptor(HANDLE Handle, const VOID *Buffer, ULONG Length, PULONG Done)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    *Done = 0;
    if (NT_SUCCESS(Status)) {
        Status = HalWriteDescriptor(Descriptor, Buffer, Length, Done);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}

NTSTATUS NtpQueryDescriptorKind(HANDLE Handle, HAL_DESCRIPTOR_KIND *Kind)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    if (NT_SUCCESS(Status)) {
        *Kind = HalQueryDescriptorKind(Descriptor);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}
