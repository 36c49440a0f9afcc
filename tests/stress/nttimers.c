/*
 * Timers with APCs that several threads set, take over, cancel and close, while some of them exit. Every APC runs on
 * the thread that set the timer, none after its timer was taken over, and nothing leaks.
 */
#include "../nt/objecttest.h"

#include <interlock/ps.h>

enum { THREADS = 4, TIMERS = 3 };

static HANDLE timers[TIMERS];
static volatile LONG calls;

struct setter {
    HANDLE thread;
    int inside;
};

static void count_call(PVOID context, ULONG low, LONG high)
{
    struct setter *setter = context;

    assert_ptr_equal(setter->thread, PsGetCurrentThreadId());
    assert_true(setter->inside);
    assert_true(low != 0 || high != 0);
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

static void act(struct setter *setter, test_random *random)
{
    HANDLE timer = timers[random_below(random, TIMERS)];
    LARGE_INTEGER due = {.QuadPart = random_below(random, 2) ? 1 : -(LONGLONG)random_below(random, 3000)};
    LARGE_INTEGER pause = {.QuadPart = -(LONGLONG)random_below(random, 2000)};
    NTSTATUS status;

    switch (random_below(random, 4)) {
    case 0:
        assert_int_equal(NtCancelTimer(timer, NULL), STATUS_SUCCESS);
        break;
    case 1:
        setter->inside = 1;
        status = NtDelayExecution(TRUE, &pause);
        setter->inside = 0;
        assert_true(status == STATUS_SUCCESS || status == STATUS_USER_APC);
        break;
    default:
        assert_int_equal(NtSetTimer(timer, &due, count_call, setter, FALSE, (LONG)random_below(random, 2), NULL), 0);
        break;
    }
}

static void set_cancel_and_wait(void *argument, unsigned index)
{
    struct setter setter = {PsGetCurrentThreadId(), 0};
    unsigned long rounds = test_rounds(1500);
    test_random random;

    random_seed(&random, (uintptr_t)argument * THREADS + index);
    for (unsigned long i = 0; i < rounds; i++)
        act(&setter, &random);
}

static void timers_of_everybody(void **state)
{
    ULONG objects = objects_of("Timer");

    (void)state;
    for (uintptr_t crew = 1; crew <= 3; crew++) {
        for (int i = 0; i < TIMERS; i++)
            assert_int_equal(NtCreateTimer(&timers[i], TIMER_ALL_ACCESS, NULL, (TIMER_TYPE)(i % 2)), STATUS_SUCCESS);
        run_threads(THREADS, 300, set_cancel_and_wait, (void *)crew);
        for (int i = 0; i < TIMERS; i++) {
            TIMER_BASIC_INFORMATION information;

            assert_int_equal(NtQueryTimer(timers[i], TimerBasicInformation, &information, sizeof(information), NULL), 0);
            assert_int_equal(information.RemainingTime.QuadPart, 0); /* all threads that set one have exited */
            close_handle(timers[i]);
        }
        assert_int_equal(objects_of("Timer"), objects);
    }
    assert_true(calls > 0);
}

/* The handle is closed while the timer is armed; the thread that armed it gets the APC, or exits. */
static void set_and_forget(void *argument, unsigned index)
{
    struct setter setter = {PsGetCurrentThreadId(), 0};
    unsigned long rounds = test_rounds(1500);
    test_random random;

    (void)argument;
    random_seed(&random, index + 50);
    for (unsigned long i = 0; i < rounds; i++) {
        LARGE_INTEGER due = {.QuadPart = -(LONGLONG)random_below(&random, 500)};
        LARGE_INTEGER pause = {.QuadPart = -200};
        HANDLE timer;

        assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, NotificationTimer), STATUS_SUCCESS);
        assert_int_equal(NtSetTimer(timer, &due, count_call, &setter, FALSE, 0, NULL), STATUS_SUCCESS);
        close_handle(timer);
        setter.inside = 1;
        if (random_below(&random, 2))
            NtDelayExecution(TRUE, &pause);
        setter.inside = 0;
    }
}

static void handles_go_before_their_timers(void **state)
{
    ULONG objects = objects_of("Timer");

    (void)state;
    run_threads(THREADS, 300, set_and_forget, NULL);
    assert_int_equal(objects_of("Timer"), objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_of_everybody),
        cmocka_unit_test(handles_go_before_their_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
