/* ob.h: the object manager. References, types, handles. Handles are multiples of 4; their low two bits are ignored. */
#ifndef INTERLOCK_OB_H
#define INTERLOCK_OB_H

#include <interlock/ex.h>

INTERLOCK_BEGIN

typedef struct _OBJECT_TYPE *POBJECT_TYPE;
typedef struct _ACCESS_STATE *PACCESS_STATE;

typedef struct _OBJECT_HANDLE_INFORMATION {
    ULONG HandleAttributes;
    ACCESS_MASK GrantedAccess;
} OBJECT_HANDLE_INFORMATION, *POBJECT_HANDLE_INFORMATION;

typedef struct _OBJECT_NAME_INFORMATION {
    UNICODE_STRING Name; /* its characters follow, with a terminating zero */
} OBJECT_NAME_INFORMATION, *POBJECT_NAME_INFORMATION;

/* Object types. For ObReferenceObjectByHandle and similar functions. */

/* The types of events and semaphores. Since NT 3.1. */
extern NTKERNELAPI POBJECT_TYPE *ExEventObjectType;
extern NTKERNELAPI POBJECT_TYPE *ExSemaphoreObjectType;

/* A handle attribute, as is OBJ_INHERIT. */
#define OBJ_PROTECT_CLOSE 0x00000001

/* Pseudo handles of the caller's process and thread, which are not in the handle table. */
#define NtCurrentProcess() ((HANDLE)(LONG_PTR)-1)
#define ZwCurrentProcess() NtCurrentProcess()
#define NtCurrentThread() ((HANDLE)(LONG_PTR)-2)
#define ZwCurrentThread() NtCurrentThread()

/* References. An object lives while its reference count is above 0; every handle holds a reference. */

/* Adds a reference and returns the new count; ObReferenceObject is a macro for it. Since NT 3.5. */
NTKERNELAPI LONG_PTR ObfReferenceObject(PVOID Object);

/* Drops a reference and returns the new count; the last one deletes the object. ObDereferenceObject is a macro for it.
   Since NT 3.5. */
NTKERNELAPI LONG_PTR ObfDereferenceObject(PVOID Object);

/* Drops a reference, for callers that hold locks which the deletion may need. Differs: deletes on the calling thread,
   not later on a worker. Since Vista. */
NTKERNELAPI VOID ObDereferenceObjectDeferDelete(PVOID Object);

/* Adds a reference unless the last one is gone. Returns TRUE if it did. Since 8. */
NTKERNELAPI BOOLEAN ObReferenceObjectSafe(PVOID Object);

/* Checks the object's type and adds a reference. Returns STATUS_OBJECT_TYPE_MISMATCH for another type. Since NT 3.1. */
NTKERNELAPI NTSTATUS ObReferenceObjectByPointer(PVOID Object, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                                KPROCESSOR_MODE AccessMode);

/* Returns the type of an object. Since 7. */
NTKERNELAPI POBJECT_TYPE ObGetObjectType(PVOID Object);

/* Stores the full name of an object, empty if it has none, and the length that it needs. Returns
   STATUS_INFO_LENGTH_MISMATCH if Length is too small. Since NT 3.1. */
NTKERNELAPI NTSTATUS ObQueryNameString(PVOID Object, POBJECT_NAME_INFORMATION ObjectNameInfo, ULONG Length,
                                       PULONG ReturnLength);

/* Makes a permanent object temporary: it loses its name with its last handle. Since NT 3.1. */
NTKERNELAPI VOID ObMakeTemporaryObject(PVOID Object);
#define ObReferenceObject ObfReferenceObject
#define ObDereferenceObject ObfDereferenceObject

/* The same with a tag that names the holder of the reference. Differs: tags are not recorded. Since 7. */
FORCEINLINE LONG_PTR ObfReferenceObjectWithTag(PVOID Object, ULONG Tag)
{
    (void)Tag;
    return ObfReferenceObject(Object);
}
FORCEINLINE LONG_PTR ObfDereferenceObjectWithTag(PVOID Object, ULONG Tag)
{
    (void)Tag;
    return ObfDereferenceObject(Object);
}
FORCEINLINE VOID ObDereferenceObjectDeferDeleteWithTag(PVOID Object, ULONG Tag)
{
    (void)Tag;
    ObDereferenceObjectDeferDelete(Object);
}
FORCEINLINE NTSTATUS ObReferenceObjectByPointerWithTag(PVOID Object, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                                       KPROCESSOR_MODE AccessMode, ULONG Tag)
{
    (void)Tag;
    return ObReferenceObjectByPointer(Object, DesiredAccess, ObjectType, AccessMode);
}
#define ObReferenceObjectWithTag ObfReferenceObjectWithTag
#define ObDereferenceObjectWithTag ObfDereferenceObjectWithTag

/*
 * Fast references to objects. Built on those of ex.h; Windows does not export them. Readers that get NULL from
 * ObFastReferenceObject call the locked form, under a lock that a replacer acquires and releases exclusively before it
 * drops the old object's reference.
 */

/* Initializes a fast reference and takes over one reference of the caller. Since XP. */
NTKERNELAPI VOID ObInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* References and returns the object, usually without touching it. NULL: use the locked form. Since XP. */
NTKERNELAPI PVOID ObFastReferenceObject(PEX_FAST_REF FastRef);

/* References and returns the object under the lock. Since XP. */
NTKERNELAPI PVOID ObFastReferenceObjectLocked(PEX_FAST_REF FastRef);

/* Returns a reference to the cache or to the object. Since XP. */
NTKERNELAPI VOID ObFastDereferenceObject(PEX_FAST_REF FastRef, PVOID Object);

/* Replaces the object, taking over one reference of the caller. Returns the old object; the caller drops that reference
   after it has held the lock exclusively. Since XP. */
NTKERNELAPI PVOID ObFastReplaceObject(PEX_FAST_REF FastRef, PVOID Object);

/* Callback objects. A notification calls the registered routines, in the order of their registration. */

typedef struct _CALLBACK_OBJECT *PCALLBACK_OBJECT;
typedef VOID CALLBACK_FUNCTION(PVOID CallbackContext, PVOID Argument1, PVOID Argument2);
typedef CALLBACK_FUNCTION *PCALLBACK_FUNCTION;

/* Opens the callback object with this name, or with Create TRUE creates one that does not exist, or one without a name.
   Stores it with a reference. As with every object, the name lasts as long as a handle unless OBJ_PERMANENT is given.
   Returns STATUS_OBJECT_NAME_NOT_FOUND, or STATUS_UNSUCCESSFUL to open one without a name. Differs: the system's own
   callbacks (\Callback\SetSystemTime, PowerState, ProcessorAdd) exist and are never notified. Since NT 4.0. */
NTKERNELAPI NTSTATUS ExCreateCallback(PCALLBACK_OBJECT *CallbackObject, POBJECT_ATTRIBUTES ObjectAttributes,
                                      BOOLEAN Create, BOOLEAN AllowMultipleCallbacks);

/* Registers a routine, which is called at the IRQL of the notification. Returns the handle that unregisters it; NULL
 * if memory is exhausted, or if the object allows one routine and has one. Up to APC_LEVEL. Since NT 4.0. */
NTKERNELAPI PVOID ExRegisterCallback(PCALLBACK_OBJECT CallbackObject, PCALLBACK_FUNCTION CallbackFunction,
                                     PVOID CallbackContext);

/* Ends a registration, and waits until the routine no longer runs. Not from the routine itself. Up to APC_LEVEL. Since
   NT 4.0. */
NTKERNELAPI VOID ExUnregisterCallback(PVOID CallbackRegistration);

/* Calls the registered routines with two arguments. Up to DISPATCH_LEVEL. Since NT 4.0. */
NTKERNELAPI VOID ExNotifyCallback(PVOID CallbackObject, PVOID Argument1, PVOID Argument2);

/* Handles. */

/* Opens a handle to an object. Returns STATUS_OBJECT_TYPE_MISMATCH or STATUS_ACCESS_DENIED on failure. At
   PASSIVE_LEVEL. Differs: PassedAccessState is ignored. Since NT 3.1. */
NTKERNELAPI NTSTATUS ObOpenObjectByPointer(PVOID Object, ULONG HandleAttributes, PACCESS_STATE PassedAccessState,
                                           ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                           KPROCESSOR_MODE AccessMode, PHANDLE Handle);

/* Returns the object of a handle with a reference. Checks, in this order: STATUS_INVALID_HANDLE,
   STATUS_OBJECT_TYPE_MISMATCH, and for user mode STATUS_ACCESS_DENIED. Since NT 3.1. */
NTKERNELAPI NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                               KPROCESSOR_MODE AccessMode, PVOID *Object,
                                               POBJECT_HANDLE_INFORMATION HandleInformation);

/* ObReferenceObjectByHandle with a tag that says who holds the reference. Differs: tags are not recorded. Since 7. */
FORCEINLINE NTSTATUS ObReferenceObjectByHandleWithTag(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                                      KPROCESSOR_MODE AccessMode, ULONG Tag, PVOID *Object,
                                                      POBJECT_HANDLE_INFORMATION HandleInformation)
{
    (void)Tag;
    return ObReferenceObjectByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object, HandleInformation);
}

/* Closes a handle. Returns STATUS_INVALID_HANDLE or STATUS_HANDLE_NOT_CLOSABLE on failure. A kernel handle
   (OBJ_KERNEL_HANDLE) is invalid for user mode. Since XP. */
NTKERNELAPI NTSTATUS ObCloseHandle(HANDLE Handle, KPROCESSOR_MODE PreviousMode);

/* Closes a handle from kernel mode. Differs: a bad handle is a bugcheck only with the verifier. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwClose(HANDLE Handle);

INTERLOCK_END

#endif
