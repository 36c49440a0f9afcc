#include "support.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long test_rounds(unsigned long rounds)
{
    const char *setting = getenv("INTERLOCK_STRESS_ROUNDS");
    char *end;
    unsigned long number;

    if (setting == NULL || *setting == '\0')
        return rounds;
    number = strtoul(setting, &end, 10);
    if (strcmp(end, "%") == 0) {
        rounds = rounds * number / 100;
    } else if (end != setting && *end == '\0') {
        rounds = number;
    } else {
        fprintf(stderr, "INTERLOCK_STRESS_ROUNDS=%s is neither a number nor a percentage\n", setting);
        abort();
    }
    return rounds == 0 ? 1 : rounds;
}

void test_remove_case(struct CMUnitTest *tests, size_t count, CMUnitTestFunction function)
{
    size_t i = 0;

    while (i < count && tests[i].test_func != function)
        i++;
    assert(i < count);
    tests[i] = (struct CMUnitTest){.name = NULL}; /* cmocka passes over it */
}
