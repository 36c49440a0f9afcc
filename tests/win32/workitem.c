/* Work items. */
#include "tptest.h"

static volatile ULONG runs;

static DWORD count(LPVOID context)
{
    if (context != NULL) {
        set_event(context);
    }
    return add_one(&runs);
}

static void test_flags(void **state)
{
    static const ULONG flags[] = {WT_EXECUTEDEFAULT,       WT_EXECUTEINIOTHREAD,         WT_EXECUTELONGFUNCTION,
                                  WT_EXECUTEINTIMERTHREAD, WT_EXECUTEINPERSISTENTTHREAD, WT_TRANSFER_IMPERSONATION};
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        assert_true(QueueUserWorkItem(count, event, flags[i]));
        wait_event(event);
    }
    SetLastError(0);
    assert_false(QueueUserWorkItem(NULL, event, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    NtClose(event);
}

static void test_many(void **state)
{
    (void)state;
    await(count_of(&runs) == 6);
    runs = 0;
    for (ULONG i = 0; i < 1000; i += 1) {
        assert_true(QueueUserWorkItem(count, NULL, WT_EXECUTEDEFAULT));
    }
    await(count_of(&runs) == 1000);
}

static volatile ULONG inside;

static DWORD alone(LPVOID context)
{
    (void)context;
    check(add_one(&inside) == 1);
    pause_briefly();
    subtract_one(&inside);
    return add_one(&runs);
}

/* There is one timer thread. */
static void test_timer_thread(void **state)
{
    (void)state;
    runs = 0;
    for (ULONG i = 0; i < 20; i += 1) {
        assert_true(QueueUserWorkItem(alone, NULL, WT_EXECUTEINTIMERTHREAD));
    }
    await(count_of(&runs) == 20);
}

static void test_maximum(void **state)
{
    ULONG flags = WT_EXECUTEDEFAULT;
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    WT_SET_MAX_THREADPOOL_THREADS(flags, 7);
    assert_true(QueueUserWorkItem(count, event, flags));
    wait_event(event);
    assert_int_equal(TppDefaultPool.Maximum, 7);
    NtClose(event);
}

static BOOLEAN queue_in_child(void *argument)
{
    runs = 0;
    (void)argument;
    if (!QueueUserWorkItem(count, NULL, WT_EXECUTEDEFAULT)) {
        return FALSE;
    }
    await(count_of(&runs) == 1);
    return TRUE;
}

static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(in_child(queue_in_child, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_flags), WATCHED(test_many), WATCHED(test_timer_thread), WATCHED(test_maximum), WATCHED(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
