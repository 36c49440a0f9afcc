/*
 * rc11.c: the memory model "c11": C11 as repaired by RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer 2017), with the release
 * sequences of C++20 and C23.
 *
 * An execution is a graph. Its events are the atomic accesses and the fences. Its relations are the order of each
 * thread's events (sb), which store each load reads (rf), and for each cell the order of its stores (mo). Of these
 *
 *   rb  = rf^-1; mo                          a load comes before the stores that are newer than the one it reads
 *   eco = (rf + mo + rb)+
 *   hb  = (sb + sw)+                         sw: a release, and an acquire that reads from its release sequence
 *
 * and a graph is an execution if
 *
 *   1. hb; eco? is irreflexive               coherence
 *   2. a read-modify-write comes right after the store that it reads, in mo
 *   3. psc = psc_base + psc_F is acyclic     sequentially consistent events:
 *        scb      = sb + sb|other cell; hb; sb|other cell + hb|same cell + mo + rb
 *        psc_base = ([SC] + [SC fence]; hb?); scb; ([SC] + hb?; [SC fence])
 *        psc_F    = [SC fence]; (hb + hb; eco; hb); [SC fence]
 *   4. sb + rf is acyclic                    no value out of thin air; excludes load buffering, which C11 allows
 *
 * By 4 every execution can be built one event at a time, so that a load finds the store that it reads. The explorer
 * does that: the order of steps is such an order, and no more. Where a load reads, and where in mo a store is inserted,
 * are choices. A step has nothing after it in hb, so 1 restricts it to the newest version that its thread has seen, and
 * newer ones: *seen* is a version whose store, or a load of it, happens before. Choosing the newest version is always
 * possible.
 *
 * By 3, a new event can close a cycle only by an edge to an existing event, and it has such edges only to the stores
 * that are newer than what it chose. So psc is checked only if there are such stores, and only if they, or fences, are
 * sequentially consistent. It is not stored: a search goes forward from these stores, and checks for two events at a
 * time whether an edge leads from one to the other.
 *
 * Independence: two events commute if they are on different cells, whatever their orders, because 1 to 4 do not
 * mention the order of steps. dpor tries an older version than the newest only if all newer stores precede the step, or
 * the store of that version, in the order of dependent steps. If one of them does not, then this step can come before
 * that store in another schedule, with the same graph, and that schedule is tried too.
 *
 * Plain accesses are not events. They are free of races, so they have one value, and they matter to 3 only if nothing
 * but a plain access lies between two accesses of one cell; ignoring that allows more, not less.
 */
#include "engine.h"

#define MAX_STRONG 2048 /* in a schedule: the search for cycles among them grows with their square */

#include "value.h"

#include <string.h>

static lab_c11_event *event_at(int32_t index)
{
    return &lab->c11_events[index];
}

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

u128 lab_c11_value(const lab_cell *c, int32_t version, uintptr_t address, size_t size)
{
    u128 value = lab->versions[version].value >> (8 * (address - c->address));
    return size == 16 ? value : value & (((u128)1 << (8 * size)) - 1);
}

static int32_t new_version(u128 value)
{
    if (lab->run.versions == MAX_STEPS)
        lab_sched_leave(RUN_TRUNCATED);
    lab_version *v = &lab->versions[lab->run.versions];
    v->value = value;
    v->older = v->newer = -1;
    v->step = NO_STEP;
    v->writer = MAX_THREADS;
    v->modifies = false;
    v->event = -1;
    v->clock = 0;
    memset(&v->release, 0, sizeof(v->release));
    memset(&v->beyond, 0, sizeof(v->beyond));
    memset(&v->read, 0xff, sizeof(v->read));
    memset(v->behind, 0, sizeof(v->behind));
    return (int32_t)lab->run.versions++;
}

/*
 * The history restarts when a plain access, or one that the explorer did not see, has written the variable: all threads
 * see that. If it wrote only a neighbour in the same cell, the variable still carries what its last store left.
 */
void lab_c11_ensure_history(lab_cell *c)
{
    u128 value = lab_value_read(c->address, c->size);

    if (c->newest >= 0 && lab->versions[c->newest].value == value)
        return;
    int32_t old = c->neighbour ? c->newest : -1;
    int32_t number = new_version(value);
    lab_version *v = &lab->versions[number];
    if (old >= 0) {
        v->release = lab->versions[old].release;
        v->beyond = lab->versions[old].beyond;
    }
    v->position = ++c->position;
    c->newest = number;
    c->neighbour = false;
}

static void insert(lab_cell *c, int32_t number, int32_t after)
{
    lab_version *v = &lab->versions[number], *older = &lab->versions[after];

    v->older = after;
    v->newer = older->newer;
    older->newer = number;
    v->position = older->position + 1;
    if (v->newer < 0)
        c->newest = number;
    else
        lab->versions[v->newer].older = number;
    for (int32_t n = v->newer; n >= 0; n = lab->versions[n].newer)
        lab->versions[n].position++;
    c->position = lab->versions[c->newest].position;
}

static bool knows(const lab_vclock *clock, const lab_vclock *reads)
{
    bool any = false;

    for (int i = 0; i < MAX_THREADS; i++)
        any |= reads->at[i] <= clock->at[i];
    return any;
}

static bool shows(const lab_vclock *clock, const lab_version *v)
{
    return v->writer == MAX_THREADS || v->clock <= clock->at[v->writer] || knows(clock, &v->read);
}

static bool has_seen(const lab_thread *t, const lab_version *v)
{
    return shows(&t->sync, v) || shows(&t->beyond, v);
}

/* Relations of events. */

static bool happens_before(const lab_c11_event *a, const lab_c11_event *b)
{
    return a->thread == b->thread ? a < b : a->clock <= b->before.at[a->thread];
}

/* Twice the position in mo, because an event that is not yet inserted is between two. */
static uint32_t write_position(const lab_c11_event *e)
{
    uint32_t position = 2 * lab->versions[e->version].position;
    return e == event_at((int32_t)lab->run.c11_events) ? position + 1 : position;
}

static uint32_t read_position(const lab_c11_event *e)
{
    const lab_version *v = &lab->versions[e->version];

    if (e->writes && e != event_at((int32_t)lab->run.c11_events))
        v = &lab->versions[v->older];
    return 2 * v->position;
}

/* Both events are on the same cell. */
static bool is_mo_or_rb(const lab_c11_event *a, const lab_c11_event *b)
{
    if (a == b || !b->writes)
        return false;
    return (a->writes && write_position(a) < write_position(b)) || (a->reads && read_position(a) < write_position(b));
}

/* Both events are on the same cell. An event reaches those that are at least on the level that it needs. */
static bool is_eco(const lab_c11_event *a, const lab_c11_event *b)
{
    uint32_t needed = a->writes ? 2 * write_position(a) + 1 : 2 * read_position(a) + 2;
    uint32_t level = b->writes ? 2 * write_position(b) : 2 * read_position(b) + 1;

    return a != b && level >= needed;
}

/* Both events are accesses. */
static bool is_scb(const lab_c11_event *a, const lab_c11_event *b)
{
    if (a->thread == b->thread && a < b)
        return true;
    if (a->cell == b->cell && (happens_before(a, b) || is_mo_or_rb(a, b)))
        return true;
    int32_t first = a->next;
    while (first >= 0 && event_at(first)->cell == a->cell)
        first = event_at(first)->next;
    return first >= 0 && b->elsewhere >= 0 &&
           (first == b->elsewhere || happens_before(event_at(first), event_at(b->elsewhere)));
}

static bool is_or_happens_before(int32_t a, const lab_c11_event *b)
{
    return a >= 0 && (event_at(a) == b || happens_before(event_at(a), b));
}

/* Through an access of the other event's cell. */
static bool fence_reaches(const lab_c11_event *fence, const lab_c11_event *b)
{
    if (b->previous >= 0 &&
        (event_at(b->previous) == fence || happens_before(fence, event_at(b->previous))))
        return true;
    for (int32_t i = lab->cells[b->cell].last_event; i >= 0; i = event_at(i)->on_cell) {
        const lab_c11_event *x = event_at(i);

        if (x != b && happens_before(fence, x) && (happens_before(x, b) || is_mo_or_rb(x, b)))
            return true;
    }
    return false;
}

static bool reaches_fence(const lab_c11_event *a, const lab_c11_event *fence)
{
    if (is_or_happens_before(a->next, fence))
        return true;
    for (int32_t i = lab->cells[a->cell].last_event; i >= 0; i = event_at(i)->on_cell) {
        const lab_c11_event *y = event_at(i);

        if (y != a && happens_before(y, fence) && (happens_before(a, y) || is_mo_or_rb(a, y)))
            return true;
    }
    return false;
}

static bool fence_reaches_fence(const lab_c11_event *a, const lab_c11_event *b)
{
    if (happens_before(a, b))
        return true;
    for (const lab_c11_event *x = a + 1; x < event_at((int32_t)lab->run.c11_events); x++) {
        if (x->cell == NO_CELL || !happens_before(a, x))
            continue;
        for (int32_t i = lab->cells[x->cell].last_event; i >= 0; i = event_at(i)->on_cell)
            if (happens_before(event_at(i), b) && is_eco(x, event_at(i)))
                return true;
    }
    return false;
}

static bool is_psc(const lab_c11_event *a, const lab_c11_event *b)
{
    if (a == b)
        return false;
    if (a->cell == NO_CELL)
        return b->cell == NO_CELL ? fence_reaches_fence(a, b) : fence_reaches(a, b);
    return b->cell == NO_CELL ? reaches_fence(a, b) : is_scb(a, b);
}

/* The search for a cycle through the new event, or through a fence before it. */

static void reach(int32_t strong, int32_t *stack, uint32_t *depth)
{
    if (lab->strong_seen[strong] == lab->strong_search)
        return;
    lab->strong_seen[strong] = lab->strong_search;
    stack[(*depth)++] = strong;
}

/* Is there a path from w to the fence that begins with hb, or, if the path to w begins at a fence, with rf; hb? */
static bool store_reaches_fence(const lab_c11_event *w, const lab_c11_event *fence, bool from_fence)
{
    if (happens_before(w, fence))
        return true;
    if (!from_fence)
        return false;
    for (int32_t i = lab->cells[w->cell].last_event; i >= 0; i = event_at(i)->on_cell) {
        const lab_c11_event *r = event_at(i);

        if (r->reads && read_position(r) == write_position(w) && happens_before(r, fence))
            return true;
    }
    return false;
}

/* The ends of new edges that begin at the new event, or at a fence before it. */
static uint32_t reach_first(const lab_c11_event *e, bool from_fence, int32_t *stack)
{
    uint32_t depth = 0;

    lab->strong_search++;
    for (int32_t n = lab->versions[e->version].newer; n >= 0; n = lab->versions[n].newer) {
        const lab_c11_event *w = event_at(lab->versions[n].event);

        for (uint32_t i = 0; i < lab->run.strong; i++) {
            const lab_c11_event *s = event_at(lab->strong[i]);
            if (s == w || (s->cell == NO_CELL && store_reaches_fence(w, s, from_fence)))
                reach((int32_t)i, stack, &depth);
        }
    }
    return depth;
}

static bool is_closed(const lab_c11_event *e, const lab_c11_event *from, bool from_fence)
{
    return from_fence ? from->cell == NO_CELL && happens_before(from, e) : is_psc(from, e);
}

static bool closes_cycle(const lab_c11_event *e, bool from_fence)
{
    int32_t *stack = lab->strong_stack;
    uint32_t depth = reach_first(e, from_fence, stack);
    while (depth != 0) {
        const lab_c11_event *a = event_at(lab->strong[stack[--depth]]);

        if (is_closed(e, a, from_fence))
            return true;
        for (uint32_t i = 0; i < lab->run.strong; i++)
            if (lab->strong_seen[i] != lab->strong_search && is_psc(a, event_at(lab->strong[i])))
                reach((int32_t)i, stack, &depth);
    }
    return false;
}

static bool is_fence_before(const lab_c11_event *e)
{
    for (uint32_t i = 0; i < lab->run.strong; i++) {
        const lab_c11_event *s = event_at(lab->strong[i]);
        if (s->cell == NO_CELL && happens_before(s, e))
            return true;
    }
    return false;
}

static bool is_strong_after(int32_t version)
{
    for (int32_t n = lab->versions[version].newer; n >= 0; n = lab->versions[n].newer)
        if (event_at(lab->versions[n].event)->strong)
            return true;
    return false;
}

/* The event that comes next, in the place after all others. */
static lab_c11_event *draft(const lab_thread *t, uint32_t number, int32_t version, lab_c11_access access, int order)
{
    if (lab->run.c11_events == 2 * MAX_STEPS - 1 || (order == __ATOMIC_SEQ_CST && lab->run.strong == MAX_STRONG))
        lab_sched_leave(RUN_TRUNCATED);
    lab_c11_event *e = event_at((int32_t)lab->run.c11_events);
    const lab_c11_event *last = t->last_event >= 0 ? event_at(t->last_event) : NULL;

    e->thread = (uint8_t)t->number;
    e->reads = access != C11_STORE;
    e->writes = access != C11_LOAD;
    e->strong = order == __ATOMIC_SEQ_CST;
    e->cell = number;
    e->clock = t->sync.at[t->number];
    e->version = version;
    e->previous = t->last_event;
    e->next = -1;
    e->elsewhere = last == NULL || last->cell != number ? t->last_event : last->elsewhere;
    e->on_cell = number != NO_CELL ? lab->cells[number].last_event : -1;
    e->before = t->sync;
    if (lab->run.barriers)
        lab_clock_join(&e->before, &t->beyond);
    if (e->reads && acquires(order) && version >= 0) {
        lab_clock_join(&e->before, &lab->versions[version].release);
        if (lab->run.barriers)
            lab_clock_join(&e->before, &lab->versions[version].beyond);
    }
    return e;
}

/* Whether axiom 3 permits the version. */
static bool is_possible(const lab_thread *t, uint32_t number, int32_t version, lab_c11_access access, int order)
{
    if (lab->versions[version].newer < 0)
        return true;
    if (lab->run.fences == 0 && (order != __ATOMIC_SEQ_CST || !is_strong_after(version)))
        return true;
    const lab_c11_event *e = draft(t, number, version, access, order);
    if (e->strong && closes_cycle(e, false))
        return false;
    return lab->run.fences == 0 || !is_fence_before(e) || !closes_cycle(e, true);
}

/* Choosing. */

static lab_c11_access access_at(const lab_c11_request *q, const lab_cell *c, int32_t version, int *order)
{
    *order = q->order;
    if (!q->compares)
        return q->access;
    if (lab_c11_value(c, version, q->address, q->size) == q->expected)
        return C11_MODIFY;
    *order = q->failure;
    return C11_LOAD;
}

/*
 * Every store becomes visible eventually, so a thread does not stay behind it forever. A loop that ends only if
 * something changes reads an old value once: reading it again leads to the same state.
 */
static bool stays_behind(const lab_thread *t, uint32_t number, int32_t version)
{
    const lab_version *v = &lab->versions[version];

    if (v->newer < 0)
        return false;
    for (uint32_t i = 0; i < t->watched_count; i++) {
        const lab_watched *w = &t->watch[i];

        if (w->cell == number && w->pc == t->op.pc && w->callers == t->op.callers && w->version >= 0 &&
            lab->versions[w->version].position >= v->position && lab_spin_is_endless(&t->op))
            return true;
    }
    if (v->behind[t->number] < lab->options.behind)
        return false;
    lab_explore_cut(CUT_BEHIND);
    return true;
}

/*
 * Do all newer stores precede the step, if it comes after this version? If one does not, the step and what precedes it
 * can come before that store.
 */
static bool all_newer_precede(const lab_thread *t, const lab_version *v)
{
    lab_vclock before = t->dep;

    if (v->step != NO_STEP)
        lab_clock_join(&before, &lab->steps[v->step].dep);
    for (int32_t n = v->newer; n >= 0; n = lab->versions[n].newer)
        if (!lab_step_happened_before(lab->versions[n].step, &before))
            return false;
    return true;
}

int32_t lab_c11_choose(lab_thread *t, uint32_t number, const lab_c11_request *q)
{
    lab_cell *c = lab_cell_of(number);
    int32_t found[MAX_VERSIONS];
    uint32_t count = 0;
    uint64_t tried = 0;

    if (t->no_step || has_seen(t, &lab->versions[c->newest]))
        return c->newest;
    for (int32_t v = c->newest; v >= 0; v = lab->versions[v].older) {
        const lab_version *at = &lab->versions[v];
        int order;
        lab_c11_access access = access_at(q, c, v, &order);

        if (count == MAX_VERSIONS) {
            lab_explore_cut(CUT_VERSIONS);
            break;
        }
        if ((access == C11_LOAD || at->newer < 0 || !lab->versions[at->newer].modifies) &&
            !stays_behind(t, number, v) && is_possible(t, number, v, access, order)) {
            tried |= (uint64_t)(!lab_dpor_leaves_old() || all_newer_precede(t, at)) << count;
            found[count++] = v;
        }
        if (has_seen(t, at))
            break;
    }
    if (lab->run.stale == 0 && tried != 1) {
        lab_explore_cut(CUT_STALE);
        tried = 1;
    }
    uint32_t index = lab_explore_choose_among(tried);
    lab->run.stale -= index != 0 && lab->run.stale != UNLIMITED;
    return found[index];
}

/* Making the event. */

static void append(lab_thread *t, lab_c11_event *e)
{
    int32_t number = (int32_t)lab->run.c11_events++;

    if (t->last_event >= 0)
        event_at(t->last_event)->next = number;
    t->last_event = number;
    if (e->cell != NO_CELL)
        lab->cells[e->cell].last_event = number;
    if (!e->strong)
        return;
    lab->strong[lab->run.strong++] = number;
    if (e->cell != NO_CELL && !(lab->cells[e->cell].strong_users >> t->number & 1)) {
        lab->cells[e->cell].strong_users |= 1u << t->number;
        lab->users_changes++;
    }
}

static void acquire(lab_thread *t, const lab_version *v, int order)
{
    if (!acquires(order)) {
        lab_clock_join(&t->fence_acquire, &v->release);
        return;
    }
    lab_clock_join(&t->sync, &v->release);
    if (lab->run.barriers)
        lab_clock_join(&t->beyond, &v->beyond);
}

static void note_read(lab_thread *t, lab_version *v)
{
    if (t->sync.at[t->number] < v->read.at[t->number])
        v->read.at[t->number] = t->sync.at[t->number];
}

static void note_behind(const lab_thread *t, lab_version *v)
{
    if (v->newer >= 0 && v->behind[t->number] != UINT8_MAX)
        v->behind[t->number]++;
}

void lab_c11_read(lab_thread *t, uint32_t number, int32_t version, int order)
{
    lab_version *v = &lab->versions[version];

    if (!t->no_step)
        append(t, draft(t, number, version, C11_LOAD, order));
    note_read(t, v);
    note_behind(t, v);
    acquire(t, v, order);
}

void lab_c11_write(lab_thread *t, uint32_t number, int32_t after, u128 value, int order, bool modifies)
{
    lab_cell *c = lab_cell_of(number);
    lab_c11_event *e = draft(t, number, after, modifies ? C11_MODIFY : C11_STORE, order);
    int32_t made = new_version(value);
    lab_version *v = &lab->versions[made];

    note_behind(t, &lab->versions[after]);
    memcpy(v->behind, lab->versions[after].behind, sizeof(v->behind));
    if (modifies) {
        note_read(t, &lab->versions[after]);
        acquire(t, &lab->versions[after], order);
        v->release = lab->versions[after].release;
        v->beyond = lab->versions[after].beyond;
    }
    v->writer = (uint8_t)t->number;
    v->clock = t->sync.at[t->number];
    v->step = t->last_step;
    v->modifies = modifies;
    if (releases(order)) {
        lab_clock_join(&v->release, &t->sync);
        if (lab->run.barriers)
            lab_clock_join(&v->beyond, &t->beyond);
        t->sync.at[t->number]++;
    } else if (t->fenced) {
        lab_clock_join(&v->release, &t->fence_release);
    }
    insert(c, made, after);
    v->event = (int32_t)lab->run.c11_events;
    append(t, e);
    e->version = made;
}

/* Sequentially consistent. It has nothing after it, so it is always possible. */
void lab_c11_fence(lab_thread *t)
{
    lab_states_give_up();
    append(t, draft(t, NO_CELL, -1, C11_LOAD, __ATOMIC_SEQ_CST));
    event_at(t->last_event)->reads = false;
    lab->run.fences++;
}

/*
 * Every thread executes a full barrier, at a place of its own: after the start of the caller's, and before its end.
 * That is more than C11 has, and it does not order plain accesses, which the compiler may move across it.
 */
void lab_c11_barrier_all(void)
{
    lab_thread *caller = lab->current;
    lab_vclock begin = caller->sync;

    lab->run.barriers = true;
    lab_clock_join(&begin, &caller->beyond);
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];

        lab_clock_join(&t->beyond, &t->fence_acquire);
        lab_clock_join(&caller->beyond, &t->sync);
        lab_clock_join(&caller->beyond, &t->beyond);
        lab_clock_join(&t->beyond, &begin);
        t->sync.at[t->number]++;
    }
}

/*
 * The state, for states.c: all of an execution that what comes later depends on, besides the newest values, which are in memory.
 *
 * A clock matters by which versions it shows. Of each cell a thread may choose the newest version that its clock shows, and newer
 * ones. So the *live* versions of a cell are those from the oldest that one of its users may choose. Of these the state has the
 * values in modification order, and what a thread that acquires them gets. A clock is replaced by its *view*: of each cell that has
 * several live versions, the newest that it shows. The view of two clocks that are joined is the newer of the two, cell by cell. A
 * version or a read that is still to come is shown by none of the clocks that there are, except for its own thread's: a thread's
 * clock advances when it is given to others.
 *
 * Axiom 3 decides nothing about a choice unless an access that is sequentially consistent chooses a version older than a
 * sequentially consistent store. Take the threads that make such accesses of a cell, in any schedule so far. While none of them
 * has such a store of the cell still to see, no later event has an edge of psc to a past one, so the past is in no cycle. Other
 * states are not noted, and a program with sequentially consistent fences is not searched by states. When a cell gets another
 * user, the search starts over.
 */
#define MAX_OPEN 64
#define MAX_USED 1024
#define MAX_LIVE 8192

typedef struct open_cell {
    const lab_cell *cell;
    const lab_vclock *first;     /* of each live version but the oldest, from the newest on: the clock shows it that has reached this */
    uint32_t base;               /* position of the oldest live version */
    uint32_t shown[MAX_THREADS]; /* to each thread; UINT32_MAX: it does not use the cell */
} open_cell;

/* Of the state whose hash is made. */
typedef struct lab_open_cells {
    uint32_t count;
    open_cell of[MAX_OPEN];
    uint32_t live_count;
    lab_vclock live[MAX_LIVE];
    /* All cells of this schedule, by their numbers. */
    uint32_t used_count;
    uint16_t used[MAX_USED];
    uint32_t bases[MAX_USED]; /* 0: it has no versions */
} open_cells;

/* The position of the newest version that one of the clocks shows. */
static uint32_t shown_position(const lab_cell *c, const lab_vclock *sync, const lab_vclock *beyond)
{
    int32_t v = c->newest;

    while (!shows(sync, &lab->versions[v]) && !shows(beyond, &lab->versions[v]) && lab->versions[v].older >= 0)
        v = lab->versions[v].older;
    return lab->versions[v].position;
}

/* How many live versions are older than the newest one that the clock shows. */
static uint32_t count_older(const open_cell *o, const lab_vclock *clock)
{
    uint32_t older = lab->versions[o->cell->newest].position - o->base;

    for (const lab_vclock *first = o->first; older != 0 && !knows(clock, first); first++)
        older--;
    return older;
}

/* A thread that does not exist yet will get the clock of one that does. */
static bool may_use(const lab_cell *c, const lab_thread *t)
{
    return t->state != THREAD_DONE && ((c->users >> t->number & 1) || c->users >> lab->run.thread_count != 0);
}

static bool has_versions(const lab_cell *c)
{
    return c->generation == lab->generation && c->size != 0 && c->size <= 16 && c->newest >= 0 && lab_cell_is_shared(c);
}

/* FALSE: psc may matter. */
static bool find_base(open_cell *o)
{
    const lab_cell *c = o->cell;

    o->base = lab->versions[c->newest].position;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        const lab_thread *t = &lab->run.threads[i];

        o->shown[i] = UINT32_MAX;
        if (!may_use(c, t))
            continue;
        uint32_t shown = shown_position(c, &t->sync, &t->beyond);
        bool strong = (c->strong_users >> i & 1) || c->users >> lab->run.thread_count != 0;
        for (int32_t v = c->newest; strong && v >= 0 && lab->versions[v].position > shown; v = lab->versions[v].older)
            if (lab->versions[v].event >= 0 && event_at(lab->versions[v].event)->strong)
                return false;
        o->shown[i] = shown;
        o->base = shown < o->base ? shown : o->base;
    }
    return true;
}

static bool is_nothing(const lab_vclock *clock)
{
    uint32_t any = 0;

    for (int i = 0; i < MAX_THREADS; i++)
        any |= clock->at[i];
    return any == 0;
}

/* 0: it shows no live version but the oldest ones, like a clock at the beginning. */
static uint64_t hash_view(const open_cells *open, const lab_vclock *clock)
{
    uint64_t hash = 0;

    if (is_nothing(clock))
        return 0;
    for (uint32_t i = 0; i < open->count; i++) {
        uint64_t older = count_older(&open->of[i], clock);

        if (older != 0)
            hash += lab_memory_hash_bytes(1, (uint64_t[]){i, older}, 2 * sizeof(uint64_t));
    }
    return lab->run.operations != 0 ? hash + lab_history_hash_view(clock) : hash;
}

static bool is_behind(const lab_version *v)
{
    uint64_t counts[MAX_THREADS / sizeof(uint64_t)], any = 0;

    memcpy(counts, v->behind, sizeof(counts));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        any |= counts[i];
    return any != 0;
}

/* A cell with one live version, which carries nothing, is like one that was not accessed yet: its value is in memory. */
static uint64_t hash_versions(const lab_cell *c, uint32_t base, const open_cells *open)
{
    uint64_t hash = c->address;
    bool matters = lab->versions[c->newest].position != base;

    for (int32_t i = c->newest; i >= 0 && lab->versions[i].position >= base; i = lab->versions[i].older) {
        const lab_version *v = &lab->versions[i];
        uint64_t parts[] = {(uint64_t)v->value, (uint64_t)(v->value >> 64), v->modifies, c->neighbour, c->stored, c->stored_size,
                            hash_view(open, &v->release), hash_view(open, &v->beyond)};

        matters |= parts[6] != 0 || parts[7] != 0 || is_behind(v);
        hash = lab_memory_hash_bytes(hash, parts, sizeof(parts));
        hash = lab_memory_hash_bytes(hash, v->behind, sizeof(v->behind));
    }
    return matters ? hash : 0;
}

/* A thread that has ended and that no thread joins: api.c. */
static bool is_gone(const lab_thread *t)
{
    return t->state == THREAD_DONE && t->from_table;
}

static uint64_t hash_thread(uint64_t hash, const lab_thread *t, const open_cells *open)
{
    if (is_gone(t))
        return hash * 3 + 1;
    uint64_t views[] = {hash_view(open, &t->sync), hash_view(open, &t->beyond), hash_view(open, &t->fence_acquire),
                        t->fenced ? hash_view(open, &t->fence_release) : 0};

    hash = lab_memory_hash_bytes(hash, views, sizeof(views));
    for (uint32_t i = 0; i < t->watched_count; i++) { /* what it will not read again: stays_behind */
        const lab_watched *w = &t->watch[i];
        uint64_t parts[] = {w->pc, w->cell, w->callers, w->value};

        if (lab_spin_is_endless(&(lab_operation){.pc = w->pc, .callers = w->callers}))
            hash = lab_memory_hash_bytes(hash, parts, sizeof(parts));
    }
    return hash;
}

/*
 * lab_c11_choose leaves an old version to another schedule if a newer store does not precede the step. So where it does, the state
 * has for which threads that is still open: those that may choose an older version than that store, and whose steps it does not
 * precede. For these the state has which steps the store precedes that one of theirs may come to depend on.
 */
static uint16_t find_undecided(const open_cell *o, const lab_version *v)
{
    uint16_t undecided = 0;

    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (o->shown[i] < v->position && !lab_step_happened_before(v->step, &lab->run.threads[i].dep))
            undecided |= LAB_BIT(i);
    return undecided;
}

static uint64_t hash_order_after(uint64_t hash, int32_t step, const open_cells *open)
{
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        hash = hash * 3 + (!is_gone(&lab->run.threads[i]) && lab_step_happened_before(step, &lab->run.threads[i].dep));
    for (uint32_t i = 0; i < open->used_count; i++) {
        const lab_cell *c = &lab->cells[open->used[i]];

        if (!lab_cell_is_shared(c))
            continue;
        uint64_t bits = c->last_write != NO_STEP && lab_step_happened_before(step, &lab->steps[c->last_write].dep);
        for (uint32_t readers = c->readers; readers != 0; readers &= readers - 1)
            bits |= (uint64_t)lab_step_happened_before(step, &lab->steps[c->read[__builtin_ctz(readers)]].dep)
                    << (1 + __builtin_ctz(readers));
        if (bits != 0)
            hash = lab_memory_hash_bytes(hash, (uint64_t[]){open->used[i], bits}, 2 * sizeof(uint64_t));
    }
    return hash;
}

static uint64_t hash_order(uint64_t hash, const open_cell *o, const open_cells *open)
{
    const lab_cell *c = o->cell;

    for (int32_t i = c->newest; i >= 0 && lab->versions[i].position > o->base; i = lab->versions[i].older) {
        const lab_version *v = &lab->versions[i];
        uint16_t undecided = v->step != NO_STEP ? find_undecided(o, v) : 0;

        hash = hash * 3 + undecided;
        if (undecided == 0)
            continue;
        hash = hash_order_after(hash, v->step, open);
        for (int32_t j = c->newest; j >= 0 && lab->versions[j].position >= o->base; j = lab->versions[j].older)
            hash = hash * 3 + (lab->versions[j].step != NO_STEP &&
                               lab_step_happened_before(v->step, &lab->steps[lab->versions[j].step].dep));
    }
    return hash;
}

static bool find_used(open_cells *open)
{
    open->used_count = 0;
    if (lab->touched_cell_count > MAX_USED)
        return false;
    for (uint32_t i = 0; i < lab->touched_cell_count; i++) {
        uint16_t number = lab->touched_cells[i];
        uint32_t at = open->used_count++;

        for (; at != 0 && open->used[at - 1] > number; at--)
            open->used[at] = open->used[at - 1];
        open->used[at] = number;
    }
    return true;
}

static bool note_live(open_cells *open, open_cell *o)
{
    o->first = &open->live[open->live_count];
    for (int32_t i = o->cell->newest; lab->versions[i].position > o->base; i = lab->versions[i].older) {
        const lab_version *v = &lab->versions[i];

        if (open->live_count == MAX_LIVE)
            return false;
        lab_vclock *first = &open->live[open->live_count++];
        *first = v->read;
        if (v->writer == MAX_THREADS)
            first->at[0] = 0; /* every clock does */
        else if (v->clock < first->at[v->writer])
            first->at[v->writer] = v->clock;
    }
    return true;
}

static bool find_open(open_cells *open)
{
    open->count = 0;
    open->live_count = 0;
    for (uint32_t i = 0; i < open->used_count; i++) {
        const lab_cell *c = &lab->cells[open->used[i]];
        open_cell *o = &open->of[open->count];

        open->bases[i] = 0;
        if (!has_versions(c))
            continue;
        o->cell = c;
        if (!find_base(o) || !note_live(open, o))
            return false;
        open->bases[i] = o->base;
        open->count += o->base != lab->versions[c->newest].position;
        if (open->count == MAX_OPEN)
            return false;
    }
    return true;
}

uint64_t lab_c11_hash(void)
{
    uint64_t hash = 1;

    if (lab->open_cells == NULL)
        lab->open_cells = lab_memory_map(sizeof(*lab->open_cells));
    open_cells *open = lab->open_cells;
    if (lab->start.reuses != 0 || !find_used(open) || !find_open(open))
        return 0;
    for (uint32_t i = 0; i < open->used_count; i++) {
        const lab_cell *c = &lab->cells[open->used[i]];
        uint64_t parts[] = {open->used[i], open->bases[i] != 0 ? hash_versions(c, open->bases[i], open) : 0,
                            hash_view(open, &c->release), hash_view(open, &c->beyond)};
        if (parts[1] != 0 || parts[2] != 0 || parts[3] != 0)
            hash = lab_memory_hash_bytes(hash, parts, sizeof(parts));
    }
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        hash = hash_thread(hash, &lab->run.threads[i], open);
    for (uint32_t i = 0; lab_dpor_leaves_old() && i < open->count; i++)
        hash = hash_order(hash, &open->of[i], open);
    return hash | 1;
}
