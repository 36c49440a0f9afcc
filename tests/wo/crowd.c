/* Many processes in one world, and many names. Costs are printed, not checked. */
#include "processes.h"

#include <uchar.h>

#define PROCESSES 1000
#define NAMES 100000
#define LOOKUPS 20000

static PWO_VIEW view;
static steps arrived, gate;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void attach_and_wait_for_the_end(void *argument)
{
    char byte;
    double began = now();
    (void)argument;
    attach();
    double took = now() - began;
    close(gate.ends[1]);
    assert_int_equal(write(arrived.ends[1], &took, sizeof(took)), sizeof(took));
    assert_int_equal(read(gate.ends[0], &byte, 1), 0);
}

static void a_thousand_processes(void **state)
{
    unsigned count = test_slowdown() == 1 ? PROCESSES : 100;
    pid_t children[PROCESSES];
    double took, total = 0, longest = 0;
    char path[512];
    (void)state;
    arrived = make_steps();
    gate = make_steps();
    for (unsigned i = 0; i < count; i++) {
        children[i] = start(attach_and_wait_for_the_end, NULL);
        assert_int_equal(read(arrived.ends[0], &took, sizeof(took)), sizeof(took));
        total += took;
        longest = took > longest ? took : longest;
    }
    double began = now();
    close_steps(&gate);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(await_process(children[i]), 0);
    print_message("# %u processes: attach %.0f us on average, %.0f us at most; all leave in %.0f ms\n", count,
                  total / count, longest, (now() - began) / 1000);
    assert_false(find_world_file(path));
    close_steps(&arrived);
}

static void half_are_killed(void **state)
{
    pid_t children[100];
    double took;
    char path[512];
    (void)state;
    arrived = make_steps();
    gate = make_steps();
    for (unsigned i = 0; i < 100; i++) {
        children[i] = start(attach_and_wait_for_the_end, NULL);
        assert_int_equal(read(arrived.ends[0], &took, sizeof(took)), sizeof(took));
    }
    for (unsigned i = 0; i < 100; i += 2)
        kill_process(children[i]);
    close_steps(&gate);
    for (unsigned i = 1; i < 100; i += 2)
        assert_int_equal(await_process(children[i]), 0);
    close_steps(&arrived);
    if (find_world_file(path)) /* the last one may have left before a guard had cleaned up */
        unlink(path);
}

static UNICODE_STRING number_name(unsigned number, char16_t text[9])
{
    for (unsigned i = 0; i < 8; i++)
        text[i] = (char16_t)(u'a' + (number >> (4 * i) & 15));
    return (UNICODE_STRING){16, 16, (PWSTR)text};
}

static double time_lookups(unsigned names)
{
    test_random random;
    random_seed(&random, 9);
    double began = now();
    for (unsigned i = 0; i < LOOKUPS; i++) {
        char16_t text[9];
        WO_INDEX object;
        UNICODE_STRING name = number_name(random_below(&random, names), text);
        assert_int_equal(WoFindName(view, &(WO_LOOKUP){0, &name, TRUE}, 1, &object), STATUS_SUCCESS);
    }
    return (now() - began) / LOOKUPS * 1000;
}

static unsigned longest_chain(void)
{
    unsigned longest = 0;
    for (unsigned i = 0; i < WO_BUCKETS; i++) {
        unsigned length = 0;
        for (WO_INDEX n = view->World->Bucket[i]; n != 0; n = ((PWO_NAME)WopAt(view, n))->HashNext)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void make_names(void *argument)
{
    double few = 0;
    (void)argument;
    view = attach();
    for (unsigned i = 0; i < NAMES; i++) {
        char16_t text[9];
        WO_INDEX object;
        UNICODE_STRING name = number_name(i, text);
        WO_NEW new = {.Type = WoSynchronizationEvent};
        assert_int_equal(WoCreateName(view, &(WO_LOOKUP){0, &name, TRUE}, &new, 1, &object), STATUS_SUCCESS);
        if (i == 9)
            few = time_lookups(10);
    }
    double many = time_lookups(NAMES);
    print_message("# open: %.0f ns with 10 names, %.0f ns with %u; longest chain %u\n", few, many, NAMES, longest_chain());
    fflush(stdout);
    assert_true(longest_chain() <= 16);
    raise(SIGKILL);
}

static void watch_them_go(void *argument)
{
    steps *s = argument;
    view = attach();
    step(&s[0]);
    await_step(&s[1]);
    double began = now();
    while (__atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED) != 1)
        nap(1000 * MICROSECOND);
    print_message("# a killed process with %u named objects is gone after %.0f ms\n", NAMES, (now() - began) / 1000);
    fflush(stdout);
    assert_int_equal(__atomic_load_n(&view->World->Names, __ATOMIC_RELAXED), 0);
    assert_int_equal(__atomic_load_n(&view->World->Objects, __ATOMIC_RELAXED), 0);
}

static void a_hundred_thousand_names(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    pid_t watcher = start(watch_them_go, s);
    await_step(&s[0]);
    await_process(start(make_names, NULL));
    step(&s[1]);
    assert_int_equal(await_process(watcher), 0);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_processes),
        cmocka_unit_test(half_are_killed),
        cmocka_unit_test(a_hundred_thousand_names),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
