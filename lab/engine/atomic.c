/*
 * atomic.c: atomic accesses and the memory models.
 *
 * Memory always holds the newest value of every variable. Under the model "sc" a load reads that value. Under the other
 * two each store is kept as a version, and a load may read an older one. rc11.c decides which, for the model "c11".
 *
 * Under "tso", the model of x86, all stores reach memory in one order, and a load may overtake earlier stores of its
 * own thread: it reads memory as it was at some time between the thread's last load, locked instruction or fence and
 * its last store, except that a thread sees its own stores at once. So the order of stores matters even if they are to
 * different variables. A thread that repeats a load with nothing else in between reads a newer version if there is one:
 * every store becomes visible eventually.
 *
 * Happens-before, for data races, follows releases and acquires in the same way in all models. A release sequence is a
 * store and the read-modify-writes that continue it, as in C++20.
 */
#include "engine.h"

#include "value.h"

#include <string.h>

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Versions. */

static bool keeps_versions(const lab_cell *c)
{
    return lab->options.weak && c->size <= 16;
}

static bool is_c11(const lab_cell *c)
{
    return lab->options.model == MODEL_C11 && c->size <= 16;
}

static lab_version *new_version(lab_cell *c)
{
    if (lab->run.versions == MAX_STEPS)
        lab_sched_leave(RUN_TRUNCATED);
    lab_version *v = &lab->versions[lab->run.versions];
    v->older = c->newest;
    v->value = lab_value_read(c->address, c->size);
    v->when = ++lab->run.stores;
    c->newest = (int32_t)lab->run.versions++;
    return v;
}

static void ensure_history(lab_cell *c)
{
    if (lab->options.model == MODEL_C11) {
        lab_c11_ensure_history(c);
        return;
    }
    if (c->newest >= 0 && lab->versions[c->newest].value == lab_value_read(c->address, c->size))
        return;
    if (!c->neighbour)
        memset(&c->release, 0, sizeof(c->release));
    c->newest = -1;
    c->neighbour = false;
    lab_version *v = new_version(c);
    v->writer = MAX_THREADS;
    v->when = 0;
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

void lab_atomic_forget(uintptr_t address, size_t size, u128 bits)
{
    const lab_granule *shadow = lab_memory_shadow(address);
    uint32_t number = shadow != NULL ? shadow->cell[address & 7] : NO_CELL;
    const lab_cell *c = &lab->cells[number];
    bool kept = number != NO_CELL && c->generation == lab->generation && keeps_versions(c) && c->newest >= 0 &&
                lab->versions[c->newest].value == lab_value_read(c->address, c->size);

    lab_value_write(address, size, lab_value_read(address, size) & ~bits);
    if (kept)
        lab->versions[c->newest].value = lab_value_read(c->address, c->size);
}

static void get(lab_thread *t, int order, const lab_vclock *release)
{
    lab_clock_join(acquires(order) ? &t->sync : &t->fence_acquire, release);
}

/* What a store leaves for a load that acquires it. */
static void give(lab_thread *t, lab_cell *c, uintptr_t address, size_t size, int order, bool rmw)
{
    c->stored = address;
    c->stored_size = (uint32_t)size;
    if (!rmw && !releases(order))
        memset(&c->release, 0, sizeof(c->release));
    if (releases(order)) {
        if (rmw)
            lab_clock_join(&c->release, &t->sync);
        else
            c->release = t->sync;
        t->sync.at[t->number]++;
    } else if (t->fenced) {
        lab_clock_join(&c->release, &t->fence_release);
    }
}

/* tso. */

static void store_version(lab_thread *t, lab_cell *c)
{
    if (!keeps_versions(c))
        return;
    lab_version *v = new_version(c);
    t->last_store = v->when;
    v->release = c->release;
    v->writer = (uint8_t)t->number;
}

static void empty_buffer(lab_thread *t)
{
    t->seen_until = lab->run.stores;
    t->last_store = 0;
}

/* The versions that were the newest at some time at which the load may have happened. */
static uint32_t find_visible(const lab_thread *t, const lab_cell *c, int32_t visible[MAX_VERSIONS])
{
    uint32_t count = 0;

    visible[count++] = c->newest;
    for (int32_t v = c->newest;; v = lab->versions[v].older) {
        const lab_version *newer = &lab->versions[v];

        if (newer->writer == t->number || newer->when <= t->seen_until || newer->older < 0)
            break;
        if (lab->versions[newer->older].when >= t->last_store)
            continue;
        if (count == MAX_VERSIONS) {
            lab_explore_cut(CUT_VERSIONS);
            break;
        }
        visible[count++] = newer->older;
    }
    return count;
}

static bool repeats_old(const lab_thread *t, uint32_t number, const lab_cell *c, uintptr_t pc)
{
    for (uint32_t i = 0; i < t->watched_count; i++) {
        const lab_watched *w = &t->watch[i];
        if (w->pc == pc && w->cell == number && w->callers == t->op.callers && w->version < c->newest)
            return true;
    }
    return false;
}

/* Which version a load reads; 0 is the newest. */
static int32_t choose_version(lab_thread *t, uint32_t number, const lab_cell *c, uintptr_t pc)
{
    int32_t visible[MAX_VERSIONS];
    uint32_t count = 1, index = 0;

    visible[0] = c->newest;
    if (!repeats_old(t, number, c, pc))
        count = find_visible(t, c, visible);
    if (lab->run.stale != 0)
        index = lab_explore_choose(count);
    else if (count > 1)
        lab_explore_cut(CUT_STALE);
    lab->run.stale -= index != 0 && lab->run.stale != UNLIMITED;
    const lab_version *v = &lab->versions[visible[index]];
    if (v->writer != t->number && v->when > t->seen_until)
        t->seen_until = v->when;
    return visible[index];
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
    t->op.acquires = false;
    t->op.accesses = 1;
    t->op.access[0] = (lab_access){number, write};
    if (lab->options.model == MODEL_TSO && (write || kind == OP_FENCE))
        t->op.access[t->op.accesses++] = (lab_access){lab_cell_pseudo(PSEUDO_STRONG), true};
}

static bool visible(uintptr_t address)
{
    return lab_sched_active() && !lab_memory_is_tls(address) && lab_memory_shadow(address) != NULL &&
           !lab_memory_is_statistic(address);
}

/* The step that was just made may have released a lock, or acquired it by a compare-exchange of its own. */
static void note_lock(lab_cell *c)
{
    if (c->lock_bit == 0)
        return;
    bool held = (lab_value_read(c->lock, c->lock_size) & c->lock_bit) != 0;
    if (held && c->locked <= c->unlocked)
        c->locked = (int32_t)lab->run.steps - 1;
    if (!held && c->locked > c->unlocked)
        c->unlocked = (int32_t)lab->run.steps - 1;
}

static void wrote(lab_thread *t, uint32_t number)
{
    note_lock(lab_cell_of(number));
    t->watched_count = 0;
    lab_spin_changed(number);
}

/* The announced step is made: a load of the newest value, or of an older one that the model allows. */
static u128 load(lab_thread *t, uintptr_t address, size_t size, int order, uintptr_t pc)
{
    uint32_t number = t->op.access[0].cell;
    lab_cell *c = lab_cell_of(number);
    int32_t version = -1;
    u128 value;

    if (!keeps_versions(c)) {
        lab_step_make(t, t->op.accesses, t->op.access);
        value = lab_value_read(address, size);
        get(t, order, &c->release);
    } else {
        ensure_history(c);
        if (is_c11(c)) {
            version = lab_c11_choose(t, number, &(lab_c11_request){.access = C11_LOAD, .order = order});
            lab_step_make(t, t->op.accesses, t->op.access);
            lab_c11_read(t, number, version, order);
        } else {
            lab_step_make(t, t->op.accesses, t->op.access);
            version = choose_version(t, number, c, pc);
            get(t, order, &lab->versions[version].release);
        }
        value = lab_c11_value(c, version, address, size);
    }
    lab_spin_watch(t, number, address, size, version, (uint64_t)value, pc);
    lab_report_event(OP_LOAD, address, size, order, (uint64_t)value, (uint64_t)value, version != c->newest && version >= 0,
                     pc);
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
    return load(t, address, size, order, pc);
}

u128 lab_atomic_ask(uintptr_t address, size_t size, uintptr_t pc)
{
    if (!visible(address))
        return lab_value_read(address, size);
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);

    announce(t, OP_LOAD, address, size, __ATOMIC_SEQ_CST, number, false, pc);
    lab_sched_point(t);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cell *c = lab_cell_of(number);
    if (keeps_versions(c))
        ensure_history(c);
    if (is_c11(c))
        lab_c11_read(t, number, c->newest, __ATOMIC_ACQUIRE);
    else
        get(t, __ATOMIC_ACQUIRE, &c->release);
    u128 value = lab_value_read(address, size);
    lab_spin_watch(t, number, address, size, c->newest, (uint64_t)value, pc);
    lab_report_event(OP_LOAD, address, size, __ATOMIC_SEQ_CST, (uint64_t)value, (uint64_t)value, false, pc);
    return value;
}

u128 lab_atomic_peek(uintptr_t address, size_t size, uintptr_t pc)
{
    if (!visible(address))
        return lab_value_read(address, size);
    lab_thread *t = lab->current;

    announce(t, OP_LOAD, address, size, __ATOMIC_RELAXED, lab_cell_find(address, size), false, pc);
    lab_sched_point(t);
    return load(t, address, size, __ATOMIC_RELAXED, pc);
}

/* c11: the access makes this value, right after that version. Returns the new one. */
static int32_t write_after(lab_thread *t, uint32_t number, int32_t after, uintptr_t address, size_t size, u128 value,
                           int order, bool modifies)
{
    lab_cell *c = lab_cell_of(number);
    u128 mask = (size == 16 ? ~(u128)0 : ((u128)1 << (8 * size)) - 1) << (8 * (address - c->address));
    u128 whole = (lab->versions[after].value & ~mask) | (value << (8 * (address - c->address)) & mask);

    c->stored = address;
    c->stored_size = (uint32_t)size;
    lab_c11_write(t, number, after, whole, order, modifies);
    lab_value_write(c->address, c->size, lab->versions[c->newest].value);
    return lab->versions[after].newer;
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
    lab_cell *c = lab_cell_of(number);
    u128 old = lab_value_read(address, size);
    /* A store to a part of the cell keeps the rest of it, and what that carried: like a read-modify-write. */
    if (is_c11(c)) {
        bool modifies = size != c->size;
        lab_c11_request request = {.access = modifies ? C11_MODIFY : C11_STORE, .order = order};

        ensure_history(c);
        int32_t after = lab_c11_choose(t, number, &request);
        lab_step_make(t, t->op.accesses, t->op.access);
        write_after(t, number, after, address, size, value, modifies && releases(order) ? __ATOMIC_RELEASE : order,
                    modifies);
    } else {
        lab_step_make(t, t->op.accesses, t->op.access);
        if (keeps_versions(c))
            ensure_history(c);
        lab_value_write(address, size, value);
        give(t, c, address, size, order, size != c->size);
        store_version(t, c);
        if (lab->options.weak && order == __ATOMIC_SEQ_CST)
            empty_buffer(t);
    }
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

/* sc, tso: reads the newest value and replaces it. */
static void replace(lab_thread *t, lab_cell *c, uintptr_t address, size_t size, u128 value, int order)
{
    if (lab->options.weak)
        empty_buffer(t);
    get(t, order, &c->release);
    lab_value_write(address, size, value);
    give(t, c, address, size, order, true);
    store_version(t, c);
    if (lab->options.weak)
        empty_buffer(t);
}

static u128 look_c11(lab_thread *t, uint32_t number, const lab_c11_request *request, int32_t *version)
{
    const lab_cell *c = lab_cell_of(number);

    *version = lab_c11_choose(t, number, request);
    return lab_c11_value(c, *version, request->address, request->size);
}

/* The announced read-modify-write, or compare-exchange: the value that it finds, and under c11 in which version. */
static inline u128 look(lab_thread *t, uint32_t number, bool compares, int failure, int32_t *version)
{
    lab_cell *c = lab_cell_of(number);

    *version = -1;
    if (keeps_versions(c))
        ensure_history(c);
    if (!is_c11(c))
        return lab_value_read(t->op.address, t->op.size);
    lab_c11_request request = {.access = C11_MODIFY, .order = t->op.order, .compares = compares, .failure = failure,
                               .expected = t->operand, .address = t->op.address, .size = t->op.size};
    return look_c11(t, number, &request, version);
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
    int32_t version;

    announce(t, OP_RMW, address, size, order, number, true, pc);
    t->operand = operand;
    t->rmw = (uint8_t)kind;
    lab_sched_point(t);
    lab_race_access(address, size, true, true, pc);
    u128 old = look(t, number, false, 0, &version);
    lab_step_make(t, t->op.accesses, t->op.access);
    lab_cell *c = lab_cell_of(number);
    u128 value = lab_value_combine(kind, old, operand, size);
    if (version >= 0)
        version = write_after(t, number, version, address, size, value, order, true);
    else
        replace(t, c, address, size, value, order);
    lab_report_event(OP_RMW, address, size, order, (uint64_t)old, (uint64_t)value, false, pc);
    if (value != old)
        wrote(t, number);
    else
        lab_spin_watch(t, number, address, size, version, (uint64_t)old, pc);
    return old;
}

u128 lab_atomic_change(lab_thread *t, uintptr_t address, size_t size, int order, u128 (*change)(u128 old, void *context),
                       void *context, uintptr_t pc)
{
    uint32_t number = t->op.access[0].cell;
    int32_t version;

    t->op.address = address;
    t->op.size = (uint8_t)size;
    t->op.order = (uint8_t)order;
    lab_race_access(address, size, true, true, pc);
    u128 old = look(t, number, false, 0, &version);
    lab_step_make(t, t->op.accesses, t->op.access);
    u128 value = change(old, context);
    if (version >= 0)
        write_after(t, number, version, address, size, value, order, true);
    else
        replace(t, lab_cell_of(number), address, size, value, order);
    wrote(t, number);
    return old;
}

u128 lab_atomic_lock(lab_thread *t, uintptr_t address, size_t size, uint64_t bit, uintptr_t pc)
{
    uint32_t number = t->op.access[0].cell;
    lab_cell *c = lab_cell_of(number);

    lab_race_access(address, size, true, true, pc);
    if (keeps_versions(c))
        ensure_history(c);
    u128 value = lab_value_read(address, size) | bit;
    lab_step_make(t, t->op.accesses, t->op.access);
    if (c->lock_bit == 0) {
        c->lock = address;
        c->lock_size = (uint32_t)size;
        c->lock_bit = bit;
        lab->cells_changed = true; /* the search starts over, and knows the lock from its first use */
    }
    if (is_c11(c)) /* the newest value is unlocked: hal/locks.c, 2 */
        write_after(t, number, c->newest, address, size, value, __ATOMIC_ACQUIRE, true);
    else
        replace(t, c, address, size, value, __ATOMIC_ACQUIRE);
    wrote(t, number);
    return value;
}

/* FALSE: it failed, and *expected is the value found. */
static bool compare_exchange(uintptr_t address, size_t size, u128 *expected, u128 desired, int order, int failure,
                             bool weak, uintptr_t pc)
{
    lab_thread *t = lab->current;
    uint32_t number = lab_cell_find(address, size);
    int32_t version;

    announce(t, OP_CAS, address, size, order, number, true, pc);
    t->operand = *expected;
    t->desired = desired;
    lab_sched_point(t);
    u128 old = look(t, number, true, failure, &version);
    bool success = old == *expected;
    if (success && weak && lab->run.weak_failures != 0 && lab_explore_choose(2) == 1) {
        lab->run.weak_failures--;
        success = false;
    }
    lab_access made[2] = {{number, success}, t->op.access[1]};
    lab_race_access(address, size, success, true, pc);
    lab_step_make(t, t->op.accesses, made);
    lab_cell *c = lab_cell_of(number);
    lab_report_event(OP_CAS, address, size, order, (uint64_t)old, (uint64_t)desired, !success, pc);
    *expected = old;
    if (success) {
        if (version >= 0)
            version = write_after(t, number, version, address, size, desired, order, true);
        else
            replace(t, c, address, size, desired, order);
        if (desired != old) {
            wrote(t, number);
            return true;
        }
    } else if (version >= 0) {
        lab_c11_read(t, number, version, failure);
    } else {
        if (lab->options.weak)
            empty_buffer(t);
        get(t, failure, &c->release);
    }
    lab_spin_watch(t, number, address, size, version, (uint64_t)old, pc);
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
    if (lab->options.model == MODEL_TSO && order == __ATOMIC_SEQ_CST) {
        announce(t, OP_FENCE, 0, 0, order, NO_CELL, false, pc);
        lab_sched_point(t);
        lab_step_make(t, t->op.accesses, t->op.access);
        empty_buffer(t);
    }
    if (lab->options.weak && order == __ATOMIC_SEQ_CST)
        lab_report_event(OP_FENCE, 0, 0, order, 0, 0, false, pc);
    if (acquires(order))
        lab_clock_join(&t->sync, &t->fence_acquire);
    if (lab->options.model == MODEL_C11 && order == __ATOMIC_SEQ_CST)
        lab_c11_fence(t);
    if (releases(order)) {
        t->fence_release = t->sync;
        t->fenced = true;
        t->sync.at[t->number]++;
    }
}

/* The thread's later loads read nothing older: coherence holds for what the machine reads too. It acquires nothing. */
void lab_atomic_observe(lab_thread *t, uint32_t number)
{
    lab_cell *c = lab_cell_of(number);

    if (number == NO_CELL || !is_c11(c))
        return;
    ensure_history(c);
    lab_c11_read(t, number, c->newest, __ATOMIC_RELAXED);
}

void lab_atomic_acquire(lab_thread *t, uint32_t number)
{
    lab_cell *c = lab_cell_of(number);

    if (is_c11(c))
        lab_c11_read(t, number, c->newest, __ATOMIC_ACQUIRE);
    else
        get(t, __ATOMIC_ACQUIRE, &c->release);
}

/* Every thread executes a full barrier. */
void lab_atomic_barrier_all(void)
{
    if (!lab_sched_active())
        return;
    if (lab->options.model == MODEL_C11)
        lab_c11_barrier_all();
    else if (lab->options.model == MODEL_TSO)
        for (uint32_t i = 0; i < lab->run.thread_count; i++)
            empty_buffer(&lab->run.threads[i]);
}

void lab_atomic_give(lab_thread *t, uint32_t number, bool adds)
{
    lab_cell *c = lab_cell_of(number);

    if (!adds) {
        memset(&c->release, 0, sizeof(c->release));
        memset(&c->beyond, 0, sizeof(c->beyond));
    }
    lab_clock_join(&c->release, &t->sync);
    lab_clock_join(&c->beyond, &t->beyond);
    t->sync.at[t->number]++;
}

/* Every acquire is a locked instruction. */
void lab_atomic_take(lab_thread *t, uint32_t number)
{
    const lab_cell *c = lab_cell_of(number);

    lab_clock_join(&t->sync, &c->release);
    lab_clock_join(&t->beyond, &c->beyond);
    if (lab->options.model == MODEL_TSO)
        empty_buffer(t);
}
