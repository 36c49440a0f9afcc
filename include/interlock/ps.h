/* ps.h: processes and threads as objects. */
#ifndef INTERLOCK_PS_H
#define INTERLOCK_PS_H

#include <interlock/ob.h>

INTERLOCK_BEGIN

typedef struct _EPROCESS *PEPROCESS;
typedef struct _ETHREAD *PETHREAD;

typedef VOID KSTART_ROUTINE(PVOID StartContext);
typedef KSTART_ROUTINE *PKSTART_ROUTINE;

extern NTKERNELAPI POBJECT_TYPE *PsThreadType;
extern NTKERNELAPI POBJECT_TYPE *PsProcessType;
extern NTKERNELAPI PEPROCESS PsInitialSystemProcess;

NTKERNELAPI NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                                          POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                                          PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine, PVOID StartContext);
NTKERNELAPI NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus);

FORCEINLINE PETHREAD PsGetCurrentThread(VOID)
{
    return (PETHREAD)KeGetCurrentThread();
}

NTKERNELAPI HANDLE PsGetCurrentThreadId(VOID);
NTKERNELAPI HANDLE PsGetThreadId(PETHREAD Thread);
NTKERNELAPI HANDLE PsGetThreadProcessId(PETHREAD Thread);
NTKERNELAPI NTSTATUS PsGetThreadExitStatus(PETHREAD Thread);
NTKERNELAPI BOOLEAN PsIsSystemThread(PETHREAD Thread);
NTKERNELAPI BOOLEAN PsIsThreadTerminating(PETHREAD Thread);
NTKERNELAPI NTSTATUS PsLookupThreadByThreadId(HANDLE UniqueThreadId, PETHREAD *Thread);

NTKERNELAPI PEPROCESS PsGetCurrentProcess(VOID);
NTKERNELAPI HANDLE PsGetCurrentProcessId(VOID);
NTKERNELAPI HANDLE PsGetProcessId(PEPROCESS Process);
NTKERNELAPI NTSTATUS PsLookupProcessByProcessId(HANDLE ProcessId, PEPROCESS *Process);

INTERLOCK_END

#endif
