/* processinfo.c: queries and settings of a process. */
#include "ntp.h"

#include "../ps/psp.h"

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

static NTSTATUS NtpQueryBasicProcess(PEPROCESS Process, PPROCESS_BASIC_INFORMATION Basic)
{
    memset(Basic, 0, sizeof(*Basic));
    Basic->AffinityMask = NtpIsThisProcess(Process) ? KiQueryProcessAffinity() : KeQueryGroupAffinity(0);
    Basic->BasePriority = KiReadProcessBase(&Process->Pcb);
    Basic->UniqueProcessId = (ULONG_PTR)PsGetProcessId(Process);
    return PspQueryExitStatus(Process, &Basic->ExitStatus);
}

static VOID NtpQueryProcessTimes(PEPROCESS Process, PKERNEL_USER_TIMES Result)
{
    PSP_TIMES Times;
    PspQueryProcessTimes(Process, &Times);
    Result->CreateTime.QuadPart = (LONGLONG)Times.CreateTime;
    Result->ExitTime.QuadPart = (LONGLONG)Times.ExitTime;
    Result->KernelTime.QuadPart = (LONGLONG)Times.KernelTime;
    Result->UserTime.QuadPart = (LONGLONG)Times.UserTime;
}

static VOID NtpQueryPriorityClass(PEPROCESS Process, PPROCESS_PRIORITY_CLASS Result)
{
    /* relaxed, here and below: a setting publishes nothing else */
    UCHAR Class = __atomic_load_n(&Process->Pcb.PriorityClass, __ATOMIC_RELAXED);
    Result->Foreground = FALSE;
    Result->PriorityClass = Class != PROCESS_PRIORITY_CLASS_UNKNOWN ? Class : PROCESS_PRIORITY_CLASS_NORMAL;
}

static NTSTATUS NtpQueryProcess(PEPROCESS Process, PROCESSINFOCLASS Class, PVOID Information)
{
    switch ((ULONG)Class) {
    case ProcessBasicInformation:
        return NtpQueryBasicProcess(Process, Information);
    case ProcessTimes:
        NtpQueryProcessTimes(Process, Information);
        return STATUS_SUCCESS;
    case ProcessPriorityClass:
        NtpQueryPriorityClass(Process, Information);
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

static NTSTATUS NtpSetProcessBase(PEPROCESS Process, KPRIORITY Base)
{
    if (Base <= LOW_PRIORITY || Base > HIGH_PRIORITY) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Base >= LOW_REALTIME_PRIORITY) {
        return STATUS_PRIVILEGE_NOT_HELD;
    }
    UNREFERENCED_PARAMETER(Process);
    KiSetProcessBasePriority(Base);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetPriorityClass(PEPROCESS Process, UCHAR Class)
{
    NTSTATUS Status;
    if (Class == PROCESS_PRIORITY_CLASS_UNKNOWN || Class >= RTL_NUMBER_OF(NtpClassPriority)) {
        return STATUS_INVALID_PARAMETER;
    }
    Status = NtpSetProcessBase(Process, NtpClassPriority[Class]);
    if (NT_SUCCESS(Status)) {
        __atomic_store_n(&Process->Pcb.PriorityClass, Class, __ATOMIC_RELAXED);
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
        return NtpSetProcessBase(Process, *(KPRIORITY *)Information);
    case ProcessPriorityClass:
        return NtpSetPriorityClass(Process, ((PPROCESS_PRIORITY_CLASS)Information)->PriorityClass);
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
