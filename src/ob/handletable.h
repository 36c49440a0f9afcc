/*
 * handletable.h: how handles are kept.
 *
 * A handle is the index of an entry times four. Entries live in leaves, leaves hang on branches, branches on a root
 * that is always there; leaves and branches are added when they are needed and never taken away. An entry is two words:
 *
 *      63          48 47                              4  3  2   1    0
 *     +--------------+---------------------------------+-----+----+----+
 *     |   Prepaid    |  the object's address           |  0  | P  | I  |    Object; 0: the handle is not open
 *     +--------------+---------------------------------+-----+----+----+
 *      63                            32 31                            0
 *     +--------------------------------+-------------------------------+
 *     |           Incarnation          | GrantedAccess, or next free   |    Access
 *     +--------------------------------+-------------------------------+
 *
 * P: protected from close. I: inherited. Prepaid: references that the handle has already taken on the object, beside
 * the one of its own, for lookups to take away.
 */
#ifndef INTERLOCK_HANDLETABLE_H
#define INTERLOCK_HANDLETABLE_H

#include "obp.h"

#define OBP_LEAF 256
#define OBP_BRANCH 512
#define OBP_ROOT 128

#define OBP_HANDLE_LIMIT (OBP_LEAF * OBP_BRANCH * OBP_ROOT)
#define OBP_INHERIT 1ull
#define OBP_PROTECT 2ull
#define OBP_ATTRIBUTES (OBP_INHERIT | OBP_PROTECT)
#define OBP_ADDRESS 0x0000fffffffffff0ull

typedef struct _OBP_HANDLE_ENTRY {
    volatile ULONG64 Object;
    volatile ULONG64 Access;
} OBP_HANDLE_ENTRY, *POBP_HANDLE_ENTRY;

typedef struct _OBP_LEAF_TABLE {
    OBP_HANDLE_ENTRY Entry[OBP_LEAF];
} OBP_LEAF_TABLE;

typedef struct _OBP_BRANCH_TABLE {
    OBP_LEAF_TABLE *volatile Leaf[OBP_BRANCH];
} OBP_BRANCH_TABLE;

#define OBP_PREPAID_ONE (1ull << 48)
#define OBP_PREPAID_FEW 0x400u

/* hidden: spares the lookups an indirection */
extern OBP_BRANCH_TABLE *volatile ObpRoot[OBP_ROOT] __attribute__((visibility("hidden")));

FORCEINLINE PVOID ObpObjectOf(ULONG64 Word)
{
    return (PVOID)(ULONG_PTR)(Word & OBP_ADDRESS);
}

FORCEINLINE ULONG ObpPrepaidOf(ULONG64 Word)
{
    return (ULONG)(Word >> 48);
}

/* Where the entry with this index is or would be: NULL if its leaf does not exist. */
FORCEINLINE POBP_HANDLE_ENTRY ObpEntry(ULONG_PTR Index)
{
    OBP_BRANCH_TABLE *Branch;
    OBP_LEAF_TABLE *Leaf;
    if (Index - 1 >= OBP_HANDLE_LIMIT - 1) { /* 0 is no handle */
        return NULL;
    }
    /* acquire, both: pair with the release in ObpPublish */
    Branch = __atomic_load_n(&ObpRoot[Index / (OBP_LEAF * OBP_BRANCH)], __ATOMIC_ACQUIRE);
    if (__builtin_expect(Branch == NULL, FALSE)) {
        return NULL;
    }
    Leaf = __atomic_load_n(&Branch->Leaf[Index / OBP_LEAF % OBP_BRANCH], __ATOMIC_ACQUIRE);
    return __builtin_expect(Leaf != NULL, TRUE) ? &Leaf->Entry[Index % OBP_LEAF] : NULL;
}

FORCEINLINE POBP_HANDLE_ENTRY ObpEntryOfHandle(HANDLE Handle)
{
    return ObpEntry((ULONG_PTR)Handle >> 2);
}

/* acquire: pairs with the release in ObpOpenEntry and ObpPayInAdvance */
FORCEINLINE BOOLEAN ObpTakeOne(POBP_HANDLE_ENTRY Entry, ULONG64 *Word)
{
    return __atomic_compare_exchange_n(&Entry->Object, Word, *Word - OBP_PREPAID_ONE, TRUE, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* ObReferenceObjectByHandle, the whole of it; it says what is wrong with a handle. */
NTSTATUS ObpReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                    KPROCESSOR_MODE AccessMode, PVOID *Object,
                                    POBJECT_HANDLE_INFORMATION HandleInformation);

/*
 * A lookup that meets nothing unusual. NULL: it has met something (a handle that is not open or not good for this, or
 * that is running out of prepaid references, or another lookup at the same instant), and nothing has happened.
 */
FORCEINLINE PVOID ObpTryReferenceByHandle(HANDLE Handle, ACCESS_MASK RequiredAccess, POBJECT_TYPE ObjectType)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    if (__builtin_expect(Entry == NULL, FALSE)) {
        return NULL;
    }
    /* acquire: read before the compare-exchange in ObpTakeOne, which itself comes before the second read */
    ULONG64 Access = __atomic_load_n(&Entry->Access, __ATOMIC_ACQUIRE);
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED);
    if (__builtin_expect((RequiredAccess & ~(ACCESS_MASK)Access) != 0 || ObpPrepaidOf(Word) <= OBP_PREPAID_FEW ||
                             !ObpTakeOne(Entry, &Word), FALSE)) {
        return NULL;
    }
    PVOID Object = ObpObjectOf(Word);
    if (__builtin_expect(__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Access &&
                             (ObjectType == NULL || ObpHeaderOf(Object)->Type == ObjectType), TRUE)) {
        return Object;
    }
    ObpDereferenceObject(Object);
    return NULL;
}

/* As ObReferenceObjectByHandle, in place. */
FORCEINLINE NTSTATUS ObpReferenceByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                          KPROCESSOR_MODE AccessMode, PVOID *Object)
{
    *Object = ObpTryReferenceByHandle(Handle, AccessMode != KernelMode ? DesiredAccess : 0, ObjectType);
    return __builtin_expect(*Object != NULL, TRUE)
               ? STATUS_SUCCESS
               : ObpReferenceObjectByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object, NULL);
}

#endif
