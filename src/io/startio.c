/*
 * startio.c: one request at a time: StartIo, the DPC of a device and its timer.
 *
 * 1. The device's queue is busy from the moment a packet is started until IoStartNextPacket finds none (ke/devicequeue.c).
 * 2. A packet with a cancel routine gets it, its place in the queue and CurrentIrp in one step, under the cancel spinlock. So a
 *    cancel routine that compares its packet with CurrentIrp knows whether to remove it from the queue.
 * 3. Deferred: StartIo is not entered again before it has returned. StartIoCount counts the calls to make; the thread that raises
 *    it from 0 makes them all. There are never more than two: the packet in StartIo, and the next one.
 */
#include "iop.h"

#define IOP_SECOND 10000000LL
#define IOP_PERIOD 1000 /* ms */

static VOID IopStartNext(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key, BOOLEAN Again);

static VOID IopRunStartIo(PDEVICE_OBJECT Device, PIRP Irp)
{
    PDRIVER_STARTIO StartIo = Device->DriverObject->DriverStartIo;
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    StartIo(Device, Irp);
    KiEndCallback(Thread, &Callback, KiCallbackStartIo, (PVOID)StartIo);
}

/* Again: called by the loop in here. */
static VOID IopCallStartIo(PDEVICE_OBJECT Device, PIRP Irp, BOOLEAN Again)
{
    PIOP_DEVICE Extension = IopDeviceOf(Device);
    if (!Extension->DeferredStartIo || Again) {
        IopRunStartIo(Device, Irp);
        return;
    }
    /* acquire: the request to start the next one, by a thread that has found the count above 0 */
    __atomic_add_fetch(&Extension->StartIoCount, 1, __ATOMIC_ACQ_REL);
    IopRunStartIo(Device, Irp);
    while (__atomic_sub_fetch(&Extension->StartIoCount, 1, __ATOMIC_ACQ_REL) != 0) {
        IopStartNext(Device, Extension->Cancelable, Extension->ByKey ? &Extension->StartIoKey : NULL, TRUE);
    }
}

/* With the cancel spinlock held if Cancelable, which it releases. */
static VOID IopStartCurrent(PDEVICE_OBJECT Device, PIRP Irp, BOOLEAN Cancelable, KIRQL Irql, BOOLEAN Again)
{
    Device->CurrentIrp = Irp;
    if (Cancelable) {
        if (IopDeviceOf(Device)->NonCancelableStartIo) {
            IoSetCancelRoutine(Irp, NULL);
        }
        IoReleaseCancelSpinLock(Irql);
    }
    IopCallStartIo(Device, Irp, Again);
}

static VOID IopStartPacket(PDEVICE_OBJECT Device, PIRP Irp, PULONG Key, PDRIVER_CANCEL CancelFunction)
{
    PKDEVICE_QUEUE_ENTRY Entry = &Irp->Tail.Overlay.DeviceQueueEntry;
    KIRQL Irql = DISPATCH_LEVEL;
    KI_CALLBACK Callback;
    KiBeginCallback(KiCurrentThread(), &Callback);
    if (CancelFunction != NULL) {
        IoAcquireCancelSpinLock(&Irql);
        IoSetCancelRoutine(Irp, CancelFunction);
    }
    if (!(Key != NULL ? KeInsertByKeyDeviceQueue(&Device->DeviceQueue, Entry, *Key)
                      : KeInsertDeviceQueue(&Device->DeviceQueue, Entry))) {
        IopStartCurrent(Device, Irp, CancelFunction != NULL, Irql, FALSE);
        return;
    }
    if (CancelFunction == NULL) {
        return;
    }
    /* seq_cst: cancel.c, requirement 2. The lock excludes a cancelling thread, so the routine is still set. */
    if (__atomic_load_n(&Irp->Cancel, __ATOMIC_SEQ_CST)) {
        IoSetCancelRoutine(Irp, NULL);
        IopCallCancelRoutine(CancelFunction, Device, Irp, Irql, &Callback);
    } else {
        IoReleaseCancelSpinLock(Irql);
    }
}

VOID IoStartPacket(PDEVICE_OBJECT DeviceObject, PIRP Irp, PULONG Key, PDRIVER_CANCEL CancelFunction)
{
    KIRQL OldIrql;
    KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
    IopStartPacket(DeviceObject, Irp, Key, CancelFunction);
    KeLowerIrql(OldIrql);
}

static VOID IopStartNext(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key, BOOLEAN Again)
{
    KIRQL Irql = DISPATCH_LEVEL;
    if (Cancelable) {
        IoAcquireCancelSpinLock(&Irql);
    }
    Device->CurrentIrp = NULL;
    PKDEVICE_QUEUE_ENTRY Entry = Key != NULL ? KeRemoveByKeyDeviceQueue(&Device->DeviceQueue, *Key)
                                             : KeRemoveDeviceQueue(&Device->DeviceQueue);
    if (Entry != NULL) {
        IopStartCurrent(Device, CONTAINING_RECORD(Entry, IRP, Tail.Overlay.DeviceQueueEntry), Cancelable, Irql, Again);
    } else if (Cancelable) {
        IoReleaseCancelSpinLock(Irql);
    }
}

/* TRUE: the thread in StartIo does it. */
static BOOLEAN IopDeferStart(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key)
{
    PIOP_DEVICE Extension = IopDeviceOf(Device);
    LONG Calls = __atomic_load_n(&Extension->StartIoCount, __ATOMIC_RELAXED);
    if (!Extension->DeferredStartIo || Calls == 0) {
        return FALSE;
    }
    Extension->Cancelable = Cancelable;
    Extension->ByKey = Key != NULL;
    Extension->StartIoKey = Key != NULL ? *Key : 0;
    /* release: pairs with the acquire in IopCallStartIo */
    while (Calls != 0 && !__atomic_compare_exchange_n(&Extension->StartIoCount, &Calls, Calls + 1, FALSE,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return Calls != 0;
}

static VOID IopStartNextPacket(PDEVICE_OBJECT Device, BOOLEAN Cancelable, const ULONG *Key)
{
    KIRQL OldIrql;
    if (IopDeferStart(Device, Cancelable, Key)) {
        return;
    }
    KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
    IopStartNext(Device, Cancelable, Key, FALSE);
    KeLowerIrql(OldIrql);
}

VOID IoStartNextPacket(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable)
{
    IopStartNextPacket(DeviceObject, Cancelable, NULL);
}

VOID IoStartNextPacketByKey(PDEVICE_OBJECT DeviceObject, BOOLEAN Cancelable, ULONG Key)
{
    IopStartNextPacket(DeviceObject, Cancelable, &Key);
}

VOID IoSetStartIoAttributes(PDEVICE_OBJECT DeviceObject, BOOLEAN DeferredStartIo, BOOLEAN NonCancelable)
{
    PIOP_DEVICE Extension = IopDeviceOf(DeviceObject);
    Extension->DeferredStartIo = DeferredStartIo != FALSE;
    Extension->NonCancelableStartIo = NonCancelable != FALSE;
}

/* The timer. */

typedef struct _IO_TIMER {
    CSHORT Type;
    PDEVICE_OBJECT Device;
    PIO_TIMER_ROUTINE Routine;
    PVOID Context;
    KTIMER Timer;
    KDPC Dpc;
} IO_TIMER;

static VOID IopRunTimer(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    PIO_TIMER Timer = Context;
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Argument1);
    UNREFERENCED_PARAMETER(Argument2);
    Timer->Routine(Timer->Device, Timer->Context);
}

NTSTATUS IoInitializeTimer(PDEVICE_OBJECT DeviceObject, PIO_TIMER_ROUTINE TimerRoutine, PVOID Context)
{
    if (DeviceObject->Timer != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_IOMANAGER_VIOLATION, IOP_TIMER_TWICE, (ULONG_PTR)DeviceObject, 0, 0);
    }
    PIO_TIMER Timer = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Timer), IOP_IRP_TAG);
    if (Timer == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *Timer = (IO_TIMER){.Type = IO_TYPE_TIMER, .Device = DeviceObject, .Routine = TimerRoutine, .Context = Context};
    KeInitializeTimer(&Timer->Timer);
    KeInitializeDpc(&Timer->Dpc, IopRunTimer, Timer);
    DeviceObject->Timer = Timer;
    return STATUS_SUCCESS;
}

VOID IoStartTimer(PDEVICE_OBJECT DeviceObject)
{
    KeSetTimerEx(&DeviceObject->Timer->Timer, (LARGE_INTEGER){.QuadPart = -IOP_SECOND}, IOP_PERIOD,
                 &DeviceObject->Timer->Dpc);
}

VOID IoStopTimer(PDEVICE_OBJECT DeviceObject)
{
    KeCancelTimer(&DeviceObject->Timer->Timer);
    KeRemoveQueueDpc(&DeviceObject->Timer->Dpc);
}

VOID IopFreeTimer(PDEVICE_OBJECT Device)
{
    if (Device->Timer != NULL) {
        IoStopTimer(Device);
        ExFreePoolWithTag(Device->Timer, IOP_IRP_TAG);
        Device->Timer = NULL;
    }
}
