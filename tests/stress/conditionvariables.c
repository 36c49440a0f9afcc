/* Condition variables against timeouts, with every kind of lock. */
#include "stress.h"

#include <interlock/rtl.h>

/* A ring with producers and consumers: everything that goes in comes out once. */
#define ROOM 4
#define MOST_THREADS 16

static struct {
    BOOLEAN section_used;
    RTL_CRITICAL_SECTION section;
    RTL_SRWLOCK lock;
    RTL_CONDITION_VARIABLE not_full;
    RTL_CONDITION_VARIABLE not_empty;
    unsigned long items[ROOM];
    unsigned long filled;  /* so far */
    unsigned long emptied;
    unsigned long wanted;
    unsigned long sum[MOST_THREADS];
} ring;

static void lock_ring(void)
{
    if (ring.section_used)
        RtlEnterCriticalSection(&ring.section);
    else
        RtlAcquireSRWLockExclusive(&ring.lock);
}

static void unlock_ring(void)
{
    if (ring.section_used)
        RtlLeaveCriticalSection(&ring.section);
    else
        RtlReleaseSRWLockExclusive(&ring.lock);
}

static void sleep_on(PRTL_CONDITION_VARIABLE variable, test_random *random)
{
    LARGE_INTEGER some = in_microseconds(random_below(random, 200));
    PLARGE_INTEGER timeout = random_below(random, 3) == 0 ? &some : NULL;
    NTSTATUS status = ring.section_used ? RtlSleepConditionVariableCS(variable, &ring.section, timeout)
                                        : RtlSleepConditionVariableSRW(variable, &ring.lock, timeout, 0);

    require(status == STATUS_SUCCESS || (status == STATUS_TIMEOUT && timeout != NULL));
}

/* FALSE: enough rounds were done. */
static BOOLEAN fill_one(test_random *random)
{
    lock_ring();
    while (ring.filled != ring.wanted && ring.filled - ring.emptied == ROOM)
        sleep_on(&ring.not_full, random);
    if (ring.filled == ring.wanted) {
        unlock_ring();
        return FALSE;
    }
    ring.items[ring.filled % ROOM] = ring.filled;
    ring.filled += 1;
    if (ring.filled == ring.wanted)
        RtlWakeAllConditionVariable(&ring.not_full);
    unlock_ring();
    RtlWakeConditionVariable(&ring.not_empty);
    return TRUE;
}

static BOOLEAN empty_one(test_random *random, unsigned long *sum)
{
    lock_ring();
    while (ring.emptied != ring.wanted && ring.filled == ring.emptied)
        sleep_on(&ring.not_empty, random);
    if (ring.emptied == ring.wanted) {
        unlock_ring();
        return FALSE;
    }
    *sum += ring.items[ring.emptied % ROOM];
    ring.emptied += 1;
    if (ring.emptied == ring.wanted)
        RtlWakeAllConditionVariable(&ring.not_empty);
    RtlWakeConditionVariable(&ring.not_full);
    unlock_ring();
    return TRUE;
}

static void work(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    want_exact_timeouts();
    if (index % 2 == 0) {
        while (fill_one(&random))
            ;
    } else {
        while (empty_one(&random, &ring.sum[index]))
            ;
    }
}

static void run_ring(BOOLEAN section_used, unsigned threads)
{
    unsigned long sum = 0;

    memset(&ring, 0, sizeof(ring));
    ring.section_used = section_used;
    ring.wanted = test_rounds(20000);
    require(NT_SUCCESS(RtlInitializeCriticalSection(&ring.section)));
    run_threads(threads, HANG_SECONDS, work, NULL);
    for (unsigned i = 0; i < threads; i++)
        sum += ring.sum[i];
    assert_int_equal(ring.filled, ring.wanted);
    assert_int_equal(ring.emptied, ring.wanted);
    assert_int_equal(sum, ring.wanted * (ring.wanted - 1) / 2);
    assert_null(ring.not_full.Ptr);
    assert_null(ring.not_empty.Ptr);
    assert_null(ring.lock.Ptr);
    RtlDeleteCriticalSection(&ring.section);
}

static void nothing_is_lost_in_a_ring(void **state)
{
    static const unsigned threads[] = {2, 4, 16};

    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(threads); i++) {
        run_ring(FALSE, threads[i]);
        run_ring(TRUE, threads[i]);
    }
}

/* One sleeper is about to time out, one behind it has no timeout, and one wake comes. If the first reports a timeout,
   the wake was for the second, which would hang without it; otherwise the second still sleeps. */
static struct {
    RTL_SRWLOCK lock;
    RTL_CONDITION_VARIABLE variable;
    unsigned long rounds;
    unsigned long asleep[2]; /* under the lock, so it is inside the sleep when others read it */
    unsigned long returned[2];
    unsigned long rounds_over;
    NTSTATUS status;         /* of the first */
} queue;

static NTSTATUS sleep_in_queue(unsigned index, unsigned long round, PLARGE_INTEGER timeout)
{
    NTSTATUS status;

    RtlAcquireSRWLockShared(&queue.lock);
    store(&queue.asleep[index], round);
    status =
        RtlSleepConditionVariableSRW(&queue.variable, &queue.lock, timeout, RTL_CONDITION_VARIABLE_LOCKMODE_SHARED);
    RtlReleaseSRWLockShared(&queue.lock);
    return status;
}

static BOOLEAN is_asleep(unsigned index, unsigned long round)
{
    BOOLEAN asleep;

    RtlAcquireSRWLockExclusive(&queue.lock);
    asleep = load(&queue.asleep[index]) == round;
    RtlReleaseSRWLockExclusive(&queue.lock);
    return asleep;
}

static void sleep_first(test_random *random)
{
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 120) + 1);

        await(load(&queue.rounds_over) == round - 1);
        queue.status = sleep_in_queue(0, round, &timeout);
        require(queue.status == STATUS_SUCCESS || queue.status == STATUS_TIMEOUT);
        store(&queue.returned[0], round);
    }
}

static void sleep_second(void)
{
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        await(is_asleep(0, round));
        require(sleep_in_queue(1, round, NULL) == STATUS_SUCCESS);
        store(&queue.returned[1], round);
    }
}

static void wake_both(test_random *random)
{
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        await(is_asleep(1, round));
        spin_for(random_below(random, 2000));
        RtlWakeConditionVariable(&queue.variable);
        await(load(&queue.returned[0]) == round);
        if (queue.status == STATUS_SUCCESS) {
            require(load(&queue.returned[1]) == round - 1);
            RtlWakeConditionVariable(&queue.variable);
        }
        await(load(&queue.returned[1]) == round);
        store(&queue.rounds_over, round);
    }
}

static void stand_in_queue(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    want_exact_timeouts();
    if (index == 0)
        sleep_first(&random);
    else if (index == 1)
        sleep_second();
    else
        wake_both(&random);
}

static void a_wake_and_a_timeout_have_one_winner(void **state)
{
    (void)state;
    memset(&queue, 0, sizeof(queue));
    queue.rounds = test_rounds(3000);
    run_threads(3, HANG_SECONDS, stand_in_queue, NULL);
    assert_null(queue.variable.Ptr);
    assert_null(queue.lock.Ptr);
}

/* A variable that is freed as soon as its last sleeper has returned: it is on the sleeper's stack. */
static struct {
    RTL_SRWLOCK lock;
    PRTL_CONDITION_VARIABLE request;
    BOOLEAN done;
    unsigned long rounds;
} desk;

static void ask(void)
{
    for (unsigned long round = 0; round < desk.rounds; round++) {
        RTL_CONDITION_VARIABLE variable = RTL_CONDITION_VARIABLE_INIT;

        RtlAcquireSRWLockExclusive(&desk.lock);
        desk.request = &variable;
        desk.done = FALSE;
        while (!desk.done)
            require(RtlSleepConditionVariableSRW(&variable, &desk.lock, NULL, 0) == STATUS_SUCCESS);
        RtlReleaseSRWLockExclusive(&desk.lock);
        variable.Ptr = (PVOID)~(ULONG_PTR)0; /* a thread that still counts here is detected */
    }
}

static void answer(void)
{
    for (unsigned long round = 0; round < desk.rounds;) {
        BOOLEAN asked;

        RtlAcquireSRWLockExclusive(&desk.lock);
        asked = desk.request != NULL;
        if (asked) {
            desk.done = TRUE;
            RtlWakeConditionVariable(desk.request);
            desk.request = NULL;
            round += 1;
        }
        RtlReleaseSRWLockExclusive(&desk.lock);
        if (!asked || round % 8 == 0)
            sched_yield();
    }
}

static void serve(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0)
        ask();
    else
        answer();
}

static void a_variable_may_go_when_its_sleepers_have(void **state)
{
    (void)state;
    memset(&desk, 0, sizeof(desk));
    desk.rounds = test_rounds(10000);
    run_threads(2, HANG_SECONDS, serve, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_in_a_ring),
        cmocka_unit_test(a_wake_and_a_timeout_have_one_winner),
        cmocka_unit_test(a_variable_may_go_when_its_sleepers_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
