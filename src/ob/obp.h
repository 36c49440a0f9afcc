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
    ULONG InvalidAttributes;         /* OBJ_ flags that neither creating nor opening such an object knows */
    LONG WaitOffset;                 /* where in the body the dispatcher header is that a wait by handle waits for;
                                        OBP_ALWAYS_SIGNALED: a wait by handle ends at once */
    BOOLEAN OwnsMemory;              /* the body is not freed after DeleteProcedure: its memory belongs to the type */
    BOOLEAN CaseInsensitive;         /* names of such objects are looked up so, whether the caller says it or not */
    UCHAR Index;                     /* given by ObpRegisterType */
    struct _OBJECT_TYPE *NextType;
    VOID (*WaitProcedure)(PVOID Object); /* before a wait by handle looks at the state; NULL: the state is always right */
    VOID (*DeleteProcedure)(PVOID Object);
    VOID (*CloseProcedure)(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft);
    volatile ULONG TotalNumberOfObjects;
    volatile ULONG TotalNumberOfHandles;
    volatile ULONG HighWaterNumberOfObjects;
    volatile ULONG HighWaterNumberOfHandles;
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

/* Stands for every object that has nothing to wait for: a notification event that is always set. */
extern KEVENT ObpDefaultObject;

FORCEINLINE BOOLEAN ObpIsAlwaysSignaled(PVOID Object)
{
    return ObpHeaderOf(Object)->Type->WaitOffset == OBP_ALWAYS_SIGNALED;
}

/* What a wait by handle waits for. */
FORCEINLINE PVOID ObpDispatcherObject(PVOID Object)
{
    LONG Offset = ObpHeaderOf(Object)->Type->WaitOffset;
    return __builtin_expect(Offset != OBP_ALWAYS_SIGNALED, 1) ? (PVOID)((PUCHAR)Object + Offset) : &ObpDefaultObject;
}

/* The same, and its state is right when this returns. */
FORCEINLINE PVOID ObpWaitObject(PVOID Object)
{
    POBJECT_TYPE Type = ObpHeaderOf(Object)->Type;
    if (__builtin_expect(Type->WaitProcedure != NULL, 0)) {
        Type->WaitProcedure(Object);
    }
    return ObpDispatcherObject(Object);
}

extern OBJECT_TYPE ObpThreadType;
extern OBJECT_TYPE ObpProcessType;

/* object.c */
PVOID ObpCreateObject(POBJECT_TYPE Type, SIZE_T Size); /* zeroed, one reference; NULL when there is no memory */
VOID ObpInitializeObject(PVOID Object, POBJECT_TYPE Type);
VOID ObpCountUp(volatile ULONG *Count, volatile ULONG *Highest);
VOID ObpDiscardObject(PVOID Object); /* one that could not be initialised: its memory, not DeleteProcedure */
LONG_PTR ObpReferenceObjectEx(PVOID Object, LONG_PTR Count);
LONG_PTR ObpDereferenceObjectEx(PVOID Object, LONG_PTR Count);
VOID ObpEndReferences(PVOID Object, LONG_PTR Left); /* the last one was given back; or one that there was not */

FORCEINLINE LONG_PTR ObpDereferenceObject(PVOID Object)
{
    /* acq_rel: everything done under any reference comes before the deletion by whoever gives the last one back */
    LONG_PTR Left = __atomic_sub_fetch(&ObpHeaderOf(Object)->PointerCount, 1, __ATOMIC_ACQ_REL);
    if (__builtin_expect(Left <= 0, FALSE)) {
        ObpEndReferences(Object, Left);
    }
    return Left;
}

/*
 * create.c: what every service that creates or opens an object does, from the attributes to the handle. Initialize runs
 * before anybody can see the object, and when it fails nothing has happened. Where the name exists and OBJ_OPENIF
 * allows it, that object is opened instead: STATUS_OBJECT_NAME_EXISTS.
 */
typedef NTSTATUS OBP_INITIALIZE(PVOID Object, PVOID Context);

typedef struct _OBP_BLUEPRINT {
    POBJECT_TYPE Type;
    SIZE_T BodySize;
    OBP_INITIALIZE *Initialize;
    PVOID Context;
} OBP_BLUEPRINT, *POBP_BLUEPRINT;

NTSTATUS ObpBuildObject(const OBP_BLUEPRINT *Blueprint, PVOID *Object); /* with one reference */
NTSTATUS ObpCreateHandleAs(KPROCESSOR_MODE AccessMode, const OBP_BLUEPRINT *Blueprint, POBJECT_ATTRIBUTES Attributes,
                           ACCESS_MASK DesiredAccess, PHANDLE Handle);
NTSTATUS ObpOpenHandleAs(KPROCESSOR_MODE AccessMode, POBJECT_TYPE Type, POBJECT_ATTRIBUTES Attributes,
                         ACCESS_MASK DesiredAccess, PHANDLE Handle);

/* The same for user mode. */
NTSTATUS ObpCreateHandle(POBJECT_TYPE Type, SIZE_T BodySize, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess,
                         NTSTATUS (*Initialize)(PVOID Object, PVOID Context), PVOID Context, PHANDLE Handle);
NTSTATUS ObpOpenHandle(POBJECT_TYPE Type, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, PHANDLE Handle);

/* handle.c. A reserved handle is not open yet; opening it cannot fail. */
HANDLE ObpReserveHandle(VOID); /* NULL: no memory, or too many handles */
VOID ObpOpenReservedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess);
VOID ObpCancelReservedHandle(HANDLE Handle);
NTSTATUS ObpSetHandleAttributes(HANDLE Handle, BOOLEAN Inherit, BOOLEAN ProtectFromClose);
NTSTATUS ObpQueryHandleAttributes(HANDLE Handle, BOOLEAN *Inherit, BOOLEAN *ProtectFromClose);

/* type.c */
extern POBJECT_TYPE volatile ObpFirstType; /* all that are registered, by NextType */
VOID ObpRegisterType(POBJECT_TYPE Type);
ULONG ObpCountHandles(VOID); /* of all types */
ACCESS_MASK ObpMapGenericAccess(POBJECT_TYPE Type, ACCESS_MASK Access);
NTSTATUS ObpGrantAccess(POBJECT_TYPE Type, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                        PACCESS_MASK GrantedAccess);

/* When the library is loaded, so that a type is known before its first object is. */
#define OBP_REGISTER_TYPE(Type)                                                                                        \
    static VOID Type##Register(VOID)                                                                                   \
    {                                                                                                                  \
        ObpRegisterType(&(Type));                                                                                      \
    }                                                                                                                  \
    KI_INITIALIZER(KiInitializeObjects, Type##Register);                                                               \
    _Static_assert(sizeof(Type) == sizeof(OBJECT_TYPE), "one type")

#endif
