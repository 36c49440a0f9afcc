/*
 * shapes.h: small programs of atomic accesses, by number: the shapes that herd7's and GenMC's litmus tests name, with
 * the orders that matter, and random ones. shapes.c explores them; axioms.c says, from the axioms of RC11, which
 * outcomes they have.
 *
 * A shape is text. Threads are separated by |, accesses by blanks: W store, R load, U fetch-add of 10, X exchange,
 * C compare-exchange from 0, F fence; then the variable, and the value that is stored. An order follows a colon, or is
 * chosen: each of the three of a load or a store; relaxed, acquire-release or sequentially consistent for the others.
 */
#ifndef LAB_SHAPES_H
#define LAB_SHAPES_H

#include <stdio.h>
#include <string.h>

#define SHAPE_THREADS   4
#define SHAPE_LENGTH    4
#define SHAPE_VARIABLES 4
#define SHAPE_RANDOM    600

typedef struct shape_access {
    char kind;  /* W R U X C F; 0: none */
    int order;  /* __ATOMIC_ */
    int failure; /* of C */
    unsigned variable;
    unsigned value;
} shape_access;

typedef struct program {
    char name[24];
    shape_access at[SHAPE_THREADS][SHAPE_LENGTH];
} program;

typedef struct shape {
    const char *name, *text;
    unsigned orders; /* 3: each; 2: acquire or release and sequentially consistent only */
} shape;

static const shape shapes[] = {
    /* One variable. */
    {"CoRR", "Wx1 | Rx Rx", 3},
    {"CoRR2", "Wx1 | Wx2 | Rx Rx | Rx:r Rx:r", 3},
    {"CoWW", "Wx1 Wx2 | Rx Rx", 3},
    {"CoWR", "Wx1 Rx | Wx2 Rx:r", 3},
    {"CoRW1", "Rx Wx1 | Wx2", 3},
    {"CoRW2", "Rx Wx1 | Wx2 Rx", 3},
    {"Co-two-adds", "Ux Rx | Ux Rx", 3},
    {"Co-exchange", "Xx1 Rx | Xx2 Wx3", 3},
    {"Co-add-between", "Wx1 Wx2 | Ux Rx", 3},
    {"Co-compare", "Cx1 Rx | Cx2 Wx3", 3},
    /* Two variables, two threads. */
    {"SB", "Wx1 Ry | Wy1 Rx", 3},
    {"MP", "Wx1 Wy1 | Ry Rx", 3},
    {"LB", "Rx Wy1 | Ry Wx1", 3},
    {"S", "Wx2 Wy1 | Ry Wx1", 3},
    {"R", "Wx1 Wy1 | Wy2 Rx", 3},
    {"2+2W", "Wx1 Wy2 | Wy1 Wx2", 3},
    {"SB+add", "Wx1 Uy | Wy1 Ux", 3},
    {"SB+adds", "Ux Ry | Uy Rx", 3},
    {"SB+exchange", "Wx1 Xy2 | Wy1 Xx2", 3},
    {"SB+compare", "Wx1 Cy2 | Wy1 Cx2", 3},
    {"MP+add", "Wx1 Uy | Uy Rx", 3},
    {"MP+compare", "Wx1 Wy1 | Cy2 Rx", 3},
    {"MP+exchange", "Wx1 Xy1 | Ry Xx2", 3},
    {"S+add", "Wx2 Uy | Uy Wx1", 3},
    {"R+add", "Wx1 Uy | Wy2 Ux", 3},
    {"2+2W+adds", "Wx1 Uy | Wy1 Ux", 3},
    {"2+2W+exchanges", "Xx1 Xy2 | Xy1 Xx2", 3},
    {"SB+own", "Wx1 Rx:r Ry | Wy1 Ry:r Rx", 3},
    {"SB+unlock", "Wx1 Wz1:r Ry | Wy1 Wz2:r Rx", 3},
    /* Fences. */
    {"SB+fences", "Wx1 F Ry | Wy1 F Rx", 2},
    {"SB+fence-weak", "Wx1:r F Ry:r | Wy1:r F Rx:r", 3},
    {"SB+fence-one", "Wx1:r F:s Ry:r | Wy1 Rx", 3},
    {"MP+fences", "Wx1:r F Wy1:r | Ry:r F Rx:r", 3},
    {"MP+fence-one", "Wx1 F:s Wy1 | Ry Rx", 3},
    {"S+fences", "Wx2:r F Wy1:r | Ry:r F Wx1:r", 3},
    {"R+fences", "Wx1:r F Wy1:r | Wy2:r F Rx:r", 3},
    {"R+fence-one", "Wx1 Wy1 | Wy2 F:s Rx", 3},
    {"2+2W+fences", "Wx1:r F Wy2:r | Wy1:r F Wx2:r", 3},
    {"LB+fences", "Rx:r F Wy1:r | Ry:r F Wx1:r", 3},
    {"WRC+fences", "Wx1:r | Rx:r F Wy1:r | Ry:r F Rx:r", 3},
    {"RWC+fences", "Wx1 | Rx F Ry:r | Wy1:r F Rx:r", 3},
    {"IRIW+fences", "Wx1:r | Wy1:r | Rx:r F Ry:r | Ry:r F Rx:r", 3},
    {"IRIW+fence-one", "Wx1 | Wy1 | Rx:r F:s Ry:r | Ry Rx", 3},
    {"W+RWC+fences", "Wx1:r F Wy1 | Ry F Rz:r | Wz1:r F:s Rx:r", 3},
    {"RWC+syncs", "Wx1:r | Rx:q F:s Ry:r | Wy1:r F:s Rx:r", 3},
    {"fence-adds", "Wx1:r F Uy:r | Uy:r F Rx:r", 3},
    /* Release sequences. */
    {"sequence", "Wx1:r Wy1 | Uy:r | Ry Rx:r", 3},
    {"sequence-store", "Wx1:r Wy1 Wy2:r | Ry Rx:r", 3},
    {"sequence-other", "Wx1:r Wy1 | Wy2 | Ry Rx:r", 3},
    {"sequence-two", "Wx1:r Wy1:l | Uy Uy:r | Ry:q Rx:r", 3},
    {"sequence-fence", "Wx1:r F:l Wy1:r | Uy:r | Ry F Rx:r", 3},
    {"sequence-compare", "Wx1:r Wy1 | Wz1:r Cy3 | Ry:q Rx:r Rz:r", 3},
    /* Three and four threads. */
    {"WRC", "Wx1 | Rx Wy1 | Ry Rx", 3},
    {"RWC", "Wx1 | Rx Ry | Wy1 Rx", 3},
    {"WWC", "Wx2 | Rx Wy1 | Ry Wx1", 3},
    {"WRW+WR", "Wx1 | Rx Wy1 | Wy2 Rx", 3},
    {"WRW+2W", "Wx2 | Rx Wy1 | Wy2 Wx1", 3},
    {"WRR+2W", "Wx2 | Rx Ry | Wy1 Wx1", 3},
    {"IRIW", "Wx1 | Wy1 | Rx Ry | Ry Rx", 3},
    {"IRRWIW", "Wx2 | Wy1 | Rx Ry | Ry Wx1", 2},
    {"IRWIW", "Wx2 | Wy2 | Rx Wy1 | Ry Wx1", 2},
    {"ISA2", "Wx1 Wy1 | Ry Wz1 | Rz Rx", 2},
    {"W+RWC", "Wx1 Wy1 | Ry Rz | Wz1 Rx", 3},
    {"3.SB", "Wx1 Ry | Wy1 Rz | Wz1 Rx", 2},
    {"3.LB", "Rx Wy1 | Ry Wz1 | Rz Wx1", 2},
    {"3.2W", "Wx1 Wy2 | Wy1 Wz2 | Wz1 Wx2", 2},
    {"Z6.0", "Wx1 Wy1 | Ry Wz1 | Wz2 Rx", 2},
    {"Z6.1", "Wx2 Wy1 | Wy2 Wz1 | Rz Wx1", 2},
    {"Z6.2", "Wx2 Wy1 | Ry Wz1 | Rz Wx1", 2},
    {"Z6.3", "Wx1 Wy1 | Wy2 Wz1 | Rz Rx", 2},
    {"Z6.4", "Wx1 Wy1 | Wy2 Rz | Wz1 Rx", 2},
    {"Z6.5", "Wx1 Wy1 | Wy2 Wz1 | Wz2 Rx", 2},
    {"Z6.U", "Wx1:s Wy1 | Uy Ry:r | Wy3 Rx:s", 3},
    {"Z6.U+exchange", "Wx1:s Wy1:l | Xy2 Ry:r | Wy3:s Rx", 3},
    {"dekker-three", "Wx1 Ry Wz1:r | Wy1 Rx Rz:r", 3},
    {"rcu", "Wx1 Ry Wx2:l | Wy1 Rx", 3},
    {"3.SB+fences", "Wx1:r F Ry:r | Wy1:r F Rz:r | Wz1:r F Rx:r", 3},
    {"Z6.3+fences", "Wx1:r F Wy1:r | Wy2:r F Wz1:r | Rz:r F Rx:r", 3},
    {"MP+chain", "Wx1:r Wy1 | Uy Wz1 | Rz Rx:r", 3},
};

static inline int shape_order(char kind, unsigned choice)
{
    static const int weak[] = {__ATOMIC_RELAXED, 0, __ATOMIC_SEQ_CST};

    if (choice != 1)
        return weak[choice];
    return kind == 'R' ? __ATOMIC_ACQUIRE : kind == 'W' ? __ATOMIC_RELEASE : __ATOMIC_ACQ_REL;
}

static inline int shape_named_order(char name)
{
    return name == 'r'   ? __ATOMIC_RELAXED
           : name == 'q' ? __ATOMIC_ACQUIRE
           : name == 'l' ? __ATOMIC_RELEASE
           : name == 'a' ? __ATOMIC_ACQ_REL
                         : __ATOMIC_SEQ_CST;
}

/* How many accesses of the shape have an order to choose. */
static inline unsigned shape_free(const shape *s)
{
    unsigned count = 0;

    for (const char *at = s->text; *at != '\0'; at++)
        count += strchr("WRUXCF", *at) != NULL;
    for (const char *at = s->text; *at != '\0'; at++)
        count -= *at == ':';
    return count;
}

static inline unsigned shape_variants(const shape *s)
{
    unsigned count = 1;

    for (unsigned left = shape_free(s); left != 0; left--)
        count *= s->orders;
    return count;
}

static inline void shape_parse(const shape *s, unsigned variant, program *p)
{
    unsigned thread = 0, length = 0;

    snprintf(p->name, sizeof(p->name), "%s.%u", s->name, variant);
    for (const char *at = s->text; *at != '\0';) {
        if (*at == '|') {
            thread++;
            length = 0;
        }
        if (strchr("WRUXCF", *at) == NULL) {
            at++;
            continue;
        }
        shape_access *a = &p->at[thread][length++];
        a->kind = *at++;
        if (a->kind != 'F')
            a->variable = (unsigned)(*at == 'w' ? 3 : *at - 'x'), at++;
        a->value = *at >= '0' && *at <= '9' ? (unsigned)(*at++ - '0') : 0;
        if (*at == ':') {
            a->order = shape_named_order(at[1]);
            at += 2;
        } else {
            a->order = shape_order(a->kind, variant % s->orders + (3 - s->orders));
            variant /= s->orders;
        }
        a->failure = a->order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : a->order;
    }
}

static inline unsigned shape_draw(unsigned long long *state, unsigned limit)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(*state >> 33) % limit;
}

static inline void shape_draw_program(unsigned number, program *p)
{
    unsigned long long state = number * 0x9E3779B97F4A7C15ull + 12345;
    unsigned threads = 2 + shape_draw(&state, 2), variables = 2 + shape_draw(&state, 2);

    snprintf(p->name, sizeof(p->name), "random.%u", number);
    for (unsigned t = 0; t < threads; t++) {
        unsigned length = threads == 2 ? 3 + shape_draw(&state, 2) : 2 + shape_draw(&state, 2);
        for (unsigned i = 0; i < length; i++) {
            shape_access *a = &p->at[t][i];
            a->kind = "WWWRRRUXCF"[shape_draw(&state, 10)];
            a->variable = shape_draw(&state, variables);
            a->value = 1 + t * SHAPE_LENGTH + i;
            a->order = shape_order(a->kind, shape_draw(&state, 3));
            a->failure = a->order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : a->order;
        }
    }
}

static inline unsigned shape_count(void)
{
    unsigned count = SHAPE_RANDOM;

    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        count += shape_variants(&shapes[i]);
    return count;
}

static inline void shape_program(unsigned number, program *p)
{
    memset(p, 0, sizeof(*p));
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (number < shape_variants(&shapes[i])) {
            shape_parse(&shapes[i], number, p);
            return;
        }
        number -= shape_variants(&shapes[i]);
    }
    if (number < SHAPE_RANDOM)
        shape_draw_program(number, p);
}

/* "1 0 / 2 1": what the accesses have read, in order, and the last values. */
static inline void shape_write_outcome(const program *p, unsigned read[SHAPE_THREADS][SHAPE_LENGTH],
                                       const unsigned *last, char *text)
{
    char *at = text;

    for (unsigned t = 0; t < SHAPE_THREADS; t++)
        for (unsigned i = 0; i < SHAPE_LENGTH; i++)
            if (p->at[t][i].kind != 0 && strchr("RUXC", p->at[t][i].kind) != NULL)
                at += sprintf(at, "%u,", read[t][i]);
    at += sprintf(at, "/");
    for (unsigned v = 0; v < SHAPE_VARIABLES; v++)
        at += sprintf(at, "%u,", last[v]);
}

#endif
