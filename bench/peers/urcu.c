#define _LGPL_SOURCE
#include <urcu.h>
#include <urcu/lfstack.h>

#include "../bench.h"

static struct cds_lfs_stack stack;

BENCH_LOOP(run_read, rcu_read_lock(); rcu_read_unlock())

static inline void push(bench_item *item)
{
    cds_lfs_push(&stack, (struct cds_lfs_node *)item);
}

static inline bench_item *pop(void)
{
    return (bench_item *)cds_lfs_pop_blocking(&stack);
}

BENCH_STACK(run_stack, work_stack, push(item), pop())

BENCH_CONTENDERS(urcu, BENCH_VERSION)
{
    cds_lfs_init(&stack);
    rcu_register_thread();
    bench_add_loop("reference", BENCH_PEER, "liburcu rcu_read_lock", 0, run_read);
    bench_add_loop("stack", BENCH_PEER, "liburcu cds_lfs", 0, run_stack);
    bench_add_contended("stack", BENCH_PEER, "liburcu cds_lfs", work_stack);
}
