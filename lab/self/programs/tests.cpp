/* tests.cpp: test cases of GoogleTest, for command.py. */
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::atomic<int> torn;
static int count;

template <class Routine> static void twice(Routine routine)
{
    std::thread a(routine), b(routine);

    a.join();
    b.join();
}

TEST(Counter, Locked)
{
    twice([] { std::lock_guard<std::mutex> guard(lock); count++; });
    EXPECT_EQ(count, 2);
}

TEST(Counter, Racing)
{
    twice([] { count++; });
}

TEST(Torn, Update)
{
    twice([] { int seen = torn; torn = seen + 1; });
    EXPECT_EQ(torn, 2);
}
