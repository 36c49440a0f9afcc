/*
 * The waiter hash, by the numbers in src/ex/waiterhash.h: waiters of a key are neighbours, and those of other keys in
 * the bucket are skipped without an access: they are on pages where an access would fault.
 */
#include "ex/waiterhash.h"

#include "support.h"

#include "../support/guarded.h"

#include <stdlib.h>

#define CROWD 32

static EXP_WAIT_KEY key_of(ULONG_PTR number)
{
    return (EXP_WAIT_KEY){.Key = (PVOID)(number * 16), .Process = KeGetCurrentThread()->Process};
}

/* Another key of the same bucket. */
static EXP_WAIT_KEY neighbour_of(EXP_WAIT_KEY key, ULONG_PTR *number)
{
    do {
        *number += 1;
    } while (ExpBucketOf(&(EXP_WAIT_KEY[]){key_of(*number)}[0]) != ExpBucketOf(&key));
    return key_of(*number);
}

static void insert(PEXP_WAITER waiter, EXP_WAIT_KEY key)
{
    PKTHREAD thread = KeGetCurrentThread();
    waiter->Key = key;
    PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key, thread);
    ExpInsertWaiter(bucket, waiter);
    ExpUnlockWaiters(bucket, thread);
}

static PEXP_WAITER take_first(EXP_WAIT_KEY key)
{
    PKTHREAD thread = KeGetCurrentThread();
    PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key, thread);
    PEXP_WAITER found = ExpTakeFirstWaiter(bucket, &key);
    ExpUnlockWaiters(bucket, thread);
    return found;
}

static void take_out(PEXP_WAITER waiter)
{
    assert_true(ExpTakeWaiter(waiter, KeGetCurrentThread()));
}

/* 2: the bucket alone distinguishes keys with another sign. */
static void test_signs(void **state)
{
    ULONG_PTR number = 1;
    EXP_WAIT_KEY key = key_of(number);
    guarded waiters = guarded_items(3);
    unsigned seen = 0;
    (void)state;
    for (ULONG i = 0; i < 3; i += 1) {
        insert(guarded_item(&waiters, i), key);
    }
    for (int i = 0; i < 64; i += 1) {
        EXP_WAIT_KEY other = neighbour_of(key, &number);
        if (ExpSignOf(&other) != ExpSignOf(&key)) {
            guard(&waiters, 0);
            assert_null(take_first(other));
            unguard(&waiters);
            seen += 1;
        }
    }
    assert_in_range(seen, 32, 64);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(ExpBucketOf(&key)->Signs, ExpSignOf(&key));
        take_out(guarded_item(&waiters, i));
    }
    assert_int_equal(ExpBucketOf(&key)->Signs, 0);
    free_guarded(&waiters);
}

static void test_other_waiters_are_left_alone(void **state)
{
    ULONG_PTR number = 1;
    EXP_WAIT_KEY crowded = key_of(number);
    EXP_WAIT_KEY quiet = neighbour_of(crowded, &number);
    EXP_WAIT_KEY nobody = neighbour_of(crowded, &number);
    guarded crowd = guarded_items(CROWD);
    EXP_WAITER late, waiter[3];
    (void)state;
    for (ULONG i = 0; i < CROWD; i += 1) {
        insert(guarded_item(&crowd, i), crowded);
    }
    guard(&crowd, 2);
    for (int round = 0; round < 2; round += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(waiter); i += 1) {
            insert(&waiter[i], quiet);
        }
        assert_null(take_first(nobody));
        assert_ptr_equal(take_first(quiet), &waiter[0]);
        take_out(&waiter[2]);
        assert_ptr_equal(take_first(quiet), &waiter[1]);
        assert_null(take_first(quiet));
    }
    /* Its own key: the oldest leaves, the youngest enters and leaves. */
    insert(&late, crowded);
    take_out(&late);
    assert_ptr_equal(take_first(crowded), guarded_item(&crowd, 0));
    unguard(&crowd);
    for (ULONG i = 1; i < CROWD; i += 1) {
        assert_ptr_equal(take_first(crowded), guarded_item(&crowd, i));
    }
    assert_null(take_first(crowded));
    assert_int_equal(ExpBucketOf(&crowded)->Count, 0);
    free_guarded(&crowd);
}

/* Compared with lists of numbers: three keys of one bucket, waiters that enter, are removed, and leave from any
   position. */
static void test_random_order(void **state)
{
    enum { KEYS = 3, WAITERS = 24 };
    static EXP_WAITER waiter[WAITERS];
    unsigned queued[KEYS][WAITERS], count[KEYS] = {0};
    int listed[WAITERS] = {0};
    EXP_WAIT_KEY key[KEYS];
    ULONG_PTR number = 1;
    test_random random;
    (void)state;
    random_seed(&random, 1);
    key[0] = key_of(number);
    key[1] = neighbour_of(key[0], &number);
    key[2] = neighbour_of(key[0], &number);
    for (unsigned long round = test_rounds(200000); round != 0; round -= 1) {
        unsigned k = random_below(&random, KEYS), w = random_below(&random, WAITERS), at;
        if (!listed[w]) {
            insert(&waiter[w], key[k]);
            queued[k][count[k]++] = w;
            listed[w] = 1;
        } else if (random_below(&random, 4) == 0) {
            unsigned most = random_below(&random, 4);
            LIST_ENTRY taken;
            PKTHREAD thread = KeGetCurrentThread();
            PEXP_WAITER_BUCKET bucket = ExpLockWaiters(&key[k], thread);
            ULONG got = ExpTakeWaiters(bucket, &key[k], most, &taken);
            ExpUnlockWaiters(bucket, thread);
            assert_int_equal(got, most < count[k] ? most : count[k]);
            for (at = 0; at < got; at += 1) {
                assert_ptr_equal(RemoveHeadList(&taken), &waiter[queued[k][at]].Link);
                listed[queued[k][at]] = 0;
            }
            assert_true(IsListEmpty(&taken));
            count[k] -= got;
            memmove(queued[k], queued[k] + got, count[k] * sizeof(queued[k][0]));
        } else {
            for (k = 0; k < KEYS; k += 1) {
                for (at = 0; at < count[k] && queued[k][at] != w; at += 1) {
                }
                if (at < count[k]) {
                    break;
                }
            }
            take_out(&waiter[w]);
            assert_false(ExpTakeWaiter(&waiter[w], KeGetCurrentThread()));
            count[k] -= 1;
            memmove(&queued[k][at], &queued[k][at + 1], (count[k] - at) * sizeof(queued[k][0]));
            listed[w] = 0;
        }
        assert_int_equal(ExpBucketOf(&key[0])->Count, count[0] + count[1] + count[2]);
    }
    for (unsigned k = 0; k < KEYS; k += 1) {
        for (unsigned at = 0; at < count[k]; at += 1) {
            assert_ptr_equal(take_first(key[k]), &waiter[queued[k][at]]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_waiters_are_left_alone),
        cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
