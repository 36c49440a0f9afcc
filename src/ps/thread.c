/* thread.c: creating, ending and finding threads. */
#include "psp.h"

static POBJECT_TYPE PspThreadTypePointer = &ObpThreadType;

POBJECT_TYPE *PsThreadType = &PspThreadTypePointer;

static DECLSPEC_NORETURN VOID PspExitThread(PETHREAD Thread, NTSTATUS ExitStatus)
{
    Thread->Tcb.ExitStatus = ExitStatus;
    /* relaxed: a reader acts on nothing but the flag */
    __atomic_store_n(&Thread->Terminating, TRUE, __ATOMIC_RELAXED);
    HalExitThread();
}

static VOID PspStartThread(PVOID Context)
{
    PETHREAD Thread = Context;
    KiStartCurrentThread(&Thread->Tcb);
    Thread->StartRoutine(Thread->StartContext);
    PspExitThread(Thread, STATUS_SUCCESS);
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
        ObDereferenceObject(Process);
    }
    return Status;
}

/* The thread with one reference of its own and one of the caller's. */
static PETHREAD PspAllocateThread(PKSTART_ROUTINE StartRoutine, PVOID StartContext)
{
    PETHREAD Thread = (PETHREAD)KiAllocateThread();
    if (Thread != NULL) {
        Thread->StartRoutine = StartRoutine;
        Thread->StartContext = StartContext;
        ObReferenceObject(Thread);
    }
    return Thread;
}

static VOID PspAwaitStart(PETHREAD Thread)
{
    static const HAL_DEADLINE NoDeadline = {HalNoDeadline, 0};
    /* acquire: pairs with the release store of the id in KiStartThread */
    while (__atomic_load_n(&Thread->Tcb.ThreadId, __ATOMIC_ACQUIRE) == 0) {
        HalDispatch.Wait(&Thread->Tcb.ThreadId, 0, &NoDeadline);
    }
}

/* From here on the thread owns its own reference, unless it could not be started: then that is given back. */
static NTSTATUS PspRunThread(PETHREAD Thread)
{
    NTSTATUS Status = HalCreateThread(PspStartThread, Thread, 0, "interlock");
    if (NT_SUCCESS(Status)) {
        PspAwaitStart(Thread);
    } else {
        KiDropThread(&Thread->Tcb);
    }
    return Status;
}

static NTSTATUS PspOpenAndRunThread(PETHREAD Thread, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ThreadHandle)
{
    HANDLE Handle;
    NTSTATUS Status =
        ObOpenObjectByPointer(Thread, Attributes, NULL, DesiredAccess, *PsThreadType, KernelMode, &Handle);
    if (!NT_SUCCESS(Status)) {
        KiDropThread(&Thread->Tcb);
        return Status;
    }
    Status = PspRunThread(Thread);
    if (!NT_SUCCESS(Status)) {
        ZwClose(Handle);
        return Status;
    }
    *ThreadHandle = Handle;
    return Status;
}

NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                              HANDLE ProcessHandle, PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine,
                              PVOID StartContext)
{
    ULONG Attributes = ObjectAttributes != NULL ? ObjectAttributes->Attributes : 0;
    NTSTATUS Status = PspCheckProcess(ProcessHandle);
    PETHREAD Thread;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (Attributes & (OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF)) {
        return STATUS_INVALID_PARAMETER;
    }
    Thread = PspAllocateThread(StartRoutine, StartContext);
    if (Thread == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = PspOpenAndRunThread(Thread, Attributes | OBJ_KERNEL_HANDLE, DesiredAccess, ThreadHandle);
    if (NT_SUCCESS(Status) && ClientId != NULL) {
        ClientId->UniqueProcess = PsGetThreadProcessId(Thread);
        ClientId->UniqueThread = PsGetThreadId(Thread);
    }
    ObDereferenceObject(Thread);
    return Status;
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

static BOOLEAN PspHasEnded(PETHREAD Thread)
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
    return PspHasEnded(Thread) || __atomic_load_n(&Thread->Terminating, __ATOMIC_RELAXED);
}

BOOLEAN PsIsSystemThread(PETHREAD Thread)
{
    return !Thread->Tcb.Foreign;
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
