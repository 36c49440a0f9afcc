/* Timers of the executive. */
#include "ex/exp.h"
#include "ke/irql.h"
#include "ke/timer.h"
#include "support.h"

#include <string.h>

#define MILLISECOND 10000LL
#define SECOND (1000 * MILLISECOND)
#define LONG_TIME (3600 * SECOND)
#define PATIENCE 20

typedef struct calls {
    volatile ULONG count;
    volatile ULONG deleted;
    volatile KIRQL irql;
    PEX_TIMER volatile timer;
    volatile ULONG hold; /* the callback runs until this is 0 */
    BOOLEAN delete_inside;
} calls;

static ULONG read_count(volatile ULONG *count)
{
    return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static void await(volatile ULONG *count, ULONG value)
{
    LARGE_INTEGER pause = {.QuadPart = -MILLISECOND / 2};
    while (read_count(count) < value) {
        KeDelayExecutionThread(KernelMode, FALSE, &pause);
    }
}

static void deleted(PVOID context)
{
    __atomic_fetch_add(&((calls *)context)->deleted, 1, __ATOMIC_RELEASE);
}

static EXT_DELETE_PARAMETERS deletion(calls *c)
{
    EXT_DELETE_PARAMETERS parameters;
    ExInitializeDeleteTimerParameters(&parameters);
    parameters.DeleteCallback = deleted;
    parameters.DeleteContext = c;
    return parameters;
}

static void callback(PEX_TIMER timer, PVOID context)
{
    calls *c = context;
    __atomic_store_n(&c->timer, timer, __ATOMIC_RELAXED);
    __atomic_store_n(&c->irql, KeGetCurrentIrql(), __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->count, 1, __ATOMIC_RELEASE);
    while (read_count(&c->hold) != 0) {
        HalDispatch.Yield();
    }
    if (c->delete_inside) {
        EXT_DELETE_PARAMETERS parameters = deletion(c);
        ExDeleteTimer(timer, TRUE, FALSE, &parameters);
    }
}

static const struct attribute_row {
    ULONG attributes;
    BOOLEAN valid;
    UCHAR type;
} attribute_rows[] = {
    {0, TRUE, TimerSynchronizationObject},
    {EX_TIMER_NOTIFICATION, TRUE, TimerNotificationObject},
    {EX_TIMER_HIGH_RESOLUTION, TRUE, TimerSynchronizationObject},
    {EX_TIMER_HIGH_RESOLUTION | EX_TIMER_NOTIFICATION, TRUE, TimerNotificationObject},
    {EX_TIMER_NO_WAKE, TRUE, TimerSynchronizationObject},
    {EX_TIMER_NO_WAKE | EX_TIMER_NOTIFICATION, TRUE, TimerNotificationObject},
    {1, FALSE, 0},
    {EX_TIMER_NO_WAKE | 0x100, FALSE, 0},
};

static void test_attributes(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(attribute_rows); i += 1) {
        PEX_TIMER timer = ExAllocateTimer(NULL, NULL, attribute_rows[i].attributes);
        assert_int_equal(timer != NULL, attribute_rows[i].valid);
        if (timer != NULL) {
            assert_int_equal(timer->Timer.Header.Type, attribute_rows[i].type);
            assert_false(ExDeleteTimer(timer, FALSE, FALSE, NULL));
        }
    }
}

/* Each kind: set, set again, cancel, expire, wait, and the callback's level and argument. */
static void run_kind(ULONG attributes, BOOLEAN absolute, BOOLEAN with_callback)
{
    calls c = {.count = 0};
    EXT_SET_PARAMETERS parameters;
    EXT_DELETE_PARAMETERS delete_parameters = deletion(&c);
    LARGE_INTEGER now;
    PEX_TIMER timer = ExAllocateTimer(with_callback ? callback : NULL, &c, attributes);
    assert_non_null(timer);
    ExInitializeSetTimerParameters(&parameters);
    parameters.NoWakeTolerance = MILLISECOND;
    KeQuerySystemTime(&now);

    assert_false(ExCancelTimer(timer, NULL));
    assert_false(ExSetTimer(timer, absolute ? now.QuadPart + LONG_TIME : -LONG_TIME, 0, &parameters));
    assert_true(timer->Timer.Header.Timer2Inserted);
    assert_true(ExSetTimer(timer, absolute ? now.QuadPart + LONG_TIME : -LONG_TIME, 0, NULL));
    assert_true(ExCancelTimer(timer, NULL));
    assert_false(timer->Timer.Header.Timer2Inserted);
    assert_false(ExCancelTimer(timer, NULL));

    KeQuerySystemTime(&now);
    ULONGLONG before = KeQueryInterruptTime();
    assert_false(ExSetTimer(timer, absolute ? now.QuadPart + 2 * MILLISECOND : -2 * MILLISECOND, 0, &parameters));
    assert_int_equal(KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_true(absolute || KeQueryInterruptTime() - before >= 2 * MILLISECOND);
    if (with_callback) {
        await(&c.count, 1);
        assert_int_equal(c.irql, DISPATCH_LEVEL);
        assert_ptr_equal(c.timer, timer);
    }
    LARGE_INTEGER zero = {.QuadPart = 0};
    assert_int_equal(KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, &zero),
                     attributes & EX_TIMER_NOTIFICATION ? STATUS_SUCCESS : STATUS_TIMEOUT);
    assert_false(ExDeleteTimer(timer, TRUE, TRUE, &delete_parameters));
    assert_int_equal(read_count(&c.deleted), 1);
    assert_int_equal(read_count(&c.count), with_callback);
}

static void test_every_kind(void **state)
{
    (void)state;
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < ARRAYSIZE(attribute_rows); i += 1) {
        ULONG attributes = attribute_rows[i].attributes;
        for (ULONG variant = 0; attribute_rows[i].valid && variant < 4; variant += 1) {
            BOOLEAN absolute = variant & 1;
            if (!absolute || !(attributes & EX_TIMER_HIGH_RESOLUTION)) {
                run_kind(attributes, absolute, variant >> 1);
            }
        }
    }
    watchdog_stop();
}

/* Periods are in 100 ns here, and much shorter ones than a millisecond are possible. */
static void test_period(void **state)
{
    (void)state;
    static const LONGLONG periods[] = {MILLISECOND / 4, MILLISECOND, 3 * MILLISECOND};
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < ARRAYSIZE(periods); i += 1) {
        calls c = {.count = 0};
        PEX_TIMER timer = ExAllocateTimer(callback, &c, EX_TIMER_HIGH_RESOLUTION);
        ULONGLONG before = KeQueryInterruptTime();
        assert_false(ExSetTimer(timer, -periods[i], periods[i], NULL));
        await(&c.count, 5);
        assert_true(KeQueryInterruptTime() - before >= 5 * (ULONGLONG)periods[i]);
        assert_true(ExDeleteTimer(timer, TRUE, TRUE, NULL));
        ULONG count = read_count(&c.count);
        KeStallExecutionProcessor(5000);
        assert_int_equal(read_count(&c.count), count);
    }
    watchdog_stop();
}

/* A timer that may wake the machine is never late; another one is late by no more than its tolerance. */
static void test_tolerance(void **state)
{
    static const struct {
        ULONG attributes;
        LONGLONG tolerance;
    } rows[] = {{0, SECOND}, {EX_TIMER_NO_WAKE, 0}, {EX_TIMER_NO_WAKE, MILLISECOND}, {EX_TIMER_NO_WAKE, EX_TIMER_UNLIMITED_TOLERANCE}};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        EXT_SET_PARAMETERS parameters;
        PEX_TIMER timer = ExAllocateTimer(NULL, NULL, rows[i].attributes);
        assert_non_null(timer);
        ExInitializeSetTimerParameters(&parameters);
        parameters.NoWakeTolerance = rows[i].tolerance;
        ExSetTimer(timer, -LONG_TIME, 0, &parameters);
        LONGLONG latest = (1LL << KiTimerTolerance(&timer->Timer)) - 1;
        if (rows[i].attributes == 0 || rows[i].tolerance == 0) {
            assert_int_equal(latest, 0);
        } else if (rows[i].tolerance != EX_TIMER_UNLIMITED_TOLERANCE) {
            assert_true(latest > 0 && latest <= rows[i].tolerance);
        } else {
            assert_true(latest > SECOND / 2);
        }
        ExDeleteTimer(timer, TRUE, TRUE, NULL);
    }
}

/* The debugger shows it. */
static void test_running_ends_with_the_callback(void **state)
{
    (void)state;
    calls c = {.count = 0, .hold = 1};
    watchdog_start(PATIENCE);
    PEX_TIMER timer = ExAllocateTimer(callback, &c, 0);
    ExSetTimer(timer, -MILLISECOND, 0, NULL);
    await(&c.count, 1);
    assert_true((KiReadHeader(&timer->Timer.Header) & KI_TIMER2_RUNNING) != 0);
    __atomic_store_n(&c.hold, 0, __ATOMIC_RELEASE);
    while ((KiReadHeader(&timer->Timer.Header) & KI_TIMER2_RUNNING) != 0) {
        HalDispatch.Yield();
    }
    ExDeleteTimer(timer, TRUE, TRUE, NULL);
    watchdog_stop();
}

static void test_unlimited_tolerance_expires(void **state)
{
    (void)state;
    calls c = {.count = 0};
    EXT_SET_PARAMETERS parameters;
    watchdog_start(PATIENCE);
    ExInitializeSetTimerParameters(&parameters);
    parameters.NoWakeTolerance = EX_TIMER_UNLIMITED_TOLERANCE;
    PEX_TIMER timer = ExAllocateTimer(callback, &c, EX_TIMER_NO_WAKE);
    ExSetTimer(timer, -MILLISECOND, 0, &parameters);
    await(&c.count, 1);
    ExDeleteTimer(timer, TRUE, TRUE, NULL);
    watchdog_stop();
}

typedef struct deletion_row {
    const char *name;
    LONGLONG due; /* 0: not set */
    LONGLONG period;
    BOOLEAN cancel, wait;
    BOOLEAN result;
    ULONG callbacks;
} deletion_row;

static const deletion_row deletion_rows[] = {
    {"never set", 0, 0, FALSE, FALSE, FALSE, 0},
    {"never set, cancel", 0, 0, TRUE, FALSE, FALSE, 0},
    {"never set, wait", 0, 0, TRUE, TRUE, FALSE, 0},
    {"pending, cancel", -LONG_TIME, 0, TRUE, FALSE, TRUE, 0},
    {"pending, cancel and wait", -LONG_TIME, 0, TRUE, TRUE, TRUE, 0},
    {"periodic, cancel and wait", -LONG_TIME, SECOND, TRUE, TRUE, TRUE, 0},
    {"pending, let it expire", -10 * MILLISECOND, 0, FALSE, FALSE, FALSE, 1},
    {"periodic, let it expire once", -10 * MILLISECOND, MILLISECOND, FALSE, FALSE, FALSE, 1},
};

static void run_deletion(const deletion_row *row, BOOLEAN with_callback)
{
    calls c = {.count = 0};
    EXT_DELETE_PARAMETERS parameters = deletion(&c);
    PEX_TIMER timer = ExAllocateTimer(with_callback ? callback : NULL, &c, 0);
    if (row->due != 0) {
        ExSetTimer(timer, row->due, row->period, NULL);
    }
    assert_int_equal(ExDeleteTimer(timer, row->cancel, row->wait, &parameters), row->result);
    if (row->wait || row->callbacks == 0) {
        assert_int_equal(read_count(&c.deleted), 1);
    }
    await(&c.deleted, 1);
    ULONG called = read_count(&c.count);
    if (row->period != 0 && row->callbacks != 0 && with_callback) {
        assert_true(called >= row->callbacks); /* more, if it has expired before it was deleted */
    } else {
        assert_int_equal(called, with_callback ? row->callbacks : 0);
    }
    KeStallExecutionProcessor(5000);
    assert_int_equal(read_count(&c.count), called);
    assert_int_equal(read_count(&c.deleted), 1);
}

static void test_deletion(void **state)
{
    (void)state;
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < ARRAYSIZE(deletion_rows); i += 1) {
        run_deletion(&deletion_rows[i], TRUE);
        run_deletion(&deletion_rows[i], FALSE);
    }
    watchdog_stop();
}

static void test_disabled_timer_refuses(void **state)
{
    (void)state;
    calls c = {.hold = 1};
    EXT_DELETE_PARAMETERS parameters = deletion(&c);
    watchdog_start(PATIENCE);
    PEX_TIMER timer = ExAllocateTimer(callback, &c, 0);
    ExSetTimer(timer, -MILLISECOND, 0, NULL);
    await(&c.count, 1);
    assert_true(KiReadHeader(&timer->Timer.Header) & KI_TIMER2_RUNNING);
    assert_false(ExDeleteTimer(timer, FALSE, FALSE, &parameters));
    assert_true(KiReadHeader(&timer->Timer.Header) & KI_TIMER2_DISABLED);
    assert_false(ExSetTimer(timer, -LONG_TIME, 0, NULL));
    assert_false(ExCancelTimer(timer, NULL));
    assert_false(ExDeleteTimer(timer, TRUE, FALSE, NULL));
    assert_int_equal(read_count(&c.deleted), 0);
    __atomic_store_n(&c.hold, 0, __ATOMIC_RELEASE);
    await(&c.deleted, 1);
    assert_int_equal(read_count(&c.count), 1);
    watchdog_stop();
}

static void release_callback(void *argument, unsigned index)
{
    calls *c = argument;
    (void)index;
    KeStallExecutionProcessor(20000);
    __atomic_store_n(&c->hold, 0, __ATOMIC_RELEASE);
}

/* With Wait, the deletion returns after the callback and the delete callback; without, it does not wait for them. */
static void test_deletion_while_the_callback_runs(void **state)
{
    (void)state;
    for (ULONG wait = 0; wait <= 1; wait += 1) {
        calls c = {.hold = 1};
        EXT_DELETE_PARAMETERS parameters = deletion(&c);
        PEX_TIMER timer = ExAllocateTimer(callback, &c, 0);
        ExSetTimer(timer, -MILLISECOND, 0, NULL);
        await(&c.count, 1);
        test_threads *threads = start_threads(1, release_callback, &c);
        assert_false(ExDeleteTimer(timer, TRUE, (BOOLEAN)wait, &parameters));
        if (wait) {
            assert_int_equal(read_count(&c.hold), 0);
            assert_int_equal(read_count(&c.deleted), 1);
        }
        join_threads(threads, PATIENCE);
        await(&c.deleted, 1);
    }
}

static void test_deletion_inside_the_callback(void **state)
{
    (void)state;
    static const LONGLONG periods[] = {0, MILLISECOND};
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < ARRAYSIZE(periods); i += 1) {
        calls c = {.delete_inside = TRUE};
        PEX_TIMER timer = ExAllocateTimer(callback, &c, 0);
        ExSetTimer(timer, -MILLISECOND, periods[i], NULL);
        await(&c.deleted, 1);
        KeStallExecutionProcessor(5000);
        assert_int_equal(read_count(&c.count), 1);
        assert_int_equal(read_count(&c.deleted), 1);
    }
    watchdog_stop();
}

static void both_exclusive_attributes(void *unused)
{
    (void)unused;
    ExAllocateTimer(NULL, NULL, EX_TIMER_HIGH_RESOLUTION | EX_TIMER_NO_WAKE);
}

static void wait_without_cancel(void *unused)
{
    (void)unused;
    ExDeleteTimer(ExAllocateTimer(NULL, NULL, 0), FALSE, TRUE, NULL);
}

static void absolute_high_resolution(void *unused)
{
    (void)unused;
    ExSetTimer(ExAllocateTimer(NULL, NULL, EX_TIMER_HIGH_RESOLUTION), 1, 0, NULL);
}

static void negative_tolerance(void *unused)
{
    EXT_SET_PARAMETERS parameters;
    (void)unused;
    ExInitializeSetTimerParameters(&parameters);
    parameters.NoWakeTolerance = -2;
    ExSetTimer(ExAllocateTimer(NULL, NULL, EX_TIMER_NO_WAKE), -1, 0, &parameters);
}

static void period_too_long(void *unused)
{
    (void)unused;
    ExSetTimer(ExAllocateTimer(NULL, NULL, 0), -1, MAXLONG + 1LL, NULL);
}

static void wait_at_dispatch_level(void *unused)
{
    KIRQL old;
    (void)unused;
    PEX_TIMER timer = ExAllocateTimer(NULL, NULL, 0);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    ExDeleteTimer(timer, TRUE, TRUE, NULL);
}

static void test_misuse(void **state)
{
    (void)state;
    static const struct {
        ULONG code;
        void (*misuse)(void *);
    } rows[] = {
        {TIMER_OR_DPC_INVALID, both_exclusive_attributes}, {TIMER_OR_DPC_INVALID, wait_without_cancel},
        {TIMER_OR_DPC_INVALID, absolute_high_resolution},  {TIMER_OR_DPC_INVALID, negative_tolerance},
        {TIMER_OR_DPC_INVALID, period_too_long},           {IRQL_NOT_LESS_OR_EQUAL, wait_at_dispatch_level},
    };
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        expect_bugcheck(rows[i].code, rows[i].misuse, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_running_ends_with_the_callback),
        cmocka_unit_test(test_unlimited_tolerance_expires),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_deletion),
        cmocka_unit_test(test_disabled_timer_refuses),
        cmocka_unit_test(test_deletion_while_the_callback_runs),
        cmocka_unit_test(test_deletion_inside_the_callback),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
