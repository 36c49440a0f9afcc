/*
 * ke.h: the kernel. Processors and IRQL, spinlocks, DPCs, APCs, IPIs, threads, waiting, dispatcher objects. Names,
 * sizes and member offsets are those of 64-bit Windows 10.
 *
 * Initializers allocate nothing and run at any IRQL. Signals need IRQL <= DISPATCH_LEVEL, waits with a timeout other
 * than 0 need IRQL <= APC_LEVEL. Breaking a rule is the bugcheck that Windows has for it. Timeouts are in 100 ns:
 * negative ones are relative, NULL waits forever, 0 polls.
 */
#ifndef INTERLOCK_KE_H
#define INTERLOCK_KE_H

#include <interlock/bugcodes.h>
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
#define IO_CD_ROM_INCREMENT 1
#define IO_DISK_INCREMENT 1
#define IO_PARALLEL_INCREMENT 1
#define IO_VIDEO_INCREMENT 1
#define IO_MAILSLOT_INCREMENT 2
#define IO_NAMED_PIPE_INCREMENT 2
#define IO_NETWORK_INCREMENT 2
#define IO_SERIAL_INCREMENT 2
#define IO_KEYBOARD_INCREMENT 6
#define IO_MOUSE_INCREMENT 6
#define IO_SOUND_INCREMENT 8
#define MUTANT_INCREMENT 1
#define SEMAPHORE_INCREMENT 1
#define ALERT_INCREMENT 2

#define MAXIMUM_WAIT_OBJECTS 64
#define THREAD_WAIT_OBJECTS 3

/* Kinds of kernel objects: the low six bits of DISPATCHER_HEADER.Type, and the Type bytes of other objects. */

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

/* Bits of DISPATCHER_HEADER.Type above the kind: the object is locked, wait blocks are linked to it. */
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

/* States of a wait block (Windows Internals, table 8-28). */
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
 * The header of every object that can be waited on. Its first eight bytes are one atomic word, explained in
 * src/ke/dispatch.h. The Type byte selects the structure of its first four (Windows Internals, table 8-29).
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
        __extension__ struct { /* executive timers (EX_TIMER) */
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

/*
 * Processors and IRQL. Processors are virtual: as many as the host has, or INTERLOCK_PROCESSORS, in groups of 64.
 */

#define ALL_PROCESSOR_GROUPS 0xffff
#define MAXIMUM_PROC_PER_GROUP 64
#define INTERLOCK_MAXIMUM_PROCESSORS 2560
#define INVALID_PROCESSOR_INDEX 0xffffffff

/* Returns the calling thread's IRQL. Any IRQL. Differs: the IRQL belongs to the thread. Since NT 3.1. */
NTKERNELAPI KIRQL KeGetCurrentIrql(VOID);

/* Raises the IRQL and returns the old one; KeRaiseIrql is a macro over it. A lower level is a bugcheck. Differs: from
   DISPATCH_LEVEL on, the thread owns a virtual processor. Since NT 3.5. */
NTKERNELAPI KIRQL KfRaiseIrql(KIRQL NewIrql);

/* Lowers the IRQL and runs the DPCs and APCs that the old level held back; KeLowerIrql is a macro over it. Since NT
   3.5. */
NTKERNELAPI VOID KfLowerIrql(KIRQL NewIrql);

/* Raises the IRQL to DISPATCH_LEVEL or SYNCH_LEVEL (12) and returns the old one. Since NT 4.0. */
NTKERNELAPI KIRQL KeRaiseIrqlToDpcLevel(VOID);
NTKERNELAPI KIRQL KeRaiseIrqlToSynchLevel(VOID);
#define KeRaiseIrql(NewIrql, OldIrql) (*(OldIrql) = KfRaiseIrql(NewIrql))
#define KeLowerIrql(NewIrql) KfLowerIrql(NewIrql)

/* Returns the number of the current processor. Stable at DISPATCH_LEVEL and above. Since NT 3.1. */
NTKERNELAPI ULONG KeGetCurrentProcessorNumber(VOID);

/* Returns the index of the current processor over all groups; stores its group and number in ProcNumber, which may be
   NULL. Since 7. */
NTKERNELAPI ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);

/* Returns the index of the current processor over all groups. Since 7. */
FORCEINLINE ULONG KeGetCurrentProcessorIndex(VOID)
{
    return KeGetCurrentProcessorNumberEx(NULL);
}

/* Returns the number of processors in group 0; stores their mask in ActiveProcessors, which may be NULL. Since
   Vista. */
NTKERNELAPI ULONG KeQueryActiveProcessorCount(PKAFFINITY ActiveProcessors);

/* Returns the number of processors in a group, or in all of them for ALL_PROCESSOR_GROUPS; 0 if there is no such group.
   Since 7. */
NTKERNELAPI ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);

/* Returns the mask of the processors in group 0. Since 2000. */
NTKERNELAPI KAFFINITY KeQueryActiveProcessors(VOID);

/* Returns the same number as KeQueryActiveProcessorCount or KeQueryActiveProcessorCountEx: processors are never added.
   Since Vista, 7. */
NTKERNELAPI ULONG KeQueryMaximumProcessorCount(VOID);
NTKERNELAPI ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber);

/* Returns the number of groups of 64 processors. Since 7. */
NTKERNELAPI USHORT KeQueryActiveGroupCount(VOID);
NTKERNELAPI USHORT KeQueryMaximumGroupCount(VOID);

/* Returns the mask of the processors in a group; 0 if there is no such group. Since 7. */
NTKERNELAPI KAFFINITY KeQueryGroupAffinity(USHORT GroupNumber);

/* Stores the group and number of the processor with this index. Returns STATUS_INVALID_PARAMETER if the index is too
   large. Since 7. */
NTKERNELAPI NTSTATUS KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber);

/* Returns the index of a processor; INVALID_PROCESSOR_INDEX if there is no such processor. Since 7. */
NTKERNELAPI ULONG KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber);

/* Restricts the calling thread to some processors of group 0 until it reverts. The Ex form returns the previous system
   affinity, 0 if there was none. Differs: applies to virtual processors; the host's scheduler is not affected. Since NT
   3.5, Vista. */
NTKERNELAPI VOID KeSetSystemAffinityThread(KAFFINITY Affinity);
NTKERNELAPI KAFFINITY KeSetSystemAffinityThreadEx(KAFFINITY Affinity);

/* Restores the thread's own affinity, or with the Ex form the one that KeSetSystemAffinityThreadEx returned. Since NT
   3.5, Vista. */
NTKERNELAPI VOID KeRevertToUserAffinityThread(VOID);
NTKERNELAPI VOID KeRevertToUserAffinityThreadEx(KAFFINITY Affinity);

/* Restricts the calling thread to some processors of one group; stores the previous affinity in PreviousAffinity, which
   may be NULL. A mask without existing processors changes nothing. Differs: applies to virtual processors; the host's
   scheduler is not affected. Since 7. */
NTKERNELAPI VOID KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity, PGROUP_AFFINITY PreviousAffinity);

/* Restores the affinity that KeSetSystemGroupAffinityThread stored. Since 7. */
NTKERNELAPI VOID KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity);

/* Memory nodes. The host's nodes and their processors; the first query reads them from sysfs. */

/* Returns the highest node number; 0 if there is only one node. Since 7. */
NTKERNELAPI USHORT KeQueryHighestNodeNumber(VOID);

/* Returns the node of the current processor. Since 7. */
NTKERNELAPI USHORT KeGetCurrentNodeNumber(VOID);

/* Stores the processors of a node in its first group, and their number; either pointer may be NULL. Zeros if
   there is no such node. Since 7. */
NTKERNELAPI VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, PGROUP_AFFINITY Affinity, PUSHORT Count);

/* Stores the processors of a node in all groups, and how many elements that needs. Returns STATUS_BUFFER_TOO_SMALL if
   there are too few, STATUS_INVALID_PARAMETER for a number above the highest. Since 10. */
NTKERNELAPI NTSTATUS KeQueryNodeActiveAffinity2(USHORT NodeNumber, PGROUP_AFFINITY GroupAffinities,
                                                USHORT GroupAffinitiesCount, PUSHORT GroupAffinitiesRequired);

/* Returns the number of processors of a node; 0 if there is no such node. Since 10, 7. */
NTKERNELAPI USHORT KeQueryNodeActiveProcessorCount(USHORT NodeNumber);
NTKERNELAPI USHORT KeQueryNodeMaximumProcessorCount(USHORT NodeNumber);

/* Processor changes. */

typedef enum _KE_PROCESSOR_CHANGE_NOTIFY_STATE {
    KeProcessorAddStartNotify = 0,
    KeProcessorAddCompleteNotify,
    KeProcessorAddFailureNotify
} KE_PROCESSOR_CHANGE_NOTIFY_STATE;

typedef struct _KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT {
    KE_PROCESSOR_CHANGE_NOTIFY_STATE State;
    ULONG NtNumber;
    NTSTATUS Status;
    PROCESSOR_NUMBER ProcNumber;
} KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, *PKE_PROCESSOR_CHANGE_NOTIFY_CONTEXT;

typedef VOID PROCESSOR_CALLBACK_FUNCTION(PVOID CallbackContext, PKE_PROCESSOR_CHANGE_NOTIFY_CONTEXT ChangeContext,
                                         PNTSTATUS OperationStatus);
typedef PROCESSOR_CALLBACK_FUNCTION *PPROCESSOR_CALLBACK_FUNCTION;

#define KE_PROCESSOR_CHANGE_ADD_EXISTING 1

/* Registers a routine for processors that are added. With KE_PROCESSOR_CHANGE_ADD_EXISTING it is called at once for
 * those that exist, first as starting, then as complete; if it refuses one, the registration fails. Returns the handle
 * that deregisters it; NULL on failure. Differs: no processor is added later. Since Vista. */
NTKERNELAPI PVOID KeRegisterProcessorChangeCallback(PPROCESSOR_CALLBACK_FUNCTION CallbackFunction,
                                                    PVOID CallbackContext, ULONG Flags);

/* Ends a registration. CallbackHandle is the handle that KeRegisterProcessorChangeCallback returned. Since Vista. */
NTKERNELAPI VOID KeDeregisterProcessorChangeCallback(PVOID CallbackHandle);

/* Calls that need much stack, floating-point and extended state. */

#define KERNEL_STACK_SIZE 0x6000
#define KERNEL_LARGE_STACK_SIZE 0x12000
#define MAXIMUM_EXPANSION_SIZE (KERNEL_LARGE_STACK_SIZE - 0x800)

typedef VOID EXPAND_STACK_CALLOUT(PVOID Parameter);
typedef EXPAND_STACK_CALLOUT *PEXPAND_STACK_CALLOUT;

/* Calls a routine with at least Size bytes of stack. Returns STATUS_INVALID_PARAMETER_3 above MAXIMUM_EXPANSION_SIZE,
   STATUS_NO_MEMORY if the thread's stack has less; the routine is then not called. Up to APC_LEVEL, without Wait up to
   DISPATCH_LEVEL. Differs: the stack is the host's and is not expanded. Since Server 2003, Vista. */
NTKERNELAPI NTSTATUS KeExpandKernelStackAndCallout(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size);
NTKERNELAPI NTSTATUS KeExpandKernelStackAndCalloutEx(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size,
                                                     BOOLEAN Wait, PVOID Context);

typedef struct _KFLOATING_SAVE {
    ULONG Dummy;
} KFLOATING_SAVE, *PKFLOATING_SAVE;

/* Saves and restores the floating-point state. Restoring returns STATUS_UNSUCCESSFUL for state that was not saved at
 * this IRQL. Differs: the host saves the state itself. Since NT 4.0. */
NTKERNELAPI NTSTATUS KeSaveFloatingPointState(PKFLOATING_SAVE FloatSave);
NTKERNELAPI NTSTATUS KeRestoreFloatingPointState(PKFLOATING_SAVE FloatSave);

typedef struct _XSTATE_CONTEXT {
    ULONG64 Mask;
    ULONG Length;
    ULONG Reserved1;
    struct _XSAVE_AREA *Area;
    PVOID Buffer;
} XSTATE_CONTEXT, *PXSTATE_CONTEXT;

typedef struct _XSTATE_SAVE {
    struct _XSTATE_SAVE *Prev;
    struct _KTHREAD *Thread;
    UCHAR Level;
    XSTATE_CONTEXT XStateContext;
} XSTATE_SAVE, *PXSTATE_SAVE;

C_ASSERT(sizeof(XSTATE_SAVE) == 56);

#define XSTATE_LEGACY_FLOATING_POINT 0
#define XSTATE_LEGACY_SSE 1
#define XSTATE_GSSE 2
#define XSTATE_AVX XSTATE_GSSE
#define XSTATE_MASK_LEGACY_FLOATING_POINT (1ULL << XSTATE_LEGACY_FLOATING_POINT)
#define XSTATE_MASK_LEGACY_SSE (1ULL << XSTATE_LEGACY_SSE)
#define XSTATE_MASK_LEGACY (XSTATE_MASK_LEGACY_FLOATING_POINT | XSTATE_MASK_LEGACY_SSE)
#define XSTATE_MASK_GSSE (1ULL << XSTATE_GSSE)
#define XSTATE_MASK_AVX XSTATE_MASK_GSSE

/* Saves and restores extended state. Restoring on another thread or at another IRQL is a bugcheck. Differs: the host
   saves the state itself. Since 7. */
NTKERNELAPI NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave);
NTKERNELAPI VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave);

/* Returns nonzero if a DPC should end soon: other DPCs or threads wait for its processor. At DISPATCH_LEVEL. Since
   Vista. */
NTKERNELAPI ULONG KeShouldYieldProcessor(VOID);

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

/* Stops the system with a bugcheck code and, in the Ex form, four parameters. Does not return. Differs: writes code,
   parameters and stack to standard error, then aborts the process. Since NT 3.1. */
NTKERNELAPI DECLSPEC_NORETURN VOID KeBugCheck(ULONG BugCheckCode);
NTKERNELAPI DECLSPEC_NORETURN VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                                ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                                ULONG_PTR BugCheckParameter4);

/* Registers a routine that a bugcheck calls. Returns FALSE if the record is already registered. Since NT 3.5. */
NTKERNELAPI BOOLEAN KeRegisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord,
                                               PKBUGCHECK_CALLBACK_ROUTINE CallbackRoutine, PVOID Buffer,
                                               ULONG Length, PUCHAR Component);

/* Removes the callback. Returns FALSE if it was not registered. Since NT 3.5. */
NTKERNELAPI BOOLEAN KeDeregisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord);

/* Spinlocks. */

/* Initializes a free spinlock. Zeroed memory is one too. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock);

/* Raises to DISPATCH_LEVEL or SYNCH_LEVEL, spins until the lock is acquired, and returns the old IRQL.
   KeAcquireSpinLock is a macro over the first. Since NT 4.0. */
NTKERNELAPI KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);
NTKERNELAPI KIRQL KeAcquireSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock);

/* Spins until the lock is acquired, for a caller at DISPATCH_LEVEL or above. Since NT 3.1. */
NTKERNELAPI VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);

/* Releases the lock and lowers the IRQL to NewIrql. Since NT 3.1. */
NTKERNELAPI VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);

/* Releases the lock and leaves the IRQL alone. Since NT 3.1. */
NTKERNELAPI VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);

/* Acquires the lock if it is free, for a caller at DISPATCH_LEVEL or above; never spins. Returns TRUE if it did. Since
   Server 2003. */
NTKERNELAPI BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);

/* Returns TRUE if the lock is free. A hint for spin loops. Since Server 2003. */
NTKERNELAPI BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock);
#define KeAcquireSpinLock(SpinLock, OldIrql) (*(OldIrql) = KeAcquireSpinLockRaiseToDpc(SpinLock))

/* Acquires and releases the lock in a DPC routine that may be threaded, and so may run below DISPATCH_LEVEL. Since Vista. */
FORCEINLINE KIRQL KeAcquireSpinLockForDpc(PKSPIN_LOCK SpinLock)
{
    return KeAcquireSpinLockRaiseToDpc(SpinLock);
}
FORCEINLINE VOID KeReleaseSpinLockForDpc(PKSPIN_LOCK SpinLock, KIRQL OldIrql)
{
    KeReleaseSpinLock(SpinLock, OldIrql);
}

/*
 * Queued spinlocks. FIFO; each waiter spins on its own queue entry. The entry is in a handle on the caller's stack, or
 * for the system's numbered locks in the processor's LockQueue array.
 */

/* Bits in the Lock pointer of an entry. */
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

/* Raises to DISPATCH_LEVEL or SYNCH_LEVEL, acquires one of the system's numbered locks in FIFO order, and returns the
   old IRQL. Since 2000. */
NTKERNELAPI KIRQL KeAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number);
NTKERNELAPI KIRQL KeAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number);

/* Acquires the numbered lock if it is free and stores the old IRQL. Otherwise returns FALSE and leaves the IRQL alone.
   Since 2000. */
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql);
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLockRaiseToSynch(KSPIN_LOCK_QUEUE_NUMBER Number, PKIRQL OldIrql);

/* Hands the numbered lock to the next waiter and lowers the IRQL. Since 2000. */
NTKERNELAPI VOID KeReleaseQueuedSpinLock(KSPIN_LOCK_QUEUE_NUMBER Number, KIRQL OldIrql);

/* Acquires the lock of an entry of the processor's LockQueue in FIFO order, for a caller at DISPATCH_LEVEL or above.
   Since 2000. */
NTKERNELAPI VOID KeAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);

/* Acquires the lock of that entry if it is free. Returns TRUE if it did. Since 2000. */
NTKERNELAPI LOGICAL KeTryToAcquireQueuedSpinLockAtDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);

/* Hands the lock of that entry to the next waiter and leaves the IRQL alone. Since 2000. */
NTKERNELAPI VOID KeReleaseQueuedSpinLockFromDpcLevel(PKSPIN_LOCK_QUEUE LockQueue);

/* Raises to DISPATCH_LEVEL or SYNCH_LEVEL and acquires a spinlock in FIFO order, queued by a handle on the caller's
   stack. Since XP. */
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockRaiseToSynch(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);

/* Hands the lock to the next waiter and lowers the IRQL to the one in the handle. Since XP. */
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle);

/* Acquires the lock by a handle, for a caller at DISPATCH_LEVEL or above. Since XP. */
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);

/* Hands the lock to the next waiter and leaves the IRQL alone. Since XP. */
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle);

/* Acquires and releases the lock in a DPC routine, threaded or not: raises the IRQL only if it is below DISPATCH_LEVEL.
   Since Vista. */
NTKERNELAPI VOID KeAcquireInStackQueuedSpinLockForDpc(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
NTKERNELAPI VOID KeReleaseInStackQueuedSpinLockForDpc(PKLOCK_QUEUE_HANDLE LockHandle);

/* Interrupts. Devices are simulated: KeFireInterrupt takes their place. io.h connects and disconnects interrupts. */

typedef BOOLEAN KSERVICE_ROUTINE(struct _KINTERRUPT *Interrupt, PVOID ServiceContext);
typedef KSERVICE_ROUTINE *PKSERVICE_ROUTINE;
typedef BOOLEAN KSYNCHRONIZE_ROUTINE(PVOID SynchronizeContext);
typedef KSYNCHRONIZE_ROUTINE *PKSYNCHRONIZE_ROUTINE;
typedef enum _KINTERRUPT_MODE { LevelSensitive, Latched } KINTERRUPT_MODE;

/* Raises to the interrupt's SynchronizeIrql, acquires its lock, and returns the old IRQL. Since XP. */
NTKERNELAPI KIRQL KeAcquireInterruptSpinLock(PKINTERRUPT Interrupt);

/* Releases the interrupt's lock and lowers the IRQL. Since XP. */
NTKERNELAPI VOID KeReleaseInterruptSpinLock(PKINTERRUPT Interrupt, KIRQL OldIrql);

/* Runs a routine at the interrupt's SynchronizeIrql, under its lock. Returns what the routine returns. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeSynchronizeExecution(PKINTERRUPT Interrupt, PKSYNCHRONIZE_ROUTINE SynchronizeRoutine,
                                           PVOID SynchronizeContext);

/* Makes the simulated device interrupt a processor, which runs the service routines. Returns TRUE if one of them
   claimed it. A caller at or above the interrupt's level does not wait and gets FALSE. Only in Interlock. */
NTKERNELAPI BOOLEAN KeFireInterrupt(PKINTERRUPT Interrupt, ULONG Processor);

/* Deferred procedure calls and interprocessor interrupts. */

typedef ULONG_PTR KIPI_BROADCAST_WORKER(ULONG_PTR Argument);
typedef KIPI_BROADCAST_WORKER *PKIPI_BROADCAST_WORKER;

/* Initializes a DPC. Its routine runs at DISPATCH_LEVEL, or for a threaded DPC at PASSIVE_LEVEL on a thread of the
   processor. Since NT 3.1, Vista. */
NTKERNELAPI VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);
NTKERNELAPI VOID KeInitializeThreadedDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);

/* Queues the DPC with two arguments, at any IRQL. Returns FALSE if it is already queued; the first arguments stay.
   Since NT 3.1. */
NTKERNELAPI BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);

/* Removes the DPC from its queue. Returns FALSE if it was not queued. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc);

/* Sets where in the queue the DPC goes and whether its processor is interrupted for it. Since NT 4.0. */
NTKERNELAPI VOID KeSetImportanceDpc(PRKDPC Dpc, KDPC_IMPORTANCE Importance);

/* Sets the processor that runs the DPC, by index or by group and number. A bad index is a bugcheck; the Ex form returns
   STATUS_INVALID_PARAMETER. Since NT 4.0, 7. */
NTKERNELAPI VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CCHAR Number);
NTKERNELAPI NTSTATUS KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber);

/* Blocks until the DPCs queued on all processors have run. At PASSIVE_LEVEL. Since XP. */
NTKERNELAPI VOID KeFlushQueuedDpcs(VOID);

/* Runs a DPC routine on every processor and blocks until each has called KeSignalCallDpcDone. Below DISPATCH_LEVEL.
   Since XP. */
NTKERNELAPI VOID KeGenericCallDpc(PKDEFERRED_ROUTINE Routine, PVOID Context);

/* Ends the routine's work on its processor. Since XP. */
NTKERNELAPI VOID KeSignalCallDpcDone(PVOID SystemArgument1);

/* Synchronizes all processors at a barrier inside the routine. Returns TRUE on one of them. Since XP. */
NTKERNELAPI LOGICAL KeSignalCallDpcSynchronize(PVOID SystemArgument2);

/* Gathers all processors, then runs the function once on each at IPI_LEVEL. Returns the caller's result when all are
   done. Since Server 2003. */
NTKERNELAPI ULONG_PTR KeIpiGenericCall(PKIPI_BROADCAST_WORKER BroadcastFunction, ULONG_PTR Context);

/*
 * Device queues. A queue of requests for a device that serves one at a time. Busy says that the device has one: then an
 * entry is queued, otherwise the caller serves it at once. At DISPATCH_LEVEL or below.
 */

typedef struct _KDEVICE_QUEUE_ENTRY {
    LIST_ENTRY DeviceListEntry;
    ULONG SortKey;
    BOOLEAN Inserted;
} KDEVICE_QUEUE_ENTRY, *PKDEVICE_QUEUE_ENTRY, *PRKDEVICE_QUEUE_ENTRY;

typedef struct _KDEVICE_QUEUE {
    CSHORT Type;
    CSHORT Size;
    LIST_ENTRY DeviceListHead;
    KSPIN_LOCK Lock;
    __extension__ union {
        BOOLEAN Busy;
        __extension__ struct {
            LONG64 Reserved : 8;
            LONG64 Hint : 56;
        };
    };
} KDEVICE_QUEUE, *PKDEVICE_QUEUE, *PRKDEVICE_QUEUE;

/* Initializes a queue that is empty and not busy. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeDeviceQueue(PKDEVICE_QUEUE DeviceQueue);

/* Appends the entry if the queue is busy. Otherwise makes it busy and returns FALSE: the caller serves the entry. Since
   NT 3.1. */
NTKERNELAPI BOOLEAN KeInsertDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry);

/* The same in ascending order of the key, after entries with an equal one. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeInsertByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry,
                                             ULONG SortKey);

/* Removes the first entry. NULL: there is none, and the queue is no longer busy. DEVICE_QUEUE_NOT_BUSY if it was not. Since
   NT 3.1. */
NTKERNELAPI PKDEVICE_QUEUE_ENTRY KeRemoveDeviceQueue(PKDEVICE_QUEUE DeviceQueue);

/* Removes the first entry whose key is not below SortKey; if there is none, the first of all. The second form returns NULL
   if the queue is not busy. Since NT 3.1, XP. */
NTKERNELAPI PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey);
NTKERNELAPI PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueueIfBusy(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey);

/* Removes an entry. Returns FALSE if it is not in the queue. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeRemoveEntryDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry);

/* Asynchronous procedure calls. Critical and guarded regions disable them. */

/* Initializes a special kernel, normal kernel or user APC for a thread. Differs: all environments are the same: threads
   never attach to another process. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeApc(PRKAPC Apc, PRKTHREAD Thread, KAPC_ENVIRONMENT Environment,
                                 PKKERNEL_ROUTINE KernelRoutine, PKRUNDOWN_ROUTINE RundownRoutine,
                                 PKNORMAL_ROUTINE NormalRoutine, KPROCESSOR_MODE ApcMode, PVOID NormalContext);

/* Queues the APC and ends a wait that must run it. Returns FALSE if the APC is already queued or the thread has ended.
   Differs: a running thread runs it when it next enters the library. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeInsertQueueApc(PRKAPC Apc, PVOID SystemArgument1, PVOID SystemArgument2, KPRIORITY Increment);

/* Removes the APC. Returns FALSE if it was not queued. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeRemoveQueueApc(PRKAPC Apc);

/* Disables and enables normal kernel APCs and suspension; the calls nest. Leaving delivers what was pending. Since NT
   3.1. */
NTKERNELAPI VOID KeEnterCriticalRegion(VOID);
NTKERNELAPI VOID KeLeaveCriticalRegion(VOID);

/* Disables and enables all kernel APCs; the calls nest. Since Server 2003. */
NTKERNELAPI VOID KeEnterGuardedRegion(VOID);
NTKERNELAPI VOID KeLeaveGuardedRegion(VOID);

/* Returns TRUE in a critical or guarded region. Ignores the IRQL. Since XP. */
NTKERNELAPI BOOLEAN KeAreApcsDisabled(VOID);

/* Returns TRUE in a guarded region or at APC_LEVEL and above. Since Server 2003. */
NTKERNELAPI BOOLEAN KeAreAllApcsDisabled(VOID);

/* Threads. */

/* Returns the object of the calling thread, without a reference. Any IRQL. Differs: a thread of the host is adopted at
   its first call. Since NT 3.1. */
NTKERNELAPI PKTHREAD KeGetCurrentThread(VOID);

/* Sleeps. Returns STATUS_SUCCESS; an alertable sleep may return STATUS_ALERTED or STATUS_USER_APC. Since NT 3.1. */
NTKERNELAPI NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Interval);

/* Alerts a thread in a processor mode and ends an alertable wait. Returns TRUE if it was already alerted. Since NT
   3.1. */
NTKERNELAPI BOOLEAN KeAlertThread(PKTHREAD Thread, KPROCESSOR_MODE AlertMode);

/* Returns TRUE if the calling thread was alerted in this mode, and clears the alert. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeTestAlertThread(KPROCESSOR_MODE AlertMode);

/* Alerts the thread and resumes it once. Returns the previous suspend count. Differs: not exported by Windows. Since NT
   3.1. */
NTKERNELAPI ULONG KeAlertResumeThread(PKTHREAD Thread);

/* Suspends the thread as soon as a normal kernel APC may run. Returns the previous suspend count; raises
   STATUS_SUSPEND_COUNT_EXCEEDED above 127. Differs: not exported by Windows; a signal of the host stops a running
   thread, which then runs no APCs; raises STATUS_ACCESS_DENIED if the signal does not reach it. Since NT 3.1. */
NTKERNELAPI ULONG KeSuspendThread(PKTHREAD Thread);

/* Removes one suspension. Returns the previous suspend count. Differs: not exported by Windows. Since NT 3.1. */
NTKERNELAPI ULONG KeResumeThread(PKTHREAD Thread);

/* Sets the current priority, 1 to 31. Returns the previous one. Differs: the host's scheduler follows where the process
   has the right. Since NT 3.1. */
NTKERNELAPI KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority);

/* Sets the base priority relative to the process. Returns the previous increment. Differs: the host's scheduler follows
   where the process has the right. Since NT 3.1. */
NTKERNELAPI LONG KeSetBasePriorityThread(PRKTHREAD Thread, LONG Increment);

/* Returns the current priority, boosts included. Differs: boosts decay when the priority is read. Since NT 3.5. */
NTKERNELAPI KPRIORITY KeQueryPriorityThread(PRKTHREAD Thread);

/* Disables or enables priority boosts. Returns the previous setting. Since NT 4.0. */
NTKERNELAPI BOOLEAN KeSetDisableBoostThread(PKTHREAD Thread, BOOLEAN Disable);

/* Sets whether the thread's stack may be paged out while it waits. Returns the previous setting. Differs: stored,
   without effect. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeSetKernelStackSwapEnable(BOOLEAN Enable);

/* Waiting. */

/* Blocks until the object is signaled. Returns STATUS_SUCCESS, STATUS_ABANDONED, STATUS_TIMEOUT, STATUS_ALERTED or
   STATUS_USER_APC. Since NT 3.1. */
NTKERNELAPI NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                           BOOLEAN Alertable, PLARGE_INTEGER Timeout);

/* Blocks until any object (the lowest index wins) or all of up to 64 are signaled; a wait for all acquires them
   atomically. More than three objects need WaitBlockArray. Since NT 3.1. */
NTKERNELAPI NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                              KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                              PLARGE_INTEGER Timeout, PKWAIT_BLOCK WaitBlockArray);
#define KeWaitForMutexObject KeWaitForSingleObject

/* How many entries the WaitBlockArray of a wait for Count objects has. */
#define KE_MAXIMUM_MANY_OBJECTS 65535
#define KE_MANY_WAIT_BLOCKS(Count) ((Count) + (Count) / 10 + 6)

/* KeWaitForMultipleObjects for up to 65,535 objects. WaitBlockArray has KE_MANY_WAIT_BLOCKS(Count) entries; nothing is
   allocated. Returns STATUS_WAIT_0 or STATUS_ABANDONED_WAIT_0, with the index of the object in *Index (0 after a wait for
   all), or another status of a wait. Index may be NULL. More objects are a bugcheck. A wait for all of more than 64 objects
   that are shared between processes is STATUS_NOT_SUPPORTED. Only in Interlock. */
NTKERNELAPI NTSTATUS KeWaitForManyObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                          KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                          PKWAIT_BLOCK WaitBlockArray, PULONG Index);

/* Events. */

/* Initializes a notification or synchronization event. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);

/* Signals the event and returns its previous state. With Wait TRUE the caller's next call must be a wait. Since NT
   3.1. */
NTKERNELAPI LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);

/* Signals a synchronization event, boosts the released thread to the caller's priority, and stores that thread in
   *Thread. Since 2000. */
NTKERNELAPI VOID KeSetEventBoostPriority(PRKEVENT Event, PKTHREAD *Thread);

/* Resets the event and returns its previous state. Since NT 3.1. */
NTKERNELAPI LONG KeResetEvent(PRKEVENT Event);

/* Resets the event as KeResetEvent does, without returning its previous state. Since NT 3.5. */
NTKERNELAPI VOID KeClearEvent(PRKEVENT Event);

/* Releases the threads that wait at this moment (one for a synchronization event), leaves the event reset, and returns
   its previous state. Since NT 3.1. */
NTKERNELAPI LONG KePulseEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);

/* Returns nonzero if the event is signaled. Since NT 3.1. */
NTKERNELAPI LONG KeReadStateEvent(PRKEVENT Event);

/* Event pairs. Set one event and wait for the other, atomically. Windows does not export them. */

/* Initializes a pair of synchronization events, low and high. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeEventPair(PKEVENT_PAIR EventPair);

/* Sets one event of the pair and returns its previous state. Since NT 3.1. */
NTKERNELAPI LONG KeSetHighEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI LONG KeSetLowEventPair(PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait);

/* Blocks until one event of the pair is signaled. Since NT 3.1. */
NTKERNELAPI NTSTATUS KeWaitForHighEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                            PLARGE_INTEGER Timeout);
NTKERNELAPI NTSTATUS KeWaitForLowEventPair(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout);

/* Sets one event and blocks on the other, atomically. Since NT 3.1. */
NTKERNELAPI NTSTATUS KeSetHighWaitLowThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode);
NTKERNELAPI NTSTATUS KeSetLowWaitHighThread(PKEVENT_PAIR EventPair, KPROCESSOR_MODE WaitMode);

/* Gates. Synchronization events for locks. The boosting signal makes a locking gate, the plain one a signaling gate. */

/* Initializes a gate, a synchronization event for locks. Since Server 2003. */
NTKERNELAPI VOID KeInitializeGate(PKGATE Gate);

/* Lets one thread through: one that waits, or else the next one that would have to wait. Since Server 2003. */
NTKERNELAPI VOID KeSignalGate(PKGATE Gate);

/* Lets one thread through and boosts it to the caller's priority. Since Server 2003. */
NTKERNELAPI VOID KeSignalGateBoostPriority(PKGATE Gate);

/* Blocks, not alertably, until the gate lets this thread through. Differs: returns the status of the wait. Since Server
   2003. */
NTKERNELAPI NTSTATUS KeWaitForGate(PKGATE Gate, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode);

/* Mutants and mutexes. */

/* Initializes a mutant, owned by the caller if InitialOwner is TRUE. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeMutant(PRKMUTANT Mutant, BOOLEAN InitialOwner);

/* Initializes a kernel mutex, which disables normal kernel APCs while it is owned. Level is ignored. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level);

/* Releases one acquire and returns the previous count. Raises STATUS_MUTANT_NOT_OWNED if the caller is not the owner.
   Differs: Abandoned TRUE is for the owner only; releasing an abandoned mutant raises STATUS_MUTANT_NOT_OWNED, not
   STATUS_ABANDONED. Since NT 3.1. */
NTKERNELAPI LONG KeReleaseMutant(PRKMUTANT Mutant, KPRIORITY Increment, BOOLEAN Abandoned, BOOLEAN Wait);

/* Releases one acquire of a mutex; returns 0 when it becomes free. Raises STATUS_MUTANT_NOT_OWNED if the caller is not
   the owner. Differs: releasing an abandoned mutex raises STATUS_MUTANT_NOT_OWNED. Since NT 3.1. */
NTKERNELAPI LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait);

/* Returns 1 if it is free, 0 if it is owned, less if it is owned recursively. Since NT 3.1. */
NTKERNELAPI LONG KeReadStateMutant(PRKMUTANT Mutant);
NTKERNELAPI LONG KeReadStateMutex(PRKMUTEX Mutex);

/* Semaphores. */

/* Initializes a semaphore with a count and a limit. Since NT 3.1. */
NTKERNELAPI VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);

/* Adds Adjustment to the count and returns the previous one. Raises STATUS_SEMAPHORE_LIMIT_EXCEEDED and changes nothing
   if the limit would be exceeded. Since NT 3.1. */
NTKERNELAPI LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait);

/* Returns the count: how many more waits are satisfied at once. 0: it is not signaled. Since NT 3.1. */
NTKERNELAPI LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore);

/* Timers. */

/* Initializes a notification timer, or with the Ex form a timer of either type. Since NT 3.1, NT 4.0. */
NTKERNELAPI VOID KeInitializeTimer(PKTIMER Timer);
NTKERNELAPI VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type);

/* Sets the timer: a due time, relative if negative, a DPC or NULL, a period and a tolerable delay in milliseconds.
   Returns TRUE if it was already set; that setting is replaced. Differs: a timer due in a second or more may be late by
   one tick of the host; a DPC without a target processor runs on the clock thread, so a long one delays other timers.
   Since NT 3.1, NT 4.0, 7. */
NTKERNELAPI BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc);
NTKERNELAPI BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc);
NTKERNELAPI BOOLEAN KeSetCoalescableTimer(PKTIMER Timer, LARGE_INTEGER DueTime, ULONG Period, ULONG TolerableDelay,
                                          PKDPC Dpc);

/* Cancels the timer. Returns FALSE if it was not set. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeCancelTimer(PKTIMER Timer);

/* Returns TRUE if the timer is signaled. Since NT 3.1. */
NTKERNELAPI BOOLEAN KeReadStateTimer(PKTIMER Timer);

/* Time. */

/* Stores the UTC time in 100 ns since 1601. Differs: both have the resolution of the host's clock. Since NT 3.1, 8. */
NTKERNELAPI VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime);
NTKERNELAPI VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime);

/* Returns the time in 100 ns since the machine started. The precise form stores the performance counter too. Differs:
   both have the resolution of the host's clock, which stops while the machine sleeps. Since 2000, 8.1. */
NTKERNELAPI ULONGLONG KeQueryInterruptTime(VOID);
NTKERNELAPI ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp);

/* Returns the interrupt time without the time that the machine slept. Differs: as KeQueryInterruptTime. Since 7, 10. */
NTKERNELAPI ULONGLONG KeQueryUnbiasedInterruptTime(VOID);
NTKERNELAPI ULONGLONG KeQueryUnbiasedInterruptTimePrecise(PULONG64 QpcTimeStamp);

/* Stores the interrupt time in clock ticks. Since NT 3.1. */
NTKERNELAPI VOID KeQueryTickCount(PLARGE_INTEGER CurrentCount);

/* Returns the length of a clock tick in 100 ns. Differs: always 156250. Since NT 3.1. */
NTKERNELAPI ULONG KeQueryTimeIncrement(VOID);

/* Returns the finest clock of the host; stores its frequency in PerformanceFrequency, which may be NULL. Since NT
   3.1. */
NTKERNELAPI LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency);

/* Spins for a number of microseconds. Since NT 3.1. */
NTKERNELAPI VOID KeStallExecutionProcessor(ULONG MicroSeconds);

/* Queues. Entries are FIFO, waiting threads LIFO, and at most Count of the threads run at a time. */

/* Initializes a queue that lets Count threads run at a time; 0 means the number of processors. Since NT 3.5. */
NTKERNELAPI VOID KeInitializeQueue(PRKQUEUE Queue, ULONG Count);

/* Returns the number of entries that are queued and not removed yet. Since NT 3.5. */
NTKERNELAPI LONG KeReadStateQueue(PRKQUEUE Queue);

/* Appends an entry at the tail or head, or hands it to the thread that has waited least. Returns the previous number of
   entries. Since NT 3.5. */
NTKERNELAPI LONG KeInsertQueue(PRKQUEUE Queue, PLIST_ENTRY Entry);
NTKERNELAPI LONG KeInsertHeadQueue(PRKQUEUE Queue, PLIST_ENTRY Entry);

/* Blocks for an entry and joins the threads of the queue. Returns the entry, or a status in its place. Since NT 3.5. */
NTKERNELAPI PLIST_ENTRY KeRemoveQueue(PRKQUEUE Queue, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout);

/* Blocks for up to Count entries, alertable if asked. Returns how many it stored; a status counts as one. Since
   Vista. */
NTKERNELAPI ULONG KeRemoveQueueEx(PKQUEUE Queue, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PLIST_ENTRY *EntryArray, ULONG Count);

/* Ends the queue: detaches its threads, ends its waits with STATUS_ABANDONED, and returns the remaining entries. Since
   NT 3.5. */
NTKERNELAPI PLIST_ENTRY KeRundownQueue(PRKQUEUE Queue);

/*
 * Waiting without a thread. A registered block stays on the object until the object satisfies it, once. Then a packet
 * goes to a queue (WaitNotification) or a DPC to the current processor (WaitDpc). Mutants, which only a thread can own,
 * are refused.
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

/* Sends a packet to a queue when the object is signaled, once. Returns STATUS_PENDING, STATUS_SUCCESS if it is already
   signaled, STATUS_INVALID_PARAMETER_1 for a mutant. Differs: not exported by Windows. Since 8. */
NTKERNELAPI NTSTATUS KeRegisterObjectNotification(PVOID Object, PKQUEUE Queue, PKOBJECT_NOTIFICATION Notification);

/* Cancels the notification. Returns whether it was waiting, signaled, or removed from the queue. Differs: not exported
   by Windows. Since 8. */
NTKERNELAPI KNOTIFICATION_CANCEL_RESULT KeCancelObjectNotification(PKOBJECT_NOTIFICATION Notification,
                                                                   BOOLEAN RemoveSignaledPacket);

/* Queues a DPC when the object is signaled, once. Returns what KeRegisterObjectNotification returns. Differs: not
   exported by Windows. Since 8. */
NTKERNELAPI NTSTATUS KeRegisterObjectDpc(PVOID Object, PRKDPC Dpc, PKWAIT_BLOCK WaitBlock);

/* Cancels the registration. Returns FALSE if the DPC was already queued. Differs: not exported by Windows. Since 8. */
NTKERNELAPI BOOLEAN KeCancelObjectDpc(PKWAIT_BLOCK WaitBlock);

/* The verifier's lock order. docs/locks.md describes it. */

/* Names the class of a lock in the lock order, and its level in that class. Locks of one class at different levels have to
   be acquired in the order of their levels, lowest first; at the same level, in any order that is always the same. Call it
   after the lock was initialized and before it is acquired. Without the verifier it does nothing. IRQL <= DISPATCH_LEVEL.
   Only in Interlock. */
NTSYSAPI VOID KdSetLockClass(PVOID Lock, PCSTR ClassName, ULONG Level);

/* Forgets the orders seen so far, as between tests that use the same locks differently. Locks that are held stay known.
   IRQL <= DISPATCH_LEVEL. Only in Interlock. */
NTSYSAPI VOID KdResetLockOrder(VOID);

/* Returns how many things the calling thread has not released: locks that the verifier watches, a raised IRQL, critical
   and guarded regions. Lists them on standard error, each with the place where it was acquired. At the end of a test it
   should return 0. Only in Interlock. */
NTSYSAPI ULONG KdCheckReleased(VOID);

INTERLOCK_END

#endif
