/*
 * A lock over a keyed event. A release of the event waits until a waiter takes it. The unlocking thread decrements the
 * count of waiters and then releases the event for one; a waiter that times out in between must take that release.
 */
#include <interlock/lab.h>

static uint32_t waiters, handed;

static void event_release(void)
{
    __atomic_store_n(&handed, 1, __ATOMIC_RELEASE);
    LabWakeWord(&handed, 1);
    while (__atomic_load_n(&handed, __ATOMIC_ACQUIRE) != 0)
        LabWaitOnWord(&handed, 1);
}

/* 0: timed out */
static int event_wait(int may_time_out)
{
    for (;;) {
        uint32_t one = 1;
        if (__atomic_compare_exchange_n(&handed, &one, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            LabWakeWord(&handed, 1);
            return 1;
        }
        if (may_time_out && LabChoose(2) == 1)
            return 0;
        LabWaitOnWord(&handed, 0);
    }
}

static int leave_count(void)
{
    uint32_t count = __atomic_load_n(&waiters, __ATOMIC_RELAXED);
    while (count != 0)
        if (__atomic_compare_exchange_n(&waiters, &count, count - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

static void wait_and_forget(void)
{
    __atomic_fetch_add(&waiters, 1, __ATOMIC_ACQ_REL);
    if (!event_wait(1))
        leave_count(); /* too late: a release is pending */
}

static void wait_and_take(void)
{
    __atomic_fetch_add(&waiters, 1, __ATOMIC_ACQ_REL);
    if (!event_wait(1) && !leave_count())
        event_wait(0);
}

static void unlock(void)
{
    if (leave_count())
        event_release();
}

LAB_SCENARIO(keyed_event_timeout, .Threads = {wait_and_forget, unlock}, .Flags = 0, .Expect = "deadlock");

/* The waiter may miss the only release and keep sleeping: that is allowed here. */
static void released_was_taken(void)
{
    LabAssert(handed == 0);
}
LAB_SCENARIO(keyed_event_correct, .Threads = {wait_and_take, unlock}, .Flags = LAB_MAY_BLOCK,
             .Finish = released_was_taken);
