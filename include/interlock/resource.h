/*
 * resource.h: executive resources and fast resources, locks for shared and exclusive access that know their owners.
 * Part of ex.h, which includes it. The theory is in src/ex/resource.c.
 */
#ifndef INTERLOCK_RESOURCE_H
#define INTERLOCK_RESOURCE_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/* A thread, or with the low two bits set an owner pointer (ExSetResourceOwnerPointer). */
typedef ULONG_PTR ERESOURCE_THREAD, *PERESOURCE_THREAD;

typedef struct _OWNER_ENTRY {
    ERESOURCE_THREAD OwnerThread;
    __extension__ union {
        __extension__ struct {
            ULONG IoPriorityBoosted : 1;
            ULONG OwnerReferenced : 1; /* an owner pointer that is a thread */
            ULONG OwnerCount : 30;
        };
        ULONG TableSize;
    };
} OWNER_ENTRY, *POWNER_ENTRY;

typedef struct _ERESOURCE {
    LIST_ENTRY SystemResourcesList;
    POWNER_ENTRY OwnerTable;                /* the owners that OwnerEntry has no room for */
    SHORT ActiveCount;                      /* 1: somebody owns it */
    __extension__ union {
        USHORT Flag;
        __extension__ struct {
            UCHAR ReservedLowFlags;
            UCHAR WaiterPriority;           /* 0: not kept here */
        };
    };
    PKSEMAPHORE volatile SharedWaiters;     /* what the one who has waited longest waits on */
    PKEVENT volatile ExclusiveWaiters;
    OWNER_ENTRY OwnerEntry;
    ULONG ActiveEntries;                    /* number of owners */
    ULONG ContentionCount;
    ULONG NumberOfSharedWaiters;
    ULONG NumberOfExclusiveWaiters;
    PVOID Reserved2;
    __extension__ union {
        PVOID Address;
        ULONG_PTR CreatorBackTraceIndex;
    };
    KSPIN_LOCK SpinLock;
} ERESOURCE, *PERESOURCE;

/* ERESOURCE.Flag */
#define ResourceNeverExclusive 0x0010
#define ResourceReleaseByOtherThread 0x0020
#define ResourceOwnedExclusive 0x0080

C_ASSERT(sizeof(OWNER_ENTRY) == 16);
C_ASSERT(sizeof(ERESOURCE) == 104);
C_ASSERT(FIELD_OFFSET(ERESOURCE, ActiveCount) == 0x18);
C_ASSERT(FIELD_OFFSET(ERESOURCE, Flag) == 0x1a);
C_ASSERT(FIELD_OFFSET(ERESOURCE, OwnerEntry) == 0x30);
C_ASSERT(FIELD_OFFSET(ERESOURCE, ContentionCount) == 0x44);
C_ASSERT(FIELD_OFFSET(ERESOURCE, SpinLock) == 0x60);

#define FLAG_OWNER_POINTER_IS_THREAD 0x1

NTKERNELAPI NTSTATUS ExInitializeResourceLite(PERESOURCE Resource);
NTKERNELAPI NTSTATUS ExReinitializeResourceLite(PERESOURCE Resource);
NTKERNELAPI NTSTATUS ExDeleteResourceLite(PERESOURCE Resource);

/* Normal kernel APCs must be disabled from the acquire to the release. FALSE: it would have had to wait. */
NTKERNELAPI BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireSharedWaitForExclusive(PERESOURCE Resource, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExTryToAcquireResourceExclusiveLite(PERESOURCE Resource);
NTKERNELAPI VOID ExReleaseResourceLite(PERESOURCE Resource);
NTKERNELAPI VOID ExReleaseResourceForThreadLite(PERESOURCE Resource, ERESOURCE_THREAD ResourceThreadId);
NTKERNELAPI VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource);
NTKERNELAPI VOID ExSetResourceOwnerPointer(PERESOURCE Resource, PVOID OwnerPointer);
NTKERNELAPI VOID ExSetResourceOwnerPointerEx(PERESOURCE Resource, PVOID OwnerPointer, ULONG Flags);

NTKERNELAPI BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource);
NTKERNELAPI ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource); /* how often, exclusive acquires included */
NTKERNELAPI ULONG ExGetSharedWaiterCount(PERESOURCE Resource);
NTKERNELAPI ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource);
NTKERNELAPI VOID ExDisableResourceBoostLite(PERESOURCE Resource);

/* What they return is opaque and of no use. */
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireResourceExclusive(PERESOURCE Resource);
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireResourceShared(PERESOURCE Resource);
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireSharedWaitForExclusive(PERESOURCE Resource);
NTKERNELAPI VOID ExReleaseResourceAndLeaveCriticalRegion(PERESOURCE Resource);

#define ExGetCurrentResourceThread() ((ERESOURCE_THREAD)KeGetCurrentThread())

#define ExInitializeResource ExInitializeResourceLite
#define ExDeleteResource ExDeleteResourceLite
#define ExAcquireResourceExclusive ExAcquireResourceExclusiveLite
#define ExAcquireResourceShared ExAcquireResourceSharedLite
#define ExReleaseResource(Resource) ExReleaseResourceLite(Resource)
#define ExReleaseResourceForThread ExReleaseResourceForThreadLite
#define ExConvertExclusiveToShared ExConvertExclusiveToSharedLite
#define ExIsResourceAcquiredExclusive ExIsResourceAcquiredExclusiveLite
#define ExIsResourceAcquiredShared ExIsResourceAcquiredSharedLite
#define ExIsResourceAcquired ExIsResourceAcquiredSharedLite
#define ExIsResourceAcquiredLite ExIsResourceAcquiredSharedLite
#define ExDisableResourceBoost ExDisableResourceBoostLite

/*
 * Fast resources: the caller brings the place where an acquire is noted, an owner entry, and names it at the release.
 * An entry stands for one acquire at a time; a thread that acquires again brings another one. With
 * EX_FAST_RESOURCE_ENABLE_LEGACY_APIS the functions above that acquire, release, convert and ask take one as well.
 */

typedef struct _FAST_ERESOURCE {
    PVOID Reserved1[3];
    ULONG Reserved2;
    PVOID Reserved3[4];
    ULONG Reserved4[4];
    PVOID Reserved5;
    PVOID Reserved6[2];
} FAST_ERESOURCE, *PFAST_ERESOURCE;

typedef struct _FAST_OWNER_ENTRY {
    PVOID Reserved[9];
} FAST_OWNER_ENTRY, *PFAST_OWNER_ENTRY;

C_ASSERT(sizeof(FAST_ERESOURCE) == sizeof(ERESOURCE));
C_ASSERT(sizeof(FAST_OWNER_ENTRY) == 72);

#define EX_FAST_RESOURCE_ENABLE_LEGACY_APIS 0x1

NTKERNELAPI VOID ExInitializeFastResource(PFAST_ERESOURCE Resource, ULONG Flags);
NTKERNELAPI VOID ExDeleteFastResource(PFAST_ERESOURCE Resource);
NTKERNELAPI VOID ExInitializeFastOwnerEntry(PFAST_OWNER_ENTRY OwnerEntry);

NTKERNELAPI BOOLEAN ExAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry,
                                                   BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireFastResourceSharedStarveExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry,
                                                               BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExTryAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);
NTKERNELAPI BOOLEAN ExTryAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);
NTKERNELAPI VOID ExReleaseFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);
NTKERNELAPI VOID ExConvertFastResourceExclusiveToShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* The acquire no longer belongs to the thread, which may end; anybody releases it. */
NTKERNELAPI VOID ExDisownFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);
NTKERNELAPI VOID ExReleaseDisownedFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

NTKERNELAPI BOOLEAN ExIsFastResourceHeld(PFAST_ERESOURCE Resource);
NTKERNELAPI BOOLEAN ExIsFastResourceHeldExclusive(PFAST_ERESOURCE Resource);

INTERLOCK_END

#endif
