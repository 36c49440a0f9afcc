/*
 * access.c: the cost of an access. The sanitizer's entry points lead here, as they lead to atomic.c and race.c in the
 * explorer.
 *
 * A machine with many processors spends most of its time in loops that wait for a change. Nothing happens in them: the
 * line is in the cache, and the same value is loaded again. A thread that repeats a load at the same place without
 * having done anything else is in such a loop. Each iteration costs PAUSE_CYCLES, for the pause in the loop, which is
 * not visible here. After a few iterations the thread leaves the queue until another processor takes one of the loop's
 * lines from its cache, or for SPIN_CYCLES, since a loop may count its iterations. Then it catches up: it runs in the
 * past, where its own cache still hits, until its clock reaches the present. So the code executes every iteration that
 * it would have executed, at the right time, without a visit to the queue in between. A loop that ends by itself in the
 * past continues in the present, at most SPIN_CYCLES late.
 */
#include "machine.h"

#include "../engine/value.h"

#include <stdlib.h>

#define SPIN_CYCLES    2000
#define TURNS_IN_QUEUE 3
#define PLACES         1024 /* a power of two */

static access_place places[PLACES];

void access_lines_from_here(void)
{
    memset(places, 0, sizeof(places));
}

static void note_place(uintptr_t pc, uintptr_t address, cache_line_kind kind)
{
    size_t at = (pc * 0x9E3779B97F4A7C15ull) >> 32 & (PLACES - 1);

    for (size_t tries = 0; places[at].pc != 0 && places[at].pc != pc; tries++) {
        if (tries == PLACES)
            return;
        at = (at + 1) & (PLACES - 1);
    }
    places[at].pc = pc;
    places[at].address = address;
    places[at].remote[kind]++;
}

static uint64_t total(const access_place *p)
{
    return p->remote[KIND_OTHER] + p->remote[KIND_LOCK] + p->remote[KIND_DATA];
}

static int by_total(const void *a, const void *b)
{
    uint64_t first = total(a), second = total(b);
    return first != second ? (first < second ? 1 : -1) : 0;
}

size_t access_places(access_place *into, size_t room)
{
    size_t count = 0;

    qsort(places, PLACES, sizeof(places[0]), by_total);
    while (count < room && count < PLACES && total(&places[count]) != 0) {
        into[count] = places[count];
        count++;
    }
    return count;
}

/* Loops. */

static void forget_loop(scale_thread *t)
{
    t->load_count = 0;
    t->marker = NULL;
    t->turns = 0;
}

/* A loop may read several words: any of them may end it. */
static bool is_line_of_loop(const scale_thread *t, const cache_line *line)
{
    for (uint32_t i = 0; i < t->load_count; i++)
        if (t->loads[i].address / CACHE_LINE == line->address)
            return true;
    return false;
}

void access_line_taken(uint32_t processor, const cache_line *line)
{
    scale_thread *t = machine_thread(processor);

    if (t->watches && is_line_of_loop(t, line))
        machine_hurry(t, machine_current()->clock > t->clock ? machine_current()->clock : t->clock);
}

static void sleep_until_taken(scale_thread *t)
{
    t->watches = true;
    machine_queue(t, t->clock + SPIN_CYCLES);
    machine_leave();
    t->watches = false;
    t->catches_up_with = t->key;
}

static bool is_load(const scale_load *load, uintptr_t address, uintptr_t pc)
{
    return load->pc == pc && load->address == address;
}

static scale_load *find_load(scale_thread *t, uintptr_t address, uintptr_t pc)
{
    for (uint32_t i = 0; i < t->load_count; i++)
        if (is_load(&t->loads[i], address, pc))
            return &t->loads[i];
    return NULL;
}

/* A cache hit: is it an iteration of a loop? */
static void note_load(scale_thread *t, uintptr_t address, u128 value, uintptr_t pc)
{
    scale_load *load = find_load(t, address, pc);

    if (load != NULL && load->value != value) {
        forget_loop(t);
        load = NULL;
    }
    if (load == NULL) {
        if (t->load_count == MAX_SPIN_LOADS)
            forget_loop(t);
        t->loads[t->load_count++] = (scale_load){pc, address, value};
        return;
    }
    if (t->marker == NULL)
        t->marker = load;
    if (t->marker == load && ++t->turns >= TURNS_IN_QUEUE)
        sleep_until_taken(t);
}

/* Accesses. */

/*
 * A transfer begins when earlier transfers of the same line have ended. The first half is the request's way to the
 * cache that has the line, or will have it by then: until it arrives, that cache can still use the line. The second
 * half is the way back, which is returned.
 */
static uint64_t fetch_line(scale_thread *t, cache_line *line, bool write)
{
    uint64_t own = 1ull << cache_node(t->base.number);
    bool moves = t->clock < line->busy_until;
    uint64_t start = moves ? line->busy_until : t->clock;
    bool crosses = !moves  ? cache_crosses(line, t->base.number, write)
                   : write ? line->wanted_in != own
                           : (line->wanted_in & own) == 0;
    uint64_t cycles = crosses ? NODE_CYCLES : LINE_CYCLES;

    line->wanted_in = write ? own : line->wanted_in | own;
    line->busy_until = start + cycles;
    t->clock = start + cycles / 2;
    machine_take_turn(t);
    return cycles / 2;
}

/* TRUE: a hit in the thread's own cache. */
static bool access_line(scale_thread *t, uintptr_t address, bool write, bool locked, uintptr_t pc)
{
    cache_line *line = cache_find(address);

    if (t->clock < t->catches_up_with) {
        if (cache_has(line, t->base.number, write)) {
            t->clock += locked ? LOCKED_CYCLES : HIT_CYCLES;
            return true;
        }
        t->clock = t->catches_up_with;
    }
    machine_take_turn(t);
    bool hit = cache_has(line, t->base.number, write);
    uint64_t way_back = hit ? 0 : fetch_line(t, line, write);
    if (cache_access(line, t->base.number, write) != CACHE_COLD && !hit)
        note_place(pc, address, (cache_line_kind)line->kind);
    t->clock += hit ? (locked ? LOCKED_CYCLES : HIT_CYCLES) : way_back;
    return hit;
}

static bool is_on_own_stack(const scale_thread *t, uintptr_t address)
{
    return address - (uintptr_t)t->base.stack < STACK_SIZE;
}

static bool access_bytes(uintptr_t address, size_t size, bool write, bool locked, uintptr_t pc)
{
    scale_thread *t = machine_current();
    bool hit = true;

    for (uintptr_t at = address & ~(uintptr_t)(CACHE_LINE - 1); at < address + size; at += CACHE_LINE)
        hit &= access_line(t, at < address ? address : at, write, locked, pc);
    if (!hit || locked || (write && !is_on_own_stack(t, address)))
        forget_loop(t);
    return hit;
}

static bool is_seen(uintptr_t address)
{
    return lab_sched_active() && !lab_memory_is_tls(address);
}

void lab_race_access(uintptr_t address, size_t size, bool write, bool atomic, uintptr_t pc)
{
    (void)atomic;
    access_bytes(address, size, write, false, pc);
}

u128 lab_atomic_load(uintptr_t address, size_t size, int order, uintptr_t pc)
{
    (void)order;
    if (!is_seen(address))
        return lab_value_read(address, size);
    scale_thread *t = machine_current();
    if (t->marker != NULL && is_load(t->marker, address, pc)) {
        t->clock += PAUSE_CYCLES;
        if (t->clock < t->catches_up_with)
            return t->marker->value;
    }
    bool hit = access_bytes(address, size, false, false, pc);
    u128 value = lab_value_read(address, size);
    if (hit)
        note_load(t, address, value, pc);
    return value;
}

u128 lab_atomic_peek(uintptr_t address, size_t size, uintptr_t pc)
{
    return lab_atomic_load(address, size, __ATOMIC_RELAXED, pc);
}

void lab_atomic_store(uintptr_t address, size_t size, u128 value, int order, uintptr_t pc)
{
    if (is_seen(address))
        access_bytes(address, size, true, order == __ATOMIC_SEQ_CST, pc);
    lab_value_write(address, size, value);
}

void lab_atomic_touch(uintptr_t address, size_t size, uintptr_t pc)
{
    if (is_seen(address))
        access_bytes(address, size, true, false, pc);
}

u128 lab_atomic_rmw(uintptr_t address, size_t size, lab_rmw_kind kind, u128 operand, int order, uintptr_t pc)
{
    (void)order;
    if (is_seen(address))
        access_bytes(address, size, true, true, pc);
    u128 old = lab_value_read(address, size);
    lab_value_write(address, size, lab_value_combine(kind, old, operand, size));
    return old;
}

/* A failed one also takes the line. */
u128 lab_atomic_cas(uintptr_t address, size_t size, u128 expected, u128 desired, int order, int failure, uintptr_t pc)
{
    (void)order;
    (void)failure;
    if (is_seen(address))
        access_bytes(address, size, true, true, pc);
    u128 old = lab_value_read(address, size);
    if (old == expected)
        lab_value_write(address, size, desired);
    return old;
}

bool lab_atomic_cas_weak(uintptr_t address, size_t size, u128 *expected, u128 desired, int order, int failure,
                         uintptr_t pc)
{
    u128 wanted = *expected;

    *expected = lab_atomic_cas(address, size, wanted, desired, order, failure, pc);
    return *expected == wanted;
}

void lab_atomic_fence(int order, uintptr_t pc)
{
    (void)order;
    (void)pc;
    if (lab_sched_active())
        machine_pass(LOCKED_CYCLES);
}

/* Memory is not reused. */
char *lab_reuse_choose(size_t size, size_t alignment)
{
    (void)size;
    (void)alignment;
    return NULL;
}

void lab_reuse_begin_free(uintptr_t pc)
{
    (void)pc;
}

void lab_reuse_end_free(char *address)
{
    (void)address;
}

/* This machine counts cache lines and does not choose when interrupts come. */
void lab_step_plain(lab_thread *t, uintptr_t address, uintptr_t pc)
{
    (void)t;
    (void)address;
    (void)pc;
}

void lab_atomic_plain_write(uintptr_t address, size_t size)
{
    (void)address;
    (void)size;
}

void lab_atomic_barrier_all(void)
{
}
