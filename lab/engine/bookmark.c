/*
 * bookmark.c: states of the current schedule to which a depth-first search returns. The next schedule has the same beginning as the
 * last one, and most schedules of `states` end a few steps after they leave it. So the search saves the whole state now and then, and
 * makes only the steps after the last valid bookmark again.
 *
 * 1. A bookmark is set before a decision at which several threads can run. The explorer saves the state on a stack of its own, so the
 *    running fiber is saved like all others.
 * 2. It has all that begins anew with each schedule: the program's memory, lab->run, what the shadow memory and the cells know of this
 *    schedule, and the stores of its execution (c11). Steps, events and nodes are appended, and those before the bookmark stay.
 * 3. What outlives a schedule (which cells there are and who uses them, which pages are written) is never taken back.
 * 4. A bookmark is valid while the decisions before it are. A schedule that starts from the beginning forgets them all.
 * 5. There are none in programs with a main of their own, and after a schedule has opened a descriptor or blocked a signal: the
 *    host's state cannot be put back.
 *
 * With --replays no bookmarks are set: lab/self/bookmarks.py compares both.
 */
#include "engine.h"

#include <string.h>

#define ROOM          (1ul << 30) /* of address space */
#define MOST          8192
#define STEPS_BETWEEN 6

typedef struct bookmark {
    uint32_t node; /* the decision that comes next */
    int32_t last_node;
    uint32_t steps, event_count, granules, cells;
    size_t printed_length;
    uint8_t thread; /* that was running */
    char *from, *end; /* the saved state */
} bookmark;

struct lab_bookmarks {
    char *room;
    uint32_t count;
    bookmark of[MOST];
};

void lab_bookmarks_forget(void)
{
    if (lab->bookmarks == NULL) {
        lab->bookmarks = lab_memory_map(sizeof(*lab->bookmarks));
        lab->bookmarks->room = lab_memory_map(ROOM);
    }
    lab->bookmarks->count = 0;
}

static void copy_threads(lab_copy *c)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        lab_copy_bytes(c, t, offsetof(lab_thread, watch));
        lab_copy_bytes(c, t->watch, t->watched_count * sizeof(t->watch[0]));
        lab_copy_bytes(c, t->tls, lab->tls_size);
        if (t->state != THREAD_DONE || t->number == lab->paused)
            lab_copy_bytes(c, t->sp, (size_t)(t->stack + STACK_SIZE - (char *)t->sp));
    }
}

/* The poison of a granule outlives the schedule in part: memory.c undoes the rest. */
static void copy_shadow(lab_copy *c, uint32_t granules, uint32_t cells)
{
    for (uint32_t i = 0; i < granules; i++) {
        lab_granule *g = lab->touched_granules[i];
        uint8_t poison = g->poison;

        lab_copy_bytes(c, g, offsetof(lab_granule, cell));
        g->poison = poison;
    }
    for (uint32_t i = 0; i < cells; i++) {
        lab_cell *cell = &lab->cells[lab->touched_cells[i]];
        lab_copy_bytes(c, &cell->generation, sizeof(*cell) - offsetof(lab_cell, generation));
    }
    lab_copy_bytes(c, lab->aside, lab->run.asides * sizeof(lab->aside[0]));
}

static void copy_execution(lab_copy *c)
{
    lab_copy_bytes(c, lab->versions, lab->run.versions * sizeof(lab->versions[0]));
    lab_copy_bytes(c, lab->c11_events, lab->run.c11_events * sizeof(lab->c11_events[0]));
    lab_copy_bytes(c, lab->strong, lab->run.strong * sizeof(lab->strong[0]));
}

/* First what says how much there is of the rest. */
static void copy_state(lab_copy *c, const bookmark *b)
{
    uint32_t operations;

    lab_copy_bytes(c, &lab->run, offsetof(lab_run_state, threads));
    operations = lab->run.operations;
    lab_copy_bytes(c, lab->run.history, operations * sizeof(lab->run.history[0]));
    lab_copy_bytes(c, lab->run.began, operations * sizeof(lab->run.began[0]));
    lab_copy_bytes(c, lab->run.ended_at, operations * sizeof(lab->run.ended_at[0]));
    copy_threads(c);
    lab_memory_copy(c);
    copy_shadow(c, b->granules, b->cells);
    copy_execution(c);
    lab_copy_bytes(c, lab->freed, lab->run.freed * sizeof(lab->freed[0]));
}

static bool search_returns(void)
{
    return lab_is_depth_first(lab->active) && !lab->options.replays && !lab->tracking && !lab->is_program &&
           !lab->calls.has_opened && !lab->calls.has_masked;
}

void lab_bookmarks_set(uint16_t enabled)
{
    const struct lab_bookmarks *all = lab->bookmarks;
    uint32_t behind = all->count != 0 ? all->of[all->count - 1].steps : 0;

    if (lab->current == NULL || (enabled & (enabled - 1)) == 0 || lab->run.steps < behind + STEPS_BETWEEN || all->count == MOST ||
        !search_returns() || lab->touched_granule_count == MAX_TOUCHED || lab->touched_cell_count == MAX_TOUCHED)
        return;
    lab->paused = (uint8_t)lab->current->number;
    lab->end = RUN_PAUSED;
    lab_sched_switch(NULL);
}

lab_thread *lab_bookmarks_save(void)
{
    struct lab_bookmarks *all = lab->bookmarks;
    bookmark *b = &all->of[all->count];
    char *from = all->count != 0 ? b[-1].end : all->room;
    lab_copy c = {.at = from, .end = all->room + ROOM, .saves = true};

    *b = (bookmark){.node = lab->node_count,
                    .last_node = lab->last_node,
                    .steps = lab->run.steps,
                    .event_count = lab->event_count,
                    .granules = lab->touched_granule_count,
                    .cells = lab->touched_cell_count,
                    .printed_length = lab->printed_length,
                    .thread = lab->paused,
                    .from = from};
    copy_state(&c, b);
    b->end = c.at;
    all->count += !c.is_full;
    lab->end = RUN_FINISHED;
    return &lab->run.threads[b->thread];
}

static void untouch(const bookmark *b)
{
    for (uint32_t i = b->granules; i < lab->touched_granule_count; i++)
        lab->touched_granules[i]->generation = 0;
    for (uint32_t i = b->cells; i < lab->touched_cell_count; i++)
        lab->cells[lab->touched_cells[i]].generation = 0;
    lab->touched_granule_count = b->granules;
    lab->touched_cell_count = b->cells;
}

lab_thread *lab_bookmarks_return(void)
{
    struct lab_bookmarks *all = lab->bookmarks;

    if (all == NULL)
        return NULL;
    while (all->count != 0 && all->of[all->count - 1].node >= lab->replay_count)
        all->count--;
    if (all->count == 0 || !search_returns())
        return NULL;
    const bookmark *b = &all->of[all->count - 1];
    lab_copy c = {.at = b->from, .end = b->end, .saves = false};
    lab->paused = b->thread;
    untouch(b);
    copy_state(&c, b);
    lab->node_count = b->node;
    lab->last_node = b->last_node;
    lab->event_count = b->event_count;
    lab->printed_length = b->printed_length;
    lab->printed[b->printed_length] = '\0';
    return &lab->run.threads[b->thread];
}
