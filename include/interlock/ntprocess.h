/* ntprocess.h: processes. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTPROCESS_H
#define INTERLOCK_NTPROCESS_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

typedef enum _PROCESSINFOCLASS {
    ProcessBasicInformation = 0,
    ProcessHandleCount = 20
} PROCESSINFOCLASS;

typedef struct _PEB *PPEB;

typedef struct _PROCESS_BASIC_INFORMATION {
    NTSTATUS ExitStatus;
    PPEB PebBaseAddress;
    KAFFINITY AffinityMask;
    KPRIORITY BasePriority;
    ULONG_PTR UniqueProcessId;
    ULONG_PTR InheritedFromUniqueProcessId;
} PROCESS_BASIC_INFORMATION, *PPROCESS_BASIC_INFORMATION;

/* Another process of the host is an object to wait for. Its exit status is known if it is a child of this one. */
NTSYSAPI NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                PCLIENT_ID ClientId);
NTSYSAPI NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSYSAPI NTSTATUS NtSuspendProcess(HANDLE ProcessHandle);
NTSYSAPI NTSTATUS NtResumeProcess(HANDLE ProcessHandle);
NTSYSAPI NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                            PVOID ProcessInformation, ULONG ProcessInformationLength,
                                            PULONG ReturnLength);

INTERLOCK_END

#endif
