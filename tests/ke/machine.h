/* machine.h: the same test program on machines with other numbers of processors. */
#ifndef INTERLOCK_TESTS_MACHINE_H
#define INTERLOCK_TESTS_MACHINE_H

#include "../support/support.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs this program again with one argument and INTERLOCK_PROCESSORS set; returns its wait status. */
static inline int run_on_processors(const char *processors, const char *argument)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        setenv("INTERLOCK_PROCESSORS", processors, 1);
        execl("/proc/self/exe", "self", argument, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return status;
}

/* For code that runs outside of cmocka. */
#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
