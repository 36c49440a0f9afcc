/* remote.c: handles that pass between processes: inherited by a child, or duplicated. The theory is in share.h. */
#include <stdio.h>
#include <stdlib.h>

#include "../ke/park.h"
#include "../ps/psp.h"
#include "share.h"

/* Handles that a child inherits. */

#define OBP_VARIABLE "INTERLOCK_INHERITED"
#define OBP_PROCESS_TEXT 96 /* at most, of one process */

/* The parent. */

typedef struct _OBP_COLLECTION {
    PVOID *Objects;                  /* a reference each, until the tickets exist */
    ULONG ObjectCount;
    PWO_INHERITED Handles[OBP_WORLDS];
    ULONG Count[OBP_WORLDS];
    PWO_VIEW View[OBP_WORLDS];
    PSTR Processes;                  /* their part of the text */
    SIZE_T ProcessesLength, ProcessesRoom;
    ULONG Room;                      /* of the arrays */
} OBP_COLLECTION, *POBP_COLLECTION;

static BOOLEAN ObpGrow(PVOID *Array, SIZE_T Used, SIZE_T Size)
{
    PVOID Fresh = HalAllocate(Size, MEMORY_ALLOCATION_ALIGNMENT);
    if (Fresh == NULL) {
        return FALSE;
    }
    memcpy(Fresh, *Array != NULL ? *Array : Fresh, Used);
    HalFree(*Array);
    *Array = Fresh;
    return TRUE;
}

static BOOLEAN ObpMakeRoom(POBP_COLLECTION Collection)
{
    ULONG Room = 2 * Collection->Room + 32;
    if (Collection->ObjectCount < Collection->Room) {
        return TRUE;
    }
    if (!ObpGrow((PVOID *)&Collection->Objects, Collection->ObjectCount * sizeof(PVOID), Room * sizeof(PVOID))) {
        return FALSE;
    }
    for (ULONG World = 0; World < OBP_WORLDS; World++) {
        if (!ObpGrow((PVOID *)&Collection->Handles[World], Collection->Count[World] * sizeof(WO_INHERITED),
                     Room * sizeof(WO_INHERITED))) {
            return FALSE;
        }
    }
    Collection->Room = Room;
    return TRUE;
}

static VOID ObpDropCollection(POBP_COLLECTION Collection)
{
    while (Collection->ObjectCount != 0) {
        ObpDereferenceObjectEx(Collection->Objects[--Collection->ObjectCount], 1);
    }
    HalFree(Collection->Objects);
    HalFree(Collection->Processes);
    for (ULONG World = 0; World < OBP_WORLDS; World++) {
        HalFree(Collection->Handles[World]);
    }
}

static VOID ObpCollectShared(POBP_COLLECTION Collection, POBP_SHARE Share, const WO_INHERITED *Handle)
{
    ULONG World = 0;
    while (Collection->View[World] != NULL && Collection->View[World] != ObpViewOf(Share)) {
        World += 1;
    }
    Collection->View[World] = ObpViewOf(Share);
    Collection->Handles[World][Collection->Count[World]] = *Handle;
    Collection->Handles[World][Collection->Count[World]].Object = Share->Outside.Index;
    Collection->Count[World] += 1;
}

static BOOLEAN ObpCollectProcess(POBP_COLLECTION Collection, PEPROCESS Process, const WO_INHERITED *Handle)
{
    ULONG ProcessId = Process->Pcb.ProcessId;
    SIZE_T Room = Collection->ProcessesRoom;
    if (Collection->ProcessesLength + OBP_PROCESS_TEXT > Room) {
        Room = 2 * Room + 2 * OBP_PROCESS_TEXT;
        if (!ObpGrow((PVOID *)&Collection->Processes, Collection->ProcessesLength, Room)) {
            return FALSE;
        }
        Collection->ProcessesRoom = Room;
    }
    Collection->ProcessesLength +=
        (SIZE_T)snprintf(Collection->Processes + Collection->ProcessesLength, OBP_PROCESS_TEXT, " P%x:%x:%llx:%x:%x",
                         Handle->Handle, ProcessId, (unsigned long long)HalQueryProcessStart(ProcessId),
                         Handle->GrantedAccess, Handle->Attributes);
    return TRUE;
}

/* Takes over the reference on the object. */
static NTSTATUS ObpCollect(POBP_COLLECTION Collection, PVOID Object, const WO_INHERITED *Handle)
{
    POBP_SHARE Share;
    NTSTATUS Status;
    if (!ObpMakeRoom(Collection)) {
        ObpDereferenceObjectEx(Object, 1);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Collection->Objects[Collection->ObjectCount++] = Object;
    if (ObpHeaderOf(Object)->Type == &ObpProcessType) {
        return ObpCollectProcess(Collection, Object, Handle) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = ObpShareObject(Object, &Share);
    if (NT_SUCCESS(Status)) {
        ObpCollectShared(Collection, Share, Handle);
    }
    return Status == STATUS_NOT_SUPPORTED ? STATUS_SUCCESS : Status;
}

/* STATUS_INVALID_HANDLE: it is not open, or not marked. */
static NTSTATUS ObpCollectHandle(POBP_COLLECTION Collection, HANDLE Handle)
{
    OBJECT_HANDLE_INFORMATION Information;
    WO_INHERITED Inherited = {.Handle = HandleToULong(Handle)};
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, NULL, KernelMode, &Object, &Information);
    if (!NT_SUCCESS(Status)) {
        return STATUS_INVALID_HANDLE;
    }
    if (!(Information.HandleAttributes & OBJ_INHERIT)) {
        ObpDereferenceObjectEx(Object, 1);
        return STATUS_INVALID_HANDLE;
    }
    Inherited.GrantedAccess = Information.GrantedAccess;
    Inherited.Attributes = Information.HandleAttributes;
    return ObpCollect(Collection, Object, &Inherited);
}

static NTSTATUS ObpCollectAll(POBP_COLLECTION Collection)
{
    NTSTATUS Status = STATUS_SUCCESS;
    HANDLE Handle = NULL;
    while (NT_SUCCESS(Status) && (Handle = ObpNextHandle(Handle)) != NULL) {
        Status = ObpCollectHandle(Collection, Handle);
        if (Status == STATUS_INVALID_HANDLE) { /* closed meanwhile */
            Status = STATUS_SUCCESS;
        }
    }
    return Status;
}

static NTSTATUS ObpCollectList(POBP_COLLECTION Collection, const HANDLE *List, ULONG Count)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index++) {
        for (ULONG Before = 0; Before < Index; Before++) {
            if (List[Before] == List[Index]) {
                return STATUS_INVALID_PARAMETER;
            }
        }
        Status = ObpCollectHandle(Collection, List[Index]);
    }
    return Status == STATUS_INVALID_HANDLE ? STATUS_INVALID_PARAMETER : Status;
}

static NTSTATUS ObpTakeTickets(POBP_COLLECTION Collection, POBP_BEQUEST Bequest)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG World = 0; World < OBP_WORLDS && Collection->View[World] != NULL && NT_SUCCESS(Status); World++) {
        Status = WoPrepareChild(Collection->View[World], Collection->Handles[World], Collection->Count[World],
                                Bequest->World[World].Ticket);
        if (NT_SUCCESS(Status)) {
            Bequest->World[World].View = Collection->View[World];
        }
    }
    return Status;
}

static NTSTATUS ObpWriteText(POBP_COLLECTION Collection, POBP_BEQUEST Bequest)
{
    SIZE_T Room = sizeof(OBP_VARIABLE) + OBP_WORLDS * (WO_TICKET_LENGTH + 16) + Collection->ProcessesLength + 1;
    PWO_VIEW Machine = NULL;
    SIZE_T Length;
    Bequest->Text = HalAllocate(Room, 1);
    if (Bequest->Text == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    (VOID)WoOpenView(WoMachine, &Machine);
    Length = (SIZE_T)snprintf(Bequest->Text, Room, OBP_VARIABLE "=");
    for (ULONG World = 0; World < OBP_WORLDS && Bequest->World[World].View != NULL; World++) {
        Length += (SIZE_T)snprintf(Bequest->Text + Length, Room - Length, " %c%x:%s",
                                   Bequest->World[World].View == Machine ? 'M' : 'L', Collection->Count[World],
                                   Bequest->World[World].Ticket);
    }
    memcpy(Bequest->Text + Length, Collection->Processes != NULL ? Collection->Processes : "",
           Collection->ProcessesLength);
    return STATUS_SUCCESS;
}

NTSTATUS ObpPrepareBequest(const OBP_HEIRLOOMS *Heirlooms, POBP_BEQUEST Bequest)
{
    OBP_COLLECTION Collection = {0};
    NTSTATUS Status;
    memset(Bequest, 0, sizeof(*Bequest));
    Status = Heirlooms->List != NULL ? ObpCollectList(&Collection, Heirlooms->List, Heirlooms->Count)
                                     : ObpCollectAll(&Collection);
    if (NT_SUCCESS(Status)) {
        Status = ObpTakeTickets(&Collection, Bequest);
    }
    if (NT_SUCCESS(Status) && (Bequest->World[0].View != NULL || Collection.ProcessesLength != 0)) {
        Status = ObpWriteText(&Collection, Bequest);
    }
    ObpDropCollection(&Collection);
    if (!NT_SUCCESS(Status)) {
        ObpEndBequest(Bequest, 0);
    }
    return Status;
}

VOID ObpEndBequest(POBP_BEQUEST Bequest, ULONG ProcessId)
{
    for (ULONG World = 0; World < OBP_WORLDS && Bequest->World[World].View != NULL; World++) {
        if (ProcessId != 0) {
            WoStartChild(Bequest->World[World].View, Bequest->World[World].Ticket, ProcessId);
        } else {
            WoAbandonChild(Bequest->World[World].View, Bequest->World[World].Ticket);
        }
    }
    HalFree(Bequest->Text);
    Bequest->Text = NULL;
}

/* The child. */

volatile ULONG ObpAdoptionState;
static PCSTR ObpInheritedText;
static PKTHREAD volatile ObpAdopter;

static VOID ObpTakeInheritedText(VOID)
{
    ObpInheritedText = HalTakeEnvironment(OBP_VARIABLE);
    ObpAdoptionState = ObpInheritedText != NULL ? ObpAdoptionPending : ObpNothingToAdopt;
}
KI_INITIALIZER(KiInitializeObjects, ObpTakeInheritedText);

PVOID ObpBuildHeir(PWO_VIEW View, WO_INDEX Index)
{
    WO_TYPE Kind = WoTypeOf(View, Index);
    POBJECT_TYPE Type = ObpTypeOfKind(Kind);
    ULONG Target = 0;
    if (Type == NULL) {
        return NULL;
    }
    if (Kind == WoSymbolicLink) {
        (VOID)WoQueryTarget(View, Index, NULL, 0, &Target);
    }
    PVOID Heir = ObpBuildProxy(Type, Type->Sharing->BodySize + Target * sizeof(WCHAR), 0);
    if (Heir != NULL && Kind == WoSymbolicLink) {
        ((POBJECT_SYMBOLIC_LINK)Heir)->Length = (USHORT)Target;
    }
    return Heir;
}

PVOID ObpReceiveObject(PWO_VIEW View, WO_INDEX Index)
{
    PVOID Candidate = ObpBuildHeir(View, Index);
    PVOID Proxy;
    if (Candidate == NULL) {
        return NULL;
    }
    PKTHREAD Thread = ObpLockShares();
    Proxy = ObpProxyOf(View, Index, WoTypeOf(View, Index), Candidate);
    ObpUnlockShares(Thread);
    if (Proxy != Candidate) {
        ObpDiscardProxy(Candidate);
    }
    return Proxy;
}

VOID ObpReturnHandle(PWO_VIEW View, WO_INDEX Index)
{
    PKTHREAD Thread = ObpLockShares();
    WoChangeHandles(View, Index, -1);
    ObpReturnRecord(View, Index);
    ObpUnlockShares(Thread);
}

/* The world has counted the handle; if it cannot be opened, the count is returned. */
static ULONG ObpAdoptHandle(PWO_VIEW View, const WO_INHERITED *Inherited)
{
    HANDLE Handle = ULongToHandle(Inherited->Handle);
    PVOID Proxy = ObpReserveHandleValue(Handle) ? ObpReceiveObject(View, Inherited->Object) : NULL;
    if (Proxy == NULL) {
        ObpReturnHandle(View, Inherited->Object);
        return 0;
    }
    ObpOpenCountedHandle(Handle, Proxy, Inherited->Attributes, Inherited->GrantedAccess);
    ObpDereferenceObjectEx(Proxy, 1);
    return Inherited->Handle;
}

static ULONG ObpAdoptFromWorld(WO_SCOPE Scope, PCSTR Ticket, ULONG Count)
{
    PWO_INHERITED Handles = HalAllocate((Count + 1) * sizeof(*Handles), MEMORY_ALLOCATION_ALIGNMENT);
    ULONG Highest = 0;
    PWO_VIEW View;
    if (Handles != NULL && NT_SUCCESS(ObpOpenWorld(Scope, &View)) &&
        NT_SUCCESS(WoAdoptHandles(View, Ticket, Handles, &Count))) {
        for (ULONG Index = 0; Index < Count; Index++) {
            ULONG Adopted = ObpAdoptHandle(View, &Handles[Index]);
            Highest = Adopted > Highest ? Adopted : Highest;
        }
    }
    HalFree(Handles);
    return Highest;
}

static ULONG ObpAdoptProcess(ULONG Handle, ULONG ProcessId, ULONG64 Start, ULONG GrantedAccess, ULONG Attributes)
{
    PEPROCESS Process;
    if (!NT_SUCCESS(PsLookupProcessByProcessId(ULongToHandle(ProcessId), &Process))) {
        return 0;
    }
    BOOLEAN Same = HalQueryProcessStart(ProcessId) == Start && ObpReserveHandleValue(ULongToHandle(Handle));
    if (Same) {
        ObpOpenReservedHandle(ULongToHandle(Handle), Process, Attributes, GrantedAccess);
    }
    ObDereferenceObject(Process);
    return Same ? Handle : 0;
}

/* One word of the text. Returns the handle with the highest value that it opened. */
static ULONG ObpAdoptWord(PCSTR Word)
{
    CHAR Ticket[WO_TICKET_LENGTH];
    ULONG Handle, ProcessId, Access, Attributes, Count;
    unsigned long long Start;
    if (sscanf(Word, "P%x:%x:%llx:%x:%x", &Handle, &ProcessId, &Start, &Access, &Attributes) == 5) {
        return ObpAdoptProcess(Handle, ProcessId, Start, Access, Attributes);
    }
    if (sscanf(Word, "%*1[LM]%x:%63[^ ]", &Count, Ticket) == 2 && Count <= OBP_HANDLE_LIMIT) {
        return ObpAdoptFromWorld(Word[0] == 'M' ? WoMachine : WoLocal, Ticket, Count);
    }
    return 0;
}

C_ASSERT(WO_TICKET_LENGTH == 64); /* the format above */

static VOID ObpAdoptAll(VOID)
{
    ULONG Highest = 0;
    for (PCSTR Word = ObpInheritedText; Word != NULL; Word = strchr(Word, ' ')) {
        Word += *Word == ' ';
        ULONG Adopted = ObpAdoptWord(Word);
        Highest = Adopted > Highest ? Adopted : Highest;
    }
    ObpFreeValuesBelow(ULongToHandle(Highest));
}

VOID ObpAdoptHandles(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Pending = ObpAdoptionPending;
    /* relaxed: finds only its own address */
    if (__atomic_load_n(&ObpAdopter, __ATOMIC_RELAXED) == Thread) {
        return;
    }
    KiEnterService(Thread);
    if (__atomic_compare_exchange_n(&ObpAdoptionState, &Pending, ObpAdopting, FALSE, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        __atomic_store_n(&ObpAdopter, Thread, __ATOMIC_RELAXED);
        ObpAdoptAll();
        __atomic_store_n(&ObpAdopter, NULL, __ATOMIC_RELAXED);
        /* release: the handles are open */
        __atomic_store_n(&ObpAdoptionState, ObpNothingToAdopt, __ATOMIC_RELEASE);
    }
    for (ULONG Round = 0; __atomic_load_n(&ObpAdoptionState, __ATOMIC_ACQUIRE) != ObpNothingToAdopt; Round++) {
        KiBackOff(Round);
    }
    KiExitService(Thread);
}

/* After the library's own constructor, where the heap may not be used. From now on other processes can reach this
   one. */
__attribute__((constructor)) static VOID ObpAdoptAtStart(VOID)
{
    if (ObpAdoptionState != ObpNothingToAdopt) {
        ObpAdoptHandles();
    }
}

/* Handles of other processes. */

/* Handles of this process. */

NTSTATUS ObpTakeParcel(const OBP_PICKUP *Pickup, KPROCESSOR_MODE AccessMode, POBP_PARCEL Parcel)
{
    OBJECT_HANDLE_INFORMATION Information;
    BOOLEAN Inherit, ProtectFromClose;
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(Pickup->Handle, 0, NULL, AccessMode, &Object, &Information);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    const ULONG Kept = OBJ_INHERIT | OBJ_PROTECT_CLOSE | (AccessMode == KernelMode ? OBJ_KERNEL_HANDLE : 0);
    *Parcel = (OBP_PARCEL){Object, Information.GrantedAccess, Pickup->Attributes & Kept, FALSE};
    if (!(Pickup->Options & DUPLICATE_SAME_ACCESS)) {
        Status = ObpGrantAccess(ObpHeaderOf(Object)->Type, Pickup->DesiredAccess, AccessMode, &Parcel->GrantedAccess);
    }
    if (Pickup->Options & DUPLICATE_SAME_ATTRIBUTES) {
        ObpQueryHandleAttributes(Pickup->Handle, &Inherit, &ProtectFromClose);
        Parcel->Attributes &= OBJ_KERNEL_HANDLE;
        Parcel->Attributes |= (Inherit ? OBJ_INHERIT : 0) | (ProtectFromClose ? OBJ_PROTECT_CLOSE : 0);
    }
    if (!NT_SUCCESS(Status)) {
        ObpDropParcel(Parcel);
    }
    return Status;
}

NTSTATUS ObpDeliverParcel(POBP_PARCEL Parcel, PHANDLE Handle)
{
    HANDLE Reserved = ObpReserveHandle(Parcel->Attributes);
    if (Reserved == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (Parcel->Counted) {
        ObpOpenCountedHandle(Reserved, Parcel->Object, Parcel->Attributes, Parcel->GrantedAccess);
        Parcel->Counted = FALSE;
    } else {
        ObpOpenReservedHandle(Reserved, Parcel->Object, Parcel->Attributes, Parcel->GrantedAccess);
    }
    *Handle = Reserved;
    return STATUS_SUCCESS;
}

VOID ObpDropParcel(POBP_PARCEL Parcel)
{
    if (Parcel->Counted) {
        ObpChangeSharedHandles(Parcel->Object, -1);
    }
    ObpDereferenceObjectEx(Parcel->Object, 1);
}

/* An object in a request: the process that the handle is one of, or the object in the world. */

static NTSTATUS ObpAddress(PVOID Object, PWO_VIEW View, PWO_REQUEST Request)
{
    POBP_SHARE Share;
    NTSTATUS Status;
    if (ObpHeaderOf(Object)->Type == &ObpProcessType) {
        Request->ProcessId = ((PEPROCESS)Object)->Pcb.ProcessId;
        Request->ProcessStart = HalQueryProcessStart(Request->ProcessId);
        return STATUS_SUCCESS;
    }
    Status = ObpShareObject(Object, &Share);
    if (NT_SUCCESS(Status) && ObpViewOf(Share) != View) {
        Status = STATUS_NOT_SUPPORTED;
    }
    if (NT_SUCCESS(Status)) {
        Request->Object = Share->Outside.Index;
    }
    return Status;
}

static NTSTATUS ObpReceiveProcess(PWO_REQUEST Request, PVOID *Object)
{
    PEPROCESS Process;
    NTSTATUS Status = PsLookupProcessByProcessId(ULongToHandle(Request->ProcessId), &Process);
    if (NT_SUCCESS(Status) && HalQueryProcessStart(Request->ProcessId) != Request->ProcessStart) {
        ObDereferenceObject(Process);
        Status = STATUS_PROCESS_IS_TERMINATING;
    }
    *Object = Process;
    return Status;
}

/* Serving. */

static NTSTATUS ObpExportHandle(PWO_VIEW View, PWO_REQUEST Request, PVOID *Kept)
{
    OBP_PICKUP Pickup = {(HANDLE)(ULONG_PTR)Request->Handle, Request->GrantedAccess, Request->Attributes, Request->Options};
    OBP_PARCEL Parcel;
    NTSTATUS Status = ObpTakeParcel(&Pickup, UserMode, &Parcel);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpAddress(Parcel.Object, View, Request);
    Request->GrantedAccess = Parcel.GrantedAccess;
    Request->Attributes = Parcel.Attributes;
    *Kept = Parcel.Object;
    return Status;
}

/* The world has counted a handle of this process. */
static NTSTATUS ObpReceiveCounted(PWO_VIEW View, WO_INDEX Index, POBP_PARCEL Parcel)
{
    Parcel->Object = Index != 0 ? ObpReceiveObject(View, Index) : NULL;
    Parcel->Counted = TRUE;
    if (Parcel->Object == NULL && Index != 0) {
        ObpReturnHandle(View, Index);
    }
    return Parcel->Object != NULL ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS ObpImportHandle(PWO_VIEW View, PWO_REQUEST Request)
{
    OBP_PARCEL Parcel = {.GrantedAccess = Request->GrantedAccess, .Attributes = Request->Attributes};
    HANDLE Handle;
    NTSTATUS Status = Request->ProcessId != 0 ? ObpReceiveProcess(Request, &Parcel.Object)
                                              : ObpReceiveCounted(View, Request->Object, &Parcel);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpDeliverParcel(&Parcel, &Handle);
    Request->Handle = NT_SUCCESS(Status) ? HandleToULong(Handle) : 0;
    ObpDropParcel(&Parcel);
    return Status;
}

static PVOID ObpServe(PWO_VIEW View, PWO_REQUEST Request)
{
    PVOID Kept = NULL;
    switch (Request->Kind) {
    case WoExportHandle:
        Request->Status = ObpExportHandle(View, Request, &Kept);
        break;
    case WoImportHandle:
        Request->Status = ObpImportHandle(View, Request);
        break;
    case WoCloseHandle:
        Request->Status = ObCloseHandle((HANDLE)(ULONG_PTR)Request->Handle, UserMode);
        break;
    default:
        Request->Status = STATUS_INVALID_PARAMETER;
        break;
    }
    return Kept;
}

static VOID ObpReleaseExported(PVOID Object)
{
    ObpDereferenceObjectEx(Object, 1);
}

static VOID ObpInitializeServer(VOID)
{
    static const WO_SERVER Server = {ObpServe, ObpReleaseExported};
    WoSetServer(&Server);
}
KI_INITIALIZER(KiInitializeObjects, ObpInitializeServer);

/* Sending. */

static NTSTATUS ObpAsk(PWO_VIEW View, ULONG ProcessId, PWO_REQUEST Request)
{
    NTSTATUS Status = WoRequest(View, ProcessId, Request);
    if (Status == STATUS_INVALID_CID) {
        return STATUS_NOT_SUPPORTED;
    }
    return NT_SUCCESS(Status) ? Request->Status : Status;
}

NTSTATUS ObpFetchParcel(ULONG ProcessId, const OBP_PICKUP *Pickup, POBP_PARCEL Parcel)
{
    WO_REQUEST Request = {.Kind = WoExportHandle,
                          .Options = Pickup->Options & ~(ULONG)DUPLICATE_CLOSE_SOURCE,
                          .Handle = (ULONG_PTR)Pickup->Handle,
                          .GrantedAccess = Pickup->DesiredAccess,
                          .Attributes = Pickup->Attributes};
    PWO_VIEW View;
    NTSTATUS Status = ObpOpenWorld(WoLocal, &View);
    if (NT_SUCCESS(Status)) {
        Status = ObpAsk(View, ProcessId, &Request);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    *Parcel = (OBP_PARCEL){.GrantedAccess = Request.GrantedAccess, .Attributes = Request.Attributes};
    return Request.ProcessId != 0 ? ObpReceiveProcess(&Request, &Parcel->Object)
                                  : ObpReceiveCounted(View, Request.Object, Parcel);
}

NTSTATUS ObpSendParcel(ULONG ProcessId, POBP_PARCEL Parcel, PHANDLE Handle)
{
    WO_REQUEST Request = {.Kind = WoImportHandle, .GrantedAccess = Parcel->GrantedAccess, .Attributes = Parcel->Attributes};
    PWO_VIEW View;
    NTSTATUS Status = ObpOpenWorld(WoLocal, &View);
    if (NT_SUCCESS(Status)) {
        Status = ObpAddress(Parcel->Object, View, &Request);
    }
    if (NT_SUCCESS(Status)) {
        Status = ObpAsk(View, ProcessId, &Request);
    }
    if (NT_SUCCESS(Status)) {
        *Handle = (HANDLE)(ULONG_PTR)Request.Handle;
    }
    return Status;
}

NTSTATUS ObpCloseRemoteHandle(ULONG ProcessId, HANDLE Handle)
{
    WO_REQUEST Request = {.Kind = WoCloseHandle, .Handle = (ULONG_PTR)Handle};
    PWO_VIEW View;
    NTSTATUS Status = ObpOpenWorld(WoLocal, &View);
    return NT_SUCCESS(Status) ? ObpAsk(View, ProcessId, &Request) : Status;
}
