/*
 * bounded.c: every schedule with a bounded number of preemptions, at steps on shared variables.
 *
 * A preemption comes as late as it can. A thread that is preempted before a step sleeps until another thread has made a step that
 * does not commute with it: if the thread ran earlier, its step could have come before the preemption, with the same result and no
 * more preemptions. Other threads do not sleep, unlike with dpor: to run one of them first may cost a preemption.
 *
 * bounded-states (sc) also ends a schedule at a known state: states.c.
 */
#include "engine.h"

/* A thread that blocks or spins is not preempted, even if it may time out or give up. */
static uint8_t find_stayer(uint16_t enabled)
{
    const lab_thread *t = lab->current;

    return t != NULL && t->state == THREAD_READY && !t->asleep && (enabled & LAB_BIT(t->number)) ? (uint8_t)t->number
                                                                                               : MAX_THREADS;
}

static uint16_t inherit_sleep(int32_t previous)
{
    if (previous < 0 || lab->options.unreduced)
        return 0;
    const lab_node *p = &lab->nodes[previous];
    uint8_t stayer = p->stayer;
    uint16_t set = p->sleep;

    /* A step that accesses nothing marks a place where the test wants to be preempted. */
    if (stayer != MAX_THREADS && stayer != p->chosen && (p->done & LAB_BIT(stayer)) &&
        lab->run.threads[stayer].op.kind != OP_LOCAL)
        set |= LAB_BIT(stayer);
    return lab_dpor_commuting(previous, (uint16_t)(set & ~LAB_BIT(p->chosen)));
}

uint8_t lab_bounded_pick(lab_node *n, int32_t previous)
{
    n->preemptions = previous >= 0 ? lab->nodes[previous].preemptions : 0;
    n->sleep = inherit_sleep(previous);
    uint16_t awake = lab_dpor_awake(n);
    uint8_t chosen = lab_explore_prefer(awake);

    n->stayer = find_stayer(awake);
    n->backtrack = LAB_BIT(chosen);
    if (n->stayer != MAX_THREADS && (n->preemptions >= lab->options.preemptions || lab_explore_runs_on(n->enabled)))
        return chosen;
    n->backtrack = awake;
    if (lab->active == STRATEGY_BOUNDED_STATES && (awake & (awake - 1)) != 0 &&
        lab_states_is_known(n->stayer | (uint64_t)n->sleep << 8, n->preemptions))
        lab_dpor_prune();
    return chosen;
}

/* Also the choices of the schedule that comes next. */
void lab_bounded_count(void)
{
    uint8_t count = 0;

    for (uint32_t i = 0; i < lab->replay_count; i++) {
        lab_node *n = &lab->nodes[i];

        if (n->kind != NODE_THREAD)
            continue;
        count += n->stayer != MAX_THREADS && n->chosen != n->stayer;
        n->preemptions = count;
    }
}
