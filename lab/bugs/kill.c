/* Processes that are killed between two writes to shared memory. */
#include <interlock/lab.h>

static struct shared {
    volatile uint32_t lock;
    volatile uint32_t first, second;
} shared;
static uint32_t taken;

static uint32_t load(volatile uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void acquire(uint32_t self)
{
    uint32_t found = 0;

    while (!__atomic_compare_exchange_n(&shared.lock, &found, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        LabWaitOnWord(&shared.lock, found);
        found = 0;
    }
}

static void release(void)
{
    __atomic_store_n(&shared.lock, 0, __ATOMIC_RELEASE);
    LabWakeWord(&shared.lock, 1);
}

static void write_both(void)
{
    LabEnterProcess(1, &shared, sizeof(shared));
    acquire(1);
    __atomic_store_n(&shared.first, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared.second, 1, __ATOMIC_RELAXED);
    release();
    LabLeaveProcess();
}

static void read_both(void)
{
    acquire(2);
    LabAssert(shared.first == shared.second);
    release();
}
LAB_SCENARIO(kill_none, .Threads = {write_both, read_both});
LAB_SCENARIO(kill_with_lock, .Threads = {write_both, read_both}, .Kills = 1, .Expect = "deadlock");

/* The survivor takes over the lock, but does not repair. */
static void take_over(void)
{
    uint32_t owner = 1;

    if (LabAwaitProcess(1))
        taken += __atomic_compare_exchange_n(&shared.lock, &owner, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void read_after(void)
{
    take_over();
    LabAssert(load(&shared.first) == load(&shared.second));
}
LAB_SCENARIO(kill_between_writes, .Threads = {write_both, read_after}, .Kills = 1, .Expect = "assertion");

/* The survivor repairs: what was begun is finished. */
static void repair(void)
{
    take_over();
    if (taken)
        __atomic_store_n(&shared.second, load(&shared.first), __ATOMIC_RELAXED);
    LabAssert(load(&shared.first) == load(&shared.second));
}
LAB_SCENARIO(kill_and_repair, .Threads = {write_both, repair}, .Kills = 1);

/* All threads of a process stop with it. */
static void write_first(void)
{
    LabEnterProcess(1, &shared, sizeof(shared));
    __atomic_store_n(&shared.first, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared.first, 2, __ATOMIC_RELAXED);
    LabLeaveProcess();
}

static void write_second_later(void)
{
    LabEnterProcess(1, &shared, sizeof(shared));
    __atomic_store_n(&shared.second, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared.second, 2, __ATOMIC_RELAXED);
    LabLeaveProcess();
}

static void nothing_moves(void)
{
    if (LabAwaitProcess(1)) {
        uint32_t first = load(&shared.first), second = load(&shared.second);

        LabYield();
        LabAssert(first == load(&shared.first) && second == load(&shared.second));
        LabAssert(first != 2 || second != 2);
    }
}
LAB_SCENARIO(kill_all_threads, .Threads = {write_first, write_second_later, nothing_moves}, .Kills = 1);

static void both_complete(void)
{
    LabAwaitProcess(1);
    LabAssert(load(&shared.first) != 1 || load(&shared.second) != 1);
}
LAB_SCENARIO(kill_both_halfway, .Threads = {write_first, write_second_later, both_complete}, .Kills = 1, .Expect = "assertion");
