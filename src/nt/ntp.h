/*
 * ntp.h: what the system services share. A service that drivers may call too is written once, with the mode of its
 * caller: KernelMode, by its Zw name, is not subject to access checks.
 */
#ifndef INTERLOCK_NTP_H
#define INTERLOCK_NTP_H

#include <interlock/nt.h>

#include "../ke/wait.h"
#include "../ob/obp.h"

/* A service from its entry to its return: the thread is not ended in between (KiEnterService). */
#define NTP_SERVICE(Call)                                                                                              \
    ({                                                                                                                 \
        PKTHREAD ServiceThread = KiCurrentThread();                                                                    \
        NTSTATUS ServiceStatus;                                                                                        \
        KiEnterService(ServiceThread);                                                                                 \
        ServiceStatus = (Call);                                                                                        \
        KiExitService(ServiceThread);                                                                                  \
        ServiceStatus;                                                                                                 \
    })

/* A query with a structure of fixed size: what is wrong with it before the handle is looked at. */
FORCEINLINE NTSTATUS NtpCheckQuery(BOOLEAN KnownClass, PVOID Information, ULONG Length, ULONG Required)
{
    if (!KnownClass) {
        return STATUS_INVALID_INFO_CLASS;
    }
    if (Length != Required) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    return Information != NULL ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

FORCEINLINE VOID NtpReturnLength(PULONG ReturnLength, ULONG Length)
{
    if (ReturnLength != NULL) {
        *ReturnLength = Length;
    }
}

#endif
