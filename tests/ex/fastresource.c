/* Fast resources. Numbers are those of the requirements in fastresource.c. */
#include "resourcetest.h"

#include "../support/heap.h"

static PFAST_ERESOURCE fast(PERESOURCE resource)
{
    return (PFAST_ERESOURCE)resource;
}

static void initialize(PERESOURCE resource)
{
    ExInitializeFastResource(fast(resource), 0);
}

static void remove_resource(PERESOURCE resource)
{
    ExDeleteFastResource(fast(resource));
}

static BOOLEAN acquire(player *p, char how, BOOLEAN wait)
{
    PFAST_ERESOURCE resource = fast(p->resource);
    PFAST_OWNER_ENTRY entry = &p->entry[p->depth];
    BOOLEAN acquired;
    switch (how) {
    case 'X':
        acquired = wait ? ExAcquireFastResourceExclusive(resource, entry, TRUE)
                        : ExTryAcquireFastResourceExclusive(resource, entry);
        break;
    case 'S':
        acquired = wait ? ExAcquireFastResourceShared(resource, entry, TRUE)
                        : ExTryAcquireFastResourceShared(resource, entry);
        break;
    default:
        acquired = ExAcquireFastResourceSharedStarveExclusive(resource, entry, wait);
    }
    p->depth += acquired;
    return acquired;
}

static void release(player *p)
{
    p->depth -= 1;
    ExReleaseFastResource(fast(p->resource), &p->entry[p->depth]);
}

static void convert(player *p)
{
    ExConvertFastResourceExclusiveToShared(fast(p->resource), &p->entry[0]);
}

static const lock_kind fast_kind = {initialize, remove_resource, acquire, release, convert};

/* The same resource by the names of executive resources (5). */

static void initialize_legacy(PERESOURCE resource)
{
    ExInitializeFastResource(fast(resource), EX_FAST_RESOURCE_ENABLE_LEGACY_APIS);
}

static BOOLEAN acquire_legacy(player *p, char how, BOOLEAN wait)
{
    switch (how) {
    case 'X':
        return ExAcquireResourceExclusiveLite(p->resource, wait);
    case 'S':
        return ExAcquireResourceSharedLite(p->resource, wait);
    case 'V':
        return ExAcquireSharedStarveExclusive(p->resource, wait);
    default:
        return ExAcquireSharedWaitForExclusive(p->resource, wait);
    }
}

static void release_legacy(player *p)
{
    ExReleaseResourceLite(p->resource);
}

static void convert_legacy(player *p)
{
    ExConvertExclusiveToSharedLite(p->resource);
}

static const lock_kind legacy_kind = {initialize_legacy, remove_resource, acquire_legacy, release_legacy,
                                      convert_legacy};

/* Odd players use one set of names, even ones the other. */

static BOOLEAN acquire_mixed(player *p, char how, BOOLEAN wait)
{
    return (p - players) % 2 ? acquire(p, how, wait) : acquire_legacy(p, how, wait);
}

static void release_mixed(player *p)
{
    (p - players) % 2 ? release(p) : release_legacy(p);
}

static void convert_mixed(player *p)
{
    (p - players) % 2 ? convert(p) : convert_legacy(p);
}

static const lock_kind mixed_kind = {initialize_legacy, remove_resource, acquire_mixed, release_mixed, convert_mixed};

/* Each acquire of a thread alternates between the two sets of names. */

static BOOLEAN acquire_alternating(player *p, char how, BOOLEAN wait)
{
    BOOLEAN acquired;
    if (p->depth % 2 == 0) {
        return acquire(p, how, wait);
    }
    acquired = acquire_legacy(p, how, wait);
    p->depth += acquired;
    return acquired;
}

static void release_alternating(player *p)
{
    if (p->depth % 2) {
        release(p);
    } else {
        p->depth -= 1;
        release_legacy(p);
    }
}

static const lock_kind alternating_kind = {initialize_legacy, remove_resource, acquire_alternating,
                                           release_alternating, convert};

static void run_all(const lock_kind *kind)
{
    RUN(kind, exclusion_scripts);
    RUN(kind, exclusive_recursion_scripts);
    RUN(kind, shared_recursion_scripts);
    RUN(kind, behind_exclusive_scripts);
    RUN(kind, hand_over_scripts);
    if (kind != &alternating_kind) {
        RUN(kind, conversion_scripts);
    }
}

static void as_executive_1(void **state)
{
    static const char *const scripts[] = {"1X+ 1X+ 1S+ =3x/0/0 1R 1R =1x/0/0 1R", "1S+ 1S+ 2S+ =3/0/0 1R 1R =1/0/0 2R"};
    (void)state;
    run_all(&fast_kind);
    RUN(&fast_kind, scripts);
}

static void empty_heap(void *unused)
{
    (void)unused;
    allocations_left = 0;
}

/* 2: no records and no memory; the entry may be reused for another resource, or freed. */
static void entries_2(void **state)
{
    FAST_ERESOURCE first, second;
    PFAST_OWNER_ENTRY entry = malloc(sizeof(*entry));
    PKTHREAD self = KeGetCurrentThread();
    PEXP_OWNER taken = NULL, owner;
    (void)state;
    ExInitializeFastResource(&first, 0);
    ExInitializeFastResource(&second, 0);
    assert_ptr_equal(ExpSystemResourcesList.Blink, &((PERESOURCE)&second)->SystemResourcesList);
    ExInitializeFastOwnerEntry(entry);
    KeEnterCriticalRegion();
    assert_true(ExAcquireFastResourceExclusive(&first, entry, TRUE));
    assert_true(ExIsFastResourceHeldExclusive(&first));
    ExConvertFastResourceExclusiveToShared(&first, entry);
    assert_true(ExIsFastResourceHeld(&first));
    assert_false(ExIsFastResourceHeldExclusive(&first));
    assert_false(ExIsFastResourceHeld(&second));
    ExReleaseFastResource(&first, entry);
    assert_false(ExIsFastResourceHeld(&first));
    assert_true(ExTryAcquireFastResourceShared(&second, entry));
    ExReleaseFastResource(&second, entry);
    free(entry);
    KeLeaveCriticalRegion();
    ExDeleteFastResource(&first);
    ExDeleteFastResource(&second);

    KiEnterDispatcher(self);
    while ((owner = ExpTakeOwnerRecord(self)) != NULL) {
        owner->Next = taken;
        taken = owner;
    }
    KiExitDispatcher(self);
    allocations_refused = 0;
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        run_on(&players[i].actor, empty_heap, NULL);
    }
    RUN(&fast_kind, hand_over_scripts);
    RUN(&fast_kind, shared_recursion_scripts);
    assert_int_equal(allocations_refused, 0);
    KiEnterDispatcher(self);
    while (taken != NULL) {
        owner = taken;
        taken = owner->Next;
        ExpGiveBackOwnerRecord(self, owner);
    }
    KiExitDispatcher(self);
}

/* 3 */

static void acquire_and_disown(void *argument)
{
    player *p = argument;
    check(p->kind->acquire(p, p->step, TRUE));
    ExDisownFastResource(fast(p->resource), &p->entry[0]);
    check(!ExIsFastResourceHeld(fast(p->resource)));
    p->depth = 0;
}

static void disowned_3(void **state)
{
    FAST_ERESOURCE resource;
    player *one = &players[0];
    static const char steps[] = "XS";
    (void)state;
    ExInitializeFastResource(&resource, 0);
    for (ULONG i = 0; i < 2; i += 1) {
        one->kind = &fast_kind;
        one->resource = (PERESOURCE)&resource;
        one->step = steps[i];
        run_on(&one->actor, acquire_and_disown, one);
        run_script(&fast_kind, (PERESOURCE)&resource, "2x- 3X!");
        ExReleaseDisownedFastResource(&resource, &one->entry[0]);
        run_script(&fast_kind, (PERESOURCE)&resource, "3. =1x/0/0 3R =0/0/0");
    }
    ExDeleteFastResource(&resource);
}

/* 4 */

static FAST_ERESOURCE victim, other_victim;
static ERESOURCE legacy_victim;
static FAST_OWNER_ENTRY first_entry, second_entry, unused_entry;

static void initialize_victims(void)
{
    ExInitializeFastResource(&victim, 0);
    ExInitializeFastResource(&other_victim, 0);
    ExInitializeResourceLite(&legacy_victim);
    ExInitializeFastOwnerEntry(&first_entry);
    ExInitializeFastOwnerEntry(&second_entry);
    KeEnterCriticalRegion();
}

static void too_high_0(void)
{
    KeRaiseIrqlToDpcLevel();
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
}

static void uninitialized_entry_1(void)
{
    ExAcquireFastResourceShared(&victim, &unused_entry, TRUE);
}

static void entry_in_use_2(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExAcquireFastResourceShared(&other_victim, &first_entry, TRUE);
}

static void legacy_resource_3(void)
{
    ExAcquireFastResourceShared((PFAST_ERESOURCE)&legacy_victim, &first_entry, TRUE);
}

static void outstanding_4(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExDeleteFastResource(&victim);
}

static void acquire_in_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc, (void)context, (void)argument1, (void)argument2;
    KeLowerIrql(APC_LEVEL);
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
}

/* Also at a level that would do. */
static void in_dpc_5(void)
{
    static KDPC dpc;
    KIRQL old = KeRaiseIrqlToDpcLevel();
    KeInitializeDpc(&dpc, acquire_in_dpc, NULL);
    KeSetTargetProcessorDpc(&dpc, (CCHAR)KeGetCurrentProcessorNumber());
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeLowerIrql(old);
}

static void apcs_enabled_7(void)
{
    KeLeaveCriticalRegion();
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
}

static void other_resource_8(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExReleaseFastResource(&other_victim, &first_entry);
}

static void not_acquired_8(void)
{
    ExReleaseFastResource(&victim, &first_entry);
}

static void *acquire_first(void *unused)
{
    KeEnterCriticalRegion();
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    return unused;
}

static void other_thread_9(void)
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, acquire_first, NULL) == 0);
    check(pthread_join(thread, NULL) == 0);
    ExReleaseFastResource(&victim, &first_entry);
}

static void disowned_a(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExDisownFastResource(&victim, &first_entry);
    ExReleaseFastResource(&victim, &first_entry);
}

static void convert_shared_b(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExConvertFastResourceExclusiveToShared(&victim, &first_entry);
}

static void not_disowned_d(void)
{
    ExAcquireFastResourceShared(&victim, &first_entry, TRUE);
    ExReleaseDisownedFastResource(&victim, &first_entry);
}

static void legacy_delete_e(void)
{
    ExDeleteResourceLite((PERESOURCE)&victim);
}

static void legacy_owner_e(void)
{
    ExSetResourceOwnerPointer((PERESOURCE)&victim, (PVOID)((ULONG_PTR)&victim | 3));
}

static void legacy_acquire_f(void)
{
    ExAcquireResourceSharedLite((PERESOURCE)&victim, TRUE);
}

static void bad_flags_10(void)
{
    ExDeleteFastResource(&victim);
    ExInitializeFastResource(&victim, 0x80);
}

static void release_for_other_11(void)
{
    ExReleaseResourceForThreadLite((PERESOURCE)&victim, (ERESOURCE_THREAD)&victim);
}

static void disown_recursive_12(void)
{
    ExAcquireFastResourceExclusive(&victim, &first_entry, TRUE);
    ExAcquireFastResourceExclusive(&victim, &second_entry, TRUE);
    ExDisownFastResource(&victim, &second_entry);
}

static void convert_recursive_13(void)
{
    ExAcquireFastResourceExclusive(&victim, &first_entry, TRUE);
    ExAcquireFastResourceExclusive(&victim, &second_entry, TRUE);
    ExConvertFastResourceExclusiveToShared(&victim, &first_entry);
}

static void convert_unowned_16(void)
{
    ExDeleteFastResource(&other_victim);
    ExInitializeFastResource(&other_victim, EX_FAST_RESOURCE_ENABLE_LEGACY_APIS);
    ExConvertExclusiveToSharedLite((PERESOURCE)&other_victim);
}

typedef struct misuse {
    uint64_t kind;
    void (*function)(void);
} misuse;

static void commit(void *argument)
{
    const misuse *m = argument;
    initialize_victims();
    m->function();
}

static void preconditions_4(void **state)
{
    static misuse rows[] = {
        {0x0, too_high_0},         {0x1, uninitialized_entry_1}, {0x2, entry_in_use_2},
        {0x3, legacy_resource_3},  {0x4, outstanding_4},         {0x5, in_dpc_5},
        {0x7, apcs_enabled_7},
        {0x8, other_resource_8},   {0x8, not_acquired_8},        {0x9, other_thread_9},
        {0xa, disowned_a},         {0xb, convert_shared_b},      {0xd, not_disowned_d},
        {0xe, legacy_delete_e},    {0xe, legacy_owner_e},        {0xf, legacy_acquire_f},
        {0x10, bad_flags_10},      {0x11, release_for_other_11}, {0x12, disown_recursive_12},
        {0x13, convert_recursive_13}, {0x16, convert_unowned_16},
    };
    (void)state;
    for (ULONG i = 0; i < RTL_NUMBER_OF(rows); i += 1) {
        expect_violation(FAST_ERESOURCE_PRECONDITION_VIOLATION, rows[i].kind, commit, &rows[i]);
    }
}

/* A guarded region is enough, and so is APC_LEVEL. */
static void apcs_disabled_4(void **state)
{
    KIRQL irql;
    (void)state;
    ExInitializeFastResource(&victim, 0);
    ExInitializeFastOwnerEntry(&first_entry);
    KeEnterGuardedRegion();
    assert_true(ExAcquireFastResourceExclusive(&victim, &first_entry, TRUE));
    ExReleaseFastResource(&victim, &first_entry);
    KeLeaveGuardedRegion();
    KeRaiseIrql(APC_LEVEL, &irql);
    assert_true(ExAcquireFastResourceExclusive(&victim, &first_entry, TRUE));
    ExReleaseFastResource(&victim, &first_entry);
    KeLowerIrql(irql);
    ExDeleteFastResource(&victim);
}

static void legacy_names_5(void **state)
{
    (void)state;
    run_all(&legacy_kind);
    run_all(&mixed_kind);
    run_all(&alternating_kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYED(as_executive_1), PLAYED(entries_2),      PLAYED(disowned_3),
        cmocka_unit_test(preconditions_4), cmocka_unit_test(apcs_disabled_4), PLAYED(legacy_names_5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
