/* process.c: processes by handle. */
#include "ntp.h"

#include "../ps/psp.h"

NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       PCLIENT_ID ClientId)
{
    PETHREAD Thread;
    HANDLE ProcessId;
    if (ProcessHandle == NULL || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    ProcessId = ClientId->UniqueProcess;
    if (ClientId->UniqueThread != NULL) {
        if (!NT_SUCCESS(PsLookupThreadByThreadId(ClientId->UniqueThread, &Thread))) {
            return STATUS_INVALID_CID;
        }
        ObDereferenceObject(Thread);
        ProcessId = PsGetCurrentProcessId();
    }
    return PspOpenProcess(ProcessId, ObjectAttributes->Attributes, DesiredAccess, ProcessHandle);
}

static NTSTATUS NtpReferenceProcess(HANDLE ProcessHandle, ACCESS_MASK DesiredAccess, PEPROCESS *Process)
{
    return ObReferenceObjectByHandle(ProcessHandle, DesiredAccess, *PsProcessType, UserMode, (PVOID *)Process, NULL);
}

NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    PEPROCESS Process;
    NTSTATUS Status =
        NtpReferenceProcess(ProcessHandle != NULL ? ProcessHandle : NtCurrentProcess(), PROCESS_TERMINATE, &Process);
    if (NT_SUCCESS(Status)) {
        Status = PspTerminateProcess(Process, ExitStatus);
        ObDereferenceObject(Process);
    }
    return Status;
}

static NTSTATUS NtpRequest(HANDLE ProcessHandle, NTSTATUS (*Request)(PEPROCESS Process))
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
    return NtpRequest(ProcessHandle, PspSuspendProcess);
}

NTSTATUS NtResumeProcess(HANDLE ProcessHandle)
{
    return NtpRequest(ProcessHandle, PspResumeProcess);
}

static NTSTATUS NtpQueryBasic(PEPROCESS Process, PPROCESS_BASIC_INFORMATION Information)
{
    memset(Information, 0, sizeof(*Information));
    Information->AffinityMask = KeQueryGroupAffinity(0);
    Information->BasePriority = Process->Pcb.BasePriority;
    Information->UniqueProcessId = (ULONG_PTR)PsGetProcessId(Process);
    return PspQueryExitStatus(Process, &Information->ExitStatus);
}

NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength, PULONG ReturnLength)
{
    BOOLEAN Basic = ProcessInformationClass == ProcessBasicInformation;
    ULONG Required = Basic ? sizeof(PROCESS_BASIC_INFORMATION) : sizeof(ULONG);
    PEPROCESS Process;
    NTSTATUS Status = NtpCheckQuery(Basic || ProcessInformationClass == ProcessHandleCount, ProcessInformation,
                                    ProcessInformationLength, Required);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = NtpReferenceProcess(ProcessHandle, PROCESS_QUERY_LIMITED_INFORMATION, &Process);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Basic) {
        Status = NtpQueryBasic(Process, ProcessInformation);
    } else if (Process == PsGetCurrentProcess()) {
        *(PULONG)ProcessInformation = ObpCountHandles();
    } else {
        Status = STATUS_NOT_SUPPORTED;
    }
    if (NT_SUCCESS(Status)) {
        NtpReturnLength(ReturnLength, Required);
    }
    ObDereferenceObject(Process);
    return Status;
}
