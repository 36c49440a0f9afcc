/* program.h: small programs with threads of pthread.h. A broken one beside each correct one: its verdict is expected. */
#ifndef LAB_THREADS_PROGRAM_H
#define LAB_THREADS_PROGRAM_H

#include <interlock/lab.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>

/* A function that is a program; its body follows. */
#define CORRECT(Name)                                                                                                  \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .SpuriousWakes = 1);                                                         \
    static void Name(void)
#define BROKEN(Name, Verdict)                                                                                          \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .SpuriousWakes = 1, .Expect = Verdict);                                      \
    static void Name(void)

static inline void run_two(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];

    assert(pthread_create(&threads[0], NULL, first, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, second, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    assert(pthread_join(threads[1], NULL) == 0);
}

#endif
