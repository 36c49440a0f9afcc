/* Work items: each runs once, even if another one blocks until it has, and if threads cannot be created. */
#include <interlock/lab.h>

#include <ntifs.h>

static WORK_QUEUE_ITEM items[2];
static KEVENT done;
static int ran, data;

static VOID count_run(PVOID parameter)
{
    LabAssert(KeGetCurrentIrql() == PASSIVE_LEVEL);
    LabAssert(data == 1);
    if (__atomic_add_fetch(&ran, 1, __ATOMIC_ACQ_REL) == (int)(ULONG_PTR)parameter)
        KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
}

static void setup(void)
{
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    ExInitializeWorkItem(&items[0], count_run, ULongToPtr(1));
    ExInitializeWorkItem(&items[1], count_run, ULongToPtr(2));
}

static void await(void)
{
    LabAssert(KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void queue_one(void)
{
    data = 1;
    ExQueueWorkItem(&items[0], DelayedWorkQueue);
    await();
    LabAssert(ran == 1);
}
LAB_SCENARIO(work_item, .Setup = setup, .Threads = {queue_one}, .Flags = LAB_LARGE);

/* Even without the clock's thread, a thread that times out expires what is due. */
static void queue_one_patiently(void)
{
    LARGE_INTEGER soon = {.QuadPart = -1000000};
    data = 1;
    ExQueueWorkItem(&items[0], DelayedWorkQueue);
    while (KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, &soon) == STATUS_TIMEOUT)
        ;
    LabAssert(ran == 1);
}
LAB_SCENARIO(work_item_threadless, .Setup = setup, .Threads = {queue_one_patiently}, .AllocationFailures = 2,
             .Flags = LAB_LARGE);
/* A thread that is refused while the clock retries earlier refusals must not be forgotten. */
LAB_SCENARIO(work_item_threadless_c11, .Setup = setup, .Threads = {queue_one_patiently}, .AllocationFailures = 2,
             .Flags = LAB_LARGE, .Model = "c11");

/* The first waits for the second, which is queued later: there is always one more thread than those that run. */
static KEVENT second_ran;

static VOID wait_for_second(PVOID parameter)
{
    UNREFERENCED_PARAMETER(parameter);
    KeWaitForSingleObject(&second_ran, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
}

static VOID run_second(PVOID parameter)
{
    UNREFERENCED_PARAMETER(parameter);
    KeSetEvent(&second_ran, IO_NO_INCREMENT, FALSE);
}

static void setup_dependent(void)
{
    setup();
    KeInitializeEvent(&second_ran, NotificationEvent, FALSE);
    ExInitializeWorkItem(&items[0], wait_for_second, NULL);
    ExInitializeWorkItem(&items[1], run_second, NULL);
}

static void queue_both(void)
{
    ExQueueWorkItem(&items[0], CriticalWorkQueue);
    ExQueueWorkItem(&items[1], CriticalWorkQueue);
    await();
}
LAB_SCENARIO(work_item_blocks, .Setup = setup_dependent, .Threads = {queue_both}, .Flags = LAB_LARGE);

/* The item belongs to the routine from its first line on: it frees it, or queues it again. */
static PWORK_QUEUE_ITEM heap_item;

static VOID free_item(PVOID parameter)
{
    LabFree(parameter);
    KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
}

static VOID queue_again(PVOID parameter)
{
    PWORK_QUEUE_ITEM item = parameter;
    ExInitializeWorkItem(item, free_item, item);
    ExQueueWorkItem(item, DelayedWorkQueue);
}

static void setup_heap(void)
{
    setup();
    heap_item = LabAllocate(sizeof(*heap_item));
    ExInitializeWorkItem(heap_item, queue_again, heap_item);
}

static void queue_heap_item(void)
{
    ExQueueWorkItem(heap_item, DelayedWorkQueue);
    await();
}
LAB_SCENARIO(work_item_again, .Setup = setup_heap, .Threads = {queue_heap_item}, .Flags = LAB_LARGE);
