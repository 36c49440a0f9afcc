/*
 * machine.h: the machine on which locks are counted. It runs the same instrumented library as the explorer and takes
 * the explorer's place behind lab/hal and behind the entry points of the sanitizer: what is declared in engine.h for
 * accesses, blocking and threads is implemented here once more, for one schedule of very many threads.
 *
 * A processor has a cache and runs one thread, a fiber. The threads that the library creates for itself (the clock, the
 * workers of a pool) have processors of their own beyond those of the machine: to the library they run on one of its
 * processors, in turn. Each has its own clock, in cycles, and the one furthest behind runs. A cache hit costs one
 * cycle; any other access is a transfer, which costs LINE_CYCLES and waits for earlier transfers of that line. So all
 * accesses have one order, the same in every run.
 */
#ifndef LAB_SCALE_MACHINE_H
#define LAB_SCALE_MACHINE_H

#include "../engine/engine.h"

#include "cache.h"

#define HIT_CYCLES    1
#define LOCKED_CYCLES 20    /* an atomic read-modify-write on a line that the cache owns */
#define LINE_CYCLES   100   /* a transfer, an upgrade, or from memory */
#define NODE_CYCLES   300   /* a transfer or an upgrade that involves another node */
#define PAUSE_CYCLES  40    /* an iteration of a loop that waits for a change */
#define CALL_CYCLES   1000  /* a call of the host's kernel */
#define WAKE_CYCLES   10000 /* from the wake to the first instruction of the woken thread */

#define CYCLES_PER_UNIT 300 /* of the library's time, 100 ns, at 3 GHz */

#define MAX_SPIN_LOADS 8

typedef struct scale_load {
    uintptr_t pc, address;
    u128 value;
} scale_load;

typedef struct scale_thread {
    lab_thread base; /* what lab/hal knows of it; lab->current points to it */
    uint64_t clock;
    uint64_t key;   /* when it runs, if it is in the queue, and */
    uint32_t place; /* where in it; NOT_QUEUED */
    uint64_t random;

    /* Asleep. */
    uintptr_t waits_on; /* 0: it is not */
    uint64_t ticket;    /* the order of arrival, in which threads are woken */
    bool at_gate;
    bool is_library; /* created by the library: it need not end, and may sleep */

    /* In a loop: its loads since it last did anything else, and the load that ends an iteration. */
    scale_load loads[MAX_SPIN_LOADS];
    uint32_t load_count;
    const scale_load *marker; /* NULL: none is known */
    uint32_t turns;
    bool watches;             /* it does not run until another processor takes a line that it has loaded, or a time has
                                 passed */
    uint64_t catches_up_with; /* until then it catches up on skipped iterations */

    /* For the counts. */
    uint64_t began;
} scale_thread;

#define NOT_QUEUED UINT32_MAX

/* machine.c */
typedef struct machine_shape {
    uint32_t processors;
    uint32_t nodes;
    uint32_t library_threads; /* room for so many */
} machine_shape;

void machine_start(machine_shape shape, void (*routine)(void *), cache_invalidated *invalidated);
scale_thread *machine_thread(uint32_t number);
uint32_t machine_processors(void);
uint32_t machine_threads(void); /* with those that the library has created */
bool machine_run(void);         /* until it is stopped, or all are at the gate or at their end; FALSE: they sleep */
void machine_stop(void);        /* by a thread: permanently */
void machine_gate(void);        /* called by a thread: it blocks until the gate is opened for it */
void machine_open_gate(uint32_t number);
void machine_level_clocks(void); /* all clocks become that of the latest */
void machine_queue(scale_thread *t, uint64_t when);
void machine_hurry(scale_thread *t, uint64_t when); /* it is in the queue: not later than that */
void machine_leave(void);                           /* the current thread is in the queue, or sleeps: others run */
void machine_take_turn(scale_thread *t);            /* returns when no clock is behind t */
void machine_pass(uint64_t cycles);                 /* they pass for the current thread */

static inline scale_thread *machine_current(void)
{
    return (scale_thread *)(void *)lab->current;
}

/* access.c */
void access_line_taken(uint32_t processor, const cache_line *line);
void access_lines_from_here(void); /* begins to count which places transfer which lines */

typedef struct access_place {
    uintptr_t pc, address; /* the last one's */
    uint64_t remote[KINDS];
} access_place;

size_t access_places(access_place *places, size_t room); /* by number of transfers, most first */

/* count.c */
typedef struct scale_result {
    uint64_t acquisitions;
    cache_counts counts[KINDS];
    uint64_t cycles; /* of the machine, for all of them */
    uint64_t longest_wait;
} scale_result;

struct scale_lock;
bool count_measure(const struct scale_lock *lock, uint32_t processors, uint32_t nodes, uint64_t acquisitions,
                   scale_result *result);

#endif
