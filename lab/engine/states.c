/*
 * states.c: every state. A depth-first search that does not continue from a state it has already visited. Two threads
 * of a hundred steps each have at most ten thousand pairs of places, but more schedules than can be run, so this
 * finishes where dpor does not.
 *
 * 1. The state is that of cycle.c: memory, registers, stacks, next steps, and what may happen only a limited number of times;
 *    also the time, which threads spin or have yielded, and the history. States are equal if their 64-bit hashes are:
 *    among a million states, two different ones collide with a probability of 3e-8.
 * 2. States are recorded where several threads can run and the next step is on a shared variable. A thread whose next
 *    step is on its own variables runs on, as with bounded: that step commutes with all others.
 * 3. What is found: assertions, bugchecks, invariants, deadlocks, lost wakeups, leaks, Finish: everything that depends
 *    on the state alone. A race or a dead frame depends on how the state was reached; these are detected only in the
 *    schedules that are run. Cycles, and so livelocks and starvation, are not searched for.
 * 4. Only under sc: under the other models the older stores that a load may still read would be part of the state. There it is
 *    dpor.
 *
 * In a new schedule the nodes before the new branch are the same as in the last one, and so are the positions of threads there:
 * they are not looked up again.
 */
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

#define FIRST_SIZE (1u << 16)
#define MAX_SIZE   (1u << 25)

typedef struct position {
    uintptr_t frame;
    uint64_t registers;
} position;

struct lab_state_set {
    uint64_t *hashes; /* 0: free */
    uint32_t size, count;
    position positions[MAX_NODES]; /* of the running thread at each node */
};

void lab_states_clear(void)
{
    if (lab->states == NULL)
        lab->states = lab_memory_map(sizeof(*lab->states));
    if (lab->states->hashes != NULL)
        munmap(lab->states->hashes, lab->states->size * sizeof(uint64_t));
    lab->states->size = FIRST_SIZE;
    lab->states->count = 0;
    lab->states->hashes = lab_memory_map(FIRST_SIZE * sizeof(uint64_t));
}

bool lab_states_is_full(void)
{
    return lab->states->count == MAX_SIZE / 2;
}

static bool insert(uint64_t *hashes, uint32_t size, uint64_t hash)
{
    uint32_t index = (uint32_t)(hash >> 20) % size;

    while (hashes[index] != 0 && hashes[index] != hash)
        index = (index + 1) % size;
    bool is_new = hashes[index] == 0;
    hashes[index] = hash;
    return is_new;
}

static void grow(struct lab_state_set *set)
{
    uint32_t size = set->size * 2;
    uint64_t *hashes = lab_memory_map(size * sizeof(uint64_t));

    for (uint32_t i = 0; i < set->size; i++)
        if (set->hashes[i] != 0)
            insert(hashes, size, set->hashes[i]);
    munmap(set->hashes, set->size * sizeof(uint64_t));
    set->hashes = hashes;
    set->size = size;
}

/* Where the running thread is, if another thread may be chosen. */
void lab_states_note(uint16_t enabled)
{
    lab_thread *t = lab->current;

    if (t == NULL || t->state == THREAD_DONE || lab->node_count == MAX_NODES || lab_explore_runs_on(enabled))
        return;
    position *p = &lab->states->positions[lab->node_count];
    if (lab->node_count < lab->replay_count) {
        t->frame = p->frame;
        t->registers = p->registers;
        return;
    }
    if (!lab_cycle_note_position(t))
        t->frame = 0;
    *p = (position){t->frame, t->registers};
}

/* 0: the position of a thread is unknown. */
static uint64_t hash_state(void)
{
    const lab_run_state *run = &lab->run;
    uint64_t more[] = {run->now, run->stirred, run->ended, run->epilogue, run->killed, run->reuses, run->operations};

    for (uint32_t i = 0; i < run->thread_count; i++) {
        const lab_thread *t = &run->threads[i];
        uint64_t flags[] = {t->asleep,   t->may_give_up, t->gives_up, t->yielded, t->in_interrupt,
                            t->timed_out, t->mortal,      t->process};

        if (t->state != THREAD_DONE && t->steps != 0 && t->frame == 0)
            return 0;
        more[0] = lab_memory_hash_bytes(more[0], flags, sizeof(flags));
    }
    for (uint32_t i = 0; i < run->operations; i++) {
        const LAB_OPERATION *o = &run->history[i];
        uint64_t parts[] = {o->Thread, o->Name, (uint64_t)o->Argument, o->Returned ? (uint64_t)o->Result : 0,
                            o->Begin,  o->Returned ? o->End : 0};

        more[0] = lab_memory_hash_bytes(more[0], parts, sizeof(parts));
    }
    return lab_memory_hash_bytes(lab_cycle_hash(), more, sizeof(more)) | 1;
}

uint8_t lab_states_pick(lab_node *n)
{
    uint8_t chosen = lab_explore_prefer(n->enabled);

    n->sleep = 0;
    n->backtrack = LAB_BIT(chosen);
    if ((n->enabled & (n->enabled - 1)) == 0 || lab_explore_runs_on(n->enabled))
        return chosen;
    n->backtrack = n->enabled;
    struct lab_state_set *set = lab->states;
    uint64_t hash = hash_state();
    if (hash == 0)
        return chosen;
    if (set->count == set->size / 2 && set->size < MAX_SIZE)
        grow(set);
    if (!insert(set->hashes, set->size, hash)) {
        lab->node_count--; /* it decides nothing */
        lab_sched_leave(RUN_PRUNED);
    }
    set->count++;
    return chosen;
}
