/* The objects of the thread pool: timers, waits that time out, registered waits, cleanup groups, completion actions.
   After a wait for an object's callbacks, or a release of its group, none of its callbacks runs. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

static HANDLE event;
static HANDLE semaphore;
static int ran, cancelled, over, inside;
static PTP_TIMER timer;
static PTP_WAIT wait;
static PTP_WORK work;
static LARGE_INTEGER soon = {.QuadPart = -10000};

static void setup(void)
{
    RtlpTimeout = 0;
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
}

static void count_run(void)
{
    LabAssert(!__atomic_load_n(&over, __ATOMIC_RELAXED));
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static int runs(void)
{
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&ran, __ATOMIC_RELAXED);
}

static LONG event_state(void)
{
    EVENT_BASIC_INFORMATION information = {0};
    NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL);
    return information.EventState;
}

static void setter(void)
{
    NtSetEvent(event, NULL);
}

/* Timers: reset in time, or the callback runs, once. */
static VOID timer_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    LabAssert(item == timer);
    count_run();
}

static void setup_timer(void)
{
    setup();
    LabAssert(TpAllocTimer(&timer, timer_callback, NULL, NULL) == STATUS_SUCCESS);
}

static void set_and_unset(void)
{
    TpSetTimer(timer, &soon, 0, 0);
    LOGICAL was_set = TpSetTimerEx(timer, NULL, 0, 0);
    TpWaitForTimer(timer, FALSE);
    LabAssert(runs() == !was_set);
    TpReleaseTimer(timer);
}

static void set_and_cancel(void)
{
    TpSetTimer(timer, &soon, 0, 0);
    TpSetTimer(timer, NULL, 0, 0);
    TpWaitForTimer(timer, TRUE);
    LabAssert(runs() <= 1);
    TpReleaseTimer(timer);
}
LAB_SCENARIO(pool_timer_unset, .Setup = setup_timer, .Threads = {set_and_unset}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_timer_cancelled, .Setup = setup_timer, .Threads = {set_and_cancel}, .Flags = LAB_LARGE);

/* Waits: signal or timeout, once; the callback that reports the signal has consumed it. */
static VOID wait_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT item, TP_WAIT_RESULT result)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    LabAssert(item == wait);
    LabAssert(result == STATUS_WAIT_0 || result == STATUS_TIMEOUT);
    cancelled = result == STATUS_TIMEOUT;
    count_run();
}

static void setup_wait(void)
{
    setup();
    LabAssert(TpAllocWait(&wait, wait_callback, NULL, NULL) == STATUS_SUCCESS);
    TpSetWait(wait, event, &soon);
}

static void signaled_or_timed_out(void)
{
    LabAssert(ran == 1 && event_state() == cancelled);
}
LAB_SCENARIO(pool_wait_timeout, .Setup = setup_wait, .Threads = {setter}, .Finish = signaled_or_timed_out,
             .Flags = LAB_LARGE);

/* Registered waits. */
static HANDLE registered;

static VOID registered_callback(PVOID context, BOOLEAN timed_out)
{
    UNREFERENCED_PARAMETER(context);
    LabAssert(!timed_out);
    count_run();
}

static void setup_registered(void)
{
    setup();
    LabAssert(RtlRegisterWait(&registered, event, registered_callback, NULL, MAXULONG, WT_EXECUTEONLYONCE) ==
              STATUS_SUCCESS);
}

static void set_twice(void)
{
    setter();
    setter();
}

static void deregister(void)
{
    LabAssert(RtlDeregisterWaitEx(registered, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    LabAssert(runs() <= 1);
}

/* It is never signaled: a callback that begins while the wait is deregistered reports a timeout. */
static VOID timeout_callback(PVOID context, BOOLEAN timed_out)
{
    UNREFERENCED_PARAMETER(context);
    LabAssert(timed_out);
    count_run();
}

static void setup_registered_timeout(void)
{
    setup();
    LabAssert(RtlRegisterWait(&registered, event, timeout_callback, NULL, 1, WT_EXECUTEONLYONCE) == STATUS_SUCCESS);
}

/* No count is lost: each has a callback, or is still there when the wait is deregistered. */
static void setup_counts(ULONG flags)
{
    setup();
    LabAssert(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, 2) == STATUS_SUCCESS);
    LabAssert(RtlRegisterWait(&registered, semaphore, registered_callback, NULL, MAXULONG, flags) == STATUS_SUCCESS);
}

static void setup_counts_once(void)
{
    setup_counts(WT_EXECUTEONLYONCE);
}

static void setup_counts_overlapping(void)
{
    setup_counts(WT_EXECUTEDEFAULT);
}

static void release_two(void)
{
    NtReleaseSemaphore(semaphore, 2, NULL);
}

static void deregister_waiting(void)
{
    LabAssert(RtlDeregisterWaitEx(registered, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    runs();
}

static void no_count_is_lost(void)
{
    SEMAPHORE_BASIC_INFORMATION information = {0};
    NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL);
    LabAssert(ran + (int)information.CurrentCount == 2);
}
LAB_SCENARIO(pool_registered_counts_once, .Setup = setup_counts_once, .Threads = {release_two, deregister_waiting},
             .Finish = no_count_is_lost, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_registered_counts, .Setup = setup_counts_overlapping, .Threads = {release_two, deregister_waiting},
             .Finish = no_count_is_lost, .Flags = LAB_LARGE);

/* A mutex is free after the wait for it was deregistered: untouched, or abandoned by the thread that waited. */
static HANDLE mutant;

static void setup_registered_mutex(void)
{
    setup();
    LabAssert(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, FALSE) == STATUS_SUCCESS);
    LabAssert(RtlRegisterWait(&registered, mutant, registered_callback, NULL, MAXULONG, WT_EXECUTEONLYONCE) ==
              STATUS_SUCCESS);
}

static void deregister_mutex(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    deregister_waiting();
    NTSTATUS status = NtWaitForSingleObject(mutant, FALSE, &now);
    LabAssert(status == (runs() ? STATUS_ABANDONED : STATUS_SUCCESS));
}
LAB_SCENARIO(pool_registered_mutex, .Setup = setup_registered_mutex, .Threads = {deregister_mutex}, .Flags = LAB_LARGE);

/* Timer queues: a callback that is outstanding when its timer is deleted occurs. */
static HANDLE queued_timer;
static NTSTATUS deleted;

static VOID queue_callback(PVOID context, BOOLEAN fired)
{
    UNREFERENCED_PARAMETER(context);
    LabAssert(fired);
    count_run();
}

static void setup_queued_timer(void)
{
    setup();
    LabAssert(RtlCreateTimer(NULL, &queued_timer, queue_callback, NULL, 1, 0, 0) == STATUS_SUCCESS);
}

static void setup_due_timer(void)
{
    setup();
    LabAssert(RtlCreateTimer(NULL, &queued_timer, queue_callback, NULL, 0, 0, 0) == STATUS_SUCCESS);
}

static void delete_timer(void)
{
    deleted = RtlDeleteTimer(NULL, queued_timer, NULL);
}

static void outstanding_ran(void)
{
    LabAssert(ran <= 1 && (deleted != STATUS_PENDING || ran == 1));
}

/* A timer that has expired before: the event is set after its callback. */
static void delete_due_timer(void)
{
    NTSTATUS status = RtlDeleteTimer(NULL, queued_timer, event);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_PENDING);
    LabAssert(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(runs() == 1);
}

static void delete_due_timer_waiting(void)
{
    LabAssert(RtlDeleteTimer(NULL, queued_timer, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    LabAssert(runs() == 1);
}
LAB_SCENARIO(pool_queue_timer_deleted, .Setup = setup_queued_timer, .Threads = {delete_timer},
             .Finish = outstanding_ran, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_queue_timer_due, .Setup = setup_due_timer, .Threads = {delete_due_timer}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_queue_timer_due_wait, .Setup = setup_due_timer, .Threads = {delete_due_timer_waiting},
             .Flags = LAB_LARGE);

LAB_SCENARIO(pool_registered_timeout, .Setup = setup_registered_timeout, .Threads = {deregister}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_registered_wait, .Setup = setup_registered, .Threads = {set_twice, deregister}, .Flags = LAB_LARGE);

/* Cleanup groups: a callback has run, or was cancelled with a call of the cancel callback, never both. */
static PTP_CLEANUP_GROUP group;

static VOID work_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    __atomic_store_n(&inside, 1, __ATOMIC_RELAXED);
    count_run();
    __atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
}

/* It may free what the callback uses. */
static VOID cancel_callback(PVOID context, PVOID parameter)
{
    LabAssert(context == &ran && parameter == &cancelled);
    LabAssert(!__atomic_load_n(&inside, __ATOMIC_RELAXED));
    cancelled += 1;
}

static void setup_group_of(PTP_WORK_CALLBACK callback)
{
    TP_CALLBACK_ENVIRON environment;
    setup();
    TpInitializeCallbackEnviron(&environment);
    LabAssert(TpAllocCleanupGroup(&group) == STATUS_SUCCESS);
    TpSetCallbackCleanupGroup(&environment, group, cancel_callback);
    LabAssert(TpAllocWork(&work, callback, &ran, &environment) == STATUS_SUCCESS);
}

static void setup_group(void)
{
    setup_group_of(work_callback);
}

static void release_cancelling(void)
{
    TpPostWork(work);
    TpReleaseCleanupGroupMembers(group, TRUE, &cancelled);
    LabAssert(runs() <= 1 && cancelled == 1); /* called for each member, whether or not a callback was pending */
    TpReleaseCleanupGroup(group);
}

static void release_waiting(void)
{
    TpPostWork(work);
    TpReleaseCleanupGroupMembers(group, FALSE, &cancelled);
    LabAssert(runs() == 1 && cancelled == 0);
    TpReleaseCleanupGroup(group);
}
LAB_SCENARIO(pool_group_cancel, .Setup = setup_group, .Threads = {release_cancelling}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_group_wait, .Setup = setup_group, .Threads = {release_waiting}, .Flags = LAB_LARGE);

/* A member that its callback closes is not cancelled as well: the callback may have freed its context. */
static VOID closing_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    work_callback(instance, context, item);
    TpReleaseWork(item);
}

static void setup_closing_group(void)
{
    setup_group_of(closing_callback);
}

static void release_closing(void)
{
    TpPostWork(work);
    TpReleaseCleanupGroupMembers(group, TRUE, &cancelled);
    LabAssert(runs() + cancelled == 1);
    TpReleaseCleanupGroup(group);
}

/* A callback that has disassociated itself still belongs to its group. */
static VOID leaving_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    TpDisassociateCallback(instance);
    work_callback(instance, context, item);
}

static void setup_leaving_group(void)
{
    setup_group_of(leaving_callback);
}

static void release_leaving(void)
{
    TpPostWork(work);
    TpWaitForWork(work, FALSE);
    TpReleaseWork(work);
    TpReleaseCleanupGroupMembers(group, FALSE, NULL);
    LabAssert(runs() == 1);
    TpReleaseCleanupGroup(group);
}
LAB_SCENARIO(pool_group_closing_member, .Setup = setup_closing_group, .Threads = {release_closing}, .Flags = LAB_LARGE);
LAB_SCENARIO(pool_group_disassociated, .Setup = setup_leaving_group, .Threads = {release_leaving}, .Flags = LAB_LARGE);

static VOID wait_for_event(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    TpCallbackSetEventOnCompletion(instance, event);
    TpDisassociateCallback(instance);
    count_run();
}

/* Completion actions come after the callback, even if no thread waits for the callback any longer. */
static void setup_disassociating(void)
{
    setup();
    LabAssert(TpAllocWork(&work, wait_for_event, NULL, NULL) == STATUS_SUCCESS);
}

static void post_and_wait_for_event(void)
{
    TpPostWork(work);
    TpWaitForWork(work, FALSE);
    TpReleaseWork(work);
    LabAssert(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(runs() == 1);
}
LAB_SCENARIO(pool_event_after_callback, .Setup = setup_disassociating, .Threads = {post_and_wait_for_event},
             .Flags = LAB_LARGE);

/* No memory, no threads: an accepted callback runs without further calls, and a refused one does not. */
static VOID simple_callback(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    count_run();
    NtSetEvent(event, NULL);
}

static void try_post(void)
{
    NTSTATUS status = TpSimpleTryPost(simple_callback, NULL, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES);
    if (status == STATUS_SUCCESS)
        LabAssert(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(runs() == (status == STATUS_SUCCESS));
}
LAB_SCENARIO(pool_no_memory, .Setup = setup, .Threads = {try_post}, .AllocationFailures = 2, .Flags = LAB_LARGE);

/* A private pool that is released while its work runs. */
static PTP_POOL pool;

static void setup_pool(void)
{
    TP_CALLBACK_ENVIRON environment;
    setup();
    TpInitializeCallbackEnviron(&environment);
    LabAssert(TpAllocPool(&pool, NULL) == STATUS_SUCCESS);
    TpSetPoolMaxThreads(pool, 1);
    TpSetCallbackThreadpool(&environment, pool);
    LabAssert(TpAllocWork(&work, work_callback, NULL, &environment) == STATUS_SUCCESS);
}

static void post_and_release_pool(void)
{
    TpPostWork(work);
    TpReleasePool(pool);
    TpWaitForWork(work, FALSE);
    LabAssert(runs() == 1);
    TpReleaseWork(work);
}
LAB_SCENARIO(pool_released, .Setup = setup_pool, .Threads = {post_and_release_pool}, .Flags = LAB_LARGE);
