/* systemobject.c: directories, symbolic links, and those of them that are there from the beginning. */
#include "namespace.h"

OBJECT_TYPE ObpDirectoryType = {
    .Name = "Directory",
    .GenericMapping = {STANDARD_RIGHTS_READ | DIRECTORY_QUERY | DIRECTORY_TRAVERSE,
                       STANDARD_RIGHTS_WRITE | DIRECTORY_CREATE_OBJECT | DIRECTORY_CREATE_SUBDIRECTORY,
                       STANDARD_RIGHTS_EXECUTE | DIRECTORY_QUERY | DIRECTORY_TRAVERSE, DIRECTORY_ALL_ACCESS},
    .ValidAccessMask = DIRECTORY_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .CaseInsensitive = TRUE,
};

OBJECT_TYPE ObpSymbolicLinkType = {
    .Name = "SymbolicLink",
    .GenericMapping = {STANDARD_RIGHTS_READ | SYMBOLIC_LINK_QUERY, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYMBOLIC_LINK_QUERY, SYMBOLIC_LINK_ALL_ACCESS},
    .ValidAccessMask = SYMBOLIC_LINK_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .CaseInsensitive = TRUE,
};

OBP_REGISTER_TYPE(ObpDirectoryType);
OBP_REGISTER_TYPE(ObpSymbolicLinkType);

NTSTATUS ObpInitializeDirectory(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    InitializeListHead(&((POBJECT_DIRECTORY)Object)->Entries);
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

/*
 * The process is a session of its own, number 0, and so as in session 0 of Windows what begins with Global\, with
 * Local\ and with neither is in \BaseNamedObjects. Session\<n>\ is for naming another session; there is none.
 */
static UNICODE_STRING ObpNamesTarget = RTL_CONSTANT_STRING(u"\\BaseNamedObjects");
static UNICODE_STRING ObpSessionsTarget = RTL_CONSTANT_STRING(u"\\Sessions\\BNOLINKS");

static const struct {
    PCWSTR Path;
    PUNICODE_STRING Target; /* NULL: a directory */
} ObpSystemNames[] = {
    {u"\\KernelObjects", NULL},
    {u"\\Sessions", NULL},
    {u"\\Sessions\\BNOLINKS", NULL},
    {u"\\Sessions\\BNOLINKS\\0", &ObpNamesTarget},
    {u"\\BaseNamedObjects", NULL},
    {u"\\BaseNamedObjects\\Global", &ObpNamesTarget},
    {u"\\BaseNamedObjects\\Local", &ObpNamesTarget},
    {u"\\BaseNamedObjects\\Session", &ObpSessionsTarget},
};

static POBP_SYSTEM_OBJECT volatile ObpFirstSystemObject;
static volatile BOOLEAN ObpSystemObjectsMade;

VOID ObpRegisterSystemObject(POBP_SYSTEM_OBJECT SystemObject)
{
    POBP_SYSTEM_OBJECT First = __atomic_load_n(&ObpFirstSystemObject, __ATOMIC_RELAXED);
    do {
        SystemObject->Next = First;
        /* release: pairs with the acquire load in ObpEnsureSystemObjects */
    } while (!__atomic_compare_exchange_n(&ObpFirstSystemObject, &First, SystemObject, TRUE, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

static NTSTATUS ObpMakeSystemObject(PCWSTR Path, const OBP_BLUEPRINT *Blueprint)
{
    OBP_REQUEST Request = {
        .AccessMode = KernelMode, .Type = Blueprint->Type, .Attributes = OBJ_PERMANENT | OBJ_OPENIF};
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

static NTSTATUS ObpMakeSystemName(PCWSTR Path, PUNICODE_STRING Target)
{
    OBP_BLUEPRINT Directory = {&ObpDirectoryType, sizeof(OBJECT_DIRECTORY), ObpInitializeDirectory, NULL};
    if (Target == NULL) {
        return ObpMakeSystemObject(Path, &Directory);
    }
    OBP_BLUEPRINT Link = {&ObpSymbolicLinkType, ObpSymbolicLinkSize(Target), ObpInitializeSymbolicLink, Target};
    return ObpMakeSystemObject(Path, &Link);
}

/* Several threads may come here at once: each finds what the others have made. What failed is tried again next time. */
static DECLSPEC_NOINLINE NTSTATUS ObpMakeSystemObjects(VOID)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(ObpSystemNames) && NT_SUCCESS(Status); Index++) {
        Status = ObpMakeSystemName(ObpSystemNames[Index].Path, ObpSystemNames[Index].Target);
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

NTSTATUS ObpEnsureSystemObjects(VOID)
{
    return __atomic_load_n(&ObpSystemObjectsMade, __ATOMIC_ACQUIRE) ? STATUS_SUCCESS : ObpMakeSystemObjects();
}
