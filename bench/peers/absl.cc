#include <absl/base/call_once.h>
#include <absl/synchronization/mutex.h>

#include "../bench.h"
#include "../tail.h"
#include "../exchange.h"

namespace
{

absl::Mutex mutex;
absl::once_flag once;

BENCH_LOOP(run_mutex, mutex.Lock(); mutex.Unlock())
BENCH_LOOP(run_shared, mutex.ReaderLock(); mutex.ReaderUnlock())
BENCH_LOOP(run_once, absl::call_once(once, [] {}))
BENCH_WORK(work_mutex, mutex.Lock(), mutex.Unlock(), mutex.ReaderLock(), mutex.ReaderUnlock())
BENCH_CONDITION(condition, absl::Mutex lock; absl::CondVar variable, letter->lock.Lock(), letter->lock.Unlock(),
                                             letter->variable.Wait(&letter->lock), letter->variable.Signal())
BENCH_TAIL_WORK(tail_mutex, mutex.Lock(), mutex.Unlock())
BENCH_SIZE(size_mutex, sizeof(absl::Mutex))

BENCH_CONTENDERS(absl, BENCH_VERSION)
{
    bench_add_loop("exclusive", BENCH_PEER, "absl::Mutex", 0, run_mutex);
    bench_add_loop("shared", BENCH_PEER, "absl::Mutex", 0, run_shared);
    bench_add_loop("once", BENCH_PEER, "absl::call_once", 0, run_once);
    bench_add_contended("mutex", BENCH_PEER, "absl::Mutex", work_mutex);
    bench_add_contended("rwlock", BENCH_PEER, "absl::Mutex", work_mutex);
    bench_add_exchange("condition", BENCH_PEER, "absl::CondVar", condition_signal, condition_await);
    bench_add_tail_lock("tail-lock", BENCH_PEER, "absl::Mutex", tail_mutex);
    bench_add_value("bytes-lock", BENCH_PEER, "absl::Mutex", 0, size_mutex);
}

} // namespace
