/* pushlockcrew.h: threads in critical regions, and the processors that they appear to run on. */
#ifndef INTERLOCK_TESTS_PUSHLOCKCREW_H
#define INTERLOCK_TESTS_PUSHLOCKCREW_H

#include "ex/pushlock.h"

#include "../ke/waittest.h"

static __thread ULONG fake_processor;

static inline ULONG query_fake_processor(void)
{
    return fake_processor;
}

static inline int fake_processors(void **state)
{
    (void)state;
    HalDispatch.CurrentProcessor = query_fake_processor;
    KeEnterCriticalRegion();
    return 0;
}

/* The verifier requires APCs to be disabled for pushlocks. */
typedef struct crew {
    test_thread_function *function;
    void *argument;
} crew;

static inline void run_in_region(void *argument, unsigned index)
{
    crew *c = argument;
    KeEnterCriticalRegion();
    c->function(c->argument, index);
    KeLeaveCriticalRegion();
}

/* Not inside a watched test: this has its own watchdog. */
static inline void run_crew(unsigned count, test_thread_function *function, void *argument)
{
    crew c = {function, argument};
    run_threads(count, 60, run_in_region, &c);
}

static inline void enter_region_for_good(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
}

static inline void start_actor_in_region(actor *a)
{
    start_actor(a);
    run_on(a, enter_region_for_good, NULL);
}

static inline void leave_region_for_good(void *unused)
{
    (void)unused;
    KeLeaveCriticalRegion();
}

static inline void end_actor_in_region(actor *a)
{
    run_on(a, leave_region_for_good, NULL);
    end_actor(a);
}

#endif
