/* Completion ports: packets, threads, the limit, the end of a port. */
#include "handles.h"

#include <sys/wait.h>
#include <unistd.h>

#define HEAP_COUNTS_BLOCKS
#include "heap.h"
#include "nt/ntp.h"

#include <interlock/io.h>

static HANDLE make_port(ULONG count)
{
    HANDLE port;
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, count), STATUS_SUCCESS);
    return port;
}

static void close_port(HANDLE port)
{
    close_handle(port);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
}

static PKQUEUE queue_of(HANDLE port)
{
    return &((PNTP_PORT)object_of(port))->Queue;
}

static PVOID value(ULONG_PTR number)
{
    return (PVOID)number;
}

static void post(HANDLE port, ULONG_PTR number)
{
    check(NtSetIoCompletion(port, value(number), value(number + 1), (NTSTATUS)number + 2, number + 3) ==
          STATUS_SUCCESS);
}

static BOOLEAN is_posted(const FILE_IO_COMPLETION_INFORMATION *information, ULONG_PTR number)
{
    return information->KeyContext == value(number) && information->ApcContext == value(number + 1) &&
           information->IoStatusBlock.Status == (NTSTATUS)number + 2 &&
           information->IoStatusBlock.Information == number + 3;
}

static NTSTATUS take(HANDLE port, PFILE_IO_COMPLETION_INFORMATION information, PLARGE_INTEGER timeout)
{
    return NtRemoveIoCompletion(port, &information->KeyContext, &information->ApcContext, &information->IoStatusBlock,
                                timeout);
}

static void expect_packet(HANDLE port, ULONG_PTR number)
{
    FILE_IO_COMPLETION_INFORMATION information;
    assert_int_equal(take(port, &information, NO_TIME), STATUS_SUCCESS);
    assert_true(is_posted(&information, number));
}

static void expect_nothing(HANDLE port)
{
    FILE_IO_COMPLETION_INFORMATION information;
    assert_int_equal(take(port, &information, NO_TIME), STATUS_TIMEOUT);
}

static LONG depth_of(HANDLE port)
{
    IO_COMPLETION_BASIC_INFORMATION information = {-1};
    ULONG length = 0;
    check(NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), &length) ==
          STATUS_SUCCESS);
    check(length == sizeof(information));
    return information.Depth;
}

static void count_run(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    *(ULONG *)context += 1;
}

static void test_packets_are_first_in_first_out(void **state)
{
    HANDLE port = make_port(0);
    (void)state;
    assert_int_equal(depth_of(port), 0);
    expect_nothing(port);
    for (ULONG i = 0; i < 5; i += 1) {
        post(port, i);
        assert_int_equal(depth_of(port), i + 1);
    }
    for (ULONG i = 0; i < 5; i += 1) {
        expect_packet(port, i);
    }
    expect_nothing(port);
    close_port(port);
}

/* Everything that is posted is returned unchanged, also a failure status. */
static void test_values(void **state)
{
    HANDLE port = make_port(1);
    FILE_IO_COMPLETION_INFORMATION information;
    (void)state;
    memset(&information, 0xdd, sizeof(information));
    assert_int_equal(NtSetIoCompletion(port, value(MAXULONG_PTR), NULL, STATUS_END_OF_FILE, MAXULONG_PTR),
                     STATUS_SUCCESS);
    assert_int_equal(take(port, &information, NULL), STATUS_SUCCESS);
    assert_ptr_equal(information.KeyContext, value(MAXULONG_PTR));
    assert_null(information.ApcContext);
    assert_int_equal(information.IoStatusBlock.Status, STATUS_END_OF_FILE);
    assert_true(information.IoStatusBlock.Pointer == value((ULONG)STATUS_END_OF_FILE));
    assert_true(information.IoStatusBlock.Information == MAXULONG_PTR);
    close_port(port);
}

static void test_nothing_is_written_without_a_packet(void **state)
{
    HANDLE port = make_port(1);
    FILE_IO_COMPLETION_INFORMATION information, before;
    LARGE_INTEGER timeout = relative(MILLISECOND);
    ULONG removed = 7;
    (void)state;
    memset(&information, 0xdd, sizeof(information));
    memcpy(&before, &information, sizeof(before));
    assert_int_equal(take(port, &information, &timeout), STATUS_TIMEOUT);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, &timeout, FALSE), STATUS_TIMEOUT);
    assert_int_equal(removed, 0);
    assert_memory_equal(&information, &before, sizeof(before));
    close_port(port);
}

static void test_handles(void **state)
{
    HANDLE port = make_port(1);
    HANDLE query_only = same_object(port, IO_COMPLETION_QUERY_STATE | SYNCHRONIZE);
    HANDLE modify_only = same_object(port, IO_COMPLETION_MODIFY_STATE);
    HANDLE other = make_event(NotificationEvent, TRUE, NULL);
    HANDLE closed = closed_handle();
    FILE_IO_COMPLETION_INFORMATION information;
    IO_COMPLETION_BASIC_INFORMATION basic;
    ULONG removed;
    struct {
        HANDLE handle;
        NTSTATUS modify, query, wait;
    } cases[] = {
        {closed, STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE},
        {NULL, STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE},
        {other, STATUS_OBJECT_TYPE_MISMATCH, STATUS_OBJECT_TYPE_MISMATCH, STATUS_WAIT_0},
        {query_only, STATUS_ACCESS_DENIED, STATUS_SUCCESS, STATUS_TIMEOUT},
        {modify_only, STATUS_TIMEOUT, STATUS_ACCESS_DENIED, STATUS_ACCESS_DENIED},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        HANDLE handle = cases[i].handle;
        if (handle != modify_only) {
            assert_int_equal(NtSetIoCompletion(handle, NULL, NULL, 0, 0), cases[i].modify);
        }
        assert_int_equal(take(handle, &information, NO_TIME), cases[i].modify);
        assert_int_equal(NtRemoveIoCompletionEx(handle, &information, 1, &removed, NO_TIME, FALSE), cases[i].modify);
        assert_int_equal(NtQueryIoCompletion(handle, IoCompletionBasicInformation, &basic, sizeof(basic), NULL),
                         cases[i].query);
        assert_int_equal(poll_handle(handle), cases[i].wait);
    }
    assert_int_equal(NtSetIoCompletion(modify_only, NULL, NULL, 0, 0), STATUS_SUCCESS);
    close_handle(other);
    close_handle(query_only);
    close_handle(modify_only);
    close_port(port);
}

static void test_parameters(void **state)
{
    HANDLE port = make_port(1);
    FILE_IO_COMPLETION_INFORMATION information;
    IO_COMPLETION_BASIC_INFORMATION basic[2];
    ULONG removed;
    (void)state;
    post(port, 1);
    assert_int_equal(NtCreateIoCompletion(NULL, IO_COMPLETION_ALL_ACCESS, NULL, 0), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletion(port, NULL, &information.ApcContext, &information.IoStatusBlock, NULL),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletion(port, &information.KeyContext, NULL, &information.IoStatusBlock, NULL),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletion(port, &information.KeyContext, &information.ApcContext, NULL, NULL),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletionEx(port, NULL, 1, &removed, NULL, FALSE), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, NULL, NULL, FALSE), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 0, &removed, NULL, FALSE), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtQueryIoCompletion(port, (IO_COMPLETION_INFORMATION_CLASS)1, basic, sizeof(basic[0]), NULL),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryIoCompletion(port, IoCompletionBasicInformation, basic, sizeof(basic), NULL),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryIoCompletion(port, IoCompletionBasicInformation, basic, 0, NULL),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryIoCompletion(port, IoCompletionBasicInformation, NULL, sizeof(basic[0]), NULL),
                     STATUS_ACCESS_VIOLATION);
    expect_packet(port, 1);
    close_port(port);
}

/* As many as there are, as many as requested: also more than a batch. */
static void test_many_at_once(void **state)
{
    static const ULONG queued[] = {1, 3, 63, 64, 65, 200};
    static const ULONG wanted[] = {1, 2, 64, 100, 128, 300};
    FILE_IO_COMPLETION_INFORMATION information[300];
    HANDLE port = make_port(1);
    (void)state;
    for (ULONG q = 0; q < ARRAYSIZE(queued); q += 1) {
        for (ULONG w = 0; w < ARRAYSIZE(wanted); w += 1) {
            ULONG expected = queued[q] < wanted[w] ? queued[q] : wanted[w];
            ULONG removed = 0;
            for (ULONG i = 0; i < queued[q]; i += 1) {
                post(port, i);
            }
            assert_int_equal(NtRemoveIoCompletionEx(port, information, wanted[w], &removed, NULL, FALSE),
                             STATUS_SUCCESS);
            assert_int_equal(removed, expected);
            for (ULONG i = 0; i < removed; i += 1) {
                assert_true(is_posted(&information[i], i));
            }
            for (ULONG i = removed; i < queued[q]; i += 1) {
                expect_packet(port, i);
            }
        }
    }
    close_port(port);
}

static void test_alertable_removal(void **state)
{
    HANDLE port = make_port(1);
    FILE_IO_COMPLETION_INFORMATION information;
    ULONG removed;
    KAPC apc[2];
    (void)state;
    apcs_run = 0;
    post(port, 1);
    queue_user_apc(&apc[0], KeGetCurrentThread(), count_apc, NULL);
    queue_user_apc(&apc[1], KeGetCurrentThread(), count_apc, NULL);
    KeAlertThread(KeGetCurrentThread(), UserMode);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, TRUE), STATUS_ALERTED);
    assert_int_equal(removed, 0);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, FALSE), STATUS_SUCCESS);
    assert_int_equal(apcs_run, 0);
    post(port, 2);
    assert_int_equal(take(port, &information, NULL), STATUS_SUCCESS);
    assert_int_equal(apcs_run, 0);
    /* The thread belongs to the port by now. */
    post(port, 3);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, TRUE), STATUS_SUCCESS);
    assert_true(is_posted(&information, 3));
    assert_int_equal(apcs_run, 0);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, TRUE), STATUS_USER_APC);
    assert_int_equal(apcs_run, 2);
    assert_int_equal(removed, 0);
    close_port(port);
}

static void close_in_apc(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1, (void)argument2;
    close_port(context);
}

static void test_apcs_run_after_the_removal(void **state)
{
    HANDLE port = make_port(1);
    FILE_IO_COMPLETION_INFORMATION information;
    ULONG removed;
    KAPC apc;
    (void)state;
    queue_user_apc(&apc, KeGetCurrentThread(), close_in_apc, port);
    assert_int_equal(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, TRUE), STATUS_USER_APC);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
}

/* Threads that remove packets on request. */
typedef struct remover {
    actor actor;
    HANDLE port;
    NTSTATUS status;
    FILE_IO_COMPLETION_INFORMATION information;
} remover;

static void remove_packet(void *argument)
{
    remover *r = argument;
    r->status = take(r->port, &r->information, NULL);
}

static void start_removers(remover *r, ULONG count, HANDLE port)
{
    for (ULONG i = 0; i < count; i += 1) {
        memset(&r[i], 0, sizeof(r[i]));
        r[i].port = port;
        start_actor(&r[i].actor);
    }
}

static void end_removers(remover *r, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&r[i].actor);
    }
}

static void begin_remove(remover *r)
{
    tell(&r->actor, remove_packet, r);
    await(is_committed(r->actor.thread));
}

static BOOLEAN has_removed(remover *r, ULONG_PTR number)
{
    await(is_idle(&r->actor));
    return r->status == STATUS_SUCCESS && is_posted(&r->information, number);
}

static void test_threads_are_last_in_first_out(void **state)
{
    HANDLE port = make_port(3);
    remover r[3];
    (void)state;
    start_removers(r, 3, port);
    for (ULONG i = 0; i < 3; i += 1) {
        begin_remove(&r[i]);
    }
    for (ULONG i = 0; i < 3; i += 1) {
        post(port, i);
        assert_true(has_removed(&r[2 - i], i));
    }
    end_removers(r, 3);
    close_port(port);
}

static void block_on(void *argument)
{
    check(NtWaitForSingleObject(*(HANDLE *)argument, FALSE, NULL) == STATUS_WAIT_0);
}

/* One at a time: the second thread gets its packet when the first blocks, and then both run. */
static void test_limit(void **state)
{
    HANDLE port = make_port(1);
    HANDLE event = make_event(SynchronizationEvent, FALSE, NULL);
    remover r[3];
    (void)state;
    start_removers(r, 3, port);
    begin_remove(&r[0]);
    begin_remove(&r[1]);
    post(port, 1);
    assert_true(has_removed(&r[1], 1));
    post(port, 2);
    assert_int_equal(depth_of(port), 1);
    assert_true(is_committed(r[0].actor.thread));
    tell(&r[1].actor, block_on, &event);
    assert_true(has_removed(&r[0], 2));
    assert_int_equal(KeSetEvent(&((padded_object *)object_of(event))->event, 0, FALSE), 0);
    await(is_idle(&r[1].actor));
    assert_int_equal(queue_of(port)->CurrentCount, 2);
    /* Two run where one may: no other thread is released before both of them have returned. */
    begin_remove(&r[2]);
    post(port, 3);
    assert_int_equal(depth_of(port), 1);
    tell(&r[1].actor, remove_packet, &r[1]);
    await(is_committed(r[1].actor.thread));
    assert_int_equal(depth_of(port), 1);
    tell(&r[0].actor, remove_packet, &r[0]);
    assert_true(has_removed(&r[0], 3));
    end_removers(&r[0], 1); /* a thread that ends makes room too */
    post(port, 4);
    assert_true(has_removed(&r[1], 4));
    end_removers(&r[1], 1);
    post(port, 5);
    assert_true(has_removed(&r[2], 5));
    end_removers(&r[2], 1);
    close_handle(event);
    close_port(port);
}

/* Every way to block frees the place. */
static void delay_briefly(void *argument)
{
    LARGE_INTEGER hour = relative(3600 * SECOND);
    (void)argument;
    check(NtDelayExecution(TRUE, &hour) == STATUS_ALERTED);
}

static void wait_for_alert(void *argument)
{
    (void)argument;
    check(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
}

static void wait_for_several(void *argument)
{
    HANDLE handles[] = {make_event(NotificationEvent, FALSE, NULL), make_event(NotificationEvent, FALSE, NULL)};
    (void)argument;
    check(NtWaitForMultipleObjects(2, handles, WaitAll, TRUE, NULL) == STATUS_ALERTED);
    close_handle(handles[0]);
    close_handle(handles[1]);
}

static void ask_another_port(void *argument)
{
    FILE_IO_COMPLETION_INFORMATION information;
    ULONG removed;
    HANDLE port;
    (void)argument;
    check(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1) == STATUS_SUCCESS);
    check(NtRemoveIoCompletionEx(port, &information, 1, &removed, NULL, TRUE) == STATUS_ALERTED);
    close_handle(port);
}

static void test_every_block_makes_room(void **state)
{
    void (*blocks[])(void *) = {delay_briefly, wait_for_alert, wait_for_several, ask_another_port};
    HANDLE port = make_port(1);
    remover r[2];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(blocks); i += 1) {
        start_removers(r, 2, port);
        begin_remove(&r[0]);
        begin_remove(&r[1]);
        post(port, 1);
        assert_true(has_removed(&r[1], 1));
        post(port, 2);
        assert_int_equal(depth_of(port), 1);
        tell(&r[1].actor, blocks[i], NULL);
        assert_true(has_removed(&r[0], 2));
        await(is_committed(r[1].actor.thread));
        KeAlertThread(r[1].actor.thread, UserMode);
        KeAlertThreadById(r[1].actor.thread);
        end_removers(r, 2);
        assert_int_equal(queue_of(port)->CurrentCount, 0);
    }
    close_port(port);
}

/* A thread that is terminated while it waits at a port, or after it has used one, leaves nothing behind. */
static NTSTATUS ask_for_ever(PVOID port)
{
    FILE_IO_COMPLETION_INFORMATION information;
    while (take(port, &information, NULL) == STATUS_SUCCESS) {
    }
    check_failed("the thread should have been ended", __FILE__, __LINE__);
    return STATUS_UNSUCCESSFUL;
}

static void test_terminated_remover(void **state)
{
    HANDLE port = make_port(1);
    HANDLE thread;
    (void)state;
    for (ULONG round = 0; round < 3; round += 1) {
        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), ask_for_ever, port, 0,
                                          0, 0, 0, NULL),
                         STATUS_SUCCESS);
        if (round != 0) {
            await(is_committed(object_of(thread)));
        }
        if (round == 2) {
            post(port, 1);
        }
        assert_int_equal(NtTerminateThread(thread, STATUS_CANCELLED), STATUS_SUCCESS);
        assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_WAIT_0);
        close_handle(thread);
        assert_int_equal(queue_of(port)->CurrentCount, 0);
        assert_true(IsListEmpty(&queue_of(port)->ThreadListHead));
    }
    close_port(port);
}

static void test_limit_of_zero(void **state)
{
    HANDLE port = make_port(0);
    (void)state;
    assert_int_equal(queue_of(port)->MaximumCount, KeNumberProcessors);
    close_port(port);
    port = make_port(MAXULONG);
    assert_int_equal(queue_of(port)->MaximumCount, MAXULONG);
    close_port(port);
}

/* A wait for the port itself is satisfied while something is queued, and removes nothing. */
static void test_waiting_for_the_port(void **state)
{
    HANDLE port = make_port(1);
    handle_waiter w;
    (void)state;
    start_handle_waiter(&w);
    w.count = 1;
    w.handle[0] = port;
    assert_int_equal(poll_handle(port), STATUS_TIMEOUT);
    begin_handle_wait(&w);
    post(port, 1);
    assert_int_equal(end_handle_wait(&w), STATUS_WAIT_0);
    assert_int_equal(poll_handle(port), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(1, &port, WaitAll, FALSE, NO_TIME), STATUS_WAIT_0);
    assert_int_equal(depth_of(port), 1);
    expect_packet(port, 1);
    assert_int_equal(poll_handle(port), STATUS_TIMEOUT);
    end_actor(&w.actor);
    close_port(port);
}

/* Closing the last handle wakes all threads, closing an earlier one none. Queued packets are discarded. */
static void close_under_waiters(HANDLE port)
{
    HANDLE other = same_object(port, IO_COMPLETION_ALL_ACCESS);
    handle_waiter w;
    remover r[2];
    start_handle_waiter(&w);
    start_removers(r, 2, port);
    w.count = 1;
    w.handle[0] = port;
    begin_remove(&r[0]);
    begin_remove(&r[1]);
    begin_handle_wait(&w);
    close_handle(other);
    assert_true(is_committed(r[0].actor.thread) && is_committed(r[1].actor.thread) && is_committed(w.actor.thread));
    close_handle(port);
    for (ULONG i = 0; i < 2; i += 1) {
        await(is_idle(&r[i].actor));
        assert_int_equal(r[i].status, STATUS_ABANDONED_WAIT_0);
    }
    assert_int_equal(end_handle_wait(&w), STATUS_WAIT_0);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    end_removers(r, 2);
    end_actor(&w.actor);
}

static void test_closing(void **state)
{
    static const WCHAR path[] = u"\\BaseNamedObjects\\interlock-closed-port";
    UNICODE_STRING name = {sizeof(path) - sizeof(WCHAR), sizeof(path), (PWSTR)path};
    OBJECT_ATTRIBUTES attributes = RTL_INIT_OBJECT_ATTRIBUTES(&name, OBJ_CASE_INSENSITIVE);
    HANDLE named;
    (void)state;
    close_under_waiters(make_port(1));
    assert_int_equal(NtCreateIoCompletion(&named, IO_COMPLETION_ALL_ACCESS, &attributes, 1), STATUS_SUCCESS);
    close_under_waiters(named);
}

static void test_closing_with_packets(void **state)
{
    HANDLE port = make_port(1);
    HANDLE reserve;
    (void)state;
    assert_int_equal(NtAllocateReserveObject(&reserve, NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
    for (ULONG i = 0; i < 2000; i += 1) {
        post(port, i);
    }
    assert_int_equal(NtSetIoCompletionEx(port, reserve, NULL, NULL, 0, 0), STATUS_SUCCESS);
    for (ULONG i = 0; i < 1500; i += 1) {
        expect_packet(port, i);
    }
    close_port(port);
    port = make_port(1);
    assert_int_equal(NtSetIoCompletionEx(port, reserve, NULL, NULL, 0, 0), STATUS_SUCCESS);
    close_port(port);
    close_handle(reserve);
}

/* A thread that looked up the handle before it was closed and uses the port afterwards. */
static void test_latecomers(void **state)
{
    HANDLE handle = make_port(1);
    PNTP_PORT port = object_of(handle);
    PLIST_ENTRY entry;
    (void)state;
    ObReferenceObject(port);
    close_handle(handle);
    assert_int_equal(KiRemoveQueueEx(&port->Queue, UserMode, FALSE, NULL, &entry, 1), 1);
    assert_int_equal((LONG_PTR)entry, STATUS_ABANDONED);
    assert_int_equal(wait_for(port, NULL), STATUS_WAIT_0);
    PNTP_PACKET packet = NtpAllocatePacket();
    assert_non_null(packet);
    KeInsertQueue(&port->Queue, &packet->QueueListEntry);
    assert_int_equal((LONG_PTR)KiRemoveQueue(&port->Queue, UserMode, NULL), STATUS_ABANDONED);
    assert_int_equal(KiRemoveQueueEx(&port->Queue, UserMode, FALSE, NULL, &entry, 1), 1);
    assert_int_equal((LONG_PTR)entry, STATUS_ABANDONED);
    ObDereferenceObject(port);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
}

/* Without memory: removes every packet that is kept for reuse. */
static PNTP_PACKET take_kept_packets(ULONG *number)
{
    PNTP_PACKET all = NULL, packet;
    allocations_left = 0;
    for (*number = 0; (packet = NtpAllocatePacket()) != NULL; *number += 1) {
        packet->NextFree = all;
        all = packet;
    }
    allocations_left = -1;
    return all;
}

static void free_packets(PNTP_PACKET packet)
{
    while (packet != NULL) {
        PNTP_PACKET next = packet->NextFree;
        NtpFreePacket(packet);
        packet = next;
    }
}

static void post_and_remove(HANDLE port, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        post(port, i);
    }
    for (ULONG i = 0; i < count; i += 1) {
        expect_packet(port, i);
    }
}

static BOOLEAN are_all_different(PNTP_PACKET packet)
{
    ULONG_PTR mark = 0;
    for (PNTP_PACKET at = packet; at != NULL; at = at->NextFree) {
        at->IoStatusInformation = 0;
    }
    for (PNTP_PACKET at = packet; at != NULL; at = at->NextFree) {
        if (at->IoStatusInformation != 0 || at->Kind != NtpPlainPacket || (ULONG_PTR)at % KI_CACHE_LINE != 0) {
            return FALSE;
        }
        at->IoStatusInformation = mark += 1;
    }
    return TRUE;
}

#define PORTS_IN_MEMORY 8

/* The lock, the entries and the count of a port are on one cache line, wherever the heap puts it. */
static void test_ports_begin_at_a_line(void **state)
{
    HANDLE ports[PORTS_IN_MEMORY];
    PVOID object;
    (void)state;
    for (ULONG i = 0; i < PORTS_IN_MEMORY; i += 1) {
        ports[i] = make_port(0);
        assert_int_equal(ObReferenceObjectByHandle(ports[i], IO_COMPLETION_ALL_ACCESS, NULL, KernelMode, &object, NULL),
                         STATUS_SUCCESS);
        assert_int_equal((ULONG_PTR)object % KI_CACHE_LINE, 0);
        ObDereferenceObject(object);
    }
    for (ULONG i = 1; i < PORTS_IN_MEMORY; i += 1) {
        assert_int_equal(NtClose(ports[i]), STATUS_SUCCESS);
    }
    close_port(ports[0]); /* checks that it was the last one */
}

/* No matter how many are removed at a time, a bounded number is kept, and each kept one can be reused. */
/* The port itself, as a driver uses it: in the given mode, and without a handle. */
static void test_removal_from_the_port(void **state)
{
    HANDLE port = make_port(0);
    FILE_IO_COMPLETION_INFORMATION information[3];
    LARGE_INTEGER soon = {.QuadPart = -10000};
    PVOID object;
    ULONG removed = 7;
    (void)state;
    assert_int_equal(ObReferenceObjectByHandle(port, IO_COMPLETION_ALL_ACCESS, NULL, KernelMode, &object, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(IoRemoveIoCompletion(object, information, 0, &removed, KernelMode, NULL, FALSE),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(removed, 7);
    for (KPROCESSOR_MODE mode = KernelMode; mode <= UserMode; mode += 1) {
        removed = 7;
        assert_int_equal(IoRemoveIoCompletion(object, information, 3, &removed, mode, NO_TIME, FALSE), STATUS_TIMEOUT);
        assert_int_equal(removed, 0);
        assert_int_equal(IoRemoveIoCompletion(object, information, 3, &removed, mode, &soon, FALSE), STATUS_TIMEOUT);
        for (ULONG_PTR number = 10; number < 60; number += 10) {
            post(port, number);
        }
        assert_int_equal(IoRemoveIoCompletion(object, information, 3, &removed, mode, NULL, TRUE), STATUS_SUCCESS);
        assert_int_equal(removed, 3);
        for (ULONG i = 0; i < 3; i += 1) {
            assert_true(is_posted(&information[i], 10 * (i + 1)));
        }
        assert_int_equal(IoRemoveIoCompletion(object, information, 3, &removed, mode, NULL, FALSE), STATUS_SUCCESS);
        assert_int_equal(removed, 2);
        assert_true(is_posted(&information[1], 50));
    }
    /* A user APC ends an alertable wait of user mode, not one of kernel mode. */
    ULONG runs = 0;
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), count_run, &runs, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(IoRemoveIoCompletion(object, information, 1, &removed, KernelMode, &soon, TRUE), STATUS_TIMEOUT);
    assert_int_equal(runs, 0);
    assert_int_equal(IoRemoveIoCompletion(object, information, 1, &removed, UserMode, NULL, TRUE), STATUS_USER_APC);
    assert_int_equal(removed, 0);
    assert_int_equal(runs, 1);
    /* The reference keeps the object, the last handle its use. */
    close_handle(port);
    assert_int_equal(IoRemoveIoCompletion(object, information, 1, &removed, KernelMode, NULL, FALSE),
                     STATUS_ABANDONED);
    ObDereferenceObject(object);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
}

static void test_packets_are_kept(void **state)
{
    enum { MANY = 8192 };
    HANDLE port = make_port(1);
    ULONG kept, again;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    close_port(port);
    skip();
#endif
    post_and_remove(port, MANY);
    PNTP_PACKET all = take_kept_packets(&kept);
    assert_in_range(kept, 64, MANY / 2);
    assert_true(are_all_different(all));
    free_packets(all);
    all = take_kept_packets(&again);
    assert_in_range(again, 64, kept);
    free_packets(all);
    allocations_left = 0;
    for (ULONG i = 0; i < again / 2; i += 1) { /* of the others the last may have been returned to the heap */
        post(port, i);
    }
    allocations_left = -1;
    close_port(port); /* what was queued is kept as well */
    all = take_kept_packets(&kept);
    assert_in_range(kept, 64, again);
    free_packets(all);
}

static void test_no_memory(void **state)
{
    HANDLE port = make_port(1);
    ULONG kept;
    HANDLE none = NULL;
    NTSTATUS create, first, second;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    close_port(port);
    skip();
#endif
    post_and_remove(port, 1);
    PNTP_PACKET all = take_kept_packets(&kept);
    assert_in_range(kept, 1, MAXLONG);
    allocations_left = 0;
    create = NtCreateIoCompletion(&none, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    first = NtSetIoCompletion(port, NULL, NULL, 0, 0);
    allocations_left = -1;
    assert_int_equal(create, STATUS_INSUFFICIENT_RESOURCES);
    assert_null(none);
    assert_int_equal(first, STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(depth_of(port), 0);
    PNTP_PACKET others = all->NextFree;
    NtpFreePacket(all); /* there is one to reuse */
    allocations_left = 0;
    first = NtSetIoCompletion(port, value(2), value(3), 4, 5);
    second = NtSetIoCompletion(port, NULL, NULL, 0, 0);
    allocations_left = -1;
    assert_int_equal(first, STATUS_SUCCESS);
    assert_int_equal(second, STATUS_INSUFFICIENT_RESOURCES);
    expect_packet(port, 2);
    expect_nothing(port);
    free_packets(others);
    close_port(port);
}

static void test_reserve(void **state)
{
    HANDLE port = make_port(1);
    HANDLE reserve, other;
    (void)state;
    assert_int_equal(NtAllocateReserveObject(NULL, NULL, MemoryReserveIoCompletion), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtAllocateReserveObject(NULL, NULL, MemoryReserveTypeMax), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtAllocateReserveObject(&reserve, NULL, MemoryReserveTypeMax), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtAllocateReserveObject(&reserve, NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
    assert_int_equal(NtAllocateReserveObject(&other, NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
    assert_int_equal(NtSetIoCompletionEx(port, NULL, NULL, NULL, 0, 0), STATUS_INVALID_HANDLE);
    assert_int_equal(NtSetIoCompletionEx(port, port, NULL, NULL, 0, 0), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtSetIoCompletionEx(reserve, reserve, NULL, NULL, 0, 0), STATUS_OBJECT_TYPE_MISMATCH);
    for (ULONG i = 0; i < 3; i += 1) {
        allocations_left = 0;
        NTSTATUS status = NtSetIoCompletionEx(port, reserve, value(1), value(2), 3, 4);
        NTSTATUS again = NtSetIoCompletionEx(port, reserve, NULL, NULL, 0, 0);
        allocations_left = -1;
        assert_int_equal(status, STATUS_SUCCESS);
        assert_int_equal(again, STATUS_INVALID_PARAMETER_2);
        assert_int_equal(NtSetIoCompletionEx(port, other, value(2), value(3), 4, 5), STATUS_SUCCESS);
        expect_packet(port, 1);
        expect_packet(port, 2);
    }
    /* Closed while it is queued: it is still delivered. */
    assert_int_equal(NtSetIoCompletionEx(port, reserve, value(7), value(8), 9, 10), STATUS_SUCCESS);
    close_handle(reserve);
    expect_packet(port, 7);
    close_handle(other);
    close_port(port);
}

static void test_names(void **state)
{
    static const WCHAR path[] = u"\\BaseNamedObjects\\interlock-port-test";
    UNICODE_STRING name = {sizeof(path) - sizeof(WCHAR), sizeof(path), (PWSTR)path};
    OBJECT_ATTRIBUTES attributes = RTL_INIT_OBJECT_ATTRIBUTES(&name, OBJ_CASE_INSENSITIVE);
    HANDLE port, opened, other;
    (void)state;
    assert_int_equal(NtOpenIoCompletion(&opened, IO_COMPLETION_ALL_ACCESS, &attributes), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes, 0), STATUS_SUCCESS);
    assert_int_equal(NtCreateIoCompletion(&other, IO_COMPLETION_ALL_ACCESS, &attributes, 0),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(NtCreateEvent(&other, EVENT_ALL_ACCESS, &attributes, NotificationEvent, FALSE),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(NtOpenEvent(&other, EVENT_ALL_ACCESS, &attributes), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtOpenIoCompletion(&opened, IO_COMPLETION_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    attributes.Attributes |= OBJ_OPENIF;
    assert_int_equal(NtCreateIoCompletion(&other, IO_COMPLETION_MODIFY_STATE, &attributes, 7),
                     STATUS_OBJECT_NAME_EXISTS);
    post(port, 1);
    expect_packet(opened, 1);
    post(opened, 2);
    close_handle(port);
    expect_packet(other, 2);
    close_handle(opened);
    close_port(other);
    attributes.Attributes &= ~(ULONG)OBJ_OPENIF;
    assert_int_equal(NtOpenIoCompletion(&opened, IO_COMPLETION_ALL_ACCESS, &attributes), STATUS_OBJECT_NAME_NOT_FOUND);
    /* A permanent one keeps its packets while it is not open. */
    attributes.Attributes |= OBJ_PERMANENT;
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes, 0), STATUS_SUCCESS);
    post(port, 3);
    post(port, 4);
    close_handle(port);
    attributes.Attributes &= ~(ULONG)OBJ_PERMANENT;
    assert_int_equal(NtOpenIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    expect_packet(port, 3);
    expect_packet(port, 4);
    /* Its removers keep waiting, for a packet of the next thread that opens it. */
    remover r;
    start_removers(&r, 1, port);
    begin_remove(&r);
    close_handle(port);
    assert_int_equal(NtOpenIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    assert_true(is_committed(r.actor.thread));
    post(port, 5);
    assert_true(has_removed(&r, 5));
    end_removers(&r, 1);
    assert_int_equal(NtMakeTemporaryObject(port), STATUS_SUCCESS);
    close_port(port);
}

/* A forked child has the port with what was queued, and no threads but its own. */
static int use_port_in_child(HANDLE port, HANDLE waited)
{
    for (ULONG i = 0; i < 3; i += 1) {
        FILE_IO_COMPLETION_INFORMATION information;
        if (take(port, &information, NULL) != STATUS_SUCCESS || !is_posted(&information, i)) {
            return 1;
        }
    }
    post(waited, 9); /* its remover stayed behind */
    FILE_IO_COMPLETION_INFORMATION information;
    if (depth_of(waited) != 1 || take(waited, &information, NULL) != STATUS_SUCCESS || !is_posted(&information, 9)) {
        return 2;
    }
    return queue_of(waited)->CurrentCount == 1 ? 0 : 3;
}

static void test_fork(void **state)
{
    HANDLE port = make_port(1);
    HANDLE waited = make_port(1);
    remover r[2];
    int status;
    (void)state;
    start_removers(&r[0], 1, waited);
    start_removers(&r[1], 1, waited);
    begin_remove(&r[0]);
    post(waited, 5);
    assert_true(has_removed(&r[0], 5)); /* counts as running */
    begin_remove(&r[1]);
    for (ULONG i = 0; i < 3; i += 1) {
        post(port, i);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(use_port_in_child(port, waited));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(depth_of(port), 3);
    end_removers(&r[0], 1);
    post(waited, 6);
    assert_true(has_removed(&r[1], 6));
    end_removers(&r[1], 1);
    close_handle(waited);
    close_port(port);
}

/* A thread keeps its reference on a port from one call to the next. It keeps neither the port nor the rights of the
   handle, and nothing of a handle that has been reused. */
static void test_kept_ports_go_with_their_handles(void **state)
{
    HANDLE port = make_port(1);
    HANDLE query_only = same_object(port, IO_COMPLETION_QUERY_STATE);
    HANDLE other = make_port(1);
    (void)state;
    post(port, 1);
    assert_int_equal(NtSetIoCompletion(query_only, NULL, NULL, 0, 0), STATUS_ACCESS_DENIED);
    assert_int_equal(depth_of(query_only), 1);
    assert_int_equal(NtSetIoCompletion(query_only, NULL, NULL, 0, 0), STATUS_ACCESS_DENIED);
    for (ULONG i = 0; i < 3; i += 1) { /* by turns */
        post(other, i);
        expect_packet(port, i + 1);
        post(port, i + 2);
    }
    close_handle(port);
    assert_int_equal(NtSetIoCompletion(port, NULL, NULL, 0, 0), STATUS_INVALID_HANDLE);
    assert_int_equal(depth_of(query_only), 1);
    close_handle(query_only);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 1);
    expect_packet(other, 0);
    close_port(other);
}

static void post_and_keep(void *argument)
{
    remover *r = argument;
    post(r->port, 1);
    post(r->port, 2);
}

/* Whether the thread that has kept it still runs, or has ended. */
static void test_ports_of_others_go_with_their_handles(void **state)
{
    remover r[2];
    (void)state;
    HANDLE port = make_port(1);
    start_removers(r, 2, port);
    for (ULONG i = 0; i < 2; i += 1) {
        tell(&r[i].actor, post_and_keep, &r[i]);
        await(is_idle(&r[i].actor));
    }
    end_removers(&r[0], 1);
    close_port(port);
    port = make_port(1);
    r[1].port = port;
    tell(&r[1].actor, post_and_keep, &r[1]);
    await(is_idle(&r[1].actor));
    assert_int_equal(depth_of(port), 2);
    end_removers(&r[1], 1);
    close_port(port);
}

/* A thread in the middle of a call with its kept port returns the reference when the call ends. */
static void test_kept_ports_in_use_go_at_the_end(void **state)
{
    remover r[2];
    (void)state;
    HANDLE port = make_port(2);
    start_removers(r, 2, port);
    for (ULONG i = 0; i < 2; i += 1) {
        begin_remove(&r[i]);
        post(port, i);
        assert_true(has_removed(&r[i], i));
        begin_remove(&r[i]);
    }
    HANDLE other = same_object(port, IO_COMPLETION_ALL_ACCESS);
    close_handle(port); /* both wait still */
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 1);
    post(other, 7);
    assert_true(has_removed(&r[1], 7));
    close_handle(other);
    await(is_idle(&r[0].actor));
    assert_int_equal(r[0].status, STATUS_ABANDONED);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    end_removers(r, 2);
}

/* A thread that stayed behind in the parent, in the middle of a call, keeps no port of the child. */
static void test_kept_ports_after_fork(void **state)
{
    HANDLE port = make_port(1);
    remover r;
    int status;
    (void)state;
    start_removers(&r, 1, port);
    begin_remove(&r);
    post(port, 1);
    assert_true(has_removed(&r, 1));
    begin_remove(&r);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(NtClose(port) == STATUS_SUCCESS && NtpPortType.TotalNumberOfObjects == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    post(port, 2);
    assert_true(has_removed(&r, 2));
    end_removers(&r, 1);
    close_port(port);
}

static ULONG processor;

static ULONG query_processor(VOID)
{
    return processor;
}

/* Packets return to the heap, except for those that are kept for the next ones. */
static void test_free_memory_is_bounded(void **state)
{
#ifdef HEAP_IS_WATCHED_ONLY
    (void)state;
    skip();
#else
    enum { MANY = 16384, IN_A_BLOCK = 32 };
    HANDLE port = make_port(0);
    (void)state;
    for (ULONG i = 0; i < MANY; i += 1) {
        post(port, i);
    }
    long blocks = blocks_allocated;
    for (ULONG i = 0; i < MANY; i += 1) {
        PVOID key, context;
        IO_STATUS_BLOCK io;
        assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &io, NULL), STATUS_SUCCESS);
    }
    assert_true(blocks_allocated < blocks - MANY / IN_A_BLOCK / 2);
    close_port(port);
#endif
}

/* A processor that only posts uses the packets that another one frees. */
static void test_packets_are_used_again(void **state)
{
#ifdef HEAP_IS_WATCHED_ONLY
    (void)state;
    skip();
#else
    ULONG (*host_query)(VOID) = HalDispatch.CurrentProcessor;
    HANDLE port = make_port(0);
    (void)state;
    HalDispatch.CurrentProcessor = query_processor;
    long blocks = blocks_allocated;
    for (ULONG i = 0; i < 8192; i += 1) {
        PVOID key, context;
        IO_STATUS_BLOCK io;
        processor = 0;
        post(port, i);
        processor = 1;
        assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &io, NULL), STATUS_SUCCESS);
    }
    assert_true(blocks_allocated <= blocks + 8);
    HalDispatch.CurrentProcessor = host_query;
    close_port(port);
#endif
}

/* Without memory every free packet is used, whichever processor freed it, and none is lost. */
static ULONG post_without_memory(HANDLE port)
{
    ULONG posted = 0;
    processor = 0;
    allocations_left = 0;
    while (NtSetIoCompletion(port, NULL, NULL, 0, 0) == STATUS_SUCCESS) {
        posted += 1;
    }
    allocations_left = -1;
    for (ULONG i = 0; i < posted; i += 1) {
        PVOID key, context;
        IO_STATUS_BLOCK io;
        processor = i % 4;
        assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &io, NULL), STATUS_SUCCESS);
    }
    return posted;
}

static void test_no_packet_is_lost(void **state)
{
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    ULONG (*host_query)(VOID) = HalDispatch.CurrentProcessor;
    HANDLE port = make_port(0);
    HalDispatch.CurrentProcessor = query_processor;
    post(port, 1);
    ULONG free = post_without_memory(port);
    assert_true(free >= 31); /* the rest of a block */
    assert_int_equal(post_without_memory(port), free);
    assert_int_equal(post_without_memory(port), free);
    HalDispatch.CurrentProcessor = host_query;
    close_port(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_packets_are_first_in_first_out),
        WATCHED(test_values),
        WATCHED(test_nothing_is_written_without_a_packet),
        WATCHED(test_handles),
        WATCHED(test_parameters),
        WATCHED(test_many_at_once),
        WATCHED(test_alertable_removal),
        WATCHED(test_apcs_run_after_the_removal),
        WATCHED(test_threads_are_last_in_first_out),
        WATCHED(test_limit),
        WATCHED(test_every_block_makes_room),
        WATCHED(test_terminated_remover),
        WATCHED(test_limit_of_zero),
        WATCHED(test_waiting_for_the_port),
        WATCHED(test_closing),
        WATCHED(test_closing_with_packets),
        WATCHED(test_latecomers),
        WATCHED(test_removal_from_the_port),
        WATCHED(test_ports_begin_at_a_line),
        WATCHED(test_packets_are_kept),
        WATCHED(test_no_memory),
        WATCHED(test_reserve),
        WATCHED(test_names),
        WATCHED(test_kept_ports_go_with_their_handles),
        WATCHED(test_ports_of_others_go_with_their_handles),
        WATCHED(test_kept_ports_in_use_go_at_the_end),
        WATCHED(test_kept_ports_after_fork),
        WATCHED(test_fork),
        WATCHED(test_packets_are_used_again), /* before one that fills the depot */
        WATCHED(test_free_memory_is_bounded),
        WATCHED(test_no_packet_is_lost),
    };
    return cmocka_run_group_tests_name("nt/iocompletion", tests, NULL, NULL);
}
