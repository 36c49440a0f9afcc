/*
 * Completion ports. Every packet is removed once, by any thread and any function; no more threads run between two
 * removals than the port allows; a port that is closed under its users wakes them all and leaks nothing.
 */
#include "stress.h"

#include "nt/ntp.h"

#define PRODUCERS 3
#define CONSUMERS 6
#define MOST 80
#define STOP MAXULONG_PTR

static struct {
    HANDLE port;
    unsigned char *seen;
    unsigned long count;
    unsigned long next;
    unsigned long posted;
    unsigned long removed;
    unsigned long producers_left;
    long running;
    long highest;
    int mixed; /* with every function, timeouts and alerts; otherwise only the limit is tested */
    HANDLE reserve[PRODUCERS];
    PKTHREAD consumer[CONSUMERS];
    int alerting;
} race;

static void start_race(unsigned long count, ULONG limit)
{
    memset(&race, 0, sizeof(race));
    race.count = count;
    race.seen = calloc(count, 1);
    race.producers_left = PRODUCERS;
    assert_non_null(race.seen);
    assert_int_equal(NtCreateIoCompletion(&race.port, IO_COMPLETION_ALL_ACCESS, NULL, limit), STATUS_SUCCESS);
    for (unsigned i = 0; i < PRODUCERS; i++)
        assert_int_equal(NtAllocateReserveObject(&race.reserve[i], NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
}

static void end_race(void)
{
    for (unsigned i = 0; i < PRODUCERS; i++)
        assert_int_equal(ObCloseHandle(race.reserve[i], UserMode), STATUS_SUCCESS);
    assert_int_equal(NtpPortType.TotalNumberOfObjects, 0);
    free(race.seen);
}

static NTSTATUS post(unsigned producer, ULONG_PTR key, test_random *random)
{
    PVOID context = (PVOID)(key ^ 0x5555);

    if (random_below(random, 8) == 0) {
        HANDLE reserve = race.reserve[producer];

        if (NtSetIoCompletionEx(race.port, reserve, (PVOID)key, context, (NTSTATUS)key, ~key) == STATUS_SUCCESS)
            return STATUS_SUCCESS;
    }
    return NtSetIoCompletion(race.port, (PVOID)key, context, (NTSTATUS)key, ~key);
}

static void produce(unsigned index)
{
    test_random random;
    unsigned long number;

    random_seed(&random, index);
    while ((number = add(&race.next, 1)) <= race.count) {
        require(post(index, number - 1, &random) == STATUS_SUCCESS);
        if (number % 8 == 0)
            spin_for(random_below(&random, 300));
    }
    if (add(&race.producers_left, -1UL) == 0) { /* the last one tells all to stop */
        for (unsigned i = 0; i < CONSUMERS; i++)
            require(NtSetIoCompletion(race.port, (PVOID)STOP, NULL, 0, 0) == STATUS_SUCCESS);
    }
}

static void take(const FILE_IO_COMPLETION_INFORMATION *packet)
{
    ULONG_PTR key = (ULONG_PTR)packet->KeyContext;

    require(key < race.count);
    require((ULONG_PTR)packet->ApcContext == (key ^ 0x5555));
    require(packet->IoStatusBlock.Status == (NTSTATUS)key && packet->IoStatusBlock.Information == ~key);
    require(__atomic_add_fetch(&race.seen[key], 1, __ATOMIC_RELAXED) == 1);
    add(&race.removed, 1);
}

static NTSTATUS remove_some(test_random *random, PFILE_IO_COMPLETION_INFORMATION packets, PULONG count)
{
    LARGE_INTEGER timeout = in_microseconds(random_below(random, 60));
    PLARGE_INTEGER wait = random_below(random, 3) ? NULL : &timeout;

    *count = 1;
    if (!race.mixed || random_below(random, 2))
        return NtRemoveIoCompletion(race.port, &packets->KeyContext, &packets->ApcContext, &packets->IoStatusBlock,
                                    race.mixed ? wait : NULL);
    return NtRemoveIoCompletionEx(race.port, packets, 1 + random_below(random, MOST), count, wait,
                                  random_below(random, 2) != 0);
}

static void note_running(long running)
{
    long highest = load(&race.highest);

    while (running > highest &&
           !__atomic_compare_exchange_n(&race.highest, &highest, running, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* TRUE: one of them was a stop packet. Other stop packets go back, for the other threads. */
static int take_all(const FILE_IO_COMPLETION_INFORMATION *packets, ULONG count)
{
    int stopped = 0;

    for (ULONG i = 0; i < count; i++) {
        if ((ULONG_PTR)packets[i].KeyContext != STOP)
            take(&packets[i]);
        else if (stopped++)
            require(NtSetIoCompletion(race.port, (PVOID)STOP, NULL, 0, 0) == STATUS_SUCCESS);
    }
    return stopped;
}

static void consume(unsigned index)
{
    FILE_IO_COMPLETION_INFORMATION packets[MOST];
    test_random random;
    ULONG count;
    int stopped = 0;

    random_seed(&random, index);
    want_exact_timeouts();
    store(&race.consumer[index - PRODUCERS], KeGetCurrentThread());
    while (!stopped) {
        NTSTATUS status = remove_some(&random, packets, &count);

        require(status == STATUS_SUCCESS || (race.mixed && (status == STATUS_TIMEOUT || status == STATUS_ALERTED)));
        if (status != STATUS_SUCCESS)
            continue;
        note_running(add(&race.running, 1));
        spin_for(random_below(&random, 30));
        stopped = take_all(packets, count);
        add(&race.running, -1);
    }
}

static void disturb(void)
{
    test_random random;

    random_seed(&random, 99);
    while (load(&race.producers_left) != 0) {
        PKTHREAD thread = load(&race.consumer[random_below(&random, CONSUMERS)]);

        if (thread != NULL)
            KeAlertThread(thread, UserMode);
        sched_yield();
    }
}

static void race_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index < PRODUCERS)
        produce(index);
    else if (index < PRODUCERS + CONSUMERS)
        consume(index);
    else
        disturb();
}

static void run_race(unsigned long rounds, ULONG limit, int mixed)
{
    start_race(test_rounds(rounds), limit);
    race.mixed = mixed;
    run_threads(PRODUCERS + CONSUMERS + (mixed ? 1 : 0), HANG_SECONDS, race_thread, NULL);
    assert_int_equal(race.removed, race.count);
    if (!mixed)
        assert_in_range(race.highest, 1, limit);
    assert_int_equal(ObCloseHandle(race.port, UserMode), STATUS_SUCCESS);
    end_race();
}

static void packets_come_once(void **state)
{
    (void)state;
    for (ULONG limit = 1; limit <= 8; limit *= 2)
        run_race(25000, limit, 1);
}

static void the_limit_holds(void **state)
{
    (void)state;
    for (ULONG limit = 1; limit <= 3; limit++)
        run_race(25000, limit, 0);
}

/* Closed while in use: all threads return, queued packets are dropped, nothing leaks. */
static void closing_producer(unsigned index)
{
    test_random random;
    unsigned long number;

    random_seed(&random, index);
    while ((number = add(&race.next, 1)) <= race.count) {
        NTSTATUS status = post(index, number - 1, &random);

        if (status == STATUS_INVALID_HANDLE)
            return;
        require(status == STATUS_SUCCESS);
        add(&race.posted, 1);
    }
}

static void closing_consumer(unsigned index)
{
    FILE_IO_COMPLETION_INFORMATION packet;
    test_random random;

    random_seed(&random, index);
    for (;;) {
        NTSTATUS status;

        if (random_below(&random, 8) == 0) {
            status = NtWaitForSingleObject(race.port, FALSE, NULL);
            require(status == STATUS_WAIT_0 || status == STATUS_INVALID_HANDLE);
        }
        status = NtRemoveIoCompletion(race.port, &packet.KeyContext, &packet.ApcContext, &packet.IoStatusBlock, NULL);
        if (status == STATUS_INVALID_HANDLE || status == STATUS_ABANDONED_WAIT_0)
            return;
        require(status == STATUS_SUCCESS);
        take(&packet);
    }
}

static void closing_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0) {
        spin_for(2000);
        sched_yield();
        require(ObCloseHandle(race.port, UserMode) == STATUS_SUCCESS);
    } else if (index <= 2) {
        closing_producer(index);
    } else {
        closing_consumer(index);
    }
}

static void ports_are_closed_in_use(void **state)
{
    unsigned long rounds = test_rounds(500);
    unsigned long lost = 0;

    (void)state;
    for (unsigned long round = 0; round < rounds; round++) {
        start_race(2000, 1 + (ULONG)(round % 4));
        run_threads(6, HANG_SECONDS, closing_thread, NULL);
        require(race.removed <= race.posted);
        lost += race.posted - race.removed;
        end_race();
    }
    print_message("# %lu packets were in ports that were closed\n", lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_once),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(ports_are_closed_in_use),
    };

    return cmocka_run_group_tests_name("stress/completionports", tests, NULL, NULL);
}
