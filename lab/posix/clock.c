/* clock.c: virtual time, sleeping and yielding. Outside of a schedule the time is the host's. */
#include "posix.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#include "host.h"

#define ENDLESS_SLEEP (100ull * 365 * 86400 * 10000000)

static bool is_virtual(void)
{
    return lab != NULL && (lab->running || lab->preparing);
}

static bool is_calendar(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!is_virtual())
        return (int)lab_host_result(lab_host_call(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0));
    uint64_t now = lab_block_clock(CALLER) + (is_calendar(clock) ? LAB_POSIX_EPOCH : 0);
    time->tv_sec = (time_t)(now / 10000000);
    time->tv_nsec = (long)(now % 10000000) * 100;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    if (!is_virtual())
        return (int)lab_host_result(lab_host_call(SYS_gettimeofday, (long)time, (long)zone, 0, 0, 0, 0));
    uint64_t now = lab_block_clock(CALLER) + LAB_POSIX_EPOCH;
    time->tv_sec = (time_t)(now / 10000000);
    time->tv_usec = (suseconds_t)(now % 10000000 / 10);
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *time, int base)
{
    if (base != TIME_UTC)
        return 0;
    clock_gettime(CLOCK_REALTIME, time);
    return base;
}

/* Sleeping. */

static bool is_cancelled(const lab_thread *t)
{
    return lab_posix_is_cancelled(t);
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    (void)t;
    snprintf(buffer, size, "sleeps");
}

static const lab_gate sleep_gate = {is_cancelled, describe};

static void sleep_until(uint64_t deadline, const char *call, uintptr_t pc)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active())
        return;
    lab_posix_test_cancel(t, pc);
    if (deadline <= lab->run.now) {
        lab_step_local(t, OP_LOCAL, pc);
        return;
    }
    lab_report_call(call, 0, 0, false, pc);
    lab_posix_announce(NULL, pc);
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    lab_posix_access_cancel(t);
    bool woken = lab_gate_pass(t, &sleep_gate, deadline);
    lab_step_make(t, t->op.accesses, t->op.access);
    if (woken)
        lab_posix_test_cancel(t, pc);
    lab_report_call("wakes up", 0, 0, false, pc);
    lab_cycle_sweep();
}

/* Relative times count from now. */
static int sleep_for(const struct timespec *time, const char *call, uintptr_t pc)
{
    if (time->tv_nsec < 0 || time->tv_nsec >= 1000000000 || time->tv_sec < 0)
        return EINVAL;
    uint64_t length = (uint64_t)time->tv_sec > ENDLESS_SLEEP / 10000000 ? ENDLESS_SLEEP
                                                               : (uint64_t)time->tv_sec * 10000000 + (uint64_t)(time->tv_nsec + 99) / 100;
    sleep_until(lab->run.now + length, call, pc);
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!is_virtual())
        return (int)lab_host_result(lab_host_call(SYS_nanosleep, (long)time, (long)left, 0, 0, 0, 0));
    int error = sleep_for(time, "nanosleep", CALLER);
    errno = error != 0 ? error : errno;
    return error != 0 ? -1 : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    uint64_t deadline;

    if (!is_virtual())
        return (int)-lab_host_call(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0);
    if (!(flags & TIMER_ABSTIME))
        return sleep_for(time, "clock_nanosleep", CALLER);
    if (!lab_posix_deadline(clock, time, &deadline))
        return EINVAL;
    sleep_until(deadline != 0 ? deadline : lab->run.now + ENDLESS_SLEEP, "clock_nanosleep", CALLER);
    return 0;
}

int usleep(useconds_t microseconds)
{
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};

    if (!is_virtual())
        return nanosleep(&time, NULL);
    sleep_for(&time, "usleep", CALLER);
    return 0;
}

unsigned sleep(unsigned seconds)
{
    struct timespec time = {seconds, 0};

    if (!is_virtual())
        return nanosleep(&time, NULL) == 0 ? 0 : 1;
    sleep_for(&time, "sleep", CALLER);
    return 0;
}

int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    if (!is_virtual())
        return nanosleep(time, NULL);
    return sleep_for(time, "thrd_sleep", CALLER) == 0 ? 0 : -2;
}

/* Every schedule is explored, so a thread that yields changes nothing; but one that yields in a loop waits. */
int sched_yield(void)
{
    return 0;
}

void thrd_yield(void)
{
}
