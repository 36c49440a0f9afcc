/*
 * Waits by handle. Closing a handle under its waiters loses none and leaks nothing; what is released by handle is taken
 * by handle, once; a deadline stays fixed, whatever interrupts the wait.
 */
#include "stress.h"

#include <interlock/nt.h>

#include "ob/obp.h"

#define THREADS 6
#define SLOTS 4
#define SEMAPHORES 5

static struct {
    HANDLE handle[SLOTS];
    unsigned long rounds;
    unsigned long outcome[3]; /* taken, timeout, invalid */
    unsigned long released;
    unsigned long taken;
    HANDLE semaphore[SEMAPHORES];
    int stop;
} race;

static POBJECT_TYPE event_type(void)
{
    return *ExEventObjectType;
}

static void note(NTSTATUS status, ULONG count)
{
    if (status == STATUS_TIMEOUT)
        add(&race.outcome[1], 1);
    else if (status == STATUS_INVALID_HANDLE || status == STATUS_INVALID_PARAMETER_MIX)
        add(&race.outcome[2], 1); /* the second when a stale handle was reused for another event of the wait */
    else {
        require(status >= STATUS_WAIT_0 && status < STATUS_WAIT_0 + (NTSTATUS)count);
        add(&race.outcome[0], 1);
    }
}

static void wait_for_some(test_random *random)
{
    LARGE_INTEGER timeout = in_microseconds(random_below(random, 60));
    HANDLE handles[SLOTS];
    ULONG count = 1 + random_below(random, SLOTS);

    for (ULONG i = 0; i < count; i++)
        handles[i] = load(&race.handle[i]);
    if (count == 1)
        note(NtWaitForSingleObject(handles[0], FALSE, &timeout), 1);
    else
        note(NtWaitForMultipleObjects(count, handles, random_below(random, 2) ? WaitAny : WaitAll, FALSE, &timeout),
             count);
}

/* Takes a slot's handle, signals or not, closes it, and puts a new one there. */
static void replace_some(test_random *random)
{
    HANDLE fresh;
    NTSTATUS status;

    EVENT_TYPE type = random_below(random, 2) ? NotificationEvent : SynchronizationEvent;
    require(NtCreateEvent(&fresh, EVENT_ALL_ACCESS, NULL, type, FALSE) == STATUS_SUCCESS);
    HANDLE old = __atomic_exchange_n(&race.handle[random_below(random, SLOTS)], fresh, __ATOMIC_SEQ_CST);
    status = NtSetEvent(old, NULL);
    require(status == STATUS_SUCCESS);
    if (random_below(random, 4) == 0)
        sched_yield();
    require(ObCloseHandle(old, UserMode) == STATUS_SUCCESS);
}

static void close_thread(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long i = 0; i < race.rounds; i++) {
        if (index < 2)
            replace_some(&random);
        else
            wait_for_some(&random);
    }
}

static void close_under_waiters(void **state)
{
    ULONG before = event_type()->TotalNumberOfObjects;

    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(20000);
    for (ULONG i = 0; i < SLOTS; i++)
        assert_int_equal(NtCreateEvent(&race.handle[i], EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE),
                         STATUS_SUCCESS);
    run_threads(THREADS, HANG_SECONDS, close_thread, NULL);
    for (ULONG i = 0; i < SLOTS; i++)
        assert_int_equal(ObCloseHandle(race.handle[i], UserMode), STATUS_SUCCESS);
    print_message("# taken %lu, timeout %lu, invalid %lu\n", race.outcome[0], race.outcome[1], race.outcome[2]);
    assert_int_equal(event_type()->TotalNumberOfObjects, before);
}

/* One handle, closed by the last waiter: a waiter sleeps on an object that has no handle. */
static void sleeper_thread(void *argument, unsigned index)
{
    HANDLE handle = race.handle[0];

    (void)argument;
    if (index != 0) {
        NTSTATUS status = NtWaitForSingleObject(handle, FALSE, NULL);
        require(status == STATUS_WAIT_0 || status == STATUS_INVALID_HANDLE);
        return;
    }
    PVOID event;
    require(ObReferenceObjectByHandle(handle, 0, event_type(), KernelMode, &event, NULL) == STATUS_SUCCESS);
    require(ObCloseHandle(handle, UserMode) == STATUS_SUCCESS);
    KeSetEvent(event, 0, FALSE);
    ObDereferenceObject(event);
}

static void sleepers_without_a_handle(void **state)
{
    unsigned long rounds = test_rounds(1000);
    ULONG before = event_type()->TotalNumberOfObjects;

    (void)state;
    for (unsigned long i = 0; i < rounds; i++) {
        assert_int_equal(NtCreateEvent(&race.handle[0], EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE),
                         STATUS_SUCCESS);
        run_threads(4, HANG_SECONDS, sleeper_thread, NULL);
        assert_int_equal(event_type()->TotalNumberOfObjects, before);
    }
}

static void release_some(test_random *random)
{
    for (unsigned long i = 0; i < race.rounds; i++) {
        LONG count = 1 + (LONG)random_below(random, 3);

        require(NtReleaseSemaphore(race.semaphore[random_below(random, SEMAPHORES)], count, NULL) == STATUS_SUCCESS);
        add(&race.released, (unsigned long)count);
        if (i % 16 == 0)
            sched_yield();
    }
}

/* A WaitAll on some takes one of each. */
static void take_some(test_random *random)
{
    while (!load(&race.stop)) {
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 200));
        ULONG first = random_below(random, SEMAPHORES);
        ULONG count = 1 + random_below(random, SEMAPHORES - first);
        WAIT_TYPE type = random_below(random, 2) ? WaitAny : WaitAll;
        NTSTATUS status = NtWaitForMultipleObjects(count, &race.semaphore[first], type, FALSE, &timeout);

        require(status == STATUS_TIMEOUT || (status >= STATUS_WAIT_0 && status < STATUS_WAIT_0 + (NTSTATUS)count));
        if (status != STATUS_TIMEOUT)
            add(&race.taken, type == WaitAll ? count : 1);
    }
}

static void count_thread(void *argument, unsigned index)
{
    static unsigned long left;
    test_random random;

    (void)argument;
    random_seed(&random, index);
    want_exact_timeouts();
    if (index < 2) {
        release_some(&random);
        if (add(&left, 1) % 2 == 0)
            store(&race.stop, 1);
    } else {
        take_some(&random);
    }
}

static void counts_are_conserved(void **state)
{
    unsigned long left = 0;

    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(30000);
    for (ULONG i = 0; i < SEMAPHORES; i++)
        assert_int_equal(NtCreateSemaphore(&race.semaphore[i], SEMAPHORE_ALL_ACCESS, NULL, 0, MAXLONG), STATUS_SUCCESS);
    run_threads(THREADS, HANG_SECONDS, count_thread, NULL);
    for (ULONG i = 0; i < SEMAPHORES; i++) {
        LARGE_INTEGER timeout = no_time();

        while (NtWaitForSingleObject(race.semaphore[i], FALSE, &timeout) == STATUS_WAIT_0)
            left++;
        assert_int_equal(ObCloseHandle(race.semaphore[i], UserMode), STATUS_SUCCESS);
    }
    assert_int_equal(race.released, race.taken + left);
    assert_true(race.taken > 0);
}

/* Polling an object that is always signaled succeeds every time, whatever other threads do to it meanwhile. */
static void poll_thread(void *argument, unsigned index)
{
    HANDLE pair[2] = {race.handle[0], race.handle[1]};

    (void)argument;
    for (unsigned long i = 0; i < race.rounds; i++) {
        LARGE_INTEGER timeout = no_time();

        switch (index) {
        case 0:
            require(NtSetEvent(pair[i % 2], NULL) == STATUS_SUCCESS);
            break;
        case 1:
            require(NtReleaseSemaphore(race.semaphore[0], 1, NULL) == STATUS_SUCCESS);
            break;
        case 2:
            require(NtWaitForMultipleObjects(2, pair, WaitAll, FALSE, &timeout) == STATUS_WAIT_0);
            break;
        case 3:
            require(NtWaitForMultipleObjects(2, pair, WaitAny, FALSE, &timeout) == STATUS_WAIT_0);
            break;
        case 4:
            pair[0] = race.semaphore[0];
            require(NtWaitForMultipleObjects(2, pair, WaitAll, FALSE, &timeout) == STATUS_WAIT_0);
            break;
        default:
            require(NtWaitForSingleObject(pair[i % 2], FALSE, &timeout) == STATUS_WAIT_0);
            break;
        }
    }
}

static void polls_succeed(void **state)
{
    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(30000);
    for (ULONG i = 0; i < 2; i++)
        assert_int_equal(NtCreateEvent(&race.handle[i], EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE),
                         STATUS_SUCCESS);
    assert_int_equal(NtCreateSemaphore(&race.semaphore[0], SEMAPHORE_ALL_ACCESS, NULL, (LONG)race.rounds, MAXLONG),
                     STATUS_SUCCESS);
    run_threads(THREADS, HANG_SECONDS, poll_thread, NULL);
    for (ULONG i = 0; i < 2; i++)
        assert_int_equal(ObCloseHandle(race.handle[i], UserMode), STATUS_SUCCESS);
    assert_int_equal(ObCloseHandle(race.semaphore[0], UserMode), STATUS_SUCCESS);
}

/*
 * A wait that is interrupted continuously, by kernel APCs, by suspensions and by spurious wakeups of its parking place,
 * still ends at its deadline. If one of them restarted it, it would not end while they continue, and they continue
 * until it has ended.
 */
static struct {
    PKTHREAD thread;
    HANDLE event;
    KAPC apc;
    ULONGLONG started, ended;
    NTSTATUS status;
    LARGE_INTEGER timeout;
    int form;
    int done;
} sleeper;

static void nothing_special(struct _KAPC *apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1,
                            PVOID *argument2)
{
    (void)apc, (void)routine, (void)context, (void)argument1, (void)argument2;
}

static void sleep_until_the_deadline(void)
{
    HANDLE handles[2] = {sleeper.event, sleeper.event};

    store(&sleeper.thread, KeGetCurrentThread());
    sleeper.started = HalDispatch.QueryInterruptTime();
    if (sleeper.form == 0)
        sleeper.status = NtWaitForSingleObject(sleeper.event, FALSE, &sleeper.timeout);
    else if (sleeper.form == 1)
        sleeper.status = NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, &sleeper.timeout);
    else if (sleeper.form == 2)
        sleeper.status = NtWaitForMultipleObjects(1, handles, WaitAll, FALSE, &sleeper.timeout);
    else
        sleeper.status = NtDelayExecution(FALSE, &sleeper.timeout);
    sleeper.ended = HalDispatch.QueryInterruptTime();
    store(&sleeper.done, 1);
    await(load(&sleeper.done) == 2);
}

static void disturb(void)
{
    test_random random;

    random_seed(&random, 1);
    await(load(&sleeper.thread) != NULL);
    KeInitializeApc(&sleeper.apc, sleeper.thread, OriginalApcEnvironment, nothing_special, NULL, NULL, KernelMode,
                    NULL);
    while (!load(&sleeper.done)) {
        switch (random_below(&random, 3)) {
        case 0:
            KeInsertQueueApc(&sleeper.apc, NULL, NULL, 0);
            break;
        case 1:
            HalDispatch.Wake(&sleeper.thread->WakeWord, 1);
            break;
        default:
            KeSuspendThread(sleeper.thread);
            KeResumeThread(sleeper.thread);
            break;
        }
        sched_yield();
    }
    while (KeRemoveQueueApc(&sleeper.apc)) {
    }
    store(&sleeper.done, 2);
}

static void disturb_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0)
        sleep_until_the_deadline();
    else
        disturb();
}

static void one_deadline(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) {
        memset(&sleeper, 0, sizeof(sleeper));
        sleeper.form = form;
        sleeper.timeout = in_microseconds(50000);
        assert_int_equal(NtCreateEvent(&sleeper.event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE),
                         STATUS_SUCCESS);
        run_threads(2, HANG_SECONDS, disturb_thread, NULL);
        assert_int_equal(sleeper.status, form == 3 ? STATUS_SUCCESS : STATUS_TIMEOUT);
        assert_true(sleeper.ended - sleeper.started >= 500000);
        assert_int_equal(ObCloseHandle(sleeper.event, UserMode), STATUS_SUCCESS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_under_waiters),
        cmocka_unit_test(sleepers_without_a_handle),
        cmocka_unit_test(counts_are_conserved),
        cmocka_unit_test(polls_succeed),
        cmocka_unit_test(one_deadline),
    };

    return cmocka_run_group_tests_name("stress/ntwaits", tests, NULL, NULL);
}
