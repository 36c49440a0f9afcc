#include "objects.h"

static void both_kinds(void **state)
{
    HANDLE automatic = created(CreateEventA(NULL, FALSE, TRUE, NULL), ERROR_SUCCESS);
    HANDLE manual = created(CreateEventW(NULL, TRUE, FALSE, NULL), ERROR_SUCCESS);

    (void)state;
    assert_signaled(automatic);
    assert_unsignaled(automatic);
    assert_leaves_last_error(SetEvent(automatic));
    assert_leaves_last_error(SetEvent(automatic));
    assert_signaled(automatic);
    assert_unsignaled(automatic);
    assert_unsignaled(manual);
    assert_leaves_last_error(SetEvent(manual));
    assert_signaled(manual);
    assert_signaled(manual);
    assert_leaves_last_error(ResetEvent(manual));
    assert_unsignaled(manual);
    assert_leaves_last_error(SetEvent(manual));
    assert_leaves_last_error(PulseEvent(manual));
    assert_unsignaled(manual);
    close_all(automatic, manual);
}

static void by_flags(void **state)
{
    HANDLE handle = created(CreateEventExA(NULL, NULL, CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET,
                                           EVENT_ALL_ACCESS), ERROR_SUCCESS);

    (void)state;
    assert_signaled(handle);
    assert_signaled(handle);
    close_all(handle, NULL);
    assert_fails(CreateEventExW(NULL, NULL, 4, EVENT_ALL_ACCESS), ERROR_INVALID_PARAMETER);
    assert_fails(CreateEventExA(NULL, NULL, 0x80000000, EVENT_ALL_ACCESS), ERROR_INVALID_PARAMETER);
}

static void by_name(void **state)
{
    HANDLE first = created(CreateEventA(NULL, TRUE, FALSE, "event"), ERROR_SUCCESS);
    HANDLE second = created(CreateEventW(NULL, FALSE, TRUE, u"event"), ERROR_ALREADY_EXISTS);
    HANDLE third = created(OpenEventA(EVENT_ALL_ACCESS, FALSE, "event"), 0xABCD);
    HANDLE fourth = created(OpenEventW(SYNCHRONIZE, FALSE, u"event"), 0xABCD);

    (void)state;
    assert_unsignaled(second);
    assert_true(SetEvent(third));
    assert_signaled(first);
    assert_signaled(second);
    assert_signaled(fourth);
    close_all(first, second);
    assert_signaled(third);
    close_all(third, fourth);
    assert_fails(OpenEventA(EVENT_ALL_ACCESS, FALSE, "event"), ERROR_FILE_NOT_FOUND);
}

static void access_is_checked(void **state)
{
    HANDLE waits = created(CreateEventExA(NULL, "access", 0, SYNCHRONIZE), ERROR_SUCCESS);
    HANDLE sets = created(CreateEventExA(NULL, "access", 0, EVENT_MODIFY_STATE), ERROR_ALREADY_EXISTS);

    (void)state;
    assert_fails(SetEvent(waits), ERROR_ACCESS_DENIED);
    assert_fails(ResetEvent(waits), ERROR_ACCESS_DENIED);
    assert_fails(PulseEvent(waits), ERROR_ACCESS_DENIED);
    assert_unsignaled(waits);
    assert_true(SetEvent(sets));
    assert_int_equal(poll_object(sets), STATUS_ACCESS_DENIED);
    assert_signaled(waits);
    close_all(waits, sets);
}

static void other_handles(void **state)
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 1, NULL);

    (void)state;
    assert_fails(SetEvent(semaphore), ERROR_INVALID_HANDLE);
    assert_fails(ResetEvent(semaphore), ERROR_INVALID_HANDLE);
    assert_fails(PulseEvent(semaphore), ERROR_INVALID_HANDLE);
    assert_fails(SetEvent(NULL), ERROR_INVALID_HANDLE);
    assert_fails(SetEvent(INVALID_HANDLE_VALUE), ERROR_INVALID_HANDLE);
    close_all(semaphore, NULL);
    assert_fails(SetEvent(semaphore), ERROR_INVALID_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(by_flags),
        cmocka_unit_test(by_name),
        cmocka_unit_test(access_is_checked),
        cmocka_unit_test(other_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
