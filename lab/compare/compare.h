/*
 * compare.h: what the ten programs share. Each is written as its users would write it, with C11 atomics and pthreads, in a
 * correct and a broken version; the bug must be found in the broken one, and the correct one explored completely.
 */
#ifndef LAB_COMPARE_H
#define LAB_COMPARE_H

#include <interlock/lab.h>

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define CORRECT(Name, MemoryModel)                                                                                     \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .Model = MemoryModel);                                                       \
    static void Name(void)
#define BROKEN(Name, MemoryModel, Verdict)                                                                             \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .Model = MemoryModel, .Expect = Verdict);                                    \
    static void Name(void)

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define STRONG  memory_order_seq_cst

static inline void run(size_t count, void *(*const routines[])(void *))
{
    pthread_t threads[4];

    for (size_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, routines[i], (void *)(i + 1));
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

#define RUN(...) run(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *), (void *(*const[])(void *)){__VA_ARGS__})

#endif
