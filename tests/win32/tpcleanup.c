/* Cleanup groups, and the lifetime of a pool. */
#include "tptest.h"

static volatile ULONG runs;
static volatile ULONG cancelled;

static void run_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    add_one(&runs);
}

static void run_timer(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)context;
    (void)timer;
    add_one(&runs);
}

static void run_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)context;
    (void)wait;
    (void)result;
    add_one(&runs);
}

static void run_simple(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    (void)context;
    add_one(&runs);
}

static void on_cancel(PVOID context, PVOID cleanup)
{
    check(cleanup == &cancelled);
    check(context == &runs);
    add_one(&cancelled);
}

typedef struct members {
    PTP_POOL pool;
    PTP_CLEANUP_GROUP group;
    TP_CALLBACK_ENVIRON environment;
    gate g;
    HANDLE event;
} members;

/* Seven members: a work object with three pending callbacks, one without, an expired and a set timer, a signaled and a
   waiting wait, and a simple callback; the only thread of the pool is in the gate. */
static void prepare(members *m)
{
    FILETIME due;
    runs = 0;
    cancelled = 0;
    m->pool = make_pool(1, &m->environment);
    m->group = CreateThreadpoolCleanupGroup();
    assert_non_null(m->group);
    m->event = make_event(SynchronizationEvent);
    gate_block(&m->g, &m->environment);
    SetThreadpoolCallbackCleanupGroup(&m->environment, m->group, on_cancel);
    PTP_WORK work = CreateThreadpoolWork(run_work, (PVOID)&runs, &m->environment);
    for (int i = 0; i < 3; i += 1) {
        SubmitThreadpoolWork(work);
    }
    assert_non_null(CreateThreadpoolWork(run_work, (PVOID)&runs, &m->environment));
    PTP_TIMER timer = CreateThreadpoolTimer(run_timer, (PVOID)&runs, &m->environment);
    SetThreadpoolTimer(timer, in_milliseconds(0, &due), 0, 0);
    await(!IsThreadpoolTimerSet(timer));
    timer = CreateThreadpoolTimer(run_timer, (PVOID)&runs, &m->environment);
    SetThreadpoolTimer(timer, in_milliseconds(3600000, &due), 100, 0);
    PTP_WAIT wait = CreateThreadpoolWait(run_wait, (PVOID)&runs, &m->environment);
    SetThreadpoolWait(wait, m->event, NULL);
    set_event(m->event);
    wait = CreateThreadpoolWait(run_wait, (PVOID)&runs, &m->environment);
    SetThreadpoolWait(wait, m->event, NULL);
    assert_true(TrySubmitThreadpoolCallback(run_simple, (PVOID)&runs, &m->environment));
}

static void finish(members *m)
{
    CloseThreadpoolCleanupGroup(m->group);
    CloseThreadpool(m->pool);
    gate_close(&m->g);
    NtClose(m->event);
}

/* The thread is blocked throughout: cancelling does not need it. */
static void test_cancel(void **state)
{
    members m;
    (void)state;
    prepare(&m);
    CloseThreadpoolCleanupGroupMembers(m.group, TRUE, (PVOID)&cancelled);
    assert_int_equal(cancelled, 7);
    set_event(m.event);
    assert_true(is_set(m.event));
    set_event(m.g.opened);
    assert_int_equal(count_of(&runs), 0);
    finish(&m);
}

static void *open_later(void *argument)
{
    pause_briefly();
    set_event(argument);
    return NULL;
}

static void test_no_cancel(void **state)
{
    members m;
    pthread_t thread;
    (void)state;
    prepare(&m);
    pthread_create(&thread, NULL, open_later, m.g.opened);
    CloseThreadpoolCleanupGroupMembers(m.group, FALSE, (PVOID)&cancelled);
    assert_int_equal(count_of(&runs), 3 + 1 + 1 + 1);
    assert_int_equal(cancelled, 0);
    pthread_join(thread, NULL);
    finish(&m);
}

/* A release waits for a running callback; and a group may be reused. */
static void slow(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    set_event(context);
    for (int i = 0; i < 50; i += 1) {
        pause_briefly();
    }
    add_one(&runs);
}

static void test_running(void **state)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, on_cancel);
    cancelled = 0;
    for (ULONG i = 1; i <= 5; i += 1) {
        runs = 0;
        assert_true(TrySubmitThreadpoolCallback(slow, event, &environment));
        wait_event(event);
        CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&cancelled);
        assert_int_equal(count_of(&runs), 1);
        assert_int_equal(cancelled, 0);
    }
    CloseThreadpoolCleanupGroupMembers(group, TRUE, NULL);
    CloseThreadpoolCleanupGroup(group);
    NtClose(event);
}

/* A member that is closed by itself leaves the group. */
static void test_member_leaves(void **state)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, on_cancel);
    cancelled = 0;
    for (int i = 0; i < 10; i += 1) {
        PTP_WORK work = CreateThreadpoolWork(run_work, NULL, &environment);
        SubmitThreadpoolWork(work);
        CloseThreadpoolWork(work);
    }
    CloseThreadpoolCleanupGroupMembers(group, FALSE, NULL);
    PTP_WORK work = CreateThreadpoolWork(run_work, NULL, &environment);
    CloseThreadpoolWork(work);
    CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&cancelled);
    assert_int_equal(cancelled, 0);
    CloseThreadpoolCleanupGroup(group);
}

/* A group that is closed before its members is freed with the last one. */
static void test_group_closed_first(void **state)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, on_cancel);
    PTP_WORK work = CreateThreadpoolWork(run_work, NULL, &environment);
    CloseThreadpoolCleanupGroup(group);
    CloseThreadpoolWork(work);
}

static BOOLEAN release_in_child(void *argument)
{
    members *m = argument;
    CloseThreadpoolCleanupGroupMembers(m->group, TRUE, (PVOID)&cancelled);
    return cancelled == 7 && runs == 0;
}

static void test_fork(void **state)
{
    members m;
    (void)state;
    prepare(&m);
    assert_int_equal(in_child(release_in_child, &m), 0);
    CloseThreadpoolCleanupGroupMembers(m.group, TRUE, (PVOID)&cancelled);
    set_event(m.g.opened);
    finish(&m);
}

/* Both while another thread releases the members, and waits for them. */

static volatile PKTHREAD releaser;

static BOOLEAN is_releasing(void)
{
    PKTHREAD thread = __atomic_load_n(&releaser, __ATOMIC_ACQUIRE);
    return thread != NULL && is_committed(thread);
}

static void *release_members(void *argument)
{
    __atomic_store_n(&releaser, KeGetCurrentThread(), __ATOMIC_RELEASE);
    CloseThreadpoolCleanupGroupMembers(argument, FALSE, (PVOID)&cancelled);
    return NULL;
}

static void start_releasing(pthread_t *thread, members *m)
{
    releaser = NULL;
    pthread_create(thread, NULL, release_members, m->group);
    await(is_releasing());
}

/* A release does not wait for a member that joins too late. */
static void test_member_joins(void **state)
{
    members m;
    pthread_t thread;
    (void)state;
    prepare(&m);
    start_releasing(&thread, &m);
    PTP_WORK late = CreateThreadpoolWork(run_work, (PVOID)&runs, &m.environment);
    set_event(m.g.opened);
    pthread_join(thread, NULL);
    assert_int_equal(count_of(&runs), 3 + 1 + 1 + 1);
    CloseThreadpoolWork(late);
    finish(&m);
}

/* The releasing thread stayed behind: the child releases the remaining members, those with pending callbacks. */
static BOOLEAN release_rest_in_child(void *argument)
{
    members *m = argument;
    CloseThreadpoolCleanupGroupMembers(m->group, TRUE, (PVOID)&cancelled);
    return cancelled == 4 && runs == 0;
}

static void test_fork_while_releasing(void **state)
{
    members m;
    pthread_t thread;
    (void)state;
    prepare(&m);
    start_releasing(&thread, &m);
    assert_int_equal(in_child(release_rest_in_child, &m), 0);
    set_event(m.g.opened);
    pthread_join(thread, NULL);
    assert_int_equal(count_of(&runs), 3 + 1 + 1 + 1);
    finish(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_cancel),        WATCHED(test_no_cancel),          WATCHED(test_running),
        WATCHED(test_member_leaves), WATCHED(test_group_closed_first), WATCHED(test_fork),
        WATCHED(test_member_joins),  WATCHED(test_fork_while_releasing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
