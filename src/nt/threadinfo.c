/*
 * threadinfo.c: asking for and setting what is known about a thread. Each class has one line in a table; a class
 * without one, or with one in the other table only, is refused as on Windows.
 */
#include "thread.h"

#define NTP_NORMAL_IO_PRIORITY 2
#define NTP_NORMAL_PAGE_PRIORITY 5
#define NTP_HIGHEST_INCREMENT 2
#define NTP_SATURATING_INCREMENT ((HIGH_PRIORITY + 1) / 2)

typedef struct _NTP_CLASS {
    NTSTATUS (*Routine)(PETHREAD Thread, PVOID Information);
    ULONG Length;
    ACCESS_MASK Access;        /* either of the two is enough */
    ACCESS_MASK OtherAccess;
} NTP_CLASS;

/* A larger right includes the limited one, whichever of them the handle was opened with. */
static NTSTATUS NtpReferenceFor(HANDLE ThreadHandle, const NTP_CLASS *Class, PETHREAD *Thread)
{
    NTSTATUS Status = NtpReferenceThread(ThreadHandle, Class->Access, Thread);
    if (Status == STATUS_ACCESS_DENIED && Class->OtherAccess != 0) {
        Status = NtpReferenceThread(ThreadHandle, Class->OtherAccess, Thread);
    }
    return Status;
}

/* Asking. */

static NTSTATUS NtpQueryBasic(PETHREAD Thread, PVOID Information)
{
    PTHREAD_BASIC_INFORMATION Basic = Information;
    PKTHREAD Tcb = &Thread->Tcb;
    GROUP_AFFINITY Affinity;
    KiQueryUserAffinityThread(Tcb, &Affinity);
    Basic->ExitStatus = PsGetThreadExitStatus(Thread);
    Basic->TebBaseAddress = PspTebAddress(Thread);
    Basic->ClientId.UniqueProcess = PsGetThreadProcessId(Thread);
    Basic->ClientId.UniqueThread = PsGetThreadId(Thread);
    Basic->AffinityMask = Affinity.Mask;
    Basic->Priority = KeQueryPriorityThread(Tcb);
    Basic->BasePriority = KiQueryBasePriorityThread(Tcb);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryTimes(PETHREAD Thread, PVOID Information)
{
    PKERNEL_USER_TIMES Result = Information;
    PSP_TIMES Times;
    PspQueryTimes(Thread, &Times);
    Result->CreateTime.QuadPart = (LONGLONG)Times.CreateTime;
    Result->ExitTime.QuadPart = (LONGLONG)Times.ExitTime;
    Result->KernelTime.QuadPart = (LONGLONG)Times.KernelTime;
    Result->UserTime.QuadPart = (LONGLONG)Times.UserTime;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryStartAddress(PETHREAD Thread, PVOID Information)
{
    /* relaxed: it may be set at any time and says nothing else */
    *(PVOID *)Information = __atomic_load_n(&Thread->Win32StartAddress, __ATOMIC_RELAXED);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryPerformanceCount(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    ((PLARGE_INTEGER)Information)->QuadPart = 0;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryLastThread(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    *(PULONG)Information = PspIsLastThread();
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryBoost(PETHREAD Thread, PVOID Information)
{
    *(PULONG)Information = KiQueryDisableBoostThread(&Thread->Tcb);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryIoPending(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    *(PULONG)Information = FALSE;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryHidden(PETHREAD Thread, PVOID Information)
{
    *(PBOOLEAN)Information = __atomic_load_n(&Thread->HideFromDebugger, __ATOMIC_RELAXED);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryBreakOnTermination(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    *(PULONG)Information = FALSE;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryTerminated(PETHREAD Thread, PVOID Information)
{
    *(PULONG)Information = PspHasEnded(Thread);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryIoPriority(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    *(PULONG)Information = NTP_NORMAL_IO_PRIORITY;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryPagePriority(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    *(PULONG)Information = NTP_NORMAL_PAGE_PRIORITY;
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryGroup(PETHREAD Thread, PVOID Information)
{
    KiQueryUserAffinityThread(&Thread->Tcb, Information);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpQueryIdealProcessor(PETHREAD Thread, PVOID Information)
{
    /* relaxed: a hint */
    return KeGetProcessorNumberFromIndex(__atomic_load_n(&Thread->Tcb.IdealProcessor, __ATOMIC_RELAXED), Information);
}

static NTSTATUS NtpQuerySuspendCount(PETHREAD Thread, PVOID Information)
{
    *(PULONG)Information = KiQuerySuspendCountThread(&Thread->Tcb);
    return STATUS_SUCCESS;
}

#define NTP_QUERY(Function, Type) {Function, sizeof(Type), THREAD_QUERY_INFORMATION, 0}
#define NTP_QUERY_LIMITED(Function, Type)                                                                              \
    {Function, sizeof(Type), THREAD_QUERY_LIMITED_INFORMATION, THREAD_QUERY_INFORMATION}

static const NTP_CLASS NtpQueries[MaxThreadInfoClass] = {
    [ThreadBasicInformation] = NTP_QUERY_LIMITED(NtpQueryBasic, THREAD_BASIC_INFORMATION),
    [ThreadTimes] = NTP_QUERY_LIMITED(NtpQueryTimes, KERNEL_USER_TIMES),
    [ThreadQuerySetWin32StartAddress] = NTP_QUERY(NtpQueryStartAddress, PVOID),
    [ThreadPerformanceCount] = NTP_QUERY(NtpQueryPerformanceCount, LARGE_INTEGER),
    [ThreadAmILastThread] = NTP_QUERY(NtpQueryLastThread, ULONG),
    [ThreadPriorityBoost] = NTP_QUERY_LIMITED(NtpQueryBoost, ULONG),
    [ThreadIsIoPending] = NTP_QUERY(NtpQueryIoPending, ULONG),
    [ThreadHideFromDebugger] = NTP_QUERY(NtpQueryHidden, BOOLEAN),
    [ThreadBreakOnTermination] = NTP_QUERY(NtpQueryBreakOnTermination, ULONG),
    [ThreadIsTerminated] = NTP_QUERY_LIMITED(NtpQueryTerminated, ULONG),
    [ThreadIoPriority] = NTP_QUERY(NtpQueryIoPriority, ULONG),
    [ThreadPagePriority] = NTP_QUERY(NtpQueryPagePriority, ULONG),
    [ThreadGroupInformation] = NTP_QUERY_LIMITED(NtpQueryGroup, GROUP_AFFINITY),
    [ThreadActualGroupAffinity] = NTP_QUERY_LIMITED(NtpQueryGroup, GROUP_AFFINITY),
    [ThreadIdealProcessorEx] = NTP_QUERY_LIMITED(NtpQueryIdealProcessor, PROCESSOR_NUMBER),
    [ThreadSuspendCount] = NTP_QUERY_LIMITED(NtpQuerySuspendCount, ULONG),
};

/* The text comes directly after the structure. */
static NTSTATUS NtpQueryName(PETHREAD Thread, PTHREAD_NAME_INFORMATION Name, ULONG Length, PULONG Needed)
{
    ULONG Room = Length > sizeof(*Name) ? Length - (ULONG)sizeof(*Name) : 0;
    PWSTR Text = Room != 0 ? (PWSTR)(Name + 1) : NULL; /* Name may be NULL to ask for the length */
    USHORT TextLength;
    NTSTATUS Status = PspQueryName(Thread, Text, Room, &TextLength);
    *Needed = (ULONG)sizeof(*Name) + TextLength;
    if (Length < sizeof(*Name)) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    if (NT_SUCCESS(Status)) {
        Name->ThreadName.Length = TextLength;
        Name->ThreadName.MaximumLength = TextLength;
        Name->ThreadName.Buffer = (PWSTR)(Name + 1);
    }
    return Status;
}

static NTSTATUS NtpQueryClass(PETHREAD Thread, THREADINFOCLASS Class, PVOID Information, ULONG Length, PULONG Needed)
{
    *Needed = Length;
    return Class == ThreadNameInformation ? NtpQueryName(Thread, Information, Length, Needed)
                                          : NtpQueries[Class].Routine(Thread, Information);
}

/* What can be refused without looking at the handle. */
static NTSTATUS NtpCheckInformation(const NTP_CLASS *Classes, ULONG Class, PVOID Information, ULONG Length)
{
    if (Class >= MaxThreadInfoClass || (Classes[Class].Routine == NULL && Class != ThreadNameInformation)) {
        return STATUS_INVALID_INFO_CLASS;
    }
    if (Classes[Class].Routine != NULL && Classes[Class].Length != Length) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    return Information == NULL && Length != 0 ? STATUS_ACCESS_VIOLATION : STATUS_SUCCESS;
}

NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                  ULONG ThreadInformationLength, PULONG ReturnLength)
{
    static const NTP_CLASS Name = {NULL, 0, THREAD_QUERY_LIMITED_INFORMATION, THREAD_QUERY_INFORMATION};
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    ULONG Needed = 0;
    NTSTATUS Status =
        NtpCheckInformation(NtpQueries, ThreadInformationClass, ThreadInformation, ThreadInformationLength);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KiEnterService(Current);
    Status = NtpReferenceFor(
        ThreadHandle, ThreadInformationClass == ThreadNameInformation ? &Name : &NtpQueries[ThreadInformationClass],
        &Thread);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueryClass(Thread, ThreadInformationClass, ThreadInformation, ThreadInformationLength, &Needed);
        ObDereferenceObject(Thread);
    }
    KiExitService(Current);
    if (ReturnLength != NULL && Needed != 0) {
        *ReturnLength = Needed;
    }
    return Status;
}

/* Setting. */

static NTSTATUS NtpSetPriority(PETHREAD Thread, PVOID Information)
{
    KPRIORITY Priority = *(KPRIORITY *)Information;
    if (Priority <= LOW_PRIORITY || Priority > HIGH_PRIORITY) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Priority >= LOW_REALTIME_PRIORITY) {
        return STATUS_PRIVILEGE_NOT_HELD;
    }
    KeSetPriorityThread(&Thread->Tcb, Priority);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetBasePriority(PETHREAD Thread, PVOID Information)
{
    LONG Increment = *(PLONG)Information;
    BOOLEAN Saturating = Increment == NTP_SATURATING_INCREMENT || Increment == -NTP_SATURATING_INCREMENT;
    if (!Saturating && (Increment > NTP_HIGHEST_INCREMENT || Increment < -NTP_HIGHEST_INCREMENT)) {
        return STATUS_INVALID_PARAMETER;
    }
    KeSetBasePriorityThread(&Thread->Tcb, Increment);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetGroup(PETHREAD Thread, PVOID Information)
{
    GROUP_AFFINITY Previous;
    if (PspHasEnded(Thread)) {
        return STATUS_THREAD_IS_TERMINATING;
    }
    return KiSetUserAffinityThread(&Thread->Tcb, Information, &Previous) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

/* The mask is one of the group that the thread is in. */
static NTSTATUS NtpSetAffinity(PETHREAD Thread, PVOID Information)
{
    GROUP_AFFINITY Affinity;
    KiQueryUserAffinityThread(&Thread->Tcb, &Affinity);
    Affinity.Mask = *(PKAFFINITY)Information;
    return NtpSetGroup(Thread, &Affinity);
}

static NTSTATUS NtpSetBoost(PETHREAD Thread, PVOID Information)
{
    KeSetDisableBoostThread(&Thread->Tcb, *(PULONG)Information != 0);
    return STATUS_SUCCESS;
}

/* The status of success is the number before. */
static NTSTATUS NtpSetIdealProcessor(PETHREAD Thread, PVOID Information)
{
    ULONG Processor = *(PULONG)Information;
    if (Processor > MAXIMUM_PROC_PER_GROUP) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Processor == MAXIMUM_PROC_PER_GROUP) {
        return (NTSTATUS)(__atomic_load_n(&Thread->Tcb.IdealProcessor, __ATOMIC_RELAXED) % MAXIMUM_PROC_PER_GROUP);
    }
    if (Processor >= KeQueryActiveProcessorCountEx(0)) {
        return STATUS_INVALID_PARAMETER;
    }
    return (NTSTATUS)(__atomic_exchange_n(&Thread->Tcb.IdealProcessor, Processor, __ATOMIC_RELAXED) %
                      MAXIMUM_PROC_PER_GROUP);
}

/* The number before comes back in the same place. */
static NTSTATUS NtpSetIdealProcessorEx(PETHREAD Thread, PVOID Information)
{
    ULONG Processor = KeGetProcessorIndexFromNumber(Information);
    if (Processor == INVALID_PROCESSOR_INDEX) {
        return STATUS_INVALID_PARAMETER;
    }
    Processor = __atomic_exchange_n(&Thread->Tcb.IdealProcessor, Processor, __ATOMIC_RELAXED);
    return KeGetProcessorNumberFromIndex(Processor, Information);
}

static NTSTATUS NtpSetStartAddress(PETHREAD Thread, PVOID Information)
{
    __atomic_store_n(&Thread->Win32StartAddress, *(PVOID *)Information, __ATOMIC_RELAXED);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetHidden(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Information);
    __atomic_store_n(&Thread->HideFromDebugger, TRUE, __ATOMIC_RELAXED);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetPrivileged(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    UNREFERENCED_PARAMETER(Information);
    return STATUS_PRIVILEGE_NOT_HELD;
}

/* The machine needs no help with unaligned data. */
static NTSTATUS NtpSetNothing(PETHREAD Thread, PVOID Information)
{
    UNREFERENCED_PARAMETER(Thread);
    UNREFERENCED_PARAMETER(Information);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetName(PETHREAD Thread, PVOID Information)
{
    PCUNICODE_STRING Name = &((PTHREAD_NAME_INFORMATION)Information)->ThreadName;
    if (Name->Length % sizeof(WCHAR) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    return Name->Length != 0 && Name->Buffer == NULL ? STATUS_ACCESS_VIOLATION : PspSetName(Thread, Name);
}

#define NTP_SET(Function, Length) {Function, Length, THREAD_SET_INFORMATION, 0}
#define NTP_SET_LIMITED(Function, Length) {Function, Length, THREAD_SET_LIMITED_INFORMATION, THREAD_SET_INFORMATION}

static const NTP_CLASS NtpSettings[MaxThreadInfoClass] = {
    [ThreadPriority] = NTP_SET(NtpSetPriority, sizeof(KPRIORITY)),
    [ThreadBasePriority] = NTP_SET_LIMITED(NtpSetBasePriority, sizeof(LONG)),
    [ThreadAffinityMask] = NTP_SET(NtpSetAffinity, sizeof(KAFFINITY)),
    [ThreadEnableAlignmentFaultFixup] = NTP_SET(NtpSetNothing, sizeof(BOOLEAN)),
    [ThreadQuerySetWin32StartAddress] = NTP_SET(NtpSetStartAddress, sizeof(PVOID)),
    [ThreadIdealProcessor] = NTP_SET(NtpSetIdealProcessor, sizeof(ULONG)),
    [ThreadPriorityBoost] = NTP_SET_LIMITED(NtpSetBoost, sizeof(ULONG)),
    [ThreadHideFromDebugger] = NTP_SET(NtpSetHidden, 0),
    [ThreadBreakOnTermination] = NTP_SET(NtpSetPrivileged, sizeof(ULONG)),
    [ThreadGroupInformation] = NTP_SET(NtpSetGroup, sizeof(GROUP_AFFINITY)),
    [ThreadIdealProcessorEx] = NTP_SET_LIMITED(NtpSetIdealProcessorEx, sizeof(PROCESSOR_NUMBER)),
    [ThreadNameInformation] = NTP_SET_LIMITED(NtpSetName, sizeof(THREAD_NAME_INFORMATION)),
};

NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                ULONG ThreadInformationLength)
{
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    NTSTATUS Status =
        NtpCheckInformation(NtpSettings, ThreadInformationClass, ThreadInformation, ThreadInformationLength);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KiEnterService(Current);
    Status = NtpReferenceFor(ThreadHandle, &NtpSettings[ThreadInformationClass], &Thread);
    if (NT_SUCCESS(Status)) {
        Status = NtpSettings[ThreadInformationClass].Routine(Thread, ThreadInformation);
        ObDereferenceObject(Thread);
    }
    KiExitService(Current);
    return Status;
}
