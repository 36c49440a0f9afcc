/*
 * namespace.h: the names of objects. Everything that knows how names are kept is behind this header; they are kept for
 * one process.
 *
 * 1. A name is entered in one directory. The entry refers to the object, and the object's name refers to the directory,
 *    so a directory lives as long as anything in it.
 * 2. A temporary object has its name as long as it has a handle. Entering, finding together with opening, and closing
 *    together with taking the name away are single steps under one lock. So a name leads to an object whose handle
 *    count is not 0, or, if it is permanent, to one that keeps its name, and never to one that is being deleted; and of
 *    two that create the same name one finds the other's object.
 * 3. Nothing is allocated and no routine of a type is called under the lock: it is one of the kernel's own, held inside
 *    a dispatcher section, so a forked child finds the names whole. They are its own copy from then on.
 * 4. All names are in one hash table, by directory and name without regard to case, with their directory's entries
 *    linked in the order in which they came.
 */
#ifndef INTERLOCK_NAMESPACE_H
#define INTERLOCK_NAMESPACE_H

#include "obp.h"

#define OBP_SEPARATOR u'\\'

/* An object's name. All but Capacity and what Name holds is guarded by the lock. */
typedef struct _OBJECT_HEADER_NAME_INFO {
    struct _OBJECT_DIRECTORY *Directory; /* NULL: the name has been taken away */
    struct _OBJECT_HEADER_NAME_INFO *HashNext;
    LIST_ENTRY Sibling;
    PVOID Object;
    ULONG Hash;
    USHORT Length;                       /* in characters, as Capacity */
    USHORT Capacity;
    BOOLEAN Permanent;
    BOOLEAN Exclusive;
    WCHAR Name[];
} OBJECT_HEADER_NAME_INFO, *POBJECT_HEADER_NAME_INFO;

/* What a debugger reads of objects, their types, names and handles. */
#define OBP_LAYOUT                                                                                                     \
    sizeof(OBJECT_HEADER), KDP_MEMBER(OBJECT_HEADER, PointerCount), KDP_MEMBER(OBJECT_HEADER, HandleCount),            \
        KDP_MEMBER(OBJECT_HEADER, Type), KDP_MEMBER(OBJECT_HEADER, NameInfo), KDP_MEMBER(OBJECT_TYPE, Name),           \
        KDP_MEMBER(OBJECT_TYPE, WaitOffset), FIELD_OFFSET(OBJECT_HEADER_NAME_INFO, Name),                              \
        KDP_MEMBER(OBJECT_HEADER_NAME_INFO, Directory), KDP_MEMBER(OBJECT_HEADER_NAME_INFO, Length), OBP_ROOT,         \
        OBP_BRANCH, OBP_LEAF, sizeof(OBP_HANDLE_ENTRY), KDP_MEMBER(OBP_HANDLE_ENTRY, Object),                          \
        KDP_MEMBER(OBP_HANDLE_ENTRY, Access)

typedef struct _OBJECT_DIRECTORY {
    LIST_ENTRY Entries;
} OBJECT_DIRECTORY, *POBJECT_DIRECTORY;

typedef struct _OBJECT_SYMBOLIC_LINK {
    LARGE_INTEGER CreationTime;
    USHORT Length;                       /* in characters */
    WCHAR Target[];
} OBJECT_SYMBOLIC_LINK, *POBJECT_SYMBOLIC_LINK;

extern OBJECT_TYPE ObpDirectoryType;
extern OBJECT_TYPE ObpSymbolicLinkType;

NTSTATUS ObpInitializeDirectory(PVOID Object, PVOID Context);
NTSTATUS ObpInitializeSymbolicLink(PVOID Object, PVOID Context); /* Context: the target, a UNICODE_STRING */
SIZE_T ObpSymbolicLinkSize(PCUNICODE_STRING Target);

/* What is to happen at the end of a path, and what was given for it. */
typedef struct _OBP_REQUEST {
    KPROCESSOR_MODE AccessMode;
    POBJECT_TYPE Type;
    ULONG Attributes;
    ACCESS_MASK DesiredAccess;
    PVOID NewObject; /* entered if the name is free; NULL: only what exists is opened */
    HANDLE Handle;   /* reserved, and open after success; NULL: the name is enough */
} OBP_REQUEST, *POBP_REQUEST;

/* RootDirectory: a directory that the caller has a reference on, or NULL. */
NTSTATUS ObpResolveName(POBP_REQUEST Request, PVOID RootDirectory, PCUNICODE_STRING Name);

/* Of an object that has a NameInfo. Closing returns the handles left, and whether the caller now owns the reference
   that the directory had on the object. */
LONG_PTR ObpCloseNamedHandle(PVOID Object, BOOLEAN *Unlinked);
VOID ObpSetPermanent(PVOID Object, BOOLEAN Permanent);
ULONG ObpQueryNameAttributes(PVOID Object); /* of OBJ_PERMANENT and OBJ_EXCLUSIVE */

/* The whole path, not terminated, in at most Capacity characters. *Length: how many it has, 0: the object has no name.
   FALSE: more than Capacity, nothing is written. */
BOOLEAN ObpQueryPath(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length);

/* The entries from number Start on, in the directory's order, until Visit returns FALSE. Visit runs under the lock. */
typedef BOOLEAN OBP_VISIT(PCUNICODE_STRING Name, POBJECT_TYPE Type, PVOID Context);
VOID ObpVisitEntries(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context);

/* Objects that are there from the beginning: made when the first name is looked up. Registered when the library is
   loaded. */
typedef struct _OBP_SYSTEM_OBJECT {
    PCWSTR Path;
    OBP_BLUEPRINT Blueprint;
    struct _OBP_SYSTEM_OBJECT *Next;
} OBP_SYSTEM_OBJECT, *POBP_SYSTEM_OBJECT;

VOID ObpRegisterSystemObject(POBP_SYSTEM_OBJECT SystemObject);
NTSTATUS ObpEnsureSystemObjects(VOID);

#endif
