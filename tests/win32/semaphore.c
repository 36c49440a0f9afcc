#include "objects.h"

static void counts(void **state)
{
    HANDLE handle = created(CreateSemaphoreA(NULL, 1, 3, NULL), ERROR_SUCCESS);
    LONG previous = 77;

    (void)state;
    assert_signaled(handle);
    assert_unsignaled(handle);
    assert_leaves_last_error(ReleaseSemaphore(handle, 2, &previous));
    assert_int_equal(previous, 0);
    assert_leaves_last_error(ReleaseSemaphore(handle, 1, NULL));
    previous = 77;
    assert_fails(ReleaseSemaphore(handle, 1, &previous), ERROR_TOO_MANY_POSTS);
    assert_int_equal(previous, 77);
    for (int i = 0; i < 3; i++)
        assert_signaled(handle);
    assert_unsignaled(handle);
    assert_fails(ReleaseSemaphore(handle, 4, &previous), ERROR_TOO_MANY_POSTS);
    assert_fails(ReleaseSemaphore(handle, 0, &previous), ERROR_INVALID_PARAMETER);
    assert_fails(ReleaseSemaphore(handle, -1, &previous), ERROR_INVALID_PARAMETER);
    assert_int_equal(previous, 77);
    assert_unsignaled(handle);
    close_all(handle, NULL);
}

static void limits(void **state)
{
    HANDLE handle = created(CreateSemaphoreW(NULL, 0x7FFFFFFF, 0x7FFFFFFF, NULL), ERROR_SUCCESS);

    (void)state;
    assert_fails(ReleaseSemaphore(handle, 1, NULL), ERROR_TOO_MANY_POSTS);
    assert_fails(ReleaseSemaphore(handle, 0x7FFFFFFF, NULL), ERROR_TOO_MANY_POSTS);
    close_all(handle, NULL);
    assert_fails(CreateSemaphoreA(NULL, 2, 1, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(CreateSemaphoreA(NULL, -1, 1, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(CreateSemaphoreA(NULL, 0, 0, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(CreateSemaphoreW(NULL, 0, -1, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(CreateSemaphoreExA(NULL, 0, 1, NULL, 1, SEMAPHORE_ALL_ACCESS), ERROR_INVALID_PARAMETER);
}

/* Only the creator's counts have an effect. */
static void by_name(void **state)
{
    HANDLE first = created(CreateSemaphoreExW(NULL, 1, 1, u"semaphore", 0, SEMAPHORE_ALL_ACCESS), ERROR_SUCCESS);
    HANDLE second = created(CreateSemaphoreA(NULL, 5, 5, "semaphore"), ERROR_ALREADY_EXISTS);
    HANDLE third = created(OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, "semaphore"), 0xABCD);
    HANDLE fourth = created(OpenSemaphoreW(SYNCHRONIZE, FALSE, u"semaphore"), 0xABCD);

    (void)state;
    assert_signaled(second);
    assert_unsignaled(first);
    assert_true(ReleaseSemaphore(third, 1, NULL));
    assert_fails(ReleaseSemaphore(second, 1, NULL), ERROR_TOO_MANY_POSTS);
    assert_fails(ReleaseSemaphore(fourth, 1, NULL), ERROR_ACCESS_DENIED);
    assert_signaled(fourth);
    close_all(first, second);
    close_all(third, fourth);
    assert_fails(OpenSemaphoreA(SYNCHRONIZE, FALSE, "semaphore"), ERROR_FILE_NOT_FOUND);
}

static void other_handles(void **state)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)state;
    assert_fails(ReleaseSemaphore(event, 1, NULL), ERROR_INVALID_HANDLE);
    assert_fails(ReleaseSemaphore(INVALID_HANDLE_VALUE, 1, NULL), ERROR_INVALID_HANDLE);
    close_all(event, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(limits),
        cmocka_unit_test(by_name),
        cmocka_unit_test(other_handles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
