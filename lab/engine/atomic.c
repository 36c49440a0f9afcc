/*
 * atomic.c: atomic accesses and the memory models.
 *
 * Memory always holds the newest value of every variable. Under the model "sc" a load reads that value. Under "c11"
 * each store is kept as a version, and a load may read any version that happens-before does not hide from it:
 *
 * 1. A thread's view has, for each cell, the oldest version that it may still read: never older than what it read or
 *    wrote last.
 * 2. A release store carries the view of its thread; an acquire load that reads it joins that view into its own.
 * 3. A read-modify-write reads the newest version and carries the view of that version too (release sequence).
 * 4. Sequentially consistent accesses exchange views with one common view before and after. This is slightly stronger
 *    than C11 where they are mixed with weaker accesses, so every failure found is a failure by C11 too.
 * 5. Every store becomes visible eventually: a thread that repeats a load with nothing else in between reads a newer
 *    version if there is one (if there is none, lab_sched_point puts it to sleep).
 *
 * Loads are not reordered with later stores (no out-of-thin-air, and no load buffering either).
 *
 * Under "tso", the model of x86, all stores reach memory in one order, and a load may overtake earlier stores of its
 * own thread: it reads memory as it was at some time between the thread's last load, locked instruction or fence and
 * its last store, except that a thread sees its own stores at once. So the order of stores matters even if they are to
 * different variables.
 *
 * Happens-before, for data races, follows the same releases and acquires in both models.
 */
#include "engine.h"

#include "value.h"

#include <string.h>

#define VIEW_HEADER 64 /* a copied view begins with the number of its cells */

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Views. */

static uint16_t *view_copy(const uint16_t *view)
{
    size_t size = lab->cell_count * sizeof(uint16_t);
    size_t used = (lab->run.view_used + 63) & ~63ul;

    if (used + VIEW_HEADER + size > lab->view_room)
        lab_sched_leave(RUN_TRUNCATED);
    uint16_t *copy = (uint16_t *)((char *)lab->views + used + VIEW_HEADER);
    memcpy(copy, view, size);
    ((uint32_t *)copy)[-1] = lab->cell_count;
    lab->run.view_used = used + VIEW_HEADER + size;
    return copy;
}

static void view_join(uint16_t *into, const uint16_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

/* A copy has only the cells that existed when it was made. */
static void view_join_copy(uint16_t *into, const uint16_t *copy)
{
    view_join(into, copy, ((const uint32_t *)copy)[-1]);
}

static void exchange_views(lab_thread *t)
{
    if (lab->options.model == MODEL_TSO) {
        t->seen_until = lab->run.stores; /* a fence: the store buffer is empty */
        t->last_store = 0;
        return;
    }
    view_join(lab->thread_view[t->number], lab->sc_view, lab->cell_count);
    memcpy(lab->sc_view, lab->thread_view[t->number], lab->cell_count * sizeof(uint16_t));
}

/* Versions. */

static u128 cell_value(const lab_cell *c)
{
    return c->size <= 16 ? lab_value_read(c->address, c->size) : 0;
}

static bool keeps_versions(const lab_cell *c)
{
    return lab->options.weak && c->size <= 16;
}

static lab_version *new_version(lab_cell *c)
{
    if (lab->run.versions == MAX_STEPS || c->stamp == UINT16_MAX)
        lab_sched_leave(RUN_TRUNCATED);
    lab_version *v = &lab->versions[lab->run.versions];
    v->older = c->newest;
    v->stamp = ++c->stamp;
    v->value = cell_value(c);
    v->when = ++lab->run.stores;
    v->view = NULL;
    c->newest = (int32_t)lab->run.versions++;
    return v;
}

/*
 * The history restarts when a plain access, or one that the explorer did not see, has written the variable. If it wrote
 * only a neighbour in the same cell, the variable still carries what its last store left.
 */
static void ensure_history(lab_cell *c)
{
    if (c->newest >= 0 && lab->versions[c->newest].value == cell_value(c))
        return;
    uint16_t *view = c->neighbour && c->newest >= 0 ? lab->versions[c->newest].view : NULL;
    if (!c->neighbour) {
        memset(&c->release, 0, sizeof(c->release));
        c->writer = MAX_THREADS;
    }
    c->newest = -1;
    c->neighbour = false;
    lab_version *v = new_version(c);
    v->writer = MAX_THREADS;
    v->when = 0;
    v->view = view;
    v->release = c->release;
}

static void plain_write(lab_cell *c, uintptr_t address, size_t size)
{
    if (address + size <= c->stored || address >= c->stored + c->stored_size) {
        c->neighbour = true;
        return;
    }
    c->newest = -1;
    c->neighbour = false;
    c->writer = MAX_THREADS;
    memset(&c->release, 0, sizeof(c->release));
}

void lab_atomic_plain_write(uintptr_t address, size_t size)
{
    for (uintptr_t at = address; at < address + size; at = (at & ~7ul) + 8) {
        lab_granule *shadow = lab_memory_shadow(at);
        if (shadow == NULL)
            continue;
        for (uint32_t i = at & 7; i < 8 && (at & ~7ul) + i < address + size; i++) {
            uint32_t number = shadow->cell[i];
            if (number != NO_CELL && lab->cells[number].generation == lab->generation)
                plain_write(&lab->cells[number], address, size);
        }
    }
}

static void get(lab_thread *t, int order, const lab_vclock *release, const uint16_t *view)
{
    if (acquires(order)) {
        lab_clock_join(&t->sync, release);
        if (view != NULL)
            view_join_copy(lab->thread_view[t->number], view);
    } else {
        lab_clock_join(&t->fence_acquire, release);
        if (view != NULL)
            view_join_copy(lab->acquire_view[t->number], view);
    }
}

/* What a store leaves for a load that acquires it. */
static void give(lab_thread *t, lab_cell *c, uintptr_t address, size_t size, int order, bool rmw)
{
    c->stored = address;
    c->stored_size = (uint32_t)size;
    if (releases(order)) {
        if (rmw)
            lab_clock_join(&c->release, &t->sync);
        else
            c->release = t->sync;
        t->sync.at[t->number]++;
    } else if (t->fenced) {
        if (rmw)
            lab_clock_join(&c->release, &t->fence_release);
        else
            c->release = t->fence_release;
    } else if (!rmw && c->writer != t->number) {
        memset(&c->release, 0, sizeof(c->release));
    }
    c->writer = t->number;
}

static void store_version(lab_thread *t, uint32_t number, lab_cell *c, int order, bool rmw)
{
    if (!keeps_versions(c))
        return;
    const lab_version *replaced = c->newest >= 0 ? &lab->versions[c->newest] : NULL;
    uint16_t *view = rmw && replaced != NULL ? replaced->view : NULL;
    lab_version *v = new_version(c);
    lab->thread_view[t->number][number] = v->stamp;
    t->last_store = v->when;
    if (lab->options.model == MODEL_C11 && releases(order)) {
        uint16_t *own = view_copy(lab->thread_view[t->number]);
        if (view != NULL)
            view_join_copy(own, view);
        view = own;
    } else if (lab->options.model == MODEL_C11 && t->fenced) {
        uint16_t *own = view_copy(lab->release_view[t->number]);
        if (view != NULL)
            view_join_copy(own, view);
        view = own;
    }
    v->view = view;
    v->release = c->release;
    v->writer = t->number;
}

#define MAX_VISIBLE 8

/* The versions that were the newest at some time at which the load may have happened. */
static uint32_t find_visible_tso(const lab_thread *t, const lab_cell *c, int32_t visible[MAX_VISIBLE])
{
    uint32_t count = 0;

    visible[count++] = c->newest;
    for (int32_t v = c->newest; count < MAX_VISIBLE; v = lab->versions[v].older) {
        const lab_version *newer = &lab->versions[v];

        if (newer->writer == t->number || newer->when <= t->seen_until || newer->older < 0)
            break;
        if (lab->versions[newer->older].when < t->last_store)
            visible[count++] = newer->older;
    }
    return count;
}

static uint32_t find_visible_c11(const lab_thread *t, uint32_t number, const lab_cell *c, uint16_t oldest,
                                 int32_t visible[MAX_VISIBLE])
{
    uint32_t count = 0;

    oldest = lab->thread_view[t->number][number] > oldest ? lab->thread_view[t->number][number] : oldest;
    for (int32_t v = c->newest; v >= 0 && count < MAX_VISIBLE && (count == 0 || lab->versions[v].stamp >= oldest);
         v = lab->versions[v].older)
        visible[count++] = v;
    return count;
}

/* A repeated load must not read the same old version again: every store becomes visible eventually. */
static uint16_t oldest_for_repeated(const lab_thread *t, uint32_t number, const lab_cell *c, uintptr_t pc)
{
    uint16_t oldest = 0;

    for (uint32_t i = 0; i < t->watched_count; i++) {
        const lab_watched *w = &t->watch[i];
        if (w->pc == pc && w->cell == number && w->callers == t->op.callers && w->stamp < c->stamp &&
            w->stamp >= oldest)
            oldest = (uint16_t)(w->stamp + 1);
    }
    return oldest;
}

/* Which version a load reads; 0 is the newest. */
static lab_version *choose_version(lab_thread *t, uint32_t number, lab_cell *c, uintptr_t pc)
{
    int32_t visible[MAX_VISIBLE];
    uint16_t oldest = oldest_for_repeated(t, number, c, pc);
    uint32_t count = 1;

    visible[0] = c->newest;
    if (lab->options.model == MODEL_C11)
        count = find_visible_c11(t, number, c, oldest, visible);
    else if (oldest == 0)
        count = find_visible_tso(t, c, visible);
    uint32_t index = lab->run.stale != 0 ? lab_explore_choose(count) : 0;
    lab_version *v = &lab->versions[visible[index]];
    lab->run.stale -= index != 0;
    if (v->writer != t->number && v->when > t->seen_until)
        t->seen_until = v->when;
    return v;
}

static void announce(lab_thread *t, lab_op_kind kind, uintptr_t address, size_t size, int order, uint32_t number,
                     bool write, uintptr_t pc)
{
    t->op.kind = (uint8_t)kind;
    t->op.size = (uint8_t)size;
    t->op.order = (uint8_t)order;
    t->op.address = address;
    t->op.pc = pc;
    t->op.callers = kind == OP_LOAD || kind == OP_CAS || kind == OP_RMW ? lab_spin_callers(t) : 0;
    t->op.accesses = 1;
    t->op.access[0] = (lab_access){number, write};
    if (lab->options.model == MODEL_TSO ? write : lab->options.weak && order == __ATOMIC_SEQ_CST)
        t->op.access[t->op.accesses++] = (lab_access){lab_cell_pseudo(PSEUDO_STRONG), true};
}

static bool visible(uintptr_t address)
{
    return lab_sched_active() && !lab_memory_is_tls(address) && lab_memory_shadow(address) != NULL;
}

static void wrote(lab_thread *t, uint32_t number)
{
    t->watched_count = 0;
    lab_spin_changed(number);
}

/* The value that the announced load reads: the newest, or an older one that the model allows. */
static u128 load(lab_thread *t, uintptr_t address, size_t size, int order, uintptr_t pc)
{
    uint32_t number = t->op.access[0].cell;
    lab_cell *c = lab_cell_of(number);
    bool stale = false;
    u128 value;

    if (keeps_versions(c)) {
        ensure_history(c);
        bool strong = order == __ATOMIC_SEQ_CST && lab->options.model == MODEL_C11;
        if (strong)
            exchange_views(t);
        const lab_version *v = choose_version(t, number, c, pc);
        stale = v->stamp != c->stamp;
        lab->thread_view[t->number][number] = v->stamp;
        value = v->value >> (8 * (address - c->address));
        value = size == 16 ? value : value & (((u128)1 << (8 * size)) - 1);
        get(t, order, &v->release, v->view);
        if (strong)
            exchange_views(t);
        lab_spin_watch(t, number, address, size, v->stamp, (uint64_t)value, pc);
    } else {
        value = lab_value_read(address, size);
        get(t, order, &c->release, NULL);
        lab_spin_watch(t, number, address, size, c->stamp, (uint64_t)value, pc);
    }
    lab_report_event(OP_LOAD, address, size, order, (uint64_t)value, (uint64_t)value, stale, pc);
    return value;
}

u128 lab_atomic_load(uintptr_t address, size_t size, int order, uintptr_t pc)
{
    if (!visible(address))
        return lab_value_read(address, size);
    lab_thread *t = lab->current;

    announce(t, OP_LOAD, address, size, order, lab_cell_find(address, size), false, pc);
    lab_sched_point(t);
    lab_race_access(address, size, false, true, pc);
    lab_step_make(t, t->op.accesses, t->op.access);
    return load(t, address, size, order, pc);
}

u128 lab_atomic_peek(uintptr_t address, size_t size, uintptr_t pc)
{
    if (!visible(address))
        return lab_value_read(address, size);
    lab_thread *t = lab->current;

    announce(t, OP_LOAD, address, size, __ATOMIC_RELAXED, lab_cell_find(address, size), false, pc);
    lab_sched_point(t);
    lab_step_make(t, t->op.accesses, t->op.access);
    return load(t, address, size, __ATOMIC_RELAXED, pc);
}

void lab_atomic_store(uintptr_t address, size_t size, u128 value, int order, uintptr_t pc)
{
    if (!visible(address)) {
        lab_value_write(address, size, value);
        return;
    }
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);

    announce(t, OP_STORE, address, size, order, number, true, pc);
    t->desired = value;
    lab_sched_point(t);
    lab_race_access(address, size, true, true, pc);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cell *c = lab_cell_of(number);
    u128 old = lab_value_read(address, size);
    if (keeps_versions(c)) {
        ensure_history(c);
        if (order == __ATOMIC_SEQ_CST)
            exchange_views(t);
    }
    lab_value_write(address, size, value);
    /* A store to a part of the cell keeps what the rest of the cell carried. */
    give(t, c, address, size, order, size != c->size);
    store_version(t, number, c, order, size != c->size);
    if (lab->options.weak && order == __ATOMIC_SEQ_CST)
        exchange_views(t);
    lab_report_event(OP_STORE, address, size, order, (uint64_t)old, (uint64_t)value, false, pc);
    wrote(t, number);
}

void lab_atomic_touch(uintptr_t address, size_t size, uintptr_t pc)
{
    if (!visible(address))
        return;
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);

    announce(t, OP_STORE, address, size, __ATOMIC_RELAXED, number, true, pc);
    lab_sched_point(t);
    lab_race_access(address, size, true, true, pc);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cell *c = lab_cell_of(number);
    give(t, c, address, size, __ATOMIC_RELAXED, false);
    c->newest = -1; /* no history: the value is still unknown */
    lab_report_event(OP_STORE, address, size, __ATOMIC_RELAXED, (uint64_t)lab_value_read(address, size), 0, true, pc);
    wrote(t, number);
}

/* Reads the newest version and replaces it. */
static void replace(lab_thread *t, uint32_t number, lab_cell *c, uintptr_t address, size_t size, u128 value, int order)
{
    bool strong = lab->options.model == MODEL_TSO || (lab->options.weak && order == __ATOMIC_SEQ_CST);

    if (strong)
        exchange_views(t);
    const lab_version *v = keeps_versions(c) ? &lab->versions[c->newest] : NULL;
    get(t, order, v != NULL ? &v->release : &c->release, v != NULL ? v->view : NULL);
    lab_value_write(address, size, value);
    give(t, c, address, size, order, true);
    store_version(t, number, c, order, true);
    if (strong)
        exchange_views(t);
}

u128 lab_atomic_rmw(uintptr_t address, size_t size, lab_rmw_kind kind, u128 operand, int order, uintptr_t pc)
{
    if (!visible(address)) {
        u128 old = lab_value_read(address, size);
        lab_value_write(address, size, lab_value_combine(kind, old, operand, size));
        return old;
    }
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);

    announce(t, OP_RMW, address, size, order, number, true, pc);
    t->operand = operand;
    t->rmw = (uint8_t)kind;
    lab_sched_point(t);
    lab_race_access(address, size, true, true, pc);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cell *c = lab_cell_of(number);
    if (keeps_versions(c))
        ensure_history(c);
    u128 old = lab_value_read(address, size);
    u128 value = lab_value_combine(kind, old, operand, size);
    replace(t, number, c, address, size, value, order);
    lab_report_event(OP_RMW, address, size, order, (uint64_t)old, (uint64_t)value, false, pc);
    if (value != old)
        wrote(t, number);
    else
        lab_spin_watch(t, number, address, size, c->stamp, (uint64_t)old, pc);
    return old;
}

/* FALSE: it failed, and *expected is the value found. */
static bool compare_exchange(uintptr_t address, size_t size, u128 *expected, u128 desired, int order, int failure,
                             bool weak, uintptr_t pc)
{
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);

    announce(t, OP_CAS, address, size, order, number, true, pc);
    t->operand = *expected;
    t->desired = desired;
    lab_sched_point(t);
    u128 old = lab_value_read(address, size);
    bool success = old == *expected;
    if (success && weak && lab->run.weak_failures != 0 && lab_explore_choose(2) == 1) {
        lab->run.weak_failures--;
        success = false;
    }
    lab_access made[2] = {{number, success}, t->op.access[1]};
    lab_race_access(address, size, success, true, pc);
    lab_step_make(t, t->op.accesses, made);
    lab_cell *c = lab_cell_of(number);
    if (keeps_versions(c))
        ensure_history(c);
    lab_report_event(OP_CAS, address, size, order, (uint64_t)old, (uint64_t)desired, !success, pc);
    *expected = old;
    if (success) {
        replace(t, number, c, address, size, desired, order);
        if (desired != old) {
            wrote(t, number);
            return true;
        }
    } else {
        const lab_version *v = keeps_versions(c) ? &lab->versions[c->newest] : NULL;
        if (v != NULL)
            lab->thread_view[t->number][number] = v->stamp;
        if (lab->options.model == MODEL_TSO)
            exchange_views(t);
        get(t, failure, v != NULL ? &v->release : &c->release, v != NULL ? v->view : NULL);
    }
    lab_spin_watch(t, number, address, size, c->stamp, (uint64_t)old, pc);
    return success;
}

/* Returns the value found; it succeeded if that is the expected one. */
u128 lab_atomic_cas(uintptr_t address, size_t size, u128 expected, u128 desired, int order, int failure, uintptr_t pc)
{
    if (!visible(address)) {
        u128 old = lab_value_read(address, size);
        if (old == expected)
            lab_value_write(address, size, desired);
        return old;
    }
    compare_exchange(address, size, &expected, desired, order, failure, false, pc);
    return expected;
}

bool lab_atomic_cas_weak(uintptr_t address, size_t size, u128 *expected, u128 desired, int order, int failure,
                         uintptr_t pc)
{
    if (visible(address))
        return compare_exchange(address, size, expected, desired, order, failure, true, pc);
    u128 old = lab_value_read(address, size);
    bool success = old == *expected;
    if (success)
        lab_value_write(address, size, desired);
    *expected = old;
    return success;
}

bool lab_atomic_would_write(const lab_thread *t)
{
    u128 now = lab_value_read(t->op.address, t->op.size);

    if (t->op.kind == OP_CAS)
        return now == t->operand;
    return t->op.kind == OP_RMW && lab_value_combine((lab_rmw_kind)t->rmw, now, t->operand, t->op.size) != now;
}

void lab_atomic_fence(int order, uintptr_t pc)
{
    if (!lab_sched_active())
        return;
    lab_thread *t = lab->current;
    if (lab->options.weak && order == __ATOMIC_SEQ_CST) {
        announce(t, OP_FENCE, 0, 0, order, NO_CELL, false, pc);
        lab_sched_point(t);
        lab_step_make(t, t->op.accesses, t->op.access);
        lab_report_event(OP_FENCE, 0, 0, order, 0, 0, false, pc);
    }
    if (acquires(order)) {
        lab_clock_join(&t->sync, &t->fence_acquire);
        if (lab->options.weak)
            view_join(lab->thread_view[t->number], lab->acquire_view[t->number], lab->cell_count);
    }
    if (releases(order)) {
        if (lab->options.weak)
            memcpy(lab->release_view[t->number], lab->thread_view[t->number], lab->cell_count * sizeof(uint16_t));
        t->fence_release = t->sync;
        t->fenced = true;
        t->sync.at[t->number]++;
    }
    if (lab->options.weak && order == __ATOMIC_SEQ_CST)
        exchange_views(t);
}

/* Every thread executes a full barrier. */
void lab_atomic_barrier_all(void)
{
    if (!lab->options.weak)
        return;
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < lab->run.thread_count; i++)
            exchange_views(&lab->run.threads[i]);
}

void lab_atomic_give(lab_thread *t, uint32_t number, bool adds)
{
    lab_cell *c = lab_cell_of(number);

    if (!adds)
        memset(&c->release, 0, sizeof(c->release));
    lab_clock_join(&c->release, &t->sync);
    t->sync.at[t->number]++;
    if (lab->options.model != MODEL_C11)
        return;
    uint16_t *view = view_copy(lab->thread_view[t->number]);
    if (adds && c->newest >= 0)
        view_join_copy(view, lab->versions[c->newest].view);
    new_version(c)->view = view;
}

void lab_atomic_take(lab_thread *t, uint32_t number)
{
    const lab_cell *c = lab_cell_of(number);

    lab_clock_join(&t->sync, &c->release);
    if (lab->options.model == MODEL_C11 && c->newest >= 0)
        view_join_copy(lab->thread_view[t->number], lab->versions[c->newest].view);
    if (lab->options.model == MODEL_TSO)
        exchange_views(t);
}

void lab_atomic_begin(void)
{
    if (!lab->options.weak)
        return;
    memset(lab->sc_view, 0, lab->cell_count * sizeof(uint16_t));
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        memset(lab->thread_view[i], 0, lab->cell_count * sizeof(uint16_t));
        memset(lab->acquire_view[i], 0, lab->cell_count * sizeof(uint16_t));
    }
}
