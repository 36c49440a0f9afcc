/*
 * ke.h: the kernel. Processors and IRQL, spinlocks, DPCs, APCs, IPIs, threads, waiting, and every dispatcher object.
 * Names, sizes and member offsets are those of 64-bit Windows 10.
 */
#ifndef INTERLOCK_KE_H
#define INTERLOCK_KE_H

#include <interlock/bugcodes.h>
#include <interlock/debugdata.h>
#include <interlock/interlocked.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

INTERLOCK_BEGIN

/* Interrupt request levels. */

typedef UCHAR KIRQL, *PKIRQL;

#define PASSIVE_LEVEL 0
#define LOW_LEVEL 0
#define APC_LEVEL 1
#define DISPATCH_LEVEL 2
#define CMCI_LEVEL 5
#define SYNCH_LEVEL 12
#define CLOCK_LEVEL 13
#define IPI_LEVEL 14
#define DRS_LEVEL 14
#define POWER_LEVEL 14
#define PROFILE_LEVEL 15
#define HIGH_LEVEL 15

#define LOW_PRIORITY 0
#define LOW_REALTIME_PRIORITY 16
#define HIGH_PRIORITY 31
#define MAXIMUM_PRIORITY 32

#define EVENT_INCREMENT 1
#define IO_NO_INCREMENT 0
#define MUTANT_INCREMENT 1
#define SEMAPHORE_INCREMENT 1
#define ALERT_INCREMENT 2

#define MAXIMUM_WAIT_OBJECTS 64
#define THREAD_WAIT_OBJECTS 3
#define MAXIMUM_SUSPEND_COUNT 0x7f

/* The kinds of kernel objects: what the low six bits of DISPATCHER_HEADER.Type and the Type bytes of other objects say. */

typedef enum _KOBJECTS {
    EventNotificationObject = 0,
    EventSynchronizationObject = 1,
    MutantObject = 2,
    ProcessObject = 3,
    QueueObject = 4,
    SemaphoreObject = 5,
    ThreadObject = 6,
    GateObject = 7,
    TimerNotificationObject = 8,
    TimerSynchronizationObject = 9,
    ApcObject = 18,
    DpcObject = 19,
    DeviceQueueObject = 20,
    EventPairObject = 21,
    InterruptObject = 22,
    ProfileObject = 23,
    ThreadedDpcObject = 24,
    MaximumKernelObject = 25
} KOBJECTS;

/* Bits of DISPATCHER_HEADER.Type above the kind: the object's lock, and "somebody's wait block is linked here". */
#define KOBJECT_LOCK_BIT 0x80
#define KOBJECT_WAITERS_BIT 0x40
#define KOBJECT_TYPE_MASK 0x3f

typedef enum _KWAIT_REASON {
    Executive,
    FreePage,
    PageIn,
    PoolAllocation,
    DelayExecution,
    Suspended,
    UserRequest,
    WrExecutive,
    WrFreePage,
    WrPageIn,
    WrPoolAllocation,
    WrDelayExecution,
    WrSuspended,
    WrUserRequest,
    WrSpare0,
    WrQueue,
    WrLpcReceive,
    WrLpcReply,
    WrVirtualMemory,
    WrPageOut,
    WrRendezvous,
    WrKeyedEvent,
    WrTerminated,
    WrProcessInSwap,
    WrCpuRateControl,
    WrCalloutStack,
    WrKernel,
    WrResource,
    WrPushLock,
    WrMutex,
    WrQuantumEnd,
    WrDispatchInt,
    WrPreempted,
    WrYieldExecution,
    WrFastMutex,
    WrGuardedMutex,
    WrRundown,
    WrAlertByThreadId,
    WrDeferredPreempt,
    WrPhysicalFault,
    MaximumWaitReason
} KWAIT_REASON;

/* Table 8-28: what a wait block is doing. */
typedef enum _KWAIT_BLOCK_STATE {
    WaitBlockBypassStart = 0,
    WaitBlockBypassComplete = 1,
    WaitBlockSuspendBypassStart = 2,
    WaitBlockSuspendBypassComplete = 3,
    WaitBlockActive = 4,
    WaitBlockInactive = 5,
    WaitBlockSuspended = 6,
    WaitBlockAllStates = 7
} KWAIT_BLOCK_STATE;

/* The State field of a thread's wait status register. */
typedef enum _KWAIT_STATE {
    WaitInProgress = 0,
    WaitCommitted = 1,
    WaitAborted = 2,
    WaitSuspendInProgress = 3,
    WaitSuspended = 4,
    WaitResumeInProgress = 5,
    WaitResumeAborted = 6,
    WaitFirstSuspendState = WaitSuspendInProgress,
    WaitLastSuspendState = WaitResumeAborted,
    MaximumWaitState = 7
} KWAIT_STATE;

typedef struct _KTHREAD *PKTHREAD, *PRKTHREAD;
typedef struct _KPROCESS *PKPROCESS, *PRKPROCESS;
typedef struct _KINTERRUPT *PKINTERRUPT;
typedef struct _KPRCB *PKPRCB;

/*
 * The head of every object that can be waited on. The first eight bytes are one atomic word (src/ke/dispatch.h has its
 * theory). Its first four mean something else in each type, as table 8-29 lists: the Type byte tells which of the
 * structures applies.
 */
#define TIMER_TOLERABLE_DELAY_BITS 6
#define TIMER_EXPIRED_INDEX_BITS 6

typedef struct _DISPATCHER_HEADER {
    __extension__ union {
        volatile LONG Lock;
        LONG LockNV;
        __extension__ struct { /* events, semaphores, gates, processes */
            UCHAR Type;
            UCHAR Signalling;
            UCHAR Size;
            UCHAR Reserved1;
        };
        __extension__ struct { /* timers */
            UCHAR TimerType;
            __extension__ union {
                UCHAR TimerControlFlags;
                __extension__ struct {
                    UCHAR Absolute : 1;
                    UCHAR Wake : 1;
                    UCHAR EncodedTolerableDelay : TIMER_TOLERABLE_DELAY_BITS;
                };
            };
            UCHAR Hand;
            __extension__ union {
                UCHAR TimerMiscFlags;
                __extension__ struct {
                    UCHAR Index : TIMER_EXPIRED_INDEX_BITS;
                    UCHAR Inserted : 1;
                    volatile UCHAR Expired : 1;
                };
            };
        };
        __extension__ struct { /* timers of the executive (EX_TIMER) */
            UCHAR Timer2Type;
            __extension__ union {
                UCHAR Timer2Flags;
                __extension__ struct {
                    UCHAR Timer2Inserted : 1;
                    UCHAR Timer2Expiring : 1;
                    UCHAR Timer2CancelPending : 1;
                    UCHAR Timer2SetPending : 1;
                    UCHAR Timer2Running : 1;
                    UCHAR Timer2Disabled : 1;
                    UCHAR Timer2ReservedFlags : 2;
                };
            };
            UCHAR Timer2ComponentId;
            UCHAR Timer2RelativeId;
        };
        __extension__ struct { /* queues */
            UCHAR QueueType;
            __extension__ union {
                UCHAR QueueControlFlags;
                __extension__ struct {
                    UCHAR Abandoned : 1;
                    UCHAR DisableIncrement : 1;
                    UCHAR QueueReservedControlFlags : 6;
                };
            };
            UCHAR QueueSize;
            UCHAR QueueReserved;
        };
        __extension__ struct { /* threads */
            UCHAR ThreadType;
            UCHAR ThreadReserved;
            __extension__ union {
                UCHAR ThreadControlFlags;
                __extension__ struct {
                    UCHAR CycleProfiling : 1;
                    UCHAR CounterProfiling : 1;
                    UCHAR GroupScheduling : 1;
                    UCHAR AffinitySet : 1;
                    UCHAR Tagged : 1;
                    UCHAR EnergyProfiling : 1;
                    UCHAR SchedulerAssist : 1;
                    UCHAR ThreadReservedControlFlags : 1;
                };
            };
            __extension__ union {
                UCHAR DebugActive;
                __extension__ struct {
                    UCHAR ActiveDR7 : 1;
                    UCHAR Instrumented : 1;
                    UCHAR Minimal : 1;
                    UCHAR Reserved4 : 2;
                    UCHAR AltSyscall : 1;
                    UCHAR UmsScheduled : 1;
                    UCHAR UmsPrimary : 1;
                };
            };
        };
        __extension__ struct { /* mutants */
            UCHAR MutantType;
            UCHAR MutantSize;
            UCHAR DpcActive;
            UCHAR MutantReserved;
        };
    };
    LONG SignalState;
    LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER, *PDISPATCHER_HEADER;

typedef struct _KWAIT_BLOCK {
    LIST_ENTRY WaitListEntry;
    UCHAR WaitType;
    volatile UCHAR BlockState;
    USHORT WaitKey;
    LONG SpareLong;
    __extension__ union {
        struct _KTHREAD *Thread;
        struct _KQUEUE *NotificationQueue;
        struct _KDPC *Dpc;
    };
    PVOID Object;
    PVOID SparePtr;
} KWAIT_BLOCK, *PKWAIT_BLOCK, *PRKWAIT_BLOCK;

typedef struct _KEVENT {
    DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT, *PRKEVENT;

typedef struct _KGATE {
    DISPATCHER_HEADER Header;
} KGATE, *PKGATE, *PRKGATE;

typedef struct _KSEMAPHORE {
    DISPATCHER_HEADER Header;
    LONG Limit;
} KSEMAPHORE, *PKSEMAPHORE, *PRKSEMAPHORE;

typedef struct _KMUTANT {
    DISPATCHER_HEADER Header;
    LIST_ENTRY MutantListEntry;
    struct _KTHREAD *OwnerThread;
    BOOLEAN Abandoned;
    UCHAR ApcDisable;
} KMUTANT, *PKMUTANT, *PRKMUTANT, KMUTEX, *PKMUTEX, *PRKMUTEX;

typedef struct _KTIMER {
    DISPATCHER_HEADER Header;
    ULARGE_INTEGER DueTime;
    LIST_ENTRY TimerListEntry;
    struct _KDPC *Dpc;
    ULONG Processor;
    ULONG Period;
} KTIMER, *PKTIMER, *PRKTIMER;

typedef struct _KQUEUE {
    DISPATCHER_HEADER Header;
    LIST_ENTRY EntryListHead;
    volatile ULONG CurrentCount;
    ULONG MaximumCount;
    LIST_ENTRY ThreadListHead;
} KQUEUE, *PKQUEUE, *PRKQUEUE;

typedef struct _KEVENT_PAIR {
    CSHORT Type;
    CSHORT Size;
    KEVENT EventLow;
    KEVENT EventHigh;
} KEVENT_PAIR, *PKEVENT_PAIR, *PRKEVENT_PAIR;

typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;

struct _KDPC;
struct _KAPC;

typedef VOID KDEFERRED_ROUTINE(struct _KDPC *Dpc, PVOID DeferredContext, PVOID SystemArgument1, PVOID SystemArgument2);
typedef KDEFERRED_ROUTINE *PKDEFERRED_ROUTINE;

typedef enum _KDPC_IMPORTANCE { LowImportance, MediumImportance, HighImportance, MediumHighImportance } KDPC_IMPORTANCE;

typedef struct _KDPC {
    __extension__ union {
        ULONG TargetInfoAsUlong;
        __extension__ struct {
            UCHAR Type;
            UCHAR Importance;
            volatile USHORT Number;
        };
    };
    LIST_ENTRY DpcListEntry;
    PKDEFERRED_ROUTINE DeferredRoutine;
    PVOID DeferredContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
    volatile PVOID DpcData;
} KDPC, *PKDPC, *PRKDPC;

typedef VOID (*PKNORMAL_ROUTINE)(PVOID NormalContext, PVOID SystemArgument1, PVOID SystemArgument2);
typedef VOID (*PKRUNDOWN_ROUTINE)(struct _KAPC *Apc);
typedef VOID (*PKKERNEL_ROUTINE)(struct _KAPC *Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext,
                                 PVOID *SystemArgument1, PVOID *SystemArgument2);

typedef enum _KAPC_ENVIRONMENT {
    OriginalApcEnvironment,
    AttachedApcEnvironment,
    CurrentApcEnvironment,
    InsertApcEnvironment
} KAPC_ENVIRONMENT;

typedef struct _KAPC {
    UCHAR Type;
    UCHAR SpareByte0;
    UCHAR Size;
    UCHAR SpareByte1;
    ULONG SpareLong0;
    struct _KTHREAD *Thread;
    LIST_ENTRY ApcListEntry;
    PKKERNEL_ROUTINE KernelRoutine;
    PKRUNDOWN_ROUTINE RundownRoutine;
    PKNORMAL_ROUTINE NormalRoutine;
    PVOID NormalContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
    CCHAR ApcStateIndex;
    KPROCESSOR_MODE ApcMode;
    BOOLEAN Inserted;
} KAPC, *PKAPC, *PRKAPC;

C_ASSERT(sizeof(DISPATCHER_HEADER) == 24);
C_ASSERT(sizeof(KEVENT) == 24);
C_ASSERT(sizeof(KGATE) == 24);
C_ASSERT(sizeof(KSEMAPHORE) == 32);
C_ASSERT(sizeof(KMUTANT) == 56);
C_ASSERT(sizeof(KTIMER) == 64);
C_ASSERT(sizeof(KQUEUE) == 64);
C_ASSERT(sizeof(KWAIT_BLOCK) == 48);
C_ASSERT(sizeof(KDPC) == 64);
C_ASSERT(sizeof(KAPC) == 88);
C_ASSERT(sizeof(KEVENT_PAIR) == 56);
C_ASSERT(FIELD_OFFSET(KWAIT_BLOCK, WaitType) == 0x10);
C_ASSERT(FIELD_OFFSET(KWAIT_BLOCK, BlockState) == 0x11);
C_ASSERT(FIELD_OFFSET(KWAIT_BLOCK, WaitKey) == 0x12);
C_ASSERT(FIELD_OFFSET(KWAIT_BLOCK, Thread) == 0x18);
C_ASSERT(FIELD_OFFSET(KWAIT_BLOCK, Object) == 0x20);

/* Processors and IRQL. */

#define ALL_PROCESSOR_GROUPS 0xffff
#define MAXIMUM_PROC_PER_GROUP 64
#define INTERLOCK_MAXIMUM_PROCESSORS 2560
#define INVALID_PROCESSOR_INDEX 0xffffffff

NTKERNELAPI KIRQL KeGetCurrentIrql(VOID);
NTKERNELAPI KIRQL KfRaiseIrql(KIRQL NewIrql);
NTKERNELAPI VOID KfLowerIrql(KIRQL NewIrql);
NTKERNELAPI KIRQL KeRaiseIrqlToDpcLevel(VOID);
NTKERNELAPI KIRQL KeRaiseIrqlToSynchLevel(VOID);
#define KeRaiseIrql(NewIrql, OldIrql) (*(OldIrql) = KfRaiseIrql(NewIrql))
#define KeLowerIrql(NewIrql) KfLowerIrql(NewIrql)

NTKERNELAPI ULONG KeGetCurrentProcessorNumber(VOID);
NTKERNELAPI ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);
NTKERNELAPI ULONG KeQueryActiveProcessorCount(PKAFFINITY ActiveProcessors);
NTKERNELAPI ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);
NTKERNELAPI KAFFINITY KeQueryActiveProcessors(VOID);
NTKERNELAPI ULONG KeQueryMaximumProcessorCount(VOID);
NTKERNELAPI ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber);
NTKERNELAPI USHORT KeQueryActiveGroupCount(VOID);
NTKERNELAPI USHORT KeQueryMaximumGroupCount(VOID);
NTKERNELAPI KAFFINITY KeQueryGroupAffinity(USHORT GroupNumber);
NTKERNELAPI NTSTATUS KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber);
NTKERNELAPI ULONG KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber);
NTKERNELAPI VOID KeSetSystemAffinityThread(KAFFINITY Affinity);
NTKERNELAPI KAFFINITY KeSetSystemAffinityThreadEx(KAFFINITY Affinity);
NTKERNELAPI VOID KeRevertToUserAffinityThread(VOID);
NTKERNELAPI VOID KeRevertToUserAffinityThreadEx(KAFFINITY Affinity);
NTKERNELAPI VOID KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity, PGROUP_AFFINITY PreviousAffinity);
NTKERNELAPI VOID KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity);

/* Bugchecks. The report goes to standard error, then the process aborts. */

typedef enum _KBUGCHECK_BUFFER_DUMP_STATE {
    BufferEmpty,
    BufferInserted,
    BufferStarted,
    BufferFinished,
    BufferIncomplete
} KBUGCHECK_BUFFER_DUMP_STATE;

typedef VOID (*PKBUGCHECK_CALLBACK_ROUTINE)(PVOID Buffer, ULONG Length);

typedef struct _KBUGCHECK_CALLBACK_RECORD {
    LIST_ENTRY Entry;
    PKBUGCHECK_CALLBACK_ROUTINE CallbackRoutine;
    PVOID Buffer;
    ULONG Length;
    PUCHAR Component;
    ULONG_PTR Checksum;
    UCHAR State;
} KBUGCHECK_CALLBACK_RECORD, *PKBUGCHECK_CALLBACK_RECORD;

#define KeInitializeCallbackRecord(CallbackRecord) ((CallbackRecord)->State = BufferEmpty)

NTKERNELAPI DECLSPEC_NORETURN VOID KeBugCheck(ULONG BugCheckCode);
NTKERNELAPI DECLSPEC_NORETURN VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                                ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                                ULONG_PTR BugCheckParameter4);
NTKERNELAPI BOOLEAN KeRegisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord,
                                               PKBUGCHECK_CALLBACK_ROUTINE CallbackRoutine, PVOID Buffer,
                                               ULONG Length, PUCHAR Component);
NTKERNELAPI BOOLEAN KeDeregisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord);

/* Spinlocks. */

NTKERNELAPI VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock);
NTKERNELAPI KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);
NTKERNELAPI KIRQL KeAcquireSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock);
NTKERNELAPI VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
NTKERNELAPI VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);
NTKERNELAPI VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);
NTKERNELAPI BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
NTKERNELAPI BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock);
#define KeAcquireSpinLock(SpinLock, OldIrql) (*(OldIrql) = KeAcquireSpinLockRaiseToDpc(SpinLock))

/*
 * Queued spinlocks: first come, first served, each waiter spinning on a queue entry of its own. The entry is in a handle
 * on the caller's stack, or for the numbered locks of the system in the processor's LockQueue array. The bits are kept in
 * the entry's Lock pointer.
 */

#define LOCK_QUEUE_WAIT_BIT 0
#define LOCK_QUEUE_OWNER_BIT 1
#define LOCK_QUEUE_WAIT 1
#define LOCK_QUEUE_OWNER 2

typedef struct _KSPIN_LOCK_QUEUE {
    struct _KSPIN_LOCK_QUEUE *volatile Next;
    PKSPIN_LOCK volatile Lock;
} KSPIN_LOCK_QUEUE, *PKSPIN_LOCK_QUEUE;

typedef struct _KLOCK_QUEUE_HANDLE {
    KSPIN_LOCK_QUEUE LockQueue;
    KIRQL OldIrql;
} KLOCK_QUEUE_HANDLE, *PKLOCK_QUEUE_HANDLE;

C_ASSERT(sizeof(KSPIN_LOCK_QUEUE) == 16);
C_ASSERT(sizeof(KLOCK_QUEUE_HANDLE) == 24);

typedef ULONG64 KSPIN_LOCK_QUEUE_NUMBER;

#define LockQueueUnusedSpare0 0
#define LockQueueUnusedSpare1 1
#define LockQueueUnusedSpare2 2
#define LockQueueUnusedSpare3 3
#define LockQueueVacbLock 4
#define LockQueueMasterLock 5
#define LockQueueNonPagedPoolLock 6
#define LockQueueIoCancelLock 7
#define LockQueueUnusedSpare8 8
#define LockQueueIoVpbLock 9
#define LockQueueIoDatabaseLock 10
#define LockQueueIoCompletionLock 11
#define LockQueueNtfsStructLock 12
#define LockQueueAfdWorkQueueLock 13
#define LockQueueBcbLock 14
#define LockQueueUnusedSpare15 15
#define LockQueueUnusedSpare16 16
#define LockQueueMaximumLock 17

NTKERNELAPI KIRQL KeAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number);
NTKERNELAPI KIRQL KeAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number);
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql);
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql);
NTKERNELAPI VOID KeReleaseQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, KIRQL OldIrql);
NTKERNELAPI VOID KeAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);
NTKERNELAPI VOID KeReleaseQueuedSpinLockFromDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);

NTKERNELAPI VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockForDpc(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLockForDpc(PKLOCK_QUEUE_HANDLE LockHandle);

/* Interrupts. KeFireInterrupt is Interlock's own: it makes the simulated device interrupt the given processor. */

typedef BOOLEAN KSERVICE_ROUTINE(struct _KINTERRUPT *Interrupt, PVOID ServiceContext);
typedef KSERVICE_ROUTINE *PKSERVICE_ROUTINE;
typedef BOOLEAN KSYNCHRONIZE_ROUTINE(PVOID SynchronizeContext);
typedef KSYNCHRONIZE_ROUTINE *PKSYNCHRONIZE_ROUTINE;
typedef enum _KINTERRUPT_MODE { LevelSensitive, Latched } KINTERRUPT_MODE;

NTKERNELAPI KIRQL KeAcquireInterruptSpinLock(PKINTERRUPT Interrupt);
NTKERNELAPI VOID KeReleaseInterruptSpinLock(PKINTERRUPT Interrupt, KIRQL OldIrql);
NTKERNELAPI BOOLEAN KeSynchronizeExecution(PKINTERRUPT Interrupt, PKSYNCHRONIZE_ROUTINE SynchronizeRoutine,
                                           PVOID SynchronizeContext);
NTKERNELAPI BOOLEAN KeFireInterrupt(PKINTERRUPT Interrupt, ULONG Processor);

/* Deferred procedure calls and interprocessor interrupts. */

typedef ULONG_PTR KIPI_BROADCAST_WORKER(ULONG_PTR Argument);
typedef KIPI_BROADCAST_WORKER *PKIPI_BROADCAST_WORKER;

NTKERNELAPI VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);
NTKERNELAPI VOID KeInitializeThreadedDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);
NTKERNELAPI BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);
NTKERNELAPI BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc);
NTKERNELAPI VOID KeSetImportanceDpc(PRKDPC Dpc, KDPC_IMPORTANCE Importance);
NTKERNELAPI VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CCHAR Number);
NTKERNELAPI NTSTATUS KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber);
NTKERNELAPI VOID KeFlushQueuedDpcs(VOID);
NTKERNELAPI VOID KeGenericCallDpc(PKDEFERRED_ROUTINE Routine, PVOID Context);
NTKERNELAPI VOID KeSignalCallDpcDone(PVOID SystemArgument1);
NTKERNELAPI LOGICAL KeSignalCallDpcSynchronize(PVOID SystemArgument2);
NTKERNELAPI ULONG_PTR KeIpiGenericCall(PKIPI_BROADCAST_WORKER BroadcastFunction, ULONG_PTR Context);

/* Asynchronous procedure calls and the regions that hold them back. */

NTKERNELAPI VOID KeInitializeApc(PRKAPC Apc, PRKTHREAD Thread, KAPC_ENVIRONMENT Environment,
                                 PKKERNEL_ROUTINE KernelRoutine, PKRUNDOWN_ROUTINE RundownRoutine,
                                 PKNORMAL_ROUTINE NormalRoutine, KPROCESSOR_MODE ApcMode, PVOID NormalContext);
NTKERNELAPI BOOLEAN KeInsertQueueApc(PRKAPC Apc, PVOID SystemArgument1, PVOID SystemArgument2, KPRIORITY Increment);
NTKERNELAPI BOOLEAN KeRemoveQueueApc(PRKAPC Apc);
NTKERNELAPI VOID KeEnterCriticalRegion(VOID);
NTKERNELAPI VOID KeLeaveCriticalRegion(VOID);
NTKERNELAPI VOID KeEnterGuardedRegion(VOID);
NTKERNELAPI VOID KeLeaveGuardedRegion(VOID);
NTKERNELAPI BOOLEAN KeAreApcsDisabled(VOID);
NTKERNELAPI BOOLEAN KeAreAllApcsDisabled(VOID);

/* Threads. */

NTKERNELAPI PKTHREAD KeGetCurrentThread(VOID);
NTKERNELAPI NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Interval);
NTKERNELAPI BOOLEAN KeAlertThread(PKTHREAD Thread, KPROCESSOR_MODE AlertMode);
NTKERNELAPI BOOLEAN KeTestAlertThread(KPROCESSOR_MODE AlertMode);
NTKERNELAPI ULONG KeAlertResumeThread(PKTHREAD Thread);
NTKERNELAPI ULONG KeSuspendThread(PKTHREAD Thread);
NTKERNELAPI ULONG KeResumeThread(PKTHREAD Thread);
NTKERNELAPI KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority);
NTKERNELAPI LONG KeSetBasePriorityThread(PRKTHREAD Thread, LONG Increment);
NTKERNELAPI KPRIORITY KeQueryPriorityThread(PRKTHREAD Thread);
NTKERNELAPI BOOLEAN KeSetDisableBoostThread(PKTHREAD Thread, BOOLEAN Disable);
NTKERNELAPI BOOLEAN KeSetKernelStackSwapEnable(BOOLEAN Enable);

/* Waiting. */

NTKERNELAPI NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                           BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTKERNELAPI NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                              KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                              PLARGE_INTEGER Timeout, PKWAIT_BLOCK WaitBlockArray);
#define KeWaitForMutexObject KeWaitForSingleObject

/* Events. */

NTKERNELAPI VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);
NTKERNELAPI LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI VOID KeSetEventBoostPriority(PRKEVENT Event, PKTHREAD *Thread);
NTKERNELAPI LONG KeResetEvent(PRKEVENT Event);
NTKERNELAPI VOID KeClearEvent(PRKEVENT Event);
NTKERNELAPI LONG KePulseEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI LONG KeReadStateEvent(PRKEVENT Event);

/* Event pairs: set one, wait for the other, in one step. */

NTKERNELAPI VOID KeInitializeEventPair(PKEVENT_PAIR EventPair);
NTKERNELAPI LONG KeSetHighEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI LONG KeSetLowEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI NTSTATUS KeWaitForHighEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                            PLARGE_INTEGER Timeout);
NTKERNELAPI NTSTATUS KeWaitForLowEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout);
NTKERNELAPI NTSTATUS KeSetHighWaitLowThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode);
NTKERNELAPI NTSTATUS KeSetLowWaitHighThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode);

/* Gates. The boosting signal makes it a locking gate, the plain one a signaling gate. */

NTKERNELAPI VOID KeInitializeGate(PKGATE Gate);
NTKERNELAPI VOID KeSignalGate(PKGATE Gate);
NTKERNELAPI VOID KeSignalGateBoostPriority(PKGATE Gate);
NTKERNELAPI NTSTATUS KeWaitForGate(PKGATE Gate, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode);

/* Mutants and mutexes. */

NTKERNELAPI VOID KeInitializeMutant(PRKMUTANT Mutant, BOOLEAN InitialOwner);
NTKERNELAPI VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level);
NTKERNELAPI LONG KeReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait);
NTKERNELAPI LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait);
NTKERNELAPI LONG KeReadStateMutant(PRKMUTANT Mutant);
NTKERNELAPI LONG KeReadStateMutex(PRKMUTEX Mutex);

/* Semaphores. */

NTKERNELAPI VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);
NTKERNELAPI LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait);
NTKERNELAPI LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore);

/* Timers. */

NTKERNELAPI VOID KeInitializeTimer(PKTIMER Timer);
NTKERNELAPI VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type);
NTKERNELAPI BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc);
NTKERNELAPI BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc);
NTKERNELAPI BOOLEAN KeSetCoalescableTimer(PKTIMER Timer, LARGE_INTEGER DueTime, ULONG Period, ULONG TolerableDelay,
                                          PKDPC Dpc);
NTKERNELAPI BOOLEAN KeCancelTimer(PKTIMER Timer);
NTKERNELAPI BOOLEAN KeReadStateTimer(PKTIMER Timer);

/* Time. */

NTKERNELAPI VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime);
NTKERNELAPI VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime);
NTKERNELAPI ULONGLONG KeQueryInterruptTime(VOID);
NTKERNELAPI ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp);
NTKERNELAPI VOID KeQueryTickCount(PLARGE_INTEGER CurrentCount);
NTKERNELAPI ULONG KeQueryTimeIncrement(VOID);
NTKERNELAPI LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency);
NTKERNELAPI VOID KeStallExecutionProcessor(ULONG MicroSeconds);

/* Queues: packets first in first out, waiting threads last in first out, and never more of them running than Count. */

NTKERNELAPI VOID KeInitializeQueue(PRKQUEUE Queue, ULONG Count);
NTKERNELAPI LONG KeReadStateQueue(PRKQUEUE Queue);
NTKERNELAPI LONG KeInsertQueue(PRKQUEUE Queue, PLIST_ENTRY Entry);
NTKERNELAPI LONG KeInsertHeadQueue(PRKQUEUE Queue, PLIST_ENTRY Entry);
NTKERNELAPI PLIST_ENTRY KeRemoveQueue(PRKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout);
NTKERNELAPI ULONG KeRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PLIST_ENTRY *EntryArray, ULONG Count);
NTKERNELAPI PLIST_ENTRY KeRundownQueue(PRKQUEUE Queue);

/*
 * Waiting without a thread. A registered block stays on the object until the object satisfies it once; then a packet
 * goes to a queue (WaitNotification) or a DPC to the current processor (WaitDpc). Registering returns STATUS_PENDING,
 * or STATUS_SUCCESS when the object was signaled already, or STATUS_INVALID_PARAMETER_1 for a mutant, which only a
 * thread can own.
 */

typedef struct _KOBJECT_NOTIFICATION {
    KWAIT_BLOCK WaitBlock;
    LIST_ENTRY QueueListEntry;
} KOBJECT_NOTIFICATION, *PKOBJECT_NOTIFICATION;

typedef enum _KNOTIFICATION_CANCEL_RESULT {
    NotificationCancelled,
    NotificationSignaled,
    NotificationRemovedFromQueue
} KNOTIFICATION_CANCEL_RESULT;

NTKERNELAPI NTSTATUS KeRegisterObjectNotification(PVOID Object, PKQUEUE Queue, PKOBJECT_NOTIFICATION Notification);
NTKERNELAPI KNOTIFICATION_CANCEL_RESULT KeCancelObjectNotification(PKOBJECT_NOTIFICATION Notification,
                                                                   BOOLEAN RemoveSignaledPacket);
NTKERNELAPI NTSTATUS KeRegisterObjectDpc(PVOID Object, PRKDPC Dpc, PKWAIT_BLOCK WaitBlock);
NTKERNELAPI BOOLEAN KeCancelObjectDpc(PKWAIT_BLOCK WaitBlock);

INTERLOCK_END

#endif
