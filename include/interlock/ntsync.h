/* ntsync.h: events, event pairs, mutants, semaphores, timers, keyed events. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTSYNC_H
#define INTERLOCK_NTSYNC_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

/* Events. */

typedef enum _EVENT_INFORMATION_CLASS { EventBasicInformation } EVENT_INFORMATION_CLASS;

typedef struct _EVENT_BASIC_INFORMATION {
    EVENT_TYPE EventType;
    LONG EventState;
} EVENT_BASIC_INFORMATION, *PEVENT_BASIC_INFORMATION;

NTSYSCALLAPI NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                                    POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType, BOOLEAN InitialState);
NTSYSCALLAPI NTSTATUS NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                                  POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSCALLAPI NTSTATUS NtSetEventBoostPriority(HANDLE EventHandle);
NTSYSCALLAPI NTSTATUS NtClearEvent(HANDLE EventHandle);
NTSYSCALLAPI NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSCALLAPI NTSTATUS NtPulseEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSCALLAPI NTSTATUS NtQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass,
                                   PVOID EventInformation, ULONG EventInformationLength, PULONG ReturnLength);

NTSYSAPI NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                EVENT_TYPE EventType, BOOLEAN InitialState);
NTSYSAPI NTSTATUS ZwOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSAPI NTSTATUS ZwClearEvent(HANDLE EventHandle);
NTSYSAPI NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSYSAPI NTSTATUS ZwPulseEvent(HANDLE EventHandle, PLONG PreviousState);

/* Event pairs. */

NTSYSCALLAPI NTSTATUS NtCreateEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess,
                                        POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtOpenEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtSetLowEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtSetHighEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtWaitLowEventPair(HANDLE EventPairHandle);
NTSYSCALLAPI NTSTATUS NtWaitHighEventPair(HANDLE EventPairHandle);
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

NTSYSCALLAPI NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                                     POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);
NTSYSCALLAPI NTSTATUS NtOpenMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                                   POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);
NTSYSCALLAPI NTSTATUS NtQueryMutant(HANDLE MutantHandle, MUTANT_INFORMATION_CLASS MutantInformationClass,
                                    PVOID MutantInformation, ULONG MutantInformationLength, PULONG ReturnLength);

/* Semaphores. */

typedef enum _SEMAPHORE_INFORMATION_CLASS { SemaphoreBasicInformation } SEMAPHORE_INFORMATION_CLASS;

typedef struct _SEMAPHORE_BASIC_INFORMATION {
    LONG CurrentCount;
    LONG MaximumCount;
} SEMAPHORE_BASIC_INFORMATION, *PSEMAPHORE_BASIC_INFORMATION;

NTSYSCALLAPI NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                        POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount, LONG MaximumCount);
NTSYSCALLAPI NTSTATUS NtOpenSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                      POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
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

NTSYSCALLAPI NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                                    POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType);
NTSYSCALLAPI NTSTATUS NtOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                                  POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine,
                                 PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
NTSYSCALLAPI NTSTATUS NtSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                                   PVOID TimerSetInformation, ULONG TimerSetInformationLength);
NTSYSCALLAPI NTSTATUS NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);
NTSYSCALLAPI NTSTATUS NtQueryTimer(HANDLE TimerHandle, TIMER_INFORMATION_CLASS TimerInformationClass,
                                   PVOID TimerInformation, ULONG TimerInformationLength, PULONG ReturnLength);

NTSYSAPI NTSTATUS ZwCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                TIMER_TYPE TimerType);
NTSYSAPI NTSTATUS ZwOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSAPI NTSTATUS ZwSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PTIMER_APC_ROUTINE TimerApcRoutine,
                             PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
NTSYSAPI NTSTATUS ZwSetTimerEx(HANDLE TimerHandle, TIMER_SET_INFORMATION_CLASS TimerSetInformationClass,
                               PVOID TimerSetInformation, ULONG TimerSetInformationLength);
NTSYSAPI NTSTATUS ZwCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);

/* Keyed events. NULL for the handle: the keyed event that every process has. A key is even. */

NTSYSCALLAPI NTSTATUS NtCreateKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess,
                                         POBJECT_ATTRIBUTES ObjectAttributes, ULONG Flags);
NTSYSCALLAPI NTSTATUS NtOpenKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess,
                                       POBJECT_ATTRIBUTES ObjectAttributes);
NTSYSCALLAPI NTSTATUS NtWaitForKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable,
                                          PLARGE_INTEGER Timeout);
NTSYSCALLAPI NTSTATUS NtReleaseKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable,
                                          PLARGE_INTEGER Timeout);

INTERLOCK_END

#endif
