/*
 * Threads that only allocate are suspended and terminated. The requester must be able to allocate, and to fork: no
 * thread is stopped while it holds the lock of the heap.
 */
#include "child.h"
#include "sandbox.h"
#include "victim.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/wait.h>

#define BLOCKS 16
#define SECONDS 100

/* Larger than the C library's per-thread cache, so each call takes the lock. */
static size_t size_of(unsigned index)
{
    return 2000 + 700 * (index % 7);
}

static void allocate_some(void)
{
    void *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size_of(i));
        assert_non_null(blocks[i]);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static NTSTATUS allocate_for_ever(struct victim *victim)
{
    tell_ready(victim);
    while (victim->release == 0)
        allocate_some();
    victim->past = 1;
    return 0;
}

static int share_one_heap(void **state)
{
    (void)state;
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
    return 0;
}

static void fork_once(void)
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        allocate_some();
        _exit(7);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* A sanitizer's heap that is linked into the program cannot be distinguished from the program. */
static void need_a_heap_of_its_own(void)
{
    if (test_heap_may_stay_locked())
        skip();
}

static void suspend_again_and_again(void (*meanwhile)(void), unsigned long rounds)
{
    struct victim victim;

    create_victim(&victim, allocate_for_ever, 0);
    await(&victim.ready);
    watchdog_start(SECONDS);
    for (unsigned long round = 0; round < rounds; round++) {
        assert_int_equal(NtSuspendThread(victim.handle, NULL), STATUS_SUCCESS);
        meanwhile();
        assert_int_equal(NtResumeThread(victim.handle, NULL), STATUS_SUCCESS);
        HalDispatch.Yield();
    }
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), STATUS_SUCCESS);
    expect_end(&victim, EXIT_CODE);
    watchdog_stop();
    forget_victim(&victim);
}

static void a_suspended_thread_does_not_keep_the_heap(void **state)
{
    (void)state;
    need_a_heap_of_its_own();
    suspend_again_and_again(allocate_some, test_rounds(5000));
}

static void a_suspended_thread_does_not_hold_up_a_fork(void **state)
{
    (void)state;
    if (test_slowdown() != 1)
        skip(); /* sanitizers and forks do not go together */
    suspend_again_and_again(fork_once, test_rounds(300));
}

static void an_ended_thread_does_not_keep_the_heap(void **state)
{
    unsigned long rounds = test_rounds(300);

    (void)state;
    need_a_heap_of_its_own();
    watchdog_start(SECONDS);
    for (unsigned long round = 0; round < rounds; round++) {
        struct victim victim;

        create_victim(&victim, allocate_for_ever, 0);
        await(&victim.ready);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), STATUS_SUCCESS);
        expect_end(&victim, EXIT_CODE);
        allocate_some();
        forget_victim(&victim);
    }
    watchdog_stop();
}

/* Then a thread of the library interrupts it again. */
static void without_timers(void)
{
    if (!refuse_call(SYS_timer_create, EPERM))
        _exit(0);
    suspend_again_and_again(allocate_some, test_rounds(300));
}

static void it_does_not_if_the_host_refuses_timers(void **state)
{
    (void)state;
    need_a_heap_of_its_own();
    if (test_slowdown() != 1)
        skip(); /* sanitizers and forks do not go together */
    run_case_in_child(without_timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspended_thread_does_not_keep_the_heap),
        cmocka_unit_test(a_suspended_thread_does_not_hold_up_a_fork),
        cmocka_unit_test(an_ended_thread_does_not_keep_the_heap),
        cmocka_unit_test(it_does_not_if_the_host_refuses_timers),
    };

    return cmocka_run_group_tests(tests, share_one_heap, NULL);
}
