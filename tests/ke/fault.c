/* Allocations that fail on purpose: each distinct call stack once, whatever is allocated, deterministically. */
#include "../support/mapped.h"
#include "../support/support.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/ps.h>
#include <interlock/verifier.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAG 0x6c756146u

static void thread_routine(PVOID context)
{
    (void)context;
    PsTerminateSystemThread(STATUS_SUCCESS);
}

/* The requests of the code under test; each has one or more places where it may fail. */
static NTSTATUS add_device(void)
{
    PVOID first = ExAllocatePoolWithTag(NonPagedPool, 64, TAG);
    PVOID second = ExAllocatePool2(POOL_FLAG_PAGED, 64, TAG);
    PEX_TIMER timer = ExAllocateTimer(NULL, NULL, EX_TIMER_NOTIFICATION);
    HANDLE event = NULL, thread = NULL;
    NTSTATUS status = first != NULL && second != NULL && timer != NULL ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;

    if (NT_SUCCESS(status))
        status = NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    if (NT_SUCCESS(status))
        status = PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, thread_routine, NULL);
    if (thread != NULL) {
        ZwWaitForSingleObject(thread, FALSE, NULL);
        ZwClose(thread);
    }
    if (event != NULL)
        NtClose(event);
    if (timer != NULL)
        ExDeleteTimer(timer, TRUE, TRUE, NULL);
    if (second != NULL)
        ExFreePoolWithTag(second, TAG);
    if (first != NULL)
        ExFreePoolWithTag(first, TAG);
    return status;
}

#define MOST_ROUNDS 64

/* Stores the stacks in the order in which they failed. */
static __attribute__((noinline)) unsigned run_rounds(ULONG64 stacks[MOST_ROUNDS])
{
    unsigned rounds = 0;
    VF_FAULT fault;

    assert_true(VfBeginFaults());
    while (VfNextFault()) {
        NTSTATUS status = add_device();

        VfQueryFault(&fault);
        assert_int_equal(fault.Round, rounds + 1);
        assert_int_equal(NT_SUCCESS(status), !fault.Injected);
        assert_true(rounds < MOST_ROUNDS);
        stacks[rounds++] = fault.Injected ? fault.Stack : 0;
        if (fault.Injected)
            assert_true(fault.FrameCount > 1);
    }
    VfEndFaults();
    return rounds;
}

static void each_stack_fails_once(void **state)
{
    ULONG64 stacks[MOST_ROUNDS];
    VF_POOL_MARK mark = VfMarkPool(TAG);
    unsigned rounds = run_rounds(stacks);

    (void)state;
    assert_true(rounds >= 7); /* two blocks, a timer, an event, its handle, a thread, its handle, and none */
    assert_int_equal(stacks[rounds - 1], 0);
    for (unsigned i = 0; i < rounds; i++)
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(stacks[i], stacks[j]);
    assert_int_equal(VfCountPoolLeaks(&mark), 0);
    assert_true(NT_SUCCESS(add_device())); /* it has ended */
}

static ULONG64 stacks_of[2][MOST_ROUNDS];
static unsigned rounds_of[2];

static void run_rounds_in_thread(void *time, unsigned index)
{
    (void)index;
    rounds_of[*(int *)time] = run_rounds(stacks_of[*(int *)time]);
}

/* In threads, where all callers are the same: they are part of a stack. The handle table has grown before. */
/* The memory for the stacks is allocated once. */
static void begun_again_and_again(void **state)
{
    unsigned long before;

    (void)state;
    assert_true(VfBeginFaults());
    VfEndFaults();
    before = mapped_pages();
    for (int round = 0; round < 64; round++) {
        assert_true(VfBeginFaults());
        VfEndFaults();
    }
    assert_in_range(mapped_pages(), 0, before + 4096);
}

static void the_same_each_time(void **state)
{
    (void)state;
    for (int time = 0; time < 2; time++)
        run_threads(1, 60, run_rounds_in_thread, &time);
    assert_int_equal(rounds_of[0], rounds_of[1]);
    assert_memory_equal(stacks_of[0], stacks_of[1], rounds_of[0] * sizeof(stacks_of[0][0]));
}

static void it_can_be_ended_in_a_round(void **state)
{
    (void)state;
    assert_true(VfBeginFaults());
    assert_true(VfNextFault());
    VfEndFaults();
    assert_true(NT_SUCCESS(add_device()));
    assert_false(VfNextFault());
}

/* By environment: this program again, with a word that selects the case. */

static char state_file[64];

static int run_self(const char *run)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        setenv("INTERLOCK_FAULTS", state_file, 1);
        if (run != NULL)
            setenv("INTERLOCK_FAULTS_RUN", run, 1);
        execl("/proc/self/exe", "self", "add", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static unsigned lines_of_state(void)
{
    FILE *file = fopen(state_file, "r");
    unsigned lines = 0;
    int c;

    while (file != NULL && (c = getc(file)) != EOF)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

static void run_after_run(void **state)
{
    unsigned runs = 0, alone;

    (void)state;
    snprintf(state_file, sizeof(state_file), "/tmp/ke-fault-%d", (int)getpid());
    unlink(state_file);
    while (run_self(NULL) == 1) {
        assert_int_equal(lines_of_state(), ++runs); /* one per run */
        assert_true(runs < MOST_ROUNDS);
    }
    assert_true(runs >= 6);
    assert_int_equal(run_self(NULL), 0); /* all have failed */
    /* the processes of one run fail one allocation together */
    unlink(state_file);
    assert_int_equal(run_self("5"), 1);
    assert_int_equal(run_self("5"), 0);
    assert_int_equal(run_self("6"), 1);
    alone = lines_of_state();
    assert_int_equal(alone, 2);
    unlink(state_file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stack_fails_once),
        cmocka_unit_test(the_same_each_time),
        cmocka_unit_test(begun_again_and_again),
        cmocka_unit_test(it_can_be_ended_in_a_round),
        cmocka_unit_test(run_after_run),
    };
    if (argc == 2 && strcmp(argv[1], "add") == 0) {
        NTSTATUS status = add_device();

        return NT_SUCCESS(status) ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
