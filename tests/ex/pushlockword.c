/* The pushlock's word, through its states. */
#include "pushlocktest.h"

typedef struct row {
    const char *script;
    ULONG_PTR flags;
    ULONG sharers; /* in the word, or with M but without K in the oldest block */
    ULONG blocks;
} row;

static const row rows[] = {
    {"", 0, 0, 0},
    {"0X", L, 0, 0},
    {"0X 0x", 0, 0, 0},
    {"0X 0r", 0, 0, 0},
    {"0S", L, 1, 0},
    {"0S 1S 2S", L, 3, 0},
    {"0S 1S 2S 1s", L, 2, 0},
    {"0S 1S 1r 0r", 0, 0, 0},

    /* held, with waiters */
    {"0X 1X!", L | W, 0, 1},
    {"0X 1S!", L | W, 0, 1},
    {"0X 1X! 2S! 3X!", L | W, 0, 3},
    {"0S 1X!", L | W, 0, 1},
    {"0S 1S 2X!", L | W | M, 2, 1},
    {"0S 1S 2S 3X! 4S! 5X!", L | W | M, 3, 3},
    {"0S 1S 2X! 1s", L | W | M, 1, 1},
    {"0S 1S 2X! 3S! 0r", L | W | M, 1, 2},

    /* given on */
    {"0X 1X! 0x 1.", L, 0, 0},
    {"0X 1X! 2X! 0x 1.", L | W, 0, 1},
    {"0X 1X! 2X! 3X! 0x 1. 1x 2.", L | W, 0, 1},
    {"0S 1S 2X! 0s 1s 2.", L, 0, 0},
    {"0S 1S 2X! 3S! 4S! 0s 1s 2. 2x 3. 4.", L, 2, 0},
    {"0X 1S! 0x 1.", L, 1, 0},
    {"0X 1S! 2S! 3S! 0x 1. 2. 3.", L, 3, 0},
    {"0X 1S! 2S! 0x 1. 2. 3S", L, 3, 0},
    {"0X 1S! 2X! 0x 1.", L | W, 0, 1},
    {"0X 1S! 2S! 3X! 0x 1. 2.", L | W | M, 2, 1},
    {"0X 1S! 2S! 3X! 4S! 5X! 0r 1. 2.", L | W | M, 2, 3},
    {"0X 1S! 2S! 3X! 4S! 0x 1. 2. 1s 2s 3.", L | W, 0, 1},

    /* a waiter is on its way */
    {"0X 1X! 2X! < 0x", W | K, 0, 1},
    {"0X 1X! 2X! < 0x 3S!", W | K, 0, 2},
    {"0X 1X! 2X! < 0x 3T+", L | W | K, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 4X! 5S!", L | W | K, 0, 3},
    {"0X 1X! 2X! < 0x 3T+ 3x", W | K, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 3C", L | W | K | M, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ 3C 4S! 3s", W | K, 0, 2},
    {"0X 1X! 2X! < 0x 3T+ 3C 3c+", L | W | K, 0, 1},
    {"0X 1X! 2X! < 0x 3T+ > 1!", L | W, 0, 2},
    {"0X 1X! 2X! < 0x 3T+ 3C > 1!", L | W, 0, 2},
    {"0X 1X! 2X! < 0x > 1.", L | W, 0, 1},
    {"0X 1X! < 0x", 0, 0, 0},
    {"0X 1X! < 0x 2S 3S", L, 2, 0},
    {"0X 1X! < 0x 2S 3S > 1!", L | W | M, 2, 1},
    {"0X 1S! 2S! < 0x", L, 2, 0},
    {"0X 1S! 2X! < 0x", L | W, 0, 1},

    /* tries */
    {"0T+", L, 0, 0},
    {"0t+ 1t+", L, 2, 0},
    {"0X 1T- 1t-", L, 0, 0},
    {"0S 1T- 1t+", L, 2, 0},
    {"0S 1X! 2t- 2T-", L | W, 0, 1},
    {"0X 1X! 2X! < 0x 3t-", W | K, 0, 1},

    /* conversions */
    {"0X 0C", L, 1, 0},
    {"0X 0C 1S", L, 2, 0},
    {"0S 0c+", L, 0, 0},
    {"0S 1S 0c-", L, 2, 0},
    {"0S 1X! 0c+", L | W, 0, 1},
    {"0S 1S 2X! 0c-", L | W | M, 2, 1},
    {"0S 1S 2X! 1s 0c-", L | W | M, 1, 1},
    {"0X 1X! 0C", L | W, 0, 1},
    {"0X 1S! 0C 1.", L, 2, 0},
    {"0X 1S! 2S! 0C 1. 2.", L, 3, 0},
    {"0X 1S! 2X! 0C 1.", L | W | M, 2, 1},
    {"0X 1S! 2X! 0C 1. 0s", L | W | M, 1, 1},
    {"0X 1X! 2S! 0C", L | W, 0, 2},
    {"0X 1X! 2S! 0C 0c+ 0x 1.", L | W, 0, 1},
};

static void the_word_goes_through_its_states(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + RTL_NUMBER_OF(rows); r++) {
        play(r->script);
        ULONG_PTR word = stage_word();
        ULONG blocks = word & W ? blocks_in(word) : 0;
        ULONG sharers = word & W ? (ULONG)((word & (M | K)) == M ? oldest_in(word)->ShareCount : 0)
                                 : (ULONG)(word / SHARE);
        if ((word & EXP_PUSH_LOCK_BITS) != r->flags || sharers != r->sharers || blocks != r->blocks ||
            !is_consistent(word)) {
            print_error("%s: flags %lx, sharers %u, blocks %u\n", r->script, (unsigned long)(word & EXP_PUSH_LOCK_BITS),
                        sharers, blocks);
            fail();
        }
        end_play();
    }
}

/* The newest block is in the word; each knows the one before, and after a pass of the optimisation the one behind. */
static void the_chain_is_optimised_by_who_passes_the_lock_on(void **state)
{
    (void)state;
    play("0X 1X! 2X! 3S! 4X!");
    PEX_PUSH_LOCK_WAIT_BLOCK newest = newest_in(stage_word());
    assert_true(newest->Exclusive);
    assert_false(newest->Next->Exclusive);
    assert_null(newest->Last);

    play("0x 1.");
    PEX_PUSH_LOCK_WAIT_BLOCK oldest = oldest_in(stage_word());
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
    assert_int_equal(lock, L);
    ExConvertPushLockExclusiveToShared(&lock);
    assert_int_equal(lock, L + SHARE);
    ExAcquirePushLockShared(&lock);
    assert_true(ExTryAcquirePushLockShared(&lock));
    assert_int_equal(lock, L + 3 * SHARE);
    assert_false(ExTryConvertPushLockSharedToExclusive(&lock));
    ExReleasePushLockShared(&lock);
    ExReleasePushLock(&lock);
    assert_true(ExTryConvertPushLockSharedToExclusive(&lock));
    assert_int_equal(lock, L);
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
