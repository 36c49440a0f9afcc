/*
 * process.c: this process, and other processes of the host as objects.
 *
 * 1. A process is identified by its id. A running process has one object: opening it again finds the same one. Once the
 *    process has ended its object is no longer found, since the host may reuse the id.
 * 2. The host reports the exit status of children only. Children created here are reaped here, so their objects live
 *    until they end, handles or not. Children that the program created itself are left for the program to reap.
 */
#include "psp.h"

#include "../ke/dispatch.h"
#include "../ob/share.h"
#include "../trace/trace.h"
#include "../wo/wo.h"

static POBJECT_TYPE PspProcessTypePointer = &ObpProcessType;

POBJECT_TYPE *PsProcessType = &PspProcessTypePointer;
PEPROCESS PsInitialSystemProcess = (PEPROCESS)&KiInitialProcess;

static KI_LOCK PspProcessLock;
static LIST_ENTRY PspProcessList = {&PspProcessList, &PspProcessList};

PEPROCESS PsGetCurrentProcess(VOID)
{
    return (PEPROCESS)KiCurrentThread()->Process;
}

PEPROCESS IoGetCurrentProcess(VOID)
{
    return PsGetCurrentProcess();
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

/* With the lock held. Returns a reference, or NULL if there is no such object. */
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

/* Descriptor below 0: it cannot be reopened, so the process has ended. */
static VOID PspEndProcess(PEPROCESS Process, LONG Descriptor)
{
    ULONG ExitCode;
    /* relaxed: picks one thread; Ended publishes what that thread does */
    if (__atomic_exchange_n(&Process->Ending, TRUE, __ATOMIC_RELAXED)) {
        return;
    }
    Process->ExitTime = HalDispatch.QuerySystemTime();
    HalQueryProcessTimes(Process->Pcb.ProcessId, &Process->Times);
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
    WoNoteProcessEnd();
    if (Process->Child) {
        ObDereferenceObject(Process);
    }
}

static BOOLEAN PspHasProcessEnded(PEPROCESS Process)
{
    /* acquire: pairs with the release in PspEndProcess, so the status is visible */
    return __atomic_load_n(&Process->Ended, __ATOMIC_ACQUIRE);
}

/* The watch's routine, and the first check after a spawn. */
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

/* A child keeps its id until it is reaped, which happens here; the id of any other process may have been reused. */
static LONG PspReopenProcess(PVOID Object)
{
    PEPROCESS Process = Object;
    ULONG ProcessId = Process->Pcb.ProcessId;
    BOOLEAN Same = Process->Start != 0 ? HalQueryProcessStart(ProcessId) == Process->Start : Process->Child;
    LONG Descriptor;
    return !PspHasProcessEnded(Process) && Same && NT_SUCCESS(HalOpenProcess(ProcessId, &Descriptor)) ? Descriptor : -1;
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

/* For the world, which guards processes. */
static PVOID PspWatchProcess(ULONG ProcessId)
{
    PEPROCESS Process;
    return NT_SUCCESS(PsLookupProcessByProcessId(ULongToHandle(ProcessId), &Process)) ? Process : NULL;
}

static VOID PspUnwatchProcess(PVOID Process)
{
    ObDereferenceObject(Process);
}

static const WO_WATCHER PspWatcher = {PspWatchProcess, PspUnwatchProcess};

static VOID PspInitializeProcesses(VOID)
{
    WoSetWatcher(&PspWatcher);
    ObpProcessType.DeleteProcedure = PspDeleteProcess;
}
KI_INITIALIZER(KiInitializeProcesses, PspInitializeProcesses);

/* An object that has neither an id nor a descriptor yet. */
static PEPROCESS PspBuildProcess(BOOLEAN Child)
{
    PEPROCESS Process = ObpCreateObject(&ObpProcessType, sizeof(EPROCESS));
    if (Process == NULL) {
        return NULL;
    }
    if (!NT_SUCCESS(IopInitializeWatch(&Process->Watch, HAL_DESCRIPTOR_READABLE, Process, PspProcessReady,
                                       PspReopenProcess))) {
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

/* Comes before the process gets a descriptor, which PspReopenProcess may have to open again. */
static VOID PspIdentifyProcess(PEPROCESS Process, ULONG ProcessId)
{
    Process->Pcb.ProcessId = ProcessId;
    Process->Start = HalQueryProcessStart(ProcessId);
    HalQueryProcessTimes(ProcessId, &Process->Times);
}

/* Makes the process findable by its id. If several threads open the same process at once one of them wins, and the
   others get the winner's object, with a reference; NULL: this one won. A child's object always wins: it reaps. */
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

static NTSTATUS PspOpenOtherProcess(ULONG ProcessId, PEPROCESS *Process)
{
    LONG Descriptor;
    NTSTATUS Status = HalOpenProcess(ProcessId, &Descriptor);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PEPROCESS Built = PspBuildProcess(FALSE);
    if (Built == NULL) {
        HalCloseDescriptor(Descriptor);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    PspIdentifyProcess(Built, ProcessId);
    Status = IopAttachDescriptor(&Built->Watch, Descriptor);
    if (!NT_SUCCESS(Status)) {
        HalCloseDescriptor(Descriptor);
    } else {
        *Process = PspEnterProcess(Built);
        if (*Process == NULL) {
            Status = IopArmWatch(&Built->Watch);
            if (NT_SUCCESS(Status)) {
                *Process = Built;
                return STATUS_SUCCESS;
            }
        }
    }
    ObDereferenceObject(Built);
    return Status;
}

NTSTATUS PsLookupProcessByProcessId(HANDLE ProcessId, PEPROCESS *Process)
{
    if (ProcessId == PsGetCurrentProcessId()) {
        *Process = PsGetCurrentProcess();
        ObReferenceObject(*Process);
        return STATUS_SUCCESS;
    }
    PKTHREAD Thread = KiEnterLocked(&PspProcessLock);
    *Process = PspFindProcess(HandleToULong(ProcessId));
    KiExitLocked(&PspProcessLock, Thread);
    return *Process != NULL ? STATUS_SUCCESS : PspOpenOtherProcess(HandleToULong(ProcessId), Process);
}

NTSTATUS PspOpenProcess(KPROCESSOR_MODE AccessMode, HANDLE ProcessId, ULONG Attributes, ACCESS_MASK DesiredAccess,
                        PHANDLE ProcessHandle)
{
    PEPROCESS Process;
    NTSTATUS Status = PsLookupProcessByProcessId(ProcessId, &Process);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = DesiredAccess == 0 && AccessMode != KernelMode
                 ? STATUS_ACCESS_DENIED
                 : ObOpenObjectByPointer(Process, Attributes, NULL, DesiredAccess, *PsProcessType, AccessMode,
                                         ProcessHandle);
    ObDereferenceObject(Process);
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
    ObReferenceObject(Process); /* until PspEndProcess */
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

/* The inheritance is completed with the child's id, or cancelled. */
static NTSTATUS PspSpawnHeir(PEPROCESS Process, const HAL_SPAWN *Spawn, const OBP_HEIRLOOMS *Heirlooms)
{
    HAL_SPAWN Heir = *Spawn;
    OBP_BEQUEST Bequest = {0};
    NTSTATUS Status = Heirlooms != NULL ? ObpPrepareBequest(Heirlooms, &Bequest) : STATUS_SUCCESS;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Heir.Variable = Bequest.Text;
    Status = PspSpawn(Process, &Heir);
    ObpEndBequest(&Bequest, NT_SUCCESS(Status) ? Process->Pcb.ProcessId : 0);
    return Status;
}

/* As far as possible, everything that can fail happens before the process exists. */
NTSTATUS PspCreateProcess(const HAL_SPAWN *Spawn, const OBP_HEIRLOOMS *Heirlooms, ULONG Attributes,
                          PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId)
{
    HANDLE Handles[2];
    ULONG Opened = 0;
    PEPROCESS Process = PspBuildProcess(TRUE);
    NTSTATUS Status = STATUS_SUCCESS;
    if (Process == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    while (Opened < RTL_NUMBER_OF(Handles) && NT_SUCCESS(Status)) {
        Status =
            ObOpenObjectByPointer(Process, 0, NULL, PROCESS_ALL_ACCESS, *PsProcessType, UserMode, &Handles[Opened]);
        Opened += NT_SUCCESS(Status);
    }
    if (NT_SUCCESS(Status)) {
        Status = PspSpawnHeir(Process, Spawn, Heirlooms);
    }
    if (NT_SUCCESS(Status)) {
        for (ULONG Index = 0; Index < Opened; Index++) { /* the child itself does not inherit them */
            ObpSetHandleAttributes(Handles[Index], (Attributes & OBJ_INHERIT) != 0, FALSE);
        }
        *ProcessHandle = Handles[0];
        *ThreadHandle = Handles[1];
        ClientId->UniqueProcess = ULongToHandle(Process->Pcb.ProcessId);
        ClientId->UniqueThread = ClientId->UniqueProcess;
    } else {
        while (Opened != 0) {
            ObCloseHandle(Handles[--Opened], UserMode);
        }
    }
    ObDereferenceObject(Process);
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
    /* release: pairs with the acquire in PspEndProcess, publishes RequestedStatus */
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

/* Once the process has ended the host may have given its id to another one. */
VOID PspQueryProcessTimes(PEPROCESS Process, PPSP_TIMES Times)
{
    BOOLEAN Ended = !PspIsThisProcess(Process) && PspHasProcessEnded(Process);
    HAL_PROCESS_TIMES Host = {0};
    if (Ended) {
        Host = Process->Times;
    } else {
        HalQueryProcessTimes(Process->Pcb.ProcessId, &Host);
    }
    Times->CreateTime = Host.CreateTime;
    Times->ExitTime = Ended ? Process->ExitTime : 0;
    Times->KernelTime = Host.KernelTime;
    Times->UserTime = Host.UserTime;
}
