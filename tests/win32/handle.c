#include "objects.h"

static HANDLE duplicate(HANDLE source, DWORD access, BOOL inherit, DWORD options)
{
    HANDLE target = NULL;

    assert_leaves_last_error(
        DuplicateHandle(NtCurrentProcess(), source, NtCurrentProcess(), &target, access, inherit, options));
    return target;
}

static DWORD flags_of(HANDLE handle)
{
    DWORD flags = 77;

    assert_leaves_last_error(GetHandleInformation(handle, &flags));
    return flags;
}

static void closing(void **state)
{
    HANDLE handle = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)state;
    assert_leaves_last_error(CloseHandle(handle));
    assert_fails(CloseHandle(handle), ERROR_INVALID_HANDLE);
    assert_fails(CloseHandle(NULL), ERROR_INVALID_HANDLE);
    /* INVALID_HANDLE_VALUE is the pseudo handle of the process; closing it has no effect. */
    assert_leaves_last_error(CloseHandle(INVALID_HANDLE_VALUE));
    assert_leaves_last_error(CloseHandle(NtCurrentThread()));
    assert_fails(CloseHandle((HANDLE)(LONG_PTR)-7), ERROR_INVALID_HANDLE);
    assert_fails(CloseHandle((HANDLE)0x7FFFFFF0), ERROR_INVALID_HANDLE);
}

static void duplicates(void **state)
{
    HANDLE source = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE same = duplicate(source, 0, FALSE, DUPLICATE_SAME_ACCESS);
    HANDLE waits = duplicate(source, SYNCHRONIZE, TRUE, 0);
    HANDLE moved = duplicate(same, EVENT_MODIFY_STATE, FALSE, DUPLICATE_CLOSE_SOURCE);
    HANDLE none = NULL;

    (void)state;
    assert_fails(SetEvent(same), ERROR_INVALID_HANDLE);
    assert_fails(SetEvent(waits), ERROR_ACCESS_DENIED);
    assert_true(SetEvent(moved));
    assert_signaled(waits);
    assert_int_equal(flags_of(waits), HANDLE_FLAG_INHERIT);
    assert_int_equal(flags_of(moved), 0);
    assert_fails(DuplicateHandle(NtCurrentProcess(), NULL, NtCurrentProcess(), &none, 0, FALSE, DUPLICATE_SAME_ACCESS),
                 ERROR_INVALID_HANDLE);
    assert_fails(DuplicateHandle(source, source, NtCurrentProcess(), &none, 0, FALSE, DUPLICATE_SAME_ACCESS),
                 ERROR_INVALID_HANDLE);
    close_all(source, waits);
    assert_true(CloseHandle(moved));
}

/* The pseudo handle becomes a real one. */
static void a_thread_names_itself(void **state)
{
    HANDLE thread = duplicate(NtCurrentThread(), 0, FALSE, DUPLICATE_SAME_ACCESS);

    (void)state;
    assert_true((LONG_PTR)thread > 0);
    assert_unsignaled(thread);
    assert_true(CloseHandle(thread));
}

static void flags(void **state)
{
    HANDLE handle = CreateEventA(NULL, FALSE, FALSE, NULL);

    (void)state;
    assert_int_equal(flags_of(handle), 0);
    assert_leaves_last_error(SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT));
    assert_int_equal(flags_of(handle), HANDLE_FLAG_INHERIT);
    assert_true(SetHandleInformation(handle, HANDLE_FLAG_PROTECT_FROM_CLOSE, HANDLE_FLAG_PROTECT_FROM_CLOSE));
    assert_int_equal(flags_of(handle), HANDLE_FLAG_INHERIT | HANDLE_FLAG_PROTECT_FROM_CLOSE);
    assert_fails(CloseHandle(handle), ERROR_INVALID_HANDLE);
    assert_unsignaled(handle);
    assert_true(SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0));
    assert_int_equal(flags_of(handle), HANDLE_FLAG_PROTECT_FROM_CLOSE);
    assert_true(SetHandleInformation(handle, 0, HANDLE_FLAG_INHERIT));
    assert_int_equal(flags_of(handle), HANDLE_FLAG_PROTECT_FROM_CLOSE);
    assert_fails(SetHandleInformation(handle, 4, 4), ERROR_INVALID_PARAMETER);
    assert_true(SetHandleInformation(handle, HANDLE_FLAG_PROTECT_FROM_CLOSE, 0));
    assert_fails(GetHandleInformation(handle, NULL), ERROR_NOACCESS);
    assert_true(CloseHandle(handle));
    assert_fails(SetHandleInformation(handle, 1, 1), ERROR_INVALID_HANDLE);
    assert_fails(GetHandleInformation(handle, NULL), ERROR_INVALID_HANDLE);
}

static void comparisons(void **state)
{
    HANDLE first = CreateEventA(NULL, FALSE, FALSE, NULL), other = CreateEventA(NULL, FALSE, FALSE, NULL);
    HANDLE second = duplicate(first, SYNCHRONIZE, FALSE, 0);

    (void)state;
    assert_leaves_last_error(CompareObjectHandles(first, second));
    assert_fails(CompareObjectHandles(first, other), ERROR_NOT_SAME_OBJECT);
    assert_fails(CompareObjectHandles(first, NULL), ERROR_INVALID_HANDLE);
    close_all(first, second);
    close_all(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(a_thread_names_itself),
        cmocka_unit_test(flags),
        cmocka_unit_test(comparisons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
