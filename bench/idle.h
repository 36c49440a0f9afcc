/*
 * idle.h: how often the threads of the process wake up while nothing happens. Wakeups are counted by the host: each
 * wakeup of a sleeping thread adds one voluntary switch. No clock is involved, so a busy machine counts the same.
 */
#ifndef INTERLOCK_BENCH_IDLE_H
#define INTERLOCK_BENCH_IDLE_H

#include <stdint.h>

#define IDLE_WAITERS      100
#define IDLE_PERIOD       200  /* milliseconds of the timer */
#define IDLE_MILLISECONDS 2000 /* that are watched */

typedef struct idle_counts {
    unsigned waiters;     /* threads that wait for something that never happens */
    uint64_t of_waiters;  /* wakeups */
    uint64_t of_others;   /* those of every thread except the caller */
    unsigned expirations; /* of the timer, meanwhile */
} idle_counts;

/* Existing threads do not count: those of a sanitizer wake up now and then. */
void idle_ignore_present(void);

/* Called by a waiter, before it waits. */
void idle_arrive(void);

/* Starts IDLE_WAITERS threads; wait(i) is what the i-th does. */
void idle_start(void (*wait)(unsigned number));

/* When all are asleep, for IDLE_MILLISECONDS. `expirations` returns how often the timer has expired so far. */
idle_counts idle_watch(unsigned (*expirations)(void));

/* After the waiters have been released. */
void idle_end(void);

/* interlock/idle.c: a hundred waits of every kind, a periodic timer with a DPC, an open completion port. */
idle_counts idle_interlock(void);

#endif
