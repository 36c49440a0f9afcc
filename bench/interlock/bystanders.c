/* Operations beside many waiting threads that they do not wake: the cost must not depend on the number of waiters. */
#include "../bench.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#define MOST_BYSTANDERS 4000
#define WORDS 4096
#define SETTLE_MILLISECONDS 50

static KEVENT shared, own[MOST_BYSTANDERS];
static HANDLE port;
static ULONG places[MOST_BYSTANDERS][16], words[WORDS];
static bench_thread *crowd[MOST_BYSTANDERS];
static unsigned arrived;

static void arrive(void)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

static void wait_for_shared_and_own(void *argument)
{
    PVOID objects[] = {&shared, argument};

    arrive();
    KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
}

static void get_packet(void *argument)
{
    PVOID key, context;
    IO_STATUS_BLOCK status;

    (void)argument;
    arrive();
    NtRemoveIoCompletion(port, &key, &context, &status, NULL);
}

static void wait_at_place(void *argument)
{
    ULONG nothing = 0;

    arrive();
    while (__atomic_load_n((ULONG *)argument, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(argument, &nothing, sizeof(nothing), NULL);
}

/* Returns when they appear to be asleep. */
static void gather(unsigned count, void (*function)(void *), void *arguments, size_t size)
{
    arrived = 0;
    for (unsigned i = 0; i < count; i++)
        crowd[i] = bench_thread_start(function, (char *)arguments + i * size);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < count)
        bench_sleep(1);
    if (count != 0)
        bench_sleep(SETTLE_MILLISECONDS);
}

static void disperse(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bench_thread_join(crowd[i]);
}

static void gather_at_events(unsigned count)
{
    KeInitializeEvent(&shared, NotificationEvent, FALSE);
    for (unsigned i = 0; i < count; i++)
        KeInitializeEvent(&own[i], NotificationEvent, FALSE);
    gather(count, wait_for_shared_and_own, own, sizeof(own[0]));
}

static void disperse_from_events(unsigned count)
{
    KeSetEvent(&shared, 0, FALSE);
    for (unsigned i = 0; i < count; i++)
        KeSetEvent(&own[i], 0, FALSE);
    disperse(count);
}

static void post(void)
{
    NtSetIoCompletion(port, NULL, NULL, STATUS_SUCCESS, 0);
}

static void get(void)
{
    get_packet(NULL);
}

/* The caller is the one thread that may run. */
static void gather_at_port(unsigned count)
{
    NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1);
    post();
    get();
    gather(count, get_packet, own, 0);
}

static void disperse_from_port(unsigned count)
{
    NtClose(port);
    disperse(count);
}

static void gather_at_places(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        places[i][0] = 0;
    gather(count, wait_at_place, places, sizeof(places[0]));
}

static void disperse_from_places(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        __atomic_store_n(&places[i][0], 1, __ATOMIC_RELEASE);
        RtlWakeAddressAll(&places[i][0]);
    }
    disperse(count);
}

BENCH_LOOP_WITHIN(run_set_shared, gather_at_events(row->number), KeSetEvent(&shared, 0, FALSE); KeResetEvent(&shared),
                  disperse_from_events(row->number))
BENCH_LOOP_WITHIN(run_post_at_limit, gather_at_port(row->number), post(); get(), disperse_from_port(row->number))
BENCH_LOOP_WITHIN(run_wake_elsewhere, gather_at_places(row->number), RtlWakeAddressSingle(&words[round % WORDS]),
                  disperse_from_places(row->number))

BENCH_CONTENDERS(interlock_bystanders, "")
{
    bench_add_loop("all-bystanders", BENCH_INTERLOCK, "KeSetEvent, KeResetEvent", 0, run_set_shared);
    bench_add_loop("port-bystanders", BENCH_INTERLOCK, "NtSetIoCompletion, NtRemoveIoCompletion", 0, run_post_at_limit);
    bench_add_loop("wake-bystanders", BENCH_INTERLOCK, "RtlWakeAddressSingle", 0, run_wake_elsewhere);
}
