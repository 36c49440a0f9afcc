/*
 * ki.h: the kernel's private structures and functions. KTHREAD, KPROCESS and KPRCB are ours to lay out; their fields
 * carry NT's names.
 */
#ifndef INTERLOCK_KI_H
#define INTERLOCK_KI_H

#include <interlock/ke.h>

#include "../hal/hal.h"

#define KI_CACHE_LINE 64

/* Threads. */

typedef enum _KTHREAD_STATE {
    Initialized,
    Ready,
    Running,
    Standby,
    Terminated,
    Waiting,
    Transition,
    DeferredReady
} KTHREAD_STATE;

typedef struct _KAPC_STATE {
    LIST_ENTRY ApcListHead[MaximumMode];
    struct _KPROCESS *Process;
    BOOLEAN KernelApcInProgress;
} KAPC_STATE, *PKAPC_STATE;

/* A spin lock of the kernel's own: 0 free, 1 held. Taken only between KiEnterDispatcher and KiExitDispatcher. */
typedef volatile ULONG KI_LOCK, *PKI_LOCK;

/*
 * The wait status register: one word that everything about a thread's wait is decided on by compare-exchange.
 *
 *   bits 0-2   State, a KWAIT_STATE; meaningful while Active is set, afterwards it tells how the last wait stood
 *   bit  3     Affinity and
 *   bit  4     Priority: changed while the thread waited; the thread adopts the change when its wait ends
 *   bit  5     Apc: at least one kernel APC is queued
 *   bit  6     UserApc: at least one user APC is queued
 *   bit  7     Alert: an alert of either mode is pending
 *   bits 8-9   Alerted[KernelMode], Alerted[UserMode]
 *   bit  10    Alertable and
 *   bit  11    UserMode: how the current wait was issued
 *   bit  12    SpecialApcOk and
 *   bit  13    NormalApcOk: which kernel APCs may interrupt the current wait
 *   bit  14    Active: the thread is in a wait that nobody has ended yet
 *   bit  15    SpecialApc: at least one of the queued kernel APCs is a special one
 *   bit  16    AlertByIdPending: NtAlertThreadByThreadId came and nobody has waited for it yet
 *   bit  17    AlertById: the current wait is one for an alert by thread id
 *   bit  18    SuspendedUserMode: a lightweight suspend keeps the wait's mode here
 *   bit  19    SuspendedTimer: the suspended wait has a deadline, to be armed again on resume
 *   bit  20    Light: the current wait has no active WaitAny block, so a suspension may convert it
 *
 * Invariants: bits 10-14, 17 and 20 change only when a wait begins or ends; whoever clears Active by compare-exchange is
 * the one who ends the wait, and only that one may consume an object for it. The pending bits 5-9, 15, 16 may be set
 * by anybody at any time and are cleared by the thread itself.
 */
#define KI_WAIT_STATE_MASK 0x00000007u
#define KI_WAIT_AFFINITY 0x00000008u
#define KI_WAIT_PRIORITY 0x00000010u
#define KI_WAIT_APC 0x00000020u
#define KI_WAIT_USER_APC 0x00000040u
#define KI_WAIT_ALERT 0x00000080u
#define KI_WAIT_ALERTED(Mode) (0x00000100u << (Mode))
#define KI_WAIT_ALERTABLE 0x00000400u
#define KI_WAIT_USER_MODE 0x00000800u
#define KI_WAIT_SPECIAL_APC_OK 0x00001000u
#define KI_WAIT_NORMAL_APC_OK 0x00002000u
#define KI_WAIT_ACTIVE 0x00004000u
#define KI_WAIT_SPECIAL_APC 0x00008000u
#define KI_WAIT_ALERT_BY_ID_PENDING 0x00010000u
#define KI_WAIT_ALERT_BY_ID 0x00020000u
#define KI_WAIT_SUSPENDED_USER_MODE 0x00040000u
#define KI_WAIT_SUSPENDED_TIMER 0x00080000u
#define KI_WAIT_LIGHT 0x00100000u

#define TIMER_WAIT_BLOCK 3
#define KI_WAIT_BLOCKS (THREAD_WAIT_OBJECTS + 1)

typedef struct _KTHREAD {
    DISPATCHER_HEADER Header;

    /* The wait: written by others, so on a cache line apart from what the thread itself keeps writing. */
    volatile ULONG WaitRegister DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG WakeWord;         /* parking place, see park.c */
    volatile LONG_PTR WaitStatus;    /* a status, or the LIST_ENTRY that a queue handed over */
    struct _KTHREAD *ReadyNext;      /* links threads that a signaler has released and not yet woken */
    PKWAIT_BLOCK WaitBlockList;
    UCHAR WaitBlockCount;
    UCHAR WaitReason;
    KPROCESSOR_MODE WaitMode;
    KIRQL WaitIrql;
    BOOLEAN Alertable;
    BOOLEAN WaitNext;                /* a signal with Wait TRUE came; the next call is the wait */
    volatile UCHAR State;            /* KTHREAD_STATE */
    BOOLEAN WaitListed;              /* on a PRCB's WaitListHead */
    ULONG WaitTime;                  /* in clock ticks of 15.625 ms */
    ULONG WaitProcessor;             /* whose WaitListHead */
    HAL_DEADLINE WaitDeadline;
    LIST_ENTRY WaitListEntry;
    KWAIT_BLOCK WaitBlock[KI_WAIT_BLOCKS];
    KTIMER Timer;                    /* stands for the timeout in the wait block array; DueTime is the deadline */

    /* The machine state of the thread itself. */
    KIRQL Irql DECLSPEC_ALIGN(KI_CACHE_LINE);
    KPROCESSOR_MODE PreviousMode;
    BOOLEAN EnableStackSwap;
    volatile ULONG DispatcherDepth;  /* > 0: holds locks of the kernel, must not be parked by a host signal */
    struct _KPRCB *Prcb;             /* the processor it owns; NULL below DISPATCH_LEVEL */
    struct _KPRCB *LastPrcb;         /* the one it owned last, or NULL: where it tries first */
    ULONG IdealProcessor;
    BOOLEAN SystemAffinityActive;
    BOOLEAN IsIdleThread;            /* belongs to a processor or to the clock, not to the program */
    volatile UCHAR DpcDepth;         /* > 0: runs a DPC routine */
    UCHAR HostInterrupts;            /* > 0: in the middle of an interrupt of the host */
    GROUP_AFFINITY Affinity;
    GROUP_AFFINITY UserAffinity;

    /* APCs. */
    KAPC_STATE ApcState;
    KI_LOCK ApcQueueLock;
    SHORT KernelApcDisable;          /* 0, or minus the depth of critical regions */
    SHORT SpecialApcDisable;         /* 0, or minus the depth of guarded regions */
    BOOLEAN ApcQueueable;

    /* Suspension. */
    KI_LOCK ThreadLock;              /* priorities, affinity */
    KI_LOCK SuspendLock;
    CHAR SuspendCount;               /* under SuspendLock */
    KAPC SchedulerApc;
    KEVENT SuspendEvent;

    /* Scheduling. */
    volatile SCHAR Priority;
    volatile SCHAR BasePriority;
    volatile SCHAR PriorityDecrement;
    SCHAR BasePriorityIncrement;     /* what KeSetBasePriorityThread was last given */
    BOOLEAN DisableBoost;
    UCHAR Saturation;
    ULONGLONG BoostTime;             /* interrupt time of the last boost, from which it decays */
    ULONG AutoBoostCount;
    ULONG ContextSwitches;

    /* What the thread owns or belongs to. */
    LIST_ENTRY MutantListHead;       /* touched by the thread itself only */
    PVOID ResourceOwner;             /* the owner record it linked last, a hint, and */
    volatile ULONG ResourceOwners;   /* how many name it: ex/resourceowner.c */
    PKQUEUE Queue;                   /* under QueueLock */
    LIST_ENTRY QueueListEntry;       /* under the lock of Queue */
    KI_LOCK QueueLock;
    BOOLEAN QueueBlocked;            /* not counted in Queue->CurrentCount, because the thread waits elsewhere */
    UCHAR SpinFailures;              /* long spins in a row that did not pay, and */
    UCHAR SpinSkipped;               /* chances for one so far: see spin.c */
    BOOLEAN WokeSleeper;             /* since its last wait */
    volatile ULONG WakerProcessor;   /* the host processor of whoever woke it last, plus 1 */
    struct _KPROCESS *Process;
    PVOID ExceptionList;             /* innermost frame of __try, see exception.c */
    NTSTATUS ExceptionCode;          /* what was last caught */
    BOOLEAN ExceptionCaught;         /* and has not yet been asked for by its __except or __finally */
    NTSTATUS ExitStatus;

    /* Identity and lifetime. */
    volatile ULONG ThreadId;         /* the host's; 0: the slot is free */
    BOOLEAN Foreign;                 /* adopted, not created by the library */
    ULONGLONG CreateTime;
} KTHREAD;

typedef struct _KPROCESS {
    DISPATCHER_HEADER Header;
    ULONG ProcessId;
    SCHAR BasePriority;
    NTSTATUS ExitStatus;
} KPROCESS;


/*
 * Every KTHREAD lives in a slot of a table that is never given back: a stale PKTHREAD always points to some KTHREAD, so
 * a reader may look at an owner that has just ended. The first chunk of slots is in .bss, so adopting a thread allocates
 * nothing as long as no more than that many threads live at a time; further chunks are added whole. Each slot has room
 * in front for the object manager's header and behind for what ps keeps per thread.
 */
#define KI_THREAD_CHUNK 4096
#define KI_THREAD_CHUNKS 64
#define KI_THREAD_PREFIX 128
#define KI_THREAD_SUFFIX 1024

typedef struct _KI_THREAD_SLOT {
    UCHAR Prefix[KI_THREAD_PREFIX] DECLSPEC_ALIGN(KI_CACHE_LINE);
    KTHREAD Tcb;
    UCHAR Suffix[KI_THREAD_SUFFIX] DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Number;
    volatile ULONG NextFree;         /* number of the next free slot + 1, see thread.c */
    volatile ULONG Use;              /* KI_SLOT_USE */
    PVOID SpareOwner;                /* an owner record that outlives the thread: ex/resourceowner.c */
} KI_THREAD_SLOT;

typedef enum _KI_SLOT_USE {
    KiSlotFree,
    KiSlotUsed,
    KiSlotOrphaned                   /* its thread stayed behind in the parent of a fork */
} KI_SLOT_USE;

FORCEINLINE KI_THREAD_SLOT *KiSlotOfThread(PKTHREAD Thread)
{
    return CONTAINING_RECORD(Thread, KI_THREAD_SLOT, Tcb);
}

/* The one process there is, with the same room in front. */
typedef struct _KI_PROCESS_SLOT {
    UCHAR Prefix[KI_THREAD_PREFIX] DECLSPEC_ALIGN(KI_CACHE_LINE);
    KPROCESS Pcb;
} KI_PROCESS_SLOT;

extern KI_PROCESS_SLOT KiInitialProcessSlot;
#define KiInitialProcess KiInitialProcessSlot.Pcb

/* How the object manager takes part in a thread's life; it sets this when the library is loaded. */
typedef struct _KI_THREAD_OBJECT_ROUTINES {
    VOID (*Initialize)(PKTHREAD Thread);  /* in a fresh slot: one reference, that of the thread itself */
    VOID (*Dereference)(PKTHREAD Thread); /* the thread has ended and gives its own reference back */
} KI_THREAD_OBJECT_ROUTINES;

extern KI_THREAD_OBJECT_ROUTINES KiThreadObjectRoutines;

extern KI_THREAD_SLOT *volatile KiThreadChunk[KI_THREAD_CHUNKS];
extern volatile ULONG KiThreadSlotsUsed; /* slots with a lower number have been used at least once */

/* thread.c */
PKTHREAD KiAdoptThread(VOID);
PKTHREAD KiAllocateThread(VOID);                 /* initialised, not yet running; NULL when there is no slot */
VOID KiStartCurrentThread(PKTHREAD Thread);      /* makes Thread the running one of this host thread */
VOID KiTerminateCurrentThread(PKTHREAD Thread);  /* abandons mutants, leaves its queue, flushes APCs, signals it */
VOID KiThreadExit(PKTHREAD Thread);              /* hal tells that the current host thread ends */
VOID KiFreeThread(PKTHREAD Thread);              /* the slot may be used again */
VOID KiEndThread(PKTHREAD Thread);               /* Thread's object becomes signaled */
VOID KiDropThread(PKTHREAD Thread);              /* gives the thread's own reference back */
VOID KiRebuildFreeSlots(VOID);                   /* in a forked child */
PKTHREAD KiThreadFromNumber(ULONG Slot);         /* NULL: never used */

/* cid.c */
VOID KiInsertThreadId(PKTHREAD Thread, ULONG ThreadId);
VOID KiRemoveThreadId(PKTHREAD Thread, ULONG ThreadId);
PKTHREAD KiLookupThreadById(ULONG ThreadId);     /* a running or ended thread whose object still exists, or NULL */

/* priority.c */
VOID KiBoostThread(PKTHREAD Thread, KPRIORITY Increment); /* by whoever ended Thread's wait, before it is woken */

/* apc.c */
VOID KiDeliverApc(PKTHREAD Thread);              /* runs every kernel APC that may run now */
VOID KiDeliverUserApcs(PKTHREAD Thread);         /* runs every user APC that is queued */
VOID KiFlushThreadApcs(PKTHREAD Thread);         /* no more can be queued; those queued are run down */
BOOLEAN KiKernelApcDeliverable(PKTHREAD Thread);

/* suspend.c */
VOID KiInitializeSuspension(PKTHREAD Thread);
VOID KiSuspendInterrupt(PKTHREAD Thread);        /* on the interrupted thread: parks it if it is to be suspended */

/* mutant.c, queue.c */
VOID KiAbandonMutants(PKTHREAD Thread);          /* by the thread itself, or by a forked child for one that is gone */
VOID KiLeaveQueue(PKTHREAD Thread);

/* irql.c, dpc.c, ipi.c */
VOID KiHostInterrupt(VOID);                      /* the host interrupted the current thread */

/* timer.c, fork.c and others that have to be reset in a forked child */
VOID KiTimerForkChild(VOID);
VOID KiProcessorForkChild(PKTHREAD Survivor);

/* fork.c: the callbacks of hal */
VOID KiForkPrepare(VOID);
VOID KiForkParent(VOID);
VOID KiForkChild(VOID);

/* exception.c: one place for everything that is raised */
DECLSPEC_NORETURN VOID KiRaiseStatus(NTSTATUS Status);

FORCEINLINE PKTHREAD KiCurrentThread(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    return __builtin_expect(Thread != NULL, 1) ? Thread : KiAdoptThread();
}

/* Processors. */

typedef struct _KDPC_DATA {
    LIST_ENTRY DpcListHead;
    KI_LOCK DpcLock;
    volatile ULONG DpcQueueDepth;
    ULONG DpcCount;
    PKDPC ActiveDpc;
} KDPC_DATA, *PKDPC_DATA;

#define PRCB_BUILD_DEBUG 1
#define PRCB_BUILD_UNIPROCESSOR 2

typedef struct _KPRCB KPRCB;

/*
 * Locks of the kernel: short, taken only inside KiEnterDispatcher/KiExitDispatcher, never across a call that can block.
 */
VOID KiAcquireLockSlow(PKI_LOCK Lock);

FORCEINLINE BOOLEAN KiTryAcquireLock(PKI_LOCK Lock)
{
    ULONG Free = 0;
    /* acquire: pairs with the release store in KiReleaseLock */
    return __atomic_compare_exchange_n(Lock, &Free, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

FORCEINLINE VOID KiAcquireLock(PKI_LOCK Lock)
{
    if (!KiTryAcquireLock(Lock)) {
        KiAcquireLockSlow(Lock);
    }
}

FORCEINLINE VOID KiReleaseLock(PKI_LOCK Lock)
{
    __atomic_store_n(Lock, 0, __ATOMIC_RELEASE);
}

/*
 * The dispatcher section: while a thread is in one it holds locks of the kernel or is about to, so a host signal that
 * wants to park it, and a fork, have to wait until it is out. Sections nest.
 */
extern volatile ULONG KiForkPending;
extern BOOLEAN KiDispatcherFence;
VOID KiEnterDispatcherSlow(PKTHREAD Thread);

FORCEINLINE VOID KiEnterDispatcher(PKTHREAD Thread)
{
    ULONG Depth = Thread->DispatcherDepth;
    __atomic_store_n(&Thread->DispatcherDepth, Depth + 1, __ATOMIC_RELAXED);
    /* Orders the store above before the load below. The forker pairs with it by a barrier on all threads
       (HalBarrierAllThreads), so a compiler barrier is enough here; where the host has none, the store is made once
       more as a read-modify-write. (Not a bare fence: thread sanitizers do not know those.) */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(KiDispatcherFence, FALSE)) {
        __atomic_exchange_n(&Thread->DispatcherDepth, Depth + 1, __ATOMIC_SEQ_CST);
    }
    if (__builtin_expect(__atomic_load_n(&KiForkPending, __ATOMIC_SEQ_CST) != 0, 0) && Depth == 0) {
        KiEnterDispatcherSlow(Thread);
    }
}

/* Leaves the section; at the outermost level a suspension or APC that arrived meanwhile is looked after. */
FORCEINLINE VOID KiExitDispatcher(PKTHREAD Thread)
{
    ULONG Depth = Thread->DispatcherDepth - 1;
    /* release: the forker that sees 0 also sees every lock of ours free */
    __atomic_store_n(&Thread->DispatcherDepth, Depth, __ATOMIC_RELEASE);
    if (Depth == 0 && __builtin_expect((__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_APC) != 0, 0)) {
        KiDeliverApc(Thread);
    }
}

/* Global settings, read once from the environment when the library is loaded. */
/* INTERLOCK_VERIFIER, always on in debug builds; hidden spares the fast paths that look at it an indirection */
extern BOOLEAN KiVerifierEnabled __attribute__((visibility("hidden")));
extern ULONG KeNumberProcessors;    /* INTERLOCK_PROCESSORS, else as many as the host has */
extern ULONG KiDisableLightWeightSuspend; /* INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND */
VOID KiInitializeSystem(VOID);

#define KI_TICK 156250ULL /* 15.625 ms: the clock interrupt of NT, in which WaitTime and quanta are counted */

#endif
