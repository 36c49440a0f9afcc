/* The state of shared objects, in two views of one world: what each operation does and returns, and which wait is
   granted. */
#include "wowaits.h"

static WO_VIEW here, there; /* two processes, as far as the world knows */
static WO_INDEX me, other, third;

static int set_up(void **state)
{
    (void)state;
    make_world(&here, WORLD_SIZE);
    there = here;
    attach(&here);
    attach(&there);
    me = create_waiter(&here);
    other = create_waiter(&there);
    third = create_waiter(&there);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    delete_world(&here);
    return 0;
}

static NTSTATUS begin(WO_VIEW *view, WO_INDEX self, WO_INDEX object)
{
    return WoBeginWait(view, self, &object, 1, WoWaitAny);
}

static void events(void **state)
{
    (void)state;
    LONG previous = -1;
    WO_INDEX manual = create(&here, WoNotificationEvent, 0, 0);
    WO_INDEX automatic = create(&here, WoSynchronizationEvent, 1, 0);
    assert_int_equal(WoTypeOf(&there, manual), WoNotificationEvent);
    assert_int_equal(try_one(&there, other, manual), STATUS_TIMEOUT);
    assert_int_equal(WoSetEvent(&here, manual, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_int_equal(try_one(&there, other, manual), STATUS_WAIT_0);
    assert_int_equal(try_one(&here, me, manual), STATUS_WAIT_0);
    assert_int_equal(WoResetEvent(&there, manual, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(try_one(&there, other, manual), STATUS_TIMEOUT);
    assert_int_equal(try_one(&there, other, automatic), STATUS_WAIT_0);
    assert_int_equal(try_one(&here, me, automatic), STATUS_TIMEOUT);
    assert_int_equal(WoSetEvent(&here, automatic, &previous), STATUS_SUCCESS);
    assert_int_equal(WoPulseEvent(&here, automatic, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(state_of(&there, automatic), 0);
}

static void an_event_wakes_the_oldest_waiter_alone(void **state)
{
    (void)state;
    LONG previous;
    NTSTATUS status;
    WO_INDEX event = create(&here, WoSynchronizationEvent, 0, 0);
    assert_int_equal(begin(&there, other, event), STATUS_PENDING);
    assert_int_equal(begin(&here, me, event), STATUS_PENDING);
    assert_int_equal(begin(&there, third, event), STATUS_PENDING);
    assert_int_equal(WoSetEvent(&here, event, &previous), STATUS_SUCCESS);
    assert_true(WoIsGranted(&there, other, &status));
    assert_int_equal(status, STATUS_WAIT_0);
    assert_false(WoIsGranted(&here, me, &status));
    assert_false(WoClaimLocally(&there, other));
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, event), 0);
    /* a wait that its process has ended consumes nothing */
    assert_true(WoClaimLocally(&here, me));
    assert_int_equal(WoSetEvent(&here, event, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_PENDING);
    assert_int_equal(WoEndWait(&there, third), STATUS_WAIT_0);
    assert_quiet(&here, event);
}

static void a_pulse_releases_those_who_wait(void **state)
{
    (void)state;
    LONG previous;
    NTSTATUS status;
    WO_INDEX manual = create(&here, WoNotificationEvent, 0, 0);
    WO_INDEX automatic = create(&here, WoSynchronizationEvent, 0, 0);
    assert_int_equal(begin(&there, other, manual), STATUS_PENDING);
    assert_int_equal(begin(&here, me, manual), STATUS_PENDING);
    assert_int_equal(WoPulseEvent(&here, manual, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(WoEndWait(&here, me), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, manual), 0);
    assert_int_equal(begin(&there, other, automatic), STATUS_PENDING);
    assert_int_equal(begin(&here, me, automatic), STATUS_PENDING);
    assert_int_equal(WoPulseEvent(&here, automatic, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_false(WoIsGranted(&here, me, &status));
    assert_int_equal(WoEndWait(&here, me), STATUS_PENDING);
    assert_quiet(&here, manual);
    assert_quiet(&here, automatic);
}

static void semaphores(void **state)
{
    (void)state;
    LONG previous;
    NTSTATUS status;
    WO_INDEX semaphore = create(&here, WoSemaphore, 1, 3);
    assert_int_equal(try_one(&there, other, semaphore), STATUS_WAIT_0);
    assert_int_equal(try_one(&there, other, semaphore), STATUS_TIMEOUT);
    assert_int_equal(WoReleaseSemaphore(&here, semaphore, 4, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(WoReleaseSemaphore(&here, semaphore, -1, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(begin(&there, other, semaphore), STATUS_PENDING);
    assert_int_equal(begin(&there, third, semaphore), STATUS_PENDING);
    assert_int_equal(begin(&here, me, semaphore), STATUS_PENDING);
    assert_int_equal(WoReleaseSemaphore(&here, semaphore, 4, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(WoReleaseSemaphore(&here, semaphore, 2, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_false(WoIsGranted(&here, me, &status));
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(WoEndWait(&there, third), STATUS_WAIT_0);
    assert_int_equal(WoReleaseSemaphore(&here, semaphore, 3, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, semaphore), 2);
    assert_quiet(&here, semaphore);
}

static void mutants(void **state)
{
    (void)state;
    LONG previous;
    WO_INDEX mutant = create(&here, WoMutant, 1, 0);
    assert_int_equal(WoReleaseMutant(&here, mutant, me, FALSE, &previous), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(try_one(&here, me, mutant), STATUS_WAIT_0);
    assert_int_equal(try_one(&here, me, mutant), STATUS_WAIT_0);
    assert_int_equal(state_of(&there, mutant), -1);
    assert_int_equal(try_one(&there, other, mutant), STATUS_TIMEOUT);
    assert_int_equal(WoReleaseMutant(&there, mutant, other, FALSE, &previous), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(begin(&there, other, mutant), STATUS_PENDING);
    assert_int_equal(WoReleaseMutant(&here, mutant, me, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, -1);
    assert_int_equal(WoReleaseMutant(&here, mutant, me, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(try_one(&here, me, mutant), STATUS_TIMEOUT);
    assert_int_equal(WoReleaseMutant(&there, mutant, other, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(state_of(&here, mutant), 1);
    assert_quiet(&here, mutant);
}

static void abandonment_is_told_once(void **state)
{
    (void)state;
    WO_STATE now;
    WO_INDEX mutants[3] = {create(&here, WoMutant, 1, 0), create(&here, WoMutant, 1, 0), create(&here, WoMutant, 1, 0)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_one(&there, other, mutants[i]), STATUS_WAIT_0);
    assert_int_equal(begin(&there, third, mutants[1]), STATUS_PENDING);
    assert_int_equal(begin(&here, me, mutants[1]), STATUS_PENDING);
    WoDeleteWaiter(&there, other);
    assert_int_equal(WoEndWait(&there, third), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(WoQueryState(&here, mutants[0], &now), STATUS_SUCCESS);
    assert_true(now.Abandoned);
    assert_int_equal(now.State, 1);
    assert_int_equal(WoEndWait(&here, me), STATUS_PENDING);
    assert_int_equal(try_one(&here, me, mutants[0]), STATUS_ABANDONED_WAIT_0);
    LONG previous;
    assert_int_equal(WoReleaseMutant(&here, mutants[0], me, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(try_one(&here, me, mutants[0]), STATUS_WAIT_0);
    WoDeleteWaiter(&there, third);
    assert_int_equal(WoTryWait(&here, me, mutants, 3, WaitAll), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(WoTryWait(&here, me, mutants, 3, WaitAll), STATUS_WAIT_0);
}

static void a_mutant_has_a_limit(void **state)
{
    (void)state;
    WO_INDEX mutant = create(&here, WoMutant, 1, 0);
    assert_int_equal(try_one(&here, me, mutant), STATUS_WAIT_0);
    PWO_OBJECT record = WopRecord(&here, mutant, WoObjectRecord);
    record->Recursion = 0x7fffffff;
    assert_int_equal(try_one(&here, me, mutant), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, mutant), (LONG)MINLONG);
    assert_int_equal(try_one(&here, me, mutant), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(WoTryWait(&here, me, &mutant, 1, WaitAll), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(WoBeginWait(&here, me, &mutant, 1, WoWaitAll), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(WoBeginWait(&here, me, &mutant, 1, WoWaitAny), STATUS_MUTANT_LIMIT_EXCEEDED);
}

static void any_takes_the_first(void **state)
{
    (void)state;
    LONG previous;
    WO_INDEX objects[4] = {create(&here, WoSynchronizationEvent, 0, 0), create(&here, WoMutant, 1, 0),
                           create(&here, WoSemaphore, 1, 1), create(&here, WoSynchronizationEvent, 0, 0)};
    assert_int_equal(WoTryWait(&here, me, objects, 4, WaitAny), STATUS_WAIT_1);
    assert_int_equal(WoTryWait(&there, other, objects, 4, WaitAny), STATUS_WAIT_2);
    assert_int_equal(WoBeginWait(&there, other, objects, 4, WoWaitAny), STATUS_PENDING);
    assert_int_equal(WoReleaseMutant(&here, objects[1], me, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(WoSetEvent(&here, objects[3], &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_1);
    assert_int_equal(state_of(&here, objects[3]), 1);
    for (int i = 0; i < 4; i++)
        assert_quiet(&here, objects[i]);
    /* an object without a waiter, one with a waiter, then the signaled one */
    WO_INDEX mixed[3] = {objects[0], objects[2], objects[3]};
    assert_int_equal(WoBeginWait(&there, third, &objects[2], 1, WoWaitAny), STATUS_PENDING);
    assert_int_equal(WoTryWait(&here, me, mixed, 3, WaitAny), STATUS_WAIT_2);
    assert_int_equal(WoSetEvent(&here, objects[3], &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, third), STATUS_PENDING);
    /* the same object twice */
    WO_INDEX twice[3] = {objects[0], objects[0], objects[2]};
    assert_int_equal(WoBeginWait(&there, third, twice, 3, WoWaitAny), STATUS_PENDING);
    assert_int_equal(WoBeginWait(&here, me, objects, 1, WoWaitAny), STATUS_PENDING);
    assert_int_equal(WoSetEvent(&here, objects[0], &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, third), STATUS_WAIT_0);
    assert_int_equal(WoSetEvent(&here, objects[0], &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_WAIT_0);
    for (int i = 0; i < 4; i++)
        assert_quiet(&here, objects[i]);
}

static void all_takes_all_or_nothing(void **state)
{
    (void)state;
    LONG previous;
    NTSTATUS status;
    WO_INDEX objects[3] = {create(&here, WoSynchronizationEvent, 0, 0), create(&here, WoMutant, 1, 0),
                           create(&here, WoSemaphore, 0, 9)};
    assert_int_equal(WoTryWait(&there, other, objects, 3, WaitAll), STATUS_TIMEOUT);
    assert_int_equal(WoBeginWait(&there, other, objects, 3, WoWaitAll), STATUS_PENDING);
    assert_int_equal(WoSetEvent(&here, objects[0], &previous), STATUS_SUCCESS);
    assert_int_equal(state_of(&here, objects[0]), 1);
    assert_int_equal(try_one(&here, me, objects[1]), STATUS_WAIT_0);
    assert_int_equal(WoReleaseSemaphore(&here, objects[2], 2, &previous), STATUS_SUCCESS);
    assert_false(WoIsGranted(&there, other, &status));
    assert_int_equal(state_of(&here, objects[2]), 2);
    assert_int_equal(WoReleaseMutant(&here, objects[1], me, FALSE, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, objects[0]), 0);
    assert_int_equal(state_of(&here, objects[2]), 1);
    assert_int_equal(WoReleaseMutant(&there, objects[1], other, FALSE, &previous), STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_quiet(&here, objects[i]);
}

/* Two WaitAlls that want the same semaphore: the older one gets it, although it began to watch it later. */
static void all_keeps_its_age(void **state)
{
    (void)state;
    LONG previous;
    NTSTATUS status;
    WO_INDEX a = create(&here, WoNotificationEvent, 0, 0), s = create(&here, WoSemaphore, 0, 9);
    WO_INDEX both[2] = {a, s};
    assert_int_equal(WoBeginWait(&there, other, both, 2, WoWaitAll), STATUS_PENDING);
    assert_int_equal(begin(&here, me, s), STATUS_PENDING);
    assert_int_equal(WoSetEvent(&here, a, &previous), STATUS_SUCCESS);
    assert_int_equal(WoReleaseSemaphore(&here, s, 1, &previous), STATUS_SUCCESS);
    assert_false(WoIsGranted(&here, me, &status));
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(WoReleaseSemaphore(&here, s, 1, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_WAIT_0);
    assert_quiet(&here, a);
    assert_quiet(&here, s);
}

static void a_watch_takes_nothing(void **state)
{
    (void)state;
    LONG previous;
    WO_INDEX event = create(&here, WoSynchronizationEvent, 0, 0);
    assert_int_equal(WoBeginWait(&here, me, &event, 1, WoWatch), STATUS_PENDING);
    assert_int_equal(WoSetEvent(&there, event, &previous), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, event), 1);
    assert_int_equal(WoBeginWait(&here, me, &event, 1, WoWatch), STATUS_WAIT_0);
    assert_int_equal(state_of(&here, event), 1);
    assert_quiet(&here, event);
}

/* More than one transaction can grant. */
static void a_signal_releases_hundreds(void **state)
{
    (void)state;
    enum { WAITERS = 300 };
    LONG previous;
    WO_INDEX event = create(&here, WoNotificationEvent, 0, 0), waiters[WAITERS];
    WO_INDEX objects[64];
    for (int i = 0; i < 64; i++)
        objects[i] = i == 63 ? event : create(&here, WoSynchronizationEvent, 0, 0);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = create_waiter(&there);
        assert_int_equal(WoBeginWait(&there, waiters[i], objects + i % 64, 64 - i % 64, WoWaitAny), STATUS_PENDING);
    }
    for (int pulse = 1; pulse >= 0; pulse--) {
        assert_int_equal((pulse ? WoPulseEvent : WoSetEvent)(&here, event, &previous), STATUS_SUCCESS);
        for (int i = 0; i < WAITERS; i++) {
            assert_int_equal(WoEndWait(&there, waiters[i]), STATUS_WAIT_0 + 63 - i % 64);
            if (pulse)
                assert_int_equal(WoBeginWait(&there, waiters[i], objects + i % 64, 64 - i % 64, WoWaitAny),
                                 STATUS_PENDING);
        }
    }
    assert_int_equal(state_of(&here, event), 1);
    assert_int_equal(here.World->Intention, 0);
    assert_quiet(&here, event);
}

static void keyed_events_pair(void **state)
{
    (void)state;
    NTSTATUS status;
    WO_INDEX keyed = create(&here, WoKeyedEvent, 0, 0);
    assert_int_equal(WoBeginKeyedWait(&here, me, keyed, 16, FALSE), STATUS_PENDING);
    assert_int_equal(WoBeginKeyedWait(&there, other, keyed, 32, TRUE), STATUS_PENDING);
    assert_int_equal(WoBeginKeyedWait(&there, third, keyed, 16, TRUE), STATUS_SUCCESS);
    assert_int_equal(WoEndWait(&here, me), STATUS_SUCCESS);
    assert_false(WoIsGranted(&there, other, &status));
    assert_int_equal(WoEndWait(&there, other), STATUS_PENDING);
    assert_quiet(&here, keyed);
}

static void timers(void **state)
{
    (void)state;
    BOOLEAN previous = TRUE;
    ULONG64 arming, again;
    WO_STATE now;
    WO_INDEX timer = create(&here, WoSynchronizationTimer, 0, 0);
    WO_TIMER_SETTING far = {HalDispatch.QueryInterruptTime() + 10000ull * 1000 * 3600, FALSE, 0};
    assert_int_equal(WoSetTimer(&here, timer, &far, &arming, &previous), STATUS_SUCCESS);
    assert_false(previous);
    assert_int_equal(try_one(&there, other, timer), STATUS_TIMEOUT);
    assert_int_equal(wait_for(&there, other, &timer, 1, WoWaitAny, 1), STATUS_TIMEOUT);
    assert_true(WoIsArmed(&there, timer, arming));
    assert_int_equal(WoQueryState(&there, timer, &now), STATUS_SUCCESS);
    assert_int_equal(now.Timer.DueTime, far.DueTime);
    WO_TIMER_SETTING past = {1, TRUE, 0};
    assert_int_equal(WoBeginWait(&there, other, &timer, 1, WoWaitAny), STATUS_PENDING);
    assert_int_equal(WoSetTimer(&here, timer, &past, &again, &previous), STATUS_SUCCESS);
    assert_false(WoIsArmed(&there, timer, arming));
    assert_int_equal(WoEndWait(&there, other), STATUS_WAIT_0);
    assert_int_equal(try_one(&there, other, timer), STATUS_TIMEOUT);
    /* due while a waiter sleeps; the waiter itself expires it */
    WO_TIMER_SETTING soon = {HalDispatch.QueryInterruptTime() + 10000ull * 5, FALSE, 1};
    assert_int_equal(WoSetTimer(&here, timer, &soon, &again, &previous), STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wait_for(&there, other, &timer, 1, WoWaitAny, 0), STATUS_WAIT_0);
    assert_int_equal(WoCancelTimer(&here, timer, &previous), STATUS_SUCCESS);
    assert_quiet(&here, timer);
    /* absolute, and in a WaitAll that another object completes first */
    WO_INDEX event = create(&here, WoNotificationEvent, 0, 0);
    WO_INDEX both[2] = {event, timer};
    LONG old;
    WoTryWait(&here, me, &timer, 1, WaitAny);
    WO_TIMER_SETTING absolute = {HalDispatch.QuerySystemTime() + 10000ull * 20, TRUE, 0};
    assert_int_equal(WoBeginWait(&there, other, both, 2, WoWaitAll), STATUS_PENDING);
    assert_int_equal(WoSetTimer(&here, timer, &absolute, &again, &previous), STATUS_SUCCESS);
    assert_int_equal(WoSetEvent(&here, event, &old), STATUS_SUCCESS);
    assert_int_equal(finish_wait(&there, other, 0), STATUS_WAIT_0);
    assert_quiet(&here, timer);
    assert_quiet(&here, event);
}

/* The repairer terminates the chain, whatever its damage. */
static void a_repairer_completes_an_intention(void **state)
{
    (void)state;
    WO_INDEX event = create(&here, WoNotificationEvent, 0, 0);
    PWO_OBJECT record = WopRecord(&here, event, WoObjectRecord);
    for (WO_INTENTION intention = WoSettle; intention <= WoNudge; intention++) {
        assert_int_equal(begin(&there, other, event), STATUS_PENDING);
        assert_int_equal(begin(&here, me, event), STATUS_PENDING);
        assert_true(WopLock(&here));
        record->Word |= 1ull << 32;
        here.World->Intention = intention;
        here.World->IntentionArgument = event;
        WopCompleteIntention(&here);
        assert_int_equal(here.World->Intention, 0);
        WopUnlock(&here);
        assert_int_equal(WoEndWait(&there, other), intention == WoNudge ? STATUS_PENDING : STATUS_WAIT_0);
        assert_int_equal(WoEndWait(&here, me), intention == WoNudge ? STATUS_PENDING : STATUS_WAIT_0);
        assert_int_equal(state_of(&here, event), intention != WoPulse);
        record->Word &= 0xffffffffu;
        assert_quiet(&here, event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_wakes_the_oldest_waiter_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pulse_releases_those_who_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(semaphores, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mutants, set_up, tear_down),
        cmocka_unit_test_setup_teardown(abandonment_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mutant_has_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_takes_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_takes_all_or_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_keeps_its_age, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_watch_takes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_releases_hundreds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keyed_events_pair, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repairer_completes_an_intention, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
