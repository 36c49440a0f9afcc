/*
 * history.h: activity between one snapshot and the next: the number of waits, and the waiters per lock. The process's
 * counters only grow, so the samples are their differences.
 */
#ifndef INTERLOCK_KD_HISTORY_H
#define INTERLOCK_KD_HISTORY_H

#include "kd.h"

#define KD_MOST_SAMPLES 600
#define KD_MOST_SAMPLE_LOCKS 200
#define KD_MOST_COUNTERS 20000 /* of locks that are listed only now and then */

/* A lock that has waiters, or was contended since the previous sample. */
typedef struct kd_sample_lock {
    kd_kind kind;
    kd_address address;
    char *name;
    size_t waiters;
    int64_t contention; /* as the lock counts it, -1: it does not */
    uint64_t contended; /* since the previous sample */
} kd_sample_lock;

typedef struct kd_sample {
    uint64_t number;    /* from 1 */
    double time;        /* seconds since the first one */
    double interval;    /* since the previous sample, 0: there was none */
    size_t threads, waiting, deadlocked;
    uint64_t waits, dpcs, interrupts; /* since the previous sample */
    kd_sample_lock *locks;
    size_t lock_count, locks_left_out;
} kd_sample;

typedef struct kd_counter {
    uint64_t key;
    uint32_t value;
} kd_counter;

/* A ring of samples; and the counters as they were at the last one. */
typedef struct kd_history {
    kd_sample samples[KD_MOST_SAMPLES];
    uint64_t taken;
    uint64_t first_time, last_time; /* interrupt time */
    kd_counter *switches, *dpcs, *interrupts, *contentions;
    size_t switch_count, dpc_count, interrupt_count, contention_count;
} kd_history;

kd_history *kd_history_create(void);
void kd_history_free(kd_history *history);
const kd_sample *kd_history_add(kd_history *history, kd_snapshot *snapshot);
const kd_sample *kd_history_last(const kd_history *history);                   /* NULL: none yet */
void kd_json_sample(json *out, const kd_sample *sample, const kd_snapshot *snapshot); /* snapshot: NULL, or its own */
void kd_json_history(json *out, const kd_history *history, uint64_t after);    /* an array "samples" */

#endif
