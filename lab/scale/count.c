/*
 * count.c: what is counted, and when. All processors first use a lock that adapts to its use, for a few rounds each.
 * Then each processor makes two rounds alone, so that it has touched all of its own memory. Finally all make rounds
 * together, starting in an order other than that of their numbers, because a queue keeps its initial order and
 * neighbours are in one node. Counting begins when all have arrived and the lock has been in use for a while: otherwise
 * the arrival of very many processors would dominate. It ends after enough acquisitions; no processor stops earlier.
 */
#include "../hal/labhal.h"

#include <interlock/ke.h>

#include "locks.h"
#include "machine.h"

#define ROUNDS_ALONE   2
#define HELD_CYCLES    50
#define LEAST_BETWEEN  100
#define MOST_BETWEEN   300
#define ARRIVAL_CYCLES 400 /* for each processor: more than the transfer that its arrival takes */
#define MOST_POSTED    4
#define MOST_COUNTED   2560

static struct count_state {
    const scale_lock *lock;
    uint64_t warm_up, wanted;
    uint64_t acquired; /* first since the preparation, then since counting began */
    uint64_t began;
    uint32_t arrived; /* processors that make rounds together */
    bool prepared, counting, finished;
    scale_result result;
    uint32_t posted[MOST_COUNTED]; /* and not served yet, by poster */
} count;

static void start(uint64_t now)
{
    cache_clear_counts();
    access_lines_from_here();
    count.began = now;
    count.acquired = 0;
    count.counting = true;
}

static void finish(uint64_t now)
{
    count.result.acquisitions = count.wanted;
    count.result.cycles = now - count.began;
    for (int kind = 0; kind < KINDS; kind++)
        count.result.counts[kind] = *cache_get_counts((cache_line_kind)kind);
    count.finished = true;
    machine_stop();
}

void count_lock(void *lock, size_t size)
{
    cache_set_kind((uintptr_t)lock, size, KIND_LOCK);
}

void count_begins(void)
{
    scale_thread *t = machine_current();
    t->began = t->clock;
}

void count_acquired(void)
{
    scale_thread *t = machine_current();
    uint64_t waited = t->clock - t->began;

    if (!count.prepared)
        return;
    count.acquired++;
    if (!count.counting) {
        if (count.acquired >= count.warm_up && count.arrived == machine_processors())
            start(t->clock);
        return;
    }
    count.result.longest_wait = waited > count.result.longest_wait ? waited : count.result.longest_wait;
    if (count.acquired == count.wanted)
        finish(t->clock);
}

void count_holds(void)
{
    machine_pass(HELD_CYCLES);
}

/* The bookkeeping is the test's own and costs nothing; the waiting takes time. */
void count_posted(void)
{
    scale_thread *t = machine_current();

    count.posted[t->base.number]++;
    while (count.posted[t->base.number] >= MOST_POSTED) {
        machine_pass(CALL_CYCLES);
        machine_take_turn(t);
    }
}

void count_served(uint32_t poster)
{
    count.posted[poster]--;
}

uint32_t count_processor(void)
{
    return machine_current()->base.number;
}

uint32_t count_processors(void)
{
    return machine_processors();
}

uint32_t count_node(void)
{
    return cache_node(machine_current()->base.number);
}

static uint64_t random_of(scale_thread *t)
{
    t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
    return t->random >> 40;
}

/* Takes varying times, so that processors do not run in lockstep. */
static void do_something_else(scale_thread *t)
{
    machine_pass(LEAST_BETWEEN + random_of(t) % (MOST_BETWEEN - LEAST_BETWEEN));
}

/* The thread becomes one of the library, on its own processor. */
static void adopt(uint32_t number)
{
    GROUP_AFFINITY affinity = {
        .Mask = (KAFFINITY)1 << number % MAXIMUM_PROC_PER_GROUP,
        .Group = (USHORT)(number / MAXIMUM_PROC_PER_GROUP),
    };

    lab->quiet = true;
    KeSetSystemGroupAffinityThread(&affinity, NULL);
    lab->quiet = false;
}

static void go_round(scale_thread *t)
{
    count.lock->round();
    do_something_else(t);
}

static void run(void *argument)
{
    scale_thread *t = argument;

    adopt(t->base.number);
    if (count.lock->at_dispatch)
        KeRaiseIrqlToDpcLevel();
    for (uint32_t i = 0; i < count.lock->warm_up; i++)
        go_round(t);
    machine_gate();
    for (int i = 0; i < ROUNDS_ALONE && count.lock->first == 0; i++)
        count.lock->round();
    machine_gate();
    machine_pass(random_of(t) % ((uint64_t)ARRIVAL_CYCLES * machine_processors()));
    machine_take_turn(t);
    count.arrived++;
    for (;;)
        go_round(t);
}

static VOID yield(VOID)
{
    machine_pass(CALL_CYCLES);
}

/* Threads of the library run on the machine's processors as far as the library knows. */
static ULONG current_processor(VOID)
{
    return lab->current != NULL ? lab->current->number % machine_processors() : 0;
}

static void set_up(void)
{
    const char *heap = lab->run.heap_top;

    HalDispatch.Yield = yield;
    HalDispatch.CurrentProcessor = current_processor;
    count.lock->setup();
    cache_set_kind((uintptr_t)&data, sizeof(data), KIND_DATA);
    count_lock((void *)heap, (size_t)(lab->run.heap_top - heap));
}

static bool run_alone(uint32_t processors)
{
    for (uint32_t i = 0; i < processors; i++) {
        machine_open_gate(i);
        if (!machine_run())
            return false;
    }
    return true;
}

static bool run_together(uint32_t processors)
{
    machine_level_clocks();
    for (uint32_t i = 0; i < processors; i++)
        machine_open_gate(i);
    return machine_run();
}

static bool run_counted(uint32_t processors)
{
    count.prepared = true;
    machine_level_clocks();
    if (count.warm_up == 0)
        start(machine_thread(0)->clock);
    return run_together(processors) && count.finished;
}

bool count_measure(const scale_lock *lock, uint32_t processors, uint32_t nodes, uint64_t acquisitions,
                   scale_result *result)
{
    count.lock = lock;
    count.wanted = lock->first != 0 ? lock->first : acquisitions;
    count.warm_up = lock->first != 0 ? 0 : acquisitions / 4;
    machine_start((machine_shape){processors, nodes, lock->library_threads}, run, access_line_taken);
    set_up();
    bool done = run_together(processors) && run_alone(processors) && run_counted(processors);
    *result = count.result;
    return done;
}
