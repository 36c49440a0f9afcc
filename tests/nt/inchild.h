/* inchild.h: a case that changes its process for good, or may end it, runs in one of its own. */
#ifndef INTERLOCK_TESTS_INCHILD_H
#define INTERLOCK_TESTS_INCHILD_H

#include "support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child has to come back from function. */
static inline void run_in_child(void (*function)(void))
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        signal(SIGABRT, SIG_DFL);
        alarm(60 * test_slowdown());
        function();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
}

#endif
