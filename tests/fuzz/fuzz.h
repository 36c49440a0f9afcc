/*
 * fuzz.h: random sequences of calls by a few threads, compared with the model call by call.
 *
 * The actors are real threads that move in lock-step. A step is one call by one of them: the model predicts whether it
 * returns, with what, or waits; and which waits it ends. Then the call is made, and the step ends when every actor is
 * where the model predicts: returned with that result, or asleep in that wait. An actor that returns although the model
 * predicts a wait is a mismatch; one that does not return is a mismatch as soon as all threads are at rest, or, if it
 * runs forever, after PATIENCE_SECONDS. So no verdict depends on the scheduler.
 */
#ifndef INTERLOCK_TESTS_FUZZ_H
#define INTERLOCK_TESTS_FUZZ_H

#include <stddef.h>

#include <interlock/ex.h>
#include <interlock/rtl.h>

#include "model.h"

#define PATIENCE_SECONDS 300
#define MOST_STEPS       96
#define CALL_BYTES       4
#define HANDLE_SLOTS     3

typedef struct operation operation;

typedef struct call {
    const operation *operation;
    unsigned caller;
    bool forced;  /* by that caller and no other */
    uint8_t a, b; /* as they came */
    bool poll, alertable, kernel, other, timed;

    /* What predict made of them. */
    unsigned target;
    unsigned manner;
    LONG amount;
    unsigned hour; /* when the wait times out; 0: never */

    LARGE_INTEGER timeout;
    NTSTATUS status;
    intptr_t value;
    bool ends_thread;
} call;

struct operation {
    const char *name;
    enum { ANYBODY, ACTORS_ONLY, MAIN_ONLY } who;                /* may make it */
    bool (*predict)(call *made);                                 /* FALSE: not applicable now; nothing has changed */
    void (*perform)(call *made);                                 /* by the caller's thread */
    void (*describe)(const call *made, char *text, size_t size); /* its arguments */
};

extern const operation object_operations[], thread_operations[], queue_operations[], user_operations[],
    lock_operations[], handle_operations[], clock_operations[], pair_operations[];
extern const size_t object_operation_count, thread_operation_count, queue_operation_count, user_operation_count,
    lock_operation_count, handle_operation_count, clock_operation_count, pair_operation_count;

/* The real objects. */
typedef struct fuzz_things {
    HANDLE handles[OBJECTS]; /* those of threads too */
    PVOID bodies[ALL_OBJECTS];
    KQUEUE queue;
    LIST_ENTRY entries[PACKETS + 1];
    HANDLE port;
    PVOID port_body;
    HANDLE wait_packet;
    HANDLE keyed_event;
    HANDLE pair_handle;
    PKEVENT_PAIR pair;
    volatile uint32_t words[WORDS];
    RTL_SRWLOCK srw;
    EX_PUSH_LOCK push;
    RTL_CRITICAL_SECTION section;
    ERESOURCE resource;
    KGUARDED_MUTEX guarded;
    RTL_CONDITION_VARIABLE conditions[LOCKS];
    EX_RUNDOWN_REF rundown;
    SLIST_HEADER list;
    SLIST_ENTRY list_entries[LIST_ENTRIES + 1];
} fuzz_things;

extern fuzz_things things;
extern const char *const object_names[ALL_OBJECTS];

/* things.c */
void things_create(void);
void things_delete(void);
void check_states(void);
ULONG count_handles(void);

/* objects.c */
void predict_wait_as_said(call *made); /* by the fields of the actor */

/* handles.c: a few more handles on the objects. */
void slots_reset(void);

/* actors.c */
void watch_actors(void); /* before the first is started */
PKTHREAD thread_of(unsigned actor);
HANDLE id_of(unsigned actor);
void start_actor(unsigned actor);
void refresh_actor(unsigned actor); /* for the next input */
void forget_actor(unsigned actor);  /* after it has ended */
void dispatch(call *made);          /* lets the caller make it, and waits until all actors are where the model
                                       predicts */
bool await_another_look(unsigned *seconds); /* FALSE: a mismatch now is final */
void queue_apc(unsigned actor, unsigned number, NTSTATUS *status);

/* clock.c */
void start_clock(void);                  /* once, before HalDispatch.Wait is watched */
void begin_time(void);                   /* hour 0 of an input */
LARGE_INTEGER until_hour(unsigned hour); /* as a relative time */

/* run.c */
void run_input(const uint8_t *data, size_t size);
/* Operations that belong together have numbers that follow each other. */
unsigned family_count(void);
void find_family(unsigned family, unsigned *first, unsigned *count);

extern rule wrong_rule; /* NO_RULE, except in the test of the test */
extern bool print_as_it_runs;
extern void (*mismatch_hook)(void);
extern unsigned long steps_made;

static inline LARGE_INTEGER *timeout_of(call *made)
{
    made->timeout.QuadPart = 0;
    if (made->hour != 0)
        made->timeout = until_hour(made->hour);
    return made->poll || made->hour != 0 ? &made->timeout : NULL;
}

#endif
