/* exchange.h: the contenders of "condition": a flag under a lock, and a condition variable. */
#ifndef INTERLOCK_BENCH_EXCHANGE_H
#define INTERLOCK_BENCH_EXCHANGE_H

/* The statements access the structure of the flag as `letter`. */
#define BENCH_CONDITION(name, declarations, lock, unlock, wait, wake)                                                  \
    static struct {                                                                                                    \
        declarations;                                                                                                  \
        int flag;                                                                                                      \
    } __attribute__((aligned(128))) name##_letters[2];                                                                 \
                                                                                                                       \
    static void name##_signal(unsigned side)                                                                           \
    {                                                                                                                  \
        BENCH_LETTER(name);                                                                                            \
        lock;                                                                                                          \
        letter->flag = 1;                                                                                              \
        unlock;                                                                                                        \
        wake;                                                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_await(unsigned side)                                                                            \
    {                                                                                                                  \
        BENCH_LETTER(name);                                                                                            \
        lock;                                                                                                          \
        while (!letter->flag) {                                                                                        \
            wait;                                                                                                      \
        }                                                                                                              \
        letter->flag = 0;                                                                                              \
        unlock;                                                                                                        \
    }

#define BENCH_LETTER(name) __typeof__(&name##_letters[0]) letter = &name##_letters[side]

#endif
