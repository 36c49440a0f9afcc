/*
 * A driver that keeps a read until data arrives, with the two races that almost every first version of such a driver
 * has, and their fixes. The test takes the part of the I/O manager: it sends the read, and cancels it while the driver
 * is busy with it.
 *
 *     interlock lab examples/lab/cancel.c
 */
#include <interlock/lab.h>
#include <ntddk.h>

/* The driver. */

static PIRP waiting; /* the read that waits for data */

static VOID Complete(PIRP Irp, NTSTATUS Status)
{
    Irp->IoStatus.Status = Status;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
}

static VOID EchoCancel(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    IoReleaseCancelSpinLock(Irp->CancelIrql);
    Complete(Irp, STATUS_CANCELLED);
}

/* The first bug: a read that was cancelled before the routine is set. The routine is never called, and the program
   waits forever. */
static NTSTATUS EchoReadLost(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    IoMarkIrpPending(Irp);
    waiting = Irp;
    IoSetCancelRoutine(Irp, EchoCancel);
    return STATUS_PENDING;
}

static NTSTATUS EchoRead(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    IoMarkIrpPending(Irp);
    waiting = Irp;
    IoSetCancelRoutine(Irp, EchoCancel);
    if (Irp->Cancel && IoSetCancelRoutine(Irp, NULL) != NULL) {
        Complete(Irp, STATUS_CANCELLED); /* the routine has not been called, so the read is still ours */
    }
    return STATUS_PENDING;
}

/* The second bug: the cancel routine may already own the read, and completes it as well. */
static VOID EchoDataTwice(VOID)
{
    IoSetCancelRoutine(waiting, NULL);
    Complete(waiting, STATUS_SUCCESS);
}

static VOID EchoData(VOID)
{
    if (IoSetCancelRoutine(waiting, NULL) != NULL) {
        Complete(waiting, STATUS_SUCCESS);
    }
}

static NTSTATUS EchoEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    PDEVICE_OBJECT Device;
    UNREFERENCED_PARAMETER(RegistryPath);
    DriverObject->MajorFunction[IRP_MJ_READ] = EchoRead;
    return IoCreateDevice(DriverObject, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &Device);
}

/* The test. */

static PDRIVER_OBJECT driver;
static PIRP irp;
static KEVENT done;

static NTSTATUS read_done(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    UNREFERENCED_PARAMETER(Irp);
    UNREFERENCED_PARAMETER(Context);
    KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED; /* the packet is ours */
}

static void load(void)
{
    IoTestLoadDriver(EchoEntry, "Echo", &driver);
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    irp = IoAllocateIrp(driver->DeviceObject->StackSize, FALSE);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_READ;
    IoSetCompletionRoutine(irp, read_done, NULL, TRUE, TRUE, TRUE);
}

static void load_lost(void)
{
    load();
    driver->MajorFunction[IRP_MJ_READ] = EchoReadLost;
}

static void load_and_read(void)
{
    load();
    IoCallDriver(driver->DeviceObject, irp);
}

static void read_and_wait(void)
{
    IoCallDriver(driver->DeviceObject, irp);
    KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
}

static void cancel(void)
{
    IoCancelIrp(irp);
}

static void is_done(void)
{
    LabAssert(KeReadStateEvent(&done) != 0);
}

LAB_SCENARIO(cancel_lost, .Setup = load_lost, .Threads = {read_and_wait, cancel});
LAB_SCENARIO(cancel_noticed, .Setup = load, .Threads = {read_and_wait, cancel});
LAB_SCENARIO(completed_twice, .Setup = load_and_read, .Threads = {EchoDataTwice, cancel});
LAB_SCENARIO(completed_once, .Setup = load_and_read, .Threads = {EchoData, cancel}, .Finish = is_done);
