#include "../bench.h"

#include <nsync.h>

#include "../heap.h"
#include "../tail.h"
#include "../exchange.h"

static nsync_mu mu;
static struct {
    nsync_mu lock;
    nsync_cv variable;
    int open;
} gate;
static nsync_once once = NSYNC_ONCE_INIT;

static void initialize_once(void)
{
}

BENCH_LOOP(run_mu, nsync_mu_lock(&mu); nsync_mu_unlock(&mu))
BENCH_LOOP(run_shared, nsync_mu_rlock(&mu); nsync_mu_runlock(&mu))
BENCH_LOOP(run_once, nsync_run_once(&once, initialize_once))
BENCH_WORK(work_mu, nsync_mu_lock(&mu), nsync_mu_unlock(&mu), nsync_mu_rlock(&mu), nsync_mu_runlock(&mu))
BENCH_CONDITION(condition, nsync_mu lock;
                nsync_cv variable, nsync_mu_lock(&letter->lock), nsync_mu_unlock(&letter->lock),
                nsync_cv_wait(&letter->variable, &letter->lock), nsync_cv_signal(&letter->variable))
BENCH_LOOP(run_condition, condition_signal(0); condition_await(0))
BENCH_TAIL_WORK(tail_mu, nsync_mu_lock(&mu), nsync_mu_unlock(&mu))

/* After a wait that ended at once, a thread has all of its memory for waiting. */
static void use(void)
{
    nsync_mu_lock(&gate.lock);
    nsync_cv_wait_with_deadline(&gate.variable, &gate.lock, nsync_time_zero, NULL);
    nsync_mu_unlock(&gate.lock);
}

static void block(void)
{
    nsync_mu_lock(&gate.lock);
    while (!gate.open)
        nsync_cv_wait(&gate.variable, &gate.lock);
    nsync_mu_unlock(&gate.lock);
}

static void open_gate(void)
{
    nsync_mu_lock(&gate.lock);
    gate.open = 1;
    nsync_mu_unlock(&gate.lock);
    nsync_cv_broadcast(&gate.variable);
}

static double heap_of_thread(const bench_row *row)
{
    (void)row;
    gate.open = 0;
    return bench_heap(use, block, open_gate).of_thread;
}

static double heap_of_waiter(const bench_row *row)
{
    (void)row;
    gate.open = 0;
    return bench_heap(use, block, open_gate).of_waiter;
}

BENCH_SIZE(size_mu, sizeof(nsync_mu))

BENCH_CONTENDERS(nsync, BENCH_VERSION)
{
    bench_add_loop("exclusive", BENCH_PEER, "nsync_mu", 0, run_mu);
    bench_add_loop("shared", BENCH_PEER, "nsync_mu", 0, run_shared);
    bench_add_loop("event", BENCH_PEER, "nsync_cv, flag", 0, run_condition);
    bench_add_loop("once", BENCH_PEER, "nsync_once", 0, run_once);
    bench_add_contended("mutex", BENCH_PEER, "nsync_mu", work_mu);
    bench_add_contended("rwlock", BENCH_PEER, "nsync_mu", work_mu);
    bench_add_exchange("event", BENCH_PEER, "nsync_cv, flag", condition_signal, condition_await);
    bench_add_exchange("condition", BENCH_PEER, "nsync_cv", condition_signal, condition_await);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "nsync_mu", tail_mu);
    bench_add_value("bytes-thread", BENCH_PEER, "nsync_cv", 0, heap_of_thread);
    bench_add_value("bytes-waiter", BENCH_PEER, "nsync_cv", 0, heap_of_waiter);
    bench_add_value("bytes-lock", BENCH_PEER, "nsync_mu", 0, size_mu);
}
