/* terminatewait.c: threads that are ended while they wait. */
#include "victim.h"

static NTSTATUS wait_any_alertable(struct victim *victim)
{
    return wait_any(victim, UserMode, TRUE);
}

static NTSTATUS wait_pair(struct victim *victim)
{
    tell_ready(victim);
    KeWaitForLowEventPair(&victim->pair, UserMode, FALSE, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_alert_by_id(struct victim *victim)
{
    tell_ready(victim);
    NtWaitForAlertByThreadId(victim, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_handle(struct victim *victim)
{
    tell_ready(victim);
    NtWaitForSingleObject(victim->event_handle, FALSE, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_handles(struct victim *victim)
{
    HANDLE handles[] = {victim->event_handle, victim->event_handle};

    tell_ready(victim);
    NtWaitForMultipleObjects(2, handles, WaitAny, TRUE, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_many_handles(struct victim *victim)
{
    HANDLE handles[100];

    for (ULONG i = 0; i < ARRAYSIZE(handles); i++)
        handles[i] = victim->event_handle;
    tell_ready(victim);
    NtWaitForManyObjects(ARRAYSIZE(handles), handles, WaitAny, FALSE, NULL, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_keyed_event(struct victim *victim)
{
    tell_ready(victim);
    NtWaitForKeyedEvent(NULL, victim, FALSE, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_on_address(struct victim *victim)
{
    ULONG zero = 0;

    tell_ready(victim);
    RtlWaitOnAddress(&victim->word, &zero, sizeof(zero), NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_port(struct victim *victim)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;

    tell_ready(victim);
    NtRemoveIoCompletion(victim->event_handle, &key, &context, &block, NULL);
    victim->past = 1;
    return 0;
}

static NTSTATUS wait_in_user_apc_wait(struct victim *victim)
{
    LARGE_INTEGER interval = {.QuadPart = -36000000000};

    tell_ready(victim);
    NtDelayExecution(TRUE, &interval);
    victim->past = 1;
    return 0;
}

static NTSTATUS (*const waits[])(struct victim *) = {
    wait_single_kernel, wait_single_user, wait_any_kernel, wait_any_alertable, wait_all,          wait_delay,
    wait_queue,         wait_pair,        wait_alert_by_id, wait_in_user_apc_wait, wait_keyed_event,
    wait_on_address,
};

static void expect_no_waiters(struct victim *victim)
{
    assert_true(IsListEmpty(&victim->event.Header.WaitListHead));
    assert_true(IsListEmpty(&victim->other.Header.WaitListHead));
    assert_true(IsListEmpty(&victim->semaphore.Header.WaitListHead));
    assert_true(IsListEmpty(&victim->queue.Header.WaitListHead));
    assert_true(IsListEmpty(&victim->queue.ThreadListHead));
    assert_int_equal(victim->queue.CurrentCount, 0);
    assert_int_equal(KeSetEvent(&victim->event, 0, FALSE), 0);
    assert_int_equal(KeReadStateEvent(&victim->event), 1);
    assert_int_equal(KeReleaseSemaphore(&victim->semaphore, 0, 1, FALSE), 0);
    assert_int_equal(KeReadStateSemaphore(&victim->semaphore), 1);
}

static void every_wait_is_ended(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(waits); i++) {
        struct victim victim;

        create_victim(&victim, waits[i], 0);
        await(&victim.ready);
        await_waiting(&victim);
        assert_int_equal(exit_status_of(&victim), STATUS_PENDING);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), STATUS_SUCCESS);
        expect_end(&victim, EXIT_CODE);
        expect_no_waiters(&victim);
        forget_victim(&victim);
    }
}

/* The references of a wait by handle are returned, and no signal of others is consumed. */
static void a_wait_by_handle_gives_its_references_back(void **state)
{
    NTSTATUS (*const by_handle[])(struct victim *) = {wait_handle, wait_handles, wait_many_handles};
    const LONG_PTR lookups[] = {1, 2, 100};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(by_handle); i++) {
        struct victim victim;
        HANDLE event;
        PVOID object;
        LONG_PTR before;

        assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE), 0);
        assert_int_equal(ObReferenceObjectByHandle(event, 0, NULL, KernelMode, &object, NULL), 0);
        before = ObpHeaderOf(object)->PointerCount;
        create_victim(&victim, by_handle[i], THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
        victim.event_handle = event;
        assert_int_equal(NtResumeThread(victim.handle, NULL), 0);
        await(&victim.ready);
        await_waiting(&victim);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
        expect_end(&victim, EXIT_CODE);
        /* Each lookup has used up one of the handle's references. */
        assert_int_equal(ObpHeaderOf(object)->PointerCount, before - lookups[i]);
        assert_int_equal(NtSetEvent(event, NULL), 0);
        assert_int_equal(KeReadStateEvent(object), 1);
        ObDereferenceObject(object);
        assert_int_equal(ObCloseHandle(event, UserMode), 0);
        forget_victim(&victim);
    }
}

struct waiter {
    volatile ULONG *word;
    NTSTATUS status;
};

static void wait_for_change(void *argument, unsigned index)
{
    struct waiter *waiter = argument;
    ULONG zero = 0;

    (void)index;
    waiter->status = RtlWaitOnAddress(waiter->word, &zero, sizeof(zero), NULL);
}

/* The one wake goes to the remaining waiter, although the other arrived first. */
static void a_waiter_of_an_address_leaves_no_trace(void **state)
{
    struct victim victim;
    struct waiter waiter = {&victim.word, STATUS_UNSUCCESSFUL};
    test_threads *threads;

    (void)state;
    create_victim(&victim, wait_on_address, 0);
    await(&victim.ready);
    await_waiting(&victim);
    threads = start_threads(1, wait_for_change, &waiter);
    usleep(2000);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    __atomic_store_n(&victim.word, 1, __ATOMIC_SEQ_CST);
    RtlWakeAddressSingle((PVOID)&victim.word);
    join_threads(threads, 60);
    assert_int_equal(waiter.status, STATUS_SUCCESS);
    forget_victim(&victim);
}

/* A later packet is for the next thread. */
static void a_waiter_at_a_port_leaves_no_trace(void **state)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    struct victim victim;
    PVOID key, context;
    IO_STATUS_BLOCK block;
    HANDLE port;

    (void)state;
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1), 0);
    create_victim(&victim, wait_port, THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
    victim.event_handle = port;
    assert_int_equal(NtResumeThread(victim.handle, NULL), 0);
    await(&victim.ready);
    await_waiting(&victim);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(NtSetIoCompletion(port, (PVOID)1, (PVOID)2, 3, 4), 0);
    assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &block, &poll), STATUS_SUCCESS);
    assert_ptr_equal(context, (PVOID)2);
    assert_int_equal(ObCloseHandle(port, UserMode), 0);
    forget_victim(&victim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_wait_is_ended),
        CASE(a_wait_by_handle_gives_its_references_back),
        cmocka_unit_test(a_waiter_of_an_address_leaves_no_trace),
        CASE(a_waiter_at_a_port_leaves_no_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
