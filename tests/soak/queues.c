/* queues.c: kernel queues and completion ports, through which packets circulate, and wait completion packets. */
#include "soak.h"

#define PACKETS      16
#define MOST_AT_ONCE 4

/* A packet is in the queue or with one thread. */
typedef struct packet {
    LIST_ENTRY entry;
    unsigned long out; /* plain */
} packet;

static void take_out(packet *taken)
{
    require(taken->out == 0);
    taken->out = 1;
}

static void bring_back(packet *taken)
{
    require(taken->out == 1);
    taken->out = 0;
}

/* Kernel queues. */

static KQUEUE queue;
static packet queued[PACKETS];

static void queues_setup(void)
{
    KeInitializeQueue(&queue, 2);
    for (int i = 0; i < PACKETS; i++)
        KeInsertQueue(&queue, &queued[i].entry);
}

static void put_in_queue(PLIST_ENTRY entry, test_random *random)
{
    bring_back(CONTAINING_RECORD(entry, packet, entry));
    if (one_in(random, 3))
        KeInsertHeadQueue(&queue, entry);
    else
        KeInsertQueue(&queue, entry);
}

static bool is_a_packet(PLIST_ENTRY entry)
{
    ULONG_PTR status = (ULONG_PTR)entry;

    if (status == STATUS_TIMEOUT || status == STATUS_USER_APC || status == STATUS_ALERTED)
        return false;
    return true;
}

static void queues_step(test_random *random)
{
    PLIST_ENTRY entries[MOST_AT_ONCE];
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2);
    ULONG count = KeRemoveQueueEx(&queue, one_in(random, 2) ? UserMode : KernelMode, alertable, &timeout, entries,
                                  1 + random_below(random, MOST_AT_ONCE));

    require(count <= MOST_AT_ONCE);
    if (count == 1 && !is_a_packet(entries[0]))
        return;
    for (ULONG i = 0; i < count; i++)
        take_out(CONTAINING_RECORD(entries[i], packet, entry));
    if (one_in(random, 8))
        KeDelayExecutionThread(KernelMode, FALSE, &timeout); /* frees its place for another thread */
    for (ULONG i = 0; i < count; i++)
        put_in_queue(entries[i], random);
}

static void queues_check(void)
{
    PLIST_ENTRY first = KeRundownQueue(&queue), entry = first;
    unsigned found = 0;

    require(first != NULL);
    do {
        take_out(CONTAINING_RECORD(entry, packet, entry));
        found += 1;
        entry = entry->Flink;
    } while (entry != first);
    require(found == PACKETS);
}

const soak_family queues_family = {.name = "queues",
                                   .weight = 6,
                                   .without_heap = true,
                                   .setup = queues_setup,
                                   .step = queues_step,
                                   .check = queues_check};

/* Completion ports. Each packet names one of ours. */

#define PORT_KEY 77

static HANDLE port;
static packet posted[PACKETS];

static void post(packet *one)
{
    require(PostQueuedCompletionStatus(port, (DWORD)(one - posted), PORT_KEY, (LPOVERLAPPED)one));
}

static void ports_setup(void)
{
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 2);
    require(port != NULL);
    for (int i = 0; i < PACKETS; i++)
        post(&posted[i]);
}

static void remove_one(test_random *random)
{
    LPOVERLAPPED overlapped = NULL;
    ULONG_PTR key = 0;
    DWORD number = 0;
    packet *taken;

    if (!GetQueuedCompletionStatus(port, &number, &key, &overlapped, random_below(random, 3))) {
        require(overlapped == NULL && GetLastError() == WAIT_TIMEOUT);
        return;
    }
    taken = (packet *)overlapped;
    require(key == PORT_KEY && taken == &posted[number]);
    take_out(taken);
    if (one_in(random, 8))
        SleepEx(1, TRUE);
    bring_back(taken);
    post(taken);
}

static void remove_some(test_random *random)
{
    OVERLAPPED_ENTRY entries[MOST_AT_ONCE];
    BOOL alertable = one_in(random, 2);
    ULONG count = 0;

    if (!GetQueuedCompletionStatusEx(port, entries, 1 + random_below(random, MOST_AT_ONCE), &count,
                                     random_below(random, 3), alertable)) {
        require(GetLastError() == WAIT_TIMEOUT || (alertable && GetLastError() == WAIT_IO_COMPLETION));
        return;
    }
    require(count >= 1 && count <= MOST_AT_ONCE);
    for (ULONG i = 0; i < count; i++)
        take_out((packet *)entries[i].lpOverlapped);
    for (ULONG i = 0; i < count; i++) {
        bring_back((packet *)entries[i].lpOverlapped);
        post((packet *)entries[i].lpOverlapped);
    }
}

static void ports_step(test_random *random)
{
    if (one_in(random, 2))
        remove_one(random);
    else
        remove_some(random);
}

static void ports_check(void)
{
    OVERLAPPED_ENTRY entries[PACKETS + 1];
    ULONG count = 0;

    require(GetQueuedCompletionStatusEx(port, entries, PACKETS + 1, &count, 0, FALSE) && count == PACKETS);
    for (ULONG i = 0; i < count; i++)
        take_out((packet *)entries[i].lpOverlapped);
    require(CloseHandle(port));
}

const soak_family ports_family = {
    .name = "completion ports", .weight = 8, .setup = ports_setup, .step = ports_step, .check = ports_check};

/* Wait completion packets with their own objects: signaled before, after, or cancelled. */

static NTSTATUS remove_packet(HANDLE from, PLARGE_INTEGER timeout)
{
    PVOID key = NULL, context = NULL;
    IO_STATUS_BLOCK block;
    NTSTATUS status = NtRemoveIoCompletion(from, &key, &context, &block, timeout);

    if (status == STATUS_SUCCESS)
        require(key == (PVOID)1 && context == (PVOID)2 && block.Status == STATUS_PENDING && block.Information == 3);
    return status;
}

static void wait_packets_step(test_random *random)
{
    HANDLE own_port, wait_packet, event = CreateEventA(NULL, one_in(random, 2), one_in(random, 3), NULL);
    LARGE_INTEGER poll = no_time();
    BOOLEAN signaled = FALSE;

    require(event != NULL);
    require(NtCreateIoCompletion(&own_port, IO_COMPLETION_ALL_ACCESS, NULL, 0) == 0);
    require(NtCreateWaitCompletionPacket(&wait_packet, GENERIC_ALL, NULL) == 0);
    require(NtAssociateWaitCompletionPacket(wait_packet, own_port, event, (PVOID)1, (PVOID)2, STATUS_PENDING, 3,
                                            &signaled) == 0);
    if (!signaled && one_in(random, 2)) {
        require(NtCancelWaitCompletionPacket(wait_packet, FALSE) == STATUS_SUCCESS);
        require(SetEvent(event));
        require(remove_packet(own_port, &poll) == STATUS_TIMEOUT);
    } else {
        require(SetEvent(event));
        require(remove_packet(own_port, NULL) == STATUS_SUCCESS);
    }
    require(NtCancelWaitCompletionPacket(wait_packet, one_in(random, 2)) == STATUS_CANCELLED);
    require(CloseHandle(wait_packet) && CloseHandle(own_port) && CloseHandle(event));
}

const soak_family wait_packets_family = {.name = "wait packets", .weight = 4, .step = wait_packets_step};
