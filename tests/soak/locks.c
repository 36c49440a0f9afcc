/* locks.c: pushlocks of four kinds, resources, fast and guarded mutexes. */
#include "soak.h"

static EX_PUSH_LOCK pushlock;
static soak_cell pushlock_cell;

static void shared_pushlock(test_random *random)
{
    if (one_in(random, 4)) {
        if (!ExTryAcquirePushLockShared(&pushlock))
            return;
    } else {
        ExAcquirePushLockShared(&pushlock);
    }
    read_cell(&pushlock_cell, random);
    if (one_in(random, 4) && ExTryConvertPushLockSharedToExclusive(&pushlock)) {
        change_cell(&pushlock_cell, random);
        ExReleasePushLockExclusive(&pushlock);
    } else {
        ExReleasePushLockShared(&pushlock);
    }
}

static void exclusive_pushlock(test_random *random)
{
    if (one_in(random, 4)) {
        if (!ExTryAcquirePushLockExclusive(&pushlock))
            return;
    } else {
        ExAcquirePushLockExclusive(&pushlock);
    }
    change_cell(&pushlock_cell, random);
    if (one_in(random, 4)) {
        ExConvertPushLockExclusiveToShared(&pushlock);
        read_cell(&pushlock_cell, random);
        ExReleasePushLockShared(&pushlock);
    } else {
        ExReleasePushLock(&pushlock);
    }
}

static void pushlocks_step(test_random *random)
{
    KeEnterCriticalRegion();
    if (one_in(random, 2))
        shared_pushlock(random);
    else
        exclusive_pushlock(random);
    KeLeaveCriticalRegion();
}

static void pushlocks_check(void)
{
    require(pushlock == 0 && pushlock_cell.first == pushlock_cell.second);
}

const soak_family pushlocks_family = {
    .name = "pushlocks", .weight = 8, .without_heap = true, .step = pushlocks_step, .check = pushlocks_check};

/* Cache-aware. */

static PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
static soak_cell cache_aware_cell;

static void cache_aware_setup(void)
{
    cache_aware = ExAllocateCacheAwarePushLock();
    require(cache_aware != NULL);
}

static void cache_aware_step(test_random *random)
{
    KeEnterCriticalRegion();
    if (one_in(random, 3)) {
        ExAcquireCacheAwarePushLockExclusive(cache_aware);
        change_cell(&cache_aware_cell, random);
        ExReleaseCacheAwarePushLockExclusive(cache_aware);
    } else {
        PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(cache_aware);

        read_cell(&cache_aware_cell, random);
        ExReleaseCacheAwarePushLockShared(held);
    }
    KeLeaveCriticalRegion();
}

static void cache_aware_check(void)
{
    ExFreeCacheAwarePushLock(cache_aware);
}

const soak_family cache_aware_family = {.name = "cache-aware pushlocks",
                                        .weight = 4,
                                        .without_heap = true,
                                        .setup = cache_aware_setup,
                                        .step = cache_aware_step,
                                        .check = cache_aware_check};

/* Auto-expand. */

static PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;
static soak_cell auto_expand_cell;

static void auto_expand_setup(void)
{
    auto_expand = ExAllocateAutoExpandPushLock(0);
    require(auto_expand != NULL);
}

static void auto_expand_step(test_random *random)
{
    KeEnterCriticalRegion();
    if (one_in(random, 4)) {
        ExAcquireAutoExpandPushLockExclusive(auto_expand, 0);
        change_cell(&auto_expand_cell, random);
        ExReleaseAutoExpandPushLockExclusive(auto_expand, 0);
    } else {
        PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(auto_expand, 0);

        read_cell(&auto_expand_cell, random);
        ExReleaseAutoExpandPushLockShared(auto_expand, held, 0);
    }
    KeLeaveCriticalRegion();
}

static void auto_expand_check(void)
{
    ExFreeAutoExpandPushLock(auto_expand);
}

const soak_family auto_expand_family = {.name = "auto-expand pushlocks",
                                        .weight = 4,
                                        .without_heap = true,
                                        .setup = auto_expand_setup,
                                        .step = auto_expand_step,
                                        .check = auto_expand_check};

/* Address-based: a lock made of a word and the list of its waiters. */

static EX_PUSH_LOCK address_list;
static volatile ULONG address_word;
static soak_cell address_cell;

static void wait_for_word(test_random *random)
{
    ULONG taken = 1;
    LARGE_INTEGER timeout = in_microseconds(random_below(random, 3000));
    NTSTATUS status = ExBlockOnAddressPushLock(&address_list, (PVOID)&address_word, &taken, sizeof(taken),
                                               one_in(random, 4) ? &timeout : NULL);

    require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
}

static void address_pushlocks_step(test_random *random)
{
    KeEnterCriticalRegion();
    while (__atomic_exchange_n(&address_word, 1, __ATOMIC_SEQ_CST) != 0)
        wait_for_word(random);
    change_cell(&address_cell, random);
    __atomic_store_n(&address_word, 0, __ATOMIC_SEQ_CST);
    ExUnblockOnAddressPushLock(&address_list, (PVOID)&address_word);
    KeLeaveCriticalRegion();
}

static void address_pushlocks_check(void)
{
    require(address_list == 0 && address_word == 0);
}

const soak_family address_pushlocks_family = {.name = "address pushlocks",
                                              .weight = 4,
                                              .without_heap = true,
                                              .step = address_pushlocks_step,
                                              .check = address_pushlocks_check};

/* Executive resources. */

static ERESOURCE resource;
static soak_cell resource_cell;

static void resources_setup(void)
{
    require(ExInitializeResourceLite(&resource) == STATUS_SUCCESS);
}

static void exclusive_resource(test_random *random)
{
    if (!ExAcquireResourceExclusiveLite(&resource, !one_in(random, 4)))
        return;
    require(ExIsResourceAcquiredExclusiveLite(&resource));
    require(ExAcquireResourceSharedLite(&resource, FALSE));
    change_cell(&resource_cell, random);
    ExReleaseResourceLite(&resource);
    if (one_in(random, 3)) {
        ExConvertExclusiveToSharedLite(&resource);
        require(!ExIsResourceAcquiredExclusiveLite(&resource));
        read_cell(&resource_cell, random);
    }
    ExReleaseResourceLite(&resource);
}

static void shared_resource(test_random *random)
{
    BOOLEAN wait = !one_in(random, 4), held;

    switch (random_below(random, 3)) {
    case 0:
        held = ExAcquireSharedStarveExclusive(&resource, wait);
        break;
    case 1:
        held = ExAcquireSharedWaitForExclusive(&resource, wait);
        break;
    default:
        held = ExAcquireResourceSharedLite(&resource, wait);
        break;
    }
    require(held || !wait);
    if (!held)
        return;
    read_cell(&resource_cell, random);
    require(ExIsResourceAcquiredSharedLite(&resource) == 1);
    if (one_in(random, 4) && ExAcquireResourceSharedLite(&resource, TRUE))
        ExReleaseResourceLite(&resource);
    ExReleaseResourceLite(&resource);
}

static void resources_step(test_random *random)
{
    KeEnterCriticalRegion();
    if (one_in(random, 3))
        exclusive_resource(random);
    else
        shared_resource(random);
    require(ExIsResourceAcquiredSharedLite(&resource) == 0);
    KeLeaveCriticalRegion();
}

static void resources_check(void)
{
    require(resource.ActiveEntries == 0 && ExGetSharedWaiterCount(&resource) == 0);
    require(ExDeleteResourceLite(&resource) == STATUS_SUCCESS);
}

const soak_family resources_family = {.name = "resources",
                                      .weight = 6,
                                      .without_heap = true,
                                      .setup = resources_setup,
                                      .step = resources_step,
                                      .check = resources_check};

/* Fast resources. */

static FAST_ERESOURCE fast_resource;
static soak_cell fast_resource_cell;

static void fast_resources_setup(void)
{
    ExInitializeFastResource(&fast_resource, 0);
}

static void fast_resources_step(test_random *random)
{
    BOOLEAN wait = !one_in(random, 4);
    FAST_OWNER_ENTRY entry;

    ExInitializeFastOwnerEntry(&entry);
    KeEnterCriticalRegion();
    if (one_in(random, 3)) {
        if (ExAcquireFastResourceExclusive(&fast_resource, &entry, wait)) {
            change_cell(&fast_resource_cell, random);
            if (one_in(random, 3))
                ExConvertFastResourceExclusiveToShared(&fast_resource, &entry);
            ExReleaseFastResource(&fast_resource, &entry);
        }
    } else if (one_in(random, 2) ? ExAcquireFastResourceShared(&fast_resource, &entry, wait)
                                 : ExAcquireFastResourceSharedStarveExclusive(&fast_resource, &entry, wait)) {
        read_cell(&fast_resource_cell, random);
        ExReleaseFastResource(&fast_resource, &entry);
    }
    KeLeaveCriticalRegion();
}

static void fast_resources_check(void)
{
    ExDeleteFastResource(&fast_resource);
}

const soak_family fast_resources_family = {.name = "fast resources",
                                           .weight = 4,
                                           .without_heap = true,
                                           .setup = fast_resources_setup,
                                           .step = fast_resources_step,
                                           .check = fast_resources_check};

/* Resources of user mode. */

static RTL_RESOURCE user_resource;
static soak_cell user_resource_cell;

static void user_resources_setup(void)
{
    RtlInitializeResource(&user_resource);
}

static void user_resources_step(test_random *random)
{
    BOOLEAN wait = !one_in(random, 4);

    if (one_in(random, 3)) {
        if (!RtlAcquireResourceExclusive(&user_resource, wait))
            return;
        change_cell(&user_resource_cell, random);
        if (one_in(random, 3))
            RtlConvertExclusiveToShared(&user_resource);
    } else {
        if (!RtlAcquireResourceShared(&user_resource, wait))
            return;
        read_cell(&user_resource_cell, random);
        if (one_in(random, 4)) {
            RtlConvertSharedToExclusive(&user_resource);
            change_cell(&user_resource_cell, random);
        }
    }
    RtlReleaseResource(&user_resource);
}

static void user_resources_check(void)
{
    require(user_resource.NumberOfActive == 0);
    RtlDeleteResource(&user_resource);
}

const soak_family user_resources_family = {.name = "user resources",
                                           .weight = 4,
                                           .setup = user_resources_setup,
                                           .step = user_resources_step,
                                           .check = user_resources_check};

/* Fast and guarded mutexes. */

static FAST_MUTEX fast_mutex;
static KGUARDED_MUTEX guarded_mutex;
static soak_cell fast_cell, guarded_cell;

static void fast_mutexes_setup(void)
{
    ExInitializeFastMutex(&fast_mutex);
    KeInitializeGuardedMutex(&guarded_mutex);
}

static void use_fast_mutex(test_random *random)
{
    if (one_in(random, 4)) {
        if (!ExTryToAcquireFastMutex(&fast_mutex))
            return;
    } else {
        ExAcquireFastMutex(&fast_mutex);
    }
    require(KeGetCurrentIrql() == APC_LEVEL && KeAreAllApcsDisabled());
    change_cell(&fast_cell, random);
    ExReleaseFastMutex(&fast_mutex);
}

static void use_unsafely(test_random *random)
{
    KeEnterCriticalRegion();
    ExAcquireFastMutexUnsafe(&fast_mutex);
    change_cell(&fast_cell, random);
    ExReleaseFastMutexUnsafe(&fast_mutex);
    KeLeaveCriticalRegion();
}

static void fast_mutexes_step(test_random *random)
{
    switch (random_below(random, 3)) {
    case 0:
        use_fast_mutex(random);
        break;
    case 1:
        use_unsafely(random);
        break;
    default:
        KeAcquireGuardedMutex(&guarded_mutex);
        change_cell(&guarded_cell, random);
        KeReleaseGuardedMutex(&guarded_mutex);
        break;
    }
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void fast_mutexes_check(void)
{
    require(fast_mutex.Count == 1 && guarded_mutex.Count == 1);
}

const soak_family fast_mutexes_family = {.name = "fast mutexes",
                                         .weight = 6,
                                         .without_heap = true,
                                         .setup = fast_mutexes_setup,
                                         .step = fast_mutexes_step,
                                         .check = fast_mutexes_check};
