/* Queues, completion ports, interlocked lists, references. */
#include "../bench.h"

#include <interlock/ex.h>
#include <interlock/nt.h>

static KQUEUE queue, own_queue; /* a thread that has taken something from a queue belongs to it: the loop has its own */
static HANDLE port, own_port, packet, event;
static SLIST_HEADER list;
static bench_item one;
static EX_RUNDOWN_REF rundown;
static PEX_RUNDOWN_REF_CACHE_AWARE cache_aware;
static EX_FAST_REF fast_reference;
static PVOID referenced[2] __attribute__((aligned(16)));

static void put(bench_item *item)
{
    KeInsertQueue(&queue, (PLIST_ENTRY)item);
}

static bench_item *get(void)
{
    return (bench_item *)KeRemoveQueue(&queue, KernelMode, NULL);
}

static inline void post_to(HANDLE to, bench_item *item)
{
    NtSetIoCompletion(to, item, NULL, STATUS_SUCCESS, 0);
}

static inline bench_item *remove_from(HANDLE from)
{
    PVOID key = NULL, context;
    IO_STATUS_BLOCK status;

    NtRemoveIoCompletion(from, &key, &context, &status, NULL);
    return key;
}

static void post(bench_item *item)
{
    post_to(port, item);
}

static bench_item *remove_packet(void)
{
    return remove_from(port);
}

static void associate(void)
{
    NtAssociateWaitCompletionPacket(packet, own_port, event, NULL, NULL, STATUS_SUCCESS, 0, NULL);
}

BENCH_LOOP(run_queue, KeInsertQueue(&own_queue, (PLIST_ENTRY)&one); KeRemoveQueue(&own_queue, KernelMode, NULL))
BENCH_LOOP(run_port, post_to(own_port, &one); remove_from(own_port))
BENCH_LOOP(run_packet, associate(); NtSetEvent(event, NULL); remove_from(own_port))
BENCH_LOOP(run_cancel, associate(); NtCancelWaitCompletionPacket(packet, FALSE))
BENCH_STACK(run_list, work_list, InterlockedPushEntrySList(&list, (PSLIST_ENTRY)item),
            (bench_item *)InterlockedPopEntrySList(&list))
BENCH_LOOP(run_rundown, ExAcquireRundownProtection(&rundown); ExReleaseRundownProtection(&rundown))
BENCH_LOOP(run_cache_aware, ExAcquireRundownProtectionCacheAware(cache_aware);
           ExReleaseRundownProtectionCacheAware(cache_aware))
BENCH_LOOP(run_fast_reference, ExAcquireFastReference(&fast_reference);
           ExReleaseFastReference(&fast_reference, referenced))

static void initialize(void)
{
    KeInitializeQueue(&queue, 0);
    KeInitializeQueue(&own_queue, 0);
    NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    NtCreateIoCompletion(&own_port, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    NtCreateWaitCompletionPacket(&packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL);
    NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    InitializeSListHead(&list);
    ExInitializeRundownProtection(&rundown);
    cache_aware = ExAllocateCacheAwareRundownProtection(NonPagedPoolNx, 0x68636E42);
    if (cache_aware == NULL)
        bench_fail("rundown protection");
    ExInitializeFastReference(&fast_reference, referenced);
}

BENCH_CONTENDERS(interlock_queues, "")
{
    initialize();
    bench_add_loop("queue", BENCH_INTERLOCK, "KQUEUE", 0, run_queue);
    bench_add_stream("queue", BENCH_INTERLOCK, "KQUEUE", put, get);
    bench_add_loop("port", BENCH_INTERLOCK, "by handle", 0, run_port);
    bench_add_stream("port", BENCH_INTERLOCK, "by handle", post, remove_packet);
    bench_add_loop("packet", BENCH_INTERLOCK, "associate, set the event, remove", 0, run_packet);
    bench_add_loop("packet", BENCH_INTERLOCK, "associate, cancel", 0, run_cancel);
    bench_add_loop("stack", BENCH_INTERLOCK, "SLIST_HEADER", 0, run_list);
    bench_add_contended("stack", BENCH_INTERLOCK, "SLIST_HEADER", work_list);
    bench_add_loop("reference", BENCH_INTERLOCK, "rundown protection", 13.5, run_rundown);
    bench_add_loop("reference", BENCH_INTERLOCK, "cache-aware rundown protection", 12, run_cache_aware);
    bench_add_loop("reference", BENCH_INTERLOCK, "fast reference", 13.5, run_fast_reference);
}
