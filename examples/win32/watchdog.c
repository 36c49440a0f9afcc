/*
 * watchdog.c: a watchdog made of waitable timers and asynchronous procedure calls.
 *
 * A worker must report regularly. Each report postpones the watchdog's timer; the main thread sleeps alertably, and the
 * timer's APC runs only if the worker goes silent. A second, periodic timer counts heartbeats meanwhile.
 */
#include <windows.h>
#include <stdio.h>

#define REPORTS 5
#define HEARTBEATS 3

static HANDLE watchdog, heartbeat, reported;
static LONG barks, beats, notes;

static LARGE_INTEGER Milliseconds(LONG count)
{
    LARGE_INTEGER due;
    due.QuadPart = -10000LL * count;
    return due;
}

static VOID CALLBACK Bark(LPVOID argument, DWORD low, DWORD high)
{
    (void)low;
    (void)high;
    barks++;
    printf("the watchdog barks: %s is silent\n", (const char *)argument);
}

static VOID CALLBACK Beat(LPVOID argument, DWORD low, DWORD high)
{
    (void)argument;
    (void)low;
    (void)high;
    beats++;
}

static VOID CALLBACK Note(ULONG_PTR number)
{
    notes++;
    printf("report %lu\n", (unsigned long)number);
}

static DWORD WINAPI Work(LPVOID parameter)
{
    HANDLE boss = (HANDLE)parameter;
    ULONG_PTR i;
    for (i = 1; i <= REPORTS; i++) {
        QueueUserAPC(Note, boss, i);
        SetEvent(reported);
        Sleep(5);
    }
    return 0;
}

int main(void)
{
    HANDLE self, worker;
    LARGE_INTEGER due = Milliseconds(60000);

    watchdog = CreateWaitableTimerW(NULL, TRUE, NULL);
    heartbeat = CreateWaitableTimerW(NULL, FALSE, NULL);
    reported = CreateEventW(NULL, FALSE, FALSE, NULL);
    DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &self, 0, FALSE,
                    DUPLICATE_SAME_ACCESS);
    SetWaitableTimer(watchdog, &due, 0, Bark, (LPVOID) "the worker", FALSE);

    worker = CreateThread(NULL, 0, Work, self, 0, NULL);
    while (notes < REPORTS) {
        SleepEx(INFINITE, TRUE);
        SetWaitableTimer(watchdog, &due, 0, Bark, (LPVOID) "the worker", FALSE);
    }
    WaitForSingleObject(worker, INFINITE);
    printf("the worker is done, barks so far: %ld\n", (long)barks);

    due = Milliseconds(1);
    SetWaitableTimer(heartbeat, &due, 2, Beat, NULL, FALSE);
    while (beats < HEARTBEATS) {
        SleepEx(INFINITE, TRUE);
    }
    CancelWaitableTimer(heartbeat);
    printf("%d heartbeats\n", HEARTBEATS);

    due = Milliseconds(20);
    SetWaitableTimer(watchdog, &due, 0, Bark, (LPVOID) "the worker", FALSE);
    while (barks == 0) {
        SleepEx(INFINITE, TRUE);
    }
    printf("the timer is signaled: %s\n", WaitForSingleObject(watchdog, 0) == WAIT_OBJECT_0 ? "yes" : "NO");
    CloseHandle(worker);
    CloseHandle(self);
    CloseHandle(watchdog);
    CloseHandle(heartbeat);
    CloseHandle(reported);
    return barks != 1;
}
