/* remote.c: handles of other processes. The theory is in remote.h. */
#include "remote.h"

#include "../ps/psp.h"

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

static NTSTATUS ObpExportHandle(PWO_VIEW View, PWO_REQUEST Request)
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
    ObpDropParcel(&Parcel);
    return Status;
}

/* The requesting process keeps the object alive meanwhile. The record is made with the shares locked, so none is dropped
   in between. */
static NTSTATUS ObpImportObject(PWO_VIEW View, WO_INDEX Index, PVOID *Object)
{
    PVOID Candidate = ObpBuildHeir(View, Index);
    NTSTATUS Status;
    if (Candidate == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    PKTHREAD Thread = ObpLockShares();
    Status = WoReferenceObject(View, Index);
    *Object = NT_SUCCESS(Status) ? ObpProxyOf(View, Index, WoTypeOf(View, Index), Candidate) : NULL;
    ObpUnlockShares(Thread);
    if (*Object != Candidate) {
        ObpDiscardProxy(Candidate);
    }
    return Status;
}

static NTSTATUS ObpImportHandle(PWO_VIEW View, PWO_REQUEST Request)
{
    OBP_PARCEL Parcel = {.GrantedAccess = Request->GrantedAccess, .Attributes = Request->Attributes};
    HANDLE Handle;
    NTSTATUS Status = Request->ProcessId != 0 ? ObpReceiveProcess(Request, &Parcel.Object)
                                              : ObpImportObject(View, Request->Object, &Parcel.Object);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpDeliverParcel(&Parcel, &Handle);
    Request->Handle = NT_SUCCESS(Status) ? HandleToULong(Handle) : 0;
    ObpDropParcel(&Parcel);
    return Status;
}

static VOID ObpServe(PWO_VIEW View, PWO_REQUEST Request)
{
    switch (Request->Kind) {
    case WoExportHandle:
        Request->Status = ObpExportHandle(View, Request);
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
}

static VOID ObpInitializeServer(VOID)
{
    WoSetServer(ObpServe);
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
    *Parcel = (OBP_PARCEL){NULL, Request.GrantedAccess, Request.Attributes, Request.ProcessId == 0};
    if (Request.ProcessId != 0) {
        return ObpReceiveProcess(&Request, &Parcel->Object);
    }
    Parcel->Object = ObpReceiveObject(View, Request.Object);
    if (Parcel->Object == NULL) {
        ObpReturnHandle(View, Request.Object);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    return STATUS_SUCCESS;
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
