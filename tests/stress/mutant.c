/*
 * Mutants: handoff under mutual exclusion, and abandonment by threads that exit as owners. Exactly one later owner
 * learns of each abandonment.
 */
#include "stress.h"

#define THREADS 4
#define MUTANTS 16

static struct {
    KMUTANT mutant[MUTANTS];
    unsigned long rounds;
    unsigned long owners;
    unsigned long acquired;       /* protected by the mutant, not atomic */
    unsigned long acquired_total;
    unsigned long abandonments;
    unsigned long abandoned_waits;
    unsigned long generations_left;
    long held[MUTANTS];
} race;

static void start_race(unsigned long rounds)
{
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(rounds);
    for (unsigned i = 0; i < MUTANTS; i++)
        KeInitializeMutant(&race.mutant[i], FALSE);
}

static void use_as_owner(KMUTANT *mutant, test_random *random)
{
    LONG depth = (LONG)random_below(random, 3);

    require(add(&race.owners, 1) == 1);
    race.acquired++;
    for (LONG i = 0; i < depth; i++)
        require(wait_for(mutant) == STATUS_SUCCESS);
    require(KeReadStateMutant(mutant) == -depth);
    for (LONG i = depth; i > 0; i--)
        require(KeReleaseMutant(mutant, MUTANT_INCREMENT, FALSE, FALSE) == -i);
    add(&race.owners, -1UL);
    require(KeReleaseMutant(mutant, MUTANT_INCREMENT, FALSE, FALSE) == 0);
}

static void competitor(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long round = 0; round < race.rounds / THREADS; round++) {
        LARGE_INTEGER timeout = in_microseconds(random_below(&random, 30));
        NTSTATUS status = KeWaitForSingleObject(&race.mutant[0], WrMutex, KernelMode, FALSE,
                                                random_below(&random, 4) == 0 ? &timeout : NULL);

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        if (status == STATUS_SUCCESS) {
            use_as_owner(&race.mutant[0], &random);
            add(&race.acquired_total, 1);
        }
    }
}

static void one_owner_at_a_time(void **state)
{
    (void)state;
    start_race(400000);
    run_threads(THREADS, HANG_SECONDS, competitor, NULL);
    assert_int_equal(race.acquired, race.acquired_total);
    assert_int_equal(KeReadStateMutant(&race.mutant[0]), 1);
    assert_null(race.mutant[0].OwnerThread);
}

static void count_owned(NTSTATUS status, unsigned index, NTSTATUS satisfied)
{
    require(status == satisfied || status == STATUS_ABANDONED_WAIT_0 + (satisfied - STATUS_WAIT_0));
    if (status != satisfied)
        add(&race.abandoned_waits, 1);
    require(add(&race.held[index], 1) == 1);
}

/* Exits as the owner of every mutant, of some recursively. */
static void short_lived(void *argument, unsigned unused)
{
    test_random random;

    (void)unused;
    random_seed(&random, (uintptr_t)argument);
    for (unsigned i = 0; i < MUTANTS; i++) {
        count_owned(wait_for(&race.mutant[i]), i, STATUS_WAIT_0);
        if (random_below(&random, 4) == 0)
            require(wait_for(&race.mutant[i]) == STATUS_SUCCESS);
    }
    add(&race.abandonments, MUTANTS);
    for (unsigned i = 0; i < MUTANTS; i++)
        add(&race.held[i], -1);
}

static void wait_for_any_mutant(test_random *random)
{
    void *objects[MUTANTS];
    KWAIT_BLOCK blocks[MUTANTS];
    NTSTATUS status;
    unsigned first = random_below(random, MUTANTS);
    unsigned index;

    for (unsigned i = 0; i < MUTANTS; i++)
        objects[i] = &race.mutant[(first + i) % MUTANTS];
    status = KeWaitForMultipleObjects(MUTANTS, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks);
    index = (unsigned)status & (MAXIMUM_WAIT_OBJECTS - 1);
    count_owned(status, (first + index) % MUTANTS, STATUS_WAIT_0 + (NTSTATUS)index);
    add(&race.held[(first + index) % MUTANTS], -1);
    require(KeReleaseMutant(objects[index], MUTANT_INCREMENT, FALSE, FALSE) == 0);
}

static void wait_for_one_mutant(test_random *random)
{
    unsigned index = random_below(random, MUTANTS);

    count_owned(wait_for(&race.mutant[index]), index, STATUS_WAIT_0);
    add(&race.held[index], -1);
    require(KeReleaseMutant(&race.mutant[index], MUTANT_INCREMENT, FALSE, FALSE) == 0);
}

static void heir(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    while (load(&race.generations_left) != 0) {
        if (random_below(&random, 2) == 0)
            wait_for_any_mutant(&random);
        else
            wait_for_one_mutant(&random);
    }
}

static void abandonment_is_told_once(void **state)
{
    test_threads *heirs;

    (void)state;
    start_race(20000);
    race.generations_left = race.rounds;
    heirs = start_threads(2, heir, NULL);
    for (; race.generations_left != 0; add(&race.generations_left, -1UL))
        run_threads(1, HANG_SECONDS, short_lived, (void *)race.generations_left);
    join_threads(heirs, HANG_SECONDS);
    for (unsigned i = 0; i < MUTANTS; i++) {
        count_owned(poll_for(&race.mutant[i]), i, STATUS_WAIT_0);
        KeReleaseMutant(&race.mutant[i], MUTANT_INCREMENT, FALSE, FALSE);
    }
    assert_int_equal(race.abandonments, MUTANTS * race.rounds);
    assert_int_equal(race.abandoned_waits, race.abandonments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owner_at_a_time),
        cmocka_unit_test(abandonment_is_told_once),
    };

    return cmocka_run_group_tests_name("stress/mutant", tests, NULL, NULL);
}
