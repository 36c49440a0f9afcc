/* KSEMAPHORE. */
#include "waittest.h"

#define WAITERS 5

typedef struct release {
    PKSEMAPHORE semaphore;
    LONG adjustment;
} release;

static void perform_release(void *argument)
{
    release *r = argument;
    KeReleaseSemaphore(r->semaphore, 0, r->adjustment, FALSE);
}

static NTSTATUS raised_by_release(PKSEMAPHORE semaphore, LONG adjustment)
{
    release r = {semaphore, adjustment};
    return raised_by(perform_release, &r);
}

static void test_counts(void **state)
{
    KSEMAPHORE semaphore;
    (void)state;
    KeInitializeSemaphore(&semaphore, 2, 4);
    assert_int_equal(semaphore.Limit, 4);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 2);
    assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 1, FALSE), 2);
    assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 1, FALSE), 3);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 4);
    for (LONG left = 3; left >= 0; left -= 1) {
        assert_true(poll_object(&semaphore));
        assert_int_equal(KeReadStateSemaphore(&semaphore), left);
    }
    assert_false(poll_object(&semaphore));
    assert_int_equal(KeReadStateSemaphore(&semaphore), 0);
    assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 4, FALSE), 0);
}

/* A release that the limit forbids raises and changes nothing. */
static void test_limit(void **state)
{
    static const struct {
        LONG count, limit, adjustment;
        NTSTATUS raised;
    } cases[] = {
        {0, 1, 2, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {1, 1, 1, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {0, 1, 1, STATUS_SUCCESS},
        {3, 5, 2, STATUS_SUCCESS},
        {3, 5, 3, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {1, MAXLONG, MAXLONG, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {0, MAXLONG, MAXLONG, STATUS_SUCCESS},
        {MAXLONG, MAXLONG, 1, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {3, 5, -1, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {3, 5, -3, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {0, 5, (LONG)0x80000000, STATUS_SEMAPHORE_LIMIT_EXCEEDED},
        {3, 5, 0, STATUS_SUCCESS},
    };
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(cases); i += 1) {
        KSEMAPHORE semaphore;
        KeInitializeSemaphore(&semaphore, cases[i].count, cases[i].limit);
        print_message("# %d + %d of %d\n", cases[i].count, cases[i].adjustment, cases[i].limit);
        assert_int_equal(raised_by_release(&semaphore, cases[i].adjustment), cases[i].raised);
        assert_int_equal(KeReadStateSemaphore(&semaphore),
                         cases[i].raised == STATUS_SUCCESS ? cases[i].count + cases[i].adjustment : cases[i].count);
    }
}

/* The same with a waiter, which is not released. */
static void test_limit_with_a_waiter(void **state)
{
    waiter w;
    KSEMAPHORE semaphore;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeSemaphore(&semaphore, 0, 2);
    begin_wait_for(&w, &semaphore);
    assert_int_equal(raised_by_release(&semaphore, 3), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(raised_by_release(&semaphore, -1), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_true(still_waits(&w));
    assert_int_equal(KeReadStateSemaphore(&semaphore), 0);
    assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 0, FALSE), 0);
    assert_true(still_waits(&w));
    assert_int_equal(KeReleaseSemaphore(&semaphore, 0, 2, FALSE), 0);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 1);
    end_waiters(&w, 1);
}

/* A release by n wakes the n oldest waiters; the rest stays in the count. */
static void test_release_by_n(void **state)
{
    waiter w[WAITERS];
    (void)state;
    start_waiters(w, WAITERS);
    for (LONG n = 1; n <= WAITERS + 2; n += 1) {
        KSEMAPHORE semaphore;
        ULONG released = n < WAITERS ? (ULONG)n : WAITERS;
        KeInitializeSemaphore(&semaphore, 0, 100);
        for (ULONG i = 0; i < WAITERS; i += 1) {
            begin_wait_for(&w[i], &semaphore);
        }
        assert_int_equal(KeReleaseSemaphore(&semaphore, 0, n, FALSE), 0);
        for (ULONG i = 0; i < WAITERS; i += 1) {
            assert_int_equal(still_waits(&w[i]), i >= released);
        }
        assert_int_equal(KeReadStateSemaphore(&semaphore), n - (LONG)released);
        KeReleaseSemaphore(&semaphore, 0, (LONG)(WAITERS - released), FALSE);
        for (ULONG i = 0; i < WAITERS; i += 1) {
            assert_int_equal(end_wait(&w[i]), STATUS_WAIT_0);
        }
        assert_true(has_no_waiters(&semaphore));
    }
    end_waiters(w, WAITERS);
}

/* A waiter that gives up, by timeout or alert, consumes no count. */
static void test_leaving_the_line(void **state)
{
    waiter w[3];
    KSEMAPHORE semaphore;
    (void)state;
    start_waiters(w, 3);
    KeInitializeSemaphore(&semaphore, 0, 10);
    for (ULONG i = 0; i < 3; i += 1) {
        w[i].call = (wait_call){.count = 1, .object = {&semaphore}, .alertable = TRUE};
        begin_wait(&w[i]);
    }
    KeAlertThread(w[0].actor.thread, KernelMode);
    assert_int_equal(end_wait(&w[0]), STATUS_ALERTED);
    KeReleaseSemaphore(&semaphore, 0, 1, FALSE);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    assert_true(still_waits(&w[2]));
    KeReleaseSemaphore(&semaphore, 0, 1, FALSE);
    assert_int_equal(end_wait(&w[2]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 0);
    end_waiters(w, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_counts),       WATCHED(test_limit),           WATCHED(test_limit_with_a_waiter),
        WATCHED(test_release_by_n), WATCHED(test_leaving_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
