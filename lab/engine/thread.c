/* thread.c: the threads of a scenario. Their number is also that of their stack. */
#include "engine.h"

#include "../posix/program.h"

#include <string.h>

static bool all_done(void)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (!lab->run.threads[i].service && lab->run.threads[i].state != THREAD_DONE)
            return false;
    return true;
}

static void finish_thread(lab_thread *t)
{
    lab_race_frames(t, (uintptr_t)t->stack + STACK_SIZE, t->op.pc);
    t->state = THREAD_DONE;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *other = &lab->run.threads[i];
        if (other->state == THREAD_JOINING && other->joined == t->number)
            lab_block_wake(other);
    }
    lab_sched_check_invariant();
    lab->run.ended = all_done();
    lab_sched_reschedule();
    __builtin_unreachable();
}

uint32_t lab_thread_end_cell(const lab_thread *t)
{
    return lab_cell_queue((uintptr_t)t);
}

void lab_thread_terminate(void)
{
    lab_thread *t = lab->current;

    lab_step_announce(t, OP_END, 0, 0);
    lab_step_access(t, lab_thread_end_cell(t), true);
    lab_sched_point(t);
    lab_step_make(t, 1, t->op.access);
    lab_report_event(OP_END, 0, 0, 0, 0, 0, false, 0);
    finish_thread(t);
    __builtin_unreachable();
}

void lab_thread_exit(void)
{
    if (lab_machine.thread_exit != NULL)
        lab_machine.thread_exit();
    lab_thread_terminate();
}

bool lab_thread_dies(lab_thread *t)
{
    if (lab->run.deaths == 0 || t->in_interrupt || lab_cycle_place(t) != t->op.pc || lab_explore_choose(2) == 0)
        return false;
    lab->run.deaths--;
    lab_report_event(OP_END, 0, 0, 0, 0, 0, true, t->op.pc);
    t->op.kind = OP_LOCAL;
    t->op.accesses = 0;
    lab_step_make(t, 0, NULL);
    return true;
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
        lab_sched_switch(NULL);
    }
    lab_step_make(t, 0, NULL);
    if (t->adopt && lab_machine.adopt != NULL)
        adopt_quietly();
    lab_report_event(OP_START, 0, 0, 0, 0, 0, false, t->entry + 1);
    t->base_frame = (uintptr_t)__builtin_frame_address(0);
    t->has_own_function = t->from_table;
    if (t->from_table)
        ((void (*)(void))t->entry)();
    else
        t->routine(t->argument);
    if (t->runs_exit || (lab->scenario->Flags & LAB_RUN_EXIT) != 0)
        lab_thread_exit();
    lab_thread_terminate();
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
    t->last_begin = NO_STEP;
    t->last_return = NO_STEP;
    t->last_event = -1;
    t->sync.at[t->number] = 1;
    t->entry = (uintptr_t)routine;
    lab_fiber_prepare(t, run_fiber);
    return t;
}

void lab_thread_begin_own_function(const void *frame)
{
    lab->current->base_frame = (uintptr_t)frame;
    lab->current->has_own_function = true;
}

lab_thread *lab_thread_spawn(void (*routine)(void *), void *argument, const char *name, bool service)
{
    lab_thread *parent = lab->current;

    if (!lab_sched_active()) {
        lab_thread *t = new_thread(routine, argument, name, service);
        return t;
    }
    lab_step_local(parent, OP_SPAWN, (uintptr_t)routine);
    lab_thread *t = new_thread(routine, argument, name, service);
    if (t == NULL)
        return NULL;
    lab_clock_join(&t->sync, &parent->sync);
    parent->sync.at[parent->number]++;
    lab_step_wakes(parent, t);
    lab_clock_join(&t->beyond, &parent->beyond);
    lab_report_event(OP_SPAWN, 0, 0, 0, 0, t->number, false, (uintptr_t)routine);
    return t;
}

void lab_thread_start_all(void)
{
    if (lab->is_program) {
        lab_thread *t = new_thread(lab_program_run, NULL, NULL, false);

        t->entry = lab_program_entry();
        lab_sched_switch(t);
        return;
    }
    for (uint32_t i = 0; i < LAB_MAXIMUM_THREADS && lab->scenario->Threads[i] != NULL; i++) {
        lab_thread *t = new_thread(NULL, NULL, NULL, false);

        t->from_table = true;
        t->entry = (uintptr_t)lab->scenario->Threads[i];
        lab_sched_switch(t);
    }
}
