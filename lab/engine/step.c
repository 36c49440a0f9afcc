/* step.c: steps, their order, and which of them could have come in the other order. */
#include "engine.h"

void lab_step_order_after(lab_thread *t, int32_t earlier, int32_t own, const lab_vclock *before)
{
    if (earlier == NO_STEP || lab->steps[earlier].thread == t->number)
        return;
    if (!lab_step_happened_before(earlier, before) && lab_dpor_is_active())
        lab_dpor_race(earlier, own, before);
    lab_clock_join(&t->dep, &lab->steps[earlier].dep);
}

/* An acquisition could not have come before the release of the lock, but before the acquisition that was released. */
static void order_acquisition(lab_thread *t, lab_cell *c, int32_t own, const lab_vclock *before)
{
    if (c->last_write != NO_STEP && c->last_write == c->unlocked) {
        lab_step_order_after(t, c->locked, own, before);
        lab_clock_join(&t->dep, &lab->steps[c->unlocked].dep);
    } else {
        lab_step_order_after(t, c->last_write, own, before);
    }
    c->locked = own;
}

static void order_access(lab_thread *t, lab_access a, int32_t own, const lab_vclock *before)
{
    lab_cell *c = lab_cell_of(a.cell);

    if (t->op.acquires && a.write)
        order_acquisition(t, c, own, before);
    else
        lab_step_order_after(t, c->last_write, own, before);
    if (a.write) {
        for (uint32_t readers = c->readers; readers != 0; readers &= readers - 1)
            lab_step_order_after(t, c->read[__builtin_ctz(readers)], own, before);
        c->last_write = own;
        c->readers = 0;
    } else {
        c->readers |= 1u << t->number;
        c->read[t->number] = own;
    }
    if (!(c->users >> t->number & 1) || (a.write && !c->written)) {
        bool shared = lab_cell_is_shared(c);
        lab->users_changes++;
        c->users |= 1u << t->number;
        c->written |= a.write;
        lab->shared_changes += lab_cell_is_shared(c) && !shared;
    }
}

/* An operation that has returned precedes those that begin later: the two steps do not commute. */
static void order_in_history(lab_thread *t, int32_t own, const lab_vclock *before)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *other = &lab->run.threads[i];
        lab_step_order_after(t, t->op.kind == OP_BEGIN ? other->last_return : other->last_begin, own, before);
    }
    if (t->op.kind == OP_BEGIN)
        t->last_begin = own;
    else
        t->last_return = own;
}

/* An interrupt does not commute with any step of its target. dpor knows; summaries (states.c) know variables only. */
static void add_context(lab_operation *op, const lab_thread *t)
{
    if (op->accesses == MAX_ACCESSES)
        lab_states_search_all();
    else
        op->access[op->accesses++] = (lab_access){lab_cell_pseudo(PSEUDO_CONTEXT(t->number)), false};
}

void lab_step_make(lab_thread *t, int count, const lab_access *accesses)
{
    if (t->no_step)
        return;
    int32_t own = (int32_t)lab->run.steps++;
    lab_step *s = &lab->steps[own];
    lab_vclock before = t->dep;

    s->thread = t->number;
    s->ordinal = ++t->steps;
    s->node = lab->last_node;
    s->woken = 0;
    s->op = t->op;
    s->op.accesses = (uint8_t)count;
    for (int i = 0; i < count; i++)
        s->op.access[i] = accesses[i];
    if (lab->uses_interrupts)
        add_context(&s->op, t);
    lab->nodes[lab->last_node].step = own;
    t->dep.at[t->number] = t->steps;
    for (int i = 0; i < s->op.accesses; i++)
        if (s->op.access[i].cell != NO_CELL)
            order_access(t, s->op.access[i], own, &before);
    lab_step_order_after(t, t->last_interrupt, own, &before);
    if (t->op.kind == OP_BEGIN || t->op.kind == OP_RETURN)
        order_in_history(t, own, &before);
    s->dep = t->dep;
    t->last_step = own;
    if (lab->run.yielders != 0) {
        for (uint32_t i = 0; i < lab->run.thread_count; i++) {
            lab_thread *other = &lab->run.threads[i];
            if (other != t && other->yielded != 0)
                lab->run.yielders -= --other->yielded == 0;
        }
    }
}

void lab_step_wakes(const lab_thread *waker, lab_thread *t)
{
    lab_clock_join(&t->dep, &waker->dep);
    if (waker->last_step != NO_STEP)
        lab->steps[waker->last_step].woken |= LAB_BIT(t->number);
}

/* Its dependencies are complete after this. */
static void settle(lab_thread *t)
{
    lab->steps[t->last_step].dep = t->dep;
}

void lab_step_follow(lab_thread *t, uint32_t number, bool readers_too)
{
    const lab_cell *c = lab_cell_of(number);

    if (c->last_write != NO_STEP)
        lab_clock_join(&t->dep, &lab->steps[c->last_write].dep);
    for (uint32_t readers = readers_too ? c->readers : 0; readers != 0; readers &= readers - 1)
        lab_clock_join(&t->dep, &lab->steps[c->read[__builtin_ctz(readers)]].dep);
    settle(t);
}

void lab_step_follow_all(lab_thread *t)
{
    lab_vclock before = t->dep;

    lab_states_search_all();
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_step_order_after(t, lab->run.threads[i].last_step, t->last_step, &before);
        if (i != t->number)
            lab_dpor_instead((uint8_t)i);
    }
    settle(t);
}

void lab_step_announce(lab_thread *t, lab_op_kind kind, uintptr_t address, uintptr_t pc)
{
    t->op = (lab_operation){.kind = (uint8_t)kind, .address = address, .pc = pc};
}

void lab_step_access(lab_thread *t, uint32_t number, bool write)
{
    t->op.access[t->op.accesses++] = (lab_access){number, write};
}

/*
 * The access may come after an interrupt. Only memory outside of the thread's stack: a handler does not look at the
 * interrupted code's variables. Not in a handler, which is not interrupted, nor in a loop that is giving up, which
 * nothing interrupts (spin.c).
 */
void lab_step_plain(lab_thread *t, uintptr_t address, uintptr_t pc)
{
    if (!t->in_interrupt && !t->gives_up && address - (uintptr_t)t->stack >= STACK_SIZE)
        lab_step_local(t, OP_PLAIN, pc);
}

/* A step that accesses nothing. */
void lab_step_local(lab_thread *t, lab_op_kind kind, uintptr_t pc)
{
    lab_step_announce(t, kind, 0, pc);
    lab_sched_point(t);
    lab_step_make(t, 0, NULL);
}
