/* objects.h: what the tests of Win32 objects share. */
#ifndef INTERLOCK_TESTS_WIN32_OBJECTS_H
#define INTERLOCK_TESTS_WIN32_OBJECTS_H

#include "support.h"

#include <windows.h>
#include <winternl.h>

#include <string.h>

/* The state of an object without waiting: STATUS_SUCCESS takes it, STATUS_TIMEOUT is unsignaled. */
static inline NTSTATUS poll_object(HANDLE handle)
{
    LARGE_INTEGER zero = {.QuadPart = 0};

    return NtWaitForSingleObject(handle, FALSE, &zero);
}

#define assert_signaled(handle) assert_int_equal(poll_object(handle), STATUS_SUCCESS)
#define assert_unsignaled(handle) assert_int_equal(poll_object(handle), STATUS_TIMEOUT)

/* The call fails with that last error; one that succeeds with it keeps a last error that it should not change. */
#define assert_fails(call, error)                                                                                      \
    do {                                                                                                               \
        SetLastError(0xABCD);                                                                                          \
        assert_false(call);                                                                                            \
        assert_int_equal(GetLastError(), (error));                                                                     \
    } while (0)
#define assert_leaves_last_error(call)                                                                                 \
    do {                                                                                                               \
        SetLastError(0xABCD);                                                                                          \
        assert_true(call);                                                                                             \
        assert_int_equal(GetLastError(), 0xABCD);                                                                      \
    } while (0)

static inline HANDLE created(HANDLE handle, DWORD error)
{
    assert_non_null(handle);
    assert_int_equal(GetLastError(), error);
    SetLastError(0xABCD);
    return handle;
}

static inline void close_all(HANDLE first, HANDLE second)
{
    assert_int_equal(NtClose(first), STATUS_SUCCESS);
    if (second != NULL)
        assert_int_equal(NtClose(second), STATUS_SUCCESS);
}

#endif
