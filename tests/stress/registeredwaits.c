/* Registered waits and timer queue timers that end while their callbacks run. */
#include "../win32/tptest.h"

typedef struct registration {
    HANDLE handle;
    HANDLE semaphore;
    volatile ULONG runs;
    volatile ULONG signals;
    volatile ULONG over; /* no callback may begin or end */
} registration;

static void note(PVOID context, BOOLEAN timed_out)
{
    registration *r = context;
    check(!count_of(&r->over));
    add_one(&r->runs);
    if (!timed_out) {
        add_one(&r->signals);
    }
    check(!count_of(&r->over));
}

static void end_registration(registration *r, HANDLE done, uint32_t how)
{
    if (how == 0) {
        check(UnregisterWaitEx(r->handle, INVALID_HANDLE_VALUE));
    } else {
        check(UnregisterWaitEx(r->handle, done) || GetLastError() == ERROR_IO_PENDING);
        wait_event(done);
    }
}

/* Whatever the way to wait and to end, each release has its callback, or its count is still there. */
static void register_many(void *argument, unsigned index)
{
    static const ULONG flags[] = {0, WT_EXECUTEONLYONCE, WT_EXECUTEINWAITTHREAD, WT_EXECUTELONGFUNCTION};
    SEMAPHORE_BASIC_INFORMATION left;
    ULONG signals = 0;
    unsigned long rounds = test_rounds(800);
    HANDLE done = make_event(SynchronizationEvent);
    HANDLE semaphore;
    test_random random;
    (void)argument;
    random_seed(&random, index);
    check(NT_SUCCESS(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, MAXLONG)));
    for (unsigned long i = 0; i < rounds; i += 1) {
        registration r = {.semaphore = semaphore};
        check(RegisterWaitForSingleObject(&r.handle, semaphore, note, &r, random_below(&random, 2) ? 0 : INFINITE,
                                          flags[random_below(&random, ARRAYSIZE(flags))]));
        NtReleaseSemaphore(semaphore, 1, NULL);
        if (random_below(&random, 4) == 0) {
            pause_briefly();
        }
        end_registration(&r, done, random_below(&random, 2));
        r.over = 1;
        signals += r.signals;
    }
    check(NT_SUCCESS(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &left, sizeof(left), NULL)));
    check(signals + (ULONG)left.CurrentCount == rounds);
    NtClose(semaphore);
    NtClose(done);
}

static void test_waits(void **state)
{
    (void)state;
    run_threads(4, 120, register_many, NULL);
}

/* Mutexes: each callback owns the mutex, and it is free when all waits for it have ended. */
static HANDLE mutex;
static volatile ULONG owners;

static void own(PVOID context, BOOLEAN timed_out)
{
    check(!timed_out && add_one(&owners) == 1);
    add_one(context);
    subtract_one(&owners);
    check(ReleaseMutex(mutex));
}

static void register_mutex(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(150);
    HANDLE done = make_event(SynchronizationEvent);
    test_random random;
    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i += 1) {
        registration r = {.runs = 0};
        check(RegisterWaitForSingleObject(&r.handle, mutex, own, (PVOID)&r.runs, INFINITE,
                                          random_below(&random, 2) ? WT_EXECUTEONLYONCE : 0));
        if (random_below(&random, 2) == 0) {
            check(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
            check(add_one(&owners) == 1);
            subtract_one(&owners);
            check(ReleaseMutex(mutex));
        }
        end_registration(&r, done, random_below(&random, 2));
    }
    NtClose(done);
}

static void test_mutex(void **state)
{
    (void)state;
    mutex = CreateMutexW(NULL, FALSE, NULL);
    run_threads(3, 120, register_mutex, NULL);
    assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    assert_true(ReleaseMutex(mutex));
    NtClose(mutex);
}

/* Every release has its callback, whatever else is signaled at the same time. */
#define SHARED 64

static registration shared[SHARED];

static void release_all(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(100);
    (void)argument;
    (void)index;
    for (unsigned long i = 0; i < rounds; i += 1) {
        for (ULONG n = 0; n < SHARED; n += 1) {
            NtReleaseSemaphore(shared[n].semaphore, 1, NULL);
        }
    }
}

static void test_every_release(void **state)
{
    (void)state;
    for (ULONG n = 0; n < SHARED; n += 1) {
        shared[n] = (registration){.runs = 0};
        check(NT_SUCCESS(NtCreateSemaphore(&shared[n].semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, MAXLONG)));
        check(RegisterWaitForSingleObject(&shared[n].handle, shared[n].semaphore, note, &shared[n], INFINITE, 0));
    }
    run_threads(3, 120, release_all, NULL);
    for (ULONG n = 0; n < SHARED; n += 1) {
        await(count_of(&shared[n].runs) == 3 * test_rounds(100));
        check(UnregisterWaitEx(shared[n].handle, INVALID_HANDLE_VALUE));
        NtClose(shared[n].semaphore);
    }
}

static void delete_queues(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(300);
    HANDLE done = make_event(SynchronizationEvent);
    test_random random;
    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i += 1) {
        HANDLE queue = CreateTimerQueue();
        registration r[4];
        memset(r, 0, sizeof(r));
        for (ULONG n = 0; n < ARRAYSIZE(r); n += 1) {
            check(CreateTimerQueueTimer(&r[n].handle, queue, note, &r[n], random_below(&random, 2), n % 2, 0));
        }
        check(ChangeTimerQueueTimer(queue, r[0].handle, 0, random_below(&random, 2)));
        check(DeleteTimerQueueTimer(queue, r[1].handle, INVALID_HANDLE_VALUE));
        r[1].over = 1;
        if (random_below(&random, 2)) {
            check(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
        } else {
            check(DeleteTimerQueueEx(queue, done) || GetLastError() == ERROR_IO_PENDING);
            wait_event(done);
        }
        for (ULONG n = 0; n < ARRAYSIZE(r); n += 1) {
            r[n].over = 1;
        }
    }
    NtClose(done);
}

static void test_timers(void **state)
{
    (void)state;
    run_threads(4, 120, delete_queues, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_mutex),
        cmocka_unit_test(test_every_release),
        cmocka_unit_test(test_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
