/* Timer objects: what setting, cancelling, expiring and waiting do to them. */
#include "ke/irql.h"
#include "ke/timer.h"
#include "ke/wait.h"
#include "mapped.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND 10000LL
#define SECOND (1000 * MILLISECOND)
#define LONG_TIME (3600 * SECOND)
#define PATIENCE 20 /* seconds: how long a test may take before it counts as hanging */

typedef struct expirations {
    KDPC dpc;
    volatile ULONG count;
    volatile ULONGLONG last;
    volatile KIRQL irql;
} expirations;

static void count_expiration(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    expirations *e = context;
    (void)dpc;
    (void)argument1;
    (void)argument2;
    __atomic_store_n(&e->last, KeQueryInterruptTime(), __ATOMIC_RELAXED);
    __atomic_store_n(&e->irql, KeGetCurrentIrql(), __ATOMIC_RELAXED);
    __atomic_fetch_add(&e->count, 1, __ATOMIC_RELEASE);
}

static ULONG count_of(const expirations *e)
{
    return __atomic_load_n(&e->count, __ATOMIC_ACQUIRE);
}

static void await_count(const expirations *e, ULONG count)
{
    LARGE_INTEGER pause = {.QuadPart = -MILLISECOND / 2};
    while (count_of(e) < count) {
        KeDelayExecutionThread(KernelMode, FALSE, &pause);
    }
}

static LARGE_INTEGER relative(LONGLONG units)
{
    LARGE_INTEGER time = {.QuadPart = -units};
    return time;
}

static LARGE_INTEGER absolute(LONGLONG units_from_now)
{
    LARGE_INTEGER time;
    KeQuerySystemTime(&time);
    time.QuadPart += units_from_now;
    return time;
}

/* Of a timer that may expire meanwhile. */
static ULONG64 due_time_of(PKTIMER timer)
{
    PKTHREAD thread = KiCurrentThread();
    KiEnterDispatcher(thread);
    ULONG64 word = KiLockObject(&timer->Header);
    ULONG64 due = timer->DueTime.QuadPart;
    KiUnlockObject(&timer->Header, word);
    KiExitDispatcher(thread);
    return due;
}

static NTSTATUS wait_for(PKTIMER timer, LONGLONG units)
{
    LARGE_INTEGER timeout = relative(units);
    return KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, &timeout);
}

static NTSTATUS poll(PKTIMER timer)
{
    return wait_for(timer, 0);
}

static void test_initialization_writes_the_header_only(void **state)
{
    (void)state;
    static const struct {
        TIMER_TYPE type;
        UCHAR object;
    } rows[] = {{NotificationTimer, 8}, {SynchronizationTimer, 9}};
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        KTIMER timer;
        memset(&timer, 0xcc, sizeof(timer));
        KeInitializeTimerEx(&timer, rows[i].type);
        assert_int_equal(timer.Header.Type, rows[i].object);
        assert_int_equal(timer.Header.TimerControlFlags, 0xcc);
        assert_int_equal(timer.Header.Size, sizeof(KTIMER) / 4);
        assert_int_equal(timer.Header.TimerMiscFlags, 0);
        assert_int_equal(timer.Header.SignalState, 0);
        assert_true(IsListEmpty(&timer.Header.WaitListHead));
        assert_int_equal(timer.DueTime.QuadPart, 0xccccccccccccccccULL);
        assert_int_equal(timer.Period, 0xcccccccc);
        assert_false(KeReadStateTimer(&timer));
        assert_false(KeCancelTimer(&timer));
    }
    KTIMER timer;
    KeInitializeTimer(&timer);
    assert_int_equal(timer.Header.Type, TimerNotificationObject);
}

static void test_initialization_works_at_any_level(void **state)
{
    (void)state;
    static const KIRQL levels[] = {PASSIVE_LEVEL, APC_LEVEL, DISPATCH_LEVEL, HIGH_LEVEL};
    for (ULONG i = 0; i < ARRAYSIZE(levels); i += 1) {
        KIRQL old;
        KTIMER timer;
        KeRaiseIrql(levels[i], &old);
        KeInitializeTimerEx(&timer, SynchronizationTimer);
        KeLowerIrql(old);
        assert_int_equal(timer.Header.SignalState, 0);
    }
}

/* Both types, relative and absolute, once and periodic, with and without a DPC, by each of the calls. */
typedef struct semantics {
    TIMER_TYPE type;
    BOOLEAN absolute;
    LONG period;
    BOOLEAN dpc;
    ULONG tolerance;
} semantics;

static BOOLEAN set(PKTIMER timer, const semantics *s, LONGLONG units, expirations *e)
{
    LARGE_INTEGER due = s->absolute ? absolute(units) : relative(units);
    PKDPC dpc = s->dpc ? &e->dpc : NULL;
    if (s->tolerance != 0) {
        return KeSetCoalescableTimer(timer, due, (ULONG)s->period, s->tolerance, dpc);
    }
    return s->period == 0 ? KeSetTimer(timer, due, dpc) : KeSetTimerEx(timer, due, s->period, dpc);
}

static void check_pending(PKTIMER timer, const semantics *s)
{
    assert_true(timer->Header.Inserted);
    assert_false(timer->Header.Expired);
    assert_int_equal(timer->Header.Absolute, s->absolute);
    assert_int_equal(timer->Header.EncodedTolerableDelay != 0, s->tolerance != 0);
    assert_int_equal(timer->Period, s->period);
    assert_true((timer->Processor & KI_TIMER_NUMBER_MASK) < KeNumberProcessors);
    assert_false(KeReadStateTimer(timer));
    assert_int_equal(poll(timer), STATUS_TIMEOUT);
}

static void check_set_and_cancel(PKTIMER timer, const semantics *s, expirations *e)
{
    assert_false(KeCancelTimer(timer));
    assert_false(set(timer, s, LONG_TIME, e));
    check_pending(timer, s);
    assert_true(set(timer, s, 2 * LONG_TIME, e));
    check_pending(timer, s);
    assert_true(KeCancelTimer(timer));
    assert_false(timer->Header.Inserted);
    assert_false(KeCancelTimer(timer));
    assert_false(KeReadStateTimer(timer));
    assert_int_equal(count_of(e), 0);
}

static void check_expiration(PKTIMER timer, const semantics *s, expirations *e)
{
    ULONGLONG before = KeQueryInterruptTime();
    assert_false(set(timer, s, 3 * MILLISECOND, e));
    assert_int_equal(KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    if (!s->absolute) {
        assert_true(KeQueryInterruptTime() - before >= 3 * MILLISECOND);
    }
    if (s->dpc) {
        await_count(e, 1);
        assert_int_equal(e->irql, DISPATCH_LEVEL);
    }
    if (s->period != 0) {
        assert_int_equal(KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
        if (s->dpc) {
            await_count(e, 3);
        }
        assert_true(KeCancelTimer(timer));
        assert_false(timer->Header.Absolute);
    } else {
        assert_false(KeCancelTimer(timer));
        assert_false(timer->Header.Inserted);
        assert_true(timer->Header.Expired);
        assert_int_equal(KeReadStateTimer(timer), s->type == NotificationTimer);
        assert_int_equal(poll(timer), s->type == NotificationTimer ? STATUS_SUCCESS : STATUS_TIMEOUT);
        assert_int_equal(poll(timer), s->type == NotificationTimer ? STATUS_SUCCESS : STATUS_TIMEOUT);
    }
}

/* A signaled timer becomes unsignaled when it is set, even if no thread has waited. */
static void check_set_again_after_expiration(PKTIMER timer, const semantics *s, expirations *e)
{
    semantics once = *s;
    once.period = 0;
    set(timer, &once, MILLISECOND, e);
    while (!KeReadStateTimer(timer)) {
        KeStallExecutionProcessor(50);
    }
    assert_false(set(timer, s, LONG_TIME, e));
    assert_false(KeReadStateTimer(timer));
    assert_true(KeCancelTimer(timer));
    assert_false(KeReadStateTimer(timer));
}

static void run_semantics(const semantics *s)
{
    expirations e = {.count = 0};
    KTIMER timer;
    KeInitializeDpc(&e.dpc, count_expiration, &e);
    KeInitializeTimerEx(&timer, s->type);
    check_set_and_cancel(&timer, s, &e);
    check_expiration(&timer, s, &e);
    check_set_again_after_expiration(&timer, s, &e);
    KeFlushQueuedDpcs();
}

static void test_semantics(void **state)
{
    (void)state;
    static const LONG periods[] = {0, 2};
    static const ULONG tolerances[] = {0, 8};
    watchdog_start(PATIENCE);
    for (ULONG row = 0; row < 32; row += 1) {
        semantics s = {
            .type = row & 1 ? SynchronizationTimer : NotificationTimer,
            .absolute = (row >> 1) & 1,
            .period = periods[(row >> 2) & 1],
            .dpc = (row >> 3) & 1,
            .tolerance = tolerances[(row >> 4) & 1],
        };
        run_semantics(&s);
    }
    watchdog_stop();
}

/* Absolute times that have passed, zero among them, signal inside the call, and the DPC has run when it returns. */
static void test_past_signals_at_once(void **state)
{
    (void)state;
    const LONGLONG past[] = {0, 1, absolute(-SECOND).QuadPart, absolute(-1).QuadPart};
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < ARRAYSIZE(past); i += 1) {
        expirations e = {.count = 0};
        KTIMER timer;
        KeInitializeDpc(&e.dpc, count_expiration, &e);
        KeInitializeTimer(&timer);
        LARGE_INTEGER due = {.QuadPart = past[i]};
        assert_false(KeSetTimer(&timer, due, NULL));
        assert_true(KeReadStateTimer(&timer));
        assert_false(timer.Header.Inserted);
        assert_true(timer.Header.Expired);
        assert_false(KeSetTimer(&timer, due, &e.dpc));
        assert_int_equal(count_of(&e), 1);
        assert_int_equal(e.irql, DISPATCH_LEVEL);
        assert_false(KeCancelTimer(&timer));
        /* A period begins at that moment. */
        ULONGLONG before = KeQueryInterruptTime();
        assert_false(KeSetTimerEx(&timer, due, 3600000, NULL));
        assert_true(KeReadStateTimer(&timer));
        assert_true(timer.Header.Inserted);
        assert_true(timer.DueTime.QuadPart >= before + LONG_TIME);
        assert_true(timer.DueTime.QuadPart <= KeQueryInterruptTime() + LONG_TIME);
        assert_true(KeCancelTimer(&timer));
        assert_true(KeReadStateTimer(&timer));
    }
    watchdog_stop();
}

static void test_dpc_waits_for_the_level_to_drop(void **state)
{
    (void)state;
    expirations e = {.count = 0};
    LARGE_INTEGER past = {.QuadPart = 0};
    KIRQL old;
    KTIMER timer;
    KeInitializeDpc(&e.dpc, count_expiration, &e);
    KeInitializeTimer(&timer);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeSetTimer(&timer, past, &e.dpc);
    assert_true(KeReadStateTimer(&timer));
    assert_int_equal(count_of(&e), 0);
    KeLowerIrql(old);
    assert_int_equal(count_of(&e), 1);
}

static void test_far_future(void **state)
{
    (void)state;
    static const LONGLONG dues[] = {-MAXLONGLONG, -MAXLONGLONG - 1, MAXLONGLONG, -365 * 24 * LONG_TIME};
    for (ULONG i = 0; i < ARRAYSIZE(dues); i += 1) {
        KTIMER timer;
        LARGE_INTEGER due = {.QuadPart = dues[i]};
        KeInitializeTimer(&timer);
        assert_false(KeSetCoalescableTimer(&timer, due, 0, MAXULONG, NULL));
        assert_int_equal(poll(&timer), STATUS_TIMEOUT);
        assert_true(timer.DueTime.QuadPart <= KI_TIME_LAST);
        assert_true(KeCancelTimer(&timer));
    }
}

static const struct tolerance_row {
    ULONG milliseconds;
    ULONG encoded; /* 2^n units of 100 ns, never more than requested */
} tolerance_rows[] = {{0, 0}, {1, 13}, {2, 14}, {15, 17}, {1000, 23}, {MAXULONG, 45}};

static void test_tolerable_delay_is_kept_encoded(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(tolerance_rows); i += 1) {
        KTIMER timer;
        KeInitializeTimer(&timer);
        KeSetCoalescableTimer(&timer, relative(LONG_TIME), 0, tolerance_rows[i].milliseconds, NULL);
        assert_int_equal(timer.Header.EncodedTolerableDelay, tolerance_rows[i].encoded);
        assert_true(KiTimerKey(&timer) >= timer.DueTime.QuadPart);
        assert_true(KiTimerKey(&timer) - timer.DueTime.QuadPart <= tolerance_rows[i].milliseconds * MILLISECOND);
        assert_true(KeCancelTimer(&timer));
    }
}

/* Timers with a tolerance coalesce; each is late by no more than its tolerance. */
static void test_tolerant_timers_coalesce(void **state)
{
    (void)state;
    KTIMER timers[32];
    ULONG64 different = 0, last = 0;
    for (ULONG i = 0; i < ARRAYSIZE(timers); i += 1) {
        KeInitializeTimer(&timers[i]);
        KeSetCoalescableTimer(&timers[i], relative(LONG_TIME + i * MILLISECOND), 0, 1000, NULL);
        different += KiTimerKey(&timers[i]) != last;
        last = KiTimerKey(&timers[i]);
    }
    assert_true(different <= 2);
    for (ULONG i = 0; i < ARRAYSIZE(timers); i += 1) {
        assert_true(KeCancelTimer(&timers[i]));
    }
}

/* Relative timers of every length from nothing to 50 ms: none early, each exactly once. */
#define MANY 400

static void test_never_early(void **state)
{
    (void)state;
    typedef struct {
        KTIMER timer;
        expirations e;
        ULONGLONG due;
    } row;
    row *rows = calloc(MANY, sizeof(*rows));
    test_random random;
    random_seed(&random, 42);
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < MANY; i += 1) {
        LONGLONG units = random_below(&random, 50 * MILLISECOND);
        KeInitializeDpc(&rows[i].e.dpc, count_expiration, &rows[i].e);
        KeInitializeTimer(&rows[i].timer);
        rows[i].due = KeQueryInterruptTime() + (ULONGLONG)units;
        KeSetTimer(&rows[i].timer, relative(units == 0 ? 1 : units), &rows[i].e.dpc);
    }
    for (ULONG i = 0; i < MANY; i += 1) {
        assert_int_equal(KeWaitForSingleObject(&rows[i].timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
        assert_true(KeQueryInterruptTime() >= rows[i].due);
        await_count(&rows[i].e, 1);
        assert_true(rows[i].e.last >= rows[i].due);
    }
    KeFlushQueuedDpcs();
    for (ULONG i = 0; i < MANY; i += 1) {
        assert_int_equal(rows[i].e.count, 1);
    }
    watchdog_stop();
    free(rows);
}

static void test_absolute_never_early(void **state)
{
    (void)state;
    watchdog_start(PATIENCE);
    for (LONGLONG units = 1; units < 20 * MILLISECOND; units = units * 3 + 1) {
        LARGE_INTEGER due = absolute(units), now;
        KTIMER timer;
        KeInitializeTimerEx(&timer, SynchronizationTimer);
        KeSetTimer(&timer, due, NULL);
        assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
        KeQuerySystemTime(&now);
        assert_true(now.QuadPart >= due.QuadPart);
    }
    watchdog_stop();
}

/* Every expiration of a periodic timer is a whole number of periods after the first due time. */
static void test_period_does_not_drift(void **state)
{
    (void)state;
    KTIMER timer;
    watchdog_start(PATIENCE);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeSetTimerEx(&timer, relative(MILLISECOND), 2, NULL);
    ULONG64 first = due_time_of(&timer);
    for (ULONG i = 0; i < 20; i += 1) {
        assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
        if (i == 7) {
            KeStallExecutionProcessor(9000);
        }
    }
    assert_true(KeCancelTimer(&timer));
    assert_int_equal((timer.DueTime.QuadPart - first) % (2 * MILLISECOND), 0);
    watchdog_stop();
}

static void test_setting_again_replaces_everything(void **state)
{
    (void)state;
    expirations first = {.count = 0}, second = {.count = 0};
    KTIMER timer;
    watchdog_start(PATIENCE);
    KeInitializeDpc(&first.dpc, count_expiration, &first);
    KeInitializeDpc(&second.dpc, count_expiration, &second);
    KeInitializeTimer(&timer);
    KeSetTimerEx(&timer, relative(LONG_TIME), 1, &first.dpc);
    assert_true(KeSetTimer(&timer, relative(MILLISECOND), &second.dpc));
    assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    await_count(&second, 1);
    assert_int_equal(wait_for(&timer, 10 * MILLISECOND), STATUS_SUCCESS);
    assert_false(KeCancelTimer(&timer));
    KeFlushQueuedDpcs();
    assert_int_equal(first.count, 0);
    assert_int_equal(second.count, 1);
    watchdog_stop();
}

/* A notification timer releases all waiters, a synchronization timer one per expiration. */
typedef struct waiters {
    KTIMER timer;
    volatile ULONG waiting;
    volatile ULONG released;
} waiters;

static void wait_once(void *argument, unsigned index)
{
    waiters *w = argument;
    (void)index;
    __atomic_fetch_add(&w->waiting, 1, __ATOMIC_RELAXED);
    assert_int_equal(KeWaitForSingleObject(&w->timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    __atomic_fetch_add(&w->released, 1, __ATOMIC_RELAXED);
}

#define WAITERS 4

static test_threads *start_waiters(waiters *w, TIMER_TYPE type)
{
    KeInitializeTimerEx(&w->timer, type);
    test_threads *threads = start_threads(WAITERS, wait_once, w);
    while (__atomic_load_n(&w->waiting, __ATOMIC_RELAXED) < WAITERS) {
        HalDispatch.Yield();
    }
    return threads;
}

static void test_notification_releases_all(void **state)
{
    (void)state;
    waiters w = {.waiting = 0};
    test_threads *threads = start_waiters(&w, NotificationTimer);
    KeSetTimer(&w.timer, relative(5 * MILLISECOND), NULL);
    join_threads(threads, PATIENCE);
    assert_int_equal(w.released, WAITERS);
    assert_true(KeReadStateTimer(&w.timer));
}

static void test_synchronization_releases_one(void **state)
{
    (void)state;
    waiters w = {.waiting = 0};
    test_threads *threads = start_waiters(&w, SynchronizationTimer);
    for (ULONG expired = 1; expired <= WAITERS; expired += 1) {
        KeSetTimer(&w.timer, relative(MILLISECOND), NULL);
        while (__atomic_load_n(&w.released, __ATOMIC_RELAXED) < expired) {
            HalDispatch.Yield();
        }
        KeStallExecutionProcessor(2000);
        assert_int_equal(__atomic_load_n(&w.released, __ATOMIC_RELAXED), expired);
    }
    join_threads(threads, PATIENCE);
    assert_false(KeReadStateTimer(&w.timer));
}

static void test_wait_all_with_timers(void **state)
{
    (void)state;
    KTIMER timers[3];
    PVOID objects[] = {&timers[0], &timers[1], &timers[2]};
    watchdog_start(PATIENCE);
    for (ULONG i = 0; i < 3; i += 1) {
        KeInitializeTimerEx(&timers[i], SynchronizationTimer);
        KeSetTimer(&timers[i], relative((3 - i) * 2 * MILLISECOND), NULL);
    }
    assert_int_equal(KeWaitForMultipleObjects(3, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL),
                     STATUS_SUCCESS);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_false(KeReadStateTimer(&timers[i]));
    }
    for (ULONG i = 0; i < 3; i += 1) {
        KeSetTimer(&timers[i], relative(2 * MILLISECOND), NULL);
        assert_int_equal(KeWaitForMultipleObjects(3, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL), i);
    }
    watchdog_stop();
}

/*
 * Clock steps, simulated: absolute timers follow, relative ones do not. The clock thread sleeps by the host's clock, so
 * waits for an absolute timer happen at offset 0, and each test returns to it.
 */
static ULONGLONG (*host_system_time)(void);
static volatile LONGLONG clock_offset;

static ULONGLONG stepped_system_time(void)
{
    return host_system_time() + (ULONGLONG)__atomic_load_n(&clock_offset, __ATOMIC_RELAXED);
}

/* The host tells the clock thread of a step; here a timer that is due at once makes it check. */
static void step_clock(LONGLONG units)
{
    KTIMER nudge;
    __atomic_fetch_add(&clock_offset, units, __ATOMIC_RELAXED);
    KeInitializeTimer(&nudge);
    KeSetTimer(&nudge, relative(1), NULL);
    assert_int_equal(KeWaitForSingleObject(&nudge, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
}

/* Before there is a clock thread. */
static void install_stepped_clock(void)
{
    host_system_time = HalDispatch.QuerySystemTime;
    HalDispatch.QuerySystemTime = stepped_system_time;
}

static void test_clock_step_forward(void **state)
{
    (void)state;
    KTIMER by_system, by_interrupt;
    watchdog_start(PATIENCE);
    KeInitializeTimer(&by_system);
    KeInitializeTimer(&by_interrupt);
    KeSetTimer(&by_system, absolute(LONG_TIME), NULL);
    KeSetTimer(&by_interrupt, relative(LONG_TIME), NULL);
    step_clock(LONG_TIME / 2);
    assert_false(KeReadStateTimer(&by_system));
    step_clock(LONG_TIME);
    assert_int_equal(KeWaitForSingleObject(&by_system, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_false(KeReadStateTimer(&by_interrupt));
    assert_true(KeCancelTimer(&by_interrupt));
    step_clock(-LONG_TIME * 3 / 2);
    watchdog_stop();
}

static void test_clock_step_back(void **state)
{
    (void)state;
    KTIMER before, after;
    watchdog_start(PATIENCE);
    KeInitializeTimer(&before);
    KeInitializeTimer(&after);
    step_clock(LONG_TIME);
    KeSetTimer(&before, absolute(SECOND / 20), NULL);
    step_clock(-LONG_TIME);
    KeSetTimer(&after, absolute(SECOND / 20), NULL);
    assert_int_equal(KeWaitForSingleObject(&after, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_false(KeReadStateTimer(&before));
    assert_true(KeCancelTimer(&before));
    watchdog_stop();
}

/* Before the clock thread looks at the new time. */
static void test_set_after_a_clock_step_back(void **state)
{
    (void)state;
    KTIMER timer;
    watchdog_start(PATIENCE);
    KeInitializeTimer(&timer);
    step_clock(LONG_TIME);
    __atomic_fetch_sub(&clock_offset, LONG_TIME, __ATOMIC_RELAXED);
    KeSetTimer(&timer, absolute(LONG_TIME / 2), NULL);
    step_clock(0);
    step_clock(0);
    assert_false(KeReadStateTimer(&timer));
    assert_true(KeCancelTimer(&timer));
    watchdog_stop();
}

/* From its first expiration on a periodic timer ignores the system clock. */
static void test_clock_step_and_period(void **state)
{
    (void)state;
    KTIMER timer;
    watchdog_start(PATIENCE);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeSetTimerEx(&timer, absolute(MILLISECOND), 2, NULL);
    assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    step_clock(-LONG_TIME);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(wait_for(&timer, 10 * SECOND), STATUS_SUCCESS);
    }
    assert_true(KeCancelTimer(&timer));
    step_clock(LONG_TIME);
    watchdog_stop();
}

/* Runs in a forked child; TRUE is success. */
static void run_in_child(BOOLEAN (*function)(PVOID context), PVOID context)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(PATIENCE * test_slowdown());
        _exit(function(context) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

static BOOLEAN timers_expire_in_child(PVOID context)
{
    KTIMER *timers = context;
    KTIMER late;
    KeInitializeTimer(&late);
    KeSetTimer(&late, relative(MILLISECOND), NULL);
    return KeWaitForSingleObject(&timers[0], Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS &&
           KeWaitForSingleObject(&timers[1], Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS &&
           KeWaitForSingleObject(&timers[1], Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS &&
           KeWaitForSingleObject(&late, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS &&
           KeCancelTimer(&timers[1]) && KeCancelTimer(&timers[2]);
}

/* Timers that are pending at a fork expire on both sides. */
static void test_fork(void **state)
{
    (void)state;
    KTIMER timers[3];
    for (ULONG i = 0; i < ARRAYSIZE(timers); i += 1) {
        KeInitializeTimerEx(&timers[i], SynchronizationTimer);
    }
    KeSetTimer(&timers[0], relative(100 * MILLISECOND), NULL);
    KeSetTimerEx(&timers[1], relative(50 * MILLISECOND), 5, NULL);
    KeSetTimer(&timers[2], relative(LONG_TIME), NULL);
    run_in_child(timers_expire_in_child, timers);
    assert_int_equal(wait_for(&timers[0], PATIENCE * SECOND), STATUS_SUCCESS);
    assert_int_equal(wait_for(&timers[1], PATIENCE * SECOND), STATUS_SUCCESS);
    assert_true(KeCancelTimer(&timers[1]));
    assert_true(KeCancelTimer(&timers[2]));
}

static BOOLEAN timers_expire_without_thread(PVOID context)
{
    struct rlimit unlimited, none;
    KTIMER first, second;
    (void)context;
    KeInitializeTimer(&first);
    KeInitializeTimer(&second);
    KeCancelTimer(&first);
    if (getrlimit(RLIMIT_AS, &unlimited) != 0) {
        return FALSE;
    }
    none = unlimited;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_AS, &none);
    for (ULONG tries = 0; tries < 50; tries += 1) {
        KeSetTimer(&first, relative(MILLISECOND), NULL);
        if (!KeReadStateTimer(&first)) {
            break; /* otherwise the host took longer for the call than the interval of the timer */
        }
    }
    KeStallExecutionProcessor(20000);
    if (KeReadStateTimer(&first)) {
        return FALSE; /* there is a thread: this has shown nothing */
    }
    KeSetTimer(&second, relative(MILLISECOND), NULL);
    BOOLEAN by_setting = KeReadStateTimer(&first);
    KeStallExecutionProcessor(5000);
    KiPollClock();
    BOOLEAN by_polling = KeReadStateTimer(&second);
    setrlimit(RLIMIT_AS, &unlimited);
    KeSetTimer(&first, relative(MILLISECOND), NULL);
    return by_setting && by_polling && wait_for(&first, PATIENCE * SECOND) == STATUS_SUCCESS;
}

/*
 * The clock files a slot again when its time begins. That of a new timer is still to come, even if the timer is the
 * first one of the process: otherwise the clock would touch memory in which the verifier is just finding the timer.
 */
static BOOLEAN first_timers_stay(PVOID context)
{
    const LONGLONG day = 24 * LONG_TIME;
    const LARGE_INTEGER due[2] = {relative(day), absolute(day)};
    const ULONG64 now[2] = {KeQueryInterruptTime(), (ULONG64)due[1].QuadPart - day};
    BOOLEAN stay = TRUE;
    (void)context;
    for (unsigned index = 0; index < 2; index++) {
        KTIMER timer;
        KeInitializeTimer(&timer);
        KeSetTimer(&timer, due[index], NULL);
        ULONG64 word = *(volatile ULONG64 *)KiHeaderWord(&timer.Header);
        unsigned shift = KI_WHEEL_DIGIT * (unsigned)(word >> KI_TIMER_INDEX_SHIFT & (KI_WHEEL_SLOTS - 1));
        ULONG64 begin = timer.DueTime.QuadPart >> shift << shift;
        stay = stay && begin > now[index] && KeCancelTimer(&timer);
    }
    return stay;
}

static void test_first_timers_stay_in_their_slots(void **state)
{
    (void)state;
    run_in_child(first_timers_stay, NULL);
}

/* While the host refuses the clock's thread, timers expire when others are set or waits time out. */
static void test_without_a_thread(void **state)
{
    (void)state;
    if (test_slowdown() > 1) {
        skip(); /* a sanitizer needs address space of its own */
    }
    run_in_child(timers_expire_without_thread, NULL);
}

/* A near time counts from the moment of the call, a far one from the host's last tick and a tick later. */
static void test_where_intervals_begin(void **state)
{
    static const struct {
        LONGLONG interval;
        BOOLEAN exact;
    } cases[] = {{1, FALSE}, {SECOND - 1, FALSE}, {SECOND, TRUE}, {LONG_TIME, TRUE}};
    KTIMER timer;
    (void)state;
    KeInitializeTimer(&timer);
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        KI_TIMER_SETTING setting = {.DueTime = -cases[i].interval, .Exact = cases[i].exact};
        LONGLONG before = (LONGLONG)HalDispatch.QueryInterruptTime();
        KiSetTimer(&timer, &setting);
        LONGLONG begin = (LONGLONG)timer.DueTime.QuadPart - cases[i].interval;
        assert_true(begin >= before && begin <= (LONGLONG)HalDispatch.QueryInterruptTime());
        KeCancelTimer(&timer);
    }
    LONGLONG tick = (LONGLONG)HalDispatch.QueryTickTime();
    KeSetTimer(&timer, relative(SECOND), NULL);
    LONGLONG begin = (LONGLONG)timer.DueTime.QuadPart - SECOND - (LONGLONG)HalTickLength;
    assert_true(begin >= tick && begin <= (LONGLONG)HalDispatch.QueryTickTime());
    KeCancelTimer(&timer);
}

#define CROWD 200 /* more than the clock removes at a time, and more than it examines */

typedef struct crowd {
    volatile ULONG held, released;
    KTIMER timers[CROWD];
    expirations ran[CROWD];
    NTSTATUS status[2]; /* of those that wait for some of them */
} crowd;

static void hold_clock(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    crowd *c = context;
    (void)dpc;
    (void)argument1;
    (void)argument2;
    __atomic_store_n(&c->held, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&c->released, __ATOMIC_ACQUIRE)) {
        KeStallExecutionProcessor(10);
    }
}

/* Both wait for two timers that the clock expires at the same time. */
static void wait_in_crowd(void *context, unsigned index)
{
    crowd *c = context;
    PVOID objects[] = {&c->timers[index == 0 ? 3 : 7], &c->timers[index == 0 ? 7 : 3]};
    c->status[index] = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
}

static BOOLEAN has_dpc(ULONG index)
{
    return index < CROWD / 2 && index % 4 != 3;
}

static void check_crowd(crowd *c)
{
    for (ULONG i = 0; i < CROWD; i += 1) {
        assert_int_equal(wait_for(&c->timers[i], PATIENCE * SECOND), STATUS_SUCCESS);
        assert_false(KeCancelTimer(&c->timers[i]));
        if (has_dpc(i)) {
            await_count(&c->ran[i], 1);
        }
    }
    KeFlushQueuedDpcs();
    for (ULONG i = 0; i < CROWD; i += 1) {
        assert_int_equal(count_of(&c->ran[i]), has_dpc(i));
    }
}

/* While a DPC blocks the clock, timers become due: all expire, those with a DPC and those behind them, with waiters or
   without. */
static void test_many_due_at_once(void **state)
{
    crowd *c = calloc(1, sizeof(*c));
    KTIMER holder;
    KDPC hold;
    (void)state;
    assert_non_null(c);
    KeInitializeTimer(&holder);
    KeInitializeDpc(&hold, hold_clock, c);
    for (ULONG i = 0; i < CROWD; i += 1) {
        KeInitializeTimer(&c->timers[i]);
        KeInitializeDpc(&c->ran[i].dpc, count_expiration, &c->ran[i]);
    }
    test_threads *threads = start_threads(2, wait_in_crowd, c);
    KeSetTimer(&holder, relative(1), &hold);
    while (!__atomic_load_n(&c->held, __ATOMIC_ACQUIRE)) {
        KeStallExecutionProcessor(10);
    }
    for (ULONG i = 0; i < CROWD; i += 1) {
        KeSetTimer(&c->timers[i], relative(1), has_dpc(i) ? &c->ran[i].dpc : NULL);
    }
    __atomic_store_n(&c->released, 1, __ATOMIC_RELEASE);
    check_crowd(c);
    join_threads(threads, PATIENCE);
    assert_int_equal(c->status[0], STATUS_SUCCESS);
    assert_int_equal(c->status[1], STATUS_SUCCESS);
    free(c);
}

/* A processor's table is made once, with its first timer. */
static void test_setting_takes_no_memory(void **state)
{
    KTIMER timer;
    unsigned long before = 0;
    (void)state;
    KeInitializeTimer(&timer);
    for (ULONG processor = 0; processor < KeNumberProcessors && processor < 2; processor += 1) {
        KeSetSystemAffinityThread((KAFFINITY)1 << processor);
        for (ULONG round = 0; round < 1000; round += 1) {
            before = round == 1 ? mapped_pages() : before;
            KeSetTimer(&timer, relative(LONG_TIME), NULL);
            assert_true(KeCancelTimer(&timer));
        }
        assert_in_range(mapped_pages(), 0, before + 1024);
    }
    KeRevertToUserAffinityThread();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_timers_stay_in_their_slots), /* first: no timer was set before */
        cmocka_unit_test(test_without_a_thread), /* no thread has ended: the host keeps their stacks for new ones */
        cmocka_unit_test(test_initialization_writes_the_header_only),
        cmocka_unit_test(test_initialization_works_at_any_level),
        cmocka_unit_test(test_semantics),
        cmocka_unit_test(test_past_signals_at_once),
        cmocka_unit_test(test_dpc_waits_for_the_level_to_drop),
        cmocka_unit_test(test_far_future),
        cmocka_unit_test(test_tolerable_delay_is_kept_encoded),
        cmocka_unit_test(test_tolerant_timers_coalesce),
        cmocka_unit_test(test_where_intervals_begin),
        cmocka_unit_test(test_never_early),
        cmocka_unit_test(test_absolute_never_early),
        cmocka_unit_test(test_period_does_not_drift),
        cmocka_unit_test(test_setting_again_replaces_everything),
        cmocka_unit_test(test_notification_releases_all),
        cmocka_unit_test(test_synchronization_releases_one),
        cmocka_unit_test(test_wait_all_with_timers),
        cmocka_unit_test(test_clock_step_forward),
        cmocka_unit_test(test_clock_step_back),
        cmocka_unit_test(test_set_after_a_clock_step_back),
        cmocka_unit_test(test_clock_step_and_period),
        cmocka_unit_test(test_many_due_at_once),
        cmocka_unit_test(test_setting_takes_no_memory),
        cmocka_unit_test(test_fork),
    };
    install_stepped_clock();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
