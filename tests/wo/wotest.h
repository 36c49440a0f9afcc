/* wotest.h: worlds in anonymous shared memory, and processes that are killed. */
#ifndef INTERLOCK_TESTS_WOTEST_H
#define INTERLOCK_TESTS_WOTEST_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/support.h"

#include "wo/wop.h"

#define MICROSECOND 1000L

/* A world without a file. The view is the calling process's. */
static inline void make_world(WO_VIEW *view, size_t size)
{
    *view = (WO_VIEW){.Mapped = size, .Key = HalQueryProcessKey(HalCurrentProcessId())};
    view->World = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(view->World, MAP_FAILED);
    assert_true(view->Key != 0);
    WopInitializeWorld(view->World, size);
}

static inline void delete_world(WO_VIEW *view)
{
    munmap(view->World, view->Mapped);
}

/* In a forked child: the view is this process's from now on. */
static inline void become_process(WO_VIEW *view)
{
    view->Key = HalQueryProcessKey(HalCurrentProcessId());
}

/* Forks; the child runs body(view, argument) and exits with 0. */
static inline pid_t start_process(WO_VIEW *view, void (*body)(WO_VIEW *view, void *argument), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        become_process(view);
        body(view, argument);
        _exit(0);
    }
    return child;
}

static inline int await_process(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static inline void kill_process(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    await_process(child);
}

static inline void nap(long nanoseconds)
{
    nanosleep(&(struct timespec){0, nanoseconds}, NULL);
}

#endif
