/*
 * Memory that is freed as soon as possible: a thread that returns from a wait frees the object it waited for, routines
 * free the structures that called them, and threads that signal, insert and expire do not touch them any more. Locks
 * are in anylock.c, rundown protection in rundown.c.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/ki.h"

#define WAITERS 3

static LARGE_INTEGER soon = {.QuadPart = -10000};

/* One of several waiters frees the object, the first to return; all of them were waiting when the signal came. */
typedef union object {
    KEVENT event;
    KSEMAPHORE semaphore;
    KTIMER timer;
    KQUEUE queue;
    EX_PUSH_LOCK push;
} object;

static object *waited_for;
static PKTHREAD waiters[WAITERS];
static int returned;

static void announce(void)
{
    __atomic_store_n(&waiters[LabCurrentThread()], KeGetCurrentThread(), __ATOMIC_RELEASE);
}

static void free_if_first(void)
{
    if (__atomic_fetch_add(&returned, 1, __ATOMIC_RELAXED) == 0)
        LabFree(waited_for);
}

/* Alone, or with an object that stays: any, all. */
static KEVENT never, always;

static void waiter(void)
{
    PVOID with_never[] = {&never, waited_for}, with_always[] = {&always, waited_for};
    NTSTATUS status;
    announce();
    switch (LabChoose(3)) {
    case 0:
        status = KeWaitForSingleObject(waited_for, Executive, KernelMode, FALSE, NULL);
        LabAssert(status == STATUS_SUCCESS);
        break;
    case 1:
        status = KeWaitForMultipleObjects(2, with_never, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
        LabAssert(status == STATUS_WAIT_1);
        break;
    default:
        status = KeWaitForMultipleObjects(2, with_always, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
        LabAssert(status == STATUS_SUCCESS);
    }
    free_if_first();
}

static void allocate_object(void)
{
    waited_for = LabAllocate(sizeof(*waited_for));
    KeInitializeEvent(&never, SynchronizationEvent, FALSE);
    KeInitializeEvent(&always, NotificationEvent, TRUE);
}

/* The state changes when the wait is linked to the object. */
static void await_waiters(void)
{
    for (int i = 0; i < WAITERS; i++) {
        PKTHREAD thread;
        while ((thread = __atomic_load_n(&waiters[i], __ATOMIC_ACQUIRE)) == NULL)
            ;
        while (__atomic_load_n(&thread->State, __ATOMIC_ACQUIRE) != Waiting)
            ;
    }
}

static void setup_event(void)
{
    allocate_object();
    KeInitializeEvent(&waited_for->event, NotificationEvent, FALSE);
}

static void set(void)
{
    await_waiters();
    KeSetEvent(&waited_for->event, IO_NO_INCREMENT, FALSE);
}

static void pulse(void)
{
    await_waiters();
    KePulseEvent(&waited_for->event, IO_NO_INCREMENT, FALSE);
}

static void setup_semaphore(void)
{
    allocate_object();
    KeInitializeSemaphore(&waited_for->semaphore, 0, WAITERS);
}

static void release_all(void)
{
    await_waiters();
    KeReleaseSemaphore(&waited_for->semaphore, IO_NO_INCREMENT, WAITERS, FALSE);
}

static void setup_timer(void)
{
    allocate_object();
    KeInitializeTimer(&waited_for->timer);
}

static void set_timer(void)
{
    await_waiters();
    KeSetTimer(&waited_for->timer, soon, NULL);
}
#define FREED_BY_FIRST(Name, Prepare, Signal)                                                       \
    LAB_SCENARIO(freed_first_##Name, .Setup = Prepare, .Threads = {waiter, waiter, waiter, Signal}, \
                 .Flags = LAB_LARGE);
FREED_BY_FIRST(event_set, setup_event, set)
FREED_BY_FIRST(event_pulse, setup_event, pulse)
FREED_BY_FIRST(semaphore, setup_semaphore, release_all)
FREED_BY_FIRST(timer, setup_timer, set_timer)

/* A wait for two objects unlinks from the one that did not end it. */
static object *other;

static void setup_two_events(void)
{
    setup_event();
    other = LabAllocate(sizeof(*other));
    KeInitializeEvent(&other->event, SynchronizationEvent, FALSE);
}

static void wait_for_any_and_free(void)
{
    PVOID objects[] = {waited_for, other};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
    LabFree(waited_for);
    LabFree(other);
}

static void set_whichever(void)
{
    KeSetEvent(LabChoose(2) ? &waited_for->event : &other->event, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(freed_wait_any, .Setup = setup_two_events, .Threads = {wait_for_any_and_free, set_whichever},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

static void wait_for_all_and_free(void)
{
    PVOID objects[] = {waited_for, other};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) ==
              STATUS_SUCCESS);
    LabFree(waited_for);
    LabFree(other);
}

static void set_one(void)
{
    KeSetEvent(&waited_for->event, IO_NO_INCREMENT, FALSE);
}

static void set_other(void)
{
    KeSetEvent(&other->event, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(freed_wait_all, .Setup = setup_two_events, .Threads = {wait_for_all_and_free, set_one, set_other},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

/* A semaphore that is released one by one: a thread that has taken the full count knows that all releases are done. */
static void take_all_and_free(void)
{
    for (int i = 0; i < WAITERS; i++)
        LabAssert(KeWaitForSingleObject(waited_for, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabFree(waited_for);
}

static void release_one(void)
{
    KeReleaseSemaphore(&waited_for->semaphore, IO_NO_INCREMENT, 1, FALSE);
}
LAB_SCENARIO(freed_semaphore_counted, .Setup = setup_semaphore,
             .Threads = {take_all_and_free, release_one, release_one, release_one},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

/* A mutant that its owner abandons. */
static PKMUTANT mutant;

static void setup_mutant(void)
{
    mutant = LabAllocate(sizeof(*mutant));
    KeInitializeMutant(mutant, FALSE);
}

static void die_with_mutant(void)
{
    KeWaitForSingleObject(mutant, Executive, KernelMode, FALSE, NULL);
    LabExitThread();
}

static void inherit_and_free(void)
{
    NTSTATUS status = KeWaitForSingleObject(mutant, Executive, KernelMode, FALSE, NULL);
    KeReleaseMutant(mutant, IO_NO_INCREMENT, FALSE, FALSE);
    if (status == STATUS_ABANDONED)
        LabFree(mutant);
}
LAB_SCENARIO(freed_mutant_abandoned, .Setup = setup_mutant, .Threads = {die_with_mutant, inherit_and_free},
             .Flags = LAB_LARGE);

/* A WaitAll that is already satisfied: a thread whose release finds the semaphore taken frees it. */
static KMUTANT own_mutant;

static void setup_mutant_and_semaphore(void)
{
    allocate_object();
    KeInitializeMutant(&own_mutant, FALSE);
    KeInitializeSemaphore(&waited_for->semaphore, 1, 2);
}

static void free_if_second(void)
{
    if (__atomic_fetch_add(&returned, 1, __ATOMIC_ACQ_REL) == 1)
        LabFree(waited_for);
}

static void take_mutant_and_semaphore(void)
{
    PVOID both[] = {&waited_for->semaphore, &own_mutant};
    LabAssert(KeWaitForMultipleObjects(2, both, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_SUCCESS);
    KeReleaseMutant(&own_mutant, 0, FALSE, FALSE);
    free_if_second();
}

static void free_taken_semaphore(void)
{
    if (KeReleaseSemaphore(&waited_for->semaphore, 0, 1, FALSE) != 0) {
        free_if_second();
        return;
    }
    __atomic_store_n(&returned, -1, __ATOMIC_RELEASE); /* the other thread frees nothing */
    LabFree(waited_for);
}
LAB_SCENARIO(freed_taken_at_once, .Setup = setup_mutant_and_semaphore,
             .Threads = {take_mutant_and_semaphore, free_taken_semaphore});

/* Waiters of an address-based pushlock: the first one woken frees the lock and the word. */
static void setup_push(void)
{
    allocate_object();
    ExInitializePushLock(&waited_for->push);
}

static void address_waiter(void)
{
    EX_PUSH_LOCK_WAIT_BLOCK block;
    announce();
    ExBlockPushLock(&waited_for->push, &block);
    LabAssert(ExTimedWaitForUnblockPushLock(&waited_for->push, &block, NULL) == STATUS_SUCCESS);
    free_if_first();
}

static void unblock_all(void)
{
    await_waiters();
    ExUnblockPushLock(&waited_for->push, NULL);
}
LAB_SCENARIO(freed_first_address, .Setup = setup_push,
             .Threads = {address_waiter, address_waiter, address_waiter, unblock_all},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

/* Queues: the remover of an entry frees it; the thread that has run the queue down frees the queue. */
static KQUEUE queue;

static void setup_queue(void)
{
    KeInitializeQueue(&queue, 2);
}

static void insert_entry(void)
{
    KeInsertQueue(&queue, LabAllocate(sizeof(LIST_ENTRY)));
}

static void insert_entries(void)
{
    insert_entry();
    KeInsertHeadQueue(&queue, LabAllocate(sizeof(LIST_ENTRY)));
}

static void remove_and_free(void)
{
    LabFree(KeRemoveQueue(&queue, KernelMode, NULL));
}

static void remove_two_and_free(void)
{
    remove_and_free();
    remove_and_free();
}
LAB_SCENARIO(freed_queue_entry, .Setup = setup_queue,
             .Threads = {insert_entry, remove_and_free, insert_entries, remove_two_and_free},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

static void setup_heap_queue(void)
{
    allocate_object();
    KeInitializeQueue(&waited_for->queue, 2);
}

static void abandoned_remover(void)
{
    announce();
    LabAssert((ULONG_PTR)KeRemoveQueue(&waited_for->queue, KernelMode, NULL) == STATUS_ABANDONED);
}

static void abandoned_remover_frees(void)
{
    abandoned_remover();
    free_if_first();
}

static void run_down_and_free(void)
{
    await_waiters();
    LabAssert(KeRundownQueue(&waited_for->queue) == NULL);
    LabFree(waited_for);
}

static void run_down(void)
{
    await_waiters();
    LabAssert(KeRundownQueue(&waited_for->queue) == NULL);
}
LAB_SCENARIO(freed_queue, .Setup = setup_heap_queue,
             .Threads = {abandoned_remover, abandoned_remover, abandoned_remover, run_down_and_free},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS | LAB_RUN_EXIT);
LAB_SCENARIO(freed_first_queue, .Setup = setup_heap_queue,
             .Threads = {abandoned_remover_frees, abandoned_remover_frees, abandoned_remover_frees, run_down},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS | LAB_RUN_EXIT);

/* A DPC that frees itself together with its timer, which has expired. */
typedef struct deferred {
    KDPC dpc;
    KTIMER timer;
} deferred;

static deferred *work;
static KEVENT done;

static VOID free_work(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(dpc);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabFree(context);
    KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
}

static void await_dpc(void)
{
    LabAssert(KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void setup_dpc(void)
{
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    work = LabAllocate(sizeof(*work));
    KeInitializeDpc(&work->dpc, free_work, work);
    KeInitializeTimer(&work->timer);
}

static void setup_dpc_elsewhere(void)
{
    setup_dpc();
    KeSetTargetProcessorDpc(&work->dpc, 1);
}

static void setup_threaded_dpc(void)
{
    setup_dpc();
    KeInitializeThreadedDpc(&work->dpc, free_work, work);
}

static void insert_dpc(void)
{
    KeInsertQueueDpc(&work->dpc, NULL, NULL);
    await_dpc();
}

static void insert_and_flush_dpc(void)
{
    KeInsertQueueDpc(&work->dpc, NULL, NULL);
    KeFlushQueuedDpcs();
    LabAssert(KeReadStateEvent(&done));
}

static void set_timer_with_dpc_anywhere(void)
{
    KeSetTargetProcessorDpc(&work->dpc, (CCHAR)LabChoose(2));
    KeSetTimer(&work->timer, soon, &work->dpc);
    await_dpc();
}

static void set_timer_with_dpc(void)
{
    KeSetTimer(&work->timer, soon, &work->dpc);
    await_dpc();
}

/* The due time has passed: it expires while it is being set. */
static void set_timer_too_late(void)
{
    LARGE_INTEGER long_ago = {.QuadPart = 1};
    KeSetTimer(&work->timer, long_ago, &work->dpc);
    await_dpc();
}
#define FREED_BY_DPC(Name, Prepare, Queue) \
    LAB_SCENARIO(freed_dpc_##Name, .Setup = Prepare, .Threads = {Queue}, .Flags = LAB_LARGE);
FREED_BY_DPC(here, setup_dpc, insert_dpc)
FREED_BY_DPC(elsewhere, setup_dpc_elsewhere, insert_dpc)
FREED_BY_DPC(flushed, setup_dpc_elsewhere, insert_and_flush_dpc)
FREED_BY_DPC(threaded, setup_threaded_dpc, insert_dpc)
FREED_BY_DPC(of_timer, setup_dpc, set_timer_with_dpc)
FREED_BY_DPC(of_timer_elsewhere, setup_dpc, set_timer_with_dpc_anywhere)
FREED_BY_DPC(of_timer_threaded, setup_threaded_dpc, set_timer_with_dpc)
FREED_BY_DPC(of_late_timer, setup_dpc, set_timer_too_late)
FREED_BY_DPC(of_late_timer_elsewhere, setup_dpc_elsewhere, set_timer_too_late)

/* A waiter of a timer with a DPC frees the timer; the DPC, in memory of its own, frees itself. */
static VOID free_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabFree(dpc);
    KeSetEvent(&done, IO_NO_INCREMENT, FALSE);
}

static PKDPC lone_dpc;

static void setup_timer_and_dpc(void)
{
    setup_timer();
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    lone_dpc = LabAllocate(sizeof(*lone_dpc));
    KeInitializeDpc(lone_dpc, free_dpc, NULL);
}

static void wait_for_timer_and_free(void)
{
    KeSetTimer(&waited_for->timer, soon, lone_dpc);
    LabAssert(KeWaitForSingleObject(waited_for, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabFree(waited_for);
    await_dpc();
}
LAB_SCENARIO(freed_timer_before_dpc, .Setup = setup_timer_and_dpc, .Threads = {wait_for_timer_and_free},
             .Flags = LAB_LARGE);

/* An APC that frees itself in its kernel routine, special or normal, or in its rundown routine; or its remover does. */
static VOID free_apc(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *first, PVOID *second)
{
    UNREFERENCED_PARAMETER(normal);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabFree(apc);
}

static VOID free_run_down_apc(PKAPC apc)
{
    LabFree(apc);
}

static VOID normal_routine(PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
}

static void apc_target(void)
{
    ObReferenceObject(KeGetCurrentThread());
    announce();
    KeWaitForSingleObject(waited_for, Executive, UserMode, TRUE, &soon);
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    LabExitThread();
}

static void queue_apcs(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&waiters[0], __ATOMIC_ACQUIRE)) == NULL)
        ;
    for (int i = 0; i < 2; i++) {
        PKAPC apc = LabAllocate(sizeof(*apc));
        unsigned kind = LabChoose(3);
        KeInitializeApc(apc, thread, OriginalApcEnvironment, free_apc, free_run_down_apc,
                        kind == 0 ? NULL : normal_routine, kind == 2 ? UserMode : KernelMode, NULL);
        if (!KeInsertQueueApc(apc, NULL, NULL, IO_NO_INCREMENT))
            LabFree(apc);
    }
}

LAB_SCENARIO(freed_apc, .Setup = setup_event, .Threads = {apc_target, queue_apcs, queue_apcs},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);

/* The registration of an object with a queue or a DPC: a cancel in time frees it, otherwise the remover of the packet
   does. */
static PKOBJECT_NOTIFICATION notification;

static void setup_notification(void)
{
    setup_event();
    setup_queue();
    notification = LabAllocate(sizeof(*notification));
    LabAssert(KeRegisterObjectNotification(&waited_for->event, &queue, notification) == STATUS_PENDING);
}

static void set_event(void)
{
    KeSetEvent(&waited_for->event, IO_NO_INCREMENT, FALSE);
}

static void cancel_and_free(void)
{
    PKOBJECT_NOTIFICATION mine = notification;
    if (KeCancelObjectNotification(mine, TRUE) != NotificationSignaled)
        LabFree(mine);
}

static void take_packet_and_free(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, &soon);
    if ((ULONG_PTR)entry != STATUS_TIMEOUT)
        LabFree(notification);
}
LAB_SCENARIO(freed_notification, .Setup = setup_notification, .Threads = {set_event, take_packet_and_free},
             .Flags = LAB_LARGE);
LAB_SCENARIO(freed_notification_cancelled, .Setup = setup_notification, .Threads = {set_event, cancel_and_free},
             .Flags = LAB_LARGE);

/* A cancel that comes too late means that the DPC is queued: after a flush it has run and may be freed. */
static PKWAIT_BLOCK block;
static int ran;

static VOID count_run(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(dpc);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    ran += 1;
}

static void setup_object_dpc(void)
{
    setup_event();
    lone_dpc = LabAllocate(sizeof(*lone_dpc));
    KeInitializeDpc(lone_dpc, count_run, NULL);
    KeSetTargetProcessorDpc(lone_dpc, 1);
    block = LabAllocate(sizeof(*block));
    LabAssert(KeRegisterObjectDpc(&waited_for->event, lone_dpc, block) == STATUS_PENDING);
}

static void cancel_object_dpc_and_free(void)
{
    BOOLEAN cancelled = KeCancelObjectDpc(block);
    LabFree(block);
    if (!cancelled)
        KeFlushQueuedDpcs();
    LabAssert(ran == !cancelled);
    LabFree(lone_dpc);
}
LAB_SCENARIO(freed_dpc_of_object, .Setup = setup_object_dpc, .Threads = {set_event, cancel_object_dpc_and_free},
             .Flags = LAB_LARGE);
