/* create.c: from the attributes that a service gets to an open handle, and the objects that exist from the start. */
#include "share.h"

/* The attributes, checked. */
typedef struct _OBP_CAPTURE {
    ULONG Attributes;
    HANDLE RootDirectory;
    UNICODE_STRING Name;
} OBP_CAPTURE, *POBP_CAPTURE;

static NTSTATUS ObpCaptureAttributes(POBJECT_ATTRIBUTES Attributes, KPROCESSOR_MODE AccessMode, POBP_CAPTURE Capture)
{
    memset(Capture, 0, sizeof(*Capture));
    if (Attributes == NULL) {
        return STATUS_SUCCESS;
    }
    if (Attributes->Length != sizeof(*Attributes) || (Attributes->Attributes & ~(ULONG)OBJ_VALID_ATTRIBUTES)) {
        return STATUS_INVALID_PARAMETER;
    }
    PUNICODE_STRING Name = Attributes->ObjectName;
    Capture->Attributes = Attributes->Attributes & ~(AccessMode != KernelMode ? (ULONG)OBJ_KERNEL_HANDLE : 0u);
    Capture->RootDirectory = Attributes->RootDirectory;
    if (Name == NULL) {
        return Capture->RootDirectory == NULL ? STATUS_SUCCESS : STATUS_OBJECT_NAME_INVALID;
    }
    if (Name->Length % sizeof(WCHAR) != 0 || Name->Length > OBP_LONGEST_NAME) {
        return STATUS_OBJECT_NAME_INVALID;
    }
    if (Name->Length != 0 && Name->Buffer == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    Capture->Name = *Name;
    return STATUS_SUCCESS;
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

static NTSTATUS ObpFinishRequest(POBP_REQUEST Request, POBP_CAPTURE Capture, PHANDLE Handle)
{
    NTSTATUS Status;
    Request->Handle = ObpReserveHandle(Request->Attributes);
    if (Request->Handle == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (Request->NewObject == NULL || Capture->Name.Length != 0) {
        Status = ObpResolveFromRoot(Request, Capture);
    } else {
        ACCESS_MASK GrantedAccess;
        Status = ObpGrantAccess(Request->Type, Request->DesiredAccess, Request->AccessMode, &GrantedAccess);
        if (NT_SUCCESS(Status)) {
            ObpOpenReservedHandle(Request->Handle, Request->NewObject, Request->Attributes, GrantedAccess);
        }
    }
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
    *Handle = NULL;
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
    *Handle = NULL;
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

static NTSTATUS ObpOpenNamesDirectory(PHANDLE Handle)
{
    UNICODE_STRING Path = RTL_CONSTANT_STRING(u"\\BaseNamedObjects");
    OBJECT_ATTRIBUTES Attributes;
    InitializeObjectAttributes(&Attributes, &Path, 0, NULL, NULL);
    return ObpOpenHandleAs(KernelMode, &ObpDirectoryType, &Attributes, 0, Handle);
}

NTSTATUS ObpOpenBoundary(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, BOOLEAN Create,
                         PHANDLE Handle)
{
    OBP_BLUEPRINT Blueprint = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, NULL};
    OBP_CAPTURE Capture;
    OBP_REQUEST Request;
    HANDLE Root;
    NTSTATUS Status = ObpCaptureAttributes(Attributes, UserMode, &Capture);
    if (!NT_SUCCESS(Status) || !NT_SUCCESS(Status = ObpOpenNamesDirectory(&Root))) {
        return Status;
    }
    Capture.RootDirectory = Root;
    Capture.Name = *Boundary;
    ObpInitializeRequest(&Request, UserMode, &ObpDirectoryType, DesiredAccess, &Capture);
    Request.Boundary = TRUE;
    if (Create) {
        Status = ObpBuildObject(&Blueprint, &Request.NewObject);
    }
    if (NT_SUCCESS(Status)) {
        Status = ObpFinishRequest(&Request, &Capture, Handle);
    }
    if (Request.NewObject != NULL) {
        ObpDereferenceObjectEx(Request.NewObject, 1);
    }
    ObCloseHandle(Root, KernelMode);
    return Status;
}

NTSTATUS ObpRemoveBoundary(HANDLE Handle)
{
    PVOID Directory;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, &ObpDirectoryType, UserMode, &Directory, NULL);
    if (NT_SUCCESS(Status)) {
        ObpRemoveName(Directory);
        ObpDereferenceObjectEx(Directory, 1);
    }
    return Status;
}

/*
 * The objects that exist from the start. As in session 0 of Windows, names that begin with Global\, with Local\ and with
 * neither are in \BaseNamedObjects, which is the root of the user's world. If the machine has a world, Global\ leads to
 * its root. Session\<n>\ names another session; there is none.
 */
static UNICODE_STRING ObpNamesTarget = RTL_CONSTANT_STRING(u"\\BaseNamedObjects");
/* If the machine has a world; otherwise Global\ is ObpNamesTarget, too. */
static UNICODE_STRING ObpMachineTarget = RTL_CONSTANT_STRING(u"\\Sessions\\Machine");
static UNICODE_STRING ObpSessionsTarget = RTL_CONSTANT_STRING(u"\\Sessions\\BNOLINKS");

typedef struct _OBP_SYSTEM_NAME {
    PCWSTR Path;
    PUNICODE_STRING Target; /* NULL: a directory */
    OBP_WORLD_ROOT Root;    /* of a directory */
} OBP_SYSTEM_NAME;

static const OBP_SYSTEM_NAME ObpSystemNames[] = {
    {u"\\KernelObjects", NULL, ObpNoRoot},
    {u"\\Callback", NULL, ObpNoRoot},
    {u"\\Sessions", NULL, ObpNoRoot},
    {u"\\Sessions\\BNOLINKS", NULL, ObpNoRoot},
    {u"\\Sessions\\BNOLINKS\\0", &ObpNamesTarget, ObpNoRoot},
    {u"\\Sessions\\Machine", NULL, ObpMachineRoot},
    {u"\\BaseNamedObjects", NULL, ObpLocalRoot},
    {u"\\BaseNamedObjects\\Global", &ObpMachineTarget, ObpNoRoot},
    {u"\\BaseNamedObjects\\Local", &ObpNamesTarget, ObpNoRoot},
    {u"\\BaseNamedObjects\\Session", &ObpSessionsTarget, ObpNoRoot},
};

static POBP_SYSTEM_OBJECT volatile ObpFirstSystemObject;
static volatile BOOLEAN ObpSystemObjectsMade;

VOID ObpRegisterSystemObject(POBP_SYSTEM_OBJECT SystemObject)
{
    POBP_SYSTEM_OBJECT First = __atomic_load_n(&ObpFirstSystemObject, __ATOMIC_RELAXED);
    do {
        SystemObject->Next = First;
        /* release: pairs with the acquire load in ObpMakeSystemObjects */
    } while (!__atomic_compare_exchange_n(&ObpFirstSystemObject, &First, SystemObject, TRUE, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

static NTSTATUS ObpMakeSystemObject(PCWSTR Path, const OBP_BLUEPRINT *Blueprint)
{
    OBP_REQUEST Request = {
        .AccessMode = KernelMode, .Type = Blueprint->Type, .Attributes = OBJ_PERMANENT | OBJ_OPENIF, .Local = TRUE};
    UNICODE_STRING Name = {.Buffer = (PWSTR)Path};
    NTSTATUS Status;
    while (Path[Name.Length / sizeof(WCHAR)] != 0) {
        Name.Length += sizeof(WCHAR);
    }
    Status = ObpBuildObject(Blueprint, &Request.NewObject);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpResolveName(&Request, NULL, &Name);
    ObpDereferenceObjectEx(Request.NewObject, 1);
    return Status;
}

static NTSTATUS ObpMakeSystemName(const OBP_SYSTEM_NAME *Name, BOOLEAN Machine)
{
    PUNICODE_STRING Target = Name->Target == &ObpMachineTarget && !Machine ? &ObpNamesTarget : Name->Target;
    OBP_BLUEPRINT Directory = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, (PVOID)&Name->Root};
    OBP_BLUEPRINT Link = {&ObpSymbolicLinkType, Target != NULL ? ObpSymbolicLinkSize(Target) : 0,
                          ObpInitializeSymbolicLink, Target};
    return ObpMakeSystemObject(Name->Path, Target != NULL ? &Link : &Directory);
}

/* Threads may race here: each finds what the others have created. A failure is retried next time. */
static DECLSPEC_NOINLINE NTSTATUS ObpMakeSystemObjects(VOID)
{
    NTSTATUS Status = STATUS_SUCCESS;
    BOOLEAN Machine = WoHasMachineWorld();
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(ObpSystemNames) && NT_SUCCESS(Status); Index++) {
        Status = ObpMakeSystemName(&ObpSystemNames[Index], Machine);
    }
    POBP_SYSTEM_OBJECT Next = __atomic_load_n(&ObpFirstSystemObject, __ATOMIC_ACQUIRE);
    for (; Next != NULL && NT_SUCCESS(Status); Next = Next->Next) {
        Status = ObpMakeSystemObject(Next->Path, &Next->Blueprint);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    /* release: pairs with the acquire in ObpEnsureSystemObjects */
    __atomic_store_n(&ObpSystemObjectsMade, TRUE, __ATOMIC_RELEASE);
    return STATUS_SUCCESS;
}

VOID ObpEndSystemObjects(VOID)
{
    if (__atomic_exchange_n(&ObpSystemObjectsMade, FALSE, __ATOMIC_ACQUIRE)) {
        ObpEndPermanence();
    }
}

NTSTATUS ObpEnsureSystemObjects(VOID)
{
    return __atomic_load_n(&ObpSystemObjectsMade, __ATOMIC_ACQUIRE) ? STATUS_SUCCESS : ObpMakeSystemObjects();
}
