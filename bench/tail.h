/*
 * tail.h: how long single operations took. A histogram is a fixed table, so recording is an increment: nothing is
 * allocated or sorted while measuring. Every power of two has BENCH_TAIL_STEPS buckets of the same width, so a bucket's
 * upper end is at most 1/32 above what was recorded in it.
 */
#ifndef INTERLOCK_BENCH_TAIL_H
#define INTERLOCK_BENCH_TAIL_H

#include "bench.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_TAIL_BITS    5
#define BENCH_TAIL_STEPS   (1u << BENCH_TAIL_BITS)
#define BENCH_TAIL_BUCKETS ((40u - BENCH_TAIL_BITS) * BENCH_TAIL_STEPS) /* up to 18 minutes */

typedef struct bench_tail {
    uint64_t counts[BENCH_TAIL_BUCKETS];
    uint64_t longest;
} bench_tail;

/* Below BENCH_TAIL_STEPS nanoseconds each has a bucket of its own. */
static inline unsigned bench_tail_bucket(uint64_t nanoseconds)
{
    if (nanoseconds < BENCH_TAIL_STEPS)
        return (unsigned)nanoseconds;
    unsigned shift = 63u - (unsigned)__builtin_clzll(nanoseconds) - BENCH_TAIL_BITS;
    unsigned bucket = shift * BENCH_TAIL_STEPS + (unsigned)(nanoseconds >> shift);
    return bucket < BENCH_TAIL_BUCKETS ? bucket : BENCH_TAIL_BUCKETS - 1;
}

/* The greatest number of nanoseconds in it. */
static inline uint64_t bench_tail_end(unsigned bucket)
{
    if (bucket < 2 * BENCH_TAIL_STEPS)
        return bucket;
    unsigned shift = bucket / BENCH_TAIL_STEPS - 1;
    return ((uint64_t)(bucket % BENCH_TAIL_STEPS + BENCH_TAIL_STEPS + 1) << shift) - 1;
}

static inline void bench_tail_record(bench_tail *tail, uint64_t nanoseconds)
{
    tail->counts[bench_tail_bucket(nanoseconds)]++;
    tail->longest = nanoseconds > tail->longest ? nanoseconds : tail->longest;
}

/* As BENCH_MUTEX_WORK, and how long each acquisition took, with a read of the clock. */
#define BENCH_TAIL_WORK(function, lock, unlock)                                                                        \
    static void function(bench_worker *worker, struct bench_tail *tail)                                                \
    {                                                                                                                  \
        uint64_t value = worker->random;                                                                               \
                                                                                                                       \
        do {                                                                                                           \
            value = bench_private_work(value);                                                                         \
            uint64_t began = bench_now();                                                                              \
            lock;                                                                                                      \
            uint64_t took = bench_now() - began;                                                                       \
            bench_write_shared();                                                                                      \
            unlock;                                                                                                    \
            bench_tail_record(tail, took);                                                                             \
        } while (!__atomic_load_n(worker->stop, __ATOMIC_RELAXED));                                                    \
    }

#ifdef __cplusplus
}
#endif

#endif
