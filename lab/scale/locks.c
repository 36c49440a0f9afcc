/*
 * locks.c: the locks that are counted, each used as its users use it. This file is instrumented like the library, so
 * what is inline in the public headers is counted too.
 *
 * Whoever holds a lock exclusively changes a variable under it, whoever shares one reads it.
 */
#include "locks.h"

#include <ntifs.h>

#define SCALE_TAG 0x6c616353u /* "Scal" */

/* A lock of each kind, on lines of its own; pointers to those that are allocated, which nobody writes any more. */
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
    EX_RUNDOWN_REF word ON_LINES;
} rundown;

static struct {
    PEX_CACHE_AWARE_PUSH_LOCK push ON_LINES;
    PEX_PUSH_LOCK_AUTO_EXPAND growing;
    PEX_RUNDOWN_REF_CACHE_AWARE rundown;
} allocated;

scale_data data;

static void change_data(void)
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
    change_data();
    KeReleaseSpinLockFromDpcLevel(&spin.word);
}

static void round_queued_spin(void)
{
    KLOCK_QUEUE_HANDLE handle;

    count_begins();
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&spin.word, &handle);
    count_acquired();
    change_data();
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
    change_data();
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
    change_data();
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
    change_data();
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

const scale_lock scale_locks[] = {
    {.name = "spinlock", .setup = setup_spin, .round = round_spin, .at_dispatch = true},
    {.name = "queued spinlock", .setup = setup_spin, .round = round_queued_spin, .at_dispatch = true},
    {.name = "pushlock, exclusive", .setup = setup_push, .round = round_push_exclusive},
    {.name = "SRW lock, exclusive", .setup = setup_slim, .round = round_slim_exclusive},
    {.name = "cache-aware pushlock, exclusive", .setup = setup_cache_aware_push, .round = round_cache_aware_exclusive},
    {.name = "pushlock, shared", .setup = setup_push, .round = round_push_shared, .parallel = true},
    {.name = "SRW lock, shared", .setup = setup_slim, .round = round_slim_shared, .parallel = true},
    {.name = "RW spinlock, shared",
     .setup = setup_shared_spin,
     .round = round_shared_spin,
     .at_dispatch = true,
     .parallel = true},
    {.name = "ERESOURCE, shared", .setup = setup_resource, .round = round_resource_shared},
    {.name = "auto-expand pushlock, shared, new",
     .setup = setup_auto_expand,
     .round = round_auto_expand_shared,
     .first = 64},
    {.name = "auto-expand pushlock, shared, grown",
     .setup = setup_auto_expand,
     .round = round_auto_expand_shared,
     .parallel = true,
     .warm_up = 200},
    {.name = "cache-aware pushlock, shared",
     .setup = setup_cache_aware_push,
     .round = round_cache_aware_shared,
     .parallel = true},
    {.name = "rundown protection", .setup = setup_rundown, .round = round_rundown, .parallel = true},
    {.name = "cache-aware rundown protection",
     .setup = setup_cache_aware_rundown,
     .round = round_cache_aware_rundown,
     .parallel = true},
};
const size_t scale_lock_count = sizeof(scale_locks) / sizeof(scale_locks[0]);
