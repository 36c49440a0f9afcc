/* Queues: how many run at a time, rundown, several entries at once, threads that exit; notifications. */
#include "../models/kqueue.h"

#include <ntifs.h>

static KQUEUE queue;
static LIST_ENTRY entries[4];
static KEVENT event;

static void narrow(void)
{
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void record_insert(int number, int at_head)
{
    unsigned operation = LabBegin(at_head ? QUEUE_INSERT_HEAD : QUEUE_INSERT, number);
    LabEnd(operation, (at_head ? KeInsertHeadQueue : KeInsertQueue)(&queue, &entries[number]));
}

static intptr_t record_remove(PLARGE_INTEGER timeout)
{
    unsigned operation = LabBegin(QUEUE_REMOVE, 0);
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, timeout);
    intptr_t result = entry - entries;
    if ((LONG_PTR)entry == STATUS_TIMEOUT)
        result = 0;
    else if ((LONG_PTR)entry == STATUS_ABANDONED)
        result = -1;
    else
        LabAssert(result >= 1 && result <= 3);
    LabEnd(operation, result);
    return result;
}

static void recorded_inserter(void)
{
    record_insert(1, 0);
    record_insert(2, 0);
    record_insert(3, 1);
}

static void end_recorded(void)
{
    LabBegin(QUEUE_END, 0);
    LabExitThread();
}

/* Waits for an entry, polls for more, exits: then another thread may run. */
static void recorded_remover(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    record_remove(NULL);
    record_remove(&now);
    end_recorded();
}

static void recorded_poller(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    record_remove(&now);
    end_recorded();
}

static void is_a_queue(void)
{
    LabCheckLinearizable(&LabModelNarrowQueue);
    LabAssert(queue.CurrentCount == 0 && IsListEmpty(&queue.ThreadListHead));
}
LAB_SCENARIO(queue_history, .Setup = narrow, .Threads = {recorded_inserter, recorded_remover}, .Finish = is_a_queue,
             .Flags = LAB_LARGE);
LAB_SCENARIO(queue_history_narrow, .Setup = narrow, .Threads = {recorded_inserter, recorded_remover, recorded_poller},
             .Finish = is_a_queue, .Flags = LAB_LARGE);

/* Rundown while a thread waits, or is about to, and an entry is inserted. */
static void recorded_destroyer(void)
{
    intptr_t found = 0;
    unsigned operation = LabBegin(QUEUE_RUNDOWN, 0);
    PLIST_ENTRY first = KeRundownQueue(&queue);
    for (PLIST_ENTRY entry = first; entry != NULL; entry = entry->Flink == first ? NULL : entry->Flink)
        found++;
    LabEnd(operation, found);
}

static void record_one_insert(void)
{
    record_insert(1, 0);
}

static void recorded_waiter(void)
{
    record_remove(NULL);
    end_recorded();
}

/* An entry inserted after the rundown stays, and no thread removes it. */
static void is_run_down(void)
{
    LabCheckLinearizable(&LabModelNarrowQueue);
    LabAssert(IsListEmpty(&queue.ThreadListHead));
}
LAB_SCENARIO(queue_rundown, .Setup = narrow, .Threads = {recorded_destroyer, recorded_waiter}, .Finish = is_run_down);
LAB_SCENARIO(queue_rundown_insert, .Setup = narrow, .Threads = {recorded_destroyer, recorded_waiter, record_one_insert},
             .Finish = is_run_down);

/* A thread that has an entry and blocks makes room: the other one gets the second entry, which ends the wait. */
static int taken;

static void two_entries(void)
{
    narrow();
    KeInsertQueue(&queue, &entries[1]);
    KeInsertQueue(&queue, &entries[2]);
}

static void worker(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, NULL);
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (entry == &entries[1])
        KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    else
        KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

/* Above the limit for a while: the thread that blocked has returned. */
static void both_ran(void)
{
    LabAssert(taken == 2 && queue.CurrentCount == 2 && KeReadStateQueue(&queue) == 0);
}
LAB_SCENARIO(queue_blocked_worker, .Setup = two_entries, .Threads = {worker, worker}, .Finish = both_ran);

/* No more than one runs: code between two removes needs no lock as long as no thread blocks or exits. */
static int exclusive;

static void serial_worker(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, &now);
    if ((LONG_PTR)entry != STATUS_TIMEOUT) {
        LabAssert(__atomic_add_fetch(&exclusive, 1, __ATOMIC_RELAXED) == 1);
        __atomic_sub_fetch(&exclusive, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    }
}

static void at_most_limit(void)
{
    LabAssert(taken >= 1 && taken + KeReadStateQueue(&queue) == 2);
}
LAB_SCENARIO(queue_limit, .Setup = two_entries, .Threads = {serial_worker, serial_worker}, .Finish = at_most_limit);

/* Several entries per removal. */
static void remove_several(void)
{
    PLIST_ENTRY found[3];
    ULONG count = KeRemoveQueueEx(&queue, KernelMode, FALSE, NULL, found, 3);
    LabAssert(count >= 1 && count <= 3);
    for (ULONG i = 0; i < count; i++)
        LabAssert(found[i] >= &entries[1] && found[i] <= &entries[3]);
    taken = (int)count;
}

static void plain_inserter(void)
{
    for (int i = 1; i <= 3; i++)
        KeInsertQueue(&queue, &entries[i]);
}

static void taken_or_there(void)
{
    LabAssert(taken + KeReadStateQueue(&queue) == 3);
}
LAB_SCENARIO(queue_several, .Setup = narrow, .Threads = {plain_inserter, remove_several}, .Finish = taken_or_there);

/* Waiting without a thread: a packet for a signal, or it was cancelled; a DPC likewise. */
static KOBJECT_NOTIFICATION notification;
static KNOTIFICATION_CANCEL_RESULT result;

static void registered(void)
{
    narrow();
    LabAssert(KeRegisterObjectNotification(&event, &queue, &notification) == STATUS_PENDING);
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

/* A packet that was not cancelled is queued when the call returns. */
static void canceller(void)
{
    result = KeCancelObjectNotification(&notification, FALSE);
    LabAssert(result == NotificationCancelled || KeReadStateQueue(&queue) == 1);
}

static void removing_canceller(void)
{
    result = KeCancelObjectNotification(&notification, TRUE);
    LabAssert(result != NotificationSignaled && KeReadStateQueue(&queue) == 0);
}

static void packet_or_signal(void)
{
    LabAssert(KeReadStateEvent(&event) == (result == NotificationCancelled));
    LabAssert(KeReadStateQueue(&queue) == (result == NotificationSignaled));
}
LAB_SCENARIO(notification_cancel, .Setup = registered, .Threads = {setter, canceller}, .Finish = packet_or_signal);
LAB_SCENARIO(notification_remove, .Setup = registered, .Threads = {setter, removing_canceller},
             .Finish = packet_or_signal);

static KDPC dpc;
static KWAIT_BLOCK block;
static int ran, cancelled;

static VOID count_run(PKDPC self, PVOID context, PVOID argument1, PVOID argument2)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument2);
    LabAssert(argument1 == &event);
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static void registered_dpc(void)
{
    narrow();
    KeInitializeDpc(&dpc, count_run, NULL);
    LabAssert(KeRegisterObjectDpc(&event, &dpc, &block) == STATUS_PENDING);
}

static void dpc_canceller(void)
{
    cancelled = KeCancelObjectDpc(&block);
}

static void ran_or_cancelled(void)
{
    LabAssert(ran + cancelled == 1 && KeReadStateEvent(&event) == cancelled);
}
LAB_SCENARIO(notification_dpc, .Setup = registered_dpc, .Threads = {setter, dpc_canceller}, .Finish = ran_or_cancelled);

/* The waiter and the registration: one of them gets the signal. */
static void registrar(void)
{
    NTSTATUS status = KeRegisterObjectNotification(&event, &queue, &notification);
    LabAssert(status == STATUS_PENDING || status == STATUS_SUCCESS);
}

static void timed_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    taken = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &timeout) == STATUS_SUCCESS;
}

static void one_got_it(void)
{
    LabAssert(taken + KeReadStateQueue(&queue) == 1 && KeReadStateEvent(&event) == 0);
}
LAB_SCENARIO(notification_or_wait, .Setup = narrow, .Threads = {registrar, timed_waiter, setter}, .Finish = one_got_it,
             .Flags = LAB_LARGE);
