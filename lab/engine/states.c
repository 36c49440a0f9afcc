/*
 * states.c: every state. A depth-first search that does not continue from a state it has already visited. Two threads
 * of a hundred steps each have at most ten thousand pairs of places, but more schedules than can be run, so this
 * finishes where dpor does not.
 *
 * 1. The state is that of cycle.c: memory, registers, stacks, next steps, and what may happen only a limited number of times;
 *    also the time, which threads spin or have yielded, and the history. Of a thread that has ended it has only that: its last place,
 *    its registers and its stack are not used again, and differ from schedule to schedule. States are equal if their 64-bit hashes are:
 *    among a million states, two different ones collide with a probability of 3e-8.
 * 2. States are recorded where several threads can run and the next step is on a shared variable. A thread whose next
 *    step is on its own variables runs on, as with bounded: that step commutes with all others.
 * 3. What is found: assertions, bugchecks, invariants, deadlocks, lost wakeups, leaks, Finish: everything that depends
 *    on the state alone. A race or a dead frame depends on how the state was reached; these are detected only in the
 *    schedules that are run. Cycles, and so livelocks and starvation, are not searched for.
 * 4. Under c11 the state has what the execution still allows: rc11.c. An old store is read only where dpor reads it: otherwise the
 *    load comes before the newer store in another schedule, which is tried too. That depends on the order of dependent steps, so the
 *    state has that order too, as far as it decides. Under tso it is dpor.
 *
 * The strategy `states` also reduces what is tried at a state, as dpor does (stateful DPOR: Yang, Chen, Gopalakrishnan, Kirby 2008).
 * A step that could have come before an earlier step of the schedule has that tried. Where the search stops at a known state, the
 * steps that follow it are not made. So each state keeps a *summary* of everything that was accessed after it: variable, thread, read
 * or write. A schedule that arrives there compares these accesses with its own steps. If an access conflicts with a step of another
 * thread, and that step does not precede it in the order of dependent steps, the thread of the access is tried before that step; if
 * it could not run there, every thread is.
 *
 * Which steps of the schedule precede an access that comes after the state? Those that precede the thread itself, and those that
 * precede a step after the state which in turn precedes the access: the thread has acquired a lock by then, and what the last owner
 * did comes before. So with each access the summary keeps its *past*, the variables that such steps read and wrote, and their
 * threads. The last write of such a variable in the schedule precedes the access. If there are several accesses of a kind, in one
 * continuation or in several, the past has what is common to all. That is more than necessary, never less:
 *
 * 5. A summary is complete when the search leaves the state for good. A state that the schedule itself has passed through closes a
 *    cycle: everything is tried along it, and the states on it, whose summaries lack what the first one still leads to, are
 *    forgotten when the search leaves them.
 * 6. Only shared variables are in summaries. When a variable becomes shared, the search starts over.
 * 7. What dpor orders by other means than variables is not in a summary. For this search an interrupt writes a variable that every
 *    step of its target reads, and the end of an operation of the history one that the begin of another reads. A program with kills,
 *    or that ends the process, is searched without the reduction: all threads that do not sleep are tried at each state (pick_awake).
 * 8. c11: a load below a state that leaves an old value to another schedule is itself in the summary. It conflicts with the newer
 *    store, which does not precede it. So a schedule that arrives with such a store of its own has the load tried before that store,
 *    and what follows the old value is searched there. Which stores precede which threads is part of the state (rc11.c), so the load
 *    leaves the same values in each schedule that arrives.
 * 9. Threads sleep, as in dpor: what follows their steps here was tried where they were awake. A state keeps which threads slept at
 *    every visit (Godefroid 1996). A schedule that arrives while one of these is awake opens the state again and tries it; the summary
 *    then has both visits. On a cycle nobody sleeps. A schedule that ends because all threads sleep leaves no summary: the nodes at
 *    which they fell asleep have it, and the states in between keep the sleepers.
 * 10. Where the acquisition of a lock is a single step (hal/locks.c), it could not have come before the release, but before the
 *    acquisition that was released: a summary tells acquisitions from other writes.
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
#define MAX_SIZE    (1u << 27)
#define MAX_SHARED  256 /* variables in a summary */
#define MAX_PAST    64  /* those of them that a past may have */
#define MAX_LATER   2048
#define MAX_ROOM    (4ul << 30) /* of address space */
#define FIRST_INDEX (1u << 12)

/* The note of a state. Otherwise: where its summary is; without the reduction VISITED and those threads that slept at each visit; with
   bounded-states 1 more than the preemptions with which it was reached. */
#define FORGOTTEN 0u
#define VISITED   0x10000u
#define OPEN      UINT32_MAX

typedef struct position {
    uintptr_t frame;
    uint64_t registers;
} position;

/* An access after a state, or several of the same variable, thread and kind. */
typedef struct later {
    uint64_t written, read; /* its past: variables, */
    uint16_t threads;       /* and threads */
    uint16_t place;         /* the variable */
    uint16_t thread;
    uint16_t write; /* 0; 1; ACQUIRES */
} later;

#define ACQUIRES 2

typedef struct access_set {
    uint32_t count; /* in the order of place, thread, write */
    later of[MAX_LATER];
} access_set;

struct lab_state_set {
    uint64_t *hashes; /* 0: free */
    uint32_t *notes;
    uint16_t *sleepers; /* at every visit so far: their steps were not tried there */
    uint32_t size, count;
    bool is_full;
    bool unreduced;
    position positions[MAX_NODES]; /* of the running thread at each node */
    /* The nodes of the current schedule. */
    access_set after[MAX_NODES]; /* accesses in what was searched below it so far */
    access_set below;            /* after the node that the search has just left */
    access_set joined;
    uint32_t end;                /* the summary of the state at which the schedule ended; 0: none */
    uint64_t state[MAX_NODES];   /* 0: not noted */
    bool on_cycle[MAX_NODES];
    uint16_t shared[MAX_SHARED]; /* their cells */
    uint32_t shared_count;
    /* Summaries: equal ones are kept once. */
    uint64_t *room;
    uint32_t room_used; /* 0 is not a summary */
    uint32_t *index;    /* a hash table */
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
    set->sleepers = resize(set->sleepers, set->size * sizeof(uint16_t), FIRST_SIZE * sizeof(uint16_t));
    set->size = FIRST_SIZE;
    set->count = 0;
    set->index = resize(set->index, set->index_size * sizeof(uint32_t), FIRST_INDEX * sizeof(uint32_t));
    set->index_size = FIRST_INDEX;
    set->index_count = 0;
    if (set->room == NULL)
        set->room = lab_memory_map(MAX_ROOM);
    set->room_used = 1;
    set->end = 0;
    set->unreduced |= lab->options.unreduced;
}

bool lab_states_is_full(void)
{
    return lab->states->is_full || lab->states->count >= MAX_SIZE / 2;
}

void lab_states_give_up(void)
{
    if (lab_compares_states(lab->active))
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

/* From now on each step reads a variable that an interrupt of its thread writes (step.c). */
void lab_states_see_interrupts(void)
{
    if (!lab_states_is_reduced() || lab->uses_interrupts)
        return;
    lab->uses_interrupts = true;
    lab->cells_changed = true;
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
    uint16_t *sleepers = lab_memory_map(size * sizeof(uint16_t));

    for (uint32_t i = 0; i < set->size; i++) {
        if (set->hashes[i] == 0)
            continue;
        uint32_t index = find(hashes, size, set->hashes[i]);
        hashes[index] = set->hashes[i];
        notes[index] = set->notes[i];
        sleepers[index] = set->sleepers[i];
    }
    munmap(set->hashes, set->size * sizeof(uint64_t));
    munmap(set->notes, set->size * sizeof(uint32_t));
    munmap(set->sleepers, set->size * sizeof(uint16_t));
    set->hashes = hashes;
    set->notes = notes;
    set->sleepers = sleepers;
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

static uint16_t *sleepers_of(const uint32_t *note)
{
    return &lab->states->sleepers[note - lab->states->notes];
}

/* The running thread's position, if another thread may be chosen. */
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
        if (t->state == THREAD_DONE)
            continue;
        /* Not timed_out: a thread that times out makes that step at once. */
        uint64_t flags[] = {t->asleep, t->may_give_up, t->gives_up, t->yielded, t->in_interrupt,
                            t->mortal, t->process,     t->joined,   (uintptr_t)t->gate};

        if (t->steps != 0 && (t->frame == 0 || (t->in_interrupt && t->frame >= t->handler_frame)))
            return 0;
        more[0] = lab_memory_hash_bytes(more[0], flags, sizeof(flags));
    }
    more[0] += lab_history_hash();
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

static void add_later(access_set *to, const later *l)
{
    if (to->count == MAX_LATER)
        lab->states->is_full = true;
    else
        to->of[to->count++] = *l;
}

static int compare_later(const later *a, const later *b)
{
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (int)a->write - (int)b->write;
}

static void merge(access_set *into, const later *others, uint32_t count)
{
    access_set *joined = &lab->states->joined;
    uint32_t i = 0, j = 0;

    joined->count = 0;
    while (i < into->count || j < count) {
        int order = i == into->count ? 1 : j == count ? -1 : compare_later(&into->of[i], &others[j]);
        later l = order <= 0 ? into->of[i] : others[j];

        if (order == 0) {
            l.written &= others[j].written;
            l.read &= others[j].read;
            l.threads &= others[j].threads;
        }
        i += order <= 0;
        j += order >= 0;
        add_later(joined, &l);
    }
    into->count = joined->count;
    memcpy(into->of, joined->of, joined->count * sizeof(later));
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
    return set->shared_count++;
}

static uint64_t past_bit(uint32_t place)
{
    return place < MAX_PAST ? 1ull << place : 0;
}

/* Does the step, which comes before, precede the access? */
static bool precedes(const lab_step *s, uint64_t written, uint64_t read, const later *l)
{
    uint64_t own = past_bit(l->place);

    return ((l->threads >> s->thread & 1) | (l->threads & s->woken)) != 0 || (written & (l->written | l->read | own)) != 0 ||
           (read & (l->written | (l->write ? own : 0))) != 0;
}

/* The step comes before the accesses of the set. */
static void prepend(access_set *to, const lab_step *s)
{
    uint64_t written = 0, read = 0;
    later own[MAX_ACCESSES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->op.accesses; i++) {
        const lab_access *a = &s->op.access[i];

        if (a->cell == NO_CELL || !lab_cell_is_shared(&lab->cells[a->cell]))
            continue;
        uint32_t place = place_of(a->cell);
        if (place == MAX_SHARED)
            continue;
        *(a->write ? &written : &read) |= past_bit(place);
        own[count++] = (later){.threads = LAB_BIT(s->thread), .place = (uint16_t)place, .thread = s->thread, .write = a->write};
        own[count - 1].write += a->write && s->op.acquires;
    }
    for (uint32_t i = 0; i < to->count; i++) {
        later *l = &to->of[i];

        if (!precedes(s, written, read, l))
            continue;
        l->written |= written;
        l->read |= read;
        l->threads |= LAB_BIT(s->thread);
    }
    while (count != 0)
        merge(to, &own[--count], 1);
}

#define LATER_WORDS (sizeof(later) / sizeof(uint64_t))

static uint32_t *find_summary(uint32_t *index, uint32_t size, const uint64_t *summary)
{
    const struct lab_state_set *set = lab->states;
    size_t words = 1 + summary[0] * LATER_WORDS;
    uint64_t hash = lab_memory_hash_bytes(1, summary, words * sizeof(*summary));
    uint32_t at = (uint32_t)(hash >> 32) % size;

    while (index[at] != 0 && memcmp(&set->room[index[at]], summary, words * sizeof(*summary)) != 0)
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

/* The summary is written after the others, and stays there if it is new. */
static uint32_t keep_summary(const access_set *accesses)
{
    struct lab_state_set *set = lab->states;
    uint64_t *summary = &set->room[set->room_used];
    size_t words = 1 + accesses->count * LATER_WORDS;

    if (set->room_used + words > MAX_ROOM / sizeof(*summary)) {
        set->is_full = true;
        return OPEN;
    }
    if (set->index_count == set->index_size / 2)
        grow_index(set);
    summary[0] = accesses->count;
    memcpy(summary + 1, accesses->of, accesses->count * sizeof(later));
    uint32_t *found = find_summary(set->index, set->index_size, summary);
    if (*found == 0) {
        *found = set->room_used;
        set->room_used += (uint32_t)words;
        set->index_count++;
    }
    return *found;
}

void lab_states_open(uint32_t node)
{
    struct lab_state_set *set = lab->states;

    set->after[node].count = 0;
    set->state[node] = 0;
    set->on_cycle[node] = false;
}

/* The schedule is over, and the search leaves the last branch of that node. Those of deeper nodes have been left. */
void lab_states_leave_branch(uint32_t node)
{
    struct lab_state_set *set = lab->states;
    const lab_node *n = &lab->nodes[node];

    if (node == lab->node_count - 1) {
        set->below.count = 0;
        if (set->end != 0)
            merge(&set->below, (const later *)&set->room[set->end + 1], (uint32_t)set->room[set->end]);
        set->end = 0;
    }
    if (n->kind == NODE_THREAD && n->step != NO_STEP)
        prepend(&set->below, &lab->steps[n->step]);
    merge(&set->after[node], set->below.of, set->below.count);
}

/* The node has no more branches. */
void lab_states_leave_node(uint32_t node)
{
    struct lab_state_set *set = lab->states;

    if (set->state[node] != 0) {
        uint32_t *note = note_of(set->state[node]);

        *note = set->on_cycle[node] ? FORGOTTEN : keep_summary(&set->after[node]);
        *sleepers_of(note) = lab->nodes[node].sleep;
    }
    set->below.count = set->after[node].count;
    memcpy(set->below.of, set->after[node].of, set->below.count * sizeof(later));
}

/* The schedule has come back to a state of its own. */
static void try_everything_since(uint64_t state)
{
    struct lab_state_set *set = lab->states;

    for (uint32_t i = lab->node_count; i-- != 0;) {
        lab_node *n = &lab->nodes[i];

        if (n->kind == NODE_THREAD) {
            n->backtrack = n->enabled;
            n->sleep = 0;
        }
        if (set->state[i] == state)
            return;
        set->on_cycle[i] = true;
    }
}

static bool precedes_past(int32_t step, uint64_t variables, bool written)
{
    for (uint64_t left = variables; left != 0; left &= left - 1) {
        const lab_cell *c = lab_cell_of(lab->states->shared[__builtin_ctzll(left)]);

        if (c->last_write != NO_STEP && lab_step_happened_before(step, &lab->steps[c->last_write].dep))
            return true;
        for (uint32_t readers = written ? c->readers : 0; readers != 0; readers &= readers - 1)
            if (lab_step_happened_before(step, &lab->steps[c->read[__builtin_ctz(readers)]].dep))
                return true;
    }
    return false;
}

/* Does that step of the schedule precede the access? */
static bool is_ordered(int32_t step, const later *l)
{
    for (uint16_t threads = l->threads | LAB_BIT(l->thread); threads != 0; threads &= (uint16_t)(threads - 1)) {
        uint32_t thread = lab_lowest(threads);

        if (thread < lab->run.thread_count && lab_step_happened_before(step, &lab->run.threads[thread].dep))
            return true;
    }
    return precedes_past(step, l->written, true) || precedes_past(step, l->read & ~l->written, false);
}

/* The enabled threads with a step after this one that precedes the access. */
static uint16_t find_causes(int32_t step, uint16_t enabled, const later *l)
{
    uint16_t causes = 0;

    for (int32_t k = step + 1; k < (int32_t)lab->run.steps; k++)
        if ((enabled & ~causes) >> lab->steps[k].thread & 1 && is_ordered(k, l))
            causes |= LAB_BIT(lab->steps[k].thread);
    return causes;
}

/*
 * The thread could make the access before that step, with which it does not commute. Where the thread cannot run, one that the
 * access depends on is tried (Flanagan, Godefroid 2005), and if there is none every thread.
 */
static void try_before(int32_t step, const later *l)
{
    if (step == NO_STEP || lab->steps[step].thread == l->thread || is_ordered(step, l))
        return;
    lab_node *n = &lab->nodes[lab->steps[step].node];
    uint16_t causes = (uint16_t)((l->threads | LAB_BIT(l->thread)) & n->enabled);
    if (causes & (n->backtrack | n->sleep))
        return;
    causes |= find_causes(step, n->enabled, l);
    if (causes & (n->backtrack | n->sleep))
        return;
    if (causes == 0)
        n->backtrack = n->enabled;
    else
        n->backtrack |= causes & LAB_BIT(l->thread) ? LAB_BIT(l->thread) : LAB_BIT(lab_lowest(causes));
}

static void compare_with_schedule(const later *summary, uint32_t count)
{
    for (const later *l = summary; l < summary + count; l++) {
        const lab_cell *c = lab_cell_of(lab->states->shared[l->place]);

        try_before(l->write == ACQUIRES && c->last_write == c->unlocked ? c->locked : c->last_write, l);
        for (uint32_t readers = l->write ? c->readers : 0; readers != 0; readers &= readers - 1)
            try_before(c->read[__builtin_ctz(readers)], l);
    }
}

/*
 * All threads are tried at a state, except those that sleep, as in dpor: their step was tried before, and commutes with all steps since.
 * The note of a state has those that slept whenever the search was there. If the search comes back while one of them is awake,
 * only that one is left to try (Godefroid 1996).
 */
static uint8_t pick_awake(lab_node *n, int32_t previous)
{
    bool decides = (n->enabled & (n->enabled - 1)) != 0 && !lab_explore_runs_on(n->enabled);

    n->sleep = lab->options.unreduced ? 0 : lab_dpor_sleepers(previous);
    uint16_t awake = (uint16_t)(n->enabled & ~n->sleep);
    uint64_t hash = decides && awake != 0 ? hash_state() : 0;
    uint32_t *note = hash != 0 ? note_of(hash) : NULL;
    if (note != NULL && *note != FORGOTTEN) {
        awake &= (uint16_t)*note;
        n->sleep &= (uint16_t)*note;
    }
    if (note != NULL)
        *note = VISITED | n->sleep;
    if (awake == 0)
        lab_dpor_prune();
    uint8_t chosen = lab_explore_prefer(decides ? awake : n->enabled);
    if (!(awake & LAB_BIT(chosen)))
        lab_dpor_prune();
    n->backtrack = decides ? awake : LAB_BIT(chosen);
    return chosen;
}

uint8_t lab_states_pick(lab_node *n, int32_t previous)
{
    struct lab_state_set *set = lab->states;

    if (set->unreduced)
        return pick_awake(n, previous);
    n->sleep = lab_dpor_sleepers(previous);
    uint8_t chosen = lab_explore_prefer(lab_dpor_awake(n));
    n->backtrack = LAB_BIT(chosen);
    if ((n->enabled & (n->enabled - 1)) == 0 || lab_explore_runs_on(n->enabled))
        return chosen;
    uint64_t hash = hash_state();
    if (hash == 0)
        return chosen;
    uint32_t *note = note_of(hash);
    uint32_t summary = *note;
    if (summary == OPEN) {
        try_everything_since(hash);
        lab_dpor_prune();
    }
    if (summary != FORGOTTEN) {
        const later *accesses = (const later *)&set->room[summary + 1];
        uint16_t left = (uint16_t)(*sleepers_of(note) & ~n->sleep & n->enabled);

        compare_with_schedule(accesses, (uint32_t)set->room[summary]);
        if (left == 0) {
            set->end = summary;
            lab_dpor_prune();
        }
        merge(&set->after[lab->node_count - 1], accesses, (uint32_t)set->room[summary]);
        n->sleep &= *sleepers_of(note);
        n->backtrack = left;
        chosen = lab_explore_prefer(left);
    }
    *note = OPEN;
    set->state[lab->node_count - 1] = hash;
    return chosen;
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
