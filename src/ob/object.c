/*
 * object.c: the types of objects, objects and their reference counts, and fast references; from the attributes that a
 * service gets to an open handle; and the objects that exist from the start.
 */
#include <interlock/ex.h>

#include "../ke/debugdata.h"
#include "../ke/verifier.h"
#include "share.h"

#define OBP_FIRST_TYPE_INDEX 2 /* 0 is none, 1 is no longer used */
#define OBP_FEW_FAST_REFS 3

POBJECT_TYPE volatile ObpFirstType;
VOID (*ObpEndShareRoutine)(struct _OBP_SHARE *Share);

KEVENT ObpDefaultObject = {
    .Header = {
        .Type = EventNotificationObject,
        .Size = sizeof(KEVENT) / sizeof(LONG),
        .SignalState = 1,
        .WaitListHead = {&ObpDefaultObject.Header.WaitListHead, &ObpDefaultObject.Header.WaitListHead},
    },
};
KD_REGISTER_ROOT(ObpFirstType);

VOID ObpRegisterType(POBJECT_TYPE Type)
{
    POBJECT_TYPE First = __atomic_load_n(&ObpFirstType, __ATOMIC_RELAXED);
    do {
        Type->NextType = First;
        Type->Index = First != NULL ? First->Index + 1 : OBP_FIRST_TYPE_INDEX;
        /* release: pairs with the acquire load of threads that walk the list */
    } while (!__atomic_compare_exchange_n(&ObpFirstType, &First, Type, TRUE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

ULONG ObpCountHandles(VOID)
{
    ULONG Handles = 0;
    /* acquire: pairs with the release in ObpRegisterType */
    for (POBJECT_TYPE Type = __atomic_load_n(&ObpFirstType, __ATOMIC_ACQUIRE); Type != NULL; Type = Type->NextType) {
        Handles += __atomic_load_n(&Type->TotalNumberOfHandles, __ATOMIC_RELAXED);
    }
    return Handles;
}

/* Until ps replaces it. */
static VOID ObpDeleteThread(PVOID Object)
{
    KiFreeThread(Object);
}

OBJECT_TYPE ObpThreadType = {
    .Name = "Thread",
    .GenericMapping = {STANDARD_RIGHTS_READ | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION,
                       STANDARD_RIGHTS_WRITE | THREAD_TERMINATE | THREAD_SUSPEND_RESUME | THREAD_ALERT |
                           THREAD_SET_INFORMATION | THREAD_SET_LIMITED_INFORMATION | THREAD_SET_CONTEXT,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION | THREAD_RESUME,
                       THREAD_ALL_ACCESS},
    .ValidAccessMask = THREAD_ALL_ACCESS,
    .QueryRight = THREAD_QUERY_INFORMATION,
    .QueryLimitedRight = THREAD_QUERY_LIMITED_INFORMATION,
    .SetRight = THREAD_SET_INFORMATION,
    .SetLimitedRight = THREAD_SET_LIMITED_INFORMATION,
    .InvalidAttributes = OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF,
    .OwnsMemory = TRUE,
    .DeleteProcedure = ObpDeleteThread,
};

OBP_REGISTER_TYPE(ObpThreadType);

OBJECT_TYPE ObpProcessType = {
    .Name = "Process",
    .GenericMapping = {STANDARD_RIGHTS_READ | PROCESS_VM_READ | PROCESS_QUERY_INFORMATION,
                       STANDARD_RIGHTS_WRITE | PROCESS_CREATE_PROCESS | PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION |
                           PROCESS_VM_WRITE | PROCESS_DUP_HANDLE | PROCESS_SET_QUOTA |
                           PROCESS_SET_INFORMATION | PROCESS_SUSPEND_RESUME,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_TERMINATE,
                       PROCESS_ALL_ACCESS},
    .ValidAccessMask = PROCESS_ALL_ACCESS,
    .QueryRight = PROCESS_QUERY_INFORMATION,
    .QueryLimitedRight = PROCESS_QUERY_LIMITED_INFORMATION,
    .SetRight = PROCESS_SET_INFORMATION,
    .SetLimitedRight = PROCESS_SET_LIMITED_INFORMATION,
    .InvalidAttributes = OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF,
    .OwnsMemory = TRUE,
};

OBP_REGISTER_TYPE(ObpProcessType);

ACCESS_MASK ObpMapGenericAccess(POBJECT_TYPE Type, ACCESS_MASK Access)
{
    static const ACCESS_MASK Generic = GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE | GENERIC_ALL;
    ACCESS_MASK Mapped = Access & ~(Generic | MAXIMUM_ALLOWED);
    if (Access & GENERIC_READ) {
        Mapped |= Type->GenericMapping.GenericRead;
    }
    if (Access & GENERIC_WRITE) {
        Mapped |= Type->GenericMapping.GenericWrite;
    }
    if (Access & GENERIC_EXECUTE) {
        Mapped |= Type->GenericMapping.GenericExecute;
    }
    if (Access & (GENERIC_ALL | MAXIMUM_ALLOWED)) {
        Mapped |= Type->GenericMapping.GenericAll;
    }
    return Mapped;
}

NTSTATUS ObpGrantAccess(POBJECT_TYPE Type, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                        PACCESS_MASK GrantedAccess)
{
    ACCESS_MASK Access = ObpMapGenericAccess(Type, DesiredAccess);
    if (Access & Type->QueryRight) {
        Access |= Type->QueryLimitedRight;
    }
    if (Access & Type->SetRight) {
        Access |= Type->SetLimitedRight;
    }
    if (AccessMode != KernelMode) {
        if (Access & ACCESS_SYSTEM_SECURITY) {
            return STATUS_PRIVILEGE_NOT_HELD;
        }
        if (Access & ~Type->ValidAccessMask) {
            return STATUS_ACCESS_DENIED;
        }
    }
    *GrantedAccess = Access & Type->ValidAccessMask;
    return STATUS_SUCCESS;
}

NTSTATUS ObpGrantOpen(POBJECT_TYPE Type, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                      PACCESS_MASK GrantedAccess)
{
    return AccessMode != KernelMode && DesiredAccess == 0
               ? STATUS_ACCESS_DENIED
               : ObpGrantAccess(Type, DesiredAccess, AccessMode, GrantedAccess);
}

/* Objects. */

VOID ObpCountUp(volatile ULONG *Count, volatile ULONG *Highest)
{
    /* relaxed, all: for display only */
    ULONG Now = __atomic_add_fetch(Count, 1, __ATOMIC_RELAXED);
    ULONG High = __atomic_load_n(Highest, __ATOMIC_RELAXED);
    while (Now > High &&
           !__atomic_compare_exchange_n(Highest, &High, Now, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

VOID ObpInitializeObject(PVOID Object, POBJECT_TYPE Type)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    Header->Type = Type;
    Header->NameInfo = NULL;
    __atomic_store_n(&Header->HandleCount, 0, __ATOMIC_RELAXED);
    ObpCountUp(&Type->TotalNumberOfObjects, &Type->HighWaterNumberOfObjects);
    /* release: pairs with ObReferenceObjectSafe on memory that held another object before */
    __atomic_store_n(&Header->PointerCount, 1, __ATOMIC_RELEASE);
}

PVOID ObpCreateObject(POBJECT_TYPE Type, SIZE_T Size)
{
    SIZE_T Padding = ObpPaddingOf(Type);
    PUCHAR Memory = HalAllocate(Padding + sizeof(OBJECT_HEADER) + Size,
                                Type->LineAligned ? KI_CACHE_LINE : MEMORY_ALLOCATION_ALIGNMENT);
    if (Memory == NULL) {
        return NULL;
    }
    POBJECT_HEADER Header = (POBJECT_HEADER)(Memory + Padding);
    if (KiVerifierEnabled) {
        KiNoteNewMemory(Header->Body, Size);
    }
    ObpInitializeObject(Header->Body, Type);
    return Header->Body;
}

static PVOID ObpMemoryOf(POBJECT_HEADER Header, POBJECT_TYPE Type)
{
    return (PUCHAR)Header - ObpPaddingOf(Type);
}

static DECLSPEC_NORETURN VOID ObpBadReferenceCount(POBJECT_HEADER Header, LONG_PTR Count)
{
    KeBugCheckEx(REFERENCE_BY_POINTER, (ULONG_PTR)Header->Type, (ULONG_PTR)Header->Body, (ULONG_PTR)Count, 0);
}

static VOID ObpDeleteObject(POBJECT_HEADER Header)
{
    POBJECT_TYPE Type = Header->Type;
    BOOLEAN OwnsMemory = Type->OwnsMemory;
    POBJECT_HEADER_NAME_INFO Info = Header->NameInfo;
    struct _OBP_SHARE *Share = Info != NULL ? Info->Share : NULL;
    if (ObpHandlesOf(__atomic_load_n(&Header->HandleCount, __ATOMIC_RELAXED)) != 0) {
        ObpBadReferenceCount(Header, 0);
    }
    __atomic_fetch_sub(&Type->TotalNumberOfObjects, 1, __ATOMIC_RELAXED);
    if (Share != NULL) {
        ObpEndShareRoutine(Share); /* before the memory is freed: the table has its address */
    }
    if (Type->DeleteProcedure != NULL) {
        Type->DeleteProcedure(Header->Body);
    }
    if (!OwnsMemory) {
        SIZE_T Padding = ObpPaddingOf(Type);
        PVOID Memory = ObpMemoryOf(Header, Type);
        if (KiVerifierEnabled) {
            SIZE_T Size = HalQueryAllocationSize(Memory);
            KiVerifyFreed(Memory, Size != 0 ? Size : Padding + sizeof(OBJECT_HEADER) + sizeof(DISPATCHER_HEADER), TRUE);
        }
        HalFree(Memory);
    }
    HalFree(Share);
    HalFree(Info);
}

VOID ObpDiscardObject(PVOID Object)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBJECT_TYPE Type = Header->Type;
    __atomic_fetch_sub(&Type->TotalNumberOfObjects, 1, __ATOMIC_RELAXED);
    HalFree(ObpMemoryOf(Header, Type));
}

LONG_PTR ObpReferenceObjectEx(PVOID Object, LONG_PTR Count)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    /* relaxed: the caller's own reference keeps the object */
    LONG_PTR Previous = __atomic_fetch_add(&Header->PointerCount, Count, __ATOMIC_RELAXED);
    if (Previous <= 0) {
        ObpBadReferenceCount(Header, Previous);
    }
    return Previous + Count;
}

VOID ObpEndReferences(PVOID Object, LONG_PTR Left)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    if (Left < 0) {
        ObpBadReferenceCount(Header, Left);
    }
    ObpDeleteObject(Header);
}

LONG_PTR ObpDereferenceObjectEx(PVOID Object, LONG_PTR Count)
{
    /* acq_rel: see ObpDereferenceObject */
    LONG_PTR Left = __atomic_sub_fetch(&ObpHeaderOf(Object)->PointerCount, Count, __ATOMIC_ACQ_REL);
    if (Left <= 0) {
        ObpEndReferences(Object, Left);
    }
    return Left;
}

LONG_PTR ObfReferenceObject(PVOID Object)
{
    return ObpReferenceObjectEx(Object, 1);
}

LONG_PTR ObfDereferenceObject(PVOID Object)
{
    return ObpDereferenceObject(Object);
}

VOID ObDereferenceObjectDeferDelete(PVOID Object)
{
    ObpDereferenceObjectEx(Object, 1);
}

BOOLEAN ObReferenceObjectSafe(PVOID Object)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    LONG_PTR Count = __atomic_load_n(&Header->PointerCount, __ATOMIC_RELAXED);
    while (Count > 0) {
        /* acquire: pairs with the release in ObpInitializeObject */
        if (__atomic_compare_exchange_n(&Header->PointerCount, &Count, Count + 1, TRUE, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return TRUE;
        }
    }
    return FALSE;
}

NTSTATUS ObReferenceObjectByPointer(PVOID Object, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                    KPROCESSOR_MODE AccessMode)
{
    UNREFERENCED_PARAMETER(DesiredAccess);
    if (ObpHeaderOf(Object)->Type != ObjectType && (ObjectType != NULL || AccessMode != KernelMode)) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    ObpReferenceObjectEx(Object, 1);
    return STATUS_SUCCESS;
}

POBJECT_TYPE ObGetObjectType(PVOID Object)
{
    return ObpHeaderOf(Object)->Type;
}

static VOID ObpInitializeThreadObject(PKTHREAD Thread)
{
    ObpInitializeObject(Thread, &ObpThreadType);
}

static VOID ObpDereferenceThreadObject(PKTHREAD Thread)
{
    ObpDereferenceObjectEx(Thread, 1);
}

/* Every thread gets an object header when it is adopted. Here, because users of reference counts link this file. */
static VOID ObpInitializeSystem(VOID)
{
    ObpInitializeObject(&KiInitialProcess, &ObpProcessType);
    KiThreadObjectRoutines.Initialize = ObpInitializeThreadObject;
    KiThreadObjectRoutines.Dereference = ObpDereferenceThreadObject;
}
KI_INITIALIZER(KiInitializeObjects, ObpInitializeSystem);

/*
 * Fast references to objects. The theory of the word is in src/ex/fastref.c.
 *
 * 1. Initializing and replacing take over one reference of the caller's on the new object; replacing returns the one on
 *    the old object to the caller. References prepaid on the old object are repaid.
 * 2. A reference is taken from the word as long as it has one. NULL: it has none, or no object. Then the caller
 *    acquires the word's lock, shared, and uses the locked form. A replacer acquires and releases the same lock
 *    exclusively between replacing and dereferencing the old object.
 * 3. A thread that takes the last cached reference, or leaves few, prepays more; its own reference makes that safe.
 *    References that do not fit into the word are returned to the object.
 * 4. References are neither lost nor gained: while no thread is in here, the object's count is R + 1 + N.
 */
VOID ObInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object)
{
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, MAX_FAST_REFS);
    }
    ExInitializeFastReference(FastRef, Object);
}

/* With a reference on Object. */
static VOID ObpRefillFastReference(PEX_FAST_REF FastRef, PVOID Object, ULONG Count)
{
    ULONG Kept;
    ObpReferenceObjectEx(Object, Count);
    Kept = ExInsertFastReference(FastRef, Object, Count);
    if (Kept != 0) {
        ObpDereferenceObjectEx(Object, Kept);
    }
}

PVOID ObFastReferenceObject(PEX_FAST_REF FastRef)
{
    EX_FAST_REF Old = ExAcquireFastReference(FastRef);
    ULONG Count = ExGetCountFastReference(Old);
    PVOID Object = ExGetObjectFastReference(Old);
    if (Count == 0) {
        return NULL;
    }
    /* One thread refills each time the count runs low, and another one if it runs out meanwhile. */
    if (Count - 1 == OBP_FEW_FAST_REFS || Count - 1 == 0) {
        ObpRefillFastReference(FastRef, Object, MAX_FAST_REFS - (Count - 1));
    }
    return Object;
}

PVOID ObFastReferenceObjectLocked(PEX_FAST_REF FastRef)
{
    /* acquire: the object as its writer left it */
    EX_FAST_REF Now = {.Value = __atomic_load_n(&FastRef->Value, __ATOMIC_ACQUIRE)};
    PVOID Object = ExGetObjectFastReference(Now);
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, 1);
        ObpRefillFastReference(FastRef, Object, MAX_FAST_REFS);
    }
    return Object;
}

VOID ObFastDereferenceObject(PEX_FAST_REF FastRef, PVOID Object)
{
    if (!ExReleaseFastReference(FastRef, Object)) {
        ObpDereferenceObjectEx(Object, 1);
    }
}

PVOID ObFastReplaceObject(PEX_FAST_REF FastRef, PVOID Object)
{
    EX_FAST_REF Old;
    if (Object != NULL) {
        ObpReferenceObjectEx(Object, MAX_FAST_REFS);
    }
    Old = ExSwapFastReference(FastRef, Object);
    if (ExGetCountFastReference(Old) != 0) {
        ObpDereferenceObjectEx(ExGetObjectFastReference(Old), ExGetCountFastReference(Old));
    }
    return ExGetObjectFastReference(Old);
}

/* Creating and opening objects. */

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

NTSTATUS ObpOpenBoundary(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, BOOLEAN Create,
                         PHANDLE Handle)
{
    OBP_BLUEPRINT Blueprint = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, NULL};
    OBP_CAPTURE Capture;
    OBP_REQUEST Request;
    UNICODE_STRING Path = RTL_CONSTANT_STRING(u"\\BaseNamedObjects");
    OBJECT_ATTRIBUTES Names;
    HANDLE Root;
    NTSTATUS Status = ObpCaptureAttributes(Attributes, UserMode, &Capture);
    if (NT_SUCCESS(Status)) {
        InitializeObjectAttributes(&Names, &Path, 0, NULL, NULL);
        Status = ObpOpenHandleAs(KernelMode, &ObpDirectoryType, &Names, 0, &Root);
    }
    if (!NT_SUCCESS(Status)) {
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

/* Threads may race here: each finds what the others have created. A failure is retried next time. */
static DECLSPEC_NOINLINE NTSTATUS ObpMakeSystemObjects(VOID)
{
    NTSTATUS Status = STATUS_SUCCESS;
    BOOLEAN Machine = WoHasMachineWorld();
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(ObpSystemNames) && NT_SUCCESS(Status); Index++) {
        const OBP_SYSTEM_NAME *Name = &ObpSystemNames[Index];
        PUNICODE_STRING Target = Name->Target == &ObpMachineTarget && !Machine ? &ObpNamesTarget : Name->Target;
        OBP_BLUEPRINT Directory = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, (PVOID)&Name->Root};
        OBP_BLUEPRINT Link = {&ObpSymbolicLinkType, Target != NULL ? ObpSymbolicLinkSize(Target) : 0,
                              ObpInitializeSymbolicLink, Target};
        Status = ObpMakeSystemObject(Name->Path, Target != NULL ? &Link : &Directory);
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
