/* The thread pool: each post runs once, a wait runs once per signal, and a thread that waits sees the effects. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

static PTP_WORK work;
static PTP_WAIT wait;
static HANDLE event;
static int ran;
static int data;

static VOID count_run(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    LabAssert(__atomic_load_n(&data, __ATOMIC_RELAXED) == 1);
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static void setup_work(void)
{
    RtlpTimeout = 0;
    LabAssert(TpAllocWork(&work, count_run, NULL, NULL) == STATUS_SUCCESS);
}

static void poster(void)
{
    __atomic_store_n(&data, 1, __ATOMIC_RELAXED);
    TpPostWork(work);
    TpWaitForWork(work, FALSE);
    LabAssert(__atomic_load_n(&ran, __ATOMIC_RELAXED) >= 1);
}

static void canceller(void)
{
    __atomic_store_n(&data, 1, __ATOMIC_RELAXED);
    TpPostWork(work);
    TpWaitForWork(work, TRUE);
    int now = __atomic_load_n(&ran, __ATOMIC_RELAXED);
    LabAssert(now <= 1);
    TpReleaseWork(work);
}

static void ran_once(void)
{
    LabAssert(ran == 1);
}

static void ran_twice(void)
{
    LabAssert(ran == 2);
}
LAB_SCENARIO(pool_work, .Setup = setup_work, .Threads = {poster}, .Finish = ran_once);
LAB_SCENARIO(pool_work_twice, .Setup = setup_work, .Threads = {poster, poster}, .Finish = ran_twice);
LAB_SCENARIO(pool_work_cancelled, .Setup = setup_work, .Threads = {canceller});

/* Several pending at a time: a worker goes from one to the next while the task stays queued. */
static void row_poster(void)
{
    __atomic_store_n(&data, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        TpPostWork(work);
    TpWaitForWork(work, FALSE);
    LabAssert(__atomic_load_n(&ran, __ATOMIC_RELAXED) == 3);
    TpReleaseWork(work);
}

static void row_canceller(void)
{
    __atomic_store_n(&data, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        TpPostWork(work);
    TpWaitForWork(work, TRUE);
    int now = __atomic_load_n(&ran, __ATOMIC_RELAXED);
    LabAssert(now <= 3);
    TpReleaseWork(work);
    LabAssert(__atomic_load_n(&ran, __ATOMIC_RELAXED) == now);
}
LAB_SCENARIO(pool_work_row, .Setup = setup_work, .Threads = {row_poster}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_work_row_cancelled, .Setup = setup_work, .Threads = {row_canceller}, .Flags = LAB_LARGE);

static VOID count_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT item, TP_WAIT_RESULT result)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    LabAssert(result == STATUS_WAIT_0 && __atomic_load_n(&data, __ATOMIC_RELAXED) == 1);
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static void setup_wait(void)
{
    RtlpTimeout = 0;
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
    LabAssert(TpAllocWait(&wait, count_wait, NULL, NULL) == STATUS_SUCCESS);
    TpSetWait(wait, event, NULL);
}

static void setter(void)
{
    __atomic_store_n(&data, 1, __ATOMIC_RELAXED);
    NtSetEvent(event, NULL);
}

/* The callback runs, or the event stays signaled; exactly one of the two. */
static void disarmer(void)
{
    TpSetWait(wait, NULL, NULL);
    TpWaitForWait(wait, FALSE);
}

static void ran_or_signaled(void)
{
    EVENT_BASIC_INFORMATION information = {0};
    NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL);
    LabAssert(ran + information.EventState == 1);
}
LAB_SCENARIO(pool_wait, .Setup = setup_wait, .Threads = {setter}, .Finish = ran_once);
LAB_SCENARIO(pool_wait_disarmed, .Setup = setup_wait, .Threads = {setter, disarmer}, .Finish = ran_or_signaled);
