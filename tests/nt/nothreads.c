/*
 * The host refuses new threads. An operation that needs one of the library's own threads and can fail reports that and
 * changes nothing; one that cannot fail is done by existing threads, and nothing is lost. Each case is a process of its
 * own.
 */
#include "child.h"
#include "objecttest.h"
#include "withsetting.h"

#include <pthread.h>

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/rtl.h>

#include "ke/irql.h"
#include "ke/timer.h"
#include "nt/ntp.h"
#include "ps/psp.h"
#include "rtl/tpp.h"

#define MILLISECONDS(n) ((LARGE_INTEGER){.QuadPart = -10000LL * (n)})

static volatile ULONG refused = 1;
static volatile ULONG refusals;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    if (__atomic_load_n(&refused, __ATOMIC_RELAXED) != 0) {
        __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
        return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, routine, argument);
}

static void allow_threads(void)
{
    __atomic_store_n(&refused, 0, __ATOMIC_RELAXED);
}

static void refuse_threads(void)
{
    __atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
}

#define CHILD(name)                      \
    static void name##_child(void);      \
    static void name(void **state)       \
    {                                    \
        (void)state;                     \
        run_case_in_child(name##_child); \
    }                                    \
    static void name##_child(void)

/* Timers by handle. */

static void never(PVOID context, ULONG low, LONG high)
{
    (void)context;
    (void)low;
    (void)high;
    fail();
}

CHILD(a_timer_by_handle_is_not_set)
{
    LARGE_INTEGER soon = MILLISECONDS(1), now = {.QuadPart = 0};
    BOOLEAN previous = 77;
    HANDLE timer;
    ULONG timers;

    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, NotificationTimer), STATUS_SUCCESS);
    timers = objects_of("Timer");
    assert_int_equal(NtSetTimer(timer, &soon, (PTIMER_APC_ROUTINE)never, NULL, FALSE, 0, &previous),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(previous, 77);
    assert_true(NtpThread(KeGetCurrentThread())->ActiveTimerListHead.Flink == NULL ||
                IsListEmpty(&NtpThread(KeGetCurrentThread())->ActiveTimerListHead));
    usleep(20000);
    assert_int_equal(NtWaitForSingleObject(timer, TRUE, &now), STATUS_TIMEOUT);
    assert_int_equal(NtSetTimer(timer, &now, NULL, NULL, FALSE, 0, NULL), STATUS_INSUFFICIENT_RESOURCES);
    allow_threads();
    assert_int_equal(NtSetTimer(timer, &soon, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    refuse_threads();
    assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(NtSetTimer(timer, &soon, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(timer, FALSE, NULL), STATUS_SUCCESS);
    close_handle(timer);
    assert_int_equal(objects_of("Timer"), timers - 1);
}

/* Timers that cannot fail. */

CHILD(a_waiter_is_the_clock)
{
    KTIMER timer;

    KeInitializeTimerEx(&timer, SynchronizationTimer);
    for (int i = 0; i < 3; i++) {
        KeSetTimer(&timer, MILLISECONDS(30), NULL);
        assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    }
    KeSetTimerEx(&timer, MILLISECONDS(5), 5, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(KeWaitForSingleObject(&timer, Executive, UserMode, FALSE, NULL), STATUS_SUCCESS);
    assert_true(KeCancelTimer(&timer));
    assert_true(refusals > 3);
    /* The first available thread becomes the clock again. */
    allow_threads();
    KeSetTimer(&timer, MILLISECONDS(30), NULL);
    assert_int_equal(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(KiClockMissing, 0);
}

static KEVENT event;
static KQUEUE queue;
static LIST_ENTRY entry;
static volatile LONG64 address;

static void set_all(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)first;
    (void)second;
    KeSetEvent(&event, 0, FALSE);
    KeInsertQueue(&queue, &entry);
    __atomic_store_n(&address, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll((PVOID)&address);
}

static void wait_for_dpc(void (*wait)(void))
{
    KTIMER timer;
    KDPC dpc;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeQueue(&queue, 0);
    address = 0;
    KeInitializeTimer(&timer);
    KeInitializeDpc(&dpc, set_all, NULL);
    KeSetTimer(&timer, MILLISECONDS(10), &dpc);
    wait();
    KeCancelTimer(&timer);
}

static void wait_for_event(void)
{
    assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
}

static void wait_for_several(void)
{
    PVOID objects[] = {&event, KeGetCurrentThread()};

    assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL), 0);
}

static void wait_for_all(void)
{
    KEVENT other;
    PVOID objects[] = {&event, &other};

    KeInitializeEvent(&other, NotificationEvent, TRUE);
    assert_int_equal(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL), 0);
}

static void wait_with_deadline(void)
{
    LARGE_INTEGER far = MILLISECONDS(3600000), absolute;

    KeQuerySystemTime(&absolute);
    absolute.QuadPart += 36000000000;
    assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &far), STATUS_SUCCESS);
    KeClearEvent(&event);
    wait_for_dpc(wait_for_event);
    KeClearEvent(&event);
    assert_int_equal(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &MILLISECONDS(40)), STATUS_TIMEOUT);
}

static void wait_in_queue(void)
{
    assert_ptr_equal(KeRemoveQueue(&queue, KernelMode, NULL), &entry);
}

static void wait_for_address(void)
{
    LONG64 none = 0;

    while (__atomic_load_n(&address, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&address, &none, sizeof(none), NULL);
}

static void sleep_meanwhile(void)
{
    LARGE_INTEGER a_while = MILLISECONDS(100);

    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &a_while), STATUS_SUCCESS);
    assert_int_equal(KeReadStateEvent(&event), 1);
}

CHILD(every_way_to_wait_is_the_clock)
{
    wait_for_dpc(wait_for_event);
    wait_for_dpc(wait_for_several);
    wait_for_dpc(wait_for_all);
    wait_for_dpc(wait_with_deadline);
    wait_for_dpc(wait_in_queue);
    wait_for_dpc(wait_for_address);
    wait_for_dpc(sleep_meanwhile);
}

/* A thread that slept before the timer was set has to be woken. */
struct early_sleeper {
    PKTHREAD volatile thread;
    volatile ULONG done;
};

static void sleep_until_event(void *argument, unsigned index)
{
    struct early_sleeper *sleeper = argument;

    (void)index;
    __atomic_store_n(&sleeper->thread, KiCurrentThread(), __ATOMIC_RELEASE);
    wait_for_event();
    __atomic_store_n(&sleeper->done, 1, __ATOMIC_RELEASE);
}

static bool waits(PKTHREAD thread)
{
    return thread != NULL && __atomic_load_n(&thread->State, __ATOMIC_RELAXED) == Waiting;
}

CHILD(a_thread_that_slept_already_is_the_clock)
{
    struct early_sleeper sleeper = {0};
    test_threads *threads;
    KTIMER timer;
    KDPC dpc;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeQueue(&queue, 0);
    KeInitializeTimer(&timer);
    KeInitializeDpc(&dpc, set_all, NULL);
    allow_threads();
    threads = start_threads(1, sleep_until_event, &sleeper);
    while (!waits(__atomic_load_n(&sleeper.thread, __ATOMIC_ACQUIRE)) || !all_others_sleep())
        HalDispatch.Yield();
    refuse_threads();
    KeSetTimer(&timer, MILLISECONDS(10), &dpc);
    while (__atomic_load_n(&sleeper.done, __ATOMIC_ACQUIRE) == 0)
        usleep(1000); /* the host's sleep, which expires nothing */
    allow_threads();
    join_threads(threads, 50);
}

/* Pools. */

static volatile ULONG ran;

static void run_simple(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    (void)context;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static void run_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static void run_timer(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)context;
    (void)timer;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static void run_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)context;
    (void)wait;
    (void)result;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static void await_runs(ULONG count)
{
    while (__atomic_load_n(&ran, __ATOMIC_ACQUIRE) != count)
        usleep(1000);
}

CHILD(a_pool_without_threads_takes_nothing)
{
    PTP_WORK work = NULL;
    PTP_TIMER timer = NULL;
    PTP_WAIT wait = NULL;

    assert_int_equal(TpSimpleTryPost(run_simple, NULL, NULL), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(TpAllocWork(&work, run_work, NULL, NULL), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(TpAllocTimer(&timer, run_timer, NULL, NULL), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(TpAllocWait(&wait, run_wait, NULL, NULL), STATUS_INSUFFICIENT_RESOURCES);
    assert_true(work == NULL && timer == NULL && wait == NULL);
    assert_true(IsListEmpty(&TppDefaultPool.ObjectListHead));
    assert_int_equal(TppDefaultPool.Threads & 0xffff, 0);
    usleep(20000);
    assert_int_equal(ran, 0);

    allow_threads();
    assert_int_equal(TpSimpleTryPost(run_simple, NULL, NULL), STATUS_SUCCESS);
    await_runs(1);
}

/* One thread is enough for everything that is submitted from then on. */
CHILD(a_pool_with_one_thread_serves_all)
{
    LARGE_INTEGER soon = MILLISECONDS(1);
    PTP_WORK work;
    PTP_TIMER timer;

    allow_threads();
    assert_int_equal(TpAllocWork(&work, run_work, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(TpAllocTimer(&timer, run_timer, NULL, NULL), STATUS_SUCCESS);
    refuse_threads();
    for (int i = 0; i < 10; i++)
        TpPostWork(work);
    TpSetTimer(timer, &soon, 0, 0);
    assert_int_equal(TpSimpleTryPost(run_simple, NULL, NULL), STATUS_SUCCESS);
    await_runs(12);
    TpReleaseWork(work);
    TpReleaseTimer(timer);
}

static void on_timer(PVOID context, BOOLEAN fired)
{
    (void)context;
    (void)fired;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

CHILD(the_older_interface_fails_too)
{
    HANDLE timer_queue, timer = NULL, wait = NULL, signaled;

    assert_int_equal(NtCreateEvent(&signaled, EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE), STATUS_SUCCESS);
    assert_int_equal(RtlCreateTimerQueue(&timer_queue), STATUS_SUCCESS);
    assert_int_equal(RtlCreateTimer(timer_queue, &timer, on_timer, NULL, 1, 0, 0), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(RtlRegisterWait(&wait, signaled, on_timer, NULL, MAXULONG, WT_EXECUTEONLYONCE),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(RtlQueueWorkItem((PVOID)on_timer, NULL, 0), STATUS_INSUFFICIENT_RESOURCES);
    assert_true(timer == NULL && wait == NULL);
    allow_threads();
    assert_int_equal(RtlCreateTimer(timer_queue, &timer, on_timer, NULL, 1, 0, 0), STATUS_SUCCESS);
    assert_int_equal(RtlRegisterWait(&wait, signaled, on_timer, NULL, MAXULONG, WT_EXECUTEONLYONCE), STATUS_SUCCESS);
    await_runs(2);
    assert_int_equal(RtlDeregisterWaitEx(wait, (HANDLE)(LONG_PTR)-1), STATUS_SUCCESS);
    assert_int_equal(RtlDeleteTimerQueueEx(timer_queue, (HANDLE)(LONG_PTR)-1), STATUS_SUCCESS);
    close_handle(signaled);
}

/* Work items of the executive cannot fail: they wait for the first available thread. */
static void run_item(PVOID parameter)
{
    KeSetEvent(parameter, 0, FALSE);
}

static void allow_from_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)first;
    (void)second;
    allow_threads();
}

CHILD(work_items_wait_for_a_thread)
{
    WORK_QUEUE_ITEM item;
    KTIMER timer;
    KDPC dpc;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeTimer(&timer);
    KeInitializeDpc(&dpc, allow_from_dpc, NULL);
    ExInitializeWorkItem(&item, run_item, &event);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    KeSetTimer(&timer, MILLISECONDS(50), &dpc);
    wait_for_event();
}

/* Threads, and the reaper. */

static NTSTATUS wait_for_ever(PVOID context)
{
    KeWaitForSingleObject(context, Executive, UserMode, FALSE, NULL);
    return 5;
}

CHILD(a_thread_is_not_made_and_not_ended)
{
    HANDLE thread = NULL;
    ULONG threads = objects_of("Thread");
    THREAD_BASIC_INFORMATION basic;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), wait_for_ever, &event, 0, 0,
                                      0, 0, NULL),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(thread);
    assert_int_equal(objects_of("Thread"), threads);
    allow_threads();
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), wait_for_ever, &event, 0, 0,
                                      0, 0, NULL),
                     STATUS_SUCCESS);
    refuse_threads();
    assert_int_equal(NtTerminateThread(thread, 7), STATUS_INSUFFICIENT_RESOURCES);
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    assert_int_equal(basic.ExitStatus, 5);
    close_handle(thread);
    KeClearEvent(&event);
    allow_threads();
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), wait_for_ever, &event, 0, 0,
                                      0, 0, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(NtTerminateThread(thread, 7), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_SUCCESS);
    close_handle(thread);
}

static ULONG_PTR count_call(ULONG_PTR context)
{
    __atomic_fetch_add((volatile ULONG *)context, 1, __ATOMIC_RELAXED);
    return 0;
}

CHILD(processors_need_no_threads)
{
    volatile ULONG calls = 0;

    KeIpiGenericCall(count_call, (ULONG_PTR)&calls);
    assert_int_equal(calls, KeNumberProcessors);
}

/* A kept request is retried by the clock, whatever the program's threads do meanwhile. */
CHILD(the_clock_retries)
{
    WORK_QUEUE_ITEM item;
    KTIMER timer;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeTimer(&timer);
    ExInitializeWorkItem(&item, run_item, &event);
    allow_threads();
    KeSetTimer(&timer, MILLISECONDS(1), NULL);
    refuse_threads();
    ExQueueWorkItem(&item, DelayedWorkQueue);
    usleep(50000);
    assert_int_equal(KeReadStateEvent(&event), 0);
    assert_true(__atomic_load_n(&refusals, __ATOMIC_RELAXED) >= 2);
    allow_threads();
    while (!KeReadStateEvent(&event))
        usleep(1000); /* the host's sleep */
}

/* DPCs of a processor without an idle thread run on the thread that queued them, threaded ones too. */
static void queue_dpc(PKDPC dpc, KIRQL level)
{
    KIRQL old;

    KeClearEvent(&event);
    KeRaiseIrql(level, &old);
    assert_true(KeInsertQueueDpc(dpc, NULL, NULL));
    KeLowerIrql(old);
    assert_int_equal(KeReadStateEvent(&event), 1);
}

static void set_event_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)first;
    (void)second;
    KeSetEvent(context, 0, FALSE);
}

CHILD(dpcs_need_no_threads)
{
    PKPRCB last = KiProcessorBlock[KeNumberProcessors - 1];
    KDPC dpc, threaded;
    KTIMER timer;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeTimer(&timer);
    KeInitializeDpc(&dpc, set_event_dpc, &event);
    KeInitializeThreadedDpc(&threaded, set_event_dpc, &event);
    KeSetTargetProcessorDpc(&dpc, (CCHAR)last->Number);
    KeSetTargetProcessorDpc(&threaded, (CCHAR)last->Number);
    for (int i = 0; i < 3; i++) {
        queue_dpc(&dpc, PASSIVE_LEVEL);
        queue_dpc(&dpc, DISPATCH_LEVEL);
        queue_dpc(&threaded, APC_LEVEL);
        KeClearEvent(&event);
        KeSetTimer(&timer, (LARGE_INTEGER){.QuadPart = 1}, &dpc); /* the time has passed */
        wait_for_event();
    }
    KeFlushQueuedDpcs();
    assert_false(KiHasOwnThread(&last->Idle.Own) || KiHasOwnThread(&last->Dpc.Own));
    allow_threads();
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeInsertQueueDpc(&threaded, NULL, NULL);
    KeFlushQueuedDpcs();
    assert_true(KiHasOwnThread(&last->Dpc.Own)); /* the idle thread only if this thread does not own the processor itself */
}

CHILD(a_descriptor_is_not_watched)
{
    HANDLE handle = NULL;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(handle);
    allow_threads();
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE),
                     STATUS_SUCCESS);
    assert_int_equal(write(ends[1], "", 1), 1);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    close_handle(handle);
}

/* A timer that was set before a fork expires in the child, too. */
CHILD(a_forked_child_without_a_clock)
{
    KTIMER timer;
    pid_t child;
    int status;

    KeInitializeTimer(&timer);
    allow_threads();
    KeSetTimer(&timer, MILLISECONDS(50), NULL);
    refuse_threads();
    child = fork();
    assert_true(child >= 0);
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL);
    if (child == 0)
        _exit(0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_by_handle_is_not_set),
        cmocka_unit_test(a_waiter_is_the_clock),
        cmocka_unit_test(every_way_to_wait_is_the_clock),
        cmocka_unit_test(a_thread_that_slept_already_is_the_clock),
        cmocka_unit_test(a_pool_without_threads_takes_nothing),
        cmocka_unit_test(a_pool_with_one_thread_serves_all),
        cmocka_unit_test(the_older_interface_fails_too),
        cmocka_unit_test(work_items_wait_for_a_thread),
        cmocka_unit_test(a_thread_is_not_made_and_not_ended),
        cmocka_unit_test(processors_need_no_threads),
        cmocka_unit_test(the_clock_retries),
        cmocka_unit_test(dpcs_need_no_threads),
        cmocka_unit_test(a_descriptor_is_not_watched),
        cmocka_unit_test(a_forked_child_without_a_clock),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
