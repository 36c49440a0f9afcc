/* Wait completion packets: a signal posts one packet, or a cancel came first; exactly one of the two. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

static HANDLE port, packet, second_packet, event;
static NTSTATUS cancelled, removed;
static BOOLEAN already;

static void create(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
    LabAssert(NtCreateWaitCompletionPacket(&packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) == STATUS_SUCCESS);
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
}

static NTSTATUS associate(HANDLE which)
{
    return NtAssociateWaitCompletionPacket(which, port, event, ULongToPtr(7), NULL, STATUS_SUCCESS, 0, &already);
}

static void setup(void)
{
    create();
    LabAssert(associate(packet) == STATUS_SUCCESS && !already);
}

static void setup_two(void)
{
    setup();
    LabAssert(NtCreateWaitCompletionPacket(&second_packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) == STATUS_SUCCESS);
    LabAssert(associate(second_packet) == STATUS_SUCCESS);
}

static NTSTATUS take(LONGLONG timeout)
{
    LARGE_INTEGER time = {.QuadPart = timeout};
    PVOID key, context;
    IO_STATUS_BLOCK block;
    NTSTATUS status = NtRemoveIoCompletion(port, &key, &context, &block, &time);
    LabAssert(status != STATUS_SUCCESS || PtrToUlong(key) == 7);
    return status;
}

static LONG depth(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), NULL);
    return information.Depth;
}

static LONG event_state(void)
{
    EVENT_BASIC_INFORMATION information = {0};
    LabAssert(NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL) == STATUS_SUCCESS);
    return information.EventState;
}

static void setter(void)
{
    LabAssert(NtSetEvent(event, NULL) == STATUS_SUCCESS);
}

static void associator(void)
{
    LabAssert(associate(packet) == STATUS_SUCCESS);
}

static void posted_once(void)
{
    LabAssert(depth() == 1 && event_state() == 0);
}

static void posted_twice(void)
{
    LabAssert(depth() == 2 && event_state() == 0);
}
LAB_SCENARIO(wait_packet_associate, .Setup = create, .Threads = {associator, setter}, .Finish = posted_once);
LAB_SCENARIO(wait_packet_two, .Setup = setup_two, .Threads = {setter, setter}, .Finish = posted_twice);

/* Cancelled before the signal, or the packet is queued. */
static void canceller(void)
{
    cancelled = NtCancelWaitCompletionPacket(packet, FALSE);
}

static void cancelled_or_posted(void)
{
    LabAssert(cancelled == STATUS_SUCCESS || cancelled == STATUS_PENDING);
    LabAssert(depth() == (cancelled == STATUS_PENDING) && event_state() == (cancelled == STATUS_SUCCESS));
}
LAB_SCENARIO(wait_packet_cancel, .Setup = setup, .Threads = {setter, canceller}, .Finish = cancelled_or_posted);

/* With removal also after the signal, as long as the packet was not removed. */
static void remover(void)
{
    removed = take(-10000);
}

static void removing_canceller(void)
{
    cancelled = NtCancelWaitCompletionPacket(packet, TRUE);
    if (cancelled == STATUS_SUCCESS)
        LabAssert(associate(packet) == STATUS_SUCCESS); /* it is idle at once */
}

static void cancelled_at_once(void)
{
    LabAssert(cancelled == STATUS_SUCCESS && depth() + event_state() <= 1);
}
LAB_SCENARIO(wait_packet_cancel_removes, .Setup = setup, .Threads = {setter, removing_canceller},
             .Finish = cancelled_at_once);

/* The same while the port itself is waited for, together with another object that is busy at that moment. */
static HANDLE other;

static void setup_other(void)
{
    LabAssert(NtCreateEvent(&other, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
    setup(); /* the port at a higher address: a thread that has it locked does not wait for the other's lock */
}

static void wait_for_port_and_other(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    HANDLE both[2] = {port, other};
    NtWaitForMultipleObjects(2, both, WaitAll, FALSE, &timeout);
}

static void touch_other(void)
{
    NtSetEvent(other, NULL);
}

static void lone_canceller(void)
{
    cancelled = NtCancelWaitCompletionPacket(packet, TRUE);
    LabAssert(cancelled == STATUS_SUCCESS && depth() == 0);
}
LAB_SCENARIO(wait_packet_cancel_wait_all, .Setup = setup_other,
             .Threads = {setter, lone_canceller, wait_for_port_and_other, touch_other}, .Timeouts = 1,
             .Flags = LAB_LARGE);

static void plain_removing_canceller(void)
{
    cancelled = NtCancelWaitCompletionPacket(packet, TRUE);
}

/* STATUS_CANCELLED: it was removed, so there was nothing left to cancel. */
static void cancelled_or_removed(void)
{
    LabAssert(depth() == 0);
    LabAssert(removed == STATUS_SUCCESS || removed == STATUS_TIMEOUT);
    LabAssert((cancelled == STATUS_SUCCESS) == (removed == STATUS_TIMEOUT));
}
LAB_SCENARIO(wait_packet_cancel_or_remove, .Setup = setup, .Threads = {setter, plain_removing_canceller, remover},
             .Finish = cancelled_or_removed, .Timeouts = 1, .Flags = LAB_LARGE);

/* The thread that has removed the packet may reuse it at once, whatever the signaler is still doing. */
static void remove_and_associate(void)
{
    while (take(-10000) != STATUS_SUCCESS)
        ;
    LabAssert(associate(packet) == STATUS_SUCCESS);
}
LAB_SCENARIO(wait_packet_again, .Setup = setup, .Threads = {setter, remove_and_associate, setter},
             .Finish = posted_once, .Timeouts = 1, .Flags = LAB_LARGE);

/* Everything is closed while the signal is in flight: it finds all that it needs, and nothing leaks. */
static void set_if_there(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    NTSTATUS status = NtSetEvent(event, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void close_packet_and_port(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    LabAssert(NtClose(packet) == STATUS_SUCCESS);
    LabAssert(NtClose(port) == STATUS_SUCCESS);
}

static void close_port_and_event(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    LabAssert(NtClose(port) == STATUS_SUCCESS);
    LabAssert(NtClose(event) == STATUS_SUCCESS);
}

static void signal_against(void (*closer)(void *), HANDLE *left)
{
    setup();
    unsigned signaler = LabSpawn(set_if_there, NULL);
    unsigned second = LabSpawn(closer, NULL);
    LabJoin(signaler);
    LabJoin(second);
    LabAssert(NtClose(*left) == STATUS_SUCCESS);
}

/* The handle table is allocated for the first handle and stays. */
static void setup_table(void)
{
    setup();
    NtClose(packet);
    NtClose(port);
    NtClose(event);
}

static void packet_and_port_go(void)
{
    signal_against(close_packet_and_port, &event);
}

static void port_and_event_go(void)
{
    signal_against(close_port_and_event, &packet);
}
LAB_SCENARIO(wait_packet_closed, .Setup = setup_table, .Threads = {packet_and_port_go}, .Flags = LAB_CHECK_LEAKS);
LAB_SCENARIO(wait_packet_port_closed, .Setup = setup_table, .Threads = {port_and_event_go}, .Flags = LAB_CHECK_LEAKS);
