/* namespace.c: finding, entering and taking away names. Theory in namespace.h. */
#include "namespace.h"

#include "upcase.h"

#include "../ke/debugdata.h"

#define OBP_FEWEST_BUCKETS 64
#define OBP_MOST_BUCKETS (1u << 20)
#define OBP_LONGEST_PATH (UNICODE_STRING_MAX_CHARS)
#define OBP_MOST_LINKS 32
#define OBP_DOTS 3

static POBJECT_HEADER_NAME_INFO ObpFewestBuckets[OBP_FEWEST_BUCKETS];

/* Guarded by Lock; the counts are also looked at without it. */
static struct {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG BucketCount; /* a power of 2 */
    volatile ULONG NameCount;
    POBJECT_HEADER_NAME_INFO *Bucket;
} ObpNames = {.BucketCount = OBP_FEWEST_BUCKETS, .Bucket = ObpFewestBuckets};

/* The directory that every path begins at; it has no name, and is never deleted. */
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

static VOID ObpLockNames(PKTHREAD Thread)
{
    KiEnterDispatcher(Thread);
    KiAcquireLock(&ObpNames.Lock);
}

static VOID ObpUnlockNames(PKTHREAD Thread)
{
    KiReleaseLock(&ObpNames.Lock);
    KiExitDispatcher(Thread);
}

/* One component of a path, or what is left of one. */
typedef struct _OBP_TEXT {
    PCWCH Text;
    ULONG Length; /* in characters */
} OBP_TEXT;

static ULONG ObpHashName(POBJECT_DIRECTORY Directory, OBP_TEXT Name)
{
    ULONG64 Hash = (ULONG_PTR)Directory >> 4;
    for (ULONG Index = 0; Index < Name.Length; Index++) {
        Hash = (Hash ^ ObpUpcase(Name.Text[Index])) * 0x9E3779B97F4A7C15ull;
        Hash ^= Hash >> 32;
    }
    return (ULONG)Hash;
}

static POBJECT_HEADER_NAME_INFO *ObpBucketOf(ULONG Hash)
{
    return &ObpNames.Bucket[Hash & (ObpNames.BucketCount - 1)];
}

/* With the names locked, as everything from here on that does not lock them itself. */
static POBJECT_HEADER_NAME_INFO ObpFindName(POBJECT_DIRECTORY Directory, OBP_TEXT Name, BOOLEAN CaseInsensitive)
{
    ULONG Hash = ObpHashName(Directory, Name);
    POBJECT_HEADER_NAME_INFO Info = *ObpBucketOf(Hash);
    while (Info != NULL &&
           (Info->Hash != Hash || Info->Directory != Directory ||
            ObpCompareStrings(Info->Name, Info->Length, Name.Text, Name.Length, CaseInsensitive) != 0)) {
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

/* Returns the directory, the reference on which is the caller's now, as is the one on the object. */
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

/* Not locked. A table that has become too small stays as it is when there is no memory for another. */
static VOID ObpGrowTable(PKTHREAD Thread)
{
    POBJECT_HEADER_NAME_INFO *Old = NULL;
    POBJECT_HEADER_NAME_INFO *New;
    /* relaxed: a guess, looked at again under the lock */
    ULONG Count = __atomic_load_n(&ObpNames.BucketCount, __ATOMIC_RELAXED);
    if (__atomic_load_n(&ObpNames.NameCount, __ATOMIC_RELAXED) < 2 * Count || Count >= OBP_MOST_BUCKETS) {
        return;
    }
    New = HalAllocate(4 * Count * sizeof(*New), MEMORY_ALLOCATION_ALIGNMENT);
    if (New == NULL) {
        return;
    }
    ObpLockNames(Thread);
    if (ObpNames.BucketCount == Count) {
        Old = ObpNames.Bucket != ObpFewestBuckets ? ObpNames.Bucket : NULL;
        ObpMoveNames(New, 4 * Count);
        New = NULL;
    }
    ObpUnlockNames(Thread);
    HalFree(New);
    HalFree(Old);
}

/*
 * A path on its way through the directories. Directory and Rest move on together; Buffer is what the last symbolic link
 * made of the path.
 */
typedef struct _OBP_WALK {
    POBP_REQUEST Request;
    POBJECT_DIRECTORY Directory;
    OBP_TEXT Rest;                      /* from Directory on, without the separator; empty: Directory itself is meant */
    OBP_TEXT Component;                 /* the one that was looked at last */
    POBJECT_HEADER_NAME_INFO Found;     /* NULL: there is none */
    PWCHAR Buffer;
    POBJECT_HEADER_NAME_INFO FreshName; /* for NewObject, with room for the last component */
    BOOLEAN CaseInsensitive;
    ULONG Links;
} OBP_WALK, *POBP_WALK;

/* Takes the first component off Rest. More: something follows it, if only a separator. */
static BOOLEAN ObpTakeComponent(POBP_WALK Walk)
{
    ULONG Length = 0;
    while (Length < Walk->Rest.Length && Walk->Rest.Text[Length] != OBP_SEPARATOR) {
        Length++;
    }
    BOOLEAN More = Length < Walk->Rest.Length;
    Walk->Component = (OBP_TEXT){Walk->Rest.Text, Length};
    Walk->Rest.Text += Length + More;
    Walk->Rest.Length -= Length + More;
    return More;
}

static BOOLEAN ObpLeadsOn(POBP_WALK Walk, POBJECT_TYPE Type, BOOLEAN More)
{
    return Type == &ObpSymbolicLinkType &&
           (More || (Walk->Request->Type != &ObpSymbolicLinkType && !(Walk->Request->Attributes & OBJ_OPENLINK)));
}

/*
 * STATUS_SUCCESS: Found, or if that is NULL, Directory is what the path leads to. STATUS_OBJECT_NAME_NOT_FOUND: only
 * the last component, Component, is missing in Directory. STATUS_REPARSE_OBJECT: Found is a link to be followed, before
 * More of the path.
 */
static NTSTATUS ObpWalkPath(POBP_WALK Walk, BOOLEAN *More)
{
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
        if (Walk->Found == NULL) {
            return *More ? STATUS_OBJECT_PATH_NOT_FOUND : STATUS_OBJECT_NAME_NOT_FOUND;
        }
        POBJECT_TYPE Type = ObpHeaderOf(Walk->Found->Object)->Type;
        if (ObpLeadsOn(Walk, Type, *More)) {
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

static NTSTATUS ObpCheckExclusive(POBP_REQUEST Request, POBJECT_HEADER_NAME_INFO Info)
{
    if ((Request->Attributes & OBJ_EXCLUSIVE) && !(Info != NULL && Info->Exclusive)) {
        return STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
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
    Status = ObpCheckExclusive(Request, ObpHeaderOf(Object)->NameInfo);
    if (NT_SUCCESS(Status)) {
        Status = ObpGrantAccess(Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    }
    if (NT_SUCCESS(Status) && Request->Handle != NULL) {
        ObpOpenReservedHandle(Request->Handle, Object, Request->Attributes, GrantedAccess);
    }
    return Status;
}

static NTSTATUS ObpEnter(POBP_WALK Walk)
{
    POBP_REQUEST Request = Walk->Request;
    POBJECT_HEADER_NAME_INFO Info = Walk->FreshName;
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status = ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Walk->Component.Length > Info->Capacity) {
        return STATUS_OBJECT_NAME_INVALID; /* the caller changes the text meanwhile */
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
        return ObpEnter(Walk);
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

/* Not locked, as everything from here on that does not say otherwise. */
static NTSTATUS ObpStartWalk(POBP_WALK Walk, POBJECT_DIRECTORY RootDirectory, OBP_TEXT Path)
{
    BOOLEAN Absolute = Path.Length != 0 && Path.Text[0] == OBP_SEPARATOR;
    if (Absolute != (RootDirectory == NULL)) {
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    }
    Walk->Directory = Absolute ? &ObpRootDirectory.Body : RootDirectory;
    Walk->Rest = (OBP_TEXT){Path.Text + Absolute, Path.Length - Absolute};
    return STATUS_SUCCESS;
}

/* A name for the new object that has room for the last component of the path. */
static NTSTATUS ObpPrepareName(POBP_WALK Walk)
{
    ULONG Length = 0;
    while (Length < Walk->Rest.Length && Walk->Rest.Text[Walk->Rest.Length - Length - 1] != OBP_SEPARATOR) {
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

/* The walk starts over with the link's target in place of what led to it. Link is a reference of the caller's. */
static NTSTATUS ObpFollowLink(POBP_WALK Walk, POBJECT_SYMBOLIC_LINK Link, BOOLEAN More)
{
    ULONG Length = Link->Length + More + Walk->Rest.Length;
    PWCHAR Path;
    if (Walk->Request->Attributes & OBJ_DONT_REPARSE) {
        return STATUS_REPARSE_POINT_ENCOUNTERED;
    }
    if (++Walk->Links > OBP_MOST_LINKS) {
        return STATUS_OBJECT_NAME_NOT_FOUND;
    }
    if (Length > OBP_LONGEST_PATH) {
        return STATUS_NAME_TOO_LONG;
    }
    Path = HalAllocate(Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Path == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    memcpy(Path, Link->Target, Link->Length * sizeof(WCHAR));
    if (More) {
        Path[Link->Length] = OBP_SEPARATOR;
        memcpy(Path + Link->Length + 1, Walk->Rest.Text, Walk->Rest.Length * sizeof(WCHAR));
    }
    HalFree(Walk->Buffer); /* Rest was in it */
    Walk->Buffer = Path;
    return ObpStartWalk(Walk, NULL, (OBP_TEXT){Path, Length});
}

/* As far as the first link. STATUS_REPARSE_OBJECT: *Link, with a reference, is to be followed. */
static NTSTATUS ObpWalkOnce(POBP_WALK Walk, PKTHREAD Thread, PVOID *Link, BOOLEAN *More)
{
    NTSTATUS Status;
    ObpLockNames(Thread);
    Status = ObpWalkPath(Walk, More);
    if (Status == STATUS_REPARSE_OBJECT) {
        *Link = Walk->Found->Object;
        ObpReferenceObjectEx(*Link, 1);
    } else {
        Status = ObpFinishWalk(Walk, Status);
    }
    ObpUnlockNames(Thread);
    return Status;
}

static NTSTATUS ObpWalkAndFollow(POBP_WALK Walk)
{
    PKTHREAD Thread = KiCurrentThread();
    for (;;) {
        PVOID Link = NULL;
        BOOLEAN More = FALSE;
        NTSTATUS Status = Walk->Request->NewObject != NULL ? ObpPrepareName(Walk) : STATUS_SUCCESS;
        if (NT_SUCCESS(Status)) {
            Status = ObpWalkOnce(Walk, Thread, &Link, &More);
        }
        if (Status != STATUS_REPARSE_OBJECT) {
            return Status;
        }
        Status = ObpFollowLink(Walk, Link, More);
        ObpDereferenceObjectEx(Link, 1);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
    }
}

NTSTATUS ObpResolveName(POBP_REQUEST Request, PVOID RootDirectory, PCUNICODE_STRING Name)
{
    OBP_WALK Walk = {.Request = Request};
    NTSTATUS Status;
    if (RootDirectory != NULL && ObpHeaderOf(RootDirectory)->Type != &ObpDirectoryType) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    Walk.CaseInsensitive = Request->Type->CaseInsensitive || (Request->Attributes & OBJ_CASE_INSENSITIVE);
    Status = ObpStartWalk(&Walk, RootDirectory, (OBP_TEXT){Name->Buffer, Name->Length / sizeof(WCHAR)});
    if (NT_SUCCESS(Status) && Request->NewObject != NULL) {
        ObpGrowTable(KiCurrentThread());
    }
    if (NT_SUCCESS(Status)) {
        Status = ObpWalkAndFollow(&Walk);
    }
    HalFree(Walk.FreshName);
    HalFree(Walk.Buffer);
    return Status;
}

/* Locked. Whether the name had to go, and then the directory whose reference is the caller's. */
static POBJECT_DIRECTORY ObpTakeNameIfUnused(POBJECT_HEADER Header)
{
    POBJECT_HEADER_NAME_INFO Info = Header->NameInfo;
    if (Info->Directory == NULL || Info->Permanent || __atomic_load_n(&Header->HandleCount, __ATOMIC_RELAXED) != 0) {
        return NULL;
    }
    return ObpUnlinkName(Info);
}

LONG_PTR ObpCloseNamedHandle(PVOID Object, BOOLEAN *Unlinked)
{
    PKTHREAD Thread = KiCurrentThread();
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_DIRECTORY Directory;
    LONG_PTR HandlesLeft;
    ObpLockNames(Thread);
    HandlesLeft = __atomic_sub_fetch(&Header->HandleCount, 1, __ATOMIC_RELAXED);
    Directory = ObpTakeNameIfUnused(Header);
    ObpUnlockNames(Thread);
    *Unlinked = Directory != NULL;
    if (Directory != NULL) {
        ObpDereferenceObjectEx(Directory, 1);
    }
    return HandlesLeft;
}

VOID ObpSetPermanent(PVOID Object, BOOLEAN Permanent)
{
    PKTHREAD Thread = KiCurrentThread();
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_DIRECTORY Directory;
    ObpLockNames(Thread);
    Header->NameInfo->Permanent = Permanent;
    Directory = ObpTakeNameIfUnused(Header);
    ObpUnlockNames(Thread);
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
    PKTHREAD Thread = KiCurrentThread();
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Object)->NameInfo;
    ULONG Attributes;
    ObpLockNames(Thread);
    Attributes = (Info->Permanent ? OBJ_PERMANENT : 0) | (Info->Exclusive ? OBJ_EXCLUSIVE : 0);
    ObpUnlockNames(Thread);
    return Attributes;
}

/* Locked. The name of what Info's object is in, or NULL: that is the root, or has lost its name. */
static POBJECT_HEADER_NAME_INFO ObpParentName(POBJECT_HEADER_NAME_INFO Info)
{
    POBJECT_HEADER_NAME_INFO Parent = ObpHeaderOf(Info->Directory)->NameInfo;
    return Parent != NULL && Parent->Directory != NULL ? Parent : NULL;
}

/* Locked. A path that begins in a directory that has lost its name begins with dots. */
static ULONG ObpPathLength(POBJECT_HEADER_NAME_INFO Info)
{
    ULONG Length = 0;
    for (;;) {
        POBJECT_HEADER_NAME_INFO Parent = ObpParentName(Info);
        Length += 1u + Info->Length;
        if (Parent == NULL) {
            return Info->Directory == &ObpRootDirectory.Body ? Length : Length + OBP_DOTS;
        }
        Info = Parent;
    }
}

/* Locked. Writes backwards from the end of Path, which has room. */
static VOID ObpWritePath(POBJECT_HEADER_NAME_INFO Info, PWCHAR Path, ULONG Length)
{
    while (Info != NULL) {
        Length -= Info->Length;
        memcpy(Path + Length, Info->Name, Info->Length * sizeof(WCHAR));
        Path[--Length] = OBP_SEPARATOR;
        Info = ObpParentName(Info);
    }
    while (Length != 0) {
        Path[--Length] = u'.';
    }
}

BOOLEAN ObpQueryPath(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length)
{
    PKTHREAD Thread = KiCurrentThread();
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
    ObpLockNames(Thread);
    if (Info->Directory != NULL) {
        *Length = ObpPathLength(Info);
    }
    Fits = *Length <= Capacity;
    if (Fits && *Length != 0) {
        ObpWritePath(Info, Path, *Length);
    }
    ObpUnlockNames(Thread);
    return Fits;
}

VOID ObpVisitEntries(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context)
{
    PKTHREAD Thread = KiCurrentThread();
    PLIST_ENTRY Entry;
    ObpLockNames(Thread);
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
    ObpUnlockNames(Thread);
}
