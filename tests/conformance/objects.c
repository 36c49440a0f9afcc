/* objects.c: events, mutexes and semaphores. */
#include "report.h"

static void Events(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, TRUE, NULL);
    SHOW(WaitForSingleObject(event, 0));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(SetEvent(event));
    SHOW(SetEvent(event));
    SHOW(ResetEvent(event));
    SHOW(WaitForSingleObject(event, 1));
    SHOW(PulseEvent(event));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(CloseHandle(event));
    SHOW(CloseHandle(event));
    SHOW(SetEvent(event));
    SHOW(ResetEvent(NULL));
    SHOW_TRUTH(CreateEventExW(NULL, NULL, 8, EVENT_ALL_ACCESS) != NULL);
}

static DWORD WINAPI ReleaseMutexThread(LPVOID parameter)
{
    SHOW(ReleaseMutex((HANDLE)parameter));
    return 0;
}

static void Mutexes(void)
{
    HANDLE mutex = CreateMutexW(NULL, TRUE, NULL), event = CreateEventW(NULL, TRUE, TRUE, NULL), weak;
    SHOW(WaitForSingleObject(mutex, 0));
    SHOW(WaitForSingleObject(mutex, INFINITE));
    OnOtherThread(ReleaseMutexThread, mutex);
    SHOW(ReleaseMutex(mutex));
    SHOW(ReleaseMutex(mutex));
    SHOW(ReleaseMutex(mutex));
    SHOW(ReleaseMutex(mutex));
    SHOW(ReleaseMutex(event));
    SHOW(ReleaseMutex(NULL));
    WaitForSingleObject(mutex, 0);
    DuplicateHandle(GetCurrentProcess(), mutex, GetCurrentProcess(), &weak, SYNCHRONIZE, FALSE, 0);
    SHOW(ReleaseMutex(weak));
    CloseHandle(weak);
    CloseHandle(mutex);
    CloseHandle(event);
}

static void Semaphores(void)
{
    HANDLE semaphore;
    LONG previous = -1;
    SHOW_TRUTH(CreateSemaphoreW(NULL, 2, 1, NULL) == NULL);
    SHOW_TRUTH(CreateSemaphoreW(NULL, 0, 0, NULL) == NULL);
    SHOW_TRUTH(CreateSemaphoreW(NULL, -1, 1, NULL) == NULL);
    semaphore = CreateSemaphoreW(NULL, 1, 3, NULL);
    SHOW(ReleaseSemaphore(semaphore, 1, &previous));
    SHOW(previous);
    SHOW(ReleaseSemaphore(semaphore, 2, &previous));
    SHOW(previous);
    SHOW(ReleaseSemaphore(semaphore, 0, &previous));
    SHOW(ReleaseSemaphore(semaphore, -1, &previous));
    SHOW(ReleaseSemaphore(semaphore, 0x7fffffff, &previous));
    SHOW(WaitForSingleObject(semaphore, 0));
    SHOW(WaitForSingleObject(semaphore, 0));
    SHOW(WaitForSingleObject(semaphore, 0));
    SHOW(ReleaseSemaphore(semaphore, 3, NULL));
    SHOW(ReleaseSemaphore(semaphore, 1, NULL));
    CloseHandle(semaphore);
}

static HANDLE kept[64];
static int keptCount;

static HANDLE Keep(HANDLE handle)
{
    kept[keptCount++] = handle;
    return handle;
}

static void CloseKept(void)
{
    while (keptCount > 0) {
        HANDLE handle = kept[--keptCount];
        if (handle != NULL) {
            CloseHandle(handle);
        }
    }
}

static void Names(void)
{
    static WCHAR longName[300];
    int i;
    for (i = 0; i < 299; i++) {
        longName[i] = 'a';
    }
    SHOW_TRUTH(Keep(CreateEventA(NULL, FALSE, FALSE, "interlock one")) != NULL);
    SHOW_TRUTH(Keep(CreateEventA(NULL, FALSE, FALSE, "interlock one")) != NULL);
    SHOW_TRUTH(Keep(CreateEventA(NULL, FALSE, FALSE, "Local\\interlock one")) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, "interlock one")) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, "INTERLOCK ONE")) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, "interlock two")) != NULL);
    SHOW_TRUTH(Keep(CreateMutexA(NULL, FALSE, "interlock one")) != NULL);
    SHOW_TRUTH(Keep(OpenMutexA(SYNCHRONIZE, FALSE, "interlock one")) != NULL);
    SHOW_TRUTH(Keep(CreateSemaphoreA(NULL, 0, 1, "interlock\\three")) != NULL);
    SHOW_TRUTH(Keep(CreateEventA(NULL, FALSE, FALSE, "Global\\interlock four")) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, "Global\\interlock four")) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, NULL)) != NULL);
    SHOW_TRUTH(Keep(OpenEventA(SYNCHRONIZE, FALSE, "")) != NULL);
    SHOW_TRUTH(Keep(CreateEventA(NULL, FALSE, FALSE, "")) != NULL);
    SHOW_TRUTH(Keep(CreateEventW(NULL, FALSE, FALSE, longName)) != NULL);
    SHOW_TRUTH(Keep(OpenWaitableTimerW(SYNCHRONIZE, FALSE, longName)) != NULL);
    CloseKept();
}

static void Gone(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, TRUE, "interlock brief");
    SHOW(CloseHandle(event));
    SHOW_TRUTH(OpenEventA(SYNCHRONIZE, FALSE, "interlock brief") != NULL);
    event = CreateEventA(NULL, TRUE, FALSE, "interlock brief");
    SHOW(WaitForSingleObject(event, 0));
    CloseHandle(event);
}

int main(void)
{
    Events();
    Mutexes();
    Semaphores();
    Names();
    Gone();
    return 0;
}
