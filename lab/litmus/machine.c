/*
 * machine.c: the explorer's own test, second part: threads, choices of the machine, verdicts that need the library, and
 * the options of a test.
 */
#include <interlock/lab.h>

#include <ntddk.h>

#include <stdatomic.h>

/* Threads created by threads: a join orders what the child did. */
static int data;
static atomic_int flag;

static void child(void *argument)
{
    data = *(int *)argument;
}

static void parent_that_joins(void)
{
    int seven = 7;
    LabJoin(LabSpawn(child, &seven));
    LabAssert(data == 7);
}
LAB_SCENARIO(spawn_and_join, .Threads = {parent_that_joins});

static void impatient_parent(void)
{
    static int seven = 7;
    LabSpawn(child, &seven);
    LabAssert(data == 0 || data == 7);
}
LAB_SCENARIO(spawn_without_join, .Threads = {impatient_parent}, .Expect = "race");

/* Invariants. */
static void counter(void)
{
    atomic_fetch_add(&flag, 1);
    atomic_fetch_sub(&flag, 1);
}

static void never_two(void)
{
    LabAssert(flag < 2);
}
LAB_SCENARIO(invariant_one, .Threads = {counter}, .Invariant = never_two);
LAB_SCENARIO(invariant_two, .Threads = {counter, counter}, .Invariant = never_two, .Expect = "assertion");

/* Memory and threads may run out. */
static void allocator(void)
{
    PVOID first = ExAllocatePoolWithTag(NonPagedPool, 32, 0x74657374);
    PVOID second = ExAllocatePoolWithTag(NonPagedPool, 32, 0x74657374);
    LabAssert(first != NULL && second != NULL);
    ExFreePool(first);
    ExFreePool(second);
}
LAB_SCENARIO(enough_memory, .Threads = {allocator}, .Flags = LAB_CHECK_LEAKS);
LAB_SCENARIO(out_of_memory, .Threads = {allocator}, .AllocationFailures = 1, .Expect = "assertion");

static void overrun(void)
{
    char *block = LabAllocate(16);
    *(volatile char *)(block + 24) = 1;
}
LAB_SCENARIO(beside_a_block, .Threads = {overrun}, .Expect = "wild access");

/* A thread that returns can end as a host thread does. */
static KMUTANT mutant;
static KEVENT owned;

static void initialize(void)
{
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeEvent(&owned, NotificationEvent, FALSE);
}

static void owner(void)
{
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(&owned, IO_NO_INCREMENT, FALSE);
}

static void heir(void)
{
    KeWaitForSingleObject(&owned, Executive, KernelMode, FALSE, NULL);
    LabAssert(KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL) == STATUS_ABANDONED);
}
LAB_SCENARIO(return_and_exit, .Setup = initialize, .Threads = {owner, heir}, .Flags = LAB_RUN_EXIT,
             .MaximumSchedules = 30000);
LAB_SCENARIO(return_and_stay, .Setup = initialize, .Threads = {owner, heir}, .Expect = "deadlock");

/* Virtual time. */
static void time_passes(void)
{
    ULONGLONG before = KeQueryInterruptTime();
    LabAdvanceTime(1000);
    LabAssert(KeQueryInterruptTime() >= before + 1000);
}
LAB_SCENARIO(time, .Threads = {time_passes});

static void sleeper(void)
{
    LARGE_INTEGER year = {.QuadPart = -10000000ll * 3600};
    LabAssert(KeDelayExecutionThread(KernelMode, FALSE, &year) == STATUS_SUCCESS);
}
LAB_SCENARIO(nobody_sleeps, .Threads = {sleeper});

/* A loop that gives up is explored both ways. */
static void tries_three_times(void)
{
    for (int i = 0; i < 3; i++)
        if (atomic_load(&flag) != 0)
            return;
    LabAssert(flag != 0);
}

static void sets_flag(void)
{
    atomic_store(&flag, 1);
}
LAB_SCENARIO(loop_that_gives_up, .Threads = {tries_three_times, sets_flag}, .Expect = "assertion");

/* Verdicts of the library and of the host. */
static void raises_too_low(void)
{
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeWaitForSingleObject(&owned, Executive, KernelMode, FALSE, NULL);
}
LAB_SCENARIO(bugcheck, .Setup = initialize, .Threads = {raises_too_low}, .Expect = "bugcheck");

static int *volatile nowhere;

static void dereferences_null(void)
{
    *nowhere = 1;
}
LAB_SCENARIO(null_pointer, .Threads = {dereferences_null}, .Expect = "crash");

/* Histories. */
static void first_in_first_out(void)
{
    LabEnd(LabBegin(0, 1), 0);
    LabEnd(LabBegin(0, 2), 0);
    LabEnd(LabBegin(1, 0), 1);
}

static void is_stack(void)
{
    LabCheckLinearizable(&LabModelStack);
}

static void is_queue(void)
{
    LabCheckLinearizable(&LabModelQueue);
}
LAB_SCENARIO(history_of_a_queue, .Threads = {first_in_first_out}, .Finish = is_queue);
LAB_SCENARIO(history_of_no_stack, .Threads = {first_in_first_out}, .Finish = is_stack, .Expect = "not linearizable");

/* An operation that overlaps another may come before or after it; one that never returns may have happened or not. */
static void push_slowly(void)
{
    unsigned operation = LabBegin(0, 1);
    LabYield();
    LabEnd(operation, 0);
}

static void pop_meanwhile(void)
{
    unsigned operation = LabBegin(1, 0);
    LabYield();
    LabEnd(operation, LabChoose(2));
}

static void pushes_for_ever(void)
{
    LabBegin(0, 1);
}
LAB_SCENARIO(history_without_push, .Threads = {pop_meanwhile}, .Finish = is_stack, .Expect = "not linearizable");
LAB_SCENARIO(history_of_an_open_push, .Threads = {pop_meanwhile, pushes_for_ever}, .Finish = is_stack,
             .Expect = "not linearizable");

static void overlaps(void)
{
    unsigned push = LabBegin(0, 1), pop = LabBegin(1, 0);
    LabEnd(pop, 1);
    LabEnd(push, 0);
}
LAB_SCENARIO(history_overlapping, .Threads = {overlaps}, .Finish = is_stack);
LAB_SCENARIO(history_two, .Threads = {push_slowly, push_slowly}, .Finish = is_stack);

/* self/forget.py: a statistic is not a step, and what a thread forgets is not part of a state. */
static atomic_int statistic, arrivals, late;
static int notes[2];

static void ignore_statistic(void)
{
    LabIgnore(&statistic, sizeof(statistic));
}

static void count_three(void)
{
    for (int i = 0; i < 3; i++)
        atomic_fetch_add(&statistic, 1);
}
LAB_SCENARIO(counted_statistic, .Threads = {count_three, count_three});
LAB_SCENARIO(ignored_statistic, .Setup = ignore_statistic, .Threads = {count_three, count_three});

static __attribute__((noinline)) void note_arrival(void)
{
    notes[LabCurrentThread()] = atomic_fetch_xor(&arrivals, 1);
}

static void go_on(void)
{
    for (int i = 0; i < 3; i++)
        atomic_fetch_xor(&late, 1);
}

static void arrive(void)
{
    note_arrival();
    go_on();
}

static void arrive_and_forget(void)
{
    note_arrival();
    LabForget(&notes[LabCurrentThread()], sizeof(notes[0]));
    go_on();
}
LAB_SCENARIO(noted_arrival, .Threads = {arrive, arrive});
LAB_SCENARIO(forgotten_arrival, .Threads = {arrive_and_forget, arrive_and_forget});
