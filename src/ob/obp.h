/* obp.h: what the object manager keeps about objects, types and handles. */
#ifndef INTERLOCK_OBP_H
#define INTERLOCK_OBP_H

#include <interlock/ob.h>

#include "../ke/ki.h"

#define OBP_ALWAYS_SIGNALED (-1)

/* What the objects of one kind have in common. Types are never deleted. */
typedef struct _OBJECT_TYPE {
    PCSTR Name;
    GENERIC_MAPPING GenericMapping;
    ACCESS_MASK ValidAccessMask;
    LONG WaitOffset;                 /* where in the body the dispatcher header is that a wait by handle waits for;
                                        OBP_ALWAYS_SIGNALED: a wait by handle ends at once */
    BOOLEAN OwnsMemory;              /* the body is not freed after DeleteProcedure: its memory belongs to the type */
    VOID (*DeleteProcedure)(PVOID Object);
    VOID (*CloseProcedure)(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft);
    volatile ULONG TotalNumberOfObjects;
    volatile ULONG TotalNumberOfHandles;
} OBJECT_TYPE;

/*
 * In front of every object's body.
 *
 * 1. PointerCount counts who may use the body: pointers that were referenced, one for each handle, and what the handles
 *    hold in advance (handle.c). The body is deleted by the one who takes it to 0, and never comes back from 0.
 * 2. HandleCount is the number of handles, each of which has its share in PointerCount.
 */
typedef struct _OBJECT_HEADER {
    volatile LONG_PTR PointerCount;
    volatile LONG_PTR HandleCount;
    POBJECT_TYPE Type;
    struct _OBJECT_HEADER_NAME_INFO *NameInfo; /* NULL: the object has no name */
    UCHAR Body[] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
} OBJECT_HEADER, *POBJECT_HEADER;

C_ASSERT(sizeof(OBJECT_HEADER) <= KI_THREAD_PREFIX);
C_ASSERT(KI_THREAD_PREFIX % MEMORY_ALLOCATION_ALIGNMENT == 0);

FORCEINLINE POBJECT_HEADER ObpHeaderOf(PVOID Object)
{
    return CONTAINING_RECORD(Object, OBJECT_HEADER, Body);
}

extern OBJECT_TYPE ObpThreadType;
extern OBJECT_TYPE ObpProcessType;

/* object.c */
PVOID ObpCreateObject(POBJECT_TYPE Type, SIZE_T Size); /* zeroed, one reference; NULL when there is no memory */
VOID ObpInitializeObject(PVOID Object, POBJECT_TYPE Type);
LONG_PTR ObpReferenceObjectEx(PVOID Object, LONG_PTR Count);
LONG_PTR ObpDereferenceObjectEx(PVOID Object, LONG_PTR Count);

/* handle.c */
NTSTATUS ObpSetHandleAttributes(HANDLE Handle, BOOLEAN Inherit, BOOLEAN ProtectFromClose);

/* type.c */
ACCESS_MASK ObpMapGenericAccess(POBJECT_TYPE Type, ACCESS_MASK Access);

#endif
