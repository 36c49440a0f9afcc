/*
 * rc11.c: what RC11 allows and forbids, by hand: the programs with well-known outcomes, and those that a model with one
 * order of stores and one order of sequentially consistent accesses gets wrong. Each allowed outcome is an assertion
 * that must fail. lab/self/axioms.py has the same for every combination of orders.
 */
#include <interlock/lab.h>

#include <stdatomic.h>

static atomic_int x, y, z, lock;
static int r[6];

#define LOAD(a, o)     atomic_load_explicit(&(a), memory_order_##o)
#define STORE(a, v, o) atomic_store_explicit(&(a), v, memory_order_##o)
#define ADD(a, v, o)   atomic_fetch_add_explicit(&(a), v, memory_order_##o)
#define FENCE(o)       atomic_thread_fence(memory_order_##o)

#define THREAD(name, ...)                                                                                              \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }

#define NEVER(name, outcome)                                                                                           \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        LabAssert(!(outcome));                                                                                         \
    }

#define FORBIDDEN
#define ALLOWED .Expect = "assertion",

#define TWO(name, a, b, outcome, verdict)                                                                              \
    THREAD(name##_1, a)                                                                                                \
    THREAD(name##_2, b)                                                                                                \
    NEVER(name##_outcome, outcome)                                                                                     \
    LAB_SCENARIO(name, verdict.Threads = {name##_1, name##_2}, .Finish = name##_outcome, .Model = "c11")

#define THREE(name, a, b, c, outcome, verdict)                                                                         \
    THREAD(name##_1, a)                                                                                                \
    THREAD(name##_2, b)                                                                                                \
    THREAD(name##_3, c)                                                                                                \
    NEVER(name##_outcome, outcome)                                                                                     \
    LAB_SCENARIO(name, verdict.Threads = {name##_1, name##_2, name##_3}, .Finish = name##_outcome, .Model = "c11")

#define FOUR(name, a, b, c, d, outcome, verdict)                                                                       \
    THREAD(name##_1, a)                                                                                                \
    THREAD(name##_2, b)                                                                                                \
    THREAD(name##_3, c)                                                                                                \
    THREAD(name##_4, d)                                                                                                \
    NEVER(name##_outcome, outcome)                                                                                     \
    LAB_SCENARIO(name, verdict.Threads = {name##_1, name##_2, name##_3, name##_4}, .Finish = name##_outcome,           \
                 .Model = "c11")

/* Store buffering: only two sequentially consistent accesses on each side, or fences, forbid it. */
TWO(rc11_sb_release_sc, STORE(x, 1, release); r[0] = LOAD(y, seq_cst), STORE(y, 1, release); r[1] = LOAD(x, seq_cst),
    r[0] == 0 && r[1] == 0, ALLOWED);
TWO(rc11_sb_sc_acquire, STORE(x, 1, seq_cst); r[0] = LOAD(y, acquire), STORE(y, 1, seq_cst); r[1] = LOAD(x, acquire),
    r[0] == 0 && r[1] == 0, ALLOWED);
TWO(rc11_sb_release_add, STORE(x, 1, release); r[0] = ADD(y, 0, acq_rel), STORE(y, 1, release); r[1] = ADD(x, 0, acq_rel),
    r[0] == 0 && r[1] == 0, ALLOWED);
TWO(rc11_sb_release_sc_add, STORE(x, 1, release); r[0] = ADD(y, 0, seq_cst), STORE(y, 1, release);
    r[1] = ADD(x, 0, seq_cst), r[0] == 0 && r[1] == 0, ALLOWED);
TWO(rc11_sb_sc, STORE(x, 1, seq_cst); r[0] = LOAD(y, seq_cst), STORE(y, 1, seq_cst); r[1] = LOAD(x, seq_cst),
    r[0] == 0 && r[1] == 0, FORBIDDEN);
TWO(rc11_sb_fences, STORE(x, 1, relaxed); FENCE(seq_cst); r[0] = LOAD(y, relaxed), STORE(y, 1, relaxed); FENCE(seq_cst);
    r[1] = LOAD(x, relaxed), r[0] == 0 && r[1] == 0, FORBIDDEN);
TWO(rc11_sb_fence_one, STORE(x, 1, relaxed); FENCE(seq_cst); r[0] = LOAD(y, relaxed), STORE(y, 1, seq_cst);
    r[1] = LOAD(x, seq_cst), r[0] == 0 && r[1] == 0, FORBIDDEN);
TWO(rc11_sb_fence_weak, STORE(x, 1, relaxed); FENCE(seq_cst); r[0] = LOAD(y, relaxed), STORE(y, 1, release);
    r[1] = LOAD(x, acquire), r[0] == 0 && r[1] == 0, ALLOWED);

/* Dekker, and a reader that announces itself to a grace period. */
TWO(rc11_dekker_release_sc, STORE(x, 1, release); r[0] = LOAD(y, seq_cst) == 0 ? ADD(lock, 1, relaxed) : 9,
    STORE(y, 1, release); r[1] = LOAD(x, seq_cst) == 0 ? ADD(lock, 1, relaxed) : 9, r[0] < 2 && r[1] < 2, ALLOWED);
TWO(rc11_dekker_sc, STORE(x, 1, seq_cst); r[0] = LOAD(y, seq_cst) == 0 ? ADD(lock, 1, relaxed) : 9,
    STORE(y, 1, seq_cst); r[1] = LOAD(x, seq_cst) == 0 ? ADD(lock, 1, relaxed) : 9, r[0] < 2 && r[1] < 2, FORBIDDEN);
TWO(rc11_reader_release_sc, STORE(x, 1, release); r[0] = LOAD(y, seq_cst); r[1] = LOAD(z, relaxed); STORE(x, 0, release),
    STORE(y, 1, seq_cst); r[2] = LOAD(x, seq_cst); if (r[2] == 0) STORE(z, 1, relaxed), r[0] == 0 && r[1] == 1, ALLOWED);

/* The order of stores is not the order of execution. */
TWO(rc11_2_2w_relaxed, STORE(x, 1, relaxed); STORE(y, 2, relaxed), STORE(y, 1, relaxed); STORE(x, 2, relaxed),
    x == 1 && y == 1, ALLOWED);
TWO(rc11_2_2w_release, STORE(x, 1, release); STORE(y, 2, release), STORE(y, 1, release); STORE(x, 2, release),
    x == 1 && y == 1, ALLOWED);
TWO(rc11_2_2w_sc, STORE(x, 1, seq_cst); STORE(y, 2, seq_cst), STORE(y, 1, seq_cst); STORE(x, 2, seq_cst),
    x == 1 && y == 1, FORBIDDEN);
TWO(rc11_s_relaxed, STORE(x, 2, relaxed); STORE(y, 1, relaxed), r[0] = LOAD(y, relaxed); STORE(x, 1, relaxed),
    r[0] == 1 && x == 2, ALLOWED);
TWO(rc11_s_release_acquire, STORE(x, 2, relaxed); STORE(y, 1, release), r[0] = LOAD(y, acquire); STORE(x, 1, relaxed),
    r[0] == 1 && x == 2, FORBIDDEN);
TWO(rc11_r_release_sc, STORE(x, 1, relaxed); STORE(y, 1, release), STORE(y, 2, seq_cst); r[0] = LOAD(x, seq_cst),
    y == 2 && r[0] == 0, ALLOWED);
TWO(rc11_r_sc, STORE(x, 1, seq_cst); STORE(y, 1, seq_cst), STORE(y, 2, seq_cst); r[0] = LOAD(x, seq_cst),
    y == 2 && r[0] == 0, FORBIDDEN);
TWO(rc11_coherence, STORE(x, 1, relaxed); r[0] = LOAD(x, relaxed), STORE(x, 2, relaxed), r[0] == 2 && x == 1, FORBIDDEN);
TWO(rc11_atomicity, r[0] = ADD(x, 1, relaxed), r[1] = ADD(x, 1, relaxed), x != 2, FORBIDDEN);

/* From the paper: a sequentially consistent order in which a release sequence is not included. */
THREE(rc11_z6_u, STORE(x, 1, seq_cst); STORE(y, 1, release), r[0] = ADD(y, 1, seq_cst); r[1] = LOAD(y, relaxed),
      STORE(y, 3, seq_cst); r[2] = LOAD(x, seq_cst), r[0] == 1 && r[1] == 3 && r[2] == 0, ALLOWED);

FOUR(rc11_iriw_one_acquire, STORE(x, 1, seq_cst), STORE(y, 1, seq_cst), r[0] = LOAD(x, acquire); r[1] = LOAD(y, seq_cst),
     r[2] = LOAD(y, acquire); r[3] = LOAD(x, seq_cst), r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0, ALLOWED);
FOUR(rc11_iriw_sc, STORE(x, 1, seq_cst), STORE(y, 1, seq_cst), r[0] = LOAD(x, seq_cst); r[1] = LOAD(y, seq_cst),
     r[2] = LOAD(y, seq_cst); r[3] = LOAD(x, seq_cst), r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0, FORBIDDEN);
FOUR(rc11_iriw_fences, STORE(x, 1, relaxed), STORE(y, 1, relaxed), r[0] = LOAD(x, relaxed); FENCE(seq_cst);
     r[1] = LOAD(y, relaxed), r[2] = LOAD(y, relaxed); FENCE(seq_cst); r[3] = LOAD(x, relaxed),
     r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0, FORBIDDEN);
THREE(rc11_w_rwc, STORE(x, 1, relaxed); STORE(y, 1, release), r[0] = LOAD(y, acquire); FENCE(seq_cst);
      r[1] = LOAD(z, relaxed), STORE(z, 1, relaxed); FENCE(seq_cst); r[2] = LOAD(x, relaxed),
      r[0] == 1 && r[1] == 0 && r[2] == 0, FORBIDDEN);

/* Load buffering, which C11 allows and RC11 forbids. */
TWO(rc11_lb_relaxed, r[0] = LOAD(x, relaxed); STORE(y, 1, relaxed), r[1] = LOAD(y, relaxed); STORE(x, 1, relaxed),
    r[0] == 1 && r[1] == 1, FORBIDDEN);

/* The release sequence of C++20: another store of the same thread ends it. */
TWO(rc11_sequence_store, STORE(x, 1, relaxed); STORE(y, 1, release); STORE(y, 2, relaxed),
    r[0] = LOAD(y, acquire); r[1] = LOAD(x, relaxed), r[0] == 2 && r[1] == 0, ALLOWED);
THREE(rc11_sequence_add, STORE(x, 1, relaxed); STORE(y, 1, release), ADD(y, 1, relaxed),
      r[0] = LOAD(y, acquire); r[1] = LOAD(x, relaxed), r[0] == 2 && r[1] == 0, FORBIDDEN);

/* A compare-exchange that fails on an old value. */
static int compare(atomic_int *at, int expected)
{
    atomic_compare_exchange_strong_explicit(at, &expected, 5, memory_order_relaxed, memory_order_relaxed);
    return expected;
}
TWO(rc11_compare_stale, STORE(x, 1, relaxed); STORE(y, 1, relaxed), r[0] = LOAD(y, relaxed); r[1] = compare(&x, 7),
    r[0] == 1 && r[1] == 0, ALLOWED);

/* A relaxed unlock: the next owner may read what the last one has overwritten. */
static void locked(int order)
{
    int free = 0;

    if (atomic_compare_exchange_strong_explicit(&lock, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        STORE(x, LOAD(x, relaxed) + 1, relaxed);
        __atomic_store_n((int *)&lock, 0, order);
    } else {
        ADD(z, 1, relaxed);
    }
}
TWO(rc11_unlock_relaxed, locked(__ATOMIC_RELAXED), locked(__ATOMIC_RELAXED), z == 0 && x != 2, ALLOWED);
TWO(rc11_unlock_release, locked(__ATOMIC_RELEASE), locked(__ATOMIC_RELEASE), z == 0 && x != 2, FORBIDDEN);

/* Six old values in one schedule. */
static atomic_int many[6];

static void store_many(void)
{
    for (int i = 0; i < 6; i++)
        STORE(many[i], 1, relaxed);
    STORE(y, 1, relaxed);
}

static void load_many(void)
{
    r[0] = LOAD(y, relaxed);
    for (int i = 0; i < 6; i++)
        r[1] += LOAD(many[i], relaxed);
}
NEVER(many_outcome, r[0] == 1 && r[1] == 0)
LAB_SCENARIO(rc11_six_stale, .Threads = {store_many, load_many}, .Finish = many_outcome, .Model = "c11",
             .Expect = "assertion");

/* A loop of loads on each side: each may read the old value every time. */
static void loop_of_loads(atomic_int *own, atomic_int *other, int *sum)
{
    STORE(*own, 1, relaxed);
    for (int i = 0; i < 3; i++)
        *sum += LOAD(*other, relaxed);
}
TWO(rc11_loops, loop_of_loads(&x, &y, &r[0]), loop_of_loads(&y, &x, &r[1]), r[0] == 0 && r[1] == 0, ALLOWED);

/* A forgotten value is gone; the data that its store released is not. */
static int data;

static int read_if(int condition)
{
    return condition ? data : 0;
}
TWO(rc11_forgotten_bits, data = 1; STORE(x, 3, release); LabForgetBits((volatile uint32_t *)&x, 2),
    r[0] = LOAD(x, acquire); r[1] = read_if(r[0] == 1), r[0] >= 2 || r[0] != r[1], FORBIDDEN);
TWO(rc11_forgotten_older, STORE(x, 3, relaxed); LabForgetBits((volatile uint32_t *)&x, 2); STORE(y, 1, relaxed),
    r[0] = LOAD(y, relaxed); r[1] = LOAD(x, relaxed), r[0] == 1 && r[1] == 0, ALLOWED);
