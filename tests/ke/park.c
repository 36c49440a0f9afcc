/* The parking layer, on a simulated host: each policy, each stage. */
#include "crowd.h"
#include "waittest.h"

#include "ke/fairness.h"
#include "ke/park.h"

#include <errno.h>

#define PAUSE_CYCLES 64u
#define YIELDS 3u
#define ERROR 4711

static BOOLEAN other_processor;
static ULONG yields, naps, waits, processor;

BOOLEAN __wrap_HalOtherProcessorAvailable(VOID);
BOOLEAN __wrap_HalOtherProcessorAvailable(VOID)
{
    return other_processor;
}

ULONG __wrap_HalSpinsForCycles(ULONG cycles);
ULONG __wrap_HalSpinsForCycles(ULONG cycles)
{
    return cycles / PAUSE_CYCLES;
}

static ULONG far_line;

ULONG __wrap_HalFarLineCycles(VOID);
ULONG __wrap_HalFarLineCycles(VOID)
{
    return far_line;
}

ULONG __wrap_HalYieldsBeforeSleep(VOID);
ULONG __wrap_HalYieldsBeforeSleep(VOID)
{
    return YIELDS;
}

VOID __wrap_HalGiveWay(ULONG round);
VOID __wrap_HalGiveWay(ULONG round)
{
    assert_int_equal(round, naps);
    naps += 1;
}

static ULONG timed_cycles;

static BOOLEAN written;

BOOLEAN __wrap_HalTimeLine(const volatile ULONG *word, ULONG pauses, PULONG cycles);
BOOLEAN __wrap_HalTimeLine(const volatile ULONG *word, ULONG pauses, PULONG cycles)
{
    (void)word;
    assert_int_not_equal(pauses, 0);
    *cycles = timed_cycles;
    return written;
}

static VOID count_yield(VOID)
{
    yields += 1;
}

static ULONG current_processor(VOID)
{
    return processor;
}

static HAL_DISPATCH host;

static int play_host(void **state)
{
    host = HalDispatch;
    HalDispatch.Yield = count_yield;
    HalDispatch.CurrentProcessor = current_processor;
    other_processor = TRUE;
    yields = naps = waits = processor = 0;
    KeGetCurrentThread()->WakerProcessor = 0;
    KeGetCurrentThread()->WokeSleeper = FALSE;
    errno = ERROR;
    return start_watch(state);
}

static int end_host(void **state)
{
    assert_int_equal(errno, ERROR);
    HalDispatch = host;
    return stop_watch(state);
}

typedef struct {
    ULONG looks;
    ULONG true_at; /* 0: never */
} condition;

static BOOLEAN is_true(PVOID context)
{
    condition *c = context;

    c->looks += 1;
    assert_true(c->true_at == 0 || c->looks <= c->true_at); /* not evaluated again */
    return c->looks == c->true_at;
}

static BOOLEAN park(KI_PARK_USE use, condition *c)
{
    return KiParkUntil(KeGetCurrentThread(), use, is_true, c);
}

static ULONG pauses_of(KI_PARK_USE use)
{
    return (KiParkPolicy[use].SpinCycles + KiParkPolicy[use].SpinCyclesPerProcessor * KeNumberProcessors) / PAUSE_CYCLES;
}

static void already_true(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {.true_at = 1};

        if (KiParkPolicy[use].SpinCycles == 0)
            continue;
        assert_true(park(use, &c));
        assert_int_equal(c.looks, 1);
    }
    assert_int_equal(yields + naps, 0);
}

static void true_while_spinning(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {.true_at = 3};

        if (KiParkPolicy[use].SpinCycles == 0)
            continue;
        assert_true(park(use, &c));
    }
    assert_int_equal(yields + naps, 0);
}

static void patience_ends(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {0};

        if (KiParkPolicy[use].Sleep == KiSleepInNaps)
            continue;
        yields = 0;
        assert_false(park(use, &c));
        assert_int_equal(yields, KiParkPolicy[use].Yields ? YIELDS : 0);
    }
    assert_int_equal(naps, 0);
}

static void true_while_yielding(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {.true_at = YIELDS};

        if (!KiParkPolicy[use].Yields)
            continue;
        other_processor = FALSE;
        yields = 0;
        assert_true(park(use, &c));
        assert_int_equal(yields, YIELDS);
    }
}

static void true_while_napping(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {.true_at = pauses_of(use) + 100};

        if (KiParkPolicy[use].Sleep != KiSleepInNaps)
            continue;
        naps = 0;
        assert_true(park(use, &c));
        assert_true(naps >= 100 - 1);
    }
}

/* Nothing spins, and a policy that only spins does not check. */
static void without_other_processor(void **state)
{
    (void)state;
    other_processor = FALSE;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        const KI_PARK_POLICY *policy = &KiParkPolicy[use];
        condition c = {.true_at = policy->Sleep == KiSleepInNaps ? 6 : 0};
        ULONG first = policy->Sleep != KiSleepElsewhere ? 1 : 0;

        yields = naps = 0;
        assert_int_equal(park(use, &c), c.true_at != 0);
        assert_int_equal(c.looks, policy->Yields ? YIELDS : c.true_at != 0 ? 6 : first);
        assert_int_equal(naps, c.true_at != 0 ? 5 : 0);
    }
}

static void waker_on_this_processor(void **state)
{
    (void)state;
    processor = 5;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition here = {0}, elsewhere = {0};

        if (KiParkPolicy[use].Spin == KiSpinAlways)
            continue;
        KeGetCurrentThread()->WakerProcessor = 5 + 1;
        assert_false(park(use, &here));
        assert_int_equal(here.looks, KiParkPolicy[use].Yields ? HalYieldsBeforeSleep() : 0);
        KeGetCurrentThread()->WakerProcessor = 4 + 1;
        assert_false(park(use, &elsewhere));
        assert_true(elsewhere.looks > here.looks + 1);
    }
}

/* A thread that has woken a sleeper spins longer, half as often after each missing reply. */
static void spin_for_reply(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    ULONG usual = pauses_of(KiParkForObject);
    ULONG long_spins = 0;
    condition c;

    (void)state;
    thread->SpinFailures = thread->SpinSkipped = 0;
    for (unsigned i = 0; i < 256; i++) {
        c = (condition){0};
        thread->WokeSleeper = TRUE;
        assert_false(park(KiParkForObject, &c));
        assert_false(thread->WokeSleeper);
        long_spins += c.looks > usual;
    }
    assert_in_range(long_spins, 6, 12); /* at 1, 2, 4, ..., then every 64th time */
    do {
        c = (condition){.true_at = usual + 2};
        thread->WokeSleeper = TRUE;
    } while (!park(KiParkForObject, &c));
    c = (condition){.true_at = usual + 2};
    thread->WokeSleeper = TRUE;
    assert_true(park(KiParkForObject, &c)); /* a reply that came makes the next long spin likely again */
    c = (condition){0};
    assert_false(park(KiParkForObject, &c));
    assert_int_equal(c.looks, usual);
}

static void gaps(void **state)
{
    condition c = {0};

    (void)state;
    assert_false(park(KiParkForPushLock, &c)); /* constant */
    assert_int_equal(c.looks, 10240 / 2048 + YIELDS);
    c = (condition){0};
    assert_false(park(KiParkForQueueEntry, &c)); /* 1, 2, 4, 8, 16, and then 20 pauses */
    assert_int_equal(c.looks, 5 + (10240 / PAUSE_CYCLES - 31 + 19) / 20);
    c = (condition){.true_at = 64};
    assert_true(park(KiParkForSpinLock, &c));
    assert_int_equal(naps, 0);
    c = (condition){0};
    assert_false(park(KiParkForObject, &c)); /* a pause each */
    assert_int_equal(c.looks, 10240 / PAUSE_CYCLES);
}

static void spin_count_of_the_object(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    KI_PATIENCE patience;
    ULONG looks = 0;

    (void)state;
    KiBeginPatience(&patience, thread, KiParkForBarrier);
    KiSpinFor(&patience, 7 * PAUSE_CYCLES);
    while (KiStayAwake(&patience, thread, KiParkForBarrier))
        looks += 1;
    assert_int_equal(looks, 7);
    KiSpinFor(&patience, 0);
    assert_false(KiStayAwake(&patience, thread, KiParkForBarrier));
    other_processor = FALSE;
    KiSpinFor(&patience, MAXULONG);
    assert_false(KiStayAwake(&patience, thread, KiParkForBarrier));
}

/* The same steps as those of KiParkForOther, without a condition. */
static void backing_off(void **state)
{
    const ULONG spinning = 128000 / 2000;

    (void)state;
    for (ULONG round = 0; round < spinning + 5; round++)
        KiBackOff(round);
    assert_int_equal(naps, 5);
    other_processor = FALSE;
    naps = 0;
    KiBackOff(0);
    assert_int_equal(naps, 1);
    assert_int_equal(yields, 0);
}

/* On a word. */

#define DONE 1u
#define MARK 4u

typedef struct {
    volatile ULONG word;
    ULONG looks;
    ULONG true_at;      /* a check that finds it done, although the word is not */
    ULONG wakes_before; /* spurious ones */
    ULONG deadlines;
    BOOLEAN times_out;
} place;

static place *current_place;

static BOOLEAN is_done(ULONG value, PVOID context)
{
    place *p = context;

    p->looks += 1;
    return (value & DONE) || p->looks == p->true_at;
}

static const HAL_DEADLINE *next_deadline(PVOID context)
{
    static HAL_DEADLINE deadline;
    place *p = context;

    p->deadlines += 1;
    deadline = (HAL_DEADLINE){HalInterruptTime, p->deadlines};
    return &deadline;
}

static BOOLEAN wait_on_place(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    place *p = current_place;

    assert_ptr_equal(address, &p->word);
    assert_int_equal(expected, p->word);
    assert_int_equal(expected, MARK);
    waits += 1;
    assert_int_equal(deadline->Time, waits);
    if (p->times_out && waits > p->wakes_before)
        return FALSE;
    if (waits > p->wakes_before)
        p->word = DONE;
    return TRUE;
}

static BOOLEAN park_on(KI_PARK_USE use, place *p)
{
    current_place = p;
    waits = 0;
    HalDispatch.Wait = wait_on_place;
    return KiParkOnWord(KeGetCurrentThread(), use, &p->word, MARK, is_done, next_deadline, p);
}

static void on_a_word(void **state)
{
    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        BOOLEAN spins = KiParkPolicy[use].SpinCycles != 0;
        place done = {.word = DONE};
        place spinning = {.true_at = spins ? 3 : 1};
        place asleep = {.wakes_before = 2};
        place late = {.wakes_before = 2, .times_out = TRUE};

        if (KiParkPolicy[use].Sleep != KiSleepOnWord)
            continue;
        assert_true(park_on(use, &done));
        assert_int_equal(done.looks, 1);
        assert_true(park_on(use, &spinning));
        assert_int_equal(waits, 0);
        assert_int_equal(spinning.word, 0);
        assert_true(park_on(use, &asleep));
        assert_int_equal(waits, 3);
        assert_int_equal(asleep.deadlines, 3);
        assert_int_equal(asleep.looks, pauses_of(use) + 4);
        assert_false(park_on(use, &late));
        assert_int_equal(waits, 3);
        assert_int_equal(late.word, MARK);
        other_processor = FALSE;
        asleep = (place){.wakes_before = 0};
        assert_true(park_on(use, &asleep));
        assert_int_equal(asleep.looks, 2);
        other_processor = TRUE;
    }
}

static volatile ULONG shared;
static int shared_data;

static void *wake_shared(void *unused)
{
    for (unsigned i = 0; i < 10; i++) {
        pause_briefly();
        HalDispatch.Wake(&shared, 1); /* spurious */
    }
    shared_data = 1;
    __atomic_store_n(&shared, 7, __ATOMIC_RELEASE);
    HalDispatch.Wake(&shared, 1);
    return unused;
}

static void asleep_in_the_host(void **state)
{
    pthread_t waker;

    (void)state;
    shared = 3;
    assert_int_equal(pthread_create(&waker, NULL, wake_shared, NULL), 0);
    errno = ERROR;
    KiSleepWhile(&shared, 3);
    assert_int_equal(errno, ERROR);
    assert_int_equal(shared_data, 1);
    assert_int_equal(pthread_join(waker, NULL), 0);
    KiSleepWhile(&shared, 3);
}

static const HAL_DEADLINE *soon(PVOID context)
{
    return context;
}

static BOOLEAN never(ULONG value, PVOID context)
{
    (void)context;
    return value != 0;
}

static void deadline_of_the_host(void **state)
{
    HAL_DEADLINE deadline = {HalInterruptTime, HalDispatch.QueryInterruptTime() + MILLISECOND};

    (void)state;
    shared = 0;
    assert_false(KiParkOnWord(NULL, KiParkAsleep, &shared, 0, never, soon, &deadline));
    assert_true(HalDispatch.QueryInterruptTime() >= deadline.Time);
}

/* A thread that owns a processor serves interrupts before each check, if the policy says so. */
static void interrupts(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)state;
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        condition c = {.true_at = 2};

        if (KiParkPolicy[use].SpinCycles == 0)
            continue;
        __atomic_fetch_or(&thread->Prcb->Owner, KI_PRCB_INTERRUPT, __ATOMIC_RELAXED);
        assert_true(park(use, &c));
        assert_int_equal((thread->Prcb->Owner & KI_PRCB_INTERRUPT) == 0, KiParkPolicy[use].ServesInterrupts);
    }
    KeLowerIrql(old);
}

static void near_and_far(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    volatile ULONG word = 1;
    KI_PATIENCE patience;

    (void)state;
    KiBeginPatience(&patience, thread, KiParkForPushLock);
    thread->NearLooks = thread->UntimedLooks = 0;
    timed_cycles = 10;
    written = FALSE;
    KiTimeLook(thread, &patience, &word); /* unchanged: not informative */
    assert_false(KiIsNear(thread));
    written = TRUE;
    KiTimeLook(thread, &patience, &word);
    assert_true(KiIsNear(thread));
    timed_cycles = 1000;
    for (unsigned i = 0; i < 255; i++) {
        KiTimeLook(thread, &patience, &word);
        assert_true(KiIsNear(thread));
    }
    KiTimeLook(thread, &patience, &word);
    assert_false(KiIsNear(thread));
}

/* After a wait for something else the next lock is checked often at first, once. */
static void lock_after_wait(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    ULONG rare = KiParkPolicy[KiParkForPushLock].FirstGap / PAUSE_CYCLES;
    KI_PATIENCE patience;

    (void)state;
    thread->HasWaited = FALSE;
    KiBeginLockPatience(&patience, thread, KiParkForPushLock, FALSE);
    assert_int_equal(patience.Gap, rare);
    for (KI_PARK_USE use = 0; use < KiParkUses; use++) {
        BOOLEAN forLock = KiParkPolicy[use].Spin == KiSpinAlways;

        KiBeginPatience(&patience, thread, use);
        KiBeginLockPatience(&patience, thread, KiParkForPushLock, FALSE);
        assert_int_equal(patience.Gap, forLock ? rare : 1);
        assert_true(KiStayAwake(&patience, thread, KiParkForPushLock));
        assert_int_equal(patience.Gap, forLock ? rare : 2);
        KiBeginLockPatience(&patience, thread, KiParkForPushLock, FALSE);
        assert_int_equal(patience.Gap, rare);
    }
}

/* The gaps grow with the way of a line, within limits, and leave room for as many checks. */
static void lock_on_far_lines(void **state)
{
    static const ULONG lines[][2] = {{0, 1}, {80, 1}, {2 * 2048 / 24 + 1, 2}, {8 * 2048 / 24 + 1, 8}, {2000, 8}};
    PKTHREAD thread = KeGetCurrentThread();
    ULONG rare = KiParkPolicy[KiParkForPushLock].FirstGap / PAUSE_CYCLES;
    KI_PATIENCE patience, near;

    (void)state;
    thread->HasWaited = FALSE;
    KiBeginPatience(&near, thread, KiParkForNearPushLock);
    for (ULONG i = 0; i < ARRAYSIZE(lines); i++) {
        far_line = lines[i][0];
        KiBeginLockPatience(&patience, thread, KiParkForPushLock, FALSE);
        assert_int_equal(patience.Gap, lines[i][1] * rare);
        assert_int_equal(patience.GreatestGap, lines[i][1] * rare);
        assert_int_equal(patience.Spins / patience.Gap, 5);
        KiBeginLockPatience(&patience, thread, KiParkForNearPushLock, FALSE);
        assert_int_equal(patience.GreatestGap, near.GreatestGap);
        assert_int_equal(patience.Spins, near.Spins);
    }
    far_line = 0;
}

/* In a crowd waiters check rarely even if the owner is near, and those of a lock that asks for it do not yield. */
static void lock_in_a_crowd(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    ULONG rare = KiParkPolicy[KiParkForPushLock].FirstGap / PAUSE_CYCLES;
    UCHAR near_looks = thread->NearLooks;
    KI_PATIENCE patience;

    (void)state;
    thread->HasWaited = FALSE;
    thread->NearLooks = 1;
    assert_int_equal(KiLockUse(thread), KiParkForNearPushLock);
    make_crowd();
    assert_int_equal(KiLockUse(thread), KiParkForPushLock);
    KiBeginLockPatience(&patience, thread, KiParkForPushLock, FALSE);
    assert_int_equal(patience.Gap, 2 * rare);
    assert_int_not_equal(patience.Yields, 0);
    thread->NearLooks = 0;
    assert_int_equal(KiLockUse(thread), KiParkForPushLock);
    KiBeginLockPatience(&patience, thread, KiParkForPushLock, TRUE);
    assert_int_equal(patience.Gap, rare);
    assert_int_equal(patience.Yields, 0);
    HalDisperseCrowd();
    KiBeginLockPatience(&patience, thread, KiParkForPushLock, TRUE);
    assert_int_not_equal(patience.Yields, 0);
    thread->NearLooks = near_looks;
}

int main(void)
{
#define HOSTED(test) cmocka_unit_test_setup_teardown(test, play_host, end_host)
    const struct CMUnitTest tests[] = {
        HOSTED(already_true),
        HOSTED(true_while_spinning),
        HOSTED(patience_ends),
        HOSTED(true_while_yielding),
        HOSTED(true_while_napping),
        HOSTED(without_other_processor),
        HOSTED(waker_on_this_processor),
        HOSTED(spin_for_reply),
        HOSTED(gaps),
        HOSTED(spin_count_of_the_object),
        HOSTED(backing_off),
        HOSTED(on_a_word),
        HOSTED(asleep_in_the_host),
        HOSTED(deadline_of_the_host),
        HOSTED(interrupts),
        HOSTED(near_and_far),
        HOSTED(lock_after_wait),
        HOSTED(lock_on_far_lines),
        HOSTED(lock_in_a_crowd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
