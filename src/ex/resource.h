/*
 * resource.h: what executive resources and fast resources share: owners, waiters, and handoffs. Theory in resource.c.
 */
#ifndef INTERLOCK_EXP_RESOURCE_H
#define INTERLOCK_EXP_RESOURCE_H

#include <interlock/ex.h>

#include "exp.h"

#include "../ke/lockorder.h"

#define EXP_OWNER_POINTER ((ULONG_PTR)3)  /* set in an OwnerThread that is not a thread */
#define EXP_RESOURCE_NO_BOOST 0x0008      /* in Flag */

/* Reserved2 of a resource: NULL, or of a fast resource this plus the flags it was initialized with. */
#define EXP_FAST_RESOURCE ((ULONG_PTR)0x74736146 << 8)

/* An owner of a resource that is not in its OwnerEntry. It is in the chain that OwnerTable begins. */
typedef struct _EXP_OWNER {
    OWNER_ENTRY Entry;
    struct _EXP_OWNER *Next;
    struct _EXP_OWNER *Previous;
    PERESOURCE Resource; /* NULL: it is in no chain */
    USHORT Kind;
    BOOLEAN Exclusive;   /* these two: of a fast resource's entry */
    BOOLEAN Disowned;
} EXP_OWNER, *PEXP_OWNER;

#define EXP_ANY_OWNER 0
#define EXP_POOLED_OWNER 0x4f50
#define EXP_FAST_OWNER 0x4f46

C_ASSERT(sizeof(EXP_OWNER) == 48);
C_ASSERT(FIELD_OFFSET(EXP_OWNER, Entry) == 0);
C_ASSERT(sizeof(EXP_OWNER) <= sizeof(FAST_OWNER_ENTRY));

/* A waiter, in its own stack frame. The object that it waits on is the first member: SharedWaiters and ExclusiveWaiters
   point to it. */
typedef struct _EXP_RESOURCE_WAIT {
    __extension__ union {
        KSEMAPHORE Semaphore; /* of a shared waiter */
        KEVENT Event;         /* of an exclusive one */
    };
    struct _EXP_RESOURCE_WAIT *Next;
    struct _EXP_RESOURCE_WAIT *Last; /* in the first of a queue */
    PKTHREAD Thread;
    PEXP_OWNER Owner;                /* linked when it acquires the resource; NULL afterwards, or if not needed */
    PEXP_OWNER Record;               /* the same, for the waiter itself */
    BOOLEAN Exclusive;
    BOOLEAN Boosts;                  /* an owner, after a long wait */
} EXP_RESOURCE_WAIT, *PEXP_RESOURCE_WAIT;

/* Read by the debugger. */
#define EXP_RESOURCE_LAYOUT                                                                                            \
    sizeof(EXP_OWNER), KDP_MEMBER(EXP_OWNER, Entry), KDP_MEMBER(EXP_OWNER, Next), sizeof(EXP_RESOURCE_WAIT),           \
        KDP_MEMBER(EXP_RESOURCE_WAIT, Next), KDP_MEMBER(EXP_RESOURCE_WAIT, Thread),                                    \
        KDP_MEMBER(EXP_RESOURCE_WAIT, Exclusive)

typedef enum _EXP_ACCESS {
    ExpExclusive,
    ExpShared,
    ExpSharedStarveExclusive,
    ExpSharedWaitForExclusive
} EXP_ACCESS;

/* All resources that are initialized and not deleted. */
extern LIST_ENTRY ExpSystemResourcesList;
extern KI_LOCK ExpResourceSpinLock;

VOID ExpAwaitResourceLock(PERESOURCE Resource, PKTHREAD Thread); /* another thread has it locked */
VOID ExpInitializeResource(PERESOURCE Resource, ULONG_PTR Kind);
BOOLEAN ExpIsResourceIdle(PERESOURCE Resource); /* with the resource locked: no owners, no waiters */
VOID ExpRemoveResource(PERESOURCE Resource);    /* off the system's list */
KI_ORDER_MODE ExpOrderModeOf(EXP_ACCESS Access);
BOOLEAN ExpAcquireForFastOwner(PERESOURCE Resource, EXP_ACCESS Access, BOOLEAN Wait, PEXP_OWNER FastOwner);
/* Undoes one acquire. Returns the waiters that this admits. */
PEXP_RESOURCE_WAIT ExpDropOwner(PERESOURCE Resource, PKTHREAD Thread, POWNER_ENTRY Entry);
PEXP_RESOURCE_WAIT ExpShareResource(PERESOURCE Resource); /* it is shared from now on: admits all sharers */
VOID ExpWakeReleased(PEXP_RESOURCE_WAIT Released); /* with nothing locked */

/* Owners, with the resource locked. */
PEXP_OWNER ExpTakeOwnerRecord(PKTHREAD Thread); /* Thread is the current one; NULL: all are in use */
VOID ExpGiveBackOwnerRecord(PKTHREAD Thread, PEXP_OWNER Owner);
VOID ExpRenameOwner(PERESOURCE Resource, POWNER_ENTRY Entry, ERESOURCE_THREAD NewOwner);
POWNER_ENTRY ExpFindLinkedOwner(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread, USHORT Kind); /* in the chain */

FORCEINLINE PKI_LOCK ExpResourceLock(PERESOURCE Resource)
{
    return (PKI_LOCK)(PVOID)&Resource->SpinLock;
}

FORCEINLINE VOID ExpLockResource(PERESOURCE Resource, PKTHREAD Thread)
{
    KiEnterDispatcher(Thread);
    if (__builtin_expect(!KiTryAcquireLock(ExpResourceLock(Resource)), 0)) {
        ExpAwaitResourceLock(Resource, Thread);
    }
}

FORCEINLINE VOID ExpUnlockResource(PERESOURCE Resource, PKTHREAD Thread)
{
    KiReleaseLock(ExpResourceLock(Resource));
    KiExitDispatcher(Thread);
}

/* Kind is EXP_ANY_OWNER or EXP_POOLED_OWNER. */
FORCEINLINE POWNER_ENTRY ExpFindOwner(PERESOURCE Resource, ERESOURCE_THREAD OwnerThread, USHORT Kind)
{
    if (Resource->OwnerEntry.OwnerThread == OwnerThread) {
        return &Resource->OwnerEntry;
    }
    return ExpFindLinkedOwner(Resource, OwnerThread, Kind);
}

FORCEINLINE BOOLEAN ExpIsOwnedExclusively(PERESOURCE Resource)
{
    return (Resource->Flag & ResourceOwnedExclusive) != 0;
}

FORCEINLINE PEXP_OWNER ExpFirstOwner(PERESOURCE Resource)
{
    return (PEXP_OWNER)Resource->OwnerTable;
}

#endif
