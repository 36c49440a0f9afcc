/* ex.h: the executive. Raised statuses, pool, timers of the executive. */
#ifndef INTERLOCK_EX_H
#define INTERLOCK_EX_H

#include <interlock/fastmutex.h>
#include <interlock/fastref.h>
#include <interlock/ke.h>
#include <interlock/pushlock.h>
#include <interlock/resource.h>
#include <interlock/rundown.h>
#include <interlock/slist.h>
#include <interlock/workqueue.h>

INTERLOCK_BEGIN

/* Raising. What is raised is caught by __try/__except (interlock/exception.h); uncaught it is a bugcheck. */

NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseStatus(NTSTATUS Status);
NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseAccessViolation(VOID);
NTKERNELAPI DECLSPEC_NORETURN VOID ExRaiseDatatypeMisalignment(VOID);

/*
 * Spinlocks of readers and writers; zeroed memory is a free one. A writer that waits keeps new readers out, so a reader
 * must not ask for the lock again. The conversion fails while there are other readers, and then is still shared.
 */

typedef volatile LONG EX_SPIN_LOCK, *PEX_SPIN_LOCK;
#define ALIGNED_EX_SPINLOCK DECLSPEC_CACHEALIGN EX_SPIN_LOCK

NTKERNELAPI KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI LOGICAL ExTryAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI LOGICAL ExTryAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI LOGICAL ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);
NTKERNELAPI VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql);
NTKERNELAPI VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock);
NTKERNELAPI VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock);
#define ExTryConvertSharedSpinLockToExclusive ExTryConvertSharedSpinLockExclusive

#define ExAcquireSpinLock(SpinLock, OldIrql) KeAcquireSpinLock(SpinLock, OldIrql)
#define ExReleaseSpinLock(SpinLock, OldIrql) KeReleaseSpinLock(SpinLock, OldIrql)
#define ExAcquireSpinLockAtDpcLevel(SpinLock) KeAcquireSpinLockAtDpcLevel(SpinLock)
#define ExReleaseSpinLockFromDpcLevel(SpinLock) KeReleaseSpinLockFromDpcLevel(SpinLock)

/*
 * Interlocked operations under a spinlock, at any IRQL. The lock must be used with these routines only. Insertions
 * return the entry that was first or last before, additions the value before, removals what they removed; NULL: the list
 * was empty. The macros do not look at the lock: one instruction does the same.
 */

NTKERNELAPI PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
NTKERNELAPI PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
NTKERNELAPI PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock);
NTKERNELAPI PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY ListEntry,
                                                          PKSPIN_LOCK Lock);
NTKERNELAPI PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock);
NTKERNELAPI ULONG ExInterlockedAddUlong(PULONG Addend, ULONG Increment, PKSPIN_LOCK Lock);
NTKERNELAPI LARGE_INTEGER ExInterlockedAddLargeInteger(PLARGE_INTEGER Addend, LARGE_INTEGER Increment,
                                                       PKSPIN_LOCK Lock);

/* Those of one word, from before there were Interlocked functions: one instruction, the lock is not looked at. */

#define RESULT_ZERO 0
#define RESULT_NEGATIVE 1
#define RESULT_POSITIVE 2

typedef enum _INTERLOCKED_RESULT {
    ResultNegative = RESULT_NEGATIVE,
    ResultZero = RESULT_ZERO,
    ResultPositive = RESULT_POSITIVE
} INTERLOCKED_RESULT;

FORCEINLINE INTERLOCKED_RESULT ExpInterlockedResult(LONG Value)
{
    return Value < 0 ? ResultNegative : Value == 0 ? ResultZero : ResultPositive;
}

/* The sign of the new value. */
FORCEINLINE INTERLOCKED_RESULT ExInterlockedIncrementLong(volatile LONG *Addend, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return ExpInterlockedResult(InterlockedIncrement(Addend));
}

FORCEINLINE INTERLOCKED_RESULT ExInterlockedDecrementLong(volatile LONG *Addend, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return ExpInterlockedResult(InterlockedDecrement(Addend));
}

FORCEINLINE ULONG ExInterlockedExchangeUlong(volatile ULONG *Target, ULONG Value, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return (ULONG)InterlockedExchange((volatile LONG *)Target, (LONG)Value);
}

/* The old value. */
FORCEINLINE LONG ExInterlockedCompareExchange(volatile LONG *Destination, LONG Exchange, LONG Comperand,
                                              PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return InterlockedCompareExchange(Destination, Exchange, Comperand);
}

#define ExInterlockedAddLargeStatistic(Addend, Increment) ((VOID)InterlockedAdd64(&(Addend)->QuadPart, Increment))
#define ExInterlockedCompareExchange64(Destination, Exchange, Comperand, Lock)                                         \
    InterlockedCompareExchange64(Destination, *(Exchange), *(Comperand))

/* Interlocked singly linked lists (interlock/slist.h) by the executive's names. The lock is not looked at. */

NTKERNELAPI PSLIST_ENTRY ExInterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
NTKERNELAPI PSLIST_ENTRY ExInterlockedPopEntrySList(PSLIST_HEADER ListHead, PKSPIN_LOCK Lock);
#define ExInterlockedPushEntrySList(ListHead, ListEntry, Lock) InterlockedPushEntrySList(ListHead, ListEntry)
#define ExInterlockedPopEntrySList(ListHead, Lock) InterlockedPopEntrySList(ListHead)
#define ExInterlockedFlushSList InterlockedFlushSList
#define ExInitializeSListHead InitializeSListHead
#define ExQueryDepthSList QueryDepthSList

/* Pool. */

typedef enum _POOL_TYPE {
    NonPagedPool = 0,
    NonPagedPoolExecute = 0,
    PagedPool = 1,
    NonPagedPoolCacheAligned = 4,
    PagedPoolCacheAligned = 5,
    NonPagedPoolNx = 512,
    NonPagedPoolNxCacheAligned = 516
} POOL_TYPE;

typedef ULONG64 POOL_FLAGS;

#define POOL_FLAG_USE_QUOTA 0x0000000000000001ULL
#define POOL_FLAG_UNINITIALIZED 0x0000000000000002ULL
#define POOL_FLAG_SESSION 0x0000000000000004ULL
#define POOL_FLAG_CACHE_ALIGNED 0x0000000000000008ULL
#define POOL_FLAG_RAISE_ON_FAILURE 0x0000000000000020ULL
#define POOL_FLAG_NON_PAGED 0x0000000000000040ULL
#define POOL_FLAG_NON_PAGED_EXECUTE 0x0000000000000080ULL
#define POOL_FLAG_PAGED 0x0000000000000100ULL
#define POOL_FLAG_OPTIONAL_START 0x0000000100000000ULL /* unknown flags from here on are ignored */

#define POOL_RAISE_IF_ALLOCATION_FAILURE 16 /* in POOL_TYPE */

NTKERNELAPI PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);
NTKERNELAPI PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
NTKERNELAPI VOID ExFreePoolWithTag(PVOID P, ULONG Tag);
NTKERNELAPI VOID ExFreePool(PVOID P);

/* Rundown protection with a line for each processor (interlock/rundown.h), from pool; NULL when there is no memory. */

NTKERNELAPI PEX_RUNDOWN_REF_CACHE_AWARE ExAllocateCacheAwareRundownProtection(POOL_TYPE PoolType, ULONG PoolTag);

/* Timers of the executive. */

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

FORCEINLINE VOID ExInitializeSetTimerParameters(PEXT_SET_PARAMETERS Parameters)
{
    memset(Parameters, 0, sizeof(*Parameters));
}

FORCEINLINE VOID ExInitializeDeleteTimerParameters(PEXT_DELETE_PARAMETERS Parameters)
{
    memset(Parameters, 0, sizeof(*Parameters));
}

NTKERNELAPI PEX_TIMER ExAllocateTimer(PEXT_CALLBACK Callback, PVOID CallbackContext, ULONG Attributes);
NTKERNELAPI BOOLEAN ExSetTimer(PEX_TIMER Timer, LONGLONG DueTime, LONGLONG Period, PEXT_SET_PARAMETERS Parameters);
NTKERNELAPI BOOLEAN ExCancelTimer(PEX_TIMER Timer, PEXT_CANCEL_PARAMETERS Parameters);
NTKERNELAPI BOOLEAN ExDeleteTimer(PEX_TIMER Timer, BOOLEAN Cancel, BOOLEAN Wait, PEXT_DELETE_PARAMETERS Parameters);

INTERLOCK_END

#endif
