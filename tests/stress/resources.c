/* Executive resources and fast resources, used by many threads in every way at once. */
#include "freedbylast.h"

#include "ex/resource.h"

#define RESOURCES 3
#define FAST 2          /* a fast resource that the other functions acquire as well */
#define MOST_THREADS 64

static const unsigned thread_counts[] = {2, 4, 16, 64};

typedef struct guarded {
    ERESOURCE resource;
    long writers, readers; /* atomic: how many are inside */
    unsigned long first;   /* not atomic: the resource protects them */
    unsigned long second;
} guarded;

/* What a thread has left to the releaser, which owns nothing itself. */
typedef struct bequest {
    guarded *guarded;
    ERESOURCE_THREAD heir;
} bequest;

static struct {
    guarded guarded[RESOURCES];
    struct {
        bequest *bequest __attribute__((aligned(64)));
    } mailbox[MOST_THREADS];
    unsigned long rounds;
    unsigned long written;
    unsigned running;
} scene;

static void pause_sometimes(test_random *random)
{
    if (random_below(random, 300) == 0)
        sched_yield();
    else
        spin_for(random_below(random, 6));
}

static void write_inside(guarded *g, test_random *random)
{
    require(add(&g->writers, 1) == 1);
    require(load(&g->readers) == 0);
    require(g->first == g->second);
    g->first++;
    pause_sometimes(random);
    g->second++;
    add(&scene.written, 1);
    require(add(&g->writers, -1) == 0);
}

static void read_inside(guarded *g, test_random *random)
{
    unsigned long seen;

    add(&g->readers, 1);
    require(load(&g->writers) == 0);
    seen = g->first;
    require(seen == g->second);
    pause_sometimes(random);
    require(g->first == seen);
    add(&g->readers, -1);
}

/* Before: how often the thread has acquired it with these functions. */
static void recur(guarded *g, test_random *random, unsigned before)
{
    unsigned depth = random_below(random, 3);

    for (unsigned i = 0; i < depth; i++)
        require(ExAcquireResourceSharedLite(&g->resource, i % 2));
    for (unsigned i = 0; i < depth; i++) {
        require(ExIsResourceAcquiredSharedLite(&g->resource) == before + depth - i);
        ExReleaseResourceLite(&g->resource);
    }
}

static void bequeath(guarded *g, unsigned index, bequest *b)
{
    if (g == &scene.guarded[FAST]) {
        ExReleaseResourceLite(&g->resource);
        return;
    }
    await(load(&scene.mailbox[index].bequest) == NULL);
    b->guarded = g;
    b->heir = (ERESOURCE_THREAD)b | 3;
    ExSetResourceOwnerPointer(&g->resource, (PVOID)b->heir);
    store(&scene.mailbox[index].bequest, b);
}

static void use_exclusively(guarded *g, test_random *random, unsigned index, bequest *b)
{
    write_inside(g, random);
    recur(g, random, 1);
    switch (random_below(random, 4)) {
    case 0:
        ExConvertExclusiveToSharedLite(&g->resource);
        require(!ExIsResourceAcquiredExclusiveLite(&g->resource));
        read_inside(g, random);
        ExReleaseResourceLite(&g->resource);
        break;
    case 1:
        bequeath(g, index, b);
        break;
    default:
        require(ExIsResourceAcquiredExclusiveLite(&g->resource));
        ExReleaseResourceLite(&g->resource);
    }
}

static void use_shared(guarded *g, test_random *random, unsigned index, bequest *b)
{
    read_inside(g, random);
    recur(g, random, 1);
    if (random_below(random, 8) == 0)
        bequeath(g, index, b);
    else
        ExReleaseResourceLite(&g->resource);
}

/* The entry is reused right after the release. */
static void use_fast(guarded *g, test_random *random)
{
    PFAST_ERESOURCE resource = (PFAST_ERESOURCE)&g->resource;
    PFAST_OWNER_ENTRY entry = malloc(sizeof(*entry));

    ExInitializeFastOwnerEntry(entry);
    switch (random_below(random, 4)) {
    case 0:
        require(ExAcquireFastResourceExclusive(resource, entry, TRUE));
        write_inside(g, random);
        if (random_below(random, 2)) {
            ExConvertFastResourceExclusiveToShared(resource, entry);
            read_inside(g, random);
        }
        break;
    case 1:
        require(ExAcquireFastResourceSharedStarveExclusive(resource, entry, TRUE));
        read_inside(g, random);
        break;
    case 2:
        if (!ExTryAcquireFastResourceExclusive(resource, entry)) {
            free(entry);
            return;
        }
        write_inside(g, random);
        break;
    default:
        require(ExAcquireFastResourceShared(resource, entry, TRUE));
        read_inside(g, random);
        recur(g, random, 0);
        require(ExIsFastResourceHeld(resource));
    }
    ExReleaseFastResource(resource, entry);
    free(entry);
}

static void use(guarded *g, test_random *random, unsigned index, bequest *b)
{
    if (g == &scene.guarded[FAST] && random_below(random, 2)) {
        use_fast(g, random);
        return;
    }
    switch (random_below(random, 10)) {
    case 0:
    case 1:
        require(ExAcquireResourceExclusiveLite(&g->resource, TRUE));
        use_exclusively(g, random, index, b);
        break;
    case 2:
        if (ExTryToAcquireResourceExclusiveLite(&g->resource))
            use_exclusively(g, random, index, b);
        break;
    case 3:
        if (ExAcquireResourceSharedLite(&g->resource, FALSE))
            use_shared(g, random, index, b);
        break;
    case 4:
        require(ExAcquireSharedWaitForExclusive(&g->resource, TRUE));
        use_shared(g, random, index, b);
        break;
    case 5:
        require(ExAcquireSharedStarveExclusive(&g->resource, TRUE));
        use_shared(g, random, index, b);
        break;
    default:
        require(ExAcquireResourceSharedLite(&g->resource, TRUE));
        use_shared(g, random, index, b);
    }
}

static void contend(unsigned index)
{
    test_random random;
    bequest b;

    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < scene.rounds; round++)
        use(&scene.guarded[random_below(&random, RESOURCES)], &random, index, &b);
    await(load(&scene.mailbox[index].bequest) == NULL);
    add(&scene.running, -1);
}

static void release_bequests(void)
{
    while (load(&scene.running) != 0) {
        for (unsigned i = 0; i < MOST_THREADS; i++) {
            bequest *b = load(&scene.mailbox[i].bequest);

            if (b != NULL) {
                ExReleaseResourceForThreadLite(&b->guarded->resource, b->heir);
                store(&scene.mailbox[i].bequest, NULL);
            }
        }
        sched_yield();
    }
}

static void play(void *argument, unsigned index)
{
    (void)argument;
    KeEnterCriticalRegion();
    if (index == 0)
        release_bequests();
    else
        contend(index - 1);
    KeLeaveCriticalRegion();
}

static void expect_idle(guarded *g)
{
    PERESOURCE resource = &g->resource;

    assert_int_equal(resource->ActiveEntries, 0);
    assert_int_equal(resource->ActiveCount, 0);
    assert_int_equal(resource->Flag, 0);
    assert_null(resource->OwnerTable);
    assert_int_equal(resource->OwnerEntry.OwnerThread, 0);
    assert_int_equal(resource->NumberOfSharedWaiters, 0);
    assert_int_equal(resource->NumberOfExclusiveWaiters, 0);
    assert_null(resource->SharedWaiters);
    assert_null(resource->ExclusiveWaiters);
    assert_int_equal(g->first, g->second);
}

static void everything_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++) {
        unsigned long written = 0;

        memset(&scene, 0, sizeof(scene));
        for (unsigned k = 0; k < FAST; k++)
            assert_int_equal(ExInitializeResourceLite(&scene.guarded[k].resource), STATUS_SUCCESS);
        ExInitializeFastResource((PFAST_ERESOURCE)&scene.guarded[FAST].resource, EX_FAST_RESOURCE_ENABLE_LEGACY_APIS);
        scene.running = thread_counts[i];
        scene.rounds = test_rounds(200000) / thread_counts[i] + 1;
        run_threads(thread_counts[i] + 1, HANG_SECONDS, play, NULL);
        for (unsigned k = 0; k < RESOURCES; k++) {
            expect_idle(&scene.guarded[k]);
            written += scene.guarded[k].first;
        }
        assert_int_equal(written, scene.written);
        for (unsigned k = 0; k < FAST; k++)
            assert_int_equal(ExDeleteResourceLite(&scene.guarded[k].resource), STATUS_SUCCESS);
        ExDeleteFastResource((PFAST_ERESOURCE)&scene.guarded[FAST].resource);
    }
    assert_true(IsListEmpty(&ExpSystemResourcesList));
}

/* The last thread to leave deletes and frees the resource that the others have just left. */

typedef struct shared {
    ERESOURCE resource;
    unsigned users;
} shared;

static void make_resource(void *object, unsigned users)
{
    shared *s = object;

    require(ExInitializeResourceLite(&s->resource) == STATUS_SUCCESS);
    s->users = users;
}

static int is_last(void *object, unsigned index, test_random *random)
{
    shared *s = object;
    int last;

    (void)index;
    spin_for(random_below(random, 20));
    KeEnterCriticalRegion();
    if (random_below(random, 2)) {
        require(ExAcquireResourceSharedLite(&s->resource, TRUE));
        ExReleaseResourceLite(&s->resource);
    }
    require(ExAcquireResourceExclusiveLite(&s->resource, TRUE));
    last = --s->users == 0;
    ExReleaseResourceLite(&s->resource);
    KeLeaveCriticalRegion();
    return last;
}

static void delete_resource(void *object)
{
    require(ExDeleteResourceLite(object) == STATUS_SUCCESS);
}

static void freed_by_the_last(void **state)
{
    static const object_kind kind = {sizeof(shared), make_resource, is_last, delete_resource};

    (void)state;
    free_by_the_last(&kind, 2, test_rounds(10000));
    free_by_the_last(&kind, 4, test_rounds(10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(freed_by_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
