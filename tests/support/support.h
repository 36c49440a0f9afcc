#ifndef INTERLOCK_TESTS_SUPPORT_H
#define INTERLOCK_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * A case that the configuration of a run does not have is removed from the table before it runs. skip() is for builds: cmocka
 * before 1.1.6 prints "not ok" for a skipped case, and a package's build runs these tests under Meson alone, which believes it.
 */
#define remove_case(tests, function) test_remove_case((tests), sizeof(tests) / sizeof((tests)[0]), (function))
void test_remove_case(struct CMUnitTest *tests, size_t count, CMUnitTestFunction function);

/* Runs function(argument) in a forked child and fails the test unless the child ends by SIGABRT after a report whose
   first line begins with "*** STOP: 0x<code>". A failed cmocka assertion in the child fails the test too. */
#define expect_bugcheck(code, function, argument) \
    test_expect_bugcheck((code), NULL, (function), (argument), __FILE__, __LINE__)

/* The same, and the first parameter must be kind, which for some codes says what the violation was. */
#define expect_violation(code, kind, function, argument) \
    test_expect_bugcheck((code), &(uint64_t){(kind)}, (function), (argument), __FILE__, __LINE__)

void test_expect_bugcheck(uint32_t code, const uint64_t *parameter, void (*function)(void *argument),
                          void *argument, const char *file, int line);

/*
 * Threads that leave a barrier together. join_threads waits for all of them; if that takes longer than the given
 * seconds (more under a sanitizer), the stacks of all threads go to stderr and the program aborts. function gets its
 * thread's number, 0 to count - 1.
 */
typedef void test_thread_function(void *argument, unsigned index);
typedef struct test_threads test_threads;

test_threads *start_threads(unsigned count, test_thread_function *function, void *argument);
void join_threads(test_threads *threads, unsigned seconds);
void run_threads(unsigned count, unsigned seconds, test_thread_function *function, void *argument);

/* The same watchdog for code that blocks the calling thread. One at a time. */
void watchdog_start(unsigned seconds);
void watchdog_stop(void);

/* Does the host report the thread as sleeping? Also true if it is gone. */
bool sleeps_in_the_host(unsigned long thread_id);
bool all_others_sleep(void);

/* How often a race is tried: rounds, unless INTERLOCK_STRESS_ROUNDS sets a number or a share of the default ("5%").
   Never 0. */
unsigned long test_rounds(unsigned long rounds);

/* 1, or how many times slower the sanitizer of this build may make a test. */
unsigned test_slowdown(void);

/*
 * AddressSanitizer does not keep its heap consistent over a fork: if a thread of the library starts or exits at that
 * moment, the heap stays locked in the child. So a fork waits until the other threads sleep. Where some never do, the
 * child is killed after TEST_HEAP_SECONDS and forgiven; other builds show real hangs.
 */
#define TEST_HEAP_SECONDS 30
int test_heap_may_stay_locked(void);

/* xorshift64*; a seed of 0 is replaced. Each thread has its own. */
typedef struct test_random {
    uint64_t state;
} test_random;

static inline void random_seed(test_random *random, uint64_t seed)
{
    random->state = (seed ^ UINT64_C(0x9E3779B97F4A7C15)) | 1;
}

static inline uint64_t random_next(test_random *random)
{
    uint64_t x = random->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static inline uint32_t random_below(test_random *random, uint32_t limit)
{
    return (uint32_t)(((random_next(random) >> 32) * limit) >> 32);
}

#endif
