/* namespace.c: directories and links; entering, finding and removing names. The theory is in obp.h. */
#include "../ex/text.h"
#include "../ke/debugdata.h"
#include "share.h"

#define OBP_FEWEST_BUCKETS 64
#define OBP_MOST_BUCKETS (1u << 20)
#define OBP_MOST_LINKS 32
#define OBP_DOTS 3

static POBJECT_HEADER_NAME_INFO ObpFewestBuckets[OBP_FEWEST_BUCKETS];

/* Guarded by Lock; the counts are also read without it. */
static struct {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG BucketCount; /* a power of 2 */
    volatile ULONG NameCount;
    POBJECT_HEADER_NAME_INFO *Bucket;
} ObpNames = {.BucketCount = OBP_FEWEST_BUCKETS, .Bucket = ObpFewestBuckets};

OBJECT_TYPE ObpDirectoryType = {
    .Name = "Directory",
    .GenericMapping = {STANDARD_RIGHTS_READ | DIRECTORY_QUERY | DIRECTORY_TRAVERSE,
                       STANDARD_RIGHTS_WRITE | DIRECTORY_CREATE_OBJECT | DIRECTORY_CREATE_SUBDIRECTORY,
                       STANDARD_RIGHTS_EXECUTE | DIRECTORY_QUERY | DIRECTORY_TRAVERSE, DIRECTORY_ALL_ACCESS},
    .ValidAccessMask = DIRECTORY_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .CaseInsensitive = TRUE,
    .Sharing = &ObpDirectorySharing,
};

OBJECT_TYPE ObpSymbolicLinkType = {
    .Name = "SymbolicLink",
    .GenericMapping = {STANDARD_RIGHTS_READ | SYMBOLIC_LINK_QUERY, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYMBOLIC_LINK_QUERY, SYMBOLIC_LINK_ALL_ACCESS},
    .ValidAccessMask = SYMBOLIC_LINK_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .CaseInsensitive = TRUE,
    .Sharing = &ObpSymbolicLinkSharing,
};

OBP_REGISTER_TYPE(ObpDirectoryType);
OBP_REGISTER_TYPE(ObpSymbolicLinkType);

NTSTATUS ObpInitializeDirectory(PVOID Object, PVOID Context)
{
    POBJECT_DIRECTORY Directory = Object;
    InitializeListHead(&Directory->Entries);
    Directory->Root = Context != NULL ? *(OBP_WORLD_ROOT *)Context : ObpNoRoot;
    return STATUS_SUCCESS;
}

SIZE_T ObpSymbolicLinkSize(PCUNICODE_STRING Target)
{
    return sizeof(OBJECT_SYMBOLIC_LINK) + Target->Length;
}

NTSTATUS ObpInitializeSymbolicLink(PVOID Object, PVOID Context)
{
    POBJECT_SYMBOLIC_LINK Link = Object;
    PCUNICODE_STRING Target = Context;
    KeQuerySystemTime(&Link->CreationTime);
    Link->Length = Target->Length / sizeof(WCHAR);
    memcpy(Link->Target, Target->Buffer, Target->Length);
    return STATUS_SUCCESS;
}

/* The directory where every path begins; it has no name and is never deleted. */
static struct {
    UCHAR Header[sizeof(OBJECT_HEADER)] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
    OBJECT_DIRECTORY Body;
} ObpRootDirectory;
KD_REGISTER_ROOT(ObpRootDirectory);

C_ASSERT(FIELD_OFFSET(OBJECT_HEADER, Body) == sizeof(OBJECT_HEADER));

static VOID ObpInitializeNamespace(VOID)
{
    ObpInitializeObject(&ObpRootDirectory.Body, &ObpDirectoryType);
    ObpInitializeDirectory(&ObpRootDirectory.Body, NULL);
}
KI_INITIALIZER(KiInitializeObjects, ObpInitializeNamespace);

static ULONG ObpHashName(POBJECT_DIRECTORY Directory, OBP_TEXT Name)
{
    ULONG64 Hash = (ULONG_PTR)Directory >> 4;
    for (ULONG Index = 0; Index < Name.Length; Index++) {
        Hash = (Hash ^ ExpUpcase(Name.Text[Index])) * 0x9E3779B97F4A7C15ull;
        Hash ^= Hash >> 32;
    }
    return (ULONG)Hash;
}

static POBJECT_HEADER_NAME_INFO *ObpBucketOf(ULONG Hash)
{
    return &ObpNames.Bucket[Hash & (ObpNames.BucketCount - 1)];
}

/* With the names locked, as every function from here on that does not lock them itself. */
static POBJECT_HEADER_NAME_INFO ObpFindName(POBJECT_DIRECTORY Directory, OBP_TEXT Name, BOOLEAN CaseInsensitive)
{
    ULONG Hash = ObpHashName(Directory, Name);
    POBJECT_HEADER_NAME_INFO Info = *ObpBucketOf(Hash);
    while (Info != NULL &&
           (Info->Hash != Hash || Info->Directory != Directory ||
            ExpCompareStrings(Info->Name, Info->Length, Name.Text, Name.Length, CaseInsensitive) != 0)) {
        Info = Info->HashNext;
    }
    return Info;
}

static VOID ObpLinkName(POBJECT_HEADER_NAME_INFO Info, POBJECT_DIRECTORY Directory, OBP_TEXT Name)
{
    POBJECT_HEADER_NAME_INFO *Bucket;
    Info->Hash = ObpHashName(Directory, Name);
    Info->Length = (USHORT)Name.Length;
    memcpy(Info->Name, Name.Text, Name.Length * sizeof(WCHAR));
    Bucket = ObpBucketOf(Info->Hash);
    Info->HashNext = *Bucket;
    *Bucket = Info;
    Info->Directory = Directory;
    InsertTailList(&Directory->Entries, &Info->Sibling);
    /* relaxed: see ObpGrowTable */
    __atomic_store_n(&ObpNames.NameCount, ObpNames.NameCount + 1, __ATOMIC_RELAXED);
    ObpReferenceObjectEx(Directory, 1);
    ObpReferenceObjectEx(Info->Object, 1);
}

/* Returns the directory. Its reference, and the one on the object, now belong to the caller. */
static POBJECT_DIRECTORY ObpUnlinkName(POBJECT_HEADER_NAME_INFO Info)
{
    POBJECT_DIRECTORY Directory = Info->Directory;
    POBJECT_HEADER_NAME_INFO *Link = ObpBucketOf(Info->Hash);
    while (*Link != Info) {
        Link = &(*Link)->HashNext;
    }
    *Link = Info->HashNext;
    RemoveEntryList(&Info->Sibling);
    Info->Directory = NULL;
    __atomic_store_n(&ObpNames.NameCount, ObpNames.NameCount - 1, __ATOMIC_RELAXED);
    return Directory;
}

static VOID ObpMoveNames(POBJECT_HEADER_NAME_INFO *Buckets, ULONG Count)
{
    for (ULONG Index = 0; Index < ObpNames.BucketCount; Index++) {
        POBJECT_HEADER_NAME_INFO Next;
        for (POBJECT_HEADER_NAME_INFO Info = ObpNames.Bucket[Index]; Info != NULL; Info = Next) {
            Next = Info->HashNext;
            Info->HashNext = Buckets[Info->Hash & (Count - 1)];
            Buckets[Info->Hash & (Count - 1)] = Info;
        }
    }
    ObpNames.Bucket = Buckets;
    __atomic_store_n(&ObpNames.BucketCount, Count, __ATOMIC_RELAXED);
}

/* Not locked. Without memory the table stays too small. */
static VOID ObpGrowTable(VOID)
{
    POBJECT_HEADER_NAME_INFO *Old = NULL;
    POBJECT_HEADER_NAME_INFO *New;
    /* relaxed: a hint, checked again under the lock */
    ULONG Count = __atomic_load_n(&ObpNames.BucketCount, __ATOMIC_RELAXED);
    if (__atomic_load_n(&ObpNames.NameCount, __ATOMIC_RELAXED) < 2 * Count || Count >= OBP_MOST_BUCKETS) {
        return;
    }
    New = HalAllocate(4 * Count * sizeof(*New), MEMORY_ALLOCATION_ALIGNMENT);
    if (New == NULL) {
        return;
    }
    PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
    if (ObpNames.BucketCount == Count) {
        Old = ObpNames.Bucket != ObpFewestBuckets ? ObpNames.Bucket : NULL;
        ObpMoveNames(New, 4 * Count);
        New = NULL;
    }
    KiExitLocked(&ObpNames.Lock, Thread);
    HalFree(New);
    HalFree(Old);
}

/* Removes the first component from Rest. TRUE: something follows it, even if only a separator. */
static BOOLEAN ObpTakeComponent(POBP_WALK Walk)
{
    ULONG Length = 0;
    while (Length < Walk->Rest.Length && (Walk->Request->Boundary || Walk->Rest.Text[Length] != OBP_SEPARATOR)) {
        Length++;
    }
    BOOLEAN More = Length < Walk->Rest.Length;
    Walk->Component = (OBP_TEXT){Walk->Rest.Text, Length};
    Walk->Rest.Text += Length + More;
    Walk->Rest.Length -= Length + More;
    return More;
}

/*
 * STATUS_SUCCESS: the path leads to Found or, if that is NULL, to Directory. STATUS_OBJECT_NAME_NOT_FOUND: only the
 * last component, Component, is missing in Directory. STATUS_REPARSE_OBJECT: Found is a link to follow; More of the
 * path comes after it. STATUS_REPARSE: look up Component in the world, where Directory is; More comes after it.
 */
static NTSTATUS ObpWalkPath(POBP_WALK Walk, BOOLEAN *More)
{
    POBP_REQUEST Request = Walk->Request;
    Walk->Found = NULL;
    if (Walk->Rest.Length == 0) {
        return STATUS_SUCCESS;
    }
    for (;;) {
        *More = ObpTakeComponent(Walk);
        if (Walk->Component.Length == 0) {
            return STATUS_OBJECT_NAME_INVALID;
        }
        Walk->Found = ObpFindName(Walk->Directory, Walk->Component, Walk->CaseInsensitive);
        if (Walk->Found == NULL && !Request->Local && ObpIsInWorld(Walk->Directory)) {
            return STATUS_REPARSE;
        }
        if (Walk->Found == NULL) {
            return *More ? STATUS_OBJECT_PATH_NOT_FOUND : STATUS_OBJECT_NAME_NOT_FOUND;
        }
        POBJECT_TYPE Type = ObpHeaderOf(Walk->Found->Object)->Type;
        if (Type == &ObpSymbolicLinkType &&
            (*More || (Request->Type != &ObpSymbolicLinkType && !(Request->Attributes & OBJ_OPENLINK)))) {
            return STATUS_REPARSE_OBJECT;
        }
        if (!*More) {
            return STATUS_SUCCESS;
        }
        if (Type != &ObpDirectoryType) {
            return STATUS_OBJECT_TYPE_MISMATCH;
        }
        Walk->Directory = Walk->Found->Object;
    }
}

BOOLEAN ObpHasLocalName(POBP_WALK Walk)
{
    PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
    BOOLEAN Found = ObpFindName(Walk->Directory, Walk->Component, Walk->CaseInsensitive) != NULL;
    KiExitLocked(&ObpNames.Lock, Thread);
    return Found;
}

static NTSTATUS ObpOpenFound(POBP_REQUEST Request, PVOID Object)
{
    POBJECT_TYPE Type = ObpHeaderOf(Object)->Type;
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status;
    if (Type != Request->Type) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    if (Request->Attributes & Type->InvalidAttributes) {
        return STATUS_INVALID_PARAMETER;
    }
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Object)->NameInfo;
    if ((Request->Attributes & OBJ_EXCLUSIVE) && !(Info != NULL && Info->Exclusive)) {
        return STATUS_INVALID_PARAMETER;
    }
    Status = ObpGrantOpen(Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (NT_SUCCESS(Status) && Request->Handle != NULL) {
        ObpOpenReservedHandle(Request->Handle, Object, Request->Attributes, GrantedAccess);
    }
    return Status;
}

static NTSTATUS ObpEnterName(POBP_WALK Walk)
{
    POBP_REQUEST Request = Walk->Request;
    POBJECT_HEADER_NAME_INFO Info = Walk->FreshName;
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status = ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Walk->Component.Length > Info->Capacity) {
        return STATUS_OBJECT_NAME_INVALID; /* the caller is changing the text */
    }
    Info->Object = Request->NewObject;
    Info->Permanent = (Request->Attributes & OBJ_PERMANENT) != 0;
    Info->Exclusive = (Request->Attributes & OBJ_EXCLUSIVE) != 0;
    ObpHeaderOf(Request->NewObject)->NameInfo = Info;
    ObpLinkName(Info, Walk->Directory, Walk->Component);
    Walk->FreshName = NULL;
    if (Request->Handle != NULL) {
        ObpOpenReservedHandle(Request->Handle, Request->NewObject, Request->Attributes, GrantedAccess);
    }
    return STATUS_SUCCESS;
}

static NTSTATUS ObpFinishWalk(POBP_WALK Walk, NTSTATUS Status)
{
    POBP_REQUEST Request = Walk->Request;
    PVOID Object = Walk->Found != NULL ? Walk->Found->Object : Walk->Directory;
    if (Status == STATUS_OBJECT_NAME_NOT_FOUND && Request->NewObject != NULL) {
        return ObpEnterName(Walk);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Request->NewObject == NULL) {
        return ObpOpenFound(Request, Object);
    }
    if (!(Request->Attributes & OBJ_OPENIF)) {
        return STATUS_OBJECT_NAME_COLLISION;
    }
    Status = ObpOpenFound(Request, Object);
    return NT_SUCCESS(Status) ? STATUS_OBJECT_NAME_EXISTS : Status;
}

/* Not locked, as every function from here on unless it says otherwise. */
NTSTATUS ObpEnterLocalName(POBP_WALK Walk)
{
    PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
    NTSTATUS Status = ObpFinishWalk(Walk, STATUS_OBJECT_NAME_NOT_FOUND);
    KiExitLocked(&ObpNames.Lock, Thread);
    return Status;
}

static NTSTATUS ObpStartWalk(POBP_WALK Walk, POBJECT_DIRECTORY RootDirectory, OBP_TEXT Path)
{
    BOOLEAN Absolute = !Walk->Request->Boundary && Path.Length != 0 && Path.Text[0] == OBP_SEPARATOR;
    if (Absolute != (RootDirectory == NULL)) {
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    }
    Walk->Directory = Absolute ? &ObpRootDirectory.Body : RootDirectory;
    Walk->Rest = (OBP_TEXT){Path.Text + Absolute, Path.Length - Absolute};
    return STATUS_SUCCESS;
}

/* Allocates a name for the new object, with room for the last component of the path. */
static NTSTATUS ObpPrepareName(POBP_WALK Walk)
{
    ULONG Length = 0;
    while (Length < Walk->Rest.Length &&
           (Walk->Request->Boundary || Walk->Rest.Text[Walk->Rest.Length - Length - 1] != OBP_SEPARATOR)) {
        Length++;
    }
    if (Walk->FreshName != NULL && Walk->FreshName->Capacity >= Length) {
        return STATUS_SUCCESS;
    }
    HalFree(Walk->FreshName);
    Walk->FreshName = HalAllocate(sizeof(*Walk->FreshName) + Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Walk->FreshName == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Walk->FreshName->Capacity = (USHORT)Length;
    return STATUS_SUCCESS;
}

NTSTATUS ObpFollowLink(POBP_WALK Walk, OBP_TEXT Target, BOOLEAN More)
{
    ULONG Length = Target.Length + More + Walk->Rest.Length;
    PWCHAR Path;
    if (Walk->Request->Attributes & OBJ_DONT_REPARSE) {
        return STATUS_REPARSE_POINT_ENCOUNTERED;
    }
    if (++Walk->Links > OBP_MOST_LINKS) {
        return STATUS_OBJECT_NAME_NOT_FOUND;
    }
    if (Length > OBP_LONGEST_NAME / sizeof(WCHAR)) {
        return STATUS_NAME_TOO_LONG;
    }
    Path = HalAllocate(Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Path == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    memcpy(Path, Target.Text, Target.Length * sizeof(WCHAR));
    if (More) {
        Path[Target.Length] = OBP_SEPARATOR;
        memcpy(Path + Target.Length + 1, Walk->Rest.Text, Walk->Rest.Length * sizeof(WCHAR));
    }
    HalFree(Walk->Buffer); /* Rest was in it */
    Walk->Buffer = Path;
    return ObpStartWalk(Walk, NULL, (OBP_TEXT){Path, Length});
}

/* STATUS_REPARSE: the walk continues from here. */
static NTSTATUS ObpWalkOnce(POBP_WALK Walk)
{
    PVOID Reached = NULL; /* the link, or the directory in the world */
    BOOLEAN More = FALSE;
    NTSTATUS Status = Walk->Request->NewObject != NULL ? ObpPrepareName(Walk) : STATUS_SUCCESS;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
    Status = ObpWalkPath(Walk, &More);
    if (Status == STATUS_REPARSE_OBJECT || Status == STATUS_REPARSE) {
        Reached = Status == STATUS_REPARSE ? (PVOID)Walk->Directory : Walk->Found->Object;
        ObpReferenceObjectEx(Reached, 1);
    } else {
        Status = ObpFinishWalk(Walk, Status);
    }
    KiExitLocked(&ObpNames.Lock, Thread);
    if (Status == STATUS_REPARSE_OBJECT) {
        POBJECT_SYMBOLIC_LINK Link = Reached;
        Status = ObpFollowLink(Walk, (OBP_TEXT){Link->Target, Link->Length}, More);
        Status = NT_SUCCESS(Status) ? STATUS_REPARSE : Status;
    } else if (Reached != NULL) {
        Status = ObpWalkInWorld(Walk, More);
    }
    if (Reached != NULL) {
        ObpDereferenceObjectEx(Reached, 1);
    }
    return Status;
}

NTSTATUS ObpResolveName(POBP_REQUEST Request, PVOID RootDirectory, PCUNICODE_STRING Name)
{
    OBP_WALK Walk = {.Request = Request};
    NTSTATUS Status;
    if (RootDirectory != NULL && ObpHeaderOf(RootDirectory)->Type != &ObpDirectoryType) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    Walk.CaseInsensitive =
        !Request->Boundary && (Request->Type->CaseInsensitive || (Request->Attributes & OBJ_CASE_INSENSITIVE));
    Status = ObpStartWalk(&Walk, RootDirectory, (OBP_TEXT){Name->Buffer, Name->Length / sizeof(WCHAR)});
    if (NT_SUCCESS(Status) && Request->NewObject != NULL) {
        ObpGrowTable();
    }
    if (NT_SUCCESS(Status)) {
        do {
            Status = ObpWalkOnce(&Walk);
        } while (Status == STATUS_REPARSE);
    }
    ObpLeaveWorld(&Walk);
    HalFree(Walk.FreshName);
    HalFree(Walk.Buffer);
    return Status;
}

/* Locked. Removes the name if nothing keeps it; then returns its directory, with a reference for the caller. */
static POBJECT_DIRECTORY ObpUnlinkUnused(POBJECT_HEADER Header)
{
    POBJECT_HEADER_NAME_INFO Info = Header->NameInfo;
    if (Info->Directory == NULL || Info->Permanent ||
        ObpHandlesOf(__atomic_load_n(&Header->HandleCount, __ATOMIC_RELAXED)) != 0) {
        return NULL;
    }
    return ObpUnlinkName(Info);
}

LONG_PTR ObpCloseNamedHandle(PVOID Object, BOOLEAN *Unlinked)
{
    PKTHREAD Thread;
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_DIRECTORY Directory;
    LONG_PTR HandlesLeft;
    Thread = KiEnterLocked(&ObpNames.Lock);
    /* acquire: with OBP_SHARED comes the share */
    HandlesLeft = __atomic_sub_fetch(&Header->HandleCount, 1, __ATOMIC_ACQUIRE);
    Directory = ObpUnlinkUnused(Header);
    KiExitLocked(&ObpNames.Lock, Thread);
    *Unlinked = Directory != NULL;
    if (Directory != NULL) {
        ObpDereferenceObjectEx(Directory, 1);
    }
    return HandlesLeft;
}

VOID ObpSetPermanent(PVOID Object, BOOLEAN Permanent)
{
    PKTHREAD Thread;
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_DIRECTORY Directory;
    if (ObpSetPermanentInWorld(Object, Permanent)) {
        return;
    }
    Thread = KiEnterLocked(&ObpNames.Lock);
    Header->NameInfo->Permanent = Permanent;
    Directory = ObpUnlinkUnused(Header);
    KiExitLocked(&ObpNames.Lock, Thread);
    if (Directory != NULL) {
        ObpDereferenceObjectEx(Directory, 1);
        ObpDereferenceObjectEx(Object, 1);
    }
}

/* Makes every local object temporary, so that those without handles are freed. */
VOID ObpEndPermanence(VOID)
{
    for (ULONG Index = 0; Index < ObpNames.BucketCount;) {
        POBJECT_DIRECTORY Directory = NULL;
        POBJECT_HEADER_NAME_INFO Info;
        PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
        for (Info = ObpNames.Bucket[Index]; Info != NULL && !Info->Permanent; Info = Info->HashNext) {
        }
        PVOID Object = Info != NULL ? Info->Object : NULL;
        if (Info != NULL) {
            Info->Permanent = FALSE;
            Directory = ObpUnlinkUnused(ObpHeaderOf(Object));
        }
        KiExitLocked(&ObpNames.Lock, Thread);
        if (Directory != NULL) {
            ObpDereferenceObjectEx(Directory, 1);
            ObpDereferenceObjectEx(Object, 1);
        }
        Index += Object == NULL;
    }
    if (ObpNames.NameCount == 0 && ObpNames.Bucket != ObpFewestBuckets) {
        HalFree(ObpNames.Bucket);
        ObpNames.Bucket = ObpFewestBuckets;
        ObpNames.BucketCount = OBP_FEWEST_BUCKETS;
    }
}

VOID ObpRemoveName(PVOID Object)
{
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Object)->NameInfo;
    POBJECT_DIRECTORY Directory = NULL;
    if (Info == NULL || ObpRemoveNameInWorld(Object)) {
        return;
    }
    PKTHREAD Thread = KiEnterLocked(&ObpNames.Lock);
    if (Info->Directory != NULL) {
        Directory = ObpUnlinkName(Info);
    }
    KiExitLocked(&ObpNames.Lock, Thread);
    if (Directory != NULL) {
        ObpDereferenceObjectEx(Directory, 1);
        ObpDereferenceObjectEx(Object, 1);
    }
}

VOID ObMakeTemporaryObject(PVOID Object)
{
    if (ObpHeaderOf(Object)->NameInfo != NULL) {
        ObpSetPermanent(Object, FALSE);
    }
}

ULONG ObpQueryNameAttributes(PVOID Object)
{
    PKTHREAD Thread;
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Object)->NameInfo;
    ULONG Attributes;
    if (ObpQueryAttributesInWorld(Object, &Attributes)) {
        return Attributes;
    }
    Thread = KiEnterLocked(&ObpNames.Lock);
    Attributes = (Info->Permanent ? OBJ_PERMANENT : 0) | (Info->Exclusive ? OBJ_EXCLUSIVE : 0);
    KiExitLocked(&ObpNames.Lock, Thread);
    return Attributes;
}

/* Locked. The name of the directory; NULL: it is the root, or has lost its name. */
static POBJECT_HEADER_NAME_INFO ObpParentName(POBJECT_HEADER_NAME_INFO Info)
{
    POBJECT_HEADER_NAME_INFO Parent = ObpHeaderOf(Info->Directory)->NameInfo;
    return Parent != NULL && Parent->Directory != NULL ? Parent : NULL;
}

/* Locked. FALSE: the path exceeds Capacity; else it is written, from its end backwards. The path below a directory that
   has lost its name begins with dots. */
static BOOLEAN ObpWritePath(POBJECT_HEADER_NAME_INFO First, PWCHAR Path, ULONG Capacity, PULONG PathLength)
{
    POBJECT_HEADER_NAME_INFO Last = First;
    ULONG Length = 0;
    for (POBJECT_HEADER_NAME_INFO Info = First; Info != NULL; Info = ObpParentName(Info)) {
        Length += 1u + Info->Length;
        Last = Info;
    }
    Length += Last->Directory != &ObpRootDirectory.Body ? OBP_DOTS : 0;
    *PathLength = Length;
    if (Length > Capacity) {
        return FALSE;
    }
    for (POBJECT_HEADER_NAME_INFO Info = First; Info != NULL; Info = ObpParentName(Info)) {
        Length -= Info->Length;
        memcpy(Path + Length, Info->Name, Info->Length * sizeof(WCHAR));
        Path[--Length] = OBP_SEPARATOR;
    }
    while (Length != 0) {
        Path[--Length] = u'.';
    }
    return TRUE;
}

BOOLEAN ObpQueryPath(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length)
{
    PKTHREAD Thread;
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Object)->NameInfo;
    BOOLEAN Fits;
    *Length = 0;
    if (Object == &ObpRootDirectory.Body) {
        *Length = 1;
        if (Capacity != 0) {
            Path[0] = OBP_SEPARATOR;
        }
        return Capacity != 0;
    }
    if (Info == NULL) {
        return TRUE;
    }
    if (ObpQueryPathInWorld(Object, Path, Capacity, Length, &Fits)) {
        return Fits;
    }
    Thread = KiEnterLocked(&ObpNames.Lock);
    Fits = Info->Directory == NULL || ObpWritePath(Info, Path, Capacity, Length);
    KiExitLocked(&ObpNames.Lock, Thread);
    return Fits;
}

NTSTATUS ObQueryNameString(PVOID Object, POBJECT_NAME_INFORMATION ObjectNameInfo, ULONG Length, PULONG ReturnLength)
{
    ULONG Room = Length >= sizeof(*ObjectNameInfo) ? (Length - sizeof(*ObjectNameInfo)) / sizeof(WCHAR) : 0;
    ULONG Characters;
    BOOLEAN Fits = ObpQueryPath(Object, Room != 0 ? (PWCHAR)(ObjectNameInfo + 1) : NULL, Room != 0 ? Room - 1 : 0,
                                &Characters);
    *ReturnLength = (ULONG)sizeof(*ObjectNameInfo) + (Characters != 0 ? (Characters + 1) * (ULONG)sizeof(WCHAR) : 0);
    if (Characters > UNICODE_STRING_MAX_CHARS - 1) {
        return STATUS_NAME_TOO_LONG;
    }
    if (!Fits || Length < *ReturnLength) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    memset(ObjectNameInfo, 0, sizeof(*ObjectNameInfo));
    if (Characters != 0) {
        ObjectNameInfo->Name.Buffer = (PWCHAR)(ObjectNameInfo + 1);
        ObjectNameInfo->Name.Buffer[Characters] = 0;
        ObjectNameInfo->Name.Length = (USHORT)(Characters * sizeof(WCHAR));
        ObjectNameInfo->Name.MaximumLength = ObjectNameInfo->Name.Length + (USHORT)sizeof(WCHAR);
    }
    return STATUS_SUCCESS;
}

VOID ObpVisitEntries(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context)
{
    PKTHREAD Thread;
    PLIST_ENTRY Entry;
    Thread = KiEnterLocked(&ObpNames.Lock);
    for (Entry = Directory->Entries.Flink; Entry != &Directory->Entries; Entry = Entry->Flink) {
        POBJECT_HEADER_NAME_INFO Info = CONTAINING_RECORD(Entry, OBJECT_HEADER_NAME_INFO, Sibling);
        UNICODE_STRING Name = {(USHORT)(Info->Length * sizeof(WCHAR)), (USHORT)(Info->Length * sizeof(WCHAR)),
                               Info->Name};
        if (Start != 0) {
            Start -= 1;
        } else if (!Visit(&Name, ObpHeaderOf(Info->Object)->Type, Context)) {
            break;
        }
    }
    BOOLEAN Through = Entry == &Directory->Entries;
    KiExitLocked(&ObpNames.Lock, Thread);
    if (Through) {
        ObpVisitEntriesInWorld(Directory, Start, Visit, Context);
    }
}
