/* type.c: the types of objects. */
#include "obp.h"

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
    .OwnsMemory = TRUE,
    .DeleteProcedure = ObpDeleteThread,
};

OBJECT_TYPE ObpProcessType = {
    .Name = "Process",
    .GenericMapping = {STANDARD_RIGHTS_READ | PROCESS_VM_READ | PROCESS_QUERY_INFORMATION,
                       STANDARD_RIGHTS_WRITE | PROCESS_CREATE_PROCESS | PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION |
                           PROCESS_VM_WRITE | PROCESS_DUP_HANDLE | PROCESS_TERMINATE | PROCESS_SET_QUOTA |
                           PROCESS_SET_INFORMATION | PROCESS_SUSPEND_RESUME,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_TERMINATE,
                       PROCESS_ALL_ACCESS},
    .ValidAccessMask = PROCESS_ALL_ACCESS,
    .OwnsMemory = TRUE,
};

static OBJECT_TYPE ObpEventType = {
    .Name = "Event",
    .GenericMapping = {STANDARD_RIGHTS_READ | EVENT_QUERY_STATE, STANDARD_RIGHTS_WRITE | EVENT_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, EVENT_ALL_ACCESS},
    .ValidAccessMask = EVENT_ALL_ACCESS,
};

static OBJECT_TYPE ObpSemaphoreType = {
    .Name = "Semaphore",
    .GenericMapping = {STANDARD_RIGHTS_READ | SEMAPHORE_QUERY_STATE, STANDARD_RIGHTS_WRITE | SEMAPHORE_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, SEMAPHORE_ALL_ACCESS},
    .ValidAccessMask = SEMAPHORE_ALL_ACCESS,
};

static POBJECT_TYPE ObpEventTypePointer = &ObpEventType;
static POBJECT_TYPE ObpSemaphoreTypePointer = &ObpSemaphoreType;

POBJECT_TYPE *ExEventObjectType = &ObpEventTypePointer;
POBJECT_TYPE *ExSemaphoreObjectType = &ObpSemaphoreTypePointer;

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
