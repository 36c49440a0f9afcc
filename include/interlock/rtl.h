/*
 * rtl.h: the runtime, for kernel and user mode. Exceptions, last errors, strings, dates, address waits, SRW locks,
 * run-once, critical sections, condition variables, resources, barriers. RtlFailFast is in ntdef.h, because the list
 * operations use it.
 *
 * Functions that are inline are exported too, for callers that take their address or use another language.
 */
#ifndef INTERLOCK_RTL_H
#define INTERLOCK_RTL_H

#include <interlock/exception.h>
#include <interlock/ntdef.h>
#include <interlock/rtlstring.h>
#include <interlock/userlock.h>
#include <interlock/winerror.h>

INTERLOCK_BEGIN

/*
 * Exceptions. An exception is raised by software; faults of the machine remain signals of the host. The vectored
 * handlers are called first, then the frames of __try, then the filter of unhandled exceptions; after that it is a
 * bugcheck. A handler that returns EXCEPTION_CONTINUE_EXECUTION ends the search: the continue handlers are called, and
 * the raise returns. If the exception is noncontinuable, STATUS_NONCONTINUABLE_EXCEPTION goes to the frames. Handlers
 * may register and remove handlers.
 */

/* Raises a status as a noncontinuable exception. Does not return. Since NT 3.1. */
NTSYSAPI DECLSPEC_NORETURN VOID RtlRaiseStatus(NTSTATUS Status);

typedef LONG(NTAPI *PRTLP_UNHANDLED_EXCEPTION_FILTER)(PEXCEPTION_POINTERS ExceptionInfo);

/* Raises the record. Returns only if a handler continues. Differs: faults of the machine remain signals of the host;
   ContextRecord is NULL. Since NT 3.1. */
NTSYSAPI VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);

/* Registers a handler that is called before all frames, as the first or last. Returns a handle; NULL if memory is
   exhausted. Differs: called for raised exceptions, not for faults. Since XP. */
NTSYSAPI PVOID RtlAddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);

/* Removes a handler. Returns 0 if it is not registered. Since XP. */
NTSYSAPI ULONG RtlRemoveVectoredExceptionHandler(PVOID Handle);

/* Registers a handler that is called when an exception is continued. Returns a handle; NULL if memory is exhausted.
   Since Server 2003. */
NTSYSAPI PVOID RtlAddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);

/* Removes a handler. Returns 0 if it is not registered. Since Server 2003. */
NTSYSAPI ULONG RtlRemoveVectoredContinueHandler(PVOID Handle);

/* Sets the filter of unhandled exceptions and returns the previous one. Differs: Windows returns nothing. Since Server
   2003. */
NTSYSAPI PRTLP_UNHANDLED_EXCEPTION_FILTER RtlSetUnhandledExceptionFilter(PRTLP_UNHANDLED_EXCEPTION_FILTER Filter);

/* Calls that filter. Returns EXCEPTION_CONTINUE_SEARCH if there is none. Since XP. */
NTSYSAPI LONG RtlUnhandledExceptionFilter(PEXCEPTION_POINTERS ExceptionInfo);

/*
 * The thread environment block. Its first 112 bytes are those of Windows, as far as threads use them: the members that are
 * not named are not used. The rest is private: TlsGetValue and the others are the way to it.
 */

typedef struct _TEB {
    NT_TIB NtTib; /* Self, StackBase and StackLimit; no exception list */
    PVOID EnvironmentPointer;
    CLIENT_ID ClientId;
    PVOID ActiveRpcHandle;
    PVOID ThreadLocalStoragePointer;
    struct _PEB *ProcessEnvironmentBlock;
    ULONG LastErrorValue;
    ULONG CountOfOwnedCriticalSections;
    NTSTATUS LastStatusValue; /* what RtlNtStatusToDosError last mapped */
    PVOID ThreadPoolData;     /* the pool's record of a worker; NULL: the thread is none */
} TEB, *PTEB;

C_ASSERT(FIELD_OFFSET(TEB, ClientId) == 64 && FIELD_OFFSET(TEB, LastErrorValue) == 104);

/* Last error and last status. Each thread has its own. */

/* Returns the Win32 error of a status, ERROR_MR_MID_NOT_FOUND if there is none. The status becomes the thread's last
   status. Differs: knows the statuses of ntstatus.h. Since NT 3.1. */
NTSYSAPI ULONG RtlNtStatusToDosError(NTSTATUS Status);

/* Returns the Win32 error of a status and leaves the last status alone. Since XP. */
NTSYSAPI ULONG RtlNtStatusToDosErrorNoTeb(NTSTATUS Status);

/* Returns the thread's last error. Since XP. */
NTSYSAPI ULONG RtlGetLastWin32Error(VOID);

/* Sets the thread's last error. Since XP. */
NTSYSAPI VOID RtlSetLastWin32Error(ULONG Win32Error);
NTSYSAPI VOID RtlRestoreLastWin32Error(ULONG Win32Error);

/* Returns the thread's last status. Since XP. */
NTSYSAPI NTSTATUS RtlGetLastNtStatus(VOID);

/* Sets the last status, and the last error to its Win32 error. Since XP. */
NTSYSAPI VOID RtlSetLastWin32ErrorAndNtStatusFromNtStatus(NTSTATUS Status);

/* Fiber-local storage. FlsAlloc and the others of win32/thread.h, with statuses. */

/* Allocates an index, with a callback for values that are not NULL. Returns STATUS_NO_MEMORY if there is none. Since
   10. */
NTSYSAPI NTSTATUS RtlFlsAlloc(VOID (*Callback)(PVOID FlsData), PULONG FlsIndex);

/* Frees an index, after the callbacks of its values. Returns STATUS_INVALID_PARAMETER for a bad index, here and below.
   Since 10. */
NTSYSAPI NTSTATUS RtlFlsFree(ULONG FlsIndex);

/* Stores or sets the value of the fiber. Since 10. */
NTSYSAPI NTSTATUS RtlFlsGetValue(ULONG FlsIndex, PVOID *FlsData);
NTSYSAPI NTSTATUS RtlFlsSetValue(ULONG FlsIndex, PVOID FlsData);

/* Dates. Times are in 100 ns since 1601. */

typedef struct _TIME_FIELDS {
    CSHORT Year; /* 1601 to 30827 */
    CSHORT Month;
    CSHORT Day;
    CSHORT Hour;
    CSHORT Minute;
    CSHORT Second;
    CSHORT Milliseconds;
    CSHORT Weekday; /* 0: Sunday */
} TIME_FIELDS, *PTIME_FIELDS;

C_ASSERT(sizeof(TIME_FIELDS) == 16);

/* Converts a time in 100 ns since 1601 to a date and time of day. Since NT 3.1. */
NTSYSAPI VOID RtlTimeToTimeFields(PLARGE_INTEGER Time, PTIME_FIELDS TimeFields);

/* Converts a date to a time. Returns FALSE if there is no such date. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlTimeFieldsToTime(PTIME_FIELDS TimeFields, PLARGE_INTEGER Time);

/* Stores the seconds since the beginning of 1970 or 1980. Returns FALSE if they do not fit into 32 bits. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlTimeToSecondsSince1970(PLARGE_INTEGER Time, PULONG ElapsedSeconds);
NTSYSAPI BOOLEAN RtlTimeToSecondsSince1980(PLARGE_INTEGER Time, PULONG ElapsedSeconds);

/* Stores the time that is so many seconds after the beginning of 1970 or 1980. Since NT 3.1. */
NTSYSAPI VOID RtlSecondsSince1970ToTime(ULONG ElapsedSeconds, PLARGE_INTEGER Time);
NTSYSAPI VOID RtlSecondsSince1980ToTime(ULONG ElapsedSeconds, PLARGE_INTEGER Time);

/*
 * Address waits. A thread waits until a value changes. The thread that changes it wakes the waiters of its address
 * afterwards; an address without waiters, and NULL, wake nothing.
 */

/* Blocks while AddressSize bytes (1, 2, 4 or 8) at Address equal those at CompareAddress; any alignment. May wake
   spuriously. Returns STATUS_TIMEOUT, or STATUS_INVALID_PARAMETER for another size. Since 8. */
NTSYSAPI NTSTATUS RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                   PLARGE_INTEGER Timeout);

/* Wakes the oldest waiter of the address. The NoFence form is for callers that have already ordered their store.
   Differs: both forms order it. Since 8. */
NTSYSAPI inline VOID RtlWakeAddressSingle(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressSingle(Address);
    }
}
NTSYSAPI inline VOID RtlWakeAddressSingleNoFence(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressSingle(Address);
    }
}

/* Wakes all waiters of the address. The NoFence form is for callers that have already ordered their store. Differs:
   both forms order it. Since 8. */
NTSYSAPI inline VOID RtlWakeAddressAll(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressAll(Address);
    }
}
NTSYSAPI inline VOID RtlWakeAddressAllNoFence(PVOID Address)
{
    if (!RtlpIsAddressQuiet(Address)) {
        RtlpWakeAddressAll(Address);
    }
}

/*
 * Slim reader/writer locks. Eight bytes at any address; zeroed memory is a free lock. The lock has no owner: any thread
 * may release it. Not recursive: a thread that acquires again while it holds the lock exclusively deadlocks, a sharer
 * succeeds only while there are no waiters. The word is that of a pushlock, explained in src/ex/pushlock.c: 0 free,
 * 1 held exclusively, 1 + 16n held by n sharers.
 */

/* Converts the only sharer to the exclusive owner and returns TRUE; FALSE if there are other sharers. Never blocks.
   Since 10. */
NTSYSAPI BOOLEAN RtlConvertSRWLockSharedToExclusive(PRTL_SRWLOCK SRWLock);

/* Converts exclusive to shared and lets waiting sharers in. Never blocks. Since 10. */
NTSYSAPI VOID RtlConvertSRWLockExclusiveToShared(PRTL_SRWLOCK SRWLock);

#if INTERLOCK_SRWLOCK_WATCHED
#pragma push_macro("NTSYSAPI")
#undef NTSYSAPI
#define NTSYSAPI static __attribute__((always_inline))
#endif

/* Initializes a free lock. Since Vista. */
NTSYSAPI inline VOID RtlInitializeSRWLock(PRTL_SRWLOCK SRWLock)
{
    RtlpInitializeSRWLock(SRWLock);
}

/* Blocks until the lock is acquired exclusively. Since Vista. */
NTSYSAPI inline VOID RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    RtlpAcquireSRWLockExclusive(SRWLock);
}

/* Blocks until the lock is acquired shared, behind waiting exclusive acquires. Since Vista. */
NTSYSAPI inline VOID RtlAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    RtlpAcquireSRWLockShared(SRWLock);
}

/* Acquires the lock exclusively if it is free. Returns TRUE if it did. Since 7. */
NTSYSAPI inline BOOLEAN RtlTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockExclusive(SRWLock);
}

/* Acquires the lock shared if that is possible at once. Returns TRUE if it did. Since 7. */
NTSYSAPI inline BOOLEAN RtlTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    return RtlpTryAcquireSRWLockShared(SRWLock);
}

/* Releases an exclusive acquire, on any thread. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Since
   Vista. */
NTSYSAPI inline VOID RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    RtlpReleaseSRWLockExclusive(SRWLock);
}

/* Releases a shared acquire, on any thread. Raises STATUS_RESOURCE_NOT_OWNED if the lock is not held. Differs: with
   waiters queued, an exclusive owner looks like one sharer, and releasing it this way goes unnoticed. Since Vista. */
NTSYSAPI inline VOID RtlReleaseSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    RtlpReleaseSRWLockShared(SRWLock);
}

#if INTERLOCK_SRWLOCK_WATCHED
#pragma pop_macro("NTSYSAPI")
#endif

/*
 * Run-once. One-time initialization; zeroed memory has not begun. The low RTL_RUN_ONCE_CTX_RESERVED_BITS bits of a
 * context must be clear.
 */

typedef ULONG RTL_RUN_ONCE_INIT_FN(PRTL_RUN_ONCE RunOnce, PVOID Parameter, PVOID *Context);
typedef RTL_RUN_ONCE_INIT_FN *PRTL_RUN_ONCE_INIT_FN;

/* Initializes a run-once. Zeroed memory is one too. Since Vista. */
NTSYSAPI VOID RtlRunOnceInitialize(PRTL_RUN_ONCE RunOnce);

/* Runs the callback once; other callers block until it is done, and one of them retries after a failure. The callback
   gets the caller's Context, NULL or not, and what it leaves there is kept. Returns STATUS_UNSUCCESSFUL if the callback
   fails. Since Vista. */
NTSYSAPI NTSTATUS RtlRunOnceExecuteOnce(PRTL_RUN_ONCE RunOnce, PRTL_RUN_ONCE_INIT_FN InitFn, PVOID Parameter,
                                        PVOID *Context);

/* Completes the initialization with a context, or with RTL_RUN_ONCE_INIT_FAILED as failed. Returns STATUS_UNSUCCESSFUL
   to the loser of an asynchronous race. Since Vista. */
NTSYSAPI NTSTATUS RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context);

/* Internal: the path where it is not done yet, or flags are given. */
NTSYSAPI NTSTATUS RtlpRunOnceBegin(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context);

/* Internal: the state of one that is done, in the bits that a context leaves free. */
#define RTLP_RUN_ONCE_STATE ((ULONG_PTR)3)
#define RTLP_RUN_ONCE_DONE ((ULONG_PTR)2)

/* Returns STATUS_SUCCESS and the context if it is done, STATUS_PENDING if the caller is to initialize and complete.
   Blocks while another thread initializes, unless RTL_RUN_ONCE_ASYNC. RTL_RUN_ONCE_CHECK_ONLY returns
   STATUS_UNSUCCESSFUL instead of beginning. Since Vista. */
NTSYSAPI inline NTSTATUS RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context)
{
    /* acquire: pairs with the release of the completion, so the caller sees all initialization */
    ULONG_PTR Word = __atomic_load_n((volatile ULONG_PTR *)RunOnce, __ATOMIC_ACQUIRE);
    if (__builtin_expect((Word & RTLP_RUN_ONCE_STATE) != RTLP_RUN_ONCE_DONE || Flags != 0, 0)) {
        return RtlpRunOnceBegin(RunOnce, Flags, Context);
    }
    if (Context != NULL) {
        *Context = (PVOID)(Word & ~RTLP_RUN_ONCE_STATE);
    }
    return STATUS_SUCCESS;
}

/* Critical sections. Recursive; spin before sleeping. See docs/user-mode-locks.md. */

/* Initializes a free section with the default spin count, 2000. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlInitializeCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* Initializes a free section with a spin count, 0 for the default, and flags. Returns STATUS_INVALID_PARAMETER_2 or _3
   for a bad count or bad flags. Since NT 4.0, Vista. */
NTSYSAPI NTSTATUS RtlInitializeCriticalSectionAndSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount);
NTSYSAPI NTSTATUS RtlInitializeCriticalSectionEx(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount, ULONG Flags);

/* Frees the resources of a section that is no longer used. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlDeleteCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* Blocks until the caller owns the section; recursive. Raises STATUS_POSSIBLE_DEADLOCK after two timeouts. Differs: the
   timeout is INTERLOCK_CRITICAL_SECTION_TIMEOUT; the first one is reported on standard error. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* Leaves one level; the last one wakes a waiter, which competes for the section. Differs: a section without an owner is
   STATUS_RESOURCE_NOT_OWNED, and nothing changes. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* Enters the section if it is free or owned by the caller. Returns TRUE if it did. Since NT 4.0. */
NTSYSAPI LOGICAL RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* Sets the spin count, 0 for none. Returns the previous one. Since NT 4.0. */
NTSYSAPI ULONG RtlSetCriticalSectionSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount);

/* Returns TRUE if any thread, or the caller, owns the section. Since Server 2003. */
NTSYSAPI LOGICAL RtlIsCriticalSectionLocked(PRTL_CRITICAL_SECTION CriticalSection);
NTSYSAPI LOGICAL RtlIsCriticalSectionLockedByThread(PRTL_CRITICAL_SECTION CriticalSection);

/* Returns how often the caller has entered the section; 0 if it is not the owner. Since Server 2003. */
NTSYSAPI ULONG RtlGetCriticalSectionRecursionCount(PRTL_CRITICAL_SECTION CriticalSection);

/* Makes sections that are initialized later create the event of their waiters at once, or fail to initialize. Since
   XP. */
NTSYSAPI VOID RtlEnableEarlyCriticalSectionEventCreation(VOID);

/* Reports the sections with debug information that a thread owns. Differs: on standard error. Since XP. */
NTSYSAPI VOID RtlCheckForOrphanedCriticalSections(HANDLE Thread);

/*
 * Condition variables. Eight bytes at any address; zeroed memory is ready to use. Sleeping releases the lock once and
 * acquires it again in the same mode before it returns, whatever the status. A wake affects only threads that sleep at
 * that moment. Sleepers may wake spuriously: check the condition again.
 */

/* Initializes a condition variable without sleepers. Since Vista. */
NTSYSAPI VOID RtlInitializeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);

/* Leaves the critical section once, sleeps, and enters it again. Returns STATUS_SUCCESS when woken, STATUS_TIMEOUT when
   the time is over. Since Vista. */
NTSYSAPI NTSTATUS RtlSleepConditionVariableCS(PRTL_CONDITION_VARIABLE ConditionVariable,
                                              PRTL_CRITICAL_SECTION CriticalSection, PLARGE_INTEGER Timeout);

/* Releases the SRW lock, sleeps, and acquires it again in the same mode. Returns STATUS_SUCCESS, STATUS_TIMEOUT, or
   STATUS_INVALID_PARAMETER for unknown flags, with the lock held. Differs: a lock that is not held raises
   STATUS_RESOURCE_NOT_OWNED. Since Vista. */
NTSYSAPI NTSTATUS RtlSleepConditionVariableSRW(PRTL_CONDITION_VARIABLE ConditionVariable, PRTL_SRWLOCK SRWLock,
                                               PLARGE_INTEGER Timeout, ULONG Flags);

/* Wakes the thread that has slept longest. Has no effect if there is none. Since Vista. */
NTSYSAPI VOID RtlWakeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);

/* Wakes all threads that sleep at this moment. Since Vista. */
NTSYSAPI VOID RtlWakeAllConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);

/* User-mode resources. Shared or exclusive, recursive for the owner. */

typedef struct _RTL_RESOURCE {
    RTL_CRITICAL_SECTION CriticalSection;
    HANDLE SharedSemaphore;
    volatile ULONG NumberOfWaitingShared;
    ULONG Reserved;
    HANDLE ExclusiveSemaphore;
    volatile ULONG NumberOfWaitingExclusive;
    volatile LONG NumberOfActive; /* 0 free, the number of sharers, or minus the recursion count of the owner */
    HANDLE ExclusiveOwnerThread;  /* its id; NULL: none */
    ULONG Flags;
    PRTL_RESOURCE_DEBUG DebugInfo;
} RTL_RESOURCE, *PRTL_RESOURCE;

C_ASSERT(sizeof(RTL_RESOURCE) == 96);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, ExclusiveSemaphore) == 56);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, NumberOfActive) == 68);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, ExclusiveOwnerThread) == 72);
C_ASSERT(FIELD_OFFSET(RTL_RESOURCE, DebugInfo) == 88);

#define RTL_RESOURCE_FLAG_LONG_TERM ((ULONG)0x00000001) /* do not report long waits */

/* Initializes a free resource. Raises STATUS_NO_MEMORY or STATUS_INSUFFICIENT_RESOURCES. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeResource(PRTL_RESOURCE Resource);

/* Frees what the resource holds; it must be unused. Since NT 3.1. */
NTSYSAPI VOID RtlDeleteResource(PRTL_RESOURCE Resource);

/* Acquires the resource shared, ahead of exclusive waiters and also as its owner. With Wait FALSE it returns FALSE
   instead of blocking. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlAcquireResourceShared(PRTL_RESOURCE Resource, BOOLEAN Wait);

/* Acquires the resource exclusively; recursive. With Wait FALSE it returns FALSE instead of blocking. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlAcquireResourceExclusive(PRTL_RESOURCE Resource, BOOLEAN Wait);

/* Releases one acquire. Raises STATUS_RESOURCE_NOT_OWNED if there is none. Since NT 3.1. */
NTSYSAPI VOID RtlReleaseResource(PRTL_RESOURCE Resource);

/* Converts shared to exclusive: at once for the only sharer. Otherwise it releases the share while it waits, so other
   threads may own the resource exclusively first. Since NT 3.1. */
NTSYSAPI VOID RtlConvertSharedToExclusive(PRTL_RESOURCE Resource);

/* Converts exclusive to shared and lets waiting sharers in. Since NT 3.1. */
NTSYSAPI VOID RtlConvertExclusiveToShared(PRTL_RESOURCE Resource);

/* Prints the state. Differs: on standard error. Since NT 3.1. */
NTSYSAPI VOID RtlDumpResource(PRTL_RESOURCE Resource);

/* Barriers. A number of threads wait for each other. */

#define RTL_BARRIER_FLAGS_SPIN_ONLY 0x00000001
#define RTL_BARRIER_FLAGS_BLOCK_ONLY 0x00000002
#define RTL_BARRIER_FLAGS_NO_DELETE 0x00000004 /* the deleting thread knows otherwise that this one has left */

/* Initializes a barrier for a number of threads. SpinCount MAXULONG is the default. Returns STATUS_INVALID_PARAMETER_2
   for no threads. Since 8. */
NTSYSAPI NTSTATUS RtlInitBarrier(PRTL_BARRIER Barrier, ULONG TotalThreads, ULONG SpinCount);

/* Waits until all threads have left, except those that entered with RTL_BARRIER_FLAGS_NO_DELETE. Since 8. */
NTSYSAPI NTSTATUS RtlDeleteBarrier(PRTL_BARRIER Barrier);

/* Blocks until all threads have arrived; spins first unless the flags say otherwise. Returns TRUE to one of them. The
   second form is for a barrier that will be deleted, whatever the flags say. Raises STATUS_INVALID_PARAMETER_2 for
   unknown flags. Since 8. */
NTSYSAPI BOOLEAN RtlBarrier(PRTL_BARRIER Barrier, ULONG Flags);
NTSYSAPI BOOLEAN RtlBarrierForDelete(PRTL_BARRIER Barrier, ULONG Flags);

INTERLOCK_END

#endif
