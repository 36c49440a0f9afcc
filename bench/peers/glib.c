#include <glib.h>

#include "../bench.h"
#include "../tail.h"
#include "../exchange.h"

static GMutex mutex;
static GRWLock rwlock;
static GRecMutex recursive;
static GAsyncQueue *queue, *own_queue;
static GThreadPool *pool;
static bench_item one;
static unsigned long done;

BENCH_LOOP(run_mutex, g_mutex_lock(&mutex); g_mutex_unlock(&mutex))
BENCH_LOOP(run_shared, g_rw_lock_reader_lock(&rwlock); g_rw_lock_reader_unlock(&rwlock))
BENCH_LOOP_WITHIN(run_again, g_rec_mutex_lock(&recursive); (void)row, g_rec_mutex_lock(&recursive);
                  g_rec_mutex_unlock(&recursive), g_rec_mutex_unlock(&recursive))
BENCH_LOOP(run_queue, g_async_queue_push(own_queue, &one); bench_keep(g_async_queue_pop(own_queue)))
BENCH_TAIL_WORK(tail_mutex, g_mutex_lock(&mutex), g_mutex_unlock(&mutex))
BENCH_MUTEX_WORK(work_mutex, g_mutex_lock(&mutex), g_mutex_unlock(&mutex))
BENCH_CONDITION(condition, GMutex lock; GCond variable, g_mutex_lock(&letter->lock), g_mutex_unlock(&letter->lock),
                                        g_cond_wait(&letter->variable, &letter->lock), g_cond_signal(&letter->variable))
BENCH_SIZE(size_mutex, sizeof(GMutex))

static void put(bench_item *item)
{
    g_async_queue_push(queue, item);
}

static bench_item *get(void)
{
    return g_async_queue_pop(queue);
}

static void do_work(gpointer item, gpointer context)
{
    (void)item;
    (void)context;
    __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
}

static uint64_t run_work(unsigned long count, const bench_row *row)
{
    uint64_t start;

    (void)row;
    if (pool == NULL)
        pool = g_thread_pool_new(do_work, NULL, bench_processors(), TRUE, NULL);
    __atomic_store_n(&done, 0, __ATOMIC_RELAXED);
    start = bench_now();
    for (unsigned long i = 0; i < count; i++)
        g_thread_pool_push(pool, &one, NULL);
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < count)
        bench_yield();
    return bench_now() - start;
}

BENCH_CONTENDERS(glib, BENCH_VERSION)
{
    queue = g_async_queue_new();
    own_queue = g_async_queue_new();
    bench_add_loop("exclusive", BENCH_PEER, "GLib GMutex", 0, run_mutex);
    bench_add_loop("shared", BENCH_PEER, "GLib GRWLock", 0, run_shared);
    bench_add_loop("recursive", BENCH_PEER, "GLib GRecMutex", 0, run_again);
    bench_add_contended("mutex", BENCH_PEER, "GLib GMutex", work_mutex);
    bench_add_exchange("condition", BENCH_PEER, "GLib GCond", condition_signal, condition_await);
    bench_add_loop("queue", BENCH_PEER, "GLib GAsyncQueue", 0, run_queue);
    bench_add_stream("queue", BENCH_PEER, "GLib GAsyncQueue", put, get);
    bench_add_stream("port", BENCH_PEER, "GLib GAsyncQueue", put, get);
    bench_add_loop("pool-work", BENCH_PEER, "GLib GThreadPool", 0, run_work);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "GLib GMutex", tail_mutex);
    bench_add_value("bytes-lock", BENCH_PEER, "GLib GMutex", 0, size_mutex);
}
