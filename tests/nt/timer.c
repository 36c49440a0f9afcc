#include "objecttest.h"

#include "ps/psp.h"

#include <unistd.h>

#include <sys/wait.h>

#define SECOND 10000000LL

static const LARGE_INTEGER at_once = {.QuadPart = -1};
static const LARGE_INTEGER long_ago = {.QuadPart = 1};
static const LARGE_INTEGER far_away = {.QuadPart = -1000 * SECOND};
static const LARGE_INTEGER poll_now = {.QuadPart = 0};
#define AT_ONCE ((PLARGE_INTEGER)&at_once)
#define LONG_AGO ((PLARGE_INTEGER)&long_ago)
#define FAR_AWAY ((PLARGE_INTEGER)&far_away)
#define POLL ((PLARGE_INTEGER)&poll_now)

static HANDLE create_timer(TIMER_TYPE type)
{
    HANDLE timer;

    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, type), STATUS_SUCCESS);
    return timer;
}

static TIMER_BASIC_INFORMATION query(HANDLE timer)
{
    TIMER_BASIC_INFORMATION information;
    ULONG length = 0;

    assert_int_equal(NtQueryTimer(timer, TimerBasicInformation, &information, sizeof(information), &length), 0);
    assert_int_equal(length, sizeof(information));
    return information;
}

static NTSTATUS set(HANDLE timer, PLARGE_INTEGER due, PTIMER_APC_ROUTINE routine, PVOID context, LONG period)
{
    return NtSetTimer(timer, due, routine, context, FALSE, period, NULL);
}

/* Alertable waits for nothing that end with the next APC. */
static NTSTATUS sleep_alertably(LONGLONG interval)
{
    LARGE_INTEGER time = {.QuadPart = -interval};

    return NtDelayExecution(TRUE, &time);
}

struct call {
    int count;
    HANDLE thread;
    ULONGLONG time;
};

static void note_call(PVOID context, ULONG low, LONG high)
{
    struct call *call = context;

    call->count += 1;
    call->thread = PsGetCurrentThreadId();
    call->time = ((ULONGLONG)(ULONG)high << 32) | low;
}

static void creating_checks_its_parameters(void **state)
{
    HANDLE timer;

    (void)state;
    assert_int_equal(NtCreateTimer(NULL, TIMER_ALL_ACCESS, NULL, NotificationTimer), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, (TIMER_TYPE)2), STATUS_INVALID_PARAMETER_4);
    assert_int_equal(NtCreateTimer(&timer, 0x8000, NULL, NotificationTimer), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwCreateTimer(&timer, 0x8000, NULL, NotificationTimer), STATUS_SUCCESS);
    close_handle(timer);
}

static void setting_checks_its_parameters(void **state)
{
    HANDLE timer = create_timer(NotificationTimer), limited, event;
    TIMER_BASIC_INFORMATION information[2];

    (void)state;
    assert_int_equal(NtSetTimer(NULL, NULL, NULL, NULL, FALSE, -1, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtSetTimer(NULL, FAR_AWAY, NULL, NULL, FALSE, -1, NULL), STATUS_INVALID_PARAMETER_6);
    assert_int_equal(NtSetTimer(NULL, FAR_AWAY, NULL, NULL, FALSE, 0, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtSetTimer(event, FAR_AWAY, NULL, NULL, FALSE, 0, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCancelTimer(event, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCreateTimer(&limited, TIMER_ALL_ACCESS & ~TIMER_MODIFY_STATE, NULL, NotificationTimer), 0);
    assert_int_equal(NtSetTimer(limited, FAR_AWAY, NULL, NULL, FALSE, 0, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtCancelTimer(limited, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwSetTimer(limited, FAR_AWAY, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(ZwCancelTimer(limited, NULL), STATUS_SUCCESS);
    close_handle(limited);
    assert_int_equal(NtCreateTimer(&limited, TIMER_MODIFY_STATE, NULL, NotificationTimer), STATUS_SUCCESS);
    assert_int_equal(NtQueryTimer(limited, TimerBasicInformation, information, 16, NULL), STATUS_ACCESS_DENIED);
    close_handle(limited);
    assert_int_equal(NtQueryTimer(timer, (TIMER_INFORMATION_CLASS)1, information, 16, NULL), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryTimer(timer, TimerBasicInformation, information, 12, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryTimer(timer, TimerBasicInformation, information, 32, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryTimer(timer, TimerBasicInformation, NULL, 16, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCancelTimer(NULL, NULL), STATUS_INVALID_HANDLE);
    close_handle(event);
    close_handle(timer);
}

static void states_of_a_timer(void **state)
{
    (void)state;
    for (int type = NotificationTimer; type <= SynchronizationTimer; type++) {
        HANDLE timer = create_timer((TIMER_TYPE)type);
        BOOLEAN before = 77;
        LONGLONG remaining;

        assert_int_equal(query(timer).TimerState, FALSE);
        assert_int_equal(query(timer).RemainingTime.QuadPart, 0);
        assert_int_equal(NtSetTimer(timer, FAR_AWAY, NULL, NULL, FALSE, 0, &before), STATUS_SUCCESS);
        assert_int_equal(before, FALSE);
        remaining = query(timer).RemainingTime.QuadPart;
        assert_true(remaining > 0 && remaining <= 1000 * SECOND);
        assert_int_equal(NtWaitForSingleObject(timer, FALSE, POLL), STATUS_TIMEOUT);
        assert_int_equal(NtSetTimer(timer, LONG_AGO, NULL, NULL, FALSE, 0, &before), STATUS_SUCCESS);
        assert_int_equal(before, FALSE);
        assert_int_equal(query(timer).TimerState, TRUE);
        assert_int_equal(query(timer).RemainingTime.QuadPart, 0);
        assert_int_equal(NtCancelTimer(timer, &before), STATUS_SUCCESS);
        assert_int_equal(before, TRUE);
        assert_int_equal(NtSetTimer(timer, FAR_AWAY, NULL, NULL, FALSE, 0, &before), STATUS_SUCCESS);
        assert_int_equal(before, TRUE);
        assert_int_equal(query(timer).TimerState, FALSE);
        assert_int_equal(NtCancelTimer(timer, &before), STATUS_SUCCESS);
        assert_int_equal(before, FALSE);
        assert_int_equal(query(timer).RemainingTime.QuadPart, 0);
        assert_int_equal(NtSetTimer(timer, AT_ONCE, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
        watchdog_start(60);
        assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
        watchdog_stop();
        assert_int_equal(NtWaitForSingleObject(timer, FALSE, POLL),
                         type == NotificationTimer ? STATUS_SUCCESS : STATUS_TIMEOUT);
        close_handle(timer);
    }
}

static void an_absolute_time(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    LARGE_INTEGER due;
    LONGLONG remaining;

    (void)state;
    KeQuerySystemTime(&due);
    due.QuadPart += 1000 * SECOND;
    assert_int_equal(set(timer, &due, NULL, NULL, 0), STATUS_SUCCESS);
    remaining = query(timer).RemainingTime.QuadPart;
    assert_true(remaining > 0 && remaining <= 1001 * SECOND);
    assert_int_equal(query(timer).TimerState, FALSE);
    close_handle(timer);
}

static void the_machine_is_not_woken(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    BOOLEAN before = 77;

    (void)state;
    assert_int_equal(NtSetTimer(timer, LONG_AGO, NULL, NULL, TRUE, 0, &before), STATUS_TIMER_RESUME_IGNORED);
    assert_int_equal(before, FALSE);
    assert_int_equal(query(timer).TimerState, TRUE);
    assert_int_equal(NtSetTimer(NULL, LONG_AGO, NULL, NULL, TRUE, 0, NULL), STATUS_INVALID_HANDLE);
    close_handle(timer);
}

static void a_period(void **state)
{
    HANDLE timer = create_timer(SynchronizationTimer);

    (void)state;
    assert_int_equal(set(timer, AT_ONCE, NULL, NULL, 2), STATUS_SUCCESS);
    watchdog_start(60);
    for (int i = 0; i < 5; i++)
        assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    watchdog_stop();
    assert_true(query(timer).RemainingTime.QuadPart <= 20000);
    assert_int_equal(NtCancelTimer(timer, NULL), STATUS_SUCCESS);
    close_handle(timer);
}

static void coalescable_timers(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    BOOLEAN before = 77;
    struct call call = {0};
    TIMER_SET_COALESCABLE_TIMER_INFO info = {.DueTime = {.QuadPart = 1}, .PreviousState = &before};

    (void)state;
    assert_int_equal(NtSetTimerEx(timer, MaxTimerInfoClass, &info, sizeof(info)), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, &info, 40), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, NULL, sizeof(info)), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, &info, sizeof(info)), STATUS_SUCCESS);
    assert_int_equal(before, FALSE);
    assert_int_equal(query(timer).TimerState, TRUE);
    info.TolerableDelay = 50;
    info.DueTime = far_away;
    info.TimerApcRoutine = note_call;
    info.TimerContext = &call;
    assert_int_equal(ZwSetTimerEx(timer, TimerSetCoalescableTimer, &info, sizeof(info)), STATUS_SUCCESS);
    assert_int_equal(before, TRUE);
    info.DueTime = at_once;
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, &info, sizeof(info)), STATUS_SUCCESS);
    watchdog_start(60);
    assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(1000 * SECOND), STATUS_USER_APC);
    watchdog_stop();
    assert_int_equal(call.count, 1);
    info.Period = MAXLONG + 1u;
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, &info, sizeof(info)), STATUS_INVALID_PARAMETER);
    info.Period = 0;
    info.WakeContext = (PVOID)&info;
    assert_int_equal(NtSetTimerEx(timer, TimerSetCoalescableTimer, &info, sizeof(info)), STATUS_TIMER_RESUME_IGNORED);
    assert_int_equal(NtCancelTimer(timer, NULL), STATUS_SUCCESS);
    close_handle(timer);
}

static void an_apc_runs_in_an_alertable_wait_only(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    struct call call = {0};
    LARGE_INTEGER before, after;

    (void)state;
    watchdog_start(60);
    KeQuerySystemTimePrecise(&before);
    assert_int_equal(set(timer, LONG_AGO, note_call, &call, 0), STATUS_SUCCESS);
    KeQuerySystemTimePrecise(&after);
    assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(call.count, 0);
    assert_int_equal(sleep_alertably(1000 * SECOND), STATUS_USER_APC);
    assert_int_equal(call.count, 1);
    assert_ptr_equal(call.thread, PsGetCurrentThreadId());
    assert_true(call.time + SECOND >= (ULONGLONG)before.QuadPart && call.time <= (ULONGLONG)after.QuadPart + SECOND);
    assert_int_equal(sleep_alertably(1), STATUS_SUCCESS);
    assert_int_equal(set(timer, AT_ONCE, note_call, &call, 0), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(1000 * SECOND), STATUS_USER_APC);
    assert_int_equal(call.count, 2);
    watchdog_stop();
    close_handle(timer);
}

static void a_periodic_apc(void **state)
{
    ULONG objects = objects_of("Timer");
    HANDLE timer = create_timer(SynchronizationTimer);
    struct call call = {0};
    int count;

    (void)state;
    watchdog_start(60);
    assert_int_equal(set(timer, AT_ONCE, note_call, &call, 1), STATUS_SUCCESS);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(sleep_alertably(1000 * SECOND), STATUS_USER_APC);
        assert_true(call.count >= i);
    }
    /* an expiration that finds the APC of an earlier one still queued adds none */
    count = call.count;
    for (int i = 0; i < 3; i++)
        assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(call.count, count);
    assert_int_equal(sleep_alertably(0), STATUS_USER_APC);
    assert_true(call.count > count);
    assert_int_equal(NtCancelTimer(timer, NULL), STATUS_SUCCESS);
    count = call.count;
    assert_int_equal(sleep_alertably(0), STATUS_SUCCESS);
    assert_int_equal(call.count, count);
    watchdog_stop();
    close_handle(timer);
    assert_int_equal(objects_of("Timer"), objects);
}

static void cancelling_takes_the_apc_back(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    struct call call = {0}, other = {0};
    ULONG count = basic_information(timer).PointerCount;

    (void)state;
    assert_int_equal(set(timer, LONG_AGO, note_call, &call, 0), STATUS_SUCCESS);
    assert_int_equal(NtCancelTimer(timer, NULL), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(0), STATUS_SUCCESS);
    assert_int_equal(set(timer, LONG_AGO, note_call, &call, 0), STATUS_SUCCESS);
    assert_int_equal(set(timer, LONG_AGO, note_call, &other, 0), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(0), STATUS_USER_APC);
    assert_int_equal(set(timer, LONG_AGO, note_call, &call, 1000), STATUS_SUCCESS);
    assert_int_equal(set(timer, FAR_AWAY, NULL, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(0), STATUS_SUCCESS);
    assert_int_equal(call.count, 0);
    assert_int_equal(other.count, 1);
    assert_int_equal(basic_information(timer).HandleCount, 1);
    assert_true(basic_information(timer).PointerCount <= count);
    close_handle(timer);
}

/* The thread that waits for the APC has a reference, so closing the handle changes nothing. */
static void an_apc_outlives_the_handle(void **state)
{
    ULONG objects = objects_of("Timer");
    struct call call = {0};
    HANDLE timer = create_timer(NotificationTimer);

    (void)state;
    assert_int_equal(set(timer, AT_ONCE, note_call, &call, 0), STATUS_SUCCESS);
    close_handle(timer);
    watchdog_start(60);
    assert_int_equal(sleep_alertably(1000 * SECOND), STATUS_USER_APC);
    watchdog_stop();
    assert_int_equal(call.count, 1);
    assert_int_equal(objects_of("Timer"), objects);
    timer = create_timer(NotificationTimer);
    assert_int_equal(set(timer, AT_ONCE, NULL, NULL, 5), STATUS_SUCCESS);
    close_handle(timer);
    assert_int_equal(objects_of("Timer"), objects);
}

static struct call call_of_another;

static void set_and_end(void *argument, unsigned index)
{
    HANDLE *timers = argument;

    (void)index;
    assert_int_equal(set(timers[0], FAR_AWAY, note_call, &call_of_another, 0), STATUS_SUCCESS);
    assert_int_equal(set(timers[1], LONG_AGO, note_call, &call_of_another, 1000), STATUS_SUCCESS);
    assert_int_equal(set(timers[2], FAR_AWAY, NULL, NULL, 0), STATUS_SUCCESS);
}

static void the_end_of_the_thread_cancels(void **state)
{
    ULONG objects = objects_of("Timer");
    HANDLE timers[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        timers[i] = create_timer(NotificationTimer);
    run_threads(1, 60, set_and_end, timers);
    assert_int_equal(query(timers[0]).RemainingTime.QuadPart, 0);
    assert_int_equal(query(timers[1]).RemainingTime.QuadPart, 0);
    assert_true(query(timers[2]).RemainingTime.QuadPart > 0);
    assert_int_equal(call_of_another.count, 0);
    for (int i = 0; i < 3; i++)
        close_handle(timers[i]);
    assert_int_equal(objects_of("Timer"), objects);
}

static void take_over(void *argument, unsigned index)
{
    (void)index;
    assert_int_equal(set(argument, LONG_AGO, note_call, &call_of_another, 0), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(0), STATUS_USER_APC);
}

/* The last thread to set the timer gets the APC. */
static void another_thread_takes_the_timer(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    struct call call = {0};

    (void)state;
    call_of_another.count = 0;
    assert_int_equal(set(timer, LONG_AGO, note_call, &call, 0), STATUS_SUCCESS);
    run_threads(1, 60, take_over, timer);
    assert_int_equal(sleep_alertably(0), STATUS_SUCCESS);
    assert_int_equal(call.count, 0);
    assert_int_equal(call_of_another.count, 1);
    assert_ptr_not_equal(call_of_another.thread, PsGetCurrentThreadId());
    close_handle(timer);
}

static void set_again(PVOID context, ULONG low, LONG high)
{
    HANDLE *timer = context;

    (void)low;
    (void)high;
    if (*timer) {
        set(*timer, LONG_AGO, set_again, context, 0);
        *timer = NULL;
    }
}

static void an_apc_may_set_its_timer(void **state)
{
    HANDLE timer = create_timer(NotificationTimer), context = timer;

    (void)state;
    assert_int_equal(set(timer, LONG_AGO, set_again, &context, 0), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(0), STATUS_USER_APC);
    assert_null(context);
    sleep_alertably(0); /* the second APC may have been run by the first wait */
    assert_int_equal(sleep_alertably(0), STATUS_SUCCESS);
    close_handle(timer);
}

static void by_name(void **state)
{
    HANDLE timer, opened;

    (void)state;
    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\t", NULL, 0), 0), 0);
    assert_int_equal(NtOpenTimer(&opened, TIMER_MODIFY_STATE, NAMED(u"\\BaseNamedObjects\\t", NULL, 0)), 0);
    assert_int_equal(set(opened, LONG_AGO, NULL, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(query(timer).TimerState, TRUE);
    close_handle(opened);
    assert_int_equal(ZwOpenTimer(&opened, TIMER_QUERY_STATE, NAMED(u"\\BaseNamedObjects\\t", NULL, 0)), 0);
    close_handle(opened);
    close_handle(timer);
}

static void a_forked_child_keeps_its_timers(void **state)
{
    HANDLE timer = create_timer(NotificationTimer);
    struct call call = {0};
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(set(timer, FAR_AWAY, note_call, &call, 0), STATUS_SUCCESS);
    child = fork();
    if (child == 0) {
        alarm(60);
        if (set(timer, AT_ONCE, note_call, &call, 0) || sleep_alertably(1000 * SECOND) != STATUS_USER_APC ||
            call.count != 1 || NtClose(timer))
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(query(timer).RemainingTime.QuadPart > 0);
    close_handle(timer);
}

struct parked {
    HANDLE timer, armed, go;
};

static void arm_and_wait(void *argument, unsigned index)
{
    struct parked *parked = argument;

    (void)index;
    assert_int_equal(set(parked->timer, FAR_AWAY, note_call, &call_of_another, 0), STATUS_SUCCESS);
    assert_int_equal(NtSignalAndWaitForSingleObject(parked->armed, parked->go, FALSE, NULL), STATUS_SUCCESS);
}

static void take_a_slot(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    sleep_alertably(1);
}

/* In the child the APC's thread does not exist; its timer is cancelled, whichever thread gets its slot. */
static void a_timer_of_a_thread_that_stayed_behind(void **state)
{
    ULONG objects = objects_of("Timer");
    struct parked parked = {create_timer(NotificationTimer), NULL, NULL};
    test_threads *threads;
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(NtCreateEvent(&parked.armed, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateEvent(&parked.go, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    threads = start_threads(1, arm_and_wait, &parked);
    assert_int_equal(NtWaitForSingleObject(parked.armed, FALSE, NULL), STATUS_SUCCESS);
    child = fork();
    if (child == 0) {
        alarm(60);
        if (query(parked.timer).RemainingTime.QuadPart != 0)
            _exit(1);
        if (test_slowdown() == 1) /* a sanitizer does not know threads in the child of a process that had others */
            run_threads(4, 60, take_a_slot, NULL);
        if (set(parked.timer, LONG_AGO, note_call, &call_of_another, 0) || sleep_alertably(0) != STATUS_USER_APC ||
            NtClose(parked.timer) || objects_of("Timer") != objects)
            _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(query(parked.timer).RemainingTime.QuadPart > 0);
    assert_int_equal(NtSetEvent(parked.go, NULL), STATUS_SUCCESS);
    join_threads(threads, 60);
    assert_int_equal(query(parked.timer).RemainingTime.QuadPart, 0);
    close_handle(parked.timer);
    close_handle(parked.armed);
    close_handle(parked.go);
}

static NTSTATUS arm_and_stay(PVOID argument)
{
    struct parked *parked = argument;

    arm_and_wait(parked, 0);
    return STATUS_SUCCESS;
}

static void the_termination_of_the_thread_cancels(void **state)
{
    struct parked parked = {create_timer(NotificationTimer), NULL, NULL};
    HANDLE thread;

    (void)state;
    assert_int_equal(NtCreateEvent(&parked.armed, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateEvent(&parked.go, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), arm_and_stay, &parked, 0, 0,
                                      0, 0, NULL),
                     STATUS_SUCCESS);
    watchdog_start(60);
    assert_int_equal(NtWaitForSingleObject(parked.armed, FALSE, NULL), STATUS_SUCCESS);
    assert_true(query(parked.timer).RemainingTime.QuadPart > 0);
    assert_int_equal(NtTerminateThread(thread, STATUS_SUCCESS), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_SUCCESS);
    watchdog_stop();
    assert_int_equal(query(parked.timer).RemainingTime.QuadPart, 0);
    close_handle(thread);
    close_handle(parked.timer);
    close_handle(parked.armed);
    close_handle(parked.go);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_checks_its_parameters),
        cmocka_unit_test(setting_checks_its_parameters),
        cmocka_unit_test(states_of_a_timer),
        cmocka_unit_test(an_absolute_time),
        cmocka_unit_test(the_machine_is_not_woken),
        cmocka_unit_test(a_period),
        cmocka_unit_test(coalescable_timers),
        cmocka_unit_test(an_apc_runs_in_an_alertable_wait_only),
        cmocka_unit_test(a_periodic_apc),
        cmocka_unit_test(cancelling_takes_the_apc_back),
        cmocka_unit_test(an_apc_outlives_the_handle),
        cmocka_unit_test(the_end_of_the_thread_cancels),
        cmocka_unit_test(another_thread_takes_the_timer),
        cmocka_unit_test(an_apc_may_set_its_timer),
        cmocka_unit_test(by_name),
        cmocka_unit_test(a_forked_child_keeps_its_timers),
        cmocka_unit_test(a_timer_of_a_thread_that_stayed_behind),
        cmocka_unit_test(the_termination_of_the_thread_cancels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
