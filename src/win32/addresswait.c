/* addresswait.c: WaitOnAddress and its wakes. */
#include <interlock/win32/lock.h>

#include "base.h"

/* STATUS_TIMEOUT is a success to NT, and ERROR_TIMEOUT here. */
BOOL WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize, DWORD dwMilliseconds)
{
    LARGE_INTEGER Timeout;
    NTSTATUS Status =
        RtlWaitOnAddress(Address, CompareAddress, AddressSize, BaseFormatTimeOut(&Timeout, dwMilliseconds));
    if (Status != STATUS_SUCCESS) {
        BaseSetLastNTError(Status);
    }
    return Status == STATUS_SUCCESS;
}

VOID WakeByAddressSingle(PVOID Address)
{
    RtlWakeAddressSingle(Address);
}

VOID WakeByAddressAll(PVOID Address)
{
    RtlWakeAddressAll(Address);
}
