/*
 * ex.h: the executive. Raised statuses, reader/writer spinlocks, interlocked lists, pool, fast mutexes, pushlocks,
 * resources, rundown protection, fast references, work queues, timers, lookaside lists, unique identifiers.
 */
#ifndef INTERLOCK_EX_H
#define INTERLOCK_EX_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/* Raising. __try and __except (exception.h) catch a raised status; an uncaught one is a bugcheck. */

/* Raises a status as a noncontinuable exception. Does not return. Since NT 3.1. */
NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseStatus(NTSTATUS Status);

/* Raises STATUS_ACCESS_VIOLATION or STATUS_DATATYPE_MISALIGNMENT. Does not return. Since NT 3.1. */
NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseAccessViolation(VOID);
NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseDatatypeMisalignment(VOID);

/*
 * Reader/writer spinlocks. Zeroed memory is a free lock. A waiting writer keeps new readers out, so a reader must not
 * acquire the lock recursively.
 */

typedef volatile LONG EX_SPIN_LOCK, *PEX_SPIN_LOCK;
#define ALIGNED_EX_SPINLOCK DECLSPEC_CACHEALIGN EX_SPIN_LOCK

/* Raises to DISPATCH_LEVEL, spins until the lock is acquired, and returns the old IRQL. Since Vista. */
NTKERNELAPI KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock);

/* Spins until the lock is acquired, for a caller at DISPATCH_LEVEL or above. Since Vista. */
NTKERNELAPI VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock);

/* Acquires the lock if that is possible at once, for a caller at DISPATCH_LEVEL or above. Returns TRUE if it did. Since
   7. */
NTKERNELAPI LOGICAL ExTryAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI LOGICAL ExTryAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock);

/* Converts shared to exclusive. Returns FALSE, still shared, while there are other readers. Since Vista. */
NTKERNELAPI LOGICAL ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock);

/* Releases the lock and lowers the IRQL to OldIrql. Since Vista. */
NTKERNELAPI VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);
NTKERNELAPI VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);

/* Releases the lock and leaves the IRQL alone. Since Vista. */
NTKERNELAPI VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock);
#define ExTryConvertSharedSpinLockToExclusive ExTryConvertSharedSpinLockExclusive

#define ExAcquireSpinLock(SpinLock, OldIrql) KeAcquireSpinLock(SpinLock, OldIrql)
#define ExReleaseSpinLock(SpinLock, OldIrql) KeReleaseSpinLock(SpinLock, OldIrql)
#define ExAcquireSpinLockAtDpcLevel(SpinLock) KeAcquireSpinLockAtDpcLevel(SpinLock)
#define ExReleaseSpinLockFromDpcLevel(SpinLock) KeReleaseSpinLockFromDpcLevel(SpinLock)

/*
 * Interlocked operations under a spinlock. At any IRQL; the lock must be used with these functions only.
 */

/* Inserts an entry at the head or tail. Returns the entry that was first or last before; NULL if the list was empty.
   Since NT 3.1. */
NTKERNELAPI PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
NTKERNELAPI PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);

/* Removes and returns the first entry; NULL if the list is empty. Since NT 3.1. */
NTKERNELAPI PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock);

/* Pushes and pops the first entry of a singly linked list. Push returns the entry that was first before, pop the one
   that it removed; NULL if there was none. Since NT 3.1. */
NTKERNELAPI PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY ListEntry,
                                                          PKSPIN_LOCK Lock);
NTKERNELAPI PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock);

/* Adds and returns the old value. Since NT 3.1. */
NTKERNELAPI ULONG ExInterlockedAddUlong(PULONG Addend, ULONG Increment, PKSPIN_LOCK Lock);
NTKERNELAPI LARGE_INTEGER ExInterlockedAddLargeInteger(PLARGE_INTEGER Addend, LARGE_INTEGER Increment,
                                                       PKSPIN_LOCK Lock);

/* Interlocked operations on one word. One instruction; the lock is ignored. They predate the Interlocked functions. */

#define RESULT_ZERO 0
#define RESULT_NEGATIVE 1
#define RESULT_POSITIVE 2

typedef enum _INTERLOCKED_RESULT {
    ResultNegative = RESULT_NEGATIVE,
    ResultZero = RESULT_ZERO,
    ResultPositive = RESULT_POSITIVE
} INTERLOCKED_RESULT;

/* InterlockedIncrement. Returns the sign of the new value. Differs: the lock is ignored, as in the x86 header of
   Windows; there is no x64 form. Since NT 3.1. */
FORCEINLINE INTERLOCKED_RESULT ExInterlockedIncrementLong(volatile LONG *Addend, PKSPIN_LOCK Lock)
{
    LONG Value = InterlockedIncrement(Addend);
    UNREFERENCED_PARAMETER(Lock);
    return Value < 0 ? ResultNegative : Value == 0 ? ResultZero : ResultPositive;
}

/* InterlockedDecrement. Returns the sign of the new value. Differs: as ExInterlockedIncrementLong. Since NT 3.1. */
FORCEINLINE INTERLOCKED_RESULT ExInterlockedDecrementLong(volatile LONG *Addend, PKSPIN_LOCK Lock)
{
    LONG Value = InterlockedDecrement(Addend);
    UNREFERENCED_PARAMETER(Lock);
    return Value < 0 ? ResultNegative : Value == 0 ? ResultZero : ResultPositive;
}

/* InterlockedExchange on a ULONG. Returns the old value. Differs: as ExInterlockedIncrementLong. Since NT 3.1. */
FORCEINLINE ULONG ExInterlockedExchangeUlong(volatile ULONG *Target, ULONG Value, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return (ULONG)InterlockedExchange((volatile LONG *)Target, (LONG)Value);
}

/* InterlockedCompareExchange: stores Exchange if the value is Comperand. Returns the old value. Differs: the lock is
   ignored; no header of Windows declares it. Since NT 4.0. */
FORCEINLINE LONG ExInterlockedCompareExchange(volatile LONG *Destination, LONG Exchange, LONG Comperand,
                                              PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return InterlockedCompareExchange(Destination, Exchange, Comperand);
}

#define ExInterlockedAddLargeStatistic(Addend, Increment) ((VOID)InterlockedAdd64(&(Addend)->QuadPart, Increment))
#define ExInterlockedCompareExchange64(Destination, Exchange, Comperand, Lock)                                         \
    InterlockedCompareExchange64(Destination, *(Exchange), *(Comperand))

/* Interlocked singly linked lists. The functions of interlocked.h by the executive's names. */

/* InterlockedPushEntrySList and InterlockedPopEntrySList. The lock is ignored. Since NT 4.0. */
NTKERNELAPI PSLIST_ENTRY ExInterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
NTKERNELAPI PSLIST_ENTRY ExInterlockedPopEntrySList(PSLIST_HEADER ListHead, PKSPIN_LOCK Lock);
#define ExInterlockedPushEntrySList(ListHead, ListEntry, Lock) InterlockedPushEntrySList(ListHead, ListEntry)
#define ExInterlockedPopEntrySList(ListHead, Lock) InterlockedPopEntrySList(ListHead)
#define ExInterlockedFlushSList InterlockedFlushSList
#define ExInitializeSListHead InitializeSListHead
#define ExQueryDepthSList QueryDepthSList

/* Addresses that a user passes. */

/* The end of the host's user addresses, which is above that of Windows: stacks are there. */
#ifdef __aarch64__
#define MM_USER_PROBE_ADDRESS 0x0000FFFFFFFFF000ULL
#else
#define MM_USER_PROBE_ADDRESS 0x00007FFFFFFFF000ULL
#endif

/* Raises STATUS_DATATYPE_MISALIGNMENT or STATUS_ACCESS_VIOLATION unless a buffer is aligned and in the address space of
   user mode. An empty buffer is always fine. Differs: kernel memory is in the same address space. Since NT 3.1. */
NTKERNELAPI VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment);

/* The same, and raises STATUS_ACCESS_VIOLATION unless all of it can be written. Since NT 3.1. */
NTKERNELAPI VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment);

/* Returns TRUE if the address can be read now. Another thread may unmap it at any time. Since NT 3.1. */
NTKERNELAPI BOOLEAN MmIsAddressValid(PVOID VirtualAddress);

/* Routines by name. */

/* Returns the address of a routine that the kernel or the HAL exports; NULL if there is none of that name. Differs: in a
   statically linked program, as GetProcAddress. Since 2000. */
NTKERNELAPI PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName);

/* Time. */

/* Converts between UTC and local time with the UTC offset in effect now. Since 2000. */
NTKERNELAPI VOID ExSystemTimeToLocalTime(PLARGE_INTEGER SystemTime, PLARGE_INTEGER LocalTime);
NTKERNELAPI VOID ExLocalTimeToSystemTime(PLARGE_INTEGER LocalTime, PLARGE_INTEGER SystemTime);

/* Requests a resolution of the clock in 100 ns, or ends a request. Returns the current one. Differs: the clock always has
   the resolution of the host. Since 2000. */
NTKERNELAPI ULONG ExSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution);

/* Stores the coarsest, the finest and the current resolution, in 100 ns. Since 8.1. */
NTKERNELAPI VOID ExQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime);

/* Pool. */

typedef enum _POOL_TYPE {
    NonPagedPool = 0,
    NonPagedPoolExecute = 0,
    PagedPool = 1,
    NonPagedPoolMustSucceed = 2,
    DontUseThisType = 3,
    NonPagedPoolCacheAligned = 4,
    PagedPoolCacheAligned = 5,
    NonPagedPoolCacheAlignedMustS = 6,
    MaxPoolType = 7,
    NonPagedPoolBase = 0,
    NonPagedPoolBaseMustSucceed = 2,
    NonPagedPoolBaseCacheAligned = 4,
    NonPagedPoolBaseCacheAlignedMustS = 6,
    NonPagedPoolSession = 32,
    PagedPoolSession = 33,
    NonPagedPoolMustSucceedSession = 34,
    DontUseThisTypeSession = 35,
    NonPagedPoolCacheAlignedSession = 36,
    PagedPoolCacheAlignedSession = 37,
    NonPagedPoolCacheAlignedMustSSession = 38,
    NonPagedPoolNx = 512,
    NonPagedPoolNxCacheAligned = 516,
    NonPagedPoolSessionNx = 544
} POOL_TYPE;

typedef enum _EX_POOL_PRIORITY {
    LowPoolPriority = 0,
    LowPoolPrioritySpecialPoolOverrun = 8,
    LowPoolPrioritySpecialPoolUnderrun = 9,
    NormalPoolPriority = 16,
    NormalPoolPrioritySpecialPoolOverrun = 24,
    NormalPoolPrioritySpecialPoolUnderrun = 25,
    HighPoolPriority = 32,
    HighPoolPrioritySpecialPoolOverrun = 40,
    HighPoolPrioritySpecialPoolUnderrun = 41
} EX_POOL_PRIORITY;

typedef ULONG64 POOL_FLAGS;

#define POOL_FLAG_NONE 0x0000000000000000ULL

#define POOL_FLAG_USE_QUOTA 0x0000000000000001ULL
#define POOL_FLAG_UNINITIALIZED 0x0000000000000002ULL
#define POOL_FLAG_SESSION 0x0000000000000004ULL
#define POOL_FLAG_CACHE_ALIGNED 0x0000000000000008ULL
#define POOL_FLAG_RAISE_ON_FAILURE 0x0000000000000020ULL
#define POOL_FLAG_NON_PAGED 0x0000000000000040ULL
#define POOL_FLAG_NON_PAGED_EXECUTE 0x0000000000000080ULL
#define POOL_FLAG_PAGED 0x0000000000000100ULL
#define POOL_FLAG_REQUIRED_START 0x0000000000000001ULL
#define POOL_FLAG_REQUIRED_END 0x0000000080000000ULL
#define POOL_FLAG_OPTIONAL_START 0x0000000100000000ULL /* unknown flags above this one are ignored */
#define POOL_FLAG_SPECIAL_POOL 0x0000000100000000ULL
#define POOL_FLAG_OPTIONAL_END 0x8000000000000000ULL

#define POOL_TAGGING 1

/* In POOL_TYPE. */
#define POOL_QUOTA_FAIL_INSTEAD_OF_RAISE 8
#define POOL_RAISE_IF_ALLOCATION_FAILURE 16
#define POOL_COLD_ALLOCATION 256
#define POOL_NX_ALLOCATION 512
#define POOL_ZERO_ALLOCATION 1024

typedef enum _POOL_EXTENDED_PARAMETER_TYPE {
    PoolExtendedParameterInvalidType = 0,
    PoolExtendedParameterPriority,
    PoolExtendedParameterSecurePool,
    PoolExtendedParameterNumaNode,
    PoolExtendedParameterMax
} POOL_EXTENDED_PARAMETER_TYPE, *PPOOL_EXTENDED_PARAMETER_TYPE;

#define POOL_EXTENDED_PARAMETER_TYPE_BITS 8
#define POOL_EXTENDED_PARAMETER_REQUIRED_FIELD_BITS 1
#define POOL_EXTENDED_PARAMETER_RESERVED_BITS 55

typedef ULONG POOL_NODE_REQUIREMENT;
#define MM_ANY_NODE_OK 0x80000000

typedef struct _POOL_EXTENDED_PARAMETER {
    __extension__ struct {
        ULONG64 Type : POOL_EXTENDED_PARAMETER_TYPE_BITS;
        ULONG64 Optional : POOL_EXTENDED_PARAMETER_REQUIRED_FIELD_BITS;
        ULONG64 Reserved : POOL_EXTENDED_PARAMETER_RESERVED_BITS;
    };
    __extension__ union {
        ULONG64 Reserved2;
        PVOID Reserved3;
        EX_POOL_PRIORITY Priority;
        struct _POOL_EXTENDED_PARAMS_SECURE_POOL *SecurePoolParams;
        POOL_NODE_REQUIREMENT PreferredNode;
    };
} POOL_EXTENDED_PARAMETER, *PPOOL_EXTENDED_PARAMETER;
typedef const POOL_EXTENDED_PARAMETER *PCPOOL_EXTENDED_PARAMETER;

C_ASSERT(sizeof(POOL_EXTENDED_PARAMETER) == 16);

/* Allocates zeroed memory, 16-byte aligned, page aligned from 4096 bytes on. Returns NULL if memory is exhausted or the
   flags are bad; with POOL_FLAG_RAISE_ON_FAILURE it raises a status instead. Memory of POOL_FLAG_UNINITIALIZED is not
   initialized; the verifier fills it with 0xCD. Differs: there is one pool; quota and session are ignored. Since 10. */
NTKERNELAPI PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);

/* The same with parameters. Fails for a parameter that is not optional and neither a priority nor a node. Differs:
   parameters have no effect. Since 10. */
NTKERNELAPI PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag,
                                  PCPOOL_EXTENDED_PARAMETER ExtendedParameters, ULONG ExtendedParametersCount);

/* Allocates memory, uninitialized unless the type has POOL_ZERO_ALLOCATION; the verifier fills it with 0xCD. Returns
   NULL if memory is exhausted, or raises STATUS_INSUFFICIENT_RESOURCES with POOL_RAISE_IF_ALLOCATION_FAILURE. Tag 0 is
   a bugcheck. Differs: there is one pool. Since NT 3.5. */
NTKERNELAPI PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);

/* ExAllocatePoolWithTag with the tag None, by which such blocks are listed. Since NT 3.1. */
NTKERNELAPI PVOID ExAllocatePool(POOL_TYPE PoolType, SIZE_T NumberOfBytes);

/* ExAllocatePoolWithTag with a hint of how important the allocation is when memory is scarce. Differs: the priority
 * has no effect. Since 2000. */
NTKERNELAPI PVOID ExAllocatePoolWithTagPriority(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                                EX_POOL_PRIORITY Priority);

/* ExAllocatePoolWithTag that raises STATUS_INSUFFICIENT_RESOURCES, unless the type has POOL_QUOTA_FAIL_INSTEAD_OF_RAISE.
   Differs: nothing is charged. Since NT 3.5. */
NTKERNELAPI PVOID ExAllocatePoolWithQuotaTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);

/* Allocate zeroed or uninitialized memory as the functions of these names without the last word do. Since 10. */
FORCEINLINE PVOID ExAllocatePoolZero(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return ExAllocatePoolWithTag((POOL_TYPE)((ULONG)PoolType | POOL_ZERO_ALLOCATION), NumberOfBytes, Tag);
}
FORCEINLINE PVOID ExAllocatePoolUninitialized(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return ExAllocatePoolWithTag(PoolType, NumberOfBytes, Tag);
}
FORCEINLINE PVOID ExAllocatePoolQuotaZero(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return ExAllocatePoolWithQuotaTag((POOL_TYPE)((ULONG)PoolType | POOL_ZERO_ALLOCATION), NumberOfBytes, Tag);
}
FORCEINLINE PVOID ExAllocatePoolQuotaUninitialized(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return ExAllocatePoolWithQuotaTag(PoolType, NumberOfBytes, Tag);
}
FORCEINLINE PVOID ExAllocatePoolPriorityZero(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                             EX_POOL_PRIORITY Priority)
{
    return ExAllocatePoolWithTagPriority((POOL_TYPE)((ULONG)PoolType | POOL_ZERO_ALLOCATION), NumberOfBytes, Tag,
                                         Priority);
}
FORCEINLINE PVOID ExAllocatePoolPriorityUninitialized(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                                      EX_POOL_PRIORITY Priority)
{
    return ExAllocatePoolWithTagPriority(PoolType, NumberOfBytes, Tag, Priority);
}
#define ExAllocatePoolWithQuota(PoolType, NumberOfBytes)                                                               \
    ExAllocatePoolWithQuotaTag(PoolType, NumberOfBytes, 0x656e6f4eu)

#define DrvRtPoolNxOptIn 0x00000001

/* Makes a driver's nonpaged pool non-executable. Differs: no effect, because no pool is executable. Since 8. */
FORCEINLINE VOID ExInitializeDriverRuntime(ULONG RuntimeFlags)
{
    UNREFERENCED_PARAMETER(RuntimeFlags);
}

/* Frees memory. A double free, NULL or a foreign address is bugcheck BAD_POOL_CALLER, and so is a wrong tag; ExFreePool
   ignores the tag. Since NT 4.0, NT 3.1. */
NTKERNELAPI VOID ExFreePoolWithTag(PVOID P, ULONG Tag);
NTKERNELAPI VOID ExFreePool(PVOID P);

/* Frees a block of any pool function, as ExFreePoolWithTag does. Differs: the parameters have no effect. Since 10. */
NTKERNELAPI VOID ExFreePool2(PVOID P, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                             ULONG ExtendedParametersCount);

/*
 * Fast mutexes and guarded mutexes. The same since Windows 8. Not recursive, IRQL <= APC_LEVEL, may block. Acquiring
 * raises to APC_LEVEL, releasing restores the IRQL; the Unsafe forms leave it alone. src/ex/fastmutex.c explains the
 * count.
 */

typedef struct _FAST_MUTEX {
    volatile LONG Count;
    ULONG Waking; /* Interlock's own: padding on Windows */
    PKTHREAD Owner;
    ULONG Contention;
    ULONG ForkDepth;                /* Interlock's own, likewise */
    KEVENT Event;
    ULONG OldIrql;
} FAST_MUTEX, *PFAST_MUTEX, KGUARDED_MUTEX, *PKGUARDED_MUTEX;

C_ASSERT(sizeof(FAST_MUTEX) == 56);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, Owner) == 8);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, Event) == 24);
C_ASSERT(FIELD_OFFSET(FAST_MUTEX, OldIrql) == 48);

#define FM_LOCK_BIT 0x1 /* Count of a free mutex */

/* Internal: in a program built with DBG, tells the verifier that a lock was initialized. */
NTKERNELAPI VOID ExpNoteFastMutex(PFAST_MUTEX FastMutex);

/* Initializes a fast mutex that no thread owns, before its first use. Since NT 3.5. */
FORCEINLINE VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex)
{
    FastMutex->Count = FM_LOCK_BIT;
    FastMutex->Waking = 0;
    FastMutex->Owner = NULL;
    FastMutex->Contention = 0;
    FastMutex->ForkDepth = 0;
    KeInitializeEvent(&FastMutex->Event, SynchronizationEvent, FALSE);
    FastMutex->OldIrql = 0;
#if defined(DBG) && DBG
    ExpNoteFastMutex(FastMutex);
#endif
}

/* Raises to APC_LEVEL and blocks until the mutex is acquired. Since NT 3.5. */
NTKERNELAPI VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex);

/* Releases the mutex and lowers the IRQL to the one before the acquire. Since NT 3.5. */
NTKERNELAPI VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex);

/* Acquires the mutex if it is free, and raises to APC_LEVEL. Otherwise returns FALSE and leaves the IRQL alone. Since
   NT 3.5. */
NTKERNELAPI BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex);

/* Acquires and releases without changing the IRQL, for callers that have kernel APCs disabled. Since NT 3.5. */
NTKERNELAPI VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex);
NTKERNELAPI VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex);

/* The same functions by their guarded mutex names. Since Server 2003. */
NTKERNELAPI VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex);
NTKERNELAPI VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX GuardedMutex);

/*
 * Pushlocks. Eight bytes, shared or exclusive, without an owner; zeroed memory is a free lock. For IRQL <= APC_LEVEL
 * with normal kernel APCs disabled. Not recursive: an exclusive owner that acquires again deadlocks, a sharer succeeds
 * only while there are no waiters. The names without Ex are macros with default flags. src/ex/pushlock.c explains
 * the word.
 */

typedef ULONG_PTR EX_PUSH_LOCK, *PEX_PUSH_LOCK;

#define EX_PUSH_LOCK_LOCK ((ULONG_PTR)0x1)
#define EX_PUSH_LOCK_WAITING ((ULONG_PTR)0x2)
#define EX_PUSH_LOCK_WAKING ((ULONG_PTR)0x4)
#define EX_PUSH_LOCK_MULTIPLE_SHARED ((ULONG_PTR)0x8)
#define EX_PUSH_LOCK_SHARE_INC ((ULONG_PTR)0x10)

#define EX_DEFAULT_PUSH_LOCK_FLAGS 0
#define EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST 1

/* Internal: the contended paths, and every path of a program built with DBG, where the verifier checks each call. */
NTKERNELAPI VOID ExfAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExfReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);

/* The functions of the same names without the f, out of line and with default flags. Since XP, XP, Vista, XP, Vista,
   Vista. */
NTKERNELAPI VOID ExfAcquirePushLockExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfAcquirePushLockShared(PEX_PUSH_LOCK PushLock);
NTKERNELAPI BOOLEAN ExfTryAcquirePushLockShared(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLock(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockExclusive(PEX_PUSH_LOCK PushLock);
NTKERNELAPI VOID ExfReleasePushLockShared(PEX_PUSH_LOCK PushLock);

/* Converts the only sharer to the exclusive owner and returns TRUE; FALSE if there are other sharers. Never blocks.
   Since 8. */
NTKERNELAPI BOOLEAN ExTryConvertPushLockSharedToExclusive(PEX_PUSH_LOCK PushLock);

/* Converts exclusive to shared and lets waiting sharers in. Never blocks. Since 8. */
NTKERNELAPI VOID ExConvertPushLockExclusiveToShared(PEX_PUSH_LOCK PushLock);

#if defined(INTERLOCK_DEBUG) || (defined(DBG) && DBG)
#define INTERLOCK_PUSH_LOCK_CHECKED TRUE
#else
#define INTERLOCK_PUSH_LOCK_CHECKED FALSE
#endif

/* Internal: a flag of calls whose releases also reach the library, so that the verifier can track the lock order. */
#if defined(DBG) && DBG
#define INTERLOCK_PUSH_LOCK_WATCHED ((ULONG)0x80000000)
#else
#define INTERLOCK_PUSH_LOCK_WATCHED ((ULONG)0)
#endif

/* Internal: one compare-exchange. Guesses the common value instead of reading it: a read would have to wait for the
   last store to the cache line. */
FORCEINLINE BOOLEAN ExpPushLockChange(PEX_PUSH_LOCK PushLock, ULONG_PTR From, ULONG_PTR To)
{
    return !INTERLOCK_PUSH_LOCK_CHECKED &&
           __atomic_compare_exchange_n(PushLock, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Internal: in a program built with DBG, tells the verifier that a lock was initialized. */
NTKERNELAPI VOID ExpNotePushLock(PEX_PUSH_LOCK PushLock);

/* Initializes a free pushlock: the word becomes 0. Since XP. */
FORCEINLINE VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock)
{
    *PushLock = 0;
#if defined(DBG) && DBG
    ExpNotePushLock(PushLock);
#endif
}

/* Blocks until the lock is acquired exclusively. Since 8. */
FORCEINLINE VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK)) {
        ExfAcquirePushLockExclusiveEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
    }
}

/* Blocks until the lock is acquired shared, behind waiting exclusive acquires. Since 8. */
FORCEINLINE VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC)) {
        ExfAcquirePushLockSharedEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
    }
}

/* Acquires the lock exclusively if it is free. Returns TRUE if it did. Since 8. */
FORCEINLINE BOOLEAN ExTryAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK) ||
           ExfTryAcquirePushLockExclusiveEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
}

/* Acquires the lock shared if that is possible at once. Returns TRUE if it did. Since 8. */
FORCEINLINE BOOLEAN ExTryAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    return ExpPushLockChange(PushLock, 0, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC) ||
           ExfTryAcquirePushLockSharedEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
}

/* Releases an exclusive acquire and wakes waiters if there are any. Since 8. */
FORCEINLINE VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLockExclusiveEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
    }
}

/* Releases a shared acquire. The last sharer wakes waiters if there are any. Since 8. */
FORCEINLINE VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK | EX_PUSH_LOCK_SHARE_INC, 0)) {
        ExfReleasePushLockSharedEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
    }
}

/* Releases an acquire of either kind. Since 8. */
FORCEINLINE VOID ExReleasePushLockEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (!ExpPushLockChange(PushLock, EX_PUSH_LOCK_LOCK, 0)) {
        ExfReleasePushLockEx(PushLock, Flags | INTERLOCK_PUSH_LOCK_WATCHED);
    }
}

#define ExAcquirePushLockExclusive(PushLock) ExAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquirePushLockShared(PushLock) ExAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockExclusive(PushLock) ExTryAcquirePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExTryAcquirePushLockShared(PushLock) ExTryAcquirePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockExclusive(PushLock) ExReleasePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockShared(PushLock) ExReleasePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLock(PushLock) ExReleasePushLockEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)

/*
 * Cache-aware pushlocks. One pushlock per processor, each on its own cache line; Locks are those of the first
 * processors. A sharer acquires the one of its processor, which is the handle for the release; an exclusive owner
 * acquires all.
 */

#define EX_PUSH_LOCK_FANNED_COUNT 32

typedef struct _EX_CACHE_AWARE_PUSH_LOCK {
    PEX_PUSH_LOCK Locks[EX_PUSH_LOCK_FANNED_COUNT];
} EX_CACHE_AWARE_PUSH_LOCK, *PEX_CACHE_AWARE_PUSH_LOCK;

/* Allocates a cache-aware pushlock; NULL if memory is exhausted. Since Server 2003. */
NTKERNELAPI PEX_CACHE_AWARE_PUSH_LOCK ExAllocateCacheAwarePushLock(VOID);

/* Frees the lock, which must not be held. Since Server 2003. */
NTKERNELAPI VOID ExFreeCacheAwarePushLock(PEX_CACHE_AWARE_PUSH_LOCK PushLock);

/* Acquires all of the words, blocking for each, and releases them. Since 8. */
NTKERNELAPI VOID ExAcquireCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseCacheAwarePushLockExclusiveEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);

/* Blocks until the current processor's word is acquired. Returns it, for the release. Since 8. */
NTKERNELAPI PEX_PUSH_LOCK ExAcquireCacheAwarePushLockSharedEx(PEX_CACHE_AWARE_PUSH_LOCK PushLock, ULONG Flags);

/* Releases the word that the acquire returned. Since 8. */
NTKERNELAPI VOID ExReleaseCacheAwarePushLockSharedEx(PEX_PUSH_LOCK Held, ULONG Flags);

#define ExAcquireCacheAwarePushLockExclusive(PushLock)                                                                 \
    ExAcquireCacheAwarePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleaseCacheAwarePushLockExclusive(PushLock)                                                                 \
    ExReleaseCacheAwarePushLockExclusiveEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquireCacheAwarePushLockShared(PushLock)                                                                    \
    ExAcquireCacheAwarePushLockSharedEx(PushLock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleaseCacheAwarePushLockShared(Held) ExReleaseCacheAwarePushLockSharedEx(Held, EX_DEFAULT_PUSH_LOCK_FLAGS)

/*
 * Auto-expand pushlocks. One word while sharers do not contend for it, then more and more words on cache lines of
 * single processors. Sharers get a handle for the release. src/ex/fannedpushlock.c explains it.
 */

typedef struct _EX_PUSH_LOCK_AUTO_EXPAND {
    EX_PUSH_LOCK LocalLock;
    volatile ULONG State;
    volatile ULONG Stats;
} EX_PUSH_LOCK_AUTO_EXPAND, *PEX_PUSH_LOCK_AUTO_EXPAND;

/* Flags of ExAllocateAutoExpandPushLock. */
#define EX_PUSH_LOCK_AUTO_EXPAND_FLAG_PAGEABLE 1

/* Allocates an auto-expand pushlock; NULL if memory is exhausted. Since 8.1. */
NTKERNELAPI PEX_PUSH_LOCK_AUTO_EXPAND ExAllocateAutoExpandPushLock(ULONG Flags);

/* Frees the lock, which must not be held. Since 8.1. */
NTKERNELAPI VOID ExFreeAutoExpandPushLock(PEX_PUSH_LOCK_AUTO_EXPAND PushLock);

/* Acquires the lock exclusively, blocking, and releases it. Since 8.1. */
NTKERNELAPI VOID ExAcquireAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);
NTKERNELAPI VOID ExReleaseAutoExpandPushLockExclusive(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);

/* Blocks until the lock is acquired shared. Returns the handle for the release. Since 8.1. */
NTKERNELAPI PEX_PUSH_LOCK ExAcquireAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, ULONG Flags);

/* Releases a shared acquire. Held is the handle that the acquire returned. Since 8.1. */
NTKERNELAPI VOID ExReleaseAutoExpandPushLockShared(PEX_PUSH_LOCK_AUTO_EXPAND PushLock, PEX_PUSH_LOCK Held,
                                                   ULONG Flags);

/*
 * Address-based pushlocks. The word is a list of waiters. ExBlockOnAddressPushLock waits for a value to change;
 * ExUnblockOnAddressPushLockEx follows the change.
 *
 * In single steps, for any condition: queue a wait block (ExBlockPushLock), check the condition, then either wait for
 * the block (ExTimedWaitForUnblockPushLock) or remove it (ExUnblockPushLockEx).
 */

typedef struct _EX_PUSH_LOCK_WAIT_BLOCK {
    ULONG_PTR Reserved[8];
} DECLSPEC_ALIGN(16) EX_PUSH_LOCK_WAIT_BLOCK, *PEX_PUSH_LOCK_WAIT_BLOCK;

/* Blocks while Size bytes (1, 2, 4 or 8) at Address equal those at CompareAddress. May wake spuriously: check the value
   again. Returns STATUS_TIMEOUT when the time is over. Since 8. */
NTKERNELAPI NTSTATUS ExBlockOnAddressPushLock(PEX_PUSH_LOCK PushLock, PVOID Address, PVOID CompareAddress, SIZE_T Size,
                                              PLARGE_INTEGER Timeout);

/* Wakes all waiters of the address; call it after the change. NULL wakes nothing. Since 8. */
NTKERNELAPI VOID ExUnblockOnAddressPushLockEx(PEX_PUSH_LOCK PushLock, PVOID Address, ULONG Flags);

/* Queues the caller's wait block, before the caller checks its condition. Since Server 2003. */
NTKERNELAPI VOID ExBlockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock);

/* Blocks on the queued block. Returns STATUS_TIMEOUT when the time is over. Since 8. */
NTKERNELAPI NTSTATUS ExTimedWaitForUnblockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock,
                                                   PLARGE_INTEGER Timeout);

/* Removes a queued block; NULL wakes all waiters instead. Since 8. */
NTKERNELAPI VOID ExUnblockPushLockEx(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock, ULONG Flags);

#define ExUnblockOnAddressPushLock(PushLock, Address)                                                                  \
    ExUnblockOnAddressPushLockEx(PushLock, Address, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExUnblockPushLock(PushLock, WaitBlock) ExUnblockPushLockEx(PushLock, WaitBlock, EX_DEFAULT_PUSH_LOCK_FLAGS)

/*
 * Executive resources. Shared or exclusive, recursive, with owners that a debugger can list. Normal kernel APCs must be
 * disabled from acquire to release; IRQL <= APC_LEVEL where it may block. The names without Lite are macros.
 * src/ex/resource.c explains the algorithm.
 */

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
    POWNER_ENTRY OwnerTable;                /* owners beyond the one in OwnerEntry */
    SHORT ActiveCount;                      /* 1: owned */
    __extension__ union {
        USHORT Flag;
        __extension__ struct {
            UCHAR ReservedLowFlags;
            UCHAR WaiterPriority;           /* 0: unknown */
        };
    };
    PKSEMAPHORE volatile SharedWaiters;     /* where the oldest waiter waits */
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

/* Initializes a free resource and links it into the system's list. Returns STATUS_SUCCESS. Since NT 4.0. */
NTKERNELAPI NTSTATUS ExInitializeResourceLite(PERESOURCE Resource);

/* Makes an unused resource free again. Since NT 4.0. */
NTKERNELAPI NTSTATUS ExReinitializeResourceLite(PERESOURCE Resource);

/* Unlinks the resource from the system's list. Owners or waiters are a bugcheck. Since NT 4.0. */
NTKERNELAPI NTSTATUS ExDeleteResourceLite(PERESOURCE Resource);

/* Acquires the resource exclusively; recursive. With Wait FALSE it returns FALSE instead of blocking. Since NT 4.0. */
NTKERNELAPI BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait);

/* Acquires the resource shared, behind exclusive waiters unless the thread already owns it. With Wait FALSE it returns
   FALSE instead of blocking. Since NT 4.0. */
NTKERNELAPI BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait);

/* Acquires the resource shared, ahead of exclusive waiters. With Wait FALSE it returns FALSE instead of blocking. Since
   NT 4.0. */
NTKERNELAPI BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait);

/* Acquires the resource shared, behind exclusive waiters even if the thread already owns it. With Wait FALSE it returns
   FALSE instead of blocking. Since NT 4.0. */
NTKERNELAPI BOOLEAN ExAcquireSharedWaitForExclusive(PERESOURCE Resource, BOOLEAN Wait);

/* Acquires the resource exclusively if that is possible at once. Returns TRUE if it did. Since NT 4.0. */
NTKERNELAPI BOOLEAN ExTryToAcquireResourceExclusiveLite(PERESOURCE Resource);

/* Releases one acquire of the calling thread. Bugcheck RESOURCE_NOT_OWNED if there is none. Since NT 4.0. */
NTKERNELAPI VOID ExReleaseResourceLite(PERESOURCE Resource);

/* Releases one acquire of the given thread or owner pointer. Since NT 4.0. */
NTKERNELAPI VOID ExReleaseResourceForThreadLite(PERESOURCE Resource, ERESOURCE_THREAD ResourceThreadId);

/* Converts exclusive to shared and lets waiting sharers in. Since NT 4.0. */
NTKERNELAPI VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource);

/* Transfers the caller's acquires to an owner pointer, whose low two bits are set. FLAG_OWNER_POINTER_IS_THREAD: the
   pointer is a thread. Since NT 4.0, 7. */
NTKERNELAPI VOID ExSetResourceOwnerPointer(PERESOURCE Resource, PVOID OwnerPointer);
NTKERNELAPI VOID ExSetResourceOwnerPointerEx(PERESOURCE Resource, PVOID OwnerPointer, ULONG Flags);

/* Returns TRUE if the calling thread owns the resource exclusively. Since NT 4.0. */
NTKERNELAPI BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource);

/* Returns how often the calling thread has acquired the resource, in either mode. Since NT 4.0. */
NTKERNELAPI ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource);

/* Returns the number of threads that wait for shared or exclusive access. Since NT 4.0. */
NTKERNELAPI ULONG ExGetSharedWaiterCount(PERESOURCE Resource);
NTKERNELAPI ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource);

/* Stops boosting owners on behalf of waiters. Since NT 4.0. */
NTKERNELAPI VOID ExDisableResourceBoostLite(PERESOURCE Resource);

/* KeEnterCriticalRegion and an acquire that blocks. The result is opaque. Since Server 2003. */
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireResourceExclusive(PERESOURCE Resource);
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireResourceShared(PERESOURCE Resource);
NTKERNELAPI PVOID ExEnterCriticalRegionAndAcquireSharedWaitForExclusive(PERESOURCE Resource);

/* ExReleaseResourceLite, then KeLeaveCriticalRegion, which delivers kernel APCs that became pending meanwhile. Since
   Server 2003. */
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
 * Fast resources. The caller provides an owner entry, which records one acquire, and passes it to the release. A
 * recursive acquire needs another entry. With EX_FAST_RESOURCE_ENABLE_LEGACY_APIS the functions of executive resources
 * that acquire, release, convert and query accept a fast resource too.
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

/* Initializes a free fast resource. With EX_FAST_RESOURCE_ENABLE_LEGACY_APIS in Flags the functions of an ERESOURCE
   accept it, too. Since 10. */
NTKERNELAPI VOID ExInitializeFastResource(PFAST_ERESOURCE Resource, ULONG Flags);

/* Ends a fast resource, which must be unused. Since 10. */
NTKERNELAPI VOID ExDeleteFastResource(PFAST_ERESOURCE Resource);

/* Initializes an owner entry, which records one acquire. Since 10. */
NTKERNELAPI VOID ExInitializeFastOwnerEntry(PFAST_OWNER_ENTRY OwnerEntry);

/* Acquires the resource exclusively and records it in the entry. With Wait FALSE it returns FALSE instead of blocking.
   Since 10. */
NTKERNELAPI BOOLEAN ExAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry,
                                                   BOOLEAN Wait);

/* Acquires the resource shared, behind or ahead of exclusive waiters. With Wait FALSE it returns FALSE instead of
   blocking. Since 10. */
NTKERNELAPI BOOLEAN ExAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Wait);
NTKERNELAPI BOOLEAN ExAcquireFastResourceSharedStarveExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry,
                                                               BOOLEAN Wait);

/* Acquires the resource if that is possible at once. Returns TRUE if it did. Since 10. */
NTKERNELAPI BOOLEAN ExTryAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);
NTKERNELAPI BOOLEAN ExTryAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* Releases the acquire of this entry. Since 10. */
NTKERNELAPI VOID ExReleaseFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* Converts exclusive to shared and lets waiting sharers in. Since 10. */
NTKERNELAPI VOID ExConvertFastResourceExclusiveToShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* Detaches the acquire from the thread, which may then end. Since 10. */
NTKERNELAPI VOID ExDisownFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* Releases a disowned acquire, on any thread. Since 10. */
NTKERNELAPI VOID ExReleaseDisownedFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry);

/* Returns TRUE if the calling thread holds the resource, in any mode or exclusively. Since 10. */
NTKERNELAPI BOOLEAN ExIsFastResourceHeld(PFAST_ERESOURCE Resource);
NTKERNELAPI BOOLEAN ExIsFastResourceHeldExclusive(PFAST_ERESOURCE Resource);

/*
 * Rundown protection. Keeps an object alive while it is in use; zeroed memory is a reference without holders. Acquires
 * succeed until the wait for the release begins, and again only after the reference is reinitialized. The wait returns
 * when the last holder has released; it returns at once if the reference is already run down. Each waiter may free the
 * reference once it returns, even while others are being woken. Only waiters block. src/ex/rundown.c explains the word.
 */

typedef struct _EX_RUNDOWN_REF {
    __extension__ union {
        volatile ULONG_PTR Count;
        volatile PVOID Ptr;
    };
} EX_RUNDOWN_REF, *PEX_RUNDOWN_REF;

C_ASSERT(sizeof(EX_RUNDOWN_REF) == 8);

#define EX_RUNDOWN_ACTIVE 0x1
#define EX_RUNDOWN_COUNT_SHIFT 0x1
#define EX_RUNDOWN_COUNT_INC (1 << EX_RUNDOWN_COUNT_SHIFT)

/* Internal: the paths where the inline guess was wrong. */
NTKERNELAPI BOOLEAN ExfAcquireRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExfReleaseRundownProtection(PEX_RUNDOWN_REF RunRef);
NTKERNELAPI VOID ExfWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef);

/* Initializes a reference without holders. Zeroed memory is one too. Since XP. */
NTKERNELAPI VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);

/* Makes a reference that was run down acquirable again. Since XP. */
NTKERNELAPI VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);

/* Marks the reference as run down without waiting. Since XP. */
NTKERNELAPI VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef);

/* Acquires and releases Count times at once. Since Server 2003. */
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);
NTKERNELAPI VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);

/* Internal: one compare-exchange. Guesses the common value instead of reading it: a read would have to wait for the
   last store to the cache line. */
FORCEINLINE BOOLEAN ExpRundownChange(PEX_RUNDOWN_REF RunRef, ULONG_PTR From, ULONG_PTR To)
{
    return __atomic_compare_exchange_n(&RunRef->Count, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Returns TRUE: the object stays until the release; FALSE once the rundown has begun. Since XP. */
FORCEINLINE BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    return ExpRundownChange(RunRef, 0, EX_RUNDOWN_COUNT_INC) || ExfAcquireRundownProtection(RunRef);
}

/* Releases one acquire. If there is none, it fails fast with FAST_FAIL_INVALID_REFERENCE_COUNT. Since XP. */
FORCEINLINE VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    if (!ExpRundownChange(RunRef, EX_RUNDOWN_COUNT_INC, 0)) {
        ExfReleaseRundownProtection(RunRef);
    }
}

/* Refuses new holders and blocks until the last one has released. At IRQL <= APC_LEVEL. Since XP. */
FORCEINLINE VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef)
{
    if (!ExpRundownChange(RunRef, 0, EX_RUNDOWN_ACTIVE)) {
        ExfWaitForRundownProtectionRelease(RunRef);
    }
}

/*
 * Cache-aware rundown protection. One cache line per processor: acquire and release touch only that of the current one,
 * which need not be the same. The caller may provide the memory: ExSizeOfRundownProtectionCacheAware bytes, aligned to
 * 8.
 */

/* Opaque, as in Windows. The first members are fixed, because the inline functions below use them. */
typedef struct _EX_RUNDOWN_REF_CACHE_AWARE {
    PEX_RUNDOWN_REF First;
    ULONG Number;
    volatile ULONG Closed;
    volatile LONG_PTR Area; /* 0: not inline */
} EX_RUNDOWN_REF_CACHE_AWARE, *PEX_RUNDOWN_REF_CACHE_AWARE;

/* Returns the size of a cache-aware reference in the caller's memory. Since Server 2003. */
NTKERNELAPI SIZE_T ExSizeOfRundownProtectionCacheAware(VOID);

/* Initializes a cache-aware reference in the caller's memory. Since Server 2003. */
NTKERNELAPI VOID ExInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware,
                                                         SIZE_T RunRefSize);

/* Frees a reference of ExAllocateCacheAwareRundownProtection. No thread may use it any more. Since Server 2003. */
NTKERNELAPI VOID ExFreeCacheAwareRundownProtection(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);

/* Acquires once or Count times. Returns FALSE once the rundown has begun. Since Server 2003. */
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI BOOLEAN ExAcquireRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware,
                                                           ULONG Count);

/* Releases once or Count times, on any processor. Since Server 2003. */
NTKERNELAPI VOID ExReleaseRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);
NTKERNELAPI VOID ExReleaseRundownProtectionCacheAwareEx(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, ULONG Count);

#if INTERLOCK_SECTIONS
/* Internal: src/ex/rundown.c, 13. FALSE: nothing has happened, and the function has to be called. */
FORCEINLINE BOOLEAN ExpRundownAddInline(PEX_RUNDOWN_REF_CACHE_AWARE RunRef, LONG_PTR Addend)
{
    LONG_PTR area = __atomic_load_n(&RunRef->Area, __ATOMIC_RELAXED);
    return area != 0 && InterlockAddInSection(area, RunRef->First, RunRef->Number, &RunRef->Closed, Addend);
}

/* Internal: the functions above, inline. */
FORCEINLINE BOOLEAN ExpAcquireRundownInline(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    return ExpRundownAddInline(RunRef, EX_RUNDOWN_COUNT_INC) || ExAcquireRundownProtectionCacheAware(RunRef);
}
FORCEINLINE VOID ExpReleaseRundownInline(PEX_RUNDOWN_REF_CACHE_AWARE RunRef)
{
    if (!ExpRundownAddInline(RunRef, -EX_RUNDOWN_COUNT_INC)) {
        ExReleaseRundownProtectionCacheAware(RunRef);
    }
}

#define ExAcquireRundownProtectionCacheAware(RunRef) ExpAcquireRundownInline(RunRef)
#define ExReleaseRundownProtectionCacheAware(RunRef) ExpReleaseRundownInline(RunRef)
#endif

/* Refuses new holders and blocks until the last one has released. At IRQL <= APC_LEVEL. Since Server 2003. */
NTKERNELAPI VOID ExWaitForRundownProtectionReleaseCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRef);

/* Makes a reference that was run down acquirable again. Since Server 2003. */
NTKERNELAPI VOID ExReInitializeRundownProtectionCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);

/* Marks the reference as run down without waiting. Since Server 2003. */
NTKERNELAPI VOID ExRundownCompletedCacheAware(PEX_RUNDOWN_REF_CACHE_AWARE RunRefCacheAware);

/* Allocates and initializes a cache-aware reference; NULL if memory is exhausted. Since Server 2003. */
NTKERNELAPI PEX_RUNDOWN_REF_CACHE_AWARE ExAllocateCacheAwareRundownProtection(POOL_TYPE PoolType, ULONG PoolTag);

/*
 * Fast references. A pointer to a 16-byte aligned object whose low four bits count references taken on the object in
 * advance. Taking one of them references the object without touching it. The pointer itself holds one more reference.
 * Zeroed memory is a fast reference to nothing. Windows exports none of these functions; ob.h applies them to objects.
 */

#define MAX_FAST_REFS 15

typedef struct _EX_FAST_REF {
    __extension__ union {
        PVOID Object;
        ULONG_PTR RefCnt : 4;
        volatile ULONG_PTR Value;
    };
} EX_FAST_REF, *PEX_FAST_REF;

C_ASSERT(sizeof(EX_FAST_REF) == 8);

/* Returns the object of a value. Since XP. */
FORCEINLINE PVOID ExGetObjectFastReference(EX_FAST_REF FastRef)
{
    return (PVOID)(FastRef.Value & ~(ULONG_PTR)MAX_FAST_REFS);
}

/* Returns the number of cached references in a value. Since XP. */
FORCEINLINE ULONG ExGetCountFastReference(EX_FAST_REF FastRef)
{
    return (ULONG)(FastRef.Value & MAX_FAST_REFS);
}

/* Points the reference to an object on which the caller has taken MAX_FAST_REFS + 1 references, or to nothing. Since
   XP. */
NTKERNELAPI VOID ExInitializeFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* Takes a cached reference. Returns the previous value; with a count of 0 nothing was taken. Since XP. */
NTKERNELAPI EX_FAST_REF ExAcquireFastReference(PEX_FAST_REF FastRef);

/* Returns a reference to the cache. FALSE: there is another object now, or no room; the caller keeps the reference.
   Since XP. */
NTKERNELAPI BOOLEAN ExReleaseFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* Puts Count references that the caller has taken into the cache. Returns how many the caller keeps. Since XP. */
NTKERNELAPI ULONG ExInsertFastReference(PEX_FAST_REF FastRef, PVOID Object, ULONG Count);

/* Replaces the object; the references are those of ExInitializeFastReference. Returns the old value, whose references
   now belong to the caller. Since XP. */
NTKERNELAPI EX_FAST_REF ExSwapFastReference(PEX_FAST_REF FastRef, PVOID Object);

/* Replaces the object if it is OldObject. Returns the value found; if that is another object, nothing changed. Since
   XP. */
NTKERNELAPI EX_FAST_REF ExCompareSwapFastReference(PEX_FAST_REF FastRef, PVOID Object, PVOID OldObject);

/*
 * Work queues. System threads run the items at PASSIVE_LEVEL. The queues differ in the priority of their threads;
 * CustomPriorityWorkQueue + n has priority n. A queue starts threads as its routines block, up to 256. An item belongs
 * to the system until its routine is called; then the routine may free it or queue it again. For IRQL <=
 * DISPATCH_LEVEL.
 */

typedef enum _WORK_QUEUE_TYPE {
    CriticalWorkQueue,
    DelayedWorkQueue,
    HyperCriticalWorkQueue,
    NormalWorkQueue,
    BackgroundWorkQueue,
    RealTimeWorkQueue,
    SuperCriticalWorkQueue,
    MaximumWorkQueue,
    CustomPriorityWorkQueue = 32
} WORK_QUEUE_TYPE;

typedef VOID WORKER_THREAD_ROUTINE(PVOID Parameter);
typedef WORKER_THREAD_ROUTINE *PWORKER_THREAD_ROUTINE;

typedef struct _WORK_QUEUE_ITEM {
    LIST_ENTRY List;
    PWORKER_THREAD_ROUTINE WorkerRoutine;
    volatile PVOID Parameter;
} WORK_QUEUE_ITEM, *PWORK_QUEUE_ITEM;

C_ASSERT(sizeof(WORK_QUEUE_ITEM) == 32);

/* Sets the routine and context of an item. Since NT 3.1. */
FORCEINLINE VOID ExInitializeWorkItem(PWORK_QUEUE_ITEM Item, PWORKER_THREAD_ROUTINE Routine, PVOID Context)
{
    Item->WorkerRoutine = Routine;
    Item->Parameter = Context;
    Item->List.Flink = NULL;
}

/* Queues the item. One that is already queued is a bugcheck. Since NT 3.1. */
NTKERNELAPI VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType);

/* Executive timers. Allocated timers with a callback. */

typedef struct _EX_TIMER *PEX_TIMER;
typedef VOID EXT_CALLBACK(PEX_TIMER Timer, PVOID Context);
typedef EXT_CALLBACK *PEXT_CALLBACK;
typedef VOID EXT_DELETE_CALLBACK(PVOID Context);
typedef EXT_DELETE_CALLBACK *PEXT_DELETE_CALLBACK;
typedef PVOID PEXT_CANCEL_PARAMETERS;

typedef struct _EXT_SET_PARAMETERS_V0 {
    ULONG Version;
    ULONG Reserved;
    LONGLONG NoWakeTolerance;
} EXT_SET_PARAMETERS, *PEXT_SET_PARAMETERS, KT2_SET_PARAMETERS, *PKT2_SET_PARAMETERS;

typedef struct _EXT_DELETE_PARAMETERS {
    ULONG Version;
    ULONG Reserved;
    PEXT_DELETE_CALLBACK DeleteCallback;
    PVOID DeleteContext;
} EXT_DELETE_PARAMETERS, *PEXT_DELETE_PARAMETERS;

#define EX_TIMER_HIGH_RESOLUTION 4
#define EX_TIMER_NO_WAKE 8
#define EX_TIMER_UNLIMITED_TOLERANCE ((LONGLONG)-1)
#define EX_TIMER_NOTIFICATION (1u << 31)

/* Zeroes the parameters of ExSetTimer, before the caller fills in those that it needs. Since 8.1. */
FORCEINLINE VOID ExInitializeSetTimerParameters(PEXT_SET_PARAMETERS Parameters)
{
    memset(Parameters, 0, sizeof(*Parameters));
}

/* Zeroes the parameters of ExDeleteTimer, before the caller fills in those that it needs. Since 8.1. */
FORCEINLINE VOID ExInitializeDeleteTimerParameters(PEXT_DELETE_PARAMETERS Parameters)
{
    memset(Parameters, 0, sizeof(*Parameters));
}

/* Allocates a timer, which can be waited on; its callback runs at DISPATCH_LEVEL. Returns NULL if memory is exhausted
   or an attribute is unknown. Differs: every timer has high resolution. Since 8.1. */
NTKERNELAPI PEX_TIMER ExAllocateTimer(PEXT_CALLBACK Callback, PVOID CallbackContext, ULONG Attributes);

/* Sets the due time and period, both in 100 ns. Returns TRUE if the timer was already set; that setting is replaced.
   Differs: an unlimited tolerance is one second. Since 8.1. */
NTKERNELAPI BOOLEAN ExSetTimer(PEX_TIMER Timer, LONGLONG DueTime, LONGLONG Period, PEXT_SET_PARAMETERS Parameters);

/* Cancels the timer. Returns TRUE if it was set. Since 8.1. */
NTKERNELAPI BOOLEAN ExCancelTimer(PEX_TIMER Timer, PEXT_CANCEL_PARAMETERS Parameters);

/* Deletes the timer, cancelling it and waiting for its callback as asked. Returns TRUE if it cancelled the timer.
   Waiting needs IRQL <= APC_LEVEL. Since 8.1. */
NTKERNELAPI BOOLEAN ExDeleteTimer(PEX_TIMER Timer, BOOLEAN Cancel, BOOLEAN Wait, PEXT_DELETE_PARAMETERS Parameters);

/*
 * Lookaside lists. Blocks of one size that are kept for reuse. A list keeps at most Depth blocks, which follows the demand: it
 * doubles, up to MaximumDepth, while allocations find the list empty, and halves while the list is hardly used. With the
 * verifier lists keep nothing, so that the pool finds a block that is freed twice or used afterwards.
 */

typedef struct _LOOKASIDE_LIST_EX *PLOOKASIDE_LIST_EX;

typedef PVOID ALLOCATE_FUNCTION(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
typedef ALLOCATE_FUNCTION *PALLOCATE_FUNCTION;
typedef PVOID ALLOCATE_FUNCTION_EX(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag, PLOOKASIDE_LIST_EX Lookaside);
typedef ALLOCATE_FUNCTION_EX *PALLOCATE_FUNCTION_EX;
typedef VOID FREE_FUNCTION(PVOID Buffer);
typedef FREE_FUNCTION *PFREE_FUNCTION;
typedef VOID FREE_FUNCTION_EX(PVOID Buffer, PLOOKASIDE_LIST_EX Lookaside);
typedef FREE_FUNCTION_EX *PFREE_FUNCTION_EX;

#define LOOKASIDE_ALIGN DECLSPEC_CACHEALIGN

#define GENERAL_LOOKASIDE_LAYOUT                                                                                       \
    __extension__ union {                                                                                              \
        SLIST_HEADER ListHead;                                                                                         \
        SINGLE_LIST_ENTRY SingleListHead;                                                                              \
    };                                                                                                                 \
    USHORT Depth;                                                                                                      \
    USHORT MaximumDepth;                                                                                               \
    ULONG TotalAllocates;                                                                                              \
    __extension__ union {                                                                                              \
        ULONG AllocateMisses;                                                                                          \
        ULONG AllocateHits;                                                                                            \
    };                                                                                                                 \
    ULONG TotalFrees;                                                                                                  \
    __extension__ union {                                                                                              \
        ULONG FreeMisses;                                                                                              \
        ULONG FreeHits;                                                                                                \
    };                                                                                                                 \
    POOL_TYPE Type;                                                                                                    \
    ULONG Tag;                                                                                                         \
    ULONG Size;                                                                                                        \
    __extension__ union {                                                                                              \
        PALLOCATE_FUNCTION_EX AllocateEx;                                                                              \
        PALLOCATE_FUNCTION Allocate;                                                                                   \
    };                                                                                                                 \
    __extension__ union {                                                                                              \
        PFREE_FUNCTION_EX FreeEx;                                                                                      \
        PFREE_FUNCTION Free;                                                                                           \
    };                                                                                                                 \
    LIST_ENTRY ListEntry;                                                                                              \
    ULONG LastTotalAllocates;                                                                                          \
    __extension__ union {                                                                                              \
        ULONG LastAllocateMisses;                                                                                      \
        ULONG LastAllocateHits;                                                                                        \
    };                                                                                                                 \
    ULONG Future[2]

typedef struct LOOKASIDE_ALIGN _GENERAL_LOOKASIDE {
    GENERAL_LOOKASIDE_LAYOUT;
} GENERAL_LOOKASIDE, *PGENERAL_LOOKASIDE;

typedef struct _GENERAL_LOOKASIDE_POOL {
    GENERAL_LOOKASIDE_LAYOUT;
} GENERAL_LOOKASIDE_POOL, *PGENERAL_LOOKASIDE_POOL;

typedef struct LOOKASIDE_ALIGN _NPAGED_LOOKASIDE_LIST {
    GENERAL_LOOKASIDE L;
} NPAGED_LOOKASIDE_LIST, *PNPAGED_LOOKASIDE_LIST;

typedef struct LOOKASIDE_ALIGN _PAGED_LOOKASIDE_LIST {
    GENERAL_LOOKASIDE L;
} PAGED_LOOKASIDE_LIST, *PPAGED_LOOKASIDE_LIST;

typedef struct _LOOKASIDE_LIST_EX {
    GENERAL_LOOKASIDE_POOL L;
} LOOKASIDE_LIST_EX;

C_ASSERT(sizeof(GENERAL_LOOKASIDE) == 128 && sizeof(NPAGED_LOOKASIDE_LIST) == 128 &&
         sizeof(PAGED_LOOKASIDE_LIST) == 128);
C_ASSERT(sizeof(LOOKASIDE_LIST_EX) == 96);
C_ASSERT(FIELD_OFFSET(GENERAL_LOOKASIDE, TotalAllocates) == 20 && FIELD_OFFSET(GENERAL_LOOKASIDE, Tag) == 40 &&
         FIELD_OFFSET(GENERAL_LOOKASIDE, Allocate) == 48 && FIELD_OFFSET(GENERAL_LOOKASIDE, Future) == 88);

#define LOOKASIDE_MINIMUM_BLOCK_SIZE 8
#define EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL 0x00000001U
#define EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE 0x00000002U
#define EX_MAXIMUM_LOOKASIDE_DEPTH_BASE 256
#define EX_MAXIMUM_LOOKASIDE_DEPTH_LIMIT 1024

/* Initializes an empty list. The routines may be NULL for the pool; Flags may be POOL_RAISE_IF_ALLOCATION_FAILURE and
   POOL_NX_ALLOCATION; Depth is ignored. Raises STATUS_DATATYPE_MISALIGNMENT for a list that is not 16-byte aligned.
   Since NT 4.0. */
NTKERNELAPI VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                                 PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
                                                 USHORT Depth);
NTKERNELAPI VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                                PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag, USHORT Depth);

/* The same for a pool type, with routines that get the list. Returns STATUS_INVALID_PARAMETER_4 for an unknown type,
   STATUS_INVALID_PARAMETER_5 for unknown flags or both of them. Since Vista. */
NTKERNELAPI NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
                                                 PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags, SIZE_T Size,
                                                 ULONG Tag, USHORT Depth);

/* Frees the blocks that the list keeps. The list must not be used any more. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Frees the blocks that the list keeps now. Since Vista. */
NTKERNELAPI VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Takes a block from the list, or from the allocate routine if the list is empty; NULL if that returns NULL. Up to
   DISPATCH_LEVEL, for a paged list up to APC_LEVEL. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside);
NTKERNELAPI PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside);

/* Puts a block into the list, or frees it if the list keeps Depth of them. Since NT 4.0, NT 4.0, Vista. */
NTKERNELAPI VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);
NTKERNELAPI VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry);
NTKERNELAPI VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry);

/* Unique identifiers. */

#ifndef UUID_DEFINED
#define UUID_DEFINED
typedef GUID UUID;
#endif
#ifndef RPC_NT_UUID_LOCAL_ONLY
#define RPC_NT_UUID_LOCAL_ONLY ((NTSTATUS)0x40020056)
#endif

/* Stores a new identifier, of version 1: made of the time, which never repeats in a process, and of a random node. Returns
   RPC_NT_UUID_LOCAL_ONLY, a success, if the host has no random numbers. Differs: the node is not a network address. At
   PASSIVE_LEVEL. Since 2000. */
NTKERNELAPI NTSTATUS ExUuidCreate(UUID *Uuid);

INTERLOCK_END

#endif
