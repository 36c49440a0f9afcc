// abseil.cc: abseil's mutexes over its Win32 waiter, without gtest, whose Windows version needs files and processes.
#include <cstdio>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "absl/synchronization/internal/waiter.h"

#if ABSL_WAITER_MODE != ABSL_WAITER_MODE_WIN32
#error "not the waiter for Windows"
#endif

namespace {

constexpr int kThreads = 8, kRounds = 20000;

template <typename Body> void in_threads(Body body)
{
    std::vector<std::thread> threads;

    for (int i = 0; i < kThreads; i++)
        threads.emplace_back([=] { body(i); });
    for (std::thread &thread : threads)
        thread.join();
}

bool excludes()
{
    absl::Mutex mutex;
    int count = 0;

    in_threads([&](int) {
        for (int i = 0; i < kRounds; i++) {
            absl::MutexLock lock(&mutex);
            count++;
        }
    });
    return count == kThreads * kRounds;
}

bool readers_and_writers()
{
    absl::Mutex mutex;
    int first = 0, second = 0;
    std::atomic<int> torn{0};

    in_threads([&](int number) {
        for (int i = 0; i < kRounds; i++) {
            if (number % 4 == 0) {
                absl::WriterMutexLock lock(&mutex);
                first++;
                second++;
            } else {
                absl::ReaderMutexLock lock(&mutex);
                torn += first != second;
            }
        }
    });
    return torn == 0 && first == kThreads / 4 * kRounds;
}

bool awaits_a_condition()
{
    absl::Mutex mutex;
    int turn = 0;

    in_threads([&](int number) {
        for (int i = 0; i < 200; i++) {
            auto mine = [&] { return turn % kThreads == number; };
            mutex.LockWhen(absl::Condition(&mine));
            turn++;
            mutex.Unlock();
        }
    });
    return turn == kThreads * 200;
}

bool waits_on_a_condition_variable()
{
    absl::Mutex mutex;
    absl::CondVar changed;
    int queued = 0, taken = 0;

    in_threads([&](int number) {
        for (int i = 0; i < 2000; i++) {
            absl::MutexLock lock(&mutex);
            if (number % 2 == 0) {
                queued++;
                changed.Signal();
            } else {
                while (queued == 0)
                    changed.Wait(&mutex);
                queued--;
                taken++;
            }
        }
    });
    return taken == kThreads / 2 * 2000 && queued == 0;
}

bool times_out()
{
    absl::Mutex mutex;
    absl::CondVar never;
    bool no = false;
    absl::MutexLock lock(&mutex);
    const absl::Time start = absl::Now();

    const bool expired = never.WaitWithTimeout(&mutex, absl::Milliseconds(50));
    const bool came = mutex.AwaitWithTimeout(absl::Condition(&no), absl::Milliseconds(50));
    return expired && !came && absl::Now() - start >= absl::Milliseconds(100);
}

bool notifies()
{
    absl::Notification notification;
    std::atomic<int> seen{0};
    std::thread teller([&] { notification.Notify(); });

    in_threads([&](int) {
        notification.WaitForNotification();
        seen++;
    });
    teller.join();
    return seen == kThreads;
}

bool counts_down()
{
    absl::BlockingCounter counter(kThreads);
    std::atomic<int> arrived{0};
    std::thread waiter([&] {
        counter.Wait();
        arrived += arrived == kThreads ? 100 : 0;
    });

    in_threads([&](int) {
        arrived++;
        counter.DecrementCount();
    });
    waiter.join();
    return arrived == kThreads + 100;
}

bool meets_at_a_barrier()
{
    absl::Barrier *barrier = new absl::Barrier(kThreads);
    std::atomic<int> last{0};

    in_threads([&](int) {
        if (barrier->Block()) {
            last++;
            delete barrier;
        }
    });
    return last == 1;
}

} // namespace

int main()
{
    const struct {
        const char *name;
        bool (*run)();
    } tests[] = {{"excludes", excludes}, {"readers and writers", readers_and_writers}, {"awaits a condition", awaits_a_condition},
                 {"waits on a condition variable", waits_on_a_condition_variable}, {"times out", times_out}, {"notifies", notifies},
                 {"counts down", counts_down}, {"meets at a barrier", meets_at_a_barrier}};
    int failed = 0;

    for (const auto &test : tests) {
        const bool passed = test.run();

        std::printf("%s %s\n", passed ? "ok" : "not ok", test.name);
        std::fflush(stdout);
        failed += !passed;
    }
    return failed != 0;
}
