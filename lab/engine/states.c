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
 * 4. Under c11 the state has what the execution still allows: rc11.c. Every store that a load may read is tried, also where dpor
 *    leaves it to another schedule. Under tso it is dpor.
 *
 * The strategy `states` also reduces what is tried at a state, as dpor does (stateful DPOR: Yang, Chen, Gopalakrishnan, Kirby 2008).
 * A step that could have come before an earlier step of the schedule has that tried. Where the search stops at a known state, the
 * steps that follow it are not made. So each state keeps a *summary* of everything that was accessed after it, by which thread. A
 * schedule that arrives there compares these accesses with its own steps: where one of them conflicts with a step of another thread
 * that does not precede the thread in the order of dependent steps, the thread is tried before that step, or every thread if it
 * could not run there. That is more than necessary, never less:
 *
 * 5. A summary is complete when the search leaves the state for good. A state that the schedule itself has passed through closes a
 *    cycle: everything is tried along it, and the states on it, whose summaries lack what the first one still leads to, are
 *    forgotten when the search leaves them.
 * 6. Only shared variables are in summaries. When a variable becomes shared, the search starts over.
 * 7. What dpor orders by other means than variables (interrupts, the end of the process, kills) is not in a summary. A program that
 *    uses them is searched without the reduction.
 *
 * In a new schedule the nodes before the new branch are the same as in the last one, and so are the positions of threads there:
 * they are not looked up again.
 *
 * The strategy `bounded-states` is bounded, with states: it does not continue from a state in which it was before with the same
 * running thread and with as many preemptions left, or more.
 */
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

#define FIRST_SIZE  (1u << 16)
#define MAX_SIZE    (1u << 25)
#define MAX_SHARED  256 /* variables in a summary */
#define MAX_ROOM    (256u << 20)
#define FIRST_INDEX (1u << 12)

/* Of a state. Otherwise: where its summary is, and with bounded-states 1 more than the preemptions with which it was reached. */
#define FORGOTTEN 0u
#define OPEN      UINT32_MAX

typedef struct position {
    uintptr_t frame;
    uint64_t registers;
} position;

/* What was accessed: for each shared variable two bits per thread, read and written. */
typedef struct access_set {
    uint32_t of[MAX_SHARED];
} access_set;

struct lab_state_set {
    uint64_t *hashes; /* 0: free */
    uint32_t *notes;
    uint32_t size, count;
    bool is_full;
    bool unreduced;
    position positions[MAX_NODES]; /* of the running thread at each node */
    /* The nodes of the current schedule. */
    access_set after[MAX_NODES]; /* accesses in what was searched below it so far */
    uint64_t state[MAX_NODES];   /* 0: not noted */
    bool on_cycle[MAX_NODES];
    uint16_t shared[MAX_SHARED]; /* their cells */
    uint32_t shared_count;
    /* Summaries: equal ones are kept once. Each has shared_count words, as many as there were when the search began. */
    uint32_t *room;
    uint32_t room_used; /* 0 is not a summary */
    uint32_t words;
    uint32_t *index; /* a hash table */
    uint32_t index_size, index_count;
};

static void *resize(void *old, size_t old_size, size_t size)
{
    if (old != NULL)
        munmap(old, old_size);
    return lab_memory_map(size);
}

void lab_states_clear(void)
{
    if (lab->states == NULL)
        lab->states = lab_memory_map(sizeof(*lab->states));
    struct lab_state_set *set = lab->states;

    set->hashes = resize(set->hashes, set->size * sizeof(uint64_t), FIRST_SIZE * sizeof(uint64_t));
    set->notes = resize(set->notes, set->size * sizeof(uint32_t), FIRST_SIZE * sizeof(uint32_t));
    set->size = FIRST_SIZE;
    set->count = 0;
    set->index = resize(set->index, set->index_size * sizeof(uint32_t), FIRST_INDEX * sizeof(uint32_t));
    set->index_size = FIRST_INDEX;
    set->index_count = 0;
    if (set->room == NULL)
        set->room = lab_memory_map(MAX_ROOM);
    set->room_used = 1;
    set->words = set->shared_count;
}

bool lab_states_is_full(void)
{
    return lab->states->is_full || lab->states->count >= MAX_SIZE / 2;
}

void lab_states_give_up(void)
{
    if (lab->active == STRATEGY_STATES || lab->active == STRATEGY_BOUNDED_STATES)
        lab->states->is_full = true;
}

bool lab_states_is_reduced(void)
{
    return lab->active == STRATEGY_STATES && !lab->states->unreduced;
}

void lab_states_search_all(void)
{
    if (!lab_states_is_reduced())
        return;
    lab->states->unreduced = true;
    lab->cells_changed = true; /* the search starts over */
}

static uint32_t find(const uint64_t *hashes, uint32_t size, uint64_t hash)
{
    uint32_t index = (uint32_t)(hash >> 20) % size;

    while (hashes[index] != 0 && hashes[index] != hash)
        index = (index + 1) % size;
    return index;
}

static void grow(struct lab_state_set *set)
{
    uint32_t size = set->size * 2;
    uint64_t *hashes = lab_memory_map(size * sizeof(uint64_t));
    uint32_t *notes = lab_memory_map(size * sizeof(uint32_t));

    for (uint32_t i = 0; i < set->size; i++) {
        if (set->hashes[i] == 0)
            continue;
        uint32_t index = find(hashes, size, set->hashes[i]);
        hashes[index] = set->hashes[i];
        notes[index] = set->notes[i];
    }
    munmap(set->hashes, set->size * sizeof(uint64_t));
    munmap(set->notes, set->size * sizeof(uint32_t));
    set->hashes = hashes;
    set->notes = notes;
    set->size = size;
}

/* FORGOTTEN: it is new, or was forgotten. */
static uint32_t *note_of(uint64_t hash)
{
    struct lab_state_set *set = lab->states;

    if (set->count == set->size / 2 && set->size < MAX_SIZE)
        grow(set);
    uint32_t index = find(set->hashes, set->size, hash);
    set->count += set->hashes[index] == 0;
    set->hashes[index] = hash;
    return &set->notes[index];
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
    uint64_t more[] = {run->now, run->stirred, run->ended, run->epilogue, run->killed, run->reuses, run->operations, run->stale};

    for (uint32_t i = 0; i < run->thread_count; i++) {
        const lab_thread *t = &run->threads[i];
        uint64_t flags[] = {t->asleep,    t->may_give_up, t->gives_up, t->yielded, t->in_interrupt,
                            t->timed_out, t->mortal,      t->process,  t->joined,  (uintptr_t)t->gate};

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
    uint64_t hash = lab_cycle_hash();
    if (lab->options.model == MODEL_C11) {
        uint64_t execution = lab_c11_hash();

        if (execution == 0)
            return 0;
        hash = lab_memory_hash_bytes(hash, &execution, sizeof(execution));
    }
    return lab_memory_hash_bytes(hash, more, sizeof(more)) | 1;
}

/* Summaries. */

static void merge(access_set *into, const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        into->of[i] |= words[i];
}

/* The place of a shared variable in summaries; MAX_SHARED: there are too many. */
static uint32_t place_of(uint32_t cell)
{
    struct lab_state_set *set = lab->states;

    for (uint32_t i = 0; i < set->shared_count; i++)
        if (set->shared[i] == cell)
            return i;
    if (set->shared_count == MAX_SHARED) {
        set->is_full = true;
        return MAX_SHARED;
    }
    set->shared[set->shared_count] = (uint16_t)cell;
    lab->cells_changed = true; /* summaries get longer */
    return set->shared_count++;
}

static void add_step(access_set *to, const lab_step *s)
{
    for (uint32_t i = 0; i < s->op.accesses; i++) {
        const lab_access *a = &s->op.access[i];

        if (a->cell == NO_CELL || !lab_cell_is_shared(&lab->cells[a->cell]))
            continue;
        uint32_t place = place_of(a->cell);
        if (place != MAX_SHARED)
            to->of[place] |= (a->write ? 2u : 1u) << (2 * s->thread);
    }
}

static uint32_t *find_summary(uint32_t *index, uint32_t size, const uint32_t *words)
{
    const struct lab_state_set *set = lab->states;
    uint64_t hash = 0;

    for (uint32_t i = 0; i < set->words; i++)
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15ull + (hash >> 29);
    uint32_t at = (uint32_t)(hash >> 32) % size;
    while (index[at] != 0 && memcmp(&set->room[index[at]], words, set->words * sizeof(*words)) != 0)
        at = (at + 1) % size;
    return &index[at];
}

static void grow_index(struct lab_state_set *set)
{
    uint32_t size = set->index_size * 2;
    uint32_t *index = lab_memory_map(size * sizeof(uint32_t));

    for (uint32_t i = 0; i < set->index_size; i++)
        if (set->index[i] != 0)
            *find_summary(index, size, &set->room[set->index[i]]) = set->index[i];
    munmap(set->index, set->index_size * sizeof(uint32_t));
    set->index = index;
    set->index_size = size;
}

static uint32_t keep_summary(const access_set *accesses)
{
    struct lab_state_set *set = lab->states;

    if (set->index_count == set->index_size / 2)
        grow_index(set);
    uint32_t *found = find_summary(set->index, set->index_size, accesses->of);
    if (*found != 0)
        return *found;
    if (set->room_used + set->words > MAX_ROOM / sizeof(uint32_t)) {
        set->is_full = true;
        return OPEN;
    }
    *found = set->room_used;
    memcpy(&set->room[*found], accesses->of, set->words * sizeof(uint32_t));
    set->room_used += set->words != 0 ? set->words : 1;
    set->index_count++;
    return *found;
}

void lab_states_open(uint32_t node)
{
    struct lab_state_set *set = lab->states;

    memset(&set->after[node], 0, sizeof(set->after[node]));
    set->state[node] = 0;
    set->on_cycle[node] = false;
}

/* The schedule is over, and the search leaves the last branch of that node. */
void lab_states_leave_branch(uint32_t node)
{
    const lab_node *n = &lab->nodes[node];

    if (n->kind == NODE_THREAD && n->step != NO_STEP)
        add_step(&lab->states->after[node], &lab->steps[n->step]);
}

/* It has no more branches. */
void lab_states_leave_node(uint32_t node)
{
    struct lab_state_set *set = lab->states;

    if (set->state[node] != 0)
        *note_of(set->state[node]) = set->on_cycle[node] ? FORGOTTEN : keep_summary(&set->after[node]);
    if (node != 0)
        merge(&set->after[node - 1], set->after[node].of, MAX_SHARED);
}

/* The schedule has come back to a state of its own. */
static void try_everything_since(uint64_t state)
{
    struct lab_state_set *set = lab->states;

    for (uint32_t i = lab->node_count; i-- != 0;) {
        lab_node *n = &lab->nodes[i];

        if (n->kind == NODE_THREAD)
            n->backtrack = n->enabled;
        if (set->state[i] == state)
            return;
        set->on_cycle[i] = true;
    }
}

/* The thread could make an access before that step that does not commute with it. */
static void try_before(int32_t step, uint32_t thread)
{
    if (step == NO_STEP || lab->steps[step].thread == thread)
        return;
    if (thread < lab->run.thread_count && lab_step_happened_before(step, &lab->run.threads[thread].dep))
        return;
    lab_node *n = &lab->nodes[lab->steps[step].node];
    n->backtrack |= n->enabled & LAB_BIT(thread) ? LAB_BIT(thread) : n->enabled;
}

static void compare_with_schedule(const uint32_t *summary)
{
    const struct lab_state_set *set = lab->states;

    for (uint32_t i = 0; i < set->words; i++) {
        const lab_cell *c = lab_cell_of(set->shared[i]);

        for (uint32_t left = summary[i]; left != 0; left &= left - 1) {
            uint32_t bit = (uint32_t)__builtin_ctz(left);

            try_before(c->last_write, bit / 2);
            for (uint32_t readers = bit & 1 ? c->readers : 0; readers != 0; readers &= readers - 1)
                try_before(c->read[__builtin_ctz(readers)], bit / 2);
        }
    }
}

uint8_t lab_states_pick(lab_node *n)
{
    struct lab_state_set *set = lab->states;
    uint8_t chosen = lab_explore_prefer(n->enabled);

    n->sleep = 0;
    n->backtrack = LAB_BIT(chosen);
    if ((n->enabled & (n->enabled - 1)) == 0 || lab_explore_runs_on(n->enabled))
        return chosen;
    if (set->unreduced)
        n->backtrack = n->enabled;
    uint64_t hash = hash_state();
    if (hash == 0)
        return chosen;
    uint32_t *note = note_of(hash);
    if (*note == FORGOTTEN) {
        *note = OPEN;
        set->state[lab->node_count - 1] = hash;
        return chosen;
    }
    uint32_t summary = *note;
    lab->node_count--; /* the node decides nothing */
    if (!set->unreduced && summary == OPEN) {
        try_everything_since(hash);
    } else if (!set->unreduced) {
        merge(&set->after[lab->node_count - 1], &set->room[summary], set->words);
        compare_with_schedule(&set->room[summary]);
    }
    lab_sched_leave(RUN_PRUNED);
}

/* What decides whether a thread spins: to leave one that does is no preemption. */
static uint64_t hash_watched(uint64_t hash)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *t = &lab->run.threads[i];

        for (uint32_t j = 0; j < t->watched_count; j++) {
            uint64_t parts[] = {i, t->watch[j].pc, t->watch[j].cell, t->watch[j].callers, t->watch[j].value};
            hash = lab_memory_hash_bytes(hash, parts, sizeof(parts));
        }
    }
    return hash;
}

bool lab_states_is_known(uint64_t also, uint32_t cost)
{
    uint64_t hash = hash_state();

    if (hash == 0)
        return false;
    hash = hash_watched(hash);
    uint32_t *note = note_of(lab_memory_hash_bytes(hash, &also, sizeof(also)) | 1);
    if (*note != FORGOTTEN && *note <= cost + 1)
        return true;
    *note = cost + 1;
    return false;
}
