/*
 * C++: a cache that two threads fill. Lookup and insertion are each under the lock, but not together, so a value may be
 * computed twice.
 *
 *     interlock lab examples/lab/cache.cpp -- -std=c++17
 */
#include <cassert>
#include <map>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::map<int, int> cache;
static int computed;

static int square(int number)
{
    {
        std::lock_guard<std::mutex> guard(lock);
        auto found = cache.find(number);
        if (found != cache.end())
            return found->second;
    }
    std::lock_guard<std::mutex> guard(lock); // too late: another thread may have inserted it meanwhile
    computed++;
    return cache[number] = number * number;
}

int main()
{
    std::thread first([] { assert(square(3) == 9); }), second([] { assert(square(3) == 9); });

    first.join();
    second.join();
    return computed == 1 ? 0 : 1;
}
