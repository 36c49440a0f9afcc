/* Resources of user mode: sharers and owners that convert and nest, over plain memory. */
#include "stress.h"

#include <interlock/rtl.h>

struct table {
    RTL_RESOURCE resource;
    unsigned long rounds;
    unsigned long first; /* equal unless somebody owns the resource */
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

/* Sharers are all inside at once: each waits there for the others. */

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

/* Whoever releases last deletes the resource and frees it. */

struct relay {
    struct common *volatile current;
    unsigned threads;
    unsigned long rounds;
    volatile unsigned long finished;
};

struct common {
    RTL_RESOURCE resource;
    volatile unsigned users;
};

static struct common *new_common(unsigned users)
{
    struct common *common = malloc(sizeof(*common));

    require(common != NULL);
    common->users = users;
    RtlInitializeResource(&common->resource);
    return common;
}

static int is_last_user(struct common *common, unsigned index)
{
    int last;

    if (index == 0)
        require(RtlAcquireResourceExclusive(&common->resource, TRUE));
    else
        require(RtlAcquireResourceShared(&common->resource, TRUE));
    last = add(&common->users, (unsigned)-1) == 0;
    if (!last || index == 0)
        RtlReleaseResource(&common->resource);
    else
        RtlConvertSharedToExclusive(&common->resource); /* the others have released it then */
    return last;
}

static void use_and_free(void *argument, unsigned index)
{
    struct relay *relay = argument;

    for (unsigned long i = 0; i < relay->rounds; i++) {
        struct common *common;

        await(load(&relay->finished) == i);
        common = load(&relay->current);
        if (is_last_user(common, index)) {
            RtlDeleteResource(&common->resource);
            memset(common, 0xdd, sizeof(*common));
            free(common);
            store(&relay->current, new_common(relay->threads));
            add(&relay->finished, 1);
        }
    }
}

static void freed_by_the_last(void **state)
{
    struct relay relay = {.threads = 3, .rounds = test_rounds(1000)};

    (void)state;
    relay.current = new_common(relay.threads);
    run_threads(relay.threads, HANG_SECONDS, use_and_free, &relay);
    RtlDeleteResource(&relay.current->resource);
    free(relay.current);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads),      cmocka_unit_test(four_threads),      cmocka_unit_test(sixteen_threads),
        cmocka_unit_test(sharers_together), cmocka_unit_test(freed_by_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
