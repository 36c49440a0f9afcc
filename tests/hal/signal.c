/* The signal that the library uses. It decides once for a process, so every case has its own. */
#include "haltest.h"

#include <fcntl.h>

#define NONE (-1)

struct choice {
    const char *setting;
    int occupied;  /* offsets from SIGRTMIN */
    int expected;
};

static void other_handler(int number)
{
    (void)number;
}

static int offset_of_handled_signal(int occupied)
{
    struct sigaction action;
    int number;

    for (number = SIGRTMIN; number <= SIGRTMAX; number++) {
        sigaction(number, NULL, &action);
        if (number - SIGRTMIN != occupied && action.sa_handler != SIG_DFL)
            return number - SIGRTMIN;
    }
    return NONE;
}

static void choose(void *argument)
{
    static const HAL_CALLBACKS callbacks;
    const struct choice *choice = argument;

    /* Its message about a bad setting is ignored here. */
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    if (choice->setting != NULL)
        setenv("INTERLOCK_SIGNAL", choice->setting, 1);
    else
        unsetenv("INTERLOCK_SIGNAL");
    if (choice->occupied != NONE)
        signal(SIGRTMIN + choice->occupied, other_handler);
    HalInitialize(&callbacks);
    HalCompleteInitialization();
    assert_int_equal(offset_of_handled_signal(choice->occupied), choice->expected);
}

static void the_signal_is_chosen_with_care(void **state)
{
    static const struct choice choices[] = {
        {NULL, NONE, 9},
        {NULL, 9, 10},
        {"SIGRTMIN+3", NONE, 3},
        {"SIGRTMIN+0", NONE, 0},
        {"SIGRTMIN+1000", NONE, 9},
        {"SIGRTMIN+", NONE, 9},
        {"SIGRTMIN+3x", NONE, 9},
        {"", NONE, 9},
        {"10", NONE, 9},
        {"-1", NONE, 9},
        {"99999999999999999999", NONE, 9},
        {"interrupt", 9, 10},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        run_in_child(choose, (void *)&choices[i]);
}

static void the_signal_may_be_a_number(void **state)
{
    char setting[16];
    struct choice choice = {setting, NONE, 12};

    (void)state;
    snprintf(setting, sizeof(setting), "%d", SIGRTMIN + 12);
    run_in_child(choose, &choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signal_is_chosen_with_care),
        cmocka_unit_test(the_signal_may_be_a_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
