/* Events: set against wait, two waiters, reset, pulse, timeout. */
#include <interlock/lab.h>

#include <ntddk.h>

static KEVENT event;
static int data;
static int woken;

static void notification(void)
{
    KeInitializeEvent(&event, NotificationEvent, FALSE);
}

static void synchronization(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void setter(void)
{
    data = 1;
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void waiter(void)
{
    NTSTATUS status = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS);
    LabAssert(data == 1);
}
LAB_SCENARIO(event_handover, .Setup = notification, .Threads = {setter, waiter}, .SpuriousWakes = 1);
LAB_SCENARIO(event_handover_c11, .Setup = notification, .Threads = {setter, waiter}, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(event_two_waiters, .Setup = notification, .Threads = {setter, waiter, waiter});

/* The thread that gets a synchronization event passes it on. */
static void relay(void)
{
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    woken += 1;
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void both_woken(void)
{
    LabAssert(woken == 2 && KeReadStateEvent(&event) == 1);
}
LAB_SCENARIO(event_relay, .Setup = synchronization, .Threads = {setter, relay, relay}, .Finish = both_woken);

static void timed_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    if (status == STATUS_SUCCESS)
        __atomic_fetch_add(&woken, 1, __ATOMIC_RELAXED);
}

/* Exactly one waiter consumes the signal, or it remains. */
static void consumed_once(void)
{
    LabAssert(woken + KeReadStateEvent(&event) == 1);
}
LAB_SCENARIO(event_timeout, .Setup = synchronization, .Threads = {timed_waiter, timed_waiter, setter},
             .Finish = consumed_once);

static void pulser(void)
{
    KePulseEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void is_reset(void)
{
    LabAssert(KeReadStateEvent(&event) == 0);
}
LAB_SCENARIO(event_pulse, .Setup = notification, .Threads = {timed_waiter, timed_waiter, pulser}, .Finish = is_reset);
