/* process.c: processes by handle. */
#include "ntp.h"

#include "../ob/inherit.h"
#include "../ps/psp.h"

/* For CreateProcess. */
NTSTATUS NtpCreateUserProcess(const HAL_SPAWN *Spawn, const NTP_HEIRLOOMS *Heirlooms, ULONG Attributes,
                              PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId)
{
    OBP_HEIRLOOMS Inherited = {Heirlooms != NULL ? Heirlooms->List : NULL, Heirlooms != NULL ? Heirlooms->Count : 0};
    return NTP_SERVICE(PspCreateProcess(Spawn, Heirlooms != NULL ? &Inherited : NULL, Attributes, ProcessHandle,
                                        ThreadHandle, ClientId));
}

static NTSTATUS NtpOpenProcess(KPROCESSOR_MODE Mode, PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess,
                               POBJECT_ATTRIBUTES ObjectAttributes, PCLIENT_ID ClientId)
{
    const ULONG Refused = Mode != KernelMode ? OBJ_KERNEL_HANDLE : 0;
    if (!NtpClearHandle(ProcessHandle) || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    HANDLE ProcessId = ClientId->UniqueProcess;
    if (ClientId->UniqueThread != NULL) {
        PETHREAD Thread;
        if (!NT_SUCCESS(PsLookupThreadByThreadId(ClientId->UniqueThread, &Thread))) {
            return STATUS_INVALID_CID;
        }
        ObDereferenceObject(Thread);
        ProcessId = PsGetCurrentProcessId();
    }
    return PspOpenProcess(Mode, ProcessId, ObjectAttributes->Attributes & ~Refused, DesiredAccess, ProcessHandle);
}

NTSTATUS NtOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       PCLIENT_ID ClientId)
{
    return NTP_SERVICE(NtpOpenProcess(UserMode, ProcessHandle, DesiredAccess, ObjectAttributes, ClientId));
}

NTSTATUS ZwOpenProcess(PHANDLE ProcessHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       PCLIENT_ID ClientId)
{
    return NTP_SERVICE(NtpOpenProcess(KernelMode, ProcessHandle, DesiredAccess, ObjectAttributes, ClientId));
}

static NTSTATUS NtpReferenceProcess(HANDLE ProcessHandle, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE Mode,
                                    PEPROCESS *Process)
{
    return ObReferenceObjectByHandle(ProcessHandle, DesiredAccess, *PsProcessType, Mode, (PVOID *)Process, NULL);
}

static NTSTATUS NtpTerminateProcess(KPROCESSOR_MODE Mode, HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    HANDLE Handle = ProcessHandle != NULL ? ProcessHandle : NtCurrentProcess();
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcess(Handle, PROCESS_TERMINATE, Mode, &Process);
    if (NT_SUCCESS(Status)) {
        Status = PspTerminateProcess(Process, ExitStatus);
        ObDereferenceObject(Process);
    }
    return Status;
}

NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    return NTP_SERVICE(NtpTerminateProcess(UserMode, ProcessHandle, ExitStatus));
}

NTSTATUS ZwTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    return NTP_SERVICE(NtpTerminateProcess(KernelMode, ProcessHandle, ExitStatus));
}

static NTSTATUS NtpRequestOfProcess(HANDLE ProcessHandle, NTSTATUS (*Request)(PEPROCESS Process))
{
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcess(ProcessHandle, PROCESS_SUSPEND_RESUME, UserMode, &Process);
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
