/* terminate.c: threads that are ended while they run, are suspended, own something, and those that are not ended. */
#include "victim.h"

/* Not waiting. */

static NTSTATUS spin(struct victim *victim)
{
    tell_ready(victim);
    for (;;) {
        if (__atomic_load_n(&victim->release, __ATOMIC_RELAXED) == 2)
            return 0;
        HalDispatch.Yield();
    }
}

static NTSTATUS signal_forever(struct victim *victim)
{
    tell_ready(victim);
    for (;;) {
        KeSetEvent(&victim->event, 0, FALSE);
        KeWaitForSingleObject(&victim->event, Executive, KernelMode, FALSE, NULL);
        KeWaitForSingleObject(&victim->mutant, Executive, KernelMode, FALSE, NULL);
        KeReleaseMutant(&victim->mutant, 0, FALSE, FALSE);
        if (__atomic_load_n(&victim->release, __ATOMIC_RELAXED) == 2)
            return 0;
    }
}

static NTSTATUS block_in_host(struct victim *victim)
{
    char byte;

    tell_ready(victim);
    if (test_slowdown() != 1) /* a sanitizer lets signals through in some calls only */
        pause();
    else if (read(victim->pipe[0], &byte, 1) >= 0)
        victim->past = 1;
    victim->past = 1;
    return 0;
}

static void a_running_thread_is_ended(void **state)
{
    NTSTATUS (*const runs[])(struct victim *) = {spin, signal_forever};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(runs); i++) {
        struct victim victim;

        create_victim(&victim, runs[i], 0);
        await(&victim.ready);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
        expect_end(&victim, EXIT_CODE);
        assert_true(IsListEmpty(&victim.event.Header.WaitListHead));
        forget_victim(&victim);
    }
}

static void a_thread_in_a_host_call_is_ended(void **state)
{
    struct victim victim;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    create_victim(&victim, block_in_host, THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
    victim.pipe[0] = ends[0];
    assert_int_equal(NtResumeThread(victim.handle, NULL), 0);
    await(&victim.ready);
    usleep(10000);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    forget_victim(&victim);
    close(ends[0]);
    close(ends[1]);
}

/* Where it must not stop, it continues until it has left. */

static void hold_back(struct victim *victim)
{
    tell_ready(victim);
    await(&victim->release);
    __atomic_store_n(&victim->ready, 2, __ATOMIC_RELEASE);
}

static NTSTATUS in_critical_region(struct victim *victim)
{
    KeEnterCriticalRegion();
    hold_back(victim);
    KeLeaveCriticalRegion();
    victim->past = 1;
    return 0;
}

static NTSTATUS in_guarded_region(struct victim *victim)
{
    KeEnterGuardedRegion();
    hold_back(victim);
    KeLeaveGuardedRegion();
    victim->past = 1;
    return 0;
}

static NTSTATUS at_apc_level(struct victim *victim)
{
    KIRQL old;

    KeRaiseIrql(APC_LEVEL, &old);
    hold_back(victim);
    KeLowerIrql(old);
    victim->past = 1;
    return 0;
}

static NTSTATUS at_dispatch_level(struct victim *victim)
{
    KIRQL old;

    KeRaiseIrql(DISPATCH_LEVEL, &old);
    hold_back(victim);
    KeLowerIrql(old);
    victim->past = 1;
    return 0;
}

static NTSTATUS with_kernel_mutex(struct victim *victim)
{
    KeWaitForSingleObject(&victim->mutex, Executive, KernelMode, FALSE, NULL);
    hold_back(victim);
    KeReleaseMutex(&victim->mutex, FALSE);
    victim->past = 1;
    return 0;
}

static NTSTATUS in_section(struct victim *victim)
{
    PKTHREAD thread = KiCurrentThread();

    KiEnterDispatcher(thread);
    hold_back(victim);
    KiExitDispatcher(thread);
    victim->past = 1;
    return 0;
}

static NTSTATUS in_service(struct victim *victim)
{
    PKTHREAD thread = KiCurrentThread();

    KiEnterService(thread);
    hold_back(victim);
    KiExitService(thread);
    victim->past = 1;
    return 0;
}

static NTSTATUS waiting_in_critical_region(struct victim *victim)
{
    KeEnterCriticalRegion();
    tell_ready(victim);
    KeWaitForSingleObject(&victim->other, Executive, UserMode, FALSE, NULL);
    __atomic_store_n(&victim->ready, 2, __ATOMIC_RELEASE);
    KeLeaveCriticalRegion();
    victim->past = 1;
    return 0;
}

static NTSTATUS waiting_in_service(struct victim *victim)
{
    PKTHREAD thread = KiCurrentThread();

    KiEnterService(thread);
    tell_ready(victim);
    KeWaitForSingleObject(&victim->other, Executive, KernelMode, FALSE, NULL);
    __atomic_store_n(&victim->ready, 2, __ATOMIC_RELEASE);
    KiExitService(thread);
    victim->past = 1;
    return 0;
}

static void an_end_waits_for_the_thread_to_come_out(void **state)
{
    NTSTATUS (*const runs[])(struct victim *) = {
        in_critical_region, in_guarded_region,          at_apc_level,       at_dispatch_level, with_kernel_mutex,
        in_section,         waiting_in_critical_region, waiting_in_service, in_service,
    };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(runs); i++) {
        struct victim victim;

        create_victim(&victim, runs[i], 0);
        await(&victim.ready);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
        usleep(5000);
        assert_int_equal(exit_status_of(&victim), STATUS_PENDING);
        assert_int_equal(__atomic_load_n(&victim.ready, __ATOMIC_ACQUIRE), 1);
        __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
        KeSetEvent(&victim.other, 0, FALSE);
        expect_end(&victim, EXIT_CODE);
        assert_int_equal(__atomic_load_n(&victim.ready, __ATOMIC_ACQUIRE), 2);
        assert_int_equal(KeReadStateMutex(&victim.mutex), 1);
        forget_victim(&victim);
    }
}

/* A wait in user mode inside a service ends with STATUS_USER_APC, and the service may finish. */
static NTSTATUS user_wait_in_service(struct victim *victim)
{
    PKTHREAD thread = KiCurrentThread();
    NTSTATUS status;

    KiEnterService(thread);
    tell_ready(victim);
    status = KiWaitForSingleObject(&victim->other, UserRequest, UserMode, FALSE, NULL);
    __atomic_store_n(&victim->ready, status == STATUS_USER_APC ? 2 : 3, __ATOMIC_RELEASE);
    status = KiWaitForSingleObject(&victim->other, UserRequest, UserMode, FALSE, NULL);
    __atomic_store_n(&victim->release, status == STATUS_USER_APC ? 2 : 3, __ATOMIC_RELEASE);
    KiExitService(thread);
    victim->past = 1;
    return 0;
}

static void a_user_wait_in_a_service_ends_and_the_service_returns(void **state)
{
    struct victim victim;

    (void)state;
    create_victim(&victim, user_wait_in_service, 0);
    await(&victim.ready);
    await_waiting(&victim);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(victim.ready, 2);
    assert_int_equal(victim.release, 2);
    forget_victim(&victim);
}

/* Suspended. */

static void a_suspended_thread_is_ended(void **state)
{
    NTSTATUS (*const runs[])(struct victim *) = {spin, wait_all, wait_delay, wait_single_user, wait_queue};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(runs); i++) {
        struct victim victim;
        ULONG count = 99;

        create_victim(&victim, runs[i], 0);
        await(&victim.ready);
        assert_int_equal(NtSuspendThread(victim.handle, &count), 0);
        assert_int_equal(count, 0);
        assert_int_equal(NtSuspendThread(victim.handle, &count), 0);
        assert_int_equal(count, 1);
        if (i % 2 == 0)
            usleep(2000);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
        expect_end(&victim, EXIT_CODE);
        assert_int_equal(NtSuspendThread(victim.handle, &count), STATUS_THREAD_IS_TERMINATING);
        assert_int_equal(NtResumeThread(victim.handle, &count), 0);
        assert_int_equal(count, 0);
        forget_victim(&victim);
    }
}

static BOOLEAN is_suspended(PKTHREAD thread)
{
    ULONG found = __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);

    return (found & KI_WAIT_ACTIVE) &&
           ((found & KI_WAIT_STATE_MASK) == WaitSuspended ||
            ((found & KI_WAIT_STATE_MASK) == WaitCommitted && thread->WaitBlockList[0].Object == &thread->SuspendEvent));
}

/* Signals that arrived while it was suspended remain for others. */
static void a_suspended_thread_that_is_ended_takes_nothing(void **state)
{
    NTSTATUS (*const runs[])(struct victim *) = {wait_single_user, wait_single_kernel, wait_any_kernel, wait_all,
                                                 wait_queue};
    LARGE_INTEGER no_time = {.QuadPart = 0};
    LIST_ENTRY entry;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(runs); i++) {
        struct victim victim;

        create_victim(&victim, runs[i], 0);
        await(&victim.ready);
        await_waiting(&victim);
        assert_int_equal(NtSuspendThread(victim.handle, NULL), 0);
        while (!is_suspended(&victim.thread->Tcb))
            HalDispatch.Yield();
        KeSetEvent(&victim.event, 0, FALSE);
        KeSetEvent(&victim.other, 0, FALSE);
        KeReleaseSemaphore(&victim.semaphore, 0, 1, FALSE);
        KeInsertQueue(&victim.queue, &entry);
        assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
        expect_end(&victim, EXIT_CODE);
        assert_int_equal(KeReadStateEvent(&victim.event), 1);
        assert_int_equal(KeReadStateSemaphore(&victim.semaphore), 1);
        assert_ptr_equal(KeRemoveQueue(&victim.queue, KernelMode, &no_time), &entry);
        KeRundownQueue(&victim.queue);
        forget_victim(&victim);
    }
}

static NTSTATUS must_not_run(struct victim *victim)
{
    victim->past = 1;
    return 0;
}

static void a_thread_that_never_ran_is_ended(void **state)
{
    struct victim victim;

    (void)state;
    create_victim(&victim, must_not_run, THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
    assert_int_equal(exit_status_of(&victim), STATUS_PENDING);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    forget_victim(&victim);
}

/* What it owns. */

static NTSTATUS own_mutants(struct victim *victim)
{
    KeWaitForSingleObject(&victim->mutant, Executive, UserMode, FALSE, NULL);
    KeWaitForSingleObject(&victim->mutant, Executive, UserMode, FALSE, NULL);
    KeWaitForSingleObject(&victim->second, Executive, UserMode, FALSE, NULL);
    return spin(victim);
}

struct heir {
    struct victim *victim;
    NTSTATUS status;
};

static void inherit(void *argument, unsigned index)
{
    struct heir *heir = argument;

    (void)index;
    heir->status = KeWaitForSingleObject(&heir->victim->second, Executive, KernelMode, FALSE, NULL);
    KeReleaseMutant(&heir->victim->second, 0, FALSE, FALSE);
}

static void its_mutants_are_abandoned(void **state)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    struct victim victim;
    struct heir heir = {&victim, 0};
    test_threads *threads;

    (void)state;
    create_victim(&victim, own_mutants, 0);
    await(&victim.ready);
    assert_int_equal(KeReadStateMutant(&victim.mutant), -1);
    threads = start_threads(1, inherit, &heir);
    while (!(__atomic_load_n(KiHeaderWord(&victim.second.Header), __ATOMIC_RELAXED) & KI_WAITERS))
        HalDispatch.Yield();
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    join_threads(threads, 60);
    assert_int_equal(heir.status, STATUS_ABANDONED);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(KeReadStateMutant(&victim.mutant), 1);
    assert_int_equal(KeWaitForSingleObject(&victim.mutant, Executive, KernelMode, FALSE, &poll), STATUS_ABANDONED);
    assert_int_equal(KeReleaseMutant(&victim.mutant, 0, FALSE, FALSE), 0);
    assert_int_equal(KeWaitForSingleObject(&victim.mutant, Executive, KernelMode, FALSE, &poll), STATUS_SUCCESS);
    assert_int_equal(KeReleaseMutant(&victim.mutant, 0, FALSE, FALSE), 0);
    forget_victim(&victim);
}

static ULONG apcs_run, exit_calls, exit_terminated;
static PETHREAD exit_thread;

static VOID count_apc(PVOID a, PVOID b, PVOID c)
{
    (void)a;
    (void)b;
    (void)c;
    __atomic_fetch_add(&apcs_run, 1, __ATOMIC_RELAXED);
}

static VOID note_exit(PETHREAD thread, BOOLEAN terminated)
{
    if (thread == __atomic_load_n(&exit_thread, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&exit_calls, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&exit_terminated, terminated, __ATOMIC_RELAXED);
    }
}

static void its_apcs_are_run_down_and_it_takes_no_more(void **state)
{
    struct victim victim;

    (void)state;
    create_victim(&victim, wait_single_user, 0);
    await(&victim.ready);
    __atomic_store_n(&exit_thread, victim.thread, __ATOMIC_RELAXED);
    assert_int_equal(NtQueueApcThread(victim.handle, count_apc, NULL, NULL, NULL), 0);
    assert_int_equal(NtQueueApcThread(victim.handle, count_apc, NULL, NULL, NULL), 0);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(apcs_run, 0);
    assert_int_equal(exit_calls, 1);
    assert_int_equal(exit_terminated, TRUE);
    assert_int_equal(NtQueueApcThread(victim.handle, count_apc, NULL, NULL, NULL), STATUS_UNSUCCESSFUL);
    assert_int_equal(NtTerminateThread(victim.handle, 5), STATUS_SUCCESS);
    assert_int_equal(exit_status_of(&victim), EXIT_CODE);
    forget_victim(&victim);
}

/* Itself, threads of other processes, and those that must not be terminated. */

static NTSTATUS end_itself(struct victim *victim)
{
    tell_ready(victim);
    NtTerminateThread(victim->release ? NULL : NtCurrentThread(), EXIT_CODE);
    victim->past = 1;
    return 0;
}

static void a_thread_ends_itself(void **state)
{
    struct victim victim;

    (void)state;
    for (ULONG by_null = 0; by_null < 2; by_null++) {
        create_victim(&victim, end_itself, THREAD_CREATE_FLAGS_CREATE_SUSPENDED);
        victim.release = by_null;
        exit_calls = 0;
        __atomic_store_n(&exit_thread, victim.thread, __ATOMIC_RELAXED);
        assert_int_equal(NtResumeThread(victim.handle, NULL), 0);
        expect_end(&victim, EXIT_CODE);
        assert_true(exit_calls >= 1);
        assert_int_equal(exit_terminated, FALSE);
        forget_victim(&victim);
    }
}

static int cleaned;

static void clean(void *argument)
{
    (void)argument;
    cleaned = 1;
}

static void *foreign(void *argument)
{
    struct victim *victim = argument;

    pthread_cleanup_push(clean, NULL);
    victim->thread = PsGetCurrentThread();
    ObReferenceObject(victim->thread);
    ObOpenObjectByPointer(victim->thread, 0, NULL, THREAD_ALL_ACCESS, *PsThreadType, UserMode, &victim->handle);
    tell_ready(victim);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}

/* The host knows that it has ended, and none of its handlers has run. */
static void an_adopted_thread_is_ended(void **state)
{
    struct victim victim = {0};
    pthread_t thread;

    (void)state;
#ifndef __GLIBC__
    skip(); /* other C libraries wait forever for a thread whose end they did not see; */
#endif
    if (test_slowdown() != 1)
        skip(); /* so does a sanitizer */
    assert_int_equal(pthread_create(&thread, NULL, foreign, &victim), 0);
    await(&victim.ready);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(cleaned, 0);
    forget_victim(&victim);
}

/* A thread that reuses the stack of a terminated thread finds none of its state. */
static pthread_key_t key;

static void *leave_a_value(void *argument)
{
    pthread_setspecific(key, argument);
    return foreign(argument);
}

static void *look_for_a_value(void *unused)
{
    (void)unused;
    return pthread_getspecific(key);
}

static void a_stack_is_used_again(void **state)
{
    struct victim victim = {0};
    void *found = &victim;
    pthread_t thread;

    (void)state;
#ifndef __GLIBC__
    skip(); /* as above */
#endif
    if (test_slowdown() != 1)
        skip();
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, leave_a_value, &victim), 0);
    await(&victim.ready);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, look_for_a_value, NULL), 0);
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_null(found);
    assert_int_equal(pthread_key_delete(key), 0);
    forget_victim(&victim);
}

static VOID system_thread(PVOID context)
{
    KeWaitForSingleObject(context, Executive, KernelMode, FALSE, NULL);
}

static void a_system_thread_is_not_ended(void **state)
{
    KEVENT go;
    HANDLE handle, user;
    PVOID thread;

    (void)state;
    KeInitializeEvent(&go, NotificationEvent, FALSE);
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, system_thread, &go), 0);
    assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &thread, NULL), 0);
    assert_int_equal(
        ZwDuplicateObject(NtCurrentProcess(), handle, NtCurrentProcess(), &user, 0, 0, DUPLICATE_SAME_ACCESS), 0);
    assert_int_equal(NtTerminateThread(handle, EXIT_CODE), STATUS_INVALID_HANDLE);
    assert_int_equal(NtTerminateThread(user, EXIT_CODE), STATUS_ACCESS_DENIED);
    NtClose(user);
    assert_false(PsIsThreadTerminating(thread));
    KeSetEvent(&go, 0, FALSE);
    assert_int_equal(KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL), 0);
    assert_int_equal(PsGetThreadExitStatus(thread), STATUS_SUCCESS);
    ObDereferenceObject(thread);
    ZwClose(handle);
}

static void errors(void **state)
{
    struct victim victim;
    HANDLE weak, event;
    CLIENT_ID id;
    OBJECT_ATTRIBUTES attributes;

    (void)state;
    create_victim(&victim, spin, 0);
    assert_int_equal(NtTerminateThread((HANDLE)0x44444, 0), STATUS_INVALID_HANDLE);
    assert_int_equal(NtTerminateThread(NtCurrentProcess(), 0), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), 0);
    assert_int_equal(NtTerminateThread(event, 0), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(ObCloseHandle(event, UserMode), 0);
    InitializeObjectAttributes(&attributes, NULL, 0, NULL, NULL);
    id.UniqueProcess = NULL;
    id.UniqueThread = PsGetThreadId(victim.thread);
    assert_int_equal(NtOpenThread(&weak, THREAD_ALL_ACCESS & ~(ULONG)THREAD_TERMINATE, &attributes, &id), 0);
    assert_int_equal(NtTerminateThread(weak, 0), STATUS_ACCESS_DENIED);
    assert_int_equal(exit_status_of(&victim), STATUS_PENDING);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    assert_int_equal(ObCloseHandle(weak, UserMode), 0);
    forget_victim(&victim);
}

/* A child has no reaper of its own yet, and none of the parent's threads. */
static void in_a_forked_child(void *argument)
{
    struct victim victim;

    (void)argument;
    create_victim(&victim, spin, 0);
    await(&victim.ready);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), 0);
    expect_end(&victim, EXIT_CODE);
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 1, 2, 3, 4);
}

static void a_forked_child_can_end_threads(void **state)
{
    (void)state;
    expect_bugcheck(MANUALLY_INITIATED_CRASH, in_a_forked_child, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_running_thread_is_ended),
        CASE(a_thread_in_a_host_call_is_ended),
        CASE(an_end_waits_for_the_thread_to_come_out),
        CASE(a_user_wait_in_a_service_ends_and_the_service_returns),
        CASE(a_suspended_thread_is_ended),
        CASE(a_suspended_thread_that_is_ended_takes_nothing),
        CASE(a_thread_that_never_ran_is_ended),
        cmocka_unit_test(its_mutants_are_abandoned),
        CASE(its_apcs_are_run_down_and_it_takes_no_more),
        CASE(a_thread_ends_itself),
        CASE(an_adopted_thread_is_ended),
        CASE(a_stack_is_used_again),
        CASE(a_system_thread_is_not_ended),
        CASE(errors),
        cmocka_unit_test(a_forked_child_can_end_threads),
    };

    PspRegisterThreadExit(note_exit);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
