/* share.c: proxies of objects that processes share. The theory is in share.h. */
#include "share.h"

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

static VOID ObpTellOnce(VOID)
{
    static volatile BOOLEAN Told;
    PCSTR Session = HalGetEnvironment("INTERLOCK_SESSION");
    BOOLEAN Wanted = Session != NULL && strcmp(Session, "private") == 0;
    if (!Wanted && !__atomic_exchange_n(&Told, TRUE, __ATOMIC_RELAXED)) {
        HalPrint("interlock: the host refuses shared memory: names stay in this process\n");
    }
}

NTSTATUS ObpOpenWorld(WO_SCOPE Scope, PWO_VIEW *View)
{
    NTSTATUS Status = WoOpenView(Scope, View);
    if (Status == STATUS_NOT_SUPPORTED && KiVerifierEnabled) {
        ObpTellOnce();
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
