/* Barriers: rounds, the thread that gets TRUE, and freeing by that thread. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/rtl.h>

#include "ke/fork.h"

static RTL_BARRIER *barrier;
static int data[3];
static int told;

static void initialize(unsigned threads)
{
    barrier = LabAllocate(sizeof(*barrier));
    RtlInitBarrier(barrier, threads, 0);
}

static void of_two(void)
{
    initialize(2);
}

static void of_three(void)
{
    initialize(3);
}

static void meet(int self, int threads, ULONG flags)
{
    RTL_BARRIER *mine = barrier;
    data[self] = 1;
    BOOLEAN last = RtlBarrier(mine, flags);
    for (int i = 0; i < threads; i++)
        LabAssert(data[i] == 1);
    if (last) {
        told += 1;
        RtlDeleteBarrier(mine);
        LabFree(mine);
    }
}

static void first_of_two(void)
{
    meet(0, 2, 0);
}

static void second_of_two(void)
{
    meet(1, 2, RTL_BARRIER_FLAGS_BLOCK_ONLY);
}

static void first_of_three(void)
{
    meet(0, 3, 0);
}

static void second_of_three(void)
{
    meet(1, 3, 0);
}

static void third_of_three(void)
{
    meet(2, 3, 0);
}

static void one_was_told(void)
{
    LabAssert(told == 1);
}
LAB_SCENARIO(barrier_two, .Setup = of_two, .Threads = {first_of_two, second_of_two}, .Finish = one_was_told,
             .SpuriousWakes = 1);
LAB_SCENARIO(barrier_two_c11, .Setup = of_two, .Threads = {first_of_two, second_of_two}, .Finish = one_was_told,
             .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(barrier_three, .Setup = of_three, .Threads = {first_of_three, second_of_three, third_of_three},
             .Finish = one_was_told, .Flags = LAB_LARGE);

/* Both find the arrivals of a parent, and only one forgets them. */
static void of_a_parent(void)
{
    initialize(2);
    barrier->Reserved1 = 1; /* a thread of the parent is inside */
    KiForkDepth += 1;
    KiForkTag = (ULONG_PTR)KiForkDepth << KI_FORK_TAG_SHIFT;
}
LAB_SCENARIO(barrier_of_a_parent, .Setup = of_a_parent, .Threads = {first_of_two, second_of_two}, .Finish = one_was_told);

/* Two rounds of two threads: no thread counts for the wrong one. */
static int come;

static void initialize_rounds(void)
{
    initialize(2);
}

static void twice(void)
{
    for (int round = 1; round <= 2; round++) {
        __atomic_fetch_add(&come, 1, __ATOMIC_RELAXED);
        if (RtlBarrier(barrier, RTL_BARRIER_FLAGS_NO_DELETE))
            __atomic_fetch_add(&told, 1, __ATOMIC_RELAXED);
        LabAssert(__atomic_load_n(&come, __ATOMIC_RELAXED) >= 2 * round);
    }
}

static void both_rounds_were(void)
{
    LabAssert(told == 2 && come == 4);
    LabAssert(barrier->Reserved1 == 2 && barrier->Reserved2 == 2);
}
LAB_SCENARIO(barrier_two_rounds, .Setup = initialize_rounds, .Threads = {twice, twice}, .Finish = both_rounds_were);
