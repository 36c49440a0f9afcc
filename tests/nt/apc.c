#include "support.h"

#include <interlock/nt.h>

#include "ke/wait.h"
#include "ps/psp.h"

#define RECORDS 64

static ULONG recorded;
static ULONG_PTR records[RECORDS][3];

static VOID record(PVOID a, PVOID b, PVOID c)
{
    if (recorded < RECORDS) {
        records[recorded][0] = (ULONG_PTR)a;
        records[recorded][1] = (ULONG_PTR)b;
        records[recorded][2] = (ULONG_PTR)c;
        recorded++;
    }
}

static NTSTATUS queue_to(HANDLE thread, ULONG_PTR number)
{
    return NtQueueApcThread(thread, record, (PVOID)number, (PVOID)(number + 1), (PVOID)(number + 2));
}

static void join(HANDLE thread)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(NtWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
}

static NTSTATUS exit_status_of(HANDLE thread)
{
    THREAD_BASIC_INFORMATION basic;

    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    return basic.ExitStatus;
}

static void create(PHANDLE thread, PUSER_THREAD_START_ROUTINE routine, PVOID argument, ULONG flags)
{
    assert_int_equal(NtCreateThreadEx(thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), routine, argument, flags, 0,
                                      0, 0, NULL),
                     STATUS_SUCCESS);
}

static void close_handle(HANDLE handle)
{
    assert_int_equal(ObCloseHandle(handle, UserMode), STATUS_SUCCESS);
}

/* All run, in the order of arrival, with their three arguments; the signaled object stays signaled. */
static void an_alertable_wait_runs_all_of_them(void **state)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    HANDLE event;

    (void)state;
    recorded = 0;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, TRUE), 0);
    for (ULONG_PTR i = 0; i < 5; i++)
        assert_int_equal(queue_to(NtCurrentThread(), i * 10), 0);
    assert_int_equal(NtDelayExecution(FALSE, &poll), STATUS_SUCCESS);
    assert_int_equal(recorded, 0);
    assert_int_equal(NtWaitForSingleObject(event, TRUE, &poll), STATUS_USER_APC);
    assert_int_equal(recorded, 5);
    for (ULONG_PTR i = 0; i < 5; i++) {
        assert_int_equal(records[i][0], i * 10);
        assert_int_equal(records[i][1], i * 10 + 1);
        assert_int_equal(records[i][2], i * 10 + 2);
    }
    assert_int_equal(NtWaitForSingleObject(event, TRUE, &poll), STATUS_WAIT_0);
    assert_int_equal(NtWaitForSingleObject(event, TRUE, &poll), STATUS_TIMEOUT);
    close_handle(event);
}

static void a_wait_that_is_not_alertable_runs_none(void **state)
{
    LARGE_INTEGER poll = {.QuadPart = 0}, moment = {.QuadPart = -10000};
    HANDLE event;

    (void)state;
    recorded = 0;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, TRUE), 0);
    assert_int_equal(queue_to(NtCurrentThread(), 1), 0);
    assert_int_equal(NtWaitForSingleObject(event, FALSE, &poll), STATUS_WAIT_0);
    assert_int_equal(NtWaitForSingleObject(event, FALSE, &moment), STATUS_TIMEOUT);
    assert_int_equal(recorded, 0);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(recorded, 1);
    close_handle(event);
}

static VOID queue_one_more(PVOID a, PVOID b, PVOID c)
{
    record(a, b, c);
    queue_to(NtCurrentThread(), 100);
}

static VOID wait_inside(PVOID a, PVOID b, PVOID c)
{
    LARGE_INTEGER poll = {.QuadPart = 0};

    record(a, b, c);
    record((PVOID)(LONG_PTR)NtDelayExecution(TRUE, &poll), NULL, NULL);
}

static void apcs_may_queue_and_wait(void **state)
{
    LARGE_INTEGER poll = {.QuadPart = 0};

    (void)state;
    recorded = 0;
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), queue_one_more, (PVOID)1, NULL, NULL), 0);
    assert_int_equal(NtDelayExecution(TRUE, &poll), STATUS_USER_APC);
    assert_int_equal(recorded, 2);
    assert_int_equal(records[1][0], 100);

    recorded = 0;
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), wait_inside, (PVOID)1, NULL, NULL), 0);
    assert_int_equal(queue_to(NtCurrentThread(), 50), 0);
    assert_int_equal(NtDelayExecution(TRUE, &poll), STATUS_USER_APC);
    assert_int_equal(recorded, 3);
    assert_int_equal(records[0][0], 1);
    assert_int_equal(records[1][0], 50); /* run by the inner wait */
    assert_int_equal(records[2][0], STATUS_USER_APC);
    assert_int_equal(KiCurrentThread()->ServiceDepth, 0);
}


static NTSTATUS sleep_alertable(PVOID argument)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    __atomic_store_n((volatile ULONG *)argument, 1, __ATOMIC_RELEASE);
    return NtDelayExecution(TRUE, &timeout);
}

static void an_apc_ends_the_wait_of_another_thread(void **state)
{
    volatile ULONG ready = 0;
    HANDLE thread;

    (void)state;
    recorded = 0;
    create(&thread, sleep_alertable, (PVOID)&ready, 0);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Yield();
    assert_int_equal(queue_to(thread, 7), 0);
    join(thread);
    assert_int_equal(exit_status_of(thread), STATUS_USER_APC);
    assert_int_equal(recorded, 1);
    close_handle(thread);
}

static NTSTATUS count_recorded(PVOID argument)
{
    (void)argument;
    return (NTSTATUS)recorded;
}

/* What was queued before the thread began runs before its routine. */
static void apcs_of_a_thread_that_has_not_begun(void **state)
{
    HANDLE thread;

    (void)state;
    recorded = 0;
    create(&thread, count_recorded, NULL, THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
    assert_int_equal(queue_to(thread, 1), 0);
    assert_int_equal(queue_to(thread, 2), 0);
    assert_int_equal(recorded, 0);
    assert_int_equal(NtResumeThread(thread, NULL), 0);
    join(thread);
    assert_int_equal(exit_status_of(thread), 2);
    close_handle(thread);
}

static NTSTATUS leave(PVOID argument)
{
    queue_to(NtCurrentThread(), 1);
    queue_to(NtCurrentThread(), 2);
    return (NTSTATUS)(ULONG_PTR)argument;
}

static void a_thread_that_ended_refuses(void **state)
{
    HANDLE thread;

    (void)state;
    recorded = 0;
    create(&thread, leave, (PVOID)3, 0);
    join(thread);
    assert_int_equal(queue_to(thread, 1), STATUS_UNSUCCESSFUL);
    assert_int_equal(recorded, 0);
    close_handle(thread);
}

static VOID end_thread(PVOID a, PVOID b, PVOID c)
{
    (void)b;
    (void)c;
    NtTerminateThread(NtCurrentThread(), (NTSTATUS)(ULONG_PTR)a);
}

static void an_apc_may_end_its_thread(void **state)
{
    volatile ULONG ready = 0;
    HANDLE thread;

    (void)state;
    create(&thread, sleep_alertable, (PVOID)&ready, 0);
    assert_int_equal(NtQueueApcThread(thread, end_thread, (PVOID)55, NULL, NULL), 0);
    join(thread);
    assert_int_equal(exit_status_of(thread), 55);
    close_handle(thread);
}

static VOID stay_for_ever(PVOID a, PVOID b, PVOID c)
{
    (void)b;
    (void)c;
    __atomic_store_n((volatile ULONG *)a, 2, __ATOMIC_RELEASE);
    while (__atomic_load_n((volatile ULONG *)a, __ATOMIC_RELAXED) == 2)
        HalDispatch.Yield();
}

/* The wait is a service, but the routine is the program's. */
static void a_thread_is_ended_in_an_apc(void **state)
{
    volatile ULONG ready = 0;
    HANDLE thread;

    (void)state;
    create(&thread, sleep_alertable, (PVOID)&ready, 0);
    assert_int_equal(NtQueueApcThread(thread, stay_for_ever, (PVOID)&ready, NULL, NULL), 0);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) != 2)
        HalDispatch.Yield();
    assert_int_equal(NtTerminateThread(thread, 66), 0);
    join(thread);
    assert_int_equal(exit_status_of(thread), 66);
    close_handle(thread);
}

/* It is accepted, interrupts no wait, and calls nothing; the others run as usual. */
static void no_routine(void **state)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    (void)state;
    recorded = 0;
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), NULL, NULL, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(NtQueueApcThreadEx(NtCurrentThread(), NULL, NULL, NULL, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(NtDelayExecution(TRUE, &now), STATUS_SUCCESS);
    assert_int_equal(NtQueueApcThread((HANDLE)0x4444, NULL, NULL, NULL, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(queue_to(NtCurrentThread(), 1), STATUS_SUCCESS);
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), NULL, NULL, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(NtDelayExecution(TRUE, &now), STATUS_USER_APC);
    assert_int_equal(recorded, 1);
}

static void what_is_refused(void **state)
{
    HANDLE event;

    (void)state;
    recorded = 0;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, TRUE), 0);
    assert_int_equal(queue_to(event, 1), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(queue_to((HANDLE)0x4444, 1), STATUS_INVALID_HANDLE);
    assert_int_equal(NtQueueApcThreadEx(NtCurrentThread(), QUEUE_USER_APC_SPECIAL_USER_APC, record, NULL, NULL, NULL),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(NtQueueApcThreadEx2(NtCurrentThread(), NULL, QUEUE_USER_APC_FLAGS_SPECIAL_USER_APC, record, NULL,
                                         NULL, NULL),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(NtQueueApcThreadEx2(NtCurrentThread(), NULL, 2, record, NULL, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtQueueApcThreadEx(NtCurrentThread(), event, record, NULL, NULL, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(recorded, 0);
    assert_int_equal(NtQueueApcThreadEx(NtCurrentThread(), NULL, record, NULL, NULL, NULL), 0);
    assert_int_equal(NtQueueApcThreadEx2(NtCurrentThread(), NULL, 0, record, NULL, NULL, NULL), 0);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(recorded, 2);
    close_handle(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alertable_wait_runs_all_of_them),
        cmocka_unit_test(a_wait_that_is_not_alertable_runs_none),
        cmocka_unit_test(apcs_may_queue_and_wait),
        cmocka_unit_test(an_apc_ends_the_wait_of_another_thread),
        cmocka_unit_test(apcs_of_a_thread_that_has_not_begun),
        cmocka_unit_test(a_thread_that_ended_refuses),
        cmocka_unit_test(an_apc_may_end_its_thread),
        cmocka_unit_test(a_thread_is_ended_in_an_apc),
        cmocka_unit_test(no_routine),
        cmocka_unit_test(what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
