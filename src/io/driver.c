/*
 * driver.c: what drivers call: interrupts and work items.
 *
 * 1. A work item's routine runs once for each time the item is queued, with the object, the context and, in the second
 *    form, the item itself.
 * 2. The item is not touched after its routine has been called: the routine may free it or queue it again.
 * 3. Freeing a queued item is a bugcheck.
 * 4. From the queueing until the routine has returned, the item holds a reference on its device or driver: the driver's code and
 *    the device's extension stay as long as the routine runs.
 */
#include <interlock/ex.h>
#include <interlock/io.h>

#include "../hal/machine.h"
#include "../ke/interrupt.h"

#define IOP_WORKITEM_TAG 0x74496f49u /* "IoIt" */
#define IOP_QUEUED_ITEM_FREED 0      /* first parameter of WORKER_INVALID */

/* Interrupts. */

/* Interprocessor interrupts are above every device. */
static BOOLEAN IopIsDeviceLevel(KIRQL Irql)
{
    return Irql > DISPATCH_LEVEL && Irql < IPI_LEVEL;
}

static VOID IopCheckPassiveLevel(ULONG_PTR Routine)
{
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, PASSIVE_LEVEL, KeGetCurrentIrql(), 0, Routine);
    }
}

NTSTATUS IoConnectInterrupt(PKINTERRUPT *Interrupt, PKSERVICE_ROUTINE ServiceRoutine, PVOID ServiceContext,
                            PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql, KIRQL SynchronizeIrql,
                            KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector, KAFFINITY ProcessorEnableMask,
                            BOOLEAN FloatingSave)
{
    KINTERRUPT Template = {
        .Type = InterruptObject,
        .Irql = Irql,
        .SynchronizeIrql = SynchronizeIrql,
        .ShareVector = ShareVector != FALSE,
        .Mode = InterruptMode,
        .Vector = Vector,
        .ServiceRoutine = ServiceRoutine,
        .ServiceContext = ServiceContext,
        .ActualLock = SpinLock,
        .ProcessorEnableMask = ProcessorEnableMask & KeQueryActiveProcessors(),
    };
    UNREFERENCED_PARAMETER(FloatingSave);
    IopCheckPassiveLevel((ULONG_PTR)IoConnectInterrupt);
    *Interrupt = NULL;
    if (ServiceRoutine == NULL || Vector >= KI_MAXIMUM_VECTOR || !IopIsDeviceLevel(Irql) ||
        !IopIsDeviceLevel(SynchronizeIrql) || SynchronizeIrql < Irql || Template.ProcessorEnableMask == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PKINTERRUPT Connected = HalAllocate(sizeof(*Connected), KI_CACHE_LINE);
    if (Connected == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *Connected = Template;
    if (SpinLock == NULL) {
        Connected->ActualLock = &Connected->SpinLock;
    }
    NTSTATUS Status = KiConnectInterrupt(Connected);
    if (!NT_SUCCESS(Status)) {
        HalFree(Connected);
        return Status;
    }
    *Interrupt = Connected;
    return Status;
}

VOID IoDisconnectInterrupt(PKINTERRUPT Interrupt)
{
    IopCheckPassiveLevel((ULONG_PTR)IoDisconnectInterrupt);
    KiDisconnectInterrupt(Interrupt);
    HalFree(Interrupt);
}

/* The stack. */

VOID IoGetStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit)
{
    HalQueryStackLimits(LowLimit, HighLimit);
}

/* Work items. */

typedef struct _IO_WORKITEM {
    WORK_QUEUE_ITEM WorkItem;
    PIO_WORKITEM_ROUTINE Routine;
    PIO_WORKITEM_ROUTINE_EX RoutineEx;
    PVOID IoObject;
    PVOID Context;
    BOOLEAN Referenced;              /* the object, while the item is queued and runs */
} IO_WORKITEM;

/* One of IoCreateDevice or a driver's; not what a test passes in its place. */
static BOOLEAN IopIsIoObject(PVOID IoObject)
{
    PDEVICE_OBJECT Device = IoObject;
    if (Device == NULL || Device->Type != IO_TYPE_DEVICE) {
        PDRIVER_OBJECT Driver = IoObject;
        return Driver != NULL && Driver->Type == IO_TYPE_DRIVER && Driver->DriverExtension != NULL &&
               Driver->DriverExtension->DriverObject == Driver;
    }
    return Device->DeviceObjectExtension != NULL && Device->DeviceObjectExtension->DeviceObject == Device;
}

static VOID IopRunWorkItem(PVOID Parameter)
{
    PIO_WORKITEM Item = Parameter;
    PVOID IoObject = Item->IoObject;
    BOOLEAN Referenced = Item->Referenced;
    if (Item->RoutineEx != NULL) {
        Item->RoutineEx(IoObject, Item->Context, Item);
    } else {
        Item->Routine(IoObject, Item->Context);
    }
    if (Referenced) {
        ObDereferenceObject(IoObject);
    }
}

ULONG IoSizeofWorkItem(VOID)
{
    return sizeof(IO_WORKITEM);
}

VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem)
{
    *IoWorkItem = (IO_WORKITEM){.IoObject = IoObject};
    ExInitializeWorkItem(&IoWorkItem->WorkItem, IopRunWorkItem, IoWorkItem);
}

VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem)
{
    if (IoWorkItem->WorkItem.List.Flink != NULL) {
        KeBugCheckEx(WORKER_INVALID, IOP_QUEUED_ITEM_FREED, (ULONG_PTR)IoWorkItem, (ULONG_PTR)IoWorkItem,
                     sizeof(IO_WORKITEM));
    }
}

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject)
{
    PIO_WORKITEM Item = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(IO_WORKITEM), IOP_WORKITEM_TAG);
    if (Item != NULL) {
        IoInitializeWorkItem(DeviceObject, Item);
    }
    return Item;
}

VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem)
{
    IoUninitializeWorkItem(IoWorkItem);
    ExFreePoolWithTag(IoWorkItem, IOP_WORKITEM_TAG);
}

static VOID IopQueueWorkItem(PIO_WORKITEM Item, PIO_WORKITEM_ROUTINE Routine, PIO_WORKITEM_ROUTINE_EX RoutineEx,
                             WORK_QUEUE_TYPE QueueType, PVOID Context)
{
    if (Item->WorkItem.List.Flink == NULL) {
        Item->Routine = Routine;
        Item->RoutineEx = RoutineEx;
        Item->Context = Context;
        Item->Referenced = IopIsIoObject(Item->IoObject);
        if (Item->Referenced) {
            ObReferenceObject(Item->IoObject);
        }
    }
    ExQueueWorkItem(&Item->WorkItem, QueueType);
}

VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine, WORK_QUEUE_TYPE QueueType,
                     PVOID Context)
{
    IopQueueWorkItem(IoWorkItem, WorkerRoutine, NULL, QueueType, Context);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine, WORK_QUEUE_TYPE QueueType,
                       PVOID Context)
{
    IopQueueWorkItem(IoWorkItem, NULL, WorkerRoutine, QueueType, Context);
}
