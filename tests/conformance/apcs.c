/* apcs.c: user APCs and waitable timers. */
#include "report.h"

static LONG called;
static ULONG_PTR order[8];

static VOID CALLBACK Note(ULONG_PTR value)
{
    order[called++] = value;
}

static VOID CALLBACK QueueMore(ULONG_PTR value)
{
    order[called++] = value;
    QueueUserAPC(Note, GetCurrentThread(), value + 1);
}

static void Queued(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, TRUE, NULL), handles[2];
    SHOW(QueueUserAPC(Note, GetCurrentThread(), 1) != 0);
    SHOW(QueueUserAPC(Note, GetCurrentThread(), 2) != 0);
    SHOW(WaitForSingleObject(event, 0));
    SHOW(called);
    SHOW(SleepEx(0, FALSE));
    SHOW(called);
    SetEvent(event);
    SHOW(WaitForSingleObjectEx(event, INFINITE, TRUE));
    SHOW(called);
    SHOW(order[0]);
    SHOW(order[1]);
    SHOW(WaitForSingleObject(event, 0));
    QueueUserAPC(QueueMore, GetCurrentThread(), 5);
    SHOW(SleepEx(INFINITE, TRUE));
    SHOW(called);
    handles[0] = handles[1] = event;
    QueueUserAPC(Note, GetCurrentThread(), 3);
    SHOW(WaitForMultipleObjectsEx(2, handles, FALSE, INFINITE, TRUE));
    QueueUserAPC(Note, GetCurrentThread(), 3);
    SHOW(SignalObjectAndWait(event, event, INFINITE, TRUE));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(SleepEx(1, TRUE));
    SHOW(QueueUserAPC(Note, NULL, 0) != 0);
    CloseHandle(event);
}

static DWORD WINAPI End(LPVOID parameter)
{
    (void)parameter;
    return 7;
}

static void ToEndedThread(void)
{
    HANDLE thread = StartThread(End, NULL);
    WaitForSingleObject(thread, INFINITE);
    SHOW_TRUTH(QueueUserAPC(Note, thread, 1));
    CloseHandle(thread);
}

static DWORD WINAPI SleepAlertably(LPVOID parameter)
{
    SetEvent((HANDLE)parameter);
    return SleepEx(60000, TRUE);
}

static void ToWaitingThread(void)
{
    HANDLE begun = CreateEventW(NULL, FALSE, FALSE, NULL), thread = StartThread(SleepAlertably, begun);
    DWORD code = 0;
    WaitForSingleObject(begun, INFINITE);
    called = 0;
    SHOW(QueueUserAPC(Note, thread, 1) != 0);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    SHOW(code);
    SHOW(called);
    CloseHandle(thread);
    CloseHandle(begun);
}

static VOID CALLBACK TimerNote(LPVOID argument, DWORD low, DWORD high)
{
    (void)low;
    (void)high;
    order[called++] = (ULONG_PTR)argument;
}

static LARGE_INTEGER In(LONG milliseconds)
{
    LARGE_INTEGER due;
    due.QuadPart = -10000LL * milliseconds;
    return due;
}

static void Timers(void)
{
    HANDLE notification = CreateWaitableTimerW(NULL, TRUE, NULL), synchronization = CreateWaitableTimerW(NULL, FALSE, NULL);
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    LARGE_INTEGER due = In(1), past;
    SHOW(WaitForSingleObject(notification, 0));
    SHOW(SetWaitableTimer(notification, &due, 0, NULL, NULL, FALSE));
    SHOW(WaitForSingleObject(notification, 60000));
    SHOW(WaitForSingleObject(notification, 0));
    SHOW(SetWaitableTimer(synchronization, &due, 0, NULL, NULL, FALSE));
    SHOW(WaitForSingleObject(synchronization, 60000));
    SHOW(WaitForSingleObject(synchronization, 0));
    past.QuadPart = 1;
    SHOW(SetWaitableTimer(synchronization, &past, 0, NULL, NULL, FALSE));
    SHOW(WaitForSingleObject(synchronization, 60000));
    due = In(60000);
    SHOW(SetWaitableTimer(notification, &due, 0, NULL, NULL, FALSE));
    SHOW(WaitForSingleObject(notification, 0));
    SHOW(CancelWaitableTimer(notification));
    SHOW(CancelWaitableTimer(notification));
    SHOW(SetWaitableTimer(notification, &due, -1, NULL, NULL, FALSE));
    SHOW(SetWaitableTimer(event, &due, 0, NULL, NULL, FALSE));
    SHOW(CancelWaitableTimer(event));
    SHOW(SetWaitableTimer(NULL, &due, 0, NULL, NULL, FALSE));
    called = 0;
    due = In(1);
    SHOW(SetWaitableTimer(notification, &due, 0, TimerNote, (LPVOID)(ULONG_PTR)9, FALSE));
    SHOW(WaitForSingleObject(notification, 60000));
    SHOW(called);
    SHOW(SleepEx(60000, TRUE));
    SHOW(called);
    SHOW(order[0]);
    CloseHandle(notification);
    CloseHandle(synchronization);
    CloseHandle(event);
}

int main(void)
{
    Queued();
    ToEndedThread();
    ToWaitingThread();
    Timers();
    return 0;
}
