/* cases.c: for the mutation check: runs some cases of a cmocka program, those whose numbers are in MUTATION_CASES, and attributes
   what they reach to each of them (reach.c). Linked into the program, so that it precedes cmocka's own function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reach.h"

#define CASES 512

typedef int run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                      CMFixtureFunction teardown);

static const struct CMUnitTest *every;
static struct {
    unsigned number; /* among those that the program has in this configuration: tests/support/rounds.c removes others */
    size_t index;
} chosen[CASES];
static unsigned next;

/* cmocka calls the setup functions in the order of the cases. */
static int begin_case(void **state)
{
    unsigned number = chosen[next].number;
    const struct CMUnitTest *test = &every[chosen[next++].index];
    char text[16];

    snprintf(text, sizeof(text), "%u", number + 1);
    setenv("MUTATION_CASE", text, 1);
    mutation_case(number + 1);
    return test->setup_func != NULL ? test->setup_func(state) : 0;
}

static size_t choose_cases(size_t count)
{
    const char *numbers = getenv("MUTATION_CASES");
    unsigned number = 0;
    size_t found = 0;

    for (size_t index = 0; index < count && number < CASES; index++) {
        char text[16];
        if (every[index].test_func == NULL)
            continue;
        snprintf(text, sizeof(text), ",%u,", number);
        if (numbers == NULL || strstr(numbers, text) != NULL) {
            chosen[found].number = number;
            chosen[found++].index = index;
        }
        number++;
    }
    return found;
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t count, CMFixtureFunction setup,
                            CMFixtureFunction teardown)
{
    static struct CMUnitTest selected[CASES];
    run_group *real = (run_group *)dlsym(RTLD_NEXT, "_cmocka_run_group_tests");
    every = tests;
    size_t found = choose_cases(count);
    for (size_t index = 0; index < found; index++) {
        selected[index] = tests[chosen[index].index];
        selected[index].setup_func = begin_case;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* the caller of the program reads each result at once */
    int failed = real(name, selected, found, setup, teardown);
    mutation_case(0);
    return failed;
}
