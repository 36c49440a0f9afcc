/*
 * libuv.c: runs tests of libuv's threads, each in a process of its own. Its loop, whose sockets are out of scope, is
 * not built; the tests need a few other functions of its Windows part, which are here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"

#define SECONDS 60

void uv_sleep(unsigned int milliseconds)
{
    Sleep(milliseconds);
}

uint64_t uv_hrtime(void)
{
    LARGE_INTEGER counter, frequency;

    QueryPerformanceCounter(&counter);
    QueryPerformanceFrequency(&frequency);
    return (uint64_t)((double)counter.QuadPart * 1e9 / (double)frequency.QuadPart);
}

int uv_translate_sys_error(int error)
{
    return error == 0 ? 0 : UV_UNKNOWN;
}

void uv_fatal_error(const int error, const char *call)
{
    fprintf(stderr, "%s: error %d\n", call, error);
    abort();
}

#define TESTS(entry)                                                                                                             \
    entry(barrier_1) entry(barrier_2) entry(barrier_3) entry(barrier_serial_thread) entry(barrier_serial_thread_single)         \
    entry(condvar_1) entry(condvar_2) entry(condvar_3) entry(condvar_4) entry(condvar_5)                                        \
    entry(thread_mutex) entry(thread_mutex_recursive) entry(thread_rwlock) entry(thread_rwlock_trylock)                         \
    entry(semaphore_1) entry(semaphore_2) entry(semaphore_3)                                                    \
    entry(thread_create) entry(thread_equal) entry(thread_local_storage) entry(thread_stack_size)                               \
    entry(thread_stack_size_explicit)

#define DECLARED(name) int run_test_##name(void);
#define LISTED(name) {#name, run_test_##name},

TESTS(DECLARED)

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {TESTS(LISTED)};

static int passes(int (*run)(void))
{
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        alarm(SECONDS);
        _exit(run());
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    int failed = 0;

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        int passed = passes(tests[i].run);

        printf("%s %s\n", passed ? "ok" : "not ok", tests[i].name);
        fflush(stdout);
        failed += !passed;
    }
    return failed != 0;
}
