/* Services return the references that they take: with its last handle an object is gone. */
#include "objecttest.h"

static void semaphores(void **state)
{
    SEMAPHORE_BASIC_INFORMATION information;
    LARGE_INTEGER now = {.QuadPart = 0};
    ULONG before = objects_of("Semaphore");
    HANDLE semaphore;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 1, 2), STATUS_SUCCESS);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL),
                     STATUS_SUCCESS);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, NULL), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(semaphore, FALSE, &now), STATUS_SUCCESS);
    close_handle(semaphore);
    assert_int_equal(objects_of("Semaphore"), before);
}

static void mutants(void **state)
{
    MUTANT_BASIC_INFORMATION information;
    ULONG before = objects_of("Mutant");
    HANDLE mutant;

    (void)state;
    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, TRUE), STATUS_SUCCESS);
    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, &information, sizeof(information), NULL),
                     STATUS_SUCCESS);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    close_handle(mutant);
    assert_int_equal(objects_of("Mutant"), before);
}

static void event_pairs(void **state)
{
    ULONG before = objects_of("EventPair");
    HANDLE pair;

    (void)state;
    assert_int_equal(NtCreateEventPair(&pair, EVENT_PAIR_ALL_ACCESS, NULL), STATUS_SUCCESS);
    assert_int_equal(NtSetLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtWaitLowEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetHighEventPair(pair), STATUS_SUCCESS);
    assert_int_equal(NtSetLowWaitHighEventPair(pair), STATUS_SUCCESS);
    close_handle(pair);
    assert_int_equal(objects_of("EventPair"), before);
}

static void reserves(void **state)
{
    ULONG before = objects_of("IoCompletionReserve");
    ULONG ports = objects_of("IoCompletion");
    PVOID key, context;
    IO_STATUS_BLOCK result;
    HANDLE port, reserve;

    (void)state;
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1), STATUS_SUCCESS);
    assert_int_equal(NtAllocateReserveObject(&reserve, NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(NtSetIoCompletionEx(port, reserve, NULL, NULL, 0, 0), STATUS_SUCCESS);
        assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &result, NULL), STATUS_SUCCESS);
    }
    close_handle(reserve);
    assert_int_equal(objects_of("IoCompletionReserve"), before);
    close_handle(port);
    assert_int_equal(objects_of("IoCompletion"), ports);
}

static void events(void **state)
{
    EVENT_BASIC_INFORMATION information;
    HANDLE event;

    (void)state;
    /* The first use of names may create events of the system. */
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    close_handle(event);
    ULONG before = objects_of("Event");
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, (EVENT_TYPE)2, FALSE), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL), STATUS_SUCCESS);
    assert_int_equal(NtPulseEvent(event, NULL), STATUS_SUCCESS);
    close_handle(event);
    assert_int_equal(objects_of("Event"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(semaphores), cmocka_unit_test(mutants),  cmocka_unit_test(event_pairs),
        cmocka_unit_test(reserves),   cmocka_unit_test(events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
