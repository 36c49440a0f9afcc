/* processes.h: a world of its own for a test program, in a directory of its own, and processes in it. */
#ifndef INTERLOCK_TESTS_WO_PROCESSES_H
#define INTERLOCK_TESTS_WO_PROCESSES_H

#include "wotest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static char directory[] = "/dev/shm/interlock-test-XXXXXX";

/* The one file in the directory. False: there is none. */
static inline bool find_world_file(char path[512])
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    bool found = false;
    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.') {
            assert_false(found);
            snprintf(path, 512, "%s/%s", directory, entry->d_name);
            found = true;
        }
    }
    closedir(d);
    return found;
}

static inline int make_directory(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    setenv("XDG_RUNTIME_DIR", directory, 1);
    setenv("INTERLOCK_SESSION", "test", 1);
    return 0;
}

static inline int remove_directory(void **state)
{
    char path[512];
    (void)state;
    if (find_world_file(path))
        unlink(path);
    return rmdir(directory);
}

static inline PWO_VIEW attach(void)
{
    PWO_VIEW view;
    assert_int_equal(WoOpenView(WoLocal, &view), STATUS_SUCCESS);
    return view;
}

/* Runs body in a new process, which exits as a program does. The parent itself never attaches. */
static inline pid_t start(void (*body)(void *argument), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        alarm(60 * test_slowdown());
        body(argument);
        exit(0);
    }
    return child;
}

static inline void run(void (*body)(void *argument), void *argument)
{
    assert_int_equal(await_process(start(body, argument)), 0);
}

/* A pipe as a semaphore between processes. */
typedef struct steps {
    int ends[2];
} steps;

static inline steps make_steps(void)
{
    steps s;
    assert_int_equal(pipe(s.ends), 0);
    return s;
}

static inline void step(const steps *s)
{
    assert_int_equal(write(s->ends[1], "x", 1), 1);
}

static inline void await_step(const steps *s)
{
    char byte;
    assert_int_equal(read(s->ends[0], &byte, 1), 1);
}

static inline void close_steps(steps *s)
{
    close(s->ends[0]);
    close(s->ends[1]);
}

#endif
