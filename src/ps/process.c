/*
 * process.c: this process, and others of the host as objects.
 *
 * 1. A process is known by its id. There is one object for each that runs: whoever opens it again gets the same. An
 *    object whose process has ended is not found any more, since the host may give its id to another one.
 * 2. The host tells the exit status of children only. Those that were created here are reaped here, so their objects are
 *    kept until they end, handles or not; children that the program has made by itself are left for it to reap.
 */
#include "psp.h"

#include "../ke/dispatch.h"
#include "../trace/trace.h"

static POBJECT_TYPE PspProcessTypePointer = &ObpProcessType;

POBJECT_TYPE *PsProcessType = &PspProcessTypePointer;
PEPROCESS PsInitialSystemProcess = (PEPROCESS)&KiInitialProcess;

static KI_LOCK PspProcessLock;
static LIST_ENTRY PspProcessList = {&PspProcessList, &PspProcessList};

PEPROCESS PsGetCurrentProcess(VOID)
{
    return (PEPROCESS)KiCurrentThread()->Process;
}

HANDLE PsGetProcessId(PEPROCESS Process)
{
    return ULongToHandle(Process->Pcb.ProcessId);
}

HANDLE PsGetCurrentProcessId(VOID)
{
    return PsGetProcessId(PsGetCurrentProcess());
}

static BOOLEAN PspIsThisProcess(PEPROCESS Process)
{
    return &Process->Pcb == &KiInitialProcess;
}

/* With a reference; NULL if there is none. With the lock held. */
static PEPROCESS PspFindProcess(ULONG ProcessId)
{
    for (PLIST_ENTRY Link = PspProcessList.Flink; Link != &PspProcessList; Link = Link->Flink) {
        PEPROCESS Process = CONTAINING_RECORD(Link, EPROCESS, ProcessListEntry);
        if (Process->Pcb.ProcessId == ProcessId && !Process->Ended && ObReferenceObjectSafe(Process)) {
            return Process;
        }
    }
    return NULL;
}

/* Descriptor below 0: it cannot be had again, so the process is gone. */
static VOID PspEndProcess(PEPROCESS Process, LONG Descriptor)
{
    ULONG ExitCode;
    /* relaxed: only one may go on; what it does is published by Ended */
    if (__atomic_exchange_n(&Process->Ending, TRUE, __ATOMIC_RELAXED)) {
        return;
    }
    BOOLEAN Known = Descriptor >= 0 && HalQueryProcessExit(Descriptor, Process->Child, &ExitCode);
    /* acquire: pairs with the release in PspTerminateProcess */
    BOOLEAN Requested = __atomic_load_n(&Process->TerminationRequested, __ATOMIC_ACQUIRE);
    if (Known) {
        Process->Pcb.ExitStatus =
            Requested ? __atomic_load_n(&Process->RequestedStatus, __ATOMIC_RELAXED) : (NTSTATUS)ExitCode;
    }
    Process->ExitStatusKnown = Known;
    PKTHREAD Thread = KiEnterLocked(&PspProcessLock);
    /* release: pairs with the acquire in PspHasProcessEnded */
    __atomic_store_n(&Process->Ended, TRUE, __ATOMIC_RELEASE);
    KiExitLocked(&PspProcessLock, Thread);
    KiSignalObject(&Process->Pcb.Header, 1, 0);
    if (Process->Child) {
        ObDereferenceObject(Process);
    }
}

static BOOLEAN PspHasProcessEnded(PEPROCESS Process)
{
    /* acquire: pairs with the release in PspEndProcess, so the status is there */
    return __atomic_load_n(&Process->Ended, __ATOMIC_ACQUIRE);
}

static VOID PspProcessReady(PVOID Object)
{
    PEPROCESS Process = Object;
    if (PspHasProcessEnded(Process)) {
        return;
    }
    LONG Descriptor = IopDescriptorOf(&Process->Watch);
    if (Descriptor < 0 || HalPollDescriptor(Descriptor, HAL_DESCRIPTOR_READABLE) != 0) {
        PspEndProcess(Process, Descriptor);
    } else if (IopArmWatch(&Process->Watch) == STATUS_FILE_CLOSED) {
        PspEndProcess(Process, -1);
    }
}

/* The id of a child is its own until it has been reaped, here; another process may have been given that of one that is
   nobody's child. */
static LONG PspOpenAgain(PVOID Object)
{
    PEPROCESS Process = Object;
    ULONG ProcessId = Process->Pcb.ProcessId;
    BOOLEAN Same = Process->Start != 0 ? HalQueryProcessStart(ProcessId) == Process->Start : Process->Child;
    return !PspHasProcessEnded(Process) && Same ? HalOpenProcess(ProcessId) : -1;
}

static VOID PspDeleteProcess(PVOID Object)
{
    PEPROCESS Process = Object;
    PKTHREAD Thread = KiEnterLocked(&PspProcessLock);
    RemoveEntryList(&Process->ProcessListEntry);
    KiExitLocked(&PspProcessLock, Thread);
    IopDeleteWatch(&Process->Watch);
    HalFree(ObpHeaderOf(Process));
}

static VOID PspInitializeProcesses(VOID)
{
    ObpProcessType.DeleteProcedure = PspDeleteProcess;
}
KI_INITIALIZER(KiInitializeProcesses, PspInitializeProcesses);

/* An object for a process that is not known yet. */
static PEPROCESS PspBuildProcess(BOOLEAN Child)
{
    PEPROCESS Process = ObpCreateObject(&ObpProcessType, sizeof(EPROCESS));
    if (Process == NULL) {
        return NULL;
    }
    if (!NT_SUCCESS(IopInitializeWatch(&Process->Watch, HAL_DESCRIPTOR_READABLE, Process, PspProcessReady,
                                       PspOpenAgain))) {
        ObpDiscardObject(Process);
        return NULL;
    }
    KiInitializeHeader(&Process->Pcb.Header, ProcessObject, sizeof(KPROCESS), 0);
    Process->Pcb.BasePriority = KiInitialProcess.BasePriority;
    Process->Pcb.ExitStatus = STATUS_PENDING;
    Process->Child = Child;
    InitializeListHead(&Process->ProcessListEntry);
    return Process;
}

/* Before it has a descriptor, which may have to be opened again by these. */
static VOID PspIdentifyProcess(PEPROCESS Process, ULONG ProcessId)
{
    Process->Pcb.ProcessId = ProcessId;
    Process->Start = HalQueryProcessStart(ProcessId);
}

/* From here on it is found by its id. Of several who open the same process at once one is first, and the others are
   given its object, with a reference; NULL: this is the first. That of a child counts in any case: it reaps the child. */
static PEPROCESS PspEnterProcess(PEPROCESS Process)
{
    PKTHREAD Thread = KiEnterLocked(&PspProcessLock);
    PEPROCESS First = Process->Child ? NULL : PspFindProcess(Process->Pcb.ProcessId);
    if (First == NULL) {
        InsertHeadList(&PspProcessList, &Process->ProcessListEntry);
    }
    KiExitLocked(&PspProcessLock, Thread);
    return First;
}

static NTSTATUS PspOpenOther(ULONG ProcessId, PEPROCESS *Process)
{
    LONG Descriptor = HalOpenProcess(ProcessId);
    if (Descriptor < 0) {
        return STATUS_INVALID_CID;
    }
    PEPROCESS Built = PspBuildProcess(FALSE);
    if (Built == NULL) {
        HalCloseDescriptor(Descriptor);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    PspIdentifyProcess(Built, ProcessId);
    NTSTATUS Status = IopAttachDescriptor(&Built->Watch, Descriptor);
    if (!NT_SUCCESS(Status)) {
        HalCloseDescriptor(Descriptor);
        ObDereferenceObject(Built);
        return Status;
    }
    *Process = PspEnterProcess(Built);
    if (*Process != NULL) {
        ObDereferenceObject(Built);
        return STATUS_SUCCESS;
    }
    Status = IopArmWatch(&Built->Watch);
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Built);
        return Status;
    }
    *Process = Built;
    return STATUS_SUCCESS;
}

static NTSTATUS PspReferenceProcess(ULONG ProcessId, PEPROCESS *Process)
{
    PKTHREAD Thread = KiEnterLocked(&PspProcessLock);
    *Process = PspFindProcess(ProcessId);
    KiExitLocked(&PspProcessLock, Thread);
    return *Process != NULL ? STATUS_SUCCESS : PspOpenOther(ProcessId, Process);
}

NTSTATUS PsLookupProcessByProcessId(HANDLE ProcessId, PEPROCESS *Process)
{
    if (ProcessId == PsGetCurrentProcessId()) {
        *Process = PsGetCurrentProcess();
        ObReferenceObject(*Process);
        return STATUS_SUCCESS;
    }
    return PspReferenceProcess(HandleToULong(ProcessId), Process);
}

/* Who may ask for everything may ask for a part of it. */
static ACCESS_MASK PspAddLimitedAccess(ACCESS_MASK DesiredAccess)
{
    return DesiredAccess & PROCESS_QUERY_INFORMATION ? DesiredAccess | PROCESS_QUERY_LIMITED_INFORMATION : DesiredAccess;
}

NTSTATUS PspOpenProcess(HANDLE ProcessId, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ProcessHandle)
{
    PEPROCESS Process;
    NTSTATUS Status = PsLookupProcessByProcessId(ProcessId, &Process);
    if (NT_SUCCESS(Status)) {
        Status = ObOpenObjectByPointer(Process, Attributes, NULL, PspAddLimitedAccess(DesiredAccess), *PsProcessType,
                                       UserMode, ProcessHandle);
        ObDereferenceObject(Process);
    }
    return Status;
}

static NTSTATUS PspOpenTwice(PEPROCESS Process, ULONG Attributes, ACCESS_MASK DesiredAccess, HANDLE Handles[2])
{
    NTSTATUS Status =
        ObOpenObjectByPointer(Process, Attributes, NULL, DesiredAccess, *PsProcessType, UserMode, &Handles[0]);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObOpenObjectByPointer(Process, Attributes, NULL, DesiredAccess, *PsProcessType, UserMode, &Handles[1]);
    if (!NT_SUCCESS(Status)) {
        ObCloseHandle(Handles[0], UserMode);
    }
    return Status;
}

static NTSTATUS PspSpawn(PEPROCESS Process, const HAL_SPAWN *Spawn)
{
    ULONG ProcessId;
    LONG Descriptor;
    NTSTATUS Status = IopPrepareKeeper();
    if (NT_SUCCESS(Status)) {
        Status = HalSpawnProcess(Spawn, &ProcessId, &Descriptor);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PspIdentifyProcess(Process, ProcessId);
    PspEnterProcess(Process);
    ObReferenceObject(Process); /* until it has ended */
    Status = IopAttachDescriptor(&Process->Watch, Descriptor);
    if (!NT_SUCCESS(Status)) {
        HalRequestOfProcess(Descriptor, HalTerminateProcess);
        HalAwaitProcess(Descriptor);
        PspEndProcess(Process, Descriptor);
        HalCloseDescriptor(Descriptor);
        return Status;
    }
    PspProcessReady(Process);
    return STATUS_SUCCESS;
}

/* Everything that can fail comes before the process is there, as far as possible. */
static NTSTATUS PspBuildAndSpawn(const HAL_SPAWN *Spawn, ULONG Attributes, ACCESS_MASK DesiredAccess,
                                 PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId)
{
    HANDLE Handles[2];
    PEPROCESS Process = PspBuildProcess(TRUE);
    NTSTATUS Status;
    if (Process == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = PspOpenTwice(Process, Attributes, DesiredAccess, Handles);
    if (NT_SUCCESS(Status)) {
        Status = PspSpawn(Process, Spawn);
        if (NT_SUCCESS(Status)) {
            *ProcessHandle = Handles[0];
            *ThreadHandle = Handles[1];
            ClientId->UniqueProcess = ULongToHandle(Process->Pcb.ProcessId);
            ClientId->UniqueThread = ClientId->UniqueProcess;
        } else {
            ObCloseHandle(Handles[0], UserMode);
            ObCloseHandle(Handles[1], UserMode);
        }
    }
    ObDereferenceObject(Process);
    return Status;
}

NTSTATUS PspCreateProcess(const HAL_SPAWN *Spawn, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ProcessHandle,
                          PHANDLE ThreadHandle, PCLIENT_ID ClientId)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status;
    KiEnterService(Thread);
    Status = PspBuildAndSpawn(Spawn, Attributes, DesiredAccess, ProcessHandle, ThreadHandle, ClientId);
    KiExitService(Thread);
    return Status;
}

static NTSTATUS PspRequest(PEPROCESS Process, HAL_PROCESS_REQUEST Request)
{
    LONG Descriptor = IopDescriptorOf(&Process->Watch);
    return Descriptor >= 0 ? HalRequestOfProcess(Descriptor, Request) : STATUS_PROCESS_IS_TERMINATING;
}

NTSTATUS PspTerminateProcess(PEPROCESS Process, NTSTATUS ExitStatus)
{
    if (PspIsThisProcess(Process)) {
        KTRACE_FINISH(TRUE);
        HalExitProcess((ULONG)ExitStatus, TRUE);
    }
    if (PspHasProcessEnded(Process)) {
        return STATUS_PROCESS_IS_TERMINATING;
    }
    __atomic_store_n(&Process->RequestedStatus, ExitStatus, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in PspEndProcess, so the status goes with it */
    __atomic_store_n(&Process->TerminationRequested, TRUE, __ATOMIC_RELEASE);
    return PspRequest(Process, HalTerminateProcess);
}

NTSTATUS PspSuspendProcess(PEPROCESS Process)
{
    return PspIsThisProcess(Process) ? STATUS_NOT_SUPPORTED : PspRequest(Process, HalSuspendProcess);
}

NTSTATUS PspResumeProcess(PEPROCESS Process)
{
    return PspIsThisProcess(Process) ? STATUS_SUCCESS : PspRequest(Process, HalResumeProcess);
}

NTSTATUS PspQueryExitStatus(PEPROCESS Process, PNTSTATUS ExitStatus)
{
    if (PspIsThisProcess(Process) || !PspHasProcessEnded(Process)) {
        *ExitStatus = STATUS_PENDING;
        return STATUS_SUCCESS;
    }
    if (!Process->ExitStatusKnown) {
        return STATUS_NOT_SUPPORTED;
    }
    *ExitStatus = Process->Pcb.ExitStatus;
    return STATUS_SUCCESS;
}
