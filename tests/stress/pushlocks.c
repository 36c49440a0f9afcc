/* Pushlocks of all kinds, used by many threads in every way at once. */
#include "stress.h"

#include "ex/pushlock.h"

#define LOCKED EX_PUSH_LOCK_LOCK
#define WAITING EX_PUSH_LOCK_WAITING
#define WAKING EX_PUSH_LOCK_WAKING
#define MULTIPLE EX_PUSH_LOCK_MULTIPLE_SHARED

#define MOST_THREADS 64

/* A way to use a lock. What acquire_shared returns goes to release_shared. */
typedef struct kind {
    const char *name;
    void (*create)(void);
    void (*destroy)(void);
    void *(*acquire_shared)(ULONG flags);
    void (*release_shared)(void *held, ULONG flags);
    void (*acquire_exclusive)(ULONG flags);
    void (*release_exclusive)(ULONG flags);
    BOOLEAN converts;
} kind;

static struct {
    const kind *kind;
    EX_PUSH_LOCK normal;
    PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
    PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;
    unsigned long rounds;
    BOOLEAN over;
    unsigned long samples;
    long owners;
    long sharers;
    ULONG64 first;
    ULONG64 second;
} scene;

/* Threads run on processors of the whole virtual machine, not only on those that the host has. */
static __thread ULONG processor;

static ULONG query_processor(void)
{
    return processor;
}

/* Normal. */

static void create_normal(void)
{
    ExInitializePushLock(&scene.normal);
}

static void destroy_normal(void)
{
    require(scene.normal == 0);
}

static void *acquire_normal_shared(ULONG flags)
{
    ExAcquirePushLockSharedEx(&scene.normal, flags);
    return &scene.normal;
}

static void release_normal_shared(void *held, ULONG flags)
{
    ExReleasePushLockSharedEx(held, flags);
}

static void acquire_normal_exclusive(ULONG flags)
{
    ExAcquirePushLockExclusiveEx(&scene.normal, flags);
}

static void release_normal_exclusive(ULONG flags)
{
    ExReleasePushLockExclusiveEx(&scene.normal, flags);
}

/* Cache-aware. */

static void create_cache_aware(void)
{
    scene.cache_aware = ExAllocateCacheAwarePushLock();
}

static void destroy_cache_aware(void)
{
    for (unsigned i = 0; i < EX_PUSH_LOCK_FANNED_COUNT; i++)
        require(*scene.cache_aware->Locks[i] == 0);
    ExFreeCacheAwarePushLock(scene.cache_aware);
}

static void *acquire_cache_aware_shared(ULONG flags)
{
    return ExAcquireCacheAwarePushLockSharedEx(scene.cache_aware, flags);
}

static void release_cache_aware_shared(void *held, ULONG flags)
{
    ExReleaseCacheAwarePushLockSharedEx(held, flags);
}

static void acquire_cache_aware_exclusive(ULONG flags)
{
    ExAcquireCacheAwarePushLockExclusiveEx(scene.cache_aware, flags);
}

static void release_cache_aware_exclusive(ULONG flags)
{
    ExReleaseCacheAwarePushLockExclusiveEx(scene.cache_aware, flags);
}

/* Auto-expand. */

static void create_auto_expand(void)
{
    scene.auto_expand = ExAllocateAutoExpandPushLock(0);
}

static void destroy_auto_expand(void)
{
    require(scene.auto_expand->LocalLock == 0);
    ExFreeAutoExpandPushLock(scene.auto_expand);
}

static void *acquire_auto_expand_shared(ULONG flags)
{
    return ExAcquireAutoExpandPushLockShared(scene.auto_expand, flags);
}

static void release_auto_expand_shared(void *held, ULONG flags)
{
    ExReleaseAutoExpandPushLockShared(scene.auto_expand, held, flags);
}

static void acquire_auto_expand_exclusive(ULONG flags)
{
    ExAcquireAutoExpandPushLockExclusive(scene.auto_expand, flags);
}

static void release_auto_expand_exclusive(ULONG flags)
{
    ExReleaseAutoExpandPushLockExclusive(scene.auto_expand, flags);
}

static const kind normal = {"normal",
                            create_normal,
                            destroy_normal,
                            acquire_normal_shared,
                            release_normal_shared,
                            acquire_normal_exclusive,
                            release_normal_exclusive,
                            TRUE};
static const kind cache_aware = {"cache-aware",
                                 create_cache_aware,
                                 destroy_cache_aware,
                                 acquire_cache_aware_shared,
                                 release_cache_aware_shared,
                                 acquire_cache_aware_exclusive,
                                 release_cache_aware_exclusive,
                                 FALSE};
static const kind auto_expand = {"auto-expand",
                                 create_auto_expand,
                                 destroy_auto_expand,
                                 acquire_auto_expand_shared,
                                 release_auto_expand_shared,
                                 acquire_auto_expand_exclusive,
                                 release_auto_expand_exclusive,
                                 FALSE};

/* The data that the lock protects. */

static void linger(test_random *random)
{
    unsigned amount = random_below(random, 200) == 0 ? 20000 : random_below(random, 20);

    for (volatile unsigned i = 0; i < amount; i++)
        ;
    if (amount == 20000)
        sched_yield();
}

static void be_owner(test_random *random)
{
    require(add(&scene.owners, 1) == 1);
    require(load(&scene.sharers) == 0);
    scene.first += 1;
    linger(random);
    scene.second += 1;
    require(load(&scene.sharers) == 0);
    require(add(&scene.owners, -1) == 0);
}

static void be_sharer(test_random *random)
{
    add(&scene.sharers, 1);
    require(load(&scene.owners) == 0);
    require(scene.first == scene.second);
    linger(random);
    require(load(&scene.owners) == 0);
    add(&scene.sharers, -1);
}

static void own(test_random *random, ULONG flags)
{
    scene.kind->acquire_exclusive(flags);
    be_owner(random);
    scene.kind->release_exclusive(flags);
}

static void share(test_random *random, ULONG flags)
{
    void *held = scene.kind->acquire_shared(flags);

    be_sharer(random);
    processor = random_below(random, KeNumberProcessors);
    scene.kind->release_shared(held, flags);
}

static void convert_down(test_random *random)
{
    ExAcquirePushLockExclusive(&scene.normal);
    be_owner(random);
    ExConvertPushLockExclusiveToShared(&scene.normal);
    be_sharer(random);
    ExReleasePushLock(&scene.normal);
}

static void convert_up(test_random *random)
{
    ExAcquirePushLockShared(&scene.normal);
    be_sharer(random);
    if (ExTryConvertPushLockSharedToExclusive(&scene.normal))
        be_owner(random);
    ExReleasePushLock(&scene.normal);
}

static void try(test_random *random)
{
    if (ExTryAcquirePushLockExclusive(&scene.normal)) {
        be_owner(random);
        ExReleasePushLockExclusive(&scene.normal);
    }
    if (ExTryAcquirePushLockShared(&scene.normal)) {
        be_sharer(random);
        ExReleasePushLockShared(&scene.normal);
    }
}

static void use_once(test_random *random)
{
    ULONG flags = random_below(random, 2);
    unsigned choice = random_below(random, scene.kind->converts ? 16 : 12);

    switch (choice) {
    case 0:
    case 1:
        own(random, flags);
        break;
    case 12:
        convert_down(random);
        break;
    case 13:
        convert_up(random);
        break;
    case 14:
    case 15:
        try(random);
        break;
    default:
        share(random, flags);
        break;
    }
}

static void use(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    KeEnterCriticalRegion();
    for (unsigned long round = 0; round < scene.rounds; round++) {
        processor = random_below(&random, KeNumberProcessors);
        use_once(&random);
    }
    KeLeaveCriticalRegion();
}

/* The invariants of src/ex/pushlock.c, checked while the lock is contended. */
static void check_word(ULONG_PTR word)
{
    require(!(word & WAKING) || (word & WAITING));
    require(!(word & MULTIPLE) || (word & (LOCKED | WAITING)) == (LOCKED | WAITING));
    require((word & (LOCKED | WAITING)) != WAITING || (word & WAKING));
    require((word & (LOCKED | WAITING)) || word == 0);
}

static void sample(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    while (!load(&scene.over)) {
        if (scene.kind == &normal)
            check_word(load(&scene.normal));
        else if (scene.kind == &cache_aware)
            check_word(load(scene.cache_aware->Locks[scene.samples % EX_PUSH_LOCK_FANNED_COUNT]));
        else
            check_word(load(&scene.auto_expand->LocalLock));
        scene.samples += 1;
        if (scene.samples % 64 == 0)
            sched_yield();
    }
}

static void run_kind(const kind *k, unsigned threads)
{
    memset(&scene, 0, sizeof(scene));
    scene.kind = k;
    scene.rounds = test_rounds(400000 / threads);
    k->create();
    test_threads *sampler = start_threads(1, sample, NULL);
    test_threads *users = start_threads(threads, use, NULL);
    join_threads(users, HANG_SECONDS);
    store(&scene.over, TRUE);
    join_threads(sampler, HANG_SECONDS);
    k->destroy();
    assert_int_equal(scene.first, scene.second);
    assert_int_equal(scene.owners, 0);
    assert_int_equal(scene.sharers, 0);
}

static void run_counts(const kind *k)
{
    static const unsigned counts[] = {2, 4, 16, 64};

    for (unsigned i = 0; i < RTL_NUMBER_OF(counts); i++)
        run_kind(k, counts[i]);
}

static void normal_pushlocks_hold(void **state)
{
    (void)state;
    run_counts(&normal);
}

static void cache_aware_pushlocks_hold(void **state)
{
    (void)state;
    run_counts(&cache_aware);
}

static void auto_expand_pushlocks_hold(void **state)
{
    (void)state;
    run_counts(&auto_expand);
}

/* Address-based: tokens lie at a few addresses. A thread that finds none at its address waits there, on one lock shared
   by all; one that adds a token signals. Every token that was added is taken. */
#define PLACES 3

static struct {
    EX_PUSH_LOCK lock;
    ULONG tokens[PLACES] __attribute__((aligned(64)));
    unsigned long rounds;
    unsigned long timeouts;
} market;

static void take_token(ULONG *place, test_random *random)
{
    for (;;) {
        ULONG tokens = load(place);
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 300));
        NTSTATUS status;

        while (tokens != 0) {
            if (__atomic_compare_exchange_n(place, &tokens, tokens - 1, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return;
        }
        status = ExBlockOnAddressPushLock(&market.lock, place, &tokens, sizeof(tokens),
                                          random_below(random, 2) ? &timeout : NULL);
        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        add(&market.timeouts, status == STATUS_TIMEOUT);
    }
}

static void bring_token(ULONG *place)
{
    add(place, 1);
    ExUnblockOnAddressPushLockEx(&market.lock, place, 0);
}

/* Of two neighbours one adds what the other takes. */
static void trade(void *argument, unsigned index)
{
    ULONG *place = &market.tokens[index / 2 % PLACES];
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    want_exact_timeouts();
    for (unsigned long round = 0; round < market.rounds; round++) {
        if (index % 2 == 0) {
            linger(&random);
            bring_token(place);
        } else {
            take_token(place, &random);
        }
    }
}

static void address_based_pushlocks_lose_no_wake(void **state)
{
    static const unsigned counts[] = {2, 4, 16, 64};

    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(counts); i++) {
        memset(&market, 0, sizeof(market));
        market.rounds = test_rounds(400000 / counts[i]);
        run_threads(counts[i], HANG_SECONDS, trade, NULL);
        assert_int_equal(market.lock, 0);
        for (unsigned place = 0; place < PLACES; place++)
            assert_int_equal(market.tokens[place], 0);
    }
}

static int use_all_processors(void **state)
{
    (void)state;
    HalDispatch.CurrentProcessor = query_processor;
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_pushlocks_hold),
        cmocka_unit_test(cache_aware_pushlocks_hold),
        cmocka_unit_test(auto_expand_pushlocks_hold),
        cmocka_unit_test(address_based_pushlocks_lose_no_wake),
    };

    return cmocka_run_group_tests(tests, use_all_processors, NULL);
}
