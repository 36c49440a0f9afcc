/*
 * The timing wheel against a reference model: an array of timers that is searched linearly. Time is simulated.
 */
#include "ke/timer.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define MAXIMUM_TIMERS 512
#define UNLIMITED MAXULONG

typedef struct model_timer {
    KTIMER timer;
    BOOLEAN set;
    ULONG64 order; /* of the set calls */
} model_timer;

typedef struct model {
    KI_WHEEL *wheel;
    ULONG64 time;
    ULONG64 sets;
    ULONG count;
    model_timer timers[MAXIMUM_TIMERS];
} model;

static model *new_model(ULONG count, ULONG64 time)
{
    model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->wheel = calloc(1, sizeof(*m->wheel));
    assert_non_null(m->wheel);
    m->count = count;
    m->time = time;
    assert_true(KiTurnWheel(m->wheel, time, UNLIMITED));
    return m;
}

static void free_model(model *m)
{
    free(m->wheel);
    free(m);
}

static void set_timer(model *m, ULONG index, ULONG64 due, ULONG tolerance)
{
    model_timer *t = &m->timers[index];
    t->timer.DueTime.QuadPart = due;
    t->timer.Processor = tolerance << KI_TIMER_TOLERANCE_SHIFT;
    t->set = TRUE;
    t->order = m->sets++;
    KiFileTimer(m->wheel, &t->timer);
}

static void cancel_timer(model *m, ULONG index)
{
    KiTakeOutTimer(m->wheel, &m->timers[index].timer);
    m->timers[index].set = FALSE;
}

static ULONG64 earliest_in_model(const model *m)
{
    ULONG64 earliest = KI_TIME_NEVER;
    for (ULONG i = 0; i < m->count; i += 1) {
        if (m->timers[i].set && KiTimerKey((PKTIMER)&m->timers[i].timer) < earliest) {
            earliest = KiTimerKey((PKTIMER)&m->timers[i].timer);
        }
    }
    return earliest;
}

/* Expires everything that the wheel reports as due and checks that it is, in order of time, and that nothing else was
   due. */
static ULONG expire(model *m, BOOLEAN check_order)
{
    ULONG64 last_key = 0, last_order = 0;
    ULONG expired = 0;
    PKTIMER timer;
    while ((timer = KiNextDueTimer(m->wheel, NULL)) != NULL) {
        model_timer *t = CONTAINING_RECORD(timer, model_timer, timer);
        ULONG64 key = KiTimerKey(timer);
        assert_true(t->set);
        assert_true(key <= m->time);
        if (check_order) {
            assert_true(key >= last_key);
            assert_true(key > last_key || expired == 0 || t->order > last_order);
        }
        last_key = key;
        last_order = t->order;
        KiTakeOutTimer(m->wheel, timer);
        t->set = FALSE;
        expired += 1;
    }
    assert_true(earliest_in_model(m) > m->time);
    return expired;
}

/* A slot marked as ordered is ordered, and is not due before all of its timers are. */
static void check_order(const KI_WHEEL_SLOT *slot)
{
    ULONG64 last = 0;
    if (slot->Latest == KI_TIME_NEVER) {
        return;
    }
    for (PLIST_ENTRY entry = slot->List.Flink; entry != &slot->List; entry = entry->Flink) {
        ULONG64 key = KiTimerKey(CONTAINING_RECORD(entry, KTIMER, TimerListEntry));
        assert_true(key >= last && key <= slot->Latest);
        last = key;
    }
}

static void check_wheel(const model *m)
{
    ULONG counted = 0, set = 0;
    for (ULONG number = 0; number <= KI_WHEEL_CASCADE; number += 1) {
        BOOLEAN occupied = (m->wheel->Occupied[number / 64] >> (number % 64)) & 1;
        PLIST_ENTRY head = &m->wheel->Slot[number].List;
        if (!occupied) {
            continue;
        }
        assert_false(IsListEmpty(head));
        assert_true((m->wheel->OccupiedLevels >> (number / 64)) & 1);
        if (number < KI_WHEEL_DUE) {
            check_order(&m->wheel->Slot[number]);
        }
        for (PLIST_ENTRY entry = head->Flink; entry != head; entry = entry->Flink) {
            PKTIMER timer = CONTAINING_RECORD(entry, KTIMER, TimerListEntry);
            if (number < KI_WHEEL_DUE) {
                assert_true(KiTimerKey(timer) > m->wheel->Time);
                assert_true(m->wheel->Slot[number].Earliest <= KiTimerKey(timer));
            }
            counted += 1;
        }
    }
    for (ULONG level = 0; level <= KI_WHEEL_LEVELS; level += 1) {
        assert_int_equal((m->wheel->OccupiedLevels >> level) & 1, m->wheel->Occupied[level] != 0);
    }
    for (ULONG i = 0; i < m->count; i += 1) {
        set += m->timers[i].set;
    }
    assert_int_equal(counted, set);
}

static ULONG64 random_span(test_random *random, ULONG bits)
{
    ULONG width = 1 + random_below(random, bits);
    return random_next(random) & ((1ULL << width) - 1);
}

typedef struct run {
    const char *name;
    ULONG64 start;
    ULONG timers;
    ULONG due_bits;  /* due times lie up to 2^n units ahead */
    ULONG step_bits; /* time advances by up to 2^n units */
    ULONG tolerance;
    BOOLEAN jump; /* half of the time goes straight to the next due time */
    BOOLEAN back; /* the clock is set back now and then */
    ULONG budget;
    ULONG intervals; /* the number of different due times, 0: any */
} run;

static const run runs[] = {
    {"close together", 0, 200, 8, 6, 1, FALSE, FALSE, UNLIMITED, 0},
    {"milliseconds", 1000000, 400, 18, 14, 1, FALSE, FALSE, UNLIMITED, 0},
    {"seconds to hours", 123456789012345ULL, 512, 36, 30, 1, TRUE, FALSE, UNLIMITED, 0},
    {"years", 132000000000000000ULL, 512, 56, 52, 1, TRUE, FALSE, UNLIMITED, 0},
    {"the end of time", KI_TIME_LAST - (1ULL << 40), 300, 50, 33, 1, TRUE, FALSE, UNLIMITED, 0},
    {"tolerant", 5, 300, 24, 18, 20, TRUE, FALSE, UNLIMITED, 0},
    {"clock set back", 132000000000000000ULL, 300, 40, 36, 1, TRUE, TRUE, UNLIMITED, 0},
    {"small budget", 77777, 400, 30, 28, 1, TRUE, FALSE, 3, 0},
    {"small budget and clock set back", 132000000000000000ULL, 300, 34, 32, 8, TRUE, TRUE, 7, 0},
    {"one interval", 99, 400, 16, 14, 1, FALSE, FALSE, UNLIMITED, 1},
    {"two intervals", 131071, 400, 19, 17, 1, TRUE, FALSE, UNLIMITED, 2},
    {"three intervals, tolerant", 1 << 24, 400, 22, 20, 14, TRUE, FALSE, UNLIMITED, 3},
    {"two intervals and clock set back", 132000000000000000ULL, 300, 20, 18, 1, TRUE, TRUE, 5, 2},
};

static void turn(model *m, const run *r)
{
    ULONG64 before = m->wheel->Time;
    ULONG calls = 0;
    while (!KiTurnWheel(m->wheel, m->time, r->budget)) {
        calls += 1;
        assert_int_equal(KiNextWheelTime(m->wheel), 0);
        assert_true(calls <= m->count * KI_WHEEL_LEVELS);
    }
    assert_int_equal(m->wheel->Time, m->time);
    if (!r->back) {
        assert_true(before <= m->time);
    }
}

static ULONG64 random_interval(const run *r, test_random *random)
{
    if (r->intervals == 0) {
        return 1 + random_span(random, r->due_bits);
    }
    return (1ULL << r->due_bits) - random_below(random, r->intervals) * (1ULL << (r->due_bits - 3));
}

static void advance(model *m, const run *r, test_random *random)
{
    if (r->back && random_below(random, 20) == 0) {
        m->time -= random_span(random, r->step_bits);
    } else if (r->jump && random_below(random, 2) == 0 && earliest_in_model(m) != KI_TIME_NEVER) {
        m->time = earliest_in_model(m);
    } else {
        m->time += random_span(random, r->step_bits);
    }
    if (m->time > KI_TIME_LAST - 1) {
        m->time = KI_TIME_LAST - 1;
    }
}

static void run_against_model(const run *r, ULONG steps)
{
    model *m = new_model(r->timers, r->start);
    test_random random;
    ULONG expired = 0;
    random_seed(&random, r->start + r->due_bits);
    for (ULONG step = 0; step < steps; step += 1) {
        for (ULONG i = random_below(&random, 8); i > 0; i -= 1) {
            ULONG index = random_below(&random, m->count);
            if (m->timers[index].set) {
                cancel_timer(m, index);
            } else {
                ULONG64 due = m->time + random_interval(r, &random);
                set_timer(m, index, due <= KI_TIME_LAST ? due : KI_TIME_LAST, random_below(&random, r->tolerance));
            }
        }
        assert_true(KiNextWheelTime(m->wheel) <= earliest_in_model(m));
        advance(m, r, &random);
        turn(m, r);
        expired += expire(m, r->budget == UNLIMITED && !r->back);
        if (step % 16 == 0) {
            check_wheel(m);
        }
    }
    assert_true(expired > 0);
    free_model(m);
}

static void test_wheel_against_model(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(runs); i += 1) {
        print_message("# %s\n", runs[i].name);
        run_against_model(&runs[i], (ULONG)test_rounds(4000));
    }
}

/* Rule 1 of timer.h. */
static void test_what_is_not_in_the_future_is_due(void **state)
{
    (void)state;
    static const ULONG64 times[] = {1, 63, 64, 4095, 1000000007, KI_TIME_LAST - 1};
    for (size_t i = 0; i < ARRAYSIZE(times); i += 1) {
        model *m = new_model(3, times[i]);
        set_timer(m, 0, times[i] - 1, 0);
        set_timer(m, 1, times[i], 0);
        set_timer(m, 2, times[i] + 1, 0);
        assert_ptr_equal(KiNextDueTimer(m->wheel, NULL), &m->timers[0].timer);
        assert_ptr_equal(KiNextDueTimer(m->wheel, &m->timers[0].timer), &m->timers[1].timer);
        assert_null(KiNextDueTimer(m->wheel, &m->timers[1].timer));
        free_model(m);
    }
}

/* Without removals, the wheel knows its next time exactly, at any distance, without intermediate turns. */
static void test_next_time_is_exact(void **state)
{
    (void)state;
    test_random random;
    random_seed(&random, 5);
    for (ULONG round = 0; round < 2000; round += 1) {
        model *m = new_model(16, random_span(&random, 60));
        for (ULONG i = 0; i < m->count; i += 1) {
            set_timer(m, i, m->time + 1 + random_span(&random, 60), 0);
            assert_int_equal(KiNextWheelTime(m->wheel), earliest_in_model(m));
        }
        m->time = earliest_in_model(m) - 1;
        assert_true(KiTurnWheel(m->wheel, m->time, UNLIMITED));
        assert_int_equal(expire(m, TRUE), 0);
        m->time += 1;
        assert_true(KiTurnWheel(m->wheel, m->time, UNLIMITED));
        assert_true(expire(m, TRUE) >= 1);
        free_model(m);
    }
}

/* A next time that is too early because its timer was removed costs one turn and is then correct. */
static void test_stale_next_time_heals(void **state)
{
    (void)state;
    model *m = new_model(3, 1000);
    set_timer(m, 0, 1000 + (1 << 20) + 1, 0);
    set_timer(m, 1, 1000 + (1 << 20) + 500, 0);
    cancel_timer(m, 0);
    m->time = KiNextWheelTime(m->wheel);
    assert_true(m->time <= earliest_in_model(m));
    assert_true(KiTurnWheel(m->wheel, m->time, UNLIMITED));
    assert_int_equal(expire(m, TRUE), 0);
    assert_int_equal(KiNextWheelTime(m->wheel), earliest_in_model(m));
    free_model(m);
}

/* Timers that were set in the order of their times expire together without being filed again; others are filed
   again. */
static void test_slots_in_order_are_due_as_they_are(void **state)
{
    static const struct {
        ULONG64 due[4];
        ULONG64 time;
        BOOLEAN moves; /* more than a budget of none allows */
        ULONG expired;
    } cases[] = {
        {{5000, 5001, 5001, 8000}, 8000, FALSE, 4},
        {{5000, 5001, 5001, 8000}, 7999, TRUE, 3},
        {{5001, 5000, 5002, 8000}, 8000, TRUE, 4},
        {{5000, 5001, 8000, 7999}, 8000, TRUE, 4},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        model *m = new_model(4, 0);
        for (ULONG timer = 0; timer < 4; timer += 1) {
            set_timer(m, timer, cases[i].due[timer], 0);
        }
        m->time = cases[i].time;
        assert_int_equal(KiTurnWheel(m->wheel, m->time, 0), !cases[i].moves);
        assert_true(KiTurnWheel(m->wheel, m->time, UNLIMITED));
        assert_int_equal(expire(m, TRUE), cases[i].expired);
        check_wheel(m);
        free_model(m);
    }
}

/* A slot that was empty meanwhile has no stale bounds. */
static void test_order_of_a_slot_begins_anew(void **state)
{
    (void)state;
    model *m = new_model(3, 0);
    set_timer(m, 0, 8000, 0);
    cancel_timer(m, 0);
    set_timer(m, 1, 5000, 0);
    set_timer(m, 2, 5001, 0);
    m->time = 5001;
    assert_true(KiTurnWheel(m->wheel, m->time, 0));
    assert_int_equal(expire(m, TRUE), 2);
    free_model(m);
}

/* Timers of a slot that is being filed again are removed like others. */
static void test_cancel_while_a_slot_is_filed_again(void **state)
{
    (void)state;
    for (ULONG filed = 0; filed < 4; filed += 1) {
        for (ULONG cancelled = 0; cancelled < 4; cancelled += 1) {
            model *m = new_model(4, 0);
            for (ULONG i = 0; i < 4; i += 1) {
                set_timer(m, i, 8000 - i, 0);
            }
            m->time = 8000;
            assert_false(KiTurnWheel(m->wheel, m->time, filed));
            cancel_timer(m, cancelled);
            check_wheel(m);
            assert_true(KiTurnWheel(m->wheel, m->time, UNLIMITED));
            assert_int_equal(expire(m, FALSE), 3);
            free_model(m);
        }
    }
}

static const struct tolerance_row {
    ULONG64 due;
    ULONG tolerance;
    ULONG64 key;
} tolerance_rows[] = {
    {1000, 0, 1000},         {1024, 10, 1024},  {1025, 10, 2048}, {2047, 10, 2048},
    {1, 4, 16},              {0, 12, 0},        {KI_TIME_LAST, 20, KI_TIME_LAST},
    {KI_TIME_LAST, 0, KI_TIME_LAST},
};

static void test_tolerance_moves_to_a_common_time(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(tolerance_rows); i += 1) {
        KTIMER timer = {.DueTime.QuadPart = tolerance_rows[i].due,
                        .Processor = 3 | tolerance_rows[i].tolerance << KI_TIMER_TOLERANCE_SHIFT};
        assert_int_equal(KiTimerKey(&timer), tolerance_rows[i].key);
        assert_int_equal(timer.Processor & KI_TIMER_NUMBER_MASK, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wheel_against_model),
        cmocka_unit_test(test_what_is_not_in_the_future_is_due),
        cmocka_unit_test(test_next_time_is_exact),
        cmocka_unit_test(test_stale_next_time_heals),
        cmocka_unit_test(test_slots_in_order_are_due_as_they_are),
        cmocka_unit_test(test_order_of_a_slot_begins_anew),
        cmocka_unit_test(test_cancel_while_a_slot_is_filed_again),
        cmocka_unit_test(test_tolerance_moves_to_a_common_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
