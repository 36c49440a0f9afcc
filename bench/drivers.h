/* drivers.h: between the program that takes requests (agent.c) and the kinds of measurement (drivers.c). */
#ifndef INTERLOCK_BENCH_DRIVERS_H
#define INTERLOCK_BENCH_DRIVERS_H

#include "bench.h"

typedef struct entry {
    const char *family, *contender;
    bench_kind kind;
    bench_side side;
    double target;
    bench_loop *loop;
    bench_value *value;
    void (*work)(bench_worker *);
    void (*signal)(unsigned side);
    void (*await)(unsigned side);
    void (*put)(bench_item *);
    bench_item *(*get)(void);
    void (*tail_work)(bench_worker *, struct bench_tail *);
    void (*millisecond)(void);
} entry;

typedef struct measurement { /* a row by one contender */
    const bench_row *row;
    const entry *by;
    unsigned long rounds;
    unsigned rounds_for; /* milliseconds */
} measurement;

typedef struct sample {
    double value, fairness;
    const struct bench_tail *tail; /* NULL: the row has none */
} sample;

void take_sample(measurement *of, unsigned milliseconds, sample *result);

/* Runs the rounds of a loop. scripts/instructions makes callgrind dump its counts whenever this returns. */
void count_rounds(const measurement *of, unsigned long rounds);

int uses_two_processors(const bench_row *row);

void *aligned_allocate(size_t bytes);
void aligned_free(void *memory);

#endif
