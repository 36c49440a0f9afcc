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

#include "namespace.h"

#include "../ke/outside.h"
#include "../wo/wo.h"

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
    VOID (*Describe)(PVOID Object, POBP_NEW New);     /* of an object that no other thread knows yet */
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
/* Objects that another process has given this one, with a record and a handle (inherit.c). NULL: no memory. */
PVOID ObpBuildHeir(PWO_VIEW View, WO_INDEX Index);     /* a candidate */
PVOID ObpReceiveObject(PWO_VIEW View, WO_INDEX Index); /* its proxy, with a reference */
VOID ObpReturnHandle(PWO_VIEW View, WO_INDEX Index);   /* without a proxy: the handle and the record are returned */

/* A local object becomes shared, with its waiters. STATUS_NOT_SUPPORTED: objects of its type are not shared, or there is
   no world. */
NTSTATUS ObpShareObject(PVOID Object, POBP_SHARE *Share);

ULONG ObpQueryHandleCount(PVOID Object); /* of all processes, for display */

/* The world of the names that processes share. STATUS_NOT_SUPPORTED: there is none. */
NTSTATUS ObpOpenWorld(WO_SCOPE Scope, PWO_VIEW *View);

#endif
