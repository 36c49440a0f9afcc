/*
 * export.c: objects as descriptors of the host.
 *
 * An export waits for its object without a thread, by a DPC (ke/notify.c), which makes the descriptor readable.
 *
 *   IopWaiting --DPC--> IopSatisfied --IoAcceptExport--> IopWaiting
 *
 * 1. While the wait is registered, or its DPC on the way, it holds a reference on the export.
 * 2. The last handle that is closed ends the wait. If it is too late for that, the DPC has the reference and finds the
 *    export closed; an acceptor that has registered in the meantime finds it closed too and ends its own wait. Ending
 *    one wait twice is harmless: only one of the two is told that it did.
 * 3. What was satisfied and never accepted is given back when the export goes away.
 */
#include <interlock/io.h>

#include "../ke/wait.h"
#include "watch.h"

typedef enum _IOP_EXPORT_STATE { IopWaiting, IopSatisfied } IOP_EXPORT_STATE;

typedef struct _IOP_EXPORT {
    PVOID Target;                    /* the object, referenced */
    PVOID Header;                    /* what a wait for it waits for */
    KWAIT_BLOCK WaitBlock;
    KDPC Dpc;
    IOP_WATCH Watch;                 /* never armed: its descriptor is for others to wait for */
    volatile ULONG State;            /* IOP_EXPORT_STATE */
    volatile BOOLEAN Closed;
} IOP_EXPORT, *PIOP_EXPORT;

/* Also after a repair, which may have come between the state and the signal. */
static VOID IopShowState(PVOID Object)
{
    PIOP_EXPORT Export = Object;
    /* acquire: pairs with the release in IopExportSatisfied */
    if (__atomic_load_n(&Export->State, __ATOMIC_ACQUIRE) == IopSatisfied && IopOwnsDescriptor(&Export->Watch)) {
        HalSignalDescriptor(IopNumberOf(&Export->Watch));
    }
}

static VOID IopExportSatisfied(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    PIOP_EXPORT Export = Context;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Argument1);
    UNREFERENCED_PARAMETER(Argument2);
    /* release: pairs with the acquire in IoAcceptExport; the wait is over before the next one begins */
    __atomic_store_n(&Export->State, IopSatisfied, __ATOMIC_RELEASE);
    if (IopOwnsDescriptor(&Export->Watch)) {
        HalSignalDescriptor(IopNumberOf(&Export->Watch));
    } else {
        IopRequestRepair();
    }
    ObDereferenceObjectDeferDelete(Export);
}

static VOID IopEndWait(PIOP_EXPORT Export)
{
    if (KeCancelObjectDpc(&Export->WaitBlock)) {
        ObDereferenceObject(Export);
    }
}

static NTSTATUS IopBeginWait(PIOP_EXPORT Export)
{
    PVOID Header = ObpWaitObject(Export->Target);
    NTSTATUS Status;
    ObReferenceObject(Export);
    Status = KeRegisterObjectDpc(Header, &Export->Dpc, &Export->WaitBlock);
    if (!NT_SUCCESS(Status)) {
        ObDereferenceObject(Export);
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    /* seq_cst: pairs with the store in IopCloseExport; one of the two sees the other and ends the wait */
    if (__atomic_load_n(&Export->Closed, __ATOMIC_SEQ_CST)) {
        IopEndWait(Export);
    }
    return STATUS_SUCCESS;
}

static VOID IopCloseExport(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    PIOP_EXPORT Export = Object;
    UNREFERENCED_PARAMETER(GrantedAccess);
    if (HandlesLeft == 0) {
        __atomic_store_n(&Export->Closed, TRUE, __ATOMIC_SEQ_CST);
        IopEndWait(Export);
    }
}

/* A semaphore that somebody else has filled up in the meantime has no room for it. */
static VOID IopGiveBack(PDISPATCHER_HEADER Header)
{
    LONG Previous;
    switch (KI_TYPE(KiReadHeader(Header))) {
    case EventSynchronizationObject:
        KeSetEvent(CONTAINING_RECORD(Header, KEVENT, Header), IO_NO_INCREMENT, FALSE);
        break;
    case SemaphoreObject:
        KiReleaseSemaphore(CONTAINING_RECORD(Header, KSEMAPHORE, Header), IO_NO_INCREMENT, 1, FALSE, &Previous);
        break;
    default:
        break;
    }
}

static VOID IopDeleteExport(PVOID Object)
{
    PIOP_EXPORT Export = Object;
    if (Export->State == IopSatisfied) {
        IopGiveBack(Export->Header);
    }
    IopDeleteWatch(&Export->Watch);
    ObDereferenceObject(Export->Target);
}

static OBJECT_TYPE IopExportType = {
    .Name = "DescriptorExport",
    .GenericMapping = {STANDARD_RIGHTS_READ, STANDARD_RIGHTS_WRITE | IO_EXPORT_ACCEPT, STANDARD_RIGHTS_EXECUTE,
                       IO_EXPORT_ALL_ACCESS},
    .ValidAccessMask = IO_EXPORT_ALL_ACCESS,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .DeleteProcedure = IopDeleteExport,
    .CloseProcedure = IopCloseExport,
};

OBP_REGISTER_TYPE(IopExportType);

/* An error leaves no watch. */
static NTSTATUS IopAttachSignal(PIOP_EXPORT Export)
{
    NTSTATUS Status = IopInitializeWatch(&Export->Watch, 0, Export, IopShowState, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    LONG Descriptor = HalCreateSignalDescriptor();
    Status = Descriptor >= 0 ? IopAttachDescriptor(&Export->Watch, Descriptor) : STATUS_INSUFFICIENT_RESOURCES;
    if (!NT_SUCCESS(Status)) {
        IopDeleteWatch(&Export->Watch);
        if (Descriptor >= 0) {
            HalCloseDescriptor(Descriptor);
        }
    }
    return Status;
}

static NTSTATUS IopInitializeExport(PVOID Object, PVOID Target)
{
    PIOP_EXPORT Export = Object;
    Export->State = IopWaiting;
    NTSTATUS Status = IopAttachSignal(Export);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Export->Target = Target;
    Export->Header = ObpDispatcherObject(Target);
    KeInitializeDpc(&Export->Dpc, IopExportSatisfied, Export);
    KiPrepareBlock(&Export->WaitBlock, NULL, Export->Header, WaitDpc, 0);
    ObReferenceObject(Target);
    return STATUS_SUCCESS;
}

/* The wait begins when there is a handle whose closing can end it. */
static NTSTATUS IopBeginFirstWait(HANDLE Handle, int *Descriptor)
{
    PVOID Export;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, IO_EXPORT_ACCEPT, &IopExportType, UserMode, &Export, NULL);
    if (NT_SUCCESS(Status)) {
        *Descriptor = IopNumberOf(&((PIOP_EXPORT)Export)->Watch);
        Status = IopBeginWait(Export);
        ObDereferenceObject(Export);
    }
    return Status;
}

static NTSTATUS IopExportTarget(PVOID Target, PHANDLE Export, int *Descriptor)
{
    HANDLE Handle;
    NTSTATUS Status;
    if (ObpIsAlwaysSignaled(Target)) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    Status = ObpCreateHandle(&IopExportType, sizeof(IOP_EXPORT), NULL, IO_EXPORT_ALL_ACCESS, IopInitializeExport, Target,
                             &Handle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = IopBeginFirstWait(Handle, Descriptor);
    if (!NT_SUCCESS(Status)) {
        ObCloseHandle(Handle, UserMode);
        return Status;
    }
    *Export = Handle;
    return Status;
}

NTSTATUS IoExportObject(HANDLE Object, PHANDLE Export, int *Descriptor)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Target;
    NTSTATUS Status;
    if (Export == NULL || Descriptor == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    Status = ObReferenceObjectByHandle(Object, SYNCHRONIZE, NULL, UserMode, &Target, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopExportTarget(Target, Export, Descriptor);
        ObDereferenceObject(Target);
    }
    KiExitService(Thread);
    return Status;
}

static NTSTATUS IopAccept(PIOP_EXPORT Export)
{
    ULONG Satisfied = IopSatisfied;
    LONG Descriptor = IopDescriptorOf(&Export->Watch);
    if (Descriptor < 0) {
        return STATUS_FILE_CLOSED;
    }
    /* acquire: pairs with the release in IopExportSatisfied */
    if (!__atomic_compare_exchange_n(&Export->State, &Satisfied, IopWaiting, FALSE, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return STATUS_TIMEOUT;
    }
    HalDrainDescriptor(Descriptor);
    return IopBeginWait(Export);
}

NTSTATUS IoAcceptExport(HANDLE Export)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    NTSTATUS Status;
    KiEnterService(Thread);
    Status = ObReferenceObjectByHandle(Export, IO_EXPORT_ACCEPT, &IopExportType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopAccept(Object);
        ObDereferenceObject(Object);
    }
    KiExitService(Thread);
    return Status;
}
