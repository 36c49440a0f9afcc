/*
 * namespace.h: the names of objects. Names below \\BaseNamedObjects of types that processes share are in the world
 * (sharednames.c); all others are kept here, for one process. A name exists once: a directory of the world has a proxy
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
#ifndef INTERLOCK_NAMESPACE_H
#define INTERLOCK_NAMESPACE_H

#include "obp.h"

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

/* For objects that have a NameInfo. Attributes and permanence are those of the world if the object is shared. Closing returns the handles left; Unlinked: the directory's reference on the object
   now belongs to the caller. */
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

/* create.c: objects that exist from the start. They are registered when the library is loaded and created when the
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
