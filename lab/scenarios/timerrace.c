/* Timers: setting, cancelling, expiring, DPCs, periods, executive timers. The clock is a thread of the library. */
#include <interlock/lab.h>

#include <ntifs.h>

enum { SET, CANCEL, WAIT, EXPIRE };

#define SOON (-10000)

static KTIMER timer;
static KDPC dpc;
static int settings, ran;

static void notification(void)
{
    KeInitializeTimerEx(&timer, NotificationTimer);
}

static void synchronization(void)
{
    KeInitializeTimerEx(&timer, SynchronizationTimer);
}

/* Histories. The expiration begins before the timer is set and never ends. */
static void record_set(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    settings += 1;
    LabBegin(EXPIRE, settings);
    unsigned operation = LabBegin(SET, settings);
    LabEnd(operation, KeSetTimer(&timer, due, NULL));
}

static void recorded_setter(void)
{
    record_set();
    record_set();
}

/* So far away that it does not expire: only one result is right. */
static void recorded_far_setter(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000000LL * 3600 * 48};
    for (int i = 1; i <= 2; i++) {
        unsigned operation = LabBegin(SET, i);
        LabEnd(operation, KeSetTimer(&timer, due, NULL));
    }
}

static void recorded_canceller(void)
{
    unsigned operation = LabBegin(CANCEL, 0);
    LabEnd(operation, KeCancelTimer(&timer));
}

static void recorded_poller(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(WAIT, 0);
        LabEnd(operation, KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, &now) == STATUS_SUCCESS);
    }
}

static void is_a_notification_timer(void)
{
    LabCheckLinearizable(&LabModelNotificationTimer);
}

static void is_a_synchronization_timer(void)
{
    LabCheckLinearizable(&LabModelSynchronizationTimer);
}
LAB_SCENARIO(timer_history_cancel, .Setup = notification, .Threads = {recorded_far_setter, recorded_canceller},
             .Finish = is_a_notification_timer, .Flags = LAB_LARGE);
LAB_SCENARIO(timer_history, .Setup = synchronization, .Threads = {recorded_setter, recorded_canceller, recorded_poller},
             .Finish = is_a_synchronization_timer, .Flags = LAB_LARGE);

/* With a DPC: it runs for each expiration, never for a timer that was cancelled in time. */
static VOID count_run(PKDPC self, PVOID context, PVOID argument1, PVOID argument2)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    ran += 1; /* no race: one DPC, and the reader has flushed */
}

static void with_dpc(void)
{
    notification();
    KeInitializeDpc(&dpc, count_run, NULL);
}

static void set_cancel_flush(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    LabAssert(!KeSetTimer(&timer, due, &dpc));
    BOOLEAN cancelled = KeCancelTimer(&timer);
    LabAssert(cancelled || KeReadStateTimer(&timer));
    KeFlushQueuedDpcs();
    LabAssert(ran == !cancelled);
}
LAB_SCENARIO(timer_dpc_cancelled, .Setup = with_dpc, .Threads = {set_cancel_flush}, .Flags = LAB_LARGE);

/* Set again: the first due time no longer counts. */
static void set_again(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    KeSetTimer(&timer, due, &dpc);
    BOOLEAN was_set = KeSetTimer(&timer, due, NULL);
    LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeFlushQueuedDpcs();
    LabAssert(ran == !was_set);
}
LAB_SCENARIO(timer_dpc_set_again, .Setup = with_dpc, .Threads = {set_again}, .Flags = LAB_LARGE);

/* A periodic timer is signaled repeatedly until it is cancelled. */
static void wait_twice_and_cancel(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    KeSetTimerEx(&timer, due, 1, NULL);
    for (int i = 0; i < 2; i++)
        LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(KeCancelTimer(&timer));
    LabAssert(!KeCancelTimer(&timer));
}
LAB_SCENARIO(timer_periodic, .Setup = synchronization, .Threads = {wait_twice_and_cancel}, .Flags = LAB_LARGE);

/* It expires within its tolerance, together with others that are due then. */
static KTIMER other;

static void set_coalescing(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    KeInitializeTimer(&other);
    ULONGLONG before = KeQueryInterruptTime();
    KeSetCoalescableTimer(&timer, due, 0, 50, NULL);
    KeSetTimer(&other, due, NULL);
    LabAssert(KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(KeQueryInterruptTime() >= before - SOON);
    LabAssert(KeWaitForSingleObject(&other, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(timer_coalescing, .Setup = notification, .Threads = {set_coalescing}, .Flags = LAB_LARGE);

/* The clock expires two timers together while another thread locks both to wait for them. */
static void two_notifications(void)
{
    notification();
    KeInitializeTimer(&other);
}

static void set_two(PKTIMER first, PKTIMER second)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    KeSetCoalescableTimer(first, due, 0, 50, NULL);
    KeSetCoalescableTimer(second, due, 0, 50, NULL);
}

static void set_one_and_other(void)
{
    set_two(&timer, &other);
}

static void set_other_and_one(void)
{
    set_two(&other, &timer);
}

static void wait_for_both(void)
{
    PVOID objects[] = {&other, &timer};
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) ==
              STATUS_SUCCESS);
}
LAB_SCENARIO(timer_two_at_once, .Setup = two_notifications, .Threads = {set_one_and_other, wait_for_both},
             .Flags = LAB_LARGE);
LAB_SCENARIO(timer_two_at_once_other_first, .Setup = two_notifications, .Threads = {set_other_and_one, wait_for_both},
             .Flags = LAB_LARGE);

/* A timer that is freed as soon as it is known not to be set. */
static PKTIMER heap_timer;

static void setup_heap(void)
{
    heap_timer = LabAllocate(sizeof(*heap_timer));
    KeInitializeTimer(heap_timer);
}

static void set_cancel_free(void)
{
    LARGE_INTEGER due = {.QuadPart = SOON};
    KeSetTimer(heap_timer, due, NULL);
    KeCancelTimer(heap_timer);
    LabFree(heap_timer);
}
LAB_SCENARIO(timer_freed, .Setup = setup_heap, .Threads = {set_cancel_free});

/* Executive timers: after a delete with wait no callback runs; without, the timer is freed with its last callback. */
static int deleted;

static VOID callback(PEX_TIMER self, PVOID context)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    LabAssert(!__atomic_load_n(&deleted, __ATOMIC_RELAXED));
    ran += 1;
}

static void setup_executive(void)
{
    KeQueryInterruptTime();
}

static void set_and_delete(void)
{
    PEX_TIMER mine = ExAllocateTimer(callback, NULL, 0);
    ExSetTimer(mine, SOON, 0, NULL);
    BOOLEAN cancelled = ExDeleteTimer(mine, TRUE, TRUE, NULL);
    __atomic_store_n(&deleted, 1, __ATOMIC_RELAXED);
    LabAssert(ran == !cancelled);
}

static VOID when_deleted(PVOID context)
{
    KeSetEvent(context, IO_NO_INCREMENT, FALSE);
}

static void set_and_abandon(void)
{
    KEVENT gone;
    EXT_DELETE_PARAMETERS parameters;
    KeInitializeEvent(&gone, NotificationEvent, FALSE);
    ExInitializeDeleteTimerParameters(&parameters);
    parameters.DeleteCallback = when_deleted;
    parameters.DeleteContext = &gone;
    PEX_TIMER mine = ExAllocateTimer(callback, NULL, 0);
    ExSetTimer(mine, SOON, 0, NULL);
    BOOLEAN cancelled = ExDeleteTimer(mine, LabChoose(2) == 1, FALSE, &parameters);
    LabAssert(KeWaitForSingleObject(&gone, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(ran == !cancelled);
}
LAB_SCENARIO(executive_timer_deleted, .Setup = setup_executive, .Threads = {set_and_delete},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);
LAB_SCENARIO(executive_timer_abandoned, .Setup = setup_executive, .Threads = {set_and_abandon},
             .Flags = LAB_LARGE | LAB_CHECK_LEAKS);
