/*
 * reuse.c: memory that was freed and is allocated again in the same schedule. Which block of the same size an allocation
 * gets is a choice, one of which is a new block: in schedules with a new block, an access to the old one is detected.
 * The end of one life of a block happens before its next one. Which blocks are free is the state of the heap: while
 * reuse is allowed, allocating and freeing are steps that do not commute.
 */
#include "engine.h"

static void step_on_heap(lab_thread *t, uintptr_t pc)
{
    lab_step_announce(t, OP_LOCAL, 0, pc);
    lab_step_access(t, lab_cell_pseudo(PSEUDO_HEAP), true);
    lab_sched_point(t);
}

static bool fits(const char *address, size_t size, size_t alignment)
{
    return (lab_memory_size(address) + 7) / 8 == (size + 7) / 8 && (uintptr_t)address % alignment == 0;
}

static uint32_t choose(uint32_t candidates)
{
    if (candidates == 0)
        return 0;
    if (lab->run.reuses == 0) {
        lab_explore_cut(CUT_REUSE);
        return 0;
    }
    return lab_explore_choose(1 + candidates);
}

char *lab_reuse_choose(size_t size, size_t alignment)
{
    lab_thread *t = lab->current;
    uint32_t candidates[MAX_FREED], count = 0;

    if (!lab_sched_active())
        return NULL;
    if (lab->start.reuses != 0)
        step_on_heap(t, t->op.pc);
    for (uint32_t i = 0; i < lab->run.freed; i++)
        if (fits(lab->freed[i].address, size, alignment))
            candidates[count++] = i;
    uint32_t choice = choose(count);
    if (lab->start.reuses != 0)
        lab_step_make(t, 1, t->op.access);
    if (choice == 0)
        return NULL;
    lab_freed taken = lab->freed[candidates[choice - 1]];
    lab->freed[candidates[choice - 1]] = lab->freed[--lab->run.freed];
    lab->run.reuses -= lab->run.reuses != UNLIMITED;
    lab_clock_join(&t->sync, &taken.clock);
    return taken.address;
}

void lab_reuse_begin_free(uintptr_t pc)
{
    if (!lab_sched_active() || lab->start.reuses == 0)
        return;
    step_on_heap(lab->current, pc);
    lab_step_make(lab->current, 1, lab->current->op.access);
}

void lab_reuse_end_free(char *address)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active())
        return;
    if (lab->run.freed == MAX_FREED) {
        lab_explore_cut(CUT_REUSE);
        return;
    }
    lab->freed[lab->run.freed++] = (lab_freed){address, t->sync};
    if (lab->start.reuses != 0)
        t->sync.at[t->number]++;
}
