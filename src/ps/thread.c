/* thread.c: creating, ending and finding threads. */
#include "psp.h"

#include "../ke/debugdata.h"
#include "../ke/park.h"

KD_REGISTER_LAYOUT(PspLayout, PSP_LAYOUT);

static POBJECT_TYPE PspThreadTypePointer = &ObpThreadType;

POBJECT_TYPE *PsThreadType = &PspThreadTypePointer;

/* Up to the claim another thread may still end this one. From there on it would be stopped while the C library takes it
   apart, with locks of the C library held. */
VOID PspExitThread(PETHREAD Thread, NTSTATUS ExitStatus)
{
    Thread->Tcb.ExitStatus = ExitStatus;
    /* relaxed: a reader acts on nothing but the flag */
    __atomic_store_n(&Thread->Terminating, TRUE, __ATOMIC_RELAXED);
    PspRunThreadExit(Thread, FALSE);
    KiClaimExit(&Thread->Tcb);
    HalExitThread();
}

static VOID PspWriteClientId(PCLIENT_ID ClientId)
{
    ClientId->UniqueProcess = ULongToHandle(KiInitialProcess.ProcessId);
    ClientId->UniqueThread = ULongToHandle(HalCurrentThreadId());
}

/* A thread that was made suspended stops in KiDeliverApc. What was queued for it by then comes before its routine. */
static VOID PspStartThread(PVOID Context)
{
    PETHREAD Thread = Context;
    NTSTATUS ExitStatus = STATUS_SUCCESS;
    if (Thread->StartClientId != NULL) {
        PspWriteClientId(Thread->StartClientId);
    }
    KiStartCurrentThread(&Thread->Tcb);
    KiDeliverApc(&Thread->Tcb);
    if (Thread->UserThread) {
        KiDeliverUserApcs(&Thread->Tcb);
        ExitStatus = Thread->UserStartRoutine(Thread->StartContext);
    } else {
        Thread->StartRoutine(Thread->StartContext);
    }
    PspExitThread(Thread, ExitStatus);
}

static NTSTATUS PspCheckProcess(HANDLE ProcessHandle)
{
    PVOID Process;
    NTSTATUS Status;
    if (ProcessHandle == NULL) {
        return STATUS_SUCCESS;
    }
    Status =
        ObReferenceObjectByHandle(ProcessHandle, PROCESS_CREATE_THREAD, *PsProcessType, KernelMode, &Process, NULL);
    if (NT_SUCCESS(Status)) {
        if (Process != (PVOID)PsGetCurrentProcess()) {
            Status = STATUS_ACCESS_DENIED; /* threads can be made here only */
        }
        ObDereferenceObject(Process);
    }
    return Status;
}

/* The thread with one reference of its own and one of the caller's. */
static PETHREAD PspAllocateThread(PPSP_CREATE Create)
{
    PETHREAD Thread = (PETHREAD)KiAllocateThread();
    if (Thread != NULL) {
        Thread->StartRoutine = Create->StartRoutine;
        Thread->UserStartRoutine = Create->UserStartRoutine;
        Thread->UserThread = Create->UserStartRoutine != NULL;
        Thread->Win32StartAddress =
            Thread->UserThread ? (PVOID)Create->UserStartRoutine : (PVOID)Create->StartRoutine;
        Thread->StartContext = Create->StartContext;
        Thread->StartClientId = Create->ClientId;
        Thread->HideFromDebugger = Create->HideFromDebugger;
        if (Create->IdealProcessor != MAXULONG) {
            Thread->Tcb.IdealProcessor = Create->IdealProcessor;
        }
        ObReferenceObject(Thread);
    }
    return Thread;
}

static NTSTATUS PspPrepareThread(PETHREAD Thread, PPSP_CREATE Create)
{
    GROUP_AFFINITY Previous;
    ULONG PreviousCount;
    if (Create->Affinity != NULL && !KiSetUserAffinityThread(&Thread->Tcb, Create->Affinity, &Previous)) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Create->TebAddress != NULL) {
        *Create->TebAddress = PspTebAddress(Thread);
    }
    return Create->Suspended ? KiSuspendThread(&Thread->Tcb, &PreviousCount) : STATUS_SUCCESS;
}

static VOID PspAwaitStart(PETHREAD Thread)
{
    KiSleepWhile(&Thread->Tcb.ThreadId, 0); /* its acquire pairs with the release store in KiStartThread */
}

/* From here on the thread owns its own reference, unless it could not be started: then that is given back. */
static NTSTATUS PspRunThread(PETHREAD Thread, PPSP_CREATE Create)
{
    NTSTATUS Status = PspPrepareThread(Thread, Create);
    if (NT_SUCCESS(Status)) {
        Status = HalCreateThread(PspStartThread, Thread, Create->StackSize, "interlock");
    }
    if (NT_SUCCESS(Status)) {
        PspAwaitStart(Thread);
    } else {
        KiFlushThreadApcs(&Thread->Tcb);
        KiDropThread(&Thread->Tcb);
    }
    return Status;
}

static NTSTATUS PspOpenAndRunThread(PETHREAD Thread, PPSP_CREATE Create, ULONG Attributes, ACCESS_MASK DesiredAccess,
                                    KPROCESSOR_MODE AccessMode, PHANDLE ThreadHandle)
{
    HANDLE Before = *ThreadHandle;
    NTSTATUS Status =
        ObOpenObjectByPointer(Thread, Attributes, NULL, DesiredAccess, *PsThreadType, AccessMode, ThreadHandle);
    if (!NT_SUCCESS(Status)) {
        KiDropThread(&Thread->Tcb);
        return Status;
    }
    Status = PspRunThread(Thread, Create);
    if (!NT_SUCCESS(Status)) {
        ZwClose(*ThreadHandle);
        *ThreadHandle = Before;
    }
    return Status;
}

NTSTATUS PspCreateThread(PPSP_CREATE Create, ULONG Attributes, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                         PHANDLE ThreadHandle)
{
    PETHREAD Thread;
    NTSTATUS Status;
    if (Attributes & (OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF)) {
        return STATUS_INVALID_PARAMETER;
    }
    Thread = PspAllocateThread(Create);
    if (Thread == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = PspOpenAndRunThread(Thread, Create, Attributes, DesiredAccess, AccessMode, ThreadHandle);
    ObDereferenceObject(Thread);
    return Status;
}

NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                              HANDLE ProcessHandle, PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine,
                              PVOID StartContext)
{
    ULONG Attributes = ObjectAttributes != NULL ? ObjectAttributes->Attributes : 0;
    PSP_CREATE Create = {.StartRoutine = StartRoutine,
                         .StartContext = StartContext,
                         .IdealProcessor = MAXULONG,
                         .ClientId = ClientId};
    NTSTATUS Status = PspCheckProcess(ProcessHandle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    return PspCreateThread(&Create, Attributes | OBJ_KERNEL_HANDLE, DesiredAccess, KernelMode, ThreadHandle);
}

NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus)
{
    PETHREAD Thread = PsGetCurrentThread();
    if (!PsIsSystemThread(Thread)) {
        return STATUS_INVALID_PARAMETER;
    }
    PspExitThread(Thread, ExitStatus);
}

HANDLE PsGetThreadId(PETHREAD Thread)
{
    return ULongToHandle(__atomic_load_n(&Thread->Tcb.ThreadId, __ATOMIC_RELAXED));
}

HANDLE PsGetCurrentThreadId(VOID)
{
    return PsGetThreadId(PsGetCurrentThread());
}

HANDLE PsGetThreadProcessId(PETHREAD Thread)
{
    return PsGetProcessId((PEPROCESS)Thread->Tcb.Process);
}

BOOLEAN PspHasEnded(PETHREAD Thread)
{
    /* acquire: pairs with the release in KiEndThread, so the exit status is there */
    return __atomic_load_n(&Thread->Tcb.State, __ATOMIC_ACQUIRE) == Terminated;
}

NTSTATUS PsGetThreadExitStatus(PETHREAD Thread)
{
    return PspHasEnded(Thread) ? Thread->Tcb.ExitStatus : STATUS_PENDING;
}

BOOLEAN PsIsThreadTerminating(PETHREAD Thread)
{
    return PspHasEnded(Thread) || KiIsExiting(&Thread->Tcb) ||
           __atomic_load_n(&Thread->Terminating, __ATOMIC_RELAXED);
}

BOOLEAN PsIsSystemThread(PETHREAD Thread)
{
    return (!Thread->Tcb.Foreign && !Thread->UserThread) || Thread->Tcb.IsIdleThread;
}

NTSTATUS PsLookupThreadByThreadId(HANDLE UniqueThreadId, PETHREAD *Thread)
{
    ULONG ThreadId = HandleToULong(UniqueThreadId);
    PKTHREAD Found;
    while ((Found = KiLookupThreadById(ThreadId)) != NULL) {
        if (!ObReferenceObjectSafe(Found)) {
            break; /* ended, and nobody refers to it any more */
        }
        if (__atomic_load_n(&Found->ThreadId, __ATOMIC_RELAXED) == ThreadId) {
            *Thread = (PETHREAD)Found;
            return STATUS_SUCCESS;
        }
        ObDereferenceObject(Found);
    }
    return STATUS_INVALID_PARAMETER;
}
