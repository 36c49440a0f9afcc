/* lock.c: critical sections, SRW locks, condition variables, one-time initialization, barriers and address waits. */
#include "base.h"

C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY == RTL_BARRIER_FLAGS_SPIN_ONLY);
C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY == RTL_BARRIER_FLAGS_BLOCK_ONLY);
C_ASSERT(SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE == RTL_BARRIER_FLAGS_NO_DELETE);

/* The external definitions of the header's inline functions. */
extern inline VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
extern inline BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
extern inline VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
extern VOID WakeByAddressSingle(PVOID Address);
extern VOID WakeByAddressAll(PVOID Address);
extern VOID InitializeSRWLock(PSRWLOCK SRWLock);
extern VOID AcquireSRWLockExclusive(PSRWLOCK SRWLock);
extern VOID AcquireSRWLockShared(PSRWLOCK SRWLock);
extern BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK SRWLock);
extern BOOLEAN TryAcquireSRWLockShared(PSRWLOCK SRWLock);
extern VOID ReleaseSRWLockExclusive(PSRWLOCK SRWLock);
extern VOID ReleaseSRWLockShared(PSRWLOCK SRWLock);

VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    NTSTATUS Status = RtlInitializeCriticalSection(lpCriticalSection);
    if (!NT_SUCCESS(Status)) {
        RtlRaiseStatus(Status);
    }
}

BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount)
{
    return BaseBoolStatus(RtlInitializeCriticalSectionAndSpinCount(lpCriticalSection, dwSpinCount));
}

BOOL InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount, DWORD Flags)
{
    return BaseBoolStatus(RtlInitializeCriticalSectionEx(lpCriticalSection, dwSpinCount, Flags));
}

DWORD SetCriticalSectionSpinCount(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount)
{
    return RtlSetCriticalSectionSpinCount(lpCriticalSection, dwSpinCount);
}

VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    RtlDeleteCriticalSection(lpCriticalSection);
}

/* STATUS_TIMEOUT is a success for NT, but ERROR_TIMEOUT here. */
static BOOL BaseWasWoken(NTSTATUS Status)
{
    if (Status != STATUS_SUCCESS) {
        BaseSetLastNTError(Status);
    }
    return Status == STATUS_SUCCESS;
}

VOID InitializeConditionVariable(PCONDITION_VARIABLE ConditionVariable)
{
    RtlInitializeConditionVariable(ConditionVariable);
}

BOOL SleepConditionVariableCS(PCONDITION_VARIABLE ConditionVariable, PCRITICAL_SECTION CriticalSection,
                              DWORD dwMilliseconds)
{
    LARGE_INTEGER Timeout;
    return BaseWasWoken(RtlSleepConditionVariableCS(ConditionVariable, CriticalSection,
                                                    BaseFormatTimeOut(&Timeout, dwMilliseconds)));
}

BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE ConditionVariable, PSRWLOCK SRWLock, DWORD dwMilliseconds,
                               ULONG Flags)
{
    LARGE_INTEGER Timeout;
    return BaseWasWoken(RtlSleepConditionVariableSRW(ConditionVariable, SRWLock,
                                                     BaseFormatTimeOut(&Timeout, dwMilliseconds), Flags));
}

VOID WakeConditionVariable(PCONDITION_VARIABLE ConditionVariable)
{
    RtlWakeConditionVariable(ConditionVariable);
}

VOID WakeAllConditionVariable(PCONDITION_VARIABLE ConditionVariable)
{
    RtlWakeAllConditionVariable(ConditionVariable);
}

BOOL WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, DWORD dwMilliseconds)
{
    LARGE_INTEGER Timeout;
    return BaseWasWoken(
        RtlWaitOnAddress(Address, CompareAddress, AddressSize, BaseFormatTimeOut(&Timeout, dwMilliseconds)));
}

VOID InitOnceInitialize(PINIT_ONCE InitOnce)
{
    RtlRunOnceInitialize(InitOnce);
}

/* The program's routine returns a BOOL. */
typedef struct _BASE_INIT_ROUTINE {
    PINIT_ONCE_FN InitFn;
    PVOID Parameter;
} BASE_INIT_ROUTINE;

static ULONG BasepRunInitRoutine(PRTL_RUN_ONCE RunOnce, PVOID Parameter, PVOID *Context)
{
    BASE_INIT_ROUTINE *Routine = Parameter;
    return Routine->InitFn(RunOnce, Routine->Parameter, Context) != FALSE;
}

/* A routine that returns FALSE has set the last error itself. */
BOOL InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter, LPVOID *Context)
{
    BASE_INIT_ROUTINE Routine = {InitFn, Parameter};
    NTSTATUS Status = RtlRunOnceExecuteOnce(InitOnce, BasepRunInitRoutine, &Routine, Context);
    return Status != STATUS_UNSUCCESSFUL && BaseBoolStatus(Status);
}

BOOL InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending, LPVOID *lpContext)
{
    NTSTATUS Status = RtlRunOnceBeginInitialize(lpInitOnce, dwFlags, lpContext);
    if (NT_SUCCESS(Status)) {
        *fPending = Status == STATUS_PENDING;
    }
    return BaseBoolStatus(Status);
}

BOOL InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext)
{
    return BaseBoolStatus(RtlRunOnceComplete(lpInitOnce, dwFlags, lpContext));
}

BOOL InitializeSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, LONG lTotalThreads, LONG lSpinCount)
{
    if (lTotalThreads <= 0 || lSpinCount < -1) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    return BaseBoolStatus(RtlInitBarrier(lpBarrier, (ULONG)lTotalThreads, (ULONG)lSpinCount));
}

BOOL EnterSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier, DWORD dwFlags)
{
    return RtlBarrier(lpBarrier, dwFlags);
}

BOOL DeleteSynchronizationBarrier(LPSYNCHRONIZATION_BARRIER lpBarrier)
{
    return BaseBoolStatus(RtlDeleteBarrier(lpBarrier));
}
