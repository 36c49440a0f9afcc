/* Timers that are set, expire, and are cancelled and closed at the same time. */
#include "../win32/tptest.h"

typedef struct contested {
    PTP_TIMER timer;
    volatile ULONG runs;
    volatile ULONG forbidden; /* no callback may begin */
} contested;

static void tick(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    contested *c = context;
    (void)instance;
    (void)timer;
    check(!count_of(&c->forbidden));
    add_one(&c->runs);
}

/* After the timer is reset and a cancelling wait, no callback runs or begins. */
static void cancel_many(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(1500);
    contested c = {.runs = 0};
    test_random random;
    FILETIME due;
    (void)argument;
    random_seed(&random, index);
    c.timer = CreateThreadpoolTimer(tick, &c, NULL);
    for (unsigned long i = 0; i < rounds; i += 1) {
        SetThreadpoolTimer(c.timer, in_milliseconds(random_below(&random, 2), &due), random_below(&random, 2), 0);
        if (random_below(&random, 2)) {
            pause_briefly();
        }
        if (random_below(&random, 4) == 0) {
            WaitForThreadpoolTimerCallbacks(c.timer, random_below(&random, 2) != 0);
        }
        SetThreadpoolTimer(c.timer, NULL, 0, 0);
        WaitForThreadpoolTimerCallbacks(c.timer, TRUE);
        c.forbidden = 1;
        if (random_below(&random, 8) == 0) {
            pause_briefly();
        }
        c.forbidden = 0;
    }
    CloseThreadpoolTimer(c.timer);
}

static void test_cancel(void **state)
{
    (void)state;
    run_threads(4, 120, cancel_many, NULL);
}

/* Every expiration of a one-shot timer is one callback: either the next setting cancels it, or it runs. */
static void account(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(3000);
    contested c = {.runs = 0};
    ULONG cancelled = 0;
    FILETIME due;
    (void)argument;
    (void)index;
    c.timer = CreateThreadpoolTimer(tick, &c, NULL);
    for (unsigned long i = 0; i < rounds; i += 1) {
        cancelled += (ULONG)SetThreadpoolTimerEx(c.timer, in_milliseconds(0, &due), 0, 0);
        if (i % 8 == 0) {
            pause_briefly();
        }
    }
    cancelled += (ULONG)SetThreadpoolTimerEx(c.timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(c.timer, FALSE);
    check(c.runs + cancelled == rounds);
    CloseThreadpoolTimer(c.timer);
}

static void test_account(void **state)
{
    (void)state;
    run_threads(3, 120, account, NULL);
}

/* Several threads set the same timer; it is closed while it is due. */
static void set_shared(void *argument, unsigned index)
{
    contested *c = argument;
    unsigned long rounds = test_rounds(2000);
    FILETIME due;
    for (unsigned long i = 0; i < rounds; i += 1) {
        SetThreadpoolTimer(c->timer, (i + index) % 3 ? in_milliseconds(0, &due) : NULL, i % 2, 0);
        IsThreadpoolTimerSet(c->timer);
    }
}

static void close_soon(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    CloseThreadpoolTimer(timer);
    subtract_one(context);
}

static void test_shared(void **state)
{
    contested c = {.runs = 0};
    volatile ULONG alive = 0;
    volatile ULONG gone;
    FILETIME due;
    (void)state;
    c.timer = CreateThreadpoolTimer(tick, &c, NULL);
    watch_object(&c.timer->Object, &gone);
    run_threads(4, 120, set_shared, &c);
    SetThreadpoolTimer(c.timer, in_milliseconds(0, &due), 1, 0);
    CloseThreadpoolTimer(c.timer);
    for (unsigned long i = test_rounds(500); i > 0; i -= 1) {
        add_one(&alive);
        PTP_TIMER timer = CreateThreadpoolTimer(close_soon, (PVOID)&alive, NULL);
        SetThreadpoolTimer(timer, in_milliseconds(0, &due), 0, 0);
    }
    await(count_of(&alive) == 0);
    await(count_of(&gone) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
