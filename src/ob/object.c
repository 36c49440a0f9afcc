/* object.c: objects and their reference counts. */
#include "obp.h"

VOID ObpCountUp(volatile ULONG *Count, volatile ULONG *Highest)
{
    /* relaxed, all: numbers to be shown, on which nothing depends */
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
    POBJECT_HEADER Header = HalAllocate(sizeof(OBJECT_HEADER) + Size, MEMORY_ALLOCATION_ALIGNMENT);
    if (Header == NULL) {
        return NULL;
    }
    ObpInitializeObject(Header->Body, Type);
    return Header->Body;
}

static DECLSPEC_NORETURN VOID ObpBadReferenceCount(POBJECT_HEADER Header, LONG_PTR Count)
{
    KeBugCheckEx(REFERENCE_BY_POINTER, (ULONG_PTR)Header->Type, (ULONG_PTR)Header->Body, (ULONG_PTR)Count, 0);
}

static VOID ObpDeleteObject(POBJECT_HEADER Header)
{
    POBJECT_TYPE Type = Header->Type;
    BOOLEAN OwnsMemory = Type->OwnsMemory;
    if (__atomic_load_n(&Header->HandleCount, __ATOMIC_RELAXED) != 0) {
        ObpBadReferenceCount(Header, 0);
    }
    __atomic_fetch_sub(&Type->TotalNumberOfObjects, 1, __ATOMIC_RELAXED);
    HalFree(Header->NameInfo);
    if (Type->DeleteProcedure != NULL) {
        Type->DeleteProcedure(Header->Body);
    }
    if (!OwnsMemory) {
        HalFree(Header);
    }
}

VOID ObpDiscardObject(PVOID Object)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    __atomic_fetch_sub(&Header->Type->TotalNumberOfObjects, 1, __ATOMIC_RELAXED);
    HalFree(Header);
}

LONG_PTR ObpReferenceObjectEx(PVOID Object, LONG_PTR Count)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    /* relaxed: the caller has a reference already, which is what keeps the object */
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

/* Every thread gets an object header when it is adopted. Here, because whoever uses the reference counts of objects links
   this file. */
static VOID ObpInitializeSystem(VOID)
{
    ObpInitializeObject(&KiInitialProcess, &ObpProcessType);
    KiThreadObjectRoutines.Initialize = ObpInitializeThreadObject;
    KiThreadObjectRoutines.Dereference = ObpDereferenceThreadObject;
}
KI_INITIALIZER(KiInitializeObjects, ObpInitializeSystem);
