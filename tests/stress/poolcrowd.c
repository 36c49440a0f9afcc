/*
 * Many at once: hundreds of registered waits, a thousand timers. Some are cancelled at the moment they fire: each
 * either runs its callback or was cancelled, and no callback runs after the end.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/nt.h>

#define WAITS 512
#define TIMERS 1000
#define CANCELLERS 3

static ULONG handle_count(void)
{
    ULONG count = 0;

    require(NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL) == 0);
    return count;
}

/* 512 waits, each for its own semaphore. A released count is taken by a callback, or remains when the wait has ended;
   but ending a wait cancels a callback that has not begun, and the count that it took is gone with it. */

static struct {
    HANDLE semaphore, wait;
    volatile LONG ran, released, over;
} waits[WAITS];

static VOID CALLBACK semaphore_taken(PVOID context, BOOLEAN timed_out)
{
    size_t n = (size_t)context;

    require(!timed_out && !load(&waits[n].over));
    InterlockedIncrement(&waits[n].ran);
}

static void release_or_unregister(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;
    test_random random;

    random_seed(&random, index);
    if (index != 0) {
        for (unsigned long i = 0; i < rounds * WAITS; i++) {
            size_t n = random_below(&random, WAITS);

            InterlockedIncrement(&waits[n].released);
            require(ReleaseSemaphore(waits[n].semaphore, 1, NULL));
        }
        return;
    }
    for (size_t n = 0; n < WAITS; n++) {
        require(UnregisterWaitEx(waits[n].wait, INVALID_HANDLE_VALUE));
        store(&waits[n].over, 1);
        if (n % 16 == 0)
            sched_yield();
    }
}

static LONG left_in(HANDLE semaphore)
{
    SEMAPHORE_BASIC_INFORMATION information;

    require(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL) == 0);
    return information.CurrentCount;
}

static void hundreds_of_registered_waits(void **state)
{
    unsigned long rounds = test_rounds(40);
    ULONG handles = handle_count();

    (void)state;
    for (size_t n = 0; n < WAITS; n++) {
        waits[n].semaphore = CreateSemaphoreA(NULL, 0, MAXLONG, NULL);
        assert_true(RegisterWaitForSingleObject(&waits[n].wait, waits[n].semaphore, semaphore_taken, (PVOID)n, INFINITE,
                                                n % 4 == 0 ? WT_EXECUTEINWAITTHREAD : WT_EXECUTEDEFAULT));
    }
    run_threads(4, HANG_SECONDS, release_or_unregister, &rounds);
    for (size_t n = 0; n < WAITS; n++) {
        LONG gone = waits[n].released - waits[n].ran - left_in(waits[n].semaphore);

        assert_in_range(gone, 0, 1);
        assert_true(CloseHandle(waits[n].semaphore));
    }
    assert_int_equal(handle_count(), handles);
}

/* 1000 timers due within a few ms, and threads that cancel them at about that time. */

static struct {
    PTP_TIMER timer;
    volatile LONG ran;
    LONG cancelled;
    volatile LONG over;
} timers[TIMERS];

static VOID CALLBACK timer_expired(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    size_t n = (size_t)context;

    (void)instance;
    require(timer == timers[n].timer && !load(&timers[n].over));
    InterlockedIncrement(&timers[n].ran);
}

static FILETIME due_in(LONGLONG microseconds)
{
    LARGE_INTEGER due = in_microseconds(microseconds);

    return (FILETIME){due.LowPart, (DWORD)due.HighPart};
}

/* Each canceller has its own part of the timers, in its own order. */
static void cancel_some(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 5);
    for (size_t n = index; n < TIMERS; n += CANCELLERS) {
        if (random_below(&random, 2) != 0)
            timers[n].cancelled = SetThreadpoolTimerEx(timers[n].timer, NULL, 0, 0);
        if (random_below(&random, 32) == 0)
            Sleep(1);
        WaitForThreadpoolTimerCallbacks(timers[n].timer, FALSE);
    }
}

static int all_are_accounted_for(void)
{
    for (size_t n = 0; n < TIMERS; n++)
        if (load(&timers[n].ran) + timers[n].cancelled == 0)
            return 0;
    return 1;
}

static void a_thousand_timers(void **state)
{
    test_random random;

    (void)state;
    random_seed(&random, 1);
    for (size_t n = 0; n < TIMERS; n++) {
        timers[n].timer = CreateThreadpoolTimer(timer_expired, (PVOID)n, NULL);
        assert_non_null(timers[n].timer);
    }
    for (unsigned long i = test_rounds(100); i > 0; i--) {
        for (size_t n = 0; n < TIMERS; n++) {
            FILETIME due = due_in(random_below(&random, 3000));

            timers[n].ran = 0;
            timers[n].cancelled = 0;
            SetThreadpoolTimer(timers[n].timer, &due, 0, n % 3 == 0 ? 2 : 0);
        }
        run_threads(CANCELLERS, HANG_SECONDS, cancel_some, NULL);
        await(all_are_accounted_for());
        for (size_t n = 0; n < TIMERS; n++)
            assert_int_equal(timers[n].ran + timers[n].cancelled, 1);
    }
    for (size_t n = 0; n < TIMERS; n++) {
        WaitForThreadpoolTimerCallbacks(timers[n].timer, TRUE);
        store(&timers[n].over, 1);
        CloseThreadpoolTimer(timers[n].timer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hundreds_of_registered_waits),
        cmocka_unit_test(a_thousand_timers),
    };

    return cmocka_run_group_tests_name("stress/poolcrowd", tests, NULL, NULL);
}
