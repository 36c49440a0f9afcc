/* cmocka.c: the test cases of cmocka, one at a time. This file is linked only into programs that use them. */
#include "../engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest { /* as cmocka.h has it */
    const char *name;
    void (*test)(void **state);
    int (*setup)(void **state);
    int (*teardown)(void **state);
    void *initial_state;
};

const char *lab_cmocka_chosen; /* NULL: list them */

int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count, int (*setup)(void **state),
                            int (*teardown)(void **state));
void _skip(const char *file, int line);

static int run(const struct CMUnitTest *test, void **state)
{
    if (test->setup != NULL && test->setup(state) != 0)
        return 1;
    test->test(state);
    return test->teardown != NULL && test->teardown(state) != 0;
}

int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count, int (*setup)(void **state),
                            int (*teardown)(void **state))
{
    int failed = 0;
    void *state = NULL;

    (void)group;
    for (size_t i = 0; lab_cmocka_chosen == NULL && i < count; i++)
        printf("lab-cmocka:%s\n", tests[i].name);
    if (lab_cmocka_chosen == NULL)
        return 0;
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the schedule where it is */
    for (size_t i = 0; i < count; i++) {
        void *own;

        if (tests[i].test == NULL || strcmp(tests[i].name, lab_cmocka_chosen) != 0)
            continue;
        if (setup != NULL && setup(&state) != 0)
            return 1;
        own = tests[i].initial_state != NULL ? tests[i].initial_state : state;
        failed += run(&tests[i], &own);
        if (teardown != NULL)
            failed += teardown(&state) != 0;
    }
    return failed;
}

void _skip(const char *file, int line)
{
    printf("skipped at %s:%d\n", file, line);
    exit(0);
}
