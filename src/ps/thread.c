/* thread.c: creating, ending and finding threads. ke/stop.c has the termination of another thread. */
#include "psp.h"

#include "../ke/debugdata.h"
#include "../ke/park.h"
#include "../trace/trace.h"

#define PSP_EXIT_ROUTINES 32
#define PSP_HOST_NAME 16
#define PSP_REPLACEMENT '?'

KD_REGISTER_LAYOUT(PspLayout, PSP_LAYOUT);

static POBJECT_TYPE PspThreadTypePointer = &ObpThreadType;

POBJECT_TYPE *PsThreadType = &PspThreadTypePointer;

/* Ending. */

static PSP_EXIT_ROUTINE *volatile PspExitRoutines[PSP_EXIT_ROUTINES];
static volatile ULONG PspExitRoutineCount;

VOID PspRegisterThreadExit(PSP_EXIT_ROUTINE *Routine)
{
    ULONG Index = __atomic_fetch_add(&PspExitRoutineCount, 1, __ATOMIC_RELAXED);
    if (Index >= PSP_EXIT_ROUTINES) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
    /* release: pairs with the acquire in PspRunExitRoutines, so the routine finds what its owner had set up */
    __atomic_store_n(&PspExitRoutines[Index], Routine, __ATOMIC_RELEASE);
}

static VOID PspThreadEnded(ULONG EndOrdinal, NTSTATUS ExitStatus);

static VOID PspRunExitRoutines(PKTHREAD Thread, BOOLEAN WasTerminated)
{
    for (ULONG Index = 0; Index < PSP_EXIT_ROUTINES; Index++) {
        PSP_EXIT_ROUTINE *Routine = __atomic_load_n(&PspExitRoutines[Index], __ATOMIC_ACQUIRE);
        if (Routine != NULL) {
            Routine((PETHREAD)Thread, WasTerminated);
        }
    }
}

/* Until the claim, another thread may still terminate this one. After it, a termination would stop the thread inside
   the C library's teardown, with the C library's locks held. HalExitThread ends in KiThreadExit. */
VOID PspExitThread(PETHREAD Thread, NTSTATUS ExitStatus)
{
    Thread->Tcb.ExitStatus = ExitStatus;
    /* relaxed: readers act on the flag alone */
    __atomic_store_n(&Thread->Terminating, TRUE, __ATOMIC_RELAXED);
    PspRunExitRoutines(&Thread->Tcb, FALSE);
    KiClaimExit(&Thread->Tcb);
    HalExitThread();
}

NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus)
{
    PETHREAD Thread = PsGetCurrentThread();
    if (!PsIsSystemThread(Thread)) {
        return STATUS_INVALID_PARAMETER;
    }
    PspExitThread(Thread, ExitStatus);
}

static VOID PspDeleteThread(PVOID Object)
{
    PETHREAD Thread = Object;
    if (Thread->ThreadName.Buffer != NULL) {
        HalFree(Thread->ThreadName.Buffer);
        Thread->ThreadName.Buffer = NULL;
    }
    KiFreeThread(&Thread->Tcb);
}

static VOID PspInitializeThreads(VOID)
{
    ObpThreadType.DeleteProcedure = PspDeleteThread;
    KiThreadObjectRoutines.Exit = PspRunExitRoutines;
    KiThreadObjectRoutines.Ended = PspThreadEnded;
}
KI_INITIALIZER(KiInitializeProcesses, PspInitializeThreads);

/* Creating. */

static PSP_START_ROUTINE *volatile PspThreadStart;

VOID PspSetThreadStart(PSP_START_ROUTINE *Routine)
{
    /* release: pairs with the acquire in PspNotifyThreadStart, so the routine finds what its owner had set up */
    __atomic_store_n(&PspThreadStart, Routine, __ATOMIC_RELEASE);
}

VOID PspNotifyThreadStart(PETHREAD Thread)
{
    PSP_START_ROUTINE *Routine = __atomic_load_n(&PspThreadStart, __ATOMIC_ACQUIRE);
    if (Routine != NULL) {
        Routine(Thread);
    }
}

/* A thread that was created suspended parks in KiDeliverApc. APCs queued by then run before its routine. */
static VOID PspStartThread(PVOID Context)
{
    PETHREAD Thread = Context;
    NTSTATUS ExitStatus = STATUS_SUCCESS;
    if (Thread->StartClientId != NULL) {
        Thread->StartClientId->UniqueProcess = ULongToHandle(KiInitialProcess.ProcessId);
        Thread->StartClientId->UniqueThread = ULongToHandle(HalCurrentThreadId());
    }
    KiStartCurrentThread(&Thread->Tcb);
    KiDeliverApc(&Thread->Tcb);
    if (Thread->Tcb.UserThread) {
        PspNotifyThreadStart(Thread);
        KiDeliverUserApcs(&Thread->Tcb);
        ExitStatus = Thread->UserStartRoutine(Thread->StartContext);
    } else {
        Thread->StartRoutine(Thread->StartContext);
    }
    PspExitThread(Thread, ExitStatus);
}

/* Once the thread runs it owns one of its references. If it cannot be started, this returns that reference. */
static NTSTATUS PspLaunchThread(PETHREAD Thread, PPSP_CREATE Create)
{
    GROUP_AFFINITY PreviousAffinity;
    ULONG PreviousCount;
    NTSTATUS Status = STATUS_SUCCESS;
    if (Create->Affinity != NULL && !KiSetUserAffinityThread(&Thread->Tcb, Create->Affinity, &PreviousAffinity)) {
        Status = STATUS_INVALID_PARAMETER;
    } else {
        if (Create->TebAddress != NULL) {
            *Create->TebAddress = PspTebAddress(Thread);
        }
        if (Create->Suspended) {
            Status = KiSuspendThread(&Thread->Tcb, &PreviousCount);
        }
    }
    if (NT_SUCCESS(Status)) {
        /* it has its creator's name */
        Status = HalIsFaultInjected() ? STATUS_INSUFFICIENT_RESOURCES
                                      : HalCreateThread(PspStartThread, Thread, Create->StackSize, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        KiFlushThreadApcs(&Thread->Tcb);
        KiDropThread(&Thread->Tcb);
        return Status;
    }
    KiSleepWhile(&Thread->Tcb.ThreadId, 0); /* its acquire pairs with the release store in KiStartThread */
    return STATUS_SUCCESS;
}

NTSTATUS PspCreateThread(PPSP_CREATE Create, ULONG Attributes, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                         PHANDLE ThreadHandle)
{
    NTSTATUS Status;
    if (Attributes & (OBJ_PERMANENT | OBJ_EXCLUSIVE | OBJ_OPENIF)) {
        return STATUS_INVALID_PARAMETER;
    }
    PETHREAD Thread = (PETHREAD)KiAllocateThread();
    if (Thread == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Thread->StartRoutine = Create->StartRoutine;
    Thread->UserStartRoutine = Create->UserStartRoutine;
    __atomic_store_n(&Thread->Tcb.UserThread, Create->UserStartRoutine != NULL, __ATOMIC_RELAXED);
    Thread->Win32StartAddress = Thread->Tcb.UserThread ? (PVOID)Create->UserStartRoutine : (PVOID)Create->StartRoutine;
    Thread->StartContext = Create->StartContext;
    Thread->StartClientId = Create->ClientId;
    Thread->HideFromDebugger = Create->HideFromDebugger;
    if (Create->IdealProcessor != MAXULONG) {
        Thread->Tcb.IdealProcessor = Create->IdealProcessor;
    }
    ObReferenceObject(Thread); /* the caller's; the first one is the thread's own */
    Status = ObOpenObjectByPointer(Thread, Attributes, NULL, DesiredAccess, *PsThreadType, AccessMode, ThreadHandle);
    if (!NT_SUCCESS(Status)) {
        KiDropThread(&Thread->Tcb);
    } else {
        Status = PspLaunchThread(Thread, Create);
        if (!NT_SUCCESS(Status)) {
            ZwClose(*ThreadHandle);
            *ThreadHandle = NULL;
        }
    }
    ObDereferenceObject(Thread);
    return Status;
}

NTSTATUS PspCheckThreadProcess(HANDLE ProcessHandle, KPROCESSOR_MODE AccessMode)
{
    PVOID Process;
    NTSTATUS Status =
        ObReferenceObjectByHandle(ProcessHandle, PROCESS_CREATE_THREAD, *PsProcessType, AccessMode, &Process, NULL);
    if (NT_SUCCESS(Status)) {
        Status = Process == (PVOID)PsGetCurrentProcess() ? STATUS_SUCCESS : STATUS_ACCESS_DENIED;
        ObDereferenceObject(Process);
    }
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
    NTSTATUS Status = ProcessHandle != NULL ? PspCheckThreadProcess(ProcessHandle, KernelMode) : STATUS_SUCCESS;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    return PspCreateThread(&Create, Attributes | OBJ_KERNEL_HANDLE, DesiredAccess, KernelMode, ThreadHandle);
}

/* Finding and querying. */

HANDLE PsGetThreadId(PETHREAD Thread)
{
    return ULongToHandle(__atomic_load_n(&Thread->Tcb.ThreadId, __ATOMIC_RELAXED));
}

HANDLE PsGetCurrentThreadId(VOID)
{
    return PsGetThreadId(PsGetCurrentThread());
}

PEPROCESS PsGetThreadProcess(PETHREAD Thread)
{
    return (PEPROCESS)Thread->Tcb.Process;
}

PEPROCESS IoThreadToProcess(PETHREAD Thread)
{
    return PsGetThreadProcess(Thread);
}

HANDLE PsGetThreadProcessId(PETHREAD Thread)
{
    return PsGetProcessId(PsGetThreadProcess(Thread));
}

KPROCESSOR_MODE ExGetPreviousMode(VOID)
{
    return KernelMode;
}

BOOLEAN IoIsSystemThread(PETHREAD Thread)
{
    return PsIsSystemThread(Thread);
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
    /* relaxed, all: the caller may read a slot that a new thread takes */
    return (!__atomic_load_n(&Thread->Tcb.Foreign, __ATOMIC_RELAXED) &&
            !__atomic_load_n(&Thread->Tcb.UserThread, __ATOMIC_RELAXED)) ||
           __atomic_load_n(&Thread->Tcb.IsIdleThread, __ATOMIC_RELAXED);
}

NTSTATUS PsLookupThreadByThreadId(HANDLE UniqueThreadId, PETHREAD *Thread)
{
    ULONG ThreadId = HandleToULong(UniqueThreadId);
    PKTHREAD Found;
    while ((Found = KiLookupThreadById(ThreadId)) != NULL) {
        if (!ObReferenceObjectSafe(Found)) {
            break; /* it has ended and has no references */
        }
        if (__atomic_load_n(&Found->ThreadId, __ATOMIC_RELAXED) == ThreadId) {
            *Thread = (PETHREAD)Found;
            return STATUS_SUCCESS;
        }
        ObDereferenceObject(Found);
    }
    return STATUS_INVALID_PARAMETER;
}

/* Except may be NULL. */
static BOOLEAN PspHasThreadExcept(PKTHREAD Except)
{
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        /* relaxed, both: a snapshot; a slot that is free or whose thread has ended does not count */
        if (Thread != Except && __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) == KiSlotUsed &&
            __atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Terminated && !PsIsSystemThread((PETHREAD)Thread)) {
            return TRUE;
        }
    }
    return FALSE;
}

BOOLEAN PspIsLastThread(VOID)
{
    return !PspHasThreadExcept(KiCurrentThread());
}

#define PSP_MOST_ROUNDS 1000 /* for threads that are about to end: about 1 s */

/* The process ends with its last thread, with that thread's exit code. The calling thread no longer has a KTHREAD, or
 * is the reaper. If several threads end at the same time, the last one waits for the others and ends the process. */
static VOID PspThreadEnded(ULONG EndOrdinal, NTSTATUS ExitStatus)
{
    HAL_OTHERS Others = HalOthersForNow;
    /* relaxed: a later one decides by itself */
    for (ULONG Round = 0; Others == HalOthersForNow && Round < PSP_MOST_ROUNDS && !PspHasThreadExcept(NULL) &&
                          __atomic_load_n(&KiThreadsEnded, __ATOMIC_RELAXED) == EndOrdinal;
         Round++) {
        Others = HalFindOtherThreads();
        if (Others == HalNoOthers) {
            HalExitProcess((ULONG)ExitStatus, FALSE);
        }
        KiBackOff(Round);
    }
}

/* When the host's thread has ended, the times are those that it recorded itself. */
VOID PspQueryTimes(PETHREAD Thread, PPSP_TIMES Times)
{
    PKTHREAD Tcb = &Thread->Tcb;
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    Times->CreateTime = Tcb->CreateTime;
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(Tcb, &ThreadId)) {
        HalQueryThreadTimes(ThreadId, &Times->KernelTime, &Times->UserTime);
        KiReleaseHostThread(Tcb);
    } else {
        Times->KernelTime = Tcb->KernelTime;
        Times->UserTime = Tcb->UserTime;
    }
    KiExitDispatcher(Current);
    Times->ExitTime = PspHasEnded(Thread) ? Tcb->ExitTime : 0;
}

/* Names. */

/* The host's tools show a few bytes; a character outside ASCII would be cut in the middle. */
static VOID PspNameHostThread(PETHREAD Thread, PCUNICODE_STRING Name)
{
    CHAR Host[PSP_HOST_NAME];
    ULONG Length = 0;
    PKTHREAD Current = KiCurrentThread();
    ULONG ThreadId;
    while (Length < PSP_HOST_NAME - 1 && Length < Name->Length / sizeof(WCHAR)) {
        WCHAR Character = Name->Buffer[Length];
        Host[Length++] = Character >= ' ' && Character <= '~' ? (CHAR)Character : PSP_REPLACEMENT;
    }
    Host[Length] = '\0';
    KiEnterDispatcher(Current);
    if (KiHoldHostThread(&Thread->Tcb, &ThreadId)) {
        HalSetThreadName(ThreadId, Host);
        KTRACE_THREAD_NAME(&Thread->Tcb, Host); /* under the lock: a thread that is terminated now is traced under this name */
        KiReleaseHostThread(&Thread->Tcb);
    }
    KiExitDispatcher(Current);
}

NTSTATUS PspSetName(PETHREAD Thread, PCUNICODE_STRING Name)
{
    UNICODE_STRING New = {Name->Length, Name->Length, NULL};
    PWSTR Old;
    if (Name->Length != 0) {
        New.Buffer = HalAllocate(Name->Length, sizeof(WCHAR));
        if (New.Buffer == NULL) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        memcpy(New.Buffer, Name->Buffer, Name->Length);
    }
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&Thread->NameLock);
    Old = Thread->ThreadName.Buffer;
    Thread->ThreadName = New;
    PspNameHostThread(Thread, &New);
    ExReleasePushLockExclusive(&Thread->NameLock);
    KeLeaveCriticalRegion();
    HalFree(Old);
    return STATUS_SUCCESS;
}

NTSTATUS PspQueryName(PETHREAD Thread, PWSTR Buffer, ULONG Room, PUSHORT Length)
{
    NTSTATUS Status = STATUS_BUFFER_TOO_SMALL;
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&Thread->NameLock);
    *Length = Thread->ThreadName.Length;
    if (*Length <= Room) {
        if (*Length != 0) {
            memcpy(Buffer, Thread->ThreadName.Buffer, *Length);
        }
        Status = STATUS_SUCCESS;
    }
    ExReleasePushLockExclusive(&Thread->NameLock);
    KeLeaveCriticalRegion();
    return Status;
}
