/* Queues and gates. */
#include <interlock/lab.h>

#include <ntifs.h>

static KQUEUE queue;
static LIST_ENTRY entries[2];
static int taken[2];
static KGATE gate;

static void setup(void)
{
    KeInitializeQueue(&queue, 1);
    KeInitializeGate(&gate);
}

static void inserter(void)
{
    KeInsertQueue(&queue, &entries[0]);
}

static void second_inserter(void)
{
    KeInsertQueue(&queue, &entries[1]);
}

static void take(PLIST_ENTRY entry)
{
    LabAssert(entry == &entries[0] || entry == &entries[1]);
    LabAssert(__atomic_fetch_add(&taken[entry - entries], 1, __ATOMIC_RELAXED) == 0);
}

static void remover(void)
{
    take(KeRemoveQueue(&queue, KernelMode, NULL));
}

static void remove_both(void)
{
    remover();
    remover();
}

static void is_empty(void)
{
    LabAssert(KeReadStateQueue(&queue) == 0);
}
LAB_SCENARIO(queue_one, .Setup = setup, .Threads = {inserter, remover}, .Finish = is_empty);
LAB_SCENARIO(queue_two_inserters, .Setup = setup, .Threads = {inserter, second_inserter, remove_both},
             .Finish = is_empty);

static void timed_remover(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, &timeout);
    if ((ULONG_PTR)entry != STATUS_TIMEOUT)
        take(entry);
}

static void taken_or_there(void)
{
    LabAssert(taken[0] + KeReadStateQueue(&queue) == 1);
}
LAB_SCENARIO(queue_timeout, .Setup = setup, .Threads = {inserter, timed_remover}, .Finish = taken_or_there);

static void gate_waiter(void)
{
    KeWaitForGate(&gate, WrGuardedMutex, KernelMode);
}

static void gate_signaler(void)
{
    KeSignalGate(&gate);
}
LAB_SCENARIO(gate_one, .Setup = setup, .Threads = {gate_waiter, gate_signaler});
