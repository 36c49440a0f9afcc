/* Win32 waits: results, last errors, alerts that Win32 does not know of. */
#include "../nt/handles.h"

#include <interlock/win32.h>
#include <interlock/win32/extra.h>

#define UNTOUCHED 4711

static HANDLE make(EVENT_TYPE type, BOOLEAN state)
{
    HANDLE handle;
    check(NtCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, type, state) == STATUS_SUCCESS);
    return handle;
}

/* The result, and the last error that goes with it. */
#define expect(call, result, error)                                                                                    \
    do {                                                                                                               \
        SetLastError(UNTOUCHED);                                                                                       \
        assert_int_equal((call), (result));                                                                            \
        assert_int_equal(GetLastError(), (error));                                                                     \
    } while (0)

static void test_single(void **state)
{
    HANDLE event = make(SynchronizationEvent, TRUE);
    (void)state;
    expect(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0, UNTOUCHED);
    expect(WaitForSingleObject(event, 0), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForSingleObject(event, 1), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForSingleObjectEx(event, 1, FALSE), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForSingleObjectEx(event, 1, TRUE), WAIT_TIMEOUT, UNTOUCHED);
    check(NtSetEvent(event, NULL) == STATUS_SUCCESS);
    expect(WaitForSingleObjectEx(event, 1000, TRUE), WAIT_OBJECT_0, UNTOUCHED);
    close_handle(event);
}

static VOID NTAPI run_nothing(PVOID context, PVOID first, PVOID second)
{
    (void)context, (void)first, (void)second;
}

static void test_many(void **state)
{
    HANDLE many[300];
    DWORD index = 99;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(many); i += 1) {
        many[i] = make(SynchronizationEvent, FALSE);
    }
    expect(WaitForManyObjects(ARRAYSIZE(many), many, FALSE, 1, FALSE, &index), WAIT_TIMEOUT, UNTOUCHED);
    assert_int_equal(index, 0);
    check(NtSetEvent(many[WAIT_TIMEOUT], NULL) == STATUS_SUCCESS);
    expect(WaitForManyObjects(ARRAYSIZE(many), many, FALSE, INFINITE, TRUE, &index), WAIT_OBJECT_0, UNTOUCHED);
    assert_int_equal(index, WAIT_TIMEOUT);
    check(NtQueueApcThread(NtCurrentThread(), run_nothing, NULL, NULL, NULL) == STATUS_SUCCESS);
    expect(WaitForManyObjects(ARRAYSIZE(many), many, TRUE, INFINITE, TRUE, NULL), WAIT_IO_COMPLETION, UNTOUCHED);
    check(NtAlertThread(NtCurrentThread()) == STATUS_SUCCESS); /* not a Win32 alert: the wait continues */
    expect(WaitForManyObjects(ARRAYSIZE(many), many, TRUE, 1, TRUE, NULL), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForManyObjects(0, many, FALSE, 0, FALSE, &index), WAIT_FAILED, ERROR_INVALID_PARAMETER);
    expect(WaitForManyObjects(MAXIMUM_MANY_OBJECTS + 1, many, FALSE, 0, FALSE, &index), WAIT_FAILED,
           ERROR_INVALID_PARAMETER);
    expect(WaitForManyObjects(ARRAYSIZE(many), NULL, FALSE, 0, FALSE, &index), WAIT_FAILED, ERROR_NOACCESS);
    close_handle(many[299]);
    many[299] = many[0];
    expect(WaitForManyObjects(ARRAYSIZE(many), many, TRUE, 0, FALSE, &index), WAIT_FAILED, ERROR_INVALID_PARAMETER);
    many[299] = NULL;
    expect(WaitForManyObjects(ARRAYSIZE(many), many, FALSE, 0, FALSE, &index), WAIT_FAILED, ERROR_INVALID_HANDLE);
    for (ULONG i = 0; i < 299; i += 1) {
        close_handle(many[i]);
    }
}

static void test_failures(void **state)
{
    HANDLE event = make(NotificationEvent, TRUE);
    HANDLE denied = same_object(event, EVENT_MODIFY_STATE);
    HANDLE closed = closed_handle();
    HANDLE many[MAXIMUM_WAIT_OBJECTS + 1];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(many); i += 1) {
        many[i] = event;
    }
    expect(WaitForSingleObject(NULL, INFINITE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    expect(WaitForSingleObject(closed, INFINITE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    for (LONG_PTR value = -3; value >= -6; value -= 1) {
        expect(WaitForSingleObject((HANDLE)value, INFINITE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    }
    expect(WaitForSingleObject(denied, INFINITE), WAIT_FAILED, ERROR_ACCESS_DENIED);
    expect(WaitForSingleObjectEx(denied, INFINITE, TRUE), WAIT_FAILED, ERROR_ACCESS_DENIED);
    expect(WaitForMultipleObjects(0, many, FALSE, 0), WAIT_FAILED, ERROR_INVALID_PARAMETER);
    expect(WaitForMultipleObjects(65, many, FALSE, 0), WAIT_FAILED, ERROR_INVALID_PARAMETER);
    expect(WaitForMultipleObjects(2, many, TRUE, 0), WAIT_FAILED, ERROR_INVALID_PARAMETER);
    expect(WaitForMultipleObjects(64, many, FALSE, 0), WAIT_OBJECT_0, UNTOUCHED);
    many[63] = INVALID_HANDLE_VALUE; /* the process as a pseudo handle */
    expect(WaitForMultipleObjects(64, many, FALSE, 0), WAIT_FAILED, ERROR_INVALID_HANDLE);
    many[63] = denied;
    expect(WaitForMultipleObjectsEx(64, many, FALSE, 0, TRUE), WAIT_FAILED, ERROR_ACCESS_DENIED);
    expect(WaitForSingleObject(INVALID_HANDLE_VALUE, 0), WAIT_TIMEOUT, UNTOUCHED);
    close_handle(denied);
    close_handle(event);
}

static void test_multiple(void **state)
{
    HANDLE handles[] = {make(SynchronizationEvent, FALSE), make(SynchronizationEvent, TRUE),
                        make(SynchronizationEvent, TRUE)};
    (void)state;
    expect(WaitForMultipleObjects(3, handles, TRUE, 1), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForMultipleObjects(3, handles, FALSE, INFINITE), WAIT_OBJECT_0 + 1, UNTOUCHED);
    expect(WaitForMultipleObjects(3, handles, FALSE, INFINITE), WAIT_OBJECT_0 + 2, UNTOUCHED);
    expect(WaitForMultipleObjects(3, handles, FALSE, 0), WAIT_TIMEOUT, UNTOUCHED);
    for (ULONG i = 0; i < 3; i += 1) {
        check(NtSetEvent(handles[i], NULL) == STATUS_SUCCESS);
    }
    expect(WaitForMultipleObjects(3, handles, TRUE, INFINITE), WAIT_OBJECT_0, UNTOUCHED);
    for (ULONG i = 0; i < 3; i += 1) {
        expect(WaitForSingleObject(handles[i], 0), WAIT_TIMEOUT, UNTOUCHED);
        close_handle(handles[i]);
    }
}

static void take_and_end(void *argument)
{
    check(WaitForSingleObject(*(HANDLE *)argument, INFINITE) == WAIT_OBJECT_0);
}

static void test_abandoned(void **state)
{
    PKMUTANT mutant;
    HANDLE handles[] = {make(NotificationEvent, FALSE), make_mutant_object(FALSE, &mutant)};
    actor a;
    (void)state;
    for (ULONG form = 0; form < 3; form += 1) {
        start_actor(&a);
        run_on(&a, take_and_end, &handles[1]);
        end_actor(&a);
        if (form == 0) {
            expect(WaitForSingleObject(handles[1], INFINITE), WAIT_ABANDONED, UNTOUCHED);
        } else if (form == 1) {
            expect(WaitForMultipleObjects(2, handles, FALSE, INFINITE), WAIT_ABANDONED_0 + 1, UNTOUCHED);
        } else {
            check(NtSetEvent(handles[0], NULL) == STATUS_SUCCESS);
            expect(WaitForMultipleObjects(2, handles, TRUE, INFINITE), WAIT_ABANDONED_0, UNTOUCHED);
        }
        KeReleaseMutant(mutant, 0, FALSE, FALSE);
    }
    close_handle(handles[0]);
    close_handle(handles[1]);
}

static void queue_one(PKAPC apc)
{
    queue_user_apc(apc, KeGetCurrentThread(), count_apc, NULL);
}

static void test_apcs(void **state)
{
    HANDLE event = make(SynchronizationEvent, TRUE);
    KAPC apc;
    (void)state;
    apcs_run = 0;
    queue_one(&apc);
    expect(WaitForSingleObjectEx(event, INFINITE, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    queue_one(&apc);
    expect(WaitForMultipleObjectsEx(1, &event, FALSE, INFINITE, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    queue_one(&apc);
    expect(WaitForMultipleObjectsEx(1, &event, TRUE, INFINITE, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    queue_one(&apc);
    expect(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    queue_one(&apc);
    expect(SleepEx(0, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    assert_int_equal(apcs_run, 5);
    queue_one(&apc);
    expect(SleepEx(1, FALSE), 0, UNTOUCHED);
    expect(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0, UNTOUCHED);
    assert_int_equal(apcs_run, 5);
    expect(SignalObjectAndWait(event, event, INFINITE, TRUE), WAIT_IO_COMPLETION, UNTOUCHED);
    assert_int_equal(apcs_run, 6);
    expect(WaitForSingleObject(event, 0), WAIT_OBJECT_0, UNTOUCHED);
    close_handle(event);
}

static void alert_self(void)
{
    KeAlertThread(KeGetCurrentThread(), UserMode);
}

/* An alert does not end the wait: it continues with the rest of its timeout. */
static void test_alerts_do_not_surface(void **state)
{
    HANDLE event = make(SynchronizationEvent, TRUE);
    HANDLE never = make(SynchronizationEvent, FALSE);
    ULONGLONG before;
    (void)state;
    alert_self();
    expect(WaitForSingleObjectEx(event, INFINITE, TRUE), WAIT_OBJECT_0, UNTOUCHED);
    alert_self();
    expect(WaitForSingleObjectEx(event, 0, TRUE), WAIT_TIMEOUT, UNTOUCHED);
    alert_self();
    expect(WaitForMultipleObjectsEx(1, &event, TRUE, 1, TRUE), WAIT_TIMEOUT, UNTOUCHED);
    alert_self();
    before = HalDispatch.QueryInterruptTime();
    expect(SleepEx(3, TRUE), 0, UNTOUCHED);
    assert_true(HalDispatch.QueryInterruptTime() - before >= 3 * MILLISECOND);
    alert_self();
    expect(SignalObjectAndWait(event, never, 2, TRUE), WAIT_TIMEOUT, UNTOUCHED);
    expect(WaitForSingleObject(event, 0), WAIT_OBJECT_0, UNTOUCHED);
    expect(WaitForSingleObject(event, 0), WAIT_TIMEOUT, UNTOUCHED);
    close_handle(event);
    close_handle(never);
}

typedef struct sleeper {
    actor actor;
    HANDLE event;
    DWORD milliseconds;
    DWORD result;
    ULONGLONG ended;
} sleeper;

static void sleep_alertably(void *argument)
{
    sleeper *s = argument;
    s->result = WaitForSingleObjectEx(s->event, s->milliseconds, TRUE);
    __atomic_store_n(&s->ended, HalDispatch.QueryInterruptTime(), __ATOMIC_RELEASE);
}

/* A wait that is alerted continuously still ends at its deadline: with a new deadline for each alert it would never
   end. */
static void test_one_deadline(void **state)
{
    sleeper s = {.event = make(SynchronizationEvent, FALSE), .milliseconds = 100};
    (void)state;
    start_actor(&s.actor);
    ULONGLONG before = HalDispatch.QueryInterruptTime();
    tell(&s.actor, sleep_alertably, &s);
    while (!is_idle(&s.actor)) {
        KeAlertThread(s.actor.thread, UserMode);
        pause_briefly();
    }
    assert_int_equal(s.result, WAIT_TIMEOUT);
    assert_true(s.ended - before >= 100 * MILLISECOND);
    end_actor(&s.actor);
    close_handle(s.event);
}

static void test_signal_object_and_wait(void **state)
{
    HANDLE event = make(SynchronizationEvent, FALSE);
    HANDLE denied = same_object(event, SYNCHRONIZE);
    PKMUTANT mutant;
    HANDLE mutant_handle = make_mutant_object(FALSE, &mutant);
    HANDLE semaphore;
    (void)state;
    check(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 1, 1) == STATUS_SUCCESS);
    expect(SignalObjectAndWait(event, event, INFINITE, FALSE), WAIT_OBJECT_0, UNTOUCHED);
    expect(WaitForSingleObject(event, 0), WAIT_TIMEOUT, UNTOUCHED);
    expect(SignalObjectAndWait(semaphore, event, INFINITE, FALSE), WAIT_FAILED, ERROR_TOO_MANY_POSTS);
    expect(SignalObjectAndWait(mutant_handle, event, INFINITE, FALSE), WAIT_FAILED, ERROR_NOT_OWNER);
    expect(SignalObjectAndWait(denied, event, INFINITE, FALSE), WAIT_FAILED, ERROR_ACCESS_DENIED);
    expect(SignalObjectAndWait(NtCurrentThread(), event, INFINITE, FALSE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    expect(SignalObjectAndWait(NULL, event, INFINITE, FALSE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    expect(SignalObjectAndWait(event, NULL, INFINITE, FALSE), WAIT_FAILED, ERROR_INVALID_HANDLE);
    expect(WaitForSingleObject(event, 0), WAIT_TIMEOUT, UNTOUCHED);
    close_handle(semaphore);
    close_handle(mutant_handle);
    close_handle(denied);
    close_handle(event);
}

static void test_sleep(void **state)
{
    ULONGLONG before = HalDispatch.QueryInterruptTime();
    (void)state;
    SetLastError(UNTOUCHED);
    Sleep(3);
    assert_true(HalDispatch.QueryInterruptTime() - before >= 3 * MILLISECOND);
    Sleep(0);
    BOOL switched = SwitchToThread();
    assert_true(switched == TRUE || switched == FALSE);
    assert_int_equal(GetLastError(), UNTOUCHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_single),
        WATCHED(test_many),
        WATCHED(test_failures),
        WATCHED(test_multiple),
        WATCHED(test_abandoned),
        WATCHED(test_apcs),
        WATCHED(test_alerts_do_not_surface),
        WATCHED(test_one_deadline),
        WATCHED(test_signal_object_and_wait),
        WATCHED(test_sleep),
    };
    return cmocka_run_group_tests_name("win32/wait", tests, NULL, NULL);
}
