/* Programs that fail outside the explored part: each gets a verdict. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <stdlib.h>

static uint32_t variable;
static int *nowhere;

static void touch(void)
{
    __atomic_fetch_add(&variable, 1, __ATOMIC_RELAXED);
}

static void assert_something(void)
{
    LabAssert(variable == 1);
}

static void crash(void)
{
    *nowhere = 1;
}

static void bugcheck(void)
{
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 0, 0, 0, 0);
}

static void wait_for_ever(void)
{
    KEVENT event;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
}

static void crash_in_the_end(void)
{
    if (__atomic_load_n(&variable, __ATOMIC_RELAXED) == 2)
        crash();
}

static void end_the_process(void)
{
    touch();
    exit(EXIT_FAILURE);
}

static void abort_the_process(void)
{
    touch();
    abort();
}

static void use_up_the_stack(unsigned depth)
{
    volatile char room[4096];

    room[0] = (char)depth;
    if (depth != 0)
        use_up_the_stack(depth + 1);
    room[1] = room[0];
}

static void overflow(void)
{
    touch();
    use_up_the_stack(1);
}

/* A state does not include where an exited thread of the table had been. */
static void join_a_thread_of_the_table(void)
{
    touch();
    LabJoin(0);
}

LAB_SCENARIO(broken_setup_asserts, .Setup = assert_something, .Threads = {touch, touch}, .Expect = "assertion");
LAB_SCENARIO(broken_setup_crashes, .Setup = crash, .Threads = {touch, touch}, .Expect = "crash");
LAB_SCENARIO(broken_setup_bugchecks, .Setup = bugcheck, .Threads = {touch, touch}, .Expect = "bugcheck");
LAB_SCENARIO(broken_setup_blocks, .Setup = wait_for_ever, .Threads = {touch, touch}, .Expect = "unsupported");
LAB_SCENARIO(broken_finish_crashes, .Threads = {touch, touch}, .Finish = crash, .Expect = "crash");
LAB_SCENARIO(broken_finish_bugchecks, .Threads = {touch, touch}, .Finish = bugcheck, .Expect = "bugcheck");
LAB_SCENARIO(broken_invariant_crashes, .Threads = {touch, touch}, .Invariant = crash_in_the_end, .Expect = "crash");
LAB_SCENARIO(broken_exits, .Threads = {touch, end_the_process}, .Expect = "crash");
LAB_SCENARIO(broken_aborts, .Threads = {touch, abort_the_process}, .Expect = "crash");
LAB_SCENARIO(broken_overflows, .Threads = {touch, overflow}, .Expect = "crash");
LAB_SCENARIO(broken_joins, .Threads = {touch, join_a_thread_of_the_table}, .Expect = "misuse");
