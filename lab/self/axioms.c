/*
 * axioms.c: the outcomes of small programs by the axioms of RC11, literally and without the explorer. All candidates
 * are enumerated: which compare-exchanges succeed, what each load reads, the order of the stores of each variable. A
 * candidate that satisfies the axioms is an execution. A read-modify-write is a load and a store, as in the paper. The
 * release sequence is that of C++20: a store, and read-modify-writes.
 *
 *     axioms FIRST COUNT    prints "number outcome" for each outcome of these programs
 *     axioms names          prints "number name" for all
 */
#include "shapes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MAX_EVENTS   40
#define MAX_OUTCOMES 4096

typedef uint64_t set;
typedef set relation[MAX_EVENTS]; /* [a] has b: a before b */

typedef struct event {
    char kind; /* W R F */
    int order;
    unsigned thread, position, variable, value;
    int partner; /* of a read-modify-write; -1 */
    const shape_access *from;
} event;

static program current;
static unsigned program_number;
static event events[MAX_EVENTS];
static int event_count;
static int reads[MAX_EVENTS], read_count; /* events */
static int source[MAX_EVENTS];            /* of a load */
static int order_of[SHAPE_VARIABLES][MAX_EVENTS], stores[SHAPE_VARIABLES];
static char outcomes[MAX_OUTCOMES][128];
static unsigned outcome_count;

static bool has(const relation r, int a, int b)
{
    return r[a] >> b & 1;
}

static void add(relation r, int a, int b)
{
    r[a] |= (set)1 << b;
}

static void unite(relation r, const relation other)
{
    for (int i = 0; i < event_count; i++)
        r[i] |= other[i];
}

/* to = a; b */
static void compose(relation to, const relation a, const relation b)
{
    relation result = {0};

    for (int i = 0; i < event_count; i++)
        for (set left = a[i]; left != 0; left &= left - 1)
            result[i] |= b[__builtin_ctzll(left)];
    memcpy(to, result, sizeof(relation));
}

static void close_up(relation r)
{
    for (int k = 0; k < event_count; k++)
        for (int i = 0; i < event_count; i++)
            if (has(r, i, k))
                r[i] |= r[k];
}

static bool is_irreflexive(const relation r)
{
    for (int i = 0; i < event_count; i++)
        if (has(r, i, i))
            return false;
    return true;
}

static bool is_acyclic(const relation r)
{
    relation closed;

    memcpy(closed, r, sizeof(closed));
    close_up(closed);
    return is_irreflexive(closed);
}

static void maybe(relation to, const relation r)
{
    memmove(to, r, sizeof(relation));
    for (int i = 0; i < event_count; i++)
        add(to, i, i);
}

static bool acquires(int i)
{
    return events[i].order == __ATOMIC_ACQUIRE || events[i].order == __ATOMIC_ACQ_REL ||
           events[i].order == __ATOMIC_SEQ_CST;
}

static bool releases(int i)
{
    return events[i].order == __ATOMIC_RELEASE || events[i].order == __ATOMIC_ACQ_REL ||
           events[i].order == __ATOMIC_SEQ_CST;
}

static bool is_strong(int i)
{
    return events[i].order == __ATOMIC_SEQ_CST;
}

static bool is_same_place(int a, int b)
{
    return events[a].kind != 'F' && events[b].kind != 'F' && events[a].variable == events[b].variable;
}

/* The initial stores are the first SHAPE_VARIABLES events; thread SHAPE_THREADS. */
static void make_sb(relation sb)
{
    memset(sb, 0, sizeof(relation));
    for (int a = 0; a < event_count; a++)
        for (int b = 0; b < event_count; b++)
            if (a != b && ((a < SHAPE_VARIABLES && b >= SHAPE_VARIABLES) ||
                           (a >= SHAPE_VARIABLES && events[a].thread == events[b].thread && a < b)))
                add(sb, a, b);
}

static void make_mo(relation mo)
{
    memset(mo, 0, sizeof(relation));
    for (unsigned v = 0; v < SHAPE_VARIABLES; v++)
        for (int i = 0; i < stores[v]; i++)
            for (int k = i + 1; k < stores[v]; k++)
                add(mo, order_of[v][i], order_of[v][k]);
}

/* The release events (stores, or fences before stores) of each store's head, to each load of its sequence. */
static void make_sw(relation sw, const relation sb)
{
    memset(sw, 0, sizeof(relation));
    for (int r = 0; r < read_count; r++) {
        int load = reads[r];
        for (int head = source[load];;) {
            for (int a = 0; a < event_count; a++) {
                bool begins = releases(a) && (a == head || (events[a].kind == 'F' && has(sb, a, head)));
                for (int b = 0; begins && b < event_count; b++)
                    if (acquires(b) && (b == load || (events[b].kind == 'F' && has(sb, load, b))))
                        add(sw, a, b);
            }
            if (events[head].partner < 0)
                break;
            head = source[events[head].partner]; /* the store that this read-modify-write has read */
        }
    }
}

static bool is_sequentially_consistent(const relation sb, const relation hb, const relation mo, const relation rb,
                                       const relation eco)
{
    relation elsewhere = {0}, scb, left = {0}, right = {0}, maybe_hb, psc, fences, way;

    for (int a = 0; a < event_count; a++)
        for (int b = 0; b < event_count; b++)
            if (has(sb, a, b) && !is_same_place(a, b))
                add(elsewhere, a, b);
    compose(scb, elsewhere, hb);
    compose(scb, scb, elsewhere);
    unite(scb, sb);
    unite(scb, mo);
    unite(scb, rb);
    for (int a = 0; a < event_count; a++)
        for (int b = 0; b < event_count; b++)
            if (has(hb, a, b) && is_same_place(a, b))
                add(scb, a, b);
    maybe(maybe_hb, hb);
    for (int a = 0; a < event_count; a++) {
        if (!is_strong(a))
            continue;
        add(left, a, a);
        add(right, a, a);
        if (events[a].kind != 'F')
            continue;
        left[a] |= maybe_hb[a];
        for (int b = 0; b < event_count; b++)
            if (has(maybe_hb, b, a))
                add(right, b, a);
    }
    compose(psc, left, scb);
    compose(psc, psc, right);
    compose(way, hb, eco);
    compose(way, way, hb);
    unite(way, hb);
    memset(fences, 0, sizeof(fences));
    for (int a = 0; a < event_count; a++)
        for (int b = 0; b < event_count; b++)
            if (has(way, a, b) && is_strong(a) && is_strong(b) && events[a].kind == 'F' && events[b].kind == 'F')
                add(fences, a, b);
    unite(psc, fences);
    return is_acyclic(psc);
}

static bool is_consistent(void)
{
    relation sb, mo, rf = {0}, rb = {0}, eco, sw, hb, broken;

    make_sb(sb);
    make_mo(mo);
    for (int r = 0; r < read_count; r++)
        add(rf, source[reads[r]], reads[r]);
    for (int r = 0; r < read_count; r++)
        rb[reads[r]] = mo[source[reads[r]]];
    memcpy(eco, rf, sizeof(eco));
    unite(eco, mo);
    unite(eco, rb);
    close_up(eco);
    make_sw(sw, sb);
    memcpy(hb, sb, sizeof(hb));
    unite(hb, sw);
    close_up(hb);
    if (!is_irreflexive(hb))
        return false;
    compose(broken, hb, eco);
    if (!is_irreflexive(broken) || !is_irreflexive(eco))
        return false;
    compose(broken, rb, mo); /* atomicity */
    for (int r = 0; r < read_count; r++)
        if (events[reads[r]].partner >= 0 && has(broken, reads[r], events[reads[r]].partner))
            return false;
    return is_sequentially_consistent(sb, hb, mo, rb, eco);
}

static void note_outcome(void)
{
    unsigned read[SHAPE_THREADS][SHAPE_LENGTH] = {{0}}, last[SHAPE_VARIABLES];
    char text[128];

    for (int r = 0; r < read_count; r++)
        read[events[reads[r]].thread][events[reads[r]].position] = events[source[reads[r]]].value;
    for (unsigned v = 0; v < SHAPE_VARIABLES; v++)
        last[v] = events[order_of[v][stores[v] - 1]].value;
    shape_write_outcome(&current, read, last, text);
    for (unsigned i = 0; i < outcome_count; i++)
        if (strcmp(outcomes[i], text) == 0)
            return;
    if (outcome_count == MAX_OUTCOMES)
        abort();
    strcpy(outcomes[outcome_count++], text);
    printf("%u %s\n", program_number, text);
}

/* All orders of the stores of the variables from v on; `placed` of v's are in place. The initial store comes first. */
static void try_orders(unsigned v, int placed)
{
    if (v == SHAPE_VARIABLES) {
        if (is_consistent())
            note_outcome();
        return;
    }
    if (placed >= stores[v]) {
        try_orders(v + 1, 1);
        return;
    }
    for (int i = placed; i < stores[v]; i++) {
        int other = order_of[v][placed];
        order_of[v][placed] = order_of[v][i];
        order_of[v][i] = other;
        try_orders(v, placed + 1);
        order_of[v][i] = order_of[v][placed];
        order_of[v][placed] = other;
    }
}

static void compute(int store)
{
    const event *load = &events[events[store].partner];
    unsigned found = events[source[events[store].partner]].value;

    events[store].value = load->from->kind == 'U' ? found + 10 : load->from->value;
}

/* The values follow from what is read; a cycle of sb and rf is not an execution. */
static bool find_values(void)
{
    relation way;

    make_sb(way);
    for (int r = 0; r < read_count; r++)
        add(way, source[reads[r]], reads[r]);
    if (!is_acyclic(way))
        return false;
    for (int round = 0; round < event_count; round++)
        for (int i = SHAPE_VARIABLES; i < event_count; i++)
            if (events[i].kind == 'W' && events[i].partner >= 0)
                compute(i);
    for (int r = 0; r < read_count; r++) {
        const event *load = &events[reads[r]];
        if (load->from->kind == 'C' && (events[source[reads[r]]].value == 0) != (load->partner >= 0))
            return false;
    }
    return true;
}

static void try_sources(int r)
{
    if (r == read_count) {
        if (find_values())
            try_orders(0, 1);
        return;
    }
    for (int w = 0; w < event_count; w++) {
        if (events[w].kind != 'W' || events[w].variable != events[reads[r]].variable || events[reads[r]].partner == w)
            continue;
        source[reads[r]] = w;
        try_sources(r + 1);
    }
}

static int new_event(char kind, unsigned t, unsigned i, const shape_access *a, int order)
{
    events[event_count] = (event){kind, order, t, i, a->variable, a->value, -1, a};
    if (kind == 'W')
        order_of[a->variable][stores[a->variable]++] = event_count;
    if (kind == 'R')
        reads[read_count++] = event_count;
    return event_count++;
}

/* succeed: a bit for each compare-exchange. */
static void try_program(unsigned succeed)
{
    event_count = read_count = 0;
    memset(stores, 0, sizeof(stores));
    for (unsigned v = 0; v < SHAPE_VARIABLES; v++)
        new_event('W', SHAPE_THREADS, 0, &(shape_access){.variable = v}, __ATOMIC_RELAXED);
    for (unsigned t = 0; t < SHAPE_THREADS; t++) {
        for (unsigned i = 0; i < SHAPE_LENGTH; i++) {
            const shape_access *a = &current.at[t][i];
            bool writes = a->kind == 'U' || a->kind == 'X';
            int order = a->order;

            if (a->kind == 0)
                continue;
            if (a->kind == 'W' || a->kind == 'R' || a->kind == 'F') {
                new_event(a->kind, t, i, a, order);
                continue;
            }
            if (a->kind == 'C') {
                writes = succeed & 1;
                order = writes ? order : a->failure;
                succeed >>= 1;
            }
            int load = new_event('R', t, i, a, order == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : order);
            if (!writes)
                continue;
            int store = new_event('W', t, i, a, order == __ATOMIC_ACQUIRE ? __ATOMIC_RELAXED : order);
            events[load].partner = store;
            events[store].partner = load;
        }
    }
    try_sources(0);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        for (unsigned n = 0; n < shape_count(); n++) {
            shape_program(n, &current);
            printf("%u %s\n", n, current.name);
        }
        return 0;
    }
    if (argc != 3)
        return 2;
    unsigned first = (unsigned)atoi(argv[1]), count = (unsigned)atoi(argv[2]);
    for (program_number = first; program_number < first + count && program_number < shape_count(); program_number++) {
        unsigned compares = 0;

        shape_program(program_number, &current);
        for (unsigned i = 0; i < SHAPE_THREADS * SHAPE_LENGTH; i++)
            compares += (&current.at[0][0])[i].kind == 'C';
        outcome_count = 0;
        for (unsigned succeed = 0; succeed < 1u << compares; succeed++)
            try_program(succeed);
    }
    return 0;
}
