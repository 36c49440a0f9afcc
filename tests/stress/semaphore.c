/* Semaphores with eight threads: never more inside than the count, and every release is acquired or remains. */
#include "stress.h"

#define THREADS 8
#define PLACES 3

static struct {
    KSEMAPHORE semaphore;
    unsigned long rounds;
    long inside;
    unsigned long made;
    unsigned long taken;
    unsigned long makers_left;
} race;

static NTSTATUS take(test_random *random)
{
    LARGE_INTEGER timeout = in_microseconds(random_below(random, 20));

    return KeWaitForSingleObject(&race.semaphore, Executive, KernelMode, FALSE,
                                 random_below(random, 4) == 0 ? &timeout : NULL);
}

static void visitor(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long round = 0; round < race.rounds / THREADS; round++) {
        NTSTATUS status = take(&random);

        if (status == STATUS_TIMEOUT)
            continue;
        require(status == STATUS_SUCCESS);
        require(add(&race.inside, 1) <= PLACES);
        spin_for(random_below(&random, 20));
        add(&race.inside, -1);
        require(KeReleaseSemaphore(&race.semaphore, SEMAPHORE_INCREMENT, 1, FALSE) < PLACES);
    }
}

static void never_more_inside_than_places(void **state)
{
    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(400000);
    KeInitializeSemaphore(&race.semaphore, PLACES, PLACES);
    run_threads(THREADS, HANG_SECONDS, visitor, NULL);
    assert_int_equal(KeReadStateSemaphore(&race.semaphore), PLACES);
    assert_true(IsListEmpty(&race.semaphore.Header.WaitListHead));
}

static void make(test_random *random)
{
    for (unsigned long round = 0; round < race.rounds / (THREADS / 2); round++) {
        LONG count = 1 + (LONG)random_below(random, 4);

        KeReleaseSemaphore(&race.semaphore, SEMAPHORE_INCREMENT, count, FALSE);
        add(&race.made, (unsigned long)count);
        spin_for(random_below(random, 100));
    }
    add(&race.makers_left, -1UL);
}

static void use(test_random *random)
{
    for (;;) {
        int last = load(&race.makers_left) == 0;
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 100));
        NTSTATUS status = KeWaitForSingleObject(&race.semaphore, Executive, KernelMode, FALSE, &timeout);

        if (status == STATUS_SUCCESS)
            add(&race.taken, 1);
        else if (last)
            return;
    }
}

static void maker_or_user(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    if (index % 2 == 0)
        make(&random);
    else
        use(&random);
}

static void everything_made_is_taken(void **state)
{
    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(200000);
    race.makers_left = THREADS / 2;
    KeInitializeSemaphore(&race.semaphore, 0, MAXLONG);
    run_threads(THREADS, HANG_SECONDS, maker_or_user, NULL);
    assert_int_equal(race.made, race.taken + (unsigned long)KeReadStateSemaphore(&race.semaphore));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_more_inside_than_places),
        cmocka_unit_test(everything_made_is_taken),
    };

    return cmocka_run_group_tests_name("stress/semaphore", tests, NULL, NULL);
}
