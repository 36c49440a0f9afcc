/* Alerts by thread id: kept until consumed, consumed once, not lost to a timeout or a suspension. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

static int data[2];
static int taken;
static NTSTATUS waited;

/* The machine numbers its threads consecutively, so this is the first one in the list. */
static HANDLE id_of_first(void)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread());
}

static void alerter(void)
{
    data[0] = 1;
    LabAssert(NtAlertThreadByThreadId(id_of_first()) == STATUS_SUCCESS);
}

static void waiter(void)
{
    LabAssert(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    LabAssert(data[0] == 1);
}
LAB_SCENARIO(alert_by_id_handover, .Threads = {waiter, alerter}, .SpuriousWakes = 1);
LAB_SCENARIO(alert_by_id_handover_c11, .Threads = {waiter, alerter}, .Model = "c11", .StaleReads = 2);

/* Two alerts may merge, but the thread that consumes the last one sees what was done before both. */
static void second_alerter(void)
{
    data[1] = 1;
    NtAlertThreadByThreadId(id_of_first());
}

static void waiter_for_both(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    LabAssert(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    taken = 1 + (NtWaitForAlertByThreadId(NULL, &now) == STATUS_ALERTED);
    if (taken == 2)
        LabAssert(data[0] == 1 && data[1] == 1);
}
LAB_SCENARIO(alert_by_id_two, .Threads = {waiter_for_both, alerter, second_alerter});

/* The alert does not end another wait, not even an alertable one, and is still pending after it. */
static KEVENT event;

static void setup_event(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void alertable_waiter(void)
{
    LabAssert(KeWaitForSingleObject(&event, Executive, UserMode, TRUE, NULL) == STATUS_SUCCESS);
    LabAssert(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
}
LAB_SCENARIO(alert_by_id_other_wait, .Setup = setup_event, .Threads = {alertable_waiter, alerter, setter});

/* An alert that a timed wait did not consume is pending for the next one; one that it consumed is not. */
static void timed_waiter(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};
    LARGE_INTEGER now = {.QuadPart = 0};
    waited = NtWaitForAlertByThreadId(NULL, &soon);
    if (waited == STATUS_TIMEOUT)
        LabAssert(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    else
        LabAssert(waited == STATUS_ALERTED);
    LabAssert(NtWaitForAlertByThreadId(NULL, &now) == STATUS_TIMEOUT);
}
LAB_SCENARIO(alert_by_id_timeout, .Threads = {timed_waiter, alerter});

/* A pending alert satisfies a zero timeout, once. */
static void alert_and_poll(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    LabAssert(NtAlertThreadByThreadId(PsGetCurrentThreadId()) == STATUS_SUCCESS);
    LabAssert(NtWaitForAlertByThreadId(NULL, &now) == STATUS_ALERTED);
    LabAssert(NtWaitForAlertByThreadId(NULL, &now) == STATUS_TIMEOUT);
}
LAB_SCENARIO(alert_by_id_poll, .Threads = {alert_and_poll});
