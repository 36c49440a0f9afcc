#include "objects.h"

static void expect_owned(void *argument, unsigned index)
{
    (void)index;
    assert_unsignaled(argument);
    assert_fails(ReleaseMutex(argument), ERROR_NOT_OWNER);
}

static void expect_free(void *argument, unsigned index)
{
    (void)index;
    assert_signaled(argument);
    assert_leaves_last_error(ReleaseMutex(argument));
}

static void abandon(void *argument, unsigned index)
{
    (void)index;
    assert_signaled(argument);
}

static void owners(void **state)
{
    HANDLE handle = created(CreateMutexA(NULL, TRUE, NULL), ERROR_SUCCESS);

    (void)state;
    run_threads(1, 60, expect_owned, handle);
    assert_signaled(handle);
    assert_leaves_last_error(ReleaseMutex(handle));
    run_threads(1, 60, expect_owned, handle);
    assert_leaves_last_error(ReleaseMutex(handle));
    run_threads(1, 60, expect_free, handle);
    assert_fails(ReleaseMutex(handle), ERROR_NOT_OWNER);
    run_threads(1, 60, abandon, handle);
    assert_int_equal(poll_object(handle), STATUS_ABANDONED);
    assert_true(ReleaseMutex(handle));
    close_all(handle, NULL);
}

static void by_flags(void **state)
{
    HANDLE handle = created(CreateMutexExW(NULL, NULL, CREATE_MUTEX_INITIAL_OWNER, MUTEX_ALL_ACCESS), ERROR_SUCCESS);

    (void)state;
    run_threads(1, 60, expect_owned, handle);
    assert_true(ReleaseMutex(handle));
    close_all(handle, NULL);
    assert_fails(CreateMutexExA(NULL, NULL, 2, MUTEX_ALL_ACCESS), ERROR_INVALID_PARAMETER);
}

/* A caller that opens an existing mutex does not own it, even with initial ownership requested. */
static void by_name(void **state)
{
    HANDLE first = created(CreateMutexW(NULL, FALSE, u"mutex"), ERROR_SUCCESS);
    HANDLE second = created(CreateMutexA(NULL, TRUE, "mutex"), ERROR_ALREADY_EXISTS);
    HANDLE third = created(OpenMutexA(SYNCHRONIZE, FALSE, "mutex"), 0xABCD);
    HANDLE fourth = created(OpenMutexW(MUTEX_ALL_ACCESS, FALSE, u"mutex"), 0xABCD);

    (void)state;
    run_threads(1, 60, expect_free, first);
    assert_signaled(third);
    assert_true(ReleaseMutex(second));
    close_all(first, second);
    close_all(third, fourth);
    assert_fails(OpenMutexW(SYNCHRONIZE, FALSE, u"mutex"), ERROR_FILE_NOT_FOUND);
    assert_fails(OpenMutexA(SYNCHRONIZE, FALSE, NULL), ERROR_INVALID_PARAMETER);
}

static void release_needs_no_access(void **state)
{
    HANDLE handle = created(CreateMutexExA(NULL, NULL, CREATE_MUTEX_INITIAL_OWNER, READ_CONTROL), ERROR_SUCCESS);

    (void)state;
    assert_true(ReleaseMutex(handle));
    close_all(handle, NULL);
}

static void other_handles(void **state)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)state;
    assert_fails(ReleaseMutex(event), ERROR_INVALID_HANDLE);
    assert_fails(ReleaseMutex(NULL), ERROR_INVALID_HANDLE);
    close_all(event, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners),
        cmocka_unit_test(by_flags),
        cmocka_unit_test(by_name),
        cmocka_unit_test(release_needs_no_access),
        cmocka_unit_test(other_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
