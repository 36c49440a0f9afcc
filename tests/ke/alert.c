/* Thread alerts. */
#include "waittest.h"

#define KERNEL_ALERT 1
#define USER_ALERT 2
#define USER_APC 4
#define STIMULI 8

static void ignore_apc(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void count_call(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    *(PULONG)context += 1;
}

static void stimulate(PKTHREAD thread, ULONG stimuli, PKAPC apc, PULONG calls)
{
    if (stimuli & KERNEL_ALERT) {
        assert_false(KeAlertThread(thread, KernelMode));
    }
    if (stimuli & USER_ALERT) {
        assert_false(KeAlertThread(thread, UserMode));
    }
    if (stimuli & USER_APC) {
        KeInitializeApc(apc, thread, OriginalApcEnvironment, ignore_apc, NULL, count_call, UserMode, calls);
        assert_true(KeInsertQueueApc(apc, NULL, NULL, 0));
    }
}

typedef struct outcome {
    NTSTATUS status;
    ULONG used; /* the stimulus that ended the wait */
} outcome;

/* The order in which an alertable wait checks: an alert of its own mode, a user APC, a kernel alert. */
static outcome expected_outcome(ULONG stimuli, KPROCESSOR_MODE mode, BOOLEAN alertable)
{
    if (!alertable) {
        return (outcome){STATUS_SUCCESS, 0};
    }
    if (mode == UserMode) {
        if (stimuli & USER_ALERT) {
            return (outcome){STATUS_ALERTED, USER_ALERT};
        }
        if (stimuli & USER_APC) {
            return (outcome){STATUS_USER_APC, USER_APC};
        }
    }
    if (stimuli & KERNEL_ALERT) {
        return (outcome){STATUS_ALERTED, KERNEL_ALERT};
    }
    return (outcome){STATUS_SUCCESS, 0};
}

/* What was pending before the wait and did not end it is still pending. */
static void check_left_over(ULONG left, PKAPC apc, BOOLEAN was_queued)
{
    assert_int_equal(KeTestAlertThread(KernelMode), (left & KERNEL_ALERT) != 0);
    assert_int_equal(KeTestAlertThread(UserMode), (left & USER_ALERT) != 0);
    assert_false(KeTestAlertThread(KernelMode));
    assert_false(KeTestAlertThread(UserMode));
    if (was_queued) {
        assert_int_equal(KeRemoveQueueApc(apc), (left & USER_APC) != 0);
    }
}

/* Before any object is tested: the object that the wait would have consumed stays signaled. */
static void test_pending_before_the_wait(void **state)
{
    (void)state;
    for (ULONG n = 0; n < STIMULI * 2 * 2 * 4; n += 1) {
        ULONG stimuli = n % STIMULI;
        KPROCESSOR_MODE mode = n / STIMULI % 2 ? UserMode : KernelMode;
        BOOLEAN alertable = n / STIMULI / 2 % 2 != 0;
        ULONG form = n / STIMULI / 4;
        KEVENT events[2];
        KAPC apc;
        ULONG calls = 0;
        wait_call call = {.count = form == 0 ? 1 : 2, .object = {&events[0], &events[1]}, .all = form == 2};
        KeInitializeEvent(&events[0], SynchronizationEvent, TRUE);
        KeInitializeEvent(&events[1], SynchronizationEvent, TRUE);
        call.mode = mode;
        call.alertable = alertable;
        call.timeout = form == 3 ? NO_TIME : NULL;
        stimulate(KeGetCurrentThread(), stimuli, &apc, &calls);
        outcome expected = expected_outcome(stimuli, mode, alertable);
        print_message("# stimuli %u, %s, %s, form %u\n", stimuli, mode ? "user" : "kernel",
                      alertable ? "alertable" : "not alertable", form);
        assert_int_equal(perform(&call), expected.status);
        assert_int_equal(KeReadStateEvent(&events[0]), expected.used != 0);
        assert_int_equal(KeReadStateEvent(&events[1]), expected.used != 0 || form != 2);
        assert_int_equal(calls, expected.used == USER_APC);
        check_left_over(stimuli & ~expected.used, &apc, (stimuli & USER_APC) != 0);
    }
}

/* One of them comes while the thread waits. */
static void test_under_the_wait(void **state)
{
    waiter w;
    KEVENT events[2];
    (void)state;
    start_waiters(&w, 1);
    for (ULONG n = 0; n < 3 * 2 * 2 * 4; n += 1) {
        ULONG stimulus = 1u << n % 3;
        KPROCESSOR_MODE mode = n / 3 % 2 ? UserMode : KernelMode;
        BOOLEAN alertable = n / 6 % 2 != 0;
        ULONG form = n / 12;
        KAPC apc;
        ULONG calls = 0;
        LARGE_INTEGER long_time = relative(600 * SECOND);
        w.call = (wait_call){.count = form, .object = {&events[0], &events[1]}, .all = form == 3};
        w.call.count = form == 3 ? 2 : form;
        w.call.mode = mode;
        w.call.alertable = alertable;
        w.call.timeout = form == 0 ? &long_time : NULL;
        if (form == 0 && !alertable) {
            continue;
        }
        KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
        KeInitializeEvent(&events[1], SynchronizationEvent, FALSE);
        begin_wait(&w);
        outcome expected = expected_outcome(stimulus, mode, alertable);
        stimulate(w.actor.thread, stimulus, &apc, &calls);
        assert_int_equal(still_waits(&w), expected.used == 0);
        if (expected.used == 0) {
            if (form == 0) {
                KeAlertThread(w.actor.thread, KernelMode);
            }
            KeSetEvent(&events[0], 0, FALSE);
            KeSetEvent(&events[1], 0, FALSE);
        }
        NTSTATUS status = end_wait(&w);
        assert_int_equal(status, expected.used == 0 && form == 0 ? STATUS_ALERTED : expected.status);
        assert_int_equal(calls, expected.used == USER_APC);
        assert_true(has_no_waiters(&events[0]));
        assert_true(has_no_waiters(&events[1]));
        /* Consume the rest. */
        ULONG left = stimulus & ~expected.used;
        if (left & USER_APC) {
            assert_true(KeRemoveQueueApc(&apc));
        }
        if (left & (KERNEL_ALERT | USER_ALERT)) {
            w.call = (wait_call){.count = 0, .timeout = NO_TIME, .alertable = TRUE, .mode = UserMode};
            run_on(&w.actor, perform_wait, &w);
            assert_int_equal(w.status, STATUS_ALERTED);
        }
        assert_int_equal(w.actor.thread->WaitRegister & (KI_WAIT_ALERT | KI_WAIT_ALERTED(0) | KI_WAIT_ALERTED(1)), 0);
    }
    end_waiters(&w, 1);
}

/* Two alerts count once; the second one reports that the first is still pending. */
static void test_two_alerts_count_once(void **state)
{
    static const KPROCESSOR_MODE modes[] = {KernelMode, UserMode};
    PKTHREAD self = KeGetCurrentThread();
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    for (ULONG i = 0; i < ARRAYSIZE(modes); i += 1) {
        wait_call call = {.count = 1, .object = {&event}, .mode = modes[i], .alertable = TRUE};
        assert_false(KeAlertThread(self, modes[i]));
        assert_true(KeAlertThread(self, modes[i]));
        assert_true(KeAlertThread(self, modes[i]));
        assert_int_equal(perform(&call), STATUS_ALERTED);
        assert_int_equal(perform(&call), STATUS_SUCCESS);
        assert_false(KeAlertThread(self, modes[i]));
        assert_true(KeTestAlertThread(modes[i]));
        assert_false(KeTestAlertThread(modes[i]));
        assert_int_equal(perform(&call), STATUS_SUCCESS);
    }
}

/* The two modes are two alerts. */
static void test_modes_are_apart(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    assert_false(KeAlertThread(self, KernelMode));
    assert_false(KeAlertThread(self, UserMode));
    assert_true(KeTestAlertThread(UserMode));
    assert_false(KeTestAlertThread(UserMode));
    assert_true(KeTestAlertThread(KernelMode));
    assert_false(KeTestAlertThread(KernelMode));
}

/* An alerted wait gets the boost that goes with it. */
static void test_boost(void **state)
{
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    w.call = (wait_call){.count = 1, .object = {&event}, .alertable = TRUE};
    begin_wait(&w);
    KeAlertThread(w.actor.thread, KernelMode);
    assert_int_equal(priority_of(w.actor.thread), w.actor.thread->BasePriority + ALERT_INCREMENT);
    assert_int_equal(end_wait(&w), STATUS_ALERTED);
    end_waiters(&w, 1);
}

static void suspend_self_then_wait(void *argument)
{
    waiter *w = argument;
    KeSuspendThread(KeGetCurrentThread());
    w->status = perform(&w->call);
}

/* Alerts and resumes: the alert is pending when the thread continues. */
static void test_alert_resume(void **state)
{
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    w.call = (wait_call){.count = 1, .object = {&event}, .alertable = TRUE};
    assert_int_equal(KeAlertResumeThread(w.actor.thread), 0);
    run_on(&w.actor, perform_wait, &w);
    assert_int_equal(w.status, STATUS_ALERTED);

    tell(&w.actor, suspend_self_then_wait, &w);
    await(is_committed(w.actor.thread));
    assert_int_equal(KeSuspendThread(w.actor.thread), 1);
    assert_int_equal(KeAlertResumeThread(w.actor.thread), 2);
    assert_true(still_waits(&w));
    assert_int_equal(KeAlertResumeThread(w.actor.thread), 1);
    assert_int_equal(end_wait(&w), STATUS_ALERTED);
    run_on(&w.actor, perform_wait, &w);
    assert_int_equal(w.status, STATUS_SUCCESS);
    end_waiters(&w, 1);
}

/* An alert that races with a signal has one winner. */
static void test_signal_against_alert(void **state)
{
    ULONG rounds = (ULONG)test_rounds(300);
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG i = 0; i < rounds; i += 1) {
        w.call = (wait_call){.count = 1, .object = {&event}, .alertable = TRUE};
        tell(&w.actor, perform_wait, &w);
        KeAlertThread(w.actor.thread, KernelMode);
        KeSetEvent(&event, 0, FALSE);
        NTSTATUS status = end_wait(&w);
        assert_true(status == STATUS_SUCCESS || status == STATUS_ALERTED);
        assert_int_equal(KeReadStateEvent(&event), status == STATUS_ALERTED);
        w.call.timeout = NO_TIME;
        KeSetEvent(&event, 0, FALSE);
        run_on(&w.actor, perform_wait, &w);
        assert_int_equal(w.status, status == STATUS_ALERTED ? STATUS_SUCCESS : STATUS_ALERTED);
        KeResetEvent(&event);
    }
    end_waiters(&w, 1);
}

static void alert_in_no_mode(void *unused)
{
    (void)unused;
    KeAlertThread(KeGetCurrentThread(), MaximumMode);
}

static void test_for_no_mode(void *unused)
{
    (void)unused;
    KeTestAlertThread(-1);
}

static void test_modes_that_are_none(void **state)
{
    (void)state;
    expect_violation(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_INVALID_ARG, alert_in_no_mode, NULL);
    expect_violation(KERNEL_SECURITY_CHECK_FAILURE, FAST_FAIL_INVALID_ARG, test_for_no_mode, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_pending_before_the_wait), WATCHED(test_under_the_wait), WATCHED(test_two_alerts_count_once),
        WATCHED(test_modes_are_apart),         WATCHED(test_boost),          WATCHED(test_alert_resume),
        WATCHED(test_signal_against_alert),
        cmocka_unit_test(test_modes_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
