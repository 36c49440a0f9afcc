/* Work objects under load: no callback is lost or runs after it was cancelled; groups and pools end while others work.
   */
#include "../win32/tptest.h"

typedef struct shared_work {
    PTP_WORK work;
    volatile ULONG submitted;
    volatile ULONG run;
    volatile ULONG forbidden; /* no callback may begin */
} shared_work;

static void count(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    shared_work *s = context;
    (void)instance;
    (void)work;
    check(!count_of(&s->forbidden));
    add_one(&s->run);
}

static void submit_many(void *argument, unsigned index)
{
    shared_work *s = argument;
    unsigned long rounds = test_rounds(4000);
    (void)index;
    for (unsigned long i = 0; i < rounds; i += 1) {
        SubmitThreadpoolWork(s->work);
        add_one(&s->submitted);
        if (i % 64 == 0) {
            WaitForThreadpoolWorkCallbacks(s->work, FALSE);
        }
    }
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    for (int priority = TP_CALLBACK_PRIORITY_HIGH; priority <= TP_CALLBACK_PRIORITY_LOW; priority += 1) {
        TP_CALLBACK_ENVIRON environment;
        PTP_POOL pool = make_pool(8, &environment);
        shared_work s = {.run = 0};
        SetThreadpoolCallbackPriority(&environment, (TP_CALLBACK_PRIORITY)priority);
        s.work = CreateThreadpoolWork(count, &s, &environment);
        run_threads(4, 120, submit_many, &s);
        WaitForThreadpoolWorkCallbacks(s.work, FALSE);
        assert_int_equal(s.run, s.submitted);
        CloseThreadpoolWork(s.work);
        CloseThreadpool(pool);
    }
}

/* After a cancelling wait no callback runs or begins until the next submission. */
static void cancel_many(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(3000);
    shared_work s = {.run = 0};
    test_random random;
    (void)argument;
    random_seed(&random, index);
    s.work = CreateThreadpoolWork(count, &s, NULL);
    for (unsigned long i = 0; i < rounds; i += 1) {
        for (uint32_t n = random_below(&random, 4); n > 0; n -= 1) {
            SubmitThreadpoolWork(s.work);
        }
        if (random_below(&random, 2)) {
            pause_briefly();
        }
        WaitForThreadpoolWorkCallbacks(s.work, TRUE);
        s.forbidden = 1;
        if (random_below(&random, 8) == 0) {
            pause_briefly();
        }
        s.forbidden = 0;
    }
    WaitForThreadpoolWorkCallbacks(s.work, TRUE);
    CloseThreadpoolWork(s.work);
}

static void test_cancel(void **state)
{
    (void)state;
    run_threads(4, 120, cancel_many, NULL);
}

/* Objects that close themselves, in pools that are closed before them. */
typedef struct counted {
    volatile ULONG alive;
} counted;

static void close_itself(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    counted *c = context;
    (void)instance;
    CloseThreadpoolWork(work);
    subtract_one(&c->alive);
}

static void close_pools(void *argument, unsigned index)
{
    counted *c = argument;
    unsigned long rounds = test_rounds(200);
    (void)index;
    for (unsigned long i = 0; i < rounds; i += 1) {
        TP_CALLBACK_ENVIRON environment;
        PTP_POOL pool = make_pool(1 + i % 3, &environment);
        for (ULONG n = 0; n < 4; n += 1) {
            add_one(&c->alive);
            SubmitThreadpoolWork(CreateThreadpoolWork(close_itself, c, &environment));
        }
        CloseThreadpool(pool);
    }
}

static void test_pools_come_and_go(void **state)
{
    counted c = {.alive = 0};
    (void)state;
    run_threads(3, 120, close_pools, &c);
    await(count_of(&c.alive) == 0);
}

/* A group is released while its members work, expire and are signaled. */
typedef struct group_round {
    volatile ULONG over; /* no callback may begin or end */
    HANDLE event;
} group_round;

static void work_in_group(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    check(!count_of(&((group_round *)context)->over));
}

static void simple_in_group(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    check(!count_of(&((group_round *)context)->over));
}

static void timer_in_group(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)timer;
    check(!count_of(&((group_round *)context)->over));
}

static void wait_in_group(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    group_round *g = context;
    (void)instance;
    (void)result;
    check(!count_of(&g->over));
    SetThreadpoolWait(wait, g->event, NULL);
}

static void fill_group(group_round *g, PTP_CALLBACK_ENVIRON environment)
{
    FILETIME due;
    for (ULONG i = 0; i < 4; i += 1) {
        PTP_WORK work = CreateThreadpoolWork(work_in_group, g, environment);
        PTP_TIMER timer = CreateThreadpoolTimer(timer_in_group, g, environment);
        PTP_WAIT wait = CreateThreadpoolWait(wait_in_group, g, environment);
        SubmitThreadpoolWork(work);
        SubmitThreadpoolWork(work);
        SetThreadpoolTimer(timer, in_milliseconds(0, &due), i % 2, 0);
        SetThreadpoolWait(wait, g->event, i % 2 ? in_milliseconds(0, &due) : NULL);
        set_event(g->event);
        check(TrySubmitThreadpoolCallback(simple_in_group, g, environment));
        if (i % 2) {
            CloseThreadpoolWork(work);
        }
    }
}

static void empty_groups(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(200);
    (void)argument;
    for (unsigned long i = 0; i < rounds; i += 1) {
        group_round g = {.over = 0, .event = make_event(SynchronizationEvent)};
        PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
        TP_CALLBACK_ENVIRON environment;
        InitializeThreadpoolEnvironment(&environment);
        SetThreadpoolCallbackCleanupGroup(&environment, group, NULL);
        fill_group(&g, &environment);
        CloseThreadpoolCleanupGroupMembers(group, (i + index) % 2 == 0, NULL);
        g.over = 1;
        CloseThreadpoolCleanupGroup(group);
        NtClose(g.event);
    }
}

static void test_groups(void **state)
{
    (void)state;
    run_threads(3, 120, empty_groups, NULL);
}

/* Forks under load: the pools work in the child. */
static BOOLEAN work_in_child(void *argument)
{
    shared_work *s = argument;
    WaitForThreadpoolWorkCallbacks(s->work, TRUE);
    ULONG run = count_of(&s->run);
    SubmitThreadpoolWork(s->work);
    WaitForThreadpoolWorkCallbacks(s->work, FALSE);
    return count_of(&s->run) == run + 1;
}

static void fork_many(void *argument, unsigned index)
{
    shared_work *s = argument;
    if (index != 0) {
        submit_many(s, index);
        return;
    }
    for (unsigned long i = test_rounds(20); i > 0; i -= 1) {
        check(in_child(work_in_child, s) == 0);
    }
}

static void test_fork(void **state)
{
    shared_work s = {.run = 0};
    (void)state;
    s.work = CreateThreadpoolWork(count, &s, NULL);
    run_threads(3, 120, fork_many, &s);
    WaitForThreadpoolWorkCallbacks(s.work, FALSE);
    assert_int_equal(s.run, s.submitted);
    CloseThreadpoolWork(s.work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost), cmocka_unit_test(test_cancel), cmocka_unit_test(test_pools_come_and_go),
        cmocka_unit_test(test_groups),          cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
