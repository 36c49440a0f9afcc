/* Packets: allocating and building them, down and up a stack of drivers, delivery to a thread, buffers and MDLs. */
#include "iotest.h"

#define IOCTL_BUFFERED CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_ANY_ACCESS)
#define IOCTL_IN CTL_CODE(FILE_DEVICE_UNKNOWN, 0x801, METHOD_IN_DIRECT, FILE_ANY_ACCESS)
#define IOCTL_OUT CTL_CODE(FILE_DEVICE_UNKNOWN, 0x802, METHOD_OUT_DIRECT, FILE_ANY_ACCESS)
#define IOCTL_NEITHER CTL_CODE(FILE_DEVICE_UNKNOWN, 0x803, METHOD_NEITHER, FILE_ANY_ACCESS)

/* Packets. */

static void test_allocate(void **state)
{
    PIRP irp = IoAllocateIrp(3, FALSE);
    (void)state;
    assert_int_equal(irp->Type, IO_TYPE_IRP);
    assert_int_equal(irp->Size, IoSizeOfIrp(3));
    assert_int_equal(irp->StackCount, 3);
    assert_int_equal(irp->CurrentLocation, 4);
    assert_ptr_equal(IoGetNextIrpStackLocation(irp), (PIO_STACK_LOCATION)(irp + 1) + 2);
    irp->IoStatus.Status = STATUS_SUCCESS;
    irp->Cancel = TRUE;
    IoReuseIrp(irp, STATUS_CANCELLED);
    assert_false(irp->Cancel);
    assert_int_equal(irp->IoStatus.Status, STATUS_CANCELLED);
    assert_int_equal(irp->CurrentLocation, 4);
    IoFreeIrp(irp);
    assert_null(IoAllocateIrp(127, FALSE));
    irp = IoAllocateIrpEx(device, 1, FALSE);
    assert_int_equal(irp->StackCount, 1);
    IoFreeIrp(irp);
}

static void test_own_memory(void **state)
{
    union {
        IRP irp;
        UCHAR memory[sizeof(IRP) + 2 * sizeof(IO_STACK_LOCATION)];
    } place;
    (void)state;
    memset(&place, 0xee, sizeof(place));
    IoInitializeIrp(&place.irp, IoSizeOfIrp(2), 2);
    assert_int_equal(place.irp.CurrentLocation, 3);
    IoSetNextIrpStackLocation(&place.irp);
    assert_ptr_equal(IoGetCurrentIrpStackLocation(&place.irp), (PIO_STACK_LOCATION)(&place.irp + 1) + 1);
    IoGetCurrentIrpStackLocation(&place.irp)->Parameters.Others.Argument3 = &place;
    IoGetCurrentIrpStackLocation(&place.irp)->Context = &place;
    IoMarkIrpPending(&place.irp);
    IoCopyCurrentIrpStackLocationToNext(&place.irp);
    assert_ptr_equal(IoGetNextIrpStackLocation(&place.irp)->Parameters.Others.Argument3, &place);
    assert_null(IoGetNextIrpStackLocation(&place.irp)->Context); /* the completion routine is not copied */
    assert_int_equal(IoGetNextIrpStackLocation(&place.irp)->Control, 0);
    IoSkipCurrentIrpStackLocation(&place.irp);
    assert_int_equal(place.irp.CurrentLocation, 3);
}

static void test_top_level(void **state)
{
    (void)state;
    assert_null(IoGetTopLevelIrp());
    IoSetTopLevelIrp((PIRP)0x1000);
    assert_ptr_equal(IoGetTopLevelIrp(), (PIRP)0x1000);
    IoSetTopLevelIrp(NULL);
}

/* A stack: filter on top of device. What the completion routine of the filter sees and returns is a row of a table. */

static PDEVICE_OBJECT filter;
static NTSTATUS lower_status;
static BOOLEAN lower_pends, on_success, on_error, on_cancel, cancel_it;
static ULONG invoked;
static BOOLEAN saw_pending;
static KDPC lower_dpc;

static VOID complete_later(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)second;
    complete(first, lower_status, 7);
}

static NTSTATUS filter_done(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    assert_ptr_equal(target, filter);
    assert_ptr_equal(context, &invoked);
    invoked += 1;
    saw_pending = irp->PendingReturned;
    if (irp->PendingReturned)
        IoMarkIrpPending(irp);
    return STATUS_CONTINUE_COMPLETION;
}

static NTSTATUS filtered(PDEVICE_OBJECT target, PIRP irp)
{
    if (target == filter) {
        IoCopyCurrentIrpStackLocationToNext(irp);
        IoSetCompletionRoutine(irp, filter_done, &invoked, on_success, on_error, on_cancel);
        return IoCallDriver(device, irp);
    }
    irp->Cancel = cancel_it;
    if (!lower_pends)
        return complete(irp, lower_status, 7);
    IoMarkIrpPending(irp);
    KeInsertQueueDpc(&lower_dpc, irp, NULL);
    return STATUS_PENDING;
}

static void attach_filter(void)
{
    assert_int_equal(IoCreateDevice(driver, 0, NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &filter), STATUS_SUCCESS);
    assert_ptr_equal(IoAttachDeviceToDeviceStack(filter, device), device);
    filter->Flags |= device->Flags & (DO_BUFFERED_IO | DO_DIRECT_IO);
}

static void detach_filter(void)
{
    IoDetachDevice(device);
    IoDeleteDevice(filter);
}

static void test_completion_routine(void **state)
{
    static const struct row {
        NTSTATUS status;
        BOOLEAN pends, cancelled, success, error, cancel;
        ULONG invoked;
    } rows[] = {
        {STATUS_SUCCESS, FALSE, FALSE, TRUE, FALSE, FALSE, 1},      {STATUS_SUCCESS, FALSE, FALSE, FALSE, TRUE, TRUE, 0},
        {STATUS_UNSUCCESSFUL, FALSE, FALSE, TRUE, FALSE, TRUE, 0},  {STATUS_UNSUCCESSFUL, TRUE, FALSE, FALSE, TRUE, FALSE, 1},
        {STATUS_CANCELLED, TRUE, TRUE, FALSE, FALSE, TRUE, 1},      {STATUS_SUCCESS, TRUE, FALSE, FALSE, FALSE, FALSE, 0},
        {STATUS_SUCCESS, TRUE, FALSE, TRUE, TRUE, TRUE, 1},         {STATUS_SUCCESS, TRUE, TRUE, FALSE, FALSE, TRUE, 1},
    };
    (void)state;
    on_request = filtered;
    KeInitializeDpc(&lower_dpc, complete_later, NULL);
    attach_filter();
    for (unsigned i = 0; i < ARRAYSIZE(rows); i++) {
        IO_STATUS_BLOCK result;
        lower_status = rows[i].status;
        lower_pends = rows[i].pends;
        cancel_it = rows[i].cancelled;
        on_success = rows[i].success;
        on_error = rows[i].error;
        on_cancel = rows[i].cancel;
        invoked = 0;
        PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_FLUSH_BUFFERS);
        assert_int_equal(IoTestWasPended(request), rows[i].pends);
        assert_int_equal(IoTestFinish(request, &result), rows[i].status);
        assert_int_equal(result.Information, 7);
        assert_int_equal(invoked, rows[i].invoked);
        if (invoked)
            assert_int_equal(saw_pending, rows[i].pends);
    }
    detach_filter();
}

/* Skip, forward and wait, and a routine whose device must stay. */

static NTSTATUS skipping(PDEVICE_OBJECT target, PIRP irp)
{
    if (target != filter)
        return filtered(target, irp);
    IoSkipCurrentIrpStackLocation(irp);
    return IoCallDriver(device, irp);
}

static NTSTATUS forwarding(PDEVICE_OBJECT target, PIRP irp)
{
    if (target != filter)
        return filtered(target, irp);
    assert_true(IoForwardIrpSynchronously(device, irp));
    assert_int_equal(irp->IoStatus.Information, 7);
    return complete(irp, irp->IoStatus.Status, 8);
}

static NTSTATUS holding(PDEVICE_OBJECT target, PIRP irp)
{
    if (target != filter)
        return filtered(target, irp);
    IoCopyCurrentIrpStackLocationToNext(irp);
    assert_int_equal(IoSetCompletionRoutineEx(filter, irp, filter_done, &invoked, on_success, FALSE, FALSE),
                     STATUS_SUCCESS);
    return IoCallDriver(device, irp);
}

static void test_ways_down(void **state)
{
    static const struct row {
        PDRIVER_DISPATCH way;
        ULONG_PTR information;
        BOOLEAN on_success;
        ULONG invoked;
    } rows[] = {{skipping, 7, FALSE, 0}, {forwarding, 8, FALSE, 0}, {holding, 7, TRUE, 1}, {holding, 7, FALSE, 0}};
    (void)state;
    cancel_it = FALSE;
    lower_status = STATUS_SUCCESS;
    KeInitializeDpc(&lower_dpc, complete_later, NULL);
    attach_filter();
    for (unsigned i = 0; i < 2 * ARRAYSIZE(rows); i++) {
        const struct row *row = &rows[i / 2];
        IO_STATUS_BLOCK result;
        on_request = row->way;
        on_success = row->on_success;
        lower_pends = i & 1;
        invoked = 0;
        assert_int_equal(IoTestFinish(IoTestSend(file, IRP_MJ_FLUSH_BUFFERS), &result), STATUS_SUCCESS);
        assert_int_equal(result.Information, row->information);
        assert_int_equal(invoked, row->invoked);
    }
    detach_filter();
}

/* A driver's own packet returns by STATUS_MORE_PROCESSING_REQUIRED, and may be sent again. */
static KEVENT came_back;

static NTSTATUS keep(PDEVICE_OBJECT target, PIRP irp, PVOID context)
{
    (void)context;
    assert_null(target); /* the creator has no location */
    assert_int_equal(irp->CurrentLocation, irp->StackCount + 1);
    KeSetEvent(&came_back, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static void test_own_packet(void **state)
{
    PIRP irp = IoAllocateIrp(device->StackSize, FALSE);
    (void)state;
    KeInitializeEvent(&came_back, SynchronizationEvent, FALSE);
    KeInitializeDpc(&lower_dpc, complete_later, NULL);
    on_request = filtered;
    filter = NULL;
    cancel_it = FALSE;
    lower_pends = TRUE;
    lower_status = STATUS_SUCCESS;
    for (int i = 0; i < 2; i++) {
        IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_FLUSH_BUFFERS;
        IoSetCompletionRoutine(irp, keep, NULL, TRUE, TRUE, TRUE);
        assert_int_equal(IoCallDriver(device, irp), STATUS_PENDING);
        KeWaitForSingleObject(&came_back, Executive, KernelMode, FALSE, NULL);
        assert_int_equal(irp->IoStatus.Information, 7);
        IoReuseIrp(irp, STATUS_SUCCESS);
    }
    IoFreeIrp(irp);
}

/* Associated packets: the last one completes the master. */
static PIRP associated[3];

static NTSTATUS split(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    IoMarkIrpPending(irp);
    irp->AssociatedIrp.IrpCount = 3;
    for (int i = 0; i < 3; i++) {
        associated[i] = IoMakeAssociatedIrp(irp, 1);
        assert_true(associated[i]->Flags & IRP_ASSOCIATED_IRP);
        IoSetNextIrpStackLocation(associated[i]);
    }
    irp->IoStatus.Status = STATUS_SUCCESS;
    irp->IoStatus.Information = 33;
    return STATUS_PENDING;
}

static void test_associated(void **state)
{
    IO_STATUS_BLOCK result;
    (void)state;
    on_request = split;
    PIO_TEST_REQUEST request = IoTestSend(file, IRP_MJ_FLUSH_BUFFERS);
    for (int i = 0; i < 3; i++) {
        assert_false(IoTestIsDone(request));
        complete(associated[i], STATUS_SUCCESS, 0);
    }
    assert_true(IoTestIsDone(request));
    assert_int_equal(IoTestFinish(request, &result), STATUS_SUCCESS);
    assert_int_equal(result.Information, 33);
}

/* Delivery to a thread. */

static NTSTATUS fail_at_once(PDEVICE_OBJECT target, PIRP irp)
{
    (void)target;
    assert_true(IoIsOperationSynchronous(irp));
    assert_ptr_equal(irp->Tail.Overlay.Thread, PsGetCurrentThread());
    assert_ptr_equal(IoGetRequestorProcess(irp), PsGetCurrentProcess());
    return complete(irp, STATUS_UNSUCCESSFUL, 0);
}

static void test_synchronous_request(void **state)
{
    IO_STATUS_BLOCK result = {.Information = 99};
    KEVENT done;
    (void)state;
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    KeInitializeDpc(&lower_dpc, complete_later, NULL);
    on_request = filtered;
    filter = NULL;
    cancel_it = FALSE;
    lower_status = STATUS_SUCCESS;
    for (int pends = 0; pends < 2; pends++) {
        lower_pends = pends;
        PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, &done, &result);
        NTSTATUS status = IoCallDriver(device, irp);
        assert_int_equal(status, pends ? STATUS_PENDING : STATUS_SUCCESS);
        KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_int_equal(result.Information, 7);
        KeClearEvent(&done);
        result.Information = 99;
    }
    /* one that fails before it is pended is not delivered */
    on_request = fail_at_once;
    assert_int_equal(IoCallDriver(device, IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, &done,
                                                                      &result)), STATUS_UNSUCCESSFUL);
    assert_int_equal(KeReadStateEvent(&done), 0);
    assert_int_equal(result.Information, 99);
}

/* At APC_LEVEL the delivery waits until the thread allows it. */
static void test_delivery_is_an_apc(void **state)
{
    IO_STATUS_BLOCK result = {.Information = 99};
    KEVENT done;
    KIRQL old;
    (void)state;
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    on_request = filtered;
    filter = NULL;
    cancel_it = lower_pends = FALSE;
    lower_status = STATUS_SUCCESS;
    PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, &done, &result);
    KeRaiseIrql(APC_LEVEL, &old);
    assert_int_equal(IoCallDriver(device, irp), STATUS_SUCCESS);
    assert_int_equal(KeReadStateEvent(&done), 0);
    assert_int_equal(result.Information, 99);
    KeLowerIrql(old);
    assert_int_equal(KeReadStateEvent(&done), 1);
    assert_int_equal(result.Information, 7);
}

static LONG apc_calls;

static VOID user_apc(PVOID context, PIO_STATUS_BLOCK block, ULONG reserved)
{
    assert_ptr_equal(context, &apc_calls);
    assert_int_equal(block->Information, 7);
    assert_int_equal(reserved, 0);
    apc_calls += 1;
}

static void test_user_apc(void **state)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    IO_STATUS_BLOCK result;
    (void)state;
    on_request = filtered;
    filter = NULL;
    cancel_it = lower_pends = FALSE;
    lower_status = STATUS_SUCCESS;
    PIRP irp = IoBuildSynchronousFsdRequest(IRP_MJ_FLUSH_BUFFERS, device, NULL, 0, NULL, NULL, &result);
    irp->RequestorMode = UserMode;
    irp->Overlay.AsynchronousParameters.UserApcRoutine = user_apc;
    irp->Overlay.AsynchronousParameters.UserApcContext = &apc_calls;
    apc_calls = 0;
    assert_int_equal(IoCallDriver(device, irp), STATUS_SUCCESS);
    assert_int_equal(apc_calls, 0);
    assert_int_equal(KeDelayExecutionThread(UserMode, TRUE, &now), STATUS_USER_APC);
    assert_int_equal(apc_calls, 1);
}

/* Buffers. */

static const char *expected_way;

static NTSTATUS transfer(PDEVICE_OBJECT target, PIRP irp)
{
    PIO_STACK_LOCATION location = IoGetCurrentIrpStackLocation(irp);
    BOOLEAN read = location->MajorFunction == IRP_MJ_READ;
    ULONG length = location->Parameters.Read.Length;
    PVOID buffer = irp->UserBuffer;
    assert_int_equal(irp->RequestorMode, UserMode);
    assert_ptr_equal(location->FileObject, file);
    assert_int_equal(location->Parameters.Read.ByteOffset.QuadPart, 0x100000000);
    if (target->Flags & DO_BUFFERED_IO) {
        buffer = irp->AssociatedIrp.SystemBuffer;
        assert_ptr_not_equal(buffer, irp->UserBuffer);
        assert_null(irp->MdlAddress);
    } else if (target->Flags & DO_DIRECT_IO) {
        buffer = MmGetSystemAddressForMdlSafe(irp->MdlAddress, NormalPagePriority);
        assert_int_equal(MmGetMdlByteCount(irp->MdlAddress), length);
        assert_ptr_equal(MmGetMdlVirtualAddress(irp->MdlAddress), irp->UserBuffer);
        assert_int_equal((irp->MdlAddress->MdlFlags & MDL_WRITE_OPERATION) != 0, read);
        assert_null(irp->AssociatedIrp.SystemBuffer);
    }
    if (!read) {
        assert_memory_equal(buffer, expected_way, length);
        return complete(irp, STATUS_SUCCESS, length);
    }
    memset(buffer, 'x', length);
    return complete(irp, STATUS_SUCCESS, length / 2); /* half of it */
}

static void test_transfers(void **state)
{
    static const ULONG ways[] = {DO_BUFFERED_IO, DO_DIRECT_IO, 0};
    (void)state;
    on_request = transfer;
    for (unsigned i = 0; i < ARRAYSIZE(ways); i++) {
        char text[16] = "0123456789abcde";
        IO_STATUS_BLOCK result;
        device->Flags = (device->Flags & ~(ULONG)(DO_BUFFERED_IO | DO_DIRECT_IO)) | ways[i];
        expected_way = text;
        assert_int_equal(IoTestFinish(IoTestWrite(file, text, 16, 0x100000000), &result), STATUS_SUCCESS);
        assert_int_equal(result.Information, 16);
        assert_int_equal(IoTestFinish(IoTestRead(file, text, 8, 0x100000000), &result), STATUS_SUCCESS);
        assert_int_equal(result.Information, 4);
        assert_memory_equal(text, ways[i] == DO_BUFFERED_IO ? "xxxx4567" : "xxxxxxxx", 8);
        assert_memory_equal(text + 8, "89abcde", 8);
    }
    device->Flags &= ~(ULONG)(DO_BUFFERED_IO | DO_DIRECT_IO);
}

static NTSTATUS control(PDEVICE_OBJECT target, PIRP irp)
{
    PIO_STACK_LOCATION location = IoGetCurrentIrpStackLocation(irp);
    ULONG code = location->Parameters.DeviceIoControl.IoControlCode;
    ULONG in = location->Parameters.DeviceIoControl.InputBufferLength;
    ULONG out = location->Parameters.DeviceIoControl.OutputBufferLength;
    PUCHAR input = irp->AssociatedIrp.SystemBuffer, output = input;
    (void)target;
    assert_int_equal(DEVICE_TYPE_FROM_CTL_CODE(code), FILE_DEVICE_UNKNOWN);
    if (METHOD_FROM_CTL_CODE(code) == METHOD_NEITHER) {
        input = location->Parameters.DeviceIoControl.Type3InputBuffer;
        output = irp->UserBuffer;
    } else if (METHOD_FROM_CTL_CODE(code) != METHOD_BUFFERED) {
        assert_int_equal((irp->MdlAddress->MdlFlags & MDL_WRITE_OPERATION) != 0, code == IOCTL_OUT);
        output = MmGetSystemAddressForMdlSafe(irp->MdlAddress, HighPagePriority);
    }
    UCHAR sum = 0;
    for (ULONG i = 0; i < in; i++)
        sum = (UCHAR)(sum + input[i]);
    memset(output, sum, out);
    return complete(irp, STATUS_SUCCESS, out);
}

static void test_controls(void **state)
{
    static const ULONG codes[] = {IOCTL_BUFFERED, IOCTL_IN, IOCTL_OUT, IOCTL_NEITHER};
    (void)state;
    on_request = control;
    for (unsigned i = 0; i < ARRAYSIZE(codes); i++) {
        UCHAR input[] = {1, 2, 3}, output[6] = {0};
        IO_STATUS_BLOCK result;
        KEVENT done;
        assert_int_equal(IoTestFinish(IoTestControl(file, codes[i], input, 3, output, 5), &result), STATUS_SUCCESS);
        assert_int_equal(result.Information, 5);
        for (int j = 0; j < 5; j++)
            assert_int_equal(output[j], 6);
        assert_int_equal(output[5], 0);
        KeInitializeEvent(&done, NotificationEvent, FALSE);
        PIRP irp = IoBuildDeviceIoControlRequest(codes[i], device, input, 2, output, 4, FALSE, &done, &result);
        assert_int_equal(IoCallDriver(device, irp), STATUS_SUCCESS);
        assert_int_equal(output[3], 3);
        assert_int_equal(output[4], 6);
    }
}

/* MDLs. */

static void test_mdls(void **state)
{
    static UCHAR pages[4 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    PVOID start = pages + 100;
    PMDL mdl = IoAllocateMdl(start, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    (void)state;
    assert_int_equal(ADDRESS_AND_SIZE_TO_SPAN_PAGES(start, 2 * PAGE_SIZE), 3);
    assert_int_equal(ADDRESS_AND_SIZE_TO_SPAN_PAGES(pages, 2 * PAGE_SIZE), 2);
    assert_int_equal(BYTES_TO_PAGES(PAGE_SIZE + 1), 2);
    assert_int_equal(ROUND_TO_PAGES(1), PAGE_SIZE);
    assert_int_equal(MmSizeOfMdl(start, 2 * PAGE_SIZE), sizeof(MDL) + 3 * sizeof(PFN_NUMBER));
    assert_ptr_equal(MmGetMdlVirtualAddress(mdl), start);
    assert_int_equal(MmGetMdlByteOffset(mdl), 100);
    MmProbeAndLockPages(mdl, KernelMode, IoModifyAccess);
    assert_true(mdl->MdlFlags & MDL_PAGES_LOCKED);
    assert_int_equal(MmGetMdlPfnArray(mdl)[2] - MmGetMdlPfnArray(mdl)[0], 2);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), start);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), start); /* already mapped */
    PMDL part = IoAllocateMdl(pages + PAGE_SIZE, PAGE_SIZE, FALSE, FALSE, NULL);
    IoBuildPartialMdl(mdl, part, pages + PAGE_SIZE, 10);
    assert_int_equal(MmGetMdlByteCount(part), 10);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(part, NormalPagePriority), pages + PAGE_SIZE);
    IoFreeMdl(part);
    MmUnlockPages(mdl);
    assert_false(mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA));
    IoFreeMdl(mdl);
}

static void test_pool_mdl(void **state)
{
    PVOID pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, 200, 0x74736554);
    PIRP irp = IoAllocateIrp(1, FALSE);
    PMDL first = IoAllocateMdl(pool, 100, FALSE, FALSE, irp);
    PMDL second = IoAllocateMdl((PUCHAR)pool + 100, 100, TRUE, FALSE, irp);
    (void)state;
    assert_ptr_equal(irp->MdlAddress, first);
    assert_ptr_equal(first->Next, second);
    MmBuildMdlForNonPagedPool(first);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(first, LowPagePriority), pool);
    IoFreeMdl(first);
    IoFreeMdl(second);
    IoFreeIrp(irp);
    ExFreePoolWithTag(pool, 0x74736554);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_allocate),           WATCHED(test_own_memory),          WATCHED(test_top_level),
        WATCHED(test_completion_routine), WATCHED(test_ways_down),           WATCHED(test_own_packet),
        WATCHED(test_associated),         WATCHED(test_synchronous_request), WATCHED(test_delivery_is_an_apc),
        WATCHED(test_user_apc),           WATCHED(test_transfers),           WATCHED(test_controls),
        WATCHED(test_mdls),               WATCHED(test_pool_mdl),
    };
    return cmocka_run_group_tests_name("io/irp", tests, NULL, NULL);
}
