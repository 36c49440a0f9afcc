/*
 * engine.h: what the files of the explorer share.
 *
 * Everything runs on one host thread. The threads of a scenario are fibers. A *step* is one visible operation: an
 * atomic access, an operation of the simulated machine, the start of a thread. A thread announces its next step and
 * then calls the scheduler, which decides which thread makes its step. So the next step of every thread is always
 * known. Plain accesses are not steps: they are checked for races, and code without races behaves the same wherever
 * they happen between two steps.
 *
 * There are three kinds of memory.
 * 1. What the explored program writes: its data segment and the arena (heap, stacks). Before every schedule memory.c
 *    restores it to the state after Setup.
 * 2. lab->run, the explorer's state of one schedule: restored likewise, by one copy.
 * 3. lab, everything else: options, the tree, shadow memory. It persists, and is outside the data segment.
 */
#ifndef LAB_ENGINE_H
#define LAB_ENGINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <interlock/lab.h>

#define MAX_THREADS    16
#define MAX_CELLS      60000
#define MAX_NODES      65536
#define MAX_STEPS      65536
#define MAX_OPERATIONS 64
#define MAX_TLS        4096
#define STACK_SIZE     (1024 * 1024)
#define CYCLE_STEPS    1000 /* the length of a schedule in which states are compared */
#define LAB_DESCRIPTORS 1024
#define NO_STEP        (-1)
#define NO_CELL        0

typedef unsigned __int128 u128;

typedef struct lab_vclock {
    uint32_t at[MAX_THREADS];
} __attribute__((aligned(64))) lab_vclock;

static inline void lab_clock_join(lab_vclock *into, const lab_vclock *other)
{
    for (int i = 0; i < MAX_THREADS; i++)
        into->at[i] = into->at[i] > other->at[i] ? into->at[i] : other->at[i];
}

/* Steps. */

typedef enum lab_op_kind {
    OP_START,
    OP_LOAD,
    OP_STORE,
    OP_RMW,
    OP_CAS,
    OP_FENCE,
    OP_WAIT,
    OP_WAKE,
    OP_TIMEOUT,
    OP_RESUME,
    OP_CLOCK,
    OP_INTERRUPT,
    OP_SPAWN,
    OP_JOIN,
    OP_END,
    OP_LOCAL,
    OP_PLAIN, /* a plain access, where an interrupt may come before it: LAB_PRECISE */
    OP_CALL, /* of a function that the explorer provides: lab/posix */
    OP_EXIT, /* of the process */
    OP_BEGIN, /* of an operation of the history */
    OP_RETURN /* from it */
} lab_op_kind;

#define MAX_ACCESSES 4

typedef struct lab_access {
    uint32_t cell;
    bool write;
} lab_access;

typedef struct lab_operation {
    uint8_t kind;
    uint8_t size;
    uint8_t order;
    uint8_t accesses;
    lab_access access[MAX_ACCESSES];
    bool acquires; /* by its first access, a lock that is free: hal/locks.c */
    uintptr_t address;
    uintptr_t pc;
    uint64_t callers;
} lab_operation;

/*
 * A cell is a variable: the union of all atomic accesses that ever overlapped. Cells are never forgotten, so a second
 * schedule finds them as the first left them. When a cell grows, the search starts over.
 */
typedef struct lab_cell {
    uintptr_t address;
    uint32_t size;
    uint32_t users; /* the threads that ever accessed it */
    uint32_t strong_users; /* c11: those that ever did with sequential consistency */
    bool written;   /* one of them wrote; both together: whether a step here can matter to other threads */
    uint32_t lock_size; /* of the lock that a step has acquired here at once: hal/locks.c */
    uint64_t lock_bit;  /* 0: none */
    uintptr_t lock;
    /* The rest is valid for the schedule with the number `generation`. */
    uint32_t generation;
    int32_t last_write;        /* step */
    uint32_t readers;          /* threads that read it since */
    int32_t read[MAX_THREADS]; /* their steps */
    uint32_t position;  /* c11: of the newest version */
    int32_t locked, unlocked; /* the last step that acquired the lock here, and the one that released it */
    int32_t newest;     /* version; -1: none yet */
    int32_t last_event; /* c11: here; -1: none */
    uintptr_t stored; /* the address of the last atomic store: to the whole cell or a part of it */
    uint32_t stored_size;
    bool neighbour;     /* a plain access has written another part since */
    lab_vclock release; /* what an acquire of the newest version gets */
    lab_vclock beyond; /* lab_atomic_give: the same of lab_thread.beyond */
} lab_cell;

/* One store, for memory models in which a load may read an older store. */
typedef struct lab_version {
    u128 value;
    int32_t older, newer; /* tso: in the order of execution; c11: in the modification order */
    int32_t step;         /* that made it; NO_STEP: the value from which on the history is known */
    uint8_t writer;       /* MAX_THREADS: likewise */
    bool modifies;        /* c11: a read-modify-write of the older one: no store comes between the two */
    uint32_t when;        /* tso: among all stores of the schedule */
    uint32_t position;    /* c11: in the modification order of its cell */
    uint32_t clock;       /* c11: the writer's */
    int32_t event;        /* c11 */
    lab_vclock release;   /* what a load that acquires it gets */
    lab_vclock beyond;    /* c11: the same of lab_thread.beyond */
    lab_vclock read;      /* c11: the clock of each thread when it first read this version; NEVER */
    uint8_t behind[MAX_THREADS]; /* c11: how often each thread has chosen it, or one that it was made from, behind a newer */
} lab_version;

#define NEVER UINT32_MAX

/* c11: an atomic access or a sequentially consistent fence, as rc11.c needs it. All links: -1, none. */
typedef struct lab_c11_event {
    uint8_t thread;
    bool reads, writes, strong; /* strong: sequentially consistent; a fence neither reads nor writes */
    uint32_t cell;
    uint32_t clock;     /* its thread's own */
    int32_t version;    /* that it wrote, otherwise read */
    int32_t previous;   /* of the thread */
    int32_t next;       /* of the thread */
    int32_t elsewhere;  /* the last one of the thread before it that is not in the same cell */
    int32_t on_cell;    /* the previous one of any thread there */
    lab_vclock before;  /* what happens before it */
} lab_c11_event;

/* Threads. */

typedef enum lab_thread_state {
    THREAD_UNUSED,
    THREAD_READY,
    THREAD_BLOCKED, /* in a wait; with a deadline it may time out */
    THREAD_JOINING,
    THREAD_DONE
} lab_thread_state;

/*
 * A step that its thread can make only while a condition holds: the lock is free, the thread has ended. Until then the
 * thread is not chosen, unless it has a deadline: then it may be chosen to time out.
 */
struct lab_thread;

typedef struct lab_gate {
    bool (*is_open)(const struct lab_thread *t);
    void (*describe)(const struct lab_thread *t, char *buffer, size_t size); /* what t waits for */
} lab_gate;

#define MAX_WATCHED 64
#define MAX_LENT    24

typedef struct lab_watched {
    uintptr_t pc;
    uintptr_t address;
    uint32_t cell;
    int32_t version; /* -1: none is kept */
    uint8_t size;
    uint64_t value;
    uint64_t callers; /* a hash of the return addresses: the same function may be called from two places */
} lab_watched;

typedef struct lab_thread lab_thread;

struct lab_thread {
    void *sp;
    char *stack; /* lowest address; the stack of thread n is slot n of the arena */
    uint16_t number;
    uint8_t state;
    bool service; /* a thread of the library: need not end */
    bool timed_out;
    bool in_interrupt;
    bool interrupt_pending;
    bool inside_libc;
    bool interrupt_later; /* deferred until the thread has left the C library */
    uint8_t joined;   /* THREAD_JOINING: the thread it waits for */
    bool asleep;      /* spins, and nothing that it reads has changed */
    bool may_give_up; /* the loop may end without a change: if chosen, the thread iterates until it does */
    bool gives_up;
    bool waits_for_owner; /* stuck.c: waits for a lock that has an owner */
    bool no_step;         /* its next operation is not a step, because it repeats the last one */
    uint32_t turns;       /* iterations of the loop since it gave up waiting for a change */
    uint32_t yielded;     /* it yielded: other threads make this number of steps first */
    bool runs_exit;       /* exits like a host thread */
    void *exit_object;    /* what the machine ends together with the thread */
    bool adopt;           /* becomes a thread of the library before its first step */
    const char *name;
    void (*routine)(void *);
    void *argument;
    uintptr_t entry;   /* its function */
    lab_operation op;  /* its next step */
    u128 operand;      /* of its next step: what a compare-exchange expects or a read-modify-write adds */
    uint8_t rmw;       /* lab_rmw_kind */
    u128 desired;      /* what it writes */
    uint64_t deadline; /* interrupt time; 0: none */
    uint32_t expected;
    const lab_gate *gate; /* of its next step; NULL: none */
    bool did_not_block;   /* the last wait found another value */
    int error;            /* errno */
    uint32_t steps;
    int32_t last_step;
    int32_t last_interrupt; /* the step that sent the last interrupt */
    int32_t last_begin, last_return; /* of an operation of the history: its steps */
    lab_vclock sync;        /* the program's happens-before */
    lab_vclock dep;         /* the order of steps that do not commute */
    lab_vclock fence_release;
    lab_vclock fence_acquire;
    bool fenced;
    lab_vclock beyond;     /* c11: what happens before by barriers on all threads, which do not order plain accesses */
    int32_t last_event;    /* c11; -1: none */
    uint32_t seen_until;   /* tso: its loads have seen all stores up to this one */
    uint32_t last_store;   /* tso: its own last store since a fence; 0: none */
    uintptr_t innermost;   /* its last frame when it was last suspended */
    uintptr_t lowest_lent; /* the lowest address on its stack that other threads have accessed */
    uint32_t progress;     /* how often it reported progress */
    bool mortal;           /* may exit before a step of its own function */
    uint8_t process;       /* that it has entered; 0: none */
    uintptr_t shared_base; /* memory that this process shares with others */
    size_t shared_size;
    bool from_table;       /* listed in the scenario's table */
    bool has_own_function; /* its frame is above base_frame */
    /* cycle.c: where it was when it last gave up control */
    uintptr_t base_frame; /* the explorer's frame below that of the thread's own function */
    uintptr_t frame;      /* the program's lowest frame */
    uint64_t registers;   /* a hash of the registers there */
    uintptr_t place;      /* the place in its own function */
    uintptr_t handler_frame; /* in_interrupt: the explorer's frame below the handler, */
    uintptr_t outer_frame;   /* and where the interrupted code was; 0: unknown */
    uint64_t outer;          /* lab_cycle_hash_step of that */
    bool unwound;         /* the unwinder has used its stack */
    uint32_t lent_count;
    uintptr_t lent[MAX_LENT]; /* all addresses on its stack that other threads have accessed */
    /* What it has read since it last wrote: for spin loops. */
    uint32_t watched_count;
    lab_watched watch[MAX_WATCHED]; /* from here on only the used part is restored */
    uint8_t tls[MAX_TLS];
};

/* The search tree: one node for each decision of the current schedule. */

typedef enum lab_node_kind {
    NODE_THREAD, /* which thread makes the next step */
    NODE_CHOICE  /* which of several outcomes the step has */
} lab_node_kind;

typedef struct lab_node {
    uint8_t kind;
    uint8_t chosen;
    uint8_t count;       /* choices */
    uint8_t preemptions; /* before this node */
    uint8_t stayer;      /* bounded: the thread that could continue here; MAX_THREADS: none */
    uint16_t enabled;
    uint16_t backtrack;
    uint16_t done;
    uint16_t sleep;
    int32_t step;
    uint64_t tried; /* of the choices; 0: all */
} lab_node;

typedef struct lab_step {
    lab_vclock dep;
    int32_t node;
    uint32_t ordinal; /* among its thread's steps, from 1 */
    uint8_t thread;
    uint16_t woken; /* threads that could run again because of it */
    lab_operation op;
} lab_step;

#define EVENT_CALLERS 12

typedef struct lab_event { /* for the trace */
    uint8_t thread;
    uint8_t kind;
    uint8_t size;
    uint8_t order;
    bool flag; /* the CAS failed, the wait did not block, the load was stale */
    uintptr_t address;
    uintptr_t pc;
    uint64_t before, after;
    uintptr_t callers[EVENT_CALLERS]; /* return addresses, innermost first */
    const char *call;                 /* OP_CALL: the function */
} lab_event;

typedef struct lab_past_access { /* for the other side of a race */
    uintptr_t address; /* of its 8 bytes */
    uintptr_t pc;
    uint8_t thread;
    uintptr_t callers[EVENT_CALLERS];
} lab_past_access;

#define ACCESSES 65536

typedef enum lab_verdict {
    VERDICT_NONE,
    VERDICT_ASSERTION,
    VERDICT_BUGCHECK,
    VERDICT_RACE,
    VERDICT_DEADLOCK,
    VERDICT_LOST_WAKEUP,
    VERDICT_LIVELOCK,
    VERDICT_STARVATION,
    VERDICT_DEAD_FRAME,
    VERDICT_FREED_MEMORY,
    VERDICT_WILD_ACCESS,
    VERDICT_LEAK,
    VERDICT_CRASH,
    VERDICT_LINEARIZABILITY,
    VERDICT_ENDLESS,
    VERDICT_UNSUPPORTED,
    VERDICT_MISUSE,
    VERDICT_EXIT,
    VERDICTS
} lab_verdict;

extern const char *const lab_verdict_names[VERDICTS];

typedef enum lab_run_end {
    RUN_FINISHED,
    RUN_FAILED,
    RUN_PRUNED,    /* everything from here on was already explored */
    RUN_TRUNCATED, /* too long */
    RUN_SKIPPED,   /* another process explores it */
    RUN_PAUSED     /* a bookmark is set */
} lab_run_end;

/* The state of one schedule. */
typedef struct lab_run_state {
    uint32_t thread_count;
    uint64_t now; /* interrupt time */
    char *heap_top;
    /* Still allowed. */
    uint32_t spurious, failures, stale, deferred, timeouts, weak_failures, deaths, kills, reuses;
    uint32_t killed; /* processes */
    uint32_t lonely_timeouts; /* timeouts that came when no other thread could run */
    uint32_t steps;
    uint32_t idle_rounds;
    bool stirred;      /* spinning threads had their turn when no thread could run */
    bool ended;        /* all threads but service threads */
    uint32_t epilogue; /* timeouts that service threads still get after all others have ended */
    uint32_t yielders;
    uint32_t versions;
    uint32_t stores;
    uint32_t c11_events;
    uint32_t strong, fences; /* c11: sequentially consistent events; those of them that are fences */
    bool barriers;           /* c11: there was a barrier on all threads */
    uint32_t freed;          /* blocks that may be reused */
    uint32_t asides;         /* granules with more accesses than slots */
    uint32_t operations;
    uint32_t ordinal;
    uint32_t branches; /* nodes at which more than one thread could run */
    uint32_t turn;     /* its steps in a row on variables of its own, while others could run */
    uint32_t allocations;
    lab_thread threads[MAX_THREADS]; /* from here on only the used part is restored */
    LAB_OPERATION history[MAX_OPERATIONS];
    lab_vclock began[MAX_OPERATIONS];  /* what happened before each operation of the history */
    uint32_t ended_at[MAX_OPERATIONS]; /* the thread's clock when the operation ended */
} lab_run_state;

typedef enum lab_strategy {
    STRATEGY_PORTFOLIO,
    STRATEGY_DPOR,
    STRATEGY_BOUNDED,
    STRATEGY_PCT,
    STRATEGY_RANDOM,
    STRATEGY_STATES,
    STRATEGY_BOUNDED_STATES,
    STRATEGY_REPLAY
} lab_strategy;

static inline bool lab_compares_states(lab_strategy strategy)
{
    return strategy == STRATEGY_STATES || strategy == STRATEGY_BOUNDED_STATES;
}

/* The next schedule begins like the last one, up to the last decision that has an alternative. */
static inline bool lab_is_depth_first(lab_strategy strategy)
{
    return strategy == STRATEGY_DPOR || strategy == STRATEGY_BOUNDED || lab_compares_states(strategy);
}

typedef enum lab_model { MODEL_SC, MODEL_TSO, MODEL_C11, MODELS } lab_model;

extern const char *const lab_model_names[MODELS];
void lab_set_model(const char *name);

typedef struct lab_options {
    lab_strategy strategy;
    lab_model model;
    bool weak; /* a load may read an older store */
    bool verbose;
    bool to_stderr; /* report failures there: stdout belongs to a test harness */
    bool precise;   /* interrupts come before plain accesses too */
    bool brief;     /* report only the verdict of a failure */
    bool calls;     /* the trace shows calls of the library, not the steps inside them */
    const char *html;     /* a page with the trace is written there */
    const char *json;     /* results are appended to this file; NULL: none */
    bool show_progress;   /* on the terminal */
    const char *checkpoint; /* a file from which the search continues; NULL: none */
    bool strict;    /* a truncated schedule is a failure */
    bool ends;      /* the states in which schedules end are counted */
    bool abstract;  /* proven waits are single steps: hal/abstract.c */
    bool abstract_locks; /* proven locks and sleeps likewise: hal/locks.c */
    bool replays;   /* each schedule is made from its beginning: bookmark.c */
    bool unreduced; /* bounded, states: also schedules that equal another one up to the order of independent steps */
    uint32_t preemptions;
    uint32_t depth; /* of PCT */
    uint32_t stale;    /* UNLIMITED; otherwise the number in a schedule */
    uint32_t timeouts; /* likewise */
    uint32_t behind;   /* likewise, in a row behind the same store, by one thread */
    uint32_t reuses;   /* of freed memory */
    uint32_t weak_failures;
    uint32_t jobs;
    uint32_t job; /* this process's number among the jobs */
    uint64_t seed;
    uint64_t schedules;
    double seconds;
    uint32_t max_steps;
    uint32_t patience; /* how often a thread may repeat a loop of reads in which nothing changes */
    const char *replay;
    const char *only;
} lab_options;

#define UNLIMITED     UINT32_MAX
#define DEFAULT_LIMIT (UINT32_MAX - 1)

/* What was not tried, because of a limit. */
#define CUT_TIMEOUTS  0x1u
#define CUT_STALE     0x2u
#define CUT_BEHIND    0x4u
#define CUT_DEFERRALS 0x8u
#define CUT_REUSE     0x10u
#define CUT_CHOICES   0x20u
#define CUT_VERSIONS  0x40u
#define CUT_SLOTS     0x80u
#define CUT_LENT      0x100u

/* What was made single steps: hal/abstract.c, hal/locks.c. */
#define ABSTRACT_EVENTS     0x1u
#define ABSTRACT_SEMAPHORES 0x2u
#define ABSTRACT_ALERTS     0x4u
#define ABSTRACT_LOCKS      0x8u
#define ABSTRACT_SLEEPS     0x10u

#define DEFAULT_STALE 3
#define DEFERRALS     2
#define MAX_CHOICES   255
#define MAX_VERSIONS  64

typedef struct lab_result {
    uint32_t cut; /* CUT_: limits of what `exhausted` and `bound` say */
    uint32_t abstracted; /* ABSTRACT_: likewise */
    uint64_t schedules, pruned, truncated, steps;
    uint64_t ends, ends_hash; /* ends.c: their number, and the sum of their hashes */
    bool exhausted;
    bool by_states; /* that is: every state, not every schedule */
    int bound; /* all schedules with up to this number of preemptions were run; -1: none */
    lab_verdict verdict;
    uint64_t found_at;
    double seconds;
    const char *found_by;
} lab_result;

#define SLOTS       5
#define SLOT_WRITE  1
#define SLOT_ATOMIC 2

typedef struct lab_slot {
    uint32_t pc;
    uint16_t clock;
    uint8_t mask;
    uint8_t thread : 4;
    uint8_t flags : 4;
} lab_slot;

typedef enum lab_poison { POISON_NONE, POISON_FREED, POISON_ZONE } lab_poison;

#define ASIDE_SLOTS 59
#define MAX_ASIDE   255

typedef struct lab_aside {
    uint32_t used;
    lab_slot slots[ASIDE_SLOTS];
} lab_aside;

/* The shadow of 8 bytes: their accesses in this schedule, and their cells. One cache line. */
typedef struct lab_granule {
    uint32_t generation;
    uint8_t used;
    uint8_t last; /* the slot of the last access */
    uint8_t poison;
    uint8_t aside; /* where the older accesses that did not fit are; 0: none */
    lab_slot slots[SLOTS];
    uint16_t cell[8];
} lab_granule;

#define MAX_FREED   1024
#define MAX_TOUCHED (1u << 22)

/* A block that was freed in this schedule, and what the thread that reallocates it acquires. */
typedef struct lab_freed {
    char *address;
    lab_vclock clock;
} lab_freed;

#define MAX_QUEUES  16384
#define MAX_ENDLESS 1024

/* The cell that represents the threads blocked on an address. */
typedef struct lab_queue {
    uintptr_t address;
    uint32_t cell;
} lab_queue;

typedef struct lab_decision {
    bool choice;
    uint8_t value;
} lab_decision;

typedef struct lab_engine {
    lab_options options;
    const LAB_SCENARIO *scenario;
    lab_run_state run;
    lab_run_state start; /* the state with which every schedule begins */
    bool started;        /* main has been called: what is allocated before belongs to the program */
    bool running;        /* a schedule is running: accesses are steps */
    bool preparing;      /* Setup is running */
    bool failing;        /* a failure is being recorded */
    bool quiet;          /* no thread runs: Invariant, Finish */
    bool only_schedule;  /* there is no other one: nothing has to be undone after it */
    bool tracing;
    bool clears_frames;     /* the functions of the program do: fiber.c */
    bool uses_interrupts;   /* a schedule has sent one: states.c */
    bool uses_cancellation; /* a schedule has called pthread_cancel: waits check whether they were cancelled */
    bool tracking;       /* cycle.c: states are compared */
    lab_thread *current; /* NULL: the explorer itself */
    void *main_sp;
    jmp_buf main_failed; /* not in the program's memory: it has registers of the search */
    uint8_t main_tls[MAX_TLS];
    lab_run_end end;

    /* The memory of the explored program. */
    char *arena, *arena_end, *heap, *stacks, *stacks_end;
    char *data, *data_end;
    char *tls;
    size_t tls_size;
    const char *tls_image;
    size_t tls_image_size;
    lab_granule *data_shadow, *arena_shadow;
    uint32_t generation;
    /* Those of this generation: bookmark.c. */
    lab_granule **touched_granules;
    uint16_t *touched_cells;
    uint32_t touched_granule_count, touched_cell_count;

    lab_aside *aside;
    lab_freed *freed;
    lab_cell *cells;
    uint32_t cell_count;
    lab_queue queues[MAX_QUEUES]; /* a hash table */
    bool cells_changed;
    uint32_t shared_changes;
    uint32_t users_changes;
    uint64_t endless[MAX_ENDLESS]; /* loops that end only if something changes: a hash table */
    uint32_t endless_count;

    /* The tree. */
    lab_strategy active;
    lab_node *nodes;
    lab_node *kept_nodes;  /* while cycles are searched; NULL: not searched yet */
    uint32_t node_count;   /* of the current schedule */
    uint32_t replay_count; /* the number of given nodes */
    int32_t last_node;     /* the NODE_THREAD whose step was made last */
    lab_step *steps;
    lab_version *versions;
    lab_c11_event *c11_events;
    int32_t *strong;       /* the sequentially consistent ones among them */
    uint32_t *strong_seen; /* of each of those: the last search that reached it */
    uint32_t strong_search;
    int32_t *strong_stack; /* of that search */
    uint32_t cut; /* CUT_: in the current search */
    uint32_t abstracted; /* ABSTRACT_: in any schedule */
    uint64_t random;
    uint32_t priority[MAX_THREADS];
    uint32_t change_at[16];
    uint32_t longest;

    /* A given schedule: from a token, or from the minimiser, whose schedule may no longer fit. */
    lab_decision *given;
    uint32_t given_count, given_next;
    bool lenient;

    /* The failure. */
    lab_verdict verdict;
    char text[4096];
    char printed[2048]; /* the output of the library */
    size_t printed_length;
    uintptr_t failure_pc;
    uint8_t failure_thread;
    uintptr_t failure_callers[EVENT_CALLERS]; /* of the failing thread, innermost first */
    const uintptr_t *known_callers;           /* the same, if the frames do not show them; NULL: they do */
    lab_past_access earlier;                  /* the access that it races with; pc 0: none, or not traced */
    struct lab_cycle_states *cycles;
    struct lab_ways *ways;        /* likewise */
    struct lab_state_set *states; /* states.c */
    struct lab_end_set *ends;     /* ends.c */
    struct lab_bookmarks *bookmarks; /* bookmark.c */
    struct lab_open_cells *open_cells; /* rc11.c */
    uint8_t paused;                  /* the thread that was running when a bookmark was set */
    bool cycle_found;     /* the failure is a cycle */
    uint32_t cycle_event; /* the event from which on the schedule repeats */

    /* posix/program.c */
    bool is_program; /* not scenarios, but a program with main, or functions given by name */
    bool is_muted;
    int output[2], sink, capture; /* descriptors */
    struct {
        volatile char is_watching; /* the kernel reads it */
        bool has_opened, has_masked;
        uint64_t opened[LAB_DESCRIPTORS / 64]; /* in this schedule */
        long number; /* of the call that is refused, */
        uintptr_t place;
        char name[32];
        void *stack; /* of signals */
        size_t stack_size;
    } calls; /* posix/calls.c */

    double progress_began, progress_shown, progress_saved; /* progress.c */

    lab_event *events;
    lab_past_access *accesses; /* the last ones, while a trace is made */
    uint32_t access_count;
    uint32_t event_count;
    lab_result result;
} lab_engine;

extern lab_engine *lab;

/* fiber.c */
void lab_fiber_prepare(lab_thread *fiber, void (*entry)(void));
void lab_fiber_switch(void **save, void *restore);
void lab_fiber_clear_stack(void);
bool lab_fiber_clears_frames(uintptr_t function); /* compiled with -mfentry: it clears its own frame */

/* bookmark.c */
void lab_bookmarks_set(uint16_t enabled);  /* before each decision */
void lab_bookmarks_forget(void);           /* the schedule starts from the beginning */
lab_thread *lab_bookmarks_save(void);      /* after RUN_PAUSED; the thread that goes on */
lab_thread *lab_bookmarks_return(void);    /* to the last state from which the next schedule can go on; NULL: there is none */

/* memory.c */
void lab_memory_initialize(void);
void lab_memory_snapshot(void);
void lab_memory_restore(void);
void *lab_memory_allocate(size_t size, size_t alignment, uintptr_t pc); /* pc: the code that accesses it */
bool lab_memory_free(void *memory, uintptr_t pc);
bool lab_memory_is_heap(const void *memory); /* of the program */
size_t lab_memory_size(const void *memory);  /* of a block of it */
void lab_memory_report_leaks(void);
bool lab_memory_take_fault(uintptr_t address); /* FALSE: the explorer did not cause it */
void *lab_memory_map(size_t size);             /* for the explorer itself */

/* Saves state, or puts it back: one list of what belongs to it serves both. */
typedef struct lab_copy {
    char *at, *end;
    bool saves;
    bool is_full; /* what is saved is not complete */
} lab_copy;

static inline void lab_copy_bytes(lab_copy *c, void *state, size_t size)
{
    if (size > (size_t)(c->end - c->at)) {
        c->is_full = true;
        return;
    }
    memcpy(c->saves ? c->at : state, c->saves ? state : c->at, size);
    c->at += size;
}

void lab_memory_copy(lab_copy *c); /* the program's, without stacks; lab->run has been copied */
uint64_t lab_memory_hash(void);                /* of all memory that the program has changed */
void lab_memory_ignore(const volatile void *from, size_t size); /* by that hash */
void lab_memory_add_statistic(uintptr_t address, size_t size);
bool lab_memory_is_statistic(uintptr_t address); /* its accesses are not steps */
uint64_t lab_memory_hash_bytes(uint64_t hash, const void *bytes, size_t size); /* size: a multiple of 8 */
uint64_t lab_memory_hash_region(const void *from, size_t size); /* also of where it is; likewise */
uint64_t lab_memory_without_own(uint64_t word);
void lab_memory_check_slow(uintptr_t address, lab_granule *shadow, uintptr_t pc);

/* NULL: not memory of the program. */
static inline lab_granule *lab_memory_shadow(uintptr_t address)
{
    if (address - (uintptr_t)lab->data < (uintptr_t)(lab->data_end - lab->data))
        return &lab->data_shadow[(address - (uintptr_t)lab->data) / 8];
    if (address - (uintptr_t)lab->arena < (uintptr_t)(lab->arena_end - lab->arena))
        return &lab->arena_shadow[(address - (uintptr_t)lab->arena) / 8];
    return NULL;
}

static inline bool lab_memory_is_tls(uintptr_t address)
{
    return address - (uintptr_t)lab->tls < lab->tls_size;
}

/* May the running thread access this address? */
static inline void lab_memory_check(uintptr_t address, lab_granule *shadow, uintptr_t pc)
{
    if (shadow->poison != POISON_NONE || address - (uintptr_t)lab->stacks < (uintptr_t)(lab->stacks_end - lab->stacks))
        lab_memory_check_slow(address, shadow, pc);
}

const char *lab_memory_describe(uintptr_t address, char *buffer, size_t size);
uintptr_t lab_memory_origin(uintptr_t address, size_t *size); /* where that block was allocated; 0: it is not a block */

/* reuse.c */
char *lab_reuse_choose(size_t size, size_t alignment); /* a freed block, or NULL: a new one */
void lab_reuse_begin_free(uintptr_t pc);
void lab_reuse_end_free(char *address);

/* signals.c */
void lab_signals_install(void);

/* race.c */
void *__wrap_memcpy(void *to, const void *from, size_t size);
void lab_tsan_plain(uintptr_t address, size_t size, bool write, uintptr_t pc); /* of the running thread */
uintptr_t lab_sched_program_sp(const lab_thread *t, uintptr_t innermost); /* of the call that t makes */
void lab_race_frames(lab_thread *t, uintptr_t sp, uintptr_t pc); /* the stack below sp is no longer in use */
void lab_race_access(uintptr_t address, size_t size, bool write, bool atomic, uintptr_t pc);

/* cells.c */
uint32_t lab_cell_find_slow(uintptr_t address, size_t size);
uint32_t lab_cell_queue(uintptr_t address);
uint32_t lab_cell_pseudo(uint32_t number); /* PSEUDO_ */
void lab_cell_begin(lab_cell *c);
bool lab_cell_is_shared(const lab_cell *c);

static inline uint32_t lab_cell_find(uintptr_t address, size_t size)
{
    lab_granule *shadow = lab_memory_shadow(address);

    if (shadow == NULL)
        return NO_CELL;
    uint32_t number = shadow->cell[address & 7];
    const lab_cell *c = &lab->cells[number];
    if (number != NO_CELL && address >= c->address && address + size <= c->address + c->size)
        return number;
    return lab_cell_find_slow(address, size);
}

/* Its state in this schedule. */
static inline lab_cell *lab_cell_of(uint32_t number)
{
    lab_cell *c = &lab->cells[number];

    if (c->generation != lab->generation)
        lab_cell_begin(c);
    return c;
}

#define PSEUDO_CLOCK               0
#define PSEUDO_CONTEXT(lab_thread) (1 + (lab_thread))
#define PSEUDO_STRONG              (1 + MAX_THREADS) /* tso: the order of all stores */
#define PSEUDO_HEAP                (2 + MAX_THREADS) /* which freed memory can be reused */
#define PSEUDO_HISTORY             (3 + MAX_THREADS) /* states.c: which operations have returned */
#define PSEUDO_CELLS               (4 + MAX_THREADS)

/* atomic.c */
typedef enum lab_rmw_kind { RMW_EXCHANGE, RMW_ADD, RMW_SUB, RMW_AND, RMW_OR, RMW_XOR, RMW_NAND } lab_rmw_kind;

u128 lab_atomic_load(uintptr_t address, size_t size, int order, uintptr_t pc);
void lab_atomic_store(uintptr_t address, size_t size, u128 value, int order, uintptr_t pc);
u128 lab_atomic_rmw(uintptr_t address, size_t size, lab_rmw_kind kind, u128 operand, int order, uintptr_t pc);
u128 lab_atomic_cas(uintptr_t address, size_t size, u128 expected, u128 desired, int order, int failure, uintptr_t pc);
/* The weak form: may fail spuriously. FALSE: it failed, and *expected is the value found. */
bool lab_atomic_cas_weak(uintptr_t address, size_t size, u128 *expected, u128 desired, int order, int failure,
                         uintptr_t pc);
bool lab_atomic_would_write(const lab_thread *t); /* would its next step change memory? */
void lab_atomic_fence(int order, uintptr_t pc);
/* The program makes the store itself, right after this call. */
void lab_atomic_touch(uintptr_t address, size_t size, uintptr_t pc);
void lab_atomic_plain_write(uintptr_t address, size_t size);
void lab_atomic_barrier_all(void);
u128 lab_atomic_ask(uintptr_t address, size_t size, uintptr_t pc); /* the machine's state: its newest value, acquired */
void lab_atomic_observe(lab_thread *t, uint32_t cell); /* the machine has read the newest value for t */
void lab_atomic_acquire(lab_thread *t, uint32_t cell); /* the same, and it acquires what the last change has released */
/* The announced step of the machine, on the cell of its first access: a read-modify-write. Returns the old value. */
u128 lab_atomic_change(lab_thread *t, uintptr_t address, size_t size, int order, u128 (*change)(u128 old, void *context),
                       void *context, uintptr_t pc);
/* The same, at once after the newest value: it sets a bit that is clear there, the lock's. */
u128 lab_atomic_lock(lab_thread *t, uintptr_t address, size_t size, uint64_t bit, uintptr_t pc);
u128 lab_atomic_peek(uintptr_t address, size_t size, uintptr_t pc); /* a relaxed load that may race */
void lab_atomic_forget(uintptr_t address, size_t size, u128 bits); /* clears them in memory, and in what the last store left */
/* Synchronization that is not an access to memory: what t has done happens before what a taker does from now on. */
void lab_atomic_give(lab_thread *t, uint32_t cell, bool adds); /* adds: to what others have given */
void lab_atomic_take(lab_thread *t, uint32_t cell);

/* rc11.c */
typedef enum lab_c11_access { C11_LOAD, C11_STORE, C11_MODIFY } lab_c11_access;

/* An access that is about to be made. */
typedef struct lab_c11_request {
    lab_c11_access access;
    int order;
    bool compares; /* a compare-exchange: C11_MODIFY where it finds `expected`, otherwise C11_LOAD with `failure` */
    int failure;
    u128 expected;
    uintptr_t address;
    size_t size;
} lab_c11_request;

void lab_c11_ensure_history(lab_cell *c);
int32_t lab_c11_choose(lab_thread *t, uint32_t cell, const lab_c11_request *request); /* the version it comes after */
void lab_c11_read(lab_thread *t, uint32_t cell, int32_t version, int order);
/* The access makes this value of the whole cell, right after that version; modifies: it has read that version. */
void lab_c11_write(lab_thread *t, uint32_t cell, int32_t after, u128 value, int order, bool modifies);
void lab_c11_fence(lab_thread *t);
void lab_c11_barrier_all(void);
uint64_t lab_c11_hash(void); /* of what later steps depend on; 0: unknown */
u128 lab_c11_value(const lab_cell *c, int32_t version, uintptr_t address, size_t size);

/* sched.c */
void lab_sched_point(lab_thread *t);     /* t has announced its next step; returns when t is chosen */
void lab_sched_reschedule(void);         /* lets a thread make the next step; returns when the caller is chosen */
void lab_sched_switch(lab_thread *next); /* NULL: to the explorer itself */
void lab_sched_check_invariant(void);
void lab_sched_leave(lab_run_end end) __attribute__((noreturn));
void lab_sched_too_long(void) __attribute__((noreturn));
void lab_sched_fail(lab_verdict verdict, uintptr_t pc, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
lab_run_end lab_sched_run(void);
bool lab_sched_prepare(void (*setup)(void)); /* before the first schedule; FALSE: Setup failed */

static inline bool lab_sched_active(void)
{
    return lab != NULL && lab->running && !lab->quiet;
}

/* spin.c */
uint64_t lab_spin_callers(lab_thread *t);
void lab_spin_watch(lab_thread *t, uint32_t cell, uintptr_t address, size_t size, int32_t version, uint64_t value,
                    uintptr_t pc);
bool lab_spin_is_endless(const lab_operation *op); /* the loop around that read ends only if something changes */
void lab_spin_look(lab_thread *t); /* before a step is announced: is it a step, and can the thread make progress? */
void lab_spin_changed(uint32_t cell);
void lab_spin_yield_hint(lab_thread *t, uint32_t steps); /* yields to this number of steps of other threads */
bool lab_spin_stir(void); /* threads that spin or yielded get another turn; FALSE: there are none */

/* cycle.c */
void lab_cycle_begin(void);
void lab_cycle_note(void);                      /* before each decision */
bool lab_cycle_note_position(lab_thread *t);    /* of the running thread; FALSE: unknown */
uint64_t lab_cycle_hash(void);                  /* of the state; the positions of all threads have been noted */
uint64_t lab_cycle_hash_step(const lab_thread *t); /* of its next step, and its registers there */
uintptr_t lab_cycle_place(const lab_thread *t); /* of the running thread, in its own function; 0: unknown */

static inline bool lab_cycle_is_compared(void)
{
    return lab != NULL && (lab->tracking || lab_compares_states(lab->active));
}

/* Before the program continues. */
static inline void lab_cycle_sweep(void)
{
    if (lab_cycle_is_compared())
        lab_fiber_clear_stack();
}

/* Likewise, after a plain access: its check leaves little, which functions that clear their own frames do not see. */
static inline void lab_cycle_sweep_access(void)
{
    if (lab_cycle_is_compared() && (!lab->clears_frames || lab->options.precise))
        lab_fiber_clear_stack();
}

/* states.c */
void lab_states_clear(void);
bool lab_states_is_full(void);
void lab_states_give_up(void); /* the program does something that states do not cover */
void lab_states_note(uint16_t enabled); /* before each decision */
uint8_t lab_states_pick(lab_node *n, int32_t previous);
bool lab_states_is_reduced(void);      /* the search tries only what can make a difference */
void lab_states_see_interrupts(void);  /* the program sends interrupts */
void lab_states_search_all(void);      /* it must not: the program does something that summaries do not cover */
void lab_states_open(uint32_t node);   /* a new one */
void lab_states_leave_branch(uint32_t node); /* before the next one */
void lab_states_leave_node(uint32_t node);   /* after its last one */
/* Was the search in this state before, with the same addition by the caller, at this cost or a lower one? */
bool lab_states_is_known(uint64_t also, uint32_t cost);

/* history.c */
uint64_t lab_history_hash(void);
uint64_t lab_history_hash_view(const lab_vclock *clock);

/* stuck.c */
void lab_stuck_describe_brief(const lab_thread *t, char *buffer, size_t size);
void lab_stuck_fail(lab_verdict verdict) __attribute__((noreturn));
void lab_stuck_fail_endless(void) __attribute__((noreturn));

/* step.c */
void lab_step_announce(lab_thread *t, lab_op_kind kind, uintptr_t address, uintptr_t pc);
void lab_step_access(lab_thread *t, uint32_t cell, bool write); /* an access that the announced step will make */
void lab_step_make(lab_thread *t, int count, const lab_access *accesses);
void lab_step_local(lab_thread *t, lab_op_kind kind, uintptr_t pc); /* a complete step that accesses nothing */
void lab_step_plain(lab_thread *t, uintptr_t address, uintptr_t pc); /* before a plain access of t */
void lab_step_order_after(lab_thread *t, int32_t earlier, int32_t own, const lab_vclock *before);

/* Because of the last step of `waker` that thread can run. */
void lab_step_wakes(const lab_thread *waker, lab_thread *t);
/* The last step also depends on the last write of that cell, and could not have come before it. */
void lab_step_follow(lab_thread *t, uint32_t cell, bool readers_too);
/* The last step ends the process: it could have come before any step of the other threads. */
void lab_step_follow_all(lab_thread *t);

static inline bool lab_step_happened_before(int32_t step, const lab_vclock *clock)
{
    const lab_step *s = &lab->steps[step];
    return clock->at[s->thread] >= s->ordinal;
}

/* gate.c */
/* A step of t that waits for its gate. FALSE: it has timed out. The accesses have been announced. */
bool lab_gate_pass(lab_thread *t, const lab_gate *gate, uint64_t deadline);

static inline bool lab_gate_is_closed(const lab_thread *t)
{
    return t->gate != NULL && t->state == THREAD_READY && !t->gate->is_open(t);
}

/* thread.c */
lab_thread *lab_thread_spawn(void (*routine)(void *), void *argument, const char *name, bool service);
void lab_thread_begin_own_function(const void *frame); /* called in this frame; cycle.c */
void lab_thread_exit(void) __attribute__((noreturn));
bool lab_thread_dies(lab_thread *t);                       /* a choice, before a step */
void lab_thread_terminate(void) __attribute__((noreturn)); /* like lab_thread_exit, without notifying the machine */
uint32_t lab_thread_end_cell(const lab_thread *t); /* written by its last step */
void lab_thread_start_all(void);

/* process.c */
bool lab_process_is_killed(lab_thread *t); /* a choice, before a step */
void lab_process_kill(lab_thread *t) __attribute__((noreturn));

/* block.c */
bool lab_block_wait(uintptr_t address, uint32_t expected, uint64_t deadline, uintptr_t pc);
/* Part of a step of t, which continues when another thread wakes it. FALSE: it has timed out, and makes the step of
 * t->op. */
bool lab_block_sleep(lab_thread *t, uintptr_t address, uint32_t queue, uint64_t deadline, uintptr_t pc);
uint32_t lab_block_wake_address(uintptr_t address, uint32_t count, uintptr_t pc); /* the number of woken threads */
/* Wakes waiters of one word, and moves others to another: one step. FALSE: the word has another value, and nothing happens. */
typedef struct lab_requeue {
    bool compares;
    uint32_t expected, wakes, moves;
    uint32_t woken, moved; /* the result */
} lab_requeue;
bool lab_block_requeue(uintptr_t from, uintptr_t to, lab_requeue *how, uintptr_t pc);
void lab_block_wake(lab_thread *t);
void lab_block_interrupt(uint32_t number, uintptr_t pc);
uint64_t lab_block_clock(uintptr_t pc);

/* explore.c */
#define LAB_BIT(n) ((uint16_t)(1u << (n)))

static inline uint8_t lab_lowest(uint16_t set)
{
    return (uint8_t)__builtin_ctz(set);
}

uint8_t lab_explore_pick(uint16_t enabled);
uint32_t lab_explore_choose(uint32_t count); /* inside a step */
uint32_t lab_explore_stale(void); /* how many old values a schedule may read */
uint32_t lab_explore_choose_among(uint64_t tried); /* the strategy tries only these choices; 0 is one of them */
uint8_t lab_explore_prefer(uint16_t set);

/* Something was not tried, because of a limit. */
static inline void lab_explore_cut(uint32_t limit)
{
    lab->cut |= limit;
}

/* A choice, while failures are allowed: an allocation, or an operation that needs one, fails. */
static inline bool lab_explore_memory_runs_out(void)
{
    if (!lab_sched_active() || lab->run.failures == 0 || lab_explore_choose(2) == 0)
        return false;
    lab->run.failures--;
    return true;
}

bool lab_explore_runs_on(uint16_t enabled);             /* the running thread's next step accesses nothing shared */
bool lab_explore_is_shared_out(void);                   /* several processes search the tree */
bool lab_explore_is_split_here(void);                   /* at this node each process tries everything */
bool lab_explore_prepare(const LAB_SCENARIO *scenario); /* FALSE: Setup failed */
void lab_explore_scenario(const LAB_SCENARIO *scenario);
double lab_explore_seconds(void);
bool lab_may_report(void); /* of several processes, the first to find a failure reports it */

/* bounds.c */
uint32_t lab_bounds_timeouts(const LAB_SCENARIO *scenario);
uint32_t lab_bounds_reuses(const LAB_SCENARIO *scenario);
uint32_t lab_bounds_stale(const LAB_SCENARIO *scenario, bool reduced);
/* "events, alerts": what hal/abstract.c and hal/locks.c have made single steps; or nothing. */
void lab_bounds_describe_abstracted(const lab_result *r, char *text, size_t size);
/* " with at most 2 timeouts", or nothing. */
void lab_bounds_describe(const LAB_SCENARIO *scenario, const lab_result *r, char *text, size_t size);

/* dpor.c */
uint8_t lab_dpor_pick(lab_node *n, int32_t previous);
void lab_dpor_race(int32_t earlier, int32_t later, const lab_vclock *before);
void lab_dpor_instead(uint8_t thread);
void lab_dpor_prune(void) __attribute__((noreturn)); /* the new node decides nothing: what follows was explored elsewhere */
uint16_t lab_dpor_awake(const lab_node *n); /* the threads that can run there and do not sleep; prunes if there is none */
bool lab_dpor_is_active(void); /* races of steps decide what is tried */
bool lab_dpor_leaves_old(void); /* c11: an old value is left to the schedule in which the load comes before the newer store */
uint16_t lab_dpor_sleepers(int32_t previous); /* at a new node: threads whose next step was tried before the steps since */
/* The threads of the set whose next step commutes with the step made at the node. */
uint16_t lab_dpor_commuting(int32_t node, uint16_t set);

/* ends.c */
void lab_ends_note(void);

/* bounded.c */
uint8_t lab_bounded_pick(lab_node *n, int32_t previous);
void lab_bounded_count(void);

/* random.c */
uint32_t lab_random_below(uint32_t limit);
uint8_t lab_random_pick(uint16_t enabled);
uint8_t lab_random_pick_pct(uint16_t enabled);
void lab_random_prepare(lab_strategy active);

/* progress.c */
bool lab_progress_resume(void);     /* the tree of an earlier run exists and is continued */
bool lab_progress_is_stopped(void); /* shows and saves it now and then; TRUE: the user wants it to end */
void lab_progress_finish(bool complete);

/* minimise.c */
void lab_minimise(void);
void lab_minimise_give(void); /* the schedule that was just run becomes the given one */
void lab_minimise_show(lab_verdict found);

/* replay.c */
uint8_t lab_replay_pick(uint16_t enabled);
uint32_t lab_replay_choose(uint32_t count);
bool lab_replay_run(const LAB_SCENARIO *scenario, const char *decisions);

/* report.c */
void lab_report_failure(void);
void lab_report_event(lab_op_kind kind, uintptr_t address, size_t size, int order, uint64_t before, uint64_t after,
                      bool flag, uintptr_t pc);
/* A call of a function that the explorer provides, on the object at the address. */
void lab_report_call(const char *call, uintptr_t address, uint64_t result, bool failed, uintptr_t pc);
char *lab_report_token(char *buffer, size_t size);
/* The return addresses of the running thread, from pc on. */
void lab_report_callers(uintptr_t callers[EVENT_CALLERS], uintptr_t pc);
void lab_report_access(uintptr_t address, uintptr_t pc);
void lab_report_earlier(uintptr_t address, uintptr_t pc, uint8_t thread);
void lab_report_place(uintptr_t pc, char *buffer, size_t size);
void lab_report_symbol(uintptr_t address, char *buffer, size_t size);
void lab_report_print(const char *text); /* replaces the output of the two functions above by names */
/* Which other threads have changed that variable, and where. */
void lab_report_changes(uintptr_t address, uint8_t thread, char *buffer, size_t size);

/* The machine: lab/hal. */
typedef struct lab_machine_routines {
    void (*adopt)(void); /* the running fiber becomes a thread of the library */
    void (*thread_exit)(void);
    void (*interrupt)(void);
    bool (*describe_address)(uintptr_t address, char *buffer, size_t size);
    bool (*describe_wait)(lab_thread *t, char *buffer, size_t size, bool *satisfied);
} lab_machine_routines;

extern lab_machine_routines lab_machine;
bool lab_describe_wait(lab_thread *Thread, char *Buffer, size_t Size, bool *Satisfied);
bool lab_describe_address(uintptr_t Address, char *Buffer, size_t Size);

#endif
