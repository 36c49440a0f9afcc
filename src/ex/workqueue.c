/*
 * workqueue.c: work items and the threads that run them.
 *
 * There is a KQUEUE for every priority; it keeps as many workers running as there are processors. The threads of a
 * queue are counted in one word:
 *
 *      31            16 15             0
 *     +----------------+----------------+
 *     |      Busy      |    Workers     |    Busy: those that run an item
 *     +----------------+----------------+
 *
 * 1. Every item runs once, on a thread of its queue's priority, at PASSIVE_LEVEL.
 * 2. While an item is queued or runs, a worker is idle or starting, unless the limit of workers is reached. So an item
 *    that blocks until another one of its queue has run does not stop that one: the KQUEUE hands it to the idle worker.
 *    The thread that queues the first item requests the first worker; a worker that leaves none idle when it begins an
 *    item requests the next. Waiting until an item finds no worker was rejected: an item queued while the maximum runs
 *    needs an idle worker when one of them blocks, and at that moment no thread can request it.
 * 3. Queueing an item cannot fail. A worker that cannot be created now counts as starting, and its request is kept
 *    (ke/ownthread.h).
 * 4. A worker that was idle for ExpWorkerPatience exits if another idle worker remains.
 * 5. The item is not touched after its routine has been called.
 * 6. In a forked child the workers do not exist; the first item that is queued there creates new ones.
 * 7. Queueing an item that is in a queue, or that has no routine, or for a queue that does not exist, and returning
 *    from a routine above PASSIVE_LEVEL or as the owner of a mutex are bugchecks.
 */
#include "exp.h"

#include "../ke/verifier.h"
#include "../ke/dispatch.h"
#include "../ke/ownthread.h"

#define EXP_WORKER_PRIORITIES 32
#define EXP_WORKER_LIMIT 256

#define EXP_BUSY_ONE ((ULONG)1 << 16)
#define EXP_WORKERS(Word) ((Word) & 0xffff)
#define EXP_BUSY(Word) ((Word) >> 16)

/* The first parameter of WORKER_INVALID. */
#define EXP_ITEM_QUEUED 1
#define EXP_ITEM_INVALID 2

typedef struct _EXP_WORK_QUEUE {
    KQUEUE Queue DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG Threads DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG ProcessId;                   /* whose threads are counted; 0: never used */
    KI_OWN_THREAD Worker;                       /* requests one more */
} EXP_WORK_QUEUE, *PEXP_WORK_QUEUE;

static EXP_WORK_QUEUE ExpWorkQueues[EXP_WORKER_PRIORITIES];
LONGLONG ExpWorkerPatience = -60 * 10000000LL;

static KI_LOCK ExpWorkQueueLock;                /* for the first use of a queue in a process */

static const UCHAR ExpPriorityOfType[MaximumWorkQueue] = {
    [CriticalWorkQueue] = 13, [DelayedWorkQueue] = 12,  [HyperCriticalWorkQueue] = 15, [NormalWorkQueue] = 8,
    [BackgroundWorkQueue] = 7, [RealTimeWorkQueue] = 18, [SuperCriticalWorkQueue] = 14,
};

/* Threads. */

/* relaxed, here and for all of the word: it counts threads and guards nothing */
static BOOLEAN ExpChangeThreads(PEXP_WORK_QUEUE WorkQueue, ULONG *Word, ULONG New)
{
    return __atomic_compare_exchange_n(&WorkQueue->Threads, Word, New, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Requirement 2. */
static VOID ExpEnsureIdleWorker(PEXP_WORK_QUEUE WorkQueue)
{
    ULONG Word = __atomic_load_n(&WorkQueue->Threads, __ATOMIC_RELAXED);
    while (EXP_WORKERS(Word) == EXP_BUSY(Word) && EXP_WORKERS(Word) < EXP_WORKER_LIMIT) {
        if (ExpChangeThreads(WorkQueue, &Word, Word + 1)) {
            KiRequestOwnThread(KiCurrentThread(), &WorkQueue->Worker);
            return;
        }
    }
}

ULONG ExpQueryWorkers(ULONG Priority)
{
    return EXP_WORKERS(__atomic_load_n(&ExpWorkQueues[Priority].Threads, __ATOMIC_RELAXED));
}

/* Requirement 4. */
static BOOLEAN ExpMayLeave(PEXP_WORK_QUEUE WorkQueue)
{
    ULONG Word = __atomic_load_n(&WorkQueue->Threads, __ATOMIC_RELAXED);
    while (EXP_WORKERS(Word) - EXP_BUSY(Word) > 1) {
        if (ExpChangeThreads(WorkQueue, &Word, Word - 1)) {
            return TRUE;
        }
    }
    return FALSE;
}

static VOID ExpRunItem(PWORK_QUEUE_ITEM Item)
{
    PWORKER_THREAD_ROUTINE Routine = Item->WorkerRoutine;
    PVOID Parameter = Item->Parameter;
    PKTHREAD Thread = KiCurrentThread();
    KI_CALLBACK Callback;
    KiBeginCallback(Thread, &Callback);
    Routine(Parameter);
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        KeBugCheckEx(WORKER_THREAD_RETURNED_AT_BAD_IRQL, (ULONG_PTR)Routine, KeGetCurrentIrql(), (ULONG_PTR)Parameter,
                     (ULONG_PTR)Item);
    }
    if (!IsListEmpty(&KiCurrentThread()->MutantListHead)) {
        KeBugCheckEx(SYSTEM_EXIT_OWNED_MUTEX, (ULONG_PTR)Routine, (ULONG_PTR)Parameter, (ULONG_PTR)Item, 0);
    }
    KiEndCallback(Thread, &Callback, KiCallbackWorker, (PVOID)Routine);
}

static VOID ExpWorkerThread(PVOID Context)
{
    PEXP_WORK_QUEUE WorkQueue = Context;
    KPRIORITY Priority = (KPRIORITY)(WorkQueue - ExpWorkQueues);
    PKTHREAD Thread = KiCurrentThread();
    __atomic_store_n(&Thread->Foreign, FALSE, __ATOMIC_RELAXED);
    for (;;) {
        KeSetPriorityThread(Thread, Priority != 0 ? Priority : 1);
        /* relaxed: a setting */
        LARGE_INTEGER Patience = {.QuadPart = __atomic_load_n(&ExpWorkerPatience, __ATOMIC_RELAXED)};
        PLIST_ENTRY Entry = KeRemoveQueue(&WorkQueue->Queue, KernelMode, &Patience);
        if ((LONG_PTR)Entry == STATUS_TIMEOUT) {
            if (ExpMayLeave(WorkQueue)) {
                return;
            }
            continue;
        }
        __atomic_fetch_add(&WorkQueue->Threads, EXP_BUSY_ONE, __ATOMIC_RELAXED);
        ExpEnsureIdleWorker(WorkQueue);
        ExpRunItem(CONTAINING_RECORD(Entry, WORK_QUEUE_ITEM, List));
        __atomic_fetch_sub(&WorkQueue->Threads, EXP_BUSY_ONE, __ATOMIC_RELAXED);
    }
}

static const KI_OWN_KIND ExpWorkerKind = {.Name = "interlock-work", .Routine = ExpWorkerThread, .Many = TRUE};

/* Queues. */

static PEXP_WORK_QUEUE ExpWorkQueueOf(ULONG Priority)
{
    PEXP_WORK_QUEUE WorkQueue = &ExpWorkQueues[Priority];
    /* acquire: pairs with the release below */
    if (__atomic_load_n(&WorkQueue->ProcessId, __ATOMIC_ACQUIRE) != KiInitialProcess.ProcessId) {
        PKTHREAD Thread = KiEnterLocked(&ExpWorkQueueLock);
        if (WorkQueue->ProcessId == 0) {
            KeInitializeQueue(&WorkQueue->Queue, 0);
            WorkQueue->Worker.Kind = &ExpWorkerKind;
            WorkQueue->Worker.Context = WorkQueue;
        }
        if (WorkQueue->ProcessId != KiInitialProcess.ProcessId) {
            __atomic_store_n(&WorkQueue->Threads, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&WorkQueue->ProcessId, KiInitialProcess.ProcessId, __ATOMIC_RELEASE);
        }
        KiExitLocked(&ExpWorkQueueLock, Thread);
    }
    return WorkQueue;
}

static PWORK_QUEUE_ITEM ExpFindItemInQueue(PEXP_WORK_QUEUE WorkQueue, PVOID Base, PVOID End)
{
    PKTHREAD Thread = KiCurrentThread();
    PWORK_QUEUE_ITEM Found = NULL;
    /* acquire: pairs with the release in ExpWorkQueueOf */
    if (__atomic_load_n(&WorkQueue->ProcessId, __ATOMIC_ACQUIRE) == 0) {
        return NULL;
    }
    KiEnterDispatcher(Thread);
    ULONG64 Word = KiLockObject(&WorkQueue->Queue.Header);
    for (PLIST_ENTRY Entry = WorkQueue->Queue.EntryListHead.Flink;
         Entry != &WorkQueue->Queue.EntryListHead && Found == NULL; Entry = Entry->Flink) {
        PWORK_QUEUE_ITEM Item = CONTAINING_RECORD(Entry, WORK_QUEUE_ITEM, List);
        Found = KiIsInMemory(Item, Base, End) ? Item : Found;
    }
    KiUnlockObject(&WorkQueue->Queue.Header, Word);
    KiExitDispatcher(Thread);
    return Found;
}

static PVOID ExpFindFreedItem(PVOID Base, PVOID End)
{
    PWORK_QUEUE_ITEM Found = NULL;
    for (ULONG Priority = 0; Priority < EXP_WORKER_PRIORITIES && Found == NULL; Priority++) {
        Found = ExpFindItemInQueue(&ExpWorkQueues[Priority], Base, End);
    }
    return Found;
}

static VOID ExpWatchFreedItems(VOID)
{
    KiFindFreed[KiFreedWorkItems] = ExpFindFreedItem;
}
KI_INITIALIZER(KiInitializeKernel, ExpWatchFreedItems);

VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType)
{
    ULONG Type = (ULONG)QueueType;
    ULONG Priority = Type < MaximumWorkQueue            ? ExpPriorityOfType[Type]
                     : Type >= CustomPriorityWorkQueue ? Type - CustomPriorityWorkQueue
                                                       : EXP_WORKER_PRIORITIES;
    if (Priority >= EXP_WORKER_PRIORITIES || WorkItem->WorkerRoutine == NULL) {
        KeBugCheckEx(WORKER_INVALID, EXP_ITEM_INVALID, (ULONG_PTR)WorkItem, (ULONG_PTR)WorkItem, QueueType);
    }
    if (WorkItem->List.Flink != NULL) {
        KeBugCheckEx(WORKER_INVALID, EXP_ITEM_QUEUED, (ULONG_PTR)WorkItem, (ULONG_PTR)WorkItem, QueueType);
    }
    PEXP_WORK_QUEUE WorkQueue = ExpWorkQueueOf(Priority);
    KeInsertQueue(&WorkQueue->Queue, &WorkItem->List);
    ExpEnsureIdleWorker(WorkQueue);
}
