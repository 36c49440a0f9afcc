/* directory.c: directories of the object manager. */
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

/* A shadow directory, where a lookup goes on that fails in the first one, serves the DOS devices of logon sessions. */
NTSTATUS NtCreateDirectoryObjectEx(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                   POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ShadowDirectoryHandle, ULONG Flags)
{
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
 * The caller's buffer while it is filled: entries from the front, an empty one behind the last, strings from the back.
 * At the end the strings are moved to where the entries end.
 */
typedef struct _NTP_LISTING {
    POBJECT_DIRECTORY_INFORMATION Entry;
    ULONG Length;
    ULONG Most;    /* entries that are asked for */
    ULONG Count;
    ULONG Strings; /* bytes at the back */
    ULONG Missing; /* what the first one that did not fit would have needed; 0: all were seen */
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

static VOID NtpPlaceEntry(PNTP_LISTING Listing, PCUNICODE_STRING Name, POBJECT_TYPE Type)
{
    POBJECT_DIRECTORY_INFORMATION Entry = &Listing->Entry[Listing->Count];
    NtpPlaceString(Listing, &Entry->TypeName, NtpTypeNameSize(Type));
    for (ULONG Index = 0; Index < Entry->TypeName.Length / sizeof(WCHAR); Index++) {
        Entry->TypeName.Buffer[Index] = (WCHAR)(UCHAR)Type->Name[Index];
    }
    NtpPlaceString(Listing, &Entry->Name, Name->Length + (ULONG)sizeof(WCHAR));
    memcpy(Entry->Name.Buffer, Name->Buffer, Name->Length);
    Listing->Count += 1;
}

static BOOLEAN NtpVisitEntry(PCUNICODE_STRING Name, POBJECT_TYPE Type, PVOID Context)
{
    PNTP_LISTING Listing = Context;
    ULONG Strings = Listing->Strings + Name->Length + (ULONG)sizeof(WCHAR) + NtpTypeNameSize(Type);
    ULONG64 Needed = (Listing->Count + 2ull) * sizeof(OBJECT_DIRECTORY_INFORMATION) + Strings;
    if (Needed > Listing->Length || Listing->Count == Listing->Most) {
        Listing->Missing = (ULONG)Needed;
        return FALSE;
    }
    NtpPlaceEntry(Listing, Name, Type);
    return TRUE;
}

static VOID NtpMoveString(PUNICODE_STRING String, ULONG Distance)
{
    String->Buffer = (PWCHAR)((PUCHAR)String->Buffer - Distance);
}

/* Returns how much of the buffer is used. */
static ULONG NtpFinishListing(PNTP_LISTING Listing)
{
    POBJECT_DIRECTORY_INFORMATION Last = &Listing->Entry[Listing->Count];
    ULONG Entries = (Listing->Count + 1) * (ULONG)sizeof(*Last);
    ULONG Distance = Listing->Length - Listing->Strings - Entries;
    memset(Last, 0, sizeof(*Last));
    memmove(Last + 1, (PUCHAR)(Last + 1) + Distance, Listing->Strings);
    for (POBJECT_DIRECTORY_INFORMATION Entry = Listing->Entry; Entry != Last; Entry++) {
        NtpMoveString(&Entry->Name, Distance);
        NtpMoveString(&Entry->TypeName, Distance);
    }
    return Entries + Listing->Strings;
}

static NTSTATUS NtpListDirectory(POBJECT_DIRECTORY Directory, PNTP_LISTING Listing, PULONG Context,
                                 PULONG ReturnLength)
{
    BOOLEAN Single = Listing->Most == 1;
    ULONG Used = sizeof(OBJECT_DIRECTORY_INFORMATION);
    ObpVisitEntries(Directory, *Context, NtpVisitEntry, Listing);
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
    *Context += Listing->Count;
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
    if (RestartScan) {
        *Context = 0;
    }
    Status = NtpListDirectory(Directory, &Listing, Context, ReturnLength);
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
