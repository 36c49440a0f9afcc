/* The thread pool, new threads, and their heap use. */
#include "../bench.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "../heap.h"

#define WAITS     512
#define MOST_SEEN 64

static PTP_WORK work;
static PTP_WAIT waits[WAITS];
static HANDLE events[WAITS];
static unsigned long done;
static KEVENT gate;
static uintptr_t addresses[MOST_SEEN]; /* of the last threads */
static unsigned seen;

static VOID count_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK posted)
{
    (void)instance;
    (void)context;
    (void)posted;
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static VOID count_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)result;
    TpSetWait(wait, context, NULL);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
}

static uint64_t run_work(unsigned long count, const bench_row *row)
{
    uint64_t start;

    (void)row;
    if (work == NULL)
        TpAllocWork(&work, count_work, NULL, NULL);
    start = bench_now();
    for (unsigned long i = 0; i < count; i++)
        TpPostWork(work);
    TpWaitForWork(work, FALSE);
    return bench_now() - start;
}

static void arm_waits(unsigned number)
{
    for (unsigned i = 0; i < number && waits[i] == NULL; i++) {
        NtCreateEvent(&events[i], EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
        TpAllocWait(&waits[i], count_wait, events[i], NULL);
        TpSetWait(waits[i], events[i], NULL);
    }
}

static uint64_t run_waits(unsigned long count, const bench_row *row)
{
    unsigned long wanted = 0;
    uint64_t start;

    arm_waits(row->number);
    __atomic_store_n(&done, 0, __ATOMIC_RELAXED);
    start = bench_now();
    while (wanted < count) {
        for (unsigned i = 0; i < row->number; i++)
            NtSetEvent(events[i], NULL);
        wanted += row->number;
        while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < wanted)
            bench_yield();
    }
    start = bench_now() - start;
    return (uint64_t)((double)start * (double)count / (double)wanted);
}

static void use(void)
{
    unsigned place = __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED) % MOST_SEEN;

    addresses[place] = (uintptr_t)KeGetCurrentThread();
}

static void use_in_thread(void *unused)
{
    (void)unused;
    use();
}

static void block(void)
{
    KeWaitForSingleObject(&gate, Executive, KernelMode, FALSE, NULL);
}

static void open_gate(void)
{
    KeSetEvent(&gate, 0, FALSE);
}

BENCH_LOOP(run_thread, bench_thread_join(bench_thread_start(use_in_thread, NULL)))

/* The distance between adjacent thread structures; the first ones are in the library's static memory. */
static double size_of_thread(void)
{
    uintptr_t least = UINTPTR_MAX;

    for (unsigned i = 0; i < MOST_SEEN; i++) {
        for (unsigned j = 0; j < MOST_SEEN; j++) {
            if (addresses[j] > addresses[i] && addresses[j] - addresses[i] < least)
                least = addresses[j] - addresses[i];
        }
    }
    return (double)least;
}

static double memory_of_thread(const bench_row *row)
{
    double heap;

    (void)row;
    KeResetEvent(&gate);
    heap = bench_heap(use, block, open_gate).of_thread;
    return heap + size_of_thread();
}

static double heap_of_waiter(const bench_row *row)
{
    (void)row;
    KeResetEvent(&gate);
    return bench_heap(use, block, open_gate).of_waiter;
}

BENCH_CONTENDERS(interlock_threads, "")
{
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    bench_add_loop("pool-work", BENCH_INTERLOCK, "TpPostWork", 0, run_work);
    bench_add_loop("pool-waits", BENCH_INTERLOCK, "TpSetWait", 0, run_waits);
    bench_add_loop("new-thread", BENCH_INTERLOCK, "pthread_create, KeGetCurrentThread", 0, run_thread);
    bench_add_value("bytes-thread", BENCH_INTERLOCK, "KeGetCurrentThread", 0, memory_of_thread);
    bench_add_value("bytes-waiter", BENCH_INTERLOCK, "KeWaitForSingleObject", 0, heap_of_waiter);
}
