/*
 * test.c: checks the caches with sequences of known counts, the machine with known times, and the documented properties
 * of locks with the counts.
 */
#include "program.h"

#include <stdio.h>
#include <string.h>

#define LINES 64

static char memory[LINES * CACHE_LINE] __attribute__((aligned(CACHE_LINE)));
static unsigned cases;
static bool failed, any_failed;

static void expect(uint64_t is, uint64_t should_be, const char *what)
{
    if (is != should_be) {
        printf("# %s: %lu instead of %lu\n", what, is, should_be);
        failed = true;
    }
}

static void expect_that(bool holds, const char *what)
{
    if (!holds) {
        printf("# not so: %s\n", what);
        failed = true;
    }
}

static void run_case(const char *name, void (*test)(void))
{
    failed = false;
    test();
    printf("%s %u - %s\n", failed ? "not ok" : "ok", ++cases, name);
    fflush(stdout);
    any_failed |= failed;
}

/* Caches. */

static cache_answer touch(uint32_t processor, size_t offset, bool write)
{
    return cache_access(cache_find((uintptr_t)memory + offset), processor, write);
}

static void expect_counts(uint64_t cold, uint64_t transfers, uint64_t upgrades, uint64_t invalidations)
{
    const cache_counts *c = cache_get_counts(KIND_OTHER);

    expect(c->cold, cold, "cold");
    expect(c->transfers, transfers, "transfers");
    expect(c->upgrades, upgrades, "upgrades");
    expect(c->invalidations, invalidations, "invalidations");
}

static void writers_of_a_line(void)
{
    cache_initialize(2, NULL);
    for (uint32_t i = 0; i < 101; i++)
        touch(i % 2, 0, true);
    expect_counts(1, 100, 0, 100);
}

static void a_writer_and_a_reader(void)
{
    cache_initialize(2, NULL);
    for (uint32_t i = 0; i < 100; i++)
        expect(touch(i % 2, 0, i % 2 == 0),
               i == 0       ? CACHE_COLD
               : i % 2 == 0 ? CACHE_UPGRADE
                            : CACHE_TRANSFER,
               "access");
    expect_counts(1, 50, 49, 49);
}

static void readers_after_a_write(void)
{
    cache_initialize(2560, NULL);
    touch(1000, 0, true);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 2560; i++)
            touch(i, 0, false);
    expect_counts(1, 2559, 0, 0);
    touch(1000, 0, true);
    expect_counts(1, 2559, 1, 2559);
    touch(7, 0, true);
    expect_counts(1, 2560, 1, 2560);
}

static void lines_of_ones_own(void)
{
    cache_initialize(LINES, NULL);
    for (int round = 0; round < 10; round++)
        for (uint32_t i = 0; i < LINES; i++)
            touch(i, i * CACHE_LINE, round % 2 != 0);
    expect_counts(LINES, 0, 0, 0);
}

static void false_sharing(void)
{
    cache_initialize(2, NULL);
    for (uint32_t i = 0; i < 100; i++)
        touch(i % 2, (i % 2) * 8, true);
    expect_counts(1, 99, 0, 99);
    cache_clear_counts();
    expect_counts(0, 0, 0, 0);
}

static uint32_t taken_from[2];

static void note_taken(uint32_t processor, const cache_line *line)
{
    taken_from[processor]++;
    expect(line->address, (uintptr_t)memory / CACHE_LINE, "line");
}

static void whose_line_is_taken(void)
{
    memset(taken_from, 0, sizeof(taken_from));
    cache_initialize(2, note_taken);
    touch(0, 0, false);
    touch(1, 0, false);
    touch(1, 0, true);
    touch(0, 0, true);
    expect(taken_from[0], 1, "from 0");
    expect(taken_from[1], 1, "from 1");
}

static void kinds_of_lines(void)
{
    cache_initialize(2, NULL);
    cache_set_kind((uintptr_t)memory + 60, 8, KIND_LOCK); /* two lines */
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t processor = 0; processor < 2; processor++)
            touch(processor, i * CACHE_LINE, true);
    expect(cache_remote(cache_get_counts(KIND_LOCK)), 2, "of the lock");
    expect(cache_remote(cache_get_counts(KIND_OTHER)), 1, "others");
}

static void nodes_of_processors(void)
{
    cache_initialize(10, NULL);
    cache_divide(8, 4); /* two each; 8 and 9 belong to the first node */
    expect(cache_node(0), 0, "node of 0");
    expect(cache_node(1), 0, "node of 1");
    expect(cache_node(7), 3, "node of 7");
    expect(cache_node(9), 0, "node of 9");
    touch(0, 0, true);
    touch(1, 0, true); /* inside */
    expect(cache_get_counts(KIND_OTHER)->crossings, 0, "crossings inside a node");
    touch(2, 0, true);
    touch(4, 0, false);
    touch(5, 0, false); /* the neighbour has it */
    expect(cache_get_counts(KIND_OTHER)->crossings, 2, "crossings of a write and a read");
    touch(4, 0, true); /* takes it from 2 and from 5 */
    expect(cache_get_counts(KIND_OTHER)->crossings, 3, "crossings of an upgrade");
    expect_counts(1, 4, 1, 4);
}

/* The machine. */

static uint32_t *const word = (uint32_t *)(void *)memory;
static uint64_t turns, seen_at;

static void start_nodes(uint32_t processors, uint32_t nodes, void (*routine)(void *))
{
    memset(memory, 0, sizeof(memory));
    machine_start((machine_shape){.processors = processors, .nodes = nodes}, routine, access_line_taken);
    for (uint32_t i = 0; i < processors; i++)
        machine_open_gate(i);
    expect_that(machine_run(), "it ends");
}

static void start_all(uint32_t processors, void (*routine)(void *))
{
    start_nodes(processors, 1, routine);
}

static void add_one(void *unused)
{
    (void)unused;
    lab_atomic_rmw((uintptr_t)word, sizeof(*word), RMW_ADD, 1, __ATOMIC_SEQ_CST, 1);
    lab_atomic_rmw((uintptr_t)word, sizeof(*word), RMW_ADD, 1, __ATOMIC_SEQ_CST, 2);
}

/* Each gets the line in turn, keeps it long enough to use it twice, and the next one waits for that. */
static void a_line_goes_round(void)
{
    start_all(100, add_one);
    expect(*word, 200, "sum");
    for (uint32_t i = 0; i < 100; i++)
        expect(machine_thread(i)->clock, (i + 1) * LINE_CYCLES + LOCKED_CYCLES, "clock");
    expect_counts(1, 99, 0, 99);
}

static void another_node_takes_longer(void)
{
    start_nodes(2, 2, add_one);
    expect(machine_thread(0)->clock, LINE_CYCLES + LOCKED_CYCLES, "clock of the first");
    expect(machine_thread(1)->clock, LINE_CYCLES + NODE_CYCLES + LOCKED_CYCLES, "clock of the second");
}

static void set_or_await(void *argument)
{
    const scale_thread *t = argument;

    if (t->base.number == 0) {
        machine_pass(10000);
        lab_atomic_store((uintptr_t)word, sizeof(*word), 1, __ATOMIC_RELEASE, 1);
        return;
    }
    while (lab_atomic_load((uintptr_t)word, sizeof(*word), __ATOMIC_ACQUIRE, 2) == 0)
        turns++;
    seen_at = t->clock;
}

/* A loop makes as many iterations as fit into the time, even if they are not executed one by one. */
static void a_loop_waits_for_a_change(void)
{
    turns = 0;
    start_all(2, set_or_await);
    expect_that(turns * (PAUSE_CYCLES + HIT_CYCLES) > 9500 && turns * PAUSE_CYCLES < 10100, "turns fill the time");
    expect_that(seen_at > 10000 && seen_at <= 10000 + 3 * LINE_CYCLES, "the change is seen at once");
    expect(cache_remote(cache_get_counts(KIND_OTHER)), 2, "transfers");
}

static void give_up(void *argument)
{
    (void)argument;
    while (turns < 1000 && lab_atomic_load((uintptr_t)word, sizeof(*word), __ATOMIC_RELAXED, 1) == 0)
        turns++;
    lab_atomic_store((uintptr_t)word, sizeof(*word), 1, __ATOMIC_RELAXED, 2);
    seen_at = machine_current()->clock;
}

static void a_loop_that_counts_ends(void)
{
    turns = 0;
    start_all(1, give_up);
    expect(turns, 1000, "turns");
    expect_that(seen_at > 1000 * PAUSE_CYCLES && seen_at < 1000 * (PAUSE_CYCLES + HIT_CYCLES) + 3000, "time");
}

static void sleep_or_wake(void *argument)
{
    const scale_thread *t = argument;

    if (t->base.number != 0) {
        machine_pass(t->base.number);
        expect_that(lab_block_wait((uintptr_t)word, 0, 0, 1), "woken");
        turns = turns * 10 + t->base.number;
        return;
    }
    machine_pass(100000);
    lab_block_wake_address((uintptr_t)word, 1, 2);
    machine_pass(100000);
    lab_block_wake_address((uintptr_t)word, 10, 2);
}

static void sleepers_are_woken_in_order(void)
{
    turns = 0;
    start_all(4, sleep_or_wake);
    expect(turns, 123, "order");
}

/* Locks. */

static cell measured[40];
static unsigned jobs_allowed;

static const scale_lock *find_lock(const char *name)
{
    for (size_t i = 0; i < scale_lock_count; i++)
        if (strcmp(scale_locks[i].name, name) == 0)
            return &scale_locks[i];
    return NULL;
}

static void measure_sizes(const char *name, const uint32_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        measured[i] = (cell){.lock = find_lock(name), .processors = sizes[i], .nodes = 1, .acquisitions = 600};
    expect_that(measured[0].lock != NULL && measure_cells(measured, count, jobs_allowed, false), "it is counted");
}

static double transfers(size_t index)
{
    return per_acquisition(&measured[index].m.result, lock_transfers(&measured[index].m.result));
}

static const uint32_t sizes[] = {1, 2, 8, 64};

static void queued_spinlock_is_flat(void)
{
    measure_sizes("queued spinlock", sizes, 4);
    expect(lock_transfers(&measured[0].m.result), 0, "alone");
    for (size_t i = 1; i < 4; i++)
        expect_that(transfers(i) > 1 && transfers(i) < 6.5, "as many as MCS: about six");
    expect_that(transfers(3) <= transfers(2) + 0.5, "no more at 64 than at 8");
}

static void mcs_is_flat(void)
{
    measure_sizes("MCS lock (reference)", sizes, 4);
    expect(lock_transfers(&measured[0].m.result), 0, "alone");
    expect_that(transfers(2) < 6.5 && transfers(3) < 6.5, "about six: the word, two nodes, there and back");
}

/* Every waiter reads the same word after each release. */
static void ticket_grows_with_its_waiters(void)
{
    measure_sizes("ticket lock (reference)", sizes, 4);
    expect_that(transfers(2) >= 8 && transfers(3) >= 64, "at least one for each processor");
}

static void measure_nodes(const char *name, uint32_t processors, uint32_t nodes)
{
    measured[0] = (cell){.lock = find_lock(name), .processors = processors, .nodes = nodes, .acquisitions = 600};
    expect_that(measured[0].lock != NULL && measure_cells(measured, 1, jobs_allowed, false), "it is counted");
}

static void cohort_stays_in_its_node(void)
{
    measure_nodes("MCS lock (reference)", 32, 4);
    scale_result mcs = measured[0].m.result;
    measure_nodes("cohort lock (reference)", 32, 4);
    const scale_result *cohort = &measured[0].m.result;

    expect_that(lock_crossings(&mcs) > mcs.acquisitions, "the MCS lock's lines cross for each acquisition");
    expect_that(lock_crossings(cohort) * 10 < lock_crossings(&mcs), "the cohort lock's a tenth as often at most");
    measure_nodes("MCS lock (reference)", 32, 1);
    expect(lock_crossings(&measured[0].m.result), 0, "crossings in one node");
}

static void spinlock_grows(void)
{
    measure_sizes("spinlock", sizes, 4);
    expect(lock_transfers(&measured[0].m.result), 0, "alone");
    expect_that(transfers(2) > 2 * transfers(1), "at 8 more than twice as much as at 2");
    expect_that(transfers(3) > 4 * transfers(2), "at 64 more than four times as much as at 8");
}

static void pushlock_is_flat(void)
{
    measure_sizes("pushlock, exclusive", sizes, 4);
    expect_that(transfers(3) <= 8, "a few at 64");
}

static void pool_is_flat(void)
{
    measure_sizes("thread pool: a work item", sizes, 4);
    expect_that(transfers(3) <= 2 * transfers(2), "at 64 not twice as much as at 8");
}

/* Each processor has a table of its own. */
static void timers_are_apart(void)
{
    measure_sizes("timer: set, cancel", sizes, 4);
    expect(lock_transfers(&measured[0].m.result), 0, "alone");
    expect_that(transfers(3) <= transfers(1), "no more at 64 than at 2");
}

static void shared_pushlock_moves_its_word(void)
{
    measure_sizes("pushlock, shared", sizes, 4);
    expect(lock_transfers(&measured[0].m.result), 0, "alone");
    expect_that(transfers(2) >= 1 && transfers(3) >= 1, "at least one");
}

static void expect_nothing_moves(const char *name)
{
    static const uint32_t many[] = {1, 2, 8, 64, 100};

    measure_sizes(name, many, 5);
    for (size_t i = 0; i < 5; i++) {
        expect(lock_transfers(&measured[i].m.result), 0, "transfers");
        expect_that(measured[i].m.result.counts[KIND_LOCK].hits >= 600, "the lock is used");
    }
}

static void cache_aware_pushlock_moves_nothing(void)
{
    expect_nothing_moves("cache-aware pushlock, shared");
}

static void cache_aware_rundown_moves_nothing(void)
{
    expect_nothing_moves("cache-aware rundown protection");
}

static void grown_pushlock_moves_nothing(void)
{
    expect_nothing_moves("auto-expand pushlock, shared, grown");
}

static void every_lock_can_be_counted(void)
{
    for (size_t i = 0; i < scale_lock_count; i++)
        measured[i] = (cell){.lock = &scale_locks[i], .processors = 5, .nodes = 1, .acquisitions = 200};
    expect_that(measure_cells(measured, scale_lock_count, jobs_allowed, false), "they are counted");
}

static void the_same_again(void)
{
    static const uint32_t twice[] = {16, 16};

    measure_sizes("pushlock, exclusive", twice, 2);
    expect_that(memcmp(&measured[0].m.result, &measured[1].m.result, sizeof(scale_result)) == 0, "the same counts");
}

_Static_assert(sizeof(measured) / sizeof(measured[0]) >= 29, "a place for every lock");

int run_tests(unsigned jobs)
{
    jobs_allowed = jobs;
    run_case("two writers of a line: a transfer for each access", writers_of_a_line);
    run_case("a writer and a reader: a transfer or an upgrade for each access", a_writer_and_a_reader);
    run_case("2560 readers after a write: a transfer for each, once", readers_after_a_write);
    run_case("lines of one's own: none", lines_of_ones_own);
    run_case("false sharing is seen", false_sharing);
    run_case("a cache that loses a line is notified", whose_line_is_taken);
    run_case("kinds of lines are counted apart", kinds_of_lines);
    run_case("nodes: what crosses", nodes_of_processors);
    run_case("transfers of a line follow each other", a_line_goes_round);
    run_case("a transfer from another node takes longer", another_node_takes_longer);
    run_case("a loop that waits makes its turns", a_loop_waits_for_a_change);
    run_case("a loop that counts them ends", a_loop_that_counts_ends);
    run_case("sleepers are woken in order", sleepers_are_woken_in_order);
    run_case("every lock can be counted", every_lock_can_be_counted);
    run_case("a second run counts the same", the_same_again);
    run_case("MCS lock: stays flat", mcs_is_flat);
    run_case("ticket lock: a transfer for each waiter", ticket_grows_with_its_waiters);
    run_case("cohort lock: stays in its node", cohort_stays_in_its_node);
    run_case("spinlock: grows with the processors", spinlock_grows);
    run_case("queued spinlock: stays flat", queued_spinlock_is_flat);
    run_case("pushlock, exclusive: a few lines, whatever waits", pushlock_is_flat);
    run_case("thread pool: stays flat", pool_is_flat);
    run_case("timers: each processor's own", timers_are_apart);
    run_case("pushlock, shared: its word moves", shared_pushlock_moves_its_word);
    run_case("cache-aware pushlock, shared: nothing moves", cache_aware_pushlock_moves_nothing);
    run_case("auto-expand pushlock, shared, grown: nothing moves", grown_pushlock_moves_nothing);
    run_case("cache-aware rundown protection: nothing moves", cache_aware_rundown_moves_nothing);
    printf("1..%u\n", cases);
    return any_failed;
}
