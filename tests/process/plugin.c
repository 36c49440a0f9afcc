/*
 * plugin.c: a plugin that a host loads and unloads. It uses the library in all ways that leave something running: the
 * threads of the pool, the clock's thread, a thread of the host that is adopted.
 */
#include <windows.h>

#include <ntddk.h>

static volatile LONG ticks;

static VOID CALLBACK tick(PVOID context, BOOLEAN fired)
{
    (void)context;
    (void)fired;
    InterlockedIncrement(&ticks);
}

static DWORD WINAPI count(LPVOID context)
{
    InterlockedIncrement((volatile LONG *)context);
    return 0;
}

static VOID CALLBACK count_in_pool(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    InterlockedIncrement((volatile LONG *)context);
}

/* Adopts the calling thread, whose end the library then sees. 0: it worked. */
int plugin_touch(void);
int plugin_touch(void)
{
    KEVENT event;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeSetEvent(&event, 0, FALSE);
    return KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) != STATUS_SUCCESS;
}

/* What continues after the call belongs to the library: nothing runs in the plugin's own code then. */
int plugin_use(void);
int plugin_use(void)
{
    volatile LONG counted = 0;
    HANDLE timer, done = CreateEventA(NULL, FALSE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, count, (LPVOID)&counted, 0, NULL);
    PTP_WORK work = CreateThreadpoolWork(count_in_pool, (PVOID)&counted, NULL);
    LONG before = __atomic_load_n(&ticks, __ATOMIC_RELAXED);
    if (WaitForSingleObject(thread, INFINITE) != WAIT_OBJECT_0 || counted != 1) {
        return 1;
    }
    CloseHandle(thread);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    if (counted != 2) {
        return 2;
    }
    if (!CreateTimerQueueTimer(&timer, NULL, tick, NULL, 1, 1, 0)) {
        return 3;
    }
    while (__atomic_load_n(&ticks, __ATOMIC_RELAXED) == before) {
        Sleep(1);
    }
    if (!DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE)) {
        return 4;
    }
    SetEvent(done);
    if (WaitForSingleObject(done, INFINITE) != WAIT_OBJECT_0) {
        return 5;
    }
    CloseHandle(done);
    return plugin_touch() ? 6 : 0;
}
