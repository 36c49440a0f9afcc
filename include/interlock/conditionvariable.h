/* conditionvariable.h: condition variables. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_CONDITIONVARIABLE_H
#define INTERLOCK_CONDITIONVARIABLE_H

#include <interlock/criticalsection.h>
#include <interlock/srwlock.h>

INTERLOCK_BEGIN

/*
 * Zeroed memory is a condition variable, at any address. Sleeping releases the lock, once, and takes it again in the
 * same mode before it returns, whatever the status is: STATUS_SUCCESS when woken, STATUS_TIMEOUT. A wake is for those
 * who sleep at that moment, the one that has slept longest or all; it is not kept for others. A sleeper may also return
 * early, so look at the condition again.
 */

typedef struct _RTL_CONDITION_VARIABLE {
    PVOID Ptr;
} RTL_CONDITION_VARIABLE, *PRTL_CONDITION_VARIABLE;

#define RTL_CONDITION_VARIABLE_INIT {0}
#define RTL_CONDITION_VARIABLE_LOCKMODE_SHARED 0x1

C_ASSERT(sizeof(RTL_CONDITION_VARIABLE) == 8);

NTSYSAPI VOID RtlInitializeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);
NTSYSAPI NTSTATUS RtlSleepConditionVariableCS(PRTL_CONDITION_VARIABLE ConditionVariable,
                                              PRTL_CRITICAL_SECTION CriticalSection, PLARGE_INTEGER Timeout);
NTSYSAPI NTSTATUS RtlSleepConditionVariableSRW(PRTL_CONDITION_VARIABLE ConditionVariable, PRTL_SRWLOCK SRWLock,
                                               PLARGE_INTEGER Timeout, ULONG Flags);
NTSYSAPI VOID RtlWakeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);
NTSYSAPI VOID RtlWakeAllConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable);

INTERLOCK_END

#endif
