#include "objects.h"

#include <interlock/ke.h>
#include <interlock/ob.h>

#define MILLISECONDS(n) ((n) * 10000LL)

static LARGE_INTEGER due(LONGLONG value)
{
    return (LARGE_INTEGER){.QuadPart = value};
}

static void wait_for(HANDLE handle)
{
    LARGE_INTEGER limit = due(-MILLISECONDS(60000));

    assert_int_equal(NtWaitForSingleObject(handle, FALSE, &limit), STATUS_SUCCESS);
}

static void both_kinds(void **state)
{
    HANDLE automatic = created(CreateWaitableTimerA(NULL, FALSE, NULL), ERROR_SUCCESS);
    HANDLE manual = created(CreateWaitableTimerW(NULL, TRUE, NULL), ERROR_SUCCESS);
    LARGE_INTEGER soon = due(-1), past = due(1), far = due(-MILLISECONDS(3600000));

    (void)state;
    assert_unsignaled(automatic);
    assert_leaves_last_error(SetWaitableTimer(automatic, &soon, 0, NULL, NULL, FALSE));
    wait_for(automatic);
    assert_unsignaled(automatic);
    assert_leaves_last_error(SetWaitableTimer(manual, &past, 0, NULL, NULL, FALSE));
    wait_for(manual);
    assert_signaled(manual);
    assert_leaves_last_error(CancelWaitableTimer(manual));
    assert_signaled(manual);
    assert_true(SetWaitableTimer(manual, &far, 0, NULL, NULL, FALSE));
    assert_unsignaled(manual);
    assert_leaves_last_error(CancelWaitableTimer(manual));
    assert_leaves_last_error(CancelWaitableTimer(manual));
    assert_unsignaled(manual);
    close_all(automatic, manual);
}

static void periods(void **state)
{
    HANDLE handle = created(CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS),
                            ERROR_SUCCESS);
    LARGE_INTEGER soon = due(0);

    (void)state;
    assert_true(SetWaitableTimer(handle, &soon, 1, NULL, NULL, FALSE));
    for (int i = 0; i < 5; i++)
        wait_for(handle);
    assert_true(CancelWaitableTimer(handle));
    close_all(handle, NULL);
}

static struct {
    void *argument;
    ULONGLONG time;
    int calls;
} completion;

static VOID APIENTRY completed(LPVOID argument, DWORD low, DWORD high)
{
    completion.argument = argument;
    completion.time = (ULONGLONG)high << 32 | low;
    completion.calls++;
}

static void a_completion_routine(void **state)
{
    HANDLE handle = CreateWaitableTimerA(NULL, TRUE, NULL);
    LARGE_INTEGER soon = due(-MILLISECONDS(1)), limit = due(-MILLISECONDS(60000));
    FILETIME before, after;
    int here;

    (void)state;
    GetSystemTimeAsFileTime(&before);
    assert_true(SetWaitableTimer(handle, &soon, 0, completed, &here, FALSE));
    wait_for(handle);
    assert_int_equal(completion.calls, 0);
    assert_int_equal(NtDelayExecution(TRUE, &limit), STATUS_USER_APC);
    assert_int_equal(completion.calls, 1);
    assert_ptr_equal(completion.argument, &here);
    GetSystemTimeAsFileTime(&after);
    assert_true(completion.time >= ((ULONGLONG)before.dwHighDateTime << 32 | before.dwLowDateTime));
    assert_true(completion.time <= ((ULONGLONG)after.dwHighDateTime << 32 | after.dwLowDateTime));
    /* Setting it again cancels the APC that has not run. */
    assert_true(SetWaitableTimer(handle, &soon, 0, completed, &here, FALSE));
    wait_for(handle);
    soon = due(-MILLISECONDS(3600000));
    assert_true(SetWaitableTimer(handle, &soon, 0, NULL, NULL, FALSE));
    limit = due(0);
    assert_int_equal(NtDelayExecution(TRUE, &limit), STATUS_SUCCESS);
    assert_int_equal(completion.calls, 1);
    close_all(handle, NULL);
}

static void waking_the_machine(void **state)
{
    HANDLE handle = CreateWaitableTimerA(NULL, TRUE, NULL);
    LARGE_INTEGER soon = due(-1);
    REASON_CONTEXT reason = {.Version = POWER_REQUEST_CONTEXT_VERSION, .Flags = POWER_REQUEST_CONTEXT_SIMPLE_STRING};

    (void)state;
    SetLastError(0);
    assert_true(SetWaitableTimer(handle, &soon, 0, NULL, NULL, TRUE));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    wait_for(handle);
    SetLastError(0);
    assert_true(SetWaitableTimerEx(handle, &soon, 0, NULL, NULL, &reason, 100));
    assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
    assert_leaves_last_error(SetWaitableTimerEx(handle, &soon, 0, NULL, NULL, NULL, 100));
    wait_for(handle);
    close_all(handle, NULL);
}

static void tolerance(void **state)
{
    HANDLE handle = CreateWaitableTimerA(NULL, TRUE, NULL);
    LARGE_INTEGER far = due(-MILLISECONDS(3600000)), soon = due(-1);
    PVOID object;
    PKTIMER timer;

    (void)state;
    assert_int_equal(ObReferenceObjectByHandle(handle, TIMER_QUERY_STATE, NULL, UserMode, &object, NULL), 0);
    timer = object;
    assert_leaves_last_error(SetWaitableTimerEx(handle, &far, 0, NULL, NULL, NULL, 1000));
    assert_int_not_equal(timer->Header.EncodedTolerableDelay, 0);
    assert_leaves_last_error(SetWaitableTimerEx(handle, &far, 0, NULL, NULL, NULL, 0));
    assert_int_equal(timer->Header.EncodedTolerableDelay, 0);
    assert_leaves_last_error(SetWaitableTimerEx(handle, &soon, 1, NULL, NULL, NULL, 10));
    wait_for(handle);
    assert_fails(SetWaitableTimerEx(handle, &far, -1, NULL, NULL, NULL, 0), ERROR_INVALID_PARAMETER);
    assert_fails(SetWaitableTimerEx(handle, NULL, 0, NULL, NULL, NULL, 0), ERROR_NOACCESS);
    assert_fails(SetWaitableTimerEx(NULL, &far, 0, NULL, NULL, NULL, 0), ERROR_INVALID_HANDLE);
    ObDereferenceObject(object);
    close_all(handle, NULL);
}

static void by_name(void **state)
{
    HANDLE first = created(CreateWaitableTimerA(NULL, TRUE, "timer"), ERROR_SUCCESS);
    HANDLE second = created(CreateWaitableTimerExA(NULL, "timer", 0, TIMER_ALL_ACCESS), ERROR_ALREADY_EXISTS);
    HANDLE third = created(OpenWaitableTimerA(TIMER_MODIFY_STATE, FALSE, "timer"), 0xABCD);
    HANDLE fourth = created(OpenWaitableTimerW(SYNCHRONIZE, FALSE, u"timer"), 0xABCD);
    LARGE_INTEGER soon = due(-1);

    (void)state;
    assert_fails(SetWaitableTimer(fourth, &soon, 0, NULL, NULL, FALSE), ERROR_ACCESS_DENIED);
    assert_fails(CancelWaitableTimer(fourth), ERROR_ACCESS_DENIED);
    assert_true(SetWaitableTimer(third, &soon, 0, NULL, NULL, FALSE));
    wait_for(fourth);
    assert_signaled(second);
    close_all(first, second);
    close_all(third, fourth);
    assert_fails(OpenWaitableTimerW(SYNCHRONIZE, FALSE, u"timer"), ERROR_FILE_NOT_FOUND);
}

static void bad_arguments(void **state)
{
    HANDLE handle = CreateWaitableTimerA(NULL, TRUE, NULL), event = CreateEventA(NULL, FALSE, FALSE, NULL);
    LARGE_INTEGER soon = due(-1);

    (void)state;
    assert_fails(SetWaitableTimer(handle, &soon, -1, NULL, NULL, FALSE), ERROR_INVALID_PARAMETER);
    assert_unsignaled(handle);
    assert_fails(SetWaitableTimer(handle, NULL, 0, NULL, NULL, FALSE), ERROR_NOACCESS);
    assert_fails(SetWaitableTimer(event, &soon, 0, NULL, NULL, FALSE), ERROR_INVALID_HANDLE);
    assert_fails(CancelWaitableTimer(event), ERROR_INVALID_HANDLE);
    assert_fails(CancelWaitableTimer(NULL), ERROR_INVALID_HANDLE);
    assert_fails(CreateWaitableTimerExA(NULL, NULL, 4, TIMER_ALL_ACCESS), ERROR_INVALID_PARAMETER);
    close_all(handle, event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(periods),
        cmocka_unit_test(a_completion_routine),
        cmocka_unit_test(waking_the_machine),
        cmocka_unit_test(tolerance),
        cmocka_unit_test(by_name),
        cmocka_unit_test(bad_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
