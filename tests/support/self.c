/* The helpers themselves: what they are meant to catch makes them fail. */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop_44(void *argument)
{
    (void)argument;
    fprintf(stderr, "*** STOP: 0x00000044 (0x1, 0x2, 0x3, 0x4)\n");
    abort();
}

static void return_quietly(void *argument)
{
    (void)argument;
}

static void abort_without_report(void *argument)
{
    (void)argument;
    abort();
}

static void report_and_return(void *argument)
{
    (void)argument;
    fprintf(stderr, "*** STOP: 0x00000044 (0x1, 0x2, 0x3, 0x4)\n");
}

static void fail_an_assertion(void *argument)
{
    (void)argument;
    assert_int_equal(1, 2);
}

static void wait_forever(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    for (;;)
        pause();
}

/* Runs one case in its own child; its output goes into text. True if it ended by SIGABRT. */
static int aborts(void (*run)(void), char *text, size_t size)
{
    static const struct rlimit no_core;
    size_t used = 0;
    ssize_t got;
    int ends[2];
    int status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        run();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, size - used - 1)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void expect_of_returning(void)
{
    expect_bugcheck(0x44, return_quietly, NULL);
}

static void expect_of_plain_abort(void)
{
    expect_bugcheck(0x44, abort_without_report, NULL);
}

static void expect_of_other_code(void)
{
    expect_bugcheck(0x45, stop_44, NULL);
}

static void expect_of_surviving(void)
{
    expect_bugcheck(0x44, report_and_return, NULL);
}

static void expect_of_failed_assertion(void)
{
    expect_bugcheck(0x44, fail_an_assertion, NULL);
}

static void hang(void)
{
    run_threads(2, 1, wait_forever, NULL);
}

static void fail_in_thread(void *argument, unsigned index)
{
    (void)index;
    fail_an_assertion(argument);
}

static void fail_in_threads(void)
{
    unsetenv("CMOCKA_TEST_ABORT"); /* with it cmocka prints everything at once */
    run_threads(1, 10, fail_in_thread, NULL);
}

static void failures_of_threads_are_shown(void **state)
{
    char text[8192];

    (void)state;
    assert_false(aborts(fail_in_threads, text, sizeof(text)));
    assert_non_null(strstr(text, "1 != 0x2"));
    assert_non_null(strstr(text, "self.c:"));
}

static void bugcheck_is_seen(void **state)
{
    (void)state;
    expect_bugcheck(0x44, stop_44, NULL);
}

static void missing_bugchecks_are_reported(void **state)
{
    void (*const cases[])(void) = {expect_of_returning, expect_of_plain_abort, expect_of_other_code,
                                   expect_of_surviving, expect_of_failed_assertion};
    char text[8192];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(aborts(cases[i], text, sizeof(text)));
        assert_non_null(strstr(text, "expected \"*** STOP: 0x0000004"));
    }
}

static void hanging_threads_are_shown(void **state)
{
    static char text[65536];

    (void)state;
    assert_true(aborts(hang, text, sizeof(text)));
    assert_non_null(strstr(text, "the test hangs"));
    assert_non_null(strstr(text, "wait_forever"));
}

static void count_up(void *argument, unsigned index)
{
    __atomic_fetch_add((unsigned *)argument, 1u << (index * 4), __ATOMIC_RELAXED);
}

static void every_thread_runs_once(void **state)
{
    unsigned sum = 0;

    (void)state;
    run_threads(8, 20, count_up, &sum);
    assert_int_equal(sum, 0x11111111);
}

static void rounds_follow_the_environment(void **state)
{
    const char *before = getenv("INTERLOCK_STRESS_ROUNDS");
    char *kept = before != NULL ? strdup(before) : NULL;

    (void)state;
    unsetenv("INTERLOCK_STRESS_ROUNDS");
    assert_int_equal(test_rounds(5000), 5000);
    setenv("INTERLOCK_STRESS_ROUNDS", "70", 1);
    assert_int_equal(test_rounds(5000), 70);
    setenv("INTERLOCK_STRESS_ROUNDS", "5%", 1);
    assert_int_equal(test_rounds(5000), 250);
    assert_int_equal(test_rounds(10), 1);
    if (kept != NULL)
        setenv("INTERLOCK_STRESS_ROUNDS", kept, 1);
    else
        unsetenv("INTERLOCK_STRESS_ROUNDS");
    free(kept);
}

static void random_numbers_spread(void **state)
{
    unsigned seen[8] = {0};
    test_random random;
    unsigned i;

    (void)state;
    random_seed(&random, 1);
    for (i = 0; i < 8000; i++)
        seen[random_below(&random, 8)]++;
    for (i = 0; i < 8; i++)
        assert_in_range(seen[i], 850, 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bugcheck_is_seen),
        cmocka_unit_test(missing_bugchecks_are_reported),
        cmocka_unit_test(hanging_threads_are_shown),
        cmocka_unit_test(failures_of_threads_are_shown),
        cmocka_unit_test(every_thread_runs_once),
        cmocka_unit_test(rounds_follow_the_environment),
        cmocka_unit_test(random_numbers_spread),
    };

    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
