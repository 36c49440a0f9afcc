/* type.c: the types of objects. */
#include "obp.h"

#include "../ke/debugdata.h"

#define OBP_FIRST_TYPE_INDEX 2 /* 0 is none, 1 no longer used */

POBJECT_TYPE volatile ObpFirstType;

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
        /* release: pairs with the acquire load of who walks the list */
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

static VOID ObpDeleteThread(PVOID Object)
{
    KiFreeThread(Object);
}

OBJECT_TYPE ObpThreadType = {
    .Name = "Thread",
    .GenericMapping = {STANDARD_RIGHTS_READ | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION,
                       STANDARD_RIGHTS_WRITE | THREAD_TERMINATE | THREAD_SUSPEND_RESUME | THREAD_ALERT |
                           THREAD_SET_INFORMATION | THREAD_SET_CONTEXT,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE | THREAD_QUERY_LIMITED_INFORMATION | THREAD_RESUME,
                       THREAD_ALL_ACCESS},
    .ValidAccessMask = THREAD_ALL_ACCESS,
    .InvalidAttributes = OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF,
    .OwnsMemory = TRUE,
    .DeleteProcedure = ObpDeleteThread,
};

OBP_REGISTER_TYPE(ObpThreadType);

OBJECT_TYPE ObpProcessType = {
    .Name = "Process",
    .GenericMapping = {STANDARD_RIGHTS_READ | PROCESS_VM_READ | PROCESS_QUERY_INFORMATION,
                       STANDARD_RIGHTS_WRITE | PROCESS_CREATE_PROCESS | PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION |
                           PROCESS_VM_WRITE | PROCESS_DUP_HANDLE | PROCESS_TERMINATE | PROCESS_SET_QUOTA |
                           PROCESS_SET_INFORMATION | PROCESS_SUSPEND_RESUME,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_TERMINATE,
                       PROCESS_ALL_ACCESS},
    .ValidAccessMask = PROCESS_ALL_ACCESS,
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
