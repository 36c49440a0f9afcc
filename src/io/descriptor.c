/*
 * descriptor.c: descriptors of the host as objects.
 *
 * The event stands for the state of the descriptor and is brought up to date when somebody is about to wait: set if the
 * descriptor is ready now, else reset and the descriptor watched, after which the watching thread sets it.
 *
 * 1. Looking at the descriptor and changing the event are one step, as far as anybody can tell: who finds that the event
 *    has been brought up to date since it began to look, looks again. So what one thread has read is not announced to it
 *    once more by another that had looked before.
 * 2. Whoever resets the event watches afterwards, so whatever comes after the reset is seen.
 */
#include <interlock/io.h>

#include "watch.h"

#define IOP_EVENTS (IO_DESCRIPTOR_READABLE | IO_DESCRIPTOR_URGENT | IO_DESCRIPTOR_WRITABLE)
#define IOP_ALWAYS_REPORTED (IO_DESCRIPTOR_FAILED | IO_DESCRIPTOR_CLOSED)

C_ASSERT(IO_DESCRIPTOR_READABLE == HAL_DESCRIPTOR_READABLE && IO_DESCRIPTOR_URGENT == HAL_DESCRIPTOR_URGENT);
C_ASSERT(IO_DESCRIPTOR_WRITABLE == HAL_DESCRIPTOR_WRITABLE && IO_DESCRIPTOR_FAILED == HAL_DESCRIPTOR_FAILED);
C_ASSERT(IO_DESCRIPTOR_CLOSED == HAL_DESCRIPTOR_CLOSED);

typedef struct _IOP_DESCRIPTOR {
    KEVENT Ready;
    KI_LOCK Lock;
    volatile ULONG Updates;          /* of Ready, which is changed with the lock held */
    LONG Original;                   /* what the watch's descriptor is a duplicate of: it may have been closed since */
    IOP_WATCH Watch;
} IOP_DESCRIPTOR, *PIOP_DESCRIPTOR;

/* Events that are not there: the program has closed the descriptor. */
#define IOP_LOST MAXULONG

/* What seems to be ready may be another file of the program's, under the same number. One that is not ready is armed
   next, which only works with ours. */
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

/* FALSE: somebody else has brought the event up to date since Updates was read. */
static BOOLEAN IopUpdateState(PIOP_DESCRIPTOR Descriptor, ULONG Updates, BOOLEAN IsReady)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Current;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Descriptor->Lock);
    Current = Descriptor->Updates == Updates;
    if (Current) {
        /* release: pairs with the acquire in IopRefreshDescriptor; who sees the new number looks after this one did */
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
        /* It is lost: IoQueryDescriptorObject says so, rather than that the caller sleeps for ever. */
        KeSetEvent(&Descriptor->Ready, IO_NO_INCREMENT, FALSE);
    }
}

/* The duplicate is gone. The program may have spared its own descriptor. */
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

OBJECT_TYPE IopDescriptorType = {
    .Name = "Descriptor",
    .GenericMapping = {STANDARD_RIGHTS_READ | IO_DESCRIPTOR_QUERY_STATE, STANDARD_RIGHTS_WRITE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, IO_DESCRIPTOR_ALL_ACCESS},
    .ValidAccessMask = IO_DESCRIPTOR_ALL_ACCESS,
    .WaitOffset = FIELD_OFFSET(IOP_DESCRIPTOR, Ready),
    .WaitProcedure = IopRefreshDescriptor,
    .DeleteProcedure = IopDeleteDescriptor,
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
