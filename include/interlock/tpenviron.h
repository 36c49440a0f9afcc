/* tpenviron.h: the types of the thread pool and its callback environments. threadpool.h and win32/thread.h have the pool. */
#ifndef INTERLOCK_TPENVIRON_H
#define INTERLOCK_TPENVIRON_H

#include <interlock/windef.h>

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

/* The older interface. */

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

/* Ends the environment. Does nothing. Since Vista. */
FORCEINLINE VOID TpDestroyCallbackEnviron(PTP_CALLBACK_ENVIRON CallbackEnviron)
{
    UNREFERENCED_PARAMETER(CallbackEnviron);
}

INTERLOCK_END

#endif
