/*
 * soak.h: every primitive at once, for a chosen time. docs/testing.md describes a run.
 *
 * Workers are threads that start and end during the run. Each does a number of steps; a step is a small scenario of a
 * family of primitives, on objects that all workers share, and checks its invariants. Meanwhile disturbers suspend
 * workers, send them APCs, alerts and signals, change their priorities, terminate them and fork the process.
 *
 * Two rules make that work. A step waits without a timeout only for what others hold inside a step: during a fork no
 * new step begins, and those that have begun must end. And a step tolerates what other threads may do to its worker at
 * any moment: a stray alert, a user APC in an alertable wait, a suspension, EINTR.
 */
#ifndef INTERLOCK_TESTS_SOAK_H
#define INTERLOCK_TESTS_SOAK_H

#include "../stress/stress.h"

#include <stdbool.h>

#include <windows.h>
#include <winternl.h>

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/ke.h>
#include <interlock/nt.h>
#include <interlock/ob.h>
#include <interlock/ps.h>

#define SMALL_STACK 0x40000
#define POOL_TAG    0x6b616f73

typedef struct soak_family {
    const char *name;
    unsigned weight;     /* how often it is chosen */
    bool without_heap;   /* its step must cope with failed allocations */
    void (*setup)(void); /* each may be NULL but step */
    void (*step)(test_random *random);
    void (*check)(void); /* all workers have ended: do the counts add up? Frees what setup allocated. */
} soak_family;

extern const soak_family events_family, gates_family, event_pairs_family, semaphores_family, mutants_family,
    any_all_family, timers_family, user_timers_family, executive_timers_family, queues_family;
extern const soak_family pushlocks_family, cache_aware_family, auto_expand_family, address_pushlocks_family,
    resources_family, fast_resources_family, user_resources_family, fast_mutexes_family;
extern const soak_family spinlocks_family, queued_spinlocks_family, shared_spinlocks_family, interrupts_family;
extern const soak_family rundown_family, fast_references_family, lists_family;
extern const soak_family keyed_events_family, alerts_family, address_waits_family;
extern const soak_family srw_locks_family, condition_variables_family, critical_sections_family, run_once_family,
    barriers_family;
extern const soak_family ports_family, wait_packets_family;
extern const soak_family pool_work_family, pool_waits_family, pool_timers_family;
extern const soak_family work_queues_family, dpcs_family, apcs_family;
extern const soak_family handles_family, names_family, storage_family, descriptors_family, processes_family,
    threads_family, no_memory_family;

/* The table of families (families.c). */
extern const soak_family *const soak_families[];
extern const unsigned soak_family_count;
void soak_step(unsigned family, test_random *random);
unsigned long soak_steps(unsigned family);
unsigned soak_choose_family(test_random *random);
bool soak_is_chosen(unsigned family);

/* The workers (workers.c). */
typedef struct soak_settings {
    uint64_t seed;
    unsigned workers;
    unsigned seconds;
    const char *family;  /* the only one; NULL: all */
    const char *command; /* of `interlock`, to report what hangs; may be NULL */
} soak_settings;

extern soak_settings soak;

void workers_start(void);
void workers_keep(test_random *random); /* the keeper's round: ended workers are replaced, until workers_stop */
void workers_stop(void);
bool workers_have_ended(void);
void workers_check(void);
unsigned long workers_begun(void);
const char *workers_stuck(unsigned seconds); /* the family in which a worker has been for longer than that; NULL:
                                                none */

/* Calls act with the thread of a random worker, which cannot end meanwhile. */
void with_some_worker(test_random *random, void (*act)(HANDLE thread, HANDLE id, long host_id, test_random *random));

/* The disturbers (disturbers.c, forks.c). */
void disturbers_start(void);
void disturbers_join(void);
void disturbers_check(void);
void disturbers_report(void);
extern volatile LONG soak_over; /* 1: disturbers stop */

void show_waits(int process); /* by the command of the settings, if there is one */

void forks_start(void);
void forks_join(void);
unsigned long forks_done(void);
void stand_still_begin(void); /* a step is between these two: the fork waits for it, or it for the fork */
void stand_still_end(void);

/* The heap (heap.c). The next allocations of the calling thread, after left more, are refused until heap_gives. */
void heap_refuses(int left);
void heap_gives(void);
unsigned long heap_refusals(void);

/* Mutants that threads own when they end (mutants.c). Exactly one other thread finds each abandoned. */
void die_as_owner(test_random *random);
HANDLE mutant_of_the_mortal(void);

/* Fiber-local storage of workers (objects.c). */
void storage_of_a_life_begins(void);
void storage_expects_end(void);

/* What a lock protects: two plain variables that are equal unless a thread is changing them. */
typedef struct soak_cell {
    unsigned long first, second;
} soak_cell;

static inline void change_cell(soak_cell *cell, test_random *random)
{
    require(cell->first == cell->second);
    cell->first += 1;
    spin_for(random_below(random, 8) == 0 ? random_below(random, 200) : 0);
    cell->second += 1;
}

static inline void read_cell(const soak_cell *cell, test_random *random)
{
    unsigned long first = cell->first;

    spin_for(random_below(random, 8) == 0 ? random_below(random, 200) : 0);
    require(cell->second == first);
}

/* One in n. */
static inline bool one_in(test_random *random, uint32_t n)
{
    return random_below(random, n) == 0;
}

/* A timeout: often none at all, sometimes up to two milliseconds. */
static inline LARGE_INTEGER a_moment(test_random *random)
{
    return in_microseconds(one_in(random, 2) ? 0 : random_below(random, 2000));
}

static inline FILETIME file_time(LARGE_INTEGER time)
{
    return (FILETIME){time.LowPart, (DWORD)time.HighPart};
}

/* A step that only one worker does at a time; false: another one does. */
static inline bool begin_alone(volatile LONG *busy)
{
    return __atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void end_alone(volatile LONG *busy)
{
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
}

#endif
