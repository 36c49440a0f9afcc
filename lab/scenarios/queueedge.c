/* The limit of a queue: raised while threads wait, and exceeded by a thread that had blocked. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/wait.h"

static KQUEUE queue;
static LIST_ENTRY entries[3];
static KEVENT event;
static int running, done;

static void setup(void)
{
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    for (int i = 0; i < 2; i++)
        KeInsertQueue(&queue, &entries[i]);
}

/* Both workers meet, without blocking: the second one runs only if the new limit wakes it. */
static void meet(void)
{
    KeRemoveQueue(&queue, KernelMode, NULL);
    __atomic_fetch_add(&running, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&running, __ATOMIC_RELAXED) < 2)
        ;
}

static void raise_limit(void)
{
    KiSetQueueLimit(&queue, 2);
}
LAB_SCENARIO(queue_limit_raised, .Setup = setup, .Threads = {meet, meet, raise_limit});

/*
 * The first worker blocks, so the second one runs, and ends the wait: now two threads run, one more than the limit. The
 * first one then removes the next entry, which is queued, and does not get it before the second has ended.
 */
static void block_and_come_back(void)
{
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[0]);
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[2]);
    LabAssert(__atomic_load_n(&done, __ATOMIC_RELAXED));
}

static void run_meanwhile(void)
{
    while (!__atomic_load_n(&running, __ATOMIC_ACQUIRE))
        ;
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[1]);
    KeInsertQueue(&queue, &entries[2]);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    LabExitThread();
}
LAB_SCENARIO(queue_limit_exceeded, .Setup = setup, .Threads = {block_and_come_back, run_meanwhile});

/* The end of a queue satisfies a WaitAll with another object too, whatever locks that one meanwhile. In address order: the queue is
   last. */
static struct {
    KEVENT event;
    KQUEUE queue;
} ended;
static KEVENT never;

static void setup_for_end(void)
{
    KeInitializeEvent(&ended.event, NotificationEvent, TRUE);
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    KeInitializeQueue(&ended.queue, 1);
}

static void wait_for_end(void)
{
    PVOID objects[] = {&ended.event, &ended.queue};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
}

static void run_down(void)
{
    while (!(KiReadHeader(&ended.queue.Header) & KI_WAITERS))
        ;
    LabAssert(KeRundownQueue(&ended.queue) == NULL);
}

static void lock_event(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    PVOID objects[] = {&ended.event, &never};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &now, NULL) == STATUS_TIMEOUT);
}
LAB_SCENARIO(queue_end_disturbed, .Setup = setup_for_end, .Threads = {wait_for_end, run_down, lock_event});
