/*
 * share.h: objects that processes share, as this process sees them. The world (src/wo) has their state and their names.
 *
 * 1. A shared object has one proxy in each process that refers to it: an ordinary object of the same type. The table of
 *    proxies finds it by world and index. The table's references are weak: a proxy whose count has reached zero is
 *    replaced, and is no longer in the table when it is deleted.
 * 2. The world has one reference record for this process and object. The proxy in the table stands for it: the record is
 *    made before the proxy is entered and dropped when the proxy that leaves the table is deleted. ObpShareLock is held
 *    for both, so no thread finds a record that another one is about to drop.
 * 3. OBP_SHARED in HandleCount says that the world counts the object's handles, too. It is set by the same atomic
 *    operation that reads how many there are, so none is counted twice or forgotten when a local object becomes shared.
 *    A handle is counted in the world before it opens and until after it has closed: the name disappears with the last
 *    one.
 * 4. With ObpShareLock held no reference on a proxy is returned: it may be the last one, and deleting takes the lock.
 * 5. ObpShareLock comes before the lock of the names, and both come before the world's own lock. It is held in a
 *    dispatcher section, where nothing is allocated: a proxy is built before it is needed.
 */
#ifndef INTERLOCK_OB_SHARE_H
#define INTERLOCK_OB_SHARE_H

#include "../ke/outside.h"
#include "../wo/wo.h"
#include "obp.h"

/* The state of a shared object. Freed with the object. */
typedef struct _OBP_SHARE {
    KI_OUTSIDE Outside;
    PVOID Object;                    /* the proxy */
    struct _OBP_SHARE *HashNext;
    BOOLEAN Listed;                  /* in the table: the record of this process belongs to it */
} OBP_SHARE, *POBP_SHARE;

typedef struct _OBP_NEW {
    WO_NEW World;
    UNICODE_STRING Target;           /* what World.Target points to */
} OBP_NEW, *POBP_NEW;

/* How objects of a type are shared. */
typedef struct _OBP_SHARING {
    ULONG Kinds;                     /* OBP_KIND of each WO_TYPE that an object of this type can be */
    SIZE_T BodySize;                 /* of a proxy */
    VOID (*Describe)(PVOID Object, POBP_NEW New);     /* adds to ObpDescribe; NULL: nothing */
    VOID (*Represent)(PVOID Proxy, POBP_SHARE Share); /* initializes a zeroed body as a proxy's; NULL: it only has a
                                                         header */
} OBP_SHARING;

extern const OBP_SHARING ObpDirectorySharing, ObpSymbolicLinkSharing;

#define OBP_KIND(Type) (1u << (Type))

FORCEINLINE BOOLEAN ObpIsKindOf(POBJECT_TYPE Type, WO_TYPE Kind)
{
    return Type->Sharing != NULL && (Type->Sharing->Kinds & OBP_KIND(Kind)) != 0;
}

/* NULL: the object is local. */
FORCEINLINE POBP_SHARE ObpShareOf(PVOID Object)
{
    /* acquire, both: pair with the release in ObpPublishShare */
    POBJECT_HEADER_NAME_INFO Info = __atomic_load_n(&ObpHeaderOf(Object)->NameInfo, __ATOMIC_ACQUIRE);
    return Info != NULL ? __atomic_load_n(&Info->Share, __ATOMIC_ACQUIRE) : NULL;
}

FORCEINLINE PWO_VIEW ObpViewOf(POBP_SHARE Share)
{
    return Share->Outside.View;
}

PKTHREAD ObpLockShares(VOID);
VOID ObpUnlockShares(PKTHREAD Thread);

/* A candidate for a proxy: zeroed, with one reference, and a share without an index. NULL: no memory. */
PVOID ObpBuildProxy(POBJECT_TYPE Type, SIZE_T BodySize, ULONG NameCapacity);
VOID ObpDiscardProxy(PVOID Proxy); /* a candidate that was not taken */

/* With the shares locked. The proxy of an object that this process has a record of, with a reference for the caller: the
   one in the table, or Candidate, which is entered with its own reference. */
PVOID ObpProxyOf(PWO_VIEW View, WO_INDEX Index, WO_TYPE Kind, PVOID Candidate);
BOOLEAN ObpHasProxy(PWO_VIEW View, WO_INDEX Index);
/* With the shares locked. Returns a record that was taken for a lookup, unless a proxy needs it. */
VOID ObpReturnRecord(PWO_VIEW View, WO_INDEX Index);

POBJECT_TYPE ObpTypeOfKind(WO_TYPE Kind); /* NULL: there is none */
/* Objects that another process has given this one, with a record and a handle (remote.c). NULL: no memory. */
PVOID ObpBuildHeir(PWO_VIEW View, WO_INDEX Index);     /* a candidate */
PVOID ObpReceiveObject(PWO_VIEW View, WO_INDEX Index); /* its proxy, with a reference */
VOID ObpReturnHandle(PWO_VIEW View, WO_INDEX Index);   /* without a proxy: the handle and the record are returned */

/* A local object becomes shared, with its waiters. STATUS_NOT_SUPPORTED: objects of its type are not shared, or there is
   no world. */
NTSTATUS ObpShareObject(PVOID Object, POBP_SHARE *Share);

ULONG ObpQueryHandleCount(PVOID Object); /* of all processes, for display */

/* The world of the names that processes share. STATUS_NOT_SUPPORTED: there is none. */
NTSTATUS ObpOpenWorld(WO_SCOPE Scope, PWO_VIEW *View);

/* A walk along a path, through the directories of this process (namespace.c) and of a world (share.c). */

/* A component of a path, or the rest of one. */
typedef struct _OBP_TEXT {
    PCWCH Text;
    ULONG Length; /* in characters */
} OBP_TEXT;

/*
 * A walk of a path through the directories. Directory and Rest advance together; Buffer is the path as the last
 * symbolic link rewrote it.
 */
typedef struct _OBP_WALK {
    POBP_REQUEST Request;
    POBJECT_DIRECTORY Directory;
    OBP_TEXT Rest;                      /* relative to Directory, without the separator; empty: Directory itself */
    OBP_TEXT Component;                 /* the last one that was looked up */
    POBJECT_HEADER_NAME_INFO Found;     /* NULL: not found */
    PWCHAR Buffer;
    POBJECT_HEADER_NAME_INFO FreshName; /* for NewObject, with room for the last component */
    BOOLEAN CaseInsensitive;
    ULONG Links;
    PVOID Held;                         /* Directory, if it is a proxy that only the walk refers to */
    PVOID Candidate;                    /* for a proxy: share.c */
    PWCHAR Target;                      /* room for the target of a link in the world, in characters: */
    ULONG TargetRoom;
} OBP_WALK, *POBP_WALK;

/* namespace.c */
/* Restarts the walk with the target of a link in place of the path to it. More: Rest comes after it. */
NTSTATUS ObpFollowLink(POBP_WALK Walk, OBP_TEXT Target, BOOLEAN More);
BOOLEAN ObpHasLocalName(POBP_WALK Walk);      /* Component, among the entries that Directory has in this process */
NTSTATUS ObpEnterLocalName(POBP_WALK Walk);   /* or STATUS_OBJECT_NAME_NOT_FOUND, if nothing will be created */

/* share.c */
BOOLEAN ObpIsInWorld(POBJECT_DIRECTORY Directory);
/* Looks up Component in Directory, which is in a world. STATUS_REPARSE: the walk continues. */
NTSTATUS ObpWalkInWorld(POBP_WALK Walk, BOOLEAN More);
VOID ObpLeaveWorld(POBP_WALK Walk);           /* the walk is over */
/* FALSE: the object is not named in a world. */
BOOLEAN ObpSetPermanentInWorld(PVOID Object, BOOLEAN Permanent);
BOOLEAN ObpRemoveNameInWorld(PVOID Object);
BOOLEAN ObpQueryAttributesInWorld(PVOID Object, PULONG Attributes);
/* For an object of a world, to which this process need not have a handle. FALSE: the path does not fit. */
BOOLEAN ObpQueryPathOfShared(PWO_VIEW View, WO_INDEX Index, PWCHAR Path, ULONG Capacity, PULONG Length);
BOOLEAN ObpQueryPathInWorld(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length, BOOLEAN *Fits);
VOID ObpVisitEntriesInWorld(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context);

/*
 * Handles that a child process inherits.
 *
 * 1. The parent prepares them: local objects become shared, and the world gets the values, one ticket for each world. The
 *    tickets, and the processes that handles refer to, are a text in the child's environment. An object that is neither
 *    shared nor a process is not inherited.
 * 2. The child takes the text out of its environment when the library is loaded, and opens the handles before any other
 *    one: so their values are free. Its own children do not see the text.
 * 3. A child that does not use this library holds the handles until it ends: the world knows them by its id.
 */

/* Which handles. List NULL: all that are marked. */
typedef struct _OBP_HEIRLOOMS {
    const HANDLE *List;
    ULONG Count;
} OBP_HEIRLOOMS, *POBP_HEIRLOOMS;

#define OBP_WORLDS 2

typedef struct _OBP_BEQUEST {
    PSTR Text;                       /* for the child's environment; NULL: it inherits nothing */
    struct {
        PWO_VIEW View;               /* NULL: no ticket */
        CHAR Ticket[WO_TICKET_LENGTH];
    } World[OBP_WORLDS];
} OBP_BEQUEST, *POBP_BEQUEST;

/* STATUS_INVALID_PARAMETER: a handle of the list is not marked, or is there twice. */
NTSTATUS ObpPrepareBequest(const OBP_HEIRLOOMS *Heirlooms, POBP_BEQUEST Bequest);
VOID ObpEndBequest(POBP_BEQUEST Bequest, ULONG ProcessId); /* 0: there is no child */

/* In the child, before the first handle is used. */
VOID ObpAdoptHandles(VOID);
extern volatile ULONG ObpAdoptionState;
enum { ObpNothingToAdopt, ObpAdoptionPending, ObpAdopting };

/* handle.c: for the adoption. FALSE: the value is not a valid handle, is in use, or there is no memory. */
BOOLEAN ObpReserveHandleValue(HANDLE Handle);
VOID ObpFreeValuesBelow(HANDLE Highest); /* those that are not open */
HANDLE ObpNextHandle(HANDLE Handle); /* the next one that is open and marked as inherited; NULL: none */

/*
 * Handles of other processes. A process serves requests of others on its session thread (wo/wo.h): it exports an
 * object by handle, imports one, or closes a handle. An object that is exported becomes shared. A handle of a process is
 * passed by the id of that process.
 */

/* An object between two handles. */
typedef struct _OBP_PARCEL {
    PVOID Object;                    /* a reference */
    ACCESS_MASK GrantedAccess;
    ULONG Attributes;                /* OBJ_INHERIT, OBJ_PROTECT_CLOSE, OBJ_KERNEL_HANDLE within the process */
    BOOLEAN Counted;                 /* the world has already counted a handle for it */
} OBP_PARCEL, *POBP_PARCEL;

/* The request to the source. */
typedef struct _OBP_PICKUP {
    HANDLE Handle;
    ACCESS_MASK DesiredAccess;
    ULONG Attributes;
    ULONG Options;                   /* DUPLICATE_ */
} OBP_PICKUP, *POBP_PICKUP;

NTSTATUS ObpTakeParcel(const OBP_PICKUP *Pickup, KPROCESSOR_MODE AccessMode, POBP_PARCEL Parcel); /* by a handle of this process */
NTSTATUS ObpDeliverParcel(POBP_PARCEL Parcel, PHANDLE Handle);                                    /* to this process */
VOID ObpDropParcel(POBP_PARCEL Parcel);

/* The same in another process. STATUS_NOT_SUPPORTED: it is not in the world, or the object cannot be shared;
   STATUS_PROCESS_IS_TERMINATING: it has ended. */
NTSTATUS ObpFetchParcel(ULONG ProcessId, const OBP_PICKUP *Pickup, POBP_PARCEL Parcel);
NTSTATUS ObpSendParcel(ULONG ProcessId, POBP_PARCEL Parcel, PHANDLE Handle);
NTSTATUS ObpCloseRemoteHandle(ULONG ProcessId, HANDLE Handle);

#endif
