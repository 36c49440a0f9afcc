/* Waiting threads whose stacks NT may swap out, its PRCB's WaitListHead: the three conditions, and the processor. */
#include "waittest.h"

static BOOLEAN is_listed(PKTHREAD thread)
{
    return KiIsOnWaitList(thread) && thread->WaitProcessor < KeNumberProcessors;
}

static void disable_swap(void *previous)
{
    *(BOOLEAN *)previous = KeSetKernelStackSwapEnable(FALSE);
}

static void enable_swap(void *previous)
{
    *(BOOLEAN *)previous = KeSetKernelStackSwapEnable(TRUE);
}

static void test_three_conditions(void **state)
{
    static const LONG priorities[] = {1, 8, 15, 16, 24, 25, 31};
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (ULONG n = 0; n < 2 * 2 * ARRAYSIZE(priorities); n += 1) {
        KPROCESSOR_MODE mode = n % 2 ? UserMode : KernelMode;
        BOOLEAN swap = n / 2 % 2 != 0;
        LONG priority = priorities[n / 4];
        BOOLEAN previous;
        run_on(&w.actor, swap ? enable_swap : disable_swap, &previous);
        KeSetPriorityThread(w.actor.thread, priority);
        w.call = (wait_call){.count = 1, .object = {&event}, .mode = mode};
        begin_wait(&w);
        print_message("# %s mode, swap %u, priority %d\n", mode ? "user" : "kernel", swap, priority);
        assert_int_equal(is_listed(w.actor.thread), mode == UserMode && swap && priority <= 24);
        KeSetEvent(&event, 0, FALSE);
        assert_int_equal(end_wait(&w), STATUS_SUCCESS);
        assert_false(is_listed(w.actor.thread));
    }
    end_waiters(&w, 1);
}

static void test_enable_returns_the_previous_setting(void **state)
{
    (void)state;
    assert_true(KeSetKernelStackSwapEnable(FALSE));
    assert_false(KeSetKernelStackSwapEnable(FALSE));
    assert_false(KeSetKernelStackSwapEnable(TRUE));
    assert_true(KeSetKernelStackSwapEnable(TRUE));
}

/* However the wait ends, and in whatever form it was issued. */
static void test_off_the_list_after_the_wait(void **state)
{
    LARGE_INTEGER briefly = relative(MILLISECOND);
    LARGE_INTEGER long_time = relative(600 * SECOND);
    waiter w;
    KEVENT events[2];
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&events[1], SynchronizationEvent, FALSE);
    const wait_call calls[] = {
        {.count = 1, .object = {&events[0]}, .mode = UserMode, .alertable = TRUE},
        {.count = 2, .object = {&events[0], &events[1]}, .mode = UserMode, .alertable = TRUE},
        {.count = 2, .object = {&events[0], &events[1]}, .mode = UserMode, .alertable = TRUE, .all = TRUE},
        {.count = 0, .mode = UserMode, .alertable = TRUE, .timeout = &long_time},
    };
    for (ULONG i = 0; i < ARRAYSIZE(calls); i += 1) {
        w.call = calls[i];
        begin_wait(&w);
        assert_true(is_listed(w.actor.thread));
        KeAlertThread(w.actor.thread, KernelMode);
        assert_int_equal(end_wait(&w), STATUS_ALERTED);
        assert_false(is_listed(w.actor.thread));
        w.call.timeout = &briefly;
        run_on(&w.actor, perform_wait, &w);
        assert_int_equal(w.status, calls[i].count == 0 ? STATUS_SUCCESS : STATUS_TIMEOUT);
        assert_false(is_listed(w.actor.thread));
    }
    end_waiters(&w, 1);
}

/* A wait that ends before it begins is on no list. */
static void test_poll_is_not_listed(void **state)
{
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    assert_int_equal(KeWaitForSingleObject(&event, UserRequest, UserMode, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_false(is_listed(KeGetCurrentThread()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_three_conditions),
        WATCHED(test_enable_returns_the_previous_setting),
        WATCHED(test_off_the_list_after_the_wait),
        WATCHED(test_poll_is_not_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
