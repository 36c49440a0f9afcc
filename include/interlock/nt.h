/*
 * nt.h: the system services, the interface from user mode to the objects of the lower layers. A service checks access,
 * and a NULL pointer where one is required is STATUS_ACCESS_VIOLATION. The Zw forms are for kernel code.
 *
 * The Create services create an object with or without a name, or with OBJ_OPENIF open the one with that name
 * (STATUS_OBJECT_NAME_EXISTS); the Open services open one by name. They fail with STATUS_OBJECT_NAME_COLLISION,
 * STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND or STATUS_OBJECT_TYPE_MISMATCH.
 */
#ifndef INTERLOCK_NT_H
#define INTERLOCK_NT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

/* Handles. */

typedef enum _OBJECT_INFORMATION_CLASS {
    ObjectBasicInformation,
    ObjectNameInformation,
    ObjectTypeInformation,
    ObjectTypesInformation,
    ObjectHandleFlagInformation,
    ObjectSessionInformation,
    ObjectSessionObjectInformation,
    MaxObjectInfoClass
} OBJECT_INFORMATION_CLASS;

typedef struct _OBJECT_BASIC_INFORMATION {
    ULONG Attributes;
    ACCESS_MASK GrantedAccess;
    ULONG HandleCount;
    ULONG PointerCount;
    ULONG PagedPoolCharge;
    ULONG NonPagedPoolCharge;
    ULONG Reserved[3];
    ULONG NameInfoSize;
    ULONG TypeInfoSize;
    ULONG SecurityDescriptorSize;
    LARGE_INTEGER CreationTime;
} OBJECT_BASIC_INFORMATION, *POBJECT_BASIC_INFORMATION;

typedef struct _PUBLIC_OBJECT_BASIC_INFORMATION {
    ULONG Attributes;
    ACCESS_MASK GrantedAccess;
    ULONG HandleCount;
    ULONG PointerCount;
    ULONG Reserved[10];
} PUBLIC_OBJECT_BASIC_INFORMATION, *PPUBLIC_OBJECT_BASIC_INFORMATION;

typedef struct _OBJECT_TYPE_INFORMATION {
    UNICODE_STRING TypeName;
    ULONG TotalNumberOfObjects;
    ULONG TotalNumberOfHandles;
    ULONG TotalPagedPoolUsage;
    ULONG TotalNonPagedPoolUsage;
    ULONG TotalNamePoolUsage;
    ULONG TotalHandleTableUsage;
    ULONG HighWaterNumberOfObjects;
    ULONG HighWaterNumberOfHandles;
    ULONG HighWaterPagedPoolUsage;
    ULONG HighWaterNonPagedPoolUsage;
    ULONG HighWaterNamePoolUsage;
    ULONG HighWaterHandleTableUsage;
    ULONG InvalidAttributes;
    GENERIC_MAPPING GenericMapping;
    ULONG ValidAccessMask;
    BOOLEAN SecurityRequired;
    BOOLEAN MaintainHandleCount;
    UCHAR TypeIndex;
    CHAR ReservedByte;
    ULONG PoolType;
    ULONG DefaultPagedPoolCharge;
    ULONG DefaultNonPagedPoolCharge;
} OBJECT_TYPE_INFORMATION, *POBJECT_TYPE_INFORMATION;

typedef struct _PUBLIC_OBJECT_TYPE_INFORMATION {
    UNICODE_STRING TypeName;
    ULONG Reserved[22];
} PUBLIC_OBJECT_TYPE_INFORMATION, *PPUBLIC_OBJECT_TYPE_INFORMATION;

/* Followed by that many OBJECT_TYPE_INFORMATIONs, each followed by its name and aligned to 8. */
typedef struct _OBJECT_TYPES_INFORMATION {
    ULONG NumberOfTypes;
} OBJECT_TYPES_INFORMATION, *POBJECT_TYPES_INFORMATION;

typedef struct _OBJECT_HANDLE_FLAG_INFORMATION {
    BOOLEAN Inherit;
    BOOLEAN ProtectFromClose;
} OBJECT_HANDLE_FLAG_INFORMATION, *POBJECT_HANDLE_FLAG_INFORMATION;

C_ASSERT(sizeof(OBJECT_BASIC_INFORMATION) == 56 && sizeof(OBJECT_TYPE_INFORMATION) == 104 &&
         sizeof(OBJECT_HANDLE_FLAG_INFORMATION) == 2);

/* Closes a handle; pseudo handles succeed. Returns STATUS_INVALID_HANDLE or STATUS_HANDLE_NOT_CLOSABLE on failure.
   Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtClose(HANDLE Handle);

/* Opens another handle to the same object, with other rights or attributes if asked. DUPLICATE_CLOSE_SOURCE closes the
   source. Differs: not every object and process can be reached (docs/processes.md): STATUS_NOT_SUPPORTED. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                                        PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes,
                                        ULONG Options);

/* Returns STATUS_SUCCESS if both handles refer to one object, else STATUS_NOT_SAME_OBJECT. Since 10. */
NTSYSCALLAPI NTSTATUS NtCompareObjects(HANDLE FirstObjectHandle, HANDLE SecondObjectHandle);

/* Queries the basic information, name, type or flags of a handle, or all types. Returns STATUS_INFO_LENGTH_MISMATCH and
   the needed length if the buffer is too small. Differs: pool charges are 0. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQueryObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass,
                                    PVOID ObjectInformation, ULONG ObjectInformationLength, PULONG ReturnLength);

/* Sets the inherit and protect-from-close flags of a handle. Differs: not every kind of handle is inherited
 * (docs/processes.md). Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtSetInformationObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass,
                                             PVOID ObjectInformation, ULONG ObjectInformationLength);

/* Makes a permanent object temporary: it loses its name with its last handle. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtMakeTemporaryObject(HANDLE Handle);

/* Makes an object permanent: its name keeps it without handles. Differs: needs no privilege. Since XP. */
NTSYSCALLAPI NTSTATUS NtMakePermanentObject(HANDLE Handle);

/* The Nt services of these names for kernel code, without access checks. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                                    PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes,
                                    ULONG Options);
NTSYSAPI NTSTATUS ZwQueryObject(HANDLE Handle, OBJECT_INFORMATION_CLASS ObjectInformationClass,
                                PVOID ObjectInformation, ULONG ObjectInformationLength, PULONG ReturnLength);
NTSYSAPI NTSTATUS ZwMakeTemporaryObject(HANDLE Handle);

/* Object directories. */

typedef struct _OBJECT_DIRECTORY_INFORMATION {
    UNICODE_STRING Name;
    UNICODE_STRING TypeName;
} OBJECT_DIRECTORY_INFORMATION, *POBJECT_DIRECTORY_INFORMATION;

/* Creates a directory for names of objects. Differs: a shadow directory is STATUS_NOT_SUPPORTED. Since NT 3.1, 8. */
NTSYSCALLAPI NTSTATUS NtCreateDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                              POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtCreateDirectoryObjectEx(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                                POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ShadowDirectoryHandle,
                                                ULONG Flags);

/* Opens a directory by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                            POBJECT_ATTRIBUTES ObjectAttributes);

/* Lists names and types in a directory, one or as many as fit. Returns STATUS_MORE_ENTRIES if more remain,
   STATUS_NO_MORE_ENTRIES at the end. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQueryDirectoryObject(HANDLE DirectoryHandle, PVOID Buffer, ULONG Length,
                                             BOOLEAN ReturnSingleEntry, BOOLEAN RestartScan, PULONG Context,
                                             PULONG ReturnLength);

/* The Nt services of these names for kernel code, without access checks. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwCreateDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                          POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwOpenDirectoryObject(PHANDLE DirectoryHandle, ACCESS_MASK DesiredAccess,
                                        POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwQueryDirectoryObject(HANDLE DirectoryHandle, PVOID Buffer, ULONG Length,
                                         BOOLEAN ReturnSingleEntry, BOOLEAN RestartScan, PULONG Context,
                                         PULONG ReturnLength);

/* Symbolic links. */

/* Creates a name that stands for another name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                                 POBJECT_ATTRIBUTES ObjectAttributes, PUNICODE_STRING LinkTarget);

/* Opens a symbolic link itself, not the object that it points to. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                               POBJECT_ATTRIBUTES ObjectAttributes);

/* Returns the target of the link; STATUS_BUFFER_TOO_SMALL if it does not fit. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget,
                                                PULONG ReturnedLength);

/* The Nt services of these names for kernel code, without access checks. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwCreateSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                             POBJECT_ATTRIBUTES ObjectAttributes, PUNICODE_STRING LinkTarget);
NTSYSAPI NTSTATUS ZwOpenSymbolicLinkObject(PHANDLE LinkHandle, ACCESS_MASK DesiredAccess,
                                           POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwQuerySymbolicLinkObject(HANDLE LinkHandle, PUNICODE_STRING LinkTarget, PULONG ReturnedLength);

/* Events. */

typedef enum _EVENT_INFORMATION_CLASS { EventBasicInformation } EVENT_INFORMATION_CLASS;

typedef struct _EVENT_BASIC_INFORMATION {
    EVENT_TYPE EventType;
    LONG EventState;
} EVENT_BASIC_INFORMATION, *PEVENT_BASIC_INFORMATION;

/* Creates a notification or synchronization event in a given state. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                                    POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType, BOOLEAN InitialState);

/* Opens an event by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                                  POBJECT_ATTRIBUTES ObjectAttributes);

/* Signals the event; stores the previous state in PreviousState, which may be NULL. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState);

/* Signals a synchronization event and boosts the released thread. Returns STATUS_OBJECT_TYPE_MISMATCH for a
   notification event. Since XP. */
NTSYSCALLAPI NTSTATUS NtSetEventBoostPriority(HANDLE EventHandle);

/* Resets the event. The handle needs EVENT_MODIFY_STATE. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtClearEvent(HANDLE EventHandle);

/* Resets the event; stores the previous state in PreviousState, which may be NULL. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState);

/* Releases the threads that wait at this moment and leaves the event reset; stores the previous state in PreviousState,
   which may be NULL. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtPulseEvent(HANDLE EventHandle, PLONG PreviousState);

/* Queries the event's type and state. The handle needs EVENT_QUERY_STATE. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass,
                                   PVOID EventInformation, ULONG EventInformationLength, PULONG ReturnLength);

/* The Nt services of these names for kernel code, without access checks. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                EVENT_TYPE EventType, BOOLEAN InitialState);
NTSYSAPI NTSTATUS ZwOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSAPI NTSTATUS ZwClearEvent(HANDLE EventHandle);
NTSYSAPI NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSAPI NTSTATUS ZwPulseEvent(HANDLE EventHandle, PLONG PreviousState);

/* Event pairs. */

/* Creates an event pair: two events, low and high, neither of which is signaled. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCreateEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess,
                                        POBJECT_ATTRIBUTES ObjectAttributes);

/* Opens an event pair by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes);

/* Sets one event of the pair. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtSetLowEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtSetHighEventPair(HANDLE EventPairHandle);

/* Blocks until one event of the pair is signaled. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtWaitLowEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtWaitHighEventPair(HANDLE EventPairHandle);

/* Sets one event and blocks on the other, atomically. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtSetLowWaitHighEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtSetHighWaitLowEventPair(HANDLE EventPairHandle);

/* Mutants. */

typedef enum _MUTANT_INFORMATION_CLASS {
    MutantBasicInformation,
    MutantOwnerInformation
} MUTANT_INFORMATION_CLASS;

typedef struct _MUTANT_BASIC_INFORMATION {
    LONG CurrentCount;
    BOOLEAN OwnedByCaller;
    BOOLEAN AbandonedState;
} MUTANT_BASIC_INFORMATION, *PMUTANT_BASIC_INFORMATION;

typedef struct _MUTANT_OWNER_INFORMATION {
    CLIENT_ID ClientId;
} MUTANT_OWNER_INFORMATION, *PMUTANT_OWNER_INFORMATION;

/* Creates a mutant, owned by the caller if InitialOwner is TRUE. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                                     POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);

/* Opens a mutant by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                                   POBJECT_ATTRIBUTES ObjectAttributes);

/* Releases one acquire; stores the previous count in PreviousCount, which may be NULL. Returns STATUS_MUTANT_NOT_OWNED
   if the caller is not the owner. Needs no particular access. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);

/* Queries the count, whether the caller owns it and whether it is abandoned; or the owner's ids. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQueryMutant(HANDLE MutantHandle, MUTANT_INFORMATION_CLASS MutantInformationClass,
                                    PVOID MutantInformation, ULONG MutantInformationLength, PULONG ReturnLength);

/* Semaphores. */

typedef enum _SEMAPHORE_INFORMATION_CLASS { SemaphoreBasicInformation } SEMAPHORE_INFORMATION_CLASS;

typedef struct _SEMAPHORE_BASIC_INFORMATION {
    LONG CurrentCount;
    LONG MaximumCount;
} SEMAPHORE_BASIC_INFORMATION, *PSEMAPHORE_BASIC_INFORMATION;

/* Creates a semaphore. Returns STATUS_INVALID_PARAMETER unless 0 <= initial <= maximum and maximum > 0. Since NT
   3.1. */
NTSYSCALLAPI NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                        POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount, LONG MaximumCount);

/* Opens a semaphore by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes);

/* Adds to the count; stores the previous count in PreviousCount, which may be NULL. Returns
   STATUS_SEMAPHORE_LIMIT_EXCEEDED and changes nothing if the limit would be exceeded. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);

/* Queries the semaphore's count and maximum. The handle needs SEMAPHORE_QUERY_STATE. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQuerySemaphore(HANDLE SemaphoreHandle, SEMAPHORE_INFORMATION_CLASS SemaphoreInformationClass,
                                       PVOID SemaphoreInformation, ULONG SemaphoreInformationLength,
                                       PULONG ReturnLength);

/* Timers. */

typedef enum _TIMER_INFORMATION_CLASS { TimerBasicInformation } TIMER_INFORMATION_CLASS;

typedef struct _TIMER_BASIC_INFORMATION {
    LARGE_INTEGER RemainingTime;
    BOOLEAN TimerState;
} TIMER_BASIC_INFORMATION, *PTIMER_BASIC_INFORMATION;

typedef enum _TIMER_SET_INFORMATION_CLASS {
    TimerSetCoalescableTimer,
    MaxTimerInfoClass
} TIMER_SET_INFORMATION_CLASS;

typedef VOID (*PTIMER_APC_ROUTINE)(PVOID TimerContext, ULONG TimerLowValue, LONG TimerHighValue);

typedef struct _TIMER_SET_COALESCABLE_TIMER_INFO {
    LARGE_INTEGER DueTime;
    PTIMER_APC_ROUTINE TimerApcRoutine;
    PVOID TimerContext;
    struct _COUNTED_REASON_CONTEXT *WakeContext;
    ULONG Period;
    ULONG TolerableDelay;
    PBOOLEAN PreviousState;
} TIMER_SET_COALESCABLE_TIMER_INFO, *PTIMER_SET_COALESCABLE_TIMER_INFO;

C_ASSERT(sizeof(TIMER_BASIC_INFORMATION) == 16 && sizeof(TIMER_SET_COALESCABLE_TIMER_INFO) == 48);

/* Creates a notification or synchronization timer. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                                    POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType);

/* Opens a timer by its name. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                                  POBJECT_ATTRIBUTES ObjectAttributes);

/* Sets the due time, a period in milliseconds and an APC for the calling thread; stores the previous state in
   PreviousState, which may be NULL. The Ex form takes a structure with a tolerable delay. Returns
   STATUS_INSUFFICIENT_RESOURCES if the host refuses a thread for the clock. Differs: ResumeTimer and WakeContext are
   STATUS_TIMER_RESUME_IGNORED: timers do not wake the host. Since NT 3.1, 7. */
NTSYSCALLAPI NTSTATUS NtSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine,
                                 PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
NTSYSCALLAPI NTSTATUS NtSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                                   PVOID TimerSetInformation, ULONG TimerSetInformationLength);

/* Cancels the timer; stores its state in CurrentState, which may be NULL. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);

/* Queries the remaining time and the state. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQueryTimer(HANDLE TimerHandle, TIMER_INFORMATION_CLASS TimerInformationClass,
                                   PVOID TimerInformation, ULONG TimerInformationLength, PULONG ReturnLength);

/* The Nt services of these names for kernel code, without access checks; the APC of ZwSetTimer is a kernel APC. Since
   NT 3.1, NT 3.1, NT 3.1, 7, NT 3.1. */
NTSYSAPI NTSTATUS ZwCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                TIMER_TYPE TimerType);
NTSYSAPI NTSTATUS ZwOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine,
                             PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
NTSYSAPI NTSTATUS ZwSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                               PVOID TimerSetInformation, ULONG TimerSetInformationLength);
NTSYSAPI NTSTATUS ZwCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);

/* Keyed events. A NULL handle is the keyed event that every process has. Keys are even. */

/* Creates a keyed event. Flags must be 0. Since XP. */
NTSYSCALLAPI NTSTATUS NtCreateKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes, ULONG Flags);

/* Opens a keyed event by its name. Since XP. */
NTSYSCALLAPI NTSTATUS NtOpenKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess,
                                       POBJECT_ATTRIBUTES ObjectAttributes);

/* Blocks until another thread releases this key. Since XP. */
NTSYSCALLAPI NTSTATUS NtWaitForKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable,
                                          PLARGE_INTEGER Timeout);

/* Blocks until a thread waits for this key, and lets one through. Since XP. */
NTSYSCALLAPI NTSTATUS NtReleaseKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable,
                                          PLARGE_INTEGER Timeout);

/* Waiting by handle. Handles need SYNCHRONIZE; all of them are checked before any state. */

/* Blocks until the object is signaled. Returns STATUS_SUCCESS, STATUS_ABANDONED, STATUS_TIMEOUT, STATUS_ALERTED or
   STATUS_USER_APC. Accepts the pseudo handles. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);

/* Blocks until any or all of up to 64 objects are signaled. A duplicate object in a wait for all is
   STATUS_INVALID_PARAMETER_MIX; pseudo handles are not accepted. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                               PLARGE_INTEGER Timeout);

/* NtWaitForMultipleObjects for up to 65,535 handles. Returns STATUS_WAIT_0 or STATUS_ABANDONED_WAIT_0, with the index of
   the object in *Index (0 after a wait for all), or another status of a wait. Index may be NULL. No or too many handles are
   STATUS_INVALID_PARAMETER_1; no memory for the wait is STATUS_INSUFFICIENT_RESOURCES; a wait for all of more than 64
   objects that are shared between processes is STATUS_NOT_SUPPORTED. Only in Interlock. */
NTSYSCALLAPI NTSTATUS NtWaitForManyObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout, PULONG Index);

/* Signals an event, mutant or semaphore and waits, atomically. Does not wait if the signal fails. Since NT 4.0. */
NTSYSCALLAPI NTSTATUS NtSignalAndWaitForSingleObject(HANDLE SignalHandle, HANDLE WaitHandle, BOOLEAN Alertable,
                                                     PLARGE_INTEGER Timeout);

/* Sleeps. Returns STATUS_SUCCESS; an alertable sleep may return STATUS_ALERTED or STATUS_USER_APC. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);

/* Stores the UTC time in 100 ns since 1601. Since NT 3.1. */
NTSYSCALLAPI NTSTATUS NtQuerySystemTime(PLARGE_INTEGER SystemTime);

/* Stores the coarsest, finest and current resolution of the clock in 100 ns. Differs: the current one is what the process
   has requested; the clock has the resolution of the host. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime);

/* Requests a resolution, or ends the request, and stores the current one. Returns STATUS_TIMER_RESOLUTION_NOT_SET if there
   was no request. Differs: stored, without effect. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution, PULONG ActualTime);

/* Yields the processor. Returns STATUS_NO_YIELD_PERFORMED if no other thread was ready. Differs: the host's scheduler
   decides. Since NT 4.0. */
NTSYSCALLAPI NTSTATUS NtYieldExecution(VOID);

/* Returns STATUS_ALERTED if the thread was alerted; otherwise runs its user APCs and returns STATUS_SUCCESS. Since NT
   3.1. */
NTSYSCALLAPI NTSTATUS NtTestAlert(VOID);

/* The Nt services of these names for kernel code: no access checks, and user APCs do not run in the wait. Since NT 3.1,
   NT 3.1, NT 4.0. */
NTSYSAPI NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSYSAPI NTSTATUS ZwWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout);
NTSYSAPI NTSTATUS ZwYieldExecution(VOID);

/*
 * Alerts by thread id. A thread blocks until another thread alerts it by its id. An alert while the thread does not
 * wait is kept for its next wait; two count as one. User-mode locks block this way too, and an alert may be left over
 * from one of them or from a thread that had the id before: check the condition again after STATUS_ALERTED. Lock, Boost
 * and BoostCount have no effect.
 */

struct _RTL_SRWLOCK;

/* Blocks, not alertably, until the thread is alerted by its id. Returns STATUS_ALERTED or STATUS_TIMEOUT. Address is
   for debuggers only. Since 8. */
NTSYSCALLAPI NTSTATUS NtWaitForAlertByThreadId(PVOID Address, PLARGE_INTEGER Timeout);

/* Alerts a thread of this process. Returns STATUS_INVALID_CID if there is no such thread, STATUS_ACCESS_DENIED for
   another process. Differs: a thread that has never called the library is STATUS_INVALID_CID. Since 8. */
NTSYSCALLAPI NTSTATUS NtAlertThreadByThreadId(HANDLE ThreadId);

/* NtAlertThreadByThreadId; the lock is a hint. Differs: the lock is ignored. Since 11. */
NTSYSCALLAPI NTSTATUS NtAlertThreadByThreadIdEx(HANDLE ThreadId, struct _RTL_SRWLOCK *Lock);

/* Alerts all ids of a list. If one is invalid it returns the status of the first such and alerts none. Differs: there
   are no boosts. Since 11. */
NTSYSCALLAPI NTSTATUS NtAlertMultipleThreadByThreadId(PHANDLE MultipleThreadId, ULONG Count, PVOID Boost,
                                                      ULONG BoostCount);

/* Threads. What ending another thread leaves behind is in docs/threads.md. */

#define THREAD_CREATE_FLAGS_NONE 0x00000000
#define THREAD_CREATE_FLAGS_CREATE_SUSPENDED 0x00000001
#define THREAD_CREATE_FLAGS_SKIP_THREAD_ATTACH 0x00000002
#define THREAD_CREATE_FLAGS_HIDE_FROM_DEBUGGER 0x00000004
#define THREAD_CREATE_FLAGS_LOADER_WORKER 0x00000010
#define THREAD_CREATE_FLAGS_SKIP_LOADER_INIT 0x00000020
#define THREAD_CREATE_FLAGS_BYPASS_PROCESS_FREEZE 0x00000040

typedef NTSTATUS NTAPI USER_THREAD_START_ROUTINE(PVOID ThreadParameter);
typedef USER_THREAD_START_ROUTINE *PUSER_THREAD_START_ROUTINE;

#define PS_ATTRIBUTE_NUMBER_MASK 0x0000ffff
#define PS_ATTRIBUTE_THREAD 0x00010000
#define PS_ATTRIBUTE_INPUT 0x00020000
#define PS_ATTRIBUTE_ADDITIVE 0x00040000

typedef enum _PS_ATTRIBUTE_NUM {
    PsAttributeParentProcess,
    PsAttributeDebugObject,
    PsAttributeToken,
    PsAttributeClientId,
    PsAttributeTebAddress,
    PsAttributeImageName,
    PsAttributeImageInfo,
    PsAttributeMemoryReserve,
    PsAttributePriorityClass,
    PsAttributeErrorMode,
    PsAttributeStdHandleInfo,
    PsAttributeHandleList,
    PsAttributeGroupAffinity,
    PsAttributePreferredNode,
    PsAttributeIdealProcessor
} PS_ATTRIBUTE_NUM;

#define PS_ATTRIBUTE_CLIENT_ID (PsAttributeClientId | PS_ATTRIBUTE_THREAD)
#define PS_ATTRIBUTE_TEB_ADDRESS (PsAttributeTebAddress | PS_ATTRIBUTE_THREAD)
#define PS_ATTRIBUTE_GROUP_AFFINITY (PsAttributeGroupAffinity | PS_ATTRIBUTE_THREAD | PS_ATTRIBUTE_INPUT)
#define PS_ATTRIBUTE_IDEAL_PROCESSOR (PsAttributeIdealProcessor | PS_ATTRIBUTE_THREAD | PS_ATTRIBUTE_INPUT)

typedef struct _PS_ATTRIBUTE {
    ULONG_PTR Attribute;
    SIZE_T Size;
    __extension__ union {
        ULONG_PTR Value;
        PVOID ValuePtr;
    };
    PSIZE_T ReturnLength;
} PS_ATTRIBUTE, *PPS_ATTRIBUTE;

typedef struct _PS_ATTRIBUTE_LIST {
    SIZE_T TotalLength;
    PS_ATTRIBUTE Attributes[1];
} PS_ATTRIBUTE_LIST, *PPS_ATTRIBUTE_LIST;

/* Starts a thread, suspended if asked. Differs: in this process only: another one is STATUS_ACCESS_DENIED; a stack size
   of 0 is the host's default, the minimum is 256 KB. Since Vista. */
NTSYSAPI NTSTATUS NTAPI NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                                         PUSER_THREAD_START_ROUTINE StartRoutine, PVOID Argument, ULONG CreateFlags,
                                         SIZE_T ZeroBits, SIZE_T StackSize, SIZE_T MaximumStackSize,
                                         PPS_ATTRIBUTE_LIST AttributeList);

/* Opens a thread by its id. Returns STATUS_INVALID_CID if there is none. Differs: finds threads of this process that
   have called the library. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                     POBJECT_ATTRIBUTES ObjectAttributes, PCLIENT_ID ClientId);

/* Opens the thread that follows another one in the process, the first one for NULL. Returns STATUS_NO_MORE_ENTRIES after
   the last. Differs: threads that have called the library, in no particular order; other processes are
   STATUS_NOT_SUPPORTED. Since Vista. */
NTSYSAPI NTSTATUS NTAPI NtGetNextThread(HANDLE ProcessHandle, HANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                        ULONG HandleAttributes, ULONG Flags, PHANDLE NewThreadHandle);

/* Asks another thread to end, or ends the calling one. NULL on the last thread is STATUS_CANT_TERMINATE_SELF. Differs:
   the thread ends where that is safe for the library; its stack is leaked. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus);

/* Suspends the thread; stores the previous count in PreviousSuspendCount, which may be NULL. Returns
   STATUS_SUSPEND_COUNT_EXCEEDED above 127. Differs: a signal of the host stops a running thread; STATUS_ACCESS_DENIED
   if it does not reach it. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);

/* Removes one suspension; stores the previous count in PreviousSuspendCount, which may be NULL. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);

/* Alerts the thread in user mode and ends an alertable wait. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtAlertThread(HANDLE ThreadHandle);

/* Alerts the thread and removes one suspension; stores the previous count in PreviousSuspendCount, which may be NULL.
   Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtAlertResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);

/* User APCs. */

typedef VOID NTAPI PS_APC_ROUTINE(PVOID ApcArgument1, PVOID ApcArgument2, PVOID ApcArgument3);
typedef PS_APC_ROUTINE *PPS_APC_ROUTINE;

#define QUEUE_USER_APC_SPECIAL_USER_APC ((HANDLE)0x1)

#ifndef INTERLOCK_QUEUE_USER_APC_FLAGS
#define INTERLOCK_QUEUE_USER_APC_FLAGS
typedef enum _QUEUE_USER_APC_FLAGS {
    QUEUE_USER_APC_FLAGS_NONE = 0x0,
    QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC = 0x1,
    QUEUE_USER_APC_CALLBACK_DATA_CONTEXT = 0x10000
} QUEUE_USER_APC_FLAGS;
#endif

/* Queues a user APC, which runs in an alertable wait. Without a routine nothing runs. Returns STATUS_UNSUCCESSFUL for a
   thread that has ended. Since NT 4.0. */
NTSYSAPI NTSTATUS NTAPI NtQueueApcThread(HANDLE ThreadHandle, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1,
                                         PVOID ApcArgument2, PVOID ApcArgument3);

/* NtQueueApcThread with the memory of a reserve, and with flags. Differs: a reserve is STATUS_INVALID_HANDLE, a special
   user APC STATUS_NOT_SUPPORTED. Since 7, 11. */
NTSYSAPI NTSTATUS NTAPI NtQueueApcThreadEx(HANDLE ThreadHandle, HANDLE ReserveHandle, PPS_APC_ROUTINE ApcRoutine,
                                           PVOID ApcArgument1, PVOID ApcArgument2, PVOID ApcArgument3);
NTSYSAPI NTSTATUS NTAPI NtQueueApcThreadEx2(HANDLE ThreadHandle, HANDLE ReserveHandle, ULONG ApcFlags,
                                            PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1, PVOID ApcArgument2,
                                            PVOID ApcArgument3);

/* Information about threads. */

typedef enum _THREADINFOCLASS {
    ThreadBasicInformation,
    ThreadTimes,
    ThreadPriority,
    ThreadBasePriority,
    ThreadAffinityMask,
    ThreadImpersonationToken,
    ThreadDescriptorTableEntry,
    ThreadEnableAlignmentFaultFixup,
    ThreadEventPair,
    ThreadQuerySetWin32StartAddress,
    ThreadZeroTlsCell,
    ThreadPerformanceCount,
    ThreadAmILastThread,
    ThreadIdealProcessor,
    ThreadPriorityBoost,
    ThreadSetTlsArrayAddress,
    ThreadIsIoPending,
    ThreadHideFromDebugger,
    ThreadBreakOnTermination,
    ThreadSwitchLegacyState,
    ThreadIsTerminated,
    ThreadLastSystemCall,
    ThreadIoPriority,
    ThreadCycleTime,
    ThreadPagePriority,
    ThreadActualBasePriority,
    ThreadTebInformation,
    ThreadCSwitchMon,
    ThreadCSwitchPmu,
    ThreadWow64Context,
    ThreadGroupInformation,
    ThreadUmsInformation,
    ThreadCounterProfiling,
    ThreadIdealProcessorEx,
    ThreadCpuAccountingInformation,
    ThreadSuspendCount,
    ThreadHeterogeneousCpuPolicy,
    ThreadContainerId,
    ThreadNameInformation,
    ThreadSelectedCpuSets,
    ThreadSystemThreadInformation,
    ThreadActualGroupAffinity,
    ThreadDynamicCodePolicyInfo,
    ThreadExplicitCaseSensitivity,
    ThreadWorkOnBehalfTicket,
    ThreadSubsystemInformation,
    ThreadDbgkWerReportActive,
    ThreadAttachContainer,
    ThreadManageWritesToExecutableMemory,
    ThreadPowerThrottlingState,
    ThreadWorkloadClass,
    MaxThreadInfoClass
} THREADINFOCLASS;

#define ThreadEventPair_Reusable ThreadEventPair

typedef struct _THREAD_BASIC_INFORMATION {
    NTSTATUS ExitStatus;
    PVOID TebBaseAddress;
    CLIENT_ID ClientId;
    KAFFINITY AffinityMask;
    KPRIORITY Priority;
    KPRIORITY BasePriority;
} THREAD_BASIC_INFORMATION, *PTHREAD_BASIC_INFORMATION;

#ifndef INTERLOCK_KERNEL_USER_TIMES
#define INTERLOCK_KERNEL_USER_TIMES
typedef struct _KERNEL_USER_TIMES {
    LARGE_INTEGER CreateTime;
    LARGE_INTEGER ExitTime;
    LARGE_INTEGER KernelTime;
    LARGE_INTEGER UserTime;
} KERNEL_USER_TIMES, *PKERNEL_USER_TIMES;
#endif

typedef struct _THREAD_NAME_INFORMATION {
    UNICODE_STRING ThreadName;
} THREAD_NAME_INFORMATION, *PTHREAD_NAME_INFORMATION;

typedef struct _THREAD_CYCLE_TIME_INFORMATION {
    ULONGLONG AccumulatedCycles;
    ULONGLONG CurrentCycleCount;
} THREAD_CYCLE_TIME_INFORMATION, *PTHREAD_CYCLE_TIME_INFORMATION;

/* Queries information about a thread, by class. Differs: 17 classes (ids, times, priorities, affinity, name, suspend
   count, …), others are STATUS_INVALID_INFO_CLASS. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                                 PVOID ThreadInformation, ULONG ThreadInformationLength,
                                                 PULONG ReturnLength);

/* Sets priority, base priority, affinity, ideal processor, boost, name and others, by class. Differs: 12 classes;
   real-time priorities are STATUS_PRIVILEGE_NOT_HELD. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                               PVOID ThreadInformation, ULONG ThreadInformationLength);

struct _CONTEXT;

/* Gets or sets those registers of a suspended thread that ContextFlags selects. Differs: x86-64 only. For a thread
 * that waits in the library they are the registers of its sleep in the host; of new ones it takes Rip and Rsp only,
 * when its wait has ended. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtGetContextThread(HANDLE ThreadHandle, struct _CONTEXT *ThreadContext);
NTSYSAPI NTSTATUS NTAPI NtSetContextThread(HANDLE ThreadHandle, struct _CONTEXT *ThreadContext);

/* Returns the number of the current processor; the Ex form stores its group and number. Differs: the number of the
   virtual processor. Since Server 2003, 7. */
NTSYSAPI ULONG NTAPI NtGetCurrentProcessorNumber(VOID);
NTSYSAPI ULONG NTAPI NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcessorNumber);

/* Processes. Another process of the host is an object to wait on. Its exit status is known if it is a child. */

typedef enum _PROCESSINFOCLASS {
    ProcessBasicInformation = 0,
    ProcessTimes = 4,                /* KERNEL_USER_TIMES */
    ProcessBasePriority = 5,         /* KPRIORITY; set only */
    ProcessPriorityClass = 18,       /* PROCESS_PRIORITY_CLASS */
    ProcessHandleCount = 20,         /* ULONG; query only */
    ProcessAffinityMask = 21,        /* KAFFINITY; set only: the basic information has it */
    ProcessPriorityBoost = 22        /* ULONG: boosts are disabled */
} PROCESSINFOCLASS;

#define PROCESS_PRIORITY_CLASS_UNKNOWN 0
#define PROCESS_PRIORITY_CLASS_IDLE 1
#define PROCESS_PRIORITY_CLASS_NORMAL 2
#define PROCESS_PRIORITY_CLASS_HIGH 3
#define PROCESS_PRIORITY_CLASS_REALTIME 4
#define PROCESS_PRIORITY_CLASS_BELOW_NORMAL 5
#define PROCESS_PRIORITY_CLASS_ABOVE_NORMAL 6

typedef struct _PROCESS_PRIORITY_CLASS {
    BOOLEAN Foreground;              /* ignored */
    UCHAR PriorityClass;
} PROCESS_PRIORITY_CLASS, *PPROCESS_PRIORITY_CLASS;

typedef struct _PEB *PPEB;

typedef struct _PROCESS_BASIC_INFORMATION {
    NTSTATUS ExitStatus;
    PPEB PebBaseAddress;
    KAFFINITY AffinityMask;
    KPRIORITY BasePriority;
    ULONG_PTR UniqueProcessId;
    ULONG_PTR InheritedFromUniqueProcessId;
} PROCESS_BASIC_INFORMATION, *PPROCESS_BASIC_INFORMATION;

/* Opens a process by its id, or by the id of one of its threads. Returns STATUS_INVALID_CID if there is none. Differs:
   finds threads of this process only. Since NT 3.1. */
NTSYSAPI NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                PCLIENT_ID ClientId);

/* Asks a process to end, without waiting. Returns STATUS_PROCESS_IS_TERMINATING if it has ended. Differs: uses SIGKILL;
   NULL ends this process, where Windows ends its other threads. Since NT 3.1. */
NTSYSAPI NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);

/* Stops all threads of another process. Differs: uses SIGSTOP and does not count; this process is STATUS_NOT_SUPPORTED.
   Since XP. */
NTSYSAPI NTSTATUS NtSuspendProcess(HANDLE ProcessHandle);

/* Continues a process that NtSuspendProcess has stopped. Differs: uses SIGCONT. Since XP. */
NTSYSAPI NTSTATUS NtResumeProcess(HANDLE ProcessHandle);

/* Queries information about a process, by class. Returns STATUS_INFO_LENGTH_MISMATCH or STATUS_INVALID_INFO_CLASS on
   failure. Differs: 5 classes (basic information, times, handles, priority class, boost); the exit status of a process
   that is not a child, and the handles of others, are STATUS_NOT_SUPPORTED. Since NT 3.1. */
NTSYSAPI NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                            PVOID ProcessInformation, ULONG ProcessInformationLength,
                                            PULONG ReturnLength);

/* Sets base priority, priority class, affinity or boost, by class. Differs: 4 classes; another process is
   STATUS_NOT_SUPPORTED; real-time priorities are STATUS_PRIVILEGE_NOT_HELD. Since NT 3.1. */
NTSYSAPI NTSTATUS NTAPI NtSetInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                                PVOID ProcessInformation, ULONG ProcessInformationLength);

/* The Nt services of these names for kernel code, without access checks. Since NT 3.1. */
NTSYSAPI NTSTATUS ZwOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                PCLIENT_ID ClientId);
NTSYSAPI NTSTATUS ZwTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSYSAPI NTSTATUS ZwQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                            PVOID ProcessInformation, ULONG ProcessInformationLength,
                                            PULONG ReturnLength);
NTSYSAPI NTSTATUS ZwOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                               PCLIENT_ID ClientId);
NTSYSAPI NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                         PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSYSAPI NTSTATUS ZwSetInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                          PVOID ProcessInformation, ULONG ProcessInformationLength);

/* Alerts the thread in kernel mode, for kernel code, without an access check: ends an alertable wait of either mode.
   Since NT 3.1. */
NTSYSAPI NTSTATUS ZwAlertThread(HANDLE ThreadHandle);

/* Access rights and structures of completion. */

#define WAIT_COMPLETION_PACKET_MODIFY_STATE 0x0001
#define WAIT_COMPLETION_PACKET_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | WAIT_COMPLETION_PACKET_MODIFY_STATE)

typedef struct _FILE_IO_COMPLETION_INFORMATION {
    PVOID KeyContext;
    PVOID ApcContext;
    IO_STATUS_BLOCK IoStatusBlock;
} FILE_IO_COMPLETION_INFORMATION, *PFILE_IO_COMPLETION_INFORMATION;

C_ASSERT(sizeof(FILE_IO_COMPLETION_INFORMATION) == 32);

typedef enum _IO_COMPLETION_INFORMATION_CLASS { IoCompletionBasicInformation } IO_COMPLETION_INFORMATION_CLASS;

typedef struct _IO_COMPLETION_BASIC_INFORMATION {
    LONG Depth;
} IO_COMPLETION_BASIC_INFORMATION, *PIO_COMPLETION_BASIC_INFORMATION;

typedef enum _MEMORY_RESERVE_TYPE {
    MemoryReserveUserApc,
    MemoryReserveIoCompletion,
    MemoryReserveTypeMax
} MEMORY_RESERVE_TYPE;

/* Completion ports. A reserve is the memory of one packet, so that posting it cannot fail. */

/* Creates a port that lets Count threads run at a time; 0 means the number of processors. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtCreateIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                                           POBJECT_ATTRIBUTES ObjectAttributes, ULONG Count);

/* Opens a port by its name. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtOpenIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes);

/* Queries the number of queued packets. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtQueryIoCompletion(HANDLE IoCompletionHandle,
                                          IO_COMPLETION_INFORMATION_CLASS IoCompletionInformationClass,
                                          PVOID IoCompletionInformation, ULONG IoCompletionInformationLength,
                                          PULONG ReturnLength);

/* Queues a packet. Returns STATUS_INSUFFICIENT_RESOURCES if memory is exhausted. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtSetIoCompletion(HANDLE IoCompletionHandle, PVOID KeyContext, PVOID ApcContext,
                                        NTSTATUS IoStatus, ULONG_PTR IoStatusInformation);

/* Queues the packet of a reserve, which cannot fail for lack of memory. Returns STATUS_INVALID_PARAMETER_2 if it is
   already queued. Since 7. */
NTSYSCALLAPI NTSTATUS NtSetIoCompletionEx(HANDLE IoCompletionHandle, HANDLE IoCompletionPacketHandle, PVOID KeyContext,
                                          PVOID ApcContext, NTSTATUS IoStatus, ULONG_PTR IoStatusInformation);

/* Blocks for a packet; waiters are served in LIFO order. Returns STATUS_SUCCESS, STATUS_TIMEOUT, or
   STATUS_ABANDONED_WAIT_0 when the port is closed. Since NT 3.5. */
NTSYSCALLAPI NTSTATUS NtRemoveIoCompletion(HANDLE IoCompletionHandle, PVOID *KeyContext, PVOID *ApcContext,
                                           PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout);

/* Blocks for up to Count packets, alertable if asked. Since Vista. */
NTSYSCALLAPI NTSTATUS NtRemoveIoCompletionEx(HANDLE IoCompletionHandle,
                                             PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation, ULONG Count,
                                             PULONG NumEntriesRemoved, PLARGE_INTEGER Timeout, BOOLEAN Alertable);

/* Creates a reserve, the memory of one packet. Differs: for packets only: MemoryReserveUserApc is
   STATUS_INVALID_PARAMETER. Since 7. */
NTSYSCALLAPI NTSTATUS NtAllocateReserveObject(PHANDLE MemoryReserveHandle, POBJECT_ATTRIBUTES ObjectAttributes,
                                              MEMORY_RESERVE_TYPE Type);

/* Wait completion packets. Waiting on an object without a thread: a packet goes to a port when it is signaled. */

/* Creates a packet that waits for nothing yet: NtAssociateWaitCompletionPacket binds it to an object and a port. Since
   8. */
NTSYSCALLAPI NTSTATUS NtCreateWaitCompletionPacket(PHANDLE WaitCompletionPacketHandle, ACCESS_MASK DesiredAccess,
                                                   POBJECT_ATTRIBUTES ObjectAttributes);

/* Posts the packet to a port when an object is signaled, once. Returns STATUS_INVALID_PARAMETER_1 while the packet is
   in use, STATUS_INVALID_PARAMETER_3 for an object that only a thread can own. Since 8. */
NTSYSCALLAPI NTSTATUS NtAssociateWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, HANDLE IoCompletionHandle,
                                                      HANDLE TargetObjectHandle, PVOID KeyContext, PVOID ApcContext,
                                                      NTSTATUS IoStatus, ULONG_PTR IoStatusInformation,
                                                      PBOOLEAN AlreadySignaled);

/* Ends the association. Returns STATUS_SUCCESS, STATUS_CANCELLED if the packet was idle, STATUS_PENDING if it will
   still be delivered. Since 8. */
NTSYSCALLAPI NTSTATUS NtCancelWaitCompletionPacket(HANDLE WaitCompletionPacketHandle, BOOLEAN RemoveSignaledPacket);

INTERLOCK_END

#endif
