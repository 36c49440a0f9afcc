/* Queues: an APC that interrupts a removal inserts into the same queue, and the thread is alerted. No entry stays in
   the queue while a thread waits for it. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "target.h"

static KQUEUE queue;
static LIST_ENTRY entries[2];
static KAPC apc;
static int taken, alerted;

static void setup(void)
{
    KeInitializeQueue(&queue, 2);
}

static VOID insert_both(PKAPC self, PKNORMAL_ROUTINE *normal_routine, PVOID *normal_context, PVOID *argument1,
                        PVOID *argument2)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(normal_routine);
    UNREFERENCED_PARAMETER(normal_context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    LabAssert(KeGetCurrentThread() == target);
    KeInsertQueue(&queue, &entries[0]);
    KeInsertQueue(&queue, &entries[1]);
}

static void remove_one(PLIST_ENTRY *found)
{
    LabAssert(KeRemoveQueueEx(&queue, KernelMode, TRUE, NULL, found, 1) == 1);
    if (*found == &entries[0] || *found == &entries[1]) {
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    }
}

static void interrupted_remover(void)
{
    PLIST_ENTRY found;
    announce();
    remove_one(&found);
    LabAssert(found == &entries[0] || found == &entries[1]);
}

static void remover(void)
{
    PLIST_ENTRY found;
    remove_one(&found);
    LabAssert(found == &entries[0] || found == &entries[1]);
}

static void queue_apc(void)
{
    KeInitializeApc(&apc, find_target(), OriginalApcEnvironment, insert_both, NULL, NULL, KernelMode, NULL);
    LabAssert(KeInsertQueueApc(&apc, NULL, NULL, 0));
}

static void both_are_taken(void)
{
    LabAssert(taken == 2 && queue.Header.SignalState == 0 && queue.CurrentCount == 2);
}
LAB_SCENARIO(queue_apc_inserts, .Setup = setup, .Threads = {interrupted_remover, remover, queue_apc},
             .Finish = both_are_taken, .Flags = LAB_LARGE);

/* The interrupted thread may return without an entry: then the other gets it, and one is left. */
static void alerted_remover(void)
{
    PLIST_ENTRY found;
    announce();
    remove_one(&found);
    alerted = found == (PLIST_ENTRY)(LONG_PTR)STATUS_ALERTED;
    LabAssert(alerted || found == &entries[0] || found == &entries[1]);
}

static void queue_apc_and_alert(void)
{
    queue_apc();
    KeAlertThread(find_target(), KernelMode);
}

static void one_is_left_to_who_was_alerted(void)
{
    LabAssert(taken == 2 - alerted && queue.Header.SignalState == alerted && queue.CurrentCount <= 2);
}
LAB_SCENARIO(queue_apc_inserts_alerted, .Setup = setup, .Threads = {alerted_remover, remover, queue_apc_and_alert},
             .Finish = one_is_left_to_who_was_alerted, .Flags = LAB_LARGE);
