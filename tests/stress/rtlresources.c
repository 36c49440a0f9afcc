/* User-mode resources: shared and exclusive owners that convert and nest, over plain memory. */
#include "freedbylast.h"

#include <interlock/rtl.h>

struct table {
    RTL_RESOURCE resource;
    unsigned long rounds;
    unsigned long first; /* equal unless a thread owns the resource exclusively */
    unsigned long second;
    unsigned long writes;
};

static void look(struct table *table)
{
    require(table->first == table->second);
}

static void change(struct table *table)
{
    look(table);
    table->first += 1;
    if (table->first % 16 == 0)
        sched_yield();
    table->second += 1;
    add(&table->writes, 1);
}

static void share(struct table *table)
{
    require(RtlAcquireResourceShared(&table->resource, TRUE));
    look(table);
    RtlReleaseResource(&table->resource);
}

static void own(struct table *table)
{
    require(RtlAcquireResourceExclusive(&table->resource, TRUE));
    change(table);
    require(RtlAcquireResourceShared(&table->resource, FALSE));
    require(RtlAcquireResourceExclusive(&table->resource, FALSE));
    change(table);
    RtlReleaseResource(&table->resource);
    RtlReleaseResource(&table->resource);
    RtlReleaseResource(&table->resource);
}

static void convert(struct table *table)
{
    require(RtlAcquireResourceShared(&table->resource, TRUE));
    look(table);
    RtlConvertSharedToExclusive(&table->resource);
    change(table);
    RtlConvertExclusiveToShared(&table->resource);
    look(table);
    RtlReleaseResource(&table->resource);
}

static void try_both(struct table *table)
{
    if (RtlAcquireResourceExclusive(&table->resource, FALSE)) {
        change(table);
        RtlReleaseResource(&table->resource);
    }
    if (RtlAcquireResourceShared(&table->resource, FALSE)) {
        look(table);
        RtlReleaseResource(&table->resource);
    }
}

static void work(void *argument, unsigned index)
{
    static void (*const kinds[])(struct table *) = {share, share, share, own, convert, try_both};
    struct table *table = argument;
    test_random random;

    random_seed(&random, index);
    for (unsigned long i = 0; i < table->rounds; i++)
        kinds[random_below(&random, ARRAYSIZE(kinds))](table);
}

static void work_with(unsigned threads)
{
    struct table table = {.rounds = test_rounds(40000) / threads + 1};

    RtlInitializeResource(&table.resource);
    run_threads(threads, HANG_SECONDS, work, &table);
    assert_int_equal(table.first, table.writes);
    assert_int_equal(table.second, table.writes);
    assert_int_equal(table.resource.NumberOfActive, 0);
    assert_int_equal(table.resource.NumberOfWaitingShared, 0);
    assert_int_equal(table.resource.NumberOfWaitingExclusive, 0);
    assert_null(table.resource.ExclusiveOwnerThread);
    RtlDeleteResource(&table.resource);
}

static void two_threads(void **state)
{
    (void)state;
    work_with(2);
}

static void four_threads(void **state)
{
    (void)state;
    work_with(4);
}

static void sixteen_threads(void **state)
{
    (void)state;
    work_with(16);
}

/* All sharers are inside at once: each waits there for the others. */

struct party {
    RTL_RESOURCE resource;
    unsigned threads;
    unsigned long rounds;
    volatile unsigned long inside;
};

static void join_party(void *argument, unsigned index)
{
    struct party *party = argument;

    (void)index;
    for (unsigned long i = 1; i <= party->rounds; i++) {
        require(RtlAcquireResourceShared(&party->resource, TRUE));
        add(&party->inside, 1);
        await(load(&party->inside) >= i * party->threads);
        RtlReleaseResource(&party->resource);
    }
}

static void sharers_together(void **state)
{
    struct party party = {.threads = 4, .rounds = test_rounds(500)};

    (void)state;
    RtlInitializeResource(&party.resource);
    run_threads(party.threads, HANG_SECONDS, join_party, &party);
    assert_int_equal(party.resource.NumberOfActive, 0);
    RtlDeleteResource(&party.resource);
}

/* The last thread to release deletes and frees the resource. */

typedef struct shared {
    RTL_RESOURCE resource;
    unsigned users;
} shared;

static void make_resource(void *object, unsigned users)
{
    shared *s = object;

    RtlInitializeResource(&s->resource);
    s->users = users;
}

static int is_last(void *object, unsigned index, test_random *random)
{
    shared *s = object;
    int last;

    (void)random;
    if (index == 0)
        require(RtlAcquireResourceExclusive(&s->resource, TRUE));
    else
        require(RtlAcquireResourceShared(&s->resource, TRUE));
    last = add(&s->users, (unsigned)-1) == 0;
    if (!last || index == 0)
        RtlReleaseResource(&s->resource);
    else
        RtlConvertSharedToExclusive(&s->resource); /* the others have released it by then */
    return last;
}

static void delete_resource(void *object)
{
    RtlDeleteResource(object);
}

static void freed_by_the_last(void **state)
{
    static const object_kind kind = {sizeof(shared), make_resource, is_last, delete_resource};

    (void)state;
    free_by_the_last(&kind, 3, test_rounds(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads),      cmocka_unit_test(four_threads),      cmocka_unit_test(sixteen_threads),
        cmocka_unit_test(sharers_together), cmocka_unit_test(freed_by_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
