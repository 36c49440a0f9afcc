/* Barriers: every round has all of its threads, and one of them gets TRUE, deletes and frees. */
#include "freedbylast.h"

#include <interlock/rtl.h>

#define MOST_THREADS 16

struct meeting {
    RTL_BARRIER barrier;
    unsigned threads;
    ULONG flags;
    unsigned long rounds;
    lone_counter come[MOST_THREADS]; /* plain: written by each before a round, read by the others after it */
    unsigned long told;
};

static void check_others(struct meeting *meeting, unsigned long round)
{
    for (unsigned i = 0; i < meeting->threads; i++)
        require(meeting->come[i].value == round);
}

static void meet(void *argument, unsigned index)
{
    struct meeting *meeting = argument;
    test_random random;

    random_seed(&random, index);
    for (unsigned long round = 1; round <= meeting->rounds; round++) {
        spin_for(random_below(&random, 100));
        meeting->come[index].value = round;
        if (RtlBarrier(&meeting->barrier, meeting->flags))
            add(&meeting->told, 1);
        check_others(meeting, round);
        RtlBarrier(&meeting->barrier, meeting->flags); /* until all have read */
    }
}

static void meet_with(unsigned threads, ULONG flags, unsigned long rounds)
{
    struct meeting meeting = {.threads = threads, .flags = flags, .rounds = test_rounds(rounds)};

    assert_int_equal(RtlInitBarrier(&meeting.barrier, threads, MAXULONG), STATUS_SUCCESS);
    run_threads(threads, HANG_SECONDS, meet, &meeting);
    assert_int_equal(meeting.told, meeting.rounds);
    assert_int_equal(RtlDeleteBarrier(&meeting.barrier), STATUS_SUCCESS);
}

static void rounds_of_two(void **state)
{
    (void)state;
    meet_with(2, 0, 5000);
    meet_with(2, RTL_BARRIER_FLAGS_SPIN_ONLY, 1000);
    meet_with(2, RTL_BARRIER_FLAGS_BLOCK_ONLY, 2000);
}

static void rounds_of_four(void **state)
{
    (void)state;
    meet_with(4, 0, 1500);
    meet_with(4, RTL_BARRIER_FLAGS_NO_DELETE, 1500);
}

static void rounds_of_sixteen(void **state)
{
    (void)state;
    meet_with(16, 0, 300);
}

/* More threads than a round takes: any two of them make a round while there are tickets. */

struct crowd {
    RTL_BARRIER barrier;
    long tickets;
    unsigned long told;
};

static void crowd_in(void *argument, unsigned index)
{
    struct crowd *crowd = argument;

    (void)index;
    while (add(&crowd->tickets, -1) >= 0) {
        if (RtlBarrier(&crowd->barrier, 0))
            add(&crowd->told, 1);
    }
}

static void overcrowded(void **state)
{
    unsigned long pairs = test_rounds(10000);
    struct crowd crowd = {.tickets = 2 * (long)pairs};

    (void)state;
    assert_int_equal(RtlInitBarrier(&crowd.barrier, 2, MAXULONG), STATUS_SUCCESS);
    run_threads(4, HANG_SECONDS, crowd_in, &crowd);
    assert_int_equal(crowd.told, pairs);
    assert_int_equal(RtlDeleteBarrier(&crowd.barrier), STATUS_SUCCESS);
}

/* The thread that gets TRUE deletes and frees the barrier while others may still be leaving. */

static void make_barrier(void *object, unsigned users)
{
    require(RtlInitBarrier(object, users, MAXULONG) == STATUS_SUCCESS);
}

static int is_told(void *object, unsigned index, test_random *random)
{
    (void)index;
    (void)random;
    return RtlBarrier(object, 0);
}

static void delete_barrier(void *object)
{
    require(RtlDeleteBarrier(object) == STATUS_SUCCESS);
}

static void freed_by_the_last(void **state)
{
    static const object_kind kind = {sizeof(RTL_BARRIER), make_barrier, is_told, delete_barrier};

    (void)state;
    free_by_the_last(&kind, 4, test_rounds(2000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_two), cmocka_unit_test(rounds_of_four),    cmocka_unit_test(rounds_of_sixteen),
        cmocka_unit_test(overcrowded),   cmocka_unit_test(freed_by_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
