/* delay.c: giving the processor away, for a time or for once, and running what is queued for the thread. */
#include <interlock/nt.h>

#include "../ke/ki.h"

NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval)
{
    if (DelayInterval == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    return KeDelayExecutionThread(UserMode, Alertable, DelayInterval);
}

NTSTATUS NtYieldExecution(VOID)
{
    return HalYieldToOther() ? STATUS_SUCCESS : STATUS_NO_YIELD_PERFORMED;
}

NTSTATUS ZwYieldExecution(VOID)
{
    return NtYieldExecution();
}

/* User APCs are not looked at when there was an alert: they stay for the next one who asks. */
NTSTATUS NtTestAlert(VOID)
{
    if (KeTestAlertThread(UserMode)) {
        return STATUS_ALERTED;
    }
    KiDeliverUserApcs(KiCurrentThread());
    return STATUS_SUCCESS;
}
