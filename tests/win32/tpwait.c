/* Waits of the thread pool. */
#include "tptest.h"

#define WAITS 512

typedef struct watched {
    HANDLE event; /* the object to wait for */
    HANDLE ran;
    volatile ULONG runs;
    volatile ULONG result;
    PTP_WAIT wait;
} watched;

static void note(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    watched *w = context;
    check(instance != NULL && wait == w->wait);
    w->result = result;
    add_one(&w->runs);
    set_event(w->ran);
}

static void prepare(watched *w, EVENT_TYPE type, PTP_CALLBACK_ENVIRON environment)
{
    w->event = make_event(type);
    w->ran = make_event(SynchronizationEvent);
    w->runs = 0;
    w->wait = CreateThreadpoolWait(note, w, environment);
    check(w->wait != NULL);
}

static void finish(watched *w)
{
    SetThreadpoolWait(w->wait, NULL, NULL);
    WaitForThreadpoolWaitCallbacks(w->wait, TRUE);
    CloseThreadpoolWait(w->wait);
    NtClose(w->event);
    NtClose(w->ran);
}

static void expect_callback(watched *w, ULONG result, ULONG runs)
{
    wait_event(w->ran);
    WaitForThreadpoolWaitCallbacks(w->wait, FALSE);
    assert_int_equal(w->result, result);
    assert_int_equal(w->runs, runs);
}

static void test_signal(void **state)
{
    watched w;
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    SetThreadpoolWait(w.wait, w.event, NULL);
    WaitForThreadpoolWaitCallbacks(w.wait, FALSE);
    assert_int_equal(w.runs, 0);
    set_event(w.event);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    assert_false(is_set(w.event));
    /* once: the next signal stays */
    set_event(w.event);
    WaitForThreadpoolWaitCallbacks(w.wait, FALSE);
    assert_int_equal(w.runs, 1);
    assert_true(is_set(w.event));
    SetThreadpoolWait(w.wait, w.event, NULL);
    expect_callback(&w, WAIT_OBJECT_0, 2);
    finish(&w);
}

static void test_timeout(void **state)
{
    watched w;
    FILETIME due;
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(1, &due));
    expect_callback(&w, WAIT_TIMEOUT, 1);
    set_event(w.event);
    assert_true(is_set(w.event));
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(0, &due));
    expect_callback(&w, WAIT_OBJECT_0, 2);
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(0, &due));
    expect_callback(&w, WAIT_TIMEOUT, 3);
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(3600000, &due));
    set_event(w.event);
    expect_callback(&w, WAIT_OBJECT_0, 4);
    finish(&w);
}

static void test_set_again(void **state)
{
    watched w;
    ULONG events = (*ExEventObjectType)->TotalNumberOfObjects;
    HANDLE other = make_event(SynchronizationEvent);
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    assert_false(SetThreadpoolWaitEx(w.wait, w.event, NULL, NULL));
    assert_true(SetThreadpoolWaitEx(w.wait, other, NULL, NULL));
    set_event(w.event);
    WaitForThreadpoolWaitCallbacks(w.wait, FALSE);
    assert_int_equal(w.runs, 0);
    set_event(other);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    assert_false(SetThreadpoolWaitEx(w.wait, NULL, NULL, NULL));
    SetThreadpoolWait(w.wait, other, NULL);
    assert_true(SetThreadpoolWaitEx(w.wait, NULL, NULL, NULL));
    set_event(other);
    WaitForThreadpoolWaitCallbacks(w.wait, FALSE);
    assert_int_equal(w.runs, 1);
    finish(&w);
    NtClose(other);
    assert_int_equal((*ExEventObjectType)->TotalNumberOfObjects, events);
}

/* Objects of every kind, and one that is closed while it is waited for. */
static void test_objects(void **state)
{
    watched w;
    HANDLE semaphore;
    HANDLE timer;
    (void)state;
    prepare(&w, NotificationEvent, NULL);
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 2, 2), STATUS_SUCCESS);
    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, SynchronizationTimer), STATUS_SUCCESS);
    SetThreadpoolWait(w.wait, semaphore, NULL);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    SetThreadpoolWait(w.wait, semaphore, NULL);
    expect_callback(&w, WAIT_OBJECT_0, 2);
    SetThreadpoolWait(w.wait, timer, NULL);
    LARGE_INTEGER soon = relative(MILLISECOND);
    assert_int_equal(NtSetTimer(timer, &soon, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    expect_callback(&w, WAIT_OBJECT_0, 3);
    set_event(w.event);
    SetThreadpoolWait(w.wait, w.event, NULL);
    expect_callback(&w, WAIT_OBJECT_0, 4);
    assert_true(is_set(w.event));
    SetThreadpoolWait(w.wait, semaphore, NULL);
    NtClose(semaphore);
    NtClose(timer);
    finish(&w);
}

typedef struct attempt {
    PTP_WAIT wait;
    HANDLE handle;
    PVOID reserved;
} attempt;

static void try_wait(void *argument)
{
    attempt *a = argument;
    SetThreadpoolWaitEx(a->wait, a->handle, NULL, a->reserved);
}

static NTSTATUS refusal(PTP_WAIT wait, HANDLE handle, PVOID reserved)
{
    attempt a = {wait, handle, reserved};
    return raised_by(try_wait, &a);
}

/* The exception reports that the handle is of a mutex. */
static void test_mutex(void **state)
{
    HANDLE mutex = CreateMutexW(NULL, FALSE, NULL);
    ULONG_PTR parameter = 0;
    ULONG parameters = 0;
    watched w;
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    __try {
        SetThreadpoolWait(w.wait, mutex, NULL);
    } __except (GetExceptionCode() == STATUS_THREADPOOL_HANDLE_EXCEPTION) {
        parameters = GetExceptionInformation()->ExceptionRecord->NumberParameters;
        parameter = GetExceptionInformation()->ExceptionRecord->ExceptionInformation[0];
    }
    assert_int_equal(parameters, 1);
    assert_int_equal((NTSTATUS)parameter, STATUS_INVALID_PARAMETER_3);
    NtClose(mutex);
    finish(&w);
}

static void test_refusals(void **state)
{
    watched w;
    HANDLE mutant;
    HANDLE weak;
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateEvent(&weak, EVENT_MODIFY_STATE, NULL, SynchronizationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(refusal(w.wait, ULongToHandle(0x7ffffff0), NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(refusal(w.wait, mutant, NULL), STATUS_THREADPOOL_HANDLE_EXCEPTION);
    assert_int_equal(refusal(w.wait, weak, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(refusal(w.wait, w.event, &w), STATUS_INVALID_PARAMETER);
    SetThreadpoolWait(w.wait, w.event, NULL);
    assert_int_equal(refusal(w.wait, mutant, NULL), STATUS_THREADPOOL_HANDLE_EXCEPTION);
    set_event(w.event);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    SetLastError(0);
    assert_null(CreateThreadpoolWait(NULL, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    NtClose(mutant);
    NtClose(weak);
    finish(&w);
}

/* Signaled, but without a thread yet. */
static void test_queued(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    watched w;
    gate g;
    FILETIME due;
    (void)state;
    prepare(&w, SynchronizationEvent, &environment);
    gate_block(&g, &environment);
    SetThreadpoolWait(w.wait, w.event, NULL);
    set_event(w.event);
    assert_false(is_set(w.event));
    WaitForThreadpoolWaitCallbacks(w.wait, TRUE);
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(1, &due));
    await(TppHasBacklog(pool));
    assert_false(SetThreadpoolWaitEx(w.wait, NULL, NULL, NULL));
    set_event(g.opened);
    expect_callback(&w, WAIT_TIMEOUT, 1);
    finish(&w);
    CloseThreadpool(pool);
    gate_close(&g);
}

/* A wait of low priority that is satisfied while other callbacks are pending runs after them. */
static void test_low_priority(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    watched low, normal;
    gate g;
    (void)state;
    gate_block(&g, &environment);
    prepare(&normal, SynchronizationEvent, &environment);
    SetThreadpoolCallbackPriority(&environment, TP_CALLBACK_PRIORITY_LOW);
    prepare(&low, SynchronizationEvent, &environment);
    SetThreadpoolWait(low.wait, low.event, NULL);
    SetThreadpoolWait(normal.wait, normal.event, NULL);
    set_event(low.event);
    set_event(normal.event);
    set_event(g.opened);
    expect_callback(&low, WAIT_OBJECT_0, 1);
    assert_int_equal(count_of(&normal.runs), 1);
    expect_callback(&normal, WAIT_OBJECT_0, 1);
    finish(&low);
    finish(&normal);
    CloseThreadpool(pool);
    gate_close(&g);
}

/* Both the signal and the timeout occurred: the object was consumed, so the callback reports the signal. */
static void test_signal_wins(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    watched w;
    gate g;
    FILETIME due;
    (void)state;
    prepare(&w, SynchronizationEvent, &environment);
    gate_block(&g, &environment);
    SetThreadpoolWait(w.wait, w.event, in_milliseconds(0, &due));
    await(TppHasBacklog(pool));
    set_event(w.event);
    assert_false(is_set(w.event));
    set_event(g.opened);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    finish(&w);
    CloseThreadpool(pool);
    gate_close(&g);
}

static void wait_and_close(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    watched *w = context;
    (void)instance;
    check(result == WAIT_OBJECT_0);
    if (add_one(&w->runs) < 3) {
        SetThreadpoolWait(wait, w->event, NULL);
        set_event(w->event);
        return;
    }
    CloseThreadpoolWait(wait);
    SetThreadpoolWait(wait, w->event, NULL);
    set_event(w->ran);
}

static void test_inside_callback(void **state)
{
    watched w = {.event = make_event(SynchronizationEvent), .ran = make_event(SynchronizationEvent)};
    PTP_WAIT wait = CreateThreadpoolWait(wait_and_close, &w, NULL);
    (void)state;
    SetThreadpoolWait(wait, w.event, NULL);
    set_event(w.event);
    wait_event(w.ran);
    assert_int_equal(count_of(&w.runs), 3);
    NtClose(w.event);
    NtClose(w.ran);
}

static void test_many(void **state)
{
    static watched w[WAITS];
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(500, &environment);
    FILETIME due;
    (void)state;
    for (ULONG i = 0; i < WAITS; i += 1) {
        prepare(&w[i], SynchronizationEvent, &environment);
        SetThreadpoolWait(w[i].wait, w[i].event, i % 2 ? in_milliseconds(3600000, &due) : NULL);
    }
    assert_in_range(TppQueryThreads(pool), 1, 2);
    for (ULONG i = 0; i < WAITS; i += 1) {
        set_event(w[i].event);
    }
    for (ULONG i = 0; i < WAITS; i += 1) {
        expect_callback(&w[i], WAIT_OBJECT_0, 1);
        finish(&w[i]);
    }
    assert_in_range(TppQueryThreads(pool), 1, KeNumberProcessors + 4);
    CloseThreadpool(pool);
}

static BOOLEAN use_wait(void *argument)
{
    watched *w = argument;
    set_event(w->event);
    WaitForThreadpoolWaitCallbacks(w->wait, FALSE);
    BOOLEAN first = w->runs == 1 && w->result == WAIT_OBJECT_0;
    SetThreadpoolWait(w->wait, w->event, NULL);
    set_event(w->event);
    await(count_of(&w->runs) == 2);
    CloseThreadpoolWait(w->wait);
    return first;
}

static void test_fork(void **state)
{
    watched w;
    (void)state;
    prepare(&w, SynchronizationEvent, NULL);
    SetThreadpoolWait(w.wait, w.event, NULL);
    assert_int_equal(in_child(use_wait, &w), 0);
    set_event(w.event);
    expect_callback(&w, WAIT_OBJECT_0, 1);
    finish(&w);
}

/* Many waits are satisfied, and one callback computes until the others have run. */
#define TOGETHER 64

static volatile ULONG together;

static void be_long_once(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)wait;
    (void)result;
    if (context != NULL) {
        await(count_of(&together) == TOGETHER - 1);
    }
    add_one(&together);
}

static void test_long_callback_holds_none_back(void **state)
{
    HANDLE event = make_event(NotificationEvent);
    PTP_WAIT waits[TOGETHER];
    (void)state;
    together = 0;
    for (ULONG i = 0; i < TOGETHER; i += 1) {
        waits[i] = CreateThreadpoolWait(be_long_once, i == TOGETHER / 2 ? event : NULL, NULL);
        SetThreadpoolWait(waits[i], event, NULL);
    }
    set_event(event);
    await(count_of(&together) == TOGETHER);
    for (ULONG i = 0; i < TOGETHER; i += 1) {
        WaitForThreadpoolWaitCallbacks(waits[i], FALSE);
        CloseThreadpoolWait(waits[i]);
    }
    NtClose(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_signal),          WATCHED(test_timeout),  WATCHED(test_set_again), WATCHED(test_objects),
        WATCHED(test_mutex),           WATCHED(test_refusals), WATCHED(test_queued),    WATCHED(test_signal_wins),
        WATCHED(test_inside_callback), WATCHED(test_many),     WATCHED(test_fork),      WATCHED(test_low_priority),
        WATCHED(test_long_callback_holds_none_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
