/*
 * spin.c: loops that wait for a change.
 *
 * A thread spins if it is about to repeat a read, at the same place, and nothing that it has read since it last wrote
 * has changed. It is chosen again when another thread changes one of those variables. A loop may also end by itself,
 * because it counts its iterations. So the thread can be chosen at any time, and then iterates, with no other thread
 * in between, until it does something else. If it has not after MAX_TURNS, that loop is known to be endless, and the
 * search starts over.
 *
 * A thread that yields (HalGiveWay) declares that it waits: the next read of a variable that it has read before counts as a
 * repetition, wherever it is, and the loop does not give up while other threads can run. Only a thread whose loop writes keeps to
 * the number of steps for which it has yielded.
 */
#include "engine.h"

#include <string.h>

#define MAX_CALLERS 12
#define MAX_TURNS   300
#define IDLE_TIME   10000 /* 1 ms */

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

/* Follows the chain of frame pointers. */
uint64_t lab_spin_callers(lab_thread *t)
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

/* Does the announced step of t begin another iteration of a loop in which nothing has changed? */
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

/* The thread has yielded, and is about to read again what it has read before. */
static bool rereads_after_yield(const lab_thread *t)
{
    bool again = false;

    if (t->yielded == 0 || (t->op.kind != OP_LOAD && t->op.kind != OP_CAS && t->op.kind != OP_RMW) || lab_atomic_would_write(t))
        return false;
    for (uint32_t i = 0; i < t->watched_count; i++) {
        if (!is_unchanged(&t->watch[i]))
            return false;
        again |= t->watch[i].cell == t->op.access[0].cell;
    }
    return again;
}

static void end_yield(lab_thread *t)
{
    lab->run.yielders -= t->yielded != 0;
    t->yielded = 0;
}

void lab_spin_watch(lab_thread *t, uint32_t number, uintptr_t address, size_t size, int32_t version, uint64_t value,
                    uintptr_t pc)
{
    if (t->no_step)
        return;
    if (t->watched_count == MAX_WATCHED)
        t->watched_count = 0;
    t->watch[t->watched_count++] = (lab_watched){pc, address, number, version, (uint8_t)size, value, t->op.callers};
}

static uint64_t endless_key(const lab_operation *op)
{
    return (op->callers ^ op->pc * 0x9E3779B97F4A7C15ull) | 1;
}

static uint64_t *find_endless(const lab_operation *op)
{
    uint64_t key = endless_key(op);
    uint32_t index = (uint32_t)(key >> 40) % MAX_ENDLESS;

    while (lab->endless[index] != 0 && lab->endless[index] != key)
        index = (index + 1) % MAX_ENDLESS;
    return &lab->endless[index];
}

bool lab_spin_is_endless(const lab_operation *op)
{
    return *find_endless(op) != 0;
}

static void remember_endless(const lab_operation *op)
{
    uint64_t *slot = find_endless(op);

    if (*slot != 0 || lab->endless_count == MAX_ENDLESS / 2)
        return;
    lab->endless_count++;
    *slot = endless_key(op);
    lab->cells_changed = true;
}

/* Before a step is announced to the scheduler: is it a step, and can the thread make progress? */
void lab_spin_look(lab_thread *t)
{
    bool waits = rereads_after_yield(t);
    bool repeats = waits || repeats_itself(t);

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
    if (repeats)
        end_yield(t);
    t->may_give_up = repeats && !waits && !lab_spin_is_endless(&t->op);
}

/* A thread has changed that variable. */
void lab_spin_changed(uint32_t number)
{
    lab->run.idle_rounds = 0;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        for (uint32_t w = 0; (t->asleep || t->yielded != 0) && w < t->watched_count; w++) {
            if (t->watch[w].cell == number) {
                t->asleep = false;
                end_yield(t);
                if (!lab->options.weak)
                    t->watched_count = 0;
            }
        }
    }
}

void lab_spin_yield_hint(lab_thread *t, uint32_t steps)
{
    if (t->gives_up)
        return;
    lab->run.yielders += t->yielded == 0;
    t->yielded = steps;
}

/* No thread can run: threads that spin or yielded get another turn. Time passes only if the last turn has changed nothing. */
bool lab_spin_stir(void)
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
    lab->run.now += any && lab->run.idle_rounds != 0 ? IDLE_TIME : 0;
    return any;
}
