/* Resources in depth: which waiters may be overtaken, conversion, owners that exit, fast resources, memory freed at
   once.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/ki.h"

enum { EXCLUSIVE, SHARED, STARVE_EXCLUSIVE, WAIT_FOR_EXCLUSIVE, RELEASE, CONVERT };

static ERESOURCE resource;
static KEVENT met;
static int value;

static void setup(void)
{
    ExInitializeResourceLite(&resource);
    KeInitializeEvent(&met, NotificationEvent, FALSE);
}

static void await(PKEVENT event)
{
    LabAssert(KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void is_free(void)
{
    LabAssert(resource.ActiveEntries == 0 && resource.ActiveCount == 0);
    LabAssert(resource.SharedWaiters == NULL && resource.ExclusiveWaiters == NULL);
    LabAssert(ExGetSharedWaiterCount(&resource) == 0 && ExGetExclusiveWaiterCount(&resource) == 0);
}

static void writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    value += 1;
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

/* A waiter sleeps until it is admitted. It wakes earlier only to boost an owner of lower priority. */
#define HOUR (-36000000000LL)
#define OWNER_PRIORITY 8

static KPRIORITY waiter_priority;
static KPRIORITY owner_priority; /* after the hour */
static ULONG wakes;

static void wake_counted_waiter(void *unused)
{
    PKTHREAD thread = KeGetCurrentThread();
    (void)unused;
    KeSetPriorityThread(thread, waiter_priority);
    ULONG before = thread->ContextSwitches;
    writer();
    wakes = thread->ContextSwitches - before;
}

static void keep_for_an_hour(void)
{
    LARGE_INTEGER hour = {.QuadPart = HOUR};
    PKTHREAD thread = KeGetCurrentThread();
    KeSetPriorityThread(thread, OWNER_PRIORITY);
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    unsigned waiter = LabSpawn(wake_counted_waiter, NULL);
    KeDelayExecutionThread(KernelMode, FALSE, &hour);
    owner_priority = thread->Priority;
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
    LabJoin(waiter);
}

static void setup_equals(void)
{
    setup();
    waiter_priority = OWNER_PRIORITY;
}

static void setup_important_waiter(void)
{
    setup();
    waiter_priority = OWNER_PRIORITY + 2;
}

static void setup_important_waiter_without_boost(void)
{
    setup_important_waiter();
    ExDisableResourceBoostLite(&resource);
}

static void waiter_slept(void)
{
    LabAssert(wakes == 1 && owner_priority == OWNER_PRIORITY);
}

static void waiter_boosted_owner(void)
{
    LabAssert(wakes == 2 && owner_priority == LOW_REALTIME_PRIORITY - 1);
}
LAB_SCENARIO(resource_waiter_sleeps, .Setup = setup_equals, .Threads = {keep_for_an_hour}, .Finish = waiter_slept);
LAB_SCENARIO(resource_waiter_boosts_once, .Setup = setup_important_waiter, .Threads = {keep_for_an_hour},
             .Finish = waiter_boosted_owner);
LAB_SCENARIO(resource_waiter_boosts_nobody, .Setup = setup_important_waiter_without_boost,
             .Threads = {keep_for_an_hour}, .Finish = waiter_slept);

/* A history. */
static BOOLEAN record(unsigned name, BOOLEAN (*acquire)(PERESOURCE, BOOLEAN), BOOLEAN wait)
{
    unsigned operation = LabBegin(name, wait);
    BOOLEAN got = acquire(&resource, wait);
    LabEnd(operation, got);
    return got;
}

static void record_release(void)
{
    unsigned operation = LabBegin(RELEASE, 0);
    ExReleaseResourceLite(&resource);
    LabEnd(operation, 0);
}

static void recorded_writer(void)
{
    KeEnterCriticalRegion();
    record(EXCLUSIVE, ExAcquireResourceExclusiveLite, TRUE);
    value += 1;
    unsigned operation = LabBegin(CONVERT, 0);
    ExConvertExclusiveToSharedLite(&resource);
    LabEnd(operation, 0);
    record_release();
    KeLeaveCriticalRegion();
}

static void recorded_reader(void)
{
    KeEnterCriticalRegion();
    record(SHARED, ExAcquireResourceSharedLite, TRUE);
    if (record(SHARED, ExAcquireResourceSharedLite, FALSE))
        record_release();
    record_release();
    KeLeaveCriticalRegion();
}

static void recorded_trier(void)
{
    KeEnterCriticalRegion();
    if (record(STARVE_EXCLUSIVE, ExAcquireSharedStarveExclusive, FALSE)) {
        if (record(WAIT_FOR_EXCLUSIVE, ExAcquireSharedWaitForExclusive, FALSE))
            record_release();
        record_release();
    }
    if (record(EXCLUSIVE, ExAcquireResourceExclusiveLite, FALSE)) {
        value += 1;
        record_release();
    }
    KeLeaveCriticalRegion();
}

static void is_a_resource(void)
{
    is_free();
    LabCheckLinearizable(&LabModelResource);
}
LAB_SCENARIO(resource_history_try, .Setup = setup, .Threads = {recorded_writer, recorded_trier},
             .Finish = is_a_resource, .Flags = LAB_LARGE);
LAB_SCENARIO(resource_history, .Setup = setup, .Threads = {recorded_writer, recorded_reader, recorded_trier},
             .Finish = is_a_resource, .Flags = LAB_LARGE);

/* A sharer may acquire it again, even if a writer waits. */
static void recursive_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resource, TRUE);
    LabAssert(ExAcquireResourceSharedLite(&resource, TRUE));
    LabAssert(ExIsResourceAcquiredSharedLite(&resource) == 2);
    ExReleaseResourceLite(&resource);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(resource_shared_again, .Setup = setup, .Threads = {recursive_reader, writer}, .Finish = is_free,
             .Flags = LAB_LARGE);

/* A sharer waits for another one, which overtakes the waiting writer. */
static void reader_that_waits(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resource, TRUE);
    await(&met);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void starving_reader(void)
{
    KeEnterCriticalRegion();
    LabAssert(ExAcquireSharedStarveExclusive(&resource, TRUE));
    KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(resource_starve_exclusive, .Setup = setup, .Threads = {reader_that_waits, starving_reader, writer},
             .Finish = is_free, .Flags = LAB_LARGE);

/* While this thread shares it the writer waits, so the queueing rules can be checked. */
static void rule_reader(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&resource, TRUE);
    if (ExGetExclusiveWaiterCount(&resource) == 1) {
        LabAssert(!ExAcquireSharedWaitForExclusive(&resource, FALSE));
        LabAssert(ExAcquireResourceSharedLite(&resource, FALSE));
        ExReleaseResourceLite(&resource);
        LabAssert(!ExAcquireResourceExclusiveLite(&resource, FALSE));
    }
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(resource_rules, .Setup = setup, .Threads = {rule_reader, writer}, .Finish = is_free, .Flags = LAB_LARGE);

/* A thread that converts admits the waiting sharers, even if a writer waits. */
static KEVENT owned;

static void converter(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    value += 1;
    KeSetEvent(&owned, IO_NO_INCREMENT, FALSE);
    while (ExGetSharedWaiterCount(&resource) == 0)
        ;
    ExConvertExclusiveToSharedLite(&resource);
    await(&met);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void reader_behind_converter(void)
{
    KeEnterCriticalRegion();
    await(&owned);
    ExAcquireResourceSharedLite(&resource, TRUE);
    LabAssert(value >= 1);
    KeSetEvent(&met, IO_NO_INCREMENT, FALSE);
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}

static void writer_behind_converter(void)
{
    await(&owned);
    writer();
}

static void setup_converter(void)
{
    setup();
    KeInitializeEvent(&owned, NotificationEvent, FALSE);
}
LAB_SCENARIO(resource_convert, .Setup = setup_converter, .Threads = {converter, reader_behind_converter},
             .Finish = is_free, .Flags = LAB_LARGE);
LAB_SCENARIO(resource_convert_writer, .Setup = setup_converter,
             .Threads = {converter, reader_behind_converter, writer_behind_converter}, .Finish = is_free,
             .Flags = LAB_LARGE);

/* The owner transfers it to an owner pointer and exits; another thread releases it. */
#define HEIR ((ERESOURCE_THREAD)&met | 3)

static void ending_owner(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
    value += 1;
    ExSetResourceOwnerPointer(&resource, (PVOID)HEIR);
    KeLeaveCriticalRegion();
    KeSetEvent(&owned, IO_NO_INCREMENT, FALSE);
    LabExitThread();
}

static void releaser_for_owner(void)
{
    await(&owned);
    KeEnterCriticalRegion();
    ExReleaseResourceForThreadLite(&resource, HEIR);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(resource_owner_pointer, .Setup = setup_converter, .Threads = {ending_owner, releaser_for_owner, writer},
             .Finish = is_free, .Flags = LAB_LARGE);

/* The last thread to leave deletes and frees the resource. */
typedef struct common {
    ERESOURCE resource;
    int users;
} common;

static common *shared;

static void setup_shared(void)
{
    shared = LabAllocate(sizeof(*shared));
    ExInitializeResourceLite(&shared->resource);
    shared->users = 2;
}

static void use_and_free(void)
{
    common *mine = shared;
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&mine->resource, TRUE);
    int last = --mine->users == 0;
    ExReleaseResourceLite(&mine->resource);
    if (last) {
        ExDeleteResourceLite(&mine->resource);
        LabFree(mine);
    }
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(resource_freed, .Setup = setup_shared, .Threads = {use_and_free, use_and_free}, .Flags = LAB_LARGE);

/* Fast resources. */
static FAST_ERESOURCE fast;
static FAST_OWNER_ENTRY disowned;

static void setup_fast(void)
{
    setup_converter();
    ExInitializeFastResource(&fast, 0);
    ExInitializeFastOwnerEntry(&disowned);
}

static void fast_writer(void)
{
    FAST_OWNER_ENTRY entry;
    ExInitializeFastOwnerEntry(&entry);
    KeEnterCriticalRegion();
    ExAcquireFastResourceExclusive(&fast, &entry, TRUE);
    value += 1;
    ExConvertFastResourceExclusiveToShared(&fast, &entry);
    LabAssert(value >= 1 && ExIsFastResourceHeld(&fast) && !ExIsFastResourceHeldExclusive(&fast));
    ExReleaseFastResource(&fast, &entry);
    KeLeaveCriticalRegion();
}

static void fast_reader(void)
{
    FAST_OWNER_ENTRY entry;
    ExInitializeFastOwnerEntry(&entry);
    KeEnterCriticalRegion();
    ExAcquireFastResourceShared(&fast, &entry, TRUE);
    LabAssert(value >= 0);
    ExReleaseFastResource(&fast, &entry);
    KeLeaveCriticalRegion();
}

/* Deleting one that is owned or waited for is a bugcheck. */
static void fast_is_free(void)
{
    ExDeleteFastResource(&fast);
}
LAB_SCENARIO(fast_resource, .Setup = setup_fast, .Threads = {fast_writer, fast_reader}, .Finish = fast_is_free,
             .Flags = LAB_LARGE);
LAB_SCENARIO(fast_resource_three, .Setup = setup_fast, .Threads = {fast_writer, fast_reader, fast_writer},
             .Finish = fast_is_free, .Flags = LAB_LARGE);

static void disowner(void)
{
    KeEnterCriticalRegion();
    ExAcquireFastResourceExclusive(&fast, &disowned, TRUE);
    value += 1;
    ExDisownFastResource(&fast, &disowned);
    KeLeaveCriticalRegion();
    KeSetEvent(&owned, IO_NO_INCREMENT, FALSE);
    LabExitThread();
}

static void releaser_of_disowned(void)
{
    await(&owned);
    ExReleaseDisownedFastResource(&fast, &disowned);
}
LAB_SCENARIO(fast_resource_disowned, .Setup = setup_fast, .Threads = {disowner, releaser_of_disowned, fast_reader},
             .Finish = fast_is_free, .Flags = LAB_LARGE);
