/* pool.c: the thread pool: work, waits, timers, cleanup groups, and the older interfaces to it. */
#include "soak.h"

#define SUBMISSIONS 4

static PTP_POOL pool;

static void pool_setup(void)
{
    pool = CreateThreadpool(NULL);
    require(pool != NULL);
    SetThreadpoolThreadMaximum(pool, 3);
    require(SetThreadpoolThreadMinimum(pool, 1));
}

static void pool_check(void)
{
    CloseThreadpool(pool);
}

static void prepare(PTP_CALLBACK_ENVIRON how, test_random *random)
{
    InitializeThreadpoolEnvironment(how);
    if (one_in(random, 2))
        SetThreadpoolCallbackPool(how, pool);
    SetThreadpoolCallbackPriority(how, (TP_CALLBACK_PRIORITY)random_below(random, 3));
}

/* Work: every submission runs, or was cancelled; then none of its callbacks runs. */

static VOID CALLBACK count_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)work;
    if (instance != NULL && load((LONG *)context) % 3 == 2)
        CallbackMayRunLong(instance);
    add((LONG *)context, 1);
}

static VOID CALLBACK count_simple(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    SetEventWhenCallbackReturns(instance, context);
}

static DWORD WINAPI set_it(LPVOID event)
{
    return (DWORD)SetEvent(event);
}

static void use_work(test_random *random)
{
    TP_CALLBACK_ENVIRON how;
    BOOL cancel = one_in(random, 3);
    volatile LONG ran = 0;
    PTP_WORK work;

    prepare(&how, random);
    work = CreateThreadpoolWork(count_work, (PVOID)&ran, &how);
    require(work != NULL);
    for (int i = 0; i < SUBMISSIONS; i++)
        SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, cancel);
    require(cancel ? load(&ran) <= SUBMISSIONS : load(&ran) == SUBMISSIONS);
    CloseThreadpoolWork(work);
    DestroyThreadpoolEnvironment(&how);
}

static void use_simple_callbacks(test_random *random)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    TP_CALLBACK_ENVIRON how;

    prepare(&how, random);
    require(event != NULL && TrySubmitThreadpoolCallback(count_simple, event, &how));
    require(WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
    require(QueueUserWorkItem(set_it, event, one_in(random, 2) ? WT_EXECUTELONGFUNCTION : WT_EXECUTEDEFAULT));
    require(WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
    require(CloseHandle(event));
}

static void pool_work_step(test_random *random)
{
    if (one_in(random, 3))
        use_simple_callbacks(random);
    else
        use_work(random);
}

const soak_family pool_work_family = {
    .name = "pool work", .weight = 3, .setup = pool_setup, .step = pool_work_step, .check = pool_check};

/* Waits: callbacks consume a semaphore's count, once each; a registered wait sees each signal. */

typedef struct watching {
    HANDLE semaphore;
    volatile LONG taken, timeouts;
} watching;

static VOID CALLBACK wait_ended(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    watching *with = context;

    (void)instance;
    if (result == WAIT_OBJECT_0)
        add(&with->taken, 1);
    else
        add(&with->timeouts, 1);
    SetThreadpoolWait(wait, with->semaphore, NULL);
}

static VOID CALLBACK registered_wait_ended(PVOID context, BOOLEAN timed_out)
{
    watching *with = context;

    add(timed_out ? &with->timeouts : &with->taken, 1);
}

/* A callback that its group has cancelled is lost with what it consumed: one, at most. */
static void account(watching *with, bool cancelled)
{
    while (WaitForSingleObject(with->semaphore, 0) == WAIT_OBJECT_0)
        with->taken++;
    require(with->taken == SUBMISSIONS || (cancelled && with->taken == SUBMISSIONS - 1));
}

static void use_waits(watching *with, test_random *random)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    FILETIME due = file_time(in_microseconds(1 + random_below(random, 1000)));
    BOOL cancel = one_in(random, 2);
    TP_CALLBACK_ENVIRON how;
    PTP_WAIT wait;

    prepare(&how, random);
    require(group != NULL);
    SetThreadpoolCallbackCleanupGroup(&how, group, NULL);
    wait = CreateThreadpoolWait(wait_ended, with, &how);
    require(wait != NULL);
    SetThreadpoolWait(wait, with->semaphore, one_in(random, 2) ? &due : NULL);
    require(ReleaseSemaphore(with->semaphore, SUBMISSIONS, NULL));
    if (one_in(random, 2))
        await(load(&with->taken) == SUBMISSIONS);
    CloseThreadpoolCleanupGroupMembers(group, cancel, NULL);
    CloseThreadpoolCleanupGroup(group);
    account(with, cancel);
}

static void use_registered_wait(watching *with, test_random *random)
{
    HANDLE wait;

    require(RegisterWaitForSingleObject(&wait, with->semaphore, registered_wait_ended, with,
                                        one_in(random, 2) ? 1 : INFINITE, 0));
    require(ReleaseSemaphore(with->semaphore, SUBMISSIONS, NULL));
    if (one_in(random, 2))
        await(load(&with->taken) == SUBMISSIONS);
    require(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    account(with, false);
}

static void pool_waits_step(test_random *random)
{
    watching with = {.semaphore = CreateSemaphoreA(NULL, 0, SUBMISSIONS, NULL)};

    require(with.semaphore != NULL);
    if (one_in(random, 2))
        use_registered_wait(&with, random);
    else
        use_waits(&with, random);
    require(CloseHandle(with.semaphore));
}

const soak_family pool_waits_family = {.name = "pool waits", .weight = 2, .step = pool_waits_step};

/* Timers of the pool and timer queues. */

static VOID CALLBACK count_timer(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)timer;
    add((LONG *)context, 1);
}

static VOID CALLBACK count_queue_timer(PVOID context, BOOLEAN timed_out)
{
    require(timed_out);
    add((LONG *)context, 1);
}

static void use_pool_timer(test_random *random)
{
    FILETIME due = file_time(in_microseconds(1 + random_below(random, 1000)));
    DWORD period = random_below(random, 2);
    volatile LONG expired = 0;
    TP_CALLBACK_ENVIRON how;
    LONG seen;
    PTP_TIMER timer;

    prepare(&how, random);
    timer = CreateThreadpoolTimer(count_timer, (PVOID)&expired, &how);
    require(timer != NULL);
    SetThreadpoolTimer(timer, &due, period, 0);
    if (one_in(random, 2))
        await(load(&expired) >= 1);
    SetThreadpoolTimer(timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    seen = load(&expired);
    require(period != 0 || seen <= 1);
    CloseThreadpoolTimer(timer);
    require(load(&expired) == seen);
}

static void use_timer_queue(test_random *random)
{
    HANDLE queue = CreateTimerQueue(), timer;
    volatile LONG expired = 0;
    DWORD period = random_below(random, 2);

    require(queue != NULL);
    require(
        CreateTimerQueueTimer(&timer, queue, count_queue_timer, (PVOID)&expired, random_below(random, 2), period, 0));
    if (one_in(random, 2))
        await(load(&expired) >= 1);
    if (one_in(random, 2))
        require(DeleteTimerQueueTimer(queue, timer, INVALID_HANDLE_VALUE));
    require(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    require(period != 0 || load(&expired) <= 1);
}

static void pool_timers_step(test_random *random)
{
    if (one_in(random, 2))
        use_pool_timer(random);
    else
        use_timer_queue(random);
}

const soak_family pool_timers_family = {.name = "pool timers", .weight = 2, .step = pool_timers_step};
