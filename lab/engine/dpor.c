/*
 * dpor.c: every schedule that can make a difference. A depth-first search with source sets (Abdulla, Aronis, Jonsson,
 * Sagonas 2014) and sleep sets. When a step could also have come before an earlier step of another thread, the node
 * before that earlier step gets a thread to try. A thread that was tried at a node sleeps in the node's other branches
 * until a step is made with which it does not commute.
 */
#include "engine.h"

/* Two steps commute. */
static bool accesses_conflict(const lab_operation *a, const lab_operation *b)
{
    for (uint32_t i = 0; i < a->accesses; i++)
        for (uint32_t j = 0; j < b->accesses; j++)
            if (a->access[i].cell == b->access[j].cell && a->access[i].cell != NO_CELL &&
                (a->access[i].write || b->access[j].write))
                return true;
    return false;
}

static bool independent(const lab_operation *a, uint8_t a_thread, const lab_operation *b, uint8_t b_thread)
{
    if (a->kind == OP_EXIT || b->kind == OP_EXIT)
        return false;
    if (a->kind == OP_INTERRUPT && a->address == b_thread)
        return false;
    if (b->kind == OP_INTERRUPT && b->address == a_thread)
        return false;
    if ((a->kind == OP_BEGIN && b->kind == OP_RETURN) || (a->kind == OP_RETURN && b->kind == OP_BEGIN))
        return false;
    return !accesses_conflict(a, b);
}

bool lab_dpor_is_active(void)
{
    return lab->active == STRATEGY_DPOR || lab_states_is_reduced();
}

/* The schedule in which the load comes first is tried too: it races with the store. For states: states.c, 8. */
bool lab_dpor_leaves_old(void)
{
    return lab->active == STRATEGY_DPOR || lab->active == STRATEGY_STATES;
}

uint16_t lab_dpor_commuting(int32_t node, uint16_t set)
{
    const lab_step *made = &lab->steps[lab->nodes[node].step];

    for (uint16_t left = set; left != 0; left &= (uint16_t)(left - 1)) {
        const lab_thread *t = &lab->run.threads[lab_lowest(left)];
        if (!independent(&made->op, made->thread, &t->op, t->number))
            set &= (uint16_t)~LAB_BIT(t->number);
    }
    return set;
}

uint16_t lab_dpor_sleepers(int32_t previous)
{
    if (previous < 0)
        return 0;
    const lab_node *p = &lab->nodes[previous];
    return lab_dpor_commuting(previous, (uint16_t)((p->sleep | p->done) & ~LAB_BIT(p->chosen)));
}

void lab_dpor_prune(void)
{
    lab->node_count--;
    lab_sched_leave(RUN_PRUNED);
}

uint16_t lab_dpor_awake(const lab_node *n)
{
    uint16_t awake = (uint16_t)(n->enabled & ~n->sleep);

    if (awake == 0)
        lab_dpor_prune();
    return awake;
}

uint8_t lab_dpor_pick(lab_node *n, int32_t previous)
{
    n->sleep = lab_dpor_sleepers(previous);
    uint8_t chosen = lab_explore_prefer(lab_dpor_awake(n));
    n->backtrack = lab_explore_is_split_here() ? n->enabled : LAB_BIT(chosen);
    return chosen;
}

/*
 * The next step disables a step that another thread could make now (a wake disables a timeout), so the search never
 * sees that step come later: it must be tried instead.
 */
void lab_dpor_instead(uint8_t thread)
{
    lab_node *n = &lab->nodes[lab->last_node];

    if (lab_dpor_is_active())
        n->backtrack |= n->enabled & LAB_BIT(thread);
}

/*
 * `later` is being made and could have come before `earlier`. The threads that could begin such a schedule are the
 * initials of the steps in between that do not depend on `earlier`. Unless the node already tries one of them, one is
 * added.
 */
void lab_dpor_race(int32_t earlier, int32_t later, const lab_vclock *before)
{
    lab_node *n = &lab->nodes[lab->steps[earlier].node];
    const lab_step *late = &lab->steps[later];
    lab_vclock clock = *before;
    int32_t first[MAX_THREADS];
    uint16_t seen = 0, initials = 0;

    if (lab->node_count < lab->replay_count)
        return; /* found in an earlier schedule with the same beginning, and the same choice in this step */
    for (int32_t k = earlier + 1; k <= later; k++) {
        const lab_step *s = &lab->steps[k];
        const lab_vclock *own = k == later ? &clock : &s->dep;
        bool initial = true;

        if (k < later && lab_step_happened_before(earlier, &s->dep))
            continue;
        if (k < later && !independent(&s->op, s->thread, &late->op, late->thread))
            lab_clock_join(&clock, &s->dep);
        if (seen & LAB_BIT(s->thread))
            continue;
        for (uint16_t left = seen; left != 0 && initial; left &= (uint16_t)(left - 1))
            initial = !lab_step_happened_before(first[lab_lowest(left)], own);
        seen |= LAB_BIT(s->thread);
        first[s->thread] = k;
        initials |= (uint16_t)(initial ? LAB_BIT(s->thread) : 0);
    }
    if (initials & (n->backtrack | n->sleep))
        return;
    initials &= n->enabled;
    if (initials != 0)
        n->backtrack |= initials & LAB_BIT(late->thread) ? LAB_BIT(late->thread) : LAB_BIT(lab_lowest(initials));
}
