/*
 * harness.h: measuring side by side. A table has one row per measurement; the rows of a table are run in turn, again
 * and again, so that a disturbance of the machine hits all of them. A sample during which a calibration loop ran more
 * than a tenth slower than at its best is thrown away. Nothing here passes or fails.
 */
#ifndef INTERLOCK_BENCH_HARNESS_H
#define INTERLOCK_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_REPEATS 9

typedef struct bench_row {
    const char *name;
    uint64_t (*run)(unsigned long count, void *argument); /* does it count times; returns nanoseconds */
    void *argument;
    unsigned target;                                      /* nanoseconds that the project aims at; 0: none */
} bench_row;

/* Call first in main: a process that has never started a thread would be measured without atomics in the C library. */
void bench_begin(void);

void bench_table(const char *title, const bench_row *rows, size_t count);

/* argv of the form "--count name n" runs that row n times and nothing else, for instruction counts; returns whether it
   was of that form. "--names" lists the rows. */
int bench_counts(int argc, char **argv, const bench_row *rows, size_t count);

uint64_t bench_nanoseconds(void);

/* Nanoseconds that a cache line takes from one core to the other and back; 0 where there is one core only. */
double bench_line_round_trip(void);

/* Binds the calling thread to a processor that the process may use, the index-th; no index: to all of them. */
#define BENCH_ANYWHERE (-1)
void bench_bind(int index);
int bench_processors(void);

/* Keeps the compiler from optimising a result away. */
#define bench_keep(value) __asm__ volatile("" : : "r"(value) : "memory")

/* uint64_t name(unsigned long count, void *argument): body, count times. */
#define BENCH_LOOP(function, body)                                     \
    static uint64_t function(unsigned long count, void *argument)      \
    {                                                                  \
        uint64_t start = bench_nanoseconds();                          \
                                                                       \
        (void)argument;                                                \
        for (unsigned long round = 0; round < count; round++) {        \
            body;                                                      \
        }                                                              \
        return bench_nanoseconds() - start;                            \
    }

#endif
