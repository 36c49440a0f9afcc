/* The C++ library. */
#include <atomic>
#include <semaphore>
#include <shared_mutex>

#include "../bench.h"

namespace
{

std::shared_mutex shared_mutex;
std::binary_semaphore semaphore(0), first(0), second(0);
std::binary_semaphore *const semaphores[] = {&first, &second};

struct {
    alignas(128) std::atomic<int> flag;
} letters[2];

BENCH_LOOP(run_shared, shared_mutex.lock_shared(); shared_mutex.unlock_shared())
BENCH_LOOP(run_semaphore, semaphore.release(); semaphore.acquire())
BENCH_LOOP(run_wake, letters[0].flag.notify_one())
BENCH_WORK(work_shared, shared_mutex.lock(), shared_mutex.unlock(), shared_mutex.lock_shared(),
           shared_mutex.unlock_shared())

void semaphore_signal(unsigned side)
{
    semaphores[side]->release();
}

void semaphore_await(unsigned side)
{
    semaphores[side]->acquire();
}

void address_signal(unsigned side)
{
    letters[side].flag.store(1, std::memory_order_release);
    letters[side].flag.notify_one();
}

void address_await(unsigned side)
{
    while (letters[side].flag.load(std::memory_order_acquire) == 0)
        letters[side].flag.wait(0, std::memory_order_acquire);
    letters[side].flag.store(0, std::memory_order_relaxed);
}

BENCH_CONTENDERS(std, BENCH_VERSION)
{
    bench_add_loop("shared", BENCH_PEER, "std::shared_mutex", 0, run_shared);
    bench_add_loop("event", BENCH_PEER, "std::binary_semaphore", 0, run_semaphore);
    bench_add_loop("semaphore", BENCH_PEER, "std::binary_semaphore", 0, run_semaphore);
    bench_add_loop("wake-nobody", BENCH_PEER, "std::atomic::notify_one", 0, run_wake);
    bench_add_contended("rwlock", BENCH_PEER, "std::shared_mutex", work_shared);
    bench_add_exchange("event", BENCH_PEER, "std::binary_semaphore", semaphore_signal, semaphore_await);
    bench_add_exchange("address", BENCH_PEER, "std::atomic::wait", address_signal, address_await);
}

} // namespace
