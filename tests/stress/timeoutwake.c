/*
 * Timeouts against wakes. A wait that reports a timeout has consumed neither an object nor a wake; one that reports
 * success has consumed exactly one. The timeouts make both happen at the same moment as often as possible.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#define WAITERS 3

static struct {
    unsigned long rounds;
    unsigned long made, taken, timeouts, finished;
    HANDLE object;
} race;

static LARGE_INTEGER short_time(test_random *random)
{
    return in_microseconds(random_below(random, 60));
}

static void begin(HANDLE object, unsigned long rounds)
{
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(rounds);
    race.object = object;
}

/* Objects with a count: every release was taken or remains. */

static void take_or_time_out(void *argument, unsigned index)
{
    int (*make)(void) = *(int (**)(void))argument;
    test_random random;

    random_seed(&random, index);
    want_exact_timeouts();
    if (index == 0) {
        for (unsigned long i = 0; i < race.rounds; i++) {
            add(&race.made, (unsigned long)make());
            spin_for(random_below(&random, 200));
        }
        store(&race.finished, 1);
        return;
    }
    while (!load(&race.finished)) {
        LARGE_INTEGER timeout = short_time(&random);
        NTSTATUS status = NtWaitForSingleObject(race.object, FALSE, &timeout);

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        add(status == STATUS_SUCCESS ? &race.taken : &race.timeouts, 1);
    }
}

static int release_semaphore(void)
{
    return ReleaseSemaphore(race.object, 1, NULL);
}

static int set_event(void)
{
    LONG previous = 0;

    require(NtSetEvent(race.object, &previous) == STATUS_SUCCESS);
    return previous == 0;
}

static void run_counted(HANDLE object, int (*make)(void))
{
    begin(object, 30000);
    assert_non_null(object);
    run_threads(WAITERS + 1, HANG_SECONDS, take_or_time_out, &make);
    while (WaitForSingleObject(object, 0) == WAIT_OBJECT_0)
        race.taken++;
    assert_int_equal(race.taken, race.made);
    assert_true(CloseHandle(object));
}

static void semaphores(void **state)
{
    (void)state;
    run_counted(CreateSemaphoreA(NULL, 0, MAXLONG, NULL), release_semaphore);
}

static void auto_reset_events(void **state)
{
    (void)state;
    run_counted(CreateEventA(NULL, FALSE, FALSE, NULL), set_event);
}

/* WaitAll against the clock: both or none. */

static void take_both(void *argument, unsigned index)
{
    HANDLE *both = argument;
    test_random random;

    random_seed(&random, index + 9);
    want_exact_timeouts();
    if (index == 0) {
        for (unsigned long i = 0; i < race.rounds; i++) {
            require(ReleaseSemaphore(both[i % 2], 1, NULL));
            spin_for(random_below(&random, 100));
        }
        store(&race.finished, 1);
        return;
    }
    while (!load(&race.finished)) {
        LARGE_INTEGER timeout = short_time(&random);

        if (NtWaitForMultipleObjects(2, both, WaitAll, FALSE, &timeout) == STATUS_SUCCESS)
            add(&race.taken, 1);
    }
}

static void waits_for_all(void **state)
{
    HANDLE both[2] = {CreateSemaphoreA(NULL, 0, MAXLONG, NULL), CreateSemaphoreA(NULL, 0, MAXLONG, NULL)};
    unsigned long left[2] = {0, 0};

    (void)state;
    begin(NULL, 30000);
    race.rounds += race.rounds % 2;
    run_threads(WAITERS + 1, HANG_SECONDS, take_both, both);
    for (int i = 0; i < 2; i++) {
        while (WaitForSingleObject(both[i], 0) == WAIT_OBJECT_0)
            left[i]++;
        assert_true(CloseHandle(both[i]));
        assert_int_equal(race.taken + left[i], race.rounds / 2);
    }
}

/* Ports: each packet is removed once, in posting order. */

static unsigned char *packet_seen;

static void see_packet(ULONG_PTR key)
{
    require(key < race.rounds);
    require(__atomic_exchange_n(&packet_seen[key], 1, __ATOMIC_SEQ_CST) == 0);
    add(&race.taken, 1);
}

static void post_or_remove(void *argument, unsigned index)
{
    test_random random;
    ULONG_PTR last = 0;

    (void)argument;
    random_seed(&random, index + 17);
    want_exact_timeouts();
    if (index == 0) {
        for (unsigned long i = 0; i < race.rounds; i++) {
            require(PostQueuedCompletionStatus(race.object, 0, i, NULL));
            spin_for(random_below(&random, 200));
        }
        return;
    }
    while (load(&race.taken) < race.rounds) {
        LARGE_INTEGER timeout = short_time(&random);
        FILE_IO_COMPLETION_INFORMATION packets[2];
        ULONG count = 7;
        NTSTATUS status = NtRemoveIoCompletionEx(race.object, packets, 2, &count, &timeout, FALSE);

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        require(status == STATUS_SUCCESS ? count == 1 || count == 2 : count == 0);
        for (ULONG i = 0; i < count; i++) {
            ULONG_PTR key = (ULONG_PTR)packets[i].KeyContext;

            see_packet(key);
            require(key >= last);
            last = key;
        }
    }
}

static void completion_ports(void **state)
{
    (void)state;
    begin(CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, WAITERS), 30000);
    packet_seen = calloc(race.rounds, 1);
    assert_non_null(packet_seen);
    run_threads(WAITERS + 1, HANG_SECONDS, post_or_remove, NULL);
    assert_int_equal(race.taken, race.rounds);
    assert_true(CloseHandle(race.object));
    free(packet_seen);
}

/* Keyed events: a wait and a release pair, or both time out. */

static void meet_or_time_out(void *argument, unsigned index)
{
    PVOID key = argument;
    test_random random;

    random_seed(&random, index + 33);
    want_exact_timeouts();
    for (unsigned long i = 0; i < race.rounds; i++) {
        LARGE_INTEGER timeout = short_time(&random);
        NTSTATUS status = index % 2 ? NtReleaseKeyedEvent(NULL, key, FALSE, &timeout)
                                    : NtWaitForKeyedEvent(NULL, key, FALSE, &timeout);

        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        if (status == STATUS_SUCCESS)
            add(index % 2 ? &race.made : &race.taken, 1);
    }
}

static void keyed_events(void **state)
{
    LONG key;

    (void)state;
    begin(NULL, 8000);
    run_threads(4, HANG_SECONDS, meet_or_time_out, &key);
    assert_int_equal(race.made, race.taken);
}

/*
 * Wakes that are not stored: address waits and condition variables. There is one token at a time. A waiter without a
 * timeout sleeps until it gets one. One that reports a timeout leaves, and stays away until the token is gone: if it
 * had consumed the wake, the other would sleep forever.
 */
static struct {
    volatile LONG token;
    SRWLOCK lock;
    CRITICAL_SECTION section;
    CONDITION_VARIABLE changed;
    unsigned long taken, left;
} relay;

typedef struct relay_kind {
    BOOL (*sleep_once)(PLARGE_INTEGER timeout); /* TRUE: it was woken, or the token was there */
    void (*give)(void);
    void (*wake_all)(void);
} relay_kind;

static int take_token(void)
{
    LONG one = 1;

    return __atomic_compare_exchange_n(&relay.token, &one, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static BOOL sleep_on_address(PLARGE_INTEGER timeout)
{
    LONG none = 0;

    return RtlWaitOnAddress(&relay.token, &none, sizeof(none), timeout) != STATUS_TIMEOUT;
}

static void give_by_address(void)
{
    store(&relay.token, 1);
    WakeByAddressSingle((PVOID)&relay.token);
}

static void wake_all_of_address(void)
{
    WakeByAddressAll((PVOID)&relay.token);
}

static void wake_all_of_variable(void)
{
    WakeAllConditionVariable(&relay.changed);
}

static BOOL sleep_on_variable_with_lock(PLARGE_INTEGER timeout)
{
    NTSTATUS status = STATUS_SUCCESS;

    AcquireSRWLockExclusive(&relay.lock);
    if (load(&relay.token) == 0)
        status = RtlSleepConditionVariableSRW(&relay.changed, &relay.lock, timeout, 0);
    ReleaseSRWLockExclusive(&relay.lock);
    return status != STATUS_TIMEOUT;
}

static void give_with_lock(void)
{
    AcquireSRWLockExclusive(&relay.lock);
    store(&relay.token, 1);
    ReleaseSRWLockExclusive(&relay.lock);
    WakeConditionVariable(&relay.changed);
}

static BOOL sleep_on_variable_with_section(PLARGE_INTEGER timeout)
{
    NTSTATUS status = STATUS_SUCCESS;

    EnterCriticalSection(&relay.section);
    if (load(&relay.token) == 0)
        status = RtlSleepConditionVariableCS(&relay.changed, &relay.section, timeout);
    LeaveCriticalSection(&relay.section);
    return status != STATUS_TIMEOUT;
}

static void give_with_section(void)
{
    EnterCriticalSection(&relay.section);
    store(&relay.token, 1);
    WakeConditionVariable(&relay.changed);
    LeaveCriticalSection(&relay.section);
}

static void wait_patiently(const relay_kind *kind)
{
    while (load(&relay.taken) < race.rounds) {
        if (take_token())
            add(&relay.taken, 1);
        else
            kind->sleep_once(NULL);
    }
}

static void wait_impatiently(const relay_kind *kind, test_random *random)
{
    while (load(&relay.taken) < race.rounds) {
        LARGE_INTEGER timeout = short_time(random);

        if (!kind->sleep_once(&timeout))
            await(load(&relay.token) == 0 || load(&relay.taken) >= race.rounds);
        else if (take_token())
            add(&relay.taken, 1);
    }
}

static void give_all(const relay_kind *kind, test_random *random)
{
    for (unsigned long i = 0; i < race.rounds; i++) {
        kind->give();
        await(load(&relay.token) == 0);
        spin_for(random_below(random, 400));
    }
    await(load(&relay.taken) == race.rounds);
    while (load(&relay.left) != WAITERS) { /* the one without a timeout sleeps again */
        kind->wake_all();
        sched_yield();
    }
}

static void run_relay(void *argument, unsigned index)
{
    test_random random;

    random_seed(&random, index + 57);
    want_exact_timeouts();
    if (index == 0) {
        give_all(argument, &random);
        return;
    }
    if (index == 1)
        wait_patiently(argument);
    else
        wait_impatiently(argument, &random);
    add(&relay.left, 1);
}

static void relay_of(const relay_kind *kind)
{
    memset(&relay, 0, sizeof(relay));
    InitializeCriticalSection(&relay.section);
    begin(NULL, 8000);
    run_threads(WAITERS + 1, HANG_SECONDS, run_relay, (void *)kind);
    assert_int_equal(relay.taken, race.rounds);
    DeleteCriticalSection(&relay.section);
}

static void addresses(void **state)
{
    (void)state;
    relay_of(&(relay_kind){sleep_on_address, give_by_address, wake_all_of_address});
}

static void condition_variables_and_srw_locks(void **state)
{
    (void)state;
    relay_of(&(relay_kind){sleep_on_variable_with_lock, give_with_lock, wake_all_of_variable});
}

static void condition_variables_and_critical_sections(void **state)
{
    (void)state;
    relay_of(&(relay_kind){sleep_on_variable_with_section, give_with_section, wake_all_of_variable});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(semaphores),
        cmocka_unit_test(auto_reset_events),
        cmocka_unit_test(waits_for_all),
        cmocka_unit_test(completion_ports),
        cmocka_unit_test(keyed_events),
        cmocka_unit_test(addresses),
        cmocka_unit_test(condition_variables_and_srw_locks),
        cmocka_unit_test(condition_variables_and_critical_sections),
    };

    return cmocka_run_group_tests_name("stress/timeoutwake", tests, NULL, NULL);
}
