/* mutants.c: mutants and kernel mutexes, recursion, threads that end as owners. */
#include "soak.h"

#define MUTANTS 2

static KMUTEX mutex;
static HANDLE mutants[MUTANTS], of_the_mortal;
static soak_cell mutex_cell, cells[MUTANTS];
static volatile LONG graves, found_abandoned;

static void mutants_setup(void)
{
    KeInitializeMutex(&mutex, 0);
    of_the_mortal = CreateMutexA(NULL, FALSE, NULL);
    for (int i = 0; i < MUTANTS; i++) {
        mutants[i] = CreateMutexA(NULL, FALSE, NULL);
        require(mutants[i] != NULL);
    }
}

static void use_kernel_mutex(test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);

    if (KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, &timeout) != STATUS_SUCCESS)
        return;
    require(KeAreApcsDisabled());
    change_cell(&mutex_cell, random);
    require(KeReleaseMutex(&mutex, FALSE) == 0);
}

/* Acquires a mutant, unless the wait times out. */
static bool take(int which, test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2);
    NTSTATUS status = NtWaitForSingleObject(mutants[which], alertable, &timeout);

    if (status == STATUS_ABANDONED)
        add(&found_abandoned, 1);
    else if (status != STATUS_SUCCESS)
        require(status == STATUS_TIMEOUT || (alertable && (status == STATUS_USER_APC || status == STATUS_ALERTED)));
    return status == STATUS_SUCCESS || status == STATUS_ABANDONED;
}

static void use_mutant(test_random *random)
{
    int which = (int)random_below(random, MUTANTS);
    LONG count = 1, depth = (LONG)random_below(random, 3);

    if (!take(which, random))
        return;
    for (LONG i = 0; i < depth; i++)
        require(NtWaitForSingleObject(mutants[which], FALSE, NULL) == STATUS_SUCCESS);
    change_cell(&cells[which], random);
    for (LONG i = depth; i >= 0; i--)
        require(NtReleaseMutant(mutants[which], &count) == STATUS_SUCCESS && count == -i);
    require(NtReleaseMutant(mutants[which], NULL) == STATUS_MUTANT_NOT_OWNED);
}

static void mutants_step(test_random *random)
{
    if (one_in(random, 3))
        use_kernel_mutex(random);
    else
        use_mutant(random);
}

void die_as_owner(test_random *random)
{
    int which = (int)random_below(random, MUTANTS);

    if (take(which, random))
        add(&graves, 1);
}

HANDLE mutant_of_the_mortal(void)
{
    return of_the_mortal;
}

static void mutants_check(void)
{
    DWORD result;

    for (int i = 0; i < MUTANTS; i++) {
        result = WaitForSingleObject(mutants[i], 0);
        require(result == WAIT_OBJECT_0 || result == WAIT_ABANDONED);
        found_abandoned += result == WAIT_ABANDONED;
        require(ReleaseMutex(mutants[i]) && CloseHandle(mutants[i]));
    }
    require(found_abandoned == graves);
    require(CloseHandle(of_the_mortal));
    require(KeReadStateMutex(&mutex) == 1);
}

const soak_family mutants_family = {.name = "mutants",
                                    .weight = 8,
                                    .without_heap = true,
                                    .setup = mutants_setup,
                                    .step = mutants_step,
                                    .check = mutants_check};
