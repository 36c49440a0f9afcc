/* Alerts, APCs and suspension against a wait that a signal may end at the same moment. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "target.h"

static KEVENT event;
static KAPC apc;
static int delivered, ran, outcome;

static void setup(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void alertable_waiter(void)
{
    announce();
    NTSTATUS status = KeWaitForSingleObject(&event, Executive, KernelMode, TRUE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ALERTED);
    outcome = status;
}

static void alerter(void)
{
    KeAlertThread(find_target(), KernelMode);
}

/* Either the event was consumed or it is still set. */
static void consumed_or_set(void)
{
    LabAssert(KeReadStateEvent(&event) == (outcome == STATUS_SUCCESS ? 0 : 1));
}
LAB_SCENARIO(alert_against_set, .Setup = setup, .Threads = {alertable_waiter, alerter, setter},
             .Finish = consumed_or_set);

static void alerted_waiter(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, TRUE, NULL) == STATUS_ALERTED);
}
LAB_SCENARIO(alert_only, .Setup = setup, .Threads = {alerted_waiter, alerter});

static VOID kernel_routine(PKAPC routine_apc, PKNORMAL_ROUTINE *normal_routine, PVOID *normal_context, PVOID *argument1,
                           PVOID *argument2)
{
    UNREFERENCED_PARAMETER(routine_apc);
    UNREFERENCED_PARAMETER(normal_routine);
    UNREFERENCED_PARAMETER(normal_context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    delivered += 1;
}

/* An APC that is too late for the wait runs when the region is left. */
static void waiter_with_apc(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    ran = 1;
}

static void queue_special_apc(void)
{
    KeInitializeApc(&apc, find_target(), OriginalApcEnvironment, kernel_routine, NULL, NULL, KernelMode, NULL);
    LabAssert(KeInsertQueueApc(&apc, NULL, NULL, 0));
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void delivered_once(void)
{
    LabAssert(delivered == 1 && ran == 1);
}
LAB_SCENARIO(apc_against_set, .Setup = setup, .Threads = {waiter_with_apc, queue_special_apc},
             .Finish = delivered_once);

/* A suspended thread runs again after it was resumed, and misses no signal. */
static void suspender(void)
{
    PKTHREAD thread = find_target();
    KeSuspendThread(thread);
    KeResumeThread(thread);
}

static void plain_waiter(void)
{
    announce();
    LabAssert(KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    ran = 1;
}

static void it_ran(void)
{
    LabAssert(ran == 1 && KeReadStateEvent(&event) == 0);
}
LAB_SCENARIO(suspend_against_set, .Setup = setup, .Threads = {plain_waiter, suspender, setter}, .Finish = it_ran);

static void delayer(void)
{
    LARGE_INTEGER interval = {.QuadPart = -10000};
    announce();
    LabAssert(KeDelayExecutionThread(KernelMode, FALSE, &interval) == STATUS_SUCCESS);
    ran = 1;
}

static void it_was_there(void)
{
    LabAssert(ran == 1);
}
LAB_SCENARIO(suspend_against_delay, .Setup = setup, .Threads = {delayer, suspender}, .Finish = it_was_there);
