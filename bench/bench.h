/*
 * bench.h: the harness as a contender sees it.
 *
 * A row is a line in rows.c: a name, a family, a kind of measurement and its numbers. A contender is a file below
 * interlock/, peers/ or wine/ that implements the families, with one bench_ line each. The program built from them
 * takes requests on its standard input, one sample each, and scripts/bench interleaves the samples of all contenders
 * and computes the statistics. Nothing here passes or fails.
 */
#ifndef INTERLOCK_BENCH_H
#define INTERLOCK_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bench_kind {
    BENCH_KIND_LOOP,      /* an operation repeated on one thread, pinned to one processor: ns */
    BENCH_KIND_CONTENDED, /* threads that contend for one lock: total M/s, fairness */
    BENCH_KIND_EXCHANGE,  /* two threads that signal each other in turn: ns per round trip */
    BENCH_KIND_STREAM,    /* producers and consumers of a queue: ns per item */
    BENCH_KIND_VALUE,     /* a number that is not a time */
    BENCH_KIND_TAIL,      /* how long each of many operations took: percentiles, see tail.h */
} bench_kind;

typedef enum bench_side { BENCH_FLOOR, BENCH_PEER, BENCH_INTERLOCK } bench_side;

/* Where the two threads of an exchange run. */
typedef enum bench_place { BENCH_SAME, BENCH_TWO, BENCH_ANYWHERE } bench_place;

typedef struct bench_row {
    const char *name, *family;
    bench_kind kind;
    unsigned number; /* loop: of objects; contended, tail: threads; exchange: the place; stream: producers */
    unsigned other;  /* contended: per cent of reads; stream: consumers */
    const char *unit;
    double target;        /* of Interlock's contenders that name none themselves; 0: none */
    double fairness;      /* target */
    const char *relative; /* the target is a multiple of this contender's result */
    int brief;            /* part of the short mode */
    const char *title;
} bench_row;

extern const bench_row bench_rows[];
extern const size_t bench_row_count;

typedef struct bench_worker {
    const int *stop;
    unsigned reads; /* per cent */
    unsigned index; /* among the threads */
    uint64_t random;
    uint64_t count; /* operations done */
} bench_worker;

typedef uint64_t bench_loop(unsigned long count, const bench_row *row); /* performs count operations; nanoseconds */
typedef double bench_value(const bench_row *row);

/* The functions of a contender, which live as long as the program. `side` of signal and await is 0 or 1: the thread
   that waits. An item stays the producer's own memory; get returns the one it took. */
typedef struct bench_item {
    void *link[2];
} __attribute__((aligned(64))) bench_item;

void bench_add_loop(const char *family, bench_side side, const char *contender, double target, bench_loop *loop);
void bench_add_contended(const char *family, bench_side side, const char *contender, void (*work)(bench_worker *));
void bench_add_exchange(const char *family, bench_side side, const char *contender, void (*signal)(unsigned side),
                        void (*await)(unsigned side));
void bench_add_stream(const char *family, bench_side side, const char *contender, void (*put)(bench_item *),
                      bench_item *(*get)(void));
void bench_add_value(const char *family, bench_side side, const char *contender, double target, bench_value *value);

/* The kinds of tails: threads that contend for one lock (BENCH_TAIL_WORK of tail.h), a thread that another one wakes,
   and a 1 ms wait, of which only the lateness counts. */
struct bench_tail;
void bench_add_tail_lock(const char *family, bench_side side, const char *contender,
                         void (*work)(bench_worker *, struct bench_tail *));
void bench_add_tail_wake(const char *family, bench_side side, const char *contender, void (*signal)(unsigned side),
                         void (*await)(unsigned side));
void bench_add_tail_sleep(const char *family, bench_side side, const char *contender, void (*millisecond)(void));

/* The targets of its rows do not apply to the contender added last. */
void bench_no_target(void);

/* Called by a constructor; `add` runs later, when the process has started a thread. */
typedef struct bench_contenders {
    struct bench_contenders *next;
    const char *name, *version;
    void (*add)(void);
} bench_contenders;

void bench_register(bench_contenders *contenders);

/* A file of contenders: BENCH_CONTENDERS(nsync, "1.25") { bench_add_...; } */
#define BENCH_CONTENDERS(identifier, itsversion)                                                                       \
    static void add_##identifier##_contenders(void);                                                                   \
    static bench_contenders identifier##_contenders = {NULL, #identifier, NULL, add_##identifier##_contenders};        \
    __attribute__((constructor)) static void register_##identifier##_contenders(void)                                  \
    {                                                                                                                  \
        identifier##_contenders.version = itsversion;                                                                  \
        bench_register(&identifier##_contenders);                                                                      \
    }                                                                                                                  \
    static void add_##identifier##_contenders(void)

/* Keeps the compiler from optimising a result away. */
#define bench_keep(value) __asm__ volatile("" : : "r"(value) : "memory")

/* A bench_loop: body, count times. */
#define BENCH_LOOP(function, body) BENCH_LOOP_WITHIN(function, (void)row, body, (void)row)
#define BENCH_LOOP_WITHIN(function, begin, body, end)                                                                  \
    static uint64_t function(unsigned long count, const bench_row *row)                                                \
    {                                                                                                                  \
        begin;                                                                                                         \
        uint64_t started = bench_now();                                                                                \
        for (unsigned long round = 0; round < count; round++) {                                                        \
            body;                                                                                                      \
        }                                                                                                              \
        started = bench_now() - started;                                                                               \
        end;                                                                                                           \
        return started;                                                                                                \
    }

/*
 * The work of a thread that contends for a lock: about 50 ns of private work, then two lines that all threads share.
 * The statements are expanded in place, so that inline functions stay inline.
 */
extern uint64_t bench_shared[2][16];

#define BENCH_PRIVATE_ROUNDS 37

static inline uint64_t bench_private_work(uint64_t value)
{
    for (unsigned i = 0; i < BENCH_PRIVATE_ROUNDS; i++)
        value = value * 6364136223846793005u + 1442695040888963407u;
    return value;
}

static inline void bench_write_shared(void)
{
    bench_shared[0][0]++;
    bench_shared[1][0]++;
    bench_keep(bench_shared);
}

static inline void bench_read_shared(void)
{
    bench_keep(bench_shared[0][0] + bench_shared[1][0]);
}

#define BENCH_WORK_WITHIN(function, begin, lock, unlock, lock_shared, unlock_shared, end)                              \
    static void function(bench_worker *worker)                                                                         \
    {                                                                                                                  \
        uint64_t value = worker->random, count = 0;                                                                    \
                                                                                                                       \
        begin;                                                                                                         \
        do {                                                                                                           \
            value = bench_private_work(value);                                                                         \
            if (worker->reads != 0 && (value >> 33) % 100 < worker->reads) {                                           \
                lock_shared;                                                                                           \
                bench_read_shared();                                                                                   \
                unlock_shared;                                                                                         \
            } else {                                                                                                   \
                lock;                                                                                                  \
                bench_write_shared();                                                                                  \
                unlock;                                                                                                \
            }                                                                                                          \
            count++;                                                                                                   \
        } while (!__atomic_load_n(worker->stop, __ATOMIC_RELAXED));                                                    \
        end;                                                                                                           \
        worker->count = count;                                                                                         \
    }
#define BENCH_WORK(function, lock, unlock, lock_shared, unlock_shared)                                                 \
    BENCH_WORK_WITHIN(function, (void)0, lock, unlock, lock_shared, unlock_shared, (void)0)
#define BENCH_MUTEX_WORK(function, lock, unlock) BENCH_WORK(function, lock, unlock, lock, unlock)

/* A thread that repeatedly pushes its item and pops one: alone, and with others. */
#define BENCH_STACK(loop, team, push, pop)                                                                             \
    static inline bench_item *loop##_exchange(bench_item *item)                                                        \
    {                                                                                                                  \
        push;                                                                                                          \
        return pop;                                                                                                    \
    }                                                                                                                  \
    BENCH_LOOP_WITHIN(loop, static bench_item own; bench_item *item = &own;                                            \
                      (void)row, item = loop##_exchange(item), (void)row)                                              \
    static void team(bench_worker *worker)                                                                             \
    {                                                                                                                  \
        bench_item *item = bench_item_of(worker);                                                                      \
        uint64_t count = 0;                                                                                            \
                                                                                                                       \
        do {                                                                                                           \
            item = loop##_exchange(item);                                                                              \
            count++;                                                                                                   \
        } while (!__atomic_load_n(worker->stop, __ATOMIC_RELAXED));                                                    \
        worker->count = count;                                                                                         \
    }

bench_item *bench_item_of(const bench_worker *worker);

#define BENCH_SIZE(function, size)                                                                                     \
    static double function(const bench_row *row)                                                                       \
    {                                                                                                                  \
        (void)row;                                                                                                     \
        return (double)(size);                                                                                         \
    }

/* The host, platform-linux.c or platform-windows.c. */
typedef struct bench_thread bench_thread;

void bench_platform_begin(void);
uint64_t bench_now(void); /* nanoseconds */
bench_thread *bench_thread_start(void (*function)(void *), void *argument);
void bench_thread_join(bench_thread *thread);
int bench_processors(void);
void bench_bind(int index); /* to the index-th processor that the process may use */
void bench_unbind(void);
void bench_yield(void);
void bench_sleep(unsigned milliseconds);
void bench_fail(const char *what) __attribute__((noreturn));

static inline void bench_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("" : : : "memory");
#endif
}

#ifdef __cplusplus
}
#endif

#endif
