/*
 * Queues. No packet is lost or removed twice; no more than MaximumCount threads run between two removes while none of
 * them blocks elsewhere; with workers that block the count recovers; a rundown returns all packets.
 */
#include "stress.h"

#define PRODUCERS 3
#define WORKERS 8
#define BURST 4

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
    int blocking;             /* workers sometimes wait for something else */
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
        if (number % BURST == 0)
            spin_for(random_below(&random, 200));
    }
    /* The last producer tells the workers to stop. */
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

static void run_race(unsigned long rounds, ULONG limit, int blocking)
{
    start_race(test_rounds(rounds), limit);
    race.blocking = blocking;
    run_threads(PRODUCERS + WORKERS, HANG_SECONDS, race_thread, NULL);
    assert_int_equal(race.removed, race.count);
    assert_int_equal(race.queue->CurrentCount, 0);
    assert_true(IsListEmpty(&race.queue->ThreadListHead));
    assert_int_equal(KeReadStateQueue(race.queue), 0);
    if (!blocking)
        assert_in_range(race.highest, 1, limit);
    end_race();
}

static void packets_come_once_under_the_limit(void **state)
{
    (void)state;
    for (ULONG limit = 1; limit <= 3; limit++)
        run_race(150000, limit, 0);
}

static void the_count_survives_blocking_workers(void **state)
{
    (void)state;
    for (ULONG limit = 1; limit <= 3; limit++)
        run_race(50000, limit, 1);
}

/* Rundown under load: packets that the workers got and packets that came back add up to those inserted. The queue's
   memory is freed. */
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
        spin_for(100);
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

static unsigned long take_ring(PLIST_ENTRY first)
{
    PLIST_ENTRY entry = first;
    unsigned long count = 0;

    for (; entry != NULL; count++) {
        PLIST_ENTRY next = entry->Flink;

        take_packet(entry);
        entry = next == first ? NULL : next;
    }
    return count;
}

static void rundown_gives_everything_back(void **state)
{
    unsigned long rounds = test_rounds(1000);
    unsigned long given_back = 0;

    (void)state;
    /* continues until some round was run down with packets left: a few rounds need not have one */
    for (unsigned long round = 0; round < rounds || given_back == 0; round++) {
        test_threads *threads;

        start_race(200, 1 + (ULONG)(round % WORKERS));
        threads = start_threads(PRODUCERS + WORKERS, rundown_thread, NULL);
        await(load(&race.producers_left) == 0);
        given_back += take_ring(KeRundownQueue(race.queue));
        join_threads(threads, HANG_SECONDS);
        assert_true(IsListEmpty(&race.queue->ThreadListHead));
        end_race();
    }
    assert_true(given_back > 0);
}

/* A thread that removes from a queue after its rundown does not belong to it afterwards. */
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

/*
 * Prolongs the moment between linking for a packet and committing the wait: packets are inserted in it. The thread that
 * is given the first one counts as running from then on, so the second must stay in the queue. The wait reads the clock
 * in that moment.
 */
static struct {
    PKTHREAD thread;
    int entered;
    int leave;
    ULONGLONG (*query)(VOID);
    KQUEUE queue;
    LIST_ENTRY packets[2];
    int taken;
} moment;

static ULONGLONG query_in_the_moment(VOID)
{
    if (HalCurrentThread == load(&moment.thread) && !load(&moment.entered)) {
        store(&moment.entered, 1);
        await(load(&moment.leave));
    }
    return moment.query();
}

static void moment_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index == 1) {
        await(load(&moment.queue.Header.Type) & KOBJECT_WAITERS_BIT);
        store(&moment.thread, KeGetCurrentThread());
    }
    require(KeRemoveQueue(&moment.queue, KernelMode, NULL) == &moment.packets[!index]);
    if (add(&moment.taken, 1) == 1) {
        require(index == 1);
        for (unsigned i = 0; i < 1000; i++)
            require(load(&moment.taken) == 1 && KeReadStateQueue(&moment.queue) == 1);
    }
    /* The thread exits and makes room. */
}

static void packets_that_come_before_the_commit(void **state)
{
    test_threads *threads;

    (void)state;
    KeInitializeQueue(&moment.queue, 1);
    threads = start_threads(2, moment_thread, NULL);
    await(load(&moment.entered));
    KeInsertQueue(&moment.queue, &moment.packets[0]);
    KeInsertQueue(&moment.queue, &moment.packets[1]);
    store(&moment.leave, 1);
    join_threads(threads, HANG_SECONDS);
    assert_int_equal(moment.queue.CurrentCount, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_that_come_before_the_commit),
        cmocka_unit_test(packets_come_once_under_the_limit),
        cmocka_unit_test(the_count_survives_blocking_workers),
        cmocka_unit_test(an_abandoned_queue_may_go),
        cmocka_unit_test(rundown_gives_everything_back),
    };

    moment.query = HalDispatch.QueryTickTime;
    HalDispatch.QueryTickTime = query_in_the_moment;
    return cmocka_run_group_tests_name("stress/queue", tests, NULL, NULL);
}
