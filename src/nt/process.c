/* process.c: processes by handle: creating, opening and ending them, and information about them. */
#include "../ob/share.h"
#include "../ps/psp.h"
#include "ntp.h"

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

/* Queries and settings. */

/* The base priority of each class. */
static const SCHAR NtpClassPriority[] = {
    [PROCESS_PRIORITY_CLASS_UNKNOWN] = 0,
    [PROCESS_PRIORITY_CLASS_IDLE] = 4,
    [PROCESS_PRIORITY_CLASS_BELOW_NORMAL] = 6,
    [PROCESS_PRIORITY_CLASS_NORMAL] = 8,
    [PROCESS_PRIORITY_CLASS_ABOVE_NORMAL] = 10,
    [PROCESS_PRIORITY_CLASS_HIGH] = 13,
    [PROCESS_PRIORITY_CLASS_REALTIME] = 24,
};

static volatile UCHAR NtpPriorityClass; /* of this process, as it was set last; PROCESS_PRIORITY_CLASS_UNKNOWN: never */

static BOOLEAN NtpIsThisProcess(PEPROCESS Process)
{
    return Process == PsGetCurrentProcess();
}

/* 0: there is no such class. */
static ULONG NtpSizeOfProcessQuery(PROCESSINFOCLASS Class)
{
    switch ((ULONG)Class) {
    case ProcessBasicInformation:
        return sizeof(PROCESS_BASIC_INFORMATION);
    case ProcessTimes:
        return sizeof(KERNEL_USER_TIMES);
    case ProcessPriorityClass:
        return sizeof(PROCESS_PRIORITY_CLASS);
    case ProcessHandleCount:
    case ProcessPriorityBoost:
        return sizeof(ULONG);
    default:
        return 0;
    }
}

static ULONG NtpSizeOfProcessSetting(PROCESSINFOCLASS Class)
{
    switch ((ULONG)Class) {
    case ProcessBasePriority:
        return sizeof(KPRIORITY);
    case ProcessAffinityMask:
        return sizeof(KAFFINITY);
    case ProcessPriorityClass:
        return sizeof(PROCESS_PRIORITY_CLASS);
    case ProcessPriorityBoost:
        return sizeof(ULONG);
    default:
        return 0;
    }
}

static NTSTATUS NtpQueryProcess(PEPROCESS Process, PROCESSINFOCLASS Class, PVOID Information)
{
    PPROCESS_BASIC_INFORMATION Basic = Information;
    PKERNEL_USER_TIMES Result = Information;
    PPROCESS_PRIORITY_CLASS Priority = Information;
    PSP_TIMES Times;
    UCHAR Known;
    switch ((ULONG)Class) {
    case ProcessBasicInformation:
        memset(Basic, 0, sizeof(*Basic));
        Basic->AffinityMask = NtpIsThisProcess(Process) ? KiQueryProcessAffinity() : KeQueryGroupAffinity(0);
        Basic->BasePriority = KiReadProcessBase(&Process->Pcb);
        Basic->UniqueProcessId = (ULONG_PTR)PsGetProcessId(Process);
        return PspQueryExitStatus(Process, &Basic->ExitStatus);
    case ProcessTimes:
        PspQueryProcessTimes(Process, &Times);
        Result->CreateTime.QuadPart = (LONGLONG)Times.CreateTime;
        Result->ExitTime.QuadPart = (LONGLONG)Times.ExitTime;
        Result->KernelTime.QuadPart = (LONGLONG)Times.KernelTime;
        Result->UserTime.QuadPart = (LONGLONG)Times.UserTime;
        return STATUS_SUCCESS;
    case ProcessPriorityClass:
        /* relaxed, here and below: a setting publishes nothing else */
        Known = NtpIsThisProcess(Process) ? __atomic_load_n(&NtpPriorityClass, __ATOMIC_RELAXED)
                                          : PROCESS_PRIORITY_CLASS_UNKNOWN;
        Priority->Foreground = FALSE;
        Priority->PriorityClass = Known != PROCESS_PRIORITY_CLASS_UNKNOWN ? Known : PROCESS_PRIORITY_CLASS_NORMAL;
        return STATUS_SUCCESS;
    case ProcessPriorityBoost:
        *(PULONG)Information = __atomic_load_n(&Process->Pcb.DisableBoost, __ATOMIC_RELAXED);
        return STATUS_SUCCESS;
    default:
        if (!NtpIsThisProcess(Process)) {
            return STATUS_NOT_SUPPORTED;
        }
        *(PULONG)Information = ObpCountHandles();
        return STATUS_SUCCESS;
    }
}

static NTSTATUS NtpReferenceProcessFor(KPROCESSOR_MODE Mode, HANDLE Handle, ACCESS_MASK Access, PVOID Information,
                                       ULONG Length, ULONG Required, PEPROCESS *Process)
{
    NTSTATUS Status = NtpCheckQuery(Required != 0, Information, Length, Required);
    return NT_SUCCESS(Status)
               ? ObReferenceObjectByHandle(Handle, Access, *PsProcessType, Mode, (PVOID *)Process, NULL)
               : Status;
}

static NTSTATUS NtpQueryInformationProcess(KPROCESSOR_MODE Mode, HANDLE ProcessHandle,
                                           PROCESSINFOCLASS ProcessInformationClass, PVOID ProcessInformation,
                                           ULONG ProcessInformationLength, PULONG ReturnLength)
{
    ULONG Required = NtpSizeOfProcessQuery(ProcessInformationClass);
    PEPROCESS Process;
    NTSTATUS Status = NtpReferenceProcessFor(Mode, ProcessHandle, PROCESS_QUERY_LIMITED_INFORMATION, ProcessInformation,
                                             ProcessInformationLength, Required, &Process);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = NtpQueryProcess(Process, ProcessInformationClass, ProcessInformation);
    ObDereferenceObject(Process);
    if (NT_SUCCESS(Status)) {
        NtpReturnLength(ReturnLength, Required);
    }
    return Status;
}

NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryInformationProcess(UserMode, ProcessHandle, ProcessInformationClass, ProcessInformation,
                                                  ProcessInformationLength, ReturnLength));
}

NTSTATUS ZwQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength, PULONG ReturnLength)
{
    return NTP_SERVICE(NtpQueryInformationProcess(KernelMode, ProcessHandle, ProcessInformationClass,
                                                  ProcessInformation, ProcessInformationLength, ReturnLength));
}

static NTSTATUS NtpSetProcessBase(KPRIORITY Base)
{
    if (Base <= LOW_PRIORITY || Base > HIGH_PRIORITY) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Base >= LOW_REALTIME_PRIORITY) {
        return STATUS_PRIVILEGE_NOT_HELD;
    }
    KiSetProcessBasePriority(Base);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetPriorityClass(UCHAR Class)
{
    NTSTATUS Status;
    if (Class == PROCESS_PRIORITY_CLASS_UNKNOWN || Class >= RTL_NUMBER_OF(NtpClassPriority)) {
        return STATUS_INVALID_PARAMETER;
    }
    Status = NtpSetProcessBase(NtpClassPriority[Class]);
    if (NT_SUCCESS(Status)) {
        __atomic_store_n(&NtpPriorityClass, Class, __ATOMIC_RELAXED);
    }
    return Status;
}

static NTSTATUS NtpSetProcess(PEPROCESS Process, PROCESSINFOCLASS Class, PVOID Information)
{
    if (!NtpIsThisProcess(Process)) {
        return STATUS_NOT_SUPPORTED;
    }
    switch ((ULONG)Class) {
    case ProcessBasePriority:
        return NtpSetProcessBase(*(KPRIORITY *)Information);
    case ProcessPriorityClass:
        return NtpSetPriorityClass(((PPROCESS_PRIORITY_CLASS)Information)->PriorityClass);
    case ProcessAffinityMask:
        return KiSetProcessAffinity(*(PKAFFINITY)Information) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    default:
        KiSetProcessDisableBoost(*(PULONG)Information != 0);
        return STATUS_SUCCESS;
    }
}

static NTSTATUS NtpSetInformationProcess(KPROCESSOR_MODE Mode, HANDLE ProcessHandle,
                                         PROCESSINFOCLASS ProcessInformationClass, PVOID ProcessInformation,
                                         ULONG ProcessInformationLength)
{
    PEPROCESS Process;
    NTSTATUS Status =
        NtpReferenceProcessFor(Mode, ProcessHandle, PROCESS_SET_INFORMATION, ProcessInformation, ProcessInformationLength,
                               NtpSizeOfProcessSetting(ProcessInformationClass), &Process);
    if (NT_SUCCESS(Status)) {
        Status = NtpSetProcess(Process, ProcessInformationClass, ProcessInformation);
        ObDereferenceObject(Process);
    }
    return Status;
}

NTSTATUS NtSetInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                 PVOID ProcessInformation, ULONG ProcessInformationLength)
{
    return NTP_SERVICE(NtpSetInformationProcess(UserMode, ProcessHandle, ProcessInformationClass, ProcessInformation,
                                                ProcessInformationLength));
}

NTSTATUS ZwSetInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                 PVOID ProcessInformation, ULONG ProcessInformationLength)
{
    return NTP_SERVICE(NtpSetInformationProcess(KernelMode, ProcessHandle, ProcessInformationClass, ProcessInformation,
                                                ProcessInformationLength));
}
