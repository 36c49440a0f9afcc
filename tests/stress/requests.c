/*
 * A storm of requests: senders, a server that completes them and threads that cancel them, over a cancel-safe queue and over StartIo.
 * The ledger: every packet is completed exactly once, as served or as cancelled, and both sides count the same.
 */
#include "stress.h"

#include <ntddk.h>

#define SENDERS 2
#define CANCELLERS 2
#define SERVERS 2
#define SLOTS 8

typedef struct slot {
    PIRP volatile irp;         /* for the cancellers */
    volatile LONG users;       /* that use irp */
    volatile LONG completions; /* since it was sent */
    KEVENT done;
} slot;

static PDRIVER_OBJECT driver;
static PDEVICE_OBJECT device;
static slot slots[SENDERS][SLOTS];
static volatile LONG served, cancelled, sent, finished_success, finished_cancelled, senders_left;
static int by_startio;

static IO_CSQ csq;
static LIST_ENTRY list;
static KSPIN_LOCK lock;

static VOID complete(PIRP irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    InterlockedIncrement(status == STATUS_SUCCESS ? &served : &cancelled);
    IoCompleteRequest(irp, IO_NO_INCREMENT);
}

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

static VOID cancel_started(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL irql = irp->CancelIrql;
    BOOLEAN current = irp == target->CurrentIrp;
    if (!current)
        require(KeRemoveEntryDeviceQueue(&target->DeviceQueue, &irp->Tail.Overlay.DeviceQueueEntry));
    IoReleaseCancelSpinLock(irql);
    if (current) {
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
        IoStartNextPacket(target, TRUE);
        KeLowerIrql(irql);
    }
    complete(irp, STATUS_CANCELLED);
}

static VOID start_io(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    (void)irp; /* the device works: a server finishes it */
}

static NTSTATUS dispatch(PDEVICE_OBJECT target, PIRP irp)
{
    if (by_startio) {
        IoMarkIrpPending(irp);
        IoStartPacket(target, irp, NULL, cancel_started);
    } else {
        IoCsqInsertIrp(&csq, irp, NULL);
    }
    return STATUS_PENDING;
}

/* FALSE: there was nothing to do. */
static BOOLEAN serve(void)
{
    PIRP irp;
    KIRQL irql;
    if (!by_startio) {
        irp = IoCsqRemoveNextIrp(&csq, NULL);
        if (irp != NULL)
            complete(irp, STATUS_SUCCESS);
        return irp != NULL;
    }
    IoAcquireCancelSpinLock(&irql);
    irp = device->CurrentIrp;
    if (irp != NULL && IoSetCancelRoutine(irp, NULL) == NULL)
        irp = NULL;
    if (irp != NULL)
        device->CurrentIrp = NULL;
    IoReleaseCancelSpinLock(irql);
    if (irp == NULL)
        return FALSE;
    complete(irp, STATUS_SUCCESS);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    IoStartNextPacket(device, TRUE);
    KeLowerIrql(irql);
    return TRUE;
}

static NTSTATUS take_back(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    slot *s = context;
    (void)target;
    (void)irp;
    require(InterlockedIncrement(&s->completions) == 1);
    KeSetEvent(&s->done, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static void send(slot *s)
{
    PIRP irp = IoAllocateIrp(device->StackSize, FALSE);
    require(irp != NULL);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_READ;
    IoSetCompletionRoutine(irp, take_back, s, TRUE, TRUE, TRUE);
    s->completions = 0;
    KeClearEvent(&s->done);
    InterlockedExchangePointer((PVOID volatile *)&s->irp, irp);
    InterlockedIncrement(&sent);
    require(IoCallDriver(device, irp) == STATUS_PENDING);
}

static void finish(slot *s)
{
    PIRP irp;
    KeWaitForSingleObject(&s->done, Executive, KernelMode, FALSE, NULL);
    irp = InterlockedExchangePointer((PVOID volatile *)&s->irp, NULL);
    while (InterlockedCompareExchange(&s->users, 0, 0) != 0)
        YieldProcessor();
    InterlockedIncrement(irp->IoStatus.Status == STATUS_SUCCESS ? &finished_success : &finished_cancelled);
    require(InterlockedCompareExchange(&s->completions, 0, 0) == 1);
    IoFreeIrp(irp);
}

static void sender(unsigned index, unsigned long rounds)
{
    for (unsigned long round = 0; round < rounds; round++) {
        for (int i = 0; i < SLOTS; i++)
            send(&slots[index][i]);
        for (int i = 0; i < SLOTS; i++)
            finish(&slots[index][i]);
    }
    InterlockedDecrement(&senders_left);
}

static void canceller(unsigned seed)
{
    test_random random;
    random_seed(&random, seed);
    while (InterlockedCompareExchange(&senders_left, 0, 0) != 0) {
        slot *s = &slots[random_below(&random, SENDERS)][random_below(&random, SLOTS)];
        InterlockedIncrement(&s->users);
        PIRP irp = InterlockedCompareExchangePointer((PVOID volatile *)&s->irp, NULL, NULL);
        if (irp != NULL)
            IoCancelIrp(irp);
        InterlockedDecrement(&s->users);
        if (random_below(&random, 4) == 0)
            sched_yield();
    }
}

static void play(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;
    if (index < SENDERS) {
        sender(index, rounds);
    } else if (index < SENDERS + CANCELLERS) {
        canceller(index);
    } else {
        while (InterlockedCompareExchange(&senders_left, 0, 0) != 0) {
            if (!serve())
                sched_yield();
        }
    }
}

static NTSTATUS entry(PDRIVER_OBJECT self, PUNICODE_STRING path)
{
    (void)path;
    self->MajorFunction[IRP_MJ_READ] = dispatch;
    self->DriverStartIo = start_io;
    return IoCreateDevice(self, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
}

static VOID unload(PDRIVER_OBJECT self)
{
    IoDeleteDevice(self->DeviceObject);
}

static void storm(int startio)
{
    unsigned long rounds = test_rounds(startio ? 1500 : 3000);
    by_startio = startio;
    served = cancelled = sent = finished_success = finished_cancelled = 0;
    senders_left = SENDERS;
    InitializeListHead(&list);
    KeInitializeSpinLock(&lock);
    IoCsqInitialize(&csq, csq_insert, csq_remove, csq_peek, csq_acquire, csq_release, csq_cancelled);
    for (int i = 0; i < SENDERS; i++)
        for (int j = 0; j < SLOTS; j++)
            KeInitializeEvent(&slots[i][j].done, NotificationEvent, FALSE);
    assert_int_equal(IoTestLoadDriver(entry, "Storm", &driver), STATUS_SUCCESS);
    driver->DriverUnload = unload;
    run_threads(SENDERS + CANCELLERS + SERVERS, 200, play, &rounds);
    assert_int_equal(sent, SENDERS * SLOTS * rounds);
    assert_int_equal(served + cancelled, sent);
    assert_int_equal(finished_success, served);
    assert_int_equal(finished_cancelled, cancelled);
    assert_true(IsListEmpty(&list));
    assert_false(device->DeviceQueue.Busy);
    assert_int_equal(IoTestUnloadDriver(driver), STATUS_SUCCESS);
}

static void test_cancel_safe_queue(void **state)
{
    (void)state;
    storm(0);
}

static void test_startio(void **state)
{
    (void)state;
    storm(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_safe_queue),
        cmocka_unit_test(test_startio),
    };
    return cmocka_run_group_tests_name("stress/requests", tests, NULL, NULL);
}
