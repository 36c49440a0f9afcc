/* The pushlock's word, through its states. */
#include "pushlocktest.h"

static const row rows[] = {
    {"0X 0r", 0, 0, 0},
    {"0S 1S 1r 0r", 0, 0, 0},
    {"0S 1S 2X! 3S! 0r", LOCKED | WAITING | MULTIPLE, 1, 2},
    {"0X 1S! 2S! 3X! 4S! 5X! 0r 1. 2.", LOCKED | WAITING | MULTIPLE, 2, 3},

    /* a waiter has been woken */
    {"0X 1X! 2X! < 0x", WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! < 0x 3S!", WAITING | WAKING, 0, 2},
    {"0X 1X! 2X! < 0x 3T+", LOCKED | WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 4X! 5S!", LOCKED | WAITING | WAKING, 0, 3},
    {"0X 1X! 2X! < 0x 3T+ 3x", WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 3C", LOCKED | WAITING | WAKING | MULTIPLE, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 3C 4S! 3s", WAITING | WAKING, 0, 2},
    {"0X 1X! 2X! < 0x 3T+ 3C 3c+", LOCKED | WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ > 1!", LOCKED | WAITING, 0, 2},
    {"0X 1X! 2X! < 0x 3T+ 3C > 1!", LOCKED | WAITING, 0, 2},
    {"0X 1X! 2X! < 0x > 1.", LOCKED | WAITING, 0, 1},
    {"0X 1X! 2X! < 0x 3t-", WAITING | WAKING, 0, 1},
    {"0X 1X! < 0x", 0, 0, 0},
    {"0X 1X! < 0x 2S 3S", LOCKED, 2, 0},
    {"0X 1X! < 0x 2S 3S > 1!", LOCKED | WAITING | MULTIPLE, 2, 1},
    {"0X 1S! 2S! < 0x", LOCKED, 2, 0},
    {"0X 1S! 2X! < 0x", LOCKED | WAITING, 0, 1},
};

static void the_word_goes_through_its_states(void **state)
{
    (void)state;
    play_common_rows();
    play_rows(rows, RTL_NUMBER_OF(rows));
}

/* The newest block is in the word; each knows the previous one, and after an optimization pass the next one. */
static void the_chain_is_optimised_by_who_passes_the_lock_on(void **state)
{
    (void)state;
    play("0X 1X! 2X! 3S! 4X!");
    PEXP_WAIT_BLOCK newest = newest_in(stage_word());
    assert_true(newest->Exclusive);
    assert_false(newest->Next->Exclusive);
    assert_null(newest->Last);

    play("0x 1.");
    PEXP_WAIT_BLOCK oldest = oldest_in(stage_word());
    assert_int_equal(blocks_in(stage_word()), 3);
    assert_ptr_equal(newest->Last, oldest);
    assert_ptr_equal(oldest->Previous->Previous, newest);

    play("5S!");
    assert_null(newest_in(stage_word())->Last);
    assert_ptr_equal(newest_in(stage_word())->Next, newest);
    play("1x 2.");
    assert_ptr_equal(newest_in(stage_word())->Last, oldest_in(stage_word()));
    end_play();
}

static void the_public_lock_has_the_same_word(void **state)
{
    EX_PUSH_LOCK lock;
    (void)state;
    KeEnterCriticalRegion();
    ExInitializePushLock(&lock);
    assert_int_equal(lock, 0);
    ExAcquirePushLockExclusive(&lock);
    assert_int_equal(lock, LOCKED);
    ExConvertPushLockExclusiveToShared(&lock);
    assert_int_equal(lock, LOCKED + SHARE);
    ExAcquirePushLockShared(&lock);
    assert_true(ExTryAcquirePushLockShared(&lock));
    assert_int_equal(lock, LOCKED + 3 * SHARE);
    assert_false(ExTryConvertPushLockSharedToExclusive(&lock));
    ExReleasePushLockShared(&lock);
    ExReleasePushLock(&lock);
    assert_true(ExTryConvertPushLockSharedToExclusive(&lock));
    assert_int_equal(lock, LOCKED);
    assert_false(ExTryAcquirePushLockExclusive(&lock));
    assert_false(ExTryAcquirePushLockShared(&lock));
    ExReleasePushLock(&lock);
    assert_int_equal(lock, 0);
    assert_true(ExTryAcquirePushLockExclusiveEx(&lock, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST));
    ExReleasePushLockExclusiveEx(&lock, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
    assert_int_equal(lock, 0);
    KeLeaveCriticalRegion();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STAGED(the_word_goes_through_its_states),
        STAGED(the_chain_is_optimised_by_who_passes_the_lock_on),
        cmocka_unit_test(the_public_lock_has_the_same_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
