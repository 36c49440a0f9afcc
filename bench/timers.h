/*
 * timers.h: timers among many. A contender provides a type and how to create a timer, set it to expire after a number
 * of milliseconds, and cancel it; it waits for the last expiration in its own way.
 */
#ifndef INTERLOCK_BENCH_TIMERS_H
#define INTERLOCK_BENCH_TIMERS_H

#include "bench.h"

#include <stdlib.h>
#include <time.h>

#define TIMER_BATCH        256
#define BENCH_TIMER_SPREAD 16 /* milliseconds between the first and the last expiration */
#define TIMER_MOST         1000000
#define TIMER_FAR          3600000 /* milliseconds: one to two hours from now */

static inline uint64_t bench_processor_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline unsigned bench_random(void)
{
    static uint64_t value = 1;

    value = value * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(value >> 33);
}

/* `number` other timers stay set while a batch of them is set, and cancelled, and so on. The due times are random. */
#define BENCH_TIMERS(name, type, initialize, set, cancel)                                                              \
    static type *name##_made(unsigned wanted)                                                                          \
    {                                                                                                                  \
        static type *all;                                                                                              \
        static unsigned made;                                                                                          \
                                                                                                                       \
        if (all == NULL)                                                                                               \
            all = (type *)calloc(TIMER_MOST + TIMER_BATCH, sizeof(type));                                              \
        if (all == NULL)                                                                                               \
            bench_fail("calloc");                                                                                      \
        for (; made < wanted; made++) {                                                                                \
            type *timer = &all[made];                                                                                  \
            initialize;                                                                                                \
        }                                                                                                              \
        return all;                                                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static inline void name##_set(type *timer, unsigned milliseconds)                                                  \
    {                                                                                                                  \
        set;                                                                                                           \
    }                                                                                                                  \
                                                                                                                       \
    static inline void name##_cancel(type *timer)                                                                      \
    {                                                                                                                  \
        cancel;                                                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    static type *name##_among(unsigned number)                                                                         \
    {                                                                                                                  \
        static unsigned population;                                                                                    \
        type *all = name##_made(number + TIMER_BATCH);                                                                 \
                                                                                                                       \
        for (; population < number; population++)                                                                      \
            name##_set(&all[TIMER_BATCH + population], TIMER_FAR + bench_random() % TIMER_FAR);                        \
        while (population > number)                                                                                    \
            name##_cancel(&all[TIMER_BATCH + --population]);                                                           \
        return all;                                                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static uint64_t name##_run(unsigned long count, unsigned number, int which)                                        \
    {                                                                                                                  \
        static unsigned due[TIMER_BATCH];                                                                              \
        type *batch = name##_among(number);                                                                            \
        uint64_t took[2] = {0, 0};                                                                                     \
        unsigned long done = 0;                                                                                        \
                                                                                                                       \
        for (; done < count; done += TIMER_BATCH) {                                                                    \
            uint64_t times[3];                                                                                         \
                                                                                                                       \
            for (unsigned i = 0; i < TIMER_BATCH; i++)                                                                 \
                due[i] = TIMER_FAR + bench_random() % TIMER_FAR;                                                       \
            times[0] = bench_now();                                                                                    \
            for (unsigned i = 0; i < TIMER_BATCH; i++)                                                                 \
                name##_set(&batch[i], due[i]);                                                                         \
            times[1] = bench_now();                                                                                    \
            for (unsigned i = 0; i < TIMER_BATCH; i++)                                                                 \
                name##_cancel(&batch[i]);                                                                              \
            times[2] = bench_now();                                                                                    \
            took[0] += times[1] - times[0];                                                                            \
            took[1] += times[2] - times[1];                                                                            \
        }                                                                                                              \
        return (uint64_t)((double)took[which] * (double)count / (double)done);                                         \
    }                                                                                                                  \
                                                                                                                       \
    static uint64_t name##_run_set(unsigned long count, const bench_row *row)                                          \
    {                                                                                                                  \
        return name##_run(count, row->number, 0);                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static uint64_t name##_run_cancel(unsigned long count, const bench_row *row)                                       \
    {                                                                                                                  \
        return name##_run(count, row->number, 1);                                                                      \
    }

/* Milliseconds until the first of `number` timers may expire: enough time to set all of them. */
static inline unsigned bench_timer_lead(unsigned number)
{
    return 20 + number / 1000;
}

/*
 * CPU time of the process per expiring timer, from the last set to the last expiration. begin: makes intervals count
 * from now.
 */
#define BENCH_EXPIRY(name, type, fired, begin, await_all)                                                              \
    static double name##_expiry(const bench_row *row)                                                                  \
    {                                                                                                                  \
        unsigned number = row->number, lead = bench_timer_lead(number);                                                \
        type *all = name##_among(0);                                                                                   \
        uint64_t start;                                                                                                \
                                                                                                                       \
        name##_made(number);                                                                                           \
        fired = 0;                                                                                                     \
        begin;                                                                                                         \
        for (unsigned i = 0; i < number; i++)                                                                          \
            name##_set(&all[i], lead + bench_random() % BENCH_TIMER_SPREAD);                                           \
        start = bench_processor_time();                                                                                \
        await_all;                                                                                                     \
        return (double)(bench_processor_time() - start) / number;                                                      \
    }

#endif
