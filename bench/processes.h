/*
 * processes.h: an exchange with another process, as a loop. The other process is forked when a row is first measured, stays
 * bound to its processor (the row's number: 0 the same as the loop's, 1 another one), and ends with this one.
 */
#ifndef INTERLOCK_BENCH_PROCESSES_H
#define INTERLOCK_BENCH_PROCESSES_H

#include "bench.h"

/* signal and await as of bench_add_exchange; prepare runs before the fork and once per place, so each pair of processes
   has its own objects. NULL: nothing to prepare. */
typedef struct bench_pair {
    void (*prepare)(unsigned place);
    void (*signal)(unsigned place, unsigned side);
    void (*await)(unsigned place, unsigned side);
    int partner[2]; /* its process id; 0: not started */
} bench_pair;

uint64_t bench_run_pair(bench_pair *pair, unsigned long count, const bench_row *row);
void *bench_share(size_t size); /* memory of this process and its children */

#define BENCH_PAIR(function, ...)                                                                                      \
    static bench_pair function##_pair = {__VA_ARGS__};                                                                 \
    static uint64_t function(unsigned long count, const bench_row *row)                                                \
    {                                                                                                                  \
        return bench_run_pair(&function##_pair, count, row);                                                           \
    }

#endif
