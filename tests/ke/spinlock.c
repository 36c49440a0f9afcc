#include "machine.h"

#include "ke/irql.h"

#define THREADS 4

static void words_and_levels(void **state)
{
    KSPIN_LOCK lock = 7;
    KIRQL old;

    (void)state;
    KeInitializeSpinLock(&lock);
    assert_int_equal(lock, 0);
    assert_true(KeTestSpinLock(&lock));
    KeAcquireSpinLock(&lock, &old);
    assert_int_equal(old, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_int_equal(lock, KiVerifierEnabled ? (KSPIN_LOCK)KeGetCurrentThread() | 1 : 1);
    assert_false(KeTestSpinLock(&lock));
    assert_false(KeTryToAcquireSpinLockAtDpcLevel(&lock));
    KeReleaseSpinLock(&lock, old);
    assert_int_equal(lock, 0);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);

    old = KeAcquireSpinLockRaiseToSynch(&lock);
    assert_int_equal(KeGetCurrentIrql(), SYNCH_LEVEL);
    KeReleaseSpinLockFromDpcLevel(&lock);
    assert_int_equal(KeGetCurrentIrql(), SYNCH_LEVEL);
    assert_true(KeTryToAcquireSpinLockAtDpcLevel(&lock));
    KeReleaseSpinLock(&lock, old);

    old = KeRaiseIrqlToDpcLevel();
    KeAcquireSpinLockAtDpcLevel(&lock);
    KeReleaseSpinLockFromDpcLevel(&lock);
    KeLowerIrql(old);
}

static KSPIN_LOCK counter_lock;
static unsigned long counter; /* not atomic: the lock protects it */

static void count_under_lock(void *rounds, unsigned index)
{
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = *(unsigned long *)rounds; round != 0; round--) {
        KIRQL old;

        switch (random_below(&random, 3)) {
        case 0:
            KeAcquireSpinLock(&counter_lock, &old);
            break;
        case 1:
            old = KeRaiseIrqlToDpcLevel();
            KeAcquireSpinLockAtDpcLevel(&counter_lock);
            break;
        default:
            old = KeRaiseIrqlToDpcLevel();
            while (!KeTryToAcquireSpinLockAtDpcLevel(&counter_lock))
                YieldProcessor();
            break;
        }
        counter++;
        KeReleaseSpinLock(&counter_lock, old);
    }
}

static int exclusion(void)
{
    unsigned long rounds = test_rounds(100000);

    run_threads(THREADS, 60, count_under_lock, &rounds);
    require(counter == THREADS * rounds);
    return 0;
}

static void holders_exclude_each_other(void **state)
{
    static const char *const counts[] = {"1", "2", "4"};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_int_equal(run_on_processors(counts[i], "exclusion"), 0);
}

static void acquire_twice(void *unused)
{
    KSPIN_LOCK lock = 0;

    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireSpinLockRaiseToDpc(&lock);
    KeAcquireSpinLockAtDpcLevel(&lock);
}

static void release_free(void *unused)
{
    KSPIN_LOCK lock = 0;

    (void)unused;
    KiVerifierEnabled = TRUE;
    KeRaiseIrqlToDpcLevel();
    KeReleaseSpinLockFromDpcLevel(&lock);
}

static void acquire_too_low(void *unused)
{
    KSPIN_LOCK lock = 0;

    (void)unused;
    KiVerifierEnabled = TRUE;
    KeAcquireSpinLockAtDpcLevel(&lock);
}

static void acquire_too_high(void *unused)
{
    KSPIN_LOCK lock = 0;

    (void)unused;
    KfRaiseIrql(DISPATCH_LEVEL + 1);
    KeAcquireSpinLockRaiseToDpc(&lock);
}

static void release_to_higher(void *unused)
{
    KSPIN_LOCK lock = 0;

    (void)unused;
    KeAcquireSpinLockRaiseToDpc(&lock);
    KeReleaseSpinLock(&lock, DISPATCH_LEVEL + 1);
}

static void misuse(void **state)
{
    (void)state;
    expect_bugcheck(SPIN_LOCK_ALREADY_OWNED, acquire_twice, NULL);
    expect_bugcheck(SPIN_LOCK_NOT_OWNED, release_free, NULL);
    expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, acquire_too_low, NULL);
    expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, acquire_too_high, NULL);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, release_to_higher, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_levels),
        cmocka_unit_test(holders_exclude_each_other),
        cmocka_unit_test(misuse),
    };
    if (argc == 2 && strcmp(argv[1], "exclusion") == 0)
        return exclusion();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
