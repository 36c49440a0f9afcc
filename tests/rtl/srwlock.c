/* SRW locks: what programs rely on. srwword.c has the states of the word. */
#include "srwtest.h"

#include <sched.h>
#include <signal.h>

static ULONG_PTR word(void)
{
    return stage_word();
}

static void initializers(void **state)
{
    RTL_SRWLOCK lock = RTL_SRWLOCK_INIT;
    (void)state;
    assert_int_equal(sizeof(lock), 8);
    assert_null(lock.Ptr);
    lock.Ptr = (PVOID)0x77;
    RtlInitializeSRWLock(&lock);
    assert_null(lock.Ptr);
    RtlAcquireSRWLockExclusive(&lock);
    assert_ptr_equal(lock.Ptr, (PVOID)1);
    RtlReleaseSRWLockExclusive(&lock);
    assert_null(lock.Ptr);
    RtlAcquireSRWLockShared(&lock);
    assert_ptr_equal(lock.Ptr, (PVOID)0x11);
    assert_true(RtlTryAcquireSRWLockShared(&lock));
    assert_ptr_equal(lock.Ptr, (PVOID)0x21);
    RtlReleaseSRWLockShared(&lock);
    RtlReleaseSRWLockShared(&lock);
    assert_null(lock.Ptr);
}

/* The same functions by address, as another language would call them. */
static void every_name_is_a_function(void **state)
{
    RTL_SRWLOCK lock = {(PVOID)7};
    void (*volatile initialize)(PRTL_SRWLOCK) = RtlInitializeSRWLock;
    void (*volatile acquire)(PRTL_SRWLOCK) = RtlAcquireSRWLockExclusive;
    void (*volatile release)(PRTL_SRWLOCK) = RtlReleaseSRWLockExclusive;
    void (*volatile acquire_shared)(PRTL_SRWLOCK) = RtlAcquireSRWLockShared;
    void (*volatile release_shared)(PRTL_SRWLOCK) = RtlReleaseSRWLockShared;
    BOOLEAN (*volatile try)(PRTL_SRWLOCK) = RtlTryAcquireSRWLockExclusive;
    BOOLEAN (*volatile try_shared)(PRTL_SRWLOCK) = RtlTryAcquireSRWLockShared;
    (void)state;
    initialize(&lock);
    assert_null(lock.Ptr);
    acquire(&lock);
    assert_false(try(&lock));
    assert_false(try_shared(&lock));
    release(&lock);
    acquire_shared(&lock);
    assert_true(try_shared(&lock));
    assert_false(try(&lock));
    release_shared(&lock);
    release_shared(&lock);
    assert_true(try(&lock));
    assert_ptr_equal(lock.Ptr, (PVOID)1);
    release(&lock);
    assert_null(lock.Ptr);
}

static void a_second_exclusive_acquire_blocks(void **state)
{
    (void)state;
    play("0X 0X!");
    play("1x 0."); /* another thread may release: there is no owner */
    assert_int_equal(word(), LOCKED);
    end_play();
    play("0S 0X!");
    play("1s 0.");
    assert_int_equal(word(), LOCKED);
    end_play();
    play("0X 0S!");
    play("1x 0.");
    assert_int_equal(word(), LOCKED + SHARE);
    end_play();
}

static void readers_nest_while_no_writer_waits(void **state)
{
    (void)state;
    play("0S 0S 0t+ 1S 0s 0s 0s");
    assert_int_equal(word(), LOCKED + SHARE);
    stage.player[0].holds = 0;
    end_play();
}

static void a_queued_writer_holds_new_readers_off(void **state)
{
    (void)state;
    play("0S 1X! 2t- 2S! 3S!");
    play("0s 1.");
    assert_true(sleeps(&stage.player[2]) && sleeps(&stage.player[3]));
    play("1x 2. 3.");
    assert_int_equal(word(), LOCKED + 2 * SHARE);
    end_play();
}

static void the_wait_shows_the_lock(void **state)
{
    (void)state;
    play("0X 1X! 2S!");
    for (int i = 1; i < 3; i += 1) {
        PKTHREAD thread = stage.player[i].actor.thread;
        assert_int_equal(thread->WaitReason, WrAlertByThreadId);
        assert_ptr_equal(thread->WaitBlockList[0].Object, stage.lock);
    }
    end_play();
}

/* No alert, whenever it comes, ends the wait for the lock. */
static void stray_alerts_change_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round += 1) {
        PKTHREAD thread = stage.player[1].actor.thread;
        play(round == 0 ? "0X 1X!" : "0X 1S!");
        for (int stray = 0; stray < 3; stray += 1) {
            KeAlertThreadById(thread);
            await(sleeps(&stage.player[1]) && !(thread->WaitRegister & KI_WAIT_ALERT_BY_ID_PENDING));
        }
        play("0x 1.");
        end_play();
    }
}

/* Misuse. */

static void release_exclusive(void *lock)
{
    RtlReleaseSRWLockExclusive(lock);
}

static void release_shared(void *lock)
{
    RtlReleaseSRWLockShared(lock);
}

static void convert_to_shared(void *lock)
{
    RtlConvertSRWLockExclusiveToShared(lock);
}

static void releasing_what_is_not_held_raises(void **state)
{
    static const struct {
        ULONG_PTR word;
        void (*misuse)(void *lock);
    } rows[] = {
        {0, release_exclusive},
        {0, release_shared},
        {0, convert_to_shared},
        {LOCKED, release_shared},
        {LOCKED + SHARE, release_exclusive},
        {LOCKED + SHARE, convert_to_shared},
        {LOCKED + 3 * SHARE, release_exclusive},
    };
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        RTL_SRWLOCK lock = {(PVOID)rows[i].word};
        assert_int_equal(raised_by(rows[i].misuse, &lock), STATUS_RESOURCE_NOT_OWNED);
        assert_ptr_equal(lock.Ptr, (PVOID)rows[i].word);
    }
    assert_false(RtlConvertSRWLockSharedToExclusive(&(RTL_SRWLOCK){NULL}));
}

static void uncaught_it_ends_the_program(void **state)
{
    static RTL_SRWLOCK lock;
    (void)state;
    expect_bugcheck(KMODE_EXCEPTION_NOT_HANDLED, release_exclusive, &lock);
}

/*
 * Shared means shared: readers that arrive while the lock is owned exclusively, while it is handed off, and afterwards
 * are all inside together. None leaves before; a lock that admits one of them alone hangs here. No thread waits for
 * exclusive access meanwhile, which would rightly block readers, but one tries to acquire it.
 */
#define READERS 4

static struct {
    RTL_SRWLOCK lock;
    unsigned long rounds;
    volatile unsigned long round;
    volatile unsigned long inside;
    volatile unsigned long left;
} party;

#define read_count(place) __atomic_load_n((place), __ATOMIC_SEQ_CST)
#define count_one(place) __atomic_add_fetch((place), 1, __ATOMIC_SEQ_CST)

static void delay(test_random *random)
{
    for (ULONG spins = random_below(random, 400); spins != 0; spins -= 1) {
        YieldProcessor();
    }
}

static void host_rounds(test_random *random)
{
    for (unsigned long round = 0; round < party.rounds; round += 1) {
        await(read_count(&party.left) == READERS * round);
        RtlAcquireSRWLockExclusive(&party.lock);
        count_one(&party.round);
        if (random_below(random, 4) == 0) {
            pause_briefly(); /* so that readers block */
        }
        delay(random);
        RtlReleaseSRWLockExclusive(&party.lock);
    }
}

static void visit_rounds(test_random *random)
{
    for (unsigned long round = 1; round <= party.rounds; round += 1) {
        await(read_count(&party.round) >= round);
        delay(random);
        RtlAcquireSRWLockShared(&party.lock);
        count_one(&party.inside);
        await(read_count(&party.inside) >= READERS * round);
        RtlReleaseSRWLockShared(&party.lock);
        count_one(&party.left);
    }
}

static void try_to_get_in(test_random *random)
{
    while (read_count(&party.left) != READERS * party.rounds) {
        if (RtlTryAcquireSRWLockExclusive(&party.lock)) {
            delay(random);
            RtlReleaseSRWLockExclusive(&party.lock);
        }
        pause_briefly();
    }
}

static void join_party(void *argument, unsigned index)
{
    test_random random;
    (void)argument;
    random_seed(&random, index + 1);
    if (index == 0) {
        host_rounds(&random);
    } else if (index == 1) {
        try_to_get_in(&random);
    } else {
        visit_rounds(&random);
    }
}

static void readers_are_never_alone(void **state)
{
    (void)state;
    memset(&party, 0, sizeof(party));
    party.rounds = test_rounds(1000);
    run_threads(2 + READERS, TEST_SECONDS, join_party, NULL);
    assert_null(party.lock.Ptr);
}

static void hold_and_meet(void *argument, unsigned index)
{
    PRTL_SRWLOCK lock = argument;
    (void)index;
    for (unsigned round = 0; round < 200; round++) {
        RtlAcquireSRWLockExclusive(lock);
        sched_yield();
        RtlReleaseSRWLockExclusive(lock);
    }
}

/* Waits and wakes do not change the program's handling of faults. */
static void contention_installs_no_fault_handler(void **state)
{
    RTL_SRWLOCK lock = RTL_SRWLOCK_INIT;
    struct sigaction before[2], after[2];
    (void)state;
    sigaction(SIGSEGV, NULL, &before[0]);
    sigaction(SIGBUS, NULL, &before[1]);
    run_threads(6, TEST_SECONDS, hold_and_meet, &lock);
    sigaction(SIGSEGV, NULL, &after[0]);
    sigaction(SIGBUS, NULL, &after[1]);
    assert_ptr_equal(after[0].sa_handler, before[0].sa_handler);
    assert_ptr_equal(after[1].sa_handler, before[1].sa_handler);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(initializers),
        WATCHED(every_name_is_a_function),
        STAGED(a_second_exclusive_acquire_blocks),
        STAGED(readers_nest_while_no_writer_waits),
        STAGED(a_queued_writer_holds_new_readers_off),
        STAGED(the_wait_shows_the_lock),
        STAGED(stray_alerts_change_nothing),
        WATCHED(releasing_what_is_not_held_raises),
        cmocka_unit_test(uncaught_it_ends_the_program),
        cmocka_unit_test(readers_are_never_alone),
        cmocka_unit_test(contention_installs_no_fault_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
