/*
 * eventloop.c: an epoll loop that also serves Interlock's objects, as a loop of libuv, GLib or io_uring would.
 *
 * A semaphore and a timer are exported as descriptors. The loop treats them like any other descriptor and consumes the
 * signal when they become readable.
 */
#include <windows.h>

#include <interlock/io.h>

#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define JOBS 3
#define TICKS 2

static HANDLE jobs;

static DWORD WINAPI Produce(LPVOID parameter)
{
    (void)parameter;
    for (int i = 0; i < JOBS; i++) {
        Sleep(5);
        ReleaseSemaphore(jobs, 1, NULL);
    }
    return 0;
}

static HANDLE Export(int loop, HANDLE object, int number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)number};
    HANDLE export = NULL;
    int descriptor;
    if (IoExportObject(object, &export, &descriptor) == 0) {
        epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event);
    }
    return export;
}

int main(void)
{
    int loop = epoll_create1(EPOLL_CLOEXEC), taken[2] = {0, 0};
    LARGE_INTEGER due = {.QuadPart = -10000LL};
    HANDLE timer, thread, exports[2];

    jobs = CreateSemaphoreA(NULL, 0, JOBS, NULL);
    timer = CreateWaitableTimerA(NULL, FALSE, NULL);
    exports[0] = Export(loop, jobs, 0);
    exports[1] = Export(loop, timer, 1);
    SetWaitableTimer(timer, &due, 5, NULL, NULL, FALSE);
    thread = CreateThread(NULL, 0, Produce, NULL, 0, NULL);
    while (taken[0] < JOBS || taken[1] < TICKS) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, 60000) != 1) {
            return 1;
        }
        if (IoAcceptExport(exports[event.data.u32]) == 0) {
            taken[event.data.u32]++;
        }
    }
    printf("the loop took %d jobs and saw the timer tick\n", taken[0]);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    CloseHandle(exports[0]);
    CloseHandle(exports[1]);
    CloseHandle(timer);
    CloseHandle(jobs);
    close(loop);
    return 0;
}
