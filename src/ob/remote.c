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
