/*
 * model.h: what the library must do, call by call. The state of each object is that of the lab's sequential models
 * (lab/models); this file adds the waiters, their order, and what ends a wait.
 */
#ifndef INTERLOCK_TESTS_FUZZ_MODEL_H
#define INTERLOCK_TESTS_FUZZ_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <interlock/lab.h>
#include <interlock/nt.h>

#define ACTORS           4
#define MAIN             ACTORS       /* drives the actors: makes calls as well, but none that can wait */
#define WAIT_PACKET      (ACTORS + 1) /* a wait completion packet, which waits like a thread */
#define CALLERS          (ACTORS + 2) /* also: no caller */
#define MOST_WAITED      3
#define MOST_APCS        4
#define MOST_SUSPENSIONS 3
#define MOST_RECURSIONS  1000 /* more than an input has calls */

enum { E0, E1, E2, S0, S1, M0, M1, T0, T1, A0, PORT = A0 + ACTORS, OBJECTS };
/* The sides of the event pair, which have their own kind of wait. */
enum { LOW = OBJECTS, HIGH, ALL_OBJECTS };
enum { Q0, P0, QUEUES };                               /* a KQUEUE and a completion port */
enum { SRW, PUSH, SECTION, RESOURCE, GUARDED, LOCKS }; /* condition variables: one for SRW, one for SECTION */
enum { EXCLUSIVE, SHARED, STARVE_EXCLUSIVE, WAIT_FOR_EXCLUSIVE, MANNERS };
enum { KEYS = 2, WORDS = 2, PACKETS = 8, LIST_ENTRIES = 6 };
enum { WAIT_PACKETS_PACKET = PACKETS + 1 };
enum { KEYED_WAIT, KEYED_RELEASE };

typedef enum {
    NOT_WAITING,
    FOR_OBJECTS,
    FOR_QUEUE,
    FOR_KEY,
    FOR_WORD,
    FOR_ALERT,
    FOR_LOCK,
    FOR_CONDITION,
    FOR_RUNDOWN
} waiting_for;

/* Rules that can be inverted, to check that the inversion is detected. */
#define RULES(RULE)                                                                                                    \
    RULE(wake_order)                                                                                                   \
    RULE(pulse_resets)                                                                                                 \
    RULE(lowest_index)                                                                                                 \
    RULE(abandonment)                                                                                                  \
    RULE(all_at_once)                                                                                                  \
    RULE(queue_order)                                                                                                  \
    RULE(concurrency)                                                                                                  \
    RULE(blocked_frees_place)                                                                                          \
    RULE(alert_first)                                                                                                  \
    RULE(key_order)                                                                                                    \
    RULE(suspended_unlinked)                                                                                           \
    RULE(sharers_wait)                                                                                                 \
    RULE(resource_turns)                                                                                               \
    RULE(word_order)                                                                                                   \
    RULE(apc_order)                                                                                                    \
    RULE(mutex_order)                                                                                                  \
    RULE(pair_sides)                                                                                                   \
    RULE(due_time_replaced)                                                                                            \
    RULE(deadline_stays)

typedef enum {
#define RULE(rule) RULE_##rule,
    RULES(RULE)
#undef RULE
        RULE_COUNT,
    NO_RULE = RULE_COUNT
} rule;

typedef struct model_actor {
    bool alive;
    bool calling;       /* its call has not ended */
    unsigned suspended; /* how often */

    /* The wait. */
    waiting_for waiting;
    bool linked; /* signals reach it: it is not suspended */
    bool told;   /* its wait was satisfied while it was suspended */
    unsigned long since;
    unsigned objects[MOST_WAITED];
    unsigned count;
    bool all;
    bool alertable;
    KPROCESSOR_MODE mode;
    unsigned deadline; /* the hour, or 0; it may have passed while the actor was suspended */
    bool times_out;    /* in this step */
    unsigned place;    /* the queue, key, word or lock */
    unsigned manner;   /* the side of a key, the manner of a lock */

    /* The result of its call. */
    NTSTATUS status;
    intptr_t value;

    bool alerted[MaximumMode];
    bool alerted_by_id;
    bool may_be_alerted_by_id; /* user-mode locks wait for such alerts too, and may consume one */
    unsigned apcs[MOST_APCS];
    unsigned apc_count;
    uint64_t apcs_run; /* what ran, in which order */

    int queue;    /* that it belongs to, or -1 */
    bool counted; /* among those that run on its behalf */
    unsigned shares[LOCKS];
    unsigned protections; /* of the rundown */
} model_actor;

typedef struct model_object {
    const LAB_MODEL *model;
    intptr_t state[LAB_MODEL_STATE];
    unsigned long owned_since; /* of a mutant */
} model_object;

typedef struct fuzz_model {
    model_actor actors[CALLERS];
    model_object objects[ALL_OBJECTS];
    model_object queues[QUEUES];
    model_object locks[LOCKS];
    model_object rundown, list, keys;
    uint32_t words[WORDS];
    bool packets[QUEUES][PACKETS + 2]; /* queued */
    unsigned hour;
    unsigned due[T1 - T0 + 1]; /* the hour, or 0 */
    unsigned long clock;
    rule wrong;
} fuzz_model;

extern fuzz_model model;
extern const char *const rule_names[RULE_COUNT];

_Noreturn void mismatch(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The state of an object, a step of its model. predict finds the one result from low to high that the model allows. */
bool try_apply(model_object *object, unsigned name, unsigned actor, intptr_t argument, intptr_t result);
intptr_t predict(model_object *object, unsigned name, unsigned actor, intptr_t argument, intptr_t low, intptr_t high);
intptr_t state_of(unsigned object);
unsigned owner_of(unsigned mutant); /* the actor + 1, 0: none */
uint64_t add_apc(uint64_t run, unsigned number);

void model_reset(unsigned seed, rule wrong); /* seed: initial states */
void model_start(unsigned actor);

/* What a call does. The wait of the actor is in its fields: objects, count, all, alertable, mode, place, manner. */
void end_call(unsigned actor, NTSTATUS status, intptr_t value);
void begin_wait(unsigned actor, waiting_for what);
bool would_deadlock(unsigned actor, waiting_for what); /* if it waited as its fields say */
void wait_for_objects(unsigned actor, bool poll);
void satisfy(unsigned object); /* after its state has changed */
NTSTATUS release_mutant(unsigned actor, unsigned mutant, intptr_t *previous);
intptr_t pulse(unsigned event);

/* Time. At each hour at most one thing is due, so that the order of two does not matter. */
unsigned choose_hour(unsigned how_far);
unsigned next_hour(void); /* at which something is due; 0: none */
void pass_to_hour(unsigned hour);

void run_apcs(unsigned actor);
void look_for_alerts(unsigned actor); /* something is due */
void suspend(unsigned actor);
void resume(unsigned actor);
void end_actor(unsigned actor);

intptr_t insert_into_queue(unsigned queue, unsigned packet, bool head); /* how many there were */
void remove_from_queue(unsigned actor, bool poll);
void leave_queue(unsigned actor);
void activate_queue(unsigned queue);
void rundown_queue(unsigned queue);
bool associate_packet(unsigned object); /* FALSE: it waits */
NTSTATUS cancel_packet(bool remove_signaled);

void meet_at_key(unsigned actor, bool poll);
void wake_word(unsigned word, unsigned most);

bool can_acquire(unsigned actor); /* without a wait */
void acquire_lock(unsigned actor, bool poll);
void release_lock(unsigned actor, unsigned lock);
void grant_lock(unsigned lock, bool sharers_first);
bool holds_lock(unsigned actor, unsigned lock);
bool holds_exclusively(unsigned actor, unsigned lock);
bool holds_anything(unsigned actor); /* mutants aside */
bool has_waiters(unsigned lock);
bool wake_sleeper(unsigned lock); /* FALSE: no sleeper */
unsigned count_sleepers(unsigned lock);
bool complete_rundown(unsigned actor);
void check_rundown(void);

#endif
