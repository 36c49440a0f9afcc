/* A thread that a queue counts leaves the count while it waits, however the wait ends, and only then. */
#include <interlock/lab.h>

#include <ntifs.h>

static KQUEUE queue;
static LIST_ENTRY entries[2];
static KEVENT event;
static PKTHREAD target;

static void setup(void)
{
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInsertQueue(&queue, &entries[0]);
}

static void timed_worker(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};

    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[0]);
    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    KeWaitForSingleObject(&event, Executive, KernelMode, TRUE, &soon);
    LabAssert(queue.CurrentCount == 1);
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void alerter(void)
{
    PKTHREAD thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE);
    if (thread != NULL)
        KeAlertThread(thread, KernelMode);
}
LAB_SCENARIO(queue_count_in_wait, .Setup = setup, .Threads = {timed_worker, setter, alerter});
