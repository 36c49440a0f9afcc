/*
 * rtl.h: the runtime, for kernel and user mode. Exceptions, last errors, strings, dates, address waits, SRW locks,
 * run-once, critical sections, condition variables, resources, barriers; integers and blocks of memory, bitmaps, ordered tables
 * and splay trees, pseudo-random numbers, the version of Windows; the thread pool. RtlFailFast is in ntdef.h, because the list
 * operations use it.
 *
 * Functions that are inline are exported too, for callers that take their address or use another language.
 */
#ifndef INTERLOCK_RTL_H
#define INTERLOCK_RTL_H

#include <stdarg.h>

#include <interlock/exception.h>
#include <interlock/interlocked.h>
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
 * The thread environment block. Its first 112 bytes have the layout of Windows; members without a name are not used. The
 * rest is private: use TlsGetValue and related functions.
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
    PVOID ThreadPoolData;     /* the pool's record of a worker; NULL: not a worker */
} TEB, *PTEB;

C_ASSERT(FIELD_OFFSET(TEB, ClientId) == 64 && FIELD_OFFSET(TEB, LastErrorValue) == 104);

/* Last error and last status. Each thread has its own. */

/* Returns the Win32 error of a status, ERROR_MR_MID_NOT_FOUND if there is none. The status becomes the thread's last
   status. Differs: knows the statuses of ntstatus.h. Since NT 3.1. */
NTSYSAPI ULONG RtlNtStatusToDosError(NTSTATUS Status);

/* Returns the Win32 error of a status and leaves the last status alone. Since XP. */
NTSYSAPI ULONG RtlNtStatusToDosErrorNoTeb(NTSTATUS Status);

/* Returns the calling thread's last error, as GetLastError does. Since XP. */
NTSYSAPI ULONG RtlGetLastWin32Error(VOID);

/* Sets the calling thread's last error, as SetLastError does. Since XP. */
NTSYSAPI VOID RtlSetLastWin32Error(ULONG Win32Error);
NTSYSAPI VOID RtlRestoreLastWin32Error(ULONG Win32Error);

/* Returns the status that the calling thread's last failure was converted from. Since XP. */
NTSYSAPI NTSTATUS RtlGetLastNtStatus(VOID);

/* Sets the last status, and the last error to its Win32 error. Since XP. */
NTSYSAPI VOID RtlSetLastWin32ErrorAndNtStatusFromNtStatus(NTSTATUS Status);

/* Fiber-local storage. FlsAlloc and the others of win32.h, with statuses. */

/* Allocates an index, with a callback for values that are not NULL. Returns STATUS_NO_MEMORY if there is none. Since
   10. */
NTSYSAPI NTSTATUS RtlFlsAlloc(VOID (*Callback)(PVOID FlsData), PULONG FlsIndex);

/* Frees an index, after the callbacks of its values. Returns STATUS_INVALID_PARAMETER for a bad index, here and below.
   Since 10. */
NTSYSAPI NTSTATUS RtlFlsFree(ULONG FlsIndex);

/* Gets or sets the value of the fiber. Since 10. */
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

/* Stores the time that is ElapsedSeconds after the beginning of 1970 or 1980. Since NT 3.1. */
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

/* Initializes a free lock, as RTL_SRWLOCK_INIT does: the word becomes 0. Since Vista. */
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

/* Prints the resource's owner, its sharers and its waiters. Differs: on standard error. Since NT 3.1. */
NTSYSAPI VOID RtlDumpResource(PRTL_RESOURCE Resource);

/* Barriers. A number of threads wait for each other. */

#define RTL_BARRIER_FLAGS_SPIN_ONLY 0x00000001
#define RTL_BARRIER_FLAGS_BLOCK_ONLY 0x00000002
#define RTL_BARRIER_FLAGS_NO_DELETE 0x00000004 /* the deleting thread learns by other means that this one has left */

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

/* Returns the upper case of an ASCII letter, other bytes unchanged. Since NT 3.1. */
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
   the GUID alone. Characters after the brace are not read. Since 2000. */
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

/* Byte order. This and what follows, up to the version of Windows, is for drivers, at any IRQL where nothing else is said. */

/* Returns the integer with its bytes in the opposite order. Since XP. */
FORCEINLINE USHORT RtlUshortByteSwap(USHORT Source)
{
    return __builtin_bswap16(Source);
}
FORCEINLINE ULONG RtlUlongByteSwap(ULONG Source)
{
    return __builtin_bswap32(Source);
}
FORCEINLINE ULONGLONG RtlUlonglongByteSwap(ULONGLONG Source)
{
    return __builtin_bswap64(Source);
}

/* Unaligned integers. */

#define RtlStoreUshort(Address, Value)                                                                                 \
    do {                                                                                                               \
        const USHORT interlockValue = (USHORT)(Value);                                                                 \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlong(Address, Value)                                                                                  \
    do {                                                                                                               \
        const ULONG interlockValue = (ULONG)(Value);                                                                   \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlonglong(Address, Value)                                                                              \
    do {                                                                                                               \
        const ULONGLONG interlockValue = (ULONGLONG)(Value);                                                           \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlongPtr(Address, Value)                RtlStoreUlonglong(Address, Value)
#define RtlRetrieveUshort(DestAddress, SourceAddress)   memcpy((DestAddress), (SourceAddress), sizeof(USHORT))
#define RtlRetrieveUlong(DestAddress, SourceAddress)    memcpy((DestAddress), (SourceAddress), sizeof(ULONG))

/* Sizes and pointers, rounded to the size of a type. ntdef.h has the forms with a number. */

#define ALIGN_DOWN(Length, Type)                  ALIGN_DOWN_BY(Length, sizeof(Type))
#define ALIGN_UP(Length, Type)                    ALIGN_UP_BY(Length, sizeof(Type))
#define ALIGN_DOWN_POINTER_BY(Address, Alignment) ((PVOID)ALIGN_DOWN_BY(Address, Alignment))
#define ALIGN_UP_POINTER_BY(Address, Alignment)   ((PVOID)ALIGN_UP_BY(Address, Alignment))
#define ALIGN_DOWN_POINTER(Address, Type)         ALIGN_DOWN_POINTER_BY(Address, sizeof(Type))
#define ALIGN_UP_POINTER(Address, Type)           ALIGN_UP_POINTER_BY(Address, sizeof(Type))
#define ROUND_TO_SIZE(Length, Alignment)          (((Length) + ((Alignment)-1)) & ~((Alignment)-1))

/* Bits of shared flags. */

#define RtlInterlockedSetBits(Flags, Flag)                 InterlockedOr((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedAndBits(Flags, Flag)                 InterlockedAnd((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedClearBits(Flags, Flag)               RtlInterlockedAndBits((Flags), ~(Flag))
#define RtlInterlockedXorBits(Flags, Flag)                 InterlockedXor((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedSetBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedSetBits((Flags), (Flag)))
#define RtlInterlockedAndBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedAndBits((Flags), (Flag)))
#define RtlInterlockedClearBitsDiscardReturn(Flags, Flag)  ((void)RtlInterlockedClearBits((Flags), (Flag)))

/* Locally unique identifiers. */

#define RtlEqualLuid(Luid1, Luid2)                                                                                     \
    ((BOOLEAN)((Luid1)->LowPart == (Luid2)->LowPart && (Luid1)->HighPart == (Luid2)->HighPart))
#define RtlIsZeroLuid(Luid) ((BOOLEAN)((Luid)->LowPart == 0 && (Luid)->HighPart == 0))

/* 64-bit integers. Arithmetic wraps around. */

/* Internal: a LARGE_INTEGER of the value. */
FORCEINLINE LARGE_INTEGER InterlockLargeInteger(ULONGLONG Value)
{
    LARGE_INTEGER result;
    result.QuadPart = (LONGLONG)Value;
    return result;
}

/* Returns the integer as a LARGE_INTEGER. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlConvertLongToLargeInteger(LONG SignedInteger)
{
    return InterlockLargeInteger((ULONGLONG)(LONGLONG)SignedInteger);
}
FORCEINLINE LARGE_INTEGER RtlConvertUlongToLargeInteger(ULONG UnsignedInteger)
{
    return InterlockLargeInteger(UnsignedInteger);
}

/* Adds, subtracts, negates 64-bit integers. An overflow wraps around. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerAdd(LARGE_INTEGER Addend1, LARGE_INTEGER Addend2)
{
    return InterlockLargeInteger((ULONGLONG)Addend1.QuadPart + (ULONGLONG)Addend2.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerSubtract(LARGE_INTEGER Minuend, LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger((ULONGLONG)Minuend.QuadPart - (ULONGLONG)Subtrahend.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerNegate(LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger(0 - (ULONGLONG)Subtrahend.QuadPart);
}

/* Shifts by ShiftCount modulo 64; the arithmetic shift keeps the sign. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftLeft(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart << (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftRight(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart >> (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerArithmeticShift(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)(LargeInteger.QuadPart >> (ShiftCount & 63)));
}

/* Multiplies two 32-bit integers to 64 bits. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlEnlargedIntegerMultiply(LONG Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)((LONGLONG)Multiplicand * Multiplier));
}
FORCEINLINE LARGE_INTEGER RtlEnlargedUnsignedMultiply(ULONG Multiplicand, ULONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand * Multiplier);
}

/* Multiplies a 64-bit and a 32-bit integer. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedIntegerMultiply(LARGE_INTEGER Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand.QuadPart * (ULONGLONG)(LONGLONG)Multiplier);
}

/* Divides, and stores the remainder unless the pointer is NULL. A divisor of 0 raises the processor's exception.
 * Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerDivide(LARGE_INTEGER Dividend, LARGE_INTEGER Divisor, PLARGE_INTEGER Remainder)
{
    if (Remainder != NULL)
        Remainder->QuadPart = Dividend.QuadPart % Divisor.QuadPart;
    return InterlockLargeInteger((ULONGLONG)(Dividend.QuadPart / Divisor.QuadPart));
}
FORCEINLINE LARGE_INTEGER RtlExtendedLargeIntegerDivide(LARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)((ULONGLONG)Dividend.QuadPart % Divisor);
    return InterlockLargeInteger((ULONGLONG)Dividend.QuadPart / Divisor);
}
FORCEINLINE ULONG RtlEnlargedUnsignedDivide(ULARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)(Dividend.QuadPart % Divisor);
    return (ULONG)(Dividend.QuadPart / Divisor);
}

/* Divides by a constant: multiplies by its 64-bit reciprocal, takes the upper half and shifts it. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedMagicDivide(LARGE_INTEGER Dividend, LARGE_INTEGER MagicDivisor, CCHAR ShiftCount)
{
    __extension__ typedef unsigned __int128 wide;
    const ULONGLONG magnitude = Dividend.QuadPart < 0 ? 0 - (ULONGLONG)Dividend.QuadPart : (ULONGLONG)Dividend.QuadPart;
    const ULONGLONG high = (ULONGLONG)(((wide)magnitude * (ULONGLONG)MagicDivisor.QuadPart) >> 64);
    const ULONGLONG result = high >> (ShiftCount & 63);
    return InterlockLargeInteger(Dividend.QuadPart < 0 ? 0 - result : result);
}

#define RtlLargeIntegerAnd(Result, Source, Mask)      ((Result).QuadPart = (Source).QuadPart & (Mask).QuadPart)
#define RtlLargeIntegerEqualTo(X, Y)                  ((X).QuadPart == (Y).QuadPart)
#define RtlLargeIntegerNotEqualTo(X, Y)               ((X).QuadPart != (Y).QuadPart)
#define RtlLargeIntegerGreaterThan(X, Y)              ((X).QuadPart > (Y).QuadPart)
#define RtlLargeIntegerGreaterThanOrEqualTo(X, Y)     ((X).QuadPart >= (Y).QuadPart)
#define RtlLargeIntegerLessThan(X, Y)                 ((X).QuadPart < (Y).QuadPart)
#define RtlLargeIntegerLessThanOrEqualTo(X, Y)        ((X).QuadPart <= (Y).QuadPart)
#define RtlLargeIntegerEqualToZero(X)                 ((X).QuadPart == 0)
#define RtlLargeIntegerNotEqualToZero(X)              ((X).QuadPart != 0)
#define RtlLargeIntegerGreaterThanZero(X)             ((X).QuadPart > 0)
#define RtlLargeIntegerGreaterOrEqualToZero(X)        ((X).QuadPart >= 0)
#define RtlLargeIntegerLessThanZero(X)                ((X).QuadPart < 0)
#define RtlLargeIntegerLessOrEqualToZero(X)           ((X).QuadPart <= 0)

/* Memory by words. */

/* Fills memory with a pattern; a partial word at the end is left alone. Since NT 3.1, XP. */
NTSYSAPI VOID RtlFillMemoryUlong(PVOID Destination, SIZE_T Length, ULONG Pattern);
NTSYSAPI VOID RtlFillMemoryUlonglong(PVOID Destination, SIZE_T Length, ULONGLONG Pattern);

/* Returns the number of leading bytes that repeat the pattern, in whole words. Since NT 3.1. */
NTSYSAPI SIZE_T RtlCompareMemoryUlong(PVOID Source, SIZE_T Length, ULONG Pattern);

/* Returns TRUE if all bytes are 0. Since 10. */
NTSYSAPI BOOLEAN RtlIsZeroMemory(PVOID Buffer, SIZE_T Length);

/* Copies memory that will not be read soon. Differs: through the caches. Since XP. */
FORCEINLINE VOID RtlCopyMemoryNonTemporal(VOID UNALIGNED *Destination, const VOID UNALIGNED *Source, SIZE_T Length)
{
    memcpy(Destination, Source, Length);
}

/* Prefetches memory that will be read once. Since XP. */
FORCEINLINE VOID RtlPrefetchMemoryNonTemporal(PVOID Source, SIZE_T Length)
{
    SIZE_T offset;
    for (offset = 0; offset < Length; offset += SYSTEM_CACHE_ALIGNMENT_SIZE)
        __builtin_prefetch((const CHAR *)Source + offset, 0, 0);
}
#define PreFetchCacheLine(Level, Address) __builtin_prefetch(Address)

/*
 * Bitmaps. An RTL_BITMAP describes a buffer of the caller, which is an array of ULONG; bit 0 is the lowest of the first one. A
 * range outside of the bitmap is not changed, and is neither clear nor set. A run is a range of equal bits that cannot be
 * extended.
 *
 * At any IRQL if the buffer is not pageable. Bitmaps have no lock; the caller serializes access.
 */

typedef struct _RTL_BITMAP {
    ULONG SizeOfBitMap; /* in bits */
    PULONG Buffer;
} RTL_BITMAP, *PRTL_BITMAP;

typedef struct _RTL_BITMAP_RUN {
    ULONG StartingIndex;
    ULONG NumberOfBits;
} RTL_BITMAP_RUN, *PRTL_BITMAP_RUN;

C_ASSERT(sizeof(RTL_BITMAP) == 16 && sizeof(RTL_BITMAP_RUN) == 8);

/* Describes a bitmap in a buffer. The bits stay as they are. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap);

/* Clears or sets one bit, which must be inside. Since XP. */
NTSYSAPI VOID RtlClearBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);
NTSYSAPI VOID RtlSetBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);

/* Clears or sets a range of bits that begins at StartingIndex. Since NT 3.1. */
NTSYSAPI VOID RtlClearBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToClear);
NTSYSAPI VOID RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet);

/* Clears or sets all bits of the bitmap. Since NT 3.1. */
NTSYSAPI VOID RtlClearAllBits(PRTL_BITMAP BitMapHeader);
NTSYSAPI VOID RtlSetAllBits(PRTL_BITMAP BitMapHeader);

/* Copies the bits of a bitmap to another one, from bit TargetBit on, as far as both go. Since 8. */
NTSYSAPI VOID RtlCopyBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit);

/* Copies bits TargetBit and following of a bitmap to the beginning of another one, as far as both go. Since 8. */
NTSYSAPI VOID RtlExtractBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit, ULONG NumberOfBits);

/* Bitmaps: testing bits. */

/* Returns TRUE if the bit, which must be inside, is set. Since XP. */
NTSYSAPI BOOLEAN RtlTestBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);

/* Returns 1 if the bit is set, otherwise 0. Since NT 3.1. */
FORCEINLINE BOOLEAN RtlCheckBit(PRTL_BITMAP BitMapHeader, ULONG BitPosition)
{
    return (BitMapHeader->Buffer[BitPosition / 32] >> (BitPosition % 32)) & 1;
}

/* Returns TRUE if all bits of a range are clear, or set; FALSE for an empty range and one that is not inside. Since NT
   3.1. */
NTSYSAPI BOOLEAN RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
NTSYSAPI BOOLEAN RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);

/* Returns the number of clear or set bits. Since NT 3.1. */
NTSYSAPI ULONG RtlNumberOfClearBits(PRTL_BITMAP BitMapHeader);
NTSYSAPI ULONG RtlNumberOfSetBits(PRTL_BITMAP BitMapHeader);

/* Returns the number of clear or set bits in a range; 0 if it is not inside. Since 10. */
NTSYSAPI ULONG RtlNumberOfClearBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
NTSYSAPI ULONG RtlNumberOfSetBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);

/* Returns the number of set bits of an integer. Since 7. */
NTSYSAPI ULONG RtlNumberOfSetBitsUlongPtr(ULONG_PTR Target);

/* Returns the position of the highest or lowest set bit; -1 if there is none. Since XP. */
NTSYSAPI CCHAR RtlFindMostSignificantBit(ULONGLONG Set);
NTSYSAPI CCHAR RtlFindLeastSignificantBit(ULONGLONG Set);

/* Bitmaps: finding ranges. */

/* Returns the first range of NumberToFind clear or set bits at or after HintIndex, or if there is none, the first one of the
   bitmap; 0xFFFFFFFF if there is none at all. A hint outside the bitmap is 0. NumberToFind 0 returns the hint. The
   AndSet and AndClear forms change the bits that they find. Since NT 3.1. */
NTSYSAPI ULONG RtlFindClearBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindSetBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindClearBitsAndSet(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindSetBitsAndClear(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);

/* Returns the number of bits of the first clear or set run at or after FromIndex, and stores where it begins; 0 if there is
   none. Bits before FromIndex do not count. Since 2000, 10. */
NTSYSAPI ULONG RtlFindNextForwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);
NTSYSAPI ULONG RtlFindNextForwardRunSet(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);

/* Returns the number of bits of the last clear run at or before FromIndex, up to FromIndex, and stores where it begins; 0 if
   there is none. Since 2000. */
NTSYSAPI ULONG RtlFindLastBackwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);

/* Returns the number of bits of the first or longest clear run, and stores where it begins; 0 if there is none. Since NT
   3.1. */
NTSYSAPI ULONG RtlFindFirstRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);
NTSYSAPI ULONG RtlFindLongestRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);

/* Stores up to SizeOfRunArray clear runs and returns how many: the first ones, or the longest ones, longest first. Since NT
   3.1. */
NTSYSAPI ULONG RtlFindClearRuns(PRTL_BITMAP BitMapHeader, PRTL_BITMAP_RUN RunArray, ULONG SizeOfRunArray,
                                BOOLEAN LocateLongestRuns);

/*
 * Tables. They copy the elements of their user into nodes that the user's routines allocate and free, and order them by the
 * user's compare routine. RTL_GENERIC_TABLE is a splay tree: a search moves what it finds to the root. RTL_AVL_TABLE is a
 * balanced tree; with RTL_USE_AVL_TABLES defined, the names of generic tables mean it. Tables have no lock: the caller
 * serializes access, also to searches in a splay tree. At any IRQL that the routines and the memory allow.
 */

typedef struct _RTL_SPLAY_LINKS {
    struct _RTL_SPLAY_LINKS *Parent; /* the root's is itself */
    struct _RTL_SPLAY_LINKS *LeftChild;
    struct _RTL_SPLAY_LINKS *RightChild;
} RTL_SPLAY_LINKS, *PRTL_SPLAY_LINKS;

typedef struct _RTL_BALANCED_LINKS {
    struct _RTL_BALANCED_LINKS *Parent; /* the root's is the BalancedRoot of the table */
    struct _RTL_BALANCED_LINKS *LeftChild;
    struct _RTL_BALANCED_LINKS *RightChild;
    CHAR Balance; /* depth of the right subtree minus that of the left one */
    UCHAR Reserved[3];
} RTL_BALANCED_LINKS, *PRTL_BALANCED_LINKS;

typedef enum _TABLE_SEARCH_RESULT {
    TableEmptyTree,
    TableFoundNode,
    TableInsertAsLeft,
    TableInsertAsRight
} TABLE_SEARCH_RESULT;

typedef enum _RTL_GENERIC_COMPARE_RESULTS { GenericLessThan, GenericGreaterThan, GenericEqual } RTL_GENERIC_COMPARE_RESULTS;

struct _RTL_AVL_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_AVL_COMPARE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID FirstStruct,
                                                                  PVOID SecondStruct);
typedef RTL_AVL_COMPARE_ROUTINE *PRTL_AVL_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_AVL_ALLOCATE_ROUTINE(struct _RTL_AVL_TABLE *Table, CLONG ByteSize);
typedef RTL_AVL_ALLOCATE_ROUTINE *PRTL_AVL_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_AVL_FREE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID Buffer);
typedef RTL_AVL_FREE_ROUTINE *PRTL_AVL_FREE_ROUTINE;
typedef NTSTATUS NTAPI RTL_AVL_MATCH_FUNCTION(struct _RTL_AVL_TABLE *Table, PVOID UserData, PVOID MatchData);
typedef RTL_AVL_MATCH_FUNCTION *PRTL_AVL_MATCH_FUNCTION;

typedef struct _RTL_AVL_TABLE {
    RTL_BALANCED_LINKS BalancedRoot; /* its right child is the root */
    PVOID OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    ULONG DepthOfTree;
    PRTL_BALANCED_LINKS RestartKey;
    ULONG DeleteCount;
    PRTL_AVL_COMPARE_ROUTINE CompareRoutine;
    PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_AVL_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_AVL_TABLE, *PRTL_AVL_TABLE;

struct _RTL_GENERIC_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_GENERIC_COMPARE_ROUTINE(struct _RTL_GENERIC_TABLE *Table,
                                                                      PVOID FirstStruct, PVOID SecondStruct);
typedef RTL_GENERIC_COMPARE_ROUTINE *PRTL_GENERIC_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_GENERIC_ALLOCATE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, CLONG ByteSize);
typedef RTL_GENERIC_ALLOCATE_ROUTINE *PRTL_GENERIC_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_GENERIC_FREE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, PVOID Buffer);
typedef RTL_GENERIC_FREE_ROUTINE *PRTL_GENERIC_FREE_ROUTINE;

typedef struct _RTL_GENERIC_TABLE {
    PRTL_SPLAY_LINKS TableRoot;
    LIST_ENTRY InsertOrderList;
    PLIST_ENTRY OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine;
    PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_GENERIC_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_GENERIC_TABLE, *PRTL_GENERIC_TABLE;

C_ASSERT(sizeof(RTL_SPLAY_LINKS) == 24 && sizeof(RTL_BALANCED_LINKS) == 32);
C_ASSERT(sizeof(RTL_GENERIC_TABLE) == 72 && sizeof(RTL_AVL_TABLE) == 104);

typedef struct _UNICODE_PREFIX_TABLE_ENTRY {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    struct _UNICODE_PREFIX_TABLE_ENTRY *NextPrefixTree;
    struct _UNICODE_PREFIX_TABLE_ENTRY *CaseMatch; /* a ring of the entries that differ in case only */
    RTL_SPLAY_LINKS Links;
    PUNICODE_STRING Prefix;
} UNICODE_PREFIX_TABLE_ENTRY, *PUNICODE_PREFIX_TABLE_ENTRY;

typedef struct _UNICODE_PREFIX_TABLE {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    PUNICODE_PREFIX_TABLE_ENTRY NextPrefixTree;
    PUNICODE_PREFIX_TABLE_ENTRY LastNextEntry;
} UNICODE_PREFIX_TABLE, *PUNICODE_PREFIX_TABLE;

C_ASSERT(sizeof(UNICODE_PREFIX_TABLE_ENTRY) == 56 && sizeof(UNICODE_PREFIX_TABLE) == 24);

/* Splay links. The caller links nodes with the macros, and orders them. */

#define RtlInitializeSplayLinks(Links)                                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockLinks = (PRTL_SPLAY_LINKS)(Links);                                                   \
        interlockLinks->Parent = interlockLinks;                                                                       \
        interlockLinks->LeftChild = NULL;                                                                              \
        interlockLinks->RightChild = NULL;                                                                             \
    } while (0)
#define RtlParent(Links)       ((PRTL_SPLAY_LINKS)(Links)->Parent)
#define RtlLeftChild(Links)    ((PRTL_SPLAY_LINKS)(Links)->LeftChild)
#define RtlRightChild(Links)   ((PRTL_SPLAY_LINKS)(Links)->RightChild)
#define RtlIsRoot(Links)       (RtlParent(Links) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsLeftChild(Links)  (RtlLeftChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsRightChild(Links) (RtlRightChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlInsertAsLeftChild(ParentLinks, ChildLinks)                                                                  \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->LeftChild = interlockChild;                                                                   \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)
#define RtlInsertAsRightChild(ParentLinks, ChildLinks)                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->RightChild = interlockChild;                                                                  \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)

/* Moves a node to the root of its tree by rotations, and returns it. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSplay(PRTL_SPLAY_LINKS Links);

/* Removes a node and moves its parent to the root. Returns the root; NULL if the tree is empty. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlDelete(PRTL_SPLAY_LINKS Links);

/* Removes a node and leaves the rest where it is, except for one that takes its place. Updates *Root. Since NT 3.1. */
NTSYSAPI VOID RtlDeleteNoSplay(PRTL_SPLAY_LINKS Links, PRTL_SPLAY_LINKS *Root);

/* Returns the next or previous node in the order of the tree, among those below the node; NULL if there is none. Since NT
   3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreeSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreePredecessor(PRTL_SPLAY_LINKS Links);

/* Returns the next or previous node in the order of the tree; NULL if there is none. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlRealSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlRealPredecessor(PRTL_SPLAY_LINKS Links);

/* Generic tables. The allocate routine gets the size of an element plus that of an RTL_SPLAY_LINKS and a LIST_ENTRY. */

/* Initializes an empty table with the caller's routines, which compare, allocate and free elements. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeGenericTable(PRTL_GENERIC_TABLE Table, PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine,
                                        PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine,
                                        PRTL_GENERIC_FREE_ROUTINE FreeRoutine, PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. Since NT 3.1. */
NTSYSAPI PVOID RtlInsertElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                            PBOOLEAN NewElement);

/* Inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                PBOOLEAN NewElement, PVOID NodeOrParent,
                                                TABLE_SEARCH_RESULT SearchResult);

/* Removes the element that equals Buffer and frees it. Returns FALSE if there is none. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* Returns the element that equals Buffer; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlLookupElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* The same, and stores the node, or the parent that it would have, for the insertion. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first element, or the one that follows the last one returned, in order; NULL after the last one. The element
   becomes the root, which is where the enumeration continues: no other call that splays may come between. Since NT 3.1. */
NTSYSAPI PVOID RtlEnumerateGenericTable(PRTL_GENERIC_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since NT 3.5. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplaying(PRTL_GENERIC_TABLE Table, PVOID *RestartKey);

/* Returns element I, counted from 0 in the order of insertion; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlGetElementGenericTable(PRTL_GENERIC_TABLE Table, ULONG I);

/* Returns the number of elements in the table. Since NT 3.1. */
NTSYSAPI ULONG RtlNumberGenericTableElements(PRTL_GENERIC_TABLE Table);

/* Returns TRUE if the table is empty. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmpty(PRTL_GENERIC_TABLE Table);

/* Balanced tables. The allocate routine gets the size of an element plus that of an RTL_BALANCED_LINKS. */

/* Initializes an empty table with the caller's routines, which compare, allocate and free elements. Since XP. */
NTSYSAPI VOID RtlInitializeGenericTableAvl(PRTL_AVL_TABLE Table, PRTL_AVL_COMPARE_ROUTINE CompareRoutine,
                                           PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine, PRTL_AVL_FREE_ROUTINE FreeRoutine,
                                           PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. The Full form inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                               PBOOLEAN NewElement);
NTSYSAPI PVOID RtlInsertElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                   PBOOLEAN NewElement, PVOID NodeOrParent,
                                                   TABLE_SEARCH_RESULT SearchResult);

/* Removes and frees the element that equals Buffer, or the element of a node found by a search. Returns FALSE if there is
   none. Since XP, 10. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI VOID RtlDeleteElementGenericTableAvlEx(PRTL_AVL_TABLE Table, PVOID NodeOrParent);

/* Returns the element that equals Buffer; NULL if there is none. The Full form also stores the node, or the parent that it
   would have. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI PVOID RtlLookupElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                   TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first one, in order, of the elements that equal Buffer, and stores it as a restart key for
   RtlEnumerateGenericTableWithoutSplayingAvl; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlLookupFirstMatchingElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *RestartKey);

/* Returns the first element, or the one that follows the last one returned, in order; NULL after the last one. The table
   keeps the position, also while elements are inserted and removed. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableAvl(PRTL_AVL_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplayingAvl(PRTL_AVL_TABLE Table, PVOID *RestartKey);

/* Returns the next element that matches, as a directory is read: from *RestartKey, or if it is NULL or elements were deleted
   since, from the element that equals Buffer or would follow it. NextFlag skips the element of the position. MatchFunction,
   if not NULL, returns STATUS_SUCCESS, STATUS_NO_MATCH, or STATUS_NO_MORE_MATCHES to stop. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableLikeADirectory(PRTL_AVL_TABLE Table, PRTL_AVL_MATCH_FUNCTION MatchFunction,
                                                      PVOID MatchData, ULONG NextFlag, PVOID *RestartKey,
                                                      PULONG DeleteCount, PVOID Buffer);

/* Returns element I, counted from 0 in order; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlGetElementGenericTableAvl(PRTL_AVL_TABLE Table, ULONG I);

/* Returns the number of elements in the table. Since XP. */
NTSYSAPI ULONG RtlNumberGenericTableElementsAvl(PRTL_AVL_TABLE Table);

/* Returns TRUE if the table is empty. Since XP. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmptyAvl(PRTL_AVL_TABLE Table);

/* Prefix tables. Entries are paths, which begin with a backslash; one is a prefix of a path if the path equals it or continues
   with a backslash. The caller keeps the entries and their strings. */

/* Initializes an empty table of prefixes. The caller serializes all calls for it. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable);

/* Inserts an entry. Returns FALSE if the table has one with the same string, case included. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlInsertUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING Prefix,
                                        PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Removes an entry that RtlInsertUnicodePrefix has inserted. Its memory belongs to the caller again. Since NT 3.1. */
NTSYSAPI VOID RtlRemoveUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Returns the entry with the longest prefix of a path; NULL if there is none. From character CaseInsensitiveIndex on, case is
   ignored. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlFindUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING FullName,
                                                          ULONG CaseInsensitiveIndex);

/* Returns the first entry, or the one that follows the last one returned; NULL after the last one. The table keeps the
   position, also while entries are inserted and removed. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlNextUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, BOOLEAN Restart);

/* Pseudo-random numbers. A seed is the whole state: the same seed gives the same numbers, and threads with seeds of their own
   do not disturb each other. Not for secrets. */

/* Returns the next number from 0 to MAXLONG - 1 and changes the seed. Differs: the numbers are not those of Windows, where
   all callers share a table. At any IRQL. Since NT 3.1, XP. */
NTSYSAPI ULONG RtlRandom(PULONG Seed);
NTSYSAPI ULONG RtlRandomEx(PULONG Seed);

/* Returns the next number of Lehmer's generator, from 0 to MAXLONG - 1, which is also the new seed. At any IRQL. Since NT
   3.1. */
NTSYSAPI ULONG RtlUniform(PULONG Seed);

/* The version of Windows. 10.0, build 19045, a workstation. */

/* Stores the version; dwOSVersionInfoSize, set by the caller, says which of the two structures it is. Since 2000. */
NTSYSAPI NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW lpVersionInformation);

/* Compares the members that TypeMask names with the version, by the conditions of ConditionMask. Versions are compared from
   the major number on. Returns STATUS_REVISION_MISMATCH if a condition is not true, STATUS_INVALID_PARAMETER if there is
   nothing to compare or no condition for it. Since 2000. */
NTSYSAPI NTSTATUS RtlVerifyVersionInfo(PRTL_OSVERSIONINFOEXW VersionInfo, ULONG TypeMask, ULONGLONG ConditionMask);

/* Returns the mask with the condition for the members of TypeMask. Since 2000. */
NTSYSAPI ULONGLONG VerSetConditionMask(ULONGLONG ConditionMask, ULONG TypeMask, UCHAR Condition);
#define VER_SET_CONDITION(ConditionMask, TypeBitMask, ComparisonType)                                                  \
    ((ConditionMask) = VerSetConditionMask((ConditionMask), (TypeBitMask), (ComparisonType)))

/*
 * Pools. The thread pool, and at the end the older work items, registered waits and timer queues. See docs/thread-pool.md. Objects
 * are allocated (STATUS_NO_MEMORY, STATUS_INVALID_PARAMETER) and released; a released object lives until its callbacks have
 * returned.
 */

struct _IO_STATUS_BLOCK;

typedef VOID (*PTP_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID ApcContext,
                                struct _IO_STATUS_BLOCK *IoStatusBlock, PTP_IO Io);
typedef WAITORTIMERCALLBACKFUNC RTL_WAITORTIMERCALLBACKFUNC;

/* Allocates a pool. It gets threads when it has objects. Since Vista. */
NTSYSAPI NTSTATUS TpAllocPool(PTP_POOL *PoolReturn, PVOID Reserved);

/* Releases the pool, which lives until the last of its objects is gone. Since Vista. */
NTSYSAPI VOID TpReleasePool(PTP_POOL Pool);

/* Sets the maximum number of threads, 500 by default; 0 counts as 1. Since Vista. */
NTSYSAPI VOID TpSetPoolMaxThreads(PTP_POOL Pool, ULONG MaxThreads);

/* Sets the number of threads that stay, and creates them. Since Vista. */
NTSYSAPI NTSTATUS TpSetPoolMinThreads(PTP_POOL Pool, ULONG MinThreads);

/* Sets the stack sizes of threads created later. Returns STATUS_INVALID_PARAMETER for bad sizes. Since 7. */
NTSYSAPI NTSTATUS TpSetPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);

/* Returns the sizes that were set. Since 7. */
NTSYSAPI NTSTATUS TpQueryPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);

/* Cleanup groups. Objects that are released together. */

/* Allocates a group of objects that are released together. Since Vista. */
NTSYSAPI NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn);

/* Releases the group, which lives until its last member is gone. Since Vista. */
NTSYSAPI VOID TpReleaseCleanupGroup(PTP_CLEANUP_GROUP CleanupGroup);

/* Releases all members and waits for their callbacks, cancelling pending ones if asked. Then calls the cancel
 * callback of each member that was cancelled before the program released it. Since Vista. */
NTSYSAPI VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                           PVOID CleanupParameter);

/* Inside a callback. What happens when it returns, and what the pool should know about it. */

/* Sets, releases or leaves the object when the callback returns. One of each kind: a second one raises
   STATUS_INVALID_PARAMETER. Since Vista. */
NTSYSAPI VOID TpCallbackSetEventOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Event);
NTSYSAPI VOID TpCallbackReleaseSemaphoreOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Semaphore,
                                                     ULONG ReleaseCount);
NTSYSAPI VOID TpCallbackReleaseMutexOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Mutex);
NTSYSAPI VOID TpCallbackLeaveCriticalSectionOnCompletion(PTP_CALLBACK_INSTANCE Instance,
                                                         PRTL_CRITICAL_SECTION CriticalSection);

/* Unloads a module when the callback returns. Differs: modules are never unloaded. Since Vista. */
NTSYSAPI VOID TpCallbackUnloadDllOnCompletion(PTP_CALLBACK_INSTANCE Instance, PVOID DllHandle);

/* Stops counting the callback as running. Returns STATUS_TOO_MANY_THREADS if no other thread can take over. Since
   Vista. */
NTSYSAPI NTSTATUS TpCallbackMayRunLong(PTP_CALLBACK_INSTANCE Instance);

/* Counts the callback as finished for threads that wait on the object, but not for its cleanup group. Since Vista. */
NTSYSAPI VOID TpDisassociateCallback(PTP_CALLBACK_INSTANCE Instance);

/* Work objects. Posting cannot fail. */

/* Queues one callback without an object. Returns STATUS_NO_MEMORY, or STATUS_INSUFFICIENT_RESOURCES if the host gives
   no thread for it. Since Vista. */
NTSYSAPI NTSTATUS TpSimpleTryPost(PTP_SIMPLE_CALLBACK Callback, PVOID Context, PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Allocates a work object, and the first thread of its pool. Since Vista. */
NTSYSAPI NTSTATUS TpAllocWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which is freed after its last callback. Since Vista. */
NTSYSAPI VOID TpReleaseWork(PTP_WORK Work);

/* Queues one more callback; cannot fail. Callbacks of one object run concurrently. Since Vista. */
NTSYSAPI VOID TpPostWork(PTP_WORK Work);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForWork(PTP_WORK Work, LOGICAL CancelPendingCallbacks);

/* Timer objects. */

/* Allocates a timer object that is not set; TpReleaseTimer frees it. Since Vista. */
NTSYSAPI NTSTATUS TpAllocTimer(PTP_TIMER *Timer, PTP_TIMER_CALLBACK Callback, PVOID Context,
                               PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which no longer expires. Since Vista. */
NTSYSAPI VOID TpReleaseTimer(PTP_TIMER Timer);

/* Sets the timer: the due time in 100 ns, relative if negative, 0 for at once, NULL for never; period and window in
   milliseconds. The Ex form returns TRUE if the timer was already set and that setting was replaced before it expired.
   Since Vista, 8. */
NTSYSAPI VOID TpSetTimer(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);
NTSYSAPI LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);

/* Returns TRUE if the last call that set the timer gave it a due time, even if it has expired since. Since Vista. */
NTSYSAPI LOGICAL TpIsTimerSet(PTP_TIMER Timer);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. The timer stays set. Since Vista. */
NTSYSAPI VOID TpWaitForTimer(PTP_TIMER Timer, LOGICAL CancelPendingCallbacks);

/* Wait objects. One callback per setting. Mutexes are refused, since only a thread can own one. */

/* Allocates a wait object that waits for nothing yet; TpReleaseWait frees it. Since Vista. */
NTSYSAPI NTSTATUS TpAllocWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which no longer waits. Since Vista. */
NTSYSAPI VOID TpReleaseWait(PTP_WAIT Wait);

/* Queues one callback when the object is signaled or the time is over; a NULL handle cancels the wait. A bad handle
   raises its status. The Ex form returns TRUE if a wait was already set and was replaced before it fired. Differs: a
   mutex raises STATUS_THREADPOOL_HANDLE_EXCEPTION. Since Vista, 8. */
NTSYSAPI VOID TpSetWait(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout);
NTSYSAPI LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForWait(PTP_WAIT Wait, LOGICAL CancelPendingCallbacks);

/* I/O objects. Files are descriptor objects (io.h). */

/* Binds a file to a callback, which runs once for each operation that TpStartAsyncIoOperation announces. Differs: the
   file is a descriptor object; anything else is STATUS_OBJECT_TYPE_MISMATCH. Since Vista. */
NTSYSAPI NTSTATUS TpAllocIoCompletion(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                                      PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which is freed after its last callback. Since Vista. */
NTSYSAPI VOID TpReleaseIoCompletion(PTP_IO Io);

/* Announces an operation, which will have one callback. Differs: the callback runs when the descriptor is ready, one
   after the other. Since Vista. */
NTSYSAPI VOID TpStartAsyncIoOperation(PTP_IO Io);

/* Withdraws an announced operation that has failed: it has no callback. Since Vista. */
NTSYSAPI VOID TpCancelAsyncIoOperation(PTP_IO Io);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForIoCompletion(PTP_IO Io, LOGICAL CancelPendingCallbacks);

/* The older interface. Everything runs in the pool of the process. */

/* Runs a routine in the pool of the process. Returns STATUS_NO_MEMORY if memory is exhausted. Since 2000. */
NTSYSAPI NTSTATUS RtlQueueWorkItem(WORKERCALLBACKFUNC Function, PVOID Context, ULONG Flags);

/* Runs a routine each time an object is signaled or the time is over, also while an earlier call runs. Differs: it
   references the object; a wait for a mutex has a thread of its own, which runs the routine. Since 2000. */
NTSYSAPI NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                                  ULONG Milliseconds, ULONG Flags);

/* Ends a registered wait. Returns STATUS_PENDING while calls of the routine are pending or running, which still occur.
   The Ex form sets Event after the last one, or blocks until then if Event is -1. Since 2000. */
NTSYSAPI NTSTATUS RtlDeregisterWait(HANDLE WaitHandle);
NTSYSAPI NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event);

/* Creates a timer queue; RtlDeleteTimerQueueEx deletes it with its timers. Since 2000. */
NTSYSAPI NTSTATUS RtlCreateTimerQueue(PHANDLE TimerQueueHandle);

/* Creates a timer in a queue, or with NULL in the queue of the process. Times are in milliseconds. Since 2000. */
NTSYSAPI NTSTATUS RtlCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function,
                                 PVOID Context, ULONG DueTime, ULONG Period, ULONG Flags);

/* Changes the due time and period. Since 2000. */
NTSYSAPI NTSTATUS RtlUpdateTimer(HANDLE TimerQueueHandle, HANDLE TimerHandle, ULONG DueTime, ULONG Period);

/* Deletes a timer. Event and STATUS_PENDING are those of RtlDeregisterWaitEx. Since 2000. */
NTSYSAPI NTSTATUS RtlDeleteTimer(HANDLE TimerQueueHandle, HANDLE TimerToCancel, HANDLE Event);

/* Deletes a queue with all its timers. Event is that of RtlDeregisterWaitEx. Since 2000. */
NTSYSAPI NTSTATUS RtlDeleteTimerQueue(HANDLE TimerQueueHandle);
NTSYSAPI NTSTATUS RtlDeleteTimerQueueEx(HANDLE TimerQueueHandle, HANDLE Event);

INTERLOCK_END

#endif
