/*
 * ki.h: the kernel's private structures and functions. The layout of KTHREAD, KPROCESS and KPRCB is our own; their
 * fields carry NT's names.
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
    BOOLEAN KernelApcInProgress;     /* first: each wait reads it, on the cache line that ends here in KTHREAD */
    LIST_ENTRY ApcListHead[MaximumMode];
    PLIST_ENTRY LastSpecial;         /* the last special kernel APC, or the list head */
    struct _KPROCESS *Process;
} KAPC_STATE, *PKAPC_STATE;

/* A lock of the kernel's own: 0 free, 1 held. Taken only between KiEnterDispatcher and KiExitDispatcher. */
typedef volatile ULONG KI_LOCK, *PKI_LOCK;

/*
 * The wait status register: one word, changed by compare-exchange, that decides everything about a thread's wait.
 *
 *   bits 0-2   State, a KWAIT_STATE; meaningful while Active is set; afterwards, the last wait's
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
 *   bit  14    Active: the thread is in a wait that has not been ended
 *   bit  15    SpecialApc: at least one of the queued kernel APCs is a special one
 *   bit  16    AlertByIdPending: an alert by thread id that no wait has consumed yet
 *   bit  17    AlertById: the current wait is one for an alert by thread id
 *   bit  18    SuspendedUserMode: a lightweight suspend keeps the wait's mode here
 *   bit  19    SuspendedTimer: the suspended wait has a deadline; resume arms it again
 *   bit  20    Light: the current wait has no active WaitAny block, so a suspension may convert it
 *   bit  21    Exit: another thread wants this one to end (stop.c)
 *   bit  22    ExitOk: that may end the current wait
 *   bit  23    KernelAlert: the alert that last ended a wait was one of kernel mode
 *   bit  24    ThreadWanted: the thread has requested a thread of the library's own and starts it soon (ownthread.h)
 *   bit  25    Outside: the current wait has an object of the world, whose record has to be claimed first (outside.h)
 *   bit  26    Elsewhere: another thread has given this one a place to continue at after its wait (stop.c)
 *
 * Invariants: bits 10-14, 17, 20, 22 and 25 change only when a wait begins or ends. The thread that clears Active by
 * compare-exchange ends the wait, and only that thread may consume an object for it. Any thread may set the pending bits
 * 5-9, 15, 16 and 21 at any time; the thread itself clears them, except for Exit, which stays. Bit 23 changes with the
 * alert that is taken; only the thread itself changes bit 24. Bit 26 is set under SuspendLock, while the thread is
 * suspended; the thread itself clears it.
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
#define KI_WAIT_THREAD_WANTED 0x01000000u
#define KI_WAIT_OUTSIDE 0x02000000u
#define KI_WAIT_ELSEWHERE 0x04000000u

/* Bits of WaitNext. The second keeps all waits off the fast paths, which do not report their timeout to the
   verifier. */
#define KI_WAIT_NEXT_SIGNALED 1u /* the last signal had Wait TRUE; the next call is the wait */
#define KI_WAIT_NEXT_VERIFIED 2u

#define TIMER_WAIT_BLOCK 3
#define KI_WAIT_BLOCKS (THREAD_WAIT_OBJECTS + 1)

typedef struct _KTHREAD {
    DISPATCHER_HEADER Header;

    /* The wait. Other threads write it, so it is on separate cache lines from what the thread itself writes often. A wait
       for one object uses these two lines and the next group's first one: after the host has run, each further line has to
       be fetched again (docs/performance.md, round trips on one processor). */
    volatile ULONG WaitRegister DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG WakeWord;         /* the thread sleeps on it: wait.h */
    volatile LONG_PTR WaitStatus;    /* a status, or the LIST_ENTRY that a queue handed over */
    struct _KTHREAD *ReadyNext;      /* links threads that a signaler has released and not woken yet */
    PKWAIT_BLOCK WaitBlockList;
    USHORT WaitBlockCount;
    UCHAR WaitReason;
    KPROCESSOR_MODE WaitMode;
    KIRQL WaitIrql;
    BOOLEAN Alertable;
    UCHAR WaitNext;                  /* KI_WAIT_NEXT: what precedes the next wait; 0: nothing */
    volatile UCHAR State;            /* KTHREAD_STATE */
    ULONG WaitTime;                  /* in clock ticks of 15.625 ms */
    volatile ULONG WakerProcessor;   /* the host processor that woke it last, plus 1 */
    volatile ULONG64 PendingBoost;   /* from the last wakeup, not yet part of Priority: priority.c */
    BOOLEAN QueueBlocked;            /* not in Queue->CurrentCount: the thread waits elsewhere */
    HAL_DEADLINE WaitDeadline DECLSPEC_ALIGN(KI_CACHE_LINE);
    KWAIT_BLOCK WaitBlock[KI_WAIT_BLOCKS];
    KTIMER Timer;                    /* stands for the timeout in the wait block array; DueTime is the deadline */
    const USHORT *WaitAllOrder;      /* of a WaitAll: the indices of its blocks by the addresses of their objects, and */
    ULONG64 WaitAllNumber;           /* its age: dispatch.h */

    /* The machine state of the thread itself, and what it uses in each wait. */
    KIRQL Irql DECLSPEC_ALIGN(KI_CACHE_LINE);
    BOOLEAN EnableStackSwap;
    UCHAR ServiceDepth;              /* > 0: in a system service, where the thread must not end */
    BOOLEAN HasWaited;               /* for something other than a lock, since it last found one held: fairness.h */
    volatile ULONG DispatcherDepth;  /* > 0: holds locks of the kernel, must not be parked by a host interrupt */
    SHORT KernelApcDisable;          /* 0, or minus the depth of critical regions */
    SHORT SpecialApcDisable;         /* 0, or minus the depth of guarded regions */
    ULONG ContextSwitches;
    struct _KPRCB *Prcb;             /* the processor it owns; NULL below DISPATCH_LEVEL */
    struct _KPRCB *LastPrcb;         /* the one it owned last, and tries first; or NULL */
    PKQUEUE Queue;                   /* under QueueLock */
    ULONG WaitProcessor;             /* of a user-mode wait: on whose WaitListHead NT has the thread (wait.h) */
    UCHAR SpinFailures;              /* long spins in a row that failed, and */
    UCHAR SpinSkipped;               /* chances for one so far: park.h */
    BOOLEAN WokeSleeper;             /* since its last wait */
    volatile UCHAR DpcDepth;         /* > 0: runs a DPC routine */
    UCHAR ServiceRoutines;           /* > 0: runs interrupt service routines */
    UCHAR HostInterrupts;            /* > 0: in a host interrupt */
    UCHAR OwnThreadUse;              /* != 0: starts a thread of the library's own, see ownthread.c */
    BOOLEAN SystemAffinityActive;
    BOOLEAN IsIdleThread;            /* belongs to a processor or to the clock, not to the program; relaxed:
                                        PsIsSystemThread reads any thread */
    KAPC_STATE ApcState;
    ULONG IdealProcessor;
    GROUP_AFFINITY Affinity;
    GROUP_AFFINITY UserAffinity;

    /* APCs. */
    KI_LOCK ApcQueueLock;
    BOOLEAN ApcQueueable;

    /* Suspension. */
    KI_LOCK ThreadLock;              /* priorities, affinity */
    KI_LOCK SuspendLock;
    volatile ULONG InterruptState;   /* see stop.c */
    volatile ULONG InterruptsServed;
    CHAR SuspendCount;               /* under SuspendLock */
    volatile BOOLEAN InSchedulerApc; /* waits to be resumed, or is about to */
    volatile BOOLEAN WantsInterruptAgain; /* from the repeater */
    ULONG EndOrdinal;                /* it was the KiThreadsEnded-th thread to end */
    PVOID volatile InterruptFrame;   /* the registers at its suspension; NULL: not suspended, or by itself */
    PVOID volatile RegistersWanted;  /* KI_REGISTERS_WANTED, for its next host interrupt: stop.c; or NULL */
    HAL_PLACE Shown;                 /* where it was when its registers were read; under SuspendLock */
    HAL_PLACE Elsewhere;             /* with Elsewhere in the wait register */
    KAPC SchedulerApc;
    KEVENT SuspendEvent;

    /* Scheduling. */
    volatile SCHAR Priority;
    volatile SCHAR BasePriority;
    volatile SCHAR PriorityDecrement;
    volatile SCHAR HostPriority;     /* the priority that was set last, for the host */
    volatile SCHAR LentPriority;     /* boost by waiters for its mutants; 0: none */
    SCHAR BasePriorityIncrement;     /* of the last KeSetBasePriorityThread */
    BOOLEAN DisableBoost;
    UCHAR Saturation;
    ULONGLONG BoostTime;             /* interrupt time of the last boost, which decays from then on */
    ULONG AutoBoostCount;

    /* What the thread owns or belongs to. */
    LIST_ENTRY MutantListHead;       /* only the thread itself touches it */
    struct _KI_QUEUED *Queued;       /* the lock queues that it is in: see fork.h */
    struct _KI_ORDER_HELD *OrderHeld; /* the verifier: the locks that it holds, and */
    BOOLEAN OrderWaits;              /* may its current wait last forever? See lockorder.h */
    ULONG OrderWait;                 /* the number of that wait: what one wait acquires has no order */
    PVOID LockWaitedFor;             /* for debuggers: the lock that it sleeps for, and */
    PVOID LockOwned;                 /* the last pushlock that it acquired exclusively after a wait */
    volatile VOID *TurnLock;         /* the lock at which it has overtaken waiters, and */
    ULONG TurnPasses;                /* how often: fairness.h */
    BOOLEAN TurnOver;                /* it must queue behind them */
    UCHAR NearLooks;                 /* fast reads of a word that another processor had just changed, and */
    UCHAR UntimedLooks;              /* reads until the next timed one: park.h */
    HAL_TURN HostTurn;               /* on the host's processor, while it finds locks held: see hal/fairshare.c */
    LIST_ENTRY QueueListEntry;       /* under the lock of Queue */
    KI_LOCK QueueLock;
    BOOLEAN QueueExpects;            /* it has yielded for entries of Queue: queue.c, as the next three */
    UCHAR QueueShortSleeps;          /* for entries, in a row */
    BOOLEAN SawOutside;              /* the objects that it has just tested include one of the world */
    ULONG QueueSleepTime;            /* the low half of the time at which the last sleep for entries began */
    LONG QueueBalance;               /* of the yields for entries */
    PKQUEUE QueueAwaited;            /* the queue that it is removing from while an APC runs; else NULL */
    UCHAR QueueGap;                  /* pauses before its first check of an empty queue: queue.c */
    volatile ULONG *OutsideWake;     /* of a wait for an object of the world: the word that it sleeps on, and */
    volatile ULONG64 OutsideNumber;  /* the number of the wait: outside.h */
    struct _KPROCESS *Process;
    PVOID ExceptionList;             /* innermost frame of __try, see exception.c */
    PVOID ExpectedBugCheck;          /* innermost place that expects one, see bugcheck.c */
    struct _KI_CALL_FRAME *CallFrames; /* routines of drivers that the thread is in, see verifier.h */
    EXCEPTION_RECORD ExceptionRecord; /* the exception that was raised last, and */
    EXCEPTION_POINTERS ExceptionPointers; /* what a filter gets of it */
    NTSTATUS ExceptionCode;          /* the status that was caught last, */
    BOOLEAN ExceptionCaught;         /* and that its __except or __finally has not read yet */
    NTSTATUS ExitStatus;

    /* Identity and lifetime. */
    volatile ULONG64 ExitRequest;    /* see stop.c */
    struct _KTHREAD *NextDead;       /* links stopped threads that are not run down yet */
    ULONGLONG ExitTime;              /* with the processor times below: the last that the thread writes */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
    volatile ULONG ThreadId;         /* the host's; 0: the slot is free */
    volatile ULONG HostHold;         /* KI_HOST_HOLD: may the host be called about ThreadId? */
    ULONG ThreadIdBeforeFork;        /* of the forking thread, in the parent; 0: the thread has not forked */
    BOOLEAN Foreign;                 /* adopted, not created by the library; relaxed, as IsIdleThread */
    BOOLEAN UserThread;              /* created by NtCreateThreadEx, or of a thread pool; likewise */
    volatile UCHAR StackIsLeft;      /* a stopped thread does not use its stack any more, see stop.c */
    ULONGLONG CreateTime;
} KTHREAD;

C_ASSERT(FIELD_OFFSET(KTHREAD, WaitDeadline) - FIELD_OFFSET(KTHREAD, WaitRegister) == KI_CACHE_LINE);
C_ASSERT(FIELD_OFFSET(KTHREAD, WaitBlock[1]) - FIELD_OFFSET(KTHREAD, WaitDeadline) == KI_CACHE_LINE);
C_ASSERT(FIELD_OFFSET(KTHREAD, ApcState.ApcListHead) - FIELD_OFFSET(KTHREAD, Irql) == KI_CACHE_LINE);

typedef struct _KPROCESS {
    DISPATCHER_HEADER Header;
    ULONG ProcessId;
    SCHAR BasePriority;
    NTSTATUS ExitStatus;
    volatile ULONG Settings;         /* counts changes of the members below and of BasePriority: process.c */
    volatile BOOLEAN DisableBoost;
    volatile KAFFINITY Affinity;     /* in group 0; 0: every processor */
} KPROCESS;

#define KI_NORMAL_PRIORITY 8 /* the base of a process before it is set */

/* relaxed: a starting thread checks for changes, and running threads are updated (process.c) */
FORCEINLINE KPRIORITY KiReadProcessBase(const KPROCESS *Process)
{
    return __atomic_load_n(&Process->BasePriority, __ATOMIC_RELAXED);
}

/*
 * Every KTHREAD lives in a slot of a table that is never freed: a stale PKTHREAD always points to some KTHREAD, so a
 * reader may read an owner that has just ended. The first chunk of slots is in .bss, so adopting a thread allocates
 * nothing while no more than KI_THREAD_CHUNK threads are alive; further chunks are added whole.
 *
 * Each higher layer has a room in the slot. The layer declares its contents, in its own header, and reaches it by an
 * inline accessor at a fixed distance from the KTHREAD (KI_THREAD_ROOM):
 *
 *     Prefix   ob      OBJECT_HEADER             ob/obp.h
 *     Ps       ps      ETHREAD after its Tcb     ps/psp.h
 *     Ob       ob      OBP_THREAD                ob/obp.h
 *     Trace    trace   TRACE_THREAD              trace/tracep.h
 *     Ex       ex      EXP_THREAD                ex/exp.h
 *     Wo       wo      WO_THREAD                 wo/outside.c
 *     Nt       nt      NTP_THREAD                nt/ntp.h
 *     Rtl      rtl     TEB                       rtl/rtlp.h
 *     Win32    win32   BASE_THREAD               win32/base.h
 *
 * From Tcb to Win32 a slot is zeroed for each new thread. ExKept (EXP_THREAD_KEPT) and NtKept (NTP_THREAD_KEPT) stay
 * with the slot: the next thread in it inherits them.
 */
#define KI_THREAD_CHUNK 4096
#define KI_THREAD_CHUNKS 64
#define KI_THREAD_PREFIX 128
#define KI_ROOM_ALIGNMENT 16

typedef struct _KI_THREAD_SLOT {
    UCHAR Prefix[KI_THREAD_PREFIX] DECLSPEC_ALIGN(KI_CACHE_LINE);
    KTHREAD Tcb;
    UCHAR Ps[128] DECLSPEC_ALIGN(KI_CACHE_LINE);
    UCHAR Ob[16] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Trace[64] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Ex[64] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Wo[64] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Nt[64] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Rtl[192] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR Win32[128] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR ExKept[16] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    UCHAR NtKept[48] DECLSPEC_ALIGN(KI_ROOM_ALIGNMENT);
    ULONG Number;
    volatile ULONG NextFree;         /* number of the next free slot + 1, see thread.c */
    volatile ULONG Use;              /* KI_SLOT_USE */
} KI_THREAD_SLOT;

/* Accessor(Thread) is the Type that a layer has in Room. */
#define KI_THREAD_ROOM(Type, Room, Accessor)                                                                           \
    FORCEINLINE Type *Accessor(PKTHREAD Thread)                                                                        \
    {                                                                                                                  \
        return (Type *)(PVOID)KiSlotOfThread(Thread)->Room;                                                            \
    }                                                                                                                  \
    C_ASSERT(sizeof(Type) <= sizeof(((KI_THREAD_SLOT *)0)->Room) && _Alignof(Type) <= KI_ROOM_ALIGNMENT)

typedef enum _KI_SLOT_USE {
    KiSlotFree,
    KiSlotUsed,
    KiSlotOrphaned                   /* its thread stayed in the parent of a fork */
} KI_SLOT_USE;

FORCEINLINE KI_THREAD_SLOT *KiSlotOfThread(PKTHREAD Thread)
{
    return CONTAINING_RECORD(Thread, KI_THREAD_SLOT, Tcb);
}

/* This process, with the same prefix as a thread. */
typedef struct _KI_PROCESS_SLOT {
    UCHAR Prefix[KI_THREAD_PREFIX] DECLSPEC_ALIGN(KI_CACHE_LINE);
    KPROCESS Pcb;
} KI_PROCESS_SLOT;

extern KI_PROCESS_SLOT KiInitialProcessSlot;
#define KiInitialProcess KiInitialProcessSlot.Pcb

/* The object manager's part in a thread's life; set when the library is loaded. */
typedef struct _KI_THREAD_OBJECT_ROUTINES {
    VOID (*Initialize)(PKTHREAD Thread);  /* in a fresh slot: one reference, the thread's own */
    VOID (*Dereference)(PKTHREAD Thread); /* the thread has ended: drops its own reference */
    VOID (*Exit)(PKTHREAD Thread, BOOLEAN WasTerminated); /* about to end: runs exit routines */
    VOID (*Ended)(ULONG EndOrdinal, NTSTATUS ExitStatus); /* a thread has ended; it may have been the last one */
    VOID (*Orphan)(PKTHREAD Thread);      /* in a forked child: it stayed in the parent */
} KI_THREAD_OBJECT_ROUTINES;

extern KI_THREAD_OBJECT_ROUTINES KiThreadObjectRoutines;

extern KI_THREAD_SLOT *volatile KiThreadChunk[KI_THREAD_CHUNKS];
extern volatile ULONG KiThreadSlotsUsed; /* slots with a lower number have been used at least once */
extern volatile ULONG64 KiFreeThreadSlots; /* see thread.c */

/* thread.c */
PKTHREAD KiAdoptThread(VOID);
PKTHREAD KiAllocateThread(VOID);                 /* initialized, not running yet; NULL: no slot is left */
VOID KiStartCurrentThread(PKTHREAD Thread);      /* makes Thread the running one of this host thread */
VOID KiTerminateCurrentThread(PKTHREAD Thread);  /* abandons mutants, leaves its queue, flushes APCs, signals it */
VOID KiThreadExit(PKTHREAD Thread);              /* HAL_CALLBACKS: the current host thread ends */
VOID KiFreeThread(PKTHREAD Thread);              /* the slot may be reused */
VOID KiEndThread(PKTHREAD Thread);               /* Thread's object becomes signaled */
extern volatile ULONG KiThreadsEnded;
VOID KiDropThread(PKTHREAD Thread);              /* drops the thread's own reference */
VOID KiRebuildFreeSlots(VOID);                   /* in a forked child */
PKTHREAD KiThreadFromNumber(ULONG Slot);         /* NULL: never used */
extern KI_LOCK KiSlotInitializationLock;         /* no slot gets a new thread meanwhile */

/* stop.c: termination */
/* Requests the end of another thread, which is not waited for. A thread that already ends is only resumed. */
NTSTATUS KiTerminateThread(PKTHREAD Thread, NTSTATUS ExitStatus);
VOID KiExitIfRequested(PKTHREAD Thread);         /* does not return if the current thread must end and may end here */
VOID KiLeaveServices(PKTHREAD Thread);           /* delivers what is pending; returns elsewhere if the registers were set */
BOOLEAN KiIsExiting(PKTHREAD Thread);            /* it must end, or is ending */
VOID KiClaimExit(PKTHREAD Thread);               /* from here on the thread ends by itself */
VOID KiRecordTimes(PKTHREAD Thread);             /* afterwards no call of the host is about the thread */
/* In a dispatcher section. TRUE: the host's thread stays until KiReleaseHostThread. FALSE: it has ended, or never
   existed. */
BOOLEAN KiHoldHostThread(PKTHREAD Thread, PULONG ThreadId);
VOID KiReleaseHostThread(PKTHREAD Thread);
VOID KiForgetHostThread(PKTHREAD Thread);        /* in a forked child: it stayed behind in the parent */
extern volatile ULONG KiReaperWakes;             /* counts stopped threads; the reaper sleeps on it */

/* thread.c, by id */
VOID KiInsertThreadId(PKTHREAD Thread, ULONG ThreadId);
VOID KiRemoveThreadId(PKTHREAD Thread, ULONG ThreadId);
PKTHREAD KiLookupThreadById(ULONG ThreadId);     /* a running or ended thread whose object exists, or NULL */

/* process.c: this process. Each setting reaches its threads, and those that are created later. */
VOID KiSetProcessBasePriority(KPRIORITY BasePriority);
VOID KiSetProcessDisableBoost(BOOLEAN Disable);
BOOLEAN KiSetProcessAffinity(KAFFINITY Affinity); /* FALSE: there are no such processors */
KAFFINITY KiQueryProcessAffinity(VOID);          /* in group 0; 0: some threads are in another group */
BOOLEAN KiMayUseProcessors(const GROUP_AFFINITY *Affinity); /* by the process's own setting */
VOID KiAdoptProcessSettings(PKTHREAD Thread);    /* the current thread, which has just started */
PKTHREAD KiBecomeOwnThread(VOID);                /* the current thread is the library's own: first of all; returns it */

/* processor.c */
VOID KiQueryUserAffinityThread(PKTHREAD Thread, PGROUP_AFFINITY Affinity);
/* FALSE: there are no such processors, and nothing has changed. */
BOOLEAN KiSetUserAffinityThread(PKTHREAD Thread, const GROUP_AFFINITY *Affinity, PGROUP_AFFINITY PreviousAffinity);

/* register.c */
VOID KiNoteChange(PKTHREAD Thread, ULONG Change); /* KI_WAIT_AFFINITY or _PRIORITY; only for a thread that waits */

/* priority.c */
LONG KiQueryBasePriorityThread(PKTHREAD Thread); /* the increment, as KeSetBasePriorityThread takes it */
BOOLEAN KiQueryDisableBoostThread(PKTHREAD Thread);
KPRIORITY KiSettledPriority(PKTHREAD Thread);    /* to which its boosts will decay; takes no lock */
VOID KiBoostThread(PKTHREAD Thread, KPRIORITY Increment); /* in a dispatcher section */
VOID KiBoostWokenThread(PKTHREAD Thread, KPRIORITY Increment); /* above 0; only by the thread that wakes it, before it does */
/* Thread is about to block on something that Owner holds. NULL: no owner. Harmless if the owner has just released
   it. */
VOID KiLendPriority(PKTHREAD Thread, PKTHREAD Owner);
VOID KiPassOnLentPriority(PKTHREAD Thread, PKTHREAD NewOwner); /* NULL: no new owner */

/* apc.c */
VOID KiDeliverApc(PKTHREAD Thread);              /* runs every kernel APC that may run now */
VOID KiDeliverUserApcs(PKTHREAD Thread);         /* runs all queued user APCs */
VOID KiFlushThreadApcs(PKTHREAD Thread);         /* runs queued ones down; no more can be queued */
BOOLEAN KiKernelApcDeliverable(PKTHREAD Thread);

/* wait.c: KeWaitForSingleObject for a queued waiter that has already spun: it does not spin a second time. */
NTSTATUS KiSleepUntilSignaled(PVOID Object, KWAIT_REASON WaitReason, PLARGE_INTEGER Timeout);

/* apc.c: the one way in which user mode blocks. An alert may be spurious: check the condition again. */
NTSTATUS KeWaitForAlertByThreadId(PVOID Hint, PLARGE_INTEGER Timeout); /* STATUS_ALERTED or STATUS_TIMEOUT */
NTSTATUS KiWaitForAlertById(PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins); /* FALSE: the caller has spun already */
VOID KeAlertThreadById(PKTHREAD Thread);         /* safe even if the thread has ended or its slot was recycled */

/* stop.c: suspension */
VOID KiInitializeSuspension(PKTHREAD Thread);
NTSTATUS KiSuspendThread(PKTHREAD Thread, PULONG PreviousCount);
ULONG KiQuerySuspendCountThread(PKTHREAD Thread);
/* For a suspended thread. STATUS_NOT_SUPPORTED: the host did not interrupt it, so its registers were not saved. */
NTSTATUS KiAccessRegisters(PKTHREAD Thread, struct _CONTEXT *Context, BOOLEAN Write);

/* mutant.c, queue.c */
VOID KiAbandonMutants(PKTHREAD Thread);          /* by the thread itself, or in a forked child for one that stayed
                                                    behind */
VOID KiLeaveQueue(PKTHREAD Thread);

/* stop.c: the interrupt through the host */
VOID KiInterruptCurrentThread(PKTHREAD Thread);  /* the thread checks outside the C library, if it is inside now */
VOID KiHostInterrupt(BOOLEAN InsideLibc);         /* HAL_CALLBACKS: on the interrupted thread */
VOID KiStopForkChild(PKTHREAD Survivor);

/* Resets of a forked child. */
VOID KiTimerForkChild(VOID);
VOID KiProcessorForkChild(PKTHREAD Survivor);

/* fork.c: the callbacks of hal. KiForkDepth counts the forks since the library was loaded, modulo 2^31. */
extern ULONG KiForkDepth;
/* What a layer above does in a fork, while no other thread is in a dispatcher section. */
typedef struct _KI_FORK_HOOKS {
    VOID (*Prepare)(VOID);
    VOID (*Parent)(VOID);
    VOID (*Child)(VOID);
} KI_FORK_HOOKS;
VOID KiSetForkHooks(const KI_FORK_HOOKS *Hooks);
VOID KiForkPrepareWithHooks(VOID);
VOID KiForkParentWithHooks(BOOLEAN LateFollows);
VOID KiForkPrepare(VOID);
VOID KiForkParent(BOOLEAN LateFollows);
VOID KiForkParentLate(VOID);
VOID KiForkChild(VOID);
VOID KiForkChildLate(VOID);

/* bugcheck.c: as KeBugCheckEx, with a sentence for the report */
DECLSPEC_NORETURN VOID KiBugCheckBecause(PCSTR Reason, ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                         ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                         ULONG_PTR BugCheckParameter4);

/* exception.c: every raise goes through it */
DECLSPEC_NORETURN VOID KiRaiseStatus(NTSTATUS Status);
VOID KiRaiseException(PEXCEPTION_RECORD Record); /* returns if it is continued */

/* Called for an exception in addition to the frames; set when the first handler is registered. Each returns an
   EXCEPTION_… disposition. NULL: none. */
typedef LONG KI_EXCEPTION_ROUTINE(PEXCEPTION_POINTERS Exception);
extern KI_EXCEPTION_ROUTINE *volatile KiFirstChanceRoutine; /* before the frames */
extern KI_EXCEPTION_ROUTINE *volatile KiLastChanceRoutine;  /* after them */

FORCEINLINE PKTHREAD KiCurrentThread(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    return __builtin_expect(Thread != NULL, 1) ? Thread : KiAdoptThread();
}

/* relaxed: for display only. Returns the previous note: an APC may wait in the middle of a wait. */
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
    if (HAL_SIMULATED && HalSimulateAcquire(Lock, sizeof(*Lock), 1) != 0) {
        return;
    }
    if (!KiTryAcquireLock(Lock)) {
        KiAcquireLockSlow(Lock);
    }
}

FORCEINLINE VOID KiReleaseLock(PKI_LOCK Lock)
{
    __atomic_store_n(Lock, 0, __ATOMIC_RELEASE);
}

/*
 * The dispatcher section: a thread in one holds locks of the kernel or is about to, so a host interrupt that would park
 * it, and a fork, wait until it is out. Sections nest.
 */
extern volatile ULONG KiForkPending __attribute__((visibility("hidden"))); /* every section reads both */
extern BOOLEAN KiDispatcherFence __attribute__((visibility("hidden")));
VOID KiEnterDispatcherSlow(PKTHREAD Thread);

/*
 * A store that is ordered before the loads that follow it. The other side executes a barrier on all threads between its
 * own store and its load of *Word (HalBarrierAllThreads), so a compiler barrier is enough here. Where the host has no
 * such barrier, the store is repeated as a read-modify-write. (Not a bare fence: thread sanitizers do not understand
 * those.) release: pairs with an acquire of Value; everything done before is visible.
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
    KiStoreBeforeLook(&Thread->DispatcherDepth, Depth + 1); /* the other side is the forker */
    if (__builtin_expect(__atomic_load_n(&KiForkPending, __ATOMIC_SEQ_CST) != 0, 0) && Depth == 0) {
        KiEnterDispatcherSlow(Thread);
    }
}

/* relaxed: the thread that sets these bits also interrupts a running one */
FORCEINLINE BOOLEAN KiIsDeliveryPending(PKTHREAD Thread)
{
    return (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED) &
            (KI_WAIT_APC | KI_WAIT_EXIT | KI_WAIT_THREAD_WANTED | KI_WAIT_ELSEWHERE)) != 0;
}

/* Leaving the outermost section delivers a suspension or APC that arrived meanwhile. */
FORCEINLINE VOID KiExitDispatcher(PKTHREAD Thread)
{
    ULONG Depth = Thread->DispatcherDepth - 1;
    /* release: a forker that sees 0 also sees our locks free */
    __atomic_store_n(&Thread->DispatcherDepth, Depth, __ATOMIC_RELEASE);
    if (Depth == 0 && __builtin_expect(KiIsDeliveryPending(Thread), 0)) {
        KiDeliverApc(Thread);
    }
}

/*
 * A system service: a thread is not terminated inside, so references are dropped, wait blocks leave their lists, and
 * memory that is being allocated is not lost. When termination is requested, a wait in user mode inside the service ends
 * with STATUS_USER_APC, and the service has to return. User APCs that run inside run as outside.
 */
FORCEINLINE VOID KiEnterService(PKTHREAD Thread)
{
    Thread->ServiceDepth += 1;
    /* for a host interrupt on this thread: nothing of the service comes before */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

FORCEINLINE VOID KiExitService(PKTHREAD Thread)
{
    /* as above: nothing of the service comes after, but the load of the register does */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    Thread->ServiceDepth -= 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (Thread->ServiceDepth == 0 && __builtin_expect(KiIsDeliveryPending(Thread), 0)) {
        KiLeaveServices(Thread);
    }
}

/* A lock of the kernel, with the section around it. */
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

/* The host's processor as one of ours: usually the same number, and a division would cost more than the rest. */
FORCEINLINE ULONG KiHostProcessor(ULONG Processors)
{
    ULONG Number = HalDispatch.CurrentProcessor();
    return __builtin_expect(Number < Processors, 1) ? Number : Number % Processors;
}

/* Global settings, read once from the environment when the library is loaded. */
/* INTERLOCK_VERIFIER, always on in debug builds; hidden: saves an indirection in the fast paths that read it */
extern BOOLEAN KiVerifierEnabled __attribute__((visibility("hidden")));
#ifdef INTERLOCK_HOST
extern BOOLEAN KiUnderValgrind __attribute__((visibility("hidden"))); /* see KiInitializeBareHeader */
#else
#define KiUnderValgrind FALSE
#endif
extern ULONG KeNumberProcessors;    /* INTERLOCK_PROCESSORS, else the host's */
extern ULONG KiDisableLightWeightSuspend; /* INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND */
VOID KiInitializeSystem(VOID);
extern BOOLEAN KiSystemIsUsable;    /* by the initializing thread */

/*
 * A file's initialization before the first call. Routines of lower layers run first, those of one layer in any order.
 * They allocate nothing and wait for nothing (init.c). The entry belongs to the file: a program that is linked with the
 * static library runs those of the files that it links.
 */
typedef enum _KI_INITIALIZE_LAYER {
    KiInitializeKernel,
    KiInitializeObjects,   /* and the types of all layers */
    KiInitializeProcesses,
    KiInitializeServices,
    KiInitializeRuntime,
    KiInitializeLayerCount
} KI_INITIALIZE_LAYER;

typedef struct _KI_INITIALIZER {
    ULONG_PTR Layer; /* KI_INITIALIZE_LAYER */
    VOID (*Routine)(VOID);
} KI_INITIALIZER;

/* Entries are found by their section: without this a linker that drops unreferenced data would drop them. */
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

/* A setting from the environment; an invalid one is reported and ignored. */
ULONG KiReadSetting(PCSTR Name, ULONG Minimum, ULONG Maximum, ULONG Default);

#define KI_TICK 156250ULL /* 15.625 ms: NT's clock interrupt, the unit of WaitTime and quanta */

/* Allocations that fail on purpose (fault.c). */
#ifdef INTERLOCK_HOST
VOID KiInitializeFaults(VOID); /* after the library's own allocations */
VOID KiNoteLeaks(ULONG64 Blocks);
#else
#define KiInitializeFaults() ((VOID)0)
#endif

/*
 * The end of the process: what the library frees when it ends normally (main returns, or exit), so that memcheck reports
 * only the program's leaks (LeakSanitizer checks earlier, before destructors). On Windows the kernel closes a process's
 * handles when it ends.
 *
 * 1. Destructors with these priorities run after those of the program, in this order: handles are closed (ob), then packets
 *    are freed (nt), then the process leaves the worlds (wo). Afterwards everything is as before the first call, and a late
 *    call from another library's destructor works.
 * 2. Nothing is freed while another thread of the program lives: it may use any of it until the process has ended.
 * 3. The library's own threads keep running. A program may close handles at any time while they run. Tables that they
 *    may read without a lock are freed only if no such thread was started.
 * 4. A child that was forked after its parent had handles or packets frees nothing: its handles are copies, and the shared
 *    objects that they name belong to its parent. _exit, quick_exit, TerminateProcess and bugchecks free nothing either.
 */
#define KI_END_OBJECTS 103
#define KI_END_PACKETS 102
#define KI_END_WORLDS 101

/* Rules 2 and 4; also, whether the caller may use the library where it calls exit. */
BOOLEAN KiProcessEndsAlone(VOID);
#ifdef INTERLOCK_HOST
VOID KiClaimProcessEnd(VOID); /* rule 4: before the process gets handles or packets */
#else
#define KiClaimProcessEnd() ((VOID)0)
#endif
BOOLEAN KiHasOwnThreads(VOID); /* rule 3 */

#endif
