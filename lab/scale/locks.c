/*
 * locks.c: the locks that are counted, each in its typical use. This file is instrumented like the library, so what is
 * inline in the public headers is counted too.
 *
 * An exclusive owner changes a variable under the lock, a sharer reads it.
 */
#include "locks.h"

#include <ntifs.h>

#define SCALE_TAG 0x6c616353u /* "Scal" */

/* A lock of each kind, on lines of its own; pointers to those that are allocated, which are no longer written. */
#define ON_LINES __attribute__((aligned(64)))

static struct {
    KSPIN_LOCK word ON_LINES;
} spin;

static struct {
    EX_SPIN_LOCK word ON_LINES;
} shared_spin;

static struct {
    EX_PUSH_LOCK word ON_LINES;
} push;

static struct {
    RTL_SRWLOCK word ON_LINES;
} slim;

static struct {
    ERESOURCE resource ON_LINES;
} resource;

static struct {
    RTL_CRITICAL_SECTION section ON_LINES;
} critical;

static struct {
    FAST_MUTEX mutex ON_LINES;
} fast;

static struct {
    KMUTANT mutant ON_LINES;
} mutant;

static struct {
    EX_RUNDOWN_REF word ON_LINES;
} rundown;

static struct {
    PEX_CACHE_AWARE_PUSH_LOCK push ON_LINES;
    PEX_PUSH_LOCK_AUTO_EXPAND growing;
    PEX_RUNDOWN_REF_CACHE_AWARE rundown;
} allocated;

scale_data data;

void count_change_data(void)
{
    data.value += 1;
    count_holds();
}

static void read_data(void)
{
    (void)*(volatile ULONG *)&data.value;
    count_holds();
}

/* Spinlocks, by threads that stay at DISPATCH_LEVEL. */

static void setup_spin(void)
{
    KeInitializeSpinLock(&spin.word);
    count_lock(&spin, sizeof(spin));
}

static void round_spin(void)
{
    count_begins();
    KeAcquireSpinLockAtDpcLevel(&spin.word);
    count_acquired();
    count_change_data();
    KeReleaseSpinLockFromDpcLevel(&spin.word);
}

static void round_queued_spin(void)
{
    KLOCK_QUEUE_HANDLE handle;

    count_begins();
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&spin.word, &handle);
    count_acquired();
    count_change_data();
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
}

static void setup_shared_spin(void)
{
    shared_spin.word = 0;
    count_lock(&shared_spin, sizeof(shared_spin));
}

static void round_shared_spin(void)
{
    count_begins();
    ExAcquireSpinLockSharedAtDpcLevel(&shared_spin.word);
    count_acquired();
    read_data();
    ExReleaseSpinLockSharedFromDpcLevel(&shared_spin.word);
}

static void round_exclusive_spin(void)
{
    count_begins();
    ExAcquireSpinLockExclusiveAtDpcLevel(&shared_spin.word);
    count_acquired();
    count_change_data();
    ExReleaseSpinLockExclusiveFromDpcLevel(&shared_spin.word);
}

/* Pushlocks. */

static void setup_push(void)
{
    ExInitializePushLock(&push.word);
    count_lock(&push, sizeof(push));
}

static void round_push_exclusive(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquirePushLockExclusive(&push.word);
    count_acquired();
    count_change_data();
    ExReleasePushLockExclusive(&push.word);
    KeLeaveCriticalRegion();
}

static void round_push_shared(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquirePushLockShared(&push.word);
    count_acquired();
    read_data();
    ExReleasePushLockShared(&push.word);
    KeLeaveCriticalRegion();
}

static void setup_cache_aware_push(void)
{
    allocated.push = ExAllocateCacheAwarePushLock();
}

static void round_cache_aware_shared(void)
{
    KeEnterCriticalRegion();
    count_begins();
    PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(allocated.push);
    count_acquired();
    read_data();
    ExReleaseCacheAwarePushLockShared(held);
    KeLeaveCriticalRegion();
}

static void round_cache_aware_exclusive(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquireCacheAwarePushLockExclusive(allocated.push);
    count_acquired();
    count_change_data();
    ExReleaseCacheAwarePushLockExclusive(allocated.push);
    KeLeaveCriticalRegion();
}

static void setup_auto_expand(void)
{
    allocated.growing = ExAllocateAutoExpandPushLock(0);
}

static void round_auto_expand_shared(void)
{
    KeEnterCriticalRegion();
    count_begins();
    PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(allocated.growing, 0);
    count_acquired();
    read_data();
    ExReleaseAutoExpandPushLockShared(allocated.growing, held, 0);
    KeLeaveCriticalRegion();
}

static void round_auto_expand_exclusive(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquireAutoExpandPushLockExclusive(allocated.growing, 0);
    count_acquired();
    count_change_data();
    ExReleaseAutoExpandPushLockExclusive(allocated.growing, 0);
    KeLeaveCriticalRegion();
}

/* Rundown protection. */

static void setup_rundown(void)
{
    ExInitializeRundownProtection(&rundown.word);
    count_lock(&rundown, sizeof(rundown));
}

static void round_rundown(void)
{
    count_begins();
    if (ExAcquireRundownProtection(&rundown.word)) {
        count_acquired();
        read_data();
        ExReleaseRundownProtection(&rundown.word);
    }
}

static void setup_cache_aware_rundown(void)
{
    allocated.rundown = ExAllocateCacheAwareRundownProtection(NonPagedPool, SCALE_TAG);
}

static void round_cache_aware_rundown(void)
{
    count_begins();
    if (ExAcquireRundownProtectionCacheAware(allocated.rundown)) {
        count_acquired();
        read_data();
        ExReleaseRundownProtectionCacheAware(allocated.rundown);
    }
}

/* Others. */

static void setup_resource(void)
{
    ExInitializeResourceLite(&resource.resource);
    count_lock(&resource, sizeof(resource));
}

static void round_resource_shared(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquireResourceSharedLite(&resource.resource, TRUE);
    count_acquired();
    read_data();
    ExReleaseResourceLite(&resource.resource);
    KeLeaveCriticalRegion();
}

static void round_resource_exclusive(void)
{
    KeEnterCriticalRegion();
    count_begins();
    ExAcquireResourceExclusiveLite(&resource.resource, TRUE);
    count_acquired();
    count_change_data();
    ExReleaseResourceLite(&resource.resource);
    KeLeaveCriticalRegion();
}

static void setup_critical(void)
{
    RtlInitializeCriticalSection(&critical.section);
    count_lock(&critical, sizeof(critical));
}

static void round_critical(void)
{
    count_begins();
    RtlEnterCriticalSection(&critical.section);
    count_acquired();
    count_change_data();
    RtlLeaveCriticalSection(&critical.section);
}

static void setup_fast(void)
{
    ExInitializeFastMutex(&fast.mutex);
    count_lock(&fast, sizeof(fast));
}

static void round_fast(void)
{
    count_begins();
    ExAcquireFastMutex(&fast.mutex);
    count_acquired();
    count_change_data();
    ExReleaseFastMutex(&fast.mutex);
}

static void setup_mutant(void)
{
    KeInitializeMutant(&mutant.mutant, FALSE);
    count_lock(&mutant, sizeof(mutant));
}

static void round_mutant(void)
{
    count_begins();
    KeWaitForSingleObject(&mutant.mutant, Executive, KernelMode, FALSE, NULL);
    count_acquired();
    count_change_data();
    KeReleaseMutant(&mutant.mutant, 0, FALSE, FALSE);
}

static void setup_slim(void)
{
    RtlInitializeSRWLock(&slim.word);
    count_lock(&slim, sizeof(slim));
}

static void round_slim_exclusive(void)
{
    count_begins();
    RtlAcquireSRWLockExclusive(&slim.word);
    count_acquired();
    count_change_data();
    RtlReleaseSRWLockExclusive(&slim.word);
}

static void round_slim_shared(void)
{
    count_begins();
    RtlAcquireSRWLockShared(&slim.word);
    count_acquired();
    read_data();
    RtlReleaseSRWLockShared(&slim.word);
}

#define REFERENCE(named, rounds)                                                                                       \
    {                                                                                                                  \
        .name = named, .setup = setup_references, .round = rounds, .reference = true                                   \
    }
#define EXCLUSIVE(named, sets, rounds)                                                                                 \
    {                                                                                                                  \
        .name = named, .setup = sets, .round = rounds                                                                  \
    }
#define SHARED(named, sets, rounds, ...)                                                                               \
    {                                                                                                                  \
        .name = named, .group = GROUP_SHARED, .setup = sets, .round = rounds, __VA_ARGS__                              \
    }
#define OBJECT(named, sets, rounds, ...)                                                                               \
    {                                                                                                                  \
        .name = named, .group = GROUP_OBJECTS, .setup = sets, .round = rounds, __VA_ARGS__                             \
    }

#define MOST_WORKERS 520 /* of the default pool, and the clock */

const scale_lock scale_locks[] = {
    REFERENCE("compare-exchange lock (reference)", round_compare_exchange),
    REFERENCE("ticket lock (reference)", round_ticket),
    REFERENCE("MCS lock (reference)", round_mcs),
    REFERENCE("cohort lock (reference)", round_cohort),
    {.name = "spinlock", .setup = setup_spin, .round = round_spin, .at_dispatch = true},
    {.name = "queued spinlock", .setup = setup_spin, .round = round_queued_spin, .at_dispatch = true},
    {.name = "RW spinlock, exclusive", .setup = setup_shared_spin, .round = round_exclusive_spin, .at_dispatch = true},
    EXCLUSIVE("pushlock, exclusive", setup_push, round_push_exclusive),
    EXCLUSIVE("SRW lock, exclusive", setup_slim, round_slim_exclusive),
    EXCLUSIVE("critical section", setup_critical, round_critical),
    EXCLUSIVE("fast mutex", setup_fast, round_fast),
    EXCLUSIVE("mutant", setup_mutant, round_mutant),
    EXCLUSIVE("ERESOURCE, exclusive", setup_resource, round_resource_exclusive),
    EXCLUSIVE("cache-aware pushlock, exclusive", setup_cache_aware_push, round_cache_aware_exclusive),
    EXCLUSIVE("auto-expand pushlock, exclusive", setup_auto_expand, round_auto_expand_exclusive),
    SHARED("pushlock, shared", setup_push, round_push_shared, .parallel = true),
    SHARED("SRW lock, shared", setup_slim, round_slim_shared, .parallel = true),
    SHARED("RW spinlock, shared", setup_shared_spin, round_shared_spin, .at_dispatch = true, .parallel = true),
    SHARED("ERESOURCE, shared", setup_resource, round_resource_shared, .parallel = false),
    SHARED("auto-expand pushlock, shared, new", setup_auto_expand, round_auto_expand_shared, .first = 64),
    SHARED("auto-expand pushlock, shared, grown", setup_auto_expand, round_auto_expand_shared, .parallel = true,
           .warm_up = 200),
    SHARED("cache-aware pushlock, shared", setup_cache_aware_push, round_cache_aware_shared, .parallel = true),
    SHARED("rundown protection", setup_rundown, round_rundown, .parallel = true),
    SHARED("cache-aware rundown protection", setup_cache_aware_rundown, round_cache_aware_rundown, .parallel = true),
    OBJECT("SLIST: push, pop", setup_list, round_list, .parallel = false),
    OBJECT("KQUEUE: insert, remove", setup_queue, round_queue, .library_threads = 1),
    OBJECT("completion port: post, get", setup_port, round_port, .library_threads = 1),
    OBJECT("thread pool: a work item", setup_pool, round_pool, .warm_up = 4, .library_threads = MOST_WORKERS),
    OBJECT("timer: set, cancel", setup_timers, round_timers, .parallel = true, .library_threads = 1),
};
const size_t scale_lock_count = sizeof(scale_locks) / sizeof(scale_locks[0]);
