/* thread.h: what the services for threads share. */
#ifndef INTERLOCK_NT_THREAD_H
#define INTERLOCK_NT_THREAD_H

#include "../ps/psp.h"

#include "ntp.h"

FORCEINLINE NTSTATUS NtpReferenceThread(HANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PETHREAD *Thread)
{
    return ObReferenceObjectByHandle(ThreadHandle, DesiredAccess, *PsThreadType, UserMode, (PVOID *)Thread, NULL);
}

#endif
