/*
 * namespace.c: boundary descriptors and private namespaces.
 *
 * The system sees a boundary descriptor as a text: the name, a separator, and the security identifiers in hexadecimal, in
 * order. So descriptors with the same identifiers are the same boundary, regardless of the order in which they were added. A
 * prefix is local to this process: a list maps prefixes to handles.
 */
#include "../ex/text.h"
#include "../nt/ntp.h"
#include "base.h"

#define BASE_MOST_SIDS 32
#define BASE_SID_SIZE 68 /* 8, and 15 parts of 4 */
#define BASE_INTEGRITY_AUTHORITY 16

C_ASSERT(FIELD_OFFSET(SID, SubAuthority) + SID_MAX_SUB_AUTHORITIES * sizeof(DWORD) == BASE_SID_SIZE);

typedef struct _BASE_SID {
    ULONG Size;
    UCHAR Bytes[BASE_SID_SIZE];
} BASE_SID, *PBASE_SID;

typedef struct _BASE_BOUNDARY {
    struct _BASE_BOUNDARY *Next;     /* under BaseNamespaceLock */
    ULONG SidCount;
    BOOLEAN Labeled;                 /* has an integrity level */
    BASE_SID Sid[BASE_MOST_SIDS];
    SIZE_T NameLength;
    WCHAR Name[];
} BASE_BOUNDARY, *PBASE_BOUNDARY;

static KI_LOCK BaseNamespaceLock;
static PBASE_BOUNDARY BaseBoundaries; /* guarded by it: a descriptor is checked before it is used */

/* Descriptors. */

/* With the lock held: where the descriptor is linked; *result is NULL if it is in no list. */
static PBASE_BOUNDARY *BaseFindBoundary(HANDLE Descriptor)
{
    PBASE_BOUNDARY *Link = &BaseBoundaries;
    while (*Link != NULL && *Link != Descriptor) {
        Link = &(*Link)->Next;
    }
    return Link;
}

static BOOLEAN BaseIsBoundary(HANDLE Descriptor)
{
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    BOOLEAN Known = Descriptor != NULL && *BaseFindBoundary(Descriptor) != NULL;
    KiExitLocked(&BaseNamespaceLock, Thread);
    return Known;
}

HANDLE CreateBoundaryDescriptorW(LPCWSTR Name, ULONG Flags)
{
    SIZE_T Length = Name != NULL ? InterlockWcsnlen(Name, MAX_PATH + 1) : 0;
    PBASE_BOUNDARY Boundary;
    if (Length == 0 || Length > MAX_PATH || (Flags & ~CREATE_BOUNDARY_DESCRIPTOR_ADD_APPCONTAINER_SID)) {
        BaseSetLastNTError(STATUS_INVALID_PARAMETER);
        return NULL;
    }
    Boundary = HalAllocate(sizeof(*Boundary) + Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Boundary == NULL) {
        BaseSetLastNTError(STATUS_NO_MEMORY);
        return NULL;
    }
    Boundary->NameLength = Length;
    memcpy(Boundary->Name, Name, Length * sizeof(WCHAR));
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    Boundary->Next = BaseBoundaries;
    BaseBoundaries = Boundary;
    KiExitLocked(&BaseNamespaceLock, Thread);
    return Boundary;
}

/* NULL: no memory, or the name is too long. */
static LPCWSTR BaseWidenShort(LPCSTR Name, WCHAR Buffer[MAX_PATH + 2])
{
    if (Name == NULL || ExpUtf8ToWide(Name, strlen(Name) + 1, Buffer, MAX_PATH + 2, NULL) > MAX_PATH + 2) {
        return NULL;
    }
    return Buffer;
}

HANDLE CreateBoundaryDescriptorA(LPCSTR Name, ULONG Flags)
{
    WCHAR Buffer[MAX_PATH + 2];
    return CreateBoundaryDescriptorW(BaseWidenShort(Name, Buffer), Flags);
}

VOID DeleteBoundaryDescriptor(HANDLE BoundaryDescriptor)
{
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    PBASE_BOUNDARY *Link = BaseFindBoundary(BoundaryDescriptor);
    PBASE_BOUNDARY Boundary = *Link;
    if (Boundary != NULL) {
        *Link = Boundary->Next;
    }
    KiExitLocked(&BaseNamespaceLock, Thread);
    HalFree(Boundary);
}

static BOOLEAN BaseIsIntegrityLevel(const SID *Sid)
{
    static const SID_IDENTIFIER_AUTHORITY Mandatory = {{0, 0, 0, 0, 0, BASE_INTEGRITY_AUTHORITY}};
    return memcmp(&Sid->IdentifierAuthority, &Mandatory, sizeof(Mandatory)) == 0;
}

static LONG BaseCompareSids(const BASE_SID *First, const BASE_SID *Second)
{
    return First->Size != Second->Size ? (LONG)First->Size - (LONG)Second->Size
                                       : memcmp(First->Bytes, Second->Bytes, First->Size);
}

/* Keeps the identifiers in order, each of them once. */
static NTSTATUS BaseAddSid(PBASE_BOUNDARY Boundary, const SID *Sid)
{
    BASE_SID New = {.Size = FIELD_OFFSET(SID, SubAuthority) + Sid->SubAuthorityCount * (ULONG)sizeof(DWORD)};
    ULONG Place = Boundary->SidCount;
    memcpy(New.Bytes, Sid, New.Size);
    for (ULONG Index = 0; Index < Boundary->SidCount; Index++) {
        if (BaseCompareSids(&Boundary->Sid[Index], &New) == 0) {
            return STATUS_SUCCESS;
        }
    }
    if (Boundary->SidCount == BASE_MOST_SIDS) {
        return STATUS_NO_MEMORY;
    }
    for (; Place != 0 && BaseCompareSids(&Boundary->Sid[Place - 1], &New) > 0; Place--) {
        Boundary->Sid[Place] = Boundary->Sid[Place - 1];
    }
    Boundary->Sid[Place] = New;
    Boundary->SidCount += 1;
    return STATUS_SUCCESS;
}

static NTSTATUS BaseCheckSid(HANDLE *BoundaryDescriptor, const SID *Sid)
{
    if (BoundaryDescriptor == NULL || !BaseIsBoundary(*BoundaryDescriptor) || Sid == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    return Sid->Revision == SID_REVISION && Sid->SubAuthorityCount <= SID_MAX_SUB_AUTHORITIES ? STATUS_SUCCESS
                                                                                             : STATUS_INVALID_SID;
}

BOOL AddSIDToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID RequiredSid)
{
    NTSTATUS Status = BaseCheckSid(BoundaryDescriptor, RequiredSid);
    if (NT_SUCCESS(Status)) {
        Status = BaseIsIntegrityLevel(RequiredSid) ? STATUS_INVALID_PARAMETER
                                                   : BaseAddSid(*BoundaryDescriptor, RequiredSid);
    }
    return BaseBoolStatus(Status);
}

BOOL AddIntegrityLabelToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID IntegrityLabel)
{
    NTSTATUS Status = BaseCheckSid(BoundaryDescriptor, IntegrityLabel);
    if (NT_SUCCESS(Status)) {
        PBASE_BOUNDARY Boundary = *BoundaryDescriptor;
        Status = BaseIsIntegrityLevel(IntegrityLabel) && !Boundary->Labeled ? BaseAddSid(Boundary, IntegrityLabel)
                                                                            : STATUS_INVALID_PARAMETER;
        Boundary->Labeled |= NT_SUCCESS(Status);
    }
    return BaseBoolStatus(Status);
}

/* The text. It begins with a separator, so no path can reach it. */

#define BASE_LONGEST_BOUNDARY (2 + MAX_PATH + BASE_MOST_SIDS * (1 + 2 * BASE_SID_SIZE))

static SIZE_T BaseWriteSid(PWCHAR Text, const BASE_SID *Sid)
{
    static const CHAR Digits[] = "0123456789abcdef";
    for (ULONG Index = 0; Index < Sid->Size; Index++) {
        *Text++ = (WCHAR)(UCHAR)Digits[Sid->Bytes[Index] >> 4];
        *Text++ = (WCHAR)(UCHAR)Digits[Sid->Bytes[Index] & 15];
    }
    *Text = u',';
    return 2 * Sid->Size + 1;
}

static NTSTATUS BaseDescribeBoundary(PBASE_BOUNDARY Boundary, PUNICODE_STRING Text)
{
    PWCHAR Buffer = HalAllocate(BASE_LONGEST_BOUNDARY * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    SIZE_T Length = 0;
    if (Buffer == NULL) {
        return STATUS_NO_MEMORY;
    }
    Buffer[Length++] = u'\\';
    memcpy(Buffer + Length, Boundary->Name, Boundary->NameLength * sizeof(WCHAR));
    Length += Boundary->NameLength;
    Buffer[Length++] = u'\\';
    for (ULONG Index = 0; Index < Boundary->SidCount; Index++) {
        Length += BaseWriteSid(Buffer + Length, &Boundary->Sid[Index]);
    }
    *Text = (UNICODE_STRING){(USHORT)(Length * sizeof(WCHAR)), (USHORT)(Length * sizeof(WCHAR)), Buffer};
    return STATUS_SUCCESS;
}

C_ASSERT(BASE_LONGEST_BOUNDARY < UNICODE_STRING_MAX_CHARS);

/* Prefixes. */

typedef struct _BASE_NAMESPACE {
    struct _BASE_NAMESPACE *Next;
    HANDLE Handle;                   /* NULL: being opened */
    ULONG Length;
    WCHAR Prefix[];
} BASE_NAMESPACE, *PBASE_NAMESPACE;

static PBASE_NAMESPACE volatile BaseNamespaces; /* guarded by BaseNamespaceLock */

static PBASE_NAMESPACE *BaseFindPrefix(LPCWSTR Prefix, SIZE_T Length)
{
    PBASE_NAMESPACE *Link = (PBASE_NAMESPACE *)&BaseNamespaces;
    while (*Link != NULL &&
           ExpCompareStrings((*Link)->Prefix, (*Link)->Length, Prefix, Length, TRUE) != 0) {
        Link = &(*Link)->Next;
    }
    return Link;
}

HANDLE BaseFindNamespace(LPCWSTR Name, PSIZE_T Prefix)
{
    SIZE_T Length = 0;
    HANDLE Handle = NULL;
    /* relaxed: a process that has none, the usual case, need not lock */
    if (__atomic_load_n(&BaseNamespaces, __ATOMIC_RELAXED) == NULL) {
        return NULL;
    }
    while (Name[Length] != 0 && Name[Length] != u'\\') {
        Length += 1;
    }
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    PBASE_NAMESPACE Found = Name[Length] != 0 ? *BaseFindPrefix(Name, Length) : NULL;
    if (Found != NULL) {
        Handle = Found->Handle;
    }
    KiExitLocked(&BaseNamespaceLock, Thread);
    *Prefix = Length + 1;
    return Handle;
}

/* Enters the prefix before the namespace is opened: so of two callers with the same one, one fails. */
static NTSTATUS BaseReservePrefix(LPCWSTR Prefix, PBASE_NAMESPACE *Reserved)
{
    SIZE_T Length = InterlockWcsnlen(Prefix, MAX_PATH + 1);
    BOOLEAN Separated = FALSE;
    for (SIZE_T Index = 0; Index < Length; Index++) {
        Separated |= Prefix[Index] == u'\\';
    }
    if (Length == 0 || Length > MAX_PATH || Separated) {
        return STATUS_INVALID_PARAMETER;
    }
    PBASE_NAMESPACE New = HalAllocate(sizeof(*New) + Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (New == NULL) {
        return STATUS_NO_MEMORY;
    }
    New->Length = (ULONG)Length;
    memcpy(New->Prefix, Prefix, Length * sizeof(WCHAR));
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    BOOLEAN Free = *BaseFindPrefix(Prefix, Length) == NULL;
    if (Free) {
        New->Next = BaseNamespaces;
        __atomic_store_n(&BaseNamespaces, New, __ATOMIC_RELAXED);
    }
    KiExitLocked(&BaseNamespaceLock, Thread);
    if (!Free) {
        HalFree(New);
        return STATUS_DUPLICATE_NAME;
    }
    *Reserved = New;
    return STATUS_SUCCESS;
}

/* FALSE: no prefix stands for the handle. */
static BOOLEAN BaseForgetNamespace(PBASE_NAMESPACE Namespace, HANDLE Handle)
{
    PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
    PBASE_NAMESPACE *Link = (PBASE_NAMESPACE *)&BaseNamespaces;
    while (*Link != NULL && *Link != Namespace && (Handle == NULL || (*Link)->Handle != Handle)) {
        Link = &(*Link)->Next;
    }
    PBASE_NAMESPACE Found = *Link;
    if (Found != NULL) {
        __atomic_store_n(Link, Found->Next, __ATOMIC_RELAXED);
    }
    KiExitLocked(&BaseNamespaceLock, Thread);
    HalFree(Found);
    return Found != NULL;
}

/* Namespaces. */

static HANDLE BaseOpenNamespace(LPSECURITY_ATTRIBUTES Security, PBASE_BOUNDARY Boundary, LPCWSTR Prefix, BOOLEAN Create)
{
    OBJECT_ATTRIBUTES Attributes;
    PBASE_NAMESPACE Namespace = NULL;
    UNICODE_STRING Text = {0};
    HANDLE Handle = NULL;
    BOOLEAN Valid = BaseIsBoundary(Boundary) && Prefix != NULL;
    NTSTATUS Status = Valid ? BaseDescribeBoundary(Boundary, &Text) : STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(Status)) {
        Status = BaseReservePrefix(Prefix, &Namespace);
    }
    if (NT_SUCCESS(Status)) {
        InitializeObjectAttributes(&Attributes, NULL, Security != NULL && Security->bInheritHandle ? OBJ_INHERIT : 0, NULL,
                                   Security != NULL ? Security->lpSecurityDescriptor : NULL);
        Status = NtpOpenPrivateNamespace(&Text, &Attributes, Create, &Handle);
    }
    HalFree(Text.Buffer);
    if (Namespace != NULL && NT_SUCCESS(Status)) {
        PKTHREAD Thread = KiEnterLocked(&BaseNamespaceLock);
        Namespace->Handle = Handle;
        KiExitLocked(&BaseNamespaceLock, Thread);
    } else if (Namespace != NULL) {
        BaseForgetNamespace(Namespace, NULL);
    }
    return BaseBoolStatus(Status) ? Handle : NULL;
}

HANDLE CreatePrivateNamespaceW(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes, LPVOID lpBoundaryDescriptor,
                               LPCWSTR lpAliasPrefix)
{
    return BaseOpenNamespace(lpPrivateNamespaceAttributes, lpBoundaryDescriptor, lpAliasPrefix, TRUE);
}

HANDLE CreatePrivateNamespaceA(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes, LPVOID lpBoundaryDescriptor,
                               LPCSTR lpAliasPrefix)
{
    WCHAR Buffer[MAX_PATH + 2];
    return BaseOpenNamespace(lpPrivateNamespaceAttributes, lpBoundaryDescriptor, BaseWidenShort(lpAliasPrefix, Buffer), TRUE);
}

HANDLE OpenPrivateNamespaceW(LPVOID lpBoundaryDescriptor, LPCWSTR lpAliasPrefix)
{
    return BaseOpenNamespace(NULL, lpBoundaryDescriptor, lpAliasPrefix, FALSE);
}

HANDLE OpenPrivateNamespaceA(LPVOID lpBoundaryDescriptor, LPCSTR lpAliasPrefix)
{
    WCHAR Buffer[MAX_PATH + 2];
    return BaseOpenNamespace(NULL, lpBoundaryDescriptor, BaseWidenShort(lpAliasPrefix, Buffer), FALSE);
}

BOOLEAN ClosePrivateNamespace(HANDLE Handle, ULONG Flags)
{
    NTSTATUS Status = STATUS_SUCCESS;
    if (Flags & ~PRIVATE_NAMESPACE_FLAG_DESTROY) {
        return (BOOLEAN)BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    if (Handle == NULL || !BaseForgetNamespace(NULL, Handle)) {
        return (BOOLEAN)BaseBoolStatus(STATUS_INVALID_HANDLE);
    }
    if (Flags & PRIVATE_NAMESPACE_FLAG_DESTROY) {
        Status = NtpDeletePrivateNamespace(Handle);
    }
    NTSTATUS Closed = NtClose(Handle);
    return (BOOLEAN)BaseBoolStatus(NT_SUCCESS(Status) ? Closed : Status);
}
