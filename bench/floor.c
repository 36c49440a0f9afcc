/* The minimum cost of what a contender must do, on this processor and host. */
#include "bench.h"

static uint32_t word;
static uint64_t pair[2] __attribute__((aligned(16)));

static inline void take_word(void)
{
    uint32_t unlocked = 0;

    __atomic_compare_exchange_n(&word, &unlocked, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void give_word(void)
{
    uint32_t locked = 1;

    __atomic_compare_exchange_n(&word, &locked, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static inline void exchange_pair(void)
{
    __atomic_compare_exchange_n(&pair[0], &pair[1], 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

BENCH_LOOP(run_nothing, bench_keep(round))
BENCH_LOOP(run_store, take_word(); __atomic_store_n(&word, 0, __ATOMIC_RELEASE))
BENCH_LOOP(run_rmw, take_word(); give_word())
BENCH_LOOP(run_set, __atomic_exchange_n(&word, 1, __ATOMIC_RELEASE); give_word())
BENCH_LOOP(run_count, __atomic_fetch_add(&word, 1, __ATOMIC_ACQUIRE); __atomic_fetch_sub(&word, 1, __ATOMIC_RELEASE))
BENCH_LOOP(run_load, bench_keep(__atomic_load_n(&word, __ATOMIC_ACQUIRE)))
BENCH_LOOP(run_two, exchange_pair(); exchange_pair())

BENCH_CONTENDERS(floor, "")
{
    bench_add_loop("exclusive", BENCH_FLOOR, "an empty loop", 0, run_nothing);
    bench_add_loop("exclusive", BENCH_FLOOR, "compare-exchange, store", 0, run_store);
    bench_add_loop("exclusive", BENCH_FLOOR, "two compare-exchanges", 0, run_rmw);
    bench_add_loop("shared", BENCH_FLOOR, "two compare-exchanges", 0, run_rmw);
    bench_add_loop("spinlock", BENCH_FLOOR, "compare-exchange, store", 0, run_store);
    bench_add_loop("spin-shared", BENCH_FLOOR, "atomic add, subtract", 0, run_count);
    bench_add_loop("event", BENCH_FLOOR, "exchange, compare-exchange", 0, run_set);
    bench_add_loop("reset", BENCH_FLOOR, "exchange, compare-exchange", 0, run_set);
    bench_add_loop("semaphore", BENCH_FLOOR, "atomic add, subtract", 0, run_count);
    bench_add_loop("reference", BENCH_FLOOR, "atomic add, subtract", 0, run_count);
    bench_add_loop("once", BENCH_FLOOR, "a load", 0, run_load);
    bench_add_loop("stack", BENCH_FLOOR, "two compare-exchanges", 0, run_two);
}
