/*
 * rtl.h: the runtime, for kernel and user mode. Exceptions, last errors, strings, dates, address waits, SRW locks,
 * run-once, critical sections, condition variables, resources, barriers. RtlFailFast is in ntdef.h, because the list
 * operations use it.
 *
 * Functions that are inline are exported too, for callers that take their address or use another language.
 */
#ifndef INTERLOCK_RTL_H
#define INTERLOCK_RTL_H

#include <stdarg.h>

#include <interlock/exception.h>
#include <interlock/ntdef.h>
#include <interlock/usermode.h>
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

/*
 * Counted strings. UNICODE_STRING has 16-bit characters, STRING (ANSI_STRING, OEM_STRING, UTF8_STRING) bytes; lengths are in
 * bytes. The ANSI and OEM code pages are UTF-8.
 *
 * Functions that allocate take paged pool with the tag Strg, so ExFreePool frees such a buffer too, and the free functions
 * here free a buffer that a driver took from pool. All of them can be called at any IRQL if they allocate nothing and the
 * memory of the strings is not pageable; allocating needs APC_LEVEL or below.
 *
 * These functions set up the structure; the characters stay where they are.
 */

/* Describes a terminated string, truncated to 32766 characters; NULL is the empty string. The Ex form returns
   STATUS_NAME_TOO_LONG instead of truncating. Since NT 3.1, XP. */
NTSYSAPI VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);
NTSYSAPI NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString);

/* Describes a terminated string of bytes, truncated to 65534; NULL is the empty string. The Ex forms return
   STATUS_NAME_TOO_LONG instead of truncating. Since NT 3.1, 10, NT 3.1, XP, 10, 10. */
NTSYSAPI VOID RtlInitString(PSTRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitStringEx(PSTRING DestinationString, PCSZ SourceString);
NTSYSAPI VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitAnsiStringEx(PANSI_STRING DestinationString, PCSZ SourceString);
NTSYSAPI VOID RtlInitUTF8String(PUTF8_STRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitUTF8StringEx(PUTF8_STRING DestinationString, PCSZ SourceString);

/* Describes an empty string in a buffer of this many bytes. Since 2000. */
FORCEINLINE VOID RtlInitEmptyUnicodeString(PUNICODE_STRING UnicodeString, PWCHAR Buffer, USHORT BufferSize)
{
    UnicodeString->Length = 0;
    UnicodeString->MaximumLength = BufferSize;
    UnicodeString->Buffer = Buffer;
}
FORCEINLINE VOID RtlInitEmptyAnsiString(PANSI_STRING AnsiString, PCHAR Buffer, USHORT BufferSize)
{
    AnsiString->Length = 0;
    AnsiString->MaximumLength = BufferSize;
    AnsiString->Buffer = Buffer;
}

/* Returns STATUS_INVALID_PARAMETER if a string is malformed: an odd length, a length above the maximum, a length without a
   buffer. NULL is valid. Flags must be 0. Since XP. */
NTSYSAPI NTSTATUS RtlValidateUnicodeString(ULONG Flags, PCUNICODE_STRING String);

/* Copying strings. */

/* Copies as many characters as fit; RtlCopyUnicodeString also a terminator, if there is room. A NULL source empties the
   destination. Since NT 3.1. */
NTSYSAPI VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString);
NTSYSAPI VOID RtlCopyString(PSTRING DestinationString, const STRING *SourceString);

/* Appends a string; 16-bit characters with a terminator, if there is room for it. Returns STATUS_BUFFER_TOO_SMALL, and appends
   nothing, if the string does not fit. A NULL source is empty. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, PCUNICODE_STRING Source);
NTSYSAPI NTSTATUS RtlAppendUnicodeToString(PUNICODE_STRING Destination, PCWSTR Source);
NTSYSAPI NTSTATUS RtlAppendStringToString(PSTRING Destination, const STRING *Source);
NTSYSAPI NTSTATUS RtlAppendAsciizToString(PSTRING Destination, PCSZ Source);

/* Allocates a terminated copy. Returns FALSE if memory is exhausted or the string is too long. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlCreateUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);

#define RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE 0x00000001
#define RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING 0x00000002

/* Allocates a copy of a string, terminated if asked; an empty one without memory, unless asked. Returns STATUS_NO_MEMORY,
   STATUS_NAME_TOO_LONG or STATUS_INVALID_PARAMETER on failure. Since XP. */
NTSYSAPI NTSTATUS RtlDuplicateUnicodeString(ULONG Flags, PCUNICODE_STRING StringIn, PUNICODE_STRING StringOut);

/* Frees the buffer of a string and makes it empty. Since NT 3.1, NT 3.1, NT 3.1, 10. */
NTSYSAPI VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString);
NTSYSAPI VOID RtlFreeAnsiString(PANSI_STRING AnsiString);
NTSYSAPI VOID RtlFreeOemString(POEM_STRING OemString);
NTSYSAPI VOID RtlFreeUTF8String(PUTF8_STRING Utf8String);

/* Comparing strings. Without regard to case, the upper case of the characters is compared; in strings of bytes, only ASCII
   letters have one. */

/* Compares two strings by the values of their characters, or of their upper case. Returns a negative, zero or positive
   number. Lengths are in characters. Since NT 3.1, Vista. */
NTSYSAPI LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI LONG RtlCompareUnicodeStrings(PCWCH String1, SIZE_T String1Length, PCWCH String2, SIZE_T String2Length,
                                       BOOLEAN CaseInSensitive);

/* Compares two strings of bytes, as unsigned values. Returns a negative, zero or positive number. Since NT 3.1. */
NTSYSAPI LONG RtlCompareString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

/* Returns TRUE if the strings are equal, ignoring case if asked. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI BOOLEAN RtlEqualString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

/* Returns TRUE if the first string begins the second one, ignoring case if asked. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlPrefixUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI BOOLEAN RtlPrefixString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

#define HASH_STRING_ALGORITHM_DEFAULT 0
#define HASH_STRING_ALGORITHM_X65599 1
#define HASH_STRING_ALGORITHM_INVALID 0xffffffff

/* Stores a hash of a string: each step multiplies by 65599 and adds a character. Returns STATUS_INVALID_PARAMETER for a NULL
   pointer and an unknown algorithm. Since XP. */
NTSYSAPI NTSTATUS RtlHashUnicodeString(PCUNICODE_STRING String, BOOLEAN CaseInSensitive, ULONG HashAlgorithm,
                                       PULONG HashValue);

/* Upper and lower case. */

/* Returns the upper or lower case of a character. Differs: by Unicode's tables for the basic multilingual plane. Since NT
   3.1, NT 3.5. */
NTSYSAPI WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter);
NTSYSAPI WCHAR RtlDowncaseUnicodeChar(WCHAR SourceCharacter);

/* Stores the upper or lower case of a string, in a buffer that is allocated if asked; there is no terminator. Source and
   destination may be the same. Returns STATUS_BUFFER_OVERFLOW if the destination is too small, STATUS_NO_MEMORY. Since NT
   3.1. */
NTSYSAPI NTSTATUS RtlUpcaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                         BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlDowncaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                           BOOLEAN AllocateDestinationString);

/* Returns the upper case of an ASCII letter, other bytes as they are. Since NT 3.1. */
NTSYSAPI CHAR RtlUpperChar(CHAR Character);

/* Copies as many bytes as fit, ASCII letters in upper case. Since NT 3.1. */
NTSYSAPI VOID RtlUpperString(PSTRING DestinationString, const STRING *SourceString);

/* Numbers. A base is 2, 8, 10 or 16, or 0 for the default; others are STATUS_INVALID_PARAMETER. */

/* Stores the digits of a number, in upper case, terminated. Base 0 is 10. Returns STATUS_BUFFER_OVERFLOW if they do not fit;
   Length is then the length that they need. Since NT 3.1, 2000. */
NTSYSAPI NTSTATUS RtlIntegerToUnicodeString(ULONG Value, ULONG Base, PUNICODE_STRING String);
NTSYSAPI NTSTATUS RtlInt64ToUnicodeString(ULONGLONG Value, ULONG Base, PUNICODE_STRING String);
#define RtlIntPtrToUnicodeString(Value, Base, String) RtlInt64ToUnicodeString((Value), (Base), (String))

/* Stores the digits of a number in a buffer of OutputLength bytes, terminated if there is room. Base 0 is 10. Returns
   STATUS_BUFFER_OVERFLOW if they do not fit, STATUS_ACCESS_VIOLATION for a NULL buffer. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlIntegerToChar(ULONG Value, ULONG Base, ULONG OutputLength, PSTR String);

/* Converts a number: blanks, a sign, digits up to the first other character; no digits are 0. Base 0 takes the prefixes 0x,
   0o and 0b, otherwise it is 10. Overflow wraps around. An empty counted string is STATUS_INVALID_PARAMETER, a NULL value
   STATUS_ACCESS_VIOLATION. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlUnicodeStringToInteger(PCUNICODE_STRING String, ULONG Base, PULONG Value);
NTSYSAPI NTSTATUS RtlCharToInteger(PCSZ String, ULONG Base, PULONG Value);

/* Converts a 64-bit number in the same way, and stores where the number ends, unless EndPointer is NULL. Returns
   STATUS_INVALID_PARAMETER for an empty string. Since 10. */
NTSYSAPI NTSTATUS RtlUnicodeStringToInt64(PCUNICODE_STRING String, ULONG Base, PLONG64 Number, PWSTR *EndPointer);

/* Converts {XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX} to a GUID. Returns STATUS_INVALID_PARAMETER for anything else, and leaves
   the GUID alone. Characters behind the brace are not read. Since 2000. */
NTSYSAPI NTSTATUS RtlGUIDFromString(PCUNICODE_STRING GuidString, GUID *Guid);

/* Allocates the terminated string of a GUID, in upper case. Returns STATUS_NO_MEMORY on failure. Since 2000. */
NTSYSAPI NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING GuidString);

/*
 * Strings of bytes to and from UNICODE_STRING. Malformed input (an invalid byte sequence, half of a surrogate pair) becomes
 * U+FFFD.
 */

/* Converts a string, terminated, in a buffer that is allocated if asked. Returns STATUS_BUFFER_OVERFLOW if the destination is
   too small: nothing is converted then, and Length is the length that the result needs. STATUS_INVALID_PARAMETER_2: the
   result would be too long. STATUS_NO_MEMORY. Since NT 3.1, NT 3.1, 10. */
NTSYSAPI NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString, PCANSI_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlOemStringToUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                              BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUTF8StringToUnicodeString(PUNICODE_STRING DestinationString, PCUTF8_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);

/* Converts a string to bytes, in the same way; the Upcase form to upper case. Since NT 3.1, NT 3.1, 10. */
NTSYSAPI NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUnicodeStringToUTF8String(PUTF8_STRING DestinationString, PCUNICODE_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);

/* Converts a string to the OEM code page, in the same way. Returns STATUS_UNMAPPABLE_CHARACTER, and converts nothing, if the
   string is malformed. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                              BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                    BOOLEAN AllocateDestinationString);

/* Converts a string in the same way, without a terminator; an empty one becomes a string without a buffer. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlOemStringToCountedUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                           BOOLEAN AllocateDestinationString);

/* Returns the bytes that a converted string needs, with its terminator. Since NT 3.1. */
NTSYSAPI ULONG RtlxAnsiStringToUnicodeSize(PCANSI_STRING AnsiString);
NTSYSAPI ULONG RtlxOemStringToUnicodeSize(PCOEM_STRING OemString);
NTSYSAPI ULONG RtlxUnicodeStringToAnsiSize(PCUNICODE_STRING UnicodeString);
NTSYSAPI ULONG RtlxUnicodeStringToOemSize(PCUNICODE_STRING UnicodeString);
#define NLS_MB_CODE_PAGE_TAG TRUE
#define NLS_MB_OEM_CODE_PAGE_TAG TRUE
#define RtlAnsiStringToUnicodeSize(String) RtlxAnsiStringToUnicodeSize(String)
#define RtlOemStringToUnicodeSize(String) RtlxOemStringToUnicodeSize(String)
#define RtlUnicodeStringToAnsiSize(String) RtlxUnicodeStringToAnsiSize(String)
#define RtlUnicodeStringToOemSize(String) RtlxUnicodeStringToOemSize(String)
#define RtlUnicodeStringToCountedOemSize(String) ((ULONG)(RtlUnicodeStringToOemSize(String) - 1))
#define RtlOemStringToCountedUnicodeSize(String) ((ULONG)(RtlOemStringToUnicodeSize(String) - sizeof(WCHAR)))

/* Buffers of bytes to and from 16-bit characters. Sizes are in bytes; only a terminator of the source gives one to the result,
   and a character that does not fit whole is left out. */

/* Converts as much as fits. Stores the bytes of the result, unless the pointer is NULL. Always STATUS_SUCCESS. Since NT
   3.1. */
NTSYSAPI NTSTATUS RtlMultiByteToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString,
                                         const CHAR *MultiByteString, ULONG BytesInMultiByteString);
NTSYSAPI NTSTATUS RtlUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString,
                                         PULONG BytesInMultiByteString, PCWCH UnicodeString, ULONG BytesInUnicodeString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString,
                                               PULONG BytesInMultiByteString, PCWCH UnicodeString,
                                               ULONG BytesInUnicodeString);

/* Converts as much as fits, in the OEM code page. Returns STATUS_BUFFER_OVERFLOW if that is not all. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlOemToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString,
                                   PCCH OemString, ULONG BytesInOemString);
NTSYSAPI NTSTATUS RtlUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString,
                                   PCWCH UnicodeString, ULONG BytesInUnicodeString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString,
                                         PCWCH UnicodeString, ULONG BytesInUnicodeString);

/* Stores the bytes that a whole conversion needs. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlMultiByteToUnicodeSize(PULONG BytesInUnicodeString, const CHAR *MultiByteString,
                                            ULONG BytesInMultiByteString);
NTSYSAPI NTSTATUS RtlUnicodeToMultiByteSize(PULONG BytesInMultiByteString, PCWCH UnicodeString,
                                            ULONG BytesInUnicodeString);

/* Converts as much as fits, or with a NULL destination stores the bytes that the result needs. Returns
   STATUS_SOME_NOT_MAPPED, a success, if something became U+FFFD, and STATUS_BUFFER_TOO_SMALL if the result did not fit;
   STATUS_INVALID_PARAMETER without a destination or a count, _4 without a source, _5 for an odd number of bytes. Since 7. */
NTSYSAPI NTSTATUS RtlUTF8ToUnicodeN(PWSTR UnicodeStringDestination, ULONG UnicodeStringMaxByteCount,
                                    PULONG UnicodeStringActualByteCount, PCCH UTF8StringSource,
                                    ULONG UTF8StringByteCount);
NTSYSAPI NTSTATUS RtlUnicodeToUTF8N(PCHAR UTF8StringDestination, ULONG UTF8StringMaxByteCount,
                                    PULONG UTF8StringActualByteCount, PCWCH UnicodeStringSource,
                                    ULONG UnicodeStringByteCount);

/* Formatting, for ntstrsafe.h. The formats of DbgPrint: those of C with %wZ and %Z for counted strings, %ws and %hs, %S for the
   other kind of characters, and the sizes I64, I32 and I; l is 32 bits. */

/* Formats into a buffer of Count characters, truncated and terminated, or measures if Count is 0. Returns the length of the
   whole text; -1 on failure. Only in Interlock. */
NTSYSAPI int InterlockFormatBytes(char *Buffer, size_t Count, const char *Format, va_list Arguments);
NTSYSAPI int InterlockFormatUnicode(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);

/* Formats without a terminator. Returns the length of the whole text; -1 on failure. Only in Interlock. */
NTSYSAPI int InterlockFormatUnterminated(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);

INTERLOCK_END

#endif
