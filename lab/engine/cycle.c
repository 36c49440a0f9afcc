/*
 * cycle.c: schedules that repeat forever.
 *
 * A schedule that returns to an earlier state can repeat forever. If the cycle is fair, it is a failure: a *livelock*,
 * or *starvation* if some threads make progress meanwhile and others do not.
 *
 * 1. The state: the memory of the program, and for each thread its registers, its stack, its thread-local variables,
 *    and the step it is about to make. What the machine may do only a limited number of times is part of the state too.
 * 2. Fair: every thread that could run all the time has run. A thread that spins in a loop known to be endless
 *    (spin.c), with nothing changed that it reads, counts as having run: every iteration leads back to the same state.
 * 3. A thread makes progress if it reports so (LabProgress, LabEnd). If no thread of the schedule ever reports
 *    progress, a thread of the scenario's table makes progress if it was at two places of its own function; a thread
 *    that stays in a single call does not.
 *
 * The registers are those that the calling convention preserves, as the unwinder finds them in the frame that called
 * the explorer; all others are dead, or arguments, which are part of the step. Below that frame is what the explorer
 * has left, with its counters. It is cleared whenever the program continues (lab_cycle_sweep); otherwise it would show
 * up in uninitialised frames.
 *
 * Comparing states is slow, so it is done in separate schedules, and only after a schedule was found to be too long.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

typedef struct state {
    uint64_t hash;
    uint32_t event; /* of the trace */
    uint32_t total; /* steps */
    uint32_t steps[MAX_THREADS];
    uint32_t progress[MAX_THREADS];
    uintptr_t place[MAX_THREADS]; /* the place in the thread's own function */
} state;

typedef struct lab_cycle_states {
    uint32_t count;
    int32_t last_idle[MAX_THREADS]; /* the last state in which it could not run */
    int32_t last_open[MAX_THREADS]; /* the last state in which it did not wait at a closed gate */
    state states[CYCLE_STEPS];
} lab_cycle_states;

void lab_cycle_begin(void)
{
    if (!lab->tracking)
        return;
    if (lab->cycles == NULL)
        lab->cycles = lab_memory_map(sizeof(*lab->cycles));
    lab->cycles->count = 0;
    memset(lab->cycles->last_idle, 0xff, sizeof(lab->cycles->last_idle));
    memset(lab->cycles->last_open, 0xff, sizeof(lab->cycles->last_open));
}

/* Where each thread is. */

#if defined(__x86_64__)
static const int preserved[] = {3, 6, 12, 13, 14, 15}; /* rbx, rbp, r12 to r15 */
#define SPILL_PRESERVED() __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15")
#else
static const int preserved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
#define SPILL_PRESERVED() __asm__ volatile("" ::: "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28")
#endif
#define PRESERVED (sizeof(preserved) / sizeof(preserved[0]))

/*
 * The unwinder is slow, and only a few call paths (ways) lead from a function of the program to this file. So the first walk
 * along a way finds out where each register is saved: it changes the register through the unwinder, looks for the word
 * that has changed, and changes it back. Later walks read these words. A way is the return addresses in the chain of frame
 * pointers: they decide where a function saves what. If the unwinder sees other frames than the chain has, the way is not kept.
 */
#define WAYS       4096
#define WAY_FRAMES 24
#define MARK       0x5bd1e995a3c59ac3ull

typedef struct way {
    uint64_t key; /* 0: free */
    uint8_t frame[PRESERVED];  /* the frame that the word belongs to */
    int16_t offset[PRESERVED]; /* of the word from it */
    int16_t end;               /* of the way, from its last frame */
} way;

struct lab_ways {
    uint32_t count;
    way of[WAYS];
};

typedef struct chain {
    uint32_t count;
    uint64_t key;
    const uint64_t *frames[WAY_FRAMES]; /* from the explorer's innermost frame to the one that returns to the program */
} chain;

typedef struct frame_search {
    uintptr_t pc;
    uint32_t frames;
    uintptr_t frame;
    uint64_t registers;
    chain *chain;
    way *learned; /* NULL: it cannot be kept */
} frame_search;

/* FALSE: the chain does not lead to that place. */
static bool follow_chain(const lab_thread *t, const uint64_t *frame, chain *c)
{
    c->count = 0;
    c->key = 1;
    while (c->count < WAY_FRAMES && (uintptr_t)frame - (uintptr_t)t->stack < STACK_SIZE - 2 * sizeof(*frame)) {
        c->frames[c->count++] = frame;
        c->key = (c->key ^ frame[1]) * 0x9E3779B97F4A7C15ull;
        c->key ^= c->key >> 32;
        if (frame[1] == t->op.pc) {
            c->key |= 1;
            return true;
        }
        frame = (const uint64_t *)frame[0];
    }
    return false;
}

static way *find_way(uint64_t key)
{
    if (lab->ways == NULL)
        lab->ways = lab_memory_map(sizeof(*lab->ways));
    uint32_t index = (uint32_t)(key >> 40) % WAYS;
    while (lab->ways->of[index].key != 0 && lab->ways->of[index].key != key)
        index = (index + 1) % WAYS;
    return &lab->ways->of[index];
}

/* The only word between the explorer's own frame and the end of the way that has changed with the register; NULL: there is none. */
static const volatile uint64_t *find_changed(const chain *c, uint64_t value)
{
    const volatile uint64_t *found = NULL;

    for (const volatile uint64_t *word = c->frames[0] - 8; word < c->frames[c->count - 1] + 2; word++) {
        if (*word != value)
            continue;
        if (found != NULL)
            return NULL;
        found = word;
    }
    return found;
}

static bool learn(const chain *c, const volatile uint64_t *word, way *w, size_t number)
{
    uint32_t frame = 0;

    while (frame + 1 < c->count && word >= c->frames[frame + 1] - 8)
        frame++;
    if (word == NULL || word - c->frames[frame] > INT16_MAX)
        return false;
    w->frame[number] = (uint8_t)frame;
    w->offset[number] = (int16_t)(word - c->frames[frame]);
    return true;
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *argument)
{
    frame_search *search = argument;

    search->frames++;
    if (_Unwind_GetIP(context) != search->pc)
        return _URC_NO_REASON;
    search->frame = _Unwind_GetCFA(context);
    for (size_t i = 0; i < PRESERVED; i++) {
        uint64_t value = _Unwind_GetGR(context, preserved[i]);

        if (search->learned != NULL) {
            _Unwind_SetGR(context, preserved[i], value ^ MARK);
            if (!learn(search->chain, find_changed(search->chain, value ^ MARK), search->learned, i))
                search->learned = NULL;
            _Unwind_SetGR(context, preserved[i], value);
        }
        value = lab_memory_without_own(value);
        search->registers = lab_memory_hash_bytes(search->registers, &value, sizeof(value));
    }
    return _URC_NORMAL_STOP;
}

static void walk_known(const way *w, const chain *c, frame_search *search)
{
    search->frame = (uintptr_t)(c->frames[c->count - 1] + w->end);
    for (size_t i = 0; i < PRESERVED; i++) {
        uint64_t value = lab_memory_without_own(c->frames[w->frame[i]][w->offset[i]]);
        search->registers = lab_memory_hash_bytes(search->registers, &value, sizeof(value));
    }
}

static void walk_unknown(lab_thread *t, way *place, bool has_chain, frame_search *search)
{
    way learned = {0};

    search->learned = has_chain && lab->ways->count < WAYS / 2 ? &learned : NULL;
    t->unwound = true;
    lab->quiet = true; /* its own locks are not steps */
    _Unwind_Backtrace(look_at_frame, search);
    lab->quiet = false;
    if (search->frame == 0 || search->learned == NULL || search->frames != search->chain->count + 1)
        return;
    learned.key = search->chain->key;
    learned.end = (int16_t)((const uint64_t *)search->frame - search->chain->frames[search->chain->count - 1]);
    *place = learned;
    lab->ways->count++;
}

/* Follows the chain of frame pointers to the return address that leads into the thread's own function. */
uintptr_t lab_cycle_place(const lab_thread *t)
{
    const uintptr_t *frame = __builtin_frame_address(0);

    while ((const char *)frame >= t->stack && (const char *)frame < t->stack + STACK_SIZE - 2 * sizeof(*frame)) {
        const uintptr_t *caller = (const uintptr_t *)frame[0];

        if ((const char *)caller <= t->stack || (const char *)caller >= t->stack + STACK_SIZE)
            break;
        if (*caller == t->base_frame)
            return frame[1];
        frame = caller;
    }
    return 0;
}

/* FALSE: unknown. Not inline: its frame is the first one of the way, and has what its callers do not save. */
__attribute__((noinline)) bool lab_cycle_note_position(lab_thread *t)
{
    chain c;
    frame_search search = {.pc = t->op.pc, .chain = &c};

    SPILL_PRESERVED();
    if (t->in_interrupt && (lab->tracking || t->outer_frame == 0))
        return false;
    bool has_chain = follow_chain(t, __builtin_frame_address(0), &c);
    way *w = find_way(c.key);
    if (has_chain && w->key != 0)
        walk_known(w, &c, &search);
    else
        walk_unknown(t, w, has_chain, &search);
    t->frame = search.frame;
    t->registers = search.registers;
    t->place = lab_cycle_place(t);
    return search.frame != 0;
}

/* Other steps have none; what an earlier one has left there is not part of the state. */
static bool has_operand(const lab_thread *t)
{
    return t->op.kind == OP_RMW || t->op.kind == OP_CAS || t->op.kind == OP_WAIT || t->op.kind == OP_CALL;
}

static bool has_new_value(const lab_thread *t)
{
    return t->op.kind == OP_STORE || t->op.kind == OP_CAS || t->op.kind == OP_WAIT || t->op.kind == OP_CALL;
}

uint64_t lab_cycle_hash_step(const lab_thread *t)
{
    const uint64_t parts[] = {
        t->op.kind,
        t->op.address,
        t->op.pc,
        has_operand(t) ? (uint64_t)t->operand : 0,
        has_operand(t) ? (uint64_t)(t->operand >> 64) : 0,
        has_new_value(t) ? (uint64_t)t->desired : 0,
        has_new_value(t) ? (uint64_t)(t->desired >> 64) : 0,
        t->op.kind == OP_RMW ? t->rmw : 0,
        t->registers,
        t->frame,
    };

    return lab_memory_hash_bytes(1, parts, sizeof(parts));
}

/* Hashes the stack from the program's lowest frame on, without the explorer's frames between a handler and the interrupted code. */
static uint64_t hash_stack(const lab_thread *t)
{
    uintptr_t top = (uintptr_t)t->stack + STACK_SIZE;

    if (!t->in_interrupt || t->frame >= t->handler_frame) /* the latter: its position in the handler is not noted */
        return lab_memory_hash_region((const void *)t->frame, top - t->frame);
    return t->outer + lab_memory_hash_region((const void *)t->frame, t->handler_frame - t->frame) +
           lab_memory_hash_region((const void *)t->outer_frame, top - t->outer_frame);
}

/* If a thread has ended, nothing else about it matters: where it was last depends on the schedule. */
static uint64_t hash_thread(uint64_t hash, const lab_thread *t)
{
    const uint64_t ended = THREAD_DONE;
    const uint64_t parts[] = {
        t->state,
        lab_cycle_hash_step(t),
        t->state == THREAD_BLOCKED ? t->expected : 0,
        t->deadline != 0 ? t->deadline - lab->run.now : 0,
        t->interrupt_pending,
        t->inside_libc,
        t->interrupt_later,
    };

    if (t->state == THREAD_DONE)
        return lab_memory_hash_bytes(hash, &ended, sizeof(ended));
    hash = lab_memory_hash_bytes(hash, parts, sizeof(parts));
    hash = lab_memory_hash_bytes(hash, t == lab->current ? (const uint8_t *)lab->tls : t->tls, lab->tls_size & ~7ul);
    if (t->frame != 0)
        hash += hash_stack(t);
    return hash;
}

uint64_t lab_cycle_hash(void)
{
    const uint64_t limits[] = {lab->run.spurious, lab->run.failures,      lab->run.timeouts,
                               lab->run.deferred, lab->run.weak_failures, lab->run.deaths,
                               lab->run.kills};
    uint64_t hash = lab_memory_hash_bytes(lab_memory_hash(), limits, sizeof(limits));

    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        hash = hash_thread(hash, &lab->run.threads[i]);
    return hash;
}

/* Cycles. */

static bool is_idle(const lab_thread *t)
{
    if (t->state == THREAD_BLOCKED)
        return t->deadline == 0 && !t->interrupt_pending;
    return t->state != THREAD_READY || (t->asleep && !t->may_give_up);
}

/*
 * A thread that waits for a lock of the host was passed over if the lock was ever free: hosts eventually give it its turn.
 * Only if the gate was always closed could the thread not run.
 */
static bool was_shut_out(const lab_thread *t, const state *from)
{
    return t->steps == from->steps[t->number] && lab->cycles->last_open[t->number] < from - lab->cycles->states;
}

static bool is_fair(const state *from)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *t = &lab->run.threads[i];

        if (t->steps == from->steps[i] && lab->cycles->last_idle[i] < from - lab->cycles->states && !was_shut_out(t, from))
            return false;
    }
    return true;
}

static bool changes_place(uint32_t thread, const state *from)
{
    for (const state *s = from; s < &lab->cycles->states[lab->cycles->count]; s++)
        if (s->place[thread] != from->place[thread])
            return true;
    return false;
}

static bool anybody_says_so(void)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].progress != 0)
            return true;
    return false;
}

static bool gets_on(const lab_thread *t, const state *from)
{
    if (anybody_says_so())
        return t->progress != from->progress[t->number];
    return t->steps != from->steps[t->number] && (!t->has_own_function || changes_place(t->number, from));
}

static bool may_stay(const lab_thread *t)
{
    return t->service || t->state == THREAD_DONE ||
           (t->state == THREAD_BLOCKED && (lab->scenario->Flags & LAB_MAY_BLOCK) != 0);
}

static size_t describe(const lab_thread *t, const state *from, char *buffer, size_t size)
{
    char what[160];

    if (gets_on(t, from))
        return (size_t)snprintf(buffer, size, "\n  %c makes progress", 'a' + t->number);
    lab_stuck_describe_brief(t, what, sizeof(what));
    return (size_t)snprintf(buffer, size, "\n  %c makes no progress: %u steps, %s", 'a' + t->number,
                            t->steps - from->steps[t->number], what);
}

/* All threads that need not end make progress: the program is meant to run forever. */
static void fail_or_finish(const state *from)
{
    uint32_t moving = 0, stuck = 0, waiting = 0;
    char text[1800] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < lab->run.thread_count && used < sizeof(text) - 300; i++) {
        const lab_thread *t = &lab->run.threads[i];

        if (may_stay(t))
            continue;
        if (gets_on(t, from))
            moving++;
        else if (was_shut_out(t, from))
            waiting++;
        else
            stuck++;
        used += describe(t, from, text + used, sizeof(text) - used);
    }
    if (stuck + waiting == 0 && anybody_says_so())
        lab_sched_leave(RUN_FINISHED);
    lab->cycle_event = from->event;
    lab->cycle_found = true;
    lab_sched_fail(stuck != 0 && moving != 0 ? VERDICT_STARVATION : VERDICT_LIVELOCK, 0,
                   "every thread that can run does, and after %u steps the state is as before: this can repeat "
                   "forever%s",
                   lab->run.steps - from->total, text);
}

void lab_cycle_note(void)
{
    lab_thread *t = lab->current;

    if (lab->cycles->count == CYCLE_STEPS || lab->run.steps >= CYCLE_STEPS)
        lab_sched_leave(RUN_SKIPPED);
    if (t != NULL && t->state != THREAD_DONE && !lab_cycle_note_position(t))
        return;
    state *now = &lab->cycles->states[lab->cycles->count];
    now->hash = lab_cycle_hash();
    now->event = lab->event_count;
    now->total = lab->run.steps;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *other = &lab->run.threads[i];

        now->steps[i] = other->steps;
        now->progress[i] = other->progress;
        now->place[i] = other->place;
        if (is_idle(other))
            lab->cycles->last_idle[i] = (int32_t)lab->cycles->count;
        if (!lab_gate_is_closed(other) || other->deadline != 0)
            lab->cycles->last_open[i] = (int32_t)lab->cycles->count;
    }
    for (uint32_t i = lab->cycles->count++; i-- != 0;)
        if (lab->cycles->states[i].hash == now->hash && lab->cycles->states[i].total != now->total &&
            is_fair(&lab->cycles->states[i]))
            fail_or_finish(&lab->cycles->states[i]);
}
