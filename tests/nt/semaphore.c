#include "objecttest.h"

static HANDLE create_semaphore(LONG count, LONG limit)
{
    HANDLE semaphore;

    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, count, limit), STATUS_SUCCESS);
    return semaphore;
}

static void check_count(HANDLE semaphore, LONG count, LONG limit)
{
    SEMAPHORE_BASIC_INFORMATION information = {77, 77};
    ULONG length = 0;

    assert_int_equal(
        NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), &length), 0);
    assert_int_equal(length, sizeof(information));
    assert_int_equal(information.CurrentCount, count);
    assert_int_equal(information.MaximumCount, limit);
}

static NTSTATUS poll(HANDLE handle)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    return NtWaitForSingleObject(handle, FALSE, &now);
}

static void creating_checks_its_counts(void **state)
{
    static const struct {
        LONG count, limit;
        NTSTATUS status;
    } rows[] = {
        {0, 1, STATUS_SUCCESS},           {1, 1, STATUS_SUCCESS},
        {MAXLONG, MAXLONG, STATUS_SUCCESS}, {0, 0, STATUS_INVALID_PARAMETER},
        {-1, 1, STATUS_INVALID_PARAMETER}, {2, 1, STATUS_INVALID_PARAMETER},
        {0, -1, STATUS_INVALID_PARAMETER}, {-2, -1, STATUS_INVALID_PARAMETER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        HANDLE semaphore = NULL;

        assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, rows[i].count, rows[i].limit),
                         rows[i].status);
        if (semaphore) {
            check_count(semaphore, rows[i].count, rows[i].limit);
            close_handle(semaphore);
        }
    }
    assert_int_equal(NtCreateSemaphore(NULL, SEMAPHORE_ALL_ACCESS, NULL, 0, 0), STATUS_ACCESS_VIOLATION);
}

static void release_counts_up_to_the_limit(void **state)
{
    HANDLE semaphore = create_semaphore(1, 5);
    LONG previous = 77;

    (void)state;
    assert_int_equal(NtReleaseSemaphore(semaphore, 3, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    previous = 77;
    assert_int_equal(NtReleaseSemaphore(semaphore, 2, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(previous, 77);
    check_count(semaphore, 4, 5);
    assert_int_equal(NtReleaseSemaphore(semaphore, MAXLONG, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, NULL), STATUS_SUCCESS);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(previous, 77);
    for (int i = 0; i < 5; i++)
        assert_int_equal(poll(semaphore), STATUS_SUCCESS);
    assert_int_equal(poll(semaphore), STATUS_TIMEOUT);
    close_handle(semaphore);
}

static void release_checks_its_count_first(void **state)
{
    HANDLE semaphore = create_semaphore(0, 1);
    LONG previous = 77;

    (void)state;
    assert_int_equal(NtReleaseSemaphore(semaphore, 0, &previous), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtReleaseSemaphore(semaphore, -1, &previous), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtReleaseSemaphore(semaphore, MINLONG, &previous), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtReleaseSemaphore(NULL, 0, &previous), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtReleaseSemaphore(NULL, 1, &previous), STATUS_INVALID_HANDLE);
    assert_int_equal(NtReleaseSemaphore(NtCurrentProcess(), 1, &previous), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(previous, 77);
    check_count(semaphore, 0, 1);
    close_handle(semaphore);
}

static void each_service_wants_its_access(void **state)
{
    SEMAPHORE_BASIC_INFORMATION information[2];
    HANDLE semaphore;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS & ~SEMAPHORE_MODIFY_STATE, NULL, 0, 1), 0);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, NULL), STATUS_ACCESS_DENIED);
    close_handle(semaphore);
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_MODIFY_STATE, NULL, 0, 1), 0);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, NULL), STATUS_SUCCESS);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, information, 8, NULL),
                     STATUS_ACCESS_DENIED);
    assert_int_equal(poll(semaphore), STATUS_ACCESS_DENIED);
    close_handle(semaphore);
    semaphore = create_semaphore(0, 1);
    assert_int_equal(NtQuerySemaphore(semaphore, (SEMAPHORE_INFORMATION_CLASS)1, information, 8, NULL),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, information, 4, NULL),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, information, 16, NULL),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, NULL, 8, NULL), STATUS_ACCESS_VIOLATION);
    close_handle(semaphore);
}

static void by_name(void **state)
{
    HANDLE semaphore, opened, existing;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\s", NULL, 0), 1, 2),
                     STATUS_SUCCESS);
    assert_int_equal(NtOpenSemaphore(&opened, SEMAPHORE_MODIFY_STATE, NAMED(u"\\BaseNamedObjects\\s", NULL, 0)),
                     STATUS_SUCCESS);
    assert_int_equal(NtReleaseSemaphore(opened, 1, NULL), STATUS_SUCCESS);
    assert_int_equal(NtCreateSemaphore(&existing, SEMAPHORE_ALL_ACCESS,
                                       NAMED(u"\\BaseNamedObjects\\s", NULL, OBJ_OPENIF), 0, 1),
                     STATUS_OBJECT_NAME_EXISTS);
    check_count(existing, 2, 2);
    close_handle(existing);
    close_handle(opened);
    close_handle(semaphore);
    assert_int_equal(NtOpenSemaphore(&opened, SEMAPHORE_MODIFY_STATE, NAMED(u"\\BaseNamedObjects\\s", NULL, 0)),
                     STATUS_OBJECT_NAME_NOT_FOUND);
}

enum { PASSES = 2000 };

static void produce_and_consume(void *argument, unsigned index)
{
    for (int i = 0; i < PASSES; i++) {
        if (index % 2)
            assert_int_equal(NtWaitForSingleObject(argument, FALSE, NULL), STATUS_SUCCESS);
        else
            assert_int_equal(NtReleaseSemaphore(argument, 1, NULL), STATUS_SUCCESS);
    }
}

static void nothing_is_lost_between_threads(void **state)
{
    HANDLE semaphore = create_semaphore(0, 2 * PASSES);

    (void)state;
    run_threads(4, 60, produce_and_consume, semaphore);
    check_count(semaphore, 0, 2 * PASSES);
    close_handle(semaphore);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_checks_its_counts),
        cmocka_unit_test(release_counts_up_to_the_limit),
        cmocka_unit_test(release_checks_its_count_first),
        cmocka_unit_test(each_service_wants_its_access),
        cmocka_unit_test(by_name),
        cmocka_unit_test(nothing_is_lost_between_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
