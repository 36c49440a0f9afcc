/* A part of a test that changes its process for good. */
#ifndef INTERLOCK_TESTS_CHILD_H
#define INTERLOCK_TESTS_CHILD_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define CHILD_SECONDS 60

/* Runs function(argument) in a forked child. Returns how it ended: 0, by itself. */
static inline int child_status(void (*function)(void *argument), void *argument)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        signal(SIGABRT, SIG_DFL);
        alarm(CHILD_SECONDS * test_slowdown());
        function(argument);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static inline void run_in_child(void (*function)(void *argument), void *argument)
{
    assert_int_equal(child_status(function, argument), 0);
}

/* The same for a whole case, which takes no argument. */
static inline void call_case(void *function)
{
    (*(void (**)(void))function)();
}

static inline void run_case_in_child(void (*function)(void))
{
    run_in_child(call_case, &function);
}

#endif
