#include "sanitizers.h"
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#if defined(THREAD_SANITIZER)

const char *__tsan_default_options(void);

/* A bugcheck is expected in a forked child and must end it with a plain SIGABRT. */
const char *__tsan_default_options(void)
{
    return "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:handle_abort=0";
}

unsigned test_slowdown(void)
{
    return 5;
}

#elif defined(ADDRESS_SANITIZER)

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* Wait blocks live on stacks: a frame must not be touched after its function has returned. */
const char *__asan_default_options(void)
{
    return "detect_leaks=1:detect_stack_use_after_return=1:handle_abort=0";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

unsigned test_slowdown(void)
{
    return 3;
}

#define MOST_PAUSES 100

/* A child whose heap is locked hangs (support.h): a starting or exiting thread does not hold the heap's lock once it
   sleeps or is gone. */
static void await_quiet(void)
{
    static const struct timespec pause = {.tv_nsec = 500000};

    for (int pauses = 0; pauses < MOST_PAUSES && !all_others_sleep(); pauses++)
        nanosleep(&pause, NULL);
}

__attribute__((constructor)) static void fork_in_quiet(void)
{
    if (pthread_atfork(await_quiet, NULL, NULL) != 0)
        abort();
}

#else

unsigned test_slowdown(void)
{
    return 1;
}

#endif

int test_heap_may_stay_locked(void)
{
#ifdef ADDRESS_SANITIZER
    return 1;
#else
    return 0;
#endif
}
