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
    await(has_expired(timer));
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

/* Callbacks of a member that was closed by itself are cancelled, and the cancel callback is not called for it. */
static void test_closed_member(void **state)
{
    members m;
    (void)state;
    prepare(&m);
    PTP_WORK work = CreateThreadpoolWork(run_work, NULL, &m.environment);
    SubmitThreadpoolWork(work);
    SubmitThreadpoolWork(work);
    CloseThreadpoolWork(work);
    CloseThreadpoolCleanupGroupMembers(m.group, TRUE, (PVOID)&cancelled);
    assert_int_equal(cancelled, 7);
    set_event(m.g.opened);
    assert_int_equal(count_of(&runs), 0);
    finish(&m);
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

/* A release that cancels, against a callback that runs. */

typedef struct busy {
    PTP_CLEANUP_GROUP group;
    TP_CALLBACK_ENVIRON environment;
    HANDLE entered;
    HANDLE opened;
    volatile ULONG *context; /* from malloc; the last user frees it */
    volatile ULONG over;
    volatile ULONG cancelled;
} busy;

static void prepare_busy(busy *b, PTP_CLEANUP_GROUP_CANCEL_CALLBACK cancel)
{
    *b = (busy){.entered = make_event(SynchronizationEvent), .opened = make_event(NotificationEvent)};
    b->group = CreateThreadpoolCleanupGroup();
    b->context = calloc(1, sizeof(*b->context));
    check(b->group != NULL && b->context != NULL);
    InitializeThreadpoolEnvironment(&b->environment);
    SetThreadpoolCallbackCleanupGroup(&b->environment, b->group, cancel);
}

static void *cancel_members(void *argument)
{
    busy *b = argument;
    __atomic_store_n(&releaser, KeGetCurrentThread(), __ATOMIC_RELEASE);
    CloseThreadpoolCleanupGroupMembers(b->group, TRUE, b);
    return NULL;
}

/* The callback has begun, and the releasing thread waits for it. */
static void start_cancelling(pthread_t *thread, busy *b)
{
    wait_event(b->entered);
    releaser = NULL;
    pthread_create(thread, NULL, cancel_members, b);
    await(is_releasing());
    assert_int_equal(count_of(&b->cancelled), 0);
}

static void finish_busy(busy *b, pthread_t thread)
{
    set_event(b->opened);
    pthread_join(thread, NULL);
    assert_int_equal(b->over, 1);
    CloseThreadpoolCleanupGroup(b->group);
    NtClose(b->entered);
    NtClose(b->opened);
}

static void stay(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    busy *b = context;
    (void)instance;
    (void)work;
    set_event(b->entered);
    wait_event(b->opened);
    pause_briefly();
    add_one(b->context);
    add_one(&b->over);
}

static void free_context(PVOID context, PVOID cleanup)
{
    busy *b = context;
    check(cleanup == b && b->over == 1 && *b->context == 1);
    free((void *)b->context);
    add_one(&b->cancelled);
}

/* The cancel callback may free what the callback uses. */
static void test_cancel_after_callback(void **state)
{
    pthread_t thread;
    busy b;
    (void)state;
    prepare_busy(&b, free_context);
    PTP_WORK work = CreateThreadpoolWork(stay, &b, &b.environment);
    SubmitThreadpoolWork(work);
    start_cancelling(&thread, &b);
    finish_busy(&b, thread);
    assert_int_equal(b.cancelled, 1);
}

static void close_and_free(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    busy *b = context;
    stay(instance, context, work);
    CloseThreadpoolWork(work);
    free((void *)b->context);
}

/* A member that its callback closes is not cancelled, even if the release has begun before. */
static void test_member_closes_itself(void **state)
{
    pthread_t thread;
    busy b;
    (void)state;
    prepare_busy(&b, free_context);
    SubmitThreadpoolWork(CreateThreadpoolWork(close_and_free, &b, &b.environment));
    start_cancelling(&thread, &b);
    finish_busy(&b, thread);
    assert_int_equal(b.cancelled, 0);
}

static void leave_and_stay(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    DisassociateCurrentThreadFromCallback(instance);
    stay(instance, context, work);
}

/* A thread that waits for the object does not wait for a callback that has disassociated itself. A release does. */
static void test_disassociated(void **state)
{
    pthread_t thread;
    busy b;
    (void)state;
    prepare_busy(&b, free_context);
    PTP_WORK work = CreateThreadpoolWork(leave_and_stay, &b, &b.environment);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    start_cancelling(&thread, &b);
    finish_busy(&b, thread);
    assert_int_equal(b.cancelled, 1);
}

/* So does it if the program has closed the object meanwhile: the object lives as long as the callback. */
static void test_disassociated_and_closed(void **state)
{
    volatile ULONG gone;
    pthread_t thread;
    busy b;
    (void)state;
    prepare_busy(&b, free_context);
    PTP_WORK work = CreateThreadpoolWork(leave_and_stay, &b, &b.environment);
    watch_object(&work->Object, &gone);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    start_cancelling(&thread, &b);
    assert_int_equal(count_of(&gone), 0);
    finish_busy(&b, thread);
    assert_int_equal(b.cancelled, 0);
    assert_int_equal(gone, 1);
    free((void *)b.context);
}

/* Each release calls the cancel callbacks of its own members, with its own parameter. */
static void test_two_releases(void **state)
{
    static busy late;
    pthread_t thread;
    busy b;
    (void)state;
    prepare_busy(&b, free_context);
    late = (busy){.context = calloc(1, sizeof(*late.context)), .over = 1};
    *late.context = 1;
    SubmitThreadpoolWork(CreateThreadpoolWork(stay, &b, &b.environment));
    start_cancelling(&thread, &b);
    assert_non_null(CreateThreadpoolWork(stay, &late, &b.environment));
    pthread_t opener;
    pthread_create(&opener, NULL, open_later, b.opened);
    CloseThreadpoolCleanupGroupMembers(b.group, TRUE, &late);
    assert_int_equal(late.cancelled, 1);
    pthread_join(opener, NULL);
    finish_busy(&b, thread);
    assert_int_equal(b.cancelled, 1);
}

static void end_thread(PVOID context, PVOID cleanup)
{
    (void)cleanup;
    add_one(context);
    ExitThread(0);
}

static DWORD cancel_and_end(PVOID group)
{
    CloseThreadpoolCleanupGroupMembers(group, TRUE, NULL);
    return 1;
}

/* The members are freed although their cancel callbacks were not called. */
static void test_thread_ends_in_cancel_callback(void **state)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    volatile ULONG calls = 0;
    volatile ULONG gone[3];
    (void)state;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, end_thread);
    for (ULONG i = 0; i < ARRAYSIZE(gone); i += 1) {
        watch_object(&CreateThreadpoolWork(run_work, (PVOID)&calls, &environment)->Object, &gone[i]);
    }
    HANDLE thread = CreateThread(NULL, 0, cancel_and_end, group, 0, NULL);
    wait_event(thread);
    assert_int_equal(calls, 1);
    CloseThreadpoolCleanupGroupMembers(group, TRUE, NULL);
    assert_int_equal(calls, 1);
    for (ULONG i = 0; i < ARRAYSIZE(gone); i += 1) {
        assert_int_equal(gone[i], 1);
    }
    CloseThreadpoolCleanupGroup(group);
    NtClose(thread);
}

static void fork_once(PVOID context, PVOID cleanup)
{
    (void)context;
    if (add_one(&cancelled) == 1) {
        *(pid_t *)cleanup = fork();
    }
}

/* The rest of the cancel callbacks are called in the child as well. */
static void test_fork_in_cancel_callback(void **state)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    pid_t child;
    int status;
    (void)state;
    cancelled = 0;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, fork_once);
    for (int i = 0; i < 3; i += 1) {
        assert_non_null(CreateThreadpoolWork(run_work, NULL, &environment));
    }
    CloseThreadpoolCleanupGroupMembers(group, TRUE, &child);
    if (child == 0) {
        _exit(cancelled == 3 ? 0 : 1);
    }
    assert_int_equal(cancelled, 3);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    CloseThreadpoolCleanupGroup(group);
}

static BOOLEAN call_left_ones(void *group)
{
    CloseThreadpoolCleanupGroupMembers(group, TRUE, NULL);
    return cancelled == 3;
}

static void block_in_first(PVOID context, PVOID cleanup)
{
    (void)cleanup;
    if (add_one(&cancelled) == 1) {
        gate *g = context;
        set_event(g->entered);
        wait_event(g->opened);
    }
}

static DWORD cancel_in_thread(PVOID group)
{
    CloseThreadpoolCleanupGroupMembers(group, TRUE, NULL);
    return 0;
}

/* The releasing thread stayed in the parent, inside a cancel callback: the child calls the remaining callbacks. */
static void test_fork_beside_cancel_callback(void **state)
{
    gate g = {.entered = make_event(SynchronizationEvent), .opened = make_event(NotificationEvent)};
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    cancelled = 0;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, block_in_first);
    for (int i = 0; i < 3; i += 1) {
        assert_non_null(CreateThreadpoolWork(run_work, &g, &environment));
    }
    HANDLE thread = CreateThread(NULL, 0, cancel_in_thread, group, 0, NULL);
    wait_event(g.entered);
    assert_int_equal(in_child(call_left_ones, group), 0);
    set_event(g.opened);
    wait_event(thread);
    assert_int_equal(cancelled, 3);
    CloseThreadpoolCleanupGroup(group);
    NtClose(thread);
    NtClose(g.entered);
    NtClose(g.opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_cancel),
        WATCHED(test_no_cancel),
        WATCHED(test_running),
        WATCHED(test_member_leaves),
        WATCHED(test_closed_member),
        WATCHED(test_group_closed_first),
        WATCHED(test_fork),
        WATCHED(test_member_joins),
        WATCHED(test_fork_while_releasing),
        WATCHED(test_cancel_after_callback),
        WATCHED(test_member_closes_itself),
        WATCHED(test_disassociated),
        WATCHED(test_disassociated_and_closed),
        WATCHED(test_two_releases),
        WATCHED(test_thread_ends_in_cancel_callback),
        WATCHED(test_fork_in_cancel_callback),
        WATCHED(test_fork_beside_cancel_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
