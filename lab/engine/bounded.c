/* bounded.c: every schedule with a bounded number of preemptions, at steps on shared variables. No reduction. */
#include "engine.h"

uint8_t lab_bounded_pick(lab_node *n, int32_t previous)
{
    bool can_stay =
        lab->current != NULL && lab->current->state == THREAD_READY && (n->enabled & LAB_BIT(lab->current->number));
    uint8_t chosen = lab_explore_prefer(n->enabled);

    n->preemptions = previous >= 0 ? lab->nodes[previous].preemptions : 0;
    n->sleep = 0;
    n->backtrack = LAB_BIT(chosen);
    if (!can_stay)
        n->backtrack = n->enabled;
    else if (n->preemptions < lab->options.preemptions && !lab_explore_runs_on(n->enabled))
        n->backtrack = n->enabled;
    return chosen;
}

/* A preemption is counted at the node after it. */
void lab_bounded_count(void)
{
    uint8_t count = 0;
    int32_t previous = -1;

    for (uint32_t i = 0; i < lab->replay_count; i++) {
        lab_node *n = &lab->nodes[i];

        if (n->kind != NODE_THREAD)
            continue;
        n->preemptions = count;
        if (previous >= 0 && n->chosen != lab->nodes[previous].chosen &&
            (n->enabled & LAB_BIT(lab->nodes[previous].chosen)))
            count++;
        n->preemptions = count;
        previous = (int32_t)i;
    }
}
