/*
 * Queues. No packet is lost or comes twice; no more than MaximumCount threads run between two removes while none of
 * them blocks elsewhere; with workers that block the count comes back; a rundown gives everything back.
 */
#include "stress.h"

#define PRODUCERS 3
#define WORKERS 6
#define LIMIT 2

typedef struct packet {
    LIST_ENTRY entry;
    unsigned char seen;
} packet;

static struct {
    KQUEUE *queue;
    packet *packets;
    unsigned long count;
    unsigned long next;
    unsigned long removed;
    long running;
    long highest;
    int blocking;             /* workers wait for something else now and then */
    KSEMAPHORE elsewhere;
    unsigned long producers_left;
    packet stop[WORKERS];
} race;

static void start_race(unsigned long count, ULONG limit)
{
    memset(&race, 0, sizeof(race));
    race.count = count;
    race.packets = calloc(race.count, sizeof(race.packets[0]));
    race.queue = malloc(sizeof(*race.queue));
    assert_non_null(race.packets);
    assert_non_null(race.queue);
    race.producers_left = PRODUCERS;
    KeInitializeQueue(race.queue, limit);
    KeInitializeSemaphore(&race.elsewhere, 0, MAXLONG);
}

static void end_race(void)
{
    for (unsigned long i = 0; i < race.count; i++)
        assert_int_equal(race.packets[i].seen, 1);
    free(race.packets);
    free(race.queue);
}

static void take_packet(PLIST_ENTRY entry)
{
    packet *taken = CONTAINING_RECORD(entry, packet, entry);

    require(taken >= race.packets && taken < race.packets + race.count);
    require(__atomic_add_fetch(&taken->seen, 1, __ATOMIC_RELAXED) == 1);
    add(&race.removed, 1);
}

static void produce(unsigned index)
{
    test_random random;
    unsigned long number;

    random_seed(&random, index);
    while ((number = add(&race.next, 1)) <= race.count) {
        if (random_below(&random, 8) == 0)
            KeInsertHeadQueue(race.queue, &race.packets[number - 1].entry);
        else
            KeInsertQueue(race.queue, &race.packets[number - 1].entry);
        spin_for(random_below(&random, 20));
    }
    /* The last producer sends the workers home. */
    if (add(&race.producers_left, -1UL) == 0) {
        for (unsigned i = 0; i < WORKERS; i++)
            KeInsertQueue(race.queue, &race.stop[i].entry);
    }
}

static int is_stop(PLIST_ENTRY entry)
{
    packet *taken = CONTAINING_RECORD(entry, packet, entry);

    return taken >= race.stop && taken < race.stop + WORKERS;
}

static void block_elsewhere(test_random *random)
{
    LARGE_INTEGER timeout = in_microseconds(1 + random_below(random, 10));

    KeWaitForSingleObject(&race.elsewhere, Executive, KernelMode, FALSE, &timeout);
}

static void note_running(long running)
{
    long highest = load(&race.highest);

    while (running > highest &&
           !__atomic_compare_exchange_n(&race.highest, &highest, running, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void work(unsigned index)
{
    test_random random;
    PLIST_ENTRY entries[4];

    random_seed(&random, index);
    want_exact_timeouts();
    for (;;) {
        LARGE_INTEGER timeout = in_microseconds(random_below(&random, 40));
        ULONG wanted = race.blocking ? 1 + random_below(&random, 4) : 1;
        ULONG count = KeRemoveQueueEx(race.queue, KernelMode, FALSE, random_below(&random, 4) ? NULL : &timeout,
                                      entries, wanted);
        int stopped = 0;

        require(count >= 1 && count <= wanted);
        if (entries[0] == (PLIST_ENTRY)(LONG_PTR)STATUS_TIMEOUT)
            continue;
        note_running(add(&race.running, 1));
        spin_for(random_below(&random, 20));
        for (ULONG i = 0; i < count; i++) {
            if (!is_stop(entries[i]))
                take_packet(entries[i]);
            else if (stopped)
                KeInsertQueue(race.queue, entries[i]);
            else
                stopped = 1;
        }
        add(&race.running, -1);
        if (race.blocking && random_below(&random, 16) == 0)
            block_elsewhere(&random);
        if (stopped)
            return;
    }
}

static void race_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index < PRODUCERS)
        produce(index);
    else
        work(index);
}

static void packets_come_once_under_the_limit(void **state)
{
    (void)state;
    start_race(test_rounds(300000), LIMIT);
    run_threads(PRODUCERS + WORKERS, HANG_SECONDS, race_thread, NULL);
    assert_int_equal(race.removed, race.count);
    assert_in_range(race.highest, 1, LIMIT);
    assert_int_equal(race.queue->CurrentCount, 0);
    assert_true(IsListEmpty(&race.queue->ThreadListHead));
    assert_int_equal(KeReadStateQueue(race.queue), 0);
    end_race();
}

static void the_count_survives_blocking_workers(void **state)
{
    (void)state;
    start_race(test_rounds(150000), LIMIT);
    race.blocking = 1;
    run_threads(PRODUCERS + WORKERS, HANG_SECONDS, race_thread, NULL);
    assert_int_equal(race.removed, race.count);
    assert_int_equal(race.queue->CurrentCount, 0);
    assert_true(IsListEmpty(&race.queue->ThreadListHead));
    end_race();
}

/* Rundown under load: what the workers got and what came back is everything that went in. The queue's memory goes. */
static void rundown_producer(void)
{
    unsigned long number;

    while ((number = add(&race.next, 1)) <= race.count)
        KeInsertQueue(race.queue, &race.packets[number - 1].entry);
    add(&race.producers_left, -1UL);
}

static void rundown_worker(void)
{
    for (;;) {
        PLIST_ENTRY entry = KeRemoveQueue(race.queue, KernelMode, NULL);

        if (entry == (PLIST_ENTRY)(LONG_PTR)STATUS_ABANDONED)
            return;
        take_packet(entry);
    }
}

static void rundown_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index < PRODUCERS)
        rundown_producer();
    else
        rundown_worker();
}

static void take_ring(PLIST_ENTRY first)
{
    PLIST_ENTRY entry = first;

    while (entry != NULL) {
        PLIST_ENTRY next = entry->Flink;

        take_packet(entry);
        entry = next == first ? NULL : next;
    }
}

static void rundown_gives_everything_back(void **state)
{
    unsigned long rounds = test_rounds(1000);

    (void)state;
    for (unsigned long round = 0; round < rounds; round++) {
        test_threads *threads;

        start_race(200, 1 + (ULONG)(round % WORKERS));
        threads = start_threads(PRODUCERS + WORKERS, rundown_thread, NULL);
        await(load(&race.producers_left) == 0);
        take_ring(KeRundownQueue(race.queue));
        join_threads(threads, HANG_SECONDS);
        assert_true(IsListEmpty(&race.queue->ThreadListHead));
        end_race();
    }
}

/* A thread that asks a queue which was run down does not belong to it afterwards. */
static void an_abandoned_queue_may_go(void **state)
{
    KQUEUE *queue = malloc(sizeof(*queue));
    LARGE_INTEGER interval = in_microseconds(10);

    (void)state;
    assert_non_null(queue);
    KeInitializeQueue(queue, 1);
    assert_null(KeRundownQueue(queue));
    assert_int_equal((LONG_PTR)KeRemoveQueue(queue, KernelMode, NULL), STATUS_ABANDONED);
    assert_true(IsListEmpty(&queue->ThreadListHead));
    assert_null(KeGetCurrentThread()->Queue);
    free(queue);
    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_once_under_the_limit),
        cmocka_unit_test(the_count_survives_blocking_workers),
        cmocka_unit_test(an_abandoned_queue_may_go),
        cmocka_unit_test(rundown_gives_everything_back),
    };

    return cmocka_run_group_tests_name("stress/queue", tests, NULL, NULL);
}
