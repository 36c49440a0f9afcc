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
