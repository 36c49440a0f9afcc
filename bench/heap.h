/* heap.h: what threads, waiters and objects take of the heap. */
#ifndef INTERLOCK_BENCH_HEAP_H
#define INTERLOCK_BENCH_HEAP_H

typedef struct bench_heap_use {
    double of_thread; /* bytes after `use`, beyond a thread that did nothing */
    double of_waiter; /* bytes while it is in `block`, beyond that */
} bench_heap_use;

#ifdef __cplusplus
extern "C" {
#endif

/* `release` lets all threads out of `block`. */
bench_heap_use bench_heap(void (*use)(void), void (*block)(void), void (*release)(void));

/* Bytes of the heap for each of many objects. They stay: what is given back, the next one to be measured would find. */
double bench_heap_each(void *(*make)(void));

#ifdef __cplusplus
}
#endif

#define BENCH_HEAP_OF(function, make)                                                                                  \
    static double function(const bench_row *row)                                                                       \
    {                                                                                                                  \
        (void)row;                                                                                                     \
        return bench_heap_each(make);                                                                                  \
    }

#endif
