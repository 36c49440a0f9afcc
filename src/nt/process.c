/* process.c: processes by handle. */
#include "ntp.h"

#include "../ob/inherit.h"
#include "../ps/psp.h"

/* The door for CreateProcess. */
NTSTATUS NtpCreateUserProcess(const HAL_SPAWN *Spawn, const NTP_HEIRLOOMS *Heirlooms, ULONG Attributes,
                              PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId)
{
    OBP_HEIRLOOMS Inherited = {Heirlooms != NULL ? Heirlooms->List : NULL, Heirlooms != NULL ? Heirlooms->Count : 0};
    return NTP_SERVICE(PspCreateProcess(Spawn, Heirlooms != NULL ? &Inherited : NULL, Attributes, ProcessHandle,
                                        ThreadHandle, ClientId));
}

NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       PCLIENT_ID ClientId)
{
    if (!NtpClearHandle(ProcessHandle) || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    HANDLE ProcessId = ClientId->UniqueProcess;
    NTP_SERVICE_UNTIL_RETURN();
    if (ClientId->UniqueThread != NULL) {
        PETHREAD Thread;
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
    HANDLE Handle = ProcessHandle != NULL ? ProcessHandle : NtCurrentProcess();
    PEPROCESS Process;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpReferenceProcess(Handle, PROCESS_TERMINATE, &Process);
    if (NT_SUCCESS(Status)) {
        Status = PspTerminateProcess(Process, ExitStatus);
        ObDereferenceObject(Process);
    }
    return Status;
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
