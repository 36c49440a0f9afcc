/* A thread that yields for entries: what arrives meanwhile is its own or handed off, none is left behind. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/park.h"

static KQUEUE queue;
static LIST_ENTRY entries[3];
static volatile ULONG others_ran;
static int taken;

static void narrow(void)
{
    KeInitializeQueue(&queue, 1);
    KeInsertQueue(&queue, &entries[0]);
}

static void wide(void)
{
    KeInitializeQueue(&queue, 2);
    KeInsertQueue(&queue, &entries[0]);
}

/* As if its last sleeps had been short, and ended by this processor. */
static void trust_yields(PKTHREAD thread)
{
    thread->QueueShortSleeps = 16;
    thread->QueueSleepTime = (ULONG)KeQueryInterruptTime();
    thread->WakerProcessor = HalDispatch.CurrentProcessor() + 1;
}

static PLIST_ENTRY take(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, NULL);
    if ((LONG_PTR)entry != STATUS_ABANDONED) {
        LabAssert(entry >= &entries[0] && entry <= &entries[2] && entry->Flink == NULL);
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    }
    return entry;
}

/* Returns in a service. */
static PLIST_ENTRY take_two(PKTHREAD thread)
{
    KiEnterService(thread);
    take();
    trust_yields(thread);
    return take();
}

static void expecter(void)
{
    PKTHREAD thread = KiCurrentThread();
    take_two(thread);
    LabAssert(!thread->QueueExpects);
    KiExitService(thread);
    LabExitThread();
}

static void inserter(void)
{
    KeInsertQueue(&queue, &entries[1]);
    KeInsertQueue(&queue, &entries[2]);
}

static void other(void)
{
    take();
    __atomic_store_n(&others_ran, 1, __ATOMIC_RELEASE);
    HalDispatch.Wake(&others_ran, 1);
    LabExitThread();
}

static void all_taken(void)
{
    LabAssert(taken == 3 && KeReadStateQueue(&queue) == 0);
    LabAssert(queue.Header.QueueControlFlags == 0);
}
LAB_SCENARIO(queue_expects, .Setup = narrow, .Threads = {expecter, inserter, other}, .Finish = all_taken, .Flags = LAB_LARGE);
LAB_SCENARIO(queue_expects_wide, .Setup = wide, .Threads = {expecter, inserter, other}, .Finish = all_taken,
             .Flags = LAB_LARGE);

/* It stays counted and never takes the other entry: that must not be left to it. */
static void busy_expecter(void)
{
    PKTHREAD thread = KiCurrentThread();
    take_two(thread);
    KiSleepWhile(&others_ran, 0);
    KiExitService(thread);
}
LAB_SCENARIO(queue_expects_busy, .Setup = wide, .Threads = {busy_expecter, inserter, other}, .Finish = all_taken,
             .Flags = LAB_LARGE);

static void two_expecters(void)
{
    KeInitializeQueue(&queue, 2);
    KeInsertQueue(&queue, &entries[0]);
    KeInsertQueue(&queue, &entries[1]);
}

static void take_and_expect(void)
{
    PKTHREAD thread = KiCurrentThread();
    LARGE_INTEGER soon = {.QuadPart = -10000};
    KiEnterService(thread);
    take();
    trust_yields(thread);
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, &soon);
    LabAssert((LONG_PTR)entry == STATUS_TIMEOUT || (entry >= &entries[0] && entry <= &entries[2]));
    if ((LONG_PTR)entry != STATUS_TIMEOUT)
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    KiExitService(thread);
}

static void insert_last(void)
{
    KeInsertQueue(&queue, &entries[2]);
}

static void taken_or_there(void)
{
    LabAssert(taken + KeReadStateQueue(&queue) == 3 && queue.Header.QueueControlFlags == 0);
}

static void at_most_one_left(void)
{
    LabAssert(taken + KeReadStateQueue(&queue) == 2 && queue.Header.QueueControlFlags == 0);
}
LAB_SCENARIO(queue_expects_twice, .Setup = two_expecters, .Threads = {take_and_expect, take_and_expect, insert_last},
             .Finish = taken_or_there, .Flags = LAB_LARGE);
LAB_SCENARIO(queue_expects_or_not, .Setup = narrow, .Threads = {take_and_expect, insert_last}, .Finish = at_most_one_left);

/* Rundown meanwhile. */
static void destroyer(void)
{
    KeRundownQueue(&queue);
}

static void expect_or_lose(void)
{
    PKTHREAD thread = KiCurrentThread();
    KiEnterService(thread);
    if ((LONG_PTR)take() != STATUS_ABANDONED) {
        trust_yields(thread);
        take();
    }
    LabAssert(!thread->QueueExpects);
    KiExitService(thread);
}

static void is_run_down(void)
{
    LabAssert(IsListEmpty(&queue.ThreadListHead) && queue.Header.QueueControlFlags == 1); /* abandoned */
}
LAB_SCENARIO(queue_expects_rundown, .Setup = narrow, .Threads = {destroyer, expect_or_lose, insert_last},
             .Finish = is_run_down);
