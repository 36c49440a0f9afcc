/* The timers of winmm. */
#include "tptest.h"

typedef struct beat {
    UINT id; /* as timeSetEvent has returned it; the callback may run before */
    volatile UINT seen;
    volatile ULONG runs;
    volatile DWORD thread;
    HANDLE ran;
    HANDLE opened; /* if not NULL, the callback waits for it */
    volatile ULONG over;
} beat;

static volatile ULONG inside; /* callbacks of all timers: they have one thread */

static void CALLBACK note(UINT id, UINT message, DWORD_PTR user, DWORD_PTR first, DWORD_PTR second)
{
    beat *b = (beat *)user;
    check(message == 0 && first == 0 && second == 0);
    check(add_one(&inside) == 1 && !count_of(&b->over));
    b->seen = id;
    b->thread = GetCurrentThreadId();
    add_one(&b->runs);
    set_event(b->ran);
    if (b->opened != NULL) {
        wait_event(b->opened);
    }
    check(!count_of(&b->over));
    subtract_one(&inside);
}

static void start(beat *b, UINT delay, LPTIMECALLBACK callback, UINT flags)
{
    *b = (beat){.ran = make_event(SynchronizationEvent)};
    b->id = timeSetEvent(delay, 0, callback, (DWORD_PTR)b, flags);
    check(b->id != 0);
}

static void test_caps(void **state)
{
    TIMECAPS caps = {0, 0};
    (void)state;
    assert_int_equal(timeGetDevCaps(NULL, sizeof(caps)), TIMERR_NOCANDO);
    assert_int_equal(timeGetDevCaps(&caps, sizeof(caps) - 1), TIMERR_NOCANDO);
    assert_int_equal(caps.wPeriodMax, 0);
    assert_int_equal(timeGetDevCaps(&caps, sizeof(caps)), MMSYSERR_NOERROR);
    assert_int_equal(caps.wPeriodMin, 1);
    assert_int_equal(caps.wPeriodMax, 1000000);
    assert_int_equal(timeBeginPeriod(caps.wPeriodMax), TIMERR_NOERROR);
    assert_int_equal(timeEndPeriod(caps.wPeriodMax), TIMERR_NOERROR);
    assert_int_equal(timeBeginPeriod(caps.wPeriodMax + 1), TIMERR_NOCANDO);
    assert_int_equal(timeEndPeriod(caps.wPeriodMin - 1), TIMERR_NOCANDO);
}

/* The identifier of a timer without a period is invalid after its callback. */
static void test_once(void **state)
{
    beat b;
    (void)state;
    start(&b, 1, note, TIME_ONESHOT | TIME_CALLBACK_FUNCTION);
    wait_event(b.ran);
    await(timeKillEvent(b.id) == MMSYSERR_INVALPARAM);
    await(count_of(&inside) == 0); /* the callback uses b until then */
    assert_int_equal(b.seen, b.id);
    assert_int_equal(b.runs, 1);
    NtClose(b.ran);
}

static void test_periodic(void **state)
{
    beat b;
    (void)state;
    start(&b, 1, note, TIME_PERIODIC | TIME_KILL_SYNCHRONOUS);
    await(count_of(&b.runs) >= 5);
    assert_int_equal(timeKillEvent(b.id), TIMERR_NOERROR);
    b.over = 1;
    assert_int_equal(timeKillEvent(b.id), MMSYSERR_INVALPARAM);
    ULONG runs = b.runs;
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -20 * MILLISECOND});
    assert_int_equal(count_of(&b.runs), runs);
    NtClose(b.ran);
}

/* A timer that is killed in time has no callback. */
static void test_kill(void **state)
{
    static const UINT flags[] = {TIME_ONESHOT, TIME_PERIODIC, TIME_ONESHOT | TIME_KILL_SYNCHRONOUS,
                                 TIME_PERIODIC | TIME_KILL_SYNCHRONOUS};
    UINT last = 0;
    beat b;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        start(&b, 1000000, note, flags[i]);
        assert_int_not_equal(b.id, last);
        last = b.id;
        assert_int_equal(timeKillEvent(b.id), TIMERR_NOERROR);
        assert_int_equal(b.runs, 0);
        NtClose(b.ran);
    }
}

/* The timer keeps the event: the program's handle may be closed. */
static void test_set(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    HANDLE other;
    (void)state;
    assert_int_not_equal(timeSetEvent(1, 0, (LPTIMECALLBACK)(PVOID)event, 0, TIME_CALLBACK_EVENT_SET), 0);
    wait_event(event);
    assert_int_equal(
        NtDuplicateObject(NtCurrentProcess(), event, NtCurrentProcess(), &other, 0, 0, DUPLICATE_SAME_ACCESS),
        STATUS_SUCCESS);
    UINT id = timeSetEvent(1, 0, (LPTIMECALLBACK)(PVOID)event, 0, TIME_PERIODIC | TIME_CALLBACK_EVENT_SET);
    assert_int_not_equal(id, 0);
    NtClose(event);
    for (int i = 0; i < 3; i += 1) {
        wait_event(other);
    }
    assert_int_equal(timeKillEvent(id), TIMERR_NOERROR);
    NtClose(other);
}

static void test_pulse(void **state)
{
    HANDLE event = make_event(NotificationEvent);
    (void)state;
    UINT id = timeSetEvent(1, 0, (LPTIMECALLBACK)(PVOID)event, 0,
                           TIME_PERIODIC | TIME_CALLBACK_EVENT_PULSE | TIME_KILL_SYNCHRONOUS);
    assert_int_not_equal(id, 0);
    for (int i = 0; i < 3; i += 1) {
        wait_event(event);
    }
    assert_int_equal(timeKillEvent(id), TIMERR_NOERROR);
    assert_false(is_set(event));
    NtClose(event);
}

/* Killing with TIME_KILL_SYNCHRONOUS waits for the callback, also for that of a timer without a period. */
static volatile PKTHREAD killer;

static void *kill_running(void *argument)
{
    beat *b = argument;
    __atomic_store_n(&killer, KeGetCurrentThread(), __ATOMIC_RELEASE);
    check(timeKillEvent(b->id) == TIMERR_NOERROR);
    __atomic_store_n(&b->over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static BOOLEAN is_killing(void)
{
    PKTHREAD thread = __atomic_load_n(&killer, __ATOMIC_ACQUIRE);
    return thread != NULL && is_committed(thread);
}

static void test_kill_running(void **state)
{
    static const UINT flags[] = {TIME_ONESHOT, TIME_PERIODIC};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        beat b = {.ran = make_event(SynchronizationEvent), .opened = make_event(NotificationEvent)};
        pthread_t thread;
        b.id = timeSetEvent(1, 0, note, (DWORD_PTR)&b, flags[i] | TIME_KILL_SYNCHRONOUS);
        wait_event(b.ran);
        killer = NULL;
        pthread_create(&thread, NULL, kill_running, &b);
        await(is_killing());
        set_event(b.opened);
        pthread_join(thread, NULL);
        assert_int_equal(b.runs, 1);
        assert_int_equal(count_of(&inside), 0);
        NtClose(b.ran);
        NtClose(b.opened);
    }
}

/* Without the flag it does not wait. */
static void test_kill_at_once(void **state)
{
    beat b = {.ran = make_event(SynchronizationEvent), .opened = make_event(NotificationEvent)};
    (void)state;
    b.id = timeSetEvent(1, 0, note, (DWORD_PTR)&b, TIME_PERIODIC);
    wait_event(b.ran);
    assert_int_equal(timeKillEvent(b.id), TIMERR_NOERROR);
    set_event(b.opened);
    await(count_of(&inside) == 0);
    pause_briefly();
    assert_int_equal(count_of(&b.runs), 1);
    NtClose(b.ran);
    NtClose(b.opened);
}

static beat victim;

static void CALLBACK kill_both(UINT id, UINT message, DWORD_PTR user, DWORD_PTR first, DWORD_PTR second)
{
    check(timeKillEvent(victim.id) == TIMERR_NOERROR);
    check(timeKillEvent(id) == TIMERR_NOERROR);
    check(timeKillEvent(id) == MMSYSERR_INVALPARAM);
    note(id, message, user, first, second);
}

/* A callback may kill its own timer and others, which share its thread. */
static void test_kill_in_callback(void **state)
{
    beat b;
    (void)state;
    start(&victim, 1, note, TIME_PERIODIC | TIME_KILL_SYNCHRONOUS);
    wait_event(victim.ran);
    start(&b, 1, kill_both, TIME_PERIODIC | TIME_KILL_SYNCHRONOUS);
    wait_event(b.ran);
    await(count_of(&inside) == 0);
    ULONG runs = count_of(&victim.runs);
    pause_briefly();
    assert_int_equal(count_of(&victim.runs), runs);
    assert_int_equal(count_of(&b.runs), 1);
    assert_int_equal(b.thread, victim.thread);
    assert_int_not_equal(b.thread, GetCurrentThreadId());
    await(count_of(&inside) == 0);
    NtClose(b.ran);
    NtClose(victim.ran);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(timeSetEvent(0, 0, note, 0, TIME_ONESHOT), 0);
    assert_int_equal(timeSetEvent(1000001, 0, note, 0, TIME_ONESHOT), 0);
    assert_int_equal(timeSetEvent(1, 0, NULL, 0, TIME_ONESHOT), 0);
    assert_int_equal(timeSetEvent(1, 0, (LPTIMECALLBACK)ULongToHandle(0x7ffffff0), 0, TIME_CALLBACK_EVENT_SET), 0);
    assert_int_equal(timeKillEvent(0), MMSYSERR_INVALPARAM);
    assert_int_equal(timeKillEvent(MAXULONG), MMSYSERR_INVALPARAM);
}

static BOOLEAN use_in_child(void *argument)
{
    beat *inherited = argument;
    beat b;
    start(&b, 1, note, TIME_ONESHOT);
    wait_event(b.ran);
    return timeKillEvent(inherited->id) == TIMERR_NOERROR && inherited->runs == 0;
}

static void test_fork(void **state)
{
    beat b;
    (void)state;
    start(&b, 1000000, note, TIME_PERIODIC | TIME_KILL_SYNCHRONOUS);
    assert_int_equal(in_child(use_in_child, &b), 0);
    assert_int_equal(timeKillEvent(b.id), TIMERR_NOERROR);
    NtClose(b.ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_caps),         WATCHED(test_once),         WATCHED(test_periodic),
        WATCHED(test_kill),         WATCHED(test_set),          WATCHED(test_pulse),
        WATCHED(test_kill_running), WATCHED(test_kill_at_once), WATCHED(test_kill_in_callback),
        WATCHED(test_refusals),     WATCHED(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
