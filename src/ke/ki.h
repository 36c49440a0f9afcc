/*
 * ki.h: the kernel's private structures and functions. KTHREAD, KPROCESS and KPRCB are ours to lay out; their fields
 * carry NT's names.
 */
#ifndef INTERLOCK_KI_H
#define INTERLOCK_KI_H

#include <interlock/exception.h>
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
    PLIST_ENTRY LastSpecial;         /* the last special one of the kernel APCs, or their head */
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
 *   bit  21    Exit: another thread wants this one to end (terminate.c)
 *   bit  22    ExitOk: that may end the current wait
 *   bit  23    KernelAlert: the alert that last ended a wait was one of kernel mode
 *
 * Invariants: bits 10-14, 17, 20 and 22 change only when a wait begins or ends; whoever clears Active by
 * compare-exchange is the one who ends the wait, and only that one may consume an object for it. The pending bits 5-9,
 * 15, 16 and 21 may be set by anybody at any time and are cleared by the thread itself, Exit never. Bit 23 changes with
 * the alert that is taken.
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
#define KI_WAIT_EXIT 0x00200000u
#define KI_WAIT_EXIT_OK 0x00400000u
#define KI_WAIT_KERNEL_ALERT 0x00800000u

#define TIMER_WAIT_BLOCK 3
#define KI_WAIT_BLOCKS (THREAD_WAIT_OBJECTS + 1)

/* An acquire that is being recorded: tracecontention.c. */
typedef struct _KI_CONTENTION {
    ULONG64 Begin;                   /* 0: it is not */
    struct _KI_CONTENTION_ENTRY *Entry;
} KI_CONTENTION, *PKI_CONTENTION;

typedef struct _KTHREAD {
    DISPATCHER_HEADER Header;

    /* The wait: written by others, so on a cache line apart from what the thread itself keeps writing. */
    volatile ULONG WaitRegister DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG WakeWord;         /* parking place, see block.h */
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
    const UCHAR *WaitAllOrder;       /* of a WaitAll: the indices of its blocks by the addresses of their objects, and */
    ULONG64 WaitAllNumber;           /* its age: waitlist.h */
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
    UCHAR ServiceDepth;              /* > 0: in a system service, which must end before the thread may */
    volatile ULONG UsesKeptPort;     /* a call of its has what KI_THREAD_SLOT keeps: nt/keptport.h */
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
    volatile ULONG InterruptState;   /* see hostinterrupt.c */
    volatile ULONG InterruptsServed;
    CHAR SuspendCount;               /* under SuspendLock */
    volatile BOOLEAN InSchedulerApc; /* it waits to be resumed, or is about to */
    KAPC SchedulerApc;
    KEVENT SuspendEvent;

    /* Scheduling. */
    volatile SCHAR Priority;
    volatile SCHAR BasePriority;
    volatile SCHAR PriorityDecrement;
    volatile SCHAR HostPriority;     /* the priority that was set last: what the host is to know */
    volatile SCHAR LentPriority;     /* what it was boosted to by those who wait for its mutants; 0: by nobody */
    SCHAR BasePriorityIncrement;     /* what KeSetBasePriorityThread was last given */
    BOOLEAN DisableBoost;
    UCHAR Saturation;
    ULONGLONG BoostTime;             /* interrupt time of the last boost, from which it decays */
    ULONG AutoBoostCount;
    ULONG ContextSwitches;

    /* What the thread owns or belongs to. */
    LIST_ENTRY MutantListHead;       /* touched by the thread itself only */
    PVOID ResourceOwner;             /* the owner record it linked last, a hint, and */
    ULONG ResourceOwners;            /* how many name it by its own doing, and */
    volatile ULONG ResourceOwnersByOthers; /* by that of others: ex/resourceowner.c */
    struct _KI_QUEUED *Queued;       /* what it is queued on: see fork.h */
    PVOID LockWaitedFor;             /* the pushlock or critical section that it sleeps for, and */
    PVOID LockOwned;                 /* the last pushlock that it got exclusively after a wait: both for debuggers only */
    volatile VOID *TurnLock;         /* the lock at which it has passed others that waited, and */
    ULONG TurnPasses;                /* how often: see turn.h */
    BOOLEAN TurnOver;                /* it is to wait behind those */
    UCHAR NearLooks;                 /* looks at a word that another one had just changed that took no time, and */
    UCHAR UntimedLooks;              /* looks until the next one is timed: see turn.h */
    HAL_TURN HostTurn;               /* on the host's processor, while it finds locks held: see hal/fairshare.c */
    PKQUEUE Queue;                   /* under QueueLock */
    LIST_ENTRY QueueListEntry;       /* under the lock of Queue */
    KI_LOCK QueueLock;
    BOOLEAN QueueBlocked;            /* not counted in Queue->CurrentCount, because the thread waits elsewhere */
    PKQUEUE QueueAwaited;            /* while an APC runs in the middle of a removal from it; else NULL */
    UCHAR SpinFailures;              /* long spins in a row that did not pay, and */
    UCHAR SpinSkipped;               /* chances for one so far: see spin.c */
    BOOLEAN WokeSleeper;             /* since its last wait */
    UCHAR QueueGap;                  /* pauses before it looks into an empty queue again: spin.c */
    volatile ULONG WakerProcessor;   /* the host processor of whoever woke it last, plus 1 */
    struct _KPROCESS *Process;
    PVOID ExceptionList;             /* innermost frame of __try, see exception.c */
    EXCEPTION_RECORD ExceptionRecord; /* what was last raised and */
    EXCEPTION_POINTERS ExceptionPointers; /* what a filter is given of it */
    NTSTATUS ExceptionCode;          /* what was last caught */
    BOOLEAN ExceptionCaught;         /* and has not yet been asked for by its __except or __finally */
    NTSTATUS ExitStatus;

    /* Identity and lifetime. */
    volatile ULONG64 ExitRequest;    /* see terminate.c */
    struct _KTHREAD *NextDead;       /* links threads that have stopped and are not yet run down */
    ULONGLONG ExitTime;              /* and the processor times below: written by the thread as the last it does */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
    volatile ULONG ThreadId;         /* the host's; 0: the slot is free */
    volatile ULONG HostHold;         /* KI_HOST_HOLD: may the host be called about ThreadId? */
    ULONG ThreadIdBeforeFork;        /* that of the forking thread in the parent; 0: never was one */
    BOOLEAN Foreign;                 /* adopted, not created by the library */
    ULONGLONG CreateTime;

    /* Recording: trace.c. */
    struct _KI_TRACE_TRACK *TraceTrack; /* where the thread records what it does */
    ULONG64 TraceFlow;               /* the wake that ends its wait; written by whoever wakes it */
    KI_CONTENTION TraceMutant;       /* the mutant that it waits for */
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
    volatile ULONG_PTR KeptPort;     /* the completion port that it used last, and */
    HANDLE KeptHandle;               /* by which handle, and */
    PVOID KeptEntry;                 /* where that is in the table, and */
    ULONG64 KeptAccess;              /* its incarnation: nt/keptport.h */
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
    VOID (*Exit)(PKTHREAD Thread, BOOLEAN WasTerminated); /* it is about to end: what user mode wants done */
    VOID (*Orphan)(PKTHREAD Thread);      /* in a forked child: it stayed behind in the parent */
} KI_THREAD_OBJECT_ROUTINES;

extern KI_THREAD_OBJECT_ROUTINES KiThreadObjectRoutines;

extern KI_THREAD_SLOT *volatile KiThreadChunk[KI_THREAD_CHUNKS];
extern volatile ULONG KiThreadSlotsUsed; /* slots with a lower number have been used at least once */
extern volatile ULONG64 KiFreeThreadSlots; /* see thread.c */

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

/* terminate.c */
VOID KiRequestExit(PKTHREAD Thread, NTSTATUS ExitStatus); /* nothing more to one that ends already */
VOID KiExitIfRequested(PKTHREAD Thread);         /* does not return if the current thread is to end and may */
BOOLEAN KiIsExiting(PKTHREAD Thread);            /* is to end, or ends */
VOID KiClaimExit(PKTHREAD Thread);               /* the thread ends by itself from here on */
VOID KiRecordTimes(PKTHREAD Thread);             /* afterwards nobody calls the host about it any more */
/* In a dispatcher section. TRUE: the host's thread stays until KiReleaseHostThread. FALSE: it is gone, or never was. */
BOOLEAN KiHoldHostThread(PKTHREAD Thread, PULONG ThreadId);
VOID KiReleaseHostThread(PKTHREAD Thread);
VOID KiForgetHostThread(PKTHREAD Thread);        /* in a forked child: it stayed behind in the parent */
PKTHREAD KiTakeDeadThreads(volatile ULONG **Wakes, PULONG Seen); /* linked by NextDead */
VOID KiRundownThread(PKTHREAD Thread);           /* by another thread, for one that has stopped */
VOID KiTerminateForkChild(VOID);

/* cid.c */
VOID KiInsertThreadId(PKTHREAD Thread, ULONG ThreadId);
VOID KiRemoveThreadId(PKTHREAD Thread, ULONG ThreadId);
PKTHREAD KiLookupThreadById(ULONG ThreadId);     /* a running or ended thread whose object still exists, or NULL */

/* affinity.c */
VOID KiQueryUserAffinityThread(PKTHREAD Thread, PGROUP_AFFINITY Affinity);
/* FALSE: there are no such processors, nothing has changed. */
BOOLEAN KiSetUserAffinityThread(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, PGROUP_AFFINITY PreviousAffinity);

/* register.c */
VOID KiNoteChange(PKTHREAD Thread, ULONG Change); /* KI_WAIT_AFFINITY or _PRIORITY; nothing to one that does not wait */

/* priority.c */
LONG KiQueryBasePriorityThread(PKTHREAD Thread); /* the increment, as KeSetBasePriorityThread takes it */
BOOLEAN KiQueryDisableBoostThread(PKTHREAD Thread);
KPRIORITY KiSettledPriority(PKTHREAD Thread);    /* where its boosts have decayed; needs no lock */
VOID KiBoostThread(PKTHREAD Thread, KPRIORITY Increment); /* in a dispatcher section; before Thread is woken */
/* Thread is about to block for what Owner has. NULL: nobody has it; one that has it no more takes no harm. */
VOID KiLendPriority(PKTHREAD Thread, PKTHREAD Owner);
VOID KiPassOnLentPriority(PKTHREAD Thread, PKTHREAD NewOwner); /* NULL: to nobody */

/* apc.c */
VOID KiDeliverApc(PKTHREAD Thread);              /* runs every kernel APC that may run now */
VOID KiDeliverUserApcs(PKTHREAD Thread);         /* runs every user APC that is queued */
VOID KiFlushThreadApcs(PKTHREAD Thread);         /* no more can be queued; those queued are run down */
BOOLEAN KiKernelApcDeliverable(PKTHREAD Thread);

/* alertbyid.c: the one way in which user mode blocks. An alert may be stray: look at what is waited for again. */
NTSTATUS KeWaitForAlertByThreadId(PVOID Hint, PLARGE_INTEGER Timeout); /* STATUS_ALERTED or STATUS_TIMEOUT */
NTSTATUS KiWaitForAlertById(PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins); /* FALSE: the caller has spun already */
VOID KeAlertThreadById(PKTHREAD Thread);         /* a running, ended or even another thread in its slot: all the same */

/* suspend.c */
VOID KiInitializeSuspension(PKTHREAD Thread);
VOID KiSuspendInterrupt(PKTHREAD Thread);        /* on the interrupted thread: parks it if it is to be suspended */
NTSTATUS KiSuspendThread(PKTHREAD Thread, PULONG PreviousCount);
ULONG KiQuerySuspendCountThread(PKTHREAD Thread);
VOID KiForceResumeThread(PKTHREAD Thread);       /* in a dispatcher section: whatever its count is */

/* mutant.c, queue.c */
VOID KiAbandonMutants(PKTHREAD Thread);          /* by the thread itself, or by a forked child for one that is gone */
VOID KiLeaveQueue(PKTHREAD Thread);

/* hostinterrupt.c */
/* Another thread, which stays, looks at its register soon. STATUS_ACCESS_DENIED, STATUS_INSUFFICIENT_RESOURCES: not
   before it next calls in. Sent: for KiInterruptArrives; NULL: the caller does not ask. */
typedef struct _KI_INTERRUPT_SENT {
    ULONG Served;
    BOOLEAN Slept;
} KI_INTERRUPT_SENT, *PKI_INTERRUPT_SENT;
NTSTATUS KiInterruptThread(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent);
NTSTATUS KiInterruptThreadAgain(PKTHREAD Thread, PKI_INTERRUPT_SENT Sent); /* the last one may have been lost */
/* FALSE: not yet, and it is not known whether it will. Finally: the thread has had all the time that it gets. */
BOOLEAN KiInterruptArrives(PKTHREAD Thread, const KI_INTERRUPT_SENT *Sent, BOOLEAN Finally);
VOID KiHostInterrupt(BOOLEAN InLibrary);         /* the host interrupted the current thread: HAL_CALLBACKS */
VOID KiInterruptForkChild(PKTHREAD Survivor);

/*
 * ownthread.c: the clock, the reaper, the idle and DPC threads of the processors. Each is started when it is first
 * needed. All zero: there is none. STATUS_INSUFFICIENT_RESOURCES: the host refuses, or this is no place to make a
 * thread (a host interrupt, IPI_LEVEL). An operation that can fail then fails; one that cannot leaves its work where a thread
 * finds it that comes by anyway: the rule is in docs/threads.md.
 */
#define KI_OWN_THREAD_STACK (256 * 1024)
typedef struct _KI_OWN_THREAD {
    volatile ULONG Process;                      /* whose thread runs: that of a parent has stayed behind */
} KI_OWN_THREAD, *PKI_OWN_THREAD;
NTSTATUS KiEnsureOwnThread(PKI_OWN_THREAD Own, VOID (*Routine)(PVOID), PVOID Context, PCSTR Name);
BOOLEAN KiHasOwnThread(PKI_OWN_THREAD Own);
VOID KiResetOwnThread(PKI_OWN_THREAD Own);       /* in a forked child: somebody may just have been making it */

/* timer.c, fork.c and others that have to be reset in a forked child */
VOID KiTimerForkChild(VOID);
VOID KiProcessorForkChild(PKTHREAD Survivor);

/* fork.c: how many forks lie between this process and the one that loaded the library, modulo 2^31; the callbacks of hal */
extern ULONG KiForkDepth;
VOID KiForkPrepare(VOID);
VOID KiForkParent(VOID);
VOID KiForkChild(VOID);

/* exception.c: one place for everything that is raised */
DECLSPEC_NORETURN VOID KiRaiseStatus(NTSTATUS Status);
VOID KiRaiseException(PEXCEPTION_RECORD Record); /* returns if it is continued */

/* Who is asked about an exception besides the frames; whoever registers the first handler sets them. Each returns an
   EXCEPTION_… disposition. NULL: nobody. */
typedef LONG KI_EXCEPTION_ROUTINE(PEXCEPTION_POINTERS Exception);
extern KI_EXCEPTION_ROUTINE *volatile KiFirstChanceRoutine; /* before the frames */
extern KI_EXCEPTION_ROUTINE *volatile KiLastChanceRoutine;  /* after them */

FORCEINLINE PKTHREAD KiCurrentThread(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    return __builtin_expect(Thread != NULL, 1) ? Thread : KiAdoptThread();
}

/* relaxed: whoever looks at another thread's only shows it. Returns what was noted before: an APC may wait in a wait. */
FORCEINLINE PVOID KiNoteLockWaitedFor(PKTHREAD Thread, PVOID Lock)
{
    PVOID Previous = Thread->LockWaitedFor;
    __atomic_store_n(&Thread->LockWaitedFor, Lock, __ATOMIC_RELAXED);
    return Previous;
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
extern volatile ULONG KiForkPending __attribute__((visibility("hidden"))); /* both are looked at in every section */
extern BOOLEAN KiDispatcherFence __attribute__((visibility("hidden")));
VOID KiEnterDispatcherSlow(PKTHREAD Thread);

/*
 * A store that comes before the loads that follow it, for whoever makes a barrier on all threads between its own store
 * and its look at *Word (HalBarrierAllThreads): then a compiler barrier is enough here. Where the host has none, the
 * store is made once more as a read-modify-write. (Not a bare fence: thread sanitizers do not know those.)
 * release: what was done before is complete for whoever acquires Value.
 */
FORCEINLINE VOID KiStoreBeforeLook(volatile ULONG *Word, ULONG Value)
{
    __atomic_store_n(Word, Value, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(KiDispatcherFence, FALSE)) {
        __atomic_exchange_n(Word, Value, __ATOMIC_SEQ_CST);
    }
}

FORCEINLINE VOID KiEnterDispatcher(PKTHREAD Thread)
{
    ULONG Depth = Thread->DispatcherDepth;
    KiStoreBeforeLook(&Thread->DispatcherDepth, Depth + 1); /* the other one is the forker */
    if (__builtin_expect(__atomic_load_n(&KiForkPending, __ATOMIC_SEQ_CST) != 0, 0) && Depth == 0) {
        KiEnterDispatcherSlow(Thread);
    }
}

/* Something wants to run on the thread, or to end it. relaxed: who sets these bits also interrupts a running thread */
FORCEINLINE BOOLEAN KiIsDeliveryPending(PKTHREAD Thread)
{
    return (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) & (KI_WAIT_APC | KI_WAIT_EXIT)) != 0;
}

/* Leaves the section; at the outermost level a suspension or APC that arrived meanwhile is looked after. */
FORCEINLINE VOID KiExitDispatcher(PKTHREAD Thread)
{
    ULONG Depth = Thread->DispatcherDepth - 1;
    /* release: the forker that sees 0 also sees every lock of ours free */
    __atomic_store_n(&Thread->DispatcherDepth, Depth, __ATOMIC_RELEASE);
    if (Depth == 0 && __builtin_expect(KiIsDeliveryPending(Thread), 0)) {
        KiDeliverApc(Thread);
    }
}

/*
 * A system service: whoever wants to end the thread waits until it is out, so that references are given back, blocks
 * come off their lists, and memory that is being allocated is not lost. A wait in user mode that is made inside ends at
 * once with STATUS_USER_APC in that case, and the service has to return. User APCs that run inside run as outside.
 */
FORCEINLINE VOID KiEnterService(PKTHREAD Thread)
{
    Thread->ServiceDepth += 1;
    /* against a host interrupt on this thread: nothing of the service comes before */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

FORCEINLINE VOID KiExitService(PKTHREAD Thread)
{
    /* as above: nothing of the service comes after, and the look at the register does */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Thread->ServiceDepth -= 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (Thread->ServiceDepth == 0 && __builtin_expect(KiIsDeliveryPending(Thread), 0)) {
        KiDeliverApc(Thread);
    }
}

/* A lock of the kernel with the section around it. */
FORCEINLINE PKTHREAD KiEnterLocked(PKI_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    KiAcquireLock(Lock);
    return Thread;
}

FORCEINLINE VOID KiExitLocked(PKI_LOCK Lock, PKTHREAD Thread)
{
    KiReleaseLock(Lock);
    KiExitDispatcher(Thread);
}

/* The host's processor as one of ours: as a rule the same number, and a division costs more than all the rest. */
FORCEINLINE ULONG KiHostProcessor(ULONG Processors)
{
    ULONG Number = HalDispatch.CurrentProcessor();
    return __builtin_expect(Number < Processors, 1) ? Number : Number % Processors;
}

/* Global settings, read once from the environment when the library is loaded. */
/* INTERLOCK_VERIFIER, always on in debug builds; hidden spares the fast paths that look at it an indirection */
extern BOOLEAN KiVerifierEnabled __attribute__((visibility("hidden")));
extern ULONG KeNumberProcessors;    /* INTERLOCK_PROCESSORS, else as many as the host has */
extern ULONG KiDisableLightWeightSuspend; /* INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND */
VOID KiInitializeSystem(VOID);

/*
 * What a file has to set up before anybody calls in. Routines of lower layers run first, those of one layer in any
 * order. They allocate nothing and wait for nothing (init.c). The entry belongs to the file: a program that is linked
 * with the static library runs those of the files that it links.
 */
typedef enum _KI_INITIALIZE_LAYER {
    KiInitializeKernel,
    KiInitializeObjects,   /* types of all layers, too */
    KiInitializeProcesses,
    KiInitializeServices,
    KiInitializeRuntime,
    KiInitializeLayerCount
} KI_INITIALIZE_LAYER;

typedef struct _KI_INITIALIZER {
    ULONG_PTR Layer; /* KI_INITIALIZE_LAYER */
    VOID (*Routine)(VOID);
} KI_INITIALIZER;

/* A linker that drops what nobody refers to would drop entries, which are found by where their section is. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define KI_RETAIN __attribute__((retain))
#endif
#endif
#ifndef KI_RETAIN
#define KI_RETAIN
#endif

#define KI_INITIALIZER(Layer, Routine)                                                                                 \
    static const KI_INITIALIZER Routine##Initializer                                                                   \
        __attribute__((used, section("interlock_init"), aligned(sizeof(PVOID)))) KI_RETAIN = {Layer, Routine}

/* The value of a setting from the environment; one that makes no sense is said so and ignored. */
ULONG KiReadSetting(PCSTR Name, ULONG Minimum, ULONG Maximum, ULONG Default);

#define KI_TICK 156250ULL /* 15.625 ms: the clock interrupt of NT, in which WaitTime and quanta are counted */

#endif
