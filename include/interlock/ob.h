/* ob.h: the object manager. References, handles, types. */
#ifndef INTERLOCK_OB_H
#define INTERLOCK_OB_H

#include <interlock/fastref.h>
#include <interlock/ke.h>

INTERLOCK_BEGIN

typedef struct _OBJECT_TYPE *POBJECT_TYPE;
typedef struct _ACCESS_STATE *PACCESS_STATE;

typedef struct _OBJECT_HANDLE_INFORMATION {
    ULONG HandleAttributes;
    ACCESS_MASK GrantedAccess;
} OBJECT_HANDLE_INFORMATION, *POBJECT_HANDLE_INFORMATION;

extern NTKERNELAPI POBJECT_TYPE *ExEventObjectType;
extern NTKERNELAPI POBJECT_TYPE *ExSemaphoreObjectType;

/* What a handle's attributes may have beside OBJ_INHERIT. */
#define OBJ_PROTECT_CLOSE 0x00000001

/* Handles that stand for the caller's own process and thread without being in the handle table. */
#define NtCurrentProcess() ((HANDLE)(LONG_PTR)-1)
#define ZwCurrentProcess() NtCurrentProcess()
#define NtCurrentThread() ((HANDLE)(LONG_PTR)-2)
#define ZwCurrentThread() NtCurrentThread()

/* References. An object lives as long as its pointer count is above 0; every handle counts too. */

NTKERNELAPI LONG_PTR ObfReferenceObject(PVOID Object);
NTKERNELAPI LONG_PTR ObfDereferenceObject(PVOID Object);
NTKERNELAPI VOID ObDereferenceObjectDeferDelete(PVOID Object);
NTKERNELAPI BOOLEAN ObReferenceObjectSafe(PVOID Object);
NTKERNELAPI NTSTATUS ObReferenceObjectByPointer(PVOID Object, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                                KPROCESSOR_MODE AccessMode);
NTKERNELAPI POBJECT_TYPE ObGetObjectType(PVOID Object);
NTKERNELAPI VOID ObMakeTemporaryObject(PVOID Object);
#define ObReferenceObject ObfReferenceObject
#define ObDereferenceObject ObfDereferenceObject

/*
 * Fast references (interlock/fastref.h). Initialising and replacing take over one reference of the caller's on the
 * object; replacing returns the old object with the one that the caller has to give back, after it has acquired and
 * released exclusively the lock under which others call the locked form. They do that when the plain form returns NULL.
 */

NTKERNELAPI VOID ObInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object);
NTKERNELAPI PVOID ObFastReferenceObject(PEX_FAST_REF FastRef);
NTKERNELAPI PVOID ObFastReferenceObjectLocked(PEX_FAST_REF FastRef);
NTKERNELAPI VOID ObFastDereferenceObject(PEX_FAST_REF FastRef, PVOID Object);
NTKERNELAPI PVOID ObFastReplaceObject(PEX_FAST_REF FastRef, PVOID Object);

/* Handles. */

NTKERNELAPI NTSTATUS ObOpenObjectByPointer(PVOID Object, ULONG HandleAttributes, PACCESS_STATE PassedAccessState,
                                           ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                           KPROCESSOR_MODE AccessMode, PHANDLE Handle);
NTKERNELAPI NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                               KPROCESSOR_MODE AccessMode, PVOID *Object,
                                               POBJECT_HANDLE_INFORMATION HandleInformation);
NTKERNELAPI NTSTATUS ObCloseHandle(HANDLE Handle, KPROCESSOR_MODE PreviousMode);
NTSYSAPI NTSTATUS ZwClose(HANDLE Handle);

INTERLOCK_END

#endif
