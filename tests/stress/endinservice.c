/*
 * Threads are terminated in the middle of services that have looked up a handle or wait for callbacks, and workers of a
 * pool anywhere. The service completes first: no reference, waiter or callback is lost, whatever the moment.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <pthread.h>
#include <unistd.h>

#include "ob/obp.h"
#include "rtl/tpp.h"

enum { DESCRIPTOR, EXPORT, EVENT, PORT, TIMER, SEMAPHORE, OBJECTS };

static HANDLE handles[OBJECTS];
static PVOID objects[OBJECTS];

static DWORD WINAPI ask_until_ended(LPVOID argument)
{
    IO_COMPLETION_BASIC_INFORMATION port;
    TIMER_BASIC_INFORMATION timer;
    SEMAPHORE_BASIC_INFORMATION semaphore;
    ULONG ready, count;

    (void)argument;
    for (;;) {
        IoQueryDescriptorObject(handles[DESCRIPTOR], &ready, NULL);
        IoAcceptExport(handles[EXPORT]);
        SetEvent(handles[EVENT]);
        NtQueryIoCompletion(handles[PORT], IoCompletionBasicInformation, &port, sizeof(port), NULL);
        NtQueryTimer(handles[TIMER], TimerBasicInformation, &timer, sizeof(timer), NULL);
        NtQuerySemaphore(handles[SEMAPHORE], SemaphoreBasicInformation, &semaphore, sizeof(semaphore), NULL);
        NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL);
        WaitForMultipleObjects(OBJECTS - 2, &handles[EVENT], FALSE, 0);
        WaitForSingleObject(handles[DESCRIPTOR], 0);
    }
    return 0;
}

static void end_many(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = test_rounds(300); i > 0; i--) {
        HANDLE thread = CreateThread(NULL, 0x40000, ask_until_ended, NULL, 0, NULL);

        require(thread != NULL);
        for (uint32_t pause = random_below(&random, 4); pause > 0; pause--)
            sched_yield();
        spin_for(random_below(&random, 2000));
        require(TerminateThread(thread, 1));
        require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
        require(CloseHandle(thread));
    }
}

static void begin(int ends[2], int *exported)
{
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(IoCreateDescriptorObject(&handles[DESCRIPTOR], IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0],
                                              IO_DESCRIPTOR_READABLE), 0);
    handles[EVENT] = CreateEventA(NULL, FALSE, FALSE, NULL);
    assert_int_equal(IoExportObject(handles[EVENT], &handles[EXPORT], exported), 0);
    handles[PORT] = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    handles[TIMER] = CreateWaitableTimerA(NULL, FALSE, NULL);
    handles[SEMAPHORE] = CreateSemaphoreA(NULL, 0, 1, NULL);
    for (int i = 0; i < OBJECTS; i++)
        assert_int_equal(ObReferenceObjectByHandle(handles[i], 0, NULL, KernelMode, &objects[i], NULL), 0);
}

static void no_reference_is_lost(void **state)
{
    int ends[2], exported;
    LONG_PTR process;

    (void)state;
    begin(ends, &exported);
    process = ObpHeaderOf(PsGetCurrentProcess())->PointerCount;
    run_threads(2, HANG_SECONDS, end_many, NULL);
    assert_int_equal(ObpHeaderOf(PsGetCurrentProcess())->PointerCount, process);
    for (int i = 0; i < OBJECTS; i++)
        assert_true(CloseHandle(handles[i]));
    watchdog_start(HANG_SECONDS); /* the library's own threads may hold references for a moment */
    ObDereferenceObject(objects[EXPORT]); /* which references the event while it exists */
    for (int i = 0; i < OBJECTS; i++) {
        if (i == EXPORT)
            continue;
        await(load(&ObpHeaderOf(objects[i])->PointerCount) == 1);
        ObDereferenceObject(objects[i]);
    }
    watchdog_stop();
    close(ends[0]);
    close(ends[1]);
}

/* A thread that waits for callbacks is terminated before they are over. */

static struct {
    PTP_WORK work;
    PTP_CLEANUP_GROUP group;
    HANDLE open;
    HANDLE queue;
    volatile BOOLEAN began;
} pool;

static VOID CALLBACK wait_for_gate(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    require(WaitForSingleObject(pool.open, INFINITE) == WAIT_OBJECT_0);
}

static DWORD WINAPI wait_for_work(LPVOID argument)
{
    (void)argument;
    WaitForThreadpoolWorkCallbacks(pool.work, FALSE);
    return 0;
}

static DWORD WINAPI wait_for_group(LPVOID argument)
{
    (void)argument;
    CloseThreadpoolCleanupGroupMembers(pool.group, FALSE, NULL);
    return 0;
}

static VOID CALLBACK wait_for_gate_by_timer(PVOID context, BOOLEAN fired)
{
    (void)context;
    (void)fired;
    store(&pool.began, TRUE);
    require(WaitForSingleObject(pool.open, INFINITE) == WAIT_OBJECT_0);
}

static DWORD WINAPI wait_for_queue(LPVOID argument)
{
    (void)argument;
    DeleteTimerQueueEx(pool.queue, INVALID_HANDLE_VALUE);
    return 0;
}

static void end_while_it_waits(LPTHREAD_START_ROUTINE routine)
{
    HANDLE thread = CreateThread(NULL, 0x40000, routine, NULL, 0, NULL);
    PVOID object;

    require(thread != NULL);
    require(ObReferenceObjectByHandle(thread, 0, *PsThreadType, KernelMode, &object, NULL) == 0);
    await(is_in_user_request(object));
    require(TerminateThread(thread, 1));
    require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    ObDereferenceObject(object);
    require(CloseHandle(thread));
}

static int has_objects(PTP_POOL any)
{
    PKTHREAD thread = KiEnterLocked(&any->Lock);
    int empty = IsListEmpty(&any->ObjectListHead);

    KiExitLocked(&any->Lock, thread);
    return !empty;
}

static void wait_without_end(void)
{
    TP_CALLBACK_ENVIRON environment;
    HANDLE timer;

    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, pool.group, NULL);
    pool.work = CreateThreadpoolWork(wait_for_gate, NULL, &environment);
    SubmitThreadpoolWork(pool.work);
    end_while_it_waits(wait_for_work);
    require(IsListEmpty(&pool.work->Object.WaiterListHead));
    end_while_it_waits(wait_for_group); /* which has closed the work by then */
    require(IsListEmpty(&pool.work->Object.WaiterListHead));
    store(&pool.began, FALSE);
    require(CreateTimerQueueTimer(&timer, pool.queue, wait_for_gate_by_timer, NULL, 0, 0, 0));
    await(load(&pool.began));
    end_while_it_waits(wait_for_queue);
}

static void a_waiter_for_callbacks_leaves_no_trace(void **state)
{
    (void)state;
    watchdog_start(HANG_SECONDS);
    for (unsigned long i = test_rounds(20); i > 0; i--) {
        pool.open = CreateEventA(NULL, TRUE, FALSE, NULL);
        pool.group = CreateThreadpoolCleanupGroup();
        pool.queue = CreateTimerQueue();
        wait_without_end();
        require(SetEvent(pool.open));
        CloseThreadpoolCleanupGroupMembers(pool.group, FALSE, NULL);
        CloseThreadpoolCleanupGroup(pool.group);
        await(!has_objects(&TppDefaultPool)); /* the timer is gone too */
        require(CloseHandle(pool.open));
    }
    watchdog_stop();
}

/* Workers of a pool are terminated at random. Each takes at most the one callback with it that it was in: the others
   run, and threads that wait for them return. */

#define CALLBACKS 40

static struct {
    volatile DWORD worker; /* one that has run a callback; 0: the last one was terminated */
    unsigned long over, ended;
    volatile BOOLEAN stop;
} crowd;

static VOID CALLBACK run_for_a_while(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    store(&crowd.worker, GetCurrentThreadId());
    spin_for(300);
    add(&crowd.over, 1);
}

/* FALSE: there was none. */
static int end_worker(void)
{
    DWORD id = __atomic_exchange_n(&crowd.worker, 0, __ATOMIC_SEQ_CST);
    HANDLE thread = id != 0 ? OpenThread(THREAD_ALL_ACCESS, FALSE, id) : NULL;

    if (thread == NULL)
        return FALSE;
    add(&crowd.ended, 1);
    require(TerminateThread(thread, 1));
    require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0); /* even if it is idle */
    require(CloseHandle(thread));
    return TRUE;
}

static void *end_workers(void *argument)
{
    test_random random;

    (void)argument;
    random_seed(&random, 1);
    while (!load(&crowd.stop)) {
        if (!end_worker())
            sched_yield();
        spin_for(random_below(&random, 3000));
    }
    return NULL;
}

static void a_worker_takes_one_callback_with_it(void **state)
{
    TP_POOL_STACK_INFORMATION stack = {.StackReserve = 0x40000};
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL own = CreateThreadpool(NULL);
    pthread_t hunter;
    PTP_WORK work;

    (void)state;
    watchdog_start(HANG_SECONDS);
    assert_true(SetThreadpoolStackInformation(own, &stack));
    SetThreadpoolThreadMaximum(own, 4);
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPool(&environment, own);
    work = CreateThreadpoolWork(run_for_a_while, NULL, &environment);
    assert_int_equal(pthread_create(&hunter, NULL, end_workers, NULL), 0);
    for (unsigned long i = 1; i <= test_rounds(60); i++) {
        for (int n = 0; n < CALLBACKS; n++)
            SubmitThreadpoolWork(work);
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        require(load(&crowd.over) <= i * CALLBACKS);
        require(load(&crowd.over) + load(&crowd.ended) >= i * CALLBACKS);
    }
    store(&crowd.stop, TRUE);
    assert_int_equal(pthread_join(hunter, NULL), 0);
    CloseThreadpoolWork(work);
    CloseThreadpool(own);
    watchdog_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reference_is_lost),
        cmocka_unit_test(a_waiter_for_callbacks_leaves_no_trace),
        cmocka_unit_test(a_worker_takes_one_callback_with_it),
    };

    return cmocka_run_group_tests_name("stress/endinservice", tests, NULL, NULL);
}
