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

/* Cancelled in time, or signaled; never neither. */
static void set_and_cancel(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000};
    KeSetTimer(&timer, due, NULL);
    if (!KeCancelTimer(&timer))
        LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    cancelled = 1;
}
LAB_SCENARIO(timer_cancelled, .Setup = setup, .Threads = {set_and_cancel}, .MaximumSchedules = 20000);
