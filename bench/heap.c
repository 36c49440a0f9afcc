#include "heap.h"

#include <malloc.h>

#include "bench.h"

#define THREADS 64
#define OBJECTS 4096
#define SETTLE  20 /* milliseconds, until the last threads sleep */

typedef struct stage {
    int wanted, reached;
    void (*use)(void), (*block)(void);
} stage;

static double heap_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static void reach(stage *in, int number)
{
    __atomic_add_fetch(&in->reached, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&in->wanted, __ATOMIC_ACQUIRE) < number)
        bench_sleep(1);
}

static void pass(void *argument)
{
    stage *in = argument;

    reach(in, 1);
    in->use();
    reach(in, 2);
    in->block();
}

static double after_stage(stage *in, int number)
{
    while (__atomic_load_n(&in->reached, __ATOMIC_ACQUIRE) < number * THREADS)
        bench_sleep(1);
    return heap_in_use();
}

bench_heap_use bench_heap(void (*use)(void), void (*block)(void), void (*release)(void))
{
    stage in = {0, 0, use, block};
    bench_thread *threads[THREADS];
    double heap[3];

    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = bench_thread_start(pass, &in);
    for (int number = 1; number <= 2; number++) {
        heap[number - 1] = after_stage(&in, number);
        __atomic_store_n(&in.wanted, number, __ATOMIC_RELEASE);
    }
    bench_sleep(SETTLE);
    heap[2] = heap_in_use();
    release();
    for (unsigned i = 0; i < THREADS; i++)
        bench_thread_join(threads[i]);
    return (bench_heap_use){(heap[1] - heap[0]) / THREADS, (heap[2] - heap[1]) / THREADS};
}

/* The first ones may reuse freed memory. */
double bench_heap_each(void *(*make)(void))
{
    double before = 0;

    for (unsigned i = 0; i < 2 * OBJECTS; i++) {
        if (i == OBJECTS)
            before = heap_in_use();
        bench_keep(make());
    }
    return (heap_in_use() - before) / OBJECTS;
}
