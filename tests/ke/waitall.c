/* Waits for all of several objects: at one instant, or not at all. */
#include "kinds.h"

static KEVENT events[MAXIMUM_WAIT_OBJECTS];

static wait_call all_of_events(ULONG count, EVENT_TYPE type)
{
    wait_call call = {.count = count, .all = TRUE};
    for (ULONG i = 0; i < count; i += 1) {
        KeInitializeEvent(&events[i], type, FALSE);
        call.object[i] = &events[i];
    }
    return call;
}

static void expect_states(ULONG count, LONG expected)
{
    for (ULONG i = 0; i < count; i += 1) {
        assert_int_equal(KeReadStateEvent(&events[i]), expected);
        assert_true(has_no_waiters(&events[i]));
    }
}

/* Nothing is consumed until the last object is signaled, whichever it is. */
static void test_last_signal_consumes_all(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG count = 1; count <= MAXIMUM_WAIT_OBJECTS; count = count < 8 ? count + 1 : count * 2) {
        for (ULONG first = 0; first < count && first < 9; first += 1) {
            w.call = all_of_events(count, SynchronizationEvent);
            begin_wait(&w);
            for (ULONG i = 0; i < count; i += 1) {
                assert_true(still_waits(&w));
                KeSetEvent(&events[(first + i) % count], 0, FALSE);
                if (i + 1 < count) {
                    assert_int_equal(KeReadStateEvent(&events[(first + i) % count]), 1);
                }
            }
            assert_false(still_waits(&w));
            assert_int_equal(end_wait(&w), STATUS_WAIT_0);
            expect_states(count, 0);
        }
    }
    end_waiters(&w, 1);
}

/* Objects that stay signaled, and objects that are reset before the last one is signaled. */
static void test_all_at_the_same_time(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    w.call = all_of_events(3, NotificationEvent);
    begin_wait(&w);
    KeSetEvent(&events[0], 0, FALSE);
    KeSetEvent(&events[1], 0, FALSE);
    KeResetEvent(&events[0]);
    KeSetEvent(&events[2], 0, FALSE);
    assert_true(still_waits(&w));
    KeSetEvent(&events[0], 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    expect_states(3, 1);
    end_waiters(&w, 1);
}

static void test_timeout_consumes_nothing(void **state)
{
    LARGE_INTEGER time = relative(MILLISECOND);
    const PLARGE_INTEGER timeouts[] = {NO_TIME, &time};
    (void)state;
    for (ULONG t = 0; t < ARRAYSIZE(timeouts); t += 1) {
        for (ULONG missing = 0; missing < 5; missing += 1) {
            wait_call call = all_of_events(5, SynchronizationEvent);
            call.timeout = timeouts[t];
            for (ULONG i = 0; i < 5; i += 1) {
                if (i != missing) {
                    KeSetEvent(&events[i], 0, FALSE);
                }
            }
            assert_int_equal(perform(&call), STATUS_TIMEOUT);
            for (ULONG i = 0; i < 5; i += 1) {
                assert_int_equal(KeReadStateEvent(&events[i]), i != missing);
            }
            KeSetEvent(&events[missing], 0, FALSE);
            assert_int_equal(perform(&call), STATUS_WAIT_0);
            expect_states(5, 0);
        }
    }
}

static void test_duplicates_are_refused(void **state)
{
    static const struct {
        ULONG count;
        ULONG index[5];
    } sets[] = {{2, {0, 0}}, {3, {0, 1, 0}}, {3, {1, 2, 2}}, {5, {0, 1, 2, 3, 0}}, {5, {4, 3, 2, 1, 3}}};
    (void)state;
    for (ULONG s = 0; s < ARRAYSIZE(sets); s += 1) {
        wait_call call = all_of_events(5, SynchronizationEvent);
        call.count = sets[s].count;
        for (ULONG i = 0; i < call.count; i += 1) {
            call.object[i] = &events[sets[s].index[i]];
        }
        for (ULONG i = 0; i < 5; i += 1) {
            KeSetEvent(&events[i], 0, FALSE);
        }
        assert_int_equal(perform(&call), STATUS_INVALID_PARAMETER_MIX);
        expect_states(5, 1);
    }
}

/* Also where there are many, and where the wait would otherwise poll, or block. */
static void test_duplicates_among_many(void **state)
{
    test_random random;
    (void)state;
    random_seed(&random, 64);
    for (ULONG round = 0; round < 500; round += 1) {
        ULONG count = 2 + random_below(&random, MAXIMUM_WAIT_OBJECTS - 1);
        wait_call call = all_of_events(MAXIMUM_WAIT_OBJECTS, SynchronizationEvent);
        ULONG first = random_below(&random, count);
        ULONG second = (first + 1 + random_below(&random, count - 1)) % count;
        LONG signaled = (LONG)random_below(&random, 2);
        call.count = count;
        call.object[first] = call.object[second];
        for (ULONG i = 0; i < count; i += 1) {
            events[i].Header.SignalState = signaled;
        }
        assert_int_equal(perform(&call), STATUS_INVALID_PARAMETER_MIX);
        for (ULONG i = 0; i < count; i += 1) {
            assert_int_equal(KeReadStateEvent(&events[i]), signaled);
        }
    }
}

static void shuffle(wait_call *call, test_random *random)
{
    for (ULONG i = call->count; i > 1; i -= 1) {
        ULONG other = random_below(random, i);
        PVOID object = call->object[i - 1];
        call->object[i - 1] = call->object[other];
        call->object[other] = object;
    }
}

/* The order in which the objects are named does not matter: already signaled, or after the last signal. */
static void test_in_whatever_order(void **state)
{
    LARGE_INTEGER no_time = {.QuadPart = 0};
    test_random random;
    waiter w;
    (void)state;
    random_seed(&random, 7);
    start_waiters(&w, 1);
    for (ULONG round = 0; round < 60; round += 1) {
        ULONG count = 1 + random_below(&random, MAXIMUM_WAIT_OBJECTS);
        w.call = all_of_events(count, SynchronizationEvent);
        shuffle(&w.call, &random);
        KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
        for (ULONG i = 0; i < count; i += 1) {
            assert_int_equal(
                KeWaitForMultipleObjects(count, w.call.object, WaitAll, Executive, KernelMode, FALSE, &no_time, blocks),
                STATUS_TIMEOUT);
            KeSetEvent(&events[i], 0, FALSE);
        }
        assert_int_equal(
            KeWaitForMultipleObjects(count, w.call.object, WaitAll, Executive, KernelMode, FALSE, &no_time, blocks),
            STATUS_WAIT_0);
        expect_states(count, 0);
        begin_wait(&w);
        wait_call order = w.call;
        shuffle(&order, &random);
        for (ULONG i = 0; i < count; i += 1) {
            KeSetEvent(order.object[i], 0, FALSE);
        }
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        expect_states(count, 0);
    }
    end_waiters(&w, 1);
}

/* Objects are sorted by address, whatever they are; duplicates are found. */
static void test_sorting(void **state)
{
    static UCHAR memory[100];
    test_random random;
    (void)state;
    random_seed(&random, 1);
    for (ULONG round = 0; round < 20000; round += 1) {
        ULONG count = 1 + random_below(&random, MAXIMUM_WAIT_OBJECTS);
        PVOID object[MAXIMUM_WAIT_OBJECTS];
        USHORT order[MAXIMUM_WAIT_OBJECTS];
        UCHAR times[sizeof(memory)] = {0}, seen[MAXIMUM_WAIT_OBJECTS] = {0};
        UCHAR most = 0;
        BOOLEAN nearly_in_order = random_below(&random, 2) == 0;
        for (ULONG i = 0; i < count; i += 1) {
            ULONG place = nearly_in_order ? i + (i == 20) : random_below(&random, sizeof(memory));
            object[i] = &memory[place];
            times[place] += 1;
            most = times[place] > most ? times[place] : most;
        }
        assert_int_equal(KiSortObjects(object, count, order), most == 1);
        assert_int_equal(KiHasDuplicates(object, count), most > 1);
        for (ULONG i = 0; i < count; i += 1) {
            assert_true(order[i] < count && !seen[order[i]]);
            seen[order[i]] = 1;
            assert_true(i == 0 || object[order[i - 1]] <= object[order[i]]);
        }
    }
}

static void acquire_mutant(void *mutant)
{
    check(wait_for(mutant, NULL) == STATUS_SUCCESS);
}

static void release_owned(void *mutant)
{
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
}

/* STATUS_ABANDONED if any of the mutants was, whether the waiter or the last signal detects it. */
static void test_abandoned(void **state)
{
    (void)state;
    for (ULONG under = 0; under < 3; under += 1) { /* nothing, the abandonment, the event comes under the wait */
        KMUTANT abandoned, plain;
        actor owner = {0};
        waiter w;
        start_waiters(&w, 1);
        start_actor(&owner);
        KeInitializeEvent(&events[0], SynchronizationEvent, under != 2);
        KeInitializeMutant(&abandoned, FALSE);
        KeInitializeMutant(&plain, FALSE);
        run_on(&owner, acquire_mutant, &abandoned);
        w.call = (wait_call){.count = 3, .object = {&plain, &events[0], &abandoned}, .all = TRUE};
        if (under == 1) {
            begin_wait(&w);
        }
        end_actor(&owner);
        if (under == 2) {
            begin_wait(&w);
            assert_int_equal(KeReadStateMutant(&abandoned), 1);
            KeSetEvent(&events[0], 0, FALSE);
        }
        if (under == 0) {
            tell(&w.actor, perform_wait, &w);
        }
        assert_int_equal(end_wait(&w), STATUS_ABANDONED_WAIT_0);
        assert_false(abandoned.Abandoned);
        assert_int_equal(KeReadStateMutant(&abandoned), 0);
        assert_int_equal(KeReadStateMutant(&plain), 0);
        assert_int_equal(KeReadStateEvent(&events[0]), 0);
        assert_ptr_equal(abandoned.OwnerThread, w.actor.thread);
        assert_ptr_equal(plain.OwnerThread, w.actor.thread);
        run_on(&w.actor, release_owned, &plain);
        run_on(&w.actor, release_owned, &abandoned);
        end_waiters(&w, 1);
    }
}

/* A mutant that the waiter owns already counts as signaled for it, and only for it. */
static void test_mutant_of_the_waiter(void **state)
{
    waiter w[2];
    KMUTANT mutant;
    (void)state;
    start_waiters(w, 2);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeEvent(&events[0], SynchronizationEvent, FALSE);
    run_on(&w[0].actor, acquire_mutant, &mutant);
    for (ULONG i = 0; i < 2; i += 1) {
        w[1 - i].call = (wait_call){.count = 2, .object = {&events[0], &mutant}, .all = TRUE};
        begin_wait(&w[1 - i]);
    }
    KeSetEvent(&events[0], 0, FALSE);
    assert_true(still_waits(&w[1]));
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateMutant(&mutant), -1);
    assert_int_equal(KeReadStateEvent(&events[0]), 0);
    run_on(&w[0].actor, release_owned, &mutant);
    KeSetEvent(&events[0], 0, FALSE);
    assert_true(still_waits(&w[1]));
    assert_int_equal(KeReadStateEvent(&events[0]), 1);
    run_on(&w[0].actor, release_owned, &mutant);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateMutant(&mutant), 0);
    assert_ptr_equal(mutant.OwnerThread, w[1].actor.thread);
    run_on(&w[1].actor, release_owned, &mutant);
    end_waiters(w, 2);
}

/* One object of every kind in one wait, each of them the last to be signaled once. */
static void test_mixed_kinds(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG last = 0; last < ARRAYSIZE(kinds); last += 1) {
        test_object o[ARRAYSIZE(kinds)];
        w.call = (wait_call){.count = ARRAYSIZE(kinds), .all = TRUE};
        for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
            make_object(&kinds[k], &o[k]);
            w.call.object[k] = waitable(&o[k]);
        }
        begin_wait(&w);
        for (ULONG i = 1; i <= ARRAYSIZE(kinds); i += 1) {
            ULONG k = (last + i) % ARRAYSIZE(kinds);
            assert_true(still_waits(&w));
            kinds[k].signal(&o[k]);
            if (k != last) {
                assert_int_equal(state_of(waitable(&o[k])), kinds[k].signaled);
            }
        }
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
            assert_int_equal(state_of(waitable(&o[k])), kinds[k].taken);
            assert_true(has_no_waiters(waitable(&o[k])));
            give_back(&kinds[k], &o[k], &w);
        }
        for (ULONG k = 0; k < ARRAYSIZE(kinds); k += 1) {
            destroy_object(&kinds[k], &o[k]);
        }
    }
    end_waiters(&w, 1);
}

/* Several threads whose sets overlap, in opposite orders: the oldest wait that can be satisfied is. */
static void test_overlapping_sets(void **state)
{
    waiter w[3];
    (void)state;
    start_waiters(w, 3);
    for (ULONG round = 0; round < 50; round += 1) {
        all_of_events(3, SynchronizationEvent);
        PVOID a = &events[round % 3], b = &events[(round + 1) % 3], c = &events[(round + 2) % 3];
        w[0].call = (wait_call){.count = 2, .object = {a, b}, .all = TRUE};
        w[1].call = (wait_call){.count = 2, .object = {b, a}, .all = TRUE};
        w[2].call = (wait_call){.count = 2, .object = {c, b}, .all = TRUE};
        for (ULONG i = 0; i < 3; i += 1) {
            begin_wait(&w[i]);
        }
        KeSetEvent(b, 0, FALSE);
        assert_int_equal(count_waiting(w, 3), 3);
        KeSetEvent(c, 0, FALSE);
        assert_int_equal(end_wait(&w[2]), STATUS_WAIT_0);
        assert_int_equal(state_of(b), 0);
        KeSetEvent(a, 0, FALSE);
        assert_int_equal(count_waiting(w, 2), 2);
        KeSetEvent(b, 0, FALSE);
        assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
        assert_true(still_waits(&w[1]));
        assert_int_equal(state_of(a), 0);
        assert_int_equal(state_of(b), 0);
        KeSetEvent(b, 0, FALSE);
        KeSetEvent(a, 0, FALSE);
        assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
        expect_states(3, 0);
    }
    end_waiters(w, 3);
}

/* One signal that may release several waits for all, which share their other objects: it releases those that can be
   satisfied. */
static void test_one_signal_for_several_sets(void **state)
{
    waiter w[4];
    KSEMAPHORE semaphore;
    KEVENT gate;
    (void)state;
    start_waiters(w, 4);
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    KeInitializeSemaphore(&semaphore, 2, 10);
    for (ULONG i = 0; i < 4; i += 1) {
        w[i].call = (wait_call){.count = 2, .object = {&semaphore, &gate}, .all = TRUE};
        begin_wait(&w[i]);
    }
    KeSetEvent(&gate, 0, FALSE);
    assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
    assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    assert_int_equal(count_waiting(w, 4), 2);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 0);
    KeReleaseSemaphore(&semaphore, 0, 5, FALSE);
    assert_int_equal(end_wait(&w[2]), STATUS_WAIT_0);
    assert_int_equal(end_wait(&w[3]), STATUS_WAIT_0);
    assert_int_equal(KeReadStateSemaphore(&semaphore), 3);
    assert_true(has_no_waiters(&semaphore));
    assert_true(has_no_waiters(&gate));
    end_waiters(w, 4);
}

/* A wait for any and one for all on the same object: the object goes to the first that it satisfies. */
static void test_beside_waits_for_any(void **state)
{
    waiter w[2];
    (void)state;
    start_waiters(w, 2);
    for (ULONG second_signaled = 0; second_signaled < 2; second_signaled += 1) {
        all_of_events(2, SynchronizationEvent);
        w[0].call = (wait_call){.count = 2, .object = {&events[0], &events[1]}, .all = TRUE};
        begin_wait(&w[0]);
        begin_wait_for(&w[1], &events[0]);
        if (second_signaled) {
            KeSetEvent(&events[1], 0, FALSE);
        }
        KeSetEvent(&events[0], 0, FALSE);
        assert_int_equal(still_waits(&w[0]), !second_signaled);
        assert_int_equal(still_waits(&w[1]), second_signaled);
        KeSetEvent(&events[0], 0, FALSE);
        KeSetEvent(&events[1], 0, FALSE);
        assert_int_equal(end_wait(&w[0]), STATUS_WAIT_0);
        assert_int_equal(end_wait(&w[1]), STATUS_WAIT_0);
    }
    end_waiters(w, 2);
}

/* A pulse releases a wait for all only if the other objects are signaled at that moment. */
static void test_pulse(void **state)
{
    static const EVENT_TYPE types[] = {NotificationEvent, SynchronizationEvent};
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG t = 0; t < ARRAYSIZE(types); t += 1) {
        w.call = all_of_events(2, types[t]);
        begin_wait(&w);
        KePulseEvent(&events[0], 0, FALSE);
        assert_true(still_waits(&w));
        assert_int_equal(KeReadStateEvent(&events[0]), 0);
        KeSetEvent(&events[1], 0, FALSE);
        assert_true(still_waits(&w));
        KePulseEvent(&events[0], 0, FALSE);
        assert_false(still_waits(&w));
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        assert_int_equal(KeReadStateEvent(&events[0]), 0);
        assert_int_equal(KeReadStateEvent(&events[1]), types[t] == NotificationEvent);
    }
    end_waiters(&w, 1);
}

/* The same wait issued repeatedly with blocks on the stack: nothing is left over from the previous round. */
static void test_blocks_are_free_after_the_wait(void **state)
{
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    for (ULONG round = 0; round < 200; round += 1) {
        w.call = all_of_events(5, SynchronizationEvent);
        begin_wait(&w);
        for (ULONG i = 0; i < 5; i += 1) {
            KeSetEvent(&events[(i * 3 + round) % 5], 0, FALSE);
        }
        assert_int_equal(end_wait(&w), STATUS_WAIT_0);
        expect_states(5, 0);
    }
    end_waiters(&w, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_last_signal_consumes_all),
        WATCHED(test_all_at_the_same_time),
        WATCHED(test_timeout_consumes_nothing),
        WATCHED(test_duplicates_are_refused),
        WATCHED(test_duplicates_among_many),
        WATCHED(test_in_whatever_order),
        WATCHED(test_sorting),
        WATCHED(test_abandoned),
        WATCHED(test_mutant_of_the_waiter),
        WATCHED(test_mixed_kinds),
        WATCHED(test_overlapping_sets),
        WATCHED(test_one_signal_for_several_sets),
        WATCHED(test_beside_waits_for_any),
        WATCHED(test_pulse),
        WATCHED(test_blocks_are_free_after_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
