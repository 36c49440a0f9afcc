/* workqueue.h: work items, run by threads of the system. Part of ex.h, which includes it. */
#ifndef INTERLOCK_WORKQUEUE_H
#define INTERLOCK_WORKQUEUE_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

/*
 * The queues differ in the priority of their threads. A thread of a chosen priority runs what is queued to
 * CustomPriorityWorkQueue + that priority. An item belongs to the system until its routine is called, and from then on
 * to the routine, which may free it or queue it again. At IRQL <= DISPATCH_LEVEL.
 */

typedef enum _WORK_QUEUE_TYPE {
    CriticalWorkQueue,
    DelayedWorkQueue,
    HyperCriticalWorkQueue,
    NormalWorkQueue,
    BackgroundWorkQueue,
    RealTimeWorkQueue,
    SuperCriticalWorkQueue,
    MaximumWorkQueue,
    CustomPriorityWorkQueue = 32
} WORK_QUEUE_TYPE;

typedef VOID WORKER_THREAD_ROUTINE(PVOID Parameter);
typedef WORKER_THREAD_ROUTINE *PWORKER_THREAD_ROUTINE;

typedef struct _WORK_QUEUE_ITEM {
    LIST_ENTRY List;
    PWORKER_THREAD_ROUTINE WorkerRoutine;
    volatile PVOID Parameter;
} WORK_QUEUE_ITEM, *PWORK_QUEUE_ITEM;

C_ASSERT(sizeof(WORK_QUEUE_ITEM) == 32);

FORCEINLINE VOID ExInitializeWorkItem(PWORK_QUEUE_ITEM Item, PWORKER_THREAD_ROUTINE Routine, PVOID Context)
{
    Item->WorkerRoutine = Routine;
    Item->Parameter = Context;
    Item->List.Flink = NULL;
}

NTKERNELAPI VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType);

INTERLOCK_END

#endif
