/* conditionvariable.c: condition variables. */
#include <interlock/win32/lock.h>

#include "base.h"

/* STATUS_TIMEOUT is a success to NT, and ERROR_TIMEOUT here. */
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
