/* ps.h: processes and threads as objects. */
#ifndef INTERLOCK_PS_H
#define INTERLOCK_PS_H

#include <interlock/ob.h>

INTERLOCK_BEGIN

typedef struct _EPROCESS *PEPROCESS;
typedef struct _ETHREAD *PETHREAD;

typedef VOID KSTART_ROUTINE(PVOID StartContext);
typedef KSTART_ROUTINE *PKSTART_ROUTINE;

/* Types and the system process. */

/* The types of threads and processes. Since NT 3.1. */
extern NTKERNELAPI POBJECT_TYPE *PsThreadType;
extern NTKERNELAPI POBJECT_TYPE *PsProcessType;

/* The process to which system threads belong. Differs: the caller's own process, the only one. Since NT
   3.1. */
extern NTKERNELAPI PEPROCESS PsInitialSystemProcess;

/* Threads. Only threads of this process that have called the library are known. */

/* Starts a kernel-mode thread and opens a kernel handle to it, which ZwClose closes. At PASSIVE_LEVEL. Differs: in this
   process only: the handle of another process is STATUS_ACCESS_DENIED. Since NT 3.1. */
NTKERNELAPI NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                                          POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                                          PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine, PVOID StartContext);

/* Ends the calling system thread. Returns STATUS_INVALID_PARAMETER on another kind of thread. Since NT 3.1. */
NTKERNELAPI NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus);

/* Returns the calling thread, without a reference. Since NT 3.1. */
FORCEINLINE PETHREAD PsGetCurrentThread(VOID)
{
    return (PETHREAD)KeGetCurrentThread();
}

/* Returns the id of the calling or of the given thread: the host's thread id. Since NT 4.0, XP. */
NTKERNELAPI HANDLE PsGetCurrentThreadId(VOID);
NTKERNELAPI HANDLE PsGetThreadId(PETHREAD Thread);

/* Returns the id of the thread's process. Since XP. */
NTKERNELAPI HANDLE PsGetThreadProcessId(PETHREAD Thread);

/* Returns the process of a thread, without a reference. Since NT 4.0, NT 3.1. */
NTKERNELAPI PEPROCESS PsGetThreadProcess(PETHREAD Thread);
NTKERNELAPI PEPROCESS IoThreadToProcess(PETHREAD Thread);

/* Returns the exit status of the thread; STATUS_PENDING while it runs. Since XP. */
NTKERNELAPI NTSTATUS PsGetThreadExitStatus(PETHREAD Thread);

/* Returns TRUE for threads of PsCreateSystemThread and of the library. Since XP. */
NTKERNELAPI BOOLEAN PsIsSystemThread(PETHREAD Thread);

/* TRUE: it is a thread of the system, not of the program (PsIsSystemThread). Since XP. */
NTKERNELAPI BOOLEAN IoIsSystemThread(PETHREAD Thread);

/* Returns the mode that called the current system service. Differs: always KernelMode: driver code is called by a test,
   not by a system service. Since NT 3.1. */
NTKERNELAPI KPROCESSOR_MODE ExGetPreviousMode(VOID);
#define KeGetPreviousMode ExGetPreviousMode

/* Returns TRUE once the thread has begun to end. Since NT 4.0. */
NTKERNELAPI BOOLEAN PsIsThreadTerminating(PETHREAD Thread);

/* Returns the thread with this id, with a reference; STATUS_INVALID_PARAMETER if there is none. Differs: finds threads
   of this process that have called the library. Since NT 4.0. */
NTKERNELAPI NTSTATUS PsLookupThreadByThreadId(HANDLE UniqueThreadId, PETHREAD *Thread);

/* Processes. Other processes of the host are objects to wait on. */

/* Returns the calling process, without a reference. Since NT 3.1. */
NTKERNELAPI PEPROCESS PsGetCurrentProcess(VOID);
NTKERNELAPI PEPROCESS IoGetCurrentProcess(VOID);

/* Returns the id of the calling or of the given process: the host's process id. Since NT 4.0, XP. */
NTKERNELAPI HANDLE PsGetCurrentProcessId(VOID);
NTKERNELAPI HANDLE PsGetProcessId(PEPROCESS Process);

/* Returns the process with this id, with a reference; STATUS_INVALID_CID if there is none. Differs: finds any process
   of the host, to wait for. Since NT 4.0. */
NTKERNELAPI NTSTATUS PsLookupProcessByProcessId(HANDLE ProcessId, PEPROCESS *Process);

INTERLOCK_END

#endif
