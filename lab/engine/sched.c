/*
 * sched.c: which thread makes the next step. The scheduler runs on the stack of its caller; it has no fiber of its own.
 *
 * A thread is not chosen while it cannot make progress:
 * 1. It is blocked. With a deadline it can always be chosen: then it times out, and virtual time advances to the
 *    deadline.
 * 2. It spins, and nothing that it reads has changed (spin.c).
 * 3. It yielded (HalGiveWay), and the others have not made enough steps since: more, the longer it has spun.
 * When no thread is left, those of 2 and 3 get another round, because a loop may give up after some time, and virtual
 * time advances. If nothing has changed after MAX_IDLE_ROUNDS such rounds, it is a livelock.
 */
#include "engine.h"

#include "../posix/calls.h"
#include "../posix/program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_IDLE_ROUNDS     400
#define MAX_LONELY_TIMEOUTS 64
#define EPILOGUE_TIMEOUTS   1
#define FAR_AWAY            (60ull * 10000000) /* a minute */

lab_machine_routines lab_machine;

const char *const lab_verdict_names[VERDICTS] = {
    [VERDICT_NONE] = "none",
    [VERDICT_ASSERTION] = "assertion",
    [VERDICT_BUGCHECK] = "bugcheck",
    [VERDICT_RACE] = "race",
    [VERDICT_DEADLOCK] = "deadlock",
    [VERDICT_LOST_WAKEUP] = "lost wakeup",
    [VERDICT_LIVELOCK] = "livelock",
    [VERDICT_STARVATION] = "starvation",
    [VERDICT_DEAD_FRAME] = "dead frame",
    [VERDICT_FREED_MEMORY] = "freed memory",
    [VERDICT_WILD_ACCESS] = "wild access",
    [VERDICT_LEAK] = "leak",
    [VERDICT_CRASH] = "crash",
    [VERDICT_LINEARIZABILITY] = "not linearizable",
    [VERDICT_ENDLESS] = "endless",
    [VERDICT_UNSUPPORTED] = "unsupported",
    [VERDICT_MISUSE] = "misuse",
    [VERDICT_EXIT] = "exit status",
};

/* Switching. */

static void swap_tls(uint8_t *from, const uint8_t *to)
{
    memcpy(from, lab->tls, lab->tls_size);
    memcpy(lab->tls, to, lab->tls_size);
}

void lab_sched_switch(lab_thread *next)
{
    lab_thread *t = lab->current;

    if (t == next)
        return;
    if (t != NULL)
        t->error = errno;
    swap_tls(t != NULL ? t->tls : lab->main_tls, next != NULL ? next->tls : lab->main_tls);
    lab->current = next;
    lab_fiber_switch(t != NULL ? &t->sp : &lab->main_sp, next != NULL ? next->sp : lab->main_sp);
    if (t != NULL)
        errno = t->error;
}

void lab_sched_leave(lab_run_end end)
{
    lab->end = end;
    if (lab->current == NULL)
        longjmp(lab->main_failed, 1);
    lab_sched_switch(NULL);
    __builtin_unreachable();
}

void lab_sched_fail(lab_verdict verdict, uintptr_t pc, const char *format, ...)
{
    va_list arguments;

    lab->failing = true;
    lab->verdict = verdict;
    lab->failure_pc = pc;
    lab->failure_thread = lab->current != NULL ? lab->current->number : MAX_THREADS;
    if (lab->known_callers != NULL)
        memcpy(lab->failure_callers, lab->known_callers, sizeof(lab->failure_callers));
    else
        lab_report_callers(lab->failure_callers, pc != 0 ? pc : 1);
    lab->known_callers = NULL;
    va_start(arguments, format);
    vsnprintf(lab->text, sizeof(lab->text), format, arguments);
    va_end(arguments);
    lab->failing = false;
    lab_sched_leave(RUN_FAILED);
}

/* Where it waits: it takes the interrupt before anything else. */
static bool takes_interrupt(const lab_thread *t)
{
    return t->interrupt_pending && !t->in_interrupt;
}

/*
 * A few timeouts of a schedule come as early as they can, in any order, unless they are far away. The others come when
 * no other thread can run, the earliest first: time passes when all threads wait for it.
 */
static uint16_t enabled_threads(uint16_t *earliest)
{
    uint16_t ready = 0, timed = 0;
    uint64_t first = UINT64_MAX;

    *earliest = 0;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *t = &lab->run.threads[i];

        bool closed = lab_gate_is_closed(t), interrupted = takes_interrupt(t);
        ready |= (uint16_t)((t->state == THREAD_READY && (!t->asleep || t->may_give_up) && t->yielded == 0 &&
                             (!closed || interrupted)) << i);
        ready |= (uint16_t)((t->state == THREAD_BLOCKED && interrupted) << i);
        if ((t->state != THREAD_BLOCKED && !closed) || t->deadline == 0)
            continue;
        timed |= (uint16_t)((t->deadline < lab->run.now + FAR_AWAY) << i);
        if (t->deadline < first)
            *earliest = 0;
        first = t->deadline < first ? t->deadline : first;
        *earliest |= (uint16_t)((t->deadline == first) << i);
    }
    if (lab->run.timeouts == 0 && !lab->run.ended && (timed & ~(ready != 0 ? ready : *earliest)) != 0)
        lab_explore_cut(CUT_TIMEOUTS);
    return lab->run.timeouts != 0 ? ready | timed : ready;
}

/* Also a thread that spins or yielded. */
static bool somebody_is_ready(void)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].state == THREAD_READY && !lab_gate_is_closed(&lab->run.threads[i]))
            return true;
    return false;
}

/* The last timeout that may come early has come: the search never sees another one later, so each is tried instead. */
static void try_other_timeouts(const lab_thread *t)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (i != t->number && lab->run.threads[i].deadline != 0)
            lab_dpor_instead((uint8_t)i);
}

/* Early: other threads could run, or another timeout is due first. */
static void time_out(lab_thread *t, bool is_next)
{
    t->timed_out = true;
    if ((somebody_is_ready() || !is_next) && lab->run.timeouts != 0) {
        lab->run.timeouts -= lab->run.timeouts != UNLIMITED;
        if (lab->run.timeouts == 0)
            try_other_timeouts(t);
    } else if (++lab->run.lonely_timeouts == MAX_LONELY_TIMEOUTS)
        lab_stuck_fail(VERDICT_LIVELOCK);
}

/*
 * All threads have ended except the library's own. Those run on until they sleep, and get a few timeouts: the search
 * must know their next steps to tell whether these could have come earlier. One that seems to spin gets another turn
 * first, as in next_round: it may have yielded for a change that had come before it looked.
 */
static void finish_if_quiet(uint16_t enabled)
{
    bool ready = false;

    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        ready |= lab->run.threads[i].state == THREAD_READY && !lab_gate_is_closed(&lab->run.threads[i]) &&
                 ((enabled >> i & 1) || lab->run.threads[i].yielded != 0);
    if (!ready && enabled == 0 && lab->run.idle_rounds == 0 && somebody_is_ready())
        return;
    if (!ready && (enabled == 0 || lab->run.epilogue++ == EPILOGUE_TIMEOUTS))
        lab_sched_leave(RUN_FINISHED);
}

/* No thread can run: in turns, spinning threads get another round, and the next timeout comes. */
static uint16_t next_round(uint16_t earliest)
{
    bool turn = lab->run.stirred && earliest != 0;

    lab->run.stirred = !turn && earliest != 0;
    if (turn)
        return earliest;
    if (!lab_spin_stir()) {
        if (earliest != 0)
            return earliest;
        if (lab->scenario->Flags & LAB_MAY_BLOCK)
            lab_sched_leave(RUN_FINISHED);
        lab_stuck_fail(VERDICT_DEADLOCK);
    }
    if (++lab->run.idle_rounds == MAX_IDLE_ROUNDS)
        lab_stuck_fail(VERDICT_LIVELOCK);
    return enabled_threads(&earliest);
}

/* The thread that makes the next step. */
static lab_thread *next_thread(void)
{
    uint16_t earliest, enabled = enabled_threads(&earliest);

    if (lab->tracking)
        lab_cycle_note();
    if (lab->run.ended)
        finish_if_quiet(enabled | earliest);
    if (enabled == 0)
        enabled = next_round(earliest);
    lab_thread *next = &lab->run.threads[lab_explore_pick(enabled)];
    if (lab_gate_is_closed(next) && !takes_interrupt(next))
        time_out(next, earliest >> next->number & 1);
    if (next->state == THREAD_BLOCKED) {
        if (!takes_interrupt(next))
            time_out(next, earliest >> next->number & 1);
        next->state = THREAD_READY;
    }
    return next;
}

void lab_sched_check_invariant(void)
{
    if (lab->scenario->Invariant == NULL)
        return;
    lab->quiet = true;
    lab->scenario->Invariant();
    lab->quiet = false;
}

/* What the explorer has on the stack from here to the interrupted code is not part of the state: cycle.c. */
static __attribute__((noinline)) void run_handler(lab_thread *t)
{
    t->handler_frame = (uintptr_t)__builtin_frame_address(0);
    lab_machine.interrupt();
}

/* The interrupted step is made afterwards, as it was announced: the handler's own steps must not change what it writes. */
static void deliver_interrupt(lab_thread *t)
{
    lab_operation op = t->op;
    u128 operand = t->operand, desired = t->desired;
    uint8_t rmw = t->rmw;
    const lab_gate *gate = t->gate;
    uint64_t deadline = t->deadline;

    t->outer = lab_cycle_hash_step(t);
    t->outer_frame = t->frame;
    t->interrupt_pending = false;
    t->in_interrupt = true;
    t->gate = NULL;
    t->deadline = 0;
    t->op.kind = OP_LOCAL;
    t->op.accesses = 0;
    lab_step_make(t, 0, NULL);
    lab_report_event(OP_INTERRUPT, 0, 0, 0, 0, 0, true, op.pc);
    run_handler(t);
    t->in_interrupt = false;
    t->op = op;
    t->operand = operand;
    t->desired = desired;
    t->rmw = rmw;
    t->gate = gate;
    t->deadline = deadline;
}

/* Has a frame ended that other threads have accessed? */
static void check_frames(lab_thread *t)
{
    uintptr_t sp = t->lent_count != 0 ? lab_sched_program_sp(t, (uintptr_t)__builtin_frame_address(0)) : 0;

    if (t->lent_count != 0 && t->lowest_lent < sp)
        lab_race_frames(t, sp, t->op.pc);
}

/* A frame of the program may have ended where the explorer's frames are now. */
uintptr_t lab_sched_program_sp(const lab_thread *t, uintptr_t innermost)
{
    uintptr_t frame = innermost;

    while (t->op.pc != 0 && frame - (uintptr_t)t->stack < STACK_SIZE - 2 * sizeof(uintptr_t)) {
        const uintptr_t *words = (const uintptr_t *)frame;
        if (words[1] == t->op.pc)
            return frame + 2 * sizeof(uintptr_t);
        if (words[0] <= frame)
            break;
        frame = words[0];
    }
    return innermost;
}

void lab_sched_reschedule(void)
{
    lab_sched_switch(next_thread());
}

void lab_sched_too_long(void)
{
    if (lab->active == STRATEGY_REPLAY && lab->options.strict)
        lab_stuck_fail_endless();
    lab_sched_leave(RUN_TRUNCATED);
}

void lab_sched_point(lab_thread *t)
{
    lab_sched_check_invariant();
    check_frames(t);
    t->innermost = (uintptr_t)__builtin_frame_address(0);
    for (;;) {
        if (lab->run.steps >= lab->options.max_steps)
            lab_sched_too_long();
        lab_spin_look(t);
        if (t->no_step)
            return;
        lab_sched_reschedule();
        if (t->asleep) {
            t->asleep = false;
            t->gives_up = true;
            t->turns = 0;
        }
        if (t->mortal && lab_thread_dies(t)) {
            t->mortal = false;
            lab_thread_exit();
        }
        if (t->process != 0 && lab_process_is_killed(t))
            lab_process_kill(t);
        if (!t->interrupt_pending || t->in_interrupt || lab_machine.interrupt == NULL)
            return;
        if (lab->run.deferred == 0)
            lab_explore_cut(CUT_DEFERRALS);
        else if (!lab_gate_is_closed(t) && lab_explore_choose(2) == 1) {
            lab->run.deferred--;
            return;
        }
        deliver_interrupt(t);
    }
}

bool lab_sched_prepare(void (*setup)(void))
{
    lab->verdict = VERDICT_NONE;
    lab->preparing = true;
    if (setjmp(lab->main_failed) == 0)
        setup();
    lab->preparing = false;
    return lab->verdict == VERDICT_NONE;
}

static void begin_anew(void)
{
    lab_bookmarks_forget();
    lab->generation++;
    lab->touched_granule_count = 0;
    lab->touched_cell_count = 0;
    lab_memory_restore();
    lab->run.stale = lab_explore_stale();
    lab->node_count = 0;
    lab->last_node = -1;
    lab->given_next = 0;
    lab->event_count = 0;
    lab->printed_length = 0;
    lab->printed[0] = '\0';
    lab_cycle_begin();
}

/* Returns when the schedule is over. NULL: it begins. */
static void run_threads(lab_thread *next)
{
    if (next != NULL)
        lab_sched_switch(next);
    else
        lab_sched_reschedule();
    while (lab->end == RUN_PAUSED)
        lab_sched_switch(lab_bookmarks_save());
}

lab_run_end lab_sched_run(void)
{
    lab_program_mute();
    lab_thread *next = lab_bookmarks_return();
    if (next == NULL)
        begin_anew();
    lab->verdict = VERDICT_NONE;
    lab->cycle_found = false;
    lab->end = RUN_FINISHED;
    lab->running = true;
    lab_calls_watch(true);
    if (setjmp(lab->main_failed) == 0) {
        run_threads(next);
        if (lab->end == RUN_FINISHED) {
            lab->quiet = true;
            if (lab->scenario->Finish != NULL)
                lab->scenario->Finish();
            if (lab->scenario->Flags & LAB_CHECK_LEAKS)
                lab_memory_report_leaks();
        }
    }
    lab_calls_watch(false);
    lab->running = false;
    lab->quiet = false;
    return lab->end;
}
