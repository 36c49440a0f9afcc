/* heap.h: how much heap memory threads, waiters and objects use. */
#ifndef INTERLOCK_BENCH_HEAP_H
#define INTERLOCK_BENCH_HEAP_H

typedef struct bench_heap_use {
    double of_thread; /* bytes after `use`, beyond a thread that did nothing */
    double of_waiter; /* additional bytes while it is in `block` */
} bench_heap_use;

#ifdef __cplusplus
extern "C" {
#endif

/* `release` lets all threads out of `block`. */
bench_heap_use bench_heap(void (*use)(void), void (*block)(void), void (*release)(void));

/* Heap bytes per object. The objects are not freed: the next measurement would reuse their memory. */
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
