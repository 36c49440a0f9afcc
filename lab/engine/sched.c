/*
 * sched.c: the scheduler. It runs on the stack of whoever calls it: there is no fiber of its own.
 *
 * A thread is not chosen while it cannot get anywhere:
 * 1. It is blocked. With a deadline it can always be chosen: then it times out, and virtual time moves on to it.
 * 2. It spins: it is about to repeat a read, at the same place, and nothing that it has read since it last wrote has
 *    changed. It is chosen again when somebody changes one of those variables. A loop may also end by itself, because
 *    it counts its turns: so the thread can be chosen at any time, and then turns, without others in between, until it
 *    does something else. If it has not after MAX_TURNS, that loop is known to be endless, and the search starts over.
 * 3. It gave way (HalLongSpin), and the others have not made enough steps since: more, the longer it has spun.
 * When nobody is left, those of 2 and 3 get another round, since a loop may give up after some time, and virtual time
 * passes. If nothing was changed in MAX_IDLE_ROUNDS of these, it is a livelock.
 */
#include "engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IDLE_ROUNDS     400
#define MAX_CALLERS         12
#define MAX_TURNS           300
#define MAX_LONELY_TIMEOUTS 64
#define EPILOGUE_TIMEOUTS   1
#define IDLE_TIME           10000              /* 1 ms */
#define FAR_AWAY            (60ull * 10000000) /* a minute */

lab_machine_routines lab_machine;
static jmp_buf main_failed;

const char *const lab_verdict_names[VERDICTS] = {
    [VERDICT_NONE] = "none",
    [VERDICT_ASSERTION] = "assertion",
    [VERDICT_BUGCHECK] = "bugcheck",
    [VERDICT_RACE] = "race",
    [VERDICT_DEADLOCK] = "deadlock",
    [VERDICT_LOST_WAKEUP] = "lost wakeup",
    [VERDICT_LIVELOCK] = "livelock",
    [VERDICT_DEAD_FRAME] = "dead frame",
    [VERDICT_FREED_MEMORY] = "freed memory",
    [VERDICT_WILD_ACCESS] = "wild access",
    [VERDICT_LEAK] = "leak",
    [VERDICT_CRASH] = "crash",
    [VERDICT_LINEARIZABILITY] = "not linearizable",
    [VERDICT_ENDLESS] = "endless",
    [VERDICT_UNSUPPORTED] = "unsupported",
};

/* Switching. */

static void swap_tls(uint8_t *from, const uint8_t *to)
{
    memcpy(from, lab->tls, lab->tls_size);
    memcpy(lab->tls, to, lab->tls_size);
}

static void switch_to(lab_thread *next)
{
    lab_thread *t = lab->current;

    if (t == next)
        return;
    swap_tls(t != NULL ? t->tls : lab->main_tls, next != NULL ? next->tls : lab->main_tls);
    lab->current = next;
    lab_fiber_switch(t != NULL ? &t->sp : &lab->main_sp, next != NULL ? next->sp : lab->main_sp);
}

void lab_sched_leave(lab_run_end end)
{
    lab->end = end;
    if (lab->current == NULL)
        longjmp(main_failed, 1);
    switch_to(NULL);
    __builtin_unreachable();
}

void lab_sched_fail(lab_verdict verdict, uintptr_t pc, const char *format, ...)
{
    va_list arguments;

    lab->verdict = verdict;
    lab->failure_pc = pc;
    lab->failure_thread = lab->current != NULL ? lab->current->number : MAX_THREADS;
    va_start(arguments, format);
    vsnprintf(lab->text, sizeof(lab->text), format, arguments);
    va_end(arguments);
    lab_sched_leave(RUN_FAILED);
}

/* Spin loops. */

static uint64_t current_value(const lab_watched *w)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)w->address, w->size < 8 ? w->size : 8);
    return value;
}

static bool is_unchanged(const lab_watched *w)
{
    return w->cell == lab_cell_pseudo(PSEUDO_CLOCK) ? w->value == lab->run.now : current_value(w) == w->value;
}

/* By the chain of frame pointers. */
uint64_t lab_sched_callers(lab_thread *t)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    uint64_t hash = 0;

    for (int depth = 0; depth < MAX_CALLERS; depth++) {
        uintptr_t offset = (uintptr_t)frame - (uintptr_t)t->stack;

        if (offset >= STACK_SIZE - 2 * sizeof(uintptr_t))
            break;
        hash = (hash ^ frame[1]) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
        frame = (const uintptr_t *)frame[0];
    }
    return hash;
}

/* Is the step that t announced the beginning of another turn of a loop in which nothing has changed? */
static bool repeats_itself(const lab_thread *t)
{
    uint32_t turns = 0;

    if (t->op.kind != OP_LOAD && t->op.kind != OP_CAS && t->op.kind != OP_RMW && t->op.kind != OP_CLOCK)
        return false;
    for (uint32_t i = t->watched_count; i-- != 0 && turns < lab->options.patience;) {
        const lab_watched *w = &t->watch[i];

        if (!is_unchanged(w))
            return false;
        if (w->pc == t->op.pc && w->cell == t->op.access[0].cell && w->callers == t->op.callers)
            turns++;
    }
    return turns == lab->options.patience && (t->op.kind == OP_CLOCK || !lab_atomic_would_write(t));
}

void lab_sched_watch(lab_thread *t, uint32_t number, uintptr_t address, size_t size, uint16_t stamp, uint64_t value,
                     uintptr_t pc)
{
    if (t->no_step)
        return;
    if (t->watched_count == MAX_WATCHED)
        t->watched_count = 0;
    t->watch[t->watched_count++] = (lab_watched){pc, address, number, stamp, (uint8_t)size, value, t->op.callers};
}

static uint64_t *find_endless(const lab_operation *op)
{
    uint64_t key = (op->callers ^ op->pc * 0x9E3779B97F4A7C15ull) | 1;
    uint32_t index = (uint32_t)(key >> 40) % MAX_ENDLESS;

    while (lab->endless[index] != 0 && lab->endless[index] != key)
        index = (index + 1) % MAX_ENDLESS;
    return &lab->endless[index];
}

static bool is_endless(const lab_operation *op)
{
    return *find_endless(op) != 0;
}

static void remember_endless(const lab_operation *op)
{
    if (lab->endless_count == MAX_ENDLESS / 2)
        return;
    lab->endless_count++;
    *find_endless(op) = (op->callers ^ op->pc * 0x9E3779B97F4A7C15ull) | 1;
    lab->cells_changed = true;
}

/* Before a step is announced to the scheduler: is it one? And can the thread get anywhere with it? */
static void look_for_spin(lab_thread *t)
{
    bool repeats = repeats_itself(t);

    t->no_step = false;
    if (t->gives_up && repeats && t->turns < MAX_TURNS) {
        t->turns++;
        t->no_step = true;
        return;
    }
    if (t->gives_up && repeats)
        remember_endless(&t->op);
    t->gives_up = false;
    t->asleep = repeats;
    t->may_give_up = repeats && !is_endless(&t->op);
}

/* Somebody has changed that variable. */
void lab_sched_changed(uint32_t number)
{
    lab->run.idle_rounds = 0;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        for (uint32_t w = 0; t->asleep && w < t->watched_count; w++) {
            if (t->watch[w].cell == number) {
                t->asleep = false;
                if (!lab->options.weak)
                    t->watched_count = 0;
            }
        }
    }
}

void lab_sched_yield_hint(lab_thread *t, uint32_t steps)
{
    if (t->gives_up)
        return;
    lab->run.yielders += t->yielded == 0;
    t->yielded = steps;
}

/* Nobody can go on: those that spin or gave way get another turn. */
static bool stir(void)
{
    bool any = false;

    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        if (t->state == THREAD_READY && (t->asleep || t->yielded != 0)) {
            any = true;
            t->asleep = false;
            t->yielded = 0;
            t->watched_count = 0;
        }
    }
    lab->run.yielders = 0;
    lab->run.now += any ? IDLE_TIME : 0;
    return any;
}

/* The end, good or bad. */

static bool all_done(void)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (!lab->run.threads[i].service && lab->run.threads[i].state != THREAD_DONE)
            return false;
    return true;
}

static size_t describe_thread(lab_thread *t, char *buffer, size_t size, bool *satisfied)
{
    char place[256], symbol[256], wait[512] = "";
    uint32_t value = t->op.address != 0 ? *(volatile uint32_t *)t->op.address : 0;

    lab_report_place(t->op.pc, place, sizeof(place));
    if (t->state == THREAD_JOINING)
        return (size_t)snprintf(buffer, size, "\n  %c waits for the end of %c, at %s", 'a' + t->number, 'a' + t->joined,
                                place);
    if (t->state == THREAD_READY)
        return (size_t)snprintf(buffer, size, "\n  %c spins at %s", 'a' + t->number, place);
    if (t->state != THREAD_BLOCKED)
        return 0;
    lab_report_symbol(t->op.address, symbol, sizeof(symbol));
    if (lab_machine.describe_wait == NULL || !lab_machine.describe_wait(t, wait, sizeof(wait), satisfied)) {
        *satisfied = !t->service && value != t->expected;
    }
    return (size_t)snprintf(buffer, size, "\n  %c%s sleeps on %s (%u, it is %u)%s%s, at %s", 'a' + t->number,
                            t->service ? " (service)" : "", symbol, t->expected, value, wait[0] != 0 ? ": " : "", wait,
                            place);
}

static void fail_stuck(lab_verdict verdict)
{
    char text[1800] = "";
    size_t used = 0;
    bool lost = false;

    for (uint32_t i = 0; i < lab->run.thread_count && used < sizeof(text) - 600; i++) {
        lab_thread *t = &lab->run.threads[i];
        bool satisfied = false;

        used += describe_thread(t, text + used, sizeof(text) - used, &satisfied);
        lost |= satisfied && t->state == THREAD_BLOCKED;
    }
    if (lost && verdict == VERDICT_DEADLOCK)
        verdict = VERDICT_LOST_WAKEUP;
    lab_sched_fail(verdict, 0, "nobody can go on%s%s",
                   verdict == VERDICT_LOST_WAKEUP ? ", though what one of them sleeps for has happened" : "", text);
}

/*
 * A few timeouts of a schedule come as early as they can, in any order, unless they are far away. The others come when
 * nobody else can run, the earliest first: time passes when everybody waits for it.
 */
static uint16_t enabled_threads(uint16_t *earliest)
{
    uint16_t ready = 0, timed = 0;
    uint64_t first = UINT64_MAX;

    *earliest = 0;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *t = &lab->run.threads[i];

        ready |= (uint16_t)((t->state == THREAD_READY && (!t->asleep || t->may_give_up) && t->yielded == 0) << i);
        ready |= (uint16_t)((t->state == THREAD_BLOCKED && t->interrupt_pending) << i);
        if (t->state != THREAD_BLOCKED || t->deadline == 0)
            continue;
        timed |= (uint16_t)((t->deadline < lab->run.now + FAR_AWAY) << i);
        if (t->deadline < first)
            *earliest = 0;
        first = t->deadline < first ? t->deadline : first;
        *earliest |= (uint16_t)((t->deadline == first) << i);
    }
    return lab->run.timeouts != 0 ? ready | timed : ready;
}

/* Also one that spins or gave way. */
static bool somebody_is_ready(void)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].state == THREAD_READY)
            return true;
    return false;
}

static void time_out(lab_thread *t)
{
    t->timed_out = true;
    if (somebody_is_ready() && lab->run.timeouts != 0)
        lab->run.timeouts--;
    else if (++lab->run.lonely_timeouts == MAX_LONELY_TIMEOUTS)
        fail_stuck(VERDICT_LIVELOCK);
}

/*
 * Everybody has ended but threads of the library's own. They run on until they sleep, and get a few timeouts: what they
 * would do next must be known, or the search could not tell whether it could have come earlier.
 */
static void finish_if_quiet(uint16_t enabled)
{
    bool ready = false;

    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        ready |= lab->run.threads[i].state == THREAD_READY && ((enabled >> i & 1) || lab->run.threads[i].yielded != 0);
    if (!ready && (enabled == 0 || lab->run.epilogue++ == EPILOGUE_TIMEOUTS))
        lab_sched_leave(RUN_FINISHED);
}

/* Nobody can run: by turns, those that spin get another round, and the next timeout comes. */
static uint16_t next_round(uint16_t earliest)
{
    bool turn = lab->run.stirred && earliest != 0;

    lab->run.stirred = !turn;
    if (turn)
        return earliest;
    if (!stir()) {
        if (earliest != 0)
            return earliest;
        if (lab->scenario->Flags & LAB_MAY_BLOCK)
            lab_sched_leave(RUN_FINISHED);
        fail_stuck(VERDICT_DEADLOCK);
    }
    if (++lab->run.idle_rounds == MAX_IDLE_ROUNDS)
        fail_stuck(VERDICT_LIVELOCK);
    return enabled_threads(&earliest);
}

/* The one who makes the next step. */
static lab_thread *next_thread(void)
{
    uint16_t earliest, enabled = enabled_threads(&earliest);

    if (lab->run.ended)
        finish_if_quiet(enabled | earliest);
    if (enabled == 0)
        enabled = next_round(earliest);
    lab_thread *next = &lab->run.threads[lab_explore_pick(enabled)];
    if (next->state == THREAD_BLOCKED) {
        if (!next->interrupt_pending)
            time_out(next);
        next->state = THREAD_READY;
    }
    return next;
}

static void check_invariant(void)
{
    if (lab->scenario->Invariant == NULL)
        return;
    lab->quiet = true;
    lab->scenario->Invariant();
    lab->quiet = false;
}

static void deliver_interrupt(lab_thread *t)
{
    lab_operation op = t->op;

    t->interrupt_pending = false;
    t->in_interrupt = true;
    t->op.kind = OP_LOCAL;
    t->op.accesses = 0;
    lab_sched_step(t, 0, NULL);
    lab_report_event(OP_INTERRUPT, 0, 0, 0, 0, 0, true, op.pc);
    lab_machine.interrupt();
    t->in_interrupt = false;
    t->op = op;
}

/* Has a frame ended that others have accessed? */
static void check_frames(lab_thread *t)
{
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

    if (t->lent_count != 0 && t->lowest_lent < sp)
        lab_race_frames(t, sp, t->op.pc);
}

void lab_sched_point(lab_thread *t)
{
    check_invariant();
    check_frames(t);
    for (;;) {
        if (lab->run.steps >= lab->options.max_steps) {
            if (lab->options.strict)
                lab_sched_fail(VERDICT_ENDLESS, t->op.pc, "no end after %u steps", lab->run.steps);
            lab_sched_leave(RUN_TRUNCATED);
        }
        look_for_spin(t);
        if (t->no_step)
            return;
        switch_to(next_thread());
        if (t->asleep) {
            t->asleep = false;
            t->gives_up = true;
            t->turns = 0;
        }
        if (!t->interrupt_pending || t->in_interrupt || lab_machine.interrupt == NULL)
            return;
        if (lab->run.deferred != 0 && lab_sched_choose(2) == 1) {
            lab->run.deferred--;
            return;
        }
        deliver_interrupt(t);
    }
}

/* Steps: their order, and which of them could have come the other way round. */

static bool happened_before(int32_t step_number, const lab_vclock *clock)
{
    const lab_step *s = &lab->steps[step_number];
    return clock->at[s->thread] >= s->ordinal;
}

static void order_after(lab_thread *t, int32_t earlier, int32_t own, const lab_vclock *before)
{
    if (earlier == NO_STEP || lab->steps[earlier].thread == t->number)
        return;
    if (!happened_before(earlier, before) && lab->active == STRATEGY_DPOR)
        lab_explore_race(earlier, own, before);
    lab_clock_join(&t->dep, &lab->steps[earlier].dep);
}

static void order_access(lab_thread *t, lab_access a, int32_t own, const lab_vclock *before)
{
    lab_cell *c = lab_cell_of(a.cell);

    order_after(t, c->last_write, own, before);
    if (a.write) {
        for (uint32_t readers = c->readers; readers != 0; readers &= readers - 1)
            order_after(t, c->read[__builtin_ctz(readers)], own, before);
        c->last_write = own;
        c->readers = 0;
    } else {
        c->readers |= 1u << t->number;
        c->read[t->number] = own;
    }
    if (!(c->users >> t->number & 1) || (a.write && !c->written)) {
        bool shared = lab_cell_is_shared(c);
        c->users |= 1u << t->number;
        c->written |= a.write;
        lab->shared_changes += lab_cell_is_shared(c) && !shared;
    }
}

void lab_sched_step(lab_thread *t, int count, const lab_access *accesses)
{
    if (t->no_step)
        return;
    int32_t own = (int32_t)lab->run.steps++;
    lab_step *s = &lab->steps[own];
    lab_vclock before = t->dep;

    s->thread = t->number;
    s->ordinal = ++t->steps;
    s->node = lab->last_node;
    s->op = t->op;
    s->op.accesses = (uint8_t)count;
    for (int i = 0; i < count; i++)
        s->op.access[i] = accesses[i];
    lab->nodes[lab->last_node].step = own;
    t->dep.at[t->number] = t->steps;
    for (int i = 0; i < count; i++)
        if (accesses[i].cell != NO_CELL)
            order_access(t, accesses[i], own, &before);
    order_after(t, t->last_interrupt, own, &before);
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

uint32_t lab_sched_choose(uint32_t count)
{
    return count > 1 ? lab_explore_choose(count) : 0;
}

/* Threads. */

static void announce(lab_thread *t, lab_op_kind kind, uintptr_t address, uintptr_t pc)
{
    t->op = (lab_operation){.kind = (uint8_t)kind, .address = address, .pc = pc};
}

static void announce_access(lab_thread *t, uint32_t number, bool write)
{
    t->op.access[t->op.accesses++] = (lab_access){number, write};
}

/* A step that touches nothing. */
static void local_step(lab_thread *t, lab_op_kind kind, uintptr_t pc)
{
    announce(t, kind, 0, pc);
    lab_sched_point(t);
    lab_sched_step(t, 0, NULL);
}

static void finish_thread(lab_thread *t)
{
    lab_race_frames(t, (uintptr_t)t->stack + STACK_SIZE, t->op.pc);
    t->state = THREAD_DONE;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *other = &lab->run.threads[i];
        if (other->state == THREAD_JOINING && other->joined == t->number)
            lab_sched_wake(other);
    }
    check_invariant();
    lab->run.ended = all_done();
    switch_to(next_thread());
    __builtin_unreachable();
}

void lab_sched_terminate(void)
{
    lab_thread *t = lab->current;

    local_step(t, OP_END, 0);
    lab_report_event(OP_END, 0, 0, 0, 0, 0, false, 0);
    finish_thread(t);
    __builtin_unreachable();
}

void lab_sched_exit(void)
{
    if (lab_machine.thread_exit != NULL)
        lab_machine.thread_exit();
    lab_sched_terminate();
}

static void adopt_quietly(void)
{
    bool quiet = lab->quiet;

    lab->quiet = true;
    if (lab_machine.adopt != NULL)
        lab_machine.adopt();
    lab->quiet = quiet;
}

static void run_fiber(void)
{
    lab_thread *t = lab->current;

    if (!lab->running) { /* before the first schedule: up to the first step */
        adopt_quietly();
        switch_to(NULL);
    }
    lab_sched_step(t, 0, NULL);
    if (t->adopt && lab_machine.adopt != NULL)
        adopt_quietly();
    lab_report_event(OP_START, 0, 0, 0, 0, 0, false, t->entry + 1);
    t->routine(t->argument);
    if (t->runs_exit || (lab->scenario->Flags & LAB_RUN_EXIT) != 0)
        lab_sched_exit();
    lab_sched_terminate();
}

static lab_thread *new_thread(void (*routine)(void *), void *argument, const char *name, bool service)
{
    if (lab->run.thread_count == MAX_THREADS)
        return NULL;
    lab_thread *t = &lab->run.threads[lab->run.thread_count];
    memset(t, 0, offsetof(lab_thread, watch));
    memset(t->tls, 0, lab->tls_size);
    memcpy(t->tls, lab->tls_image, lab->tls_image_size);
    t->number = (uint8_t)lab->run.thread_count++;
    t->stack = lab->stacks + t->number * (size_t)STACK_SIZE;
    t->state = THREAD_READY;
    t->service = service;
    t->name = name;
    t->routine = routine;
    t->argument = argument;
    t->last_step = NO_STEP;
    t->last_interrupt = NO_STEP;
    t->sync.at[t->number] = 1;
    t->entry = (uintptr_t)routine;
    lab_fiber_prepare(t, run_fiber);
    return t;
}

lab_thread *lab_sched_spawn(void (*routine)(void *), void *argument, const char *name, bool service)
{
    lab_thread *parent = lab->current;

    if (!lab_sched_active()) {
        lab_thread *t = new_thread(routine, argument, name, service);
        return t;
    }
    local_step(parent, OP_SPAWN, (uintptr_t)routine);
    lab_thread *t = new_thread(routine, argument, name, service);
    if (t == NULL)
        return NULL;
    lab_clock_join(&t->sync, &parent->sync);
    parent->sync.at[parent->number]++;
    t->dep = parent->dep;
    if (lab->options.weak)
        memcpy(lab->thread_view[t->number], lab->thread_view[parent->number], lab->cell_count * sizeof(uint16_t));
    lab_report_event(OP_SPAWN, 0, 0, 0, 0, t->number, false, (uintptr_t)routine);
    return t;
}

static void call_plain(void *routine)
{
    void (*function)(void) = (void (*)(void))routine;
    function();
}

void lab_sched_start_threads(void)
{
    for (uint32_t i = 0; i < LAB_MAXIMUM_THREADS && lab->scenario->Threads[i] != NULL; i++) {
        lab_thread *t = new_thread(call_plain, (void *)lab->scenario->Threads[i], NULL, false);
        t->entry = (uintptr_t)lab->scenario->Threads[i];
        switch_to(t);
    }
}

lab_run_end lab_sched_run(void)
{
    lab->generation++;
    lab_memory_restore();
    lab_atomic_begin();
    lab->node_count = 0;
    lab->last_node = -1;
    lab->given_next = 0;
    lab->event_count = 0;
    lab->printed_length = 0;
    lab->printed[0] = '\0';
    lab->verdict = VERDICT_NONE;
    lab->end = RUN_FINISHED;
    lab->running = true;
    if (setjmp(main_failed) == 0) {
        switch_to(next_thread());
        if (lab->end == RUN_FINISHED) {
            lab->quiet = true;
            if (lab->scenario->Finish != NULL)
                lab->scenario->Finish();
            if (lab->scenario->Flags & LAB_CHECK_LEAKS)
                lab_memory_report_leaks();
        }
    }
    lab->running = false;
    lab->quiet = false;
    return lab->end;
}

/* Blocking. */

void lab_sched_wake(lab_thread *t)
{
    t->state = THREAD_READY;
    t->timed_out = false;
    if (lab->current != NULL)
        lab_clock_join(&t->dep, &lab->current->dep);
    announce(t, OP_RESUME, t->op.address, t->op.pc);
}

/* Until somebody wakes it, or it is chosen to time out. */
void lab_sched_block(lab_thread *t)
{
    t->state = THREAD_BLOCKED;
    t->timed_out = false;
    t->watched_count = 0;
    check_invariant();
    switch_to(next_thread());
}

static bool is_stuck_while_quiet(uintptr_t address, uint32_t expected)
{
    return *(volatile uint32_t *)address == expected;
}

bool lab_sched_wait(uintptr_t address, uint32_t expected, uint64_t deadline, uintptr_t pc)
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
    announce(t, OP_WAIT, address, pc);
    announce_access(t, number, false);
    announce_access(t, queue, true);
    lab_sched_point(t);
    lab_granule *shadow = lab_memory_shadow(address);
    if (shadow != NULL)
        lab_memory_check(address, shadow, pc);
    uint32_t value = *(volatile uint32_t *)address;
    lab_sched_step(t, value == expected ? 2 : 1, t->op.access);
    lab_report_event(OP_WAIT, address, 4, 0, value, expected, value != expected, pc);
    if (value != expected)
        return true;
    if (lab->run.spurious != 0 && lab_sched_choose(2) == 1) {
        lab->run.spurious--;
        lab_report_event(OP_RESUME, address, 4, 0, 0, 0, true, pc);
        return true;
    }
    t->expected = expected;
    t->deadline = deadline;
    announce(t, OP_TIMEOUT, address, pc);
    announce_access(t, queue, true);
    announce_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    lab_sched_block(t);
    t->deadline = 0;
    if (t->timed_out) {
        lab_sched_step(t, 2, t->op.access);
        if (deadline > lab->run.now) {
            lab->run.now = deadline;
            lab_sched_changed(lab_cell_pseudo(PSEUDO_CLOCK));
        }
        lab_report_event(OP_TIMEOUT, address, 4, 0, 0, 0, false, pc);
        return false;
    }
    lab_sched_step(t, t->op.kind == OP_TIMEOUT ? 1 : 0, t->op.access); /* interrupted, or woken */
    while (t->interrupt_pending && !t->in_interrupt && lab_machine.interrupt != NULL) {
        /* the interrupt is a step of its own: one more decision */
        announce(t, OP_LOCAL, 0, pc);
        lab_sched_point(t);
        lab_sched_step(t, 0, NULL);
    }
    return true;
}

void lab_sched_wake_address(uintptr_t address, uint32_t count, uintptr_t pc)
{
    lab_thread *t = lab->current;
    lab_thread *waiting[MAX_THREADS];
    uint32_t waiters = 0;

    if (!lab_sched_active()) {
        for (uint32_t i = 0; i < lab->run.thread_count; i++)
            if (lab->run.threads[i].state == THREAD_BLOCKED && lab->run.threads[i].op.address == address)
                lab_sched_wake(&lab->run.threads[i]);
        return;
    }
    announce(t, OP_WAKE, address, pc);
    announce_access(t, lab_cell_queue(address), true);
    lab_sched_point(t);
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].state == THREAD_BLOCKED && lab->run.threads[i].op.address == address)
            waiting[waiters++] = &lab->run.threads[i];
    for (uint32_t i = 0; i < waiters; i++)
        if (waiting[i]->deadline != 0)
            lab_explore_instead(waiting[i]->number);
    lab_access made = {t->op.access[0].cell, waiters != 0};
    lab_sched_step(t, 1, &made);
    lab_report_event(OP_WAKE, address, 4, 0, waiters, count, false, pc);
    while (waiters != 0 && count-- != 0) {
        uint32_t index = lab_sched_choose(waiters);

        lab_sched_wake(waiting[index]);
        waiting[index] = waiting[--waiters];
    }
}

void lab_sched_interrupt(uint32_t number, uintptr_t pc)
{
    lab_thread *t = lab->current;
    lab_thread *target = &lab->run.threads[number];

    if (!lab_sched_active() || number >= lab->run.thread_count)
        return;
    announce(t, OP_INTERRUPT, 0, pc);
    t->op.address = number;
    announce_access(t, lab_cell_pseudo(PSEUDO_CONTEXT(number)), true);
    lab_sched_point(t);
    lab_vclock before = t->dep;
    lab_sched_step(t, 1, t->op.access);
    order_after(t, target->last_step, (int32_t)lab->run.steps - 1, &before);
    lab->steps[lab->run.steps - 1].dep = t->dep;
    target->last_interrupt = (int32_t)lab->run.steps - 1;
    lab_report_event(OP_INTERRUPT, number, 0, 0, 0, 0, false, pc);
    if (target->state != THREAD_DONE) {
        target->interrupt_pending = true;
        target->asleep = false;
    }
}

uint64_t lab_sched_clock(uintptr_t pc)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active())
        return lab->run.now;
    announce(t, OP_CLOCK, 0, pc);
    announce_access(t, lab_cell_pseudo(PSEUDO_CLOCK), false);
    t->op.callers = lab_sched_callers(t);
    lab_sched_point(t);
    lab_sched_step(t, 1, t->op.access);
    lab_sched_watch(t, lab_cell_pseudo(PSEUDO_CLOCK), 0, 0, 0, lab->run.now, pc);
    return lab->run.now;
}

/* What a test may call. */

void LabFail(const char *text_verdict, const char *text, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    lab_verdict found = VERDICT_ASSERTION;

    for (int i = 1; i < VERDICTS; i++)
        if (strcmp(lab_verdict_names[i], text_verdict) == 0)
            found = (lab_verdict)i;
    lab_sched_fail(found, (uintptr_t)__builtin_return_address(0), "%s (%s:%d)", text, slash != NULL ? slash + 1 : file,
                   line);
}

unsigned LabChoose(unsigned count)
{
    if (!lab_sched_active())
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "LabChoose outside of a thread");
    local_step(lab->current, OP_LOCAL, (uintptr_t)__builtin_return_address(0));
    uint32_t chosen = lab_sched_choose(count);
    lab_report_event(OP_LOCAL, 0, 0, 0, count, chosen, false, (uintptr_t)__builtin_return_address(0));
    return chosen;
}

unsigned LabSpawn(void (*routine)(void *), void *argument)
{
    lab_thread *t = lab_sched_spawn(routine, argument, NULL, false);

    if (t == NULL)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "more than %d threads", MAX_THREADS);
    t->adopt = true;
    return t->number;
}

void LabJoin(unsigned number)
{
    lab_thread *t = lab->current;
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    lab_thread *target = &lab->run.threads[number];

    local_step(t, OP_JOIN, pc);
    if (target->state != THREAD_DONE) {
        t->joined = (uint8_t)number;
        t->state = THREAD_JOINING;
        announce(t, OP_JOIN, 0, pc);
        switch_to(next_thread());
        lab_sched_step(t, 0, NULL);
    }
    lab_clock_join(&t->sync, &target->sync);
    lab_clock_join(&t->dep, &target->dep);
}

void LabExitThread(void)
{
    lab_sched_exit();
}

unsigned LabCurrentThread(void)
{
    return lab->current != NULL ? lab->current->number : MAX_THREADS;
}

void LabYield(void)
{
    if (!lab_sched_active())
        return;
    local_step(lab->current, OP_LOCAL, (uintptr_t)__builtin_return_address(0));
}

void LabAdvanceTime(uint64_t time)
{
    lab_thread *t = lab->current;

    if (!lab_sched_active()) {
        lab->run.now += time;
        return;
    }
    announce(t, OP_CLOCK, 0, (uintptr_t)__builtin_return_address(0));
    announce_access(t, lab_cell_pseudo(PSEUDO_CLOCK), true);
    lab_sched_point(t);
    lab_sched_step(t, 1, t->op.access);
    lab->run.now += time;
    lab_sched_changed(lab_cell_pseudo(PSEUDO_CLOCK));
}

void *LabAllocate(size_t size)
{
    return lab_memory_allocate(size, 16);
}

void LabFree(void *memory)
{
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);

    if (!lab_memory_free(memory, pc))
        lab_sched_fail(VERDICT_FREED_MEMORY, pc, "%p freed twice, or never allocated", memory);
}

void LabWaitOnWord(volatile uint32_t *address, uint32_t expected)
{
    lab_sched_wait((uintptr_t)address, expected, 0, (uintptr_t)__builtin_return_address(0));
}

void LabWakeWord(volatile uint32_t *address, unsigned count)
{
    lab_sched_wake_address((uintptr_t)address, count, (uintptr_t)__builtin_return_address(0));
}
