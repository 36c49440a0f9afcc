/* Delays, yields, and NtTestAlert. */
#include "handles.h"

static void test_parameters(void **state)
{
    (void)state;
    assert_int_equal(NtDelayExecution(FALSE, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtDelayExecution(TRUE, NULL), STATUS_ACCESS_VIOLATION);
}

/* Never shorter than requested, by either clock. */
static void test_duration(void **state)
{
    LARGE_INTEGER interval = relative(3 * MILLISECOND);
    ULONGLONG before = HalDispatch.QueryInterruptTime();
    LARGE_INTEGER until;
    (void)state;
    assert_int_equal(NtDelayExecution(FALSE, &interval), STATUS_SUCCESS);
    assert_true(HalDispatch.QueryInterruptTime() - before >= 3 * MILLISECOND);
    until = absolute(3 * MILLISECOND);
    assert_int_equal(NtDelayExecution(TRUE, &until), STATUS_SUCCESS);
    assert_true((LONGLONG)HalDispatch.QuerySystemTime() >= until.QuadPart);
    until.QuadPart = 1;
    assert_int_equal(NtDelayExecution(FALSE, &until), STATUS_SUCCESS);
    assert_int_equal(NtDelayExecution(FALSE, NO_TIME), STATUS_SUCCESS);
}

static void test_user_apcs(void **state)
{
    LARGE_INTEGER interval = relative(MILLISECOND);
    LARGE_INTEGER forever = {.QuadPart = -MAXLONGLONG};
    KAPC apc[2];
    (void)state;
    for (ULONG polling = 0; polling < 2; polling += 1) {
        apcs_run = 0;
        queue_user_apc(&apc[0], KeGetCurrentThread(), count_apc, NULL);
        queue_user_apc(&apc[1], KeGetCurrentThread(), count_apc, NULL);
        assert_int_equal(NtDelayExecution(FALSE, &interval), STATUS_SUCCESS);
        assert_int_equal(apcs_run, 0);
        assert_int_equal(NtDelayExecution(TRUE, polling ? NO_TIME : &forever), STATUS_USER_APC);
        assert_int_equal(apcs_run, 2);
        assert_int_equal(NtDelayExecution(TRUE, &interval), STATUS_SUCCESS);
    }
}

static void test_alert(void **state)
{
    LARGE_INTEGER forever = {.QuadPart = -MAXLONGLONG};
    (void)state;
    KeAlertThread(KeGetCurrentThread(), UserMode);
    assert_int_equal(NtDelayExecution(FALSE, NO_TIME), STATUS_SUCCESS);
    assert_int_equal(NtDelayExecution(TRUE, &forever), STATUS_ALERTED);
    assert_int_equal(NtDelayExecution(TRUE, NO_TIME), STATUS_SUCCESS);
}

static void delay_for_ever(void *argument)
{
    LARGE_INTEGER forever = {.QuadPart = -MAXLONGLONG};
    *(NTSTATUS *)argument = NtDelayExecution(TRUE, &forever);
}

static void test_a_sleeper_is_alerted(void **state)
{
    NTSTATUS status;
    actor a;
    KAPC apc;
    (void)state;
    start_actor(&a);
    tell(&a, delay_for_ever, &status);
    await(is_committed(a.thread));
    KeAlertThread(a.thread, UserMode);
    await(is_idle(&a));
    assert_int_equal(status, STATUS_ALERTED);
    tell(&a, delay_for_ever, &status);
    await(is_committed(a.thread));
    queue_user_apc(&apc, a.thread, count_apc, NULL);
    await(is_idle(&a));
    assert_int_equal(status, STATUS_USER_APC);
    end_actor(&a);
}

/* An alert is reported and cleared; without one the user APCs run. */
static void test_test_alert(void **state)
{
    KAPC apc;
    (void)state;
    apcs_run = 0;
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    queue_user_apc(&apc, KeGetCurrentThread(), count_apc, NULL);
    KeAlertThread(KeGetCurrentThread(), UserMode);
    assert_int_equal(NtTestAlert(), STATUS_ALERTED);
    assert_int_equal(apcs_run, 0);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(apcs_run, 1);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(apcs_run, 1);
}

static VOID no_yield(VOID)
{
}

static VOID sleeping_yield(VOID)
{
    static const struct timespec briefly = {.tv_nsec = 1000000};
    nanosleep(&briefly, NULL);
}

/* The status shows whether another thread ran. */
static void test_yield(void **state)
{
    VOID (*yield)(VOID) = HalDispatch.Yield;
    ULONG performed = 0;
    (void)state;
    NTSTATUS status = NtYieldExecution();
    assert_true(status == STATUS_SUCCESS || status == STATUS_NO_YIELD_PERFORMED);
    HalDispatch.Yield = sleeping_yield;
    for (ULONG i = 0; i < 5; i += 1) {
        assert_int_equal(NtYieldExecution(), STATUS_SUCCESS);
    }
    HalDispatch.Yield = no_yield; /* a preemption in just that moment is possible, but not every time */
    for (ULONG i = 0; i < 1000; i += 1) {
        performed += ZwYieldExecution() == STATUS_SUCCESS;
    }
    HalDispatch.Yield = yield;
    assert_true(performed < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_parameters), WATCHED(test_duration),
        WATCHED(test_user_apcs),  WATCHED(test_alert),
        WATCHED(test_a_sleeper_is_alerted), WATCHED(test_test_alert),
        WATCHED(test_yield),
    };
    return cmocka_run_group_tests_name("nt/delay", tests, NULL, NULL);
}
