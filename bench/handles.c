/* What it costs to go through a handle: waits, completion ports, wait completion packets. */
#include "harness.h"

#include <pthread.h>

#include <interlock/nt.h>

#define MANY 64
#define BATCH 64

static HANDLE event, notification, port, packet, ports[2];
static HANDLE many[MANY];
static KEVENT kernel_event;
static FILE_IO_COMPLETION_INFORMATION taken[BATCH];
static LARGE_INTEGER no_time;

static void post(HANDLE to)
{
    NtSetIoCompletion(to, NULL, NULL, STATUS_SUCCESS, 0);
}

static void get(HANDLE from)
{
    PVOID key, context;
    IO_STATUS_BLOCK status;

    NtRemoveIoCompletion(from, &key, &context, &status, NULL);
}

static void associate(void)
{
    NtAssociateWaitCompletionPacket(packet, port, event, NULL, NULL, STATUS_SUCCESS, 0, NULL);
}

static void post_and_get_batch(void)
{
    ULONG removed;

    for (unsigned i = 0; i < BATCH; i++)
        post(port);
    NtRemoveIoCompletionEx(port, taken, BATCH, &removed, NULL, FALSE);
}

BENCH_LOOP(run_kernel, KeSetEvent(&kernel_event, 0, FALSE);
           KeWaitForSingleObject(&kernel_event, Executive, KernelMode, FALSE, NULL))
BENCH_LOOP(run_set, NtSetEvent(event, NULL))
BENCH_LOOP(run_wait, NtWaitForSingleObject(notification, FALSE, NULL))
BENCH_LOOP(run_poll, NtWaitForSingleObject(many[0], FALSE, &no_time))
BENCH_LOOP(run_set_wait, NtSetEvent(event, NULL); NtWaitForSingleObject(event, FALSE, NULL))
BENCH_LOOP(run_any, NtWaitForMultipleObjects(MANY, many, WaitAny, FALSE, &no_time))
BENCH_LOOP(run_signal_and_wait, NtSignalAndWaitForSingleObject(event, event, FALSE, NULL))
BENCH_LOOP(run_port, post(port); get(port))
BENCH_LOOP(run_batch, post_and_get_batch())
BENCH_LOOP(run_packet, associate(); NtSetEvent(event, NULL); get(port))
BENCH_LOOP(run_cancel, associate(); NtCancelWaitCompletionPacket(packet, FALSE))

static const bench_row rows[] = {
    {"KeSetEvent, satisfied KeWaitForSingleObject", run_kernel, NULL, 0},
    {"NtSetEvent, no waiters", run_set, NULL, 0},
    {"NtWaitForSingleObject, satisfied", run_wait, NULL, 0},
    {"NtWaitForSingleObject, poll that fails", run_poll, NULL, 0},
    {"NtSetEvent, satisfied NtWaitForSingleObject", run_set_wait, NULL, 40},
    {"NtWaitForMultipleObjects, poll of 64", run_any, NULL, 0},
    {"NtSignalAndWaitForSingleObject, one event", run_signal_and_wait, NULL, 0},
    {"NtSetIoCompletion, NtRemoveIoCompletion", run_port, NULL, 70},
    {"64 packets set, removed at once", run_batch, NULL, 0},
    {"wait packet: associate, set event, remove", run_packet, NULL, 0},
    {"wait packet: associate, cancel", run_cancel, NULL, 0},
};

static void *answer(void *argument)
{
    unsigned long count = *(unsigned long *)argument;

    bench_bind(1);
    for (unsigned long round = 0; round < count; round++) {
        get(ports[0]);
        post(ports[1]);
    }
    return NULL;
}

static void *consume(void *argument)
{
    unsigned long count = *(unsigned long *)argument;

    bench_bind(1);
    for (unsigned long round = 0; round < count; round++)
        get(ports[0]);
    return NULL;
}

static uint64_t run_there_and_back(unsigned long count, void *argument)
{
    pthread_t other;

    (void)argument;
    pthread_create(&other, NULL, answer, &count);
    uint64_t start = bench_nanoseconds();
    for (unsigned long round = 0; round < count; round++) {
        post(ports[0]);
        get(ports[1]);
    }
    start = bench_nanoseconds() - start;
    pthread_join(other, NULL);
    return start;
}

static uint64_t run_stream(unsigned long count, void *argument)
{
    pthread_t other;

    (void)argument;
    pthread_create(&other, NULL, consume, &count);
    uint64_t start = bench_nanoseconds();
    for (unsigned long round = 0; round < count; round++)
        post(ports[0]);
    pthread_join(other, NULL);
    return bench_nanoseconds() - start;
}

static const bench_row pairs[] = {
    {"a packet there, one back", run_there_and_back, NULL, 0},
    {"one thread posts, the other gets", run_stream, NULL, 0},
};

static void initialize(void)
{
    NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    NtCreateEvent(&notification, EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE);
    for (unsigned i = 0; i < MANY; i++)
        NtCreateEvent(&many[i], EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1);
    NtCreateIoCompletion(&ports[0], IO_COMPLETION_ALL_ACCESS, NULL, 1);
    NtCreateIoCompletion(&ports[1], IO_COMPLETION_ALL_ACCESS, NULL, 1);
    NtCreateWaitCompletionPacket(&packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL);
    KeInitializeEvent(&kernel_event, SynchronizationEvent, FALSE);
}

int main(int argc, char **argv)
{
    bench_begin();
    initialize();
    if (bench_counts(argc, argv, rows, ARRAYSIZE(rows)))
        return 0;
    bench_bind(0);
    bench_table("By handle, one thread", rows, ARRAYSIZE(rows));
    if (bench_processors() > 1)
        bench_table("Two threads, each on a processor of its own", pairs, ARRAYSIZE(pairs));
    return 0;
}
