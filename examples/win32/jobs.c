#include <windows.h>
#include <stdio.h>

static LONG done;

/* Waits for the next job, or for the stop event. If both are signaled, the job comes first. */
static DWORD WINAPI Work(LPVOID jobOrStop)
{
    while (WaitForMultipleObjects(2, (HANDLE *)jobOrStop, FALSE, INFINITE) == WAIT_OBJECT_0) {
        InterlockedIncrement(&done);
    }
    return 0;
}

int main(void)
{
    HANDLE jobOrStop[2], threads[3];
    int i;
    jobOrStop[0] = CreateSemaphore(NULL, 0, 1000, NULL);
    jobOrStop[1] = CreateEvent(NULL, TRUE, FALSE, NULL);
    for (i = 0; i < 3; i++) {
        threads[i] = CreateThread(NULL, 0, Work, jobOrStop, 0, NULL);
    }
    ReleaseSemaphore(jobOrStop[0], 1000, NULL);
    SetEvent(jobOrStop[1]);
    WaitForMultipleObjects(3, threads, TRUE, INFINITE);
    for (i = 0; i < 3; i++) {
        CloseHandle(threads[i]);
    }
    CloseHandle(jobOrStop[0]);
    CloseHandle(jobOrStop[1]);
    printf("%ld of 1000 jobs done\n", (long)done);
    return done != 1000;
}
