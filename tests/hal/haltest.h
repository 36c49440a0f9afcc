#ifndef INTERLOCK_TESTS_HALTEST_H
#define INTERLOCK_TESTS_HALTEST_H

#include "hal/hal.h"

#include "child.h"
#include "support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 10000ULL
#define SECOND 10000000ULL

/* The layers above are not linked: hal only carries pointers to threads. */
struct _KTHREAD {
    unsigned exits;
};

static inline void sleep_milliseconds(long milliseconds)
{
    struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static inline void wait_until_set(volatile ULONG *flag)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0)
        sleep_milliseconds(1);
}

static inline void set_flag(volatile ULONG *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static inline ULONGLONG interrupt_time_after(ULONGLONG interval)
{
    return HalDispatch.QueryInterruptTime() + interval;
}

static inline ULONGLONG system_time_after(ULONGLONG interval)
{
    return HalDispatch.QuerySystemTime() + interval;
}

#endif
