/* Work items, by the numbers in src/ex/workqueue.c and src/io/device.c. */
#include "../ke/waittest.h"
#include "ex/exp.h"

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/ps.h>

#include <sys/wait.h>
#include <unistd.h>

#define ITEMS 200

static const struct {
    WORK_QUEUE_TYPE type;
    KPRIORITY priority;
} queues[] = {
    {CriticalWorkQueue, 13},  {DelayedWorkQueue, 12},  {HyperCriticalWorkQueue, 15},
    {NormalWorkQueue, 8},     {BackgroundWorkQueue, 7}, {RealTimeWorkQueue, 18},
    {SuperCriticalWorkQueue, 14}, {CustomPriorityWorkQueue + 10, 10}, {CustomPriorityWorkQueue + 31, 31},
};

typedef struct job {
    WORK_QUEUE_ITEM item;
    volatile ULONG runs;
    KPRIORITY priority;
    KIRQL irql;
    BOOLEAN system;
    KEVENT started;
    KEVENT done;
    PKEVENT awaited;
} job;

static void run_job(PVOID parameter)
{
    job *j = parameter;
    j->priority = KeQueryPriorityThread(KeGetCurrentThread());
    j->irql = KeGetCurrentIrql();
    j->system = PsIsSystemThread(PsGetCurrentThread());
    __atomic_add_fetch(&j->runs, 1, __ATOMIC_SEQ_CST);
    KeSetEvent(&j->started, 0, FALSE);
    if (j->awaited != NULL) {
        check(wait_for(j->awaited, NULL) == STATUS_SUCCESS);
    }
    KeSetEvent(&j->done, 0, FALSE);
}

static void prepare(job *j, PKEVENT awaited)
{
    memset(j, 0, sizeof(*j));
    KeInitializeEvent(&j->started, NotificationEvent, FALSE);
    KeInitializeEvent(&j->done, NotificationEvent, FALSE);
    j->awaited = awaited;
    ExInitializeWorkItem(&j->item, run_job, j);
}

/* 1 */
static void test_queues(void **state)
{
    job j;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(queues); i += 1) {
        prepare(&j, NULL);
        for (ULONG round = 1; round <= 3; round += 1) {
            KeResetEvent(&j.done);
            ExQueueWorkItem(&j.item, queues[i].type);
            assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
            assert_int_equal(j.runs, round);
            assert_int_equal(j.irql, PASSIVE_LEVEL);
            assert_int_equal(j.priority, queues[i].priority);
            assert_true(j.system);
        }
    }
}

static void test_every_item_once(void **state)
{
    static job jobs[ITEMS];
    KIRQL old;
    (void)state;
    for (ULONG i = 0; i < ITEMS; i += 1) {
        prepare(&jobs[i], NULL);
        KeRaiseIrql(i % 2 ? DISPATCH_LEVEL : PASSIVE_LEVEL, &old);
        ExQueueWorkItem(&jobs[i].item, (WORK_QUEUE_TYPE)(i % 3));
        KeLowerIrql(old);
    }
    for (ULONG i = 0; i < ITEMS; i += 1) {
        assert_int_equal(wait_for(&jobs[i].done, NULL), STATUS_SUCCESS);
        assert_int_equal(jobs[i].runs, 1);
    }
}

/* 2: a chain of items, each of which waits for the one queued after it. */
static void test_item_waits_for_later_item(void **state)
{
    static job jobs[20];
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(jobs); i += 1) {
        prepare(&jobs[i], i + 1 < ARRAYSIZE(jobs) ? &jobs[i + 1].done : NULL);
    }
    for (ULONG i = 0; i < ARRAYSIZE(jobs); i += 1) {
        ExQueueWorkItem(&jobs[i].item, DelayedWorkQueue);
        if (i + 1 < ARRAYSIZE(jobs)) {
            assert_int_equal(wait_for(&jobs[i].started, NULL), STATUS_SUCCESS);
        }
    }
    assert_int_equal(wait_for(&jobs[0].done, NULL), STATUS_SUCCESS);
}

/* 4: workers that were needed temporarily exit, all but one. */
static void test_workers_leave(void **state)
{
    enum { PRIORITY = 3 };
    static job jobs[5];
    KEVENT gate;
    LONGLONG patience = ExpWorkerPatience;
    (void)state;
    __atomic_store_n(&ExpWorkerPatience, -10 * MILLISECOND, __ATOMIC_RELAXED);
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(jobs); i += 1) {
        prepare(&jobs[i], &gate);
        ExQueueWorkItem(&jobs[i].item, CustomPriorityWorkQueue + PRIORITY);
        assert_int_equal(wait_for(&jobs[i].started, NULL), STATUS_SUCCESS);
    }
    await(ExpQueryWorkers(PRIORITY) == ARRAYSIZE(jobs) + 1);
    KeSetEvent(&gate, 0, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(jobs); i += 1) {
        assert_int_equal(wait_for(&jobs[i].done, NULL), STATUS_SUCCESS);
    }
    await(ExpQueryWorkers(PRIORITY) == 1);
    prepare(&jobs[0], NULL);
    ExQueueWorkItem(&jobs[0].item, CustomPriorityWorkQueue + PRIORITY);
    assert_int_equal(wait_for(&jobs[0].done, NULL), STATUS_SUCCESS);
    __atomic_store_n(&ExpWorkerPatience, patience, __ATOMIC_RELAXED);
}

/* Work items are usually queued by DPCs. */
static VOID queue_from_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    job *j = context;
    (void)dpc;
    (void)argument1;
    (void)argument2;
    ExQueueWorkItem(&j->item, CriticalWorkQueue);
}

static void test_from_dpc(void **state)
{
    job j;
    KDPC dpc;
    (void)state;
    prepare(&j, NULL);
    KeInitializeDpc(&dpc, queue_from_dpc, &j);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
}

/* 3: if no thread can be created, the item runs once one can. */
static void test_no_thread_now(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    job j;
    (void)state;
    prepare(&j, NULL);
    thread->HostInterrupts += 1;
    ExQueueWorkItem(&j.item, CustomPriorityWorkQueue + 5);
    thread->HostInterrupts -= 1;
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
}

/* 5: the routine may free its item. */
static KEVENT freed;

static void free_job(PVOID parameter)
{
    free(parameter);
    KeSetEvent(&freed, 0, FALSE);
}

static void test_routine_frees_item(void **state)
{
    (void)state;
    KeInitializeEvent(&freed, SynchronizationEvent, FALSE);
    for (int i = 0; i < 20; i += 1) {
        PWORK_QUEUE_ITEM item = malloc(sizeof(*item));
        ExInitializeWorkItem(item, free_job, item);
        ExQueueWorkItem(item, DelayedWorkQueue);
        assert_int_equal(wait_for(&freed, NULL), STATUS_SUCCESS);
    }
}

/* 6 */
static void test_fork(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        job j;
        LARGE_INTEGER timeout = relative(20 * SECOND);
        prepare(&j, NULL);
        ExQueueWorkItem(&j.item, DelayedWorkQueue);
        _exit(wait_for(&j.done, &timeout) == STATUS_SUCCESS ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* 7 */
static void raise_level(PVOID parameter)
{
    KIRQL old;
    (void)parameter;
    KeRaiseIrql(APC_LEVEL, &old);
}

static void keep_mutex(PVOID parameter)
{
    wait_for(parameter, NULL);
}

static void run_badly(PWORKER_THREAD_ROUTINE routine)
{
    WORK_QUEUE_ITEM item;
    KMUTEX mutex;
    KEVENT never;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    KeInitializeMutex(&mutex, 0);
    ExInitializeWorkItem(&item, routine, &mutex);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    wait_for(&never, NULL);
}

static void return_at_bad_level(void *argument)
{
    (void)argument;
    run_badly(raise_level);
}

static void return_with_mutex(void *argument)
{
    (void)argument;
    run_badly(keep_mutex);
}

static void queue_twice(void *argument)
{
    WORK_QUEUE_ITEM item = {.WorkerRoutine = raise_level};
    LIST_ENTRY head;
    (void)argument;
    InitializeListHead(&head);
    InsertTailList(&head, &item.List);
    ExQueueWorkItem(&item, DelayedWorkQueue);
}

static void queue_nothing(void *argument)
{
    WORK_QUEUE_ITEM item;
    (void)argument;
    ExInitializeWorkItem(&item, NULL, NULL);
    ExQueueWorkItem(&item, DelayedWorkQueue);
}

static void queue_nowhere(void *argument)
{
    WORK_QUEUE_ITEM item;
    ExInitializeWorkItem(&item, raise_level, NULL);
    ExQueueWorkItem(&item, *(WORK_QUEUE_TYPE *)argument);
}

static void free_queued(void *argument)
{
    PIO_WORKITEM item = IoAllocateWorkItem(NULL);
    LIST_ENTRY head;
    (void)argument;
    InitializeListHead(&head);
    InsertTailList(&head, (PLIST_ENTRY)(PVOID)item);
    IoFreeWorkItem(item);
}

static void test_misuse(void **state)
{
    static WORK_QUEUE_TYPE nowhere[] = {MaximumWorkQueue, (WORK_QUEUE_TYPE)31, (WORK_QUEUE_TYPE)64};
    (void)state;
    expect_bugcheck(WORKER_THREAD_RETURNED_AT_BAD_IRQL, return_at_bad_level, NULL);
    expect_violation(SYSTEM_EXIT_OWNED_MUTEX, (uint64_t)(ULONG_PTR)keep_mutex, return_with_mutex, NULL);
    expect_bugcheck(WORKER_INVALID, queue_twice, NULL);
    expect_bugcheck(WORKER_INVALID, queue_nothing, NULL);
    expect_bugcheck(WORKER_INVALID, free_queued, NULL);
    for (ULONG i = 0; i < ARRAYSIZE(nowhere); i += 1) {
        expect_bugcheck(WORKER_INVALID, queue_nowhere, &nowhere[i]);
    }
}

/* Items of drivers. */

typedef struct io_job {
    PVOID object;
    PIO_WORKITEM item;
    ULONG runs;
    KEVENT done;
} io_job;

static void run_io(PDEVICE_OBJECT device, PVOID context)
{
    io_job *j = context;
    j->object = device;
    j->runs += 1;
    KeSetEvent(&j->done, 0, FALSE);
}

static void run_io_ex(PVOID object, PVOID context, PIO_WORKITEM item)
{
    io_job *j = context;
    j->object = object;
    j->item = item;
    j->runs += 1;
    if (j->runs == 2) {
        IoQueueWorkItem(item, run_io, DelayedWorkQueue, j);
    } else {
        IoFreeWorkItem(item);
        KeSetEvent(&j->done, 0, FALSE);
    }
}

static void test_io_work_items(void **state)
{
    static int device;
    io_job j = {.runs = 0};
    PIO_WORKITEM item = IoAllocateWorkItem((PDEVICE_OBJECT)(PVOID)&device);
    (void)state;
    assert_non_null(item);
    KeInitializeEvent(&j.done, SynchronizationEvent, FALSE);
    IoQueueWorkItem(item, run_io, CriticalWorkQueue, &j);
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
    assert_ptr_equal(j.object, &device);
    IoQueueWorkItemEx(item, run_io_ex, CriticalWorkQueue, &j);
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
    assert_ptr_equal(j.item, item);
    assert_int_equal(j.runs, 3);
    IoQueueWorkItemEx(item, run_io_ex, DelayedWorkQueue, &j);
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
    assert_int_equal(j.runs, 4);
}

static void test_io_own_memory(void **state)
{
    io_job j = {.runs = 0};
    PIO_WORKITEM item = malloc(IoSizeofWorkItem());
    (void)state;
    KeInitializeEvent(&j.done, SynchronizationEvent, FALSE);
    IoInitializeWorkItem(&j, item);
    IoQueueWorkItem(item, run_io, DelayedWorkQueue, &j);
    assert_int_equal(wait_for(&j.done, NULL), STATUS_SUCCESS);
    assert_ptr_equal(j.object, &j);
    IoUninitializeWorkItem(item);
    free(item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse),  WATCHED(test_queues),
        WATCHED(test_every_item_once),  WATCHED(test_item_waits_for_later_item),
        WATCHED(test_from_dpc),         WATCHED(test_no_thread_now),
        WATCHED(test_workers_leave),
        WATCHED(test_routine_frees_item), WATCHED(test_fork),
        WATCHED(test_io_work_items),    WATCHED(test_io_own_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
