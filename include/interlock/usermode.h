/*
 * usermode.h: what rtl.h and windows.h share: the locks of user mode as structures, with their inline paths, and
 * the types of the thread pool with its callback environments.
 */
#ifndef INTERLOCK_USERMODE_H
#define INTERLOCK_USERMODE_H

#include <interlock/windef.h>

INTERLOCK_BEGIN

/* Slim reader/writer locks. */

typedef struct _RTL_SRWLOCK {
    PVOID Ptr;
} RTL_SRWLOCK, *PRTL_SRWLOCK;

#define RTL_SRWLOCK_INIT {0}

C_ASSERT(sizeof(RTL_SRWLOCK) == 8);

/* Internal: the paths where the inline guess was wrong. */
NTSYSAPI VOID RtlpAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI BOOLEAN RtlpTryAcquireSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI BOOLEAN RtlpTryAcquireSRWLockSharedContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpReleaseSRWLockExclusiveContended(PRTL_SRWLOCK SRWLock);
NTSYSAPI VOID RtlpReleaseSRWLockSharedContended(PRTL_SRWLOCK SRWLock);

#define RTLP_SRWLOCK_EXCLUSIVE ((ULONG_PTR)0x1)
#define RTLP_SRWLOCK_ONE_SHARER ((ULONG_PTR)0x11)

/* A program built with DBG calls the library for each operation, so that the verifier can keep the lock order. Then
 * the inline functions are static, because the library's own functions of the same names do not make these calls. */
#if defined(DBG) && DBG
#define INTERLOCK_SRWLOCK_WATCHED 1
#else
#define INTERLOCK_SRWLOCK_WATCHED 0
#endif

typedef enum _RTLP_SRWLOCK_CALL {
    RtlpSRWLockInitialized,
    RtlpSRWLockAcquireExclusive,
    RtlpSRWLockAcquireShared,
    RtlpSRWLockTryExclusive,
    RtlpSRWLockTryShared,
    RtlpSRWLockReleaseExclusive,
    RtlpSRWLockReleaseShared
} RTLP_SRWLOCK_CALL;

/* Internal: an operation of a program built with DBG. */
NTSYSAPI BOOLEAN RtlpWatchSRWLock(PRTL_SRWLOCK SRWLock, RTLP_SRWLOCK_CALL Call);

#if INTERLOCK_SRWLOCK_WATCHED
#pragma push_macro("NTSYSAPI")
#undef NTSYSAPI
#define NTSYSAPI static __attribute__((always_inline))
#endif

/* Internal: one compare-exchange, acq_rel: an acquire pairs with the release before it. Guesses the common value
   instead of reading it: a read would have to wait for the last store to the cache line. */
NTSYSAPI inline BOOLEAN RtlpChangeSRWLock(PRTL_SRWLOCK SRWLock, ULONG_PTR From, ULONG_PTR To)
{
    return __atomic_compare_exchange_n((volatile ULONG_PTR *)SRWLock, &From, To, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Internal: InitializeSRWLock, inline. */
NTSYSAPI inline VOID RtlpInitializeSRWLock(PRTL_SRWLOCK SRWLock)
{
    __atomic_store_n((volatile ULONG_PTR *)SRWLock, 0, __ATOMIC_RELEASE);
    if (INTERLOCK_SRWLOCK_WATCHED) {
        RtlpWatchSRWLock(SRWLock, RtlpSRWLockInitialized);
    }
}

/* Internal: AcquireSRWLockExclusive, inline. */
NTSYSAPI inline VOID RtlpAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        RtlpWatchSRWLock(SRWLock, RtlpSRWLockAcquireExclusive);
    } else if (!RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_EXCLUSIVE)) {
        RtlpAcquireSRWLockExclusiveContended(SRWLock);
    }
}

/* Internal: AcquireSRWLockShared, inline. */
NTSYSAPI inline VOID RtlpAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        RtlpWatchSRWLock(SRWLock, RtlpSRWLockAcquireShared);
    } else if (!RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_ONE_SHARER)) {
        RtlpAcquireSRWLockSharedContended(SRWLock);
    }
}

/* Internal: TryAcquireSRWLockExclusive, inline. */
NTSYSAPI inline BOOLEAN RtlpTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        return RtlpWatchSRWLock(SRWLock, RtlpSRWLockTryExclusive);
    }
    return RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_EXCLUSIVE) || RtlpTryAcquireSRWLockExclusiveContended(SRWLock);
}

/* Internal: TryAcquireSRWLockShared, inline. */
NTSYSAPI inline BOOLEAN RtlpTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        return RtlpWatchSRWLock(SRWLock, RtlpSRWLockTryShared);
    }
    return RtlpChangeSRWLock(SRWLock, 0, RTLP_SRWLOCK_ONE_SHARER) || RtlpTryAcquireSRWLockSharedContended(SRWLock);
}

/* Internal: ReleaseSRWLockExclusive, inline. */
NTSYSAPI inline VOID RtlpReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        RtlpWatchSRWLock(SRWLock, RtlpSRWLockReleaseExclusive);
    } else if (!RtlpChangeSRWLock(SRWLock, RTLP_SRWLOCK_EXCLUSIVE, 0)) {
        RtlpReleaseSRWLockExclusiveContended(SRWLock);
    }
}

/* Internal: ReleaseSRWLockShared, inline. */
NTSYSAPI inline VOID RtlpReleaseSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    if (INTERLOCK_SRWLOCK_WATCHED) {
        RtlpWatchSRWLock(SRWLock, RtlpSRWLockReleaseShared);
    } else if (!RtlpChangeSRWLock(SRWLock, RTLP_SRWLOCK_ONE_SHARER, 0)) {
        RtlpReleaseSRWLockSharedContended(SRWLock);
    }
}

#if INTERLOCK_SRWLOCK_WATCHED
#pragma pop_macro("NTSYSAPI")
#endif

/* Address waits. */

#define RTLP_ADDRESS_BUCKETS 4096
#define RTLP_ADDRESS_BUCKET_SHIFT 52
#define RTLP_ADDRESS_HASH 0x9e3779b97f4a7c15ull

/* Internal: not 0 while no thread waits on an address of the bucket and a plain load is enough to see that
   (src/rtl/addresswait.c). */
extern NTSYSAPI volatile UCHAR RtlpQuietAddresses[RTLP_ADDRESS_BUCKETS];

/* Internal: the wakes where the bucket is not quiet. */
NTSYSAPI VOID RtlpWakeAddressSingle(PVOID Address);
NTSYSAPI VOID RtlpWakeAddressAll(PVOID Address);

/* Internal: TRUE: a later waiter sees the caller's store. The fence keeps the compiler from moving the load before that
   store; the waiter executes the barrier for the processor. */
NTSYSAPI inline BOOLEAN RtlpIsAddressQuiet(PVOID Address)
{
    ULONG64 Hash = (ULONG_PTR)Address * RTLP_ADDRESS_HASH;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&RtlpQuietAddresses[Hash >> RTLP_ADDRESS_BUCKET_SHIFT], __ATOMIC_RELAXED) != 0;
}

/* Run-once. */

#define RTL_RUN_ONCE_INIT {0}
#define RTL_RUN_ONCE_CHECK_ONLY 0x00000001UL
#define RTL_RUN_ONCE_ASYNC 0x00000002UL
#define RTL_RUN_ONCE_INIT_FAILED 0x00000004UL
#define RTL_RUN_ONCE_CTX_RESERVED_BITS 2

typedef union _RTL_RUN_ONCE {
    PVOID Ptr;
} RTL_RUN_ONCE, *PRTL_RUN_ONCE;

C_ASSERT(sizeof(RTL_RUN_ONCE) == 8);

/* Critical sections. */

#define RTL_CRITSECT_TYPE 0
#define RTL_RESOURCE_TYPE 1

/* One per section or resource that has debug information, linked into the list of the process. */
typedef struct _RTL_CRITICAL_SECTION_DEBUG {
    WORD Type;
    WORD CreatorBackTraceIndex;
    struct _RTL_CRITICAL_SECTION *CriticalSection;
    LIST_ENTRY ProcessLocksList;
    DWORD EntryCount;
    DWORD ContentionCount;
    DWORD Flags;
    WORD CreatorBackTraceIndexHigh;
    WORD Identifier;
} RTL_CRITICAL_SECTION_DEBUG, *PRTL_CRITICAL_SECTION_DEBUG, RTL_RESOURCE_DEBUG, *PRTL_RESOURCE_DEBUG;

/* LockCount: -1 free, -2 held. Bit 0 clear: held. Bit 1 clear: a woken waiter has not run yet. The rest is -1 minus the
   number of waiters. */
typedef struct _RTL_CRITICAL_SECTION {
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo; /* (PVOID)-1: none */
    LONG LockCount;
    LONG RecursionCount;
    HANDLE OwningThread;  /* its id; NULL: free */
    HANDLE LockSemaphore; /* how waiters wait: NULL before the first one, an event, or -1 */
    ULONG_PTR SpinCount;  /* the upper 32 bits: how often a thread had to wait */
} RTL_CRITICAL_SECTION, *PRTL_CRITICAL_SECTION;

C_ASSERT(sizeof(RTL_CRITICAL_SECTION) == 40);
C_ASSERT(FIELD_OFFSET(RTL_CRITICAL_SECTION, LockCount) == 8);
C_ASSERT(FIELD_OFFSET(RTL_CRITICAL_SECTION, SpinCount) == 32);
C_ASSERT(sizeof(RTL_CRITICAL_SECTION_DEBUG) == 48);

/* Flags of RtlInitializeCriticalSectionEx. The low 24 bits of a spin count are the count. */
#define RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO 0x01000000
#define RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN 0x02000000
#define RTL_CRITICAL_SECTION_FLAG_STATIC_INIT 0x04000000
#define RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE 0x08000000
#define RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO 0x10000000
#define RTL_CRITICAL_SECTION_ALL_FLAG_BITS 0xFF000000
#define RTL_CRITICAL_SECTION_FLAG_RESERVED                                                                             \
    (RTL_CRITICAL_SECTION_ALL_FLAG_BITS &                                                                              \
     (~(RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO | RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN |                             \
        RTL_CRITICAL_SECTION_FLAG_STATIC_INIT | RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE |                              \
        RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO)))
#define RTL_CRITICAL_SECTION_DEBUG_FLAG_STATIC_INIT 0x00000001

/* Condition variables. */

typedef struct _RTL_CONDITION_VARIABLE {
    PVOID Ptr;
} RTL_CONDITION_VARIABLE, *PRTL_CONDITION_VARIABLE;

#define RTL_CONDITION_VARIABLE_INIT {0}
#define RTL_CONDITION_VARIABLE_LOCKMODE_SHARED 0x1

C_ASSERT(sizeof(RTL_CONDITION_VARIABLE) == 8);

/* Barriers. */

typedef struct _RTL_BARRIER {
    DWORD Reserved1;
    DWORD Reserved2;
    ULONG_PTR Reserved3[2];
    DWORD Reserved4;
    DWORD Reserved5;
} RTL_BARRIER, *PRTL_BARRIER;

C_ASSERT(sizeof(RTL_BARRIER) == 32);

/* Thread pool. */

typedef DWORD TP_VERSION, *PTP_VERSION;
typedef DWORD TP_WAIT_RESULT;

typedef struct _TP_POOL TP_POOL, *PTP_POOL;
typedef struct _TP_CLEANUP_GROUP TP_CLEANUP_GROUP, *PTP_CLEANUP_GROUP;
typedef struct _TP_CALLBACK_INSTANCE TP_CALLBACK_INSTANCE, *PTP_CALLBACK_INSTANCE;
typedef struct _TP_WORK TP_WORK, *PTP_WORK;
typedef struct _TP_TIMER TP_TIMER, *PTP_TIMER;
typedef struct _TP_WAIT TP_WAIT, *PTP_WAIT;
typedef struct _TP_IO TP_IO, *PTP_IO;
struct _ACTIVATION_CONTEXT;

typedef VOID (*PTP_SIMPLE_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context);
typedef VOID (*PTP_WORK_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WORK Work);
typedef VOID (*PTP_TIMER_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_TIMER Timer);
typedef VOID (*PTP_WAIT_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WAIT Wait,
                                  TP_WAIT_RESULT WaitResult);
typedef VOID (*PTP_CLEANUP_GROUP_CANCEL_CALLBACK)(PVOID ObjectContext, PVOID CleanupContext);

typedef enum _TP_CALLBACK_PRIORITY {
    TP_CALLBACK_PRIORITY_HIGH,
    TP_CALLBACK_PRIORITY_NORMAL,
    TP_CALLBACK_PRIORITY_LOW,
    TP_CALLBACK_PRIORITY_INVALID,
    TP_CALLBACK_PRIORITY_COUNT = TP_CALLBACK_PRIORITY_INVALID
} TP_CALLBACK_PRIORITY;

typedef struct _TP_POOL_STACK_INFORMATION {
    SIZE_T StackReserve;
    SIZE_T StackCommit;
} TP_POOL_STACK_INFORMATION, *PTP_POOL_STACK_INFORMATION;

/* The older interface of the thread pool. */

#define WT_EXECUTEDEFAULT 0x00000000
#define WT_EXECUTEINIOTHREAD 0x00000001
#define WT_EXECUTEINUITHREAD 0x00000002
#define WT_EXECUTEINWAITTHREAD 0x00000004
#define WT_EXECUTEONLYONCE 0x00000008
#define WT_EXECUTEDELETEWAIT 0x00000008
#define WT_EXECUTELONGFUNCTION 0x00000010
#define WT_EXECUTEINLONGTHREAD 0x00000010
#define WT_EXECUTEINTIMERTHREAD 0x00000020
#define WT_EXECUTEINPERSISTENTIOTHREAD 0x00000040
#define WT_EXECUTEINPERSISTENTTHREAD 0x00000080
#define WT_TRANSFER_IMPERSONATION 0x00000100
#define WT_SET_MAX_THREADPOOL_THREADS(Flags, Limit) ((Flags) |= (Limit) << 16)

typedef VOID (*WORKERCALLBACKFUNC)(PVOID);
typedef VOID (*WAITORTIMERCALLBACKFUNC)(PVOID, BOOLEAN);
typedef WAITORTIMERCALLBACKFUNC WAITORTIMERCALLBACK;

/* Callback environments. How the callbacks of an object run; read when the object is allocated. */

typedef struct _TP_CALLBACK_ENVIRON_V3 {
    TP_VERSION Version;
    PTP_POOL Pool;                                 /* NULL: the pool of the process */
    PTP_CLEANUP_GROUP CleanupGroup;
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CleanupGroupCancelCallback;
    PVOID RaceDll;                                 /* ignored: modules are never unloaded */
    struct _ACTIVATION_CONTEXT *ActivationContext; /* ignored */
    PTP_SIMPLE_CALLBACK FinalizationCallback;      /* runs after each callback */
    union {
        DWORD Flags;
        struct {
            DWORD LongFunction : 1;
            DWORD Persistent : 1;
            DWORD Private : 30;
        } s;
    } u;
    TP_CALLBACK_PRIORITY CallbackPriority;
    DWORD Size;
} TP_CALLBACK_ENVIRON_V3, TP_CALLBACK_ENVIRON, *PTP_CALLBACK_ENVIRON;

C_ASSERT(sizeof(TP_CALLBACK_ENVIRON_V3) == 72);
C_ASSERT(FIELD_OFFSET(TP_CALLBACK_ENVIRON_V3, CallbackPriority) == 60);

/* Initializes an environment: the pool of the process, normal priority. Since Vista. */
FORCEINLINE VOID TpInitializeCallbackEnviron(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    memset(CallbackEnviron, 0, sizeof(*CallbackEnviron));
    CallbackEnviron->Version = 3;
    CallbackEnviron->CallbackPriority = TP_CALLBACK_PRIORITY_NORMAL;
    CallbackEnviron->Size = sizeof(*CallbackEnviron);
}

/* Sets the pool that runs the callbacks. Since Vista. */
FORCEINLINE VOID TpSetCallbackThreadpool(PTP_CALLBACK_ENVIRON CallbackEnviron, PTP_POOL Pool)
{
    CallbackEnviron->Pool = Pool;
}

/* Sets the cleanup group of the objects, and a callback for those that it cancels. Since Vista. */
FORCEINLINE VOID TpSetCallbackCleanupGroup(PTP_CALLBACK_ENVIRON CallbackEnviron, PTP_CLEANUP_GROUP CleanupGroup,
                                           PTP_CLEANUP_GROUP_CANCEL_CALLBACK CleanupGroupCancelCallback)
{
    CallbackEnviron->CleanupGroup = CleanupGroup;
    CallbackEnviron->CleanupGroupCancelCallback = CleanupGroupCancelCallback;
}

/* Sets the activation context of callbacks. Differs: ignored. Since Vista. */
FORCEINLINE VOID TpSetCallbackActivationContext(PTP_CALLBACK_ENVIRON CallbackEnviron,
                                                struct _ACTIVATION_CONTEXT *ActivationContext)
{
    CallbackEnviron->ActivationContext = ActivationContext;
}

/* Runs callbacks without an activation context. Differs: ignored. Since Vista. */
FORCEINLINE VOID TpSetCallbackNoActivationContext(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->ActivationContext = (struct _ACTIVATION_CONTEXT *)(LONG_PTR)-1;
}

/* Declares that callbacks may run long: they do not count against the running ones. Since Vista. */
FORCEINLINE VOID TpSetCallbackLongFunction(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->u.s.LongFunction = 1;
}

/* Keeps a module loaded while there are callbacks. Differs: ignored: modules are never unloaded. Since Vista. */
FORCEINLINE VOID TpSetCallbackRaceWithDll(PTP_CALLBACK_ENVIRON CallbackEnviron, PVOID DllHandle)
{
    CallbackEnviron->RaceDll = DllHandle;
}

/* Sets a routine that runs after each callback. Since Vista. */
FORCEINLINE VOID TpSetCallbackFinalizationCallback(PTP_CALLBACK_ENVIRON CallbackEnviron,
                                                   PTP_SIMPLE_CALLBACK FinalizationCallback)
{
    CallbackEnviron->FinalizationCallback = FinalizationCallback;
}

/* Sets the priority: high runs before everything queued, low when nothing else is. Since 7. */
FORCEINLINE VOID TpSetCallbackPriority(PTP_CALLBACK_ENVIRON CallbackEnviron, TP_CALLBACK_PRIORITY Priority)
{
    CallbackEnviron->CallbackPriority = Priority;
}

/* Keeps the thread that has run a callback. Since Vista. */
FORCEINLINE VOID TpSetCallbackPersistent(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->u.s.Persistent = 1;
}

/* Ends the use of an environment. Does nothing: it owns no memory. Since Vista. */
FORCEINLINE VOID TpDestroyCallbackEnviron(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    UNREFERENCED_PARAMETER(CallbackEnviron);
}

INTERLOCK_END

#endif
