/* directory.c: directories and symbolic links of the object manager. */
#include "ntp.h"

#include "../ob/namespace.h"

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
 * The caller's buffer while it is being filled: entries from the front, with an empty one behind the last, and strings
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

static ULONG NtpTypeNameSize(POBJECT_TYPE Type)
{
    return ((ULONG)strlen(Type->Name) + 1) * sizeof(WCHAR);
}

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
