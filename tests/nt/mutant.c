#include "objecttest.h"

#include "ps/psp.h"

static HANDLE create_mutant(BOOLEAN owned)
{
    HANDLE mutant;

    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, owned), STATUS_SUCCESS);
    return mutant;
}

static void check(HANDLE mutant, LONG count, BOOLEAN mine, BOOLEAN abandoned)
{
    MUTANT_BASIC_INFORMATION information = {77, 77, 77};
    ULONG length = 0;

    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, &information, sizeof(information), &length), 0);
    assert_int_equal(length, sizeof(information));
    assert_int_equal(information.CurrentCount, count);
    assert_int_equal(information.OwnedByCaller, mine);
    assert_int_equal(information.AbandonedState, abandoned);
}

static CLIENT_ID owner_of(HANDLE mutant)
{
    MUTANT_OWNER_INFORMATION information;
    ULONG length = 0;

    assert_int_equal(NtQueryMutant(mutant, MutantOwnerInformation, &information, sizeof(information), &length), 0);
    assert_int_equal(length, sizeof(information));
    return information.ClientId;
}

static NTSTATUS poll(HANDLE handle)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    return NtWaitForSingleObject(handle, FALSE, &now);
}

static void counts_of_a_mutant(void **state)
{
    HANDLE mutant = create_mutant(FALSE);
    LONG previous = 77;

    (void)state;
    check(mutant, 1, FALSE, FALSE);
    assert_int_equal(poll(mutant), STATUS_SUCCESS);
    check(mutant, 0, TRUE, FALSE);
    assert_int_equal(poll(mutant), STATUS_SUCCESS);
    assert_int_equal(poll(mutant), STATUS_SUCCESS);
    check(mutant, -2, TRUE, FALSE);
    for (LONG count = -2; count <= 0; count++) {
        assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, count);
    }
    check(mutant, 1, FALSE, FALSE);
    previous = 77;
    assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(previous, 77);
    close_handle(mutant);
}

static void created_with_an_owner(void **state)
{
    HANDLE mutant = create_mutant(TRUE);

    (void)state;
    check(mutant, 0, TRUE, FALSE);
    assert_ptr_equal(owner_of(mutant).UniqueThread, PsGetCurrentThreadId());
    assert_ptr_equal(owner_of(mutant).UniqueProcess, PsGetCurrentProcessId());
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    assert_null(owner_of(mutant).UniqueThread);
    assert_null(owner_of(mutant).UniqueProcess);
    close_handle(mutant);
}

static void release_needs_no_access(void **state)
{
    MUTANT_BASIC_INFORMATION information;
    HANDLE mutant;

    (void)state;
    assert_int_equal(NtCreateMutant(&mutant, 0, NULL, TRUE), STATUS_SUCCESS);
    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, &information, sizeof(information), NULL),
                     STATUS_ACCESS_DENIED);
    assert_int_equal(poll(mutant), STATUS_ACCESS_DENIED);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    close_handle(mutant);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtReleaseMutant(NtCurrentThread(), NULL), STATUS_OBJECT_TYPE_MISMATCH);
}

static void querying_checks_its_parameters(void **state)
{
    HANDLE mutant = create_mutant(FALSE);
    char buffer[32];

    (void)state;
    assert_int_equal(NtQueryMutant(mutant, (MUTANT_INFORMATION_CLASS)2, buffer, 8, NULL), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, buffer, 7, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, buffer, 16, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryMutant(mutant, MutantOwnerInformation, buffer, 8, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, NULL, 8, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryMutant(NULL, MutantBasicInformation, buffer, 8, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtCreateMutant(NULL, MUTANT_ALL_ACCESS, NULL, FALSE), STATUS_ACCESS_VIOLATION);
    close_handle(mutant);
}

static void who_only_opens_does_not_own(void **state)
{
    HANDLE mutant, opened;
    PLIST_ENTRY owned = &((PETHREAD)KeGetCurrentThread())->Tcb.MutantListHead;

    (void)state;
    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\m", NULL, 0), FALSE), 0);
    assert_int_equal(NtCreateMutant(&opened, MUTANT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\m", NULL, OBJ_OPENIF), TRUE),
                     STATUS_OBJECT_NAME_EXISTS);
    check(opened, 1, FALSE, FALSE);
    assert_true(IsListEmpty(owned));
    close_handle(opened);
    assert_int_equal(NtCreateMutant(&opened, MUTANT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\m", NULL, 0), TRUE),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_true(IsListEmpty(owned));
    assert_int_equal(NtOpenMutant(&opened, MUTANT_QUERY_STATE, NAMED(u"\\BaseNamedObjects\\M", NULL, 0)),
                     STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(NtOpenMutant(&opened, MUTANT_QUERY_STATE,
                                  NAMED(u"\\BaseNamedObjects\\M", NULL, OBJ_CASE_INSENSITIVE)),
                     STATUS_SUCCESS);
    close_handle(opened);
    close_handle(mutant);
}

static void acquire_and_end(void *argument, unsigned index)
{
    (void)index;
    assert_int_equal(poll(argument), STATUS_SUCCESS);
    assert_int_equal(poll(argument), STATUS_SUCCESS);
    check(argument, -1, TRUE, FALSE);
}

static void an_owner_that_ends_abandons(void **state)
{
    HANDLE mutant = create_mutant(FALSE);
    LONG previous;

    (void)state;
    run_threads(1, 60, acquire_and_end, mutant);
    check(mutant, 1, FALSE, TRUE);
    assert_null(owner_of(mutant).UniqueThread);
    assert_int_equal(poll(mutant), STATUS_ABANDONED_WAIT_0);
    check(mutant, 0, TRUE, FALSE);
    assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_int_equal(poll(mutant), STATUS_SUCCESS);
    close_handle(mutant);
}

static void release_as_stranger(void *argument, unsigned index)
{
    (void)index;
    check(argument, 0, FALSE, FALSE);
    assert_int_equal(NtReleaseMutant(argument, NULL), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(poll(argument), STATUS_TIMEOUT);
}

static void only_the_owner_releases(void **state)
{
    HANDLE mutant = create_mutant(TRUE);

    (void)state;
    run_threads(1, 60, release_as_stranger, mutant);
    check(mutant, 0, TRUE, FALSE);
    close_handle(mutant);
}

static void a_mutant_that_goes_while_owned(void **state)
{
    ULONG objects = objects_of("Mutant");
    PLIST_ENTRY owned = &((PETHREAD)KeGetCurrentThread())->Tcb.MutantListHead;
    HANDLE mutant = create_mutant(TRUE);

    (void)state;
    close_handle(mutant);
    assert_true(IsListEmpty(owned));
    assert_int_equal(objects_of("Mutant"), objects);
}

struct meeting {
    HANDLE mutant;
    HANDLE owned;
    HANDLE closed;
    BOOLEAN end;
};

/* The owner's list still names the mutant whose last handle another thread has closed. */
static void own_while_another_closes(void *argument, unsigned index)
{
    struct meeting *meeting = argument;

    if (index == 0) {
        assert_int_equal(poll(meeting->mutant), STATUS_SUCCESS);
        NtSetEvent(meeting->owned, NULL);
        NtWaitForSingleObject(meeting->closed, FALSE, NULL);
        if (!meeting->end)
            assert_true(IsListEmpty(&((PETHREAD)KeGetCurrentThread())->Tcb.MutantListHead));
    } else {
        NtWaitForSingleObject(meeting->owned, FALSE, NULL);
        close_handle(meeting->mutant);
        NtSetEvent(meeting->closed, NULL);
    }
}

static void a_mutant_that_goes_while_another_owns_it(void **state)
{
    ULONG objects = objects_of("Mutant");
    struct meeting meeting;

    (void)state;
    for (int i = 0; i < 20; i++) {
        meeting.mutant = create_mutant(FALSE);
        meeting.end = i % 2;
        NtCreateEvent(&meeting.owned, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
        NtCreateEvent(&meeting.closed, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
        run_threads(2, 60, own_while_another_closes, &meeting);
        close_handle(meeting.owned);
        close_handle(meeting.closed);
        assert_int_equal(objects_of("Mutant"), objects);
    }
}

struct race {
    HANDLE mutant[2];
    HANDLE go;
};

static void end_or_close(void *argument, unsigned index)
{
    struct race *race = argument;

    if (index == 0)
        assert_int_equal(poll(race->mutant[0]), STATUS_SUCCESS);
    if (index == 0)
        NtSetEvent(race->go, NULL);
    else
        NtWaitForSingleObject(race->go, FALSE, NULL);
    if (index == 1) {
        close_handle(race->mutant[0]);
        close_handle(race->mutant[1]);
    }
}

/* The owner ends while the last handle is closed. */
static void owner_and_last_handle_go_together(void **state)
{
    ULONG objects = objects_of("Mutant");
    unsigned long rounds = test_rounds(300);

    (void)state;
    for (unsigned long i = 0; i < rounds; i++) {
        struct race race;

        race.mutant[0] = create_mutant(FALSE);
        NtDuplicateObject(NtCurrentProcess(), race.mutant[0], NtCurrentProcess(), &race.mutant[1], 0, 0,
                          DUPLICATE_SAME_ACCESS);
        NtCreateEvent(&race.go, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
        run_threads(2, 60, end_or_close, &race);
        close_handle(race.go);
    }
    assert_int_equal(objects_of("Mutant"), objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_a_mutant),
        cmocka_unit_test(created_with_an_owner),
        cmocka_unit_test(release_needs_no_access),
        cmocka_unit_test(querying_checks_its_parameters),
        cmocka_unit_test(who_only_opens_does_not_own),
        cmocka_unit_test(an_owner_that_ends_abandons),
        cmocka_unit_test(only_the_owner_releases),
        cmocka_unit_test(a_mutant_that_goes_while_owned),
        cmocka_unit_test(a_mutant_that_goes_while_another_owns_it),
        cmocka_unit_test(owner_and_last_handle_go_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
