/* A wait that gives up after its third timeout, and forgets that it is registered: two timeouts do not show it. */
#include <interlock/lab.h>

static uint32_t word, waiting;

static void wait_three_times(void)
{
    __atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++) {
        if (LabWaitOnWordFor(&word, 0, 10)) {
            __atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
            return;
        }
    }
    /* missing: waiting = 0 */
}

static void signal(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    LabWakeWord(&word, 1);
}

static void nobody_waits(void)
{
    LabAssert(waiting == 0);
}

LAB_SCENARIO(third_timeout, .Threads = {wait_three_times, signal}, .Finish = nobody_waits, .Timeouts = 3,
             .Expect = "assertion");
LAB_SCENARIO(third_timeout_any, .Threads = {wait_three_times, signal}, .Finish = nobody_waits,
             .Timeouts = LAB_UNLIMITED, .Expect = "assertion");
/* With the default of two it is not found, and the verdict says so (lab/self/bounds.py). */
LAB_SCENARIO(third_timeout_missed, .Threads = {wait_three_times, signal}, .Finish = nobody_waits);
