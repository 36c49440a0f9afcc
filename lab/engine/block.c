/* block.c: waiting on a word, waking, interrupts, and virtual time. */
#include "engine.h"

void lab_block_wake(lab_thread *t)
{
    t->state = THREAD_READY;
    t->timed_out = false;
    if (lab->current != NULL)
        lab_step_wakes(lab->current, t);
    lab_step_announce(t, OP_RESUME, t->op.address, t->op.pc);
}

/* Until another thread wakes it, or it is chosen to time out. */
static void block(lab_thread *t)
{
    t->state = THREAD_BLOCKED;
    t->timed_out = false;
    t->watched_count = 0;
    t->innermost = (uintptr_t)__builtin_frame_address(0);
    lab_sched_check_invariant();
    lab_sched_reschedule();
}

bool lab_block_sleep(lab_thread *t, uintptr_t address, uint32_t queue, uint64_t deadline, uintptr_t pc)
{
    t->deadline = deadline;
    lab_step_announce(t, OP_TIMEOUT, address, pc);
    lab_step_access(t, queue, true);
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    block(t);
    t->deadline = 0;
    if (!t->timed_out) {
        lab_step_make(t, t->op.kind == OP_TIMEOUT ? 1 : 0, t->op.access); /* interrupted, or woken */
        return true;
    }
    if (deadline > lab->run.now) {
        lab->run.now = deadline;
        lab_spin_changed(lab_cell_pseudo(PSEUDO_CLOCK));
    }
    return false;
}

static bool is_stuck_while_quiet(uintptr_t address, uint32_t expected)
{
    return *(volatile uint32_t *)address == expected;
}

static bool wait(uintptr_t address, uint32_t expected, uint64_t deadline, uintptr_t pc)
{
    lab_thread *t = lab->current;
    uint32_t number, queue;

    if (!lab_sched_active()) {
        if (is_stuck_while_quiet(address, expected) && deadline == 0)
            lab_sched_fail(VERDICT_UNSUPPORTED, pc, "Setup, Invariant or Finish blocks");
        return !is_stuck_while_quiet(address, expected);
    }
    number = lab_cell_find(address, sizeof(uint32_t));
    queue = lab_cell_queue(address);
    lab_step_announce(t, OP_WAIT, address, pc);
    lab_step_access(t, number, false);
    lab_step_access(t, queue, true);
    t->operand = expected;
    t->desired = deadline != 0 ? deadline - lab->run.now : 0;
    lab_sched_point(t);
    lab_granule *shadow = lab_memory_shadow(address);
    if (shadow != NULL)
        lab_memory_check(address, shadow, pc);
    uint32_t value = *(volatile uint32_t *)address;
    lab_step_make(t, value == expected ? 2 : 1, t->op.access);
    lab_atomic_observe(t, number);
    lab_report_event(OP_WAIT, address, 4, 0, value, expected, value != expected, pc);
    t->did_not_block = value != expected;
    if (value != expected)
        return true;
    if (lab->run.spurious != 0 && lab_explore_choose(2) == 1) {
        lab->run.spurious--;
        lab_report_event(OP_RESUME, address, 4, 0, 0, 0, true, pc);
        return true;
    }
    t->expected = expected;
    if (!lab_block_sleep(t, address, queue, deadline, pc)) {
        lab_step_make(t, 2, t->op.access);
        lab_report_event(OP_TIMEOUT, address, 4, 0, 0, 0, false, pc);
        return false;
    }
    while (t->interrupt_pending && !t->in_interrupt && lab_machine.interrupt != NULL) {
        /* the interrupt is a step of its own: another decision */
        lab_step_announce(t, OP_LOCAL, 0, pc);
        lab_sched_point(t);
        lab_step_make(t, 0, NULL);
    }
    return true;
}

bool lab_block_wait(uintptr_t address, uint32_t expected, uint64_t deadline, uintptr_t pc)
{
    bool woken = wait(address, expected, deadline, pc);

    lab_cycle_sweep();
    return woken;
}

/* In a step that wakes them: a timeout could come instead. */
static uint32_t find_waiters(uintptr_t address, lab_thread *waiting[MAX_THREADS])
{
    uint32_t waiters = 0;

    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        if (t->state != THREAD_BLOCKED || t->op.address != address)
            continue;
        waiting[waiters++] = t;
        if (t->deadline != 0)
            lab_dpor_instead(t->number);
    }
    return waiters;
}

uint32_t lab_block_wake_address(uintptr_t address, uint32_t count, uintptr_t pc)
{
    uint32_t woken = 0;
    lab_thread *t = lab->current;
    lab_thread *waiting[MAX_THREADS];

    if (!lab_sched_active()) {
        for (uint32_t i = 0; i < lab->run.thread_count; i++)
            if (lab->run.threads[i].state == THREAD_BLOCKED && lab->run.threads[i].op.address == address)
                lab_block_wake(&lab->run.threads[i]);
        return 0;
    }
    lab_step_announce(t, OP_WAKE, address, pc);
    lab_step_access(t, lab_cell_queue(address), true);
    lab_sched_point(t);
    uint32_t waiters = find_waiters(address, waiting);
    lab_access made = {t->op.access[0].cell, waiters != 0};
    lab_step_make(t, 1, &made);
    lab_report_event(OP_WAKE, address, 4, 0, waiters, count, false, pc);
    while (waiters != 0 && count-- != 0) {
        uint32_t index = lab_explore_choose(waiters);

        lab_block_wake(waiting[index]);
        waiting[index] = waiting[--waiters];
        woken++;
    }
    lab_cycle_sweep();
    return woken;
}

static void move(lab_thread *t, uintptr_t to)
{
    lab_step_announce(t, OP_TIMEOUT, to, t->op.pc);
    lab_step_access(t, lab_cell_queue(to), true);
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
}

bool lab_block_requeue(uintptr_t from, uintptr_t to, lab_requeue *how, uintptr_t pc)
{
    lab_thread *t = lab->current;
    lab_thread *waiting[MAX_THREADS];
    uint32_t number = lab_cell_find(from, sizeof(uint32_t));

    if (!lab_sched_active())
        return !how->compares || *(volatile uint32_t *)from == how->expected;
    lab_step_announce(t, OP_WAKE, from, pc);
    lab_step_access(t, number, false);
    lab_step_access(t, lab_cell_queue(from), true);
    lab_step_access(t, lab_cell_queue(to), true);
    lab_sched_point(t);
    if (how->compares && *(volatile uint32_t *)from != how->expected) {
        lab_step_make(t, 1, t->op.access);
        lab_atomic_observe(t, number);
        return false;
    }
    uint32_t waiters = find_waiters(from, waiting);
    lab_access made[] = {t->op.access[0], {t->op.access[1].cell, waiters != 0}, {t->op.access[2].cell, waiters > how->wakes}};
    lab_step_make(t, 3, made);
    lab_atomic_observe(t, number);
    lab_report_event(OP_WAKE, from, 4, 0, waiters, how->wakes, false, pc);
    for (how->woken = how->moved = 0; waiters != 0 && how->woken + how->moved < (uint64_t)how->wakes + how->moves;) {
        uint32_t index = lab_explore_choose(waiters);

        if (how->woken < how->wakes) {
            lab_block_wake(waiting[index]);
            how->woken++;
        } else {
            move(waiting[index], to);
            how->moved++;
        }
        waiting[index] = waiting[--waiters];
    }
    if (how->moved != 0)
        lab_report_call("its waiters now wait for", to, 0, false, pc);
    lab_cycle_sweep();
    return true;
}

void lab_block_interrupt(uint32_t number, uintptr_t pc)
{
    lab_thread *t = lab->current;
    lab_thread *target = &lab->run.threads[number];

    if (!lab_sched_active() || number >= lab->run.thread_count)
        return;
    lab_step_announce(t, OP_INTERRUPT, 0, pc);
    t->op.address = number;
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CONTEXT(number)), true);
    lab_sched_point(t);
    lab_states_see_interrupts();
    lab_vclock before = t->dep;
    lab_step_make(t, 1, t->op.access);
    lab_step_order_after(t, target->last_step, (int32_t)lab->run.steps - 1, &before);
    lab->steps[lab->run.steps - 1].dep = t->dep;
    target->last_interrupt = (int32_t)lab->run.steps - 1;
    lab_report_event(OP_INTERRUPT, number, 0, 0, 0, 0, false, pc);
    if (target->state != THREAD_DONE) {
        target->interrupt_pending = true;
        target->asleep = false;
    }
    lab_cycle_sweep();
}

uint64_t lab_block_clock(uintptr_t pc)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active())
        return lab->run.now;
    lab_step_announce(t, OP_CLOCK, 0, pc);
    lab_step_access(t, lab_cell_pseudo(PSEUDO_CLOCK), false);
    t->op.callers = lab_spin_callers(t);
    lab_sched_point(t);
    lab_step_make(t, 1, t->op.access);
    lab_spin_watch(t, lab_cell_pseudo(PSEUDO_CLOCK), 0, 0, -1, lab->run.now, pc);
    lab_cycle_sweep();
    return lab->run.now;
}
