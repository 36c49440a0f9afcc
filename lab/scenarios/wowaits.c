/* Waits for shared objects across two processes: no wakeup is lost, a signal that races with a timeout has one winner,
   a WaitAll takes all or nothing, and mutual exclusion holds. */
#include "woworld.h"

static proxy event[PROCESSES], second[PROCESSES], semaphore[PROCESSES], mutant[PROCESSES];
static KEVENT local;
static int data, woken, inside, abandoned;

/* An event of one process wakes the other. */
static void one_event(void)
{
    make_world();
    make_event(event, TRUE);
}

static void setter(void)
{
    data = 1;
    KeSetEvent(&event[0].event, 0, FALSE);
}

static void waiter(void)
{
    LabAssert(wait_for(&event[1], 0) == STATUS_WAIT_0);
    LabAssert(data == 1);
}

static void quiet_event(void)
{
    assert_quiet(&event[0]);
}
LAB_SCENARIO(wo_event_handover, .Setup = one_event, .Threads = {setter, waiter}, .Finish = quiet_event,
             .SpuriousWakes = 1);

/* Exactly one consumes the signal, or it remains. */
static void timed_waiter(void)
{
    NTSTATUS status = wait_for(&event[1], -10000);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    if (status == STATUS_WAIT_0)
        __atomic_fetch_add(&woken, 1, __ATOMIC_RELAXED);
}

static void consumed_once(void)
{
    LabAssert(woken + KeReadStateEvent(&event[0].event) == 1);
    assert_quiet(&event[0]);
}
LAB_SCENARIO(wo_event_timeout, .Setup = one_event, .Threads = {setter, timed_waiter}, .Finish = consumed_once);
LAB_SCENARIO(wo_event_two_timeouts, .Setup = one_event, .Threads = {setter, timed_waiter, timed_waiter},
             .Finish = consumed_once);

/* A local event and a shared one, set at the same time: each is consumed once, or stays. */
static void both_kinds(void)
{
    one_event();
    KeInitializeEvent(&local, SynchronizationEvent, FALSE);
}

static void local_setter(void)
{
    KeSetEvent(&local, 0, FALSE);
}

static void any_waiter(void)
{
    PVOID objects[2] = {&event[1], &local};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
    LabAssert(KeReadStateEvent(&event[1].event) == 0 || status == STATUS_WAIT_1);
    woken += 1;
}

static void one_left(void)
{
    LabAssert(woken + KeReadStateEvent(&event[0].event) + KeReadStateEvent(&local) == 2);
    assert_quiet(&event[0]);
}
LAB_SCENARIO(wo_any_mixed, .Setup = both_kinds, .Threads = {setter, local_setter, any_waiter}, .Finish = one_left);

static void set_both(void)
{
    setter();
    local_setter();
}
LAB_SCENARIO(wo_any_mixed_two, .Setup = both_kinds, .Threads = {set_both, any_waiter}, .Finish = one_left);

static void all_waiter(void)
{
    PVOID objects[2] = {&event[1], &local};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    LabAssert(KeReadStateEvent(&event[1].event) == 0 && KeReadStateEvent(&local) == 0);
    woken += 2;
}
LAB_SCENARIO(wo_all_mixed, .Setup = both_kinds, .Threads = {setter, local_setter, all_waiter}, .Finish = one_left);

/* A WaitAll against two signalers, and a thread that would take one of the two. */
static void two_events(void)
{
    one_event();
    make_event(second, TRUE);
}

static void second_setter(void)
{
    KeSetEvent(&second[0].event, 0, FALSE);
}

static void all_outside(void)
{
    PVOID objects[2] = {&event[1], &second[1]};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    woken += 2;
}

static void all_taken(void)
{
    LabAssert(woken == 2 && KeReadStateEvent(&event[0].event) == 0 && KeReadStateEvent(&second[0].event) == 0);
    assert_quiet(&event[0]);
    assert_quiet(&second[0]);
}
LAB_SCENARIO(wo_all, .Setup = two_events, .Threads = {setter, second_setter, all_outside}, .Finish = all_taken);

static void thief(void)
{
    if (wait_for(&event[0], -10000) == STATUS_WAIT_0)
        KeSetEvent(&event[0].event, 0, FALSE);
}
LAB_SCENARIO(wo_all_thief, .Setup = two_events, .Threads = {setter, second_setter, all_outside, thief},
             .Finish = all_taken, .Flags = LAB_LARGE);

/* An alert that races with a grant. */
static PKTHREAD volatile sleeper;

static void alertable_waiter(void)
{
    __atomic_store_n(&sleeper, KeGetCurrentThread(), __ATOMIC_RELEASE);
    NTSTATUS status = KeWaitForSingleObject(&event[1], Executive, KernelMode, TRUE, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_ALERTED);
    woken += status == STATUS_WAIT_0;
}

static void alerter(void)
{
    PKTHREAD thread = __atomic_load_n(&sleeper, __ATOMIC_ACQUIRE);
    if (thread != NULL)
        KeAlertThread(thread, KernelMode);
}
LAB_SCENARIO(wo_alert, .Setup = one_event, .Threads = {setter, alertable_waiter, alerter}, .Finish = consumed_once);
/* The thread that alerts reads the number of the wait that it has seen in the register. */
LAB_SCENARIO(wo_alert_c11, .Setup = one_event, .Threads = {setter, alertable_waiter, alerter}, .Finish = consumed_once,
             .Model = "c11");

/* An alert that comes too late for a wait is still there after it. */
static int alerted;

static void alerted_waiter(void)
{
    __atomic_store_n(&sleeper, KeGetCurrentThread(), __ATOMIC_RELEASE);
    NTSTATUS status = KeWaitForSingleObject(&event[1], Executive, KernelMode, TRUE, NULL);
    while (!__atomic_load_n(&alerted, __ATOMIC_ACQUIRE))
        ;
    LabAssert(KeTestAlertThread(KernelMode) == (status == STATUS_WAIT_0));
}

static void certain_alerter(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&sleeper, __ATOMIC_ACQUIRE)) == NULL)
        ;
    KeAlertThread(thread, KernelMode);
    __atomic_store_n(&alerted, 1, __ATOMIC_RELEASE);
}
LAB_SCENARIO(wo_alert_kept, .Setup = one_event, .Threads = {setter, alerted_waiter, certain_alerter});

/* An APC that is withdrawn while the thread that queued it ends the wait. The wait must not continue with a record that the
 * world has released: the setter would not wake it. */
static KAPC apc;

static VOID no_kernel_routine(PKAPC self, PKNORMAL_ROUTINE *normal_routine, PVOID *normal_context, PVOID *argument1,
                              PVOID *argument2)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(normal_routine);
    UNREFERENCED_PARAMETER(normal_context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
}

static void interrupted_waiter(void)
{
    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, no_kernel_routine, NULL, NULL, KernelMode, NULL);
    __atomic_store_n(&sleeper, apc.Thread, __ATOMIC_RELEASE);
    LabAssert(wait_for(&event[1], 0) == STATUS_WAIT_0);
}

static void queue_apc(void)
{
    if (__atomic_load_n(&sleeper, __ATOMIC_ACQUIRE) != NULL)
        KeInsertQueueApc(&apc, NULL, NULL, 0);
}

static void withdraw_apc_and_set(void)
{
    if (__atomic_load_n(&sleeper, __ATOMIC_ACQUIRE) != NULL)
        KeRemoveQueueApc(&apc);
    KeSetEvent(&event[0].event, 0, FALSE);
}
LAB_SCENARIO(wo_apc_withdrawn, .Setup = one_event, .Threads = {interrupted_waiter, queue_apc, withdraw_apc_and_set},
             .Finish = quiet_event);

/* Mutants: one owner at a time; a mutant whose owner ends is reported as abandoned exactly once. */
static void one_mutant(void)
{
    make_world();
    make_object(mutant, WoMutant, MutantObject, 1, 0);
}

static void section(proxy *p, BOOLEAN release)
{
    NTSTATUS status = wait_for(p, 0);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_ABANDONED_WAIT_0);
    LabAssert(inside == 0);
    inside = 1;
    abandoned += status == STATUS_ABANDONED_WAIT_0;
    inside = 0;
    if (release)
        KeReleaseMutant(&p->mutant, 0, FALSE, FALSE);
}

static void enter_here(void)
{
    section(&mutant[0], TRUE);
}

static void enter_there(void)
{
    section(&mutant[1], TRUE);
}

static void enter_and_end(void)
{
    section(&mutant[1], FALSE);
    LabExitThread();
}

static void free_mutant(void)
{
    LabAssert(KeReadStateMutant(&mutant[0].mutant) == 1);
    LabAssert(abandoned <= 1);
    assert_quiet(&mutant[0]);
}
LAB_SCENARIO(wo_mutant, .Setup = one_mutant, .Threads = {enter_here, enter_there}, .Finish = free_mutant);
LAB_SCENARIO(wo_mutant_abandoned, .Setup = one_mutant, .Threads = {enter_here, enter_and_end}, .Finish = free_mutant);

/* A release of two wakes two, wherever they are. */
static void one_semaphore(void)
{
    make_world();
    make_object(semaphore, WoSemaphore, SemaphoreObject, 0, 9);
}

static void release_two(void)
{
    KeReleaseSemaphore(&semaphore[0].semaphore, 0, 2, FALSE);
}

static void take_here(void)
{
    LabAssert(wait_for(&semaphore[0], 0) == STATUS_WAIT_0);
}

static void take_there(void)
{
    LabAssert(wait_for(&semaphore[1], 0) == STATUS_WAIT_0);
}

static void empty_semaphore(void)
{
    LabAssert(KeReadStateSemaphore(&semaphore[0].semaphore) == 0);
    assert_quiet(&semaphore[0]);
}
LAB_SCENARIO(wo_semaphore, .Setup = one_semaphore, .Threads = {release_two, take_here, take_there},
             .Finish = empty_semaphore);

/* A local event moves outside while a thread waits for it and another sets it. */
static KI_OUTSIDE moved;

static void mover(void)
{
    WO_NEW new = {.Type = WoSynchronizationEvent};
    moved.View = &views[0];
    LabAssert(WoCreateObject(&views[0], &new, &moved.Index) == STATUS_SUCCESS);
    LabAssert(KiMoveOutside(&local.Header, &moved) == STATUS_SUCCESS);
}

static void local_waiter(void)
{
    LabAssert(KeWaitForSingleObject(&local, Executive, KernelMode, FALSE, NULL) == STATUS_WAIT_0);
}

static void local_consumed(void)
{
    LabAssert(KeReadStateEvent(&local) == 0);
}
LAB_SCENARIO(wo_move, .Setup = both_kinds, .Threads = {mover, local_setter, local_waiter}, .Finish = local_consumed);

/* The setter finds the event local, and locks it when it has just moved. */
static void prepare_move(void)
{
    WO_NEW new = {.Type = WoSynchronizationEvent};
    both_kinds();
    moved.View = &views[0];
    LabAssert(WoCreateObject(&views[0], &new, &moved.Index) == STATUS_SUCCESS);
}

static void move_prepared(void)
{
    LabAssert(KiMoveOutside(&local.Header, &moved) == STATUS_SUCCESS);
}

static void local_is_set(void)
{
    LabAssert(KiIsOutside(&local.Header) && KeReadStateEvent(&local) == 1);
}
LAB_SCENARIO(wo_move_set, .Setup = prepare_move, .Threads = {move_prepared, local_setter}, .Finish = local_is_set);

/* A packet waits for the event, which may be set before the packet has moved too. */
static KQUEUE notified;
static KOBJECT_NOTIFICATION notification;

static void prepare_notification(void)
{
    prepare_move();
    KeInitializeQueue(&notified, 1);
    LabAssert(KeRegisterObjectNotification(&local, &notified, &notification) == STATUS_PENDING);
}

static void was_notified(void)
{
    WopDeliverNotifications(&views[0]); /* as the thread of the session does */
    LabAssert(KiIsOutside(&local.Header) && KeReadStateEvent(&local) == 0);
    LabAssert(KeReadStateQueue(&notified) == 1);
}
LAB_SCENARIO(wo_move_notified, .Setup = prepare_notification, .Threads = {move_prepared, local_setter}, .Finish = was_notified);

/* While it moves, and is delivered, the packet is cancelled: it is where the cancel says. */
static KNOTIFICATION_CANCEL_RESULT cancelled;

static void cancel_notification(void)
{
    cancelled = KeCancelObjectNotification(&notification, TRUE);
}

static void was_notified_or_cancelled(void)
{
    WopDeliverNotifications(&views[0]);
    LabAssert(KeReadStateEvent(&local) == (cancelled == NotificationCancelled));
    LabAssert(KeReadStateQueue(&notified) == (cancelled == NotificationSignaled));
}
LAB_SCENARIO(wo_move_cancelled, .Setup = prepare_notification, .Threads = {move_prepared, local_setter, cancel_notification},
             .Finish = was_notified_or_cancelled);

/* The world has room for a single notification: the move fails with a second one, and loses none. */
static KOBJECT_NOTIFICATION late;
static WO_INDEX spare_waiter;
static NTSTATUS move_status;

static void fill_world(void)
{
    WO_NEW new = {.Type = WoSynchronizationEvent};
    WO_INDEX index;
    LabAssert(WoCreateWaiter(&views[0], 1, &spare_waiter) == STATUS_SUCCESS);
    while (WoCreateWaiter(&views[0], 1, &index) == STATUS_SUCCESS)
        continue;
    while (WoCreateObject(&views[0], &new, &index) == STATUS_SUCCESS)
        continue;
    WoDeleteWaiter(&views[0], spare_waiter);
}

static void prepare_full_world(void)
{
    prepare_notification();
    fill_world();
}

static void move_if_possible(void)
{
    move_status = KiMoveOutside(&local.Header, &moved);
    LabAssert(move_status == STATUS_SUCCESS || move_status == STATUS_INSUFFICIENT_RESOURCES);
}

static NTSTATUS registered;

static void register_late(void)
{
    registered = KeRegisterObjectNotification(&local, &notified, &late);
    LabAssert(registered == STATUS_PENDING || registered == STATUS_INSUFFICIENT_RESOURCES);
}

/* What is registered gets a signal, wherever the event is by now. */
static void none_is_lost(void)
{
    LONG expected = registered == STATUS_PENDING ? 2 : 1;
    LabAssert(KiIsOutside(&local.Header) == (move_status == STATUS_SUCCESS));
    LabAssert(registered == STATUS_PENDING || move_status == STATUS_SUCCESS);
    LabAssert(expected == 1 || move_status != STATUS_SUCCESS); /* both have no room there */
    for (LONG signals = 0; signals < 2; signals++) {
        KeSetEvent(&local, 0, FALSE);
        WopDeliverNotifications(&views[0]);
    }
    LabAssert(KeReadStateQueue(&notified) == expected);
    LabAssert(KeReadStateEvent(&local) == 2 - expected);
    if (move_status != STATUS_SUCCESS) { /* and the reserved room is free again */
        LabAssert(WoCreateWaiter(&views[0], 1, &spare_waiter) == STATUS_SUCCESS);
    }
}
LAB_SCENARIO(wo_move_without_room, .Setup = prepare_full_world, .Threads = {move_if_possible, register_late},
             .Finish = none_is_lost);

/* With room for all, both move, or the second is registered outside. */
static void both_are_notified(void)
{
    LabAssert(move_status == STATUS_SUCCESS && registered == STATUS_PENDING);
    for (unsigned signals = 0; signals < 2; signals++) {
        KeSetEvent(&local, 0, FALSE);
        WopDeliverNotifications(&views[0]);
    }
    LabAssert(KeReadStateQueue(&notified) == 2 && KeReadStateEvent(&local) == 0);
    LabAssert(views[0].World->Waiters == 0); /* nothing stays reserved */
}
LAB_SCENARIO(wo_move_registered, .Setup = prepare_notification, .Threads = {move_if_possible, register_late},
             .Finish = both_are_notified);

/* Room was reserved for one that is cancelled before the event is moved. */
static void late_is_notified(void)
{
    LabAssert(move_status == STATUS_SUCCESS && registered == STATUS_PENDING && cancelled == NotificationCancelled);
    KeSetEvent(&local, 0, FALSE);
    WopDeliverNotifications(&views[0]);
    LabAssert(KeReadStateQueue(&notified) == 1 && KeReadStateEvent(&local) == 0);
    LabAssert(views[0].World->Waiters == 0);
}
LAB_SCENARIO(wo_move_registered_cancelled, .Setup = prepare_notification,
             .Threads = {move_if_possible, register_late, cancel_notification}, .Finish = late_is_notified);

/* A mutant moves while another thread acquires and releases it: it is moved free, or stays with its owner. */
static KMUTANT own;
static NTSTATUS moving;

static void local_mutant(void)
{
    make_world();
    KeInitializeMutant(&own, FALSE);
}

static void mutant_mover(void)
{
    WO_NEW new = {.Type = WoMutant, .State = 1};
    moved.View = &views[0];
    LabAssert(WoCreateObject(&views[0], &new, &moved.Index) == STATUS_SUCCESS);
    moving = KiMoveOutside(&own.Header, &moved);
    LabAssert(moving == STATUS_SUCCESS || moving == STATUS_MUTANT_NOT_OWNED);
}

static void mutant_user(void)
{
    LabAssert(KeWaitForSingleObject(&own, Executive, KernelMode, FALSE, NULL) == STATUS_WAIT_0);
    LabAssert(inside == 0);
    inside = 1;
    inside = 0;
    KeReleaseMutant(&own, 0, FALSE, FALSE);
}

static void mutant_is_free(void)
{
    LabAssert(KeReadStateMutant(&own) == 1);
    LabAssert(KiIsOutside(&own.Header) == (moving == STATUS_SUCCESS));
}
LAB_SCENARIO(wo_move_mutant, .Setup = local_mutant, .Threads = {mutant_mover, mutant_user}, .Finish = mutant_is_free);
LAB_SCENARIO(wo_move_mutant_contended, .Setup = local_mutant, .Threads = {mutant_mover, mutant_user, mutant_user},
             .Finish = mutant_is_free);
