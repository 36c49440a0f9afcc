/* machine.h: the same test program on machines with other numbers of processors. */
#ifndef INTERLOCK_TESTS_MACHINE_H
#define INTERLOCK_TESTS_MACHINE_H

#include "../support/support.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ke/irql.h"

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

/* For code that runs outside cmocka. */
#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline void require_free_processors(void)
{
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        require(KiProcessorBlock[number]->Owner == 0);
}

/* From here on the host refuses threads. */
static inline void take_threads_away(void)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};

    require(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* With the argument "threadless" the program runs what works without further host threads. */
static inline void no_host_threads(void **state)
{
    (void)state;
    /* A sanitizer needs the address space that this takes away. */
    if (test_slowdown() == 1)
        assert_int_equal(run_on_processors("3", "threadless"), 0);
}

#endif
