/* standard.cpp: the C++ library's threads. Its own objects are linked statically, so they are explored too. */
#include <interlock/lab.h>

#include <atomic>
#include <barrier>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define CORRECT(Name)                                                                                                  \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .SpuriousWakes = 1);                                                         \
    static void Name(void)
#define BROKEN(Name, Verdict)                                                                                          \
    static void Name(void);                                                                                            \
    LAB_SCENARIO(Name, .Threads = {Name}, .SpuriousWakes = 1, .Expect = Verdict);                                      \
    static void Name(void)

using namespace std::chrono_literals;

static std::mutex mutex;
static std::timed_mutex timed;
static std::recursive_mutex recursive;
static std::shared_mutex shared;
static std::condition_variable condition;
static std::condition_variable_any any;
static std::once_flag once;
static std::atomic<int> flag;
static int data;
static bool ready;

template <class First, class Second> static void both(First first, Second second)
{
    std::thread a(first), b(second);

    a.join();
    b.join();
}

static void count_locked()
{
    std::lock_guard guard(mutex);
    data++;
}

CORRECT(cxx_mutex)
{
    both(count_locked, count_locked);
    assert(data == 2);
}

BROKEN(cxx_race, "race")
{
    both(count_locked, [] { data++; });
}

BROKEN(cxx_lock_order, "deadlock")
{
    static std::mutex other;
    both([] { std::lock_guard a(mutex); std::lock_guard b(other); }, [] { std::lock_guard b(other); std::lock_guard a(mutex); });
}

CORRECT(cxx_scoped_lock)
{
    static std::mutex other;
    both([] { std::scoped_lock guard(mutex, other); data++; }, [] { std::scoped_lock guard(mutex, other); data++; });
    assert(data == 2);
}

/* Both release and retry forever. */
BROKEN(cxx_scoped_lock_crossed, "livelock")
{
    static std::mutex other;
    both([] { std::scoped_lock guard(mutex, other); data++; }, [] { std::scoped_lock guard(other, mutex); data++; });
}

CORRECT(cxx_recursive_and_timed)
{
    both([] { std::lock_guard a(recursive); std::lock_guard b(recursive); data++; },
         [] {
             if (timed.try_lock_for(1ms))
                 timed.unlock();
             std::lock_guard a(recursive);
             data++;
         });
    assert(data == 2);
}

BROKEN(cxx_try_lock_for, "assertion")
{
    bool locked = true;
    std::lock_guard guard(timed);
    std::thread([&] { locked = timed.try_lock_for(1ms); }).join();
    assert(locked);
}

CORRECT(cxx_shared_mutex)
{
    both([] { std::unique_lock lock(shared); data++; }, [] { std::shared_lock lock(shared); assert(data == 0 || data == 1); });
}

BROKEN(cxx_shared_write, "race")
{
    both([] { std::shared_lock lock(shared); data++; }, [] { std::shared_lock lock(shared); data++; });
}

static void set_ready()
{
    std::lock_guard guard(mutex);
    ready = true;
    condition.notify_one();
}

CORRECT(cxx_condition)
{
    both(set_ready, [] {
        std::unique_lock lock(mutex);
        condition.wait(lock, [] { return ready; });
    });
}

BROKEN(cxx_condition_without_predicate, "assertion")
{
    both(set_ready, [] {
        std::unique_lock lock(mutex);
        if (!ready)
            condition.wait(lock);
        assert(ready);
    });
}

BROKEN(cxx_condition_times_out, "assertion")
{
    both(set_ready, [] {
        std::unique_lock lock(mutex);
        assert(condition.wait_for(lock, 1ms, [] { return ready; }));
    });
}

CORRECT(cxx_condition_any)
{
    both([] { std::lock_guard guard(shared); ready = true; any.notify_all(); },
         [] { std::unique_lock lock(shared); any.wait(lock, [] { return ready; }); });
}

CORRECT(cxx_atomic_wait)
{
    both([] { data = 1; flag.store(1); flag.notify_one(); }, [] { flag.wait(0); assert(data == 1); });
}

BROKEN(cxx_atomic_wait_without_notify, "lost wakeup")
{
    both([] { flag.store(1); }, [] { flag.wait(0); });
}

CORRECT(cxx_latch)
{
    std::latch latch(2);
    int first = 0, second = 0;
    both([&] { first = 1; latch.arrive_and_wait(); assert(second == 1); },
         [&] { second = 1; latch.arrive_and_wait(); assert(first == 1); });
}

BROKEN(cxx_latch_one_arrives, "deadlock")
{
    std::latch latch(2);
    both([&] { latch.arrive_and_wait(); }, [] {});
}

CORRECT(cxx_barrier)
{
    std::barrier barrier(2);
    int first = 0, second = 0;
    both([&] { first = 1; barrier.arrive_and_wait(); assert(second == 1); },
         [&] { second = 1; barrier.arrive_and_wait(); assert(first == 1); });
}

BROKEN(cxx_barrier_passed_early, "race")
{
    std::barrier barrier(2);
    int value = 0;
    both([&] { barrier.arrive_and_wait(); value = 1; }, [&] { barrier.arrive_and_wait(); value = 2; });
}

CORRECT(cxx_semaphore)
{
    std::counting_semaphore<4> semaphore(0);
    both([&] { data = 1; semaphore.release(); }, [&] { semaphore.acquire(); assert(data == 1); });
}

BROKEN(cxx_semaphore_too_few, "deadlock")
{
    std::binary_semaphore semaphore(1);
    both([&] { semaphore.acquire(); }, [&] { semaphore.acquire(); });
}

CORRECT(cxx_call_once)
{
    auto use = [] { std::call_once(once, [] { data++; }); assert(data == 1); };
    both(use, use);
}

CORRECT(cxx_call_once_throws)
{
    static std::atomic<int> tries;
    auto use = [] {
        try {
            std::call_once(once, [] {
                if (tries++ == 0)
                    throw std::runtime_error("first");
                data++;
            });
        } catch (const std::runtime_error &) {
        }
    };
    both(use, use);
    assert(data == 1);
}

struct late {
    int value = 3;
    late() noexcept { data++; }
};

/* Either of two threads may initialize it. */
struct noted {
    std::thread::id by = std::this_thread::get_id();
};

static bool first_initializes()
{
    auto use = [] {
        static noted variable;
        return variable.by;
    };
    std::thread a(use), b(use);
    auto first = a.get_id();
    a.join();
    b.join();
    return use() == first;
}

BROKEN(cxx_static_variable_by_first, "assertion")
{
    assert(first_initializes());
}

BROKEN(cxx_static_variable_by_second, "assertion")
{
    assert(!first_initializes());
}

/* The C++ library's own code moves the characters. */
BROKEN(cxx_string, "race")
{
    std::string text(100, 'a');
    both([&text] { text.assign(90, 'b'); }, [&text] { std::string copy = text; });
}

CORRECT(cxx_static_variable)
{
    auto use = [] {
        static late variable;
        assert(variable.value == 3);
    };
    both(use, use);
    assert(data == 1);
}

CORRECT(cxx_future)
{
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread thread([&] { promise.set_value(5); });
    assert(future.get() == 5);
    thread.join();
}

BROKEN(cxx_future_never_set, "deadlock")
{
    std::promise<int> promise;
    promise.get_future().wait();
}

CORRECT(cxx_async)
{
    auto value = std::async(std::launch::async, [] { return 7; });
    auto thrown = std::async(std::launch::async, []() -> int { throw std::runtime_error("no"); });
    bool caught = false;
    try {
        thrown.get();
    } catch (const std::runtime_error &) {
        caught = true;
    }
    assert(caught && value.get() == 7);
}

CORRECT(cxx_jthread)
{
    std::jthread thread([](std::stop_token stop) {
        while (!stop.stop_requested())
            std::this_thread::yield();
    });
}

BROKEN(cxx_not_joined, "crash")
{
    std::thread thread([] {});
}

BROKEN(cxx_uncaught, "crash")
{
    std::thread([] { throw std::runtime_error("nobody catches it"); }).join();
}

CORRECT(cxx_shared_pointer)
{
    auto pointer = std::make_shared<int>(1);
    std::thread thread([pointer] { assert(*pointer == 1); });
    pointer.reset();
    thread.join();
}

BROKEN(cxx_shared_pointer_replaced, "race")
{
    auto pointer = std::make_shared<int>(1);
    std::thread thread([&pointer] { pointer.reset(); });
    pointer.reset();
    thread.join();
}

struct counted {
    int value = 1;
    ~counted() { data++; }
};
static thread_local counted own;

CORRECT(cxx_thread_local)
{
    std::thread([] { own.value = 5; }).join();
    assert(own.value == 1 && data == 1);
}

CORRECT(cxx_vector_of_threads)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(count_locked);
    for (auto &thread : threads)
        thread.join();
    assert(data == 3);
}

CORRECT(cxx_sleep)
{
    auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(1h);
    assert(std::chrono::steady_clock::now() - before == 1h);
}
