/* create.c: from the attributes that a service was given to an open handle. */
#include "namespace.h"

/* What a service was given, checked. */
typedef struct _OBP_CAPTURE {
    ULONG Attributes;
    HANDLE RootDirectory;
    UNICODE_STRING Name;
} OBP_CAPTURE, *POBP_CAPTURE;

static NTSTATUS ObpCaptureName(PUNICODE_STRING Name, POBP_CAPTURE Capture)
{
    if (Name == NULL) {
        return Capture->RootDirectory == NULL ? STATUS_SUCCESS : STATUS_OBJECT_NAME_INVALID;
    }
    if (Name->Length % sizeof(WCHAR) != 0) {
        return STATUS_OBJECT_NAME_INVALID;
    }
    if (Name->Length != 0 && Name->Buffer == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    Capture->Name = *Name;
    return STATUS_SUCCESS;
}

static NTSTATUS ObpCaptureAttributes(POBJECT_ATTRIBUTES Attributes, KPROCESSOR_MODE AccessMode, POBP_CAPTURE Capture)
{
    memset(Capture, 0, sizeof(*Capture));
    if (Attributes == NULL) {
        return STATUS_SUCCESS;
    }
    if (Attributes->Length != sizeof(*Attributes) || (Attributes->Attributes & ~(ULONG)OBJ_VALID_ATTRIBUTES)) {
        return STATUS_INVALID_PARAMETER;
    }
    Capture->Attributes = Attributes->Attributes & ~(AccessMode != KernelMode ? (ULONG)OBJ_KERNEL_HANDLE : 0u);
    Capture->RootDirectory = Attributes->RootDirectory;
    return ObpCaptureName(Attributes->ObjectName, Capture);
}

NTSTATUS ObpBuildObject(const OBP_BLUEPRINT *Blueprint, PVOID *Object)
{
    NTSTATUS Status = STATUS_SUCCESS;
    PVOID Built = ObpCreateObject(Blueprint->Type, Blueprint->BodySize);
    if (Built == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (Blueprint->Initialize != NULL) {
        Status = Blueprint->Initialize(Built, Blueprint->Context);
    }
    if (!NT_SUCCESS(Status)) {
        ObpDiscardObject(Built);
        return Status;
    }
    *Object = Built;
    return STATUS_SUCCESS;
}

static NTSTATUS ObpResolveFromRoot(POBP_REQUEST Request, POBP_CAPTURE Capture)
{
    PVOID RootDirectory = NULL;
    NTSTATUS Status = ObpEnsureSystemObjects();
    if (NT_SUCCESS(Status) && Capture->RootDirectory != NULL) {
        Status = ObReferenceObjectByHandle(Capture->RootDirectory, 0, NULL, Request->AccessMode, &RootDirectory, NULL);
    }
    if (NT_SUCCESS(Status)) {
        Status = ObpResolveName(Request, RootDirectory, &Capture->Name);
    }
    if (RootDirectory != NULL) {
        ObpDereferenceObjectEx(RootDirectory, 1);
    }
    return Status;
}

static NTSTATUS ObpOpenUnnamed(POBP_REQUEST Request)
{
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status = ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
    if (NT_SUCCESS(Status)) {
        ObpOpenReservedHandle(Request->Handle, Request->NewObject, Request->Attributes, GrantedAccess);
    }
    return Status;
}

static NTSTATUS ObpFinishRequest(POBP_REQUEST Request, POBP_CAPTURE Capture, PHANDLE Handle)
{
    BOOLEAN Named = Request->NewObject == NULL || Capture->Name.Length != 0;
    NTSTATUS Status;
    Request->Handle = ObpReserveHandle();
    if (Request->Handle == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = Named ? ObpResolveFromRoot(Request, Capture) : ObpOpenUnnamed(Request);
    if (NT_SUCCESS(Status)) {
        *Handle = Request->Handle;
    } else {
        ObpCancelReservedHandle(Request->Handle);
    }
    return Status;
}

static VOID ObpInitializeRequest(POBP_REQUEST Request, KPROCESSOR_MODE AccessMode, POBJECT_TYPE Type,
                                 ACCESS_MASK DesiredAccess, POBP_CAPTURE Capture)
{
    *Request = (OBP_REQUEST){.AccessMode = Capture->Attributes & OBJ_FORCE_ACCESS_CHECK ? UserMode : AccessMode,
                             .Type = Type,
                             .Attributes = Capture->Attributes,
                             .DesiredAccess = DesiredAccess};
}

NTSTATUS ObpCreateHandleAs(KPROCESSOR_MODE AccessMode, const OBP_BLUEPRINT *Blueprint, POBJECT_ATTRIBUTES Attributes,
                           ACCESS_MASK DesiredAccess, PHANDLE Handle)
{
    OBP_CAPTURE Capture;
    OBP_REQUEST Request;
    NTSTATUS Status;
    if (Handle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    Status = ObpCaptureAttributes(Attributes, AccessMode, &Capture);
    if (NT_SUCCESS(Status) && (Capture.Attributes & Blueprint->Type->InvalidAttributes)) {
        Status = STATUS_INVALID_PARAMETER;
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    ObpInitializeRequest(&Request, AccessMode, Blueprint->Type, DesiredAccess, &Capture);
    Status = ObpBuildObject(Blueprint, &Request.NewObject);
    if (NT_SUCCESS(Status)) {
        Status = ObpFinishRequest(&Request, &Capture, Handle);
        ObpDereferenceObjectEx(Request.NewObject, 1);
    }
    return Status;
}

NTSTATUS ObpOpenHandleAs(KPROCESSOR_MODE AccessMode, POBJECT_TYPE Type, POBJECT_ATTRIBUTES Attributes,
                         ACCESS_MASK DesiredAccess, PHANDLE Handle)
{
    OBP_CAPTURE Capture;
    OBP_REQUEST Request;
    NTSTATUS Status;
    if (Handle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Attributes == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Status = ObpCaptureAttributes(Attributes, AccessMode, &Capture);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    ObpInitializeRequest(&Request, AccessMode, Type, DesiredAccess, &Capture);
    return ObpFinishRequest(&Request, &Capture, Handle);
}

NTSTATUS ObpCreateHandle(POBJECT_TYPE Type, SIZE_T BodySize, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess,
                         NTSTATUS (*Initialize)(PVOID Object, PVOID Context), PVOID Context, PHANDLE Handle)
{
    OBP_BLUEPRINT Blueprint = {Type, BodySize, Initialize, Context};
    return ObpCreateHandleAs(UserMode, &Blueprint, Attributes, DesiredAccess, Handle);
}

NTSTATUS ObpOpenHandle(POBJECT_TYPE Type, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, PHANDLE Handle)
{
    return ObpOpenHandleAs(UserMode, Type, Attributes, DesiredAccess, Handle);
}
