#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>
#include <oneapi/tbb/task_group.h>

#include "../bench.h"

namespace
{

tbb::mutex mutex;
tbb::rw_mutex rw_mutex;
tbb::spin_mutex spin_mutex;
tbb::spin_rw_mutex spin_rw_mutex;
tbb::queuing_mutex queuing_mutex;
tbb::concurrent_queue<bench_item *> queue;
tbb::concurrent_bounded_queue<bench_item *> bounded;
bench_item one;

BENCH_LOOP(run_mutex, mutex.lock(); mutex.unlock())
BENCH_LOOP(run_rw, rw_mutex.lock(); rw_mutex.unlock())
BENCH_LOOP(run_rw_shared, rw_mutex.lock_shared(); rw_mutex.unlock_shared())
BENCH_LOOP(run_spin, spin_mutex.lock(); spin_mutex.unlock())
BENCH_LOOP(run_spin_shared, spin_rw_mutex.lock_shared(); spin_rw_mutex.unlock_shared())
BENCH_LOOP(run_queuing, tbb::queuing_mutex::scoped_lock held(queuing_mutex))
BENCH_MUTEX_WORK(work_mutex, mutex.lock(), mutex.unlock())
BENCH_MUTEX_WORK(work_spin, spin_mutex.lock(), spin_mutex.unlock())
BENCH_WORK(work_queuing, tbb::queuing_mutex::scoped_lock held(queuing_mutex), (void)0, (void)0, (void)0)
BENCH_WORK(work_rw, rw_mutex.lock(), rw_mutex.unlock(), rw_mutex.lock_shared(), rw_mutex.unlock_shared())
BENCH_WORK(work_spin_rw, spin_rw_mutex.lock(), spin_rw_mutex.unlock(), spin_rw_mutex.lock_shared(),
           spin_rw_mutex.unlock_shared())

bench_item *pop()
{
    bench_item *item;

    while (!queue.try_pop(item))
        bench_pause();
    return item;
}

BENCH_STACK(run_stack, work_stack, queue.push(item), pop())

void put(bench_item *item)
{
    bounded.push(item);
}

bench_item *get()
{
    bench_item *item;

    bounded.pop(item);
    return item;
}

BENCH_LOOP(run_queue, put(&one); bench_keep(get()))

uint64_t run_tasks(unsigned long count, const bench_row *)
{
    static unsigned long done;
    tbb::task_group group;
    uint64_t start = bench_now();

    for (unsigned long i = 0; i < count; i++)
        group.run([] { __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED); });
    group.wait();
    return bench_now() - start;
}

BENCH_CONTENDERS(tbb, BENCH_VERSION)
{
    bench_add_loop("exclusive", BENCH_PEER, "tbb::mutex", 0, run_mutex);
    bench_add_loop("exclusive", BENCH_PEER, "tbb::rw_mutex", 0, run_rw);
    bench_add_loop("shared", BENCH_PEER, "tbb::rw_mutex", 0, run_rw_shared);
    bench_add_loop("spinlock", BENCH_PEER, "tbb::spin_mutex", 0, run_spin);
    bench_add_loop("spin-shared", BENCH_PEER, "tbb::spin_rw_mutex", 0, run_spin_shared);
    bench_add_loop("spinlock", BENCH_PEER, "tbb::queuing_mutex", 0, run_queuing);
    bench_add_contended("mutex", BENCH_PEER, "tbb::mutex", work_mutex);
    bench_add_contended("spin", BENCH_PEER, "tbb::spin_mutex", work_spin);
    bench_add_contended("spin", BENCH_PEER, "tbb::queuing_mutex", work_queuing);
    bench_add_contended("rwlock", BENCH_PEER, "tbb::rw_mutex", work_rw);
    bench_add_contended("rwlock", BENCH_PEER, "tbb::spin_rw_mutex", work_spin_rw);
    bench_add_loop("stack", BENCH_PEER, "tbb::concurrent_queue", 0, run_stack);
    bench_add_contended("stack", BENCH_PEER, "tbb::concurrent_queue", work_stack);
    bench_add_loop("queue", BENCH_PEER, "tbb::concurrent_bounded_queue", 0, run_queue);
    bench_add_stream("queue", BENCH_PEER, "tbb::concurrent_bounded_queue", put, get);
    bench_add_stream("port", BENCH_PEER, "tbb::concurrent_bounded_queue", put, get);
    bench_add_loop("pool-work", BENCH_PEER, "tbb::task_group", 0, run_tasks);
}

} // namespace
