/*
 * Four threads that signal and wait without timeouts, in every order: each takes only what it has given before, so none
 * stays behind. And counts that must add up: pulses, alerts, DPCs, calls on every processor, work items.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ex/exp.h"

#define THREADS 4
#define TIMES 3

static LARGE_INTEGER soon = {.QuadPart = -10000};
static int given, taken;

static void count(int *counter, int many)
{
    __atomic_fetch_add(counter, many, __ATOMIC_RELAXED);
}

/* Three mutants, one, two or all of them at a time, in any order of the array. */
static KMUTANT mutants[3];
static int values[3];

static void setup_mutants(void)
{
    for (int i = 0; i < 3; i++)
        KeInitializeMutant(&mutants[i], FALSE);
}

static void own_some(void)
{
    static const unsigned char choices[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 1}, {1, 2}, {2, 0}, {0}, {1}, {2}};
    static const unsigned char counts[] = {3, 3, 2, 2, 2, 1, 1, 1};
    for (int time = 0; time < TIMES; time++) {
        unsigned choice = LabChoose(8), some = counts[choice];
        PVOID objects[3];
        for (unsigned i = 0; i < some; i++)
            objects[i] = &mutants[choices[choice][i]];
        BOOLEAN timed = LabChoose(4) == 0;
        if (KeWaitForMultipleObjects(some, objects, WaitAll, Executive, KernelMode, FALSE, timed ? &soon : NULL, NULL) !=
            STATUS_SUCCESS) {
            LabAssert(timed);
            continue;
        }
        for (unsigned i = 0; i < some; i++) {
            values[choices[choice][i]] += 1;
            KeReleaseMutant(objects[i], IO_NO_INCREMENT, FALSE, FALSE);
        }
    }
}

static void mutants_are_free(void)
{
    for (int i = 0; i < 3; i++)
        LabAssert(KeReadStateMutant(&mutants[i]) == 1);
}
LAB_SCENARIO(crowd_wait_all_mutants, .Setup = setup_mutants, .Threads = {own_some, own_some, own_some, own_some},
             .Finish = mutants_are_free, .Flags = LAB_LARGE, .Processors = 3);

/* One more count in one of them, and a wait for any; or one more in each, and a wait for all. */
static KSEMAPHORE semaphores[3];

static void setup_semaphores(void)
{
    for (int i = 0; i < 3; i++)
        KeInitializeSemaphore(&semaphores[i], 0, 100);
}

static void wait_for_semaphores(WAIT_TYPE type)
{
    PVOID objects[3] = {&semaphores[0], &semaphores[1], &semaphores[2]};
    NTSTATUS status = KeWaitForMultipleObjects(3, objects, type, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status >= STATUS_WAIT_0 && status <= STATUS_WAIT_2);
}

static void give_one_take_any(void)
{
    for (int time = 0; time < TIMES; time++) {
        KeReleaseSemaphore(&semaphores[LabChoose(3)], IO_NO_INCREMENT, 1, FALSE);
        wait_for_semaphores(WaitAny);
    }
}

static void give_all_take_all(void)
{
    for (int time = 0; time < TIMES; time++) {
        unsigned first = LabChoose(3);
        for (unsigned i = 0; i < 3; i++)
            KeReleaseSemaphore(&semaphores[(first + i) % 3], IO_NO_INCREMENT, 1, FALSE);
        wait_for_semaphores(WaitAll);
    }
}

static void semaphores_are_empty(void)
{
    for (int i = 0; i < 3; i++)
        LabAssert(KeReadStateSemaphore(&semaphores[i]) == 0);
}
LAB_SCENARIO(crowd_wait_any_semaphores, .Setup = setup_semaphores,
             .Threads = {give_one_take_any, give_one_take_any, give_one_take_any, give_one_take_any},
             .Finish = semaphores_are_empty, .Flags = LAB_LARGE, .Processors = 3);
LAB_SCENARIO(crowd_wait_all_semaphores, .Setup = setup_semaphores,
             .Threads = {give_all_take_all, give_all_take_all, give_all_take_all, give_all_take_all},
             .Finish = semaphores_are_empty, .Flags = LAB_LARGE, .Processors = 3);

/* Objects of every kind in a wait for any, with signals, resets, pulses and timeouts: every consumed signal was given.
   */
static KEVENT synchronization, notification;
static KTIMER timer;

static void setup_mixture(void)
{
    KeInitializeEvent(&synchronization, SynchronizationEvent, FALSE);
    KeInitializeEvent(&notification, NotificationEvent, FALSE);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    setup_semaphores();
}

static void act_on_mixture(void)
{
    PVOID objects[] = {&synchronization, &semaphores[0], &notification, &timer};
    KWAIT_BLOCK blocks[4];
    switch (LabChoose(8)) {
    case 0:
        count(&given, KeSetEvent(&synchronization, IO_NO_INCREMENT, FALSE) == 0);
        break;
    case 1:
        count(&given, KePulseEvent(&synchronization, IO_NO_INCREMENT, FALSE) == 0);
        break;
    case 2:
        KeSetEvent(&notification, IO_NO_INCREMENT, FALSE);
        KeResetEvent(&notification);
        break;
    case 3:
        KePulseEvent(&notification, IO_NO_INCREMENT, FALSE);
        break;
    case 4:
        KeReleaseSemaphore(&semaphores[0], IO_NO_INCREMENT, 2, FALSE);
        count(&given, 2);
        break;
    case 5:
        KeSetTimer(&timer, soon, NULL);
        break;
    case 6: {
        NTSTATUS status = KeWaitForMultipleObjects(4, objects, WaitAny, Executive, KernelMode, FALSE, &soon, blocks);
        count(&taken, status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
        break;
    }
    default: {
        NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, &soon, blocks);
        count(&taken, status == STATUS_SUCCESS ? 2 : 0);
    }
    }
}

static void mix_three_times(void)
{
    for (int time = 0; time < TIMES; time++)
        act_on_mixture();
}

static void nothing_came_from_nowhere(void)
{
    LabAssert(taken + KeReadStateSemaphore(&semaphores[0]) + KeReadStateEvent(&synchronization) <= given);
}
LAB_SCENARIO(crowd_mixture, .Setup = setup_mixture,
             .Threads = {mix_three_times, mix_three_times, mix_three_times, mix_three_times},
             .Finish = nothing_came_from_nowhere, .Flags = LAB_LARGE, .Processors = 3);

/* Queues: each thread inserts an entry and then removes one, sometimes several, sometimes after a wait elsewhere. */
static KQUEUE queue;
static LIST_ENTRY entries[THREADS * TIMES];
static int inserted, was_taken[THREADS * TIMES];
static KEVENT busy;

static void setup_queue(void)
{
    KeInitializeQueue(&queue, 1);
    KeInitializeEvent(&busy, NotificationEvent, FALSE);
}

static void setup_wide_queue(void)
{
    setup_queue();
    queue.MaximumCount = 2;
}

static void take(PLIST_ENTRY entry)
{
    LabAssert(entry >= &entries[0] && entry < &entries[THREADS * TIMES]);
    LabAssert(__atomic_fetch_add(&was_taken[entry - entries], 1, __ATOMIC_RELAXED) == 0);
}

static void insert_and_remove(void)
{
    for (int time = 0; time < TIMES; time++) {
        PLIST_ENTRY mine = &entries[__atomic_fetch_add(&inserted, 1, __ATOMIC_RELAXED)];
        if (LabChoose(2))
            KeInsertQueue(&queue, mine);
        else
            KeInsertHeadQueue(&queue, mine);
        if (LabChoose(2)) {
            take(KeRemoveQueue(&queue, KernelMode, NULL));
        } else {
            PLIST_ENTRY got[1];
            LabAssert(KeRemoveQueueEx(&queue, KernelMode, FALSE, NULL, got, 1) == 1);
            take(got[0]);
        }
        if (LabChoose(2))
            KeWaitForSingleObject(&busy, Executive, KernelMode, FALSE, &soon);
    }
}

static void queue_is_empty(void)
{
    LabAssert(KeReadStateQueue(&queue) == 0 && queue.CurrentCount == 0);
}
LAB_SCENARIO(crowd_queue_narrow, .Setup = setup_queue,
             .Threads = {insert_and_remove, insert_and_remove, insert_and_remove, insert_and_remove},
             .Finish = queue_is_empty, .Flags = LAB_LARGE | LAB_RUN_EXIT, .Processors = 3);
LAB_SCENARIO(crowd_queue_wide, .Setup = setup_wide_queue,
             .Threads = {insert_and_remove, insert_and_remove, insert_and_remove, insert_and_remove},
             .Finish = queue_is_empty, .Flags = LAB_LARGE | LAB_RUN_EXIT, .Processors = 3);

/* Keyed events without timeouts: two threads wait, two release, equally often. */
static EX_KEYED_EVENT keyed;
static int key DECLSPEC_ALIGN(2);

static void setup_keyed(void)
{
    ExpInitializeKeyedEvent(&keyed);
}

static void keyed_waiter(void)
{
    for (int time = 0; time < TIMES; time++)
        LabAssert(ExpWaitForKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void keyed_releaser(void)
{
    for (int time = 0; time < TIMES; time++)
        LabAssert(ExpReleaseKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(crowd_keyed_event, .Setup = setup_keyed,
             .Threads = {keyed_waiter, keyed_releaser, keyed_waiter, keyed_releaser}, .Flags = LAB_LARGE,
             .Processors = 3);

/* Alerts: each ends at most one wait. */
static PKTHREAD targets[2];
static int alerts, ended;

static void alertable_waiter(void)
{
    __atomic_store_n(&targets[LabCurrentThread()], KeGetCurrentThread(), __ATOMIC_RELEASE);
    for (int time = 0; time < TIMES; time++) {
        KPROCESSOR_MODE mode = LabChoose(2) ? UserMode : KernelMode;
        NTSTATUS status = KeWaitForSingleObject(&synchronization, Executive, mode, TRUE, &soon);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT || status == STATUS_ALERTED);
        count(&ended, status == STATUS_ALERTED);
        count(&taken, status == STATUS_SUCCESS);
        if (LabChoose(2))
            count(&ended, KeTestAlertThread(mode));
    }
}

static void alerter(void)
{
    for (int time = 0; time < TIMES; time++) {
        PKTHREAD target = __atomic_load_n(&targets[LabChoose(2)], __ATOMIC_ACQUIRE);
        if (target != NULL && LabChoose(3) != 0) {
            count(&alerts, 1); /* before, because it may be consumed at once */
            KeAlertThread(target, LabChoose(2) ? UserMode : KernelMode);
        } else {
            count(&given, KeSetEvent(&synchronization, IO_NO_INCREMENT, FALSE) == 0);
        }
    }
}

static void alerts_add_up(void)
{
    LabAssert(ended <= alerts && taken + KeReadStateEvent(&synchronization) == given);
}
LAB_SCENARIO(crowd_alerts, .Setup = setup_mixture, .Threads = {alertable_waiter, alertable_waiter, alerter, alerter},
             .Finish = alerts_add_up, .Flags = LAB_LARGE, .Processors = 3);

/* DPCs on every processor, timers with DPCs, calls on all processors, code at DISPATCH_LEVEL. */
static KDPC dpcs[2];
static KTIMER dpc_timer;
static int on_processor[3]; /* no race: a DPC and code at that level share a processor's data without a lock */
static int ran, queued, called;

static VOID count_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(dpc);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    on_processor[KeGetCurrentProcessorNumber()] += 1;
    count(&ran, 1);
}

static ULONG_PTR count_call(ULONG_PTR context)
{
    on_processor[KeGetCurrentProcessorNumber()] += 1;
    count(&called, 1);
    return context;
}

static void setup_dpcs(void)
{
    for (int i = 0; i < 2; i++)
        KeInitializeDpc(&dpcs[i], count_dpc, NULL);
    KeSetTargetProcessorDpc(&dpcs[1], 1);
    KeInitializeTimer(&dpc_timer);
}

static void act_on_processors(void)
{
    KIRQL irql;
    unsigned which = LabChoose(2);
    switch (LabChoose(6)) {
    case 0:
    case 1:
        count(&queued, KeInsertQueueDpc(&dpcs[which], NULL, NULL));
        break;
    case 2:
        count(&queued, -KeRemoveQueueDpc(&dpcs[which]));
        break;
    case 3:
        KeFlushQueuedDpcs();
        break;
    case 4:
        count(&taken, 1);
        KeIpiGenericCall(count_call, 0);
        break;
    default:
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
        on_processor[KeGetCurrentProcessorNumber()] += 1;
        LabYield();
        on_processor[KeGetCurrentProcessorNumber()] += 1;
        count(&given, 2);
        KeLowerIrql(irql);
    }
}

static void act_on_processors_twice(void)
{
    act_on_processors();
    act_on_processors();
}

static void processors_add_up(void)
{
    LabAssert(ran == queued && called == 3 * taken);
    LabAssert(on_processor[0] + on_processor[1] + on_processor[2] == ran + called + given);
}
LAB_SCENARIO(crowd_dpcs_and_calls, .Setup = setup_dpcs,
             .Threads = {act_on_processors_twice, act_on_processors_twice, act_on_processors_twice,
                         act_on_processors_twice},
             .Finish = processors_add_up, .Flags = LAB_LARGE, .Processors = 3);

/* Timers with a DPC: it does not run for a setting that was cancelled or replaced in time. */
static void set_and_cancel_with_dpc(void)
{
    for (int time = 0; time < TIMES; time++) {
        if (LabChoose(3) == 0) {
            count(&taken, KeCancelTimer(&dpc_timer));
        } else {
            count(&given, 1); /* before, because it may expire at once */
            count(&taken, KeSetTimer(&dpc_timer, soon, &dpcs[LabChoose(2)]));
        }
    }
}

static void no_more_than_expired(void)
{
    LabAssert(ran <= given - taken);
}
LAB_SCENARIO(crowd_timer_dpcs, .Setup = setup_dpcs,
             .Threads = {set_and_cancel_with_dpc, set_and_cancel_with_dpc, set_and_cancel_with_dpc,
                         set_and_cancel_with_dpc},
             .Finish = no_more_than_expired, .Flags = LAB_LARGE, .Processors = 3);

/* Work items: each runs, in either queue, and may queue others or wait for them. */
static WORK_QUEUE_ITEM items[THREADS * 2];
static KEVENT all_ran;

static VOID run_item(PVOID parameter)
{
    UNREFERENCED_PARAMETER(parameter);
    if (__atomic_add_fetch(&ran, 1, __ATOMIC_ACQ_REL) == THREADS * 2)
        KeSetEvent(&all_ran, IO_NO_INCREMENT, FALSE);
}

static void setup_items(void)
{
    KeInitializeEvent(&all_ran, NotificationEvent, FALSE);
    for (int i = 0; i < THREADS * 2; i++)
        ExInitializeWorkItem(&items[i], run_item, NULL);
}

static void queue_two_items(void)
{
    for (unsigned i = 0; i < 2; i++)
        ExQueueWorkItem(&items[LabCurrentThread() * 2 + i], LabChoose(2) ? CriticalWorkQueue : DelayedWorkQueue);
    LabAssert(KeWaitForSingleObject(&all_ran, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(crowd_work_items, .Setup = setup_items,
             .Threads = {queue_two_items, queue_two_items, queue_two_items, queue_two_items}, .Flags = LAB_LARGE,
             .Processors = 3);
