/* Address-based pushlocks. */
#include "pushlockcrew.h"
#include "../support/heap.h"

static EX_PUSH_LOCK lock;

/* A thread that blocks on an address. */
typedef struct blocker {
    actor actor;
    volatile void *address;
    ULONG64 compare;
    SIZE_T size;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
} blocker;

static void block(void *argument)
{
    blocker *b = argument;
    b->status = ExBlockOnAddressPushLock(&lock, (PVOID)b->address, &b->compare, b->size, b->timeout);
}

static void begin_to_block(blocker *b, volatile void *address, ULONG64 compare, SIZE_T size)
{
    b->address = address;
    b->compare = compare;
    b->size = size;
    b->timeout = NULL;
    b->status = STATUS_PENDING;
    tell(&b->actor, block, b);
    await(is_committed(b->actor.thread));
}

static void assert_woken(blocker *b)
{
    await(is_idle(&b->actor));
    assert_int_equal(b->status, STATUS_SUCCESS);
}

static void assert_still_blocked(blocker *b)
{
    assert_true(is_committed(b->actor.thread));
    assert_false(is_idle(&b->actor));
}

typedef struct size_row {
    SIZE_T size;
    NTSTATUS status;
} size_row;

static void sizes_are_1_2_4_and_8(void **state)
{
    static const size_row rows[] = {
        {0, STATUS_INVALID_PARAMETER}, {1, STATUS_TIMEOUT},           {2, STATUS_TIMEOUT},
        {3, STATUS_INVALID_PARAMETER}, {4, STATUS_TIMEOUT},           {5, STATUS_INVALID_PARAMETER},
        {7, STATUS_INVALID_PARAMETER}, {8, STATUS_TIMEOUT},           {16, STATUS_INVALID_PARAMETER},
        {(SIZE_T)-1, STATUS_INVALID_PARAMETER},
    };
    ULONG64 value[2] = {5, 6};
    ULONG64 compare[2] = {5, 6};
    (void)state;
    for (const size_row *r = rows; r < rows + RTL_NUMBER_OF(rows); r++) {
        assert_int_equal(ExBlockOnAddressPushLock(&lock, value, compare, r->size, NO_TIME), r->status);
        assert_int_equal(lock, 0);
    }
}

/* Only the requested bytes are compared, at any alignment. */
static void a_value_that_differs_is_not_waited_for(void **state)
{
    UCHAR bytes[32];
    UCHAR compare[32];
    (void)state;
    for (SIZE_T size = 1; size <= 8; size *= 2) {
        for (SIZE_T offset = 8; offset < 16; offset++) {
            for (SIZE_T changed = offset - 1; changed <= offset + size; changed++) {
                BOOLEAN differs = changed >= offset && changed < offset + size;
                memset(bytes, 0x55, sizeof(bytes));
                memset(compare, 0x55, sizeof(compare));
                bytes[changed] ^= 0x80;
                assert_int_equal(ExBlockOnAddressPushLock(&lock, bytes + offset, compare + offset, size, NO_TIME),
                                 differs ? STATUS_SUCCESS : STATUS_TIMEOUT);
                assert_int_equal(ExBlockOnAddressPushLock(&lock, bytes + offset, compare, size, NO_TIME),
                                 differs ? STATUS_SUCCESS : STATUS_TIMEOUT);
                assert_int_equal(lock, 0);
            }
        }
    }
}

static void a_timeout_ends_the_wait(void **state)
{
    LARGE_INTEGER timeouts[] = {{.QuadPart = 0}, relative(2 * MILLISECOND), absolute(2 * MILLISECOND)};
    ULONG value = 1;
    ULONG compare = 1;
    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(timeouts); i++) {
        ULONGLONG start = HalDispatch.QueryInterruptTime();
        assert_int_equal(ExBlockOnAddressPushLock(&lock, &value, &compare, sizeof(value), &timeouts[i]),
                         STATUS_TIMEOUT);
        if (timeouts[i].QuadPart < 0) {
            assert_true(HalDispatch.QueryInterruptTime() - start >= (ULONGLONG)-timeouts[i].QuadPart);
        }
        assert_int_equal(lock, 0);
    }
}

#define BLOCKERS 4

static void a_wake_finds_all_who_wait_for_the_address(void **state)
{
    blocker b[BLOCKERS];
    volatile ULONG value[2] = {0, 0};
    (void)state;
    for (unsigned i = 0; i < BLOCKERS; i++) {
        start_actor(&b[i].actor);
        begin_to_block(&b[i], &value[i % 2], 0, sizeof(ULONG));
    }
    ExUnblockOnAddressPushLock(&lock, NULL);
    ExUnblockOnAddressPushLock(&lock, &lock);
    for (unsigned i = 0; i < BLOCKERS; i++) {
        assert_still_blocked(&b[i]);
    }
    ExUnblockOnAddressPushLock(&lock, (PVOID)&value[1]);
    assert_woken(&b[1]);
    assert_woken(&b[3]);
    assert_still_blocked(&b[0]);
    assert_still_blocked(&b[2]);
    assert_int_not_equal(lock, 0);
    begin_to_block(&b[1], &value[1], 0, sizeof(ULONG));
    ExUnblockPushLock(&lock, NULL);
    assert_woken(&b[0]);
    assert_woken(&b[1]);
    assert_woken(&b[2]);
    assert_int_equal(lock, 0);
    for (unsigned i = 0; i < BLOCKERS; i++) {
        end_actor(&b[i].actor);
    }
}

static void who_gives_up_leaves_the_others_in_the_list(void **state)
{
    blocker b[BLOCKERS];
    volatile ULONG value = 0;
    ULONG compare = 0;
    (void)state;
    for (unsigned i = 0; i < BLOCKERS; i++) {
        start_actor(&b[i].actor);
        begin_to_block(&b[i], &value, 0, sizeof(value));
        assert_int_equal(ExBlockOnAddressPushLock(&lock, (PVOID)&value, &compare, sizeof(value), NO_TIME),
                         STATUS_TIMEOUT);
    }
    ExUnblockOnAddressPushLock(&lock, (PVOID)&value);
    for (unsigned i = 0; i < BLOCKERS; i++) {
        assert_woken(&b[i]);
        end_actor(&b[i].actor);
    }
}

static void the_wait_shows_in_the_thread(void **state)
{
    blocker b;
    volatile UCHAR value = 0;
    (void)state;
    start_actor(&b.actor);
    begin_to_block(&b, &value, 0, sizeof(value));
    ExUnblockOnAddressPushLockEx(&lock, (PVOID)&value, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST);
    assert_woken(&b);
    assert_int_equal(b.actor.thread->WaitReason, WrPushLock);
    end_actor(&b.actor);
}

/* In single steps. */

static void an_announced_block_can_be_taken_back(void **state)
{
    EX_PUSH_LOCK_WAIT_BLOCK first, second, third;
    (void)state;
    ExBlockPushLock(&lock, &first);
    ExBlockPushLock(&lock, &second);
    ExBlockPushLock(&lock, &third);
    ExUnblockPushLock(&lock, &second);
    ExUnblockPushLock(&lock, &third);
    assert_int_equal(ExTimedWaitForUnblockPushLock(&lock, &first, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(lock, 0);
}

static void a_wake_before_the_wait_counts(void **state)
{
    EX_PUSH_LOCK_WAIT_BLOCK first, second;
    (void)state;
    ExBlockPushLock(&lock, &first);
    ExBlockPushLock(&lock, &second);
    ExUnblockPushLock(&lock, NULL);
    assert_int_equal(lock, 0);
    assert_int_equal(ExTimedWaitForUnblockPushLock(&lock, &first, NO_TIME), STATUS_SUCCESS);
    assert_int_equal(ExTimedWaitForUnblockPushLock(&lock, &second, NULL), STATUS_SUCCESS);
    ExUnblockPushLock(&lock, NULL);
    assert_int_equal(lock, 0);
}

/* A waker has removed the block from the list and has not yet woken its waiter when the wait times out. */
typedef struct late {
    actor actor;
    EX_PUSH_LOCK lock;
    EX_PUSH_LOCK_WAIT_BLOCK wait_block;
    LARGE_INTEGER timeout;
    NTSTATUS status;
} late;

static void wait_late(void *argument)
{
    late *l = argument;
    ExBlockPushLock(&l->lock, &l->wait_block);
    l->status = ExTimedWaitForUnblockPushLock(&l->lock, &l->wait_block, &l->timeout);
}

static void a_wake_under_way_wins_over_the_timeout(void **state)
{
    late l = {.timeout = relative(20 * MILLISECOND)};
    LARGE_INTEGER longer = relative(40 * MILLISECOND);
    (void)state;
    start_actor(&l.actor);
    tell(&l.actor, wait_late, &l);
    await(is_committed(l.actor.thread));
    assert_ptr_equal((PVOID)__atomic_exchange_n(&l.lock, 0, __ATOMIC_ACQ_REL), &l.wait_block);
    KeDelayExecutionThread(KernelMode, FALSE, &longer);
    await(is_committed(l.actor.thread));
    assert_false(is_idle(&l.actor));
    ExpWakeBlock((PEXP_WAIT_BLOCK)&l.wait_block, ExpGranted, &ExpPushLockMethods);
    await(is_idle(&l.actor));
    assert_int_equal(l.status, STATUS_SUCCESS);
    end_actor(&l.actor);
}

static void waiting_allocates_nothing(void **state)
{
    EX_PUSH_LOCK_WAIT_BLOCK wait_block;
    LARGE_INTEGER briefly = relative(MILLISECOND);
    unsigned refused = allocations_refused;
    (void)state;
    allocations_left = 0;
    ExBlockPushLock(&lock, &wait_block);
    NTSTATUS status = ExTimedWaitForUnblockPushLock(&lock, &wait_block, &briefly);
    ExUnblockPushLock(&lock, NULL);
    allocations_left = -1;
    assert_int_equal(status, STATUS_TIMEOUT);
    assert_int_equal(allocations_refused, refused);
}

/* Races. */

typedef struct volley {
    ULONG value;
    unsigned long rounds;
} volley;

/* Each waits for the other's number; neither repeats one. */
static void play_volley(void *argument, unsigned index)
{
    volley *v = argument;
    for (ULONG round = 0; round < v->rounds; round++) {
        ULONG mine = 2 * round + index;
        ULONG seen;
        while ((seen = __atomic_load_n(&v->value, __ATOMIC_ACQUIRE)) != mine) {
            check(ExBlockOnAddressPushLock(&lock, &v->value, &seen, sizeof(seen), NULL) == STATUS_SUCCESS);
        }
        __atomic_store_n(&v->value, mine + 1, __ATOMIC_RELAXED);
        ExUnblockOnAddressPushLock(&lock, &v->value);
    }
}

static void no_wake_is_lost(void **state)
{
    volley v = {.rounds = test_rounds(30000)};
    (void)state;
    run_crew(2, play_volley, &v);
    assert_int_equal(v.value, 2 * v.rounds);
    assert_int_equal(lock, 0);
}

/*
 * One waits with timeouts of all lengths, one wakes. A wake that removed the block from the list makes the wait
 * succeed, even after its deadline: as many were received as delivered.
 */
typedef struct duel {
    EX_PUSH_LOCK lock;
    unsigned long rounds;
    unsigned long round;     /* announced */
    unsigned long answered;  /* rounds in which the waker has done its part */
    unsigned long delivered;
    unsigned long received;
} duel;

static void wait_in_duel(duel *d)
{
    test_random random;
    random_seed(&random, 7);
    for (unsigned long round = 0; round < d->rounds; round++) {
        EX_PUSH_LOCK_WAIT_BLOCK wait_block;
        LARGE_INTEGER timeout = relative((LONGLONG)random_below(&random, 400));
        ExBlockPushLock(&d->lock, &wait_block);
        __atomic_store_n(&d->round, round + 1, __ATOMIC_RELEASE);
        NTSTATUS status = ExTimedWaitForUnblockPushLock(&d->lock, &wait_block, &timeout);
        memset(&wait_block, 0xdd, sizeof(wait_block)); /* no thread may access it any more */
        check(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        d->received += status == STATUS_SUCCESS;
        while (__atomic_load_n(&d->answered, __ATOMIC_ACQUIRE) != round + 1) {
            sched_yield();
        }
    }
}

static void wake_in_duel(duel *d)
{
    test_random random;
    random_seed(&random, 11);
    for (unsigned long round = 0; round < d->rounds; round++) {
        while (__atomic_load_n(&d->round, __ATOMIC_ACQUIRE) != round + 1) {
            sched_yield();
        }
        for (volatile unsigned delay = random_below(&random, 20000); delay != 0; delay--) {
        }
        BOOLEAN waits = __atomic_load_n(&d->lock, __ATOMIC_ACQUIRE) != 0;
        ExUnblockPushLock(&d->lock, NULL);
        d->delivered += waits;
        __atomic_store_n(&d->answered, round + 1, __ATOMIC_RELEASE);
    }
}

static void fight_duel(void *argument, unsigned index)
{
    if (index == 0) {
        wait_in_duel(argument);
    } else {
        wake_in_duel(argument);
    }
}

static void a_delivered_wake_wins_over_the_timeout(void **state)
{
    duel d = {.rounds = test_rounds(20000)};
    (void)state;
    run_crew(2, fight_duel, &d);
    assert_int_equal(d.lock, 0);
    /* a listed block may have timed out before it was removed, not the other way round */
    assert_true(d.received <= d.delivered);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(sizes_are_1_2_4_and_8),
        WATCHED(a_value_that_differs_is_not_waited_for),
        WATCHED(a_timeout_ends_the_wait),
        WATCHED(a_wake_finds_all_who_wait_for_the_address),
        WATCHED(who_gives_up_leaves_the_others_in_the_list),
        WATCHED(the_wait_shows_in_the_thread),
        WATCHED(an_announced_block_can_be_taken_back),
        WATCHED(a_wake_before_the_wait_counts),
        WATCHED(a_wake_under_way_wins_over_the_timeout),
        WATCHED(waiting_allocates_nothing),
        cmocka_unit_test(no_wake_is_lost),
        cmocka_unit_test(a_delivered_wake_wins_over_the_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
