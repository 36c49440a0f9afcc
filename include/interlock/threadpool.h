/* threadpool.h: the thread pool, work items, registered waits, timer queues. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_THREADPOOL_H
#define INTERLOCK_THREADPOOL_H

#include <interlock/criticalsection.h>
#include <interlock/ntdef.h>

INTERLOCK_BEGIN

typedef DWORD TP_VERSION, *PTP_VERSION;
typedef DWORD TP_WAIT_RESULT;

typedef struct _TP_POOL TP_POOL, *PTP_POOL;
typedef struct _TP_CLEANUP_GROUP TP_CLEANUP_GROUP, *PTP_CLEANUP_GROUP;
typedef struct _TP_CALLBACK_INSTANCE TP_CALLBACK_INSTANCE, *PTP_CALLBACK_INSTANCE;
typedef struct _TP_WORK TP_WORK, *PTP_WORK;
typedef struct _TP_TIMER TP_TIMER, *PTP_TIMER;
typedef struct _TP_WAIT TP_WAIT, *PTP_WAIT;
typedef struct _TP_IO TP_IO, *PTP_IO;
struct _IO_STATUS_BLOCK;
struct _ACTIVATION_CONTEXT;

typedef VOID (*PTP_SIMPLE_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context);
typedef VOID (*PTP_WORK_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WORK Work);
typedef VOID (*PTP_TIMER_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_TIMER Timer);
typedef VOID (*PTP_WAIT_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PTP_WAIT Wait,
                                  TP_WAIT_RESULT WaitResult);
typedef VOID (*PTP_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID ApcContext,
                                struct _IO_STATUS_BLOCK *IoStatusBlock, PTP_IO Io);
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

/* How the callbacks of an object run. It is read when the object is allocated, and not needed afterwards. */
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

FORCEINLINE VOID TpInitializeCallbackEnviron(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    memset(CallbackEnviron, 0, sizeof(*CallbackEnviron));
    CallbackEnviron->Version = 3;
    CallbackEnviron->CallbackPriority = TP_CALLBACK_PRIORITY_NORMAL;
    CallbackEnviron->Size = sizeof(*CallbackEnviron);
}

FORCEINLINE VOID TpSetCallbackThreadpool(PTP_CALLBACK_ENVIRON CallbackEnviron, PTP_POOL Pool)
{
    CallbackEnviron->Pool = Pool;
}

FORCEINLINE VOID TpSetCallbackCleanupGroup(PTP_CALLBACK_ENVIRON CallbackEnviron, PTP_CLEANUP_GROUP CleanupGroup,
                                           PTP_CLEANUP_GROUP_CANCEL_CALLBACK CleanupGroupCancelCallback)
{
    CallbackEnviron->CleanupGroup = CleanupGroup;
    CallbackEnviron->CleanupGroupCancelCallback = CleanupGroupCancelCallback;
}

FORCEINLINE VOID TpSetCallbackActivationContext(PTP_CALLBACK_ENVIRON CallbackEnviron,
                                                struct _ACTIVATION_CONTEXT *ActivationContext)
{
    CallbackEnviron->ActivationContext = ActivationContext;
}

FORCEINLINE VOID TpSetCallbackNoActivationContext(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->ActivationContext = (struct _ACTIVATION_CONTEXT *)(LONG_PTR)-1;
}

FORCEINLINE VOID TpSetCallbackLongFunction(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->u.s.LongFunction = 1;
}

FORCEINLINE VOID TpSetCallbackRaceWithDll(PTP_CALLBACK_ENVIRON CallbackEnviron, PVOID DllHandle)
{
    CallbackEnviron->RaceDll = DllHandle;
}

FORCEINLINE VOID TpSetCallbackFinalizationCallback(PTP_CALLBACK_ENVIRON CallbackEnviron,
                                                   PTP_SIMPLE_CALLBACK FinalizationCallback)
{
    CallbackEnviron->FinalizationCallback = FinalizationCallback;
}

FORCEINLINE VOID TpSetCallbackPriority(PTP_CALLBACK_ENVIRON CallbackEnviron, TP_CALLBACK_PRIORITY Priority)
{
    CallbackEnviron->CallbackPriority = Priority;
}

FORCEINLINE VOID TpSetCallbackPersistent(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    CallbackEnviron->u.s.Persistent = 1;
}

FORCEINLINE VOID TpDestroyCallbackEnviron(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    UNREFERENCED_PARAMETER(CallbackEnviron);
}

/* Pools. A pool that is released while objects are bound to it lives until the last of them is gone. */

NTSYSAPI NTSTATUS TpAllocPool(PTP_POOL *PoolReturn, PVOID Reserved);
NTSYSAPI VOID TpReleasePool(PTP_POOL Pool);
NTSYSAPI VOID TpSetPoolMaxThreads(PTP_POOL Pool, ULONG MaxThreads);
NTSYSAPI NTSTATUS TpSetPoolMinThreads(PTP_POOL Pool, ULONG MinThreads);
NTSYSAPI NTSTATUS TpSetPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);
NTSYSAPI NTSTATUS TpQueryPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);

/* Cleanup groups: objects that are released together. */

NTSYSAPI NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn);
NTSYSAPI VOID TpReleaseCleanupGroup(PTP_CLEANUP_GROUP CleanupGroup);
NTSYSAPI VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                           PVOID CleanupParameter);

/* Inside a callback: what happens when it returns, and what the pool should know about it. */

NTSYSAPI VOID TpCallbackSetEventOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Event);
NTSYSAPI VOID TpCallbackReleaseSemaphoreOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Semaphore,
                                                     ULONG ReleaseCount);
NTSYSAPI VOID TpCallbackReleaseMutexOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Mutex);
NTSYSAPI VOID TpCallbackLeaveCriticalSectionOnCompletion(PTP_CALLBACK_INSTANCE Instance,
                                                         PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI VOID TpCallbackUnloadDllOnCompletion(PTP_CALLBACK_INSTANCE Instance, PVOID DllHandle);
NTSYSAPI NTSTATUS TpCallbackMayRunLong(PTP_CALLBACK_INSTANCE Instance);
NTSYSAPI VOID TpDisassociateCallback(PTP_CALLBACK_INSTANCE Instance);

/* Work. Posting cannot fail. */

NTSYSAPI NTSTATUS TpSimpleTryPost(PTP_SIMPLE_CALLBACK Callback, PVOID Context, PTP_CALLBACK_ENVIRON CallbackEnviron);
NTSYSAPI NTSTATUS TpAllocWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);
NTSYSAPI VOID TpReleaseWork(PTP_WORK Work);
NTSYSAPI VOID TpPostWork(PTP_WORK Work);
NTSYSAPI VOID TpWaitForWork(PTP_WORK Work, LOGICAL CancelPendingCallbacks);

/*
 * Timers. DueTime: relative if negative, else absolute, 0: at once; NULL: the timer is no longer set. The Ex form tells
 * whether the timer had been set and now does not expire for that. Times are in units of 100 ns, periods in ms.
 */

NTSYSAPI NTSTATUS TpAllocTimer(PTP_TIMER *Timer, PTP_TIMER_CALLBACK Callback, PVOID Context,
                               PTP_CALLBACK_ENVIRON CallbackEnviron);
NTSYSAPI VOID TpReleaseTimer(PTP_TIMER Timer);
NTSYSAPI VOID TpSetTimer(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);
NTSYSAPI LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);
NTSYSAPI LOGICAL TpIsTimerSet(PTP_TIMER Timer);
NTSYSAPI VOID TpWaitForTimer(PTP_TIMER Timer, LOGICAL CancelPendingCallbacks);

/*
 * Waits: one callback, when the object is signaled or the time is over, then none until the wait is set again. A handle
 * that cannot be waited for raises its status; a mutex, since only a thread can own one, raises
 * STATUS_THREADPOOL_HANDLE_EXCEPTION.
 */

NTSYSAPI NTSTATUS TpAllocWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);
NTSYSAPI VOID TpReleaseWait(PTP_WAIT Wait);
NTSYSAPI VOID TpSetWait(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout);
NTSYSAPI LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved);
NTSYSAPI VOID TpWaitForWait(PTP_WAIT Wait, LOGICAL CancelPendingCallbacks);

/*
 * I/O. File is a descriptor object (interlock/descriptor.h): each operation that is started has one callback, when the
 * descriptor is ready. Everything else is not a file: STATUS_OBJECT_TYPE_MISMATCH.
 */

NTSYSAPI NTSTATUS TpAllocIoCompletion(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                                      PTP_CALLBACK_ENVIRON CallbackEnviron);
NTSYSAPI VOID TpReleaseIoCompletion(PTP_IO Io);
NTSYSAPI VOID TpStartAsyncIoOperation(PTP_IO Io);
NTSYSAPI VOID TpCancelAsyncIoOperation(PTP_IO Io);
NTSYSAPI VOID TpWaitForIoCompletion(PTP_IO Io, LOGICAL CancelPendingCallbacks);

/* The interface from before: everything runs in the pool of the process. */

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
typedef WAITORTIMERCALLBACKFUNC WAITORTIMERCALLBACK, RTL_WAITORTIMERCALLBACKFUNC;

NTSYSAPI NTSTATUS RtlQueueWorkItem(WORKERCALLBACKFUNC Function, PVOID Context, ULONG Flags);
NTSYSAPI NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                                  ULONG Milliseconds, ULONG Flags);
NTSYSAPI NTSTATUS RtlDeregisterWait(HANDLE WaitHandle);
NTSYSAPI NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event);
NTSYSAPI NTSTATUS RtlCreateTimerQueue(PHANDLE TimerQueueHandle);
NTSYSAPI NTSTATUS RtlCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function,
                                 PVOID Context, ULONG DueTime, ULONG Period, ULONG Flags);
NTSYSAPI NTSTATUS RtlUpdateTimer(HANDLE TimerQueueHandle, HANDLE TimerHandle, ULONG DueTime, ULONG Period);
NTSYSAPI NTSTATUS RtlDeleteTimer(HANDLE TimerQueueHandle, HANDLE TimerToCancel, HANDLE Event);
NTSYSAPI NTSTATUS RtlDeleteTimerQueue(HANDLE TimerQueueHandle);
NTSYSAPI NTSTATUS RtlDeleteTimerQueueEx(HANDLE TimerQueueHandle, HANDLE Event);

INTERLOCK_END

#endif
