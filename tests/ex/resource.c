/* Executive resources. Numbers are those of the requirements in resource.c. */
#include "resourcetest.h"

#include "../support/heap.h"

#include <interlock/ps.h>

static void initialize(PERESOURCE resource)
{
    check(ExInitializeResourceLite(resource) == STATUS_SUCCESS);
}

static void remove_resource(PERESOURCE resource)
{
    check(ExDeleteResourceLite(resource) == STATUS_SUCCESS);
}

static BOOLEAN acquire(player *p, char how, BOOLEAN wait)
{
    switch (how) {
    case 'X':
        return wait ? ExAcquireResourceExclusiveLite(p->resource, TRUE)
                    : ExTryToAcquireResourceExclusiveLite(p->resource);
    case 'S':
        return ExAcquireResourceSharedLite(p->resource, wait);
    case 'V':
        return ExAcquireSharedStarveExclusive(p->resource, wait);
    default:
        return ExAcquireSharedWaitForExclusive(p->resource, wait);
    }
}

static void release(player *p)
{
    ExReleaseResourceLite(p->resource);
}

static void convert(player *p)
{
    ExConvertExclusiveToSharedLite(p->resource);
}

static const lock_kind executive = {initialize, remove_resource, acquire, release, convert};

static void exclusion_1(void **state)
{
    (void)state;
    RUN(&executive, exclusion_scripts);
}

static void exclusive_recursion_2(void **state)
{
    static const char *const scripts[] = {"1X+ 1X+ 1W+ 1S+ =1x/0/0 1R 1R 1R =1x/0/0 1R"};
    (void)state;
    RUN(&executive, exclusive_recursion_scripts);
    RUN(&executive, scripts);
}

static void shared_recursion_3(void **state)
{
    static const char *const scripts[] = {"1S+ 2S+ 2S+ =2/0/0 2R =2/0/0 2R =1/0/0 1R"};
    (void)state;
    RUN(&executive, shared_recursion_scripts);
    RUN(&executive, scripts);
}

static void behind_exclusive_4(void **state)
{
    static const char *const scripts[] = {
        "1W+ 2W+ =2/0/0 3X! 1w- 2w- 4w- 1S+ 1R 1R 2R 3. 4w- 3R 4w+ 4R",
        "1S+ 2X! 1W! =1/1/1 3F1 2. =1x/1/0 2R 1. =1/0/0 1R",
    };
    (void)state;
    RUN(&executive, behind_exclusive_scripts);
    /* The verifier does not let a thread release for another. */
    run_scripts(&executive, scripts, KiVerifierEnabled ? 1 : 2);
}

static void hand_over_5(void **state)
{
    (void)state;
    RUN(&executive, hand_over_scripts);
}

static void conversion_6(void **state)
{
    static const char *const scripts[] = {
        "1X+ 1X+ 1S+ 2S! 1C =2/0/0 2. 1R 1R =2/0/0 1R =1/0/0 3S+ 2R 3R",
    };
    (void)state;
    RUN(&executive, conversion_scripts);
    RUN(&executive, scripts);
}

/* 7: in every state of the resource, which acquires succeed without waiting. */
static void tries_7(void **state)
{
    static const struct {
        const char *before, *after;
        const char *tries[4]; /* by the owner 1, by another thread 4 */
    } rows[] = {
        {"", "", {"1x+", "4s+", "4v+", "4w+"}},
        {"1X+", "1R", {"1x+", "4x-", "4s-", "1w+"}},
        {"1S+", "1R", {"1x-", "4x-", "4s+", "4w+"}},
        {"1S+ 2X!", "1R 2. 2R", {"1s+", "4s-", "4v+", "1w-"}},
    };
    (void)state;
    for (ULONG row = 0; row < RTL_NUMBER_OF(rows); row += 1) {
        for (ULONG i = 0; i < RTL_NUMBER_OF(rows[row].tries); i += 1) {
            const char *try = rows[row].tries[i];
            char script[64];
            snprintf(script, sizeof(script), "%s %s %.*s %s", rows[row].before, try, try[2] == '+' ? 2 : 0,
                     try[0] == '1' ? "1R" : "4R", rows[row].after);
            run_scripts(&executive, (const char *const[]){script}, 1);
        }
    }
}

/* Owner pointers (8). */

static void acquire_exclusive(void *resource)
{
    check(ExAcquireResourceExclusiveLite(resource, TRUE));
}

static void acquire_shared(void *resource)
{
    check(ExAcquireResourceSharedLite(resource, TRUE));
}

static void release_resource(void *resource)
{
    ExReleaseResourceLite(resource);
}

typedef struct bequest {
    PERESOURCE resource;
    ERESOURCE_THREAD heir;
    ULONG flags;
} bequest;

static void set_owner(void *argument)
{
    bequest *b = argument;
    if (b->flags != 0) {
        ExSetResourceOwnerPointerEx(b->resource, (PVOID)b->heir, b->flags);
    } else {
        ExSetResourceOwnerPointer(b->resource, (PVOID)b->heir);
    }
}

static void release_for_heir(void *argument)
{
    bequest *b = argument;
    ExReleaseResourceForThreadLite(b->resource, b->heir);
}

static void count_mine(void *argument)
{
    player *p = argument;
    p->depth = ExIsResourceAcquiredSharedLite(p->resource) |
               (ULONG)ExIsResourceAcquiredExclusiveLite(p->resource) << 16;
}

/* How often the thread has acquired it; with 0x10000: exclusively. */
static ULONG acquires_of(player *p, PERESOURCE resource)
{
    p->resource = resource;
    run_on(&p->actor, count_mine, p);
    return p->depth;
}

static void owner_pointers_8(void **state)
{
    ERESOURCE resource, other;
    ULONG place;
    bequest b = {&resource, (ERESOURCE_THREAD)&place | 3, 0};
    player *one = &players[0], *two = &players[1], *three = &players[2];
    (void)state;
    initialize(&resource);

    /* Acquired exclusively, twice; the thread may end, and another one releases. */
    run_on(&one->actor, acquire_exclusive, &resource);
    run_on(&one->actor, acquire_exclusive, &resource);
    run_on(&one->actor, set_owner, &b);
    assert_int_equal(acquires_of(one, &resource), 0);
    assert_int_equal(resource.OwnerEntry.OwnerThread, b.heir);
    assert_int_equal(resource.OwnerEntry.OwnerCount, 2);
    run_script(&executive, &resource, "1x- 2s-");
    run_on(&two->actor, release_for_heir, &b);
    expect_state(&resource, "=1x/0/0", "exclusive bequest");
    run_on(&three->actor, release_for_heir, &b);
    expect_state(&resource, "=0/0/0", "exclusive bequest");

    /* Shared: the new owner takes over the counts of two threads, wherever they are recorded. */
    initialize(&other);
    run_script(&executive, &other, "1S+ 2S+");
    run_on(&one->actor, acquire_shared, &resource);
    run_on(&one->actor, acquire_shared, &resource);
    run_on(&two->actor, acquire_shared, &resource);
    run_on(&two->actor, acquire_shared, &resource);
    run_on(&three->actor, acquire_shared, &resource);
    run_on(&two->actor, set_owner, &b);
    expect_state(&resource, "=3/0/0", "first shared bequest");
    run_on(&one->actor, set_owner, &b);
    expect_state(&resource, "=2/0/0", "second shared bequest");
    assert_int_equal(acquires_of(one, &resource), 0);
    assert_int_equal(acquires_of(two, &resource), 0);
    assert_int_equal(acquires_of(three, &resource), 1);
    run_on(&three->actor, release_resource, &resource);
    run_script(&executive, &resource, "4X!");
    for (ULONG i = 0; i < 4; i += 1) {
        expect_state(&resource, "=1/0/1", "the heir's releases");
        run_on(&three->actor, release_for_heir, &b);
    }
    run_script(&executive, &resource, "4. =1x/0/0 4R");
    run_script(&executive, &other, "1R 2R");
    remove_resource(&other);

    /* An owner pointer that is a thread says so. */
    b.heir = (ERESOURCE_THREAD)one->actor.thread | 3;
    b.flags = FLAG_OWNER_POINTER_IS_THREAD;
    run_on(&one->actor, acquire_shared, &resource);
    run_on(&one->actor, set_owner, &b);
    assert_true(resource.OwnerEntry.OwnerReferenced);
    run_script(&executive, &resource, "1S+ =2/0/0 1R");
    run_on(&two->actor, release_for_heir, &b);
    remove_resource(&resource);
}

/* 9, and the members that a debugger shows. */
static void members_9(void **state)
{
    ERESOURCE resource;
    player *one = &players[0], *two = &players[1];
    (void)state;
    memset(&resource, 0xcc, sizeof(resource));
    initialize(&resource);
    assert_ptr_equal(ExpSystemResourcesList.Blink, &resource.SystemResourcesList);
    assert_int_equal(resource.Flag, 0);
    assert_int_equal(resource.ContentionCount, 0);

    run_script(&executive, &resource, "1X+ 1X+");
    assert_int_equal(resource.Flag, ResourceOwnedExclusive);
    assert_int_equal(resource.ActiveCount, 1);
    assert_int_equal(resource.ActiveEntries, 1);
    assert_ptr_equal((PVOID)resource.OwnerEntry.OwnerThread, one->actor.thread);
    assert_int_equal(resource.OwnerEntry.OwnerCount, 2);
    assert_null(resource.OwnerTable);
    assert_int_equal(acquires_of(one, &resource), 0x10002);
    assert_int_equal(acquires_of(two, &resource), 0);
    run_script(&executive, &resource, "1R 1R 1S+ 2S+ 2S+");
    assert_int_equal(resource.Flag, 0);
    assert_int_equal(resource.ActiveCount, 1);
    assert_int_equal(resource.ActiveEntries, 2);
    assert_ptr_equal((PVOID)resource.OwnerTable->OwnerThread, two->actor.thread);
    assert_int_equal(resource.OwnerTable->OwnerCount, 2);
    assert_int_equal(acquires_of(one, &resource), 1);
    assert_int_equal(acquires_of(two, &resource), 2);
    assert_int_equal(resource.ContentionCount, 0);

    run_script(&executive, &resource, "3x- 4X! 3s- 3S! 5X!");
    assert_int_equal(resource.ContentionCount, 3);
    assert_int_equal(ExGetSharedWaiterCount(&resource), 1);
    assert_int_equal(ExGetExclusiveWaiterCount(&resource), 2);
    assert_int_equal(resource.SharedWaiters->Header.Type & KOBJECT_TYPE_MASK, SemaphoreObject);
    assert_int_equal(resource.ExclusiveWaiters->Header.Type & KOBJECT_TYPE_MASK, EventSynchronizationObject);
    assert_int_equal(players[2].actor.thread->WaitReason, WrResource);
    assert_int_equal(players[3].actor.thread->WaitReason, WrResource);
    run_script(&executive, &resource, "2R 2R 1R 4. 4R 3. 3R 5. 5R =0/0/0");
    assert_int_equal(resource.ContentionCount, 3);
    assert_int_equal(resource.ActiveCount, 0);
    assert_null(resource.OwnerTable);

    assert_int_equal(ExReinitializeResourceLite(&resource), STATUS_SUCCESS);
    assert_int_equal(resource.ContentionCount, 0);
    assert_ptr_equal(ExpSystemResourcesList.Blink, &resource.SystemResourcesList);
    run_script(&executive, &resource, "1X+ 1R");
    remove_resource(&resource);
    assert_ptr_not_equal(ExpSystemResourcesList.Blink, &resource.SystemResourcesList);
}

static void test_regions(void **state)
{
    ERESOURCE resource;
    (void)state;
    initialize(&resource);
    static const struct {
        PVOID (*acquire)(PERESOURCE resource);
        BOOLEAN exclusive;
    } rows[] = {
        {ExEnterCriticalRegionAndAcquireResourceExclusive, TRUE},
        {ExEnterCriticalRegionAndAcquireResourceShared, FALSE},
        {ExEnterCriticalRegionAndAcquireSharedWaitForExclusive, FALSE},
    };
    for (ULONG i = 0; i < RTL_NUMBER_OF(rows); i += 1) {
        assert_false(KeAreApcsDisabled());
        rows[i].acquire(&resource);
        assert_true(KeAreApcsDisabled());
        assert_int_equal(ExIsResourceAcquiredSharedLite(&resource), 1);
        assert_int_equal(ExIsResourceAcquiredExclusiveLite(&resource), rows[i].exclusive);
        ExReleaseResourceAndLeaveCriticalRegion(&resource);
        assert_false(KeAreApcsDisabled());
        assert_int_equal(ExIsResourceAcquiredSharedLite(&resource), 0);
    }
    remove_resource(&resource);
}

/* 10: nothing is allocated. */

static void empty_heap(void *unused)
{
    (void)unused;
    allocations_left = 0;
}

static void no_allocation_10(void **state)
{
    ERESOURCE resource;
    (void)state;
    initialize(&resource);
    run_script(&executive, &resource, "1S+ 2S+ 3X! 4S! 5S! 1R 2R 3. 3R 4. 5. 4R 5R");
    allocations_refused = 0;
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        run_on(&players[i].actor, empty_heap, NULL);
    }
    run_script(&executive, &resource, "1S+ 2S+ 3S+ 4X! 5S! 1V+ 1R 1R 2R 3R 4. 4C 5. 4R 5R");
    assert_int_equal(allocations_refused, 0);
    remove_resource(&resource);
}

/* 10: a thread that shares many resources with others, and all records in use. */

#define MANY 300

static ERESOURCE many[MANY];

static void acquire_many(void *unused)
{
    (void)unused;
    for (ULONG i = 0; i < MANY; i += 1) {
        check(ExAcquireResourceSharedLite(&many[i], TRUE));
        check(ExAcquireResourceSharedLite(&many[i], i % 2 == 0));
    }
}

static void release_many(void *unused)
{
    (void)unused;
    for (ULONG i = 0; i < MANY; i += 1) {
        PERESOURCE resource = &many[i * 7 % MANY];
        check(ExIsResourceAcquiredSharedLite(resource) == 2);
        ExReleaseResourceLite(resource);
        check(ExIsResourceAcquiredSharedLite(resource) == 1);
        ExReleaseResourceLite(resource);
        check(ExIsResourceAcquiredSharedLite(resource) == 0);
    }
}

static void many_resources_10(void **state)
{
    (void)state;
    for (ULONG i = 0; i < MANY; i += 1) {
        initialize(&many[i]);
    }
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        run_on(&players[i].actor, acquire_many, NULL);
    }
    for (ULONG i = 0; i < MANY; i += 1) {
        assert_int_equal(many[i].ActiveEntries, PLAYERS);
    }
    for (ULONG i = PLAYERS; i-- != 0;) {
        run_on(&players[i].actor, release_many, NULL);
    }
    for (ULONG i = 0; i < MANY; i += 1) {
        expect_state(&many[i], "=0/0/0", "many");
        remove_resource(&many[i]);
    }
}

/* Takes every record there is, those that the players keep too; returns how many. */
static ULONG take_all_records(PEXP_OWNER *taken)
{
    PKTHREAD self = KeGetCurrentThread();
    ULONG count = 0;
    KiEnterDispatcher(self);
    for (ULONG i = 0; i <= PLAYERS; i += 1) {
        PEXP_OWNER owner;
        while ((owner = ExpTakeOwnerRecord(i < PLAYERS ? players[i].actor.thread : self)) != NULL) {
            owner->Next = *taken;
            *taken = owner;
            count += 1;
        }
    }
    KiExitDispatcher(self);
    return count;
}

static void give_back_records(PEXP_OWNER *taken, ULONG count)
{
    PKTHREAD self = KeGetCurrentThread();
    KiEnterDispatcher(self);
    while (count-- != 0) {
        PEXP_OWNER owner = *taken;
        *taken = owner->Next;
        ExpGiveBackOwnerRecord(self, owner);
    }
    KiExitDispatcher(self);
}

static void no_records_10(void **state)
{
    ERESOURCE resource;
    PEXP_OWNER taken = NULL;
    (void)state;
    initialize(&resource);
    ULONG all = take_all_records(&taken);
    assert_in_range(all, 100000, 200000);

    /* Acquires that need no record are not affected. */
    run_script(&executive, &resource, "1X+ 1S+ 1R 1R 1S+ 1S+ 2x- 2X! 1R 1R 2. 2R 1S+ =1/0/0");
    /* Others fail without waiting, and succeed when records are free again. */
    run_script(&executive, &resource, "2s- 2S! =1/0/0");
    give_back_records(&taken, 2); /* the first one stays with this thread, as a spare */
    run_script(&executive, &resource, "2. =2/0/0 3S! 2R =1/0/0");
    give_back_records(&taken, all - 2);
    run_script(&executive, &resource, "3. =2/0/0 3R 1R");
    remove_resource(&resource);
    taken = NULL;
    ULONG again = take_all_records(&taken);
    assert_int_equal(again, all);
    give_back_records(&taken, again);
}

/* 11: memory that is freed as soon as the last release allows it. */

typedef struct leaver {
    PERESOURCE resource;
    ULONG count;
} leaver;

static void leave(void *argument, unsigned index)
{
    leaver *l = argument;
    ULONG left;
    KeEnterCriticalRegion();
    if (index % 2) {
        check(ExAcquireResourceExclusiveLite(l->resource, TRUE));
    } else {
        check(ExAcquireResourceSharedLite(l->resource, TRUE));
    }
    left = __atomic_sub_fetch(&l->count, 1, __ATOMIC_ACQ_REL);
    if (index % 2 && left == 0) {
        ExReleaseResourceLite(l->resource);
        check(ExDeleteResourceLite(l->resource) == STATUS_SUCCESS);
        free(l->resource);
        l->resource = NULL;
    } else {
        ExReleaseResourceLite(l->resource);
    }
    KeLeaveCriticalRegion();
}

static void freed_at_once_11(void **state)
{
    (void)state;
    for (unsigned long round = test_rounds(300); round != 0; round -= 1) {
        leaver l = {malloc(sizeof(ERESOURCE)), 4};
        initialize(l.resource);
        run_threads(4, TEST_SECONDS, leave, &l);
        if (l.resource != NULL) {
            remove_resource(l.resource);
            free(l.resource);
        }
    }
}

/* 12 */

#define LOW 4
#define HIGH 12
#define BOOSTED 15

static void boost_12(void **state)
{
    static const struct {
        const char *before, *after;
        BOOLEAN disable;
        KPRIORITY waiter;
        KPRIORITY owner; /* the result */
    } rows[] = {
        {"1X+ 3X!", "1R 3. 3R", FALSE, HIGH, BOOSTED},
        {"1S+ 2S+ 3X!", "1R 2R 3. 3R", FALSE, HIGH, BOOSTED},
        {"1X+ 3S!", "1R 3. 3R", FALSE, HIGH, BOOSTED},
        {"1X+ 3X!", "1R 3. 3R", FALSE, LOW, LOW},
        {"1X+ 3X!", "1R 3. 3R", TRUE, HIGH, LOW},
    };
    ERESOURCE resource;
    LARGE_INTEGER long_enough = relative(SECOND + SECOND / 5);
    (void)state;
    for (ULONG i = 0; i < RTL_NUMBER_OF(rows); i += 1) {
        ULONG owners = rows[i].before[4] == '2' ? 2 : 1;
        initialize(&resource);
        if (rows[i].disable) {
            ExDisableResourceBoostLite(&resource);
        }
        KeSetPriorityThread(players[0].actor.thread, LOW);
        KeSetPriorityThread(players[1].actor.thread, LOW);
        KeSetPriorityThread(players[2].actor.thread, rows[i].waiter);
        ULONGLONG begin = KeQueryInterruptTime();
        run_script(&executive, &resource, rows[i].before);
        KPRIORITY early = priority_of(players[0].actor.thread);
        assert_true(early == LOW || KeQueryInterruptTime() - begin >= SECOND / 2); /* not before the waiter has waited so long */
        if (rows[i].owner == BOOSTED) {
            await(priority_of(players[0].actor.thread) == BOOSTED);
            await(owners == 1 || priority_of(players[1].actor.thread) == BOOSTED);
        } else {
            KeDelayExecutionThread(KernelMode, FALSE, &long_enough);
            assert_int_equal(priority_of(players[0].actor.thread), LOW);
        }
        run_script(&executive, &resource, rows[i].after);
        remove_resource(&resource);
    }
}

/* 13 */

static ERESOURCE victim;

static void be_verified(void)
{
    KiVerifierEnabled = TRUE;
}

static void release_not_owned(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExReleaseResourceLite(&victim);
}

static void *acquire_and_stay(void *how)
{
    KeEnterCriticalRegion();
    if (how != NULL) {
        ExAcquireResourceExclusiveLite(&victim, TRUE);
    } else {
        ExAcquireResourceSharedLite(&victim, TRUE);
    }
    return KeGetCurrentThread();
}

static PKTHREAD owned_by_other(BOOLEAN exclusive)
{
    pthread_t thread;
    void *owner;
    check(pthread_create(&thread, NULL, acquire_and_stay, exclusive ? &victim : NULL) == 0);
    check(pthread_join(thread, &owner) == 0);
    return owner;
}

static void release_others(void *exclusive)
{
    owned_by_other(exclusive != NULL);
    KeEnterCriticalRegion();
    ExReleaseResourceLite(&victim);
}

static void release_once_too_often(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&victim, TRUE);
    ExReleaseResourceLite(&victim);
    ExReleaseResourceLite(&victim);
}

static void release_for_nobody(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExReleaseResourceForThreadLite(&victim, 0);
}

static void release_after_bequest(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&victim, TRUE);
    ExSetResourceOwnerPointer(&victim, (PVOID)((ULONG_PTR)&victim | 3));
    ExReleaseResourceLite(&victim);
}

static void release_for_other_verified(void *unused)
{
    (void)unused;
    ERESOURCE_THREAD other = (ERESOURCE_THREAD)owned_by_other(FALSE);
    be_verified();
    KeEnterCriticalRegion();
    ExReleaseResourceForThreadLite(&victim, other);
}

static void delete_owned(void *exclusive)
{
    owned_by_other(exclusive != NULL);
    ExDeleteResourceLite(&victim);
}

static void reinitialize_owned(void *unused)
{
    (void)unused;
    owned_by_other(TRUE);
    ExReinitializeResourceLite(&victim);
}

static void delete_twice(void *unused)
{
    (void)unused;
    ExDeleteResourceLite(&victim);
    ExDeleteResourceLite(&victim);
}

static void initialize_twice(void *unused)
{
    (void)unused;
    be_verified();
    ExInitializeResourceLite(&victim);
}

static void convert_shared(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&victim, TRUE);
    ExConvertExclusiveToSharedLite(&victim);
}

static void set_bad_owner(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&victim, TRUE);
    ExSetResourceOwnerPointer(&victim, (PVOID)((ULONG_PTR)&victim | 1));
}

static void set_owner_of_nothing(void *unused)
{
    (void)unused;
    ExSetResourceOwnerPointer(&victim, (PVOID)((ULONG_PTR)&victim | 3));
}

static void acquire_with_apcs(void *unused)
{
    (void)unused;
    be_verified();
    ExAcquireResourceSharedLite(&victim, TRUE);
}

static void release_with_apcs(void *unused)
{
    (void)unused;
    be_verified();
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&victim, TRUE);
    KeLeaveCriticalRegion();
    ExReleaseResourceLite(&victim);
}

static void acquire_at_dispatch_level(void *unused)
{
    (void)unused;
    be_verified();
    KeRaiseIrqlToDpcLevel();
    ExAcquireResourceSharedLite(&victim, TRUE);
}

static void acquire_misaligned(void *unused)
{
    static char memory[sizeof(ERESOURCE) + 8] __attribute__((aligned(8)));
    (void)unused;
    be_verified();
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite((PERESOURCE)(void *)(memory + 4), TRUE);
}

static void wait_for_oneself(void *unused)
{
    (void)unused;
    be_verified();
    KeEnterCriticalRegion();
    ExAcquireResourceSharedLite(&victim, TRUE);
    ExAcquireResourceExclusiveLite(&victim, TRUE);
}

static void misuse_13(void **state)
{
    static const struct {
        uint32_t code;
        void (*function)(void *argument);
        void *argument;
    } rows[] = {
        {RESOURCE_NOT_OWNED, release_not_owned, NULL},
        {RESOURCE_NOT_OWNED, release_others, NULL},
        {RESOURCE_NOT_OWNED, release_others, &victim},
        {RESOURCE_NOT_OWNED, release_once_too_often, NULL},
        {RESOURCE_NOT_OWNED, release_after_bequest, NULL},
        {RESOURCE_NOT_OWNED, convert_shared, NULL},
        {RESOURCE_NOT_OWNED, set_owner_of_nothing, NULL},
        {ERESOURCE_INVALID_RELEASE, release_for_other_verified, NULL},
        {RESOURCE_OWNER_POINTER_INVALID, set_bad_owner, NULL},
        {IRQL_NOT_LESS_OR_EQUAL, acquire_at_dispatch_level, NULL},
        {SHARED_RESOURCE_CONV_ERROR, wait_for_oneself, NULL},
    };
    static const struct {
        uint64_t kind;
        void (*function)(void *argument);
        void *argument;
    } violations[] = {
        {0x100B, delete_owned, NULL},
        {0x100B, delete_owned, &victim},
        {0x100B, reinitialize_owned, NULL},
        {0xD1, delete_twice, NULL},
        {0xD0, initialize_twice, NULL},
        {0x37, acquire_with_apcs, NULL},
        {0x38, release_with_apcs, NULL},
        {0x3D, acquire_misaligned, NULL},
    };
    (void)state;
    initialize(&victim);
    for (ULONG i = 0; i < RTL_NUMBER_OF(rows); i += 1) {
        expect_bugcheck(rows[i].code, rows[i].function, rows[i].argument);
    }
    for (ULONG i = 0; i < RTL_NUMBER_OF(violations); i += 1) {
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, violations[i].kind, violations[i].function,
                         violations[i].argument);
    }
    if (!KiVerifierEnabled) {
        expect_bugcheck(RESOURCE_NOT_OWNED, release_for_nobody, NULL);
    }
    remove_resource(&victim);
}

/* A thread yields before it waits; if the resource was released meanwhile, it gets it without waiting. */
static struct {
    ERESOURCE resource;
    VOID (*yield)(VOID);
    PKTHREAD thread; /* that yields */
    volatile ULONG yields;
    volatile BOOLEAN released;
} looker;

static VOID wait_until_released(VOID)
{
    if (KeGetCurrentThread() != looker.thread) {
        looker.yield();
        return;
    }
    __atomic_fetch_add(&looker.yields, 1, __ATOMIC_SEQ_CST);
    await(__atomic_load_n(&looker.released, __ATOMIC_SEQ_CST));
}

static void acquire_and_release(void *argument)
{
    (void)argument;
    KeEnterCriticalRegion();
    check(ExAcquireResourceExclusiveLite(&looker.resource, TRUE));
    ExReleaseResourceLite(&looker.resource);
    KeLeaveCriticalRegion();
}

static void yield_before_wait_9(void **state)
{
    actor a;
    (void)state;
    initialize(&looker.resource);
    start_actor(&a);
    looker.yield = HalDispatch.Yield;
    looker.thread = a.thread;
    KeEnterCriticalRegion();
    check(ExAcquireResourceSharedLite(&looker.resource, TRUE));
    HalDispatch.Yield = wait_until_released;
    tell(&a, acquire_and_release, NULL);
    await(__atomic_load_n(&looker.yields, __ATOMIC_SEQ_CST) != 0);
    assert_int_equal(ExGetExclusiveWaiterCount(&looker.resource), 0);
    ExReleaseResourceLite(&looker.resource);
    KeLeaveCriticalRegion();
    __atomic_store_n(&looker.released, TRUE, __ATOMIC_SEQ_CST);
    await(is_idle(&a));
    HalDispatch.Yield = looker.yield;
    assert_int_equal(looker.resource.ContentionCount, 0);
    end_actor(&a);
    remove_resource(&looker.resource);
}

/* Which thread linked a record: both counts together are right, whichever thread links and unlinks it. */
static void counts_of_owners_10(void **state)
{
    ERESOURCE resource;
    PKTHREAD second = players[1].actor.thread;
    (void)state;
    if (KiVerifierEnabled) {
        skip(); /* it does not let one thread release for another */
    }
    initialize(&resource);
    run_script(&executive, &resource, "1S+ 2S+");
    assert_int_equal(ExpThread(second)->ResourceOwners, 1); /* by itself */
    assert_int_equal(ExpThread(second)->ResourceOwnersByOthers, 0);
    run_script(&executive, &resource, "1F2");
    assert_int_equal(ExpThread(second)->ResourceOwners, 1);
    assert_int_equal((LONG)ExpThread(second)->ResourceOwnersByOthers, -1);
    assert_int_equal(owner_count(second), 0);
    run_script(&executive, &resource, "1R 3X+ 1S! 2S! 3R 1. 2.");
    assert_int_equal(owner_count(players[0].actor.thread) + owner_count(second), 1); /* one is in the resource itself */
    run_script(&executive, &resource, "2S+ 1S+ =2/0/0 2R 1R 1R 2R =0/0/0");
    assert_int_equal(owner_count(players[0].actor.thread), 0);
    assert_int_equal(owner_count(second), 0);
    remove_resource(&resource);
}

/*
 * Another thread keeps the resource locked for long. Acquiring and releasing threads yield meanwhile; only an acquire
 * that finds it locked counts toward the thread's turn.
 */
static struct {
    ERESOURCE resource;
    VOID (*yield)(VOID);
    PKTHREAD comer, leaver;
    volatile ULONG yields[2];
} locked;

static VOID count_yields_of_both(VOID)
{
    PKTHREAD self = KeGetCurrentThread();
    if (self == locked.comer || self == locked.leaver) {
        __atomic_fetch_add(&locked.yields[self == locked.leaver], 1, __ATOMIC_SEQ_CST);
    }
    locked.yield();
}

static void long_locked_11(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    initialize(&locked.resource);
    run_script(&executive, &locked.resource, "2S+");
    locked.comer = players[0].actor.thread;
    locked.leaver = players[1].actor.thread;
    locked.yield = HalDispatch.Yield;
    HAL_TURN before[2] = {locked.comer->HostTurn, locked.leaver->HostTurn};
    HalDispatch.Yield = count_yields_of_both;
    ExpLockResource(&locked.resource, self);
    players[0].step = 'S';
    players[1].step = 'R';
    tell(&players[0].actor, play, &players[0]);
    tell(&players[1].actor, play, &players[1]);
    await(__atomic_load_n(&locked.yields[0], __ATOMIC_SEQ_CST) != 0);
    await(__atomic_load_n(&locked.yields[1], __ATOMIC_SEQ_CST) != 0);
    assert_int_equal(locked.resource.ActiveEntries, 1);
    ExpUnlockResource(&locked.resource, self);
    await(is_idle(&players[0].actor) && is_idle(&players[1].actor));
    HalDispatch.Yield = locked.yield;
    assert_true(players[0].result);
    assert_memory_not_equal(&locked.comer->HostTurn, &before[0], sizeof(before[0]));
    assert_memory_equal(&locked.leaver->HostTurn, &before[1], sizeof(before[1]));
    assert_int_equal(locked.resource.ContentionCount, 0);
    run_script(&executive, &locked.resource, "=1/0/0 1R");
    remove_resource(&locked.resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYED(exclusion_1),
        PLAYED(exclusive_recursion_2),
        PLAYED(shared_recursion_3),
        PLAYED(behind_exclusive_4),
        PLAYED(hand_over_5),
        PLAYED(conversion_6),
        PLAYED(tries_7),
        PLAYED(owner_pointers_8),
        PLAYED(members_9),
        WATCHED(yield_before_wait_9),
        WATCHED(test_regions),
        PLAYED(no_allocation_10),
        PLAYED(many_resources_10),
        PLAYED(no_records_10),
        PLAYED(counts_of_owners_10),
        cmocka_unit_test(freed_at_once_11),
        PLAYED(long_locked_11),
        PLAYED(boost_12),
        cmocka_unit_test(misuse_13),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
