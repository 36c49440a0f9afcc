/* Cancelling: which thread owns the packet; cancel-safe queues; StartIo; requests of a thread that ends. Requirements:
   src/io/irp.c. */
#include "iotest.h"

#include <interlock/nt.h>

/* A driver that keeps one packet, with a cancel routine. */

static PIRP kept;
static ULONG cancels;
static BOOLEAN cancel_before;

static VOID cancel_kept(PDEVICE_OBJECT target, PIRP irp)
{
    assert_ptr_equal(target, device);
    assert_true(irp->Cancel);
    assert_null(irp->CancelRoutine);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    cancels += 1;
    IoReleaseCancelSpinLock(irp->CancelIrql);
    complete(irp, STATUS_CANCELLED, 0);
}

static NTSTATUS keep(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    kept = irp;
    if (cancel_before)
        assert_false(IoCancelIrp(irp));
    assert_null(IoSetCancelRoutine(irp, cancel_kept));
    if (irp->Cancel && IoSetCancelRoutine(irp, NULL) != NULL) /* requirement 2 */
        complete(irp, STATUS_CANCELLED, 1);
    return STATUS_PENDING;
}

static void test_cancel(void **state)
{
    (void)state;
    on_request = keep;
    cancels = 0;
    cancel_before = FALSE;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_READ);
    assert_ptr_equal(IoTestIrp(request), kept);
    assert_false(IoTestIsDone(request));
    assert_int_equal(IoTestWait(request, &(LARGE_INTEGER){.QuadPart = 0}), STATUS_TIMEOUT);
    assert_true(IoTestCancel(request));
    assert_int_equal(cancels, 1);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_false(IoTestCancel(request)); /* complete, but not finished: nothing to cancel */
    assert_int_equal(IoTestFinish(request, NULL), STATUS_CANCELLED);
    assert_int_equal(cancels, 1);
}

static void test_completed_first(void **state)
{
    (void)state;
    on_request = keep;
    cancels = 0;
    cancel_before = FALSE;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_READ);
    assert_ptr_equal(IoSetCancelRoutine(kept, NULL), cancel_kept); /* requirement 1: the driver owns it */
    assert_false(IoTestCancel(request));
    complete(kept, STATUS_SUCCESS, 0);
    assert_int_equal(IoTestFinish(request, NULL), STATUS_SUCCESS);
    assert_int_equal(cancels, 0);
}

static void test_cancelled_before(void **state)
{
    IO_STATUS_BLOCK result;
    (void)state;
    on_request = keep;
    cancels = 0;
    cancel_before = TRUE;
    assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_READ), &result), STATUS_CANCELLED);
    assert_int_equal(result.Information, 1); /* by the driver itself */
    assert_int_equal(cancels, 0);
    cancel_before = FALSE;
}

/* The level of the caller is restored by the cancel routine. */
static void test_cancel_at_dispatch_level(void **state)
{
    KIRQL old;
    (void)state;
    on_request = keep;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_READ);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_true(IoTestCancel(request));
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeLowerIrql(old);
    assert_int_equal(IoTestFinish(request, NULL), STATUS_CANCELLED);
}

static void test_cancel_lock(void **state)
{
    KIRQL old;
    (void)state;
    IoAcquireCancelSpinLock(&old);
    assert_int_equal(old, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    IoReleaseCancelSpinLock(old);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

/* Cancel-safe queues. */

typedef struct queue {
    IO_CSQ csq;
    LIST_ENTRY list;
    KSPIN_LOCK lock;
} queue;

static queue q;
static PFILE_OBJECT second_file;
static IO_CSQ_IRP_CONTEXT contexts[4];
static int next_context; /* below 0: none */
static NTSTATUS insert_status;

static VOID csq_insert(PIO_CSQ csq, PIRP irp)
{
    InsertTailList(&CONTAINING_RECORD(csq, queue, csq)->list, &irp->Tail.Overlay.ListEntry);
}

static NTSTATUS csq_insert_ex(PIO_CSQ csq, PIRP irp, PVOID context)
{
    assert_ptr_equal(context, &insert_status);
    if (NT_SUCCESS(insert_status))
        csq_insert(csq, irp);
    return insert_status;
}

static VOID csq_remove(PIO_CSQ csq, PIRP irp)
{
    (void)csq;
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
}

static PIRP csq_peek(PIO_CSQ csq, PIRP irp, PVOID context)
{
    PLIST_ENTRY head = &CONTAINING_RECORD(csq, queue, csq)->list;
    PLIST_ENTRY entry = irp != NULL ? irp->Tail.Overlay.ListEntry.Flink : head->Flink;
    for (; entry != head; entry = entry->Flink) {
        PIRP next = CONTAINING_RECORD(entry, IRP, Tail.Overlay.ListEntry);
        if (context == NULL || IoGetCurrentIrpStackLocation(next)->FileObject == context)
            return next;
    }
    return NULL;
}

static VOID csq_acquire(PIO_CSQ csq, PKIRQL irql)
{
    KeAcquireSpinLock(&CONTAINING_RECORD(csq, queue, csq)->lock, irql);
}

static VOID csq_release(PIO_CSQ csq, KIRQL irql)
{
    KeReleaseSpinLock(&CONTAINING_RECORD(csq, queue, csq)->lock, irql);
}

static VOID csq_cancelled(PIO_CSQ csq, PIRP irp)
{
    (void)csq;
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    cancels += 1;
    complete(irp, STATUS_CANCELLED, 0);
}

static NTSTATUS enqueue(PDEVICE_OBJECT target, PIRP irp)
{
    PIO_CSQ_IRP_CONTEXT context = next_context >= 0 ? &contexts[next_context++] : NULL;
    (void)target;
    if (cancel_before)
        IoCancelIrp(irp);
    if (q.csq.Type == IO_TYPE_CSQ) {
        IoCsqInsertIrp(&q.csq, irp, context);
        return STATUS_PENDING;
    }
    NTSTATUS status = IoCsqInsertIrpEx(&q.csq, irp, context, &insert_status);
    return NT_SUCCESS(status) ? STATUS_PENDING : complete(irp, status, 0);
}

static void make_queue(int ex)
{
    cancels = 0;
    cancel_before = FALSE;
    next_context = -1;
    insert_status = STATUS_SUCCESS;
    on_request = enqueue;
    InitializeListHead(&q.list);
    KeInitializeSpinLock(&q.lock);
    if (ex)
        assert_int_equal(IoCsqInitializeEx(&q.csq, csq_insert_ex, csq_remove, csq_peek, csq_acquire, csq_release,
                                           csq_cancelled), STATUS_SUCCESS);
    else
        assert_int_equal(IoCsqInitialize(&q.csq, csq_insert, csq_remove, csq_peek, csq_acquire, csq_release,
                                         csq_cancelled), STATUS_SUCCESS);
}

static void test_csq_order(void **state)
{
    PIO_TEST_REQUEST requests[3];
    (void)state;
    for (int ex = 0; ex < 2; ex++) {
        make_queue(ex);
        for (int i = 0; i < 3; i++)
            requests[i] = IoTestSend(file, IRP_MJ_READ);
        assert_true(IoTestCancel(requests[1]));
        assert_int_equal(cancels, 1);
        for (int i = 0; i < 3; i += 2) {
            PIRP irp = IoCsqRemoveNextIrp(&q.csq, NULL);
            assert_ptr_equal(irp, IoTestIrp(requests[i]));
            assert_null(irp->CancelRoutine);
            assert_false(IoTestCancel(requests[i])); /* no longer in the queue */
            complete(irp, STATUS_SUCCESS, 0);
        }
        assert_null(IoCsqRemoveNextIrp(&q.csq, NULL));
        for (int i = 0; i < 3; i++)
            assert_int_equal(IoTestFinish(requests[i], NULL), i == 1 ? STATUS_CANCELLED : STATUS_SUCCESS);
    }
}

static void test_csq_peek_context(void **state)
{
    (void)state;
    make_queue(0);
    assert_int_equal(IoTestOpen(device, &second_file), STATUS_SUCCESS);
    PIO_TEST_REQUEST first = IoTestSend(file, IRP_MJ_READ);
    PIO_TEST_REQUEST second = IoTestSend(second_file, IRP_MJ_READ);
    PIRP irp = IoCsqRemoveNextIrp(&q.csq, second_file);
    assert_ptr_equal(irp, IoTestIrp(second));
    assert_null(IoCsqRemoveNextIrp(&q.csq, second_file));
    complete(irp, STATUS_SUCCESS, 0);
    complete(IoCsqRemoveNextIrp(&q.csq, file), STATUS_SUCCESS, 0);
    IoTestFinish(first, NULL);
    IoTestFinish(second, NULL);
    IoTestClose(second_file);
}

static void test_csq_context(void **state)
{
    PIO_TEST_REQUEST requests[3];
    (void)state;
    make_queue(0);
    next_context = 0;
    for (int i = 0; i < 3; i++)
        requests[i] = IoTestSend(file, IRP_MJ_READ);
    PIRP irp = IoCsqRemoveIrp(&q.csq, &contexts[1]);
    assert_ptr_equal(irp, IoTestIrp(requests[1]));
    assert_null(IoCsqRemoveIrp(&q.csq, &contexts[1]));
    complete(irp, STATUS_SUCCESS, 0);
    assert_true(IoTestCancel(requests[2]));
    assert_null(IoCsqRemoveIrp(&q.csq, &contexts[2]));
    complete(IoCsqRemoveNextIrp(&q.csq, NULL), STATUS_SUCCESS, 0);
    assert_null(IoCsqRemoveIrp(&q.csq, &contexts[0]));
    for (int i = 0; i < 3; i++)
        IoTestFinish(requests[i], NULL);
}

static void test_csq_cancelled_before(void **state)
{
    (void)state;
    make_queue(0);
    cancel_before = TRUE;
    assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_READ), NULL), STATUS_CANCELLED);
    assert_int_equal(cancels, 1);
    assert_true(IsListEmpty(&q.list));
}

static void test_csq_refused(void **state)
{
    (void)state;
    make_queue(1);
    next_context = 0;
    insert_status = STATUS_DEVICE_BUSY;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_READ);
    assert_false(IoTestWasPended(request));
    assert_null(contexts[0].Irp);
    assert_int_equal(IoTestFinish(request, NULL), STATUS_DEVICE_BUSY);
}

/* StartIo. */

static ULONG started, nested, most_nested;
static PULONG start_key;
static ULONG key_of_next;
static BOOLEAN complete_in_startio;

static VOID cancel_started(PDEVICE_OBJECT target, PIRP irp)
{
    KIRQL irql = irp->CancelIrql;
    cancels += 1;
    if (irp == target->CurrentIrp) {
        IoReleaseCancelSpinLock(irql);
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
        IoStartNextPacket(target, TRUE);
        KeLowerIrql(irql);
    } else {
        assert_true(KeRemoveEntryDeviceQueue(&target->DeviceQueue, &irp->Tail.Overlay.DeviceQueueEntry));
        IoReleaseCancelSpinLock(irql);
    }
    complete(irp, STATUS_CANCELLED, 0);
}

static VOID start_io(PDEVICE_OBJECT target, PIRP irp)
{
    nested += 1;
    most_nested = nested > most_nested ? nested : most_nested;
    started += 1;
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_ptr_equal(target->CurrentIrp, irp);
    if (complete_in_startio) {
        IoSetCancelRoutine(irp, NULL);
        complete(irp, STATUS_SUCCESS, started);
        IoStartNextPacket(target, TRUE);
    }
    nested -= 1;
}

static NTSTATUS start(PDEVICE_OBJECT target, PIRP irp)
{
    IoMarkIrpPending(irp);
    key_of_next = IoGetCurrentIrpStackLocation(irp)->Parameters.Read.ByteOffset.LowPart;
    IoStartPacket(target, irp, start_key, cancel_started);
    return STATUS_PENDING;
}

static void prepare_startio(void)
{
    on_request = start;
    driver->DriverStartIo = start_io;
    cancels = started = nested = most_nested = 0;
    complete_in_startio = FALSE;
    start_key = NULL;
}

/* The device has finished its packet. */
static void finish_current(ULONG *key)
{
    KIRQL old;
    PIRP irp = device->CurrentIrp;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_non_null(IoSetCancelRoutine(irp, NULL));
    complete(irp, STATUS_SUCCESS, 0);
    if (key != NULL)
        IoStartNextPacketByKey(device, TRUE, *key);
    else
        IoStartNextPacket(device, TRUE);
    KeLowerIrql(old);
}

static void test_startio(void **state)
{
    PIO_TEST_REQUEST requests[4];
    (void)state;
    prepare_startio();
    for (int i = 0; i < 4; i++)
        requests[i] = IoTestSend(file, IRP_MJ_READ);
    assert_int_equal(started, 1);
    assert_ptr_equal(device->CurrentIrp, IoTestIrp(requests[0]));
    assert_true(IoTestCancel(requests[2])); /* from the queue */
    assert_true(IoTestCancel(requests[0])); /* the current one: the next is started */
    assert_int_equal(cancels, 2);
    assert_int_equal(started, 2);
    assert_ptr_equal(device->CurrentIrp, IoTestIrp(requests[1]));
    finish_current(NULL);
    assert_ptr_equal(device->CurrentIrp, IoTestIrp(requests[3]));
    finish_current(NULL);
    assert_null(device->CurrentIrp);
    assert_false(device->DeviceQueue.Busy);
    for (int i = 0; i < 4; i++)
        assert_int_equal(IoTestFinish(requests[i], NULL), i % 2 ? STATUS_SUCCESS : STATUS_CANCELLED);
}

static void test_startio_by_key(void **state)
{
    static const LONGLONG keys[] = {50, 30, 10, 20};
    static const int order[] = {0, 3, 1, 2};
    PIO_TEST_REQUEST requests[4];
    ULONG key = 15;
    UCHAR byte;
    (void)state;
    prepare_startio();
    start_key = &key_of_next;
    for (int i = 0; i < 4; i++)
        requests[i] = IoTestRead(file, &byte, 1, keys[i]);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(device->CurrentIrp, IoTestIrp(requests[order[i]]));
        finish_current(&key);
        key = 25;
    }
    for (int i = 0; i < 4; i++)
        IoTestFinish(requests[i], NULL);
}

/* StartIo completes and starts the next: a recursion, unless it is deferred. */
static void test_startio_deferred(void **state)
{
    PIO_TEST_REQUEST requests[4];
    (void)state;
    for (int deferred = 0; deferred < 2; deferred++) {
        prepare_startio();
        IoSetStartIoAttributes(device, (BOOLEAN)deferred, FALSE);
        for (int i = 0; i < 4; i++)
            requests[i] = IoTestSend(file, IRP_MJ_READ);
        complete_in_startio = TRUE;
        finish_current(NULL);
        assert_int_equal(started, 4);
        assert_int_equal(most_nested, deferred ? 1 : 3);
        for (int i = 0; i < 4; i++)
            assert_int_equal(IoTestFinish(requests[i], NULL), STATUS_SUCCESS);
    }
    /* the cancel routine was removed before StartIo gets the packet */
    prepare_startio();
    IoSetStartIoAttributes(device, FALSE, TRUE);
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_READ);
    assert_null(device->CurrentIrp->CancelRoutine);
    assert_false(IoTestCancel(request));
    complete_in_startio = TRUE;
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    start_io(device, device->CurrentIrp);
    KeLowerIrql(old);
    IoTestFinish(request, NULL);
    IoSetStartIoAttributes(device, FALSE, FALSE);
}

/* Requests of a thread that ends. */

static KEVENT sent;
static IO_STATUS_BLOCK delivered;

static void send_and_end(PVOID argument)
{
    PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, NULL, &delivered);
    (void)argument;
    assert_int_equal(IoCallDriver(device, irp), STATUS_PENDING);
    KeSetEvent(&sent, IO_NO_INCREMENT, FALSE);
}

static NTSTATUS send_and_wait(PVOID argument)
{
    KEVENT never;
    send_and_end(argument);
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    KeWaitForSingleObject(&never, UserRequest, UserMode, TRUE, NULL);
    return STATUS_SUCCESS;
}

static void test_thread_ends(void **state)
{
    HANDLE thread;
    (void)state;
    on_request = keep;
    cancels = 0;
    cancel_before = FALSE;
    delivered.Information = 99;
    KeInitializeEvent(&sent, NotificationEvent, FALSE);
    assert_int_equal(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, send_and_end, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(ZwWaitForSingleObject(thread, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(cancels, 1);
    assert_int_equal(delivered.Status, STATUS_CANCELLED); /* before the thread ended */
    ZwClose(thread);
}

static void test_thread_is_terminated(void **state)
{
    HANDLE thread;
    (void)state;
    on_request = keep;
    cancels = 0;
    delivered.Information = 99;
    KeInitializeEvent(&sent, NotificationEvent, FALSE);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), (PVOID)send_and_wait, NULL, 0, 0,
                                      0, 0, NULL), STATUS_SUCCESS);
    KeWaitForSingleObject(&sent, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(NtTerminateThread(thread, STATUS_CANCELLED), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(cancels, 1);
    assert_int_equal(delivered.Information, 99); /* its frame no longer exists: nothing is written */
    ZwClose(thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_cancel),           WATCHED(test_completed_first),      WATCHED(test_cancelled_before),
        WATCHED(test_cancel_at_dispatch_level), WATCHED(test_cancel_lock),  WATCHED(test_csq_order),
        WATCHED(test_csq_peek_context), WATCHED(test_csq_context),          WATCHED(test_csq_cancelled_before),
        WATCHED(test_csq_refused),      WATCHED(test_startio),              WATCHED(test_startio_by_key),
        WATCHED(test_startio_deferred), WATCHED(test_thread_ends),          WATCHED(test_thread_is_terminated),
    };
    return cmocka_run_group_tests_name("io/cancel", tests, NULL, NULL);
}
