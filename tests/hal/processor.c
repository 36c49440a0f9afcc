#include "haltest.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

static unsigned yields;

static VOID count_yield(VOID)
{
    yields++;
}

static int first_processor(void)
{
    cpu_set_t all;
    int number;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (number = 0; !CPU_ISSET(number, &all); number++)
        continue;
    return number;
}

static void bind_to(int number)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(number, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void the_count_is_what_the_process_may_use(void **state)
{
    cpu_set_t all;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(HalProcessorCount(), CPU_COUNT(&all));
    assert_int_equal(HalOtherProcessorAvailable(), CPU_COUNT(&all) > 1);
}

static void be_alone(void *argument)
{
    cpu_set_t all;

    (void)argument;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    bind_to(first_processor());
    assert_int_equal(HalProcessorCount(), 1);
    assert_int_equal(HalDispatch.CurrentProcessor(), first_processor());
    assert_int_equal(HalOtherProcessorAvailable(), CPU_COUNT(&all) > 1); /* as it was when the library was loaded */
}

static void a_bound_process_counts_one_processor(void **state)
{
    (void)state;
    run_in_child(be_alone, NULL);
}

static void look_from_bound_thread(void *argument, unsigned index)
{
    (void)index;
    bind_to(first_processor());
    *(BOOLEAN *)argument = HalOtherProcessorAvailable();
}

static void bind_one_thread_only(void *argument)
{
    BOOLEAN available;

    run_threads(1, 20, look_from_bound_thread, &available);
    assert_int_equal(available, *(ULONG *)argument > 1);
}

static void a_bound_thread_has_company(void **state)
{
    ULONG processors = HalProcessorCount();

    (void)state;
    run_in_child(bind_one_thread_only, &processors);
}

static void a_thread_knows_its_processor(void **state)
{
    cpu_set_t all;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int number = 0; number < CPU_SETSIZE; number++) {
        if (CPU_ISSET(number, &all)) {
            bind_to(number);
            assert_int_equal(HalDispatch.CurrentProcessor(), number);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void spins_grow_with_cycles(void **state)
{
    static const ULONG cycles[] = {0, 1, 1024, 2000, 10240, 1000000, MAXULONG};
    ULONG previous = 1;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cycles) / sizeof(cycles[0]); i++) {
        ULONG spins = HalSpinsForCycles(cycles[i]);

        assert_true(spins >= previous);
        previous = spins;
    }
    assert_true(HalSpinsForCycles(MAXULONG) > HalSpinsForCycles(10240));
}

static void the_longest_spin_is_short(void **state)
{
    ULONGLONG shortest = MAXULONGLONG;
    unsigned tries;

    (void)state;
    for (tries = 0; tries < 20; tries++) {
        ULONGLONG start = HalDispatch.QueryInterruptTime();
        ULONGLONG time;
        ULONG spins = HalSpinsForCycles(10240);

        while (spins-- != 0)
            HalPause();
        time = HalDispatch.QueryInterruptTime() - start;
        shortest = time < shortest ? time : shortest;
    }
    assert_true(shortest < MILLISECOND);
}

static volatile ULONG line[32] __attribute__((aligned(128)));
static int writers_end;

static void *write_line(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&writers_end, __ATOMIC_RELAXED))
        __atomic_fetch_add(&line[0], 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Only a read of a word that somebody has just written tells how far away the writer is. */
static void lines_of_others_are_timed(void **state)
{
    pthread_t writer;
    ULONG cycles;

    (void)state;
    assert_false(HalTimeLine(line, 100, &cycles));
    assert_int_equal(pthread_create(&writer, NULL, write_line, NULL), 0);
    while (!HalTimeLine(line, 100, &cycles))
        sched_yield();
    __atomic_store_n(&writers_end, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_false(HalTimeLine(line, 100, &cycles));
}

static void giving_way_yields_and_then_naps(void **state)
{
    const struct {
        ULONG round;
        unsigned yields;
    } cases[] = {
        {0, 1}, {1, 1}, {63, 1}, {64, 0}, {76, 0}, {MAXULONG, 0},
    };
    VOID (*yield)(VOID) = HalDispatch.Yield;
    size_t i;

    (void)state;
    HalDispatch.Yield = count_yield;
    watchdog_start(20);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        yields = 0;
        HalGiveWay(cases[i].round);
        assert_int_equal(yields, cases[i].yields);
    }
    watchdog_stop();
    HalDispatch.Yield = yield;
    HalDispatch.Yield();
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_count_is_what_the_process_may_use),
        cmocka_unit_test(a_bound_process_counts_one_processor),
        cmocka_unit_test(a_bound_thread_has_company),
        cmocka_unit_test(a_thread_knows_its_processor),
        cmocka_unit_test(spins_grow_with_cycles),
        cmocka_unit_test(the_longest_spin_is_short),
        cmocka_unit_test(lines_of_others_are_timed),
        cmocka_unit_test(giving_way_yields_and_then_naps),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
