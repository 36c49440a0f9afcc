/* Waits for any of several objects. */
#include "waittest.h"

static KEVENT events[MAXIMUM_WAIT_OBJECTS + 1];

static void make_events(ULONG count, EVENT_TYPE type)
{
    for (ULONG i = 0; i < count; i += 1) {
        KeInitializeEvent(&events[i], type, FALSE);
    }
}

static wait_call any_of_events(ULONG count)
{
    wait_call call = {.count = count, .multiple = TRUE};
    for (ULONG i = 0; i < count; i += 1) {
        call.object[i] = &events[i];
    }
    return call;
}

static ULONG signaled_events(ULONG count)
{
    ULONG signaled = 0;
    for (ULONG i = 0; i < count; i += 1) {
        signaled += KeReadStateEvent(&events[i]) != 0;
    }
    return signaled;
}

/* Of several signaled objects the lowest index wins, and only that object is consumed. */
static void test_lowest_index(void **state)
{
    (void)state;
    for (ULONG alertable = 0; alertable < 2; alertable += 1) {
        make_events(5, SynchronizationEvent);
        wait_call call = any_of_events(5);
        call.alertable = (BOOLEAN)alertable;
        KeSetEvent(&events[1], 0, FALSE);
        KeSetEvent(&events[2], 0, FALSE);
        KeSetEvent(&events[4], 0, FALSE);
        assert_int_equal(perform(&call), STATUS_WAIT_1);
        assert_int_equal(signaled_events(5), 2);
        assert_int_equal(perform(&call), STATUS_WAIT_2);
        assert_int_equal(perform(&call), STATUS_WAIT_0 + 4);
        call.timeout = NO_TIME;
        assert_int_equal(perform(&call), STATUS_TIMEOUT);
    }
}

/* Every index of 64, before the wait and under it. */
static void test_sixty_four_objects(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    make_events(MAXIMUM_WAIT_OBJECTS, SynchronizationEvent);
    wait_call call = any_of_events(MAXIMUM_WAIT_OBJECTS);
    for (ULONG i = 0; i < MAXIMUM_WAIT_OBJECTS; i += 1) {
        KeSetEvent(&events[i], 0, FALSE);
        assert_int_equal(wait_on(&w, &call), STATUS_WAIT_0 + i);
        begin_wait(&w);
        for (ULONG j = 0; j < MAXIMUM_WAIT_OBJECTS; j += 1) {
            assert_false(has_no_waiters(&events[j]));
        }
        KeSetEvent(&events[i], 0, FALSE);
        assert_int_equal(end_wait(&w), STATUS_WAIT_0 + i);
        assert_int_equal(signaled_events(MAXIMUM_WAIT_OBJECTS), 0);
        for (ULONG j = 0; j < MAXIMUM_WAIT_OBJECTS; j += 1) {
            assert_true(has_no_waiters(&events[j]));
        }
    }
    end_waiters(&w, 1);
}

/* The same object at several indices. */
static void test_duplicates(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    make_events(2, SynchronizationEvent);
    wait_call call = {.count = 4, .object = {&events[0], &events[1], &events[0], &events[1]}};
    KeSetEvent(&events[1], 0, FALSE);
    assert_int_equal(wait_on(&w, &call), STATUS_WAIT_1);
    begin_wait(&w);
    KeSetEvent(&events[1], 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_1);
    begin_wait(&w);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    assert_int_equal(signaled_events(2), 0);
    assert_true(has_no_waiters(&events[0]));
    assert_true(has_no_waiters(&events[1]));
    end_waiters(&w, 1);
}

/* A second signal finds the wait already ended: it stays with its object. */
static void test_only_one_object_is_consumed(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    make_events(3, SynchronizationEvent);
    w.call = any_of_events(3);
    begin_wait(&w);
    KeSetEvent(&events[2], 0, FALSE);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_2);
    assert_int_equal(KeReadStateEvent(&events[0]), 1);
    assert_int_equal(KeReadStateEvent(&events[2]), 0);
    end_waiters(&w, 1);
}

/* Two threads wait for the same two objects in opposite order; each object goes to its first waiter. */
static void test_two_threads_opposite_order(void **state)
{
    waiter w[2];
    (void)state;
    start_waiters(w, 2);
    make_events(2, SynchronizationEvent);
    w[0].call = (wait_call){.count = 2, .object = {&events[0], &events[1]}};
    w[1].call = (wait_call){.count = 2, .object = {&events[1], &events[0]}};
    begin_wait(&w[0]);
    begin_wait(&w[1]);
    KeSetEvent(&events[1], 0, FALSE);
    assert_false(still_waits(&w[0]));
    assert_true(still_waits(&w[1]));
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_1);
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_1);
    end_waiters(w, 2);
}

static void acquire_mutants(void *argument)
{
    PKMUTANT mutants = argument;
    check(wait_for(&mutants[0], NULL) == STATUS_SUCCESS);
    check(wait_for(&mutants[1], NULL) == STATUS_SUCCESS);
}

/* STATUS_ABANDONED_WAIT_0 plus the index, for a mutant abandoned before the wait and for one abandoned under it. */
static void test_abandoned_index(void **state)
{
    actor owner = {0};
    waiter w;
    KMUTANT mutants[2];
    (void)state;
    start_waiters(&w, 1);
    start_actor(&owner);
    make_events(2, SynchronizationEvent);
    KeInitializeMutant(&mutants[0], FALSE);
    KeInitializeMutant(&mutants[1], FALSE);
    run_on(&owner, acquire_mutants, mutants);
    w.call = (wait_call){.count = 3, .object = {&events[0], &events[1], &mutants[0]}};
    begin_wait(&w);
    end_actor(&owner);
    assert_int_equal(end_wait(&w), STATUS_ABANDONED_WAIT_0 + 2);
    for (ULONG alertable = 0; alertable < 2; alertable += 1) {
        wait_call call = {.count = 2, .object = {&events[0], &mutants[1]}, .alertable = (BOOLEAN)alertable};
        assert_int_equal(perform(&call), alertable ? STATUS_WAIT_1 : STATUS_ABANDONED_WAIT_0 + 1);
    }
    KeReleaseMutant(&mutants[1], 0, FALSE, FALSE);
    KeReleaseMutant(&mutants[1], 0, FALSE, FALSE);
    end_waiters(&w, 1);
    assert_int_equal(mutants[0].Abandoned, TRUE);
}

static void wait_for_events_without_array(void *count)
{
    PVOID objects[MAXIMUM_WAIT_OBJECTS + 1];
    for (ULONG i = 0; i < ARRAYSIZE(objects); i += 1) {
        objects[i] = &events[i];
    }
    KeWaitForMultipleObjects(*(PULONG)count, objects, WaitAny, Executive, KernelMode, FALSE, NO_TIME, NULL);
}

static void wait_for_events_with_array(void *count)
{
    KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS + 1];
    PVOID objects[MAXIMUM_WAIT_OBJECTS + 1];
    for (ULONG i = 0; i < ARRAYSIZE(objects); i += 1) {
        objects[i] = &events[i];
    }
    KeWaitForMultipleObjects(*(PULONG)count, objects, WaitAny, Executive, KernelMode, FALSE, NO_TIME, blocks);
}

static void test_too_many_objects(void **state)
{
    ULONG four = THREAD_WAIT_OBJECTS + 1;
    ULONG many = MAXIMUM_WAIT_OBJECTS + 1;
    ULONG three = THREAD_WAIT_OBJECTS;
    ULONG most = MAXIMUM_WAIT_OBJECTS;
    (void)state;
    make_events(MAXIMUM_WAIT_OBJECTS + 1, SynchronizationEvent);
    wait_for_events_without_array(&three);
    wait_for_events_with_array(&most);
    expect_bugcheck(MAXIMUM_WAIT_OBJECTS_EXCEEDED, wait_for_events_without_array, &four);
    expect_bugcheck(MAXIMUM_WAIT_OBJECTS_EXCEEDED, wait_for_events_with_array, &many);
}

static void test_no_objects(void **state)
{
    KWAIT_BLOCK block;
    PVOID objects[1] = {NULL};
    (void)state;
    assert_int_equal(KeWaitForMultipleObjects(0, objects, WaitAny, Executive, KernelMode, FALSE, NO_TIME, &block),
                     STATUS_INVALID_PARAMETER_1);
    assert_int_equal(KeWaitForMultipleObjects(0, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL),
                     STATUS_INVALID_PARAMETER_1);
}

/* Three objects and a timeout fit into the thread's own blocks. */
static void test_three_objects_and_a_timeout(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    (void)state;
    make_events(3, SynchronizationEvent);
    wait_call call = any_of_events(3);
    call.timeout = &time;
    assert_int_equal(perform(&call), STATUS_TIMEOUT);
    KeSetEvent(&events[2], 0, FALSE);
    assert_int_equal(perform(&call), STATUS_WAIT_2);
}

/* Memory behind the blocks of a wait is the caller's, whatever it looks like. */
static void test_blocks_behind_the_last_are_not_touched(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    KWAIT_BLOCK blocks[6], behind;
    PVOID objects[5];
    (void)state;
    make_events(5, SynchronizationEvent);
    for (ULONG i = 0; i < 5; i += 1) {
        objects[i] = &events[i];
    }
    memset(&behind, 0xdd, sizeof(behind));
    behind.BlockState = WaitBlockActive;
    behind.Object = NULL;
    for (WAIT_TYPE type = WaitAll; type <= WaitAny; type += 1) {
        blocks[5] = behind;
        assert_int_equal(KeWaitForMultipleObjects(5, objects, type, Executive, KernelMode, FALSE, &time, blocks), STATUS_TIMEOUT);
        assert_memory_equal(&blocks[5], &behind, sizeof(behind));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_lowest_index),
        WATCHED(test_sixty_four_objects),
        WATCHED(test_duplicates),
        WATCHED(test_only_one_object_is_consumed),
        WATCHED(test_two_threads_opposite_order),
        WATCHED(test_abandoned_index),
        WATCHED(test_too_many_objects),
        WATCHED(test_no_objects),
        WATCHED(test_three_objects_and_a_timeout),
        WATCHED(test_blocks_behind_the_last_are_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
