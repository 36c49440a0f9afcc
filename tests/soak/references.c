/* references.c: rundown protection, fast references, interlocked lists. */
#include "soak.h"

/* An object that lives while it is protected: its protection is run down and reinitialized. */

typedef struct thing {
    unsigned long alive, uses; /* alive: plain */
} thing;

static EX_RUNDOWN_REF rundown;
static PEX_RUNDOWN_REF_CACHE_AWARE cache_aware;
static thing one = {.alive = 1}, other = {.alive = 1};
static volatile LONG running_down, running_down_other;

static void rundown_setup(void)
{
    ExInitializeRundownProtection(&rundown);
    cache_aware = ExAllocateCacheAwareRundownProtection(NonPagedPoolNx, POOL_TAG);
    require(cache_aware != NULL);
}

static void use_thing(test_random *random)
{
    ULONG count = 1 + random_below(random, 2);

    if (!ExAcquireRundownProtectionEx(&rundown, count))
        return;
    require(one.alive);
    spin_for(random_below(random, 50));
    require(one.alive);
    ExReleaseRundownProtectionEx(&rundown, count);
}

static void use_other(test_random *random)
{
    if (!ExAcquireRundownProtectionCacheAware(cache_aware))
        return;
    require(other.alive);
    spin_for(random_below(random, 50));
    require(other.alive);
    ExReleaseRundownProtectionCacheAware(cache_aware);
}

static void run_down(void)
{
    if (!begin_alone(&running_down))
        return;
    ExWaitForRundownProtectionRelease(&rundown);
    one.alive = 0;
    ExRundownCompleted(&rundown);
    require(!ExAcquireRundownProtection(&rundown));
    one.alive = 1;
    ExReInitializeRundownProtection(&rundown);
    end_alone(&running_down);
}

static void run_down_other(void)
{
    if (!begin_alone(&running_down_other))
        return;
    ExWaitForRundownProtectionReleaseCacheAware(cache_aware);
    other.alive = 0;
    ExRundownCompletedCacheAware(cache_aware);
    require(!ExAcquireRundownProtectionCacheAware(cache_aware));
    other.alive = 1;
    ExReInitializeRundownProtectionCacheAware(cache_aware);
    end_alone(&running_down_other);
}

static void rundown_step(test_random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        run_down();
        break;
    case 1:
        run_down_other();
        break;
    case 2:
    case 3:
        use_other(random);
        break;
    default:
        use_thing(random);
        break;
    }
}

static void rundown_check(void)
{
    require(rundown.Count == 0);
    ExFreeCacheAwareRundownProtection(cache_aware);
}

const soak_family rundown_family = {.name = "rundown",
                                    .weight = 6,
                                    .without_heap = true,
                                    .setup = rundown_setup,
                                    .step = rundown_step,
                                    .check = rundown_check};

/* A fast reference to an event, which is replaced continuously. */

static EX_FAST_REF current;
static EX_PUSH_LOCK current_lock;

static PVOID new_object(void)
{
    HANDLE handle = CreateEventA(NULL, TRUE, TRUE, NULL);
    PVOID object;

    require(handle != NULL);
    require(ObReferenceObjectByHandle(handle, 0, *ExEventObjectType, KernelMode, &object, NULL) == STATUS_SUCCESS);
    require(CloseHandle(handle));
    return object;
}

static void fast_references_setup(void)
{
    ObInitializeFastReference(&current, new_object());
}

static PVOID reference_current(void)
{
    PVOID object = ObFastReferenceObject(&current);

    if (object == NULL) {
        ExAcquirePushLockShared(&current_lock);
        object = ObFastReferenceObjectLocked(&current);
        ExReleasePushLockShared(&current_lock);
    }
    return object;
}

static void replace_current(PVOID by)
{
    PVOID old = ObFastReplaceObject(&current, by);

    ExAcquirePushLockExclusive(&current_lock);
    ExReleasePushLockExclusive(&current_lock);
    ObDereferenceObject(old);
}

static void fast_references_step(test_random *random)
{
    PVOID object;

    KeEnterCriticalRegion();
    if (one_in(random, 8)) {
        replace_current(new_object());
    } else {
        object = reference_current();
        require(KeReadStateEvent(object) == 1);
        ObFastDereferenceObject(&current, object);
    }
    KeLeaveCriticalRegion();
}

static void fast_references_check(void)
{
    KeEnterCriticalRegion();
    replace_current(NULL);
    KeLeaveCriticalRegion();
}

const soak_family fast_references_family = {.name = "fast references",
                                            .weight = 4,
                                            .setup = fast_references_setup,
                                            .step = fast_references_step,
                                            .check = fast_references_check};

/* Interlocked lists: entries are in the list or with one thread. */

#define ENTRIES 16

typedef struct list_item {
    SLIST_ENTRY entry;
    unsigned long out;
} list_item;

static SLIST_HEADER list;
static list_item entries[ENTRIES];

static void lists_setup(void)
{
    InitializeSListHead(&list);
    for (int i = 0; i < ENTRIES; i++)
        InterlockedPushEntrySList(&list, &entries[i].entry);
}

static void touch(PSLIST_ENTRY entry)
{
    list_item *taken = CONTAINING_RECORD(entry, list_item, entry);

    require(taken->out++ == 0);
    require(taken->out-- == 1);
}

static void take_all(void)
{
    PSLIST_ENTRY first = InterlockedFlushSList(&list), last = first;
    ULONG count = 1;

    if (first == NULL)
        return;
    for (touch(first); last->Next != NULL; count++) {
        last = last->Next;
        touch(last);
    }
    require(count <= ENTRIES);
    InterlockedPushListSListEx(&list, first, last, count);
}

static void lists_step(test_random *random)
{
    PSLIST_ENTRY entry;

    if (one_in(random, 16)) {
        take_all();
        return;
    }
    entry = InterlockedPopEntrySList(&list);
    if (entry != NULL) {
        touch(entry);
        InterlockedPushEntrySList(&list, entry);
    }
    require(QueryDepthSList(&list) <= ENTRIES);
}

static void lists_check(void)
{
    unsigned found = 0;

    for (PSLIST_ENTRY entry = InterlockedFlushSList(&list); entry != NULL; entry = entry->Next)
        found++;
    require(found == ENTRIES && QueryDepthSList(&list) == 0);
}

const soak_family lists_family = {.name = "interlocked lists",
                                  .weight = 4,
                                  .without_heap = true,
                                  .setup = lists_setup,
                                  .step = lists_step,
                                  .check = lists_check};
