/* thread.c: the services for threads: making and opening them, ending, suspending and alerting them. */
#include "thread.h"

#define NTP_CREATE_FLAGS                                                                                               \
    (THREAD_CREATE_FLAGS_CREATE_SUSPENDED | THREAD_CREATE_FLAGS_SKIP_THREAD_ATTACH |                                   \
     THREAD_CREATE_FLAGS_HIDE_FROM_DEBUGGER | THREAD_CREATE_FLAGS_LOADER_WORKER |                                      \
     THREAD_CREATE_FLAGS_SKIP_LOADER_INIT | THREAD_CREATE_FLAGS_BYPASS_PROCESS_FREEZE)

/* Creating. */

static NTSTATUS NtpCheckProcess(HANDLE ProcessHandle)
{
    PVOID Process;
    NTSTATUS Status =
        ObReferenceObjectByHandle(ProcessHandle, PROCESS_CREATE_THREAD, *PsProcessType, UserMode, &Process, NULL);
    if (NT_SUCCESS(Status)) {
        if (Process != (PVOID)PsGetCurrentProcess()) {
            Status = STATUS_ACCESS_DENIED;
        }
        ObDereferenceObject(Process);
    }
    return Status;
}

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
    SIZE_T Length;
    if (List == NULL) {
        return STATUS_SUCCESS;
    }
    Length = List->TotalLength - FIELD_OFFSET(PS_ATTRIBUTE_LIST, Attributes);
    if (List->TotalLength < (SIZE_T)FIELD_OFFSET(PS_ATTRIBUTE_LIST, Attributes) || Length % sizeof(PS_ATTRIBUTE) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    for (SIZE_T Index = 0; Index < Length / sizeof(PS_ATTRIBUTE); Index++) {
        NTSTATUS Status = NtpTakeAttribute(&List->Attributes[Index], Create);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
    }
    return STATUS_SUCCESS;
}

static NTSTATUS NtpCreateThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                HANDLE ProcessHandle, PPSP_CREATE Create, PPS_ATTRIBUTE_LIST AttributeList)
{
    ULONG Attributes = ObjectAttributes != NULL ? ObjectAttributes->Attributes : 0;
    NTSTATUS Status = NtpTakeAttributes(AttributeList, Create);
    if (NT_SUCCESS(Status)) {
        Status = NtpCheckProcess(ProcessHandle);
    }
    if (NT_SUCCESS(Status)) {
        Status = PspCreateThread(Create, Attributes & ~(ULONG)OBJ_KERNEL_HANDLE, DesiredAccess, UserMode, ThreadHandle);
    }
    return Status;
}

NTSTATUS NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                          HANDLE ProcessHandle, PUSER_THREAD_START_ROUTINE StartRoutine, PVOID Argument,
                          ULONG CreateFlags, SIZE_T ZeroBits, SIZE_T StackSize, SIZE_T MaximumStackSize,
                          PPS_ATTRIBUTE_LIST AttributeList)
{
    PKTHREAD Current = KiCurrentThread();
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
    if ((CreateFlags & ~(ULONG)NTP_CREATE_FLAGS) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (ThreadHandle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (StartRoutine == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Current);
    Status = NtpCreateThread(ThreadHandle, DesiredAccess, ObjectAttributes, ProcessHandle, &Create, AttributeList);
    KiExitService(Current);
    return Status;
}

/* Opening. */

static NTSTATUS NtpLookupThread(PCLIENT_ID ClientId, PETHREAD *Thread)
{
    if (ClientId->UniqueProcess != NULL && ClientId->UniqueProcess != PsGetCurrentProcessId()) {
        return STATUS_INVALID_CID;
    }
    return NT_SUCCESS(PsLookupThreadByThreadId(ClientId->UniqueThread, Thread)) ? STATUS_SUCCESS : STATUS_INVALID_CID;
}

static NTSTATUS NtpOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, ULONG Attributes, PCLIENT_ID ClientId)
{
    PETHREAD Thread;
    NTSTATUS Status = NtpLookupThread(ClientId, &Thread);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObOpenObjectByPointer(Thread, Attributes, NULL, DesiredAccess, *PsThreadType, UserMode, ThreadHandle);
    ObDereferenceObject(Thread);
    return Status;
}

NTSTATUS NtOpenThread(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                      PCLIENT_ID ClientId)
{
    PKTHREAD Current = KiCurrentThread();
    NTSTATUS Status;
    if (ThreadHandle == NULL || ObjectAttributes == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (ClientId == NULL || ObjectAttributes->ObjectName != NULL) {
        return STATUS_INVALID_PARAMETER_MIX;
    }
    KiEnterService(Current);
    Status = NtpOpenThread(ThreadHandle, DesiredAccess, ObjectAttributes->Attributes & ~(ULONG)OBJ_KERNEL_HANDLE,
                           ClientId);
    KiExitService(Current);
    return Status;
}

/* Ending. */

static NTSTATUS NtpTerminateOther(PETHREAD Thread, NTSTATUS ExitStatus)
{
    NTSTATUS Status = PspTerminateThread(Thread, ExitStatus);
    ObDereferenceObject(Thread);
    return Status;
}

/* The current thread ends outside of any service: what it wants done at its end is the program's. */
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
    Status = NtpReferenceThread(ThreadHandle, THREAD_TERMINATE, &Thread);
    if (NT_SUCCESS(Status) && &Thread->Tcb == Current) {
        ObDereferenceObject(Thread);
        KiExitService(Current);
        PspExitThread(Thread, ExitStatus);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtpTerminateOther(Thread, ExitStatus);
    }
    KiExitService(Current);
    return Status;
}

/* Suspending, resuming, alerting. */

static NTSTATUS NtpResume(PETHREAD Thread, PULONG PreviousCount)
{
    *PreviousCount = KeResumeThread(&Thread->Tcb);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSuspend(PETHREAD Thread, PULONG PreviousCount)
{
    return KiSuspendThread(&Thread->Tcb, PreviousCount);
}

static NTSTATUS NtpAlertResume(PETHREAD Thread, PULONG PreviousCount)
{
    *PreviousCount = KeAlertResumeThread(&Thread->Tcb);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpAlert(PETHREAD Thread, PULONG PreviousCount)
{
    *PreviousCount = 0;
    KeAlertThread(&Thread->Tcb, UserMode);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpChangeThread(HANDLE ThreadHandle, ACCESS_MASK DesiredAccess,
                                NTSTATUS (*Change)(PETHREAD Thread, PULONG PreviousCount), PULONG PreviousSuspendCount)
{
    PKTHREAD Current = KiCurrentThread();
    PETHREAD Thread;
    ULONG PreviousCount;
    NTSTATUS Status;
    KiEnterService(Current);
    Status = NtpReferenceThread(ThreadHandle, DesiredAccess, &Thread);
    if (NT_SUCCESS(Status)) {
        Status = Change(Thread, &PreviousCount);
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
    return NtpChangeThread(ThreadHandle, THREAD_SUSPEND_RESUME, NtpSuspend, PreviousSuspendCount);
}

NTSTATUS NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return NtpChangeThread(ThreadHandle, THREAD_SUSPEND_RESUME, NtpResume, PreviousSuspendCount);
}

NTSTATUS NtAlertThread(HANDLE ThreadHandle)
{
    return NtpChangeThread(ThreadHandle, THREAD_ALERT, NtpAlert, NULL);
}

NTSTATUS NtAlertResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return NtpChangeThread(ThreadHandle, THREAD_SUSPEND_RESUME, NtpAlertResume, PreviousSuspendCount);
}

ULONG NtGetCurrentProcessorNumber(VOID)
{
    return KeGetCurrentProcessorNumber();
}

ULONG NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcessorNumber)
{
    return KeGetCurrentProcessorNumberEx(ProcessorNumber);
}
