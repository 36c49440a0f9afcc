/* waits.c: WaitForSingleObject, WaitForMultipleObjects, SignalObjectAndWait. */
#include "report.h"

static HANDLE Event(BOOL manual, BOOL set)
{
    return CreateEventW(NULL, manual, set, NULL);
}

static void Arguments(void)
{
    HANDLE handles[65], event = Event(TRUE, TRUE), restricted = NULL;
    int i;
    for (i = 0; i < 65; i++) {
        handles[i] = event;
    }
    SHOW(WaitForMultipleObjects(65, handles, FALSE, 0));
    SHOW(WaitForMultipleObjects(0, handles, FALSE, 0));
    SHOW(WaitForMultipleObjects(64, handles, FALSE, 0));
    SHOW(WaitForMultipleObjects(2, handles, TRUE, 0));
    SHOW(WaitForSingleObject(NULL, 0));
    SHOW(WaitForSingleObject((HANDLE)(LONG_PTR)0x1234560, 0));
    SHOW(WaitForSingleObject(GetCurrentProcess(), 0));
    SHOW(WaitForSingleObject(GetCurrentThread(), 0));
    SHOW(WaitForSingleObject((HANDLE)(LONG_PTR)-3, INFINITE));
    SHOW(WaitForSingleObject((HANDLE)(LONG_PTR)-4, INFINITE));
    handles[1] = GetCurrentThread();
    SHOW(WaitForMultipleObjects(2, handles, FALSE, 0));
    handles[1] = GetCurrentProcess();
    SHOW(WaitForMultipleObjects(2, handles, FALSE, 0));
    handles[1] = NULL;
    SHOW(WaitForMultipleObjects(2, handles, FALSE, 0));
    SHOW_TRUTH(DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &restricted, EVENT_MODIFY_STATE, FALSE, 0));
    SHOW(WaitForSingleObject(restricted, 0));
    SHOW(SetEvent(restricted));
    handles[1] = restricted;
    SHOW(WaitForMultipleObjects(2, handles, FALSE, 0));
    /* The low two bits of a handle are the program's own. */
    SHOW(WaitForSingleObject((HANDLE)((ULONG_PTR)event | 3), 0));
    CloseHandle(restricted);
    CloseHandle(event);
}

static void Any(void)
{
    HANDLE handles[3];
    handles[0] = Event(FALSE, FALSE);
    handles[1] = Event(FALSE, TRUE);
    handles[2] = Event(FALSE, TRUE);
    SHOW(WaitForMultipleObjects(3, handles, FALSE, 0));
    SHOW(WaitForMultipleObjects(3, handles, FALSE, 0));
    SHOW(WaitForMultipleObjects(3, handles, FALSE, 0));
    SetEvent(handles[0]);
    SetEvent(handles[2]);
    SHOW(WaitForMultipleObjects(3, handles, TRUE, 0));
    SHOW(WaitForSingleObject(handles[0], 0));
    SetEvent(handles[0]);
    SetEvent(handles[1]);
    SHOW(WaitForMultipleObjects(3, handles, TRUE, 0));
    SHOW(WaitForMultipleObjects(3, handles, FALSE, 0));
    CloseHandle(handles[0]);
    CloseHandle(handles[1]);
    CloseHandle(handles[2]);
}

static DWORD WINAPI TakeAndEnd(LPVOID parameter)
{
    WaitForSingleObject((HANDLE)parameter, INFINITE);
    return 0;
}

static void Abandoned(void)
{
    HANDLE handles[2];
    handles[0] = Event(TRUE, TRUE);
    handles[1] = CreateMutexW(NULL, FALSE, NULL);
    OnOtherThread(TakeAndEnd, handles[1]);
    SHOW(WaitForSingleObject(handles[1], 0));
    SHOW(ReleaseMutex(handles[1]));
    SHOW(WaitForSingleObject(handles[1], 0));
    SHOW(ReleaseMutex(handles[1]));
    OnOtherThread(TakeAndEnd, handles[1]);
    SHOW(WaitForMultipleObjects(2, handles, TRUE, 0));
    SHOW(ReleaseMutex(handles[1]));
    OnOtherThread(TakeAndEnd, handles[1]);
    ResetEvent(handles[0]);
    SHOW(WaitForMultipleObjects(2, handles, FALSE, 0));
    SHOW(ReleaseMutex(handles[1]));
    CloseHandle(handles[0]);
    CloseHandle(handles[1]);
}

static void SignalAndWait(void)
{
    HANDLE event = Event(FALSE, FALSE), full = CreateSemaphoreW(NULL, 1, 1, NULL);
    HANDLE mutex = CreateMutexW(NULL, TRUE, NULL), done = Event(TRUE, TRUE);
    SHOW(SignalObjectAndWait(event, event, 0, FALSE));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(SignalObjectAndWait(full, done, 0, FALSE));
    SHOW(SignalObjectAndWait(mutex, done, 0, FALSE));
    SHOW(SignalObjectAndWait(mutex, done, 0, FALSE));
    SHOW(SignalObjectAndWait(GetCurrentProcess(), done, 0, FALSE));
    SHOW(SignalObjectAndWait(event, NULL, 0, FALSE));
    SHOW(WaitForSingleObject(event, 0));
    CloseHandle(event);
    CloseHandle(full);
    CloseHandle(mutex);
    CloseHandle(done);
}

static HANDLE closed;

static DWORD WINAPI WaitForClosed(LPVOID parameter)
{
    SetEvent((HANDLE)parameter);
    return WaitForSingleObject(closed, 300);
}

static void CloseUnderWaiter(void)
{
    HANDLE begun = Event(FALSE, FALSE), thread;
    DWORD code = 0;
    closed = Event(FALSE, FALSE);
    thread = StartThread(WaitForClosed, begun);
    WaitForSingleObject(begun, INFINITE);
    Sleep(50);
    CloseHandle(closed);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    SHOW(code);
    CloseHandle(thread);
    CloseHandle(begun);
}

int main(void)
{
    Arguments();
    Any();
    Abandoned();
    SignalAndWait();
    CloseUnderWaiter();
    return 0;
}
