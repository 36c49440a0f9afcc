/* Timers: setting, cancelling, expiring. The clock is a thread of the library. */
#include <interlock/lab.h>

#include <ntddk.h>

static KTIMER timer;
static int cancelled;

static void setup(void)
{
    KeInitializeTimerEx(&timer, SynchronizationTimer);
}

static void set_and_wait(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000};
    LabAssert(!KeSetTimer(&timer, due, NULL));
    LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(timer_expires, .Setup = setup, .Threads = {set_and_wait}, .MaximumSchedules = 20000);

/* The host refuses the clock thread once or twice: the waiter acts as the clock. */
LAB_SCENARIO(timer_without_clock, .Setup = setup, .Threads = {set_and_wait}, .AllocationFailures = 2,
             .MaximumSchedules = 20000);

/* Even a waiter that slept before a thread that does nothing else set the timer. */
static void wait_only(void)
{
    LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void set_only(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000};
    KeSetTimer(&timer, due, NULL);
}
LAB_SCENARIO(timer_without_clock_wakes_sleeper, .Setup = setup, .Threads = {wait_only, set_only},
             .AllocationFailures = 2, .MaximumSchedules = 20000);
/* Of the thread that is about to sleep and the setter that gets no clock, at least one must notice the other. */
LAB_SCENARIO(timer_without_clock_wakes_sleeper_c11, .Setup = setup, .Threads = {wait_only, set_only},
             .AllocationFailures = 2, .MaximumSchedules = 20000, .Model = "c11");

/* Cancelled in time, or signaled; one of the two. */
static void set_and_cancel(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000};
    KeSetTimer(&timer, due, NULL);
    if (!KeCancelTimer(&timer))
        LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    cancelled = 1;
}
LAB_SCENARIO(timer_cancelled, .Setup = setup, .Threads = {set_and_cancel}, .MaximumSchedules = 20000);
