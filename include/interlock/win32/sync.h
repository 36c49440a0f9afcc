/*
 * win32/sync.h: kernel32's synchronization. Events, mutexes, semaphores, timers, waiting, user-mode locks, completion
 * ports. Part of win32.h.
 *
 * Create functions return an existing object of that name with ERROR_ALREADY_EXISTS. Names are case sensitive, have at
 * most MAX_PATH characters, and belong to this process, even Global\ names.
 */
#ifndef INTERLOCK_WIN32_SYNC_H
#define INTERLOCK_WIN32_SYNC_H

#include <interlock/usermode.h>
#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Events. */

#define CREATE_EVENT_MANUAL_RESET 0x00000001
#define CREATE_EVENT_INITIAL_SET 0x00000002

/* Creates a manual-reset or auto-reset event, or opens the one with that name. Returns NULL on failure. Since NT 3.1,
   NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState,
                                      LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState,
                                      LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);

/* Opens the event with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenEventA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenEventW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Signals the event: releases all waiters of a manual-reset event, one of an auto-reset event. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetEvent(HANDLE hEvent);

/* Resets the event. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ResetEvent(HANDLE hEvent);

/* Releases the threads that wait at this moment, then resets the event. A thread that runs an APC at this moment misses
   it. Since NT 3.1. */
WINBASEAPI BOOL WINAPI PulseEvent(HANDLE hEvent);
#define CreateEvent INTERLOCK_AW(CreateEvent)
#define CreateEventEx INTERLOCK_AW(CreateEventEx)
#define OpenEvent INTERLOCK_AW(OpenEvent)

/* Mutexes. Owned by a thread, recursive, abandoned when their owner ends. */

#define CREATE_MUTEX_INITIAL_OWNER 0x00000001

/* Creates a mutex, owned by the caller if asked, or opens the one with that name, which the caller then does not own.
   Returns NULL on failure. Since NT 3.1, NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, BOOL bInitialOwner, LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags,
                                        DWORD dwDesiredAccess);

/* Opens the mutex with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenMutexA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenMutexW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Releases one acquire. Fails with ERROR_NOT_OWNER if the caller is not the owner. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReleaseMutex(HANDLE hMutex);
#define CreateMutex INTERLOCK_AW(CreateMutex)
#define CreateMutexEx INTERLOCK_AW(CreateMutexEx)
#define OpenMutex INTERLOCK_AW(OpenMutex)

/* Semaphores. */

/* Creates a semaphore with a count and a maximum, or opens the one with that name. Returns NULL on failure, with
   ERROR_INVALID_PARAMETER for bad counts. dwFlags must be 0. Since NT 3.1, NT 3.1, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                          LONG lMaximumCount, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                          LONG lMaximumCount, LPCWSTR lpName);
WINBASEAPI HANDLE WINAPI CreateSemaphoreExA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                            LONG lMaximumCount, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                            LONG lMaximumCount, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess);

/* Opens the semaphore with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 3.1. */
WINBASEAPI HANDLE WINAPI OpenSemaphoreA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName);
WINBASEAPI HANDLE WINAPI OpenSemaphoreW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName);

/* Adds to the count; stores the previous count in lpPreviousCount, which may be NULL. Fails with ERROR_TOO_MANY_POSTS,
   changing nothing, or with ERROR_INVALID_PARAMETER below 1. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount);
#define CreateSemaphore INTERLOCK_AW(CreateSemaphore)
#define CreateSemaphoreEx INTERLOCK_AW(CreateSemaphoreEx)
#define OpenSemaphore INTERLOCK_AW(OpenSemaphore)

/* Waitable timers. */

#define CREATE_WAITABLE_TIMER_MANUAL_RESET 0x00000001
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002 /* accepted: every timer has the resolution of the host */

typedef VOID(APIENTRY *PTIMERAPCROUTINE)(LPVOID lpArgToCompletionRoutine, DWORD dwTimerLowValue,
                                         DWORD dwTimerHighValue);

typedef struct _REASON_CONTEXT {
    ULONG Version;
    DWORD Flags;
    union {
        struct {
            HMODULE LocalizedReasonModule;
            ULONG LocalizedReasonId;
            ULONG ReasonStringCount;
            LPWSTR *ReasonStrings;
        } Detailed;
        LPWSTR SimpleReasonString;
    } Reason;
} REASON_CONTEXT, *PREASON_CONTEXT;

#define POWER_REQUEST_CONTEXT_VERSION 0
#define POWER_REQUEST_CONTEXT_SIMPLE_STRING 0x00000001

/* Creates a manual-reset or synchronization timer, or opens the one with that name. Returns NULL on failure. Differs:
   every timer has high resolution. Since NT 4.0, NT 4.0, Vista, Vista. */
WINBASEAPI HANDLE WINAPI CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, BOOL bManualReset,
                                              LPCWSTR lpTimerName);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);
WINBASEAPI HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName,
                                                DWORD dwFlags, DWORD dwDesiredAccess);

/* Opens the timer with that name; NULL and ERROR_FILE_NOT_FOUND if there is none. Since NT 4.0. */
WINBASEAPI HANDLE WINAPI OpenWaitableTimerA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpTimerName);
WINBASEAPI HANDLE WINAPI OpenWaitableTimerW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpTimerName);

/* Sets the due time in 100 ns, relative if negative, and a period in milliseconds; the Ex form takes a tolerable delay.
   The completion routine runs in an alertable wait of the calling thread. Differs: timers do not wake the host: with
   fResume or a WakeContext the timer is set and the last error is ERROR_NOT_SUPPORTED. Since NT 4.0, 7. */
WINBASEAPI BOOL WINAPI SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                        PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                        BOOL fResume);
WINBASEAPI BOOL WINAPI SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                          PTIMERAPCROUTINE pfnCompletionRoutine, LPVOID lpArgToCompletionRoutine,
                                          PREASON_CONTEXT WakeContext, ULONG TolerableDelay);

/* Cancels the timer; its state stays. Since NT 4.0. */
WINBASEAPI BOOL WINAPI CancelWaitableTimer(HANDLE hTimer);
#define CreateWaitableTimer INTERLOCK_AW(CreateWaitableTimer)
#define CreateWaitableTimerEx INTERLOCK_AW(CreateWaitableTimerEx)
#define OpenWaitableTimer INTERLOCK_AW(OpenWaitableTimer)

/* Waiting and sleeping. Times are in milliseconds. Success and timeout leave the last error alone. */

/* Blocks until the object is signaled. Returns WAIT_OBJECT_0, WAIT_ABANDONED, WAIT_TIMEOUT or WAIT_FAILED; an alertable
   wait returns WAIT_IO_COMPLETION after user APCs, without acquiring the object. Since NT 3.1. */
WINBASEAPI DWORD WINAPI WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI WaitForSingleObjectEx(HANDLE hHandle, DWORD dwMilliseconds, BOOL bAlertable);

/* Blocks until any object (the lowest index wins) or all of up to 64 are signaled. A duplicate object in a wait for all
   is ERROR_INVALID_PARAMETER. Since NT 3.1. */
WINBASEAPI DWORD WINAPI WaitForMultipleObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll,
                                               DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI WaitForMultipleObjectsEx(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll,
                                                 DWORD dwMilliseconds, BOOL bAlertable);

/* Signals an event, mutex or semaphore and waits, atomically. Does not wait if the signal fails. Since NT 4.0. */
WINBASEAPI DWORD WINAPI SignalObjectAndWait(HANDLE hObjectToSignal, HANDLE hObjectToWaitOn, DWORD dwMilliseconds,
                                            BOOL bAlertable);

/* Sleeps; 0 yields the processor, INFINITE never ends. An alertable sleep returns WAIT_IO_COMPLETION after user APCs,
   otherwise 0. Since NT 3.1. */
WINBASEAPI VOID WINAPI Sleep(DWORD dwMilliseconds);
WINBASEAPI DWORD WINAPI SleepEx(DWORD dwMilliseconds, BOOL bAlertable);

/* Yields the processor. Returns FALSE if no other thread was ready. Differs: the host's scheduler decides. Since
   NT 4.0. */
WINBASEAPI BOOL WINAPI SwitchToThread(VOID);

/* Address waits. rtl.h explains them. The wakes are inline, and exported too. */

/* Blocks while AddressSize bytes (1, 2, 4 or 8) at Address equal those at CompareAddress. May wake spuriously. Fails
   with ERROR_TIMEOUT or ERROR_INVALID_PARAMETER. Since 8. */
WINBASEAPI BOOL WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, DWORD dwMilliseconds);

/* Wakes the oldest waiter of the address. Since 8. */
WINBASEAPI inline VOID WakeByAddressSingle(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressSingle(Address);
    }
}

/* Wakes all waiters of the address. Since 8. */
WINBASEAPI inline VOID WakeByAddressAll(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressAll(Address);
    }
}

/* Slim reader/writer locks. rtl.h explains them. Inline, and exported too. */

typedef RTL_SRWLOCK SRWLOCK, *PSRWLOCK;

#define SRWLOCK_INIT RTL_SRWLOCK_INIT

#if INTERLOCK_SRWLOCK_WATCHED
#pragma push_macro("WINBASEAPI")
#undef WINBASEAPI
#define WINBASEAPI static __attribute__((always_inline))
#endif

/* Initializes a free lock. Since Vista. */
WINBASEAPI inline VOID InitializeSRWLock(PSRWLOCK SRWLock)
{
    RtlpInitializeSRWLock(SRWLock);
}

/* Blocks until the lock is acquired exclusively. Not recursive. Since Vista. */
WINBASEAPI inline VOID AcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlpAcquireSRWLockExclusive(SRWLock);
}

/* Blocks until the lock is acquired shared, behind waiting exclusive acquires. Since Vista. */
WINBASEAPI inline VOID AcquireSRWLockShared(PSRWLOCK SRWLock)
{
    RtlpAcquireSRWLockShared(SRWLock);
}

/* Acquires the lock exclusively if it is free. Returns TRUE if it did. Since 7. */
WINBASEAPI inline BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockExclusive(SRWLock);
}

/* Acquires the lock shared if that is possible at once. Returns TRUE if it did. Since 7. */
WINBASEAPI inline BOOLEAN TryAcquireSRWLockShared(PSRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockShared(SRWLock);
}

/* Releases an exclusive acquire. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Since Vista. */
WINBASEAPI inline VOID ReleaseSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlpReleaseSRWLockExclusive(SRWLock);
}

/* Releases a shared acquire. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Differs: as
   RtlReleaseSRWLockShared. Since Vista. */
WINBASEAPI inline VOID ReleaseSRWLockShared(PSRWLOCK SRWLock)
{
    RtlpReleaseSRWLockShared(SRWLock);
}

#if INTERLOCK_SRWLOCK_WATCHED
#pragma pop_macro("WINBASEAPI")
#endif

/* Condition variables. rtl.h explains them. */

typedef RTL_CONDITION_VARIABLE CONDITION_VARIABLE, *PCONDITION_VARIABLE;
typedef RTL_CRITICAL_SECTION CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

#define CONDITION_VARIABLE_INIT RTL_CONDITION_VARIABLE_INIT
#define CONDITION_VARIABLE_LOCKMODE_SHARED RTL_CONDITION_VARIABLE_LOCKMODE_SHARED

/* Initializes a condition variable without sleepers. Since Vista. */
WINBASEAPI VOID InitializeConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Leaves the critical section once, sleeps, and enters it again. May wake spuriously. Fails with ERROR_TIMEOUT. Since
   Vista. */
WINBASEAPI BOOL SleepConditionVariableCS(PCONDITION_VARIABLE ConditionVariable, PCRITICAL_SECTION CriticalSection,
                                         DWORD dwMilliseconds);

/* Releases the SRW lock, sleeps, and acquires it again in the same mode. May wake spuriously. Fails with ERROR_TIMEOUT.
   Differs: a lock that is not held raises STATUS_RESOURCE_NOT_OWNED. Since Vista. */
WINBASEAPI BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE ConditionVariable, PSRWLOCK SRWLock,
                                          DWORD dwMilliseconds, ULONG Flags);

/* Wakes the thread that has slept longest. Has no effect if there is none. Since Vista. */
WINBASEAPI VOID WakeConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Wakes all threads that sleep at this moment. Since Vista. */
WINBASEAPI VOID WakeAllConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Critical sections. rtl.h explains them. */

typedef RTL_CRITICAL_SECTION_DEBUG CRITICAL_SECTION_DEBUG, *PCRITICAL_SECTION_DEBUG, *LPCRITICAL_SECTION_DEBUG;

#define CRITICAL_SECTION_NO_DEBUG_INFO RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO

/* Initializes a free section. Raises STATUS_NO_MEMORY. Since NT 3.1. */
WINBASEAPI VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

/* Initializes a free section with a spin count, 0 for the default, and flags. Fails with ERROR_INVALID_PARAMETER. Since
   NT 4.0, Vista. */
WINBASEAPI BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);
WINBASEAPI BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount, DWORD Flags);

/* Sets the spin count, 0 for none. Returns the previous one. Since NT 4.0. */
WINBASEAPI DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);

/* Frees what the section holds; it must be unused. Since NT 3.1. */
WINBASEAPI VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

/* Blocks until the caller owns the section; recursive. Differs: as RtlEnterCriticalSection. Since NT 3.1. */
WINBASEAPI inline VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern NTSTATUS RtlEnterCriticalSection(PRTL_CRITICAL_SECTION); /* declared here only: windows.h has no such name */
    RtlEnterCriticalSection(lpCriticalSection);
}

/* Enters the section if it is free or owned by the caller. Returns TRUE if it did. Since NT 4.0. */
WINBASEAPI inline BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern ULONG RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION);
    return (BOOL)RtlTryEnterCriticalSection(lpCriticalSection);
}

/* Leaves one level; the last one wakes a waiter. Differs: leaving a section without an owner changes nothing. Since NT
   3.1. */
WINBASEAPI inline VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    extern NTSTATUS RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION);
    RtlLeaveCriticalSection(lpCriticalSection);
}

/* Run-once. rtl.h explains it. */

typedef RTL_RUN_ONCE INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;
typedef BOOL(WINAPI *PINIT_ONCE_FN)(PINIT_ONCE InitOnce, PVOID Parameter, PVOID *Context);

#define INIT_ONCE_STATIC_INIT RTL_RUN_ONCE_INIT
#define INIT_ONCE_CHECK_ONLY RTL_RUN_ONCE_CHECK_ONLY
#define INIT_ONCE_ASYNC RTL_RUN_ONCE_ASYNC
#define INIT_ONCE_INIT_FAILED RTL_RUN_ONCE_INIT_FAILED
#define INIT_ONCE_CTX_RESERVED_BITS RTL_RUN_ONCE_CTX_RESERVED_BITS

/* Initializes a run-once. Zeroed memory is one too. Since Vista. */
WINBASEAPI VOID InitOnceInitialize(PINIT_ONCE InitOnce);

/* Runs the callback once; other callers block until it is done. Returns FALSE, with the callback's last error, if it
   fails. Since Vista. */
WINBASEAPI BOOL InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter, LPVOID *Context);

/* Returns TRUE and the context if it is done; TRUE and *fPending if the caller is to initialize and complete.
   INIT_ONCE_CHECK_ONLY fails with ERROR_GEN_FAILURE before it is done. Since Vista. */
WINBASEAPI BOOL InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending, LPVOID *lpContext);

/* Completes the initialization with a context, or with INIT_ONCE_INIT_FAILED as failed. Fails with ERROR_GEN_FAILURE
   for the loser of an asynchronous race. Since Vista. */
WINBASEAPI BOOL InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext);

/* Barriers. rtl.h explains them. */

typedef RTL_BARRIER SYNCHRONIZATION_BARRIER, *PSYNCHRONIZATION_BARRIER, *LPSYNCHRONIZATION_BARRIER;

#define SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY 0x01
#define SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY 0x02
#define SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE 0x04

/* Initializes a barrier for a number of threads; spin count -1 is 2000. Fails with ERROR_INVALID_PARAMETER. Since 8. */
WINBASEAPI BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, LONG lTotalThreads,
                                                 LONG lSpinCount);

/* Blocks until all threads have arrived. Returns TRUE to one of them. Since 8. */
WINBASEAPI BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, DWORD dwFlags);

/* Waits until all threads have left, except those that entered with SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE. Returns
   TRUE. Since 8. */
WINBASEAPI BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier);

/* Completion ports. See docs/completion-ports.md. */

/* Creates a port that lets some number of threads run at a time; 0 means the number of processors. Differs: creates
   ports only, since no object has overlapped operations: FileHandle must be INVALID_HANDLE_VALUE; a descriptor object
   is ERROR_INVALID_PARAMETER, anything else ERROR_INVALID_HANDLE. Since NT 3.5. */
WINBASEAPI HANDLE WINAPI CreateIoCompletionPort(HANDLE FileHandle, HANDLE ExistingCompletionPort,
                                                ULONG_PTR CompletionKey, DWORD NumberOfConcurrentThreads);

/* Queues a packet. Since NT 3.5. */
WINBASEAPI BOOL WINAPI PostQueuedCompletionStatus(HANDLE CompletionPort, DWORD dwNumberOfBytesTransferred,
                                                  ULONG_PTR dwCompletionKey, LPOVERLAPPED lpOverlapped);

/* Blocks for a packet, or in the Ex form for several, alertable if asked. Fails with WAIT_TIMEOUT, or with
   ERROR_ABANDONED_WAIT_0 when the port is closed. Since NT 3.5, Vista. */
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatus(HANDLE CompletionPort, LPDWORD lpNumberOfBytesTransferred,
                                                 PULONG_PTR lpCompletionKey, LPOVERLAPPED *lpOverlapped,
                                                 DWORD dwMilliseconds);
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatusEx(HANDLE CompletionPort, LPOVERLAPPED_ENTRY lpCompletionPortEntries,
                                                   ULONG ulCount, PULONG ulNumEntriesRemoved, DWORD dwMilliseconds,
                                                   BOOL fAlertable);

/*
 * Private namespaces. A namespace is a directory that processes find by its boundary descriptor: a name, and security
 * identifiers. In a process that has created or opened it, names of objects that begin with its prefix and a backslash are
 * in it. <namespaceapi.h> declares them.
 */

#define CREATE_BOUNDARY_DESCRIPTOR_ADD_APPCONTAINER_SID 0x1
#define PRIVATE_NAMESPACE_FLAG_DESTROY 0x00000001

typedef struct _SID_IDENTIFIER_AUTHORITY {
    BYTE Value[6];
} SID_IDENTIFIER_AUTHORITY, *PSID_IDENTIFIER_AUTHORITY;

typedef struct _SID {
    BYTE Revision;
    BYTE SubAuthorityCount;
    SID_IDENTIFIER_AUTHORITY IdentifierAuthority;
    DWORD SubAuthority[ANYSIZE_ARRAY];
} SID, *PISID;

#define SID_REVISION 1
#define SID_MAX_SUB_AUTHORITIES 15

/* Creates a boundary descriptor, which is not a handle of an object; NULL on failure. Differs: the flag is accepted and
   ignored. Since Vista. */
WINBASEAPI HANDLE WINAPI CreateBoundaryDescriptorA(LPCSTR Name, ULONG Flags);
WINBASEAPI HANDLE WINAPI CreateBoundaryDescriptorW(LPCWSTR Name, ULONG Flags);

/* Adds a security identifier to the boundary; the descriptor may move. Fails with ERROR_INVALID_SID, and with
   ERROR_INVALID_PARAMETER for an integrity level. Differs: identifiers distinguish boundaries; no process is refused.
   Since Vista. */
WINBASEAPI BOOL WINAPI AddSIDToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID RequiredSid);

/* Adds an integrity level (S-1-16-n), one at most. Differs: it distinguishes boundaries; no process is refused. Since 7. */
WINBASEAPI BOOL WINAPI AddIntegrityLabelToBoundaryDescriptor(HANDLE *BoundaryDescriptor, PSID IntegrityLabel);

/* Frees a boundary descriptor; namespaces stay. Since Vista. */
WINBASEAPI VOID WINAPI DeleteBoundaryDescriptor(HANDLE BoundaryDescriptor);

/* Creates a namespace and gives it a prefix in this process. Fails with ERROR_ALREADY_EXISTS if there is one within the
   boundary, with ERROR_DUP_NAME if the prefix is taken. Since Vista. */
WINBASEAPI HANDLE WINAPI CreatePrivateNamespaceA(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes,
                                                 LPVOID lpBoundaryDescriptor, LPCSTR lpAliasPrefix);
WINBASEAPI HANDLE WINAPI CreatePrivateNamespaceW(LPSECURITY_ATTRIBUTES lpPrivateNamespaceAttributes,
                                                 LPVOID lpBoundaryDescriptor, LPCWSTR lpAliasPrefix);

/* Opens a namespace that a process has created. Fails with ERROR_PATH_NOT_FOUND if there is none. Since Vista. */
WINBASEAPI HANDLE WINAPI OpenPrivateNamespaceA(LPVOID lpBoundaryDescriptor, LPCSTR lpAliasPrefix);
WINBASEAPI HANDLE WINAPI OpenPrivateNamespaceW(LPVOID lpBoundaryDescriptor, LPCWSTR lpAliasPrefix);

/* Closes a namespace; with PRIVATE_NAMESPACE_FLAG_DESTROY no process opens it any more. Its objects stay. It ends with the
   last handle of any process. Since Vista. */
WINBASEAPI BOOLEAN WINAPI ClosePrivateNamespace(HANDLE Handle, ULONG Flags);

#define CreateBoundaryDescriptor INTERLOCK_AW(CreateBoundaryDescriptor)
#define CreatePrivateNamespace INTERLOCK_AW(CreatePrivateNamespace)
#define OpenPrivateNamespace INTERLOCK_AW(OpenPrivateNamespace)

INTERLOCK_END

#endif
