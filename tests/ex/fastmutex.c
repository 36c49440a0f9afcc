/* Fast mutexes and guarded mutexes. Numbers are those of the requirements in fastmutex.c. */
#include "ex/exp.h"

#include "../ke/waittest.h"

#include "../support/heap.h"

#define MOST_OVERTAKINGS 16

typedef struct mutex_kind {
    void (*initialize)(PFAST_MUTEX mutex);
    void (*acquire)(PFAST_MUTEX mutex);
    BOOLEAN (*try_acquire)(PFAST_MUTEX mutex);
    void (*release)(PFAST_MUTEX mutex);
    void (*acquire_unsafe)(PFAST_MUTEX mutex);
    void (*release_unsafe)(PFAST_MUTEX mutex);
    KWAIT_REASON reason;
} mutex_kind;

static void initialize_fast(PFAST_MUTEX mutex)
{
    ExInitializeFastMutex(mutex);
}

static const mutex_kind kinds[] = {
    {initialize_fast, ExAcquireFastMutex, ExTryToAcquireFastMutex, ExReleaseFastMutex, ExAcquireFastMutexUnsafe,
     ExReleaseFastMutexUnsafe, WrFastMutex},
    {KeInitializeGuardedMutex, KeAcquireGuardedMutex, KeTryToAcquireGuardedMutex, KeReleaseGuardedMutex,
     KeAcquireGuardedMutexUnsafe, KeReleaseGuardedMutexUnsafe, WrGuardedMutex},
};

static LONG count_of(PFAST_MUTEX mutex)
{
    return __atomic_load_n(&mutex->Count, __ATOMIC_ACQUIRE);
}

/* An actor that wants the mutex. */
typedef struct rival {
    actor actor;
    const mutex_kind *kind;
    PFAST_MUTEX mutex;
    volatile ULONG holds;
    KIRQL irql;
    sem_t let_go;
} rival;

static void hold(void *argument)
{
    rival *r = argument;
    r->kind->acquire(r->mutex);
    r->irql = KeGetCurrentIrql();
    __atomic_store_n(&r->holds, 1, __ATOMIC_RELEASE);
    while (sem_wait(&r->let_go) != 0) {
    }
    __atomic_store_n(&r->holds, 0, __ATOMIC_RELEASE);
    r->kind->release(r->mutex);
    check(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void start_rivals(rival *r, ULONG count, const mutex_kind *kind, PFAST_MUTEX mutex)
{
    for (ULONG i = 0; i < count; i += 1) {
        memset(&r[i], 0, sizeof(r[i]));
        r[i].kind = kind;
        r[i].mutex = mutex;
        check(sem_init(&r[i].let_go, 0, 0) == 0);
        start_actor(&r[i].actor);
    }
}

static void end_rivals(rival *r, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&r[i].actor);
        sem_destroy(&r[i].let_go);
    }
}

static void begin_to_wait(rival *r)
{
    tell(&r->actor, hold, r);
    await(is_committed(r->actor.thread));
}

static BOOLEAN holds(rival *r)
{
    return __atomic_load_n(&r->holds, __ATOMIC_ACQUIRE) != 0;
}

/* 1, 2, 3: the count at every step; no waiter is forgotten. */
static void counts_3(void **state)
{
    (void)state;
    for (ULONG k = 0; k < RTL_NUMBER_OF(kinds); k += 1) {
        const mutex_kind *kind = &kinds[k];
        FAST_MUTEX mutex;
        rival r[3];
        memset(&mutex, 0xcc, sizeof(mutex));
        kind->initialize(&mutex);
        assert_int_equal(mutex.Count, 1);
        assert_null(mutex.Owner);
        assert_int_equal(mutex.Contention, 0);
        kind->acquire(&mutex);
        assert_int_equal(mutex.Count, 0);
        assert_ptr_equal(mutex.Owner, KeGetCurrentThread());
        start_rivals(r, 3, kind, &mutex);
        for (ULONG i = 0; i < 3; i += 1) {
            begin_to_wait(&r[i]);
            assert_int_equal(count_of(&mutex), -1 - (LONG)i);
            assert_int_equal(mutex.Contention, i + 1);
            assert_int_equal(r[i].actor.thread->WaitReason, kind->reason);
        }
        assert_false(kind->try_acquire(&mutex));
        kind->release(&mutex);
        /* Each gets it in turn, alone; no thread barges here, so in the order of arrival. */
        for (ULONG i = 0; i < 3; i += 1) {
            await(holds(&r[i]));
            assert_int_equal(r[i].irql, APC_LEVEL);
            assert_int_equal(count_of(&mutex), (LONG)i - 2);
            for (ULONG other = i + 1; other < 3; other += 1) {
                assert_false(holds(&r[other]));
            }
            assert_false(kind->try_acquire(&mutex));
            sem_post(&r[i].let_go);
        }
        end_rivals(r, 3);
        assert_int_equal(count_of(&mutex), 1);
        assert_int_equal(mutex.Waking, 0);
        assert_null(mutex.Owner);
        assert_int_equal(mutex.Contention, 3);
        assert_false(poll_object(&mutex.Event));
    }
}

/* 4, 6 */
static void levels_4(void **state)
{
    static const KIRQL levels[] = {PASSIVE_LEVEL, APC_LEVEL};
    (void)state;
    for (ULONG k = 0; k < RTL_NUMBER_OF(kinds); k += 1) {
        const mutex_kind *kind = &kinds[k];
        for (ULONG i = 0; i < RTL_NUMBER_OF(levels); i += 1) {
            FAST_MUTEX mutex;
            rival r;
            KIRQL before;
            kind->initialize(&mutex);
            KeRaiseIrql(levels[i], &before);
            kind->acquire(&mutex);
            assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
            assert_int_equal(mutex.OldIrql, levels[i]);
            kind->release(&mutex);
            assert_int_equal(KeGetCurrentIrql(), levels[i]);

            assert_true(kind->try_acquire(&mutex));
            assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
            assert_int_equal(mutex.OldIrql, levels[i]);
            kind->release(&mutex);
            assert_int_equal(KeGetCurrentIrql(), levels[i]);

            start_rivals(&r, 1, kind, &mutex);
            tell(&r.actor, hold, &r);
            await(holds(&r));
            assert_false(kind->try_acquire(&mutex));
            assert_int_equal(KeGetCurrentIrql(), levels[i]);
            sem_post(&r.let_go);
            end_rivals(&r, 1);

            KeEnterGuardedRegion();
            mutex.OldIrql = 77;
            kind->acquire_unsafe(&mutex);
            assert_int_equal(KeGetCurrentIrql(), levels[i]);
            assert_ptr_equal(mutex.Owner, KeGetCurrentThread());
            assert_int_equal(mutex.OldIrql, 77);
            kind->release_unsafe(&mutex);
            assert_int_equal(KeGetCurrentIrql(), levels[i]);
            KeLeaveGuardedRegion();
            assert_int_equal(mutex.Count, 1);
            KeLowerIrql(before);
        }
    }
}

/* 5: a waiter that always loses finally gets it, against a thread that reacquires it at once. */

static void pass(void *argument)
{
    rival *r = argument;
    ExAcquireFastMutex(r->mutex);
    __atomic_store_n(&r->holds, 1, __ATOMIC_RELEASE);
    ExReleaseFastMutex(r->mutex);
}

static void bounded_overtaking_5(void **state)
{
    FAST_MUTEX mutex;
    rival r[2];
    ULONG rounds = 0;
    (void)state;
    ExInitializeFastMutex(&mutex);
    start_rivals(r, 2, &kinds[0], &mutex);
    ExAcquireFastMutex(&mutex);
    for (ULONG i = 0; i < 2; i += 1) {
        tell(&r[i].actor, pass, &r[i]);
        await(is_committed(r[i].actor.thread));
    }
    while (!holds(&r[0]) || !holds(&r[1])) {
        ExReleaseFastMutex(&mutex);
        ExAcquireFastMutex(&mutex);
        rounds += 1;
        assert_in_range(rounds, 1, 2 * MOST_OVERTAKINGS);
        for (ULONG i = 0; i < 2; i += 1) {
            await(is_committed(r[i].actor.thread) || holds(&r[i]));
        }
    }
    ExReleaseFastMutex(&mutex);
    end_rivals(r, 2);
    assert_int_equal(mutex.Count, 1);
    assert_int_equal(mutex.Waking, 0);
    assert_false(poll_object(&mutex.Event));
}

/* 5: a waiter whose wake takes long is granted the mutex, when it has been overtaken often enough. */

#define GRANTED 4 /* in Waking */
#define MOST_TIMES 2001

/* The host keeps the thread asleep, whatever happens to its word, until the test releases it. */
static struct {
    HAL_DISPATCH host;
    volatile ULONG *word;
    volatile ULONG asleep;
    sem_t let_go;
} late;

static BOOLEAN wait_late(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    if (address != late.word || __atomic_exchange_n(&late.asleep, 1, __ATOMIC_ACQ_REL) != 0) {
        return late.host.Wait(address, expected, deadline);
    }
    while (sem_wait(&late.let_go) != 0) {
    }
    return TRUE;
}

static void late_waiter_5(void **state)
{
    FAST_MUTEX mutex;
    rival r;
    ULONG overtaken = 0;
    (void)state;
    late.host = HalDispatch;
    check(sem_init(&late.let_go, 0, 0) == 0);
    HalDispatch.Wait = wait_late;
    ExInitializeFastMutex(&mutex);
    start_rivals(&r, 1, &kinds[0], &mutex);
    late.word = &r.actor.thread->WakeWord;
    ExAcquireFastMutex(&mutex);
    tell(&r.actor, pass, &r);
    await(__atomic_load_n(&late.asleep, __ATOMIC_ACQUIRE) != 0);
    for (;;) {
        ExReleaseFastMutex(&mutex);
        if (__atomic_load_n(&mutex.Waking, __ATOMIC_RELAXED) & GRANTED) {
            break;
        }
        assert_in_range(overtaken, 0, MOST_TIMES);
        ExAcquireFastMutex(&mutex);
        assert_int_equal(count_of(&mutex), -1);
        overtaken += 1;
    }
    assert_in_range(overtaken, 10, MOST_TIMES);
    assert_int_equal(count_of(&mutex), 0);
    assert_false(ExTryToAcquireFastMutex(&mutex));
    check(sem_post(&late.let_go) == 0);
    await(is_idle(&r.actor));
    end_rivals(&r, 1);
    HalDispatch.Wait = late.host.Wait;
    sem_destroy(&late.let_go);
    assert_int_equal(mutex.Count, 1);
    assert_int_equal(mutex.Waking, 0);
}

/* 7 */
static void use_without_heap(void *argument, unsigned index)
{
    PFAST_MUTEX mutex = argument;
    (void)index;
    KeGetCurrentThread();
    allocations_left = 0;
    for (ULONG i = 0; i < 500; i += 1) {
        ExAcquireFastMutex(mutex);
        if (i % 50 == 0) {
            HalDispatch.Yield();
        }
        ExReleaseFastMutex(mutex);
    }
    allocations_left = -1;
}

static void no_allocation_7(void **state)
{
    FAST_MUTEX mutex;
    (void)state;
    ExInitializeFastMutex(&mutex);
    allocations_refused = 0;
    run_threads(4, TEST_SECONDS, use_without_heap, &mutex);
    assert_int_equal(allocations_refused, 0);
    assert_int_equal(mutex.Count, 1);
}

/* 8: the last thread to release frees the memory. */

typedef struct shared_object {
    FAST_MUTEX mutex;
    ULONG references;
} shared_object;

static void drop_reference(void *argument, unsigned index)
{
    shared_object *object = argument;
    (void)index;
    ExAcquireFastMutex(&object->mutex);
    BOOLEAN last = --object->references == 0;
    ExReleaseFastMutex(&object->mutex);
    if (last) {
        memset(object, 0xdd, sizeof(*object));
        free(object);
    }
}

static void freed_at_once_8(void **state)
{
    (void)state;
    for (unsigned long round = test_rounds(500); round != 0; round -= 1) {
        shared_object *object = malloc(sizeof(*object));
        ExInitializeFastMutex(&object->mutex);
        object->references = 3;
        run_threads(3, TEST_SECONDS, drop_reference, object);
    }
}

/* 9 */

static FAST_MUTEX victim;

static void be_verified(void)
{
    KiVerifierEnabled = TRUE;
    ExInitializeFastMutex(&victim);
}

static void acquire_again(void *unused)
{
    (void)unused;
    be_verified();
    ExAcquireFastMutex(&victim);
    ExAcquireFastMutex(&victim);
}

static void acquire_again_unsafe(void *unused)
{
    (void)unused;
    be_verified();
    KeAcquireGuardedMutex(&victim);
    KeAcquireGuardedMutexUnsafe(&victim);
}

static void *acquire_and_leave(void *unused)
{
    KeEnterGuardedRegion();
    ExAcquireFastMutexUnsafe(&victim);
    return unused;
}

static void release_others(void *unused)
{
    pthread_t thread;
    (void)unused;
    be_verified();
    check(pthread_create(&thread, NULL, acquire_and_leave, NULL) == 0);
    check(pthread_join(thread, NULL) == 0);
    ExReleaseFastMutex(&victim);
}

static void release_free(void *verified)
{
    KiVerifierEnabled = verified != NULL;
    ExInitializeFastMutex(&victim);
    KeEnterGuardedRegion();
    ExReleaseFastMutexUnsafe(&victim);
}

static void acquire_too_high(void *try)
{
    be_verified();
    KeRaiseIrqlToDpcLevel();
    if (try != NULL) {
        ExTryToAcquireFastMutex(&victim);
    } else {
        ExAcquireFastMutex(&victim);
    }
}

static void release_too_low(void *unused)
{
    (void)unused;
    be_verified();
    ExAcquireFastMutex(&victim);
    KeLowerIrql(PASSIVE_LEVEL);
    ExReleaseFastMutex(&victim);
}

static void acquire_with_apcs(void *unused)
{
    (void)unused;
    be_verified();
    ExAcquireFastMutexUnsafe(&victim);
}

static void release_with_apcs(void *unused)
{
    (void)unused;
    be_verified();
    KeEnterCriticalRegion();
    ExAcquireFastMutexUnsafe(&victim);
    KeLeaveCriticalRegion();
    ExReleaseFastMutexUnsafe(&victim);
}

static void acquire_at_dispatch_level_free(void *unused)
{
    (void)unused;
    KiVerifierEnabled = FALSE;
    ExInitializeFastMutex(&victim);
    KeRaiseIrqlToDpcLevel();
    ExAcquireFastMutex(&victim);
}

static void misuse_9(void **state)
{
    static const struct {
        uint64_t kind;
        void (*function)(void *argument);
        void *argument;
    } violations[] = {
        {0x1000, acquire_again, NULL},    {0x1000, acquire_again_unsafe, NULL}, {0x1004, release_others, NULL},
        {0x1007, release_free, &victim},  {0x33, acquire_too_high, NULL},       {0x33, acquire_too_high, &victim},
        {0x34, release_too_low, NULL},    {0x39, acquire_with_apcs, NULL},      {0x3A, release_with_apcs, NULL},
    };
    (void)state;
    for (ULONG i = 0; i < RTL_NUMBER_OF(violations); i += 1) {
        expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, violations[i].kind, violations[i].function,
                         violations[i].argument);
    }
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_free, NULL);
    expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, acquire_at_dispatch_level_free, NULL); /* KeRaiseIrql to a lower level */
}

/* 9: without the verifier the owner waits for itself, until another thread releases the mutex. */
static void hold_twice(void *argument)
{
    rival *r = argument;
    ExAcquireFastMutex(r->mutex);
    ExAcquireFastMutex(r->mutex);
    ExReleaseFastMutex(r->mutex);
    KeLowerIrql(PASSIVE_LEVEL);
}

static void recursion_deadlocks_9(void **state)
{
    BOOLEAN verifier = KiVerifierEnabled;
    FAST_MUTEX mutex;
    rival r;
    (void)state;
    KiVerifierEnabled = FALSE;
    ExInitializeFastMutex(&mutex);
    start_rivals(&r, 1, &kinds[0], &mutex);
    tell(&r.actor, hold_twice, &r);
    await(is_committed(r.actor.thread));
    assert_int_equal(count_of(&mutex), -1);
    ExReleaseFastMutexUnsafe(&mutex);
    await(is_idle(&r.actor));
    assert_int_equal(count_of(&mutex), 1);
    end_rivals(&r, 1);
    KiVerifierEnabled = verifier;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(counts_3),          WATCHED(levels_4),
        WATCHED(bounded_overtaking_5),
        WATCHED(late_waiter_5),
        cmocka_unit_test(no_allocation_7), cmocka_unit_test(freed_at_once_8),
        cmocka_unit_test(misuse_9), WATCHED(recursion_deadlocks_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
