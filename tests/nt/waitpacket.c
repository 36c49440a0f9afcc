/* Wait completion packets: once per association, and what every kind of close and cancel does to one. */
#include "handles.h"

#include <sys/wait.h>
#include <unistd.h>

#include <interlock/io.h>

#include "nt/ntp.h"

static HANDLE make_port(void)
{
    HANDLE port;
    check(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1) == STATUS_SUCCESS);
    return port;
}

static HANDLE make_packet(void)
{
    HANDLE packet;
    check(NtCreateWaitCompletionPacket(&packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) == STATUS_SUCCESS);
    return packet;
}

/* A test leaves nothing behind: no target, no port, no packet. */
static POBJECT_TYPE packet_type;

static void expect_nothing_left(void)
{
    assert_int_equal(live_objects(), 0);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    assert_int_equal(packet_type->TotalNumberOfObjects, 0);
}

static PVOID value(ULONG_PTR number)
{
    return (PVOID)number;
}

static NTSTATUS associate(HANDLE packet, HANDLE port, HANDLE target, ULONG_PTR number, PBOOLEAN already)
{
    return NtAssociateWaitCompletionPacket(packet, port, target, value(number), value(number + 1), (NTSTATUS)number + 2,
                                           number + 3, already);
}

/* Associates, and the target must not be signaled. */
static void arm(HANDLE packet, HANDLE port, HANDLE target, ULONG_PTR number)
{
    BOOLEAN already = 7;
    assert_int_equal(associate(packet, port, target, number, &already), STATUS_SUCCESS);
    assert_int_equal(already, FALSE);
}

static NTSTATUS take(HANDLE port, PFILE_IO_COMPLETION_INFORMATION information, PLARGE_INTEGER timeout)
{
    return NtRemoveIoCompletion(port, &information->KeyContext, &information->ApcContext, &information->IoStatusBlock,
                                timeout);
}

static BOOLEAN is_posted(const FILE_IO_COMPLETION_INFORMATION *information, ULONG_PTR number)
{
    return information->KeyContext == value(number) && information->ApcContext == value(number + 1) &&
           information->IoStatusBlock.Status == (NTSTATUS)number + 2 &&
           information->IoStatusBlock.Information == number + 3;
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

/* One port, one event, one packet. */
typedef struct scene {
    HANDLE port;
    HANDLE target;
    HANDLE packet;
    PKEVENT event;
} scene;

static scene make_scene(EVENT_TYPE type)
{
    scene s;
    s.port = make_port();
    s.target = make_event(type, FALSE, &s.event);
    s.packet = make_packet();
    packet_type = ObGetObjectType(object_of(s.packet));
    return s;
}

static void end_scene(scene *s)
{
    close_handle(s->packet);
    close_handle(s->target);
    close_handle(s->port);
    expect_nothing_left();
}

/* One packet for each association, however often the object is signaled; the wait consumes what a wait consumes. */
static void test_once(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    (void)state;
    for (ULONG i = 0; i < 3; i += 1) {
        arm(s.packet, s.port, s.target, i);
        expect_nothing(s.port);
        KeSetEvent(s.event, 0, FALSE);
        assert_int_equal(KeReadStateEvent(s.event), 0);
        KeSetEvent(s.event, 0, FALSE);
        assert_int_equal(KeReadStateEvent(s.event), 1);
        expect_packet(s.port, i);
        expect_nothing(s.port);
        KeResetEvent(s.event);
    }
    end_scene(&s);
}

static void test_already_signaled(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    BOOLEAN already = FALSE;
    (void)state;
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(associate(s.packet, s.port, s.target, 1, &already), STATUS_SUCCESS);
    assert_int_equal(already, TRUE);
    assert_int_equal(KeReadStateEvent(s.event), 0);
    expect_packet(s.port, 1);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(associate(s.packet, s.port, s.target, 2, NULL), STATUS_SUCCESS);
    expect_packet(s.port, 2);
    end_scene(&s);
}

static void test_in_use(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    BOOLEAN already = 7;
    (void)state;
    arm(s.packet, s.port, s.target, 1);
    assert_int_equal(associate(s.packet, s.port, s.target, 2, &already), STATUS_INVALID_PARAMETER_1);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(associate(s.packet, s.port, s.target, 2, &already), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(already, 7);
    expect_packet(s.port, 1);
    arm(s.packet, s.port, s.target, 3);
    end_scene(&s);
}

static void test_cancel(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    (void)state;
    for (ULONG removing = 0; removing < 2; removing += 1) {
        assert_int_equal(NtCancelWaitCompletionPacket(s.packet, (BOOLEAN)removing), STATUS_CANCELLED);
        arm(s.packet, s.port, s.target, 1);
        assert_int_equal(NtCancelWaitCompletionPacket(s.packet, (BOOLEAN)removing), STATUS_SUCCESS);
        assert_int_equal(NtCancelWaitCompletionPacket(s.packet, (BOOLEAN)removing), STATUS_CANCELLED);
        KeSetEvent(s.event, 0, FALSE);
        expect_nothing(s.port);
        assert_int_equal(KeResetEvent(s.event), 1);
    }
    arm(s.packet, s.port, s.target, 2);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_PENDING);
    expect_packet(s.port, 2);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_CANCELLED);
    arm(s.packet, s.port, s.target, 3);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, TRUE), STATUS_SUCCESS);
    expect_nothing(s.port);
    assert_int_equal(poll_handle(s.port), STATUS_TIMEOUT);
    arm(s.packet, s.port, s.target, 4);
    end_scene(&s);
}

/* The first handle that is wrong decides; then the target; then whether the packet is in use. */
static void test_checks(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    HANDLE closed = closed_handle();
    HANDLE no_packet = same_object(s.packet, READ_CONTROL);
    HANDLE no_port = same_object(s.port, SYNCHRONIZE | IO_COMPLETION_QUERY_STATE);
    HANDLE no_target = same_object(s.target, READ_CONTROL);
    PKMUTANT mutant;
    HANDLE mutant_handle = make_mutant_object(FALSE, &mutant);
    HANDLE constant = make_constant();
    struct {
        HANDLE packet, port, target;
        NTSTATUS status;
    } cases[] = {
        {closed, closed, closed, STATUS_INVALID_HANDLE},
        {s.port, closed, closed, STATUS_OBJECT_TYPE_MISMATCH},
        {no_packet, closed, closed, STATUS_ACCESS_DENIED},
        {s.packet, closed, no_target, STATUS_INVALID_HANDLE},
        {s.packet, s.packet, no_target, STATUS_OBJECT_TYPE_MISMATCH},
        {s.packet, no_port, closed, STATUS_ACCESS_DENIED},
        {s.packet, s.port, closed, STATUS_INVALID_HANDLE},
        {s.packet, s.port, (HANDLE)(LONG_PTR)-5, STATUS_INVALID_HANDLE},
        {s.packet, s.port, no_target, STATUS_ACCESS_DENIED},
        {s.packet, s.port, mutant_handle, STATUS_INVALID_PARAMETER_3},
        {s.packet, s.port, constant, STATUS_INVALID_PARAMETER_3},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        assert_int_equal(associate(cases[i].packet, cases[i].port, cases[i].target, 1, NULL), cases[i].status);
        assert_int_equal(NtCancelWaitCompletionPacket(s.packet, TRUE), STATUS_CANCELLED);
    }
    assert_int_equal(NtCancelWaitCompletionPacket(closed, TRUE), STATUS_INVALID_HANDLE);
    assert_int_equal(NtCancelWaitCompletionPacket(s.port, TRUE), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCancelWaitCompletionPacket(no_packet, TRUE), STATUS_ACCESS_DENIED);
    assert_int_equal(NtCreateWaitCompletionPacket(NULL, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(KeReadStateMutant(mutant), 1);
    close_handle(no_packet);
    close_handle(no_port);
    close_handle(no_target);
    close_handle(mutant_handle);
    close_handle(constant);
    end_scene(&s);
}

static VOID end_at_once(PVOID context)
{
    KeWaitForSingleObject(context, Executive, KernelMode, FALSE, NULL);
}

/* Other kinds of targets: a count that goes down, a thread that ends, a port with a packet. */
static void test_targets(void **state)
{
    scene s = make_scene(NotificationEvent);
    HANDLE semaphore, thread, other_port = make_port();
    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, 5), STATUS_SUCCESS);
    arm(s.packet, s.port, semaphore, 1);
    assert_int_equal(NtReleaseSemaphore(semaphore, 3, NULL), STATUS_SUCCESS);
    expect_packet(s.port, 1);
    assert_int_equal(KeReadStateSemaphore(object_of(semaphore)), 2);

    assert_int_equal(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, end_at_once, s.event),
                     STATUS_SUCCESS);
    thread = user_handle(thread);
    arm(s.packet, s.port, thread, 2);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(NtWaitForSingleObject(s.port, FALSE, NULL), STATUS_WAIT_0);
    expect_packet(s.port, 2);

    arm(s.packet, s.port, other_port, 3);
    assert_int_equal(NtSetIoCompletion(other_port, value(4), value(5), 6, 7), STATUS_SUCCESS);
    expect_packet(s.port, 3);
    expect_packet(other_port, 4);

    arm(s.packet, s.port, s.port, 8); /* the port itself: the packet follows what made it signaled */
    assert_int_equal(NtSetIoCompletion(s.port, value(4), value(5), 6, 7), STATUS_SUCCESS);
    expect_packet(s.port, 4);
    expect_packet(s.port, 8);

    arm(s.packet, s.port, NtCurrentThread(), 9);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_SUCCESS);
    close_handle(semaphore);
    close_handle(thread);
    close_handle(other_port);
    end_scene(&s);
}

/* A pipe tells a port that there is something to read; its state is checked when the packet is associated. */
static void test_descriptor(void **state)
{
    scene s = make_scene(NotificationEvent);
    HANDLE descriptor;
    BOOLEAN already = FALSE;
    int ends[2];
    char byte = 1;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(IoCreateDescriptorObject(&descriptor, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0],
                                              IO_DESCRIPTOR_READABLE),
                     STATUS_SUCCESS);
    arm(s.packet, s.port, descriptor, 1);
    assert_int_equal(write(ends[1], &byte, 1), 1);
    assert_int_equal(NtWaitForSingleObject(s.port, FALSE, NULL), STATUS_WAIT_0);
    expect_packet(s.port, 1);
    assert_int_equal(associate(s.packet, s.port, descriptor, 2, &already), STATUS_SUCCESS);
    assert_int_equal(already, TRUE);
    expect_packet(s.port, 2);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    arm(s.packet, s.port, descriptor, 3);
    close_handle(descriptor);
    assert_int_equal(write(ends[1], &byte, 1), 1);
    assert_int_equal(NtWaitForSingleObject(s.port, FALSE, NULL), STATUS_WAIT_0);
    expect_packet(s.port, 3);
    close(ends[0]);
    close(ends[1]);
    end_scene(&s);
}

/* Several packets of one object arrive in the order of association, among others. */
static void test_order(void **state)
{
    scene s = make_scene(NotificationEvent);
    HANDLE packets[5];
    FILE_IO_COMPLETION_INFORMATION information[10];
    ULONG removed;
    (void)state;
    for (ULONG i = 0; i < 5; i += 1) {
        packets[i] = make_packet();
        arm(packets[i], s.port, s.target, 10 + i);
    }
    assert_int_equal(NtSetIoCompletion(s.port, value(1), value(2), 3, 4), STATUS_SUCCESS);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(NtSetIoCompletion(s.port, value(2), value(3), 4, 5), STATUS_SUCCESS);
    assert_int_equal(NtRemoveIoCompletionEx(s.port, information, 10, &removed, NULL, FALSE), STATUS_SUCCESS);
    assert_int_equal(removed, 7);
    assert_true(is_posted(&information[0], 1));
    for (ULONG i = 0; i < 5; i += 1) {
        assert_true(is_posted(&information[1 + i], 10 + i));
        close_handle(packets[i]);
    }
    assert_true(is_posted(&information[6], 2));
    end_scene(&s);
}

static void take_one(void *argument)
{
    HANDLE *port = argument;
    FILE_IO_COMPLETION_INFORMATION information;
    check(take(*port, &information, NULL) == STATUS_SUCCESS && is_posted(&information, 1));
}

static void test_a_sleeper_gets_it(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    actor a;
    (void)state;
    start_actor(&a);
    tell(&a, take_one, &s.port);
    await(is_committed(a.thread));
    arm(s.packet, s.port, s.target, 1);
    KeSetEvent(s.event, 0, FALSE);
    await(is_idle(&a));
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, TRUE), STATUS_CANCELLED);
    end_actor(&a);
    end_scene(&s);
}

/* The target stays as long as the packet is in use, and not longer. */
static void test_target_is_closed(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    (void)state;
    arm(s.packet, s.port, s.target, 1);
    close_handle(s.target);
    assert_int_equal(live_objects(), 1);
    KeSetEvent(s.event, 0, FALSE);
    expect_packet(s.port, 1);
    assert_int_equal(live_objects(), 0);

    s.target = make_event(SynchronizationEvent, FALSE, &s.event);
    arm(s.packet, s.port, s.target, 2);
    close_handle(s.target);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_SUCCESS);
    assert_int_equal(live_objects(), 0);
    close_handle(s.packet);
    close_handle(s.port);
    expect_nothing_left();
}

/* A port that no thread can read any more still takes the packet; it is idle again when it is cancelled. */
static void test_port_is_closed(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    (void)state;
    arm(s.packet, s.port, s.target, 1);
    close_handle(s.port);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 1);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_PENDING);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, TRUE), STATUS_SUCCESS);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);

    s.port = make_port();
    arm(s.packet, s.port, s.target, 2);
    KeSetEvent(s.event, 0, FALSE);
    close_handle(s.port); /* with the packet in its queue */
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    assert_int_equal(NtCancelWaitCompletionPacket(s.packet, FALSE), STATUS_CANCELLED);

    s.port = make_port();
    arm(s.packet, s.port, s.target, 3);
    KeSetEvent(s.event, 0, FALSE);
    expect_packet(s.port, 3);
    end_scene(&s);
}

/* Its last handle cancels a packet, whether it waits or is queued. */
static void test_packet_is_closed(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    HANDLE other = same_object(s.packet, WAIT_COMPLETION_PACKET_ALL_ACCESS);
    (void)state;
    arm(s.packet, s.port, s.target, 1);
    close_handle(s.packet);
    KeSetEvent(s.event, 0, FALSE);
    expect_packet(s.port, 1);
    arm(other, s.port, s.target, 2);
    close_handle(other);
    assert_int_equal(packet_type->TotalNumberOfObjects, 0);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(KeResetEvent(s.event), 1);
    expect_nothing(s.port);

    s.packet = make_packet();
    arm(s.packet, s.port, s.target, 3);
    KeSetEvent(s.event, 0, FALSE);
    assert_int_equal(poll_handle(s.port), STATUS_WAIT_0);
    close_handle(s.packet);
    assert_int_equal(poll_handle(s.port), STATUS_TIMEOUT);
    assert_int_equal(packet_type->TotalNumberOfObjects, 0);
    close_handle(s.target);
    close_handle(s.port);
    expect_nothing_left();
}

/* Everything closed while the packet is in use, in every order. */
static void test_closing_in_every_order(void **state)
{
    static const UCHAR orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (ULONG order = 0; order < ARRAYSIZE(orders); order += 1) {
        for (ULONG signaled = 0; signaled < 4; signaled += 1) {
            scene s = make_scene(SynchronizationEvent);
            HANDLE handles[] = {s.port, s.target, s.packet};
            ObReferenceObject(object_of(s.target));
            PVOID target = object_of(s.target);
            arm(s.packet, s.port, s.target, 1);
            for (ULONG i = 0; i < 3; i += 1) {
                if (signaled == i) {
                    KeSetEvent(s.event, 0, FALSE);
                }
                close_handle(handles[orders[order][i]]);
            }
            ObDereferenceObject(target);
            expect_nothing_left();
        }
    }
}

static HANDLE packet_to_close;

static void close_packet(PVOID object)
{
    (void)object;
    if (packet_to_close != NULL) {
        close_handle(packet_to_close);
        packet_to_close = NULL;
    }
}

/* The last handle is closed just after the association has looked it up: the association fails, because no thread could
   cancel it. */
static void test_packet_is_closed_meanwhile(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    (void)state;
    packet_to_close = s.packet;
    padded_type.WaitProcedure = close_packet;
    assert_int_equal(associate(s.packet, s.port, s.target, 1, NULL), STATUS_INVALID_HANDLE);
    padded_type.WaitProcedure = NULL;
    assert_null(packet_to_close);
    assert_int_equal(packet_type->TotalNumberOfObjects, 0);
    close_handle(s.target);
    close_handle(s.port);
    expect_nothing_left();
}

/* A forked child has the association too, with its own copies of all three. */
static void test_associated_in_a_fork(void **state)
{
    scene s = make_scene(SynchronizationEvent);
    int status;
    (void)state;
    arm(s.packet, s.port, s.target, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE_IO_COMPLETION_INFORMATION information;
        KeSetEvent(s.event, 0, FALSE);
        _exit(take(s.port, &information, NULL) == STATUS_SUCCESS && is_posted(&information, 1) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_nothing(s.port);
    KeSetEvent(s.event, 0, FALSE);
    expect_packet(s.port, 1);
    end_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_once),
        WATCHED(test_already_signaled),
        WATCHED(test_in_use),
        WATCHED(test_cancel),
        WATCHED(test_checks),
        WATCHED(test_targets),
        WATCHED(test_descriptor),
        WATCHED(test_order),
        WATCHED(test_a_sleeper_gets_it),
        WATCHED(test_target_is_closed),
        WATCHED(test_port_is_closed),
        WATCHED(test_packet_is_closed),
        WATCHED(test_closing_in_every_order),
        WATCHED(test_packet_is_closed_meanwhile),
        WATCHED(test_associated_in_a_fork),
    };
    return cmocka_run_group_tests_name("nt/waitpacket", tests, NULL, NULL);
}
