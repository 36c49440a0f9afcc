/* Turns, with a host that the test simulates: the clock, the processors, and what a yield, a sleep and a wake do. */
#include "haltest.h"

#define TURN 500ULL
#define OLD_TURN (20 * TURN)
#define WAITS_PER_CLOCK 8
#define LONGEST_REST (20 * TURN)
#define TURNS_PER_LOOK 4
#define PERIOD (1280 * TURN)
#define CROWD_PER_PROCESSOR 16

static ULONGLONG now;
static ULONG processor, switches, switches_per_yield;
static unsigned yields, wakes, rests;
static void (*while_resting)(void);

static ULONGLONG query_time(VOID)
{
    return now;
}

static ULONG query_processor(VOID)
{
    return processor;
}

static ULONG count_switches(VOID)
{
    return switches;
}

static VOID yield(VOID)
{
    yields++;
    switches += switches_per_yield;
}

static volatile ULONG *resting_on;

static VOID wake(volatile ULONG *address, ULONG count)
{
    assert_ptr_equal(address, resting_on);
    assert_int_equal(count, 1);
    wakes++;
}

static BOOLEAN rest(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    unsigned wakes_before = wakes;

    assert_int_equal(*address, expected);
    assert_int_equal(deadline->Clock, HalInterruptTime);
    assert_int_equal(deadline->Time, now + LONGEST_REST);
    resting_on = address;
    rests++;
    if (while_resting != NULL)
        while_resting();
    if (wakes != wakes_before) {
        assert_int_not_equal(*address, expected);
        return TRUE;
    }
    now = deadline->Time;
    return FALSE;
}

static int play_host(void **state)
{
    (void)state;
    HalDispatch = (HAL_DISPATCH){
        .Wait = rest,
        .Wake = wake,
        .QueryInterruptTime = query_time,
        .Yield = yield,
        .CurrentProcessor = query_processor,
        .CountSwitches = count_switches,
    };
    now += 2 * OLD_TURN;
    processor = 0;
    switches_per_yield = 0;
    yields = wakes = rests = 0;
    while_resting = NULL;
    return 0;
}

/* Until the clock is read. */
static void wait_often(HAL_TURN *turn)
{
    do {
        HalCountContention(turn);
    } while (turn->Acquires % WAITS_PER_CLOCK != 0);
}

static HAL_TURN begin_turn(void)
{
    HAL_TURN turn = {.Switches = switches};

    wait_often(&turn);
    return turn;
}

static void end_turns(HAL_TURN *turn, unsigned count)
{
    while (count-- != 0) {
        now += TURN;
        wait_often(turn);
    }
}

/* An offer is detected by a thread that rests for it; it rests in vain and leaves nothing behind. */
static void take_what_is_offered(void)
{
    ULONG was = switches_per_yield;
    HAL_TURN turn;

    processor += 100;
    switches_per_yield = 1;
    turn = begin_turn();
    end_turns(&turn, TURNS_PER_LOOK);
    processor -= 100;
    switches_per_yield = was;
}

static void the_first_look_at_the_clock_begins_a_turn(void **state)
{
    HAL_TURN turn = begin_turn();

    (void)state;
    assert_int_equal(turn.Began, now);
    assert_int_equal(yields, 0);
}

static void a_turn_ends_by_the_clock(void **state)
{
    HAL_TURN turn = begin_turn();

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        wait_often(&turn);
    now += TURN - 1;
    wait_often(&turn);
    assert_int_equal(yields, 0);
    now += 1;
    for (unsigned i = 1; i < WAITS_PER_CLOCK; i++)
        HalCountContention(&turn);
    assert_int_equal(yields, 0);
    HalCountContention(&turn);
    assert_int_equal(yields, 1);
    assert_int_equal(turn.Began, now);
    wait_often(&turn);
    assert_int_equal(yields, 1);
}

static void who_has_not_competed_begins_anew(void **state)
{
    HAL_TURN turn = begin_turn();

    (void)state;
    now += OLD_TURN;
    wait_often(&turn);
    assert_int_equal(yields, 0);
    assert_int_equal(turn.Began, now);
    now += OLD_TURN - 1;
    wait_often(&turn);
    assert_int_equal(yields, 1);
}

static void who_shares_a_processor_offers_nothing(void **state)
{
    HAL_TURN turn = begin_turn();

    (void)state;
    switches_per_yield = 1;
    end_turns(&turn, 100 * TURNS_PER_LOOK);
    take_what_is_offered();
    assert_int_equal(rests, 0);
}

static HAL_TURN alone;

static void end_turn_alone(void)
{
    ULONG shared = processor;

    processor = 1;
    switches_per_yield = 0;
    end_turns(&alone, 1);
    processor = shared;
    switches_per_yield = 1;
}

static void offer_seat(void)
{
    processor = 1;
    alone = begin_turn();
    end_turns(&alone, TURNS_PER_LOOK);
    processor = 0;
}

static void who_is_alone_wakes_who_rests(void **state)
{
    HAL_TURN turn;

    (void)state;
    offer_seat();
    switches_per_yield = 1;
    turn = begin_turn();
    end_turns(&turn, TURNS_PER_LOOK - 1);
    assert_int_equal(rests, 0);
    while_resting = end_turn_alone;
    end_turns(&turn, 1);
    assert_int_equal(rests, 1);
    assert_int_equal(wakes, 1);
    end_turn_alone();
    assert_int_equal(wakes, 1);
    take_what_is_offered();
    assert_int_equal(rests, 1);
}

static void a_rest_that_nobody_ends_does(void **state)
{
    HAL_TURN turn;

    (void)state;
    offer_seat();
    switches_per_yield = 1;
    turn = begin_turn();
    end_turns(&turn, TURNS_PER_LOOK);
    assert_int_equal(rests, 1);
    end_turns(&turn, 10 * TURNS_PER_LOOK);
    assert_int_equal(rests, 1);
    end_turn_alone();
    assert_int_equal(wakes, 0);
}

static void nobody_rests_for_its_own_processor(void **state)
{
    HAL_TURN turn;

    (void)state;
    offer_seat();
    processor = 1;
    switches_per_yield = 1;
    turn = begin_turn();
    end_turns(&turn, 10 * TURNS_PER_LOOK);
    assert_int_equal(rests, 0);
    take_what_is_offered();
    assert_int_equal(rests, 1);
}

static void where_all_are_alone_nobody_rests(void **state)
{
    HAL_TURN turn;

    (void)state;
    offer_seat();
    turn = begin_turn();
    end_turns(&turn, 100 * TURNS_PER_LOOK);
    assert_int_equal(rests, 0);
    take_what_is_offered();
    assert_int_equal(rests, 1);
}

/* At the counts 1, 2, 4, 8, 16, 32, 48, 64. */
static void offers_become_rarer(void **state)
{
    static const unsigned char offers[] = {1, 2, 4, 8, 16, 32, 48, 64};
    unsigned next = 0;
    HAL_TURN turn = begin_turn();

    (void)state;
    for (unsigned look = 1; look <= 64; look++) {
        end_turns(&turn, TURNS_PER_LOOK);
        take_what_is_offered();
        next += look == offers[next];
        assert_int_equal(rests, next);
        turn.Switches = switches;
        turn.Began = now;
    }
}

/* Threads that contend in a period are counted once each, and known in the next period. */
static BOOLEAN is_crowd(unsigned threads, unsigned times)
{
    HAL_TURN *turns = calloc(threads, sizeof(*turns));
    HAL_TURN next = {.Period = 0};

    assert_non_null(turns);
    now = (now / PERIOD + 2) * PERIOD;
    for (unsigned i = 0; i < threads * times; i++) {
        wait_often(&turns[i % threads]);
        assert_false(HalIsCrowded());
    }
    free(turns);
    now += PERIOD;
    wait_often(&next);
    return HalIsCrowded();
}

static void many_threads_to_a_processor_are_a_crowd(void **state)
{
    unsigned most = CROWD_PER_PROCESSOR * HalProcessorCount();
    HAL_TURN turn = {.Period = 0};

    (void)state;
    assert_false(is_crowd(most, 1));
    assert_false(is_crowd(most, 3));
    assert_false(is_crowd(1, 1));
    assert_true(is_crowd(most + 1, 1));
    now += PERIOD; /* in the last period only one thread contended */
    wait_often(&turn);
    assert_false(HalIsCrowded());
    assert_true(is_crowd(most + 1, 2));
}

/* A period in which no thread contended is no crowd. */
static void a_crowd_goes_home(void **state)
{
    HAL_TURN turn = {.Period = 0};

    (void)state;
    assert_true(is_crowd(CROWD_PER_PROCESSOR * HalProcessorCount() + 1, 1));
    now += 2 * PERIOD;
    wait_often(&turn);
    assert_false(HalIsCrowded());
}

/* Neither the last period nor the current one counts any more. */
static void sharers_are_no_crowd(void **state)
{
    unsigned enough = CROWD_PER_PROCESSOR * HalProcessorCount() + 1;
    HAL_TURN turn = {.Period = 0};

    (void)state;
    assert_true(is_crowd(enough, 1));
    HalDisperseCrowd();
    assert_false(HalIsCrowded());
    for (unsigned i = 0; i < enough; i++) {
        turn = (HAL_TURN){.Period = 0};
        wait_often(&turn);
    }
    HalDisperseCrowd();
    now += PERIOD;
    wait_often(&turn);
    assert_false(HalIsCrowded());
}

int main(void)
{
    static const HAL_CALLBACKS nothing;
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_look_at_the_clock_begins_a_turn, play_host),
        cmocka_unit_test_setup(a_turn_ends_by_the_clock, play_host),
        cmocka_unit_test_setup(who_has_not_competed_begins_anew, play_host),
        cmocka_unit_test_setup(who_shares_a_processor_offers_nothing, play_host),
        cmocka_unit_test_setup(who_is_alone_wakes_who_rests, play_host),
        cmocka_unit_test_setup(a_rest_that_nobody_ends_does, play_host),
        cmocka_unit_test_setup(nobody_rests_for_its_own_processor, play_host),
        cmocka_unit_test_setup(where_all_are_alone_nobody_rests, play_host),
        cmocka_unit_test_setup(offers_become_rarer, play_host),
        cmocka_unit_test_setup(many_threads_to_a_processor_are_a_crowd, play_host),
        cmocka_unit_test_setup(a_crowd_goes_home, play_host),
        cmocka_unit_test_setup(sharers_are_no_crowd, play_host),
    };

    HalInitialize(&nothing);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
