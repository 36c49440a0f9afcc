/* obp.h: objects, types, handles and names. */
#ifndef INTERLOCK_OBP_H
#define INTERLOCK_OBP_H

#include <interlock/ob.h>

#include "../ke/ki.h"

#define OBP_ALWAYS_SIGNALED (-1)

/* A type of object. Types are never deleted. */
typedef struct _OBJECT_TYPE {
    PCSTR Name;
    GENERIC_MAPPING GenericMapping;
    ACCESS_MASK ValidAccessMask;
    ACCESS_MASK QueryRight;          /* implies the next one; 0: none */
    ACCESS_MASK QueryLimitedRight;
    ACCESS_MASK SetRight;
    ACCESS_MASK SetLimitedRight;
    ULONG InvalidAttributes;         /* OBJ_ flags that creating and opening refuse */
    LONG WaitOffset;                 /* of the dispatcher header that a wait by handle waits for, in the body;
                                        OBP_ALWAYS_SIGNALED: such a wait is satisfied immediately */
    BOOLEAN OwnsMemory;              /* DeleteProcedure frees the memory, or the type keeps it */
    BOOLEAN LineAligned;             /* bodies begin at a cache line: ObpPaddingOf */
    BOOLEAN CaseInsensitive;         /* names are looked up so even without OBJ_CASE_INSENSITIVE */
    UCHAR Index;                     /* assigned by ObpRegisterType */
    struct _OBJECT_TYPE *NextType;
    VOID (*WaitProcedure)(PVOID Object); /* updates the state before a wait by handle; NULL: always up to date */
    VOID (*DeleteProcedure)(PVOID Object);
    VOID (*CloseProcedure)(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft);
    const struct _OBP_SHARING *Sharing;  /* share.h; NULL: objects of this type belong to one process */
    volatile ULONG TotalNumberOfObjects;
    volatile ULONG TotalNumberOfHandles;
    volatile ULONG HighWaterNumberOfObjects;
    volatile ULONG HighWaterNumberOfHandles;
} OBJECT_TYPE;

/*
 * In front of every object's body.
 *
 * 1. PointerCount is the number of references: pointers, one for each handle, and the references that handles have
 *    prepaid (handle.c). The thread that makes it 0 deletes the object; the count never leaves 0.
 * 2. HandleCount is the number of handles, each of which is counted in PointerCount, too. OBP_SHARED in it: the object is
 *    shared with other processes (share.h).
 */
typedef struct _OBJECT_HEADER {
    volatile LONG_PTR PointerCount;
    volatile LONG_PTR HandleCount;
    POBJECT_TYPE Type;
    struct _OBJECT_HEADER_NAME_INFO *NameInfo; /* NULL: the object has no name */
    UCHAR Body[] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
} OBJECT_HEADER, *POBJECT_HEADER;

#define OBP_SHARED ((LONG_PTR)1 << 62)

FORCEINLINE LONG_PTR ObpHandlesOf(LONG_PTR HandleCount)
{
    return HandleCount & ~OBP_SHARED;
}

C_ASSERT(sizeof(OBJECT_HEADER) <= KI_THREAD_PREFIX);
C_ASSERT(KI_THREAD_PREFIX % MEMORY_ALLOCATION_ALIGNMENT == 0);

FORCEINLINE POBJECT_HEADER ObpHeaderOf(PVOID Object)
{
    return CONTAINING_RECORD(Object, OBJECT_HEADER, Body);
}

/* The unused bytes in front of the header. A completion port whose fields are on two lines costs a packet another transfer between
   distant cores (port-1x1: 204 ns instead of 146). */
FORCEINLINE SIZE_T ObpPaddingOf(POBJECT_TYPE Type)
{
    return Type->LineAligned ? KI_CACHE_LINE - sizeof(OBJECT_HEADER) : 0;
}

C_ASSERT(sizeof(OBJECT_HEADER) <= KI_CACHE_LINE);

/* Stands in for every object that is always signaled: a notification event that is always set. */
extern KEVENT ObpDefaultObject;

FORCEINLINE BOOLEAN ObpIsAlwaysSignaled(PVOID Object)
{
    return ObpHeaderOf(Object)->Type->WaitOffset == OBP_ALWAYS_SIGNALED;
}

/* The dispatcher header that a wait by handle waits for. */
FORCEINLINE PVOID ObpDispatcherObject(PVOID Object)
{
    LONG Offset = ObpHeaderOf(Object)->Type->WaitOffset;
    return __builtin_expect(Offset != OBP_ALWAYS_SIGNALED, 1) ? (PVOID)((PUCHAR)Object + Offset) : &ObpDefaultObject;
}

/* The same, with its state brought up to date. */
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
PVOID ObpCreateObject(POBJECT_TYPE Type, SIZE_T Size); /* zeroed, one reference; NULL: no memory */
VOID ObpInitializeObject(PVOID Object, POBJECT_TYPE Type);
VOID ObpCountUp(volatile ULONG *Count, volatile ULONG *Highest);
VOID ObpDiscardObject(PVOID Object); /* initialization failed: frees the memory, without DeleteProcedure */
LONG_PTR ObpReferenceObjectEx(PVOID Object, LONG_PTR Count);
LONG_PTR ObpDereferenceObjectEx(PVOID Object, LONG_PTR Count);
VOID ObpEndReferences(PVOID Object, LONG_PTR Left); /* the count reached zero, or underflowed */
struct _OBP_SHARE;
extern VOID (*ObpEndShareRoutine)(struct _OBP_SHARE *Share); /* share.c: the object leaves the table of proxies */

FORCEINLINE LONG_PTR ObpDereferenceObject(PVOID Object)
{
    /* acq_rel: everything done under any reference comes before the deletion */
    LONG_PTR Left = __atomic_sub_fetch(&ObpHeaderOf(Object)->PointerCount, 1, __ATOMIC_ACQ_REL);
    if (__builtin_expect(Left <= 0, FALSE)) {
        ObpEndReferences(Object, Left);
    }
    return Left;
}

/*
 * object.c: what every service that creates or opens an object does, from the attributes to the handle. Initialize runs
 * before the object is visible; if it fails, nothing has happened. If the name exists and OBJ_OPENIF allows it, that
 * object is opened instead: STATUS_OBJECT_NAME_EXISTS.
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

/* Private namespaces: directories that only their boundary leads to, a text that no path contains. */
NTSTATUS ObpOpenBoundary(PCUNICODE_STRING Boundary, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, BOOLEAN Create,
                         PHANDLE Handle);
NTSTATUS ObpRemoveBoundary(HANDLE Handle); /* from now on its boundary is unknown */

/* The same for user mode. */
NTSTATUS ObpCreateHandle(POBJECT_TYPE Type, SIZE_T BodySize, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess,
                         NTSTATUS (*Initialize)(PVOID Object, PVOID Context), PVOID Context, PHANDLE Handle);
NTSTATUS ObpOpenHandle(POBJECT_TYPE Type, POBJECT_ATTRIBUTES Attributes, ACCESS_MASK DesiredAccess, PHANDLE Handle);

/* handle.c. A reserved handle is not open yet; opening it cannot fail. */
HANDLE ObpReserveHandle(ULONG HandleAttributes); /* NULL: no memory, or too many handles */
VOID ObpOpenReservedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess);
/* The same for a handle that the world has counted already. */
VOID ObpOpenCountedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess);
VOID ObpChangeSharedHandles(PVOID Object, LONG Change); /* share.c */
VOID ObpCancelReservedHandle(HANDLE Handle);
NTSTATUS ObpSetHandleAttributes(HANDLE Handle, BOOLEAN Inherit, BOOLEAN ProtectFromClose); /* for user mode */
NTSTATUS ObpQueryHandleAttributes(HANDLE Handle, BOOLEAN *Inherit, BOOLEAN *ProtectFromClose);

/* The types, linked by NextType. */
extern POBJECT_TYPE volatile ObpFirstType;
VOID ObpRegisterType(POBJECT_TYPE Type);
ULONG ObpCountHandles(VOID); /* of all types */
ACCESS_MASK ObpMapGenericAccess(POBJECT_TYPE Type, ACCESS_MASK Access);
#define OBP_LONGEST_NAME 65532 /* bytes of a path, also after links were followed */
NTSTATUS ObpGrantAccess(POBJECT_TYPE Type, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                        PACCESS_MASK GrantedAccess);
/* For an existing object: it cannot be opened without any right. */
NTSTATUS ObpGrantOpen(POBJECT_TYPE Type, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                      PACCESS_MASK GrantedAccess);

/* Runs when the library is loaded, so a type is registered before its first object exists. */
#define OBP_REGISTER_TYPE(Type)                                                                                        \
    static VOID Type##Register(VOID)                                                                                   \
    {                                                                                                                  \
        ObpRegisterType(&(Type));                                                                                      \
    }                                                                                                                  \
    KI_INITIALIZER(KiInitializeObjects, Type##Register);                                                               \
    _Static_assert(sizeof(Type) == sizeof(OBJECT_TYPE), "one type")

/*
 * The handle table. A handle is the index of an entry times four. Entries live in leaves, leaves hang on branches,
 * branches on a root; leaves and branches are added when needed and never removed. The last indexes are those of kernel
 * handles (OBJ_KERNEL_HANDLE), whose values are in the upper half of the address space: the fast path of a lookup finds
 * no entry for such a value, nor for the next index, and the slow path finds it for kernel mode. An entry is two
 * words:
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
 * P: protected from close. I: inherited. Prepaid: references that the handle holds on the object in addition to its
 * own, for lookups. The requirements are in handle.c.
 */
#define OBP_LEAF 256
#define OBP_BRANCH 512
#define OBP_ROOT 128
#define OBP_KERNEL_ROOT 8 /* of them, the last */

#define OBP_HANDLE_LIMIT (OBP_LEAF * OBP_BRANCH * OBP_ROOT)
#define OBP_KERNEL_BASE (OBP_LEAF * OBP_BRANCH * (OBP_ROOT - OBP_KERNEL_ROOT)) /* no handle, as index 0 */
#define OBP_KERNEL_HANDLE 0xffffffff80000000ull
#define OBP_INHERIT 1ull
#define OBP_PROTECT 2ull
#define OBP_ATTRIBUTES (OBP_INHERIT | OBP_PROTECT)
#define OBP_BORROWABLE 4ull /* borrowed objects, below */
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

/* hidden: saves an indirection in lookups */
extern OBP_BRANCH_TABLE *volatile ObpRoot[OBP_ROOT] __attribute__((visibility("hidden")));

FORCEINLINE PVOID ObpObjectOf(ULONG64 Word)
{
    return (PVOID)(ULONG_PTR)(Word & OBP_ADDRESS);
}

FORCEINLINE ULONG ObpPrepaidOf(ULONG64 Word)
{
    return (ULONG)(Word >> 48);
}

/* NULL: the entry's leaf does not exist. */
FORCEINLINE POBP_HANDLE_ENTRY ObpEntryBelow(ULONG_PTR Index, ULONG_PTR Limit)
{
    OBP_BRANCH_TABLE *Branch;
    OBP_LEAF_TABLE *Leaf;
    if (Index - 1 >= Limit - 1) { /* 0 is no handle */
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

FORCEINLINE POBP_HANDLE_ENTRY ObpEntry(ULONG_PTR Index)
{
    return ObpEntryBelow(Index, OBP_HANDLE_LIMIT);
}

/* NULL also for a kernel handle. */
FORCEINLINE POBP_HANDLE_ENTRY ObpEntryOfHandle(HANDLE Handle)
{
    return ObpEntryBelow((ULONG_PTR)Handle >> 2, OBP_KERNEL_BASE);
}

FORCEINLINE BOOLEAN ObpIsKernelHandle(HANDLE Handle)
{
    return (ULONG_PTR)Handle >= OBP_KERNEL_HANDLE;
}

/* Accepts any reserved handle, and a value that may not be a handle. */
FORCEINLINE ULONG ObpIndexOfHandle(HANDLE Handle)
{
    ULONG_PTR Value = (ULONG_PTR)Handle;
    return ObpIsKernelHandle(Handle) ? OBP_KERNEL_BASE + (ULONG)((Value - OBP_KERNEL_HANDLE) >> 2) : (ULONG)Value >> 2;
}

FORCEINLINE HANDLE ObpHandleOfIndex(ULONG Index)
{
    ULONG_PTR Kernel = OBP_KERNEL_HANDLE + ((ULONG_PTR)(Index - OBP_KERNEL_BASE) << 2);
    return Index >= OBP_KERNEL_BASE ? (HANDLE)Kernel : ULongToHandle(Index << 2);
}

/* acquire: pairs with the release in ObpOpenReservedHandle and ObpPayInAdvance */
FORCEINLINE BOOLEAN ObpTakeOne(POBP_HANDLE_ENTRY Entry, ULONG64 *Word)
{
    return __atomic_compare_exchange_n(&Entry->Object, Word, *Word - OBP_PREPAID_ONE, TRUE, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* The slow path of ObReferenceObjectByHandle: reports why a handle is invalid. */
NTSTATUS ObpReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                    KPROCESSOR_MODE AccessMode, PVOID *Object,
                                    POBJECT_HANDLE_INFORMATION HandleInformation);

/*
 * The fast path of a lookup. NULL: it does not apply (the handle is not open, has another type or less access, is
 * running out of prepaid references, or another lookup interfered), and nothing has happened.
 */
FORCEINLINE PVOID ObpTryReferenceByHandle(HANDLE Handle, ACCESS_MASK RequiredAccess, POBJECT_TYPE ObjectType)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    if (__builtin_expect(Entry == NULL, FALSE)) {
        return NULL;
    }
    /* acquire: read before the compare-exchange in ObpTakeOne, which comes before the second read */
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

/* ObReferenceObjectByHandle, inline. */
FORCEINLINE NTSTATUS ObpReferenceByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                          KPROCESSOR_MODE AccessMode, PVOID *Object)
{
    *Object = ObpTryReferenceByHandle(Handle, AccessMode != KernelMode ? DesiredAccess : 0, ObjectType);
    return __builtin_expect(*Object != NULL, TRUE)
               ? STATUS_SUCCESS
               : ObpReferenceObjectByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object, NULL);
}

/*
 * Brief use of a handle's object without a reference.
 *
 * A lookup takes a reference from the handle's entry and returns it to the object: two locked operations, in calls that
 * often need only one more. A handle that is used so often that its prepaid references run out (OBP_BORROWABLE) is
 * borrowed instead: the thread stores its index in BorrowedHandle, reads the entry, changes the object by a single
 * compare-exchange (of a mutant also what only its owner changes), and clears BorrowedHandle. The closer of such a
 * handle pays with a barrier on all threads and a check of each thread.
 *
 * 1. A borrower stores BorrowedHandle, then loads the entry's Object. A closer sets Object to 0, executes a barrier on
 *    all threads, and then waits for each thread whose BorrowedHandle is this handle. So a borrower that has found the
 *    object is waited for before the handle's reference is dropped, and every other one finds the entry closed.
 * 2. The closer waits before it frees the entry. So the Access that a borrower reads belongs to the Object that it has
 *    found.
 * 3. A borrower is in a dispatcher section: it is neither suspended nor left behind by a fork, no APC runs, and so a closer
 *    never waits for itself. It does not block and takes no lock: what one compare-exchange cannot do is done with a
 *    reference instead, which it may take before it ends the borrowing. So a closer waits for a few instructions, or until
 *    the host lets the borrower run.
 * 4. OBP_BORROWABLE is set when an entry is prepaid again, after thousands of lookups, which amortize the closer's
 *    barrier.
 */

typedef struct _OBP_THREAD {
    volatile ULONG BorrowedHandle; /* the index of a handle; 0: none */
} OBP_THREAD;

KI_THREAD_ROOM(OBP_THREAD, Ob, ObpThread);

/* handle.c: requirements 1 and 2, for a closer. */
VOID ObpAwaitBorrowers(ULONG Index);

FORCEINLINE VOID ObpEndBorrowing(PKTHREAD Thread)
{
    /* release: pairs with the acquire in ObpAwaitBorrowers */
    __atomic_store_n(&ObpThread(Thread)->BorrowedHandle, 0, __ATOMIC_RELEASE);
    KiExitDispatcher(Thread);
}

/*
 * NULL: not borrowable, not open, not of that type, less access, or the thread already borrows (a signal handler);
 * nothing has happened, and a lookup reports the reason. Otherwise ObpEndBorrowing follows.
 */
FORCEINLINE PVOID ObpTryBorrowByHandle(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK RequiredAccess,
                                       POBJECT_TYPE ObjectType)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    /* relaxed: a hint, read again below */
    if (Entry == NULL || !(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) & OBP_BORROWABLE) ||
        ObpThread(Thread)->BorrowedHandle != 0) {
        return NULL;
    }
    KiEnterDispatcher(Thread);
    KiStoreBeforeLook(&ObpThread(Thread)->BorrowedHandle, ObpIndexOfHandle(Handle));
    /* seq_cst: after BorrowedHandle, with or without a barrier on all threads; also acquires what ObpFillEntry releases */
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_SEQ_CST);
    PVOID Object = ObpObjectOf(Word);
    /* relaxed: requirement 2 */
    if (__builtin_expect((Word & OBP_BORROWABLE) &&
                             !(RequiredAccess & ~(ACCESS_MASK)__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED)) &&
                             (ObjectType == NULL || ObpHeaderOf(Object)->Type == ObjectType), TRUE)) {
        return Object;
    }
    ObpEndBorrowing(Thread);
    return NULL;
}

/*
 * The names of objects. Names below \\BaseNamedObjects of types that processes share are in the world
 * (share.c); all others are kept here, for one process. A name exists once: a directory of the world has a proxy
 * here, whose own entries are looked up first.
 *
 * 1. A name is entered in one directory. The entry references the object and the object's name references the
 *    directory, so a directory lives as long as anything in it.
 * 2. A temporary object has its name as long as it has a handle. Entering, finding together with opening, and closing
 *    together with removing the name are single steps under one lock. So a name leads to an object whose handle count
 *    is not 0, or to a permanent one, and never to one that is being deleted; and of two threads that create the same
 *    name one finds the other's object.
 * 3. Under the lock nothing is allocated and no routine of a type is called: it is one of the kernel's own locks, held
 *    in a dispatcher section, so a forked child finds the names intact. From then on they are its own copy.
 * 4. All names are in one hash table, by directory and name without case. A directory links its entries in the order of
 *    insertion.
 */

#define OBP_SEPARATOR u'\\'

/* An object's name. The lock guards all but Capacity and the text. */
typedef struct _OBJECT_HEADER_NAME_INFO {
    struct _OBJECT_DIRECTORY *Directory; /* NULL: the name was removed */
    struct _OBJECT_HEADER_NAME_INFO *HashNext;
    LIST_ENTRY Sibling;
    PVOID Object;
    ULONG Hash;
    USHORT Length;                       /* in characters, like Capacity */
    USHORT Capacity;
    BOOLEAN Permanent;
    BOOLEAN Exclusive;
    struct _OBP_SHARE *Share;            /* share.h; NULL: the object is local. A proxy has no Directory, and in Name its path */
    WCHAR Name[];
} OBJECT_HEADER_NAME_INFO, *POBJECT_HEADER_NAME_INFO;

/* What the debugger reads of objects, their types, names and handles. */
#define OBP_LAYOUT                                                                                                     \
    sizeof(OBJECT_HEADER), KDP_MEMBER(OBJECT_HEADER, PointerCount), KDP_MEMBER(OBJECT_HEADER, HandleCount),            \
        KDP_MEMBER(OBJECT_HEADER, Type), KDP_MEMBER(OBJECT_HEADER, NameInfo), KDP_MEMBER(OBJECT_TYPE, Name),           \
        KDP_MEMBER(OBJECT_TYPE, WaitOffset), FIELD_OFFSET(OBJECT_HEADER_NAME_INFO, Name),                              \
        KDP_MEMBER(OBJECT_HEADER_NAME_INFO, Directory), KDP_MEMBER(OBJECT_HEADER_NAME_INFO, Length), OBP_ROOT,         \
        OBP_BRANCH, OBP_LEAF, sizeof(OBP_HANDLE_ENTRY), KDP_MEMBER(OBP_HANDLE_ENTRY, Object),                          \
        KDP_MEMBER(OBP_HANDLE_ENTRY, Access)

/* Root: the directory stands for the root of a world. A proxy is another directory of a world. */
typedef enum _OBP_WORLD_ROOT { ObpNoRoot, ObpLocalRoot, ObpMachineRoot } OBP_WORLD_ROOT;

typedef struct _OBJECT_DIRECTORY {
    LIST_ENTRY Entries;
    OBP_WORLD_ROOT Root;
} OBJECT_DIRECTORY, *POBJECT_DIRECTORY;

typedef struct _OBJECT_SYMBOLIC_LINK {
    LARGE_INTEGER CreationTime;
    USHORT Length;                       /* in characters */
    WCHAR Target[];
} OBJECT_SYMBOLIC_LINK, *POBJECT_SYMBOLIC_LINK;

extern OBJECT_TYPE ObpDirectoryType;
extern OBJECT_TYPE ObpSymbolicLinkType;

NTSTATUS ObpInitializeDirectory(PVOID Object, PVOID Context); /* Context: its OBP_WORLD_ROOT; NULL: none */
NTSTATUS ObpInitializeSymbolicLink(PVOID Object, PVOID Context); /* Context: the target, a UNICODE_STRING */
SIZE_T ObpSymbolicLinkSize(PCUNICODE_STRING Target);

/* What to do at the end of a path. */
typedef struct _OBP_REQUEST {
    KPROCESSOR_MODE AccessMode;
    POBJECT_TYPE Type;
    ULONG Attributes;
    ACCESS_MASK DesiredAccess;
    PVOID NewObject; /* entered if the name is free; NULL: only open what exists */
    HANDLE Handle;   /* reserved, and open after success; NULL: the name is enough */
    BOOLEAN Local;   /* the name is kept for this process */
    BOOLEAN Boundary; /* the name is one component, whatever it contains: a private namespace */
} OBP_REQUEST, *POBP_REQUEST;

/* RootDirectory: a directory that the caller holds a reference on, or NULL. */
NTSTATUS ObpResolveName(POBP_REQUEST Request, PVOID RootDirectory, PCUNICODE_STRING Name);

/* For objects that have a NameInfo. Attributes and permanence are those of the world if the object is shared. Closing returns
   the handles left; Unlinked: the directory's reference on the object now belongs to the caller. */
LONG_PTR ObpCloseNamedHandle(PVOID Object, BOOLEAN *Unlinked);
VOID ObpEndPermanence(VOID); /* when the process ends */
VOID ObpSetPermanent(PVOID Object, BOOLEAN Permanent);
VOID ObpRemoveName(PVOID Object); /* although it has handles */
ULONG ObpQueryNameAttributes(PVOID Object); /* of OBJ_PERMANENT and OBJ_EXCLUSIVE */

/* The full path, not terminated. *Length: its characters; 0: the object has no name. FALSE: it exceeds Capacity, and
   nothing is written. */
BOOLEAN ObpQueryPath(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length);

/* The entries from number Start on, in the directory's order, until Visit returns FALSE. Visit runs under the lock. */
typedef BOOLEAN OBP_VISIT(PCUNICODE_STRING Name, POBJECT_TYPE Type, PVOID Context);
VOID ObpVisitEntries(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context);

/* object.c: objects that exist from the start. They are registered when the library is loaded and created when the
   first name is looked up. */
typedef struct _OBP_SYSTEM_OBJECT {
    PCWSTR Path;
    OBP_BLUEPRINT Blueprint;
    struct _OBP_SYSTEM_OBJECT *Next;
} OBP_SYSTEM_OBJECT, *POBP_SYSTEM_OBJECT;

VOID ObpRegisterSystemObject(POBP_SYSTEM_OBJECT SystemObject);
NTSTATUS ObpEnsureSystemObjects(VOID);
VOID ObpEndSystemObjects(VOID); /* when the process ends */

#endif
