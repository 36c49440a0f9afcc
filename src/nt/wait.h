/* wait.h: what a wait by handle waits for, and what it does at its end. */
#ifndef INTERLOCK_NT_WAIT_H
#define INTERLOCK_NT_WAIT_H

#include "ntp.h"

/* Stands for every object that has nothing to wait for: a notification event that is always set. */
extern KEVENT NtpDefaultObject;

FORCEINLINE BOOLEAN NtpIsAlwaysSignaled(PVOID Object)
{
    return ObpHeaderOf(Object)->Type->WaitOffset == OBP_ALWAYS_SIGNALED;
}

/* Its state is right when this returns. */
FORCEINLINE PVOID NtpWaitObject(PVOID Object)
{
    POBJECT_TYPE Type = ObpHeaderOf(Object)->Type;
    LONG Offset = Type->WaitOffset;
    if (__builtin_expect(Type->WaitProcedure != NULL, 0)) {
        Type->WaitProcedure(Object);
    }
    return __builtin_expect(Offset != OBP_ALWAYS_SIGNALED, 1) ? (PVOID)((PUCHAR)Object + Offset) : &NtpDefaultObject;
}

/* When the caller has given back what it held for the wait: an APC need not return. */
FORCEINLINE NTSTATUS NtpFinishWait(NTSTATUS Status)
{
    if (__builtin_expect(Status == STATUS_USER_APC, 0)) {
        KiDeliverUserApcs(KiCurrentThread());
    }
    return Status;
}

#endif
