/* wait.h: what a wait by handle does at its end. */
#ifndef INTERLOCK_NT_WAIT_H
#define INTERLOCK_NT_WAIT_H

#include "ntp.h"

/* When the caller has given back what it held for the wait: an APC need not return. */
FORCEINLINE NTSTATUS NtpFinishWait(NTSTATUS Status)
{
    if (__builtin_expect(Status == STATUS_USER_APC, 0)) {
        KiDeliverUserApcs(KiCurrentThread());
    }
    return Status;
}

#endif
