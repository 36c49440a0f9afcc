/* ntwait.h: waiting for objects by handle, delays. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTWAIT_H
#define INTERLOCK_NTWAIT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

/* A handle needs SYNCHRONIZE. The pseudo handles of process and thread are good for a wait on one object only. */

NTSYSCALLAPI NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSYSCALLAPI NTSTATUS NtWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                               PLARGE_INTEGER Timeout);
NTSYSCALLAPI NTSTATUS NtSignalAndWaitForSingleObject(HANDLE SignalHandle, HANDLE WaitHandle, BOOLEAN Alertable,
                                                     PLARGE_INTEGER Timeout);

NTSYSCALLAPI NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);
NTSYSCALLAPI NTSTATUS NtYieldExecution(VOID);
NTSYSCALLAPI NTSTATUS NtTestAlert(VOID);

/* For kernel code: no access checks, and user APCs do not run in the wait. */

NTSYSAPI NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSYSAPI NTSTATUS ZwWaitForMultipleObjects(ULONG Count, HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout);
NTSYSAPI NTSTATUS ZwYieldExecution(VOID);

INTERLOCK_END

#endif
