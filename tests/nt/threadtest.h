/* threadtest.h: threads made by NtCreateThreadEx. */
#ifndef INTERLOCK_TESTS_THREADTEST_H
#define INTERLOCK_TESTS_THREADTEST_H

#include "support.h"

#include <interlock/nt.h>

#include <unistd.h>

#include "ke/wait.h"
#include "ps/psp.h"

static inline NTSTATUS return_argument(PVOID argument)
{
    return (NTSTATUS)(ULONG_PTR)argument;
}

static inline NTSTATUS create(PHANDLE thread, PUSER_THREAD_START_ROUTINE routine, PVOID argument, ULONG flags)
{
    return NtCreateThreadEx(thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), routine, argument, flags, 0, 0, 0,
                            NULL);
}

static inline void join(HANDLE thread)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(NtWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
}

static inline void close_handle(HANDLE handle)
{
    assert_int_equal(ObCloseHandle(handle, UserMode), STATUS_SUCCESS);
}

static inline THREAD_BASIC_INFORMATION basic_of(HANDLE thread)
{
    THREAD_BASIC_INFORMATION basic;
    ULONG length = 0;

    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), &length), 0);
    assert_int_equal(length, 48);
    return basic;
}

static inline NTSTATUS stay(PVOID argument)
{
    KeWaitForSingleObject(argument, Executive, UserMode, FALSE, NULL);
    return 0;
}

/* What a new thread sees of itself, compared with what its creator received. */
struct birth {
    HANDLE handle;
    CLIENT_ID id;
    PVOID teb;
    HANDLE seen_handle;
    CLIENT_ID seen_id;
    ULONG own_id;
    PVOID own_teb;
    volatile ULONG ran;
};

static inline NTSTATUS look_at_birth(PVOID argument)
{
    struct birth *birth = argument;

    birth->seen_handle = birth->handle;
    birth->seen_id = birth->id;
    birth->own_id = (ULONG)gettid();
    birth->own_teb = PspTebAddress(PsGetCurrentThread());
    __atomic_store_n(&birth->ran, 1, __ATOMIC_RELEASE);
    return 0;
}

#endif
