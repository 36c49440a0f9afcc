/* share.c: objects that processes share: their proxies, and their names in the world. The theory is in share.h. */
#include "share.h"

/* Proxies. */

#define OBP_SHARE_BUCKETS 16384

static KI_LOCK ObpShareLock;
static POBP_SHARE ObpShareTable[OBP_SHARE_BUCKETS]; /* guarded by it; untouched pages take no memory */

PKTHREAD ObpLockShares(VOID)
{
    return KiEnterLocked(&ObpShareLock);
}

VOID ObpUnlockShares(PKTHREAD Thread)
{
    KiExitLocked(&ObpShareLock, Thread);
}

/* The worlds. */

NTSTATUS ObpOpenWorld(WO_SCOPE Scope, PWO_VIEW *View)
{
    static volatile BOOLEAN Told;
    NTSTATUS Status = WoOpenView(Scope, View);
    if (Status == STATUS_NOT_SUPPORTED && KiVerifierEnabled) {
        PCSTR Session = HalGetEnvironment("INTERLOCK_SESSION");
        BOOLEAN Wanted = Session != NULL && strcmp(Session, "private") == 0;
        if (!Wanted && !__atomic_exchange_n(&Told, TRUE, __ATOMIC_RELAXED)) { /* relaxed: reported once, publishes nothing */
            HalPrint("interlock: the host refuses shared memory: names stay in this process\n");
        }
    }
    return Status;
}

/* The table. With the shares locked, as every function up to ObpEndShare. */

static POBP_SHARE *ObpShareBucket(PWO_VIEW View, WO_INDEX Index)
{
    ULONG64 Hash = ((ULONG_PTR)View >> 6) + Index * 0x9E3779B97F4A7C15ull;
    return &ObpShareTable[(Hash >> 32) % OBP_SHARE_BUCKETS];
}

/* Where the share is linked; *result is NULL if it is not. */
static POBP_SHARE *ObpFindShare(PWO_VIEW View, WO_INDEX Index)
{
    POBP_SHARE *Link = ObpShareBucket(View, Index);
    while (*Link != NULL && ((*Link)->Outside.View != View || (*Link)->Outside.Index != Index)) {
        Link = &(*Link)->HashNext;
    }
    return Link;
}

static VOID ObpListShare(POBP_SHARE Share)
{
    POBP_SHARE *Bucket = ObpShareBucket(ObpViewOf(Share), Share->Outside.Index);
    Share->HashNext = *Bucket;
    Share->Listed = TRUE;
    *Bucket = Share;
}

static VOID ObpUnlistShare(POBP_SHARE *Link)
{
    (*Link)->Listed = FALSE;
    *Link = (*Link)->HashNext;
}

VOID ObpReturnRecord(PWO_VIEW View, WO_INDEX Index)
{
    if (*ObpFindShare(View, Index) == NULL) {
        WoDereferenceObject(View, Index);
    }
}

static const UCHAR ObpKernelTypes[] = {
    [WoNotificationEvent] = EventNotificationObject,
    [WoSynchronizationEvent] = EventSynchronizationObject,
    [WoSemaphore] = SemaphoreObject,
    [WoMutant] = MutantObject,
    [WoNotificationTimer] = TimerNotificationObject,
    [WoSynchronizationTimer] = TimerSynchronizationObject,
};

static VOID ObpRepresent(PVOID Candidate, POBP_SHARE Share, WO_TYPE Kind)
{
    POBJECT_TYPE Type = ObpHeaderOf(Candidate)->Type;
    if (!ObpIsAlwaysSignaled(Candidate)) {
        KiMakeOutside(ObpDispatcherObject(Candidate), ObpKernelTypes[Kind], &Share->Outside);
    }
    if (Type->Sharing->Represent != NULL) {
        Type->Sharing->Represent(Candidate, Share);
    }
    /* relaxed: no other thread knows the candidate */
    __atomic_store_n(&ObpHeaderOf(Candidate)->HandleCount, OBP_SHARED, __ATOMIC_RELAXED);
}

PVOID ObpProxyOf(PWO_VIEW View, WO_INDEX Index, WO_TYPE Kind, PVOID Candidate)
{
    POBP_SHARE *Link = ObpFindShare(View, Index);
    POBP_SHARE Share = ObpShareOf(Candidate);
    if (*Link != NULL) {
        if (ObReferenceObjectSafe((*Link)->Object)) {
            return (*Link)->Object;
        }
        ObpUnlistShare(Link);
    }
    Share->Outside = (KI_OUTSIDE){View, Index};
    Share->Object = Candidate;
    ObpRepresent(Candidate, Share, Kind);
    ObpListShare(Share);
    return Candidate;
}

BOOLEAN ObpHasProxy(PWO_VIEW View, WO_INDEX Index)
{
    POBP_SHARE Share = *ObpFindShare(View, Index);
    /* relaxed: it is not followed */
    return Share != NULL && __atomic_load_n(&ObpHeaderOf(Share->Object)->PointerCount, __ATOMIC_RELAXED) > 0;
}

/* Not locked, as every function from here on unless it says otherwise. */
static VOID ObpEndShare(POBP_SHARE Share)
{
    PKTHREAD Thread = ObpLockShares();
    if (Share->Listed) {
        ObpUnlistShare(ObpFindShare(ObpViewOf(Share), Share->Outside.Index));
        WoDereferenceObject(ObpViewOf(Share), Share->Outside.Index);
    }
    ObpUnlockShares(Thread);
}

static VOID ObpInitializeShares(VOID)
{
    ObpEndShareRoutine = ObpEndShare;
}
KI_INITIALIZER(KiInitializeObjects, ObpInitializeShares);

VOID ObpChangeSharedHandles(PVOID Object, LONG Change)
{
    POBP_SHARE Share = ObpShareOf(Object);
    WoChangeHandles(ObpViewOf(Share), Share->Outside.Index, Change); /* fails only in a world that is lost */
}

/* Proxies. */

static POBJECT_HEADER_NAME_INFO ObpBuildShare(PVOID Object, ULONG NameCapacity)
{
    POBJECT_HEADER_NAME_INFO Info =
        HalAllocate(sizeof(*Info) + NameCapacity * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    POBP_SHARE Share = HalAllocate(sizeof(*Share), MEMORY_ALLOCATION_ALIGNMENT);
    if (Info == NULL || Share == NULL) {
        HalFree(Info);
        HalFree(Share);
        return NULL;
    }
    Info->Object = Object;
    Info->Capacity = (USHORT)NameCapacity;
    Info->Share = Share;
    return Info;
}

PVOID ObpBuildProxy(POBJECT_TYPE Type, SIZE_T BodySize, ULONG NameCapacity)
{
    PVOID Proxy = ObpCreateObject(Type, BodySize);
    POBJECT_HEADER_NAME_INFO Info = Proxy != NULL ? ObpBuildShare(Proxy, NameCapacity) : NULL;
    if (Info == NULL) {
        if (Proxy != NULL) {
            ObpDiscardObject(Proxy);
        }
        return NULL;
    }
    ObpHeaderOf(Proxy)->NameInfo = Info;
    return Proxy;
}

VOID ObpDiscardProxy(PVOID Proxy)
{
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Proxy)->NameInfo;
    HalFree(Info->Share);
    HalFree(Info);
    ObpDiscardObject(Proxy);
}

/* Local objects that become shared. */

static WO_TYPE ObpKindOf(PDISPATCHER_HEADER Header)
{
    UCHAR Type = KI_TYPE(KiReadHeader(Header));
    ULONG Kind = WoNotificationEvent;
    while (Kind < RTL_NUMBER_OF(ObpKernelTypes) && ObpKernelTypes[Kind] != Type) {
        Kind += 1;
    }
    return (WO_TYPE)Kind;
}

/* With the shares locked. Counts the existing handles; later ones see OBP_SHARED. */
static VOID ObpPublishShare(PVOID Object, POBJECT_HEADER_NAME_INFO Info)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBP_SHARE Share = Info->Share;
    LONG_PTR Handles;
    if (Header->NameInfo != NULL) {
        __atomic_store_n(&Header->NameInfo->Share, Share, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&Header->NameInfo, Info, __ATOMIC_RELEASE);
    }
    ObpListShare(Share);
    /* release: a handle that opens or closes afterwards finds the share */
    Handles = __atomic_fetch_or(&Header->HandleCount, OBP_SHARED, __ATOMIC_ACQ_REL);
    WoChangeHandles(ObpViewOf(Share), Share->Outside.Index, (LONG)Handles);
}

/* With the shares locked. */
static NTSTATUS ObpMoveToWorld(PVOID Object, PWO_VIEW View, POBJECT_HEADER_NAME_INFO Info)
{
    PDISPATCHER_HEADER Header = ObpDispatcherObject(Object);
    WO_NEW New = {.Type = ObpKindOf(Header), .State = 1, .Limit = MAXLONG};
    POBP_SHARE Share = Info->Share;
    WO_INDEX Index;
    NTSTATUS Status = WoCreateObject(View, &New, &Index);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Share->Outside = (KI_OUTSIDE){View, Index};
    Share->Object = Object;
    Status = KiMoveOutside(Header, &Share->Outside);
    if (NT_SUCCESS(Status)) {
        ObpPublishShare(Object, Info);
    } else {
        WoDereferenceObject(View, Index);
    }
    return Status;
}

NTSTATUS ObpShareObject(PVOID Object, POBP_SHARE *Share)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_HEADER_NAME_INFO Info;
    PWO_VIEW View;
    NTSTATUS Status;
    *Share = ObpShareOf(Object);
    if (*Share != NULL) {
        return STATUS_SUCCESS;
    }
    if (Header->Type->Sharing == NULL || ObpIsAlwaysSignaled(Object)) {
        return STATUS_NOT_SUPPORTED;
    }
    Status = ObpOpenWorld(WoLocal, &View);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Info = ObpBuildShare(Object, 0);
    if (Info == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    PKTHREAD Thread = ObpLockShares();
    Status = ObpShareOf(Object) == NULL ? ObpMoveToWorld(Object, View, Info) : STATUS_SUCCESS;
    *Share = ObpShareOf(Object);
    ObpUnlockShares(Thread);
    if (*Share != Info->Share) {
        HalFree(Info->Share);
    }
    if (ObpHeaderOf(Object)->NameInfo != Info) {
        HalFree(Info);
    }
    return Status;
}

/*
 * Names in the world: lookups, creation, listing. Everything of a component is done in one step with the
 * shares locked: so a name that is found leads to a proxy whose record and handle are already counted, and what is
 * undone because it does not fit was never visible to another thread.
 */

#define OBP_LOCAL_ROOT u"\\BaseNamedObjects"
#define OBP_MACHINE_ROOT u"\\Sessions\\Machine"
#define OBP_ROOT_ROOM 24 /* characters: either of them, and a separator */

C_ASSERT(sizeof(OBP_LOCAL_ROOT) / sizeof(WCHAR) <= OBP_ROOT_ROOM && sizeof(OBP_MACHINE_ROOT) / sizeof(WCHAR) <= OBP_ROOT_ROOM);

/* Directories. */

BOOLEAN ObpIsInWorld(POBJECT_DIRECTORY Directory)
{
    return Directory->Root != ObpNoRoot || ObpShareOf(Directory) != NULL;
}

/* Where a directory is in which world; index 0 is the root. */
static NTSTATUS ObpPlaceOf(POBJECT_DIRECTORY Directory, PWO_VIEW *View, WO_INDEX *Index)
{
    POBP_SHARE Share = ObpShareOf(Directory);
    if (Share != NULL) {
        *View = ObpViewOf(Share);
        *Index = Share->Outside.Index;
        return STATUS_SUCCESS;
    }
    *Index = 0;
    return ObpOpenWorld(Directory->Root == ObpMachineRoot ? WoMachine : WoLocal, View);
}

static VOID ObpRepresentDirectory(PVOID Proxy, POBP_SHARE Share)
{
    UNREFERENCED_PARAMETER(Share);
    ObpInitializeDirectory(Proxy, NULL);
}

const OBP_SHARING ObpDirectorySharing = {
    .Kinds = OBP_KIND(WoDirectory),
    .BodySize = sizeof(OBJECT_DIRECTORY),
    .Represent = ObpRepresentDirectory,
};

/* Links. A proxy has a copy of the target, which never changes. Length is the available room on entry. */

static VOID ObpRepresentLink(PVOID Proxy, POBP_SHARE Share)
{
    POBJECT_SYMBOLIC_LINK Link = Proxy;
    ULONG Length = 0;
    if (!NT_SUCCESS(WoQueryTarget(ObpViewOf(Share), Share->Outside.Index, Link->Target, Link->Length, &Length))) {
        Length = 0;
    }
    Link->Length = (USHORT)Length;
    KeQuerySystemTime(&Link->CreationTime);
}

static VOID ObpDescribeLink(PVOID Object, POBP_NEW New)
{
    POBJECT_SYMBOLIC_LINK Link = Object;
    New->Target = (UNICODE_STRING){(USHORT)(Link->Length * sizeof(WCHAR)), (USHORT)(Link->Length * sizeof(WCHAR)),
                                   Link->Target};
    New->World.Target = &New->Target;
}

const OBP_SHARING ObpSymbolicLinkSharing = {
    .Kinds = OBP_KIND(WoSymbolicLink),
    .BodySize = sizeof(OBJECT_SYMBOLIC_LINK),
    .Describe = ObpDescribeLink,
    .Represent = ObpRepresentLink,
};

/* A component of a walk: where it is looked up, and what was found there. */
typedef struct _OBP_STEP {
    POBP_WALK Walk;
    PWO_VIEW View;
    WO_LOOKUP Lookup;
    UNICODE_STRING Name;
    BOOLEAN More;
    WO_INDEX Index;
    WO_TYPE Kind;
    ULONG Handles;                   /* taken with the record */
    ULONG Needed;                    /* room for a target that did not fit */
} OBP_STEP, *POBP_STEP;

/* Preparing, without the lock. */

static NTSTATUS ObpPrepareTarget(POBP_WALK Walk, ULONG Length)
{
    HalFree(Walk->Target);
    Walk->TargetRoom = 0;
    Walk->Target = HalAllocate(Length * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Walk->Target == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Walk->TargetRoom = Length;
    return STATUS_SUCCESS;
}

/* A candidate for the target of the path. NULL in Walk: nothing that the world has fits the request. */
static NTSTATUS ObpPrepareCandidate(POBP_WALK Walk, BOOLEAN More)
{
    POBJECT_TYPE Type = More ? &ObpDirectoryType : Walk->Request->Type;
    BOOLEAN Link = Type == &ObpSymbolicLinkType;
    POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Walk->Directory)->NameInfo;
    ULONG Room = (Info != NULL && Info->Share != NULL ? Info->Length : OBP_ROOT_ROOM) + 1 + Walk->Component.Length;
    if (Type->Sharing == NULL) {
        return STATUS_SUCCESS;
    }
    POBJECT_SYMBOLIC_LINK NewLink = Link ? Walk->Request->NewObject : NULL; /* its target needs room, too */
    if (NewLink != NULL && NewLink->Length > Walk->TargetRoom && !NT_SUCCESS(ObpPrepareTarget(Walk, NewLink->Length))) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Walk->Candidate = ObpBuildProxy(Type, Type->Sharing->BodySize + (Link ? Walk->TargetRoom * sizeof(WCHAR) : 0),
                                    Room < MAXUSHORT ? Room : MAXUSHORT);
    if (Walk->Candidate == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (Link) {
        ((POBJECT_SYMBOLIC_LINK)Walk->Candidate)->Length = (USHORT)Walk->TargetRoom;
    }
    return STATUS_SUCCESS;
}

/* Looks Component up again. */
static NTSTATUS ObpStepAgain(POBP_WALK Walk, BOOLEAN More)
{
    Walk->Rest = (OBP_TEXT){Walk->Component.Text, Walk->Component.Length + More + Walk->Rest.Length};
    return STATUS_REPARSE;
}

/* With the shares locked, as every function up to ObpWalkInWorld. */

static NTSTATUS ObpTakeBack(POBP_STEP Step, NTSTATUS Status)
{
    if (Step->Handles != 0) {
        WoChangeHandles(Step->View, Step->Index, -(LONG)Step->Handles);
    }
    ObpReturnRecord(Step->View, Step->Index);
    return Status;
}

static PVOID ObpTakeProxy(POBP_STEP Step)
{
    POBP_WALK Walk = Step->Walk;
    PVOID Proxy = ObpProxyOf(Step->View, Step->Index, Step->Kind, Walk->Candidate);
    if (Proxy == Walk->Candidate) {
        POBJECT_HEADER_NAME_INFO Info = ObpHeaderOf(Proxy)->NameInfo;
        ULONG Length;
        BOOLEAN Fits;
        Walk->Candidate = NULL;
        /* the path, for the debugger */
        if (ObpQueryPathInWorld(Proxy, Info->Name, Info->Capacity, &Length, &Fits) && Fits) {
            Info->Length = (USHORT)Length;
        }
    }
    return Proxy;
}

/* STATUS_BUFFER_TOO_SMALL: Needed characters. */
static NTSTATUS ObpReadTarget(POBP_STEP Step)
{
    POBP_WALK Walk = Step->Walk;
    NTSTATUS Status = WoQueryTarget(Step->View, Step->Index, Walk->Target, Walk->TargetRoom, &Step->Needed);
    return NT_SUCCESS(Status) && Step->Needed > Walk->TargetRoom ? STATUS_BUFFER_TOO_SMALL : Status;
}

static BOOLEAN ObpIsLinkToFollow(POBP_STEP Step)
{
    POBP_REQUEST Request = Step->Walk->Request;
    return Step->Kind == WoSymbolicLink &&
           (Step->More || (Request->Type != &ObpSymbolicLinkType && !(Request->Attributes & OBJ_OPENLINK)));
}

static NTSTATUS ObpCheckFound(POBP_STEP Step)
{
    POBP_REQUEST Request = Step->Walk->Request;
    if (!ObpIsKindOf(Request->Type, Step->Kind)) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    if (Request->Attributes & Request->Type->InvalidAttributes) {
        return STATUS_INVALID_PARAMETER;
    }
    BOOLEAN Exclusive = (WoQueryAttributes(Step->View, Step->Index) & OBJ_EXCLUSIVE) != 0;
    if (Exclusive && !ObpHasProxy(Step->View, Step->Index)) { /* only the process that created it opens it again */
        return STATUS_ACCESS_DENIED;
    }
    if ((Request->Attributes & OBJ_EXCLUSIVE) && !Exclusive) {
        return STATUS_INVALID_PARAMETER;
    }
    return Step->Kind == WoSymbolicLink ? ObpReadTarget(Step) : STATUS_SUCCESS; /* the candidate has as much room */
}

/* Opens the handle of the request. The world has counted it. Found: the object was there before. */
static NTSTATUS ObpOpenInWorld(POBP_STEP Step, BOOLEAN Found, PVOID *Proxy)
{
    POBP_REQUEST Request = Step->Walk->Request;
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status = Found ? ObpGrantOpen(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess)
                            : ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (!NT_SUCCESS(Status)) {
        return ObpTakeBack(Step, Status);
    }
    *Proxy = ObpTakeProxy(Step);
    ObpOpenCountedHandle(Request->Handle, *Proxy, Request->Attributes, GrantedAccess);
    return STATUS_SUCCESS;
}

static NTSTATUS ObpFindInWorld(POBP_STEP Step)
{
    NTSTATUS Status = WoFindName(Step->View, &Step->Lookup, Step->Handles, &Step->Index);
    return NT_SUCCESS(Status) ? STATUS_OBJECT_NAME_EXISTS : Status;
}

/* For an object that no other thread knows yet. Types without dispatcher objects share one kind. */
static VOID ObpDescribe(PVOID Object, POBP_NEW New)
{
    const OBP_SHARING *Sharing = ObpHeaderOf(Object)->Type->Sharing;
    if (ObpIsAlwaysSignaled(Object)) {
        New->World.Type = (WO_TYPE)__builtin_ctz(Sharing->Kinds);
    } else {
        PDISPATCHER_HEADER Header = ObpDispatcherObject(Object);
        New->World.Type = ObpKindOf(Header);
        New->World.State = KI_STATE(KiReadHeader(Header));
        New->World.Limit = New->World.Type == WoSemaphore ? CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit : 0;
    }
    if (Sharing->Describe != NULL) {
        Sharing->Describe(Object, New);
    }
}

/* Creates the name, or finds it: STATUS_OBJECT_NAME_EXISTS. */
static NTSTATUS ObpCreateOrFind(POBP_STEP Step)
{
    POBP_REQUEST Request = Step->Walk->Request;
    OBP_NEW New = {.World.Attributes = Request->Attributes & (OBJ_PERMANENT | OBJ_EXCLUSIVE)};
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status;
    if (Request->NewObject == NULL || Request->Type->Sharing == NULL) {
        return ObpFindInWorld(Step);
    }
    Status = ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (!NT_SUCCESS(Status)) {
        NTSTATUS Found = ObpFindInWorld(Step);
        return Found == STATUS_OBJECT_NAME_NOT_FOUND ? Status : Found;
    }
    ObpDescribe(Request->NewObject, &New);
    if (New.World.Type == WoMutant && New.World.State == 0) {
        Status = WoWaiterOfCurrentThread(Step->View, &New.World.Owner);
    }
    return NT_SUCCESS(Status) ? WoCreateName(Step->View, &Step->Lookup, &New.World, Step->Handles, &Step->Index) : Status;
}

/* The last component. */
static NTSTATUS ObpFinishInWorld(POBP_STEP Step, PVOID *Proxy)
{
    POBP_REQUEST Request = Step->Walk->Request;
    Step->Handles = 1;
    NTSTATUS Status = ObpCreateOrFind(Step);
    if (Status == STATUS_OBJECT_NAME_NOT_FOUND) {
        return ObpEnterLocalName(Step->Walk);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Step->Kind = WoTypeOf(Step->View, Step->Index);
    if (ObpIsLinkToFollow(Step)) {
        return ObpTakeBack(Step, NT_SUCCESS(Status = ObpReadTarget(Step)) ? STATUS_REPARSE_OBJECT : Status);
    }
    if (Status == STATUS_OBJECT_NAME_EXISTS) {
        BOOLEAN Collides = Request->NewObject != NULL && !(Request->Attributes & OBJ_OPENIF);
        NTSTATUS Fits = Collides ? STATUS_OBJECT_NAME_COLLISION : ObpCheckFound(Step);
        if (!NT_SUCCESS(Fits)) {
            return ObpTakeBack(Step, Fits);
        }
    }
    NTSTATUS Opened = ObpOpenInWorld(Step, Status == STATUS_OBJECT_NAME_EXISTS, Proxy);
    return !NT_SUCCESS(Opened) || Request->NewObject == NULL ? Opened : Status;
}

/* Any other component: a directory, where the walk continues, or a link. */
static NTSTATUS ObpPassInWorld(POBP_STEP Step, PVOID *Proxy)
{
    NTSTATUS Status = WoFindName(Step->View, &Step->Lookup, 0, &Step->Index);
    if (!NT_SUCCESS(Status)) {
        return Status == STATUS_OBJECT_NAME_NOT_FOUND ? STATUS_OBJECT_PATH_NOT_FOUND : Status;
    }
    Step->Kind = WoTypeOf(Step->View, Step->Index);
    if (ObpIsLinkToFollow(Step)) {
        return ObpTakeBack(Step, NT_SUCCESS(Status = ObpReadTarget(Step)) ? STATUS_REPARSE_OBJECT : Status);
    }
    if (Step->Kind != WoDirectory) {
        return ObpTakeBack(Step, STATUS_OBJECT_TYPE_MISMATCH);
    }
    *Proxy = ObpTakeProxy(Step);
    return STATUS_REPARSE;
}

/* Not locked, as every function from here on. */

static NTSTATUS ObpTakeStep(POBP_STEP Step, PVOID *Proxy)
{
    NTSTATUS Status;
    PKTHREAD Thread = ObpLockShares();
    if (ObpHasLocalName(Step->Walk)) {
        Status = STATUS_RETRY; /* another thread has just entered it */
    } else {
        Status = Step->More ? ObpPassInWorld(Step, Proxy) : ObpFinishInWorld(Step, Proxy);
    }
    ObpUnlockShares(Thread);
    return Status;
}

static VOID ObpHold(POBP_WALK Walk, PVOID Directory)
{
    if (Walk->Held != NULL) {
        ObpDereferenceObjectEx(Walk->Held, 1);
    }
    Walk->Held = Directory;
}

static NTSTATUS ObpEndStep(POBP_STEP Step, NTSTATUS Status, PVOID Proxy)
{
    POBP_WALK Walk = Step->Walk;
    switch (Status) {
    case STATUS_RETRY:
        return ObpStepAgain(Walk, Step->More);
    case STATUS_BUFFER_TOO_SMALL:
        Status = ObpPrepareTarget(Walk, Step->Needed);
        return NT_SUCCESS(Status) ? ObpStepAgain(Walk, Step->More) : Status;
    case STATUS_REPARSE_OBJECT:
        Status = ObpFollowLink(Walk, (OBP_TEXT){Walk->Target, Step->Needed}, Step->More);
        return NT_SUCCESS(Status) ? STATUS_REPARSE : Status;
    case STATUS_REPARSE:
        ObpHold(Walk, Proxy);
        Walk->Directory = Proxy;
        return Walk->Rest.Length != 0 ? STATUS_REPARSE : STATUS_OBJECT_NAME_INVALID;
    default:
        if (Proxy != NULL) {
            ObpDereferenceObjectEx(Proxy, 1);
        }
        return Status;
    }
}

NTSTATUS ObpWalkInWorld(POBP_WALK Walk, BOOLEAN More)
{
    OBP_STEP Step = {.Walk = Walk, .More = More};
    PVOID Proxy = NULL;
    NTSTATUS Status;
    ObpReferenceObjectEx(Walk->Directory, 1);
    ObpHold(Walk, Walk->Directory);
    Status = ObpPlaceOf(Walk->Directory, &Step.View, &Step.Lookup.Directory);
    if (Status == STATUS_NOT_SUPPORTED) {
        Walk->Request->Local = TRUE;
        return ObpStepAgain(Walk, More);
    }
    if (NT_SUCCESS(Status)) {
        Status = ObpPrepareCandidate(Walk, More);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Step.Name = (UNICODE_STRING){(USHORT)(Walk->Component.Length * sizeof(WCHAR)),
                                 (USHORT)(Walk->Component.Length * sizeof(WCHAR)), (PWSTR)Walk->Component.Text};
    Step.Lookup.Name = &Step.Name;
    Step.Lookup.CaseInsensitive = Walk->CaseInsensitive;
    Status = ObpTakeStep(&Step, &Proxy);
    if (Walk->Candidate != NULL) {
        ObpDiscardProxy(Walk->Candidate);
        Walk->Candidate = NULL;
    }
    return ObpEndStep(&Step, Status, Proxy);
}

VOID ObpLeaveWorld(POBP_WALK Walk)
{
    ObpHold(Walk, NULL);
    HalFree(Walk->Target);
}

/* Queries. */

/* NULL: the object is local, or has a name in this process. */
static POBP_SHARE ObpNamedShare(PVOID Object)
{
    POBP_SHARE Share = ObpShareOf(Object);
    return Share != NULL && ObpHeaderOf(Object)->NameInfo->Directory == NULL ? Share : NULL;
}

BOOLEAN ObpSetPermanentInWorld(PVOID Object, BOOLEAN Permanent)
{
    POBP_SHARE Share = ObpNamedShare(Object);
    if (Share != NULL) {
        WoSetPermanent(ObpViewOf(Share), Share->Outside.Index, Permanent);
    }
    return Share != NULL;
}

BOOLEAN ObpRemoveNameInWorld(PVOID Object)
{
    POBP_SHARE Share = ObpNamedShare(Object);
    if (Share != NULL) {
        WoRemoveName(ObpViewOf(Share), Share->Outside.Index);
    }
    return Share != NULL;
}

BOOLEAN ObpQueryAttributesInWorld(PVOID Object, PULONG Attributes)
{
    POBP_SHARE Share = ObpNamedShare(Object);
    if (Share != NULL) {
        *Attributes = WoQueryAttributes(ObpViewOf(Share), Share->Outside.Index);
    }
    return Share != NULL;
}

ULONG ObpQueryHandleCount(PVOID Object)
{
    POBP_SHARE Share = ObpShareOf(Object);
    /* relaxed: for display */
    return Share != NULL ? WoQueryHandleCount(ObpViewOf(Share), Share->Outside.Index)
                         : (ULONG)__atomic_load_n(&ObpHeaderOf(Object)->HandleCount, __ATOMIC_RELAXED);
}

BOOLEAN ObpQueryPathOfShared(PWO_VIEW View, WO_INDEX Index, PWCHAR Path, ULONG Capacity, PULONG Length)
{
    BOOLEAN InLocal = View == WoAttachedView(WoLocal);
    PCWSTR Root = InLocal ? OBP_LOCAL_ROOT : OBP_MACHINE_ROOT;
    ULONG Prefix = (ULONG)((InLocal ? sizeof(OBP_LOCAL_ROOT) : sizeof(OBP_MACHINE_ROOT)) / sizeof(WCHAR)) - 1;
    ULONG Room = Capacity > Prefix ? Capacity - Prefix : 0;
    *Length = 0;
    NTSTATUS Status = WoQueryName(View, Index, Room != 0 ? Path + Prefix : NULL, Room, Length);
    if ((!NT_SUCCESS(Status) && Status != STATUS_BUFFER_TOO_SMALL) || *Length == 0) {
        *Length = 0; /* it no longer has a name */
        return TRUE;
    }
    BOOLEAN Fits = *Length <= Room;
    if (Fits && Path[Prefix] != OBP_SEPARATOR) { /* the directory has lost its name */
        memmove(Path, Path + Prefix, *Length * sizeof(WCHAR));
        return TRUE;
    }
    *Length += Prefix;
    if (Fits) {
        memcpy(Path, Root, Prefix * sizeof(WCHAR)); /* what follows begins with a separator */
    }
    return Fits;
}

BOOLEAN ObpQueryPathInWorld(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length, BOOLEAN *Fits)
{
    POBP_SHARE Share = ObpNamedShare(Object);
    if (Share == NULL) {
        return FALSE;
    }
    *Fits = ObpQueryPathOfShared(ObpViewOf(Share), Share->Outside.Index, Path, Capacity, Length);
    return TRUE;
}

POBJECT_TYPE ObpTypeOfKind(WO_TYPE Kind)
{
    /* acquire: pairs with the release in ObpRegisterType */
    POBJECT_TYPE Type = __atomic_load_n(&ObpFirstType, __ATOMIC_ACQUIRE);
    while (Type != NULL && !ObpIsKindOf(Type, Kind)) {
        Type = Type->NextType;
    }
    return Type;
}

/* A name that begins with a separator cannot be reached by a path: it is a private namespace. */
VOID ObpVisitEntriesInWorld(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context)
{
    PWO_VIEW View;
    WO_INDEX Place;
    PWCHAR Text;
    if (!ObpIsInWorld(Directory) || !NT_SUCCESS(ObpPlaceOf(Directory, &View, &Place))) {
        return;
    }
    Text = HalAllocate(UNICODE_STRING_MAX_CHARS * sizeof(WCHAR), MEMORY_ALLOCATION_ALIGNMENT);
    if (Text == NULL) {
        return;
    }
    for (ULONG Entry = 0;; Entry += 1) {
        WO_TYPE Kind;
        ULONG Length;
        POBJECT_TYPE Type;
        if (!NT_SUCCESS(WoQueryEntry(View, Place, Entry, Text, UNICODE_STRING_MAX_CHARS, &Length, &Kind))) {
            break;
        }
        Type = ObpTypeOfKind(Kind);
        if (Type == NULL || (Length != 0 && Text[0] == OBP_SEPARATOR)) {
            continue;
        }
        UNICODE_STRING Name = {(USHORT)(Length * sizeof(WCHAR)), (USHORT)(Length * sizeof(WCHAR)), Text};
        if (Start != 0) {
            Start -= 1;
        } else if (!Visit(&Name, Type, Context)) {
            break;
        }
    }
    HalFree(Text);
}
