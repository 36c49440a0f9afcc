/* process.c: processes by handle. */
#include "ntp.h"

#include "../ps/psp.h"

/* The door for CreateProcess. */
NTSTATUS NtpCreateUserProcess(const HAL_SPAWN *Spawn, ULONG Attributes, PHANDLE ProcessHandle, PHANDLE ThreadHandle,
                              PCLIENT_ID ClientId)
{
    return NTP_SERVICE(
        PspCreateProcess(Spawn, Attributes, PROCESS_ALL_ACCESS, ProcessHandle, ThreadHandle, ClientId));
}

static NTSTATUS NtpOpenProcess(PCLIENT_ID ClientId, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ProcessHandle)
{
    HANDLE ProcessId = ClientId->UniqueProcess;
    PETHREAD Thread;
    if (ClientId->UniqueThread != NULL) {
        if (!NT_SUCCESS(PsLookupThreadByThreadId(ClientId->UniqueThread, &Thread))) {
            return STATUS_INVALID_CID;
        }
        ObDereferenceObject(Thread);
        ProcessId = PsGetCurrentProcessId();
    }
    return PspOpenProcess(ProcessId, Attributes, DesiredAccess, ProcessHandle);
}

NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       PCLIENT_ID ClientId)
{
    if (ProcessHandle == NULL || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    return NTP_SERVICE(NtpOpenProcess(ClientId, ObjectAttributes->Attributes, DesiredAccess, ProcessHandle));
}

static NTSTATUS NtpReferenceProcess(HANDLE ProcessHandle, ACCESS_MASK DesiredAccess, PEPROCESS *Process)
{
    return ObReferenceObjectByHandle(ProcessHandle, DesiredAccess, *PsProcessType, UserMode, (PVOID *)Process, NULL);
}

static NTSTATUS NtpTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcess(ProcessHandle, PROCESS_TERMINATE, &Process);
    if (NT_SUCCESS(Status)) {
        Status = PspTerminateProcess(Process, ExitStatus);
        ObDereferenceObject(Process);
    }
    return Status;
}

NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    HANDLE Handle = ProcessHandle != NULL ? ProcessHandle : NtCurrentProcess();
    return NTP_SERVICE(NtpTerminateProcess(Handle, ExitStatus));
}

static NTSTATUS NtpRequestOfProcess(HANDLE ProcessHandle, NTSTATUS (*Request)(PEPROCESS Process))
{
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcess(ProcessHandle, PROCESS_SUSPEND_RESUME, &Process);
    if (NT_SUCCESS(Status)) {
        Status = Request(Process);
        ObDereferenceObject(Process);
    }
    return Status;
}

NTSTATUS NtSuspendProcess(HANDLE ProcessHandle)
{
    return NTP_SERVICE(NtpRequestOfProcess(ProcessHandle, PspSuspendProcess));
}

NTSTATUS NtResumeProcess(HANDLE ProcessHandle)
{
    return NTP_SERVICE(NtpRequestOfProcess(ProcessHandle, PspResumeProcess));
}

static NTSTATUS NtpQueryProcess(HANDLE ProcessHandle, BOOLEAN Basic, PVOID Information)
{
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcess(ProcessHandle, PROCESS_QUERY_LIMITED_INFORMATION, &Process);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Basic) {
        PPROCESS_BASIC_INFORMATION Result = Information;
        memset(Result, 0, sizeof(*Result));
        Result->AffinityMask = KeQueryGroupAffinity(0);
        Result->BasePriority = Process->Pcb.BasePriority;
        Result->UniqueProcessId = (ULONG_PTR)PsGetProcessId(Process);
        Status = PspQueryExitStatus(Process, &Result->ExitStatus);
    } else if (Process == PsGetCurrentProcess()) {
        *(PULONG)Information = ObpCountHandles();
    } else {
        Status = STATUS_NOT_SUPPORTED;
    }
    ObDereferenceObject(Process);
    return Status;
}

NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength, PULONG ReturnLength)
{
    BOOLEAN Basic = ProcessInformationClass == ProcessBasicInformation;
    ULONG Required = Basic ? sizeof(PROCESS_BASIC_INFORMATION) : sizeof(ULONG);
    NTSTATUS Status = NtpCheckQuery(Basic || ProcessInformationClass == ProcessHandleCount, ProcessInformation,
                                    ProcessInformationLength, Required);
    if (NT_SUCCESS(Status)) {
        Status = NTP_SERVICE(NtpQueryProcess(ProcessHandle, Basic, ProcessInformation));
    }
    if (NT_SUCCESS(Status)) {
        NtpReturnLength(ReturnLength, Required);
    }
    return Status;
}
