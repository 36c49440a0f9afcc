/*
 * thread.c: the services for threads: creating and opening, ending, suspending and alerting them, user APCs, and information
 * about them. Each information class is one line in a table; a class without a line is rejected, as on Windows.
 */
#include <interlock/exception.h>

#include "../ps/psp.h"
#include "ntp.h"

#define NTP_CREATE_FLAGS                                                                                               \
    (THREAD_CREATE_FLAGS_CREATE_SUSPENDED | THREAD_CREATE_FLAGS_SKIP_THREAD_ATTACH |                                   \
     THREAD_CREATE_FLAGS_HIDE_FROM_DEBUGGER | THREAD_CREATE_FLAGS_LOADER_WORKER |                                      \
     THREAD_CREATE_FLAGS_SKIP_LOADER_INIT | THREAD_CREATE_FLAGS_BYPASS_PROCESS_FREEZE)

#define NTP_NORMAL_IO_PRIORITY 2
#define NTP_NORMAL_PAGE_PRIORITY 5
#define NTP_HIGHEST_INCREMENT 2
#define NTP_SATURATING_INCREMENT ((HIGH_PRIORITY + 1) / 2)

static NTSTATUS NtpReferenceThreadAs(KPROCESSOR_MODE Mode, HANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                     PETHREAD *Thread)
{
    return ObReferenceObjectByHandle(ThreadHandle, DesiredAccess, *PsThreadType, Mode, (PVOID *)Thread, NULL);
}

/* Creating. */

static NTSTATUS NtpTakeAttribute(PPS_ATTRIBUTE Attribute, PPSP_CREATE Create)
{
    SIZE_T Size;
    switch (Attribute->Attribute) {
    case PS_ATTRIBUTE_CLIENT_ID:
        Create->ClientId = Attribute->ValuePtr;
        Size = sizeof(CLIENT_ID);
        break;
    case PS_ATTRIBUTE_TEB_ADDRESS:
        Create->TebAddress = Attribute->ValuePtr;
        Size = sizeof(PVOID);
        break;
    case PS_ATTRIBUTE_GROUP_AFFINITY:
        Create->Affinity = Attribute->ValuePtr;
        Size = sizeof(GROUP_AFFINITY);
        break;
    case PS_ATTRIBUTE_IDEAL_PROCESSOR:
        Size = sizeof(PROCESSOR_NUMBER);
        break;
    default:
        return STATUS_INVALID_PARAMETER;
    }
    if (Attribute->Size != Size) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Attribute->ValuePtr == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Attribute->ReturnLength != NULL) {
        *Attribute->ReturnLength = Size;
    }
    if (Attribute->Attribute == PS_ATTRIBUTE_IDEAL_PROCESSOR) {
        Create->IdealProcessor = KeGetProcessorIndexFromNumber(Attribute->ValuePtr);
        return Create->IdealProcessor != INVALID_PROCESSOR_INDEX ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS NtpTakeAttributes(PPS_ATTRIBUTE_LIST List, PPSP_CREATE Create)
{
    NTSTATUS Status = STATUS_SUCCESS;
    if (List == NULL) {
        return Status;
    }
    SIZE_T Length = List->TotalLength - FIELD_OFFSET(PS_ATTRIBUTE_LIST, Attributes);
    if (List->TotalLength < (SIZE_T)FIELD_OFFSET(PS_ATTRIBUTE_LIST, Attributes) || Length % sizeof(PS_ATTRIBUTE) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    for (SIZE_T Index = 0; Index < Length / sizeof(PS_ATTRIBUTE) && NT_SUCCESS(Status); Index++) {
        Status = NtpTakeAttribute(&List->Attributes[Index], Create);
    }
    return Status;
}

NTSTATUS NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                          HANDLE ProcessHandle, PUSER_THREAD_START_ROUTINE StartRoutine, PVOID Argument,
                          ULONG CreateFlags, SIZE_T ZeroBits, SIZE_T StackSize, SIZE_T MaximumStackSize,
                          PPS_ATTRIBUTE_LIST AttributeList)
{
    ULONG Attributes = ObjectAttributes != NULL ? ObjectAttributes->Attributes : 0;
    PSP_CREATE Create = {
        .UserStartRoutine = StartRoutine,
        .StartContext = Argument,
        .StackSize = StackSize > MaximumStackSize ? StackSize : MaximumStackSize,
        .Suspended = (CreateFlags & THREAD_CREATE_FLAGS_CREATE_SUSPENDED) != 0,
        .HideFromDebugger = (CreateFlags & THREAD_CREATE_FLAGS_HIDE_FROM_DEBUGGER) != 0,
        .IdealProcessor = MAXULONG,
    };
    NTSTATUS Status;
    UNREFERENCED_PARAMETER(ZeroBits);
    if (!NtpClearHandle(ThreadHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if ((CreateFlags & ~(ULONG)NTP_CREATE_FLAGS) != 0 || StartRoutine == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    NTP_SERVICE_UNTIL_RETURN();
    Status = NtpTakeAttributes(AttributeList, &Create);
    if (NT_SUCCESS(Status)) {
        Status = PspCheckThreadProcess(ProcessHandle, UserMode);
    }
    if (NT_SUCCESS(Status)) {
        Status =
            PspCreateThread(&Create, Attributes & ~(ULONG)OBJ_KERNEL_HANDLE, DesiredAccess, UserMode, ThreadHandle);
    }
    return Status;
}

/* Opening. */

static NTSTATUS NtpOpenThread(KPROCESSOR_MODE Mode, PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, PCLIENT_ID ClientId)
{
    const ULONG Refused = Mode != KernelMode ? OBJ_KERNEL_HANDLE : 0;
    PETHREAD Thread;
    if (!NtpClearHandle(ThreadHandle) || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    if ((ClientId->UniqueProcess != NULL && ClientId->UniqueProcess != PsGetCurrentProcessId()) ||
        !NT_SUCCESS(PsLookupThreadByThreadId(ClientId->UniqueThread, &Thread))) {
        return STATUS_INVALID_CID;
    }
    NTSTATUS Status = STATUS_ACCESS_DENIED;
    if (DesiredAccess != 0 || Mode == KernelMode) {
        Status = ObOpenObjectByPointer(Thread, ObjectAttributes->Attributes & ~Refused, NULL, DesiredAccess,
                                       *PsThreadType, Mode, ThreadHandle);
    }
    ObDereferenceObject(Thread);
    return Status;
}

NTSTATUS NtOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                      PCLIENT_ID ClientId)
{
    return NTP_SERVICE(NtpOpenThread(UserMode, ThreadHandle, DesiredAccess, ObjectAttributes, ClientId));
}

NTSTATUS ZwOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                      PCLIENT_ID ClientId)
{
    return NTP_SERVICE(NtpOpenThread(KernelMode, ThreadHandle, DesiredAccess, ObjectAttributes, ClientId));
}

/* Ending. */

/* The current thread ends outside the service: its exit routines call the program. */
NTSTATUS NtTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus)
{
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    NTSTATUS Status;
    if (ThreadHandle == NULL) {
        if (PspIsLastThread()) {
            return STATUS_CANT_TERMINATE_SELF;
        }
        ThreadHandle = NtCurrentThread();
    }
    KiEnterService(Current);
    Status = NtpReferenceThreadAs(UserMode, ThreadHandle, THREAD_TERMINATE, &Thread);
    if (NT_SUCCESS(Status)) {
        BOOLEAN Self = &Thread->Tcb == Current;
        Status = Self                       ? STATUS_SUCCESS
                 : PsIsSystemThread(Thread) ? STATUS_ACCESS_DENIED
                                            : KiTerminateThread(&Thread->Tcb, ExitStatus);
        ObDereferenceObject(Thread);
        if (Self) {
            KiExitService(Current);
            PspExitThread(Thread, ExitStatus);
        }
    }
    KiExitService(Current);
    return Status;
}

/* Suspending, resuming, alerting. */

typedef enum _NTP_THREAD_CHANGE { NtpSuspend, NtpResume, NtpAlert, NtpAlertResume } NTP_THREAD_CHANGE;

static NTSTATUS NtpChangeThread(KPROCESSOR_MODE Mode, HANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                NTP_THREAD_CHANGE Change, PULONG PreviousSuspendCount)
{
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    ULONG PreviousCount = 0;
    NTSTATUS Status;
    KiEnterService(Current);
    Status = NtpReferenceThreadAs(Mode, ThreadHandle, DesiredAccess, &Thread);
    if (NT_SUCCESS(Status)) {
        switch (Change) {
        case NtpSuspend:
            Status = KiSuspendThread(&Thread->Tcb, &PreviousCount);
            break;
        case NtpResume:
            PreviousCount = KeResumeThread(&Thread->Tcb);
            break;
        case NtpAlert:
            KeAlertThread(&Thread->Tcb, Mode);
            break;
        case NtpAlertResume:
            PreviousCount = KeAlertResumeThread(&Thread->Tcb);
            break;
        }
        ObDereferenceObject(Thread);
    }
    KiExitService(Current);
    if (NT_SUCCESS(Status) && PreviousSuspendCount != NULL) {
        *PreviousSuspendCount = PreviousCount;
    }
    return Status;
}

NTSTATUS NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return NtpChangeThread(UserMode, ThreadHandle, THREAD_SUSPEND_RESUME, NtpSuspend, PreviousSuspendCount);
}

NTSTATUS NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return NtpChangeThread(UserMode, ThreadHandle, THREAD_SUSPEND_RESUME, NtpResume, PreviousSuspendCount);
}

NTSTATUS NtAlertThread(HANDLE ThreadHandle)
{
    return NtpChangeThread(UserMode, ThreadHandle, THREAD_ALERT, NtpAlert, NULL);
}

NTSTATUS ZwAlertThread(HANDLE ThreadHandle)
{
    return NtpChangeThread(KernelMode, ThreadHandle, THREAD_ALERT, NtpAlert, NULL);
}

NTSTATUS NtAlertResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return NtpChangeThread(UserMode, ThreadHandle, THREAD_SUSPEND_RESUME, NtpAlertResume, PreviousSuspendCount);
}

ULONG NtGetCurrentProcessorNumber(VOID)
{
    return KeGetCurrentProcessorNumber();
}

ULONG NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcessorNumber)
{
    return KeGetCurrentProcessorNumberEx(ProcessorNumber);
}

/* Information. */

#define NTP_ANY_LENGTH MAXULONG

typedef struct _NTP_THREAD_CLASS {
    ULONG Length;
    ACCESS_MASK Access;        /* 0: no such class */
} NTP_THREAD_CLASS;

/* A handle with the full right has the limited one too: ObpGrantAccess. */
#define NTP_QUERY(Length) {Length, THREAD_QUERY_INFORMATION}
#define NTP_QUERY_LIMITED(Length) {Length, THREAD_QUERY_LIMITED_INFORMATION}

static const NTP_THREAD_CLASS NtpQueries[MaxThreadInfoClass] = {
    [ThreadBasicInformation] = NTP_QUERY_LIMITED(sizeof(THREAD_BASIC_INFORMATION)),
    [ThreadTimes] = NTP_QUERY_LIMITED(sizeof(KERNEL_USER_TIMES)),
    [ThreadQuerySetWin32StartAddress] = NTP_QUERY(sizeof(PVOID)),
    [ThreadPerformanceCount] = NTP_QUERY(sizeof(LARGE_INTEGER)),
    [ThreadAmILastThread] = NTP_QUERY(sizeof(ULONG)),
    [ThreadPriorityBoost] = NTP_QUERY_LIMITED(sizeof(ULONG)),
    [ThreadIsIoPending] = NTP_QUERY(sizeof(ULONG)),
    [ThreadHideFromDebugger] = NTP_QUERY(sizeof(BOOLEAN)),
    [ThreadBreakOnTermination] = NTP_QUERY(sizeof(ULONG)),
    [ThreadIsTerminated] = NTP_QUERY_LIMITED(sizeof(ULONG)),
    [ThreadIoPriority] = NTP_QUERY(sizeof(ULONG)),
    [ThreadPagePriority] = NTP_QUERY(sizeof(ULONG)),
    [ThreadGroupInformation] = NTP_QUERY_LIMITED(sizeof(GROUP_AFFINITY)),
    [ThreadActualGroupAffinity] = NTP_QUERY_LIMITED(sizeof(GROUP_AFFINITY)),
    [ThreadIdealProcessorEx] = NTP_QUERY_LIMITED(sizeof(PROCESSOR_NUMBER)),
    [ThreadNameInformation] = NTP_QUERY_LIMITED(NTP_ANY_LENGTH),
    [ThreadSuspendCount] = NTP_QUERY_LIMITED(sizeof(ULONG)),
};

#define NTP_SET(Length) {Length, THREAD_SET_INFORMATION}
#define NTP_SET_LIMITED(Length) {Length, THREAD_SET_LIMITED_INFORMATION}

static const NTP_THREAD_CLASS NtpSettings[MaxThreadInfoClass] = {
    [ThreadPriority] = NTP_SET(sizeof(KPRIORITY)),
    [ThreadBasePriority] = NTP_SET_LIMITED(sizeof(LONG)),
    [ThreadAffinityMask] = NTP_SET(sizeof(KAFFINITY)),
    [ThreadEnableAlignmentFaultFixup] = NTP_SET(sizeof(BOOLEAN)),
    [ThreadQuerySetWin32StartAddress] = NTP_SET(sizeof(PVOID)),
    [ThreadIdealProcessor] = NTP_SET(sizeof(ULONG)),
    [ThreadPriorityBoost] = NTP_SET_LIMITED(sizeof(ULONG)),
    [ThreadHideFromDebugger] = NTP_SET(0),
    [ThreadBreakOnTermination] = NTP_SET(sizeof(ULONG)),
    [ThreadGroupInformation] = NTP_SET(sizeof(GROUP_AFFINITY)),
    [ThreadIdealProcessorEx] = NTP_SET_LIMITED(sizeof(PROCESSOR_NUMBER)),
    [ThreadNameInformation] = NTP_SET_LIMITED(sizeof(THREAD_NAME_INFORMATION)),
};

/* Reports what is wrong in this order: class, length, buffer, handle. A larger right includes the limited one,
   whichever of them the handle was opened with. */
static NTSTATUS NtpReferenceForClass(KPROCESSOR_MODE Mode, HANDLE ThreadHandle, const NTP_THREAD_CLASS *Classes,
                                     ULONG Class, PVOID Information, ULONG Length, PETHREAD *Thread)
{
    if (Class >= MaxThreadInfoClass || Classes[Class].Access == 0) {
        return STATUS_INVALID_INFO_CLASS;
    }
    if (Classes[Class].Length != NTP_ANY_LENGTH && Classes[Class].Length != Length) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    if (Information == NULL && Length != 0) {
        return STATUS_ACCESS_VIOLATION;
    }
    return NtpReferenceThreadAs(Mode, ThreadHandle, Classes[Class].Access, Thread);
}

static VOID NtpDescribeThread(PETHREAD Thread, PTHREAD_BASIC_INFORMATION Basic)
{
    GROUP_AFFINITY Affinity;
    KiQueryUserAffinityThread(&Thread->Tcb, &Affinity);
    Basic->ExitStatus = PsGetThreadExitStatus(Thread);
    Basic->TebBaseAddress = PspTebAddress(Thread);
    Basic->ClientId.UniqueProcess = PsGetThreadProcessId(Thread);
    Basic->ClientId.UniqueThread = PsGetThreadId(Thread);
    Basic->AffinityMask = Affinity.Mask;
    Basic->Priority = KeQueryPriorityThread(&Thread->Tcb);
    Basic->BasePriority = KiQueryBasePriorityThread(&Thread->Tcb);
}

static VOID NtpDescribeTimes(PETHREAD Thread, PKERNEL_USER_TIMES Result)
{
    PSP_TIMES Times;
    PspQueryTimes(Thread, &Times);
    Result->CreateTime.QuadPart = (LONGLONG)Times.CreateTime;
    Result->ExitTime.QuadPart = (LONGLONG)Times.ExitTime;
    Result->KernelTime.QuadPart = (LONGLONG)Times.KernelTime;
    Result->UserTime.QuadPart = (LONGLONG)Times.UserTime;
}

/* The text follows the structure. */
static NTSTATUS NtpQueryThreadName(PETHREAD Thread, PTHREAD_NAME_INFORMATION Name, ULONG Length, PULONG Needed)
{
    ULONG Room = Length > sizeof(*Name) ? Length - (ULONG)sizeof(*Name) : 0;
    PWSTR Text = Room != 0 ? (PWSTR)(Name + 1) : NULL; /* Name may be NULL to query the length */
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

static NTSTATUS NtpQueryThread(PETHREAD Thread, THREADINFOCLASS Class, PVOID Information, ULONG Length, PULONG Needed)
{
    PULONG Number = Information;
    *Needed = Length;
    switch ((ULONG)Class) {
    case ThreadBasicInformation:
        NtpDescribeThread(Thread, Information);
        break;
    case ThreadTimes:
        NtpDescribeTimes(Thread, Information);
        break;
    case ThreadQuerySetWin32StartAddress:
        /* relaxed: may be set at any time and publishes nothing */
        *(PVOID *)Information = __atomic_load_n(&Thread->Win32StartAddress, __ATOMIC_RELAXED);
        break;
    case ThreadPerformanceCount:
        ((PLARGE_INTEGER)Information)->QuadPart = 0;
        break;
    case ThreadAmILastThread:
        *Number = PspIsLastThread();
        break;
    case ThreadPriorityBoost:
        *Number = KiQueryDisableBoostThread(&Thread->Tcb);
        break;
    case ThreadIsIoPending:
    case ThreadBreakOnTermination:
        *Number = FALSE;
        break;
    case ThreadHideFromDebugger:
        *(PBOOLEAN)Information = __atomic_load_n(&Thread->HideFromDebugger, __ATOMIC_RELAXED);
        break;
    case ThreadIsTerminated:
        *Number = PspHasEnded(Thread);
        break;
    case ThreadIoPriority:
        *Number = NTP_NORMAL_IO_PRIORITY;
        break;
    case ThreadPagePriority:
        *Number = NTP_NORMAL_PAGE_PRIORITY;
        break;
    case ThreadGroupInformation:
    case ThreadActualGroupAffinity:
        KiQueryUserAffinityThread(&Thread->Tcb, Information);
        break;
    case ThreadIdealProcessorEx:
        /* relaxed: a hint */
        return KeGetProcessorNumberFromIndex(__atomic_load_n(&Thread->Tcb.IdealProcessor, __ATOMIC_RELAXED),
                                             Information);
    case ThreadNameInformation:
        return NtpQueryThreadName(Thread, Information, Length, Needed);
    case ThreadSuspendCount:
        *Number = KiQuerySuspendCountThread(&Thread->Tcb);
        break;
    }
    return STATUS_SUCCESS;
}

NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                  ULONG ThreadInformationLength, PULONG ReturnLength)
{
    PETHREAD Thread;
    ULONG Needed;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpReferenceForClass(UserMode, ThreadHandle, NtpQueries, ThreadInformationClass, ThreadInformation,
                                           ThreadInformationLength, &Thread);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueryThread(Thread, ThreadInformationClass, ThreadInformation, ThreadInformationLength, &Needed);
        ObDereferenceObject(Thread);
        NtpReturnLength(ReturnLength, Needed);
    }
    return Status;
}

static NTSTATUS NtpSetPriority(PETHREAD Thread, KPRIORITY Priority)
{
    if (Priority <= LOW_PRIORITY || Priority > HIGH_PRIORITY) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Priority >= LOW_REALTIME_PRIORITY) {
        return STATUS_PRIVILEGE_NOT_HELD;
    }
    KeSetPriorityThread(&Thread->Tcb, Priority);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetBasePriority(PETHREAD Thread, LONG Increment)
{
    BOOLEAN Saturating = Increment == NTP_SATURATING_INCREMENT || Increment == -NTP_SATURATING_INCREMENT;
    if (!Saturating && (Increment > NTP_HIGHEST_INCREMENT || Increment < -NTP_HIGHEST_INCREMENT)) {
        return STATUS_INVALID_PARAMETER;
    }
    KeSetBasePriorityThread(&Thread->Tcb, Increment);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetAffinity(PETHREAD Thread, const GROUP_AFFINITY *Affinity)
{
    GROUP_AFFINITY Previous;
    if (PspHasEnded(Thread)) {
        return STATUS_THREAD_IS_TERMINATING;
    }
    return KiSetUserAffinityThread(&Thread->Tcb, Affinity, &Previous) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

/* On success the status is the previous number. MAXIMUM_PROC_PER_GROUP only queries it. */
static NTSTATUS NtpSetIdealProcessor(PETHREAD Thread, ULONG Processor)
{
    volatile ULONG *Ideal = &Thread->Tcb.IdealProcessor;
    if (Processor > MAXIMUM_PROC_PER_GROUP ||
        (Processor != MAXIMUM_PROC_PER_GROUP && Processor >= KeQueryActiveProcessorCountEx(0))) {
        return STATUS_INVALID_PARAMETER;
    }
    /* relaxed, both: a hint */
    ULONG Previous = Processor == MAXIMUM_PROC_PER_GROUP ? __atomic_load_n(Ideal, __ATOMIC_RELAXED)
                                                         : __atomic_exchange_n(Ideal, Processor, __ATOMIC_RELAXED);
    return (NTSTATUS)(Previous % MAXIMUM_PROC_PER_GROUP);
}

/* The previous number is returned in the same place. */
static NTSTATUS NtpSetIdealProcessorEx(PETHREAD Thread, PPROCESSOR_NUMBER Number)
{
    ULONG Processor = KeGetProcessorIndexFromNumber(Number);
    if (Processor == INVALID_PROCESSOR_INDEX) {
        return STATUS_INVALID_PARAMETER;
    }
    Processor = __atomic_exchange_n(&Thread->Tcb.IdealProcessor, Processor, __ATOMIC_RELAXED);
    return KeGetProcessorNumberFromIndex(Processor, Number);
}

static NTSTATUS NtpSetThreadName(PETHREAD Thread, PCUNICODE_STRING Name)
{
    if (Name->Length % sizeof(WCHAR) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    return Name->Length != 0 && Name->Buffer == NULL ? STATUS_ACCESS_VIOLATION : PspSetName(Thread, Name);
}

static NTSTATUS NtpSetThread(PETHREAD Thread, THREADINFOCLASS Class, PVOID Information)
{
    GROUP_AFFINITY Affinity;
    switch ((ULONG)Class) {
    case ThreadPriority:
        return NtpSetPriority(Thread, *(KPRIORITY *)Information);
    case ThreadBasePriority:
        return NtpSetBasePriority(Thread, *(PLONG)Information);
    case ThreadAffinityMask:
        KiQueryUserAffinityThread(&Thread->Tcb, &Affinity); /* the mask is in the thread's present group */
        Affinity.Mask = *(PKAFFINITY)Information & KeQueryGroupAffinity(Affinity.Group); /* -1: all of them */
        return NtpSetAffinity(Thread, &Affinity);
    case ThreadGroupInformation:
        return NtpSetAffinity(Thread, Information);
    case ThreadQuerySetWin32StartAddress:
        __atomic_store_n(&Thread->Win32StartAddress, *(PVOID *)Information, __ATOMIC_RELAXED);
        return STATUS_SUCCESS;
    case ThreadIdealProcessor:
        return NtpSetIdealProcessor(Thread, *(PULONG)Information);
    case ThreadIdealProcessorEx:
        return NtpSetIdealProcessorEx(Thread, Information);
    case ThreadPriorityBoost:
        KeSetDisableBoostThread(&Thread->Tcb, *(PULONG)Information != 0);
        return STATUS_SUCCESS;
    case ThreadHideFromDebugger:
        __atomic_store_n(&Thread->HideFromDebugger, TRUE, __ATOMIC_RELAXED);
        return STATUS_SUCCESS;
    case ThreadBreakOnTermination:
        return STATUS_PRIVILEGE_NOT_HELD;
    case ThreadNameInformation:
        return NtpSetThreadName(Thread, &((PTHREAD_NAME_INFORMATION)Information)->ThreadName);
    default:
        return STATUS_SUCCESS; /* ThreadEnableAlignmentFaultFixup: the machine handles unaligned data */
    }
}

static NTSTATUS NtpSetInformationThread(KPROCESSOR_MODE Mode, HANDLE ThreadHandle,
                                        THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                        ULONG ThreadInformationLength)
{
    PETHREAD Thread;
    NTSTATUS Status = NtpReferenceForClass(Mode, ThreadHandle, NtpSettings, ThreadInformationClass, ThreadInformation,
                                           ThreadInformationLength, &Thread);
    if (NT_SUCCESS(Status)) {
        Status = NtpSetThread(Thread, ThreadInformationClass, ThreadInformation);
        ObDereferenceObject(Thread);
    }
    return Status;
}

NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                ULONG ThreadInformationLength)
{
    return NTP_SERVICE(NtpSetInformationThread(UserMode, ThreadHandle, ThreadInformationClass, ThreadInformation,
                                               ThreadInformationLength));
}

NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass, PVOID ThreadInformation,
                                ULONG ThreadInformationLength)
{
    return NTP_SERVICE(NtpSetInformationThread(KernelMode, ThreadHandle, ThreadInformationClass, ThreadInformation,
                                               ThreadInformationLength));
}

/* The registers of a suspended thread. */

static NTSTATUS NtpAccessContext(HANDLE ThreadHandle, ACCESS_MASK Access, PCONTEXT Context, BOOLEAN Write)
{
    PETHREAD Thread;
    NTSTATUS Status;
    if (Context == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    NTP_SERVICE_UNTIL_RETURN();
    Status = ObReferenceObjectByHandle(ThreadHandle, Access, *PsThreadType, UserMode, (PVOID *)&Thread, NULL);
    if (NT_SUCCESS(Status)) {
        Status = PspHasEnded(Thread) ? STATUS_THREAD_IS_TERMINATING : KiAccessRegisters(&Thread->Tcb, Context, Write);
        ObDereferenceObject(Thread);
    }
    return Status;
}

NTSTATUS NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext)
{
    return NtpAccessContext(ThreadHandle, THREAD_GET_CONTEXT, ThreadContext, FALSE);
}

NTSTATUS NtSetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext)
{
    return NtpAccessContext(ThreadHandle, THREAD_SET_CONTEXT, ThreadContext, TRUE);
}

/*
 * User APCs, and alerts by thread id.
 *
 * A special user APC does not wait until its thread waits alertably: it interrupts the thread wherever that is. Here it
 * would run inside a host signal, on top of arbitrary program code, and the C library's heap and streams are not
 * async-signal-safe: the routine could not even allocate. So special user APCs are refused.
 */

/* Frees the APC before its routine runs: the routine may queue another one, or never return. */
static VOID NtpFreeDeliveredApc(PKAPC Apc, PKNORMAL_ROUTINE *NormalRoutine, PVOID *NormalContext,
                                PVOID *SystemArgument1, PVOID *SystemArgument2)
{
    UNREFERENCED_PARAMETER(NormalRoutine);
    UNREFERENCED_PARAMETER(NormalContext);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);
    HalFree(Apc);
}

static VOID NtpFreeApc(PKAPC Apc)
{
    HalFree(Apc);
}

static NTSTATUS NtpQueueApc(PETHREAD Thread, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1, PVOID ApcArgument2,
                            PVOID ApcArgument3)
{
    if (PsIsSystemThread(Thread)) {
        return STATUS_INVALID_HANDLE;
    }
    PKAPC Apc = HalAllocate(sizeof(KAPC), MEMORY_ALLOCATION_ALIGNMENT);
    if (Apc == NULL) {
        return STATUS_NO_MEMORY;
    }
    KeInitializeApc(Apc, &Thread->Tcb, OriginalApcEnvironment, NtpFreeDeliveredApc, NtpFreeApc, ApcRoutine, UserMode,
                    ApcArgument1);
    if (!KeInsertQueueApc(Apc, ApcArgument2, ApcArgument3, 0)) {
        HalFree(Apc);
        return STATUS_UNSUCCESSFUL;
    }
    return STATUS_SUCCESS;
}

NTSTATUS NtQueueApcThreadEx2(HANDLE ThreadHandle, HANDLE ReserveHandle, ULONG ApcFlags, PPS_APC_ROUTINE ApcRoutine,
                             PVOID ApcArgument1, PVOID ApcArgument2, PVOID ApcArgument3)
{
    PVOID Thread;
    if ((ApcFlags & ~(ULONG)QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (ApcFlags != 0) {
        return STATUS_NOT_SUPPORTED;
    }
    if (ReserveHandle != NULL) {
        return STATUS_INVALID_HANDLE; /* reserve objects exist for completion packets only */
    }
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObReferenceObjectByHandle(ThreadHandle, THREAD_SET_CONTEXT, *PsThreadType, UserMode, &Thread, NULL);
    if (NT_SUCCESS(Status)) {
        Status = NtpQueueApc(Thread, ApcRoutine, ApcArgument1, ApcArgument2, ApcArgument3);
        ObDereferenceObject(Thread);
    }
    return Status;
}

NTSTATUS NtQueueApcThreadEx(HANDLE ThreadHandle, HANDLE ReserveHandle, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1,
                            PVOID ApcArgument2, PVOID ApcArgument3)
{
    BOOLEAN Special = ReserveHandle == QUEUE_USER_APC_SPECIAL_USER_APC;
    return NtQueueApcThreadEx2(ThreadHandle, Special ? NULL : ReserveHandle,
                               Special ? QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC : QUEUE_USER_APC_FLAGS_NONE, ApcRoutine,
                               ApcArgument1, ApcArgument2, ApcArgument3);
}

NTSTATUS NtQueueApcThread(HANDLE ThreadHandle, PPS_APC_ROUTINE ApcRoutine, PVOID ApcArgument1, PVOID ApcArgument2,
                          PVOID ApcArgument3)
{
    return NtQueueApcThreadEx2(ThreadHandle, NULL, QUEUE_USER_APC_FLAGS_NONE, ApcRoutine, ApcArgument1, ApcArgument2,
                               ApcArgument3);
}

/* Alerts by thread id. */

NTSTATUS NtWaitForAlertByThreadId(PVOID Address, PLARGE_INTEGER Timeout)
{
    return KeWaitForAlertByThreadId(Address, Timeout);
}

static NTSTATUS NtpFindAlertTarget(HANDLE ThreadId, PKTHREAD *Thread)
{
    ULONG_PTR Id = (ULONG_PTR)ThreadId;
    if (Id == 0 || Id > MAXULONG) {
        return STATUS_INVALID_CID;
    }
    *Thread = KiLookupThreadById((ULONG)Id);
    if (*Thread == NULL) {
        return HalIsThreadOfOtherProcess((ULONG)Id) ? STATUS_ACCESS_DENIED : STATUS_INVALID_CID;
    }
    return STATUS_SUCCESS;
}

/* A thread that has ended takes the alert as long as its object exists; the alert is lost. */
NTSTATUS NtAlertThreadByThreadId(HANDLE ThreadId)
{
    PKTHREAD Thread;
    NTSTATUS Status = NtpFindAlertTarget(ThreadId, &Thread);
    if (NT_SUCCESS(Status)) {
        KeAlertThreadById(Thread);
    }
    return Status;
}

NTSTATUS NtAlertThreadByThreadIdEx(HANDLE ThreadId, struct _RTL_SRWLOCK *Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return NtAlertThreadByThreadId(ThreadId);
}

/* Alerts all of them or, if one id is bad, none. A thread that ends in between is skipped. */
NTSTATUS NtAlertMultipleThreadByThreadId(PHANDLE MultipleThreadId, ULONG Count, PVOID Boost, ULONG BoostCount)
{
    NTSTATUS Status = STATUS_SUCCESS;
    PKTHREAD Thread;
    UNREFERENCED_PARAMETER(Boost);
    UNREFERENCED_PARAMETER(BoostCount);
    if (MultipleThreadId == NULL && Count != 0) {
        return STATUS_ACCESS_VIOLATION;
    }
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index += 1) {
        Status = NtpFindAlertTarget(MultipleThreadId[Index], &Thread);
    }
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index += 1) {
        NtAlertThreadByThreadId(MultipleThreadId[Index]);
    }
    return Status;
}
