/* lock.h: locks of user mode, address waits, condition variables. Part of win32.h, which includes it. */
#ifndef INTERLOCK_WIN32_LOCK_H
#define INTERLOCK_WIN32_LOCK_H

#include <interlock/rtl.h>
#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Address waits: see addresswait.h. */

WINBASEAPI BOOL WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, DWORD dwMilliseconds);
WINBASEAPI VOID WakeByAddressSingle(PVOID Address);
WINBASEAPI VOID WakeByAddressAll(PVOID Address);

/* Slim reader/writer locks: see srwlock.h. Inline, and exported too. */

typedef RTL_SRWLOCK SRWLOCK, *PSRWLOCK;

#define SRWLOCK_INIT RTL_SRWLOCK_INIT

WINBASEAPI inline VOID InitializeSRWLock(PSRWLOCK SRWLock)
{
    RtlInitializeSRWLock(SRWLock);
}

WINBASEAPI inline VOID AcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlAcquireSRWLockExclusive(SRWLock);
}

WINBASEAPI inline VOID AcquireSRWLockShared(PSRWLOCK SRWLock)
{
    RtlAcquireSRWLockShared(SRWLock);
}

WINBASEAPI inline BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK SRWLock)
{
    return RtlTryAcquireSRWLockExclusive(SRWLock);
}

WINBASEAPI inline BOOLEAN TryAcquireSRWLockShared(PSRWLOCK SRWLock)
{
    return RtlTryAcquireSRWLockShared(SRWLock);
}

WINBASEAPI inline VOID ReleaseSRWLockExclusive(PSRWLOCK SRWLock)
{
    RtlReleaseSRWLockExclusive(SRWLock);
}

WINBASEAPI inline VOID ReleaseSRWLockShared(PSRWLOCK SRWLock)
{
    RtlReleaseSRWLockShared(SRWLock);
}

/* Condition variables: see conditionvariable.h. */

typedef RTL_CONDITION_VARIABLE CONDITION_VARIABLE, *PCONDITION_VARIABLE;
typedef RTL_CRITICAL_SECTION CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

#define CONDITION_VARIABLE_INIT RTL_CONDITION_VARIABLE_INIT
#define CONDITION_VARIABLE_LOCKMODE_SHARED RTL_CONDITION_VARIABLE_LOCKMODE_SHARED

WINBASEAPI VOID InitializeConditionVariable(PCONDITION_VARIABLE ConditionVariable);
WINBASEAPI BOOL SleepConditionVariableCS(PCONDITION_VARIABLE ConditionVariable, PCRITICAL_SECTION CriticalSection,
                                         DWORD dwMilliseconds);
WINBASEAPI BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE ConditionVariable, PSRWLOCK SRWLock,
                                          DWORD dwMilliseconds, ULONG Flags);
WINBASEAPI VOID WakeConditionVariable(PCONDITION_VARIABLE ConditionVariable);
WINBASEAPI VOID WakeAllConditionVariable(PCONDITION_VARIABLE ConditionVariable);

/* Critical sections: see criticalsection.h. What cannot be initialized for lack of memory raises STATUS_NO_MEMORY. */

typedef RTL_CRITICAL_SECTION_DEBUG CRITICAL_SECTION_DEBUG, *PCRITICAL_SECTION_DEBUG, *LPCRITICAL_SECTION_DEBUG;

#define CRITICAL_SECTION_NO_DEBUG_INFO RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO

WINBASEAPI VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
WINBASEAPI BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);
WINBASEAPI BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount, DWORD Flags);
WINBASEAPI DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount);
WINBASEAPI VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

WINBASEAPI inline VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    RtlEnterCriticalSection(lpCriticalSection);
}

WINBASEAPI inline BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    return (BOOL)RtlTryEnterCriticalSection(lpCriticalSection);
}

WINBASEAPI inline VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    RtlLeaveCriticalSection(lpCriticalSection);
}

/* One-time initialisation: see rtl.h. */

typedef RTL_RUN_ONCE INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;
typedef BOOL(WINAPI *PINIT_ONCE_FN)(PINIT_ONCE InitOnce, PVOID Parameter, PVOID *Context);

#define INIT_ONCE_STATIC_INIT RTL_RUN_ONCE_INIT
#define INIT_ONCE_CHECK_ONLY RTL_RUN_ONCE_CHECK_ONLY
#define INIT_ONCE_ASYNC RTL_RUN_ONCE_ASYNC
#define INIT_ONCE_INIT_FAILED RTL_RUN_ONCE_INIT_FAILED
#define INIT_ONCE_CTX_RESERVED_BITS RTL_RUN_ONCE_CTX_RESERVED_BITS

WINBASEAPI VOID InitOnceInitialize(PINIT_ONCE InitOnce);
WINBASEAPI BOOL InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter, LPVOID *Context);
WINBASEAPI BOOL InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending, LPVOID *lpContext);
WINBASEAPI BOOL InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext);

/* Barriers: see barrier.h. */

typedef RTL_BARRIER SYNCHRONIZATION_BARRIER, *PSYNCHRONIZATION_BARRIER, *LPSYNCHRONIZATION_BARRIER;

#define SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY 0x01
#define SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY 0x02
#define SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE 0x04

WINBASEAPI BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, LONG lTotalThreads,
                                                 LONG lSpinCount);
WINBASEAPI BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, DWORD dwFlags);
WINBASEAPI BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier);

INTERLOCK_END

#endif
