/* Normal pushlocks. The tests with a number are those of the requirements in src/ex/pushlock.c. */
#include "pushlockcrew.h"

#include "pushlocktest.h"
#include "../ke/crowd.h"
#include "../support/heap.h"

static int enter_region(void **state)
{
    KeEnterCriticalRegion();
    return start_watch(state);
}

static int leave_region(void **state)
{
    KeLeaveCriticalRegion();
    return stop_watch(state);
}

#define IN_REGION(test) cmocka_unit_test_setup_teardown(test, enter_region, leave_region)

static void work(unsigned amount)
{
    for (volatile unsigned i = 0; i < amount; i++) {
    }
}

/* The protected data: an owner is alone, a sharer sees only sharers. */
typedef struct guarded {
    EX_PUSH_LOCK lock;
    LONG owners;
    LONG sharers;
    ULONG64 first;
    ULONG64 second;
    unsigned long rounds;
} guarded;

#define count_in(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)
#define count_out(counter) __atomic_sub_fetch(&(counter), 1, __ATOMIC_RELAXED)
#define read_count(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)

static void be_owner(guarded *g, unsigned amount)
{
    check(count_in(g->owners) == 1 && read_count(g->sharers) == 0);
    g->first += 1;
    work(amount);
    g->second += 1;
    check(count_out(g->owners) == 0 && read_count(g->sharers) == 0);
}

static void be_sharer(guarded *g, unsigned amount)
{
    count_in(g->sharers);
    check(read_count(g->owners) == 0);
    check(g->first == g->second);
    work(amount);
    check(read_count(g->owners) == 0);
    count_out(g->sharers);
}

static void use_every_way(void *argument, unsigned index)
{
    guarded *g = argument;
    test_random random;
    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < g->rounds; round++) {
        unsigned amount = random_below(&random, 64) == 0 ? 20000 : random_below(&random, 50);
        ULONG flags = random_below(&random, 2);
        switch (random_below(&random, 11)) {
        case 0:
        case 1:
            ExAcquirePushLockExclusiveEx(&g->lock, flags);
            be_owner(g, amount);
            ExReleasePushLockExclusiveEx(&g->lock, flags);
            break;
        case 2:
            ExAcquirePushLockExclusive(&g->lock);
            be_owner(g, amount);
            ExConvertPushLockExclusiveToShared(&g->lock);
            be_sharer(g, amount);
            ExReleasePushLock(&g->lock);
            break;
        case 3:
            if (ExTryAcquirePushLockExclusive(&g->lock)) {
                be_owner(g, amount);
                ExReleasePushLock(&g->lock);
            }
            break;
        case 4:
            if (ExTryAcquirePushLockShared(&g->lock)) {
                be_sharer(g, amount);
                ExReleasePushLock(&g->lock);
            }
            break;
        case 6:
            ExfAcquirePushLockExclusive(&g->lock);
            be_owner(g, amount);
            ExfReleasePushLockExclusive(&g->lock);
            break;
        case 7:
            ExfAcquirePushLockShared(&g->lock);
            be_sharer(g, amount);
            ExfReleasePushLockShared(&g->lock);
            break;
        case 8:
            if (ExfTryAcquirePushLockShared(&g->lock)) {
                be_sharer(g, amount);
                ExfReleasePushLock(&g->lock);
            }
            break;
        case 5:
            ExAcquirePushLockShared(&g->lock);
            be_sharer(g, amount);
            if (ExTryConvertPushLockSharedToExclusive(&g->lock)) {
                be_owner(g, amount);
                ExReleasePushLockExclusive(&g->lock);
            } else {
                ExReleasePushLockShared(&g->lock);
            }
            break;
        default:
            ExAcquirePushLockSharedEx(&g->lock, flags);
            be_sharer(g, amount);
            ExReleasePushLockSharedEx(&g->lock, flags);
            break;
        }
    }
}

static void requirement_1_an_owner_is_alone(void **state)
{
    guarded g = {.rounds = test_rounds(10000)};
    (void)state;
    run_crew(4, use_every_way, &g);
    assert_int_equal(g.lock, 0);
    assert_int_equal(g.first, g.second);
}

/* Each takes the lock and keeps it until another thread waits, so every release has a waiter to wake. */
static void hold_until_awaited(void *argument, unsigned index)
{
    guarded *g = argument;
    for (unsigned long round = 0; round < g->rounds; round++) {
        BOOLEAN shared = (round + index) % 3 == 0;
        if (shared) {
            ExAcquirePushLockShared(&g->lock);
        } else {
            ExAcquirePushLockExclusive(&g->lock);
        }
        for (unsigned tries = 0; tries < 50 && !(__atomic_load_n(&g->lock, __ATOMIC_RELAXED) & WAITING); tries++) {
            sched_yield();
        }
        ExReleasePushLock(&g->lock);
    }
}

static void requirement_2_no_wake_is_lost(void **state)
{
    guarded g = {.rounds = test_rounds(200)};
    (void)state;
    run_crew(3, hold_until_awaited, &g);
    assert_int_equal(g.lock, 0);
}

/*
 * Sharers that need each other inside. In every round thread 0 holds the lock exclusively while 1 and 2 acquire it
 * shared, at any moment of its release.
 */
typedef struct meeting {
    EX_PUSH_LOCK lock;
    unsigned long rounds;
    unsigned long opened;  /* rounds that have begun */
    unsigned long inside;  /* arrivals inside, all rounds together */
    unsigned long left;
    BOOLEAN convert;       /* thread 0 does not release but stays in as a sharer */
} meeting;

static void await_number(unsigned long *number, unsigned long value)
{
    while (__atomic_load_n(number, __ATOMIC_ACQUIRE) < value) {
        sched_yield();
    }
}

static void meet_inside(meeting *m, unsigned long round, unsigned members)
{
    __atomic_add_fetch(&m->inside, 1, __ATOMIC_ACQ_REL);
    await_number(&m->inside, (round + 1) * members);
    check(__atomic_load_n(&m->lock, __ATOMIC_RELAXED) & LOCKED);
}

static void leave_meeting(meeting *m)
{
    ExReleasePushLockShared(&m->lock);
    __atomic_add_fetch(&m->left, 1, __ATOMIC_ACQ_REL);
}

static void come_shared(meeting *m, unsigned long round, unsigned members, unsigned delay)
{
    await_number(&m->opened, round + 1);
    work(delay);
    ExAcquirePushLockShared(&m->lock);
    meet_inside(m, round, members);
    leave_meeting(m);
}

static void open_round(meeting *m, unsigned long round, unsigned members, unsigned delay)
{
    ExAcquirePushLockExclusive(&m->lock);
    __atomic_store_n(&m->opened, round + 1, __ATOMIC_RELEASE);
    work(delay);
    if (m->convert) {
        ExConvertPushLockExclusiveToShared(&m->lock);
        meet_inside(m, round, members);
        leave_meeting(m);
    } else {
        ExReleasePushLockExclusive(&m->lock);
    }
}

static void hold_a_meeting(void *argument, unsigned index)
{
    meeting *m = argument;
    unsigned members = m->convert ? 3 : 2;
    test_random random;
    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < m->rounds; round++) {
        unsigned delay = random_below(&random, round % 8 == 0 ? 30000 : 300);
        if (index == 0) {
            open_round(m, round, members, delay);
        } else {
            come_shared(m, round, members, delay);
        }
        await_number(&m->left, (round + 1) * members);
    }
}

static void requirement_3_shared_stays_shared(void **state)
{
    (void)state;
    for (unsigned convert = 0; convert < 2; convert++) {
        meeting m = {.rounds = test_rounds(2000), .convert = convert != 0};
        run_crew(3, hold_a_meeting, &m);
        assert_int_equal(m.lock, 0);
    }
}

/* The same while a wake is in progress: an exclusive waiter has been woken, sharers arrive, and must be admitted
   together behind it. */
static void requirement_3_shared_stays_shared_while_a_waiter_is_on_its_way(void **state)
{
    (void)state;
    play("0X 1X! 2X! < 0x 3S! 4S! > 1. 1x 2. 2x 3. 4.");
    assert_int_equal(stage_word(), LOCKED + 2 * SHARE);
    end_play();
    play("0X 1X! < 0x 3S 4S > 1! 3s 4s 1.");
    end_play();
}

/* Waiting sharers join a holder that converts to shared, whichever thread has the Waking bit at the moment. */
static void barge_and_convert(meeting *m, unsigned long round)
{
    BOOLEAN barged = FALSE;
    unsigned tries = 0;
    await_number(&m->opened, round + 1);
    while (!barged && !ExTryAcquirePushLockShared(&m->lock)) {
        barged = ExTryAcquirePushLockExclusive(&m->lock);
        if (++tries % 1024 == 0) {
            sched_yield();
        }
    }
    if (barged) {
        ExConvertPushLockExclusiveToShared(&m->lock);
    }
    meet_inside(m, round, 3);
    leave_meeting(m);
}

static void hold_a_barged_meeting(void *argument, unsigned index)
{
    meeting *m = argument;
    test_random random;
    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < m->rounds; round++) {
        if (index == 0) {
            ExAcquirePushLockExclusive(&m->lock);
            __atomic_store_n(&m->opened, round + 1, __ATOMIC_RELEASE);
            while (!(__atomic_load_n(&m->lock, __ATOMIC_RELAXED) & WAITING)) {
                sched_yield();
            }
            ExReleasePushLockExclusive(&m->lock);
        } else if (index == 1) {
            barge_and_convert(m, round);
        } else {
            come_shared(m, round, 3, random_below(&random, 300));
        }
        await_number(&m->left, (round + 1) * 3);
    }
}

static void requirement_3_shared_stays_shared_after_a_conversion(void **state)
{
    meeting m = {.rounds = test_rounds(2000)};
    (void)state;
    run_crew(4, hold_a_barged_meeting, &m);
    assert_int_equal(m.lock, 0);
}

/* A waiter that finds the lock taken each time it is woken is finally handed it. */
static void requirement_4_overtaking_is_bounded(void **state)
{
    (void)state;
    play("0X 1X! 2X!");
    play("< 0x 3T+ > 1!");
    play("< 3x 4T+ > 1!");
    play("< 4x 3T+ > 1!");
    play("< 3x");
    assert_int_equal(stage_word() & EXP_PUSH_LOCK_BITS, LOCKED | WAITING);
    play("3T- 4t- > 1.");
    end_play();
}

static void requirement_4_alone_in_the_queue_too(void **state)
{
    (void)state;
    play("0X 1X!");
    for (unsigned loss = 0; loss < 3; loss++) {
        play("< 0x 0T+ > 1!");
    }
    play("< 0x");
    assert_int_equal(stage_word(), LOCKED);
    play("0T- > 1.");
    end_play();
}

/* A thread overtakes a waiter whose wake never arrives, until its turn is over: then it queues behind the waiter. */
static void pass_waiters(void *argument)
{
    volatile ULONG_PTR *lock = argument;
    self = &stage.player[3];
    for (ULONG pass = 0; pass < KI_LONGEST_TURN; pass++) {
        check(!KiIsTurnOver(KiCurrentThread(), lock));
        ExpAcquirePushLockExclusive(lock, &stage_methods);
        ExpReleasePushLockExclusive(lock, &stage_methods);
    }
    check(KiIsTurnOver(KiCurrentThread(), lock));
}

static void requirement_4_a_turn_ends(void **state)
{
    (void)state;
    play("0X 1X! 2X! < 0x");
    run_on(&stage.player[3].actor, pass_waiters, (void *)&stage.lock);
    assert_int_equal(stage_word() & EXP_PUSH_LOCK_BITS, WAITING | WAKING);
    play("3T+ 3x 3X!"); /* a try always may, an acquire no longer */
    assert_int_equal(stage_word() & EXP_PUSH_LOCK_BITS, WAITING | WAKING);
    assert_int_equal(blocks_in(stage_word()), 2);
    play("> 1. 1x 2. 2x 3.");
    end_play();
}

/* Without waiters ahead of it, it takes the lock. */
static void requirement_4_a_turn_ends_for_others_only(void **state)
{
    (void)state;
    play("0X 1X! 2X! < 0x");
    run_on(&stage.player[3].actor, pass_waiters, (void *)&stage.lock);
    play("> 1. 1x 2. 2x 3X 3x");
    end_play();
}

/* Meanwhile it has yielded its processor, after the release, for a woken waiter. */
static ULONG yields;
static BOOLEAN yielded_as_holder;

static VOID note_yield(VOID)
{
    yields += 1;
    yielded_as_holder = yielded_as_holder || (stage_word() & LOCKED);
}

static void pass_waiters_and_yield(void *argument)
{
    VOID (*yield)(VOID) = HalDispatch.Yield;
    HalDispatch.Yield = note_yield;
    pass_waiters(argument);
    HalDispatch.Yield = yield;
}

static void requirement_4_a_turn_gives_the_processor_away(void **state)
{
    (void)state;
    yields = 0;
    yielded_as_holder = FALSE;
    play("0X 1X! 2X! < 0x");
    run_on(&stage.player[3].actor, pass_waiters_and_yield, (void *)&stage.lock);
    assert_int_equal(yields, KI_LONGEST_TURN / KI_TURN);
    assert_false(yielded_as_holder);
    play("3X! > 1. 1x 2. 2x 3.");
    end_play();
}

/* In a crowd a wait queues at once, and a pass counts as contention. */
static ULONG acquires_of(unsigned number)
{
    return stage.player[number].actor.thread->HostTurn.Acquires;
}

static void count_passes_in_crowd(void *argument)
{
    volatile ULONG_PTR *lock = argument;
    ExpAcquirePushLockExclusive(lock, &stage_methods);
    ExpReleasePushLockExclusive(lock, &stage_methods);
}

static void requirement_4_in_a_crowd(void **state)
{
    VOID (*yield)(VOID) = HalDispatch.Yield;
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        stage.player[i].actor.thread->HostTurn = (HAL_TURN){0};
    }
    yields = 0;
    HalDispatch.Yield = note_yield;
    play("0X 1X!");
    assert_int_equal(yields, HalYieldsBeforeSleep());
    play("0x 1. 1x");
    assert_int_equal(acquires_of(0), 0);
    make_crowd();
    assert_true(HalIsCrowded());
    yields = 0;
    play("0X 1X! 2X!"); /* a lock with bounded barging does not queue them earlier */
    assert_int_equal(yields, 2 * HalYieldsBeforeSleep());
    play("< 0x");
    assert_int_equal(acquires_of(0), 0);
    run_on(&stage.player[3].actor, count_passes_in_crowd, (void *)&stage.lock);
    assert_int_equal(acquires_of(3), 0);
    HalDispatch.Yield = yield;
    play("> 1. 1x 2. 2x");
    assert_true(HalIsCrowded());
    play("0X 1S!"); /* threads that share are no crowd */
    assert_false(HalIsCrowded());
    play("0x 1. 1s");
    end_play();
}

/* With threads that release only briefly: the queued one gets the lock. */
typedef struct rush {
    EX_PUSH_LOCK lock;
    BOOLEAN over;
    unsigned long waits;
} rush;

static void rush_in(void *argument, unsigned index)
{
    rush *r = argument;
    if (index == 0) {
        for (unsigned long wait = 0; wait < r->waits; wait++) {
            ExAcquirePushLockExclusive(&r->lock);
            ExReleasePushLockExclusive(&r->lock);
            pause_briefly();
        }
        __atomic_store_n(&r->over, TRUE, __ATOMIC_RELEASE);
        return;
    }
    while (!__atomic_load_n(&r->over, __ATOMIC_ACQUIRE)) {
        if (index % 2 == 0) {
            ExAcquirePushLockExclusive(&r->lock);
            work(20);
            ExReleasePushLockExclusive(&r->lock);
        } else {
            ExAcquirePushLockShared(&r->lock);
            work(20);
            ExReleasePushLockShared(&r->lock);
        }
    }
}

static void requirement_4_nobody_starves(void **state)
{
    rush r = {.waits = test_rounds(50)};
    (void)state;
    run_crew(5, rush_in, &r);
    assert_int_equal(r.lock, 0);
}

static void requirement_5_sharers_wait_behind_a_queued_owner(void **state)
{
    (void)state;
    play("0S 1X! 2S! 3t- 0s 1.");
    assert_int_equal(stage_word() & EXP_PUSH_LOCK_BITS, LOCKED | WAITING);
    play("1x 2.");
    end_play();
    play("0S 1S 2X! 3S! 0s");
    assert_int_equal(blocks_in(stage_word()), 2);
    play("1s 2. 2x 3.");
    end_play();
}

/* Not if only sharers wait: those are admitted together with later sharers. */
static void requirement_5_but_not_behind_other_sharers(void **state)
{
    (void)state;
    play("0X 1S! 2S! 0x 1. 2. 3S 4t+");
    assert_int_equal(stage_word(), LOCKED + 4 * SHARE);
    end_play();
}

typedef struct try_row {
    const char *script;
    BOOLEAN exclusive;
    BOOLEAN shared;
} try_row;

static const try_row try_rows[] = {
    {"", TRUE, TRUE},
    {"0X", FALSE, FALSE},
    {"0S", FALSE, TRUE},
    {"0S 1S", FALSE, TRUE},
    {"0X 1X!", FALSE, FALSE},
    {"0X 1S!", FALSE, FALSE},
    {"0S 1X!", FALSE, FALSE},
    {"0S 1S 2X!", FALSE, FALSE},
    {"0X 1X! 2X! < 0x", TRUE, FALSE},
    {"0X 1X! < 0x", TRUE, TRUE},
};

static void requirement_6_try_takes_what_is_free_and_never_blocks(void **state)
{
    (void)state;
    for (const try_row *r = try_rows; r < try_rows + RTL_NUMBER_OF(try_rows); r++) {
        play(r->script);
        play(r->exclusive ? "4T+ 4x" : "4T-");
        end_play();
        play(r->script);
        play(r->shared ? "4t+ 4s" : "4t-");
        end_play();
    }
}

static void requirement_7_a_conversion_never_blocks(void **state)
{
    (void)state;
    play("0S 0c+ 1t- 0C 1t+ 0c- 1s 0c+");
    end_play();
    play("0X 1X! 2S! 0C 0c+ 0C 0s 1.");
    end_play();
    play("0X 1S! 2X! 3S! 0C 1. 0c- 1c- 0s 1c+ 1x 2.");
    end_play();
    play("0X 1X! 2S! < 0x 3T+ 3C 3c+ 3C > 1! 3s 1. 1x 2. 2c+");
    end_play();
}

/* A thread that sleeps for the lock. */

typedef struct sleeper {
    actor actor;
    EX_PUSH_LOCK lock;
    ULONG flags;
    BOOLEAN shared;
    KPRIORITY priority; /* when it had the lock */
    PVOID waited_for;   /* likewise */
} sleeper;

static void sleep_for_the_lock(void *argument)
{
    sleeper *s = argument;
    KeEnterCriticalRegion();
    if (s->shared) {
        ExAcquirePushLockSharedEx(&s->lock, s->flags);
    } else {
        ExAcquirePushLockExclusiveEx(&s->lock, s->flags);
    }
    s->priority = KeQueryPriorityThread(KeGetCurrentThread());
    s->waited_for = KiCurrentThread()->LockWaitedFor;
    ExReleasePushLockEx(&s->lock, s->flags);
    KeLeaveCriticalRegion();
}

static void wake_a_sleeper(sleeper *s, ULONG flags, BOOLEAN shared)
{
    s->flags = flags;
    s->shared = shared;
    ExAcquirePushLockExclusive(&s->lock);
    tell(&s->actor, sleep_for_the_lock, s);
    await(is_committed(s->actor.thread));
    assert_ptr_equal(s->actor.thread->LockWaitedFor, &s->lock);
    ExReleasePushLockExclusive(&s->lock);
    await(is_idle(&s->actor));
    assert_int_equal(s->lock, 0);
    assert_null(s->waited_for);
}

static void requirement_8_zeroed_memory_is_a_free_lock(void **state)
{
    EX_PUSH_LOCK *lock = calloc(1, sizeof(*lock));
    (void)state;
    assert_int_equal(sizeof(EX_PUSH_LOCK), sizeof(void *));
    assert_int_equal(sizeof(EX_PUSH_LOCK_WAIT_BLOCK), 64);
    assert_true(ExTryAcquirePushLockExclusive(lock));
    ExReleasePushLockExclusive(lock);
    ExAcquirePushLockShared(lock);
    ExReleasePushLockShared(lock);
    assert_int_equal(*lock, 0);
    free(lock);
}

static void empty_heap(void *unused)
{
    (void)unused;
    allocations_left = 0;
}

static void refill_heap(void *unused)
{
    (void)unused;
    allocations_left = -1;
}

static void requirement_8_nothing_is_allocated(void **state)
{
    sleeper s = {.lock = 0};
    unsigned refused = allocations_refused;
    (void)state;
    start_actor(&s.actor);
    run_on(&s.actor, empty_heap, NULL);
    allocations_left = 0;
    wake_a_sleeper(&s, 0, FALSE);
    wake_a_sleeper(&s, 0, TRUE);
    allocations_left = -1;
    run_on(&s.actor, refill_heap, NULL);
    assert_int_equal(allocations_refused, refused);
    end_actor(&s.actor);
}

/* The last thread to leave frees the lock while the others' releases may still be in progress. */
typedef struct mortal {
    EX_PUSH_LOCK lock;
    unsigned users;
} mortal;

#define MORTAL_USERS 3

typedef struct funeral {
    unsigned long rounds;
    unsigned long arrived; /* in all rounds together */
    unsigned long opened;
    mortal *mortal;
} funeral;

/* The last thread to arrive provides the lock. */
static mortal *lock_of_round(funeral *f, unsigned long round)
{
    if (__atomic_add_fetch(&f->arrived, 1, __ATOMIC_ACQ_REL) == (round + 1) * MORTAL_USERS) {
        f->mortal = calloc(1, sizeof(mortal));
        f->mortal->users = MORTAL_USERS;
        __atomic_store_n(&f->opened, round + 1, __ATOMIC_RELEASE);
    }
    await_number(&f->opened, round + 1);
    return f->mortal;
}

static void bury(void *argument, unsigned index)
{
    funeral *f = argument;
    for (unsigned long round = 0; round < f->rounds; round++) {
        mortal *m = lock_of_round(f, round);
        BOOLEAN shared = (round / 4 + index) % 2 == 0;
        if (shared) {
            ExAcquirePushLockShared(&m->lock);
        } else {
            ExAcquirePushLockExclusive(&m->lock);
        }
        work(round % 7 * 10);
        BOOLEAN last = __atomic_sub_fetch(&m->users, 1, __ATOMIC_ACQ_REL) == 0;
        if (last && shared) {
            /* the other sharers may not have released yet */
            while (!ExTryConvertPushLockSharedToExclusive(&m->lock)) {
                sched_yield();
            }
        }
        ExReleasePushLock(&m->lock);
        if (last) {
            free(m);
        }
    }
}

static void requirement_9_nobody_touches_a_lock_that_may_be_gone(void **state)
{
    funeral f = {.rounds = test_rounds(8000)};
    (void)state;
    run_crew(MORTAL_USERS, bury, &f);
}

/* Misuse. */

static void release_exclusive(void *lock)
{
    KeEnterCriticalRegion();
    ExReleasePushLockExclusive((PEX_PUSH_LOCK)lock);
}

static void release_shared(void *lock)
{
    KeEnterCriticalRegion();
    ExReleasePushLockShared((PEX_PUSH_LOCK)lock);
}

static void release_either(void *lock)
{
    KeEnterCriticalRegion();
    ExReleasePushLock((PEX_PUSH_LOCK)lock);
}

static void convert(void *lock)
{
    ExConvertPushLockExclusiveToShared((PEX_PUSH_LOCK)lock);
}

static void what_is_not_held_is_not_released(void **state)
{
    EX_PUSH_LOCK lock = 0;
    (void)state;
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_exclusive, &lock);
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_shared, &lock);
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_either, &lock);
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, convert, &lock);
    lock = LOCKED;
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_shared, &lock);
    lock = LOCKED + SHARE;
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, release_exclusive, &lock);
    expect_bugcheck(KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, convert, &lock);
}

/* The sleep, and AutoBoost. */

static void a_waiter_sleeps_on_the_event_in_its_block(void **state)
{
    sleeper s = {.lock = 0};
    (void)state;
    start_actor(&s.actor);
    for (unsigned shared = 0; shared < 2; shared++) {
        s.actor.thread->WaitReason = Executive;
        wake_a_sleeper(&s, 0, shared != 0);
        assert_int_equal(s.actor.thread->WaitReason, WrPushLock);
        assert_int_equal(s.actor.thread->WaitMode, KernelMode);
    }
    end_actor(&s.actor);
}

static void autoboost_belongs_to_the_acquire(void **state)
{
    KPRIORITY own = KeQueryPriorityThread(KeGetCurrentThread());
    (void)state;
    KeSetPriorityThread(KeGetCurrentThread(), 13);
    for (unsigned shared = 0; shared < 2; shared++) {
        sleeper s = {.lock = 0};
        start_actor(&s.actor);
        assert_int_equal(s.actor.thread->AutoBoostCount, 0);
        wake_a_sleeper(&s, EX_PUSH_LOCK_FLAG_DISABLE_AUTOBOOST, shared != 0);
        assert_int_equal(s.actor.thread->AutoBoostCount, 0);
        assert_true(s.priority < 13);
        wake_a_sleeper(&s, 0, shared != 0);
        assert_int_equal(s.actor.thread->AutoBoostCount, 1);
        assert_true(s.priority >= 13);
        end_actor(&s.actor);
    }
    KeSetPriorityThread(KeGetCurrentThread(), own);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirement_1_an_owner_is_alone),
        cmocka_unit_test(requirement_2_no_wake_is_lost),
        cmocka_unit_test(requirement_3_shared_stays_shared),
        STAGED(requirement_3_shared_stays_shared_while_a_waiter_is_on_its_way),
        cmocka_unit_test(requirement_3_shared_stays_shared_after_a_conversion),
        STAGED(requirement_4_overtaking_is_bounded),
        STAGED(requirement_4_alone_in_the_queue_too),
        STAGED(requirement_4_a_turn_ends),
        STAGED(requirement_4_a_turn_ends_for_others_only),
        STAGED(requirement_4_a_turn_gives_the_processor_away),
        STAGED(requirement_4_in_a_crowd),
        cmocka_unit_test(requirement_4_nobody_starves),
        STAGED(requirement_5_sharers_wait_behind_a_queued_owner),
        STAGED(requirement_5_but_not_behind_other_sharers),
        STAGED(requirement_6_try_takes_what_is_free_and_never_blocks),
        STAGED(requirement_7_a_conversion_never_blocks),
        IN_REGION(requirement_8_zeroed_memory_is_a_free_lock),
        IN_REGION(requirement_8_nothing_is_allocated),
        cmocka_unit_test(requirement_9_nobody_touches_a_lock_that_may_be_gone),
        cmocka_unit_test(what_is_not_held_is_not_released),
        IN_REGION(a_waiter_sleeps_on_the_event_in_its_block),
        IN_REGION(autoboost_belongs_to_the_acquire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
