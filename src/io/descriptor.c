/*
 * descriptor.c: descriptors of the host as objects, and objects as descriptors of the host.
 *
 * A descriptor object's event stands for the state of the descriptor and is updated when a thread is about to wait: set
 * if the descriptor is ready now; otherwise reset and the descriptor watched, and the watching thread sets it.
 *
 * 1. Polling the descriptor and changing the event appear as one step: a thread that finds the event updated since it
 *    began to poll starts over. So data that one thread has read is not reported to it again by another thread that had
 *    polled before.
 * 2. A thread that resets the event arms the watch afterwards, so it misses nothing that happens after the reset.
 *
 * An export waits for its object without a thread, by a DPC (ke/notify.c), which makes the descriptor readable.
 *
 *   IopWaiting --DPC--> IopSatisfied --IoAcceptExport--> IopWaiting
 *
 * 3. While the wait is registered, or its DPC in flight, it holds a reference on the export.
 * 4. Closing the last handle ends the wait. If that is too late, the DPC owns the reference and finds the export
 *    closed; an acceptor that has registered meanwhile also finds it closed and ends its own wait. Ending a wait twice
 *    is harmless: only one of the two calls succeeds.
 * 5. A wait that was satisfied and never accepted is undone when the export is deleted.
 */
#include <interlock/io.h>

#include "../ke/wait.h"
#include "watch.h"

#define IOP_EVENTS (IO_DESCRIPTOR_READABLE | IO_DESCRIPTOR_URGENT | IO_DESCRIPTOR_WRITABLE)
#define IOP_ALWAYS_REPORTED (IO_DESCRIPTOR_FAILED | IO_DESCRIPTOR_CLOSED)

C_ASSERT(IO_DESCRIPTOR_READABLE == HAL_DESCRIPTOR_READABLE && IO_DESCRIPTOR_URGENT == HAL_DESCRIPTOR_URGENT);
C_ASSERT(IO_DESCRIPTOR_WRITABLE == HAL_DESCRIPTOR_WRITABLE && IO_DESCRIPTOR_FAILED == HAL_DESCRIPTOR_FAILED);
C_ASSERT(IO_DESCRIPTOR_CLOSED == HAL_DESCRIPTOR_CLOSED);

typedef struct _IOP_DESCRIPTOR {
    KEVENT Ready;
    KI_LOCK Lock;
    volatile ULONG Updates;          /* of Ready, which changes under the lock */
    LONG Original;                   /* the watch has a duplicate of it; may have been closed since */
    PVOID Binding;                   /* under the lock; NULL: none */
    VOID (*Unbind)(PVOID Binding);
    IOP_WATCH Watch;
} IOP_DESCRIPTOR, *PIOP_DESCRIPTOR;

/* In place of events: the program has closed the descriptor. */
#define IOP_LOST MAXULONG

/* A ready descriptor may be another file of the program under the same number. One that is not ready is armed next,
   which fails unless it is ours. */
static ULONG IopPoll(PIOP_DESCRIPTOR Descriptor)
{
    PIOP_WATCH Watch = &Descriptor->Watch;
    ULONG Events = HalPollDescriptor(IopNumberOf(Watch), Watch->Events);
    if (Events == 0 || IopOwnsDescriptor(Watch)) {
        return Events;
    }
    LONG Repaired = IopDescriptorOf(Watch);
    return Repaired >= 0 ? HalPollDescriptor(Repaired, Watch->Events) : IOP_LOST;
}

/* FALSE: another thread has updated the event since Updates was read. */
static BOOLEAN IopUpdateState(PIOP_DESCRIPTOR Descriptor, ULONG Updates, BOOLEAN IsReady)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Current;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Descriptor->Lock);
    Current = Descriptor->Updates == Updates;
    if (Current) {
        /* release: pairs with the acquire in IopRefreshDescriptor; a thread that sees the new number polls later */
        __atomic_store_n(&Descriptor->Updates, Updates + 1, __ATOMIC_RELEASE);
        if (IsReady) {
            KeSetEvent(&Descriptor->Ready, IO_NO_INCREMENT, FALSE);
        } else {
            KeClearEvent(&Descriptor->Ready);
        }
    }
    KiReleaseLock(&Descriptor->Lock);
    KiExitDispatcher(Thread);
    return Current;
}

static VOID IopRefreshDescriptor(PVOID Object)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    ULONG Updates;
    BOOLEAN IsReady;
    do {
        /* acquire: pairs with the release in IopUpdateState */
        Updates = __atomic_load_n(&Descriptor->Updates, __ATOMIC_ACQUIRE);
        IsReady = IopPoll(Descriptor) != 0;
    } while (!IopUpdateState(Descriptor, Updates, IsReady));
    if (!IsReady && !NT_SUCCESS(IopArmWatch(&Descriptor->Watch))) {
        /* The descriptor is lost. The wait ends, and IoQueryDescriptorObject reports it. */
        KeSetEvent(&Descriptor->Ready, IO_NO_INCREMENT, FALSE);
    }
}

/* The duplicate is lost, but the program may still have its own descriptor. */
static LONG IopDuplicateAgain(PVOID Object)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    LONG Duplicate;
    BOOLEAN Same = HalIsTellingId(&Descriptor->Watch.Id) && HalIsFile(Descriptor->Original, &Descriptor->Watch.Id);
    return Same && NT_SUCCESS(HalDuplicateDescriptor(Descriptor->Original, &Duplicate)) ? Duplicate : -1;
}

static VOID IopDeleteDescriptor(PVOID Object)
{
    IopDeleteWatch(&((PIOP_DESCRIPTOR)Object)->Watch);
}

static VOID IopEndBinding(PIOP_DESCRIPTOR Descriptor)
{
    PKTHREAD Thread = KiEnterLocked(&Descriptor->Lock);
    PVOID Binding = Descriptor->Binding;
    Descriptor->Binding = NULL;
    KiExitLocked(&Descriptor->Lock, Thread);
    if (Binding != NULL) {
        Descriptor->Unbind(Binding);
    }
}

static VOID IopCloseDescriptor(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    UNREFERENCED_PARAMETER(GrantedAccess);
    if (HandlesLeft == 0) {
        IopEndBinding(Object);
    }
}

/* If the last handle is closed at this moment, the lock decides: the thread that closes it finds the binding, or this one
   finds that there is no handle. */
NTSTATUS IopBindDescriptor(PVOID Object, PVOID Binding, VOID (*Unbind)(PVOID Binding))
{
    PIOP_DESCRIPTOR Descriptor = Object;
    PKTHREAD Thread = KiEnterLocked(&Descriptor->Lock);
    BOOLEAN IsFree = Descriptor->Binding == NULL;
    if (IsFree) {
        Descriptor->Binding = Binding;
        Descriptor->Unbind = Unbind;
    }
    KiExitLocked(&Descriptor->Lock, Thread);
    if (!IsFree) {
        return STATUS_INVALID_PARAMETER;
    }
    /* relaxed: ordered by the lock */
    if (__atomic_load_n(&ObpHeaderOf(Object)->HandleCount, __ATOMIC_RELAXED) == 0) {
        IopEndBinding(Descriptor);
    }
    return STATUS_SUCCESS;
}

BOOLEAN IopIsDescriptorLost(PVOID Object)
{
    PIOP_WATCH Watch = &((PIOP_DESCRIPTOR)Object)->Watch;
    return !IopOwnsDescriptor(Watch) && IopDescriptorOf(Watch) < 0;
}

OBJECT_TYPE IopDescriptorType = {
    .Name = "Descriptor",
    .GenericMapping = {STANDARD_RIGHTS_READ | IO_DESCRIPTOR_QUERY_STATE, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, IO_DESCRIPTOR_ALL_ACCESS},
    .ValidAccessMask = IO_DESCRIPTOR_ALL_ACCESS,
    .WaitOffset = FIELD_OFFSET(IOP_DESCRIPTOR, Ready),
    .WaitProcedure = IopRefreshDescriptor,
    .DeleteProcedure = IopDeleteDescriptor,
    .CloseProcedure = IopCloseDescriptor,
};

OBP_REGISTER_TYPE(IopDescriptorType);

typedef struct _IOP_DESCRIPTOR_PLAN {
    LONG Descriptor;
    ULONG Events;
} IOP_DESCRIPTOR_PLAN;

static NTSTATUS IopInitializeDescriptor(PVOID Object, PVOID Context)
{
    PIOP_DESCRIPTOR Descriptor = Object;
    IOP_DESCRIPTOR_PLAN *Plan = Context;
    LONG Duplicate;
    NTSTATUS Status = HalDuplicateDescriptor(Plan->Descriptor, &Duplicate);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    KeInitializeEvent(&Descriptor->Ready, NotificationEvent, FALSE);
    Descriptor->Original = Plan->Descriptor;
    Status = IopInitializeWatch(&Descriptor->Watch, Plan->Events, Object, IopRefreshDescriptor, IopDuplicateAgain);
    if (NT_SUCCESS(Status)) {
        Status = IopAttachDescriptor(&Descriptor->Watch, Duplicate);
        if (!NT_SUCCESS(Status)) {
            IopDeleteWatch(&Descriptor->Watch);
        }
    }
    if (!NT_SUCCESS(Status)) {
        HalCloseDescriptor(Duplicate);
    }
    return Status;
}

NTSTATUS IoCreateDescriptorObject(PHANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                                  int Descriptor, ULONG Events)
{
    PKTHREAD Thread = KiCurrentThread();
    IOP_DESCRIPTOR_PLAN Plan = {Descriptor, Events | IOP_ALWAYS_REPORTED};
    NTSTATUS Status;
    if (Handle == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if ((Events & ~(ULONG)(IOP_EVENTS | IOP_ALWAYS_REPORTED)) != 0 || (Events & IOP_EVENTS) == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    KiEnterService(Thread);
    Status = ObpCreateHandle(&IopDescriptorType, sizeof(IOP_DESCRIPTOR), ObjectAttributes, DesiredAccess,
                             IopInitializeDescriptor, &Plan, Handle);
    KiExitService(Thread);
    return Status;
}

LONG IopDescriptorOfObject(PVOID Object)
{
    return IopDescriptorOf(&((PIOP_DESCRIPTOR)Object)->Watch);
}

static NTSTATUS IopQueryDescriptor(PIOP_DESCRIPTOR Object, PULONG ReadyEvents, int *Descriptor)
{
    LONG Own = IopDescriptorOf(&Object->Watch);
    if (Own < 0) {
        return STATUS_FILE_CLOSED;
    }
    if (ReadyEvents != NULL) {
        *ReadyEvents = HalPollDescriptor(Own, Object->Watch.Events);
    }
    if (Descriptor != NULL) {
        *Descriptor = Own;
    }
    return STATUS_SUCCESS;
}

NTSTATUS IoQueryDescriptorObject(HANDLE Handle, PULONG ReadyEvents, int *Descriptor)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Object;
    NTSTATUS Status;
    KiEnterService(Thread);
    Status =
        ObReferenceObjectByHandle(Handle, IO_DESCRIPTOR_QUERY_STATE, &IopDescriptorType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        Status = IopQueryDescriptor(Object, ReadyEvents, Descriptor);
        ObDereferenceObject(Object);
    }
    KiExitService(Thread);
    return Status;
}

/* Exports. */

typedef enum _IOP_EXPORT_STATE { IopWaiting, IopSatisfied } IOP_EXPORT_STATE;

typedef struct _IOP_EXPORT {
    PVOID Target;                    /* the object, referenced */
    PVOID Header;                    /* the target's dispatcher header */
    KWAIT_BLOCK WaitBlock;
    KDPC Dpc;
    IOP_WATCH Watch;                 /* never armed: the program waits for its descriptor */
    volatile ULONG State;            /* IOP_EXPORT_STATE */
    volatile BOOLEAN Closed;
} IOP_EXPORT, *PIOP_EXPORT;

/* The watch's routine: a repair may have come between the state and the signal. */
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
    /* seq_cst: pairs with the store in IopCloseExport; at least one of the two ends the wait */
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

/* Undoes a satisfied wait. A semaphore that has reached its limit meanwhile refuses. */
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

/* After an error there is no watch. */
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

static NTSTATUS IopExportTarget(PVOID Target, PHANDLE Export, int *Descriptor)
{
    HANDLE Handle;
    PVOID Object;
    NTSTATUS Status;
    if (ObpIsAlwaysSignaled(Target)) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    Status = ObpCreateHandle(&IopExportType, sizeof(IOP_EXPORT), NULL, IO_EXPORT_ALL_ACCESS, IopInitializeExport, Target,
                             &Handle);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    /* The wait begins once there is a handle whose close can end it. */
    Status = ObReferenceObjectByHandle(Handle, IO_EXPORT_ACCEPT, &IopExportType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        *Descriptor = IopNumberOf(&((PIOP_EXPORT)Object)->Watch);
        Status = IopBeginWait(Object);
        ObDereferenceObject(Object);
    }
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
