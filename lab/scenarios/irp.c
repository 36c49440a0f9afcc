/*
 * Requests: each is completed exactly once: by the driver, by the thread that cancels, or by the queue that it is in.
 * The requirements are in src/io/irp.c, removelock.c and device.c.
 */
#include <interlock/lab.h>

#include <ntifs.h>

static PDRIVER_OBJECT driver;
static PDEVICE_OBJECT device;
static PIRP irps[2];
static KEVENT done[2];
static NTSTATUS result[2];

static VOID complete(PIRP irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
}

static NTSTATUS take_back(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    int index = (int)(ULONG_PTR)context;
    (void)target;
    LabAssert(result[index] == STATUS_PENDING); /* once */
    result[index] = irp->IoStatus.Status;
    KeSetEvent(&done[index], IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static NTSTATUS entry(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    (void)path;
    return IoCreateDevice(self, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
}

static void load(PDRIVER_DISPATCH dispatch)
{
    IoTestLoadDriver(entry, "Lab", &driver);
    driver->MajorFunction[IRP_MJ_READ] = dispatch;
    for (int i = 0; i < 2; i++) {
        result[i] = STATUS_PENDING;
        KeInitializeEvent(&done[i], NotificationEvent, FALSE);
        irps[i] = IoAllocateIrp(device->StackSize, FALSE);
        IoGetNextIrpStackLocation(irps[i])->MajorFunction = IRP_MJ_READ;
        IoSetCompletionRoutine(irps[i], take_back, (PVOID)(ULONG_PTR)i, TRUE, TRUE, TRUE);
    }
}

static void send(int index)
{
    LabAssert(IoCallDriver(device, irps[index]) == STATUS_PENDING);
}

static void await(int index)
{
    KeWaitForSingleObject(&done[index], Executive, KernelMode, FALSE, NULL);
}

static void cancel_first(void)
{
    IoCancelIrp(irps[0]);
}

static void send_first(void)
{
    send(0);
}

/* A driver with a cancel routine of its own. */

static VOID cancel_routine(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoReleaseCancelSpinLock(irp->CancelIrql);
    complete(irp, STATUS_CANCELLED);
}

static NTSTATUS keep(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    IoSetCancelRoutine(irp, cancel_routine);
    if (irp->Cancel && IoSetCancelRoutine(irp, NULL) != NULL)
        complete(irp, STATUS_CANCELLED);
    return STATUS_PENDING;
}

static void setup_keep(void)
{
    load(keep);
}

static void setup_kept(void)
{
    load(keep);
    send(0);
}

static void complete_first(void)
{
    if (IoSetCancelRoutine(irps[0], NULL) != NULL)
        complete(irps[0], STATUS_SUCCESS);
}

static void send_and_await(void)
{
    send(0);
    await(0);
    LabAssert(result[0] == STATUS_CANCELLED);
}

static void first_is_done(void)
{
    LabAssert(result[0] == STATUS_SUCCESS || result[0] == STATUS_CANCELLED);
    LabAssert(irps[0]->CancelRoutine == NULL);
}
LAB_SCENARIO(irp_cancel_or_complete, .Setup = setup_kept, .Threads = {complete_first, cancel_first},
             .Finish = first_is_done);
LAB_SCENARIO(irp_cancel_twice_or_complete, .Setup = setup_kept, .Threads = {complete_first, cancel_first, cancel_first},
             .Finish = first_is_done, .Flags = LAB_LARGE);
LAB_SCENARIO(irp_send_or_cancel, .Setup = setup_keep, .Threads = {send_and_await, cancel_first});

/* The creator frees its packet as soon as it is complete; while the completing and the cancelling thread still run. */
static void free_first(void)
{
    await(0);
    IoFreeIrp(irps[0]);
}
LAB_SCENARIO(irp_freed, .Setup = setup_kept, .Threads = {complete_first, free_first});
LAB_SCENARIO(irp_freed_by_cancel, .Setup = setup_kept, .Threads = {cancel_first, free_first});

/* A cancel-safe queue. */

static IO_CSQ csq;
static LIST_ENTRY list;
static KSPIN_LOCK lock;
static IO_CSQ_IRP_CONTEXT contexts[2];

static VOID csq_insert(PIO_CSQ self, PIRP irp)
{
    (void)self;
    InsertTailList(&list, &irp->Tail.Overlay.ListEntry);
}

static VOID csq_remove(PIO_CSQ self, PIRP irp)
{
    (void)self;
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
}

static PIRP csq_peek(PIO_CSQ self, PIRP irp, PVOID context)
{
    PLIST_ENTRY next = irp != NULL ? irp->Tail.Overlay.ListEntry.Flink : list.Flink;
    (void)self;
    (void)context;
    return next != &list ? CONTAINING_RECORD(next, IRP, Tail.Overlay.ListEntry) : NULL;
}

static VOID csq_acquire(PIO_CSQ self, PKIRQL irql)
{
    (void)self;
    KeAcquireSpinLock(&lock, irql);
}

static VOID csq_release(PIO_CSQ self, KIRQL irql)
{
    (void)self;
    KeReleaseSpinLock(&lock, irql);
}

static VOID csq_cancelled(PIO_CSQ self, PIRP irp)
{
    (void)self;
    complete(irp, STATUS_CANCELLED);
}

static NTSTATUS enqueue(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoCsqInsertIrp(&csq, irp, irp == irps[0] ? &contexts[0] : NULL);
    return STATUS_PENDING;
}

static void setup_csq(void)
{
    load(enqueue);
    InitializeListHead(&list);
    IoCsqInitialize(&csq, csq_insert, csq_remove, csq_peek, csq_acquire, csq_release, csq_cancelled);
}

static void setup_queued(void)
{
    setup_csq();
    send(0);
}

static void setup_both_queued(void)
{
    setup_csq();
    send(0);
    send(1);
}

static void remove_next(void)
{
    PIRP irp = IoCsqRemoveNextIrp(&csq, NULL);
    if (irp != NULL)
        complete(irp, STATUS_SUCCESS);
}

static void remove_by_context(void)
{
    PIRP irp = IoCsqRemoveIrp(&csq, &contexts[0]);
    if (irp != NULL)
        complete(irp, STATUS_SUCCESS);
}

/* A request that is not completed is in the queue, and can still be removed. */
static void drained(void)
{
    if (result[0] == STATUS_PENDING)
        LabAssert(!IsListEmpty(&list) && irps[0]->CancelRoutine != NULL);
    else
        LabAssert(IsListEmpty(&list) && irps[0]->CancelRoutine == NULL);
}

/* The cancelled one is skipped, not the next. */
static void second_is_taken(void)
{
    LabAssert(result[0] != STATUS_PENDING);
    LabAssert((result[0] == STATUS_SUCCESS) == (result[1] == STATUS_PENDING));
}
LAB_SCENARIO(csq_cancel_or_remove, .Setup = setup_queued, .Threads = {remove_next, cancel_first}, .Finish = first_is_done);
LAB_SCENARIO(csq_cancel_or_remove_context, .Setup = setup_queued, .Threads = {remove_by_context, cancel_first},
             .Finish = first_is_done);
LAB_SCENARIO(csq_insert_or_remove, .Setup = setup_csq, .Threads = {send_first, remove_next}, .Finish = drained);
LAB_SCENARIO(csq_insert_or_cancel, .Setup = setup_csq, .Threads = {send_and_await, cancel_first});
LAB_SCENARIO(csq_insert_cancel_remove, .Setup = setup_csq, .Threads = {send_first, cancel_first, remove_next},
             .Finish = first_is_done, .Flags = LAB_LARGE);
LAB_SCENARIO(csq_two, .Setup = setup_both_queued, .Threads = {remove_next, cancel_first}, .Finish = second_is_taken);

/* StartIo: the first packet is in the device, the second one waits. */

static VOID cancel_queued(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL irql = irp->CancelIrql;
    BOOLEAN current = irp == target->CurrentIrp;
    if (!current)
        LabAssert(KeRemoveEntryDeviceQueue(&target->DeviceQueue, &irp->Tail.Overlay.DeviceQueueEntry));
    IoReleaseCancelSpinLock(irql);
    if (current) {
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
        IoStartNextPacket(target, TRUE);
        KeLowerIrql(irql);
    }
    complete(irp, STATUS_CANCELLED);
}

/* The second packet is completed as soon as it is started. */
static VOID start_io(PDEVICE_OBJECT target, PIRP irp)
{
    if (irp == irps[1] && IoSetCancelRoutine(irp, NULL) != NULL) {
        complete(irp, STATUS_SUCCESS);
        IoStartNextPacket(target, TRUE);
    }
}

static NTSTATUS start(PDEVICE_OBJECT target, PIRP irp)
{
    IoMarkIrpPending(irp);
    IoStartPacket(target, irp, NULL, cancel_queued);
    return STATUS_PENDING;
}

static void setup_startio(void)
{
    load(start);
    driver->DriverStartIo = start_io;
    send(0);
    send(1);
}

static void finish_current(void)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    if (IoSetCancelRoutine(irps[0], NULL) != NULL) {
        complete(irps[0], STATUS_SUCCESS);
        IoStartNextPacket(device, TRUE);
    }
    KeLowerIrql(irql);
}

static void cancel_second(void)
{
    IoCancelIrp(irps[1]);
}

static void both_done(void)
{
    LabAssert(result[0] != STATUS_PENDING && result[1] != STATUS_PENDING);
    LabAssert(!device->DeviceQueue.Busy && device->CurrentIrp == NULL && IsListEmpty(&device->DeviceQueue.DeviceListHead));
}
LAB_SCENARIO(startio_cancel_queued, .Setup = setup_startio, .Threads = {finish_current, cancel_second},
             .Finish = both_done);
LAB_SCENARIO(startio_cancel_current, .Setup = setup_startio, .Threads = {finish_current, cancel_first},
             .Finish = both_done);

/* A remove lock: the remover returns when no thread uses the device, and none uses it afterwards. */

static IO_REMOVE_LOCK remove_lock;
static int present = 1;

static void setup_remove_lock(void)
{
    IoInitializeRemoveLock(&remove_lock, 0, 0, 0);
    IoAcquireRemoveLock(&remove_lock, NULL);
}

static void use_device(void)
{
    if (IoAcquireRemoveLock(&remove_lock, NULL) == STATUS_SUCCESS) {
        LabAssert(present == 1);
        IoReleaseRemoveLock(&remove_lock, NULL);
    }
}

static void remove_device(void)
{
    IoReleaseRemoveLockAndWait(&remove_lock, NULL);
    present = 0;
}
LAB_SCENARIO(remove_lock_wait, .Setup = setup_remove_lock, .Threads = {use_device, remove_device});
LAB_SCENARIO(remove_lock_two, .Setup = setup_remove_lock, .Threads = {use_device, use_device, remove_device},
             .Flags = LAB_LARGE);

/* A request of a thread is delivered on it, by an APC that briefly interrupts its wait. */

static IO_STATUS_BLOCK iosb;
static PIRP volatile held;

static NTSTATUS hold(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    __atomic_store_n(&held, irp, __ATOMIC_RELEASE);
    return STATUS_PENDING;
}

static void setup_hold(void)
{
    load(hold);
}

static void request_and_wait(void)
{
    KEVENT event;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_READ, device, NULL, 0, NULL, &event, &iosb);
    LabAssert(IoCallDriver(device, irp) == STATUS_PENDING);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    LabAssert(iosb.Status == STATUS_SUCCESS);
}

static void complete_held(void)
{
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) == NULL)
        ;
    complete(held, STATUS_SUCCESS);
}
LAB_SCENARIO(irp_delivery, .Setup = setup_hold, .Threads = {request_and_wait, complete_held}, .Flags = LAB_LARGE);
