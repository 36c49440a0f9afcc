#include "haltest.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

static const struct {
    LONG priority;
    int policy;
    int value; /* nice relative to the process's initial value, or priority of SCHED_FIFO */
} mappings[] = {
    {8, SCHED_OTHER, 0},   {7, SCHED_OTHER, 2},    {1, SCHED_OTHER, 14}, {0, SCHED_OTHER, 16}, {15, SCHED_OTHER, -14},
    {16, SCHED_FIFO, 1},   {31, SCHED_FIFO, 16},   {9, SCHED_OTHER, -2}, {8, SCHED_OTHER, 0},
};

static int base_nice;

static int nice_from_base(int steps)
{
    int nice = base_nice + steps;

    return nice < -20 ? -20 : nice > 19 ? 19 : nice;
}

/* By the system call: a C library that follows POSIX rejects thread ids. */
static int policy_of(ULONG thread)
{
    return (int)syscall(SYS_sched_getscheduler, thread);
}

static void assert_scheduling(ULONG thread, int policy, int value)
{
    struct sched_param parameter;

    assert_int_equal(policy_of(thread), policy);
    assert_int_equal((int)syscall(SYS_sched_getparam, thread, &parameter), 0);
    if (policy == SCHED_FIFO)
        assert_int_equal(parameter.sched_priority, value);
    else
        assert_int_equal(getpriority(PRIO_PROCESS, thread), nice_from_base(value));
}

static void try_all_mappings(void *argument, unsigned index)
{
    ULONG thread = HalCurrentThreadId();
    size_t i;

    (void)argument;
    (void)index;
    for (i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++) {
        int policy = policy_of(thread);
        int nice = getpriority(PRIO_PROCESS, thread);

        if (HalSetThreadPriority(thread, mappings[i].priority)) {
            assert_scheduling(thread, mappings[i].policy, mappings[i].value);
        } else {
            assert_int_equal(policy_of(thread), policy);
            assert_int_equal(getpriority(PRIO_PROCESS, thread), nice);
        }
    }
}

static void priorities_become_host_priorities(void **state)
{
    (void)state;
    run_threads(1, 20, try_all_mappings, NULL);
}

static void become_nobody(void *argument)
{
    static const struct rlimit nothing;
    ULONG thread = HalCurrentThreadId();
    size_t i;

    (void)argument;
    assert_int_equal(setrlimit(RLIMIT_NICE, &nothing), 0);
    assert_int_equal(setrlimit(RLIMIT_RTPRIO, &nothing), 0);
    if (getuid() == 0)
        assert_int_equal(setuid(NOBODY), 0);
    for (i = 0; i < sizeof(mappings) / sizeof(mappings[0]); i++) {
        int same = mappings[i].policy == SCHED_OTHER && nice_from_base(mappings[i].value) == base_nice;

        assert_int_equal(HalSetThreadPriority(thread, mappings[i].priority), same);
        assert_scheduling(thread, SCHED_OTHER, 0);
    }
}

/* A priority that could never be raised again is not lowered either. */
static void a_process_without_the_right_changes_nothing(void **state)
{
    (void)state;
    run_in_child(become_nobody, NULL);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        ULONG thread;
        LONG priority;
    } cases[] = {{0, -1}, {0, 32}, {0, 0x7fffffff}, {0x7fffffff, 8}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_false(HalSetThreadPriority(cases[i].thread != 0 ? cases[i].thread : HalCurrentThreadId(),
                                          cases[i].priority));
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_become_host_priorities),
        cmocka_unit_test(a_process_without_the_right_changes_nothing),
        cmocka_unit_test(nonsense_is_refused),
    };

    base_nice = getpriority(PRIO_PROCESS, 0);
    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
