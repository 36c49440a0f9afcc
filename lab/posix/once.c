/*
 * once.c: pthread_once_t, the guards of C++'s static variables, and pthread_barrier_t. This file is compiled with
 * -fexceptions: a routine that throws leaves the object as it was.
 */
#include "posix.h"

#include <stdio.h>
#include <string.h>

#define RUNS 1u
#define DONE 2u

typedef struct once_object {
    const volatile void *object;
    volatile uint8_t *state; /* 0, RUNS or DONE */
} once_object;

static bool is_open(const lab_thread *t)
{
    return *(volatile uint8_t *)(uintptr_t)t->operand != RUNS;
}

static void describe(const lab_thread *t, char *buffer, size_t size)
{
    snprintf(buffer, size, "waits for the initialization of $%lx$, which another thread runs", t->op.address);
}

static const lab_gate once_gate = {is_open, describe};

static bool is_over_before(const once_object *o, const lab_thread *t)
{
    const lab_cell *c = lab_cell_of(lab_posix_exit_cell(o->object));
    return c->last_write == NO_STEP || lab_step_happened_before(c->last_write, &t->dep);
}

/* TRUE: the caller runs the routine. */
static bool begin(const once_object *o, const char *call, uintptr_t pc)
{
    if (!lab_sched_active()) {
        if (*o->state == RUNS)
            lab_posix_cannot_block(call, pc);
        if (*o->state == DONE)
            return false;
        *o->state = RUNS;
        return true;
    }
    if (*o->state == DONE && is_over_before(o, lab->current)) { /* not a step: it could not have come earlier */
        lab_atomic_take(lab->current, lab_posix_exit_cell(o->object));
        return false;
    }
    lab_thread *t = lab_posix_announce(o->object, pc);
    uint32_t entry = lab_posix_entry(o->object), exit = lab_posix_exit_cell(o->object);
    t->operand = (uintptr_t)o->state;
    lab_step_access(t, entry, *o->state != DONE);
    lab_gate_pass(t, &once_gate, 0);
    lab_access made = {entry, *o->state != DONE};
    lab_step_make(t, 1, &made);
    lab_step_follow(t, exit, false);
    lab_atomic_take(t, exit);
    lab_report_call(call, (uintptr_t)o->object, 0, false, pc);
    if (*o->state == DONE)
        return false;
    *o->state = RUNS;
    return true;
}

static void end(const once_object *o, uint8_t state, uintptr_t pc)
{
    if (lab_sched_active()) {
        lab_posix_touch(o->object, lab_posix_exit_cell(o->object), true, NULL, pc);
        lab_atomic_give(lab->current, lab_posix_exit_cell(o->object), false);
    }
    *o->state = state;
}

typedef struct once_run {
    once_object object;
    uint8_t state; /* at the end */
} once_run;

static void finish(once_run *run)
{
    end(&run->object, run->state, 0);
}

int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    once_object object = {control, (volatile uint8_t *)control};

    if (begin(&object, "pthread_once", CALLER)) {
        __attribute__((cleanup(finish))) once_run run = {object, 0};
        routine();
        run.state = DONE;
    }
    lab_cycle_sweep();
    return 0;
}

/* The guard of a static variable in a function: its first byte is read by the compiled code, with acquire. */

int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

static once_object guard_object(uint64_t *guard)
{
    return (once_object){guard, (volatile uint8_t *)guard + 1};
}

int __cxa_guard_acquire(uint64_t *guard)
{
    once_object object = guard_object(guard);
    bool runs = begin(&object, "initializes a static variable", CALLER);

    lab_cycle_sweep();
    return runs;
}

void __cxa_guard_release(uint64_t *guard)
{
    once_object object = guard_object(guard);

    end(&object, DONE, CALLER);
    lab_atomic_store((uintptr_t)guard, 1, 1, __ATOMIC_RELEASE, CALLER);
    lab_cycle_sweep();
}

void __cxa_guard_abort(uint64_t *guard)
{
    once_object object = guard_object(guard);

    end(&object, 0, CALLER);
}

/* Barriers. */

typedef struct barrier_state {
    uint32_t count;
    uint32_t arrived;
    uint32_t round;
    uint32_t inside; /* threads that have not left the last round */
} barrier_state;

_Static_assert(sizeof(barrier_state) <= sizeof(pthread_barrier_t), "the C library's size");

static bool is_round_over(const lab_thread *t)
{
    return ((const barrier_state *)t->op.address)->round != (uint32_t)t->operand;
}

static void describe_barrier(const lab_thread *t, char *buffer, size_t size)
{
    const barrier_state *b = (const barrier_state *)t->op.address;
    snprintf(buffer, size, "waits at the barrier $%lx$, where %u of %u threads have arrived", t->op.address, b->arrived,
             b->count);
}

static const lab_gate barrier_gate = {is_round_over, describe_barrier};

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count)
{
    (void)attributes;
    if (count == 0)
        return EINVAL;
    lab_posix_overwrite(barrier, sizeof(*barrier), CALLER);
    memset(barrier, 0, sizeof(*barrier));
    ((barrier_state *)barrier)->count = count;
    return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    barrier_state *b = (barrier_state *)barrier;
    uintptr_t pc = CALLER;
    uint32_t entry, exit;

    if (!lab_sched_active()) {
        if (b->count != 1)
            lab_posix_cannot_block("pthread_barrier_wait", pc);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    if (b->count == 0)
        lab_posix_misuse("pthread_barrier_wait", barrier, "the barrier was destroyed, or never initialized", pc);
    entry = lab_posix_entry(barrier);
    exit = lab_posix_exit_cell(barrier);
    lab_race_access((uintptr_t)barrier, sizeof(int), true, true, pc);
    lab_posix_touch(barrier, entry, true, "pthread_barrier_wait", pc);
    lab_thread *t = lab->current;
    lab_atomic_give(t, exit, true);
    if (++b->arrived == b->count) {
        b->arrived = 0;
        b->round++;
        b->inside += b->count - 1;
        lab_atomic_take(t, exit);
        lab_cycle_sweep();
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    lab_posix_announce(barrier, pc);
    t->operand = b->round;
    lab_step_access(t, exit, false);
    lab_gate_pass(t, &barrier_gate, 0);
    lab_step_make(t, 1, t->op.access);
    lab_step_follow(t, entry, false);
    lab_atomic_take(t, exit);
    b->inside--;
    lab_report_call("passes the barrier", (uintptr_t)barrier, 0, false, pc);
    lab_cycle_sweep();
    return 0;
}

/* The C library waits for threads that have not left; so does this. */
static bool is_left(const lab_thread *t)
{
    return ((const barrier_state *)t->op.address)->inside == 0;
}

static const lab_gate left_gate = {is_left, describe_barrier};

int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    barrier_state *b = (barrier_state *)barrier;
    uintptr_t pc = CALLER;

    if (b->arrived != 0)
        lab_posix_misuse("pthread_barrier_destroy", barrier, "threads wait at the barrier", pc);
    if (lab_sched_active()) {
        lab_thread *t = lab_posix_announce(barrier, pc);
        lab_step_access(t, lab_posix_entry(barrier), true);
        lab_gate_pass(t, &left_gate, 0);
        lab_step_make(t, 1, t->op.access);
        lab_step_follow(t, lab_posix_exit_cell(barrier), true);
        lab_atomic_take(t, lab_posix_exit_cell(barrier));
    }
    lab_posix_overwrite(barrier, sizeof(*barrier), pc);
    b->count = 0;
    return 0;
}
