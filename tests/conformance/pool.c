/* pool.c: the thread pool, timer queues, registered waits, work items. */
#include "report.h"

static volatile LONG count;
static HANDLE done;
static volatile LONG lastResult;

static void Until(LONG wanted)
{
    int i;
    for (i = 0; i < 6000 && InterlockedCompareExchange(&count, 0, 0) < wanted; i++) {
        Sleep(10);
    }
}

static VOID CALLBACK Work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    InterlockedExchangeAdd(&count, (LONG)(LONG_PTR)context);
}

static VOID CALLBACK Simple(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)context;
    SetEventWhenCallbackReturns(instance, done);
    InterlockedIncrement(&count);
}

static void Works(void)
{
    PTP_WORK work = CreateThreadpoolWork(Work, (PVOID)(LONG_PTR)2, NULL);
    int i;
    InterlockedExchange(&count, 0);
    for (i = 0; i < 10; i++) {
        SubmitThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    CloseThreadpoolWork(work);
    InterlockedExchange(&count, 0);
    SHOW(TrySubmitThreadpoolCallback(Simple, NULL, NULL));
    SHOW(WaitForSingleObject(done, 60000));
    SHOW(InterlockedCompareExchange(&count, 0, 0));
}

static FILETIME In(LONG milliseconds)
{
    LARGE_INTEGER due;
    FILETIME time;
    due.QuadPart = -10000LL * milliseconds;
    time.dwLowDateTime = due.u.LowPart;
    time.dwHighDateTime = (DWORD)due.u.HighPart;
    return time;
}

static VOID CALLBACK Tick(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)context;
    (void)timer;
    InterlockedIncrement(&count);
}

static void Timers(void)
{
    PTP_TIMER timer = CreateThreadpoolTimer(Tick, NULL, NULL);
    FILETIME time;
    LONG seen;
    time = In(60000);
    InterlockedExchange(&count, 0);
    SHOW(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, &time, 0, 0);
    SHOW(IsThreadpoolTimerSet(timer));
    time = In(1);
    SetThreadpoolTimer(timer, &time, 0, 0);
    Until(1);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(IsThreadpoolTimerSet(timer));
    SetThreadpoolTimer(timer, &time, 1, 0);
    Until(5);
    SetThreadpoolTimer(timer, NULL, 0, 0);
    WaitForThreadpoolTimerCallbacks(timer, TRUE);
    SHOW(IsThreadpoolTimerSet(timer));
    seen = InterlockedCompareExchange(&count, 0, 0);
    Sleep(30);
    SHOW(InterlockedCompareExchange(&count, 0, 0) == seen);
    CloseThreadpoolTimer(timer);
}

static VOID CALLBACK Waited(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)context;
    (void)wait;
    InterlockedExchange(&lastResult, (LONG)result);
    InterlockedIncrement(&count);
}

static void Waits(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    PTP_WAIT wait = CreateThreadpoolWait(Waited, NULL, NULL);
    FILETIME time = In(1);
    InterlockedExchange(&count, 0);
    SetThreadpoolWait(wait, event, NULL);
    SetEvent(event);
    Until(1);
    WaitForThreadpoolWaitCallbacks(wait, FALSE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SHOW(WaitForSingleObject(event, 0));
    SetThreadpoolWait(wait, event, &time);
    Until(2);
    WaitForThreadpoolWaitCallbacks(wait, FALSE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SetThreadpoolWait(wait, event, NULL);
    SetThreadpoolWait(wait, NULL, NULL);
    SetEvent(event);
    WaitForThreadpoolWaitCallbacks(wait, TRUE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(WaitForSingleObject(event, 0));
    CloseThreadpoolWait(wait);
    CloseHandle(event);
}

static void Groups(void)
{
    PTP_POOL pool = CreateThreadpool(NULL);
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    PTP_WORK work;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolThreadMaximum(pool, 1);
    SHOW(SetThreadpoolThreadMinimum(pool, 1));
    SetThreadpoolCallbackPool(&environment, pool);
    SetThreadpoolCallbackCleanupGroup(&environment, group, NULL);
    InterlockedExchange(&count, 0);
    work = CreateThreadpoolWork(Work, (PVOID)(LONG_PTR)1, &environment);
    SubmitThreadpoolWork(work);
    SubmitThreadpoolWork(work);
    CloseThreadpoolCleanupGroupMembers(group, FALSE, NULL);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    CloseThreadpoolCleanupGroup(group);
    CloseThreadpool(pool);
    DestroyThreadpoolEnvironment(&environment);
}

/* A release that cancels, while a callback runs. */
static HANDLE entered, opened;
static volatile LONG ended, cancels, early;

static VOID CALLBACK Cancelled(PVOID context, PVOID cleanup)
{
    (void)context;
    InterlockedIncrement(&cancels);
    InterlockedExchangeAdd(&early, InterlockedCompareExchange(cleanup, 0, 0) == 0);
}

static void Stay(void)
{
    SetEvent(entered);
    WaitForSingleObject(opened, INFINITE);
    Sleep(20);
    InterlockedIncrement(&ended);
}

static VOID CALLBACK Member(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    Stay();
}

static VOID CALLBACK ClosingMember(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    Member(instance, context, work);
    CloseThreadpoolWork(work);
}

static VOID CALLBACK LeavingMember(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    DisassociateCurrentThreadFromCallback(instance);
    Member(instance, context, work);
}

static DWORD WINAPI OpenLater(LPVOID event)
{
    Sleep(50);
    SetEvent(event);
    return 0;
}

static void CancelRunning(PTP_WORK_CALLBACK callback)
{
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    PTP_WORK work;
    HANDLE thread;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, Cancelled);
    ended = cancels = early = 0;
    ResetEvent(opened);
    work = CreateThreadpoolWork(callback, NULL, &environment);
    SubmitThreadpoolWork(work);
    WaitForSingleObject(entered, INFINITE);
    thread = CreateThread(NULL, 0, OpenLater, opened, 0, NULL);
    CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&ended);
    SHOW(InterlockedCompareExchange(&ended, 0, 0));
    SHOW(InterlockedCompareExchange(&cancels, 0, 0));
    SHOW(InterlockedCompareExchange(&early, 0, 0));
    CloseThreadpoolCleanupGroup(group);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

/* Pending callbacks: of an open member, of one that was closed, and one that was submitted once. */
static void CancelPending(void)
{
    PTP_POOL pool = CreateThreadpool(NULL);
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    TP_CALLBACK_ENVIRON environment;
    PTP_WORK busy, work;
    SetThreadpoolThreadMaximum(pool, 1);
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPool(&environment, pool);
    ended = 0;
    ResetEvent(opened);
    busy = CreateThreadpoolWork(Member, NULL, &environment);
    SubmitThreadpoolWork(busy);
    WaitForSingleObject(entered, INFINITE);
    SetThreadpoolCallbackCleanupGroup(&environment, group, Cancelled);
    InterlockedExchange(&count, 0);
    cancels = 0;
    work = CreateThreadpoolWork(Work, (PVOID)(LONG_PTR)1, &environment);
    SubmitThreadpoolWork(work);
    CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&ended);
    SHOW(InterlockedCompareExchange(&cancels, 0, 0));
    work = CreateThreadpoolWork(Work, (PVOID)(LONG_PTR)1, &environment);
    SubmitThreadpoolWork(work);
    CloseThreadpoolWork(work);
    CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&ended);
    SHOW(InterlockedCompareExchange(&cancels, 0, 0));
    SHOW(TrySubmitThreadpoolCallback(Simple, NULL, &environment));
    CloseThreadpoolCleanupGroupMembers(group, TRUE, (PVOID)&ended);
    SHOW(InterlockedCompareExchange(&cancels, 0, 0));
    SetEvent(opened);
    WaitForThreadpoolWorkCallbacks(busy, FALSE);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    CloseThreadpoolWork(busy);
    CloseThreadpoolCleanupGroup(group);
    CloseThreadpool(pool);
}

static void Cancels(void)
{
    entered = CreateEventW(NULL, FALSE, FALSE, NULL);
    opened = CreateEventW(NULL, TRUE, FALSE, NULL);
    CancelRunning(Member);
    CancelRunning(ClosingMember);
    CancelRunning(LeavingMember);
    CancelPending();
}

static DWORD WINAPI Item(LPVOID parameter)
{
    InterlockedExchangeAdd(&count, (LONG)(LONG_PTR)parameter);
    SetEvent(done);
    return 0;
}

static VOID CALLBACK Registered(PVOID parameter, BOOLEAN timedOut)
{
    (void)parameter;
    InterlockedExchange(&lastResult, timedOut);
    InterlockedIncrement(&count);
    SetEvent(done);
}

static VOID CALLBACK QueueTick(PVOID parameter, BOOLEAN timedOut)
{
    (void)parameter;
    InterlockedExchange(&lastResult, timedOut);
    InterlockedIncrement(&count);
}

static void Legacy(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), wait = NULL, queue, timer = NULL;
    InterlockedExchange(&count, 0);
    SHOW(QueueUserWorkItem(Item, (LPVOID)(LONG_PTR)3, WT_EXECUTEDEFAULT));
    SHOW(WaitForSingleObject(done, 60000));
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(RegisterWaitForSingleObject(&wait, event, Registered, NULL, INFINITE, WT_EXECUTEONLYONCE));
    SetEvent(event);
    SHOW(WaitForSingleObject(done, 60000));
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SHOW(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    SHOW(RegisterWaitForSingleObject(&wait, event, Registered, NULL, 1, WT_EXECUTEONLYONCE));
    SHOW(WaitForSingleObject(done, 60000));
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SHOW(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    SHOW(UnregisterWait(NULL));
    queue = CreateTimerQueue();
    InterlockedExchange(&count, 0);
    SHOW(CreateTimerQueueTimer(&timer, queue, QueueTick, NULL, 1, 1, 0));
    Until(3);
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SHOW(ChangeTimerQueueTimer(queue, timer, 60000, 0));
    SHOW(DeleteTimerQueueTimer(queue, timer, INVALID_HANDLE_VALUE));
    SHOW(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
    CloseHandle(event);
}

static VOID CALLBACK Block(PVOID parameter, BOOLEAN timedOut)
{
    (void)parameter;
    (void)timedOut;
    InterlockedIncrement(&count);
    Stay();
}

static VOID CALLBACK Owner(PVOID mutex, BOOLEAN timedOut)
{
    InterlockedExchange(&lastResult, timedOut + 2 * ReleaseMutex(mutex));
    SetEvent(done);
}

static void Registrations(void)
{
    HANDLE semaphore = CreateSemaphoreW(NULL, 0, 10, NULL), mutex = CreateMutexW(NULL, FALSE, NULL);
    HANDLE wait = NULL, timer = NULL;
    InterlockedExchange(&count, 0);
    ResetEvent(opened);
    SHOW(RegisterWaitForSingleObject(&wait, semaphore, Block, NULL, INFINITE, WT_EXECUTEDEFAULT));
    ReleaseSemaphore(semaphore, 3, NULL);
    Until(3);
    SHOW(InterlockedCompareExchange(&count, 0, 0));
    SHOW(UnregisterWait(wait));
    SetEvent(opened);
    SHOW(RegisterWaitForSingleObject(&wait, mutex, Owner, mutex, INFINITE, WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD));
    SHOW(WaitForSingleObject(done, 60000));
    SHOW(InterlockedCompareExchange(&lastResult, 0, 0));
    SHOW(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    SHOW(WaitForSingleObject(mutex, 0));
    ResetEvent(opened);
    SHOW(CreateTimerQueueTimer(&timer, NULL, Block, NULL, 0, 0, 0));
    Until(4);
    SHOW(DeleteTimerQueueTimer(NULL, timer, NULL));
    SetEvent(opened);
    CloseHandle(semaphore);
    CloseHandle(mutex);
}

int main(void)
{
    done = CreateEventW(NULL, FALSE, FALSE, NULL);
    Works();
    Timers();
    Waits();
    Groups();
    Legacy();
    Cancels();
    Registrations();
    CloseHandle(entered);
    CloseHandle(opened);
    CloseHandle(done);
    return 0;
}
